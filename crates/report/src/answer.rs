//! The answer: what is printed of a study by default. It says what was measured, and has the table,
//! the conclusion, why, whether it can be trusted, and what to type next. It has at most 30 lines
//! of 100 columns; on a narrower terminal shorter lines, and more of them. All of it comes from the
//! [`Summary`], and so does what Markdown, HTML and JSON say.

use std::borrow::Cow;
use std::fmt::Write as _;

use model::{Quantile, Study, number};

use crate::class_table::{self, ShownClasses};
use crate::load_answer;
use crate::run_tables::{self, NO_FIGURE};
use crate::step_table;
use crate::steps::SummaryStep;
use crate::summary::{HeadlineResult, Summary, SummaryRun, SummaryVerdict};
use crate::text::{self, Width, columns_of, wrap};
use crate::tree::{DataTable, TableRow};
use crate::{capacity, comparison};
use judge::Grade;
use judge::next::NextCommand;
use judge::trust::{ShownPercentile, TrustLine, shown_percentiles};
use judge::words::listed;

/// The widest line, in columns.
const COLUMNS: usize = 100;
/// The most lines of that width, if the table has up to [`ROWS`] rows; each further row is a line
/// more.
const LINES: usize = 30;
const ROWS: usize = 8;
/// The same of an answer that names a size, so that it stands on a usual terminal whole.
const LINES_OF_A_SIZE: usize = 24;
/// Indent of the table and of the lines below it.
const INDENT: usize = 2;
/// The most doubts that are shown; further ones are counted.
const DOUBTS: usize = 3;
/// The most next commands that are shown.
const COMMANDS: usize = 3;

/// How to see everything else.
const MORE: &str = "longtail report --full | --html report.html | --markdown | --json";

/// How a part of the answer is shown: a terminal may colour it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Everything else.
    Plain,
    /// The conclusion.
    Strong,
    /// What is doubtful.
    Doubtful,
    /// What is bad: an invalid run, an overload, a failed check.
    Bad,
}

/// The room that an answer has.
#[derive(Clone, Copy, Debug)]
pub struct AnswerRoom {
    /// The width of its lines.
    pub width: Width,
    /// How many lines a terminal shows at once; `None` if that does not matter, as in a pipe.
    pub rows: Option<usize>,
}

impl From<Width> for AnswerRoom {
    fn from(width: Width) -> AnswerRoom {
        AnswerRoom { width, rows: None }
    }
}

/// How much of an answer is shown.
#[expect(clippy::struct_excessive_bools, reason = "each part leaves by itself")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AnswerParts {
    doubts: usize,
    /// What to do about a doubt, and the note below a table of pairs.
    has_hints: bool,
    /// Whether what speaks for the figures stands beside a doubt about them.
    has_passed: bool,
    commands: usize,
    reasons: usize,
    /// How many reasons stay longer than the setup does.
    main_reasons: usize,
    /// A picture of a load, or the table below the answer to which size to take.
    has_pictures: bool,
    /// Whether the lines that say what was measured stand above the figures.
    has_setup: bool,
}

impl AnswerParts {
    const ALL: AnswerParts = AnswerParts {
        doubts: usize::MAX,
        has_hints: true,
        has_passed: true,
        commands: COMMANDS,
        reasons: usize::MAX,
        main_reasons: 1,
        has_pictures: true,
        has_setup: true,
    };

    /// What leaves an answer that is longer than the terminal, the least important first. The table
    /// and the conclusion stay, one line of trust and of what to type next, and, if the conclusion is
    /// not too long for it, one of why.
    const LEAVING: [fn(&mut AnswerParts); 9] = [
        |parts| parts.doubts = parts.doubts.min(1),
        |parts| parts.commands = parts.commands.min(1),
        |parts| parts.reasons = parts.main_reasons,
        |parts| parts.has_hints = false,
        |parts| parts.has_pictures = false,
        |parts| parts.has_setup = false,
        |parts| parts.reasons = parts.reasons.min(1),
        |parts| parts.has_passed = false,
        |parts| parts.reasons = 0,
    ];
}

/// The answer of a study, without colour.
pub fn whole(study: &Study, saved: Option<&str>, room: impl Into<AnswerRoom>) -> String {
    painted(study, saved, room, &plain)
}

