//! Which order of service was it? From the figures of a closed loop without think time: one queue for all, one for each
//! worker, Puma's turns of ten, or none of them.
//!
//! All three have the same mean response time (Little), so only the distribution tells. Each is predicted, and its figures
//! are held against the measured ones; a discipline fits where all of them do. Where there are no more connections than
//! slots, all are the same.

mod predict;

pub use model::Discipline;

use model::Nanos;

use crate::simulate::nearest_rank;
use crate::{Invalid, check};

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

/// For how long a connection stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// For all of its requests (keep-alive): with split queues it has its worker.
    Kept,
    /// For one: with split queues each request is dealt to a worker anew.
    OfOneRequest,
}

/// Which worker gets a connection, where each has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// Any, by chance.
    ByChance,
    /// By chance or nearly evenly, as the server may have it (round robin, whoever has least to do): it is not known.
    Unknown,
    /// The one that accepts first, each after the delay of Puma's throttle ([`crate::throttle`]), which is so long at the most.
    Throttled(Nanos),
}

/// A measured quantile: between two ends with some confidence, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The quantile, 0 to 1.
    pub share: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end; may be infinite.
    pub high: f64,
}

impl Figure {
    /// One time, taken as it is.
    pub fn exactly(share: f64, time: f64) -> Figure {
        Figure { share, low: time, high: time }
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// `N`
    pub connections: u32,
    /// For how long each stays.
    pub connections_are: Connections,
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
    /// Quantiles of the response time.
    pub quantiles: Vec<Figure>,
    /// Where they come from.
    pub recording: Recording,
    /// Connections that each worker held, where that is known: then they did not wait in one line for all.
    pub by_worker: Option<Vec<u32>>,
    /// How they come to the workers, where it is not.
    pub dealing: Dealing,
    /// Requests of one connection in a row, where there are turns: [`crate::polling::TURN`] unless the server says otherwise.
    pub turn: u32,
}

/// One discipline's prediction beside the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Which.
    pub discipline: Discipline,
    /// For how long a request holds a slot, as this was computed.
    pub held: f64,
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

/// All of them beside the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Shared, split, turns; with one worker split is shared, and left out.
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

/// What a discipline says of a closed loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Requests per second.
    pub rate: f64,
    /// For each share the least and the most that the quantile may be, in seconds.
    pub quantiles: Vec<(f64, f64)>,
}

/// What `discipline` says of the closed loop of `measured`, of whose figures none is used: the quantiles at `shares`. Where chance
/// deals the connections to workers, the rate is the median of the draws, and a quantile is within its ends for nine in ten.
///
/// # Errors
/// Without a connection, worker or thread, where the service time is not above 0 or a share no share.
pub fn forecast(measured: &Measured, discipline: Discipline, shares: &[f64]) -> Result<Forecast, Invalid> {
    check_situation(measured)?;
    for share in shares {
        check::share(*share)?;
    }
    let plain = Measured { recording: Recording::AsItWas, ..measured.clone() };
    let predictions = predict::all(&plain, discipline)?;
    let ascending = |of: &dyn Fn(&predict::Prediction) -> f64| {
        let mut all: Vec<f64> = predictions.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        if all.is_empty() { Err(Invalid::None("prediction")) } else { Ok(all) }
    };
    let quantile = |share: f64| {
        let ends = |prediction: &predict::Prediction| prediction.range(lower(share), upper(share));
        let low = nearest_rank(&ascending(&|prediction| ends(prediction).0)?, 0.05);
        Ok((low, nearest_rank(&ascending(&|prediction| ends(prediction).1)?, 0.95)))
    };
    Ok(Forecast {
        rate: nearest_rank(&ascending(&|prediction| prediction.rate)?, 0.5),
        quantiles: shares.iter().map(|share| quantile(*share)).collect::<Result<_, Invalid>>()?,
    })
}

/// The shares that a quantile may be taken for.
fn lower(share: f64) -> f64 {
    (share - EDGE).max(0.0)
}

fn upper(share: f64) -> f64 {
    (share + EDGE).min(1.0)
}

/// By what the disciplines are held against a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Rate and quantiles, with the service time that is known.
    All,
    /// The quantiles alone, with the service time that explains the rate.
    Shape,
}

/// Holds the disciplines against what was measured. `tolerance` is a ratio, such as 1.1: a figure may be 10 % off.
///
/// Where the workers' connections are not known, those of a split pool are dealt anew as [`Dealing`] says (200 draws from a fixed
/// seed; 8 with scatter), and one in twenty must fit: for an even split, which is the same as one queue, is rare by chance, but for
/// two workers not rare enough. Where they are known and there is more than one worker, one line for all cannot be: it is infinitely
/// far off as soon as somebody must wait.
///
/// # Errors
/// Without a connection, worker, thread or quantile; where a figure is not above 0, the tolerance below 1, or the workers'
/// connections do not add up.
pub fn compare(measured: &Measured, tolerance: f64) -> Result<Verdict, Invalid> {
    compare_by(By::All, measured, tolerance)
}

