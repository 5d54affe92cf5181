//! What cannot be done: exit 2, one line that names the fault, no study and no load for anybody.

use std::os::unix::net::UnixListener;
use std::process::Command;

use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, loaded, sink};
use crate::lab::{Lab, free_port, has};

fn refuses(words: &str, part: &str) {
    let lab = Lab::new();
    refuses_in(&lab, words, part);
}

fn refuses_in(lab: &Lab, words: &str, part: &str) {
    assert!(load(lab, words).refused(part).starts_with("longtail: "));
    assert!(lab.studies().is_empty());
}

#[test]
fn a_file_that_is_of_no_use_is_named() {
    let receiver = Receiver::start();
    let url = receiver.url();
    let lab = Lab::new();
    lab.write("there.json", "");
    std::os::unix::fs::symlink("there.json", lab.path("link")).unwrap();
    refuses_in(&lab, &format!("-o there.json --log link {url}"), "each its own");
    // A pipe that nobody reads: nobody waits for a reader.
    let made = Command::new("mkfifo").arg(lab.path("pipe.json")).status().unwrap();
    assert!(made.success());
    refuses_in(&lab, &format!("-o pipe.json {url}"), "it is a pipe");
    refuses_in(&lab, &format!("--log pipe.json {url}"), "a pipe that nobody reads");
    for (text, part) in
        [("", "no request"), ("# only a remark\n", "no request"), ("GET\n", "line 1"), ("{\n", "line 1")]
    {
        lab.write("requests", text);
        refuses_in(&lab, &format!("--requests requests {url}"), part);
    }
    lab.write("requests", "http://127.0.0.1:1/elsewhere\n");
    refuses_in(&lab, &format!("--requests requests {url}"), "line 1");
    lab.write("requests", "/no-host\n");
    refuses_in(&lab, "--requests requests", "line 1");
    assert!(receiver.requests().is_empty(), "nobody was sent anything");
}

#[test]
fn where_nobody_listens_no_load_is_sent() {
    let place = format!("127.0.0.1:{}", free_port());
    let line = format!("nothing listens at {place}: start the server first, or correct ");
    refuses(&format!("http://{place}/"), &format!("{line}the URL\n"));
    refuses(&format!("--rate 5 --fail-if 'errors > 0' http://{place}/"), &line);
    refuses(&format!("--connect-to {place} http://h/"), &format!("{line}--connect-to\n"));
    refuses(&format!("--as wrk -- -t1 -c1 -d1s http://{place}/"), &line);
    refuses(&format!("-n 5 https://{place}/"), &line);
    let lab = Lab::new();
    lab.write("urls", &format!("http://{place}/a\n"));
    refuses_in(&lab, "--requests urls", &format!("{line}the addresses in urls\n"));
    let ended = lab.run(&format!("attack --target-throughput=10 --url=http://{place}/")).with_code(2);
    assert_eq!(ended.stderr, format!("longtail: {line}the URL\n"));
    // Whatever else is wrong is said first.
    refuses(&format!("--log - --format json http://{place}/"), "two things");
    if has("wrk") {
        refuses(&format!("--generator wrk --for 1s http://{place}/"), &format!("{line}the URL\n"));
    }
}

#[test]
fn a_unix_socket_without_a_listener_is_named() {
    let lab = Lab::new();
    let path = lab.path("app.sock");
    drop(UnixListener::bind(&path).unwrap());
    refuses(&format!("--unix {} http://h/", path.display()), &format!("nothing listens at unix {}", path.display()));
    refuses("--unix @longtail-nobody-listens http://h/", "nothing listens at unix @longtail-nobody-listens: ");
    std::fs::remove_file(&path).unwrap();
    refuses(&format!("--unix {} http://h/", path.display()), "there is no such file");
}

/// Each connection that a server saw was the load's own.
#[test]
fn whoever_listens_sees_the_load_alone() {
    let sink = sink(SinkBody::Ok);
    let study = loaded(&format!("-n 40 -c 4 --threads 1 {}", super::url(&sink)));
    assert_eq!(study.run.tally.counts.good(), 40);
    let ledger = sink.stop();
    assert_eq!((ledger.requests, ledger.connections), (40, 4));
}

#[test]
fn more_connections_than_descriptors_are_refused_before_the_start() {
    let (lab, receiver) = (Lab::new(), Receiver::start());
    let words = format!("-c 900000 --for 1s {}", receiver.url());
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let raised = rustix::process::geteuid().is_root() && hard.is_none_or(|hard| hard > 900_000);
    if !crate::lab::can(!raised, "root may open as many files as it likes here") {
        return;
    }
    assert!(load(&lab, &words).refused("ulimit -n").contains("900000"));
    assert!(receiver.requests().is_empty());
}
