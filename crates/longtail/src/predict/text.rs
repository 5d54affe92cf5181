//! A prediction as text.

use report::number::{self, count_of, milliseconds, or_none};
use report::tree::{
    ColumnBand, DataTable, NamedFact, ReportSection, TableCell, TableColumn, TableRow,
};
use report::{Width, text};

use super::{
    LockedThreads, PredictedP99, PredictedQueue, PredictedTime, Prediction, RubyLock, TimeSummary,
};

/// Below this part of what the slots would do without Ruby's lock it is the limit that counts.
const LOCK_MATTERS: f64 = 0.95;
/// Characters of the longest bar.
const BAR: f64 = 40.0;
/// Columns of a line at the most.
const COLUMNS: usize = 100;

/// The prediction, and below it the plot where there is one.
pub(crate) fn whole(
    prediction: &Prediction,
    plot: Option<&[PredictedP99]>,
    width: Width,
) -> String {
    let width = Width::of(width.columns().unwrap_or(COLUMNS).min(COLUMNS));
    let lock = prediction.lock.as_ref();
    let lock = lock.and_then(|lock| {
        Some((lock, lock.by_threads.iter().find(|it| it.threads == prediction.threads)?))
    });
    // Where the lock costs less than this, the theory of threads alone holds.
    let binding = lock.filter(|(_, asked)| asked.of_slots < LOCK_MATTERS);
    let mut sections = Vec::new();
    if binding.is_none() {
        sections.push(ReportSection::new("").table(queue_table(prediction)));
        sections.extend(ReportSection::new("").lines(remarks(prediction)).filled());
    }
    if let Some((lock, asked)) = lock {
        let lost = number::percent((1.0 - asked.of_slots).max(0.0));
        let aside =
            format!(" The lines above leave that out: with all threads busy it costs {lost} %.");
        sections.push(locked(prediction, lock, if binding.is_some() { "" } else { &aside }));
    }
    if binding.is_some() {
        let hidden = "Percentiles under the lock are not known; without --cpu you see those of threads that never wait for it.";
        let left_out = "Counted is the app's Ruby alone, with a whole CPU for each worker. Puma's own work and passing the lock on come on top: measured rates are lower.";
        sections.push(ReportSection::new("").lines([hidden, left_out]));
    }
    sections.extend(plot.map(plotted));
    let most = binding.map(|(_, asked)| asked.at_most_per_s);
    format!(
        "{}\n{}",
        text::facts(&facts(prediction, most), width),
        text::sections(&sections, width)
    )
}

/// What is predicted of what, and the limits; `by_lock` is the rate that Ruby's lock allows, where
/// that is the limit.
fn facts(prediction: &Prediction, by_lock: Option<f64>) -> [NamedFact; 3] {
    let mean = number::span(prediction.service_mean_ns);
    let service = if prediction.service.contains(':') {
        format!("{} (mean {mean})", prediction.service)
    } else {
        format!("{mean}, constant")
    };
    let server = format!(
        "{} = {} x {}, service time {service}",
        count_of(prediction.slots, "slot"),
        count_of(prediction.workers, "worker"),
        count_of(prediction.threads, "thread"),
    );
    let alone = prediction.at_most_per_s;
    let most = by_lock.unwrap_or(alone);
    let without =
        by_lock.map(|_| format!(" by Ruby's lock ({} without it)", number::rate_in_words(alone)));
    let limits = format!(
        "{} req/s at most{}; requests must wait from {} connections on",
        number::rate_in_words(most),
        without.unwrap_or_default(),
        number::rate_in_words(prediction.knee_connections * most / alone),
    );
    [("server", server), ("load", prediction.load.clone()), ("limits", limits)]
        .map(|(name, line)| NamedFact::new(name, [line]))
}

/// A line for each order of service.
fn queue_table(prediction: &Prediction) -> DataTable {
    let times = |title: &str| {
        let band = ColumnBand::new(title, "");
        ["mean", "p50", "p95", "p99"].map(|name| TableColumn::new(name).under(&band))
    };
    let has_objective = prediction.objective.is_some();
    let columns = ["queue", "req/s", "% full"].map(TableColumn::new).into_iter();
    let columns = columns.chain(times("wait, ms")).chain(times("response time, ms"));
    let columns = columns.chain(has_objective.then(|| TableColumn::new("max req/s")));
    let row = |line: &PredictedQueue| {
        let mut cells = vec![
            format!("{:6}  {}", line.queue, line.how),
            number::rate(line.rate_per_s),
            number::percent(line.utilisation),
        ];
        let shown = |time| or_none(time, |time: PredictedTime| milliseconds(time.ns));
        cells.extend([line.wait, line.response].into_iter().flat_map(each).map(shown));
        cells.extend(has_objective.then(|| or_none(line.highest_rate_per_s, number::rate)));
        TableRow::new(cells)
    };
    DataTable::of_columns(columns, prediction.lines.iter().map(row))
}

