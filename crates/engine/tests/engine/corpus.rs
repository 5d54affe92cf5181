//! The fuzzer's response streams, replayed.

use std::path::Path;

#[path = "../../../../fuzz/claims/response.rs"]
mod claims;

#[test]
fn every_stream_of_the_corpus_is_read_in_pieces_as_whole() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/response");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for size in [1, 2, 3, 7, 16, 61] {
            claims::reads_the_same_in_pieces(&bytes, size, false);
            claims::reads_the_same_in_pieces(&bytes, size, true);
        }
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} files: is the corpus there?");
}
