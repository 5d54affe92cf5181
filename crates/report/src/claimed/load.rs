//! The report of a load that another generator made: what it claims, what the audit says of it, and its own output.

use model::{ClaimedLoadStudy, Nanos};

use super::{findings, machine, made_by, word};
use crate::facts::{beside_the_server, hardware_in_words, listed, named};
use crate::load_facts;
use crate::number::{self, NONE, or_none};
use crate::tree::{DataTable, ListItem, NamedFact, ReportSection, ReportTree, TableCell, TableRow};

/// What is said of it.
pub fn report(study: &ClaimedLoadStudy) -> ReportTree {
    ReportTree {
        command_line: study.command_line.clone(),
        facts: facts(study),
        sections: sections(study),
        total_time: total_time(study),
        ..ReportTree::default()
    }
}

fn facts(study: &ClaimedLoadStudy) -> Vec<NamedFact> {
    let version = study.environment.longtail_version.clone();
    let placement = study.placement.as_ref();
    let placed = placement.map(|placement| beside_the_server(study.run.name(), Some(placement)));
    vec![
        NamedFact::key("load", [load_facts::model(&study.plan), load_facts::requests(&study.plan)]),
        NamedFact::key("made", std::iter::once(made_by(&study.run)).chain(placed)),
        NamedFact::new("target", load_facts::target(&study.plan)),
        NamedFact::new("machine", [hardware_in_words(&study.environment)]),
        NamedFact::new("longtail", [listed([version, named("started", &study.started_at)])]),
    ]
}

fn sections(study: &ClaimedLoadStudy) -> Vec<ReportSection> {
    let run = &study.run;
    let claim = &run.claim;
    let name = run.name();
    let mut findings = findings(run);
    if findings.is_empty() {
        findings.push("its figures, as far as they can be held against each other, agree".to_owned());
    }
    let doubts = run.warnings.iter().map(|warning| (warning.to_string(), warning.hint())).chain(machine(run));
    let count = |n: Option<u64>| n.map_or_else(|| TableCell::from(NONE), TableCell::count);
    let row = |name: &str, cell: TableCell| TableRow::new([name.into(), cell]);
    let warm_up = run.warm_up_requests.map(|n| row("in its warm-up", TableCell::count(n)).noted("thrown away"));
    let rates = [
        row("requests", count(claim.requests)),
        row("failed", count(claim.failed)).noted("bad statuses, errors and timeouts, as it counts them"),
        row("per second", TableCell::number(claim.rate_per_s, number::rate)),
        row("duration", or_none(claim.duration, number::length).into()),
    ];
    // Only what it printed.
    let ends = |name: &str, time: Option<Nanos>| Some((name.to_owned(), time?));
    let moments = [ends("mean", claim.mean), ends("std deviation", claim.stdev), ends("shortest", claim.min)];
    let percentiles = claim.percentiles.iter().map(|one| Some((number::percentile(one.quantile), one.time)));
    let times = moments.into_iter().chain(percentiles).chain([ends("longest", claim.max)]).flatten();
    let statuses = claim.statuses.iter().map(|(status, n)| row(status, TableCell::count(*n)));
    let all = [
        Some(ReportSection::new(format!("claim of {name}: {}", word(run.audit))).lines(findings)),
        Some(
            ReportSection::new(format!("rates, by {name}"))
                .table(DataTable::new(["", ""], rates.into_iter().chain(warm_up))),
        ),
        ReportSection::new(format!("times, by {name}"))
            .table(DataTable::new(["", "ms"], times.map(|(name, time)| row(&name, TableCell::time(Some(time))))))
            .filled(),
        ReportSection::new(format!("status codes, by {name}"))
            .table(DataTable::new(["", "answers"], statuses))
            .filled(),
        crate::load::objectives(&study.missed, &study.plan),
        ReportSection::new("warnings").list(doubts.map(|(seen, hint)| ListItem::new(seen).hint(hint))).filled(),
        Some(ReportSection::detail(format!("what {name} printed")).verbatim(&run.output)),
    ];
    all.into_iter().flatten().collect()
}

fn total_time(study: &ClaimedLoadStudy) -> String {
    let elapsed = study.run.elapsed;
    format!("total time {}", if elapsed == Nanos::ZERO { NONE.to_owned() } else { number::length(elapsed) })
}
