//! A study as one HTML page: the answer, plots, tables, and how to repeat it.
//!
//! Its Content-Security-Policy allows neither network nor scripts; tooltips are `title`s. Every
//! text of a study is escaped, because servers and users choose some of it.

use std::fmt::Write as _;

use figure::TitledFigure;
use model::comparison::ComparisonQuestion;
use model::{Limit, Study};

use crate::number;
use crate::plot::{escaped, joined};
use crate::summary::{HeadlineResult, Summary, SummaryVerdict};
use crate::tree::{
    DataTable, ListItem, MOST_LINES, NamedFact, ReportSection, SectionBlock, TableColumn, TableRow,
};
use crate::{answer, comparison, details, load_answer, text};
use judge::Grade;
use judge::next::NextCommand;
use judge::trust::TrustLine;
use judge::words::{FirstSentence, capitalised, first_sentence};

mod event;
pub(crate) mod figure;
mod load_axis;
mod other_studies;
mod sweep;

/// Colours, fonts, light and dark, narrow screens, paper.
const STYLE: &str = include_str!("html/page.css");

/// The page of a study and its summary.
///
/// # Panics
/// Never: every value of a summary can be written as JSON.
pub fn whole(study: &Study, summary: &Summary<'_>) -> String {
    let tree = details(study);
    let all = if tree.table.rows.is_empty() {
        String::new()
    } else {
        format!("<details><summary>All columns</summary>{}</details>", table(&tree.table))
    };
    let sections = joined(&tree.sections, section);
    let heading = match (&summary.comparison, &summary.capacity) {
        (Some(_), _) => "Figures",
        (None, Some(_)) => "Trials",
        (None, None) => "Runs",
    };
    // Only `<` could end the data of a script element.
    let data = serde_json::to_string(summary).expect("a summary is JSON").replace('<', "\\u003c");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n\
         {answer}{drawn}{runs}{trust}<h2>How to repeat it</h2>\n<pre>{command}</pre>{facts}\n<div class=\"details\">{details}</div></main>\n\
         <script type=\"application/json\" id=\"summary\">{data}</script>\n</body></html>\n",
        title = escaped(&tree.command_line),
        answer = answer(summary),
        drawn = drawn(study, summary),
        runs = titled(heading, &(table_of_answer(summary) + &all), "\n"),
        trust = trust(study, summary),
        command = unbroken(&tree.command_line, |_| true),
        facts = facts(&tree.facts),
        details = titled("Details", &sections, "\n"),
    )
}

/// A heading with its content and `end`; nothing if there is no content.
fn titled(title: &str, inside: &str, end: &str) -> String {
    if inside.is_empty() { String::new() } else { format!("<h2>{title}</h2>\n{inside}{end}") }
}

/// The plots, and a list of those that are not drawn.
fn drawn(study: &Study, summary: &Summary<'_>) -> String {
    let figures = match study {
        Study::Sweep(study) => sweep::figures(study, summary),
        Study::Load(study) => other_studies::of_load(study, summary),
        Study::Compare(study) => {
            let differences = summary.comparison.iter().map(other_studies::of_comparison);
            differences.chain(event::of_arms(study)).collect()
        }
        Study::Bodies(study) => other_studies::of_bodies(study),
        Study::Capacity(_) => {
            let searches = summary.capacity.iter().filter(|found| found.sizes.is_empty());
            searches.map(other_studies::of_capacity).collect()
        }
    };
    cards(figures)
}

/// A card for each figure, and one that says which are not drawn and why.
fn cards(figures: Vec<TitledFigure>) -> String {
    let mut drawn = String::new();
    let mut left_out = String::new();
    for TitledFigure { title, drawn: figure } in figures {
        match figure {
            Ok(figure) => drawn += &figure.html(&title),
            Err(reason) => {
                _ = write!(left_out, "<li>{}: {}</li>", escaped(&title), escaped(&reason));
            }
        }
    }
    if drawn.is_empty() && left_out.is_empty() {
        return String::new();
    }
    if !left_out.is_empty() {
        left_out =
            format!("<div class=\"card left-out\"><h3>Not drawn</h3><ul>{left_out}</ul></div>\n");
    }
    format!("<div class=\"figures\">\n{drawn}{left_out}</div>\n")
}

