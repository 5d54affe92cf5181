//! Checks what another machine reports of its part of a run against the plan, before it is merged
//! and before memory is reserved for it: that machine may be faulty, or lie.

use engine::LoadSpec;
use model::pace::{Pace, Profile};
use model::{Nanos, Silence, Tally};

use super::PartDone;

/// The most responses per second on one connection. Even over loopback, a response takes ten times
/// longer than this allows.
const MOST_PER_SECOND: f64 = 1e6;
/// More bytes than any run sends or receives: 9 petabytes.
const MOST_BYTES: u64 = 1 << 53;
/// Longest frame of a generator that has no plan yet.
pub(super) const LONGEST_WITHOUT_PLAN: usize = 64 << 10;
/// The longest part, however many requests it has: every bucket of its histograms is filled.
const LONGEST_PART: u64 = 128 << 20;
/// Longest part of a generator that sent nothing.
const LONGEST_EMPTY_PART: u64 = 1 << 20;
/// What one request can add: a bucket in each histogram.
const BYTES_A_REQUEST: u64 = 1 << 10;
/// A connection's count, and a second's counts.
const BYTES_A_CONNECTION: u64 = 24;
const BYTES_A_SECOND: u64 = 256;
/// The longest run if its plan sets no limit: no flag takes a longer time.
pub(super) const LONGEST_RUN: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// The most measured requests that the plan allows; `None` if only time ends the run.
fn most_requests(spec: &LoadSpec) -> Option<u64> {
    let of_connections =
        spec.requests_per_connection.map(|each| each.saturating_mul(spec.load.connections.into()));
    spec.load.requests_total.into_iter().chain(of_connections).min()
}

/// How long the run may take after its start; `None` for a closed loop that only a count ends: it
/// takes as long as the server needs.
pub(super) fn longest_run(spec: &LoadSpec) -> Option<Nanos> {
    let length = match (spec.measured, &spec.load.pace) {
        (Some(length), _) => length,
        (None, Pace::Open { profile, .. }) => {
            let requests = most_requests(spec)? as f64;
            // Gaps are random, but it practically never happens that they take twice as long.
            Nanos::from_secs_f64(2.0 * requests / lowest_rate(profile)) + Nanos::from_secs(60)
        }
        (None, Pace::Closed) => return None,
    };
    Some(spec.load.warm_up + length + spec.load.timeout + spec.drain.unwrap_or_default())
}

fn lowest_rate(profile: &Profile) -> f64 {
    match profile {
        Profile::Flat { rate } => rate.per_second(),
        Profile::Ramp { from, to, .. } => from.per_second().min(to.per_second()),
        Profile::Steps { rates, .. } => {
            rates.iter().map(|rate| rate.per_second()).fold(f64::INFINITY, f64::min)
        }
        Profile::Recorded { recorded } => {
            recorded.requests as f64 / recorded.lasts.as_secs_f64().max(1e-6)
        }
    }
    .max(1e-6)
}

/// In a closed loop that a count ends: the longest time between the ends of two requests.
pub(super) fn longest_pause(spec: &LoadSpec) -> Nanos {
    spec.load.warm_up + spec.load.timeout + spec.load.think
}

/// The longest frame that a part of this run can need.
pub(super) fn longest_frame(spec: &LoadSpec, with_records: bool) -> usize {
    let seconds = longest_run(spec).unwrap_or(LONGEST_RUN).as_secs_f64() as u64;
    let of_requests = most_requests(spec).map_or(LONGEST_PART, |requests| {
        requests.saturating_mul(BYTES_A_REQUEST).min(LONGEST_PART)
    });
    let of_seconds = (seconds * BYTES_A_SECOND).min(LONGEST_PART);
    let of_records = if with_records { LONGEST_PART } else { 0 };
    let of_connections = u64::from(spec.load.connections) * BYTES_A_CONNECTION;
    (LONGEST_EMPTY_PART + of_requests + of_seconds + of_records + of_connections) as usize
}

