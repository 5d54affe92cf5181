//! Which of a server's numbers tells first that it is full: what an autoscaler or an alert may go by.
//!
//! A load goes up through the server's saturation and down again, beginning with a while at half of
//! what the server can do. Each number (a *signal*) is read as a scraper reads it. Its *idle range*
//! is what the first half of that while showed. Its *threshold* lies halfway between the end of that
//! range and what it had reached when the objective broke, which the client alone knows. In the
//! second half of that while each reading beyond the threshold is a *false alarm*.

use model::statistics::binomial;
use model::{Nanos, Watch, WatchCurve, WatchTrack};

use crate::words::{brief, capitalised, counted, few_digits, listed};

/// A number that is read of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalKind {
    /// Its name, as Puma or the kernel calls it.
    pub name: &'static str,
    /// The curve of a [`Watch`] that it is read from.
    curve: &'static str,
    /// How readings of several processes become one.
    of_all: SignalSum,
    /// What it must have reached when the objective broke: less is nothing to go by, such as a
    /// fiftieth of a CPU.
    least: f64,
    /// Whether Puma's control server tells it.
    pub is_pumas: bool,
    /// What it cannot see.
    pub blind_to: &'static str,
}

/// How a number of the whole server is made of its processes' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalSum {
    /// Added up; more is fuller.
    Sum,
    /// Added up; less is fuller.
    FallingSum,
    /// The growth of counters a second, added up: CPUs, or threads that wait for one.
    Growth,
}

/// The curve of `/proc/pressure/cpu`: for how long some task waited for a CPU (PSI), in ns.
pub const CPU_PRESSURE: &str = "cpu_pressure";

/// All signals, in the order of the table.
const SIGNALS: [SignalKind; 7] = [
    SignalKind {
        name: "busy threads",
        curve: "busy_threads",
        of_all: SignalSum::Sum,
        least: 1.0,
        is_pumas: true,
        blind_to: "how many wait once all are busy",
    },
    SignalKind {
        name: "pool_capacity",
        curve: "pool_capacity",
        of_all: SignalSum::FallingSum,
        least: 0.0,
        is_pumas: true,
        blind_to: "how many wait once it is 0",
    },
    SignalKind {
        name: "backlog",
        curve: "backlog",
        of_all: SignalSum::Sum,
        least: 2.0,
        is_pumas: true,
        blind_to: "what waits in the kernel's accept queue, which before Puma 7 is nearly all",
    },
    SignalKind {
        name: "accept queue",
        curve: "accept_queue",
        of_all: SignalSum::Sum,
        least: 2.0,
        is_pumas: false,
        blind_to: "requests on connections that are open already",
    },
    SignalKind {
        name: "CPU",
        curve: "cpu",
        of_all: SignalSum::Growth,
        least: 0.5,
        is_pumas: false,
        blind_to: "threads that wait for a database or another service",
    },
    SignalKind {
        name: "wait for a CPU",
        curve: "run_queue_wait",
        of_all: SignalSum::Growth,
        least: 0.1,
        is_pumas: false,
        blind_to: "all waiting but that for a CPU",
    },
    SignalKind {
        name: "CPU pressure",
        curve: CPU_PRESSURE,
        of_all: SignalSum::Growth,
        least: 0.1,
        is_pumas: false,
        blind_to: "who waits: it is the whole machine's, longtail included",
    },
];

/// A part of the load at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalStep {
    /// When it began, since the start of the measured window.
    pub from: Nanos,
    /// Its rate / what the server can do.
    pub part: f64,
}

/// Requests that were due in one second of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueSecond {
    /// How many.
    pub requests: u64,
    /// Those that were later than the objective allows, or failed.
    pub late: u64,
}

/// What was seen of a load that went up and down.
#[derive(Clone, Copy, Debug)]
pub struct SignalsSeen<'a> {
    /// The server's numbers.
    pub watch: &'a Watch,
    /// The requests, second by second.
    pub seconds: &'a [DueSecond],
    /// The share of them that may be late.
    pub allowed: f64,
    /// The load. The first step is the while at half of what the server can do.
    pub steps: &'a [SignalStep],
    /// How often a scraper reads.
    pub interval: Nanos,
}

