//! The answer for every kind of study in a pipe. Other ways out are in `scenarios/machine.txt`,
//! other formats in `scenarios/report.txt`.

use crate::lab::Lab;

#[test]
fn a_pipe_gets_the_answer_without_colour_and_within_100_columns() {
    for study in testkit::every_study() {
        let lab = Lab::new();
        lab.write("x.study.json", &report::json::write(&study));
        let answer = lab.answer("report x.study.json").with_code(0).stdout;
        assert!(!answer.contains('\u{1b}'), "{answer}");
        let widest = answer.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 100 || answer.contains("  Next   "), "{answer}");
    }
}
