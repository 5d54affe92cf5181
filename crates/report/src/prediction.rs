//! A prediction as text.

use judge::trust::UNCERTAIN;
use judge::words::share;
use model::Nanos;
use queueing::prediction::{
    EnoughThreads, PredictedP99, PredictedQueue, PredictedServer, PredictedTime, Prediction,
    RateLimits, RubyLock, ServerCpus, ShortWaits, ThreadsUnderLock, TimeInterval, TimeSummary,
    WAIT_SHORTLY,
};

use crate::number::{self, NONE, count_of, milliseconds, or_none};
use crate::text::{self, Width};
use crate::tree::{
    ColumnBand, DataTable, NamedFact, ReportSection, TableCell, TableColumn, TableRow,
};

/// Rates that differ by less are one limit.
const SAME_LIMIT: f64 = 1e-6;
/// An interval whose half width is at most this part of the service time is not worth a mark.
const NOTABLE: f64 = 0.01;
/// Characters of the longest bar.
const BAR: f64 = 40.0;
/// Columns of a line at the most.
const COLUMNS: usize = 100;

/// The prediction, and the plot below it if there is one.
pub fn as_text(prediction: &Prediction, plot: Option<&[PredictedP99]>, width: Width) -> String {
    let width = Width::of(width.columns().unwrap_or(COLUMNS).min(COLUMNS));
    let mut sections = Vec::new();
    if !prediction.lines.is_empty() {
        sections.push(ReportSection::new("").table(queue_table(prediction)));
        sections.extend(ReportSection::new("").lines(remarks(prediction)).filled());
    }
    if let Some(lock) = &prediction.lock {
        sections.push(lock_section(prediction, lock));
        if lock.binds {
            let hidden = "Percentiles are not known where threads wait for Ruby's lock or a CPU; without --cpu you see those of threads that never do.";
            let left_out = "Only the app's Ruby is counted, on CPUs that do nothing else. Puma's own work and passing the lock on come on top, so no measured rate is above \"at most\".";
            let lines = [hidden, left_out].map(str::to_owned).into_iter();
            sections.push(ReportSection::new("").lines(lines.chain(prediction.notes.clone())));
        }
    }
    sections.extend(plot.map(plot_section));
    format!("{}\n{}", text::facts(&facts(prediction), width), text::sections(&sections, width))
}

/// The server, the load, the limits, and how many threads are enough.
fn facts(prediction: &Prediction) -> Vec<NamedFact> {
    let mean = number::span(prediction.service_mean_ns);
    let service = if prediction.service.contains(':') {
        format!("{} (mean {})", prediction.service, number::time(prediction.service_mean_ns))
    } else {
        format!("{mean}, constant")
    };
    let server = format!(
        "{} = {} x {}, service time {service}",
        count_of(prediction.slots, "slot"),
        count_of(prediction.workers, "worker"),
        count_of(prediction.threads, "thread"),
    );
    let knee = number::rate_in_words(prediction.knee_connections);
    let limits = format!(
        "{} req/s at most by {}; requests must wait from {knee} connection{} on",
        number::rate_in_words(prediction.at_most_per_s),
        smallest_of(&prediction.limits, prediction.lock.as_ref().map(|lock| lock.cpus)),
        if knee == "1" { "" } else { "s" },
    );
    let threads = prediction.lock.as_ref().and_then(|lock| enough_threads(prediction, lock));
    [
        Some(("server", server)),
        Some(("load", prediction.load.clone())),
        Some(("limits", limits)),
        threads.map(|line| ("threads", line)),
    ]
    .into_iter()
    .flatten()
    .map(|(name, line)| NamedFact::new(name, [line]))
    .collect()
}

