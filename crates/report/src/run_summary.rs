//! A run in the summary of its study: times in milliseconds, rates per second.

use std::collections::BTreeMap;

use judge::findings::server_ended;
use judge::named_runs::{NamedRun, is_hidden};
use judge::trust::{SUMMARY_PERCENTILES, ShownPercentile, UNCERTAIN, notable_generator_part};
use model::{
    CpuUsage, FarGenerator, LoadStudy, Nanos, Quantile, Run, ServerCpu, Statistics,
    UnfinishedRequests, Verdict, counts,
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
    /// The server.
    ServerBound,
    /// The CPUs that server and generator share.
    SharedCpus,
    /// The network.
    NetworkBound,
    /// An open loop: more was offered than the server can do.
    Overloaded,
    /// The generator.
    GeneratorBound,
    /// The figures are worth nothing.
    Invalid,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryRun {
    /// What it is called: `1.5x`, `tcp4 string10`; empty of a load.
    pub label: String,
    /// Connections / slots, of a sweep.
    pub multiple: Option<f64>,
    /// Which pass, from 1.
    pub repeat: u32,
    /// Connections; of an open loop those that carried a request.
    pub connections: u32,
    /// The most connections that an open loop may use.
    pub connections_limit: Option<u32>,
    /// What limited it.
    pub verdict: SummaryVerdict,
    /// The limit by name.
    pub limit: Option<&'static str>,
    /// Length of the measured window, in seconds.
    pub seconds: f64,
    /// Requests a second.
    pub rate: SummaryRate,
    /// Requests of the measured window.
    pub requests: SummaryCounts,
    /// Response time, from when a request was due to its last byte.
    pub response_ms: SummaryTimes,
    /// 95 % intervals; `null` where an end is not known.
    pub interval_ms: BTreeMap<&'static str, [Option<f64>; 2]>,
    /// The most of a percentile that may be the generator's, where that is a notable part of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub generator_ms: BTreeMap<&'static str, f64>,
    /// Between which times a percentile of these answers lies that is missing for too few of them,
    /// where that is known to a fifth.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub range_ms: BTreeMap<&'static str, [f64; 2]>,
    /// Why a percentile is missing.
    pub missing: BTreeMap<&'static str, &'static str>,
    /// Connections / throughput: what each request would take first come, first served; of a closed
    /// loop without pauses.
    pub in_order_ms: Option<f64>,
    /// The slow group of requests, where there are two groups.
    pub slow: Option<SlowGroup>,
    /// CPU time of the server a request.
    pub cpu_ms_per_request: Option<f64>,
    /// CPUs that the server used, on average, and how many it may use.
    pub cpus: Option<[f64; 2]>,
    /// The worker furthest from an even share, as a part of it.
    pub worker_deviation: Option<f64>,
    /// The generators, where they were on other machines.
    pub generators: Vec<SummaryGenerator>,
}

/// A generator on another machine.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryGenerator {
    /// The command that leads to it.
    pub name: String,
    /// Measured requests that it made.
    pub requests: u64,
    /// The median response time of its good answers.
    pub p50_ms: Option<f64>,
    /// Their 99th percentile.
    pub p99_ms: Option<f64>,
    /// The most that its clock may be off.
    pub clock_error_ms: Option<f64>,
    /// How long after the common start it started.
    pub started_late_ms: f64,
    /// Why nothing is known of what it did.
    pub lost: Option<String>,
}

impl SummaryGenerator {
    fn of(one: &FarGenerator) -> SummaryGenerator {
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

impl SummaryRun {
    /// Whether its figures are the server's.
    pub fn is_the_servers(&self) -> bool {
        !matches!(self.verdict, SummaryVerdict::Invalid | SummaryVerdict::GeneratorBound)
    }
}

/// Rates of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SummaryRate {
    /// What became due; of an open loop.
    pub offered: Option<f64>,
    /// What was sent; of an open loop.
    pub sent: Option<f64>,
    /// Good answers; `None` where another generator does not say.
    pub completed: Option<f64>,
}

/// Counts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryCounts {
    /// Requests that were to be made in the measured window; `None` where another generator does
    /// not say.
    pub planned: Option<u64>,
    /// Good answers, likewise.
    pub ok: Option<u64>,
    /// All others, likewise.
    pub failed: Option<u64>,
    /// How many of each kind.
    pub failures: BTreeMap<String, u64>,
    /// Answers by status, good and bad ones.
    pub statuses: BTreeMap<String, u64>,
    /// Those that the user left without an answer by stopping the run: in none of the counts above.
    #[serde(skip_serializing_if = "SummaryUnfinished::is_nothing")]
    pub unfinished: SummaryUnfinished,
}

/// Requests that had not ended when the user stopped the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SummaryUnfinished {
    /// Those that were out.
    pub in_flight: u64,
    /// Open loop: those for which no connection was free.
    pub not_sent: u64,
    /// Of both, those that had waited longer than any answer took: percentiles know them.
    pub above_all: u64,
}

