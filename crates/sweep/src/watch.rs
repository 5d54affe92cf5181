//! Looks at server and kernel while a run goes on, from threads of their own, and only by what everybody may read.
//!
//! The accept queue is looked at 20 times a second, connections and processes 4 times, the server's statistics, and whether there
//! are new processes, once. A look at
//! the connections takes up to a millisecond of CPU (the kernel walks its hash of sockets), one at the processes some microseconds a
//! thread; all become rarer where they have taken more than a twentieth of one CPU. What is kept is bounded too: where it is full, every second look of what there is goes, and from
//! then on half as many are taken. Lanes share nothing with these threads but the machine.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use model::watch::{Curve, Track};
use model::{Clock, Nanos, Watch};
use probe::processes::{self, Follower, Used, this_threads_cpu};
use probe::puma_stats::{self, PumaStats, WorkerStats};
use probe::sockets::{AcceptQueue, ServerSockets};
use probe::{Control, Listener};

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

    /// Looks until `over`.
    pub(crate) fn look_on(mut self, clock: &impl Clock, over: &AtomicBool, looks: &Looks) -> Seen {
        let (begun, begun_with) = (clock.now(), this_threads_cpu());
        let mut seen = Seen {
            source: self.listener.source(),
            queue: Vec::new(),
            sockets: Vec::new(),
            processes: Vec::new(),
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

/// Every second look goes.
fn halve<T>(looks: &mut Vec<T>) {
    let mut keep = false;
    looks.retain(|_| {
        keep = !keep;
        keep
    });
}

/// All that was seen, from the instant `from` on. `single` names the one worker of single mode, whose statistics name none.
pub(crate) fn watch(seen: Seen, polled: Option<Polled>, from: Nanos, single: &str) -> Watch {
    let Seen { source, mut queue, mut sockets, mut processes, pids, missing, cpu } = seen;
    queue.retain(|(at, _)| *at >= from);
    sockets.retain(|(at, _)| *at >= from);
    processes.retain(|(at, _)| *at >= from);
    let mut watch = Watch { tracks: Vec::new(), cpu, missing };
    watch.tracks.push(queue_track(source, &queue, from));
    watch.tracks.push(sockets_track(source, &sockets, from));
    watch.tracks.push(processes_track(&processes, &pids, from));
    if let Some(Polled { mut polls, cpu }) = polled {
        watch.cpu += cpu;
        let failed = polls.iter().filter(|poll| poll.stats.is_none()).count();
        if failed > 0 {
            watch.missing.push(format!("the server's statistics: {failed} of {} polls had no answer", polls.len()));
        }
        polls.retain(|poll| poll.at >= from);
        watch.tracks.push(stats_track(&polls, from, single));
    }
    watch.tracks.retain(|track| !track.curves.is_empty());
    watch
}

fn queue_track(source: &str, looks: &[(Nanos, Option<AcceptQueue>)], from: Nanos) -> Track {
    let curves = vec![
        connections(looks, "accept_queue", |seen| Some(seen.length)),
        connections(looks, "accept_queue_limit", |seen| seen.limit),
    ];
    track(source, looks.iter().map(|(at, _)| *at - from), curves)
}

fn sockets_track(source: &str, looks: &[(Nanos, Option<ServerSockets>)], from: Nanos) -> Track {
    let curves = vec![
        connections(looks, "open_connections", |seen| Some(seen.open)),
        connections(looks, "unread_connections", |seen| seen.unread),
    ];
    track(source, looks.iter().map(|(at, _)| *at - from), curves)
}

fn connections<T>(looks: &[(Nanos, Option<T>)], name: &str, value: fn(&T) -> Option<u32>) -> Curve {
    let values = looks.iter().map(|(_, seen)| seen.as_ref().and_then(value).map(u64::from)).collect();
    Curve { name: name.to_owned(), unit: "connections".to_owned(), values, ..Curve::default() }
}

fn processes_track(looks: &[(Nanos, Vec<Option<Used>>)], pids: &[u32], from: Nanos) -> Track {
    let mut curves = Vec::new();
    for (place, pid) in pids.iter().enumerate() {
        let mut curve = |name: &str, unit: &str, is_counter: bool, value: fn(&Used) -> u64| {
            let of = |seen: &Vec<Option<Used>>| seen.get(place)?.as_ref().map(value);
            // A counter begins with the window, and that of a process that was born in it with its birth.
            let was_there = looks.first().is_some_and(|(_, seen)| seen.len() > place);
            let before = if is_counter && was_there { looks.first().and_then(|(_, seen)| of(seen)) } else { Some(0) };
            let values = looks.iter().map(|(_, seen)| of(seen)?.checked_sub(before?)).collect();
            curves.push(Curve {
                of: pid.to_string(),
                name: name.to_owned(),
                unit: unit.to_owned(),
                values,
                staleness: Vec::new(),
            });
        };
        curve("cpu", "ns", true, |used| used.cpu);
        curve("run_queue_wait", "ns", true, |used| used.run_queue);
        curve("threads", "threads", false, |used| used.threads);
    }
    track("/proc/PID/task/TID/schedstat", looks.iter().map(|(at, _)| *at - from), curves)
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

/// What a worker said at a poll, and how old that may have been; `None` where it said nothing.
type Said<'a> = Option<(&'a WorkerStats, Option<Nanos>)>;

fn stats_track(polls: &[Poll], from: Nanos, single: &str) -> Track {
    // By worker, what it said at each poll.
    let mut workers: BTreeMap<String, Vec<Said<'_>>> = BTreeMap::new();
    for (number, poll) in polls.iter().enumerate() {
        for worker in poll.stats.iter().flat_map(|stats| &stats.workers) {
            let said = workers.entry(name_of(worker, single)).or_insert_with(|| vec![None; polls.len()]);
            said[number] = Some((worker, worker.age(poll.wall)));
        }
    }
    let mut curves = Vec::new();
    for (of, said) in &workers {
        let is_live = said.iter().flatten().all(|(_, age)| *age == Some(Nanos::ZERO));
        for (name, unit, value) in FIGURES {
            curves.push(Curve {
                of: of.clone(),
                name: name.to_owned(),
                unit: unit.to_owned(),
                values: said.iter().map(|said| said.and_then(|(worker, _)| value(worker))).collect(),
                staleness: if is_live {
                    Vec::new()
                } else {
                    said.iter().map(|said| said.and_then(|(_, age)| age)).collect()
                },
            });
        }
    }
    track("puma stats", polls.iter().map(|poll| poll.at - from), curves)
}

/// Curves that have at least one value.
fn track(source: &str, at: impl Iterator<Item = Nanos>, mut curves: Vec<Curve>) -> Track {
    curves.retain(|curve| curve.values.iter().any(Option::is_some));
    Track { source: source.to_owned(), at: at.collect(), curves }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Nanos = Nanos::from_secs(3);

    fn names(track: &Track) -> Vec<(&str, &str)> {
        track.curves.iter().map(|curve| (curve.of.as_str(), curve.name.as_str())).collect()
    }

    fn seen() -> Seen {
        let open = |n| ServerSockets { listening: true, accept_queue: 0, open: n, unread: None, limit: None };
        let queue = |length| AcceptQueue { length, limit: Some(128) };
        let used = |cpu| Used { cpu, run_queue: cpu / 10, threads: 3 };
        let at = |ms| Nanos::from_millis(ms);
        Seen {
            source: "sock_diag",
            queue: vec![
                (at(2900), Some(queue(9))),
                (at(3000), Some(queue(1))),
                (at(3050), None),
                (at(3100), Some(queue(4))),
            ],
            sockets: vec![(at(2900), Some(open(5))), (at(3000), Some(open(6)))],
            processes: vec![
                (at(2950), vec![Some(used(100)), None]),
                (at(3000), vec![Some(used(150)), None]),
                (at(3250), vec![Some(used(400)), None]),
            ],
            pids: vec![11, 12],
            missing: Vec::new(),
            cpu: Nanos::from_millis(1),
        }
    }

    #[test]
    fn the_axis_begins_with_the_window_and_what_could_not_be_had_is_absent() {
        let watch = watch(seen(), None, FROM, "");
        let (track, queue) = watch.curve("accept_queue").unwrap();
        assert_eq!(track.at, [0, 50, 100].map(Nanos::from_millis));
        assert_eq!(queue.values, [Some(1), None, Some(4)]);
        // Nothing tells the unread ones, and nothing was seen of 12.
        assert_eq!(names(track), [("", "accept_queue"), ("", "accept_queue_limit")]);
        assert_eq!(names(&watch.tracks[1]), [("", "open_connections")]);
        assert_eq!(names(&watch.tracks[2]), [("11", "cpu"), ("11", "run_queue_wait"), ("11", "threads")]);
        assert_eq!(watch.tracks[2].curves[0].values, [Some(0), Some(250)], "a counter begins with the window");
        assert_eq!(watch.tracks[2].curves[2].values, [Some(3), Some(3)]);
        assert_eq!(watch.tracks.len(), 3);
    }

    #[test]
    fn who_was_born_meanwhile_is_counted_from_birth() {
        let mut seen = seen();
        let born = Used { cpu: 70, run_queue: 7, threads: 2 };
        seen.pids.push(13);
        let (_, last) = &mut seen.processes[2];
        last.push(Some(born));
        let watch = watch(seen, None, FROM, "");
        let of_13: Vec<&Curve> = watch.tracks[2].curves.iter().filter(|curve| curve.of == "13").collect();
        assert_eq!(
            of_13.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>(),
            ["cpu", "run_queue_wait", "threads"]
        );
        assert_eq!(of_13[0].values, [None, Some(70)], "and was absent before");
    }

    #[test]
    fn statistics_have_their_age_and_a_poll_without_an_answer_is_a_gap() {
        let text = r#"{"workers":1,"worker_status":[{"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
            "last_status":{"backlog":2,"running":5,"pool_capacity":1,"max_threads":5}}]}"#;
        let poll = |seconds, stats| Poll { at: Nanos::from_secs(seconds), wall: Nanos::from_secs(59 + seconds), stats };
        let stats = puma_stats::parse(text).unwrap();
        let polls = vec![poll(2, Some(stats.clone())), poll(3, Some(stats)), poll(4, None)];
        let watch = watch(seen(), Some(Polled { polls, cpu: Nanos(1) }), FROM, "");
        let track = &watch.tracks[3];
        assert_eq!(names(track), [("11", "backlog"), ("11", "busy_threads"), ("11", "pool_capacity")]);
        assert_eq!(track.curves[1].values, [Some(4), None]);
        assert_eq!(track.curves[1].staleness, [Some(Nanos::from_secs(2)), None]);
        assert_eq!(watch.missing, ["the server's statistics: 1 of 3 polls had no answer"]);
        assert_eq!(watch.cpu, Nanos(1_000_001));
    }

    #[test]
    fn where_it_is_full_every_second_look_goes() {
        let mut looks: Vec<u32> = (0..7).collect();
        halve(&mut looks);
        assert_eq!(looks, [0, 2, 4, 6]);
    }
}
