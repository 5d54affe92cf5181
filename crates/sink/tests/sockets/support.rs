//! What the tests over real sockets share: a clock, a sink with usual settings, and a client that reads what a server
//! really says. Nothing here asserts a duration; time limits only end a test that would hang.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use model::{Clock, Nanos};
use sink::{Sink, SinkBody, SinkLedger, SinkSettings, SlotQueue};

/// Longer than a noisy machine takes for anything here; only a test that fails waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealClock(Instant);

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "real sockets need the real clock")]
    pub(crate) fn start() -> RealClock {
        RealClock(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }

    #[expect(clippy::disallowed_methods, reason = "real sockets need the real clock")]
    fn sleep(&self, duration: Nanos) {
        std::thread::sleep(duration.into());
    }

    fn wall(&self) -> Nanos {
        unreachable!("the sink has no use for the wall clock")
    }
}

/// The load sink, at a free port.
pub(crate) fn anywhere() -> SinkSettings {
    SinkSettings { listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()], ..SinkSettings::default() }
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
    Sink::start(settings(workers, threads, delay), RealClock::start()).unwrap()
}

/// A response as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
    /// Of head and body.
    pub(crate) bytes: u64,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn worker(&self) -> usize {
        self.field("x-worker").unwrap().parse().unwrap()
    }
}

/// One connection to the sink.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, sent_bytes: 0, received_bytes: 0 }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.sent_bytes += bytes.as_ref().len() as u64;
    }

    /// Reads one response; to HEAD without its body.
    pub(crate) fn receive_for(&mut self, head_request: bool) -> Response {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let text = String::from_utf8(head).unwrap();
        let mut lines = text.trim_end().lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut response = Response { status, fields, body: String::new(), bytes: text.len() as u64 };
        if status != 100 && !head_request {
            let mut body = vec![0; response.field("content-length").unwrap().parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
            response.bytes += body.len() as u64;
            response.body = String::from_utf8(body).unwrap();
        }
        self.received_bytes += response.bytes;
        response
    }

    pub(crate) fn receive(&mut self) -> Response {
        self.receive_for(false)
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: sink\r\n\r\n"));
        self.receive()
    }

    /// Whether the server has closed, and without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

/// The counts, when `settled` says that they are those the test waits for; a test that waits for ever fails.
pub(crate) fn ledger_when(sink: &Sink, settled: impl Fn(&SinkLedger) -> bool) -> SinkLedger {
    let clock = RealClock::start();
    loop {
        let ledger = sink.ledger();
        if settled(&ledger) {
            return ledger;
        }
        assert!(clock.now() < PATIENCE.into(), "it does not settle: {ledger:?}");
        clock.sleep(Nanos::from_millis(1));
    }
}

/// The law of every ledger.
pub(crate) fn assert_conserved(ledger: &SinkLedger) {
    let in_pool = ledger.waiting + ledger.busy;
    assert_eq!(ledger.per_worker.iter().sum::<u64>() + in_pool, ledger.requests, "{ledger:?}");
    assert!(in_pool <= ledger.unfinished(), "{ledger:?}");
    assert_eq!(ledger.arrivals.counts.iter().sum::<u64>(), ledger.requests, "{ledger:?}");
    assert_eq!(ledger.per_thread.iter().map(|thread| thread.requests).sum::<u64>(), ledger.requests, "{ledger:?}");
}
