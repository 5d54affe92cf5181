//! Measures how long a request takes when it is the only one ([`ServiceTime`]). A kept connection
//! stays with one worker, so new ones are opened until every worker has answered.

use std::collections::BTreeSet;

use model::theory::{ClassAlone, LoneResponses, ServiceTime};
use model::{Clock, Nanos, RequestMix, Run};

use crate::class_alone;
use crate::context::{Phase, SweepError};
use crate::server_count::has_served;
use crate::session::{Session, Watching};

/// At most this many connections are opened for each worker.
const VISITS: u32 = 8;
/// The same if responses do not name their worker.
const VISITS_UNNAMED: u32 = 4;
/// The search ends after this many visits in a row without a good response.
const FAILURES: u32 = 3;
/// The search for workers ends after this time.
const LONGEST_SEARCH: Nanos = Nanos::from_secs(10);

/// The fewest responses to measure.
const RESPONSES: u64 = 20;
/// Requests of one visit until [`RESPONSES`] are there, so that several workers take part.
const OF_A_VISIT: u64 = 5;
/// The measurement ends once the mean is known this well, as a share of it.
const PRECISION: f64 = 0.05;
/// The shortest measurement: the first of many short requests find a cold CPU.
const SHORTEST: Nanos = Nanos::from_millis(250);
/// The longest measurement of an app whose mean is still not known well.
const LONGEST: Nanos = Nanos::from_secs(10);
/// The longest measurement of an app too slow to give [`RESPONSES`].
const LONGEST_OF_SLOW: Nanos = Nanos::from_secs(20);
/// After this time a visit begins no further request.
const VISIT: Nanos = Nanos::from_millis(500);

/// How long the measurement at the end takes.
const LENGTH_AGAIN: Nanos = Nanos::from_secs(1);
/// It goes on until there are this many responses, up to [`LONGEST_AGAIN`].
const RESPONSES_AGAIN: u64 = 3;
const LONGEST_AGAIN: Nanos = Nanos::from_secs(5);

/// A worker's first request is reported if it took longer than all others by this factor and time.
const NOTABLE_FACTOR: u64 = 2;
const NOTABLE_EXCESS: Nanos = Nanos::from_millis(10);

/// The longest that [`measure`] takes, apart from requests in flight at its end.
pub(crate) const LONGEST_MEASUREMENT: Nanos = Nanos::from_secs(30);

/// The longest that [`measure_again`] takes, likewise.
pub(crate) const LONGEST_REPETITION: Nanos = LONGEST_AGAIN;

/// A server that gets requests over one connection at a time.
pub trait OneConnection {
    /// Why no connection can be made.
    type Error;

    /// Makes up to `requests` over a new connection, one after the other. None begins after
    /// `longest`, but for the first.
    ///
    /// # Errors
    /// If no connection can be made.
    fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, Self::Error>;

    /// The time.
    fn now(&self) -> Nanos;

    /// Whether to stop: the user interrupted, or the server is gone.
    fn is_over(&self) -> bool;
}

/// What came of the requests of one connection.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// The good responses.
    pub responses: LoneResponses,
    /// All requests, failed ones included.
    pub requests: u64,
    /// The workers that the responses name.
    pub workers: Vec<String>,
    /// CPU time of the server; `None` if the kernel does not tell.
    pub cpu: Option<Nanos>,
}

/// Workers whose first request should be out of the way before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct WorkersToVisit {
    /// How many there are.
    pub workers: u32,
    /// Whether each response names its worker.
    pub are_named: bool,
    /// Those that have answered already.
    pub visited: BTreeSet<String>,
    /// The first request of each worker that was visited here.
    pub firsts: LoneResponses,
    /// How long the request took that showed the server to be ready; 0 if not known.
    pub earlier_first: Nanos,
}

