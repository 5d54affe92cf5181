//! longtail's own study files, held against themselves: every figure that follows from others is computed again, so that
//! a file that was tampered with, or written wrongly, is found out.
//!
//! | file | what is in it |
//! |---|---|
//! | `file` | the keys that are needed |
//! | `tally` | what was recorded |
//! | `judged` | what was made of it |
//! | `watched` | what was read of the server meanwhile, and the parts of response times |
//! | `claimed` | runs of other generators: their output, read again |

mod book;
mod claimed;
mod file;
mod judged;
mod tally;
mod watched;

use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;
use crate::{Audited, Finding, Verdict};
use book::Book;
use file::{File, Load, LoadPlan, Run, Stop, Sweep};
use tally::Drive;

use crate::check::Check;

/// A later study may mean other things by its keys.
const SCHEMA: u64 = 1;

/// The runs of a study file, checked; `None` where the text is no such file.
///
/// # Errors
/// Where it is one, and lacks what every study has, or is of a later schema.
pub fn study(text: &str) -> Option<Result<Vec<Audited>, String>> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let schema = value.get("schema")?;
    value.get("command")?;
    if schema.as_u64().is_none_or(|schema| schema > SCHEMA) {
        return Some(Err(format!("the study has schema {schema}, and this audit reads up to {SCHEMA}")));
    }
    // From the text and not from the value: only so does an error name its line.
    Some(
        serde_json::from_str::<File>(text).map_err(|error| format!("not a whole study: {error}")).map(|file| of(&file)),
    )
}

fn of(file: &File) -> Vec<Audited> {
    match file {
        File::Sweep(sweep) => of_sweep(sweep),
        File::Load(load) => vec![of_load(load)],
        File::LoadWith(load) => vec![claimed::audited(&load.run, Some(load.plan.url.clone()), load.plan.connections)],
    }
}

fn of_load(load: &Load) -> Audited {
    let LoadPlan { url, pace, think_ns, connections, length_ns, requests_total, pipeline } = &load.plan;
    let is_closed = pace.kind == "closed";
    let drive = Drive {
        connections: *connections,
        at_once: is_closed.then(|| connections.saturating_mul(*pipeline)),
        is_busy: is_closed && *think_ns == 0 && requests_total.is_none(),
        length_ns: *length_ns,
        has_count: requests_total.is_some(),
        // Where time may end it too, the count is only a limit.
        planned: requests_total.filter(|_| length_ns.is_none()).or_else(|| scheduled(&load.plan)),
        // The last burst of a schedule is in the window as a whole or not at all.
        slack: if requests_total.is_some() { 0 } else { pace.burst.unwrap_or(1) },
        interrupted: load.interrupted,
    };
    audited(&load.run, drive, url.clone(), Vec::new())
}

/// Requests that evenly spaced arrivals at one rate make due in the time.
fn scheduled(plan: &LoadPlan) -> Option<u64> {
    let is_even = plan.pace.arrivals.as_deref() == Some("constant") && plan.requests_total.is_none();
    let rate = plan.pace.profile.as_ref()?.rate_per_s.filter(|_| is_even)?;
    Some((rate * plan.length_ns? as f64 / 1e9).round() as u64)
}

fn of_sweep(sweep: &Sweep) -> Vec<Audited> {
    let mut all: Vec<Audited> = sweep.runs.iter().map(|run| of_row(sweep, run)).collect();
    for row in &sweep.claimed_runs {
        let mut one = claimed::audited(&row.run, Some(format!("{:.2} x", row.multiple)), row.run.connections);
        let known = sweep.service_time.as_ref();
        one.findings.extend(judged::theory(
            (row.multiple, row.run.connections),
            row.forecast.as_ref(),
            &sweep.server,
            known,
        ));
        one.verdict = Verdict::of(&one.findings);
        all.push(one);
    }
    if let Some(first) = all.first_mut() {
        first.findings.extend(of_whole(sweep));
        first.verdict = Verdict::of(&first.findings);
    }
    all
}

fn of_row(sweep: &Sweep, run: &Run) -> Audited {
    let connections = run.connections.unwrap_or(0);
    let interrupted = run.warnings.iter().any(|warning| warning.code == "interrupted");
    let (length_ns, planned) = match sweep.plan.stream.stop {
        Stop::AfterNs(length) => (Some(length), None),
        Stop::RequestsPerConnection(each) => (None, Some(each.saturating_mul(connections))),
    };
    let drive = Drive {
        connections,
        at_once: Some(connections),
        is_busy: true,
        length_ns,
        has_count: false,
        planned,
        slack: 0,
        interrupted,
    };
    let multiple = run.multiple.unwrap_or(0.0);
    let pass = if sweep.plan.repeat > 1 { format!(", run {}", run.repeat) } else { String::new() };
    let known = sweep.service_time.as_ref();
    let theory = judged::theory((multiple, connections), run.forecast.as_ref(), &sweep.server, known);
    audited(run, drive, format!("{multiple:.2} x{pass}"), theory)
}

/// What is of the sweep as a whole: its runs, their order, and its time.
fn of_whole(sweep: &Sweep) -> Vec<Finding> {
    let mut book = Book::of(Check::Runs);
    let done = (sweep.runs.len() + sweep.claimed_runs.len()) as u64;
    let planned = (sweep.plan.multiples.len() as u64).saturating_mul(sweep.plan.repeat);
    book.within("runs", done, u64::from(!sweep.interrupted), planned);
    let elapsed = sweep.runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.elapsed_ns));
    book.at_least("total_time_ns", sweep.total_time_ns, elapsed);
    let mut order = sweep.plan.multiples.iter().cycle();
    for run in &sweep.runs {
        if let (Some(multiple), Some(asked)) = (run.multiple, order.next()) {
            book.near("multiple", multiple, *asked, 0.0);
        }
    }
    for (at, run) in sweep.runs.iter().enumerate() {
        book.equal("repeat", run.repeat, at as u64 / sweep.plan.multiples.len().max(1) as u64 + 1);
    }
    book.findings()
}

fn audited(run: &Run, drive: Drive, name: String, more: Vec<Finding>) -> Audited {
    let mut claim = Claim::new(Tool::Longtail, 1);
    let seconds = |ns: u64| Printed { value: ns as f64 / 1e9, half_width: 5e-10, decimals: 9 };
    let times = &run.tally.response_time;
    claim.name = Some(name);
    claim.connections = Some(drive.connections);
    claim.requests = Some(run.tally.total());
    claim.rate_per_s = judged::rate(run).map(|value| Printed { value, half_width: 0.0, decimals: 9 });
    claim.mean_s = judged::mean_s(run).map(|value| Printed { value, half_width: 5e-10, decimals: 9 });
    claim.max_s = Some(seconds(times.max_ns)).filter(|_| times.count > 0);
    let percentile = |quantile| Some(Percentile { quantile, time_s: seconds(times.quantile(quantile)?) });
    claim.percentiles = [0.5, 0.9, 0.99].into_iter().filter_map(percentile).collect();
    let mut findings = tally::findings(run, drive);
    findings.extend(judged::littles_law(run, drive));
    findings.extend(judged::gates(run, drive));
    findings.extend(judged::warnings(run));
    findings.extend(watched::findings(run));
    findings.extend(more);
    Audited { claim, verdict: Verdict::of(&findings), findings }
}
