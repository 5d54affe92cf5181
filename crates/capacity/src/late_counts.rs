//! What a trial has counted: in each quarter of a second how many requests became due, and how many
//! of them were late or failed.
//!
//! Requests are counted by when they were due, so a request that is still out counts as late as
//! soon as its limit has passed: nobody has to wait for its timeout.

use model::{Backlog, BacklogSamples, DueTimes, Nanos, Pace, Window};

use crate::rate_objective::RateObjective;

/// The length of a bin.
pub(crate) const BIN: Nanos = Nanos::from_millis(250);
/// Times that are compared besides an objective's limit: each is this part of the one before it.
/// The shortest is 2 % of the limit.
const NEXT_LEVEL: f64 = 0.85;
/// How many there are, the limit included.
pub(crate) const LEVELS: usize = 25;

/// Counts the requests of one trial.
#[derive(Clone, Debug)]
pub struct LateCounts {
    objectives: Vec<RateObjective>,
    /// When the measured part of the trial begins, since the start of its schedule.
    from: Nanos,
    /// The due times that are not counted yet.
    due_times: DueTimes,
    next_due: Option<Nanos>,
    bins: Vec<CountBin>,
    /// Bins whose requests have all ended or are late.
    settled: usize,
    /// Requests that became due in the warm-up, and those that ended in it.
    due_before: u64,
    ended_before: u64,
}

/// The requests that became due in one bin.
#[derive(Clone, Debug)]
pub(crate) struct CountBin {
    pub(crate) due: u64,
    /// Those that have ended, with any outcome.
    ended: u64,
    /// Requests that ended in this bin, whenever they were due.
    ended_here: u64,
    /// For each objective, the ended requests by the first level that they exceeded; the last entry
    /// has those that exceeded none.
    by_level: Vec<[u32; LEVELS + 1]>,
}

impl CountBin {
    fn new(objectives: usize) -> CountBin {
        CountBin { due: 0, ended: 0, ended_here: 0, by_level: vec![[0; LEVELS + 1]; objectives] }
    }
}

impl LateCounts {
    /// For a trial of this pace, whose first requests are a warm-up of this length.
    ///
    /// # Panics
    /// If the pace is a closed loop, which has no schedule.
    pub fn new(objectives: &[RateObjective], pace: &Pace, warm_up: Nanos) -> LateCounts {
        let mut due_times = pace.schedule().expect("a trial is an open loop");
        let mut due_before = 0;
        let mut next_due = due_times.next();
        while next_due.is_some_and(|due| due < warm_up) {
            due_before += 1;
            next_due = due_times.next();
        }
        LateCounts {
            objectives: objectives.to_vec(),
            from: warm_up,
            due_times,
            next_due,
            bins: Vec::new(),
            settled: 0,
            due_before,
            ended_before: 0,
        }
    }

    /// Counts a request that ended. Times are since the start of the schedule; `is_good`: whether
    /// its response was good.
    pub fn record(&mut self, due: Nanos, ended: Nanos, is_good: bool) {
        if ended < self.from {
            self.ended_before += 1;
            return;
        }
        let ended_in = ((ended - self.from).0 / BIN.0) as usize;
        self.make_bins(ended_in + 1);
        self.bins[ended_in].ended_here += 1;
        if due < self.from {
            return;
        }
        let bin = &mut self.bins[((due - self.from).0 / BIN.0) as usize];
        bin.ended += 1;
        let response_time = ended.saturating_sub(due);
        for (objective, by_level) in self.objectives.iter().zip(&mut bin.by_level) {
            by_level[first_level(objective, response_time, is_good)] += 1;
        }
    }

    /// Counts the requests that have become due by `now`, since the start of the schedule, or by
    /// the end of the trial. Bins are settled when all of their requests have ended or are late.
    pub fn advance(&mut self, now: Nanos) {
        let longest = self.objectives.iter().filter_map(|objective| objective.late_after).max();
        let settled_until = now.saturating_sub(self.from + longest.unwrap_or(Nanos::ZERO));
        let settled = (settled_until.0 / BIN.0) as usize;
        if settled <= self.settled {
            return;
        }
        self.make_bins(settled);
        let until = self.from + BIN * settled as u64;
        while let Some(due) = self.next_due.filter(|due| *due < until) {
            self.bins[((due - self.from).0 / BIN.0) as usize].due += 1;
            self.next_due = self.due_times.next();
        }
        self.settled = settled;
    }

    fn make_bins(&mut self, count: usize) {
        let objectives = self.objectives.len();
        while self.bins.len() < count {
            self.bins.push(CountBin::new(objectives));
        }
    }

    /// The settled bins.
    pub(crate) fn settled(&self) -> &[CountBin] {
        &self.bins[..self.settled]
    }

    /// For how long requests were counted.
    pub fn counted_for(&self) -> Nanos {
        BIN * self.settled as u64
    }

