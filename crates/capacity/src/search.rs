//! The search itself ([`RateSearch`]): which rate is tried next and for how long, from what the
//! trials so far have shown.
//!
//! It has three stages. *Scouting* trials are short: they find out roughly where the objective
//! breaks, and may fail a rate but never pass it. *Narrowing* trials are full ones just below and
//! just above the rate where the objective seems to break. *Confirming* trials repeat the highest
//! rate that passed, with other arrivals, the last one right after a load that is too high. A rate
//! that is not confirmed is not the answer, and the search goes on below it.

use model::{
    CapacityBracket, CapacityForecast, LateRequests, Nanos, SearchEnd, TrialPurpose, TrialResult,
};

use crate::binomial::{likely_at_least, likely_at_most};
use crate::evidence::LateShare;
use crate::late_counts::{BIN, LateCounts};
use crate::rate_objective::RateObjective;

/// What is searched for.
#[derive(Clone, Debug)]
pub struct SearchSettings {
    /// All of them must hold.
    pub objectives: Vec<RateObjective>,
    /// The width of the bracket that ends the search, as a share of its lower end.
    pub precision: f64,
    /// The search ends after this time.
    pub budget: Nanos,
    /// Requests per second that a closed loop reached, if one was run: it tells where to begin.
    pub closed_loop_rate: Option<f64>,
    /// No higher rate is tried.
    pub highest_rate: f64,
    /// Arrivals while it searches; those that confirm have other seeds.
    pub seed: u64,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchStep {
    /// Run this trial.
    Trial(TrialOrder),
    /// The search is over.
    End(SearchEnd),
}

/// A trial to be run: an open loop with Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialOrder {
    /// Its number, from 1.
    pub number: usize,
    /// Why it is made.
    pub purpose: TrialPurpose,
    /// Requests per second.
    pub rate: f64,
    /// The seed of its arrivals.
    pub seed: u64,
    /// Load before it, not measured.
    pub warm_up: Nanos,
    /// It can pass after this time.
    pub shortest: Nanos,
    /// It ends at the latest after this time.
    pub at_most: Nanos,
    /// Load at this rate right before it, so that it begins with a backlog.
    pub after_rate: Option<f64>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialEnding {
    /// Its time was over, or what it showed was certain.
    Complete,
    /// The generator failed its checks, or others used the CPUs up.
    NotTrusted,
    /// The server ended.
    ServerEnded,
    /// The user stopped it.
    Interrupted,
}

/// A finished trial.
#[derive(Clone, Debug, PartialEq)]
struct FinishedTrial {
    order: TrialOrder,
    result: TrialResult,
    /// By objective.
    shares: Vec<LateShare>,
    /// A rate that passed, and was not confirmed afterwards.
    is_withdrawn: bool,
}

/// Total probability that a full trial passes a rate that breaks an objective, before it is confirmed:
/// half of it for the first one, a quarter for the second, and so on.
const PASSED_IN_ERROR: f64 = 0.1;
/// The probability that a trial fails a rate that keeps all objectives. Two have to fail before the
/// rate counts as too high.
const FAILED_IN_ERROR: f64 = 0.1;
/// Trials that have to fail, at a rate or below it.
const FAILURES: usize = 2;
/// The probability of an error is divided among this many looks at a trial.
const PASSING_LOOKS: f64 = 2.0;
const FAILING_LOOKS: f64 = 4.0;
/// The first look, and the time between looks as a share of the time so far.
const FIRST_LOOK: Nanos = Nanos::from_millis(2_500);
const NEXT_LOOK: f64 = 0.4;
/// The shortest full trial.
const SHORTEST_FULL: Nanos = Nanos::from_secs(10);
/// The last trial of a search without a lower end can pass with this part of a full one's requests.
const SHORT_TRIAL: f64 = 0.3;
/// A full trial takes this many relaxation times of the queue.
const RELAXATIONS: f64 = 30.0;
/// A scouting trial has this many requests, but takes no less and no more than these times.
const SCOUT_REQUESTS: f64 = 2000.0;
const SHORTEST_SCOUT: Nanos = Nanos::from_secs(5);
const LONGEST_SCOUT: Nanos = Nanos::from_secs(10);
/// In a short search a scouting trial takes at most the budget divided by this.
const SCOUT_DIVISOR: u64 = 24;
/// Scouting ends when it has taken the budget divided by this.
const SCOUTING_DIVISOR: u64 = 6;
/// The fewest scouting trials.
const FEWEST_SCOUTS: u64 = 2;
/// The most scouting trials once a rate was found that seems to fail.
const SCOUTS: usize = 6;
/// Scouting begins at this share of the closed loop's rate.
const BEGIN_AT: f64 = 0.7;
/// The objective is expected to break below this share of the closed loop's rate.
const EXPECTED_BELOW: f64 = 1.08;
/// The factor between scouted rates while none breaks the objective, and while none keeps it.
const UP: f64 = 1.5;
const DOWN: f64 = 1.3;
/// This many times the closed loop's rate is an overload.
const OVERLOAD: f64 = 1.1;
/// An overload is tried at most this often.
const OVERLOADS: usize = 3;
/// Where scouting begins without a closed loop, in requests per second.
const FIRST_RATE: f64 = 10.0;
/// Below this share of the closed loop's rate no lower rate is tried.
const LOWEST_SHARE: f64 = 0.01;
/// Full trials that confirm a rate, besides the one that passed.
const CONFIRMATIONS: usize = 2;
/// A trial that narrows the bracket is planned for this share of the time that is left for it.
const SHARE_OF_TIME: f64 = 0.4;
/// It may take this many times as long as planned.
const SLACK: f64 = 1.4;
/// It is planned for this many times the late requests that are expected: where the
/// objective breaks is not known exactly, and a trial that stays undecided is lost.
const ROOM: f64 = 1.5;
/// The lowest rate that is considered for a trial below the edge, as a share of the edge.
const LOWEST_CANDIDATE: f64 = 0.3;
/// What the budget buys is said after the first minute, or after this part of a short budget.
const FORECAST_AFTER: Nanos = Nanos::from_secs(60);
const FORECAST_AFTER_PART: u64 = 3;
/// The forecast also tries longer budgets: each is this many times the one before it, up to the
/// longest.
const NEXT_BUDGET: f64 = 1.25;
const LONGEST_FORECAST: Nanos = Nanos::from_secs(4 * 3600);
/// The slope of the share of late requests, and its standard error, until trials tell more.
const USUAL_SLOPE: f64 = 16.0;
const SLOPE_ERROR: f64 = 8.0;
/// How many requests are worth one independent one, until trials tell more.
const USUAL_INFLATION: f64 = 10.0;
/// More independent requests than any trial has.
const MOST_WORTH: f64 = 1e7;
/// A full trial that confirms a rate fails with this probability if the rate is at the edge.
const NOT_CONFIRMED: f64 = 0.02;

impl SearchStep {
    /// The same step; a trial can pass once it has run this long.
    fn with_shortest(self, shortest: Nanos) -> SearchStep {
        match self {
            SearchStep::Trial(order) => SearchStep::Trial(TrialOrder { shortest, ..order }),
            end @ SearchStep::End(_) => end,
        }
    }
}

/// The search for the highest rate that keeps all objectives.
#[derive(Clone, Debug)]
pub struct RateSearch {
    settings: SearchSettings,
    trials: Vec<FinishedTrial>,
    /// The lowest rate at which the generator failed its checks.
    generator_limit: Option<f64>,
    ended: Option<SearchEnd>,
}

impl RateSearch {
    /// A search that has not begun.
    pub fn new(settings: SearchSettings) -> RateSearch {
        RateSearch { settings, trials: Vec::new(), generator_limit: None, ended: None }
    }

