//! `longtail capacity`: the highest rate at which objectives hold, searched for by trials, each a
//! run of an open loop at one rate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::text_in_json;
use crate::{
    Environment, LoadPlan, MaskedText, Nanos, Objective, Rate, RetryPolicy, Run, ServerFacts,
    ServerPlan, ServerSize, StreamPlan, Threads,
};

/// Why a trial was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialPurpose {
    /// A short one, to find out where to search; it can fail, but never pass.
    Scout,
    /// To narrow the bracket.
    Narrow,
    /// Once more at the highest rate that passed, with other arrivals.
    Confirm,
    /// The same, right after a load that is too high.
    FromAbove,
}

impl TrialPurpose {
    /// Whether it repeats a rate that passed.
    pub fn confirms(self) -> bool {
        matches!(self, TrialPurpose::Confirm | TrialPurpose::FromAbove)
    }
}

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialResult {
    /// All objectives hold.
    Passed,
    /// The objective with this number, counted from 0, is broken.
    Failed {
        /// Its number.
        objective: usize,
    },
    /// Neither is certain.
    Undecided,
    /// The generator failed its checks, or other programs used the CPUs up while requests were late,
    /// so the trial says nothing about the server.
    NotTrusted,
    /// The user, or the end of the server, stopped it.
    BrokenOff,
}

/// The rates between which the capacity lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityBracket {
    /// The highest rate that passed, in requests per second; 0 if none did.
    #[serde(rename = "lo_per_s")]
    pub low: f64,
    /// The lowest rate that failed; `None` if none did.
    #[serde(rename = "hi_per_s")]
    pub high: Option<f64>,
}

impl CapacityBracket {
    /// Whether all of its rates are above all of the other's.
    pub fn is_above(&self, other: CapacityBracket) -> bool {
        other.high.is_some_and(|high| self.low >= high)
    }

    /// Its width, as a share of its lower end; `None` if one end is unknown.
    pub fn width(&self) -> Option<f64> {
        let high = self.high.filter(|_| self.low > 0.0)?;
        Some(high / self.low - 1.0)
    }
}

/// Why a search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The bracket is as narrow as was asked for, and its lower end is confirmed.
    Precise,
    /// The budget is used up.
    Budget,
    /// No rate keeps the objectives: they are broken at the lowest rate that can be tried.
    NothingKeepsIt,
    /// Trials at the next rate could not be trusted, so the server's limit was not reached.
    Generator,
    /// The rates between are neither shown to keep the objectives nor to break them.
    Undecided,
    /// The highest rate that may be tried still keeps the objectives.
    HighestRate,
    /// The server ended in a trial.
    ServerEnded,
    /// The user stopped it.
    User,
}

/// The late requests of a trial, by one objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateRequests {
    /// Requests that became due.
    pub requests: u64,
    /// Those that were late or failed.
    pub late: u64,
    /// The share that the objective allows.
    pub allowed: f64,
    /// How many requests are worth one independent one.
    pub inflation: f64,
}

/// What `longtail capacity` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityPlan {
    /// The server.
    pub target: CapacityTarget,
    /// All of them must hold.
    pub objectives: Vec<Objective>,
    /// The width of the bracket that ends the search, as a share of its lower end.
    pub precision: f64,
    /// The search ends after this time.
    #[serde(rename = "budget_ns")]
    pub budget: Nanos,
    /// The seed of the arrivals.
    pub seed: u64,
    /// `--expect`: what the capacity must be.
    pub expected: Vec<CapacityExpectation>,
    /// `--beyond`: what to offer after the search, as multiples of the bracket's lower end.
    #[serde(default)]
    pub beyond: Vec<f64>,
    /// `--try`: the sizes of the server that are searched one after the other; none: as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<ServerSize>,
    /// `--retry`: how often clients send a failed request again, in these loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
}

impl CapacityPlan {
    /// The search for one of its sizes.
    #[must_use]
    pub fn of_size(&self, size: ServerSize) -> CapacityPlan {
        let mut plan = CapacityPlan { sizes: Vec::new(), ..self.clone() };
        if let CapacityTarget::Started { server, stream } = &mut plan.target {
            server.workers = Some(size.workers);
            server.threads = Some(Threads { min: size.threads, max: size.threads });
            stream.keep_alive = size.keep_alive;
        }
        plan
    }
}

