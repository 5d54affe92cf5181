//! What the same event cost in several runs, as in the blocks of a comparison.

use model::event_requests::FailuresOfKind;
use model::statistics::ranks;
use model::{Histogram, Nanos, Run};

use crate::event::ServerChange;
use crate::findings::{EventCost, FailureCount, failure};
use crate::words::{brief, counted, listed};

/// The same event, done in several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedEvent {
    /// What was asked for.
    pub event: String,
    /// The event as the subject of a sentence.
    name: String,
    /// In how many runs it was done.
    pub runs: u32,
    /// In how many it was not: the run ended before, or it could not be done.
    pub not_done: u32,
    /// What became of the server's processes; `None` if that was not the same in all runs.
    pub change: Option<ServerChange>,
    /// A sentence about Puma's version, if the event changed it.
    other_version: Option<String>,
    /// How long it took; `None` if nothing changed.
    pub took: Option<RepeatedTime>,
    /// For how long no process served.
    pub unserved: Option<RepeatedTime>,
    /// The longest time without a response.
    pub gap: Option<RepeatedTime>,
    /// Requests that were in flight at the event, or due from then until all was as before, in all
    /// runs.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How they failed, the most frequent kind first.
    kinds: Vec<FailureCount>,
    /// How many requests failed after that.
    pub failed_later: u64,
    /// How they failed.
    kinds_later: Vec<FailureCount>,
    /// The timeout of a request.
    timeout: Nanos,
    /// The 99th percentile of the response times before, in all runs.
    pub p99_before: Option<Nanos>,
    /// The same from the event until all was as before.
    pub p99_during: Option<Nanos>,
    /// Runs that ended before all was as before.
    pub cut_off: u32,
}

/// A time that was measured in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedTime {
    /// The median.
    pub median: Nanos,
    /// Its 95 % interval; `None` if there are too few runs.
    pub interval: Option<[Nanos; 2]>,
}

impl RepeatedTime {
    fn of(times: impl IntoIterator<Item = Nanos>) -> Option<RepeatedTime> {
        let mut times: Vec<Nanos> = times.into_iter().collect();
        times.sort_unstable();
        let upper = *times.get(times.len() / 2)?;
        let median = (times[(times.len() - 1) / 2] + upper) / 2;
        let ends = ranks(0.5, times.len() as u64, 1.0);
        let at = |rank: u64| times[rank as usize - 1];
        let interval = ends.low.zip(ends.high).map(|(low, high)| [at(low), at(high)]);
        Some(RepeatedTime { median, interval })
    }

    /// `3.10 s`, or `3.10 s (2.90 to 3.40 s)`
    fn in_words(self) -> String {
        let median = brief(self.median);
        match self.interval {
            Some([low, high]) => format!("{median} ({} to {})", brief(low), brief(high)),
            None => median,
        }
    }
}

impl RepeatedEvent {
    /// What the event cost in these runs; `None` if they have none.
    pub fn of(runs: &[&Run], timeout: Nanos) -> Option<RepeatedEvent> {
        let costs: Vec<EventCost> =
            runs.iter().filter_map(|run| EventCost::of(run, timeout)).collect();
        let first = costs.first()?;
        let done: Vec<&EventCost> = costs.iter().filter(|cost| cost.at.is_some()).collect();
        let of_runs = |time: fn(&EventCost) -> Option<Nanos>| {
            RepeatedTime::of(done.iter().filter_map(|cost| time(cost)))
        };
        let change = done.first().map(|cost| cost.change);
        let is_same = done.iter().all(|cost| Some(cost.change) == change);
        let requests = || runs.iter().filter_map(|run| run.event.as_ref()?.requests.as_ref());
        let before = merged(requests().map(|requests| &requests.before.response_time));
        let during = merged(requests().map(|requests| &requests.during.response_time));
        Some(RepeatedEvent {
            event: first.event.clone(),
            name: first.name(),
            runs: done.len() as u32,
            not_done: (costs.len() - done.len()) as u32,
            change: change.filter(|_| is_same),
            other_version: done.iter().find_map(|cost| cost.versions_in_words()),
            took: of_runs(|cost| cost.took),
            unserved: of_runs(|cost| Some(cost.unserved).filter(|time| *time > Nanos::ZERO)),
            gap: of_runs(|cost| Some(cost.gap)),
            requests: done.iter().map(|cost| cost.requests).sum(),
            failed: done.iter().map(|cost| cost.failed).sum(),
            kinds: summed(done.iter().flat_map(|cost| &cost.kinds)),
            failed_later: done.iter().map(|cost| cost.failed_later).sum(),
            kinds_later: summed(done.iter().flat_map(|cost| &cost.kinds_later)),
            timeout,
            p99_before: before.quantile(0.99),
            p99_during: during.quantile(0.99),
            cut_off: done.iter().filter(|cost| cost.is_cut_off).count() as u32,
        })
    }

    fn in_words(&self, kinds: &[FailureCount]) -> String {
        let kinds: Vec<String> = kinds.iter().map(|kind| failure(kind, self.timeout)).collect();
        listed(&kinds)
    }

