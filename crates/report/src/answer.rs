//! The answer: what a person sees of a study by default, from its [`Summary`] alone. At most 30 lines of 100 columns: what was measured,
//! the table, the conclusion, why, whether it can be trusted, what to type next.

use std::fmt::Write as _;

use model::Study;

use crate::comparison;
use crate::load_answer;
use crate::next_steps::NextCommand;
use crate::number;
use crate::summary::{Summary, SummaryRun, SummaryVerdict};
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use crate::trust::{TrustMark, is_uncertain};
use crate::width::{self, Width, columns_of, wrap};

/// Columns of a line at the most.
const COLUMNS: usize = 100;
/// Lines at the most, and rows of the table that are part of them: each further row is one line more.
const LINES: usize = 30;
const ROWS: usize = 8;
/// Of the table and of what is under it.
const INDENT: usize = 2;
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
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, paint);
    let text = layout.opening(study, false);
    // A comparison has a row a figure, and not a run.
    let runs = if summary.comparison.is_some() { 0 } else { summary.runs.len() };
    let room = (LINES + runs.saturating_sub(ROWS)).saturating_sub(text.lines().count());
    let more = if summary.runs.is_empty() {
        ""
    } else {
        "  More   longtail report --full | --html report.html | --markdown | --json\n"
    };
    let ends = SHOWN.map(|shown| {
        let ending = layout.ending(shown) + more;
        if ending.is_empty() { ending } else { format!("\n{ending}") }
    });
    let fits = |end: &&String| end.lines().count() <= room;
    text + ends.iter().find(fits).or(ends.last()).map_or("", String::as_str)
}

/// The same without colour, with all doubts and every picture.
pub(crate) fn in_full(study: &Study, saved: Option<&str>, width: Width) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, &|_, text| text.to_owned());
    crate::text::joined([layout.opening(study, true).trim_end().to_owned() + "\n", layout.ending(ALL)])
}

/// The conclusion and what follows it, for a layout that has a table of its own.
pub(crate) fn conclusion(study: &Study, saved: Option<&str>, width: Width) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, &|_, text| text.to_owned());
    crate::text::joined([layout.sentence(), layout.ending(ALL)])
}

/// The table alone, as it grows.
pub fn rows(study: &Study) -> String {
    crate::text::table(&table(&Summary::of(study, None)), INDENT, Width::ANY)
}

/// What the marks behind figures mean, where there are any.
pub(crate) fn legend(summary: &Summary) -> Option<String> {
    if let Some(summary) = &summary.comparison {
        return comparison::legend(summary).map(str::to_owned);
    }
    let shown = || summary.runs.iter().filter(|run| run.is_the_servers());
    let is_load = summary.command == "load";
    let is_marked = |run: &SummaryRun| {
        let is_shown = |name: &str| is_load || ["p50", "p95", "p99"].contains(&name);
        let mut times = run.response_ms.percentiles().into_iter();
        times.any(|(name, time)| {
            is_shown(name) && time.is_some_and(|time| is_uncertain(time, run.interval_ms.get(name)))
        })
    };
    let is_shared = |run: &SummaryRun| !is_load && run.verdict == SummaryVerdict::SharedCpus;
    let rough = shown().any(is_marked).then_some("? not known to ± 20 % (95 % interval)");
    let shared = shown().any(is_shared).then_some("~ on CPUs that others used, too");
    let marks: Vec<&str> = [rough, shared].into_iter().flatten().collect();
    (!marks.is_empty()).then(|| marks.join(" · "))
}

/// So much is said at the end.
#[derive(Clone, Copy)]
struct EndingLength {
    doubts: usize,
    commands: usize,
}

/// In a full report.
const ALL: EndingLength = EndingLength { doubts: usize::MAX, commands: 3 };

/// A summary, and how it is laid out.
struct AnswerLayout<'a> {
    summary: &'a Summary,
    width: Width,
    paint: &'a dyn Fn(Emphasis, &str) -> String,
}

