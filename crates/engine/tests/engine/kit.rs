//! A server on threads of its own that treats each connection as a test says, and a load that must
//! end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::{LaneOutcome, LoadSpec, RunProgress, Transport, drive, render};
use model::{Clock as _, Counts, Exchange, Nanos, Outcome, Pace, Rate};
use testkit::clock::REAL_CLOCK;

/// Longer than a noisy machine takes for anything here; only a test that fails waits so long.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The timeout of loads whose requests are answered, closed or refused: none of them may time out
/// because the machine is busy.
pub(crate) const LONG_TIMEOUT: Nanos = Nanos::from_secs(120);
/// Timeouts of a load on a server that never answers: [`timed_out`] takes the shortest that this
/// machine is fast enough for.
const SHORT_TIMEOUTS: [Nanos; 3] =
    [Nanos::from_millis(300), Nanos::from_secs(3), Nanos::from_secs(30)];
/// A whole response that keeps the connection.
pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// Requests of each load.
pub(crate) const REQUESTS: u64 = 6;
pub(crate) const GOOD: Outcome = Outcome::Answered(200);

pub(crate) fn pause(millis: u64) {
    REAL_CLOCK.sleep(Nanos::from_millis(millis));
}

pub(crate) fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        pause(5);
    }
}

// ---- the server ----

/// A listener, a thread that accepts, and a thread a connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: JoinHandle<u64>,
}

impl Server {
    pub(crate) fn start(
        serve: impl Fn(&mut TcpStream, u64) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        Server::on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), serve)
    }

    /// A server on a listener that is there already. `serve` gets each connection and its number.
    pub(crate) fn on(
        listener: TcpListener,
        serve: impl Fn(&mut TcpStream, u64) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = Arc::new(serve);
        let accepting = thread::spawn(move || {
            let mut serving = Vec::new();
            let mut accepted = 0;
            loop {
                let (mut stream, _) = listener.accept().unwrap();
                // The connection that says stop is the last in the queue: all others have been
                // accepted before it.
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
                stream.set_write_timeout(Some(TIME_LIMIT)).unwrap();
                let serve = Arc::clone(&serve);
                let number = accepted;
                serving.push(thread::spawn(move || {
                    if let Err(error) = serve(&mut stream, number) {
                        let waited =
                            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                        assert!(!waited, "connection {number} outlived its load");
                    }
                }));
                accepted += 1;
            }
            for connection in serving {
                connection.join().expect("a connection that ends with its load");
            }
            accepted
        });
        Server { address, stop, accepting }
    }

    /// Stops it: how many connections it has taken. Each must have ended.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Release);
        drop(TcpStream::connect(self.address).unwrap());
        self.accepting.join().expect("no connection panics")
    }
}

/// Reads one request, body included. An error if the client leaves before it is whole.
pub(crate) fn read_request(stream: &mut impl Read) -> io::Result<()> {
    let head = read_head(stream)?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    io::copy(&mut stream.take(length), &mut io::sink()).map(drop)
}

pub(crate) fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8(head).unwrap())
}

/// Reads until the client closes the connection.
pub(crate) fn until_closed(stream: &mut impl Read) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

/// Answers every request with `answer`, until the client leaves.
pub(crate) fn always(stream: &mut (impl Read + Write), answer: &[u8]) -> io::Result<()> {
    loop {
        read_request(stream)?;
        stream.write_all(answer)?;
    }
}

/// Answers one request with `answer` and closes.
pub(crate) fn once(stream: &mut (impl Read + Write), answer: &[u8]) -> io::Result<()> {
    read_request(stream)?;
    stream.write_all(answer)
}

/// Answers one request with `answer` and says nothing more, until the client leaves.
pub(crate) fn once_and_wait(stream: &mut (impl Read + Write), answer: &[u8]) -> io::Result<()> {
    once(stream, answer)?;
    until_closed(stream)
}

// ---- the load ----

/// A closed loop of [`REQUESTS`] requests over two connections of two lanes, with a long timeout.
pub(crate) fn shape(address: SocketAddr) -> LoadSpec {
    LoadSpec::closed(Transport::tcp(address), render("GET", "localhost", "/", &[], true), 2).with(
        |load| {
            load.lanes = 2;
            load.requests_total = Some(REQUESTS);
            load.timeout = LONG_TIMEOUT;
        },
    )
}

