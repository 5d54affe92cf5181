//! `longtail sweep` against the Puma of this machine: its account is the client's, on every kind of socket, with longtail's app, with one
//! that names no worker, and with Rails. Skipped, with the reason, where there is no Puma, none with SSL, no Rails, or no IPv6.

use std::net::TcpListener;
use std::path::Path;

use model::forecast::ServiceTimeSource;
use model::run::ShareSource::{self, Header, Stats};
use model::{Diagnostic, Grade, SweepStudy};
use probe::sockets;

use crate::lab::{Lab, assert_conserved, can, free_port, has, in_a_window, ledger_warnings, none_is_empty, soaks};

pub(crate) fn has_ssl() -> bool {
    let asked = || Lab::new().program("ruby").args(["-rpuma", "-e", "exit Puma.ssl?"]).status();
    has("puma") && can(asked().is_ok_and(|status| status.success()), "this Puma was built without SSL")
}

pub(crate) fn has_ipv6() -> bool {
    can(TcpListener::bind("[::1]:0").is_ok(), "no IPv6 on this machine")
}

/// Sweeps at the slots and at twice as many connections: each answer came from a worker that is known by its process, both accounts are the
/// same, and nothing is left.
pub(crate) fn counted(words: &str, source: ShareSource) -> SweepStudy {
    in_a_window(|window| {
        let (lab, port) = (Lab::new(), free_port());
        lab.write("plain.ru", "run lambda { |env| sleep 0.01; [200, {}, ['ok']] }\n");
        let sweep =
            lab.start_at(port, &format!("sweep {words} {window} -t2:2 --multiples 1,2 --no-calibrate --inspect proc"));
        let sweep = sweep.end().with_code(0);
        assert_eq!(sweep.remarks().len(), 1, "where its study is, and no more: {}", sweep.stderr);
        lab.assert_nothing_left(port);
        let study = lab.study();
        assert!(sweep.stdout.contains(&study.server.url), "{}", sweep.stdout);
        assert!(
            words.contains("-s ") || study.server.url.contains(&format!("127.0.0.1:{port}")),
            "{}",
            study.server.url
        );
        assert_accounts(&study, words, source);
        none_is_empty(&study.runs).then_some(study)
    })
}

fn assert_accounts(study: &SweepStudy, words: &str, source: ShareSource) {
    let (server, workers) = (&study.server, if words.contains("-w2") { 2 } else { 1 });
    assert_eq!((server.name.as_str(), server.cluster, server.threads), ("Puma", workers == 2, 2));
    assert!(server.version.is_some() && server.runtime.is_some());
    assert_eq!(ledger_warnings(study), Vec::<&Diagnostic>::new(), "{words}");
    assert_eq!(study.runs.len(), 2);
    for run in &study.runs {
        assert_conserved(run);
        let (counts, tally) = (&run.tally.counts, &run.tally);
        assert_eq!(counts.good(), counts.total(), "{words}: {counts:?}");
        assert_eq!(run.connections, (run.multiple.unwrap() * f64::from(server.slots())) as u32);
        let is_of_another =
            |warning: &Diagnostic| matches!(warning, Diagnostic::WorkersChanged { .. } | Diagnostic::StillBusy { .. });
        assert!(!run.warnings.iter().any(is_of_another), "all was over, and nobody replaced: {:?}", run.warnings);
        let checks = &run.judgement.as_ref().unwrap().checks;
        let mut conserved = checks.iter().filter(|check| matches!(check, Diagnostic::Conservation { .. }));
        assert!(conserved.all(|check| check.grade() == Grade::Passed), "{checks:?}");
        assert_eq!(run.workers.len(), workers, "{:?}", run.workers);
        assert!(run.workers.iter().all(|share| share.source == source && share.worker.parse::<u32>().is_ok()));
        // By itself Puma counts what it answered, the warm-up too.
        let answers = if source == Header { counts.answered() } else { tally.all_answers() };
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), answers);
        assert_eq!(tally.per_worker.is_empty(), source == Stats);
        if words.contains("-k") {
            assert_eq!(tally.connections_opened, tally.all_requests());
        }
    }
    let pids = |n: usize| study.runs[n].workers.iter().map(|share| share.worker.clone()).collect::<Vec<_>>();
    assert_eq!(pids(0), pids(1), "the same server served both runs");
}

#[test]
fn a_single_puma_counts_what_we_count() {
    if has("puma") {
        counted("-d0.01 --worker-header X-Worker-PID", Header);
        counted("-d0.01 -k --generator-threads 2", Header);
        // Learning the service time is in no run's count.
        let study = counted("-r plain.ru", Stats);
        assert_eq!(study.service_time.unwrap().source, ServiceTimeSource::Measured);
    }
}

#[test]
fn two_workers_count_what_we_count() {
    if has("puma") {
        counted("-w2 -d0.01 --generator-threads 2", Header);
        counted("-w2 -d0.01 -k", Header);
        counted("-w2 -d0.01 -r plain.ru --path /", Stats);
    }
}

/// One process with a keep-alive, or two without; `make soak` has all four on each kind of socket.
fn counted_on(socket: &str, words: &str, assert_url: impl Fn(&str, &str)) {
    let rest = if soaks() { ["", "-k", "-w2", "-w2 -k --generator-threads 2"].as_slice() } else { &[] };
    for words in std::iter::once(&words).chain(rest) {
        let server = counted(&format!("-s {socket} {words} -d0.01"), Header).server;
        assert_url(&server.url, &server.command_line);
    }
}

#[test]
fn tls_keeps_the_account() {
    let is_tls_on = |address: &'static str| {
        move |url: &str, command: &str| {
            let port = url.strip_prefix(&format!("https://{address}:")).unwrap_or_else(|| panic!("{url}"));
            assert!(command.contains(&format!("ssl://{address}:{port}?key=")), "{command}");
        }
    };
    if has_ssl() {
        counted_on("ssl4", "", is_tls_on("127.0.0.1"));
        if has_ipv6() {
            counted_on("ssl6", "-w2 -k --generator-threads 2", is_tls_on("[::1]"));
        }
    }
}

#[test]
fn unix_sockets_keep_the_account() {
    if has("puma") {
        counted_on("unix", "-w2 -k --generator-threads 2", |url, _| {
            let path = url.strip_prefix("unix ").unwrap();
            assert!(path.starts_with('/') && !Path::new(path).exists(), "{path}");
        });
        counted_on("aunix", "", |url, _| {
            let name = url.strip_prefix("unix ").unwrap();
            assert!(name.starts_with("@longtail-") && name.len() >= 40, "{name}");
            assert!(!sockets::ServerListener::of(&sockets::unix_place(name)).sample().unwrap().listening);
        });
    }
}
