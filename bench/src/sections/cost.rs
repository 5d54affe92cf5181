//! The cost of a request in comparison: every kind of load at full speed, and against a server that
//! leaves the generator idle.

use std::fmt::Write as _;

use model::Nanos;
use report::number;

use crate::case::{Case, Done, Entry, Middle};
use crate::measure::{Contender, Sample};
use crate::output::{Table, shown};
use crate::sections::Extent;
use crate::server::Kind;
use crate::tools::{End, Job, Tool};

/// Content of a small response, in bytes.
pub(super) const SMALL: u64 = 64;
/// Connections for cases that are not about their number.
const SOME: u32 = 16;
/// Longtail with its own clock instead of the kernel's stamps, like the other tools.
const OWN_CLOCK: &str = "longtail, own clock";
/// Runs with at least this many connections are twice as long, because opening them takes a while.
const MANY: u32 = 5000;

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let job = |connections: u32| {
        let length = if connections >= MANY { Nanos(extent.length.0 * 2) } else { extent.length };
        Job::closed(connections, End::After(length))
    };
    let case = |name: &str, bytes: u64, job: Job| {
        let tools: &[Tool] = if extent.quick && name.contains(',') {
            &[Tool::LONGTAIL, Tool::Floor, Tool::WRK]
        } else {
            &Tool::ALL
        };
        Case {
            name: name.to_owned(),
            server: Kind::Sink { bytes, delay: None },
            job,
            contenders: extent.contenders(tools),
        }
    };
    let mut all: Vec<Case> =
        extent.connections.iter().map(|c| case(&format!("{c} conn."), SMALL, job(*c))).collect();
    if extent.tools.contains(&Tool::LONGTAIL) {
        let own_clock = || Contender::ours(OWN_CLOCK, &["--timestamps", "user"]);
        for case in &mut all {
            case.contenders.insert(1, own_clock());
        }
    }
    let close = Job { keep_alive: false, ..job(SOME) };
    let tls = Job { tls: true, ..job(SOME) };
    all.push(case("16 conn., close", SMALL, close));
    all.push(case("16 conn., TLS", SMALL, tls));
    if !extent.quick {
        all.push(case("16 conn., TLS, close", SMALL, Job { tls: true, ..close }));
        all.push(case("16 conn., 100 KB", 100_000, job(SOME)));
        all.push(case("16 conn., 2 MB", 2_000_000, job(SOME)));
        all.push(case("16 conn., TLS, 2 MB", 2_000_000, tls));
    }
    all
}

/// Against nginx, which is slower than a generator: one that sleeps between responses pays for each
/// wake-up and may be late.
pub(super) fn idle_cases(extent: &Extent) -> Vec<Case> {
    let all: &[u32] = if extent.quick { &[4] } else { &[1, 4, 16, 64, 256] };
    let case = |connections: &u32, tls: bool| Case {
        name: format!("nginx, {connections} conn.{}", if tls { ", TLS" } else { "" }),
        server: Kind::Nginx,
        job: Job { tls, ..Job::closed(*connections, End::After(extent.length)) },
        contenders: extent.contenders(if extent.quick || tls {
            &[Tool::LONGTAIL, Tool::WRK]
        } else {
            &[Tool::LONGTAIL, Tool::Floor, Tool::WRK]
        }),
    };
    let plain = all.iter().map(|connections| case(connections, false));
    plain.chain(all.iter().map(|connections| case(connections, true))).collect()
}

/// The cases one by one.
pub(super) fn details(cases: &[Done]) -> String {
    cases.iter().filter(|done| done.failure.is_none()).map(detail).collect()
}

pub(super) fn text(cases: &[Done]) -> String {
    format!("{}\n{}\n{}", details(cases), summary(cases, "longtail"), summary(cases, OWN_CLOCK))
}

/// One case, with a line for each tool.
fn detail(done: &Done) -> String {
    let mut table = Table::new(&[
        "|received||CPU us||||instructions a request||||cycles|server|server CPU us||un-",
        "|req/s|x wrk|a req.|x wrk|[interval]|x floor|user|kernel|x wrk|x floor|x wrk|busy|a \
         req.|x wrk|claimed",
    ]);
    let wrk = done.entry("wrk");
    let floor = done.entry("floor");
    for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
        let cpu = |sample: &Sample| Some(sample.cpu());
        let times_wrk = entry.times(wrk, cpu);
        table.row([
            entry.contender.name.clone(),
            shown(entry.middle(|sample| sample.rate_per_s), |middle| number::rate(middle.median)),
            times(entry.times(wrk, |sample| sample.rate_per_s)),
            shown(entry.middle(cpu), |middle| micros(middle.median)),
            times(times_wrk),
            shown(times_wrk.filter(|middle| middle.of > 1), interval),
            times(entry.times(floor, cpu)),
            count(entry, Sample::instructions_user),
            count(entry, Sample::instructions_kernel),
            times(entry.times(wrk, Sample::instructions)),
            times(entry.times(floor, Sample::instructions)),
            times(entry.times(wrk, Sample::cycles)),
            shown(entry.middle(|sample| sample.server_busy), |busy| {
                format!("{:.0} %", busy.median * 100.0)
            }),
            shown(entry.middle(Sample::server_cpu), |middle| micros(middle.median)),
            times(entry.times(wrk, Sample::server_cpu)),
            shown(entry.unclaimed(), |n| n.to_string()),
        ]);
    }
    format!("\n{}\n{}", done.case.name, table.text())
}