/// The same as an open loop, with a connection for each request, so that none waits for a
/// connection: a request that still waits a timeout after the last due time is never sent.
pub(crate) fn open(shape: &LoadSpec) -> LoadSpec {
    shape.clone().with(|load| {
        load.pace = Pace::constant(Rate::new(500.0).unwrap());
        load.connections = REQUESTS as u32;
    })
}

/// Drives a load to its end, and panics if it does not end.
pub(crate) fn driven(shape: &LoadSpec) -> LaneOutcome {
    driven_until(
        shape,
        Arc::new(AtomicBool::new(false)),
        Arc::new(RunProgress::new(shape.load.lanes)),
    )
}

pub(crate) fn driven_until(
    shape: &LoadSpec,
    interrupt: Arc<AtomicBool>,
    progress: Arc<RunProgress>,
) -> LaneOutcome {
    let (sender, receiver) = mpsc::channel();
    let (journal, records) = mpsc::sync_channel(10_000);
    let this = shape.clone();
    thread::spawn(move || {
        // Nobody receives it if the load took longer than the time limit.
        let _ = sender.send(
            drive(&this, &REAL_CLOCK, &interrupt, &progress, Some(&journal)).unwrap().outcome,
        );
    });
    let done =
        receiver.recv_timeout(TIME_LIMIT).expect("a load that ends, and no lane that panics");
    let exchanges: Vec<_> = records.iter().flatten().map(|record| record.exchange).collect();
    assert_sound(shape, &done, &exchanges);
    done
}

/// Every request is in exactly one place: each exchange is a sound one, and counting them gives the
/// tally.
fn assert_sound(shape: &LoadSpec, done: &LaneOutcome, exchanges: &[Exchange]) {
    let tally = &done.tally;
    let mut measured = Counts::default();
    let mut unmeasured = Counts::default();
    for exchange in exchanges {
        assert!(exchange.due <= exchange.sent && exchange.sent <= exchange.ended, "{exchange:?}");
        if tally.measures(exchange.due) { &mut measured } else { &mut unmeasured }
            .record(exchange.outcome);
    }
    assert_eq!((&measured, &unmeasured), (&tally.counts, &tally.unmeasured));
    assert_eq!(tally.all_requests(), exchanges.len() as u64);
    assert_eq!(
        tally.bad_responses.total(),
        tally.counts.of(Outcome::BadResponse),
        "{:?}",
        tally.bad_responses
    );
    assert_eq!(tally.wrong_lengths.is_some(), tally.counts.of(Outcome::WrongLength) > 0);
    // What a server sends to a connection that has no request is received too, and belongs to none.
    let bytes: u64 = exchanges.iter().map(|exchange| u64::from(exchange.received_bytes)).sum();
    assert!(bytes <= tally.received_bytes, "{bytes} of {} bytes", tally.received_bytes);
    assert_eq!(tally.per_connection.len(), shape.load.connections as usize);
    assert_eq!(tally.per_connection.iter().sum::<u64>(), tally.counts.good());
    assert_eq!(tally.response_time.count(), tally.counts.good());
    if done.interrupted_at.is_none()
        && let Some(planned) = shape.load.requests_total
        && shape.measured.is_none()
    {
        assert_eq!(tally.counts.total(), planned, "{}", shown(done));
    }
}

pub(crate) fn kinds(done: &LaneOutcome) -> Vec<Outcome> {
    done.tally.counts.iter().map(|(outcome, _)| outcome).collect()
}

/// The outcomes and their counts, without the nine hundred that did not occur.
pub(crate) fn shown(done: &LaneOutcome) -> String {
    format!("{:?}", done.tally.counts.iter().collect::<Vec<_>>())
}

/// Drives a load on a server that never answers: each request times out. A busy machine may not
/// send all requests within a short timeout; then the load is repeated with a longer one. Returns
/// all loads; in the last, every request timed out.
pub(crate) fn timed_out(shape: &LoadSpec) -> Vec<LaneOutcome> {
    use Outcome::{ConnectTimedOut, InFlight, NotSent, TimedOut};
    let mut all = Vec::new();
    for timeout in SHORT_TIMEOUTS {
        let done = driven(&shape.clone().with(|load| load.timeout = timeout));
        let kinds = kinds(&done);
        let allowed = [TimedOut, ConnectTimedOut, InFlight, NotSent];
        assert!(kinds.iter().all(|kind| allowed.contains(kind)), "{}", shown(&done));
        all.push(done);
        if matches!(kinds[..], [Outcome::TimedOut | Outcome::ConnectTimedOut]) {
            return all;
        }
    }
    panic!("requests were given up unsent: {}", shown(all.last().unwrap()))
}
