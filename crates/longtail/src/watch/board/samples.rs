//! Observations for the tests of the board and of what shows it.

use model::Nanos;
use probe::family::{Member, Switches};
use probe::host::Host;
use probe::processes::Used;
use probe::sockets::AcceptQueue;

use crate::watch::sampler::{Connections, Look, Seen};

/// A worker that has used so many tenths of a second of CPU.
pub(crate) fn member(pid: u32, tenths: u64, connections: Option<u32>) -> Member {
    let nanos = tenths * 100_000_000;
    Member {
        pid,
        parent: Some(10),
        title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
        used: Some(Used { cpu: nanos, run_queue: nanos / 10, threads: 8 }),
        switches: Some(Switches { voluntary: tenths * 100, involuntary: tenths }),
        memory_bytes: Some(40 << 20),
        connections,
    }
}

pub(crate) fn look(seconds: u64, members: Vec<Member>) -> Seen {
    let open = 12 + seconds as u32;
    Seen::All(Box::new(Look {
        at: Nanos::from_secs(seconds),
        connections: Some(Connections { open, accepted: 10, unread: Some(2) }),
        members,
        host: Host::default(),
        missing: Vec::new(),
        cpu: Nanos::from_millis(2),
    }))
}

pub(crate) fn queue(millis: u64, length: u32) -> Seen {
    Seen::Queue { at: Nanos::from_millis(millis), queue: Some(AcceptQueue { length, limit: Some(1024) }) }
}

pub(crate) fn stats(seconds: u64) -> Seen {
    let text = r#"{"workers":2,"worker_status":[
        {"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":0,"running":5,"pool_capacity":0,"max_threads":5}},
        {"pid":12,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":1,"running":5,"pool_capacity":2,"max_threads":5}}]}"#;
    let stats = probe::puma_stats::parse(text).map_err(|error| error.to_string());
    let at = Nanos::from_secs(seconds);
    Seen::Stats { at, wall: Nanos::from_secs(60) + at, cpu: Nanos(0), stats }
}
