//! What an event in the middle of a run (`--during`) will do and did: what a Puma cannot do is
//! known before the load, and what happened is concluded from processes, never from what was asked.

use model::{EventKind, EventRecord, Nanos, ProcessRole, PumaSetup, SeenProcess};
use serde::{Deserialize, Serialize};

use crate::words::count_of;

/// What is to be said of an event before the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventForecast {
    /// Nothing.
    AsAsked,
    /// Something else may happen than was asked for.
    Otherwise(String),
    /// It cannot be done: why, and what to type.
    Refused(String),
}

/// What a Puma of this setup will do on such an event; `None` if the server is no Puma.
pub fn forecast(kind: &EventKind, setup: Option<&PumaSetup>) -> EventForecast {
    use EventForecast::{AsAsked, Otherwise, Refused};
    let Some(setup) = setup else {
        return if kind.is_pumas() {
            Refused(format!(
                "--during {kind} is for Puma, and no Puma is seen here: name a signal (--during \
                 HUP@20s) or a command"
            ))
        } else {
            AsAsked
        };
    };
    let is_single = setup.workers == 0;
    match kind {
        EventKind::PhasedRestart if is_single => Otherwise(
            "Puma runs without workers (single mode), so instead of a phased restart it will restart in full.".to_owned(),
        ),
        EventKind::PhasedRestart => of_phased_restart(setup),
        EventKind::Refork => of_refork(setup),
        EventKind::WorkerKill | EventKind::WorkerTerm | EventKind::ScaleUp | EventKind::ScaleDown
            if is_single =>
        {
            Refused(format!(
                "--during {kind} needs workers, and Puma runs without (single mode): start it with -w 2"
            ))
        }
        EventKind::ScaleDown if setup.workers == 1 => {
            Refused("--during scale-down: Puma keeps its last worker; start it with -w 2".to_owned())
        }
        EventKind::Restart
        | EventKind::WorkerKill
        | EventKind::WorkerTerm
        | EventKind::StopStart
        | EventKind::ScaleUp
        | EventKind::ScaleDown
        | EventKind::Signal(_)
        | EventKind::Command(_) => AsAsked,
    }
}

fn of_phased_restart(setup: &PumaSetup) -> EventForecast {
    match setup.phased {
        Some(phased) if phased.is_there => EventForecast::AsAsked,
        Some(phased) if phased.is_told => EventForecast::Otherwise(
            "Puma preloads its app and said at its start that it cannot restart in phases, so it will restart in full.".to_owned(),
        ),
        Some(_) => EventForecast::Otherwise(
            "Puma's config file has preload_app!, so instead of a phased restart it will probably restart in full.".to_owned(),
        ),
        None if setup.major() >= Some(7) => EventForecast::Otherwise(
            "From version 7 on a Puma cluster preloads its app by default and then restarts in full; preload_app! false in its config makes a phased restart possible.".to_owned(),
        ),
        None => EventForecast::AsAsked,
    }
}

fn of_refork(setup: &PumaSetup) -> EventForecast {
    let needed = "fork_worker in Puma's config (and workers)";
    match setup.refork {
        _ if setup.workers == 0 || setup.major() < Some(5) => {
            EventForecast::Refused(format!("--during refork needs Puma 5 or later with {needed}"))
        }
        Some(refork) if refork.is_there => EventForecast::AsAsked,
        Some(_) => EventForecast::Refused(format!(
            "--during refork needs {needed}: Puma said at its start that it has not"
        )),
        None => EventForecast::Otherwise(format!(
            "A refork needs {needed}; without it, Puma does nothing."
        )),
    }
}

/// What became of a server's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum ServerChange {
    /// The event was not done.
    NotDone,
    /// The server's processes cannot be seen.
    NotVisible,
    /// Nothing changed.
    Nothing,
    /// The first process ran its program anew.
    RestartedInFull,
    /// The server ended, and another took its place.
    StoppedAndStarted,
    /// The server ended.
    Ended,
    /// All workers were replaced.
    AllWorkersReplaced {
        /// How many there were.
        workers: u32,
        /// Whether at most one was missing at any time.
        one_by_one: bool,
    },
    /// Some workers ended, and as many were started.
    WorkersReplaced {
        /// How many.
        workers: u32,
        /// How many there were.
        of: u32,
    },
    /// Workers were added.
    WorkersAdded {
        /// How many more there are.
        workers: u32,
    },
    /// Workers ended, and were not replaced.
    WorkersGone {
        /// How many fewer there are.
        workers: u32,
    },
}

