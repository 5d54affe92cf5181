//! The result of a comparison, as figures: the arms, the metrics, and which arm is best.

use judge::others_beyond;
use judge::size_search::enough_for_rate;
use judge::tried_sizes::{largest_is_best, serves_in_turns};
use model::comparison::{
    ArmRanking, ComparedMetric, ComparisonFindings, ComparisonLoad, ComparisonQuestion,
    ComparisonVerdict, Difference, Metric, SizeLook, median,
};
use model::{ComparisonStudy, CpuUsage};
use serde::{Serialize, Serializer};

use crate::labels;
use crate::number;
use crate::run_summary::millis;

/// The result of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryComparison {
    /// Whether the arms are compared with the base (`change`), with those that differ in one setting
    /// (`settings`) or each with each other (`pairs`), or which is `best`.
    pub question: ComparisonQuestion,
    /// The arms, the control last. The base is first, unless `report --base` names another.
    pub arms: Vec<SummaryArm>,
    /// Blocks that were begun.
    pub blocks: u32,
    /// Differences of up to this share of the base's figure do not matter.
    pub margin: f64,
    /// The metrics.
    pub metrics: Vec<ComparedMetric>,
    /// Whether an arm is worse than the base in a metric that decides, or fails more requests.
    pub worse: bool,
    /// Whether a metric that decides gives no verdict against the base.
    pub cannot_tell: bool,
    /// Which is best, where that was asked.
    pub ranking: Option<ArmRanking>,
    /// The arm to take, where more threads than it has bring nothing that is known. At a rate: the
    /// smallest of which no larger one is known to be better, in what decides or at p99, or seems better
    /// in what decides by more than the margin. Else of those that are level with the best, the one
    /// with the fewest threads.
    pub recommended: Option<String>,
    /// Whether the best is the largest of the sizes, so that a larger one may do better still.
    #[serde(skip)]
    pub(super) is_largest_best: bool,
    /// The connections of a closed loop.
    #[serde(skip)]
    pub(super) connections: Option<u32>,
    /// The place of the base.
    #[serde(skip)]
    pub(super) base: usize,
    /// The rate of an open loop.
    #[serde(skip)]
    pub(super) rate_per_s: Option<f64>,
    /// How many CPUs other processes used, if they took them from the server in most of the runs.
    #[serde(skip)]
    pub(super) others: Option<f64>,
    /// How many requests per second the CPUs allow, by the CPU time of each.
    #[serde(skip)]
    pub(super) cpus_allow: Option<f64>,
    /// Of `sweep --try auto`: what single runs of each size did.
    #[serde(
        rename = "single_runs",
        serialize_with = "as_rows",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) looks: Vec<SizeLook>,
    /// Of `sweep --try auto --rate`: the rate, if the sizes run in a closed loop as too few can do it.
    #[serde(skip)]
    pub(super) wanted_per_s: Option<f64>,
    /// Of these, the size that is probably enough for the rate of the open loop. Runs in blocks may show
    /// that another one is: `recommended` is to be taken.
    #[serde(rename = "enough_in_single_runs", skip_serializing_if = "Option::is_none")]
    pub enough: Option<String>,
    /// The connections, if an arm has more threads than that, which it cannot show then.
    #[serde(skip)]
    pub(super) few_connections: Option<u32>,
    /// What the event cost, for each arm that has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SummaryEvent>,
    /// What else must be known, in sentences.
    pub reasons: Vec<String>,
    /// In how many runs there are too few responses for a p99 that is shown and does not decide.
    #[serde(skip)]
    pub(crate) few_responses: Option<String>,
    /// The arms and their load, a line each.
    #[serde(skip)]
    pub(crate) setup: Vec<String>,
    /// The blocks, and which metrics decide.
    #[serde(skip)]
    pub(crate) method: String,
}

/// One arm.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryArm {
    /// A letter; `A'` is the control.
    pub letter: String,
    /// What it is called.
    pub name: String,
    /// What sentences call it.
    #[serde(skip)]
    pub called: String,
    /// The settings in which it differs.
    pub settings: Vec<String>,
    /// The server, its version and revision; `null` where it never started.
    pub server: Option<String>,
    /// Runs that count.
    pub runs: u32,
    /// What limits it, of `sweep --try`: none if that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<&'static str>,
    /// Requests that it processes at a time, if known.
    #[serde(skip)]
    pub(super) slots: Option<u32>,
    /// Whether it gave connections ten responses in a row while others waited, in most of its runs.
    #[serde(skip)]
    pub(super) serves_in_turns: bool,
}

