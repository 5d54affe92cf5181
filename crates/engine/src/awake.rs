//! Whether a lane stays awake while it has nothing to do.
//!
//! To sleep and to be woken takes tens of microseconds, on a virtual machine more than a hundred, and all of it is charged to the server's
//! account: a closed loop with few connections then measures the wake-ups. So a lane of a closed loop asks again and again for news before it
//! sleeps, as long as answers have lately come within [`LONGEST`], by the rule of KVM's halt polling (`grow_halt_poll_ns`,
//! `shrink_halt_poll_ns` in Linux' `virt/kvm/kvm_main.c`): a sleep that ended soon doubles the time, one that took long halves it. Against a
//! slow server it is off by itself after a few answers.
//!
//! A sleep that found only some of what was out answered has cost the server nothing: it had work meanwhile. That halves the time too, for
//! who is awake takes the answers one by one, with two system calls for each wait, where a sleeper finds many at once. So that this is seen
//! while it is awake, it sleeps for a trial now and then ([`TRIAL`]).
//!
//! It is answers that are waited for: while pieces of long ones come, a lane sleeps between them, for each piece that it takes at once costs
//! two system calls (`lane.rs`, `wait`).
//!
//! A lane that stays awake takes a core. Where that core is wanted by somebody else (more is runnable than there are cores, or the lane
//! itself waits for one) it is off, for longer each time. What is spent awake is counted apart from work.

use std::fs::File;
use std::os::unix::fs::FileExt;

use model::{Cpus, Nanos};

/// The longest time awake for one answer.
const LONGEST: Nanos = Nanos::from_micros(200);
/// The first time awake.
const SHORTEST: Nanos = Nanos::from_micros(10);
/// How often a sleep is tried instead.
const TRIAL: Nanos = Nanos::from_millis(10);
/// How often it is asked whether somebody wants the core.
const BETWEEN: Nanos = Nanos::from_millis(10);
/// So many looks in a row that find it so: it is no passer-by, such as a thread of the kernel.
const ENOUGH: u32 = 3;
/// How long it is off the first time somebody does; doubled each time up to [`LONGEST_OFF`].
const FIRST_OFF: Nanos = Nanos::from_millis(100);
const LONGEST_OFF: Nanos = Nanos::from_secs(10);
/// Waiting for a core for more than this share of the time: somebody wants it.
const WAITING: f64 = 0.05;

/// The rule, and what it has learnt.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    /// How long to stay awake for the next answer.
    budget: Nanos,
    /// Not at all before then.
    off_until: Nanos,
    off_for: Nanos,
    next_look: Nanos,
    next_trial: Nanos,
    /// Looks in a row that found somebody who wants the core.
    wanted: u32,
    cores: CoreContention,
    /// Time spent awake in vain, or before an answer came.
    spent: Nanos,
}

impl BusyPoll {
    /// Asleep so far; `None` where the process has fewer cores than `lanes`, or nobody can say whether one is free.
    pub(crate) fn new(lanes: u32) -> Option<BusyPoll> {
        let own = std::thread::available_parallelism().ok()?.get();
        let cores = CoreContention::open()?;
        (lanes as usize <= own).then(|| BusyPoll {
            budget: Nanos::ZERO,
            off_until: Nanos::ZERO,
            off_for: FIRST_OFF,
            next_look: Nanos::ZERO,
            next_trial: Nanos::ZERO,
            wanted: 0,
            cores,
            spent: Nanos::ZERO,
        })
    }

    /// How long to stay awake for the next answer; zero for not at all.
    #[inline]
    pub(crate) fn budget(&self) -> Nanos {
        self.budget
    }

    /// Whether it is time to sleep for once; then the next time is a while away.
    #[inline]
    pub(crate) fn is_trial(&mut self, now: Nanos) -> bool {
        let is_due = now >= self.next_trial;
        if is_due {
            self.next_trial = now + TRIAL;
        }
        is_due
    }

    /// Time spent awake without work so far.
    pub(crate) fn spent(&self) -> Nanos {
        self.spent
    }

    /// `time` was spent awake until `now`.
    pub(crate) fn spend(&mut self, time: Nanos, now: Nanos) {
        self.spent += time;
        if now >= self.next_look {
            let is_wanted = self.cores.is_wanted(now);
            self.looked(is_wanted, now);
        }
    }

    /// A sleep ended `after` the wait had begun (what was spent awake before it included), and `all` that was out was answered.
    pub(crate) fn slept(&mut self, after: Nanos, all: bool, now: Nanos) {
        if after > LONGEST || !all {
            self.budget = if self.budget > SHORTEST { self.budget / 2 } else { Nanos::ZERO };
        } else if now >= self.off_until {
            self.budget = (self.budget * 2).clamp(SHORTEST, LONGEST);
            if self.next_look == Nanos::ZERO {
                self.cores.begin(now);
                self.next_look = now + BETWEEN;
            }
        }
    }

    /// It was found whether somebody wants the core.
    fn looked(&mut self, is_wanted: bool, now: Nanos) {
        self.next_look = now + BETWEEN;
        self.wanted = if is_wanted { self.wanted + 1 } else { 0 };
        if !is_wanted {
            // What was crowded once may be calm now.
            self.off_for = (self.off_for / 2).max(FIRST_OFF);
        }
        if self.wanted >= ENOUGH {
            self.wanted = 0;
            self.budget = Nanos::ZERO;
            self.off_until = now + self.off_for;
            self.off_for = (self.off_for * 2).min(LONGEST_OFF);
            // Compared with what was before, the time off would count.
            self.next_look = Nanos::ZERO;
        }
    }
}

