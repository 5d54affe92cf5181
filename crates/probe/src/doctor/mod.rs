//! Is this machine fit to measure on? Each question is a [`MachineCheck`]: what was seen, its
//! grade, what it spoils, and a hint.
//!
//! Each question is one whose answer changes what a user does. They need no privilege, change
//! nothing and send only to this process. The machine is watched at rest for a second, and waits
//! are measured for a fifth of a second. Limits and their reasons are in docs/how-good.md. What
//! cannot be read is [`MachineGrade::Unknown`], never fine.

mod questions;
mod samples;

use model::{Clock, Nanos};
use serde::Serialize;

use self::samples::{Activity, WaitLateness};

/// How a check turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineGrade {
    /// As it should be.
    Fine,
    /// It may spoil numbers.
    Warn,
    /// It will spoil numbers.
    Bad,
    /// It could not be determined.
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
    /// How it turned out.
    pub grade: MachineGrade,
    /// Which numbers it would spoil.
    pub spoils: &'static str,
    /// What to do about it, as a command if there is one.
    pub hint: Option<String>,
}

/// The result of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineFitness {
    /// Whether nothing is bad.
    pub fit: bool,
    /// The names of what is bad.
    pub bad: Vec<&'static str>,
    /// How many warnings there are.
    pub warnings: usize,
    /// How many checks are unknown.
    pub unknown: usize,
}

impl MachineFitness {
    /// The result of these checks.
    pub fn of(checks: &[MachineCheck]) -> MachineFitness {
        let named =
            |grade| checks.iter().filter(move |check| check.grade == grade).map(|check| check.name);
        let bad: Vec<_> = named(MachineGrade::Bad).collect();
        let [warnings, unknown] =
            [MachineGrade::Warn, MachineGrade::Unknown].map(|grade| named(grade).count());
        MachineFitness { fit: bad.is_empty(), bad, warnings, unknown }
    }
}

/// The Puma that a sweep would start here.
#[derive(Clone, Debug)]
pub struct PumaInstallation {
    /// What was found, or why there is none.
    pub puma: Result<FoundPuma, String>,
    /// Whether there is a Ruby to install one with.
    pub has_ruby: bool,
}

/// A Puma that was asked for its version.
#[derive(Clone, Debug)]
pub struct FoundPuma {
    /// The command that starts it.
    pub command: String,
    /// What it printed; `None` if it did not end in time.
    pub printed: Option<String>,
}

/// Runs all checks. The machine is watched first, before we load it ourselves.
pub fn examine(installation: PumaInstallation, clock: &impl Clock) -> Vec<MachineCheck> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let evidence = MachineEvidence {
        read: &read,
        activity: Activity::sample(clock),
        clock_reading: samples::clock_reading(clock),
        waits: samples::lane_waits(clock),
        send: samples::lane_sends(clock),
        tracepoints: crate::bpf::possible().map_err(|missing| missing.to_string()),
        installation,
    };
    questions::all(&evidence)
}

/// What the questions are answered from.
struct MachineEvidence<'a> {
    /// Reads a file of the kernel; `None` if that is not possible.
    read: &'a dyn Fn(&str) -> Option<String>,
    activity: Option<Activity>,
    /// How long reading the clock takes.
    clock_reading: Nanos,
    waits: Option<WaitLateness>,
    /// How long a send takes.
    send: Option<Nanos>,
    tracepoints: Result<(), String>,
    installation: PumaInstallation,
}

impl MachineEvidence<'_> {
    fn number(&self, path: &str) -> Option<u64> {
        (self.read)(path)?.trim().parse().ok()
    }

    /// What follows `name` and a colon on the first line that starts with them.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = (self.read)(path)?;
        let value = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        };
        text.lines().find_map(value)
    }
}

/// What was found.
struct MachineAnswer {
    grade: MachineGrade,
    seen: String,
    hint: Option<String>,
}

impl MachineAnswer {
    fn fine(seen: impl Into<String>) -> MachineAnswer {
        MachineAnswer { grade: MachineGrade::Fine, seen: seen.into(), hint: None }
    }

    fn warn(seen: impl Into<String>, hint: impl Into<String>) -> MachineAnswer {
        MachineAnswer {
            grade: MachineGrade::Warn,
            hint: Some(hint.into()),
            ..MachineAnswer::fine(seen)
        }
    }

    fn bad(seen: impl Into<String>, hint: impl Into<String>) -> MachineAnswer {
        MachineAnswer { grade: MachineGrade::Bad, ..MachineAnswer::warn(seen, hint) }
    }

    /// An answer graded by a figure: fine up to the first limit, bad above the second. Where less
    /// is worse, figure and limits are negated.
    fn graded(figure: f64, fine: f64, bad: f64, seen: String, hint: &str) -> MachineAnswer {
        match figure {
            f if f <= fine => MachineAnswer::fine(seen),
            f if f <= bad => MachineAnswer::warn(seen, hint),
            _ => MachineAnswer::bad(seen, hint),
        }
    }
}

#[cfg(test)]
mod tests;
