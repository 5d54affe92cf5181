//! How many CPUs other programs used while an event went on, second by second: neither the server,
//! nor longtail, nor the event's command. What they took may be why requests were slow.

use model::{Nanos, OthersCpu};
use probe::host::HostCounters;
use probe::processes::this_process_cpu;

/// How often the CPUs are looked at.
pub(crate) const CPU_PERIOD: Nanos = Nanos::from_secs(1);

/// Readings of a run, one after the other.
pub(crate) struct OthersCpuSeries {
    last: CpuReading,
    seconds: Vec<CpuSecond>,
}

/// The counters at one moment.
struct CpuReading {
    at: Nanos,
    host: HostCounters,
    /// Of the server and of the event's command.
    known_ticks: u64,
    own: Nanos,
}

/// CPU time between two readings, about a second apart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CpuSecond {
    from: Nanos,
    until: Nanos,
    others: Nanos,
    busy: Nanos,
}

impl OthersCpuSeries {
    pub(crate) fn begin(now: Nanos) -> OthersCpuSeries {
        OthersCpuSeries { last: CpuReading::now(now, 0), seconds: Vec::new() }
    }

    /// Reads the counters at this time. `known_ticks` is what the server and the event's command
    /// have used since the first reading.
    pub(crate) fn read(&mut self, at: Nanos, known_ticks: u64) {
        let reading = CpuReading::now(at, known_ticks);
        let last = std::mem::replace(&mut self.last, reading);
        let now = &self.last;
        let Some(busy) = now.host.busy_since(&last.host) else { return };
        // A tick is 10 ms.
        let known = Nanos::from_millis(10 * (now.known_ticks - last.known_ticks));
        let others = busy.saturating_sub(known + (now.own - last.own));
        self.seconds.push(CpuSecond { from: last.at, until: now.at, others, busy });
    }

    /// What others used before the event, which happened at `at`, and from then until `until`, when
    /// requests took as long as before. Both times are on the clock of the readings.
    pub(crate) fn around(&self, at: Nanos, until: Nanos) -> Option<OthersCpu> {
        let of = std::thread::available_parallelism().ok()?.get() as u32;
        around(&self.seconds, at, until, of)
    }
}

impl CpuReading {
    fn now(at: Nanos, known_ticks: u64) -> CpuReading {
        CpuReading { at, host: HostCounters::now(), known_ticks, own: this_process_cpu() }
    }
}

fn around(seconds: &[CpuSecond], at: Nanos, until: Nanos, of: u32) -> Option<OthersCpu> {
    let length = |second: &CpuSecond| second.until.saturating_sub(second.from);
    let cpus = |used: Nanos, length: Nanos| used.as_secs_f64() / length.as_secs_f64();
    let earlier = || seconds.iter().filter(|second| second.until <= at);
    let earlier_length: Nanos = earlier().map(length).sum();
    if earlier_length < CPU_PERIOD {
        return None;
    }
    let before = cpus(earlier().map(|second| second.others).sum(), earlier_length);
    let is_meanwhile = |second: &&CpuSecond| {
        second.until > at && second.from < until && length(second) >= CPU_PERIOD / 2
    };
    let busiest = seconds.iter().filter(is_meanwhile).max_by_key(|second| second.others)?;
    let most_since = cpus(busiest.others, length(busiest));
    let busy = cpus(busiest.busy, length(busiest));
    Some(OthersCpu { before, most_since, busy, of })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_seconds_of_the_event_are_looked_at() {
        let second = |number: u64, others_ms: u64, busy_ms: u64| CpuSecond {
            from: Nanos::from_secs(number),
            until: Nanos::from_secs(number + 1),
            others: Nanos::from_millis(others_ms),
            busy: Nanos::from_millis(busy_ms),
        };
        let seconds =
            [second(0, 100, 500), second(1, 300, 700), second(2, 900, 1900), second(3, 1900, 2000)];
        let from_two = |until_ms| {
            around(&seconds, Nanos::from_secs(2), Nanos::from_millis(until_ms), 2).unwrap()
        };
        let short = from_two(2500);
        assert_eq!((short.before, short.most_since, short.busy), (0.2, 0.9, 1.9));
        let long = from_two(3500);
        assert_eq!((long.most_since, long.busy), (1.9, 2.0));
        assert_eq!(around(&seconds, Nanos::from_millis(900), Nanos::from_secs(3), 2), None);
    }
}
