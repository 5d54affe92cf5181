//! From looks and polls to the tracks of a run: on the axis of its window, counters from its begin or a process's birth, and what could
//! not be had absent. Nothing is read here.

use std::collections::BTreeMap;

use model::watch::{Curve, HELD_CONNECTIONS, Track};
use model::{Nanos, Watch};
use probe::processes::Used;
use probe::puma_stats::WorkerStats;
use probe::sockets::{AcceptQueue, ServerSockets};

use super::{FIGURES, Poll, Polled, Seen, name_of};

/// All that was seen, from the instant `from` on. `single` names the one worker of single mode, whose statistics name none.
pub(crate) fn watch(seen: Seen, polled: Option<Polled>, from: Nanos, single: &str) -> Watch {
    let Seen { source, mut queue, mut sockets, mut processes, mut held, pids, missing, cpu } = seen;
    queue.retain(|(at, _)| *at >= from);
    sockets.retain(|(at, _)| *at >= from);
    processes.retain(|(at, _)| *at >= from);
    held.retain(|(at, _)| *at >= from);
    let mut watch = Watch { tracks: Vec::new(), cpu, missing };
    watch.tracks.push(queue_track(source, &queue, from));
    watch.tracks.push(sockets_track(source, &sockets, from));
    watch.tracks.push(processes_track(&processes, &pids, from));
    watch.tracks.push(held_track(&held, &pids, from));
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

fn held_track(looks: &[(Nanos, Vec<Option<u64>>)], pids: &[u32], from: Nanos) -> Track {
    let of = |(place, pid): (usize, &u32)| Curve {
        of: pid.to_string(),
        name: HELD_CONNECTIONS.to_owned(),
        unit: "connections".to_owned(),
        values: looks.iter().map(|(_, held)| held.get(place).copied().flatten()).collect(),
        staleness: Vec::new(),
    };
    track("/proc/PID/fd", looks.iter().map(|(at, _)| *at - from), pids.iter().enumerate().map(of).collect())
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
    use probe::puma_stats;

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
            held: vec![(at(2950), vec![Some(9), None]), (at(3010), vec![Some(3), None])],
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
        assert_eq!(names(&watch.tracks[3]), [("11", "held_connections")]);
        assert_eq!((watch.tracks[3].curves[0].values.as_slice(), watch.tracks.len()), (&[Some(3)][..], 4));
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
        let track = &watch.tracks[4];
        assert_eq!(names(track), [("11", "backlog"), ("11", "busy_threads"), ("11", "pool_capacity")]);
        assert_eq!(track.curves[1].values, [Some(4), None]);
        assert_eq!(track.curves[1].staleness, [Some(Nanos::from_secs(2)), None]);
        assert_eq!(watch.missing, ["the server's statistics: 1 of 3 polls had no answer"]);
        assert_eq!(watch.cpu, Nanos(1_000_001));
    }
}
