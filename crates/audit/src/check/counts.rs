//! Checks of counts: printed requests, responses, bytes and connections must agree with each other.
//! Some checks know what a tool loses.

use std::fmt::Write as _;

use report::number::{count_of, exact, significant, times};

use super::{ABSENT, CheckOutcome, NamedFigure, judged, unchecked};
use crate::claim::Claim;
use crate::figure::{FigureRange, PrintedFigure};
use crate::figure::{percent, printed_rate, rate};
use crate::load_tool::LoadTool;

/// A difference beyond rounding, but no larger than this part, may come from another clock or from
/// the ends of the run: doubtful, not impossible.
const SLIGHT: f64 = 0.01;
/// hey keeps no more times than this.
const HEY_KEEPS: u64 = 1_000_000;
/// If less than this part of the offered rate was reached, the tool did not keep up.
pub(super) const KEPT_UP: f64 = 0.995;
/// A share of failures or of phantom samples below this changes no printed percentile.
pub(super) const FEW: f64 = 0.001;

/// A figure, and the range in which its exact value may be.
struct Stated {
    value: f64,
    range: FigureRange,
}

impl Stated {
    fn exactly(count: u64) -> Stated {
        Stated { value: count as f64, range: FigureRange::exactly(count as f64) }
    }
}

impl From<PrintedFigure> for Stated {
    fn from(printed: PrintedFigure) -> Stated {
        Stated { value: printed.value, range: printed.range() }
    }
}

/// Holds if the printed figure equals the one that follows from others, within rounding; doubtful
/// if it differs by at most `slight` more than that.
fn equal(printed: &Stated, expected: &Stated, slight: f64) -> Option<CheckOutcome> {
    let allowed = expected.range;
    let is_different = !allowed.widened(slight).meets(printed.range);
    let is_inexact = !allowed.meets(printed.range);
    let figures = [
        ("printed", printed.value),
        ("expected", expected.value),
        ("expected_least", allowed.low),
        ("expected_most", allowed.high),
    ];
    let [printed, expected, low, high] = figures.map(|(_, value)| exact(value));
    judged(is_different, is_inexact, &figures, || {
        format!(
            "{printed} is printed, and {expected} follows from the other figures ({low} to {high} \
             as they are rounded)."
        )
    })
}

fn same_count(printed: u64, expected: u64) -> Option<CheckOutcome> {
    equal(&Stated::exactly(printed), &Stated::exactly(expected), 0.0)
}

pub(super) fn rate_times_duration(claim: &Claim) -> Option<CheckOutcome> {
    let rate = claim.rate_per_s?;
    let duration = claim.duration_s?;
    // Our report in hey's layout.
    if claim.tool == LoadTool::Longtail && claim.requests.is_none() {
        return unchecked("statuses are of requests due in that time, some of which ended later");
    }
    let Some(requests) = claim.ended() else { return unchecked("requests are not counted") };
    // bombardier's rate is a mean of samples; any other is a quotient.
    let slight = if claim.tool == LoadTool::Bombardier { 0.05 } else { SLIGHT };
    let range = rate.range().times(duration.range()).widened_by(1.0);
    equal(&Stated::exactly(requests), &Stated { value: rate.value * duration.value, range }, slight)
}

/// Responses and errors add up to the requests, if the tool prints requests and statuses.
pub(super) fn outcomes(claim: &Claim) -> Option<CheckOutcome> {
    same_count(claim.requests?, claim.answered()?.saturating_add(claim.errors.unwrap_or(0)))
}

pub(super) fn bins(claim: &Claim) -> Option<CheckOutcome> {
    let answered = claim.answered().filter(|_| !claim.bins.is_empty())?;
    let timed = match claim.tool {
        LoadTool::Hey => answered.min(HEY_KEEPS),
        LoadTool::Longtail => answered.saturating_sub(claim.bad()),
        _ => answered,
    };
    same_count(claim.counted_in_bins(), timed)
}

