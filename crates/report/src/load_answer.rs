//! The figures of a load's answer: rates, percentiles with their intervals, and a picture, which is
//! the distribution of a closed loop, or an open loop over time.

use std::fmt::Write as _;

use model::tally::Second;
use model::{Histogram, LoadStudy, Nanos, Pace, Profile};

use crate::event;
use crate::number::{self, or_none};
use crate::run_columns::IN_ANSWER_OF_LOAD;
use crate::run_summary::{SummaryRun, range};
use crate::text::{Width, wrap};
use crate::tree::{DataTable, TableColumn, TableRow};

/// The most bars of a distribution, and the most slices of time.
const BARS: usize = 6;
const PARTS: usize = 10;
/// Characters of the name before the slices, and of each slice.
const NAME: usize = 13;
const CELL: usize = 8;
/// Characters of the longest bar, and of what stands before it.
const BAR: usize = 30;
const BEFORE_BAR: usize = 33;

/// The distribution of response times, or the response times over time; in a full report both.
pub(crate) fn pictures(
    study: &LoadStudy,
    run: &SummaryRun<'_>,
    width: Width,
    is_full: bool,
) -> String {
    // The classes have the place of a picture.
    let has_classes = !run.run.tally.classes.is_empty();
    if !run.has_response_times() || has_classes && !is_full {
        return String::new();
    }
    let is_open = run.offered().is_some();
    let spread = if is_full || !is_open && study.run.event.is_none() {
        bars(&study.run.tally.response_time, width)
    } else {
        String::new()
    };
    let event = event::as_text(&study.run, width);
    let has_event = !event.is_empty();
    // A table of steps says more.
    let has_steps = !run.run.steps.is_empty();
    let over_time = if is_full || is_open && !has_event && !has_steps {
        over_time(study, width, is_full)
    } else {
        String::new()
    };
    let gap = |picture: &str| if picture.is_empty() { "" } else { "\n" };
    [gap(&event), &event, gap(&spread), &spread, gap(&over_time), &over_time].concat()
}

/// `offered 500/s · sent 500/s · completed 499/s over 20 connections · 2500 requests, 0 failed`.
pub(crate) fn rates(run: &SummaryRun<'_>) -> String {
    let requests = number::or_none(run.run.requests(), |n| number::count_of(n, "request"));
    let failed = number::or_none(run.run.failed(), |n| n.to_string());
    let unfinished = run.unfinished_in_words().map(|words| format!(" · {words}"));
    // A closed loop goes on until the last response is in, so a few are.
    let is_notable = |more: &u64| 10 * more > run.run.requests().unwrap_or_default();
    let outside = Some(run.run.tally.unmeasured.total()).filter(is_notable);
    let outside = outside.map(|more| format!(" · {more} more outside the measured time"));
    let more = [unfinished, outside].into_iter().flatten().collect::<String>();
    let requests = format!("{requests}, {failed} failed{more}");
    // Where the server ended during the run there is no rate over all of it.
    let completed = run.completed().map(number::rate_in_words);
    if let (Some(offered), Some(sent)) = (run.offered(), run.sent()) {
        let completed = completed.map_or("(no rate)".to_owned(), |rate| format!("{rate}/s"));
        let used = connections_used(run);
        format!(
            "offered {}/s · sent {}/s · completed {completed}{used} · {requests}",
            number::rate_in_words(offered),
            number::rate_in_words(sent)
        )
    } else {
        let rate = completed.map_or("no rate".to_owned(), |rate| format!("{rate} requests/s"));
        format!("{rate} · {requests}")
    }
}

/// ` over 20 connections`: how many an open loop had at a time, which is how many it needed; as a rule
/// far fewer than it may use.
fn connections_used(run: &SummaryRun<'_>) -> String {
    let used = run.connections();
    if used == 0 {
        return String::new();
    }
    let count = number::count_of(u64::from(used), "connection");
    // Where connections are closed in between, there were more, one after another.
    let at_a_time = if run.keeps_its_connections() { "" } else { " at a time" };
    // Those whose first response never came are not counted.
    let with_a_response =
        if run.run.tally.unfinished_above_all() > 0 { " that had a response" } else { "" };
    format!(" over {count}{at_a_time}{with_a_response}")
}

