//! A study as text, in pieces: what is said before the table, its head, a row for each run as it is done, and the rest.

use std::fmt::Write as _;

use model::{Diagnostic, Run, Socket, SweepStudy};

use crate::claimed::rows;
use crate::doubts::{self, Noted};
use crate::facts::{self, Labelled};
use crate::number::{self, NONE};
use crate::shares;
use crate::summary::{self, Spread};
use crate::table::{self, Column, Fitted};
use crate::width::{self, Width, broken, columns_of, flow, wrap};
use crate::{Columns, Layout, anatomy, columns, heard, intervals, kernel, over_time, puma, theory, verdicts, watched};

/// What stands before the table: first the command line that repeats it, then server, machine and load.
///
/// Needs no run: it is printed before the first.
pub fn opening(study: &SweepStudy, width: Width) -> String {
    format!("{}\n{}\n", width::command(&study.command_line, width), list(&facts::environment(study), width))
}

/// Words in front, what they name behind.
pub(crate) fn list(named: &[(&str, Vec<String>)], width: Width) -> String {
    let mut text = String::new();
    for (what, lines) in named {
        for (at, line) in lines.iter().enumerate() {
            wrap(&mut text, width, &format!("{:<9}", if at == 0 { what } else { "" }), line);
        }
    }
    text
}

/// The table's head.
pub fn table_head(study: &SweepStudy, layout: Layout) -> String {
    let columns: Vec<Column> = match layout.columns {
        Columns::Puma => return puma::table_head(study),
        Columns::Longtail if study.plan.with.is_some() => {
            columns_in(rows::fitting(study, layout.width).0, |shown| shown.column)
        }
        Columns::Longtail => columns_in(columns::fitting(study, layout.width).0, |shown| shown.column),
    };
    table::head(&columns)
}

fn columns_in<T>(shown: Vec<T>, column: fn(T) -> Column) -> Vec<Column> {
    shown.into_iter().map(column).collect()
}

/// One run's line of the table.
pub fn row(study: &SweepStudy, run: &Run, layout: Layout) -> String {
    let mut row = match layout.columns {
        Columns::Longtail => {
            let (columns, _) = columns::fitting(study, layout.width);
            let cells = columns::cells(&columns, run);
            table::row(&columns_in(columns, |shown| shown.column), &cells)
        }
        Columns::Puma => puma::row(study, run),
    };
    row.push('\n');
    row
}

/// The columns that the table has no room for, by name.
fn left_out(study: &SweepStudy, layout: Layout) -> Vec<&'static str> {
    match layout.columns {
        Columns::Puma => Vec::new(),
        Columns::Longtail if study.plan.with.is_some() => {
            rows::fitting(study, layout.width).1.iter().map(|shown| shown.markdown).collect()
        }
        Columns::Longtail => columns::fitting(study, layout.width).1.iter().map(|shown| shown.markdown).collect(),
    }
}

/// Which columns a table has no room for, and how to see them; nothing where it has all.
pub(crate) fn said_of_left_out(left_out: &[&'static str], width: Width) -> String {
    let Some(columns) = width.columns().filter(|_| !left_out.is_empty()) else { return String::new() };
    let last = left_out.len() - 1;
    // Without its unit.
    let name = |name: &&'static str| name.split(',').next().unwrap_or(name);
    let ended = |(at, name)| format!("{name}{}", if at < last { "," } else { ":" });
    let names: Vec<String> = left_out.iter().map(name).enumerate().map(ended).collect();
    let how = "longtail report --width 0 shows all of the last study".split(' ');
    let mut text = String::new();
    flow(
        &mut text,
        width,
        &format!("no room at {columns} columns for"),
        2,
        names.iter().map(String::as_str).chain(how),
    );
    text
}

/// What stands after the table: repeats summed up; whether to believe it: verdicts, errors, warnings; why it is so: the server
/// meanwhile, theory, workers; the words of the head and the total time.
pub fn closing(study: &SweepStudy, layout: Layout) -> String {
    let runs = facts::labelled(study);
    let width = layout.width;
    let mut parts = vec![
        said_of_left_out(&left_out(study, layout), width),
        facts::missing_runs(study.runs.len() + study.claimed_runs.len(), study.plan.runs(), study.interrupted)
            .map(|missing| broken(&missing, width))
            .unwrap_or_default(),
        summaries(study, width),
        verdicts_of(&runs, width),
        rows::claims_text(study, width),
        errors(&runs, width),
        warnings(&study.warnings, &doubts::noted_of(study), width),
        intervals_of(study, width),
        anatomy_of(study, width),
        watched_of(&runs, width),
        kernel_of(&runs, &[study.plan.server.socket], width),
        kernel::why_none(study).map(|why| broken(&why, width)).unwrap_or_default(),
        heard_of(study, width),
        over_time_of(study, width),
        theory_of(study, width),
        workers(study, width),
    ];
    if !study.runs.is_empty() || !study.claimed_runs.is_empty() {
        parts.push(words(study, layout));
    }
    parts.push(match layout.columns {
        Columns::Longtail => format!("total time {}\n", number::minutes(study.total_time)),
        Columns::Puma => format!("{:>5} Total Time\n", number::minutes(study.total_time)),
    });
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |text, part| text + "\n" + part)
}

