//! What the kernel's tracepoints tell: a line for each process of the server that had requests, and where each request's time went.

use model::anatomy::AppSource;
use model::kernel::{KernelView, ProcessWaits, WayParts, Ways};
use model::{Nanos, Socket, SweepStudy, Waits};

use crate::facts::Labelled;
use crate::number::{self, NONE, or_none};

/// What the columns are: of each wait its mean and percentiles.
pub(crate) const HEAD: [&str; 12] = [
    "",
    "worker",
    "answers",
    "accept queue",
    "p50",
    "p99",
    "receive queue",
    "p99",
    "in server",
    "p50",
    "p99",
    "CPU wait",
];

/// Whether the table may be parted before that column, run and worker not counted: percentiles stay with their wait.
pub(crate) fn may_part(column: usize) -> bool {
    !matches!(column, 2 | 3 | 5 | 7 | 8)
}

/// What stands above the lines.
pub(crate) const TITLE: &str = "waits by the kernel's tracepoints (BPF), means and percentiles in ms";

/// What the columns mean.
const WORDS: [&str; 2] = [
    "accept queue: of a connection, until it is accepted; receive queue: of a request, from then or its arrival until it is read",
    "in server: from there to its answer; CPU wait: of a thread, from being ready to running; answers: of the whole run",
];

/// A line for each worker of each run that was listened to.
pub(crate) fn lines(runs: &[Labelled<'_>]) -> Vec<Vec<String>> {
    let heard = runs.iter().filter_map(|Labelled { label, run }| Some((label, run.kernel.as_ref()?)));
    heard.flat_map(|(label, view)| of_run(label, view)).collect()
}

fn of_run(label: &str, view: &KernelView) -> Vec<Vec<String>> {
    let worked = |process: &&ProcessWaits| process.answers > 0 || process.accept_queue.count > 0;
    let line = |(place, process): (usize, &ProcessWaits)| {
        let mean = |waits: &Waits| or_none(waits.mean(), number::milliseconds);
        let at = |waits: &Waits, q| or_none(waits.quantile(q), number::milliseconds);
        let (accept, receive, server) = (&process.accept_queue, &process.receive_queue, &process.in_server);
        vec![
            if place == 0 { label.to_owned() } else { String::new() },
            process.pid.to_string(),
            // Over TLS answers cannot be told.
            if process.answers > 0 { number::count(process.answers) } else { NONE.to_owned() },
            mean(accept),
            at(accept, 0.5),
            at(accept, 0.99),
            mean(receive),
            at(receive, 0.99),
            mean(server),
            at(server, 0.5),
            at(server, 0.99),
            mean(&process.run_queue),
        ]
    };
    view.processes.iter().filter(worked).enumerate().map(line).collect()
}

/// What the columns mean, and what is not in them.
pub(crate) fn words(sockets: &[Socket]) -> Vec<&'static str> {
    let has_tls = sockets.iter().any(|socket| matches!(socket, Socket::Ssl4 | Socket::Ssl6));
    WORDS
        .into_iter()
        .chain(has_tls.then_some("over TLS connections and threads alone are seen, and no requests"))
        .collect()
}

/// Why there are no such lines, where there might have been.
pub(crate) fn why_none(study: &SweepStudy) -> Option<String> {
    let why = study.probed.as_ref()?.why_no_bpf.as_ref()?;
    Some(format!("no tracepoints (BPF): {why}"))
}

/// The ways as equations: of all, and of the slowest.
pub(crate) fn equations(ways: &Ways) -> Vec<String> {
    let slowest = ways.slowest.as_ref().map(|parts| (format!("slowest {}", number::count(parts.requests)), parts));
    let all = std::iter::once(("response".to_owned(), &ways.all));
    all.chain(slowest).map(|(name, parts)| equation(&name, parts, ways.app)).collect()
}

/// `response 690 = send lag 0.02 + accept queue 365 + receive queue 0.14 + server queue 118 + app 201 + rest 6.00`.
fn equation(name: &str, parts: &WayParts, app: Option<AppSource>) -> String {
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

    const PARTS: WayParts = WayParts {
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
        let timing = WayParts { server_queue: None, ..PARTS };
        let timing = equation("response", &timing, Some(AppSource::ServerTiming));
        assert!(timing.ends_with("+ server 120 + app (Server-Timing) 200 + rest 6.00"), "{timing}");
        let silent = equation("response", &WayParts { server_queue: None, app: None, ..PARTS }, None);
        assert!(silent.ends_with("+ server and app 320 + rest 6.00"), "{silent}");
    }
}
