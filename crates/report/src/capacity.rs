//! The report of a search for a capacity: the table of its trials, how it was measured, and its
//! summary. What is concluded is in `judge::capacity`.

use judge::trust::TrustLine;
use model::{
    BeyondRun, CapacityBracket, CapacityForecast, CapacityPlan, CapacityStudy, CapacityTarget,
    CapacityTheory, CapacityTrial, EndOfBeyond, Nanos, SearchEnd, ServerSize, SizeSearch,
    TrialPurpose, TrialResult,
};
use serde::Serialize;

use crate::labels;
use crate::number::{self, NONE};
use crate::tree::{DataTable, TableColumn, TableRow};

/// The result of a search. In JSON rates are in requests per second, times in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryCapacity {
    /// The highest rate that passed; 0 if none did.
    pub lo_per_s: f64,
    /// The lowest rate that failed; `null` if none did.
    pub hi_per_s: Option<f64>,
    /// How sure the bracket is.
    pub confidence: f64,
    /// What must hold.
    pub objectives: Vec<String>,
    /// The objective that breaks first.
    pub binding: Option<String>,
    /// Why the search ended.
    pub stopped: Option<SearchEnd>,
    /// Whether no rate failed below one that passed.
    pub monotone: bool,
    /// Full trials at the lower end.
    pub full_trials_at_lo: u64,
    /// What a closed loop reached.
    pub closed_loop_per_s: Option<f64>,
    /// What theory says.
    pub theory: Option<CapacityTheory>,
    /// What the budget was expected to buy.
    pub forecast: Option<CapacityForecast>,
    /// What happened beyond the capacity.
    pub beyond: Vec<SummaryBeyond>,
    /// The trials, in order.
    pub trials: Vec<SummaryTrial>,
    /// With `--try`, the search of each size; then the fields above are those of an empty search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SummarySize>,
    /// What it rests on, in words.
    #[serde(skip)]
    pub reasons: Vec<String>,
}

/// A size in short.
#[derive(Clone, Debug, Serialize)]
pub struct SummarySize {
    /// Worker processes.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// CPU time of the server per request, at the highest rate that passed.
    pub cpu_ms_per_request: Option<f64>,
    /// What its search found.
    pub found: SummaryCapacity,
}

impl SummaryCapacity {
    fn bracket(&self) -> CapacityBracket {
        CapacityBracket { low: self.lo_per_s, high: self.hi_per_s }
    }

    /// The rates that it takes: `180–199`, `≥ 180`, `< 199`.
    fn takes(&self) -> String {
        let low = judge::capacity::rate_down(self.lo_per_s);
        match (self.lo_per_s > 0.0, self.hi_per_s.map(judge::capacity::rate_up)) {
            (true, Some(high)) => format!("{low}–{high}"),
            (true, None) => format!("≥ {low}"),
            (false, Some(high)) => format!("< {high}"),
            (false, None) => NONE.to_owned(),
        }
    }
}

impl SummarySize {
    fn of(size: &SizeSearch) -> SummarySize {
        let ServerSize { workers, threads, keep_alive } = size.size;
        SummarySize {
            workers,
            threads,
            keep_alive,
            cpu_ms_per_request: size.cpu_per_request().map(Nanos::as_millis_f64),
            found: summary(&size.search),
        }
    }

    fn size(&self) -> ServerSize {
        ServerSize { workers: self.workers, threads: self.threads, keep_alive: self.keep_alive }
    }

    /// The longest p99 of the trials at the lower end.
    fn p99_at_low(&self) -> Option<f64> {
        let is_low =
            |trial: &&SummaryTrial| trial.rate_per_s.total_cmp(&self.found.lo_per_s).is_eq();
        let times = self.found.trials.iter().filter(is_low).filter_map(|trial| trial.p99_ms);
        times.max_by(f64::total_cmp)
    }
}

/// An overload in short.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryBeyond {
    /// The overload / the bracket's lower end.
    pub times: f64,
    /// The overload.
    pub rate_per_s: f64,
    /// Good responses within the first objective's time, per second.
    pub goodput_per_s: f64,
    /// Requests of the overload.
    pub requests: u64,
    /// Requests of the overload that failed.
    pub failed: u64,
    /// p99 of the overload; `null` if more than 1 % failed.
    pub p99_ms: Option<f64>,
    /// The rate after it.
    pub rate_after_per_s: f64,
    /// When the objectives held again; `null`: not while it was watched.
    pub recovered_after_s: Option<f64>,
    /// Whether the objectives never held again, although the backlog could have been worked off.
    pub metastable: bool,
    /// Failed requests that were sent again in the overload.
    pub retries: u64,
    /// Failed requests that were sent again in the last ten seconds of the low rate after it.
    pub retries_at_end: u64,
    /// The share of requests that were late or failed in these ten seconds.
    pub late_at_end: Option<f64>,
    /// How long it was watched.
    pub watched_s: f64,
}