/// The conclusion, what was measured, what was expected, and why.
fn answer(summary: &Summary<'_>) -> String {
    let when = summary.started_at.replace('T', " ").replace('Z', " UTC");
    let (arms, shared): (Vec<&String>, Vec<&String>) =
        summary.measured.iter().partition(|line| is_of_an_arm(line, summary));
    let measured = shared.into_iter().flat_map(|line| line.split(" · "));
    let chips = joined(measured, |fact| format!("<li>{}</li>", escaped(fact)));
    let (class, verdict) = verdict(summary);
    let expected = summary.headlines().into_iter().map(|headline| {
        let (class, sign) = match headline.result {
            HeadlineResult::Met => ("good", "✓"),
            HeadlineResult::Missed => ("bad", "✗"),
            HeadlineResult::CannotTell => ("doubt", "?"),
        };
        format!("<li><span class=\"{class}\">{sign}</span> {}</li>", escaped(headline.sentence))
    });
    let reasons = summary.reasons().map(|reason| format!("<li><b>Why</b> {}</li>", prose(reason)));
    let FirstSentence { first, rest } = first_sentence(&summary.sentence);
    let rest = rest.lines().filter(|line| !line.is_empty());
    let rest = joined(rest, |line| format!("<p class=\"lead\">{}</p>\n", escaped(line)));
    format!(
        "<p class=\"what\">longtail {} · {}</p>\n{}<h1>{}</h1>\n{rest}\
         <ul class=\"chips\"><li class=\"{class}\">{verdict}</li>{chips}</ul>\n{}{}",
        command(summary),
        escaped(&when),
        list("expected", expected),
        escaped(first),
        list("arms", arms.into_iter().map(|line| arm(line))),
        list("findings", reasons),
    )
}

/// The command that was typed.
fn command(summary: &Summary<'_>) -> &'static str {
    let question = summary.comparison.as_ref().map(|comparison| comparison.question);
    if question == Some(ComparisonQuestion::Best) { "sweep --try" } else { summary.command }
}

/// Whether a line of what was measured is about one arm: `A  main · 2 workers`.
fn is_of_an_arm(line: &str, summary: &Summary<'_>) -> bool {
    let arms = summary.comparison.iter().flat_map(|comparison| &comparison.arms);
    arms.into_iter()
        .any(|arm| line.strip_prefix(&arm.letter).is_some_and(|rest| rest.starts_with("  ")))
}

/// An arm: its letter, its name and what it is.
fn arm(line: &str) -> String {
    let (letter, rest) = line.split_once("  ").unwrap_or(("", line));
    format!("<li><b>{}</b> {}</li>", escaped(letter), escaped(rest))
}

/// The class and the words of the verdict's chip.
fn verdict(summary: &Summary<'_>) -> (&'static str, String) {
    if summary.capacity.is_some() {
        return verdict_of_search(summary);
    }
    let (class, words) = match summary.verdict {
        SummaryVerdict::Claimed => ("doubt", "? another generator's word"),
        SummaryVerdict::NotJudged => ("doubt", "not judged"),
        SummaryVerdict::KeepsUp => ("good", "✓ the server keeps up"),
        SummaryVerdict::Unloaded => ("good", "✓ below the server's limit"),
        SummaryVerdict::ServerBound if is_limit_open(summary) => {
            ("good", "✓ longtail was not the limit")
        }
        SummaryVerdict::ServerBound => ("good", "✓ the server was the limit"),
        SummaryVerdict::SharedCpus => ("doubt", "~ limited by CPUs that longtail shares"),
        SummaryVerdict::NetworkBound => ("doubt", "~ the network was the limit"),
        SummaryVerdict::Overloaded => ("bad", "✗ overloaded"),
        SummaryVerdict::GeneratorBound => ("bad", "✗ the generator was the limit"),
        SummaryVerdict::Invalid => ("bad", "✗ INVALID"),
    };
    let same = summary.runs.iter().filter(|run| run.verdict == summary.verdict).count();
    let all = summary.runs.len();
    (class, if all > 1 { format!("{words} in {same} of {all} runs") } else { words.to_owned() })
}

/// Whether it is not known of a single run what limited the server.
fn is_limit_open(summary: &Summary<'_>) -> bool {
    let [one] = summary.runs.as_slice() else { return false };
    let limit = one.run.judgement.as_ref().and_then(|judgement| judgement.limit.as_ref());
    matches!(limit, Some(Limit::NotKnown { .. }))
}

/// The same for a search: how many of its trials count, as its trust says it.
fn verdict_of_search(summary: &Summary<'_>) -> (&'static str, String) {
    let all = summary.runs.len();
    let counting = summary.runs.iter().filter(|run| run.counts()).count();
    let trials = number::count_of(all as u64, "trial");
    match counting {
        _ if all == 0 => ("doubt", "no trial".to_owned()),
        0 => ("bad", format!("✗ none of {trials} counts")),
        _ if counting == all => ("good", format!("✓ {trials} measured the server")),
        _ => ("doubt", format!("! {counting} of {trials} count")),
    }
}

fn list(class: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">{items}</ul>\n") }
}

