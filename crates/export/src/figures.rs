//! All exported metrics: of a finished run of a sweep or load, and of the current run.
//!
//! A value that is not known is left out, and an INVALID run has no times and no rates: what a
//! report does not print, no protocol carries.

use judge::checks::LOAD_PERCENTILES;
use judge::named_runs::is_hidden;
use model::counts::name;
use model::run::PERCENTILES;
use model::{Histogram, LoadStudy, Nanos, Pace, Quantile, Run, SweepStudy, Waits};

use crate::family::{ExportedMetric, Labels, MetricFamily, MetricPoint, PointValue, metrics};

metrics! {
    VERDICT = "longtail.run.verdict" None,
        "1 for each run that is over, with what limited it";
    WARNINGS = "longtail.run.caveats" None,
        "Doubts about the run";
    CONNECTIONS = "longtail.run.connections" Connections,
        "Connections that the run had";
    MEASURED = "longtail.run.measured" Seconds,
        "Length of the measured window";
    GOOD_REQUESTS = "longtail.run.good_requests" Requests,
        "Measured requests that had a good response";
    PLANNED_REQUESTS = "longtail.run.planned_requests" Requests,
        "Measured requests by how they ended; together all that were planned";
    BAD_RESPONSES = "longtail.run.bad_responses" Requests,
        "Measured requests that ended in a bad response, by what was wrong with it";
    WORKER_REQUESTS = "longtail.run.worker_requests" Requests,
        "Requests of the run that each worker of the server had";
    ACCEPT_QUEUE_MEAN = "longtail.run.accept_queue_mean_connections" Connections,
        "Connections in the kernel's accept queue, mean over the window";
    ACCEPT_QUEUE_MOST = "longtail.run.accept_queue_most_connections" Connections,
        "Connections in the kernel's accept queue at most, at any sample";
    OPEN_MEAN = "longtail.run.open_mean_connections" Connections,
        "The server's ends of connections, those in the accept queue included, mean over the \
         window";
    BACKLOG_MOST = "longtail.run.backlog_most_requests" Requests,
        "Requests that wait inside a worker at most, by the server's statistics";
    COMPLETED = "longtail.run.completed_requests" RequestsPerSecond,
        "Good responses per second of the measured window";
    SENT = "longtail.run.sent_requests" RequestsPerSecond,
        "Requests sent per second of the measured window";
    OFFERED = "longtail.run.offered_requests" RequestsPerSecond,
        "Requests per second that the schedule wanted sent";
    RESPONSE_TIME = "longtail.run.response_time" Seconds,
        "Response time, from when a request was due to its response's last byte, of a run that is \
         over; sum and count are of the good responses";
    LONGEST_RESPONSE_TIME = "longtail.run.longest_response_time" Seconds,
        "The longest response time of a run that is over; absent where a request has no response";
    SERVICE_TIME = "longtail.run.service_time" Seconds,
        "Service time, from when a request was sent to its response's last byte, of a run that is \
         over; sum and count are of the good responses";
    GOOD_RESPONSE_TIME = "longtail.run.good_response_time" Seconds,
        "Response times of the good responses alone: what failed or has no response is in no \
         bucket";
    ACCEPT_QUEUE_WAIT = "longtail.run.accept_queue_wait" Seconds,
        "Mean wait of a request in the kernel's accept queue, by the queue's length and the rate";
    KERNEL_WAIT = "longtail.run.kernel_wait" Seconds,
        "Waits by the kernel's tracepoints: of a connection until it is accepted, of a request \
         until it is read, from there to its response, of a thread for a CPU";
    RESPONSE_PART = "longtail.run.response_part" Seconds,
        "Means of the parts of the response time, by the stamps of kernel, client and app; \
         together the whole";
    CLASS_REQUESTS = "longtail.run.class_requests" Requests,
        "Measured requests of each class by how they ended; together the planned requests";
    CLASS_RESPONSE_TIME = "longtail.run.class_response_time" Seconds,
        "Response time of each class of requests of a run that is over; sum and count are of the \
         good responses";
    CLASS_LONGEST_RESPONSE_TIME = "longtail.run.class_longest_response_time" Seconds,
        "The longest response time of each class of requests; absent where a request has no \
         response";
    CLASS_SHARE = "longtail.run.class_share_of_response_time" Ratio,
        "The share of a class in the response times of all requests";
    OF_MAXIMUM = "longtail.run.completed_of_maximum" Ratio,
        "Completed rate over the theoretical maximum, slots / service time";
}

