//! A study as text, in pieces: what is said before the table, its head, a row for each run as it is done, and the rest.

use std::fmt::Write as _;

use model::{Caveat, Run, Socket, SweepStudy};

use crate::claimed::rows;
use crate::doubts::{self, Noted};
use crate::facts::{self, Labelled};
use crate::load::text::wrap_at;
use crate::number::{self, NONE};
use crate::shares;
use crate::summary::{self, Spread};
use crate::table::{self, Column, fitted};
use crate::{Columns, anatomy, columns, heard, intervals, kernel, over_time, puma, theory, verdicts, watched};

/// What stands before the table: first the command line that repeats it, then server, machine and load.
///
/// Needs no run: it is printed before the first.
pub fn opening(study: &SweepStudy) -> String {
    format!("{}\n\n{}\n", study.command_line, list(&facts::environment(study)))
}

/// Words in front, what they name behind.
pub(crate) fn list(named: &[(&str, Vec<String>)]) -> String {
    let mut text = String::new();
    for (what, lines) in named {
        for (at, line) in lines.iter().enumerate() {
            _ = writeln!(text, "{:<9}{line}", if at == 0 { what } else { "" });
        }
    }
    text
}

/// The table's head.
pub fn table_head(study: &SweepStudy, columns: Columns) -> String {
    if study.plan.with.is_some() {
        return rows::head(study);
    }
    match columns {
        Columns::Longtail => table::head(&laid_out(study)),
        Columns::Puma => puma::table_head(study),
    }
}

/// One run's line of the table.
pub fn row(study: &SweepStudy, run: &Run, columns: Columns) -> String {
    let mut row = match columns {
        Columns::Longtail => table::row(&laid_out(study), &columns::cells(study, run)),
        Columns::Puma => puma::row(study, run),
    };
    row.push('\n');
    row
}

fn laid_out(study: &SweepStudy) -> Vec<Column> {
    columns::of(study).into_iter().map(|shown| shown.column).collect()
}

/// What stands after the table: repeats summed up, workers, errors, caveats, the words of the head, the total time.
pub fn closing(study: &SweepStudy, columns: Columns) -> String {
    let runs = facts::labelled(study);
    let mut parts = vec![
        facts::missing_runs(study.runs.len() + study.claimed_runs.len(), study.plan.runs(), study.interrupted)
            .map(|missing| format!("{missing}\n"))
            .unwrap_or_default(),
        verdicts_of(&runs),
        intervals_of(study),
        anatomy_of(study),
        watched_of(&runs),
        kernel_of(&runs, &[study.plan.server.socket]),
        kernel::why_none(study).map(|why| why + "\n").unwrap_or_default(),
        heard_of(study),
        over_time_of(study),
        theory_of(study),
        rows::claims_text(study),
        summaries(study),
        workers(study),
        errors(&runs),
        caveats(&study.caveats, &doubts::noted_of(study)),
    ];
    if !study.runs.is_empty() || !study.claimed_runs.is_empty() {
        parts.push(words(study, columns));
    }
    parts.push(match columns {
        Columns::Longtail => format!("total time {}\n", number::minutes(study.total_time)),
        Columns::Puma => format!("{:>5} Total Time\n", number::minutes(study.total_time)),
    });
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |text, part| text + "\n" + part)
}

/// The whole report.
pub fn whole(study: &SweepStudy, columns: Columns) -> String {
    let mut text = opening(study) + &table_head(study, columns);
    for run in &study.runs {
        text.push_str(&row(study, run, columns));
    }
    for run in &study.claimed_runs {
        text.push_str(&rows::row(study, run));
    }
    text + &closing(study, columns)
}

/// Columns of a line of evidence.
const EVIDENCE_WIDTH: usize = 140;

/// One line a run, or two: what limited it, and the evidence.
pub(crate) fn verdicts_of(runs: &[Labelled<'_>]) -> String {
    let judged = runs.iter().filter_map(|run| Some((&run.label, run.run.judgement.as_ref()?)));
    let mut text = String::new();
    for (label, judgement) in judged {
        let mut line = format!("  {label} {}:", verdicts::name(judgement.verdict));
        let pieces = verdicts::evidence(judgement);
        for (at, piece) in pieces.iter().enumerate() {
            let end = if at + 1 == pieces.len() { "" } else { ";" };
            if line.chars().count() + piece.chars().count() + 2 > EVIDENCE_WIDTH {
                _ = writeln!(text, "{line}");
                "       ".clone_into(&mut line);
            }
            _ = write!(line, " {piece}{end}");
        }
        _ = writeln!(text, "{line}");
        for remedy in verdicts::remedies(judgement) {
            _ = writeln!(text, "        → {remedy}");
        }
    }
    if text.is_empty() { text } else { "verdicts\n".to_owned() + &text }
}

fn intervals_of(study: &SweepStudy) -> String {
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
    format!("{}\n{}", intervals::TITLE, fitted(0, &lines))
}

fn anatomy_of(study: &SweepStudy) -> String {
    let runs = anatomy::lines(study);
    let width = runs.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = if runs.is_empty() { String::new() } else { format!("{}\n", anatomy::TITLE) };
    for (label, lines) in runs {
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            _ = writeln!(text, "  {label:<width$}  {line}");
        }
    }
    text
}

