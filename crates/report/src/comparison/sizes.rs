//! What the single runs of `sweep --try auto` say: the most that each size can do, and its response
//! times with ordinary traffic.

use judge::size_search::{AS_GOOD, enough_for_rate};
use judge::tried_sizes::NEAR_THE_LOCK;
use judge::words::{listed, share};
use model::Nanos;
use model::comparison::{Metric, MissingFigure, RateLook, SizeLook};
use model::number::{self, count_of};

use super::summary::{self, SummaryComparison};
use crate::tree::{DataTable, TableColumn, TableRow};

/// Why a size has no response times at the rate of ordinary traffic: it did less in overload, so that
/// it was not run at it, or how it failed there.
fn without_times(look: &SizeLook) -> String {
    let Some(at_rate) = look.at_rate else { return "does less".to_owned() };
    match at_rate.missing {
        Some(MissingFigure::Overloaded) => "waits grow",
        Some(MissingFigure::Failures) => "failures",
        Some(_) => "too few",
        None => "no figure",
    }
    .to_owned()
}

/// The smallest sizes leave a narrow table, down to so many.
const STAY: usize = 6;

/// What single runs of each size did, with a column for each size, so that the eye follows a figure
/// from size to size.
pub(super) fn table(looks: &[SizeLook]) -> Option<DataTable> {
    let overload = row(looks, "in overload, /s".to_owned(), &|look| {
        Some(number::significant(look.rate_per_s))
    });
    let times = rate(looks).map(|rate| {
        let rate = number::rate_in_words(rate);
        let time = |time: Option<Nanos>| time.map(number::milliseconds);
        let p50 = row(looks, format!("p50 at {rate}/s, ms"), &|look| time(look.at_rate?.p50));
        let p95 = row(looks, format!("p95 at {rate}/s, ms"), &|look| time(look.at_rate?.p95));
        [p50, p95]
    });
    let rows = std::iter::once(overload).chain(times.into_iter().flatten()).collect();
    of_sizes(looks, "single runs".to_owned(), rows)
}

/// The same with the response times of the blocks, which decide, for each size that was compared in
/// blocks: a single run of it may differ from them by chance.
pub(super) fn table_with_blocks(summary: &SummaryComparison) -> Option<DataTable> {
    let looks = &summary.looks;
    let arm = |look: &SizeLook| {
        let name = look.size.to_string();
        summary.compared().find(|arm| arm.name == name && arm.runs > 0)
    };
    let runs = looks.iter().filter_map(|look| Some(arm(look)?.runs)).max();
    let Some((runs, rate)) = runs.zip(summary.rate_per_s) else { return table(looks) };
    let overload = row(looks, "in overload, /s (1 run)".to_owned(), &|look| {
        Some(number::significant(look.rate_per_s))
    });
    let rate = number::rate_in_words(rate);
    // Of a size that was not compared, a single run is all that is known.
    let is_single = |look: &SizeLook| look.at_rate.is_some_and(|it| it.p95.is_some());
    let has_more = looks.iter().any(|look| arm(look).is_none() && is_single(look));
    let of_single_runs = has_more.then(|| {
        row(looks, format!("p95 at {rate}/s, ms (1 run)"), &|look| {
            look.at_rate?.p95.map(number::milliseconds)
        })
    });
    let times = [Metric::Mean, Metric::P99].into_iter().filter_map(|metric| {
        let of_blocks = summary.metric(metric)?;
        let star = if of_blocks.decides { " *" } else { "" };
        let name = format!("{} at {rate}/s, ms{star}", summary::name(metric));
        Some(row(looks, name, &|look| match arm(look) {
            Some(arm) => Some(number::or_none(of_blocks.median(&arm.letter), number::significant)),
            None => is_single(look).then(|| number::or_none(None::<f64>, number::significant)),
        }))
    });
    let times = times.chain(of_single_runs);
    let rows = std::iter::once(overload).chain(times).collect();
    of_sizes(looks, format!("medians of {}", count_of(u64::from(runs), "run")), rows)
}