/// As [`compare`], by the shape of the distribution alone: each discipline has the service time that explains the measured rate.
/// So it knows a server whose slots are held for longer than the app takes, and says for how long. One that would be held for
/// shorter than the service time is no explanation, and infinitely far off.
///
/// # Errors
/// As [`compare`].
pub fn compare_shapes(measured: &Measured, tolerance: f64) -> Result<Verdict, Invalid> {
    compare_by(By::Shape, measured, tolerance)
}

fn check_situation(measured: &Measured) -> Result<(), Invalid> {
    check::some("connection", measured.connections)?;
    check::some("worker", measured.workers)?;
    check::some("thread", measured.threads)?;
    check::some("request in a turn", measured.turn)?;
    check::positive("the service time", measured.service)?;
    if let Some(by_worker) = &measured.by_worker {
        let sum: u32 = by_worker.iter().sum();
        if by_worker.len() != measured.workers as usize || sum != measured.connections {
            return Err(Invalid::Undetermined("workers' connections that do not add up"));
        }
    }
    Ok(())
}

fn compare_by(by: By, measured: &Measured, tolerance: f64) -> Result<Verdict, Invalid> {
    check_situation(measured)?;
    check::positive("the rate", measured.rate)?;
    check::not_negative("the tolerance less 1", tolerance - 1.0)?;
    check::some("quantile", u32::try_from(measured.quantiles.len()).unwrap_or(u32::MAX))?;
    for Figure { share, low, high } in &measured.quantiles {
        check::share(*share)?;
        check::positive("a quantile", *low)?;
        if high.is_nan() || high < low {
            return Err(Invalid::Undetermined("a quantile whose ends are the wrong way round"));
        }
    }
    let comparisons = Discipline::ALL
        .into_iter()
        .filter(|discipline| *discipline != Discipline::Split || measured.workers > 1)
        .map(|discipline| {
            let mut tried: Vec<_> = predict::all(measured, discipline)?
                .iter()
                .map(|prediction| held_against(measured, discipline, prediction, (by, tolerance)))
                .collect();
            tried.sort_by(|a, b| a.worst.total_cmp(&b.worst));
            // Of many assignments one fits nearly anything: one in twenty must.
            let typical = tried.len() / 20;
            let mut comparison =
                if tried.is_empty() { Err(Invalid::None("prediction")) } else { Ok(tried.swap_remove(typical)) }?;
            if discipline == Discipline::Shared && is_held_by_workers(measured) {
                (comparison.worst, comparison.worst_at) = (f64::INFINITY, None);
            }
            Ok(comparison)
        })
        .collect::<Result<_, _>>()?;
    Ok(Verdict { comparisons, tolerance })
}

/// Whether each worker was seen to hold connections of its own while some of them had to wait: those cannot have stood in one line
/// for all workers.
fn is_held_by_workers(measured: &Measured) -> bool {
    let slots = measured.workers.saturating_mul(measured.threads);
    measured.workers > 1 && measured.by_worker.is_some() && measured.connections > slots
}

fn held_against(
    measured: &Measured,
    discipline: Discipline,
    prediction: &predict::Prediction,
    (by, tolerance): (By, f64),
) -> Comparison {
    let ratio = |a: f64, b: f64| (a / b).max(b / a);
    // Times are in proportion to the service time, and the rate to its inverse.
    let (scale, mut worst) = match by {
        By::All => (1.0, ratio(measured.rate, prediction.rate)),
        By::Shape => {
            let scale = prediction.rate / measured.rate;
            (scale, if scale * tolerance < 1.0 { f64::INFINITY } else { 1.0 })
        }
    };
    let (mut worst_at, mut allowed) = (None, Vec::new());
    for Figure { share, low: measured_low, high: measured_high } in &measured.quantiles {
        let (low, high) = prediction.range(lower(*share), upper(*share));
        let (low, high) = (low * scale, high * scale);
        let off = if *measured_high < low {
            low / measured_high
        } else if *measured_low > high {
            measured_low / high
        } else {
            1.0
        };
        if off > worst {
            (worst, worst_at) = (off, Some(*share));
        }
        allowed.push((low, high));
    }
    Comparison { discipline, held: measured.service * scale, worst, worst_at, allowed }
}

#[cfg(test)]
mod tests;