impl SummaryUnfinished {
    fn is_nothing(&self) -> bool {
        self.in_flight + self.not_sent == 0
    }

    /// `20 unfinished and 3 not sent, not counted`; nothing where there are none.
    pub(crate) fn in_words(self) -> Option<String> {
        let SummaryUnfinished { in_flight, not_sent, above_all } = self;
        let kinds = [(in_flight, "unfinished"), (not_sent, "not sent")];
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, kind)| format!("{n} {kind}"))
            .collect();
        let slow = if above_all == 0 {
            String::new()
        } else {
            format!(" ({above_all} of them had waited longer than any answer took)")
        };
        (!kinds.is_empty()).then(|| format!("{}, not counted{slow}", kinds.join(" and ")))
    }
}

/// Response times of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SummaryTimes {
    /// The mean of the good answers.
    pub mean: Option<f64>,
    /// The percentiles.
    pub p50: Option<f64>,
    /// As `p50`.
    pub p90: Option<f64>,
    /// As `p50`.
    pub p95: Option<f64>,
    /// As `p50`.
    pub p99: Option<f64>,
    /// As `p50`.
    #[serde(rename = "p99.9")]
    pub p999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl SummaryTimes {
    /// The percentiles with their names.
    pub(crate) fn percentiles(&self) -> [(&'static str, Option<f64>); 5] {
        let names = SUMMARY_PERCENTILES.map(|shown| shown.name);
        let times = [self.p50, self.p90, self.p95, self.p99, self.p999];
        std::array::from_fn(|at| (names[at], times[at]))
    }
}

/// The slow ones of two groups of requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SlowGroup {
    /// Their share, 0 to 1.
    pub share: f64,
    /// Their mean response time.
    pub mean_ms: f64,
    /// The mean response time of the others.
    pub others_ms: f64,
}

/// Whether the figure is uncertain: its mark stands behind it.
pub(crate) fn is_uncertain(time: f64, interval: Option<&[Option<f64>; 2]>) -> bool {
    interval.is_some_and(|[low, high]| {
        low.zip(*high).is_none_or(|(low, high)| (high - low) / 2.0 > UNCERTAIN * time)
    })
}

impl SummaryRun {
    /// Whether this percentile is marked: it is known roughly, or a notable part of it may be the
    /// generator's.
    pub(crate) fn is_marked(&self, name: &str, time: f64) -> bool {
        is_uncertain(time, self.interval_ms.get(name)) || self.generator_ms.contains_key(name)
    }
}

/// `414–419?`: a percentile that too few answers support, by the range of these.
pub(crate) fn range_of_few(ends: [f64; 2]) -> String {
    let [low, high] = ends.map(number::of_millis);
    if low == high { format!("{low}?") } else { format!("{low}–{high}?") }
}

/// `21.3–27.3`, `>29.1`.
pub(crate) fn range(ends: &[Option<f64>; 2]) -> String {
    match ends {
        [Some(low), Some(high)] => {
            format!("{}–{}", number::of_millis(*low), number::of_millis(*high))
        }
        [Some(low), None] => format!(">{}", number::of_millis(*low)),
        [None, Some(high)] => format!("<{}", number::of_millis(*high)),
        [None, None] => String::new(),
    }
}

