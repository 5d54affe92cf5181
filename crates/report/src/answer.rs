//! The answer: what a person sees of a study by default, from its [`Summary`] alone. At most 30 lines of 100 columns: what was measured,
//! the table, the conclusion, why, whether it can be trusted, what to type next.

use std::fmt::Write as _;

use model::Study;

use crate::comparison;
use crate::load_answer;
use crate::number;
use crate::summary::{Summary, SummaryRun, SummaryVerdict};
use crate::tree::ReportSection;
use crate::trust::is_uncertain;
use crate::width::{Width, columns_of, wrap};

/// Columns of a line at the most.
const COLUMNS: usize = 100;
/// Lines at the most, and rows of the table that are part of them: each further row is one line more.
const LINES: usize = 30;
const ROWS: usize = 8;
/// Doubts that are shown; the others are counted.
const DOUBTS: usize = 3;
/// Doubts and next commands that are shown, fewer and fewer until the answer fits.
const SHOWN: [EndingLength; 7] = [
    EndingLength { doubts: DOUBTS, commands: 3 },
    EndingLength { doubts: DOUBTS, commands: 2 },
    EndingLength { doubts: 2, commands: 2 },
    EndingLength { doubts: 2, commands: 1 },
    EndingLength { doubts: 1, commands: 1 },
    EndingLength { doubts: 1, commands: 0 },
    EndingLength { doubts: 0, commands: 0 },
];

/// So much is said at the end.
#[derive(Clone, Copy)]
struct EndingLength {
    doubts: usize,
    commands: usize,
}

/// How a piece of the answer is shown: a renderer may colour it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// As it is.
    Plain,
    /// The answer itself.
    Strong,
    /// Doubtful.
    Doubtful,
    /// Wrong.
    Bad,
}

/// The answer of a study, on lines without colour.
pub fn whole(study: &Study, saved: Option<&str>, width: Width) -> String {
    painted(study, saved, width, &|_, text| text.to_owned())
}

/// The same, each piece as `paint` shows it. What it adds must take no columns.
pub fn painted(study: &Study, saved: Option<&str>, width: Width, paint: &dyn Fn(Emphasis, &str) -> String) -> String {
    laid_out(study, &Summary::of(study, saved.map(str::to_owned)), width, paint)
}

/// What the marks behind figures mean, where there are any.
pub(crate) fn legend(summary: &Summary) -> Option<String> {
    if let Some(summary) = &summary.comparison {
        return comparison::legend(summary).map(str::to_owned);
    }
    let shown = || summary.runs.iter().filter(|run| run.is_the_servers());
    let is_marked = |run: &SummaryRun| {
        let times = &run.response_ms;
        let mut times = [("p50", times.p50), ("p95", times.p95), ("p99", times.p99)].to_vec();
        if summary.command == "load" {
            times.extend([("p90", run.response_ms.p90), ("p99.9", run.response_ms.p999)]);
        }
        times.iter().any(|(name, time)| time.is_some_and(|time| is_uncertain(time, run.interval_ms.get(name))))
    };
    let is_shared = |run: &SummaryRun| summary.command != "load" && run.verdict == SummaryVerdict::SharedCpus;
    let rough = shown().any(is_marked).then_some("? not known to ± 20 % (95 % interval)");
    let shared = shown().any(is_shared).then_some("~ on CPUs that others used, too");
    let marks: Vec<&str> = [rough, shared].into_iter().flatten().collect();
    (!marks.is_empty()).then(|| marks.join(" · "))
}

/// The table alone, as it grows.
pub fn rows(study: &Study) -> String {
    run_table(&Summary::of(study, None), &|_, text| text.to_owned())
}

