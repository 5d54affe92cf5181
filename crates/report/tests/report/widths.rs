//! Text that was asked to be narrow: no line is wider, and nothing is lost.

use std::collections::BTreeSet;

use report::Width;
use testkit::study;

const TERMINALS: [usize; 3] = [80, 100, 146];

/// No line is wider or ends in a space; of what was wrapped or parted, all words are there, and
/// each part of a table says whose rows they are.
#[test]
fn a_narrow_report_keeps_to_its_width_and_loses_nothing() {
    let words = |text: &str| -> BTreeSet<String> {
        let is_drawn = |word: &str| word == "\\" || word.chars().all(|c| "─█".contains(c));
        // As many slices of time as there is room for.
        let is_sliced = |line: &&str| {
            ["  until second", "  answers  ", "  failed  ", "  mean, ms", "  slowest, ms"]
                .iter()
                .any(|it| line.starts_with(it))
        };
        let words = text.lines().filter(|line| !is_sliced(line)).flat_map(str::split_whitespace);
        words.filter(|word| !is_drawn(word)).map(str::to_owned).collect()
    };
    for study in testkit::every_study() {
        let whole = words(&report::full(&study, None, Width::ANY));
        for columns in TERMINALS {
            let narrow = report::full(&study, None, Width::of(columns));
            for line in narrow.lines() {
                assert!(
                    line.chars().count() <= columns && line == line.trim_end(),
                    "{columns}: {line}\n{narrow}"
                );
            }
            let kept = words(&narrow);
            assert_eq!(
                whole.difference(&kept).collect::<Vec<_>>(),
                Vec::<&String>::new(),
                "{columns}"
            );
        }
    }
    let narrow = report::full(&study::judged().into(), None, Width::of(80));
    assert_eq!(
        narrow.matches("!  4.00     80").count(),
        narrow.matches("mult  conns").count(),
        "{narrow}"
    );
}

#[test]
fn pumas_table_is_whole_at_any_width() {
    let table = |width: Width| {
        let text = report::puma(&study::canonical().into(), None, width);
        text.split("\n\n").find(|piece| piece.starts_with("Branch: ")).map(str::to_owned)
    };
    assert!(table(Width::ANY).is_some());
    assert_eq!(table(Width::of(80)), table(Width::ANY));
}