/// The same, each part as `paint` shows it. What `paint` adds must take no columns, as colour codes
/// do.
pub fn painted(
    study: &Study,
    saved: Option<&str>,
    room: impl Into<AnswerRoom>,
    paint: &dyn Fn(Emphasis, &str) -> String,
) -> String {
    let AnswerRoom { width, rows } = room.into();
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, paint);
    let opening = layout.opening(study, AnswerParts::ALL, false);
    let mut more = String::new();
    // Without a saved study there is nothing more to see.
    let is_kept = !study.has_measured_nothing() && saved.is_some();
    if is_kept {
        wrap(&mut more, layout.width, "  More   ", MORE);
    }
    let all = layout.fitting_parts(&opening, &more);
    let mut parts = all;
    let mut text = joined_by_gap(opening, &(layout.ending(parts) + &more));
    for leave in AnswerParts::LEAVING {
        if !is_kept || rows.is_none_or(|rows| text.lines().count() <= rows) {
            break;
        }
        leave(&mut parts);
        text = layout.on_screen(study, parts);
    }
    if let Some(rows) = rows.filter(|rows| parts != all && text.lines().count() <= *rows) {
        let more = layout.coming_back(parts, all).into_iter();
        let mut more = more.map(|parts| layout.on_screen(study, parts));
        if let Some(shown) = more.find(|text| text.lines().count() <= rows) {
            text = shown;
        }
    }
    text
}

/// The parts of an answer with a blank line between them, if there are both.
fn joined_by_gap(opening: String, ending: &str) -> String {
    if ending.is_empty() { opening } else { opening + "\n" + ending }
}

/// A part of the answer without colour.
fn plain(_: Emphasis, text: &str) -> String {
    text.to_owned()
}

/// The answer in a full report: without colour, with all doubts and every picture.
pub(crate) fn in_full(study: &Study, saved: Option<&str>, width: Width) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, &plain);
    crate::text::joined([
        layout.opening(study, AnswerParts::ALL, true).trim_end().to_owned() + "\n",
        layout.ending(AnswerParts::ALL),
    ])
}

/// The answer from the conclusion on, for a layout with a table of its own.
pub(crate) fn conclusion(study: &Study, saved: Option<&str>, width: Width) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let layout = AnswerLayout::of(&summary, width, &plain);
    crate::text::joined([layout.sentence(), layout.ending(AnswerParts::ALL)])
}

/// The table alone, which a terminal shows while it grows.
pub struct GrowingTable(DataTable);

impl GrowingTable {
    /// The table of a study that is not finished, without columns of which no row has a figure yet:
    /// some are known only when the runs are judged.
    pub fn of(study: &Study) -> GrowingTable {
        let mut table = table(&Summary::of(study, None));
        let is_known = |at: &usize| {
            let mut cells = table.rows.iter().filter_map(|row| row.cells.get(*at));
            table.rows.is_empty() || cells.any(|cell| cell.text.trim_end() != number::NONE)
        };
        let known: Vec<usize> = (0..table.columns.len()).filter(is_known).collect();
        table.columns = known.iter().map(|at| table.columns[*at].clone()).collect();
        for row in &mut table.rows {
            row.cells = known.iter().filter_map(|at| row.cells.get(*at).cloned()).collect();
        }
        GrowingTable(table)
    }

    /// Its lines, at most `most`: if it has more rows, the last ones.
    pub fn lines(&self, width: Width, most: usize) -> Vec<String> {
        let laid_out = |rows: &[TableRow]| {
            let table = DataTable { rows: rows.to_vec(), ..self.0.clone() };
            let narrowed = text::narrowed(&table, INDENT, width);
            let mut text = text::table(&narrowed.table, INDENT, width);
            text += &left_out(&narrowed.left, "", width);
            text.lines().map(str::to_owned).collect::<Vec<String>>()
        };
        let rows = self.0.rows.as_slice();
        let first = (0..rows.len()).find(|first| laid_out(&rows[*first..]).len() <= most);
        first.map(|first| laid_out(&rows[first..])).unwrap_or_default()
    }
}

/// Which columns a narrow table has no room for, and how to see them. `of`: of which table, where
/// another one may have a column of that name.
fn left_out(columns: &[String], of: &str, width: Width) -> String {
    let mut text = String::new();
    if let Some(room) = width.columns()
        && !columns.is_empty()
    {
        let columns = columns.join(", ");
        let line = format!("Not shown{of} in {room} columns: {columns} (longtail report --full)");
        wrap(&mut text, width, "  ", &line);
    }
    text
}