/// Checks that a part of this run, which began at `start` and was over by `until`, can have
/// recorded this.
///
/// # Errors
/// Says what is impossible.
pub(super) fn check(
    done: &PartDone,
    spec: &LoadSpec,
    start: Nanos,
    until: Nanos,
) -> Result<(), String> {
    if !(start..=until).contains(&done.ended) {
        return Err("it ended at a time outside of its run".to_owned());
    }
    let Some(outcome) = &done.outcome else { return Ok(()) };
    check_tally(&outcome.tally, spec, start, done.ended)?;
    let window = spec.window(start);
    let is_possible = |silence: &Silence| silence.from <= silence.until && silence.until <= until;
    let is_of_window = outcome.batches.is_of(window)
        && outcome.silences.iter().flatten().all(is_possible)
        && outcome.backlog.as_ref().is_none_or(|backlog| backlog.is_of(window));
    if !is_of_window {
        return Err("its times are not those of its run".to_owned());
    }
    if outcome.interrupted_at.is_some_and(|at| at > until) {
        return Err("it was interrupted after its end".to_owned());
    }
    Ok(())
}

/// Checks what a generator has recorded until `until`.
pub(super) fn check_tally(
    tally: &Tally,
    spec: &LoadSpec,
    start: Nanos,
    until: Nanos,
) -> Result<(), String> {
    if tally.window != spec.window(start)
        || tally.per_connection.len() != spec.load.connections as usize
        || tally.last_ended > until.max(tally.window.from)
    {
        return Err("its times and connections are not those of its run".to_owned());
    }
    let seconds = until.saturating_sub(start).as_secs_f64();
    if tally.series.seconds.len() as f64 > seconds + 2.0 {
        return Err("it has more seconds than its run".to_owned());
    }
    check_requests(tally, spec, seconds)?;
    check_totals(tally)?;
    check_classes(tally, spec)
}

/// Checks that its classes are those of the plan, and that all requests are their sum.
fn check_classes(tally: &Tally, spec: &LoadSpec) -> Result<(), String> {
    let classes = &tally.classes;
    if classes.is_empty() {
        return Ok(());
    }
    if !classes.iter().map(|class| &class.name).eq(spec.requests.classes()) {
        return Err("its classes of requests are not those of its run".to_owned());
    }
    let mut sum = 0_u64;
    for class in classes {
        let counted = class.counts.checked_total();
        let Some(all) = counted.and_then(|counted| sum.checked_add(counted)) else {
            return Err("it counts more requests than fit into 64 bits".to_owned());
        };
        sum = all;
        if class.response_time.count() > class.counts.good() {
            return Err("it has more times than responses".to_owned());
        }
    }
    if sum != tally.counts.total() {
        return Err("its classes do not add up to its requests".to_owned());
    }
    Ok(())
}

/// Checks that this many requests can have been made in that time.
fn check_requests(tally: &Tally, spec: &LoadSpec, seconds: f64) -> Result<(), String> {
    let measured = tally.counts.checked_total();
    let all = measured.zip(tally.unmeasured.checked_total());
    let Some((measured, unmeasured)) = all else {
        return Err("it counts more requests than fit into 64 bits".to_owned());
    };
    if let Some(most) = most_requests(spec)
        && measured > most
    {
        return Err(format!("it counts {measured} requests, and {most} were asked for"));
    }
    let most = match &spec.load.pace {
        Pace::Closed => f64::from(spec.load.connections) * (1.0 + seconds * MOST_PER_SECOND),
        Pace::Open { profile: Profile::Steps { rates, .. }, .. } if rates.is_empty() => {
            return Err("its plan has no step".to_owned());
        }
        // Gaps may be random, but twice as many are practically never due in that time.
        Pace::Open { profile, burst, .. } => {
            1000.0 + f64::from(*burst) + 2.0 * profile.peak().per_second() * seconds
        }
    };
    let all = measured as f64 + unmeasured as f64;
    if all > most {
        return Err(format!("it counts {all} requests, more than are sent in {seconds:.0} s"));
    }
    if tally.send_lag.count() > measured {
        return Err("it has more times than responses".to_owned());
    }
    Ok(())
}