    /// What to do next, `elapsed` after the search began.
    pub fn next(&self, elapsed: Nanos) -> SearchStep {
        if let Some(end) = &self.ended {
            return SearchStep::End(end.clone());
        }
        let left = self.settings.budget.saturating_sub(elapsed);
        if let Some(again) = self.untrusted_once() {
            // The last one may have been allowed to be shorter than a full one.
            let step = self.order(again.purpose, again.rate, again.at_most, left);
            return step.with_shortest(again.shortest);
        }
        if let Some(rate) = self.scout_rate() {
            if rate < self.lowest_rate() {
                return SearchStep::End(SearchEnd::NothingKeepsIt);
            }
            return self.order(TrialPurpose::Scout, rate, self.scout_length(rate), left);
        }
        if let Some(rate) = self.overload_rate() {
            return self.order(TrialPurpose::Scout, rate, self.scout_length(rate), left);
        }
        let bracket = self.bracket();
        let is_narrow = bracket.width().is_some_and(|width| width <= self.target_width());
        let confirmed = self.confirmations();
        let missing = CONFIRMATIONS.saturating_sub(confirmed);
        if bracket.low > 0.0 && missing > 0 {
            let each = self.full_length(bracket.low) + self.warm_up(bracket.low);
            let is_time_to_confirm = left < each * missing as u64 + SHORTEST_FULL * 2;
            let next = self.narrow(left);
            if is_narrow || is_time_to_confirm || next.is_none() {
                let purpose =
                    if missing == 1 { TrialPurpose::FromAbove } else { TrialPurpose::Confirm };
                return self.order(purpose, bracket.low, self.full_length(bracket.low), left);
            }
        }
        if is_narrow {
            return SearchStep::End(SearchEnd::Precise);
        }
        match self.narrow(left) {
            Some(planned) => self.order(TrialPurpose::Narrow, planned.rate, planned.longest, left),
            None => match self.last_trial(left) {
                Some(order) => SearchStep::Trial(order),
                None => SearchStep::End(self.end_without_candidate()),
            },
        }
    }

    /// A trial with what is left of the budget, if that is too short for a full one and no rate has
    /// passed: at the highest rate that is expected to pass in it. It has fewer requests than a full
    /// one, but shows more than none.
    fn last_trial(&self, left: Nanos) -> Option<TrialOrder> {
        if self.bracket().low > 0.0 {
            return None;
        }
        let edge = self.edge()?;
        let spare = left.saturating_sub(self.warm_up(edge.rate) + self.longest_limit());
        let shortest = |rate: f64| self.length_for(rate, SHORT_TRIAL);
        let planned = self.below(&edge, spare.as_secs_f64(), shortest)?;
        let step = self.order(TrialPurpose::Narrow, planned.rate, left, left);
        match step.with_shortest(shortest(planned.rate)) {
            SearchStep::Trial(order) => Some(order),
            SearchStep::End(_) => None,
        }
    }

    /// The least time in which a rate can pass, scouting included, where the closed loop says about
    /// how high that is.
    pub fn shortest_budget(&self) -> Option<Nanos> {
        let rate = self.settings.closed_loop_rate.filter(|rate| *rate > 0.0)? * BEGIN_AT;
        let around = self.warm_up(rate) + self.longest_limit();
        let scouting = (self.scout_length(rate) + around) * FEWEST_SCOUTS;
        Some(scouting + self.length_for(rate, SHORT_TRIAL) + around)
    }

    /// The end where no further rate is worth a trial.
    fn end_without_candidate(&self) -> SearchEnd {
        let reached = self.bracket().low * (1.0 + self.settings.precision);
        if self.generator_limit.is_some_and(|limit| reached >= limit) {
            SearchEnd::Generator
        } else if self.bracket().low == 0.0 {
            // A full trial at any lower rate takes longer than what is left.
            SearchEnd::Budget
        } else if reached >= self.settings.highest_rate {
            SearchEnd::HighestRate
        } else {
            SearchEnd::Undecided
        }
    }