/// Why the bytes in one of our own reports are not checked.
const BYTES_OF_ALL: &str = "its bytes are of the whole run, with the warm-up";

/// A response's size times the responses is the total.
pub(super) fn bytes_per_answer(claim: &Claim) -> Option<CheckOutcome> {
    let total = claim.received_bytes?;
    let each = claim.answer_bytes?;
    if claim.tool == LoadTool::Longtail {
        return unchecked(BYTES_OF_ALL);
    }
    // vegeta divides by all requests, hey by the times that it kept.
    let answers = match claim.tool {
        LoadTool::Vegeta => claim.requests,
        LoadTool::Hey => claim.answered().map(|n| n.min(HEY_KEEPS)),
        _ => claim.answered(),
    };
    let Some(answers) = answers.map(|n| n as f64) else {
        return unchecked("responses are not counted");
    };
    // A whole number is a quotient that was truncated.
    let each_range = if each.decimals == 0 { each.truncated().range() } else { each.range() };
    equal(
        &total.into(),
        &Stated { value: each.value * answers, range: each_range.scaled(answers) },
        SLIGHT,
    )
}

/// The total over the duration is the rate of bytes.
pub(super) fn transfer_rate(claim: &Claim) -> Option<CheckOutcome> {
    let rate = claim.transfer_bytes_per_s?;
    let total = claim.received_bytes?;
    if claim.tool == LoadTool::Longtail {
        return unchecked(BYTES_OF_ALL);
    }
    let Some(duration) = claim.duration_s else { return unchecked("the duration is not stated") };
    let Some(range) = total.range().over(duration.range()) else {
        return unchecked("the duration has too few digits");
    };
    equal(&rate.into(), &Stated { value: total.value / duration.value, range }, SLIGHT)
}

/// wrk gives each thread connections / threads, rounded down, and never opens the remainder.
pub(super) fn connections_opened(claim: &Claim) -> Option<CheckOutcome> {
    let asked = claim.connections?;
    let among = claim.threads?;
    let used = claim.used_connections()?;
    judged(false, used != asked, &of_division(asked, among, used), || {
        format!(
            "{asked} connections were asked for and {used} opened: each of {among} threads takes \
             {asked} / {among}, without the rest."
        )
    })
}

/// hey gives each connection requests / connections, rounded down, and never sends the remainder.
pub(super) fn requests_sent(claim: &Claim) -> Option<CheckOutcome> {
    let asked = claim.asked?;
    let among = claim.connections.filter(|n| *n > 0)?;
    if !claim.tool.is_made_by_hey() {
        return None;
    }
    let used =
        claim.ended().filter(|_| claim.tool == LoadTool::Hey).unwrap_or(asked / among * among);
    judged(false, used != asked, &of_division(asked, among, used), || {
        format!(
            "{asked} requests were asked for and {used} sent: each of {among} connections sends \
             {asked} / {among}, without the rest."
        )
    })
}

fn of_division(asked: u64, among: u64, used: u64) -> [NamedFigure; 3] {
    [("asked", asked as f64), ("among", among as f64), ("used", used as f64)]
}

