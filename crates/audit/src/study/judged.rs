//! What was made of a run's figures: Little's law, the gates, the verdict, the warnings and theory, computed again.

use super::book::Book;
use super::file::{Forecast, Gate, Run, Server, ServiceTime};
use super::tally::Drive;
use crate::check::{Check, Evidence, Finding};
use crate::range::Range;

/// Computed again, a quotient of the same numbers is the same but for its last digits.
const ROUNDING: f64 = 1e-9;
/// Beyond what the window's edges cut off, this much is no law any more (docs/METHOD.md, "The verdict").
const LAW: f64 = 0.05;

/// Good answers per second of the window.
pub(super) fn rate(run: &Run) -> Option<f64> {
    (run.measured_ns > 0).then(|| run.tally.completed_in_window as f64 * 1e9 / run.measured_ns as f64)
}

/// Mean response time, in seconds, rounded down to the nanosecond as longtail rounds it.
pub(super) fn mean_s(run: &Run) -> Option<f64> {
    let times = &run.tally.response_time;
    times.sum_ns.checked_div(times.count).map(|mean| mean as f64 / 1e9)
}

/// Mean time that an answer kept its connection, in seconds: by the kernel's stamps the wait to be read is not in the
/// response time.
fn kept_s(run: &Run) -> Option<f64> {
    let (times, unread) = (&run.tally.response_time, &run.tally.read_lag);
    (times.count > 0).then(|| times.sum_ns.saturating_add(unread.sum_ns) as f64 / 1e9 / times.count as f64)
}

/// The longest of those times over the window.
fn edge(run: &Run) -> f64 {
    let longest = run.tally.response_time.max_ns.saturating_add(run.tally.read_lag.max_ns);
    longest as f64 / run.measured_ns.max(1) as f64
}

/// Mean x rate = requests at once, of a closed loop that time ends and in which nothing failed.
pub(super) fn littles_law(run: &Run, drive: Drive) -> Option<Finding> {
    let tally = &run.tally;
    let at_once = drive.at_once.filter(|_| drive.is_busy)?;
    if tally.window.until_ns.is_none() || tally.total() != tally.good() || drive.interrupted {
        return None;
    }
    let (rate, mean) = (rate(run)?, kept_s(run)?);
    let in_flight = rate * mean;
    let tolerance = LAW + edge(run);
    let ratio = in_flight / at_once as f64;
    let evidence = Evidence::InFlight {
        rate_per_s: rate,
        mean_s: mean,
        at_once,
        in_flight,
        ratio,
        ratio_allowed: Range::exactly(ratio),
        cycle_s: at_once as f64 / rate,
        fixed_count: false,
    };
    let check = Check::LittlesLaw;
    Some(if ratio > 1.0 + tolerance {
        Finding::fails(check, evidence)
    } else if ratio < 1.0 - tolerance {
        Finding::doubtful(check, evidence)
    } else {
        Finding::holds(check, evidence)
    })
}

/// Each gate's figures, as they follow from the run's own.
pub(super) fn gates(run: &Run, drive: Drive) -> Vec<Finding> {
    let Some(judgement) = &run.judgement else { return Vec::new() };
    let mut book = Book::of(Check::Judgement);
    for gate in &judgement.gates {
        of_gate(&mut book, gate, run, drive);
    }
    // What the law's gate says, the verdict must say.
    let law = judgement.gates.iter().find(|gate| gate.gate == "littles_law");
    let off = law.and_then(|gate| {
        let ratio = gate.in_flight? / gate.connections?.max(1) as f64;
        Some((ratio - 1.0).abs() > LAW + gate.tolerance?)
    });
    if off == Some(true) {
        book.equal(
            "verdict: it is not invalid, and Little's law does not hold",
            u64::from(judgement.verdict != "invalid"),
            0,
        );
    }
    let mut findings = book.findings();
    if let "invalid" | "generator_bound" = judgement.verdict.as_str() {
        let verdict = judgement.verdict.replace('_', "-");
        findings.push(Finding::doubtful(Check::Judgement, Evidence::Judged { verdict }));
    }
    findings
}

