//! `kill -9` at any moment leaves nothing behind: no process, socket, BPF program or half-written
//! study; and no folder once the next longtail has started.

use std::collections::BTreeSet;
use std::fs;

use launch::Scratch;
use model::{Clock as _, Nanos};
use rustix::process::Signal;
use sink::SinkBody;
use testkit::clock::{REAL_CLOCK, eventually};

use crate::kernel::loaded;
use crate::lab::{LONGTAIL, Lab, PATIENCE, free_port, has, soaks, sockets};
use crate::load::{sink, url};

/// Starts longtail again and again and kills it at moments spread over the first `most` of its
/// life: 40 times in `make soak`.
fn killed(words: impl Fn(u16) -> String, most: Nanos) {
    killed_times(if soaks() { 40 } else { 5 }, words, most);
}

fn killed_times(times: u64, words: impl Fn(u16) -> String, most: Nanos) {
    for n in 0..times {
        let lab = Lab::new();
        let port = free_port();
        let before = loaded();
        let running = lab.start_at(port, &words(port));
        // Multiples of the golden ratio are spread evenly, however many there are.
        let part = (n as f64 * 0.618_034 + 0.01).fract();
        REAL_CLOCK.sleep(Nanos::from_secs_f64(most.as_secs_f64() * part));
        let pid = running.pid();
        running.send(Signal::KILL);
        drop(running);
        let left = || {
            let unix = fs::read_to_string("/proc/net/unix").unwrap();
            let unix = unix
                .lines()
                .filter(|line| line.contains("@longtail-") && line.contains(&format!("-{pid}-")))
                .count();
            (lab.living(), unix, sockets(port).listening)
        };
        eventually(
            PATIENCE,
            || format!("{n}: {:?}", left()),
            || (left() == (Vec::new(), 0, false)).then_some(()),
        );
        // Other tests may load BPF programs meanwhile, but theirs don't stay for long.
        let grown = || loaded().difference(&before).copied().collect::<BTreeSet<u32>>();
        let first = grown();
        let stays = || first.intersection(&grown()).copied().collect::<BTreeSet<u32>>();
        eventually(
            PATIENCE,
            || format!("{n}: programs {:?}", stays()),
            || stays().is_empty().then_some(()),
        );
        // Removes the folders of longtails that were killed, as the next longtail would.
        drop(Scratch::new(&lab.path("tmp")).unwrap());
        let folders: Vec<_> =
            fs::read_dir(lab.path("tmp")).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(folders.is_empty(), "{n}: {folders:?}");
        for study in
            lab.studies().iter().filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            report::json::read(&fs::read_to_string(study).unwrap()).unwrap();
        }
    }
}

/// How long most of these commands live; longer ones get a multiple of it.
const LIFE: Nanos = Nanos::from_millis(1500);

#[test]
fn kill_9_of_a_sweep_leaves_nothing() {
    let server = if has("puma") { "" } else { "--server builtin" };
    killed(
        |_| format!("sweep {server} -w2 -t2:2 -d0.02 --for 300ms --warm-up 0 --multiples 1,2"),
        LIFE * 2,
    );
}

#[test]
fn kill_9_of_a_comparison_leaves_nothing() {
    let server = if has("puma") { "" } else { "--server builtin" };
    killed(
        |_| {
            format!(
                "compare {server} -w2 -t2:2 -d0.02 --for 200ms --warm-up 0 --arm -k --arm -t1:1"
            )
        },
        LIFE * 2,
    );
}

#[test]
fn kill_9_of_a_load_leaves_nothing() {
    let sink = sink(SinkBody::Counter);
    killed(|_| format!("load -c 8 --for 500ms --warm-up 0s {}", url(&sink)), LIFE);
}

/// The command of the event, and what it started, end with longtail.
#[test]
fn kill_9_of_a_load_with_an_event_leaves_nothing() {
    let sink = sink(SinkBody::Counter);
    let words = |_| {
        let event = "'sleep 600 & sleep 600@300ms'";
        format!("load --no-calibrate -c 8 --for 2s --warm-up 0s --during {event} {}", url(&sink))
    };
    killed(words, LIFE);
}

/// A Puma that restarts in full runs its program anew, still under longtail's guard.
#[test]
fn kill_9_of_a_comparison_whose_pumas_restart_leaves_nothing() {
    if has("puma") {
        let words = "compare -w2 -t2:2 -d0.02 --for 3s --warm-up 0 --no-calibrate --no-control \
                     --blocks 1 --during restart@200ms --arm '' --arm '--during stop-start@200ms'";
        killed_times(if soaks() { 40 } else { 2 }, |_| words.to_owned(), LIFE * 4);
    }
}

/// Remote generators end when their input ends.
#[test]
fn kill_9_of_a_load_by_remote_generators_leaves_nothing() {
    let sink = sink(SinkBody::Counter);
    let from = format!("--from {LONGTAIL} ").repeat(2);
    let words =
        |_| format!("load --no-calibrate -c 8 --for 500ms --warm-up 0s {from}{}", url(&sink));
    killed_times(if soaks() { 100 } else { 5 }, words, LIFE);
}

#[test]
fn kill_9_of_a_load_by_wrk_leaves_nothing() {
    if has("wrk") {
        let sink = sink(SinkBody::Counter);
        killed(|_| format!("load --generator wrk -c 8 --for 1s --warm-up 1s {}", url(&sink)), LIFE);
    }
}

#[test]
fn kill_9_of_a_calibration_leaves_nothing() {
    killed(|_| "calibrate --tools longtail,wrk,hey --for 1s --rounds 1".to_owned(), LIFE * 2);
}

#[test]
fn kill_9_of_bodies_leaves_nothing() {
    let server = if has("puma") { "" } else { "--server builtin" };
    killed(|_| format!("bodies {server} -w2 -t2:2 -b s1,10 -D 0.5 --warm-up 0.05"), LIFE * 2);
}
