//! Real time for tests with real processes. It bounds their waits; no test asserts what it says.

pub(crate) use testkit::clock::Steady as SteadyClock;