/// Upper bounds of the histogram's buckets, in microseconds: the defaults of Prometheus' clients,
/// and some below and above them.
#[rustfmt::skip]
const EDGES: [u64; 18] = [
    100, 250, 500,
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// The quantiles of a kernel wait that are exported.
const OF_WAITS: [f64; 2] = [0.5, 0.99];

/// The metrics of one run, as they are collected.
struct RunFigures {
    labels: Labels,
    families: Vec<MetricFamily>,
}

impl RunFigures {
    fn push(&mut self, metric: &'static ExportedMetric, labels: Labels, value: PointValue) {
        let labels = self.labels.iter().cloned().chain(labels).collect();
        MetricFamily::add(&mut self.families, metric, MetricPoint { labels, value });
    }

    /// Adds a number, if it is known and finite.
    fn number(&mut self, metric: &'static ExportedMetric, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.labelled(metric, Labels::new(), value);
        }
    }

    fn labelled(&mut self, metric: &'static ExportedMetric, labels: Labels, value: f64) {
        self.push(metric, labels, PointValue::Number(value));
    }

    fn time(&mut self, metric: &'static ExportedMetric, time: Option<Nanos>) {
        self.number(metric, time.map(Nanos::as_secs_f64));
    }

    fn quantiles(
        &mut self,
        metric: &'static ExportedMetric,
        times: &Histogram,
        quantiles: &[f64],
        at: impl Fn(f64) -> Quantile,
    ) {
        let known = |q: &f64| Some((*q, at(*q).time()?.as_secs_f64()));
        let quantiles: Vec<_> = quantiles.iter().filter_map(known).collect();
        if times.count() > 0 {
            let sum = times.sum().as_secs_f64();
            let value = PointValue::Quantiles { quantiles, sum, count: times.count() };
            self.push(metric, Labels::new(), value);
        }
    }

    /// The good responses by bucket. The bounds are edges of the histogram, so the counts are
    /// exact.
    fn buckets(&mut self, times: &Histogram) {
        if times.count() == 0 {
            return;
        }
        let buckets: Vec<(Nanos, u64)> = times.buckets().collect();
        let below = |edge: Nanos| {
            buckets.iter().filter(|(highest, _)| *highest <= edge).map(|(_, n)| n).sum()
        };
        let edges = EDGES.map(|edge| Histogram::edge(Nanos::from_micros(edge)));
        let edges = edges.into_iter().map(|edge| (edge.as_secs_f64(), below(edge))).collect();
        let sum = times.sum().as_secs_f64();
        let value = PointValue::Buckets { edges, sum, count: times.count() };
        self.push(&GOOD_RESPONSE_TIME, Labels::new(), value);
    }

    /// What every run has, whatever its verdict.
    fn of_any(&mut self, run: &Run) {
        let tally = &run.tally;
        let verdict = run.judgement.as_ref().map_or("none", |judgement| judgement.verdict.into());
        self.labelled(&VERDICT, vec![("verdict", verdict.to_owned())], 1.0);
        self.number(&WARNINGS, run.warnings.len() as f64);
        self.number(&CONNECTIONS, f64::from(run.connections));
        self.time(&MEASURED, Some(run.measured));
        self.number(&GOOD_REQUESTS, tally.counts.good() as f64);
        for (outcome, n) in tally.counts.iter() {
            self.labelled(&PLANNED_REQUESTS, vec![("outcome", name(outcome))], n as f64);
        }
        for (reason, n) in tally.bad_responses.iter() {
            self.labelled(&BAD_RESPONSES, vec![("reason", reason.name().to_owned())], n as f64);
        }
    }

    /// The requests of each class, and their times unless the run is hidden. They have metrics of
    /// their own: as labels of the whole run's metrics, a sum would count each request twice.
    fn of_classes(&mut self, run: &Run, percentiles: &[f64]) {
        for class in &run.tally.classes {
            self.labels.push(("class", class.name.clone()));
            for (outcome, n) in class.counts.iter() {
                self.labelled(&CLASS_REQUESTS, vec![("outcome", name(outcome))], n as f64);
            }
            if !is_hidden(run) {
                let of_class = run.of_class(class);
                self.quantiles(&CLASS_RESPONSE_TIME, &class.response_time, percentiles, |q| {
                    of_class.response_time(q)
                });
                self.time(&CLASS_LONGEST_RESPONSE_TIME, of_class.max_response_time().time());
                self.number(&CLASS_SHARE, run.share_of_response_time(class));
            }
            self.labels.pop();
        }
    }

    /// Where the requests of a run waited, by the samples.
    fn queues(&mut self, run: &Run) {
        let Some(watch) = &run.watch else { return };
        let mean =
            |name| watch.curve(name).and_then(|(track, curve)| track.mean(curve, run.measured));
        let most = watch.curve("accept_queue").and_then(|(_, curve)| curve.most());
        self.number(&ACCEPT_QUEUE_MEAN, mean("accept_queue"));
        self.number(&ACCEPT_QUEUE_MOST, most.map(|most| most as f64));
        self.number(&OPEN_MEAN, mean("open_connections"));
        for (_, curve) in watch.curves("backlog") {
            if let Some(most) = curve.most() {
                self.labelled(&BACKLOG_MOST, vec![("worker", curve.of.clone())], most as f64);
            }
        }
    }

    /// Where the requests of a run waited, by the kernel's tracepoints.
    fn tracepoints(&mut self, run: &Run) {
        let Some(view) = &run.kernel else { return };
        for process in view
            .processes
            .iter()
            .filter(|process| process.answers > 0 || process.accept_queue.count > 0)
        {
            let worker = process.pid.to_string();
            let waits = [
                ("accept_queue", &process.accept_queue),
                ("receive_queue", &process.receive_queue),
                ("in_server", &process.in_server),
                ("run_queue", &process.run_queue),
            ];
            for (place, waits) in waits.into_iter().filter(|(_, waits)| waits.count > 0) {
                let labels = vec![("worker", worker.clone()), ("place", place.to_owned())];
                self.push(&KERNEL_WAIT, labels, quantiles_of(waits));
            }
        }
        let Some(all) = view.paths.as_ref().map(|paths| &paths.all) else { return };
        let parts = [
            ("send_lag", Some(all.send_lag)),
            ("accept_queue", Some(all.accept_queue)),
            ("receive_queue", Some(all.receive_queue)),
            ("server_queue", all.server_queue),
            ("app", all.app),
            ("rest", Some(all.sending + all.reading + all.left_in_server())),
        ];
        for (part, sum) in parts {
            if let Some(mean) = sum.and_then(|sum| all.mean(sum)) {
                self.labelled(&RESPONSE_PART, vec![("part", part.to_owned())], mean.as_secs_f64());
            }
        }
    }
}

