//! Searches in virtual time: a server with first come, first served slots, requests that become due
//! by the real pace, and the real search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

use capacity::{
    LateCounts, RateObjective, RateSearch, SearchSettings, SearchStep, TrialEnding, TrialOrder,
};
use model::pace::uniform;
use model::{Arrivals, CapacityBracket, CapacityForecast, Nanos, Pace, Profile, Rate, SearchEnd};

/// How long requests hold a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    Constant,
    Exponential,
    /// Exponential, and for about a second at a time a fifth faster or slower than usual.
    Correlated,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) slots: usize,
    /// Mean time of a request, in seconds.
    pub(crate) mean: f64,
    pub(crate) service: Service,
    /// The mean grows by this share of itself in a minute.
    pub(crate) drift: f64,
    /// Everything stands still for a second, once, this long after the start of the search.
    pub(crate) stall_at: Option<f64>,
    /// From this time on it has this many slots.
    pub(crate) slots_change: Option<(f64, usize)>,
}

impl Server {
    pub(crate) fn new(slots: usize, mean: f64, service: Service) -> Server {
        Server { slots, mean, service, drift: 0.0, stall_at: None, slots_change: None }
    }
}

/// What is searched for, and on what.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) server: Server,
    pub(crate) objective: &'static str,
    pub(crate) precision: f64,
    pub(crate) budget: Nanos,
    /// The exact capacity; `None` if there is none.
    pub(crate) truth: Option<f64>,
    /// From this rate on the generator fails its checks.
    pub(crate) generator_limit: f64,
}

/// The state of a server: when each slot is free, and draws.
struct Play {
    free: BinaryHeap<Reverse<u64>>,
    server: Server,
    seed: u64,
    draws: u64,
    /// Until when the present regime of a correlated service lasts, and its factor.
    regime: (f64, f64),
}

impl Play {
    fn new(server: Server, seed: u64) -> Play {
        let free = (0..server.slots).map(|_| Reverse(0)).collect();
        // Far from the seeds of arrivals: equal ones draw equal numbers.
        Play { free, server, seed: seed ^ 0x5EED_0000_0000, draws: 0, regime: (0.0, 1.0) }
    }

    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        uniform(self.seed, self.draws)
    }

    /// When a request ends that becomes due then, in ns since the start of the search.
    fn serve(&mut self, due: u64) -> u64 {
        let at = due as f64 * 1e-9;
        if let Some((from, slots)) = self.server.slots_change
            && at >= from
            && self.free.len() != slots
        {
            while self.free.len() > slots {
                self.free.pop();
            }
            while self.free.len() < slots {
                self.free.push(Reverse(due));
            }
        }
        let Reverse(free) = self.free.pop().expect("a slot");
        let mut begin = free.max(due);
        if let Some(stall) = self.server.stall_at {
            let from = (stall * 1e9) as u64;
            if (from..from + 1_000_000_000).contains(&begin) {
                begin = from + 1_000_000_000;
            }
        }
        let mean = self.server.mean * (1.0 + self.server.drift * at / 60.0);
        let time = match self.server.service {
            Service::Constant => mean,
            Service::Exponential => -mean * self.uniform().ln(),
            Service::Correlated => {
                if at >= self.regime.0 {
                    let length = -self.uniform().ln();
                    let factor = if self.uniform() < 0.5 { 0.8 } else { 1.2 };
                    self.regime = (at + length, factor);
                }
                -mean * self.regime.1 * self.uniform().ln()
            }
        };
        let ended = begin + (time * 1e9) as u64;
        self.free.push(Reverse(ended));
        ended
    }
}

/// A rate as Poisson arrivals.
pub(crate) fn poisson(rate: f64, seed: u64) -> Pace {
    let rate = Rate::new(rate).expect("a rate");
    Pace::Open { profile: Profile::Flat { rate }, arrivals: Arrivals::Poisson, seed, burst: 1 }
}

/// How one search ended.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) bracket: CapacityBracket,
    pub(crate) end: SearchEnd,
    pub(crate) elapsed: Nanos,
    pub(crate) confirmations: usize,
    pub(crate) is_monotone: bool,
    pub(crate) trials: usize,
    /// What was forecast of it.
    pub(crate) forecast: Option<CapacityForecast>,
}

