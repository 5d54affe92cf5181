//! How well percentiles are known: the 95 % interval, and the part that the generator may have in them.

use model::statistics::Interval;
use model::{Nanos, Quantile, Run, Statistics, SweepStudy};

use crate::named_runs::name_in_sweep;
use crate::number::{self, NONE};
use crate::tree::{DataTable, ReportSection, TableRow};
use crate::verdicts;

/// Interval and part of a percentile that is `time`, each as a cell: `22.6 to 24.3`, `from 22.6`; `≤ 0.71`.
pub(crate) fn cells(statistics: Option<&Statistics>, quantile: f64, time: Quantile) -> [String; 2] {
    let none = || [NONE.to_owned(), NONE.to_owned()];
    let Some(time) = time.time() else { return none() };
    statistics
        .and_then(|statistics| statistics.interval(quantile))
        .map_or_else(none, |known| [interval(known), part(known, time)])
}

fn interval(known: &Interval) -> String {
    match (known.low.map(number::milliseconds), known.high.map(number::milliseconds)) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("from {low}"),
        (None, Some(high)) => format!("up to {high}"),
        (None, None) => NONE.to_owned(),
    }
}

/// At most so much of the time is the generator's.
fn part(known: &Interval, time: Nanos) -> String {
    known.without_generator.map_or(NONE.to_owned(), |least| {
        let part = time.saturating_sub(least);
        format!("≤ {}", number::milliseconds(part))
    })
}

/// The percentiles of a sweep whose intervals are shown.
const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// A row a run: the intervals of [`SHOWN`], and the generator's part of the highest that is printed. Nothing of runs that have
/// none, or whose figures are not to be shown.
pub(crate) fn section(study: &SweepStudy) -> Option<ReportSection> {
    let row = |run: &Run| {
        let statistics = run.statistics.as_ref()?;
        let known = SHOWN.map(|q| cells(Some(statistics), q, run.response_time(q)));
        let part = known.iter().rev().map(|[_, part]| part.as_str()).find(|part| *part != NONE).unwrap_or(NONE);
        let label = name_in_sweep(study, run);
        Some(TableRow::new(
            std::iter::once(label.as_str()).chain(known.iter().map(|[known, _]| known.as_str())).chain([part]),
        ))
    };
    let shown = study.runs.iter().filter(|run| !verdicts::hides(run.judgement.as_ref()));
    let table = DataTable::new(["", "p50", "p95", "p99", "of it ours"], shown.filter_map(row));
    let title = "how well percentiles are known, ms: 95 % intervals, and our own part at most";
    ReportSection::detail(title).table(table).filled()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_an_upper_end_says_from_where() {
        let ms = Nanos::from_millis;
        let known = Interval {
            quantile: 0.99,
            inflation: Some(3.0),
            low: Some(ms(90)),
            high: None,
            without_generator: Some(ms(95)),
        };
        let statistics = Statistics { intervals: vec![known], ..Statistics::default() };
        let cells = cells(Some(&statistics), 0.99, Quantile::Time(ms(100)));
        assert_eq!(cells, ["from 90.0", "≤ 5.00"]);
        assert_eq!(super::cells(Some(&statistics), 0.5, Quantile::Time(ms(100))), [NONE, NONE]);
        assert_eq!(super::cells(Some(&statistics), 0.99, Quantile::TooFew), [NONE, NONE]);
    }
}
