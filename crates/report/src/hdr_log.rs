//! The distributions as an `HdrHistogram` log, version 1.3, with V2 compressed histograms, for the tools of that family.
//!
//! One interval, the measured window, under two tags: `response` and `service`. Times are in nanoseconds, the
//! log's own column of the longest in milliseconds. Only good answers are in it.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use jiff::Timestamp;
use model::{Histogram, LoadStudy};

/// The log.
///
/// # Panics
/// Never: the histograms' range can always be written, and so can memory.
pub fn log(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("[{}]", study.command_line))
        .add_comment("[times of good answers in ns; Interval_Max in ms]")
        .with_max_value_divisor(1e6);
    if let Ok(started) = study.started_at.parse::<Timestamp>() {
        builder.with_start_time(SystemTime::from(started)).with_base_time(SystemTime::from(started));
    }
    let mut writer = builder.begin_log_with(&mut log, &mut serializer).expect("memory can be written");
    for (tag, times) in [("response", &tally.response_time), ("service", &tally.service_time)] {
        let tag = Tag::new(tag);
        let (start, length) = (Duration::from(tally.window.from), Duration::from(study.run.measured));
        writer.write_histogram(&buckets(times), start, length, tag).expect("the range can be written");
    }
    String::from_utf8(log).expect("the log is ASCII but for the command line, which is UTF-8")
}

/// The buckets of [`Histogram`], as the format's own type.
fn buckets(times: &Histogram) -> Buckets<u64> {
    let mut buckets = Buckets::new_with_bounds(1, 3_600_000_000_000, 3).expect("1 ns to 1 h is a valid range");
    for (time, count) in times.buckets() {
        buckets.saturating_record_n(time.0, count);
    }
    buckets
}
