//! Counts of the hardware and the kernel: by `perf stat` if it is permitted; otherwise system calls
//! by `strace`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

/// What to count in a run, in addition to its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// CPU time, instructions and cycles.
    Cost,
    /// System calls; this slows the program down, so its speed is ignored.
    Calls,
    /// Nothing: no other process is in between.
    Nothing,
}

/// Events that cost nothing: the CPU counts them by itself, and the kernel keeps `task-clock`
/// anyway.
const COST: [&str; 5] =
    ["task-clock", INSTRUCTIONS_USER, INSTRUCTIONS_KERNEL, CYCLES_USER, CYCLES_KERNEL];
const INSTRUCTIONS_USER: &str = "instructions:u";
const INSTRUCTIONS_KERNEL: &str = "instructions:k";
const CYCLES_USER: &str = "cycles:u";
const CYCLES_KERNEL: &str = "cycles:k";
const CALLS: &str = "raw_syscalls:sys_enter";

/// What can be counted on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    perf: Option<PathBuf>,
    cost: Vec<&'static str>,
    calls: Calls,
}

#[derive(Clone, Debug)]
enum Calls {
    Perf,
    Strace(PathBuf),
    None,
}

/// Totals of a run; `None` if not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Counted {
    pub(crate) cpu_ns: Option<f64>,
    pub(crate) instructions_user: Option<f64>,
    pub(crate) instructions_kernel: Option<f64>,
    pub(crate) cycles_user: Option<f64>,
    pub(crate) cycles_kernel: Option<f64>,
    pub(crate) calls: Option<f64>,
}

impl Counters {
    /// Tries each event on a command that does nothing.
    pub(crate) fn find(find: impl Fn(&str) -> Option<PathBuf>) -> Counters {
        let perf = find("perf");
        let works = |event: &&str| perf.as_ref().is_some_and(|perf| can_count(perf, event));
        let cost: Vec<&str> = COST.into_iter().filter(|event| works(event)).collect();
        let calls = match find("strace") {
            _ if works(&CALLS) => Calls::Perf,
            Some(strace) => Calls::Strace(strace),
            None => Calls::None,
        };
        // CPU time from another source than the instructions would not help.
        let perf = perf.filter(|_| cost.contains(&"task-clock") || matches!(calls, Calls::Perf));
        Counters { perf, cost, calls }
    }

    /// What is not counted here, as lines; empty if everything is.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let lacking: Vec<&str> =
            COST[1..].iter().copied().filter(|event| !self.cost.contains(event)).collect();
        if self.perf.is_none() {
            lines.push(
                "perf may not count here (package linux-perf; kernel.perf_event_paranoid=1, or \
                 root): CPU time comes from getrusage(2); instructions and cycles are left out"
                    .to_owned(),
            );
        } else if !lacking.is_empty() {
            lines.push(format!(
                "not counted by this processor, or not for us: {}",
                lacking.join(", ")
            ));
        }
        match self.calls {
            Calls::Perf => {}
            Calls::Strace(_) => {
                lines.push("system calls are counted by strace (perf may not see them)".to_owned());
            }
            Calls::None => {
                lines.push(
                    "system calls are not counted (perf may not see them, and there is no strace)"
                        .to_owned(),
                );
            }
        }
        lines
    }

    /// Whether system calls are counted.
    pub(crate) fn has_calls(&self) -> bool {
        !matches!(self.calls, Calls::None)
    }

    /// The command, prefixed with the counting program.
    pub(crate) fn prefixed(
        &self,
        counting: Counting,
        argv: Vec<OsString>,
        folder: &Path,
    ) -> Vec<OsString> {
        let perf = |events: &[&str]| {
            let words = ["stat", "-x,", "-e", &events.join(","), "-o"].map(OsString::from);
            let perf = self.perf.clone().map(OsString::from);
            perf.into_iter()
                .chain(words)
                .chain([file(folder).into(), "--".into()])
                .collect::<Vec<_>>()
        };
        let mut words = match (counting, &self.calls) {
            (Counting::Cost, _) if self.perf.is_some() && !self.cost.is_empty() => perf(&self.cost),
            (Counting::Calls, Calls::Perf) => perf(&[CALLS]),
            (Counting::Calls, Calls::Strace(strace)) => {
                vec![
                    strace.into(),
                    "-c".into(),
                    "-f".into(),
                    "-o".into(),
                    file(folder).into(),
                    "--".into(),
                ]
            }
            _ => Vec::new(),
        };
        words.extend(argv);
        words
    }

    /// What was counted.
    pub(crate) fn read(&self, counting: Counting, folder: &Path) -> Counted {
        let text = std::fs::read_to_string(file(folder)).unwrap_or_default();
        match (counting, &self.calls) {
            (Counting::Calls, Calls::Strace(_)) => {
                Counted { calls: of_strace(&text), ..Counted::default() }
            }
            (Counting::Nothing, _) => Counted::default(),
            _ => of_perf(&text),
        }
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("counted")
}

