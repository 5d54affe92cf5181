//! What one lane keeps on this machine in an open loop, and how many lanes pay in a closed one, against the load sink: what
//! [`model::lanes`] chooses a number of lanes by.
//!
//! A rate is kept or not by the majority of three tries, so that one bad moment decides nothing; numbers of lanes are compared in
//! rounds, as [`model::paired`] does. Nothing is said by a machine that others used meanwhile: [`LaneFindings::limits`].

use engine::{DriveResult, LoadSpec, RunProgress, Transport, drive, render};
use model::paired::{LEAST_ROUNDS, Ratio, median, order};
use model::{Clock, Gate, Grade, LaneFacts, LaneLimits, Nanos, Pace, Rate, Timestamps};
use probe::host::Host;

use crate::calibrate::{Workshop, start};
use crate::error::SweepError;

/// Rates that are tried, in requests per second, rising until one is not kept.
const LADDER: [u32; 7] = [2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000];
/// A lane that keeps a rate is no later than [`LATEST`] for this share of the requests. Not the 99 % of the gate on that lag: a
/// machine that passes may have given 3 % of the time to others, which no number of lanes mends.
const MOSTLY: f64 = 0.95;
/// Half of what the gate on the lane's own lag lets pass whatever it is compared with.
pub const LATEST: Nanos = Nanos::from_micros(100);
/// A lane that keeps a rate is on a CPU for no more of the time than this. What is due while it works waits for half of a request's
/// work on average then (M/D/1: ρ / 2(1 - ρ)), and answers that are dearer to read than the sink's by 40 % still pass the gate (70 %).
pub const BUSIEST: f64 = 0.5;
/// Shorter than a ceiling's, as there are more of them.
const WARM_UP: Nanos = Nanos::from_millis(100);
const LENGTH: Nanos = Nanos::from_millis(300);
/// Tries of a rate; most of them decide.
const TRIES: usize = 3;

/// More lanes pay where they raise the rate by this factor at least, and beyond noise.
const PAYS: f64 = 1.1;
/// Fewer processors have nothing to choose: one is the server's.
const LEAST_CPUS: u32 = 3;
/// Connections of the closed loop for each of the most lanes, so that none is short of work.
const CONNECTIONS_A_LANE: u32 = 16;
const SHORT_WARM_UP: Nanos = Nanos::from_millis(50);
const SHORT: Nanos = Nanos::from_millis(150);

/// One run of one lane at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Try {
    /// 95th percentile of the lane's own lag; `None` where it sent nothing.
    pub late: Option<Nanos>,
    /// The lane's share of a CPU, 0 to 1.
    pub busy: f64,
    /// Whether all that was due was sent in time and answered well.
    pub whole: bool,
}

impl Try {
    fn holds(&self) -> bool {
        self.whole && self.busy <= BUSIEST && self.late.is_some_and(|late| late <= LATEST)
    }
}

/// A rate and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Requests per second.
    pub rate_per_s: u32,
    /// Its runs.
    pub tries: Vec<Try>,
    /// Whether most of them held.
    pub kept: bool,
}

/// A number of lanes in a closed loop, and the rates of its rounds, in requests per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// Lanes.
    pub lanes: u32,
    /// One a round.
    pub rates: Vec<f64>,
}