fn quantiles_of(waits: &Waits) -> PointValue {
    let known = |quantile: f64| Some((quantile, waits.quantile(quantile)?.as_secs_f64()));
    PointValue::Quantiles {
        quantiles: OF_WAITS.into_iter().filter_map(known).collect(),
        sum: waits.sum.as_secs_f64(),
        count: waits.count,
    }
}

/// The metrics of a sweep's run `number`, counted from 1; each name once.
pub fn of_sweep(study: &SweepStudy, run: &Run, number: usize) -> Vec<MetricFamily> {
    let labels = vec![
        ("command", "sweep".to_owned()),
        ("run", number.to_string()),
        ("repeat", run.repeat.to_string()),
        ("multiple", run.multiple.unwrap_or_default().to_string()),
        ("connections", run.connections.to_string()),
        ("workers", study.server.workers.to_string()),
        ("threads", study.server.threads.to_string()),
    ];
    of_run(labels, run, &PERCENTILES, None)
}

/// The metrics of a load; each name once.
pub fn of_load(study: &LoadStudy) -> Vec<MetricFamily> {
    let labels = vec![
        ("command", "load".to_owned()),
        ("run", "1".to_owned()),
        ("connections", study.run.connections.to_string()),
    ];
    of_run(labels, &study.run, &LOAD_PERCENTILES, Some(&study.plan.load.pace))
}

