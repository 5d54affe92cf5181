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
    let judgement = load.run.judgement.as_ref();
    if judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
    {
        return format!("{} The figures are not shown (--force shows them).\n", conclusion(load));
    }
    layout(load)
}

/// The same for another tool's layout, in which people look at the first lines: where the figures are
/// not the server's, the first line says so.
pub fn with_verdict_first(load: &LoadStudy, layout: fn(&LoadStudy) -> String) -> String {
    let text = with_valid_figures(load, layout);
    let judgement = load.run.judgement.as_ref();
    let is_shown_all_the_same = judgement.is_some_and(|judgement| match judgement.verdict {
        Verdict::GeneratorBound => true,
        Verdict::Invalid => judgement.forced,
        _ => false,
    });
    if is_shown_all_the_same { format!("{}\n{text}", conclusion(load)) } else { text }
}

/// What is concluded of a load, in a line.
fn conclusion(load: &LoadStudy) -> String {
    let findings = judge::findings(&Study::from(load.clone()));
    let conclusions = findings.iter().filter(|it| it.role() == FindingRole::Conclusion);
    conclusions.map(Finding::sentence).collect::<Vec<_>>().join(" ")
}
