//! What was seen of an event in the middle of a run: what was done, what became of the server's
//! processes, and what became of the requests.
//!
//! All times count from the start of the measured window.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::event::{EventKind, PlannedEvent};
use crate::event_requests::EventRequests;

/// A change of processes that comes this long after the event's own change was complete has another
/// cause.
const QUIET: Nanos = Nanos::from_secs(2);

/// An event and what was seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// What was asked for.
    pub planned: PlannedEvent,
    /// When it was done; `None` if the run ended before, or it could not be done.
    #[serde(rename = "at_ns")]
    pub at: Option<Nanos>,
    /// What was done, in words: `SIGUSR2 to process 4242`; or why it could not be.
    pub done: String,
    /// The command that was run, if the event is one.
    pub command: Option<EventCommand>,
    /// The server's processes in the order in which they were first seen. One that replaced itself
    /// by another program (exec) is listed again, with the same id.
    pub processes: Vec<SeenProcess>,
    /// The server's memory before the event, in bytes; shared pages count once.
    pub memory_before: Option<u64>,
    /// The same at the end of the run.
    pub memory_after: Option<u64>,
    /// Puma's phase before and after, where it says it.
    pub phases: Option<[u32; 2]>,
    /// What the server wrote about it, where that could be read.
    pub log: Vec<String>,
    /// How many CPUs other programs used.
    pub others: Option<OthersCpu>,
    /// The version of the Puma that serves, before the event and at the run's end; `None` if it is
    /// no Puma that can be seen.
    #[serde(default)]
    pub versions: Option<[String; 2]>,
    /// Whether longtail started Ruby with -I, which a Puma that restarts does not give it again.
    #[serde(default)]
    pub loses_options: bool,
    /// Connections that the server closed before the event; `None` if it is not known.
    pub closed_before: Option<u64>,
    /// Connections that it closed from the event on.
    pub closed_since: Option<u64>,
    /// What became of the requests.
    pub requests: Option<EventRequests>,
}

/// A command that was run as an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCommand {
    /// When it had ended; `None` if it had not when the run was over.
    #[serde(rename = "ended_ns")]
    pub ended: Option<Nanos>,
    /// Its exit code; `None` if it has none.
    pub exit_code: Option<i32>,
    /// The last line that it wrote.
    pub last_line: Option<String>,
}

/// How many CPUs other programs used: neither the server, nor longtail, nor the event's command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OthersCpu {
    /// Before the event.
    pub before: f64,
    /// In the busiest second from the event until all was as before.
    pub most_since: f64,
    /// CPUs that were busy in that second, with all programs.
    #[serde(default)]
    pub busy: f64,
    /// The CPUs of the machine.
    pub of: u32,
}

/// A process of the server, from when it ran its program until it ended or ran another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenProcess {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// What it is.
    pub role: ProcessRole,
    /// When it was first seen; `None` if it was there from the start.
    #[serde(rename = "started_ns")]
    pub started: Option<Nanos>,
    /// Since when its threads serve requests; 0 if they did from the start, `None` if they were
    /// never seen to.
    #[serde(rename = "serving_ns")]
    pub serving: Option<Nanos>,
    /// When it was gone; `None` if it lived when the run was over.
    #[serde(rename = "ended_ns")]
    pub ended: Option<Nanos>,
    /// Whether it is the same process as before with another program (exec).
    pub by_exec: bool,
}

/// What a process is to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// The first process of the server: of a Puma cluster the master.
    First,
    /// A worker of a Puma cluster; where the server is no Puma, a child of its first process.
    Worker,
    /// Any other.
    Other,
}

impl SeenProcess {
    /// Whether it serves requests at this time.
    fn serves_at(&self, time: Nanos) -> bool {
        self.serving.is_some_and(|since| since <= time) && self.ended.is_none_or(|end| time < end)
    }

    /// Whether it was there before the event.
    pub fn is_older_than(&self, event: Nanos) -> bool {
        self.started.is_none_or(|started| started < event)
    }
}

