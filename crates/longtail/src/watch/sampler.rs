//! Reads what there is to be seen, again and again, and tells it: the accept queue 20 times a second, all else once a period,
//! the server's statistics from a thread of its own.
//!
//! The kernel walks its hash of sockets for the connections, and we all of `/proc` for the processes: where that takes
//! more than a twentieth of one CPU it is done less often. Nothing is kept here.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::Duration;

use engine::{Endpoint, Unreachable, reach};
use model::{Clock, Nanos};
use probe::family::{Family, Member};
use probe::host::Host;
use probe::processes::this_threads_cpu;
use probe::puma_stats::{self, PumaStats};
use probe::sockets::{AcceptQueue, Socket};
use probe::{Control, Listener, owners};

use super::target::Target;

/// Between two looks at the accept queue.
const PERIOD: Nanos = Nanos::from_millis(50);
/// Looks may take this part of one CPU: a twentieth.
const PART: u64 = 20;
/// A connect to another machine may take so long: two retransmissions of its first segment, after 1 and 3 s.
const PATIENCE: Duration = Duration::from_secs(4);
/// The server's statistics are not asked for more often.
const POLL: Nanos = Nanos::from_secs(1);

/// One observation.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The accept queue; `None` where the kernel did not tell.
    Queue { at: Nanos, queue: Option<AcceptQueue> },
    /// All that is looked at once a period.
    All(Box<Look>),
    /// What the server says of itself, by both clocks, and the CPU time that asking has taken so far.
    Stats { at: Nanos, wall: Nanos, cpu: Nanos, stats: Result<PumaStats, String> },
    /// A connection to a server on another machine: how long it took to be made, or why none was.
    Connected { at: Nanos, took: Result<Nanos, Unreachable> },
    /// The server has ended.
    Ended { at: Nanos },
}

/// Sockets, processes and machine at one instant.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) at: Nanos,
    pub(crate) connections: Option<Connections>,
    pub(crate) members: Vec<Member>,
    pub(crate) host: Host,
    /// What could not be read.
    pub(crate) missing: Vec<String>,
    /// CPU time that all looks have taken so far.
    pub(crate) cpu: Nanos,
}

/// The server's ends of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connections {
    /// All that it has not closed, those in the accept queue included.
    pub(crate) open: u32,
    /// Those that it has accepted.
    pub(crate) accepted: u32,
    /// Those with bytes that it has not read; of a Unix socket the kernel does not tell.
    pub(crate) unread: Option<u32>,
}

/// What is looked at.
pub(crate) struct Sampler {
    listener: Listener,
    family: Family,
    /// The listening sockets whose holders are followed; of one process that was named, nobody else is.
    listening: Option<BTreeSet<u64>>,
}

impl Sampler {
    /// Of what was found.
    pub(crate) fn of(target: &Target) -> Sampler {
        Sampler {
            listener: target.listener(),
            family: Family::of(&target.roots),
            listening: (!target.is_process).then(|| target.inodes.clone()),
        }
    }

