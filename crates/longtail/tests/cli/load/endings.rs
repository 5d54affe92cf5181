//! However a load ends: by the user's will, or because there is nobody to load.

use std::fs;
use std::os::fd::OwnedFd;

use model::{BadResponse, Outcome, Verdict};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};
use rustix::process::Signal;
use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, outcomes, sink, study, url};
use crate::lab::{Ended, Lab, Running};

/// A load in the middle: at least ten answers have come.
fn in_the_middle(lab: &Lab, words: &str, sink: &sink::Sink) -> Running {
    let mut load = lab.start(&format!("load --no-calibrate {words}"));
    load.until(|_| sink.ledger().answers > 10);
    load
}

#[test]
fn a_signal_ends_a_load_and_its_log_is_whole() {
    for (signal, pace) in [(Signal::INT, ""), (Signal::TERM, "--rate 500/s"), (Signal::HUP, "--threads 2")] {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let words = format!("--for 600s -c 4 {pace} --log log.csv {}sleep0.01", url(&sink));
        let running = in_the_middle(&lab, &words, &sink);
        running.send(signal);
        let ended = running.end().with_code(130);
        let study = study(&lab);
        let counts = &study.run.tally.counts;
        assert!(study.interrupted);
        assert_eq!(counts.total(), counts.good() + counts.of(Outcome::InFlight), "{:?}", outcomes(&study));
        assert_eq!(study.log_dropped, 0);
        let log = fs::read_to_string(lab.path("log.csv")).unwrap();
        assert_eq!(log.lines().count() as u64, 1 + counts.total(), "{:?}", outcomes(&study));
        assert_eq!(log.matches(",in_flight_at_end,").count() as u64, counts.of(Outcome::InFlight));
        assert!(log.ends_with('\n'));
        assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout);
        let ledger = sink.stop();
        assert!((counts.good()..=counts.total()).contains(&ledger.requests));
    }
}

#[test]
fn a_signal_ends_an_attack_with_what_was_completed() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let words = format!("attack --target-throughput=200 --url={}", url(&sink));
    let mut attack = lab.start(&words);
    attack.until(|stdout| stdout.lines().count() > 5);
    attack.send(Signal::INT);
    let ended = attack.end().with_code(130);
    let completed = ended.stdout.lines().filter(|line| line.contains(" status=200 ")).count();
    let counts = study(&lab).run.tally.counts;
    assert_eq!(counts.good(), completed as u64);
    assert!(ended.stdout.ends_with(&format!("\nCompleted {completed}/{}\n", counts.attempted())), "{}", ended.stdout);
}

/// A socket that is listened to and takes nobody: its accept queue, of one place, is full. Each connect is refused (unix(7)).
struct Full {
    _held: [OwnedFd; 2],
    words: String,
}

impl Full {
    fn in_lab(lab: &Lab) -> Full {
        let path = lab.path("full.sock");
        let address = SocketAddrUnix::new(&path).unwrap();
        let stream = || socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (listener, waiting) = (stream(), stream());
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        connect(&waiting, &address).unwrap();
        Full { _held: [listener, waiting], words: format!("--unix {} http://h/", path.display()) }
    }
}

#[test]
fn where_nobody_takes_connections_every_request_is_refused_and_said_to_be() {
    let lab = Lab::new();
    let full = Full::in_lab(&lab);
    let ended = load(&lab, &format!("-n 10 -c 3 --log log.csv {}", full.words)).with_code(3);
    assert_eq!(outcomes(&study(&lab)), [(Outcome::Refused, 10)]);
    assert!(ended.stdout.contains("connect refused"), "{}", ended.stdout);
    assert_eq!(
        last_line(&ended),
        "longtail: not one request to http://h/ was answered (10 connect refused): it was listened to before the start: is \
         there still a server, or is its accept queue full?"
    );
    let log = std::fs::read_to_string(lab.path("log.csv")).unwrap();
    for line in log.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!([fields[2], fields[5], fields[6]], ["", "", ""], "it was never sent: {line}");
    }
}

