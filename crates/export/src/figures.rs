//! A finished run as a list of families, of a sweep or of a load.
//!
//! A figure that is not known is not in the list, and of an INVALID run none of
//! the times and rates is: what a report does not print, no protocol carries.

use model::counts::name;
use model::doubts::LOAD_PERCENTILES;
use model::run::PERCENTILES;
use model::{
    Histogram, Judgement, LoadStudy, Nanos, Quantile, Run, SweepStudy, Tally, Verdict, WorkerShare, accept_wait,
};

use crate::family::{Family, Kind, Labels, Unit, Value};

/// Edges of the histogram of response times, in nanoseconds: the usual ones of Prometheus' clients, and some to either side.
const EDGES: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

/// Puts figures of one run together.
struct Figures {
    labels: Labels,
    families: Vec<Family>,
}

impl Figures {
    fn push(
        &mut self,
        name: &'static str,
        unit: Unit,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: Value,
    ) {
        let labels = self
            .labels
            .iter()
            .cloned()
            .chain(labels.iter().map(|(name, value)| (*name, (*value).to_owned())))
            .collect();
        self.families.push(Family::one((name, unit, Kind::Gauge), help, labels, value));
    }

    fn number(&mut self, name: &'static str, unit: Unit, help: &'static str, value: f64) {
        if value.is_finite() {
            self.push(name, unit, help, &[], Value::Number(value));
        }
    }

    fn time(&mut self, name: &'static str, help: &'static str, time: Option<Nanos>) {
        if let Some(time) = time {
            self.number(name, Unit::Seconds, help, time.as_secs_f64());
        }
    }

    fn quantiles(&mut self, name: &'static str, help: &'static str, times: &Histogram, quantiles: &[(f64, Quantile)]) {
        let known = |(q, time): &(f64, Quantile)| Some((*q, time.time()?.as_secs_f64()));
        let quantiles: Vec<_> = quantiles.iter().filter_map(known).collect();
        if times.count() > 0 {
            let (sum, count) = (times.sum().as_secs_f64(), times.count());
            self.push(name, Unit::Seconds, help, &[], Value::Quantiles { quantiles, sum, count });
        }
    }

    /// The good answers by edges that this histogram can tell exactly.
    fn buckets(&mut self, times: &Histogram) {
        if times.count() == 0 {
            return;
        }
        let buckets: Vec<(Nanos, u64)> = times.buckets().collect();
        let below = |edge: Nanos| buckets.iter().filter(|(highest, _)| *highest <= edge).map(|(_, n)| n).sum();
        let edges = EDGES.map(|edge| Histogram::edge(Nanos(edge)));
        let edges = edges.into_iter().map(|edge| (edge.as_secs_f64(), below(edge))).collect();
        self.push(
            "longtail.run.good_response_time",
            Unit::Seconds,
            "Response times of the good answers alone: what failed or has no answer is in no bucket",
            &[],
            Value::Buckets { edges, sum: times.sum().as_secs_f64(), count: times.count() },
        );
    }

    /// What stays known of a run whatever its verdict is.
    fn of_any(
        &mut self,
        connections: u32,
        measured: Nanos,
        tally: &Tally,
        judgement: Option<&Judgement>,
        doubts: usize,
    ) {
        let verdict = judgement.map_or("none", |judgement| match judgement.verdict {
            Verdict::ServerBound => "server-bound",
            Verdict::GeneratorBound => "generator-bound",
            Verdict::NetworkBound => "network-bound",
            Verdict::SharedCpus => "shared-cpus",
            Verdict::Unloaded => "unloaded",
            Verdict::Invalid => "invalid",
        });
        let help = "1 for each run that is over, with what limited it";
        self.push("longtail.run.verdict", Unit::None, help, &[("verdict", verdict)], Value::Number(1.0));
        self.number("longtail.run.caveats", Unit::None, "Doubts about the run", doubts as f64);
        self.number(
            "longtail.run.connections",
            Unit::Connections,
            "Connections that the run had",
            f64::from(connections),
        );
        self.time("longtail.run.measured", "Length of the measured window", Some(measured));
        let help = "Measured requests that had a good answer";
        self.number("longtail.run.good_requests", Unit::Requests, help, tally.counts.good() as f64);
        for (outcome, n) in tally.counts.iter() {
            self.push(
                "longtail.run.planned_requests",
                Unit::Requests,
                "Measured requests by how they ended; together all that were planned",
                &[("outcome", &name(outcome))],
                Value::Number(n as f64),
            );
        }
        for (reason, n) in tally.bad_responses.iter() {
            self.push(
                "longtail.run.bad_responses",
                Unit::Requests,
                "Measured requests that ended in a bad response, by what was wrong with it",
                &[("reason", reason.name())],
                Value::Number(n as f64),
            );
        }
    }

