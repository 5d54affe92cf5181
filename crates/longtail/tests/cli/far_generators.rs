//! Generators on other machines: processes of this one behind a pipe, in another network namespace, or with another clock.

use std::time::Duration;

use model::{Diagnostic, LoadStudy, Nanos, Outcome, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use sink::{SinkBody, SinkSettings};
use testkit::clock::eventually;
use testkit::network::Way;

use crate::far::Machines;
use crate::lab::{LONGTAIL, Lab, PATIENCE, Running, can, end, has, soaks};
use crate::load::{assert_answered, assert_conserved, load, read, sink, study, url};

/// So many generators by this command.
fn from(command: &str, generators: usize) -> String {
    format!(" --from '{command}'").repeat(generators)
}

fn requests(study: &LoadStudy) -> Vec<u64> {
    study.run.generator.far.iter().map(|one| one.requests).collect()
}

#[test]
fn several_generators_make_the_load_of_one() {
    for (words, each) in [
        ("--rate 300/s -n 90 -c 9 --arrivals poisson", Some(vec![30, 30, 30])),
        ("-n 91 -c 7", None),
        // Two of them have a connection, and the third has none.
        ("-n 10 -c 2", None),
    ] {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let ended = load(&lab, &format!("{}{words} {}", from(LONGTAIL, 3) + " ", url(&sink)));
        let study = study(&lab);
        assert_conserved(&study);
        assert_answered(&study, sink);
        let sum: u64 = requests(&study).iter().sum();
        assert_eq!(sum, study.run.tally.counts.total(), "{words}");
        assert!(each.is_none_or(|each| requests(&study) == each), "{words}: {:?}", requests(&study));
        let codes = study.run.judgement.unwrap().checks;
        assert!(codes.iter().any(|check| matches!(check, Diagnostic::LateStart { .. })));
        assert!(codes.iter().any(|check| matches!(check, Diagnostic::ClockError { .. })));
        assert!(ended.stdout.contains("generators on other machines"), "{}", ended.stdout);
    }
}

/// Single requests come over the pipe as well: the log has each once, and checks see each answer.
#[test]
fn requests_from_elsewhere_are_logged_and_their_answers_checked() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    let words =
        format!("-n 300 -c 6 --log x.csv --check cbor-counter --check length=1{} {}", from(LONGTAIL, 3), url(&sink));
    let ended = load(&lab, &words).with_code(1);
    let study = study(&lab);
    assert_eq!((study.run.tally.counts.good(), study.log_dropped), (300, 0), "{ended:?}");
    assert_eq!(sink.stop().requests, 300);
    let log = std::fs::read_to_string(lab.path("x.csv")).unwrap();
    let header = log.lines().next().unwrap();
    let column = header.split(',').position(|name| name == "request").unwrap_or_else(|| panic!("{header}"));
    let mut numbers: Vec<u64> =
        log.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..300), "each request has a line");
    let checks = &study.checks;
    assert!(!checks[0].starts_with("FAILED") && checks[1].starts_with("FAILED"), "{checks:?}");
}

/// A pipe that carries nothing while the load lasts, though it is small and full.
const STALLED: &str = r#"#!/usr/bin/env python3
import fcntl, os, subprocess, sys, time
generator = subprocess.Popen([os.environ["LONGTAIL"], "generate"], stdout=subprocess.PIPE)
fcntl.fcntl(generator.stdout, 1031, 4096)  # F_SETPIPE_SZ
passed = 0
while data := os.read(generator.stdout.fileno(), 4096):
    os.write(1, data)
    passed += len(data)
    while passed > 6000 and not os.path.exists("sent"): time.sleep(0.01)
"#;

#[test]
fn a_pipe_that_stands_still_does_not_slow_its_generator() {
    if !has("python3") {
        return;
    }
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    lab.executable("slow/longtail", STALLED);
    let words = format!(
        "load --no-calibrate --rate 1000/s -n 3000 -c 8 --log x.csv{} {}",
        from("slow/longtail", 1),
        url(&sink)
    );
    let running = Running::start(lab.longtail(&words).env("LONGTAIL", LONGTAIL));
    // The log of a tenth of a second is more than the pipe holds.
    eventually(
        PATIENCE,
        || "the load waits for the pipe".to_owned(),
        || (sink.ledger().requests == 3000).then_some(()),
    );
    lab.write("sent", "");
    running.end().with_code(0);
    let study = study(&lab);
    assert_conserved(&study);
    assert_answered(&study, sink);
    let lines = std::fs::read_to_string(lab.path("x.csv")).unwrap().lines().count() as u64 - 1;
    assert_eq!(lines + study.log_dropped, 3000);
}

/// The generators that longtail has started in this lab.
fn generators(lab: &Lab) -> Vec<Pid> {
    let is_generator = |pid: &Pid| {
        let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
        words.starts_with(LONGTAIL.as_bytes()) && words.ends_with(b"\0generate\0")
    };
    lab.living().into_iter().filter(is_generator).collect()
}

#[test]
fn a_generator_that_is_killed_is_named_and_the_others_figures_are_kept() {
    for n in 0..if soaks() { 100 } else { 5 } {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let words = format!("load --no-calibrate --rate 200/s --for 1500ms{} {}", from(LONGTAIL, 2), url(&sink));
        let running = lab.start(&words);
        // At another moment each time, but in the middle.
        eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 20 + 37 * n % 180).then_some(()));
        let victim = generators(&lab)[n as usize % 2];
        kill_process(victim, Signal::KILL).unwrap();
        let ended = running.end().with_code(3);
        let study = study(&lab);
        let far = &study.run.generator.far;
        assert_eq!(far.iter().filter(|one| one.lost.is_some()).count(), 1, "{n}: {far:?}");
        assert_eq!(study.run.judgement.as_ref().unwrap().verdict, Verdict::Invalid);
        assert_eq!(study.run.tally.counts.total(), 150, "{n}: the other one's half");
        assert!(ended.stdout.contains("is lost: it ended"), "{n}: {}", ended.stdout);
        eventually(PATIENCE, || format!("{:?}", lab.living()), || lab.living().is_empty().then_some(()));
    }
}

