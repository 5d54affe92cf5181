//! Whether a study ended early.

use crate::named_runs::name_in_sweep;
use model::{CapacityStudy, Diagnostic, EndedBy, Nanos, Run, Study, SweepStudy, number};

/// Whether the user, or the end of the server, cut the study short.
pub fn is_cut_short(study: &Study) -> bool {
    is_interrupted(study) || study.runs().iter().any(|run| is_shorter(run))
}

/// Whether the user, or the end of the server, ended this run early.
pub fn is_shorter(run: &Run) -> bool {
    run.warnings.iter().any(|warning| matches!(warning, Diagnostic::Interrupted { .. }))
}

/// Whether the user interrupted it. Always false for a load, whose command knows who ended it.
pub(crate) fn is_interrupted(study: &Study) -> bool {
    match study {
        Study::Sweep(study) => study.interrupted,
        Study::Bodies(study) => study.interrupted,
        Study::Compare(study) => study.interrupted,
        Study::Capacity(study) => study.interrupted,
        Study::Load(_) => false,
    }
}

/// How many of its runs a sweep has, where there are fewer than planned: `2 of 5 runs`.
pub fn runs_so_far(study: &SweepStudy) -> Option<String> {
    let made = study.runs.len();
    let planned = study.plan.runs();
    (made < planned).then(|| format!("{made} of {planned} runs"))
}

/// Whether a sweep ended early, and nobody noted why: it was killed, or still runs.
pub fn is_unfinished(study: &SweepStudy) -> bool {
    let is_by_server =
        |warning: &Diagnostic| matches!(warning, Diagnostic::Interrupted { by: EndedBy::Server });
    let mut warnings = study.runs.iter().flat_map(|run| &run.warnings);
    !study.interrupted && runs_so_far(study).is_some() && !warnings.any(is_by_server)
}

/// How much of a study there is, if it ended early: `8 of 30 s`, `2 of 5 runs`, `0:42 of 3:00`; empty
/// if there is no plan to compare it with. `None` if it did not end early.
pub(crate) fn so_far(study: &Study) -> Option<String> {
    match study {
        Study::Sweep(sweep) if is_unfinished(sweep) => runs_so_far(sweep),
        Study::Load(load) if load.interrupted => {
            let measured = load.run.measured;
            match load.plan.measured() {
                Some(planned) if measured >= planned => None,
                planned => Some(planned.map(|all| of_planned(measured, all)).unwrap_or_default()),
            }
        }
        Study::Load(_) => None,
        _ if !is_interrupted(study) => None,
        Study::Sweep(sweep) => Some(runs_so_far(sweep).unwrap_or_default()),
        Study::Capacity(search) => search_so_far(search),
        Study::Bodies(_) | Study::Compare(_) => Some(String::new()),
    }
}

/// The same of a search for a capacity.
pub(crate) fn search_so_far(search: &CapacityStudy) -> Option<String> {
    let [made, planned] = [search.total_time, search.plan.budget].map(number::minutes);
    search.interrupted.then(|| {
        if search.sizes.is_empty() { format!("{made} of {planned}") } else { String::new() }
    })
}

/// `8.02 of 30 s`
fn of_planned(measured: Nanos, planned: Nanos) -> String {
    let measured = number::length(measured);
    let planned = number::span(planned);
    // `8.02 of 30 s` rather than `8.02 s of 30 s`.
    let is_in_seconds = planned.ends_with(" s");
    let measured = measured.strip_suffix(" s").filter(|_| is_in_seconds).unwrap_or(&measured);
    format!("{measured} of {planned}")
}

/// The conclusions of a study in one paragraph, and how much of it they are about if it ended early. Of a
/// load that comes first: `So far (8.02 of 60 s): The server keeps up …`. Of a sweep it comes after the
/// first sentence, which says how much the server does and what limits it.
pub fn sentence_so_far(study: &Study, mut conclusions: Vec<String>) -> String {
    conclusions.retain(|sentence| !sentence.is_empty());
    if let Study::Sweep(sweep) = study {
        let after = conclusions.len().min(1);
        conclusions.splice(after..after, runs_made(sweep));
    }
    let sentence = conclusions.join(" ");
    // Figures that are not the server's are none so far either.
    let is_load = matches!(study, Study::Load(load) if load.run.is_evidence());
    let is_about = is_load && !sentence.is_empty();
    match so_far(study).filter(|_| is_about).as_deref() {
        None => sentence,
        Some("") => format!("So far: {sentence}"),
        Some(part) => format!("So far ({part}): {sentence}"),
    }
}

/// That not all runs of a sweep were made, or not the whole of the last one.
pub(crate) fn runs_made(sweep: &SweepStudy) -> Option<String> {
    let planned = sweep.plan.runs();
    let made = sweep.runs.len();
    let were = if made == 1 { "was" } else { "were" };
    if is_unfinished(sweep) {
        return Some(format!(
            "Not finished: {made} of {planned} runs {were} made. It was killed, or still runs."
        ));
    }
    let last = sweep.runs.last().filter(|run| is_shorter(run));
    if !sweep.interrupted || made == planned && last.is_none() {
        return None;
    }
    // How long it was measured stands below the table.
    let last = last.map(|run| format!(", the last ({}) in part", name_in_sweep(sweep, run)));
    Some(format!("Interrupted: {made} of {planned} runs {were} made{}.", last.unwrap_or_default()))
}

/// The result of a threshold, and how much of the study it is about, if that ended early: `PASS so
/// far (2 of 5 runs)`.
pub(crate) fn result_so_far(word: &str, so_far: Option<&str>) -> String {
    match so_far {
        None => word.to_owned(),
        Some("") => format!("{word} so far"),
        Some(part) => format!("{word} so far ({part})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_how_much_of_the_study_it_is_about() {
        let mut sweep = testkit::study::interrupted();
        let word = |study: &Study| result_so_far("PASS", so_far(study).as_deref());
        assert_eq!(word(&sweep.clone().into()), "PASS so far (2 of 5 runs)");
        sweep.interrupted = false;
        sweep.runs[1].warnings.clear();
        assert_eq!(word(&sweep.into()), "PASS so far (2 of 5 runs)", "killed");
        assert_eq!(word(&testkit::study::canonical().into()), "PASS");

        let stopped = testkit::capacity::stopped();
        assert_eq!(word(&stopped.into()), "PASS so far (14:31 of 15:00)");

        let mut load = testkit::load::tiny();
        load.plan.length = Some(Nanos::from_secs(30));
        load.run.measured = Nanos::from_secs(8);
        load.interrupted = true;
        assert_eq!(word(&load.clone().into()), "PASS so far (8.00 of 30 s)");
        load.run.measured = Nanos::from_secs(30);
        assert_eq!(word(&load.into()), "PASS", "only its last responses are missing");
    }

    #[test]
    fn sentences_come_from_whole_runs_if_there_is_one() {
        let mut sweep = testkit::study::interrupted();
        let whole = sweep.runs[0].measured;
        sweep.runs[1].measured = whole / 3;
        assert_eq!(crate::sweep_points::of(&sweep).len(), 1);
        sweep.runs[1].measured = whole / 3 * 2;
        assert_eq!(crate::sweep_points::of(&sweep).len(), 2, "long enough");
        sweep.runs.remove(0);
        assert_eq!(crate::sweep_points::of(&sweep).len(), 1, "better than nothing");
    }
}
