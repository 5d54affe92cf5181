//! What instruments cost, as a table with a line of words for each arm, and as JSON.

use model::paired::{LEAST_ROUNDS, PairedAnswer, PairedRatio};
use model::{Environment, Stop};
use report::number;
use serde_json::{Value, json};

use super::findings::{Figure, Metric, OfArm, OverheadFindings};

/// Of the JSON; one that an old reader would misunderstand gets the next.
const SCHEMA: u32 = 1;

/// Columns of names, and of each metric: its median, its ratio, and the ratio's interval.
const NAMES: usize = 16;
const CELLS: [usize; 3] = [9, 8, 16];

/// For a terminal.
pub(crate) fn table(found: &OverheadFindings<'_>) -> String {
    let (plan, overhead) = (found.plan, found.overhead);
    let server = &overhead.server;
    let length = match plan.stream.stop {
        Stop::After(length) => number::span(length),
        Stop::RequestsPerConnection(n) => number::count_of(n, "request"),
    };
    let version = server.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let mut lines = vec![
        format!(
            "{}{version}, {} of {}, {}, closed loop; {} of {} arms, {length} each, in an order of chance (seed {})",
            server.name,
            number::count_of(server.workers, "worker"),
            number::count_of(server.threads, "thread"),
            number::count_of(overhead.connections, "connection"),
            number::count_of(plan.rounds, "round"),
            plan.arms.len(),
            plan.seed,
        ),
        String::new(),
    ];
    let width: usize = CELLS.iter().sum();
    let over = ["server CPU us/request", "generator CPU us/request", "requests/s"];
    lines.push(format!("{:NAMES$}{}", "", over.map(|name| format!("{name:>width$}")).concat()));
    let names = ["median", "x bare", "95 %"];
    let names: String =
        names.iter().zip(CELLS).map(|(name, width)| format!("{name:>width$}")).collect::<Vec<_>>().concat();
    lines.push(format!("{:NAMES$}{}", "arm", names.repeat(over.len())));
    for arm in &found.arms {
        let cells: Vec<String> = arm.figures.iter().map(cells).collect();
        lines.push(format!("{:NAMES$}{}", arm.name, cells.concat()).trim_end().to_owned());
    }
    let is_noise = |figure: &Figure| figure.answer == Some(PairedAnswer::Noise);
    if found.arms.iter().any(|arm| arm.figures.iter().any(is_noise)) {
        lines.push("~ within the noise".to_owned());
    }
    lines.push(String::new());
    for (arm, of_arm) in plan.arms.iter().zip(&found.arms).skip(1) {
        lines.push(format!("{:NAMES$}{}; {}", of_arm.name, arm.words(), words(of_arm)));
    }
    lines.extend(found.warnings.iter().map(|line| format!("! {line}")));
    if overhead.interrupted {
        lines.push("! interrupted: rounds are missing".to_owned());
    }
    lines.join("\n") + "\n"
}

fn cells(figure: &Figure) -> String {
    let median = number::or_none(figure.median, |value| match figure.metric {
        Metric::Rate => number::rate(value),
        Metric::ServerCpu | Metric::GeneratorCpu => number::significant(value / 1e3),
    });
    let ratio = number::or_none(figure.ratio, |ratio| number::fixed(ratio.median, 3));
    let interval = figure.ratio.and_then(interval);
    let is_noise = figure.answer == Some(PairedAnswer::Noise);
    let interval = interval.map(|text| format!("{}{text}", if is_noise { "~" } else { "" }));
    let interval = if figure.ratio.is_some() { number::or_none(interval, |text| text) } else { String::new() };
    let cells = [median, if figure.ratio.is_some() { ratio } else { String::new() }, interval];
    cells.iter().zip(CELLS).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().concat()
}

fn interval(ratio: PairedRatio) -> Option<String> {
    let (low, high) = ratio.low.zip(ratio.high)?;
    Some(format!("{}..{}", number::fixed(low, 3), number::fixed(high, 3)))
}

/// What an arm comes to.
fn words(arm: &OfArm) -> String {
    let named = |answer: PairedAnswer| {
        let is = |figure: &&Figure| figure.answer == Some(answer);
        arm.figures.iter().filter(is).map(|figure| figure.metric.name()).collect::<Vec<_>>().join(", ")
    };
    let differs: Vec<String> =
        arm.figures.iter().filter(|figure| figure.answer == Some(PairedAnswer::Differs)).map(difference).collect();
    let mut parts = differs;
    if arm.figures.iter().all(|figure| figure.answer.is_none()) {
        return floor(arm);
    }
    let noise = named(PairedAnswer::Noise);
    if !noise.is_empty() {
        parts.push(format!("within the noise: {noise}"));
    }
    if !named(PairedAnswer::TooFewRounds).is_empty() {
        let least = LEAST_ROUNDS;
        parts.push(format!("{} tell no 95 % interval: {least} or more do", number::count_of(rounds(arm), "round")));
    }
    parts.join("; ")
}