fn of_gate(book: &mut Book, gate: &Gate, run: &Run, drive: Drive) {
    let tally = &run.tally;
    let mut near = |what: &str, stands: Option<f64>, follows: Option<f64>| {
        if let (Some(stands), Some(follows)) = (stands, follows) {
            book.near(&format!("gate {}: {what}", gate.gate), stands, follows, ROUNDING * follows.abs().max(1e-6));
        }
    };
    let whole = |n: Option<u64>| n.map(|n| n as f64);
    let most = |part: fn(&super::file::Lane) -> u64| {
        let lanes = run.generator.lanes.iter().filter(|lane| lane.elapsed_ns > 0);
        lanes.map(|lane| part(lane) as f64 / lane.elapsed_ns as f64).reduce(f64::max)
    };
    match gate.gate.as_str() {
        "headroom" => {
            let ceiling = run.generator.ceiling.as_ref().map(|ceiling| ceiling.rate_per_s);
            near("ceiling_per_s", gate.ceiling_per_s, ceiling);
            near("times", gate.times, ceiling.zip(rate(run)).map(|(ceiling, rate)| ceiling / rate));
        }
        "sent_in_time" => {
            near("sent", whole(gate.sent), Some(tally.sent_in_window as f64));
            near("due", whole(gate.due), Some(tally.total() as f64));
        }
        "generator_lag" | "read_lag" => {
            let of = if gate.gate == "read_lag" { &tally.read_lag } else { &tally.generator_lag };
            let (lag, response) = (of.quantile(0.99), tally.response_time.quantile(0.99));
            near("p99_ns", whole(gate.p99_ns), whole(lag));
            let share = lag.zip(response).map(|(lag, response)| lag as f64 / (response as f64).max(1.0));
            near("of_response_time", gate.of_response_time, share);
        }
        "lane_cpu" => near("share", gate.share, most(|lane| lane.cpu_ns.saturating_sub(lane.spun_ns))),
        "lane_run_queue" => near("share", gate.share, most(|lane| lane.run_queue_ns)),
        "standstill" => {
            near("share", gate.share, most(|lane| lane.stood_still_ns));
            let longest = run.generator.lanes.iter().map(|lane| lane.longest_standstill_ns).max();
            near("longest_ns", whole(gate.longest_ns), whole(longest));
        }
        "steal" => near("share", gate.share, run.generator.steal),
        "failures" => {
            near("failed", whole(gate.failed), Some((tally.total() - tally.good()) as f64));
            near("planned", whole(gate.planned), Some(tally.total() as f64));
        }
        "exhausted" => near("connects", whole(gate.connects), Some(tally.exhausted as f64)),
        "connect_stalls" => {
            near("retried", whole(gate.retried), whole(run.generator.syn_retransmits));
            let connects = tally.phases.get("connect").filter(|phase| phase.count > 0);
            near("longest_ns", whole(gate.longest_ns), Some(connects.map_or(0.0, |phase| phase.max_ns as f64)));
        }
        "clock_step" => near("steps", whole(gate.steps), whole(run.generator.clock_steps)),
        "listen_overflows" => near("dropped", whole(gate.dropped), whole(run.generator.listen_overflows)),
        "littles_law" => {
            near("connections", whole(gate.connections), whole(drive.at_once));
            near("in_flight", gate.in_flight, rate(run).zip(kept_s(run)).map(|(rate, mean)| rate * mean));
            near("tolerance", gate.tolerance, Some(edge(run)));
        }
        _ => {}
    }
}

/// The evidence of warnings, as it follows from the run's figures.
pub(super) fn warnings(run: &Run) -> Vec<Finding> {
    let tally = &run.tally;
    let mut book = Book::of(Check::Warnings);
    let (good, total) = (tally.good(), tally.total());
    let each = &tally.per_connection;
    for warning in &run.warnings {
        let failed = total - good;
        let least = each.iter().min().copied().unwrap_or(0);
        let most = each.iter().max().copied().unwrap_or(0);
        let known: &[(&str, Option<u64>, u64)] = match warning.code.as_str() {
            "failures" => &[("failed", warning.failed, failed), ("planned", warning.planned, total)],
            "quantiles_hidden" => &[("unanswered", warning.unanswered, failed)],
            "too_few_requests" => &[("answers", warning.answers, good)],
            "connections_closed" => &[("closed", warning.closed, tally.closed_by_server)],
            "unasked_bytes" => &[("closed", warning.closed, tally.closed_for_unasked)],
            "unfair" => &[("fewest", warning.fewest, least), ("most", warning.most, most)],
            "fell_behind" => {
                &[("due", warning.due, total), ("sent_in_time", warning.sent_in_time, tally.sent_in_window)]
            }
            "queued_in_generator" => &[
                ("requests", warning.requests, tally.queued.count),
                ("longest_ns", warning.longest_ns, tally.queued.max_ns),
            ],
            _ => &[],
        };
        for (what, stands, follows) in known {
            if let Some(stands) = stands {
                book.equal(&format!("warning {}: {what}", warning.code), *stands, *follows);
            }
        }
        if let Some(jain) = warning.jain {
            let sum: f64 = each.iter().map(|n| *n as f64).sum();
            let squares: f64 = each.iter().map(|n| (*n as f64).powi(2)).sum();
            book.near(
                &format!("warning {}: jain", warning.code),
                jain,
                sum * sum / (each.len() as f64 * squares),
                ROUNDING,
            );
        }
    }
    book.findings()
}

/// Slots, connections and theory of a sweep's run: multiple x slots, slots / service time, service time x turns.
pub(super) fn theory(
    (multiple, connections): (f64, u64),
    forecast: Option<&Forecast>,
    server: &Server,
    service_time: Option<&ServiceTime>,
) -> Vec<Finding> {
    let mut book = Book::of(Check::Theory);
    let slots = server.workers.saturating_mul(server.threads) as f64;
    book.near("connections", connections as f64, (multiple * slots).round().max(1.0), 0.0);
    if let Some(forecast) = forecast {
        let service_s = forecast.service_time_ns as f64 / 1e9;
        if let Some(known) = service_time {
            book.equal("service time of the theory", forecast.service_time_ns, known.time_ns);
        }
        let maximum = slots / service_s;
        book.near("maximum_rate_per_s", forecast.maximum_rate_per_s, maximum, ROUNDING * maximum);
        let ideal = service_s * (connections as f64 / slots).max(1.0) * 1e9;
        book.near("ideal_response_time_ns", forecast.ideal_response_time_ns as f64, ideal, 1.0);
    }
    book.findings()
}
