//! A report as GitHub's Markdown for a pull request: the figures and doubts about them. Details are
//! in the full report and in HTML.

use std::fmt::Write as _;

use crate::number;
use crate::run_columns::MARKS;
use crate::text::{self, right};
use crate::text::{Width, columns_of};
use crate::tree::{
    DataTable, ListItem, MOST_LINES, NamedFact, ReportSection, ReportTree, SectionBlock,
};
use judge::next::WHERE_TO;

/// The most runs that have a row each; a longer table would fill a pull request.
const ROWS: usize = 24;

/// The whole report.
pub(crate) fn whole(report: &ReportTree) -> String {
    let mut parts = vec![fenced("sh", &without_own_paths(&without_output(&report.command_line)))];
    let runs = report.table.rows.len();
    if runs > ROWS {
        parts.push(format!("A row for each of the {runs} runs: `longtail report --full`\n"));
    } else if runs > 0 {
        parts.push(pipe_table(&report.table));
        parts.extend(meaning_of_marks(report));
    }
    parts.extend(report.sections.iter().filter(|section| !section.is_detail).map(section));
    // The servers of a comparison are long lines with paths that are gone; one command repeats it all.
    // How its blocks were run stands above its figures.
    let is_shown = |fact: &&NamedFact| !["commands", "blocks"].contains(&&*fact.name);
    let facts = report.facts.iter().filter(is_shown);
    let facts: Vec<NamedFact> = facts.cloned().collect();
    parts.push(fenced("text", text::facts(&facts, Width::ANY).trim_end()));
    parts.push(format!("total time {}\n", number::elapsed(report.total_time)));
    parts.join("\n")
}

