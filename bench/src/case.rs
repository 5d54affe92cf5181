//! A case: one server, one job, several who do it in turns. Every other round goes the other way,
//! so that what the machine does meanwhile falls on all alike, and what is compared is compared
//! within a round.

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

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) case: Case,
    pub(crate) entries: Vec<Entry>,
    /// Why there is nothing at all: the server does not run.
    pub(crate) failure: Option<String>,
    /// How late the sink's answers were, of one that takes time over them.
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

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Of those who run in each.
    pub(crate) all: u32,
    /// Of the others: the first ones.
    pub(crate) others: u32,
}

impl Contender {
    /// A tool as it is.
    pub(crate) fn of(tool: Tool) -> Contender {
        Contender {
            name: tool.name().to_owned(),
            tool,
            extra: Vec::new(),
            every_round: tool.is_in_every_round(),
        }
    }

    /// longtail with other words, under another name, in each round.
    pub(crate) fn ours(name: &str, extra: &[&str]) -> Contender {
        let extra = extra.iter().map(|word| (*word).to_owned()).collect();
        Contender { name: name.to_owned(), extra, ..Contender::of(Tool::Longtail) }
    }
}

impl Done {
    /// Nothing yet, of those who can do the job and are here.
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
                    // What the user ended has not failed.
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

    /// The runs of the one with this name.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contender.name == name)
    }

    /// What makes the bench fail.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let all = self
            .entries
            .iter()
            .flat_map(|entry| entry.failures.iter().map(move |why| (entry, why)));
        all.filter(|(_, why)| why.starts_with(LEDGERS))
            .map(|(entry, why)| format!("{}, {}: {why}", self.case.name, entry.contender.name))
    }

    /// The most that others used of the machine in a run, in processors.
    pub(crate) fn foreign(&self) -> Option<f64> {
        let all = self
            .entries
            .iter()
            .flat_map(|entry| entry.samples.iter().filter_map(|sample| sample.foreign));
        all.max_by(f64::total_cmp)
    }
}

impl Entry {
    /// The middle of a figure over the rounds.
    pub(crate) fn middle(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<Middle> {
        Middle::of(self.samples.iter().filter_map(figure))
    }

    /// The middle of the ratios of a figure to another's of the same round.
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

    /// Requests that the server received beyond those that it claims, over all runs; `None` where
    /// it claims nothing.
    pub(crate) fn unclaimed(&self) -> Option<i64> {
        let of = |sample: &Sample| {
            Some(sample.received.cast_signed() - sample.said.requests?.cast_signed())
        };
        self.samples.iter().map(of).sum()
    }
}

/// Who comes after whom: odd rounds forwards, even ones backwards.
fn order(n: usize, round: u32) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..n).rev().collect() } else { (0..n).collect() }
}

/// The middle of some values with an interval of order statistics: no law of the values is assumed.
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
    /// `None` of nothing. With fewer than six values the interval is their range
    /// ([`coverage_of_range`]).
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Middle> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let n = all.len();
        let (first, last) = (*all.first()?, *all.last()?);
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

/// With which probability the range of `n` independent values holds the true median: not all are on
/// one side of it.
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
        Entry { contender: Contender::of(Tool::Wrk), samples, failures: vec![] }
    }

    #[test]
    fn every_other_round_goes_the_other_way() {
        assert_eq!(
            (order(3, 1), order(3, 2), order(3, 3)),
            (vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2])
        );
    }

    #[test]
    fn only_what_was_run_in_one_round_is_compared() {
        let (ours, theirs) =
            (entry(&[(1, 10.0), (2, 40.0), (3, 90.0)]), entry(&[(1, 10.0), (3, 30.0)]));
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
    fn the_interval_is_that_of_the_tables() {
        // David, Nagaraja: of nine values the second and the eighth hold the median with 96.1 %.
        let nine = Middle::of((1..=9).map(f64::from)).unwrap();
        assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
        // Of six the first and the last, with 96.9 %.
        let six = Middle::of((1..=6).map(f64::from)).unwrap();
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((coverage_of_range(6) - 0.96875).abs() < 1e-12);
        assert!(coverage_of_range(1).abs() < 1e-12);
    }
}
