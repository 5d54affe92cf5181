//! Mistakes that a user can make, in every command: one line names the mistake, the exit code is 2,
//! and no request is sent.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use testkit::http::Receiver;
use testkit::{claimed, study};

use crate::lab::{LONGTAIL, Lab, end, free_port, settings_and_words};

/// Scripts of other tools that the table names.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/scripts");

/// Creates the files that the table names.
fn files(lab: &Lab) {
    let newer =
        report::json::write(&study::tiny().into()).replacen("\"schema\": 1,", "\"schema\": 99,", 1);
    let study = report::json::write(&claimed::hey_sweep().into());
    for (name, text) in [
        ("app.ru", "run lambda { |_| [200, {}, ['ok']] }\n"),
        ("x.study.json", &study),
        ("newer.json", &newer),
        ("text.json", "no longer json"),
        ("braces.json", "{}"),
        ("schema.json", "{\"schema\": 1}"),
        ("empty", ""),
        ("there.json", ""),
        ("remark", "# only a remark\n"),
        ("get", "GET\n"),
        ("brace", "{\n"),
        ("elsewhere", "http://127.0.0.1:1/elsewhere\n"),
        ("no-host", "/no-host\n"),
        ("token", "hunter2\n"),
        ("lines", "a=1\nb=2\n"),
        ("line", "a=1"),
        ("targets", "GET http://127.0.0.1:1/\n"),
        ("two-hosts", "GET http://127.0.0.1:1/a\n\nGET http://127.0.0.1:2/b\n"),
        ("outside", "GET /x\n@/etc/hostname\n"),
        ("through-link", "GET /x\n@hosts\n"),
    ] {
        lab.write(name, text);
    }
    for script in fs::read_dir(SCRIPTS).unwrap() {
        let script = script.unwrap().path();
        fs::copy(&script, lab.path(script.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    std::os::unix::fs::symlink("there.json", lab.path("link")).unwrap();
    std::os::unix::fs::symlink("/etc/hosts", lab.path("hosts")).unwrap();
    std::os::unix::fs::symlink("gone", lab.path("dangling")).unwrap();
    std::os::unix::fs::symlink("circle", lab.path("circle")).unwrap();
    mknodat(CWD, lab.path("pipe.json"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    drop(UnixListener::bind(lab.path("dead.sock")).unwrap());
}

#[test]
fn a_mistake_is_one_line_that_names_it_before_any_load() {
    refuse_all(include_str!("mistakes.txt"));
}

/// The rows are what users of other tools type.
#[test]
fn a_line_of_another_tool_is_answered_with_the_whole_line_of_ours() {
    let table = include_str!("signposts.txt");
    assert!(table.matches(" => ").count() >= 150);
    refuse_all(table);
}

/// Checks that each row of a table is refused, in one line but for lines to paste, that all parts
/// that stand behind the row's arrow are said, and that no request is sent.
fn refuse_all(table: &str) {
    let receiver = Receiver::start();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = receiver.url();
    let https = receiver.url().replace("http", "https");
    let taken = receiver.address.port().to_string();
    let free = free_port().to_string();
    let udp = udp.local_addr().unwrap().to_string();
    let cpus = launch::affinity::ours().expect("Linux tells").to_string();
    let places = [
        ("{url}", &*url),
        ("{https}", &https),
        ("{taken}", &taken),
        ("{free}", &free),
        ("{udp}", &udp),
        ("{cpus}", &cpus),
        ("{longtail}", LONGTAIL),
    ];
    let lab = Lab::new();
    files(&lab);
    let mut faults = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = places
            .into_iter()
            .fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
        let (words, parts) = line.split_once(" =>").unwrap();
        let (settings, words) = settings_and_words(words);
        let ended = end(lab.program(LONGTAIL).args(words).envs(settings));
        let has_all = parts.trim_start().split(" & ").all(|part| ended.is_refusal(part));
        if !has_all || !ended.stderr.starts_with("longtail: ") {
            faults.push(format!("{line}\n  {ended:?}"));
        }
        assert!(lab.living().is_empty() && lab.studies().is_empty(), "{line}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(receiver.requests().is_empty(), "no request was sent");
}