/// What the marks behind the table's figures mean, or which rows it leaves out, if there are any.
pub(crate) fn legend(summary: &Summary<'_>) -> Option<String> {
    if let Some(summary) = &summary.comparison {
        return comparison::legend(summary);
    }
    if let Some(found) = &summary.capacity {
        return capacity::legend(found);
    }
    let steps: Vec<SummaryStep<'_>> = summary.runs.iter().flat_map(SummaryStep::all_of).collect();
    let of_steps: Vec<SummaryRun<'_>> = steps.iter().map(SummaryStep::view).collect();
    let rows = if of_steps.is_empty() { &summary.runs } else { &of_steps };
    // A load's percentiles are shown also where longtail was the limit; a table has a word there.
    let has_percentiles = |run: &&SummaryRun<'_>| match summary.command {
        "load" => !run.is_hidden(),
        _ => run.is_the_servers(),
    };
    let shown = || rows.iter().filter(has_percentiles);
    // The table of steps has the same percentiles as a sweep's.
    let percentiles =
        shown_percentiles(if of_steps.is_empty() { summary.command } else { "sweep" });
    let is_marked = |run: &SummaryRun<'_>| {
        percentiles.iter().any(|ShownPercentile { quantile, .. }| {
            run.is_uncertain(*quantile) || run.range_of_few(*quantile).is_some()
        })
    };
    let is_shared = |run: &SummaryRun<'_>| {
        summary.command != "load" && run.verdict == SummaryVerdict::SharedCpus
    };
    let is_ours = |run: &SummaryRun<'_>| {
        percentiles.iter().any(|shown| run.generator_part(shown.quantile).is_some())
    };
    let meaning = if shown().any(is_ours) {
        "? not known to ± 20 %, with what may be the generator's"
    } else {
        "? not known to ± 20 %"
    };
    let rough = shown().any(is_marked).then_some(meaning);
    let is_too_few = |run: &SummaryRun<'_>| {
        percentiles.iter().any(|ShownPercentile { quantile, .. }| {
            run.run.response_time(*quantile) == Quantile::TooFew
                && run.range_of_few(*quantile).is_none()
        })
    };
    // The table of steps says so behind each row.
    let too_few = (of_steps.is_empty() && shown().any(is_too_few))
        .then_some("- too few independent responses");
    let shared = shown().any(is_shared).then_some("~ on CPUs that others used, too");
    let marks = [rough, too_few, shared].into_iter().flatten().map(str::to_owned);
    let notes: Vec<String> = marks.chain(cut_short(summary)).collect();
    (!notes.is_empty()).then(|| notes.join(" · "))
}

/// Which rows are of a run that was cut short, and how long it took. In a row it would take the room
/// of columns.
fn cut_short(summary: &Summary<'_>) -> impl Iterator<Item = String> {
    // A load has one run, and no row for it.
    let runs = summary.runs.iter().filter(|run| summary.command != "load" && !run.is_hidden());
    runs.filter(|run| judge::is_shorter(run.run)).map(|run| {
        format!("{} was cut short after {}", run.label, number::length(run.run.measured))
    })
}

/// A summary to lay out, and how.
struct AnswerLayout<'a> {
    summary: &'a Summary<'a>,
    width: Width,
    paint: &'a dyn Fn(Emphasis, &str) -> String,
}

