//! The fuzzer's packets, replayed, and packets at random.

use std::path::Path;

use proptest::prelude::*;

#[path = "../../../../fuzz/claims/statsd.rs"]
mod claims;

#[test]
fn every_line_of_the_corpus_is_in_one_place() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/statsd");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for times in [1, 3, 700] {
            claims::counts_every_line_once(&bytes, times);
        }
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} files: is the corpus there?");
}

proptest! {
    #[test]
    fn every_line_of_any_packet_is_in_one_place(
        packet in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "([a-c+-]{0,3}:[-+0-9.e:]{0,6}\\|(c|g|ms|h|d|s|x)(\\|@[0-9.]{1,4})?(\\|#[a-c,:]{0,6})?(\\|T[0-9]{1,3})?\n|_sc\\|x\n){0,6}"
                .prop_map(String::into_bytes),
        ],
    ) {
        claims::counts_every_line_once(&packet, 3);
    }
}
