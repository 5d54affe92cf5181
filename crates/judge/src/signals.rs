//! Which of a server's numbers tells first that it is full: what an autoscaler or an alert may go
//! by.
//!
//! A load goes up through the server's saturation and down again, after a first step at half of its
//! capacity. Each number (a *signal*) is read as a scraper reads it. Its *idle range* is what it
//! showed in the first half of that step. Its *threshold* lies halfway between the end of that
//! range and what it had reached when the objective broke, which the client alone knows. In the
//! second half of the first step each reading beyond the threshold is a *false alarm*.

use model::statistics::binomial;
use model::{CapacityStudy, Nanos, Watch, WatchCurve, WatchTrack};
use serde::{Deserialize, Serialize};

use crate::capacity;
use crate::watch::WatchEvidence;
use crate::words::{brief, capitalised, counted, few_digits, listed};

/// A number that is read of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalKind {
    /// Its name, as Puma or the kernel calls it.
    pub name: &'static str,
    /// The curve of a [`Watch`] that it is read from.
    pub curve: &'static str,
    /// Its unit, with a space before it; empty for counts.
    pub unit: &'static str,
    /// How readings of several processes become one.
    of_all: SignalSum,
    /// What it must at least have reached when the objective broke. Less, such as a fiftieth of a
    /// CPU, is nothing to go by.
    least: f64,
    /// Where it comes from.
    pub source: SignalSource,
    /// Where an alert reads it.
    pub read_at: &'static str,
    /// What it cannot see.
    pub blind_to: &'static str,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalSource {
    /// Puma's control server.
    Puma,
    /// The kernel of the server's machine.
    Kernel,
    /// The app, which says in its responses when it began.
    App,
}

/// How the processes' numbers become one number of the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalSum {
    /// Added up; more is fuller.
    Sum,
    /// Added up; less is fuller.
    FallingSum,
    /// The highest since the last reading of each, added up.
    SumOfPeaks,
    /// The growth of counters per second, added up: CPUs, or threads that wait for one.
    Growth,
    /// The growth of a counter of nanoseconds, divided by that of [`APP_REQUESTS`], in
    /// milliseconds.
    MeanTime,
}

/// The curve of `/proc/pressure/cpu`: for how long some task waited for a CPU (PSI), in ns.
pub const CPU_PRESSURE: &str = "cpu_pressure";
/// The curve of how long the server's threads waited for a CPU, in ns.
const OWN_CPU_WAIT: &str = "run_queue_wait";
/// The curve of how long all requests so far had waited when the app began with them, in ns.
pub const APP_QUEUE_TIME: &str = "app_queue_time";
/// The curve of how many requests the app has begun.
pub const APP_REQUESTS: &str = "app_requests";

/// All signals, in the order of the table.
pub const SIGNALS: [SignalKind; 9] = [
    SignalKind {
        name: "busy threads",
        curve: "busy_threads",
        unit: "",
        of_all: SignalSum::Sum,
        least: 1.0,
        source: SignalSource::Puma,
        read_at: "/stats: max_threads - pool_capacity of each worker, added up",
        blind_to: "how many wait once all are busy",
    },
    SignalKind {
        name: "pool_capacity",
        curve: "pool_capacity",
        unit: "",
        of_all: SignalSum::FallingSum,
        least: 0.0,
        source: SignalSource::Puma,
        read_at: "/stats: pool_capacity of each worker, added up",
        blind_to: "how many wait once it is 0",
    },
    SignalKind {
        name: "backlog",
        curve: "backlog",
        unit: "",
        of_all: SignalSum::Sum,
        least: 2.0,
        source: SignalSource::Puma,
        read_at: "/stats: backlog of each worker, added up",
        blind_to: "what waits in the kernel's accept queue, which before Puma 7 is nearly all",
    },
    SignalKind {
        name: "backlog_max",
        curve: "backlog_max",
        unit: "",
        of_all: SignalSum::SumOfPeaks,
        least: 2.0,
        source: SignalSource::Puma,
        read_at: "/stats: backlog_max of each worker since it was read last, added up",
        blind_to: "what waits in the kernel's accept queue, and how long it was that high",
    },
    SignalKind {
        name: "queue time",
        curve: APP_QUEUE_TIME,
        unit: " ms",
        of_all: SignalSum::MeanTime,
        least: 5.0,
        source: SignalSource::App,
        read_at: "the APM: when the app began, less X-Request-Start, the mean",
        blind_to: "requests that have not reached the app yet",
    },
    SignalKind {
        name: "accept queue",
        curve: "accept_queue",
        unit: "",
        of_all: SignalSum::Sum,
        least: 2.0,
        source: SignalSource::Kernel,
        read_at: "ss -ltn: Recv-Q of the listening socket",
        blind_to: "requests on connections that are open already",
    },
    SignalKind {
        name: "CPU",
        curve: "cpu",
        unit: " CPUs",
        of_all: SignalSum::Growth,
        least: 0.5,
        source: SignalSource::Kernel,
        read_at: "/proc/PID/stat: utime + stime of each process, a second",
        blind_to: "threads that wait for a database or another service",
    },
    SignalKind {
        name: "wait for a CPU",
        curve: OWN_CPU_WAIT,
        unit: " threads",
        of_all: SignalSum::Growth,
        least: 0.5,
        source: SignalSource::Kernel,
        read_at: "/proc/PID/task/TID/schedstat: the second number of each thread, a second",
        blind_to: "any wait but that for a CPU",
    },
    SignalKind {
        name: "CPU pressure",
        curve: CPU_PRESSURE,
        unit: " of the time",
        of_all: SignalSum::Growth,
        least: 0.1,
        source: SignalSource::Kernel,
        read_at: "/proc/pressure/cpu: total of some, a second",
        blind_to: "who waits: it is the whole machine's, longtail included",
    },
];