/// Requests whose times are missing from the figures. hey keeps only the first 1,000,000 times, but
/// divides the sum of all times by the number it kept (requester/report.go), so beyond a million
/// its mean grows with the run. wrk2 drops what it measured while it calibrated.
pub(super) fn samples_kept(claim: &Claim) -> Option<CheckOutcome> {
    let (requests, kept) = match claim.tool {
        LoadTool::Hey => claim.answered().map(|answered| (answered, answered.min(HEY_KEEPS)))?,
        LoadTool::LongTailHey => {
            claim.requests.map(|requests| (requests, requests.min(HEY_KEEPS)))?
        }
        _ => (claim.ended()?, claim.samples?),
    };
    let mean_ratio = (claim.tool.is_made_by_hey() && kept > 0 && kept < requests)
        .then(|| requests as f64 / kept as f64);
    // Some requests may still be in flight when the run ends.
    let is_doubtful = mean_ratio.is_some() || (kept as f64) < requests as f64 * (1.0 - SLIGHT);
    let figures = [
        ("requests", requests as f64),
        ("kept", kept as f64),
        ("mean_ratio", mean_ratio.unwrap_or(ABSENT)),
    ];
    judged(false, is_doubtful, &figures, || {
        let why = match mean_ratio.map(times) {
            Some(ratio) => format!(
                ": hey keeps the first million, and divides the sum of all times by as many, so \
                 that its mean is {ratio} times too large. Percentiles and histogram are of the \
                 start of the run."
            ),
            None => "; the start of the run was used to calibrate.".to_owned(),
        };
        format!("of {} only {kept} have a time in the figures{why}", count_of(requests, "request"))
    })
}

/// A rate that was asked for, against the one that the tool itself says it reached.
pub(super) fn offered_rate(claim: &Claim) -> Option<CheckOutcome> {
    let offered = claim.offered_per_s?;
    let achieved = claim.rate_per_s?;
    let missing = 1.0 - achieved.value / offered.value;
    let in_flight = claim.mean_s.map(|mean| achieved.value * mean.value);
    let figures = [
        ("offered_per_s", offered.value),
        ("achieved_per_s", achieved.value),
        ("missing", missing),
        ("in_flight", in_flight.unwrap_or(ABSENT)),
    ];
    judged(false, achieved.range().high < offered.value * KEPT_UP, &figures, || {
        let asked = printed_rate(offered.value);
        let reached = printed_rate(achieved.value);
        let part = percent(missing);
        let in_flight = in_flight.map_or_else(String::new, |n| {
            format!(" On average {} requests were under way.", significant(n))
        });
        format!(
            "{asked} was asked for and {reached} reached: {part} of the load is missing, and the \
             times are of a lighter one.{in_flight}"
        )
    })
}

/// Requests that failed but are in the figures: a refused connection looks like a fast response.
pub(super) fn failures(claim: &Claim) -> Option<CheckOutcome> {
    let requests = claim.ended().filter(|_| claim.counts_failures())?;
    let bad_answers = claim.bad();
    let lost = claim.lost();
    let timeouts = claim.timeouts.unwrap_or(0);
    let failed = bad_answers.saturating_add(lost).saturating_add(timeouts);
    // The printed rate includes bad responses, except ours, and errors only if the tool counts them.
    let in_rate = if claim.tool.rate_includes_errors() {
        bad_answers.saturating_add(lost)
    } else if claim.tool == LoadTool::Longtail {
        0
    } else {
        bad_answers
    };
    let good = 1.0 - in_rate.min(requests) as f64 / requests.max(1) as f64;
    let good_per_s = claim.rate_per_s.filter(|_| in_rate > 0).map(|rate| rate.value * good);
    let figures = [
        ("failed", failed as f64),
        ("requests", requests as f64),
        ("good_per_s", good_per_s.unwrap_or(ABSENT)),
        ("timeouts", timeouts as f64),
    ];
    judged(false, failed as f64 > FEW * requests as f64, &figures, || {
        let mut text = format!("{failed} of {} failed", count_of(requests, "request"));
        if let Some(good) = good_per_s {
            let good = if failed >= requests { "none".to_owned() } else { rate(good) };
            _ = write!(text, ", and are in its rate: {good} of it was good");
        }
        text.push('.');
        if timeouts > 0 {
            _ = write!(
                text,
                " {timeouts} took longer than {}'s timeout and have left its distribution.",
                claim.tool
            );
        }
        if claim.statuses.get("0").is_some_and(|n| *n > 0) {
            text += " Those without a response stand among the statuses as 0, and nothing says \
                 that they are not in the times.";
        }
        text
    })
}
