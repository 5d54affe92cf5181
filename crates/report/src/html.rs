//! A study as one HTML page: the answer, plots, tables, and how to repeat it. It loads nothing and runs nothing.
//!
//! The page forbids itself the network and scripts (Content-Security-Policy). What a pointer shows are titles of the drawings.
//! Every text of a study passes `escaped`, for servers and users choose some of it.

use std::fmt::Write as _;

use model::Study;

use crate::details;
use crate::markup::{escaped, joined};
use crate::summary::Summary;
use figure::TitledFigure;

mod bodies;
pub(crate) mod figure;
mod head;
mod heat_map;
mod load;
mod load_axis;
mod parts;
mod sections;
mod shown_runs;
mod sweep;

/// Colours, fonts, light and dark, narrow screens, paper.
const STYLE: &str = include_str!("html/page.css");

/// The whole page of a study and its summary.
///
/// # Panics
/// Never: every value of a summary has a place in JSON.
pub fn whole(study: &Study, summary: &Summary) -> String {
    let tree = details(study);
    let all = if tree.table.rows.is_empty() {
        String::new()
    } else {
        format!("<details><summary>All columns</summary>{}</details>", sections::table(&tree.table))
    };
    let sections = joined(&tree.sections, sections::section);
    let titled = |title: &str, inside: &str| match inside {
        "" => String::new(),
        inside => format!("<h2>{title}</h2>\n{inside}\n"),
    };
    // In a script element `<` alone could end the data.
    let data = serde_json::to_string(summary).expect("a summary is JSON").replace('<', "\\u003c");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n\
         {answer}{drawn}{runs}{trust}<h2>How to repeat it</h2>\n<pre>{command}</pre>{facts}\n<div class=\"details\">{details}</div></main>\n\
         <script type=\"application/json\" id=\"summary\">{data}</script>\n</body></html>\n",
        title = escaped(&tree.command_line),
        answer = head::answer(summary),
        drawn = drawn(study, summary),
        runs = titled(if summary.comparison.is_some() { "Figures" } else { "Runs" }, &(head::table(summary) + &all)),
        trust = head::trust(summary),
        command = escaped(&tree.command_line),
        facts = sections::facts(&tree.facts),
        details = titled("Details", &sections),
    )
}

/// The plots, and what is not drawn.
fn drawn(study: &Study, summary: &Summary) -> String {
    let figures = match study {
        Study::Sweep(study) => sweep::figures(study, summary),
        Study::Load(study) => load::figures(study, summary),
        Study::Compare(_) => summary.comparison.iter().map(crate::comparison::forest).collect(),
        Study::Bodies(study) => bodies::figures(study),
    };
    let (mut drawn, mut left_out) = (String::new(), String::new());
    for TitledFigure { title, drawn: figure } in figures {
        match figure {
            Ok(figure) => drawn += &figure.html(title),
            Err(reason) => _ = write!(left_out, "<li>{}: {}</li>", escaped(title), escaped(&reason)),
        }
    }
    if drawn.is_empty() && left_out.is_empty() {
        return String::new();
    }
    let left_out = match left_out.as_str() {
        "" => left_out,
        items => format!("<div class=\"card\"><h3>Not drawn</h3><ul>{items}</ul></div>\n"),
    };
    format!("<div class=\"figures\">\n{drawn}{left_out}</div>\n")
}
