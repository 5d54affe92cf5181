//! The table of all exported metrics: of a finished run, of a sweep or a load, and of the run that
//! goes on.
//!
//! A figure that is not known is not in the list, and of an INVALID run none of
//! the times and rates is: what a report does not print, no protocol carries.

use judge::checks::LOAD_PERCENTILES;
use model::counts::name;
use model::run::PERCENTILES;
use model::{Histogram, LoadStudy, Nanos, Pace, Quantile, Run, SweepStudy, Verdict};

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
        "Measured requests that had a good answer";
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
        "The server's ends of connections, those in the accept queue included, mean over the window";
    BACKLOG_MOST = "longtail.run.backlog_most_requests" Requests,
        "Requests that wait inside a worker at most, by the server's statistics";
    COMPLETED = "longtail.run.completed_requests" RequestsPerSecond,
        "Good answers per second of the measured window";
    SENT = "longtail.run.sent_requests" RequestsPerSecond,
        "Requests sent per second of the measured window";
    OFFERED = "longtail.run.offered_requests" RequestsPerSecond,
        "Requests per second that the schedule wanted sent";
    RESPONSE_TIME = "longtail.run.response_time" Seconds,
        "Response time, from when a request was due to its answer's last byte, of a run that is over; sum and count are of the good answers";
    LONGEST_RESPONSE_TIME = "longtail.run.longest_response_time" Seconds,
        "The longest response time of a run that is over; absent where a request has no answer";
    SERVICE_TIME = "longtail.run.service_time" Seconds,
        "Service time, from when a request was sent to its answer's last byte, of a run that is over; sum and count are of the good answers";
    GOOD_RESPONSE_TIME = "longtail.run.good_response_time" Seconds,
        "Response times of the good answers alone: what failed or has no answer is in no bucket";
    ACCEPT_QUEUE_WAIT = "longtail.run.accept_queue_wait" Seconds,
        "Mean wait of a request in the kernel's accept queue, by the queue's length and the rate";
    KERNEL_WAIT = "longtail.run.kernel_wait" Seconds,
        "Waits by the kernel's tracepoints: of a connection until it is accepted, of a request until it is read, from there to its answer, of a thread for a CPU";
    RESPONSE_PART = "longtail.run.response_part" Seconds,
        "Means of the parts of the response time, by the stamps of kernel, client and app; together the whole";
    OF_MAXIMUM = "longtail.run.completed_of_maximum" Ratio,
        "Completed rate over the theoretical maximum, slots / service time";
}

/// Edges of the histogram of response times, in microseconds: the usual ones of Prometheus'
/// clients, and some to either side.
#[rustfmt::skip]
const EDGES: [u64; 18] = [
    100, 250, 500,
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Quantiles of a wait in the kernel that are exported.
const OF_WAITS: [f64; 2] = [0.5, 0.99];

/// Puts figures of one run together.
struct RunFigures {
    labels: Labels,
    families: Vec<MetricFamily>,
}

impl RunFigures {
    fn push(&mut self, metric: &'static ExportedMetric, labels: Labels, value: PointValue) {
        let labels = self.labels.iter().cloned().chain(labels).collect();
        MetricFamily::add(&mut self.families, metric, MetricPoint { labels, value });
    }

    /// One number, where it is known and is one.
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
            let (sum, count) = (times.sum().as_secs_f64(), times.count());
            self.push(metric, Labels::new(), PointValue::Quantiles { quantiles, sum, count });
        }
    }

    /// The good answers by edges that this histogram can tell exactly.
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
        let (sum, count) = (times.sum().as_secs_f64(), times.count());
        self.push(&GOOD_RESPONSE_TIME, Labels::new(), PointValue::Buckets { edges, sum, count });
    }

    /// What stays known of a run whatever its verdict is.
    fn of_any(&mut self, run: &Run) {
        let (tally, judgement) = (&run.tally, run.judgement.as_ref());
        let verdict = judgement.map_or("none", |judgement| judgement.verdict.into());
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

    /// Where the requests of a run waited, by what was looked at meanwhile.
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
                let known = |q: f64| Some((q, waits.quantile(q)?.as_secs_f64()));
                let quantiles = OF_WAITS.into_iter().filter_map(known).collect();
                let (sum, count) = (waits.sum.as_secs_f64(), waits.count);
                let value = PointValue::Quantiles { quantiles, sum, count };
                self.push(
                    &KERNEL_WAIT,
                    vec![("worker", worker.clone()), ("place", place.to_owned())],
                    value,
                );
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

/// The figures of a sweep's run number `number`, from 1; each name once.
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

/// The figures of a load; each name once.
pub fn of_load(study: &LoadStudy) -> Vec<MetricFamily> {
    let (run, connections) = (&study.run, study.run.connections.to_string());
    let labels =
        vec![("command", "load".to_owned()), ("run", "1".to_owned()), ("connections", connections)];
    of_run(labels, run, &LOAD_PERCENTILES, Some(&study.plan.pace))
}

/// The figures of a run; of a load with its pace, which asks for rates.
fn of_run(
    labels: Labels,
    run: &Run,
    percentiles: &[f64],
    pace: Option<&Pace>,
) -> Vec<MetricFamily> {
    let mut figures = RunFigures { labels, families: Vec::new() };
    figures.of_any(run);
    let mut of_worker = |worker: &String, requests: u64| {
        figures.labelled(&WORKER_REQUESTS, vec![("worker", worker.clone())], requests as f64);
    };
    match pace {
        None => run.workers.iter().for_each(|share| of_worker(&share.worker, share.requests)),
        Some(_) => run
            .tally
            .per_worker
            .iter()
            .for_each(|(worker, count)| of_worker(worker, count.measured)),
    }
    figures.queues(run);
    if run
        .judgement
        .as_ref()
        .is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
    {
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

/// The run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// Which, from 1.
    pub number: u64,
    /// Its connections.
    pub connections: u32,
    /// The last look at each quantity, of those that were looked at lately: what, as a curve of
    /// [`model::Watch`] is named; of which worker, empty for the whole server; and the value.
    pub samples: Vec<(&'static str, String, u64)>,
}

metrics! {
    BUILD_INFO = "longtail.build_info" None, "1, with the version of longtail";
    REQUESTS_ENDED = counter "longtail.requests_ended" None,
        "Requests that have ended in whichever way, in all runs so far, warm-up included";
    RUNS_DONE = counter "longtail.runs_done" None, "Runs that are over";
    NOW_CONNECTIONS = "longtail.now.connections" Connections,
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

/// The families of now: requests that have ended in all runs, warm-up included, runs that are over,
/// and the run that goes on.
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
            for (_, of, value) in run.samples.iter().filter(|(name, ..)| *name == sample) {
                let worker = (!of.is_empty()).then(|| ("worker", of.clone()));
                add(metric, worker.into_iter().collect(), *value as f64);
            }
        }
    }
    families
}
