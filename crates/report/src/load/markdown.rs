//! The report for a pull request: the same parts as the text, as GitHub lays them out.

use model::LoadStudy;

use super::part::{self, Body, Part, Row};
use super::words;
use crate::markdown::{details, escaped, fenced, pipe_table};

/// The whole report.
pub fn whole(study: &LoadStudy) -> String {
    let opening = words::opening(study);
    let (load, rest) = opening.split_at(1);
    let mut parts = vec![fenced("sh", &study.command_line)];
    parts.push(
        load.iter().flat_map(|(_, lines)| lines).map(|line| escaped(line)).collect::<Vec<_>>().join("<br>\n") + "\n",
    );
    parts.extend(part::all(study).iter().map(lay_out));
    let environment: Vec<String> = rest
        .iter()
        .flat_map(|(what, lines)| {
            let before = std::iter::once(*what).chain(std::iter::repeat(""));
            lines.iter().zip(before).map(|(line, what)| format!("{what:<9}{line}"))
        })
        .collect();
    parts.push(details("environment", fenced("text", &environment.join("\n")).trim_end()));
    parts.push(words::total_time(study) + "\n");
    parts.join("\n")
}

pub(crate) fn lay_out(part: &Part) -> String {
    let bodies: Vec<String> = part.bodies.iter().map(body).collect();
    let inside = bodies.join("\n");
    if part.is_detail {
        details(&escaped(&part.title), inside.trim_end())
    } else {
        format!("**{}**\n\n{inside}", escaped(&part.title))
    }
}

fn body(body: &Body) -> String {
    match body {
        Body::Table(head, rows) => table(head, rows),
        Body::Lines(lines) => lines.iter().map(|line| list_item(line)).collect(),
        Body::Drawn(drawn) => fenced("text", drawn.trim_end_matches('\n')),
    }
}

/// An item; an indented line goes on with the item before.
fn list_item(line: &str) -> String {
    if line.starts_with(' ') { format!("  {}\n", escaped(line.trim_start())) } else { format!("- {}\n", escaped(line)) }
}

/// The notes are a last column, where there are any.
fn table(head: &[String], rows: &[Row]) -> String {
    let has_notes = rows.iter().any(|row| !row.note.is_empty());
    let note = |note: &str| has_notes.then(|| escaped(note));
    let line = |cells: &[String], beside: &str| -> Vec<String> {
        cells.iter().map(|cell| escaped(cell)).chain(note(beside)).collect()
    };
    let mut lines = vec![line(head, "")];
    lines.extend(rows.iter().map(|row| line(&row.cells, &row.note)));
    pipe_table(&lines)
}
