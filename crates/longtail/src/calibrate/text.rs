//! What was found, as text and as JSON: one generator a row, medians of the rounds.

use audit::{ClaimVerdict, PrintedFigure};
use model::{Environment, Nanos};
use report::number;
use report::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};
use report::{Width, text};
use serde_json::{Value, json};

use crate::calibrate::ComparedGenerator;
use crate::calibrate::account::{CalibrationRun, Spread};
use crate::generators::{Generator, LoadOrder};
use crate::selftest::machine;

const COLUMNS: usize = 100;

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
        self.order.time.unwrap_or_default()
    }
}

impl ComparedGenerator {
    /// The middle of a figure over the runs, with the smallest and the largest.
    fn spread(&self, figure: impl Fn(&CalibrationRun) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(figure))
    }

    /// The middle one as it was printed, not a mean of two; in milliseconds, with its own digits.
    fn printed(&self, figure: impl Fn(&CalibrationRun) -> Option<PrintedFigure>) -> String {
        let mut all: Vec<PrintedFigure> = self.runs.iter().filter_map(figure).collect();
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        number::or_none(all.get(all.len().saturating_sub(1) / 2), |time| {
            let width = (time.half_width * 2.0 * 1e3).max(1e-9);
            number::fixed(time.value * 1e3, (-width.log10()).round().clamp(0.0, 3.0) as usize)
        })
    }

    /// Requests that the sink received in all runs.
    fn received(&self) -> u64 {
        self.runs.iter().map(|run| run.received).sum()
    }

    /// Requests that it says ended in all runs; `None` where one of them does not say.
    fn claimed(&self) -> Option<u64> {
        self.runs.iter().map(|run| run.said.claimed).sum()
    }

    fn row(&self) -> TableRow {
        let name = self.tool.name();
        let Some(rate) = self.spread(|run| Some(run.rate_per_s)) else { return TableRow::new([name, "failed"]) };
        let median = |figure: fn(&CalibrationRun) -> Option<f64>| self.spread(figure).map(|spread| spread.median);
        let unclaimed = self.claimed().map(|claimed| self.received().cast_signed() - claimed.cast_signed());
        TableRow::new([
            name.to_owned(),
            number::rate(rate.median),
            format!("{}–{}", number::rate(rate.min), number::rate(rate.max)),
            number::or_none(median(|run| Some(run.user + run.system)), |ns| number::significant(ns / 1e3)),
            number::or_none(median(|run| run.sink_busy), number::percent),
            self.printed(|run| run.said.p50_s),
            self.printed(|run| run.said.p99_s),
            number::count(self.received()),
            number::or_none(unclaimed, |n| n.to_string()),
            number::or_none(median(|run| run.said.littles_law), number::times),
        ])
    }
}

/// For a terminal.
pub(crate) fn table(found: &CalibrationFindings<'_>) -> String {
    let title = format!(
        "{} of each to one load sink, 1 thread, {} a run, {} in turns; medians",
        number::count_of(found.order.connections, "connection"),
        number::span(found.length()),
        number::count_of(found.rounds, "round"),
    );
    let [rate, own] = ["requests/s", "own, ms"].map(|title| ColumnBand::new(title, ""));
    let columns = [
        TableColumn::new(""),
        TableColumn::new("median").under(&rate),
        TableColumn::new("min–max").under(&rate),
        TableColumn::new("CPU, µs"),
        TableColumn::new("sink, %"),
        TableColumn::new("p50").under(&own),
        TableColumn::new("p99").under(&own),
        TableColumn::new("received"),
        TableColumn::new("unclaimed"),
        TableColumn::new("Little"),
    ];
    let table = DataTable::of_columns(columns, found.compared.iter().map(ComparedGenerator::row));
    let legend = "Requests/s is what the sink counted in the middle of each run: the most that this generator can measure \
                  here. A faster server is not what its tables show; and where the sink is near 100 % of a CPU, it may be more. \
                  CPU: the generator's, of each request. Unclaimed: received by the sink and not in the generator's own \
                  count, such as what was under way at the end. Own: what it prints itself. Little: its rate x its mean / connections; below 1 \
                  connections idled, above 1 times were made up. longtail's p50 and p99 are from the due time, the others' \
                  from where each starts its watch.";
    let sections = [
        Some(ReportSection::new(title).table(table)),
        ReportSection::new("").lines(remarks(found)).filled(),
        Some(ReportSection::new("").lines([legend.to_owned(), machine(found.environment)])),
    ];
    text::sections(&sections.into_iter().flatten().collect::<Vec<_>>(), Width::of(COLUMNS))
}

/// What failed, what the audit finds wrong, and who is not here.
fn remarks(found: &CalibrationFindings<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for generator in found.compared {
        let name = generator.tool.name();
        if let Some(why) = generator.failures.last() {
            let failed = number::count_of(generator.failures.len() as u64, "run");
            lines.push(format!("{name}: {failed} failed: {why}"));
        }
        let mut verdicts = generator.runs.iter().filter_map(|run| word(run.said.verdict.as_ref()?));
        lines.extend(verdicts.next_back().map(|word| format!("{name}: its own figures are {word}")));
    }
    if !found.missing.is_empty() {
        let names: Vec<&str> = found.missing.iter().map(|one| one.name()).collect();
        lines.push(format!("missing (not on PATH): {}", names.join(", ")));
    }
    lines
}

/// What the audit found wrong, in words.
fn word(verdict: &ClaimVerdict) -> Option<String> {
    let (word, checks) = match verdict {
        ClaimVerdict::Doubtful { by } => ("doubtful", by),
        ClaimVerdict::Impossible { by } => ("impossible", by),
        ClaimVerdict::Possible | ClaimVerdict::Unchecked => return None,
    };
    let name = |check: &audit::ClaimCheck| Some(serde_json::to_value(check).ok()?.as_str()?.replace('_', " "));
    Some(format!("{word}: {}", checks.iter().filter_map(name).collect::<Vec<_>>().join(", ")))
}

/// For a program.
pub(crate) fn json(found: &CalibrationFindings<'_>) -> Value {
    let tool = |generator: &ComparedGenerator| {
        let claimed = if generator.runs.is_empty() { None } else { generator.claimed() };
        json!({
            "tool": generator.tool,
            "command_line": generator.command_line,
            "rate_per_s": generator.spread(|run| Some(run.rate_per_s)),
            "user_cpu_per_request_ns": generator.spread(|run| Some(run.user)),
            "system_cpu_per_request_ns": generator.spread(|run| Some(run.system)),
            "received": (!generator.runs.is_empty()).then(|| generator.received()),
            "claimed": claimed,
            "littles_law": generator.spread(|run| run.said.littles_law).map(|law| law.median),
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
        "tools": found.compared.iter().map(tool).collect::<Vec<_>>(),
        "missing": found.missing,
    })
}
