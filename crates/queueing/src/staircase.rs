//! Even arrivals, constant service: D/D/c. Below the capacity nobody ever waits; above it the response times climb a
//! staircase, and its slope tells the capacity and the slots without a count of answers.
//!
//! Source: by induction over the recursion of Kiefer and Wolfowitz ("On the theory of queues with many servers", Trans.
//! AMS 78, 1955): each arrival takes the slot that is free first. First come, first served; the system begins empty.

use crate::{Invalid, Load, check};

/// Response time of the `k`-th of a burst that arrives at once, `k` from 1: `s·⌈k/c⌉`.
///
/// # Errors
/// Without a slot, or where `k` is 0 or the service time not above 0.
pub fn burst(k: u32, slots: u32, service: f64) -> Result<f64, Invalid> {
    check::some("request", k)?;
    check::some("slot", slots)?;
    Ok(check::positive("the service time", service)? * f64::from(k.div_ceil(slots)))
}

/// Response time of the `k`-th arrival, `k` from 1, of an even pace: `s + ⌊(k-1)/c⌋·(s - c·δ)` with gaps of `δ` between
/// arrivals, and `s` where the slots keep up.
///
/// # Errors
/// Where `k` is 0.
pub fn paced(k: u32, load: Load) -> Result<f64, Invalid> {
    check::some("request", k)?;
    Ok(load.service() + f64::from((k - 1) / load.slots()) * step(load))
}

/// The height of a stair: `s - c·δ`, or 0 where the slots keep up. Its width is `c` arrivals.
pub fn step(load: Load) -> f64 {
    (load.service() - f64::from(load.slots()) / load.rate()).max(0.0)
}

/// Response time of whoever arrives at time `t`, in the long run of an overload by any law: `s + (ρ - 1)·t`.
///
/// # Errors
/// Where the time is negative.
pub fn overload(load: Load, time: f64) -> Result<f64, Invalid> {
    check::not_negative("the time", time)?;
    Ok(load.service() + (load.utilisation() - 1.0).max(0.0) * time)
}

/// Highest rate that a server can do, from the slope `dR/dt` of the response time over the time of arrival in an overload
/// at `rate`: `λ / (1 + slope)`. It needs neither the slots nor the service time, and should agree with the completed rate.
///
/// # Errors
/// Where the rate is not above 0, or the slope is: below 0 it is no overload.
pub fn capacity(rate: f64, slope: f64) -> Result<f64, Invalid> {
    Ok(check::positive("the rate", rate)? / (1.0 + check::not_negative("the slope", slope)?))
}

/// A figure from data, with the half width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inferred {
    /// The best guess.
    pub value: f64,
    /// How far off it may be.
    pub half_width: f64,
}

/// Capacity and, with the service time, slots, from a slope with its standard error: `λ/(1+slope)` and that times `s`. The
/// interval is that of the slope.
///
/// # Errors
/// As [`capacity`]; where the error is negative or the service time not above 0.
pub fn inferred(
    rate: f64,
    slope: f64,
    error: f64,
    service: Option<f64>,
) -> Result<(Inferred, Option<Inferred>), Invalid> {
    let value = capacity(rate, slope)?;
    let half_width = value * 1.96 * check::not_negative("the slope's error", error)? / (1.0 + slope);
    let slots = service
        .map(|service| {
            let service = check::positive("the service time", service)?;
            Ok(Inferred { value: value * service, half_width: half_width * service })
        })
        .transpose()?;
    Ok((Inferred { value, half_width }, slots))
}

/// Slots that a server seems to have, from an overload: `s·λ / (1 + slope)`, the slope fitted to `responses` over the times
/// of `arrivals` by least squares. With `arrivals` as they were meant and not as they were, a generator's shortfall looks
/// like more slots. The interval takes the distances from the line as independent, so a staircase makes it too wide rather
/// than too narrow.
///
/// # Errors
/// With fewer than ten requests, lists of different lengths, a service time not above 0, or where nothing grows.
pub fn inferred_slots(arrivals: &[f64], responses: &[f64], service: f64) -> Result<Inferred, Invalid> {
    check::positive("the service time", service)?;
    let n = arrivals.len();
    if n < 10 || responses.len() != n {
        return Err(Invalid::TooFew {
            what: "requests with an arrival and a response time",
            given: n.min(responses.len()),
            needed: 10,
        });
    }
    let count = n as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (at, took) = (mean(arrivals), mean(responses));
    let spread: f64 = arrivals.iter().map(|t| (t - at).powi(2)).sum();
    let span = arrivals[n - 1] - arrivals[0];
    check::positive("the time from the first arrival to the last", span)?;
    check::positive("the spread of the arrivals", spread)?;
    let slope = arrivals.iter().zip(responses).map(|(t, r)| (t - at) * (r - took)).sum::<f64>() / spread;
    let off: f64 = arrivals.iter().zip(responses).map(|(t, r)| (r - took - slope * (t - at)).powi(2)).sum();
    let error = (off / (count - 2.0) / spread).sqrt();
    if slope <= 2.0 * error || !slope.is_finite() {
        return Err(Invalid::Undetermined("response times that do not grow"));
    }
    let rate = (count - 1.0) / span;
    let value = service * capacity(rate, slope)?;
    Ok(Inferred { value, half_width: value * 1.96 * error / (1.0 + slope) })
}

/// A staircase found in response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stairs {
    /// Requests a stair: the slots.
    pub slots: u32,
    /// The first stair: the service time.
    pub first: f64,
    /// The height of a stair.
    pub step: f64,
    /// Share of the scatter that the staircase explains, 0 to 1.
    pub explained: f64,
}

