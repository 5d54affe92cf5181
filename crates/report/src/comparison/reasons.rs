//! What else must be known to read the figures of a comparison: why the arms differ, as far as the
//! runs show it, and what their differences cannot tell.

use judge::words::listed;
use model::comparison::{
    ComparisonQuestion, ComparisonRun, ComparisonVerdict, Difference, Metric, median,
};
use model::{ComparisonStudy, Diagnostic, MaskedText, ServiceTime};

use super::summary::{self, SummaryComparison};
use super::{limits, pairs, words};
use crate::number;
use crate::number::count_of;

/// What else must be known to read the figures.
pub(super) fn of(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<String> {
    let plan = &study.plan;
    let mut reasons = Vec::new();
    let several: Vec<String> = (1..plan.arms.len())
        .map(|arm| (arm, differing_settings(study, 0, arm)))
        .filter(|(_, differing)| differing.len() > 1)
        .map(|(arm, differing)| {
            format!("{} in {} ({})", plan.called(arm), differing.len(), differing.join(", "))
        })
        .collect();
    if !pairs::are_combinations(summary)
        && !several.is_empty()
        && plan.question != ComparisonQuestion::Best
    {
        let several = several.join("; ");
        let base = summary.base();
        let is_asked = plan.question == ComparisonQuestion::Change;
        let pairs = others_in_one_setting(study).filter(|_| is_asked);
        let pairs = pairs.map(|pairs| format!("; --pairs also compares {pairs}"));
        reasons.push(format!(
            "More than one setting differs from {base}: {several}. A difference cannot be given to one of them{}.",
            pairs.unwrap_or_default()
        ));
    }
    let lost = study.lost.first().map(|lost| {
        let more = match study.lost.len() - 1 {
            0 => String::new(),
            more => format!(" ({} came to nothing)", count_of(more as u64, "more run")),
        };
        format!(
            "{}, block {}: {}{more}.",
            plan.called(lost.arm),
            lost.block,
            lost.reason.trim_end_matches('.')
        )
    });
    let others = [
        turns(study),
        slots(study),
        limits::threads(study, summary),
        limits::cpus(study, summary),
        limits::ruby_lock(study, summary),
        extra_cpu(study, summary),
        accepts_late(study, summary),
        first_run(summary),
        lost,
        left_out_pairs(summary),
    ];
    reasons.extend(others.into_iter().flatten());
    reasons
}

/// Where arms combine settings, which pairs the table leaves out.
fn left_out_pairs(summary: &SummaryComparison) -> Option<String> {
    pairs::are_combinations(summary).then(|| {
        format!(
            "Arms that differ in more than one setting ({}) are not compared here: their difference cannot be given to one of them. --json has them.",
            pairs::in_several_settings(summary).join(", ")
        )
    })
}

/// `8.0.2 -k with 6.6.1 -k and 8.0.2`: an arm that differs from the base in several settings, and the
/// arms from which it differs in one.
fn others_in_one_setting(study: &ComparisonStudy) -> Option<String> {
    let arms = || 1..study.plan.arms.len();
    let differ = |one: usize, other: usize| differing_settings(study, one, other).len();
    arms().filter(|arm| differ(0, *arm) > 1).find_map(|arm| {
        let near = arms().filter(|other| *other != arm && differ(*other, arm) == 1);
        let near: Vec<String> = near.map(|other| study.plan.called(other)).collect();
        (!near.is_empty()).then(|| format!("{} with {}", study.plan.called(arm), listed(&near)))
    })
}

/// The settings that only the arm has, or those that only the base has, whichever are more.
fn differing_settings(study: &ComparisonStudy, base: usize, arm: usize) -> Vec<String> {
    let [base, arm] = [base, arm].map(|at| &study.plan.arms[at].settings);
    let added = only_in_first(arm, base);
    let removed = only_in_first(base, arm);
    if added.len() >= removed.len() {
        added
    } else {
        removed.iter().map(|setting| format!("without {setting}")).collect()
    }
}

fn only_in_first(first: &[MaskedText], second: &[MaskedText]) -> Vec<String> {
    first.iter().filter(|setting| !second.contains(setting)).map(ToString::to_string).collect()
}

/// Says so where some arms serve a keep-alive connection several times in a row, as Puma before 7
/// does, and others do not. An arm that does so in a few runs, or is unfair in another way, is
/// neither.
fn turns(study: &ComparisonStudy) -> Option<String> {
    let runs = |arm: usize| study.runs.iter().filter(move |run| run.arm == arm && run.is_sound());
    let in_turns = |run: &&ComparisonRun| {
        let mut warnings = run.run.warnings.iter();
        warnings.any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }))
    };
    let is_unfair = |run: &&ComparisonRun| {
        let mut warnings = run.run.warnings.iter();
        warnings.any(|warning| {
            matches!(warning, Diagnostic::Unfair { .. } | Diagnostic::NeverServed { .. })
        })
    };
    let arms = || 0..study.plan.arms.len();
    let with: Vec<usize> =
        arms().filter(|arm| 2 * runs(*arm).filter(in_turns).count() > runs(*arm).count()).collect();
    // That no run showed turns proves little: with a few connections more than threads, or on a
    // busy machine, they are not seen.
    let never_does = |arm: usize| {
        let major = study.server(arm).and_then(model::ServerFacts::puma_major);
        !study.plan.arm(arm).stream.keep_alive || major.is_some_and(|major| major >= 7)
    };
    let without: Vec<usize> = arms()
        .filter(|arm| {
            runs(*arm).count() > 0
                && never_does(*arm)
                && !runs(*arm).any(|run| in_turns(&run) || is_unfair(&run))
        })
        .collect();
    if with.is_empty() || without.is_empty() {
        return None;
    }
    let [serve, others] = [&with, &without].map(|arms| {
        let names: Vec<String> = arms.iter().map(|arm| study.plan.called(*arm)).collect();
        listed(&names)
    });
    let serve = format!("{serve} serve{}", if with.len() == 1 { "s" } else { "" });
    let do_not = format!("{others} {} not", if without.len() == 1 { "does" } else { "do" });
    Some(words::sentence_of(format!(
        "{serve} a keep-alive connection several times in a row while others wait, {do_not}: the one makes a few requests slow, the other lets each wait its turn."
    )))
}

