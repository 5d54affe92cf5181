//! How long requests waited in the kernel's accept queue, by how long that queue was: Little's law.
//!
//! In a closed loop each connection sends as soon as it is connected and has one request out, so each connection in the
//! accept queue is one request that waits there. Over the measured window the mean number of requests that wait is their rate
//! times the mean wait, a request that did not wait there counting 0 (J. D. C. Little, *Operations Research* 9(3), 1961): mean
//! wait = mean length x window / good answers in the window. Inferred, not measured: it knows the mean alone.

use crate::{Nanos, Run};

/// The mean wait of a good answer's request in the accept queue. `None` where the queue was not looked at often enough, or
/// where requests failed: those given up may stand in the queue still, and their number is not that of the answers.
pub fn mean(run: &Run) -> Option<Nanos> {
    let (track, queue) = run.watch.as_ref()?.curve("accept_queue")?;
    if run.tally.counts.failed() > 0 || run.tally.completed_in_window == 0 {
        return None;
    }
    let length = track.mean(queue, run.measured)?;
    Some(Nanos::from_secs_f64(length * run.measured.as_secs_f64() / run.tally.completed_in_window as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Curve, Track};
    use crate::{Exchange, Outcome, Tally, Watch, Window};

    /// Simulated time, closed loop: `connections` on `slots` that each take 100 ms, a new connection for each request, for 10 s
    /// after a warm-up of 1 s. The queue is looked at each 50 ms, just after what happened then.
    fn played(connections: u64, slots: u64) -> Run {
        let (window, step) =
            (Window { from: Nanos::from_secs(1), until: Nanos::from_secs(11) }, Nanos::from_millis(100));
        let mut tally = Tally::new(window, connections as usize);
        // Whoever came first is served first: each round, `slots` of them end, and come again at once.
        let mut line: std::collections::VecDeque<Nanos> = (0..connections).map(|_| Nanos::ZERO).collect();
        let mut now = Nanos::ZERO;
        while now < window.until {
            let served: Vec<Nanos> = (0..slots.min(connections)).filter_map(|_| line.pop_front()).collect();
            now += step;
            for due in served {
                let answered = Outcome::Answered(200);
                tally.record(&Exchange { due, sent: due, ended: now, received_bytes: 1, outcome: answered }, 0);
                line.push_back(now);
            }
        }
        let at: Vec<Nanos> = (0..=200).map(|n| Nanos::from_millis(50) * n).collect();
        let curve = Curve {
            name: "accept_queue".to_owned(),
            values: vec![Some(connections.saturating_sub(slots)); at.len()],
            ..Curve::default()
        };
        let track = Track { source: "sock_diag".to_owned(), at, curves: vec![curve] };
        let multiple = connections as f64 / slots as f64;
        Run {
            watch: Some(Watch { tracks: vec![track], ..Watch::default() }),
            ..Run::recorded(connections as u32, multiple, tally, window.until - window.from, window.until)
        }
    }

    #[test]
    fn the_wait_is_exact_where_everybody_waits_in_that_queue() {
        for (connections, slots, wait) in [(10, 10, 0), (40, 10, 300), (15, 10, 50), (7, 1, 600)] {
            let run = played(connections, slots);
            // A round ends each 100 ms, the first of the window at its start.
            assert_eq!(run.tally.completed_in_window, slots * 100, "{connections}");
            assert_eq!(mean(&run), Some(Nanos::from_millis(wait)), "{connections} on {slots}");
        }
    }

    #[test]
    fn where_requests_failed_or_nobody_looked_nothing_is_inferred() {
        let mut run = played(40, 10);
        let failed = Exchange {
            due: Nanos::from_secs(2),
            sent: Nanos::from_secs(2),
            ended: Nanos::from_secs(3),
            received_bytes: 0,
            outcome: Outcome::TimedOut,
        };
        run.tally.record(&failed, 0);
        assert_eq!(mean(&run), None);
        assert_eq!(mean(&Run { watch: None, ..played(40, 10) }), None);
    }
}
