//! The distribution of the good answers' response times, drawn.

use std::fmt::Write as _;

use model::{LoadStudy, Nanos};

use super::bins::{self, Bin};
use super::part::{Body, Part};
use super::rates::good_answers;
use crate::number;

/// The longest bar.
const BAR: u64 = 40;

pub(crate) fn part(study: &LoadStudy) -> Option<Part> {
    let bins = bins::of(&study.run.tally.response_time);
    (!bins.is_empty()).then(|| {
        let title = format!("response times of {}", good_answers(study));
        Part::new(title, vec![Body::Drawn(drawn(&bins))])
    })
}

/// Borders, count, cumulative percent and a bar, a line a bin.
fn drawn(bins: &[Bin]) -> String {
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    let fullest = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let decimals = decimals(bins);
    let mut lines = vec![["from, ms", "to", "answers", "% up to"].map(str::to_owned)];
    let mut bars = vec![String::new()];
    let mut so_far = 0;
    for (at, bin) in bins.iter().enumerate() {
        so_far += bin.count;
        // The two ends are no round numbers: outward, so that no answer seems to lie outside.
        let from = if at == 0 { outward(bin.from, decimals, f64::floor) } else { border(bin.from, decimals) };
        let to = if at + 1 == bins.len() { outward(bin.to, decimals, f64::ceil) } else { border(bin.to, decimals) };
        lines.push([from, to, number::count(bin.count), number::percent_up_to(so_far as f64 / total as f64)]);
        bars.push(bar(bin.count, fullest));
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    let wider = wider_from(bins).map(|at| at + 1);
    for (at, (line, bar)) in lines.iter().zip(bars).enumerate() {
        if wider == Some(at) {
            _ = writeln!(text, "{:>width$}", "wider:", width = widths[0]);
        }
        let mut shown = String::new();
        for (cell, width) in line.iter().zip(widths) {
            _ = write!(shown, "{cell:>width$}  ");
        }
        shown.push_str(&bar);
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

/// The bin after four or more of equal width that is wider: from there on a longer bar need not mean a denser place.
fn wider_from(bins: &[Bin]) -> Option<usize> {
    let width = |at: usize| bins[at].to - bins[at].from;
    // The first and the last are cut off by the shortest and the longest.
    (5..bins.len()).find(|at| width(*at) > width(1)).filter(|at| (2..*at).all(|before| width(before) == width(1)))
}

/// Squares in proportion; a dot where some are too few for one.
fn bar(count: u64, fullest: u64) -> String {
    match (count * BAR + fullest / 2) / fullest {
        0 if count > 0 => "·".to_owned(),
        squares => "■".repeat(squares as usize),
    }
}

/// The decimals in ms that the finest border needs.
fn decimals(bins: &[Bin]) -> usize {
    let needed = |border: Nanos| (0..6).find(|d| border.0.is_multiple_of(10u64.pow(6 - d))).unwrap_or(6) as usize;
    bins.iter().rev().skip(1).map(|bin| needed(bin.to)).max().unwrap_or(1)
}

fn border(border: Nanos, decimals: usize) -> String {
    number::fixed(border.as_millis_f64(), decimals)
}

fn outward(end: Nanos, decimals: usize, rounded: fn(f64) -> f64) -> String {
    let scale = f64::from(10u32.pow(decimals as u32));
    number::fixed(rounded(end.as_millis_f64() * scale) / scale, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_in_proportion_and_a_few_are_a_dot() {
        assert_eq!([bar(0, 100), bar(1, 100), bar(2, 100), bar(50, 100)].map(|bar| bar.chars().count()), [0, 1, 1, 20]);
        assert_eq!([bar(1, 100), bar(2, 100)], ["·", "■"]);
    }

    #[test]
    fn the_ends_are_rounded_outward() {
        let bins = [
            Bin { from: Nanos(100_900_000), to: Nanos::from_millis(102), count: 3 },
            Bin { from: Nanos::from_millis(102), to: Nanos(333_100_000), count: 1 },
        ];
        let text = drawn(&bins);
        let words: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            (&words[0][..4], &words[1][..4]),
            (&["100", "102", "3", "75.0"][..], &["102", "334", "1", "100"][..])
        );
    }
}