/// A row of a table of sizes; a size without a figure says why.
fn row(looks: &[SizeLook], name: String, figure: &dyn Fn(&SizeLook) -> Option<String>) -> TableRow {
    let figures = looks.iter().map(|look| figure(look).unwrap_or_else(|| without_times(look)));
    TableRow::new(std::iter::once(name).chain(figures))
}

/// A table with a column for each size; `None` without any.
fn of_sizes(looks: &[SizeLook], title: String, rows: Vec<TableRow>) -> Option<DataTable> {
    let leaves = |at: usize| (looks.len() - at).saturating_sub(STAY) as u8;
    let sizes = looks.iter().enumerate();
    let sizes = sizes.map(|(at, look)| TableColumn::new(look.size.to_string()).leaving(leaves(at)));
    let columns: Vec<TableColumn> = std::iter::once(TableColumn::new(title)).chain(sizes).collect();
    (!looks.is_empty()).then(|| DataTable::of_columns(columns, rows))
}

/// How many threads ordinary traffic needs, as far as one run of each size tells.
pub(super) fn enough_in_words(looks: &[SizeLook]) -> Option<String> {
    let enough = enough_for_rate(looks)?;
    let RateLook { per_s, p95, .. } = enough.at_rate?;
    let at = looks.iter().position(|look| look.size == enough.size)?;
    let more: Vec<Nanos> = looks[at + 1..].iter().filter_map(|look| look.at_rate?.p95).collect();
    let more = more.iter().min().zip(more.iter().max()).map(|(least, most)| {
        let [least, most] = [*least, *most].map(number::milliseconds);
        let range = if least == most { least } else { format!("{least} to {most}") };
        format!(", with more threads {range} ms")
    });
    let fewer = at.checked_sub(1).map(|below| in_words_of_too_few(&looks[below]));
    let figures = format!(
        "p95 {} ms{}{} (single runs).",
        number::milliseconds(p95?),
        more.unwrap_or_default(),
        fewer.unwrap_or_default(),
    );
    let (rate, size) = (number::rate_in_words(per_s), enough.size);
    let are_disturbed =
        looks.iter().any(|look| look.at_rate.is_some_and(|at_rate| at_rate.others.is_some()));
    Some(if are_disturbed {
        let again = if at > 0 {
            "Fewer threads may be enough without them: leave the machine alone and try again."
        } else {
            "Leave the machine alone and try again to be sure."
        };
        format!(
            "At {rate}/s, while other programs used CPUs, {size} is probably enough: {figures} {again}"
        )
    } else {
        format!("At {rate}/s {size} is probably enough: {figures}")
    })
}

/// Which size with the fewest threads did more than the rate in overload, before any was tried at it.
pub(super) fn does_more_in_words(looks: &[SizeLook], rate: f64) -> Option<String> {
    let first = looks.iter().find(|look| look.rate_per_s > rate)?;
    Some(format!(
        "Single runs in overload: {} did {}/s, and is the smallest that did more than {}/s.",
        first.size,
        number::significant(first.rate_per_s),
        number::rate_in_words(rate)
    ))
}

/// That no size can do the rate that the user named.
pub(super) fn too_much_in_words(looks: &[SizeLook], rate: f64) -> Option<String> {
    let best = best(looks).filter(|best| best.rate_per_s < rate)?;
    Some(format!(
        "None of these sizes can do {}/s: {} does most, {}/s (single runs).",
        number::rate_in_words(rate),
        best.size,
        number::significant(best.rate_per_s)
    ))
}

/// The look at the size that is called so.
pub(super) fn called<'a>(looks: &'a [SizeLook], name: &str) -> Option<&'a SizeLook> {
    looks.iter().find(|look| look.size.to_string() == name)
}

/// How much a size did in overload, and what its limit was. `subject`: what the sentence calls it.
pub(super) fn limit_in_words(looks: &[SizeLook], taken: &str, subject: &str) -> Option<String> {
    let taken = called(looks, taken)?;
    let limit = match limit_of(looks, taken) {
        Some(limit) => format!(": {}", limit.as_clause()),
        None if taken.others.is_some() => {
            " while other processes used CPUs, and perhaps more without them".to_owned()
        }
        None => "; what limits it is not known".to_owned(),
    };
    let rate = number::significant(taken.rate_per_s);
    Some(format!("In overload {subject} answers {rate}/s{limit}."))
}