    /// The trial, if there is time for one that can tell something.
    fn order(&self, purpose: TrialPurpose, rate: f64, longest: Nanos, left: Nanos) -> SearchStep {
        let warm_up = self.warm_up(rate);
        let needed = match purpose {
            TrialPurpose::Scout | TrialPurpose::Narrow => SHORTEST_SCOUT,
            TrialPurpose::Confirm | TrialPurpose::FromAbove => self.full_length(rate),
        };
        let after_rate = match purpose {
            TrialPurpose::FromAbove => Some(self.rate_above(rate)),
            TrialPurpose::Scout | TrialPurpose::Narrow | TrialPurpose::Confirm => None,
        };
        let before = if after_rate.is_some() { warm_up * 2 } else { warm_up };
        // What is due last must have time to be late.
        let after = self.longest_limit();
        if left < before + needed + after {
            return SearchStep::End(SearchEnd::Budget);
        }
        let confirming = self.trials.iter().filter(|trial| trial.is_confirming()).count() as u64;
        let is_repeated = self.trials.iter().any(|trial| trial.order.rate.total_cmp(&rate).is_eq());
        let seed = match purpose {
            TrialPurpose::Scout | TrialPurpose::Narrow if is_repeated => {
                self.settings.seed.wrapping_add(1000 + self.trials.len() as u64)
            }
            TrialPurpose::Scout | TrialPurpose::Narrow => self.settings.seed,
            TrialPurpose::Confirm | TrialPurpose::FromAbove => {
                self.settings.seed.wrapping_add(1 + confirming)
            }
        };
        SearchStep::Trial(TrialOrder {
            number: self.trials.len() + 1,
            purpose,
            rate,
            seed,
            warm_up,
            shortest: self.full_length(rate),
            at_most: whole_bins(longest.min(left - before - after)),
            after_rate,
        })
    }

    /// A load that is too high, but not so high that its backlog takes long.
    fn rate_above(&self, rate: f64) -> f64 {
        let above = self.bracket().high.unwrap_or(rate * 1.1);
        above.clamp(rate * 1.05, rate * 1.2)
    }

    /// How a trial of this order is watched while it goes on.
    pub fn look(&self, order: &TrialOrder) -> TrialLook {
        TrialLook { order: *order, ..self.look_at(order.rate) }
    }

    /// The next narrowing trial at this rate.
    fn look_at(&self, rate: f64) -> TrialLook {
        let order = TrialOrder {
            number: self.trials.len() + 1,
            purpose: TrialPurpose::Narrow,
            rate,
            seed: self.settings.seed,
            warm_up: Nanos::ZERO,
            shortest: self.full_length(rate),
            at_most: Nanos::ZERO,
            after_rate: None,
        };
        let passing = self.trials.iter().filter(|trial| trial.can_pass()).count();
        TrialLook {
            order,
            chance_to_pass: PASSED_IN_ERROR / 2f64.powf(passing as f64 + 1.0) / PASSING_LOOKS,
            chance_to_fail: FAILED_IN_ERROR / FAILING_LOOKS / self.settings.objectives.len() as f64,
            next: FIRST_LOOK,
        }
    }

    /// Takes what a trial has counted. Its result is the one that `look` found, if it ended the
    /// trial.
    pub fn record(
        &mut self,
        order: TrialOrder,
        counts: &LateCounts,
        ending: TrialEnding,
    ) -> TrialResult {
        let shares = LateShare::all_of(counts);
        let result = match ending {
            TrialEnding::Complete => self.look(&order).judge(&shares, counts),
            TrialEnding::NotTrusted => {
                // Something else may have been busy for a moment.
                if self
                    .untrusted_once()
                    .is_some_and(|first| first.rate.total_cmp(&order.rate).is_eq())
                {
                    let known = self.generator_limit.unwrap_or(f64::INFINITY);
                    self.generator_limit = Some(known.min(order.rate));
                }
                TrialResult::NotTrusted
            }
            TrialEnding::ServerEnded => {
                self.ended = Some(SearchEnd::ServerEnded);
                TrialResult::BrokenOff
            }
            TrialEnding::Interrupted => {
                self.ended = Some(SearchEnd::User);
                TrialResult::BrokenOff
            }
        };
        self.trials.push(FinishedTrial { order, result, shares, is_withdrawn: false });
        if order.purpose.confirms() {
            self.withdraw_unless_confirmed(order.rate);
        }
        result
    }

    /// The last trial, if its generator failed a check and the rate gets a second chance.
    fn untrusted_once(&self) -> Option<TrialOrder> {
        let last = self.trials.last().filter(|last| last.result == TrialResult::NotTrusted)?;
        let is_capped = self.generator_limit.is_some_and(|limit| last.order.rate >= limit);
        (!is_capped).then_some(last.order)
    }

    /// Withdraws a rate whose confirming trials speak against it: one of them failed, or together
    /// they have more late requests than an objective allows.
    fn withdraw_unless_confirmed(&mut self, rate: f64) {
        let confirming: Vec<&FinishedTrial> = self.confirming(rate).collect();
        let has_failed = confirming.iter().any(|trial| trial.failed());
        let is_beyond_generator = self.generator_limit.is_some_and(|limit| rate >= limit);
        let objectives = 0..self.settings.objectives.len();
        let is_above = objectives.into_iter().any(|number| {
            let trusted = confirming.iter().filter(|trial| trial.is_valid());
            let shares = trusted.filter_map(|trial| trial.shares.get(number));
            let late: u64 = shares.clone().map(|share| share.late).sum();
            let allowed: f64 = shares.map(|share| share.requests as f64 * share.allowed).sum();
            late as f64 > allowed
        });
        if has_failed || is_beyond_generator || is_above {
            for trial in &mut self.trials {
                trial.is_withdrawn |= trial.order.rate.total_cmp(&rate).is_eq();
            }
        }
    }

    fn confirming(&self, rate: f64) -> impl Iterator<Item = &FinishedTrial> {
        self.trials
            .iter()
            .filter(move |trial| trial.is_confirming() && trial.order.rate.total_cmp(&rate).is_eq())
    }

    /// Full trials that confirmed the lower end of the bracket.
    pub fn confirmations(&self) -> usize {
        let low = self.bracket().low;
        self.confirming(low).filter(|trial| trial.is_valid()).count()
    }