fn laid_out(study: &Study, summary: &Summary, width: Width, paint: &dyn Fn(Emphasis, &str) -> String) -> String {
    let width = Width::of(width.columns().unwrap_or(COLUMNS).min(COLUMNS));
    let mut text = String::new();
    for line in &summary.measured {
        wrap(&mut text, width, "", line);
    }
    text.push('\n');
    match study {
        Study::Load(study) => text.push_str(&load_answer::figures(study, &summary.runs[0], width)),
        Study::Compare(_) => {
            let table = summary.comparison.as_ref().map(comparison::table).unwrap_or_default();
            text.push_str(&crate::text::sections(&[ReportSection::new("").table(table)], width));
        }
        _ => text.push_str(&run_table(summary, paint)),
    }
    if let Some(legend) = legend(summary) {
        _ = writeln!(text, "  {legend}");
    }
    text.push('\n');
    let mut sentence = String::new();
    wrap(&mut sentence, width, "", &summary.sentence);
    let emphasis = if summary.verdict >= SummaryVerdict::Overloaded { Emphasis::Bad } else { Emphasis::Strong };
    for line in sentence.lines() {
        _ = writeln!(text, "{}", paint(emphasis, line));
    }
    // A comparison has a row a figure, and not a run.
    let runs = if summary.comparison.is_some() { 0 } else { summary.runs.len() };
    let rows = runs.saturating_sub(ROWS);
    let ends = SHOWN.map(|shown| ending(summary, width, paint, shown));
    let room = (LINES + rows).saturating_sub(text.lines().count());
    let fits = |end: &&String| end.lines().count() <= room;
    text + ends.iter().find(fits).or(ends.last()).map_or("", String::as_str)
}

/// Why, what was expected, whether to trust it, what to type next: with so many doubts and commands.
fn ending(summary: &Summary, width: Width, paint: &dyn Fn(Emphasis, &str) -> String, length: EndingLength) -> String {
    let mut text = String::new();
    for (at, reason) in summary.reasons().enumerate() {
        wrap(&mut text, width, if at == 0 { "  Why    " } else { "         " }, reason);
    }
    for expectation in &summary.expectations {
        wrap(&mut text, width, "  Expect ", &without_expect(&expectation.sentence));
    }
    trust_lines(&mut text, summary, width, paint, length.doubts);
    for (at, next) in summary.next.iter().take(length.commands).enumerate() {
        let before = if at == 0 { "  Next   " } else { "         " };
        text.push_str(&continued(before, &next.command, &next.why));
    }
    if !summary.runs.is_empty() {
        text.push_str("  More   longtail report --full | --html report.html | --markdown | --json\n");
    }
    if !text.is_empty() {
        text.insert(0, '\n');
    }
    text
}

/// `PASS p99 < 200ms: …`: that it was expected stands before it.
fn without_expect(sentence: &str) -> String {
    sentence.replacen(" expect ", " ", 1)
}

fn trust_lines(
    text: &mut String,
    summary: &Summary,
    width: Width,
    paint: &dyn Fn(Emphasis, &str) -> String,
    most: usize,
) {
    use crate::trust::TrustMark;
    let mut before = "  Trust  ";
    let mut doubts = 0;
    for line in &summary.trust {
        doubts += usize::from(line.mark != TrustMark::Passed);
        if doubts > most {
            continue;
        }
        let hint = line.hint.filter(|_| line.mark == TrustMark::Failed || doubts == 1);
        let hint = hint.map(|hint| format!(" → {hint}")).unwrap_or_default();
        let mut own = String::new();
        wrap(&mut own, width, "           ", &format!("{}{hint}", line.sentence));
        let emphasis = match line.mark {
            TrustMark::Passed => Emphasis::Plain,
            TrustMark::Uncertain | TrustMark::Doubtful => Emphasis::Doubtful,
            TrustMark::Failed => Emphasis::Bad,
        };
        let own = own.trim_start();
        _ = write!(text, "{before}{} {own}", paint(emphasis, line.mark.sign()));
        before = "         ";
    }
    if doubts > most {
        _ = writeln!(text, "{before}… {} more: longtail report --full", doubts - most);
    }
}

