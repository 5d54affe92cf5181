//! What the network does to a run.

use std::time::Duration;

use model::{Clock as _, Nanos, Verdict};
use sink::{DelayLaw, Sink, SinkBody, SinkSettings};
use testkit::network::Way;

use super::{Caused, Cells, Row, Seen, four_slots_served, row, wants};
use crate::clock::REAL_CLOCK;
use crate::far::{FORWARDER, Machines};
use crate::lab::{Lab, Running, free_port};
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("a long way", "20 ms each way, a server that answers at once, 4 connections", NETWORK, || {
            loaded(LONG, Nanos::ZERO, "-c 4 --for 2s")
        }),
        row("a long way, a connection for each request", "the same with -k", NETWORK, || {
            loaded(LONG, Nanos::ZERO, "-k -c 4 --for 2s")
        })
        .soaked(),
        row(
            "a long way, and a load that is kept",
            "the same wire, 40 requests a second",
            Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), ..Cells::default() },
            || loaded(LONG, Nanos::ZERO, "--rate 40/s --for 2s"),
        ),
        row(
            "a long way, and a server that takes longer",
            "the same wire, 200 ms a request, 4 connections",
            SERVER,
            || loaded(LONG, Nanos::from_millis(200), "-c 4 --for 3s"),
        )
        .soaked(),
        row("a network that loses packets", "1 packet in 20 each way, 6 connections", NETWORK, || {
            loaded(Way { loses_every: 20, ..SHORT }, Nanos::ZERO, "-c 6 --for 3s")
        })
        .proves(|seen| {
            sent_again(seen);
            assert!(seen.printed.contains("had a retransmission"), "{}", seen.printed);
        }),
        row("a link that is cut", "for a second of 4, 4 connections", NETWORK, cut).proves(|seen| {
            sent_again(seen);
            let longest = seen.load_study().run.tally.response_time.max();
            assert!(longest >= Some(Nanos::from_millis(500)), "{longest:?}");
        }),
        row("another machine refuses", "a port without a listener behind a wire", MISUSE, || {
            unreachable(&format!("http://10.77.0.2:{}/", free_port()))
        }),
        row("no route", "a network that this machine's table calls unreachable", MISUSE, || {
            unreachable("http://10.78.0.1/")
        })
        .soaked(),
        row("nobody answers", "an address behind a wire that nobody has", MISUSE, || unreachable("http://10.77.0.9/")),
        row("a name that nobody knows", "a name that no file has, and no name server", MISUSE, || {
            unreachable("http://nowhere.test/")
        })
        .soaked(),
        row("an address that is not allowed", "LONGTAIL_ALLOW_NET without its network", MISUSE, || {
            Ok(Seen::exit(&load(&Lab::new(), "-n 1 -c 1 http://203.0.113.7/")))
        }),
        row(
            "a proxy that passes connections on",
            "a process called docker-proxy before four slots of 100 ms, 8 connections",
            SERVER,
            forwarded,
        )
        .soaked(),
    ]
}

const LONG: Way = Way { delay: Duration::from_millis(20), loses_every: 0 };
const SHORT: Way = Way { delay: Duration::from_millis(1), loses_every: 0 };

const NETWORK: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::NetworkBound), limit: Some("network"), discipline: None };

const SERVER: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

const MISUSE: Cells = Cells { exit: Some(2), verdict: None, limit: None, discipline: None };

/// What was lost was sent again, and made the response that waited for it slow.
fn sent_again(seen: &Seen) {
    let network = &seen.load_study().run.tally.network;
    let slow = network.slow_with_retransmission.count;
    assert!(network.retransmitted > 0 && slow > 0 && network.slow >= slow, "{network:?}");
}

/// What is seen over a wire, behind which is a server that takes so long for a request.
fn over(way: Way, held: Nanos, see: impl FnOnce(&Machines, Sink) -> Seen) -> Caused {
    let Some(machines) = Machines::joined(way, way) else {
        return Err("no network namespace can be made here".to_owned());
    };
    let delay = DelayLaw::from(held);
    let (sink, _) = machines.sink("10.77.0.2:0", SinkSettings { body: SinkBody::Ok, delay, ..SinkSettings::default() });
    Ok(see(&machines, sink))
}

fn loaded(way: Way, held: Nanos, words: &str) -> Caused {
    over(way, held, |machines, sink| {
        let ended = machines.load(&format!("{words} http://{}/", sink.address()));
        Seen::load(&ended, &study(&machines.lab))
    })
}

fn cut() -> Caused {
    over(SHORT, Nanos::ZERO, |machines, sink| {
        let words = format!("load --no-calibrate -c 4 --for 4s http://{}/", sink.address());
        let mut running = Running::start(&mut machines.command(&words));
        running.until(|_| sink.ledger().requests >= 10);
        machines.wire.cut(true);
        REAL_CLOCK.sleep(Nanos::from_secs(1));
        machines.wire.cut(false);
        let ended = running.end();
        Seen::load(&ended, &study(&machines.lab))
    })
}

fn unreachable(url: &str) -> Caused {
    over(Way::default(), Nanos::ZERO, |machines, _sink| {
        machines.here.ip("route add unreachable 10.78.0.0/24");
        Seen::exit(&machines.load(&format!("-n 1 -c 1 {url}")))
    })
}

fn forwarded() -> Caused {
    wants("python3")?;
    let (lab, port) = (Lab::new(), free_port());
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let script = lab.write("forwarder.py", FORWARDER);
    let to = server.port.to_string();
    let mut forwarder = Running::start(lab.program("python3").arg(script).arg(port.to_string()).arg(to));
    forwarder.until(|said| said.contains("ready"));
    let ended = load(&lab, &format!("-c 8 --for 2s http://127.0.0.1:{port}/"));
    Ok(Seen::load(&ended, &study(&lab)))
}
