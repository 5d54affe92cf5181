//! What is known while a run goes on: how many requests have ended, and the last looks at server and kernel.

use crate::family::{ExportedMetric, Labels, MetricFamily, MetricPoint, PointValue, metrics};

/// The run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// Which, from 1.
    pub number: u64,
    /// Its connections.
    pub connections: u32,
    /// The last look at each quantity, of those that were looked at lately: what, as a curve of [`model::Watch`] is named;
    /// of which worker, empty for the whole server; and the value.
    pub samples: Vec<(&'static str, String, u64)>,
}

metrics! {
    BUILD_INFO = "longtail.build_info" None, "1, with the version of longtail";
    REQUESTS_ENDED = counter "longtail.requests_ended" None,
        "Requests that have ended in whichever way, in all runs so far, warm-up included";
    RUNS_DONE = counter "longtail.runs_done" None, "Runs that are over";
    CONNECTIONS = "longtail.now.connections" Connections,
        "Connections of the run that goes on, in an open loop the most it may open; absent between runs";
    ACCEPT_QUEUE = "longtail.now.accept_queue_connections" Connections,
        "Connections in the kernel's accept queue at the last sample; absent between runs";
    OPEN_CONNECTIONS = "longtail.now.open_connections" Connections,
        "The server's ends of connections at the last sample, those in the accept queue included; absent between runs";
    BACKLOG = "longtail.now.backlog_requests" Requests,
        "Requests that wait inside a worker by the server's last statistics; absent between runs";
    BUSY_THREADS = "longtail.now.busy_threads" Threads,
        "Threads of a worker that are taken by the server's last statistics; absent between runs";
    FREE_THREADS = "longtail.now.free_threads" Threads,
        "Threads that a worker could still take by the server's last statistics; absent between runs";
}

/// What the protocols call the samples that they carry.
static READINGS: [(&str, &ExportedMetric); 5] = [
    ("accept_queue", &ACCEPT_QUEUE),
    ("open_connections", &OPEN_CONNECTIONS),
    ("backlog", &BACKLOG),
    ("busy_threads", &BUSY_THREADS),
    ("pool_capacity", &FREE_THREADS),
];

/// The families of now: requests that have ended in all runs, warm-up included, runs that are over, and the run that goes on.
pub fn live(requests_ended: u64, runs_done: u64, run: Option<&LiveRun>) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    let mut add = |metric, labels, value: f64| {
        MetricFamily::add(&mut families, metric, MetricPoint { labels, value: PointValue::Number(value) });
    };
    add(&BUILD_INFO, vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    add(&REQUESTS_ENDED, Labels::new(), requests_ended as f64);
    add(&RUNS_DONE, Labels::new(), runs_done as f64);
    if let Some(run) = run {
        add(&CONNECTIONS, vec![("run", run.number.to_string())], f64::from(run.connections));
        for (sample, metric) in READINGS {
            for (_, of, value) in run.samples.iter().filter(|(name, ..)| *name == sample) {
                let worker = (!of.is_empty()).then(|| ("worker", of.clone()));
                add(metric, worker.into_iter().collect(), *value as f64);
            }
        }
    }
    families
}
