//! The generator is the limit, or was kept from its work.

use launch::affinity;
use model::Clock as _;
use model::{Nanos, Verdict};
use rustix::process::Signal;
use sink::{Sink, SinkBody, SinkSettings};

use super::limits::{Quota, cpus, four_slots};
use super::{Caused, Cells, Row, Seen, served};
use crate::clock::{SteadyClock, eventually};
use crate::far::{host, on};
use crate::gates::BusyLoop;
use crate::lab::{LONGTAIL, Lab, PATIENCE, Running, THIS_MACHINE, has};
use crate::load::{study, url};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "a generator that stands still, open loop",
            how: "SIGSTOP for a second of 8 s at 100 requests a second",
            expected: GENERATOR,
            cause: || stopped("--rate 100/s -c 300 --for 8s", Nanos::from_secs(1)),
        },
        Row {
            name: "a generator that stands still, closed loop",
            how: "SIGSTOP for 1.5 s of 5 s with four connections",
            expected: GENERATOR,
            cause: || stopped("-c 4 --for 5s", Nanos::from_millis(1_500)),
        },
        Row {
            name: "a generator that stands still, and an objective",
            how: "the same, --fail-if 'p50 > 100s'",
            expected: Cells { exit: Some(1), ..GENERATOR },
            cause: || stopped("-c 4 --for 5s --fail-if p50>100s", Nanos::from_millis(1_500)),
        },
        Row {
            name: "a generator that shares its processor",
            how: "taskset to one CPU with four busy loops, 64 connections to a server on another",
            expected: GENERATOR,
            cause: on_a_busy_processor,
        },
        Row {
            name: "a generator without ports",
            how: "a network namespace with ten ports, 20 connections",
            expected: GENERATOR,
            cause: without_ports,
        },
        Row {
            name: "a generator under a quota",
            how: "a control group with a tenth of a CPU, 5000 requests a second",
            expected: GENERATOR,
            cause: under_a_quota,
        },
    ]
}

const GENERATOR: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::GeneratorBound), limit: Some("generator"), discipline: None };

/// A load on four slots of 20 ms whose generator is stopped for so long.
fn stopped(words: &str, time: Nanos) -> Caused {
    let (lab, sink) = (Lab::new(), four_slots(Nanos::from_millis(20)));
    let running = Running::start(&mut lab.longtail(&format!("load --no-calibrate {words} {}", url(&sink))));
    eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
    running.send(Signal::STOP);
    SteadyClock.sleep(time);
    running.send(Signal::CONT);
    let ended = running.end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

fn on_a_busy_processor() -> Caused {
    let ours = affinity::ours().expect("Linux tells");
    let Some(first) = ours.iter().next().filter(|_| cpus() > 1 && has("taskset")) else {
        return Caused::Skipped("one CPU, or no taskset".to_owned());
    };
    let lab = Lab::new();
    let server = served(&lab, "");
    let _busy: Vec<BusyLoop> = (0..4).map(|_| BusyLoop::on(first)).collect();
    let mut command = lab.program("taskset");
    command.args(["-c", &first.to_string(), LONGTAIL]);
    command.args(["load", "--no-calibrate", "-c", "64", "--for", "2s", &server.url]);
    let ended = Running::start(&mut command).end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

fn without_ports() -> Caused {
    let Some(host) = host(&[]) else {
        return Caused::Skipped("no network namespace can be made here".to_owned());
    };
    let lab = Lab::new();
    let range = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    Running::start(host.command("sh", &lab.path("")).args(["-c", range])).end().with_code(0);
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let settings = SinkSettings { listen, body: SinkBody::Ok, ..SinkSettings::default() };
    let sink = host.enter(|| Sink::start(settings, SteadyClock).unwrap());
    let words = format!("load --no-calibrate -c 20 --for 1s {}", url(&sink));
    let ended = Running::start(on(&lab, &host, THIS_MACHINE).args(words.split(' '))).end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

fn under_a_quota() -> Caused {
    let Some(quota) = Quota::of(10) else {
        return Caused::Skipped("no control group with a quota can be made here".to_owned());
    };
    let lab = Lab::new();
    let server = served(&lab, "");
    let script =
        format!("{} && exec {LONGTAIL} load --no-calibrate --rate 5000/s --for 2s {}", quota.enter(), server.url);
    let ended = Running::start(lab.program("sh").args(["-c", &script])).end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
