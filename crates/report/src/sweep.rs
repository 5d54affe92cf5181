//! The report of a sweep.

use model::SweepStudy;

use crate::claimed;
use crate::facts;
use crate::far;
use crate::number;
use crate::run_columns::{self, MARKS};
use crate::tree::{DataTable, NamedFact, ReportSection, ReportTree, TableColumn, TableRow};
use crate::{
    Columns, Layout, diagnostics, expectations, intervals, kernel_view, named_runs, puma, repeats, server_view, text,
    theory, workers,
};

/// What is said of it: in Puma's columns, of which the tree has no table, or in ours.
pub fn report(study: &SweepStudy, columns: Columns) -> ReportTree {
    let runs = named_runs::of_sweep(study);
    let missing = facts::missing_runs(study.runs.len(), study.plan.runs(), study.interrupted);
    let sections = [
        missing.map(ReportSection::new),
        expectations::section(&study.plan.thresholds, &runs),
        repeats::section(study),
        diagnostics::verdicts(&runs),
        claimed::accounts(&runs),
        diagnostics::errors(&runs),
        diagnostics::warnings(&study.warnings, &runs),
        intervals::section(study),
        kernel_view::where_the_time_went(study),
        server_view::section(&runs),
        kernel_view::section(&runs, &[study.plan.server.socket]),
        kernel_view::why_none(study).map(ReportSection::new),
        server_view::statsd(&runs),
        server_view::over_time(&runs),
        theory_section(study),
        workers::section(study),
        far::section(&runs),
    ];
    let glossary = match columns {
        _ if study.runs.is_empty() => Vec::new(),
        Columns::Puma => puma::words(study),
        Columns::Longtail => MARKS.to_vec(),
    };
    ReportTree {
        command_line: study.command_line.clone(),
        facts: facts_of(study),
        table: (columns == Columns::Longtail).then(|| table(study)),
        sections: sections.into_iter().flatten().collect(),
        glossary,
        total_time: match columns {
            Columns::Puma => format!("{:>5} Total Time", number::minutes(study.total_time)),
            Columns::Longtail => format!("total time {}", number::minutes(study.total_time)),
        },
    }
}

/// What was measured, and where.
fn facts_of(study: &SweepStudy) -> Vec<NamedFact> {
    facts::of_sweep(study).into_iter().chain([NamedFact::new("probe", theory::probes(study))]).collect()
}

fn table(study: &SweepStudy) -> DataTable {
    let columns = run_columns::of_sweep(study);
    let lines = study.runs.iter().map(|run| run_columns::row(&columns, run, run.judgement.as_ref())).collect();
    run_columns::table(columns, lines)
}

/// The whole report as text.
pub fn whole(study: &SweepStudy, layout: Layout) -> String {
    let report = report(study, layout.columns);
    match layout.columns {
        Columns::Longtail => text::whole(&report, layout.width),
        Columns::Puma => text::around(&report, &puma::table(study), layout.width),
    }
}

fn theory_section(study: &SweepStudy) -> Option<ReportSection> {
    let section = ReportSection::detail(theory::title(study));
    let remarks = theory::remarks(study);
    // Of runs that are held against no model there may be no forecast either.
    // Each figure with how far off it was measured.
    let column = |(at, name)| TableColumn { is_joined: at > 2 && at % 2 == 1, ..TableColumn::new(name) };
    let columns = theory::head().into_iter().enumerate().map(column);
    let table = DataTable::of_columns(columns, theory::lines(study).into_iter().map(TableRow::new));
    (!remarks.is_empty()).then(|| section.table(DataTable { lead: 2, ..table }).lines(remarks))
}
