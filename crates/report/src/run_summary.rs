//! A run as its study's reader sees it: a view of [`Run`] with what the study adds, such as its
//! name and the load that was offered. `run_columns` says which of its figures stand where.

use std::collections::BTreeMap;

use judge::findings::server_ended;
use judge::named_runs::{NamedRun, is_hidden, named_runs};
use judge::trust::{SUMMARY_PERCENTILES, notable_generator_part, rough_interval};
use model::comparison::{ComparisonRun, Metric};
use model::theory::ClassAlone;
use model::{
    BodiesStudy, BodyRun, CapacityTrial, ComparisonStudy, CpuUsage, FarGenerator, LoadPlan,
    LoadStudy, Nanos, Quantile, Run, Statistics, Study, SweepStudy, UnfinishedRequests, Verdict,
};
use serde::Serialize;

use crate::number;

/// The verdict of a row as scripts read it: that of the run, or why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryVerdict {
    /// Nothing was judged.
    NotJudged,
    /// Another generator made the run: its figures are its own.
    Claimed,
    /// An open loop: all that was offered was completed.
    KeepsUp,
    /// The load was less than the server can do.
    Unloaded,
    /// The server was the limit.
    ServerBound,
    /// The CPUs that server and generator share were.
    SharedCpus,
    /// The network was.
    NetworkBound,
    /// An open loop: more was offered than the server can do.
    Overloaded,
    /// The generator was the limit.
    GeneratorBound,
    /// The figures are worth nothing.
    Invalid,
}

/// One run of a study, as it is shown. The list `IN_JSON` of `run_columns` says what its JSON has.
#[derive(Clone, Debug)]
pub struct SummaryRun<'a> {
    /// Its name: `1.5x`, `tcp4 string10`; empty for a load, which has one run.
    pub label: String,
    /// What limited it.
    pub verdict: SummaryVerdict,
    pub(crate) run: &'a Run,
    pub(crate) context: RunContext<'a>,
    /// The class of requests that it is about, where it is not about all.
    pub(crate) class: Option<ClassShares<'a>>,
}

/// A class of requests, and its shares of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassShares<'a> {
    pub(crate) name: &'a str,
    /// Of the requests, 0 to 1.
    pub(crate) requests: Option<f64>,
    /// Of the response times of all requests, 0 to 1.
    pub(crate) response_time: Option<f64>,
    /// How long a request of it takes alone, where that was measured.
    pub(crate) alone: Option<Nanos>,
    /// Its share of the server's time, 0 to 1, by what requests of each class take alone.
    pub(crate) server_time: Option<f64>,
}