/// The metrics of a run. A load has a pace, and so offered and sent rates.
fn of_run(
    labels: Labels,
    run: &Run,
    percentiles: &[f64],
    pace: Option<&Pace>,
) -> Vec<MetricFamily> {
    let mut figures = RunFigures { labels, families: Vec::new() };
    figures.of_any(run);
    let requests_by_worker: Vec<(&String, u64)> = match pace {
        None => run.workers.iter().map(|share| (&share.worker, share.requests)).collect(),
        Some(_) => {
            run.tally.per_worker.iter().map(|(worker, count)| (worker, count.measured)).collect()
        }
    };
    for (worker, requests) in requests_by_worker {
        figures.labelled(&WORKER_REQUESTS, vec![("worker", worker.clone())], requests as f64);
    }
    figures.of_classes(run, percentiles);
    figures.queues(run);
    if is_hidden(run) {
        return figures.families;
    }
    figures.number(&COMPLETED, run.completed_rate());
    figures.number(&SENT, pace.map(|_| run.sent_rate()));
    figures.number(&OFFERED, pace.and_then(|pace| run.offered_rate(pace)));
    figures
        .quantiles(&RESPONSE_TIME, &run.tally.response_time, percentiles, |q| run.response_time(q));
    figures.time(&LONGEST_RESPONSE_TIME, run.max_response_time().time());
    figures.quantiles(&SERVICE_TIME, &run.tally.service_time, percentiles, |q| run.service_time(q));
    figures.buckets(&run.tally.response_time);
    figures.time(&ACCEPT_QUEUE_WAIT, run.accept_queue_wait());
    figures.tracepoints(run);
    figures.number(&OF_MAXIMUM, run.of_maximum());
    figures.families
}

/// The current run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// Its number, from 1.
    pub number: u64,
    /// Its connections.
    pub connections: u32,
    /// The last sample of each quantity that was sampled lately: its name, as a curve of
    /// [`model::Watch`] has it; the worker, empty for the whole server; and the value.
    pub samples: Vec<(&'static str, String, u64)>,
}

metrics! {
    BUILD_INFO = "longtail.build_info" None, "1, with the version of longtail";
    REQUESTS_ENDED = counter "longtail.requests_ended" None,
        "Requests that have ended in whichever way, in all runs so far, warm-up included";
    RUNS_DONE = counter "longtail.runs_done" None, "Runs that are over";
    NOW_CONNECTIONS = "longtail.now.connections" Connections,
        "Connections of the run that goes on, in an open loop the most it may open; absent \
         between runs";
    ACCEPT_QUEUE = "longtail.now.accept_queue_connections" Connections,
        "Connections in the kernel's accept queue at the last sample; absent between runs";
    OPEN_CONNECTIONS = "longtail.now.open_connections" Connections,
        "The server's ends of connections at the last sample, those in the accept queue included; \
         absent between runs";
    BACKLOG = "longtail.now.backlog_requests" Requests,
        "Requests that wait inside a worker, by the server's last statistics; absent between runs";
    BUSY_THREADS = "longtail.now.busy_threads" Threads,
        "Threads of a worker that are taken, by the server's last statistics; absent between runs";
    FREE_THREADS = "longtail.now.free_threads" Threads,
        "Threads that a worker could still take, by the server's last statistics; absent between \
         runs";
}

/// The samples that are exported, and their metrics.
static READINGS: [(&str, &ExportedMetric); 5] = [
    ("accept_queue", &ACCEPT_QUEUE),
    ("open_connections", &OPEN_CONNECTIONS),
    ("backlog", &BACKLOG),
    ("busy_threads", &BUSY_THREADS),
    ("pool_capacity", &FREE_THREADS),
];

/// The live metrics: requests that have ended in all runs, warm-up included, finished runs, and the
/// current run.
pub fn live(requests_ended: u64, runs_done: u64, run: Option<&LiveRun>) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    let mut add = |metric, labels, value: f64| {
        MetricFamily::add(
            &mut families,
            metric,
            MetricPoint { labels, value: PointValue::Number(value) },
        );
    };
    add(&BUILD_INFO, vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    add(&REQUESTS_ENDED, Labels::new(), requests_ended as f64);
    add(&RUNS_DONE, Labels::new(), runs_done as f64);
    if let Some(run) = run {
        add(&NOW_CONNECTIONS, vec![("run", run.number.to_string())], f64::from(run.connections));
        for (sample, metric) in READINGS {
            for (_, worker, value) in run.samples.iter().filter(|(name, ..)| *name == sample) {
                let worker = (!worker.is_empty()).then(|| ("worker", worker.clone()));
                add(metric, worker.into_iter().collect(), *value as f64);
            }
        }
    }
    families
}
