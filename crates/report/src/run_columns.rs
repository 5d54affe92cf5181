//! A table of runs: its columns, each with what it shows of a run, and those of a sweep.

use model::run::PERCENTILES;
use model::{Judgement, Run, SweepStudy};

use crate::number::{self, NONE};
use crate::tree::{ColumnBand, DataTable, TableCell, TableColumn, TableRow};
use crate::{claimed, diagnostics, verdicts};

/// A column and what it shows of a run, which is an `R`.
pub(crate) struct RunColumn<R> {
    column: TableColumn,
    /// Whether it is shown of an invalid run too: what was asked, and that it failed.
    is_of_any_run: bool,
    cell: Box<dyn Fn(&R) -> TableCell>,
}

impl<R> RunColumn<R> {
    /// One that stays in a narrow table: whose run it is, whether to trust it, and what the table is for.
    pub(crate) fn kept(name: &str, width: usize, cell: impl Fn(&R) -> TableCell + 'static) -> RunColumn<R> {
        RunColumn::ranked(0, name, width, cell)
    }

    /// One that goes when its `rank` is the highest and there is no room.
    pub(crate) fn ranked(rank: u8, name: &str, width: usize, cell: impl Fn(&R) -> TableCell + 'static) -> RunColumn<R> {
        let column = TableColumn { name: name.to_owned(), width, rank, ..TableColumn::default() };
        RunColumn { column, is_of_any_run: false, cell: Box::new(cell) }
    }

    pub(crate) fn of_any_run(self) -> RunColumn<R> {
        RunColumn { is_of_any_run: true, ..self }
    }

    pub(crate) fn under(mut self, band: &ColumnBand) -> RunColumn<R> {
        self.column.band = Some(band.clone());
        self
    }

    pub(crate) fn meaning(mut self, meaning: &'static str) -> RunColumn<R> {
        self.column.meaning = meaning;
        self
    }

    /// Its name in CSV.
    pub(crate) fn key(mut self, key: impl Into<String>) -> RunColumn<R> {
        self.column.key = key.into();
        self
    }

    pub(crate) fn constant(mut self, is_constant: bool) -> RunColumn<R> {
        self.column.is_constant = is_constant;
        self
    }
}

/// The mark of a doubt, the first column.
pub(crate) fn mark<R>(is_doubtful: impl Fn(&R) -> bool + 'static) -> RunColumn<R> {
    RunColumn::kept("", 1, move |run| if is_doubtful(run) { "!" } else { "" }.into()).key("doubt").of_any_run()
}

/// A run's row. An invalid run has no headline figure.
pub(crate) fn row<R>(columns: &[RunColumn<R>], run: &R, judgement: Option<&Judgement>) -> TableRow {
    let is_hidden = verdicts::hides(judgement);
    let cell =
        |column: &RunColumn<R>| if is_hidden && !column.is_of_any_run { NONE.into() } else { (column.cell)(run) };
    TableRow::new(columns.iter().map(cell))
}

