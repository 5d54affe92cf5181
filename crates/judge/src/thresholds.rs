//! Whether a run meets a threshold (`--expect`, `--fail-if`), or why that is unknown.

use std::borrow::Cow;

use model::histogram::rank;
use model::statistics::{Interval, ranks};
use model::{
    Compare, Diagnostic, Nanos, ObjectiveFigure, Quantile, Run, RunPart, Threshold, Verdict,
};
use serde::Serialize;

use crate::checks::{Assessment, Grade, assess, grade, sent_in_time};
use crate::event::{EventTrouble, trouble};

/// The result of a threshold in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdResult {
    /// The figure, in the unit of the condition; infinite if nothing bounds it, `None` if unknown.
    pub value: Option<f64>,
    /// Its 95 % confidence interval, if it is a percentile of the response times.
    pub interval: Option<ThresholdInterval>,
    /// Whether the figure meets the threshold; only an estimate if there is a doubt.
    pub is_met: bool,
    /// Why the result is uncertain.
    pub doubt: Option<ThresholdDoubt>,
    /// The generator was the limit, and the threshold is met all the same: its own delay is part of
    /// a time, and changes no count.
    pub includes_generator: bool,
}

impl ThresholdResult {
    /// Whether the threshold is certainly met. Only that passes: this decides the exit code.
    pub fn is_shown(&self) -> bool {
        self.is_met && self.doubt.is_none()
    }
}

/// The ends of an interval, in ns; `None` if it is unbounded on that side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdInterval {
    /// Its lower end.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// Why it is unknown whether a threshold is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdDoubt {
    /// The figures are worthless.
    Invalid,
    /// The figures are the generator's.
    GeneratorBound,
    /// Another generator did not print the figure.
    NotPrinted,
    /// What another generator says is impossible.
    ImpossibleClaim,
    /// Fewer than one independent response is expected above the percentile.
    TooFewAnswers,
    /// The limit lies inside the confidence interval.
    InsideInterval,
    /// The run's event was not done.
    EventNotDone,
    /// The command of the run's event failed.
    EventFailed,
    /// The event should have changed the server's processes, and none changed.
    EventWithoutEffect,
    /// The event was not over when the run was.
    EventUnfinished,
}

impl From<EventTrouble> for ThresholdDoubt {
    fn from(trouble: EventTrouble) -> ThresholdDoubt {
        match trouble {
            EventTrouble::NotDone => ThresholdDoubt::EventNotDone,
            EventTrouble::Failed { .. } => ThresholdDoubt::EventFailed,
            EventTrouble::WithoutEffect => ThresholdDoubt::EventWithoutEffect,
            EventTrouble::Unfinished => ThresholdDoubt::EventUnfinished,
        }
    }
}

/// The result of a threshold; `None` without a figure, unless another generator made the run.
pub fn held_against(run: &Run, threshold: &Threshold) -> Option<ThresholdResult> {
    let result = held(&*of_class(run, threshold)?, threshold, run)?;
    if !result.is_met || result.doubt == Some(ThresholdDoubt::Invalid) {
        return Some(result);
    }
    // A threshold is to hold in spite of the event: if that did not happen, nothing is shown, except
    // of the time before.
    let is_before = threshold.condition.part == Some(RunPart::Before);
    let event = run.event.as_ref().filter(|_| !is_before);
    let of_event = event.and_then(|event| trouble(event)).map(ThresholdDoubt::from);
    Some(ThresholdResult { doubt: of_event.or(result.doubt), ..result })
}

/// The requests that a threshold is about, as a run of their own; `None` if there is no such class.
pub(crate) fn of_class<'r>(run: &'r Run, threshold: &Threshold) -> Option<Cow<'r, Run>> {
    if threshold.class.is_none() {
        return Some(Cow::Borrowed(run));
    }
    let class = run.tally.classes.iter().find(|class| threshold.is_about(&class.name))?;
    Some(Cow::Owned(run.of_class(class)))
}

