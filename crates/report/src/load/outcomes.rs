//! How the requests ended: by status, by kind of error, by worker.

use model::{LoadStudy, Outcome, counts};

use super::part::{Body, Part, Row, head};
use crate::number::{self, NONE};

/// The status codes, exactly.
pub(crate) fn statuses(study: &LoadStudy) -> Option<Part> {
    let note = |outcome: Outcome| if outcome.is_good() { "" } else { "failed" };
    let rows = rows(study, |outcome| matches!(outcome, Outcome::Answered(_)), note);
    let table = |rows| Body::Table(head(["", "answers", "% of all"]), rows);
    (!rows.is_empty()).then(|| Part::new("status codes", vec![table(rows)]))
}

/// What ended without a whole, good answer, by kind; and why answers were bad.
pub(crate) fn errors(study: &LoadStudy) -> Option<Part> {
    let note = |outcome: Outcome| match outcome {
        Outcome::Skipped => "never sent: due while every connection was busy",
        outcome if outcome.is_connect() => "never sent",
        _ => "",
    };
    let rows = rows(study, |outcome| !matches!(outcome, Outcome::Answered(_)), note);
    if rows.is_empty() {
        return None;
    }
    let tally = &study.run.tally;
    let why = tally.counts.iter().filter_map(|(outcome, _)| Some((outcome, tally.reason(outcome)?)));
    let why: Vec<String> = why.map(|(outcome, why)| format!("{}: {why}", in_words(outcome))).collect();
    let table = Body::Table(head(["", "requests", "% of all"]), rows);
    let why = (!why.is_empty()).then_some(Body::Lines(why));
    Some(Part::new("errors by kind", std::iter::once(table).chain(why).collect()))
}

fn rows(study: &LoadStudy, wanted: fn(Outcome) -> bool, note: fn(Outcome) -> &'static str) -> Vec<Row> {
    let counts = &study.run.tally.counts;
    let planned = counts.total() as f64;
    let row = |(outcome, n): (Outcome, u64)| {
        Row::new([in_words(outcome), number::count(n), number::percent(n as f64 / planned)], note(outcome))
    };
    counts.iter().filter(|(outcome, _)| wanted(*outcome)).map(row).collect()
}

fn in_words(outcome: Outcome) -> String {
    counts::name(outcome).replace('_', " ")
}

/// The workers' shares, where the server names its workers.
pub(crate) fn workers(study: &LoadStudy) -> Option<Part> {
    let workers = &study.run.tally.per_worker;
    let total: u64 = workers.values().map(|count| count.measured).sum();
    if workers.is_empty() {
        return None;
    }
    let even = total as f64 / workers.len() as f64;
    let mut named: Vec<_> = workers.iter().collect();
    named.sort_unstable_by_key(|(name, _)| (name.len(), name.as_str()));
    let rows = named.into_iter().map(|(name, count)| {
        let share = |of: f64, shown: fn(f64) -> String| {
            if total == 0 { NONE.to_owned() } else { shown(count.measured as f64 / of) }
        };
        let cells = [
            name.clone(),
            number::count(count.measured),
            share(total as f64, number::percent_tenths),
            share(even, |ratio| number::deviation(ratio - 1.0)),
        ];
        Row::new(cells, "")
    });
    let table = Body::Table(head(["worker", "answers", "%", "±%"]), rows.collect());
    Some(Part::detail("answers by worker, as the response header names it; deviation from an even share", vec![table]))
}