/// The study that a run is part of, and what that study records of each run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunContext<'a> {
    Sweep(&'a SweepStudy),
    Bodies(&'a BodiesStudy, &'a BodyRun),
    Comparison(&'a ComparisonStudy, &'a ComparisonRun),
    Load(&'a LoadStudy),
    Capacity(&'a CapacityTrial),
}

impl<'a> SummaryRun<'a> {
    /// The runs of a study, in the order in which they are shown.
    pub(crate) fn all_of(study: &'a Study) -> Vec<SummaryRun<'a>> {
        let contexts: Vec<RunContext<'a>> = match study {
            Study::Sweep(it) => it.runs.iter().map(|_| RunContext::Sweep(it)).collect(),
            Study::Bodies(it) => {
                it.sorted().into_iter().map(|row| RunContext::Bodies(it, row)).collect()
            }
            Study::Compare(it) => {
                it.runs.iter().map(|row| RunContext::Comparison(it, row)).collect()
            }
            Study::Load(it) => vec![RunContext::Load(it)],
            Study::Capacity(it) => it.all_trials().map(RunContext::Capacity).collect(),
        };
        let named = named_runs(study).into_iter().zip(contexts);
        named.map(|(NamedRun { name, run }, context)| SummaryRun::of(name, run, context)).collect()
    }

    /// A run of this name.
    pub(crate) fn of(label: String, run: &'a Run, context: RunContext<'a>) -> SummaryRun<'a> {
        let verdict = match context {
            RunContext::Load(study) => verdict_of_load(study),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Comparison(..)
            | RunContext::Capacity(_) => verdict_of(run),
        };
        SummaryRun { label, verdict, run, context, class: None }
    }

    /// How long a request of each class takes alone, where that was measured.
    pub(crate) fn classes_alone(&self) -> &'a [ClassAlone] {
        match self.context {
            RunContext::Sweep(study) => &study.classes_alone,
            RunContext::Load(study) => &study.classes_alone,
            RunContext::Bodies(..) | RunContext::Comparison(..) | RunContext::Capacity(_) => &[],
        }
    }

    /// The runs that had the same server, where what a class takes alone was measured.
    pub(crate) fn all_runs(&self) -> &'a [Run] {
        match self.context {
            RunContext::Sweep(study) => &study.runs,
            RunContext::Load(study) => std::slice::from_ref(&study.run),
            RunContext::Bodies(..) | RunContext::Comparison(..) | RunContext::Capacity(_) => &[],
        }
    }

    /// The run of a body, where the study is of bodies.
    pub(crate) fn body(&self) -> Option<&'a BodyRun> {
        match self.context {
            RunContext::Bodies(_, row) => Some(row),
            RunContext::Sweep(_)
            | RunContext::Comparison(..)
            | RunContext::Load(_)
            | RunContext::Capacity(_) => None,
        }
    }

    /// The run of an arm, where the study is a comparison.
    pub(crate) fn arm(&self) -> Option<&'a ComparisonRun> {
        match self.context {
            RunContext::Comparison(_, row) => Some(row),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Load(_)
            | RunContext::Capacity(_) => None,
        }
    }

    /// What was asked of the generator, where the study is of a load.
    fn load_plan(&self) -> Option<&'a LoadPlan> {
        match self.context {
            RunContext::Load(study) => Some(&study.plan),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Comparison(..)
            | RunContext::Capacity(_) => None,
        }
    }

    /// Whether the load leaves its connections open from beginning to end.
    pub(crate) fn keeps_its_connections(&self) -> bool {
        self.load_plan()
            .is_none_or(|plan| plan.load.keep_alive && plan.load.reconnect_after.is_none())
    }

    /// The most connections that an open loop may have, where the study's plan says them apart from
    /// the run; each trial of a search is an open loop.
    fn most_connections_of_open_loop(&self) -> Option<u32> {
        match self.context {
            RunContext::Load(LoadStudy { plan, .. }) if plan.load.pace.is_open() => {
                Some(plan.load.connections)
            }
            RunContext::Capacity(trial) => Some(trial.run.connections),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Comparison(..)
            | RunContext::Load(_) => None,
        }
    }

    /// Whether requests became due by a schedule.
    fn is_open_loop(&self) -> bool {
        self.most_connections_of_open_loop().is_some()
    }

    /// Whether its figures are the server's.
    pub fn is_the_servers(&self) -> bool {
        !matches!(self.verdict, SummaryVerdict::Invalid | SummaryVerdict::GeneratorBound)
    }

    /// Whether something is concluded from it.
    pub(crate) fn counts(&self) -> bool {
        match self.context {
            RunContext::Capacity(trial) => judge::capacity::counts(trial),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Comparison(..)
            | RunContext::Load(_) => self.is_the_servers(),
        }
    }

    /// Whether it is invalid, so that its figures are not shown.
    pub(crate) fn is_hidden(&self) -> bool {
        is_hidden(self.run)
    }

    /// What its arm is called, where the study is a comparison.
    pub(crate) fn letter(&self) -> Option<String> {
        match self.context {
            RunContext::Comparison(study, row) => Some(study.plan.letter(row.arm)),
            RunContext::Sweep(_)
            | RunContext::Bodies(..)
            | RunContext::Load(_)
            | RunContext::Capacity(_) => None,
        }
    }

    /// Over how many kinds of socket the study measures.
    pub(crate) fn sockets(&self) -> usize {
        match self.context {
            RunContext::Bodies(study, _) => study.plan.sockets.len(),
            RunContext::Sweep(_)
            | RunContext::Comparison(..)
            | RunContext::Load(_)
            | RunContext::Capacity(_) => 1,
        }
    }

    /// How often the study measures everything.
    pub(crate) fn passes(&self) -> u32 {
        match self.context {
            RunContext::Sweep(study) => study.plan.repeat,
            RunContext::Bodies(study, _) => study.plan.repeat,
            RunContext::Comparison(..) | RunContext::Load(_) | RunContext::Capacity(_) => 1,
        }
    }

    /// Connections; of an open loop those that had a response.
    pub(crate) fn connections(&self) -> u32 {
        match (self.load_plan(), self.connections_limit()) {
            (_, Some(_)) => {
                let carried = self.run.tally.per_connection.iter().filter(|answers| **answers > 0);
                carried.count() as u32
            }
            (Some(plan), None) => plan.load.connections,
            (None, None) => self.run.connections,
        }
    }

    /// The most connections that an open loop may use.
    pub(crate) fn connections_limit(&self) -> Option<u32> {
        self.most_connections_of_open_loop().filter(|_| self.run.claim.is_none())
    }

    /// Requests that are always outstanding: those of a closed loop without pauses.
    fn outstanding(&self) -> Option<u32> {
        if self.is_open_loop() {
            return None;
        }
        let Some(plan) = self.load_plan() else { return Some(self.run.connections) };
        (plan.load.think == Nanos::ZERO).then_some(plan.load.connections)
    }

    /// Requests a second that became due; of an open loop.
    pub(crate) fn offered(&self) -> Option<f64> {
        self.is_open_loop().then(|| self.run.due_rate())
    }

    /// Requests a second that were sent; of an open loop.
    pub(crate) fn sent(&self) -> Option<f64> {
        self.is_open_loop().then(|| self.run.sent_rate())
    }

    /// Good responses a second. A backlog that is served after the load ends is not counted. `None`
    /// where another generator does not say, and where the server ended during a load.
    pub(crate) fn completed(&self) -> Option<f64> {
        if self.load_plan().is_some() && server_ended(self.run).is_some() {
            return None;
        }
        if self.is_open_loop() && self.run.claim.is_none() {
            Some(self.run.completed_under_load())
        } else {
            self.run.rate()
        }
    }

    /// Whether it has response times to show, if only how they changed.
    pub(crate) fn has_response_times(&self) -> bool {
        let is_any = match &self.run.claim {
            Some(claim) => claim.mean.is_some(),
            None => self.run.tally.response_time.count() > 0,
        };
        is_any && !self.is_hidden()
    }

    /// The mean response time of the good responses; `None` in an overload.
    pub fn mean(&self) -> Option<Nanos> {
        self.run.mean_response_time().filter(|_| !self.is_hidden())
    }

    /// The response time at this quantile, where enough responses support it.
    pub fn percentile(&self, quantile: f64) -> Option<Nanos> {
        self.run.response_time(quantile).time().filter(|_| !self.is_hidden())
    }

    /// The longest response time; `None` in an overload.
    pub fn max(&self) -> Option<Nanos> {
        self.run.max_response_time().time().filter(|_| !self.is_hidden())
    }

    /// The range of a percentile that too few responses support, where the range is known to
    /// within a fifth.
    pub(crate) fn range_of_few(&self, quantile: f64) -> Option<[Nanos; 2]> {
        let range = self.run.percentile_range(quantile).filter(|_| !self.is_hidden())?;
        Some([range.low, range.high])
    }

    /// Why a percentile is missing.
    pub(crate) fn why_missing(&self, quantile: f64) -> Option<&'static str> {
        if self.is_hidden() {
            return Some("invalid");
        }
        match self.run.response_time(quantile) {
            Quantile::Time(_) => None,
            Quantile::TooFew => Some("too_few_answers"),
            Quantile::Unanswered => Some("failures"),
            Quantile::Growing => Some("overloaded"),
            Quantile::NotPrinted => Some("not_printed"),
        }
    }

    /// The 95 % interval of a percentile, where at least one of its ends is known.
    pub(crate) fn interval(&self, quantile: f64) -> Option<[Option<Nanos>; 2]> {
        self.percentile(quantile)?;
        let interval = self.run.statistics.as_ref()?.interval(quantile)?;
        let ends = [interval.low, interval.high];
        ends.iter().any(Option::is_some).then_some(ends)
    }

    /// The most of a percentile that may be the generator's, where that is a notable part of it.
    pub(crate) fn generator_part(&self, quantile: f64) -> Option<Nanos> {
        notable_generator_part(self.run, quantile).filter(|_| !self.is_hidden())
    }

    /// Whether a percentile is marked as uncertain: its interval is wide or, with few responses, not
    /// known at all, or a notable part of it may be the generator's.
    pub(crate) fn is_uncertain(&self, quantile: f64) -> bool {
        let has_no_ends = || {
            let statistics = self.run.statistics.as_ref();
            let interval = statistics.and_then(|it| it.interval(quantile));
            interval.is_some_and(|interval| interval.low.or(interval.high).is_none())
        };
        let is_rough = || rough_interval(self.run, quantile).is_some() || has_no_ends();
        self.percentile(quantile).is_some() && is_rough() || self.generator_part(quantile).is_some()
    }

    /// Whether arms are compared by this percentile though the run alone has too few responses for it.
    pub(crate) fn is_compared_of_few(&self, metric: Metric) -> bool {
        let arm = self.arm().filter(|_| self.class.is_none());
        arm.is_some_and(|arm| metric.of_few(arm).is_some())
    }

    /// Whether every response is known and ours, so that their distribution can be judged.
    fn is_clean(&self) -> bool {
        let tally = &self.run.tally;
        let unanswered = tally.counts.censored() + tally.unfinished_above_all();
        self.run.claim.is_none() && self.run.is_evidence() && unanswered == 0
    }

    /// Connections / throughput, in ms: how long each request of a closed loop without pauses would
    /// take, first come, first served (Little's law).
    pub(crate) fn in_order_ms(&self) -> Option<f64> {
        // A failure ends a request, too: where there are many, the good responses alone are not all
        // that the server does.
        const FEW: f64 = 0.01;
        let failed = self.run.failed()? as f64 / self.run.requests()?.max(1) as f64;
        let is_whole = self.is_clean() && failed <= FEW;
        let rate = self.completed().filter(|rate| *rate > 0.0 && is_whole)?;
        Some(f64::from(self.outstanding()?) / rate * 1e3)
    }

    /// The slow group of requests, where there are two groups.
    pub(crate) fn slow(&self) -> Option<SlowGroup> {
        if !self.is_clean() {
            return None;
        }
        let groups = self.run.tally.response_time.two_groups()?;
        Some(SlowGroup {
            share: rounded(groups.slow_share),
            mean_ms: millis(groups.slow_mean),
            others_ms: millis(groups.fast_mean),
        })
    }

    /// How many CPUs the server used on average, and how many it may use.
    pub(crate) fn cpus(&self) -> Option<[f64; 2]> {
        let usage = CpuUsage::of(&self.run.generator)?;
        Some([rounded(usage.server), usage.of])
    }

    /// How far the worker furthest from an even share is from it, as a part of that share; a single
    /// worker has none.
    pub(crate) fn worker_deviation(&self) -> Option<f64> {
        let deviations = self.run.worker_deviations();
        let furthest = deviations.iter().map(|part| part.abs()).max_by(f64::total_cmp);
        furthest.filter(|_| deviations.len() > 1)
    }

    /// `20 unfinished and 3 not sent, not counted`; nothing if there are none.
    pub(crate) fn unfinished_in_words(&self) -> Option<String> {
        let UnfinishedRequests { in_flight, not_sent, .. } = self.run.tally.unfinished;
        let above_all = self.run.tally.unfinished_above_all();
        let kinds: Vec<String> = [(in_flight, "unfinished"), (not_sent, "not sent")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, kind)| format!("{n} {kind}"))
            .collect();
        let slow = if above_all == 0 || self.run.tally.response_time.count() == 0 {
            String::new()
        } else {
            format!(" ({above_all} of these had already waited longer than any response took)")
        };
        (!kinds.is_empty()).then(|| format!("{}, not counted{slow}", kinds.join(" and ")))
    }
}