    fn of_workers<'a>(&mut self, workers: impl Iterator<Item = (&'a str, u64)>) {
        for (worker, requests) in workers {
            let help = "Requests of the run that each worker of the server had";
            let labels = [("worker", worker)];
            self.push("longtail.run.worker_requests", Unit::Requests, help, &labels, Value::Number(requests as f64));
        }
    }
}

const RESPONSE_TIME: &str = "Response time, from when a request was due to its answer's last byte, of a run that is over; \
                             sum and count are of the good answers";
const SERVICE_TIME: &str = "Service time, from when a request was sent to its answer's last byte, of a run that is over; \
                            sum and count are of the good answers";
const COMPLETED: &str = "Good answers per second of the measured window";

fn is_hidden(judgement: Option<&Judgement>) -> bool {
    judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// The figures of a sweep's run number `number`, from 1; each name once.
pub fn of_sweep(study: &SweepStudy, run: &Run, number: usize) -> Vec<Family> {
    let mut figures = Figures { labels: sweep_labels(study, run, number), families: Vec::new() };
    let judgement = run.judgement.as_ref();
    figures.of_any(run.connections, run.measured, &run.tally, judgement, run.warnings.len());
    figures.of_workers(run.workers.iter().map(|WorkerShare { worker, requests, .. }| (worker.as_str(), *requests)));
    queues(&mut figures, run);
    if is_hidden(judgement) {
        return Family::merged(figures.families);
    }
    figures.number("longtail.run.completed_requests", Unit::RequestsPerSecond, COMPLETED, run.completed_rate());
    let times = PERCENTILES.map(|q| (q, run.response_time(q)));
    figures.quantiles("longtail.run.response_time", RESPONSE_TIME, &run.tally.response_time, &times);
    longest(&mut figures, run.max_response_time());
    let times = PERCENTILES.map(|q| (q, service_time(&run.tally, run, q)));
    figures.quantiles("longtail.run.service_time", SERVICE_TIME, &run.tally.service_time, &times);
    figures.buckets(&run.tally.response_time);
    figures.time(
        "longtail.run.accept_queue_wait",
        "Mean wait of a request in the kernel's accept queue, by the queue's length and the rate",
        accept_wait::mean(run),
    );
    tracepoints(&mut figures, run);
    if let Some(share) = run.of_maximum() {
        figures.number(
            "longtail.run.completed_of_maximum",
            Unit::Ratio,
            "Completed rate over the theoretical maximum, slots / service time",
            share,
        );
    }
    Family::merged(figures.families)
}

/// A service time where the response time at that quantile has enough independent answers.
fn service_time(tally: &Tally, run: &Run, q: f64) -> Quantile {
    match run.response_time(q) {
        unsupported @ (Quantile::TooFew | Quantile::Growing) => unsupported,
        _ => tally.service_time_at(q),
    }
}

fn longest(figures: &mut Figures, longest: Quantile) {
    let help = "The longest response time of a run that is over; absent where a request has no answer";
    figures.time("longtail.run.longest_response_time", help, longest.time());
}

/// Quantiles of a wait that are told.
const OF_WAITS: [f64; 2] = [0.5, 0.99];

/// Where the requests of a run waited, by the kernel's tracepoints.
fn tracepoints(figures: &mut Figures, run: &Run) {
    let Some(view) = &run.kernel else { return };
    for process in view.processes.iter().filter(|process| process.answers > 0 || process.accept_queue.count > 0) {
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
            figures.push(
                "longtail.run.kernel_wait",
                Unit::Seconds,
                "Waits by the kernel's tracepoints: of a connection until it is accepted, of a request until it is read, from there to its answer, of a thread for a CPU",
                &[("worker", &worker), ("place", place)],
                Value::Quantiles { quantiles, sum: waits.sum.as_secs_f64(), count: waits.count },
            );
        }
    }
    let Some(all) = view.ways.as_ref().map(|ways| &ways.all) else { return };
    let rest = all.sending + all.reading + all.left_in_server();
    let parts = [
        ("send_lag", Some(all.send_lag)),
        ("accept_queue", Some(all.accept_queue)),
        ("receive_queue", Some(all.receive_queue)),
        ("server_queue", all.server_queue),
        ("app", all.app),
        ("rest", Some(rest)),
    ];
    for (part, sum) in parts {
        if let Some(mean) = sum.and_then(|sum| all.mean(sum)) {
            let help =
                "Means of the parts of the response time, by the stamps of kernel, client and app; together the whole";
            let labels = [("part", part)];
            figures.push("longtail.run.response_part", Unit::Seconds, help, &labels, Value::Number(mean.as_secs_f64()));
        }
    }
}

