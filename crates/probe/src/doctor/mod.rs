//! Is this machine fit to measure on? Each question is a [`MachineCheck`]: what was seen, its grade, what it spoils, and a hint.
//!
//! Only what changes a decision is asked. It needs no privilege, changes nothing and sends only to itself. It looks at the machine at
//! rest for a second, and measures waits for a fifth of one. Limits and their reasons are in docs/how-good.md. What
//! stays true: what cannot be read is [`MachineGrade::Unknown`], never fine.

mod activity;
mod limits;
mod processors;
mod programs;
mod timers;

use std::collections::BTreeMap;
use std::ffi::OsString;

use model::{Clock, Nanos};
use serde::Serialize;

use self::activity::Activity;
use self::timers::WaitLateness;

/// How an answer is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineGrade {
    /// As it should be.
    Fine,
    /// It may spoil numbers.
    Warn,
    /// It will.
    Bad,
    /// It could not be found out.
    Unknown,
}

/// A question to the machine and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineCheck {
    /// What it is about; also the heading.
    pub group: &'static str,
    /// What was asked.
    pub name: &'static str,
    /// What was seen.
    pub seen: String,
    /// The figures in it, each with its unit last in its name.
    pub figures: BTreeMap<&'static str, f64>,
    /// How it is to be taken.
    pub grade: MachineGrade,
    /// Which numbers it would spoil.
    pub spoils: &'static str,
    /// What to do about it, as a command where there is one.
    pub hint: Option<String>,
}

/// What all answers come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineFitness {
    /// Whether nothing is bad.
    pub fit: bool,
    /// The names of what is bad.
    pub bad: Vec<&'static str>,
    /// How many warnings there are.
    pub warnings: usize,
    /// How much could not be found out.
    pub unknown: usize,
}

impl MachineFitness {
    /// Of these checks.
    pub fn of(checks: &[MachineCheck]) -> MachineFitness {
        let named = |grade| checks.iter().filter(move |check| check.grade == grade).map(|check| check.name);
        let bad: Vec<_> = named(MachineGrade::Bad).collect();
        let [warnings, unknown] = [MachineGrade::Warn, MachineGrade::Unknown].map(|grade| named(grade).count());
        MachineFitness { fit: bad.is_empty(), bad, warnings, unknown }
    }
}

/// What a sweep would start here, and where programs are looked for.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `PATH`.
    pub path: OsString,
    /// The Puma that would be started, or why there is none.
    pub puma: Result<FoundPuma, String>,
    /// Other load generators, by the names of their programs.
    pub generators: Vec<&'static str>,
}

/// A Puma that was asked for its version.
#[derive(Clone, Debug)]
pub struct FoundPuma {
    /// What starts it.
    pub command: String,
    /// What it printed; `None` where it did not end in time.
    pub printed: Option<String>,
}

/// Asks everything. The machine is looked at first, before we do anything ourselves.
pub fn examine(programs: &Programs, clock: &impl Clock) -> Vec<MachineCheck> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let evidence = MachineEvidence {
        read: &read,
        activity: Activity::sample(clock),
        clock_reading: timers::clock_reading(clock),
        waits: timers::lane_waits(clock),
        send: timers::lane_sends(clock),
        tracepoints: crate::bpf::possible().map_err(|missing| missing.to_string()),
        programs: programs.clone(),
    };
    QUESTIONS.iter().map(|question| question.check(&evidence)).collect()
}

/// All that the questions are answered from.
struct MachineEvidence<'a> {
    /// The text of a file of the kernel's; `None` where it cannot be read.
    read: &'a dyn Fn(&str) -> Option<String>,
    activity: Option<Activity>,
    /// What one reading of the clock costs.
    clock_reading: Nanos,
    waits: Option<WaitLateness>,
    /// What a send takes.
    send: Option<Nanos>,
    tracepoints: Result<(), String>,
    programs: Programs,
}

impl MachineEvidence<'_> {
    fn number(&self, path: &str) -> Option<u64> {
        (self.read)(path)?.trim().parse().ok()
    }

    /// What follows `name` and a colon on the first line that begins so.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = (self.read)(path)?;
        let value = |line: &str| line.split_once(':').filter(|(key, _)| key.trim() == name)?.1.trim().to_owned().into();
        text.lines().find_map(value)
    }
}

