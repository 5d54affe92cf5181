//! A small HTTP client: one request on a connection of its own, answered and closed. Not for load.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use model::Endpoint;

/// Longer answers are cut.
const LONGEST: u64 = 16 << 20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Its status line without the version: `200 OK`.
    pub status: String,
    /// What follows the head.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Whether the status is 200.
    pub fn is_ok(&self) -> bool {
        self.status.split(' ').next() == Some("200")
    }

    fn parse(bytes: &[u8]) -> Option<HttpAnswer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let (version, status) = head.lines().next()?.split_once(' ')?;
        let is_status = version.starts_with("HTTP/")
            && status.starts_with(|digit: char| digit.is_ascii_digit());
        is_status.then(|| HttpAnswer {
            status: status.trim_end().to_owned(),
            body: bytes[end + 4..].to_vec(),
        })
    }
}

/// Sends `request`, which asks for the connection to be closed, and reads to its end. No step of it
/// (connect, write, each read) is waited for longer than `longest_wait`.
///
/// # Errors
/// Where it cannot be reached in time, or what comes back is no whole head of HTTP/1.
pub fn exchange(
    address: &Endpoint,
    request: &[u8],
    longest_wait: Duration,
) -> io::Result<HttpAnswer> {
    let answer = match address {
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, longest_wait)?;
            stream.set_read_timeout(Some(longest_wait))?;
            stream.set_write_timeout(Some(longest_wait))?;
            talk(stream, request)?
        }
        Endpoint::Unix(path) => talk_by_unix(UnixStream::connect(path)?, request, longest_wait)?,
        Endpoint::Abstract(name) => {
            let stream = UnixStream::connect_addr(&UnixAddress::from_abstract_name(name)?)?;
            talk_by_unix(stream, request, longest_wait)?
        }
    };
    HttpAnswer::parse(&answer)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its answer is no HTTP"))
}

/// The answer to `GET /<path>` of HTTP/1.0.
///
/// # Errors
/// As [`exchange`].
pub fn get(address: &Endpoint, path: &str, longest_wait: Duration) -> io::Result<HttpAnswer> {
    exchange(
        address,
        format!("GET /{path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes(),
        longest_wait,
    )
}

fn talk_by_unix(stream: UnixStream, request: &[u8], longest_wait: Duration) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(longest_wait))?;
    stream.set_write_timeout(Some(longest_wait))?;
    talk(stream, request)
}

fn talk(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let answer = |status: &str, body: &str| {
            Some(HttpAnswer { status: status.to_owned(), body: body.into() })
        };
        let cases = [
            ("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}", answer("200 OK", "{}")),
            ("HTTP/1.1 403 Forbidden\r\n\r\nno\r\n\r\n", answer("403 Forbidden", "no\r\n\r\n")),
            ("HTTP/1.1 503\r\n\r\n", answer("503", "")),
            ("HTTP/1.1 200 OK\r\n", None),
            ("HTTP/1.1 OK\r\n\r\n", None),
            ("SSH-2.0-x y\r\n\r\n", None),
            ("", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(HttpAnswer::parse(bytes.as_bytes()), expected, "{bytes}");
        }
        assert!(answer("200 OK", "").unwrap().is_ok() && !answer("2000", "").unwrap().is_ok());
    }
}
