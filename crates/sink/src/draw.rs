//! Chance, as a pure function of the seed and the request's number.

use model::pace::uniform;

/// The seeded draws. Each law has its own stream of the one seed, so that switching a fault on does not change the
/// delays; and each draw is the request's, whichever thread serves it and whenever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawStream {
    /// How long a request takes.
    Delay,
    /// What goes wrong with it.
    Fault,
    /// Which worker a connection belongs to.
    Worker,
}

/// The `number`-th draw of that stream, from (0, 1].
pub(crate) fn draw(seed: u64, stream: DrawStream, number: u64) -> f64 {
    // `uniform` mixes the seed, so neighbours are strangers.
    uniform(seed.wrapping_mul(4).wrapping_add(stream as u64), number)
}