/// What limits a size in overload.
struct SizeLimit {
    /// `the 2 CPUs`, `Ruby's lock`
    names: Vec<String>,
    /// Whether a verb beside them is in the plural.
    is_plural: bool,
    /// What shows it: `2 x 21 answers 124/s`
    evidence: Option<String>,
}

impl SizeLimit {
    /// `its threads are the limit (2 x 21 answers 124/s)`
    fn as_clause(&self) -> String {
        let are = if self.is_plural { "are" } else { "is" };
        format!("{} {are} the limit{}", listed(&self.names), self.in_brackets())
    }

    /// `limited by the 2 CPUs and Ruby's lock (a process computes for 95 % of the time)`
    fn as_participle(&self) -> String {
        format!("limited by {}{}", listed(&self.names), self.in_brackets())
    }

    fn in_brackets(&self) -> String {
        self.evidence.as_ref().map_or_else(String::new, |it| format!(" ({it})"))
    }
}

/// What limits a size in overload: CPUs or Ruby's lock if hardly anything is left of them, else its
/// threads if more of them did clearly more.
fn limit_of(looks: &[SizeLook], look: &SizeLook) -> Option<SizeLimit> {
    if look.others.is_some() {
        return None;
    }
    let cpus = look.cpus_used_up.map(|of| {
        if of > 1.0 { format!("the {} CPUs", number::shortest(of)) } else { "its CPU".to_owned() }
    });
    let lock = LockShare::of(look).filter(|lock| lock.is_near);
    let name_of_lock = lock.as_ref().map(|_| "Ruby's lock".to_owned());
    let names: Vec<String> = [cpus, name_of_lock].into_iter().flatten().collect();
    if !names.is_empty() {
        let is_plural = names.len() > 1 || look.cpus_used_up.is_some_and(|of| of > 1.0);
        return Some(SizeLimit { names, is_plural, evidence: lock.map(|lock| lock.computes) });
    }
    let does_clearly_more = |more: &&SizeLook| {
        more.size.workers == look.size.workers
            && more.size.threads > look.size.threads
            && more.rate_per_s * AS_GOOD > look.rate_per_s
    };
    let more = looks.iter().filter(does_clearly_more);
    more.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s)).map(|more| SizeLimit {
        names: vec!["its threads".to_owned()],
        is_plural: true,
        evidence: Some(format!("{} answers {}/s", more.size, number::significant(more.rate_per_s))),
    })
}

