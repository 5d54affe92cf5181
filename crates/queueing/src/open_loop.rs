//! Open loops: requests arrive at a given rate, whatever has become of earlier ones. Poisson
//! arrivals with exponential service (M/M/c, Erlang's formulas), the highest load that keeps an
//! objective, and overload, which has no steady state.

use model::theory::Estimate;

use crate::numeric::{self, QueueingError, not_negative, positive, share, some};

/// `c` slots, arrivals at rate `λ`, each holding a slot for `s` on average, in one unit of time. A
/// load may be more than the slots can do; the formulas that need a steady state refuse it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfferedLoad {
    slots: u32,
    rate: f64,
    service: f64,
}

impl OfferedLoad {
    /// A load of `rate` arrivals per unit of time of `service` each, on `slots` slots.
    ///
    /// # Errors
    /// Without a slot, or where the rate or the service time is not a number above 0.
    pub fn new(slots: u32, rate: f64, service: f64) -> Result<OfferedLoad, QueueingError> {
        some("slot", slots)?;
        positive("the rate", rate)?;
        positive("the service time", service)?;
        positive("the offered work", rate * service)?;
        Ok(OfferedLoad { slots, rate, service })
    }

    /// The load that keeps `slots` slots busy for the share `utilisation` of the time, in units of
    /// the service time.
    #[cfg(test)]
    pub(crate) fn of_utilisation(slots: u32, utilisation: f64) -> OfferedLoad {
        OfferedLoad::new(slots, utilisation * f64::from(slots), 1.0).unwrap()
    }

    /// `c`.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// `λ`, arrivals per unit of time.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// `s`.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// Offered work `a = λ·s`, in slots (Erlangs).
    pub fn work(&self) -> f64 {
        self.rate * self.service
    }

    /// `ρ = a / c`: the share of the time a slot is busy, where that is below 1.
    pub fn utilisation(&self) -> f64 {
        self.work() / f64::from(self.slots)
    }

    /// The same load if it can be carried for ever.
    ///
    /// # Errors
    /// If the utilisation is 1 or more.
    pub fn steady(self) -> Result<OfferedLoad, QueueingError> {
        let utilisation = self.utilisation();
        if utilisation < 1.0 { Ok(self) } else { Err(QueueingError::NoSteadyState { utilisation }) }
    }

    /// The load of one of `workers` workers, where each arrival goes to one of them at random and
    /// stays: the same utilisation on `slots / workers` slots. A Poisson process that is thinned at
    /// random is Poisson (Kingman, Poisson Processes, 5.1), so each worker is a queue of its own,
    /// and waits while its neighbour idles.
    ///
    /// # Errors
    /// If the slots cannot be divided among the workers.
    pub fn of_one_worker(self, workers: u32) -> Result<OfferedLoad, QueueingError> {
        if !self.slots.is_multiple_of(some("worker", workers)?) {
            return Err(QueueingError::Undetermined("workers that do not divide the slots"));
        }
        OfferedLoad::new(self.slots / workers, self.rate / f64::from(workers), self.service)
    }

    /// Response time of a request that arrives at `time` in an overload, for any distribution once
    /// the overload has lasted a while: `s + (ρ - 1)·t`.
    pub fn response_in_overload(&self, time: f64) -> f64 {
        self.service + (self.utilisation() - 1.0).max(0.0) * time
    }
}

/// The highest rate of a server, from an overload at `rate` in which response times grow by `slope`
/// seconds per second of arrival time: `λ / (1 + slope)`, with the 95 % interval that follows from
/// the slope's standard error. It needs neither the slots nor the service time, and should agree
/// with the completed rate. Multiplied by the service time, it is the number of slots.
///
/// # Errors
/// If the rate is not above 0, or the slope or its error is below 0.
pub fn capacity(rate: f64, slope: f64, error: f64) -> Result<Estimate, QueueingError> {
    let value = positive("the rate", rate)? / (1.0 + not_negative("the slope", slope)?);
    Ok(Estimate {
        value,
        half_width: value * 1.96 * not_negative("the slope's error", error)? / (1.0 + slope),
    })
}

/// The steady state of a queue, exactly.
pub trait SteadyQueue {
    /// Its load.
    fn load(&self) -> OfferedLoad;

    /// Mean wait of all requests, including those that do not wait.
    fn mean_wait(&self) -> f64;

    /// The share of requests that wait longer than `x`.
    fn wait_above(&self, x: f64) -> f64;

