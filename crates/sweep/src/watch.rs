//! Looks at server and kernel while a run goes on, from threads of their own, and only by what everybody may read.
//!
//! The accept queue is looked at 20 times a second, connections and processes 4 times, the server's statistics, whether there
//! are new processes, and which process holds how many of the connections, once. A look at
//! the connections takes up to a millisecond of CPU (the kernel walks its hash of sockets), one at the processes some microseconds a
//! thread; all become rarer where they have taken more than a twentieth of one CPU. What is kept is bounded too: where it is full, every second look of what there is goes, and from
//! then on half as many are taken. Lanes share nothing with these threads but the machine. What was seen becomes a
//! [`model::Watch`] in `watch/tracks.rs`.

mod tracks;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use model::{Clock, Nanos};
use probe::processes::{self, Follower, Used, this_threads_cpu};
use probe::puma_stats::{self, PumaStats, WorkerStats};
use probe::sockets::{AcceptQueue, ServerSockets, Socket};
use probe::{Control, Listener, owners};

pub(crate) use self::tracks::watch;
use crate::looks::Looks;

/// Between two looks at the accept queue.
const PERIOD: Nanos = Nanos::from_millis(50);
/// So many of them to one look at the connections and processes.
const OTHERS_EVERY: usize = 5;
/// So many of those to one search for processes that were born meanwhile.
const SEARCH_EVERY: usize = 4;
/// Between two polls of the server's statistics.
const POLL: Nanos = Nanos::from_secs(1);
/// The looks may take this part of one CPU: a twentieth.
const PART: u64 = 20;
/// Looks before that is judged.
const FIRST_LOOKS: usize = 20;
/// Looks that are kept of a run, at the most: five minutes at full rate.
const MOST_LOOKS: usize = 6000;
/// Whose connections are whose is looked at where there are no more of them than this: each is a link to be read.
const MOST_CONNECTIONS: usize = 2000;
/// Processes that are followed, at the most.
const MOST_PROCESSES: usize = 64;

/// What is to be looked at.
pub(crate) struct Sight {
    listener: Listener,
    root: u32,
    followers: Vec<Follower>,
    missing: Vec<String>,
}

/// What was seen of sockets and processes, by the run's clock.
pub(crate) struct Seen {
    source: &'static str,
    queue: Vec<(Nanos, Option<AcceptQueue>)>,
    sockets: Vec<(Nanos, Option<ServerSockets>)>,
    processes: Vec<(Nanos, Vec<Option<Used>>)>,
    /// Connections that each process holds.
    held: Vec<(Nanos, Vec<Option<u64>>)>,
    pids: Vec<u32>,
    missing: Vec<String>,
    cpu: Nanos,
}

/// What the server's statistics said, and when by both clocks.
pub(crate) struct Polled {
    polls: Vec<Poll>,
    cpu: Nanos,
}

struct Poll {
    at: Nanos,
    wall: Nanos,
    stats: Option<PumaStats>,
}

impl Sight {
    /// Of the server behind `listener` whose first process is `root`.
    pub(crate) fn of(listener: Listener, root: u32) -> Sight {
        let mut missing = Vec::new();
        let mut family = processes::tree(root);
        if family.len() > MOST_PROCESSES {
            missing.push(format!("{} of the server's {} processes", family.len() - MOST_PROCESSES, family.len()));
            family.truncate(MOST_PROCESSES);
        }
        Sight { listener, root, followers: family.into_iter().map(Follower::of).collect(), missing }
    }

    /// Follows those too that were born since the last search.
    fn search(&mut self) {
        for pid in processes::tree(self.root) {
            let is_known = self.followers.iter().any(|follower| follower.pid() == pid);
            if !is_known && self.followers.len() < MOST_PROCESSES {
                self.followers.push(Follower::of_newborn(pid));
            }
        }
    }

    /// How many of the server's connections each process holds; `None` of one whose files this user may not see.
    fn held(&mut self) -> std::io::Result<Vec<Option<u64>>> {
        let is_accepted = |socket: &Socket| !socket.is_listener && socket.inode != 0;
        let all: BTreeSet<u64> =
            self.listener.all()?.iter().filter(|socket| is_accepted(socket)).map(|socket| socket.inode).collect();
        if all.len() > MOST_CONNECTIONS {
            return Ok(Vec::new());
        }
        let of = |pid| Some(owners::sockets_of(pid).ok()?.intersection(&all).count() as u64);
        Ok(self.followers.iter().map(|follower| of(follower.pid())).collect())
    }