    /// Requests that became due in that time.
    pub fn requests(&self) -> u64 {
        self.settled().iter().map(|bin| bin.due).sum()
    }

    /// Requests that became due between these instants, since the end of the warm-up, and those of
    /// them that broke the first objective.
    pub fn late_between(&self, from: Nanos, until: Nanos) -> [u64; 2] {
        let bins = self.settled();
        let place = |at: Nanos| ((at.0 / BIN.0) as usize).min(bins.len());
        let bins = &bins[place(from)..place(until)];
        let due = bins.iter().map(|bin| bin.due).sum();
        let late = |bin: &CountBin| bin.above(0, 0, self.objectives[0].late_after.is_some());
        [due, bins.iter().map(late).sum()]
    }

    /// Requests that were due and had not ended at this instant, since the end of the warm-up.
    pub fn backlog_at(&self, at: Nanos) -> u64 {
        let bins = self.settled();
        let before = &bins[..((at.0 / BIN.0) as usize).min(bins.len())];
        let due: u64 = before.iter().map(|bin| bin.due).sum();
        let ended: u64 = before.iter().map(|bin| bin.ended_here).sum();
        (self.due_before + due).saturating_sub(self.ended_before + ended)
    }

    /// How long after `from` the first objective held for the rest of the time; `None`: never.
    pub fn recovered_after(&self, from: Nanos) -> Option<Nanos> {
        let allowed = self.objectives[0].allowed;
        let until = self.counted_for();
        let mut at = from;
        // The last second alone would tell nothing.
        while at + Nanos::from_secs(1) <= until {
            let [due, late] = self.late_between(at, until);
            if late as f64 <= allowed * due as f64 {
                return Some(at - from);
            }
            at += BIN;
        }
        None
    }

    /// The backlog over the settled bins; `None` if these are too few to tell.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        let mut samples =
            BacklogSamples::new(Window { from: Nanos::ZERO, until: self.counted_for() });
        let mut due = self.due_before;
        let mut ended = self.ended_before;
        for (number, bin) in self.settled().iter().enumerate() {
            samples.take(BIN * number as u64, due.saturating_sub(ended));
            due += bin.due;
            ended += bin.ended_here;
        }
        samples.take(self.counted_for(), due.saturating_sub(ended));
        samples.backlog(self.requests(), Some(self.counted_for()))
    }

    pub(crate) fn objectives(&self) -> &[RateObjective] {
        &self.objectives
    }
}

/// The first level that a request exceeded: 0 is the limit itself, [`LEVELS`] is none.
fn first_level(objective: &RateObjective, response_time: Nanos, is_good: bool) -> usize {
    let Some(limit) = objective.late_after else {
        return if is_good { LEVELS } else { 0 };
    };
    if !is_good || response_time > limit {
        return 0;
    }
    let part = response_time.0.max(1) as f64 / limit.0 as f64;
    // Level n is at NEXT_LEVEL^n, and must be below the time.
    ((part.ln() / NEXT_LEVEL.ln()).floor() as usize + 1).min(LEVELS)
}

impl CountBin {
    /// Requests that exceeded this level of an objective. Those still out have exceeded its limit,
    /// but may not have failed.
    pub(crate) fn above(&self, objective: usize, level: usize, counts_unfinished: bool) -> u64 {
        let ended: u32 = self.by_level[objective][..=level].iter().sum();
        let out = if counts_unfinished { self.due.saturating_sub(self.ended) } else { 0 };
        u64::from(ended) + out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rate;

    #[test]
    fn a_request_that_is_still_out_is_late_as_soon_as_its_limit_has_passed() {
        let objective = RateObjective::new("p99 < 100ms".parse().unwrap()).unwrap();
        let pace = Pace::constant(Rate::new(100.0).unwrap());
        let warm_up = Nanos::from_secs(1);
        let mut counts = LateCounts::new(&[objective], &pace, warm_up);
        // Every second request is answered after 10 ms, the others never.
        for due in pace.schedule().unwrap().step_by(2).take(500) {
            counts.record(due, due + Nanos::from_millis(10), true);
        }
        counts.advance(Nanos::from_millis(2_300));
        // The limit of what was due from 2.25 s on has not passed.
        assert_eq!((counts.counted_for(), counts.requests()), (Nanos::from_secs(1), 100));
        let late: u64 = counts.settled().iter().map(|bin| bin.above(0, 0, true)).sum();
        assert_eq!(late, 50);
    }

    #[test]
    fn a_time_exceeds_the_levels_below_it() {
        let objective = RateObjective::new("p99 < 100ms".parse().unwrap()).unwrap();
        let level = |ms: u64| first_level(&objective, Nanos::from_millis(ms), true);
        assert_eq!((level(101), level(100), level(99), level(86)), (0, 1, 1, 1));
        assert_eq!((level(84), level(1)), (2, LEVELS));
        assert_eq!(first_level(&objective, Nanos::from_millis(1), false), 0, "failed is late");
    }
}