/// What stands below the table of sizes: how "in overload" was measured, and of how many runs a p99 is
/// known.
pub(crate) fn notes(summary: &SummaryComparison) -> Option<String> {
    let has_overload = !summary.looks.is_empty() && summary.rate_per_s.is_some();
    let overload = has_overload.then(|| {
        "in overload: more connections than threads, so that requests always wait".to_owned()
    });
    let notes: Vec<String> = overload.into_iter().chain(summary.few_responses.clone()).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The size that did most.
fn best(looks: &[SizeLook]) -> Option<&SizeLook> {
    looks.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
}

/// What other sizes do in overload than the one that the user is told to take (`taken`), whose own
/// limit [`limit_in_words`] says, and what the one that does most uses up: with more threads than it
/// has there is nothing to gain. `cpus_allow`: requests per second by the CPU time of each.
pub(super) fn what_limits(
    looks: &[SizeLook],
    taken: Option<&str>,
    cpus_allow: Option<f64>,
) -> Option<String> {
    let best = best(looks)?;
    let rate = |look: &SizeLook| format!("{}/s", number::significant(look.rate_per_s));
    let lock = LockShare::of(best);
    let is_largest = looks.last().is_some_and(|largest| largest.size == best.size);
    let taken = taken.and_then(|taken| called(looks, taken));
    let is_taken = taken.is_some_and(|taken| taken.size == best.size);
    let is_named = taken.and_then(|taken| limit_of(looks, taken)).is_some_and(|limit| {
        limit.evidence.is_some_and(|evidence| evidence.starts_with(&best.size.to_string()))
    });
    let does = if is_taken {
        "In overload no other size of those tried answers more".to_owned()
    } else {
        format!("In overload {} answers most, {}", best.size, rate(best))
    };
    let most = match (limit_of(looks, best), &lock) {
        (Some(_), _) if is_taken => format!("{does}."),
        // How much it answers stands beside the size to take.
        (Some(limit), _) if is_named => format!("Of {} {}.", best.size, limit.as_clause()),
        (Some(limit), _) => format!("{does}, {}.", limit.as_participle()),
        (None, _) if best.others.is_some() && is_taken => format!("{does}."),
        (None, _) if best.others.is_some() => {
            format!("{does}, while other processes used CPUs: it may do more.")
        }
        (None, Some(lock)) => format!("{does}: {}.", lock.computes),
        (None, None) if is_largest => {
            format!("{does}; it uses nothing up, so more threads may do more.")
        }
        (None, None) => format!("{does}."),
    };
    // What one run did was possible, whatever the times of others say.
    let cpus_allow = cpus_allow.map(|allowed| allowed.max(best.rate_per_s));
    let allows = lock.and_then(|lock| {
        let allowed = cpus_allow.filter(|allowed| *allowed < lock.allowed_per_s);
        let by_cpus = allowed
            .map(|allowed| format!("The CPUs allow about {}/s", number::significant(allowed)));
        match best.cpus_used_up {
            Some(_) if lock.is_near => Some(format!(
                "{}; more workers would need more CPUs.",
                by_cpus.unwrap_or_else(|| lock.in_words())
            )),
            Some(_) => None,
            None => {
                let by_lock = || {
                    let by = if lock.is_near { "" } else { "By Ruby's lock " };
                    format!("{by}{}", lock.in_words())
                };
                let most = by_cpus.unwrap_or_else(by_lock);
                Some(format!("{most} with any number of threads."))
            }
        }
    });
    let said: Vec<String> = [Some(most), allows].into_iter().flatten().collect();
    Some(said.join(" "))
}

/// How much Ruby's lock lets so many workers do, where a process computes for most of the time.
struct LockShare {
    /// Whether that is hardly more than they do.
    is_near: bool,
    /// `a process computes for 96 % of the time`
    computes: String,
    /// The workers of the size.
    workers: u32,
    /// What they could do if they computed all the time, in requests per second.
    allowed_per_s: f64,
}

impl LockShare {
    fn of(look: &SizeLook) -> Option<LockShare> {
        const MOST_OF_THE_TIME: f64 = 0.6;
        let computes = look.computes.filter(|computes| *computes >= MOST_OF_THE_TIME)?;
        Some(LockShare {
            is_near: computes >= NEAR_THE_LOCK,
            computes: format!("a process computes for {} of the time", share(computes)),
            workers: look.size.workers.max(1),
            allowed_per_s: look.rate_per_s / computes,
        })
    }

    /// `2 workers can do about 130/s at most`
    fn in_words(&self) -> String {
        format!(
            "{} can do about {}/s at most",
            count_of(u64::from(self.workers), "worker"),
            number::significant(self.allowed_per_s)
        )
    }
}

/// `; 2 x 3: 4119 ms`, or why it has no time.
fn in_words_of_too_few(look: &SizeLook) -> String {
    let size = look.size;
    match look.at_rate.map(|look| look.p95) {
        Some(Some(p95)) => format!("; {size}: {} ms", number::milliseconds(p95)),
        Some(None) => format!("; {size} cannot keep up"),
        None => format!("; {size} does {}/s at most", number::significant(look.rate_per_s)),
    }
}

/// The rate of the runs in an open loop.
fn rate(looks: &[SizeLook]) -> Option<f64> {
    looks.iter().find_map(|look| Some(look.at_rate?.per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    /// Sizes with what each can do, and its 95th percentile at 75/s.
    fn looks(rows: &[(u32, f64, Option<u64>)]) -> Vec<SizeLook> {
        let look = |(threads, rate_per_s, p95): &(u32, f64, Option<u64>)| {
            let p95 = p95.map(Nanos::from_millis);
            let at_rate = RateLook { per_s: 75.0, p50: p95, p95, missing: None, others: None };
            SizeLook {
                at_rate: (*rate_per_s >= 75.0).then_some(at_rate),
                ..testkit::comparison::size_look(*threads, *rate_per_s)
            }
        };
        rows.iter().map(look).collect()
    }

    #[test]
    fn the_sentence_says_what_more_and_fewer_threads_do() {
        let usual =
            [(2, 63.8, None), (3, 76.5, Some(4119)), (5, 93.0, Some(101)), (8, 125.0, Some(104))];
        let said =
            |rows: &[(u32, f64, Option<u64>)]| enough_in_words(&looks(rows)).unwrap_or_default();
        assert_eq!(
            said(&usual),
            "At 75/s 2 x 5 is probably enough: p95 101 ms, with more threads 104 ms; 2 x 3: 4119 ms (single runs)."
        );
        assert_eq!(
            said(&[
                (2, 63.8, None),
                (3, 125.0, Some(90)),
                (5, 124.0, Some(95)),
                (8, 125.0, Some(93))
            ]),
            "At 75/s 2 x 3 is probably enough: p95 90.0 ms, with more threads 93.0 to 95.0 ms; 2 x 2 does 63.8/s at most (single runs)."
        );
        assert_eq!(
            said(&[(3, 76.0, None), (5, 80.0, Some(700))]),
            "At 75/s 2 x 5 is probably enough: p95 700 ms; 2 x 3 cannot keep up (single runs)."
        );
        assert_eq!(said(&[(3, 70.0, None)]), "", "no size can do it");
        assert_eq!(said(&[]), "", "no search");
    }

    #[test]
    fn a_rate_that_no_size_can_do_is_said() {
        let looks = looks(&[(2, 63.8, None), (3, 76.5, Some(4119)), (5, 76.0, None)]);
        assert_eq!(
            too_much_in_words(&looks, 500.0).unwrap(),
            "None of these sizes can do 500/s: 2 x 3 does most, 76.5/s (single runs)."
        );
        assert_eq!(too_much_in_words(&looks, 76.2), None, "one size can");
    }

    #[test]
    fn what_is_used_up_where_most_is_done_is_said() {
        let said = |cpus_used_up, computes, rates: [f64; 2]| {
            let mut looks = looks(&[(5, rates[0], None), (8, rates[1], None)]);
            for look in &mut looks {
                (look.cpus_used_up, look.computes) = (cpus_used_up, computes);
            }
            looks[0].computes = computes.map(|computes| computes - 0.1);
            what_limits(&looks, Some("2 x 5"), None).unwrap_or_default()
        };
        assert_eq!(
            said(Some(2.0), Some(0.96), [120.0, 125.0]),
            "In overload 2 x 8 answers most, 125/s, limited by the 2 CPUs and Ruby's lock (a process computes for 96 % of the time). 2 workers can do about 130/s at most; more workers would need more CPUs."
        );
        assert_eq!(
            said(None, Some(0.96), [126.0, 125.0]),
            "In overload no other size of those tried answers more. 2 workers can do about 147/s at most with any number of threads."
        );
        assert_eq!(
            said(None, Some(0.72), [100.0, 125.0]),
            "In overload 2 x 8 answers most, 125/s: a process computes for 72 % of the time. By Ruby's lock 2 workers can do about 174/s at most with any number of threads."
        );
        assert_eq!(
            said(Some(1.0), Some(0.7), [126.0, 125.0]),
            "In overload no other size of those tried answers more."
        );
        assert_eq!(
            said(None, Some(0.2), [100.0, 160.0]),
            "In overload 2 x 8 answers most, 160/s; it uses nothing up, so more threads may do more."
        );
        assert_eq!(
            said(None, None, [160.0, 150.0]),
            "In overload no other size of those tried answers more."
        );
        assert_eq!(what_limits(&[], None, None), None);
    }

    #[test]
    fn no_more_is_promised_than_the_cpus_allow() {
        let said = |cpus_used_up, computes, cpus_allow| {
            let mut looks = looks(&[(8, 120.0, None), (13, 130.0, None)]);
            (looks[1].cpus_used_up, looks[1].computes) = (cpus_used_up, Some(computes));
            what_limits(&looks, None, Some(cpus_allow)).unwrap_or_default()
        };
        let ends = |said: String, end: &str| assert!(said.ends_with(end), "{said}");
        let more = "; more workers would need more CPUs.";
        ends(said(Some(2.0), 0.96, 131.0), &format!(" The CPUs allow about 131/s{more}"));
        ends(said(Some(2.0), 0.96, 128.0), &format!(" The CPUs allow about 130/s{more}"));
        ends(said(Some(2.0), 0.96, 150.0), &format!(" 2 workers can do about 135/s at most{more}"));
        ends(said(None, 0.72, 150.0), " The CPUs allow about 150/s with any number of threads.");
        ends(
            said(None, 0.72, 200.0),
            " By Ruby's lock 2 workers can do about 181/s at most with any number of threads.",
        );
    }

    #[test]
    fn no_row_has_medians_and_single_runs() {
        let mut summary = crate::comparison::summary(&testkit::comparison::searched_threads());
        let largest = *summary.looks.last().unwrap();
        let p95 = Some(Nanos::from_millis(93));
        let at_rate = RateLook { per_s: 75.0, p50: p95, p95, missing: None, others: None };
        let larger =
            SizeLook { at_rate: Some(at_rate), ..testkit::comparison::size_look(8, 130.0) };
        summary
            .looks
            .push(SizeLook { size: model::ServerSize { threads: 8, ..largest.size }, ..larger });
        let table = table_with_blocks(&summary).unwrap();
        let row = |name: &str| {
            let row = table.rows.iter().find(|row| row.cells[0].text.starts_with(name)).unwrap();
            row.cells.iter().skip(2).map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert!(row("mean at 75/s, ms").ends_with("59.4 58.6 -"), "{}", row("mean"));
        assert!(row("p95 at 75/s, ms (1 run)").ends_with(" 93.0"), "{}", row("p95"));
        assert!(!row("p95").contains('-') && !row("p95").contains("run"), "{}", row("p95"));
    }

    #[test]
    fn what_the_size_to_take_can_do_is_said_with_its_limit() {
        let said = |cpus_used_up, computes, others, rates: [f64; 2]| {
            let mut looks = looks(&[(5, rates[0], None), (8, rates[1], None)]);
            (looks[0].cpus_used_up, looks[0].computes) = (cpus_used_up, Some(computes));
            looks[0].others = others;
            limit_in_words(&looks, "2 x 5", "it").unwrap()
        };
        let answers = |limit: &str| format!("In overload it answers 100/s{limit}.");
        let even = [100.0, 104.0];
        let both =
            ": the 2 CPUs and Ruby's lock are the limit (a process computes for 96 % of the time)";
        assert_eq!(said(Some(2.0), 0.96, None, even), answers(both));
        let lock = ": Ruby's lock is the limit (a process computes for 90 % of the time)";
        assert_eq!(said(None, 0.9, None, even), answers(lock));
        assert_eq!(said(Some(1.0), 0.5, None, even), answers(": its CPU is the limit"));
        assert_eq!(
            said(None, 0.7, None, [100.0, 120.0]),
            answers(": its threads are the limit (2 x 8 answers 120/s)")
        );
        assert_eq!(said(None, 0.7, None, even), answers("; what limits it is not known"));
        assert_eq!(
            said(Some(2.0), 0.96, Some(0.8), even),
            answers(" while other processes used CPUs, and perhaps more without them")
        );
        assert_eq!(limit_in_words(&[], "2 x 5", "it"), None, "named sizes");
    }

    #[test]
    fn the_table_has_a_column_for_each_size() {
        let table = table(&looks(&[(2, 63.8, None), (3, 76.5, Some(4119))])).unwrap();
        assert_eq!(
            crate::text::table(&table, 0, Width::ANY),
            "\
single runs          2 x 2  2 x 3
in overload, /s       63.8   76.5
p50 at 75/s, ms  does less   4119
p95 at 75/s, ms  does less   4119
"
        );
        assert!(super::table(&[]).is_none());
    }
}