/// Says so where the arms have different numbers of slots.
fn slots(study: &ComparisonStudy) -> Option<String> {
    let of = |arm: usize| study.server(arm).map(model::ServerFacts::slots);
    let known: Vec<(usize, u32)> =
        (0..study.plan.arms.len()).filter_map(|arm| Some((arm, of(arm)?))).collect();
    let (_, first) = known.first()?;
    if study.plan.question == ComparisonQuestion::Best
        || known.iter().all(|(_, slots)| slots == first)
    {
        return None;
    }
    let each: Vec<String> =
        known.iter().map(|(arm, slots)| format!("{}: {slots}", study.plan.called(*arm))).collect();
    Some(format!(
        "The arms process different numbers of requests at a time under the same load ({}).",
        each.join(", ")
    ))
}

/// What more or less CPU time a request means: nothing but itself while CPUs are idle, less throughput
/// where they are the limit, and no gain where requests wait longer.
fn extra_cpu(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let mut told = pairs::told(summary, summary.metric(Metric::Cpu)?).into_iter();
    told.find_map(|cpu| cpu_of_pair(study, summary, cpu))
}

/// The same of one pair; `cpu` is its difference in CPU time a request.
fn cpu_of_pair(
    study: &ComparisonStudy,
    summary: &SummaryComparison,
    cpu: &Difference,
) -> Option<String> {
    let of = |metric| summary.metric(metric)?.difference(&cpu.base, &cpu.arm);
    let verdict = |metric| of(metric).map(|difference| difference.verdict);
    let arm = summary.called(&cpu.arm);
    let base = summary.called(&cpu.base);
    let change = words::plain_percent(cpu.estimate?.abs());
    match (cpu.verdict, verdict(Metric::Throughput)) {
        (ComparisonVerdict::Worse, Some(ComparisonVerdict::Same)) => {
            Some(words::sentence_of(format!(
                "{arm} has the same throughput as {base} for {change} more CPU a request. That holds while CPUs are idle; where they are the limit, it is lost throughput."
            )))
        }
        (ComparisonVerdict::Worse, Some(ComparisonVerdict::Worse)) => {
            let more = cpu.estimate?;
            let lost = -of(Metric::Throughput)?.estimate?;
            let is_cause = 1.0 - 1.0 / (1.0 + more) >= MOST_OF_THE_LOSS * lost;
            let is_limit = limits::are_computing(study, [&cpu.base, &cpu.arm]);
            (is_cause && is_limit).then(|| {
                words::sentence_of(format!(
                    "{arm} takes {change} more CPU a request than {base}, and both compute as much as they can: that accounts for its lower throughput.",
                ))
            })
        }
        (ComparisonVerdict::Better, _) => {
            let first = summary.deciding().next().map(|row| row.metric);
            let is_better = [Some(Metric::Mean), first]
                .into_iter()
                .flatten()
                .any(|metric| verdict(metric) == Some(ComparisonVerdict::Better));
            let longer: Vec<String> = [Metric::Mean, Metric::P99]
                .into_iter()
                .filter(|metric| verdict(*metric) == Some(ComparisonVerdict::Worse))
                .filter_map(|metric| {
                    let estimate = words::estimate_of(of(metric)?)?;
                    Some(format!("{} ({estimate})", summary::name(metric)))
                })
                .collect();
            let is = if longer.len() == 1 { "is" } else { "are" };
            (!is_better && !longer.is_empty()).then(|| {
                words::sentence_of(format!(
                    "{arm} takes {change} less CPU a request than {base}, but its {} {is} longer: that is no gain by itself.",
                    listed(&longer)
                ))
            })
        }
        _ => None,
    }
}

