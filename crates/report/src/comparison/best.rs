//! Which arm is best, in words, and after a search for threads which size to take.

use super::change_words::{
    change_with_interval, decimals, is_another_change, percent, plain_percent,
};
use super::sizes;
use super::summary::{self, SummaryComparison, name};
use crate::labels;
use crate::number::{self, count_of};
use judge::words::listed;
use model::comparison::{
    ArmRanking, ComparedMetric, ComparisonDoubt, ComparisonVerdict, Difference, Metric,
};

/// Which arm is best. After a search for threads, what the single runs say comes first where the
/// blocks say less of ordinary traffic.
pub(super) fn best(summary: &SummaryComparison) -> String {
    let is_ranked = summary.ranking.as_ref().is_some_and(ArmRanking::is_decided);
    let is_decided = is_ranked || summary.recommended.is_some();
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
    let of_ahead = (!is_decided && !is_told).then(|| of_limit(summary, ahead?, ahead?)).flatten();
    // At a rate the blocks do not show what a size can do at most; the runs before them did.
    let limit = sizes::what_limits(&summary.looks, taken, summary.cpus_allow)
        .filter(|_| summary.rate_per_s.is_some());
    let parts = [too_much, of_looks, Some(best_of_blocks(summary)), of_ahead, limit];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Which size single runs of each show to be enough, and what it can do at most.
pub(super) fn single_runs(summary: &SummaryComparison) -> Option<String> {
    let enough = sizes::enough_in_words(&summary.looks)?;
    let limit = summary.enough.as_deref().and_then(|enough| of_limit(summary, enough, enough));
    Some([Some(enough), limit].into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// What a size can do in overload. At a rate the blocks do not show that; the runs before them did.
fn of_limit(summary: &SummaryComparison, taken: &str, subject: &str) -> Option<String> {
    summary.rate_per_s?;
    sizes::limit_in_words(&summary.looks, taken, subject)
}

/// Which arm the runs in blocks show to be best.
fn best_of_blocks(summary: &SummaryComparison) -> String {
    let Some((ranking, row)) = summary.ranking.as_ref().zip(summary.deciding().next()) else {
        return "Which is best cannot be told: no arm has a figure.".to_owned();
    };
    if let Some(taken) = summary.recommended.as_ref().filter(|_| summary.rate_per_s.is_some()) {
        return to_take_at_a_rate(summary, row, taken);
    }
    if !ranking.is_decided() {
        return best_so_far(summary, ranking, row);
    }
    let estimate = |letter: &String| estimate_from_best(ranking, row, letter);
    let (overloaded, mut behind): (Vec<&String>, Vec<&String>) =
        ranking.ahead_of.iter().partition(|letter| cannot_keep_up(summary, row, letter));
    behind.sort_by(|a, b| estimate(b).abs().total_cmp(&estimate(a).abs()));
    let behind: Vec<String> =
        behind.into_iter().map(|it| behind_in_words(summary, row, it, estimate(it))).collect();
    let mut parts = match &summary.recommended {
        Some(letter) => to_take(summary, ranking, row, letter),
        None => best_of_equal_sizes(summary, ranking, row),
    };
    let taken = summary.recommended.as_ref().unwrap_or(&ranking.best);
    let (worse, better) = (ComparisonVerdict::Worse, ComparisonVerdict::Better);
    let tails = [worse, better].map(|verdict| of_tails(summary, taken, verdict));
    parts.splice(1..1, tails.into_iter().flatten());
    parts
        .extend(overloaded.into_iter().map(|letter| cannot_keep_up_in_words(summary, row, letter)));
    if !behind.is_empty() {
        parts.push(format!("Worse: {}.", listed(&behind)));
    }
    parts.extend(why_fewer_threads_are_worse(summary, row, taken));
    let limit = of_limit(summary, summary.called(taken), "it");
    under_conditions(summary, &with_limit(parts, limit))
}

/// `2 x 3 cannot keep up with 70/s: ever more requests waited in 18 of 20 runs.`
fn cannot_keep_up_in_words(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    letter: &str,
) -> String {
    format!(
        "{} cannot keep up{}: ever more requests waited in {}.",
        summary.called(letter),
        summary
            .rate_per_s
            .map_or_else(String::new, |rate| format!(" with {}/s", number::rate_in_words(rate))),
        overloaded_runs(summary, row, letter).unwrap_or_default()
    )
}

/// What is best, with the load for which that holds before it.
fn under_conditions(summary: &SummaryComparison, best: &str) -> String {
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

/// `2 x 3 (553 ms, p99 2110 ms; ever more requests waited in 4 of 20 runs)`; in overload `2 x 3 (-12 %)`.
fn behind_in_words(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    letter: &str,
    estimate: f64,
) -> String {
    let waited = overloaded_runs(summary, row, letter)
        .map(|runs| format!("; ever more requests waited in {runs}"));
    // At a rate, beside those of the size to take.
    let what = match summary.rate_per_s {
        Some(_) => figures_of_size(summary, row, letter),
        None => format!("{} %", percent(estimate, 0)),
    };
    format!("{} ({what}{})", summary.called(letter), waited.unwrap_or_default())
}

/// Sentences about a size, of which the first says to take it. What it can do at most stands beside that,
/// and everything else on a line of its own.
fn with_limit(mut sentences: Vec<String>, limit: Option<String>) -> String {
    let Some(limit) = limit else { return sentences.join(" ") };
    let others = sentences.split_off(1).join(" ");
    sentences.push(limit);
    let lines = [sentences.join(" "), others].into_iter().filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
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
    let said = format!(
        "{begin}{shared}: so far {} has the best {}, {}{}{}.",
        summary.called(&ranking.best),
        name(row.metric),
        figures_of_size(summary, row, &ranking.best),
        each(close, "not known to differ").unwrap_or_default(),
        each(behind, "behind it").unwrap_or_default()
    );
    let tail = of_tails(summary, &ranking.best, ComparisonVerdict::Worse);
    let why = why_fewer_threads_are_worse(summary, row, &ranking.best);
    let again = summary.others.map(|_| "Leave the machine alone and try again.".to_owned());
    std::iter::once(said).chain(again).chain(tail).chain(why).collect::<Vec<_>>().join(" ")
}

/// The size to take at a rate (see [`summary::SummaryComparison::recommended`]): what it does, and how
/// far each other one is from it.
fn to_take_at_a_rate(summary: &SummaryComparison, row: &ComparedMetric, taken: &str) -> String {
    let others: Vec<Difference> = summary
        .compared()
        .filter(|arm| arm.letter != taken)
        .filter_map(|arm| row.seen_from(taken, &arm.letter))
        .collect();
    let of = |verdict: ComparisonVerdict| others.iter().filter(move |it| it.verdict == verdict);
    let has_worse_tail = |it: &&Difference| has_worse_tail(summary, taken, &it.arm);
    let has_fewer = |it: &&Difference| is_smaller(summary, &it.arm, taken);
    let (smaller, open): (Vec<&Difference>, Vec<&Difference>) =
        of(ComparisonVerdict::CannotTell).filter(|it| !has_worse_tail(it)).partition(has_fewer);
    let same: Vec<&Difference> =
        of(ComparisonVerdict::Same).filter(|it| !has_worse_tail(it)).collect();
    let (overloaded, mut worse): (Vec<&Difference>, Vec<&Difference>) =
        of(ComparisonVerdict::Worse).partition(|it| cannot_keep_up(summary, row, &it.arm));
    let figures = figures_of_size(summary, row, taken);
    let name = name(row.metric);
    let called = summary.called(taken);
    let take = format!("take {called}: {name} {figures}.");
    let open = (!open.is_empty()).then(|| {
        let each: Vec<String> =
            open.iter().map(|it| with_mean_and_tail(summary, row, taken, &it.arm)).collect();
        let more = if open.iter().all(|it| is_smaller(summary, taken, &it.arm)) {
            ", with more threads,"
        } else {
            ""
        };
        let are = if open.len() == 1 { "is" } else { "are" };
        format!("{}{more} {are} not known to be better.", listed(&each))
    });
    let same = (!same.is_empty()).then(|| {
        let each = same.iter().map(|it| {
            let figures = figures_of_size(summary, row, &it.arm);
            format!("{} ({figures})", summary.called(&it.arm))
        });
        let each: Vec<String> = each.collect();
        let have = if same.iter().all(|it| is_smaller(summary, taken, &it.arm)) {
            "More threads have the same"
        } else {
            "The same"
        };
        format!("{have} {name} within {}: {}.", plain_percent(summary.margin), listed(&each))
    });
    let tails = [ComparisonVerdict::Worse, ComparisonVerdict::Better];
    let tails = tails.map(|verdict| of_tails(summary, taken, verdict));
    let estimate = |it: &Difference| it.estimate.unwrap_or_default();
    worse.sort_by(|a, b| estimate(b).abs().total_cmp(&estimate(a).abs()));
    let worse: Vec<String> =
        worse.into_iter().map(|it| behind_in_words(summary, row, &it.arm, estimate(it))).collect();
    let worse = (!worse.is_empty()).then(|| format!("Worse: {}.", listed(&worse)));
    let smaller = (!smaller.is_empty()).then(|| {
        let each: Vec<String> =
            smaller.iter().map(|it| with_mean_and_tail(summary, row, taken, &it.arm)).collect();
        let is = if smaller.len() == 1 { "is" } else { "are" };
        format!("Whether {}, with fewer threads, {is} as good cannot be told.", listed(&each))
    });
    let overloaded =
        overloaded.into_iter().map(|it| cannot_keep_up_in_words(summary, row, &it.arm));
    let sentences =
        std::iter::once(take).chain(open).chain(same).chain(tails.into_iter().flatten());
    let sentences = sentences.chain(overloaded).chain(worse);
    let sentences =
        sentences.chain(why_fewer_threads_are_worse(summary, row, taken)).chain(smaller);
    let limit = of_limit(summary, called, "it");
    under_conditions(summary, &with_limit(sentences.collect(), limit))
}

/// `2 x 13 (mean -1 % [-16, +16], p99 +2 % [-30, +25])`: how far an arm is from the one to take.
fn with_mean_and_tail(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    taken: &str,
    letter: &str,
) -> String {
    let tail = summary.metric(Metric::P99).filter(|tail| !tail.decides);
    let changes = std::iter::once(row).chain(tail).filter_map(|row| {
        let change = change_with_interval(&row.seen_from(taken, letter)?)?;
        Some(format!("{} {change}", name(row.metric)))
    });
    format!("{} ({})", summary.called(letter), labels::listed(changes))
}

/// Why sizes with fewer threads than the one to take are worse at the rate, by what decides or at p99,
/// as far as that is known: the rate is near what they can do, or Puma lets some requests wait while it
/// serves one connection over and over.
fn why_fewer_threads_are_worse(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    taken: &str,
) -> Vec<String> {
    /// Requests come by chance, and from such a share of what a server can do on, many wait.
    const NEAR: f64 = 0.8;
    let Some(rate) = summary.rate_per_s else { return Vec::new() };
    let arm = |letter: &str| summary.arms.iter().find(|arm| arm.letter == letter);
    let takes_turns = |letter: &str| arm(letter).is_some_and(|arm| arm.serves_in_turns);
    let is_worse = |letter: &&String| {
        let has_worse_mean =
            row.seen_from(taken, letter).is_some_and(|it| it.verdict == ComparisonVerdict::Worse);
        is_smaller(summary, letter, taken)
            && (has_worse_mean || has_worse_tail(summary, taken, letter))
    };
    let worse: Vec<&String> = summary.compared().map(|arm| &arm.letter).filter(is_worse).collect();
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
        format!(
            "At {} requests often wait while ten of another connection are served in a row, as Puma before \
             7 does.",
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
    taken: &str,
    verdict: ComparisonVerdict,
) -> Option<String> {
    let row = summary.metric(Metric::P99).filter(|row| !row.decides)?;
    let may_do_as_much = |letter: &String| {
        let mut deciding = summary.deciding().filter_map(|row| row.seen_from(taken, letter));
        deciding.all(|it| it.verdict != ComparisonVerdict::Worse)
    };
    let differing = summary.compared().map(|arm| &arm.letter).filter(|it| may_do_as_much(it));
    let differing = differing.filter_map(|letter| {
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
        let median = figure_with_unit(row, letter);
        let change = change_with_interval(&difference).map(|change| {
            // Whoever divides the medians finds another change than the runs of a block have.
            if is_another_change(row, &difference) {
                format!("; against {} in the same block {change}", summary.called(taken))
            } else {
                format!(", {change}")
            }
        });
        format!(
            "{}{threads} is {} at p99: {median}{}.",
            summary.called(letter),
            summary::verdict(verdict),
            change.unwrap_or_default()
        )
    });
    Some(each.collect::<Vec<_>>().join(" ")).filter(|said| !said.is_empty())
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
        format!(
            "take {taken}, the fewest threads of those tried with the {full} {name}: {figures}."
        )
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
    let mut parts = vec![if ranking.level_with.is_empty() {
        format!("{best} has the best {name}, as far as can be told: {figures}.")
    } else {
        format!("{best} has the best {name}, but not alone: {figures}.")
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
    cannot_be_told.into_iter().chain(of_smaller(summary, ranking, row, taken, &smaller)).collect()
}

/// Of smaller sizes, that they may do as much. Of those that are worse at p99 nobody asks that.
fn of_smaller(
    summary: &SummaryComparison,
    ranking: &ArmRanking,
    row: &ComparedMetric,
    taken: &str,
    smaller: &[&String],
) -> Option<String> {
    let open: Vec<&String> =
        smaller.iter().copied().filter(|letter| !has_worse_tail(summary, taken, letter)).collect();
    (!open.is_empty()).then(|| {
        let do_as_much = if open.len() == 1 { "does as much" } else { "do as much" };
        let open = estimates(summary, ranking, row, &open);
        format!("Whether {open}, with fewer threads, {do_as_much} cannot be told.")
    })
}

/// Whether an arm is worse at p99 than the one that the user is told to take.
fn has_worse_tail(summary: &SummaryComparison, taken: &str, letter: &str) -> bool {
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

    /// A search at a rate with these verdicts of the mean and of p99, by base and arm; `cannot tell`
    /// where none is given.
    fn searched(mean: &[Judged], p99: &[Judged]) -> SummaryComparison {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        for row in &mut summary.metrics {
            let judged = if row.metric == Metric::Mean { mean } else { p99 };
            for difference in &mut row.differences {
                let of_pair =
                    judged.iter().find(|it| it.base == difference.base && it.arm == difference.arm);
                difference.verdict = of_pair.map_or(ComparisonVerdict::CannotTell, |it| it.verdict);
            }
        }
        summary.recommended = summary.to_take();
        summary
    }

    /// The verdict of a pair.
    struct Judged {
        base: &'static str,
        arm: &'static str,
        verdict: ComparisonVerdict,
    }

    fn better(base: &'static str, arm: &'static str) -> Judged {
        Judged { base, arm, verdict: ComparisonVerdict::Better }
    }

    #[test]
    fn the_size_to_take_is_the_smallest_of_which_no_larger_one_is_known_to_be_better() {
        let said = |mean: &[Judged], p99: &[Judged]| best(&searched(mean, p99));
        let by_tail = said(&[], &[better("A", "B"), better("A", "C")]);
        assert!(by_tail.starts_with("At 75/s, take 2 x 3: mean 59.4 ms, p99 105 ms."), "{by_tail}");
        assert!(by_tail.contains("\n2 x 5 (mean -1.5 % [-2.7, -0.5], p99 -"), "{by_tail}");
        assert!(
            by_tail.contains("), with more threads, is not known to be better. 2 x 2, with fewer threads, is worse at p99: 2"),
            "{by_tail}"
        );
        assert!(!by_tail.contains("Whether 2 x 2"), "{by_tail}");
        let of_largest = said(&[], &[better("B", "C")]);
        assert!(of_largest.starts_with("At 75/s, take 2 x 5: "), "{of_largest}");
        assert!(
            of_largest.contains("2 x 3, with fewer threads, is worse at p99: "),
            "{of_largest}"
        );
        // Its mean seems longer by far, so it is not to be taken though nothing is certain.
        assert!(of_largest.contains("Whether 2 x 2 (mean +15"), "{of_largest}");
        assert!(
            of_largest.contains("), with fewer threads, is as good cannot be told."),
            "{of_largest}"
        );
    }

    #[test]
    fn no_size_is_to_be_taken_by_what_too_few_blocks_or_a_busy_machine_show() {
        let mut summary = searched(&[], &[]);
        assert_eq!(summary.recommended.as_deref(), Some("B"));
        summary.others = Some(0.9);
        summary.ranking.as_mut().unwrap().unclear.append(&mut vec!["A".to_owned()]);
        let ranking = summary.ranking.as_mut().unwrap();
        ranking.level_with.clear();
        ranking.ahead_of.clear();
        assert_eq!(summary.to_take(), None);
        let mut few = testkit::comparison::searched_threads();
        few.runs.retain(|run| run.block <= 3);
        assert_eq!(crate::comparison::summary(&few).recommended, None);
    }

    #[test]
    fn why_fewer_threads_are_worse_is_said_or_that_it_is_not_known() {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        let near = " 2 x 2 has too little room: it can do 88.0/s.";
        assert!(best(&summary).contains(near), "{}", best(&summary));
        summary.looks[1].rate_per_s = 150.0;
        assert!(best(&summary).contains(" Why 2 x 2 is worse is not known."), "{}", best(&summary));
        summary.arms[0].serves_in_turns = true;
        let turns = " At 2 x 2 requests often wait while ten of another connection are served in a row, as Puma before 7 does.";
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
            "At 75/s 2 x 3 is probably enough: p95 91.0 ms, with more threads 93.0 ms; 2 x 2: 830 ms (single runs).\nIn overload 2 x 3 answers 120/s: Ruby's lock is the limit (a process computes for 91 % of the time). No block is whole: nothing can be compared."
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
        assert!(said.contains("; not known to differ: ") && !said.contains("behind"), "{said}");
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