impl WorkersToVisit {
    /// Opens connections for one request each until every worker has answered, or enough were
    /// tried. Responses of workers that were visited before go to `others`.
    fn visit_all<S: OneConnection>(
        &mut self,
        server: &mut S,
        others: &mut LoneResponses,
    ) -> Result<(), S::Error> {
        let begun = server.now();
        let most = self.workers * if self.are_named { VISITS } else { VISITS_UNNAMED };
        let mut failures = 0;
        for _ in 0..most {
            let is_enough = self.are_named && self.visited.len() >= self.workers as usize;
            let is_long = server.now() - begun >= LONGEST_SEARCH;
            if is_enough || is_long || failures == FAILURES || server.is_over() {
                break;
            }
            let visit = server.visit(1, VISIT)?;
            failures = if visit.responses.times.count() == 0 { failures + 1 } else { 0 };
            if !self.note_first(&visit) {
                others.merge(&visit.responses);
            }
        }
        Ok(())
    }

    /// Notes a visit. Returns whether it may hold a worker's first request.
    fn note_first(&mut self, visit: &Visit) -> bool {
        let mut is_new = !self.are_named;
        for worker in &visit.workers {
            is_new |= self.visited.insert(worker.clone());
        }
        if is_new {
            self.firsts.merge(&visit.responses);
        }
        is_new
    }
}

/// Measures how long one request takes alone; `None` if no response was good.
///
/// # Errors
/// As [`OneConnection::visit`].
pub fn measure<S: OneConnection>(
    server: &mut S,
    mut workers: WorkersToVisit,
) -> Result<Option<ServiceTime>, S::Error> {
    let mut responses = LoneResponses::default();
    workers.visit_all(server, &mut responses)?;
    let begun = server.now();
    let mut cpu = Some(Nanos::ZERO);
    let mut requests = 0;
    while !server.is_over() && !is_known(&responses, requests, server.now() - begun) {
        let missing = RESPONSES.saturating_sub(responses.times.count());
        let next = if missing > 0 { missing.min(OF_A_VISIT) } else { u64::MAX };
        let visit = server.visit(next, VISIT)?;
        requests += visit.requests;
        cpu = cpu.zip(visit.cpu).map(|(sum, more)| sum + more);
        // The visit of a new worker holds its first request, so it is left out.
        if !workers.are_named || !workers.note_first(&visit) {
            responses.merge(&visit.responses);
        }
    }
    // The app is so slow that each worker had time for its first request only.
    if responses.times.count() == 0 {
        responses = workers.firsts.clone();
    }
    let longest = responses.times.max().unwrap_or_default();
    let first = workers.firsts.times.max().unwrap_or_default().max(workers.earlier_first);
    let is_notable =
        first > longest * NOTABLE_FACTOR && first.saturating_sub(longest) > NOTABLE_EXCESS;
    Ok(responses.service_time().map(|known| ServiceTime {
        cpu: cpu.and_then(|cpu| cpu.0.checked_div(requests)).map(Nanos),
        first: is_notable.then_some(first),
        ..known
    }))
}

/// Whether the measurement can end.
fn is_known(responses: &LoneResponses, requests: u64, elapsed: Nanos) -> bool {
    let count = responses.times.count();
    if count == 0 {
        return requests >= RESPONSES || elapsed >= LONGEST;
    }
    if count < RESPONSES {
        return elapsed >= LONGEST_OF_SLOW;
    }
    elapsed >= LONGEST || elapsed >= SHORTEST && responses.is_known_within(PRECISION)
}

/// Measures for another second, at the end of the server's life.
///
/// # Errors
/// As [`OneConnection::visit`].
pub fn measure_again<S: OneConnection>(server: &mut S) -> Result<LoneResponses, S::Error> {
    let mut responses = LoneResponses::default();
    let begun = server.now();
    while !server.is_over() {
        let count = responses.times.count();
        let elapsed = server.now() - begun;
        let is_enough = elapsed >= LENGTH_AGAIN && (count == 0 || count >= RESPONSES_AGAIN)
            || elapsed >= LONGEST_AGAIN
            || elapsed >= SHORTEST && count >= RESPONSES && responses.is_known_within(PRECISION);
        if is_enough {
            break;
        }
        responses.merge(&server.visit(u64::MAX, SHORTEST)?.responses);
    }
    Ok(responses)
}

