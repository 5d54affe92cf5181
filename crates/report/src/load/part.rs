//! A report in parts, before it is laid out: what text and markdown have in common.

use model::LoadStudy;

use crate::{heard, verdicts};

use super::{network, outcomes, over_time, overload, phases, picture, rates, remarks, times};

/// One part of a report, under a title.
pub(crate) struct Part {
    pub(crate) title: String,
    pub(crate) bodies: Vec<Body>,
    /// Of second interest: markdown folds it.
    pub(crate) is_detail: bool,
}

/// What stands under a title.
pub(crate) enum Body {
    /// Columns under a head; the first is aligned left, the others right.
    Table(Vec<String>, Vec<Row>),
    /// Sentences, or lists of few words.
    Lines(Vec<String>),
    /// Columns that are drawn already.
    Drawn(String),
}

/// A line of a table.
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// What is said beside it; may be empty.
    pub(crate) note: String,
}

impl Row {
    pub(crate) fn new<const N: usize>(cells: [String; N], note: impl Into<String>) -> Row {
        Row { cells: cells.into(), note: note.into() }
    }
}

impl Part {
    /// A part that is never folded.
    pub(crate) fn new(title: impl Into<String>, bodies: Vec<Body>) -> Part {
        Part { title: title.into(), bodies, is_detail: false }
    }

    /// A part that markdown folds.
    pub(crate) fn detail(title: impl Into<String>, bodies: Vec<Body>) -> Part {
        Part { title: title.into(), bodies, is_detail: true }
    }
}

/// The head of a table.
pub(crate) fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// All that there is to say, in the order in which it is asked: how much, how fast, where the time went, what went
/// wrong, and what is doubtful.
pub(crate) fn all(study: &LoadStudy) -> Vec<Part> {
    // An invalid run has no headline figure.
    let is_shown = !verdicts::hides(study.run.judgement.as_ref());
    let parts = [
        remarks::verdict(study),
        is_shown.then(|| rates::part(study)),
        times::answers(study).filter(|_| is_shown),
        overload::part(study).filter(|_| is_shown),
        picture::part(study).filter(|_| is_shown),
        over_time::part(study).filter(|_| is_shown),
        times::generator(study),
        phases::part(study).filter(|_| is_shown),
        network::part(study),
        outcomes::statuses(study),
        outcomes::errors(study),
        times::failures(study),
        times::slowest(study).filter(|_| is_shown),
        outcomes::workers(study),
        heard_of(study),
        Some(phases::traffic(study)),
        remarks::log(study),
        remarks::checks(study),
        remarks::objectives(study),
        remarks::warnings(study),
        remarks::words(study),
    ];
    parts.into_iter().flatten().collect()
}

/// What the app said over statsd.
fn heard_of(study: &LoadStudy) -> Option<Part> {
    let said = study.run.heard.as_ref()?;
    let rows = heard::of_run("", said).into_iter().map(|cells| Row { cells, note: String::new() });
    let rows: Vec<Row> = rows.collect();
    let mut bodies = Vec::new();
    if !rows.is_empty() {
        bodies.push(Body::Table(head(heard::HEAD), rows));
    }
    bodies.extend(heard::beside(said, study.run.elapsed).map(|line| Body::Lines(vec![line])));
    (!bodies.is_empty()).then(|| Part::new(heard::TITLE, bodies))
}
