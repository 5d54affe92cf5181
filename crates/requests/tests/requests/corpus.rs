//! The fuzzer's requests files, replayed.

use std::path::Path;

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
