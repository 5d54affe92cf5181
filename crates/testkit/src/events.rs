//! Events in the middle of a run, as they are recorded: a phased restart of two workers that closed
//! three connections, and restarts in full that closed none.

use model::{
    EventRecord, EventRequests, EventTimes, Nanos, OthersCpu, Outcome, ProcessRole, SeenProcess,
    TimedRequest,
};

const fn ms(time: u64) -> Nanos {
    Nanos::from_millis(time)
}

/// A process: when it was started, when it served and when it had ended, in ms.
fn process(
    pid: u32,
    role: ProcessRole,
    started: Option<u64>,
    serving: Option<u64>,
    ended: Option<u64>,
) -> SeenProcess {
    SeenProcess {
        pid,
        parent: if role == ProcessRole::First { 1 } else { 4200 },
        role,
        started: started.map(ms),
        serving: serving.map(ms),
        ended: ended.map(ms),
        by_exec: role == ProcessRole::First && started.is_some(),
    }
}

/// A phased restart after 10 of 30 s, at 100 requests a second that take 5 ms. The requests with
/// these numbers failed; those due while a worker began take 80 ms.
///
/// # Panics
/// Never: it parses a constant.
pub fn phased_restart(failed: &[u64]) -> EventRecord {
    let worker = ProcessRole::Worker;
    let at = ms(10_000);
    let request = |number: u64| {
        let due = ms(number * 10);
        let is_slow = (11_200..12_000).contains(&(number * 10));
        let outcome =
            if failed.contains(&number) { Outcome::Closed } else { Outcome::Answered(200) };
        TimedRequest { due, ended: due + if is_slow { ms(80) } else { ms(5) }, outcome }
    };
    let requests: Vec<TimedRequest> = (0..3000).map(request).collect();
    let times = EventTimes { at, settled: ms(15_900), window: ms(30_000) };
    EventRecord {
        at: Some(at),
        done: "SIGUSR1 to process 4200".to_owned(),
        processes: vec![
            process(4200, ProcessRole::First, None, None, None),
            process(4211, worker, None, Some(0), Some(11_200)),
            process(4212, worker, None, Some(0), Some(14_000)),
            process(4301, worker, Some(11_250), Some(13_100), None),
            process(4302, worker, Some(14_100), Some(15_900), None),
        ],
        memory_before: Some(180 << 20),
        memory_after: Some(190 << 20),
        phases: Some([0, 1]),
        log: vec![
            "[4200] - Starting phased worker restart, phase: 1".to_owned(),
            "[4200] - Stopping 4211 for phased upgrade...".to_owned(),
        ],
        others: Some(OthersCpu { before: 0.1, most_since: 1.3, busy: 2.0, of: 2 }),
        versions: Some(["6.6.1".to_owned(), "6.6.1".to_owned()]),
        closed_before: Some(0),
        closed_since: Some(5),
        requests: Some(EventRequests::of(&requests, times, 0)),
        ..EventRecord::planned("phased-restart@10s".parse().expect("an event"))
    }
}

/// A restart in full after 1 of 4 s that took `took_ms`: nobody served for half of it.
///
/// # Panics
/// Never: it parses a constant.
pub fn full_restart(took_ms: u64) -> EventRecord {
    let worker = ProcessRole::Worker;
    let at = 1000;
    let end = at + took_ms;
    let half = at + took_ms / 2;
    let request = |number: u64| {
        let due = number * 10;
        let waits = if (half..end).contains(&due) { end - due } else { 0 };
        TimedRequest { due: ms(due), ended: ms(due + waits + 5), outcome: Outcome::Answered(200) }
    };
    let requests: Vec<TimedRequest> = (0..400).map(request).collect();
    let times = EventTimes { at: ms(at), settled: ms(end), window: ms(4000) };
    EventRecord {
        at: Some(ms(at)),
        done: "SIGUSR2 to process 4200".to_owned(),
        processes: vec![
            process(4200, ProcessRole::First, None, None, Some(half)),
            process(4211, worker, None, Some(0), Some(half)),
            process(4200, ProcessRole::First, Some(half), None, None),
            process(4301, worker, Some(half + 100), Some(end), None),
        ],
        closed_before: Some(0),
        closed_since: Some(0),
        requests: Some(EventRequests::of(&requests, times, 0)),
        ..EventRecord::planned("restart@1s".parse().expect("an event"))
    }
}
