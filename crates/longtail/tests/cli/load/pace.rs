//! What the receiving side saw of a load: how many requests, which, and in which order. Never when.

use model::Pace;
use sink::SinkBody;
use testkit::http::Receiver;

use super::{assert_answered, load, loaded, sink, study, url, word};
use crate::lab::Lab;

#[test]
fn so_many_requests_are_sent_as_were_asked_for() {
    for (flags, expected) in [
        ("-n 10 -c 3 --threads 1", 10),
        ("-n 10 -c 3 --threads 2", 10),
        ("-n 10 -c 3 --threads 3", 10),
        ("-n 20 --for 60s -c 3", 20),
        ("--rate 200/s --for 500ms", 100),
        ("--steps 100/s,300/s --for 500ms", 100),
        ("--ramp 100/s..300/s --for 500ms", 100),
        ("--rate 200/s --burst 20 --for 500ms", 100),
        ("-q 50 -c 4 --for 500ms", 100),
    ] {
        let sink = sink(SinkBody::Ok);
        let study = loaded(&format!("{flags} {}", url(&sink)));
        assert_eq!(matches!(study.plan.pace, Pace::Open { .. }), !flags.starts_with("-n"));
        assert_eq!(study.run.tally.counts.total(), expected, "{flags}");
        assert_answered(&study, sink);
    }
}

#[test]
fn a_stream_arrives_whole_and_over_one_connection_in_order() {
    let expected: Vec<String> = (0..300).map(|n| format!("/{n}")).collect();
    for words in ["-c 1", "-c 20 --threads 3"] {
        let (lab, receiver) = (Lab::new(), Receiver::start());
        lab.write("numbers", &expected.join("\n"));
        load(&lab, &format!("--rate 600/s --for 500ms {words} --requests numbers {}", receiver.url())).with_code(0);
        let mut targets = receiver.targets();
        if words != "-c 1" {
            targets.sort_by_key(|target| target[1..].parse::<usize>().unwrap());
        }
        assert_eq!(targets, expected, "none twice, none missing");
        assert_eq!(study(&lab).run.tally.counts.good(), 300);
    }
}

#[test]
fn what_is_skipped_is_counted_and_does_not_arrive() {
    let receiver = Receiver::start();
    let study = loaded(&format!("--rate 400/s --burst 40 --for 500ms -c 1 --late skip {}", receiver.url()));
    let counts = &study.run.tally.counts;
    let skipped = counts.of(model::Outcome::Skipped);
    assert_eq!((counts.total(), counts.good() + skipped), (200, 200));
    assert!(skipped > 0);
    assert_eq!(receiver.requests().len() as u64, counts.good());
}

#[test]
fn requests_are_taken_from_each_format_in_turn() {
    let receiver = Receiver::start();
    let host = receiver.address;
    let lab = Lab::new();
    let body = word(&lab.write("body", "from a file"));
    let put = format!(r#"{{"method":"PUT","url":"http://{host}/b","body":"aGVsbG8=","header":{{"X-One":["1"]}}}}"#);
    let mut seen = 0;
    for (format, text, second_is) in [
        ("list", "/a\n/b\n".to_owned(), ["GET ", "\r\n\r\n"]),
        (
            "plain",
            format!("GET http://{host}/a\n\nPOST http://{host}/b\nX-One: 1\n@{body}\n"),
            ["POST ", "\r\n\r\nfrom a file"],
        ),
        ("json", format!("{{\"method\":\"GET\",\"url\":\"http://{host}/a\"}}\n{put}\n"), ["PUT ", "\r\n\r\nhello"]),
        (
            "raw",
            format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\nGET /b HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            ["GET ", "\r\n\r\n"],
        ),
    ] {
        lab.write("requests", &text);
        let url = if format == "list" { receiver.url() } else { String::new() };
        load(&lab, &format!("-n 5 -c 1 --requests requests {url}")).with_code(0);
        load(&lab, &format!("-n 1 -c 1 --requests requests --requests-format {format} {url}")).with_code(0);
        assert_eq!(receiver.targets()[seen..], ["/a", "/b", "/a", "/b", "/a", "/a"], "{format}");
        let second = &receiver.requests()[seen + 1];
        assert!(second.starts_with(second_is[0]) && second.ends_with(second_is[1]), "{format}: {second}");
        seen += 6;
    }
}

/// Each line of the head is there, whatever its case; what follows it is the end.
pub(super) fn assert_sent(request: &str, start: &str, lines: &[&str], end: &str) {
    assert!(request.starts_with(start) && request.ends_with(&format!("\r\n\r\n{end}")), "{start}, {end}: {request}");
    for line in lines {
        assert!(request.to_lowercase().contains(&format!("\r\n{line}\r\n")), "{line}: {request}");
    }
}

#[test]
fn what_is_sent_is_what_was_asked_for() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    lab.write("body", "from a file");
    let put = "-m PUT -d 'a body' -H 'X-One: 1' -H 'Accept:' -T text/plain -a me:hunter2 --host example.org";
    for words in [&format!("{put} {}x?y=z", receiver.url()), &format!("-D body {}", receiver.url()), "-k"] {
        let to = if words == "-k" { receiver.url() } else { String::new() };
        load(&lab, &format!("-n 1 {words} {to}")).with_code(0);
    }
    let requests = receiver.requests();
    let lines = ["host: example.org", "x-one: 1", "content-type: text/plain", "content-length: 6"];
    assert_sent(&requests[0], "PUT /x?y=z HTTP/1.1\r\n", &lines, "a body");
    assert_sent(&requests[0], "PUT ", &["authorization: basic bwu6ahvudgvymg=="], "a body");
    assert!(!requests[0].to_lowercase().contains("\r\naccept:"));
    assert_sent(&requests[1], "POST / ", &[], "from a file");
    assert_sent(&requests[2], "GET / ", &["connection: close"], "");
    for file in lab.studies() {
        assert!(!std::fs::read_to_string(file).unwrap().contains("hunter2"), "no secret is kept");
    }
}