impl<'a> AnswerLayout<'a> {
    fn of(
        summary: &'a Summary<'a>,
        width: Width,
        paint: &'a dyn Fn(Emphasis, &str) -> String,
    ) -> AnswerLayout<'a> {
        AnswerLayout { summary, width: width.at_most(COLUMNS), paint }
    }

    /// Whether the thresholds are met, what was measured, its figures, and the conclusion.
    fn opening(&self, study: &Study, parts: AnswerParts, is_full: bool) -> String {
        let mut text = self.thresholds();
        if parts.has_setup {
            for line in &self.summary.measured {
                wrap(&mut text, self.width, "", &shortened(line, line.split(' ')));
            }
            text.push('\n');
        }
        if let Study::Load(study) = study {
            wrap(&mut text, self.width, "  ", &load_answer::rates(&self.summary.runs[0]));
            let table = self.table(is_full);
            text += if table.is_empty() { "" } else { "\n" };
            text += &table;
            text += &self.classes(is_full);
            if parts.has_pictures {
                text += &load_answer::pictures(study, &self.summary.runs[0], self.width, is_full);
            }
        } else if self.is_size_search() {
            // Whoever asks how many threads reads this, and perhaps the tables.
            text += &self.sentence();
            if !parts.has_pictures {
                return text;
            }
            text += if is_full { "\n" } else { "" };
            text += &self.table(is_full);
            text += &self.classes(is_full);
            if let Some(notes) =
                self.summary.comparison.as_ref().and_then(comparison::notes_on_sizes)
            {
                wrap(&mut text, self.width, "  ", &notes);
            }
            return text;
        } else if self.is_of_pairs() {
            // A sentence for each pair says what the table has, and who reads on looks it up there.
            text += &self.sentence();
            text += "\n";
            text += &self.table(is_full);
            text += &self.classes(is_full);
            if let Some(legend) = legend(self.summary).filter(|_| parts.has_hints) {
                wrap(&mut text, self.width, "  ", &legend);
            }
            return text;
        } else {
            text += &self.table(is_full);
            text += &self.classes(is_full);
        }
        if let Some(legend) = legend(self.summary) {
            wrap(&mut text, self.width, "  ", &legend);
        }
        let sentence = self.sentence();
        let gap = if text.ends_with("\n\n") || sentence.is_empty() { "" } else { "\n" };
        text + gap + &sentence
    }

    /// A line for each threshold and each check of the responses, those that are not met first: they
    /// decide the exit code.
    fn thresholds(&self) -> String {
        let mut text = String::new();
        for headline in self.summary.headlines() {
            let emphasis = match headline.result {
                HeadlineResult::Met => Emphasis::Strong,
                HeadlineResult::Missed => Emphasis::Bad,
                HeadlineResult::CannotTell => Emphasis::Doubtful,
            };
            let mut lines = String::new();
            wrap(&mut lines, self.width, "", headline.sentence);
            lines.lines().for_each(|line| text += &((self.paint)(emphasis, line) + "\n"));
        }
        if text.is_empty() { text } else { text + "\n" }
    }

    /// The table, and for a comparison those below it. In a full report all columns stay, in parts
    /// one below the other.
    fn table(&self, is_full: bool) -> String {
        let comparison = self.summary.comparison.iter();
        let below = comparison.flat_map(|it| comparison::tables_below(it, !is_full));
        let of = " of this table";
        let below = below.map(|table| format!("\n{}", self.fitted(&table, of, 0, is_full)));
        self.main_table(is_full) + &below.collect::<String>()
    }

    /// A table without the columns for which there is no room, or in a full report in parts.
    fn fitted(&self, table: &DataTable, of: &str, indent: usize, is_full: bool) -> String {
        if is_full {
            return text::table(table, indent, self.width);
        }
        let narrowed = text::narrowed(table, indent, self.width);
        let shown = text::table(&narrowed.table, indent, self.width);
        shown + &left_out(&narrowed.left, of, self.width)
    }

    /// The classes of requests; in a full report they have a section of their own.
    fn classes(&self, is_full: bool) -> String {
        let Some(classes) = classes(self.summary).filter(|_| !is_full) else {
            return String::new();
        };
        let mut text = format!("\n{}", self.fitted(&classes.table, "", INDENT, is_full));
        if let Some(below) = classes.below {
            wrap(&mut text, self.width, "  ", &below);
        }
        text
    }

    fn is_size_search(&self) -> bool {
        self.summary.comparison.as_ref().is_some_and(comparison::is_size_search)
    }

    /// Whether arms combine settings, so that the conclusion has a sentence for each pair.
    fn is_of_pairs(&self) -> bool {
        self.summary.comparison.as_ref().is_some_and(comparison::are_combinations)
    }

    fn main_table(&self, is_full: bool) -> String {
        if self.is_size_search() && !is_full {
            return String::new();
        }
        let table = match &self.summary.comparison {
            Some(comparison) => comparison::table(comparison, !is_full),
            None => table(self.summary),
        };
        if table.rows.is_empty() && matches!(self.summary.command, "load" | "capacity") {
            return String::new();
        }
        let indent = if self.summary.comparison.is_some() { 0 } else { INDENT };
        let text = self.fitted(&table, "", indent, is_full);
        let is_bad = |line: &str| NO_FIGURE.iter().any(|(_, word)| line.ends_with(word));
        let shown = |line: &str| {
            if is_bad(line) { (self.paint)(Emphasis::Bad, line) } else { line.to_owned() }
        };
        text.lines().map(|line| shown(line) + "\n").collect()
    }

    fn sentence(&self) -> String {
        let mut sentence = String::new();
        if self.summary.sentence.is_empty() {
            return sentence;
        }
        for line in self.summary.sentence.lines() {
            wrap(&mut sentence, self.width, "", line);
        }
        // A search has to go beyond what the server can do.
        let is_bad =
            self.summary.capacity.is_none() && self.summary.verdict >= SummaryVerdict::Overloaded;
        let emphasis = if is_bad { Emphasis::Bad } else { Emphasis::Strong };
        sentence.lines().map(|line| (self.paint)(emphasis, line) + "\n").collect()
    }

    /// How many doubts and commands there is room for below this opening.
    fn fitting_parts(&self, opening: &str, more: &str) -> AnswerParts {
        // A comparison has a row for each figure, not for each run.
        let is_by_run = self.summary.comparison.is_none() && self.summary.capacity.is_none();
        let runs = if is_by_run { self.summary.runs.len() } else { 0 };
        // On a narrower terminal the same text takes more lines.
        let lines = if self.is_size_search() {
            LINES_OF_A_SIZE
        } else {
            LINES * COLUMNS / self.width.columns().unwrap_or(COLUMNS)
        };
        let room = (lines + runs.saturating_sub(ROWS)).saturating_sub(opening.lines().count());
        // Of a sweep one reason says what the limit is, and the next why some requests wait longer.
        let main_reasons = if self.summary.command == "sweep" && is_by_run { 2 } else { 1 };
        let doubts = DOUBTS.max(self.bad_doubts());
        let mut parts = AnswerParts { doubts, main_reasons, ..AnswerParts::ALL };
        // What was interrupted always says how to go on.
        let least = usize::from(self.summary.interrupted);
        // Leave out doubts and commands, one at a time, until the answer fits.
        loop {
            let ending = joined_by_gap(String::new(), &(self.ending(parts) + more));
            if ending.lines().count() <= room {
                return parts;
            }
            if parts.doubts + parts.commands <= least {
                // Of a comparison several sentences stand above the table.
                let reasons = if self.summary.comparison.is_some() { 1 } else { parts.reasons };
                return AnswerParts { reasons, ..parts };
            }
            let has_bad_doubts_alone = parts.doubts > 0 && parts.doubts <= self.bad_doubts();
            // The first command settles what the conclusion leaves open, so it is left out last; but
            // what a comparison concludes stands, as far as nothing speaks against it.
            if parts.commands > 1 && parts.commands >= parts.doubts || parts.doubts == 0 {
                parts.commands -= 1;
            } else if has_bad_doubts_alone && parts.reasons > 1 {
                parts.reasons = 1;
            } else if has_bad_doubts_alone
                && parts.commands > 0
                && self.summary.comparison.is_some()
            {
                parts.commands -= 1;
            } else {
                parts.doubts -= 1;
            }
        }
    }

    /// Why, whether to trust it, what to type next; of each at most as much as `parts` says.
    fn ending(&self, parts: AnswerParts) -> String {
        let hidden = self.doubts().saturating_sub(parts.doubts);
        let mut trust = self.trust(parts);
        if hidden > 0 {
            let before = label(usize::from(!trust.is_empty()), "  Trust  ");
            let more = format!("… {hidden} more: longtail report --full");
            wrap(&mut trust, self.width, before, &more);
        }
        let mut next = self.next(parts);
        let hidden = self.summary.next.len().saturating_sub(parts.commands);
        if hidden > 0 && parts.commands > 0 {
            let more = format!("… {hidden} more: longtail report --full");
            wrap(&mut next, self.width, "         ", &more);
        }
        self.why(parts) + &trust + &next
    }

    /// The same for a terminal with too few rows; one line says what was left out, and where it is.
    fn ending_on_screen(&self, parts: AnswerParts) -> String {
        let reasons = self.summary.reasons().count().saturating_sub(parts.reasons);
        let doubts = self.doubts_and_after().skip(parts.doubts);
        let doubts = doubts.filter(|line| line.mark != Grade::Passed).count();
        let commands = self.summary.next.len().saturating_sub(parts.commands);
        let hidden = [(reasons, "reason"), (doubts, "doubt"), (commands, "command")];
        let hidden = hidden.iter().filter(|(count, _)| *count > 0);
        let mut hidden: Vec<String> =
            hidden.map(|(count, what)| number::count_of(*count as u64, what)).collect();
        if !parts.has_pictures && self.summary.command == "load" {
            hidden.push("1 picture".to_owned());
        }
        if !parts.has_pictures && self.is_size_search() {
            hidden.push("the table of sizes".to_owned());
        }
        if !parts.has_hints && self.is_of_pairs() {
            hidden.push("1 note".to_owned());
        }
        if !parts.has_setup {
            hidden.push("the setup".to_owned());
        }
        let more = match hidden.as_slice() {
            [] => MORE.to_owned(),
            hidden => format!("longtail report --full: {}", listed(hidden)),
        };
        let mut text = self.why(parts) + &self.trust(parts) + &self.next(parts);
        wrap(&mut text, self.width, "  More   ", &more);
        text
    }

    /// What may be shown where a later part that left made room, the best first: a reason comes back, then
    /// what speaks for the figures, then the next main reason, doubts and commands. Of what speaks for them and against them
    /// one part is enough, but that a study was interrupted is a doubt, and stays; the conclusion of a
    /// load or a sweep says it itself.
    fn coming_back(&self, parts: AnswerParts, all: AnswerParts) -> Vec<AnswerParts> {
        let is_interrupted =
            self.summary.interrupted && !matches!(self.summary.command, "load" | "sweep");
        let mut worst_first = Vec::new();
        for reasons in [parts.reasons, parts.reasons.max(1)] {
            for has_passed in [parts.has_passed, true] {
                let has_line = has_passed && !is_interrupted && self.has_passed_line();
                let fewest = if has_line { 0 } else { parts.doubts };
                for reasons in [reasons, reasons.max(parts.main_reasons)] {
                    for doubts in fewest..=all.doubts {
                        for commands in parts.commands..=all.commands {
                            let more =
                                AnswerParts { doubts, has_passed, commands, reasons, ..parts };
                            worst_first.push(more);
                        }
                    }
                }
            }
        }
        worst_first.into_iter().rev().collect()
    }

    /// The answer for a terminal with too few rows for all of it.
    fn on_screen(&self, study: &Study, parts: AnswerParts) -> String {
        let opening = self.opening(study, parts, false);
        joined_by_gap(opening, &self.ending_on_screen(parts))
    }

    fn why(&self, parts: AnswerParts) -> String {
        let mut text = String::new();
        for (at, reason) in self.summary.reasons().take(parts.reasons).enumerate() {
            wrap(&mut text, self.width, label(at, "  Why    "), reason);
        }
        text
    }

    fn next(&self, parts: AnswerParts) -> String {
        let next = self.summary.next.iter().take(parts.commands).enumerate();
        next.map(|(at, next)| continued(label(at, "  Next   "), next, self.width)).collect()
    }

    /// Whether a line of trust speaks for the figures.
    fn has_passed_line(&self) -> bool {
        self.summary.trust.iter().any(|line| line.mark == Grade::Passed)
    }

    /// How many doubts are so bad that a further reason leaves before them: of a comparison, where many
    /// figures depend on each, all that are bad.
    fn bad_doubts(&self) -> usize {
        let bad = self.doubts_and_after().filter(|line| line.mark >= Grade::Doubtful).count();
        if self.summary.comparison.is_some() { bad } else { bad.min(1) }
    }

    /// How many lines of trust are doubts, or stand below one.
    fn doubts(&self) -> usize {
        self.doubts_and_after().count()
    }

    /// What there is room for after the lines that speak for all figures. What speaks for some of them
    /// stands below the doubts, and leaves before these.
    fn doubts_and_after(&self) -> impl Iterator<Item = &TrustLine> {
        self.summary.trust.iter().skip_while(|line| line.mark == Grade::Passed)
    }

    /// What speaks for the figures, and the first doubts about them.
    fn trust(&self, parts: AnswerParts) -> String {
        let mut text = String::new();
        let mut shown = 0;
        let mut doubtful: usize = 0;
        let is_shown = |line: &&TrustLine| {
            parts.has_passed || line.mark != Grade::Passed || parts.doubts.min(self.doubts()) == 0
        };
        for line in self.summary.trust.iter().filter(is_shown) {
            let is_counted = line.mark != Grade::Passed || doubtful > 0;
            doubtful += usize::from(is_counted);
            if !is_counted || doubtful <= parts.doubts {
                let is_first = doubtful == 1 || parts.doubts == usize::MAX;
                let is_hinted = parts.has_hints && (line.mark == Grade::Failed || is_first);
                text += &self.trust_line(label(shown, "  Trust  "), line, is_hinted);
                shown += 1;
            }
        }
        text
    }

    fn trust_line(&self, before: &str, line: &TrustLine, is_hinted: bool) -> String {
        let hint =
            line.hint.filter(|_| is_hinted).map(|hint| format!(" → {hint}")).unwrap_or_default();
        let mut own = String::new();
        wrap(&mut own, self.width, "           ", &format!("{}{hint}", line.sentence));
        let emphasis = match line.mark {
            Grade::Note | Grade::Passed => Emphasis::Plain,
            Grade::Uncertain | Grade::Doubtful => Emphasis::Doubtful,
            Grade::Failed => Emphasis::Bad,
        };
        format!("{before}{} {}", (self.paint)(emphasis, line.mark.sign()), own.trim_start())
    }
}

