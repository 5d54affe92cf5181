//! What the audit needs of a study file, read as docs/FORMAT.md says and not by the code that wrote it: an auditor that
//! shared code with the audited would share its faults. Keys that are not needed are skipped.

#![expect(clippy::struct_field_names, reason = "the names are those of the file's keys, units and all")]

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(super) enum File {
    Sweep(Box<Sweep>),
    Load(Box<Load>),
    LoadWith(Box<LoadWith>),
}

#[derive(Deserialize)]
pub(super) struct Sweep {
    pub(super) plan: SweepPlan,
    pub(super) server: Server,
    pub(super) service_time: Option<ServiceTime>,
    pub(super) runs: Vec<Run>,
    #[serde(default)]
    pub(super) claimed_runs: Vec<ClaimedRow>,
    pub(super) total_time_ns: u64,
    pub(super) interrupted: bool,
}

#[derive(Deserialize)]
pub(super) struct SweepPlan {
    pub(super) stream: Stream,
    pub(super) multiples: Vec<f64>,
    pub(super) repeat: u64,
}

#[derive(Deserialize)]
pub(super) struct Stream {
    pub(super) stop: Stop,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stop {
    AfterNs(u64),
    RequestsPerConnection(u64),
}

#[derive(Deserialize)]
pub(super) struct Server {
    pub(super) workers: u64,
    pub(super) threads: u64,
}

#[derive(Deserialize)]
pub(super) struct ServiceTime {
    pub(super) time_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct Load {
    pub(super) plan: LoadPlan,
    pub(super) run: Run,
    pub(super) interrupted: bool,
}

#[derive(Deserialize)]
pub(super) struct LoadPlan {
    pub(super) url: String,
    pub(super) pace: Pace,
    pub(super) think_ns: u64,
    pub(super) connections: u64,
    pub(super) length_ns: Option<u64>,
    pub(super) requests_total: Option<u64>,
    pub(super) pipeline: u64,
}

#[derive(Deserialize)]
pub(super) struct Pace {
    pub(super) kind: String,
    pub(super) profile: Option<Profile>,
    pub(super) arrivals: Option<String>,
    pub(super) burst: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Profile {
    pub(super) rate_per_s: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct LoadWith {
    pub(super) plan: LoadPlan,
    pub(super) run: ClaimedRun,
}

#[derive(Deserialize)]
pub(super) struct ClaimedRow {
    pub(super) multiple: f64,
    pub(super) run: ClaimedRun,
    pub(super) forecast: Option<Forecast>,
}

#[derive(Deserialize)]
pub(super) struct ClaimedRun {
    pub(super) by: String,
    pub(super) command_line: String,
    pub(super) connections: u64,
    pub(super) claim: Claimed,
    pub(super) output: String,
}

#[derive(Deserialize)]
pub(super) struct Claimed {
    pub(super) requests: Option<u64>,
    pub(super) failed: Option<u64>,
    pub(super) rate_per_s: Option<f64>,
    pub(super) duration_ns: Option<u64>,
    pub(super) mean_ns: Option<u64>,
    pub(super) stdev_ns: Option<u64>,
    pub(super) min_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    pub(super) percentiles: Vec<ClaimedPercentile>,
    pub(super) statuses: BTreeMap<String, u64>,
    pub(super) received_bytes: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct ClaimedPercentile {
    pub(super) quantile: f64,
    pub(super) time_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct Run {
    /// Of a sweep's run.
    #[serde(default)]
    pub(super) repeat: u64,
    pub(super) multiple: Option<f64>,
    pub(super) connections: Option<u64>,
    pub(super) tally: Tally,
    pub(super) measured_ns: u64,
    pub(super) elapsed_ns: u64,
    pub(super) statistics: Option<Statistics>,
    #[serde(default)]
    pub(super) workers: Vec<WorkerShare>,
    pub(super) forecast: Option<Forecast>,
    #[serde(default)]
    pub(super) generator: Generator,
    pub(super) judgement: Option<Judgement>,
    pub(super) watch: Option<Watch>,
    pub(super) anatomy: Option<Anatomy>,
    pub(super) warnings: Vec<Diagnostic>,
}

#[derive(Deserialize)]
pub(super) struct Watch {
    pub(super) tracks: Vec<Track>,
}

#[derive(Deserialize)]
pub(super) struct Track {
    pub(super) source: String,
    pub(super) at_ns: Vec<u64>,
    pub(super) curves: Vec<Curve>,
}

#[derive(Deserialize)]
pub(super) struct Curve {
    pub(super) of: String,
    pub(super) name: String,
    pub(super) values: Vec<Option<u64>>,
    #[serde(default)]
    pub(super) staleness_ns: Vec<Option<u64>>,
}

#[derive(Deserialize)]
pub(super) struct Anatomy {
    pub(super) all: Parts,
    pub(super) slowest: Option<Parts>,
    pub(super) silent: u64,
    pub(super) impossible: u64,
}

#[derive(Deserialize)]
pub(super) struct Parts {
    pub(super) requests: u64,
    pub(super) response_time_sum_ns: u64,
    pub(super) send_lag_sum_ns: u64,
    pub(super) before_app_sum_ns: Option<u64>,
    pub(super) app_sum_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct Statistics {
    pub(super) intervals: Vec<Interval>,
}

#[derive(Deserialize)]
pub(super) struct Interval {
    pub(super) quantile: f64,
    pub(super) low_ns: Option<u64>,
    pub(super) high_ns: Option<u64>,
    pub(super) without_generator_ns: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct WorkerShare {
    pub(super) worker: String,
    pub(super) requests: u64,
    pub(super) source: String,
}

#[derive(Deserialize)]
pub(super) struct Forecast {
    pub(super) service_time_ns: u64,
    pub(super) maximum_rate_per_s: f64,
    pub(super) ideal_response_time_ns: u64,
}

#[derive(Default, Deserialize)]
pub(super) struct Generator {
    #[serde(default)]
    pub(super) lanes: Vec<Lane>,
    pub(super) ceiling: Option<Ceiling>,
    pub(super) steal: Option<f64>,
    pub(super) listen_overflows: Option<u64>,
    pub(super) syn_retransmits: Option<u64>,
    pub(super) clock_steps: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Lane {
    pub(super) cpu_ns: u64,
    pub(super) run_queue_ns: u64,
    pub(super) elapsed_ns: u64,
    #[serde(default)]
    pub(super) spun_ns: u64,
    #[serde(default)]
    pub(super) stood_still_ns: u64,
    #[serde(default)]
    pub(super) longest_standstill_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct Ceiling {
    pub(super) rate_per_s: f64,
}

#[derive(Deserialize)]
pub(super) struct Judgement {
    pub(super) verdict: String,
    pub(super) gates: Vec<Gate>,
}

/// Any gate: the figures of those that are checked.
#[derive(Deserialize)]
pub(super) struct Gate {
    pub(super) gate: String,
    pub(super) ceiling_per_s: Option<f64>,
    pub(super) times: Option<f64>,
    pub(super) sent: Option<u64>,
    pub(super) due: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) of_response_time: Option<f64>,
    pub(super) share: Option<f64>,
    pub(super) in_flight: Option<f64>,
    pub(super) connections: Option<u64>,
    pub(super) tolerance: Option<f64>,
    pub(super) dropped: Option<u64>,
    pub(super) failed: Option<u64>,
    pub(super) planned: Option<u64>,
    pub(super) connects: Option<u64>,
    pub(super) retried: Option<u64>,
    pub(super) longest_ns: Option<u64>,
    pub(super) steps: Option<u64>,
}

/// Any warning: the figures of those that are checked.
#[derive(Deserialize)]
pub(super) struct Diagnostic {
    pub(super) code: String,
    pub(super) failed: Option<u64>,
    pub(super) planned: Option<u64>,
    pub(super) unanswered: Option<u64>,
    pub(super) answers: Option<u64>,
    pub(super) closed: Option<u64>,
    pub(super) jain: Option<f64>,
    pub(super) fewest: Option<u64>,
    pub(super) most: Option<u64>,
    pub(super) due: Option<u64>,
    pub(super) sent_in_time: Option<u64>,
    pub(super) requests: Option<u64>,
    pub(super) longest_ns: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Tally {
    pub(super) window: Window,
    pub(super) counts: BTreeMap<String, u64>,
    pub(super) unmeasured: BTreeMap<String, u64>,
    /// Absent in files from before it was counted.
    pub(super) bad_responses: Option<BTreeMap<String, u64>>,
    pub(super) wrong_lengths: Option<WrongLengths>,
    pub(super) response_time: Histogram,
    pub(super) service_time: Histogram,
    pub(super) send_lag: Histogram,
    pub(super) generator_lag: Histogram,
    /// Where the kernel was asked for stamps.
    #[serde(default)]
    pub(super) read_lag: Histogram,
    #[serde(default)]
    pub(super) exhausted: u64,
    pub(super) failed_response_time: Histogram,
    pub(super) completed_in_window: u64,
    pub(super) sent_in_window: u64,
    pub(super) queued: Summary,
    pub(super) phases: BTreeMap<String, Summary>,
    pub(super) slowest: Vec<Slow>,
    pub(super) per_connection: Vec<u64>,
    pub(super) per_worker: BTreeMap<String, WorkerCount>,
    pub(super) received_bytes: u64,
    /// Absent in files from before it was counted.
    #[serde(default)]
    pub(super) body_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) connections_opened: u64,
    pub(super) closed_by_server: u64,
    /// Absent in files from before it was counted.
    #[serde(default)]
    pub(super) closed_for_unasked: u64,
    pub(super) last_ended_ns: u64,
    pub(super) series: Vec<Second>,
}

#[derive(Deserialize)]
pub(super) struct WrongLengths {
    pub(super) wanted_bytes: u64,
    pub(super) shortest_bytes: u64,
    pub(super) longest_bytes: u64,
}

#[derive(Deserialize)]
pub(super) struct Window {
    pub(super) from_ns: u64,
    pub(super) until_ns: Option<u64>,
}

#[derive(Default, Deserialize)]
pub(super) struct Histogram {
    pub(super) count: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) sum_ns: u64,
    pub(super) buckets: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
pub(super) struct Summary {
    pub(super) count: u64,
    pub(super) sum_ns: u64,
    pub(super) min_ns: Option<u64>,
    pub(super) max_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct Slow {
    pub(super) response_time_ns: u64,
    pub(super) service_time_ns: u64,
    pub(super) due_ns: u64,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct WorkerCount {
    pub(super) measured: u64,
    pub(super) all: u64,
}

#[derive(Deserialize)]
pub(super) struct Second {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) response_time_sum_ns: u64,
    pub(super) response_time_max_ns: u64,
}

/// Whether an outcome is a good answer, an answer at all, one that was never sent, one whose answer might still come.
pub(super) fn is_good(outcome: &str) -> bool {
    matches!(outcome.parse::<u16>(), Ok(200..=399))
}

pub(super) fn is_answer(outcome: &str) -> bool {
    outcome.parse::<u16>().is_ok()
}

/// How many of `counts` are such.
pub(super) fn number(counts: &BTreeMap<String, u64>, wanted: impl Fn(&str) -> bool) -> u64 {
    counts.iter().filter(|(outcome, _)| wanted(outcome)).fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

impl Tally {
    pub(super) fn good(&self) -> u64 {
        number(&self.counts, is_good)
    }

    pub(super) fn total(&self) -> u64 {
        number(&self.counts, |_| true)
    }

    pub(super) fn unmeasured_good(&self) -> u64 {
        number(&self.unmeasured, is_good)
    }
}

impl Histogram {
    /// The quantile by nearest rank, as docs/METHOD.md says: the highest time of the bucket, within the exact ends.
    pub(super) fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.count as f64 - 1e-9).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        self.buckets.iter().find_map(|(highest, n)| {
            seen = seen.saturating_add(*n);
            (seen >= rank).then(|| (*highest).min(self.max_ns).max(self.min_ns))
        })
    }
}
