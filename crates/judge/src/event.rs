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
        // With a single worker it does not (`lib/puma/configuration.rb`).
        None if setup.major() >= Some(7) && setup.workers > 1 => EventForecast::Otherwise(
            "From version 7 on a Puma with several workers preloads its app by default and then restarts in full; preload_app! false in its config makes a phased restart possible.".to_owned(),
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
    /// The server was started anew, and did not serve as before when the run was over.
    NotBack {
        /// Whether its first process ran its program anew; else another took its place.
        by_exec: bool,
        /// How many of its processes served.
        serving: u32,
        /// How many served before, or were started, whichever is more.
        of: u32,
    },
    /// The server was started anew, and ended.
    EndedAgain {
        /// Whether its first process had run its program anew; else another had taken its place.
        by_exec: bool,
    },
    /// The server ended.
    Ended,
    /// The first process ended, and its workers live.
    FirstEnded {
        /// How many.
        workers: u32,
    },
    /// Workers ended or were started, and that was not over when the run was.
    Unfinished {
        /// How many of those that were there before had ended.
        ended: u32,
        /// How many there were before.
        of: u32,
        /// How many were started.
        started: u32,
        /// How many of these served.
        serving: u32,
    },
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
    let processes = record.own_processes();
    if processes.is_empty() {
        return ServerChange::NotVisible;
    }
    let knows_serving = record.knows_serving();
    let count = |role: ProcessRole, is_it: &dyn Fn(&SeenProcess) -> bool| {
        processes.iter().filter(|process| process.role == role && is_it(process)).count() as u32
    };
    let lives = |process: &SeenProcess| process.ended.is_none();
    let is_new = |process: &SeenProcess| !process.is_older_than(at);
    let was_there = |process: &SeenProcess| {
        process.is_older_than(at) && process.ended.is_none_or(|end| end >= at)
    };
    let serves =
        |process: &SeenProcess| lives(process) && (!knows_serving || process.serving.is_some());
    let is_first_gone = count(ProcessRole::First, &lives) == 0;
    let new_first =
        processes.iter().find(|process| process.role == ProcessRole::First && is_new(process));
    if let Some(first) = new_first {
        return after_restart(record, first, at);
    }
    if is_first_gone {
        return match count(ProcessRole::Worker, &lives) {
            0 => ServerChange::Ended,
            workers => ServerChange::FirstEnded { workers },
        };
    }
    let of = count(ProcessRole::Worker, &was_there);
    let ended = count(ProcessRole::Worker, &|worker| was_there(worker) && !lives(worker));
    let started = count(ProcessRole::Worker, &is_new);
    let serving = count(ProcessRole::Worker, &|worker| is_new(worker) && serves(worker));
    let starting = count(ProcessRole::Worker, &|worker| is_new(worker) && lives(worker)) - serving;
    // Puma replaces a worker that it loses, and in a phased restart all of them.
    let is_replaced = match record.planned.kind {
        EventKind::WorkerKill | EventKind::WorkerTerm => true,
        // All but the one that the others are forked from.
        EventKind::Refork => ended == 0 || ended + 1 >= of,
        EventKind::PhasedRestart => ended == 0 || ended == of,
        _ => false,
    };
    let is_phased = matches!(record.planned.kind, EventKind::PhasedRestart | EventKind::Refork);
    let lacks_workers = serving < ended && (started > 0 || is_phased || is_replaced);
    if starting > 0 || lacks_workers || is_phased && !is_replaced {
        return ServerChange::Unfinished { ended, of, started, serving };
    }
    match (ended, serving) {
        (0, 0) => ServerChange::Nothing,
        (gone, new) if gone == of && new >= of => ServerChange::AllWorkersReplaced {
            workers: of,
            one_by_one: fewest_serving(&processes, at) + 1 >= of,
        },
        (gone, new) if new > gone => ServerChange::WorkersAdded { workers: new - gone },
        (gone, new) if new < gone => ServerChange::WorkersGone { workers: gone - new },
        (gone, _) => ServerChange::WorkersReplaced { workers: gone, of },
    }
}