/// What is to be known of the figures.
fn remarks(prediction: &Prediction) -> Vec<String> {
    let objective = prediction
        .objective
        .as_ref()
        .map(|it| format!("max req/s: the highest rate that keeps {it}"));
    let widest = prediction.lines.iter().filter_map(widest).max_by(f64::total_cmp).map(|widest| {
        format!(
            "simulated: 95 % intervals of at most ± {} % of the figure; --json has each",
            number::percent(widest)
        )
    });
    objective.into_iter().chain(widest).chain(prediction.notes.iter().cloned()).collect()
}

/// What Ruby's lock leaves, by the number of threads.
fn locked(prediction: &Prediction, lock: &RubyLock, aside: &str) -> ReportSection {
    let is_closed = lock.by_threads.iter().any(|line| line.closed.is_some());
    let workers = ColumnBand::new("req/s of all workers", "");
    let load = ColumnBand::new(if is_closed { "these connections" } else { "this rate" }, "");
    let of_load: &[&str] = if is_closed { &["req/s", "mean ms"] } else { &["% full"] };
    let columns = std::iter::once(TableColumn::new("threads each"))
        .chain(
            ["at most", "all busy", "% of max"].map(|name| TableColumn::new(name).under(&workers)),
        )
        .chain(of_load.iter().map(|name| TableColumn::new(*name).under(&load)));
    let row = |line: &LockedThreads| {
        let of_load = match (line.closed, line.offered_of_all_busy) {
            (Some(closed), _) => {
                vec![number::rate(closed.rate_per_s), milliseconds(closed.response_mean_ns)]
            }
            (None, Some(full)) if full < 1.0 => vec![number::percent(full)],
            (None, _) => vec!["overload".to_owned()],
        };
        let rates = [line.at_most_per_s, line.all_busy_per_s].map(number::rate).into_iter();
        let cells =
            rates.chain([number::percent(line.of_slots)]).chain(of_load).map(TableCell::from);
        let row = TableRow::new(std::iter::once(TableCell::count(line.threads)).chain(cells));
        row.noted(if line.threads == prediction.threads { "as asked" } else { "" })
    };
    let title = format!(
        "Ruby's lock: each request computes {} of its {}, one thread of a worker at a time.{aside}",
        number::span(lock.cpu_ns),
        number::span(prediction.service_mean_ns),
    );
    let at_most = format!(
        "at most: by any law, and never more than {} req/s; % of max: of what as many slots would do without the lock.",
        number::rate_in_words(lock.at_most_per_s),
    );
    let connections = if is_closed { ", these connections" } else { "" };
    let all_busy = format!("all busy{connections}: exact where the times scatter exponentially");
    let table = DataTable::of_columns(columns, lock.by_threads.iter().map(row));
    ReportSection::new(title).table(table).lines([at_most, all_busy])
}

fn each(times: Option<TimeSummary>) -> [Option<PredictedTime>; 4] {
    times.map_or([None; 4], |times| [times.mean, times.p50, times.p95, times.p99].map(Some))
}

/// The widest interval among a line's response times, as a part of its figure.
fn widest(line: &PredictedQueue) -> Option<f64> {
    let part = |figure: PredictedTime| Some(figure.half_width_ns?.0 as f64 / figure.ns.0 as f64);
    each(line.response).into_iter().flatten().filter_map(part).max_by(f64::total_cmp)
}

/// p99 over the rate, as bars.
fn plotted(points: &[PredictedP99]) -> ReportSection {
    let longest = points.iter().map(|point| point.p99.0).max().unwrap_or(1) as f64;
    let row = |point: &PredictedP99| {
        let rate = TableCell::number(Some(point.rate_per_s), number::rate);
        let bar = "■".repeat((point.p99.0 as f64 / longest * BAR).round() as usize);
        TableRow::new([rate, point.queue.into(), TableCell::time(Some(point.p99))]).noted(bar)
    };
    let table = DataTable::new(["req/s", "queue", "p99"], points.iter().map(row));
    ReportSection::new("p99 of the response time, ms, over the rate").table(table)
}