    /// The bracket with its errors controlled: the highest rate that passed, below the lowest one at
    /// or below which two trials failed.
    pub fn bracket(&self) -> CapacityBracket {
        let high = self.failed_rates().get(FAILURES - 1).copied();
        let passed = self
            .trials
            .iter()
            .filter(|trial| trial.passed() && high.is_none_or(|high| trial.order.rate < high));
        let low = passed.map(|trial| trial.order.rate).max_by(f64::total_cmp);
        CapacityBracket { low: low.unwrap_or(0.0), high }
    }

    /// The rates that failed, rising; one that failed twice is in it twice.
    fn failed_rates(&self) -> Vec<f64> {
        let failed = self.trials.iter().filter(|trial| trial.failed());
        let mut rates: Vec<f64> = failed.map(|trial| trial.order.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    /// Between which rates it seems to lie, by what is more likely of each trial; without any
    /// certainty. Nothing is known of rates that are too high for the generator.
    pub fn provisional(&self) -> CapacityBracket {
        let known = || self.trials.iter().filter(|trial| trial.is_valid());
        let high = known()
            .filter(|trial| trial.failed() || trial.late_ratio() > 1.0)
            .map(|trial| trial.order.rate)
            .min_by(f64::total_cmp);
        let low = known()
            .filter(|trial| !trial.failed() && trial.late_ratio() <= 1.0)
            .map(|trial| trial.order.rate)
            .filter(|rate| high.is_none_or(|high| *rate < high))
            .filter(|rate| self.generator_limit.is_none_or(|limit| *rate < limit))
            .max_by(f64::total_cmp);
        CapacityBracket { low: low.unwrap_or(0.0), high }
    }

    /// Whether no rate failed below one that passed.
    pub fn is_monotone(&self) -> bool {
        let lowest_failed = self.trials.iter().filter(|trial| trial.failed());
        let lowest = lowest_failed.map(|trial| trial.order.rate).min_by(f64::total_cmp);
        self.trials
            .iter()
            .filter(|trial| trial.result == TrialResult::Passed)
            .all(|trial| lowest.is_none_or(|lowest| trial.order.rate < lowest))
    }

    /// The late requests of the last trial, by objective.
    pub fn last_counts(&self) -> Vec<LateRequests> {
        let counts = |share: &LateShare| LateRequests {
            requests: share.requests,
            late: share.late,
            allowed: share.allowed,
            inflation: share.inflation,
        };
        self.trials.last().map_or_else(Vec::new, |trial| trial.shares.iter().map(counts).collect())
    }

    /// The next rate to scout; `None` if it is roughly known where the objective breaks.
    fn scout_rate(&self) -> Option<f64> {
        let scouts = self.trials.iter().filter(|trial| trial.order.purpose == TrialPurpose::Scout);
        if self.trials.iter().any(|trial| trial.order.purpose != TrialPurpose::Scout) {
            return None;
        }
        let begin = self.settings.closed_loop_rate.map_or(FIRST_RATE, |rate| rate * BEGIN_AT);
        let seen = self.provisional();
        let highest = self.highest_allowed();
        let expected = self.settings.closed_loop_rate.map(|rate| rate * EXPECTED_BELOW);
        let Some(high) = seen.high.or(self.generator_limit) else {
            let next = match expected {
                _ if seen.low == 0.0 => begin,
                // Near the closed loop's rate the next trial settles it.
                Some(expected) if seen.low < 0.9 * expected => (seen.low * expected).sqrt(),
                Some(expected) if seen.low < expected => expected,
                Some(_) | None => seen.low * UP,
            };
            let next = next.min(highest);
            return (seen.low < next * 0.999).then_some(next);
        };
        if seen.low == 0.0 {
            return Some(high / DOWN.powf(scouts.count() as f64));
        }
        let is_close = high / seen.low <= 1.0 + (2.0 * self.settings.precision).max(0.1);
        let next = (high * seen.low).sqrt();
        let made = scouts.count();
        let taken = self.scout_length(next) * made as u64;
        let is_long = taken > self.settings.budget / SCOUTING_DIVISOR;
        if is_close || is_long || made >= SCOUTS {
            return None;
        }
        Some(next)
    }

    /// A rate that is certainly too high, as long as the bracket has no upper end: above what the
    /// closed loop reached, where a few seconds of growing backlog decide it.
    fn overload_rate(&self) -> Option<f64> {
        let closed_loop = self.settings.closed_loop_rate?;
        let has_narrowed = self.trials.iter().any(|it| it.order.purpose != TrialPurpose::Scout);
        if has_narrowed || self.bracket().high.is_some() {
            return None;
        }
        let rate = closed_loop * OVERLOAD;
        let tried = self.trials.iter().filter(|trial| trial.order.rate >= rate * 0.999).count();
        let is_allowed = rate <= self.highest_allowed();
        (tried < OVERLOADS && is_allowed).then_some(rate)
    }

    fn highest_allowed(&self) -> f64 {
        let limit = self.generator_limit.map_or(f64::INFINITY, |limit| limit * 0.999);
        self.settings.highest_rate.min(limit)
    }

    fn lowest_rate(&self) -> f64 {
        self.settings.closed_loop_rate.map_or(0.1, |rate| rate * LOWEST_SHARE)
    }

    /// Rates are chosen so that the bracket becomes a little narrower than was asked for.
    fn target_width(&self) -> f64 {
        self.settings.precision * 1.0001
    }

    /// The next trial to narrow the bracket: below where the objective seems to break until one
    /// passed there, then above; as near to it as can be decided in the time that is left.
    fn narrow(&self, left: Nanos) -> Option<PlannedTrial> {
        let edge = self.edge()?;
        let bracket = self.bracket();
        let quarter = 1.0 + self.settings.precision / 4.0;
        let confirming = self.full_length(edge.rate) + self.warm_up(edge.rate);
        let spare = |trials: usize| left.saturating_sub(confirming * trials as u64);
        let missing = CONFIRMATIONS.saturating_sub(self.confirmations());
        let above_in = |time: Nanos| {
            let above = self.above(&edge, time)?;
            let is_inside = bracket.high.is_none_or(|high| above.rate < high / quarter);
            (is_inside && above.rate <= self.highest_allowed()).then_some(above)
        };
        // Both ends come before a narrower bracket.
        if bracket.low > 0.0
            && bracket.high.is_none()
            && let Some(above) = above_in(spare(missing))
        {
            return Some(above);
        }
        let full = |rate: f64| self.full_length(rate);
        let below = self.below(&edge, spare(CONFIRMATIONS).as_secs_f64() * SHARE_OF_TIME, full);
        if let Some(below) = below.filter(|below| below.rate > bracket.low * quarter) {
            return Some(below);
        }
        if bracket.low == 0.0 {
            // Without any rate that passed there is nothing to confirm.
            let below = self.below(&edge, left.as_secs_f64() / SLACK, full);
            return below.or_else(|| above_in(left));
        }
        above_in(spare(missing))
    }

    /// The highest rate that is expected to pass in `time` seconds, below all that did not. A trial
    /// at a rate takes at least `shortest`.
    fn below(
        &self,
        edge: &Edge,
        time: f64,
        shortest: impl Fn(f64) -> Nanos,
    ) -> Option<PlannedTrial> {
        let half = 1.0 + self.settings.precision / 2.0;
        let look = self.look_at(edge.rate);
        let mut rate = (edge.rate / half).min(self.highest_allowed());
        let others = self.trials.iter().filter(|trial| trial.can_pass() && !trial.passed());
        for other in others {
            rate = rate.min(other.order.rate / (1.0 + self.settings.precision / 4.0));
        }
        while rate > edge.rate * LOWEST_CANDIDATE && rate >= self.lowest_rate() {
            let shortest = shortest(rate).as_secs_f64();
            let needed = edge.time_to_pass(rate, look.chance_to_pass).max(shortest);
            if needed <= time {
                return Some(PlannedTrial { rate, longest: Nanos::from_secs_f64(needed * SLACK) });
            }
            rate /= 1.0 + self.settings.precision / 4.0;
        }
        None
    }

    /// The lowest rate above the edge that is expected to fail twice in this time, above all that
    /// did not fail; or the lowest that has failed once, if it is near.
    fn above(&self, edge: &Edge, left: Nanos) -> Option<PlannedTrial> {
        let half = 1.0 + self.settings.precision / 2.0;
        let quarter = 1.0 + self.settings.precision / 4.0;
        let low = self.bracket().low;
        let mut rate = (low * (1.0 + self.settings.precision)).max(edge.rate * half);
        let others = self.trials.iter().filter(|trial| trial.can_pass() && !trial.failed());
        for other in others.filter(|trial| trial.order.rate > low) {
            rate = rate.max(other.order.rate * half);
        }
        let failed = self.failed_rates();
        let chance = self.look_at(rate).chance_to_fail;
        let time = left.as_secs_f64();
        let needed = |rate: f64| {
            let known = failed.iter().filter(|failed| **failed <= rate).count();
            let missing = FAILURES.saturating_sub(known).max(1);
            let by_chance = edge.time_to_fail(rate, chance);
            by_chance.min(self.time_to_overload(rate)) * missing as f64
        };
        let overload = self.settings.closed_loop_rate.map(|closed| closed * EXPECTED_BELOW);
        let below_known = self.bracket().high.map(|high| high / half);
        let highest = below_known.or(overload).unwrap_or(edge.rate * 2.0).max(rate);
        // If it does not fail, there must be time for a higher one.
        while rate < highest && needed(rate) > time / 2.0 {
            rate = (rate * quarter).min(highest);
        }
        let failed_near = failed.iter().find(|failed| (rate..rate * half).contains(*failed));
        let rate = failed_near.copied().unwrap_or(rate);
        let longest = Nanos::from_secs_f64(needed(rate) * SLACK);
        let longest = longest.min(left.saturating_sub(SHORTEST_FULL)).max(SHORTEST_FULL).min(left);
        (longest >= SHORTEST_SCOUT).then_some(PlannedTrial { rate, longest })
    }

    /// Seconds until all requests are late, above the rate that the closed loop reached.
    fn time_to_overload(&self, rate: f64) -> f64 {
        let Some(reached) = self.settings.closed_loop_rate else { return f64::INFINITY };
        let growth = rate / reached - 1.0;
        if growth <= 0.0 {
            return f64::INFINITY;
        }
        FIRST_LOOK.as_secs_f64() * 2.0 + 2.0 * self.longest_limit().as_secs_f64() / growth
    }

    /// What the trials say about where the objective breaks.
    fn edge(&self) -> Option<Edge> {
        let rate = self.break_rate()?;
        let near = self.trials.iter().filter(|trial| {
            trial.is_valid() && (0.8..1.02).contains(&(trial.order.rate / rate)) && !trial.failed()
        });
        let mut inflations = 0.0;
        let mut requests = 0.0;
        let mut worth = 0.0;
        for trial in near {
            let worst =
                trial.shares.iter().max_by(|a, b| a.late_ratio().total_cmp(&b.late_ratio()));
            let Some(share) = worst else { continue };
            inflations += share.inflation * share.requests as f64;
            requests += share.requests as f64;
            worth += (share.late as f64 + 0.5) / share.inflation;
        }
        let slope = self.line(rate).slope;
        let inflation = if requests > 0.0 { inflations / requests } else { USUAL_INFLATION };
        let allowed = self.settings.objectives.iter().map(|objective| objective.allowed);
        Some(Edge {
            rate,
            slope,
            error: 1.0 / worth.max(1.0).sqrt() / slope,
            inflation: inflation.max(1.0),
            allowed: allowed.fold(1.0, f64::min),
        })
    }

    /// When the search begins to say what the budget will buy.
    pub fn forecast_after(&self) -> Nanos {
        FORECAST_AFTER.min(self.settings.budget / FORECAST_AFTER_PART)
    }

    /// What the budget will buy, `elapsed` after the search began; `None` as long as it is not known
    /// where the objective breaks.
    pub fn forecast(&self, elapsed: Nanos) -> Option<CapacityForecast> {
        if self.scout_rate().is_some() || self.overload_rate().is_some() {
            return None;
        }
        let times = self.times_around(&self.edge()?);
        let width_in = |budget: Nanos| times.expected_width(budget.saturating_sub(elapsed));
        let longer =
            |budget: &Nanos| Some(Nanos::from_secs_f64(budget.as_secs_f64() * NEXT_BUDGET));
        let budgets = || {
            std::iter::successors(Some(self.settings.budget), longer)
                .take_while(|budget| *budget <= LONGEST_FORECAST)
        };
        let is_precise = |width: f64| width <= self.settings.precision;
        Some(CapacityForecast {
            width: width_in(self.settings.budget),
            // In the shortest one the only trials there is time for may stay undecided.
            both_ends_after: budgets()
                .find(|it| width_in(*it).is_some())
                .and_then(|it| longer(&it)),
            precise_after: budgets().find(|budget| width_in(*budget).is_some_and(is_precise)),
        })
    }

    /// How long trials at the rates around the edge are expected to take.
    fn times_around(&self, edge: &Edge) -> TimesAround {
        let looks = self.look_at(edge.rate);
        let half = 1.0 + self.settings.precision / 2.0;
        let quarter = 1.0 + self.settings.precision / 4.0;
        let full = self.full_length(edge.rate).as_secs_f64();
        let below = std::iter::successors(Some(edge.rate / half), |rate| Some(rate / quarter))
            .take_while(|rate| *rate > edge.rate * LOWEST_CANDIDATE)
            .map(|rate| {
                let seconds = edge.time_to_pass(rate, looks.chance_to_pass).max(full);
                TimeAt { rate, seconds }
            });
        let overload = self.settings.closed_loop_rate.map(|rate| rate * OVERLOAD);
        let known = self.bracket().high.or(overload).unwrap_or(edge.rate * 2.0);
        let highest = known.max(edge.rate * half);
        let above = std::iter::successors(Some(edge.rate * half), |rate| Some(rate * quarter))
            .take_while(|rate| *rate < highest)
            .map(|rate| {
                let seconds = edge.time_to_fail(rate, looks.chance_to_fail) * FAILURES as f64;
                TimeAt { rate, seconds }
            });
        TimesAround {
            below: below.collect(),
            above: above.collect(),
            highest,
            confirming: self.full_length(edge.rate) + self.warm_up(edge.rate),
            error: edge.error,
        }
    }

    /// The rate at which the objective seems to break, from all trials.
    fn break_rate(&self) -> Option<f64> {
        let mut rate = self.between()?;
        let rates = || self.trials.iter().filter(|trial| trial.is_valid()).map(|it| it.order.rate);
        let lowest = rates().min_by(f64::total_cmp)?;
        let highest = rates().max_by(f64::total_cmp)?;
        // The line holds near the edge, so it is drawn again there.
        for _ in 0..3 {
            let line = self.line(rate);
            rate = (rate * (1.0 - line.excess / line.slope)).clamp(lowest, highest);
        }
        Some(rate)
    }

    /// A rate between those that seem to keep the objectives and those that do not.
    fn between(&self) -> Option<f64> {
        let seen = self.provisional();
        match (seen.low, seen.high.or(self.generator_limit)) {
            (low, Some(high)) if low > 0.0 => Some((low * high).sqrt()),
            (low, None) if low > 0.0 => Some(low),
            (_, Some(high)) => Some(high / DOWN),
            (_, None) => None,
        }
    }

    /// Near the edge the logarithm of the share of late requests is nearly a line over the rate: by
    /// least squares through the trials around this rate, with the usual slope as long as they tell
    /// none.
    fn line(&self, around: f64) -> EdgeLine {
        let mut weights = 0.0;
        let mut rates = 0.0;
        let mut excesses = 0.0;
        let points: Vec<[f64; 3]> = self
            .trials
            .iter()
            .filter(|trial| trial.is_valid())
            .map(|trial| [trial.worth(), trial.order.rate / around - 1.0, trial.late_ratio().ln()])
            .filter(|[_, rate, excess]| rate.abs() < 0.25 && (-3.0..2.5).contains(excess))
            .collect();
        for [weight, rate, excess] in &points {
            weights += weight;
            rates += weight * rate;
            excesses += weight * excess;
        }
        if weights == 0.0 {
            return EdgeLine { slope: USUAL_SLOPE, excess: 0.0 };
        }
        let rate = rates / weights;
        let excess = excesses / weights;
        let mut squares = 1.0 / SLOPE_ERROR.powi(2);
        let mut products = USUAL_SLOPE * squares;
        for [weight, at, is] in &points {
            squares += weight * (at - rate).powi(2);
            products += weight * (at - rate) * (is - excess);
        }
        let slope = (products / squares).clamp(USUAL_SLOPE / 3.0, USUAL_SLOPE * 3.0);
        EdgeLine { slope, excess: excess - slope * rate }
    }

    /// The length of a full trial at this rate.
    pub fn full_length(&self, rate: f64) -> Nanos {
        self.length_for(rate, 1.0)
    }

    /// The shortest time in which a trial at this rate has this part of a full one's requests.
    fn length_for(&self, rate: f64, part: f64) -> Nanos {
        let requests = self
            .settings
            .objectives
            .iter()
            .map(RateObjective::full_trial_requests)
            .fold(0.0, f64::max);
        let by_count = Nanos::from_secs_f64(part * requests / rate);
        // A loose limit on many threads would take too long.
        let settled = Nanos::from_secs_f64(RELAXATIONS * self.relaxation(rate));
        SHORTEST_FULL.max(by_count).max(settled.min(self.settings.budget / 8))
    }

    /// How long the queue remembers, in seconds, where the objective breaks: about rate x limit² /
    /// 16, from s·(1 + cs²) / (2c·(1 - ρ)²) at the utilisation where 1 % wait as long as the limit.
    fn relaxation(&self, rate: f64) -> f64 {
        rate * self.longest_limit().as_secs_f64().powi(2) / 16.0
    }

    fn longest_limit(&self) -> Nanos {
        let limits = self.settings.objectives.iter().filter_map(|objective| objective.late_after);
        limits.max().unwrap_or(Nanos::ZERO)
    }

    fn scout_length(&self, rate: f64) -> Nanos {
        let longest = (self.settings.budget / SCOUT_DIVISOR).clamp(SHORTEST_SCOUT, LONGEST_SCOUT);
        Nanos::from_secs_f64(SCOUT_REQUESTS / rate).clamp(SHORTEST_SCOUT, longest)
    }

    fn warm_up(&self, rate: f64) -> Nanos {
        let settled = Nanos::from_secs_f64(4.0 * self.relaxation(rate));
        whole_bins(settled.clamp(Nanos::from_secs(1), Nanos::from_secs(5)))
    }
}

impl FinishedTrial {
    fn passed(&self) -> bool {
        self.result == TrialResult::Passed && !self.is_withdrawn && !self.is_confirming()
    }

    fn failed(&self) -> bool {
        matches!(self.result, TrialResult::Failed { .. })
    }

    fn is_confirming(&self) -> bool {
        self.order.purpose.confirms()
    }

    fn can_pass(&self) -> bool {
        self.order.purpose == TrialPurpose::Narrow
    }

    /// Whether its counts are about the server: it was trusted, and requests were due.
    fn is_valid(&self) -> bool {
        !matches!(self.result, TrialResult::NotTrusted | TrialResult::BrokenOff)
            && self.shares.iter().any(|share| share.requests > 0)
    }

    /// Late requests / the allowed number of them, by the objective that is closest to breaking.
    fn late_ratio(&self) -> f64 {
        self.shares.iter().map(LateShare::late_ratio).fold(0.0, f64::max)
    }

    /// How much its share of late requests tells.
    fn worth(&self) -> f64 {
        let worth = |share: &LateShare| (share.late as f64 + 0.5) / share.inflation;
        self.shares.iter().map(worth).fold(0.0, f64::max).min(100.0)
    }
}

/// Whole quarters of a second, in which requests are counted.
fn whole_bins(time: Nanos) -> Nanos {
    BIN * (time.0 / BIN.0)
}

/// A trial to narrow the bracket.
struct PlannedTrial {
    rate: f64,
    longest: Nanos,
}

/// How long trials at rates around the edge are expected to take, for a forecast.
struct TimesAround {
    /// Until a trial passes, at rates that fall from just below the edge.
    below: Vec<TimeAt>,
    /// Until enough trials failed, at rates that rise from just above the edge.
    above: Vec<TimeAt>,
    /// The upper end, if none of these fails in time.
    highest: f64,
    /// A trial that confirms the lower end.
    confirming: Nanos,
    /// The standard error of the edge, as a share of it.
    error: f64,
}

impl TimesAround {
    /// The width of the bracket to expect after `left` more time, if trials go as the search plans
    /// them: `SHARE_OF_TIME` of what the confirming trials leave is for the lower end, and half of
    /// the rest for the two trials of the upper end. The edge is only estimated, and a trial too
    /// near to it stays undecided, so each side is widened by the error of the estimate.
    fn expected_width(&self, left: Nanos) -> Option<f64> {
        let spare = left.saturating_sub(self.confirming * CONFIRMATIONS as u64).as_secs_f64();
        // With less time there is a trial or two, which may stay undecided.
        let below = self.below.iter().find(|at| at.seconds <= spare * SHARE_OF_TIME)?;
        let for_above = (spare - below.seconds).max(0.0) / 2.0;
        let above = self.above.iter().find(|at| at.seconds <= for_above);
        // The trials to come make the error smaller: about half of it stays.
        let away = 1.0 + self.error / 2.0;
        let above = above.map_or(self.highest, |at| at.rate);
        let above = (above * away).min(self.highest);
        Some(above / below.rate * away - 1.0)
    }
}

/// The time that a rate needs.
struct TimeAt {
    rate: f64,
    seconds: f64,
}

/// The logarithm of late requests / allowed ones as a line over the rate.
struct EdgeLine {
    /// Its slope over the relative rate.
    slope: f64,
    /// Its value where the relative rate is 0.
    excess: f64,
}

/// Where an objective seems to break.
struct Edge {
    rate: f64,
    /// By how much the logarithm of the share of late requests grows with that of the rate.
    slope: f64,
    /// The standard error of the rate, as a share of it: that of the logarithm of the counted late
    /// requests near it, over the slope.
    error: f64,
    /// How many requests are worth one independent one there.
    inflation: f64,
    /// The share that the strictest objective allows.
    allowed: f64,
}

impl Edge {
    /// Seconds until a trial below the edge is expected to pass.
    fn time_to_pass(&self, rate: f64, chance: f64) -> f64 {
        let share = self.allowed * ROOM * (rate / self.rate).powf(self.slope);
        if share >= self.allowed {
            return f64::INFINITY;
        }
        // The inflation falls with the load.
        let inflation = 1.0 + (self.inflation - 1.0) * (rate / self.rate).powf(self.slope / 2.0);
        let mut worth = -chance.ln() / self.allowed;
        while worth < MOST_WORTH {
            let late = (worth * share).ceil() as u64;
            if likely_at_most(late, worth as u64, self.allowed) <= chance {
                return worth * inflation / rate;
            }
            worth *= 1.1;
        }
        f64::INFINITY
    }

    /// Seconds until a trial above the edge is expected to fail.
    fn time_to_fail(&self, rate: f64, chance: f64) -> f64 {
        let share = (self.allowed * (rate / self.rate).powf(self.slope)).min(1.0);
        // Its worst part does not count.
        let counted = 0.9;
        let counted_late = 0.7 * share;
        if counted_late <= counted * self.allowed {
            return f64::INFINITY;
        }
        let mut worth = 2.0;
        while worth < MOST_WORTH {
            let late = (worth * counted_late).floor() as u64;
            if likely_at_least(late, (worth * counted) as u64, self.allowed) <= chance {
                return worth * self.inflation / rate;
            }
            worth *= 1.1;
        }
        f64::INFINITY
    }
}

/// Watches a trial while it goes on, and ends it as soon as it is decided.
#[derive(Clone, Copy, Debug)]
pub struct TrialLook {
    order: TrialOrder,
    chance_to_pass: f64,
    chance_to_fail: f64,
    /// The next look is made when requests have been counted for this time.
    next: Nanos,
}

impl TrialLook {
    /// Whether the trial can end now.
    pub fn is_decided(&mut self, counts: &LateCounts) -> bool {
        let counted = counts.counted_for();
        if counted < self.next {
            return false;
        }
        let later = counted + Nanos::from_secs_f64(counted.as_secs_f64() * NEXT_LOOK);
        // The first look that can pass is at the shortest length.
        let shortest = self.order.shortest;
        self.next = if counted < shortest && shortest < later { shortest } else { later };
        let shares = LateShare::all_of(counts);
        match self.judge(&shares, counts) {
            TrialResult::Failed { .. } => true,
            // A trial that confirms takes its whole time, whatever it shows.
            TrialResult::Passed => self.order.purpose == TrialPurpose::Narrow,
            TrialResult::Undecided | TrialResult::NotTrusted | TrialResult::BrokenOff => false,
        }
    }

    /// What these counts show. A backlog that kept growing is an overload, which breaks every
    /// objective in time.
    fn judge(&self, shares: &[LateShare], counts: &LateCounts) -> TrialResult {
        let counted = counts.counted_for();
        let chance_to_fail = match self.order.purpose {
            TrialPurpose::Scout | TrialPurpose::Narrow => self.chance_to_fail,
            TrialPurpose::Confirm | TrialPurpose::FromAbove => NOT_CONFIRMED / FAILING_LOOKS,
        };
        let failed = |share: &LateShare| share.chance_of_so_many() <= chance_to_fail;
        if let Some(objective) = shares.iter().position(failed) {
            return TrialResult::Failed { objective };
        }
        let is_long = counted >= self.order.shortest.min(SHORTEST_FULL);
        if is_long && counts.backlog().is_some_and(|backlog| backlog.grows()) {
            return TrialResult::Failed { objective: 0 };
        }
        let has_run_long_enough = counted + Nanos::from_secs(1) > self.order.shortest;
        let passed = |share: &LateShare| share.chance_of_so_few() <= self.chance_to_pass;
        let can_pass = self.order.purpose != TrialPurpose::Scout;
        if has_run_long_enough && can_pass && shares.iter().all(passed) {
            return TrialResult::Passed;
        }
        TrialResult::Undecided
    }
}

#[cfg(test)]
mod tests {
    use model::{Arrivals, Pace, Profile, Rate};

    use super::*;
    use crate::binomial::tests::terms_of;

    const LENGTH: Nanos = Nanos::from_secs(5);

    fn objective(condition: &str) -> RateObjective {
        RateObjective::new(condition.parse().unwrap()).unwrap()
    }

    /// A trial at this rate, of whose requests this share is late.
    fn counts(condition: &str, rate: f64, share: f64) -> LateCounts {
        let objective = objective(condition);
        let late_after = objective.late_after.unwrap();
        let profile = Profile::Flat { rate: Rate::new(rate).unwrap() };
        let pace = Pace::Open { profile, arrivals: Arrivals::Poisson, seed: 1, burst: 1 };
        let mut counts = LateCounts::new(&[objective], &pace, Nanos::ZERO);
        let mut late = 0.0;
        for due in pace.schedule().unwrap().take_while(|due| *due < LENGTH) {
            late += share;
            let time = if late >= 1.0 { late_after * 2 } else { late_after / 2 };
            late -= late.floor();
            counts.record(due, due + time, true);
        }
        counts.advance(LENGTH + late_after);
        counts
    }

    fn scouting(rate: f64) -> TrialOrder {
        TrialOrder {
            number: 1,
            purpose: TrialPurpose::Scout,
            rate,
            seed: 1,
            warm_up: Nanos::ZERO,
            shortest: LENGTH,
            at_most: LENGTH,
            after_rate: None,
        }
    }

    /// A search after one scouting trial for each of these rates, of which this share is late.
    fn scouted(condition: &str, trials: &[(f64, f64)]) -> RateSearch {
        let mut search = RateSearch::new(SearchSettings {
            objectives: vec![objective(condition)],
            precision: 0.05,
            budget: Nanos::from_secs(300),
            closed_loop_rate: None,
            highest_rate: 1e6,
            seed: 1,
        });
        for (rate, share) in trials {
            let counts = counts(condition, *rate, *share);
            search.record(scouting(*rate), &counts, TrialEnding::Complete);
        }
        search
    }

    #[test]
    fn what_it_seems_to_take_stays_below_a_rate_that_failed_its_checks_twice() {
        let mut search = scouted("p90 < 100ms", &[(400.0, 0.01), (450.0, 0.02)]);
        assert!(search.provisional().low > 449.0);
        for _ in 0..2 {
            let counts = counts("p90 < 100ms", 420.0, 1.0);
            search.record(scouting(420.0), &counts, TrialEnding::NotTrusted);
        }
        let seems = search.provisional();
        assert!(seems.low < 401.0 && seems.high.is_none(), "{seems:?}");
    }

    #[test]
    fn a_forecast_for_the_median_takes_few_steps() {
        for condition in ["p50 < 100ms", "p90 < 100ms", "p99 < 100ms"] {
            let allowed = objective(condition).allowed;
            let late = [0.3, 0.8, 1.9].map(|times| times * allowed);
            let search =
                scouted(condition, &[(1000.0, late[0]), (1500.0, late[1]), (1600.0, late[2])]);
            let terms = terms_of(|| {
                let forecast = search.forecast(Nanos::from_secs(60));
                assert!(forecast.is_some_and(|it| it.width.is_some()), "{condition}: {forecast:?}");
            });
            assert!(terms < 100_000, "{condition}: {terms}");
        }
    }
}
