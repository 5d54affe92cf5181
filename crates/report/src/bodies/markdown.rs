//! A study of bodies as markdown for a pull request: the same facts as the text, as GitHub lays them out.

use model::BodiesStudy;

use super::{facts, pivot, rows};
use crate::doubts::{is_doubtful, noted};
use crate::markdown::{
    environment, errors, escaped, fenced, glossary, kernel_of, pipe_table, verdicts_of, warnings, watched_of,
};
use crate::number;

/// The whole report.
pub fn whole(study: &BodiesStudy) -> String {
    let labelled = facts::labelled(study);
    let mut parts = vec![fenced("sh", &study.command_line)];
    if study.server().is_some() {
        parts.push(escaped(&format!("{}, {}", facts::server_name(study), facts::slots(study))) + "<br>");
    }
    parts.push(escaped(&facts::load(study).join("; ")) + "\n");
    parts.extend(facts::missing_runs(study).map(|missing| format!("{missing}\n")));
    for pivot in pivot::all(study) {
        let lines: Vec<Vec<String>> = std::iter::once(pivot.names).chain(pivot.lines).collect();
        parts.push(format!("{}\n\n{}", pivot.title, pipe_table(&lines)));
    }
    if !study.runs.is_empty() {
        parts.push(runs(study));
    }
    parts.extend([verdicts_of(&labelled), errors(&labelled), warnings(&study.warnings, &noted(&labelled))]);
    parts.extend([watched_of(&labelled), kernel_of(&labelled, &study.plan.sockets)]);
    if !study.runs.is_empty() {
        parts.push(glossary(&rows::words(study, &[])));
    }
    parts.extend([
        environment(&facts::environment(study)),
        format!("total time {}\n", number::minutes(study.total_time)),
    ]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn runs(study: &BodiesStudy) -> String {
    // The column of marks, where none is set.
    let left_out = usize::from(!study.runs.iter().any(|run| is_doubtful(&run.run)));
    let columns = rows::of(study).split_off(left_out);
    let head = columns.iter().map(|shown| shown.markdown.to_owned()).collect();
    let lines = study.sorted().into_iter().map(|run| rows::cells(&columns, run));
    pipe_table(&std::iter::once(head).chain(lines).collect::<Vec<_>>())
}
