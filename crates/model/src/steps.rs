//! The figures of each step of a load whose rate changes by plan (`--steps`), or of each tenth of a
//! ramp (`--ramp`).
//!
//! A step has the requests that were due in it, whenever they ended, and is recorded as a run of its
//! own: its percentiles, intervals and doubts follow the same rules as those of a whole run. It
//! starts with the backlog that the previous step left.

use serde::{Deserialize, Serialize};

use crate::number::rate_in_words;
use crate::{
    BacklogSamples, Batches, Exchange, Nanos, Outcome, Pace, ProfilePart, Run, Statistics, Tally,
    Window,
};

/// What was recorded of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Requests per second when it began, as planned.
    #[serde(rename = "rate_from_per_s")]
    pub rate_from: f64,
    /// Requests per second when it ended; another rate in a ramp.
    #[serde(rename = "rate_to_per_s")]
    pub rate_to: f64,
    /// Requests that were due and not answered when it ended.
    pub backlog_at_end: u64,
    /// Its requests.
    pub tally: Tally,
    /// How well its percentiles are known, and whether the backlog grew in it.
    pub statistics: Statistics,
}

impl StepRecord {
    /// How long it took.
    pub fn length(&self) -> Nanos {
        self.tally.window.until - self.tally.window.from
    }

    /// The lower one of its rates.
    pub fn lowest_rate(&self) -> f64 {
        self.rate_from.min(self.rate_to)
    }

    /// The higher one of its rates.
    pub fn highest_rate(&self) -> f64 {
        self.rate_from.max(self.rate_to)
    }

    /// `70/s`, or for a ramp `100 to 190/s`.
    pub fn in_words(&self) -> String {
        let to = rate_in_words(self.rate_to);
        if self.rate_from.total_cmp(&self.rate_to).is_eq() {
            return format!("{to}/s");
        }
        format!("{} to {to}/s", rate_in_words(self.rate_from))
    }
}

impl Run {
    /// A step of this run as a run of its own, with the figures of requests only: nothing of what
    /// the server did.
    #[must_use]
    pub fn of_step(&self, step: &StepRecord) -> Run {
        Run {
            statistics: Some(step.statistics.clone()),
            judgement: self.judgement.clone(),
            ..Run::recorded(self.connections, step.tally.clone(), step.length(), step.length())
        }
    }
}

/// Records the requests of a run by step.
#[derive(Clone, Debug)]
pub struct StepTallies {
    steps: Vec<StepTally>,
    /// Requests of the warm-up, and those that ended in it.
    due_before: u64,
    ended_before: u64,
    /// Requests that were in flight or not sent at the end. Whether they have failed depends on who
    /// ended the run.
    left: Vec<Exchange>,
}

/// Parts into which a step is divided, to know its backlog over time.
const PARTS: usize = 128;

#[derive(Clone, Debug)]
struct StepTally {
    part: ProfilePart,
    tally: Tally,
    batches: Batches,
    /// The length of a part.
    width: Nanos,
    /// Requests that became due in each part, and those that ended in it.
    due: [u64; PARTS],
    ended: [u64; PARTS],
}

impl StepTallies {
    /// For a run at this pace whose schedule began at `start`; `until` is [`Nanos::MAX`] where a
    /// count ends it. `None` if it has no steps.
    pub fn new(pace: &Pace, start: Nanos, window: Window) -> Option<StepTallies> {
        let Pace::Open { profile, .. } = pace else { return None };
        let steps: Vec<StepTally> = profile
            .parts()
            .into_iter()
            .filter_map(|part| StepTally::new(part, start, window))
            .collect();
        if steps.is_empty() {
            return None;
        }
        Some(StepTallies { steps, due_before: 0, ended_before: 0, left: Vec::new() })
    }

    /// Records how a request ended.
    pub fn record(&mut self, exchange: &Exchange) {
        let begin = self.steps[0].tally.window.from;
        self.due_before += u64::from(exchange.due < begin);
        self.ended_before += u64::from(exchange.ended < begin);
        let ended_in = self.step_at(exchange.ended);
        if let Some(number) = ended_in {
            self.steps[number].count_end(exchange.ended);
        }
        let due_in = self.step_at(exchange.due);
        if let Some(number) = ended_in
            && due_in != ended_in
            && exchange.outcome.is_good()
        {
            self.steps[number].tally.completed_in_window += 1;
        }
        let Some(number) = due_in else { return };
        self.steps[number].count_due(exchange.due);
        if matches!(exchange.outcome, Outcome::InFlight | Outcome::NotSent) {
            self.left.push(*exchange);
        } else {
            self.steps[number].record(exchange);
        }
    }

