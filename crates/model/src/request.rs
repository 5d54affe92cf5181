//! A request as bytes, rendered before the start so that a lane only sends it; and which of several is the n-th.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::pace::uniform;

/// A rendered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Head and body, as they go over the wire.
    pub bytes: Arc<[u8]>,
    /// Whether the method is HEAD: its response has no body, whatever its head says (RFC 9110 section 9.3.2).
    pub is_head: bool,
}

/// The order in which a list of requests is sent: a pure function of the number of the request, so that a run can be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RequestOrder {
    /// One after the other, and again from the first.
    #[default]
    Sequential,
    /// Each drawn by chance, independent of the others.
    Random {
        /// Chooses the draws; the same seed gives the same order for ever.
        seed: u64,
    },
}

impl RequestOrder {
    /// The place, below `len`, of the `n`-th request.
    ///
    /// # Panics
    /// Where `len` is 0.
    #[inline]
    pub fn index(self, n: u64, len: usize) -> usize {
        match self {
            _ if len == 1 => 0,
            RequestOrder::Sequential => (n % len as u64) as usize,
            // The draw is from (0, 1].
            RequestOrder::Random { seed } => {
                ((uniform(seed ^ 0x006F_7264_6572, n) * len as f64).ceil() as usize).clamp(1, len) - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_means_round_and_round() {
        assert_eq!((0..5).map(|n| RequestOrder::Sequential.index(n, 3)).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn at_random_every_one_has_its_chance() {
        let mut counts = [0u32; 4];
        for n in 0..4000 {
            counts[RequestOrder::Random { seed: 3 }.index(n, 4)] += 1;
        }
        // Chi-square with 3 degrees of freedom, 0.1 % point 16.27; the seed is fixed.
        let chi_square: f64 = counts.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 16.27, "{counts:?}");
    }
}
