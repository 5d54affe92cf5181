//! What theory says beside a run: which worker was seen to hold which connections, whether the app
//! scatters, and the order of service of this kind of server.

use std::collections::BTreeSet;

use model::samples::HELD_CONNECTIONS;
use model::theory::NotJudged;
use model::theory::ServiceTime;
use model::{Histogram, Run, ServerFacts, ServerPlan, StreamPlan, Theory};
use queueing::discipline::{self, ClosedLoopServer, TOLERANCE};

use crate::servers::{ServedLoad, under_test};

/// What theory says of a run under the load of `stream`; `None` without a service time.
/// `app_scatters`: the app takes many times longer for some requests even if none waits for a slot.
pub(crate) fn of_run(
    run: &Run,
    plan: &ServerPlan,
    stream: &StreamPlan,
    server: &ServerFacts,
    known: Option<ServiceTime>,
    app_scatters: bool,
) -> Option<Theory> {
    let known = known?;
    let scatters = scatters(plan, stream, &known);
    if app_scatters && scatters && run.connections > server.slots() {
        return Some(Theory::not_judged(NotJudged::AppScatters, TOLERANCE));
    }
    let load = ServedLoad {
        keep_alive: stream.keep_alive,
        connections: run.connections,
        service_time: known.mean,
    };
    let order = under_test(plan).service_order(server, &load);
    let held = ConnectionHolders::of(run);
    let Some((workers, threads)) = shape(plan, server, &held) else {
        return Some(Theory::not_judged(NotJudged::ShapeUnknown, TOLERANCE));
    };
    let by_worker = held.of_workers(workers).filter(|_| order.is_kept);
    let service_time = known.mean;
    discipline::theory(
        run,
        &ClosedLoopServer { workers, threads, service_time, scatters, order, by_worker },
    )
}

/// Which processes held a run's connections, by the samples of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct ConnectionHolders {
    /// Connections of each process that held any, the most first.
    by_worker: Option<Vec<u32>>,
    /// Processes that ever held a connection.
    holders: usize,
    /// Processes of the server.
    processes: usize,
}

impl ConnectionHolders {
    fn of(run: &Run) -> ConnectionHolders {
        let Some(watch) = &run.watch else { return ConnectionHolders::default() };
        let processes: BTreeSet<&str> =
            watch.curves("cpu").map(|(_, curve)| curve.of.as_str()).collect();
        let curves: Vec<_> = watch.curves(HELD_CONNECTIONS).map(|(_, curve)| curve).collect();
        ConnectionHolders {
            by_worker: watch.held_connections(run.connections),
            holders: curves.iter().filter(|curve| curve.most() > Some(0)).count(),
            processes: processes.len(),
        }
    }

    /// Connections of each of `workers` workers, 0 for those without any. `None` if more processes
    /// held some, or if there are fewer processes than workers: then workers are no processes, but
    /// perhaps threads of one.
    fn of_workers(&self, workers: u32) -> Option<Vec<u32>> {
        let workers = workers as usize;
        let mut held = self
            .by_worker
            .clone()
            .filter(|held| held.len() <= workers && workers <= self.processes)?;
        held.resize(workers, 0);
        Some(held)
    }
}

/// Workers, and threads of each. If only the slots of a command are known, its workers are the
/// processes that held connections; `None` if none did, or if their number does not divide the
/// slots.
fn shape(plan: &ServerPlan, server: &ServerFacts, held: &ConnectionHolders) -> Option<(u32, u32)> {
    let is_given =
        plan.kind.stated_slots().is_none() || plan.workers.is_some() || plan.threads.is_some();
    if is_given {
        return Some((server.workers, server.threads));
    }
    let slots = server.slots();
    match (held.holders as u32, held.processes) {
        (0, 1) | (1, ..=2) => Some((1, slots)),
        // One of several workers may have got all connections by chance.
        (0 | 1, _) => None,
        (holders, _) => slots.is_multiple_of(holders).then(|| (holders, slots / holders)),
    }
}

/// p99 / median beyond which no model here fits. An exponential distribution has 6.6.
const WIDEST: f64 = 7.0;
/// Fewer slow requests than this may be accidents.
const SLOW_ONES: f64 = 3.0;

/// Whether some requests took many times longer than most of them.
fn is_wide(times: &Histogram) -> bool {
    let share = 1.0 - (SLOW_ONES / times.count().max(1) as f64).max(0.01);
    let Some((typical, slow)) = times.quantile(0.5).zip(times.quantile(share.max(0.5))) else {
        return false;
    };
    slow.as_secs_f64() > WIDEST * typical.as_secs_f64()
}

/// Whether the app takes many times longer for some requests than for most, by a run in which no
/// request had to wait for a slot. If so, long times under more load need not come from the order
/// of service.
pub(crate) fn app_scatters(run: &Run, server: &ServerFacts) -> bool {
    run.connections <= server.slots() && is_wide(&run.tally.service_time)
}

