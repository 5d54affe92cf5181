//! Learns what one request takes when no other is there ([`ServiceTime`]): one request at a time,
//! on connections that are opened anew until each worker has answered, for a kept connection meets
//! one worker only.

use std::collections::BTreeSet;

use model::theory::{AnswersAlone, ServiceTime};
use model::{Clock, Nanos};

use crate::context::SweepError;
use crate::observe::ObservedRun;
use crate::server_count::has_served;
use crate::session::{Session, Watching};

/// Connections that are opened for each worker until all have answered, at the most.
const VISITS: u32 = 8;
/// The same where no answer says whose it is.
const VISITS_UNTOLD: u32 = 4;
/// Visits in a row without a good answer, after which nobody else is tried.
const FAILURES: u32 = 3;
/// A longer search for workers is given up.
const LONGEST_SEARCH: Nanos = Nanos::from_secs(10);

/// Answers that the distribution has at least.
const ANSWERS: u64 = 20;
/// Requests of one visit until there are so many: several workers have a part in it.
const OF_A_VISIT: u64 = 5;
/// How well the mean is to be known, as a share of it.
const PRECISION: f64 = 0.05;
/// Short requests are measured for so long at least: the first of them find a cold processor.
const SHORTEST: Nanos = Nanos::from_millis(250);
/// A mean that is not known well by then remains so.
const LONGEST: Nanos = Nanos::from_secs(10);
/// A slow app that has not given all [`ANSWERS`] by then has given enough.
const LONGEST_OF_SLOW: Nanos = Nanos::from_secs(20);
/// One visit begins no request later than this.
const VISIT: Nanos = Nanos::from_millis(500);

/// The second measurement, at the end: so long.
const LENGTH_AGAIN: Nanos = Nanos::from_secs(1);
/// A slow app gives so many answers in it, or as many as it can in [`LONGEST_AGAIN`].
const ANSWERS_AGAIN: u64 = 3;
const LONGEST_AGAIN: Nanos = Nanos::from_secs(5);

/// A first request is told of where it took longer than all others by this factor and this time.
const NOTABLE_FACTOR: u64 = 2;
const NOTABLE_EXCESS: Nanos = Nanos::from_millis(10);

/// How long [`learn`] takes at the most, but for the answers that are out when it ends.
pub(crate) const AT_MOST: Nanos = Nanos::from_secs(30);

/// The same of [`learn_again`].
pub(crate) const AT_MOST_AGAIN: Nanos = LONGEST_AGAIN;

/// A server that is asked over one connection at a time.
pub trait OneConnection {
    /// Why it cannot be asked.
    type Error;

    /// Makes requests over a new connection, one after the other: so many, or as many as can begin
    /// before `longest` has passed, and at least one.
    ///
    /// # Errors
    /// Where connections cannot be made.
    fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, Self::Error>;

    /// The time.
    fn now(&self) -> Nanos;

    /// Whether there is no more to ask: the user has interrupted, or the server has gone.
    fn is_over(&self) -> bool;
}

/// What one connection brought.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// The good answers.
    pub answers: AnswersAlone,
    /// All requests, whatever became of them.
    pub requests: u64,
    /// Who answered, as far as answers say.
    pub workers: Vec<String>,
    /// CPU time of the server; `None` where the kernel does not tell.
    pub cpu: Option<Nanos>,
}

/// Workers that are to be met before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct WorkersToMeet {
    /// How many there are.
    pub workers: u32,
    /// Whether each answer says whose it is.
    pub are_named: bool,
    /// Those that have answered already.
    pub met: BTreeSet<String>,
    /// The first request of each that was met here.
    pub firsts: AnswersAlone,
    /// How long the first request took of the one that showed the server to be ready; 0 where that
    /// is not known.
    pub earlier_first: Nanos,
}

