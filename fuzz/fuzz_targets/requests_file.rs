//! Any bytes as a requests file.

#![no_main]

#[path = "../claims/requests_file.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| claims::is_sendable_or_refused_in_a_line(bytes));