/// Whether the app's times may vary. Our own apps sleep exactly as long as they are asked to.
fn scatters(plan: &ServerPlan, stream: &StreamPlan, known: &ServiceTime) -> bool {
    let is_ours = plan.rackup.is_none()
        && stream.path.is_none()
        && stream.body.is_none()
        && plan.kind.stated_slots().is_none();
    !(is_ours && known.given.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::samples::{WatchCurve, WatchTrack};
    use model::{Nanos, ServerKind, Watch};

    /// A run in which each process held this many of the connections, sample by sample.
    fn run(connections: u32, held: &[Vec<Option<u64>>]) -> Run {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.connections = connections;
        let curve = |(pid, values): (usize, &Vec<Option<u64>>)| {
            let curve = |name: &str, values: &[Option<u64>]| WatchCurve {
                of: pid.to_string(),
                name: name.to_owned(),
                values: values.to_vec(),
                ..WatchCurve::default()
            };
            [curve(HELD_CONNECTIONS, values), curve("cpu", &vec![Some(0); values.len()])]
        };
        let at = (0..held.first().map_or(0, Vec::len) as u64).map(Nanos::from_secs).collect();
        let track = WatchTrack {
            curves: held.iter().enumerate().flat_map(curve).collect(),
            at,
            ..WatchTrack::default()
        };
        run.watch = Some(Watch { tracks: vec![track], ..Watch::default() });
        run
    }

    #[test]
    fn connections_of_workers_are_known_if_all_samples_agree() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/held_connections.txt");
        testkit::golden::expect_rows(file, |given| {
            let (connections, held): (u32, Vec<Vec<Option<u64>>>) =
                serde_json::from_str(given).unwrap();
            ConnectionHolders::of(&run(connections, &held))
        });
        assert_eq!(
            ConnectionHolders::of(&Run { watch: None, ..run(1, &[]) }),
            ConnectionHolders::default()
        );
        let seen = ConnectionHolders { by_worker: Some(vec![8, 7]), holders: 2, processes: 3 };
        assert_eq!(
            [2, 3].map(|workers| seen.of_workers(workers)),
            [Some(vec![8, 7]), Some(vec![8, 7, 0])]
        );
        assert_eq!(
            [1, 4].map(|workers| seen.of_workers(workers)),
            [None, None],
            "at most as many workers as processes"
        );
    }

    #[test]
    fn an_app_with_two_groups_of_requests_is_recognised_if_nobody_waits() {
        let wide = |slow_in_100: u64, slow_ms: u64, n: u64| {
            let mut times = Histogram::default();
            for k in 0..n {
                times.record(Nanos::from_millis(if k % 100 < slow_in_100 { slow_ms } else { 100 }));
            }
            is_wide(&times)
        };
        assert!(wide(5, 1000, 1000) && wide(2, 1000, 200));
        assert!(!wide(5, 600, 1000), "an exponential law is as wide");
        assert!(!wide(1, 1000, 100), "one of a hundred may be an accident");
        assert!(!is_wide(&Histogram::default()));
        let mut run = run(5, &[]);
        let version = Some("6.6.1".to_owned());
        let server = ServerFacts { version, workers: 1, threads: 5, ..ServerFacts::default() };
        run.tally.service_time = (0..100).fold(Histogram::default(), |mut times, k| {
            times.record(Nanos::from_millis(if k < 5 { 1000 } else { 10 }));
            times
        });
        assert!(app_scatters(&run, &server));
        run.connections = 6;
        assert!(!app_scatters(&run, &server), "the sixth waits");
    }

    #[test]
    fn workers_of_a_command_are_the_processes_that_hold_connections() {
        let argv = vec!["gunicorn".to_owned()];
        let mut plan = testkit::study::canonical().plan.server;
        plan.kind = ServerKind::Command { argv: argv.into(), slots: 10, url: "".into() };
        (plan.workers, plan.threads) = (None, None);
        let server = ServerFacts { workers: 1, threads: 10, ..ServerFacts::default() };
        let of = |holders, processes| {
            shape(&plan, &server, &ConnectionHolders { by_worker: None, holders, processes })
        };
        assert_eq!(of(0, 1), Some((1, 10)), "only one process");
        assert_eq!(
            [of(1, 2), of(1, 3)],
            [Some((1, 10)), None],
            "a parent with one child; one of two children"
        );
        assert_eq!(of(2, 3), Some((2, 5)));
        assert_eq!([of(3, 4), of(0, 3), of(0, 0)], [None; 3]);
        plan.workers = Some(2);
        assert_eq!(
            shape(&plan, &server, &ConnectionHolders::default()),
            Some((1, 10)),
            "as the user stated"
        );
    }
}
