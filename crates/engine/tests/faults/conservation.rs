//! Client's ledger = server's ledger, requests and bytes both ways: every stop rule, every pace, every transport.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use engine::{DriveResult, Endpoint, LoadSpec, RunProgress, TlsOptions, TlsSettings, Transport};
use model::{Arrivals, Late, Nanos, Outcome, Pace, Profile, Rate};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::kit::{ANSWER, PATIENCE, driven, driven_until, pause, shape_over, shown};

// ---- a server that counts ---------------------------------------------------------------------------------------------

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// What a server has seen and said. With TLS, what is inside it.
#[derive(Debug, Default)]
struct Ledger {
    connections: AtomicU64,
    requests: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Ledger {
    fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }

    fn all(&self) -> [u64; 4] {
        [&self.connections, &self.requests, &self.received_bytes, &self.sent_bytes].map(|n| n.load(Ordering::Relaxed))
    }

    /// Serves one connection to its end. The requests have no bodies.
    fn serve(&self, stream: &mut dyn Stream) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let mut matched = 0;
        loop {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            Ledger::add(&self.received_bytes, n);
            for byte in &buffer[..n] {
                matched = if *byte == b"\r\n\r\n"[matched] { matched + 1 } else { usize::from(*byte == b'\r') };
                if matched == 4 {
                    matched = 0;
                    Ledger::add(&self.requests, 1);
                    stream.write_all(ANSWER)?;
                    stream.flush()?;
                    Ledger::add(&self.sent_bytes, ANSWER.len());
                }
            }
        }
    }
}

type Accept = Box<dyn FnMut() -> Box<dyn Stream> + Send>;

struct Counting {
    transport: Transport,
    ledger: Arc<Ledger>,
    stop: Arc<AtomicBool>,
    /// A connection that says stop.
    knock: Box<dyn Fn()>,
    accepting: JoinHandle<()>,
}

impl Counting {
    fn start(transport: Transport, mut accept: Accept, knock: Box<dyn Fn()>) -> Counting {
        let (ledger, stop) = (Arc::new(Ledger::default()), Arc::new(AtomicBool::new(false)));
        let (counting, stopped) = (Arc::clone(&ledger), Arc::clone(&stop));
        let accepting = thread::spawn(move || {
            let mut serving = Vec::new();
            loop {
                let mut stream = accept();
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                Ledger::add(&counting.connections, 1);
                let ledger = Arc::clone(&counting);
                // An error is a client that leaves in the middle.
                serving.push(thread::spawn(move || drop(ledger.serve(&mut *stream))));
            }
            for connection in serving {
                connection.join().unwrap();
            }
        });
        Counting { transport, ledger, stop, knock, accepting }
    }

    fn tcp(listener: TcpListener) -> Counting {
        let address = listener.local_addr().unwrap();
        let accept = move || -> Box<dyn Stream> { Box::new(accepted(&listener)) };
        Counting::start(Transport::tcp(address), Box::new(accept), knock(address))
    }

    fn unix(listener: UnixListener, place: &str) -> Counting {
        let accept = move || -> Box<dyn Stream> {
            let stream = listener.accept().unwrap().0;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Box::new(stream)
        };
        let address = match place.strip_prefix('@') {
            Some(name) => UnixAddress::from_abstract_name(name).unwrap(),
            None => UnixAddress::from_pathname(place).unwrap(),
        };
        let knock = move || drop(UnixStream::connect_addr(&address).unwrap());
        let endpoint = Endpoint::unix(place.as_ref()).unwrap();
        Counting::start(Transport::plain(vec![endpoint]), Box::new(accept), Box::new(knock))
    }

    fn tls() -> Counting {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let accept = move || -> Box<dyn Stream> {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(session, accepted(&listener)))
        };
        let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
        let transport = Transport { tls: Some(TlsSettings::new(&options).unwrap()), ..Transport::tcp(address) };
        Counting::start(transport, Box::new(accept), knock(address))
    }

    /// Stops it, and says what it has counted. Each connection must have ended.
    fn stop(self) -> [u64; 4] {
        self.stop.store(true, Ordering::Release);
        (self.knock)();
        self.accepting.join().unwrap();
        self.ledger.all()
    }
}

