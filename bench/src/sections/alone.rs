//! Longtail without other tools: its memory, which must not grow with the length of a run, and the
//! cost of a log line for each request at full speed, where dropped lines must be counted.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use report::number;

use crate::case::{Case, Done};
use crate::lab::Lab;
use crate::measure::{Contender, Sample};
use crate::output::{Table, shown};
use crate::sections::Extent;
use crate::sections::cost::{SMALL, interval, micros, times};
use crate::server::Kind;
use crate::tools::{End, Job};

const CONNECTIONS: u32 = 64;
/// How much the peaks may differ because of the allocator, and because a longer report has more
/// seconds.
const SHARE: f64 = 0.1;
const MORE: f64 = 1024.0 * 1024.0;

/// Requests of the short run.
fn short(extent: &Extent) -> u64 {
    (extent.memory_requests / 5).clamp(1, 1_000_000)
}

pub(super) fn memory_cases(extent: &Extent) -> Vec<Case> {
    let case = |requests| Case {
        name: format!("{requests} requests"),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job::closed(CONNECTIONS, End::Requests(requests)),
        contenders: vec![Contender::ours("longtail", &[])],
    };
    [short(extent), extent.memory_requests].into_iter().map(case).collect()
}

/// The table, and what is wrong.
pub(super) fn memory_text(cases: &[Done]) -> (String, Vec<String>) {
    let peaks: Vec<(u64, f64)> = cases.iter().filter_map(peak).collect();
    let mut table = Table::new(&["memory, 64 conn.|peak resident"]);
    for (requests, bytes) in &peaks {
        table.row([format!("{requests} requests"), mebibytes(*bytes)]);
    }
    let faults = match peaks[..] {
        [few, many] => growth(few, many).into_iter().collect(),
        _ => Vec::new(),
    };
    (format!("\n{}", table.text()), faults)
}

/// What is wrong if the long run (requests, peak in bytes) took more memory than the short one.
fn growth((few, before): (u64, f64), (many, after): (u64, f64)) -> Option<String> {
    (after > before * (1.0 + SHARE) + MORE).then(|| {
        let [before, after] = [before, after].map(mebibytes);
        format!("memory grows with the run: {before} for {few} requests, {after} for {many}")
    })
}

/// Bytes as MiB.
fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", number::fixed(bytes / (1024.0 * 1024.0), 1))
}

fn peak(done: &Done) -> Option<(u64, f64)> {
    let sample = done.entries.first()?.samples.last()?;
    Some((sample.received, sample.account.peak_bytes as f64))
}

const WITH: &str = "with --log FILE";
const WITHOUT: &str = "without a log";

fn file(lab: &Lab<'_>) -> PathBuf {
    lab.folder.join("requests.csv")
}

pub(super) fn log_cases(extent: &Extent, lab: &Lab<'_>) -> Vec<Case> {
    let file = file(lab).to_string_lossy().into_owned();
    vec![Case {
        name: format!("log, {CONNECTIONS} conn."),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job::closed(CONNECTIONS, End::After(extent.length)),
        contenders: vec![Contender::ours(WITHOUT, &[]), Contender::ours(WITH, &["--log", &file])],
    }]
}

/// The table, and what is wrong.
pub(super) fn log_text(cases: &[Done], lab: &Lab<'_>) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut faults = Vec::new();
    for done in cases.iter().filter(|done| done.failure.is_none()) {
        let mut table = Table::new(&[
            "log, 64 conn.|CPU us a req.|x without|[interval]|peak resident|requests|lines dropped",
        ]);
        let without = done.entry(WITHOUT);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let ratio = entry.times(without, |sample| Some(sample.cpu()));
            let sum =
                |of: fn(&Sample) -> u64| entry.samples.iter().map(of).sum::<u64>().to_string();
            table.row([
                entry.contender.name.clone(),
                shown(entry.middle(|sample| Some(sample.cpu())), |middle| micros(middle.median)),
                times(ratio),
                shown(ratio.filter(|middle| middle.of > 1), interval),
                shown(entry.middle(|sample| Some(sample.account.peak_bytes as f64)), |middle| {
                    mebibytes(middle.median)
                }),
                sum(|sample| sample.received),
                sum(|sample| sample.reported.log_dropped.unwrap_or_default()),
            ]);
        }
        let _ = write!(text, "\n{}", table.text());
        // The file is from the last run.
        let last = done.entry(WITH).and_then(|entry| entry.samples.last());
        if let Some((sample, lines)) = last.zip(lines(&file(lab))) {
            faults.extend(incomplete(sample, lines));
        }
    }
    (text, faults)
}

/// The number of records, without the header line.
fn lines(file: &PathBuf) -> Option<u64> {
    let lines = BufReader::new(File::open(file).ok()?).split(b'\n').count() as u64;
    Some(lines.saturating_sub(1))
}

/// What is wrong if a request is neither a line of the log nor counted as dropped.
fn incomplete(sample: &Sample, lines: u64) -> Option<String> {
    let dropped = sample.reported.log_dropped.unwrap_or_default();
    (lines + dropped != sample.received).then(|| {
        format!(
            "the log has {lines} lines and dropped {dropped}, but there were {} requests",
            sample.received
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolReport;

    #[test]
    fn a_byte_per_request_counts_as_growth() {
        const MEGABYTE: f64 = 1e6;
        assert_eq!(growth((1_000_000, 11.0 * MEGABYTE), (10_000_000, 11.5 * MEGABYTE)), None);
        let complaint =
            growth((1_000_000, 11.0 * MEGABYTE), (10_000_000, 20.0 * MEGABYTE)).unwrap();
        assert_eq!(
            complaint,
            "memory grows with the run: 10.5 MiB for 1000000 requests, 19.1 MiB for 10000000"
        );
    }

    #[test]
    fn a_missing_line_is_detected() {
        let reported = ToolReport { log_dropped: Some(3), ..ToolReport::default() };
        let sample = Sample { received: 10, reported, ..Sample::default() };
        assert_eq!(incomplete(&sample, 7), None);
        assert!(incomplete(&sample, 6).is_some() && incomplete(&sample, 8).is_some());
    }
}
