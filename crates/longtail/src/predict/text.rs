//! A prediction as text.

use std::fmt::Write as _;

use model::Nanos;
use report::number;

use super::{Figure, Line, Prediction, Step, Times};

/// The widest bar of the plot.
const BAR: f64 = 40.0;

/// The table.
pub(crate) fn table(prediction: &Prediction) -> String {
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
    let _ = writeln!(
        out,
        "limits   {} req/s at most; requests must wait from {} connections on\n",
        number::rate_in_words(prediction.at_most_per_s),
        number::significant(prediction.knee_connections)
    );
    let _ = writeln!(out, "{:45}{:^32}{:^32}", "", "─────── wait, ms ───────", "─── response time, ms ───");
    let _ = write!(out, "{:7} {:20} {:>8} {:>7}", "queue", "how", "req/s", "% full");
    for _ in 0..2 {
        let _ = write!(out, " {:>7} {:>7} {:>7} {:>7}", "mean", "p50", "p95", "p99");
    }
    if prediction.objective.is_some() {
        let _ = write!(out, " {:>10}", "max req/s");
    }
    out.push('\n');
    for line in &prediction.lines {
        row(&mut out, line, prediction.objective.is_some());
    }
    out.push('\n');
    if let Some(objective) = &prediction.objective {
        let _ = writeln!(out, "max req/s: the highest rate that keeps {objective}");
    }
    if let Some(widest) = prediction.lines.iter().filter_map(widest).max_by(f64::total_cmp) {
        let _ = writeln!(
            out,
            "simulated: 95 % intervals of at most ± {} % of the figure; --format json has each",
            number::percent(widest)
        );
    }
    for note in &prediction.notes {
        let _ = writeln!(out, "{note}");
    }
    out
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

fn row(out: &mut String, line: &Line, with_highest: bool) {
    let (rate, full) = (number::rate(line.rate_per_s), number::percent(line.utilisation));
    let _ = write!(out, "{:7} {:20} {rate:>8} {full:>7}", line.queue, line.how);
    for times in [line.wait, line.response] {
        for figure in each(times) {
            let _ = write!(out, " {:>7}", number::or_none(figure, |figure| number::milliseconds(Nanos(figure.ns))));
        }
    }
    if with_highest {
        let _ = write!(out, " {:>10}", number::or_none(line.highest_rate_per_s, number::rate));
    }
    out.push('\n');
}

fn each(times: Option<Times>) -> [Option<Figure>; 4] {
    times.map_or([None; 4], |times| [times.mean, times.p50, times.p95, times.p99].map(Some))
}

/// The widest interval among a line's response times, as a part of its figure.
fn widest(line: &Line) -> Option<f64> {
    let part = |figure: Figure| Some(figure.half_width_ns? as f64 / figure.ns as f64);
    each(line.response).into_iter().flatten().filter_map(part).max_by(f64::total_cmp)
}

/// p99 over the rate, as bars.
pub(crate) fn plot(steps: &[Step]) -> String {
    let longest = steps.iter().flat_map(|step| &step.p99).map(|(_, time)| *time).fold(0.0, f64::max);
    let mut out = "\np99 of the response time, ms, over the rate\n".to_owned();
    for step in steps {
        for (place, (queue, time)) in step.p99.iter().enumerate() {
            let rate = if place == 0 { number::rate(step.rate_per_s) } else { String::new() };
            let shape = if place == 0 { "█" } else { "░" };
            let bar = shape.repeat((time / longest * BAR).round().max(1.0) as usize);
            let _ = writeln!(out, "{rate:>8} {queue:6} {:>7} {bar}", number::milliseconds(Nanos::from_secs_f64(*time)));
        }
    }
    out
}
