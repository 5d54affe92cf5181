//! Whether the clock is quick to read, a wait ends when it should and a send is quick: measured, for no file tells.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::thread;

use model::{Clock, Nanos};
use rustix::event::{Timespec, epoll};
use rustix::thread::{current_timer_slack, set_current_timer_slack};

use super::{MachineAnswer, MachineEvidence};

/// Waits that are measured, and how long each is to be.
const WAITS: usize = 200;
const WAIT: Nanos = Nanos::from_millis(1);
/// Sends that are measured, the bytes of each, and the time between two, in which the reader falls asleep.
const SENDS: usize = 200;
const SENT_BYTES: usize = 100;
const BETWEEN_SENDS: Nanos = Nanos::from_micros(300);
/// Reads of the clock that are timed together.
const READS: u64 = 10_000;

/// How late waits ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitLateness {
    median: Nanos,
    worst: Nanos,
}

/// The lateness of waits as the lanes wait, with a timer slack of 1 ns; `None` where that cannot be set. The thread goes on with its own.
pub(super) fn lane_waits(clock: &impl Clock) -> Option<WaitLateness> {
    let before = current_timer_slack().ok()?;
    set_current_timer_slack(NonZeroU64::new(1)).ok()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
    let span = Timespec { tv_sec: 0, tv_nsec: WAIT.0.cast_signed() };
    let late = lateness(clock, || {
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        // Where the kernel or a sandbox has no such call.
        if epoll.as_ref().is_none_or(|epoll| epoll::wait(epoll, &mut events, Some(&span)).is_err()) {
            clock.sleep(WAIT);
        }
    });
    let _ = set_current_timer_slack(NonZeroU64::new(before));
    Some(late)
}

fn lateness(clock: &impl Clock, mut wait: impl FnMut()) -> WaitLateness {
    let mut late = [Nanos::ZERO; WAITS];
    for late in &mut late {
        let start = clock.now();
        wait();
        *late = clock.now().saturating_sub(start).saturating_sub(WAIT);
    }
    late.sort_unstable();
    WaitLateness { median: late[WAITS / 2], worst: late[WAITS - 1] }
}

/// How long a lane's send takes, at the median, over loopback to a reader that sleeps; `None` where that cannot be tried.
pub(super) fn lane_sends(clock: &impl Clock) -> Option<Nanos> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let mut sender = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    sender.set_nodelay(true).ok()?;
    let (mut reader, peer) = listener.accept().ok()?;
    if peer != sender.local_addr().ok()? {
        return None;
    }
    // The sender goes with the closure, before the reader is waited for.
    thread::scope(move |scope| {
        let read = move || io::copy(&mut reader, &mut io::sink());
        thread::Builder::new().spawn_scoped(scope, read).ok()?;
        let mut took = [Nanos::ZERO; SENDS];
        for took in &mut took {
            clock.sleep(BETWEEN_SENDS);
            let start = clock.now();
            sender.write_all(&[b'x'; SENT_BYTES]).ok()?;
            *took = clock.now().saturating_sub(start);
        }
        took.sort_unstable();
        Some(took[SENDS / 2])
    })
}

/// What one reading of the clock costs.
pub(super) fn clock_reading(clock: &impl Clock) -> Nanos {
    let start = clock.now();
    for _ in 0..READS {
        std::hint::black_box(clock.now());
    }
    clock.now().saturating_sub(start) / READS
}

pub(super) fn clocksource(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let source = (evidence.read)(&format!("{FOLDER}/current_clocksource"))?.trim().to_owned();
    let available = (evidence.read)(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let cost = evidence.clock_reading.0;
    let has_better = source != "tsc" && available.split_ascii_whitespace().any(|other| other == "tsc");
    let hint = if has_better {
        format!("echo tsc | sudo tee {FOLDER}/current_clocksource")
    } else {
        "a machine whose clock is read without a system call (clocksource tsc)".to_owned()
    };
    let seen = format!("{source}, {cost} ns a reading");
    Some(MachineAnswer::graded(cost as f64, 150.0, 2000.0, seen, &hint))
}

pub(super) fn late_waits(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let WaitLateness { median, worst } = evidence.waits?;
    let micros = |time: Nanos| format!("{:.0} µs", time.0 as f64 / 1e3);
    let seen = format!("1 ms waits end {} late, the worst of {WAITS} {}", micros(median), micros(worst));
    let hint = "end what runs beside it (top -d 1), or pin generator and server apart (taskset); --for 60s lets p99 outvote it";
    Some(match (median.0, worst.0) {
        (..=100_000, ..=5_000_000) => MachineAnswer::fine(seen),
        (..=1_000_000, _) => MachineAnswer::warn(seen, hint),
        _ => MachineAnswer::bad(seen, "a kernel with high-resolution timers, or a host that is less busy"),
    })
}

pub(super) fn sends(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let time = evidence.send?.0 as f64;
    let seen = format!("a request leaves in {:.0} µs, the median of {SENDS}", time / 1e3);
    let hint = "more generator threads (--generator-threads) send side by side, where there are CPUs for them";
    Some(MachineAnswer::graded(time, 50_000.0, 500_000.0, seen, hint))
}

#[cfg(test)]
mod tests {
    use super::super::MachineGrade::{Bad, Fine, Warn};
    use super::super::tests::asked_with;
    use super::*;
    use testkit::clock::Stepped;

    #[test]
    fn waits_are_graded_by_what_they_take_beyond_their_time() {
        let clock = Stepped::default();
        let mut nth = 0;
        let late = lateness(&clock, || {
            nth += 1;
            clock.advance(WAIT + if nth == 50 { Nanos::from_millis(7) } else { Nanos::from_micros(30) });
        });
        assert_eq!(late, WaitLateness { median: Nanos::from_micros(30), worst: Nanos::from_millis(7) });
        let check = asked_with("late waits", &[], |all| all.waits = Some(late));
        assert_eq!(check.seen, "1 ms waits end 30 µs late, the worst of 200 7000 µs");
        for (median, worst, grade) in [(30, 900, Fine), (30, 6000, Warn), (300, 900, Warn), (4000, 4000, Bad)] {
            let late = WaitLateness { median: Nanos::from_micros(median), worst: Nanos::from_micros(worst) };
            assert_eq!(asked_with("late waits", &[], |all| all.waits = Some(late)).grade, grade);
        }
    }

    #[test]
    fn sends_are_timed_and_graded() {
        assert_eq!(lane_sends(&Stepped::default()), Some(Nanos::ZERO), "the clock stands still meanwhile");
        for (micros, grade) in [(18, Fine), (80, Warn), (900, Bad)] {
            let check = asked_with("sends", &[], |all| all.send = Some(Nanos::from_micros(micros)));
            assert_eq!(
                (check.grade, check.seen),
                (grade, format!("a request leaves in {micros} µs, the median of 200"))
            );
        }
    }

    #[test]
    fn the_threads_slack_is_as_before() {
        let before = current_timer_slack().unwrap();
        lane_waits(&Stepped::default());
        assert_eq!(current_timer_slack().unwrap(), before);
    }
}
