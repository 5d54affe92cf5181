//! Where the response time went: an equation a run and one of its slowest requests; and what the kernel's tracepoints tell of
//! each process of the server.

use model::anatomy::{AnatomySums, AppSource};
use model::kernel::{KernelView, PathSums, ProcessWaits, RequestPaths};
use model::{Nanos, Run, Socket, SweepStudy, Waits};

use crate::named_runs::{NamedRun, name_in_sweep};
use crate::number::{self, NONE, or_none};
use crate::tree::{ColumnBand, DataTable, ListItem, ReportSection, TableCell, TableColumn, TableRow};
use crate::verdicts;

/// A row for each worker of each run that was listened to, of servers on these kinds of socket.
pub(crate) fn section(runs: &[NamedRun<'_>], sockets: &[Socket]) -> Option<ReportSection> {
    let views = runs.iter().filter_map(|NamedRun { name, run }| Some((name, run.kernel.as_ref()?)));
    let new = TableColumn::new;
    let [accept, receive, server] =
        ["accept queue", "receive queue", "in server"].map(|title| ColumnBand::new(title, title));
    let of_wait = |names: &'static [&'static str], band| names.iter().copied().map(move |name| new(name).under(band));
    let columns = [new(""), new("worker"), new("answers")].into_iter();
    let columns = columns
        .chain(of_wait(&["mean", "p50", "p99"], &accept))
        .chain(of_wait(&["mean", "p99"], &receive))
        .chain(of_wait(&["mean", "p50", "p99"], &server))
        .chain([new("CPU wait")]);
    let table =
        DataTable { lead: 2, ..DataTable::of_columns(columns, views.flat_map(|(name, view)| rows(name, view))) };
    let has_tls = sockets.iter().any(|socket| matches!(socket, Socket::Ssl4 | Socket::Ssl6));
    let words = [
        "accept queue: of a connection, until it is accepted; receive queue: of a request, from then or its arrival until it is read",
        "in server: from there to its answer; CPU wait: of a thread, from being ready to running; answers: of the whole run",
        if has_tls { "over TLS connections and threads alone are seen, and no requests" } else { "" },
    ];
    let section = ReportSection::detail("waits by the kernel's tracepoints (BPF), means and percentiles in ms");
    (!table.rows.is_empty()).then(|| section.paragraphs(words).table(table))
}

fn rows(label: &str, view: &KernelView) -> Vec<TableRow> {
    let worked = |process: &&ProcessWaits| process.answers > 0 || process.accept_queue.count > 0;
    let row = |(place, process): (usize, &ProcessWaits)| {
        let mean = |waits: &Waits| TableCell::time(waits.mean());
        let at = |waits: &Waits, quantile| TableCell::time(waits.quantile(quantile));
        let (accept, receive, server) = (&process.accept_queue, &process.receive_queue, &process.in_server);
        TableRow::new([
            if place == 0 { label.into() } else { TableCell::default() },
            process.pid.to_string().into(),
            // Over TLS answers cannot be known.
            if process.answers > 0 { TableCell::count(process.answers) } else { NONE.into() },
            mean(accept),
            at(accept, 0.5),
            at(accept, 0.99),
            mean(receive),
            at(receive, 0.99),
            mean(server),
            at(server, 0.5),
            at(server, 0.99),
            mean(&process.run_queue),
        ])
    };
    view.processes.iter().filter(worked).enumerate().map(row).collect()
}

/// Why there is no such table, where there might have been.
pub(crate) fn why_none(study: &SweepStudy) -> Option<String> {
    let why = study.probed.as_ref()?.why_no_bpf.as_ref()?;
    Some(format!("no tracepoints (BPF): {why}"))
}

/// An equation for each run that something is known of. Nothing of runs whose figures are not to be shown.
pub(crate) fn where_the_time_went(study: &SweepStudy) -> Option<ReportSection> {
    let asked = study.plan.stream.anatomy;
    let shown = study.runs.iter().filter(|run| !verdicts::hides(run.judgement.as_ref()));
    let items =
        shown.map(|run| ListItem { label: name_in_sweep(study, run), lines: of_run(run, asked), hints: Vec::new() });
    let items = items.filter(|item| !item.lines.is_empty());
    ReportSection::new("where the response time went, means in ms").list(items).filled()
}