/// The single runs of a size, as JSON has them. Times are in milliseconds.
#[derive(Serialize)]
struct SummaryLook {
    size: String,
    /// Of the closed loop.
    throughput_per_s: f64,
    /// The rate of the open loop, if the size can do it.
    rate_per_s: Option<f64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
}

fn as_rows<S: Serializer>(looks: &[SizeLook], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(looks.iter().map(|look| SummaryLook {
        size: look.size.to_string(),
        throughput_per_s: look.rate_per_s,
        rate_per_s: look.at_rate.map(|at| at.per_s),
        p50_ms: look.at_rate.and_then(|at| at.p50).map(millis),
        p95_ms: look.at_rate.and_then(|at| at.p95).map(millis),
    }))
}

/// The event of one arm. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryEvent {
    /// The arm's letter.
    pub arm: String,
    /// What the arm is called.
    #[serde(skip)]
    pub(super) called: String,
    /// What was asked for.
    pub event: String,
    /// In how many runs it was done.
    pub runs: u32,
    /// Until the server's processes had settled: the median of the runs.
    pub took_ms: Option<f64>,
    /// Its 95 % interval.
    pub took_interval_ms: Option<[f64; 2]>,
    /// For how long no process served.
    pub unserved_ms: Option<f64>,
    /// The longest time without a response.
    pub longest_gap_ms: Option<f64>,
    /// Requests in flight at the event, or due from then until all was as before.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many requests failed after that.
    pub failed_later: u64,
    /// The 99th percentile before.
    pub p99_before_ms: Option<f64>,
    /// The same from the event until all was as before.
    pub p99_during_ms: Option<f64>,
    /// What it cost.
    pub sentence: String,
}

impl SummaryComparison {
    /// The figures of a study, without its texts, `events` and the limits of its arms.
    pub(super) fn of(study: &ComparisonStudy) -> SummaryComparison {
        let plan = &study.plan;
        let found = ComparisonFindings::of(plan, &study.runs);
        let arm = |at: usize| {
            let counts = |block| study.counted(block, at).is_some();
            SummaryArm {
                letter: plan.letter(at),
                name: plan.arm(at).name.to_string(),
                called: plan.called(at),
                settings: plan.arm(at).settings.iter().map(ToString::to_string).collect(),
                server: study.server(at).map(labels::server),
                runs: (1..=found.blocks).filter(|block| counts(*block)).count() as u32,
                limits: Vec::new(),
                slots: study.server(at).map(model::ServerFacts::slots),
                serves_in_turns: at < plan.arms.len() && serves_in_turns(study, at),
            }
        };
        let arms: Vec<SummaryArm> = (0..plan.arms_of_a_block()).map(arm).collect();
        let mut summary = SummaryComparison {
            question: plan.question,
            is_largest_best: found
                .ranking
                .as_ref()
                .is_some_and(|ranking| largest_is_best(study, ranking).is_some()),
            connections: connections(study),
            base: plan.base,
            rate_per_s: study.rate_per_s(),
            others: others_of_most(study),
            cpus_allow: cpus_allow(study, &found),
            enough: enough_for_rate(&plan.looked_at).map(|look| look.size.to_string()),
            looks: plan.looked_at.clone(),
            wanted_per_s: plan.wanted_per_s,
            few_connections: few_connections(study, &arms),
            recommended: None,
            arms,
            blocks: found.blocks,
            margin: plan.margin,
            worse: found.is_worse(),
            cannot_tell: found.cannot_tell(),
            metrics: found.metrics,
            ranking: found.ranking,
            events: Vec::new(),
            reasons: Vec::new(),
            few_responses: None,
            setup: Vec::new(),
            method: String::new(),
        };
        summary.recommended = summary.to_take();
        summary
    }

    /// Which arm is to be taken.
    pub(super) fn to_take(&self) -> Option<String> {
        let ranking = self.ranking.as_ref()?;
        // What others use up may be what the larger sizes lack.
        let at_a_rate = self.rate_per_s.filter(|_| ranking.is_decided() || self.others.is_none());
        at_a_rate.and_then(|_| self.enough_at_a_rate()).or_else(|| recommended(ranking, &self.arms))
    }

