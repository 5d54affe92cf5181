//! What `longtail signals` found, as text and as JSON.

use judge::signals::{SignalRow, SignalsFound};
use judge::words::listed;
use model::Nanos;
use serde::Serialize;

use crate::number;
use crate::text::{self, Width};
use crate::tree::{DataTable, TableColumn, TableRow};

/// What was measured, and how.
#[derive(Clone, Debug)]
pub struct SignalsHead {
    /// The URL, without secrets.
    pub url: String,
    /// `p99 < 200ms`.
    pub objective: String,
    /// What the server did at most, in requests per second.
    pub highest_rate: f64,
    /// Each step's length.
    pub step: Nanos,
    /// How often a scraper reads.
    pub interval: Nanos,
    /// Why the load was not the one that was asked for; `None` if it was.
    pub doubt: Option<String>,
}

/// The answer as text.
pub fn signals_text(head: &SignalsHead, found: &SignalsFound, width: Width) -> String {
    let mut text = String::new();
    let rate = number::rate_in_words(head.highest_rate);
    let step = number::span(head.step);
    for line in [
        format!("{} · objective {} · read every {}", head.url, head.objective, head.interval),
        format!(
            "a closed loop did {rate}/s; then an open loop from 50 to 120 % of that and down again, steps of {step}"
        ),
    ] {
        text::wrap(&mut text, width, "", &line);
    }
    let table = table(found);
    if !table.rows.is_empty() {
        let narrowed = text::narrowed(&table, 0, width);
        text.push('\n');
        text += &text::table(&narrowed.table, 0, width);
    }
    text.push('\n');
    let blind = found.best().map(|best| format!("It cannot see {}.", best.kind.blind_to));
    let names: Vec<String> = found.missing.iter().map(|kind| kind.name.to_owned()).collect();
    let hint = if found.missing.iter().any(|kind| kind.is_pumas) {
        " (Puma's own numbers need its control server: --control-url, or --state)"
    } else {
        ""
    };
    let missing = (!names.is_empty()).then(|| format!("Not read: {}{hint}.", listed(&names)));
    let doubt = head.doubt.as_ref().map(|why| {
        format!(
            "Not to be trusted: the generator was the limit ({why}). Do it again on a quieter machine."
        )
    });
    let said = std::iter::once(found.sentence()).chain(blind).chain(missing);
    for line in doubt.into_iter().chain(said) {
        text::wrap(&mut text, width, "", &line);
    }
    text
}

fn table(found: &SignalsFound) -> DataTable {
    let columns = [
        ("signal", 0),
        ("idle up to", 2),
        ("left at", 1),
        ("threshold", 0),
        ("crossed at", 0),
        ("seconds before", 0),
        ("false alarms at half load", 3),
    ];
    let columns = columns.map(|(name, leaves)| TableColumn::new(name).leaving(leaves));
    let part = |part: Option<f64>| {
        number::or_none(part, |part| format!("{} %", number::fixed(part * 100.0, 0)))
    };
    let rows = found.rows.iter().map(|row| {
        TableRow::new([
            row.kind.name.to_owned(),
            number::or_zero(row.idle_end, number::significant),
            part(row.left_at),
            row.beyond(),
            part(row.crossed_at),
            number::or_none(row.lead, |lead| number::fixed(lead, 0)),
            row.alarms_in_words(),
        ])
    });
    DataTable::of_columns(columns, rows)
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
pub struct SignalsSummary<'a> {
    schema: &'static str,
    objective: &'a str,
    highest_rate_per_s: f64,
    interval_s: f64,
    broke_at_s: Option<f64>,
    broke_at_part: Option<f64>,
    signals: Vec<SummarySignal<'a>>,
    not_read: Vec<&'a str>,
    doubt: Option<&'a str>,
    sentence: String,
}

#[derive(Debug, Serialize)]
struct SummarySignal<'a> {
    name: &'a str,
    idle_end: f64,
    left_at_part: Option<f64>,
    threshold: f64,
    crossed_at_s: Option<f64>,
    crossed_at_part: Option<f64>,
    seconds_before: Option<f64>,
    false_alarms: u64,
    readings: u64,
    false_alarms_per_hour_at_most: Option<f64>,
    blind_to: &'a str,
}

impl<'a> SignalsSummary<'a> {
    /// Of what was found.
    pub fn of(head: &'a SignalsHead, found: &'a SignalsFound) -> SignalsSummary<'a> {
        SignalsSummary {
            schema: "longtail.signals/1",
            objective: &head.objective,
            highest_rate_per_s: head.highest_rate,
            interval_s: head.interval.as_secs_f64(),
            broke_at_s: found.broke.map(Nanos::as_secs_f64),
            broke_at_part: found.broke_at,
            signals: found.rows.iter().map(summary_of).collect(),
            not_read: found.missing.iter().map(|kind| kind.name).collect(),
            doubt: head.doubt.as_deref(),
            sentence: found.sentence(),
        }
    }
}

fn summary_of(row: &SignalRow) -> SummarySignal<'_> {
    SummarySignal {
        name: row.kind.name,
        idle_end: row.idle_end,
        left_at_part: row.left_at,
        threshold: row.threshold,
        crossed_at_s: row.crossed.map(Nanos::as_secs_f64),
        crossed_at_part: row.crossed_at,
        seconds_before: row.lead,
        false_alarms: row.false_alarms,
        readings: row.checked,
        false_alarms_per_hour_at_most: row.alarms_per_hour_at_most,
        blind_to: row.kind.blind_to,
    }
}