impl SummaryBeyond {
    fn of(study: &CapacityStudy, run: &BeyondRun) -> SummaryBeyond {
        let share = |end: EndOfBeyond| end.late as f64 / (end.requests as f64).max(1.0);
        SummaryBeyond {
            times: run.times,
            rate_per_s: run.rate,
            goodput_per_s: run.goodput(),
            requests: run.requests,
            failed: run.failed,
            p99_ms: run.p99.map(Nanos::as_millis_f64),
            rate_after_per_s: run.rate_after,
            recovered_after_s: run.recovered_after.map(Nanos::as_secs_f64),
            metastable: run.is_metastable(study.bracket.low),
            retries: run.retries,
            retries_at_end: run.at_end.map_or(0, |end| end.retries),
            late_at_end: run.at_end.map(share),
            watched_s: run.watched.as_secs_f64(),
        }
    }
}

/// A trial in short.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryTrial {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Why it was made.
    pub purpose: TrialPurpose,
    /// What it showed.
    pub result: TrialResult,
    /// How long it was measured, after its warm-up.
    pub seconds: f64,
    /// Requests that became due so early in this time that it is known whether they were late.
    pub requests: u64,
    /// Those that were late or failed, by the objective that was closest to being broken.
    pub late: u64,
    /// Requests that became due in all of this time, without those under way at its end.
    pub measured_requests: u64,
    /// Requests that became due, per second of it.
    pub offered_per_s: f64,
    /// Good responses per second of it, also to requests of the warm-up.
    pub completed_per_s: f64,
    /// Response times; `null` if they are not known.
    pub p50_ms: Option<f64>,
    /// The same.
    pub p99_ms: Option<f64>,
}

/// The summary of a search.
pub(crate) fn summary(study: &CapacityStudy) -> SummaryCapacity {
    let binding = study.lowest_failed().and_then(|trial| match trial.result {
        TrialResult::Failed { objective } => study.plan.objectives.get(objective),
        _ => None,
    });
    SummaryCapacity {
        lo_per_s: study.bracket.low,
        hi_per_s: study.bracket.high,
        confidence: CONFIDENCE,
        objectives: study.plan.objectives.iter().map(ToString::to_string).collect(),
        binding: binding.map(ToString::to_string),
        stopped: study.end.clone(),
        monotone: study.is_monotone,
        full_trials_at_lo: if study.bracket.low > 0.0 { 1 + study.confirmations } else { 0 },
        closed_loop_per_s: study.closed_loop_rate(),
        theory: study.theory,
        forecast: study.forecast,
        beyond: study.beyond.iter().map(|run| SummaryBeyond::of(study, run)).collect(),
        trials: study.trials.iter().map(SummaryTrial::of).collect(),
        sizes: study.sizes.iter().map(SummarySize::of).collect(),
        reasons: if study.plan.sizes.is_empty() {
            judge::capacity::reasons(study)
        } else {
            judge::frontier::reasons(study)
        },
    }
}

/// The answer.
pub(crate) fn sentence(study: &CapacityStudy) -> String {
    if study.plan.sizes.is_empty() {
        judge::capacity::sentence(study)
    } else {
        judge::frontier::sentence(study)
    }
}

/// What speaks for the answer and against it.
pub(crate) fn trust(study: &CapacityStudy) -> Vec<TrustLine> {
    if study.plan.sizes.is_empty() {
        judge::capacity::trust(study)
    } else {
        judge::frontier::trust(study)
    }
}

/// How often a bracket holds the capacity.
const CONFIDENCE: f64 = 0.95;

impl SummaryTrial {
    fn of(trial: &CapacityTrial) -> SummaryTrial {
        let late = trial.late.iter().max_by(|a, b| {
            let share = |it: &model::LateRequests| it.late as f64 / it.allowed;
            share(a).total_cmp(&share(b))
        });
        let time = |q: f64| trial.run.response_time(q).time().map(|time| time.0 as f64 / 1e6);
        SummaryTrial {
            rate_per_s: trial.rate,
            purpose: trial.purpose,
            result: trial.result,
            seconds: trial.run.measured.as_secs_f64(),
            requests: late.map_or(0, |late| late.requests),
            late: late.map_or(0, |late| late.late),
            measured_requests: trial.run.tally.counts.total(),
            offered_per_s: trial.run.due_rate(),
            completed_per_s: trial.run.completed_rate(),
            p50_ms: time(0.5),
            p99_ms: time(0.99),
        }
    }