/// What became of the server's processes since the event.
pub fn server_change(record: &EventRecord) -> ServerChange {
    let Some(at) = record.at else { return ServerChange::NotDone };
    if record.processes.is_empty() {
        return ServerChange::NotVisible;
    }
    let of_role = |role| record.processes.iter().filter(move |process| process.role == role);
    let is_new = |process: &&SeenProcess| !process.is_older_than(at);
    let first = of_role(ProcessRole::First).find(is_new);
    if let Some(first) = first {
        return if first.by_exec {
            ServerChange::RestartedInFull
        } else {
            ServerChange::StoppedAndStarted
        };
    }
    if of_role(ProcessRole::First).all(|process| process.ended.is_some()) {
        return ServerChange::Ended;
    }
    let was_there = |worker: &&SeenProcess| {
        worker.is_older_than(at) && worker.ended.is_none_or(|end| end >= at)
    };
    let old = of_role(ProcessRole::Worker).filter(was_there).count() as u32;
    let gone = of_role(ProcessRole::Worker)
        .filter(was_there)
        .filter(|worker| worker.ended.is_some())
        .count() as u32;
    let new =
        of_role(ProcessRole::Worker).filter(is_new).filter(|worker| worker.ended.is_none()).count()
            as u32;
    match (gone, new) {
        (0, 0) => ServerChange::Nothing,
        (gone, new) if gone == old && new >= old => ServerChange::AllWorkersReplaced {
            workers: old,
            one_by_one: fewest_serving(record, at) + 1 >= old,
        },
        (gone, new) if new > gone => ServerChange::WorkersAdded { workers: new - gone },
        (gone, new) if new < gone => ServerChange::WorkersGone { workers: gone - new },
        (gone, _) => ServerChange::WorkersReplaced { workers: gone, of: old },
    }
}

/// The fewest workers that served at any time since the event.
fn fewest_serving(record: &EventRecord, at: Nanos) -> u32 {
    let workers = || record.processes.iter().filter(|process| process.role == ProcessRole::Worker);
    let ends = workers().filter_map(|process| process.ended).filter(|end| *end >= at);
    let serving = |time: Nanos| {
        let serves = |process: &&SeenProcess| {
            process.serving.is_some_and(|since| since <= time)
                && process.ended.is_none_or(|end| time < end)
        };
        workers().filter(serves).count() as u32
    };
    ends.map(serving).min().unwrap_or(0)
}

impl ServerChange {
    /// What happened, as the rest of a sentence.
    pub(crate) fn in_words(self) -> String {
        match self {
            ServerChange::NotDone => "it was not done".to_owned(),
            ServerChange::NotVisible => {
                "the server's processes cannot be seen from here".to_owned()
            }
            ServerChange::Nothing => "no process of the server changed".to_owned(),
            ServerChange::RestartedInFull => "the server restarted in full".to_owned(),
            ServerChange::StoppedAndStarted => {
                "the server ended, and another took its place".to_owned()
            }
            ServerChange::Ended => "the server ended".to_owned(),
            ServerChange::AllWorkersReplaced { workers: 1, .. } => {
                "its only worker was replaced".to_owned()
            }
            ServerChange::AllWorkersReplaced { workers, one_by_one } => {
                let how = if one_by_one { ", one after the other" } else { "" };
                format!("all {workers} workers were replaced{how}")
            }
            ServerChange::WorkersReplaced { workers, of } => {
                let were = if workers == 1 { "was" } else { "were" };
                format!("{workers} of {} {were} replaced", count_of(of, "worker"))
            }
            ServerChange::WorkersAdded { workers } => {
                let were = if workers == 1 { "was" } else { "were" };
                format!("{} {were} added", count_of(workers, "worker"))
            }
            ServerChange::WorkersGone { workers } => {
                format!(
                    "{} ended and {} not replaced",
                    count_of(workers, "worker"),
                    if workers == 1 { "was" } else { "were" }
                )
            }
        }
    }
}
