//! Which order of service was it? From the figures of a closed loop without think time: one queue for all, one for each
//! worker, Puma's turns of ten, or none of them.
//!
//! All three have the same mean response time (Little), so only the distribution tells. Each is predicted, and its figures
//! are held against the measured ones; a discipline fits where all of them do. Where there are no more connections than
//! slots, all are the same.

mod predict;

use crate::{Invalid, check};

/// An order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// One line for all slots: Puma up to 6 without keep-alive.
    Shared,
    /// Each worker has a line, and each connection its worker: Puma 7.
    Split,
    /// A thread stays with a connection for ten requests: Puma up to 6 with keep-alive.
    Turns,
}

/// How the time for which a request holds a slot scatters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scatter {
    /// Not at all: an app that sleeps.
    Constant,
    /// Somewhere between not at all and exponentially: most others.
    Some,
}

/// By whom the figures were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Each request as it was.
    AsItWas,
    /// With wrk's phantom samples.
    Wrk,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// `N`
    pub connections: u32,
    /// `w`
    pub workers: u32,
    /// `t`, of each worker.
    pub threads: u32,
    /// Time for which a request holds a slot, in seconds.
    pub service: f64,
    /// How that scatters.
    pub scatter: Scatter,
    /// Completed requests per second.
    pub rate: f64,
    /// Quantiles of the response time: share, seconds.
    pub quantiles: Vec<(f64, f64)>,
    /// Where they come from.
    pub recording: Recording,
    /// Connections of each worker, where that is known.
    pub by_worker: Option<Vec<u32>>,
}

/// One discipline's prediction beside the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Which.
    pub discipline: Discipline,
    /// The figure that is farthest off: its distance from what the discipline allows, as a ratio; 1 is within.
    pub worst: f64,
    /// The share of the quantile that is; `None`: it is the rate.
    pub worst_at: Option<f64>,
    /// The range that the discipline allows for each measured quantile, in seconds.
    pub allowed: Vec<(f64, f64)>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one and no other.
    One(Discipline),
    /// Several fit: the figures do not tell them apart.
    Several,
    /// None fits: something else is at work.
    None,
}

/// All three beside the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Shared, split, turns.
    pub comparisons: Vec<Comparison>,
    /// How far off a figure may be and still fit, as a ratio.
    pub tolerance: f64,
}

impl Verdict {
    /// Those that fit.
    pub fn fitting(&self) -> Vec<Discipline> {
        let fits = |comparison: &&Comparison| comparison.worst <= self.tolerance;
        self.comparisons.iter().filter(fits).map(|comparison| comparison.discipline).collect()
    }

    /// The one that it is.
    pub fn choice(&self) -> Choice {
        match self.fitting().as_slice() {
            [] => Choice::None,
            [one] => Choice::One(*one),
            _ => Choice::Several,
        }
    }
}

/// A quantile may be that of a share so much lower or higher: at the edge between two levels it is either.
const EDGE: f64 = 0.015;

/// Holds the three disciplines against what was measured. `tolerance` is a ratio, such as 1.1: a figure may be 10 % off.
///
/// Where the workers' connections are not known, those of a split pool are tried at random (200 draws from a fixed seed;
/// 8 with scatter), and one in twenty must fit: for an even split, which is the same as one queue, is rare by chance, but for two
/// workers not rare enough.
///
/// # Errors
/// Without a connection, worker, thread or quantile; where a figure is not above 0, the tolerance below 1, or the workers'
/// connections do not add up.
pub fn compare(measured: &Measured, tolerance: f64) -> Result<Verdict, Invalid> {
    check::some("connection", measured.connections)?;
    check::some("worker", measured.workers)?;
    check::some("thread", measured.threads)?;
    check::positive("the service time", measured.service)?;
    check::positive("the rate", measured.rate)?;
    check::not_negative("the tolerance less 1", tolerance - 1.0)?;
    check::some("quantile", u32::try_from(measured.quantiles.len()).unwrap_or(u32::MAX))?;
    for (share, time) in &measured.quantiles {
        check::share(*share)?;
        check::positive("a quantile", *time)?;
    }
    if let Some(by_worker) = &measured.by_worker {
        let sum: u32 = by_worker.iter().sum();
        if by_worker.len() != measured.workers as usize || sum != measured.connections {
            return Err(Invalid::Undetermined("workers' connections that do not add up"));
        }
    }
    let comparisons = [Discipline::Shared, Discipline::Split, Discipline::Turns]
        .into_iter()
        .map(|discipline| {
            let mut tried: Vec<_> = predict::all(measured, discipline)?
                .iter()
                .map(|prediction| held_against(measured, discipline, prediction))
                .collect();
            tried.sort_by(|a, b| a.worst.total_cmp(&b.worst));
            // Of many assignments one fits nearly anything: one in twenty must.
            let typical = tried.len() / 20;
            if tried.is_empty() { Err(Invalid::None("prediction")) } else { Ok(tried.swap_remove(typical)) }
        })
        .collect::<Result<_, _>>()?;
    Ok(Verdict { comparisons, tolerance })
}

fn held_against(measured: &Measured, discipline: Discipline, prediction: &predict::Prediction) -> Comparison {
    let ratio = |a: f64, b: f64| (a / b).max(b / a);
    let (mut worst, mut worst_at) = (ratio(measured.rate, prediction.rate), None);
    let mut allowed = Vec::new();
    for (share, time) in &measured.quantiles {
        let (low, high) = prediction.range((share - EDGE).max(0.0), (share + EDGE).min(1.0));
        let off = if *time < low {
            low / time
        } else if *time > high {
            time / high
        } else {
            1.0
        };
        if off > worst {
            (worst, worst_at) = (off, Some(*share));
        }
        allowed.push((low, high));
    }
    Comparison { discipline, worst, worst_at, allowed }
}

#[cfg(test)]
mod tests;