/// The server whose capacity is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityTarget {
    /// One that runs already, and how requests are sent to it; each trial has a pace of its own.
    Running(Box<LoadPlan>),
    /// One that longtail starts.
    Started {
        /// The server and how to start it.
        server: Box<ServerPlan>,
        /// What is requested.
        stream: Box<StreamPlan>,
    },
}

/// `capacity > 180/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityExpectation {
    /// The capacity must be above this.
    pub above: Rate,
}

impl FromStr for CapacityExpectation {
    type Err = String;

    fn from_str(text: &str) -> Result<CapacityExpectation, String> {
        let wrong = || format!("'{text}' is no expectation here: write 'capacity > 180/s'");
        let (name, rate) = text.split_once('>').ok_or_else(wrong)?;
        let above = rate.trim().parse().map_err(|_| wrong())?;
        if name.trim() == "capacity" { Ok(CapacityExpectation { above }) } else { Err(wrong()) }
    }
}

impl fmt::Display for CapacityExpectation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "capacity > {}/s", self.above.per_second())
    }
}

text_in_json!(CapacityExpectation);

impl CapacityExpectation {
    /// Whether the capacity is above the limit; `None` if the bracket cannot tell.
    pub fn holds_for(&self, bracket: CapacityBracket) -> Option<bool> {
        let above = self.above.per_second();
        if bracket.low > above {
            Some(true)
        } else if bracket.high.is_some_and(|high| high <= above) {
            Some(false)
        } else {
            None
        }
    }
}

/// A trial of a search for a capacity: a run at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityTrial {
    /// Why it was made.
    pub purpose: TrialPurpose,
    /// Requests per second, with Poisson arrivals.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The seed of its arrivals.
    pub seed: u64,
    /// When it began, since the start of the search.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// What it showed.
    pub result: TrialResult,
    /// Its late requests, by objective.
    pub late: Vec<LateRequests>,
    /// What happened.
    pub run: Run,
}

/// What the budget will buy, as far as the first trials tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityForecast {
    /// The width of the bracket when the budget is used up, as a share of its lower end; `None` if
    /// the budget is too short for both ends.
    pub width: Option<f64>,
    /// The shortest budget that would give both ends; `None`: more than four hours.
    #[serde(rename = "both_ends_after_ns", default)]
    pub both_ends_after: Option<Nanos>,
    /// The budget that would make the bracket as narrow as was asked for; `None`: more than four
    /// hours.
    #[serde(rename = "precise_after_ns")]
    pub precise_after: Option<Nanos>,
}

/// The capacity of a queue with as many slots as the server, first come, first served, whose
/// service takes as long as the closed loop showed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityTheory {
    /// If each request takes the same time, in requests per second.
    #[serde(rename = "constant_per_s")]
    pub constant: f64,
    /// If service times are exponentially distributed.
    #[serde(rename = "exponential_per_s")]
    pub exponential: f64,
}

/// What happened beyond the capacity: an overload, and a low rate right after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeyondRun {
    /// The overload / the bracket's lower end.
    pub times: f64,
    /// The overload, in requests per second.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// How long it lasted.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Requests that became due in it.
    pub requests: u64,
    /// Those with a good response within the first objective's time.
    pub in_time: u64,
    /// Those that failed.
    pub failed: u64,
    /// p99 of the overload; `None` if more than 1 % failed.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// The rate after it.
    #[serde(rename = "rate_after_per_s")]
    pub rate_after: f64,
    /// How long the server was watched at that rate.
    #[serde(rename = "watched_ns")]
    pub watched: Nanos,
    /// How long after the overload the objectives held again; `None`: not while it was watched.
    #[serde(rename = "recovered_after_ns")]
    pub recovered_after: Option<Nanos>,
    /// Requests that were due and had not ended when the overload ended.
    #[serde(default)]
    pub backlog: u64,
    /// Failed requests that were sent again in the overload.
    #[serde(default)]
    pub retries: u64,
    /// What came in the last seconds of the run.
    #[serde(default)]
    pub at_end: Option<EndOfBeyond>,
    /// The run: the overload and the rate after it.
    pub run: Run,
}

/// What came in the last seconds of a low rate after an overload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndOfBeyond {
    /// How long these are.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Requests that became due in them.
    pub requests: u64,
    /// Those that were late or failed, by the first objective.
    pub late: u64,
    /// Failed requests that were sent again in them.
    pub retries: u64,
}