/// The whole report.
pub fn whole(study: &SweepStudy, layout: Layout) -> String {
    let mut text = opening(study, layout.width) + &table_head(study, layout);
    for run in &study.runs {
        text.push_str(&row(study, run, layout));
    }
    for run in &study.claimed_runs {
        text.push_str(&rows::row(study, run, layout));
    }
    text + &closing(study, layout)
}

/// Columns of a line of evidence at the most.
const EVIDENCE_WIDTH: usize = 140;

/// A line a run: what limited it, and the figures of the evidence; then what was not passed, a remedy once.
pub(crate) fn verdicts_of(runs: &[Labelled<'_>], width: Width) -> String {
    let judged = || runs.iter().filter_map(|run| Some((&run.label, run.run.judgement.as_ref()?)));
    let head = verdicts::HEAD.map(str::to_owned).to_vec();
    let figures = judged().map(|(label, judgement)| verdicts::figures(label, judgement));
    let lines: Vec<_> = std::iter::once(head).chain(figures).collect();
    if lines.len() == 1 {
        return String::new();
    }
    let mut text = "verdicts\n".to_owned();
    for words in verdicts::WORDS {
        wrap(&mut text, width, "", &format!("  {words}"));
    }
    text.push_str(&Fitted { indent: 2, may_part: verdicts::may_part, ..Fitted::new(&lines) }.text(width));
    for (label, judgement) in judged() {
        if let Some(limit) = verdicts::limit(judgement) {
            wrap(&mut text, width, "", &format!("  {label} {limit}"));
        }
    }
    for doubt in verdicts::troubles(judged()) {
        for seen in &doubt.seen {
            wrap(&mut text, width, "", &format!("  {}", seen.line()));
        }
        wrap(&mut text, width, "", &format!("    → {}", doubt.hint));
    }
    text
}

fn intervals_of(study: &SweepStudy, width: Width) -> String {
    let lines = intervals::lines(study);
    if lines.is_empty() {
        return String::new();
    }
    let indented = |mut line: Vec<String>| {
        line[0] = format!("  {}", line[0]);
        line.iter_mut().skip(1).for_each(|cell| *cell = apart(cell));
        line
    };
    let lines: Vec<_> = std::iter::once(intervals::head()).chain(lines).map(indented).collect();
    broken(intervals::TITLE, width) + &Fitted::new(&lines).text(width)
}

fn anatomy_of(study: &SweepStudy, width: Width) -> String {
    let runs = anatomy::lines(study);
    let label_width = runs.iter().map(|(label, _)| columns_of(label)).max().unwrap_or(0);
    let mut text = if runs.is_empty() { String::new() } else { broken(anatomy::TITLE, width) };
    for (label, lines) in runs {
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            // An equation is broken before its summands.
            let pieces = line.split_inclusive(" + ");
            let before = format!("  {label:<label_width$}  ");
            flow(&mut text, width, &before, columns_of(&before) + 2, pieces.map(str::trim_end));
        }
    }
    text
}

