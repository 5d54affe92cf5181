//! Open loop against responses that take exactly a millisecond: how late requests are sent, and how
//! far the reported times are from the truth.

use model::Nanos;
use report::number;
use std::fmt::Write as _;

use crate::case::{Case, Done, Entry};
use crate::measure::{Contender, Sample};
use crate::output::{Table, shown};
use crate::sections::Extent;
use crate::sections::cost::{SMALL, micros};
use crate::server::Kind;
use crate::tools::{End, Job, Times, Tool};

const DELAY: Nanos = Nanos::from_millis(1);
const RATE: u32 = 10_000;
const CONNECTIONS: u32 = 64;

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let timed =
        |timing| Contender::ours(&format!("longtail --timing {timing}"), &["--timing", timing]);
    let mut contenders: Vec<Contender> = ["coalesce", "precise", "spin"].map(timed).into();
    contenders.extend(extent.contenders(&[Tool::Floor, Tool::OHA, Tool::HEY, Tool::WRK2]));
    contenders.retain(|one| extent.tools.contains(&one.tool));
    vec![Case {
        name: format!("{RATE} req/s over {CONNECTIONS} conn., responses after {DELAY}"),
        server: Kind::Sink { bytes: SMALL, delay: Some(DELAY) },
        // Of 10 000 requests, ten are above p99.9.
        job: Job {
            rate: Some(RATE),
            ..Job::closed(
                CONNECTIONS,
                End::After(Nanos(extent.length.0 * if extent.quick { 1 } else { 2 })),
            )
        },
        contenders,
    }]
}

pub(super) fn text(cases: &[Done]) -> String {
    let mut text = String::new();
    for done in cases.iter().filter(|done| done.failure.is_none()) {
        let mut table = Table::new(&[
            "|received|send lag, us|||reported less 1000 us|||CPU us",
            "|req/s|p50|p99|p99.9|p50|p99|p99.9|a req.",
        ]);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let lag =
                |of: fn(&Times) -> Option<f64>| time(entry, |sample| of(&sample.reported.send_lag));
            let over = |of: fn(&Times) -> Option<f64>| {
                time(entry, |sample| Some(of(&sample.reported.times)? - DELAY.0 as f64))
            };
            table.row([
                entry.contender.name.clone(),
                shown(entry.middle(|sample| sample.rate_per_s), |middle| {
                    number::rate(middle.median)
                }),
                lag(|times| times.p50),
                lag(|times| times.p99),
                lag(|times| times.p999),
                over(|times| times.p50),
                over(|times| times.p99),
                over(|times| times.p999),
                shown(entry.middle(|sample| Some(sample.cpu())), |middle| micros(middle.median)),
            ]);
        }
        let _ = write!(text, "\n{}\n{}", done.case.name, table.text());
        if let Some(Times { p50: Some(p50), p99: Some(p99), p999: Some(p999) }) = done.lateness {
            let _ = writeln!(
                text,
                "  the sink itself gave its responses late by {}, {} and {} us (p50, p99, p99.9 \
                 of all runs); that is in the figures",
                number::fixed(p50 / 1e3, 0),
                number::fixed(p99 / 1e3, 0),
                number::fixed(p999 / 1e3, 0),
            );
        }
    }
    text
}

/// The median over the rounds, in whole microseconds.
fn time(entry: &Entry, figure: impl Fn(&Sample) -> Option<f64>) -> String {
    shown(entry.middle(figure), |middle| number::fixed(middle.median / 1e3, 0))
}
