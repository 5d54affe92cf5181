//! How well percentiles are known: the 95 % interval, and the part that the generator may have in them.

use model::{Quantile, Statistics};

use crate::named_runs::{NamedRun, is_hidden};
use crate::number::{self, NONE};
use crate::run_summary::{millis, range};
use crate::tree::{DataTable, ReportSection, TableRow};

/// Interval and part of a percentile that is `time`, each as a cell: `22.6–24.3`, `>22.6`; `≤ 0.71`.
pub(crate) fn cells(statistics: Option<&Statistics>, quantile: f64, time: Quantile) -> [String; 2] {
    let known = time.time().zip(statistics.and_then(|statistics| statistics.interval(quantile)));
    let Some((time, known)) = known else { return [NONE; 2].map(str::to_owned) };
    let interval = Some(range(&[known.low, known.high].map(|end| end.map(millis)))).filter(|text| !text.is_empty());
    // At most so much of the time is the generator's.
    let part = |least| format!("≤ {}", number::milliseconds(time.saturating_sub(least)));
    [number::or_none(interval, |text| text), number::or_none(known.without_generator, part)]
}

/// The percentiles of a sweep whose intervals are shown.
const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// A row a run: the intervals of [`SHOWN`], and the generator's part of the highest that is printed. Nothing of runs that have
/// none, or whose figures are not to be shown.
pub(crate) fn section(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let row = |NamedRun { name, run }: &NamedRun<'_>| {
        let statistics = run.statistics.as_ref()?;
        let known = SHOWN.map(|q| cells(Some(statistics), q, run.response_time(q)));
        let part = known.iter().rev().map(|[_, part]| part.as_str()).find(|part| *part != NONE).unwrap_or(NONE);
        Some(TableRow::new(
            std::iter::once(name.as_str()).chain(known.iter().map(|[known, _]| known.as_str())).chain([part]),
        ))
    };
    let shown = runs.iter().filter(|named| !is_hidden(named.run));
    let table = DataTable::new(["", "p50", "p95", "p99", "of it ours"], shown.filter_map(row));
    let title = "how well percentiles are known, ms: 95 % intervals, and our own part at most";
    ReportSection::detail(title).table(table).filled()
}

#[cfg(test)]
mod tests {
    use model::Nanos;
    use model::statistics::Interval;

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
        assert_eq!(cells, [">90.0", "≤ 5.00"]);
        assert_eq!(super::cells(Some(&statistics), 0.5, Quantile::Time(ms(100))), [NONE, NONE]);
        assert_eq!(super::cells(Some(&statistics), 0.99, Quantile::TooFew), [NONE, NONE]);
    }
}
