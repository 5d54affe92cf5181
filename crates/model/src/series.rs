//! What happened in each second of a run.

use serde::{Deserialize, Serialize};

use crate::Nanos;

const SECOND: u64 = 1_000_000_000;

/// One second: the requests that ended in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Good answers.
    pub completed: u64,
    /// Everything else that ended.
    pub failed: u64,
    /// Sum of the good answers' response times, in ns.
    pub response_time_sum_ns: u64,
    /// The longest of the good answers' response times, in ns.
    pub response_time_max_ns: u64,
}

/// The seconds of a run, from the start of its measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series {
    /// By whole seconds since the window's start.
    pub seconds: Vec<Second>,
}

impl Series {
    /// Room for `span` without allocating later.
    pub(crate) fn with_span(span: Nanos) -> Series {
        Series { seconds: Vec::with_capacity((span.0 / SECOND) as usize + 2) }
    }

    /// Counts a request in the second of its end, `ended` after the start of the window; and whether that was good.
    #[inline]
    pub fn record(&mut self, ended: Nanos, response_time: Nanos, good: bool) {
        let second = (ended.0 / SECOND) as usize;
        let second = match self.seconds.get_mut(second) {
            Some(second) => second,
            None => self.grow(second),
        };
        if good {
            let response_time = response_time.0;
            second.completed += 1;
            second.response_time_sum_ns += response_time;
            // Rarely true: a branch is cheaper than to store it each time.
            if response_time > second.response_time_max_ns {
                second.response_time_max_ns = response_time;
            }
        } else {
            second.failed += 1;
        }
    }

    /// Up to this second, which is returned.
    #[cold]
    fn grow(&mut self, second: usize) -> &mut Second {
        self.seconds.resize(second + 1, Second::default());
        &mut self.seconds[second]
    }

    /// Whether the longest response time of those that ended rose all along in the first `length`: in its second third above that of
    /// the first, and in the last above both. `false` of less than three seconds.
    pub(crate) fn lengthens(&self, length: Nanos) -> bool {
        let seconds = ((length.as_secs_f64() + 0.5) as usize).min(self.seconds.len());
        if seconds < 3 {
            return false;
        }
        let longest = |third: usize| {
            let part = &self.seconds[third * seconds / 3..(third + 1) * seconds / 3];
            part.iter().map(|second| second.response_time_max_ns).max().unwrap_or(0) as f64
        };
        let [first, second, third] = [0, 1, 2].map(longest);
        // Of a straight line through 0 they are as 1 to 2 to 3.
        first > 0.0 && second >= 1.5 * first && third >= 1.2 * second
    }

    /// Adds another lane's seconds.
    pub fn merge(&mut self, other: &Series) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Second::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.completed += theirs.completed;
            mine.failed += theirs.failed;
            mine.response_time_sum_ns += theirs.response_time_sum_ns;
            mine.response_time_max_ns = mine.response_time_max_ns.max(theirs.response_time_max_ns);
        }
    }
}
