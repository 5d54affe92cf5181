//! The layout of `wrk --latency` with our numbers, for scripts that read it.
//!
//! Lines, widths and units are the same. The numbers differ in what they measure:
//!
//! - `Latency` is the response time, from when a request was due, of good responses to requests
//!   that were sent; no samples are added to the distribution afterwards (wrk adds some), so that
//!   the mean keeps Little's law;
//! - `Req/Sec` is an even share of each thread, by whole seconds (wrk: by tenths of a second of each
//!   thread);
//! - a percentile or maximum that the responses do not support is `-`;
//! - `requests in` and `Requests/sec` count the same: good responses that ended in the measured
//!   window, whose length stands behind (wrk: bad ones, too);
//! - `read` and `Transfer/sec` are of the whole run, including unmeasured requests;
//! - bad responses are among the `read` errors, and a line of ours, `Bad responses`, says what was
//!   wrong with them;
//! - the last line, which wrk does not have, says whose figures these are: `longtail audit` reads it.

use std::fmt::Write as _;

use model::{Counts, Histogram, LoadStudy, Nanos, Outcome};

use super::ToolLayout;
use crate::number::{self, NONE, or_none};

const PERCENTILES: [u32; 4] = [50, 75, 90, 99];

/// How the last line begins.
pub const BY_LONGTAIL: &str = "By longtail, in wrk's layout:";
/// How it goes on.
const WHAT_IS_COUNTED: &str = "requests are good responses in the measured time, bytes are of the whole run, no sample is added";

/// It, with all its parts.
pub const LAYOUT: ToolLayout = ToolLayout { whole, counts };

/// The whole report.
pub fn whole(study: &LoadStudy) -> String {
    let plan = &study.plan;
    let run = &study.run;
    let tally = &run.tally;
    let length = plan.length.unwrap_or(run.measured);
    let mut text = format!("Running {} test @ {}\n", seconds(length.as_secs_f64(), 0), plan.url);
    _ = writeln!(text, "  {} threads and {} connections", plan.load.lanes, plan.load.connections);
    text.push_str("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n");
    text += &stats_line("Latency", &latency(study));
    text += &stats_line("Req/Sec", &per_second(study));
    text.push_str("  Latency Distribution\n");
    for percent in PERCENTILES {
        let time = run.response_time(f64::from(percent) / 100.0).time();
        _ = writeln!(
            text,
            "{}",
            format!("{percent:>7}%{}", padded(&or_none(time, time_text), 10)).trim_end()
        );
    }
    _ = writeln!(
        text,
        "  {} requests in {}, {}B read",
        tally.completed_in_window,
        time_text(run.measured),
        binary(tally.received_bytes as f64)
    );
    text += &errors(study);
    let elapsed = run.elapsed.as_secs_f64();
    let transfer = if elapsed > 0.0 { tally.received_bytes as f64 / elapsed } else { 0.0 };
    _ = writeln!(text, "Requests/sec: {:>9}", number::fixed(run.completed_rate(), 2));
    _ = writeln!(text, "Transfer/sec: {:>10}B", binary(transfer));
    _ = writeln!(text, "{BY_LONGTAIL} {WHAT_IS_COUNTED}");
    text
}

/// Responses and errors that are counted, without times and rates.
fn counts(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let good = tally.counts.good();
    format!("  {good} good responses of {} requests\n{}", tally.counts.total(), errors(study))
}

/// The lines of errors.
fn errors(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let counts = &tally.counts;
    let mut text = socket_errors(counts);
    let bad = counts.answered() - counts.good();
    if bad > 0 {
        _ = writeln!(text, "  Non-2xx or 3xx responses: {bad}");
    }
    if let Some(reasons) = tally.reason(Outcome::BadResponse) {
        _ = writeln!(text, "  Bad responses: {reasons}");
    }
    text
}

/// The line of errors; nothing if there are none.
fn socket_errors(counts: &Counts) -> String {
    let of = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| counts.of(*outcome)).sum::<u64>();
    let timeout = of(&[Outcome::TimedOut, Outcome::ConnectTimedOut]);
    let connect: u64 =
        counts.iter().filter(|(outcome, _)| outcome.is_connect()).map(|(_, n)| n).sum();
    let connect = connect - of(&[Outcome::ConnectTimedOut]);
    let read = of(&[Outcome::Reset, Outcome::Closed, Outcome::BadResponse, Outcome::WrongLength]);
    if connect + read + timeout == 0 {
        return String::new();
    }
    format!("  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n")
}

