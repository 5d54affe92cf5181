//! The server ended in the middle of a load, so no rate over the whole window describes it.

use model::Run;
use serde::{Deserialize, Serialize};

use crate::words::{count_of, rate_in_words};

/// The server ended in the middle of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerEnded {
    /// The second of the run, counted from 1, from which on nothing listened.
    pub from_second: u64,
    /// Good responses per second in the whole seconds before; `None` if there was no whole second.
    pub rate_per_s: Option<f64>,
}

/// Judges a load whose server was gone before the end of its window. A server that ended while the
/// last responses were awaited doesn't count.
pub fn server_ended(run: &Run) -> Option<ServerEnded> {
    let from_second = run.tally.gone_from()?;
    let whole_seconds = from_second - 1;
    if run.measured.as_secs_f64() < from_second as f64 {
        return None;
    }
    let seconds = &run.tally.series.seconds[..whole_seconds];
    let completed: u64 = seconds.iter().map(|second| second.completed).sum();
    let rate_per_s = (whole_seconds > 0).then(|| completed as f64 / whole_seconds as f64);
    Some(ServerEnded { from_second: from_second as u64, rate_per_s })
}

impl ServerEnded {
    pub(super) fn sentence(&self) -> String {
        match self.rate_per_s {
            Some(rate) => {
                let before = count_of(self.from_second - 1, "second");
                format!(
                    "The server ended during the run: it completed {} requests/s in the {before} before, and a rate over the whole run would mean nothing.",
                    rate_in_words(rate)
                )
            }
            None => {
                "The server ended in the first second of the run, so there is no rate.".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::tally::Second;

    use super::*;

    #[test]
    fn the_rate_is_of_the_whole_seconds_before_the_end() {
        for (completed, rate_per_s) in [
            (&[50, 70, 10, 0, 0][..], Some(Some(60.0))),
            (&[9, 0, 0, 0, 0], Some(None)),
            (&[50, 50, 50, 50, 50], None),
        ] {
            let mut run = testkit::load::closed().run;
            run.measured = model::Nanos::from_secs(5);
            run.tally.counts = model::Counts::default();
            (0..20).for_each(|_| run.tally.counts.record(Outcome::Refused));
            let second = |n: &u64| Second {
                completed: *n,
                failed: if *n < 50 { 5 } else { 0 },
                ..Second::default()
            };
            run.tally.series.seconds = completed.iter().map(second).collect();
            let found = server_ended(&run).map(|it| it.rate_per_s);
            assert_eq!(found, rate_per_s, "{completed:?}");
        }
    }
}