/// What one signal told.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalRow {
    /// Which.
    pub kind: SignalKind,
    /// The end of its idle range.
    pub idle_end: f64,
    /// At which part of what the server can do it left that range; `None` if it never did.
    pub left_at: Option<f64>,
    /// The threshold to use; the end of the idle range where there is nothing to go by.
    pub threshold: f64,
    /// When it was known to have crossed that on the way up; `None` if it never did.
    pub crossed: Option<Nanos>,
    /// At which part of what the server can do.
    pub crossed_at: Option<f64>,
    /// How long before the objective broke, in seconds; negative if after. `None` if one of the two
    /// never happened.
    pub lead: Option<f64>,
    /// Readings beyond the threshold at half load.
    pub false_alarms: u64,
    /// All readings that could have been false alarms.
    pub checked: u64,
    /// At most so many false alarms an hour, with 95 %.
    pub alarms_per_hour_at_most: Option<f64>,
}

/// What all signals told.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalsFound {
    /// When the objective broke; `None` if it held all the time.
    pub broke: Option<Nanos>,
    /// At which part of what the server can do.
    pub broke_at: Option<f64>,
    /// The signals, the earliest first; those that never crossed their threshold last.
    pub rows: Vec<SignalRow>,
    /// Signals that could not be read.
    pub missing: Vec<SignalKind>,
}

/// So improbable must the late requests be if the objective held.
const BY_CHANCE: f64 = 1e-3;
/// Seconds over which late requests are counted.
const WINDOW: usize = 5;
/// A value counts as crossed when so many readings in a row are beyond it.
const IN_A_ROW: usize = 2;

impl SignalsFound {
    /// What these readings told.
    pub fn of(seen: &SignalsSeen<'_>) -> SignalsFound {
        let up = seen.steps.get(1).map_or(Nanos::MAX, |step| step.from);
        let broke = broke_at(seen, up);
        let mut rows = Vec::new();
        let mut missing = Vec::new();
        for kind in SIGNALS {
            match row(seen, kind, up, broke) {
                Some(row) => rows.push(row),
                None => missing.push(kind),
            }
        }
        rows.sort_by_key(|row| (row.crossed.is_none(), row.crossed, row.false_alarms));
        SignalsFound { broke, broke_at: broke.map(|at| part_at(seen.steps, at)), rows, missing }
    }

    /// The signal to go by: the earliest that crossed its threshold before the objective broke,
    /// without a false alarm.
    pub fn best(&self) -> Option<&SignalRow> {
        let is_early =
            |row: &&SignalRow| row.false_alarms == 0 && row.lead.is_some_and(|lead| lead > 0.0);
        self.rows.iter().find(is_early)
    }

    /// The answer in a sentence or two.
    pub fn sentence(&self) -> String {
        let Some(broke) = self.broke else {
            return "The objective held all the time, so no signal can be held against it: give a stricter --objective or a longer --budget.".to_owned();
        };
        let part = percent(self.broke_at.unwrap_or_default());
        let Some(best) = self.best() else {
            return format!(
                "The objective broke at {part} of what the server can do, and no signal told it before without false alarms."
            );
        };
        let threshold = best.beyond();
        let lead = brief(Nanos::from_secs_f64(best.lead.unwrap_or_default()));
        let silent: Vec<String> = self
            .rows
            .iter()
            .filter(|row| row.left_at.is_none())
            .map(|row| row.kind.name.to_owned())
            .collect();
        let silent = if silent.is_empty() {
            String::new()
        } else {
            format!(" {} saw nothing of it.", capitalised(&listed(&silent)))
        };
        let at = percent(best.crossed_at.unwrap_or_default());
        format!(
            "Scale on {}: it went {threshold} at {at} of what the server can do, {lead} before the objective broke (at {part}, {} after the start).{silent}",
            best.kind.name,
            brief(broke)
        )
    }
}