    /// The share of requests whose response time (wait and service) exceeds `x`.
    fn response_above(&self, x: f64) -> f64;

    /// Mean response time.
    fn mean_response(&self) -> f64 {
        self.mean_wait() + self.load().service
    }

    /// The quantile of the wait.
    ///
    /// # Errors
    /// If `at` is not in 0 to 1.
    fn wait_quantile(&self, at: f64) -> Result<f64, QueueingError> {
        Ok(numeric::quantile(|x| self.wait_above(x), share(at)?, self.load().service))
    }

    /// The quantile of the response time.
    ///
    /// # Errors
    /// If `at` is not in 0 to 1.
    fn response_quantile(&self, at: f64) -> Result<f64, QueueingError> {
        Ok(numeric::quantile(|x| self.response_above(x), share(at)?, self.load().service))
    }
}

/// M/M/c: Poisson arrivals, exponential service. The wait is 0 with probability `1 - C`, and
/// otherwise exponential with rate `η = c·μ - λ`.
///
/// Source: A. K. Erlang, "Solution of some problems in the theory of probabilities of significance
/// in automatic telephone exchanges" (1917); Kleinrock, Queueing Systems I, 3.4 and 3.5. First
/// come, first served; a steady state needs ρ < 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErlangQueue {
    load: OfferedLoad,
    /// Erlang C: the share of arrivals that wait.
    delayed: f64,
}

impl ErlangQueue {
    /// Erlang C from Erlang B, the share `B` that finds all slots busy if none can wait: `B(0) = 1,
    /// B(k) = a·B(k-1) / (k + a·B(k-1))`, `C = B / (1 - ρ·(1 - B))`. This needs no factorials,
    /// which would overflow.
    ///
    /// # Errors
    /// If there is no steady state.
    pub fn new(load: OfferedLoad) -> Result<ErlangQueue, QueueingError> {
        let load = load.steady()?;
        let blocked = blocked(load.slots, load.work());
        Ok(ErlangQueue { load, delayed: blocked / (1.0 - load.utilisation() * (1.0 - blocked)) })
    }

    /// `η`: the rate at which waits end.
    fn wait_ends(&self) -> f64 {
        f64::from(self.load.slots) / self.load.service - self.load.rate
    }
}

/// Erlang B.
fn blocked(slots: u32, work: f64) -> f64 {
    (1..=slots).fold(1.0, |blocked, k| work * blocked / (f64::from(k) + work * blocked))
}

impl SteadyQueue for ErlangQueue {
    fn load(&self) -> OfferedLoad {
        self.load
    }

    /// `C / (cμ - λ)`.
    fn mean_wait(&self) -> f64 {
        self.delayed / self.wait_ends()
    }

    fn wait_above(&self, x: f64) -> f64 {
        if x < 0.0 { 1.0 } else { self.delayed * (-self.wait_ends() * x).exp() }
    }

    /// `e^(-μx) + C·μ·(e^(-ηx) - e^(-μx)) / (μ - η)`, whose limit at `μ = η` is `e^(-μx)·(1 +
    /// C·μ·x)`.
    fn response_above(&self, x: f64) -> f64 {
        exponential_response_above(x, 1.0 / self.load.service, self.delayed, self.wait_ends())
    }
}

fn exponential_response_above(x: f64, mu: f64, delayed: f64, eta: f64) -> f64 {
    if x < 0.0 {
        return 1.0;
    }
    let difference = (mu - eta) * x;
    let in_service = (-mu * x).exp();
    // (e^(difference) - 1) / difference, without cancellation near 0 or overflow far from it.
    let waited = if difference.abs() < 1.0 {
        let part = if difference == 0.0 { 1.0 } else { difference.exp_m1() / difference };
        in_service * mu * x * part
    } else {
        mu * ((-eta * x).exp() - in_service) / (mu - eta)
    };
    (in_service + delayed * waited).min(1.0)
}

/// A utilisation of almost 0.
const AT_REST: f64 = 1e-6;

