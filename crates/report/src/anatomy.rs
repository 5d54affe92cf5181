//! Where the response time went: an equation a run, and one of its slowest requests.

use model::anatomy::{AppSource, Parts};
use model::{Nanos, Run, SweepStudy};

use crate::facts;
use crate::kernel;
use crate::number;
use crate::verdicts;

/// What stands above the lines.
pub(crate) const TITLE: &str = "where the response time went, means in ms";

/// For each run that something is known of: its name, and what is said of it, a line each. Nothing of runs whose figures are
/// not to be shown.
pub(crate) fn lines(study: &SweepStudy) -> Vec<(String, Vec<String>)> {
    let asked = study.plan.stream.anatomy;
    let shown = study.runs.iter().filter(|run| !verdicts::hides(run.judgement.as_ref()));
    let said = shown.map(|run| (facts::label(study, run), of_run(run, asked)));
    said.filter(|(_, lines)| !lines.is_empty()).collect()
}

fn of_run(run: &Run, asked: bool) -> Vec<String> {
    let ways = run.kernel.as_ref().and_then(|kernel| kernel.ways.as_ref());
    let silent = "the app did not say when it began and ended: it has to answer x-app-stamps (servers/README.md)";
    if let Some(ways) = ways.filter(|ways| ways.all.requests > 0) {
        let hint = ways.app.is_none().then(|| silent.to_owned());
        return kernel::equations(ways).into_iter().chain(hint).collect();
    }
    let in_line = run.accept_queue_wait();
    let Some(anatomy) = run.anatomy.as_ref().filter(|anatomy| anatomy.all.requests > 0) else {
        let silent = (asked && run.anatomy.is_none() && run.tally.counts.good() > 0).then(|| silent.to_owned());
        return queue_alone(run, in_line).into_iter().chain(silent).collect();
    };
    let mut lines = vec![equation("response", &anatomy.all, anatomy.source, in_line)];
    if let Some(slowest) = &anatomy.slowest {
        let name = format!("slowest {}", number::count(slowest.requests));
        // The queue's length tells a mean over all requests, and nothing of these.
        lines.push(equation(&name, slowest, anatomy.source, None));
    }
    lines
}

/// `response 690 = accept queue 365 (by its length) + server, app and the rest 325`.
fn queue_alone(run: &Run, in_line: Option<Nanos>) -> Option<String> {
    let (in_line, whole) = (in_line?, run.tally.response_time.mean()?);
    // More than the whole is no part: the warning says so.
    let rest = whole.0.checked_sub(in_line.0).map(Nanos)?;
    let (whole, in_line, rest) = (shown(whole), shown(in_line), shown(rest));
    Some(format!("response {whole} = accept queue {in_line} (by its length) + server, app and the rest {rest}"))
}

/// `response 690 = send lag 0.02 + before the app 483 (accept queue 365 by its length) + app 201 + rest 6.00`.
fn equation(name: &str, parts: &Parts, source: AppSource, in_line: Option<Nanos>) -> String {
    let mean = |sum| number::or_none(parts.mean(sum), shown);
    let queue = in_line.map(|time| format!(" (accept queue {} by its length)", shown(time))).unwrap_or_default();
    let left = mean(parts.rest());
    let (before, rest) = match parts.before_app {
        Some(before) => (format!(" + before the app {}{queue}", mean(before)), format!("rest {left}")),
        None => (String::new(), format!("before and after it {left}{queue}")),
    };
    let app = if source == AppSource::ServerTiming { "app (Server-Timing)" } else { "app" };
    format!(
        "{name} {} = send lag {}{before} + {app} {} + {rest}",
        mean(parts.response_time),
        mean(parts.send_lag),
        mean(parts.app)
    )
}

fn shown(time: Nanos) -> String {
    number::milliseconds(time)
}