impl SignalRow {
    /// `above 8`, `below 2`
    pub fn beyond(&self) -> String {
        let side = if self.kind.of_all == SignalSum::FallingSum { "below" } else { "above" };
        format!("{side} {}", few_digits(self.threshold))
    }

    /// False alarms at half load: `0 of 12, at most 90 an hour`.
    pub fn alarms_in_words(&self) -> String {
        let most = match self.alarms_per_hour_at_most {
            Some(most) => format!(", at most {} an hour", few_digits(most)),
            None => String::new(),
        };
        format!("{} of {}{most}", self.false_alarms, counted(self.checked, "reading"))
    }
}

fn percent(part: f64) -> String {
    format!("{} %", model::number::fixed(part * 100.0, 0))
}

/// The part of what the server can do that was offered then.
fn part_at(steps: &[SignalStep], at: Nanos) -> f64 {
    steps.iter().rfind(|step| step.from <= at).map_or(0.0, |step| step.part)
}

/// When the objective broke on the way up: the end of the first few seconds of which more requests
/// were late than chance allows.
fn broke_at(seen: &SignalsSeen<'_>, up: Nanos) -> Option<Nanos> {
    let is_broken = |window: &[DueSecond]| {
        let requests: u64 = window.iter().map(|second| second.requests).sum();
        let late: u64 = window.iter().map(|second| second.late).sum();
        let (first, weights) = binomial(seen.allowed, requests);
        let below = late.saturating_sub(first) as usize;
        late > 0 && weights.iter().skip(below).sum::<f64>() < BY_CHANCE
    };
    let first = (up.0 / 1_000_000_000) as usize;
    let window = |last: usize| &seen.seconds[(last + 1).saturating_sub(WINDOW).max(first)..=last];
    let last = (first..seen.seconds.len()).find(|last| is_broken(window(*last)))?;
    Some(Nanos::from_secs(last as u64 + 1))
}

/// What this signal told; `None` if it was not read.
fn row(
    seen: &SignalsSeen<'_>,
    kind: SignalKind,
    up: Nanos,
    broke: Option<Nanos>,
) -> Option<SignalRow> {
    let readings = readings(seen, kind);
    let is_falling = kind.of_all == SignalSum::FallingSum;
    let extreme = |values: &mut dyn Iterator<Item = f64>| {
        values.reduce(if is_falling { f64::min } else { f64::max })
    };
    let is_beyond = |value: f64, limit: f64| if is_falling { value < limit } else { value > limit };
    let between = |from: Nanos, until: Nanos| {
        let is_it = move |reading: &&SignalReading| from < reading.at && reading.at <= until;
        readings.iter().filter(is_it).map(|reading| reading.value)
    };
    let middle = up / 2;
    let idle_end = extreme(&mut between(Nanos::ZERO, middle))?;
    let at_break = broke.and_then(|broke| extreme(&mut between(up, broke + seen.interval)));
    let is_notable = |value: f64| is_beyond(value, idle_end) && (is_falling || value >= kind.least);
    let reached = at_break.filter(|value| is_notable(*value));
    let threshold = reached.map_or(idle_end, |value| f64::midpoint(idle_end, value));
    let checked: Vec<f64> = between(middle, up).collect();
    let false_alarms = checked.iter().filter(|value| is_beyond(**value, threshold)).count() as u64;
    let later: Vec<&SignalReading> = readings.iter().filter(|reading| reading.at > up).collect();
    let crossing = |limit: f64| {
        let mut runs = later.windows(IN_A_ROW);
        runs.find(|run| run.iter().all(|reading| is_beyond(reading.value, limit)))
    };
    let left = crossing(idle_end).map(|run| run[0].at);
    // It is known with the last of them.
    let alarm = reached.and_then(|_| crossing(threshold)).map(|run| run[IN_A_ROW - 1].at);
    let lead = alarm.zip(broke).map(|(alarm, broke)| broke.as_secs_f64() - alarm.as_secs_f64());
    let watched = seen.interval.as_secs_f64() * checked.len() as f64;
    let most = most_events(false_alarms) / watched * 3600.0;
    Some(SignalRow {
        kind,
        idle_end,
        left_at: left.map(|at| part_at(seen.steps, at)),
        threshold,
        crossed: alarm,
        crossed_at: alarm.map(|at| part_at(seen.steps, at)),
        lead,
        false_alarms,
        checked: checked.len() as u64,
        alarms_per_hour_at_most: (watched > 0.0).then_some(most),
    })
}

