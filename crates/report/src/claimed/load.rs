//! The report of a load that another generator made: what it claims, what the audit says of it, and its own output.

use std::fmt::Write as _;

use model::{ClaimedLoadStudy, Nanos};

use super::{findings, machine, made_by, word};
use crate::facts::{beside_the_server, hardware_in_words, listed, named};
use crate::load::part::{Body, Part, Row, head};
use crate::load::{markdown as laid_out, text as wrapped, words};
use crate::markdown::{details, escaped, fenced};
use crate::number::{self, NONE, or_none};
use crate::width::Width;

/// The report for a terminal. It begins with the command line that repeats it.
pub fn text(study: &ClaimedLoadStudy, width: Width) -> String {
    let mut text = wrapped::opening(&study.command_line, &opening(study), width);
    for part in parts(study) {
        text.push('\n');
        wrapped::lay_out(&mut text, &part, width);
    }
    _ = writeln!(text, "\n{}", total_time(study));
    text
}

/// The report for a pull request.
pub fn markdown(study: &ClaimedLoadStudy) -> String {
    let mut blocks = vec![fenced("sh", &study.command_line)];
    let opening = opening(study);
    let (load, rest) = opening.split_at(2);
    let lines: Vec<String> = load.iter().flat_map(|(_, lines)| lines).map(|line| escaped(line)).collect();
    blocks.push(lines.join("<br>\n") + "\n");
    blocks.extend(parts(study).iter().map(laid_out::lay_out));
    let environment: Vec<String> =
        rest.iter().flat_map(|(what, lines)| lines.iter().map(move |line| format!("{what:<9}{line}"))).collect();
    blocks.push(details("environment", fenced("text", &environment.join("\n")).trim_end()));
    blocks.push(total_time(study) + "\n");
    blocks.join("\n")
}

fn opening(study: &ClaimedLoadStudy) -> Vec<(&'static str, Vec<String>)> {
    let version = study.environment.longtail_version.clone();
    let placement = study.placement.as_ref();
    let placed = placement.map(|placement| beside_the_server(study.run.name(), Some(placement)));
    vec![
        ("load", vec![words::model(&study.plan), words::requests(&study.plan)]),
        ("made", std::iter::once(made_by(&study.run)).chain(placed).collect()),
        ("target", words::target(&study.plan)),
        ("machine", vec![hardware_in_words(&study.environment)]),
        ("longtail", vec![listed([version, named("started", &study.started_at)])]),
    ]
}

fn parts(study: &ClaimedLoadStudy) -> Vec<Part> {
    let run = &study.run;
    let name = run.name();
    let mut findings = findings(run);
    if findings.is_empty() {
        findings.push("its figures, as far as they can be held against each other, agree".to_owned());
    }
    let doubts: Vec<String> = run
        .warnings
        .iter()
        .map(|warning| (warning.to_string(), warning.hint()))
        .chain(machine(run))
        .flat_map(|(seen, remedy)| [seen, format!("  → {remedy}")])
        .collect();
    let all = [
        Some(Part::new(format!("claim of {name}: {}", word(run.audit)), vec![Body::Lines(findings)])),
        Some(Part::new(format!("rates, by {name}"), vec![rates(study)])),
        times(study).map(|table| Part::new(format!("times, by {name}"), vec![table])),
        statuses(study).map(|table| Part::new(format!("status codes, by {name}"), vec![table])),
        objectives(study),
        (!doubts.is_empty()).then(|| Part::new("warnings", vec![Body::Lines(doubts)])),
        Some(Part::detail(format!("what {name} printed"), vec![Body::Drawn(run.output.clone())])),
    ];
    all.into_iter().flatten().collect()
}

fn rates(study: &ClaimedLoadStudy) -> Body {
    let claim = &study.run.claim;
    let row = |name: &str, shown: String, note: &str| Row::new([name.to_owned(), shown], note);
    let warm_up = study.run.warm_up_requests.map(|n| row("in its warm-up", number::count(n), "thrown away"));
    let mut rows = vec![
        row("requests", or_none(claim.requests, number::count), ""),
        row("failed", or_none(claim.failed, number::count), "bad statuses, errors and timeouts, as it counts them"),
        row("per second", or_none(claim.rate_per_s, number::rate), ""),
        row("duration", or_none(claim.duration, number::length), ""),
    ];
    rows.extend(warm_up);
    Body::Table(head(["", ""]), rows)
}

/// Only what it printed; `None` where that is no time at all.
fn times(study: &ClaimedLoadStudy) -> Option<Body> {
    let claim = &study.run.claim;
    let named = |name: &str, time: Option<Nanos>| Some((name.to_owned(), time?));
    let mut known: Vec<(String, Nanos)> =
        [named("mean", claim.mean), named("std deviation", claim.stdev), named("shortest", claim.min)]
            .into_iter()
            .flatten()
            .collect();
    known.extend(claim.percentiles.iter().map(|one| (number::percentile(one.quantile), one.time)));
    known.extend(named("longest", claim.max));
    let rows = known.into_iter().map(|(name, time)| Row::new([name, number::milliseconds(time)], ""));
    let rows: Vec<Row> = rows.collect();
    (!rows.is_empty()).then(|| Body::Table(head(["", "ms"]), rows))
}

fn statuses(study: &ClaimedLoadStudy) -> Option<Body> {
    let statuses = &study.run.claim.statuses;
    let rows: Vec<Row> = statuses.iter().map(|(status, n)| Row::new([status.clone(), number::count(*n)], "")).collect();
    (!rows.is_empty()).then(|| Body::Table(head(["", "answers"]), rows))
}

fn objectives(study: &ClaimedLoadStudy) -> Option<Part> {
    if !study.missed.is_empty() {
        return Some(Part::new("objectives missed", vec![Body::Lines(study.missed.clone())]));
    }
    let asked: Vec<String> = study.plan.fail_if.iter().map(ToString::to_string).collect();
    (!asked.is_empty()).then(|| Part::new("objectives kept: none of these holds", vec![Body::Lines(asked)]))
}

fn total_time(study: &ClaimedLoadStudy) -> String {
    let elapsed = study.run.elapsed;
    format!("total time {}", if elapsed == Nanos::ZERO { NONE.to_owned() } else { number::length(elapsed) })
}