impl Grown {
    /// The middle one of its rounds.
    pub fn median(&self) -> Option<f64> {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        median(&rates)
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneFindings {
    /// Rates of the open loop, rising; the last one was not kept, or was the highest.
    pub rungs: Vec<Rung>,
    /// Numbers of lanes, rising; none where there are too few processors.
    pub growth: Vec<Grown>,
    /// What the machine did meanwhile.
    pub gates: Vec<Gate>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// Why findings are no limits.
#[derive(Clone, Debug, PartialEq)]
pub enum NoLimits {
    /// The user ended it early.
    Interrupted,
    /// Others used the machine meanwhile, by these gates.
    Shared(Vec<Gate>),
    /// Not even the lowest rate was kept.
    Late,
}

impl LaneFindings {
    /// The highest rate, in requests per second, that one lane kept.
    pub fn kept_per_s(&self) -> Option<u32> {
        self.rungs.iter().filter(|rung| rung.kept).map(|rung| rung.rate_per_s).max()
    }

    /// The smallest number of lanes beyond which the next more did not pay; `None` where that was not asked.
    pub fn paying(&self) -> Option<u32> {
        let is_whole = |grown: &Grown| grown.rates.len() >= LEAST_ROUNDS as usize;
        let first = self.growth.first().filter(|_| self.growth.iter().all(is_whole))?;
        let pays = |(fewer, more): &(&Grown, &Grown)| {
            let ratio = Ratio::of_pairs(more.rates.iter().copied().zip(fewer.rates.iter().copied()));
            ratio.is_some_and(|ratio| ratio.median >= PAYS && ratio.low.is_some_and(|low| low > 1.0))
        };
        let paid = self.growth.iter().zip(&self.growth[1..]).take_while(pays).last();
        Some(paid.map_or(first.lanes, |(_, more)| more.lanes))
    }

    /// What is worth keeping of it, with the day on which it was measured.
    ///
    /// # Errors
    /// Why nothing is.
    pub fn limits(&self, measured_on: &str) -> Result<LaneLimits, NoLimits> {
        if self.interrupted {
            return Err(NoLimits::Interrupted);
        }
        let failed: Vec<Gate> = self.gates.iter().copied().filter(|gate| gate.grade() > Grade::Pass).collect();
        if !failed.is_empty() {
            return Err(NoLimits::Shared(failed));
        }
        let kept_per_s = self.kept_per_s().ok_or(NoLimits::Late)?;
        Ok(LaneLimits { measured_on: measured_on.to_owned(), kept_per_s, paying: self.paying() })
    }
}

/// Tries each rate until most of its tries agree, up to the first that is not kept, or until there is no answer: the user
/// interrupts.
fn climb<E>(rates: &[u32], mut run: impl FnMut(u32) -> Result<Option<Try>, E>) -> Result<Vec<Rung>, E> {
    let mut rungs: Vec<Rung> = Vec::new();
    for &rate_per_s in rates {
        let mut tries = Vec::with_capacity(TRIES);
        let most = TRIES / 2 + 1;
        let kept = loop {
            let Some(one) = run(rate_per_s)? else { return Ok(rungs) };
            tries.push(one);
            let held = tries.iter().filter(|one| one.holds()).count();
            if held >= most || tries.len() - held >= most {
                break held >= most;
            }
        };
        rungs.push(Rung { rate_per_s, tries, kept });
        if !kept {
            break;
        }
    }
    Ok(rungs)
}

/// The numbers of lanes that are compared where so many processors may be used: each up to 4, then half as many more and twice as
/// many in turn, up to all but one.
fn numbers(cpus: u32) -> Vec<u32> {
    if cpus < LEAST_CPUS {
        return Vec::new();
    }
    let most = cpus - 1;
    let doubled = (1..31).flat_map(|power| [1 << power, (1 << power) + (1 << (power - 1))]);
    std::iter::once(1).chain(doubled).take_while(|lanes| *lanes < most).chain([most]).collect()
}

/// Measures on so many processors; `tell` hears what is going on.
///
/// # Errors
/// Where the sink cannot be started.
pub fn lanes<C: Clock + Clone + Send>(
    cpus: u32,
    shop: &Workshop<'_, C>,
    tell: &dyn Fn(&str),
) -> Result<LaneFindings, SweepError> {
    let host = Host::now();
    let mut found = LaneFindings::default();
    let mut facts: Vec<LaneFacts> = Vec::new();
    with_sink(1, shop, |shape| {
        found.rungs = climb(&LADDER, |rate_per_s| {
            tell(&format!("one lane at {rate_per_s} req/s"));
            let Some(done) = run(&at(shape, rate_per_s), shop)? else { return Ok(None) };
            facts.extend(&done.lanes);
            Ok::<_, SweepError>(Some(tried(&done)))
        })?;
        Ok(())
    })?;
    let numbers = numbers(cpus);
    if let Some(most) = numbers.last() {
        let connections = (most * CONNECTIONS_A_LANE).max(64);
        found.growth = numbers.iter().map(|lanes| Grown { lanes: *lanes, rates: Vec::new() }).collect();
        with_sink(cpus, shop, |shape| {
            for round in 1..=LEAST_ROUNDS {
                for place in order(u64::from(cpus), round, numbers.len()) {
                    let grown = &mut found.growth[place];
                    tell(&format!("round {round}/{LEAST_ROUNDS}, lanes: {}", grown.lanes));
                    let Some(done) = run(&closed(shape, grown.lanes, connections), shop)? else { return Ok(()) };
                    grown.rates.push(done.tally.completed_in_window as f64 / done.measured.as_secs_f64());
                }
            }
            Ok(())
        })?;
    }
    found.interrupted = shop.interrupt.load(std::sync::atomic::Ordering::Relaxed);
    found.gates.extend(Host::now().steal_since(&host).map(|share| Gate::Steal { share }));
    found.gates.extend(share_of(&facts, |lane| lane.run_queue).map(|share| Gate::LaneRunQueue { share }));
    Ok(found)
}

/// What came of one run at a rate.
fn tried(done: &DriveResult) -> Try {
    let tally = &done.tally;
    let due = tally.counts.total();
    let in_time = 1000 * tally.sent_in_window >= 995 * due;
    Try {
        late: tally.generator_lag.quantile(MOSTLY),
        busy: share_of(&done.lanes, |lane| lane.cpu).unwrap_or(1.0),
        whole: due > 0 && in_time && tally.counts.failed() == 0,
    }
}

/// A part of the lanes' time, as a share of it.
fn share_of(lanes: &[LaneFacts], part: fn(&LaneFacts) -> Nanos) -> Option<f64> {
    let elapsed: Nanos = lanes.iter().map(|lane| lane.elapsed).sum();
    let part: Nanos = lanes.iter().map(part).sum();
    (elapsed > Nanos::ZERO).then(|| part.as_secs_f64() / elapsed.as_secs_f64())
}

/// As `longtail load --rate` sends it by itself.
fn at(shape: &LoadSpec, rate_per_s: u32) -> LoadSpec {
    let rate = Rate::new(f64::from(rate_per_s)).expect("rates of the ladder are above 0");
    LoadSpec { pace: Pace::constant(rate), warm_up: WARM_UP, measured: Some(LENGTH), ..shape.clone() }
}

/// As `longtail load -c` sends it by itself.
fn closed(shape: &LoadSpec, lanes: u32, connections: u32) -> LoadSpec {
    let (warm_up, measured) = (SHORT_WARM_UP, Some(SHORT));
    LoadSpec { lanes, connections, warm_up, measured, stays_awake: true, ..shape.clone() }
}

/// Calls with a shape that goes to a sink of so many threads, and stops that.
fn with_sink<C: Clock + Clone + Send>(
    loops: u32,
    shop: &Workshop<'_, C>,
    mut what: impl FnMut(&LoadSpec) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let nowhere = Transport::tcp(([127, 0, 0, 1], 1).into());
    let request = render("GET", "127.0.0.1", "/", true);
    let shape = LoadSpec { timestamps: Timestamps::Kernel, ..LoadSpec::closed(nowhere, request, 1000) };
    let (server, transport) = start(&shape, (0, loops), shop)?;
    let done = what(&LoadSpec { transport, ..shape });
    server.stop(Nanos::from_secs(5), shop.clock);
    done
}

/// `None` where the user interrupted.
fn run<C: Clock + Clone + Send>(shape: &LoadSpec, shop: &Workshop<'_, C>) -> Result<Option<DriveResult>, SweepError> {
    let done = drive(shape, shop.clock, shop.interrupt, &RunProgress::new(shape.lanes), None)?;
    Ok(Some(done).filter(|done| !done.interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const GOOD: Try = Try { late: Some(LATEST), busy: BUSIEST, whole: true };

    fn bad() -> [Try; 4] {
        [
            Try { late: Some(LATEST + Nanos(1)), ..GOOD },
            Try { late: None, ..GOOD },
            Try { busy: BUSIEST + 0.01, ..GOOD },
            Try { whole: false, ..GOOD },
        ]
    }

    /// Climbs rates 1, 2, 3, … with these tries, and says which were tried how often, and what was kept.
    fn climbed(tries: &[Try]) -> (Vec<(u32, usize)>, Option<u32>) {
        let mut tries = tries.iter().copied();
        let rungs = climb(&[1, 2, 3, 4], |_| Ok::<_, Infallible>(tries.next())).unwrap();
        let found = LaneFindings { rungs, ..LaneFindings::default() };
        (found.rungs.iter().map(|rung| (rung.rate_per_s, rung.tries.len())).collect(), found.kept_per_s())
    }

    #[test]
    fn two_tries_of_three_decide_and_the_first_rate_that_is_not_kept_is_the_last() {
        for bad in bad() {
            assert_eq!(climbed(&[GOOD, GOOD, bad, bad]), (vec![(1, 2), (2, 2)], Some(1)));
            assert_eq!(climbed(&[bad, GOOD, GOOD, GOOD, bad, bad]), (vec![(1, 3), (2, 3)], Some(1)));
            assert_eq!(climbed(&[bad, bad]), (vec![(1, 2)], None));
        }
        assert_eq!(climbed(&[GOOD; 8]), (vec![(1, 2), (2, 2), (3, 2), (4, 2)], Some(4)));
        assert_eq!(climbed(&[GOOD; 3]), (vec![(1, 2)], Some(1)), "interrupted");
    }

    #[test]
    fn one_processor_is_the_servers() {
        for (cpus, all) in [
            (1, vec![]),
            (2, vec![]),
            (3, vec![1, 2]),
            (4, vec![1, 2, 3]),
            (8, vec![1, 2, 3, 4, 6, 7]),
            (64, vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63]),
        ] {
            assert_eq!(numbers(cpus), all, "{cpus}");
        }
    }

    /// What pays where each round's rate is `factor` times that of the lane number before.
    fn paying(factors: &[[f64; 6]]) -> Option<u32> {
        let mut rates = vec![1000.0; 6];
        let mut growth = vec![Grown { lanes: 1, rates: rates.clone() }];
        for (lanes, factors) in (2..).zip(factors) {
            rates.iter_mut().zip(factors).for_each(|(rate, factor)| *rate *= factor);
            growth.push(Grown { lanes, rates: rates.clone() });
        }
        LaneFindings { growth, ..LaneFindings::default() }.paying()
    }

    #[test]
    fn lanes_are_added_as_long_as_a_tenth_more_comes_of_it_beyond_noise() {
        assert_eq!(paying(&[]), Some(1));
        assert_eq!(paying(&[[1.9; 6], [1.4; 6], [1.05; 6]]), Some(3));
        assert_eq!(paying(&[[1.05; 6], [1.9; 6]]), Some(1), "what comes after is not asked");
        assert_eq!(paying(&[[1.1; 6]]), Some(2));
        let noisy = [1.5, 1.5, 1.5, 1.5, 1.5, 0.9];
        assert_eq!(paying(&[noisy]), Some(1));
        let mut cut = LaneFindings { growth: vec![Grown { lanes: 1, rates: vec![1.0; 6] }], ..LaneFindings::default() };
        cut.growth.push(Grown { lanes: 2, rates: vec![9.0; 5] });
        assert_eq!((cut.paying(), LaneFindings::default().paying()), (None, None));
    }

    #[test]
    fn what_a_shared_machine_said_is_not_kept() {
        let rungs = climb(&[5_000], |_| Ok::<_, Infallible>(Some(GOOD))).unwrap();
        let good = LaneFindings {
            rungs,
            gates: vec![Gate::Steal { share: 0.01 }, Gate::LaneRunQueue { share: 0.02 }],
            ..LaneFindings::default()
        };
        let kept = LaneLimits { measured_on: "2026-11-22".to_owned(), kept_per_s: 5_000, paying: None };
        assert_eq!(good.limits("2026-11-22"), Ok(kept));
        for gate in [Gate::Steal { share: 0.02 }, Gate::LaneRunQueue { share: 0.03 }] {
            let shared = LaneFindings { gates: vec![gate], ..good.clone() };
            assert_eq!(shared.limits("2026-11-22"), Err(NoLimits::Shared(vec![gate])));
        }
        assert_eq!(LaneFindings { interrupted: true, ..good }.limits(""), Err(NoLimits::Interrupted));
        assert_eq!(LaneFindings::default().limits(""), Err(NoLimits::Late));
    }
}
