//! A case: one server, one job, and several contenders that take turns. Every other round runs in
//! reverse order, so that slow changes of the machine affect all alike. Comparisons are made within
//! a round.

use model::statistics;
use serde::Serialize;

use crate::counters::Counting;
use crate::lab::Lab;
use crate::measure::{Contender, LEDGERS, Sample, run};
use crate::server::{Kind, Running};
use crate::tools::{Job, Times, Tool};

/// What is run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Case {
    /// As the tables call it.
    pub(crate) name: String,
    pub(crate) server: Kind,
    pub(crate) job: Job,
    #[serde(skip)]
    pub(crate) contenders: Vec<Contender>,
}

/// The results of a case.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) case: Case,
    pub(crate) entries: Vec<Entry>,
    /// Why there are no results: the server does not run.
    pub(crate) failure: Option<String>,
    /// How late the sink's responses were, if it delays them.
    pub(crate) lateness: Option<Times>,
}

/// One contender's runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) contender: Contender,
    pub(crate) samples: Vec<Sample>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// How many rounds there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// All rounds.
    pub(crate) all: u32,
    /// The first rounds, in which all contenders run.
    pub(crate) others: u32,
}

impl Contender {
    /// A tool with its default flags.
    pub(crate) fn of(tool: Tool) -> Contender {
        Contender {
            name: tool.name().to_owned(),
            tool,
            extra: Vec::new(),
            every_round: tool.is_in_every_round(),
        }
    }

    /// Longtail with extra flags, under another name, in each round.
    pub(crate) fn ours(name: &str, extra: &[&str]) -> Contender {
        let extra = extra.iter().map(|word| (*word).to_owned()).collect();
        Contender { name: name.to_owned(), extra, ..Contender::of(Tool::LONGTAIL) }
    }
}

impl Done {
    /// Empty results for the installed contenders that can do the job.
    pub(crate) fn new(case: Case, lab: &Lab<'_>) -> Done {
        let able = |one: &&Contender| {
            one.tool.refusal(&case.job).is_none() && lab.program(one.tool).is_some()
        };
        let entry = |contender: &Contender| Entry {
            contender: contender.clone(),
            samples: vec![],
            failures: vec![],
        };
        let entries = case.contenders.iter().filter(able).map(entry).collect();
        Done { case, entries, failure: None, lateness: None }
    }

    /// Runs all rounds.
    pub(crate) fn run(
        mut self,
        rounds: Rounds,
        counting: Counting,
        lab: &Lab<'_>,
        tell: &dyn Fn(&str),
    ) -> Done {
        let server = match Running::start(&self.case.server, self.case.job.tls, lab) {
            Ok(server) => server,
            Err(why) => {
                self.failure = Some(why);
                return self;
            }
        };
        for round in 1..=rounds.all {
            for at in order(self.entries.len(), round) {
                let entry = &mut self.entries[at];
                if lab.interrupted() || (!entry.contender.every_round && round > rounds.others) {
                    continue;
                }
                tell(&format!(
                    "{}, round {round}/{}: {}",
                    self.case.name, rounds.all, entry.contender.name
                ));
                match run(lab, &server, &entry.contender, &self.case.job, counting) {
                    Ok(sample) => entry.samples.push(Sample { round, ..sample }),
                    // A run that the user ended has not failed.
                    Err(_) if lab.interrupted() => {}
                    Err(why) => entry.failures.push(why),
                }
            }
        }
        if let Kind::Sink { delay: Some(_), .. } = self.case.server {
            self.lateness = server.ledger().map(|ledger| Times::of(&ledger.lateness));
        }
        self
    }

    /// The runs of the contender with this name.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contender.name == name)
    }

    /// Faults that make the bench fail.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let all = self
            .entries
            .iter()
            .flat_map(|entry| entry.failures.iter().map(move |why| (entry, why)));
        all.filter(|(_, why)| why.starts_with(LEDGERS))
            .map(|(entry, why)| format!("{}, {}: {why}", self.case.name, entry.contender.name))
    }

    /// The most CPUs that other processes used during a run.
    pub(crate) fn foreign(&self) -> Option<f64> {
        let all = self
            .entries
            .iter()
            .flat_map(|entry| entry.samples.iter().filter_map(|sample| sample.foreign));
        all.max_by(f64::total_cmp)
    }
}

