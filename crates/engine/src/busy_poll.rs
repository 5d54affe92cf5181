//! Whether a lane polls while it has nothing to do, instead of sleeping.
//!
//! To sleep and to be woken takes tens of microseconds, on a virtual machine more than a hundred, and all of it is charged to the server's
//! account: a closed loop with few connections then measures the wake-ups. So a lane of a closed loop polls for news before it
//! sleeps, as long as answers have lately come within [`LONGEST`], by the rule of KVM's halt polling (`grow_halt_poll_ns`,
//! `shrink_halt_poll_ns` in Linux' `virt/kvm/kvm_main.c`): a sleep that ended soon doubles the time, one that took long halves it. Against a
//! slow server it is off by itself after a few answers.
//!
//! A response that is read and answered at once costs both sides a system call more than it needs: who finds several reads them in one
//! turn, and so does the server with the requests that follow. So a poll that found only a few of the responses that are out goes on for a
//! moment ([`GATHERING`]) before they are taken. Where the kernel stamps arrivals, the response times do not hold that moment.
//!
//! Responses are waited for: while pieces of long ones come, a lane sleeps between them, for each piece that it reads at once costs
//! two system calls (`lane/run.rs`, `wait`).
//!
//! A lane that polls takes a core. Where it has to wait for that core, somebody else wants it, and polling is off, for longer each time. How
//! much is runnable on the machine does not say so: the kernel's own threads, which carry the packets of a loopback load, are among it. What is
//! spent polling is counted apart from work.

use model::{Clock, Nanos};

use crate::cpu_time::SchedStat;
use crate::wire::ConnectionEvent;

/// The longest time of polling for one answer.
const LONGEST: Nanos = Nanos::from_micros(200);
/// The first time of polling.
const SHORTEST: Nanos = Nanos::from_micros(10);
/// How long a poll goes on that found fewer than half of the responses that are out.
const GATHERING: Nanos = Nanos::from_micros(10);
/// How often it is asked whether somebody wants the core.
const BETWEEN: Nanos = Nanos::from_millis(10);
/// So many checks in a row that find it so: it is no passer-by, such as a thread of the kernel.
const ENOUGH: u32 = 3;
/// How long it is off the first time somebody does; doubled each time up to [`LONGEST_OFF`].
const FIRST_OFF: Nanos = Nanos::from_millis(100);
const LONGEST_OFF: Nanos = Nanos::from_secs(10);
/// Waiting for a core for more than this share of the time: somebody wants it.
const WAITING: f64 = 0.05;

/// The rule, and what it has learnt.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    /// How long to poll for the next answer.
    budget: Nanos,
    /// Not at all before then.
    off_until: Nanos,
    off_for: Nanos,
    next_check: Nanos,
    /// Checks in a row that found somebody who wants the core.
    wanted: u32,
    cores: CoreContention,
    /// Time spent polling in vain, or before an answer came.
    spent: Nanos,
    /// What one more poll found.
    more: Vec<ConnectionEvent>,
}

impl BusyPoll {
    /// Off so far; `None` where the process has fewer cores than `lanes`, or nobody can say whether one is free.
    pub(crate) fn new(lanes: u32) -> Option<BusyPoll> {
        let own = std::thread::available_parallelism().ok()?.get();
        let cores = CoreContention::open()?;
        (lanes as usize <= own).then(|| BusyPoll {
            budget: Nanos::ZERO,
            off_until: Nanos::ZERO,
            off_for: FIRST_OFF,
            next_check: Nanos::ZERO,
            wanted: 0,
            cores,
            spent: Nanos::ZERO,
            more: Vec::with_capacity(1024),
        })
    }