    /// Where the sockets are looked at.
    pub(crate) fn source(&self) -> &'static str {
        self.listener.source()
    }

    /// Looks until `over`, or until the server has ended. Who listens no more ends it too.
    pub(crate) fn look_on(mut self, clock: &impl Clock, every: Nanos, over: &AtomicBool, tell: &Sender<Seen>) {
        let (mut next_queue, mut next_all) = (clock.now(), clock.now());
        while clock.sleep_until(next_queue.min(next_all), over) {
            let before = this_threads_cpu();
            let at = clock.now();
            // The queue first: it is the shorter look.
            let is_all = next_queue > at;
            let seen = if is_all { self.all(clock) } else { self.queue(clock) };
            let is_over = matches!(seen, Seen::Ended { .. });
            // Nobody listens where the watch is over.
            if tell.send(seen).is_err() || is_over {
                return;
            }
            let rest = (this_threads_cpu().saturating_sub(before)) * PART;
            let (next, period) = if is_all { (&mut next_all, every) } else { (&mut next_queue, PERIOD) };
            // A look that came late is not made up for, and one that was dear is not soon repeated.
            *next = (*next + period).max(clock.now()).max(at + rest);
        }
    }

    fn queue(&mut self, clock: &impl Clock) -> Seen {
        let queue = self.listener.queue().ok();
        Seen::Queue { at: clock.now(), queue }
    }

    fn all(&mut self, clock: &impl Clock) -> Seen {
        let mut missing = Vec::new();
        let sockets = self.listener.all().map_err(|error| missing.push(format!("the sockets, at some looks: {error}")));
        let sockets = sockets.ok();
        let at = clock.now();
        let listeners: Option<BTreeSet<u64>> = sockets
            .as_ref()
            .map(|sockets| sockets.iter().filter(|socket| socket.is_listener).map(|socket| socket.inode).collect());
        self.follow(listeners.as_ref());
        let is_listening = listeners.is_none_or(|listeners| !listeners.is_empty());
        let is_known = !self.family.roots().is_empty();
        if !self.family.is_alive() && (is_known || !is_listening) && (self.listening.is_none() || !is_listening) {
            return Seen::Ended { at };
        }
        let accepted: Option<BTreeSet<u64>> = sockets
            .as_ref()
            .map(|sockets| sockets.iter().filter(|socket| is_accepted(socket)).map(|socket| socket.inode).collect());
        let (members, left_out) = self.family.look(accepted.as_ref());
        if left_out > 0 {
            missing.push(format!("{left_out} more processes of the server"));
        }
        if !members.is_empty() && members.iter().all(|member| member.connections.is_none()) {
            missing.push("connections of each process: only root and the server's own user may see them".to_owned());
        }
        let connections = sockets.map(|sockets| {
            let open = || sockets.iter().filter(|socket| !socket.is_listener);
            let is_told = open().all(|socket| socket.queue.is_some()) && !matches!(self.listener, Listener::Unix(_));
            Connections {
                open: open().count() as u32,
                accepted: open().filter(|socket| is_accepted(socket)).count() as u32,
                unread: is_told.then(|| open().filter(|socket| socket.queue > Some(0)).count() as u32),
            }
        });
        Seen::All(Box::new(Look { at, connections, members, host: Host::now(), missing, cpu: this_threads_cpu() }))
    }

    /// Finds the processes anew where other sockets listen now, or where those that did are gone.
    fn follow(&mut self, now: Option<&BTreeSet<u64>>) {
        let (Some(known), Some(now)) = (&mut self.listening, now) else { return };
        let is_lost = !self.family.roots().is_empty() && !self.family.is_alive();
        if now.is_empty() || (now == known && !is_lost) {
            return;
        }
        known.clone_from(now);
        self.family.re_root(&owners::holders(now).roots());
    }
}

/// A connection that nobody has accepted has no inode.
fn is_accepted(socket: &Socket) -> bool {
    !socket.is_listener && socket.inode != 0
}

/// Connects to a server on another machine once a period until `over`, and closes at once: all of its state that is seen from here.
pub(crate) fn connect_on(to: SocketAddr, clock: &impl Clock, every: Nanos, over: &AtomicBool, tell: &Sender<Seen>) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let began = clock.now();
        let made = reach(&Endpoint::Tcp(to), PATIENCE);
        let at = clock.now();
        if tell.send(Seen::Connected { at, took: made.map(|()| at - began) }).is_err() {
            return;
        }
        next = (next + every.max(POLL)).max(at);
    }
}

/// Asks the server for its statistics until `over`.
pub(crate) fn poll_on(control: &Control, clock: &impl Clock, every: Nanos, over: &AtomicBool, tell: &Sender<Seen>) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let stats = puma_stats::read_soon(control).map_err(|error| error.to_string());
        let (at, wall) = (clock.now(), clock.wall());
        if tell.send(Seen::Stats { at, wall, cpu: this_threads_cpu(), stats }).is_err() {
            return;
        }
        next = (next + every.max(POLL)).max(clock.now());
    }
}