/// The table of these columns and rows.
pub(crate) fn table<R>(columns: Vec<RunColumn<R>>, rows: Vec<TableRow>) -> DataTable {
    DataTable::of_columns(columns.into_iter().map(|column| column.column), rows)
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
pub(crate) fn widest(deviations: &[f64]) -> Option<f64> {
    (deviations.len() > 1).then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

/// What words that every table of runs has mean.
pub(crate) const MARKS: [(&str, &str); 2] = [
    ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
    ("!", "a number of this row may be spoiled: see the warnings"),
];

/// What limited the run.
const LIMIT: &str = "what limited the run: the server, the generator, or none (it kept up); INVALID: see the verdicts";

/// Response times of a table of runs.
pub(crate) fn response_times() -> ColumnBand {
    ColumnBand {
        meaning: "of good answers: from when a request was due to its last byte",
        ..ColumnBand::new("response time, ms", "ms")
    }
}

/// What limited a run; of another generator's what the audit leaves of its claim.
fn limit(run: &Run) -> TableCell {
    let claim = run.claim.as_ref().map(|claim| claimed::word(claim.audit));
    claim.unwrap_or_else(|| verdicts::word(run.judgement.as_ref())).into()
}

/// The last columns of a table whose answers have a known length: what limited the run, and how its requests ended.
pub(crate) fn endings<R: 'static>(run: fn(&R) -> &Run) -> [RunColumn<R>; 3] {
    type C<R> = RunColumn<R>;
    [
        C::kept("limit", 9, move |of| verdicts::word(run(of).judgement.as_ref()).into()).meaning(LIMIT).of_any_run(),
        C::ranked(6, "requests", 8, move |of| TableCell::count(run(of).tally.counts.total()))
            .meaning("planned in the measured window")
            .of_any_run(),
        C::kept("errors", 6, move |of| TableCell::count(run(of).tally.counts.failed()))
            .meaning("requests of the measured window without a good answer of the right length")
            .of_any_run(),
    ]
}

/// Of a sweep's runs. Where another generator made them, all but the workers is as it says.
pub(crate) fn of_sweep(study: &SweepStudy) -> Vec<RunColumn<Run>> {
    type C = RunColumn<Run>;
    let is_claimed = study.plan.with.is_some();
    let either = move |ours: &'static str, claimed: &'static str| if is_claimed { claimed } else { ours };
    let count = |n: Option<u64>| n.map_or_else(|| NONE.into(), TableCell::count);
    let times = if is_claimed {
        let meaning = "as it prints them; - where it does not print that percentile";
        ColumnBand { meaning, ..ColumnBand::new("times by the other generator, ms", "its ms") }
    } else {
        response_times()
    };
    let ideal = ColumnBand {
        meaning: "response time / ideal; ideal: all wait in one line, service time x max(1, mult)",
        ..ColumnBand::new("x ideal", "x ideal")
    };
    let fairness = ColumnBand::new("fairness", "");
    let mut columns = vec![
        mark(diagnostics::is_doubtful),
        C::kept("run", 3, |run| TableCell::count(run.repeat))
            .meaning("which pass over the multiples, each on a fresh server")
            .constant(study.plan.repeat < 2)
            .of_any_run(),
        C::kept("mult", 5, |run| TableCell::number(run.multiple, number::multiple))
            .meaning("connections / slots")
            .key("multiple")
            .of_any_run(),
        C::kept("conns", 5, |run| TableCell::count(run.connections))
            .meaning("connections in total")
            .key("connections")
            .of_any_run(),
        C::kept("req/s", 6, |run| TableCell::number(run.rate(), number::rate))
            .meaning(either(
                "good answers (2xx, 3xx) per second of the measured window",
                "requests per second, as it prints them",
            ))
            .key("rate_per_s"),
        C::ranked(1, "% max", 5, |run| TableCell::number(run.of_maximum(), number::percent))
            .meaning("req/s in % of the theoretical maximum, slots / service time")
            .key("of_maximum"),
    ];
    columns.extend(is_claimed.then(|| {
        C::ranked(9, "mean", 5, |run| TableCell::time(run.mean_response_time())).under(&times).key("mean_ms")
    }));
    for (quantile, rank) in PERCENTILES.into_iter().zip([11, 12, 2, 10, 8, 4, 0, 9]) {
        let cell = move |run: &Run| TableCell::time(run.response_time(quantile).time());
        let name = number::percentile(quantile);
        columns.push(C::ranked(rank, &name, 5, cell).under(&times).key(format!("{name}_ms")));
    }
    columns.extend([
        C::ranked(3, "max", 5, |run| TableCell::time(run.max_response_time().time())).under(&times).key("max_ms"),
        C::ranked(5, "tail", 5, |run| TableCell::number(run.long_tail(), number::times)).meaning("max / p10"),
        C::ranked(7, "p50", 5, |run| TableCell::number(run.of_ideal(0.5), number::times))
            .under(&ideal)
            .key("p50_of_ideal"),
        C::ranked(7, "p99", 5, |run| TableCell::number(run.of_ideal(0.99), number::times))
            .under(&ideal)
            .key("p99_of_ideal"),
        C::ranked(13, "Jain", 5, |run| TableCell::number(run.fairness(), number::index))
            .meaning("fairness among connections: 1 when all get the same, 1/n when one of n gets all")
            .key("jain")
            .constant(is_claimed)
            .under(&fairness),
        C::ranked(13, "worker ±%", 9, |run| {
            TableCell::number(widest(&run.worker_deviations()), number::percent_tenths)
        })
        .meaning("the worker furthest from an even share, in % of that share")
        .key("worker_deviation")
        .under(&fairness),
        C::kept(either("limit", "claim"), if is_claimed { 10 } else { 9 }, limit)
            .meaning(either(
                LIMIT,
                "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims",
            ))
            .of_any_run(),
        C::ranked(6, "requests", 8, move |run| count(run.requests()))
            .meaning(either("planned in the measured window", "those that it says ended"))
            .of_any_run(),
        C::kept("errors", 7, move |run| count(run.failed()))
            .meaning(either(
                "requests of the measured window without a good answer",
                "bad statuses, errors and timeouts, as it counts them",
            ))
            .of_any_run(),
    ]);
    let maker = |run: &Run| run.claim.as_ref().map_or_else(|| NONE.to_owned(), |claim| claim.name()).into();
    columns.extend(is_claimed.then(|| {
        C::kept("by", 13, maker)
            .meaning("who made the load and says all that stands in this row: nothing of it was measured by longtail")
    }));
    columns
}
