//! Open loops: what arrives at a given rate, whatever has become of the requests before. Poisson arrivals with exponential service
//! (M/M/c, Erlang's formulas), the highest load that keeps an objective, and overload, which has no steady state.

use model::forecast::Estimate;

use crate::error::{not_negative, positive, share, some};
use crate::{QueueingError, numeric};

/// `c` slots, arrivals at rate `λ`, each holding a slot for `s` on average, in one unit of time. A load may be more than
/// the slots can do; the formulas that need a steady state refuse it.
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

    /// The load that keeps `slots` slots busy for the share `utilisation` of the time, in units of the service time.
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

    /// The same load where it can be carried for ever.
    ///
    /// # Errors
    /// Where the utilisation is 1 or more.
    pub fn steady(self) -> Result<OfferedLoad, QueueingError> {
        let utilisation = self.utilisation();
        if utilisation < 1.0 { Ok(self) } else { Err(QueueingError::NoSteadyState { utilisation }) }
    }

    /// The load of one of `workers` workers, where each arrival goes to one of them at random and stays: the same utilisation on
    /// `slots / workers` slots. A Poisson process that is thinned at random is Poisson (Kingman, Poisson Processes, 5.1), so each
    /// worker is a queue of its own, and waits while its neighbour idles.
    ///
    /// # Errors
    /// Where the slots cannot be divided among the workers.
    pub fn of_one_worker(self, workers: u32) -> Result<OfferedLoad, QueueingError> {
        if !self.slots.is_multiple_of(some("worker", workers)?) {
            return Err(QueueingError::Undetermined("workers that do not divide the slots"));
        }
        OfferedLoad::new(self.slots / workers, self.rate / f64::from(workers), self.service)
    }

    /// Response time of whoever arrives at `time`, in the long run of an overload by any law: `s + (ρ - 1)·t`.
    pub fn response_in_overload(&self, time: f64) -> f64 {
        self.service + (self.utilisation() - 1.0).max(0.0) * time
    }
}

/// Highest rate that a server can do, from an overload at `rate` in which response times grow by `slope` seconds a second of the
/// time of arrival: `λ / (1 + slope)`, with the 95 % interval that follows from the slope's standard error. It needs neither the
/// slots nor the service time, and should agree with the completed rate. Times the service time it is the slots.
///
/// # Errors
/// Where the rate is not above 0, or the slope or its error is below 0.
pub fn capacity(rate: f64, slope: f64, error: f64) -> Result<Estimate, QueueingError> {
    let value = positive("the rate", rate)? / (1.0 + not_negative("the slope", slope)?);
    Ok(Estimate { value, half_width: value * 1.96 * not_negative("the slope's error", error)? / (1.0 + slope) })
}

/// The steady state of a queue, exactly.
pub trait SteadyQueue {
    /// What loads it.
    fn load(&self) -> OfferedLoad;

    /// Mean wait of all, those who do not wait included.
    fn mean_wait(&self) -> f64;

    /// The share that waits for longer than `x`.
    fn wait_above(&self, x: f64) -> f64;

    /// The share whose response time, wait and service, is longer than `x`.
    fn response_above(&self, x: f64) -> f64;

    /// Mean response time.
    fn mean_response(&self) -> f64 {
        self.mean_wait() + self.load().service
    }

    /// The quantile of the wait.
    ///
    /// # Errors
    /// Where `at` is not in 0 to 1.
    fn wait_quantile(&self, at: f64) -> Result<f64, QueueingError> {
        Ok(numeric::quantile(|x| self.wait_above(x), share(at)?, self.load().service))
    }

    /// The quantile of the response time.
    ///
    /// # Errors
    /// Where `at` is not in 0 to 1.
    fn response_quantile(&self, at: f64) -> Result<f64, QueueingError> {
        Ok(numeric::quantile(|x| self.response_above(x), share(at)?, self.load().service))
    }
}

