//! What each report of a load looks like, byte for byte. `UPDATE_GOLDEN=1 cargo test -p report` writes the files anew:
//! then look at the difference as someone who has to act on the report.

use std::path::Path;

use model::LoadStudy;
use report::{Width, json, load};
use testkit::golden;
use testkit::load as study;

/// Compares with `tests/golden/load/<name>`, or writes it.
#[track_caller]
fn expect(name: &str, report: &str) {
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/load").join(name), report);
}

fn text_of(name: &str, study: &LoadStudy) {
    expect(&format!("{name}.txt"), &load::text::whole(study, Width::ANY));
}

#[test]
fn an_open_loop() {
    let study = study::open_poisson();
    text_of("open_poisson", &study);
    expect("open_poisson.md", &load::markdown::whole(&study));
    expect("open_poisson_hey.txt", &load::hey::whole(&study));
    expect("open_poisson_wrk.txt", &load::wrk::whole(&study));
}

#[test]
fn a_closed_loop() {
    let study = study::closed();
    text_of("closed", &study);
    expect("closed.md", &load::markdown::whole(&study));
    expect("closed_hey.txt", &load::hey::whole(&study));
    expect("closed_wrk.txt", &load::wrk::whole(&study));
}

#[test]
fn a_closed_loop_that_a_count_ends() {
    text_of("closed_counted", &study::closed_counted());
}

#[test]
fn overload_in_steps() {
    let study = study::overloaded();
    text_of("overloaded", &study);
    expect("overloaded.md", &load::markdown::whole(&study));
}

#[test]
fn overload_at_one_rate_tells_the_slots() {
    text_of("steep", &study::steep());
}

#[test]
fn failures_of_every_kind() {
    let study = study::failing();
    text_of("failing", &study);
    expect("failing.md", &load::markdown::whole(&study));
    expect("failing_hey.txt", &load::hey::whole(&study));
    expect("failing_wrk.txt", &load::wrk::whole(&study));
}

#[test]
fn nothing_but_refused_connections() {
    let study = study::refused();
    text_of("refused", &study);
    expect("refused_hey.txt", &load::hey::whole(&study));
    expect("refused_wrk.txt", &load::wrk::whole(&study));
}

#[test]
fn late_requests_that_are_skipped() {
    text_of("skipped", &study::skipped());
}

#[test]
fn tls_over_a_unix_socket_ended_early() {
    text_of("tls_unix", &study::tls_unix());
}

#[test]
fn nothing_at_all() {
    let study = study::empty();
    text_of("empty", &study);
    expect("empty.md", &load::markdown::whole(&study));
    expect("empty_hey.txt", &load::hey::whole(&study));
    expect("empty_wrk.txt", &load::wrk::whole(&study));
}

#[test]
fn a_file_that_people_can_read_too() {
    let study = study::tiny();
    text_of("tiny", &study);
    expect("tiny.json", &json::write(&study.into()));
}