    /// Replaces `events` by the news of the connections that have something `out`, waiting for them with `poll` (how long, where they go)
    /// `at_most` this long: without sleep as long as the budget allows.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        clock: &impl Clock,
        mut poll: impl FnMut(Nanos, &mut Vec<ConnectionEvent>),
        at_most: Nanos,
        out: usize,
        events: &mut Vec<ConnectionEvent>,
    ) {
        events.clear();
        let budget = self.budget.min(at_most);
        if budget > Nanos::ZERO {
            // What is there already was not waited for.
            poll(Nanos::ZERO, events);
            if !events.is_empty() && events.len() * 2 >= out {
                return;
            }
        }
        let began = clock.now();
        let mut waited = Nanos::ZERO;
        while waited < budget {
            if !events.is_empty() {
                let now = self.gather(clock, &mut poll, out, events);
                return self.spend(now.saturating_sub(began), now);
            }
            poll(Nanos::ZERO, events);
            waited = clock.now().saturating_sub(began);
        }
        if waited > Nanos::ZERO {
            self.spend(waited, began + waited);
        }
        if events.is_empty() {
            poll(at_most.saturating_sub(waited), events);
            let now = clock.now();
            self.slept(now.saturating_sub(began), now);
        }
    }

    /// Polls on until half of what is `out` is there, or the time is over; what time it is then.
    #[inline]
    fn gather(
        &mut self,
        clock: &impl Clock,
        poll: &mut impl FnMut(Nanos, &mut Vec<ConnectionEvent>),
        out: usize,
        events: &mut Vec<ConnectionEvent>,
    ) -> Nanos {
        let mut now = clock.now();
        let until = now + GATHERING;
        while events.len() * 2 < out && now < until {
            poll(Nanos::ZERO, &mut self.more);
            events.append(&mut self.more);
            now = clock.now();
        }
        now
    }

    /// Time spent polling without work so far.
    pub(crate) fn spent(&self) -> Nanos {
        self.spent
    }

    /// `time` was spent polling until `now`.
    fn spend(&mut self, time: Nanos, now: Nanos) {
        self.spent += time;
        if now >= self.next_check {
            let is_wanted = self.cores.is_wanted(now);
            self.core_checked(is_wanted, now);
        }
    }

    /// A sleep ended `after` the wait had begun (what was spent polling before it included).
    fn slept(&mut self, after: Nanos, now: Nanos) {
        if after > LONGEST {
            self.budget = if self.budget > SHORTEST { self.budget / 2 } else { Nanos::ZERO };
        } else if now >= self.off_until {
            self.budget = (self.budget * 2).clamp(SHORTEST, LONGEST);
            if self.next_check == Nanos::ZERO {
                self.cores.begin(now);
                self.next_check = now + BETWEEN;
            }
        }
    }

    /// It was found whether somebody wants the core.
    fn core_checked(&mut self, is_wanted: bool, now: Nanos) {
        self.next_check = now + BETWEEN;
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
            self.next_check = Nanos::ZERO;
        }
    }
}

/// Whether somebody else wants this thread's core, by the time that the thread waits for it.
#[derive(Debug)]
struct CoreContention {
    schedstat: SchedStat,
    waited: Nanos,
    since: Nanos,
}

impl CoreContention {
    fn open() -> Option<CoreContention> {
        Some(CoreContention { schedstat: SchedStat::open()?, waited: Nanos::ZERO, since: Nanos::ZERO })
    }

    /// From now on it counts how long this thread waits.
    fn begin(&mut self, now: Nanos) {
        self.since = now;
        self.waited = self.schedstat.run_queue().unwrap_or_default();
    }

