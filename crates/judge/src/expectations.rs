//! Whether the user's thresholds (`--expect`, `--fail-if`) are met: one sentence for each
//! threshold, however many runs there are.

use model::number::count_of;
use model::objective::{Compare, ObjectiveFigure};
use model::{Nanos, Objective, Run, Study, Threshold, number};
use serde::Serialize;

use crate::cut_short::{result_so_far, so_far};
use crate::named_runs::NamedRun;
use crate::next::{longer_by, two_digits_up};
use crate::steps::{self, HeldStep, StepsResult};
use crate::thresholds::{ThresholdDoubt, ThresholdResult, held_against, of_class, times_as_long};

/// A sentence names at most this many runs; the others are counted.
const NAMED: usize = 3;

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// As it was typed.
    pub expected: String,
    /// The same for a script.
    #[serde(flatten)]
    pub limit: ExpectedLimit,
    /// `met`, `missed` or `cannot_tell`.
    pub result: &'static str,
    /// The figure in words, and why the result is unknown if it is.
    pub sentence: String,
    /// The result in each run, or in each step of a load that has steps.
    pub runs: Vec<ExpectedRun>,
    /// Of a load with steps: the highest rate at which it is shown to hold, and the lowest at which
    /// it is missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_per_s: Option<[Option<f64>; 2]>,
}

/// What an expectation asks, for a script that does not take `expected` apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedLimit {
    /// The class of requests; `None` is all.
    pub class: Option<String>,
    /// The part of a run with an event, such as `during`; `None` is all of it.
    pub part: Option<String>,
    /// `p99`, `service p99`, `mean`, `max`, `failed`, `sent`, `throughput`, or `capacity`.
    pub figure: String,
    /// `below` or `above`: where the figure must be, whether that was said by `--expect` or
    /// `--fail-if`.
    pub must_be: &'static str,
    /// The limit, in the unit of the values.
    pub limit: f64,
    /// `ms`, `per_s`, `share` or `count`.
    pub unit: &'static str,
}

impl ExpectedLimit {
    fn of(threshold: &Threshold) -> ExpectedLimit {
        let condition = &threshold.condition;
        let is_below = (condition.compare == Compare::Below) == threshold.is_expected;
        ExpectedLimit {
            class: threshold.class.clone(),
            part: condition.part.map(|part| part.to_string()),
            figure: condition.figure.to_string(),
            must_be: if is_below { "below" } else { "above" },
            limit: in_units_of_json(condition.figure, condition.limit),
            unit: match condition.figure {
                ObjectiveFigure::ErrorShare | ObjectiveFigure::SentShare => "share",
                ObjectiveFigure::Errors => "count",
                ObjectiveFigure::Completed => "per_s",
                ObjectiveFigure::ResponseTime(_)
                | ObjectiveFigure::ServiceTime(_)
                | ObjectiveFigure::Mean
                | ObjectiveFigure::Max => "ms",
            },
        }
    }
}

/// The result of an expectation in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedRun {
    /// Which run.
    pub label: String,
    /// `met`, `missed` or `cannot_tell`.
    pub result: &'static str,
    /// Why the result is unknown.
    pub why: Option<ThresholdDoubt>,
    /// The figure: times in milliseconds, rates per second, shares 0 to 1; `null` if nothing bounds
    /// it.
    pub value: Option<f64>,
    /// Its 95 % interval; `None` where there is no value.
    pub interval: Option<[Option<f64>; 2]>,
}

/// The results of all thresholds of a study.
pub fn results(study: &Study, runs: &[NamedRun<'_>]) -> Vec<ExpectationResult> {
    let held = study.held_runs();
    let is_held = |run: &&NamedRun<'_>| held.iter().any(|other| std::ptr::eq(*other, run.run));
    let runs: Vec<&NamedRun<'_>> = runs.iter().filter(is_held).collect();
    let of_one = |threshold: &Threshold| {
        let steps = steps::held(study, threshold);
        match StepsResult::of(&steps) {
            Some(found) => of_steps(study, threshold, &steps, &found),
            None => result(study, threshold, &runs),
        }
    };
    study.thresholds().iter().map(of_one).collect()
}

/// Whether a study is shown to meet a threshold: this decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdShown {
    /// The threshold is met in all runs.
    Shown,
    /// It is missed, or the result is unknown.
    NotShown,
    /// The figures of one of its runs are worthless.
    OfInvalidRun,
}

/// Whether the study with these runs is shown to meet this threshold.
pub fn is_shown(study: &Study, threshold: &Threshold, runs: &[&Run]) -> ThresholdShown {
    let steps = steps::held(study, threshold);
    if let Some(found) = StepsResult::of(&steps) {
        return shown_if(found.is_shown(), found.is_of_invalid_run());
    }
    let results: Vec<ThresholdResult> =
        runs.iter().filter_map(|run| held_against(run, threshold)).collect();
    let is_shown = !results.is_empty() && results.iter().all(ThresholdResult::is_shown);
    let is_invalid = |result: &ThresholdResult| result.doubt == Some(ThresholdDoubt::Invalid);
    shown_if(is_shown, results.iter().any(is_invalid))
}

