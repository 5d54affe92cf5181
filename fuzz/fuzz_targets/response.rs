//! Responses read in pieces are the same as those read whole.

#![no_main]

#[path = "../claims/response.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // One piece size per input keeps it fast; the fuzzer varies the lengths, and so the sizes.
    claims::reads_the_same_in_pieces(bytes, bytes.len() % 13 + 1, bytes.len().is_multiple_of(5));
});
