//! Each line of a packet is counted exactly once.

#![no_main]

#[path = "../claims/statsd.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    claims::counts_every_line_once(bytes, bytes.len() as u64 % 5 + 1);
});