impl<'a> AnswerLayout<'a> {
    fn of(summary: &'a Summary, width: Width, paint: &'a dyn Fn(Emphasis, &str) -> String) -> AnswerLayout<'a> {
        AnswerLayout { summary, width: Width::of(width.columns().unwrap_or(COLUMNS).min(COLUMNS)), paint }
    }

    /// What was measured, its figures, and the conclusion.
    fn opening(&self, study: &Study, is_full: bool) -> String {
        let mut text = String::new();
        for line in &self.summary.measured {
            wrap(&mut text, self.width, "", line);
        }
        text.push('\n');
        if let Study::Load(study) = study {
            text.push_str(&load_answer::rates_and_gap(&self.summary.runs[0], self.width));
            text.push_str(&self.table());
            text.push_str(&load_answer::pictures(study, &self.summary.runs[0], self.width, is_full));
        } else {
            text.push_str(&self.table());
        }
        if let Some(legend) = legend(self.summary) {
            _ = writeln!(text, "  {legend}");
        }
        text + "\n" + &self.sentence()
    }

    fn table(&self) -> String {
        let table = table(self.summary);
        if table.rows.is_empty() && self.summary.command == "load" {
            return String::new();
        }
        let indent = if self.summary.comparison.is_some() { 0 } else { INDENT };
        let text = crate::text::table(&table, indent, self.width);
        let is_bad = |line: &str| NO_FIGURE.iter().any(|(_, word)| line.ends_with(word));
        let shown = |line: &str| if is_bad(line) { (self.paint)(Emphasis::Bad, line) } else { line.to_owned() };
        text.lines().map(|line| shown(line) + "\n").collect()
    }

    fn sentence(&self) -> String {
        let mut sentence = String::new();
        if self.summary.sentence.is_empty() {
            return sentence;
        }
        wrap(&mut sentence, self.width, "", &self.summary.sentence);
        let is_bad = self.summary.verdict >= SummaryVerdict::Overloaded;
        let emphasis = if is_bad { Emphasis::Bad } else { Emphasis::Strong };
        sentence.lines().map(|line| (self.paint)(emphasis, line) + "\n").collect()
    }

    /// Why, what was expected, whether to trust it, what to type next: with so many doubts and commands.
    fn ending(&self, length: EndingLength) -> String {
        let mut text = String::new();
        for (at, reason) in self.summary.reasons().enumerate() {
            wrap(&mut text, self.width, if at == 0 { "  Why    " } else { "         " }, reason);
        }
        for expectation in &self.summary.expectations {
            wrap(&mut text, self.width, "  Expect ", &without_expect(&expectation.sentence));
        }
        self.trust(&mut text, length.doubts);
        for (at, next) in self.summary.next.iter().take(length.commands).enumerate() {
            let before = if at == 0 { "  Next   " } else { "         " };
            text.push_str(&continued(before, next, self.width));
        }
        text
    }

    fn trust(&self, text: &mut String, most: usize) {
        let mut before = "  Trust  ";
        let mut doubts = 0;
        for line in &self.summary.trust {
            doubts += usize::from(line.mark != TrustMark::Passed);
            if doubts > most {
                continue;
            }
            let is_shown = line.mark == TrustMark::Failed || doubts == 1 || most == usize::MAX;
            let hint = line.hint.filter(|_| is_shown).map(|hint| format!(" → {hint}")).unwrap_or_default();
            let mut own = String::new();
            wrap(&mut own, self.width, "           ", &format!("{}{hint}", line.sentence));
            let emphasis = match line.mark {
                TrustMark::Passed => Emphasis::Plain,
                TrustMark::Uncertain | TrustMark::Doubtful => Emphasis::Doubtful,
                TrustMark::Failed => Emphasis::Bad,
            };
            _ = write!(text, "{before}{} {}", (self.paint)(emphasis, line.mark.sign()), own.trim_start());
            before = "         ";
        }
        if doubts > most {
            _ = writeln!(text, "{before}… {} more: longtail report --full", doubts - most);
        }
    }
}

/// `PASS p99 < 200ms: …`: that it was expected stands before it.
fn without_expect(sentence: &str) -> String {
    sentence.replacen(" expect ", " ", 1)
}

