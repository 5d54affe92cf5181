//! Responses in pieces are responses.

#![no_main]

#[path = "../claims/response.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // One size an input keeps it fast; the fuzzer varies the lengths.
    claims::in_pieces_is_as_whole(bytes, bytes.len() % 13 + 1, bytes.len().is_multiple_of(5));
});
