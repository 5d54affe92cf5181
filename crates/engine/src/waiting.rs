//! How a lane waits while it has nothing to do: it sleeps, allowing for late wake-ups; or polls; or
//! leaves responses unread until it has to wake anyway.

use model::{Clock, Nanos};

use crate::thread::CpuAccount;
use crate::wire::ConnectionEvent;

/// Sleeps end early by this much at most: where wake-ups are later than that, the lane waits for a
/// processor, and polling would not help.
pub(crate) const LONGEST_WAKE_DELAY: Nanos = Nanos::from_micros(50);
/// How far one sleep moves the estimate.
const ESTIMATE_STEP: Nanos = Nanos(250);

/// How late the lane is woken from its sleeps: a running median, which each sleep moves up or down
/// by a step. A precise lane ends its sleeps early by that much, and polls for the rest.
///
/// The timer interrupt, leaving the processor's idle state and the scheduler take a few
/// microseconds on bare metal and about twenty on a virtual machine, nearly the same each time. So
/// the delay can be predicted, and requests need not be late by it.
#[derive(Debug, Default)]
pub(crate) struct WakeDelay {
    median: Nanos,
}

impl WakeDelay {
    /// How late the next sleep will probably end.
    #[inline]
    pub(crate) fn expected(&self) -> Nanos {
        self.median
    }

    /// Notes that a sleep until `until`, which no news ended early, ended at `now`.
    #[inline]
    pub(crate) fn woke(&mut self, until: Nanos, now: Nanos) {
        self.median = if now.saturating_sub(until) > self.median {
            (self.median + ESTIMATE_STEP).min(LONGEST_WAKE_DELAY)
        } else {
            self.median.saturating_sub(ESTIMATE_STEP)
        };
    }
}

/// The longest time of polling for one response.
const LONGEST_POLL: Nanos = Nanos::from_micros(200);
/// The first time of polling.
const SHORTEST_POLL: Nanos = Nanos::from_micros(10);
/// How long a poll goes on after it found fewer than half of the outstanding responses.
const GATHERING: Nanos = Nanos::from_micros(10);
/// How often it is checked whether something else wants the core.
const BETWEEN: Nanos = Nanos::from_millis(10);
/// Busy checks in a row before polling stops; fewer may be a kernel thread.
const CHECKS_IN_A_ROW: u32 = 3;
/// How long polling is off the first time; doubled each time, up to [`LONGEST_OFF`].
const FIRST_OFF: Nanos = Nanos::from_millis(100);
const LONGEST_OFF: Nanos = Nanos::from_secs(10);
/// A lane that waits for its core for more than this share of the time shares it with something
/// else.
const WAITING: f64 = 0.05;

/// How long to poll for the next response, and what has been learnt for that.
///
/// Sleeping and being woken takes tens of microseconds, on a virtual machine more than a hundred,
/// and would count as the server's time: a closed loop with few connections would measure wake-ups.
/// So a lane of a closed loop polls before it sleeps, as long as responses have lately come within
/// [`LONGEST_POLL`], by the rule of KVM's halt polling (`grow_halt_poll_ns`, `shrink_halt_poll_ns`
/// in Linux' `virt/kvm/kvm_main.c`): a sleep that ended soon doubles the time, a long one halves
/// it. Against a slow server polling stops by itself after a few responses.
///
/// Handling each response on its own costs both sides more system calls than handling several in
/// one turn. So a poll that found only a few of the outstanding responses goes on for a moment
/// ([`GATHERING`]) before they are read. Where the kernel stamps arrivals, that moment is not in
/// the response times.
///
/// While parts of long responses come, a lane sleeps in between: reading each part at once costs
/// two system calls (`lane/run.rs`, `wait`).
///
/// A lane that polls takes a core. If it has to wait for that core, something else wants it, and
/// polling stops, for longer each time. The machine's count of runnable threads is no measure of
/// that: it includes the kernel's own threads, which carry the packets of a loopback load. Time
/// spent polling is counted apart from work.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    /// How long to poll for the next response.
    budget: Nanos,
    /// Polling is off until then.
    off_until: Nanos,
    off_for: Nanos,
    next_check: Nanos,
    /// Checks in a row that found the core shared.
    wanted: u32,
    /// What this thread has used since `checked`, and so how long it waited for its core.
    account: CpuAccount,
    checked: Nanos,
    /// Time spent polling, whether or not a response came.
    spent: Nanos,
    /// What one more poll found.
    more: Vec<ConnectionEvent>,
}

impl BusyPoll {
    /// Off at first; `None` if the process has no more cores than `lanes` need, or it cannot be
    /// known whether one is free.
    pub(crate) fn new(lanes: u32) -> Option<BusyPoll> {
        let cores = std::thread::available_parallelism().ok()?.get();
        let account = CpuAccount::begin()?;
        (lanes as usize <= cores).then(|| BusyPoll {
            budget: Nanos::ZERO,
            off_until: Nanos::ZERO,
            off_for: FIRST_OFF,
            next_check: Nanos::ZERO,
            wanted: 0,
            account,
            checked: Nanos::ZERO,
            spent: Nanos::ZERO,
            more: Vec::with_capacity(1024),
        })
    }