/// M/M/c: Poisson arrivals, exponential service. The wait is none with probability `1 - C`, and else exponential with rate
/// `η = c·μ - λ`.
///
/// Source: A. K. Erlang, "Solution of some problems in the theory of probabilities of significance in automatic telephone
/// exchanges" (1917); Kleinrock, Queueing Systems I, 3.4 and 3.5. First come, first served; a steady state needs ρ < 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErlangQueue {
    load: OfferedLoad,
    /// Erlang C: the share of arrivals that wait.
    delayed: f64,
}

impl ErlangQueue {
    /// Erlang C by way of Erlang B, the share `B` that finds all slots busy where none can wait:
    /// `B(0) = 1, B(k) = a·B(k-1) / (k + a·B(k-1))`, `C = B / (1 - ρ·(1 - B))`. No factorial, no overflow.
    ///
    /// # Errors
    /// Where there is no steady state.
    pub fn new(load: OfferedLoad) -> Result<ErlangQueue, QueueingError> {
        let load = load.steady()?;
        let blocked = blocked(load.slots, load.work());
        Ok(ErlangQueue { load, delayed: blocked / (1.0 - load.utilisation() * (1.0 - blocked)) })
    }

    fn wait_ends(&self) -> f64 {
        f64::from(self.load.slots) / self.load.service - self.load.rate
    }
}

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

    /// `e^(-μx) + C·μ·(e^(-ηx) - e^(-μx)) / (μ - η)`, whose limit at `μ = η` is `e^(-μx)·(1 + C·μ·x)`.
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
    // (e^(difference) - 1) / difference, without its cancellation at 0 and its overflow far from it.
    let waited = if difference.abs() < 1.0 {
        let part = if difference == 0.0 { 1.0 } else { difference.exp_m1() / difference };
        in_service * mu * x * part
    } else {
        mu * ((-eta * x).exp() - in_service) / (mu - eta)
    };
    (in_service + delayed * waited).min(1.0)
}

/// Hardly any load.
const AT_REST: f64 = 1e-6;

