//! The fuzzer's requests files, replayed, and files at random.

use std::path::Path;

use proptest::prelude::*;

#[path = "../../../../fuzz/claims/requests_file.rs"]
mod claims;

#[test]
fn every_file_of_the_corpus_is_sendable_or_refused_in_a_line() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/requests_file");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        claims::is_sendable_or_refused_in_a_line(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} files: is the corpus there?");
}

/// Lines that are nearly of a format, put together at random.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("GET http://h/x\n".as_bytes().to_vec()),
        Just(b"POST /y\n".to_vec()),
        Just(b"X-A: 1\n".to_vec()),
        Just(b"Accept:\n".to_vec()),
        Just(b"@body\n".to_vec()),
        Just(b"@missing\n".to_vec()),
        Just(b"# c\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"http://h/\n".to_vec()),
        Just(b"{\"method\":\"GET\",\"url\":\"http://h\"}\n".to_vec()),
        Just(b"{\"method\":\"PUT\",\"url\":\"/\",\"body\":\"YQ==\",\"header\":{\"A\":[\"b\"]}}\n".to_vec()),
        Just(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec()),
        Just(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_file_is_sendable_or_refused_in_a_line(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), nearly()],
    ) {
        claims::is_sendable_or_refused_in_a_line(&bytes);
    }
}
