//! One question to Puma's control server: an HTTP/1.0 GET, answered and closed.
//!
//! It has one thread and no keep-alive, so each question is a connection of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// A control server that does not answer in this time is taken for absent.
const PATIENCE: Duration = Duration::from_secs(5);
/// No answer of a control server is longer.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Where Puma's control server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// `tcp://…`
    Tcp(SocketAddr),
    /// `unix://…`
    Unix(PathBuf),
}

/// Finds the address of a host and port; why there is none, in a line.
pub type FindAddress<'a> = &'a dyn Fn(&str, u16) -> Result<SocketAddr, String>;

impl ControlAddress {
    /// As Puma takes it, `tcp://HOST:PORT` or `unix://PATH`. A server that listens on every address is asked on loopback.
    ///
    /// # Errors
    /// Where it is no such URL, or its host has no address, in a line.
    pub fn parse(url: &str, find: FindAddress<'_>) -> Result<ControlAddress, String> {
        let wrong = || format!("'{url}' is no control server: write tcp://127.0.0.1:9293 or unix:///PATH");
        if let Some(path) = url.strip_prefix("unix://") {
            return if path.starts_with('/') { Ok(ControlAddress::Unix(path.into())) } else { Err(wrong()) };
        }
        let authority = url.strip_prefix("tcp://").ok_or_else(wrong)?.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        let host = match host {
            "" => return Err(wrong()),
            "localhost" | "0.0.0.0" => "127.0.0.1",
            "[::]" => "[::1]",
            host => host,
        };
        find(host, port).map(ControlAddress::Tcp)
    }
}

/// Puma's control server and the token that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Where it listens.
    pub address: ControlAddress,
    /// Its token; empty where it wants none.
    pub token: String,
}

/// Why the control server gave no answer.
#[derive(Debug, Error)]
pub enum ControlError {
    /// It could not be reached, or closed the connection.
    #[error("the control server does not answer: {0}")]
    Io(#[from] std::io::Error),
    /// It answered something else than 200.
    #[error("the control server answered {0}")]
    Refused(String),
    /// Its answer is not what it should be.
    #[error("the control server's answer is not understood: {0}")]
    Malformed(String),
}

impl Control {
    /// As Puma's state file names it: lines `control_url: …` and `control_auth_token: …` (`lib/puma/state_file.rb`).
    ///
    /// # Errors
    /// Where it names none, or none that can be found.
    pub fn from_state(text: &str, find: FindAddress<'_>) -> Result<Control, String> {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
            let bare = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
            Some(bare('"').or_else(|| bare('\'')).unwrap_or(value).to_owned()).filter(|value| !value.is_empty())
        };
        let url = field("control_url").ok_or("it names no control server: start Puma with --control-url")?;
        let address = ControlAddress::parse(&url, find)?;
        // Puma writes this word where it wants no token.
        let token = field("control_auth_token").filter(|token| token != "none").unwrap_or_default();
        Ok(Control { address, token })
    }

    /// The body of `GET /<command>`.
    ///
    /// # Errors
    /// Where it cannot be reached within 5 s, or refuses (during boot and shutdown it does).
    pub fn ask(&self, command: &str) -> Result<String, ControlError> {
        self.ask_within(PATIENCE, command)
    }

    /// As [`Control::ask`], but no step of it (connect, write, each read) is waited for longer than `patience`.
    ///
    /// # Errors
    /// Where it cannot be reached in time, or refuses.
    pub(crate) fn ask_within(&self, patience: Duration, command: &str) -> Result<String, ControlError> {
        let mut text = Vec::new();
        match &self.address {
            ControlAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, patience)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                self.exchange(stream, command, &mut text)?;
            }
            ControlAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                self.exchange(stream, command, &mut text)?;
            }
        }
        body(&String::from_utf8_lossy(&text))
    }

    fn exchange(&self, mut stream: impl Read + Write, command: &str, text: &mut Vec<u8>) -> Result<(), ControlError> {
        let token = if self.token.is_empty() { String::new() } else { format!("?token={}", self.token) };
        write!(stream, "GET /{command}{token} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        stream.take(LONGEST).read_to_end(text)?;
        Ok(())
    }
}

fn body(text: &str) -> Result<String, ControlError> {
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| ControlError::Malformed("no head".to_owned()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(ControlError::Refused(status.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses alone are known.
    fn find(host: &str, port: u16) -> Result<SocketAddr, String> {
        format!("{host}:{port}").parse().map_err(|_| format!("{host} is not known"))
    }

    #[test]
    fn a_control_url_is_as_puma_takes_it() {
        let tcp = |url: &str| match ControlAddress::parse(url, &find) {
            Ok(ControlAddress::Tcp(address)) => address.to_string(),
            other => panic!("{url}: {other:?}"),
        };
        assert_eq!(tcp("tcp://127.0.0.1:9293"), "127.0.0.1:9293");
        assert_eq!(tcp("tcp://10.1.2.3:9293"), "10.1.2.3:9293");
        assert_eq!(tcp("tcp://localhost:9293/"), "127.0.0.1:9293");
        assert_eq!((tcp("tcp://0.0.0.0:1"), tcp("tcp://[::]:1")), ("127.0.0.1:1".to_owned(), "[::1]:1".to_owned()));
        assert_eq!(ControlAddress::parse("unix:///a b", &find), Ok(ControlAddress::Unix("/a b".into())));
        for bad in ["", "auto", "tcp://127.0.0.1:0", "tcp://:1", "tcp://h", "ssl://127.0.0.1:1", "unix://a"] {
            let said = ControlAddress::parse(bad, &find).unwrap_err();
            assert!(said.contains("is no control server"), "{bad}: {said}");
        }
        assert_eq!(ControlAddress::parse("tcp://far:1", &find), Err("far is not known".to_owned()));
    }

    #[test]
    fn a_state_file_names_the_control_server() {
        let text = "---\npid: 9\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: \"01\"\nrunning_from: \"/x\"\n";
        let control = Control::from_state(text, &find).unwrap();
        let address = ControlAddress::Tcp("127.0.0.1:9293".parse().unwrap());
        assert_eq!(control, Control { address, token: "01".to_owned() });
        assert!(Control::from_state("---\npid: 9\n", &find).unwrap_err().contains("--control-url"));
        assert!(Control::from_state("control_url: tcp://far:1\n", &find).unwrap_err().contains("far is not known"));
    }

    #[test]
    fn only_a_200_has_a_body() {
        assert_eq!(body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}").unwrap(), "{}");
        assert!(matches!(body("HTTP/1.0 403 Forbidden\r\n\r\nInvalid auth token"), Err(ControlError::Refused(_))));
        assert!(matches!(body(""), Err(ControlError::Malformed(_))));
    }
}
