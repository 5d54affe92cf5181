//! How much was wanted, sent and answered: the first thing to look at, since a generator that sends less than it was
//! asked for has measured something else.

use model::{Diagnostic, LoadStudy, Pace, Profile};

use super::part::{Body, Part, Row, head};
use crate::number::{self, count_of, or_none};

/// Of the requests that were due in the measured window.
pub(crate) fn part(study: &LoadStudy) -> Part {
    let (plan, run) = (&study.plan, &study.run);
    let counts = &run.tally.counts;
    let (planned, sent, good) = (counts.total(), sent(study), counts.good());
    let offered = run.offered_rate(&plan.pace);
    let known = |rate: f64| if run.measured.0 == 0 { None } else { Some(rate) };
    let per_second = |rate: Option<f64>| or_none(rate, |rate| number::or_zero(rate, number::rate));
    let in_words = |rate: Option<f64>| or_none(rate, |rate| format!("{}/s", number::rate_in_words(rate)));
    let requested = match &plan.pace {
        // What was asked, where that is one number; a random law offers a little more or less.
        Pace::Open { profile: Profile::Flat { rate }, .. } => in_words(Some(rate.per_second())),
        Pace::Open { .. } => in_words(offered.and_then(known)),
        Pace::Closed => "as fast as answers come".to_owned(),
    };
    let tool_words = format!(
        "requested: {requested} - achieved: {}, submit failures: {}, wait failures: {}",
        in_words(known(run.completed_rate())),
        number::count(planned - sent),
        number::count(sent - good),
    );
    let of_planned = |n: u64| {
        let part = (planned > 0).then(|| n as f64 / planned as f64);
        or_none(part, |part| number::or_zero(part, number::percent))
    };
    let rates = [offered.and_then(known), known(run.sent_rate()), known(run.completed_rate())];
    let names = ["offered", "sent", "completed"];
    let notes = [String::new(), failures(planned - sent, "never sent"), failures(sent - good, "sent, no good answer")];
    // In a closed loop nothing is offered that is not sent, unless it fails to be.
    let shown = if plan.pace.is_open() { 0..3 } else { 1..3 };
    let counts = [planned, sent, good];
    let rows = shown.map(|at| {
        let n = counts[at];
        Row::new([names[at].to_owned(), number::count(n), of_planned(n), per_second(rates[at])], notes[at].clone())
    });
    let mut bodies = vec![
        Body::Lines(vec![tool_words]),
        Body::Table(head(["", "requests", "% of all", "per second"]), rows.collect()),
    ];
    if study.interrupted {
        bodies.insert(0, Body::Lines(vec![ended_early(study)]));
    }
    Part::new(title(study), bodies)
}

fn title(study: &LoadStudy) -> String {
    format!("rates over the measured {}", number::length(study.run.measured))
}

fn ended_early(study: &LoadStudy) -> String {
    let planned = study.plan.length.map(|length| format!(" of {} planned", number::span(length))).unwrap_or_default();
    let asked = study.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::StoppedEarly { .. }));
    // A server that is gone ends no load.
    let who = if asked { "--stop-if" } else { "the user" };
    format!("ended early, by {who}: {}{planned}", number::length(study.run.measured))
}

fn failures(n: u64, what: &str) -> String {
    if n == 0 { String::new() } else { format!("{} {what}", number::count(n)) }
}

/// The measured requests of which a byte reached the kernel.
pub(crate) fn sent(study: &LoadStudy) -> u64 {
    study.run.tally.send_lag.count()
}

/// `14421 good answers`.
pub(crate) fn good_answers(study: &LoadStudy) -> String {
    count_of(study.run.tally.counts.good(), "good answer")
}