/// The drawings, aligned.
pub(crate) fn drawings(study: &SweepStudy, width: Width) -> String {
    let widest = |all: &mut dyn Iterator<Item = &String>| all.map(|one| columns_of(one)).max().unwrap_or(0);
    let mut runs = over_time::lines(study, over_time::WIDTH);
    let labels = widest(&mut runs.iter().map(|(label, _)| label));
    let names = widest(&mut runs.iter().flat_map(|(_, curves)| curves).map(|[name, ..]| name));
    let most = widest(&mut runs.iter().flat_map(|(_, curves)| curves).map(|[.., most]| most));
    let beside = 2 + labels + 2 + names + 2 + 2 + most;
    if !width.fits(beside + over_time::WIDTH) {
        let room = width.columns().unwrap_or(0).saturating_sub(beside);
        runs = over_time::lines(study, room.max(over_time::LEAST));
    }
    let mut text = String::new();
    for (label, curves) in &runs {
        for (at, [name, drawing, most]) in curves.iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            _ = writeln!(text, "  {label:<labels$}  {name:<names$}  {drawing}  {most}");
        }
    }
    text
}

fn over_time_of(study: &SweepStudy, width: Width) -> String {
    let drawings = drawings(study, width);
    if drawings.is_empty() { drawings } else { broken(over_time::TITLE, width) + &drawings }
}

