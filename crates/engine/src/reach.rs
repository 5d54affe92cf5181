//! Checks before any load that a server can be reached: a connect, a TLS handshake, one request.
//!
//! A lane never asks so: what becomes of its connects and requests are outcomes that it counts.
//! This is for whoever has to tell a person.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{Endpoint, Nanos, Outcome, Request, SystemClock};
use rustix::io::Errno;
use rustix::net::{SocketFlags, connect, sockopt};
use thiserror::Error;

use crate::drive::drive;
use crate::load_spec::LoadSpec;
use crate::progress::RunProgress;
use crate::transport::{ConnectAddress, Transport, own_address, stream};

/// A connected socket that blocks, for whoever asks before the start. The connect, each send and
/// each receive may take `timeout`.
pub(crate) fn connect_blocking(endpoint: &Endpoint, timeout: Duration) -> Result<OwnedFd, Errno> {
    let to = ConnectAddress::new(endpoint, &[])?;
    let fd = stream(to.address.address_family(), SocketFlags::empty())?;
    for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&fd, direction, Some(timeout))?;
    }
    // A process that is stopped and goes on is interrupted (signal(7)): asked again, the kernel
    // waits on.
    loop {
        match connect(&fd, &to.address) {
            Err(Errno::INTR) => {}
            Err(Errno::ALREADY) => return Err(Errno::TIMEDOUT),
            connected => return connected.map(|()| fd),
        }
    }
}

/// Why nobody at an endpoint takes a connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreachable {
    /// It answers, and nobody listens.
    #[error("refuses connections")]
    Refused,
    /// There is no way to it.
    #[error("has no route to it")]
    NoRoute,
    /// It answers nothing at all: it is down, or a firewall drops what is sent to it.
    #[error("does not answer within {} s (it is down, or a firewall drops packets)", .0.as_secs())]
    Silent(Duration),
}

/// Connects once, waits for `timeout` at the most, and closes at once what succeeds. What fails
/// otherwise (a Unix socket that this user may not open or whose accept queue is full, say) is not
/// unreachable: the run will tell. A lane never does this: what becomes of its connects are
/// outcomes that it counts.
///
/// # Errors
/// Where nobody takes the connection.
pub fn reach(endpoint: &Endpoint, timeout: Duration) -> Result<(), Unreachable> {
    match connect_blocking(endpoint, timeout) {
        // Where nobody listens at a port that the kernel deals out, it may deal out that very port
        // to this connect, and the connection leads to itself (RFC 9293, 3.5, simultaneous open).
        Ok(fd) if own_address(&fd).is_some_and(|ours| *endpoint == Endpoint::Tcp(ours)) => {
            Err(Unreachable::Refused)
        }
        Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => Err(Unreachable::Refused),
        Err(Errno::ADDRNOTAVAIL | Errno::NETUNREACH | Errno::HOSTUNREACH) => {
            Err(Unreachable::NoRoute)
        }
        // The second is what the kernel says where our own time was over (socket(7), SO_SNDTIMEO).
        Err(Errno::TIMEDOUT | Errno::INPROGRESS) => Err(Unreachable::Silent(timeout)),
        _ => Ok(()),
    }
}