/// Average, standard deviation, maximum, and the percentage within one deviation of the average; as
/// text.
type Stats = [String; 4];

fn latency(study: &LoadStudy) -> Stats {
    let times = &study.run.tally.response_time;
    [
        or_none(times.mean(), time_text),
        or_none(times.standard_deviation(), time_text),
        or_none(study.run.tally.longest_response_time().time(), time_text),
        or_none(within_one_deviation(times), |percent| format!("{}%", number::fixed(percent, 2))),
    ]
}

fn within_one_deviation(times: &Histogram) -> Option<f64> {
    let mean = times.mean()?;
    let deviation = times.standard_deviation()?;
    let near = mean.saturating_sub(deviation)..=mean.saturating_add(deviation);
    let inside: u64 = times.buckets().filter(|(time, _)| near.contains(time)).map(|(_, n)| n).sum();
    Some(inside as f64 * 100.0 / times.count() as f64)
}

/// The rates of the whole seconds of the measured window, for each thread.
fn per_second(study: &LoadStudy) -> Stats {
    let whole = (study.run.measured.0 / 1_000_000_000) as usize;
    let threads = f64::from(study.plan.load.lanes.max(1));
    let seconds = study.run.tally.series.seconds.iter().take(whole);
    let rates: Vec<f64> = seconds.map(|second| second.completed as f64 / threads).collect();
    if rates.is_empty() {
        return [NONE; 4].map(str::to_owned);
    }
    let n = whole as f64;
    // The series ends at the last second in which a request ended.
    let empty = (whole - rates.len()) as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let squares: f64 =
        rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() + empty * mean.powi(2);
    let deviation = if whole < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
    let is_inside = |rate: f64| (rate - mean).abs() <= deviation;
    let inside = rates.iter().filter(|rate| is_inside(**rate)).count() as f64
        + if is_inside(0.0) { empty } else { 0.0 };
    let highest = rates.iter().copied().fold(0.0, f64::max);
    [
        metric(mean),
        metric(deviation),
        metric(highest),
        format!("{}%", number::fixed(inside * 100.0 / n, 2)),
    ]
}

fn stats_line(name: &str, [mean, deviation, max, within]: &Stats) -> String {
    format!(
        "    {name:<10}{}{}{}{within:>9}\n",
        padded(mean, 8),
        padded(deviation, 10),
        padded(max, 9)
    )
}

/// Right-aligned, with two columns for the unit's letters, so that digits line up.
fn padded(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    format!("{text:>width$}{}", " ".repeat(pad), width = width - pad)
}

fn time_text(time: Nanos) -> String {
    let micros = time.0 as f64 / 1e3;
    if micros >= 1e6 {
        seconds(micros / 1e6, 2)
    } else {
        in_units(micros, 1000.0, &["us", "ms"], 2)
    }
}

fn seconds(seconds: f64, decimals: usize) -> String {
    in_units(seconds, 60.0, &["s", "m"], decimals)
}

fn metric(value: f64) -> String {
    in_units(value, 1000.0, &["", "k", "M", "G", "T"], 2)
}

fn binary(bytes: f64) -> String {
    in_units(bytes, 1024.0, &["", "K", "M", "G", "T"], 2)
}

/// In the first unit in which the value is below 0.85 of the next unit, as wrk does.
fn in_units(mut value: f64, scale: f64, units: &[&str], decimals: usize) -> String {
    let mut unit = 0;
    while value >= scale * 0.85 && unit + 1 < units.len() {
        value /= scale;
        unit += 1;
    }
    format!("{}{}", number::fixed(value, decimals), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_that_wrk_prints() {
        let times = [623_000, 6_640_000, 339_020_000, 30_070_000_000, 300_000_000_000]
            .map(|nanos| time_text(Nanos(nanos)));
        assert_eq!(times, ["623.00us", "6.64ms", "339.02ms", "30.07s", "5.00m"]);
        assert_eq!([seconds(30.0, 0), seconds(300.0, 0)], ["30s", "5m"]);
        assert_eq!([binary(370_892.8), binary(68_744_642.0)], ["362.20K", "65.56M"]);
        assert_eq!(padded("623.00us", 10), "  623.00us");
    }
}