    /// What it cost, in a sentence or two.
    pub fn sentence(&self) -> String {
        if self.runs == 0 {
            return format!("{} was done in no run.", self.name);
        }
        let runs = match self.runs {
            1 => String::new(),
            runs => format!(" in {runs} runs"),
        };
        let happened = match self.change {
            Some(change) => change.in_words(),
            None => "what became of the processes was not the same in all runs".to_owned(),
        };
        let unserved = self
            .unserved
            .map(|time| format!(", and for {} none served", time.in_words()))
            .unwrap_or_default();
        let took = match self.took {
            Some(took) => format!("took {}{runs}", took.in_words()),
            None => format!("was done{runs}"),
        };
        let failed = match (self.failed, self.failed_later) {
            (0, 0) => format!("no request failed ({} meanwhile)", self.requests),
            (0, later) => format!(
                "no request failed meanwhile ({}), but {later} later, when all seemed to be over: \
                 {}",
                self.requests,
                self.in_words(&self.kinds_later)
            ),
            (failed, later) => {
                let requests = counted(self.requests, "request");
                let later = match later {
                    0 => String::new(),
                    later => format!(
                        ", and {later} later, when all seemed to be over: {}",
                        self.in_words(&self.kinds_later)
                    ),
                };
                let kinds = self.in_words(&self.kinds);
                format!("{failed} of the {requests} meanwhile failed: {kinds}{later}")
            }
        };
        let p99 = match (self.p99_before, self.p99_during) {
            (Some(before), Some(during)) => {
                format!("; p99 {} (before {})", brief(during), brief(before))
            }
            _ => String::new(),
        };
        let cut_off = match self.cut_off {
            0 => String::new(),
            1 if self.runs == 1 => {
                " The run ended before all was as before: give --for more.".to_owned()
            }
            1 => " One of the runs ended before all was as before: give --for more.".to_owned(),
            runs => format!(" {runs} runs ended before all was as before: give --for more."),
        };
        let version =
            self.other_version.as_ref().map(|said| format!(" {said}")).unwrap_or_default();
        format!("{} {took}: {happened}{unserved}; {failed}{p99}.{version}{cut_off}", self.name)
    }
}

/// How many requests failed in each way, in all runs.
fn summed<'k>(kinds: impl Iterator<Item = &'k FailuresOfKind>) -> Vec<FailureCount> {
    let mut sums: Vec<FailureCount> = Vec::new();
    for kind in kinds {
        match sums.iter_mut().find(|sum| sum.outcome == kind.outcome) {
            Some(sum) => sum.requests += kind.requests,
            None => sums.push(FailureCount {
                outcome: kind.outcome.clone(),
                requests: kind.requests,
                reason: None,
            }),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.requests));
    sums
}

fn merged<'h>(all: impl Iterator<Item = &'h Histogram>) -> Histogram {
    let mut sum = Histogram::default();
    for one in all {
        sum.merge(one);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_an_interval_from_six_runs_on() {
        let ms = Nanos::from_millis;
        assert_eq!(RepeatedTime::of([]), None);
        let five = RepeatedTime::of([3, 1, 2, 5, 4].map(ms)).unwrap();
        assert_eq!(five, RepeatedTime { median: ms(3), interval: None });
        let six = RepeatedTime::of([3, 1, 2, 6, 5, 4].map(ms)).unwrap();
        assert_eq!(six.interval, Some([ms(1), ms(6)]));
        assert_eq!(six.median, Nanos(3_500_000));
        let many = RepeatedTime::of((1..=20).map(|n| ms(n * 10))).unwrap();
        assert_eq!(many.interval, Some([ms(60), ms(150)]), "the 6th and the 15th of 20");
        assert_eq!(many.in_words(), "105 ms (60.0 ms to 150 ms)");
    }

    #[test]
    fn what_an_event_cost_in_several_runs_is_said_in_a_sentence() {
        let kind = |outcome: &str, requests| {
            let outcome = outcome.to_owned();
            FailureCount { outcome, requests, reason: None }
        };
        let event = RepeatedEvent {
            event: "restart".to_owned(),
            name: "The restart".to_owned(),
            runs: 8,
            not_done: 0,
            change: Some(ServerChange::RestartedInFull),
            other_version: None,
            took: RepeatedTime::of((0..8).map(|n| Nanos::from_millis(2000 + n))),
            unserved: RepeatedTime::of([Nanos::from_millis(1200)]),
            gap: None,
            requests: 800,
            failed: 3,
            kinds: vec![kind("503", 2), kind("408", 1)],
            failed_later: 0,
            kinds_later: Vec::new(),
            timeout: Nanos::from_secs(30),
            p99_before: Some(Nanos::from_millis(22)),
            p99_during: Some(Nanos::from_millis(1300)),
            cut_off: 0,
        };
        assert_eq!(
            event.sentence(),
            "The restart took 2.00 s (2.00 s to 2.01 s) in 8 runs: the server restarted in full, and for \
             1.20 s none served; 3 of the 800 requests meanwhile failed: 2 answered with status 503 and \
             1 answered with status 408; p99 1.30 s (before 22.0 ms)."
        );
        let later =
            RepeatedEvent { failed_later: 40, kinds_later: vec![kind("500", 40)], ..event.clone() };
        assert!(later.sentence().contains(
            "answered with status 408, and 40 later, when all seemed to be over: 40 answered with \
             status 500; p99"
        ));
        let differing = RepeatedEvent { change: None, failed: 0, cut_off: 2, ..event };
        let said = differing.sentence();
        assert!(
            said.contains("was not the same in all runs") && said.contains("no request failed")
        );
        assert!(
            said.ends_with("2 runs ended before all was as before: give --for more."),
            "{said}"
        );
    }
}
