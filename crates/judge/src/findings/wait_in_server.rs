//! Requests wait in the server's own queue, until a thread takes them.
//!
//! Puma 7 and later accepts every connection: requests beyond its threads wait in each worker, and
//! the accept queue is empty.

use model::{Limit, Nanos, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use super::served_in_turns::is_old_puma;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, brief_count, load};

/// Requests wait in the server's own queue, until a thread takes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitInServer {
    /// The load.
    pub multiple: f64,
    /// The mean wait there.
    #[serde(rename = "wait_ns")]
    pub wait: Nanos,
    /// The mean response time.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// Requests in that queue, by the server's own count; `None` if the wait is what is left of the
    /// response time.
    pub length: Option<f64>,
    /// What one request takes alone.
    #[serde(rename = "alone_ns")]
    pub alone: Option<Nanos>,
    /// The mean wait in the accept queue.
    #[serde(rename = "accept_queue_ns")]
    pub accept_queue: Option<Nanos>,
    /// Worker processes.
    pub workers: u32,
}

/// The wait is reported from this share of the response time on.
const QUEUE_PART: f64 = 0.1;
/// A wait may exceed the response time by this factor at most: samples are not exact.
const MORE_THAN_ALL: f64 = 1.05;

/// Judges one load by the server's own count; without one, if its threads are the limit, by what is
/// left of the response time.
pub(super) fn of(study: &SweepStudy, point: &SweepPoint<'_>) -> Option<Finding> {
    let mean = point.run.tally.response_time.mean()?;
    let accept_queue = point.run.accept_queue_wait();
    let counted = point.run.server_queue_wait();
    let known = study.service_time.filter(|known| known.high != Nanos::MAX);
    let wait = match (counted, known) {
        (Some(wait), _) => wait.min(mean),
        (None, Some(known)) if !is_old_puma(study) => {
            // The rest is a queue only if the threads are the limit. Otherwise requests may just
            // hold a thread for longer than one does alone.
            if !matches!(point.limit(), Some(Limit::Threads { .. })) {
                return None;
            }
            mean.saturating_sub(accept_queue?).saturating_sub(known.high.max(known.mean))
        }
        (None, _) => return None,
    };
    let is_possible = counted.is_none_or(|it| it.0 as f64 <= MORE_THAN_ALL * mean.0 as f64);
    let is_much = wait.0 as f64 >= QUEUE_PART * mean.0 as f64;
    (is_possible && is_much).then(|| {
        WaitInServer {
            multiple: point.multiple,
            wait,
            mean,
            length: point.run.reported("backlog").filter(|_| counted.is_some()),
            alone: known.map(|known| known.mean),
            accept_queue,
            workers: study.server.workers,
        }
        .into()
    })
}

impl WaitInServer {
    pub(super) fn sentence(&self) -> String {
        let at = load(self.multiple);
        let [wait, mean] = [self.wait, self.mean].map(brief);
        let place = if self.workers > 1 { "inside the workers" } else { "inside the server" };
        if let Some(length) = self.length {
            let queue = if self.workers > 1 { "their queues" } else { "its queue" };
            return format!(
                "At {at} a request waits {wait} of {mean} {place} until a thread takes it, on \
                 average: {} are in {queue}, by the server's own count.",
                brief_count(length)
            );
        }
        let alone =
            self.alone.map_or_else(String::new, |alone| format!("alone it takes {}", brief(alone)));
        let in_line = match self.accept_queue {
            Some(in_line) if in_line > Nanos::from_millis(1) => {
                format!(", and it waits {} in the accept queue", brief(in_line))
            }
            _ => ", and the accept queue is empty".to_owned(),
        };
        format!(
            "At {at} a request probably waits {wait} of {mean} {place} until a thread takes it, on \
             average: {alone}{in_line}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep_points;
    use model::Watch;
    use model::samples::{WatchCurve, WatchTrack};

    /// The first run of the canonical sweep alone, with 40 connections. In it the server reports
    /// this backlog; an earlier report of 9 was made before the run.
    fn sweep(backlog: Option<u64>) -> SweepStudy {
        let mut study = testkit::study::canonical();
        study.runs.truncate(1);
        let run = &mut study.runs[0];
        run.connections = 40;
        let curve = WatchCurve {
            name: "backlog".to_owned(),
            values: vec![Some(9), backlog],
            staleness: vec![Some(Nanos::from_secs(3)), Some(Nanos::ZERO)],
            ..WatchCurve::default()
        };
        let at = vec![Nanos::from_secs(1), Nanos::from_secs(2)];
        let track = WatchTrack { at, curves: vec![curve], ..WatchTrack::default() };
        run.watch = Some(Watch { tracks: vec![track], ..Watch::default() });
        study
    }

    fn found(study: &SweepStudy) -> Option<WaitInServer> {
        let points = sweep_points::of(study);
        match of(study, points.last()?)? {
            Finding::WaitInServer(found) => Some(found),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_servers_own_count_gives_the_wait_by_littles_law() {
        let empty = sweep(Some(0));
        let in_flight = {
            let run = &empty.runs[0];
            let mean = run.tally.response_time.mean().unwrap();
            (run.completed_rate() * mean.as_secs_f64()) as u64
        };
        let found = |backlog| found(&sweep(backlog));
        let most = found(Some(in_flight / 2 + 1)).expect("half of the requests in flight");
        assert!(most.wait <= most.mean && most.wait.0 * 3 > most.mean.0, "{most:?}");
        assert_eq!(most.length, Some((in_flight / 2 + 1) as f64), "the older report is ignored");
        assert!(most.sentence().contains("by the server's own count"), "{}", most.sentence());
        assert_eq!(found(Some(0)), None);
        assert_eq!(
            found(Some(3 * in_flight)),
            None,
            "a queue longer than all requests in flight is impossible"
        );
        assert_eq!(found(None), None, "no count, and the threads are not the limit");
    }

    #[test]
    fn without_a_count_the_wait_is_inferred_and_only_probable() {
        let wait = WaitInServer {
            multiple: 4.0,
            wait: Nanos::from_millis(300),
            mean: Nanos::from_millis(402),
            length: None,
            alone: Some(Nanos::from_millis(101)),
            accept_queue: Some(Nanos::ZERO),
            workers: 2,
        };
        assert_eq!(
            wait.sentence(),
            "At 4x a request probably waits 300 ms of 402 ms inside the workers until a thread takes \
             it, on average: alone it takes 101 ms, and the accept queue is empty."
        );
    }
}