    /// At a rate: the smallest arm of which no larger one is known to be better, or seems so. `None` if
    /// a pair could not be tested, or two arms of that size cannot be told apart.
    fn enough_at_a_rate(&self) -> Option<String> {
        let row = self.deciding().next()?;
        let arms: Vec<(u32, &str)> = self
            .compared()
            .map(|arm| Some((arm.slots?, arm.letter.as_str())))
            .collect::<Option<_>>()?;
        let is_untested =
            |it: &Difference| it.has_few_blocks() || it.interval.is_none() && it.at_least.is_none();
        let tail = self.metric(Metric::P99).filter(|tail| !tail.decides);
        let verdicts = |taken: &str, other: &str| -> Vec<ComparisonVerdict> {
            let rows = std::iter::once(row).chain(tail);
            rows.filter_map(|row| Some(row.seen_from(taken, other)?.verdict)).collect()
        };
        let is_behind = |taken: (u32, &str), other: (u32, &str)| {
            let verdicts = verdicts(taken.1, other.1);
            let estimate = row.seen_from(taken.1, other.1).and_then(|it| it.estimate);
            let [better, worse] = [ComparisonVerdict::Better, ComparisonVerdict::Worse]
                .map(|verdict| verdicts.contains(&verdict));
            let seems_better = estimate.is_some_and(|part| {
                part.abs() > self.margin && (part > 0.0) == row.metric.is_worse_when_less()
            });
            if other.0 > taken.0 { better || seems_better } else { better && !worse }
        };
        let is_enough = |taken: (u32, &str)| {
            let others = arms.iter().filter(|other| other.1 != taken.1);
            !row.overloaded.contains_key(taken.1)
                && others.clone().all(|other| !is_behind(taken, *other))
        };
        let enough: Vec<(u32, &str)> = arms.iter().copied().filter(|it| is_enough(*it)).collect();
        let (slots, letter) = *enough.iter().min_by_key(|it| it.0)?;
        let is_alone = enough.iter().filter(|it| it.0 == slots).count() == 1;
        let others = arms.iter().filter(|other| other.1 != letter);
        let are_tested = others
            .map(|other| row.seen_from(letter, other.1))
            .all(|difference| difference.is_some_and(|difference| !is_untested(&difference)));
        (is_alone && are_tested && arms.len() > 1).then(|| letter.to_owned())
    }

    /// The arms without the control.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &SummaryArm> {
        self.arms.iter().filter(|arm| !arm.letter.ends_with('\''))
    }

    /// What sentences call the arm with this letter.
    pub(crate) fn called<'a>(&'a self, letter: &'a str) -> &'a str {
        let arm = self.arms.iter().find(|arm| arm.letter == letter);
        arm.map_or(letter, |arm| arm.called.as_str())
    }

    /// The arm that the others are compared with.
    pub(crate) fn base(&self) -> &SummaryArm {
        &self.arms[self.base]
    }

    /// All arms but the base and the control.
    pub(crate) fn others(&self) -> impl Iterator<Item = &SummaryArm> {
        self.compared().filter(|arm| arm.letter != self.base().letter)
    }

    /// What sentences call the arm that runs again as the control.
    pub(crate) fn called_control(&self) -> &str {
        &self.arms[0].called
    }

    pub(crate) fn metric(&self, metric: Metric) -> Option<&ComparedMetric> {
        self.metrics.iter().find(|row| row.metric == metric)
    }

    pub(crate) fn deciding(&self) -> impl Iterator<Item = &ComparedMetric> {
        self.metrics.iter().filter(|row| row.decides)
    }
}

/// How many CPUs other processes used, if they took them from the server in more than half of the
/// runs: the median of those.
fn others_of_most(study: &ComparisonStudy) -> Option<f64> {
    let others: Vec<f64> =
        study.runs.iter().filter_map(|run| others_beyond(&run.run, study.plan.margin)).collect();
    median(others.iter().copied()).filter(|_| 2 * others.len() > study.runs.len())
}

/// How many requests per second the CPUs allow, if the generator runs on them: by the least CPU time
/// that a request of an arm takes.
fn cpus_allow(study: &ComparisonStudy, found: &ComparisonFindings) -> Option<f64> {
    let cpus = study.runs.iter().find_map(|run| CpuUsage::of(&run.run.generator))?.of;
    let times = found.metric(Metric::Cpu)?.medians.values().flatten();
    let least_s = times.copied().reduce(f64::min)? / 1e3;
    Some(cpus / least_s)
}