/// What was seen of server and kernel meanwhile.
pub(crate) fn watched_of(runs: &[Labelled<'_>], width: Width) -> String {
    let lines = watched::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let head = watched::HEAD.map(str::to_owned).to_vec();
    let lines: Vec<_> = std::iter::once(head).chain(lines).collect();
    let mut text = String::new();
    for line in watched::title(runs) {
        wrap(&mut text, width, "", &line);
    }
    text.push_str(&Fitted { indent: 2, may_part: watched::may_part, ..Fitted::new(&lines) }.text(width));
    for line in watched::missing(runs) {
        wrap(&mut text, width, "", &format!("  {line}"));
    }
    text
}

/// What the kernel's tracepoints told of servers on these kinds of socket.
pub(crate) fn kernel_of(runs: &[Labelled<'_>], sockets: &[Socket], width: Width) -> String {
    let lines = kernel::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let head = kernel::HEAD.map(str::to_owned).to_vec();
    let lines: Vec<_> = std::iter::once(head).chain(lines).collect();
    let mut text = broken(kernel::TITLE, width);
    for words in kernel::words(sockets) {
        wrap(&mut text, width, "", &format!("  {words}"));
    }
    text + &Fitted { indent: 2, lead: 2, may_part: kernel::may_part, ..Fitted::new(&lines) }.text(width)
}

fn heard_of(study: &SweepStudy, width: Width) -> String {
    let (lines, missing) = (heard::lines(study), heard::missing(study));
    let mut text = String::new();
    if !lines.is_empty() {
        let lines: Vec<_> = std::iter::once(heard::HEAD.map(str::to_owned).to_vec()).chain(lines).collect();
        text = broken(heard::TITLE, width) + &Fitted { indent: 2, ..Fitted::new(&lines) }.text(width);
    } else if !missing.is_empty() {
        text.push_str("heard over statsd\n");
    }
    for line in missing {
        wrap(&mut text, width.at_most(EVIDENCE_WIDTH), "", &format!("  {line}"));
    }
    text
}

fn theory_of(study: &SweepStudy, width: Width) -> String {
    let (lines, remarks) = (theory::lines(study), theory::remarks(study));
    if remarks.is_empty() {
        return String::new();
    }
    let indented = |mut line: Vec<String>| {
        line[0] = format!("  {}", line[0]);
        // Each figure a little apart from the one before, and its ±% beside it.
        line.iter_mut().skip(2).step_by(2).for_each(|cell| *cell = apart(cell));
        line
    };
    let mut text = broken(&theory::title(study), width);
    // Of runs that are held against no model there may be no forecast either.
    if !lines.is_empty() {
        let lines: Vec<_> = std::iter::once(theory::head()).chain(lines).map(indented).collect();
        text += &Fitted { lead: 2, may_part: |at| at % 2 == 0, ..Fitted::new(&lines) }.text(width);
    }
    for remark in remarks {
        wrap(&mut text, width.at_most(EVIDENCE_WIDTH), "", &format!("  {remark}"));
    }
    text
}

fn summaries(study: &SweepStudy, width: Width) -> String {
    let summaries = summary::of_multiples(study);
    if summaries.is_empty() {
        return String::new();
    }
    let mut head = ["  mult", "conns", "runs"].map(str::to_owned).to_vec();
    for figure in summary::FIGURES {
        head.extend([apart(figure), "[lowest".to_owned(), "highest]".to_owned()]);
    }
    let mut lines = vec![head];
    for summary in summaries {
        let mut line = vec![table::right(&summary.multiple, 6), summary.connections, summary.runs];
        line.extend(summary.figures.into_iter().flat_map(spread));
        lines.push(line);
    }
    broken("each multiple over its runs: median [lowest highest]; - where one of them has no figure", width)
        + &Fitted { lead: 3, may_part: |at| at % 3 == 0, ..Fitted::new(&lines) }.text(width)
}

fn spread(spread: Spread) -> [String; 3] {
    match spread {
        Some([median, lowest, highest]) => [apart(&median), format!("[{lowest}"), format!("{highest}]")],
        None => [NONE, "", ""].map(str::to_owned),
    }
}

/// The first cell of a group of three, which stands a little apart.
fn apart(cell: &str) -> String {
    format!("  {cell}")
}

fn workers(study: &SweepStudy, width: Width) -> String {
    let blocks = shares::by_worker(study);
    let mut text = String::new();
    for (at, block) in blocks.iter().enumerate() {
        if at == 0 {
            text.push_str(&broken("requests by worker, % of all, deviation from an even share in %", width));
        }
        if at == 0 || blocks[at - 1].source != block.source {
            text.push_str(&broken(&format!("({})", block.source), width));
        }
        let mut head = vec![format!("  {}", block.title)];
        for run in &block.runs {
            head.extend([apart(run), "%".to_owned(), "±%".to_owned()]);
        }
        let mut lines = vec![head];
        for (worker, shares) in &block.workers {
            let cells = shares.iter().flat_map(|[requests, part, off]| [apart(requests), part.clone(), off.clone()]);
            lines.push(std::iter::once(format!("  {worker}")).chain(cells).collect());
        }
        text.push_str(&Fitted { may_part: |at| at % 3 == 0, ..Fitted::new(&lines) }.text(width));
    }
    text
}

pub(crate) fn errors(runs: &[Labelled<'_>], width: Width) -> String {
    let errors = facts::errors(runs);
    if errors.is_empty() {
        return String::new();
    }
    let mut text = "errors by kind\n".to_owned();
    for (run, kinds) in errors {
        wrap(&mut text, width.at_most(EVIDENCE_WIDTH), &format!("  {run}: "), &kinds);
    }
    text
}

pub(crate) fn warnings(of_study: &[Diagnostic], runs: &[Noted<'_>], width: Width) -> String {
    let doubts = doubts::by_kind(of_study, runs);
    if doubts.is_empty() {
        return String::new();
    }
    let mut text = "warnings\n".to_owned();
    for doubt in doubts {
        for seen in &doubt.seen {
            wrap(&mut text, width, "", &format!("  {}: {}", seen.of(runs), seen.text));
        }
        wrap(&mut text, width, "", &format!("    → {}", doubt.hint));
    }
    text
}

fn words(study: &SweepStudy, layout: Layout) -> String {
    let width = layout.width;
    let words = match layout.columns {
        Columns::Puma => puma::words(study),
        Columns::Longtail if study.plan.with.is_some() => rows::words(study, &rows::fitting(study, width).1),
        Columns::Longtail => columns::words(study, &columns::fitting(study, width).1),
    };
    glossary(&words, width)
}

/// Words and what they mean, a line each.
pub(crate) fn glossary(words: &[(&str, &str)], width: Width) -> String {
    let widest = words.iter().map(|(word, _)| columns_of(word)).max().unwrap_or(0);
    let mut text = String::new();
    for (word, meaning) in words {
        wrap(&mut text, width, &format!("{word:<widest$}  "), meaning);
    }
    text
}