/// A command on lines that a shell reads as one, so that it can be pasted, and why one would.
fn continued(before: &str, command: &str, why: &str) -> String {
    let mut text = String::new();
    let mut line = before.to_owned();
    for word in command.split(' ') {
        if columns_of(&line) + columns_of(word) + 3 > COLUMNS {
            _ = writeln!(text, "{line}\\");
            line = " ".repeat(columns_of(before) + 2);
        }
        line.push_str(word);
        line.push(' ');
    }
    let why = format!("  # {why}");
    if columns_of(&line) + columns_of(&why) > COLUMNS {
        _ = writeln!(text, "{}", line.trim_end());
        line = " ".repeat(columns_of(before));
    }
    text + &line + &why + "\n"
}

/// One column of the table: its name, its band, and a cell of a run.
pub(crate) struct AnswerColumn {
    pub(crate) band: &'static str,
    pub(crate) name: &'static str,
    pub(crate) cell: fn(&SummaryRun) -> String,
}

pub(crate) fn time_cell(run: &SummaryRun, name: &str, time: Option<f64>) -> String {
    let Some(time) = time else { return "- ".to_owned() };
    let mark = if is_uncertain(time, run.interval_ms.get(name)) { "?" } else { " " };
    format!("{}{mark}", number::of_millis(time))
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number::of_millis)
}

const TIMES: &str = "response time, ms";
const CPUS: &str = "CPUs";
const SLOW: &str = "slow requests";
const COLUMNS_OF_A_SWEEP: [AnswerColumn; 11] = [
    AnswerColumn { band: "", name: "connections", cell: |run| run.connections.to_string() },
    AnswerColumn {
        band: "",
        name: "req/s ",
        cell: |run| {
            let mark = if run.verdict == SummaryVerdict::SharedCpus { "~" } else { " " };
            format!("{}{mark}", number::or_none(run.rate.completed, number::rate))
        },
    },
    AnswerColumn { band: "", name: "failed", cell: |run| number::or_none(run.requests.failed, |n| n.to_string()) },
    AnswerColumn { band: TIMES, name: "p50 ", cell: |run| time_cell(run, "p50", run.response_ms.p50) },
    AnswerColumn { band: TIMES, name: "p95 ", cell: |run| time_cell(run, "p95", run.response_ms.p95) },
    AnswerColumn { band: TIMES, name: "p99 ", cell: |run| time_cell(run, "p99", run.response_ms.p99) },
    AnswerColumn { band: TIMES, name: "max", cell: |run| or_dash(run.response_ms.max) },
    AnswerColumn { band: TIMES, name: "FIFO", cell: |run| or_dash(run.in_order_ms) },
    AnswerColumn {
        band: CPUS,
        name: "used",
        cell: |run| run.cpus.map_or_else(|| "-".to_owned(), |[used, _]| number::fixed(used, 1)),
    },
    AnswerColumn {
        band: SLOW,
        name: "share",
        cell: |run| run.slow.map_or_else(|| "-".to_owned(), |slow| crate::sentences::percent(slow.share)),
    },
    AnswerColumn { band: SLOW, name: "mean", cell: |run| or_dash(run.slow.map(|slow| slow.mean_ms)) },
];

/// The columns that these runs need: those of slow requests where a run has two groups, CPUs where they are known.
pub(crate) fn columns_of_runs(summary: &Summary) -> Vec<&'static AnswerColumn> {
    let has = |of: fn(&SummaryRun) -> bool| summary.runs.iter().any(of);
    let is_needed = |column: &&AnswerColumn| match column.band {
        SLOW => has(|run| run.slow.is_some()),
        CPUS => has(|run| run.cpus.is_some()),
        _ => true,
    };
    COLUMNS_OF_A_SWEEP.iter().filter(is_needed).collect()
}

/// Columns of a run that says nothing of the server.
pub(crate) const COLUMNS_WITHOUT_TIMES: usize = 3;