    /// Its result, in words.
    fn words(&self, bracket: CapacityBracket) -> &'static str {
        let is_low = self.rate_per_s.total_cmp(&bracket.low).is_eq();
        match (self.result, self.purpose) {
            (TrialResult::Passed | TrialResult::Undecided, purpose) if purpose.confirms() => {
                if is_low {
                    "confirms"
                } else {
                    "not confirmed"
                }
            }
            (TrialResult::Passed, _) => "passes",
            (TrialResult::Failed { .. }, _) => "fails",
            (TrialResult::Undecided, TrialPurpose::Scout) => "scouting",
            (
                TrialResult::Undecided,
                TrialPurpose::Narrow | TrialPurpose::Confirm | TrialPurpose::FromAbove,
            ) => "undecided",
            (TrialResult::NotTrusted, _) => "not trusted",
            (TrialResult::BrokenOff, _) => "broken off",
        }
    }
}

/// Rows of the answer's table; the trials farthest from the bracket are left out first.
const ROWS: usize = 9;

fn is_whole(trial: &SummaryTrial) -> bool {
    trial.result != TrialResult::BrokenOff
}

/// The trials by rate; in the answer, which has so many rows, without those that were broken off: of
/// a few requests nothing is known.
pub(crate) fn table(summary: &SummaryCapacity, rows: Option<usize>) -> DataTable {
    let is_shown = |trial: &&SummaryTrial| rows.is_none() || is_whole(trial);
    let mut trials: Vec<&SummaryTrial> = summary.trials.iter().filter(is_shown).collect();
    let middle = summary.hi_per_s.map_or(summary.lo_per_s, |high| {
        if summary.lo_per_s > 0.0 { (summary.lo_per_s * high).sqrt() } else { high }
    });
    let distance = |trial: &&SummaryTrial| (trial.rate_per_s / middle.max(1e-9)).ln().abs();
    trials.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    trials.truncate(rows.unwrap_or(usize::MAX));
    trials.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let columns = [
        ("rate/s", 0),
        ("offered/s", 1),
        ("completed/s", 0),
        ("p50, ms", 3),
        ("p99, ms", 0),
        ("late, %", 0),
        ("requests", 2),
        ("s", 0),
    ];
    let time = |time: Option<f64>| number::or_none(time, number::of_millis);
    let rows = trials.into_iter().map(|trial| {
        let late = trial.late as f64 / (trial.requests as f64).max(1.0);
        let measured = |figure: f64| {
            let is_known = trial.seconds > 0.0;
            if is_known { number::significant(figure) } else { NONE.to_owned() }
        };
        let cells = [
            judge::capacity::rate_of_trial(trial.rate_per_s, summary.bracket()),
            measured(trial.offered_per_s),
            measured(trial.completed_per_s),
            time(trial.p50_ms),
            time(trial.p99_ms),
            if trial.requests > 0 { number::percent_tenths(late) } else { NONE.to_owned() },
            trial.measured_requests.to_string(),
            measured(trial.seconds),
        ];
        TableRow::new(cells).noted(trial.words(summary.bracket()).to_owned())
    });
    let headings = columns.map(|(name, leaves)| TableColumn::new(name).leaving(leaves));
    DataTable::of_columns(headings, rows)
}

/// A row for each size.
fn sizes(summary: &SummaryCapacity) -> DataTable {
    let names = ["workers x threads", "takes/s", "p99, ms", "closed loop/s", "CPU ms"];
    let rate = |rate: Option<f64>| number::or_none(rate, number::significant);
    let rows = summary.sizes.iter().map(|size| {
        let found = &size.found;
        let cells = [
            size.size().to_string(),
            found.takes(),
            number::or_none(size.p99_at_low(), number::of_millis),
            rate(found.closed_loop_per_s),
            number::or_none(size.cpu_ms_per_request, number::of_millis),
        ];
        TableRow::new(cells)
    });
    DataTable::of_columns(names.map(TableColumn::new), rows)
}

/// The table of the answer.
pub(crate) fn in_answer(summary: &SummaryCapacity) -> DataTable {
    if !summary.sizes.is_empty() {
        return sizes(summary);
    }
    table(summary, Some(ROWS))
}

