//! What `report` prints into a pipe, for every kind of study. Terminals are in
//! `scenarios/machine.txt`, other formats in `scenarios/report.txt`.

use crate::lab::Lab;

#[test]
fn a_pipe_gets_the_answer_without_colour_and_within_100_columns() {
    for study in testkit::every_study() {
        let lab = Lab::new();
        lab.write("x.study.json", &report::json::write(&study));
        let answer = lab.answer("report x.study.json").with_code(0).stdout;
        assert!(!answer.contains('\u{1b}'), "{answer}");
        // A command under Next may be wider: its words are not broken.
        let before_next = answer.split("\n  Next   ").next().unwrap_or_default();
        let widest = before_next.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 100, "{answer}");
    }
}