/// Says so where an arm does less than another, and its threads are free while requests wait in the
/// accept queue: it accepts late. The runs themselves show that, so the difference needs no test.
fn accepts_late(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let arm_of =
        |letter: &str| (0..study.plan.arms.len()).find(|arm| study.plan.letter(*arm) == *letter);
    let does_less = |pair: &&Difference| pair.estimate.is_some_and(|part| part <= -summary.margin);
    let mut told = pairs::told(summary, summary.metric(Metric::Throughput)?).into_iter();
    let slower = told.find(does_less).and_then(|pair| arm_of(&pair.arm))?;
    let working = working_threads(study, slower)?;
    let server = study.server(slower)?;
    let name = study.plan.called(slower);
    let keep_alive = study.plan.arm(slower).stream.keep_alive;
    let why = if server.puma_major() == Some(6) && !keep_alive {
        " Puma 6 waits up to 5 ms before it accepts a connection (wait_for_less_busy_worker); without keep-alive each request pays for that."
    } else {
        ""
    };
    Some(words::sentence_of(format!(
        "{name} probably accepts late: by Little's law {} of its {} threads work, while requests wait in the accept queue.{why}",
        number::fixed(working, 1),
        server.slots()
    )))
}

/// How many threads of an arm work on average, if in most of its runs some are free while requests
/// wait in the accept queue.
fn working_threads(study: &ComparisonStudy, arm: usize) -> Option<f64> {
    let alone = study.plan.arm(arm).stream.delay.map(ServiceTime::given)?;
    let slots = study.server(arm)?.slots();
    let runs: Vec<&ComparisonRun> =
        study.runs.iter().filter(|run| run.arm == arm && run.is_sound()).collect();
    let inside = runs.iter().filter_map(|run| judge::free_threads::inside(&run.run, &alone, slots));
    let inside: Vec<f64> = inside.collect();
    median(inside.iter().copied()).filter(|_| 2 * inside.len() > runs.len())
}

/// CPU time accounts for a lower throughput if it explains at least this share of what was lost.
const MOST_OF_THE_LOSS: f64 = 0.7;

/// Whether the first run of a block differs from the others.
fn first_run(summary: &SummaryComparison) -> Option<String> {
    let parts =
        summary.deciding().filter_map(|row| Some((summary::name(row.metric), row.first_run?)));
    let (name, part) = parts.into_iter().find(|(_, part)| part.abs() > summary.margin / 2.0)?;
    let than = format!(
        "{} {}",
        words::plain_percent(part.abs()),
        if part < 0.0 { "lower" } else { "higher" }
    );
    Some(format!(
        "The first run of a block has a {name} that is {than} than the others'; that is taken out."
    ))
}

#[cfg(test)]
mod tests {
    use model::comparison::ArmPlan;
    use model::{CpuUsage, Limit};

