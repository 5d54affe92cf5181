//! One class of a run's requests as a run of its own, so that its percentiles, its failures and
//! its thresholds follow the same rules as those of the whole run.

use crate::statistics::ranks;
use crate::{ClassTally, Interval, Nanos, Run, Statistics, Tally};

impl Run {
    /// This run as the requests of a class saw it, with their figures only: without send lags and
    /// service times, which are not recorded by class, and without what the server did.
    #[must_use]
    pub fn of_class(&self, class: &ClassTally) -> Run {
        let tally = Tally {
            window: self.tally.window,
            counts: class.counts.clone(),
            unmeasured: class.unmeasured.clone(),
            unfinished: class.unfinished.clone(),
            response_time: class.response_time.clone(),
            failed_response_time: class.failed_response_time.clone(),
            completed_in_window: class.counts.good(),
            // Whether the load was more than the server can do is a matter of all requests.
            series: self.tally.series.clone(),
            ..Tally::default()
        };
        Run {
            repeat: self.repeat,
            multiple: self.multiple,
            statistics: self.statistics.as_ref().map(|statistics| statistics.of_class(&tally)),
            judgement: self.judgement.clone(),
            ..Run::recorded(self.connections, tally, self.measured, self.elapsed)
        }
    }

    /// The share of a class in the response times of all requests, failed ones included: about the
    /// share of the requests in flight. `None` if there was no response.
    pub fn share_of_response_time(&self, class: &ClassTally) -> Option<f64> {
        let sum = |times: [&crate::Histogram; 2]| -> Nanos {
            times[0].sum().saturating_add(times[1].sum())
        };
        let of_all = sum([&self.tally.response_time, &self.tally.failed_response_time]);
        let of_class = sum([&class.response_time, &class.failed_response_time]);
        (of_all > Nanos::ZERO).then(|| of_class.as_secs_f64() / of_all.as_secs_f64())
    }
}

impl Statistics {
    /// The same for a class. Its responses are assumed to be as correlated as those of all classes
    /// together, because all classes wait in the same queue.
    fn of_class(&self, tally: &Tally) -> Statistics {
        let interval = |whole: &Interval| {
            let of_class = whole
                .inflation
                .map(|inflation| ranks(whole.quantile, tally.population(), inflation));
            let time = |rank: Option<u64>| tally.response_time.at_rank(rank?);
            Interval {
                low: of_class.and_then(|ranks| time(ranks.low)),
                high: of_class.and_then(|ranks| time(ranks.high)),
                without_generator: None,
                ..*whole
            }
        };
        Statistics { intervals: self.intervals.iter().map(interval).collect(), ..self.clone() }
    }
}