impl OneConnection for Session<'_> {
    type Error = SweepError;

    fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, SweepError> {
        self.visits += 1;
        // Else each visit would begin with the same requests.
        let mix = self.server.mix.as_ref().map(|mix| mix.drawn_anew(self.visits));
        let run = self.visit_with(mix, requests, longest)?;
        Ok(Visit {
            responses: LoneResponses::of(&run.tally),
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

/// The most responses that measure how long a class takes alone.
const RESPONSES_OF_CLASS: u64 = 100;

impl Session<'_> {
    /// Sends up to `requests` of this mix, or of the stream, over a new connection.
    fn visit_with(
        &mut self,
        mix: Option<RequestMix>,
        requests: u64,
        longest: Nanos,
    ) -> Result<Run, SweepError> {
        let mut shape = self.shape(&self.block.stream, 1);
        if let Some(mix) = mix {
            shape.requests = mix.into();
        }
        shape.load.warm_up = Nanos::ZERO;
        shape.measured = Some(longest);
        shape.requests_per_connection = None;
        shape.load.requests_total = (requests < u64::MAX).then_some(requests);
        let progress = self.context.progress(&shape);
        Ok(self.drive(&shape, &progress, &Watching::default())?.run)
    }

    /// Measures how long a request of each class takes alone; none where they are not told apart.
    pub(crate) fn measure_classes_alone(&mut self) -> Result<Vec<ClassAlone>, SweepError> {
        let mix = self.server.mix.clone().filter(|mix| !mix.classes().is_empty());
        let Some(mix) = mix else { return Ok(Vec::new()) };
        self.observer.phase(&Phase::MeasuringServiceTime { at_most: class_alone::LONGEST_OF_ALL });
        let visit = |requests, number, longest| {
            if self.is_over() {
                return Ok(None);
            }
            self.visit_with(Some(requests), number, longest).map(|run| Some(run.tally))
        };
        let classes = class_alone::measure(&mix, RESPONSES_OF_CLASS, visit)?;
        self.cool_down();
        Ok(classes)
    }

    /// Measures how long one request takes alone, before the first run; `None` if no response was
    /// good.
    pub(crate) fn measure_service_time(&mut self) -> Result<Option<ServiceTime>, SweepError> {
        let first = self.server.first_response.clone();
        // That request waited for the boot, and only Puma's statistics tell when it was over.
        let is_timed = self.server.reached.control.is_some();
        let workers = WorkersToVisit {
            workers: if self.server.workers.len() == 1 { 0 } else { self.server.facts.workers },
            are_named: first.worker.is_some(),
            visited: first.worker.into_iter().collect(),
            firsts: LoneResponses::default(),
            earlier_first: if is_timed { first.took } else { Nanos::ZERO },
        };
        let learned = measure(self, workers)?;
        self.cool_down();
        Ok(learned.map(|known| ServiceTime { given: self.block.stream.delay, ..known }))
    }

    /// Measures it once more, after the last run.
    pub(crate) fn measure_service_time_again(&mut self) -> Result<LoneResponses, SweepError> {
        let again = measure_again(self)?;
        self.cool_down();
        Ok(again)
    }

    /// Sends requests to workers that have had none yet, so that no run has a worker's first
    /// request in it. Needed only if responses do not name workers; then Puma's statistics tell.
    pub(crate) fn visit_missing_workers(&mut self) -> Result<(), SweepError> {
        let is_missing = |session: &Self| {
            session.stats.as_ref().is_some_and(|stats| stats.cluster && !has_served(stats))
        };
        if !is_missing(self) {
            return Ok(());
        }
        let workers = self.server.facts.workers;
        let mut missing = WorkersToVisit { workers, ..WorkersToVisit::default() };
        missing.visit_all(self, &mut LoneResponses::default())?;
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
        /// How long a request takes; `None` if it has no good response.
        takes: F,
        /// Requests of each worker so far.
        served: Vec<u64>,
        connections: usize,
        is_named: bool,
    }

    /// A request, by its number at its worker and at all workers, both from 0.
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

        fn measure(&mut self) -> Option<ServiceTime> {
            let workers = WorkersToVisit {
                workers: self.served.len() as u32,
                are_named: self.is_named,
                ..WorkersToVisit::default()
            };
            measure(self, workers).unwrap()
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
                    visit.responses.times.record(taken);
                }
            }
            if self.is_named && visit.responses.times.count() > 0 {
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
    fn a_constant_time_is_known_after_twenty_responses() {
        let mut server = Simulated::new(2, |_| Some(MS * 20));
        let known = server.measure().unwrap();
        assert_eq!((known.mean, known.answers, known.first), (MS * 20, 20, None));
        assert_eq!(server.now, MS * 22 * 20, "with one first request of each worker");
    }

    #[test]
    fn the_first_request_of_each_worker_is_left_out_and_reported() {
        let first_slow = |asked: Asked| Some(MS * if asked.of_worker == 0 { 3000 } else { 50 });
        let known = Simulated::new(2, first_slow).measure().unwrap();
        assert_eq!((known.mean, known.longest, known.first), (MS * 50, MS * 50, Some(MS * 3000)));
        let mut unnamed = Simulated { is_named: false, ..Simulated::new(2, first_slow) };
        let known = unnamed.measure().unwrap();
        assert_eq!(
            (known.mean, known.first),
            (MS * 50, Some(MS * 3000)),
            "no response names its worker"
        );
    }

    #[test]
    fn a_time_that_varies_is_measured_until_it_is_known_or_ten_seconds_have_passed() {
        let bimodal = |asked: Asked| Some(MS * if asked.of_all % 20 == 7 { 1000 } else { 20 });
        let mut server = Simulated::new(2, bimodal);
        let known = server.measure().unwrap();
        assert!((MS * 60..MS * 80).contains(&known.mean), "{known:?}");
        assert!(known.low < MS * 69 && MS * 69 < known.high && !known.is_well_known());
        let took = server.now;
        assert!((LONGEST..LONGEST + MS * 2000).contains(&took), "{took:?}");
        let mut short = Simulated::new(2, |asked: Asked| Some(MS * (1 + asked.of_all % 3)));
        assert!(short.measure().unwrap().is_within(0.06) && short.now < MS * 1000);
    }

    #[test]
    fn the_measurement_of_a_slow_or_failing_app_ends() {
        let mut slow = Simulated::new(2, |_| Some(MS * 5000));
        assert_eq!(slow.measure().unwrap().answers, 4);
        assert!(slow.now <= LONGEST_MEASUREMENT + MS * 5000, "{:?}", slow.now);
        let mut endless = Simulated::new(8, |_| Some(MS * 100_000));
        let known = endless.measure().unwrap();
        assert_eq!((known.mean, known.answers), (MS * 100_000, 2), "only first requests");
        let mut failing = Simulated::new(2, |_| None);
        assert_eq!(failing.measure(), None);
        let now_and_then = |asked: Asked| (asked.of_all % 2 == 1).then_some(MS * 20);
        assert_eq!(Simulated::new(1, now_and_then).measure().unwrap().mean, MS * 20);
    }

    #[test]
    fn the_repetition_takes_a_second_or_three_responses_of_a_slow_app() {
        for (takes, responses, most) in [(20, 26, 1000), (400, 3, 2000), (5000, 1, 6000)] {
            let mut server = Simulated::new(1, |_| Some(MS * takes));
            let again = measure_again(&mut server).unwrap();
            assert_eq!(again.times.count(), responses, "{takes}");
            assert!(server.now < MS * most, "{:?}", server.now);
        }
        let of_none = measure_again(&mut Simulated::new(1, |_| None)).unwrap();
        assert_eq!(of_none.times.count(), 0);
    }
}
