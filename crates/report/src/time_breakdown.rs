//! Where the response time went: the mean of a run's requests and of its slowest, divided into
//! parts that add up. The full report writes them as an equation, the page draws them as bars.

use judge::named_runs::{NamedRun, is_hidden};
use model::app_time::{AppSource, AppTimeSums};
use model::kernel::{PathSums, RequestPaths};
use model::{Nanos, Run};

use crate::number;
use crate::tree::{ListItem, ReportSection};

/// A part of the response time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimePart {
    pub(crate) name: &'static str,
    /// Its class in the page's style sheet.
    pub(crate) class: &'static str,
    pub(crate) time: Nanos,
}

/// The mean response time of some requests, divided into parts.
pub(crate) struct TimeBreakdown {
    pub(crate) requests: u64,
    pub(crate) is_slowest: bool,
    pub(crate) whole: Nanos,
    pub(crate) parts: Vec<TimePart>,
}

impl TimeBreakdown {
    /// The response time of all requests of a run, and of its slowest, by the best source there is:
    /// the kernel's stamps, else the app's, else the length of the accept queue.
    pub(crate) fn of(run: &Run) -> Vec<TimeBreakdown> {
        let app_times = run.app_times.as_ref().filter(|app_times| app_times.all.requests > 0);
        let (all, slowest) = if let Some(paths) = traced(run) {
            let of = |sums: &PathSums| of_path(sums, paths.app);
            (Some(of(&paths.all)), paths.slowest.as_ref().map(of))
        } else if let Some(app_times) = app_times {
            let of = |sums: &AppTimeSums, queues| of_app_times(sums, app_times.source, queues);
            // The queues' lengths tell a mean over all requests, and nothing of the slowest.
            let slowest = app_times.slowest.as_ref().map(|sums| of(sums, QueueWaits::default()));
            (Some(of(&app_times.all, QueueWaits::of(run))), slowest)
        } else {
            (by_queues(run), None)
        };
        let slowest = slowest.map(|divided| TimeBreakdown { is_slowest: true, ..divided });
        all.into_iter().chain(slowest).collect()
    }

    /// `response 690 = send lag 0.02 + accept queue 365 + receive queue 0.14 + server queue 118 +
    /// app 201 + rest 6.00`.
    fn equation(&self) -> String {
        let name = if self.is_slowest {
            format!("slowest {}", self.requests)
        } else {
            "response".to_owned()
        };
        let part = |part: &TimePart| format!("{} {}", part.name, number::milliseconds(part.time));
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        format!("{name} {} = {}", number::milliseconds(self.whole), parts.join(" + "))
    }
}

/// How long a request waited in each queue on average, inferred from the queue's length.
#[derive(Clone, Copy, Default)]
struct QueueWaits {
    accept_queue: Option<Nanos>,
    /// The server's own, where anything waited in it.
    server: Option<Nanos>,
}

impl QueueWaits {
    fn of(run: &Run) -> QueueWaits {
        QueueWaits {
            accept_queue: run.accept_queue_wait(),
            server: run.server_queue_wait().filter(|wait| *wait > Nanos::ZERO),
        }
    }

    /// The waits that are known.
    fn parts(self) -> Vec<TimePart> {
        let mut parts = Vec::new();
        if let Some(time) = self.accept_queue {
            parts.push(TimePart { name: "accept queue (by its length)", class: "accept", time });
        }
        if let Some(time) = self.server {
            parts.push(TimePart { name: "server's queue (by its length)", class: "server", time });
        }
        parts
    }

    fn sum(self) -> Nanos {
        self.accept_queue.unwrap_or_default() + self.server.unwrap_or_default()
    }
}

/// An equation for each run of which the parts are known. Invalid runs are left out.
pub(crate) fn section(runs: &[NamedRun<'_>], is_asked: bool) -> Option<ReportSection> {
    const SILENT: &str = "the app did not say when it began and ended: it has to answer x-app-stamps (servers/README.md)";
    let item = |NamedRun { name, run }: &NamedRun<'_>| {
        let divided = TimeBreakdown::of(run);
        let is_silent = match traced(run) {
            Some(paths) => paths.app.is_none(),
            None => is_asked && run.app_times.is_none() && run.tally.counts.good() > 0,
        };
        let silent = is_silent.then(|| SILENT.to_owned());
        let lines = divided.iter().map(TimeBreakdown::equation).chain(silent).collect();
        ListItem { label: name.clone(), lines, hints: Vec::new() }
    };
    let shown = runs.iter().filter(|named| !is_hidden(named.run));
    let items = shown.map(item).filter(|item| !item.lines.is_empty());
    ReportSection::new("where the response time went, means in ms").list(items).filled()
}

