//! The summary of a study: what a person or a script wants of it first, with every percentile and nothing else. `--json` prints it;
//! the answer, Markdown and HTML lay it out, so that all of them say the same.

use std::collections::BTreeMap;

use model::{
    CpuUsage, FarGenerator, Finding, FindingRole, Judgement, Limit, LoadStudy, Nanos, Quantile, Run, Study, Verdict,
    counts, findings,
};
use serde::Serialize;

use crate::comparison::{self, SummaryComparison};
use crate::expectations::{self, ExpectationResult};
use crate::measured::{self, StudyHead};
use crate::named_runs::{hides, named_runs};
use crate::next_steps::{NextCommand, next_commands};
use crate::sentences;
use crate::trust::{TrustLine, TrustMark, trust};

/// The version of the summary that this code writes.
pub(crate) const SUMMARY_SCHEMA: &str = "longtail.summary/1";

/// A study in short. Times are in milliseconds, rates in requests per second.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// `SUMMARY_SCHEMA`.
    pub schema: &'static str,
    /// Which command made the study.
    pub command: &'static str,
    /// What the runs were limited by; of several the worst.
    pub verdict: SummaryVerdict,
    /// Whether every run's figures are the server's.
    pub trusted: bool,
    /// The conclusion.
    pub sentence: String,
    /// What was measured, and how: two lines.
    pub measured: Vec<String>,
    /// The command line that repeats it.
    pub command_line: String,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// longtail's version.
    pub longtail: String,
    /// A row a run.
    pub runs: Vec<SummaryRun>,
    /// Conclusions and reasons, with their evidence.
    pub findings: Vec<SummaryFinding>,
    /// What speaks for the figures and against them.
    pub trust: Vec<TrustLine>,
    /// Commands that settle what is open.
    pub next: Vec<NextCommand>,
    /// What a comparison came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<SummaryComparison>,
    /// What was expected, and what came of it.
    pub expectations: Vec<ExpectationResult>,
    /// Where the whole study is.
    pub study: Option<String>,
}

/// What limited a study.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple: Option<f64>,
    /// Which pass, from 1.
    pub repeat: u32,
    /// Connections; of an open loop those that carried a request.
    pub connections: u32,
    /// The most connections that an open loop may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_limit: Option<u32>,
    /// What limited it.
    pub verdict: SummaryVerdict,
    /// The limit by name.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interval_ms: BTreeMap<&'static str, [Option<f64>; 2]>,
    /// Why a percentile is missing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<&'static str, &'static str>,
    /// Connections / throughput: what each request would take first come, first served; of a closed loop without pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_order_ms: Option<f64>,
    /// The slow group of requests, where there are two groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowGroup>,
    /// CPU time of the server a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms_per_request: Option<f64>,
    /// CPUs that the server used, on average, and how many it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<[f64; 2]>,
    /// The worker furthest from an even share, as a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_deviation: Option<f64>,
    /// The generators, where they were on other machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// What was sent; of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<f64>,
    /// Good answers; `None` where another generator does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<f64>,
}

/// Counts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryCounts {
    /// Requests that were to be made in the measured window; `None` where another generator does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Good answers, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<u64>,
    /// All others, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// How many of each kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
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
        let names = SUMMARY_PERCENTILES.map(|(name, _)| name);
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

/// A finding, in a sentence and with its evidence.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryFinding {
    /// `conclusion` or `reason`.
    pub role: FindingRole,
    /// In words.
    pub sentence: String,
    /// The evidence, with its code.
    #[serde(flatten)]
    pub finding: Finding,
}

/// The percentiles of a summary, with their names.
pub(crate) const SUMMARY_PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.50), ("p90", 0.90), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