/// The result in `run`, which is a class of the `whole` run, or all of it.
fn held(run: &Run, threshold: &Threshold, whole: &Run) -> Option<ThresholdResult> {
    if let Some(part) = threshold.condition.part {
        return held_in_part(run, threshold, part);
    }
    let figure = threshold.condition.figure;
    let value = run.figure(figure);
    let interval = bounds(run, figure);
    if value.is_none() && run.claim.is_none() {
        return None;
    }
    let has_too_few = match figure {
        ObjectiveFigure::ResponseTime(q) => run.response_time(q) == Quantile::TooFew,
        ObjectiveFigure::ServiceTime(q) => run.service_time(q) == Quantile::TooFew,
        ObjectiveFigure::Mean
        | ObjectiveFigure::Max
        | ObjectiveFigure::ErrorShare
        | ObjectiveFigure::Errors
        | ObjectiveFigure::SentShare
        | ObjectiveFigure::Completed => false,
    };
    let is_spoilt = run.claim.as_ref().is_some_and(|claim| claim.spoils(figure, &run.warnings));
    let verdict = run.judgement.as_ref().map(|judgement| judgement.verdict);
    let is_inside = |ends: &ThresholdInterval| {
        let limit = threshold.condition.limit;
        ends.low.is_none_or(|low| low <= limit) && ends.high.is_none_or(|high| limit <= high)
    };
    let is_of_failures = matches!(figure, ObjectiveFigure::ErrorShare | ObjectiveFigure::Errors);
    let is_worthless =
        verdict == Some(Verdict::Invalid) && !(is_of_failures && has_only_failed(run));
    let doubt = match value {
        _ if is_worthless => Some(ThresholdDoubt::Invalid),
        None => Some(ThresholdDoubt::NotPrinted),
        Some(_) if is_spoilt => Some(ThresholdDoubt::ImpossibleClaim),
        // A limit outside the interval is decided, however few responses there are.
        Some(_) if has_too_few && interval.as_ref().is_none_or(is_inside) => {
            Some(ThresholdDoubt::TooFewAnswers)
        }
        Some(value) if value.is_finite() => {
            interval.as_ref().filter(|ends| is_inside(ends)).map(|ends| {
                // An unbounded side means too few responses, whatever the distance.
                let bound = if threshold.condition.limit >= value { ends.high } else { ends.low };
                bound.map_or(ThresholdDoubt::TooFewAnswers, |_| ThresholdDoubt::InsideInterval)
            })
        }
        Some(_) => None,
    };
    // An impossible claim meets no threshold.
    let is_known =
        !matches!(doubt, Some(ThresholdDoubt::NotPrinted | ThresholdDoubt::ImpossibleClaim));
    let is_met = is_known && value.is_some_and(|value| threshold.is_met_by(value));
    let is_generators = verdict == Some(Verdict::GeneratorBound);
    let doubt = match fewest_requests(threshold) {
        _ if !is_generators || is_met && holds_all_the_same(run, threshold, whole) => doubt,
        // However early they had been sent, so few could not show it.
        Some(fewest) if is_met && run.tally.counts.total() < fewest => {
            Some(ThresholdDoubt::TooFewAnswers)
        }
        _ => Some(ThresholdDoubt::GeneratorBound),
    };
    let includes_generator = is_generators && doubt.is_none();
    // From one percentile of these responses to their longest is no interval of a figure that changes
    // through the run, and is shown only in place of one that too few responses give.
    let is_shown = has_too_few || has_own_interval(run, figure);
    let interval = interval.filter(|_| is_shown);
    Some(ThresholdResult { value, interval, is_met, doubt, includes_generator })
}

/// Whether the run's statistics know at least one end of the figure's interval.
fn has_own_interval(run: &Run, figure: ObjectiveFigure) -> bool {
    interval(run, figure).is_some_and(|known| known.low.or(known.high).is_some())
}

/// Of an upper limit of the share that fails, how many requests can show that it holds, at the least:
/// of fewer a single failure would exceed it. Other limits have no such number.
fn fewest_requests(threshold: &Threshold) -> Option<u64> {
    let condition = &threshold.condition;
    let is_upper = (condition.compare == Compare::Below) == threshold.is_expected;
    let is_share = condition.figure == ObjectiveFigure::ErrorShare && condition.limit > 0.0;
    (is_upper && is_share).then(|| (1.0 / condition.limit - 1e-9).ceil() as u64)
}

