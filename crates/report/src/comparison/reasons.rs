//! What else must be known to read the figures of a comparison: why the arms differ, as far as the
//! runs show it, and what their differences cannot tell.

use judge::words::listed;
use model::comparison::{
    ComparisonQuestion, ComparisonRun, ComparisonVerdict, Difference, Metric, TwoValues, median,
};
use model::{ComparisonStudy, Diagnostic};

use super::summary::{self, SummaryComparison};
use super::{change_words, limits, pairs};
use crate::number;
use crate::number::count_of;

/// What else must be known to read the figures.
pub(super) fn of(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<String> {
    let plan = &study.plan;
    let mut reasons = Vec::new();
    let several: Vec<String> = (0..plan.arms.len())
        .map(|arm| (arm, pairs::ArmChange::of(summary.base(), &summary.arms[arm]).differing()))
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
        let base = &summary.base().called;
        let is_asked = plan.question == ComparisonQuestion::Change;
        let pairs = others_in_one_setting(study, summary).filter(|_| is_asked);
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
    // At a rate no size of a search shows what it can do at most: the conclusion says that by single runs.
    let is_search_at_a_rate = !summary.looks.is_empty() && summary.rate_per_s.is_some();
    let others = [
        turns(study),
        // Which size to take does not follow from it, and the rows of the runs show it.
        two_values(study, summary).filter(|_| plan.question != ComparisonQuestion::Best),
        slots(study),
        limits::threads(study, summary),
        limits::cpus(study, summary).filter(|_| !is_search_at_a_rate),
        limits::ruby_lock(study, summary).filter(|_| !is_search_at_a_rate),
        extra_cpu(study, summary),
        waits_before_accepting(study, summary),
        first_run(summary),
        lost,
        left_out_pairs(summary),
    ];
    reasons.extend(others.into_iter().flatten());
    reasons
}

/// Where arms combine settings, which pairs differ in several, so that no sentence is about them.
fn left_out_pairs(summary: &SummaryComparison) -> Option<String> {
    let several = pairs::in_several_settings(summary).into_iter();
    let names = |pair: &Difference| {
        format!("{} against {}", summary.called(&pair.arm), summary.called(&pair.base))
    };
    let several: Vec<String> = several.map(|(pair, _)| names(pair)).collect();
    (pairs::are_combinations(summary) && !several.is_empty()).then(|| {
        format!(
            "{} differ in more than one setting, so no sentence is about them.",
            listed(&several)
        )
    })
}

/// `8.0.2 -k with 6.6.1 -k and 8.0.2`: an arm that differs from the base in several settings, and the
/// arms from which it differs in one.
fn others_in_one_setting(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let arms = || (0..study.plan.arms.len()).filter(|arm| *arm != study.plan.base);
    let differ = |one: usize, other: usize| {
        pairs::ArmChange::of(&summary.arms[one], &summary.arms[other]).count()
    };
    arms().filter(|arm| differ(study.plan.base, *arm) > 1).find_map(|arm| {
        let near = arms().filter(|other| *other != arm && differ(*other, arm) == 1);
        let near: Vec<String> = near.map(|other| study.plan.called(other)).collect();
        (!near.is_empty()).then(|| format!("{} with {}", study.plan.called(arm), listed(&near)))
    })
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
    // In a closed loop in which each request waits its turn, all take about as long as the mean.
    let far_runs = |arm: usize, metric: Metric| {
        let is_far = |run: &&ComparisonRun| {
            let [slow, mean] = [metric, Metric::Mean].map(|metric| metric.of(run));
            let is_known_near =
                || slow.ok().zip(mean.ok()).map(|(slow, mean)| slow <= FAR_FROM_TURNS * mean);
            !is_known_near().unwrap_or(metric == Metric::P99)
        };
        runs(arm).filter(is_far).count()
    };
    let one_in_20_is_slow = |arm: usize| 4 * far_runs(arm, Metric::P95) >= runs(arm).count();
    // Where the p99 of every arm is far from the mean, the app may vary.
    let is_steady_app =
        without.iter().any(|arm| 4 * far_runs(*arm, Metric::P99) < runs(*arm).count());
    let one_in_100_is_slow =
        |arm: usize| is_steady_app && 2 * far_runs(arm, Metric::P99) >= runs(arm).count();
    let in_order: Vec<usize> = without
        .iter()
        .copied()
        .filter(|arm| !one_in_20_is_slow(*arm) && !one_in_100_is_slow(*arm))
        .collect();
    let serve = if with.len() == 1 { "serves" } else { "serve" };
    let turns = "a keep-alive connection several times in a row while others wait";
    let slow = one_in_so_many_waits(study, &with).map_or_else(
        || "a few requests are slow".to_owned(),
        |many| format!("there about one request in {many} waits for all these turns"),
    );
    // Those of which too little is known do not serve several times in a row, and no more is said.
    let named = |arms: &[usize]| {
        let names: Vec<String> = arms.iter().map(|arm| study.plan.called(*arm)).collect();
        listed(&names)
    };
    let rest: Vec<usize> = without.iter().copied().filter(|arm| !in_order.contains(arm)).collect();
    let in_order_said = (!in_order.is_empty()).then(|| {
        let let_each = if in_order.len() == 1 { "lets" } else { "let" };
        format!(" {} {let_each} each request wait its turn.", named(&in_order))
    });
    let rest_said = (!rest.is_empty()).then(|| {
        let do_not = if rest.len() == 1 { "does not" } else { "do not" };
        if in_order.is_empty() {
            return format!(" {} {do_not} serve in such turns.", named(&rest));
        }
        let longer = rest.iter().map(|arm| {
            let [far, all] = [far_runs(*arm, Metric::P99), runs(*arm).count()];
            let of = if far == all { "all".to_owned() } else { format!("{far} of") };
            format!("{} (in {of} {})", study.plan.called(*arm), count_of(all as u64, "run"))
        });
        let longer = listed(&longer.collect::<Vec<_>>());
        format!(
            " At {longer} at least one request in 100 waits longer than its turn; why is not known."
        )
    });
    let more = [in_order_said, rest_said].into_iter().flatten().collect::<String>();
    Some(change_words::sentence_of(format!("{} {serve} {turns}: {slow}.{more}", named(&with))))
}

/// Of arms that serve connections in turns, how many responses a turn has: one request in so many waits
/// for the turns of others. `None` where that varies.
fn one_in_so_many_waits(study: &ComparisonStudy, arms: &[usize]) -> Option<String> {
    let runs = study.runs.iter().filter(|run| arms.contains(&run.arm) && run.is_sound());
    let turns = runs.flat_map(|run| &run.run.warnings).filter_map(|warning| match warning {
        Diagnostic::ServedInTurns { answers_a_turn, varies, .. } => {
            Some(answers_a_turn.round() as u64).filter(|_| !varies)
        }
        _ => None,
    });
    let turns: Vec<u64> = turns.collect();
    let is_alike = turns.iter().all(|it| *it == turns[0]);
    turns.first().filter(|_| is_alike).map(u64::to_string)
}

/// A run whose p95, or p99, is this many times its mean does not let each request wait its turn, or its app
/// varies.
const FAR_FROM_TURNS: f64 = 1.25;

/// Says so where arms have two values of a response time that decides, one in some of their runs and
/// another in the others: a median is then one of the two, and an interval has both. All arms of which
/// the same is true stand together, with how few requests may decide in which group a run is.
fn two_values(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let is_asked = |metric: Metric| summary.metric(metric).is_some_and(|row| row.decides);
    // Where the slowest of a hundred decide, those before them show how many are slow.
    let is_shown =
        |metric: &Metric| is_asked(*metric) || *metric == Metric::P95 && is_asked(Metric::P99);
    let times = [Metric::Mean, Metric::P50, Metric::P95, Metric::P99].into_iter().filter(is_shown);
    let runs = |arm: usize| study.runs.iter().filter(move |run| run.arm == arm && run.is_sound());
    // Groups are of logarithms: of response times, as in a difference, ratios matter.
    let of_arm = |metric: Metric, arm: usize| {
        let values = runs(arm).filter_map(|run| Some((metric.of(run).ok()? * 1e3).ln())).collect();
        let values = TwoValues::of(values, summary.margin.ln_1p())?.map(f64::exp);
        Some(ArmOfTwoValues { metric, arm, values })
    };
    let arms = || 0..study.plan.arms.len();
    let all = times.flat_map(|metric| arms().map(move |arm| (metric, arm)));
    let all: Vec<ArmOfTwoValues> = all.filter_map(|(metric, arm)| of_arm(metric, arm)).collect();
    // Of the metrics that decide, if one has two values, that whose values are furthest apart.
    let weight = |it: &ArmOfTwoValues| (is_asked(it.metric), it.ratio());
    let by_weight = |a: &&ArmOfTwoValues, b: &&ArmOfTwoValues| {
        let [a, b] = [a, b].map(|it| weight(it));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let metric = all.iter().max_by(by_weight)?.metric;
    let each: Vec<&ArmOfTwoValues> = all.iter().filter(|it| it.metric == metric).collect();
    let told = each.iter().map(|it| {
        let [low, high] = [it.values.low, it.values.high].map(number::significant);
        let TwoValues { low_count, count, .. } = it.values;
        let called = study.plan.called(it.arm);
        format!("of {called} is about {low} ms in {low_count} of its {count} runs and {high} ms in the others")
    });
    let told: Vec<String> = told.collect();
    let of_runs = each.iter().flat_map(|it| runs(it.arm));
    let requests = median(of_runs.map(|run| run.run.tally.counts.total() as f64));
    let few = requests.and_then(|requests| few_decide(metric, requests)).unwrap_or_default();
    Some(format!("The {} {}{few}.", summary::name(metric), told.join(", that ")))
}

/// Of runs with this many requests, how few of them the slowest are of which the metric tells; `None`
/// if they are many, or if it tells of all.
fn few_decide(metric: Metric, requests: f64) -> Option<String> {
    const FEW: f64 = 10.0;
    let slower = match metric {
        Metric::P95 => 0.05,
        Metric::P99 => 0.01,
        _ => return None,
    };
    let slowest = (slower * requests).round().max(1.0);
    let decide = if slowest < 1.5 { "decides" } else { "decide" };
    (slowest <= FEW).then(|| {
        format!(
            ": of about {} requests a run the slowest {slowest:.0} {decide}",
            number::significant(requests)
        )
    })
}

/// An arm that has two values of a response time, in milliseconds.
struct ArmOfTwoValues {
    metric: Metric,
    arm: usize,
    values: TwoValues,
}

impl ArmOfTwoValues {
    fn ratio(&self) -> f64 {
        self.values.high / self.values.low
    }
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
    // What the medians in the conclusion come to, if they are there.
    let row = summary.metric(Metric::Cpu)?;
    let of_blocks = cpu.estimate.filter(|_| change_words::is_another_change(row, cpu));
    let change = of_blocks.or_else(|| change_words::change_of_medians(row, cpu))?;
    let change = change_words::plain_percent(change.abs());
    match (cpu.verdict, verdict(Metric::Throughput)) {
        (ComparisonVerdict::Worse, Some(ComparisonVerdict::Same)) => {
            Some(change_words::sentence_of(format!(
                "{arm} has the same throughput as {base} for {change} more CPU a request. That holds while CPUs are idle; where they are the limit, it is lost throughput."
            )))
        }
        (ComparisonVerdict::Worse, Some(ComparisonVerdict::Worse)) => {
            let more = cpu.estimate?;
            let lost = -of(Metric::Throughput)?.estimate?;
            let is_cause = 1.0 - 1.0 / (1.0 + more) >= MOST_OF_THE_LOSS * lost;
            let is_limit = limits::are_computing(study, [&cpu.base, &cpu.arm]);
            (is_cause && is_limit).then(|| {
                change_words::sentence_of(format!(
                    "{arm} takes {change} more CPU a request than {base}, and both compute as much as they can: that accounts for its lower throughput.",
                ))
            })
        }
        (ComparisonVerdict::Better, _) => {
            let first = summary.deciding().next().map(|row| row.metric);
            let is_better = [Some(Metric::Mean), Some(Metric::Throughput), first]
                .into_iter()
                .flatten()
                .any(|metric| verdict(metric) == Some(ComparisonVerdict::Better));
            let longer: Vec<String> = [Metric::Mean, Metric::P99]
                .into_iter()
                .filter(|metric| verdict(*metric) == Some(ComparisonVerdict::Worse))
                .filter_map(|metric| {
                    let estimate = change_words::estimate_of(of(metric)?)?;
                    Some(format!("{} ({estimate})", summary::name(metric)))
                })
                .collect();
            let is = if longer.len() == 1 { "is" } else { "are" };
            (!is_better && !longer.is_empty()).then(|| {
                change_words::sentence_of(format!(
                    "{arm} takes {change} less CPU a request than {base}, but its {} {is} longer: that is no gain by itself.",
                    listed(&longer)
                ))
            })
        }
        _ => None,
    }
}

/// Says so where a Puma 6 does less without keep-alive because it waits before it accepts: each request
/// takes a thread's place for a few ms more than with keep-alive, and the threads are the limit.
fn waits_before_accepting(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    /// Between these two, in ms, is what the longest wait of 5 ms comes to.
    const WAIT_MS: [f64; 2] = [2.0, 6.0];
    let keeps_alive = |arm: usize| study.plan.arm(arm).stream.keep_alive;
    let has_busy_threads = |arm: usize| limits::of_most_runs(study, arm) == Some("threads");
    let throughput = summary.metric(Metric::Throughput)?;
    // How long a request takes the place of a thread, in ms.
    let held_ms = |arm: usize| {
        let rate = throughput.median(&study.plan.letter(arm))?;
        Some(f64::from(study.server(arm)?.slots()) / rate * 1e3)
    };
    pairs::told(summary, throughput).into_iter().find_map(|pair| {
        let [with, without] = [study.plan.arm_of(&pair.base)?, study.plan.arm_of(&pair.arm)?];
        let is_puma_6 = study.server(without)?.puma_major() == Some(6);
        let is_of_keep_alive = keeps_alive(with) && !keeps_alive(without);
        let are_threads = has_busy_threads(with) && has_busy_threads(without);
        let [kept, new] = [held_ms(with)?, held_ms(without)?];
        let is_the_wait = (WAIT_MS[0]..=WAIT_MS[1]).contains(&(new - kept));
        (is_puma_6 && is_of_keep_alive && are_threads && is_the_wait).then(|| {
            change_words::sentence_of(format!(
                "{} holds a thread for {} ms a request, {} for {}: probably because Puma 6 waits up to 5 ms before it accepts a connection (wait_for_less_busy_worker), and without keep-alive each request needs one.",
                study.plan.called(without),
                number::significant(new),
                study.plan.called(with),
                number::significant(kept),
            ))
        })
    })
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
        change_words::plain_percent(part.abs()),
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
        let others = |study: &ComparisonStudy| {
            others_in_one_setting(study, &crate::comparison::summary(study))
        };
        assert_eq!(others(&study), None);
        study.plan.arms.push(with(&["8.0", "-k"]));
        assert_eq!(others(&study).as_deref(), Some("8.0 -k with 6.6 -k and 8.0"));
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
        assert!(said.starts_with("6.6.1 -k takes 19 % less CPU a request than 6.6.1, "), "{said}");
        assert!(said.contains("but its mean (+11 %) and p99 (+10 %) are longer"), "{said}");
    }

    #[test]
    fn puma_6_waits_before_it_accepts() {
        // 10 slots: 474 requests per second are 21.1 ms each, 430 are 23.2 ms.
        let mut study = testkit::comparison::combinations();
        study.plan.arms[1].stream.keep_alive = false;
        let said = |study: &ComparisonStudy| waits_before_accepting(study, &summary_of(study));
        assert_eq!(said(&study), None, "what limits it is not known");
        for run in &mut study.runs {
            let busy = Limit::Threads {
                slots: 10,
                connections: 20,
                at_once: None,
                busy: Some(10.0),
                unhindered: None,
                strength: model::Strength::default(),
                computes: None,
            };
            run.run.judgement.as_mut().unwrap().limit = Some(busy);
        }
        let waits = said(&study).unwrap_or_default();
        let begin =
            "6.6.1 -k holds a thread for 23.3 ms a request, 6.6.1 for 21.1: probably because";
        assert!(waits.starts_with(begin), "{waits}");
        study.servers[1].as_mut().unwrap().version = Some("8.0.2".to_owned());
        assert_eq!(said(&study), None, "only Puma 6 does so by default");
    }
}
