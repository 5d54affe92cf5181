//! The server, or one of its workers, answered nothing for a while, and then several requests at
//! once: it stood still. A garbage collection does that, or a process that was stopped.

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
    /// How long it was.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// Of the server, or of each worker that stalled.
    pub stalls: Vec<StallsOf>,
}

/// How often one of them stalled, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallsOf {
    /// The worker, as its answers name it; empty: the server.
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

/// A stall is so many times longer than a request is in service on average: requests that are begun
/// together and share the CPUs end together, too.
const LONGER: u64 = 2;
/// This part of what is in service is answered at once when a stall ends.
const AT_ONCE: f64 = 0.5;
/// Fewer may end together by chance.
const LEAST_ANSWERS: u32 = 3;
/// Where the longest request alone is not known: at least this part of the requests that took as
/// long as a stall were held up by one. Long requests of the app end one by one.
const HELD_UP: f64 = 0.5;
/// So much of a stall a request that it held up takes at least.
const NEARLY: f64 = 0.8;

/// Of the run in which it stood still the longest.
pub(super) fn of_sweep(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let all = points.iter().map(|point| (point.run, of_run_in(study, point.run)));
    let still = |stalls: &[&Silence]| stalls.iter().map(|stall| stall.length()).sum::<Nanos>();
    let (run, stalls) = all.max_by_key(|(_, stalls)| still(stalls))?;
    said(run, &stalls)
}

/// Of a load.
pub(super) fn of_load(run: &Run) -> Option<Finding> {
    said(run, &of_run(run, run.connections, None))
}

/// Whether stalls, and not the app, are why requests of a run took longer than `time`.
pub(super) fn explain(study: &SweepStudy, run: &Run, time: Nanos) -> bool {
    held_up(&of_run_in(study, run)) >= HELD_UP * slower(run, time)
}

fn of_run_in<'r>(study: &SweepStudy, run: &'r Run) -> Vec<&'r Silence> {
    let alone = study.service_time.filter(|alone| alone.answers > 0).map(|alone| alone.longest);
    of_run(run, study.server.slots(), alone)
}

/// The silences of a run that are stalls. `alone`: the longest request that was made alone.
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
    // Where requests wait for one another, those that a stall held up are not the only long ones.
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

fn said(run: &Run, stalls: &[&Silence]) -> Option<Finding> {
    let mut of: Vec<StallsOf> = Vec::new();
    for stall in stalls {
        let length = stall.length();
        match of.iter_mut().find(|other| other.worker == stall.worker) {
            Some(other) => {
                other.times += 1;
                other.shortest = other.shortest.min(length);
                other.longest = other.longest.max(length);
            }
            None => of.push(StallsOf {
                worker: stall.worker.clone(),
                times: 1,
                shortest: length,
                longest: length,
            }),
        }
    }
    let (connections, measured) = (run.connections, run.measured);
    (!of.is_empty()).then(|| Stalled { connections, measured, stalls: of }.into())
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
        let then = "nothing was answered, and then most of what was out at once";
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

    /// Ten connections, 50 ms a request, but for `long` requests of 350 ms; and silences of 300 ms
    /// with so many answers behind each.
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

    fn said_of(run: &Run, slots: u32, alone_ms: u64) -> Option<String> {
        let alone = Some(Nanos::from_millis(alone_ms)).filter(|alone| *alone > Nanos::ZERO);
        said(run, &of_run(run, slots, alone)).map(|it| it.sentence())
    }

    #[test]
    fn a_server_that_stands_still_is_said_to() {
        assert_eq!(
            said_of(&run(10, 20, &[10, 10]), 10, 51).as_deref(),
            Some(
                "The server stood still, in 10.0 s at 10 connections: 2 stalls of 300 to 310 ms; \
                 nothing was answered, and then most of what was out at once."
            )
        );
        // Requests alone met one, too.
        assert!(said_of(&run(10, 20, &[10, 10]), 10, 340).is_some());
        // Forty connections on ten slots: ten are in service.
        assert!(said_of(&run(40, 900, &[10, 10]), 10, 51).is_some());
    }

    #[test]
    fn long_requests_of_the_app_are_no_stalls() {
        for (what, run, alone) in [
            ("a gap, and then one by one", run(10, 20, &[2, 3]), 51),
            ("an app of which one in ten takes so long", run(10, 170, &[5, 6]), 360),
            ("nothing is known of it alone", run(10, 170, &[5, 6]), 0),
            ("where requests wait for one another", run(40, 900, &[10, 10]), 360),
        ] {
            assert_eq!(said_of(&run, 10, alone), None, "{what}");
        }
        // Twenty processes share two CPUs: what begins together ends together, each round.
        let mut rounds = run(20, 0, &[20; 9]);
        rounds.tally.completed_in_window = 200;
        assert_eq!(said_of(&rounds, 20, 100), None);
    }

    #[test]
    fn workers_are_named_where_their_answers_do() {
        let mut run = run(10, 10, &[5, 5]);
        for name in ["17", "18"] {
            run.tally.per_worker.insert(name.to_owned(), model::tally::WorkerCount::default());
        }
        run.silences.iter_mut().for_each(|silence| silence.worker = "17".to_owned());
        let said = said_of(&run, 10, 51).unwrap();
        assert!(said.contains("2 stalls of 300 to 310 ms in worker 17;"), "{said}");
    }
}