/// Whether a run is INVALID for no other reason than that all requests failed: then nothing is known
/// of their times, but how many failed is. A late generator makes none of them fail.
fn has_only_failed(run: &Run) -> bool {
    let checks = run.judgement.iter().flat_map(|judgement| &judgement.checks);
    let mut failed = checks.filter(|check| {
        let Assessment { grade, implicates_generator, .. } = assess(check);
        grade == Grade::Failed && !implicates_generator
    });
    failed.all(|check| matches!(check, Diagnostic::Failures { planned: 1.., .. }))
}

/// Whether a threshold that a run met would be met without the generator's delay, too: the time from
/// when a request was due has that delay in it, so an upper limit of it holds if the load was the one
/// that was asked for. So does a limit of failures, or a lower limit of what was sent and completed.
/// In an open loop the load was as asked if all requests were sent in time. In a closed loop a faster
/// generator would ask for more: so little that it does not matter, or, of a time, at most as if each
/// request stood in line behind all others.
fn holds_all_the_same(run: &Run, threshold: &Threshold, whole: &Run) -> bool {
    let condition = &threshold.condition;
    let is_upper = (condition.compare == Compare::Below) == threshold.is_expected;
    let checks = run.judgement.iter().flat_map(|judgement| &judgement.checks);
    let grades: Vec<Grade> = checks
        .filter(|check| {
            matches!(check, Diagnostic::SentInTime { .. } | Diagnostic::GeneratorLost { .. })
        })
        .map(grade)
        .collect();
    if grades.iter().any(|grade| *grade != Grade::Passed) {
        return false;
    }
    let is_closed_loop = grades.is_empty() && sent_in_time::none_waited(whole);
    let is_as_asked = !grades.is_empty() || asks_nearly_as_often(whole);
    match condition.figure {
        ObjectiveFigure::ResponseTime(_) | ObjectiveFigure::Mean | ObjectiveFigure::Max => {
            let in_line = || {
                let longest = run.max_response_time().time()?;
                Some(f64::from(run.connections) * longest.0 as f64)
            };
            is_upper && (is_as_asked || in_line().is_some_and(|time| time < condition.limit))
        }
        ObjectiveFigure::ErrorShare | ObjectiveFigure::Errors => is_upper && is_as_asked,
        ObjectiveFigure::SentShare => !is_upper && is_as_asked,
        // A closed loop has no rate that was asked for: what the server did, it can do.
        ObjectiveFigure::Completed => !is_upper && (is_as_asked || is_closed_loop),
        ObjectiveFigure::ServiceTime(_) => false,
    }
}

/// Whether the generator of a closed loop asked about as often as one without any delay: its delays
/// in sending and reading took no more of the connections' time than what an open loop may send late.
/// Without kernel stamps it is not known how late it read. Where requests waited for a connection it
/// is an open loop.
fn asks_nearly_as_often(run: &Run) -> bool {
    let tally = &run.tally;
    let late = tally.generator_lag.sum().saturating_add(tally.read_lag.sum());
    let time = f64::from(run.connections) * run.measured.as_secs_f64();
    sent_in_time::none_waited(run)
        && tally.read_lag.count() > 0
        && late.as_secs_f64() <= sent_in_time::LATE * time
}