impl Summary {
    /// Of a study that is kept as `saved`.
    pub fn of(study: &Study, saved: Option<String>) -> Summary {
        let named = named_runs(study);
        let in_closed_loop = || named.iter().map(|named| run_of(named.run, named.name.clone())).collect();
        let (command, runs): (_, Vec<SummaryRun>) = match study {
            Study::Sweep(_) | Study::Bodies(_) => ("sweep", in_closed_loop()),
            Study::Load(study) => ("load", vec![load_run(study)]),
            Study::Compare(_) => ("compare", in_closed_loop()),
        };
        let findings = findings(study);
        let next = next_commands(study, &findings);
        let findings: Vec<SummaryFinding> = findings.into_iter().map(in_words).collect();
        let comparison = match study {
            Study::Compare(study) => Some(comparison::summary(study)),
            _ => None,
        };
        let conclusions = findings.iter().filter(|finding| finding.role == FindingRole::Conclusion);
        // A comparison's runs that failed their checks are not counted.
        let is_counted = |run: &&SummaryRun| comparison.is_none() || run.is_the_servers();
        let verdict = runs.iter().filter(is_counted).map(|run| run.verdict).max();
        let is_trusted = verdict.is_some() && runs.iter().filter(is_counted).all(SummaryRun::is_the_servers);
        let sentence = match &comparison {
            Some(comparison) => comparison::sentence(comparison),
            None => conclusions.map(|finding| finding.sentence.as_str()).collect::<Vec<_>>().join(" "),
        };
        let none = if runs.is_empty() { SummaryVerdict::NotJudged } else { SummaryVerdict::Invalid };
        let trust = match (study, &comparison) {
            (Study::Compare(compared), Some(comparison)) => {
                let sound = trust(study, &comparison::sound_runs(compared));
                let (passed, doubts): (Vec<_>, Vec<_>) =
                    sound.into_iter().partition(|line| line.mark == TrustMark::Passed);
                let own = comparison::trust(compared, comparison);
                passed.into_iter().chain(own).chain(doubts).collect()
            }
            _ => trust(study, &named),
        };
        let head = StudyHead::of(study);
        Summary {
            schema: SUMMARY_SCHEMA,
            command,
            verdict: verdict.unwrap_or(none),
            trusted: !study.is_claimed() && is_trusted,
            sentence,
            measured: measured::lines(study),
            command_line: head.command_line.to_owned(),
            started_at: head.started_at.to_owned(),
            longtail: head.environment.longtail_version.clone(),
            trust,
            next,
            expectations: expectations::results(study.thresholds(), &named),
            runs,
            findings,
            comparison,
            study: saved,
        }
    }

    /// As JSON, on lines of its own.
    ///
    /// # Panics
    /// Never: every value of a summary has a place in JSON.
    pub fn json(&self) -> String {
        // A figure of a run, or the evidence of a finding, is a line.
        crate::json::indented(self, 2)
    }

    /// The reasons, in words.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let reasons = self.findings.iter().filter(|finding| finding.role == FindingRole::Reason);
        let of_comparison = self.comparison.iter().flat_map(|comparison| &comparison.reasons);
        reasons.map(|finding| finding.sentence.as_str()).chain(of_comparison.map(String::as_str))
    }
}

fn in_words(finding: Finding) -> SummaryFinding {
    SummaryFinding { role: finding.role(), sentence: sentences::of(&finding), finding }
}

