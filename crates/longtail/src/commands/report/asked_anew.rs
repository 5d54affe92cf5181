//! A saved study has all that was measured, so that another question can be asked of it: limits that
//! it must keep (`--expect`, `--fail-if`), and of a comparison other pairs (`--pairs`, `--base`) or
//! another metric that decides (`--metric`).

use judge::next::edited;
use model::comparison::{ComparisonPlan, ComparisonQuestion, Metric};
use model::{ComparisonStudy, Study, Threshold};

use crate::args::ReportArgs;
use crate::args::event::check_parts;
use crate::args::output::StudyKind;
use crate::exit::{Mistake, refuse_if, wrong};

/// The study with what these flags ask of it.
///
/// # Errors
/// If such a study cannot answer that.
pub(super) fn asked_anew(mut study: Study, args: &ReportArgs) -> Result<Study, Mistake> {
    let thresholds = args.thresholds.all();
    if !thresholds.is_empty() {
        check_thresholds(&study, args)?;
        set_thresholds(&mut study, thresholds)?;
    }
    if args.pairs || args.base.is_some() || !args.gates.is_empty() {
        let Study::Compare(comparison) = &mut study else {
            return Err(wrong(format!(
                "{} has no arms to compare: --pairs, --base and --metric are of a comparison (longtail report compare)",
                StudyKind::from(&study).name()
            )));
        };
        if args.pairs || args.base.is_some() {
            choose_pairs(&mut comparison.plan, args)?;
        }
        if !args.gates.is_empty() {
            let before = comparison.plan.deciding();
            comparison.plan.gates.clone_from(&args.gates);
            let is_another = comparison.plan.deciding() != before;
            if is_another && !comparison.plan.gates_chosen_later {
                comparison.plan.gates_before_runs = before;
            }
            comparison.plan.gates_chosen_later |= is_another;
        }
        comparison.command_line = command_that_asks(comparison, args).into();
    }
    Ok(study)
}

/// Refuses limits of what these runs do not have.
fn check_thresholds(study: &Study, args: &ReportArgs) -> Result<(), Mistake> {
    let runs = study.runs();
    let has_event = runs.iter().any(|run| run.event.is_some());
    check_parts(has_event, &args.thresholds.all(), &[])?;
    // All runs send the same classes, but one that was cut short may not have met each.
    let mut classes: Vec<String> = Vec::new();
    for class in runs.iter().flat_map(|run| &run.tally.classes) {
        if !classes.contains(&class.name) {
            classes.push(class.name.clone());
        }
    }
    args.thresholds.check_classes(&classes)
}

/// Holds the runs against these limits, in place of those that were given when it was measured.
fn set_thresholds(study: &mut Study, thresholds: Vec<Threshold>) -> Result<(), Mistake> {
    match study {
        Study::Sweep(study) => study.plan.thresholds = thresholds,
        Study::Load(study) => study.plan.thresholds = thresholds,
        Study::Bodies(study) => study.plan.thresholds = thresholds,
        Study::Compare(study) => study.plan.thresholds = thresholds,
        Study::Capacity(_) => {
            return Err(wrong(
                "a search for a capacity has one objective, at which it aimed: name another study, such as longtail report load --expect …",
            ));
        }
    }
    Ok(())
}

/// The command that measures what is asked now: the study's own with these flags, and with as many
/// blocks as that needs. It has no `--base`, as the first arm is the base.
fn command_that_asks(study: &ComparisonStudy, args: &ReportArgs) -> String {
    let pairs = args.pairs.then(|| "--pairs".to_owned());
    let gates: Vec<String> = args.gates.iter().map(Metric::to_string).collect();
    // A sweep of sizes has no such flag.
    let has_metric = study.plan.question != ComparisonQuestion::Best && !gates.is_empty();
    let metric = has_metric.then(|| format!("--metric={}", gates.join(",")));
    let least = study.plan.feasible().err().map(|never| format!("--blocks={}", never.least));
    let mut dropped: Vec<&str> = Vec::new();
    dropped.extend(metric.is_some().then_some("--metric"));
    dropped.extend(least.is_some().then_some("--blocks"));
    let flags: Vec<String> = [pairs, metric, least].into_iter().flatten().collect();
    edited(&study.command_line, &flags.join(" "), &dropped)
}

/// Has a comparison look at other pairs of its arms.
fn choose_pairs(plan: &mut ComparisonPlan, args: &ReportArgs) -> Result<(), Mistake> {
    refuse_if(
        plan.question == ComparisonQuestion::Best,
        "sweep --try compares each size with each other already: leave out --pairs and --base",
    )?;
    if let Some(name) = &args.base {
        plan.base = arm_called(plan, name)?;
        plan.question = ComparisonQuestion::Change;
    }
    if args.pairs {
        plan.question = ComparisonQuestion::Pairs;
    }
    Ok(())
}

/// The arm with this name, or with this letter of the tables; `''` is the default.
fn arm_called(plan: &ComparisonPlan, name: &str) -> Result<usize, Mistake> {
    let name = name.trim();
    let name = if name.is_empty() { "default" } else { name };
    let arms = || 0..plan.arms.len();
    let by_name = arms().find(|arm| &*plan.arms[*arm].name == name);
    by_name.or_else(|| arms().find(|arm| plan.letter(*arm) == name)).ok_or_else(|| {
        let names: Vec<String> = plan.arms.iter().map(|arm| format!("'{}'", arm.name)).collect();
        wrong(format!("--base '{name}': no arm has this name; choose among {}", names.join(", ")))
    })
}
