//! Which arm is best, in words, and after a search for threads which size to take.

use super::change_words::{
    change_with_interval, decimals, is_another_change, percent, plain_percent,
};
use super::sizes;
use super::summary::{self, SummaryComparison, name};
use crate::labels;
use crate::number::{self, count_of};
use judge::words::listed;
use model::comparison::{ArmRanking, ComparedMetric, ComparisonDoubt, ComparisonVerdict, Metric};

/// Which arm is best. After a search for threads, what the single runs say comes first where the
/// blocks say less of ordinary traffic.
pub(super) fn best(summary: &SummaryComparison) -> String {
    let is_decided = summary
        .ranking
        .as_ref()
        .is_some_and(|it| it.is_decided() || smaller_are_worse_at_p99(summary, it));
    // Many runs in blocks that point to another size weigh more than one run of each.
    let is_best_in_blocks = summary
        .ranking
        .as_ref()
        .is_none_or(|it| Some(summary.called(&it.best)) == summary.enough.as_deref());
    let is_told = summary.connections.is_some() || !is_decided && is_best_in_blocks;
    let of_looks = single_runs(summary).filter(|_| is_told);
    let too_much =
        summary.wanted_per_s.and_then(|rate| sizes::too_much_in_words(&summary.looks, rate));
    let best = summary.ranking.as_ref().filter(|it| it.is_decided()).map(|it| &it.best);
    let taken = summary.recommended.as_ref().or(best).map(|letter| summary.called(letter));
    let ahead = summary.ranking.as_ref().map(|it| summary.called(&it.best));
    let taken = taken.or(summary.enough.as_deref().filter(|_| is_told)).or(ahead);
    let of_ahead = (!is_decided && !is_told).then(|| of_limit(summary, ahead?)).flatten();
    // At a rate the blocks do not show what a size can do at most; the runs before them did.
    let limit = sizes::what_limits(&summary.looks, taken, summary.cpus_allow)
        .filter(|_| summary.rate_per_s.is_some());
    let parts = [too_much, of_looks, Some(best_of_blocks(summary)), of_ahead, limit];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Which size single runs of each show to be enough, and what it can do at most.
pub(super) fn single_runs(summary: &SummaryComparison) -> Option<String> {
    let enough = sizes::enough_in_words(&summary.looks)?;
    let limit = summary.enough.as_deref().and_then(|enough| of_limit(summary, enough));
    Some([Some(enough), limit].into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// What the size can do that the user is told to take, and which share of it the rate is. At a rate
/// the blocks do not show that; the runs before them did.
fn of_limit(summary: &SummaryComparison, taken: &str) -> Option<String> {
    sizes::limit_in_words(&summary.looks, taken, summary.rate_per_s?)
}

/// Which arm the runs in blocks show to be best.
fn best_of_blocks(summary: &SummaryComparison) -> String {
    let Some((ranking, row)) = summary.ranking.as_ref().zip(summary.deciding().next()) else {
        return "Which is best cannot be told: no arm has a figure.".to_owned();
    };
    if smaller_are_worse_at_p99(summary, ranking) {
        return to_take_by_p99(summary, ranking, row);
    }
    if !ranking.is_decided() {
        return best_so_far(summary, ranking, row);
    }
    let estimate = |letter: &String| estimate_from_best(ranking, row, letter);
    let (overloaded, mut behind): (Vec<&String>, Vec<&String>) =
        ranking.ahead_of.iter().partition(|letter| cannot_keep_up(summary, row, letter));
    behind.sort_by(|a, b| estimate(b).abs().total_cmp(&estimate(a).abs()));
    let behind: Vec<String> = behind
        .into_iter()
        .map(|letter| {
            let waited = overloaded_runs(summary, row, letter)
                .map(|runs| format!("; ever more requests waited in {runs}"));
            let change = percent(estimate(letter), 0);
            format!("{} ({change} %{})", summary.called(letter), waited.unwrap_or_default())
        })
        .collect();
    let mut parts = match &summary.recommended {
        Some(letter) => to_take(summary, ranking, row, letter),
        None => best_of_equal_sizes(summary, ranking, row),
    };
    let taken = summary.recommended.as_ref().unwrap_or(&ranking.best);
    let (worse, better) = (ComparisonVerdict::Worse, ComparisonVerdict::Better);
    let tails = [worse, better].map(|verdict| of_tails(summary, ranking, taken, verdict));
    parts.splice(1..1, tails.into_iter().flatten());
    parts.extend(overloaded.into_iter().map(|letter| {
        format!(
            "{} cannot keep up{}: ever more requests waited in {}.",
            summary.called(letter),
            summary.rate_per_s.map_or_else(String::new, |rate| {
                format!(" with {}/s", number::rate_in_words(rate))
            }),
            overloaded_runs(summary, row, letter).unwrap_or_default()
        )
    }));
    if !behind.is_empty() {
        parts.push(format!("Worse: {}.", listed(&behind)));
    }
    parts.extend(why_fewer_threads_are_worse(summary, ranking, taken));
    let limit = of_limit(summary, summary.called(taken));
    let best = with_limit(parts, limit);
    // The p99 is that of so many connections, which the largest size decides where nobody else does.
    let with = summary.connections.map(|of| {
        let overload = if summary.looks.is_empty() { "" } else { "in overload, " };
        format!("{overload}with {}", count_of(u64::from(of), "connection"))
    });
    let at = summary.rate_per_s.map(|rate| format!("at {}/s", number::rate_in_words(rate)));
    let conditions: Vec<String> = [with, at, while_others(summary)].into_iter().flatten().collect();
    let begin =
        if conditions.is_empty() { String::new() } else { format!("{}, ", conditions.join(", ")) };
    judge::words::capitalised(&format!("{begin}{best}"))
}

/// Sentences about a size, of which the first says to take it, with what it can do at most on a line of its
/// own after that.
fn with_limit(mut sentences: Vec<String>, limit: Option<String>) -> String {
    let Some(limit) = limit else { return sentences.join(" ") };
    let others = sentences.split_off(1).join(" ");
    sentences.extend([limit, others].into_iter().filter(|line| !line.is_empty()));
    sentences.join("\n")
}

/// In how many runs of an arm ever more requests waited, if in any: `3 of 20 runs`.
fn overloaded_runs(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    letter: &str,
) -> Option<String> {
    let of = summary.arms.iter().find(|arm| arm.letter == letter)?.runs;
    let overloaded = row.overloaded.get(letter)?;
    Some(if *overloaded == of {
        format!("all {}", count_of(u64::from(of), "run"))
    } else {
        format!("{overloaded} of {}", count_of(u64::from(of), "run"))
    })
}

/// Whether ever more requests waited in most runs of an arm.
fn cannot_keep_up(summary: &SummaryComparison, row: &ComparedMetric, letter: &str) -> bool {
    let runs = summary.arms.iter().find(|arm| arm.letter == letter).map_or(0, |arm| arm.runs);
    row.overloaded.get(letter).is_some_and(|overloaded| 2 * overloaded > runs)
}

/// `while other programs used 1.4 CPUs`, if they took them from the server.
fn while_others(summary: &SummaryComparison) -> Option<String> {
    let others = number::fixed(summary.others?, 1);
    Some(format!(
        "while other programs used {others} CPU{}",
        if others == "1.0" { "" } else { "s" }
    ))
}

/// Which arm is ahead, where nothing is certain: too few blocks were run, or they differ too much.
fn best_so_far(summary: &SummaryComparison, ranking: &ArmRanking, row: &ComparedMetric) -> String {
    let runs = summary.compared().map(|arm| arm.runs).min().unwrap_or_default();
    let blocks = count_of(u64::from(runs), "block");
    let needed = row.differences.iter().filter_map(|difference| match difference.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => Some(least),
        _ => None,
    });
    let begin = match needed.max() {
        Some(least) => format!("Not certain after {blocks}, {least} could tell"),
        None => format!("Which is best cannot be told with {blocks}"),
    };
    let shared = while_others(summary).map_or_else(String::new, |shared| format!(" {shared}"));
    let mut behind: Vec<&String> = ranking.unclear.iter().collect();
    let distance = |letter: &String| estimate_from_best(ranking, row, letter).abs();
    behind.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    let (close, behind): (Vec<&String>, Vec<&String>) =
        behind.into_iter().partition(|letter| distance(letter) <= summary.margin);
    let each = |letters: Vec<&String>, where_they_are: &str| {
        let letters: Vec<String> =
            letters.into_iter().map(|it| with_interval(summary, ranking, row, it)).collect();
        (!letters.is_empty()).then(|| format!("; {where_they_are}: {}", listed(&letters)))
    };
    let margin = plain_percent(summary.margin);
    let said = format!(
        "{begin}{shared}: so far {} has the best {}, {}{}{}.",
        summary.called(&ranking.best),
        name(row.metric),
        figures_of_size(summary, row, &ranking.best),
        each(close, &format!("within {margin} of it")).unwrap_or_default(),
        each(behind, "behind it").unwrap_or_default()
    );
    let tail = of_tails(summary, ranking, &ranking.best, ComparisonVerdict::Worse);
    let why = why_fewer_threads_are_worse(summary, ranking, &ranking.best);
    let again = summary.others.map(|_| "Leave the machine alone and try again.".to_owned());
    std::iter::once(said).chain(again).chain(tail).chain(why).collect::<Vec<_>>().join(" ")
}

/// The size with the best mean, where only p99 tells that those with fewer threads are worse.
fn to_take_by_p99(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
) -> String {
    let best = &ranking.best;
    let open = ranking.unclear.iter().filter(|letter| !is_smaller(summary, letter, best));
    let open: Vec<String> =
        open.map(|letter| with_interval(summary, ranking, row, letter)).collect();
    let open = (!open.is_empty()).then(|| {
        format!(
            "Whether {}, with more threads, {} better or worse cannot be told.",
            listed(&open),
            if open.len() == 1 { "is" } else { "are" }
        )
    });
    let shared = while_others(summary).map_or_else(String::new, |shared| format!(" {shared}"));
    let take = format!(
        "{}take {}, as far as can be told{shared}: {} {}.",
        summary
            .rate_per_s
            .map_or_else(String::new, |rate| format!("At {}/s, ", number::rate_in_words(rate))),
        summary.called(best),
        name(row.metric),
        figures_of_size(summary, row, best)
    );
    let limit = of_limit(summary, summary.called(best));
    let tail = of_tails(summary, ranking, best, ComparisonVerdict::Worse);
    let why = why_fewer_threads_are_worse(summary, ranking, best);
    with_limit(std::iter::once(take).chain(tail).chain(why).chain(open).collect(), limit)
}

/// Why sizes with fewer threads than the one to take are worse at the rate, by what decides or at p99,
/// as far as that is known: the rate is near what they can do, or Puma lets some requests wait while it
/// serves one connection over and over.
fn why_fewer_threads_are_worse(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    taken: &str,
) -> Vec<String> {
    /// Requests come by chance, and from such a share of what a server can do on, many wait.
    const NEAR: f64 = 0.8;
    let Some(rate) = summary.rate_per_s else { return Vec::new() };
    let arm = |letter: &str| summary.arms.iter().find(|arm| arm.letter == letter);
    let takes_turns = |letter: &str| arm(letter).is_some_and(|arm| arm.serves_in_turns);
    let is_worse = |letter: &&String| {
        is_smaller(summary, letter, taken)
            && (ranking.ahead_of.contains(letter) || has_worse_tail(summary, ranking, letter))
    };
    let worse: Vec<&String> =
        ranking.ahead_of.iter().chain(&ranking.unclear).filter(is_worse).collect();
    let near = |letter: &String| {
        let name = summary.called(letter);
        let most = sizes::called(&summary.looks, name)?.rate_per_s;
        (rate >= NEAR * most).then(|| {
            format!("{name} has too little room: it can do {}/s.", number::significant(most))
        })
    };
    let names = |letters: &[&String]| {
        let names: Vec<String> =
            letters.iter().map(|letter| summary.called(letter).to_owned()).collect();
        listed(&names)
    };
    let in_turns: Vec<&String> =
        worse.iter().copied().filter(|letter| takes_turns(letter) && !takes_turns(taken)).collect();
    let not_known: Vec<&String> = worse
        .iter()
        .copied()
        .filter(|letter| !in_turns.contains(letter) && near(letter).is_none())
        .collect();
    let turns = (!in_turns.is_empty()).then(|| {
        let serve = if in_turns.len() == 1 { "serves" } else { "serve" };
        format!(
            "{} {serve} ten requests of a connection in a row while others wait, as Puma before 7 does.",
            names(&in_turns)
        )
    });
    let not_known = (!not_known.is_empty()).then(|| {
        let is = if not_known.len() == 1 { "is" } else { "are" };
        format!("Why {} {is} worse is not known.", names(&not_known))
    });
    worse.into_iter().filter_map(near).chain(turns).chain(not_known).collect()
}

/// Which other arms that may do as much by what decides are known to be worse, or better, at p99.
fn of_tails(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    taken: &str,
    verdict: ComparisonVerdict,
) -> Option<String> {
    let row = summary.metric(Metric::P99).filter(|row| !row.decides)?;
    let may_do_as_much =
        std::iter::once(&ranking.best).chain(&ranking.level_with).chain(&ranking.unclear);
    let differing = may_do_as_much.filter_map(|letter| {
        row.seen_from(taken, letter).filter(|difference| difference.verdict == verdict)
    });
    let each = differing.map(|difference| {
        let letter = &difference.arm;
        let slots = [letter.as_str(), taken].map(|letter| slots(summary, letter));
        let threads = match slots {
            [Some(other), Some(taken)] if other < taken => ", with fewer threads,",
            [Some(other), Some(taken)] if other > taken => ", with more threads,",
            _ => "",
        };
        // Two figures of one change would contradict each other.
        let median =
            Some(figure_with_unit(row, letter)).filter(|_| !is_another_change(row, &difference));
        let figures = [median, change_with_interval(&difference)].into_iter().flatten();
        format!(
            "{}{threads} is {} at p99: {}.",
            summary.called(letter),
            summary::verdict(verdict),
            figures.collect::<Vec<_>>().join(", ")
        )
    });
    Some(each.collect::<Vec<_>>().join(" ")).filter(|said| !said.is_empty())
}

/// Whether the mean tells nothing, but p99 tells that all sizes with fewer threads than the one with the
/// best mean are worse: then that is the one to take, though more threads may be better still.
fn smaller_are_worse_at_p99(summary: &SummaryComparison, ranking: &ArmRanking) -> bool {
    let (smaller, others): (Vec<&String>, Vec<&String>) =
        ranking.unclear.iter().partition(|letter| is_smaller(summary, letter, &ranking.best));
    summary.rate_per_s.is_some()
        && !ranking.is_decided()
        && !smaller.is_empty()
        && smaller.iter().all(|letter| has_worse_tail(summary, ranking, letter))
        && others.iter().all(|letter| is_smaller(summary, &ranking.best, letter))
}

/// Whether an arm has fewer threads than another.
fn is_smaller(summary: &SummaryComparison, arm: &str, than: &str) -> bool {
    slots(summary, arm).zip(slots(summary, than)).is_some_and(|(arm, than)| arm < than)
}

/// The threads of an arm, of all its workers.
fn slots(summary: &SummaryComparison, letter: &str) -> Option<u32> {
    summary.arms.iter().find(|arm| arm.letter == letter)?.slots
}

/// Which size to take, where larger ones bring nothing that is known: what it does, what larger ones
/// do, and which smaller ones may do as much.
fn to_take(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    letter: &str,
) -> Vec<String> {
    let name = name(row.metric);
    let full = if row.metric == Metric::Throughput { "full" } else { "best" };
    let taken = summary.called(letter);
    let figures = figures_of_size(summary, row, letter);
    // A time alone may be any time.
    let what = if row.metric == Metric::Throughput { String::new() } else { format!("{name} ") };
    let mut parts = vec![if ranking.unclear.is_empty() {
        format!("take {taken}, the fewest threads with the {full} {name}: {figures}.")
    } else {
        format!("take {taken}, as far as can be told: {what}{figures}.")
    }];
    let with_figures = |other: &String| {
        format!("{} ({})", summary.called(other), figures_of_size(summary, row, other))
    };
    let level = std::iter::once(&ranking.best).chain(&ranking.level_with);
    let level: Vec<String> = level.filter(|other| *other != letter).map(with_figures).collect();
    if !level.is_empty() {
        let margin = plain_percent(summary.margin);
        parts.push(format!("The same within {margin}: {}.", listed(&level)));
    }
    parts.extend(of_open(summary, ranking, row, letter, summary.called(&ranking.best)));
    parts
}

/// Which arm is best, where those that may be as good have no more threads than it.
fn best_of_equal_sizes(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
) -> Vec<String> {
    let best = summary.called(&ranking.best);
    let name = name(row.metric);
    let figures = figures_of_size(summary, row, &ranking.best);
    if ranking.level_with.is_empty() && ranking.unclear.is_empty() {
        let larger = "It is the largest tried: a larger one may do better still.".to_owned();
        let larger = summary.is_largest_best.then_some(larger);
        return [format!("{best} is best: {name} {figures}.")].into_iter().chain(larger).collect();
    }
    let is_best_at_p99 = ranking
        .unclear
        .iter()
        .all(|it| is_smaller(summary, it, &ranking.best) && has_worse_tail(summary, ranking, it));
    let mut parts = vec![if !ranking.level_with.is_empty() {
        format!("{best} has the best {name}, but not alone: {figures}.")
    } else if is_best_at_p99 {
        format!("take {best}: {name} {figures}.")
    } else {
        format!("{best} has the best {name}, as far as can be told: {figures}.")
    }];
    if !ranking.level_with.is_empty() {
        let level: Vec<String> =
            ranking.level_with.iter().map(|letter| summary.called(letter).to_owned()).collect();
        let are = if level.len() == 1 { "is" } else { "are" };
        parts.push(format!(
            "{} {are} the same within {}.",
            listed(&level),
            plain_percent(summary.margin)
        ));
    }
    parts.extend(of_open(summary, ranking, row, &ranking.best, "it"));
    parts
}

/// The arms of which it is open whether they are as good as the best. `taken`: the one that the user is
/// told to take. `best`: what the best is called here.
fn of_open(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    taken: &str,
    best: &str,
) -> Vec<String> {
    let (smaller, others): (Vec<&String>, Vec<&String>) =
        ranking.unclear.iter().partition(|it| is_smaller(summary, it, taken));
    let cannot_be_told = (!others.is_empty()).then(|| {
        format!("{} cannot be told from {best}.", estimates(summary, ranking, row, &others))
    });
    cannot_be_told.into_iter().chain(of_smaller(summary, ranking, row, &smaller)).collect()
}

/// Of smaller sizes, that they may do as much. Of those that are worse at p99 nobody asks that.
fn of_smaller(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    smaller: &[&String],
) -> Option<String> {
    let open: Vec<&String> = smaller
        .iter()
        .copied()
        .filter(|letter| !has_worse_tail(summary, ranking, letter))
        .collect();
    (!open.is_empty()).then(|| {
        let do_as_much = if open.len() == 1 { "does as much" } else { "do as much" };
        let open = estimates(summary, ranking, row, &open);
        format!("Whether {open}, with fewer threads, {do_as_much} cannot be told.")
    })
}

/// Whether an arm is worse at p99 than the one that the user is told to take, or else the best.
fn has_worse_tail(summary: &SummaryComparison, ranking: &ArmRanking, letter: &str) -> bool {
    let taken = summary.recommended.as_ref().unwrap_or(&ranking.best);
    let tail = summary.metric(Metric::P99).filter(|tail| !tail.decides);
    let tail = tail.and_then(|tail| tail.seen_from(taken, letter));
    tail.is_some_and(|tail| tail.verdict == ComparisonVerdict::Worse)
}

/// `2 x 5 (-1.2 %) and 2 x 8 (-0.4 %)`: how far arms are from the best.
fn estimates(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    letters: &[&String],
) -> String {
    let each = letters.iter().map(|it| with_estimate(summary, ranking, row, it));
    listed(&each.collect::<Vec<_>>())
}

/// `2 x 5 (-1.2 %)`: how far an arm is from the best.
fn with_estimate(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    letter: &str,
) -> String {
    let difference = row.seen_from(&ranking.best, letter);
    match difference.and_then(|it| it.estimate) {
        Some(part) => format!("{} ({} %)", summary.called(letter), percent(part, decimals([part]))),
        None => summary.called(letter).to_owned(),
    }
}

/// `2 x 5 (-1.2 % [-4.0, +1.1])`: the same with the interval, where there is one.
fn with_interval(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    letter: &str,
) -> String {
    let difference = row.seen_from(&ranking.best, letter);
    let change = difference.as_ref().and_then(change_with_interval);
    match change {
        Some(change) => format!("{} ({change})", summary.called(letter)),
        None => summary.called(letter).to_owned(),
    }
}

/// How far an arm is from the best.
fn estimate_from_best(ranking: &ArmRanking, row: &ComparedMetric, letter: &str) -> f64 {
    row.seen_from(&ranking.best, letter).and_then(|it| it.estimate).unwrap_or_default()
}

/// `128/s, p99 171 ms`: what an arm does, and how long the slowest requests take.
fn figures_of_size(summary: &SummaryComparison, row: &ComparedMetric, letter: &str) -> String {
    let p99 = summary.metric(Metric::P99).filter(|p99| p99.metric != row.metric);
    let p99 = p99.filter(|p99| p99.median(letter).is_some());
    let p99 = p99.map(|p99| format!("p99 {}", figure_with_unit(p99, letter)));
    labels::listed([Some(figure_with_unit(row, letter)), p99].into_iter().flatten())
}

/// `128/s`, `171 ms`: an arm's median.
fn figure_with_unit(row: &ComparedMetric, letter: &str) -> String {
    let figure = number::or_none(row.median(letter), number::significant);
    format!("{figure} {}", row.unit).replace(" /s", "/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_size_that_is_worse_at_p99_is_said_to_be_though_its_mean_tells_nothing() {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        let ranking = summary.ranking.as_mut().unwrap();
        ranking.unclear = std::mem::take(&mut ranking.ahead_of);
        assert_eq!(ranking.unclear, ["A"]);
        let said = best(&summary);
        assert!(said.contains("\n2 x 2, with fewer threads, is worse at p99: 2"), "{said}");
        assert!(!said.contains("Whether 2 x 2"), "{said}");
        let row = summary.metrics.iter_mut().find(|row| row.metric == Metric::P99).unwrap();
        for difference in &mut row.differences {
            difference.verdict = match (difference.base.as_str(), difference.arm.as_str()) {
                ("B", "C") => ComparisonVerdict::Better,
                _ => ComparisonVerdict::CannotTell,
            };
        }
        let said = best(&summary);
        assert!(said.contains("\n2 x 5, with more threads, is better at p99: 104 ms, "), "{said}");
        assert!(
            said.contains("Whether 2 x 2 (+153 %), with fewer threads, does as much"),
            "{said}"
        );
    }

    #[test]
    fn where_p99_alone_tells_that_fewer_threads_are_worse_the_size_is_to_be_taken() {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        let ranking = summary.ranking.as_mut().unwrap();
        ranking.best = "B".to_owned();
        ranking.unclear = vec!["A".to_owned(), "C".to_owned()];
        ranking.level_with.clear();
        ranking.ahead_of.clear();
        summary.recommended = None;
        let said = best(&summary);
        assert!(
            said.starts_with("At 75/s, take 2 x 3, as far as can be told: mean 59.4"),
            "{said}"
        );
        assert!(said.contains("\n2 x 2, with fewer threads, is worse at p99: "), "{said}");
        assert!(said.contains("Whether 2 x 5 ("), "{said}");
        assert!(
            said.contains("), with more threads, is better or worse cannot be told."),
            "{said}"
        );
        let p99 = summary.metrics.iter_mut().find(|row| row.metric == Metric::P99).unwrap();
        for difference in &mut p99.differences {
            difference.verdict = ComparisonVerdict::CannotTell;
        }
        assert!(best(&summary).contains("Which is best cannot be told"), "{}", best(&summary));
    }

    #[test]
    fn why_fewer_threads_are_worse_is_said_or_that_it_is_not_known() {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        let near = " 2 x 2 has too little room: it can do 88.0/s.";
        assert!(best(&summary).contains(near), "{}", best(&summary));
        summary.looks[1].rate_per_s = 150.0;
        assert!(best(&summary).contains(" Why 2 x 2 is worse is not known."), "{}", best(&summary));
        summary.arms[0].serves_in_turns = true;
        let turns = " 2 x 2 serves ten requests of a connection in a row while others wait, as Puma before 7 does.";
        assert!(best(&summary).contains(turns), "{}", best(&summary));
        assert!(!best(&summary).contains("not known"), "{}", best(&summary));
        summary.arms[1].serves_in_turns = true;
        assert!(best(&summary).contains(" Why 2 x 2 is worse is not known."), "as 2 x 3 does, too");
    }

    #[test]
    fn single_runs_alone_still_say_which_size_is_probably_enough() {
        let mut study = testkit::comparison::searched_threads();
        study.runs.clear();
        study.interrupted = true;
        let summary = crate::comparison::summary(&study);
        assert_eq!(
            crate::comparison::sentence(&summary),
            "At 75/s 2 x 3 is probably enough: p95 91.0 ms, with more threads 93.0 ms; 2 x 2: 830 ms (single runs).\n2 x 3 can do 120/s in overload, limited by Ruby's lock (a process computes for 91 % of the time): 75/s is 62 % of that. No block is whole: nothing can be compared."
        );
    }

    #[test]
    fn a_best_size_among_idle_threads_is_best_with_these_connections() {
        let mut study = testkit::comparison::best();
        for run in &mut study.runs {
            run.run.connections = 16;
        }
        let summary = crate::comparison::summary(&study);
        let said = best(&summary);
        assert!(said.starts_with("With 16 connections, "), "{said}");
        let doubts = crate::comparison::trust(&study, &summary);
        let doubt =
            "16 connections cannot use all threads (4 x 5 has 20): more of them may do more.";
        assert!(doubts.iter().any(|line| line.sentence == doubt), "{doubts:?}");
    }

    #[test]
    fn too_few_blocks_for_the_best_still_show_which_is_ahead() {
        let mut study = testkit::comparison::best();
        study.runs.retain(|run| run.block <= 3);
        let said = best(&crate::comparison::summary(&study));
        assert!(said.starts_with("Not certain after 3 blocks, "), "{said}");
        assert!(said.contains(" could tell: so far ") && said.contains("; behind it: "), "{said}");
    }

    #[test]
    fn what_is_ahead_by_less_than_matters_is_not_called_ahead() {
        let mut study = testkit::comparison::best();
        study.runs.retain(|run| run.block <= 3);
        study.plan.margin = 0.9;
        let said = best(&crate::comparison::summary(&study));
        assert!(said.contains("; within 90 % of it: ") && !said.contains("behind"), "{said}");
    }

    #[test]
    fn a_smaller_size_that_may_do_as_much_is_named() {
        let mut summary = crate::comparison::summary(&testkit::comparison::best());
        let one = |letter: &str| vec![letter.to_owned()];
        summary.ranking = Some(ArmRanking {
            best: "D".to_owned(),
            level_with: one("C"),
            unclear: one("A"),
            ahead_of: one("B"),
        });
        let said = best(&summary);
        assert!(
            said.starts_with(
                "With 20 connections, take 4 x 3, as far as can be told: 444/s, p99 49.8 ms."
            ),
            "{said}"
        );
        assert!(
            said.contains(
                "Whether 2 x 3 (-48 %), with fewer threads, does as much cannot be told."
            ),
            "{said}"
        );
    }
}
