//! What is concluded from searches for the capacities of several sizes of a server (`--try`): which
//! of them takes the most, and which cannot be told apart.
//!
//! A size takes more than another only if its whole bracket is above the other's.

use model::{CapacityBracket, CapacityStudy, Nanos, SizeSearch, number};

use crate::capacity::{conditions, rate_down, rate_up, whole_trials};
use crate::checks::Grade;
use crate::trust::TrustLine;
use crate::words::listed;

/// Which sizes may take the most.
struct Frontier<'a> {
    /// Those that no other is shown to be above.
    best: Vec<&'a SizeSearch>,
    /// The others, in order.
    below: Vec<&'a SizeSearch>,
}

impl<'a> Frontier<'a> {
    fn of(study: &'a CapacityStudy) -> Frontier<'a> {
        let is_below = |size: &&SizeSearch| {
            let other = size.search.bracket;
            study.sizes.iter().any(|above| above.search.bracket.is_above(other))
        };
        let (below, best) = study.sizes.iter().partition(is_below);
        Frontier { best, below }
    }
}

/// `180 to 199`, `at least 180`, `less than 199`; `None` if neither end is known.
fn takes(bracket: CapacityBracket) -> Option<String> {
    match (bracket.low > 0.0, bracket.high) {
        (true, Some(high)) => Some(format!("{} to {}", rate_down(bracket.low), rate_up(high))),
        (true, None) => Some(format!("at least {}", rate_down(bracket.low))),
        (false, Some(high)) => Some(format!("less than {}", rate_up(high))),
        (false, None) => None,
    }
}

fn named(sizes: &[&SizeSearch]) -> String {
    let one = |size: &&SizeSearch| match takes(size.search.bracket) {
        Some(takes) => format!("{} ({takes}/s)", size.size),
        None => format!("{} (not known)", size.size),
    };
    listed(&sizes.iter().map(one).collect::<Vec<_>>())
}

/// The answer.
pub fn sentence(study: &CapacityStudy) -> String {
    let objectives = conditions(study);
    let Frontier { best, below } = Frontier::of(study);
    let less = if below.is_empty() {
        String::new()
    } else {
        format!(" {} less.", takes_or_take(&below, &named(&below)))
    };
    match best.as_slice() {
        [] => format!("How much it takes with {objectives} is not known."),
        [one] => {
            let takes = takes(one.search.bracket).unwrap_or_else(|| "not known".to_owned());
            let most = if study.sizes.len() > 1 { " takes the most" } else { ", the only size" };
            format!("{}{most} with {objectives}: {takes} requests/s (95 %).{less}", one.size)
        }
        several => format!(
            "Which takes the most with {objectives} is undecided among {} (95 % each).{less}",
            named(several)
        ),
    }
}

fn takes_or_take(sizes: &[&SizeSearch], names: &str) -> String {
    format!("{names} {}", if sizes.len() == 1 { "takes" } else { "take" })
}

/// Why: each size against the one before it.
pub fn reasons(study: &CapacityStudy) -> Vec<String> {
    study.sizes.windows(2).map(|pair| step(&pair[0], &pair[1])).collect()
}

/// `3 or 5 threads? 51 to 83 % more with 5.`
fn step(before: &SizeSearch, after: &SizeSearch) -> String {
    let question = question(before, after);
    let [old, new] = [before, after].map(|size| size.search.bracket);
    let gain = |low: f64, high: f64| {
        let percent = |share: f64| number::significant((share * 100.0).max(0.0));
        format!("{} to {} %", percent(low), percent(high))
    };
    let is_known = old.low > 0.0 && new.low > 0.0;
    match (old.high, new.high) {
        (Some(old_high), Some(new_high)) if is_known && new.is_above(old) => format!(
            "{question} {} more with {}.",
            gain(new.low / old_high - 1.0, new_high / old.low - 1.0),
            after.size
        ),
        (Some(old_high), Some(new_high)) if is_known && old.is_above(new) => format!(
            "{question} {} more with {}.",
            gain(old.low / new_high - 1.0, old_high / new.low - 1.0),
            before.size
        ),
        _ if new.is_above(old) => format!("{question} More with {}.", after.size),
        _ if old.is_above(new) => format!("{question} More with {}.", before.size),
        _ if !is_known => format!(
            "{question} Undecided: no rate was shown to keep it with both; that takes a longer \
             --budget, or an objective of a lower percentile."
        ),
        _ => format!(
            "{question} Undecided: the brackets overlap, and a longer --budget makes them narrower."
        ),
    }
}

fn question(before: &SizeSearch, after: &SizeSearch) -> String {
    let [old, new] = [before.size, after.size];
    if old.workers == new.workers && old.keep_alive == new.keep_alive {
        format!("{} or {} threads?", old.threads, new.threads)
    } else if old.threads == new.threads && old.keep_alive == new.keep_alive {
        format!("{} or {} workers?", old.workers, new.workers)
    } else {
        format!("{old} or {new}?")
    }
}

/// That the user ended the search early, and in which size.
fn interrupted(study: &CapacityStudy) -> Option<TrustLine> {
    let last = study.sizes.last().filter(|_| study.interrupted)?;
    let sentence = format!(
        "Interrupted in the search for size {} of {}, {}, after {} of {}",
        study.sizes.len(),
        study.plan.sizes.len(),
        last.size,
        number::minutes(last.search.total_time),
        number::minutes(last.search.plan.budget),
    );
    Some(TrustLine::new(Grade::Doubtful, sentence))
}

/// What speaks for the answer and against it: each doubt of a size's own search, with its name.
pub fn trust(study: &CapacityStudy) -> Vec<TrustLine> {
    let mut lines: Vec<TrustLine> = interrupted(study).into_iter().collect();
    let longest = study.sizes.iter().map(|size| size.search.total_time).max();
    let whole = study.sizes.iter().map(|size| whole_trials(&size.search)).sum::<u64>();
    if whole > 0 {
        lines.push(TrustLine::new(
            Grade::Passed,
            format!(
                "{}, up to {} for a size; each rate passes or fails by how many requests were late",
                number::count_of(whole, "trial"),
                number::minutes(longest.unwrap_or(Nanos::ZERO))
            ),
        ));
    }
    for size in &study.sizes {
        let doubts = crate::capacity::evidence(&size.search).into_iter();
        lines.extend(doubts.filter(|line| line.mark != Grade::Passed).map(|line| TrustLine {
            sentence: format!("{}: {}", size.size, line.sentence),
            ..line
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches of 2 x 1, 2 x 3 and 2 x 5 with these brackets.
    fn found(brackets: [[f64; 2]; 3]) -> CapacityStudy {
        let mut study = testkit::capacity::sizes();
        for (size, [low, high]) in study.sizes.iter_mut().zip(brackets) {
            size.search.bracket =
                CapacityBracket { low, high: Some(high).filter(|high| *high > 0.0) };
        }
        study
    }

    #[test]
    fn the_size_whose_bracket_is_above_all_others_takes_the_most() {
        let study = found([[58.0, 66.0], [180.0, 199.0], [301.0, 330.0]]);
        assert_eq!(
            sentence(&study),
            "2 x 5 takes the most with p99 < 200ms: 301 to 330 requests/s (95 %). \
             2 x 1 (58.0 to 66.0/s) and 2 x 3 (180 to 199/s) take less."
        );
        let reasons = reasons(&study);
        assert_eq!(reasons[1], "3 or 5 threads? 51.3 to 83.3 % more with 2 x 5.");
    }

    #[test]
    fn sizes_whose_brackets_overlap_are_undecided() {
        let study = found([[58.0, 66.0], [180.0, 310.0], [301.0, 330.0]]);
        let sentence = sentence(&study);
        assert!(sentence.contains("undecided among 2 x 3 (180 to 310/s) and 2 x 5"), "{sentence}");
        assert!(sentence.contains(" 2 x 1 (58.0 to 66.0/s) takes less."), "{sentence}");
        let reasons = reasons(&study);
        assert!(reasons[0].starts_with("1 or 3 threads? "), "{reasons:?}");
        assert!(reasons[1].starts_with("3 or 5 threads? Undecided"), "{reasons:?}");
    }

    #[test]
    fn a_size_without_an_upper_end_is_above_others_and_below_none() {
        let study = found([[58.0, 66.0], [180.0, 0.0], [100.0, 120.0]]);
        let sentence = sentence(&study);
        assert!(sentence.starts_with("2 x 3 takes the most"), "{sentence}");
        assert!(sentence.contains("at least 180 requests/s"), "{sentence}");
        assert!(reasons(&study)[1].contains("3 or 5 threads? More with 2 x 3."));
    }
}
