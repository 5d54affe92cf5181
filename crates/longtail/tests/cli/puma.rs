//! `longtail sweep` against the Puma of this machine: its account is the client's, on every kind of socket, with longtail's app, with one
//! that names no worker, and with Rails. Skipped, with the reason, where there is no Puma, none with SSL, no Rails, or no IPv6.

use std::net::TcpListener;
use std::path::Path;

use model::forecast::ServiceTimeSource;
use model::run::ShareSource::{self, Header, Stats};
use model::{Diagnostic, Grade, SweepStudy};
use probe::sockets;

use crate::lab::{Lab, assert_conserved, can, end, free_port, has, in_a_window, ledger_warnings, none_is_empty, soaks};

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
            assert!(!sockets::of_unix(name).unwrap().listening);
        });
    }
}

#[test]
fn a_host_of_ones_own_is_in_the_certificate() {
    if !has_ssl() {
        return;
    }
    let lab = Lab::new();
    let mut sweep = lab.longtail("sweep -s ssl -t1:1 -d0.01 -R3 --multiples 1 --no-calibrate");
    end(sweep.env("PUMA_TEST_HOST4", "127.0.0.3")).with_code(0);
    let study = lab.study();
    assert!(study.server.url.starts_with("https://127.0.0.3:"), "{}", study.server.url);
    assert_eq!(study.runs[0].tally.counts.good(), 3);
}

/// A Puma that does as one built without OpenSSL: all of its own, but for that one fact.
const WITHOUT_SSL: &str = "\
require 'puma'
Puma.send(:remove_const, :HAS_SSL)
Puma::HAS_SSL = false
load Gem.bin_path('puma', 'puma')
";

#[test]
fn a_puma_without_ssl_is_named_before_any_load() {
    let modes = if has("puma") { ["", "-w2"].as_slice() } else { &[] };
    for mode in modes {
        let lab = Lab::new();
        lab.write("puma.rb", WITHOUT_SSL);
        let said =
            lab.run(&format!("sweep -s ssl4 {mode} -t1:1 --puma 'ruby puma.rb' -C -")).refused("built without SSL");
        assert!(said.contains("-s tcp4"), "{said}");
        lab.assert_nothing_left(0);
        assert!(lab.studies().is_empty());
    }
}

#[test]
fn slots_that_only_the_config_file_knows_are_those_that_are_driven() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("three.rb", "threads 1, 3\n");
    lab.run("sweep -C three.rb -d0.01 -R3 --multiples 1,2 --no-calibrate").with_code(0);
    let study = lab.study();
    assert_eq!(study.server.slots(), 3);
    assert_eq!(study.runs.iter().map(|run| run.connections).collect::<Vec<_>>(), [3, 6]);
    assert_eq!(ledger_warnings(&study), Vec::<&Diagnostic>::new());
}

#[test]
fn a_puma_that_dies_in_a_run_is_told_with_its_last_lines_and_what_was_done_is_kept() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let app = "n = 0\nrun lambda { |env| n += 1; (warn 'the app gives up'; exit! 7) if n > 50; [200, {}, ['ok']] }\n";
    lab.write("mortal.ru", app);
    let words = "sweep -t1:1 -d0.001 -r mortal.ru --path / -R15 --multiples 1,2,3,4 --no-calibrate";
    let sweep = lab.start_at(port, words).end().with_code(3);
    lab.assert_nothing_left(port);
    assert!(sweep.stderr.contains("  | the app gives up\n"), "{}", sweep.stderr);
    let ours: Vec<&str> = sweep.remarks().into_iter().filter(|line| !line.starts_with("  | ")).collect();
    let [kept, why] = ours[..] else { panic!("{ours:?}") };
    assert!(why.contains("exit code 7"), "{ours:?}");
    let file = lab.studies().pop().expect("a study");
    assert!(kept.ends_with(&format!("longtail report {}", file.display())), "{kept}");
    let study = lab.study();
    assert!(study.runs.len() >= 2, "one or two runs were whole");
    study.runs.iter().for_each(assert_conserved);
}
