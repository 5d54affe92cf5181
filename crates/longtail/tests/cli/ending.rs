//! However longtail ends, no server stays; and where it can still say something, what was measured is kept.

use model::{Diagnostic, EndedBy, Outcome};
use probe::sockets;
use rustix::process::Signal;

use crate::lab::{LONGTAIL, Lab, Running, assert_conserved, free_port, has};

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
    sweep.until(|_| sockets::of_port(port).unwrap().open > 4);
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
    crate::clock::eventually(
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
fn a_signal_while_the_first_answer_is_awaited_ends_the_wait() {
    let (lab, port) = (Lab::new(), free_port());
    let words = format!(
        "sweep --slots 1 --url http://127.0.0.1:{port}/ --boot-timeout 600s -- {LONGTAIL} sink --listen 127.0.0.1:{port} \
         --no-answer 100%"
    );
    let mut sweep = lab.start(&words);
    sweep.until(|_| sockets::of_port(port).unwrap().open > 0);
    sweep.send(Signal::INT);
    sweep.end().with_code(130);
    lab.assert_nothing_left(port);
}

#[test]
fn a_signal_while_the_server_boots_sends_no_load() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    lab.write("slow.ru", "File.write('booting', ''); sleep 600; run lambda { |env| [200, {}, []] }\n");
    let mut sweep = lab.start_at(port, "sweep -t1:1 -r slow.ru");
    sweep.until(|_| lab.path("booting").exists());
    sweep.send(Signal::INT);
    let sweep = sweep.end().with_code(130);
    lab.assert_nothing_left(port);
    assert_eq!((sweep.stdout.as_str(), sweep.stderr.lines().count()), ("", 1), "{}", sweep.stderr);
    assert!(lab.studies().is_empty());
}