/// The rate that the steps of the load are parts of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalsBase {
    /// Requests per second.
    pub rate: f64,
    /// How it is known.
    pub by: BaseKnownBy,
    /// The highest step, as a part of it: above all that the server was seen to do.
    pub highest_part: f64,
}

/// How the rate is known that the steps are parts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseKnownBy {
    /// The search for the capacity showed that the objective holds at it.
    Search,
    /// Its short trials make that likely.
    ShortTrials,
    /// The search had no time to tell: this is what a closed loop reached.
    ClosedLoop,
}

/// The load goes up to this part of the capacity at least.
const HIGHEST_PART: f64 = 1.2;
/// It also goes up to this part of a rate that was too much.
const BEYOND_TOO_MUCH: f64 = 1.1;

impl SignalsBase {
    /// The highest rate with the objective, as far as this search tells; `None` if nothing was
    /// answered.
    pub fn of(search: &CapacityStudy) -> Option<SignalsBase> {
        let closed_loop = search.closed_loop_rate().filter(|rate| *rate > 0.0);
        let candidates = [
            (search.bracket.low, BaseKnownBy::Search),
            (search.seems.low, BaseKnownBy::ShortTrials),
            (closed_loop.unwrap_or(0.0), BaseKnownBy::ClosedLoop),
        ];
        let (rate, by) = candidates.into_iter().find(|(rate, _)| *rate > 0.0)?;
        let too_much = closed_loop.into_iter().chain(search.bracket.high).fold(rate, f64::max);
        let highest_part = (too_much / rate * BEYOND_TOO_MUCH).max(HIGHEST_PART);
        Some(SignalsBase { rate, by, highest_part })
    }

    /// What 100 % is.
    pub fn in_words(&self) -> &'static str {
        match self.by {
            BaseKnownBy::Search | BaseKnownBy::ShortTrials => "the capacity",
            BaseKnownBy::ClosedLoop => "a closed loop's rate",
        }
    }

    /// What the search told, and which rate is 100 %.
    pub fn sentence(&self, search: &CapacityStudy) -> String {
        let known = match self.by {
            BaseKnownBy::Search => capacity::sentence(search),
            BaseKnownBy::ShortTrials => {
                let seems = capacity::provisional(search).unwrap_or_default();
                let objectives = capacity::conditions(search);
                format!("It seems to take {seems} with {objectives}: a longer --budget decides.")
            }
            BaseKnownBy::ClosedLoop => {
                "The search had no time to find the capacity: give a longer --budget.".to_owned()
            }
        };
        let whole = match self.by {
            BaseKnownBy::Search | BaseKnownBy::ShortTrials => "",
            BaseKnownBy::ClosedLoop => ", which a closed loop did",
        };
        format!("{known} 100 % is {}/s{whole}.", capacity::rate_down(self.rate))
    }
}