#[test]
fn the_way_to_another_machine_is_in_the_times_and_not_in_its_clock() {
    let way = Way { delay: Duration::from_millis(20), loses_every: 101 };
    let Some(machines) = Machines::joined(way, way) else { return };
    let (sink, at) = machines.sink("10.77.0.2:0", SinkSettings { body: SinkBody::Ok, ..SinkSettings::default() });
    // The conductor's own machine is this one; the generator's is behind the wire.
    let entered = machines.here.command(LONGTAIL, &machines.lab.path(""));
    let words: Vec<String> = std::iter::once(entered.get_program())
        .chain(entered.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let networks = "LONGTAIL_ALLOW_NET=10.77.0.0/24";
    let command = from(&format!("env {networks} {}", words.join(" ")), 2);
    let words = format!("load --no-calibrate -n 200 -c 8{command} http://{at}/");
    let ended = end(&mut machines.there_command(&words));
    let study = study(&machines.lab);
    assert_conserved(&study);
    let tally = &study.run.tally;
    assert_eq!((tally.counts.of(Outcome::Answered(200)), sink.stop().requests), (200, 200), "{ended:?}");
    let round_trip = Nanos::from_millis(40);
    assert!(tally.response_time.min().unwrap() >= round_trip && tally.phases.connect.min >= round_trip);
    // And nowhere else: neither in what the generators did before they sent, nor in the reading.
    let delay = Nanos::from_millis(20);
    assert!(tally.send_lag.quantile(0.5) < Some(delay), "{:?}", tally.send_lag.quantile(0.5));
    for (name, time) in [("write", tally.phases.write), ("read", tally.phases.read)] {
        assert!(time.sum < delay * time.count, "{name}: {time:?}");
    }
    assert!(machines.wire.lost() > 0 && tally.network.retransmitted > 0, "{:?}", tally.network);
    let errors = study.run.generator.far.iter().map(|one| one.clock_error.unwrap());
    assert!(errors.max() < Some(round_trip), "the pipe does not go over the wire: {:?}", study.run.generator.far);
}

/// Starts longtail in a time namespace whose monotonic clock is so many nanoseconds ahead.
const AHEAD: &str = r#"#!/usr/bin/env python3
import ctypes, os, sys
CLONE_NEWTIME, PR_SET_PDEATHSIG, SIGKILL = 0x80, 1, 9
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWTIME): sys.exit(os.strerror(ctypes.get_errno()))
with open("/proc/self/timens_offsets", "w") as offsets: offsets.write(f"monotonic 0 {os.environ['AHEAD']}")
child = os.fork()
if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
os.execv(os.environ["LONGTAIL"], ["longtail", *sys.argv[1:]])
"#;

/// A clock that is 300 ms ahead: that is found, so its requests are due when they would be by the other's.
#[test]
fn a_clock_that_shows_another_time_is_found_and_corrected() {
    if !has("python3") {
        return;
    }
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ahead = lab.executable("ahead/longtail", AHEAD);
    let off = Nanos::from_millis(300);
    let set = [("LONGTAIL", LONGTAIL.to_owned()), ("AHEAD", off.0.to_string())];
    let probe = lab.program(&ahead.to_string_lossy()).arg("--version").envs(set.clone()).output();
    if !can(probe.is_ok_and(|output| output.status.success()), "no time namespace") {
        return;
    }
    let generators = from("ahead/longtail", 1) + &from(LONGTAIL, 1);
    let words = format!("load --no-calibrate --rate 100/s -n 40 -c 4{generators} {}", url(&sink));
    let mut command = lab.longtail(&words);
    command.envs(set);
    end(&mut command);
    let study = study(&lab);
    assert_conserved(&study);
    assert_answered(&study, sink);
    assert_eq!(requests(&study), [20, 20]);
    let far = &study.run.generator.far;
    assert!(far.iter().all(|one| one.clock_error < Some(off)), "{far:?}");
}

#[test]
fn parts_that_generators_wrote_are_one_load() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let start = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    let part = |index: u32| {
        let words = format!("--start-at {start} -o {index}.tally -- --rate 200/s --for 500ms -c 8 {}", url(&sink));
        let words = crate::lab::split(&format!("generate --of 3 {words}"));
        let mut command = lab.program(LONGTAIL);
        Running::start(command.args(words).env("JOB_COMPLETION_INDEX", index.to_string()))
    };
    let running: Vec<Running> = (0..3).map(part).collect();
    for running in running {
        running.end().with_code(0);
    }
    let merge = |files: &str| end(lab.program(LONGTAIL).args(format!("merge {files}").split(' ')));
    merge("0.tally 2.tally 1.tally -o x.study.json");
    let whole = read(&lab.path("x.study.json"));
    assert_conserved(&whole);
    assert_eq!(requests(&whole).iter().sum::<u64>(), 100);
    assert_answered(&whole, sink);
    let missing = merge("0.tally 2.tally").with_code(3);
    assert!(missing.stdout.contains("'part 1' is lost"), "{}", missing.stdout);
    merge("0.tally 0.tally").refused("both part 0");
    lab.write("damaged.tally", "{}");
    merge("0.tally damaged.tally").refused("is no part of a load");
}