/// How many threads of a worker are enough by theory, and what measures it.
fn enough_threads(prediction: &Prediction, lock: &RubyLock) -> Option<String> {
    let EnoughThreads { least, most, .. } = lock.enough?;
    let workers = prediction.workers;
    let rate = number::rate_in_words;
    let scatter =
        if least == most { String::new() } else { format!(" ({most} where times scatter)") };
    let by_computing = rate(prediction.limits.by_computing());
    let (said, of_rate) = match lock.short_waits {
        Some(ShortWaits { threads, rate_per_s }) => (
            format!(
                "at {} req/s each worker needs {threads}, so that {} of requests wait for one no longer than {}. By theory {least}{scatter} do nearly all of {by_computing} req/s, if requests may wait.",
                rate(rate_per_s),
                share(WAIT_SHORTLY),
                number::span(prediction.service_mean_ns),
            ),
            format!(" --rate {}/s", rate(rate_per_s)),
        ),
        None => (
            format!(
                "by theory each worker needs {least}{scatter} to do nearly all of {by_computing} req/s, if requests may wait; --rate says how many keep waits short at your rate."
            ),
            String::new(),
        ),
    };
    Some(format!(
        "{said} A server may need far more: a thread waits for the lock after each query, too, and Puma before 7 keeps it on its connection. Measure it (longtail sweep -w{workers} --try auto{of_rate})"
    ))
}

/// Which limit is the smallest, and what the others allow: `Ruby's lock (222 by the threads)`.
fn smallest_of(limits: &RateLimits, cpus: Option<ServerCpus>) -> String {
    let known = [
        Some(("the threads".to_owned(), limits.threads)),
        limits.lock.map(|rate| ("Ruby's lock".to_owned(), rate)),
        cpus.map(in_words).zip(limits.cpus),
    ];
    let smallest = limits.smallest();
    let (binding, others): (Vec<_>, Vec<_>) =
        known.into_iter().flatten().partition(|(_, rate)| *rate <= smallest * (1.0 + SAME_LIMIT));
    let names: Vec<String> = binding.into_iter().map(|(name, _)| name).collect();
    let named = names.join(" and ");
    if others.is_empty() {
        return named;
    }
    let allowed =
        |(name, rate): &(String, f64)| format!("{} by {name}", number::rate_in_words(*rate));
    format!("{named} ({})", others.iter().map(allowed).collect::<Vec<_>>().join(", "))
}

/// `2 CPUs`, `this machine's 2 CPUs`.
fn in_words(cpus: ServerCpus) -> String {
    let count = number::shortest(cpus.count);
    let plural = if count == "1" { "" } else { "s" };
    let whose = if cpus.is_this_machine { "this machine's " } else { "" };
    format!("{whose}{count} CPU{plural}")
}

/// A note for a prediction without a CPU time: the one that a sweep `measured`, or else from which
/// CPU time on the threads are no longer the limit.
pub fn cpu_not_counted(
    server: &PredictedServer,
    cpus: ServerCpus,
    measured: Option<Nanos>,
) -> String {
    if let Some(measured) = measured {
        let measured = number::time(measured);
        return format!(
            "CPU time is not counted: its sweep measured {measured} a request; --cpu counts it"
        );
    }
    let workers = f64::from(server.workers);
    let above = Nanos::from_secs_f64(cpus.count.min(workers) / server.by_threads());
    let limit = if cpus.count < workers {
        format!("Ruby's lock or {} allow", in_words(cpus))
    } else {
        "Ruby's lock allows".to_owned()
    };
    format!("CPU time is not known: above {} a request, {limit} less (--cpu)", number::time(above))
}

