//! The app computed its queue time from `X-Request-Start`, as an APM does.

use model::{LoadStudy, Nanos, QueueHeader, number};
use serde::{Deserialize, Serialize};

use super::Finding;

/// The queue time that an APM would show, beside the one by longtail's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppQueueTime {
    /// How the header said when a request was sent.
    pub header: QueueHeader,
    /// The mean of the queue times that the app computed.
    #[serde(rename = "computed_mean_ns")]
    pub computed_mean: Nanos,
    /// Their 99th percentile.
    #[serde(rename = "computed_p99_ns")]
    pub computed_p99: Nanos,
    /// How long requests were outside the app, on average; `None` if the app does not report how
    /// long it took itself.
    #[serde(rename = "outside_mean_ns")]
    pub outside_mean: Option<Nanos>,
    /// The 99th percentile of that.
    #[serde(rename = "outside_p99_ns")]
    pub outside_p99: Option<Nanos>,
}

/// Compares both, of a load whose app said what it computed.
pub(super) fn of(study: &LoadStudy) -> Option<Finding> {
    let times = study.run.tally.queue_times.as_ref()?;
    let finding = AppQueueTime {
        header: study.plan.load.queue_header?,
        computed_mean: times.computed.mean()?,
        computed_p99: times.computed.quantile(0.99)?,
        outside_mean: times.outside.mean(),
        outside_p99: times.outside.quantile(0.99),
    };
    Some(finding.into())
}

impl AppQueueTime {
    pub(super) fn sentence(&self) -> String {
        let time = number::time;
        let computed = format!(
            "The app computed a queue time of {} from X-Request-Start on average, p99 {}",
            time(self.computed_mean),
            time(self.computed_p99)
        );
        let Some((mean, p99)) = self.outside_mean.zip(self.outside_p99) else {
            return format!(
                "{computed}. If it says its own time, too (Server-Timing: app;dur=12.3), that can be \
                 compared with how long its requests waited."
            );
        };
        let rounding = match self.header {
            QueueHeader::Nginx | QueueHeader::Heroku => {
                ". The header has whole milliseconds, rounded down: that makes it 0.5 ms longer"
            }
            QueueHeader::Apache => "",
        };
        format!(
            "{computed}; by longtail's clock its requests were outside it for {}, p99 {}{rounding}.",
            time(mean),
            time(p99)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_app_computed_stands_beside_what_was_measured() {
        let ms = Nanos::from_millis;
        let both = AppQueueTime {
            header: QueueHeader::Apache,
            computed_mean: ms(12),
            computed_p99: ms(40),
            outside_mean: Some(ms(13)),
            outside_p99: Some(ms(41)),
        };
        assert_eq!(
            both.sentence(),
            "The app computed a queue time of 12.0 ms from X-Request-Start on average, p99 40.0 ms; \
             by longtail's clock its requests were outside it for 13.0 ms, p99 41.0 ms."
        );
        let nginx = AppQueueTime { header: QueueHeader::Nginx, ..both.clone() };
        assert!(nginx.sentence().ends_with("that makes it 0.5 ms longer."));
        let silent = AppQueueTime { outside_mean: None, outside_p99: None, ..both };
        assert!(silent.sentence().contains("If it says its own time, too"));
    }
}
