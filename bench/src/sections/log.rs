//! A log line for each request, at full speed: what it costs, that memory stays bounded, and that what was dropped was
//! counted.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use crate::case::{Case, Done, Rounds};
use crate::lab::Lab;
use crate::measure::{Contender, Sample};
use crate::sections::Extent;
use crate::sections::cost::{SMALL, interval, micros, times};
use crate::sections::memory::mebibytes;
use crate::server::Kind;
use crate::table::{Table, shown};
use crate::tools::{End, Job};

const CONNECTIONS: u32 = 64;
const WITH: &str = "with --log FILE";
const WITHOUT: &str = "without a log";

pub(super) fn rounds(extent: &Extent) -> Rounds {
    let all = extent.rounds.all.min(if extent.quick { 1 } else { 3 });
    Rounds { all, others: all }
}

fn file(lab: &Lab<'_>) -> PathBuf {
    lab.folder.join("requests.csv")
}

pub(super) fn cases(extent: &Extent, lab: &Lab<'_>) -> Vec<Case> {
    let file = file(lab).to_string_lossy().into_owned();
    vec![Case {
        name: format!("log, {CONNECTIONS} conn."),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job { connections: CONNECTIONS, end: End::After(extent.length), keep_alive: true, tls: false, rate: None },
        contenders: vec![Contender::ours(WITHOUT, &[]), Contender::ours(WITH, &["--log", &file])],
    }]
}

/// The table, and what is wrong with it.
pub(super) fn text(cases: &[Done], lab: &Lab<'_>) -> (String, Vec<String>) {
    let (mut text, mut faults) = (String::new(), Vec::new());
    for done in cases.iter().filter(|done| done.failure.is_none()) {
        let mut table = Table::new(&[&[
            "log, 64 conn.",
            "CPU us a req.",
            "x without",
            "[interval]",
            "peak resident",
            "requests",
            "lines dropped",
        ]]);
        let without = done.entry(WITHOUT);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let ratio = entry.times(without, |sample| Some(sample.cpu()));
            let sum = |of: fn(&Sample) -> u64| entry.samples.iter().map(of).sum::<u64>().to_string();
            table.row([
                entry.contender.name.clone(),
                shown(entry.middle(|sample| Some(sample.cpu())), |middle| micros(middle.median)),
                times(ratio),
                shown(ratio.filter(|middle| middle.of > 1), interval),
                shown(entry.middle(|sample| Some(sample.account.peak_bytes as f64)), |middle| mebibytes(middle.median)),
                sum(|sample| sample.received),
                sum(|sample| sample.said.log_dropped.unwrap_or_default()),
            ]);
        }
        let _ = write!(text, "\n{}", table.text());
        // The file is that of the last run.
        let last = done.entry(WITH).and_then(|entry| entry.samples.last());
        if let Some((sample, lines)) = last.zip(lines(&file(lab))) {
            faults.extend(incomplete(sample, lines));
        }
    }
    (text, faults)
}

/// Lines of records: the first says what the columns are.
fn lines(file: &PathBuf) -> Option<u64> {
    let lines = BufReader::new(File::open(file).ok()?).split(b'\n').count() as u64;
    Some(lines.saturating_sub(1))
}

/// Each request is a line, or counted as dropped.
fn incomplete(sample: &Sample, lines: u64) -> Option<String> {
    let dropped = sample.said.log_dropped.unwrap_or_default();
    (lines + dropped != sample.received)
        .then(|| format!("the log has {lines} lines and lacks {dropped}, and there were {} requests", sample.received))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::Said;

    #[test]
    fn a_line_that_is_missing_is_found() {
        let said = Said { log_dropped: Some(3), ..Said::default() };
        let sample = Sample { received: 10, said, ..Sample::default() };
        assert_eq!(incomplete(&sample, 7), None);
        assert!(incomplete(&sample, 6).is_some() && incomplete(&sample, 8).is_some());
    }
}
