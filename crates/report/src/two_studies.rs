//! Two saved studies side by side at equal load. They were measured one after the other, so every
//! difference includes what changed on the machine in between. The text says so, and calls a figure
//! different only if the repeats within the studies show it.

use judge::named_runs::NamedRun;
use model::comparison::{ComparisonVerdict, Metric, RankTest, median};
use model::{BodyRun, Nanos, Run, Study};

use crate::comparison::{change_words, summary};
use crate::labels;
use crate::measured::{self, StudyHead};
use crate::number::{self, count_of};
use crate::text::{Width, wrap};
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use judge::next::edited;

/// A study and the file that it was read from.
#[derive(Clone, Copy)]
pub struct StudyFile<'a> {
    /// The file.
    pub name: &'a str,
    /// The study.
    pub study: &'a Study,
}

/// The metrics that every study has.
const METRICS: [Metric; 4] = [Metric::Throughput, Metric::Mean, Metric::P50, Metric::P99];
/// Differences up to this part do not matter.
const MARGIN: f64 = 0.05;
const LEVEL: f64 = 0.05;

/// The two side by side as text.
///
/// # Errors
/// One line, if they cannot be compared: which one, why, and what to do instead.
pub fn side_by_side<'a>(
    base: StudyFile<'a>,
    other: StudyFile<'a>,
    width: Width,
) -> Result<String, String> {
    let runs_a = comparable(base)?;
    let runs_b = comparable(other)?;
    let mut loads: Vec<&str> = Vec::new();
    for NamedRun { name, .. } in &runs_a {
        if !loads.contains(&name.as_str()) && runs_b.iter().any(|other| other.name == *name) {
            loads.push(name);
        }
    }
    if loads.is_empty() {
        let [a, b] = [&runs_a, &runs_b]
            .map(|runs| runs.first().map_or("no sound run", |run| run.name.as_str()));
        return Err(format!(
            "{} and {} have no load in common ({a} against {b}): measure both under the same one",
            base.name, other.name
        ));
    }
    let level = LEVEL / (loads.len() * METRICS.len()) as f64;
    let mut rows: Vec<SideRow<'_>> = Vec::new();
    for load in loads {
        let of_load = |runs: &[NamedRun<'a>]| {
            runs.iter().filter(|it| it.name == load).map(|it| it.run).collect()
        };
        let runs: [Vec<&Run>; 2] = [of_load(&runs_a), of_load(&runs_b)];
        rows.extend(METRICS.map(|metric| SideRow::of(load, metric, &runs, level)));
    }
    let mut text = String::new();
    for (letter, file) in [("A", base), ("B", other)] {
        wrap(
            &mut text,
            width,
            "",
            &format!("{letter}  {}: {}", file.name, measured::lines(file.study)[0]),
        );
    }
    let names = names(base, other);
    text.push('\n');
    text.push_str(&crate::text::table(&table(&rows), 0, width));
    text.push('\n');
    wrap(&mut text, width, "", &conclusion(&rows, &names));
    text.push('\n');
    for (at, limit) in limits(base.study, other.study, &names).iter().enumerate() {
        wrap(&mut text, width, if at == 0 { "  Limits " } else { "         " }, limit);
    }
    wrap(
        &mut text,
        width,
        "  Next   ",
        "longtail compare … --arm … --arm …   # measures both in turn, on one machine",
    );
    Ok(text)
}

/// A metric under one load.
struct SideRow<'a> {
    load: &'a str,
    metric: Metric,
    figures: [String; 2],
    /// How many repeats the study with fewer has.
    runs: usize,
    change: Option<f64>,
    interval: Option<[f64; 2]>,
    verdict: ComparisonVerdict,
}