/// What the kernel's tracepoints saw of a run's requests.
fn traced(run: &Run) -> Option<&RequestPaths> {
    run.kernel.as_ref()?.paths.as_ref().filter(|paths| paths.all.requests > 0)
}

fn of_path(sums: &PathSums, source: Option<AppSource>) -> TimeBreakdown {
    let mean = |sum: Nanos| sums.mean(sum).unwrap_or_default();
    let part = |name, class, sum| TimePart { name, class, time: mean(sum) };
    let left = sums.left_in_server();
    let outside = sums.sending + sums.reading;
    let mut parts = vec![
        part("send lag", "rest", sums.send_lag),
        part("accept queue", "accept", sums.accept_queue),
        part("receive queue", "server", sums.receive_queue),
    ];
    match (source, sums.app) {
        (Some(AppSource::Stamps), Some(app)) => parts.extend([
            part("server queue", "server", sums.server_queue.unwrap_or_default()),
            part("app", "app", app),
            part("rest", "rest", outside + left),
        ]),
        (_, Some(app)) => parts.extend([
            part("server", "server", left),
            part("app (Server-Timing)", "app", app),
            part("rest", "rest", outside),
        ]),
        (_, None) => {
            parts.extend([part("server and app", "app", left), part("rest", "rest", outside)]);
        }
    }
    TimeBreakdown {
        requests: sums.requests,
        is_slowest: false,
        whole: mean(sums.response_time),
        parts,
    }
}

fn of_app_times(sums: &AppTimeSums, source: AppSource, queues: QueueWaits) -> TimeBreakdown {
    let mean = |sum: Nanos| sums.mean(sum).unwrap_or_default();
    let part = |name, class, time| TimePart { name, class, time };
    let rest = mean(sums.rest());
    // Where the app does not say when it began, the wait before it is part of the rest.
    let before = sums.before_app.map(mean);
    let waiting = before.unwrap_or(rest);
    let queues = if queues.sum() <= waiting { queues } else { QueueWaits::default() };
    let left = waiting.saturating_sub(queues.sum());
    let mut parts = vec![part("send lag", "rest", mean(sums.send_lag))];
    parts.extend(queues.parts());
    let class = if queues.accept_queue.is_some() { "server" } else { "waiting" };
    parts.extend(before.map(|_| part("before the app", class, left)));
    let app = if source == AppSource::ServerTiming { "app (Server-Timing)" } else { "app" };
    parts.push(part(app, "app", mean(sums.app)));
    parts.push(if before.is_some() {
        part("rest", "rest", rest)
    } else {
        part("before and after it", "waiting", left)
    });
    TimeBreakdown {
        requests: sums.requests,
        is_slowest: false,
        whole: mean(sums.response_time),
        parts,
    }
}

fn by_queues(run: &Run) -> Option<TimeBreakdown> {
    let whole = run.tally.response_time.mean()?;
    let queues = QueueWaits::of(run);
    // At least one of the two waits must be known.
    queues.accept_queue.or(queues.server)?;
    // Waits that add up to more than the whole are wrong; a warning says so.
    let rest = Nanos(whole.0.checked_sub(queues.sum().0)?);
    let mut parts = queues.parts();
    parts.push(TimePart { name: "server, app and the rest", class: "rest", time: rest });
    Some(TimeBreakdown { requests: run.tally.counts.good(), is_slowest: false, whole, parts })
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
    fn a_part_that_is_not_known_is_counted_in_the_part_around_it() {
        let timing = PathSums { server_queue: None, ..PARTS };
        for (sums, source, end) in [
            (
                PARTS,
                Some(AppSource::Stamps),
                "+ receive queue 3.00 + server queue 118 + app 200 + rest 8.00",
            ),
            (
                timing,
                Some(AppSource::ServerTiming),
                "+ server 120 + app (Server-Timing) 200 + rest 6.00",
            ),
            (PathSums { app: None, ..timing }, None, "+ server and app 320 + rest 6.00"),
        ] {
            let divided = of_path(&sums, source);
            assert!(divided.equation().ends_with(end), "{}", divided.equation());
            assert_eq!(divided.parts.iter().map(|part| part.time).sum::<Nanos>(), divided.whole);
        }
    }
}
