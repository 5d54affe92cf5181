//! The server, or one of its workers, stood still: it answered nothing for a while, and then
//! several requests at once. A garbage collection does that, or a stopped process.

use model::{Nanos, Run, Silence, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, count_of, listed};

/// The stalls of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    /// Connections of that run.
    pub connections: u32,
    /// Its length.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// The stalls of the server, or of each worker that stalled.
    pub stalls: Vec<StallsOf>,
}

/// How often the server or a worker stalled, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallsOf {
    /// The worker, as its responses name it; empty for the server.
    pub worker: String,
    /// How often.
    pub times: u32,
    /// The shortest.
    #[serde(rename = "shortest_ns")]
    pub shortest: Nanos,
    /// The longest.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// A stall is longer than this many times the average time in service: requests that begin together
/// and share the CPUs also end together.
const LONGER: u64 = 2;
/// When a stall ends, at least this share of the requests in service is answered at once.
const AT_ONCE: f64 = 0.5;
/// Fewer responses may come together by chance.
const LEAST_ANSWERS: u32 = 3;
/// If the longest request alone is unknown, at least this share of the requests that took as long
/// as a stall must have been held up by one. Requests that the app takes long for end one by one.
const HELD_UP: f64 = 0.5;
/// A request that was held up by a stall takes at least this share of the stall's length.
const NEARLY: f64 = 0.8;

/// Describes the run with the longest stalls.
pub(super) fn of_sweep(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let all = points.iter().map(|point| (point.run, of_run_in(study, point.run)));
    let still = |stalls: &[&Silence]| stalls.iter().map(|stall| stall.length()).sum::<Nanos>();
    let (run, stalls) = all.max_by_key(|(_, stalls)| still(stalls))?;
    finding_of(run, &stalls)
}

/// Judges a load.
pub(super) fn of_load(run: &Run) -> Option<Finding> {
    finding_of(run, &of_run(run, run.connections, None))
}

/// Whether stalls rather than the app explain why requests of a run took longer than `time`.
pub(super) fn explain(study: &SweepStudy, run: &Run, time: Nanos) -> bool {
    held_up(&of_run_in(study, run)) >= HELD_UP * slower(run, time)
}

fn of_run_in<'r>(study: &SweepStudy, run: &'r Run) -> Vec<&'r Silence> {
    let alone = study.service_time.filter(|alone| alone.answers > 0).map(|alone| alone.longest);
    of_run(run, study.server.slots(), alone)
}

/// The silences of a run that are stalls. `alone`: the longest time of a request that ran alone.
fn of_run(run: &Run, slots: u32, alone: Option<Nanos>) -> Vec<&Silence> {
    let in_service = f64::from(run.connections.min(slots));
    let typical = Nanos::from_secs_f64(in_service / run.completed_rate().max(1e-9));
    let workers = run.tally.per_worker.len().max(1);
    let least = (AT_ONCE * in_service / workers as f64).max(f64::from(LEAST_ANSWERS));
    let is_stall = |silence: &&Silence| {
        f64::from(silence.answers) >= least && silence.length() >= typical * LONGER
    };
    let stalls: Vec<&Silence> = run.silences.iter().filter(is_stall).collect();
    let Some(shortest) = stalls.iter().map(|stall| stall.length()).min() else { return stalls };
    let time = Nanos::from_secs_f64(NEARLY * shortest.as_secs_f64());
    // If requests wait for one another, stalls are not the only reason for long ones.
    if run.connections <= slots && held_up(&stalls) >= HELD_UP * slower(run, time) {
        return stalls;
    }
    stalls.into_iter().filter(|stall| alone.is_some_and(|alone| stall.length() > alone)).collect()
}

fn held_up(stalls: &[&Silence]) -> f64 {
    f64::from(stalls.iter().map(|stall| stall.answers).sum::<u32>())
}

fn slower(run: &Run, time: Nanos) -> f64 {
    run.tally.service_time.share_above(time) * run.tally.service_time.count() as f64
}

fn finding_of(run: &Run, stalls: &[&Silence]) -> Option<Finding> {
    let mut by_worker: Vec<StallsOf> = Vec::new();
    for stall in stalls {
        let length = stall.length();
        match by_worker.iter_mut().find(|other| other.worker == stall.worker) {
            Some(other) => {
                other.times += 1;
                other.shortest = other.shortest.min(length);
                other.longest = other.longest.max(length);
            }
            None => by_worker.push(StallsOf {
                worker: stall.worker.clone(),
                times: 1,
                shortest: length,
                longest: length,
            }),
        }
    }
    let connections = run.connections;
    let measured = run.measured;
    (!by_worker.is_empty()).then(|| Stalled { connections, measured, stalls: by_worker }.into())
}