/// The server whose signals were read, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalsServer {
    /// `Puma 8.0.2`
    pub name: Option<String>,
    /// Worker processes; 1 in single mode.
    pub workers: Option<u32>,
    /// Threads of each.
    pub threads: Option<u32>,
}

impl SignalsServer {
    /// `Puma 8.0.2, 2 workers x 5 threads`
    pub fn in_words(&self) -> String {
        let name = self.name.clone().unwrap_or_else(|| "a server".to_owned());
        match self.workers.zip(self.threads) {
            Some((workers, threads)) => {
                format!("{name}, {} x {}", counted(workers, "worker"), counted(threads, "thread"))
            }
            None => name,
        }
    }

    /// Whether anything that is known of both differs.
    fn differs_from(&self, other: &SignalsServer) -> bool {
        fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_some_and(|(one, other)| one != other)
        }
        differ(self.name.as_ref(), other.name.as_ref())
            || differ(self.workers.as_ref(), other.workers.as_ref())
            || differ(self.threads.as_ref(), other.threads.as_ref())
    }
}

/// The thresholds that `longtail signals` found, as its JSON has them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SignalThresholds {
    /// `signals`; anything else is another kind of file.
    pub kind: String,
    /// When it began, as RFC 3339.
    pub started_at: String,
    /// The server on which they were found.
    pub server: SignalsServer,
    /// What must hold: `p99 < 200ms`.
    pub objective: String,
    /// How often the numbers were read, in seconds.
    pub interval_s: f64,
    /// One for each number that was read, the earliest first.
    pub signals: Vec<SignalThreshold>,
    /// Why they are not to be trusted; `None` if they are.
    pub doubt: Option<String>,
}

/// The threshold of one number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SignalThreshold {
    /// The number's name.
    pub name: String,
    /// The threshold; `None` where there was nothing to go by.
    pub threshold: Option<f64>,
    /// How long before the objective broke it was crossed; negative if after, `None` if never.
    pub seconds_before: Option<f64>,
    /// Readings beyond it at half load.
    pub false_alarms: u64,
}

impl SignalThresholds {
    /// What speaks against using them for the server that is watched; `None` if nothing does.
    pub fn doubt_for(&self, seen: &WatchEvidence) -> Option<String> {
        let watched = SignalsServer {
            name: seen.version.as_ref().map(|version| format!("Puma {version}")),
            workers: Some(seen.workers.len() as u32).filter(|workers| *workers > 0),
            threads: seen.workers.iter().filter_map(|worker| worker.threads).max(),
        };
        let differs = self.server.differs_from(&watched).then(|| {
            format!(
                "They are of another server ({}; this is {}): run longtail signals on one like this.",
                self.server.in_words(),
                watched.in_words()
            )
        });
        let doubt = self
            .doubt
            .as_ref()
            .map(|why| format!("They are not to be trusted: the generator was the limit ({why})."));
        differs.or(doubt)
    }
}

/// A part of the load at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalStep {
    /// When it began, since the start of the measured window.
    pub from: Nanos,
    /// Its rate / the capacity.
    pub part: f64,
}

/// How far the load was up at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfferedPart {
    /// The rate that was offered / the capacity.
    pub part: f64,
    /// Whether more had been offered before.
    pub going_down: bool,
}

impl OfferedPart {
    /// What was offered until this instant. Where a step begins just then, that is the step before:
    /// a reading, and the end of a second, tell what was.
    fn until(steps: &[SignalStep], at: Nanos) -> OfferedPart {
        let so_far = &steps[..steps.partition_point(|step| step.from < at)];
        let part = so_far.last().map_or(0.0, |step| step.part);
        OfferedPart { part, going_down: so_far.iter().any(|step| step.part > part) }
    }

    /// `90 %`, `90 % going down`
    pub fn in_words(&self) -> String {
        let percent = model::number::fixed(self.part * 100.0, 0);
        format!("{percent} %{}", if self.going_down { " going down" } else { "" })
    }

