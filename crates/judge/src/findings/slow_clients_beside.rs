//! Slow clients held connections beside the load.

use model::{LoadStudy, Outcome, SlowClientCounts, SlowClients};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::words::count_of;

/// Slow clients held connections beside the load; none of their requests is in its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowClientsBeside {
    /// What they were to do.
    pub slow: SlowClients,
    /// What became of their connections.
    pub counts: SlowClientCounts,
}

/// Says what slow clients did, of a load that had any.
pub(super) fn of(study: &LoadStudy) -> Option<Finding> {
    let counts = study.slow_clients.clone()?;
    Some(SlowClientsBeside { slow: study.plan.slow_clients?, counts }.into())
}

impl SlowClientsBeside {
    pub(super) fn sentence(&self) -> String {
        let SlowClientsBeside { slow, counts } = self;
        let mut parts = vec![
            format!("{} opened", count_of(counts.opened, "connection")),
            format!("{} completed", counts.completed()),
        ];
        let others = counts.responses.iter().filter_map(|(outcome, n)| match outcome {
            Outcome::Answered(status) if !outcome.is_good() => {
                Some(format!("{n} answered {status}"))
            }
            _ => None,
        });
        parts.extend(others);
        parts.push(format!("{} closed by the server", counts.closed_by_server()));
        if counts.not_http > 0 {
            parts.push(format!("{} not HTTP", counts.not_http));
        }
        parts.push(format!("{} unfinished at the end", counts.unfinished));
        if counts.not_opened > 0 {
            parts.push(format!("{} failed to connect", counts.not_opened));
        }
        format!("Beside the load, not in its figures: {slow}: {}.", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use model::Counts;

    use super::*;

    #[test]
    fn each_connection_of_a_slow_client_is_in_the_sentence() {
        let mut responses = Counts::default();
        for (status, n) in [(200, 4), (302, 1), (408, 12)] {
            (0..n).for_each(|_| responses.record(Outcome::Answered(status)));
        }
        let counts = SlowClientCounts {
            opened: 27,
            responses,
            closed_during_request: 1,
            closed_during_response: 2,
            unfinished: 7,
            ..SlowClientCounts::default()
        };
        assert_eq!(counts.accounted(), counts.opened);
        let beside = SlowClientsBeside { slow: "7".parse().unwrap(), counts };
        assert_eq!(
            beside.sentence(),
            "Beside the load, not in its figures: 7 slow clients, sending at 1 kB/s and reading at \
             10 kB/s: 27 connections opened, 5 completed, 12 answered 408, 3 closed by the server, \
             7 unfinished at the end."
        );
    }
}