impl WorkersToMeet {
    /// Asks new connections for one answer each until every worker has given one, or enough were
    /// tried. What came from a worker that was met before is no first request: `others` gets it.
    fn meet<S: OneConnection>(
        &mut self,
        server: &mut S,
        others: &mut AnswersAlone,
    ) -> Result<(), S::Error> {
        let begun = server.now();
        let most = self.workers * if self.are_named { VISITS } else { VISITS_UNTOLD };
        let mut failures = 0;
        for _ in 0..most {
            let is_enough = self.are_named && self.met.len() >= self.workers as usize;
            let is_long = server.now() - begun >= LONGEST_SEARCH;
            if is_enough || is_long || failures == FAILURES || server.is_over() {
                break;
            }
            let visit = server.visit(1, VISIT)?;
            failures = if visit.answers.times.count() == 0 { failures + 1 } else { 0 };
            if !self.takes(&visit) {
                others.merge(&visit.answers);
            }
        }
        Ok(())
    }

    /// Whether a visit may have a worker's first request in it, which is noted then.
    fn takes(&mut self, visit: &Visit) -> bool {
        let mut is_new = !self.are_named;
        for worker in &visit.workers {
            is_new |= self.met.insert(worker.clone());
        }
        if is_new {
            self.firsts.merge(&visit.answers);
        }
        is_new
    }
}

/// What one request takes alone; `None` where nothing is answered well.
///
/// # Errors
/// As [`OneConnection::visit`].
pub fn learn<S: OneConnection>(
    server: &mut S,
    mut workers: WorkersToMeet,
) -> Result<Option<ServiceTime>, S::Error> {
    let mut answers = AnswersAlone::default();
    workers.meet(server, &mut answers)?;
    let begun = server.now();
    let mut cpu = Some(Nanos::ZERO);
    let mut requests = 0;
    while !server.is_over() && !is_learned(&answers, requests, server.now() - begun) {
        let missing = ANSWERS.saturating_sub(answers.times.count());
        let next = if missing > 0 { missing.min(OF_A_VISIT) } else { u64::MAX };
        let visit = server.visit(next, VISIT)?;
        requests += visit.requests;
        cpu = cpu.zip(visit.cpu).map(|(sum, more)| sum + more);
        // A worker that was not met before: what it answered has its first request among it.
        if !workers.are_named || !workers.takes(&visit) {
            answers.merge(&visit.answers);
        }
    }
    // An app so slow that each worker had time for one request.
    if answers.times.count() == 0 {
        answers = workers.firsts.clone();
    }
    let longest = answers.times.max().unwrap_or_default();
    let first = workers.firsts.times.max().unwrap_or_default().max(workers.earlier_first);
    let is_notable =
        first > longest * NOTABLE_FACTOR && first.saturating_sub(longest) > NOTABLE_EXCESS;
    Ok(answers.service_time().map(|known| ServiceTime {
        cpu: cpu.and_then(|cpu| cpu.0.checked_div(requests)).map(Nanos),
        first: is_notable.then_some(first),
        ..known
    }))
}

/// Whether no more is asked, after so many requests and so much time.
fn is_learned(answers: &AnswersAlone, requests: u64, elapsed: Nanos) -> bool {
    let count = answers.times.count();
    if count == 0 {
        return requests >= ANSWERS || elapsed >= LONGEST;
    }
    if count < ANSWERS {
        return elapsed >= LONGEST_OF_SLOW;
    }
    elapsed >= LONGEST || elapsed >= SHORTEST && answers.is_known_within(PRECISION)
}

/// The good answers of the same at the end of the server's life, in a second.
///
/// # Errors
/// As [`OneConnection::visit`].
pub fn learn_again<S: OneConnection>(server: &mut S) -> Result<AnswersAlone, S::Error> {
    let mut answers = AnswersAlone::default();
    let begun = server.now();
    while !server.is_over() {
        let (count, elapsed) = (answers.times.count(), server.now() - begun);
        let is_enough = elapsed >= LENGTH_AGAIN && (count == 0 || count >= ANSWERS_AGAIN)
            || elapsed >= LONGEST_AGAIN
            || elapsed >= SHORTEST && count >= ANSWERS && answers.is_known_within(PRECISION);
        if is_enough {
            break;
        }
        answers.merge(&server.visit(u64::MAX, SHORTEST)?.answers);
    }
    Ok(answers)
}

