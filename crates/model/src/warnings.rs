//! Raises warnings: what is doubtful in a run, from its own figures.

use crate::generator;
use crate::run::PERCENTILES;
use crate::{
    Backlog, Diagnostic, EndedBy, GeneratorFacts, Grade, LaneFacts, Nanos, Pace, Placement,
    Quantile, Run, Tally,
};

/// Below this index of fairness the connections' shares are worth a word.
const FAIR: f64 = 0.9;
/// Measured rates this far above the theoretical maximum are no rounding.
const ABOVE: f64 = 1.02;

/// What a run does not say of itself.
#[derive(Clone, Copy, Debug)]
pub struct RunSetting<'a> {
    /// Whether its connections were to be kept.
    pub keep_alive: bool,
    /// Who may run where, as far as it is known.
    pub placement: Option<&'a Placement>,
    /// Who ended it before its time.
    pub ended_by: Option<EndedBy>,
}

/// Warnings that any run can raise; `percentiles` are those that will be printed.
fn of_any(run: &Run, percentiles: &[f64], setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let RunSetting { keep_alive, placement, ended_by } = setting;
    let mut warnings = Vec::new();
    warnings.extend(ended_by.map(|by| Diagnostic::Interrupted { by }));
    let (tally, statistics) = (&run.tally, run.statistics.as_ref());
    let counts = &tally.counts;
    if counts.failed() > 0 && ended_by.is_none() {
        warnings.push(Diagnostic::Failures { failed: counts.failed(), planned: counts.total() });
    }
    let first =
        |kind: Quantile| percentiles.iter().copied().find(|q| run.response_time(*q) == kind);
    // Of no request there is no percentile that another answer could change.
    if let Some(from) = first(Quantile::Unanswered).filter(|_| counts.total() > 0) {
        let outcomes = counts.failures();
        let unanswered = counts.failed() + tally.unfinished_above_all();
        warnings.push(Diagnostic::QuantilesHidden { from, unanswered, outcomes });
    }
    if let Some(from) = first(Quantile::TooFew) {
        let interval = statistics.and_then(|statistics| statistics.interval(from));
        let worth = interval.filter(|interval| interval.inflation > Some(1.1));
        let worth = worth.and_then(|interval| interval.effective(counts.good())).map(|n| n as u64);
        warnings.push(Diagnostic::TooFewRequests { from, answers: counts.good(), worth });
    }
    let (stamped, answered) = (tally.read_lag.count(), counts.answered());
    if run.generator.clock_steps.is_some() && stamped < answered {
        warnings.push(Diagnostic::Unstamped { answers: answered - stamped, of: answered });
    }
    warnings.extend(delayed_ack(tally));
    if keep_alive && tally.closed_by_server > 0 {
        warnings.push(Diagnostic::ConnectionsClosed { closed: tally.closed_by_server });
    }
    if tally.closed_for_unasked > 0 {
        warnings.push(Diagnostic::UnaskedBytes { closed: tally.closed_for_unasked });
    }
    warnings.extend(shared(&run.generator, placement));
    warnings.extend(generator::differs(&run.generator.far, &run.tally));
    warnings
}

/// Linux acknowledges what came alone after 40 ms at the soonest (`TCP_DELACK_MIN`); not all
/// answers need wait for it.
const DELAYED: std::ops::RangeInclusive<Nanos> = Nanos::from_millis(30)..=Nanos::from_millis(60);
/// A longer answer takes its time for other reasons.
const SMALL: u64 = 16 << 10;

/// Small answers whose end comes as late as a delayed acknowledgement.
fn delayed_ack(tally: &Tally) -> Option<Diagnostic> {
    let waited = tally.phases.read.mean().filter(|waited| DELAYED.contains(waited))?;
    let is_small = tally.received_bytes / tally.phases.read.count.max(1) <= SMALL;
    is_small.then_some(Diagnostic::DelayedAck { waited })
}

/// Lanes that take less than this of the processors that they share with the server are not seen in
/// its figures.
const TAKEN: f64 = 0.01;

