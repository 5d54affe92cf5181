//! Times of requests: of the good answers, of the generator itself, of the failures (another population, never mixed
//! with the first), and the slowest one by one.

use model::doubts::LOAD_PERCENTILES;
use model::histogram::rank;
use model::{Histogram, LoadStudy, Nanos, Quantile, Tally};

use super::part::{Body, Part, Row, head};
use super::rates::{good_answers, sent};
use crate::intervals;
use crate::number::{self, NONE, count_of, or_none};

/// From this percentile on it matters how many answers stand above.
const HIGH: f64 = 0.95;

/// Response time and service time of the good answers, side by side.
pub(crate) fn answers(study: &LoadStudy) -> Option<Part> {
    let tally = &study.run.tally;
    if tally.counts.good() == 0 {
        return None;
    }
    let both = |figure: fn(&Histogram) -> Option<Nanos>| {
        [figure(&tally.response_time), figure(&tally.service_time)].map(|time| or_none(time, number::milliseconds))
    };
    let failed = tally.counts.failed();
    let left_out = format!("{} left out", count_of(failed, "request"));
    let note = if failed == 0 { String::new() } else { left_out };
    let row = |name: &str, [response, service]: [String; 2], [interval, part]: [String; 2], note: String| {
        Row::new([name.to_owned(), response, interval, part, service], note)
    };
    let nothing = || [String::new(), String::new()];
    let mut rows = vec![
        row("mean", both(Histogram::mean), nothing(), note),
        row("std deviation", both(Histogram::standard_deviation), nothing(), String::new()),
    ];
    let mut last_note = String::new();
    for q in LOAD_PERCENTILES {
        let times = [study.run.response_time(q), study.run.service_time(q)];
        let shown = times.map(|time| or_none(time.time(), number::milliseconds));
        // The same reason again says nothing.
        let note = beside(tally, q, times[0]);
        let is_new = times[0].time().is_some() || note != last_note;
        let known = intervals::cells(study.run.statistics.as_ref(), q, times[0]);
        rows.push(row(&number::percentile(q), shown, known, if is_new { note.clone() } else { String::new() }));
        last_note = note;
    }
    let longest = [tally.longest_response_time(), longest_service_time(tally)];
    let shown = longest.map(|time| or_none(time.time(), number::milliseconds));
    let endless = format!("{} timed out or in flight", number::count(tally.counts.censored()));
    let unknown = if longest[0].time().is_none() { endless } else { String::new() };
    rows.push(row("max", shown, nothing(), unknown));
    let table = Body::Table(head(["", "response time", "95 % interval", "of it ours", "service time"]), rows);
    Some(Part::new(format!("times of {}, ms", good_answers(study)), vec![table]))
}

/// What supports a percentile, or why there is none.
fn beside(tally: &Tally, q: f64, time: Quantile) -> String {
    let counts = &tally.counts;
    match time {
        Quantile::Time(_) if q >= HIGH => {
            // The rank is among those that may still have come too; they stand above all answers.
            let above = counts.good().saturating_sub(rank(q, counts.good() + counts.censored()));
            format!("{} above", number::count(above))
        }
        Quantile::Time(_) => String::new(),
        Quantile::TooFew => "too few answers".to_owned(),
        Quantile::Growing => "no steady state".to_owned(),
        Quantile::Unanswered => unanswered(counts.failed()),
    }
}

fn unanswered(n: u64) -> String {
    format!("{} had no good answer", number::count(n))
}

/// As [`Tally::longest_response_time`].
fn longest_service_time(tally: &Tally) -> Quantile {
    match tally.service_time.max() {
        Some(max) if tally.counts.censored() == 0 => Quantile::Time(max),
        _ => Quantile::Unanswered,
    }
}

/// What the generator itself added: send lag, and the wait for a connection.
pub(crate) fn generator(study: &LoadStudy) -> Option<Part> {
    let tally = &study.run.tally;
    let lag = &tally.send_lag;
    if lag.count() == 0 {
        return None;
    }
    let queued = tally.queued;
    let includes = if queued.count > 0 { "includes the wait for a connection" } else { "" };
    let mut rows = vec![Row { note: includes.to_owned(), ..distribution("send lag", lag) }];
    if tally.read_lag.count() > 0 {
        let note = "by the kernel's stamps; in none of the times";
        rows.push(Row { note: note.to_owned(), ..distribution("read lag", &tally.read_lag) });
    }
    if queued.count > 0 {
        let [mean, max] = [queued.mean(), Some(queued.max)].map(|time| or_none(time, number::milliseconds));
        let cells =
            ["queued in the generator".to_owned(), number::count(queued.count), mean, NONE.into(), NONE.into(), max];
        rows.push(Row::new(cells, "due while every connection was busy"));
    }
    Some(Part::new(
        format!("the generator's own part, ms, of {} sent", count_of(sent(study), "request")),
        vec![Body::Table(head(["", "requests", "mean", "p50", "p99", "max"]), rows)],
    ))
}

/// The times of what failed and had an end.
pub(crate) fn failures(study: &LoadStudy) -> Option<Part> {
    let times = &study.run.tally.failed_response_time;
    if times.count() == 0 {
        return None;
    }
    let row = distribution("response time", times);
    Some(Part::new(
        "failures that ended: another population, in none of the figures above (timeouts not among them), ms",
        vec![Body::Table(head(["", "requests", "mean", "p50", "p99", "max"]), vec![row])],
    ))
}

/// Count, mean, p50, p99 and longest; a percentile needs a time above it.
fn distribution(name: &str, times: &Histogram) -> Row {
    let at = |q: f64| {
        let is_supported = times.count() as f64 * (1.0 - q) > 1.0 - 1e-9;
        times.quantile(q).filter(|_| is_supported)
    };
    let [mean, p50, p99, max] =
        [times.mean(), at(0.5), at(0.99), times.max()].map(|time| or_none(time, number::milliseconds));
    Row::new([name.to_owned(), number::count(times.count()), mean, p50, p99, max], "")
}

/// The slowest good answers, each with the time at which it was due: what else happened then?
pub(crate) fn slowest(study: &LoadStudy) -> Option<Part> {
    let slowest = &study.run.tally.slowest.requests;
    if slowest.is_empty() {
        return None;
    }
    let rows = slowest.iter().map(|request| {
        let due = number::fixed(request.due.as_secs_f64(), 3);
        Row::new([due, number::milliseconds(request.response_time), number::milliseconds(request.service_time)], "")
    });
    let table = Body::Table(head(["due at, s", "response time", "service time"]), rows.collect());
    Some(Part::detail("slowest good answers, ms", vec![table]))
}