impl OneConnection for Session<'_> {
    type Error = SweepError;

    fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, SweepError> {
        let mut shape = self.shape(&self.block.stream, 1);
        shape.warm_up = Nanos::ZERO;
        shape.measured = Some(longest);
        shape.requests_per_connection = None;
        shape.requests_total = (requests < u64::MAX).then_some(requests);
        let ObservedRun { run, .. } =
            self.drive(&shape, &self.context.progress(&shape), &Watching::default())?;
        Ok(Visit {
            answers: AnswersAlone::of(&run.tally),
            requests: run.tally.all_requests(),
            workers: run.tally.per_worker.keys().cloned().collect(),
            cpu: run
                .generator
                .server
                .map(|server| server.processes.iter().map(|process| process.cpu).sum()),
        })
    }

    fn now(&self) -> Nanos {
        self.context.clock.now()
    }

    fn is_over(&self) -> bool {
        self.context.is_interrupted() || self.server.has_ended()
    }
}

impl Session<'_> {
    /// What one request takes alone, before the first run; `None` where nothing is answered well.
    pub(crate) fn learn_service_time(&mut self) -> Result<Option<ServiceTime>, SweepError> {
        let first = self.server.first_answer.clone();
        // Without statistics nobody knows when it had booted, for which that answer waited.
        let is_timed = self.server.reached.control.is_some();
        let workers = WorkersToMeet {
            workers: if self.server.workers.len() == 1 { 0 } else { self.server.facts.workers },
            are_named: first.worker.is_some(),
            met: first.worker.into_iter().collect(),
            firsts: AnswersAlone::default(),
            earlier_first: if is_timed { first.took } else { Nanos::ZERO },
        };
        let learned = learn(self, workers)?;
        self.cool_down();
        Ok(learned.map(|known| ServiceTime { given: self.block.stream.delay, ..known }))
    }

    /// The same once more, after the last run.
    pub(crate) fn learn_service_time_again(&mut self) -> Result<AnswersAlone, SweepError> {
        let again = learn_again(self)?;
        self.cool_down();
        Ok(again)
    }

    /// Where workers do not name themselves and the server's statistics say that one of them has
    /// not had any request yet: asks on more connections, so that its first one is in no run.
    pub(crate) fn meet_missing_workers(&mut self) -> Result<(), SweepError> {
        let is_missing = |session: &Self| {
            session.stats.as_ref().is_some_and(|stats| stats.cluster && !has_served(stats))
        };
        if !is_missing(self) {
            return Ok(());
        }
        let workers = self.server.facts.workers;
        let mut missing = WorkersToMeet { workers, ..WorkersToMeet::default() };
        missing.meet(self, &mut AnswersAlone::default())?;
        self.cool_down();
        self.take_baseline();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    /// A server on simulated time: its workers take connections in turn.
    struct Simulated<F> {
        now: Nanos,
        /// How long the n-th request of a worker takes, from 0, on which a request in all is the
        /// `of_all`-th; `None` where it is not answered well.
        takes: F,
        /// Requests of each worker so far.
        served: Vec<u64>,
        connections: usize,
        is_named: bool,
    }

    /// Which request it is that a simulated server is asked for.
    #[derive(Clone, Copy)]
    struct Asked {
        of_worker: u64,
        of_all: u64,
    }

    impl<F: FnMut(Asked) -> Option<Nanos>> Simulated<F> {
        fn new(workers: usize, takes: F) -> Simulated<F> {
            Simulated {
                now: Nanos::ZERO,
                takes,
                served: vec![0; workers],
                connections: 0,
                is_named: true,
            }
        }

        fn learn(&mut self) -> Option<ServiceTime> {
            let workers = WorkersToMeet {
                workers: self.served.len() as u32,
                are_named: self.is_named,
                ..WorkersToMeet::default()
            };
            learn(self, workers).unwrap()
        }
    }

    impl<F: FnMut(Asked) -> Option<Nanos>> OneConnection for Simulated<F> {
        type Error = SweepError;

        fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, SweepError> {
            let worker = self.connections % self.served.len();
            self.connections += 1;
            let mut visit = Visit { cpu: Some(Nanos::ZERO), ..Visit::default() };
            let until = self.now + longest;
            while visit.requests < requests && (visit.requests == 0 || self.now < until) {
                let asked =
                    Asked { of_worker: self.served[worker], of_all: self.served.iter().sum() };
                let taken = (self.takes)(asked);
                self.served[worker] += 1;
                visit.requests += 1;
                self.now += taken.unwrap_or(MS);
                if let Some(taken) = taken {
                    visit.answers.times.record(taken);
                }
            }
            if self.is_named && visit.answers.times.count() > 0 {
                visit.workers = vec![worker.to_string()];
            }
            Ok(visit)
        }

        fn now(&self) -> Nanos {
            self.now
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_constant_time_is_known_after_twenty_answers() {
        let mut server = Simulated::new(2, |_| Some(MS * 20));
        let known = server.learn().unwrap();
        assert_eq!((known.mean, known.answers, known.first), (MS * 20, 20, None));
        assert_eq!(server.now, MS * 22 * 20, "and one first request of each worker");
    }

    #[test]
    fn the_first_request_of_each_worker_is_left_out_and_told_of() {
        let first_slow = |asked: Asked| Some(MS * if asked.of_worker == 0 { 3000 } else { 50 });
        let known = Simulated::new(2, first_slow).learn().unwrap();
        assert_eq!((known.mean, known.longest, known.first), (MS * 50, MS * 50, Some(MS * 3000)));
        let mut untold = Simulated { is_named: false, ..Simulated::new(2, first_slow) };
        let known = untold.learn().unwrap();
        assert_eq!((known.mean, known.first), (MS * 50, Some(MS * 3000)), "nobody says who");
    }

    #[test]
    fn a_time_that_varies_is_measured_until_it_is_known_or_ten_seconds_have_passed() {
        let bimodal = |asked: Asked| Some(MS * if asked.of_all % 20 == 7 { 1000 } else { 20 });
        let mut server = Simulated::new(2, bimodal);
        let known = server.learn().unwrap();
        assert!((MS * 60..MS * 80).contains(&known.mean), "{known:?}");
        assert!(known.low < MS * 69 && MS * 69 < known.high && !known.is_well_known());
        let took = server.now;
        assert!((LONGEST..LONGEST + MS * 2000).contains(&took), "{took:?}");
        let mut short = Simulated::new(2, |asked: Asked| Some(MS * (1 + asked.of_all % 3)));
        assert!(short.learn().unwrap().is_within(0.06) && short.now < MS * 1000);
    }

    #[test]
    fn slow_apps_and_those_that_fail_have_an_end() {
        let mut slow = Simulated::new(2, |_| Some(MS * 5000));
        assert_eq!(slow.learn().unwrap().answers, 4);
        assert!(slow.now <= AT_MOST + MS * 5000, "{:?}", slow.now);
        let mut endless = Simulated::new(8, |_| Some(MS * 100_000));
        let known = endless.learn().unwrap();
        assert_eq!((known.mean, known.answers), (MS * 100_000, 2), "first requests, nothing else");
        let mut failing = Simulated::new(2, |_| None);
        assert_eq!(failing.learn(), None);
        let now_and_then = |asked: Asked| (asked.of_all % 2 == 1).then_some(MS * 20);
        assert_eq!(Simulated::new(1, now_and_then).learn().unwrap().mean, MS * 20);
    }

    #[test]
    fn the_same_again_takes_a_second_at_the_most_or_three_answers_of_a_slow_app() {
        for (takes, answers, most) in [(20, 26, 1000), (400, 3, 2000), (5000, 1, 6000)] {
            let mut server = Simulated::new(1, |_| Some(MS * takes));
            let again = learn_again(&mut server).unwrap();
            assert_eq!(again.times.count(), answers, "{takes}");
            assert!(server.now < MS * most, "{:?}", server.now);
        }
        let of_none = learn_again(&mut Simulated::new(1, |_| None)).unwrap();
        assert_eq!(of_none.times.count(), 0);
    }
}