fn rounds(arm: &OfArm) -> u32 {
    arm.figures.iter().filter_map(|figure| figure.ratio).map(|ratio| ratio.rounds).max().unwrap_or(0)
}

/// `server CPU +12.3 % [+10.1..+14.0]`
fn difference(figure: &Figure) -> String {
    let percent = |ratio: f64| number::deviation(ratio - 1.0);
    let name = figure.metric.name();
    let Some(ratio) = figure.ratio else { return name.to_owned() };
    let interval = ratio.low.zip(ratio.high).map(|(low, high)| format!(" [{}..{}]", percent(low), percent(high)));
    format!("{name} {} %{}", percent(ratio.median), interval.unwrap_or_default())
}

/// Of the control.
fn floor(arm: &OfArm) -> String {
    let spread = |figure: &Figure| {
        let (low, high) = figure.ratio.and_then(|ratio| ratio.low.zip(ratio.high))?;
        let percent = |ratio: f64| number::deviation(ratio - 1.0);
        Some(format!("{} {}..{} %", figure.metric.name(), percent(low), percent(high)))
    };
    let spreads: Vec<String> = arm.figures.iter().filter_map(spread).collect();
    if spreads.is_empty() {
        format!("{} tell no noise floor: {LEAST_ROUNDS} or more do", number::count_of(rounds(arm), "round"))
    } else {
        format!("noise floor: {}", spreads.join(", "))
    }
}

/// For a program. The shape is in docs/FORMAT.md.
pub(crate) fn json(found: &OverheadFindings<'_>, environment: &Environment, started_at: &str) -> String {
    let (plan, overhead) = (found.plan, found.overhead);
    let samples: Vec<Value> = overhead
        .samples
        .iter()
        .map(|sample| {
            json!({
                "arm": plan.arms[sample.arm].name(),
                "round": sample.round,
                "rate_per_s": sample.rate_per_s,
                "answers": sample.answers,
                "failed": sample.failed,
                "server_cpu_ns": sample.server_cpu,
                "generator_cpu_ns": sample.generator_cpu,
                "lane_busy": sample.lane_busy,
                "packets": sample.packets,
            })
        })
        .collect();
    let all = json!({
        "kind": "overhead",
        "schema": SCHEMA,
        "started_at": started_at,
        "environment": environment,
        "server": overhead.server,
        "server_plan": plan.server,
        "stream": plan.stream,
        "connections": overhead.connections,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "arms": found.arms,
        "samples": samples,
        "warnings": found.warnings,
        "interrupted": overhead.interrupted,
    });
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overhead::findings::tests::{overhead, plan};

    #[test]
    fn an_arm_has_its_figures_and_its_words() {
        let (plan, overhead) = (plan(6), overhead(6));
        let text = table(&OverheadFindings::of(&plan, &overhead));
        let expected = "\
Puma 6.5.0, 4 workers of 5 threads, 10 connections, closed loop; 6 rounds of 4 arms, 100 requests each, in an order of chance (seed 3)

                            server CPU us/request         generator CPU us/request                       requests/s
arm                median  x bare            95 %   median  x bare            95 %   median  x bare            95 %
bare                  900                             10.0                              900
control               902   1.000    0.980..1.020     10.0   1.000    1.000..1.000      902   1.000    0.980..1.020
proc                  901   1.000   ~0.990..1.010     10.0   1.000   ~1.000..1.000      901   1.000   ~0.990..1.010
statsd               1125   1.250    1.250..1.250     10.0   1.000   ~1.000..1.000      720   0.800    0.800..0.800
~ within the noise

";
        assert!(text.starts_with(expected), "{text}");
        for line in [
            "control         bare once more: what differs is noise; noise floor: server CPU -2.0..+2.0 %, generator CPU 0.0..0.0 %, requests/s -2.0..+2.0 %",
            "proc            server and kernel are read meanwhile (--inspect proc); within the noise: server CPU, generator CPU, requests/s",
            "statsd          the app sends a statsd packet for each request; server CPU +25.0 % [+25.0..+25.0]; requests/s -20.0 % [-20.0..-20.0]; within the noise: generator CPU",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn few_rounds_are_said_to_tell_nothing() {
        let (plan, overhead) = (plan(3), overhead(3));
        let text = table(&OverheadFindings::of(&plan, &overhead));
        assert!(text.contains("3 rounds tell no 95 % interval: 6 or more do"), "{text}");
        assert!(text.contains("3 rounds tell no noise floor"), "{text}");
    }
}