/// The highest utilisation at which `figure`, such as p99 of the response time, is at most `limit`; to `width`, by bisection: a
/// response time grows with the load. A load at which there is no figure does not keep it.
///
/// # Errors
/// Where it is more than `limit` at hardly any load, has no value there, or a parameter is none.
pub fn highest_utilisation(
    slots: u32,
    service: f64,
    limit: f64,
    width: f64,
    figure: impl Fn(OfferedLoad) -> Result<f64, QueueingError>,
) -> Result<f64, QueueingError> {
    positive("the limit", limit)?;
    positive("the width", width)?;
    let at = |utilisation: f64| OfferedLoad::new(slots, utilisation * f64::from(slots) / service, service);
    let at_rest = figure(at(AT_REST)?)?;
    if at_rest > limit {
        return Err(QueueingError::OutOfReach { at_rest, limit });
    }
    let kept = |utilisation: f64| at(utilisation).and_then(&figure).is_ok_and(|figure| figure <= limit);
    let (mut low, mut high) = (AT_REST, 1.0);
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
    fn m_m_c_is_the_table() {
        // c, ρ, C, Wq, L, R50, R99, R99.9, in units of s.
        for (slots, rho, c, wq, l, r50, r99, r999) in [
            (1, 0.5, 0.5, 1.0, 1.0, 1.386_294_4, 9.210_340_4, 13.815_511),
            (2, 0.5, 0.333_333_333_3, 0.333_333_333_3, 1.333_333_333, 0.974_411_61, 5.665_960_7, 8.227_51),
            (2, 0.9, 0.852_631_578_9, 4.263_157_895, 9.473_684_211, 3.769_159_4, 23.344_43, 34.857_355),
            (5, 0.5, 0.130_371_297_5, 0.052_148_518_98, 2.630_371_297, 0.750_194_12, 4.688_442_3, 6.991_095_7),
            (5, 0.8, 0.554_112_554_1, 0.554_112_554_1, 6.216_450_216, 1.204_394_9, 6.079_662_5, 8.665_942),
            (5, 0.9, 0.762_493_220_7, 1.524_986_441, 11.362_438_99, 1.952_449_2, 10.049_781, 14.659_03),
            (5, 0.95, 0.877_799_024_7, 3.511_196_099, 21.428_181_47, 3.354_642_5, 19.050_058, 28.260_399),
            (10, 0.9, 0.668_731_524_1, 0.668_731_524_1, 15.018_583_72, 1.329_091_9, 6.249_876_7, 8.841_056_8),
            (20, 0.7, 0.093_561_243_47, 0.015_593_540_58, 14.218_309_57, 0.711_161_8, 4.623_709_5, 6.926_294_6),
            (20, 0.9, 0.550_769_004_8, 0.275_384_502_4, 22.956_921_04, 0.990_437_08, 5.041_623, 7.346_277_1),
            (20, 0.95, 0.755_401_232_1, 0.755_401_232_1, 33.352_623_41, 1.423_121_8, 6.364_343_2, 8.957_583_9),
        ] {
            let queue = erlang(slots, rho);
            assert_digits("C", queue.delayed, c, 10);
            assert_digits("Wq", queue.mean_wait(), wq, 10);
            assert_digits("L, by Little's law", queue.load().rate() * queue.mean_response(), l, 10);
            assert_digits("R50", queue.response_quantile(0.5).unwrap(), r50, 8);
            assert_digits("R99", queue.response_quantile(0.99).unwrap(), r99, 8);
            assert_digits("R99.9", queue.response_quantile(0.999).unwrap(), r999, 8);
        }
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
    fn what_has_no_answer_is_refused() {
        assert_eq!(OfferedLoad::new(0, 1.0, 1.0), Err(QueueingError::None("slot")));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(OfferedLoad::new(1, bad, 1.0), Err(QueueingError::OutOfRange { .. })));
            assert!(matches!(OfferedLoad::new(1, 1.0, bad), Err(QueueingError::OutOfRange { .. })));
        }
        // The product of two small numbers may be none.
        assert!(OfferedLoad::new(1, 1e-200, 1e-200).is_err());
        let full = OfferedLoad::new(5, 5.0, 1.0).unwrap();
        assert_eq!(ErlangQueue::new(full), Err(QueueingError::NoSteadyState { utilisation: 1.0 }));
        assert!(OfferedLoad::new(5, 4.999, 1.0).unwrap().steady().is_ok());
        assert!(erlang(5, 0.5).wait_quantile(1.0).is_err() && erlang(5, 0.5).wait_quantile(f64::NAN).is_err());
        assert!(full.of_one_worker(3).is_err() && full.of_one_worker(0).is_err());
    }

    #[test]
    fn an_overload_grows_and_its_slope_is_the_capacity() {
        for (rho, time, expected) in [(1.1, 60.0, 6.0), (1.2, 8.0, 1.6), (0.9, 100.0, 0.0)] {
            let response = OfferedLoad::of_utilisation(5, rho).response_in_overload(time);
            assert!((response - 1.0 - expected).abs() < 1e-12);
        }
        // Puma 5.6.5, five threads, 60/s: the response time grew by 0.2264 s a second; the app held a slot for 0.1022 s.
        let capacity = |slope, error| super::capacity(60.0, slope, error);
        let measured = capacity(0.2264, 0.001).unwrap();
        assert!((measured.value - 48.92).abs() < 0.01 && (measured.value * 0.1022 - 5.0).abs() < 0.001);
        assert!((measured.half_width - measured.value * 1.96 * 0.001 / 1.2264).abs() < 1e-9);
        assert!(capacity(-0.5, 0.0).is_err() && capacity(0.2, -1.0).is_err());
    }

    /// attack.cr at 10/s against five threads that sleep for a second, as published: the first thirty requests, in ms.
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
            let (mean, spread) = (times.iter().sum::<f64>() / 30.0, at.iter().map(|t| t * t).sum::<f64>());
            let slope = at.iter().zip(&times).map(|(t, r)| t * (r - mean)).sum::<f64>() / spread;
            let off: f64 = at.iter().zip(&times).map(|(t, r)| (r - mean - slope * t).powi(2)).sum();
            let capacity = super::capacity(1000.0 / gap, slope, (off / 28.0 / spread).sqrt()).unwrap();
            (capacity.value, capacity.half_width)
        };
        // Its steps are 485.848 ms high, and a slot is held for at least the second that the app sleeps: so the gap was 102.83 ms, and the
        // rate not 10/s. With the pace that was asked for the server would have 5.14 slots.
        let (value, half_width) = slots((1000.0 - 485.848) / 5.0);
        assert!((value - 5.0).abs() < 0.1 && (value - 5.0).abs() < half_width, "{value} ± {half_width}");
        assert!(slots(100.0).0 > value);
    }

    #[test]
    fn one_queue_for_all_against_one_a_worker_is_the_table() {
        // ρ, of w = 4, t = 5: M/M Wq split and shared, R99 both; M/D Wq both, R99 both, R99.9 both.
        for (rho, m, d) in [
            (
                0.5,
                [0.052_148_52, 0.000_373_112_6, 4.688_44, 4.605_58],
                [0.030_653_19, 0.000_280_198_7, 1.558_36, 1.0, 1.900_96, 1.104_87],
            ),
            (
                0.8,
                [0.554_112_6, 0.064_019_45, 6.079_66, 4.687_08],
                [0.289_060_0, 0.035_874_1, 2.937_44, 1.423_11, 4.006_32, 1.689_99],
            ),
            (
                0.95,
                [3.511_196, 0.755_401_2, 19.050_1, 6.364_34],
                [1.770_788, 0.385_730_8, 9.852_68, 3.149_13, 14.379_8, 4.280_91],
            ),
        ] {
            let shared = OfferedLoad::of_utilisation(20, rho);
            let both = [shared.of_one_worker(4).unwrap(), shared];
            let near =
                |seen: f64, exact: f64| assert!((seen / exact - 1.0).abs() < 6e-6, "{rho}: {seen}, exactly {exact}");
            for (at, load) in both.into_iter().enumerate() {
                let (scatters, sleeps) = (ErlangQueue::new(load).unwrap(), ConstantServiceQueue::new(load).unwrap());
                near(scatters.mean_wait(), m[at]);
                near(scatters.response_quantile(0.99).unwrap(), m[2 + at]);
                near(sleeps.mean_wait(), d[at]);
                near(sleeps.response_quantile(0.99).unwrap(), d[2 + at]);
                near(sleeps.response_quantile(0.999).unwrap(), d[4 + at]);
            }
        }
    }

    fn highest_of_exponential(slots: u32, share: f64, limit: f64) -> Result<f64, QueueingError> {
        let figure = |load| ErlangQueue::new(load)?.response_quantile(share);
        highest_utilisation(slots, 1.0, limit, 1e-10, figure)
    }

    fn highest_of_constant(slots: u32, share: f64, limit: f64) -> Result<f64, QueueingError> {
        let figure = |load| ConstantServiceQueue::new(load)?.response_quantile(share);
        highest_utilisation(slots, 1.0, limit, 1e-10, figure)
    }

    #[test]
    fn the_highest_load_of_constant_service_is_the_table() {
        // Each of the table's figures is that of the exact model, to its last digit: below it the limit is kept, above it is not.
        for (slots, share, rhos) in [
            (1, 0.95, [0.093_299, 0.287_048, 0.492_452, 0.693_772]),
            (1, 0.99, [0.019_707, 0.135_157, 0.319_502, 0.560_783]),
            (1, 0.999, [0.001_997, 0.044_068, 0.163_414, 0.405_629]),
            (2, 0.95, [0.310_003, 0.528_966, 0.706_490, 0.835_023]),
            (2, 0.99, [0.143_557, 0.361_989, 0.577_259, 0.754_721]),
            (2, 0.999, [0.045_228, 0.204_638, 0.424_304, 0.649_710]),
            (5, 0.95, [0.625_489, 0.770_942, 0.870_065, 0.930_392]),
            (5, 0.99, [0.465_918, 0.664_097, 0.805_269, 0.894_388]),
            (5, 0.999, [0.290_531, 0.530_044, 0.718_534, 0.844_560]),
            (10, 0.95, [0.787_138, 0.875_699, 0.932_055, 0.964_371]),
            (10, 0.99, [0.685_005, 0.813_391, 0.896_870, 0.945_587]),
            (10, 0.999, [0.551_032, 0.729_489, 0.848_114, 0.919_145]),
            (20, 0.95, [0.882_983, 0.934_295, 0.964_999, 0.981_908]),
            (20, 0.99, [0.823_945, 0.900_205, 0.946_538, 0.972_280]),
            (20, 0.999, [0.743_883, 0.852_870, 0.920_539, 0.958_615]),
        ] {
            for (limit, rho) in [1.5, 2.0, 3.0, 5.0].into_iter().zip(rhos) {
                let [below, above] = [rho - 1.1e-6, rho + 1.1e-6].map(|rho| {
                    let queue = ConstantServiceQueue::new(OfferedLoad::of_utilisation(slots, rho)).unwrap();
                    queue.response_quantile(share).unwrap()
                });
                assert!(below <= limit && limit <= above, "{slots}, p{share}, {limit}: {below}, {above} around {rho}");
            }
        }
        for (slots, rho) in [(5, 0.664_097), (20, 0.900_205)] {
            let found = highest_of_constant(slots, 0.99, 2.0).unwrap();
            assert!((found - rho).abs() < 1.1e-6, "{slots}: {found}, table {rho}");
        }
    }

    #[test]
    fn the_highest_load_of_exponential_service_is_the_table() {
        for (slots, rhos) in [
            (1, [0.020_176_6, 0.078_966_0, 0.232_471_6, 0.424_353_7, 0.539_483_0]),
            (5, [0.513_575_7, 0.668_849_1, 0.795_007_9, 0.867_919_8, 0.899_423_2]),
            (20, [0.809_871_6, 0.895_172_0, 0.943_541_9, 0.965_387_8, 0.974_038_5]),
        ] {
            for (limit, rho) in [4.7, 5.0, 6.0, 8.0, 10.0].into_iter().zip(rhos) {
                let found = highest_of_exponential(slots, 0.99, limit).unwrap();
                assert!((found - rho).abs() < 6e-7, "{slots}, {limit}: {found}, table {rho}");
            }
        }
    }

    #[test]
    fn what_is_too_slow_at_rest_cannot_be_kept() {
        assert!(matches!(highest_of_constant(5, 0.99, 0.9), Err(QueueingError::OutOfReach { .. })));
        assert!(matches!(highest_of_exponential(5, 0.99, 4.6), Err(QueueingError::OutOfReach { .. })));
        assert!(highest_of_constant(5, 1.0, 2.0).is_err() && highest_of_constant(0, 0.5, 2.0).is_err());
        assert!(matches!(highest_of_constant(500, 0.5, 2.0), Err(QueueingError::TooMany { .. })));
    }

    proptest! {
        #[test]
        fn every_answer_is_a_number(slots in 1u32..5000, rho in 1e-6f64..0.999_999, share in 0.0f64..0.9999) {
            let queue = erlang(slots, rho);
            prop_assert!((0.0..=1.0).contains(&queue.delayed));
            let (w, r) = (queue.wait_quantile(share).unwrap(), queue.response_quantile(share).unwrap());
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
