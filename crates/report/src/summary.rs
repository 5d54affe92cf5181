//! Each multiple over its repeats: median, lowest and highest.

use model::{ClaimedRow, Nanos, Run, SweepStudy};

use crate::{number, verdicts};

/// A figure over the repeats of a multiple: the median, the lowest and the highest.
pub(crate) type Spread = Option<[String; 3]>;

/// One multiple over its repeats.
pub(crate) struct Summary {
    pub(crate) multiple: String,
    pub(crate) connections: String,
    pub(crate) runs: String,
    /// As [`FIGURES`].
    pub(crate) figures: [Spread; 4],
}

/// The figures of a [`Summary`].
pub(crate) const FIGURES: [&str; 4] = ["req/s", "p50, ms", "p99, ms", "tail"];

/// Each multiple over its repeats, in the order of the first pass; nothing where there is one pass.
///
/// A figure is that of a run and never a mean of two: of an even number of runs the median is the lower of the two in
/// the middle. A figure that one of the runs does not have is not summed up: what is missing tends to be the worst.
pub(crate) fn of_multiples(study: &SweepStudy) -> Vec<Summary> {
    if study.plan.repeat < 2 {
        return Vec::new();
    }
    let nanos = |time: Option<Nanos>| time.map(|time| time.0 as f64);
    let of_ours = |run: &Run| {
        let figures = [
            Some(run.completed_rate()),
            nanos(run.response_time(0.5).time()),
            nanos(run.response_time(0.99).time()),
            run.long_tail(),
        ];
        // The figures of a run that is worth nothing are not shown anywhere.
        let is_hidden = verdicts::hides(run.judgement.as_ref());
        let figures = if is_hidden { [None; 4] } else { figures };
        Repeated { multiple: run.multiple, connections: run.connections, figures }
    };
    let of_claimed = |row: &ClaimedRow| Repeated {
        multiple: row.multiple,
        connections: row.run.connections,
        figures: [
            row.run.claim.rate_per_s,
            nanos(row.run.claim.percentile(0.5)),
            nanos(row.run.claim.percentile(0.99)),
            row.long_tail(),
        ],
    };
    let ours = study.runs.iter().map(of_ours);
    let runs: Vec<Repeated> = ours.chain(study.claimed_runs.iter().map(of_claimed)).collect();
    let mut multiples: Vec<f64> = Vec::new();
    for run in &runs {
        if !multiples.iter().any(|multiple| multiple.total_cmp(&run.multiple).is_eq()) {
            multiples.push(run.multiple);
        }
    }
    let summary = |multiple: f64| {
        let runs: Vec<&Repeated> = runs.iter().filter(|run| run.multiple.total_cmp(&multiple).is_eq()).collect();
        let of = |at: usize, shown: fn(f64) -> String| {
            spread(runs.iter().map(|run| run.figures[at]).collect()).map(|figures| figures.map(shown))
        };
        let milliseconds = |nanos: f64| number::milliseconds(Nanos(nanos as u64));
        Summary {
            multiple: number::multiple(multiple),
            connections: number::count(runs[0].connections),
            runs: number::count(runs.len() as u64),
            figures: [of(0, number::rate), of(1, milliseconds), of(2, milliseconds), of(3, number::times)],
        }
    };
    multiples.into_iter().map(summary).collect()
}

/// One run of a multiple, with the figures that are summed up, as [`FIGURES`].
struct Repeated {
    multiple: f64,
    connections: u32,
    figures: [Option<f64>; 4],
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
    fn a_median_is_the_figure_of_a_run() {
        assert_eq!(spread(vec![Some(4.0), Some(1.0), Some(9.0), Some(2.0)]), Some([2.0, 1.0, 9.0]));
    }

    #[test]
    fn a_figure_that_one_run_lacks_is_not_summed_up() {
        assert_eq!(spread(vec![Some(4.0), None, Some(9.0)]), None);
    }
}
