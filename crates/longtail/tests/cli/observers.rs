//! Receivers of metrics and control servers may be slow, broken or hostile: the results are on disk
//! and printed anyway, and longtail ends.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::pipe::pipe;
use rustix::process::Signal;
use sink::SinkBody;
use testkit::clock::eventually;
use testkit::hostile::HostilePeer;

use crate::lab::{Lab, PATIENCE, Running, check_each, free_port, has};
use crate::load::{sink, study, url, word};

/// How many peers are tried at the same time.
const AT_ONCE: usize = 3;

/// Runs `check` for each row of the table: a peer's behaviour, and what longtail says about it as a
/// receiver and as a control server.
fn for_each_peer(check: impl Fn(&str, &str, &str) + Sync) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/observers.txt");
    let table = fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(" | ").map(str::trim).collect())
        .collect();
    check_each(AT_ONCE, &rows, |row| check(row[0], row[1], row.last().unwrap()));
}

/// Checks what a load must leave behind, whatever its observers did.
fn assert_measured(lab: &Lab, requests: u64) {
    assert_eq!(study(lab).run.tally.counts.good(), requests);
}

#[test]
fn a_hostile_otlp_receiver_costs_no_figure_of_a_load() {
    for_each_peer(|behaviour, expected, _| {
        let lab = Lab::new();
        let sink = sink(SinkBody::Ok);
        let peer = HostilePeer::that(behaviour);
        let words = format!(
            "load --no-calibrate -n 20 -c 1 --otlp http://{} -o load.json {}",
            peer.address,
            url(&sink)
        );
        let ended = lab.run(&words).with_code(0);
        assert_measured(&lab, 20);
        assert!(lab.path("load.json").exists() && ended.stdout.contains("total"), "{behaviour}");
        let complaint = ended.stderr.lines().find(|line| line.contains("--otlp"));
        let is_right = match expected {
            "" => complaint.is_none(),
            parts => {
                complaint.is_some_and(|line| parts.split(" || ").any(|part| line.contains(part)))
            }
        };
        assert!(is_right, "{behaviour}: {ended:?}");
    });
}

#[test]
fn a_silent_otlp_receiver_does_not_hold_up_a_sweep() {
    let lab = Lab::new();
    let peer = HostilePeer::that("never answers");
    let words = format!(
        "sweep --server builtin -w1 -t2:2 -d0.005 --for 300ms --warm-up 0s --multiples 1,2,3 --no-calibrate --otlp http://{}",
        peer.address
    );
    let ended = lab.run(&words);
    assert_eq!(lab.study().runs.len(), 3);
    let complaint = "did not confirm the figures of 3 of 3 runs";
    assert!(ended.stderr.contains(complaint), "{ended:?}");
}

/// The results exist while longtail waits for the receiver, and Ctrl-C ends the wait.
#[test]
fn ctrl_c_ends_the_wait_for_a_receiver() {
    let lab = Lab::new();
    let sink = sink(SinkBody::Ok);
    let peer = HostilePeer::that("never answers");
    let words = format!(
        "load --no-calibrate -n 20 -c 1 --otlp http://{} -o load.json {}",
        peer.address,
        url(&sink)
    );
    let mut load = lab.start(&words);
    load.until(|printed| printed.contains("total"));
    assert!(lab.path("load.json").exists());
    assert_measured(&lab, 20);
    load.send(Signal::INT);
    let ended = load.end().with_code(0);
    assert!(ended.stderr.contains("did not confirm the figures of 1 of 1 runs"), "{ended:?}");
}

#[test]
fn a_hostile_control_server_does_not_hold_up_a_watch() {
    let sink = sink(SinkBody::Ok);
    for_each_peer(|behaviour, _, expected| {
        let lab = Lab::new();
        let peer = HostilePeer::that(behaviour);
        let words = format!(
            "watch :{} --control-url tcp://{} --for 1s --json",
            sink.address().port(),
            peer.address
        );
        let ended = lab.run(&words).with_code(0);
        assert!(ended.stdout.contains(expected), "{behaviour}: no '{expected}': {ended:?}");
        assert!(peer.connections() > 0, "{behaviour}");
    });
}