/// The processors that lanes and server share, where the lanes took a part of them that is worth a
/// word.
fn shared(generator: &GeneratorFacts, placement: Option<&Placement>) -> Option<Diagnostic> {
    let Placement { server, lanes } = placement.filter(|placement| placement.is_shared())?;
    let cpus = server.common(lanes);
    let elapsed = generator
        .lanes
        .iter()
        .map(|lane| lane.elapsed)
        .max()
        .filter(|elapsed| *elapsed > Nanos::ZERO)?;
    let work: Nanos = generator.lanes.iter().map(LaneFacts::work).sum();
    // Their own processors may have done it all, as far as there are such.
    let own = lanes.len() - cpus.len();
    let taken = (work.as_secs_f64() / elapsed.as_secs_f64() - own as f64) / cpus.len() as f64;
    (taken >= TAKEN).then_some(Diagnostic::SharedCpus { cpus, taken })
}

/// All that the own figures of a sweep's run give reason to doubt.
pub fn of_run(run: &Run, setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let mut warnings = of_any(run, &PERCENTILES, setting);
    if let Some(jain) = run.fairness().filter(|jain| *jain < FAIR) {
        let each = &run.tally.per_connection;
        let (fewest, most) = (each.iter().min().copied(), each.iter().max().copied());
        warnings.push(Diagnostic::Unfair {
            jain,
            fewest: fewest.unwrap_or(0),
            most: most.unwrap_or(0),
        });
    }
    warnings.extend(of_anatomy(run));
    warnings.extend(of_kernel(run));
    // One batch of answers more or less in the window is worth a service time of it.
    let service_time = run.forecast.as_ref().map_or(Nanos::ZERO, |forecast| forecast.service_time);
    let batch = service_time.as_secs_f64() / run.measured.as_secs_f64().max(1e-9);
    if let Some(ratio) = run.of_maximum().filter(|ratio| *ratio > ABOVE + batch) {
        warnings.push(Diagnostic::AboveMaximum { ratio });
    }
    warnings
}

/// The accept queue's part by its length may exceed what it is a part of by so much of that and of
/// the response time: samples are a sample.
const ABOVE_WAIT: f64 = 0.05;
const ABOVE_RESPONSE: f64 = 0.01;

/// What is doubtful about where the response time went.
fn of_anatomy(run: &Run) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let of = run.tally.counts.good();
    if let Some(anatomy) = &run.anatomy {
        let (impossible, silent) = (anatomy.impossible, anatomy.silent);
        warnings.extend(
            (impossible > 0).then_some(Diagnostic::ImpossibleStamps { answers: impossible, of }),
        );
        warnings.extend((silent > 0).then_some(Diagnostic::SilentApp { answers: silent, of }));
    }
    let whole = run.tally.response_time.mean();
    let before = run.anatomy.as_ref().and_then(|anatomy| anatomy.all.mean(anatomy.all.before_app?));
    if let (Some(accept_queue), Some(whole)) = (run.accept_queue_wait(), whole) {
        let wait = before.unwrap_or(whole);
        let slack = ABOVE_WAIT * wait.as_secs_f64() + ABOVE_RESPONSE * whole.as_secs_f64();
        let exceeds = accept_queue.as_secs_f64() > wait.as_secs_f64() + slack;
        warnings.extend(exceeds.then_some(Diagnostic::QueueExceedsWait { accept_queue, wait }));
    }
    warnings
}

/// What is doubtful about what the kernel saw.
fn of_kernel(run: &Run) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let Some(view) = &run.kernel else { return warnings };
    let (unfollowed, lost) = (view.unfollowed, view.lost);
    warnings.extend(
        (unfollowed > 0 || lost > 0).then_some(Diagnostic::KernelIncomplete { unfollowed, lost }),
    );
    // Over TLS it sees none; what we gave up may have been answered.
    let (kernel, answers) = (view.answers(), run.tally.all_answers());
    let is_ours = (answers..=run.tally.all_requests()).contains(&kernel);
    warnings.extend(
        (kernel > 0 && !is_ours)
            .then_some(Diagnostic::KernelCountDiffers { kernel, client: answers }),
    );
    if let Some(ways) = &view.ways {
        let (unmatched, impossible, of) =
            (ways.unmatched, ways.impossible, run.tally.counts.good());
        let is_whole = unmatched == 0 && impossible == 0;
        warnings.extend((!is_whole).then_some(Diagnostic::KernelUnjoined {
            unmatched,
            impossible,
            of,
        }));
    }
    warnings
}

