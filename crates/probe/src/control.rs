//! One question to Puma's control server: an HTTP/1.0 GET, answered and closed.
//!
//! It has one thread and no keep-alive, so each question is a connection of its own.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
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

/// Why a URL is none of a control server that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no control server of this machine: write tcp://127.0.0.1:9293 or unix:///PATH")]
pub struct BadControlUrl(String);

impl FromStr for ControlAddress {
    type Err = BadControlUrl;

    /// As Puma takes it. Only a server of this machine is ever asked; one that listens on every address is asked on
    /// loopback.
    fn from_str(url: &str) -> Result<ControlAddress, BadControlUrl> {
        let bad = || BadControlUrl(url.to_owned());
        if let Some(path) = url.strip_prefix("unix://") {
            return if path.starts_with('/') { Ok(ControlAddress::Unix(path.into())) } else { Err(bad()) };
        }
        let authority = url.strip_prefix("tcp://").ok_or_else(bad)?.replacen("localhost:", "127.0.0.1:", 1);
        let mut address: SocketAddr = authority.trim_end_matches('/').parse().map_err(|_| bad())?;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        if address.ip().is_loopback() && address.port() > 0 { Ok(ControlAddress::Tcp(address)) } else { Err(bad()) }
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
    /// Where it names none, or none of this machine.
    pub fn from_state(text: &str) -> Result<Control, String> {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
            let bare = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
            Some(bare('"').or_else(|| bare('\'')).unwrap_or(value).to_owned()).filter(|value| !value.is_empty())
        };
        let url = field("control_url").ok_or("it names no control server: start Puma with --control-url")?;
        let address = url.parse().map_err(|error: BadControlUrl| error.to_string())?;
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

    #[test]
    fn only_this_machine_is_asked() {
        let tcp = |url: &str| match url.parse() {
            Ok(ControlAddress::Tcp(address)) => address.to_string(),
            other => panic!("{url}: {other:?}"),
        };
        assert_eq!(tcp("tcp://127.0.0.1:9293"), "127.0.0.1:9293");
        assert_eq!(tcp("tcp://localhost:9293/"), "127.0.0.1:9293");
        assert_eq!((tcp("tcp://0.0.0.0:1"), tcp("tcp://[::]:1")), ("127.0.0.1:1".to_owned(), "[::1]:1".to_owned()));
        assert_eq!("unix:///a b".parse(), Ok(ControlAddress::Unix("/a b".into())));
        for bad in [
            "",
            "auto",
            "tcp://192.0.2.1:9293",
            "tcp://example.org:1",
            "tcp://127.0.0.1:0",
            "ssl://127.0.0.1:1",
            "unix://a",
        ] {
            assert_eq!(bad.parse::<ControlAddress>(), Err(BadControlUrl(bad.to_owned())));
        }
    }

    #[test]
    fn a_state_file_names_the_control_server() {
        let text = "---\npid: 9\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: \"01\"\nrunning_from: \"/x\"\n";
        let control = Control::from_state(text).unwrap();
        assert_eq!(control, Control { address: "tcp://127.0.0.1:9293".parse().unwrap(), token: "01".to_owned() });
        assert!(Control::from_state("---\npid: 9\n").unwrap_err().contains("--control-url"));
        assert!(Control::from_state("control_url: tcp://192.0.2.1:1\n").unwrap_err().contains("this machine"));
    }

    #[test]
    fn only_a_200_has_a_body() {
        assert_eq!(body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}").unwrap(), "{}");
        assert!(matches!(body("HTTP/1.0 403 Forbidden\r\n\r\nInvalid auth token"), Err(ControlError::Refused(_))));
        assert!(matches!(body(""), Err(ControlError::Malformed(_))));
    }
}
