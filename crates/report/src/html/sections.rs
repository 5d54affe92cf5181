//! Sections of a report as HTML: what the text says, without what the page draws.

use std::fmt::Write as _;

use crate::markdown::capitalised;
use crate::markup::{escaped, joined};
use crate::tree::{DataTable, ListItem, NamedFact, ReportSection, SectionBlock, TableColumn, TableRow};

/// A section; of second interest, folded.
pub(crate) fn section(section: &ReportSection) -> String {
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
    let label = if item.label.is_empty() { String::new() } else { format!("<b>{}</b> ", escaped(&item.label)) };
    let lines: Vec<String> = item.lines.iter().map(|line| escaped(line)).collect();
    let hints = joined(&item.hints, |hint| format!("<br><small>→ {}</small>", escaped(hint)));
    format!("<li>{label}{}{hints}</li>", lines.join("<br>"))
}

/// Names in front, what they name behind.
pub(crate) fn facts(facts: &[NamedFact]) -> String {
    let known = facts.iter().filter(|fact| !fact.lines.is_empty());
    let fact = |fact: &NamedFact| {
        let lines: Vec<String> = fact.lines.iter().map(|line| escaped(line)).collect();
        format!("<dt>{}</dt><dd>{}</dd>", escaped(&fact.name), lines.join("<br>"))
    };
    format!("<dl>{}</dl>", joined(known, fact))
}

/// A table, in a box of its own that scrolls where the screen is narrow.
pub(crate) fn table(table: &DataTable) -> String {
    let columns: Vec<(usize, &TableColumn)> =
        table.columns.iter().enumerate().filter(|(_, column)| !column.is_constant).collect();
    let side = |at: usize| if table.is_left(at) { " class=\"words\"" } else { "" };
    let mut html = "<div class=\"table\"><table><thead>".to_owned();
    if columns.iter().any(|(_, column)| column.band.is_some()) {
        html += "<tr class=\"bands\">";
        for same in columns.chunk_by(|(_, a), (_, b)| a.band == b.band) {
            let title = same[0].1.band.as_ref().map_or("", |band| &band.title);
            let class = if title.is_empty() { "" } else { " class=\"band\"" };
            let _ = write!(html, "<th{class} colspan=\"{}\">{}</th>", same.len(), escaped(title));
        }
        html += "</tr>";
    }
    html += "<tr>";
    for (at, column) in &columns {
        let meaning = column.band.as_ref().map_or("", |band| band.meaning);
        let meaning = if column.meaning.is_empty() { meaning } else { column.meaning };
        let hover = if meaning.is_empty() { String::new() } else { format!(" title=\"{}\"", escaped(meaning)) };
        let _ = write!(html, "<th{}{hover}>{}</th>", side(*at), escaped(column.name.trim()));
    }
    html += "</tr></thead><tbody>";
    for row in &table.rows {
        html += &table_row(row, columns.iter().map(|(at, _)| *at), &side);
    }
    html + "</tbody></table></div>"
}

fn table_row(row: &TableRow, shown: impl Iterator<Item = usize>, side: &dyn Fn(usize) -> &'static str) -> String {
    let mut html = "<tr>".to_owned();
    for at in shown {
        let text = row.cells.get(at).map_or("", |cell| &cell.text);
        let _ = write!(html, "<td{}>{}</td>", side(at), escaped(text.trim()));
    }
    if !row.note.is_empty() {
        let _ = write!(html, "<td class=\"words\">{}</td>", escaped(&row.note));
    }
    html + "</tr>"
}