/// What the kernel says of who wants a core.
#[derive(Debug)]
struct CoreContention {
    /// `1.2 0.9 0.8 2/345 6789`: the fourth word begins with what is runnable now (`proc_loadavg(5)`).
    loadavg: File,
    /// `ns on a CPU, ns waiting for one, slices` of this thread.
    schedstat: File,
    online: u64,
    waited: Nanos,
    since: Nanos,
}

impl CoreContention {
    fn open() -> Option<CoreContention> {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
        Some(CoreContention {
            loadavg: File::open("/proc/loadavg").ok()?,
            schedstat: File::open("/proc/thread-self/schedstat").ok()?,
            online: online.parse::<Cpus>().ok()?.len() as u64,
            waited: Nanos::ZERO,
            since: Nanos::ZERO,
        })
    }

    /// From now on it counts how long this thread waits.
    fn begin(&mut self, now: Nanos) {
        self.since = now;
        self.waited = self.waited_so_far().unwrap_or_default();
    }

    /// Whether more is runnable than there are cores, or this thread had to wait for one. Unknown is wanted.
    fn is_wanted(&mut self, now: Nanos) -> bool {
        let before = (self.waited, self.since);
        self.begin(now);
        let waited = self.waited.saturating_sub(before.0).0 as f64 / (now.saturating_sub(before.1).0 as f64).max(1.0);
        let is_crowded = word(&self.loadavg, 3, |word| word.split('/').next()?.parse::<u64>().ok())
            .is_none_or(|runnable| runnable > self.online);
        is_crowded || waited > WAITING
    }

    fn waited_so_far(&self) -> Option<Nanos> {
        word(&self.schedstat, 1, |word| word.parse().ok().map(Nanos))
    }
}

/// What `read` makes of the `n`-th word of a small file, without allocating.
fn word<T>(file: &File, n: usize, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut buffer = [0; 128];
    let length = file.read_at(&mut buffer, 0).ok()?;
    read(std::str::from_utf8(&buffer[..length]).ok()?.split_ascii_whitespace().nth(n)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awake() -> BusyPoll {
        BusyPoll::new(1).expect("Linux has these files")
    }

    #[test]
    fn quick_answers_wake_it_and_slow_ones_put_it_to_sleep() {
        let mut awake = awake();
        let budgets: Vec<_> = (0..6)
            .map(|n| {
                awake.slept(Nanos::from_micros(30), true, Nanos::from_millis(n));
                awake.budget().0 / 1000
            })
            .collect();
        assert_eq!(budgets, [10, 20, 40, 80, 160, 200]);
        let budgets: Vec<_> = (0..6)
            .map(|n| {
                awake.slept(Nanos::from_millis(1), true, Nanos::from_millis(n));
                awake.budget().0 / 1000
            })
            .collect();
        assert_eq!(budgets, [100, 50, 25, 12, 6, 0], "a slow server's lane sleeps");
    }

    #[test]
    fn a_server_that_had_work_meanwhile_needs_nobody_awake() {
        let mut awake = awake();
        let soon = Nanos::from_micros(30);
        for n in 0..3 {
            awake.slept(soon, true, Nanos::from_millis(n));
        }
        assert_eq!(awake.budget(), SHORTEST * 4);
        for n in 3..6 {
            awake.slept(soon, false, Nanos::from_millis(n));
        }
        assert_eq!(awake.budget(), Nanos::ZERO);
    }

    #[test]
    fn a_sleep_is_tried_now_and_then() {
        let mut awake = awake();
        let trials: Vec<u64> = (100..140).filter(|n| awake.is_trial(Nanos::from_millis(*n))).collect();
        assert_eq!(trials, [100, 110, 120, 130]);
    }

    #[test]
    fn it_is_off_for_longer_each_time_somebody_wants_the_core() {
        let mut awake = awake();
        let soon = Nanos::from_micros(30);
        awake.slept(soon, true, Nanos::ZERO);
        awake.looked(false, Nanos::from_millis(10));
        assert_eq!(awake.budget(), SHORTEST);
        for at in [20, 30] {
            awake.looked(true, Nanos::from_millis(at));
        }
        assert_eq!(awake.budget(), SHORTEST, "it may be a passer-by");
        awake.looked(true, Nanos::from_millis(40));
        awake.slept(soon, true, Nanos::from_millis(139));
        assert_eq!(awake.budget(), Nanos::ZERO);
        awake.slept(soon, true, Nanos::from_millis(140));
        assert_eq!(awake.budget(), SHORTEST);
        for at in [150, 160, 170] {
            awake.looked(true, Nanos::from_millis(at));
        }
        awake.slept(soon, true, Nanos::from_millis(369));
        assert_eq!(awake.budget(), Nanos::ZERO);
        awake.slept(soon, true, Nanos::from_millis(370));
        for at in 38..=40 {
            awake.looked(false, Nanos::from_millis(10 * at));
        }
        assert_eq!(awake.off_for, FIRST_OFF, "it has been calm");
    }

    #[test]
    fn the_kernels_files_are_understood() {
        let cores = CoreContention::open().unwrap();
        assert!(word(&cores.loadavg, 3, |word| word.split('/').next()?.parse::<u64>().ok()).is_some());
        assert!(cores.waited_so_far().is_some());
    }
}