/// The drawings, aligned.
pub(crate) fn drawings(study: &SweepStudy) -> String {
    let runs = over_time::lines(study);
    let names = runs.iter().flat_map(|(_, curves)| curves);
    let widest = names.map(|[name, ..]| name.chars().count()).max().unwrap_or(0);
    let width = runs.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, curves) in &runs {
        for (at, [name, drawing, most]) in curves.iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            _ = writeln!(text, "  {label:<width$}  {name:<widest$}  {drawing}  {most}");
        }
    }
    text
}

fn over_time_of(study: &SweepStudy) -> String {
    let drawings = drawings(study);
    if drawings.is_empty() { drawings } else { format!("{}\n{drawings}", over_time::TITLE) }
}

/// What was seen of server and kernel meanwhile.
pub(crate) fn watched_of(runs: &[Labelled<'_>]) -> String {
    let lines = watched::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let head = watched::HEAD.map(str::to_owned).to_vec();
    let lines: Vec<_> = std::iter::once(head).chain(lines).collect();
    let missing = watched::missing(runs).into_iter().map(|line| format!("  {line}"));
    let title: Vec<String> = watched::title(runs);
    let mut text = title.join("\n") + "\n" + &fitted(2, &lines);
    for line in missing {
        _ = writeln!(text, "{line}");
    }
    text
}

/// What the kernel's tracepoints told of servers on these kinds of socket.
pub(crate) fn kernel_of(runs: &[Labelled<'_>], sockets: &[Socket]) -> String {
    let lines = kernel::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let head = kernel::HEAD.map(str::to_owned).to_vec();
    let lines: Vec<_> = std::iter::once(head).chain(lines).collect();
    let words = kernel::words(sockets).join("\n  ");
    format!("{}\n  {words}\n{}", kernel::TITLE, fitted(2, &lines))
}

fn heard_of(study: &SweepStudy) -> String {
    let (lines, missing) = (heard::lines(study), heard::missing(study));
    let mut text = String::new();
    if !lines.is_empty() {
        let lines: Vec<_> = std::iter::once(heard::HEAD.map(str::to_owned).to_vec()).chain(lines).collect();
        text = format!("{}\n{}", heard::TITLE, fitted(2, &lines));
    } else if !missing.is_empty() {
        text.push_str("heard over statsd\n");
    }
    for line in missing {
        wrap_at(&mut text, EVIDENCE_WIDTH, "", &format!("  {line}"));
    }
    text
}

fn theory_of(study: &SweepStudy) -> String {
    let lines = theory::lines(study);
    if lines.is_empty() {
        return String::new();
    }
    let indented = |mut line: Vec<String>| {
        line[0] = format!("  {}", line[0]);
        // Each figure a little apart from the one before, and its ±% beside it.
        line.iter_mut().skip(2).step_by(2).for_each(|cell| *cell = apart(cell));
        line
    };
    let lines: Vec<_> = std::iter::once(theory::head()).chain(lines).map(indented).collect();
    let mut text = format!("{}\n{}", theory::title(study), fitted(0, &lines));
    for remark in theory::remarks(study) {
        wrap_at(&mut text, EVIDENCE_WIDTH, "", &format!("  {remark}"));
    }
    text
}

fn summaries(study: &SweepStudy) -> String {
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
    format!(
        "each multiple over its runs: median [lowest highest]; - where one of them has no figure\n{}",
        fitted(0, &lines)
    )
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

fn workers(study: &SweepStudy) -> String {
    let blocks = shares::by_worker(study);
    let mut text = String::new();
    for (at, block) in blocks.iter().enumerate() {
        if at == 0 {
            text.push_str("requests by worker, % of all, deviation from an even share in %\n");
        }
        if at == 0 || blocks[at - 1].source != block.source {
            _ = writeln!(text, "({})", block.source);
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
        text.push_str(&fitted(0, &lines));
    }
    text
}

pub(crate) fn errors(runs: &[Labelled<'_>]) -> String {
    let errors = facts::errors(runs);
    if errors.is_empty() {
        return String::new();
    }
    let mut text = "errors by kind\n".to_owned();
    for (run, kinds) in errors {
        wrap_at(&mut text, EVIDENCE_WIDTH, &format!("  {run}: "), &kinds);
    }
    text
}

pub(crate) fn caveats(of_study: &[Caveat], runs: &[Noted<'_>]) -> String {
    let doubts = doubts::by_kind(of_study, runs);
    if doubts.is_empty() {
        return String::new();
    }
    let mut text = "caveats\n".to_owned();
    for doubt in doubts {
        for seen in &doubt.seen {
            _ = writeln!(text, "  {}: {}", seen.of(runs), seen.text);
        }
        _ = writeln!(text, "    → {}", doubt.remedy);
    }
    text
}

fn words(study: &SweepStudy, columns: Columns) -> String {
    let words = match columns {
        _ if study.plan.with.is_some() => rows::words(study),
        Columns::Longtail => columns::words(study),
        Columns::Puma => puma::words(study),
    };
    glossary(&words)
}

/// Words and what they mean, a line each.
pub(crate) fn glossary(words: &[(&str, &str)]) -> String {
    let width = words.iter().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = words.iter().map(|(word, meaning)| format!("{word:<width$}  {meaning}\n")).collect();
    lines.concat()
}