    /// Whether this thread had to wait for its core.
    fn is_wanted(&mut self, now: Nanos) -> bool {
        let before = (self.waited, self.since);
        self.begin(now);
        let waited = self.waited.saturating_sub(before.0).0 as f64 / (now.saturating_sub(before.1).0 as f64).max(1.0);
        waited > WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll::EventFlags;
    use testkit::clock::Stepped;

    fn poll() -> BusyPoll {
        BusyPoll::new(1).expect("Linux has these files")
    }

    #[test]
    fn quick_answers_wake_it_and_slow_ones_put_it_to_sleep() {
        let mut poll = poll();
        let mut budgets = |slept: Nanos| {
            let budget_after = |n| {
                poll.slept(slept, Nanos::from_millis(n));
                poll.budget.0 / 1000
            };
            (0..6).map(budget_after).collect::<Vec<_>>()
        };
        assert_eq!(budgets(Nanos::from_micros(30)), [10, 20, 40, 80, 160, 200]);
        assert_eq!(budgets(Nanos::from_millis(1)), [100, 50, 25, 12, 6, 0], "a slow server's lane sleeps");
    }

    /// The numbers of the connections that one wait finds, and what time it is then: `arrivals` come at these microseconds, a poll
    /// takes one, and the last turn's news are still in the list.
    fn found(budget: u64, arrivals: &[u64], out: usize) -> (Vec<u32>, u64) {
        let mut busy_poll = BusyPoll { budget: Nanos::from_micros(budget), ..poll() };
        let (clock, mut coming) = (Stepped::default(), (0..).zip(arrivals).peekable());
        let event = |slot| ConnectionEvent { slot, flags: EventFlags::IN };
        let mut events = vec![event(99)];
        let poll = |at_most: Nanos, events: &mut Vec<ConnectionEvent>| {
            events.clear();
            let next = coming.peek().map_or(Nanos::MAX, |(_, at)| Nanos::from_micros(**at));
            let now = clock.now() + Nanos::from_micros(1);
            clock.set(now.max((clock.now() + at_most).min(next)));
            while let Some((slot, _)) = coming.next_if(|(_, at)| Nanos::from_micros(**at) <= clock.now()) {
                events.push(event(slot));
            }
        };
        busy_poll.wait(&clock, poll, Nanos::from_millis(100), out, &mut events);
        (events.iter().map(|event| event.slot).collect(), clock.now().0 / 1000)
    }

    #[test]
    fn a_poll_that_found_a_few_goes_on_for_a_moment() {
        type Case = (&'static str, u64, &'static [u64], usize, (&'static [u32], u64));
        let cases: [Case; 7] = [
            ("a sleep takes what woke it", 0, &[50, 51, 52], 8, (&[0], 50)),
            ("half of what is out is there at once", 200, &[1, 1, 50], 4, (&[0, 1], 1)),
            ("half of it comes", 200, &[5, 7, 9, 50], 4, (&[0, 1], 7)),
            ("no more comes in time", 200, &[5, 50], 16, (&[0], 15)),
            ("one is out", 200, &[30], 1, (&[0], 30)),
            ("none comes within the budget", 20, &[70], 1, (&[0], 70)),
            ("nothing is out, and nothing comes", 200, &[], 0, (&[], 100_001)),
        ];
        for (case, budget, arrivals, out, (slots, at)) in cases {
            assert_eq!(found(budget, arrivals, out), (slots.to_vec(), at), "{case}");
        }
    }

    #[test]
    fn it_is_off_for_longer_each_time_somebody_wants_the_core() {
        let mut poll = poll();
        let soon = Nanos::from_micros(30);
        poll.slept(soon, Nanos::ZERO);
        poll.core_checked(false, Nanos::from_millis(10));
        assert_eq!(poll.budget, SHORTEST);
        for at in [20, 30] {
            poll.core_checked(true, Nanos::from_millis(at));
        }
        assert_eq!(poll.budget, SHORTEST, "it may be a passer-by");
        poll.core_checked(true, Nanos::from_millis(40));
        poll.slept(soon, Nanos::from_millis(139));
        assert_eq!(poll.budget, Nanos::ZERO);
        poll.slept(soon, Nanos::from_millis(140));
        assert_eq!(poll.budget, SHORTEST);
        for at in [150, 160, 170] {
            poll.core_checked(true, Nanos::from_millis(at));
        }
        poll.slept(soon, Nanos::from_millis(369));
        assert_eq!(poll.budget, Nanos::ZERO);
        poll.slept(soon, Nanos::from_millis(370));
        for at in 38..=40 {
            poll.core_checked(false, Nanos::from_millis(10 * at));
        }
        assert_eq!(poll.off_for, FIRST_OFF, "it has been calm");
    }

    #[test]
    fn the_kernels_file_is_understood() {
        assert!(CoreContention::open().unwrap().schedstat.run_queue().is_some());
    }
}
