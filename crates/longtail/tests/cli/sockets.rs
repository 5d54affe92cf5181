//! `longtail sweep -s` on each kind of socket against the Puma of this machine: the same account, whatever is in between.
//! Skipped, with the reason, where there is no Puma, or none with SSL, or no IPv6.

use std::net::TcpListener;
use std::path::Path;

use model::run::ShareSource;
use model::{Diagnostic, ServerFacts};
use probe::sockets;

use crate::lab::{Lab, Running, can, has, in_a_window, none_is_empty, soaks, swept_twice};

/// A Puma that does as one built without OpenSSL: all of its own, but for that one fact.
const WITHOUT_SSL: &str = "\
require 'puma'
Puma.send(:remove_const, :HAS_SSL)
Puma::HAS_SSL = false
load Gem.bin_path('puma', 'puma')
";

pub(crate) fn has_ssl() -> bool {
    let asked = || Lab::new().program("ruby").args(["-rpuma", "-e", "exit Puma.ssl?"]).status();
    has("puma") && can(asked().is_ok_and(|status| status.success()), "this Puma was built without SSL")
}

pub(crate) fn has_ipv6() -> bool {
    can(TcpListener::bind("[::1]:0").is_ok(), "no IPv6 on this machine")
}

/// Where it listened, as the study says it: what follows `unix `.
fn unix_address(server: &ServerFacts) -> &str {
    server.url.strip_prefix("unix ").unwrap_or_else(|| panic!("{}", server.url))
}

/// Sweeps one process with a keep-alive, and two without, and finds the same count on both sides and nothing left; `make soak` the others too.
fn swept(socket: &str, assert_url: impl Fn(&ServerFacts, u16)) {
    let kept = ["", "-w2 -k --generator-threads 2"];
    let rest = if soaks() { ["-w2", "-k"].as_slice() } else { &[] };
    for words in kept.iter().chain(rest) {
        in_a_window(|window| swept_for(socket, &format!("{words} {window}"), &assert_url).then_some(()));
    }
}

/// Whether there were requests in each run; all that is asserted holds without any too.
fn swept_for(socket: &str, words: &str, assert_url: impl Fn(&ServerFacts, u16)) -> bool {
    let lab = Lab::new();
    let (port, stdout, study) = swept_twice(&lab, &format!("-s {socket} {words} -t2:2 -d0.01"));
    assert_url(&study.server, port);
    assert!(stdout.contains(&study.server.url), "{stdout}");
    let workers = if words.contains("-w2") { 2 } else { 1 };
    for run in &study.runs {
        let counts = &run.tally.counts;
        assert_eq!(counts.good(), counts.total(), "{words}: {counts:?}");
        assert_eq!(run.workers.len(), workers, "{:?}", run.workers);
        assert!(run.workers.iter().all(|share| share.source == ShareSource::Header));
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), counts.answered());
        let busy = run.warnings.iter().any(|warning| matches!(warning, Diagnostic::StillBusy { .. }));
        assert!(!busy, "all of it was over: {:?}", run.warnings);
        if words.contains(" -k ") {
            assert_eq!(run.tally.connections_opened, run.tally.all_requests());
        }
    }
    none_is_empty(&study.runs)
}

fn is_tls_on(address: &'static str) -> impl Fn(&ServerFacts, u16) {
    move |server, port| {
        assert_eq!(server.url, format!("https://{address}:{port}"));
        assert!(server.command_line.contains(&format!("ssl://{address}:{port}?key=")), "{}", server.command_line);
    }
}

fn is_file(server: &ServerFacts, _: u16) {
    let path = unix_address(server);
    assert!(path.starts_with('/') && !Path::new(path).exists(), "{path}");
    assert!(!sockets::of_unix(path).unwrap().listening);
}

fn is_abstract(server: &ServerFacts, _: u16) {
    let name = unix_address(server);
    assert!(name.starts_with("@longtail-") && name.len() >= 40, "{name}");
    assert!(!sockets::of_unix(name).unwrap().listening);
}

#[test]
fn tls_over_ipv4_keeps_the_account() {
    if has_ssl() {
        swept("ssl4", is_tls_on("127.0.0.1"));
    }
}

#[test]
fn tls_over_ipv6_keeps_the_account() {
    if has_ssl() && has_ipv6() {
        swept("ssl6", is_tls_on("[::1]"));
    }
}

#[test]
fn unix_sockets_keep_the_account() {
    if has("puma") {
        swept("unix", is_file);
        swept("aunix", is_abstract);
    }
}

#[test]
fn a_host_of_ones_own_is_in_the_certificate() {
    if !has_ssl() {
        return;
    }
    let lab = Lab::new();
    let mut sweep = lab.longtail("sweep -s ssl -t1:1 -d0.01 -R3 --multiples 1 --no-calibrate");
    Running::start(sweep.env("PUMA_TEST_HOST4", "127.0.0.3")).end().with_code(0);
    let study = lab.study();
    assert!(study.server.url.starts_with("https://127.0.0.3:"), "{}", study.server.url);
    assert_eq!(study.runs[0].tally.counts.good(), 3);
}

#[test]
fn a_puma_without_ssl_is_named_before_any_load() {
    if !has("puma") {
        return;
    }
    for mode in ["", "-w2"] {
        let lab = Lab::new();
        lab.write("puma.rb", WITHOUT_SSL);
        let mut sweep = lab.longtail(&format!("sweep -s ssl4 {mode} -t1:1"));
        let line = Running::start(sweep.args(["--puma", "ruby puma.rb", "-C", "-"])).end().refused("built without SSL");
        assert!(line.contains("-s tcp4"), "{line}");
        lab.assert_nothing_left(0);
        assert!(lab.studies().is_empty());
    }
}

#[test]
fn no_other_server_stands_in_where_a_socket_of_pumas_was_asked_for() {
    let lab = Lab::new();
    let nowhere = lab.path("nothing-here");
    let sweep = Running::start(lab.longtail("sweep -s unix").env("PATH", nowhere)).end().with_code(2);
    assert!(sweep.stderr.contains("gem install puma"), "{}", sweep.stderr);
}