/// The upper end of the one-sided 95 % interval of a Poisson count (Garwood): the mean at which so
/// few events have a chance of 5 %.
fn most_events(count: u64) -> f64 {
    let chance_of_so_few = |mean: f64| {
        let mut term = (-mean).exp();
        let mut sum = term;
        for k in 1..=count {
            term *= mean / k as f64;
            sum += term;
        }
        sum
    };
    let (mut low, mut high) = (count as f64, 2.0 * count as f64 + 20.0);
    for _ in 0..60 {
        let mean = f64::midpoint(low, high);
        if chance_of_so_few(mean) > 0.05 { low = mean } else { high = mean }
    }
    high
}

/// What a scraper read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SignalReading {
    at: Nanos,
    value: f64,
}

/// A reading each interval, where there was one: of a gauge the latest value, of a counter its growth
/// a second since the reading before.
fn readings(seen: &SignalsSeen<'_>, kind: SignalKind) -> Vec<SignalReading> {
    let curves: Vec<(&WatchTrack, &WatchCurve)> = seen.watch.curves(kind.curve).collect();
    let end = curves.iter().filter_map(|(track, _)| track.at.last()).max().copied();
    let Some(end) = end else { return Vec::new() };
    let sum_at = |at: Nanos| {
        let values: Vec<u64> =
            curves.iter().filter_map(|(track, curve)| latest(track, curve, at)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64)
    };
    let mut readings = Vec::new();
    let mut at = seen.interval;
    let mut before = sum_at(Nanos::ZERO);
    while at <= end {
        let now = sum_at(at);
        let value = match kind.of_all {
            SignalSum::Sum | SignalSum::FallingSum => now,
            // Nanoseconds a second.
            SignalSum::Growth => now
                .zip(before)
                .map(|(now, before)| (now - before).max(0.0) / 1e9 / seen.interval.as_secs_f64()),
        };
        readings.extend(value.map(|value| SignalReading { at, value }));
        before = now;
        at += seen.interval;
    }
    readings
}

