//! hey's and wrk's command lines as they are, against a sink, nginx and Puma. Skipped, with the reason, where there is none.

use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, outcomes, sink, study, url};
use crate::clock::eventually;
use crate::lab::{Lab, PATIENCE, Running};

/// Runs another tool's words; what was printed has these parts.
fn like(words: &str, parts: &[&str]) -> model::LoadStudy {
    let lab = Lab::new();
    let ended = load(&lab, words).with_code(0);
    for part in parts {
        assert!(ended.stdout.contains(part), "{words}: {part}: {}", ended.stdout);
    }
    study(&lab)
}

const HEY: [&str; 5] =
    ["Summary:", "Response time histogram:", "Latency distribution:", "Details (average, fastest, slowest):", "[200]"];
const WRK: [&str; 5] =
    ["Running 1s test @ http://", "Thread Stats", "Latency Distribution", "Requests/sec:", "Transfer/sec:"];

#[test]
fn heys_command_line_works_as_it_is() {
    let sink = sink(SinkBody::Ok);
    let url = url(&sink);
    let mut sent = 0;
    for (words, requests, connections) in [
        ("-n 200 -c 50", Some(200), 50),
        ("", Some(200), 50),
        ("-n 10 -c 3", Some(10), 3),
        ("-c=4 -n=8", Some(8), 4),
        ("-z 1s -m GET", None, 50),
        ("-z 1s -q 5 -c 4", Some(20), 4),
        ("-n 20 -c 2 -disable-keepalive -disable-compression -disable-redirects -cpus 1", Some(20), 2),
    ] {
        let study = like(&format!("--force --as hey -- {words} {url}"), &HEY);
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
    let request = receiver.requests()[0].clone();
    assert!(request.starts_with("POST / HTTP/1.1\r\n") && request.ends_with("\r\n\r\nhello"), "{request}");
    for line in ["x-one: 1", "accept: text/html", "content-type: text/plain", "user-agent: me/1", "host: h.example"] {
        assert!(request.to_lowercase().contains(&format!("\r\n{line}\r\n")), "{line}: {request}");
    }
}

#[test]
fn wrks_command_line_works_as_it_is() {
    let sink = sink(SinkBody::Ok);
    let url = url(&sink);
    let mut sent = 0;
    for (words, connections) in [
        ("-t2 -c4 -d1s --latency", 4),
        ("-t 1 -c 4 -d 1", 4),
        ("--threads=2 --connections=6 --duration=1s --timeout 60s", 6),
        ("-d1s", 10),
    ] {
        let study = like(&format!("--force --as wrk -- {words} {url}"), &WRK);
        assert_eq!((study.run.tally.counts.failed(), study.plan.connections), (0, connections), "{words}");
        sent += study.run.tally.all_requests();
    }
    assert_eq!(sink.stop().requests, sent);
}

#[test]
fn the_rest_of_their_command_lines_works_too() {
    let sink = sink(SinkBody::Ok);
    let url = url(&sink);
    for words in [
        "hey -- -n 5 -c 1 -o csv",
        "hey -- -n 5 -c 1 -z 0m1s",
        "wrk -- -t1 -c2 -d1s -L -T60s",
        "wrk -- -t1 -c0.002k -d1s",
    ] {
        load(&Lab::new(), &format!("--as {words} {url}")).with_code(0);
    }
}

/// hey's and wrk's usual lines on a server that is there already.
fn both_load(url: &str, lab: &Lab) {
    for (words, parts) in [
        (format!("--force --as hey -- -z 1s -m GET {url}"), &HEY),
        (format!("--force --as hey -- -n 500 -c 20 -disable-keepalive {url}"), &HEY),
        (format!("--force --as wrk -- -t2 -c8 -d1s --latency {url}"), &WRK),
    ] {
        let ended = load(lab, &words).with_code(0);
        for part in parts {
            assert!(ended.stdout.contains(part), "{words}: {part}: {}", ended.stdout);
        }
    }
    for path in lab.studies() {
        let study = super::read(&path);
        assert!(study.run.tally.counts.good() > 0);
        // A server that closes a connection that it kept meets a request now and then; that one is counted.
        let allowed = [model::Outcome::Answered(200), model::Outcome::Reset, model::Outcome::Closed];
        assert!(outcomes(&study).iter().all(|(outcome, _)| allowed.contains(outcome)), "{:?}", outcomes(&study));
    }
}

fn answers(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn both_command_lines_work_on_nginx() {
    let Some((lab, port)) = Lab::with_port("nginx") else { return };
    let here = lab.path("");
    let here = here.display();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {here}/{name};\n"))
        .concat();
    let config = format!(
        "daemon off;\npid {here}/nginx.pid;\nerror_log {here}/error.log;\nworker_processes 1;\nevents {{}}\n\
         http {{\naccess_log off;\n{paths}server {{\nlisten 127.0.0.1:{port};\n\
         location / {{ return 200 \"hello\\n\"; }}\n}}\n}}\n"
    );
    let config = lab.write("nginx.conf", &config);
    let error_log = lab.path("error.log");
    let _nginx = Running::start(lab.program("nginx").arg("-e").arg(error_log).arg("-c").arg(config));
    eventually(PATIENCE, || "nginx does not listen".to_owned(), || answers(port).then_some(()));
    both_load(&format!("http://127.0.0.1:{port}/"), &lab);
    // Its workers live and end with the folder.
}

#[test]
fn both_command_lines_work_on_puma() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let app = lab.write("app.ru", "run lambda { |env| [200, {'content-length' => '2'}, ['ok']] }\n");
    let bind = format!("tcp://127.0.0.1:{port}");
    let _puma = Running::start(lab.program("puma").args(["-t5:5", "-b", &bind]).arg(app));
    eventually(PATIENCE, || "puma does not listen".to_owned(), || answers(port).then_some(()));
    both_load(&format!("http://127.0.0.1:{port}/"), &lab);
}
