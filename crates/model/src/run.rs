//! One run ([`Run`]): the load, what happened, what others counted, what theory expected, and what
//! is doubtful.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::theory::{Overload, PercentileRange};
use crate::{
    AppTimes, Diagnostic, EventRecord, Forecast, GeneratorClaim, GeneratorFacts, Judgement,
    KernelView, Limit, Nanos, Outcome, Pace, Quantile, Silence, Statistics, StatsdReport,
    StepRecord, Tally, Theory, Verdict, Watch,
};

/// One run of a study: a row of a sweep, a body over a kind of socket, a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which pass over all runs, from 1.
    pub repeat: u32,
    /// Connections / slots, as requested; `None` for a load, whose server's slots are unknown.
    pub multiple: Option<f64>,
    /// Connections, in total.
    pub connections: u32,
    /// What the client recorded; empty if another generator made the run.
    #[serde(default, skip_serializing_if = "Tally::is_nothing")]
    pub tally: Tally,
    /// What another generator says about its run; `None` for our own.
    pub claim: Option<Box<GeneratorClaim>>,
    /// The length of the measured window, from which rates are computed: as planned, or up to the
    /// last response if a count ended the run, or up to the interruption.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// From the first connect to the end of the last request, warm-up and drain included.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Each worker's share, by the most reliable source; empty if there is none.
    pub workers: Vec<WorkerShare>,
    /// What was sampled from server and kernel meanwhile; `None` without sampling.
    pub watch: Option<Watch>,
    /// What app and server sent by statsd meanwhile; `None` if longtail did not listen.
    pub statsd: Option<StatsdReport>,
    /// Where the response times went, by the app's report; `None` if it was not asked, or reported
    /// nothing.
    #[serde(rename = "anatomy")]
    pub app_times: Option<AppTimes>,
    /// Where requests waited, by the kernel's tracepoints; `None` if they were not read.
    pub kernel: Option<KernelView>,
    /// What theory expected.
    pub forecast: Option<Forecast>,
    /// What each order of service predicts for it; `None` if no service time is known.
    pub theory: Option<Theory>,
    /// What an overload in open loop shows about the server; `None` without an overload.
    pub overload: Option<Overload>,
    /// How well the percentiles are known, and whether the run was steady; `None` if it was not
    /// sampled.
    pub statistics: Option<Statistics>,
    /// When the server, or a worker, answered nothing for a while and then several requests at
    /// once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<Silence>,
    /// Each step of a load whose rate changes by plan, or each tenth of a ramp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// What was done to the server in the middle of it (`--during`), and what became of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Box<EventRecord>>,
    /// What the generator and its machine did.
    pub generator: GeneratorFacts,
    /// What limited the run; `None` if it has not been judged yet.
    pub judgement: Option<Judgement>,
    /// What is doubtful.
    pub warnings: Vec<Diagnostic>,
}

/// How the share of a worker is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareSource {
    /// From a response header: exact, of the measured requests.
    Header,
    /// From the server's statistics: requests it started, warm-up included.
    Stats,
}

/// One worker's share of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerShare {
    /// The worker, as it or the server's statistics name it: for Puma, its pid.
    pub worker: String,
    /// Its requests.
    pub requests: u64,
    /// The source of this number.
    pub source: ShareSource,
}

/// The percentiles of the table, 0 to 1; the maximum comes in addition.
pub const PERCENTILES: [f64; 8] = [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999];

/// If the longest time exceeds a lower percentile by at most this share of that percentile, the
/// percentiles between the two are known well enough.
const NARROW: f64 = 0.2;

impl Run {
    /// A first run with only what its lanes recorded.
    pub fn recorded(connections: u32, tally: Tally, measured: Nanos, elapsed: Nanos) -> Run {
        // List each field: a default run would allocate histograms just to drop them, which takes
        // half a millisecond.
        Run {
            repeat: 1,
            multiple: None,
            connections,
            tally,
            claim: None,
            measured,
            elapsed,
            workers: Vec::new(),
            watch: None,
            statsd: None,
            app_times: None,
            kernel: None,
            forecast: None,
            theory: None,
            overload: None,
            statistics: None,
            silences: Vec::new(),
            steps: Vec::new(),
            event: None,
            generator: GeneratorFacts::default(),
            judgement: None,
            warnings: Vec::new(),
        }
    }

