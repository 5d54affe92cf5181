//! What a probe recognises of a real server's order of service; what a sweep does is in `situations/theory.rs`.

use model::theory::Resemblance;
use model::{Diagnostic, Discipline, Grade, Run};

use crate::lab::{Lab, can, free_port, major};

/// Whether a lane waited for a processor, or the hypervisor took some, for longer than is passed over.
pub(crate) fn shared_its_processors(run: &Run) -> bool {
    let checks = run.judgement.iter().flat_map(|judgement| &judgement.checks);
    checks
        .filter(|check| matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. }))
        .any(|check| check.grade() > Grade::Passed)
}

#[test]
fn a_probe_tells_keep_alive_from_a_connection_for_each_request() {
    let Some(lab) = Lab::with("puma") else { return };
    let words = "sweep -w1 -t2:2 -d0.05 -R3 --multiples 1 --no-calibrate --probe-discipline";
    let ended = lab.start_at(free_port(), words).end().with_code(0);
    let study = lab.study();
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("probe ")).count(), 1, "{}", ended.stdout);
    assert_eq!(study.probes.iter().map(|probe| probe.keep_alive).collect::<Vec<_>>(), [true, false]);
    let looks_like = |at: usize| match study.probes[at].theory.as_ref().unwrap().resemblance() {
        Resemblance::These(these) | Resemblance::ShapeOf(these) => these,
        _ => Vec::new(),
    };
    assert!(!looks_like(1).contains(&Discipline::Turns), "{:?}", study.probes[1]);
    if can((1..=6).contains(&major(&study.server)), "this Puma is of another age") {
        assert!(!looks_like(0).contains(&Discipline::Shared), "{:?}", study.probes[0]);
    }
    // What was probed is in both ledgers, and in no run.
    assert_eq!(crate::lab::ledger_warnings(&study), Vec::<&model::Diagnostic>::new());
    assert_eq!(study.runs[0].tally.counts.total(), 6);
}