impl BeyondRun {
    /// Requests, including those that were sent again, that a server of this capacity cannot have
    /// served by the end of the overload.
    pub fn waiting(&self, capacity: f64) -> u64 {
        let done = (capacity * self.length.as_secs_f64()) as u64;
        self.backlog.max((self.requests + self.retries).saturating_sub(done))
    }

    /// Whether a server of this capacity did not recover, although it had 1.5 times as long as it
    /// takes to serve the requests that waited: something keeps it overloaded.
    pub fn is_metastable(&self, capacity: f64) -> bool {
        let spare = (capacity - self.rate_after).max(f64::MIN_POSITIVE);
        let needed = self.waiting(capacity) as f64 / spare;
        self.recovered_after.is_none() && self.watched.as_secs_f64() > 1.5 * needed
    }

    /// Good responses in time, per second of the overload.
    pub fn goodput(&self) -> f64 {
        self.in_time as f64 / self.length.as_secs_f64()
    }
}

/// The search for the capacity of a server of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeSearch {
    /// The size.
    pub size: ServerSize,
    /// What was found.
    pub search: CapacityStudy,
}

impl SizeSearch {
    /// CPU time of the server per request, over the trials at the highest rate that passed; `None`
    /// if none passed, or the CPU time could not be read.
    pub fn cpu_per_request(&self) -> Option<Nanos> {
        let used = self.search.at_low().filter_map(|trial| trial.run.generator.server.as_ref());
        let mut cpu = Nanos::ZERO;
        let mut requests = 0;
        for server in used {
            cpu += server.processes.iter().map(|process| process.cpu).sum::<Nanos>();
            requests += server.requests;
        }
        (requests > 0).then(|| cpu / requests)
    }
}

/// What `longtail capacity` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked for.
    pub plan: CapacityPlan,
    /// The machine.
    pub environment: Environment,
    /// The server, if longtail started it.
    pub server: Option<ServerFacts>,
    /// The closed loop before the first trial, whose throughput tells where to begin.
    pub closed_loop: Option<Box<Run>>,
    /// The trials, in order.
    pub trials: Vec<CapacityTrial>,
    /// Between which rates the capacity lies, with 95 %.
    pub bracket: CapacityBracket,
    /// Between which rates it seems to lie, without any certainty.
    pub seems: CapacityBracket,
    /// Full trials that confirmed the lower end, besides the one that passed.
    pub confirmations: u64,
    /// Whether no rate failed below one that passed.
    pub is_monotone: bool,
    /// Why the search ended; `None` while it goes on.
    pub end: Option<SearchEnd>,
    /// How the server ended, if it did.
    pub server_end: Option<String>,
    /// What theory says; `None` if it is not known how many requests the server takes at once.
    #[serde(default)]
    pub theory: Option<CapacityTheory>,
    /// What the budget was expected to buy, after the first minute.
    #[serde(default)]
    pub forecast: Option<CapacityForecast>,
    /// What happened beyond the capacity.
    #[serde(default)]
    pub beyond: Vec<BeyondRun>,
    /// With `--try`, the search for each size; then there are no trials beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeSearch>,
    /// How long it took.
    #[serde(rename = "total_time_ns")]
    pub total_time: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl CapacityStudy {
    /// All trials, those of each size one after the other.
    pub fn all_trials(&self) -> impl Iterator<Item = &CapacityTrial> {
        let of_sizes = self.sizes.iter().flat_map(|size| &size.search.trials);
        self.trials.iter().chain(of_sizes)
    }

    /// Requests per second that the closed loop reached.
    pub fn closed_loop_rate(&self) -> Option<f64> {
        let rate = self.closed_loop.as_ref()?.completed_rate();
        (rate > 0.0).then_some(rate)
    }

    /// The trials that are evidence of the bracket's lower end.
    pub fn at_low(&self) -> impl Iterator<Item = &CapacityTrial> {
        let low = self.bracket.low;
        self.trials.iter().filter(move |trial| low > 0.0 && trial.rate.total_cmp(&low).is_eq())
    }

    /// The trials that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CapacityTrial> {
        self.trials.iter().filter(|trial| matches!(trial.result, TrialResult::Failed { .. }))
    }

    /// The trial that failed at the lowest rate.
    pub fn lowest_failed(&self) -> Option<&CapacityTrial> {
        self.failed().min_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}
