//! Every stop rule and every pace over every transport: the two ledgers agree on connections, requests and bytes.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{Endpoint, LoadSpec, TlsOptions, TlsSettings, Transport};
use model::{Arrivals, Late, Nanos, Outcome, Pace, Profile, Rate};
use sink::{Listen, Sink};

use crate::{WINDOWS, assert_same_but_for_the_end, assert_sound, driven, interrupted, shape_over, sink_at};

/// The ways to end a load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Number,
    Time,
    Both,
    EachConnection,
    Interruption,
}

const STOPS: [Stop; 5] = [Stop::Number, Stop::Time, Stop::Both, Stop::EachConnection, Stop::Interruption];
const NUMBER: u64 = 61;
const EACH: u64 = 9;
const CONNECTIONS: u32 = 7;

impl Stop {
    /// The shape that ends so, where by time, after such a window.
    fn of(self, shape: LoadSpec, window: Nanos) -> LoadSpec {
        let time = Some(window);
        match self {
            Stop::Number => LoadSpec { requests_total: Some(NUMBER), ..shape },
            Stop::Time => LoadSpec { warm_up: Nanos::from_millis(10), measured: time, ..shape },
            Stop::Both => LoadSpec { requests_total: Some(NUMBER), measured: time, ..shape },
            Stop::EachConnection => LoadSpec { requests_per_connection: Some(EACH), ..shape },
            Stop::Interruption => LoadSpec { measured: Some(Nanos::from_secs(600)), ..shape },
        }
    }
}

fn paces() -> [(Pace, Late); 5] {
    let open = |arrivals, burst| Pace::Open {
        profile: Profile::Flat { rate: Rate::new(3000.0).unwrap() },
        arrivals,
        seed: 7,
        burst,
    };
    [
        (Pace::Closed, Late::Queue),
        (open(Arrivals::Constant, 1), Late::Queue),
        (open(Arrivals::Poisson, 1), Late::Queue),
        (open(Arrivals::Constant, 20), Late::Queue),
        (open(Arrivals::Constant, 20), Late::Skip),
    ]
}

/// Each way against a sink at a place of its own, which `transport` leads to.
fn agree(place: impl Fn() -> Listen, transport: impl Fn(&Sink, &Listen) -> Transport) {
    for (pace, late) in paces() {
        // The requests of each connection are a stop rule of the closed loop.
        for stop in STOPS.into_iter().filter(|stop| *stop != Stop::EachConnection || !pace.is_open()) {
            let agree_for = |window| {
                let place = place();
                let sink = sink_at(place.clone());
                let shape = shape_over(transport(&sink, &place), CONNECTIONS, 3, stop != Stop::Number);
                let shape = stop.of(LoadSpec { pace: pace.clone(), late, ..shape }, window);
                if stop == Stop::Interruption {
                    let done = interrupted(&shape, NUMBER);
                    assert_same_but_for_the_end(&shape, &done, &sink.stop());
                    true
                } else {
                    one_way(stop, &shape, sink) > 0
                }
            };
            assert!(WINDOWS.into_iter().any(agree_for), "{pace:?} {stop:?}: nothing was measured");
        }
    }
}

/// How many requests were measured; both ledgers have agreed on them.
fn one_way(stop: Stop, shape: &LoadSpec, sink: Sink) -> u64 {
    let done = driven(shape);
    assert_sound(shape, &done);
    let (tally, ledger) = (&done.tally, sink.stop());
    match stop {
        Stop::Number => assert_eq!(tally.counts.total(), NUMBER),
        Stop::EachConnection => assert_eq!(tally.counts.total(), EACH * u64::from(CONNECTIONS)),
        // A schedule says how many are due in the window, however busy the machine is.
        _ => assert!(due_in_window(shape).is_none_or(|due| tally.counts.total() == due), "{:?} {stop:?}", shape.pace),
    }
    let skipped = tally.counts.of(Outcome::Skipped) + tally.unmeasured.of(Outcome::Skipped);
    assert!(skipped == 0 || shape.late == Late::Skip);
    let sent = tally.all_requests() - skipped;
    let pace = &shape.pace;
    assert_eq!(tally.counts.good() + tally.unmeasured.good(), sent, "{pace:?} {stop:?}");
    assert_eq!(
        [tally.connections_opened, sent, sent, tally.sent_bytes, tally.received_bytes],
        [ledger.connections, ledger.requests, ledger.answers, ledger.received_bytes, ledger.sent_bytes],
        "connections, requests, answers, bytes there, bytes back: {pace:?} {stop:?}"
    );
    assert_eq!((ledger.abandoned, ledger.bad_requests, ledger.failed_handshakes), (0, 0, 0));
    tally.counts.total()
}

/// How many requests are due in the window; `None` in a closed loop.
fn due_in_window(shape: &LoadSpec) -> Option<u64> {
    let until = shape.warm_up + shape.measured?;
    let due = shape.pace.schedule()?.take_while(|due| *due < until);
    let due = due.filter(|due| *due >= shape.warm_up).count() as u64;
    Some(due.min(shape.requests_total.unwrap_or(u64::MAX)))
}

fn to_tcp(sink: &Sink, _: &Listen) -> Transport {
    Transport::tcp(sink.address())
}

fn to_unix(_: &Sink, place: &Listen) -> Transport {
    let place = place.to_string();
    Transport::plain(vec![Endpoint::unix(OsStr::new(place.strip_prefix("unix://").unwrap())).unwrap()])
}

fn to_tls(sink: &Sink, _: &Listen) -> Transport {
    let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
    Transport { tls: Some(TlsSettings::new(&options).unwrap()), ..Transport::tcp(sink.address()) }
}

/// A name that no other test of this machine has.
fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("longtail-ledger-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn both_ledgers_agree_over_ipv4_however_a_load_is_paced_and_ends() {
    agree(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), to_tcp);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn both_ledgers_agree_over_ipv6_however_a_load_is_paced_and_ends() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return eprintln!("SKIPPED: no IPv6 on this machine");
    }
    agree(|| SocketAddr::from((Ipv6Addr::LOCALHOST, 0)).into(), to_tcp);
}

#[test]
fn both_ledgers_agree_over_a_unix_socket_however_a_load_is_paced_and_ends() {
    let folder = launch::Scratch::new(&std::env::temp_dir()).unwrap();
    agree(|| format!("unix://{}/{}.sock", folder.path().display(), name()).parse().unwrap(), to_unix);
}

#[test]
fn both_ledgers_agree_over_an_abstract_socket_however_a_load_is_paced_and_ends() {
    agree(|| format!("unix://@{}", name()).parse().unwrap(), to_unix);
}

#[test]
fn both_ledgers_agree_over_tls_however_a_load_is_paced_and_ends() {
    agree(|| "tls://127.0.0.1:0".parse().unwrap(), to_tls);
}
