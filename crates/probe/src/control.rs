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
    pub fn ask_within(&self, patience: Duration, command: &str) -> Result<String, ControlError> {
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
    fn only_a_200_has_a_body() {
        assert_eq!(body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}").unwrap(), "{}");
        assert!(matches!(body("HTTP/1.0 403 Forbidden\r\n\r\nInvalid auth token"), Err(ControlError::Refused(_))));
        assert!(matches!(body(""), Err(ControlError::Malformed(_))));
    }
}