/// The highest utilisation at which `figure`, such as p99 of the response time, is at most `limit`;
/// to `width`, by bisection, because response times grow with the load. A load without a figure
/// does not keep the limit.
///
/// # Errors
/// If the figure exceeds `limit` at almost no load or has no value there, or a parameter is out of
/// its range.
pub fn highest_utilisation(
    slots: u32,
    service: f64,
    limit: f64,
    width: f64,
    figure: impl Fn(OfferedLoad) -> Result<f64, QueueingError>,
) -> Result<f64, QueueingError> {
    positive("the limit", limit)?;
    positive("the width", width)?;
    let at = |utilisation: f64| {
        OfferedLoad::new(slots, utilisation * f64::from(slots) / service, service)
    };
    let at_rest = figure(at(AT_REST)?)?;
    if at_rest > limit {
        return Err(QueueingError::OutOfReach { at_rest, limit });
    }
    let kept =
        |utilisation: f64| at(utilisation).and_then(&figure).is_ok_and(|figure| figure <= limit);
    let mut low = AT_REST;
    let mut high = 1.0;
    while high - low > width {
        let next = f64::midpoint(low, high);
        if kept(next) { low = next } else { high = next }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdc::ConstantServiceQueue;
    use proptest::prelude::*;

    fn assert_digits(what: &str, seen: f64, exact: f64, digits: i32) {
        // Half a unit in the last digit given.
        let unit = 10f64.powi(exact.abs().log10().floor() as i32 + 1 - digits);
        assert!((seen - exact).abs() <= 0.5001 * unit, "{what}: {seen}, exactly {exact}");
    }

    fn erlang(slots: u32, rho: f64) -> ErlangQueue {
        ErlangQueue::new(OfferedLoad::of_utilisation(slots, rho)).unwrap()
    }

    #[test]
    fn erlang_b_is_the_table() {
        for (slots, work, b) in [
            (1, 0.5, 0.333_333_333_333),
            (5, 3.0, 0.110_054_347_826),
            (10, 8.0, 0.121_661_064_253),
            (20, 18.0, 0.109_212_845_873),
            (100, 90.0, 0.026_957_380_464_4),
        ] {
            assert_digits("B", blocked(slots, work), b, 12);
        }
        assert_digits("C", erlang(100, 0.9).delayed, 0.216_940_480_906, 12);
    }

    #[test]
    fn an_unstable_queue_is_refused() {
        assert_eq!(OfferedLoad::new(0, 1.0, 1.0), Err(QueueingError::None("slot")));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(OfferedLoad::new(1, bad, 1.0), Err(QueueingError::OutOfRange { .. })));
            assert!(matches!(OfferedLoad::new(1, 1.0, bad), Err(QueueingError::OutOfRange { .. })));
        }
        // The product of two small numbers may round to 0.
        assert!(OfferedLoad::new(1, 1e-200, 1e-200).is_err());
        let full = OfferedLoad::new(5, 5.0, 1.0).unwrap();
        assert_eq!(ErlangQueue::new(full), Err(QueueingError::NoSteadyState { utilisation: 1.0 }));
        assert!(OfferedLoad::new(5, 4.999, 1.0).unwrap().steady().is_ok());
        assert!(
            erlang(5, 0.5).wait_quantile(1.0).is_err()
                && erlang(5, 0.5).wait_quantile(f64::NAN).is_err()
        );
        assert!(full.of_one_worker(3).is_err() && full.of_one_worker(0).is_err());
    }

    #[test]
    fn an_overload_grows_and_its_slope_is_the_capacity() {
        for (rho, time, expected) in [(1.1, 60.0, 6.0), (1.2, 8.0, 1.6), (0.9, 100.0, 0.0)] {
            let response = OfferedLoad::of_utilisation(5, rho).response_in_overload(time);
            assert!((response - 1.0 - expected).abs() < 1e-12);
        }
        // Puma 5.6.5, five threads, 60/s: the response time grew by 0.2264 s a second; the app held
        // a slot for 0.1022 s.
        let capacity = |slope, error| super::capacity(60.0, slope, error);
        let measured = capacity(0.2264, 0.001).unwrap();
        assert!(
            (measured.value - 48.92).abs() < 0.01 && (measured.value * 0.1022 - 5.0).abs() < 0.001
        );
        assert!((measured.half_width - measured.value * 1.96 * 0.001 / 1.2264).abs() < 1e-9);
        assert!(capacity(-0.5, 0.0).is_err() && capacity(0.2, -1.0).is_err());
    }

    /// attack.cr at 10/s against five threads that sleep for a second, as published: the first
    /// thirty requests, in ms.
    #[test]
    fn the_slope_of_a_published_overload_says_five_slots() {
        let times: Vec<f64> = "
            1084.256459 1003.922321 1007.010609 1006.996584 1006.848442
            1572.553522 1488.259955 1493.056372 1492.577039 1492.794815
            2058.5828 1973.825591 1979.109512 1977.648623 1978.068666
            2544.502687 2460.307499 2464.68821 2464.86035 2465.058777
            3031.285542 2947.01984 2950.920225 2950.153828 2950.326412
            3519.205594 3432.929646 3437.5964 3434.916412 3436.291459"
            .split_whitespace()
            .map(|time| time.parse().unwrap())
            .collect();
        // By least squares over arrivals `gap` ms apart.
        let slots = |gap: f64| {
            let at: Vec<f64> = (0..30).map(|k| (f64::from(k) - 14.5) * gap).collect();
            let mean = times.iter().sum::<f64>() / 30.0;
            let spread = at.iter().map(|t| t * t).sum::<f64>();
            let slope = at.iter().zip(&times).map(|(t, r)| t * (r - mean)).sum::<f64>() / spread;
            let off: f64 = at.iter().zip(&times).map(|(t, r)| (r - mean - slope * t).powi(2)).sum();
            let capacity =
                super::capacity(1000.0 / gap, slope, (off / 28.0 / spread).sqrt()).unwrap();
            (capacity.value, capacity.half_width)
        };
        // Its steps are 485.848 ms high, and a slot is held for at least the second that the app
        // sleeps: so the gap was 102.83 ms, and the rate not 10/s. With the pace that was asked for
        // the server would have 5.14 slots.
        let (value, half_width) = slots((1000.0 - 485.848) / 5.0);
        assert!(
            (value - 5.0).abs() < 0.1 && (value - 5.0).abs() < half_width,
            "{value} ± {half_width}"
        );
        assert!(slots(100.0).0 > value);
    }

    #[test]
    fn a_workers_own_queue_has_its_slots_and_their_utilisation() {
        for rho in [0.5, 0.8, 0.95] {
            let own = OfferedLoad::of_utilisation(20, rho).of_one_worker(4).unwrap();
            let off = (own.utilisation() - rho).abs() + (own.service() - 1.0).abs();
            assert!(off < 1e-12 && own.slots() == 5, "{own:?}");
        }
    }

    #[test]
    fn no_load_keeps_a_limit_that_is_missed_at_rest() {
        let exponential = |load| ErlangQueue::new(load)?.response_quantile(0.99);
        let beyond = highest_utilisation(5, 1.0, 4.6, 1e-10, exponential);
        assert!(matches!(beyond, Err(QueueingError::OutOfReach { .. })));
        let of_constant = |slots, share, limit| {
            let figure = |load| ConstantServiceQueue::new(load)?.response_quantile(share);
            highest_utilisation(slots, 1.0, limit, 1e-10, figure)
        };
        assert!(matches!(of_constant(5, 0.99, 0.9), Err(QueueingError::OutOfReach { .. })));
        assert!(of_constant(5, 1.0, 2.0).is_err() && of_constant(0, 0.5, 2.0).is_err());
        assert!(matches!(of_constant(500, 0.5, 2.0), Err(QueueingError::TooMany { .. })));
    }

    proptest! {
        #[test]
        fn every_answer_is_a_number(slots in 1u32..5000, rho in 1e-6f64..0.999_999, share in 0.0f64..0.9999) {
            let queue = erlang(slots, rho);
            prop_assert!((0.0..=1.0).contains(&queue.delayed));
            let w = queue.wait_quantile(share).unwrap();
            let r = queue.response_quantile(share).unwrap();
            prop_assert!(w.is_finite() && r.is_finite() && w >= 0.0 && r >= w);
        }

        #[test]
        fn the_formula_is_continuous_where_both_rates_are_one(
            delayed in 0.0f64..1.0, x in 0.0f64..30.0, off in -1e-9f64..1e-9
        ) {
            let limit = (-x).exp() * (1.0 + delayed * x);
            prop_assert!((exponential_response_above(x, 1.0, delayed, 1.0 + off) - limit).abs() < 1e-8);
        }

        #[test]
        fn a_response_is_never_shorter_than_its_wait(delayed in 0.0f64..1.0, rate in 0.01f64..10.0, x in 0.0f64..100.0) {
            let above = exponential_response_above(x, 1.0, delayed, rate);
            prop_assert!((0.0..=1.0).contains(&above) && above >= delayed * (-rate * x).exp() - 1e-12);
        }
    }
}
