//! The fuzzer's packets, replayed.

use std::path::Path;

#[path = "../../../../fuzz/claims/statsd.rs"]
mod claims;

#[test]
fn every_line_of_the_corpus_is_in_one_place() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/statsd");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for times in [1, 3, 700] {
            claims::every_line_is_in_one_place(&bytes, times);
        }
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} files: is the corpus there?");
}