    /// A run by another generator, with nothing but what the generator reports about it.
    pub fn claimed(connections: u32, claim: GeneratorClaim, elapsed: Nanos) -> Run {
        let measured = claim.duration.unwrap_or(elapsed);
        Run {
            claim: Some(Box::new(claim)),
            ..Run::recorded(connections, Tally::default(), measured, elapsed)
        }
    }

    /// What limited it, by its judgement; `None` if nothing did or it was not judged.
    pub fn limit(&self) -> Option<&Limit> {
        self.judgement.as_ref()?.limit.as_ref()
    }

    /// Whether conclusions may be drawn from this run.
    pub fn is_evidence(&self) -> bool {
        let verdict = self.judgement.as_ref().map(|judgement| judgement.verdict);
        verdict
            .is_some_and(|verdict| !matches!(verdict, Verdict::GeneratorBound | Verdict::Invalid))
    }

    /// Its name in a sweep: `1.5x`; empty for a load.
    pub fn in_multiples(&self) -> String {
        self.multiple
            .map_or(String::new(), |multiple| format!("{}x", (multiple * 100.0).round() / 100.0))
    }

    /// Good responses per second of the measured window, or what another generator reports; `None`
    /// if it doesn't.
    pub fn rate(&self) -> Option<f64> {
        self.claim.as_ref().map_or_else(|| Some(self.completed_rate()), |claim| claim.rate_per_s)
    }

    /// Requests of the measured window; `None` if another generator doesn't report them.
    pub fn requests(&self) -> Option<u64> {
        self.claim.as_ref().map_or_else(|| Some(self.tally.counts.total()), |claim| claim.requests)
    }

    /// Failed requests; `None` if another generator doesn't report them.
    pub fn failed(&self) -> Option<u64> {
        self.claim.as_ref().map_or_else(|| Some(self.tally.counts.failed()), |claim| claim.failed)
    }

    /// Requests with a good response; `None` if another generator doesn't report them.
    pub fn good(&self) -> Option<u64> {
        self.claim.as_ref().map_or_else(|| Some(self.tally.counts.good()), |claim| claim.good())
    }

    /// Responses of the measured window by status (`200`), or by class (`2xx`) if another generator
    /// reports only that.
    pub fn statuses(&self) -> BTreeMap<String, u64> {
        if let Some(claim) = &self.claim {
            return claim.statuses.clone();
        }
        let answered = |(outcome, requests)| match outcome {
            Outcome::Answered(status) => Some((status.to_string(), requests)),
            _ => None,
        };
        self.tally.counts.iter().filter_map(answered).collect()
    }

    /// The mean response time of the good responses; `None` if another generator doesn't report it,
    /// and in an overload, where it depends on how long the run was.
    pub fn mean_response_time(&self) -> Option<Nanos> {
        let measured = || self.tally.response_time.mean().filter(|_| !self.is_overload());
        self.claim.as_ref().map_or_else(measured, |claim| claim.mean)
    }

    /// Good responses per second of the measured window; 0 if it has no length, or if another
    /// generator made the run.
    pub fn completed_rate(&self) -> f64 {
        per_second(self.tally.completed_in_window, self.measured)
    }

    /// Requests per second that were sent in the measured window; 0 if it has no length.
    pub fn sent_rate(&self) -> f64 {
        per_second(self.tally.sent_in_window, self.measured)
    }

    /// For how long requests became due in an open loop, if that was sampled.
    fn offered_for(&self) -> Option<Nanos> {
        Some(self.statistics.as_ref()?.backlog?.over)
    }

    /// Requests per second that became due; `None` in a closed loop.
    pub fn offered_rate(&self, pace: &Pace) -> Option<f64> {
        pace.is_open().then(|| self.due_rate())
    }

