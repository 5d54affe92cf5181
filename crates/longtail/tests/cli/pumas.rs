//! What must hold for every version of Puma: it starts, becomes ready, has its slots, counts its
//! workers' requests, serves in the expected order, fits the forecast, stops, and leaves nothing.
//!
//! `LONGTAIL_PUMAS` names checkouts, separated by blanks (`make test-pumas DIRS="…"`). Without it,
//! `make soak` tests the Puma on PATH; `make test` covers that one in `situations`. Assertions
//! about times allow large factors; if the machine was too noisy even for those, the test is
//! skipped with a message.

use std::io::Write as _;
use std::path::Path;

use judge::Grade;
use model::theory::Resemblance;
use model::{Diagnostic, Discipline, Run, SweepStudy};

use crate::lab::{Lab, can, end, free_port, has, major, soaks};
use crate::scenarios::laws::{assert_agreed, assert_conserved, ledger_warnings};

/// The commands of the Pumas under test, as `--puma` takes them.
fn pumas() -> Vec<String> {
    let dirs = std::env::var("LONGTAIL_PUMAS").unwrap_or_default();
    let of_checkout = |dir: &str| {
        assert!(
            Path::new(dir).join("lib/puma.rb").is_file(),
            "LONGTAIL_PUMAS: {dir} is not a checkout of Puma"
        );
        format!("ruby -I{dir}/lib {dir}/bin/puma")
    };
    let given: Vec<String> = dirs.split_ascii_whitespace().map(of_checkout).collect();
    let is_on_path = given.is_empty()
        && (soaks() || std::env::var_os("LONGTAIL_PUMAS").is_some())
        && has("puma");
    if is_on_path { vec!["puma".to_owned()] } else { given }
}

/// A sweep of two workers with two threads each and an app that sleeps 100 ms, at 1.5 and 3 times
/// the slots.
fn swept(puma: &str, words: &str) -> SweepStudy {
    let lab = Lab::new();
    let port = free_port();
    lab.write("turns_of_3.rb", "max_fast_inline 3\n");
    lab.write("closes.rb", "workers 2\nthreads 2, 2\nqueue_requests false\n");
    let words = format!(
        "sweep {words} -d0.1 --for 5s --warm-up 1500ms --multiples 1.5,3 --no-calibrate --puma"
    );
    let mut command = lab.longtail(&words);
    end(command.arg(puma).env("PUMA_TEST_PORT", port.to_string())).with_code(0);
    lab.assert_nothing_left(port);
    lab.study()
}

/// Checks what holds however noisy the machine is.
fn assert_sound(study: &SweepStudy) {
    let server = &study.server;
    assert_eq!(
        (server.name.as_str(), server.workers, server.threads),
        ("Puma", 2, 2),
        "{server:?}"
    );
    assert!(server.version.is_some() && server.cluster && study.runs.len() == 2);
    assert_agreed(study);
    for run in &study.runs {
        assert_conserved(run);
        assert_eq!(run.tally.counts.failed(), 0);
        assert_eq!(run.workers.len(), 2, "{:?}", run.workers);
        let changed = |warning: &Diagnostic| matches!(warning, Diagnostic::WorkersChanged { .. });
        assert!(!run.warnings.iter().any(changed), "no worker was replaced");
        assert!(run.theory.is_some());
    }
}

/// The order of service according to the table in docs/pumas.md, independently of the program.
fn by_the_book(major: u32, is_kept: bool) -> Discipline {
    match (major, is_kept) {
        (..=6, true) => Discipline::Turns,
        (..=6, false) => Discipline::Shared,
        _ => Discipline::Split,
    }
}