    /// `90 % of the capacity`, `90 % of the capacity, on the way down`
    fn in_a_sentence(&self, whole: &str) -> String {
        let percent = model::number::fixed(self.part * 100.0, 0);
        let way = if self.going_down { ", on the way down" } else { "" };
        format!("{percent} % of {whole}{way}")
    }
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
    /// The load. The first step is at half of the capacity.
    pub steps: &'a [SignalStep],
    /// What the steps are parts of, in words.
    pub parts_of: &'static str,
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
    /// At which part of the capacity it left that range; `None` if it never did.
    pub left_at: Option<OfferedPart>,
    /// The threshold to use; `None` where there is nothing to go by.
    pub threshold: Option<f64>,
    /// When it was known to have crossed that; `None` if it never did.
    pub crossed: Option<Nanos>,
    /// At which part of the capacity.
    pub crossed_at: Option<OfferedPart>,
    /// How long before the objective broke, in seconds; negative if after. `None` if one of the two
    /// never happened.
    pub lead: Option<f64>,
    /// Readings beyond the threshold at half load; none without a threshold.
    pub false_alarms: u64,
    /// All readings that could have been false alarms.
    pub checked: u64,
    /// The most false alarms per hour that these readings allow (95 %).
    pub alarms_per_hour_at_most: Option<f64>,
}

/// What all signals told.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalsFound {
    /// When the objective broke; `None` if it held all the time.
    pub broke: Option<Nanos>,
    /// At which part of the capacity.
    pub broke_at: Option<OfferedPart>,
    /// What these are parts of, in words.
    pub parts_of: &'static str,
    /// The signals, the earliest first; those that never crossed their threshold last.
    pub rows: Vec<SignalRow>,
    /// Signals that could not be read.
    pub missing: Vec<SignalKind>,
}

/// The objective is broken when the late requests would be less probable than this if it held.
const BY_CHANCE: f64 = 1e-3;
/// Seconds over which late requests are counted.
const WINDOW: usize = 5;
/// A value counts as crossed when this many readings in a row are beyond it.
const IN_A_ROW: usize = 2;

/// For this long, maxima from before the load may be shown: Puma keeps a maximum until it is read,
/// and then shows it until its workers' next reports.
const PEAKS_OF_BEFORE: Nanos = Nanos::from_secs(10);

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
        if !rows.iter().any(|row| row.kind.curve == OWN_CPU_WAIT && row.threshold.is_some()) {
            forget_pressure(&mut rows);
        }
        rows.sort_by_key(|row| (row.crossed.is_none(), row.crossed, row.false_alarms));
        let broke_at = broke.map(|at| OfferedPart::until(seen.steps, at));
        SignalsFound { broke, broke_at, parts_of: seen.parts_of, rows, missing }
    }

    /// The signal to go by: the earliest that crossed its threshold before the objective broke,
    /// without a false alarm.
    pub fn best(&self) -> Option<&SignalRow> {
        self.without_false_alarm().find(|row| row.lead.is_some_and(|lead| lead > 0.0))
    }

    /// The rows without a false alarm, the earliest first.
    fn without_false_alarm(&self) -> impl Iterator<Item = &SignalRow> {
        self.rows.iter().filter(|row| row.false_alarms == 0)
    }

    /// The answer in a sentence or two.
    pub fn sentence(&self) -> String {
        let Some((broke, broke_at)) = self.broke.zip(self.broke_at) else {
            return "The objective held all the time, so no signal can be compared with it: give a \
                    stricter --objective or a longer --budget."
                .to_owned();
        };
        let whole = self.parts_of;
        let silent = self.saw_nothing();
        let Some(best) = self.best() else {
            let first = self.first_after();
            return format!(
                "The objective broke at {}, and no signal told so in advance without false \
                 alarms.{first}{silent}",
                broke_at.in_a_sentence(whole)
            );
        };
        let threshold = best.beyond().unwrap_or_default();
        let lead = brief(Nanos::from_secs_f64(best.lead.unwrap_or_default()));
        let at = best.crossed_at.map(|at| at.in_a_sentence(whole)).unwrap_or_default();
        format!(
            "Scale on {}: it went {threshold} at {at}, {lead} before the objective broke (at {}, \
             {} after the start).{silent}",
            best.kind.name,
            broke_at.in_words(),
            brief(broke)
        )
    }

    /// The signal that told first when the objective had broken already, in a sentence.
    fn first_after(&self) -> String {
        let told = self.without_false_alarm().find_map(|row| Some((row, row.lead?)));
        let Some((row, lead)) = told else { return String::new() };
        let threshold = row.beyond().unwrap_or_default();
        let later = brief(Nanos::from_secs_f64(-lead));
        format!(" {} told first, {later} after it: {threshold}.", capitalised(row.kind.name))
    }

    /// The signals that never left their idle range, in a sentence.
    fn saw_nothing(&self) -> String {
        let silent = self.rows.iter().filter(|row| row.left_at.is_none());
        let silent: Vec<String> = silent.map(|row| row.kind.name.to_owned()).collect();
        if silent.is_empty() {
            return String::new();
        }
        format!(" {} saw nothing of it.", capitalised(&listed(&silent)))
    }
}