    /// Waits `at_most` this long for news of the `out` outstanding requests, by calling `poll` (how
    /// long, where events go), and replaces `events` by it. It polls without sleep as long as the
    /// budget allows.
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
            // Responses that are there already were not waited for.
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

    /// Polls on until half of the `out` responses are there, or the time is over; the time then.
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

    /// Notes that `time` was spent polling until `now`.
    fn spend(&mut self, time: Nanos, now: Nanos) {
        self.spent += time;
        if now >= self.next_check {
            let waited = self.waited_for_core();
            let elapsed = now.saturating_sub(self.checked);
            self.checked = now;
            self.core_checked(waited.0 as f64 > WAITING * elapsed.0 as f64, now);
        }
    }

    /// Notes that a sleep ended `after` the wait had begun (including the polling before it).
    fn slept(&mut self, after: Nanos, now: Nanos) {
        if after > LONGEST_POLL {
            self.budget = if self.budget > SHORTEST_POLL { self.budget / 2 } else { Nanos::ZERO };
        } else if now >= self.off_until {
            self.budget = (self.budget * 2).clamp(SHORTEST_POLL, LONGEST_POLL);
            if self.next_check == Nanos::ZERO {
                self.waited_for_core();
                self.checked = now;
                self.next_check = now + BETWEEN;
            }
        }
    }

    /// How long this thread has waited for its core since the last call.
    fn waited_for_core(&mut self) -> Nanos {
        self.account.used().map_or(Nanos::ZERO, |[_, run_queue]| run_queue)
    }

    /// Notes whether the core was found shared.
    fn core_checked(&mut self, is_wanted: bool, now: Nanos) {
        self.next_check = now + BETWEEN;
        self.wanted = if is_wanted { self.wanted + 1 } else { 0 };
        if !is_wanted {
            // A core that was busy may be free now.
            self.off_for = (self.off_for / 2).max(FIRST_OFF);
        }
        if self.wanted >= CHECKS_IN_A_ROW {
            self.wanted = 0;
            self.budget = Nanos::ZERO;
            self.off_until = now + self.off_for;
            self.off_for = (self.off_for * 2).min(LONGEST_OFF);
            // Otherwise the time during which polling was off would count.
            self.next_check = Nanos::ZERO;
        }
    }
}

/// Responses are left unread for this long at most.
const LONGEST_UNREAD: Nanos = Nanos::from_millis(1);
/// Longer responses are read at once, so that they never fill the socket's buffer and hold up the
/// server.
const SHORT: u64 = 16 * 1024;
/// Responses in a row that have to be plain before the first one is left unread.
const PLAIN_RESPONSES: u32 = 256;

/// Whether responses may be left in the kernel until the next request is due, by what is known of
/// them so far.
///
/// An open loop has to wake for each due time. Waking for each response as well would be two
/// wake-ups a request, and waking costs more than anything else a lane does. Where the kernel
/// stamps arrivals, a response time does not depend on when the response is read, so the lane may
/// sleep until it is about to send, and read then. It does so only while nothing else depends on
/// that moment: see [`UnreadResponses::may_wait`].
#[derive(Debug, Default)]
pub(crate) struct UnreadResponses {
    /// Plain responses in a row.
    plain: u32,
    /// Connections that are being opened.
    pub(crate) opening: usize,
    /// The end of the last sleep in which the lane left them unread.
    pub(crate) until: Nanos,
}

impl UnreadResponses {
    /// Notes the end of a response. It is plain if the kernel stamped it, it is short, it came in
    /// one read and its connection stays open.
    #[inline]
    pub(crate) fn ended(&mut self, bytes: u64, is_whole_and_stamped: bool) {
        self.plain =
            if is_whole_and_stamped && bytes < SHORT { self.plain.saturating_add(1) } else { 0 };
    }

    /// Notes that a connection was closed: what follows should be seen at once.
    pub(crate) fn closed(&mut self) {
        self.plain = 0;
    }

