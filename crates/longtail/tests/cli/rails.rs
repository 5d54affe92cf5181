//! The Rails app in a bundle, and started by hand; `sweep --app rails` is in `scenarios/puma.txt`.
//! Skipped, with the reason, without Rails.

use std::path::Path;

use model::{Clock as _, Diagnostic, Nanos};
use testkit::clock::REAL_CLOCK;

use crate::lab::{Lab, Running, can, free_port, get, has};
use crate::scenarios::is_there;
use crate::scenarios::laws::ledger_warnings;

const THREADS: usize = 5;

#[test]
fn a_bundle_with_rails_is_used() {
    if !is_there("rails") || !has("bundle") {
        return;
    }
    let lab = Lab::new();
    lab.write("Gemfile", "gem 'railties'\ngem 'puma'\n");
    let bundle = lab
        .program("bundle")
        .args(["install", "--local"])
        .env("BUNDLE_USER_HOME", lab.path("bundle"))
        .output();
    let bundle = bundle.unwrap();
    if !can(bundle.status.success(), "bundler cannot make a bundle of the gems that are installed")
    {
        return;
    }
    lab.run("sweep --app rails -t2:2 -d0.01 -R5 --multiples 1 --no-calibrate").with_code(0);
    let study = lab.study();
    assert!(
        study.server.command_line.contains(" bundle exec puma "),
        "{}",
        study.server.command_line
    );
    assert_eq!(study.runs[0].tally.counts.good(), 10);
    assert_eq!(ledger_warnings(&study), Vec::<&Diagnostic>::new());
}

/// The app of this repository, started as its README says, without a Rails environment. It sleeps
/// as long as requested and names the worker, answers bad requests with one line, and serves
/// requests beyond its threads in order.
#[test]
fn the_app_sleeps_as_long_as_requested() {
    if !is_there("rails") {
        return;
    }
    let lab = Lab::new();
    let port = free_port();
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/rails/config.ru");
    let puma = Running::puma(&lab, port, &app, &format!("-t{THREADS}:{THREADS}"));
    for target in ["/sleep?ms=0", "/sleep?ms=12", "/sleep?ms=1.5"] {
        let (head, body) = get(port, target).unwrap();
        assert!(head.starts_with("HTTP/1.0 200 ") && body == "ok", "{target}: {head} {body}");
        assert!(head.contains(&format!("\r\nx-worker-pid: {}\r\n", puma.pid())), "{head}");
    }
    // Fractions of a second count. On a busy machine a sleep may be longer, but never shorter.
    let asked = REAL_CLOCK.now();
    get(port, "/sleep?ms=999").unwrap();
    assert!(REAL_CLOCK.now() - asked >= Nanos::from_millis(999), "it did not sleep");
    let bad = "?ms= ?ms=x ?ms=-1 ?ms=1e3 ?ms=1%0a ?ms[]=1 ?ms[a]=1 ?ms=99999999999 ?ms=%ff ?%";
    for query in bad.split(' ').chain([""]) {
        let (head, body) = get(port, &format!("/sleep{query}")).unwrap();
        assert!(head.starts_with("HTTP/1.0 400 "), "{query}: {head}");
        assert!(body.ends_with('\n') && body.lines().count() == 1, "{query}: {body:?}");
    }
    for target in ["/", "/sleepy?ms=1", "/sleep/1"] {
        let (head, body) = get(port, target).unwrap();
        assert!(head.starts_with("HTTP/1.0 404 ") && body.lines().count() == 1, "{target}: {head}");
    }
    assert_eq!(
        puma.output_so_far().lines().last(),
        Some("Use Ctrl-C to stop"),
        "and nothing is logged"
    );
    for rate in [25, 50] {
        assert_served_in_order(
            &lab,
            &format!(
                "attack --target-throughput={rate} -n 40 --url=http://127.0.0.1:{port}/sleep?ms=200"
            ),
        );
    }
}

/// Checks that requests begin in order, however long each takes: when one completes, all earlier
/// ones have begun, and at most those of the other threads are unfinished.
fn assert_served_in_order(lab: &Lab, attack: &str) {
    let attack = lab.run(attack).with_code(0);
    let number = |line: &str| -> Option<usize> {
        let (number, rest) = line.strip_prefix("request ")?.split_once(' ')?;
        assert!(rest.starts_with("status=200 latency="), "{line}");
        Some(number.parse().unwrap())
    };
    let numbers: Vec<usize> = attack.stdout.lines().filter_map(number).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=40).collect::<Vec<_>>(), "each once");
    for (place, number) in numbers.iter().enumerate() {
        assert!(
            (place + 1).abs_diff(*number) < THREADS,
            "request {number} was the {}th: {numbers:?}",
            place + 1
        );
    }
}