    /// The steps of a run that was measured for so long. `is_interrupted`: the user ended it, so
    /// what was left without a response has not failed.
    pub fn finish(
        mut self,
        measured: Nanos,
        is_interrupted: bool,
        percentiles: &[f64],
    ) -> Vec<StepRecord> {
        for exchange in std::mem::take(&mut self.left) {
            let Some(number) = self.step_at(exchange.due) else { continue };
            if is_interrupted {
                let is_in_flight = exchange.outcome == Outcome::InFlight;
                self.steps[number].tally.record_unfinished(None, &exchange, is_in_flight);
            } else {
                self.steps[number].record(&exchange);
            }
        }
        let end = self.steps[0].tally.window.from + measured;
        let mut waiting = self.due_before.saturating_sub(self.ended_before);
        let mut records = Vec::new();
        for step in self.steps.into_iter().filter(|step| step.tally.window.from < end) {
            let record = step.finish(waiting, end, percentiles);
            waiting = record.backlog_at_end;
            records.push(record);
        }
        records
    }

    /// The step of this instant.
    fn step_at(&self, at: Nanos) -> Option<usize> {
        let number = self.steps.partition_point(|step| step.tally.window.until <= at);
        self.steps.get(number).filter(|step| step.tally.window.contains(at)).map(|_| number)
    }
}

impl StepTally {
    /// `None` if nothing of it is in the measured window.
    fn new(part: ProfilePart, start: Nanos, window: Window) -> Option<StepTally> {
        let until = if part.until == Nanos::MAX { Nanos::MAX } else { start + part.until };
        let window =
            Window { from: window.from.max(start + part.from), until: window.until.min(until) };
        if window.from >= window.until {
            return None;
        }
        let length = window.until.saturating_sub(window.from);
        Some(StepTally {
            part,
            tally: Tally { window, per_connection: vec![0], ..Tally::default() },
            batches: Batches::new(window),
            width: Nanos(length.0.div_ceil(PARTS as u64)),
            due: [0; PARTS],
            ended: [0; PARTS],
        })
    }

    fn count_due(&mut self, at: Nanos) {
        self.due[self.place(at)] += 1;
    }

    fn count_end(&mut self, at: Nanos) {
        self.ended[self.place(at)] += 1;
    }

    /// The number of the part that contains this instant.
    fn place(&self, at: Nanos) -> usize {
        ((at - self.tally.window.from).0 / self.width.0) as usize
    }

    fn record(&mut self, exchange: &Exchange) {
        self.tally.record(exchange, 0);
        if exchange.outcome.is_good() {
            // How late the generator was is a matter of the whole run.
            self.batches.record(exchange.due, exchange.response_time(), Nanos::ZERO);
        }
    }