/// The percentiles that a load's report prints.
pub const LOAD_PERCENTILES: [f64; 7] = [0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];

/// All that the own figures of a load give reason to doubt.
pub fn of_load(run: &Run, pace: &Pace, setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let mut warnings = of_any(run, &LOAD_PERCENTILES, setting);
    let sending = Diagnostic::SentInTime { sent: run.tally.sent_in_window, due: run.tally.due() };
    let is_late = run.tally.due() > 0 && sending.grade() > Grade::Passed;
    if pace.is_open() && setting.ended_by.is_none() && is_late {
        warnings.push(sending);
    }
    warnings.extend(of_backlog(run));
    if run.tally.queued.count > 0 {
        let queued = run.tally.queued;
        warnings
            .push(Diagnostic::QueuedInGenerator { requests: queued.count, longest: queued.max });
    }
    warnings
}

/// What a backlog that grew all along says of the server.
fn of_backlog(run: &Run) -> Option<Diagnostic> {
    let statistics = run.statistics.as_ref()?;
    let Backlog { growth: growth_per_s, at_end, .. } = statistics.backlog?;
    if statistics.is_overload(&run.tally) {
        return Some(Diagnostic::Growing { growth: statistics.growth(), growth_per_s, at_end });
    }
    let is_unexplained = statistics.backlog.is_some_and(|backlog| backlog.grows());
    is_unexplained.then_some(Diagnostic::BacklogUnexplained { growth_per_s, at_end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::{ENDLESS, exchange};
    use crate::{Exchange, Forecast, Outcome, Rate};

    const KEPT: RunSetting<'_> = RunSetting { keep_alive: true, placement: None, ended_by: None };

    fn tally(good: u64, timed_out: u64) -> Tally {
        let mut tally = Tally::new(ENDLESS, 2);
        for n in 0..good + timed_out {
            let outcome = if n < good { Outcome::Answered(200) } else { Outcome::TimedOut };
            tally.record(&Exchange { outcome, ..exchange(0, 0, 100) }, usize::from(n % 10 == 0));
        }
        tally
    }

    fn run(good: u64, timed_out: u64) -> Run {
        let length = Nanos::from_secs(10);
        Run {
            forecast: Some(Forecast {
                service_time: Nanos::from_millis(100),
                maximum_rate: 20.0,
                ideal_response_time: Nanos::from_millis(100),
            }),
            ..Run::recorded(2, tally(good, timed_out), length, length)
        }
    }

    fn of(run: &Run) -> Vec<Diagnostic> {
        of_run(run, KEPT)
    }

    #[test]
    fn a_run_is_doubted_by_its_counts() {
        let outcomes = vec!["timed_out".to_owned()];
        let hidden = Diagnostic::QuantilesHidden { from: 0.99, unanswered: 2, outcomes };
        let too_few = Diagnostic::TooFewRequests { from: 0.999, answers: 150, worth: None };
        let unfair = |warnings: &[Diagnostic]| {
            warnings.iter().any(|it| matches!(it, Diagnostic::Unfair { .. }))
        };
        let above = |warnings: &[Diagnostic]| {
            warnings.iter().any(|it| matches!(it, Diagnostic::AboveMaximum { .. }))
        };
        let (timed_out, few, many) = (of(&run(198, 2)), of(&run(150, 0)), of(&run(300, 0)));
        assert!(
            timed_out.contains(&Diagnostic::Failures { failed: 2, planned: 200 })
                && timed_out.contains(&hidden)
        );
        assert!(few.contains(&too_few), "{few:?}");
        assert!(unfair(&few), "one connection takes nine tenths");
        assert_eq!(
            (above(&few), above(&many)),
            (false, true),
            "20 a second for 10 s are the maximum"
        );
    }

    #[test]
    fn answers_without_a_stamp_are_named_where_stamps_were_asked_for() {
        let mut run = run(150, 0);
        let unstamped = Diagnostic::Unstamped { answers: 2, of: 150 };
        run.generator.clock_steps = Some(0);
        (0..148).for_each(|_| run.tally.read_lag.record(Nanos(5_000)));
        assert!(of(&run).contains(&unstamped));
        run.generator.clock_steps = None;
        assert!(!of(&run).contains(&unstamped));
    }

    #[test]
    fn what_lanes_take_of_a_servers_processors_is_named() {
        let lane = |percent| LaneFacts {
            cpu: Nanos::from_millis(10 * percent + 500),
            spun: Nanos::from_millis(500),
            elapsed: Nanos::from_secs(1),
            run_queue: Nanos::ZERO,
            ..LaneFacts::default()
        };
        let doubt = |server: &str, lanes: &str, percents: &[u64]| {
            let placement =
                Placement { server: server.parse().unwrap(), lanes: lanes.parse().unwrap() };
            let facts = GeneratorFacts {
                lanes: percents.iter().copied().map(lane).collect(),
                ..Default::default()
            };
            shared(&facts, Some(&placement))
        };
        let taken = |cpus: &str, taken: f64| {
            Some(Diagnostic::SharedCpus { cpus: cpus.parse().unwrap(), taken })
        };
        assert_eq!(doubt("0-1", "0-1", &[50]), taken("0-1", 0.25), "busy polling is no work");
        assert_eq!(doubt("0-1", "0-1", &[50, 150]), taken("0-1", 1.0));
        assert_eq!(doubt("0-1", "0-1", &[1]), None);
        assert_eq!(doubt("0", "1", &[100, 90]), None);
        // Two lanes on three processors, one of which is the server's.
        assert_eq!(
            (doubt("0", "0-2", &[100, 100]), doubt("0", "0-1", &[75, 75])),
            (None, taken("0", 0.5))
        );
        assert_eq!(shared(&GeneratorFacts::default(), None), None);
    }

    #[test]
    fn a_generator_that_did_not_keep_up_is_named() {
        let mut load = Run::recorded(2, tally(1000, 0), Nanos::from_secs(1), Nanos::from_secs(2));
        load.tally.sent_in_window = 980;
        load.tally.queued.record(Nanos::from_millis(7));
        let pace = Pace::constant(Rate::new(1000.0).unwrap());
        let late = Diagnostic::SentInTime { sent: 980, due: 1000 };
        let named = of_load(&load, &pace, KEPT);
        let longest = Nanos::from_millis(7);
        for warning in [&late, &Diagnostic::QueuedInGenerator { requests: 1, longest }] {
            assert!(named.contains(warning), "{named:?}");
        }
        assert!(!of_load(&load, &Pace::Closed, KEPT).contains(&late));
    }

    #[test]
    fn the_wait_for_a_delayed_acknowledgement_is_named() {
        let of = |milliseconds: [u64; 3], bytes: u64| {
            let mut tally = Tally::new(ENDLESS, 1);
            for ms in milliseconds {
                tally.phases.read.record(Nanos::from_millis(ms));
            }
            tally.received_bytes = 3 * bytes;
            delayed_ack(&tally)
        };
        // uvicorn, an app of 10 ms: 40 to 48 ms from the head to the body of each of its answers.
        assert_eq!(
            of([40, 42, 44], 158),
            Some(Diagnostic::DelayedAck { waited: Nanos::from_millis(42) })
        );
        assert_eq!(of([0, 0, 1], 158), None, "in one piece, nearly");
        assert_eq!(of([40, 42, 44], 1 << 20), None, "a megabyte takes its time");
        assert_eq!(of([300, 300, 300], 158), None, "an app that streams");
    }
}