impl Stairs {
    /// The gap between arrivals that makes this staircase, where a slot is held for `service`: `(s - step) / c`. If the
    /// generator meant another, it did not keep its pace.
    pub fn gap(&self, service: f64) -> f64 {
        (service - self.step) / f64::from(self.slots)
    }
}

/// The staircase in the response times of an overload at an even pace, in order of arrival from the very first: the width
/// for which a straight line over the stairs' numbers leaves the least. At least three whole stairs must be there, of two
/// or more requests each.
///
/// # Errors
/// With fewer than nine requests, or where no staircase explains half of the scatter.
pub fn stairs(responses: &[f64]) -> Result<Stairs, Invalid> {
    let n = responses.len();
    if n < 9 {
        return Err(Invalid::TooFew { what: "requests", given: n, needed: 9 });
    }
    let count = n as f64;
    let mean = responses.iter().sum::<f64>() / count;
    let all: f64 = responses.iter().map(|r| (r - mean).powi(2)).sum();
    check::positive("the scatter of the response times", all)?;
    let fit = |width: usize| {
        let middle = (0..n).map(|k| (k / width) as f64).sum::<f64>() / count;
        let (mut spread, mut both) = (0.0, 0.0);
        for (k, response) in responses.iter().enumerate() {
            let stair = (k / width) as f64 - middle;
            spread += stair * stair;
            both += stair * (response - mean);
        }
        let step = both / spread;
        Stairs { slots: width as u32, first: mean - step * middle, step, explained: both * both / spread / all }
    };
    (2..=n / 3)
        .map(fit)
        .filter(|stairs| stairs.step > 0.0 && stairs.explained > 0.5)
        .max_by(|a, b| a.explained.total_cmp(&b.explained))
        .ok_or(Invalid::Undetermined("response times without a staircase"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_twelve_on_five() {
        let all: Vec<_> = (1..=12).map(|k| burst(k, 5, 1.0).unwrap()).collect();
        assert_eq!(all, [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
        assert!((all.iter().sum::<f64>() / 12.0 - 1.75).abs() < 1e-15);
        assert!(burst(0, 5, 1.0).is_err() && burst(1, 0, 1.0).is_err() && burst(1, 1, f64::NAN).is_err());
    }

    #[test]
    fn the_steps_are_the_table() {
        for (gap, step_height) in [(0.1, 0.5), (0.104, 0.48), (0.15, 0.25), (0.2, 0.0), (0.25, 0.0)] {
            let load = Load::new(5, 1.0 / gap, 1.0).unwrap();
            assert!((step(load) - step_height).abs() < 1e-12);
            for k in 1..=30 {
                let expected = 1.0 + f64::from((k - 1) / 5) * step_height;
                assert!((paced(k, load).unwrap() - expected).abs() < 1e-12);
            }
        }
        for (rho, time, expected) in [(1.1, 60.0, 6.0), (1.2, 8.0, 1.6), (0.9, 100.0, 0.0)] {
            let load = Load::of_utilisation(5, rho).unwrap();
            assert!((overload(load, time).unwrap() - 1.0 - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_slope_of_a_measured_overload_is_its_capacity() {
        // Puma 5.6.5, five threads, 60/s: the response time grew by 0.2264 s a second; the app held a slot for 0.1022 s.
        let capacity = capacity(60.0, 0.2264).unwrap();
        assert!((capacity - 48.92).abs() < 0.01 && (capacity * 0.1022 - 5.0).abs() < 0.001);
        assert!(super::capacity(60.0, -0.5).is_err());
        let (does, slots) = inferred(60.0, 0.2264, 0.001, Some(0.1022)).unwrap();
        assert!((does.value - capacity).abs() < 1e-9 && (slots.unwrap().value - 5.0).abs() < 0.001);
        assert!((does.half_width - capacity * 1.96 * 0.001 / 1.2264).abs() < 1e-9);
        assert!(inferred(60.0, 0.2, -1.0, None).is_err() && inferred(60.0, 0.2, 0.0, Some(0.0)).is_err());
    }

    #[test]
    fn slots_come_back_from_what_they_made() {
        for slots in [1, 2, 5, 20] {
            let load = Load::of_utilisation(slots, 1.5).unwrap();
            let responses: Vec<_> = (1..=20 * slots).map(|k| paced(k, load).unwrap()).collect();
            let arrivals: Vec<_> = (0..responses.len()).map(|k| k as f64 / load.rate()).collect();
            let inferred = inferred_slots(&arrivals, &responses, 1.0).unwrap();
            assert!((inferred.value - f64::from(slots)).abs() <= inferred.half_width + 1e-9, "{slots}: {inferred:?}");
            assert!(inferred.half_width < 0.05 * f64::from(slots));
            if slots > 1 {
                let stairs = stairs(&responses).unwrap();
                assert_eq!(stairs.slots, slots);
                assert!((stairs.explained - 1.0).abs() < 1e-12 && (stairs.gap(1.0) - 1.0 / load.rate()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn where_nothing_grows_there_is_nothing_to_infer() {
        let arrivals: Vec<_> = (0..30).map(f64::from).collect();
        let flat: Vec<_> = (0..30).map(|k| 1.0 + 0.01 * f64::from(k % 3)).collect();
        assert!(matches!(inferred_slots(&arrivals, &flat, 1.0), Err(Invalid::Undetermined(_))));
        assert!(matches!(stairs(&flat), Err(Invalid::Undetermined(_))));
        assert!(stairs(&[1.0; 30]).is_err() && stairs(&[1.0; 3]).is_err());
        assert!(inferred_slots(&[1.0; 30], &flat, 1.0).is_err() && inferred_slots(&arrivals, &flat[1..], 1.0).is_err());
    }
}
