//! Turns: a server answers several requests of one connection, while others wait, before it takes
//! the next connection.
//!
//! A turn, as seen on one connection, is a response that waited and the following ones that did
//! not. Closing connections says nothing about turns: a server may close each after ten responses
//! and still serve all in strict order.

use serde::{Deserialize, Serialize};

use crate::{DurationSummary, Nanos};

/// The turns of a run, without those that began before the first response or were not over with the
/// last, because their length is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The number of turns by length, the shortest first.
    by_length: Vec<TurnCount>,
    /// How long the first response of each turn took, the one that waited.
    pub first: DurationSummary,
}

/// The number of turns with a number of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TurnCount {
    answers: u32,
    turns: u64,
}

/// The most frequent length of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualTurn {
    /// Responses in such a turn.
    pub answers: u32,
    /// The share of turns with this length, 0 to 1.
    pub share: f64,
}

impl Turns {
    /// Adds a turn. `first`: how long its first response took.
    pub fn record(&mut self, answers: u32, first: Nanos) {
        self.add(TurnCount { answers, turns: 1 });
        self.first.record(first);
    }

    fn add(&mut self, more: TurnCount) {
        match self.by_length.binary_search_by_key(&more.answers, |count| count.answers) {
            Ok(at) => {
                self.by_length[at].turns = self.by_length[at].turns.saturating_add(more.turns);
            }
            Err(at) => self.by_length.insert(at, more),
        }
    }

    /// Whether no turn was seen.
    pub fn is_empty(&self) -> bool {
        self.by_length.is_empty()
    }

    /// Turns that were seen.
    pub fn count(&self) -> u64 {
        self.by_length.iter().fold(0, |sum, count| sum.saturating_add(count.turns))
    }

    /// Responses in all turns.
    pub fn answers(&self) -> u64 {
        self.by_length.iter().fold(0, |sum, count| {
            sum.saturating_add(count.turns.saturating_mul(u64::from(count.answers)))
        })
    }

    /// Responses per turn, on average; `None` without turns.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.answers() as f64 / self.count() as f64)
    }

    /// The most frequent length; `None` without turns.
    pub fn usual(&self) -> Option<UsualTurn> {
        let TurnCount { answers, turns } = self.by_length.iter().max_by_key(|it| it.turns)?;
        Some(UsualTurn { answers: *answers, share: *turns as f64 / self.count() as f64 })
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &Turns) {
        for count in &other.by_length {
            self.add(*count);
        }
        self.first.merge(&other.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_have_a_mean_and_a_usual_length() {
        let mut turns = Turns::default();
        assert_eq!((turns.mean(), turns.usual(), turns.is_empty()), (None, None, true));
        for answers in [10, 10, 10, 11, 4] {
            turns.record(answers, Nanos::from_millis(900));
        }
        assert_eq!((turns.count(), turns.answers(), turns.mean()), (5, 45, Some(9.0)));
        assert_eq!(turns.usual(), Some(UsualTurn { answers: 10, share: 0.6 }));
        let mut more = turns.clone();
        more.merge(&turns);
        assert_eq!((more.count(), more.mean()), (10, Some(9.0)));
        assert_eq!(more.first.mean(), Some(Nanos::from_millis(900)));
    }
}