/// CPU pressure is the whole machine's. If the server's own threads did not wait for a CPU, other
/// programs moved it, and it is nothing to go by.
fn forget_pressure(rows: &mut [SignalRow]) {
    for row in rows.iter_mut().filter(|row| row.kind.curve == CPU_PRESSURE) {
        row.threshold = None;
        row.crossed = None;
        row.crossed_at = None;
        row.lead = None;
        row.false_alarms = 0;
        row.alarms_per_hour_at_most = None;
    }
}

impl SignalKind {
    /// The signal of this name.
    pub fn named(name: &str) -> Option<SignalKind> {
        SIGNALS.into_iter().find(|kind| kind.name == name)
    }

    /// Whether less of it is fuller.
    pub fn is_falling(&self) -> bool {
        self.of_all == SignalSum::FallingSum
    }

    /// Whether a reading is beyond this limit.
    pub fn is_beyond(&self, reading: f64, limit: f64) -> bool {
        if self.is_falling() { reading < limit } else { reading > limit }
    }

    /// `above 8`, `below 2`, `above 12 ms`
    pub fn beyond(&self, threshold: f64) -> String {
        let side = if self.is_falling() { "below" } else { "above" };
        format!("{side} {}{}", few_digits(threshold), self.unit)
    }
}

impl SignalRow {
    /// `above 8`, `below 2`, `above 12 ms`; `None` where there is nothing to go by.
    pub fn beyond(&self) -> Option<String> {
        self.threshold.map(|threshold| self.kind.beyond(threshold))
    }

    /// False alarms at half load: `0 of 12, at most 90 an hour`; `None` without a threshold.
    pub fn alarms_in_words(&self) -> Option<String> {
        self.threshold?;
        let most = match self.alarms_per_hour_at_most {
            Some(most) => format!(", at most {} an hour", few_digits(most)),
            None => String::new(),
        };
        Some(format!("{} of {}{most}", self.false_alarms, counted(self.checked, "reading")))
    }
}

/// When the objective broke: the end of the first few seconds of which more requests were late than
/// chance allows.
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
    let all = readings(seen, kind);
    let middle = up / 2;
    let idle_end = kind.fullest(between(&all, Nanos::ZERO, middle))?;
    let at_break = broke.and_then(|broke| kind.fullest(between(&all, up, broke + seen.interval)));
    let threshold = at_break
        .filter(|value| kind.is_notable(*value, idle_end))
        .map(|value| f64::midpoint(idle_end, value));
    let checked = between(&all, middle, up);
    let false_alarms = match threshold {
        Some(limit) => checked.iter().filter(|it| kind.is_beyond(it.value, limit)).count() as u64,
        None => 0,
    };
    let later = between(&all, up, Nanos::MAX);
    let left = first_run_beyond(later, kind, idle_end).map(|run| run.begins);
    let alarm = threshold.and_then(|limit| first_run_beyond(later, kind, limit));
    // The threshold counts as crossed from the last reading of the run on.
    let crossed = alarm.map(|run| run.ends);
    let lead = crossed.zip(broke).map(|(at, broke)| broke.as_secs_f64() - at.as_secs_f64());
    let watched = seen.interval.as_secs_f64() * checked.len() as f64;
    let most = most_events(false_alarms) / watched * 3600.0;
    Some(SignalRow {
        kind,
        idle_end,
        left_at: left.map(|at| OfferedPart::until(seen.steps, at)),
        threshold,
        crossed,
        crossed_at: crossed.map(|at| OfferedPart::until(seen.steps, at)),
        lead,
        false_alarms,
        checked: checked.len() as u64,
        alarms_per_hour_at_most: (watched > 0.0 && threshold.is_some()).then_some(most),
    })
}

impl SignalKind {
    /// The reading at which the server was fullest; `None` if there is none.
    fn fullest(&self, readings: &[SignalReading]) -> Option<f64> {
        let values = readings.iter().map(|reading| reading.value);
        values.reduce(if self.is_falling() { f64::min } else { f64::max })
    }

