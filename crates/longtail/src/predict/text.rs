//! A prediction as text.

use std::fmt::Write as _;

use model::Nanos;
use report::number::{self, milliseconds, or_none};
use report::{Width, broken};

use super::lock::LockedLoop;
use super::{LockedThreads, PlotStep, PredictedQueue, PredictedTime, Prediction, RubyLock, TimeSummary};

/// Below this part of what the slots would do without Ruby's lock it is the limit that counts.
const LOCK_MATTERS: f64 = 0.95;
/// Columns of a line at the most.
const COLUMNS: usize = 100;
/// The widest bar of the plot.
const BAR: f64 = 40.0;

/// Columns that stand together, all lines of one width: two of the head, and one for each queue.
struct ColumnGroup(Vec<String>);

impl ColumnGroup {
    fn of(prediction: &Prediction, heads: [String; 2], cells: impl Fn(&PredictedQueue) -> String) -> ColumnGroup {
        ColumnGroup(heads.into_iter().chain(prediction.lines.iter().map(cells)).collect())
    }

    fn times(prediction: &Prediction, title: &str, of: fn(&PredictedQueue) -> Option<TimeSummary>) -> ColumnGroup {
        let names = ["mean", "p50", "p95", "p99"].map(|name| format!(" {name:>6}")).concat();
        let cell = |time| format!(" {:>6}", or_none(time, |time: PredictedTime| milliseconds(Nanos(time.ns))));
        let cells = |line: &PredictedQueue| each(of(line)).map(cell).concat();
        ColumnGroup::of(prediction, [format!("{title:^28}"), names], cells)
    }

    fn width(&self) -> usize {
        self.0[0].chars().count()
    }
}

/// The queue's name, how it is known, its rate and how full it is.
fn queue_columns(prediction: &Prediction) -> ColumnGroup {
    let names = format!("{:7} {:18} {:>8} {:>7}", "queue", "how", "req/s", "% full");
    ColumnGroup::of(prediction, [" ".repeat(names.len()), names], |line| {
        let (rate, full) = (number::rate(line.rate_per_s), number::percent(line.utilisation));
        format!("{:7} {:18} {rate:>8} {full:>7}", line.queue, line.how)
    })
}

/// Wait, response time and, with an objective, the highest rate.
fn figure_columns(prediction: &Prediction) -> Vec<ColumnGroup> {
    let mut all = vec![
        ColumnGroup::times(prediction, "─────── wait, ms ───────", |line| line.wait),
        ColumnGroup::times(prediction, "─── response time, ms ───", |line| line.response),
    ];
    if prediction.objective.is_some() {
        let highest = |line: &PredictedQueue| format!(" {:>10}", or_none(line.highest_rate_per_s, number::rate));
        all.push(ColumnGroup::of(prediction, [" ".repeat(11), format!(" {:>10}", "max req/s")], highest));
    }
    all
}

