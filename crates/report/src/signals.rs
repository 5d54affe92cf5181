//! What `longtail signals` found, as text and as JSON.

use judge::signals::{
    BaseKnownBy, OfferedPart, SignalRow, SignalSource, SignalsBase, SignalsFound, SignalsServer,
};
use judge::words::listed;
use model::{CapacityBracket, Nanos};
use serde::Serialize;

use crate::number::{self, NONE};
use crate::text::{self, Width};
use crate::tree::{DataTable, TableColumn, TableRow};

/// The JSON's `kind` and `schema`, its version. A change that an old reader would misunderstand
/// raises the version.
const KIND: &str = "signals";
const SCHEMA: u32 = 2;

/// What was measured, and how.
#[derive(Clone, Debug)]
pub struct SignalsHead {
    /// When it began, as RFC 3339.
    pub started_at: String,
    /// The server.
    pub server: SignalsServer,
    /// What was requested, without secrets.
    pub url: String,
    /// `p99 < 200ms`.
    pub objective: String,
    /// The rate that the steps are parts of.
    pub base: SignalsBase,
    /// What the search for the capacity told, and which rate is 100 %.
    pub capacity: String,
    /// Between which rates the capacity lies.
    pub bracket: CapacityBracket,
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
    let step = number::span(head.step);
    let highest = number::percent(head.base.highest_part);
    for line in [
        format!(
            "{} · {} · objective {} · read every {}",
            head.server.in_words(),
            head.url,
            head.objective,
            head.interval
        ),
        head.capacity.clone(),
        format!("An open loop went from 50 % up to {highest} % and down again, steps of {step}."),
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
    let doubt = head.doubt.as_ref().map(|why| {
        format!(
            "Not to be trusted: the generator was the limit ({why}). Do it again on a quieter machine."
        )
    });
    let said = std::iter::once(found.sentence()).chain(blind).chain(not_read(found));
    for line in doubt.into_iter().chain(said) {
        text::wrap(&mut text, width, "", &line);
    }
    text
}

/// Which signals could not be read, and how they can.
fn not_read(found: &SignalsFound) -> Option<String> {
    let names: Vec<String> = found.missing.iter().map(|kind| kind.name.to_owned()).collect();
    let is_missing = |source| found.missing.iter().any(|kind| kind.source == source);
    // Older Pumas are read, but have no `backlog_max`.
    let puma_was_read = found.rows.iter().any(|row| row.kind.source == SignalSource::Puma);
    let mut hints = Vec::new();
    if is_missing(SignalSource::Puma) && !puma_was_read {
        hints.push("Puma's own numbers need its control server: --control-url, or --state");
    }
    if is_missing(SignalSource::App) {
        hints.push("the queue time needs an app that says when it began: docs/signals.md");
    }
    let hints = if hints.is_empty() { String::new() } else { format!(" ({})", hints.join("; ")) };
    (!names.is_empty()).then(|| format!("Not read: {}{hints}.", listed(&names)))
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
    let part = |at: Option<OfferedPart>| at.map_or(NONE.to_owned(), |at| at.in_words());
    let rows = found.rows.iter().map(|row| {
        TableRow::new([
            row.kind.name.to_owned(),
            format!("{}{}", number::or_zero(row.idle_end, number::significant), row.kind.unit),
            part(row.left_at),
            row.beyond().unwrap_or_else(|| NONE.to_owned()),
            part(row.crossed_at),
            number::or_none(row.lead, |lead| number::fixed(lead, 0)),
            row.alarms_in_words().unwrap_or_else(|| NONE.to_owned()),
        ])
    });
    DataTable::of_columns(columns, rows)
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
pub struct SignalsSummary<'a> {
    kind: &'static str,
    schema: u32,
    started_at: &'a str,
    server: &'a SignalsServer,
    url: &'a str,
    objective: &'a str,
    /// The rate that is 100 %, and how it is known.
    base_per_s: f64,
    base_known_by: BaseKnownBy,
    capacity: CapacityBracket,
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
    threshold: Option<f64>,
    crossed_at_s: Option<f64>,
    crossed_at_part: Option<f64>,
    crossed_going_down: Option<bool>,
    seconds_before: Option<f64>,
    false_alarms: u64,
    readings: u64,
    false_alarms_per_hour_at_most: Option<f64>,
    read_at: &'a str,
    blind_to: &'a str,
}

impl<'a> SignalsSummary<'a> {
    /// Of what was found.
    pub fn of(head: &'a SignalsHead, found: &'a SignalsFound) -> SignalsSummary<'a> {
        SignalsSummary {
            kind: KIND,
            schema: SCHEMA,
            started_at: &head.started_at,
            server: &head.server,
            url: &head.url,
            objective: &head.objective,
            base_per_s: head.base.rate,
            base_known_by: head.base.by,
            capacity: head.bracket,
            interval_s: head.interval.as_secs_f64(),
            broke_at_s: found.broke.map(Nanos::as_secs_f64),
            broke_at_part: found.broke_at.map(|at| at.part),
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
        left_at_part: row.left_at.map(|at| at.part),
        threshold: row.threshold,
        crossed_at_s: row.crossed.map(Nanos::as_secs_f64),
        crossed_at_part: row.crossed_at.map(|at| at.part),
        crossed_going_down: row.crossed_at.map(|at| at.going_down),
        seconds_before: row.lead,
        false_alarms: row.false_alarms,
        readings: row.checked,
        false_alarms_per_hour_at_most: row.alarms_per_hour_at_most,
        read_at: row.kind.read_at,
        blind_to: row.kind.blind_to,
    }
}