/// The result in a part of a run with an event; `None` if the event was not done. A failed request
/// counts as one that took for ever.
fn held_in_part(run: &Run, threshold: &Threshold, part: RunPart) -> Option<ThresholdResult> {
    let requests = run.event.as_ref()?.requests.as_ref()?;
    let part = requests.part(part);
    let times = &part.response_time;
    let of_rank = |rank: u64| times.at_rank(rank).map_or(f64::INFINITY, |time| time.0 as f64);
    let or_infinite = |time: Option<Nanos>| {
        time.filter(|_| part.failed == 0).map_or(f64::INFINITY, |time| time.0 as f64)
    };
    if part.requests == 0 {
        return None;
    }
    let mut interval = None;
    let value = match threshold.condition.figure {
        ObjectiveFigure::ResponseTime(q) => {
            let ends = ranks(q, part.requests, 1.0);
            let [low, high] = [ends.low, ends.high].map(|rank| rank.map(of_rank));
            interval = Some(ThresholdInterval { low, high });
            of_rank(rank(q, part.requests))
        }
        ObjectiveFigure::Mean => or_infinite(times.mean()),
        ObjectiveFigure::Max => or_infinite(times.max()),
        ObjectiveFigure::ErrorShare => part.failed as f64 / part.requests as f64,
        ObjectiveFigure::Errors => part.failed as f64,
        ObjectiveFigure::Completed => {
            times.count() as f64 / part.length.as_secs_f64().max(f64::MIN_POSITIVE)
        }
        ObjectiveFigure::ServiceTime(_) | ObjectiveFigure::SentShare => return None,
    };
    let verdict = run.judgement.as_ref().map(|judgement| judgement.verdict);
    let doubt = match verdict {
        Some(Verdict::Invalid) => Some(ThresholdDoubt::Invalid),
        Some(Verdict::GeneratorBound) => Some(ThresholdDoubt::GeneratorBound),
        // What happens once is measured once: these are all its requests, and no sample of more.
        _ => None,
    };
    Some(ThresholdResult {
        value: Some(value),
        interval,
        is_met: threshold.is_met_by(value),
        doubt,
        includes_generator: false,
    })
}

/// About how many times as long a run must be to decide this threshold; `None` if more responses
/// would not help, or if no run is long enough because the figure equals the limit.
pub fn times_as_long(run: &Run, threshold: &Threshold) -> Option<f64> {
    // An event happens once, however long the run is.
    if threshold.condition.part.is_some() {
        return None;
    }
    let run = of_class(run, threshold)?;
    if let Some(fewest) = fewest_requests(threshold) {
        let times = fewest as f64 / run.tally.counts.total().max(1) as f64;
        return Some(times).filter(|times| *times > 1.0);
    }
    let answers = run.tally.counts.good();
    let (ObjectiveFigure::ResponseTime(q) | ObjectiveFigure::ServiceTime(q)) =
        threshold.condition.figure
    else {
        return None;
    };
    let value = run.figure(threshold.condition.figure).filter(|value| value.is_finite())?;
    // The threshold is decided when half of the interval is less than the distance between figure
    // and limit.
    let apart = (value - threshold.condition.limit).abs() / value;
    let known = match threshold.condition.figure {
        ObjectiveFigure::ResponseTime(_) => {
            run.statistics.as_ref().and_then(|statistics| statistics.interval_of_any(q))
        }
        _ => None,
    };
    let known = known.unwrap_or(Interval {
        quantile: q,
        inflation: None,
        low: None,
        high: None,
        without_generator: None,
    });
    let needed = known
        .responses_needed(answers, Some(Nanos(value as u64)), apart)
        // How the responses hang together is not known yet, so neither is the interval.
        .or_else(|| known.inflation.is_none().then_some(TIMES_WITHOUT_INTERVAL * answers))?;
    Some(needed as f64 / answers.max(1) as f64).filter(|times| times.is_finite())
}

/// A run without any interval has to be about this many times as long to have one.
const TIMES_WITHOUT_INTERVAL: u64 = 4;

/// The chance with which a 95 % interval may miss.
const MAY_MISS: f64 = 0.05;

/// The range in which a figure lies. If too few responses leave an end open, the extreme of these
/// responses closes it, since nearly all take about as long: the upper end only if they are not so
/// few that all may well be below the percentile, which `n` responses are with a chance of `q^n`.
fn bounds(run: &Run, figure: ObjectiveFigure) -> Option<ThresholdInterval> {
    let known = interval(run, figure);
    let range = match figure {
        ObjectiveFigure::ResponseTime(q) => run.range_around(q),
        ObjectiveFigure::ServiceTime(_)
        | ObjectiveFigure::Mean
        | ObjectiveFigure::Max
        | ObjectiveFigure::ErrorShare
        | ObjectiveFigure::Errors
        | ObjectiveFigure::SentShare
        | ObjectiveFigure::Completed => None,
    };
    let Some(range) = range else { return known };
    let may_all_be_below = range.quantile.powf(run.tally.population() as f64) > MAY_MISS;
    let low = Some(range.low.0 as f64);
    let high = Some(range.high.0 as f64).filter(|_| !may_all_be_below);
    let known = known.unwrap_or(ThresholdInterval { low: None, high: None });
    Some(ThresholdInterval { low: known.low.or(low), high: known.high.or(high) })
}

