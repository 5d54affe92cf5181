//! Is this machine fit to measure on? Each question is a [`MachineCheck`]: what was seen, its
//! grade, what it spoils, and a hint.
//!
//! Only what changes a decision is asked. It needs no privilege, changes nothing and sends only to
//! itself. It looks at the machine at rest for a second, and measures waits for a fifth of one.
//! Limits and their reasons are in docs/how-good.md. What stays true: what cannot be read is
//! [`MachineGrade::Unknown`], never fine.

mod questions;
mod samples;

use model::{Clock, Nanos};
use serde::Serialize;

use self::samples::{Activity, WaitLateness};

/// Whether this machine may spoil numbers, by one question that was asked of it.
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
    /// What starts it.
    pub command: String,
    /// What it printed; `None` where it did not end in time.
    pub printed: Option<String>,
}

/// Asks everything. The machine is looked at first, before we do anything ourselves.
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
    installation: PumaInstallation,
}

impl MachineEvidence<'_> {
    fn number(&self, path: &str) -> Option<u64> {
        (self.read)(path)?.trim().parse().ok()
    }

    /// What follows `name` and a colon on the first line that begins so.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = (self.read)(path)?;
        let value = |line: &str| {
            line.split_once(':').filter(|(key, _)| key.trim() == name)?.1.trim().to_owned().into()
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

    /// Graded by a figure: fine up to the first limit, bad above the second.
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
