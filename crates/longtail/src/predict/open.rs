//! Random arrivals: M/D/c and M/M/c exactly, other laws simulated.

use queueing::simulate::{Queues, Simulated, exponential, open};
use queueing::{Invalid, Load, capacity, erlang, mdc, split, staircase};
use sink::DelayLaw;

use super::{Figure, Line, Server, Times};
use crate::args::Goal;

/// A simulated objective is searched to this part of the slots.
const SIMULATED_WIDTH: f64 = 0.002;

/// Above this a simulation is doubted.
const NEARLY_FULL: f64 = 0.9;

/// Shared and split. A single worker has but one queue.
pub(super) fn lines(server: &Server, rate: f64, goal: Option<Goal>) -> Result<(Vec<Line>, Vec<String>), Invalid> {
    let load = Load::new(server.slots(), rate, server.service())?;
    let mut lines = vec![line(server, "shared", load, load, goal)?];
    if server.workers > 1 {
        lines.push(line(server, "split", load, split::a_workers_load(load, server.workers)?, goal)?);
    }
    let mut notes = Vec::new();
    let full = load.utilisation();
    if full >= 1.0 {
        let after_a_minute = staircase::overload(load, 60.0)?;
        notes.push(format!(
            "overload: no steady state. Response times grow by {} s in each second; after a minute they are {} s",
            report::number::significant(full - 1.0),
            report::number::significant(after_a_minute)
        ));
    }
    if let (Some(goal), true) = (goal, lines.iter().all(|line| line.highest_rate_per_s.is_none())) {
        notes.push(format!("no rate keeps {}: a request takes longer without any load", goal.objective));
    }
    let simulated = |line: &Line| line.how.ends_with("simulated");
    let nearly = |line: &Line| {
        let highest = line.highest_rate_per_s.map_or(0.0, |highest| highest / load.rate() * full);
        simulated(line) && full.max(highest) > NEARLY_FULL
    };
    if lines.iter().any(nearly) {
        notes.push(
            "simulated this near to full, a run may not have forgotten how it began: true waits may be longer"
                .to_owned(),
        );
    }
    Ok((lines, notes))
}

/// How a load is answered.
enum Answer {
    Constant(mdc::Mdc),
    Exponential(queueing::exponential_wait::ExponentialWait),
    Simulated(Simulated),
}

impl Answer {
    fn of(server: &Server, load: Load) -> Result<Answer, Invalid> {
        match server.law {
            DelayLaw::Constant(_) if load.slots() <= mdc::MOST_SLOTS => Ok(Answer::Constant(mdc::Mdc::new(load)?)),
            DelayLaw::Exponential { .. } => Ok(Answer::Exponential(erlang::wait(load)?)),
            _ => {
                let gaps = exponential(1.0 / load.rate());
                Ok(Answer::Simulated(open(load, Queues::Shared, &gaps, &server.draws(), server.effort())?))
            }
        }
    }

    fn how(&self, slots: u32) -> String {
        match self {
            Answer::Constant(_) => format!("M/D/{slots}, exact"),
            Answer::Exponential(_) => format!("M/M/{slots}, exact"),
            Answer::Simulated(_) => format!("M/G/{slots}, simulated"),
        }
    }

    fn wait(&self, share: f64) -> Result<Figure, Invalid> {
        match self {
            Answer::Constant(queue) => queue.wait_quantile(share).map(Figure::exact),
            Answer::Exponential(wait) => wait.wait_quantile(share).map(Figure::exact),
            Answer::Simulated(simulated) => simulated.wait_quantile(share).map(Figure::estimated),
        }
    }

    fn response(&self, share: f64) -> Result<Figure, Invalid> {
        match self {
            Answer::Constant(queue) => queue.response_quantile(share).map(Figure::exact),
            Answer::Exponential(wait) => wait.response_quantile(share).map(Figure::exact),
            Answer::Simulated(simulated) => simulated.response_quantile(share).map(Figure::estimated),
        }
    }

    fn means(&self) -> (Figure, Figure) {
        match self {
            Answer::Constant(queue) => (Figure::exact(queue.mean_wait()), Figure::exact(queue.mean_response())),
            Answer::Exponential(wait) => (Figure::exact(wait.mean_wait()), Figure::exact(wait.mean_response())),
            Answer::Simulated(simulated) => {
                (Figure::estimated(simulated.mean_wait()), Figure::estimated(simulated.mean_response()))
            }
        }
    }

    /// The goal's figure in seconds; of a simulation the upper end of its interval.
    fn figure(&self, goal: Goal) -> Result<f64, Invalid> {
        let figure = match goal.share {
            Some(share) => self.response(share)?,
            None => self.means().1,
        };
        Ok((figure.ns + figure.half_width_ns.unwrap_or(0)) as f64 / 1e9)
    }
}

/// `all` is what the server gets, `one` what a queue of its gets.
fn line(server: &Server, queue: &'static str, all: Load, one: Load, goal: Option<Goal>) -> Result<Line, Invalid> {
    let utilisation = all.utilisation();
    let answer = if utilisation < 1.0 { Some(Answer::of(server, one)?) } else { None };
    let times = |of: &dyn Fn(&Answer) -> Result<Times, Invalid>| answer.as_ref().map(of).transpose();
    let highest = match goal {
        None => None,
        Some(goal) => highest(server, one.slots(), goal)?.map(|full| full * f64::from(all.slots()) / all.service()),
    };
    Ok(Line {
        queue,
        how: answer.as_ref().map_or_else(|| "overload".to_owned(), |answer| answer.how(one.slots())),
        rate_per_s: all.rate().min(f64::from(all.slots()) / all.service()),
        utilisation: utilisation.min(1.0),
        wait: times(&|answer| Times::of(answer.means().0, |share| answer.wait(share)))?,
        response: times(&|answer| Times::of(answer.means().1, |share| answer.response(share)))?,
        highest_rate_per_s: highest,
    })
}

/// The highest utilisation of one queue that keeps the goal; `None` where none does.
fn highest(server: &Server, slots: u32, goal: Goal) -> Result<Option<f64>, Invalid> {
    let simulated =
        !matches!(server.law, DelayLaw::Constant(_) | DelayLaw::Exponential { .. }) || slots > mdc::MOST_SLOTS;
    let width = if simulated { SIMULATED_WIDTH } else { 1e-9 };
    let found =
        capacity::highest(slots, server.service(), goal.limit, width, |load| Answer::of(server, load)?.figure(goal));
    match found {
        Ok(full) => Ok(Some(full)),
        Err(Invalid::OutOfReach { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// A point of the plot.
pub(crate) struct Step {
    pub(crate) rate_per_s: f64,
    /// p99 of the response time for each queue: its name and the time in seconds.
    pub(crate) p99: Vec<(&'static str, f64)>,
}

/// p99 from a tenth to nearly all of what the slots can do.
///
/// # Errors
/// As the prediction.
pub(crate) fn steps(server: &Server) -> Result<Vec<Step>, Invalid> {
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95]
        .into_iter()
        .map(|full| {
            let rate = full * f64::from(server.slots()) / server.service();
            let all = Load::new(server.slots(), rate, server.service())?;
            let p99 = |load| Ok::<f64, Invalid>(Answer::of(server, load)?.response(0.99)?.ns as f64 / 1e9);
            let mut p99s = vec![("shared", p99(all)?)];
            if server.workers > 1 {
                p99s.push(("split", p99(split::a_workers_load(all, server.workers)?)?));
            }
            Ok(Step { rate_per_s: rate, p99: p99s })
        })
        .collect()
}