/// What the columns are about, and how many trials the table of the answer leaves out; `None` where
/// that is clear, or the table is of sizes.
pub(crate) fn legend(summary: &SummaryCapacity) -> Option<String> {
    let shown = || summary.trials.iter().filter(|trial| is_whole(trial));
    let is_measured = |trial: &SummaryTrial| trial.seconds > 0.0;
    if !summary.sizes.is_empty() || !shown().any(is_measured) {
        return None;
    }
    let mut parts = vec!["s: after a warm-up".to_owned()];
    let is_cut = |trial: &SummaryTrial| trial.requests < trial.measured_requests;
    if shown().any(is_cut) {
        parts.push("late: of those due early enough to tell".to_owned());
    }
    let works_off = |trial: &SummaryTrial| trial.completed_per_s > 1.01 * trial.offered_per_s;
    if shown().any(works_off) {
        parts.push("completed: also of the warm-up".to_owned());
    }
    let fails_once = |trial: &&SummaryTrial| {
        matches!(trial.result, TrialResult::Failed { .. })
            && judge::capacity::fails_once(trial.rate_per_s, summary.bracket())
    };
    if let Some(once) = summary.trials.iter().find(fails_once) {
        let rate = judge::capacity::rate_of_trial(once.rate_per_s, summary.bracket());
        parts.push(match summary.bracket().high {
            Some(high) => {
                let high = judge::capacity::rate_of_trial(high, summary.bracket());
                format!("two fail up to {high}/s, one at {rate}/s")
            }
            None => format!("{rate}/s fails once: two have to fail"),
        });
    }
    let more = shown().count().saturating_sub(ROWS);
    if more > 0 {
        let trials = number::count_of(more as u64, "more trial");
        parts.push(format!("{trials}, farther from the answer: longtail report --full"));
    }
    Some(parts.join(" · "))
}

/// What was measured and how, in two lines.
pub(crate) fn measured(study: &CapacityStudy) -> Vec<String> {
    let plan = &study.plan;
    let objectives: Vec<String> = plan.objectives.iter().map(ToString::to_string).collect();
    let server = study.server.as_ref();
    let server = server.or_else(|| study.sizes.first()?.search.server.as_ref());
    let what = match (&plan.target, server) {
        (CapacityTarget::Started { .. }, Some(server)) if !plan.sizes.is_empty() => {
            let sizes: Vec<String> = plan.sizes.iter().map(ToString::to_string).collect();
            format!("{} · sizes, workers x threads: {}", labels::server(server), sizes.join(", "))
        }
        (CapacityTarget::Started { .. }, Some(server)) => {
            labels::joined([Some(labels::server(server)), Some(labels::slots(server))])
        }
        (CapacityTarget::Started { .. }, None) => String::new(),
        (CapacityTarget::Running(load), _) => {
            format!("{} {}", load.requests, &*load.url)
        }
    };
    let keep_alive = match &plan.target {
        CapacityTarget::Running(load) => load.load.keep_alive,
        CapacityTarget::Started { stream, .. } => stream.keep_alive,
    };
    let search = format!(
        "open loop, Poisson, seed {}, {} · highest rate at {} · precision {} %, budget {}",
        plan.seed,
        labels::connections(keep_alive),
        objectives.join(" and "),
        number::shortest(plan.precision * 100.0),
        judge::capacity::budget(plan.budget),
    );
    let search = match study.end {
        Some(SearchEnd::User) => {
            format!("{search}, interrupted after {}", number::minutes(study.total_time))
        }
        _ => search,
    };
    let beyond = (!plan.beyond.is_empty()).then(|| beyond(plan));
    [Some(what), Some(search), beyond].into_iter().flatten().collect()
}

/// What is offered after the search, and how clients behave then.
fn beyond(plan: &CapacityPlan) -> String {
    let times: Vec<String> =
        plan.beyond.iter().map(|times| format!("{}x", number::shortest(*times))).collect();
    let timeout = match &plan.target {
        CapacityTarget::Running(load) => load.load.timeout,
        CapacityTarget::Started { stream, .. } => stream.timeout,
    };
    let again = plan.retry.map(|retry| {
        let pause = match retry.pause {
            Nanos::ZERO => "at once".to_owned(),
            pause => format!("after {}", number::span(pause)),
        };
        format!(", come again {pause}, {} at most", number::count_of(retry.times, "time"))
    });
    format!(
        "beyond it: {}, then half of it · clients leave after {}{}",
        times.join(", "),
        number::span(timeout),
        again.unwrap_or_default()
    )
}

/// What is known after a trial: for the terminal, while the search goes on.
pub fn progress(study: &CapacityStudy) -> Option<String> {
    let trial = study.trials.last().filter(|trial| trial.result != TrialResult::BrokenOff)?;
    let short = SummaryTrial::of(trial);
    let late = short.late as f64 / (short.requests as f64).max(1.0);
    let known = if study.bracket.low > 0.0 {
        judge::capacity::sentence(study)
    } else {
        let seems = judge::capacity::provisional(study);
        let seems = seems.map(|seems| format!("seems to take {seems}"));
        seems.unwrap_or_else(|| "nothing is known yet".to_owned())
    };
    let words = short.words(study.bracket);
    let forecast = judge::capacity::forecast(study).map(|text| format!(" · {text}"));
    let forecast = forecast.unwrap_or_default();
    Some(format!(
        "{}/s {words}: {} % late · {known}{forecast}",
        judge::capacity::rate_of_trial(short.rate_per_s, study.bracket),
        number::percent_tenths(late),
    ))
}
