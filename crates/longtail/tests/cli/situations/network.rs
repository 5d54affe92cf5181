//! What the network does to a run.

use std::time::Duration;

use model::{Clock as _, Nanos, Verdict};
use sink::{DelayLaw, Sink, SinkBody, SinkSettings};
use testkit::network::Way;

use super::{Caused, Cells, Row, Seen, four_slots_served};
use crate::clock::SteadyClock;
use crate::far::{FORWARDER, Machines};
use crate::lab::{Lab, Running, free_port, has};
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "a long way",
            how: "20 ms each way, a server that answers at once, 4 connections",
            expected: NETWORK,
            cause: || loaded(LONG, Nanos::ZERO, "-c 4 --for 2s"),
        },
        Row {
            name: "a long way, a connection for each request",
            how: "the same with -k",
            expected: NETWORK,
            cause: || loaded(LONG, Nanos::ZERO, "-k -c 4 --for 2s"),
        },
        Row {
            name: "a long way, and a load that is kept",
            how: "the same wire, 40 requests a second",
            expected: Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), ..Cells::default() },
            cause: || loaded(LONG, Nanos::ZERO, "--rate 40/s --for 2s"),
        },
        Row {
            name: "a long way, and a server that takes longer",
            how: "the same wire, 200 ms a request, 4 connections",
            expected: SERVER,
            cause: || loaded(LONG, Nanos::from_millis(200), "-c 4 --for 3s"),
        },
        Row {
            name: "a network that loses packets",
            how: "1 packet in 20 each way, 6 connections",
            expected: NETWORK,
            cause: || loaded(Way { loses_every: 20, ..SHORT }, Nanos::ZERO, "-c 6 --for 3s"),
        },
        Row { name: "a link that is cut", how: "for a second of 4, 4 connections", expected: NETWORK, cause: cut },
        Row {
            name: "another machine refuses",
            how: "a port without a listener behind a wire",
            expected: MISUSE,
            cause: || unreachable(&format!("http://10.77.0.2:{}/", free_port())),
        },
        Row {
            name: "no route",
            how: "a network that this machine's table calls unreachable",
            expected: MISUSE,
            cause: || unreachable("http://10.78.0.1/"),
        },
        Row {
            name: "nobody answers",
            how: "an address behind a wire that nobody has",
            expected: MISUSE,
            cause: || unreachable("http://10.77.0.9/"),
        },
        Row {
            name: "a name that nobody knows",
            how: "a name that no file has, and no name server",
            expected: MISUSE,
            cause: || unreachable("http://nowhere.test/"),
        },
        Row {
            name: "an address that is not allowed",
            how: "LONGTAIL_ALLOW_NET without its network",
            expected: MISUSE,
            cause: || Caused::Seen(Seen::exit(&load(&Lab::new(), "-n 1 -c 1 http://203.0.113.7/"))),
        },
        Row {
            name: "a proxy that passes connections on",
            how: "a process called docker-proxy before four slots of 100 ms, 8 connections",
            expected: SERVER,
            cause: forwarded,
        },
    ]
}

const LONG: Way = Way { delay: Duration::from_millis(20), loses_every: 0 };
const SHORT: Way = Way { delay: Duration::from_millis(1), loses_every: 0 };

const NETWORK: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::NetworkBound), limit: Some("network"), discipline: None };

const SERVER: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

const MISUSE: Cells = Cells { exit: Some(2), verdict: None, limit: None, discipline: None };

/// A wire, and behind it a server that takes so long for a request.
fn behind(way: Way, held: Nanos) -> Result<(Machines, Sink), Caused> {
    let none = || Caused::Skipped("no network namespace can be made here".to_owned());
    let machines = Machines::joined(way, way).ok_or_else(none)?;
    let delay = DelayLaw::from(held);
    let (sink, _) = machines.sink("10.77.0.2:0", SinkSettings { body: SinkBody::Ok, delay, ..SinkSettings::default() });
    Ok((machines, sink))
}

fn loaded(way: Way, held: Nanos, words: &str) -> Caused {
    let (machines, sink) = match behind(way, held) {
        Ok(made) => made,
        Err(skipped) => return skipped,
    };
    let ended = machines.load(&format!("{words} http://{}/", sink.address()));
    Caused::Seen(Seen::load(&ended, &study(&machines.lab)))
}

fn cut() -> Caused {
    let (machines, sink) = match behind(SHORT, Nanos::ZERO) {
        Ok(made) => made,
        Err(skipped) => return skipped,
    };
    let words = format!("load --no-calibrate -c 4 --for 4s http://{}/", sink.address());
    let mut running = Running::start(&mut machines.command(&words));
    running.until(|_| sink.ledger().requests >= 10);
    machines.wire.cut(true);
    SteadyClock.sleep(Nanos::from_secs(1));
    machines.wire.cut(false);
    let ended = running.end();
    Caused::Seen(Seen::load(&ended, &study(&machines.lab)))
}

fn unreachable(url: &str) -> Caused {
    let (machines, _sink) = match behind(Way::default(), Nanos::ZERO) {
        Ok(made) => made,
        Err(skipped) => return skipped,
    };
    machines.here.ip("route add unreachable 10.78.0.0/24");
    Caused::Seen(Seen::exit(&machines.load(&format!("-n 1 -c 1 {url}"))))
}

fn forwarded() -> Caused {
    if !has("python3") {
        return Caused::Skipped("python3 is not on PATH".to_owned());
    }
    let (lab, port) = (Lab::new(), free_port());
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let script = lab.write("forwarder.py", FORWARDER);
    let to = server.port.to_string();
    let mut forwarder = Running::start(lab.program("python3").arg(script).arg(port.to_string()).arg(to));
    forwarder.until(|said| said.contains("ready"));
    let ended = load(&lab, &format!("-c 8 --for 2s http://127.0.0.1:{port}/"));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
