//! Exit codes: the table of docs/ci.md, and what a shell gets. The rows themselves are played as
//! scenarios (`scenarios/exits.txt`).

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/ci.md");
const PLAYED: &str = include_str!("scenarios/exits.txt");

/// What is proved elsewhere: a fault of longtail in `refused.rs`, comparisons (which take longer)
/// and doctor in `scenarios/`.
const ELSEWHERE: [&str; 4] = [
    "a fault of longtail",
    "`compare`: an arm is worse (`--strict`: or that cannot be told)",
    "`compare` without `--strict` that cannot tell",
    "`doctor`: the machine is not fit, or a count of the self-test is wrong",
];

/// Rows of `code | what`.
fn rows(lines: impl Iterator<Item = &'static str>) -> BTreeSet<(&'static str, &'static str)> {
    lines
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
            Some((cells.next()?, cells.next()?))
        })
        .collect()
}

#[test]
fn every_exit_code_of_the_page_is_played_and_no_other() {
    let (_, section) = PAGE.split_once("\n## Exit codes\n").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("a section behind it");
    let is_row = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit();
    let told = rows(section.lines().filter(is_row));
    let played = rows(PLAYED.lines().filter_map(|line| line.strip_prefix("- ")));
    let told_and_played: BTreeSet<_> =
        told.iter().copied().filter(|(_, what)| !ELSEWHERE.contains(what)).collect();
    assert_eq!(told_and_played, played);
    assert_eq!(told.len(), played.len() + ELSEWHERE.len());
}