/// Checks that no other total is larger than possible.
fn check_totals(tally: &Tally) -> Result<(), String> {
    let good = tally.counts.good();
    let totals = [
        tally.received_bytes,
        tally.body_bytes,
        tally.sent_bytes,
        tally.connections_opened,
        tally.exhausted,
        tally.closed_by_server,
        tally.closed_for_unasked,
        tally.completed_in_window,
        tally.sent_in_window,
        tally.turns.answers(),
        tally.announced_closings.map_or(0, |closings| closings.connections),
    ];
    if totals.into_iter().any(|total| total > MOST_BYTES)
        || tally.per_connection.iter().any(|responses| *responses > good)
        || tally.series.seconds.iter().any(|second| second.completed > good)
    {
        return Err("it counts more than a run can have".to_owned());
    }
    let recorded = [&tally.response_time, &tally.service_time].map(model::Histogram::count);
    if recorded.into_iter().any(|times| times > good) {
        return Err("it has more times than responses".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use engine::Transport;
    use model::{Exchange, Outcome, Request};

    use super::*;

    fn spec() -> LoadSpec {
        let request = Request::new(Vec::new(), false);
        LoadSpec {
            measured: Some(Nanos::from_secs(10)),
            ..LoadSpec::closed(Transport::plain(Vec::new()), request, 4)
        }
    }

    #[test]
    fn the_longest_frame_follows_from_the_plan() {
        let counted =
            LoadSpec { measured: None, ..spec().with(|load| load.requests_total = Some(100)) };
        assert!(longest_frame(&spec(), false) < 256 << 20);
        assert!(longest_frame(&spec(), true) > longest_frame(&spec(), false));
        assert!(
            longest_frame(&counted, false) < longest_frame(&spec(), false) + LONGEST_PART as usize
        );
    }

    #[test]
    fn a_timed_run_has_a_latest_end() {
        let spec = spec();
        assert_eq!(longest_run(&spec), Some(Nanos::from_secs(10) + spec.load.timeout));
        assert_eq!(longest_run(&LoadSpec { measured: None, ..spec.clone() }), None);
    }

    #[test]
    fn counts_and_times_that_the_plan_excludes_are_refused() {
        let spec = spec();
        let start = Nanos::from_secs(100);
        let until = start + Nanos::from_secs(10);
        let mut tally = Tally::new(spec.window(start), 4);
        for n in 0..100 {
            let due = start + Nanos::from_millis(n);
            let ended = due + Nanos::from_millis(1);
            let outcome = Outcome::Answered(200);
            tally.record(&Exchange { due, sent: due, ended, received_bytes: 1, outcome }, 0);
        }
        assert_eq!(check_tally(&tally, &spec, start, until), Ok(()));
        let fewer = spec.clone().with(|load| load.requests_total = Some(99));
        let said = check_tally(&tally, &fewer, start, until).unwrap_err();
        assert_eq!(said, "it counts 100 requests, and 99 were asked for");
        let other = spec.clone().with(|load| load.connections = 5);
        assert!(check_tally(&tally, &other, start, until).is_err());
        assert!(check_tally(&tally, &spec, start + Nanos(1), until).is_err());
        tally.response_time.record(Nanos(1));
        assert!(check_tally(&tally, &spec, start, until).unwrap_err().contains("more times"));
        for (counts, wrong) in [
            (r#"{"200": 18446744073709551615}"#, "more than are sent in 10 s"),
            (r#"{"200": 18446744073709551615, "503": 1}"#, "than fit into 64 bits"),
        ] {
            tally.counts = serde_json::from_str(counts).unwrap();
            assert!(check_tally(&tally, &spec, start, until).unwrap_err().contains(wrong));
        }
    }
}
