//! Exit codes: every row of the table in docs/ci.md must have a scenario in `scenarios/exits.txt`,
//! which runs it.

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/ci.md");
const PLAYED: &str = include_str!("scenarios/exits.txt");

/// Rows that are tested elsewhere: a fault of longtail in `refused.rs`, comparisons (which take
/// longer) and doctor in other scenarios.
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
fn every_exit_code_of_the_page_has_a_scenario() {
    let (_, section) = PAGE.split_once("\n## Exit codes\n").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("a section after it");
    let is_row = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit();
    let told = rows(section.lines().filter(is_row));
    let played = rows(PLAYED.lines().filter_map(|line| line.strip_prefix("- ")));
    let told_and_played: BTreeSet<_> =
        told.iter().copied().filter(|(_, what)| !ELSEWHERE.contains(what)).collect();
    assert_eq!(told_and_played, played);
    assert_eq!(told.len(), played.len() + ELSEWHERE.len());
}
