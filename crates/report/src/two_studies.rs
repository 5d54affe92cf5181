//! Two studies that exist already, set side by side at equal load. They were measured one after the other, so what the machine did in
//! between is in every difference: the text says so, and calls nothing different that repeats inside the studies do not bear out.

use model::comparison::{ComparisonVerdict, Metric, RankSum};
use model::{Run, Study};

use crate::comparison::words;
use crate::in_words;
use crate::measured::{self, StudyHead};
use crate::number::{self, NONE, count_of};
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use crate::width::{Width, wrap};

/// A study and the file that it was read from.
#[derive(Clone, Copy)]
pub struct StudyFile<'a> {
    /// The file.
    pub name: &'a str,
    /// The study.
    pub study: &'a Study,
}

/// A run, and which load it had: runs with the same one are repeats.
struct ComparableRun<'a> {
    load: String,
    run: &'a Run,
}

/// The metrics that every study has.
const METRICS: [Metric; 4] = [Metric::Throughput, Metric::Mean, Metric::P50, Metric::P99];
/// A difference up to this does not matter.
const MARGIN: f64 = 0.05;
const LEVEL: f64 = 0.05;

/// The two side by side as text.
///
/// # Errors
/// One line, where they cannot be compared: which one, why, and what can.
pub fn side_by_side(base: StudyFile<'_>, other: StudyFile<'_>, width: Width) -> Result<String, String> {
    let (runs_a, runs_b) = (comparable(base)?, comparable(other)?);
    let mut loads: Vec<&str> = Vec::new();
    for run in &runs_a {
        if !loads.contains(&run.load.as_str()) && runs_b.iter().any(|other| other.load == run.load) {
            loads.push(&run.load);
        }
    }
    if loads.is_empty() {
        let of = |runs: &[ComparableRun<'_>]| runs.first().map_or("no sound run", |run| run.load.as_str()).to_owned();
        return Err(format!(
            "{} and {} have no load in common ({} against {}): measure both under the same one",
            base.name,
            other.name,
            of(&runs_a),
            of(&runs_b)
        ));
    }
    let tests = (loads.len() * METRICS.len()) as f64;
    let mut rows: Vec<SideRow> = Vec::new();
    for load in loads {
        let [a, b] = [&runs_a, &runs_b].map(|runs| runs.iter().filter(|run| run.load == load).collect::<Vec<_>>());
        rows.extend(METRICS.map(|metric| SideRow::of(load, metric, &a, &b, LEVEL / tests)));
    }
    let mut text = String::new();
    for (letter, file) in [("A", base), ("B", other)] {
        wrap(&mut text, width, "", &format!("{letter}  {}: {}", file.name, measured::lines(file.study)[0]));
    }
    text.push('\n');
    text.push_str(&crate::text::table(&table(&rows), 0, width));
    text.push('\n');
    wrap(&mut text, width, "", &conclusion(&rows));
    text.push('\n');
    for (at, limit) in limits(base.study, other.study).iter().enumerate() {
        wrap(&mut text, width, if at == 0 { "  Limits " } else { "         " }, limit);
    }
    wrap(&mut text, width, "  Next   ", "longtail compare … --arm … --arm …   # measures both in turn, on one machine");
    Ok(text)
}

/// A metric under one load.
struct SideRow {
    load: String,
    metric: Metric,
    figures: [String; 2],
    runs: [usize; 2],
    change: Option<f64>,
    interval: Option<[f64; 2]>,
    verdict: ComparisonVerdict,
}

impl SideRow {
    fn of(load: &str, metric: Metric, a: &[&ComparableRun<'_>], b: &[&ComparableRun<'_>], level: f64) -> SideRow {
        let values = |runs: &[&ComparableRun<'_>]| -> Vec<f64> {
            runs.iter().filter_map(|run| run.value(metric)).filter(|value| *value > 0.0).map(f64::ln).collect()
        };
        let ranks = RankSum::of(&values(a), &values(b));
        let interval = ranks.interval(level).map(|ends| ends.map(f64::exp_m1));
        let change = ranks.estimate().map(f64::exp_m1);
        let verdict = interval.zip(change).map_or(ComparisonVerdict::CannotTell, |(interval, change)| {
            ComparisonVerdict::of(metric, interval, change, MARGIN)
        });
        let figures = [a, b].map(|runs| shown(metric, runs));
        SideRow { load: load.to_owned(), metric, figures, runs: [a.len(), b.len()], change, interval, verdict }
    }
}

impl ComparableRun<'_> {
    /// A rate per second, or a time in ms.
    fn value(&self, metric: Metric) -> Option<f64> {
        let time = match metric.quantile() {
            _ if metric == Metric::Throughput => return Some(self.run.completed_rate()),
            Some(q) => self.run.response_time(q).time(),
            None => self.run.mean_response_time(),
        };
        time.map(model::Nanos::as_millis_f64)
    }
}

