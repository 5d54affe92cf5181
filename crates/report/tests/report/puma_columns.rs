//! Puma's published table (`long_tail_hey`, Puma 6.5.0, `-w4 -t5:5 -R100 -d0.2`) beside ours: same
//! layout, and its arithmetic on workers gives the numbers it printed.

use model::run::ShareSource;
use model::{Run, SweepStudy, WorkerShare};
use testkit::bodies::canonical;
use testkit::study;

use crate::pieces::{self, table};

const PUBLISHED: &str = include_str!("puma_published.txt");

/// The three lines over the rows.
fn head(study: &SweepStudy) -> String {
    table(study, report::puma)[..3].iter().map(|line| line.clone() + "\n").collect()
}

/// The row of `run`.
fn row(study: &SweepStudy, run: &Run) -> String {
    pieces::row(study, run, report::puma)
}

/// Where each word of a line ends.
fn ends(line: &str) -> Vec<usize> {
    let chars: Vec<char> = line.chars().chain([' ']).collect();
    (1..chars.len()).filter(|at| chars[*at] == ' ' && chars[at - 1] != ' ').collect()
}

/// A run in which the workers took so many requests.
fn with_shares(study: &SweepStudy, shares: &[u64]) -> Run {
    let share = |(worker, requests): (usize, &u64)| WorkerShare {
        worker: worker.to_string(),
        requests: *requests,
        source: ShareSource::Stats,
    };
    Run { workers: shares.iter().enumerate().map(share).collect(), ..study.runs[1].clone() }
}

/// Std Dev and the deviations of a row in these columns.
fn printed(row: &str) -> (f64, Vec<f64>) {
    let numbers: Vec<f64> = row.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (numbers[11], numbers[12..numbers.len() - 1].to_vec())
}

#[test]
fn the_head_is_the_published_one_but_for_one_word() {
    let published: Vec<&str> = PUBLISHED.lines().take(3).collect();
    let head = head(&study::canonical());
    let head: Vec<&str> = head.lines().collect();
    assert_eq!((head[0], head[2]), (published[0], published[2]));
    assert_eq!(head[1].replace("─── Response time ───", "────── Latency ──────"), published[1]);
}

#[test]
fn every_column_ends_where_the_published_one_does() {
    let ours = table(&study::canonical(), report::puma);
    assert_eq!(ours.len(), PUBLISHED.lines().count());
    for (ours, published) in ours.iter().zip(PUBLISHED.lines()).skip(3) {
        assert_eq!(ends(ours), ends(published), "\n{ours}\n{published}");
        let decimals = |line: &str| {
            line.split_whitespace()
                .map(|w| w.split_once('.').map(|(_, d)| d.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(decimals(ours), decimals(published));
    }
}

#[test]
fn the_published_standard_deviations_follow_from_the_published_deviations() {
    let study = study::canonical();
    for published in PUBLISHED.lines().skip(3) {
        let (standard_deviation, deviations) = printed(published);
        let total: f64 = published.split_whitespace().last().unwrap().parse().unwrap();
        let shares: Vec<u64> = deviations
            .iter()
            .map(|percent| (total / 4.0 * (1.0 + percent / 100.0)).round() as u64)
            .collect();
        let row = row(&study, &with_shares(&study, &shares));
        let (ours, our_deviations) = printed(&row);
        // The published deviations are rounded to 0.1 % of a quarter: 0.0125 points of the whole at
        // the most.
        assert!((ours - standard_deviation).abs() <= 0.01, "{ours} for {standard_deviation}");
        for (ours, published) in our_deviations.iter().zip(&deviations) {
            assert!((ours - published).abs() < 0.1 + 1e-9, "{ours} for {published}");
        }
    }
}

#[test]
fn deviations_are_of_an_even_share_and_rise_and_need_every_worker() {
    let study = study::canonical();
    for (shares, columns) in [
        (&[1018, 959, 1014, 1009][..], "    0.597   -4.1  0.9  1.4  1.8 "),
        // Ten percent and more have no decimals.
        (&[0, 100, 109, 191], " -100  0.0  9.0   91 "),
        (&[], "        -      -    -    -    -    3000"),
        (&[500, 500, 500], "        -      -    -    -    -    3000"),
        (&[400, 400, 400, 400, 400], "        -      -    -    -    -    3000"),
    ] {
        let row = row(&study, &with_shares(&study, shares));
        assert!(row.contains(columns) && row.trim_end().chars().count() == 126, "{row}");
    }
    let failing = study::failing();
    assert!(
        row(&failing, &failing.runs[0]).ends_with("    1995"),
        "the total is of good responses"
    );
}

#[test]
fn the_bands_are_centred_as_the_script_does_for_two_to_eight_workers() {
    // The script's own tables of bar and space widths, by workers from 2 on.
    let bars = [2, 5, 7, 10, 12, 15, 17];
    let before = [3, 5, 8, 10, 13, 15, 18];
    let after = [2, 5, 7, 10, 12, 15, 17];
    for (at, workers) in (2..=8).enumerate() {
        let head = head(&study::with_workers(workers));
        let bar = "─".repeat(bars[at]);
        let deviation =
            format!("Std{}% deviation{}Total\n", " ".repeat(before[at]), " ".repeat(after[at]));
        assert!(head.contains(&format!(" {bar} Worker Request Info {bar}\n")), "{head}");
        assert!(head.contains(&deviation), "{head}");
    }
}

/// The heads, rules and widths of the table in Puma's own documentation.
#[test]
fn pumas_layout_is_that_of_its_script() {
    let printed = report::puma(&canonical().into(), None, report::Width::ANY);
    let lines: Vec<&str> = printed.lines().collect();
    for (at, line) in [
        (0, "Type   req/sec    50%     75%     90%     99%    100%  Resp Size"),
        (1, "─────────────────────────────────────────────────────────────────    1kB"),
        (11, "───────────────────────────────────────────────────────────────── 2048kB"),
        (17, "Body    ────────── req/sec ──────────   ─────── req 50% times ───────"),
        (18, " KB     array   chunk  string      io   array   chunk  string      io"),
        (22, "─────────────────────────────────────────────────────────────────────"),
    ] {
        assert_eq!(lines[at], line);
    }
    // "array   13710    0.74    2.52    5.23    7.76   37.45      1024"
    for (at, columns) in [(2, 63), (3, 63), (4, 63), (5, 63), (19, 69)] {
        assert_eq!(lines[at].chars().count(), columns, "{}", lines[at]);
    }
}
