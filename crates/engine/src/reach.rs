//! Checks before any load that a server can be reached: a connect, a TLS handshake, one request.
//!
//! Lanes don't use this: they count how connects and requests end. This tells the user before the
//! start.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{Endpoint, LoadSettings, Nanos, Outcome, Request, SystemClock};
use rustix::io::Errno;
use rustix::net::{SocketFlags, connect, sockopt};
use thiserror::Error;

use crate::drive::drive;
use crate::load_spec::LoadSpec;
use crate::progress::RunProgress;
use crate::transport::{ConnectAddress, Transport, own_address, stream};

/// A connected, blocking socket, for checks before the start. The connect, each send and each
/// receive may take `timeout`.
pub(crate) fn connect_blocking(endpoint: &Endpoint, timeout: Duration) -> Result<OwnedFd, Errno> {
    let to = ConnectAddress::new(endpoint, &[])?;
    let fd = stream(to.address.address_family(), SocketFlags::empty())?;
    for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&fd, direction, Some(timeout))?;
    }
    // A process that is stopped and continued gets EINTR (signal(7)): the call is repeated.
    loop {
        match connect(&fd, &to.address) {
            Err(Errno::INTR) => {}
            Err(Errno::ALREADY) => return Err(Errno::TIMEDOUT),
            connected => return connected.map(|()| fd),
        }
    }
}

/// Why an endpoint takes no connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreachable {
    /// The host is there, but nobody listens.
    #[error("refuses connections")]
    Refused,
    /// There is no route to it.
    #[error("has no route to it")]
    NoRoute,
    /// No reply at all: it is down, or a firewall drops the packets.
    #[error("does not answer within {} s (it is down, or a firewall drops packets)", .0.as_secs())]
    Silent(Duration),
}

/// Connects once, for `timeout` at most, and closes the connection at once. Other failures (a Unix
/// socket that this user may not open, or whose accept queue is full, say) do not count as
/// unreachable: the run will tell.
///
/// # Errors
/// If the connection is not accepted.
pub fn reach(endpoint: &Endpoint, timeout: Duration) -> Result<(), Unreachable> {
    match connect_blocking(endpoint, timeout) {
        // If nobody listens at an ephemeral port, the kernel may choose that very port for our end,
        // and the connection leads to itself (RFC 9293, 3.5, simultaneous open).
        Ok(fd) if own_address(&fd).is_some_and(|ours| *endpoint == Endpoint::Tcp(ours)) => {
            Err(Unreachable::Refused)
        }
        Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => Err(Unreachable::Refused),
        Err(Errno::ADDRNOTAVAIL | Errno::NETUNREACH | Errno::HOSTUNREACH) => {
            Err(Unreachable::NoRoute)
        }
        // EINPROGRESS is what the kernel returns when our own timeout was over (socket(7),
        // SO_SNDTIMEO).
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
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: longtail/{version}\r\naccept: \
         */*\r\n{more}{close}\r\n"
    );
    Request::new(text.into_bytes(), method == "HEAD")
}

/// A response, and what it told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedResponse {
    /// Status code.
    pub status: u16,
    /// The worker that answered, where it names itself.
    pub worker: Option<String>,
    /// Bytes of the response, head included.
    pub bytes: u64,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// From the first byte sent to the last byte back.
    pub took: Nanos,
}

/// Sends `request` on a new connection, waits for the response, for `timeout` at most or until
/// `interrupt` is set, and closes the connection.
///
/// # Errors
/// If no whole, well-formed response came in time: why, in some words.
pub fn fetch(
    transport: &Transport,
    request: &Request,
    worker_header: &str,
    timeout: Nanos,
    clock: &SystemClock,
    interrupt: &AtomicBool,
) -> Result<FetchedResponse, String> {
    let load = LoadSettings {
        requests_total: Some(1),
        keep_alive: false,
        timeout,
        ..LoadSettings::closed(1)
    };
    let spec = LoadSpec {
        load,
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
        let unix = Endpoint::Unix(path.clone());
        let there = Endpoint::Tcp(tcp.local_addr().unwrap());
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
    fn a_rendered_request_says_close_and_has_its_own_headers() {
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