fn accepted(listener: &TcpListener) -> TcpStream {
    let stream = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn knock(address: std::net::SocketAddr) -> Box<dyn Fn()> {
    Box::new(move || drop(TcpStream::connect(address).unwrap()))
}

// ---- what is asked of it ----------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Number,
    Time,
    Both,
    EachConnection,
    Interruption,
}

const STOPS: [Stop; 5] = [Stop::Number, Stop::Time, Stop::Both, Stop::EachConnection, Stop::Interruption];
const NUMBER: u64 = 60;

/// The paces, by name, and whether what is late is skipped.
fn paces() -> [(&'static str, Pace, Late); 5] {
    let open = |arrivals, burst| Pace::Open {
        profile: Profile::Flat { rate: Rate::new(2000.0).unwrap() },
        arrivals,
        seed: 7,
        burst,
    };
    [
        ("closed", Pace::Closed, Late::Queue),
        ("constant", open(Arrivals::Constant, 1), Late::Queue),
        ("Poisson", open(Arrivals::Poisson, 1), Late::Queue),
        ("burst", open(Arrivals::Constant, 20), Late::Queue),
        ("skip", open(Arrivals::Constant, 20), Late::Skip),
    ]
}

fn stopped_by(stop: Stop, shape: LoadSpec, window: Nanos) -> LoadSpec {
    let shape = LoadSpec { requests_total: None, ..shape };
    let time = Some(window);
    match stop {
        Stop::Number => LoadSpec { requests_total: Some(NUMBER), ..shape },
        Stop::Time => LoadSpec { warm_up: Nanos::from_millis(10), measured: time, ..shape },
        Stop::Both => LoadSpec { requests_total: Some(NUMBER), measured: time, ..shape },
        Stop::EachConnection => LoadSpec { requests_per_connection: Some(9), ..shape },
        Stop::Interruption => LoadSpec { measured: Some(Nanos::from_secs(600)), ..shape },
    }
}

fn run(stop: Stop, shape: &LoadSpec) -> DriveResult {
    if stop != Stop::Interruption {
        return driven(shape);
    }
    let (interrupt, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(RunProgress::new(shape.lanes)));
    let (flag, seen) = (Arc::clone(&interrupt), Arc::clone(&progress));
    let watch = thread::spawn(move || {
        while seen.ended() < NUMBER {
            pause(1);
        }
        flag.store(true, Ordering::Relaxed);
    });
    let done = driven_until(shape, interrupt, progress);
    watch.join().unwrap();
    assert!(done.interrupted);
    done
}

/// Every stop rule and pace over one transport; with keep-alive, without, and with a reconnect now and then.
fn agrees(start: impl Fn() -> Counting) {
    let connections = [(true, None), (false, None), (true, Some(3))];
    let mut turn = 0;
    for (name, pace, late) in paces() {
        // The requests of each connection are a stop rule of the closed loop.
        for stop in STOPS.into_iter().filter(|stop| *stop != Stop::EachConnection || !pace.is_open()) {
            let (keep_alive, reconnect_after) = connections[turn % connections.len()];
            turn += 1;
            let agree_for = |window| {
                let server = start();
                let base = shape_over(server.transport.clone());
                let shape = LoadSpec {
                    connections: 5,
                    lanes: 3,
                    pace: pace.clone(),
                    late,
                    keep_alive,
                    reconnect_after,
                    ..base
                };
                let shape = stopped_by(stop, shape, window);
                let done = run(stop, &shape);
                let what = format!("{name}, {stop:?}, keep-alive {keep_alive}, {reconnect_after:?}: {}", shown(&done));
                assert_agree(stop, &shape, &done, server.stop(), &what);
                done.tally.counts.total() > 0
            };
            // A busy machine may let nothing of a closed loop become due in a short window.
            let mut windows = [40, 400, 4_000, 40_000].map(Nanos::from_millis).into_iter();
            assert!(windows.any(agree_for), "{name}, {stop:?}: nothing was measured");
        }
    }
}

/// How many requests are due in the window; `None` in a closed loop.
fn due_in_window(shape: &LoadSpec) -> Option<u64> {
    let until = shape.warm_up + shape.measured.unwrap();
    let due = shape.pace.schedule()?.take_while(|due| *due < until);
    Some(due.filter(|due| *due >= shape.warm_up).count() as u64)
}

fn assert_agree(stop: Stop, shape: &LoadSpec, done: &DriveResult, ledger: [u64; 4], what: &str) {
    let (tally, counts) = (&done.tally, &done.tally.counts);
    let [connections, requests, received_bytes, sent_bytes] = ledger;
    let skipped = counts.of(Outcome::Skipped) + tally.unmeasured.of(Outcome::Skipped);
    let sent = tally.all_requests() - skipped;
    assert!(skipped == 0 || shape.late == Late::Skip, "{what}");
    match stop {
        Stop::Number => assert_eq!(counts.total(), NUMBER, "{what}"),
        Stop::EachConnection => assert_eq!(counts.total(), 9 * u64::from(shape.connections), "{what}"),
        Stop::Interruption => assert!(counts.total() > 0, "{what}"),
        // A schedule says how many are due in the window, however busy the machine is.
        Stop::Time | Stop::Both => {
            let most = shape.requests_total.unwrap_or(u64::MAX);
            assert!(counts.total() <= most, "{what}");
            assert!(due_in_window(shape).is_none_or(|due| counts.total() == due.min(most)), "{what}");
        }
    }
    if stop == Stop::Interruption {
        // What was in flight has come as far as it came.
        let in_flight = counts.of(Outcome::InFlight);
        assert_eq!(counts.total(), counts.good() + in_flight + skipped, "{what}");
        assert!((counts.good()..=sent).contains(&requests), "{requests} requests; {what}");
        assert!(received_bytes <= tally.sent_bytes, "{what}");
        assert!(sent_bytes >= tally.received_bytes, "{what}");
        assert!(connections <= tally.connections_opened, "{what}");
        return;
    }
    assert_eq!(counts.good() + tally.unmeasured.good(), sent, "{what}");
    let client = [tally.connections_opened, sent, tally.sent_bytes, tally.received_bytes];
    assert_eq!(client, ledger, "connections, requests, bytes there, bytes back; {what}");
    assert_eq!(tally.closed_by_server, 0, "{what}");
}

#[test]
fn both_ledgers_agree_over_ipv4() {
    agrees(|| Counting::tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()));
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn both_ledgers_agree_over_ipv6() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return eprintln!("skipped: this machine has no ::1");
    }
    agrees(|| Counting::tcp(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap()));
}

/// A number for each server of this process.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn both_ledgers_agree_over_a_unix_socket() {
    agrees(|| {
        let file = std::env::temp_dir().join(format!("longtail-faults-{}-{}.sock", std::process::id(), next()));
        let server = Counting::unix(UnixListener::bind(&file).unwrap(), file.to_str().unwrap());
        let Counting { transport, ledger, stop, knock, accepting } = server;
        let and_remove = move || {
            knock();
            let _ = std::fs::remove_file(&file);
        };
        Counting { transport, ledger, stop, knock: Box::new(and_remove), accepting }
    });
}

#[test]
fn both_ledgers_agree_over_an_abstract_unix_socket() {
    agrees(|| {
        let name = format!("longtail-faults-{}-{}", std::process::id(), next());
        let listener = UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
        Counting::unix(listener, &format!("@{name}"))
    });
}

#[test]
fn both_ledgers_agree_over_tls() {
    agrees(Counting::tls);
}