/// What was found.
struct MachineAnswer {
    grade: MachineGrade,
    seen: String,
    hint: Option<String>,
    figures: BTreeMap<&'static str, f64>,
}

impl MachineAnswer {
    fn fine(seen: impl Into<String>) -> MachineAnswer {
        MachineAnswer { grade: MachineGrade::Fine, seen: seen.into(), hint: None, figures: BTreeMap::new() }
    }

    fn warn(seen: impl Into<String>, hint: impl Into<String>) -> MachineAnswer {
        MachineAnswer { grade: MachineGrade::Warn, hint: Some(hint.into()), ..MachineAnswer::fine(seen) }
    }

    fn bad(seen: impl Into<String>, hint: impl Into<String>) -> MachineAnswer {
        MachineAnswer { grade: MachineGrade::Bad, ..MachineAnswer::warn(seen, hint) }
    }

    /// Graded by a figure: fine up to the first limit, bad above the second.
    fn graded(figure: f64, fine: f64, bad: f64, seen: String, hint: &str) -> MachineAnswer {
        match figure {
            f if f <= fine => MachineAnswer::fine(seen),
            f if f <= bad => MachineAnswer::warn(seen, hint),
            _ => MachineAnswer::bad(seen, hint),
        }
    }

    /// The same with a figure more.
    fn with(mut self, name: &'static str, figure: f64) -> MachineAnswer {
        self.figures.insert(name, figure);
        self
    }
}