#[test]
fn a_layout_without_a_verdict_has_it_beside_where_the_figures_are_worth_nothing() {
    let folder = Lab::new();
    let full = Full::in_lab(&folder);
    for layout in ["--style wrk", "--style hey", "--log=-.csv", "--format hdr"] {
        let ended = load(&Lab::new(), &format!("-n 10 -c 3 {layout} {}", full.words)).with_code(3);
        assert!(ended.stderr.contains("longtail: verdict: INVALID; longtail report says why"), "{}", ended.stderr);
    }
    let ended = load(&Lab::new(), &format!("-n 10 -c 3 {}", full.words)).with_code(3);
    assert!(ended.stdout.contains("\nINVALID: ") && !ended.stderr.contains("verdict"), "{}", ended.stderr);
}

/// The last of what is said beside the report: a terminal's user sees it.
fn last_line(ended: &Ended) -> &str {
    ended.stderr.lines().last().unwrap_or_default()
}

#[test]
fn a_server_that_dies_in_the_middle_ends_no_load() {
    let (lab, server) = (Lab::new(), sink(SinkBody::Ok));
    let running = in_the_middle(&lab, &format!("-n 400 -c 4 --rate 50/s {}", url(&server)), &server);
    let ledger = server.stop();
    running.end().with_code(0);
    let study = study(&lab);
    let counts = &study.run.tally.counts;
    assert_eq!(counts.total(), 400);
    assert!(counts.good() <= ledger.requests && counts.of(Outcome::Refused) > 0, "{:?}", outcomes(&study));
}

#[test]
fn a_bad_response_is_told_with_what_was_wrong() {
    for (answer, kind) in [
        ("this is no answer\r\n\r\n", BadResponse::NotHttp),
        ("HTTP/1.1 20 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 200 OK\r\nno field\r\n\r\n", BadResponse::MalformedHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", BadResponse::ContentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n", BadResponse::ChunkedBody),
        ("HTTP/1.1 101 Switching\r\n\r\n", BadResponse::SwitchedProtocol),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", BadResponse::TrailingBytes),
    ] {
        let (lab, server) = (Lab::new(), Receiver::answering(answer));
        let load = |words: &str| load(&lab, &format!("-n 6 -c 2 {words} {}", server.url())).with_code(3);
        let ended = load("--log requests.csv");
        assert_eq!(outcomes(&study(&lab)), [(Outcome::BadResponse, 6)]);
        assert!(ended.stdout.contains(&format!(": 6 bad response: {kind}\n")), "{}", ended.stdout);
        let line = format!("longtail: not one request to {} was answered (6 bad response): {kind}", server.url());
        let ask = if kind == BadResponse::NotHttp { ": does it speak TLS (https://)?" } else { "" };
        assert_eq!(last_line(&ended), line + ask);
        let json = fs::read_to_string(&lab.studies()[0]).unwrap();
        assert!(json.contains(&format!("\"{}\": 6", kind.name())), "{json}");
        let markdown = lab.run("report --format markdown").with_code(0).stdout;
        assert!(markdown.contains(&format!(": 6 bad response: {kind}\n")), "{markdown}");
        // It is in logs and in the layouts of others too.
        let table = fs::read_to_string(lab.path("requests.csv")).unwrap();
        let is_named = |line: &str| line.contains(",bad_response,") && line.ends_with(&format!(",{}", kind.name()));
        assert!(table.lines().count() == 7 && table.lines().skip(1).all(is_named), "{table}");
        load("--log requests.log --threads 2");
        let lines = fs::read_to_string(lab.path("requests.log")).unwrap();
        let end = format!("ms reason={}", kind.name());
        let is_named = |line: &str| line.contains(" error=bad_response ") && line.ends_with(&end);
        assert!(lines.lines().count() == 6 && lines.lines().all(is_named), "{lines}");
        let hey = load("--style hey --force").stdout;
        assert!(hey.contains(&format!("\n  [6]\tbad response: {kind}\n")), "{hey}");
        let wrk = load("--style wrk --force").stdout;
        assert!(wrk.contains(&format!("read 6, write 0, timeout 0\n  Bad responses: {kind}\n")), "{wrk}");
    }
}

#[test]
fn a_threshold_that_is_met_is_exit_0() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let words = format!("-n 50 -c 2 --fail-if 'errors > 0.1%' --expect 'p50 < 60s' {}", url(&sink));
    let ended = load(&lab, &words);
    let study = study(&lab);
    let bound = study.run.judgement.as_ref().is_some_and(|it| it.verdict == Verdict::GeneratorBound);
    ended.with_code(i32::from(bound));
    let mut held = study.plan.thresholds.iter().map(|threshold| study.run.held_against(threshold).unwrap());
    assert!(held.all(|result| result.is_met));
}
