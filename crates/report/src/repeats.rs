//! Each multiple over its repeats: median, lowest and highest.

use model::{Nanos, Run, SweepStudy};

use crate::number;
use crate::tree::{ColumnBand, DataTable, ReportSection, TableCell, TableColumn, TableRow};
use crate::verdicts;

/// The name of a figure, and how it is shown.
type ShownFigure = (&'static str, fn(f64) -> String);

/// What is summed up.
const FIGURES: [ShownFigure; 4] = [
    ("req/s", number::rate),
    ("p50, ms", |nanos| number::milliseconds(Nanos(nanos as u64))),
    ("p99, ms", |nanos| number::milliseconds(Nanos(nanos as u64))),
    ("tail", number::times),
];

/// One run of a multiple, with the figures that are summed up.
struct RepeatedRun {
    multiple: Option<f64>,
    connections: u32,
    figures: [Option<f64>; FIGURES.len()],
}

impl RepeatedRun {
    fn of(run: &Run) -> RepeatedRun {
        let nanos = |quantile| run.response_time(quantile).time().map(|time| time.0 as f64);
        let figures = [run.rate(), nanos(0.5), nanos(0.99), run.long_tail()];
        // The figures of a run that is worth nothing are not shown anywhere.
        let is_hidden = verdicts::hides(run.judgement.as_ref());
        let figures = if is_hidden { [None; FIGURES.len()] } else { figures };
        RepeatedRun { multiple: run.multiple, connections: run.connections, figures }
    }

    fn is_repeat_of(&self, other: &RepeatedRun) -> bool {
        self.multiple.map(f64::to_bits) == other.multiple.map(f64::to_bits)
    }
}

/// Each multiple over its repeats, in the order of the first pass; nothing where there is one pass.
///
/// A figure is that of a run and never a mean of two: of an even number of runs the median is the lower of the two in
/// the middle. A figure that one of the runs does not have is not summed up: what is missing tends to be the worst.
pub(crate) fn section(study: &SweepStudy) -> Option<ReportSection> {
    if study.plan.repeat < 2 {
        return None;
    }
    let runs: Vec<RepeatedRun> = study.runs.iter().map(RepeatedRun::of).collect();
    let mut loads: Vec<&RepeatedRun> = Vec::new();
    for run in &runs {
        if !loads.iter().any(|load| load.is_repeat_of(run)) {
            loads.push(run);
        }
    }
    let row = |load: &RepeatedRun| {
        let runs: Vec<&RepeatedRun> = runs.iter().filter(|run| run.is_repeat_of(load)).collect();
        let named = [
            TableCell::number(load.multiple, number::multiple),
            TableCell::count(load.connections),
            TableCell::count(runs.len() as u64),
        ];
        let figures = FIGURES.iter().enumerate().flat_map(|(at, (_, shown))| {
            let known = spread(runs.iter().map(|run| run.figures[at]).collect());
            (0..3).map(move |place| TableCell::number(known.map(|figures| figures[place]), shown))
        });
        TableRow::new(named.into_iter().chain(figures))
    };
    let named = ["mult", "conns", "runs"].map(TableColumn::new);
    let spreads = FIGURES.iter().flat_map(|(figure, _)| {
        let band = ColumnBand::new(*figure, figure);
        ["median", "lowest", "highest"].map(|name| TableColumn::new(name).under(&band))
    });
    let table = DataTable::of_columns(named.into_iter().chain(spreads), loads.into_iter().map(row));
    let title = "each multiple over its runs; - where one of them has no figure";
    ReportSection::new(title).table(DataTable { lead: 3, ..table }).filled()
}

/// Median, lowest and highest, where all are known.
pub(crate) fn spread(figures: Vec<Option<f64>>) -> Option<[f64; 3]> {
    let mut figures = figures.into_iter().collect::<Option<Vec<f64>>>()?;
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    Some([figures[last / 2], figures[0], figures[last]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_figure_of_a_run_and_a_figure_that_one_run_lacks_is_not_summed_up() {
        assert_eq!(spread(vec![Some(4.0), Some(1.0), Some(9.0), Some(2.0)]), Some([2.0, 1.0, 9.0]));
        assert_eq!(spread(vec![Some(4.0), None, Some(9.0)]), None);
    }
}