/// The last value of a curve until this instant.
fn latest(track: &WatchTrack, curve: &WatchCurve, at: Nanos) -> Option<u64> {
    let until = track.at.partition_point(|sample| *sample <= at);
    curve.values[..until.min(curve.values.len())].iter().rev().find_map(|value| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of ten threads and requests of 100 ms: 100/s at most. The load: 40 s at half of it,
    /// then a step of 10 % each 10 s up to 120 %, and down to half.
    fn steps() -> Vec<SignalStep> {
        let parts = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 0.5];
        let from = |number: usize| match number {
            0 => Nanos::ZERO,
            number => Nanos::from_secs(30 + 10 * number as u64),
        };
        parts.into_iter().enumerate().map(|(n, part)| SignalStep { from: from(n), part }).collect()
    }

    fn curve(name: &str, value: impl Fn(u64) -> u64) -> WatchTrack {
        let values = (0..130).map(|second| Some(value(second))).collect();
        let curve = WatchCurve { name: name.to_owned(), values, ..WatchCurve::default() };
        let at = (0..130).map(Nanos::from_secs).collect();
        WatchTrack { at, curves: vec![curve], ..WatchTrack::default() }
    }

    /// Late from 90 s on, when more is offered than the server can do.
    fn seconds() -> Vec<DueSecond> {
        let late = |second: u64| if (92..115).contains(&second) { 60 } else { 0 };
        (0..130).map(|second| DueSecond { requests: 100, late: late(second) }).collect()
    }

    fn found(tracks: Vec<WatchTrack>) -> SignalsFound {
        let watch = Watch { tracks, ..Watch::default() };
        let seconds = seconds();
        let steps = steps();
        SignalsFound::of(&SignalsSeen {
            watch: &watch,
            seconds: &seconds,
            allowed: 0.01,
            steps: &steps,
            interval: Nanos::from_secs(5),
        })
    }

    #[test]
    fn the_earliest_signal_without_false_alarms_is_the_one_to_go_by() {
        let offered =
            |second: u64| (part_at(&steps(), Nanos::from_secs(second)) * 10.0).round() as u64;
        let found = found(vec![
            curve("busy_threads", |second| offered(second).min(10)),
            curve("pool_capacity", |second| 10 - offered(second).min(10)),
            curve("backlog", |second| if (92..115).contains(&second) { 5 } else { 0 }),
            // It jumps about at half load, too.
            curve("accept_queue", |second| if second > 20 && second % 7 < 4 { 9 } else { 0 }),
        ]);
        assert_eq!(found.broke, Some(Nanos::from_secs(93)));
        assert_eq!(found.broke_at, Some(1.1));
        let best = found.best().unwrap();
        assert_eq!(best.kind.name, "busy threads");
        assert_eq!((best.idle_end, best.left_at), (5.0, Some(0.6)));
        assert_eq!((best.threshold, best.crossed), (7.5, Some(Nanos::from_secs(65))));
        assert_eq!((best.crossed_at, best.lead), (Some(0.8), Some(28.0)));
        let backlog = found.rows.iter().find(|row| row.kind.name == "backlog").unwrap();
        assert_eq!(backlog.lead, Some(-7.0), "it tells when it is too late");
        let noisy = found.rows.iter().find(|row| row.kind.name == "accept queue").unwrap();
        assert!(noisy.false_alarms > 0, "{noisy:?}");
        assert_eq!(found.missing.len(), 3, "neither CPU nor the wait for one was read");
        assert!(
            found.sentence().starts_with("Scale on busy threads: it went above 7.5"),
            "{}",
            found.sentence()
        );
    }

    /// Twice as much of nearly nothing.
    #[test]
    fn a_number_that_stays_small_is_nothing_to_go_by() {
        let cpu = |second: u64| second * if second < 60 { 10_000_000 } else { 20_000_000 };
        let found = found(vec![curve("cpu", cpu)]);
        assert_eq!((found.rows[0].crossed, found.best()), (None, None));
        assert!(found.rows[0].left_at.is_some());
    }

    /// The queue of a Puma before 7 is the kernel's.
    #[test]
    fn a_signal_that_sees_nothing_is_named() {
        let found = found(vec![
            curve("backlog", |_| 0),
            curve("accept_queue", |second| if (80..120).contains(&second) { 20 } else { 0 }),
        ]);
        assert_eq!(found.best().unwrap().kind.name, "accept queue");
        assert!(found.sentence().ends_with("Backlog saw nothing of it."), "{}", found.sentence());
    }

    #[test]
    fn no_false_alarm_in_a_short_while_is_no_proof() {
        assert!((most_events(0) - 2.996).abs() < 1e-3);
        assert!((most_events(1) - 4.744).abs() < 1e-3);
        let found = found(vec![curve("backlog", |_| 0)]);
        let most = found.rows[0].alarms_per_hour_at_most.unwrap();
        // Four readings in 20 s.
        assert!((most - 2.996 / 20.0 * 3600.0).abs() < 1.0, "{most}");
        assert_eq!(found.best(), None);
    }

    #[test]
    fn an_objective_that_held_tells_nothing() {
        let watch = Watch { tracks: vec![curve("backlog", |second| second)], ..Watch::default() };
        let seconds = vec![DueSecond { requests: 100, late: 1 }; 130];
        let steps = steps();
        let found = SignalsFound::of(&SignalsSeen {
            watch: &watch,
            seconds: &seconds,
            allowed: 0.01,
            steps: &steps,
            interval: Nanos::from_secs(5),
        });
        assert_eq!((found.broke, found.best()), (None, None));
        assert!(found.sentence().contains("held all the time"));
    }
}
