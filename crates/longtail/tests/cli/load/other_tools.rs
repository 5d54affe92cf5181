//! hey's and wrk's command lines as they are, against a sink, nginx and Puma. Skipped, with the reason, where there is none.

use std::net::TcpStream;

use model::{LoadStudy, Nanos, Outcome};
use sink::SinkBody;
use testkit::http::Receiver;

use super::pace::assert_sent;
use super::{load, outcomes, sink, slow_sink, study, url};
use crate::clock::eventually;
use crate::lab::{Lab, PATIENCE, Running};

/// Runs another tool's words; what is printed has the parts of that tool's output.
fn like(lab: &Lab, words: &str) -> LoadStudy {
    let ended = load(lab, &format!("--force --as {words}")).with_code(0);
    let parts = if words.starts_with("hey") {
        [
            "Summary:",
            "Response time histogram:",
            "Latency distribution:",
            "Details (average, fastest, slowest):",
            "[200]",
        ]
    } else {
        ["Running 1s test @ http://", "Thread Stats", "Latency Distribution", "Requests/sec:", "Transfer/sec:"]
    };
    for part in parts {
        assert!(ended.stdout.contains(part), "{words}: {part}: {}", ended.stdout);
    }
    study(lab)
}

#[test]
fn their_command_lines_work_as_they_are() {
    let sink = slow_sink(Nanos::from_millis(2));
    let mut sent = 0;
    for (words, requests, connections) in [
        ("hey -- -n 200 -c 50", Some(200), 50),
        ("hey --", Some(200), 50),
        ("hey -- -c=4 -n=8", Some(8), 4),
        ("hey -- -z 1s -m GET", None, 50),
        ("hey -- -z 1s -q 5 -c 4", Some(20), 4),
        ("hey -- -n 20 -c 2 -disable-keepalive -disable-compression -disable-redirects -cpus 1", Some(20), 2),
        ("hey -- -n 5 -c 1 -z 0m1s", None, 1),
        ("wrk -- -t2 -c4 -d1s --latency", None, 4),
        ("wrk -- -t 1 -c 4 -d 1 -L", None, 4),
        ("wrk -- --threads=2 --connections=6 --duration=1s --timeout 60s", None, 6),
        ("wrk -- -t1 -c0.002k -d1s -T60s", None, 2),
        ("wrk -- -d1s", None, 10),
    ] {
        let study = like(&Lab::new(), &format!("{words} {}", url(&sink)));
        let counts = &study.run.tally.counts;
        assert_eq!((counts.failed(), study.plan.connections), (0, connections), "{words}");
        assert!(requests.is_none_or(|requests| counts.total() == requests), "{words}: {:?}", outcomes(&study));
        sent += study.run.tally.all_requests();
    }
    assert_eq!(sink.stop().requests, sent);
}

#[test]
fn heys_csv_is_a_line_a_request() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ended = load(&lab, &format!("--as hey -- -n 5 -c 1 -o csv {}", url(&sink))).with_code(0);
    assert_eq!(ended.stdout.lines().count(), 6, "{}", ended.stdout);
}

#[test]
fn what_hey_is_told_to_send_is_sent() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    let flags =
        "-n 1 -c 1 -m post -H 'X-One: 1' -A text/html -T text/plain -U me/1 -a me:secret -host h.example -d hello -t 5";
    load(&lab, &format!("--as hey -- {flags} {}", receiver.url())).with_code(0);
    let lines = ["x-one: 1", "accept: text/html", "content-type: text/plain", "user-agent: me/1", "host: h.example"];
    assert_sent(&receiver.requests()[0], "POST / HTTP/1.1\r\n", &lines, "hello");
}

/// hey's and wrk's usual lines on a server that is there already.
fn both_load(port: u16) {
    for words in ["hey -- -z 1s -m GET", "hey -- -n 500 -c 20 -disable-keepalive", "wrk -- -t2 -c8 -d1s --latency"] {
        let study = like(&Lab::new(), &format!("{words} http://127.0.0.1:{port}/"));
        assert!(study.run.tally.counts.good() > 0);
        // A server that closes a connection that it kept meets a request now and then; that one is counted.
        let allowed = [Outcome::Answered(200), Outcome::Reset, Outcome::Closed];
        assert!(outcomes(&study).iter().all(|(outcome, _)| allowed.contains(outcome)), "{:?}", outcomes(&study));
    }
}

#[test]
fn both_command_lines_work_on_nginx() {
    let Some((lab, port)) = Lab::with_port("nginx") else { return };
    let here = lab.path("");
    let here = here.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {here}/{name};\n")).concat();
    let config = format!(
        "daemon off;\npid {here}/nginx.pid;\nerror_log {here}/error.log;\nworker_processes 1;\nevents {{}}\n\
         http {{\naccess_log off;\n{paths}server {{\nlisten 127.0.0.1:{port};\n\
         location / {{ return 200 \"hello\\n\"; }}\n}}\n}}\n"
    );
    lab.write("nginx.conf", &config);
    // Its workers live and end with the folder.
    let _nginx = Running::start(
        lab.program("nginx").args(["-e", &format!("{here}/error.log")]).args(["-c", &format!("{here}/nginx.conf")]),
    );
    let connects = || TcpStream::connect(("127.0.0.1", port)).ok();
    eventually(PATIENCE, || "nginx does not listen".to_owned(), connects);
    both_load(port);
}

#[test]
fn both_command_lines_work_on_puma() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let app = lab.write("app.ru", "run lambda { |env| [200, {'content-length' => '2'}, ['ok']] }\n");
    let _puma = Running::puma(&lab, port, &app, "-t5:5");
    both_load(port);
}