/// A command line without what only says how and where its result is written: whoever repeats it chooses
/// that. What follows `--` is the server's command.
fn without_output(line: &str) -> String {
    const PRINTED: [&str; 4] = ["--json", "--markdown", "--csv", "--full"];
    let is_short = |flag: &str| !flag.starts_with("--");
    let mut words = text::shell_words(line).into_iter();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        let is_with_value = |flag: &&str| {
            let value = word.strip_prefix(*flag).unwrap_or_default();
            value.starts_with('=') || is_short(flag) && !value.is_empty()
        };
        if word == "--" {
            kept.extend(std::iter::once(word).chain(words.by_ref()));
        } else if WHERE_TO.contains(&word) {
            words.next();
        } else if !PRINTED.contains(&word) && !WHERE_TO.iter().any(is_with_value) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// A command line without what paths tell of whoever typed it. Of the checkouts of `--puma` the parts stay
/// that tell them apart, as paths of the folder that one is in, since as versions they would be others; a
/// comment says what they are. A home folder is `~`.
fn without_own_paths(line: &str) -> String {
    let mut checkouts = None;
    let mut is_value_of_puma = false;
    let words = text::shell_words(line).into_iter().map(|word| {
        let value = if std::mem::replace(&mut is_value_of_puma, word == "--puma") {
            Some(word)
        } else {
            word.strip_prefix("--puma=")
        };
        match value.and_then(|value| Some((value, last_parts(value)?))) {
            Some((value, parts)) => {
                checkouts = Some(parts.clone());
                word.replace(value, &parts)
            }
            None => with_tilde(word),
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    match checkouts {
        Some(parts) if parts.contains(',') => format!("{line}\n# {parts}: checkouts of Puma"),
        Some(parts) => format!("{line}\n# {parts}: a checkout of Puma"),
        None => line,
    }
}

/// `./6.6.1,./8.0.2` of `/srv/pumas/6.6.1,/srv/pumas/8.0.2`: paths without the folders that all are in. `None` of
/// what is not only paths.
fn last_parts(paths: &str) -> Option<String> {
    let is_path = |path: &str| {
        ["/", "~/", "./", "../"].iter().any(|begin| path.starts_with(begin))
            && !path.contains(['\'', '"', ' '])
    };
    let each: Vec<Vec<&str>> = paths
        .split(',')
        .map(|path| is_path(path).then(|| path.trim_end_matches('/').split('/').collect()))
        .collect::<Option<_>>()?;
    let fewest = each.iter().map(Vec::len).min()?;
    let is_shared = |at: &usize| each.iter().all(|parts| parts[*at] == each[0][*at]);
    let shared = (0..fewest - 1).take_while(is_shared).count();
    let parts = each.iter().map(|parts| format!("./{}", parts[shared..].join("/")));
    Some(parts.collect::<Vec<_>>().join(","))
}

/// A word of a command line in which each path below a home folder begins with `~`.
fn with_tilde(word: &str) -> String {
    const BEFORE_A_PATH: [char; 5] = ['=', ',', ' ', '\'', '"'];
    let shown = |path: &str| {
        let below = ["/home/", "/Users/"].iter().find_map(|homes| path.strip_prefix(homes));
        let below = below.and_then(|below| Some(below.split_once('/')?.1));
        match below.or_else(|| path.strip_prefix("/root/")) {
            Some(rest) => format!("~/{rest}"),
            None => path.to_owned(),
        }
    };
    word.split_inclusive(BEFORE_A_PATH).map(shown).collect()
}

/// What the marks in the table of runs mean, if there are any, and what `A'` is.
fn meaning_of_marks(report: &ReportTree) -> Option<String> {
    let cells = || report.table.rows.iter().flat_map(|row| &row.cells);
    let stands = |mark: &str| cells().any(|cell| cell.text.trim().ends_with(mark));
    let has_control = cells().any(|cell| cell.text == "A'");
    let is_explained = |word: &str| {
        MARKS.iter().any(|(mark, _)| *mark == word) && stands(word) || word == "arm" && has_control
    };
    let meanings: Vec<String> = report
        .glossary
        .iter()
        .filter(|(word, _)| is_explained(word))
        .map(|(mark, meaning)| format!("- `{mark}` {}\n", escaped(meaning)))
        .collect();
    (!meanings.is_empty()).then(|| meanings.concat())
}

fn section(section: &ReportSection) -> String {
    let blocks: Vec<String> = section.blocks.iter().map(block).collect();
    let inside = blocks.join("\n");
    let title = escaped(&section.title);
    if inside.is_empty() {
        format!("{title}\n")
    } else {
        format!("**{}**\n\n{inside}", judge::words::capitalised(&title))
    }
}

fn block(block: &SectionBlock) -> String {
    match block {
        SectionBlock::Paragraph(text) => escaped(text) + "\n",
        SectionBlock::List(items) => items.iter().map(item).collect(),
        SectionBlock::Table(table) => pipe_table(table),
        SectionBlock::Verbatim(text) => fenced("text", text.trim_end_matches('\n')),
    }
}

/// An item, with its other lines and its hints below it. Of many lines the others are counted.
fn item(item: &ListItem) -> String {
    let label = if item.label.is_empty() { String::new() } else { format!("{}: ", item.label) };
    let all = item.lines.len();
    let shown = if all > MOST_LINES { 1 } else { all };
    let lines = item.lines[..shown].iter().map(|line| escaped(line));
    let folded = all - shown;
    let more =
        (folded > 0).then(|| format!("… {folded} more of this kind: `longtail report --full`"));
    let hints = item.hints.iter().map(|hint| format!("→ {}", escaped(hint)));
    let lines: Vec<String> = lines.chain(more).chain(hints).collect();
    format!("- {}{}\n", escaped(&label), lines.join("\n  - "))
}

/// A table that is readable as plain text, too. A column with neither name nor cells is left out
/// (the marks, where there are none); notes become the last column.
pub(crate) fn pipe_table(table: &DataTable) -> String {
    let is_empty = |at: usize| {
        table.rows.iter().all(|row| row.cells.get(at).is_none_or(|cell| cell.text.is_empty()))
    };
    let is_shown = |at: &usize| {
        !(table.columns[*at].is_constant || table.columns[*at].name.is_empty() && is_empty(*at))
    };
    let shown: Vec<usize> = (0..table.columns.len()).filter(is_shown).collect();
    let has_notes = table.rows.iter().any(|row| !row.note.is_empty());
    let notes = |note: String| has_notes.then_some(note);
    let name = |at: &usize| escaped(&table.columns[*at].full_name());
    let mut lines: Vec<Vec<String>> =
        vec![shown.iter().map(name).chain(notes(escaped(&table.notes))).collect()];
    for row in &table.rows {
        let cells = shown.iter().map(|at| {
            row.cells.get(*at).map_or_else(String::new, |cell| escaped(cell.text.trim()))
        });
        lines.push(cells.chain(notes(escaped(&row.note))).collect());
    }
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|column| lines.iter().map(|line| columns_of(&line[column])).max().unwrap_or(0).max(2))
        .collect();
    let is_left = |at: usize| at >= shown.len() || table.is_left(shown[at]);
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let cell =
                if is_left(column) { format!("{cell:<width$}") } else { right(cell, *width) };
            _ = write!(text, "| {cell} ");
        }
        text.push_str("|\n");
        if at == 0 {
            for (column, width) in widths.iter().enumerate() {
                let rule = "-".repeat(width + 1);
                _ = if is_left(column) {
                    write!(text, "|:{rule}")
                } else {
                    write!(text, "|{rule}:")
                };
            }
            text.push_str("|\n");
        }
    }
    text
}

pub(crate) fn details(summary: &str, inside: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{}\n\n</details>\n", inside.trim_end())
}

/// A block of code, in a fence longer than any inside it.
pub(crate) fn fenced(language: &str, inside: &str) -> String {
    let mut fence = "```".to_owned();
    while inside.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{inside}\n{fence}\n")
}

/// Text escaped so that GitHub shows it as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // Before a space it opens no tag, and `p99 < 100ms` stays readable as plain text.
            '<' if !rest.as_str().starts_with(' ') => safe.push_str("&lt;"),
            '|' | '*' | '`' | '\\' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_elsewhere_cannot_break_a_table() {
        assert_eq!(escaped("a|b<script>`x`"), "a\\|b&lt;script>\\`x\\`");
        assert_eq!(escaped("p99 < 1s, a <"), "p99 < 1s, a &lt;");
    }

    #[test]
    fn a_command_to_repeat_says_nothing_of_its_output() {
        let typed = "longtail compare -t5:5 --markdown -o 'my file.json' --html=a.html -oa.json --arm '' --arm '-k' -- puma -o x --json";
        let kept = "longtail compare -t5:5 --arm '' --arm '-k' -- puma -o x --json";
        assert_eq!(without_output(typed), kept);
        assert_eq!(without_output("longtail load http://h/ -o"), "longtail load http://h/");
    }

    #[test]
    fn a_command_to_repeat_says_nothing_of_the_paths_of_whoever_typed_it() {
        let of = without_own_paths;
        assert_eq!(
            of("longtail compare -w2 --puma /home/me/pumas/6.6.1,/home/me/pumas/8.0.2 --arm ''"),
            "longtail compare -w2 --puma ./6.6.1,./8.0.2 --arm ''\n# ./6.6.1,./8.0.2: checkouts of Puma"
        );
        assert_eq!(
            of("longtail sweep --puma=~/src/6.6.1/bin/puma,~/src/8.0.2/bin/puma"),
            "longtail sweep --puma=./6.6.1/bin/puma,./8.0.2/bin/puma\n# ./6.6.1/bin/puma,./8.0.2/bin/puma: checkouts of Puma"
        );
        assert_eq!(
            of("longtail sweep --puma /srv/8.0.2/ -t5:5"),
            "longtail sweep --puma ./8.0.2 -t5:5\n# ./8.0.2: a checkout of Puma"
        );
        let versions = "longtail compare --puma 6.6.1,8.0.2 --url http://127.0.0.1:9292/root/x";
        assert_eq!(of(versions), versions);
        assert_eq!(
            of(
                "longtail compare --arm 'old=--puma /home/me/puma6' -C /root/app/puma.rb /srv/config.ru"
            ),
            "longtail compare --arm 'old=--puma ~/puma6' -C ~/app/puma.rb /srv/config.ru"
        );
    }

    #[test]
    fn an_item_of_many_lines_has_the_first_and_a_count() {
        let of = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            item(&ListItem { lines, ..ListItem::default() }.hint("wait"))
        };
        assert_eq!(of(&["a", "b"]), "- a\n  - b\n  - → wait\n");
        let folded = "- a\n  - … 2 more of this kind: `longtail report --full`\n  - → wait\n";
        assert_eq!(of(&["a", "b", "c"]), folded);
    }
}