/// The median of the runs; of a single run with the interval of its percentile.
fn shown(metric: Metric, runs: &[&ComparableRun<'_>]) -> String {
    let mut values: Vec<f64> = runs.iter().filter_map(|run| run.value(metric)).collect();
    values.sort_by(f64::total_cmp);
    let middle = number::or_none(model::comparison::median(&values), number::significant);
    let (Some(quantile), [run]) = (metric.quantile(), runs) else { return middle };
    let known = run.run.statistics.as_ref().and_then(|statistics| statistics.interval(quantile));
    match known.and_then(|known| known.low.zip(known.high)) {
        Some((low, high)) => format!("{middle} [{}–{}]", number::milliseconds(low), number::milliseconds(high)),
        None => middle,
    }
}

fn table(rows: &[SideRow]) -> DataTable {
    let against = ColumnBand::new("B against A", "");
    let columns = [TableColumn::new("load"), TableColumn::new(""), TableColumn::new("A"), TableColumn::new("B")];
    let columns =
        columns.into_iter().chain([TableColumn::new("").under(&against), TableColumn::new("interval").under(&against)]);
    let mut last = "";
    let lines = rows.iter().map(|row| {
        let is_first = last != row.load;
        last = &row.load;
        let unit = if row.metric == Metric::Throughput { "/s" } else { "ms" };
        let change = row.change.map(|part| words::estimate(part, None));
        let interval = row.interval.map(|ends| words::interval(ends, None));
        let [a, b] = row.figures.clone();
        TableRow::new([
            if is_first { row.load.clone() } else { String::new() },
            format!("{}, {unit}", words::name(row.metric)),
            a,
            b,
            change.unwrap_or_else(|| NONE.to_owned()),
            interval.unwrap_or_else(|| NONE.to_owned()),
        ])
        .noted(words::verdict(row.verdict))
    });
    let table = DataTable::of_columns(columns, lines.collect::<Vec<_>>());
    DataTable { lead: 2, ..table }
}

fn conclusion(rows: &[SideRow]) -> String {
    let with = |verdict| -> Vec<String> {
        let said = rows.iter().filter(|row| row.verdict == verdict);
        said.map(|row| format!("{} at {}", words::name(row.metric), row.load)).collect()
    };
    let mut parts = Vec::new();
    for (verdict, word) in [
        (ComparisonVerdict::Worse, "B was worse"),
        (ComparisonVerdict::Better, "B was better"),
        (ComparisonVerdict::Same, "The same within 5 %"),
    ] {
        let rows = with(verdict);
        if !rows.is_empty() {
            parts.push(format!("{word}: {}.", rows.join(", ")));
        }
    }
    let least = rows.iter().flat_map(|row| row.runs).min().unwrap_or(0);
    if with(ComparisonVerdict::CannotTell).len() == rows.len() {
        let runs = count_of(least as u64, "run");
        parts.push(format!("Whether A and B differ cannot be told from {runs} of each load in a study."));
    }
    parts.join(" ")
}

/// What such a comparison cannot tell.
fn limits(base: &Study, other: &Study) -> Vec<String> {
    let [a, b] = [base, other].map(StudyHead::of);
    let mut limits = vec![format!(
        "A was measured at {}, B at {}: what the machine did in between is in every difference.",
        a.when(),
        b.when()
    )];
    let machine = |head: &StudyHead<'_>| {
        format!("{}, {}, {}", head.environment.cpu, count_of(head.environment.cores, "CPU"), head.environment.kernel)
    };
    if machine(&a) != machine(&b) {
        limits.push(format!("The machines differ: {} against {}.", machine(&a), machine(&b)));
    }
    if a.command_line != b.command_line {
        limits.push(format!("The commands differ: {}  |  {}", a.command_line, b.command_line));
    }
    limits
}

/// The runs of a study that were measured by us and passed their checks.
fn comparable<'a>(file: StudyFile<'a>) -> Result<Vec<ComparableRun<'a>>, String> {
    if file.study.is_claimed() {
        return Err(format!("{} has another generator's figures: longtail audit checks them", file.name));
    }
    let load = |run: &Run| count_of(run.connections, "connection");
    let runs: Vec<ComparableRun<'a>> = match file.study {
        Study::Sweep(study) => study.runs.iter().map(|run| ComparableRun { load: load(run), run }).collect(),
        Study::Bodies(study) => {
            let row =
                |row: &'a model::BodyRun| ComparableRun { load: format!("{} {}", row.socket, row.body), run: &row.run };
            study.sorted().into_iter().map(row).collect()
        }
        Study::Load(study) => vec![ComparableRun { load: in_words::load(&study.plan), run: &study.run }],
        Study::Compare(_) => {
            return Err(format!("{} is a comparison already: longtail report {} shows it", file.name, file.name));
        }
    };
    Ok(runs.into_iter().filter(|run| run.run.is_evidence()).collect())
}
