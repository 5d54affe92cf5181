//! The engine against servers that misbehave, over real sockets: each fault is a counted outcome, never a hang, a panic or
//! a request that is in two places or in none.
//!
//! No duration and no rate is looked at. Each load is driven closed and open, and each server says at its end how
//! many connections it took, which must be as many as the client says it opened.

mod chaos;
mod closing;
mod connecting;
mod early;
mod framing;
mod heads;
mod slow;