    /// The same of a run that is known to be of an open loop; 0 if it has no length.
    pub fn due_rate(&self) -> f64 {
        // If a count ends the run, the last response comes later than the last request is due.
        per_second(self.tally.due(), self.offered_for().unwrap_or(self.measured))
    }

    /// Good responses per second while requests became due. If a count ended the run, responses
    /// after the last due time are left out, to the precision of whole seconds.
    pub fn completed_under_load(&self) -> f64 {
        match self.offered_for().map(|over| (over.as_secs_f64() + 1e-3) as usize) {
            Some(seconds @ 1..) if self.tally.window.until == Nanos::MAX => {
                let seconds_of_load = self.tally.series.seconds.iter().take(seconds);
                seconds_of_load.map(|second| second.completed).sum::<u64>() as f64 / seconds as f64
            }
            _ => self.completed_rate(),
        }
    }

    /// Completed rate / theoretical maximum. `None` for a mix of which many requests failed: the
    /// maximum is that of all its requests, and those that are left may take less time.
    pub fn of_maximum(&self) -> Option<f64> {
        let counts = &self.tally.counts;
        let has_many_failures = counts.failed() as f64 > 0.01 * counts.total() as f64;
        if self.tally.classes.len() > 1 && has_many_failures {
            return None;
        }
        Some(self.rate()? / self.forecast.as_ref()?.maximum_rate)
    }

    /// The response time at quantile `q`, like [`Tally::response_time_at`], if enough independent
    /// responses support it.
    pub fn response_time(&self, q: f64) -> Quantile {
        match &self.claim {
            Some(claim) => Quantile::printed(claim.percentile(q)),
            None => {
                self.tally.response_time_at(q).supported(self.statistics.as_ref(), q, &self.tally)
            }
        }
    }

    /// The range of quantile `q`, if too few responses support it: from the highest known
    /// percentile below it to the longest time. `None` if that is wider than a fifth, which says
    /// nothing about it.
    pub fn percentile_range(&self, q: f64) -> Option<PercentileRange> {
        (self.response_time(q) == Quantile::TooFew).then(|| self.range_around(q))?
    }

    /// The same range, whatever supports the percentile itself.
    pub fn range_around(&self, q: f64) -> Option<PercentileRange> {
        let below = PERCENTILES.iter().rev().filter(|below| **below >= 0.5 && **below < q);
        let low = below.copied().find_map(|below| self.response_time(below).time())?;
        let high = self.max_response_time().time()?;
        let is_narrow = high.0 as f64 <= (1.0 + NARROW) * low.0 as f64;
        is_narrow.then_some(PercentileRange { quantile: q, low, high })
    }

    /// The service time at quantile `q`, by the same rules; only for our own runs.
    pub fn service_time(&self, q: f64) -> Quantile {
        self.tally.service_time_at(q).supported(self.statistics.as_ref(), q, &self.tally)
    }

    /// Long tail: longest response time / 10th percentile; the longest must be known.
    pub fn long_tail(&self) -> Option<f64> {
        let max = self.max_response_time().time()?;
        let p10 = self.response_time(0.10).time()?;
        (p10 > Nanos::ZERO).then(|| max.0 as f64 / p10.0 as f64)
    }

    /// Whether requests waited longer and longer, as more were offered than the server can do.
    pub fn is_overload(&self) -> bool {
        self.statistics.as_ref().is_some_and(|statistics| statistics.is_overload(&self.tally))
    }

    /// The longest response time; unknown if a request has no response, and in an overload, where
    /// it depends on how long the run was.
    pub fn max_response_time(&self) -> Quantile {
        let measured = || match self.tally.longest_response_time() {
            Quantile::Time(_) if self.is_overload() => Quantile::Growing,
            longest => longest,
        };
        self.claim.as_ref().map_or_else(measured, |claim| Quantile::printed(claim.max))
    }

    /// The response time at quantile `q` / the ideal first-come-first-served time.
    pub fn of_ideal(&self, q: f64) -> Option<f64> {
        let ideal = self.forecast.as_ref()?.ideal_response_time;
        let time = self.response_time(q).time()?;
        (ideal > Nanos::ZERO).then(|| time.0 as f64 / ideal.0 as f64)
    }