/// What is asked. No answer is unknown: its source does not tell.
struct MachineQuestion {
    group: &'static str,
    name: &'static str,
    spoils: &'static str,
    source: &'static str,
    answer: fn(&MachineEvidence<'_>) -> Option<MachineAnswer>,
}

impl MachineQuestion {
    fn check(&self, evidence: &MachineEvidence<'_>) -> MachineCheck {
        let MachineQuestion { group, name, spoils, .. } = *self;
        let MachineAnswer { grade, seen, hint, figures } = (self.answer)(evidence).unwrap_or_else(|| MachineAnswer {
            grade: MachineGrade::Unknown,
            ..MachineAnswer::fine(format!("{} does not tell", self.source))
        });
        MachineCheck { group, name, seen, figures, grade, spoils, hint }
    }
}

const QUESTIONS: [MachineQuestion; 16] = [
    MachineQuestion {
        group: "processors",
        name: "processors",
        spoils: "the rate and the times: the server and the generator wait for each other",
        source: "/proc/self/status",
        answer: processors::allowed_processors,
    },
    MachineQuestion {
        group: "processors",
        name: "cpu quota",
        spoils: "every percentile: a process that has used up its quota stands still until the period ends",
        source: "/sys/fs/cgroup",
        answer: processors::quota,
    },
    MachineQuestion {
        group: "processors",
        name: "SMT siblings",
        spoils: "rates and tails: two halves of one core slow each other down by a third or so",
        source: "/sys/devices/system/cpu",
        answer: processors::siblings,
    },
    MachineQuestion {
        group: "processors",
        name: "frequency",
        spoils: "comparisons: the processor is slower at low load, after pauses, and when it is hot",
        source: "cpufreq",
        answer: processors::frequency,
    },
    MachineQuestion {
        group: "right now",
        name: "busy",
        spoils: "every number: the server and the generator wait while others run",
        source: "/proc/stat",
        answer: activity::busy,
    },
    MachineQuestion {
        group: "right now",
        name: "stolen time",
        spoils: "every percentile: the hypervisor runs others, and everything here stands still",
        source: "/proc/stat",
        answer: activity::steal,
    },
    MachineQuestion {
        group: "right now",
        name: "memory",
        spoils: "tails: without free memory the kernel takes pages away while requests wait",
        source: "/proc/meminfo",
        answer: activity::memory,
    },
    MachineQuestion {
        group: "timers",
        name: "clocksource",
        spoils: "every instant, and the generator's ceiling: each request reads the clock several times",
        source: "/sys/devices/system/clocksource",
        answer: timers::clocksource,
    },
    MachineQuestion {
        group: "timers",
        name: "late waits",
        spoils: "open loop: due requests are sent so much later; it is in the send lag, and in the verdict",
        source: "the kernel's timer slack",
        answer: timers::late_waits,
    },
    MachineQuestion {
        group: "timers",
        name: "sends",
        spoils: "open loop: two requests that are due closer together than a send takes leave that far apart",
        source: "200 sends over loopback",
        answer: timers::sends,
    },
    MachineQuestion {
        group: "network",
        name: "file descriptors",
        spoils: "many connections: each is a descriptor, here and in the server",
        source: "/proc/self/limits",
        answer: limits::descriptors,
    },
    MachineQuestion {
        group: "network",
        name: "ephemeral ports",
        spoils: "-k, and servers that close: without a port a connect fails, and it was not the server",
        source: "/proc/sys/net/ipv4",
        answer: limits::ports,
    },
    MachineQuestion {
        group: "network",
        name: "accept queue",
        spoils: "many connections: a full queue drops connects, and they come back 1, 2, 3 … s later",
        source: "/proc/sys/net/core/somaxconn",
        answer: limits::accept_queue,
    },
    MachineQuestion {
        group: "kernel",
        name: "BPF",
        spoils: "where the wait is: times inside the kernel, request by request, cannot be had",
        source: "the kernel",
        answer: limits::tracepoints,
    },
    MachineQuestion {
        group: "programs",
        name: "Puma",
        spoils: "sweep: it measures the built-in server instead",
        source: "puma --version",
        answer: programs::puma,
    },
    MachineQuestion {
        group: "programs",
        name: "other generators",
        spoils: "nothing: --generator has fewer to choose from",
        source: "PATH",
        answer: programs::generators,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::clock::Stepped;

    const PROGRAMS: Programs = Programs { path: OsString::new(), puma: Err(String::new()), generators: Vec::new() };

    /// The answer to one question on a machine that has these files, and no others.
    pub(super) fn ask(name: &str, files: &[(&str, &str)]) -> MachineCheck {
        ask_of(name, files, |_| {})
    }

    /// As [`ask`], with other evidence beside the files.
    pub(super) fn ask_of(
        name: &str,
        files: &[(&str, &str)],
        change: impl FnOnce(&mut MachineEvidence<'_>),
    ) -> MachineCheck {
        let read = |path: &str| files.iter().find(|(other, _)| *other == path).map(|(_, text)| (*text).to_owned());
        let mut evidence = MachineEvidence {
            read: &read,
            activity: None,
            clock_reading: Nanos(25),
            waits: None,
            send: None,
            tracepoints: Ok(()),
            programs: PROGRAMS,
        };
        change(&mut evidence);
        QUESTIONS.iter().find(|question| question.name == name).unwrap().check(&evidence)
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_never_fine() {
        for question in &QUESTIONS {
            let is_read = !["BPF", "Puma", "other generators"].contains(&question.name);
            let check = ask(question.name, &[]);
            assert!(check.grade == MachineGrade::Unknown || !is_read, "{check:?}");
        }
    }

    #[test]
    fn this_machine_answers_every_question_once() {
        let programs = Programs { puma: Err("no Puma".to_owned()), ..PROGRAMS };
        let checks = examine(&programs, &Stepped::default());
        let names: BTreeSet<_> = checks.iter().map(|check| check.name).collect();
        assert_eq!((names.len(), checks.len()), (QUESTIONS.len(), QUESTIONS.len()));
        for check in &checks {
            let is_doubtful = matches!(check.grade, MachineGrade::Warn | MachineGrade::Bad);
            assert_eq!(check.hint.is_some(), is_doubtful, "{check:?}");
            assert!(!check.seen.is_empty() && !check.spoils.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_figure_is_graded_by_two_limits_and_one_bad_answer_makes_a_machine_unfit() {
        let grade = |figure| MachineAnswer::graded(figure, 1.0, 2.0, String::new(), "hint");
        let expected = [MachineGrade::Fine, MachineGrade::Warn, MachineGrade::Bad, MachineGrade::Bad];
        assert_eq!([1.0, 2.0, 2.1, f64::NAN].map(|figure| grade(figure).grade), expected);
        let check = |grade| MachineCheck { grade, ..ask("busy", &[]) };
        let all = [MachineGrade::Fine, MachineGrade::Warn, MachineGrade::Bad, MachineGrade::Unknown].map(check);
        assert_eq!(MachineFitness::of(&all), MachineFitness { fit: false, bad: vec!["busy"], warnings: 1, unknown: 1 });
        assert_eq!(
            MachineFitness::of(&all[..2]),
            MachineFitness { fit: true, bad: Vec::new(), warnings: 1, unknown: 0 }
        );
    }
}