/// One search with these seeds of arrivals and service times.
pub(crate) fn search(setting: &Setting, seed: u64) -> Found {
    let objective = RateObjective::new(setting.objective.parse().expect("a condition"));
    let objectives = vec![objective.expect("an objective")];
    let closed_loop = setting.server.slots as f64 / setting.server.mean;
    let mut search = RateSearch::new(SearchSettings {
        objectives: objectives.clone(),
        precision: setting.precision,
        budget: setting.budget,
        closed_loop_rate: Some(closed_loop * (0.97 + 0.04 * uniform(seed, 0))),
        highest_rate: 1e6,
        seed,
    });
    let mut now = Nanos::from_secs(4);
    let mut trials = 0;
    let mut forecast = None;
    let end = loop {
        let order = match search.next(now) {
            SearchStep::End(end) => break end,
            SearchStep::Trial(order) => order,
        };
        trials += 1;
        let mut play = Play::new(setting.server, seed.wrapping_mul(1000).wrapping_add(trials));
        let (counts, took) = trial(&search, &order, &objectives, &mut play, now);
        now += took;
        let ending = if order.rate >= setting.generator_limit {
            TrialEnding::NotTrusted
        } else {
            TrialEnding::Complete
        };
        search.record(order, &counts, ending);
        if now >= search.forecast_after() && forecast.is_none() {
            forecast = search.forecast(now);
        }
        // The server works off its backlog, and connections are made anew.
        now += Nanos::from_millis(500);
    };
    Found {
        bracket: search.bracket(),
        end,
        elapsed: now,
        confirmations: search.confirmations(),
        is_monotone: search.is_monotone(),
        trials: trials as usize,
        forecast,
    }
}

/// One trial, which begins `began` after the start of the search.
fn trial(
    search: &RateSearch,
    order: &TrialOrder,
    objectives: &[RateObjective],
    play: &mut Play,
    mut began: Nanos,
) -> (LateCounts, Nanos) {
    let start = began;
    if let Some(above) = order.after_rate {
        for due in poisson(above, order.seed).schedule().expect("open") {
            if due >= order.warm_up {
                break;
            }
            play.serve((began + due).0);
        }
        began += order.warm_up;
    }
    let pace = poisson(order.rate, order.seed);
    let mut counts = LateCounts::new(objectives, &pace, order.warm_up);
    let mut look = search.look(order);
    let end = order.warm_up + order.at_most;
    let limit = objectives.iter().filter_map(|it| it.late_after).max().unwrap_or_default();
    let step = Nanos::from_millis(250);
    let mut next_look = step;
    for due in pace.schedule().expect("open") {
        while next_look <= due {
            counts.advance(next_look.min(end + limit));
            if look.is_decided(&counts) {
                return (counts, began + next_look - start);
            }
            next_look += step;
        }
        if due >= end {
            break;
        }
        let ended = Nanos(play.serve((began + due).0)).saturating_sub(began);
        counts.record(due, ended, true);
    }
    counts.advance(end + limit);
    (counts, began + end + limit - start)
}

/// A bisection as people do it by hand: eight steps of this many seconds each, by the measured
/// percentile.
pub(crate) fn bisection(setting: &Setting, seconds: f64, seed: u64) -> f64 {
    let objective = RateObjective::new(setting.objective.parse().expect("a condition"));
    let objective = objective.expect("an objective");
    let closed_loop = setting.server.slots as f64 / setting.server.mean;
    let mut low = 0.3 * closed_loop;
    let mut high = closed_loop;
    for step in 0..8 {
        let rate = f64::midpoint(low, high);
        let mut play = Play::new(setting.server, seed.wrapping_mul(1000).wrapping_add(step));
        let mut late = 0;
        let mut all = 0;
        for due in poisson(rate, seed.wrapping_add(step)).schedule().expect("open") {
            if due.as_secs_f64() >= seconds {
                break;
            }
            let ended = play.serve(due.0);
            all += 1;
            late += u64::from(Nanos(ended - due.0) > objective.late_after.expect("a time"));
        }
        if late as f64 <= objective.allowed * f64::from(all) { low = rate } else { high = rate }
    }
    low
}

/// What many searches found.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) searches: usize,
    /// Brackets that hold the truth.
    pub(crate) inside: usize,
    /// Lower ends above it by more than half a percent.
    pub(crate) over: usize,
    pub(crate) below: usize,
    /// Without a lower end, or without an upper one.
    pub(crate) open_below: usize,
    pub(crate) open_above: usize,
    pub(crate) not_monotone: usize,
    pub(crate) widths: Vec<f64>,
    pub(crate) forecasts: Vec<f64>,
    /// Budgets that were said to give both ends, in seconds.
    both_ends_after: Vec<f64>,
    pub(crate) elapsed: f64,
    pub(crate) longest: f64,
    pub(crate) confirmed: usize,
    pub(crate) trials: usize,
    pub(crate) budget: Nanos,
    pub(crate) ends: BTreeMap<String, usize>,
}