/// The connections of a closed loop.
fn connections(study: &ComparisonStudy) -> Option<u32> {
    let ComparisonLoad::Closed { .. } = study.plan.load else { return None };
    study.runs.iter().map(|run| run.run.connections).max()
}

/// The same, if the arms are of different sizes and one has more threads.
fn few_connections(study: &ComparisonStudy, arms: &[SummaryArm]) -> Option<u32> {
    let connections = connections(study)?;
    let slots = || arms.iter().filter_map(|arm| arm.slots);
    let differ = slots().min() != slots().max();
    (differ && slots().max()? > connections).then_some(connections)
}

/// The arm with the fewest threads of those that are level with the best. `None` if none that may
/// be as good has more threads, or if not all threads are known: then there is nothing to choose.
fn recommended(ranking: &ArmRanking, arms: &[SummaryArm]) -> Option<String> {
    let slots = |letter: &String| arms.iter().find(|arm| arm.letter == *letter)?.slots;
    let level = std::iter::once(&ranking.best).chain(&ranking.level_with);
    let known: Vec<(u32, &String)> =
        level.map(|letter| Some((slots(letter)?, letter))).collect::<Option<_>>()?;
    let (fewest, letter) = known.into_iter().min_by_key(|(slots, _)| *slots)?;
    let mut others =
        std::iter::once(&ranking.best).chain(&ranking.level_with).chain(&ranking.unclear);
    let has_more = others.any(|letter| slots(letter).is_some_and(|slots| slots > fewest));
    (has_more && ranking.is_decided()).then(|| letter.clone())
}

/// A name, cut so that it leaves room for figures: its beginning, and more of its end, where commands
/// and paths differ.
pub(crate) fn shortened(name: &str) -> String {
    const MOST: usize = 20;
    const BEGINNING: usize = 6;
    let letters = name.chars().count();
    if letters <= MOST {
        return name.to_owned();
    }
    let end = name.chars().skip(letters - (MOST - BEGINNING - 1));
    name.chars().take(BEGINNING).chain(['…']).chain(end).collect()
}

/// What a metric is called in a sentence.
pub(crate) fn name(metric: Metric) -> String {
    match metric {
        Metric::Cpu => "CPU a request".to_owned(),
        Metric::GeneratorCpu => "longtail's CPU a request".to_owned(),
        Metric::Failed => "failed requests".to_owned(),
        Metric::Slow => "slow requests".to_owned(),
        Metric::Workers => "worker deviation".to_owned(),
        as_typed => as_typed.to_string(),
    }
}

/// `3225 → 406`: the medians of both arms, as the table has them.
pub(crate) fn medians(row: &ComparedMetric, difference: &Difference) -> String {
    let shown = |letter: &str| number::or_none(row.median(letter), number::significant);
    format!("{} → {}", shown(&difference.base), shown(&difference.arm))
}

/// The verdict in a word.
pub(crate) fn verdict(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Same => "same",
        ComparisonVerdict::CannotTell => "cannot tell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(level_with: &[&str], unclear: &[&str], ahead_of: &[&str]) -> ArmRanking {
        let letters = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        ArmRanking {
            best: "D".to_owned(),
            level_with: letters(level_with),
            ahead_of: letters(ahead_of),
            unclear: letters(unclear),
        }
    }

    #[test]
    fn the_smallest_size_that_is_level_with_the_best_is_recommended() {
        // 6, 10, 12 and 20 slots.
        let arms = SummaryComparison::of(&testkit::comparison::best()).arms;
        let taken = |level: &[&str], unclear: &[&str], ahead: &[&str]| {
            recommended(&ranking(level, unclear, ahead), &arms)
        };
        assert_eq!(taken(&["B", "C"], &[], &["A"]).as_deref(), Some("B"));
        assert_eq!(taken(&["C"], &["A"], &["B"]).as_deref(), Some("C"), "A is not known to do it");
        assert_eq!(taken(&[], &["A"], &["B", "C"]), None, "none has more threads than the best");
        assert_eq!(taken(&[], &["A", "B", "C"], &[]), None, "which is best is not known");
    }
}
