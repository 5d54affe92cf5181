//! The generator is the limit, or was kept from its work.

use launch::affinity;
use model::{Clock as _, Diagnostic, Grade, Nanos, Outcome, Verdict};
use rustix::process::Signal;
use sink::{Sink, SinkBody, SinkSettings};

use super::limits::{Quota, cpus, four_slots};
use super::{Caused, Cells, Row, Seen, row, served};
use crate::clock::{REAL_CLOCK, eventually};
use crate::far::{host, on};
use crate::gates::stop;
use crate::lab::{LONGTAIL, Lab, PATIENCE, Running, THIS_MACHINE, end, has, split};
use crate::load::{study, url};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "a generator that stands still, open loop",
            "SIGSTOP for a second of 4 s at 100 requests a second",
            GENERATOR,
            || stopped("--rate 100/s -c 300 --for 4s", Nanos::from_secs(1)),
        )
        .proves(|seen| {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::GeneratorLag { .. }));
            // None of them was left out, and none was moved: the delay is in the response times. The next was due 10 ms after the stop.
            assert_eq!(seen.load_study().run.tally.counts.total(), 400);
            assert!(seen.load_study().run.tally.response_time.max() > Some(Nanos::from_millis(980)));
        }),
        row(
            "a generator that stands still, closed loop",
            "SIGSTOP for 1.5 s of 4 s with four connections",
            GENERATOR,
            || stopped("-c 4 --for 4s", Nanos::from_millis(1_500)),
        )
        .proves(stood_still),
        row(
            "a generator that stands still, and an objective",
            "the same, --fail-if 'p50 > 100s'",
            Cells { exit: Some(1), ..GENERATOR },
            || stopped("-c 4 --for 4s --fail-if p50>100s", Nanos::from_millis(1_500)),
        )
        .proves(|seen| {
            stood_still(seen);
            // By the generator's figures nobody can tell whether an objective is met, and so it is not known to be.
            assert!(seen.printed.contains("CANNOT TELL fail if p50 > 100s"), "{}", seen.printed);
        }),
        row(
            "a generator that shares its processor",
            "taskset to one CPU with four busy loops, 64 connections to a server on another",
            GENERATOR,
            on_a_busy_processor,
        )
        .alone()
        .proves(|seen| {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::LaneRunQueue { .. }));
        }),
        row(
            "a generator without ports",
            "a network namespace with ten ports, 20 connections",
            GENERATOR,
            without_ports,
        )
        .proves(|seen| {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::Exhausted { .. }));
            let tally = &seen.load_study().run.tally;
            assert!(
                tally.exhausted > 0 && tally.counts.good() > 0 && tally.counts.of(Outcome::NoPort) > 0,
                "{tally:?}"
            );
        }),
        row(
            "a generator under a quota",
            "a control group with a tenth of a CPU, 5000 requests a second",
            GENERATOR,
            under_a_quota,
        )
        .alone()
        .soaked(),
    ]
}

const GENERATOR: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::GeneratorBound), limit: Some("generator"), discipline: None };

fn stood_still(seen: &Seen) {
    seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::Standstill { .. }));
    let longest = seen.load_study().run.generator.lanes.iter().map(|lane| lane.longest_standstill).max();
    // The wait that it was stopped in may have lasted for a tenth of a second by itself.
    assert!(longest > Some(Nanos::from_millis(1_300)), "{longest:?}");
}

/// A load on four slots of 20 ms whose generator is stopped for so long.
fn stopped(words: &str, time: Nanos) -> Caused {
    let (lab, sink) = (Lab::new(), four_slots(Nanos::from_millis(20)));
    let running = lab.start(&format!("load --no-calibrate {words} {}", url(&sink)));
    eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
    stop(&running);
    REAL_CLOCK.sleep(time);
    running.send(Signal::CONT);
    let ended = running.end();
    Ok(Seen::load(&ended, &study(&lab)))
}

fn on_a_busy_processor() -> Caused {
    let ours = affinity::ours().expect("Linux tells");
    let Some(first) = ours.iter().next().filter(|_| cpus() > 1 && has("taskset")) else {
        return Err("one CPU, or no taskset".to_owned());
    };
    let lab = Lab::new();
    let server = served(&lab, "");
    let on_it = |words: &str| {
        let mut command = lab.program("taskset");
        command.args(["-c", &first.to_string()]).args(split(words));
        Running::start(&mut command)
    };
    let _busy: Vec<Running> = (0..4).map(|_| on_it("sh -c 'while :; do :; done'")).collect();
    let ended = on_it(&format!("{LONGTAIL} load --no-calibrate -c 64 --for 2s {}", server.url)).end();
    Ok(Seen::load(&ended, &study(&lab)))
}

fn without_ports() -> Caused {
    let Some(host) = host(&[]) else {
        return Err("no network namespace can be made here".to_owned());
    };
    let lab = Lab::new();
    let range = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    end(host.command("sh", &lab.path("")).args(["-c", range])).with_code(0);
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let settings = SinkSettings { listen, body: SinkBody::Ok, ..SinkSettings::default() };
    let sink = host.enter(|| Sink::start(settings, REAL_CLOCK).unwrap());
    let words = format!("load --no-calibrate -c 20 --for 1s {}", url(&sink));
    let ended = end(on(&lab, &host, THIS_MACHINE).args(words.split(' ')));
    Ok(Seen::load(&ended, &study(&lab)))
}

fn under_a_quota() -> Caused {
    let Some(quota) = Quota::of(10) else {
        return Err("no control group with a quota can be made here".to_owned());
    };
    let lab = Lab::new();
    let server = served(&lab, "");
    let script =
        format!("{} && exec {LONGTAIL} load --no-calibrate --rate 5000/s --for 2s {}", quota.enter(), server.url);
    let ended = end(lab.program("sh").args(["-c", &script]));
    Ok(Seen::load(&ended, &study(&lab)))
}
