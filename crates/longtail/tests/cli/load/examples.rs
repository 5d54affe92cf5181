//! Each example of the help and of the documents, on a server of the test and for a shorter time; counts and requests files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::Pace;
use sink::SinkBody;
use testkit::http::Receiver;

use super::{assert_answered, load, loaded, sink, sink_at, split, study, url, word};
use crate::lab::{Lab, Running, has};

/// The examples of a command's help: the words behind `longtail`, remarks cut off.
fn examples(command: &str) -> Vec<String> {
    let help = Lab::new().longtail(&format!("{command} --help")).env("COLUMNS", "200").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, examples) = help.split_once("Examples:\n").expect("examples");
    let (examples, _) = examples.split_once("\n\n").expect("something behind them");
    // Longer examples are wrapped.
    let joined = examples.replace("\n  longtail ", "\u{0}longtail ").replace('\n', " ");
    let lines = joined.trim().trim_start_matches("longtail ").split("\u{0}longtail ");
    lines.map(|line| line.split("    ").next().unwrap().trim().to_owned()).collect()
}

/// An example on servers of the test, and shorter: where it says nothing of its end, so many requests end it.
fn adapted(example: &str, url: &str, socket: &str) -> String {
    let mut words = example.replace("http://127.0.0.1:9292/", url).replace("/run/app.sock", socket);
    // Other generators know whole seconds only.
    let brief = if words.contains("--generator") { "--for 1s" } else { "--for 300ms" };
    for (long, short) in [("--for 30s", brief), ("--for 60s", brief), ("-z 20s", "-z 1s")] {
        words = words.replace(long, short);
    }
    let flags = if words.contains("--for") || words.contains("-n ") || words.contains("--as") { "" } else { "-n 20" };
    words.replacen("load ", &format!("load --no-calibrate {flags} "), 1)
}

#[test]
fn each_example_of_loads_help_runs() {
    let found = examples("load");
    assert!(found.len() >= 8, "{found:#?}");
    for example in found {
        if example.contains("--generator wrk") && !has("wrk") {
            continue;
        }
        let lab = Lab::new();
        lab.write("requests.txt", "/a\n/b\n");
        let socket = word(&lab.path("app.sock"));
        let (tcp, unix) = (sink(SinkBody::Ok), sink_at(&format!("unix://{socket}"), SinkBody::Ok));
        let words = adapted(&example, &url(&tcp), &socket);
        let ended = Running::start(lab.longtail("").args(split(&words))).end();
        // Whether an objective of the help is met is a matter of the machine.
        assert!(ended.code() == 0 || ended.code() == 1 && words.contains("--fail-if"), "{words}: {ended:?}");
        if words.contains("--generator") {
            // What another generator claims is looked at elsewhere.
            assert!(tcp.stop().requests > 0, "{words}");
            continue;
        }
        let study = study(&lab);
        assert!(study.run.tally.counts.total() > 0, "{words}");
        assert_answered(&study, if words.contains("--unix") { unix } else { tcp });
    }
}

/// The commands of the documents that start so, remarks cut off, each once.
fn documented(start: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages =
        fs::read_dir(root.join("docs")).unwrap().map(|page| page.unwrap().path()).chain([root.join("README.md")]);
    let texts = pages.filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let texts: Vec<String> = texts.map(|page| fs::read_to_string(page).unwrap()).collect();
    let commands = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("$ longtail "));
    let commands = commands.filter(|command| command.starts_with(start));
    commands.map(|command| command.split("   ").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn each_load_of_the_documents_runs() {
    let here = |command: &String| command.contains(" http://127.0.0.1:") && !command.contains("--generator");
    let found: Vec<String> = documented("load ").into_iter().filter(here).collect();
    assert!(found.len() >= 6, "{found:#?}");
    for command in found {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let (before, _) = command.rsplit_once("http://127.0.0.1:").unwrap();
        let words = adapted(&format!("{before}{}", url(&sink)), "", "").replace("--for 5s", "--for 300ms");
        let ended = Running::start(lab.longtail("").args(split(&words))).end();
        // Whether a threshold is met is a matter of the machine.
        assert!(ended.code() == 0 || ended.code() == 1 && words.contains("--expect"), "{words}: {ended:?}");
        assert_answered(&study(&lab), sink);
    }
}

#[test]
fn each_sweep_of_the_documents_that_needs_no_app_runs() {
    let own = [
        "-r ",
        "-C ",
        "--puma",
        "--generator",
        "--bodies",
        "ssl4",
        "--inspect app",
        "--statsd-listen",
        "--server-cpus",
        "--from",
        "--try",
    ];
    let needs_none = |command: &String| own.iter().all(|flag| !command.contains(flag));
    let found: Vec<String> = documented("sweep ").into_iter().filter(needs_none).collect();
    assert!(found.len() >= 3, "{found:#?}");
    for command in found {
        let lab = Lab::new();
        let end = if command.contains("-R100") { String::new() } else { " --for 200ms".to_owned() };
        let words = command.replace("-R100", "-R2").replace("-d0.2", "-d0.01").replace("-d0.1", "-d0.01");
        let words = format!("{words}{end} --server builtin --warm-up 0s --multiples 1 --no-calibrate");
        Running::start(lab.longtail("").args(split(&words))).end().with_code(0);
        assert_eq!(lab.studies().len(), 1, "{words}");
    }
}

#[test]
fn each_example_of_attacks_help_runs() {
    let found = examples("attack");
    assert!(found.len() >= 2, "{found:#?}");
    for example in found {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let words = example.replace("http://localhost:3000/", &url(&sink)).replace("-n 30", "");
        let words = words.replace("--target-throughput=10", "--target-throughput=100") + " -n 5";
        let ended =
            Running::start(lab.longtail("").args(split(&words)).env("HOME", lab.path("home"))).end().with_code(0);
        let lines: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("request ")).collect();
        assert_eq!(lines.len(), 5, "{}", ended.stdout);
        assert!(lines.iter().all(|line| line.contains(" status=200 latency=") && line.ends_with("ms")));
        assert!(ended.stdout.ends_with("Completed 5/5\n"), "{}", ended.stdout);
        assert_eq!(sink.stop().requests, 5);
    }
}