    /// Whether a reading beyond the idle range is enough to go by.
    fn is_notable(&self, reading: f64, idle_end: f64) -> bool {
        self.is_beyond(reading, idle_end) && (self.is_falling() || reading >= self.least)
    }
}

/// The readings after `from`, up to `until`.
fn between(readings: &[SignalReading], from: Nanos, until: Nanos) -> &[SignalReading] {
    let first = readings.partition_point(|reading| reading.at <= from);
    let end = readings.partition_point(|reading| reading.at <= until);
    &readings[first..end.max(first)]
}

/// When the first and the last of [`IN_A_ROW`] readings beyond a limit were made.
struct RunBeyond {
    begins: Nanos,
    ends: Nanos,
}

/// The first [`IN_A_ROW`] readings in a row that are all beyond the limit.
fn first_run_beyond(readings: &[SignalReading], kind: SignalKind, limit: f64) -> Option<RunBeyond> {
    let is_beyond = |reading: &SignalReading| kind.is_beyond(reading.value, limit);
    let run = readings.windows(IN_A_ROW).find(|run| run.iter().all(is_beyond))?;
    Some(RunBeyond { begins: run[0].at, ends: run[IN_A_ROW - 1].at })
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

/// One reading per interval, where there was one: the latest value of a gauge, or how much a
/// counter grew per second since the reading before.
fn readings(seen: &SignalsSeen<'_>, kind: SignalKind) -> Vec<SignalReading> {
    let curves = SignalCurves::of(seen.watch, kind.curve);
    let requests = SignalCurves::of(seen.watch, APP_REQUESTS);
    let Some(end) = curves.end() else { return Vec::new() };
    let mut readings = Vec::new();
    let mut from = Nanos::ZERO;
    while from + seen.interval <= end {
        let at = from + seen.interval;
        let value = match kind.of_all {
            SignalSum::Sum | SignalSum::FallingSum => curves.sum_at(at),
            SignalSum::SumOfPeaks => curves.sum_of_peaks(from, at),
            SignalSum::Growth => curves.rate(from, at).map(|ns| ns / 1e9),
            SignalSum::MeanTime => {
                let times = curves.growth(from, at).zip(requests.growth(from, at));
                times.filter(|(_, requests)| *requests > 0.0).map(|(ns, n)| ns / n / 1e6)
            }
        };
        readings.extend(value.map(|value| SignalReading { at, value }));
        from = at;
    }
    readings
}

/// The curves of one number, one for each process.
struct SignalCurves<'a>(Vec<(&'a WatchTrack, &'a WatchCurve)>);

impl<'a> SignalCurves<'a> {
    fn of(watch: &'a Watch, name: &'a str) -> SignalCurves<'a> {
        SignalCurves(watch.curves(name).collect())
    }

    /// When the last of them ends.
    fn end(&self) -> Option<Nanos> {
        self.0.iter().filter_map(|(track, _)| track.at.last()).max().copied()
    }

    /// The sum of their latest values.
    fn sum_at(&self, at: Nanos) -> Option<f64> {
        self.sum(|track, curve| latest(track, curve, at))
    }

    /// The sum of their highest values after `from`, up to `until`.
    fn sum_of_peaks(&self, from: Nanos, until: Nanos) -> Option<f64> {
        self.sum(|track, curve| {
            let samples = track.at.iter().zip(&curve.values);
            let is_then = |(at, _): &(&Nanos, &Option<u64>)| {
                from.max(PEAKS_OF_BEFORE) < **at && **at <= until
            };
            samples.filter(is_then).filter_map(|(_, value)| *value).max()
        })
    }

    /// How much they grew.
    fn growth(&self, from: Nanos, until: Nanos) -> Option<f64> {
        Some((self.sum_at(until)? - self.sum_at(from)?).max(0.0))
    }

    /// How much they grew per second, between the samples that were the latest at these two
    /// instants.
    fn rate(&self, from: Nanos, until: Nanos) -> Option<f64> {
        let rates = self.0.iter().filter_map(|(track, curve)| {
            let before = latest_sample(track, curve, from)?;
            let now = latest_sample(track, curve, until)?;
            let seconds = now.at.saturating_sub(before.at).as_secs_f64();
            (seconds > 0.0).then(|| now.value.saturating_sub(before.value) as f64 / seconds)
        });
        rates.reduce(|sum, rate| sum + rate)
    }

    fn sum(&self, value: impl Fn(&WatchTrack, &WatchCurve) -> Option<u64>) -> Option<f64> {
        let values = self.0.iter().filter_map(|(track, curve)| value(track, curve));
        let values: Vec<u64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64)
    }
}

