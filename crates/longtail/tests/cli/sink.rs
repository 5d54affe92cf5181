//! `longtail sink` as a user types it: what it says of itself, and what it cannot be.

use rustix::process::Signal;

use crate::lab::Lab;

#[test]
fn a_sink_says_by_which_laws_it_serves() {
    for (words, laws) in [
        ("", "no slots, queue unlimited, no delay"),
        ("--delay exp:5ms", "no slots, queue unlimited, delay exp:5ms"),
        ("--slots 1", "1 slot, queue shared, no delay"),
        ("--slots 4 --delay 10ms", "4 slots, queue shared, delay 10ms"),
        ("--workers 3 --queue split", "3 workers of 1 slot, queue split, no delay"),
        ("--workers 2 --threads 5 --queue inline10 --delay 100ms", "2 workers of 5 slots, queue inline10, delay 100ms"),
    ] {
        let lab = Lab::new();
        let mut sink = lab.start(&format!("sink --listen 127.0.0.1:0 {words}"));
        sink.until(|stdout| stdout.ends_with('\n'));
        sink.send(Signal::INT);
        let ended = sink.end().with_code(0);
        let first = ended.stdout.lines().next().unwrap();
        assert!(first.starts_with("listening on 127.0.0.1:"), "{first}");
        assert!(first.ends_with(&format!(" ({laws})")), "{words}: {first}");
    }
}