/// A time in milliseconds, to a thousandth of one.
pub(crate) fn millis(time: Nanos) -> f64 {
    (time.0 as f64 / 1e3).round() / 1e3
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A run in closed loop.
pub(crate) fn run_of(NamedRun { name, run }: &NamedRun<'_>) -> SummaryRun {
    let rate = SummaryRate { offered: None, sent: None, completed: run.rate().map(rounded) };
    SummaryRun { label: name.clone(), ..summary_run(run, rate, Some(run.connections)) }
}

pub(crate) fn load_run(study: &LoadStudy) -> SummaryRun {
    let (run, plan) = (&study.run, &study.plan);
    let is_open = plan.pace.is_open();
    let never_pauses = !is_open && plan.think == Nanos::ZERO;
    let completed =
        if is_open && run.claim.is_none() { Some(run.completed_under_load()) } else { run.rate() };
    let completed = completed.filter(|_| server_ended(run).is_none());
    let rate = SummaryRate {
        offered: run.offered_rate(&plan.pace).map(rounded),
        sent: is_open.then(|| rounded(run.sent_rate())),
        completed: completed.map(rounded),
    };
    let summary = summary_run(run, rate, never_pauses.then_some(plan.connections));
    let is_overload =
        run.statistics.as_ref().is_some_and(|statistics| statistics.is_overload(&run.tally));
    let verdict = match summary.verdict {
        SummaryVerdict::Unloaded if is_open => SummaryVerdict::KeepsUp,
        verdict if run.claim.is_none() && is_overload => verdict.max(SummaryVerdict::Overloaded),
        verdict => verdict,
    };
    let used = run.tally.per_connection.iter().filter(|answers| **answers > 0).count() as u32;
    let limit = Some(plan.connections).filter(|_| is_open && run.claim.is_none());
    let connections = limit.map_or(plan.connections, |_| used);
    SummaryRun { connections, connections_limit: limit, verdict, ..summary }
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

/// A run with these rates; `closed` are its connections where they never pause.
fn summary_run(run: &Run, rate: SummaryRate, closed: Option<u32>) -> SummaryRun {
    let judgement = run.judgement.as_ref();
    let is_hidden = is_hidden(run);
    let shown = |time: Option<Nanos>| time.filter(|_| !is_hidden).map(millis);
    let (mut missing, mut interval_ms) = (BTreeMap::new(), BTreeMap::new());
    let mut generator_ms = BTreeMap::new();
    let mut range_ms = BTreeMap::new();
    let [p50, p90, p95, p99, p999] =
        SUMMARY_PERCENTILES.map(|ShownPercentile { name, quantile: q }| {
            let why = match run.response_time(q) {
                _ if is_hidden => "invalid",
                Quantile::Time(time) => {
                    let interval =
                        run.statistics.as_ref().and_then(|statistics| statistics.interval(q));
                    let ends = interval
                        .map(|interval| [interval.low, interval.high].map(|end| end.map(millis)));
                    interval_ms.extend(
                        ends.filter(|ends| ends.iter().any(Option::is_some))
                            .map(|ends| (name, ends)),
                    );
                    let own = notable_generator_part(run, q);
                    generator_ms.extend(own.map(|own| (name, millis(own))));
                    return Some(millis(time));
                }
                Quantile::TooFew => {
                    let range = run.percentile_range(q);
                    range_ms.extend(range.map(|it| (name, [it.low, it.high].map(millis))));
                    "too_few_answers"
                }
                Quantile::Unanswered => "failures",
                Quantile::Growing => "overloaded",
                Quantile::NotPrinted => "not_printed",
            };
            missing.insert(name, why);
            None
        });
    let unanswered = run.tally.counts.censored() + run.tally.unfinished_above_all();
    let is_clean = run.claim.is_none() && run.is_evidence() && unanswered == 0;
    let groups = if is_clean { run.tally.response_time.two_groups() } else { None };
    let in_order = closed.zip(rate.completed).filter(|(_, rate)| *rate > 0.0 && is_clean);
    let bad = run.tally.counts.iter().filter(|(outcome, _)| !outcome.is_good());
    SummaryRun {
        label: String::new(),
        multiple: run.multiple,
        repeat: run.repeat,
        connections: run.connections,
        connections_limit: None,
        verdict: verdict_of(run),
        limit: judgement.and_then(|judgement| judgement.limit.as_ref()).map(judge::limits::name),
        seconds: rounded(run.measured.as_secs_f64()),
        rate,
        requests: SummaryCounts {
            planned: run.requests(),
            ok: run.good(),
            failed: run.failed(),
            failures: bad.map(|(outcome, n)| (counts::name(outcome), n)).collect(),
            statuses: run.statuses(),
            unfinished: unfinished(run),
        },
        response_ms: SummaryTimes {
            mean: shown(run.mean_response_time()),
            p50,
            p90,
            p95,
            p99,
            p999,
            max: shown(run.max_response_time().time()),
        },
        interval_ms,
        generator_ms,
        range_ms,
        missing,
        in_order_ms: in_order.map(|(n, rate)| rounded(f64::from(n) / rate * 1e3)),
        slow: groups.map(|groups| SlowGroup {
            share: rounded(groups.slow_share),
            mean_ms: millis(groups.slow_mean),
            others_ms: millis(groups.fast_mean),
        }),
        cpu_ms_per_request: run
            .generator
            .server
            .as_ref()
            .and_then(ServerCpu::per_request)
            .map(millis),
        cpus: CpuUsage::of(&run.generator).map(|cpu| [rounded(cpu.server), cpu.of]),
        worker_deviation: run
            .worker_deviations()
            .into_iter()
            .max_by(|a, b| a.abs().total_cmp(&b.abs()))
            .map(rounded),
        generators: run.generator.far.iter().map(SummaryGenerator::of).collect(),
    }
}

fn unfinished(run: &Run) -> SummaryUnfinished {
    let UnfinishedRequests { in_flight, not_sent, .. } = run.tally.unfinished;
    SummaryUnfinished { in_flight, not_sent, above_all: run.tally.unfinished_above_all() }
}

/// Interval and part of a percentile that is `time`, each as a cell: `22.6–24.3`, `>22.6`; `≤ 0.71`.
pub(crate) fn interval_cells(
    statistics: Option<&Statistics>,
    quantile: f64,
    time: Quantile,
) -> [String; 2] {
    let known = time.time().zip(statistics.and_then(|statistics| statistics.interval(quantile)));
    let Some((time, known)) = known else { return [number::NONE; 2].map(str::to_owned) };
    let interval = Some(range(&[known.low, known.high].map(|end| end.map(millis))))
        .filter(|text| !text.is_empty());
    // At most so much of the time is the generator's.
    let part = |least| format!("≤ {}", number::milliseconds(time.saturating_sub(least)));
    [number::or_none(interval, |text| text), number::or_none(known.without_generator, part)]
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