fn can_count(perf: &Path, event: &str) -> bool {
    let mut command = Command::new(perf);
    command
        .args(["stat", "-x,", "-e", event, "--", "true"])
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    let Ok(output) = command.output() else { return false };
    let text = String::from_utf8_lossy(&output.stderr);
    output.status.success() && events(&text).contains_key(event)
}

/// The values of `perf stat -x,` by the events' names (perf-stat(1), CSV FORMAT): value, unit,
/// event, …; an event that was not counted has no number.
fn events(text: &str) -> BTreeMap<&str, f64> {
    let line = |line| {
        let mut fields = str::split(line, ',');
        let value = fields.next()?.parse().ok()?;
        Some((fields.nth(1)?, value))
    };
    text.lines().filter_map(line).collect()
}

fn of_perf(text: &str) -> Counted {
    let events = events(text);
    let of = |name: &str| events.get(name).copied();
    Counted {
        // In milliseconds.
        cpu_ns: of("task-clock").map(|ms| ms * 1e6),
        instructions_user: of(INSTRUCTIONS_USER),
        instructions_kernel: of(INSTRUCTIONS_KERNEL),
        cycles_user: of(CYCLES_USER),
        cycles_kernel: of(CYCLES_KERNEL),
        calls: of(CALLS),
    }
}

/// The calls of the line `total` of `strace -c`: % time, seconds, usecs/call, calls, and errors if
/// there were any.
fn of_strace(text: &str) -> Option<f64> {
    let total = text.lines().rev().find(|line| line.trim_end().ends_with(" total"))?;
    total.split_ascii_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_perf_did_not_count_are_absent() {
        let counted = of_perf(include_str!("perf.txt"));
        assert_eq!(counted.cpu_ns, Some(12.55e6));
        assert_eq!(
            (counted.instructions_user, counted.instructions_kernel),
            (Some(112_730.0), Some(449_805.0))
        );
        assert_eq!((counted.cycles_user, counted.cycles_kernel, counted.calls), (None, None, None));
        assert_eq!(of_perf("perf: permission denied"), Counted::default());
    }

    #[test]
    fn the_total_of_strace_is_found_with_and_without_errors() {
        let head = "% time     seconds  usecs/call     calls    errors syscall\n";
        let line = "------ ----------- ----------- --------- --------- ----------------\n";
        let with =
            format!("{head}{line}100.00    0.012345           3      4123        12 total\n");
        let without =
            format!("{head}{line}100.00    0.012345           3      4123           total\n");
        assert_eq!((of_strace(&with), of_strace(&without)), (Some(4123.0), Some(4123.0)));
        assert_eq!(of_strace("strace: attach: not permitted"), None);
    }

    #[test]
    fn a_program_whose_memory_is_measured_has_no_prefix() {
        let counters = Counters {
            perf: Some("/p/perf".into()),
            cost: COST.to_vec(),
            calls: Calls::Strace("/s/strace".into()),
        };
        let line = |counting| {
            let words = counters.prefixed(counting, vec!["it".into()], Path::new("/f"));
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(line(Counting::Nothing), "it");
        assert!(
            line(Counting::Cost).starts_with("/p/perf stat -x, -e task-clock,")
                && line(Counting::Cost).ends_with(" -o /f/counted -- it")
        );
        assert_eq!(line(Counting::Calls), "/s/strace -c -f -o /f/counted -- it");
    }
}