/// The answer's table, with the rates of a load above it and the meaning of marks below.
fn table_of_answer(summary: &Summary<'_>) -> String {
    let answer = answer::table(summary);
    let rates = (summary.command == "load")
        .then(|| format!("<p>{}</p>", escaped(&load_answer::rates(&summary.runs[0]))));
    let legend = answer::legend(summary).filter(|_| summary.comparison.is_none());
    let legend = legend.map(|legend| format!("<small>{}</small>", escaped(&legend)));
    let shown = if answer.rows.is_empty() { String::new() } else { table(&answer) };
    let below = summary.comparison.iter().flat_map(|it| comparison::tables_below(it, false));
    let below: String = below.map(|below| table(&below)).collect();
    let classes = answer::classes(summary).map(|classes| {
        let below = classes.below.map(|line| format!("<p>{}</p>", escaped(&line)));
        table(&classes.table) + &below.unwrap_or_default()
    });
    rates.unwrap_or_default()
        + &shown
        + &classes.unwrap_or_default()
        + &below
        + &legend.unwrap_or_default()
}

/// What speaks for the figures and against them, and the next commands.
fn trust(study: &Study, summary: &Summary<'_>) -> String {
    let line = |line: &TrustLine| {
        let class = match line.mark {
            Grade::Note | Grade::Passed => "good",
            Grade::Uncertain | Grade::Doubtful => "doubt",
            Grade::Failed => "bad",
        };
        let hint = line
            .hint
            .map(|hint| format!("<br><small>→ {}</small>", prose(hint)))
            .unwrap_or_default();
        format!(
            "<li><span class=\"{class}\">{}</span> {}{hint}</li>",
            line.mark.sign(),
            prose(&line.sentence)
        )
    };
    let command = |it: &NextCommand| {
        format!(
            "<li><small>{}</small><pre>{}</pre></li>",
            prose(&it.why),
            unbroken(&it.command, |_| true)
        )
    };
    let trust = list("ticks", summary.trust.iter().map(line));
    let next = list("next", summary.next.iter().map(command));
    let own_delay = match study {
        Study::Load(study) => cards(vec![other_studies::own_delay(study)]),
        _ => String::new(),
    };
    titled("Can it be trusted?", &(trust + &own_delay), "") + &titled("What to ask next", &next, "")
}

/// A section, folded if it is a detail.
fn section(section: &ReportSection) -> String {
    let inside = joined(&section.blocks, block);
    let title = escaped(&capitalised(&section.title));
    if section.blocks.is_empty() {
        format!("<p>{title}</p>\n")
    } else if section.is_detail {
        format!("<details><summary>{title}</summary>{inside}</details>\n")
    } else {
        format!("<h3>{title}</h3>{inside}\n")
    }
}

fn block(block: &SectionBlock) -> String {
    match block {
        SectionBlock::Paragraph(text) => format!("<p>{}</p>", escaped(text)),
        SectionBlock::List(items) => format!("<ul>{}</ul>", joined(items, item)),
        SectionBlock::Table(table) => self::table(table),
        SectionBlock::Verbatim(text) => format!("<pre>{}</pre>", escaped(text)),
    }
}

fn item(item: &ListItem) -> String {
    let label = if item.label.is_empty() {
        String::new()
    } else {
        format!("<b>{}</b> ", escaped(&item.label))
    };
    let lines: Vec<String> = item.lines.iter().map(|line| escaped(line)).collect();
    let (shown, folded) = match lines.as_slice() {
        [first, others @ ..] if lines.len() > MOST_LINES => (first.clone(), others),
        lines => (lines.join("<br>"), &[][..]),
    };
    let folded = if folded.is_empty() {
        String::new()
    } else {
        let more = format!("{} more of this kind", folded.len());
        format!("<details><summary>{more}</summary>{}</details>", folded.join("<br>"))
    };
    let hints = joined(&item.hints, |hint| format!("<br><small>→ {}</small>", escaped(hint)));
    format!("<li>{label}{shown}{hints}{folded}</li>")
}

/// A list of facts, each with its name.
fn facts(facts: &[NamedFact]) -> String {
    let known = facts.iter().filter(|fact| !fact.lines.is_empty());
    let fact = |fact: &NamedFact| {
        let lines: Vec<String> = fact.lines.iter().map(|line| escaped(line)).collect();
        format!("<dt>{}</dt><dd>{}</dd>", escaped(&fact.name), lines.join("<br>"))
    };
    format!("<dl>{}</dl>", joined(known, fact))
}

