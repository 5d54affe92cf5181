//! A study as markdown for a pull request: the same facts as the text, as GitHub lays them out.

use std::fmt::Write as _;

use model::{Diagnostic, Socket, SweepStudy};

use crate::claimed::rows;
use crate::doubts::{self, Noted};
use crate::facts::{self, Labelled};
use crate::number::{self, NONE};
use crate::shares;
use crate::summary::{self, Spread};
use crate::width::Width;
use crate::{anatomy, columns, heard, intervals, kernel, over_time, table, text, theory, verdicts, watched};

/// The whole report.
pub fn whole(study: &SweepStudy) -> String {
    let labelled = facts::labelled(study);
    let mut parts = vec![
        fenced("sh", &study.command_line),
        escaped(&format!(
            "{}, {}",
            facts::server_name(&study.server),
            facts::slots(&study.server, &study.plan.server.kind)
        )) + "<br>",
        escaped(&facts::load(study).join("; ")) + "\n",
    ];
    parts.extend(
        facts::missing_runs(study.runs.len() + study.claimed_runs.len(), study.plan.runs(), study.interrupted)
            .map(|missing| format!("{missing}\n")),
    );
    if !study.runs.is_empty() {
        parts.push(runs(study));
    }
    if !study.claimed_runs.is_empty() {
        parts.extend([claimed_runs(study), claims(study)]);
    }
    parts.extend([
        summaries(study),
        verdicts_of(&labelled),
        errors(&labelled),
        warnings(&study.warnings, &doubts::noted_of(study)),
        intervals_of(study),
        anatomy_of(study),
        watched_of(&labelled),
        kernel_of(&labelled, &[study.plan.server.socket]),
        kernel::why_none(study).map(|why| escaped(&why) + "\n").unwrap_or_default(),
        heard_of(study),
        over_time_of(study),
        theory_of(study),
        workers(study),
    ]);
    if !study.runs.is_empty() || !study.claimed_runs.is_empty() {
        parts.push(words(study));
    }
    parts.extend([
        environment(&facts::environment(study)),
        format!("total time {}\n", number::minutes(study.total_time)),
    ]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn runs(study: &SweepStudy) -> String {
    let mut columns = columns::of(study);
    // The column of marks, where none is set.
    let left_out = usize::from(!study.runs.iter().any(doubts::is_doubtful));
    let columns = columns.split_off(left_out);
    let mut lines = vec![columns.iter().map(|shown| shown.markdown.to_owned()).collect::<Vec<_>>()];
    for run in &study.runs {
        lines.push(columns::cells(&columns, run));
    }
    pipe_table(&lines)
}

/// What limited each run, and by what evidence. Open where a run cannot be trusted.
pub(crate) fn verdicts_of(runs: &[Labelled<'_>]) -> String {
    let judged = || runs.iter().filter_map(|labelled| Some((&labelled.label, labelled.run.judgement.as_ref()?)));
    let lines: Vec<String> = judged()
        .map(|(label, judgement)| {
            let remedies =
                verdicts::hints(judgement).into_iter().map(|remedy| format!("<br>\n  → {}", escaped(remedy)));
            format!(
                "- {label} {}: {}{}",
                verdicts::name(judgement.verdict),
                escaped(&verdicts::evidence(judgement).join("; ")),
                remedies.collect::<String>()
            )
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.join("\n");
    if judged().all(|(_, judgement)| judgement.troubles().is_empty()) {
        details("Verdicts", &lines)
    } else {
        format!("**Verdicts**\n\n{lines}\n")
    }
}

fn intervals_of(study: &SweepStudy) -> String {
    let lines = intervals::lines(study);
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = std::iter::once(intervals::head()).chain(lines).collect();
    details("How well the percentiles are known", &format!("{}\n\n{}", intervals::TITLE, pipe_table(&lines).trim_end()))
}

fn anatomy_of(study: &SweepStudy) -> String {
    let runs = anatomy::lines(study);
    let of_run = |(label, lines): &(String, Vec<String>)| {
        let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
        format!("- {label}: {}\n", lines.join("<br>\n  "))
    };
    let lines: String = runs.iter().map(of_run).collect();
    if runs.is_empty() { lines } else { format!("**W{}**\n\n{lines}", &anatomy::TITLE[1..]) }
}

fn over_time_of(study: &SweepStudy) -> String {
    let drawings = text::drawings(study, Width::ANY);
    let inside = format!("{}\n\n{}", over_time::TITLE, fenced("text", drawings.trim_end()).trim_end());
    if drawings.is_empty() { drawings } else { details("Over time", &inside) }
}

/// What was seen of server and kernel meanwhile.
pub(crate) fn watched_of(runs: &[Labelled<'_>]) -> String {
    let lines = watched::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = std::iter::once(watched::HEAD.map(str::to_owned).to_vec()).chain(lines).collect();
    let said = watched::title(runs).into_iter().skip(1).chain(watched::missing(runs));
    let said: Vec<String> = said.map(|line| escaped(line.trim())).collect();
    let inside = format!("{}\n\n{}", said.join("<br>\n"), pipe_table(&lines).trim_end());
    details("The server meanwhile", &inside)
}

/// What the kernel's tracepoints told of servers on these kinds of socket.
pub(crate) fn kernel_of(runs: &[Labelled<'_>], sockets: &[Socket]) -> String {
    let lines = kernel::lines(runs);
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = std::iter::once(kernel::HEAD.map(str::to_owned).to_vec()).chain(lines).collect();
    let inside = format!("{}\n\n{}", kernel::words(sockets).join("<br>\n"), pipe_table(&lines).trim_end());
    details(&format!("W{}", &kernel::TITLE[1..]), &inside)
}

fn heard_of(study: &SweepStudy) -> String {
    let lines = heard::lines(study);
    let missing: Vec<String> = heard::missing(study).iter().map(|line| format!("- {}", escaped(line))).collect();
    if lines.is_empty() && missing.is_empty() {
        return String::new();
    }
    let lines = lines.into_iter().map(|line| line.iter().map(|cell| escaped(cell)).collect());
    let lines: Vec<_> = std::iter::once(heard::HEAD.map(str::to_owned).to_vec()).chain(lines).collect();
    let inside = format!("{}\n\n{}\n{}", escaped(heard::TITLE), pipe_table(&lines), missing.join("\n"));
    details("Heard over statsd", inside.trim_end())
}

fn theory_of(study: &SweepStudy) -> String {
    let (lines, remarks) = (theory::lines(study), theory::remarks(study));
    if remarks.is_empty() {
        return String::new();
    }
    // Of runs that are held against no model there may be no forecast either.
    let table = if lines.is_empty() {
        String::new()
    } else {
        pipe_table(&std::iter::once(theory::head()).chain(lines).collect::<Vec<_>>()) + "\n"
    };
    let remarks: Vec<String> = remarks.iter().map(|line| format!("- {}", escaped(line))).collect();
    let inside = format!("{}\n\n{table}{}", escaped(&theory::title(study)), remarks.join("\n"));
    details("Theory beside measurement", &inside)
}

fn claimed_runs(study: &SweepStudy) -> String {
    let columns = rows::columns(study);
    let names = columns.iter().map(|shown| shown.markdown.to_owned()).collect::<Vec<_>>();
    let cells = study.claimed_runs.iter().map(|row| rows::cells(&columns, row));
    pipe_table(&std::iter::once(names).chain(cells).collect::<Vec<_>>())
}

/// What the generator claims of each run, and what is to be thought of it.
fn claims(study: &SweepStudy) -> String {
    let mut text = "**Claims**\n\n".to_owned();
    for (first, lines) in rows::claims(study) {
        let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
        _ = writeln!(text, "- {}<br>\n  {}", escaped(&first), lines.join("<br>\n  "));
    }
    text
}

fn summaries(study: &SweepStudy) -> String {
    let summaries = summary::of_multiples(study);
    if summaries.is_empty() {
        return String::new();
    }
    let head = ["mult", "conns", "runs"].into_iter().chain(summary::FIGURES).map(str::to_owned);
    let mut lines = vec![head.collect::<Vec<_>>()];
    for summary in summaries {
        let figures = summary.figures.into_iter().map(spread);
        lines.push([summary.multiple, summary.connections, summary.runs].into_iter().chain(figures).collect());
    }
    format!(
        "Each multiple over its runs: median [lowest .. highest]; - where one of them has no figure\n\n{}",
        pipe_table(&lines)
    )
}

fn spread(spread: Spread) -> String {
    spread.map_or(NONE.to_owned(), |[median, lowest, highest]| format!("{median} [{lowest} .. {highest}]"))
}

fn workers(study: &SweepStudy) -> String {
    let mut parts = Vec::new();
    let mut source = "";
    for block in shares::by_worker(study) {
        if block.source != source {
            source = block.source;
            parts.push(format!("Requests (% of all, deviation from an even share): {source}\n"));
        }
        let mut lines = vec![vec![block.title]];
        lines[0].extend(block.runs);
        for (worker, shares) in block.workers {
            let cells = shares.into_iter().map(|[requests, percent, deviation]| {
                if requests == NONE { requests } else { format!("{requests} ({percent} %, {deviation} %)") }
            });
            lines.push(std::iter::once(escaped(&worker)).chain(cells).collect());
        }
        parts.push(pipe_table(&lines));
    }
    if parts.is_empty() { String::new() } else { details("Requests by worker", parts.join("\n").trim_end()) }
}

pub(crate) fn errors(runs: &[Labelled<'_>]) -> String {
    let errors = facts::errors(runs);
    let lines: Vec<String> = errors.iter().map(|(run, kinds)| format!("- {run}: {kinds}\n")).collect();
    if errors.is_empty() { String::new() } else { "**Errors by kind**\n\n".to_owned() + &lines.concat() }
}

pub(crate) fn warnings(of_study: &[Diagnostic], runs: &[Noted<'_>]) -> String {
    let doubts = doubts::by_kind(of_study, runs);
    if doubts.is_empty() {
        return String::new();
    }
    let mut text = "**Warnings**\n\n".to_owned();
    for doubt in doubts {
        let seen: Vec<String> =
            doubt.seen.iter().map(|seen| format!("{}: {}", seen.of(runs), escaped(&seen.text))).collect();
        _ = writeln!(text, "- {}<br>\n  → {}", seen.join("<br>\n  "), doubt.hint);
    }
    text
}

fn words(study: &SweepStudy) -> String {
    glossary(&if study.plan.with.is_some() { rows::words(study, &[]) } else { columns::words(study, &[]) })
}

/// Words and what they mean, folded away.
pub(crate) fn glossary(words: &[(&str, &str)]) -> String {
    let lines: Vec<String> = words.iter().map(|(word, meaning)| format!("- `{word}`: {meaning}")).collect();
    details("What the columns mean", &lines.join("\n"))
}

/// Server, machine and load, folded away.
pub(crate) fn environment(named: &[(&str, Vec<String>)]) -> String {
    details("Environment", fenced("text", text::list(named, Width::ANY).trim_end()).trim_end())
}

pub(crate) fn details(summary: &str, inside: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{inside}\n\n</details>\n")
}

pub(crate) fn fenced(language: &str, inside: &str) -> String {
    format!("```{language}\n{inside}\n```\n")
}

/// A table of right-aligned columns, padded so that it can be read as it is too.
pub(crate) fn pipe_table(lines: &[Vec<String>]) -> String {
    let columns = lines[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).max(2))
        .collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(text, "| {} ", table::right(cell, *width));
        }
        text.push_str("|\n");
        if at == 0 {
            for width in &widths {
                _ = write!(text, "|{}:", "-".repeat(width + 1));
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Text that came from elsewhere, so that GitHub shows it as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '|' | '*' | '`' | '\\' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