/// The label before the first line of a part, and room for it before the others.
fn label(at: usize, name: &'static str) -> &'static str {
    if at == 0 { name } else { "         " }
}

/// A command and why to run it. A long one continues on lines that a shell reads as one, so that it
/// can be pasted.
fn continued(before: &str, next: &NextCommand, width: Width) -> String {
    let mut text = String::new();
    let mut line = before.to_owned();
    let words = text::shell_words(&next.command);
    let command = shortened(&next.command, words.into_iter());
    let indent = columns_of(before) + 2;
    for word in text::flags_with_values(text::shell_words(&command), indent, width) {
        let word = word.as_str();
        if !width.fits(columns_of(&line) + columns_of(word) + 3) {
            _ = writeln!(text, "{line}\\");
            line = " ".repeat(text::indent_of_word(word, indent, width));
        }
        line.push_str(word);
        line.push(' ');
    }
    let cut = if command == next.command { "" } else { "; … is in this study's command line" };
    let why = format!("{}{cut}", next.why);
    if width.fits(columns_of(&line) + columns_of(&why) + 4) {
        return text + &line + "  # " + &why + "\n";
    }
    _ = writeln!(text, "{}", line.trim_end());
    text + &text::comment(&" ".repeat(columns_of(before) + 2), &why, width)
}

/// The longest word of an answer, such as a URL with its query or a body, and what is left of a
/// longer one.
const LONGEST_WORD: usize = 70;
const CUT_WORD: usize = 40;

/// A line of these words, of which the long ones are cut. They are whole in the study.
fn shortened<'t>(line: &'t str, words: impl Iterator<Item = &'t str>) -> Cow<'t, str> {
    let mut shortened = Cow::Borrowed(line);
    for word in words.filter(|word| columns_of(word) > LONGEST_WORD) {
        let end = if word.ends_with('\'') { "…'" } else { "…" };
        let cut: String = word.chars().take(CUT_WORD).chain(end.chars()).collect();
        shortened = Cow::Owned(shortened.replacen(word, &cut, 1));
    }
    shortened
}

/// The table. A sweep has a row for each run, a comparison for each figure or arm, and a load has a
/// column for each percentile.
pub(crate) fn table(summary: &Summary<'_>) -> DataTable {
    if let Some(found) = &summary.capacity {
        return capacity::in_answer(found);
    }
    match (&summary.comparison, summary.runs.as_slice()) {
        (Some(comparison), _) => comparison::table(comparison, false),
        (None, [run]) if !run.run.steps.is_empty() => step_table::table(run),
        (None, [run]) if summary.command == "load" => load_answer::percentiles(run),
        (None, runs) => run_tables::answer(runs),
    }
}

/// The classes of requests of the runs, where they are told apart.
pub(crate) fn classes(summary: &Summary<'_>) -> Option<ShownClasses> {
    match (&summary.comparison, &summary.capacity) {
        (None, None) => class_table::of_runs(&summary.runs),
        (Some(_), _) => class_table::of_arms(&summary.runs),
        (None, Some(found)) => class_table::at_low(&summary.runs, found),
    }
}

/// The answer as Markdown for a pull request: the conclusion, the table, why, whether to trust it,
/// and everything else folded.
pub fn markdown(study: &Study, saved: Option<&str>) -> String {
    let summary = Summary::of(study, saved.map(str::to_owned));
    let mut parts = unfolded_markdown(&summary);
    let mut folded = summary.comparison.as_ref().map(method_in_markdown).unwrap_or_default();
    folded.push(crate::markdown::whole(&crate::details(study)));
    let method = if summary.comparison.is_some() { "Method, the command" } else { "The command" };
    parts.push(crate::markdown::details(
        &format!("{method}, more columns and versions (all figures: longtail report --full)"),
        &crate::text::joined(folded),
    ));
    crate::text::joined(parts)
}

/// What the reader of a pull request unfolds to see how arms were compared.
fn method_in_markdown(comparison: &comparison::SummaryComparison) -> Vec<String> {
    let method = format!("{}\n", crate::markdown::escaped(&comparison.method));
    let tables = comparison::tables_left_out(comparison).into_iter();
    std::iter::once(method).chain(tables.map(|it| crate::markdown::pipe_table(&it))).collect()
}

/// A flag as code wherever it stands in these lines.
fn in_code(lines: &mut [String], flag: &str) {
    for line in lines {
        let places: Vec<usize> = comparison::whole_words(line, flag).collect();
        for at in places.into_iter().rev() {
            line.replace_range(at..at + flag.len(), &format!("`{flag}`"));
        }
    }
}

/// The part of it that is not folded.
pub(crate) fn unfolded_markdown(summary: &Summary<'_>) -> Vec<String> {
    let line = |text: &str| format!("{}\n", crate::markdown::escaped(text));
    let expected = summary.headlines().into_iter().map(|headline| headline.sentence.to_owned());
    let concluded = summary.sentence.lines().map(str::to_owned);
    let headlines = expected.chain(concluded).filter(|line| !line.is_empty());
    let mut headlines: Vec<String> =
        headlines.map(|line| crate::markdown::escaped(&line)).collect();
    if summary.comparison.as_ref().and_then(comparison::meaning_of_names).is_some() {
        in_code(&mut headlines, "-k");
    }
    let is_of_pairs = summary.comparison.as_ref().is_some_and(comparison::are_combinations);
    let emphasised = |line: String| match line.split_once(": ") {
        // Of many pairs a reader looks for one: only what names it stands out.
        Some((pair, rest)) if is_of_pairs => format!("**{pair}:** {rest}\n"),
        _ => format!("**{line}**\n"),
    };
    let mut parts: Vec<String> = headlines.into_iter().map(emphasised).collect();
    // Whoever reads a comment on a pull request knows neither the server nor the load.
    parts.push(line(&match &summary.comparison {
        Some(comparison) => comparison.setup.join(" · "),
        None => summary.measured.join(" · "),
    }));
    let tables = match &summary.comparison {
        Some(comparison) => comparison::tables_in_markdown(comparison),
        None => vec![table(summary)],
    };
    if summary.command == "load" {
        parts.push(line(&load_answer::rates(&summary.runs[0])));
    }
    if !tables[0].rows.is_empty() {
        parts.extend(tables.iter().map(crate::markdown::pipe_table));
        let is_size_search = summary.comparison.as_ref().is_some_and(comparison::is_size_search);
        let compared = summary.comparison.as_ref().filter(|_| !is_size_search);
        parts.extend(compared.map(|it| line(&comparison::meaning_of_signs(it))));
        parts.extend(legend(summary).filter(|_| !is_size_search).map(|legend| line(&legend)));
    }
    if let Some(classes) = classes(summary) {
        parts.push(crate::markdown::pipe_table(&classes.table));
        parts.extend(classes.below.map(|below| line(&below)));
    }
    let mut reasons: Vec<String> =
        summary.reasons().map(|reason| line(&format!("- Why: {reason}"))).collect();
    if summary.comparison.as_ref().and_then(comparison::meaning_of_names).is_some() {
        in_code(&mut reasons, "-k");
    }
    let trust = summary
        .trust
        .iter()
        .take(1 + DOUBTS)
        .map(|it| line(&format!("- {} {}", it.mark.sign(), it.sentence)));
    parts.push(reasons.into_iter().chain(trust).collect());
    parts
}

#[cfg(test)]
mod tests {
    use model::{Histogram, Nanos};

    use super::*;

    #[test]
    fn a_flag_is_code_wherever_it_is_a_word() {
        let mut lines =
            ["8.0.2 --keep is the same.", "6.6.1 -k: worse.", "-k on 8.0.2, not -kx: -k"]
                .map(str::to_owned);
        in_code(&mut lines, "-k");
        assert_eq!(
            lines,
            ["8.0.2 --keep is the same.", "6.6.1 `-k`: worse.", "`-k` on 8.0.2, not -kx: `-k`"]
        );
    }

    #[test]
    fn a_growing_table_has_no_column_without_a_figure() {
        let lines = |study: model::SweepStudy| {
            GrowingTable::of(&study.into()).lines(Width::ANY, usize::MAX).join("\n")
        };
        let mut study = testkit::study::canonical();
        let judged = lines(study.clone());
        assert!(judged.contains("FIFO"), "{judged}");
        study.runs.iter_mut().for_each(|run| run.judgement = None);
        let not_judged = lines(study);
        assert!(!not_judged.contains("FIFO") && not_judged.contains("p99"), "{not_judged}");
    }

    #[test]
    fn a_search_that_ended_before_its_first_trial_has_more_to_show() {
        let mut study = testkit::capacity::stopped();
        study.trials.clear();
        let shows_more = |study: &model::CapacityStudy| {
            let answer = whole(&study.clone().into(), Some("x.json"), Width::ANY);
            answer.contains("  More   longtail report")
        };
        assert!(shows_more(&study));
        study.closed_loop = None;
        assert!(!shows_more(&study), "nothing was measured");
    }

    #[test]
    fn a_next_command_is_not_broken_inside_a_quoted_word() {
        let command = "longtail sweep -w2 -t5:5 '--from=ssh box2' --multiples=4,8,16".to_owned();
        let next = NextCommand { command: command.clone(), why: "why".to_owned() };
        for columns in 40..80 {
            let lines = continued("  Next   ", &next, Width::of(columns));
            let words: Vec<&str> =
                lines.split_once("  # ").unwrap().0.split_whitespace().skip(1).collect();
            assert!(lines.contains("'--from=ssh box2'"), "{lines}");
            assert_eq!(words.join(" ").replace("\\ ", ""), command, "{lines}");
        }
    }

    #[test]
    fn a_word_that_hardly_fits_begins_further_left() {
        let puma = format!("'ruby -I {0}/lib {0}/bin/puma'", "/home/me/src/puma-8.0.2");
        for length in 30..=LONGEST_WORD {
            let word = format!("{puma:x<length$}");
            let command = format!("longtail sweep -w2 -t5:5 --puma {word} -d0.1 -k");
            let next = NextCommand { command, why: "without keep-alive".to_owned() };
            let lines = continued("  Next   ", &next, Width::of(80));
            assert!(lines.lines().all(|line| columns_of(line) <= 80), "{lines}");
            assert!(lines.contains(&word[..20]), "{lines}");
        }
    }

    #[test]
    fn the_legend_stands_wherever_a_load_has_a_mark() {
        let mut load = testkit::load::closed_counted();
        let judgement = load.run.judgement.as_mut().unwrap();
        judgement.verdict = model::Verdict::GeneratorBound;
        let lines = whole(&Study::from(load), None, Width::of(100));
        assert!(lines.contains("GENERATOR-BOUND") && lines.contains("? not known to"), "{lines}");
    }

    #[test]
    fn a_long_body_is_cut_in_a_next_command() {
        let body = "a b".repeat(1000);
        let command = format!("longtail load --data '{body}' http://127.0.0.1:9292/ --for 60s");
        let next = NextCommand { command, why: "p99 needs more".to_owned() };
        let lines = continued("  Next   ", &next, Width::of(80));
        assert!(lines.lines().all(|line| columns_of(line) <= 80), "{lines}");
        assert!(lines.contains("…' ") && lines.contains("--for 60s"), "{lines}");
        assert!(lines.contains("p99 needs more; … is in this study's command line"), "{lines}");
    }

    #[test]
    fn in_markdown_the_mean_of_slow_requests_has_its_unit() {
        let mut study = testkit::study::canonical();
        study.runs.iter_mut().for_each(|run| run.tally.response_time = two_groups());
        let study = Study::from(study);
        let table = crate::markdown::pipe_table(&table(&Summary::of(&study, None)));
        assert!(
            table.contains(" mean of slow requests, ms ")
                && table.contains(" share of slow requests |"),
            "{table}"
        );
    }

    /// Nine requests in ten take 100 ms, the tenth takes a second.
    fn two_groups() -> Histogram {
        let mut times = Histogram::default();
        for number in 0..1000 {
            times.record(Nanos::from_millis(if number % 10 == 0 { 1000 } else { 100 }));
        }
        times
    }
}
