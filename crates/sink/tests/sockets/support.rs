//! Helpers of the tests over real sockets: a sink with default settings, and a client that reads
//! real responses. Nothing here asserts a duration; time limits only end a test that would hang.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use model::Nanos;
use rustix::net::sockopt::set_socket_linger;
use sink::{Sink, SinkBody, SinkLedger, SinkSettings, SlotQueue};
use testkit::clock::{REAL_CLOCK, Stepped, eventually};

/// Longer than anything here takes on a noisy machine; only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Default settings, on a free port.
pub(crate) fn anywhere() -> SinkSettings {
    SinkSettings {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        ..SinkSettings::default()
    }
}

/// Slots behind one queue.
pub(crate) fn settings(workers: u32, threads: u32, delay: Nanos) -> SinkSettings {
    SinkSettings {
        queue: SlotQueue::Shared,
        workers,
        threads,
        delay: delay.into(),
        body: SinkBody::Ok,
        worker_header: Some("x-worker".to_owned()),
        ..anywhere()
    }
}

pub(crate) fn start(workers: u32, threads: u32, delay: Nanos) -> Sink {
    Sink::start(settings(workers, threads, delay), REAL_CLOCK).unwrap()
}

/// A sink of one slot, and a client of it.
pub(crate) fn serving() -> (Sink, Client) {
    let sink = start(1, 1, Nanos::ZERO);
    let client = Client::connect(sink.address());
    (sink, client)
}

/// A sink whose time stands still, and its clock.
pub(crate) fn stopped(workers: u32, threads: u32, delay: Nanos) -> (Sink, Stepped) {
    let clock = Stepped::default();
    (Sink::start(settings(workers, threads, delay), clock.clone()).unwrap(), clock)
}

/// A client whose request holds a slot for longer than any test takes; `n` slots are held then.
pub(crate) fn busy(sink: &Sink, n: u64) -> Client {
    let mut client = Client::connect(sink.address());
    client.send("GET /sleep1000000 HTTP/1.1\r\n\r\n");
    ledger_when(sink, |ledger| ledger.busy == n);
    client
}

/// A response as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn worker(&self) -> usize {
        self.field("x-worker").unwrap().parse().unwrap()
    }

    /// The counter in the default body.
    pub(crate) fn counter(&self) -> u32 {
        assert_eq!(&self.body[..28], b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44");
        u32::from_le_bytes(self.body[28..].try_into().unwrap())
    }
}

/// Why there was no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    /// The response ended too early.
    Cut,
    /// The connection was reset.
    Reset,
    /// The connection was closed without a byte.
    Closed,
}

/// Any request.
pub(crate) const REQUEST: &[u8] = b"GET /any/thing HTTP/1.1\r\nHost: sink\r\n\r\n";

/// One connection to the sink.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client::over(stream)
    }

    /// Leaves with a reset.
    pub(crate) fn reset(self) {
        set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Client<S> {
        Client { stream, sent_bytes: 0, received_bytes: 0 }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.sent_bytes += bytes.as_ref().len() as u64;
    }

    /// Fills `bytes`; before the first byte of a response the connection may also be at its end.
    fn fill(&mut self, bytes: &mut [u8], is_first: bool) -> Result<(), Failure> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => {
                    return Err(if is_first && filled == 0 {
                        Failure::Closed
                    } else {
                        Failure::Cut
                    });
                }
                Ok(read) => {
                    filled += read;
                    self.received_bytes += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(Failure::Reset);
                }
                // A TLS end that was not announced.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(Failure::Cut),
                // The tests were stopped and continued.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
        Ok(())
    }

    /// Reads one response; to HEAD without its body.
    pub(crate) fn try_receive(&mut self, head_request: bool) -> Result<Response, Failure> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.fill(&mut byte, head.is_empty())?;
            head.push(byte[0]);
        }
        let text = String::from_utf8(head).unwrap();
        let mut lines = text.trim_end().lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut response = Response { status, fields, body: Vec::new() };
        if status != 100 && !head_request {
            response.body = vec![0; response.field("content-length").unwrap().parse().unwrap()];
            self.fill(&mut response.body, false)?;
        }
        Ok(response)
    }

    pub(crate) fn receive(&mut self) -> Response {
        self.try_receive(false).unwrap()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: sink\r\n\r\n"));
        self.receive()
    }

    /// Sends a request and returns the response, or the failure.
    pub(crate) fn ask(&mut self) -> Result<Response, Failure> {
        self.stream.write_all(REQUEST).map_err(|_| Failure::Closed)?;
        self.try_receive(false)
    }

    /// Whether the server has closed the connection without sending another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

/// Waits until the counts are `settled`, and returns them.
pub(crate) fn ledger_when(sink: &Sink, settled: impl Fn(&SinkLedger) -> bool) -> SinkLedger {
    let seen = || format!("{:?}", sink.ledger());
    eventually(PATIENCE.into(), seen, || Some(sink.ledger()).filter(&settled))
}

/// Checks the invariant of every ledger.
pub(crate) fn assert_conserved(ledger: &SinkLedger) {
    let in_pool = ledger.waiting + ledger.busy;
    assert_eq!(ledger.per_worker.iter().sum::<u64>() + in_pool, ledger.requests, "{ledger:?}");
    assert!(in_pool <= ledger.unfinished(), "{ledger:?}");
    assert_eq!(ledger.arrivals.iter().sum::<u64>(), ledger.requests, "{ledger:?}");
}