/// A command on lines that a shell reads as one, so that it can be pasted, and why one would.
fn continued(before: &str, next: &NextCommand, width: Width) -> String {
    let mut text = String::new();
    let mut line = before.to_owned();
    for word in width::words(&next.command) {
        if !width.fits(columns_of(&line) + columns_of(word) + 3) {
            _ = writeln!(text, "{line}\\");
            line = " ".repeat(columns_of(before) + 2);
        }
        line.push_str(word);
        line.push(' ');
    }
    let why = format!("  # {}", next.why);
    if !width.fits(columns_of(&line) + columns_of(&why)) {
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
            // An invalid run has no headline figure.
            let is_hidden = run.verdict == SummaryVerdict::Invalid && run.response_ms.mean.is_none();
            format!("{}{mark}", number::or_none(run.rate.completed.filter(|_| !is_hidden), number::rate))
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
fn columns_of_runs(summary: &Summary) -> Vec<&'static AnswerColumn> {
    let has = |of: fn(&SummaryRun) -> bool| summary.runs.iter().any(of);
    let is_needed = |column: &&AnswerColumn| match column.band {
        SLOW => has(|run| run.slow.is_some()),
        CPUS => has(|run| run.cpus.is_some()),
        _ => true,
    };
    COLUMNS_OF_A_SWEEP.iter().filter(is_needed).collect()
}

/// Verdicts of runs that say nothing of the server, and the word in place of their times.
const NO_FIGURE: [(SummaryVerdict, &str); 2] =
    [(SummaryVerdict::Invalid, "INVALID"), (SummaryVerdict::GeneratorBound, "GENERATOR-BOUND")];
/// Columns that such a run has.
const COLUMNS_WITHOUT_TIMES: usize = 3;

/// The table: a row a run, of a comparison a row a figure or an arm, of a load its percentiles.
pub(crate) fn table(summary: &Summary) -> DataTable {
    match (&summary.comparison, summary.runs.as_slice()) {
        (Some(comparison), _) => comparison::table(comparison),
        (None, [run]) if summary.command == "load" => load_answer::percentiles(run),
        (None, runs) => {
            let columns = columns_of_runs(summary);
            let named = |column: &&AnswerColumn| {
                // Under its band the mean stands beside the response times, which are in ms.
                let unit = if (column.band, column.name) == (SLOW, "mean") { "ms" } else { "" };
                let name = TableColumn { unit, ..TableColumn::new(column.name) };
                let suffix = match column.band {
                    TIMES => "ms",
                    SLOW => "of slow requests",
                    other => other,
                };
                if column.band.is_empty() { name } else { name.under(&ColumnBand::new(column.band, suffix)) }
            };
            let row = |run: &SummaryRun| {
                let word = NO_FIGURE.iter().find(|(verdict, _)| *verdict == run.verdict).map(|(_, word)| *word);
                let shown = if word.is_some() { COLUMNS_WITHOUT_TIMES } else { columns.len() };
                let cells = columns.iter().take(shown).map(|column| (column.cell)(run));
                TableRow::new(std::iter::once(run.label.clone()).chain(cells)).noted(word.unwrap_or_default())
            };
            let heads = std::iter::once(TableColumn::new("load")).chain(columns.iter().map(named));
            DataTable { lead: 0, ..DataTable::of_columns(heads, runs.iter().map(row)) }
        }
    }
}

/// The answer for a pull request: the sentence, the table, why and whether to trust it, and everything else folded.
pub fn markdown(study: &Study, saved: Option<&str>) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let line = |text: &str| format!("{}\n", crate::markdown::escaped(text));
    let sentence = crate::markdown::escaped(&summary.sentence);
    let mut parts = vec![if sentence.is_empty() { sentence } else { format!("**{sentence}**\n") }];
    let table = table(&summary);
    if summary.command == "load" {
        parts.push(line(&load_answer::rates(&summary.runs[0])));
    }
    if !table.rows.is_empty() {
        parts.push(crate::markdown::pipe_table(&table));
        parts.extend(legend(&summary).filter(|_| summary.comparison.is_none()).map(|legend| line(&legend)));
    }
    let reasons = summary.reasons().map(|reason| line(&format!("- Why: {reason}")));
    let trust = summary.trust.iter().take(1 + DOUBTS).map(|it| line(&format!("- {} {}", it.mark.sign(), it.sentence)));
    let expected = summary.expectations.iter().map(|it| line(&format!("- Expected: {}", without_expect(&it.sentence))));
    parts.push(reasons.chain(trust).chain(expected).collect());
    parts.push(line(&summary.measured.join(" · ")));
    let report = crate::markdown::whole(&crate::details(study));
    parts.push(crate::markdown::details(
        "The command, more columns and versions (all figures: longtail report --full)",
        &report,
    ));
    crate::text::joined(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_command_is_not_broken_within_a_quoted_word() {
        let command = "longtail sweep -w2 -t5:5 '--from=ssh box2' --multiples=4,8,16".to_owned();
        let next = NextCommand { command: command.clone(), why: String::new() };
        for columns in 40..80 {
            let lines = continued("  Next   ", &next, Width::of(columns));
            let words: Vec<&str> = lines.split_once("  # ").unwrap().0.split_whitespace().skip(1).collect();
            assert!(lines.contains("'--from=ssh box2'"), "{lines}");
            assert_eq!(words.join(" ").replace("\\ ", ""), command, "{lines}");
        }
    }

    #[test]
    fn in_markdown_the_mean_of_slow_requests_has_its_unit() {
        let mut summary = Summary::of(&testkit::study::canonical().into(), None);
        summary.runs[0].slow = Some(crate::summary::SlowGroup { share: 0.1, mean_ms: 1006.0, others_ms: 101.0 });
        let table = crate::markdown::pipe_table(&table(&summary));
        assert!(
            table.contains(" mean of slow requests, ms ") && table.contains(" share of slow requests |"),
            "{table}"
        );
    }
}
