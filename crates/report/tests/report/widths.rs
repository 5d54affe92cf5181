//! Text that was asked to be narrow: no line is wider, and nothing is lost.

use std::collections::BTreeSet;

use model::Study;
use report::Width;
use report::answer::{AnswerRoom, GrowingTable};
use testkit::study;

const TERMINALS: [usize; 3] = [80, 100, 146];

/// Fails if a line is wider than it may be, unless a word in it is too long for any line, such as a
/// URL.
#[track_caller]
fn expect_narrow(text: &str, columns: usize, what: &str) {
    /// Labels and indents before a word.
    const BEFORE: usize = 18;
    for line in text.lines() {
        let longest = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let is_unbreakable = longest + BEFORE > columns;
        let is_narrow = line.chars().count() <= columns || is_unbreakable;
        assert!(is_narrow, "{what} in {columns} columns: {line}\n{text}");
    }
}

/// At every width a terminal may have, whatever is printed of a study fits.
#[test]
fn nothing_is_wider_than_the_terminal() {
    for study in testkit::every_study() {
        for columns in [40, 45, 50, 60, 70, 80, 90, 100, 120, 200] {
            let width = Width::of(columns);
            expect_narrow(&report::answer::whole(&study, None, width), columns, "the answer");
            // The name of a metric cannot be broken, and a column stands beside it.
            if [50, 60, 80].contains(&columns) {
                expect_narrow(&report::full(&study, None, width), columns, "the full report");
            }
            let table = GrowingTable::of(&study);
            for rows in [4, 20] {
                let lines = table.lines(width, rows);
                assert!(lines.len() <= rows, "{columns} x {rows}: {lines:?}");
                expect_narrow(&lines.join("\n"), columns, "the table that grows");
            }
        }
    }
}

/// Of a sweep, figures leave a narrow table by importance, and the answer names those that left.
#[test]
fn columns_that_leave_an_answer_are_named() {
    let study = Study::from(study::canonical());
    let answer = |columns| report::answer::whole(&study, None, Width::of(columns));
    let head = |columns| {
        let answer = answer(columns);
        let head = answer.lines().find(|line| line.contains("req/s") && line.contains("load"));
        head.unwrap_or_else(|| panic!("{answer}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(head(100), "load connections req/s failed p50 p95 p99 max FIFO");
    assert!(!answer(100).contains("Not shown"));
    assert_eq!(head(60), "load connections req/s failed p50 p95 p99 max");
    assert!(answer(60).contains("Not shown in 60 columns: FIFO ("), "{}", answer(60));
    assert_eq!(head(50), "load connections req/s failed p50 p99");
    assert!(answer(50).contains("Not shown in 50 columns: p95, max, FIFO"), "{}", answer(50));
    assert_eq!(head(40), "load req/s failed p99");
}

/// On a terminal that is not as high as the answer, the table and the conclusion stay, and what was
/// left out is counted.
#[test]
fn an_answer_leaves_out_what_is_least_important_where_rows_are_few() {
    for study in testkit::every_study() {
        let answer = |rows| {
            let room = AnswerRoom { width: Width::of(80), rows };
            report::answer::whole(&study, Some("x.study.json"), room)
        };
        let whole = answer(None);
        let lines = whole.lines().count();
        assert_eq!(answer(Some(lines)), whole);
        let short = answer(Some(20));
        let is_left_out = |part: &str| whole.contains(part) && !short.contains(part);
        let summary = report::summary::Summary::of(&study, None);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in summary.sentence.lines() {
            assert!(words(&short).contains(&words(line)), "{short}");
        }
        for part in ["  Trust ", "  Next ", "  More "] {
            assert!(!is_left_out(part), "{part}: {short}\n{whole}");
        }
        assert!(short.lines().count() <= lines, "{short}\n{whole}");
    }
    let room = AnswerRoom { width: Width::of(80), rows: Some(20) };
    let short = report::answer::whole(&study::judged().into(), Some("x.study.json"), room);
    assert!(short.contains("  More   longtail report --full: "), "{short}");
    let not_kept = report::answer::whole(&study::judged().into(), None, room);
    assert!(!not_kept.contains("report --full: "), "{not_kept}");
}

/// That its last run was cut short stands below the table, and takes no room from its columns.
#[test]
fn an_interrupted_sweep_has_the_columns_of_a_whole_one() {
    let answer = |study: Study| report::answer::whole(&study, None, Width::of(80));
    let head = |answer: &str| answer.lines().find(|line| line.contains("req/s")).map(str::to_owned);
    let cut_short = answer(study::interrupted().into());
    assert_eq!(head(&cut_short), head(&answer(study::canonical().into())));
    assert!(cut_short.contains("1.5x was cut short after 31.1 s"), "{cut_short}");
}

#[test]
fn a_table_longer_than_the_terminal_shows_its_last_rows() {
    let table = GrowingTable::of(&study::judged().into());
    let all = table.lines(Width::ANY, 100);
    let few = table.lines(Width::ANY, all.len() - 2);
    assert_eq!(few.len(), all.len() - 2);
    assert_eq!(few.last(), all.last());
    assert_eq!(few[1], all[1], "the heading stays");
    assert!(table.lines(Width::ANY, 1).is_empty());
}

/// No line is too wide or ends in a space. All words of wrapped text and of split tables are there,
/// and each part of a table says whose rows they are.
#[test]
fn a_narrow_report_keeps_to_its_width_and_loses_nothing() {
    let words = |text: &str| -> BTreeSet<String> {
        let is_drawn = |word: &str| word == "\\" || word.chars().all(|c| "─█".contains(c));
        // As many slices of time as there is room for.
        let is_sliced = |line: &&str| {
            ["  until second", "  responses  ", "  failed  ", "  mean, ms", "  slowest, ms"]
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
