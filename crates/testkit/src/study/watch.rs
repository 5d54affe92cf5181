//! What was observed during a run: by the probes, by the kernel's tracepoints, and by the app's
//! stamps.

use model::app_time::{AppSource, AppTimeSums};
use model::kernel::bucket_of;
use model::kernel::{PathSums, RequestPaths};
use model::samples::{WatchCurve, WatchTrack};
use model::{AppTimes, KernelView, Nanos, ProcessWaits, Run, Waits, Watch};

/// The stamps of an app that takes 200 ms and sends its response half a millisecond later; one
/// response has no stamps.
pub(super) fn stamped(run: &Run) -> AppTimes {
    let parts = |requests: u64, response_time: Nanos| {
        let [app, rest, send_lag] = [200_000, 500, 20].map(|us| Nanos::from_micros(us) * requests);
        let before_app = Some(response_time - app - rest - send_lag);
        AppTimeSums { requests, response_time, send_lag, before_app, app }
    };
    let (all, slowest) = all_and_slowest(run, parts);
    AppTimes { source: AppSource::Stamps, all, slowest, silent: 1, impossible: 0 }
}

/// `parts` gets a number of requests and the sum of their response times: of all requests but one,
/// and of the slowest hundredth.
fn all_and_slowest<T>(run: &Run, parts: impl Fn(u64, Nanos) -> T) -> (T, Option<T>) {
    let times = &run.tally.response_time;
    let count = times.count() - 1;
    let mean = times.mean().expect("there are some");
    let slowest = count.div_ceil(100);
    (parts(count, mean * count), times.max().map(|most| parts(slowest, most * slowest)))
}

/// What the kernel would have reported if all time beyond the app's 200 ms were spent in the accept
/// queue.
pub(super) fn kernel_view(run: &Run) -> KernelView {
    let waits = |count: u64, each: Nanos| {
        Waits::of_buckets(each * count, &[(bucket_of(each), count)].into())
    };
    let [app, queue, left] = [200_000, 300, 700].map(Nanos::from_micros);
    let answers = run.tally.response_time.count() / 2;
    let worker = |pid| ProcessWaits {
        pid,
        answers,
        accept_queue: waits(answers, Nanos::from_millis(598)),
        receive_queue: waits(answers, Nanos::from_micros(150)),
        in_server: waits(answers, app + queue + left),
        run_queue: waits(answers * 3, Nanos::from_micros(70)),
    };
    let parts = |requests: u64, response_time: Nanos| {
        let [send_lag, sending, receive_queue, reading] =
            [20, 3, 150, 200].map(|us| Nanos::from_micros(us) * requests);
        let in_server = (app + queue + left) * requests;
        PathSums {
            requests,
            response_time,
            send_lag,
            sending,
            accept_queue: response_time - send_lag - sending - receive_queue - in_server - reading,
            receive_queue,
            in_server,
            server_queue: Some(queue * requests),
            app: Some(app * requests),
            reading,
        }
    };
    let (all, slowest) = all_and_slowest(run, parts);
    KernelView {
        processes: vec![worker(4001), worker(4002)],
        unfollowed: 0,
        lost: 0,
        paths: Some(RequestPaths {
            app: Some(AppSource::Stamps),
            all,
            slowest,
            silent: 0,
            impossible: 0,
            unmatched: 1,
        }),
    }
}

/// What samples would have shown: each worker's threads busy, and all other requests in the accept
/// queue. One sample failed.
pub(super) fn seen(connections: u64, slots: u64) -> Watch {
    let curve = |of: &str, name: &str, unit: &str, values: Vec<Option<u64>>| WatchCurve {
        of: of.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        values,
        staleness: Vec::new(),
    };
    let samples = 200;
    let but_one = |value: u64| (0..=samples).map(|n| (n != 7).then_some(value)).collect::<Vec<_>>();
    let mut queue = but_one(connections - slots);
    queue[100] = Some(connections - slots + 2);
    let sockets = WatchTrack {
        source: "sock_diag".to_owned(),
        at: (0..=samples).map(|n| Nanos::from_millis(50) * n).collect(),
        curves: vec![
            curve("", "accept_queue", "connections", queue),
            curve("", "open_connections", "connections", but_one(connections)),
            curve("", "accept_queue_limit", "connections", but_one(1024)),
        ],
    };
    let workers = ["4001", "4002"];
    let used = |step: u64| (0..=40).map(|n| Some(n * step)).collect::<Vec<_>>();
    let processes = WatchTrack {
        source: "/proc/PID/task/TID/schedstat".to_owned(),
        at: (0..=40).map(|n| Nanos::from_millis(250) * n).collect(),
        curves: workers
            .iter()
            .flat_map(|of| {
                [
                    curve(of, "cpu", "ns", used(5_000_000)),
                    curve(of, "run_queue_wait", "ns", used(400_000)),
                ]
            })
            .collect(),
    };
    let age = |n: u64| Some(Nanos::from_millis(800 + 1000 * ((n + 3) % 5)));
    let stats = WatchTrack {
        source: "puma stats".to_owned(),
        at: (0..=10).map(Nanos::from_secs).collect(),
        curves: workers
            .iter()
            .flat_map(|of| {
                let values = |value| vec![Some(value); 11];
                [
                    curve(of, "backlog", "requests", values(0)),
                    curve(of, "busy_threads", "threads", values(slots / 2)),
                ]
            })
            .map(|curve| WatchCurve { staleness: (0..=10).map(age).collect(), ..curve })
            .collect(),
    };
    Watch {
        tracks: vec![sockets, processes, stats],
        cpu: Nanos::from_millis(93),
        missing: vec![
            "the sockets, at some samples: Interrupted system call (os error 4)".to_owned(),
        ],
    }
}