impl Entry {
    /// The median of a figure over the rounds.
    pub(crate) fn middle(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<Middle> {
        Middle::of(self.samples.iter().filter_map(figure))
    }

    /// The median ratio of a figure to another contender's in the same round.
    pub(crate) fn times(
        &self,
        other: Option<&Entry>,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Middle> {
        let other = other?;
        let ratio = |sample: &Sample| {
            let beside = other.samples.iter().find(|beside| beside.round == sample.round)?;
            Some(figure(sample)? / figure(beside)?)
        };
        Middle::of(self.samples.iter().filter_map(ratio))
    }

    /// Requests that the server received beyond those that the tool reports, over all runs; `None`
    /// if the tool reports none.
    pub(crate) fn unclaimed(&self) -> Option<i64> {
        let of = |sample: &Sample| {
            Some(sample.received.cast_signed() - sample.reported.requests?.cast_signed())
        };
        self.samples.iter().map(of).sum()
    }
}

/// The order in a round: odd rounds forwards, even ones backwards.
fn order(n: usize, round: u32) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..n).rev().collect() } else { (0..n).collect() }
}

/// The median of some values with an interval by ranks, which assumes no distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Middle {
    /// The median.
    pub(crate) median: f64,
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
    /// How many values.
    pub(crate) of: usize,
}

impl Middle {
    /// `None` without values. With fewer than six values the interval is their range
    /// ([`coverage_of_range`]).
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Middle> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let n = all.len();
        let first = *all.first()?;
        let last = *all.last()?;
        let ranks = statistics::ranks(0.5, n as u64, 1.0);
        let at = |rank: Option<u64>, end: f64| rank.map_or(end, |rank| all[rank as usize - 1]);
        Some(Middle {
            median: f64::midpoint(all[(n - 1) / 2], all[n / 2]),
            low: at(ranks.low, first),
            high: at(ranks.high, last),
            of: n,
        })
    }
}

/// The probability that the range of `n` independent values contains the true median: that not all
/// are on one side of it.
pub(crate) fn coverage_of_range(n: usize) -> f64 {
    1.0 - 2f64.powi(1 - i32::try_from(n).unwrap_or(i32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(values: &[(u32, f64)]) -> Entry {
        let sample = |(round, rate): &(u32, f64)| Sample {
            round: *round,
            rate_per_s: Some(*rate),
            ..Sample::default()
        };
        let samples = values.iter().map(sample).collect();
        Entry { contender: Contender::of(Tool::WRK), samples, failures: vec![] }
    }

    #[test]
    fn every_other_round_is_in_reverse_order() {
        assert_eq!(
            (order(3, 1), order(3, 2), order(3, 3)),
            (vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2])
        );
    }

    #[test]
    fn only_runs_of_the_same_round_are_compared() {
        let ours = entry(&[(1, 10.0), (2, 40.0), (3, 90.0)]);
        let theirs = entry(&[(1, 10.0), (3, 30.0)]);
        let times = ours.times(Some(&theirs), |sample| sample.rate_per_s).unwrap();
        assert_eq!((times.median, times.of), (2.0, 2));
        assert_eq!(ours.times(None, |sample| sample.rate_per_s), None);
        assert_eq!(ours.times(Some(&theirs), Sample::cycles), None);
    }

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(
            Middle::of([3.0, 1.0]).map(|m| (m.median, m.low, m.high)),
            Some((2.0, 1.0, 3.0))
        );
        assert_eq!(
            Middle::of([3.0, 1.0, 9.0]).map(|m| (m.median, m.low, m.high)),
            Some((3.0, 1.0, 9.0))
        );
        assert_eq!(Middle::of([]), None);
    }

    #[test]
    fn the_interval_matches_published_tables() {
        // David, Nagaraja: with nine values, the second and the eighth contain the median with 96.1
        // %.
        let nine = Middle::of((1..=9).map(f64::from)).unwrap();
        assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
        // With six, the first and the last, with 96.9 %.
        let six = Middle::of((1..=6).map(f64::from)).unwrap();
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((coverage_of_range(6) - 0.96875).abs() < 1e-12);
        assert!(coverage_of_range(1).abs() < 1e-12);
    }
}
