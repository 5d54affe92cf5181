//! The progress display, drawn on a terminal of our own and not drawn: it may make no difference that can be seen.

use report::number;
use std::fmt::Write as _;

use crate::case::{Case, Done};
use crate::measure::{Contender, Sample};
use crate::sections::Extent;
use crate::sections::cost::{SMALL, interval, micros, times};
use crate::server::Kind;
use crate::statistics::Middle;
use crate::table::{Table, shown};
use crate::tools::{End, Job};

const CONNECTIONS: u32 = 64;
const DRAWN: &str = "drawn on a terminal";
const NOT_DRAWN: &str = "not drawn";

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let drawn = Contender { terminal: true, ..Contender::ours(DRAWN, &[]) };
    vec![Case {
        name: format!("display, {CONNECTIONS} conn."),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job { connections: CONNECTIONS, end: End::After(extent.length), keep_alive: true, tls: false, rate: None },
        contenders: vec![Contender::ours(NOT_DRAWN, &[]), drawn],
    }]
}

/// The table, and what is wrong with it.
pub(super) fn text(cases: &[Done]) -> (String, Vec<String>) {
    let (mut text, mut faults) = (String::new(), Vec::new());
    for done in cases.iter().filter(|done| done.failure.is_none()) {
        let mut table = Table::new(&[
            &["display, 64 conn.", "CPU us", "", "", "instructions", "", "received", ""],
            &["", "a req.", "x not drawn", "[interval]", "x not drawn", "[interval]", "x not drawn", "[interval]"],
        ]);
        let without = done.entry(NOT_DRAWN);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let cpu = |sample: &Sample| Some(sample.cpu());
            let ratios = [
                entry.times(without, cpu),
                entry.times(without, Sample::instructions),
                entry.times(without, |sample| sample.rate_per_s),
            ];
            let cells = ratios
                .into_iter()
                .flat_map(|ratio| [times(ratio), shown(ratio.filter(|middle| middle.of > 1), interval)]);
            let first = [entry.contender.name.clone(), shown(entry.middle(cpu), |middle| micros(middle.median))];
            table.row(first.into_iter().chain(cells));
            let blind = |sample: &&Sample| (sample.account.drawn_bytes > 0) != entry.contender.terminal;
            if let Some(sample) = entry.samples.iter().find(blind) {
                faults.push(format!(
                    "display, {}: {} bytes were drawn",
                    entry.contender.name, sample.account.drawn_bytes
                ));
            }
        }
        let _ = write!(text, "\n{}", table.text());
        if let Some(drawn) = done.entry(DRAWN) {
            let ratios = [
                ("CPU time", drawn.times(without, |sample| Some(sample.cpu()))),
                ("instructions", drawn.times(without, Sample::instructions)),
            ];
            text.extend(ratios.into_iter().filter_map(|(what, ratio)| verdict(what, ratio?)));
        }
    }
    (text, faults)
}

/// Fewer rounds say nothing: their range holds the true median with less than 90 %.
const ENOUGH: usize = 5;

fn verdict(what: &str, ratio: Middle) -> Option<String> {
    if ratio.of < ENOUGH {
        return None;
    }
    let by = number::fixed((ratio.median - 1.0).abs() * 100.0, 2);
    Some(if ratio.holds(1.0) {
        format!("  {what}: no difference that {} rounds can show ({by} %, and the interval holds 1)\n", ratio.of)
    } else {
        format!("  {what}: {by} % of difference, and the interval of {} rounds does not hold 1\n", ratio.of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_one_where_the_interval_says_so() {
        let of = |values: &[f64]| verdict("CPU time", Middle::of(values.iter().copied()).unwrap());
        assert!(of(&[0.99, 1.0, 1.02, 1.01, 1.0]).unwrap().starts_with("  CPU time: no difference"));
        assert!(of(&[1.01, 1.02, 1.05, 1.02, 1.02]).unwrap().starts_with("  CPU time: 2.00 % of difference"));
        assert_eq!(of(&[1.01, 1.02, 1.05]), None);
    }
}
