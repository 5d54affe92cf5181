//! However longtail ends, no server stays; and where it can still say something, what was measured is kept.

use model::{Diagnostic, EndedBy, Outcome};
use probe::sockets;
use rustix::process::Signal;

use crate::lab::{Lab, Running, assert_conserved, free_port, has, of_sweep, read};

const PUMA_CLUSTER: &str = "-w2 -t2:2";

/// The server inside, and a single Puma and its cluster where there is one; with how many processes there are at least: longtail, its guard,
/// the server and its workers.
fn servers() -> impl Iterator<Item = (&'static str, usize)> {
    let pumas = if has("puma") { vec![("-t4:4", 3), (PUMA_CLUSTER, 5)] } else { Vec::new() };
    std::iter::once(("--server builtin -w2 -t2:2", 3)).chain(pumas)
}

/// A sweep in the middle of its first run, eight connections being served.
fn in_a_run(lab: &Lab, server: &str, port: u16) -> Running {
    let words = format!("sweep {server} -d0.02 --for 120s --warm-up 0 --multiples 2,3 --no-calibrate");
    let mut sweep = lab.start_at(port, &words);
    // More than the one that asks whether it is ready.
    sweep.until(|_| sockets::ServerListener::of_port(port).sample().unwrap().open > 4);
    sweep
}

#[test]
fn kill_9_takes_the_server_and_its_workers_along() {
    for (server, processes) in servers() {
        let (lab, port) = (Lab::new(), free_port());
        let sweep = in_a_run(&lab, server, port);
        assert!(lab.living().len() >= processes, "{:?}", lab.living());
        sweep.send(Signal::KILL);
        lab.assert_nothing_left(port);
    }
}

/// One signal: the run ends, what there is is reported and kept.
#[test]
fn a_signal_ends_the_run_and_keeps_it() {
    for ((server, _), signal) in servers().zip([Signal::HUP, Signal::INT, Signal::TERM]) {
        interrupted(server, signal);
    }
}

fn interrupted(server: &str, signal: Signal) {
    let (lab, port) = (Lab::new(), free_port());
    let sweep = in_a_run(&lab, server, port);
    sweep.send(signal);
    let sweep = sweep.end().with_code(130);
    lab.assert_nothing_left(port);

    let study = lab.study();
    assert!(study.interrupted);
    assert_eq!(study.runs.len(), 1, "the run that was interrupted, and none after it");
    let run = &study.runs[0];
    assert!(run.warnings.contains(&Diagnostic::Interrupted { by: EndedBy::User }), "{:?}", run.warnings);
    assert_conserved(run);
    let counts = &run.tally.counts;
    assert_eq!(counts.total(), counts.good() + counts.of(Outcome::InFlight), "{counts:?}");
    assert_eq!(sweep.remarks().len(), 1, "{}", sweep.stderr);
    assert_eq!(lab.run("report").with_code(0).stdout, sweep.stdout);
}

/// The second while Puma is waited for, which does not stop by itself: its requests never end.
#[test]
fn the_second_signal_leaves_at_once_and_says_on_disk_that_it_is_not_all() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let app = "run lambda { |env| sleep 600 unless env['HTTP_CONNECTION'] == 'close'; [200, {}, []] }\n";
    lab.write("stuck.ru", app);
    let mut sweep = in_a_run(&lab, &format!("{PUMA_CLUSTER} -r stuck.ru --path /"), port);
    sweep.send(Signal::INT);
    sweep.until(|_| lab.kept_runs() > 0);
    // One that comes right after the first is the first.
    testkit::clock::eventually(
        crate::lab::PATIENCE,
        || "it goes on".to_owned(),
        || {
            sweep.send(Signal::INT);
            sweep.has_ended().then_some(())
        },
    );
    let sweep = sweep.end().with_code(130);
    lab.assert_nothing_left(port);
    assert!(!sweep.stdout.contains("total time"), "it went the long way: {}", sweep.stdout);
    let study = lab.study();
    assert!(study.interrupted);
    assert_eq!(study.runs.len(), 1);
    assert!(study.runs[0].warnings.contains(&Diagnostic::Interrupted { by: EndedBy::User }));
    assert_conserved(&study.runs[0]);
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
    assert_eq!(
        studies.each_ref().map(|study| study.runs.iter().map(|run| run.connections).collect::<Vec<_>>()),
        [vec![1, 2], vec![6, 12]]
    );
    assert_ne!(studies[0].server.url, studies[1].server.url);
    assert_eq!(lab.studies().len(), 2);
    for run in studies.iter().flat_map(|study| &study.runs) {
        assert_conserved(run);
        assert_eq!(run.tally.counts.failed(), 0);
    }
}
