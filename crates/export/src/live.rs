//! What can be told while a run goes on: how many requests have ended, and the last looks at server and kernel.

use crate::family::{Family, Kind, Labels, Unit, Value};

/// How things stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Our version.
    pub version: &'static str,
    /// Requests that have ended in all runs, warm-up included, the present one's among them.
    pub requests_ended: u64,
    /// Runs that are over.
    pub runs_done: u64,
    /// The run that goes on.
    pub run: Option<LiveRun>,
}

/// The run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// Which, from 1.
    pub number: u64,
    /// Its connections.
    pub connections: u32,
    /// The last look at each quantity, of those that were looked at lately.
    pub looks: Vec<Look>,
}

/// The last value of a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Of whom: a worker; empty for the whole server.
    pub of: String,
    /// What, as a curve of [`model::Watch`] is named.
    pub name: &'static str,
    /// The value.
    pub value: u64,
}

/// What the protocols call the looks that they carry.
const LOOKS: [(&str, &str, Unit, &str); 5] = [
    (
        "accept_queue",
        "longtail.now.accept_queue_connections",
        Unit::Connections,
        "Connections in the kernel's accept queue at the last look; absent between runs",
    ),
    (
        "open_connections",
        "longtail.now.open_connections",
        Unit::Connections,
        "The server's ends of connections at the last look, those in the accept queue included; absent between runs",
    ),
    (
        "backlog",
        "longtail.now.backlog_requests",
        Unit::Requests,
        "Requests that wait inside a worker by the server's last statistics; absent between runs",
    ),
    (
        "busy_threads",
        "longtail.now.busy_threads",
        Unit::Threads,
        "Threads of a worker that are taken by the server's last statistics; absent between runs",
    ),
    (
        "pool_capacity",
        "longtail.now.free_threads",
        Unit::Threads,
        "Threads that a worker could still take by the server's last statistics; absent between runs",
    ),
];

/// The families of now.
pub fn live(now: &Live) -> Vec<Family> {
    let number =
        |name, unit, kind, help, labels, value| Family::one((name, unit, kind), help, labels, Value::Number(value));
    let mut families = vec![
        number(
            "longtail.build_info",
            Unit::None,
            Kind::Gauge,
            "1, with the version of longtail",
            vec![("version", now.version.to_owned())],
            1.0,
        ),
        number(
            "longtail.requests_ended",
            Unit::None,
            Kind::Counter,
            "Requests that have ended in whichever way, in all runs so far, warm-up included",
            Labels::new(),
            now.requests_ended as f64,
        ),
        number(
            "longtail.runs_done",
            Unit::None,
            Kind::Counter,
            "Runs that are over",
            Labels::new(),
            now.runs_done as f64,
        ),
    ];
    let Some(run) = &now.run else { return families };
    families.push(number(
        "longtail.now.connections",
        Unit::Connections,
        Kind::Gauge,
        "Connections of the run that goes on, in an open loop the most it may open; absent between runs",
        vec![("run", run.number.to_string())],
        f64::from(run.connections),
    ));
    for (look, name, unit, help) in LOOKS {
        for Look { of, value, .. } in run.looks.iter().filter(|seen| seen.name == look) {
            let worker = (!of.is_empty()).then(|| ("worker", of.clone()));
            families.push(number(name, unit, Kind::Gauge, help, worker.into_iter().collect(), *value as f64));
        }
    }
    Family::merged(families)
}