fn verdict_of(run: &Run) -> SummaryVerdict {
    match run.judgement.as_ref().map(|judgement| judgement.verdict) {
        _ if run.claim.is_some() => SummaryVerdict::Claimed,
        None => SummaryVerdict::NotJudged,
        Some(Verdict::Unloaded) => SummaryVerdict::Unloaded,
        Some(Verdict::ServerBound) => SummaryVerdict::ServerBound,
        Some(Verdict::SharedCpus) => SummaryVerdict::SharedCpus,
        Some(Verdict::NetworkBound) => SummaryVerdict::NetworkBound,
        Some(Verdict::GeneratorBound) => SummaryVerdict::GeneratorBound,
        Some(Verdict::Invalid) => SummaryVerdict::Invalid,
    }
}

fn verdict_of_load(study: &LoadStudy) -> SummaryVerdict {
    let run = &study.run;
    // Verdicts are ordered: an invalid or generator-bound run stays what it is.
    match verdict_of(run) {
        SummaryVerdict::Unloaded if study.plan.load.pace.is_open() => SummaryVerdict::KeepsUp,
        verdict if run.claim.is_none() && run.is_overload() => {
            verdict.max(SummaryVerdict::Overloaded)
        }
        verdict => verdict,
    }
}

/// A figure of each percentile of a summary that has it, by the percentile's name.
pub(crate) fn by_percentile<T>(figure: impl Fn(f64) -> Option<T>) -> BTreeMap<&'static str, T> {
    let known = SUMMARY_PERCENTILES.iter();
    known.filter_map(|shown| Some((shown.name, figure(shown.quantile)?))).collect()
}