/// Where the requests of a run waited, by what was looked at meanwhile.
fn queues(figures: &mut Figures, run: &Run) {
    let Some(watch) = &run.watch else { return };
    let mean = |name| watch.curve(name).and_then(|(track, curve)| track.mean(curve, run.measured));
    let most = |name| watch.curve(name).and_then(|(_, curve)| curve.most());
    if let Some(mean) = mean("accept_queue") {
        let help = "Connections in the kernel's accept queue, mean over the window";
        figures.number("longtail.run.accept_queue_mean_connections", Unit::Connections, help, mean);
    }
    if let Some(most) = most("accept_queue") {
        let help = "Connections in the kernel's accept queue at most, at any look";
        figures.number("longtail.run.accept_queue_most_connections", Unit::Connections, help, most as f64);
    }
    if let Some(mean) = mean("open_connections") {
        let help = "The server's ends of connections, those in the accept queue included, mean over the window";
        figures.number("longtail.run.open_mean_connections", Unit::Connections, help, mean);
    }
    for (_, curve) in watch.curves("backlog") {
        if let Some(most) = curve.most() {
            let help = "Requests that wait inside a worker at most, by the server's statistics";
            let labels = [("worker", curve.of.as_str())];
            figures.push(
                "longtail.run.backlog_most_requests",
                Unit::Requests,
                help,
                &labels,
                Value::Number(most as f64),
            );
        }
    }
}

fn sweep_labels(study: &SweepStudy, run: &Run, number: usize) -> Labels {
    vec![
        ("command", "sweep".to_owned()),
        ("run", number.to_string()),
        ("repeat", run.repeat.to_string()),
        ("multiple", run.multiple.to_string()),
        ("connections", run.connections.to_string()),
        ("workers", study.server.workers.to_string()),
        ("threads", study.server.threads.to_string()),
    ]
}

/// The figures of a load; each name once.
pub fn of_load(study: &LoadStudy) -> Vec<Family> {
    let (run, plan) = (&study.run, &study.plan);
    let labels =
        vec![("command", "load".to_owned()), ("run", "1".to_owned()), ("connections", plan.connections.to_string())];
    let mut figures = Figures { labels, families: Vec::new() };
    let judgement = run.judgement.as_ref();
    figures.of_any(plan.connections, run.measured, &run.tally, judgement, run.warnings.len());
    figures.of_workers(run.tally.per_worker.iter().map(|(worker, count)| (worker.as_str(), count.measured)));
    if is_hidden(judgement) {
        return Family::merged(figures.families);
    }
    figures.number("longtail.run.completed_requests", Unit::RequestsPerSecond, COMPLETED, run.completed_rate());
    let help = "Requests sent per second of the measured window";
    figures.number("longtail.run.sent_requests", Unit::RequestsPerSecond, help, run.sent_rate());
    if let Some(rate) = run.offered_rate(&plan.pace) {
        let help = "Requests per second that the schedule wanted sent";
        figures.number("longtail.run.offered_requests", Unit::RequestsPerSecond, help, rate);
    }
    let times = LOAD_PERCENTILES.map(|q| (q, run.response_time(q)));
    figures.quantiles("longtail.run.response_time", RESPONSE_TIME, &run.tally.response_time, &times);
    longest(&mut figures, run.tally.longest_response_time());
    let times = LOAD_PERCENTILES.map(|q| (q, run.service_time(q)));
    figures.quantiles("longtail.run.service_time", SERVICE_TIME, &run.tally.service_time, &times);
    figures.buckets(&run.tally.response_time);
    Family::merged(figures.families)
}
