//! Secrets that a user types appear in nothing that longtail prints, keeps or writes; words that
//! only look like one are repeated as they were typed. The tables are `secrets.txt` and
//! `lookalikes.txt`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use testkit::http::Receiver;

use crate::lab::{LONGTAIL, Lab, check_each, end};

/// The secret in the tables.
const HUNTER: &str = "hunter2";

/// The rows of a table, as arguments.
fn rows(table: &str, place: &str) -> Vec<Vec<String>> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| shlex::split(&line.replace("{place}", place)).expect(line))
        .collect()
}

/// The arguments of a load, with a URL if they have none.
fn load(words: &[String], place: &str) -> Vec<String> {
    let has_url = words.iter().any(|word| word.contains(place));
    let url = (!has_url).then(|| format!("http://{place}/"));
    let load = "load --no-calibrate -n 1 -c 1".split(' ').map(str::to_owned);
    load.chain(words.iter().cloned()).chain(url).collect()
}

/// All files below a folder, with their names.
fn contents(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            contents(&entry.path(), all);
        } else {
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            all.push((entry.path().display().to_string(), text));
        }
    }
}

#[test]
fn no_spelling_of_a_secret_appears_in_any_output() {
    let receiver = Receiver::start();
    let place = receiver.address.to_string();
    let table = rows(include_str!("secrets.txt"), &place);
    assert!(table.len() >= 40);
    check_each(3, &table, |words| {
        let lab = Lab::new();
        let outputs = ["a.study.json", "a.json", "a.md", "a.csv", "a.html", "a.hdr", "a.txt"];
        let outputs = outputs.iter().flat_map(|name| ["-o", name]);
        let logs = ["--log", "log.txt", "--full"];
        let asked = load(words, &place);
        let ended = end(lab.program(LONGTAIL).args(&asked).args(outputs).args(logs));
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!printed.contains(HUNTER), "{words:?}: {printed}");
        let mut files = Vec::new();
        contents(&lab.path(""), &mut files);
        for (name, text) in files {
            assert!(!text.contains(HUNTER), "{words:?}: {name}");
        }
        // The same together with a mistake: an unknown flag or an invalid value.
        for mistake in [["--no-such-flag", "x"], ["--for", "soon"]] {
            let ended = end(lab.program(LONGTAIL).args(&asked).args(mistake));
            let printed = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!printed.contains(HUNTER), "{words:?} {mistake:?}: {printed}");
        }
    });
}

/// The report of another tool may repeat its command line.
#[test]
fn an_audit_repeats_no_secret() {
    let lab = Lab::new();
    for command in [
        "wrk -t2 -c9 -d9s -H 'Authorization: Bearer hunter2' http://h/",
        "wrk -t2 -c9 -d9s -H \"X-Api-Key: hunter2\" http://h/",
        "wrk -t2 -c9 -d9s http://me:hunter2@h/?token=hunter2",
        "hey -c 9 -a me:hunter2 http://h/",
        "hey -c 9 -ame:hunter2 http://h/",
    ] {
        let report = "Running 9s test @ http://me:hunter2@h/?token=hunter2\n  2 threads and 9 connections\n  986 requests in 9.01s, 1.20MB read\nRequests/sec:     98.50\nTransfer/sec:    120.00KB\n";
        let hey = "Summary:\n  Total:\t9.0 secs\n  Requests/sec:\t98.50\n";
        lab.write("report.txt", &format!("$ {command}\n{report}\n$ {command}\n{hey}"));
        for flags in [&["audit", "report.txt"][..], &["audit", "report.txt", "--json"]] {
            let ended = end(lab.program(LONGTAIL).args(flags));
            assert!(ended.stdout.contains("98.5"), "{}{}", ended.stdout, ended.stderr);
            assert!(!ended.stdout.contains(HUNTER), "{command}: {}", ended.stdout);
        }
    }
}

/// A server that doesn't start prints why, and may print a secret.
#[test]
fn a_servers_last_lines_repeat_no_secret() {
    let lab = Lab::new();
    let serve = "echo 'cannot log in: password=hunter2, token: hunter2' >&2; exit 3";
    let sweep = ["sweep", "-t1", "--url", "http://127.0.0.1:1/", "--", "sh", "-c", serve];
    let ended = end(lab.program(LONGTAIL).args(sweep)).with_code(2);
    assert!(ended.stderr.contains("cannot log in"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(HUNTER), "{}", ended.stderr);
}

#[test]
fn a_bug_report_is_short_and_repeats_no_secret() {
    let receiver = Receiver::start();
    let lab = Lab::new();
    let asked = format!(
        "load --no-calibrate -n 1 -c 1 -a me:{HUNTER} -H 'X-Api-Key: {HUNTER}' http://{}/?token={HUNTER}",
        receiver.address
    );
    lab.answer(&asked).with_code(0);
    let mut command = lab.program(LONGTAIL);
    let home = lab.path("home/somebody");
    command.args(["doctor", "--report"]).env("HOME", &home).env("BUNDLE_GEMFILE", HUNTER);
    let report = end(&mut command).with_code(0).stdout;
    assert!(report.lines().count() <= 20, "{report}");
    assert!(!report.contains(HUNTER) && !report.contains("somebody"), "{report}");
    for part in ["longtail ", "kernel ", "CPUs", "doctor ", "typed ", "X-Api-Key: (secret)"] {
        assert!(report.contains(part), "no '{part}' in {report}");
    }
}

#[test]
fn words_that_only_look_like_a_secret_are_repeated() {
    let receiver = Receiver::start();
    let place = receiver.address.to_string();
    let table = rows(include_str!("lookalikes.txt"), &place);
    assert!(table.len() >= 20);
    for words in table {
        let lab = Lab::new();
        let asked = load(&words, &place);
        let ended = end(lab.program(LONGTAIL).args(&asked).arg("--json"));
        let summary: serde_json::Value = serde_json::from_str(&ended.stdout).expect("a summary");
        let line = summary["command_line"].as_str().expect("a line");
        let again = shlex::split(line).expect("a shell reads it");
        assert_eq!(again[1..again.len() - 1], asked, "{words:?}");
    }
}

#[test]
fn kept_files_are_private_and_older_ones_are_made_private() {
    let receiver = Receiver::start();
    let lab = Lab::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    lab.write("data/longtail/studies/old.json", "{}");
    let old = lab.path("data/longtail/studies/old.json");
    for (path, open) in [
        (lab.path("data/longtail"), 0o755),
        (lab.path("data/longtail/studies"), 0o755),
        (old.clone(), 0o644),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
    }
    end(lab.program(LONGTAIL).args(["load", "-n1", &receiver.url()])).with_code(0);
    for folder in ["data/longtail", "data/longtail/studies"] {
        assert_eq!(mode(&lab.path(folder)), 0o700, "{folder}");
    }
    let mut files = Vec::new();
    contents(&lab.path("data/longtail"), &mut files);
    assert!(files.len() >= 2);
    for (name, _) in files {
        assert_eq!(mode(Path::new(&name)), 0o600, "{name}");
    }
}