/// One line for each case: longtail under this name, compared with wrk and the floor; empty if it
/// did not run.
fn summary(cases: &[Done], name: &str) -> String {
    let first = format!("{name}|CPU us|CPU time|||instructions||cycles||received|server CPU|");
    let mut table = Table::new(&[
        &first,
        "|a req.|x wrk|[interval]|x floor|x wrk|x floor|x wrk|x floor|x wrk|x wrk|[interval]",
    ]);
    let mut is_empty = true;
    for done in cases {
        let Some(ours) = done.entry(name).filter(|ours| !ours.samples.is_empty()) else { continue };
        is_empty = false;
        let wrk = done.entry("wrk");
        let floor = done.entry("floor");
        let cpu = |sample: &Sample| Some(sample.cpu());
        let times_wrk = ours.times(wrk, cpu);
        table.row([
            done.case.name.clone(),
            shown(ours.middle(cpu), |middle| micros(middle.median)),
            times(times_wrk),
            shown(times_wrk.filter(|middle| middle.of > 1), interval),
            times(ours.times(floor, cpu)),
            times(ours.times(wrk, Sample::instructions)),
            times(ours.times(floor, Sample::instructions)),
            times(ours.times(wrk, Sample::cycles)),
            times(ours.times(floor, Sample::cycles)),
            times(ours.times(wrk, |sample| sample.rate_per_s)),
            times(ours.times(wrk, Sample::server_cpu)),
            shown(ours.times(wrk, Sample::server_cpu).filter(|middle| middle.of > 1), interval),
        ]);
    }
    if is_empty { String::new() } else { table.text() }
}

fn count(entry: &Entry, figure: fn(&Sample) -> Option<f64>) -> String {
    shown(entry.middle(figure), |middle| number::fixed(middle.median, 0))
}

/// A ratio.
pub(super) fn times(middle: Option<Middle>) -> String {
    shown(middle, |middle| number::fixed(middle.median, 2))
}

/// The interval of a ratio.
pub(super) fn interval(middle: Middle) -> String {
    format!("[{}..{}]", number::fixed(middle.low, 2), number::fixed(middle.high, 2))
}

/// Nanoseconds as microseconds.
pub(super) fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    number::fixed(us, if us < 100.0 { 2 } else { 0 })
}

/// System calls per request, of all threads of a program, from its start to its end.
pub(super) fn call_cases(extent: &Extent) -> Vec<Case> {
    let quick = [Tool::LONGTAIL, Tool::Floor, Tool::WRK];
    vec![Case {
        name: "system calls, 64 conn.".to_owned(),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job::closed(64, End::After(extent.length)),
        contenders: extent.contenders(if extent.quick { &quick } else { &Tool::ALL }),
    }]
}

pub(super) fn call_text(cases: &[Done]) -> String {
    let mut text = String::new();
    for done in cases {
        let mut table = Table::new(&["|calls a request"]);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let calls =
                shown(entry.middle(Sample::calls), |middle| number::fixed(middle.median, 2));
            table.row([entry.contender.name.clone(), calls]);
        }
        let _ = write!(text, "\n{}\n{}", done.case.name, table.text());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counted;
    use crate::tools::Tool;
    use crate::tools::ToolReport;

    fn entry(tool: Tool, factor: f64) -> Entry {
        let sample = |round: u32| Sample {
            round,
            received: 1000,
            rate_per_s: Some(50_000.0 * factor),
            server_busy: Some(0.5),
            counted: Counted {
                cpu_ns: Some(20e6 * factor),
                instructions_user: Some(500e3 * factor),
                instructions_kernel: Some(13e6 * factor),
                cycles_user: Some(1e6 * factor),
                cycles_kernel: Some(9e6 * factor),
                ..Counted::default()
            },
            reported: ToolReport { requests: Some(998), ..ToolReport::default() },
            ..Sample::default()
        };
        Entry {
            contender: Contender::of(tool),
            samples: (1..=3).map(sample).collect(),
            failures: vec![],
        }
    }

    fn done() -> Done {
        let case = Case {
            name: "16 conn.".to_owned(),
            server: Kind::Nginx,
            job: Job::closed(16, End::Requests(1)),
            contenders: vec![],
        };
        let mut hey = entry(Tool::HEY, 4.0);
        hey.samples.iter_mut().for_each(|sample| sample.counted = Counted::default());
        hey.samples.truncate(1);
        let entries =
            vec![entry(Tool::LONGTAIL, 0.5), entry(Tool::Floor, 0.25), entry(Tool::WRK, 1.0), hey];
        Done { case, entries, failure: None, lateness: None }
    }

    #[test]
    fn a_case_has_a_line_for_each_tool() {
        golden("case.txt", &detail(&done()));
    }

    #[test]
    fn the_summary_has_a_line_for_each_case() {
        golden("summary.txt", &summary(&[done()], "longtail"));
    }

    fn golden(name: &str, text: &str) {
        testkit::golden::expect(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name),
            text,
        );
    }
}
