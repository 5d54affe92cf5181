//! What else the machine does: a second of `/proc/stat`, looked at from both ends while we sleep.

use std::collections::BTreeMap;

use model::{Clock, Nanos};
use proctree::ProcessStat;

use super::{MachineAnswer, MachineEvidence};
use crate::host::CpuTicks;

/// How long the machine is looked at.
const SAMPLE: Nanos = Nanos::from_secs(1);

/// What the processors did in the sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    ticks: CpuTicks,
    /// The programs that ran most.
    busiest: Vec<String>,
}

impl Activity {
    /// Sleeps for the sample. `None` where nothing was counted.
    pub(super) fn sample(clock: &impl Clock) -> Option<Activity> {
        let (before, processes_before) = (CpuTicks::now(), proctree::all());
        clock.sleep(SAMPLE);
        let ticks = CpuTicks::now()?.since(&before?)?;
        Some(Activity { ticks, busiest: busiest(&processes_before, &proctree::all()) })
    }
}

pub(super) fn busy(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let Activity { ticks, busiest } = evidence.activity.as_ref()?;
    let share = 1.0 - (ticks.idle + ticks.steal) as f64 / ticks.all as f64;
    let by = if busiest.is_empty() { String::new() } else { format!(", most by {}", busiest.join(", ")) };
    let seen = format!("{:.0} % of all processors in 1 s{by}", share * 100.0);
    Some(MachineAnswer::graded(share, 0.05, 0.30, seen, "end what runs, or wait for it: top -d 1"))
}

pub(super) fn steal(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let ticks = evidence.activity.as_ref()?.ticks;
    let share = ticks.steal as f64 / ticks.all as f64;
    let seen = format!("{:.1} % in 1 s", share * 100.0);
    let hint = "another host or another hour; in a cloud, an instance with processors of its own";
    Some(MachineAnswer::graded(share, 0.01, 0.05, seen, hint))
}

pub(super) fn memory(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let kib = |name| evidence.field("/proc/meminfo", name)?.strip_suffix(" kB")?.parse::<u64>().ok();
    let (total, available) = (kib("MemTotal")?, kib("MemAvailable")?);
    let gib = |kib: u64| format!("{:.1} GiB", kib as f64 / f64::from(1 << 20));
    let seen = format!("{} of {} available", gib(available), gib(total));
    // In MiB that are lacking: 512 are comfortable for a small server, below 128 it is about to be killed.
    let lacking = -((available >> 10) as f64);
    let hint = "end what holds it: ps -e --sort=-rss -o rss,pid,comm | head";
    Some(MachineAnswer::graded(lacking, -512.0, -128.0, seen, hint))
}

/// The names of the three programs that ran the most, those that ran a twentieth of the sample at least.
fn busiest(before: &[ProcessStat], after: &[ProcessStat]) -> Vec<String> {
    let least = rustix::param::clock_ticks_per_second() / 20;
    let before: BTreeMap<u32, u64> = before.iter().map(|process| (process.pid, process.cpu_ticks)).collect();
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    for process in after {
        // One that was not there before has made all its ticks since.
        let ticks = process.cpu_ticks.saturating_sub(before.get(&process.pid).copied().unwrap_or(0));
        *ran.entry(&process.name).or_default() += ticks;
    }
    let mut ran: Vec<_> = ran.into_iter().filter(|(_, ticks)| *ticks >= least.max(1)).collect();
    ran.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    ran.into_iter().take(3).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::MachineGrade::{Bad, Warn};
    use super::super::tests::asked_with;
    use super::*;

    #[test]
    fn busy_is_neither_idle_nor_stolen() {
        let ticks = CpuTicks { all: 200, idle: 130, steal: 10 };
        let busiest = vec!["rustc".to_owned()];
        let of = |name| asked_with(name, &[], |all| all.activity = Some(Activity { ticks, busiest: busiest.clone() }));
        assert_eq!(
            (of("busy").grade, of("busy").seen),
            (Bad, "30 % of all processors in 1 s, most by rustc".to_owned())
        );
        assert_eq!((of("stolen time").grade, of("stolen time").seen), (Warn, "5.0 % in 1 s".to_owned()));
    }

    #[test]
    fn the_busiest_are_named_with_all_their_processes() {
        let of = |all: &[(u32, &str, u64)]| -> Vec<ProcessStat> {
            let process = |(pid, name, cpu_ticks): &(u32, &str, u64)| ProcessStat {
                pid: *pid,
                name: (*name).to_owned(),
                cpu_ticks: *cpu_ticks,
                ..ProcessStat::default()
            };
            all.iter().map(process).collect()
        };
        let before = of(&[(1, "ruby", 1000), (2, "rustc", 10), (3, "idle", 5)]);
        let after = of(&[(1, "ruby", 1040), (2, "rustc", 50), (4, "rustc", 30), (3, "idle", 6)]);
        assert_eq!(busiest(&before, &after), ["rustc", "ruby"]);
    }
}