    use super::*;
    use crate::comparison::summary as summary_of;

    #[test]
    fn an_arm_with_several_settings_has_the_pairs_that_differ_in_one() {
        let mut study = testkit::comparison::unclear();
        let arm = study.plan.arms[0].clone();
        let with = |settings: &[&str]| ArmPlan {
            name: settings.join(" ").into(),
            settings: settings.iter().map(|it| (*it).into()).collect(),
            ..arm.clone()
        };
        study.plan.arms = vec![with(&["6.6"]), with(&["6.6", "-k"]), with(&["8.0"])];
        assert_eq!(others_in_one_setting(&study), None);
        study.plan.arms.push(with(&["8.0", "-k"]));
        assert_eq!(others_in_one_setting(&study).as_deref(), Some("8.0 -k with 6.6 -k and 8.0"));
    }

    #[test]
    fn more_cpu_accounts_for_less_throughput_only_where_the_cpus_are_the_limit() {
        // A fifth slower, and a fifth more CPU.
        let mut study = testkit::comparison::slower();
        for run in study.runs.iter_mut().filter(|run| run.arm == 1) {
            run.server.cpu = run.server.cpu.map(|cpu| cpu * 12 / 10);
        }
        let said =
            |study: &ComparisonStudy| extra_cpu(study, &summary_of(study)).unwrap_or_default();
        assert_eq!(said(&study), "");
        let cpu = CpuUsage { server: 1.9, generator: 0.05, others: None, of: 2.0, by_quota: false };
        for run in &mut study.runs {
            run.run.judgement.as_mut().unwrap().limit = Some(Limit::Cpu(cpu));
        }
        let said = said(&study);
        assert!(said.starts_with("my-branch takes ") && said.contains("than main"), "{said}");
        assert!(said.ends_with("that accounts for its lower throughput."), "{said}");
    }

    #[test]
    fn less_cpu_is_no_gain_where_requests_wait_longer_than_those_of_the_same_pair() {
        // 8.0.2 takes less CPU than 6.6.1, with a better mean and a worse p99.
        let with_less_cpu = |lighter: usize| {
            let mut study = testkit::comparison::combinations();
            // So many pairs and metrics need more blocks: the same ones again.
            let blocks = study.whole_blocks();
            let again = study.runs.clone().into_iter();
            let again = again.map(|run| ComparisonRun { block: run.block + blocks, ..run });
            study.runs.extend(again);
            for run in study.runs.iter_mut().filter(|run| run.arm == lighter) {
                run.server.cpu = run.server.cpu.map(|cpu| cpu * 8 / 10);
            }
            study
        };
        let said =
            |study: &ComparisonStudy| extra_cpu(study, &summary_of(study)).unwrap_or_default();
        assert_eq!(said(&with_less_cpu(2)), "", "its mean is better");
        let mut by_p99 = with_less_cpu(2);
        by_p99.plan.gates = vec![Metric::P99];
        assert_eq!(said(&by_p99), "", "its mean is better, whatever decides");
        // 6.6.1 -k waits longer than 6.6.1; as long as 8.0.2 -k, with which it shares -k.
        let said = said(&with_less_cpu(1));
        assert!(said.starts_with("6.6.1 -k takes 2") && said.contains(" than 6.6.1, "), "{said}");
        assert!(said.contains("but its mean (+11 %) and p99 (+10 %) are longer"), "{said}");
    }

    #[test]
    fn threads_that_are_free_while_requests_wait_are_named() {
        // 6.6.1 -k is slower than 6.6.1; here its requests wait in the accept queue, and take as long
        // as alone once they are accepted.
        let mut study = testkit::comparison::combinations();
        let said = |study: &ComparisonStudy| accepts_late(study, &summary_of(study));
        assert_eq!(said(&study), None, "the accept queue was not watched");
        testkit::comparison::wait_in_accept_queue(&mut study, 1);
        let facts = study.servers[1].as_mut().unwrap();
        facts.version = Some("6.6.1".to_owned());
        study.plan.arms[1].stream.keep_alive = false;
        let late = said(&study).unwrap_or_default();
        assert!(late.starts_with("6.6.1 -k probably accepts late: by Little's law "), "{late}");
        assert!(late.ends_with("without keep-alive each request pays for that."), "{late}");
    }
}
