//! The lane's thread and its processor: what it used, how late its sleeps end, and when it did not run.

use std::fs::File;
use std::os::unix::fs::FileExt;

use model::{LaneFacts, Nanos, Window};
use rustix::time::{ClockId, clock_gettime};

/// The kernel's account of the calling thread, `/proc/thread-self/schedstat` (Documentation/scheduler/sched-stats.rst): ns on a CPU, ns
/// waiting for one, time slices.
#[derive(Debug)]
pub(crate) struct SchedStat(File);

impl SchedStat {
    /// `None` where the kernel does not tell.
    pub(crate) fn open() -> Option<SchedStat> {
        File::open("/proc/thread-self/schedstat").ok().map(SchedStat)
    }

    /// The time on a CPU so far.
    fn cpu(&self) -> Option<Nanos> {
        nanos(&self.0, 0)
    }

    /// The time on a run queue so far.
    pub(crate) fn run_queue(&self) -> Option<Nanos> {
        nanos(&self.0, 1)
    }
}

/// The `n`-th number of a small file, without allocating.
fn nanos(file: &File, n: usize) -> Option<Nanos> {
    let mut buffer = [0; 128];
    let length = file.read_at(&mut buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.split_ascii_whitespace().nth(n)?.parse().ok().map(Nanos)
}

/// What the thread has used since the run began.
#[derive(Debug)]
pub(crate) struct CpuAccount {
    stat: SchedStat,
    cpu: Nanos,
    run_queue: Nanos,
}

impl CpuAccount {
    /// From now on; `None` where the kernel does not tell.
    pub(crate) fn begin() -> Option<CpuAccount> {
        let stat = SchedStat::open()?;
        let (cpu, run_queue) = (stat.cpu()?, stat.run_queue()?);
        Some(CpuAccount { stat, cpu, run_queue })
    }

    /// What was used in `elapsed`, of which `spun` was without work.
    pub(crate) fn end(&self, elapsed: Nanos, spun: Nanos, standstill: &Standstill) -> Option<LaneFacts> {
        let cpu = self.stat.cpu()?.saturating_sub(self.cpu);
        let run_queue = self.stat.run_queue()?.saturating_sub(self.run_queue);
        let (stood_still, longest_standstill) = (standstill.sum, standstill.longest);
        Some(LaneFacts { cpu, run_queue, elapsed, spun, stood_still, longest_standstill })
    }
}

/// The most that sleeps are aimed early: a lane that waits for a processor for longer would poll in vain.
pub(crate) const LONGEST_WAKE_DELAY: Nanos = Nanos::from_micros(50);
/// How far one sleep moves the estimate.
const ESTIMATE_STEP: Nanos = Nanos(250);

/// How late the lane is woken from its sleeps: the median so far, which each sleep moves a step, up or down. A precise lane aims its sleeps
/// early by that much, and polls for what is then left.
///
/// A timer's interrupt, the way out of the processor's idle state and the scheduler take a few microseconds on bare metal and some twenty
/// on a virtual machine, and they take them nearly each time: as the time is known beforehand, no request needs to be late by it.
#[derive(Debug, Default)]
pub(crate) struct WakeDelay {
    median: Nanos,
}

impl WakeDelay {
    /// How late the next sleep will end, probably.
    #[inline]
    pub(crate) fn expected(&self) -> Nanos {
        self.median
    }

    /// A sleep that was to end at `until`, and that no news ended before, ended at `now`.
    #[inline]
    pub(crate) fn woke(&mut self, until: Nanos, now: Nanos) {
        self.median = if now.saturating_sub(until) > self.median {
            (self.median + ESTIMATE_STEP).min(LONGEST_WAKE_DELAY)
        } else {
            self.median.saturating_sub(ESTIMATE_STEP)
        };
    }
}

/// Shorter stretches are the scheduler's (they are in the lane's wait for a CPU).
pub(crate) const NOTABLE: Nanos = Nanos::from_millis(10);

/// When the lane did not run within the measured window: it was stopped (Ctrl-Z, a debugger, a frozen cgroup), had no processor, or its
/// machine had none.
///
/// A turn ends when its wait does, or later by what its work takes. What lies between the longest that it could wait and its end, and no
/// time on a processor explains, is such a stretch, whatever the cause; a shorter one that ends with news cannot be distinguished from the server's
/// silence. One comparison a turn finds it; the thread's processor time is read ten times a second, and where a turn was that long.
#[derive(Debug)]
pub(crate) struct Standstill {
    window: Window,
    /// This thread's processor time when it was last read.
    cpu: Nanos,
    /// In all.
    pub(crate) sum: Nanos,
    /// At once.
    pub(crate) longest: Nanos,
}

impl Standstill {
    /// None yet; to be made by the lane's thread.
    pub(crate) fn new(window: Window) -> Standstill {
        Standstill { window, cpu: Nanos::ZERO, sum: Nanos::ZERO, longest: Nanos::ZERO }
    }

    /// Reads the processor time: what was used before explains nothing that comes.
    pub(crate) fn read_cpu_time(&mut self) -> Nanos {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now = Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned());
        let used = now.saturating_sub(self.cpu);
        self.cpu = now;
        used
    }

    /// A turn that should have ended at `expected` ended at `now`.
    #[cold]
    pub(crate) fn was_late(&mut self, expected: Nanos, now: Nanos) {
        let used = self.read_cpu_time();
        self.note(expected + used, now);
    }

    /// Nothing ran from `since` until `now`.
    fn note(&mut self, since: Nanos, now: Nanos) {
        let (since, until) = (since.max(self.window.from), now.min(self.window.until));
        let stretch = until.saturating_sub(since);
        if stretch > NOTABLE {
            self.sum += stretch;
            self.longest = self.longest.max(stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_the_thread_used() {
        let account = CpuAccount::begin().expect("Linux has this file");
        let standstill = Standstill::new(Window { from: Nanos::ZERO, until: Nanos::MAX });
        let facts = std::iter::repeat_with(|| account.end(Nanos(2), Nanos(1), &standstill).expect("and it stays"));
        let worked = facts.take(1_000_000).find(|facts| facts.cpu > Nanos::ZERO).expect("the thread's own time passes");
        assert_eq!((worked.elapsed, worked.spun), (Nanos(2), Nanos(1)));
    }

    fn after(sleeps: impl Iterator<Item = u64>) -> Nanos {
        let mut delay = WakeDelay::default();
        sleeps.for_each(|late| delay.woke(Nanos(1_000_000), Nanos(1_000_000 + late)));
        delay.expected()
    }

    #[test]
    fn it_comes_to_the_median_and_an_outlier_moves_it_one_step() {
        let ordinary = |n: u64| [18_000, 20_000, 22_000][n as usize % 3];
        let settled = after((0..1000).map(ordinary));
        assert!((18_000..=22_000).contains(&settled.0), "{settled}");
        // Every twentieth is late by two milliseconds: a mean would be 120 µs.
        let disturbed = after((0..1000).map(|n| if n % 20 == 0 { 2_000_000 } else { ordinary(n) }));
        assert!((18_000..=22_500).contains(&disturbed.0), "{disturbed}");
    }

    #[test]
    fn it_has_an_end_and_goes_back() {
        assert_eq!(after((0..1000).map(|_| 1_000_000)), LONGEST_WAKE_DELAY);
        assert_eq!(after((0..2000).map(|n| if n < 1000 { 1_000_000 } else { 0 })), Nanos::ZERO);
    }

    #[test]
    fn stretches_within_the_window_are_summed_up() {
        let ms = Nanos::from_millis;
        let mut still = Standstill::new(Window { from: ms(1000), until: ms(3000) });
        for (since, until) in [(100, 900), (950, 1050), (2000, 2005), (2100, 2400), (2980, 3500), (3100, 3500)] {
            still.note(ms(since), ms(until));
        }
        assert_eq!((still.sum, still.longest), (ms(50 + 300 + 20), ms(300)));
    }

    #[test]
    fn work_explains_a_long_turn() {
        let mut still = Standstill::new(Window { from: Nanos::ZERO, until: Nanos::MAX });
        still.read_cpu_time();
        let worked = std::iter::repeat_with(|| still.read_cpu_time()).scan(Nanos::ZERO, |sum, used| {
            *sum += used;
            Some(*sum)
        });
        let worked = worked.take_while(|sum| *sum < Nanos::from_millis(20)).last().unwrap_or_default();
        assert!(worked > Nanos::ZERO, "the thread's own time passes");
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(1) + NOTABLE);
        assert_eq!(still.sum, Nanos::ZERO);
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(3));
        assert!(still.longest > Nanos::from_millis(1900), "{still:?}");
    }
}