impl Summary {
    fn add(&mut self, found: &Found, truth: Option<f64>) {
        self.searches += 1;
        let CapacityBracket { low, high } = found.bracket;
        if let Some(truth) = truth {
            self.inside += usize::from(low <= truth && high.is_none_or(|high| truth <= high));
            self.over += usize::from(low > truth * 1.005);
            self.below += usize::from(high.is_some_and(|high| high < truth));
        }
        self.open_below += usize::from(low == 0.0);
        self.open_above += usize::from(high.is_none());
        self.not_monotone += usize::from(!found.is_monotone);
        self.widths.extend(found.bracket.width());
        self.forecasts.extend(found.forecast.and_then(|forecast| forecast.width));
        let enough = found.forecast.and_then(|forecast| forecast.both_ends_after);
        self.both_ends_after.extend(enough.map(Nanos::as_secs_f64));
        self.elapsed += found.elapsed.as_secs_f64();
        self.longest = self.longest.max(found.elapsed.as_secs_f64());
        self.confirmed += usize::from(found.confirmations >= 2);
        self.trials += found.trials;
        *self.ends.entry(format!("{:?}", found.end)).or_default() += 1;
    }

    pub(crate) fn median_width(&self) -> f64 {
        median(&self.widths)
    }

    pub(crate) fn median_forecast(&self) -> f64 {
        median(&self.forecasts)
    }

    pub(crate) fn both_ends_after(&self) -> f64 {
        median(&self.both_ends_after)
    }

    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.searches as f64
    }

    /// As a row of the table in the docs.
    pub(crate) fn row(&self) -> String {
        format!(
            "{:.1} % | {:.1} % | {:.0} % | {:.0} % | {:.0} % | {:.0} % | {:.0} s",
            self.percent(self.inside),
            self.percent(self.over),
            self.percent(self.open_below),
            self.percent(self.open_above),
            100.0 * self.median_width(),
            100.0 * self.median_forecast(),
            self.elapsed / self.searches as f64,
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} searches: inside {:.1} %, over {:.1} %, high end below {:.1} %, no low end {:.1} %, \
             no high end {:.1} %, not monotone {:.1} %, median width {:.1} %, confirmed {:.1} %, \
             {:.0} s (at most {:.0} s), {:.1} trials, {:?}",
            self.searches,
            self.percent(self.inside),
            self.percent(self.over),
            self.percent(self.below),
            self.percent(self.open_below),
            self.percent(self.open_above),
            self.percent(self.not_monotone),
            100.0 * self.median_width(),
            self.percent(self.confirmed),
            self.elapsed / self.searches as f64,
            self.longest,
            self.trials as f64 / self.searches as f64,
            self.ends
        )
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Searches with this many seeds.
pub(crate) fn run_many(setting: &Setting, seeds: u64) -> Summary {
    let halves: Vec<Vec<Found>> = std::thread::scope(|scope| {
        let half = |from: u64| {
            let searches = move || {
                let seeds = (from..=seeds).step_by(2);
                seeds.map(|seed| search(setting, seed)).collect::<Vec<_>>()
            };
            scope.spawn(searches)
        };
        [half(1), half(2)].map(|half| half.join().expect("a search")).into()
    });
    let mut summary = Summary { budget: setting.budget, ..Summary::default() };
    for found in halves.iter().flatten() {
        summary.add(found, setting.truth);
    }
    summary
}

/// The highest rate at which 99 % of the responses take at most `limit` s, by a long simulation.
pub(crate) fn simulated_truth(server: Server, limit: f64) -> f64 {
    let is_kept = |rate: f64| {
        let mut play = Play::new(server, 77);
        let mut late = 0_u64;
        let requests = 2_000_000;
        for due in poisson(rate, 78).schedule().expect("open").take(requests) {
            late += u64::from(play.serve(due.0) - due.0 > (limit * 1e9) as u64);
        }
        late as f64 <= 0.01 * requests as f64
    };
    let mut low = 0.3 * server.slots as f64 / server.mean;
    let mut high = server.slots as f64 / server.mean;
    for _ in 0..9 {
        let rate = f64::midpoint(low, high);
        if is_kept(rate) { low = rate } else { high = rate }
    }
    f64::midpoint(low, high)
}