/// The response times and their intervals; nothing of a run of which none is known, such as one in
/// an overload.
pub(crate) fn percentiles(run: &SummaryRun<'_>) -> DataTable {
    let columns = || IN_ANSWER_OF_LOAD.iter().map(|(column, _)| *column);
    let values: Vec<String> =
        columns().map(|column| column.cell(run).text + column.mark_of(run)).collect();
    if values.iter().all(|value| value == number::NONE) {
        return DataTable::default();
    }
    let values = TableRow::new(std::iter::once("ms".to_owned()).chain(values));
    let intervals: Vec<String> =
        columns().map(|column| column.interval(run).map(range).unwrap_or_default()).collect();
    let is_any_known = intervals.iter().any(|interval| !interval.is_empty());
    let intervals = is_any_known
        .then(|| TableRow::new(std::iter::once("95 % interval".to_owned()).chain(intervals)));
    let headings = IN_ANSWER_OF_LOAD
        .iter()
        .map(|(column, leaves)| TableColumn::new(column.name).leaving(*leaves));
    let headings = std::iter::once(TableColumn::new("response time")).chain(headings);
    DataTable::of_columns(headings, std::iter::once(values).chain(intervals))
}

/// How many requests took how long, as bars between round times.
fn bars(times: &Histogram, width: Width) -> String {
    let (Some(from), Some(to), Some(median)) =
        (times.quantile(0.01), times.max(), times.quantile(0.5))
    else {
        return String::new();
    };
    // Round times (1, 2, 5, 10 …) between the fastest hundredth and the longest.
    let round = (0..).map(|n| [1.0, 2.0, 5.0][n % 3] * 10f64.powf((n / 3) as f64) * 1e3);
    let mut edges: Vec<u64> =
        round.map(|edge| edge as u64).take_while(|edge| *edge < to.0).collect();
    edges.retain(|edge| *edge > from.0.min(median.0));
    if edges.is_empty() {
        return String::new();
    }
    let surplus = edges.len().saturating_sub(BARS - 1);
    edges.drain(..surplus);
    let mut counts = vec![0; edges.len() + 1];
    for (time, n) in times.buckets() {
        counts[edges.partition_point(|edge| *edge < time.0)] += n;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let longest = width.columns().map_or(BAR, |columns| columns - BEFORE_BAR).min(BAR);
    let unit = |nanos: u64| number::rate_in_words(Nanos(nanos).as_millis_f64());
    let mut text = String::new();
    for (at, n) in counts.into_iter().enumerate() {
        let low = unit(if at == 0 { 0 } else { edges[at - 1] });
        let high = unit(edges.get(at).copied().unwrap_or(to.0));
        let share = judge::words::share(n as f64 / times.count().max(1) as f64);
        let bar = "█".repeat((n as f64 / most as f64 * longest as f64).round() as usize);
        _ = writeln!(
            text,
            "{}",
            format!("  {low:>7} to {high:>7} ms  {share:>6}  {bar}").trim_end()
        );
    }
    text
}

/// The run in a few slices of time, by the second in which a request ended: mean and longest
/// response times, and in a full report also responses and failures. Those that ended after the
/// window have a slice of their own, in a full report and where the figures above cannot be derived
/// without them.
fn over_time(study: &LoadStudy, width: Width, is_full: bool) -> String {
    let seconds = &study.run.tally.series.seconds;
    let room = width
        .columns()
        .map_or(PARTS, |columns| columns.saturating_sub(NAME + 2) / CELL)
        .clamp(1, PARTS);
    let window = MeasuredSeconds::of(study.run.measured, seconds.len());
    let (inside, later) = seconds.split_at(window.seconds);
    // Nothing ended after the end of a run that was stopped: what is left of a second was before it.
    let (rest, later) = if study.interrupted { (later, &[][..]) } else { (&[][..], later) };
    let later = if is_full || is_notable(inside, later) { later } else { &[] };
    if inside.len() + later.len() < 2 {
        return String::new();
    }
    let room = room.saturating_sub(later.len().min(1)).max(1);
    let each = slice_length(study, inside.len(), room).max(1);
    let starts = (0..inside.len()).step_by(each);
    let slices = starts.map(|start| match start + each {
        end if end < inside.len() => &inside[start..end],
        _ => &seconds[start..inside.len() + rest.len()],
    });
    let slices = slices.chain(Some(later).filter(|later| !later.is_empty()));
    let slices: Vec<&[Second]> = slices.collect();
    let line = |name: &str, cell: &dyn Fn(usize) -> String| {
        let cells = (0..slices.len()).map(|at| format!("{:>CELL$}", cell(at)));
        format!("  {name:<NAME$}{}\n", cells.collect::<String>())
    };
    let sum = |at: usize, of: fn(&Second) -> u64| slices[at].iter().map(of).sum::<u64>();
    let completed = |at: usize| sum(at, |second| second.completed);
    let mean = |at: usize| {
        sum(at, |second| second.response_time_sum_ns).checked_div(completed(at)).map(Nanos)
    };
    let longest = |at: usize| {
        let longest = slices[at].iter().map(|second| second.response_time_max_ns).max();
        longest.filter(|_| completed(at) > 0).map(Nanos)
    };
    let mut text = line("until second", &|at| window.end_of_slice(at, each));
    if is_full {
        text += &line("responses", &|at| completed(at).to_string());
        text += &line("failed", &|at| sum(at, |second| second.failed).to_string());
    }
    text += &line("mean, ms", &|at| or_none(mean(at), number::milliseconds));
    text += &line("slowest, ms", &|at| or_none(longest(at), number::milliseconds));
    if !later.is_empty() {
        let ended = later.iter().map(|second| second.completed + second.failed).sum::<u64>();
        let count = number::count_of(ended, "request");
        let meaning = format!(
            "later: {count}, due before the end but ended after it: the last, and slow ones"
        );
        wrap(&mut text, width, "  ", &meaning);
    }
    text
}

/// Whether the requests that ended after the window explain figures above the slices: they are a
/// hundredth of all or more, or took notably longer than all others.
fn is_notable(inside: &[Second], later: &[Second]) -> bool {
    let completed = |seconds: &[Second]| seconds.iter().map(|it| it.completed).sum::<u64>();
    let longest = |seconds: &[Second]| {
        seconds.iter().map(|second| second.response_time_max_ns).max().unwrap_or(0)
    };
    let after = completed(later);
    after > 0
        && (100 * after >= completed(inside) + after || 10 * longest(later) > 11 * longest(inside))
}

/// The measured window among the seconds of a run; the last requests end after it.
struct MeasuredSeconds {
    /// How long it is, to a tenth of a second.
    length: f64,
    /// How many seconds it has, the last of which may be cut off.
    seconds: usize,
}

impl MeasuredSeconds {
    fn of(measured: Nanos, seconds: usize) -> MeasuredSeconds {
        let length = (measured.as_secs_f64() * 10.0).round() / 10.0;
        MeasuredSeconds { length, seconds: seconds.min(length.ceil() as usize) }
    }

    /// Until when a slice lasts, in seconds: `10`, `9.3` if the window ended then, or `later`.
    fn end_of_slice(&self, at: usize, each: usize) -> String {
        if at * each >= self.seconds {
            return "later".to_owned();
        }
        let end = (((at + 1) * each) as f64).min(self.length);
        number::fixed(end, usize::from(end.fract() > 0.0))
    }
}

/// Seconds of a slice: as long as a step of the profile, where all steps fit.
fn slice_length(study: &LoadStudy, seconds: usize, room: usize) -> usize {
    if let Pace::Open { profile: Profile::Steps { each, .. }, .. } = &study.plan.load.pace {
        let step = (each.0 / 1_000_000_000) as usize;
        if Nanos::from_secs(step as u64) == *each && step > 0 && seconds.div_ceil(step) <= room {
            return step;
        }
    }
    seconds.div_ceil(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slice_ends_after_the_window_but_that_of_what_came_later() {
        let ends = |each: usize, seconds: usize, measured_ms: u64| {
            let window = MeasuredSeconds::of(Nanos::from_millis(measured_ms), seconds);
            let slices = window.seconds.div_ceil(each) + usize::from(seconds > window.seconds);
            (0..slices).map(|at| window.end_of_slice(at, each)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ends(1, 3, 3000), "1 2 3");
        assert_eq!(ends(1, 5, 3001), "1 2 3 later");
        assert_eq!(ends(8, 31, 30_000), "8 16 24 30 later");
        assert_eq!(ends(2, 10, 9020), "2 4 6 8 9 later");
        assert_eq!(ends(2, 10, 9320), "2 4 6 8 9.3");
    }
}
