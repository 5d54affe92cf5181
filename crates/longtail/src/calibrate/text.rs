//! The table: one generator a line, medians of the rounds.

use std::fmt::Write as _;

use audit::{ClaimVerdict, PrintedFigure};
use model::{Environment, Nanos};
use report::number;
use serde_json::{Value, json};

use crate::calibrate::ComparedGenerator;
use crate::calibrate::account::{CalibrationRun, Spread};
use crate::generators::{Generator, LoadOrder};
use crate::selftest::machine;

/// All that was found.
pub(crate) struct CalibrationFindings<'a> {
    pub(crate) order: &'a LoadOrder,
    pub(crate) rounds: u32,
    pub(crate) compared: &'a [ComparedGenerator],
    pub(crate) missing: &'a [Generator],
    pub(crate) environment: &'a Environment,
    pub(crate) started_at: &'a str,
    pub(crate) interrupted: bool,
}

impl CalibrationFindings<'_> {
    /// Of each run.
    fn length(&self) -> Nanos {
        self.order.time().unwrap_or_default()
    }
}

/// Medians of one generator's runs.
struct Medians {
    rate: Spread,
    user: f64,
    system: f64,
    sink_busy: Option<f64>,
    little: Option<f64>,
    p50_s: Option<PrintedFigure>,
    p99_s: Option<PrintedFigure>,
    received: u64,
    claimed: Option<u64>,
}

impl Medians {
    fn of(runs: &[CalibrationRun]) -> Option<Medians> {
        let middle = |all: Vec<f64>| Spread::of(all).map(|spread| spread.median);
        let each = |figure: fn(&CalibrationRun) -> Option<f64>| middle(runs.iter().filter_map(figure).collect());
        // As it was printed: the middle one, not a mean of two.
        let printed = |figure: fn(&CalibrationRun) -> Option<PrintedFigure>| {
            let mut all: Vec<PrintedFigure> = runs.iter().filter_map(figure).collect();
            all.sort_by(|a, b| a.value.total_cmp(&b.value));
            all.get(all.len().saturating_sub(1) / 2).copied()
        };
        Some(Medians {
            rate: Spread::of(runs.iter().map(|run| run.rate_per_s))?,
            user: each(|run| Some(run.user))?,
            system: each(|run| Some(run.system))?,
            sink_busy: each(|run| run.sink_busy),
            little: each(|run| run.said.littles_law),
            p50_s: printed(|run| run.said.p50_s),
            p99_s: printed(|run| run.said.p99_s),
            received: runs.iter().map(|run| run.received).sum(),
            claimed: runs.iter().map(|run| run.said.claimed).sum(),
        })
    }

    fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

const HEAD: [&str; 2] = [
    "             requests per second         CPU us/request        sink   its own ms   requests in all      rate",
    "           median     [min..max]  x wrk  user   sys x wrk  busy    p50    p99 received unclaimed   x mean/c",
];

/// For a terminal.
pub(crate) fn table(found: &CalibrationFindings<'_>) -> String {
    let (connections, seconds) = (found.order.connections, found.length().0 / 1_000_000_000);
    let mut text = format!(
        "{} of each to one load sink, 1 thread, {} s a run, {} in turns; medians\n\n",
        number::count_of(connections, "connection"),
        seconds,
        number::count_of(found.rounds, "round"),
    );
    text.push_str(&(HEAD.join("\n") + "\n"));
    let wrk = found.compared.iter().find(|one| one.tool == Generator::Wrk).and_then(|one| Medians::of(&one.runs));
    for generator in found.compared {
        text.push_str(&line(generator, wrk.as_ref()));
    }
    text.push('\n');
    text.push_str(&remarks(found));
    text + &machine(found.environment)
}

fn line(generator: &ComparedGenerator, wrk: Option<&Medians>) -> String {
    let name = generator.tool.name();
    let Some(own) = Medians::of(&generator.runs) else { return format!("{name:<11} failed\n") };
    let times_wrk =
        |figure: fn(&Medians) -> f64| number::or_none(wrk.map(|wrk| figure(&own) / figure(wrk)), number::times);
    let micros = |ns: f64| number::fixed(ns / 1e3, 1);
    let range = format!("[{}..{}]", number::rate(own.rate.min), number::rate(own.rate.max));
    let unclaimed = own.claimed.map(|claimed| own.received.cast_signed() - claimed.cast_signed());
    let line = format!(
        "{name:<10}{:>7}{range:>17}{:>6}{:>6}{:>6}{:>6}{:>6}{:>7}{:>7}{:>9}{:>10}{:>11}",
        number::rate(own.rate.median),
        times_wrk(|own| own.rate.median),
        micros(own.user),
        micros(own.system),
        times_wrk(Medians::cpu),
        number::or_none(own.sink_busy, |busy| format!("{}%", number::fixed(busy * 100.0, 0))),
        number::or_none(own.p50_s, milliseconds),
        number::or_none(own.p99_s, milliseconds),
        own.received,
        number::or_none(unclaimed, |n| n.to_string()),
        number::or_none(own.little, number::times),
    );
    format!("{}\n", line.trim_end())
}

/// With the digits that it was printed with.
fn milliseconds(time: PrintedFigure) -> String {
    let width = (time.half_width * 2.0 * 1e3).max(1e-9);
    let decimals = (-width.log10()).round().clamp(0.0, 3.0) as usize;
    number::fixed(time.value * 1e3, decimals)
}

fn remarks(found: &CalibrationFindings<'_>) -> String {
    let mut text = String::new();
    for generator in found.compared {
        let name = generator.tool.name();
        if let Some(why) = generator.failures.last() {
            let failed = number::count_of(generator.failures.len() as u64, "run");
            let _ = writeln!(text, "{name}: {failed} failed: {why}");
        }
        let spoken = generator.runs.iter().filter_map(|run| word(run.said.verdict.as_ref()?)).next_back();
        if let Some(word) = spoken {
            let _ = writeln!(text, "{name}: its own figures are {word}");
        }
    }
    if !found.missing.is_empty() {
        let names: Vec<&str> = found.missing.iter().map(|one| one.name()).collect();
        let _ = writeln!(text, "missing (not on PATH): {}", names.join(", "));
    }
    text.push_str(
        "\nThe rate is what the sink counted in the middle of each run: the most that this generator can measure here. A\n\
         faster server is not what its tables show; and where the sink is near 100 % busy, it may be more.\n\
         Unclaimed: received by the sink and not in the generator's own count, such as what was under way at the end.\n\
         Rate x mean/c, both its own: 1 by Little's law; below 1 connections idled, above 1 times were made up.\n\
         longtail's p50 and p99 are from the due time, the others' from where each starts its watch.\n",
    );
    text
}

/// What the audit found wrong, in words.
fn word(verdict: &ClaimVerdict) -> Option<String> {
    let names = |checks: &[audit::ClaimCheck]| {
        let name =
            |check: &audit::ClaimCheck| serde_json::to_value(check).ok()?.as_str().map(|name| name.replace('_', " "));
        checks.iter().filter_map(name).collect::<Vec<_>>().join(", ")
    };
    match verdict {
        ClaimVerdict::Doubtful { by } => Some(format!("doubtful: {}", names(by))),
        ClaimVerdict::Impossible { by } => Some(format!("impossible: {}", names(by))),
        ClaimVerdict::Possible | ClaimVerdict::Unchecked => None,
    }
}

/// For a program.
pub(crate) fn json(found: &CalibrationFindings<'_>) -> Value {
    let medians = |generator: &ComparedGenerator| {
        let own = Medians::of(&generator.runs);
        let spread = |figure: fn(&CalibrationRun) -> f64| Spread::of(generator.runs.iter().map(figure));
        json!({
            "tool": generator.tool,
            "command_line": generator.command_line,
            "rate_per_s": own.as_ref().map(|own| own.rate),
            "user_cpu_per_request_ns": spread(|run| run.user),
            "system_cpu_per_request_ns": spread(|run| run.system),
            "received": own.as_ref().map(|own| own.received),
            "claimed": own.as_ref().and_then(|own| own.claimed),
            "littles_law": own.as_ref().and_then(|own| own.little),
            "runs": generator.runs,
            "failures": generator.failures,
        })
    };
    json!({
        "started_at": found.started_at,
        "environment": found.environment,
        "connections": found.order.connections,
        "length_ns": found.length(),
        "rounds": found.rounds,
        "interrupted": found.interrupted,
        "tools": found.compared.iter().map(medians).collect::<Vec<_>>(),
        "missing": found.missing,
    })
}
