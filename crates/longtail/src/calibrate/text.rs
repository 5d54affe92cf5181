//! What was found as text: one generator a row, medians of the rounds.

use model::Nanos;
use report::number;
use report::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};
use report::{Width, text};

use crate::calibrate::{CalibrationFindings, CalibrationRun, ComparedGenerator, Spread};
use crate::selftest::machine;

const COLUMNS: usize = 100;

impl ComparedGenerator {
    /// The middle of a figure over the runs, with the smallest and the largest.
    fn spread(&self, figure: impl Fn(&CalibrationRun) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(figure))
    }

    fn row(&self) -> TableRow {
        let name = self.tool.name();
        let Some(rate) = self.rate_per_s else { return TableRow::new([name, "failed"]) };
        let median = |figure: fn(&CalibrationRun) -> Option<f64>| self.spread(figure).map(|spread| spread.median);
        let own = |time: fn(&CalibrationRun) -> Option<Nanos>| {
            let millis = self.spread(|run| time(run).map(Nanos::as_millis_f64));
            number::or_none(millis, |millis| number::significant(millis.median))
        };
        let received: u64 = self.runs.iter().map(|run| run.received).sum();
        // Where one run does not say, the sum is not known.
        let claimed = self.runs.iter().map(|run| run.said.claimed).sum::<Option<u64>>();
        let unclaimed = claimed.map(|claimed| received.cast_signed() - claimed.cast_signed());
        TableRow::new([
            name.to_owned(),
            number::rate(rate.median),
            format!("{}–{}", number::rate(rate.min), number::rate(rate.max)),
            number::or_none(median(|run| Some(run.user + run.system)), |ns| number::significant(ns / 1e3)),
            number::or_none(median(|run| run.sink_busy), number::percent),
            own(|run| run.said.p50),
            own(|run| run.said.p99),
            received.to_string(),
            number::or_none(unclaimed, |n| n.to_string()),
            number::or_none(median(|run| run.said.littles_law), number::times),
        ])
    }
}

pub(crate) fn table(found: &CalibrationFindings) -> String {
    let title = format!(
        "{} of each to one load sink, 1 thread, {} a run, {} in turns; medians",
        number::count_of(found.connections, "connection"),
        number::span(found.length),
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
        Some(ReportSection::new("").lines([legend.to_owned(), machine(&found.environment)])),
    ];
    text::sections(&sections.into_iter().flatten().collect::<Vec<_>>(), Width::of(COLUMNS))
}

/// What failed, what the audit finds wrong, and who is not here.
fn remarks(found: &CalibrationFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for generator in &found.compared {
        let name = generator.tool.name();
        if let Some(why) = generator.failures.last() {
            let failed = number::count_of(generator.failures.len() as u64, "run");
            lines.push(format!("{name}: {failed} failed: {why}"));
        }
        let doubt = generator.runs.iter().rev().find_map(|run| run.said.doubt.as_ref());
        lines.extend(doubt.map(|doubt| format!("{name}: its own figures are {doubt}")));
    }
    if !found.missing.is_empty() {
        let names: Vec<&str> = found.missing.iter().map(|one| one.name()).collect();
        lines.push(format!("missing (not on PATH): {}", names.join(", ")));
    }
    lines
}