impl StallsOf {
    /// `2 stalls of 300 to 310 ms`.
    fn in_words(&self) -> String {
        let StallsOf { times, shortest, longest, .. } = self;
        let [least, most] = [*shortest, *longest].map(brief);
        let lengths = if least == most {
            most
        } else {
            let (number, unit) = least.split_once(' ').unwrap_or((&least, ""));
            let least = if most.ends_with(unit) { number } else { &least };
            format!("{least} to {most}")
        };
        format!("{} of {lengths}", count_of(*times, "stall"))
    }
}

impl Stalled {
    pub(super) fn sentence(&self) -> String {
        let Stalled { connections, measured, stalls } = self;
        let run = format!("in {} at {}", brief(*measured), count_of(*connections, "connection"));
        let then = "nothing was answered, and then most of the requests in flight at once";
        match stalls.as_slice() {
            [server] if server.worker.is_empty() => {
                format!("The server stood still, {run}: {}; {then}.", server.in_words())
            }
            workers => {
                let each = |one: &StallsOf| format!("{} in worker {}", one.in_words(), one.worker);
                let each: Vec<String> = workers.iter().map(each).collect();
                let who = if workers.len() == 1 { "One worker" } else { "Workers" };
                format!("{who} stood still, {run}: {}; {then}.", listed(&each))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Exchange, Outcome, Tally, Window};

    use super::*;

    const SECONDS: u64 = 10;

    /// Ten connections and 50 ms a request, except for `long` requests of 350 ms. Each silence
    /// lasts 300 ms and ends with this many responses.
    fn run(connections: u32, long: u64, silences: &[u32]) -> Run {
        let ms = Nanos::from_millis;
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(SECONDS) };
        let mut tally = Tally::new(window, connections as usize);
        for n in 0..1700 {
            let sent = ms(5 * n);
            let took = if n < long { ms(350) } else { ms(50) };
            let outcome = Outcome::Answered(200);
            tally.record(
                &Exchange { due: sent, sent, ended: sent + took, received_bytes: 0, outcome },
                0,
            );
        }
        let mut run = Run::recorded(connections, tally, window.until, window.until);
        run.silences = silences
            .iter()
            .enumerate()
            .map(|(n, answers)| Silence {
                worker: String::new(),
                from: Nanos::from_secs(n as u64 + 1),
                until: Nanos::from_secs(n as u64 + 1) + ms(300 + 10 * n as u64),
                answers: *answers,
            })
            .collect();
        run
    }

    fn sentence_of(run: &Run, slots: u32, alone_ms: u64) -> Option<String> {
        let alone = Some(Nanos::from_millis(alone_ms)).filter(|alone| *alone > Nanos::ZERO);
        finding_of(run, &of_run(run, slots, alone)).map(|it| it.sentence())
    }

    #[test]
    fn a_server_that_stands_still_is_reported() {
        assert_eq!(
            sentence_of(&run(10, 20, &[10, 10]), 10, 51).as_deref(),
            Some(
                "The server stood still, in 10.0 s at 10 connections: 2 stalls of 300 to 310 ms; \
                 nothing was answered, and then most of the requests in flight at once."
            )
        );
        // A request that ran alone met a stall, too.
        assert!(sentence_of(&run(10, 20, &[10, 10]), 10, 340).is_some());
        // Forty connections on ten slots: ten are in service.
        assert!(sentence_of(&run(40, 900, &[10, 10]), 10, 51).is_some());
    }

    #[test]
    fn requests_that_the_app_takes_long_for_are_not_stalls() {
        for (what, run, alone) in [
            ("a gap, then responses one by one", run(10, 20, &[2, 3]), 51),
            ("one request in ten takes the app that long", run(10, 170, &[5, 6]), 360),
            ("the time alone is unknown", run(10, 170, &[5, 6]), 0),
            ("requests wait for one another", run(40, 900, &[10, 10]), 360),
        ] {
            assert_eq!(sentence_of(&run, 10, alone), None, "{what}");
        }
        // Twenty processes share two CPUs: in each round, requests begin and end together.
        let mut rounds = run(20, 0, &[20; 9]);
        rounds.tally.completed_in_window = 200;
        assert_eq!(sentence_of(&rounds, 20, 100), None);
    }

    #[test]
    fn workers_are_named_if_their_responses_name_them() {
        let mut run = run(10, 10, &[5, 5]);
        for name in ["17", "18"] {
            run.tally.per_worker.insert(name.to_owned(), model::tally::WorkerCount::default());
        }
        run.silences.iter_mut().for_each(|silence| silence.worker = "17".to_owned());
        let sentence = sentence_of(&run, 10, 51).unwrap();
        assert!(sentence.contains("2 stalls of 300 to 310 ms in worker 17;"), "{sentence}");
    }
}