    /// `waiting`: the backlog when it began.
    fn finish(mut self, waiting: u64, end: Nanos, percentiles: &[f64]) -> StepRecord {
        let window = Window { until: self.tally.window.until.min(end), ..self.tally.window };
        let mut samples = BacklogSamples::new(self.tally.window);
        let mut due = waiting;
        let mut ended = 0;
        for part in 0..PARTS {
            let at = window.from + self.width * part as u64;
            if at >= window.until {
                break;
            }
            samples.take(at, due.saturating_sub(ended));
            due += self.due[part];
            ended += self.ended[part];
        }
        let backlog = samples.backlog(self.tally.due(), Some(window.until - window.from));
        let statistics = Statistics::of(&self.tally, &self.batches, percentiles);
        self.tally.window = window;
        StepRecord {
            rate_from: self.part.rate_from,
            rate_to: self.part.rate_to,
            backlog_at_end: due.saturating_sub(ended),
            tally: self.tally,
            statistics: Statistics { lag_slope: None, time_map: None, ..statistics }
                .with_backlog(backlog),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Profile, Quantile, Rate};

    const PERCENTILES: [f64; 3] = [0.5, 0.95, 0.99];
    const WINDOW: Window = Window { from: Nanos::ZERO, until: Nanos::from_secs(30) };

    /// 50, 100 and 150 requests a second for 10 s each, of which the n-th ends as `play` says.
    fn played(mut play: impl FnMut(Nanos) -> (Nanos, Outcome)) -> Vec<Exchange> {
        let due = pace().schedule().unwrap().take_while(|due| *due < WINDOW.until);
        due.map(|due| {
            let (ended, outcome) = play(due);
            Exchange { due, sent: due, ended, received_bytes: 0, outcome }
        })
        .collect()
    }

    fn pace() -> Pace {
        let rates = [50.0, 100.0, 150.0].map(|rate| Rate::new(rate).unwrap()).to_vec();
        let profile = Profile::Steps { rates, each: Nanos::from_secs(10) };
        Pace::Open { profile, arrivals: Arrivals::Constant, seed: 0, burst: 1 }
    }

    fn recorded(exchanges: &[Exchange], measured: Nanos, is_interrupted: bool) -> Vec<StepRecord> {
        let mut tallies = StepTallies::new(&pace(), Nanos::ZERO, WINDOW).unwrap();
        for exchange in exchanges {
            tallies.record(exchange);
        }
        tallies.finish(measured, is_interrupted, &PERCENTILES)
    }

    /// Ten slots of 100 ms, first come, first served: a hundred requests a second at most.
    fn queue() -> impl FnMut(Nanos) -> (Nanos, Outcome) {
        let mut free = [Nanos::ZERO; 10];
        let mut number = 0;
        move |due| {
            let slot = &mut free[number % 10];
            number += 1;
            *slot = due.max(*slot) + Nanos::from_millis(100);
            (*slot, Outcome::Answered(200))
        }
    }

    #[test]
    fn each_request_is_in_the_step_in_which_it_was_due() {
        let exchanges = played(queue());
        let steps = recorded(&exchanges, Nanos::from_secs(30), false);
        assert_eq!(
            steps.iter().map(|step| step.tally.due()).collect::<Vec<_>>(),
            [500, 1000, 1500]
        );
        let run = Run::recorded(1, Tally::default(), WINDOW.until, WINDOW.until);
        let [slow, full, over] = [0, 1, 2].map(|number| run.of_step(&steps[number]));
        assert_eq!(slow.response_time(0.99).time(), slow.tally.response_time.quantile(0.99));
        assert!((slow.completed_rate() - 49.5).abs() < 0.2, "{}", slow.completed_rate());
        assert!((full.completed_rate() - 99.5).abs() < 1.0, "{}", full.completed_rate());
        assert!((over.completed_rate() - 100.0).abs() < 1.0, "{}", over.completed_rate());
        // A third of the requests of the last step stays queued.
        assert!((500..=512).contains(&steps[2].backlog_at_end), "{}", steps[2].backlog_at_end);
        assert_eq!(over.response_time(0.5), Quantile::Growing);
        assert_eq!(steps[1].in_words(), "100/s");
    }

    #[test]
    fn failures_and_what_a_user_left_are_in_their_step() {
        let mut all = played(|due| (due + Nanos::from_millis(20), Outcome::Answered(200)));
        all[10].outcome = Outcome::Answered(503);
        let last = all.iter().position(|exchange| exchange.due >= Nanos::from_secs(12)).unwrap();
        all.truncate(last);
        all[last - 1].outcome = Outcome::InFlight;
        let steps = recorded(&all, Nanos::from_secs(12), true);
        assert_eq!(steps.len(), 2, "the third was not begun");
        assert_eq!((steps[0].tally.counts.failed(), steps[1].tally.counts.failed()), (1, 0));
        assert_eq!(steps[1].tally.unfinished.in_flight, 1);
        assert_eq!(steps[1].length(), Nanos::from_secs(2));
        let steps = recorded(&all, Nanos::from_secs(12), false);
        assert_eq!(steps[1].tally.counts.failed(), 1, "nobody stopped it");
    }

    #[test]
    fn a_warm_up_shortens_the_first_step_and_its_requests_are_in_no_step() {
        let window = Window { from: Nanos::from_secs(4), ..WINDOW };
        let mut tallies = StepTallies::new(&pace(), Nanos::ZERO, window).unwrap();
        let exchanges = played(queue());
        for exchange in &exchanges {
            tallies.record(exchange);
        }
        let steps = tallies.finish(Nanos::from_secs(26), false, &PERCENTILES);
        assert_eq!(steps[0].length(), Nanos::from_secs(6));
        assert_eq!(steps[0].tally.due(), 300);
        assert!((4..=6).contains(&steps[0].backlog_at_end), "{}", steps[0].backlog_at_end);
        assert!(StepTallies::new(&Pace::Closed, Nanos::ZERO, WINDOW).is_none());
    }
}