/// A time in milliseconds, to a thousandth of one.
pub(crate) fn millis(time: Nanos) -> f64 {
    (time.0 as f64 / 1e3).round() / 1e3
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The rates of a run, and its connections where it is a closed loop that never pauses.
struct RunRates {
    rate: SummaryRate,
    closed: Option<u32>,
}

/// A run in closed loop.
fn run_of(run: &Run, label: String) -> SummaryRun {
    let rate = SummaryRate { offered: None, sent: None, completed: run.rate().map(rounded) };
    let verdict = if run.claim.is_some() { SummaryVerdict::Claimed } else { verdict_of(run.judgement.as_ref()) };
    summary_run(run, label, RunRates { rate, closed: Some(run.connections) }, verdict)
}

pub(crate) fn load_run(study: &LoadStudy) -> SummaryRun {
    let (run, plan) = (&study.run, &study.plan);
    let is_open = plan.pace.is_open();
    let never_pauses = !is_open && plan.think == Nanos::ZERO;
    let rate = SummaryRate {
        offered: run.offered_rate(&plan.pace).map(rounded),
        sent: is_open.then(|| rounded(run.sent_rate())),
        completed: match &run.claim {
            None if is_open => Some(run.completed_under_load()),
            _ => run.rate(),
        }
        .map(rounded),
    };
    let is_overload = run.statistics.as_ref().is_some_and(|statistics| statistics.is_overload(&run.tally));
    let verdict = match verdict_of(run.judgement.as_ref()) {
        _ if run.claim.is_some() => SummaryVerdict::Claimed,
        SummaryVerdict::Unloaded if is_open => SummaryVerdict::KeepsUp,
        verdict if is_overload && verdict < SummaryVerdict::Overloaded => SummaryVerdict::Overloaded,
        verdict => verdict,
    };
    let closed = never_pauses.then_some(plan.connections * plan.pipeline.max(1));
    let used = run.tally.per_connection.iter().filter(|answers| **answers > 0).count() as u32;
    let limit = Some(plan.connections).filter(|_| is_open && run.claim.is_none());
    SummaryRun {
        connections: limit.map_or(plan.connections, |_| used),
        connections_limit: limit,
        ..summary_run(run, String::new(), RunRates { rate, closed }, verdict)
    }
}

fn verdict_of(judgement: Option<&Judgement>) -> SummaryVerdict {
    match judgement.map(|judgement| judgement.verdict) {
        None => SummaryVerdict::NotJudged,
        Some(Verdict::Unloaded) => SummaryVerdict::Unloaded,
        Some(Verdict::ServerBound) => SummaryVerdict::ServerBound,
        Some(Verdict::SharedCpus) => SummaryVerdict::SharedCpus,
        Some(Verdict::NetworkBound) => SummaryVerdict::NetworkBound,
        Some(Verdict::GeneratorBound) => SummaryVerdict::GeneratorBound,
        Some(Verdict::Invalid) => SummaryVerdict::Invalid,
    }
}

fn summary_run(run: &Run, label: String, RunRates { rate, closed }: RunRates, verdict: SummaryVerdict) -> SummaryRun {
    let judgement = run.judgement.as_ref();
    let is_hidden = hides(judgement);
    let quantiles = SUMMARY_PERCENTILES.map(|(_, q)| run.response_time(q));
    let shown = |time: Option<Nanos>| time.filter(|_| !is_hidden).map(millis);
    let [p50, p90, p95, p99, p999] = quantiles.map(|quantile| shown(quantile.time()));
    let missing = SUMMARY_PERCENTILES.iter().zip(quantiles).filter_map(|((name, _), quantile)| {
        let why = match quantile {
            _ if is_hidden => "invalid",
            Quantile::Time(_) => return None,
            Quantile::TooFew => "too_few_answers",
            Quantile::Unanswered => "failures",
            Quantile::Growing => "overloaded",
            Quantile::NotPrinted => "not_printed",
        };
        Some((*name, why))
    });
    let intervals = SUMMARY_PERCENTILES.iter().zip(quantiles).filter_map(|((name, q), quantile)| {
        quantile.time().filter(|_| !is_hidden)?;
        let interval = run.statistics.as_ref()?.interval(*q)?;
        let ends = [interval.low.map(millis), interval.high.map(millis)];
        ends.iter().any(Option::is_some).then_some((*name, ends))
    });
    let is_clean = run.claim.is_none() && run.is_evidence() && run.tally.counts.censored() == 0;
    let groups = if is_clean { run.tally.response_time.two_groups() } else { None };
    let deviations = run.worker_deviations();
    let in_order = closed.zip(rate.completed).filter(|(_, rate)| *rate > 0.0 && is_clean);
    SummaryRun {
        label,
        multiple: run.multiple,
        repeat: run.repeat,
        connections: run.connections,
        connections_limit: None,
        verdict,
        limit: judgement.and_then(|judgement| judgement.limit.as_ref()).map(Limit::name),
        seconds: rounded(run.measured.as_secs_f64()),
        rate,
        requests: counts_of(run),
        response_ms: SummaryTimes {
            mean: shown(run.mean_response_time()),
            p50,
            p90,
            p95,
            p99,
            p999,
            max: shown(run.max_response_time().time()),
        },
        interval_ms: intervals.collect(),
        missing: missing.collect(),
        in_order_ms: in_order.map(|(n, rate)| rounded(f64::from(n) / rate * 1e3)),
        slow: groups.map(|groups| SlowGroup {
            share: rounded(groups.slow_share),
            mean_ms: millis(groups.slow_mean),
            others_ms: millis(groups.fast_mean),
        }),
        cpu_ms_per_request: run.generator.server.as_ref().and_then(model::ServerCpu::per_request).map(millis),
        cpus: CpuUsage::of(&run.generator).map(|cpu| [rounded(cpu.server), cpu.of]),
        worker_deviation: deviations.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())).map(rounded),
        generators: run.generator.far.iter().map(SummaryGenerator::of).collect(),
    }
}

fn counts_of(run: &Run) -> SummaryCounts {
    let bad = run.tally.counts.iter().filter(|(outcome, _)| !outcome.is_good());
    SummaryCounts {
        planned: run.requests(),
        ok: run.good(),
        failed: run.failed(),
        failures: bad.map(|(outcome, n)| (counts::name(outcome), n)).collect(),
    }
}