impl<'a> SideRow<'a> {
    fn of(load: &'a str, metric: Metric, runs: &[Vec<&Run>; 2], level: f64) -> SideRow<'a> {
        let [a, b] = runs.each_ref().map(|runs| -> Vec<f64> {
            runs.iter()
                .filter_map(|run| value(run, metric))
                .filter(|value| *value > 0.0)
                .map(f64::ln)
                .collect()
        });
        let ranks = RankTest::of_sets(&a, &b);
        let interval = ranks.interval(level).map(|ends| ends.map(f64::exp_m1));
        let change = ranks.estimate().map(f64::exp_m1);
        let verdict =
            interval.zip(change).map_or(ComparisonVerdict::CannotTell, |(interval, change)| {
                ComparisonVerdict::of(metric, interval, change, MARGIN)
            });
        let figures = runs.each_ref().map(|runs| shown(metric, runs));
        SideRow {
            load,
            metric,
            figures,
            runs: runs[0].len().min(runs[1].len()),
            change,
            interval,
            verdict,
        }
    }
}

/// A rate per second, or a time in ms.
fn value(run: &Run, metric: Metric) -> Option<f64> {
    if metric == Metric::Throughput {
        return Some(run.completed_rate());
    }
    let time = match metric.quantile() {
        Some(q) => run.response_time(q).time(),
        None => run.mean_response_time(),
    };
    time.map(Nanos::as_millis_f64)
}

/// The median of the runs; of a single run with the interval of its percentile.
fn shown(metric: Metric, runs: &[&Run]) -> String {
    let middle = median(runs.iter().filter_map(|run| value(run, metric)));
    let middle = number::or_none(middle, number::significant);
    let (Some(quantile), [run]) = (metric.quantile(), runs) else { return middle };
    let known = run.statistics.as_ref().and_then(|statistics| statistics.interval(quantile));
    match known.and_then(|known| known.low.zip(known.high)) {
        Some((low, high)) => {
            format!("{middle} [{}–{}]", number::milliseconds(low), number::milliseconds(high))
        }
        None => middle,
    }
}

fn table(rows: &[SideRow<'_>]) -> DataTable {
    let against = ColumnBand::new("B against A", "");
    let own = ["load", "", "A", "B"].map(TableColumn::new);
    let columns =
        own.into_iter().chain(["", "interval"].map(|name| TableColumn::new(name).under(&against)));
    let line = |(at, row): (usize, &SideRow<'_>)| {
        let is_first = at == 0 || rows[at - 1].load != row.load;
        let unit = if row.metric == Metric::Throughput { "/s" } else { "ms" };
        let [a, b] = row.figures.clone();
        TableRow::new([
            if is_first { row.load.to_owned() } else { String::new() },
            format!("{}, {unit}", summary::name(row.metric)),
            a,
            b,
            number::or_none(row.change, change_words::estimate),
            number::or_none(row.interval, change_words::interval),
        ])
        .noted(summary::verdict(row.verdict))
    };
    DataTable { lead: 2, ..DataTable::of_columns(columns, rows.iter().enumerate().map(line)) }
}

/// What sentences call the two studies: by their files' names without folder and ending, if these
/// differ.
fn names(base: StudyFile<'_>, other: StudyFile<'_>) -> [String; 2] {
    let short = |file: StudyFile<'_>| {
        let name = file.name.rsplit('/').next().unwrap_or(file.name);
        name.trim_end_matches(".json").trim_end_matches(".study").to_owned()
    };
    let names = [short(base), short(other)];
    if names[0] == names[1] { [base.name.to_owned(), other.name.to_owned()] } else { names }
}

fn conclusion(rows: &[SideRow<'_>], [base, other]: &[String; 2]) -> String {
    let mut parts = Vec::new();
    for (verdict, word) in [
        (ComparisonVerdict::Worse, format!("{other} was worse")),
        (ComparisonVerdict::Better, format!("{other} was better")),
        (ComparisonVerdict::Same, "The same within 5 %".to_owned()),
    ] {
        let said = rows.iter().filter(|row| row.verdict == verdict);
        let said: Vec<String> =
            said.map(|row| format!("{} at {}", summary::name(row.metric), row.load)).collect();
        parts.extend((!said.is_empty()).then(|| format!("{word}: {}.", said.join(", "))));
    }
    if parts.is_empty() {
        let runs = count_of(rows.iter().map(|row| row.runs).min().unwrap_or(0) as u64, "run");
        parts.push(format!(
            "Whether {base} and {other} differ cannot be told from {runs} of each load in a study."
        ));
    }
    parts.join(" ")
}

/// What such a comparison cannot tell.
fn limits(base: &Study, other: &Study, names: &[String; 2]) -> Vec<String> {
    let [a, b] = [base, other].map(StudyHead::of);
    let mut limits = vec![format!(
        "{} was measured at {}, {} at {}: what the machine did in between is in every difference.",
        names[0],
        a.when(),
        names[1],
        b.when()
    )];
    let machine = |head: &StudyHead<'_>| {
        format!(
            "{}, {}, {}",
            head.environment.cpu,
            count_of(head.environment.cores, "CPU"),
            head.environment.kernel
        )
    };
    if machine(&a) != machine(&b) {
        limits.push(format!("The machines differ: {} against {}.", machine(&a), machine(&b)));
    }
    // Where the results are written makes no difference.
    let [one, another] = [&a, &b].map(|head| edited(head.command_line, "", &[]));
    if one != another {
        limits.push(format!("The commands differ: {}  |  {}", a.command_line, b.command_line));
    }
    limits
}

/// The runs of a study that longtail measured and that passed their checks, named by their load.
/// Runs of the same name are repeats.
fn comparable(file: StudyFile<'_>) -> Result<Vec<NamedRun<'_>>, String> {
    if file.study.is_claimed() {
        return Err(format!(
            "{} has another generator's figures: longtail audit checks them",
            file.name
        ));
    }
    let runs: Vec<NamedRun<'_>> = match file.study {
        Study::Sweep(study) => {
            let connections = |run: &Run| count_of(run.connections, "connection");
            study.runs.iter().map(|run| NamedRun { name: connections(run), run }).collect()
        }
        Study::Bodies(study) => {
            let of = |row: &BodyRun| format!("{} {}", row.socket, row.body);
            study
                .sorted()
                .into_iter()
                .map(|row| NamedRun { name: of(row), run: &row.run })
                .collect()
        }
        Study::Load(study) => vec![NamedRun { name: labels::load(&study.plan), run: &study.run }],
        Study::Capacity(_) => {
            return Err(format!(
                "{} is a search for a capacity: compare the answers of longtail report",
                file.name
            ));
        }
        Study::Compare(_) => {
            return Err(format!(
                "{} is a comparison already: longtail report {} shows it",
                file.name, file.name
            ));
        }
    };
    Ok(runs.into_iter().filter(|run| run.run.is_evidence()).collect())
}
