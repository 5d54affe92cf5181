//! Measurements of `doctor`: what else the machine does in a second of sleep, whether a wait ends
//! on time, and what a send and a reading of the clock take.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::thread;

use model::{Clock, Nanos};
use proctree::ProcessStat;
use rustix::event::{Timespec, epoll};
use rustix::thread::{current_timer_slack, set_current_timer_slack};

use crate::host::CpuTicks;

/// How long the machine is looked at.
const SAMPLE: Nanos = Nanos::from_secs(1);

/// What the processors did in the sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    pub(super) ticks: CpuTicks,
    /// The programs that ran most.
    pub(super) busiest: Vec<String>,
}

impl Activity {
    /// Sleeps for the sample. `None` if nothing was counted.
    pub(super) fn sample(clock: &impl Clock) -> Option<Activity> {
        let before = CpuTicks::now();
        let processes_before = proctree::all();
        clock.sleep(SAMPLE);
        let ticks = CpuTicks::now()?.since(&before?)?;
        Some(Activity { ticks, busiest: busiest(&processes_before, &proctree::all()) })
    }
}

/// The names of the three programs that ran the most; fewer if others ran for less than a twentieth
/// of the sample.
pub(super) fn busiest(before: &[ProcessStat], after: &[ProcessStat]) -> Vec<String> {
    let least = rustix::param::clock_ticks_per_second() / 20;
    let before: BTreeMap<u32, u64> =
        before.iter().map(|process| (process.pid, process.cpu_ticks)).collect();
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    for process in after {
        // A process that was not there before has used all its ticks since.
        let ticks =
            process.cpu_ticks.saturating_sub(before.get(&process.pid).copied().unwrap_or(0));
        *ran.entry(&process.name).or_default() += ticks;
    }
    let mut ran: Vec<_> = ran.into_iter().filter(|(_, ticks)| *ticks >= least.max(1)).collect();
    ran.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    ran.into_iter().take(3).map(|(name, _)| name.to_owned()).collect()
}

/// Waits that are measured, and how long each is to be.
pub(super) const WAITS: usize = 200;
pub(super) const WAIT: Nanos = Nanos::from_millis(1);
/// Sends that are measured, the bytes of each, and the time between two, in which the reader falls
/// asleep.
pub(super) const SENDS: usize = 200;
const SENT_BYTES: usize = 100;
const BETWEEN_SENDS: Nanos = Nanos::from_micros(300);
/// Reads of the clock that are timed together.
const READS: u64 = 10_000;

/// How late waits ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitLateness {
    pub(super) median: Nanos,
    pub(super) worst: Nanos,
}

/// How late waits end that are made as the lanes make them, with a timer slack of 1 ns; `None` if
/// that cannot be set. Afterwards the thread has its former slack again.
pub(super) fn lane_waits(clock: &impl Clock) -> Option<WaitLateness> {
    let before = current_timer_slack().ok()?;
    set_current_timer_slack(NonZeroU64::new(1)).ok()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
    let span = Timespec { tv_sec: 0, tv_nsec: WAIT.0.cast_signed() };
    let late = lateness(clock, || {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        // Sleep instead if the kernel or a sandbox has no `epoll_pwait2`.
        if epoll.as_ref().is_none_or(|epoll| epoll::wait(epoll, &mut events, Some(&span)).is_err())
        {
            clock.sleep(WAIT);
        }
    });
    let _ = set_current_timer_slack(NonZeroU64::new(before));
    Some(late)
}

pub(super) fn lateness(clock: &impl Clock, mut wait: impl FnMut()) -> WaitLateness {
    let mut late = [Nanos::ZERO; WAITS];
    for late in &mut late {
        let start = clock.now();
        wait();
        *late = clock.now().saturating_sub(start).saturating_sub(WAIT);
    }
    late.sort_unstable();
    WaitLateness { median: late[WAITS / 2], worst: late[WAITS - 1] }
}

/// How long a lane's send takes, at the median, over loopback to a reader that sleeps; `None` where
/// that cannot be tried.
pub(super) fn lane_sends(clock: &impl Clock) -> Option<Nanos> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let mut sender = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    sender.set_nodelay(true).ok()?;
    let (mut reader, peer) = listener.accept().ok()?;
    if peer != sender.local_addr().ok()? {
        return None;
    }
    // The closure owns the sender, so it is closed before the scope waits for the reader to end.
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
