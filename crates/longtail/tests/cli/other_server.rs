//! Any other server: a command, its slots and its URL are all that is known of it.

use model::{BadResponse, Diagnostic, EndedBy, Outcome, ServerKind};

use crate::lab::{Ended, Lab, assert_conserved, free_port, has};

/// A sweep of one slot, served by this script, which is told the port to listen on.
fn swept(lab: &Lab, script: &str, words: &str) -> Ended {
    let port = free_port();
    lab.write("server.py", script);
    let server = format!("--slots 1 --url http://127.0.0.1:{port}/ --no-calibrate");
    lab.run(&format!("sweep {server} {words} -- python3 server.py {port}"))
}

#[test]
fn any_command_that_serves_http_can_be_swept() {
    let Some((lab, port)) = Lab::with_port("python3") else { return };
    lab.write("hello.txt", "hello\n");
    lab.run(&format!(
        "sweep --slots 2 --url http://127.0.0.1:{port}/hello.txt --for 200ms --warm-up 0 --no-calibrate --multiples 1,2 \
             -- python3 -m http.server {port} --bind 127.0.0.1"
    ))
    .with_code(0);
    lab.assert_nothing_left(port);
    let study = lab.study();
    assert!(matches!(&study.plan.server.kind, ServerKind::Command { slots: 2, .. }));
    assert_eq!(study.runs.iter().map(|run| run.connections).collect::<Vec<_>>(), [2, 4]);
    for run in &study.runs {
        assert_conserved(run);
        assert_eq!(run.tally.counts.failed(), 0);
        assert!(run.workers.is_empty(), "nobody says who they are");
    }
}

/// A server that dies with its 61st request.
const DIES: &str = r#"
import http.server as h, os, sys
left = [60]
class Answers(h.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        left[0] -= 1
        if left[0] < 0: os._exit(3)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
h.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"#;

#[test]
fn a_run_that_its_server_ended_is_not_said_to_be_interrupted_by_the_user() {
    let Some(lab) = Lab::with("python3") else { return };
    let sweep = swept(&lab, DIES, "-d0.001 --for 600s --warm-up 0 --multiples 2").with_code(3);
    let study = lab.study();
    assert!(!study.interrupted, "the user did nothing");
    let warnings = &study.runs[0].warnings;
    assert!(warnings.contains(&Diagnostic::Interrupted { by: EndedBy::Server }), "{warnings:?}");
    let report = lab.run("report").with_code(0).stdout;
    assert!(report.contains("the server ended: the run is shorter than planned"), "{report}");
    assert!(!report.contains("by the user") && !sweep.stdout.contains("by the user"), "{report}");
}

#[test]
fn a_server_that_dies_in_a_run_leaves_the_runs_that_were_done_and_says_where() {
    let Some(lab) = Lab::with("python3") else { return };
    // The first run has 20 requests, and the second more than are left.
    let sweep = swept(&lab, DIES, "-d0.001 -R20 --multiples 1,4").with_code(3);
    assert!(sweep.stderr.contains("ended during the run with 4 connections (exit code 3)"), "{}", sweep.stderr);
    let kept = sweep.stderr.lines().find_map(|line| line.split_once("the finished runs are kept: longtail report "));
    let (_, path) = kept.unwrap_or_else(|| panic!("{}", sweep.stderr));
    let report = lab.run(&format!("report {path}")).with_code(0);
    assert!(report.stdout.contains("  4x "), "{}", report.stdout);
}

#[test]
fn a_server_that_leaves_a_child_behind_leaves_nothing() {
    let Some((lab, port)) = Lab::with_port("python3") else { return };
    lab.write("daemon.sh", &format!("setsid sleep 600 & exec python3 -m http.server {port} --bind 127.0.0.1\n"));
    let words =
        format!("sweep --slots 1 --url http://127.0.0.1:{port}/ --path / -d0.01 -R3 --multiples 1 --no-calibrate");
    lab.run(&format!("{words} -- sh daemon.sh")).with_code(0);
    lab.assert_nothing_left(port);
}

/// Answers every fourth request badly, each second of those for another reason.
const BABBLER: &str = r#"
import itertools, socketserver, sys
number = itertools.count()
good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
bad = [good + b"more", b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok"]
class Babbles(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            while self.rfile.readline().strip(): pass
            n = next(number)
            self.wfile.write(bad[n // 4 % 2] if n % 4 == 3 else good)
socketserver.ThreadingTCPServer.daemon_threads = True
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Babbles).serve_forever()
"#;

#[test]
fn a_sweep_tells_what_was_wrong_with_bad_responses() {
    let Some(lab) = Lab::with("python3") else { return };
    let sweep = swept(&lab, BABBLER, "-d0.001 -R40 -k --multiples 2").with_code(0);
    let run = &lab.study().runs[0];
    assert_conserved(run);
    let (length, trailing) = (
        run.tally.bad_responses.of(BadResponse::ContentLength),
        run.tally.bad_responses.of(BadResponse::TrailingBytes),
    );
    let bad = run.tally.counts.of(Outcome::BadResponse);
    assert!(length > 0 && trailing > 0 && length + trailing == bad, "{:?}", run.tally.bad_responses);
    let said = sweep.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!(" {bad} bad response: ")), "{}", sweep.stdout);
    assert!(said.contains(&format!("bytes after the end of the response ({trailing})")), "{}", sweep.stdout);
    let length_is_none = "the response's Content-Length is not a number, or there are two";
    assert!(said.contains(&format!("{length_is_none} ({length})")), "{}", sweep.stdout);
}

#[test]
fn a_server_that_speaks_no_http_is_told_with_what_is_wrong() {
    if !has("python3") {
        return;
    }
    let script = BABBLER.replace("HTTP/1.1 200", "SSH-2.0");
    let why = "GET / is not answered: bad response: the response is not HTTP/1.1";
    // A busy machine may not have started it in the first second, or break off the last request.
    let says_so = |time: &str| {
        let sweep = swept(&Lab::new(), &script, &format!("--boot-timeout {time}")).with_code(2);
        sweep.stderr.contains(why)
    };
    assert!(["1s", "5s", "15s"].into_iter().any(says_so));
}