/// A value of a curve.
struct CurveSample {
    at: Nanos,
    value: u64,
}

/// The last sample of a curve until this instant.
fn latest_sample(track: &WatchTrack, curve: &WatchCurve, at: Nanos) -> Option<CurveSample> {
    let until = track.at.partition_point(|sample| *sample <= at);
    let samples = track.at.iter().zip(&curve.values).take(until);
    samples.rev().find_map(|(at, value)| Some(CurveSample { at: *at, value: (*value)? }))
}

fn latest(track: &WatchTrack, curve: &WatchCurve, at: Nanos) -> Option<u64> {
    latest_sample(track, curve, at).map(|sample| sample.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::WatchedWorker;

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

    /// Late from 92 s to 115 s: from 90 s on more is offered than the server can do.
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
            parts_of: "the capacity",
            interval: Nanos::from_secs(5),
        })
    }

    #[test]
    fn the_earliest_signal_without_false_alarms_is_the_one_to_go_by() {
        let offered = |second: u64| {
            (OfferedPart::until(&steps(), Nanos(Nanos::from_secs(second).0 + 1)).part * 10.0)
                .round() as u64
        };
        let found = found(vec![
            curve("busy_threads", |second| offered(second).min(10)),
            curve("pool_capacity", |second| 10 - offered(second).min(10)),
            curve("backlog", |second| if (92..115).contains(&second) { 5 } else { 0 }),
            // It jumps about at half load, too.
            curve("accept_queue", |second| if second > 20 && second % 7 < 4 { 9 } else { 0 }),
        ]);
        assert_eq!(found.broke, Some(Nanos::from_secs(93)));
        assert_eq!(found.broke_at, Some(OfferedPart { part: 1.1, going_down: false }));
        let best = found.best().unwrap();
        assert_eq!(best.kind.name, "busy threads");
        let going_up = |part| Some(OfferedPart { part, going_down: false });
        assert_eq!((best.idle_end, best.left_at), (5.0, going_up(0.6)));
        assert_eq!((best.threshold, best.crossed), (Some(7.5), Some(Nanos::from_secs(65))));
        assert_eq!((best.crossed_at, best.lead), (going_up(0.8), Some(28.0)));
        let backlog = found.rows.iter().find(|row| row.kind.name == "backlog").unwrap();
        assert_eq!(backlog.lead, Some(-7.0), "it tells when it is too late");
        let noisy = found.rows.iter().find(|row| row.kind.name == "accept queue").unwrap();
        assert!(noisy.false_alarms > 0, "{noisy:?}");
        assert_eq!(found.missing.len(), 5, "neither CPU nor the wait for one was read");
        assert!(
            found
                .sentence()
                .starts_with("Scale on busy threads: it went above 7.5 at 80 % of the capacity, "),
            "{}",
            found.sentence()
        );
    }

    /// The step to half the capacity begins at 110 s.
    #[test]
    fn what_is_known_when_a_step_ends_is_of_that_step() {
        let at = |second| OfferedPart::until(&steps(), Nanos::from_secs(second)).in_words();
        assert_eq!([at(110), at(111), at(115)], ["120 %", "50 % going down", "50 % going down"]);
    }

    /// Twice as much of nearly nothing.
    #[test]
    fn a_number_that_stays_small_is_nothing_to_go_by() {
        let cpu = |second: u64| second * if second < 60 { 10_000_000 } else { 20_000_000 };
        let found = found(vec![curve("cpu", cpu)]);
        assert_eq!((found.rows[0].crossed, found.best()), (None, None));
        assert!(found.rows[0].left_at.is_some());
    }

    /// Another program took the CPUs while the server only slept.
    #[test]
    fn pressure_that_the_server_did_not_feel_is_not_the_signal() {
        let rises = |second: u64| second * if second < 60 { 10_000_000 } else { 500_000_000 };
        let pressure = || curve(CPU_PRESSURE, rises);
        let of_others = found(vec![pressure(), curve("run_queue_wait", |_| 0)]);
        let pressures = of_others.rows.iter().find(|row| row.kind.curve == CPU_PRESSURE).unwrap();
        assert!(pressures.left_at.is_some(), "{pressures:?}");
        assert_eq!((pressures.threshold, of_others.best()), (None, None));
        let own = found(vec![pressure(), curve("run_queue_wait", rises)]);
        assert!(own.rows.iter().all(|row| row.threshold.is_some()), "{own:?}");
    }

    #[test]
    fn a_mean_time_is_that_of_the_requests_since_the_last_reading() {
        // Ten requests a second wait for 2 ms each, and from 92 s on for 40 ms.
        let waited = |second: u64| second.min(92) * 20 + second.saturating_sub(92) * 400;
        let found = found(vec![
            curve(APP_QUEUE_TIME, |second| waited(second) * 1_000_000),
            curve(APP_REQUESTS, |second| second * 10),
        ]);
        let row = &found.rows[0];
        // From 90 s to 95 s: 20 requests of 2 ms and 30 of 40 ms.
        assert_eq!((row.kind.name, row.idle_end, row.threshold), ("queue time", 2.0, Some(13.4)));
        assert_eq!(row.beyond().unwrap(), "above 13 ms");
    }

    #[test]
    fn a_peak_counts_wherever_it_was_between_two_readings() {
        let peaks = |second: u64| match second {
            1 => 60,
            second if second % 5 == 3 => 9,
            _ => 0,
        };
        let found = found(vec![curve("backlog", peaks), curve("backlog_max", peaks)]);
        let idle_ends = found.rows.iter().map(|row| (row.kind.name, row.idle_end));
        assert_eq!(idle_ends.collect::<Vec<_>>(), [("backlog", 0.0), ("backlog_max", 9.0)]);
    }

    #[test]
    fn thresholds_of_another_server_are_doubted() {
        let server = SignalsServer {
            name: Some("Puma 8.0.2".to_owned()),
            workers: Some(2),
            threads: Some(5),
        };
        let thresholds = SignalThresholds {
            kind: "signals".to_owned(),
            started_at: String::new(),
            server,
            objective: "p99 < 200ms".to_owned(),
            interval_s: 5.0,
            signals: Vec::new(),
            doubt: None,
        };
        let worker = WatchedWorker { threads: Some(5), ..WatchedWorker::default() };
        let seen = |version: &str| WatchEvidence {
            version: Some(version.to_owned()),
            workers: vec![worker.clone(); 2],
            ..WatchEvidence::default()
        };
        assert_eq!(thresholds.doubt_for(&seen("8.0.2")), None);
        assert_eq!(thresholds.doubt_for(&WatchEvidence::default()), None, "nothing is known of it");
        let doubt = thresholds.doubt_for(&seen("6.6.1")).unwrap();
        assert!(doubt.contains("this is Puma 6.6.1, 2 workers x 5 threads"), "{doubt}");
    }

    #[test]
    fn where_nothing_told_in_advance_the_first_to_tell_afterwards_is_named() {
        let full = |second: u64| if (92..115).contains(&second) { 5 } else { 0 };
        let found = found(vec![curve("backlog", full), curve("accept_queue", |_| 0)]);
        assert_eq!(
            found.sentence(),
            "The objective broke at 110 % of the capacity, and no signal told so in advance \
             without false alarms. Backlog told first, 7.00 s after it: above 2.5. Accept queue \
             saw nothing of it."
        );
    }

    #[test]
    fn a_number_that_crosses_when_the_load_goes_down_again_says_so() {
        let found = found(vec![curve("backlog", |second| match second {
            92..97 => 5,
            // The last step, of half the capacity, begins at 110 s.
            114..130 => 9,
            _ => 0,
        })]);
        let row = &found.rows[0];
        assert_eq!((row.threshold, row.lead), (Some(2.5), Some(-27.0)));
        assert_eq!(row.crossed_at.unwrap().in_words(), "50 % going down");
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
        let rises = |second: u64| if (92..115).contains(&second) { 9 } else { 0 };
        let found = found(vec![curve("backlog", rises), curve("accept_queue", |_| 0)]);
        let most = found.rows[0].alarms_per_hour_at_most.unwrap();
        // Four readings in 20 s.
        assert!((most - 2.996 / 20.0 * 3600.0).abs() < 1.0, "{most}");
        let silent = &found.rows[1];
        assert_eq!((silent.threshold, silent.alarms_in_words()), (None, None));
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
            parts_of: "the capacity",
            interval: Nanos::from_secs(5),
        });
        assert_eq!((found.broke, found.best()), (None, None));
        assert!(found.sentence().contains("held all the time"));
    }
}
