//! `longtail sweep` against the server inside longtail: what is printed, what is kept, what can be printed again.

use std::fs;

use model::run::ShareSource;
use model::{ServerKind, SweepStudy};

use crate::lab::{Lab, assert_conserved, end, ledger_warnings, of_sweep, read};

const QUICK: &str = "sweep --server builtin -w2 -t2:2 -d0.01 --for 200ms --warm-up 0 --multiples 0.5,1,2";

fn connections(study: &SweepStudy) -> Vec<u32> {
    study.runs.iter().map(|run| run.connections).collect()
}

#[test]
fn a_sweep_is_kept_and_report_prints_the_same() {
    let lab = Lab::new();
    let sweep = lab.run(&format!("{QUICK} -o kept.study.json")).with_code(0);
    let kept = fs::read_to_string(lab.path("kept.study.json")).unwrap();
    let stored = lab.studies();
    assert!(sweep.stderr.ends_with(&format!("longtail: saved as {}\n", stored[0].display())), "{}", sweep.stderr);
    assert_eq!(sweep.stderr.lines().count(), 4, "a line a run: {}", sweep.stderr);
    assert_eq!(fs::read_to_string(&stored[0]).unwrap(), kept);

    let study = lab.study();
    assert_eq!(connections(&study), [2, 4, 8]);
    assert!(!study.interrupted);
    for run in &study.runs {
        assert_conserved(run);
        assert_eq!(run.tally.counts.failed(), 0);
        let shares: Vec<_> = run.workers.iter().map(|share| (share.worker.as_str(), share.source)).collect();
        assert_eq!(shares, [("0", ShareSource::Header), ("1", ShareSource::Header)]);
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), run.tally.counts.answered());
    }
    assert_eq!(ledger_warnings(&study), Vec::<&model::Diagnostic>::new());

    assert_eq!(lab.run("report kept.study.json").with_code(0).stdout, sweep.stdout);
    assert_eq!(lab.run("report").with_code(0).stdout, sweep.stdout);
    assert_eq!(lab.run("report --format study").with_code(0).stdout, kept);
}

#[test]
fn ipv6_is_swept_where_the_machine_has_it() {
    if crate::puma::has_ipv6() {
        let lab = Lab::new();
        lab.run("sweep --server builtin -t1:1 -d0.001 -R3 --multiples 1,2 --no-calibrate -s tcp6").with_code(0);
        let study = lab.study();
        assert!(study.server.url.starts_with("http://[::1]:"), "{}", study.server.url);
        assert!(study.runs.iter().all(|run| run.tally.counts.failed() == 0));
    }
}

#[test]
fn two_sweeps_at_once_do_not_disturb_each_other() {
    let lab = Lab::new();
    let start = |n: usize, words: &str| {
        let words = format!("{words} --multiples 1,2 -d0.01 --for 400ms --warm-up 0 --no-calibrate -o {n}.study.json");
        lab.start(&format!("sweep --server builtin {words}"))
    };
    let running = [start(0, "-w1 -t1:1"), start(1, "-w2 -t3:3")];
    let studies = [0, 1].map(|n| format!("{n}.study.json"));
    for (sweep, file) in running.into_iter().zip(&studies) {
        let sweep = sweep.end().with_code(0);
        assert_eq!(lab.run(&format!("report {file}")).with_code(0).stdout, sweep.stdout);
    }
    let studies = studies.map(|file| of_sweep(read(&lab.path(&file))));
    assert_eq!(studies.each_ref().map(connections), [vec![1, 2], vec![6, 12]]);
    assert_ne!(studies[0].server.url, studies[1].server.url);
    assert_eq!(lab.studies().len(), 2);
    for run in studies.iter().flat_map(|study| &study.runs) {
        assert_conserved(run);
        assert_eq!(run.tally.counts.failed(), 0);
    }
}

#[test]
fn the_last_study_is_the_one_that_was_made_last() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("data/longtail/studies")).unwrap();
    let older = report::json::write(&testkit::study::canonical().into());
    lab.write("data/longtail/studies/2001-02-03T04-05-06Z-sweep-7.json", &older);
    lab.write("data/longtail/studies/notes.txt", "not a study");
    let sweep = lab.run("sweep --server builtin -t1:1 -d0.001 -R3 --multiples 1 --no-calibrate").with_code(0);
    assert_eq!(lab.run("report").with_code(0).stdout, sweep.stdout);
}

#[test]
fn without_puma_the_server_inside_longtail_stands_in() {
    let lab = Lab::new();
    let mut sweep = lab.longtail("sweep -w2 -t1:1 -d0.001 -R3 --multiples 1 --no-calibrate");
    let sweep = end(sweep.env("PATH", lab.path("nothing-here"))).with_code(0);
    let notes = sweep.remarks();
    assert!(notes.len() == 2 && notes[0].contains("no Puma found") && notes[1].contains("saved as"), "{notes:?}");
    let study = lab.study();
    assert_eq!(study.plan.server.kind, ServerKind::Builtin);
    assert!(study.command_line.contains("--server builtin"), "{}", study.command_line);
}

#[test]
fn a_count_ends_each_run_after_exactly_so_many_requests_and_the_printed_command_line_repeats_the_sweep() {
    let lab = Lab::new();
    let sweep =
        "sweep --server builtin -w2 -t1:2 -d1ms -R3 -k --multiples 0.5,1.5 --no-calibrate --generator-threads 2";
    lab.run(&format!("{sweep} --repeat 3 -o first.study.json")).with_code(0);
    let first = of_sweep(read(&lab.path("first.study.json")));
    let words = first.command_line.strip_prefix("longtail ").unwrap();
    lab.run(&format!("{words} -o second.study.json")).with_code(0);
    let second = of_sweep(read(&lab.path("second.study.json")));
    assert_eq!((&second.plan, &second.command_line), (&first.plan, &first.command_line));
    // Every repeat does the whole list.
    let done: Vec<_> = first.runs.iter().map(|run| (run.repeat, run.connections)).collect();
    assert_eq!(done, [(1, 2), (1, 6), (2, 2), (2, 6), (3, 2), (3, 6)]);
    for run in first.runs.iter().chain(&second.runs) {
        assert_conserved(run);
        assert!(run.tally.per_connection.iter().all(|good| *good == 3));
        let requests = u64::from(run.connections) * 3;
        assert_eq!(
            (run.tally.counts.total(), run.tally.connections_opened, run.tally.unmeasured.total()),
            (requests, requests, 0)
        );
    }
}