    /// Jain's index of the connections' good responses: 1 if all got the same, 1/n if one got all.
    /// (Jain, Chiu, Hawe, DEC-TR-301, 1984.) `None` without responses.
    pub fn fairness(&self) -> Option<f64> {
        let counts = &self.tally.per_connection;
        let sum: f64 = counts.iter().map(|n| *n as f64).sum();
        let squares: f64 = counts.iter().map(|n| (*n as f64).powi(2)).sum();
        (squares > 0.0).then(|| sum * sum / (counts.len() as f64 * squares))
    }

    /// The workers' relative deviations from an even share, rising: -0.03 is 3 % less than even;
    /// empty without requests.
    pub fn worker_deviations(&self) -> Vec<f64> {
        let total: u64 = self.workers.iter().map(|w| w.requests).sum();
        if total == 0 {
            return Vec::new();
        }
        let even = total as f64 / self.workers.len() as f64;
        let mut deviations: Vec<f64> =
            self.workers.iter().map(|w| w.requests as f64 / even - 1.0).collect();
        deviations.sort_by(f64::total_cmp);
        deviations
    }

    /// Whether one of several workers served less than half of an even share, so that its threads
    /// were idle. Only with enough requests to tell.
    pub fn has_idle_worker(&self) -> bool {
        let total: u64 = self.workers.iter().map(|worker| worker.requests).sum();
        let are_enough = total >= 20 * self.workers.len() as u64;
        self.workers.len() > 1
            && are_enough
            && self.worker_deviations().first().is_some_and(|least| *least < -0.5)
    }

    /// Connections of a closed loop without any response in a window that was long enough for ten on
    /// each: the server keeps to the others. 0 in an open loop, which does not need all connections,
    /// and if requests failed, since a failed one may be theirs.
    pub fn connections_never_served(&self) -> u32 {
        const ROUNDS: f64 = 10.0;
        // Only an open loop has a backlog.
        if self.statistics.as_ref().is_some_and(|statistics| statistics.backlog.is_some()) {
            return 0;
        }
        let each = &self.tally.per_connection;
        let never = each.iter().filter(|responses| **responses == 0).count();
        let round = each.len() as f64 / self.completed_rate().max(1e-9);
        let is_long = self.measured.as_secs_f64() >= ROUNDS * round;
        let are_some_served = never < each.len();
        if is_long && are_some_served && self.tally.counts.failed() == 0 { never as u32 } else { 0 }
    }

    /// How long a good response's request waited in the kernel's accept queue on average, inferred
    /// from the length of the queue (Little's law).
    ///
    /// In a closed loop each connection sends as soon as it is connected and has one request in
    /// flight, so each connection in the accept queue is one waiting request. Over the measured
    /// window the mean number of waiting requests is their rate times the mean wait, where a
    /// request that did not wait counts as 0 (J. D. C. Little, *Operations Research* 9(3), 1961):
    /// mean wait = mean length x window / good responses in the window. This gives only the mean,
    /// and it is inferred, not measured.
    ///
    /// `None` if the queue was not sampled often enough, if requests failed (those that were given up
    /// may still be in the queue), or if some connections are never served, and so wait there for
    /// ever.
    pub fn accept_queue_wait(&self) -> Option<Nanos> {
        let (track, queue) = self.watch.as_ref()?.curve("accept_queue")?;
        let is_mixed = self.tally.counts.failed() > 0 || self.connections_never_served() > 0;
        if is_mixed || self.tally.completed_in_window == 0 {
            return None;
        }
        let length = track.mean(queue, self.measured)?;
        Some(Nanos::from_secs_f64(
            length * self.measured.as_secs_f64() / self.tally.completed_in_window as f64,
        ))
    }
}

impl Run {
    /// How long a good response's request waited in the server's own queue on average, inferred
    /// from the length that the server reports (Little's law, like [`Run::accept_queue_wait`]).
    /// Puma 7 and later accept everything and queue it in each worker.
    ///
    /// `None` if a worker did not report it, or if requests failed.
    pub fn server_queue_wait(&self) -> Option<Nanos> {
        let length = self.reported("backlog")?;
        if self.tally.counts.failed() > 0 || self.tally.completed_in_window == 0 {
            return None;
        }
        Some(Nanos::from_secs_f64(
            length * self.measured.as_secs_f64() / self.tally.completed_in_window as f64,
        ))
    }

