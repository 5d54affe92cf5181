//! How long a request takes: the law of the bundled server's delays, and of the service times that
//! theory predicts with. A random delay is a pure function of the seed and the request's number, so
//! that anybody can say afterwards how long each request should have taken.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use crate::pace::uniform;
use crate::units::Nanos;

/// What a random number is drawn for. Each use has its own stream of the seed, so a fault does not
/// change the delays. A draw depends only on the request's number, not on the thread that serves it
/// or on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawStream {
    /// How long a request takes.
    Delay,
    /// What goes wrong with it.
    Fault,
    /// Which worker a connection belongs to.
    Worker,
}

/// The `number`-th draw of that stream, from (0, 1].
pub fn draw(seed: u64, stream: DrawStream, number: u64) -> f64 {
    // `uniform` mixes the seed, so neighbouring seeds are independent.
    uniform(seed.wrapping_mul(4).wrapping_add(stream as u64), number)
}

/// A share of all requests, from none (0) to all (1), written `2%` or `0.02`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestShare(f64);

impl RequestShare {
    /// The share `part` of 1; `None` unless it is from 0 to 1.
    pub fn new(part: f64) -> Option<RequestShare> {
        (0.0..=1.0).contains(&part).then_some(RequestShare(part))
    }

    /// As a number from 0 to 1.
    pub fn part(self) -> f64 {
        self.0
    }
}

/// As a fraction: the shortest text that parses to the same share.
impl fmt::Display for RequestShare {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl FromStr for RequestShare {
    type Err = String;

    fn from_str(text: &str) -> Result<RequestShare, String> {
        let (number, whole) =
            text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: Option<f64> = number.parse().ok();
        number.and_then(|number| RequestShare::new(number / whole)).ok_or_else(|| {
            format!("'{text}' is not a share of all requests: write 2% or 0.02, from 0 to 100%")
        })
    }
}

/// The distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayLaw {
    /// Always the same.
    Constant(Nanos),
    /// Exponential: -mean · ln u.
    Exponential {
        /// Its mean.
        mean: Nanos,
    },
    /// Uniform between two times.
    Uniform {
        /// The shortest.
        from: Nanos,
        /// The longest.
        to: Nanos,
    },
    /// One of two times.
    Bimodal {
        /// The usual time.
        common: Nanos,
        /// The other time.
        other: Nanos,
        /// The share of requests with the other time.
        share: RequestShare,
    },
    /// Log-normal: median · e^(σ·z), z standard normal.
    LogNormal {
        /// Its median.
        median: Nanos,
        /// Standard deviation of its logarithm.
        sigma: f64,
    },
}

impl From<Nanos> for DelayLaw {
    fn from(delay: Nanos) -> DelayLaw {
        DelayLaw::Constant(delay)
    }
}

impl DelayLaw {
    /// The delay of request `number`.
    #[inline]
    pub fn of(&self, seed: u64, number: u64) -> Nanos {
        let u = |number| draw(seed, DrawStream::Delay, number);
        match *self {
            DelayLaw::Constant(delay) => delay,
            DelayLaw::Exponential { mean } => scaled(mean, -u(number).ln()),
            DelayLaw::Uniform { from, to } => from + scaled(to.saturating_sub(from), u(number)),
            DelayLaw::Bimodal { common, other, share } => {
                if u(number) <= share.part() {
                    other
                } else {
                    common
                }
            }
            DelayLaw::LogNormal { median, sigma } => {
                // Box and Muller (1958): two draws make one normal deviate,
                // z = √(-2 ln u) · cos 2πv.
                let radius = u(number.wrapping_mul(2));
                let angle = u(number.wrapping_mul(2).wrapping_add(1));
                scaled(median, (sigma * (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()).exp())
            }
        }
    }

    /// The law's mean.
    pub fn mean(&self) -> Nanos {
        match *self {
            DelayLaw::Constant(delay) => delay,
            DelayLaw::Exponential { mean } => mean,
            DelayLaw::Uniform { from, to } => scaled(from + to, 0.5),
            DelayLaw::Bimodal { common, other, share } => {
                scaled(common, 1.0 - share.part()) + scaled(other, share.part())
            }
            DelayLaw::LogNormal { median, sigma } => scaled(median, (sigma * sigma / 2.0).exp()),
        }
    }

    /// The coefficient of variation: standard deviation / mean.
    pub fn variation(&self) -> f64 {
        let mean = self.mean().as_secs_f64();
        match *self {
            DelayLaw::Constant(_) => 0.0,
            DelayLaw::Exponential { .. } => 1.0,
            DelayLaw::Uniform { from, to } => {
                to.saturating_sub(from).as_secs_f64() / 12f64.sqrt() / mean
            }
            DelayLaw::Bimodal { common, other, share } => {
                let distance = common.as_secs_f64() - other.as_secs_f64();
                (share.part() * (1.0 - share.part())).sqrt() * distance.abs() / mean
            }
            DelayLaw::LogNormal { sigma, .. } => (sigma * sigma).exp_m1().sqrt(),
        }
    }
}

/// `time · factor`, to the nanosecond.
fn scaled(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor).round() as u64)
}