impl EventRecord {
    /// An event that has not happened yet.
    pub fn planned(planned: PlannedEvent) -> EventRecord {
        EventRecord {
            planned,
            at: None,
            done: String::new(),
            command: None,
            processes: Vec::new(),
            memory_before: None,
            memory_after: None,
            phases: None,
            log: Vec::new(),
            others: None,
            versions: None,
            loses_options: false,
            closed_before: None,
            closed_since: None,
            requests: None,
        }
    }

    /// When the last change of processes that followed the event was over: a process was seen for
    /// the first time, began to serve, or ended; or its command had ended. `None` if nothing
    /// changed, or there was no event.
    pub fn change_ended(&self) -> Option<Nanos> {
        self.completed().or_else(|| self.changes().last().copied())
    }

    /// The server's processes as they were when the event's own change was complete. What became of
    /// them much later has another cause.
    pub fn own_processes(&self) -> Vec<SeenProcess> {
        let Some(end) = self.completed() else { return self.processes.clone() };
        let own = self.processes.iter().filter(|one| one.started.is_none_or(|it| it <= end));
        let then = |one: &SeenProcess| SeenProcess {
            serving: one.serving.filter(|time| *time <= end),
            ended: one.ended.filter(|time| *time <= end),
            ..one.clone()
        };
        own.map(then).collect()
    }

    /// Whether it can be seen which processes serve: some did when the event happened.
    pub fn knows_serving(&self) -> bool {
        self.at.is_some_and(|at| self.processes.iter().any(|process| process.serves_at(at)))
    }

    /// When processes changed since the event, and when its command ended, in order.
    fn changes(&self) -> Vec<Nanos> {
        let Some(at) = self.at else { return Vec::new() };
        let of_processes = self
            .processes
            .iter()
            .filter(|process| process.role != ProcessRole::Other)
            .flat_map(|process| [process.started, process.serving, process.ended]);
        let of_command = self.command.as_ref().and_then(|command| command.ended);
        let mut changes: Vec<Nanos> =
            of_processes.chain([of_command]).flatten().filter(|time| *time >= at).collect();
        changes.sort_unstable();
        changes
    }

    /// When the event's own change was complete, if there was another one much later.
    fn completed(&self) -> Option<Nanos> {
        let changes = self.changes();
        let is_last = |pair: &&[Nanos]| pair[1] > pair[0] + QUIET && self.is_complete_at(pair[0]);
        changes.windows(2).find(is_last).map(|pair| pair[0])
    }

    /// Whether all that the event could be expected to change had changed at this time. What a
    /// signal or a command is to change is not known, unless all processes were replaced.
    fn is_complete_at(&self, time: Nanos) -> bool {
        let Some(at) = self.at else { return false };
        let knows_serving = self.knows_serving();
        let lives = |process: &SeenProcess, time: Nanos| {
            process.started.is_none_or(|started| started <= time)
                && process.ended.is_none_or(|end| time < end)
        };
        let serves = |process: &SeenProcess, time: Nanos| {
            if knows_serving { process.serves_at(time) } else { lives(process, time) }
        };
        let servers = self.servers();
        let count = |is_it: &dyn Fn(&SeenProcess) -> bool| {
            servers.iter().filter(|process| is_it(process)).count()
        };
        let before = count(&|process| process.is_older_than(at) && serves(process, at));
        let serving = count(&|process| serves(process, time));
        let starting = count(&|process| {
            !process.is_older_than(at) && lives(process, time) && !serves(process, time)
        });
        let old = count(&|process| process.is_older_than(at) && lives(process, time));
        let (least, most_old) = match self.planned.kind {
            EventKind::WorkerKill | EventKind::WorkerTerm | EventKind::ScaleUp => (before, before),
            EventKind::ScaleDown => (before.saturating_sub(1), before),
            EventKind::Refork => (before, 1),
            EventKind::PhasedRestart
            | EventKind::Restart
            | EventKind::StopStart
            | EventKind::Signal(_)
            | EventKind::Command(_) => (before, 0),
        };
        let has_command_ended = self
            .command
            .as_ref()
            .is_none_or(|command| command.ended.is_some_and(|end| end <= time));
        has_command_ended && starting == 0 && serving >= least && old <= most_old
    }

    /// The processes that serve requests: the workers, or the first process if there are none.
    fn servers(&self) -> Vec<&SeenProcess> {
        let of_role = |role| self.processes.iter().filter(move |process| process.role == role);
        let workers: Vec<&SeenProcess> = of_role(ProcessRole::Worker).collect();
        if workers.is_empty() { of_role(ProcessRole::First).collect() } else { workers }
    }