fn of_run(run: &Run, asked: bool) -> Vec<String> {
    let ways = run.kernel.as_ref().and_then(|kernel| kernel.ways.as_ref());
    let silent = "the app did not say when it began and ended: it has to answer x-app-stamps (servers/README.md)";
    if let Some(ways) = ways.filter(|ways| ways.all.requests > 0) {
        let hint = ways.app.is_none().then(|| silent.to_owned());
        return equations(ways).into_iter().chain(hint).collect();
    }
    let in_line = run.accept_queue_wait();
    let Some(anatomy) = run.anatomy.as_ref().filter(|anatomy| anatomy.all.requests > 0) else {
        let silent = (asked && run.anatomy.is_none() && run.tally.counts.good() > 0).then(|| silent.to_owned());
        return queue_alone(run, in_line).into_iter().chain(silent).collect();
    };
    let mut lines = vec![parts_equation("response", &anatomy.all, anatomy.source, in_line)];
    if let Some(slowest) = &anatomy.slowest {
        let name = format!("slowest {}", number::count(slowest.requests));
        // The queue's length tells a mean over all requests, and nothing of these.
        lines.push(parts_equation(&name, slowest, anatomy.source, None));
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
fn parts_equation(name: &str, parts: &AnatomySums, source: AppSource, in_line: Option<Nanos>) -> String {
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

/// The ways as equations: of all, and of the slowest.
fn equations(ways: &RequestPaths) -> Vec<String> {
    let slowest = ways.slowest.as_ref().map(|parts| (format!("slowest {}", number::count(parts.requests)), parts));
    let all = std::iter::once(("response".to_owned(), &ways.all));
    all.chain(slowest).map(|(name, parts)| equation(&name, parts, ways.app)).collect()
}

/// `response 690 = send lag 0.02 + accept queue 365 + receive queue 0.14 + server queue 118 + app 201 + rest 6.00`.
fn equation(name: &str, parts: &PathSums, app: Option<AppSource>) -> String {
    let mean = |sum: Nanos| or_none(parts.mean(sum), number::milliseconds);
    let left = parts.left_in_server();
    let outside = parts.sending + parts.reading;
    let (in_server, rest) = match (app, parts.app) {
        (Some(AppSource::Stamps), Some(app)) => {
            let queue = parts.server_queue.unwrap_or(Nanos::ZERO);
            (format!("server queue {} + app {}", mean(queue), mean(app)), outside + left)
        }
        (_, Some(app)) => (format!("server {} + app (Server-Timing) {}", mean(left), mean(app)), outside),
        (_, None) => (format!("server and app {}", mean(left)), outside),
    };
    format!(
        "{name} {} = send lag {} + accept queue {} + receive queue {} + {in_server} + rest {}",
        mean(parts.response_time),
        mean(parts.send_lag),
        mean(parts.accept_queue),
        mean(parts.receive_queue),
        mean(rest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: PathSums = PathSums {
        requests: 1,
        response_time: Nanos::from_millis(690),
        send_lag: Nanos::from_millis(1),
        sending: Nanos::from_millis(2),
        accept_queue: Nanos::from_millis(360),
        receive_queue: Nanos::from_millis(3),
        in_server: Nanos::from_millis(320),
        server_queue: Some(Nanos::from_millis(118)),
        app: Some(Nanos::from_millis(200)),
        reading: Nanos::from_millis(4),
    };

    #[test]
    fn what_is_not_known_is_one_part_with_what_it_is_in() {
        let stamps = equation("response", &PARTS, Some(AppSource::Stamps));
        assert!(stamps.ends_with("receive queue 3.00 + server queue 118 + app 200 + rest 8.00"), "{stamps}");
        let timing = PathSums { server_queue: None, ..PARTS };
        let timing = equation("response", &timing, Some(AppSource::ServerTiming));
        assert!(timing.ends_with("+ server 120 + app (Server-Timing) 200 + rest 6.00"), "{timing}");
        let silent = equation("response", &PathSums { server_queue: None, app: None, ..PARTS }, None);
        assert!(silent.ends_with("+ server and app 320 + rest 6.00"), "{silent}");
    }
}