/// A generator on another machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SummaryGenerator {
    /// The command that leads to it.
    pub(crate) name: String,
    /// Measured requests that it made.
    pub(crate) requests: u64,
    /// The median response time of its good responses.
    pub(crate) p50_ms: Option<f64>,
    /// Their 99th percentile.
    pub(crate) p99_ms: Option<f64>,
    /// The most that its clock may be off.
    pub(crate) clock_error_ms: Option<f64>,
    /// How long after the common start it started.
    pub(crate) started_late_ms: f64,
    /// Why nothing is known of what it did.
    pub(crate) lost: Option<String>,
}

impl SummaryGenerator {
    pub(crate) fn of(one: &FarGenerator) -> SummaryGenerator {
        SummaryGenerator {
            name: one.name.clone(),
            requests: one.requests,
            p50_ms: one.p50.map(millis),
            p99_ms: one.p99.map(millis),
            clock_error_ms: one.clock_error.map(millis),
            started_late_ms: millis(one.started_late),
            lost: one.lost.clone(),
        }
    }
}

/// The slow ones of two groups of requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SlowGroup {
    /// Their share, 0 to 1.
    pub(crate) share: f64,
    /// Their mean response time.
    pub(crate) mean_ms: f64,
    /// The mean response time of the others.
    pub(crate) others_ms: f64,
}