/// The others are 5, then 205 clients that send nothing, send one byte, or never read.
#[test]
fn a_scrape_is_answered_while_others_hang() {
    let lab = Lab::new();
    let sink = sink(SinkBody::Ok);
    let port = free_port();
    let words = format!(
        "load --no-calibrate -c 1 --rate 10/s --for 600s --metrics 127.0.0.1:{port} {}",
        url(&sink)
    );
    let load = lab.start(&words);
    let connect = || TcpStream::connect(("127.0.0.1", port)).ok();
    eventually(PATIENCE, || "no metrics".to_owned(), connect);
    let mut hanging = Vec::new();
    for count in [5, 200] {
        for (n, asks) in ["", "G", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"]
            .iter()
            .cycle()
            .take(count)
            .enumerate()
        {
            let mut stream = connect().unwrap_or_else(|| panic!("client {n} of {count}"));
            stream.write_all(asks.as_bytes()).unwrap();
            hanging.push(stream);
        }
        // If they shared one queue, this would take minutes.
        let mut stream = connect().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut scraped = String::new();
        stream.read_to_string(&mut scraped).unwrap();
        assert!(scraped.contains("longtail_runs_done_total 0\n"), "{count}: {scraped}");
    }
    load.send(Signal::INT);
    load.end().with_code(130);
}

/// A pipe whose reader stops loses lines of the log, but nothing else.
#[test]
fn an_unread_log_holds_up_nothing() {
    let lab = Lab::new();
    let sink = sink(SinkBody::Ok);
    let fifo = lab.path("log");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    // Opening it for reading and writing doesn't block; it is never read.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let _reader = OpenOptions::new().read(true).custom_flags(flags).open(&fifo).unwrap();
    let words = format!("load --no-calibrate -n 4000 -c 2 --log {} {}", word(&fifo), url(&sink));
    let ended = lab.run(&words);
    assert_measured(&lab, 4000);
    assert!(ended.stdout.contains("total"), "{ended:?}");
    assert!(ended.stderr.contains("nobody has read it for 5s after the run"), "{ended:?}");
}

/// The files exist before the report is read, and Ctrl-C ends the wait for its reader.
#[test]
fn an_unread_report_is_on_disk() {
    let lab = Lab::new();
    let sink = sink(SinkBody::Ok);
    let (_reader, writer) = pipe().unwrap();
    let mut full = File::from(writer);
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let words = format!("load --no-calibrate -n 20 -c 1 -o load.json -o load.html {}", url(&sink));
    let mut command = lab.longtail(&words);
    command.stdout(full).stderr(Stdio::piped());
    let mut load = Running::start_as_is(&mut command);
    let is_there = |path: &Path| path.exists().then_some(());
    for file in ["load.json", "load.html"] {
        eventually(PATIENCE, || format!("no {file}"), || is_there(&lab.path(file)));
    }
    assert_measured(&lab, 20);
    // One signal is enough if the report is already being printed.
    let has_ended = || {
        load.send(Signal::INT);
        load.has_ended().then_some(())
    };
    eventually(PATIENCE, || "it is still running".to_owned(), has_ended);
    load.end().with_code(130);
}

/// After Ctrl-S the load is still measured and kept, and shown when the terminal continues.
#[test]
fn a_stopped_terminal_holds_up_nothing() {
    if !has("script") {
        return;
    }
    let lab = Lab::new();
    let sink = sink(SinkBody::Ok);
    let line = format!(
        "{} load --no-calibrate --full --rate 20/s --for 3s {}; echo code $?",
        crate::lab::LONGTAIL,
        url(&sink)
    );
    let mut command = lab.program("script");
    command.args(["-q", "-c", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
    let mut terminal = Running::start(&mut command);
    terminal.until(|printed| printed.contains("load, "));
    terminal.say("\x13");
    let kept = || (!lab.studies().is_empty()).then_some(());
    eventually(PATIENCE, || "no study is kept".to_owned(), kept);
    terminal.say("\x11");
    let printed = terminal.end().with_code(0).stdout;
    assert_measured(&lab, 60);
    assert!(printed.contains("total") && printed.contains("code 0"), "{printed}");
}
