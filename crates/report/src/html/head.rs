//! The top and the bottom of the page, from the summary alone: the answer, why, the table, whether it can be trusted, what to type next.

use crate::answer::{self, COLUMNS_WITHOUT_TIMES};
use crate::html::sections;
use crate::load_answer;
use crate::markup::{escaped, joined};
use crate::number;
use crate::summary::{SUMMARY_PERCENTILES, Summary, SummaryRun, SummaryVerdict};
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use crate::trust::TrustMark;

/// The conclusion, what was measured, what was expected, and why.
pub(crate) fn answer(summary: &Summary) -> String {
    let when = summary.started_at.replace('T', " ").replace('Z', " UTC");
    let measured = summary.measured.iter().flat_map(|line| line.split(" · "));
    let chips = joined(measured, |fact| format!("<li>{}</li>", escaped(fact)));
    let (class, verdict) = verdict(summary);
    let expected = summary.expectations.iter().map(|expectation| {
        let (class, sign) = match expectation.result {
            "met" => ("good", "✓"),
            "missed" => ("bad", "✗"),
            _ => ("doubt", "?"),
        };
        format!("<li><span class=\"{class}\">{sign}</span> {}</li>", escaped(&expectation.sentence))
    });
    format!(
        "<p class=\"what\">longtail {} · {}</p>\n<h1>{}</h1>\n\
         <ul class=\"chips\"><li class=\"{class}\">{verdict}</li>{chips}</ul>\n{}{}",
        escaped(summary.command),
        escaped(&when),
        escaped(&summary.sentence),
        list("ticks", expected),
        list("findings", summary.reasons().map(|reason| format!("<li>{}</li>", escaped(reason)))),
    )
}

/// The verdict as a chip: its class and its words.
fn verdict(summary: &Summary) -> (&'static str, String) {
    let (class, words) = match summary.verdict {
        SummaryVerdict::Claimed => ("doubt", "? another generator's word"),
        SummaryVerdict::NotJudged => ("doubt", "not judged"),
        SummaryVerdict::KeepsUp => ("good", "✓ the server keeps up"),
        SummaryVerdict::Unloaded => ("good", "✓ below the server's limit"),
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

fn list(class: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">{items}</ul>\n") }
}

/// The table of the answer.
pub(crate) fn table(summary: &Summary) -> String {
    if let Some(comparison) = &summary.comparison {
        return sections::table(&crate::comparison::table(comparison));
    }
    match summary.runs.as_slice() {
        [run] if summary.command == "load" => {
            let times = if run.is_the_servers() { sections::table(&percentiles(run)) } else { String::new() };
            format!("<p>{}</p>{times}", escaped(&load_answer::rates(run)))
        }
        [] => String::new(),
        runs => {
            let columns = answer::columns_of_runs(summary);
            let named = |column: &&answer::AnswerColumn| {
                let name = TableColumn::new(column.name.trim());
                if column.band.is_empty() { name } else { name.under(&ColumnBand::new(column.band, "")) }
            };
            let heads = std::iter::once(TableColumn::new("load")).chain(columns.iter().map(named));
            let row = |run: &SummaryRun| {
                let shown = if run.is_the_servers() { columns.len() } else { COLUMNS_WITHOUT_TIMES };
                let cells = columns.iter().take(shown).map(|column| (column.cell)(run));
                let row = TableRow::new(std::iter::once(run.label.clone()).chain(cells));
                match run.verdict {
                    SummaryVerdict::Invalid => row.noted("INVALID"),
                    SummaryVerdict::GeneratorBound => row.noted("GENERATOR-BOUND"),
                    _ => row,
                }
            };
            let mut table = DataTable::of_columns(heads, runs.iter().map(row));
            table.columns.iter_mut().for_each(|column| column.width = 1);
            let legend = answer::legend(summary).map(|legend| format!("<small>{}</small>", escaped(&legend)));
            sections::table(&table) + &legend.unwrap_or_default()
        }
    }
}

/// The percentiles of a load, and their intervals.
fn percentiles(run: &SummaryRun) -> DataTable {
    let times = &run.response_ms;
    let known = [times.p50, times.p90, times.p95, times.p99, times.p999];
    let all = || SUMMARY_PERCENTILES.iter().map(|(name, _)| *name).zip(known);
    let names = ["", "mean"].into_iter().chain(SUMMARY_PERCENTILES.iter().map(|(name, _)| *name)).chain(["max"]);
    let alone = |time: Option<f64>| time.map_or_else(|| number::NONE.to_owned(), number::of_millis);
    let values = all().map(|(name, time)| answer::time_cell(run, name, time));
    let first = ["response time, ms".to_owned(), alone(times.mean)];
    let values = TableRow::new(first.into_iter().chain(values).chain([alone(times.max)]));
    let ranges = all().map(|(name, _)| run.interval_ms.get(name).map(load_answer::range).unwrap_or_default());
    let intervals = TableRow::new(["95 % interval".to_owned(), String::new()].into_iter().chain(ranges));
    DataTable::new(names, [values, intervals])
}

/// What speaks for the figures and against them, and the commands that settle what is open.
pub(crate) fn trust(summary: &Summary) -> String {
    let line = |line: &crate::trust::TrustLine| {
        let class = match line.mark {
            TrustMark::Passed => "good",
            TrustMark::Uncertain | TrustMark::Doubtful => "doubt",
            TrustMark::Failed => "bad",
        };
        let hint = line.hint.map(|hint| format!("<br><small>→ {}</small>", escaped(hint))).unwrap_or_default();
        format!("<li><span class=\"{class}\">{}</span> {}{hint}</li>", line.mark.sign(), escaped(&line.sentence))
    };
    let next = summary
        .next
        .iter()
        .map(|next| format!("<li><small>{}</small><pre>{}</pre></li>", escaped(&next.why), escaped(&next.command)));
    let trust = list("ticks", summary.trust.iter().map(line));
    let next = list("next", next);
    let titled =
        |title: &str, inside: String| if inside.is_empty() { inside } else { format!("<h2>{title}</h2>\n{inside}") };
    titled("Can it be trusted?", trust) + &titled("What to ask next", next)
}