/// A line for each order of service.
fn queue_table(prediction: &Prediction) -> DataTable {
    let times = |title: &str| {
        let band = ColumnBand::new(title, "");
        TIMES.map(|name| TableColumn::new(name).under(&band))
    };
    let has_objective = prediction.objective.is_some();
    let columns = ["queue", "req/s", "% full"].map(TableColumn::new).into_iter();
    let columns = columns.chain(times("wait, ms")).chain(times("response time, ms"));
    let columns = columns.chain(has_objective.then(|| TableColumn::new("max req/s")));
    let has_marks = each_time(prediction).any(|time| is_rough(prediction, time.of));
    let shown = |time: Option<PredictedTime>| {
        let Some(time) = time else { return NONE.to_owned() };
        // Room for the mark if there is none.
        let mark = match (has_marks, is_rough(prediction, time)) {
            (false, _) => "",
            (true, false) => " ",
            (true, true) => "?",
        };
        format!("{}{mark}", milliseconds(time.ns))
    };
    let row = |line: &PredictedQueue| {
        let mut cells = vec![
            format!("{:6}  {}", line.queue, line.how),
            number::rate(line.rate_per_s),
            number::percent(line.utilisation),
        ];
        cells.extend([line.wait, line.response].into_iter().flat_map(each).map(shown));
        cells.extend(has_objective.then(|| or_none(line.highest_rate_per_s, number::rate)));
        TableRow::new(cells)
    };
    DataTable::of_columns(columns, prediction.lines.iter().map(row))
}

/// Notes on the figures, below the table.
fn remarks(prediction: &Prediction) -> Vec<String> {
    let objective = prediction
        .objective
        .as_ref()
        .map(|it| format!("max req/s: the highest rate that keeps {it}"));
    let (rough, known): (Vec<NamedTime<'_>>, Vec<NamedTime<'_>>) =
        each_time(prediction).partition(|time| is_rough(prediction, time.of));
    let widths = known.iter().filter_map(|time| width(time.of));
    let widest = widths.max_by(f64::total_cmp).filter(|widest| *widest > 0.0);
    let unmarked = if rough.is_empty() { "" } else { " but for those marked ?" };
    let simulated = widest.map(|widest| {
        format!(
            "simulated: 95 % intervals of at most ± {} % of the figure{unmarked}; --json has each",
            number::percent(widest)
        )
    });
    let ranges: Vec<String> = rough.iter().map(NamedTime::range).collect();
    let marked = (!ranges.is_empty())
        .then(|| format!("? somewhere in its 95 % interval, ms: {}", ranges.join(", ")));
    let notes = prediction.notes.iter().cloned();
    objective.into_iter().chain(simulated).chain(marked).chain(notes).collect()
}

/// A time of the table and where it stands.
struct NamedTime<'a> {
    queue: &'a str,
    /// wait, response
    kind: &'static str,
    /// mean, p50
    name: &'static str,
    of: PredictedTime,
}

impl NamedTime<'_> {
    /// `split response p95 946–1000`.
    fn range(&self) -> String {
        let known = self.of.interval.map_or_else(String::new, |interval| {
            let high = interval.high.map_or_else(|| "?".to_owned(), milliseconds);
            format!("{}–{high}", milliseconds(interval.low))
        });
        format!("{} {} {} {known}", self.queue, self.kind, self.name)
    }
}

const TIMES: [&str; 4] = ["mean", "p50", "p95", "p99"];

/// All times of the table.
fn each_time(prediction: &Prediction) -> impl Iterator<Item = NamedTime<'_>> {
    prediction.lines.iter().flat_map(|line| {
        let kinds = [("wait", line.wait), ("response", line.response)];
        kinds.into_iter().flat_map(move |(kind, times)| {
            TIMES.into_iter().zip(each(times)).filter_map(move |(name, time)| {
                Some(NamedTime { queue: line.queue, kind, name, of: time? })
            })
        })
    })
}

/// Whether a time is marked `?`: the half width of its interval is a large part of the time, and
/// more than a hundredth of the service time.
fn is_rough(prediction: &Prediction, time: PredictedTime) -> bool {
    let Some(TimeInterval { low, high, .. }) = time.interval else { return false };
    let Some(high) = high else { return true };
    let half = high.saturating_sub(low).as_secs_f64() / 2.0;
    half > UNCERTAIN * time.ns.as_secs_f64()
        && half > NOTABLE * prediction.service_mean_ns.as_secs_f64()
}

/// The half width of an interval as a part of its figure, unless that is 0.
fn width(time: PredictedTime) -> Option<f64> {
    let half = time.interval?.half_width?.as_secs_f64();
    (time.ns > Nanos::ZERO).then(|| half / time.ns.as_secs_f64())
}