/// Prints what a row of that page needs, for versions that it lacks.
fn print(study: &SweepStudy, words: &str) {
    let ms = |run: &Run, share| {
        let time = run.response_time(share).time();
        time.map_or_else(|| "-".to_owned(), |time| format!("{:.0}", time.as_secs_f64() * 1e3))
    };
    let version = study.server.version.as_deref().unwrap_or("?");
    for run in &study.runs {
        let theory = run.theory.as_ref().unwrap();
        let held =
            theory.by_worker.as_ref().map_or_else(|| "-".to_owned(), |held| format!("{held:?}"));
        let line = format!(
            "Puma {version} {words} {:.1}x: {:.1} req/s, p50 {} p95 {} p99 {} ms, held {held}, {:?}\n",
            run.in_multiples(),
            run.completed_rate(),
            ms(run, 0.5),
            ms(run, 0.95),
            ms(run, 0.99),
            theory.resemblance(),
        );
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Whether the runs look like the expected order of service, and its forecast holds in each of
/// them.
fn holds(study: &SweepStudy, expected: Discipline) -> bool {
    let looks_like = |run: &Run| match run.theory.as_ref().unwrap().resemblance() {
        Resemblance::These(these) => these.contains(&expected),
        _ => false,
    };
    study.runs.iter().all(looks_like)
}

/// Sweeps until the forecast holds, at most three times. If it never holds and the machine was
/// disturbed, the test is skipped with a message.
fn assert_contract(puma: &str, words: &str, is_kept: bool) {
    let mut was_disturbed = false;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let study = swept(puma, words);
        assert_sound(&study);
        print(&study, words);
        let expected = by_the_book(major(&study.server), is_kept);
        for run in &study.runs {
            assert_eq!(run.theory.as_ref().unwrap().expected, Some(expected), "{puma} {words}");
            // This holds on a noisy machine, too: in turns, few requests wait most of the time;
            // otherwise all wait about equally long.
            let times = &run.tally.response_time;
            let median = times.quantile(0.5).unwrap();
            let mean = times.mean().unwrap();
            if run.multiple > Some(2.0) {
                assert_eq!(
                    median * 2 < mean,
                    expected == Discipline::Turns,
                    "median {median}, mean {mean}: {puma} {words}"
                );
            }
        }
        if holds(&study, expected) {
            return;
        }
        was_disturbed |= study.runs.iter().any(shared_its_processors);
        seen.push(study.inferred_discipline());
    }
    let is_quiet = can(!was_disturbed, "the machine was too noisy for a forecast to hold");
    assert!(!is_quiet, "{puma} {words}: it looks like {seen:?}");
}

#[test]
fn every_puma_with_keep_alive_fits_the_forecast() {
    for puma in pumas() {
        assert_contract(&puma, "-w2 -t2:2", true);
    }
}

#[test]
fn every_puma_without_keep_alive_fits_the_forecast() {
    for puma in pumas() {
        assert_contract(&puma, "-w2 -t2:2 -k", false);
    }
}

#[test]
fn the_forecast_uses_every_pumas_config_file() {
    for puma in pumas() {
        // Without the reactor there is no keep-alive, whatever the client asks for. Workers and
        // threads come only from the file.
        let study = swept(&puma, "-C closes.rb");
        assert_sound(&study);
        print(&study, "-C closes.rb");
        let settings = study.server.settings.as_ref().expect("Puma itself reported its settings");
        assert_eq!(settings.queue_requests, Some(false));
        let is_gated = major(&study.server) > 6 && settings.waits_until_not_full == Some(true);
        let expected =
            if is_gated { Discipline::Shared } else { by_the_book(major(&study.server), false) };
        for run in &study.runs {
            assert_eq!(run.theory.as_ref().unwrap().expected, Some(expected), "{puma}");
            let closed = run.tally.closed_by_server + u64::from(run.connections);
            assert!(
                closed >= run.tally.all_responses(),
                "each connection was closed after one response"
            );
        }
        if major(&study.server) <= 6 {
            let study = swept(&puma, "-w2 -t2:2 -C turns_of_3.rb");
            assert_sound(&study);
            print(&study, "-C turns_of_3.rb");
            assert!(
                study.runs.iter().all(|run| run.theory.as_ref().unwrap().turn == Some(3)),
                "{puma}"
            );
        }
    }
}

/// Whether a lane waited for a CPU, or the hypervisor took CPU time, for long enough to matter.
fn shared_its_processors(run: &Run) -> bool {
    let checks = run.judgement.iter().flat_map(|judgement| &judgement.checks);
    checks
        .filter(|check| matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. }))
        .any(|check| judge::grade(check) > Grade::Passed)
}

#[test]
fn a_probe_tells_keep_alive_from_a_connection_for_each_request() {
    let Some(lab) = Lab::with("puma") else { return };
    let words = "sweep -w1 -t2:2 -d0.05 -R3 --multiples 1 --no-calibrate --probe-discipline";
    let ended = lab.start_at(free_port(), words).end().with_code(0);
    let study = lab.study();
    assert_eq!(
        ended.stdout.lines().filter(|line| line.starts_with("probe ")).count(),
        1,
        "{}",
        ended.stdout
    );
    assert_eq!(
        study.probes.iter().map(|probe| probe.keep_alive).collect::<Vec<_>>(),
        [true, false]
    );
    let looks_like = |at: usize| match study.probes[at].theory.as_ref().unwrap().resemblance() {
        Resemblance::These(these) | Resemblance::ShapeOf(these) => these,
        _ => Vec::new(),
    };
    assert!(!looks_like(1).contains(&Discipline::Turns), "{:?}", study.probes[1]);
    if can((1..=6).contains(&major(&study.server)), "this version of Puma has no turns") {
        assert!(!looks_like(0).contains(&Discipline::Shared), "{:?}", study.probes[0]);
    }
    // The probe's requests are in both ledgers, but in no run.
    assert_eq!(ledger_warnings(&study), Vec::<&Diagnostic>::new());
    assert_eq!(study.runs[0].tally.counts.total(), 6);
}