    /// For how long in all, from the event until this time, no process served requests. 0 if none
    /// was seen to serve when the event happened: then it is not known which of them do.
    pub fn unserved(&self, until: Nanos) -> Nanos {
        let Some(at) = self.at else { return Nanos::ZERO };
        if !self.knows_serving() {
            return Nanos::ZERO;
        }
        let processes = self.own_processes();
        let serving = || processes.iter().filter(|process| process.serving.is_some());
        let mut changes: Vec<Nanos> = serving()
            .flat_map(|process| [process.serving, process.ended])
            .flatten()
            .filter(|time| (at..until).contains(time))
            .collect();
        changes.push(at);
        changes.sort_unstable();
        changes.push(until);
        let idle = |pair: &&[Nanos]| !serving().any(|process| process.serves_at(pair[0]));
        changes.windows(2).filter(idle).map(|pair| pair[1] - pair[0]).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn worker(pid: u32, started: Option<u64>, serving: u64, ended: Option<u64>) -> SeenProcess {
        SeenProcess {
            pid,
            parent: 1,
            role: ProcessRole::Worker,
            started: started.map(Nanos::from_millis),
            serving: Some(Nanos::from_millis(serving)),
            ended: ended.map(Nanos::from_millis),
            by_exec: false,
        }
    }

    fn record(processes: Vec<SeenProcess>) -> EventRecord {
        EventRecord {
            at: Some(Nanos::from_secs(2)),
            processes,
            ..EventRecord::planned("phased-restart".parse().unwrap())
        }
    }

    #[test]
    fn an_event_takes_until_the_last_change_and_the_time_without_a_server_is_known() {
        let until = Nanos::from_secs(10);
        let one_by_one = record(vec![
            worker(10, None, 0, Some(2500)),
            worker(11, None, 0, Some(4000)),
            worker(12, Some(2600), 3600, None),
            worker(13, Some(4100), 5100, None),
        ]);
        assert_eq!(one_by_one.change_ended(), Some(Nanos::from_millis(5100)));
        assert_eq!(one_by_one.unserved(until), Nanos::ZERO);
        let all_at_once = record(vec![
            worker(10, None, 0, Some(2500)),
            worker(11, None, 0, Some(2400)),
            worker(12, Some(3000), 3600, None),
        ]);
        assert_eq!(all_at_once.unserved(until), Nanos::from_millis(1100));
        let ended = record(vec![worker(10, None, 0, Some(2500))]);
        assert_eq!(ended.unserved(until), Nanos::from_millis(7500));
        let nothing = record(vec![worker(10, None, 0, None)]);
        assert_eq!((nothing.change_ended(), nothing.unserved(until)), (None, Nanos::ZERO));
    }

    #[test]
    fn a_change_long_after_the_events_own_was_complete_is_not_the_events() {
        let added = |later: Option<u64>| EventRecord {
            planned: "scale-up".parse().unwrap(),
            ..record(vec![
                worker(10, None, 0, later),
                worker(11, None, 0, None),
                worker(12, Some(2100), 2600, None),
            ])
        };
        assert_eq!(added(Some(4000)).change_ended(), Some(Nanos::from_millis(4000)), "soon after");
        let later = added(Some(9000));
        assert_eq!(later.change_ended(), Some(Nanos::from_millis(2600)));
        assert!(later.own_processes().iter().all(|process| process.ended.is_none()));
        // A phased restart goes on while an old worker lives, however long its requests take.
        let phased = record(vec![
            worker(10, None, 0, Some(2500)),
            worker(11, None, 0, Some(9000)),
            worker(12, Some(2600), 3600, None),
            worker(13, Some(9100), 9900, None),
        ]);
        assert_eq!(phased.change_ended(), Some(Nanos::from_millis(9900)));
        // What a command will do is not known before all processes were replaced.
        let deploy = EventRecord { planned: "bin/deploy".parse().unwrap(), ..added(Some(9000)) };
        assert_eq!(deploy.change_ended(), Some(Nanos::from_millis(9000)));
    }
}