/// As many figures side by side as there is room for, each part with the queues' names.
fn queue_table(out: &mut String, prediction: &Prediction, width: Width) {
    let (queues, figures) = (queue_columns(prediction), figure_columns(prediction));
    let mut left = figures.as_slice();
    while let [first, rest @ ..] = left {
        let (mut part, mut columns) = (vec![&queues, first], queues.width() + first.width());
        left = rest;
        while let [next, rest @ ..] = left
            && width.fits(columns + next.width())
        {
            part.push(next);
            columns += next.width();
            left = rest;
        }
        out.push('\n');
        for at in 0..prediction.lines.len() + 2 {
            let line: String = part.iter().map(|group| group.0[at].as_str()).collect();
            if !line.trim().is_empty() {
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
    }
}

/// The table; where it is too wide, its figures in parts one below the other.
pub(crate) fn table(prediction: &Prediction, width: Width) -> String {
    let width = Width::of(width.columns().unwrap_or(COLUMNS).min(COLUMNS));
    let mut out = String::new();
    let _ = writeln!(
        out,
        "server   {} = {} x {}, service time {}",
        counted(prediction.slots, "slot"),
        counted(prediction.workers, "worker"),
        counted(prediction.threads, "thread"),
        service(prediction)
    );
    let _ = writeln!(out, "load     {}", prediction.load);
    let lock = prediction
        .lock
        .as_ref()
        .and_then(|lock| Some((lock, lock.by_threads.iter().find(|line| line.threads == prediction.threads)?)));
    // Where the lock costs less than this, the theory of threads alone holds.
    let binding = lock.filter(|(_, asked)| asked.of_slots < LOCK_MATTERS);
    let most = binding.map_or(prediction.at_most_per_s, |(_, asked)| asked.at_most_per_s);
    let knee = prediction.knee_connections * most / prediction.at_most_per_s;
    let alone = number::rate_in_words(prediction.at_most_per_s);
    let why = if binding.is_some() { format!(" by Ruby's lock ({alone} without it)") } else { String::new() };
    let limits = format!(
        "limits   {} req/s at most{why}; requests must wait from {} connections on",
        number::rate_in_words(most),
        number::rate_in_words(knee)
    );
    out.push_str(&broken(&limits, width));
    if let Some((lock, _)) = binding {
        out.push('\n');
        locked(&mut out, prediction, lock, "", width);
        let hidden =
            "Percentiles under the lock are not known; without --cpu you see those of threads that never wait for it.";
        out.push('\n');
        out.push_str(&broken(hidden, width));
        return out;
    }
    queue_table(&mut out, prediction, width);
    out.push('\n');
    let mut remarks = Vec::new();
    if let Some(objective) = &prediction.objective {
        remarks.push(format!("max req/s: the highest rate that keeps {objective}"));
    }
    if let Some(widest) = prediction.lines.iter().filter_map(widest).max_by(f64::total_cmp) {
        remarks.push(format!(
            "simulated: 95 % intervals of at most ± {} % of the figure; --json has each",
            number::percent(widest)
        ));
    }
    remarks.iter().chain(&prediction.notes).for_each(|line| out.push_str(&broken(line, width)));
    if let Some((lock, asked)) = lock {
        let lost = number::percent((1.0 - asked.of_slots).max(0.0));
        let aside = format!(" The lines above leave that out: with all threads busy it costs {lost} %.");
        locked(&mut out, prediction, lock, &aside, width);
    }
    out
}

/// What Ruby's lock leaves, by the number of threads.
fn locked(out: &mut String, prediction: &Prediction, lock: &RubyLock, aside: &str, width: Width) {
    let computes = format!(
        "Ruby's lock: each request computes {} of its {}, one thread of a worker at a time.{aside}",
        number::span(Nanos(lock.cpu_ns)),
        number::span(Nanos(prediction.service_mean_ns)),
    );
    out.push_str(&broken(&computes, width));
    out.push('\n');
    let is_closed = lock.by_threads.iter().any(|line| line.closed.is_some());
    let with = if is_closed { ["these connections", "  req/s  mean ms"] } else { ["this rate", "   % full"] };
    let _ = writeln!(out, "{:14}{:^30}  {}", "", "── req/s of all workers ──", with[0]);
    let _ = writeln!(out, "{:14}{:>10}{:>10}{:>10}  {}", "threads each", "at most", "all busy", "% of max", with[1]);
    for line in &lock.by_threads {
        let LockedThreads { threads, at_most_per_s, all_busy_per_s, of_slots, closed, offered_of_all_busy } = *line;
        let [at_most, all_busy] = [at_most_per_s, all_busy_per_s].map(number::rate);
        let share = number::percent(of_slots);
        let _ = write!(out, "{threads:>12}  {at_most:>10}{all_busy:>10}{share:>10}  ");
        if let Some(LockedLoop { rate_per_s, response_mean_ns }) = closed {
            let mean = milliseconds(Nanos(response_mean_ns));
            let _ = write!(out, "{:>7}{mean:>9}", number::rate(rate_per_s));
        }
        if let Some(full) = offered_of_all_busy {
            let _ = write!(out, "{:>9}", if full < 1.0 { number::percent(full) } else { "overload".to_owned() });
        }
        out.push_str(if threads == prediction.threads { "  as asked\n" } else { "\n" });
    }
    let at_most = format!(
        "at most: by any law, and never more than {} req/s; % of max: of what as many slots would do without the lock.",
        number::rate_in_words(lock.at_most_per_s),
    );
    let connections = if is_closed { ", these connections" } else { "" };
    out.push_str(&broken(&at_most, width));
    out.push_str(&broken(&format!("all busy{connections}: exact where the times scatter exponentially"), width));
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn service(prediction: &Prediction) -> String {
    let mean = number::span(Nanos(prediction.service_mean_ns));
    if prediction.service.contains(':') {
        format!("{} (mean {mean})", prediction.service)
    } else {
        format!("{mean}, constant")
    }
}

fn each(times: Option<TimeSummary>) -> [Option<PredictedTime>; 4] {
    times.map_or([None; 4], |times| [times.mean, times.p50, times.p95, times.p99].map(Some))
}

/// The widest interval among a line's response times, as a part of its figure.
fn widest(line: &PredictedQueue) -> Option<f64> {
    let part = |figure: PredictedTime| Some(figure.half_width_ns? as f64 / figure.ns as f64);
    each(line.response).into_iter().flatten().filter_map(part).max_by(f64::total_cmp)
}

/// p99 over the rate, as bars.
pub(crate) fn plot(steps: &[PlotStep]) -> String {
    let longest = steps.iter().flat_map(|step| &step.p99).map(|(_, time)| time.0).max().unwrap_or(1);
    let mut out = "\np99 of the response time, ms, over the rate\n".to_owned();
    for step in steps {
        for (place, (queue, time)) in step.p99.iter().enumerate() {
            let rate = if place == 0 { number::rate(step.rate_per_s) } else { String::new() };
            let shape = if place == 0 { "█" } else { "░" };
            let bar = shape.repeat((time.0 as f64 / longest as f64 * BAR).round().max(1.0) as usize);
            let _ = writeln!(out, "{rate:>8} {queue:6} {:>7} {bar}", milliseconds(*time));
        }
    }
    out
}
