//! Memory: what a long run takes beyond a short one has to be nothing.

use report::number;

use crate::case::{Case, Done};
use crate::measure::Contender;
use crate::sections::Extent;
use crate::sections::cost::SMALL;
use crate::server::Kind;
use crate::table::Table;
use crate::tools::{End, Job};

const CONNECTIONS: u32 = 64;
/// What may differ by the allocator's moods, and by a report of more seconds.
const SHARE: f64 = 0.1;
const MORE: f64 = 1024.0 * 1024.0;

/// Requests of the short run.
fn short(extent: &Extent) -> u64 {
    (extent.memory_requests / 5).clamp(1, 1_000_000)
}

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let case = |requests| Case {
        name: format!("{requests} requests"),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job { connections: CONNECTIONS, end: End::Requests(requests), keep_alive: true, tls: false, rate: None },
        contenders: vec![Contender::ours("longtail", &[])],
    };
    [short(extent), extent.memory_requests].into_iter().map(case).collect()
}

/// The table, and what is wrong with it.
pub(super) fn text(cases: &[Done]) -> (String, Vec<String>) {
    let peaks: Vec<(u64, f64)> = cases.iter().filter_map(peak).collect();
    let mut table = Table::new(&[&["memory, 64 conn.", "peak resident"]]);
    for (requests, bytes) in &peaks {
        table.row([format!("{requests} requests"), mebibytes(*bytes)]);
    }
    let faults = match peaks[..] {
        [few, many] => growth(few, many).into_iter().collect(),
        _ => Vec::new(),
    };
    (format!("\n{}", table.text()), faults)
}

/// What is wrong where the long run (its requests, its peak in bytes) took more than the short one.
fn growth((few, before): (u64, f64), (many, after): (u64, f64)) -> Option<String> {
    (after > before * (1.0 + SHARE) + MORE).then(|| {
        let [before, after] = [before, after].map(mebibytes);
        format!("memory grows with the run: {before} of {few} requests, {after} of {many}")
    })
}

/// Bytes as MiB.
pub(super) fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", number::fixed(bytes / (1024.0 * 1024.0), 1))
}

fn peak(done: &Done) -> Option<(u64, f64)> {
    let sample = done.entries.first()?.samples.last()?;
    Some((sample.received, sample.account.peak_bytes as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_request_is_growth() {
        const MEGABYTE: f64 = 1e6;
        assert_eq!(growth((1_000_000, 11.0 * MEGABYTE), (10_000_000, 11.5 * MEGABYTE)), None);
        let said = growth((1_000_000, 11.0 * MEGABYTE), (10_000_000, 20.0 * MEGABYTE)).unwrap();
        assert_eq!(said, "memory grows with the run: 10.5 MiB of 1000000 requests, 19.1 MiB of 10000000");
    }
}
