//! The self-test as text: a row a law, and whether both ledgers agree.

use model::{Environment, Nanos};
use report::number;
use report::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};
use report::{Width, text};

use crate::selftest::{CaseResult, CountBalance};

const COLUMNS: usize = 100;

/// What was found, law by law.
pub(crate) fn table(results: &[CaseResult], environment: &Environment) -> String {
    let (expected, error, late) =
        (ColumnBand::new("expected, ms", ""), ColumnBand::new("error, ms", ""), ColumnBand::new("late, µs", ""));
    let under = |band: &ColumnBand, name: &str| TableColumn::new(name).under(band);
    let columns = [TableColumn::new("law"), under(&expected, "mean"), under(&expected, "p99")]
        .into_iter()
        .chain(["mean", "p50", "p99", "p99.9"].map(|name| under(&error, name)))
        .chain(["send", "sink"].map(|name| under(&late, name)));
    let sections = [
        ReportSection::new("").table(DataTable::of_columns(columns, results.iter().map(row))),
        ReportSection::new("").lines(ledgers(results)),
        ReportSection::new("").lines([
            "Expected: of exactly these seeded arrivals and delays. Error: measured from the due time, less expected; \
             in it are the network, the machine's wake-ups, the sink's own lateness and up to 0.1 % of the histogram. \
             Late: p99 of the sends and of the sink's answers. Times are printed and never fail the test; counts do."
                .to_owned(),
            machine(environment),
        ]),
    ];
    text::sections(&sections, Width::of(COLUMNS))
}

fn row(result: &CaseResult) -> TableRow {
    let micros = |time: Option<Nanos>| number::or_none(time, |time| number::fixed(time.0 as f64 / 1e3, 0));
    let error =
        |measured: Nanos, expected: Nanos| format!("{:+.3}", measured.as_millis_f64() - expected.as_millis_f64());
    let mut cells = vec![
        result.case.to_owned(),
        number::milliseconds(result.expected.mean),
        number::milliseconds(result.expected.p99),
    ];
    let measured = result.measured.map(|measured| measured.all().map(Some)).unwrap_or_default();
    let errors = measured.into_iter().zip(result.expected.all());
    cells.extend(errors.map(|(measured, expected)| number::or_none(measured, |measured| error(measured, expected))));
    cells.extend([result.send_lag, result.sink_lateness].map(micros));
    TableRow::new(cells)
}

/// Whether all that was counted agrees, and what is to be known of the times.
fn ledgers(results: &[CaseResult]) -> Vec<String> {
    let lost = results.iter().flat_map(|result| result.balances.iter().map(move |balance| (result.case, balance)));
    let lost = lost.filter(|(_, balance)| !balance.holds());
    let lost = lost.map(|(case, CountBalance { what, expected, found })| {
        format!("NOT CONSERVED {case}: {what}: {expected} and {found}")
    });
    let mut lines: Vec<String> = lost.collect();
    if lines.is_empty() {
        let requests: u64 = results.iter().map(|result| result.planned).sum();
        let counts = results.first().map_or(0, |result| result.balances.len());
        lines.push(format!(
            "All {requests} requests are in both ledgers, with their answers, bytes and connections ({counts} counts a case)."
        ));
    }
    lines.extend(results.iter().filter_map(|result| {
        let worst = number::time(result.worst_error?);
        Some(format!("{}: the time of each request is known; the worst is {worst} off.", result.case))
    }));
    let waits = results.iter().filter_map(|result| Some((result.run_queue?, result.case)));
    if let Some((most, case)) = waits.clone().max() {
        let sum: Nanos = waits.map(|(wait, _)| wait).sum();
        let (sum, most) = (number::time(sum), number::time(most));
        lines.push(format!("The engine waited {sum} for a CPU that others had, {most} of it in {case}."));
    }
    lines
}

/// Where it was measured.
pub(crate) fn machine(environment: &Environment) -> String {
    format!("longtail {}, {}", environment.longtail_version, report::in_words::hardware(environment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::ResponseFigures;

    #[test]
    fn a_request_in_one_ledger_only_is_named_with_both_counts() {
        let table_of = |found| {
            let balances = vec![CountBalance { what: "requests sent, and received by the sink", expected: 7, found }];
            let result = CaseResult {
                case: "bimodal:1ms:50ms:0.02",
                planned: 7,
                expected: ResponseFigures { mean: Nanos(1_000_000), ..ResponseFigures::default() },
                measured: Some(ResponseFigures { p999: Nanos::from_secs(1234), ..ResponseFigures::default() }),
                worst_error: None,
                send_lag: None,
                sink_lateness: None,
                run_queue: None,
                balances,
            };
            let text = table(&[result], &Environment::default());
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            text
        };
        let (lost, whole) = (table_of(6), table_of(7));
        let named = "NOT CONSERVED bimodal:1ms:50ms:0.02: requests sent, and received by the sink: 7 and 6";
        assert!(lost.contains(named) && !lost.contains("in both ledgers"), "{lost}");
        assert!(whole.contains("All 7 requests are in both ledgers") && !whole.contains("NOT CONSERVED"), "{whole}");
    }
}