/// A table in a box that scrolls where the screen is narrow. A phone shows the columns that a narrow
/// terminal has, so that the percentiles are in sight.
fn table(table: &DataTable) -> String {
    let on_phone = on_a_phone(table);
    let columns: Vec<TableColumnAt<'_>> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.is_constant)
        .map(|(at, column)| TableColumnAt { at, column, is_on_phone: on_phone.stays[at] })
        .collect();
    let are_fewer = columns.iter().any(|it| !it.is_on_phone);
    let class = |it: &TableColumnAt<'_>| {
        let words = table.is_left(it.at).then_some("words");
        let wide = (!it.is_on_phone).then_some("wide");
        let classes: Vec<&str> = words.into_iter().chain(wide).collect();
        if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) }
    };
    let mut html = "<div class=\"table\" tabindex=\"0\"><table><thead>".to_owned();
    if columns.iter().any(|it| it.column.band.is_some()) {
        html += &bands(&table.columns, if are_fewer { "bands wide" } else { "bands" });
        if are_fewer {
            html += &bands(&on_phone.table.with_units_for_bands().columns, "bands phone");
        }
    }
    html += "<tr>";
    for it in &columns {
        let column = it.column;
        let meaning = column.band.as_ref().map_or("", |band| band.meaning);
        let meaning = if column.meaning.is_empty() { meaning } else { column.meaning };
        let hover = if meaning.is_empty() {
            String::new()
        } else {
            format!(" title=\"{}\"", escaped(meaning))
        };
        let _ = write!(html, "<th{}{hover}>{}</th>", class(it), escaped(column.name.trim()));
    }
    if !table.notes.is_empty() {
        let _ = write!(html, "<th class=\"words\">{}</th>", escaped(&table.notes));
    }
    html += "</tr></thead><tbody>";
    for row in &table.rows {
        html += "<tr>";
        for it in &columns {
            let text = row.cells.get(it.at).map_or("", |cell| &cell.text);
            let _ = write!(html, "<td{}>{}</td>", class(it), escaped(text.trim()));
        }
        if !row.note.is_empty() {
            let _ = write!(html, "<td class=\"words\">{}</td>", escaped(&row.note));
        }
        html += "</tr>";
    }
    html += "</tbody></table></div>";
    if are_fewer {
        let left = escaped(&on_phone.left.join(", "));
        let _ = write!(
            html,
            "<p class=\"phone\"><small>Not shown on a screen this narrow: {left}. Turn the phone \
             to see them.</small></p>"
        );
    }
    html
}

/// A column that a table shows.
#[derive(Clone, Copy)]
struct TableColumnAt<'t> {
    /// Its place among all columns, those that only CSV has included.
    at: usize,
    column: &'t TableColumn,
    is_on_phone: bool,
}

/// What fits on a phone's screen, in columns of a terminal: 362 pixels of text of 13.
const PHONE_COLUMNS: usize = 44;

/// The part of a table that a phone shows. Notes do not count: they stand at the end of a row.
fn on_a_phone(table: &DataTable) -> text::NarrowedTable {
    let rows = table.rows.iter().map(|row| TableRow { note: String::new(), ..row.clone() });
    let without_notes = DataTable { rows: rows.collect(), ..table.clone() };
    text::narrowed(&without_notes, 0, text::Width::of(PHONE_COLUMNS))
}

/// The row of bands above the names of columns.
fn bands(columns: &[TableColumn], class: &str) -> String {
    let shown: Vec<&TableColumn> = columns.iter().filter(|column| !column.is_constant).collect();
    let mut html = format!("<tr class=\"{class}\">");
    for same in shown.chunk_by(|a, b| a.band == b.band) {
        let title = same[0].band.as_ref().map_or("", |band| &band.title);
        let class = if title.is_empty() { "" } else { " class=\"band\"" };
        let _ = write!(html, "<th{class} colspan=\"{}\">{}</th>", same.len(), escaped(title));
    }
    html + "</tr>"
}

/// A sentence in which no line breaks within a flag or before a percent sign.
fn prose(text: &str) -> String {
    unbroken(text, |word| word.contains("--")).replace(" %", "&nbsp;%")
}

/// A text in which no line breaks within these words, such as after the dashes of `--for`, unless a
/// word is longer than a line.
fn unbroken(text: &str, is_whole: impl Fn(&str) -> bool) -> String {
    let words = text.split(' ').map(|word| {
        let safe = escaped(word);
        let has_hyphen = word.contains('-');
        if has_hyphen && is_whole(word) {
            format!("<span class=\"word\">{safe}</span>")
        } else {
            safe
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_breaks_within_a_flag_or_before_a_percent_sign() {
        let flag = |word: &str| format!("<span class=\"word\">{word}</span>");
        let said = prose("99 % of requests: --for 60s & one-sided");
        assert_eq!(said, format!("99&nbsp;% of requests: {} 60s &amp; one-sided", flag("--for")));
        let line = unbroken("longtail load -c 5 http://my-host/", |_| true);
        let expected = ["longtail load", &flag("-c"), "5", &flag("http://my-host/")].join(" ");
        assert_eq!(line, expected);
    }
}