/// What became of the server since its first process was started anew, as this one.
fn after_restart(record: &EventRecord, first: &SeenProcess, at: Nanos) -> ServerChange {
    let processes = record.own_processes();
    let knows_serving = record.knows_serving();
    let by_exec = first.by_exec;
    let of_role = |role: ProcessRole| processes.iter().filter(move |it| it.role == role);
    let lives = |process: &&SeenProcess| process.ended.is_none();
    if !of_role(ProcessRole::First).any(|process| lives(&process)) {
        return ServerChange::EndedAgain { by_exec };
    }
    let is_new = |process: &&SeenProcess| !process.is_older_than(at);
    // It may have come back without workers.
    let has_new_workers = of_role(ProcessRole::Worker).any(|process| is_new(&process));
    let had_workers = of_role(ProcessRole::Worker).next().is_some();
    let role = if has_new_workers || had_workers && first.serving.is_none() {
        ProcessRole::Worker
    } else {
        ProcessRole::First
    };
    let started = of_role(role).filter(is_new).filter(lives);
    let serving = started.clone().filter(|it| !knows_serving || it.serving.is_some());
    let serving = serving.count() as u32;
    let started = started.count() as u32;
    let before = of_role(role)
        .filter(|process| process.is_older_than(at) && process.ended.is_none_or(|end| end >= at));
    if serving == 0 || serving < started {
        let of = (before.count() as u32).max(started);
        ServerChange::NotBack { by_exec, serving, of }
    } else if by_exec {
        ServerChange::RestartedInFull
    } else {
        ServerChange::StoppedAndStarted
    }
}

/// How long the event took: until the last change of processes was over, and its command had ended.
/// `None` if nothing changed, or if that was not over when the run was.
pub fn took(record: &EventRecord) -> Option<Nanos> {
    if !is_over(record) {
        return None;
    }
    Some(record.change_ended()?.saturating_sub(record.at?))
}

/// When the server's processes had settled, and the event's command had ended, in a run of this
/// length.
pub fn settled(record: &EventRecord, measured: Nanos) -> Nanos {
    if !is_over(record) {
        return measured;
    }
    record.change_ended().or(record.at).unwrap_or_default().min(measured)
}

/// Whether the processes had settled, and the command had ended, when the run was over.
fn is_over(record: &EventRecord) -> bool {
    let is_running = record.command.as_ref().is_some_and(|command| command.ended.is_none());
    !is_running && server_change(record).is_over()
}

/// Why a run does not show what its event costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTrouble {
    /// The event was not done.
    NotDone,
    /// Its command failed.
    Failed {
        /// With this exit code.
        exit_code: i32,
    },
    /// No process of the server changed, although that was asked for.
    WithoutEffect,
    /// It was not over when the run was.
    Unfinished,
}

/// Why a run does not show what this event costs; `None` if it does.
pub fn trouble(record: &EventRecord) -> Option<EventTrouble> {
    if record.at.is_none() {
        return Some(EventTrouble::NotDone);
    }
    let exit_code = record.command.as_ref().and_then(|command| command.exit_code);
    match exit_code.filter(|code| *code != 0) {
        Some(exit_code) => Some(EventTrouble::Failed { exit_code }),
        // The run shows what it costs if the server does not come back.
        None if matches!(server_change(record), ServerChange::EndedAgain { .. }) => None,
        None if !is_over(record) => Some(EventTrouble::Unfinished),
        None => {
            let is_without_effect = server_change(record) == ServerChange::Nothing
                && changes_processes(&record.planned.kind);
            is_without_effect.then_some(EventTrouble::WithoutEffect)
        }
    }
}

/// Whether some process of the server ends or starts if the event is done. A signal or a command
/// may do something else.
fn changes_processes(kind: &EventKind) -> bool {
    match kind {
        EventKind::PhasedRestart
        | EventKind::Restart
        | EventKind::Refork
        | EventKind::WorkerKill
        | EventKind::WorkerTerm
        | EventKind::StopStart
        | EventKind::ScaleUp
        | EventKind::ScaleDown => true,
        EventKind::Signal(_) | EventKind::Command(_) => false,
    }
}

