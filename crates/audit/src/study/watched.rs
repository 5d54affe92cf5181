//! What was read of the server while a run went on, and where the response times went: looks in their order, counters that never
//! fall, and parts that are a whole.

use std::collections::BTreeMap;

use super::book::Book;
use super::file::{Anatomy, Curve, Parts, Run, Watch};
use crate::check::{Check, Finding};

/// What only counts up, from the window's first look on or from the worker's start.
const COUNTERS: [&str; 3] = ["cpu", "run_queue_wait", "requests_count"];
/// Those that begin at 0.
const FROM_ZERO: [&str; 2] = ["cpu", "run_queue_wait"];

pub(super) fn findings(run: &Run) -> Vec<Finding> {
    let watch = run.watch.as_ref().map(watched).map_or_else(Vec::new, Book::findings);
    let anatomy = run.anatomy.as_ref().map(|anatomy| dissected(run, anatomy)).map_or_else(Vec::new, Book::findings);
    watch.into_iter().chain(anatomy).collect()
}

fn watched(watch: &Watch) -> Book {
    let mut book = Book::of(Check::Watch);
    for track in &watch.tracks {
        let source = &track.source;
        for pair in track.at_ns.windows(2) {
            book.at_least(&format!("{source}: a look after another"), pair[1], pair[0]);
        }
        let looks = track.at_ns.len() as u64;
        for curve in &track.curves {
            let name = format!("{source}: {} {}", curve.name, curve.of);
            book.equal(&format!("{name}: values"), curve.values.len() as u64, looks);
            let ages = curve.staleness_ns.len() as u64;
            book.equal(&format!("{name}: ages"), ages, if ages == 0 { 0 } else { looks });
            if COUNTERS.contains(&curve.name.as_str()) {
                counter(&mut book, &name, curve);
            }
        }
        together(&mut book, source, &track.curves);
    }
    book
}

fn counter(book: &mut Book, name: &str, curve: &Curve) {
    let known: Vec<u64> = curve.values.iter().flatten().copied().collect();
    if let Some(first) = known.first().filter(|_| FROM_ZERO.contains(&curve.name.as_str())) {
        book.equal(&format!("{name}: at the first look"), *first, 0);
    }
    for pair in known.windows(2) {
        book.at_least(&format!("{name}: counts up"), pair[1], pair[0]);
    }
}

/// What one look saw of the same thing in two ways.
fn together(book: &mut Book, source: &str, curves: &[Curve]) {
    let mut of: BTreeMap<(&str, &str), &[Option<u64>]> = BTreeMap::new();
    for curve in curves {
        of.insert((&curve.of, &curve.name), &curve.values);
    }
    let both = |who: &str, one: &str, other: &str| -> Vec<(u64, u64)> {
        let (Some(one), Some(other)) = (of.get(&(who, one)), of.get(&(who, other))) else { return Vec::new() };
        one.iter().zip(other.iter()).filter_map(|(one, other)| one.zip(*other)).collect()
    };
    for (unread, open) in both("", "unread_connections", "open_connections") {
        book.within(&format!("{source}: unread connections"), unread, 0, open);
    }
    for who in curves.iter().filter(|curve| curve.name == "busy_threads").map(|curve| curve.of.as_str()) {
        // The threads that are taken and those that are not are the same number at each look.
        let sums: Vec<u64> =
            both(who, "busy_threads", "pool_capacity").iter().map(|(busy, free)| busy.saturating_add(*free)).collect();
        for pair in sums.windows(2) {
            book.equal(&format!("{source}: busy threads and capacity of {who}"), pair[1], pair[0]);
        }
    }
}

fn dissected(run: &Run, anatomy: &Anatomy) -> Book {
    let mut book = Book::of(Check::Anatomy);
    let (times, all) = (&run.tally.response_time, &anatomy.all);
    let untold = anatomy.silent.saturating_add(anatomy.impossible);
    book.equal("anatomy: answers", all.requests.saturating_add(untold), run.tally.good());
    // Of whom nothing is told there is at least so much time, and at most.
    let [most, least] =
        [times.max_ns, times.min_ns].map(|each| times.sum_ns.saturating_sub(each.saturating_mul(untold)));
    book.within("anatomy: response_time_sum_ns", all.response_time_sum_ns, most, least);
    if run.tally.good() == run.tally.total() {
        book.within("anatomy: send_lag_sum_ns", all.send_lag_sum_ns, 0, run.tally.send_lag.sum_ns);
    }
    parts(&mut book, "all", all);
    let Some(slowest) = &anatomy.slowest else { return book };
    parts(&mut book, "slowest", slowest);
    book.within("anatomy of the slowest: requests", slowest.requests, all.requests.div_ceil(100), all.requests);
    let longest = slowest.requests.saturating_mul(times.max_ns);
    let mean = u128::from(all.response_time_sum_ns) * u128::from(slowest.requests) / u128::from(all.requests.max(1));
    let mean = u64::try_from(mean).unwrap_or(u64::MAX);
    book.within("anatomy of the slowest: response_time_sum_ns", slowest.response_time_sum_ns, mean, longest);
    for (name, of_slowest, of_all) in [
        ("response_time_sum_ns", Some(slowest.response_time_sum_ns), Some(all.response_time_sum_ns)),
        ("send_lag_sum_ns", Some(slowest.send_lag_sum_ns), Some(all.send_lag_sum_ns)),
        ("before_app_sum_ns", slowest.before_app_sum_ns, all.before_app_sum_ns),
        ("app_sum_ns", Some(slowest.app_sum_ns), Some(all.app_sum_ns)),
    ] {
        if let (Some(part), Some(whole)) = (of_slowest, of_all) {
            book.within(&format!("anatomy: {name} of the slowest"), part, 0, whole);
        }
    }
    book
}

/// What is known is no more than the whole; the rest is what it leaves.
fn parts(book: &mut Book, of: &str, parts: &Parts) {
    let known = [parts.send_lag_sum_ns, parts.before_app_sum_ns.unwrap_or(0), parts.app_sum_ns];
    let known = known.into_iter().fold(0, u64::saturating_add);
    book.within(&format!("anatomy of {of}: its parts"), known, 0, parts.response_time_sum_ns);
}