fn shown_if(is_shown: bool, is_of_invalid_run: bool) -> ThresholdShown {
    if is_of_invalid_run {
        ThresholdShown::OfInvalidRun
    } else if is_shown {
        ThresholdShown::Shown
    } else {
        ThresholdShown::NotShown
    }
}

/// The result in a load with steps.
fn of_steps(
    study: &Study,
    threshold: &Threshold,
    steps: &[HeldStep<'_>],
    found: &StepsResult<'_>,
) -> ExpectationResult {
    let condition = &threshold.condition;
    let named = |held: &HeldStep<'_>| held.step.in_words();
    let names: Vec<String> = steps.iter().map(named).collect();
    let results: Vec<NamedResult<'_>> = names
        .iter()
        .zip(steps)
        .map(|(label, held)| NamedResult::of(study, threshold, label, &held.run, held.result))
        .collect();
    let figure_name = figure_in_words(condition);
    let mut shown = found.in_words(&figure_name, &in_unit(condition, condition.limit));
    let (result, word) = if found.breaks_at.is_some() {
        ("missed", "FAIL")
    } else if found.is_shown() {
        ("met", "PASS")
    } else {
        ("cannot_tell", "CANNOT TELL")
    };
    let position = |held: &HeldStep<'_>| steps.iter().position(|one| std::ptr::eq(one, held));
    if result == "cannot_tell" {
        let why = position(found.fastest)
            .map(|number| doubt(condition, &results[number]))
            .unwrap_or_default();
        shown += &why.replacen(", but ", ": ", 1);
    } else {
        let told = found.breaks_at.or(found.holds_at);
        let told = told.filter(|held| held.result.value.is_some_and(f64::is_finite));
        let told = told.and_then(position).map(|number| {
            let it = &results[number];
            format!("; it is {} at {}", figure(condition, it), it.label)
        });
        shown += &told.unwrap_or_default();
    }
    ExpectationResult {
        expected: threshold.to_string(),
        limit: ExpectedLimit::of(threshold),
        result,
        sentence: format!(
            "{} {}: {shown}",
            result_so_far(word, so_far(study).as_deref()),
            as_asked(threshold)
        ),
        runs: results.iter().map(|it| in_short(condition, it)).collect(),
        between_per_s: Some(found.bracket()),
    }
}

/// A figure at the beginning of a clause: `p99`, `the failed share`.
fn figure_in_words(condition: &Objective) -> String {
    match condition.figure {
        ObjectiveFigure::ResponseTime(q) => number::percentile(q),
        ObjectiveFigure::ServiceTime(q) => format!("the service time's {}", number::percentile(q)),
        ObjectiveFigure::Mean => "the mean".to_owned(),
        ObjectiveFigure::Max => "the longest response time".to_owned(),
        ObjectiveFigure::ErrorShare => "the share of failed requests".to_owned(),
        ObjectiveFigure::Errors => "the number of failed requests".to_owned(),
        ObjectiveFigure::SentShare => "the share of sent requests".to_owned(),
        ObjectiveFigure::Completed => "the throughput".to_owned(),
    }
}

/// The threshold, to stand after PASS or FAIL: "PASS expect …" and "PASS fail if …" would confuse.
fn as_asked(threshold: &Threshold) -> String {
    if threshold.is_expected {
        threshold.asked()
    } else {
        format!("--fail-if '{}'", threshold.asked())
    }
}

/// About how many good responses there are in a run that is this many times as long, of those that a
/// threshold is about.
fn responses_in(run: &Run, threshold: &Threshold, times: f64) -> u64 {
    let good = of_class(run, threshold).map_or(0, |run| run.tally.counts.good());
    two_digits_up((good as f64 * times).ceil() as u64)
}

/// A result with the name of its run.
struct NamedResult<'a> {
    label: &'a str,
    result: ThresholdResult,
    /// What to type for a run that is long enough to decide; `None` if there is no such run.
    longer: Option<String>,
    /// About how many responses would decide, if that can be told.
    needs: Option<u64>,
    /// How many requests it is about.
    requests: u64,
    /// The exit code of the event's command.
    exit_code: Option<i32>,
    /// Why nothing bounds a response time, where nothing does.
    no_bound: String,
}

