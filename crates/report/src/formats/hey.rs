//! hey's layout (v0.1.4) with our numbers, for scripts that read it.
//!
//! Lines, words, tabs and decimals are the same, except for the spaces that hey leaves at the end
//! of a line. The numbers differ in what they measure:
//!
//! - times are response times, from when a request was due (hey: from when it was sent), of good
//!   responses alone (hey: of all, a 503 too); a percentile that too few responses support is left
//!   out, as hey leaves out one that it does not have;
//! - `Total` is the measured window, and `Requests/sec` the good responses per second in it;
//! - `Total data` is the bodies of all responses, as in hey, those to unmeasured requests included;
//!   `Size/request` is `Total data` divided by their number;
//! - `DNS+dialup` has its own fastest and slowest (hey prints those of the whole request), 0 for a
//!   connection that was kept; with TLS the slowest is the slowest connect plus the slowest
//!   handshake, an upper bound;
//! - a name is resolved once, before the start;
//! - errors are in our words;
//! - statuses and errors are of the requests that were due in the measured window, some of which
//!   ended after it; the last line, which hey does not have, says so, and `longtail audit` reads it.

use std::fmt::Write as _;

use model::{DurationSummary, Histogram, LoadStudy, Nanos, Outcome};

use super::ToolLayout;
use crate::number;

const PERCENTILES: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];
/// hey's bins: one for the fastest, and ten of equal width.
const BINS: u64 = 10;
const BAR: u64 = 40;

/// How the last line begins.
pub const BY_LONGTAIL: &str = "By longtail, in hey's layout:";
/// How it goes on.
const WHAT_IS_COUNTED: &str = "Requests/sec is of good responses that ended in the Total, statuses are of requests due in it, bytes are bodies of the whole run";

/// It, with all its parts.
pub const LAYOUT: ToolLayout = ToolLayout { whole, counts };

/// The whole report.
pub fn whole(study: &LoadStudy) -> String {
    let run = &study.run;
    let tally = &run.tally;
    let times = &tally.response_time;
    let mut text = format!("\nSummary:\n  Total:\t{} secs\n", number::seconds(run.measured));
    for (name, time) in
        [("Slowest", times.max()), ("Fastest", times.min()), ("Average", times.mean())]
    {
        if let Some(time) = time {
            _ = writeln!(text, "  {name}:\t{} secs", number::seconds(time));
        }
    }
    _ = writeln!(text, "  Requests/sec:\t{}\n", number::fixed(run.completed_rate(), 4));
    // Without any body hey leaves both lines out.
    let total = tally.body_bytes;
    if total > 0
        && let Some(size) = total.checked_div(tally.all_responses())
    {
        _ = write!(text, "  Total data:\t{total} bytes\n  Size/request:\t{size} bytes\n\n");
    }
    if tally.counts.good() > 0 {
        text += &histogram(times);
        text += "Latency distribution:\n";
        for percent in PERCENTILES {
            if let Some(time) = run.response_time(f64::from(percent) / 100.0).time() {
                _ = writeln!(text, "  {percent}% in {} secs", number::seconds(time));
            }
        }
        text += &details(study);
    }
    text + &counts(study) + &format!("{BY_LONGTAIL} {WHAT_IS_COUNTED}\n")
}

fn counts(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let mut text = "Status code distribution:\n".to_owned();
    for (outcome, n) in tally.counts.iter() {
        if let Outcome::Answered(status) = outcome {
            _ = writeln!(text, "  [{status}]\t{n} responses");
        }
    }
    text + "\n" + &errors(study)
}

fn histogram(times: &Histogram) -> String {
    let (Some(fastest), Some(slowest)) = (times.min(), times.max()) else { return String::new() };
    let width = (slowest - fastest).as_secs_f64() / BINS as f64;
    let mark = |bin: u64| {
        if bin == BINS {
            slowest
        } else {
            Nanos::from_secs_f64(fastest.as_secs_f64() + width * bin as f64)
        }
    };
    let marks: Vec<Nanos> = (0..=BINS).map(mark).collect();
    let mut counts = vec![0; marks.len()];
    for (at, (time, count)) in times.buckets().enumerate() {
        let bin = marks.partition_point(|mark| *mark < time).min(marks.len() - 1);
        counts[bin] += count;
        // The fastest bucket ends above the fastest time, but one response took exactly that time.
        if at == 0 && bin > 0 {
            counts[bin] -= 1;
            counts[0] += 1;
        }
    }
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut text = "Response time histogram:\n".to_owned();
    for (mark, count) in marks.iter().zip(counts) {
        let bar = "■".repeat(((count * BAR + fullest / 2) / fullest) as usize);
        _ = writeln!(text, "  {} [{}]\t|{bar}", number::fixed(mark.as_secs_f64(), 3), count);
    }
    text + "\n\n"
}

fn details(study: &LoadStudy) -> String {
    let phases = &study.run.tally.phases;
    let responses = study.run.tally.counts.good();
    let handshake = &phases.handshake;
    let fastest_handshake = if handshake.count > 0 { handshake.min } else { Nanos::ZERO };
    let opened = DurationSummary {
        sum: phases.connect.sum.saturating_add(handshake.sum),
        min: phases.connect.min.saturating_add(fastest_handshake),
        max: phases.connect.max.saturating_add(handshake.max),
        ..phases.connect
    };
    let mut resolved = DurationSummary::default();
    study.name_resolution.iter().for_each(|time| resolved.record(*time));
    let mut text = "\nDetails (average, fastest, slowest):\n".to_owned();
    for (name, phase) in [
        ("DNS+dialup", &opened),
        ("DNS-lookup", &resolved),
        ("req write", &phases.write),
        ("resp wait", &phases.first_byte),
        ("resp read", &phases.read),
    ] {
        let [average, fastest, slowest] = over_all(phase, responses).map(number::seconds);
        _ = writeln!(text, "  {name}:\t{average} secs, {fastest} secs, {slowest} secs");
    }
    text + "\n"
}

/// Average, fastest and slowest over all responses, as hey counts: a phase that a response did not
/// have took no time.
fn over_all(phase: &DurationSummary, responses: u64) -> [Nanos; 3] {
    let average = Nanos(phase.sum.0.checked_div(responses).unwrap_or(0));
    let fastest = if phase.count < responses { Nanos::ZERO } else { phase.min };
    [average, fastest, phase.max]
}

/// Requests that ended without a response, by kind. Bad responses are listed by reason, as hey has
/// a line for each error message.
fn errors(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let mut text = String::new();
    let mut line = |n: u64, what: &str| _ = writeln!(text, "  [{n}]\t{what}");
    for (outcome, n) in
        tally.counts.iter().filter(|(outcome, _)| !matches!(outcome, Outcome::Answered(_)))
    {
        let kind = model::counts::name(outcome).replace('_', " ");
        if outcome == Outcome::BadResponse {
            tally
                .bad_responses
                .iter()
                .for_each(|(reason, n)| line(n, &format!("{kind}: {reason}")));
        } else {
            line(n, &kind);
        }
    }
    if text.is_empty() { text } else { format!("Error distribution:\n{text}\n") }
}