    /// Looks until `over`.
    pub(crate) fn look_on(mut self, clock: &impl Clock, over: &AtomicBool, looks: &Looks) -> Seen {
        let (begun, begun_with) = (clock.now(), this_threads_cpu());
        let mut seen = Seen {
            source: self.listener.source(),
            queue: Vec::new(),
            sockets: Vec::new(),
            processes: Vec::new(),
            held: Vec::new(),
            pids: Vec::new(),
            missing: std::mem::take(&mut self.missing),
            cpu: Nanos::ZERO,
        };
        let mut failure = None;
        let (mut period, mut next, mut number) = (PERIOD, begun, 0);
        while clock.sleep_until(next, over) {
            let at = clock.now();
            let mut failed = |error: std::io::Error| failure = Some(error.to_string());
            seen.queue.push((at, self.listener.queue().map_err(&mut failed).ok()));
            let length = |(_, queue): &(Nanos, Option<AcceptQueue>)| queue.map(|queue| u64::from(queue.length));
            looks.show("accept_queue", "", seen.queue.last().and_then(length));
            if number % OTHERS_EVERY == 0 {
                seen.sockets.push((clock.now(), self.listener.look().map_err(&mut failed).ok()));
                if number % (OTHERS_EVERY * SEARCH_EVERY) == OTHERS_EVERY {
                    self.search();
                    seen.held.extend(self.held().map_err(&mut failed).ok().map(|held| (clock.now(), held)));
                }
                let open = |(_, seen): &(Nanos, Option<ServerSockets>)| seen.map(|seen| u64::from(seen.open));
                looks.show("open_connections", "", seen.sockets.last().and_then(open));
                let at = clock.now();
                seen.processes.push((at, self.followers.iter_mut().map(Follower::look).collect()));
            }
            number += 1;
            seen.cpu = this_threads_cpu().saturating_sub(begun_with);
            let now = clock.now();
            let is_dear = number > FIRST_LOOKS && seen.cpu * PART > now - begun;
            if seen.queue.len() >= MOST_LOOKS {
                halve(&mut seen.queue);
                halve(&mut seen.sockets);
                halve(&mut seen.processes);
                halve(&mut seen.held);
                period = period * 2;
            } else if is_dear && period < POLL {
                period = period * 2;
            }
            // A look that came late is not made up for.
            next = (next + period).max(now);
        }
        seen.pids = self.followers.iter().map(Follower::pid).collect();
        seen.missing.extend(failure.map(|why| format!("the sockets, at some looks: {why}")));
        seen
    }
}

/// Asks the server for its statistics until `over`.
pub(crate) fn poll_on(
    control: &Control,
    clock: &impl Clock,
    over: &AtomicBool,
    (looks, single): (&Looks, &str),
) -> Polled {
    let begun_with = this_threads_cpu();
    let (mut polls, mut next, mut period) = (Vec::new(), clock.now(), POLL);
    while clock.sleep_until(next, over) {
        let stats = puma_stats::read_soon(control).ok();
        for worker in stats.iter().flat_map(|stats| &stats.workers) {
            let of = name_of(worker, single);
            for (name, _, value) in FIGURES {
                looks.show(name, &of, value(worker));
            }
        }
        polls.push(Poll { at: clock.now(), wall: clock.wall(), stats });
        if polls.len() >= MOST_LOOKS {
            halve(&mut polls);
            period = period * 2;
        }
        next = (next + period).max(clock.now());
    }
    Polled { polls, cpu: this_threads_cpu().saturating_sub(begun_with) }
}

/// A figure of a worker, and its name and unit.
type Figure = (&'static str, &'static str, fn(&WorkerStats) -> Option<u64>);

/// What is taken of a worker's statistics.
const FIGURES: [Figure; 4] = [
    ("backlog", "requests", |worker| worker.backlog.map(u64::from)),
    ("busy_threads", "threads", |worker| worker.busy_threads().map(u64::from)),
    ("pool_capacity", "threads", |worker| worker.pool_capacity.map(u64::from)),
    ("requests_count", "requests", |worker| worker.requests_count),
];

/// A worker's name; `single` is that of the one worker of single mode.
fn name_of(worker: &WorkerStats, single: &str) -> String {
    worker.pid.map_or_else(|| single.to_owned(), |pid| pid.to_string())
}

/// Every second look goes.
fn halve<T>(looks: &mut Vec<T>) {
    let mut keep = false;
    looks.retain(|_| {
        keep = !keep;
        keep
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_full_every_second_look_goes() {
        let mut looks: Vec<u32> = (0..7).collect();
        halve(&mut looks);
        assert_eq!(looks, [0, 2, 4, 6]);
    }
}
