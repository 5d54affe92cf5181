//! What a study can be written as, a file each: text for a terminal, Markdown, HTML, CSV, the
//! study's own JSON, logs of requests, and the layouts of hey, wrk and Puma's scripts. (`--json` is
//! the summary itself: `summary.rs`.) `OutputFormat` in `longtail/src/args` says which is wanted.

pub(crate) mod csv;
pub mod hey;
pub mod html;
pub mod json;
pub(crate) mod markdown;
pub(crate) mod plot;
pub(crate) mod puma;
pub mod request_logs;
pub mod text;
pub mod wrk;

use judge::{Finding, FindingRole};
use model::{LoadStudy, Study, Verdict};

/// Lays out a load in a format that has no way to mark a run as invalid: for an invalid run it
/// returns a line that says why, and no figures.
pub fn with_valid_figures(load: &LoadStudy, layout: fn(&LoadStudy) -> String) -> String {
    if is_withheld(load) {
        return format!("{} The figures are not shown (--force shows them).\n", conclusion(load));
    }
    layout(load)
}

/// A layout of another tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolLayout {
    /// The whole report.
    pub whole: fn(&LoadStudy) -> String,
    /// The lines that only count responses and errors.
    pub counts: fn(&LoadStudy) -> String,
}

/// The same for another tool's layout, in which people look at the first lines: where the figures are
/// not the server's, the first line says so. Of an invalid run it has what was counted, and neither
/// times nor rates.
pub fn with_verdict_first(load: &LoadStudy, layout: ToolLayout) -> String {
    if is_withheld(load) {
        let why = conclusion(load);
        let counts = (layout.counts)(load);
        return format!("{why} Times and rates are not shown (--force shows them).\n{counts}");
    }
    let text = (layout.whole)(load);
    let is_shown_all_the_same = load.run.judgement.as_ref().is_some_and(|judgement| {
        matches!(judgement.verdict, Verdict::GeneratorBound | Verdict::Invalid)
    });
    if is_shown_all_the_same { format!("{}\n{text}", conclusion(load)) } else { text }
}

/// Whether a load is invalid, and nobody asked for its figures all the same.
fn is_withheld(load: &LoadStudy) -> bool {
    load.run
        .judgement
        .as_ref()
        .is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// Why the figures of a load are not the server's, in a line. The statuses of its responses are in
/// the layout.
fn conclusion(load: &LoadStudy) -> String {
    let findings = judge::findings(&Study::from(load.clone()));
    let conclusions = findings.iter().filter(|it| {
        it.role() == FindingRole::Conclusion && !matches!(it, Finding::GoodStatuses(_))
    });
    conclusions.map(Finding::sentence).collect::<Vec<_>>().join(" ")
}
