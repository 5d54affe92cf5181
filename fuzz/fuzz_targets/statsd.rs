//! Each line of a packet is in one place.

#![no_main]

#[path = "../claims/statsd.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    claims::every_line_is_in_one_place(bytes, bytes.len() as u64 % 5 + 1);
});