/// Renders a request without a body, with these header lines, `name: value`, beside those that
/// every request has.
///
/// `host` goes into the Host header, which HTTP/1.1 demands (RFC 9112 section 3.2) and newer Pumas
/// insist on.
pub fn render(
    method: &str,
    host: &str,
    path: &str,
    headers: &[String],
    keep_alive: bool,
) -> Request {
    let version = env!("CARGO_PKG_VERSION");
    let more: String = headers.iter().flat_map(|line| [line, "\r\n"]).collect();
    let close = if keep_alive { "" } else { "connection: close\r\n" };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: longtail/{version}\r\naccept: */*\r\n{more}{close}\r\n"
    );
    Request { bytes: text.into_bytes().into(), is_head: method == "HEAD" }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedResponse {
    /// Status code.
    pub status: u16,
    /// The worker that answered, where it names itself.
    pub worker: Option<String>,
    /// Bytes of the response, head included.
    pub bytes: u64,
    /// Bytes of its content.
    pub body_bytes: u64,
    /// From the first byte sent to the last byte back.
    pub took: Nanos,
}

/// Sends `request` on a new connection, waits for the response, `timeout` at the most or until
/// `interrupt` is set, and closes the connection.
///
/// # Errors
/// Where no whole, well-formed response came in time: why, in some words.
pub fn fetch(
    transport: &Transport,
    request: &Request,
    worker_header: &str,
    timeout: Nanos,
    clock: &SystemClock,
    interrupt: &AtomicBool,
) -> Result<FetchedResponse, String> {
    let spec = LoadSpec {
        requests_total: Some(1),
        keep_alive: false,
        timeout,
        worker_header: worker_header.to_owned(),
        ..LoadSpec::closed(transport.clone(), request.clone(), 1)
    };
    let done = drive(&spec, clock, interrupt, &RunProgress::new(1), None)
        .map_err(|error| error.to_string())?;
    let tally = done.outcome.tally;
    if let Some((reason, _)) = tally.bad_responses.iter().next() {
        return Err(format!("bad response: {reason}"));
    }
    let outcome = tally.counts.iter().next().map_or(Outcome::InFlight, |(outcome, _)| outcome);
    match outcome {
        Outcome::Answered(status) => Ok(FetchedResponse {
            status,
            worker: tally.per_worker.keys().next().cloned(),
            bytes: tally.received_bytes,
            body_bytes: tally.body_bytes,
            took: tally.service_time.max().unwrap_or_default(),
        }),
        other => Err(model::counts::name(other).replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, socket_with};
    use std::net::TcpListener;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    const TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn an_address_refuses_as_long_as_nobody_listens() {
        let path = std::env::temp_dir().join(format!("refuses-{}.sock", std::process::id()));
        let name = format!("refuses-{}", std::process::id()).into_bytes();
        let tcp = TcpListener::bind("127.0.0.9:0").unwrap();
        let (unix, there) =
            (Endpoint::Unix(path.clone()), Endpoint::Tcp(tcp.local_addr().unwrap()));
        let by_name = Endpoint::Abstract(name.clone());
        let refused = Err(Unreachable::Refused);
        assert_eq!(
            [&unix, &by_name].map(|endpoint| reach(endpoint, TIMEOUT)),
            [refused.clone(), refused.clone()]
        );
        let listeners = (
            tcp,
            UnixListener::bind(&path).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap(),
        );
        for endpoint in [&there, &unix, &by_name] {
            assert_eq!(reach(endpoint, TIMEOUT), Ok(()));
        }
        drop(listeners);
        // The file is left.
        for endpoint in [&there, &unix, &by_name, &Endpoint::Unix("/dev/null/x".into())] {
            assert_eq!(reach(endpoint, TIMEOUT), refused);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_accept_queue_does_not_refuse() {
        let name = format!("refuses-full-{}", std::process::id()).into_bytes();
        let address = SocketAddrUnix::new_abstract_name(&name).unwrap();
        let stream = || {
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .unwrap()
        };
        let listener = stream();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting = stream();
        connect(&waiting, &address).unwrap();
        assert_eq!(connect(stream(), &address), Err(Errno::AGAIN), "the queue is full");
        assert_eq!(reach(&Endpoint::Abstract(name), TIMEOUT), Ok(()));
    }

    #[test]
    fn close_is_said_and_headers_of_ones_own_stand_before_the_end() {
        let text = |headers: &[String], keep_alive| {
            String::from_utf8(render("GET", "h:1", "/x", headers, keep_alive).bytes.to_vec())
                .unwrap()
        };
        let kept = text(&[], true);
        assert!(
            kept.starts_with("GET /x HTTP/1.1\r\nhost: h:1\r\n") && !kept.contains("connection"),
            "{kept}"
        );
        let closed = text(&["body-conf: s10".to_owned()], false);
        assert!(
            closed.ends_with("accept: */*\r\nbody-conf: s10\r\nconnection: close\r\n\r\n"),
            "{closed}"
        );
    }
}
