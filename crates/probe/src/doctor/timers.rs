//! Whether a wait ends when it should: measured, for no file tells.

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use model::{Clock, Nanos};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::thread::{current_timer_slack, set_current_timer_slack};

use super::check::{Check, Group, Question};
use super::files::Files;

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Timers, name, spoils }
}

/// Waits that are measured, and how long each is to be.
const WAITS: usize = 200;
const WAIT: Nanos = Nanos::from_millis(1);
/// The kernel's default (prctl(2), `PR_SET_TIMERSLACK`).
const DEFAULT_SLACK_NS: u64 = 50_000;
/// Reads of the clock that are timed together.
const READS: u64 = 10_000;

pub(super) fn checks(files: &Files, clock: &impl Clock) -> Vec<Check> {
    let before = current_timer_slack();
    let default_slack = with_slack(DEFAULT_SLACK_NS, clock);
    let least_slack = with_slack(1, clock);
    if let Ok(slack) = before {
        // The thread goes on as it came.
        let _ = set_current_timer_slack(NonZeroU64::new(slack));
    }
    vec![clocksource(files, cost(clock)), nanosecond_waits(files), sleeps(default_slack), waits(least_slack)]
}

/// How late waits ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lateness {
    median: Nanos,
    worst: Nanos,
}

impl Lateness {
    fn seen(self) -> String {
        format!("1 ms waits end {} late, the worst of {WAITS} {}", micros(self.median), micros(self.worst))
    }
}

fn micros(time: Nanos) -> String {
    format!("{:.0} µs", time.0 as f64 / 1e3)
}

/// The lateness of waits with this slack; `None` where the slack cannot be set.
fn with_slack(slack: u64, clock: &impl Clock) -> Option<Lateness> {
    set_current_timer_slack(NonZeroU64::new(slack)).ok()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
    // As the lanes wait, where the kernel can.
    Some(lateness(clock, || {
        if epoll.as_ref().is_none_or(|epoll| wait(epoll, WAIT.0 as u32).is_err()) {
            clock.sleep(WAIT);
        }
    }))
}

/// Waits for nothing, for less than a second.
fn wait(epoll: impl AsFd, nanoseconds: u32) -> Result<(), Errno> {
    let span = Timespec { tv_sec: 0, tv_nsec: i64::from(nanoseconds) };
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
    epoll::wait(epoll, &mut events, Some(&span)).map(drop)
}

fn lateness(clock: &impl Clock, mut wait: impl FnMut()) -> Lateness {
    let mut late: Vec<Nanos> = Vec::with_capacity(WAITS);
    for _ in 0..WAITS {
        let start = clock.now();
        wait();
        late.push(clock.now().saturating_sub(start).saturating_sub(WAIT));
    }
    late.sort_unstable();
    Lateness { median: late[WAITS / 2], worst: late[WAITS - 1] }
}

/// What one reading of the clock costs.
fn cost(clock: &impl Clock) -> Nanos {
    let start = clock.now();
    for _ in 0..READS {
        std::hint::black_box(clock.now());
    }
    clock.now().saturating_sub(start) / READS
}