#[test]
fn ten_requests_over_three_connections_are_ten() {
    for lanes in [1, 2, 3] {
        let sink = sink(SinkBody::Ok);
        let study = loaded(&format!("-n 10 -c 3 --threads {lanes} {}", url(&sink)));
        assert_eq!((study.run.tally.counts.total(), study.plan.connections), (10, 3));
        assert_answered(&study, sink);
    }
}

#[test]
fn time_and_number_end_a_load_whichever_comes_first() {
    let sink = sink(SinkBody::Ok);
    let study = loaded(&format!("-n 20 --for 60s -c 3 {}", url(&sink)));
    assert_eq!(study.run.tally.counts.total(), 20);
    assert_answered(&study, sink);
}

#[test]
fn an_even_rate_for_a_time_is_so_many_requests() {
    for (flags, expected) in [
        ("--rate 200/s --for 500ms", 100),
        ("--steps 100/s,300/s --for 500ms", 100),
        ("--ramp 100/s..300/s --for 500ms", 100),
        ("--rate 200/s --burst 20 --for 500ms", 100),
        ("-q 50 -c 4 --for 500ms", 100),
    ] {
        let sink = sink(SinkBody::Ok);
        let study = loaded(&format!("{flags} {}", url(&sink)));
        assert!(matches!(study.plan.pace, Pace::Open { .. }));
        assert_eq!(study.run.tally.counts.total(), expected, "{flags}");
        assert_answered(&study, sink);
    }
}

#[test]
fn requests_are_taken_from_each_format_in_turn() {
    let receiver = Receiver::start();
    let host = receiver.address;
    let lab = Lab::new();
    let body = word(&lab.write("body", "from a file"));
    let files = [
        ("list", "/a\n/b\n".to_owned(), true),
        ("plain", format!("GET http://{host}/a\n\nPOST http://{host}/b\nX-One: 1\n@{body}\n"), false),
        (
            "json",
            format!(
                "{{\"method\":\"GET\",\"url\":\"http://{host}/a\"}}\n{{\"method\":\"PUT\",\"url\":\"http://{host}/b\",\"body\":\"aGVsbG8=\",\"header\":{{\"X-One\":[\"1\"]}}}}\n"
            ),
            false,
        ),
        ("raw", format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\nGET /b HTTP/1.1\r\nHost: {host}\r\n\r\n"), false),
    ];
    let mut seen = 0;
    for (format, text, needs_url) in files {
        lab.write("requests", &text);
        let url = if needs_url { receiver.url() } else { String::new() };
        load(&lab, &format!("-n 5 -c 1 --requests requests {url}")).with_code(0);
        load(&lab, &format!("-n 1 -c 1 --requests requests --requests-format {format} {url}")).with_code(0);
        assert_eq!(receiver.targets()[seen..], ["/a", "/b", "/a", "/b", "/a", "/a"], "{format}");
        let second = &receiver.requests()[seen + 1];
        match format {
            "plain" => assert!(second.starts_with("POST ") && second.ends_with("\r\n\r\nfrom a file"), "{second}"),
            "json" => assert!(second.starts_with("PUT ") && second.ends_with("\r\n\r\nhello"), "{second}"),
            _ => assert!(second.ends_with("\r\n\r\n"), "{second}"),
        }
        seen += 6;
    }
}

#[test]
fn what_is_sent_is_what_was_asked_for() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    lab.write("body", "from a file");
    let url = receiver.url();
    for words in [
        format!(
            "-m PUT -d 'a body' -H 'X-One: 1' -H 'Accept:' -T text/plain -a me:hunter2 --host example.org {url}x?y=z"
        ),
        format!("-D body {url}"),
        format!("-k {url}"),
    ] {
        load(&lab, &format!("-n 1 {words}")).with_code(0);
    }
    let requests = receiver.requests();
    let has = |request: usize, line: &str| {
        assert!(requests[request].to_lowercase().contains(&format!("\r\n{line}\r\n")), "{line}: {}", requests[request]);
    };
    assert!(requests[0].starts_with("PUT /x?y=z HTTP/1.1\r\n") && requests[0].ends_with("\r\n\r\na body"));
    assert!(!requests[0].to_lowercase().contains("\r\naccept:"));
    for line in ["host: example.org", "x-one: 1", "content-type: text/plain", "content-length: 6"] {
        has(0, line);
    }
    has(0, "authorization: basic bwu6ahvudgvymg==");
    assert!(requests[1].starts_with("POST / ") && requests[1].ends_with("\r\n\r\nfrom a file"));
    has(2, "connection: close");
    for file in lab.studies() {
        assert!(!std::fs::read_to_string(file).unwrap().contains("hunter2"), "no secret is kept");
    }
}