/// As it is typed: the text parses to the same law.
impl fmt::Display for DelayLaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayLaw::Constant(delay) => write!(out, "{delay}"),
            DelayLaw::Exponential { mean } => write!(out, "exp:{mean}"),
            DelayLaw::Uniform { from, to } => write!(out, "uniform:{from}:{to}"),
            DelayLaw::Bimodal { common, other, share } => {
                write!(out, "bimodal:{common}:{other}:{share}")
            }
            DelayLaw::LogNormal { median, sigma } => write!(out, "lognormal:{median}:{sigma}"),
        }
    }
}

impl FromStr for DelayLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<DelayLaw, String> {
        let time = |text: &str| text.parse::<Nanos>().ok();
        let parsed = || match text.trim().split(':').collect::<Vec<_>>()[..] {
            [delay] | ["constant", delay] => time(delay).map(DelayLaw::Constant),
            ["exp", mean] => Some(DelayLaw::Exponential { mean: time(mean)? }),
            ["uniform", from, to] => {
                let from = time(from)?;
                let to = time(to)?;
                (from <= to).then_some(DelayLaw::Uniform { from, to })
            }
            ["bimodal", common, other, share] => Some(DelayLaw::Bimodal {
                common: time(common)?,
                other: time(other)?,
                share: share.parse().ok()?,
            }),
            ["lognormal", median, sigma] => {
                let sigma =
                    sigma.parse().ok().filter(|sigma: &f64| (0.0..=10.0).contains(sigma))?;
                Some(DelayLaw::LogNormal { median: time(median)?, sigma })
            }
            _ => None,
        };
        parsed().ok_or_else(|| {
            format!(
                "'{text}' is not a delay: write 1ms, exp:5ms (its mean), uniform:1ms:9ms, \
                 bimodal:1ms:50ms:2% or lognormal:5ms:0.5 (median, sigma)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COUNT: u64 = 2000;

    fn law(text: &str) -> DelayLaw {
        text.parse().unwrap()
    }

    fn sample(delay: &DelayLaw, seed: u64) -> Vec<f64> {
        let mut sample: Vec<_> =
            (0..COUNT).map(|number| delay.of(seed, number).as_secs_f64()).collect();
        sample.sort_by(f64::total_cmp);
        sample
    }

    /// The Anderson-Darling statistic of a sorted sample against the distribution function `below`.
    /// If none of its parameters is estimated, the 1 % critical value is 3.857 (Stephens 1974).
    fn anderson_darling(sample: &[f64], below: impl Fn(f64) -> f64) -> f64 {
        let n = sample.len() as f64;
        let below = |at: usize| below(sample[at]).clamp(1e-12, 1.0 - 1e-12);
        let term = |i: usize| {
            (2.0 * i as f64 + 1.0) * (below(i).ln() + (1.0 - below(sample.len() - 1 - i)).ln())
        };
        -n - (0..sample.len()).map(term).sum::<f64>() / n
    }

    /// The standard normal distribution function, within 1e-7 (Abramowitz and Stegun 26.2.17).
    fn normal_below(z: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
        let polynomial =
            [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
        let sum: f64 = (1..).zip(polynomial).map(|(power, b)| b * t.powi(power)).sum();
        let above = (-z * z / 2.0).exp() / TAU.sqrt() * sum;
        if z < 0.0 { above } else { 1.0 - above }
    }

    /// If the law is right, one seed in a hundred exceeds the 1 % critical value; of 100 seeds, at
    /// most four with probability 0.997. If it is wrong, nearly all do.
    fn assert_follows(text: &str, below: impl Fn(f64) -> f64) {
        let statistics = (1..=100).map(|seed| anderson_darling(&sample(&law(text), seed), &below));
        let exceeding: Vec<_> = statistics.filter(|statistic| *statistic > 3.857).collect();
        assert!(exceeding.len() <= 4, "{text}: A² = {exceeding:?}");
        assert!(exceeding.iter().all(|statistic| *statistic < 8.0), "{text}: A² = {exceeding:?}");
    }

    #[test]
    fn delays_follow_their_laws() {
        assert_follows("exp:5ms", |x| 1.0 - (-x / 0.005).exp());
        assert_follows("uniform:1ms:9ms", |x| (x - 0.001) / 0.008);
        assert_follows("lognormal:5ms:0.8", |x| normal_below((x / 0.005).ln() / 0.8));
    }

    #[test]
    fn a_bimodal_law_has_two_times_in_their_shares() {
        for seed in 1..=5 {
            let delays: Vec<_> =
                (0..100_000).map(|number| law("bimodal:1ms:50ms:2%").of(seed, number)).collect();
            let others = delays.iter().filter(|delay| **delay == Nanos::from_millis(50)).count();
            assert!(delays.iter().all(|delay| [1, 50].map(Nanos::from_millis).contains(delay)));
            // Binomial, 2000 ± 44: three and a half deviations.
            assert!(others.abs_diff(2000) < 155, "seed {seed}: {others}");
        }
    }

    #[test]
    fn the_mean_is_the_samples_mean() {
        for text in
            ["3ms", "exp:5ms", "uniform:1ms:9ms", "bimodal:1ms:50ms:0.02", "lognormal:5ms:0.5"]
        {
            let delay = law(text);
            let count = 200_000;
            let sum: Nanos = (0..count).map(|number| delay.of(7, number)).sum();
            let ratio = sum.as_secs_f64() / count as f64 / delay.mean().as_secs_f64();
            assert!((ratio - 1.0).abs() < 0.01, "{text}: {ratio}");
        }
    }

    #[test]
    fn the_variation_is_the_samples_variation() {
        for text in
            ["3ms", "exp:5ms", "uniform:1ms:9ms", "bimodal:1ms:50ms:0.02", "lognormal:5ms:0.5"]
        {
            let delay = law(text);
            let count = 200_000;
            let mean = delay.mean().as_secs_f64();
            let squares = (0..count)
                .map(|number| (delay.of(7, number).as_secs_f64() / mean - 1.0).powi(2))
                .sum::<f64>();
            let seen = (squares / f64::from(count as u32)).sqrt();
            assert!((seen - delay.variation()).abs() < 0.03, "{text}: {seen}");
        }
    }

    fn any_delay() -> impl Strategy<Value = DelayLaw> {
        let time = || (0u64..1 << 50).prop_map(Nanos);
        prop_oneof![
            time().prop_map(DelayLaw::Constant),
            time().prop_map(|mean| DelayLaw::Exponential { mean }),
            (time(), time()).prop_map(|(from, more)| DelayLaw::Uniform { from, to: from + more }),
            (time(), time(), 0.0f64..=1.0).prop_map(|(common, other, part)| DelayLaw::Bimodal {
                common,
                other,
                share: RequestShare::new(part).unwrap()
            }),
            (time(), 0.0f64..=10.0)
                .prop_map(|(median, sigma)| DelayLaw::LogNormal { median, sigma }),
        ]
    }

    proptest! {
        #[test]
        fn parse_of_print_is_itself(delay in any_delay()) {
            prop_assert_eq!(delay.to_string().parse(), Ok(delay));
        }
    }
}