    /// A figure that the workers report (`backlog`, `busy_threads`), summed over all workers, each
    /// averaged over its reports within the run; `None` if a worker made no report.
    ///
    /// Puma's workers report every five seconds. Each report is read several times, and counts as
    /// often as it was read; reports from before the run don't count.
    pub fn reported(&self, figure: &str) -> Option<f64> {
        let mut workers = 0;
        let mut total = 0.0;
        for (track, curve) in self.watch.as_ref()?.curves(figure) {
            let mut sum = 0;
            let mut reports = 0;
            for (number, (at, value)) in track.at.iter().zip(&curve.values).enumerate() {
                let staleness =
                    curve.staleness.get(number).copied().flatten().unwrap_or(Nanos::ZERO);
                let is_of_this_run = staleness <= *at && *at <= self.measured;
                if let Some(value) = value.filter(|_| is_of_this_run) {
                    sum += value;
                    reports += 1;
                }
            }
            if reports == 0 {
                return None;
            }
            total += sum as f64 / f64::from(reports);
            workers += 1;
        }
        (workers > 0).then_some(total)
    }
}

fn per_second(count: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { count as f64 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::test_fixtures::run;

    const OK: Outcome = Outcome::Answered(200);

    #[test]
    fn two_timeouts_in_a_hundred_hide_p99_but_not_p90() {
        let mut outcomes: Vec<_> = (1..=98).map(|ms| (OK, ms)).collect();
        outcomes.extend([(Outcome::TimedOut, 1), (Outcome::TimedOut, 1)]);
        let run = run(&outcomes);
        assert_eq!(run.response_time(0.99), Quantile::Unanswered);
        // Rank 90 of 100: timeouts are slower than any response, wherever their clock stopped.
        assert_eq!(run.response_time(0.90), Quantile::Time(Nanos(90_046_463)));
        assert_eq!((run.max_response_time(), run.long_tail()), (Quantile::Unanswered, None));
        // Fast errors do not make the server look fast.
        let half = self::run(&[[(OK, 100); 50], [(Outcome::Answered(503), 1); 50]].concat());
        assert_eq!(half.response_time(0.5), Quantile::Unanswered);
        assert_eq!(half.response_time(0.25).time(), half.tally.response_time.max());
        // And a percentile needs a request above it.
        let run = self::run(&(1..=500).map(|ms| (OK, ms)).collect::<Vec<_>>());
        assert_eq!(run.response_time(0.999), Quantile::TooFew);
        assert!(run.response_time(0.99).time().is_some());
    }

    #[test]
    fn a_percentile_with_too_few_responses_has_a_range_up_to_the_longest() {
        let of = |longest: u64| {
            let mut times = vec![(OK, 400); 90];
            times.extend([(OK, 414), (OK, longest)]);
            run(&times)
        };
        let ms = Nanos::from_millis;
        let range = of(419).percentile_range(0.999).unwrap();
        assert_eq!((range.quantile, range.high), (0.999, ms(419)));
        assert!(range.low >= ms(400) && range.low <= ms(415), "{range:?}");
        assert_eq!(of(419).percentile_range(0.9), None, "it is known");
        assert_eq!(of(600).percentile_range(0.999), None, "too wide");
        // A timeout is slower than any response.
        let mut times = vec![(OK, 400); 90];
        times.push((Outcome::TimedOut, 1));
        assert_eq!(run(&times).percentile_range(0.999), None);
    }

    #[test]
    fn jains_index_is_one_when_even_and_one_nth_when_one_takes_all() {
        assert_eq!(run(&[(OK, 1); 8]).fairness(), Some(1.0));
        let mut unfair = run(&[]);
        unfair.tally.per_connection = vec![9, 0, 0, 0];
        assert_eq!(unfair.fairness(), Some(0.25));
        assert_eq!(run(&[]).fairness(), None);
    }
}
