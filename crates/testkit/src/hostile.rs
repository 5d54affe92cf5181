//! Peers that accept a connection and then misbehave.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use model::{Clock as _, Nanos};

use crate::clock::REAL_CLOCK;

/// How long a slow peer waits before its next byte.
const PAUSE: Nanos = Nanos::from_millis(200);

/// Behaves in the way that tables of tests call by this name.
///
/// # Panics
/// If there is no such behaviour.
fn behave(behaviour: &str, stream: &mut TcpStream) -> io::Result<()> {
    let mut request = [0; 1 << 14];
    match behaviour {
        "reads nothing" => {}
        "reads a byte at a time" => loop {
            if stream.read(&mut request[..1])? == 0 {
                return Ok(());
            }
            REAL_CLOCK.sleep(PAUSE);
        },
        "closes at once" => return stream.shutdown(std::net::Shutdown::Both),
        "reads, and closes" => {
            _ = stream.read(&mut request)?;
            return stream.shutdown(std::net::Shutdown::Both);
        }
        _ => {
            _ = stream.read(&mut request)?;
            answer(behaviour, stream)?;
        }
    }
    Ok(())
}

fn answer(behaviour: &str, stream: &mut TcpStream) -> io::Result<()> {
    let ok = "HTTP/1.1 200 OK\r\n";
    match behaviour {
        "never answers" => Ok(()),
        "answers a byte at a time" => loop {
            for byte in format!("{ok}X-Padding: x\r\n").into_bytes() {
                stream.write_all(&[byte])?;
                REAL_CLOCK.sleep(PAUSE);
            }
        },
        "answers a gigabyte" => {
            write!(stream, "{ok}Content-Length: 1000000000\r\n\r\n")?;
            flood(stream, "x")
        }
        "answers without an end" => {
            write!(stream, "{ok}\r\n")?;
            flood(stream, "x")
        }
        "answers chunks without an end" => {
            write!(stream, "{ok}Transfer-Encoding: chunked\r\n\r\n")?;
            loop {
                stream.write_all(b"1\r\nx\r\n")?;
                REAL_CLOCK.sleep(PAUSE);
            }
        }
        "answers a head without an end" => {
            write!(stream, "{ok}")?;
            flood(stream, "X-Padding: x\r\n")
        }
        "answers a line without an end" => {
            write!(stream, "{ok}X-Padding: ")?;
            flood(stream, "x")
        }
        "continues without an end" => flood(stream, "HTTP/1.1 100 Continue\r\n\r\n"),
        "redirects" => stream.write_all(
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
        ),
        "answers, and keeps the connection" => write!(stream, "{ok}Content-Length: 0\r\n\r\n"),
        "answers half" => {
            write!(stream, "{ok}Content-Length: 10\r\n\r\nhalf")?;
            stream.shutdown(std::net::Shutdown::Both)
        }
        "speaks TLS" => stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46"),
        "speaks something else" => stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n"),
        other => panic!("there is no behaviour '{other}'"),
    }
}

/// Sends this again and again as long as it is read.
fn flood(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let piece = text.repeat((1 << 14) / text.len());
    loop {
        stream.write_all(piece.as_bytes())?;
    }
}

/// A listening peer. Its threads end with the test's process.
pub struct HostilePeer {
    /// Where it listens.
    pub address: SocketAddr,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl HostilePeer {
    /// Starts a peer that treats each connection like this. It leaves connections open unless the
    /// behaviour closes them.
    ///
    /// # Panics
    /// If no port is free.
    pub fn that(behaviour: &str) -> HostilePeer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let connections: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let peer = HostilePeer { address, connections: Arc::clone(&connections) };
        let behaviour = behaviour.to_owned();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let kept = stream.try_clone().expect("a descriptor is free");
                connections.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
                let behaviour = behaviour.clone();
                thread::spawn(move || behave(&behaviour, &mut stream));
            }
        });
        peer
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
