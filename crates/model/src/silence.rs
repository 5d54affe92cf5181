//! Silences ([`Silence`]): times in which a server, or one of its workers, answered nothing
//! although requests were in flight, and then several of them at once. This is what a garbage
//! collection or a stopped process looks like from outside.
//!
//! A lane needs only what it records anyway: when each request was sent and when its response
//! arrived.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// One silence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The worker, as its responses name it; empty if they don't.
    pub worker: String,
    /// The last response before it, since the start of the measured window.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// The first response after it.
    #[serde(rename = "until_ns")]
    pub until: Nanos,
    /// Responses that came [soon after](Silence::soon_after) its end, including the first one, to
    /// requests that were in flight all the time.
    pub answers: u32,
}

/// A response is "at once" within this part of the silence after its end. A request sent within
/// this part after its start counts as in flight all the time.
const TENTH: u64 = 10;

impl Silence {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.until.saturating_sub(self.from)
    }

    /// Until when responses count as held up by it.
    pub fn soon_after(&self) -> Nanos {
        self.until + self.length() / TENTH
    }

    /// A request that was sent later than this was not in flight all the time.
    pub fn sent_before(&self) -> Nanos {
        self.from + self.length() / TENTH
    }

    /// The time in which neither of two lanes had a response from the same worker; `None` if there
    /// is none.
    fn and(&self, other: &Silence) -> Option<Silence> {
        let from = self.from.max(other.from);
        let until = self.until.min(other.until);
        if self.worker != other.worker || from >= until {
            return None;
        }
        let both = Silence { worker: self.worker.clone(), from, until, answers: 0 };
        let at_once = |one: &Silence| if one.until <= both.soon_after() { one.answers } else { 0 };
        Some(Silence { answers: at_once(self) + at_once(other), ..both })
    }
}

/// The silences common to all lanes, the earliest first: for each worker, the times in which no
/// lane connected to it had a response.
pub fn common_silences(lanes: &[Vec<Silence>]) -> Vec<Silence> {
    let mut workers: Vec<&str> =
        lanes.iter().flatten().map(|silence| silence.worker.as_str()).collect();
    workers.sort_unstable();
    workers.dedup();
    let mut silences: Vec<Silence> = Vec::new();
    for worker in workers {
        let of_worker = |lane: &Vec<Silence>| -> Vec<Silence> {
            lane.iter().filter(|silence| silence.worker == worker).cloned().collect()
        };
        let of_lanes = lanes.iter().map(of_worker).filter(|silences| !silences.is_empty());
        let common = of_lanes.reduce(|ours, theirs| {
            ours.iter().flat_map(|one| theirs.iter().filter_map(|other| one.and(other))).collect()
        });
        silences.extend(common.unwrap_or_default());
    }
    silences.sort_by_key(|silence| silence.from);
    silences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(worker: &str, from: u64, until: u64, answers: u32) -> Silence {
        let [from, until] = [from, until].map(Nanos::from_millis);
        Silence { worker: worker.to_owned(), from, until, answers }
    }

    #[test]
    fn a_response_on_any_lane_ends_a_silence() {
        let one = vec![silence("", 100, 400, 5), silence("", 900, 1200, 4)];
        let other = vec![silence("", 110, 405, 3), silence("", 1100, 1150, 1)];
        assert_eq!(
            common_silences(&[one.clone(), other]),
            [silence("", 110, 400, 8), silence("", 1100, 1150, 1)]
        );
        assert_eq!(common_silences(std::slice::from_ref(&one)), one);
        // A lane without a connection to this worker doesn't count.
        let elsewhere = vec![silence("7", 0, 50, 2)];
        assert_eq!(common_silences(&[one, elsewhere]).len(), 3);
        assert_eq!(common_silences(&[]), []);
    }
}