fn clocksource(files: &Files, cost: Nanos) -> Check {
    const ASKED: Question = question(
        "clocksource",
        "every instant, and the generator's ceiling: each request reads the clock several times",
    );
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let current = format!("{FOLDER}/current_clocksource");
    let Some(source) = files.line(&current) else { return ASKED.unread(&current) };
    let available = files.line(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let seen = format!("{source}, {} ns a reading", cost.0);
    let mend = match available.split(' ').find(|other| *other == "tsc" && *other != source) {
        Some(better) => format!("echo {better} | sudo tee {current}"),
        None => "a machine whose clock is read without a system call (clocksource tsc)".to_owned(),
    };
    ASKED.graded(cost.0 as f64, 150.0, 2000.0, seen, &mend).with("reading_ns", cost.0 as f64)
}

fn nanosecond_waits(files: &Files) -> Check {
    const ASKED: Question =
        question("epoll_pwait2", "the generator's CPU: without it lanes wait with ppoll, one call more a wait");
    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    let release = files.line(RELEASE);
    let told = release.as_deref().map_or(String::new(), |release| format!(", kernel {release}"));
    let tried = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(|epoll| wait(&epoll, 0));
    match tried {
        Ok(()) => ASKED.fine(format!("works{told}")),
        Err(Errno::NOSYS | Errno::PERM) => {
            ASKED.warn(format!("missing{told}"), "a kernel of 5.11 or later, or a sandbox that lets it through")
        }
        Err(error) => ASKED.unknown(format!("could not be tried ({error}){told}")),
    }
}

fn sleeps(late: Option<Lateness>) -> Check {
    const ASKED: Question =
        question("sleeps", "a server's sleeps, and so a measured service time: longer than what was asked for");
    let Some(late) = late else { return ASKED.unknown("the timer slack cannot be set") };
    let mend = "end what runs beside it (top -d 1); where nothing does, a kernel with high-resolution timers";
    ASKED
        .graded(late.median.0 as f64, 200e3, 2e6, format!("{} (slack 50 µs)", late.seen()), mend)
        .with("median_ns", late.median.0 as f64)
        .with("worst_ns", late.worst.0 as f64)
}

fn waits(late: Option<Lateness>) -> Check {
    const ASKED: Question = question(
        "waits of a lane",
        "open loop: due requests are sent so much later; it is in the send lag, and in the verdict",
    );
    let Some(late) = late else { return ASKED.unknown("the timer slack cannot be set") };
    let seen = format!("{} (slack 1 ns)", late.seen());
    let mend =
        "end what runs beside it (top -d 1), or pin lanes and server apart (taskset); --for 60s lets p99 outvote it";
    let check = match (late.median.0, late.worst.0) {
        (..=100_000, ..=5_000_000) => ASKED.fine(seen),
        (..=1_000_000, _) => ASKED.warn(seen, mend),
        _ => ASKED.bad(seen, "a kernel with high-resolution timers, or a host that is less busy"),
    };
    check.with("median_ns", late.median.0 as f64).with("worst_ns", late.worst.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::super::files::given;
    use super::*;
    use testkit::clock::Stepped;

    #[test]
    fn lateness_is_what_a_wait_takes_beyond_its_time() {
        let clock = Stepped::default();
        let mut nth = 0;
        let late = lateness(&clock, || {
            nth += 1;
            clock.advance(WAIT + if nth == 50 { Nanos::from_millis(7) } else { Nanos::from_micros(30) });
        });
        assert_eq!(late, Lateness { median: Nanos::from_micros(30), worst: Nanos::from_millis(7) });
        assert_eq!(late.seen(), "1 ms waits end 30 µs late, the worst of 200 7000 µs");
        assert_eq!(waits(Some(late)).grade, Grade::Warn);
    }

    #[test]
    fn waits_are_graded_by_their_median_and_their_worst() {
        let grade = |median, worst| {
            let (median, worst) = (Nanos::from_micros(median), Nanos::from_micros(worst));
            waits(Some(Lateness { median, worst })).grade
        };
        assert_eq!([grade(30, 900), grade(30, 6000), grade(300, 900)], [Grade::Fine, Grade::Warn, Grade::Warn]);
        assert_eq!(grade(4000, 4000), Grade::Bad);
        assert_eq!((waits(None).grade, sleeps(None).grade), (Grade::Unknown, Grade::Unknown));
    }

    #[test]
    fn a_slow_clock_is_exchanged_for_a_better_one_where_there_is_one() {
        let of = |source, available, ns| {
            let folder = "/sys/devices/system/clocksource/clocksource0";
            let (current, all) = (format!("{folder}/current_clocksource"), format!("{folder}/available_clocksource"));
            clocksource(&given(&[(&current, source), (&all, available)]), Nanos(ns))
        };
        let check = of("hpet\n", "tsc hpet acpi_pm \n", 1100);
        assert_eq!(check.grade, Grade::Warn);
        assert!(check.mend.unwrap().starts_with("echo tsc | sudo tee /sys/"));
        assert_eq!(of("tsc\n", "tsc hpet \n", 25).seen, "tsc, 25 ns a reading");
        assert!(of("acpi_pm", "acpi_pm", 3000).mend.unwrap().starts_with("a machine"));
    }

    #[test]
    fn the_threads_slack_is_as_before() {
        let before = current_timer_slack().unwrap();
        checks(&Files::Here, &Stepped::default());
        assert_eq!(current_timer_slack().unwrap(), before);
    }
}
