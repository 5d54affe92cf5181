//! All that is known of a comparison, as a tree: a row a run, the arms, and what is doubtful.

use model::Nanos;
use model::comparison::{ComparisonRun, ComparisonStudy, Metric};

use super::trust::pace;
use crate::facts;
use crate::in_words;
use crate::number;
use crate::run_columns::{self, MARKS, RunColumn, mark, response_times};
use crate::tree::{ColumnBand, NamedFact, ReportSection, ReportTree, TableCell};
use crate::{diagnostics, kernel_view, named_runs, server_view};

/// What is said of it, its runs in the order in which they were made.
pub fn report(study: &ComparisonStudy) -> ReportTree {
    let columns = columns(study);
    let rows = study.runs.iter().map(|run| run_columns::row(&columns, run, run.run.judgement.as_ref())).collect();
    let runs = named_runs::of_comparison(study);
    let sockets: Vec<_> = study.plan.arms.iter().map(|arm| arm.server.socket).collect();
    let sections = [
        study.interrupted.then(|| ReportSection::new("interrupted: blocks are missing")),
        ReportSection::new("runs that came to nothing").lines(lost(study)).filled(),
        diagnostics::verdicts(&runs),
        diagnostics::errors(&runs),
        diagnostics::warnings(&study.warnings, &runs),
        server_view::section(&runs),
        kernel_view::section(&runs, &sockets),
    ];
    ReportTree {
        command_line: study.command_line.clone(),
        facts: facts_of(study),
        table: Some(run_columns::table(columns, rows)),
        sections: sections.into_iter().flatten().collect(),
        glossary: if study.runs.is_empty() { Vec::new() } else { MARKS.to_vec() },
        total_time: format!("total time {}", number::minutes(study.total_time)),
    }
}

fn lost(study: &ComparisonStudy) -> impl Iterator<Item = String> {
    study.lost.iter().map(|lost| format!("{}, block {}: {}", study.plan.letter(lost.arm), lost.block, lost.reason))
}

/// What was measured, and where.
fn facts_of(study: &ComparisonStudy) -> Vec<NamedFact> {
    let plan = &study.plan;
    let arms = plan.arms.iter().enumerate().map(|(at, arm)| {
        let server = study.server(at).map(facts::server_name);
        let parts = [Some(arm.name.clone()), Some(arm.settings.join(", ")).filter(|all| *all != arm.name), server];
        format!("{}: {}", plan.letter(at), in_words::listed(parts.into_iter().flatten()))
    });
    let commands = plan
        .arms
        .iter()
        .enumerate()
        .filter_map(|(at, _)| Some(format!("{}: {}", plan.letter(at), study.server(at)?.command_line)));
    let placement = study.server(0).and_then(|server| server.placement.as_ref());
    let base = &plan.arms[0].stream;
    vec![
        NamedFact::key("arms", arms),
        NamedFact::new("commands", commands),
        NamedFact::new("machine", [facts::machine(&study.environment, &study.started_at)]),
        NamedFact::key(
            "load",
            [
                format!("{}, in blocks of all arms in a balanced order (seed {})", pace(study), plan.seed),
                facts::stream_in_words(base, study.lanes_by, placement, None),
            ],
        ),
    ]
}

/// The columns of the table of runs, in order.
fn columns(study: &ComparisonStudy) -> Vec<RunColumn<ComparisonRun>> {
    type C = RunColumn<ComparisonRun>;
    let times = response_times();
    let server = ColumnBand::new("server", "");
    let plan = study.plan.clone();
    let time =
        |metric: Metric| move |run: &ComparisonRun| TableCell::time(metric.of(run).ok().map(Nanos::from_secs_f64));
    let own = [
        mark(|run: &ComparisonRun| diagnostics::is_doubtful(&run.run)),
        C::kept("block", 5, |run| TableCell::count(run.block)).meaning("each has every arm once").of_any_run(),
        C::kept("arm", 3, move |run| plan.letter(run.arm).into())
            .meaning("A' is the control: A once more")
            .of_any_run(),
        C::kept("attempt", 7, |run| TableCell::count(run.attempt))
            .constant(study.runs.iter().all(|run| run.attempt == 1))
            .meaning("2: the first run failed its checks, and is not counted")
            .of_any_run(),
        C::ranked(5, "conns", 5, |run| TableCell::count(run.run.connections)).key("connections").of_any_run(),
        C::kept("req/s", 6, |run| TableCell::number(Metric::Throughput.of(run).ok(), number::rate)).key("rate_per_s"),
        C::kept("mean", 5, time(Metric::Mean)).under(&times).key("mean_ms"),
        C::kept("p50", 5, time(Metric::P50)).under(&times).key("p50_ms"),
        C::kept("p95", 5, time(Metric::P95)).under(&times).key("p95_ms"),
        C::kept("p99", 5, time(Metric::P99)).under(&times).key("p99_ms"),
        C::kept("CPU ms", 7, time(Metric::Cpu))
            .meaning("time of all processes of the server on a CPU, an answer (the warm-up in both)")
            .under(&server)
            .key("server_cpu_ms"),
        C::ranked(4, "MB", 5, |run| TableCell::number(Metric::Memory.of(run).ok(), number::megabytes))
            .meaning("memory of the server after the run, in million bytes, what its processes share counted once")
            .under(&server)
            .key("server_memory_bytes"),
    ];
    own.into_iter().chain(run_columns::endings(|run: &ComparisonRun| &run.run)).collect()
}
