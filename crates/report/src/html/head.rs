//! The top and the bottom of the page, from the summary alone: the answer, why, the table, whether it can be trusted, what to type next.

use crate::answer;
use crate::html::sections;
use crate::load_answer;
use crate::markup::{escaped, joined};
use crate::summary::{Summary, SummaryVerdict};
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
    let table = answer::table(summary);
    let rates =
        (summary.command == "load").then(|| format!("<p>{}</p>", escaped(&load_answer::rates(&summary.runs[0]))));
    let legend = answer::legend(summary).filter(|_| summary.comparison.is_none());
    let legend = legend.map(|legend| format!("<small>{}</small>", escaped(&legend)));
    let table = if table.rows.is_empty() { String::new() } else { sections::table(&table) };
    rates.unwrap_or_default() + &table + &legend.unwrap_or_default()
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