fn interval(run: &Run, figure: ObjectiveFigure) -> Option<ThresholdInterval> {
    let ObjectiveFigure::ResponseTime(q) = figure else { return None };
    let known = run.statistics.as_ref()?.interval_of_any(q)?;
    let [low, high] = [known.low, known.high].map(|end| end.map(|end| end.0 as f64));
    Some(ThresholdInterval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        Believable, ClaimGrade, ClassTally, Diagnostic, EventCommand, EventRecord, Exchange,
        GeneratorClaim, Judgement, Outcome, PercentileTime, Statistics, Tally, Window,
    };

    /// A run of one second with responses of 1 ms, 2 ms and so on, and with timeouts.
    fn run(answers: u64, timeouts: u64) -> Run {
        let answers = (1..=answers).map(|ms| (Outcome::Answered(200), ms));
        let outcomes = answers.chain((0..timeouts).map(|_| (Outcome::TimedOut, 1)));
        let mut tally = Tally::new(Window { from: Nanos::ZERO, until: Nanos::MAX }, 4);
        for (n, (outcome, millis)) in outcomes.enumerate() {
            let [due, sent] = [Nanos::ZERO; 2];
            let ended = Nanos::from_millis(millis);
            tally.record(&Exchange { due, sent, ended, received_bytes: 1, outcome }, n % 4);
        }
        Run::recorded(4, tally, Nanos::from_secs(1), Nanos::from_secs(1))
    }

    fn result(run: &Run, text: &str) -> ThresholdResult {
        held_against(run, &text.parse().unwrap()).unwrap()
    }

    #[test]
    fn expectations_must_hold_fail_conditions_must_not_and_unbounded_figures_meet_no_limit() {
        let run = run(100, 0);
        for (text, is_met) in [
            ("expect mean < 60ms", true),
            ("expect mean < 50ms", false),
            ("fail if mean > 60ms", true),
            ("fail if mean > 50ms", false),
            ("expect throughput > 99/s", true),
            ("fail if throughput < 101/s", false),
            ("expect failed < 1", true),
            ("expect max < 1s", true),
        ] {
            let result = result(&run, text);
            assert_eq!((result.is_met, result.doubt), (is_met, None), "{text}");
        }
        let hidden = self::run(98, 2);
        for text in ["expect p99 < 10h", "fail if p99 > 10h", "expect max < 10h"] {
            let result = result(&hidden, text);
            assert_eq!(
                (result.value, result.is_met, result.doubt),
                (Some(f64::INFINITY), false, None),
                "{text}"
            );
        }
    }

    #[test]
    fn an_open_end_is_closed_by_the_longest_time_where_nearly_all_take_as_long() {
        // Of few independent responses the interval of p95 has no upper end, and p99 none at all.
        let mut run = run(0, 0);
        let mut tally = Tally::new(Window { from: Nanos::ZERO, until: Nanos::MAX }, 4);
        for n in 0..300 {
            let [due, sent] = [Nanos::ZERO; 2];
            let ended = Nanos::from_micros(5500 + n);
            let outcome = Outcome::Answered(200);
            tally.record(&Exchange { due, sent, ended, received_bytes: 1, outcome }, 0);
        }
        run.tally = tally;
        let known = Interval {
            quantile: 0.95,
            inflation: Some(10.0),
            low: Some(Nanos::from_micros(5500)),
            high: None,
            without_generator: None,
        };
        run.statistics = Some(Statistics { intervals: vec![known], ..Statistics::default() });
        for text in ["expect p95 < 200ms", "expect p99 < 500ms"] {
            let result = result(&run, text);
            assert_eq!((result.is_met, result.doubt), (true, None), "{text}");
        }
    }

    #[test]
    fn a_limit_inside_the_interval_or_too_few_responses_leave_it_undecided() {
        let mut run = run(1000, 0);
        let known = Interval {
            quantile: 0.5,
            inflation: Some(1.0),
            low: Some(Nanos::from_millis(470)),
            high: Some(Nanos::from_millis(530)),
            without_generator: None,
        };
        run.statistics = Some(Statistics { intervals: vec![known], ..Statistics::default() });
        let doubt = |text: &str| (result(&run, text).is_met, result(&run, text).doubt);
        assert_eq!(doubt("expect p50 < 520ms"), (true, Some(ThresholdDoubt::InsideInterval)));
        assert_eq!(doubt("expect p50 < 480ms"), (false, Some(ThresholdDoubt::InsideInterval)));
        assert_eq!(doubt("expect p50 < 540ms"), (true, None));
        // An end of p80 is not known, of p30 neither; both are beyond that of the median.
        let too_few = Some(ThresholdDoubt::TooFewAnswers);
        assert_eq!(doubt("expect p80 < 2s"), (true, too_few));
        assert_eq!(
            (doubt("expect p80 < 460ms"), doubt("expect p30 < 540ms")),
            ((false, None), (true, None))
        );
        // All of these responses may well be shorter than the percentile.
        assert_eq!(doubt("expect p99.99 < 2s"), (true, too_few));
        assert_eq!(doubt("expect p99.99 < 1s"), (false, Some(ThresholdDoubt::TooFewAnswers)));
        assert!(!result(&run, "expect p50 < 520ms").is_shown());
        assert!(result(&run, "expect p50 < 540ms").is_shown());
        // Half of the interval is 30 ms; the limits are 20 ms and 10 ms from the median of 500 ms.
        let times = |text: &str| times_as_long(&run, &text.parse().unwrap()).unwrap();
        assert!(
            (times("expect p50 < 520ms") - 2.25).abs() < 0.2,
            "{}",
            times("expect p50 < 520ms")
        );
        assert!((times("expect p50 < 510ms") - 9.0).abs() < 0.5, "{}", times("expect p50 < 510ms"));
        assert!(times("expect p99.99 < 2s") > 10.0);
        assert_eq!(times_as_long(&run, &"expect failed < 1".parse().unwrap()), None);
    }

    #[test]
    fn a_limit_that_holds_with_the_generators_delay_holds_without_it() {
        let judged = |checks: Vec<Diagnostic>| {
            let judgement = Judgement {
                verdict: Verdict::GeneratorBound,
                limit: None,
                decided_by: None,
                checks,
                forced: false,
            };
            Run { judgement: Some(judgement), ..run(100, 0) }
        };
        let sent = |sent| judged(vec![Diagnostic::SentInTime { sent, due: 100 }]);
        let said = |run: &Run, text: &str| {
            let result = result(run, text);
            (result.is_shown(), result.includes_generator)
        };
        // Responses of 1 to 100 ms; in a closed loop four of them may stand in line.
        let [open, late, closed] = [sent(100), sent(90), judged(Vec::new())];
        for text in ["expect p50 < 60ms", "fail if max > 101ms", "expect failed < 1"] {
            assert_eq!(said(&open, text), (true, true), "{text}");
            assert_eq!(said(&late, text), (false, false), "{text}");
            assert_eq!(said(&closed, text), (false, false), "{text}");
        }
        // Of 100 requests one failure would be more than a thousandth, however early they were sent.
        let why = |text: &str| result(&closed, text).doubt;
        assert_eq!(why("expect failed < 0.1%"), Some(ThresholdDoubt::TooFewAnswers));
        assert_eq!(why("expect failed < 1%"), Some(ThresholdDoubt::GeneratorBound));
        assert_eq!(said(&open, "expect p50 < 40ms"), (false, false));
        assert_eq!(said(&open, "expect completed > 1/s"), (true, true));
        assert_eq!(said(&open, "expect completed < 200/s"), (false, false));
        assert_eq!(said(&closed, "expect p50 < 399ms"), (false, false));
        assert_eq!(said(&closed, "expect p50 < 401ms"), (true, true));
    }

    #[test]
    fn a_closed_loop_whose_generator_took_little_of_the_time_asked_as_often_as_it_should() {
        // 100 requests over four connections in a second; 0.5 % of that is 20 ms.
        let late_by = |sent: Nanos, read: Option<Nanos>| {
            let mut run = run(100, 0);
            for _ in 0..100 {
                run.tally.generator_lag.record(sent);
                if let Some(lag) = read {
                    run.tally.read_lag.record(lag);
                }
            }
            run.judgement = Some(Judgement {
                verdict: Verdict::GeneratorBound,
                limit: None,
                decided_by: None,
                checks: Vec::new(),
                forced: false,
            });
            run
        };
        let short = Nanos::from_micros(90);
        let is_shown = |run: &Run, text: &str| result(run, text).is_shown();
        let little = late_by(short, Some(short));
        let [later, unstamped] = [late_by(short * 2, Some(short)), late_by(short, None)];
        for run in [&little, &later, &unstamped] {
            // However little it asked for, the server did so much.
            assert!(is_shown(run, "expect completed > 90/s"));
            assert!(!is_shown(run, "expect completed < 110/s"));
        }
        for text in ["expect failed < 1%", "fail if failed > 0"] {
            assert!(is_shown(&little, text), "{text}");
            assert!(!is_shown(&later, text), "{text}: less load than asked");
            assert!(!is_shown(&unstamped, text), "{text}: without kernel stamps");
        }
        let mut open = little.clone();
        open.tally.queued.record(Nanos::from_millis(1));
        assert!(!is_shown(&open, "expect failed < 1%"));
        let mut lost = little.clone();
        lost.judgement.as_mut().unwrap().checks =
            vec![Diagnostic::GeneratorLost { name: "box2".to_owned(), why: "gone".to_owned() }];
        assert!(!is_shown(&lost, "expect failed < 1%"));
    }

    #[test]
    fn a_threshold_of_a_class_is_held_against_its_requests_alone() {
        let mut run = run(0, 0);
        let mut classes = ["/posts", "/search"].map(ClassTally::new);
        for n in 0..1000 {
            let millis = if n % 2 == 0 { 10 } else { 300 };
            let outcome = if n == 1 { Outcome::Reset } else { Outcome::Answered(200) };
            let [due, sent] = [Nanos::ZERO; 2];
            let ended = Nanos::from_millis(millis);
            let exchange = Exchange { due, sent, ended, received_bytes: 1, outcome };
            run.tally.record_of(Some(&mut classes[n % 2]), &exchange, n % 4);
        }
        run.tally.add_classes(&classes);
        for (text, is_met) in [
            ("expect /posts p50 < 20ms", true),
            ("expect GET /posts max < 20ms", true),
            ("expect /search p50 < 20ms", false),
            ("expect /posts failed = 0", true),
            ("expect /search failed = 0", false),
            ("fail if p90 > 200ms", false),
        ] {
            assert_eq!(result(&run, text).is_met, is_met, "{text}");
        }
        assert_eq!(held_against(&run, &"/serch p99 < 1s".parse().unwrap()), None);
        assert!(times_as_long(&run, &"/posts p99.99 < 11ms".parse().unwrap()).is_some());
    }

    #[test]
    fn a_run_without_requests_has_no_result() {
        assert_eq!(held_against(&run(0, 0), &"p99 < 1s".parse().unwrap()), None);
    }

    #[test]
    fn an_objective_that_an_impossible_claim_would_meet_is_not_met() {
        let run = |audit, found: &[ClaimGrade]| {
            let claim = GeneratorClaim {
                by: "wrk".to_owned(),
                requests: Some(100),
                failed: Some(0),
                rate_per_s: Some(100.0),
                mean: Some(Nanos::from_millis(5)),
                percentiles: vec![PercentileTime { quantile: 0.99, time: Nanos::from_millis(9) }],
                audit,
                ..GeneratorClaim::default()
            };
            let none = String::new;
            let audited = |is: &ClaimGrade| Diagnostic::Audited {
                by: none(),
                check: none(),
                is: *is,
                text: none(),
            };
            Run {
                warnings: found.iter().map(audited).collect(),
                ..Run::claimed(1, claim, Nanos::from_secs(2))
            }
        };
        let result = |run: &Run, text: &str| {
            let result = held_against(run, &format!("fail if {text}").parse().unwrap()).unwrap();
            (result.is_met, result.doubt)
        };
        let possible = run(Believable::Possible, &[]);
        let impossible = run(Believable::Impossible, &[ClaimGrade::Fails]);
        assert_eq!(result(&possible, "p99 > 1s"), (true, None));
        assert_eq!(result(&possible, "p99 > 1ms"), (false, None));
        let cannot_be = (false, Some(ThresholdDoubt::ImpossibleClaim));
        assert_eq!(result(&impossible, "p99 > 1s"), cannot_be);
        assert_eq!(result(&impossible, "completed < 1/s"), cannot_be);
        assert_eq!(result(&impossible, "errors > 1"), (true, None));
        let explained = run(Believable::Impossible, &[ClaimGrade::Fails, ClaimGrade::Explains]);
        assert_eq!(result(&explained, "completed < 1/s"), (true, None));
        assert_eq!(result(&possible, "max > 1s"), (false, Some(ThresholdDoubt::NotPrinted)));
    }

    #[test]
    fn where_all_requests_failed_a_limit_of_failures_is_missed_and_one_of_times_unknown() {
        let refused = testkit::load::refused();
        let judged = refused.run.judgement.as_ref().unwrap();
        assert_eq!(judged.verdict, Verdict::Invalid);
        let doubt = |text: &str| {
            let result = held_against(&refused.run, &text.parse().unwrap());
            result.map(|it| (it.is_met, it.doubt))
        };
        assert_eq!(doubt("expect failed < 1%"), Some((false, None)));
        assert_eq!(doubt("fail if errors > 5"), Some((false, None)));
        assert_eq!(doubt("expect throughput > 5/s"), Some((false, Some(ThresholdDoubt::Invalid))));
    }

    #[test]
    fn nothing_passes_on_a_deploy_that_did_not_happen() {
        let with = |event: EventRecord| {
            let mut run = run(100, 0);
            run.event = Some(Box::new(event));
            run
        };
        let restart = testkit::events::phased_restart(&[]);
        assert_eq!(result(&with(restart.clone()), "failed = 0 during").doubt, None);
        let command = |exit_code| EventCommand {
            ended: Some(Nanos::from_secs(11)),
            exit_code: Some(exit_code),
            last_line: None,
        };
        let deploy = |exit_code| EventRecord {
            planned: "bin/deploy@10s".parse().unwrap(),
            command: Some(command(exit_code)),
            ..restart.clone()
        };
        for (event, doubt) in [
            (deploy(0), None),
            (deploy(3), Some(ThresholdDoubt::EventFailed)),
            (
                EventRecord { processes: restart.processes[..1].to_vec(), ..restart.clone() },
                Some(ThresholdDoubt::EventWithoutEffect),
            ),
            (
                EventRecord { processes: restart.processes[..4].to_vec(), ..restart.clone() },
                Some(ThresholdDoubt::EventUnfinished),
            ),
            (EventRecord { at: None, ..restart.clone() }, Some(ThresholdDoubt::EventNotDone)),
        ] {
            let run = with(event);
            for text in ["expect failed = 0 during", "expect failed = 0", "fail if errors > 0"] {
                let result = result(&run, text);
                assert_eq!((result.is_met, result.doubt), (true, doubt), "{text} {doubt:?}");
            }
            if doubt != Some(ThresholdDoubt::EventNotDone) {
                let before = result(&run, "expect failed = 0 before");
                assert_eq!((before.is_met, before.doubt), (true, None), "{doubt:?}");
            }
            let missed = result(&run, "expect failed > 5");
            assert_eq!((missed.is_met, missed.doubt), (false, None), "a miss is a miss");
        }
    }
}