/// The fewest workers that served at any time since the event.
fn fewest_serving(processes: &[SeenProcess], at: Nanos) -> u32 {
    let workers = || processes.iter().filter(|process| process.role == ProcessRole::Worker);
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
    /// Whether all that was to change had changed when the run was over.
    pub fn is_over(self) -> bool {
        match self {
            ServerChange::NotBack { .. }
            | ServerChange::EndedAgain { .. }
            | ServerChange::Unfinished { .. } => false,
            ServerChange::NotDone
            | ServerChange::NotVisible
            | ServerChange::Nothing
            | ServerChange::RestartedInFull
            | ServerChange::StoppedAndStarted
            | ServerChange::Ended
            | ServerChange::FirstEnded { .. }
            | ServerChange::AllWorkersReplaced { .. }
            | ServerChange::WorkersReplaced { .. }
            | ServerChange::WorkersAdded { .. }
            | ServerChange::WorkersGone { .. } => true,
        }
    }

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
            ServerChange::NotBack { by_exec, serving, of } => {
                let start = if by_exec { "restarted" } else { "was stopped and started" };
                let back = match serving {
                    0 => "had not come back".to_owned(),
                    serving => format!("only {serving} of its {of} processes served"),
                };
                let and = if serving == 0 { "and" } else { "but" };
                format!("the server {start}, {and} {back} when the run was over")
            }
            ServerChange::EndedAgain { by_exec: true } => {
                "the server restarted and then ended".to_owned()
            }
            ServerChange::EndedAgain { by_exec: false } => {
                "the server ended, and so did the one that took its place".to_owned()
            }
            ServerChange::Ended => "the server ended".to_owned(),
            ServerChange::FirstEnded { workers } => {
                let live = if workers == 1 { "worker lives" } else { "workers live" };
                format!("the server's first process ended, and {workers} {live} on without it")
            }
            ServerChange::Unfinished { ended, of, started, serving } => {
                unfinished(ended, of, started, serving)
            }
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

/// `1 of 2 workers ended, and its replacement had not served when the run was over (4 were started)`
fn unfinished(ended: u32, of: u32, started: u32, serving: u32) -> String {
    let workers = count_of(of, "worker");
    let when = "when the run was over";
    if ended == 0 {
        let were = if started == 1 { "was" } else { "were" };
        let served = match serving {
            0 => "had not served".to_owned(),
            serving => format!("only {serving} of them served"),
        };
        return format!("{} {were} started, and {served} {when}", count_of(started, "worker"));
    }
    if serving >= ended {
        return format!("only {ended} of {workers} had been replaced {when}");
    }
    let replacement = match (started, serving, ended) {
        (0, _, 1) => "had no replacement".to_owned(),
        (0, _, _) => "had no replacements".to_owned(),
        (_, 0, 1) => "its replacement had not served".to_owned(),
        (_, 0, _) => "their replacements had not served".to_owned(),
        (_, serving, _) => format!("only {serving} of their replacements served"),
    };
    let number = if started > ended { format!(" ({started} were started)") } else { String::new() };
    format!("{ended} of {workers} ended, and {replacement} {when}{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Nanos = Nanos::from_secs(3);

    fn process(
        role: ProcessRole,
        pid: u32,
        started: Option<u64>,
        serving: Option<u64>,
        ended: Option<u64>,
    ) -> SeenProcess {
        SeenProcess {
            pid,
            parent: 1,
            role,
            started: started.map(Nanos::from_millis),
            serving: serving.map(Nanos::from_millis),
            ended: ended.map(Nanos::from_millis),
            by_exec: role == ProcessRole::First && pid == 1 && started.is_some(),
        }
    }

    fn first(started: Option<u64>, ended: Option<u64>) -> SeenProcess {
        process(ProcessRole::First, 1, started, None, ended)
    }

    fn worker(
        pid: u32,
        started: Option<u64>,
        serving: Option<u64>,
        ended: Option<u64>,
    ) -> SeenProcess {
        process(ProcessRole::Worker, pid, started, serving, ended)
    }

    fn said(event: &str, processes: Vec<SeenProcess>) -> (String, Option<Nanos>) {
        let record =
            EventRecord { at: Some(AT), processes, ..EventRecord::planned(event.parse().unwrap()) };
        (server_change(&record).in_words(), took(&record))
    }

    #[test]
    fn a_worker_is_replaced_only_if_another_serves() {
        let old = |ended| worker(10, None, Some(0), ended);
        let other = worker(11, None, Some(0), None);
        let lost = |new: &[SeenProcess]| {
            said(
                "worker-kill",
                [&[first(None, None), old(Some(3010)), other.clone()], new].concat(),
            )
        };
        assert_eq!(
            lost(&[worker(12, Some(3200), Some(4000), None)]),
            ("1 of 2 workers was replaced".to_owned(), Some(Nanos::from_secs(1)))
        );
        let failed = |pid, from| worker(pid, Some(from), None, Some(from + 900));
        assert_eq!(
            lost(&[
                failed(12, 3200),
                failed(13, 4200),
                failed(14, 5200),
                worker(15, Some(6200), None, None)
            ]),
            (
                "1 of 2 workers ended, and its replacement had not served when the run was over \
                 (4 were started)"
                    .to_owned(),
                None
            )
        );
        assert_eq!(
            lost(&[]).0,
            "1 of 2 workers ended, and had no replacement when the run was over"
        );
        let added =
            said("scale-up", vec![first(None, None), other, worker(12, Some(3200), None, None)]);
        let text = "1 worker was started, and had not served when the run was over";
        assert_eq!(added, (text.to_owned(), None));
    }

    #[test]
    fn a_phased_restart_is_over_when_all_workers_are_replaced() {
        let phased = said(
            "phased-restart",
            vec![
                first(None, None),
                worker(10, None, Some(0), Some(3500)),
                worker(11, None, Some(0), None),
                worker(12, Some(3600), Some(4600), None),
            ],
        );
        let text = "only 1 of 2 workers had been replaced when the run was over";
        assert_eq!(phased, (text.to_owned(), None));
    }

    #[test]
    fn a_refork_is_over_when_all_workers_but_one_are_replaced() {
        let old = |pid, ended| worker(pid, None, Some(0), ended);
        let new = |pid, from| worker(pid, Some(from), Some(from + 100), None);
        let before = [first(None, None), old(10, None), old(11, Some(3100))];
        let rest = [old(12, None), new(20, 3200)];
        let reforked = said("refork", [&before[..], &rest].concat());
        let text = "only 1 of 3 workers had been replaced when the run was over";
        assert_eq!(reforked, (text.to_owned(), None));
        let rest = [old(12, Some(3400)), new(20, 3200), new(21, 3500)];
        let reforked = said("refork", [&before[..], &rest].concat());
        assert_eq!(
            reforked,
            ("2 of 3 workers were replaced".to_owned(), Some(Nanos::from_millis(600)))
        );
    }

    #[test]
    fn a_server_may_come_back_without_workers() {
        let before = [first(None, Some(3400)), worker(10, None, Some(0), Some(3300))];
        let single = |serving| {
            let now = process(ProcessRole::First, 1, Some(3400), serving, None);
            said("bin/deploy", [&before[..], &[now]].concat()).0
        };
        assert_eq!(single(Some(3900)), "the server restarted in full");
        assert_eq!(
            single(None),
            "the server restarted, and had not come back when the run was over"
        );
    }

    #[test]
    fn a_restart_is_over_when_the_server_serves_again() {
        let restart = |event: &str, new: &[SeenProcess]| {
            let before = [first(None, Some(3400)), worker(10, None, Some(0), Some(3300))];
            said(event, [&before, new].concat())
        };
        let again = |ended| first(Some(3400), ended);
        let up = worker(12, Some(3500), Some(3900), None);
        let took = Some(Nanos::from_millis(900));
        assert_eq!(
            restart("restart", &[again(None), up.clone()]),
            ("the server restarted in full".to_owned(), took)
        );
        assert_eq!(
            restart("restart", &[again(Some(3500))]),
            ("the server restarted and then ended".to_owned(), None)
        );
        let boots = worker(12, Some(3500), None, None);
        assert_eq!(
            restart("restart", &[again(None), boots.clone()]),
            ("the server restarted, and had not come back when the run was over".to_owned(), None)
        );
        assert_eq!(
            restart("restart", &[again(None), up.clone(), boots]).0,
            "the server restarted, but only 1 of its 2 processes served when the run was over"
        );
        let other = process(ProcessRole::First, 2, Some(3400), None, None);
        assert_eq!(
            restart("bin/deploy", &[other, up]),
            ("the server ended, and another took its place".to_owned(), took)
        );
    }

    #[test]
    fn workers_that_outlive_the_first_process_are_said() {
        let killed = said(
            "KILL",
            vec![
                first(None, Some(3020)),
                worker(10, None, None, None),
                worker(11, None, None, None),
            ],
        );
        let text = "the server's first process ended, and 2 workers live on without it";
        assert_eq!(killed, (text.to_owned(), Some(Nanos::from_millis(20))));
    }

    #[test]
    fn puma_preloads_by_default_only_from_version_7_on_and_with_several_workers() {
        for (version, workers, is_as_asked) in
            [("6.6.1", 2, true), ("7.2.1", 1, true), ("7.2.1", 2, false), ("8.0.2", 4, false)]
        {
            let setup =
                PumaSetup { version: Some(version.to_owned()), workers, ..PumaSetup::default() };
            let said = forecast(&EventKind::PhasedRestart, Some(&setup));
            assert_eq!(said == EventForecast::AsAsked, is_as_asked, "{version} {workers}");
        }
    }
}