impl<'a> NamedResult<'a> {
    fn of(
        study: &Study,
        threshold: &Threshold,
        label: &'a str,
        run: &Run,
        result: ThresholdResult,
    ) -> NamedResult<'a> {
        let times = times_as_long(run, threshold);
        NamedResult {
            label,
            result,
            longer: times.and_then(|times| longer_by(study, times)),
            needs: times.map(|times| responses_in(run, threshold, times)),
            requests: of_class(run, threshold).map_or(0, |run| run.tally.counts.total()),
            exit_code: exit_code(run),
            no_bound: no_bound(run, of_class(run, threshold).as_deref().unwrap_or(run)),
        }
    }
}

impl NamedResult<'_> {
    /// The result in a word.
    fn word(&self) -> &'static str {
        match self.result.doubt {
            Some(_) => "cannot_tell",
            None if self.result.is_met => "met",
            None => "missed",
        }
    }
}

fn result(study: &Study, threshold: &Threshold, runs: &[&NamedRun<'_>]) -> ExpectationResult {
    let held = runs.iter().filter_map(|run| {
        let result = held_against(run.run, threshold)?;
        Some(NamedResult::of(study, threshold, &run.name, run.run, result))
    });
    let results: Vec<NamedResult<'_>> = held.collect();
    let [missed, doubtful] = ["missed", "cannot_tell"]
        .map(|word| results.iter().filter(|it| it.word() == word).collect::<Vec<_>>());
    let condition = &threshold.condition;
    let (result, word, shown) = match (missed.as_slice(), doubtful.as_slice()) {
        ([], []) if results.is_empty() => {
            ("cannot_tell", "CANNOT TELL", "nothing was measured".to_owned())
        }
        ([], []) => ("met", "PASS", passed(threshold, &results)),
        ([], doubtful) => ("cannot_tell", "CANNOT TELL", listed(condition, doubtful)),
        (missed, _) => ("missed", "FAIL", listed(condition, missed)),
    };
    ExpectationResult {
        expected: threshold.to_string(),
        limit: ExpectedLimit::of(threshold),
        result,
        sentence: format!(
            "{} {}: {shown}",
            result_so_far(word, so_far(study).as_deref()),
            as_asked(threshold)
        ),
        runs: results.iter().map(|it| in_short(condition, it)).collect(),
        between_per_s: None,
    }
}

/// Why nothing bounds the response times of `class`, which is one of the run's, or all of it.
fn no_bound(run: &Run, class: &Run) -> String {
    if run.is_overload() || class.is_overload() {
        let longest = class.tally.longest_response_time().time().map(number::time);
        let longest = longest.map(|time| format!(", up to {time}")).unwrap_or_default();
        return format!("requests waited longer and longer{longest}");
    }
    let counts = &class.tally.counts;
    format!("{} of {} failed or had no response", counts.total() - counts.good(), counts.total())
}

/// The exit code of the command of the run's event.
fn exit_code(run: &Run) -> Option<i32> {
    run.event.as_ref()?.command.as_ref()?.exit_code
}

/// `it is 23.5 ms`, or of several runs the one that is nearest to the limit.
fn passed(threshold: &Threshold, results: &[NamedResult<'_>]) -> String {
    let condition = &threshold.condition;
    if let [one] = results {
        return listed(condition, &[one]);
    }
    let value = |it: &&NamedResult<'_>| it.result.value.unwrap_or(f64::NAN);
    let by_value = |a: &&NamedResult<'_>, b: &&NamedResult<'_>| value(a).total_cmp(&value(b));
    // What must not be above a limit is to be below it.
    let is_upper_limit = (condition.compare == Compare::Below) == threshold.is_expected;
    let (most, nearest) = if is_upper_limit {
        ("highest", results.iter().max_by(by_value))
    } else {
        ("lowest", results.iter().min_by(by_value))
    };
    let nearest = nearest.map(|it| format!("; {most} {} at {}", figure(condition, it), it.label));
    format!("in all {} runs{}", results.len(), nearest.unwrap_or_default())
}

/// `it is 23.5 ms (21.3–27.3 ms)`, or `it is 1.01 s at 1.5x, 1.21 s at 2x and 2 more`.
fn listed(condition: &Objective, results: &[&NamedResult<'_>]) -> String {
    let named = results.iter().take(NAMED).map(|it| {
        let at = if it.label.is_empty() { String::new() } else { format!(" at {}", it.label) };
        format!("{}{at}{}", figure(condition, it), doubt(condition, it))
    });
    let more = results.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    // What too few responses give may be their longest, and no figure of the server.
    let has_too_few =
        results.iter().any(|it| it.result.doubt == Some(ThresholdDoubt::TooFewAnswers));
    let begin = if has_too_few { "the responses give" } else { "it is" };
    format!("{begin} {}{more}", named.collect::<Vec<_>>().join(", "))
}

fn figure(condition: &Objective, it: &NamedResult<'_>) -> String {
    let result = &it.result;
    let Some(value) = result.value else { return "not known".to_owned() };
    if value.is_infinite() {
        return format!("not bounded: {}", it.no_bound);
    }
    let range = match result.interval.map(|ends| (ends.low, ends.high)) {
        Some((Some(low), Some(high))) => {
            format!(
                " ({}–{})",
                in_unit(condition, low).trim_end_matches(" ms"),
                in_unit(condition, high)
            )
        }
        Some((Some(low), None)) => format!(" (at least {})", in_unit(condition, low)),
        _ => String::new(),
    };
    let generator = match condition.figure {
        _ if !result.includes_generator => "",
        ObjectiveFigure::ResponseTime(_)
        | ObjectiveFigure::ServiceTime(_)
        | ObjectiveFigure::Mean
        | ObjectiveFigure::Max => ", longtail's own delay included",
        ObjectiveFigure::ErrorShare
        | ObjectiveFigure::Errors
        | ObjectiveFigure::SentShare
        | ObjectiveFigure::Completed => {
            ", and longtail, though late, made the load that was asked for"
        }
    };
    format!("{}{range}{generator}", in_unit(condition, value))
}

fn in_unit(condition: &Objective, value: f64) -> String {
    match condition.figure {
        _ if value.is_infinite() => "not bounded".to_owned(),
        ObjectiveFigure::ErrorShare | ObjectiveFigure::SentShare => {
            format!("{} %", number::percent_tenths(value))
        }
        ObjectiveFigure::Errors => (value as u64).to_string(),
        ObjectiveFigure::Completed => format!("{}/s", number::rate_in_words(value)),
        ObjectiveFigure::ResponseTime(_)
        | ObjectiveFigure::ServiceTime(_)
        | ObjectiveFigure::Mean
        | ObjectiveFigure::Max => number::time(Nanos(value as u64)),
    }
}

/// Why the result is unknown, and what would help.
fn doubt(condition: &Objective, it: &NamedResult<'_>) -> String {
    let why = match it.result.doubt {
        None => return String::new(),
        Some(ThresholdDoubt::Invalid) => return ", but the run is INVALID".to_owned(),
        Some(ThresholdDoubt::GeneratorBound) => {
            return ", but longtail was the limit, not the server".to_owned();
        }
        Some(ThresholdDoubt::NotPrinted) => {
            return ", because the generator did not print it".to_owned();
        }
        Some(ThresholdDoubt::ImpossibleClaim) => {
            return ", but the generator's claim is impossible".to_owned();
        }
        Some(ThresholdDoubt::EventNotDone) => return ", but the event was not done".to_owned(),
        Some(ThresholdDoubt::EventFailed) => {
            let code = it.exit_code.map(|code| format!(" with exit code {code}"));
            return format!(", but the event's command ended{}", code.unwrap_or_default());
        }
        Some(ThresholdDoubt::EventWithoutEffect) => {
            return ", but the event changed no process of the server".to_owned();
        }
        Some(ThresholdDoubt::EventUnfinished) => {
            return ", but the event was not over when the run was".to_owned();
        }
        Some(ThresholdDoubt::TooFewAnswers) if condition.figure == ObjectiveFigure::ErrorShare => {
            let share = number::shortest(condition.limit * 100.0);
            format!("{} are too few to show less than {share} %", count_of(it.requests, "request"))
        }
        Some(ThresholdDoubt::TooFewAnswers) => "they are too few to bound it".to_owned(),
        Some(ThresholdDoubt::InsideInterval) => "the limit is inside the 95 % interval".to_owned(),
    };
    let advice = match &it.longer {
        Some(flag) => format!("run longer ({flag})"),
        None => match it.needs {
            Some(needed) => format!("about {needed} responses would decide, so leave a margin"),
            None => "no run of reasonable length would decide, so leave a margin".to_owned(),
        },
    };
    format!(", but {why}: {advice}")
}

/// A value of a figure in the unit that it has in JSON: times in ms.
fn in_units_of_json(figure: ObjectiveFigure, value: f64) -> f64 {
    use ObjectiveFigure::{Completed, ErrorShare, Errors, SentShare};
    let is_time = !matches!(figure, ErrorShare | SentShare | Errors | Completed);
    let scale = if is_time { 1e6 } else { 1.0 };
    (value / scale * 1e6).round() / 1e6
}

fn in_short(condition: &Objective, it: &NamedResult<'_>) -> ExpectedRun {
    let scaled = |value: f64| value.is_finite().then(|| in_units_of_json(condition.figure, value));
    // An interval without a figure would be read as that of some figure.
    let value = it.result.value.and_then(scaled);
    ExpectedRun {
        label: it.label.to_owned(),
        result: it.word(),
        why: it.result.doubt,
        value,
        interval: it
            .result
            .interval
            .filter(|_| value.is_some())
            .map(|ends| [ends.low, ends.high].map(|end| end.and_then(scaled))),
    }
}