    /// Whether responses may wait for `time`, until the lane sends again. Not while a connection is
    /// being opened (there is something to send as soon as it is open), nor after anything but
    /// plain responses: the first byte of one that comes in pieces is a time of its own, a long one
    /// needs a reader, and what ends without a response ends when it is seen.
    #[inline]
    pub(crate) fn may_wait(&self, time: Nanos) -> bool {
        self.plain >= PLAIN_RESPONSES
            && self.opening == 0
            && Nanos::ZERO < time
            && time <= LONGEST_UNREAD
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
    fn quick_responses_start_polling_and_slow_ones_stop_it() {
        let mut poll = poll();
        let mut budgets = |slept: Nanos| {
            let budget_after = |n| {
                poll.slept(slept, Nanos::from_millis(n));
                poll.budget.0 / 1000
            };
            (0..6).map(budget_after).collect::<Vec<_>>()
        };
        assert_eq!(budgets(Nanos::from_micros(30)), [10, 20, 40, 80, 160, 200]);
        assert_eq!(
            budgets(Nanos::from_millis(1)),
            [100, 50, 25, 12, 6, 0],
            "a slow server's lane sleeps"
        );
    }

    /// The numbers of the connections that one wait finds, and what time it is then: `arrivals`
    /// come at these microseconds, a poll takes one, and the last turn's news are still in the
    /// list.
    fn found(budget: u64, arrivals: &[u64], out: usize) -> (Vec<u32>, u64) {
        let mut busy_poll = BusyPoll { budget: Nanos::from_micros(budget), ..poll() };
        let clock = Stepped::default();
        let mut coming = (0..).zip(arrivals).peekable();
        let event = |slot| ConnectionEvent { slot, flags: EventFlags::IN };
        let mut events = vec![event(99)];
        let poll = |at_most: Nanos, events: &mut Vec<ConnectionEvent>| {
            events.clear();
            let next = coming.peek().map_or(Nanos::MAX, |(_, at)| Nanos::from_micros(**at));
            let now = clock.now() + Nanos::from_micros(1);
            clock.set(now.max((clock.now() + at_most).min(next)));
            while let Some((slot, _)) =
                coming.next_if(|(_, at)| Nanos::from_micros(**at) <= clock.now())
            {
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
    fn polling_stops_for_longer_each_time_the_core_is_shared() {
        let mut poll = poll();
        let soon = Nanos::from_micros(30);
        poll.slept(soon, Nanos::ZERO);
        poll.core_checked(false, Nanos::from_millis(10));
        assert_eq!(poll.budget, SHORTEST_POLL);
        for at in [20, 30] {
            poll.core_checked(true, Nanos::from_millis(at));
        }
        assert_eq!(poll.budget, SHORTEST_POLL, "it may be a kernel thread");
        poll.core_checked(true, Nanos::from_millis(40));
        poll.slept(soon, Nanos::from_millis(139));
        assert_eq!(poll.budget, Nanos::ZERO);
        poll.slept(soon, Nanos::from_millis(140));
        assert_eq!(poll.budget, SHORTEST_POLL);
        for at in [150, 160, 170] {
            poll.core_checked(true, Nanos::from_millis(at));
        }
        poll.slept(soon, Nanos::from_millis(369));
        assert_eq!(poll.budget, Nanos::ZERO);
        poll.slept(soon, Nanos::from_millis(370));
        for at in 38..=40 {
            poll.core_checked(false, Nanos::from_millis(10 * at));
        }
        assert_eq!(poll.off_for, FIRST_OFF, "the core was free meanwhile");
    }

    #[test]
    fn plain_responses_may_wait_and_not_for_long_and_whatever_else_happens_is_seen_at_once() {
        let after = |responses: u32| {
            let mut unread = UnreadResponses::default();
            (0..responses).for_each(|_| unread.ended(100, true));
            unread
        };
        let soon = Nanos::from_micros(100);
        let plain = after(PLAIN_RESPONSES);
        assert!(plain.may_wait(soon) && plain.may_wait(LONGEST_UNREAD));
        assert!(!plain.may_wait(LONGEST_UNREAD + Nanos(1)) && !plain.may_wait(Nanos::ZERO));
        assert!(!after(PLAIN_RESPONSES - 1).may_wait(soon));
        let happens: [fn(&mut UnreadResponses); 4] = [
            // In pieces, or without a stamp; long; closed; being opened.
            |unread| unread.ended(100, false),
            |unread| unread.ended(SHORT, true),
            UnreadResponses::closed,
            |unread| unread.opening += 1,
        ];
        for (case, happen) in happens.into_iter().enumerate() {
            let mut unread = after(PLAIN_RESPONSES);
            happen(&mut unread);
            assert!(!unread.may_wait(soon), "{case}");
        }
    }

    fn after(sleeps: impl Iterator<Item = u64>) -> Nanos {
        let mut delay = WakeDelay::default();
        sleeps.for_each(|late| delay.woke(Nanos(1_000_000), Nanos(1_000_000 + late)));
        delay.expected()
    }

    #[test]
    fn the_wake_delay_comes_to_the_median_and_has_an_end_and_an_outlier_moves_it_one_step() {
        let ordinary = |n: u64| [18_000, 20_000, 22_000][n as usize % 3];
        let settled = after((0..1000).map(ordinary));
        assert!((18_000..=22_000).contains(&settled.0), "{settled}");
        // Every twentieth is late by two milliseconds: a mean would be 120 µs.
        let disturbed = after((0..1000).map(|n| if n % 20 == 0 { 2_000_000 } else { ordinary(n) }));
        assert!((18_000..=22_500).contains(&disturbed.0), "{disturbed}");
        assert_eq!(after((0..1000).map(|_| 1_000_000)), LONGEST_WAKE_DELAY);
        assert_eq!(after((0..2000).map(|n| if n < 1000 { 1_000_000 } else { 0 })), Nanos::ZERO);
    }
}
