//! `longtail sweep` against the Puma of this machine. Skipped, with the reason, where there is none.

use model::run::ShareSource;
use model::{Diagnostic, Grade, Run, SweepStudy};

use crate::lab::{Lab, assert_conserved, free_port, has, in_a_window, ledger_warnings, none_is_empty, swept_twice};

/// Sweeps at the slots and at twice as many connections, and leaves nothing.
fn swept(words: &str) -> Option<SweepStudy> {
    has("puma").then(|| in_a_window(|window| Some(swept_for(words, window)).filter(|study| none_is_empty(&study.runs))))
}

fn swept_for(words: &str, window: &str) -> SweepStudy {
    let lab = Lab::new().with_quick_reports();
    lab.write("plain.ru", "run lambda { |env| sleep 0.01; [200, {}, ['ok']] }\n");
    let (port, _, study) = swept_twice(&lab, &format!("{words} {window}"));
    assert!(study.server.url.contains(&format!("127.0.0.1:{port}")), "{}", study.server.url);
    assert_eq!(study.server.name, "Puma");
    assert!(study.server.version.is_some() && study.server.runtime.is_some());
    for run in &study.runs {
        assert_eq!(run.connections, (run.multiple.unwrap() * f64::from(study.server.slots())) as u32);
    }
    study
}

/// Nothing was found that speaks against a worker's count.
fn assert_undoubted(study: &SweepStudy) {
    let changed = |run: &Run| run.warnings.iter().any(|warning| matches!(warning, Diagnostic::WorkersChanged { .. }));
    assert!(!study.runs.iter().any(changed), "nobody replaced a worker");
    let checks = |run: &Run| run.judgement.as_ref().unwrap().checks.clone();
    for check in study.runs.iter().flat_map(checks).filter(|check| matches!(check, Diagnostic::Conservation { .. })) {
        assert_eq!(check.grade(), Grade::Passed, "{check}");
    }
}

/// Each answer came from a worker that named itself, and Puma's own count is the same.
fn counts_are_known_by_pid(study: &SweepStudy, workers: usize) {
    assert_undoubted(study);
    for run in &study.runs {
        assert_eq!(run.workers.len(), workers, "{:?}", run.workers);
        assert!(run.workers.iter().all(|share| share.source == ShareSource::Header));
        assert!(run.workers.iter().all(|share| share.worker.parse::<u32>().is_ok()), "{:?}", run.workers);
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), run.tally.counts.answered());
    }
    let pids = |n: usize| study.runs[n].workers.iter().map(|share| share.worker.clone()).collect::<Vec<_>>();
    assert_eq!(pids(0), pids(1), "the same server served both runs");
}

/// Each share is what Puma counted between two readings; nothing else was sent meanwhile.
fn counts_are_pumas(study: &SweepStudy, workers: usize) {
    assert_undoubted(study);
    for run in &study.runs {
        assert!(run.tally.per_worker.is_empty());
        assert_eq!(run.workers.len(), workers, "{:?}", run.workers);
        assert!(run.workers.iter().all(|share| share.source == ShareSource::Stats));
        assert!(
            run.workers.iter().all(|share| share.worker.parse::<u32>().is_ok_and(|pid| pid > 1)),
            "{:?}",
            run.workers
        );
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), run.tally.all_answers());
    }
}

#[test]
fn a_single_puma_counts_what_we_count_with_keep_alive() {
    if let Some(study) = swept("-t2:2 -d0.01") {
        assert!(!study.server.cluster);
        counts_are_known_by_pid(&study, 1);
    }
}

#[test]
fn a_single_puma_counts_what_we_count_with_a_connection_a_request() {
    if let Some(study) = swept("-t2:2 -d0.01 -k --generator-threads 2") {
        counts_are_known_by_pid(&study, 1);
        for run in &study.runs {
            assert_eq!(run.tally.connections_opened, run.tally.all_requests());
        }
    }
}

#[test]
fn two_workers_count_what_we_count_with_keep_alive() {
    if let Some(study) = swept("-w2 -t2:2 -d0.01 --generator-threads 2") {
        assert!(study.server.cluster);
        assert_eq!((study.server.workers, study.server.threads), (2, 2));
        counts_are_known_by_pid(&study, 2);
    }
}

#[test]
fn two_workers_count_what_we_count_with_a_connection_a_request() {
    if let Some(study) = swept("-w2 -t2:2 -d0.01 -k") {
        counts_are_known_by_pid(&study, 2);
    }
}

#[test]
fn a_header_is_found_however_its_name_is_spelled() {
    if let Some(study) = swept("-t1:1 -d0.01 --worker-header X-Worker-PID") {
        counts_are_known_by_pid(&study, 1);
    }
}

#[test]
fn an_app_that_names_no_worker_is_counted_by_puma_in_single_mode() {
    if let Some(study) = swept("-t2:2 -d0.01 -r plain.ru --path /") {
        counts_are_pumas(&study, 1);
    }
}

#[test]
fn an_app_that_names_no_worker_is_counted_by_puma_in_cluster_mode() {
    if let Some(study) = swept("-w2 -t2:2 -d0.01 -r plain.ru --path /") {
        counts_are_pumas(&study, 2);
    }
}

#[test]
fn learning_the_service_time_is_in_no_runs_count() {
    if let Some(study) = swept("-t2:2 -r plain.ru") {
        counts_are_pumas(&study, 1);
        let forecast = study.runs[0].forecast.as_ref().unwrap();
        assert_eq!(forecast.service_time_source, model::forecast::ServiceTimeSource::Measured);
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
    let Some(lab) = Lab::with("puma") else { return };
    let app = "n = 0\nrun lambda { |env| n += 1; (warn 'the app gives up'; exit! 7) if n > 50; [200, {}, ['ok']] }\n";
    lab.write("mortal.ru", app);
    let port = free_port();
    let words = "sweep -t1:1 -d0.001 -r mortal.ru --path / -R15 --multiples 1,2,3,4 --no-calibrate";
    let sweep = lab.start_at(port, words);
    let sweep = sweep.end().with_code(3);
    lab.assert_nothing_left(port);
    assert!(sweep.stderr.contains("  | the app gives up\n"), "{}", sweep.stderr);
    let ours: Vec<&str> = sweep.remarks().into_iter().filter(|line| !line.starts_with("  | ")).collect();
    let [kept, why] = ours[..] else { panic!("{ours:?}") };
    assert!(why.contains("exit code 7"), "{ours:?}");
    let file = lab.studies().pop().expect("a study");
    assert!(kept.ends_with(&format!("longtail report {}", file.display())), "{kept}");
    let study = lab.study();
    assert!(study.runs.len() >= 2, "one or two runs were whole");
    for run in &study.runs {
        assert_conserved(run);
    }
}