/// A row a run. A run that says nothing of the server says so in place of its times.
fn run_table(summary: &Summary, paint: &dyn Fn(Emphasis, &str) -> String) -> String {
    let columns = columns_of_runs(summary);
    let rows: Vec<Vec<String>> =
        summary.runs.iter().map(|run| columns.iter().map(|column| (column.cell)(run)).collect()).collect();
    let width_of = |at: usize| {
        let widest = rows.iter().map(|row: &Vec<String>| columns_of(&row[at])).max().unwrap_or(0);
        widest.max(columns_of(columns[at].name))
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(width_of).collect();
    let label = summary.runs.iter().map(|run| columns_of(&run.label)).max().unwrap_or(0).max(4);
    let mut bands = format!("  {:label$}", "");
    let mut names = format!("  {:>label$}", "load");
    let mut at = 0;
    while at < columns.len() {
        let band = columns[at].band;
        let end = (at..columns.len()).find(|next| columns[*next].band != band).unwrap_or(columns.len());
        let room: usize = widths[at..end].iter().map(|width| width + 2).sum();
        // A band that is wider than its columns widens the first of them.
        let lacking = (columns_of(band) + 2).saturating_sub(room);
        widths[at] += if band.is_empty() { 0 } else { lacking };
        let room = room + if band.is_empty() { 0 } else { lacking };
        _ = write!(bands, "{band:>room$}");
        for (column, width) in columns[at..end].iter().zip(&widths[at..end]) {
            _ = write!(names, "  {:>width$}", column.name);
        }
        at = end;
    }
    let mut text = format!("{}\n{}\n", bands.trim_end(), names.trim_end());
    for (run, row) in summary.runs.iter().zip(&rows) {
        let mut line = format!("  {:>label$}", run.label);
        let hides = !run.is_the_servers();
        let shown = if hides { COLUMNS_WITHOUT_TIMES } else { row.len() };
        for (cell, width) in row.iter().zip(&widths).take(shown) {
            _ = write!(line, "  {cell:>width$}");
        }
        if hides {
            let word = if run.verdict == SummaryVerdict::Invalid { "INVALID" } else { "GENERATOR-BOUND" };
            line = paint(Emphasis::Bad, &format!("{line}  {word}"));
        }
        _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The answer for a pull request: the sentence, the table, why and whether to trust it, and everything else folded.
pub fn markdown(study: &Study, saved: Option<&str>) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let line = |text: &str| format!("{}\n", crate::markdown::escaped(text));
    let mut parts = vec![format!("**{}**\n", crate::markdown::escaped(&summary.sentence))];
    match &summary.comparison {
        Some(comparison) => parts.push(crate::markdown::pipe_table(&comparison::table(comparison))),
        None if summary.runs.is_empty() => {}
        None => {
            parts.push(pipe_table(&summary));
            parts.extend(legend(&summary).map(|legend| line(&legend)));
        }
    }
    let reasons = summary.reasons().map(|reason| line(&format!("- Why: {reason}")));
    let trust = summary.trust.iter().take(1 + DOUBTS).map(|it| line(&format!("- {} {}", it.mark.sign(), it.sentence)));
    let expected = summary.expectations.iter().map(|it| line(&format!("- Expected: {}", without_expect(&it.sentence))));
    parts.push(reasons.chain(trust).chain(expected).collect());
    parts.push(line(&summary.measured.join(" · ")));
    let report = crate::markdown::whole(&crate::report(study));
    parts.push(crate::markdown::details(
        "The command, more columns and versions (all figures: longtail report --full)",
        &report,
    ));
    parts.join("\n")
}

fn pipe_table(summary: &Summary) -> String {
    let columns = columns_of_runs(summary);
    let names = columns.iter().map(|column| {
        let name = column.name.trim();
        match column.band {
            TIMES => format!("{name} ms"),
            "" => name.to_owned(),
            band => format!("{band} {name}"),
        }
    });
    let names: Vec<String> = std::iter::once("load".to_owned()).chain(names).collect();
    let mut text = format!("| {} |\n|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for run in &summary.runs {
        let cells = columns.iter().map(|column| (column.cell)(run).trim().to_owned());
        let cells: Vec<String> = std::iter::once(run.label.clone()).chain(cells).collect();
        _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}