/// The rates that Ruby's lock allows, by the number of threads.
fn lock_section(prediction: &Prediction, lock: &RubyLock) -> ReportSection {
    let is_closed = lock.by_threads.iter().any(|line| line.closed.is_some());
    let aside = if lock.binds {
        String::new()
    } else {
        let lost = number::percent((1.0 - lock.asked().of_slots).max(0.0));
        format!(" The lines above leave that out: with all threads busy it costs {lost} %.")
    };
    let title = format!(
        "Ruby's lock: each request computes {} of its {}, one thread of a worker at a time.{aside}",
        number::span(lock.cpu_ns),
        number::span(prediction.service_mean_ns),
    );
    let at_most = format!(
        "at most: by any law, and never more than {} req/s; % of max: of what as many slots would do without the lock.",
        number::rate_in_words(prediction.limits.by_computing()),
    );
    let connections = if is_closed { ", these connections" } else { "" };
    let all_busy = if lock.cpus.count < f64::from(prediction.workers) {
        format!(
            "all busy{connections}: no better than that, as {} share {}",
            count_of(prediction.workers, "worker"),
            in_words(lock.cpus),
        )
    } else {
        format!("all busy{connections}: exact where the times scatter exponentially")
    };
    ReportSection::new(title)
        .table(lock_table(lock, prediction.threads, is_closed))
        .lines([at_most, all_busy])
}

/// A line for each number of threads.
fn lock_table(lock: &RubyLock, asked_threads: u32, is_closed: bool) -> DataTable {
    let workers = ColumnBand::new("req/s of all workers", "");
    let load = ColumnBand::new(if is_closed { "these connections" } else { "this rate" }, "");
    let of_load: &[&str] = if is_closed { &["req/s", "mean ms"] } else { &["% full"] };
    let mut columns = vec![TableColumn::new("threads each")];
    for name in ["at most", "all busy", "% of max"] {
        columns.push(TableColumn::new(name).under(&workers));
    }
    for name in of_load {
        columns.push(TableColumn::new(*name).under(&load));
    }
    let rows = lock.by_threads.iter().map(|line| lock_row(line, asked_threads));
    DataTable::of_columns(columns, rows)
}

fn lock_row(line: &ThreadsUnderLock, asked_threads: u32) -> TableRow {
    let mut cells = vec![
        TableCell::count(line.threads),
        number::rate(line.at_most_per_s).into(),
        number::rate(line.all_busy_per_s).into(),
        number::percent(line.of_slots).into(),
    ];
    match (line.closed, line.offered_of_all_busy) {
        (Some(closed), _) => {
            cells.push(number::rate(closed.rate_per_s).into());
            cells.push(milliseconds(closed.response_mean_ns).into());
        }
        (None, Some(offered)) if offered < 1.0 => cells.push(number::percent(offered).into()),
        (None, _) => cells.push("overload".to_owned().into()),
    }
    TableRow::new(cells).noted(if line.threads == asked_threads { "as asked" } else { "" })
}

fn each(times: Option<TimeSummary>) -> [Option<PredictedTime>; 4] {
    times.map_or([None; 4], |times| [times.mean, times.p50, times.p95, times.p99].map(Some))
}

/// p99 over the rate, as bars.
fn plot_section(points: &[PredictedP99]) -> ReportSection {
    let longest = points.iter().map(|point| point.p99.0).max().unwrap_or(1) as f64;
    let row = |point: &PredictedP99| {
        let rate = TableCell::number(Some(point.rate_per_s), number::rate);
        let bar = "■".repeat((point.p99.0 as f64 / longest * BAR).round() as usize);
        TableRow::new([rate, point.queue.into(), TableCell::time(Some(point.p99))]).noted(bar)
    };
    let table = DataTable::new(["req/s", "queue", "p99"], points.iter().map(row));
    ReportSection::new("p99 of the response time, ms, over the rate").table(table)
}
