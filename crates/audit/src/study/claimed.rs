//! A run of another generator that a study keeps: its output is read and checked again, and the figures beside it must be
//! those of the output.

use super::book::Book;
use super::file::ClaimedRun;
use crate::check::Check;
use crate::claim::{Claim, Tool};
use crate::printed::Printed;
use crate::{Audited, Verdict, of_claim, parse};

pub(super) fn audited(run: &ClaimedRun, name: Option<String>, connections: u64) -> Audited {
    let text = format!("{}\n{}", run.command_line, run.output);
    let tool = Tool::ALL.into_iter().find(|tool| tool.to_string() == run.by);
    let read = parse::claims(&text).into_iter().find(|claim| Some(claim.tool) == tool);
    let is_read = read.is_some();
    let mut claim = read.unwrap_or_else(|| Claim::new(tool.unwrap_or(Tool::Longtail), 1));
    let mut book = Book::of(Check::KeptFigures);
    book.equal("outputs that are understood", u64::from(is_read), 1);
    book.equal("connections", run.connections, connections);
    if let Some(stated) = claim.connections {
        book.equal("connections", run.connections, stated);
    }
    claim.connections.get_or_insert(connections);
    claim.name = name;
    if is_read {
        compare(&mut book, run, &claim);
    }
    let mut audited = of_claim(claim);
    audited.findings.extend(book.findings());
    audited.verdict = Verdict::of(&audited.findings);
    audited
}

fn compare(book: &mut Book, run: &ClaimedRun, read: &Claim) {
    let kept = &run.claim;
    let nanos = |printed: Option<Printed>| printed.map(|printed| (printed.value * 1e9).round() as u64);
    for (what, stands, follows) in [
        ("requests", kept.requests, read.ended()),
        ("failed", kept.failed, read.failed()),
        ("duration_ns", kept.duration_ns, nanos(read.duration_s)),
        ("mean_ns", kept.mean_ns, nanos(read.mean_s)),
        ("stdev_ns", kept.stdev_ns, nanos(read.stdev_s)),
        ("min_ns", kept.min_ns, nanos(read.min_s)),
        ("max_ns", kept.max_ns, nanos(read.max_s)),
    ] {
        // A figure that is only in one of the two is a contradiction as well.
        book.equal(&format!("{what}: whether there is one"), stands.is_some().into(), follows.is_some().into());
        if let (Some(stands), Some(follows)) = (stands, follows) {
            book.equal(what, stands, follows);
        }
    }
    let rate = read.rate_per_s.map(|rate| rate.value);
    book.near("rate_per_s", kept.rate_per_s.unwrap_or(0.0), rate.unwrap_or(0.0), 1e-9);
    let received = read.received_bytes.map(|bytes| bytes.value);
    book.near("received_bytes", kept.received_bytes.unwrap_or(0.0), received.unwrap_or(0.0), 1e-3);
    book.equal("percentiles", kept.percentiles.len() as u64, read.percentiles.len() as u64);
    for (kept, read) in kept.percentiles.iter().zip(&read.percentiles) {
        book.near("a percentile's quantile", kept.quantile, read.quantile, 1e-9);
        book.equal("a percentile's time_ns", kept.time_ns, nanos(Some(read.time_s)).unwrap_or(0));
    }
    book.equal("statuses", kept.statuses.len() as u64, read.statuses.len() as u64);
    for (status, n) in &kept.statuses {
        book.equal(&format!("status {status}"), *n, read.statuses.get(status).copied().unwrap_or(0));
    }
}