/// `414–419?`: a percentile that too few responses support, by the times between which it lies.
pub(crate) fn range_of_few(ends: [Nanos; 2]) -> String {
    let [low, high] = ends.map(number::milliseconds);
    if low == high { format!("{low}?") } else { format!("{low}–{high}?") }
}

/// `21.3–27.3`, `>29.1`.
pub(crate) fn range(ends: [Option<Nanos>; 2]) -> String {
    match ends.map(|end| end.map(number::milliseconds)) {
        [Some(low), Some(high)] => format!("{low}–{high}"),
        [Some(low), None] => format!(">{low}"),
        [None, Some(high)] => format!("<{high}"),
        [None, None] => String::new(),
    }
}

/// A time in milliseconds, to a thousandth of one.
pub(crate) fn millis(time: Nanos) -> f64 {
    (time.0 as f64 / 1e3).round() / 1e3
}

/// To a thousandth.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Two cells about a percentile that is `time`: its interval (`22.6–24.3`, `>22.6`), and the
/// generator's share of it (`≤ 0.71`).
pub(crate) fn interval_cells(
    statistics: Option<&Statistics>,
    quantile: f64,
    time: Quantile,
) -> [String; 2] {
    let known = time.time().zip(statistics.and_then(|statistics| statistics.interval(quantile)));
    let Some((time, known)) = known else { return [number::NONE; 2].map(str::to_owned) };
    let interval = Some(range([known.low, known.high])).filter(|text| !text.is_empty());
    let share = |without| format!("≤ {}", number::milliseconds(time.saturating_sub(without)));
    [number::or_none(interval, |text| text), number::or_none(known.without_generator, share)]
}

#[cfg(test)]
mod tests {
    use model::statistics::Interval;

    use super::*;
    use crate::number::NONE;

    #[test]
    fn an_interval_without_an_upper_end_says_from_where() {
        let ms = Nanos::from_millis;
        let known = Interval {
            quantile: 0.99,
            inflation: Some(3.0),
            low: Some(ms(90)),
            high: None,
            without_generator: Some(ms(95)),
        };
        let statistics = Statistics { intervals: vec![known], ..Statistics::default() };
        let cells = interval_cells(Some(&statistics), 0.99, Quantile::Time(ms(100)));
        assert_eq!(cells, [">90.0", "≤ 5.00"]);
        assert_eq!(interval_cells(Some(&statistics), 0.5, Quantile::Time(ms(100))), [NONE, NONE]);
        assert_eq!(interval_cells(Some(&statistics), 0.99, Quantile::TooFew), [NONE, NONE]);
    }
}
