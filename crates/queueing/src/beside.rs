//! Theory beside a run of a closed loop: what each order of service says of it, and how well that fits what was measured.
//!
//! The percentiles from the median upwards are held against the models, each with its 95 % interval where the run has one: the low
//! ones are of those that did not wait, in every model alike.

use model::run::PERCENTILES;
use model::theory::{DisciplineFit, DisciplineForecast, NotJudged, PercentileRange, Theory, not_the_servers};
use model::{Discipline, Nanos, Run};

use crate::discipline::{self, Comparison, Connections, Dealing, Figure, Measured, Recording, Scatter, Verdict};
use crate::{Invalid, polling};

/// What is known of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its workers, each with a queue of its own where the order of service says so.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// For how long a request holds a slot, by the user's word or measured.
    pub service_time: Nanos,
    /// How that scatters.
    pub scatter: Scatter,
    /// For how long a connection stays.
    pub connections_are: Connections,
    /// How connections come to the workers, where each has a queue.
    pub dealing: Dealing,
    /// Requests of one connection in a row, where there are turns.
    pub turn: u32,
    /// Connections that each worker was seen to hold; `None` where that was not seen.
    pub by_worker: Option<Vec<u32>>,
    /// The order of service that it ought to have.
    pub expected: Option<Discipline>,
}

/// How far off a figure may be and still fit, as a ratio: what is not slots (reading a request, the way to a thread) is up to a
/// tenth of the times that are usual here, and the orders of service differ by more.
pub const TOLERANCE: f64 = 1.15;

/// The percentiles that are shown.
pub const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// More connections than this are not tried: with scatter they are simulated.
const MOST_CONNECTIONS: u32 = 5000;

/// A run is over too soon where it has fewer rounds of all connections, or fewer turns of ten, than these.
const ROUNDS: f64 = 5.0;
const TURNS: f64 = 2.0;
/// A turn without an end is never over: a run need not last for two of them.
const MOST_OF_A_TURN: u32 = 10 * polling::TURN;

/// Theory beside `run`; `None` where there is none: no slot, no service time, or very many connections.
pub fn theory(run: &Run, server: &Server) -> Option<Theory> {
    if run.connections > MOST_CONNECTIONS {
        return None;
    }
    let figures = figures(run);
    let measured = Measured {
        connections: run.connections,
        connections_are: server.connections_are,
        workers: server.workers,
        threads: server.threads,
        service: server.service_time.as_secs_f64(),
        scatter: server.scatter,
        rate: run.completed_rate(),
        quantiles: figures,
        recording: Recording::AsItWas,
        by_worker: server.by_worker.clone(),
        dealing: server.dealing,
        turn: server.turn,
    };
    of(&measured, server.expected, not_judged(run, server, &measured)).ok()
}

fn not_judged(run: &Run, server: &Server, measured: &Measured) -> Option<NotJudged> {
    let slots = server.workers.saturating_mul(server.threads);
    let round = measured.service * (f64::from(run.connections) / f64::from(slots.max(1))).max(1.0);
    let turn = measured.service * f64::from(measured.turn.min(MOST_OF_A_TURN));
    let is_short = run.connections > slots
        && (run.measured.as_secs_f64() < TURNS * turn || run.elapsed.as_secs_f64() < ROUNDS * round);
    let no_percentiles = || measured.quantiles.iter().all(|figure| figure.share <= 0.5) || measured.rate <= 0.0;
    not_the_servers(run)
        .or(is_short.then_some(NotJudged::TooShort))
        .or_else(|| no_percentiles().then_some(NotJudged::NoPercentiles))
}

/// The run's percentiles from the median upwards, with their intervals.
fn figures(run: &Run) -> Vec<Figure> {
    let figure = |share: f64| {
        let time = run.response_time(share).time()?;
        let interval = run.statistics.as_ref().and_then(|statistics| statistics.interval(share));
        let known = interval.filter(|interval| interval.inflation.is_some());
        Some(match known {
            Some(known) => Figure {
                share,
                low: known.low.unwrap_or(time).as_secs_f64(),
                high: known.high.map_or(f64::INFINITY, Nanos::as_secs_f64),
            },
            None => Figure::exactly(share, time.as_secs_f64()),
        })
    };
    PERCENTILES.into_iter().filter(|share| (0.5..0.995).contains(share)).filter_map(figure).collect()
}

fn of(measured: &Measured, expected: Option<Discipline>, not_judged: Option<NotJudged>) -> Result<Theory, Invalid> {
    let (fits, shapes) = if not_judged.is_none() {
        let compare = discipline::compare(measured, TOLERANCE)?;
        (Some(compare), Some(discipline::compare_shapes(measured, TOLERANCE)?))
    } else {
        (None, None)
    };
    let fit = |verdict: &Option<Verdict>, discipline: Discipline| {
        let comparison = verdict.as_ref()?.comparisons.iter().find(|it| it.discipline == discipline)?;
        fit_of(comparison)
    };
    let all = Discipline::ALL.into_iter().filter(|it| *it != Discipline::Split || measured.workers > 1);
    let forecasts = all.map(|discipline| {
        let said = discipline::forecast(measured, discipline, &SHOWN)?;
        let allowed = |(quantile, (low, high)): (f64, (f64, f64))| PercentileRange {
            quantile,
            low: Nanos::from_secs_f64(low),
            high: Nanos::from_secs_f64(high),
        };
        Ok(DisciplineForecast {
            discipline,
            rate: said.rate,
            mean: Nanos::from_secs_f64(f64::from(measured.connections) / said.rate),
            percentiles: SHOWN.into_iter().zip(said.quantiles).map(allowed).collect(),
            fit: fit(&fits, discipline),
            shape: fit(&shapes, discipline),
        })
    });
    Ok(Theory {
        expected,
        tolerance: TOLERANCE,
        not_judged,
        by_worker: measured.by_worker.clone(),
        turn: (measured.turn != polling::TURN).then_some(measured.turn),
        forecasts: forecasts.collect::<Result<_, Invalid>>()?,
    })
}

/// `None` where it is infinitely far off: JSON knows no such number.
fn fit_of(comparison: &Comparison) -> Option<DisciplineFit> {
    comparison.worst.is_finite().then(|| DisciplineFit {
        held: Nanos::from_secs_f64(comparison.held),
        worst: comparison.worst,
        worst_at: comparison.worst_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::theory::Resemblance;
    use model::{Exchange, Outcome, Tally, Window};

    /// A run of a hundred seconds on 2 x 5 slots of 0.1 s, whose `n`-th answer of each ten took these times.
    fn run(connections: u32, tenths: [f64; 10], rate: u64) -> Run {
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(1000) };
        let mut tally = Tally::new(window, connections as usize);
        for n in 0..rate * 100 {
            let due = Nanos::from_millis(n * 1000 / rate);
            let ended = due + Nanos::from_secs_f64(tenths[(n % 10) as usize]);
            let exchange = Exchange { due, sent: due, ended, received_bytes: 0, outcome: Outcome::Answered(200) };
            tally.record(&exchange, (n % u64::from(connections)) as usize);
        }
        let length = Nanos::from_secs(100);
        Run::recorded(connections, f64::from(connections) / 10.0, tally, length, length)
    }

    const SERVER: Server = Server {
        workers: 2,
        threads: 5,
        service_time: Nanos::from_millis(100),
        scatter: Scatter::Constant,
        connections_are: Connections::Kept,
        dealing: Dealing::ByChance,
        turn: polling::TURN,
        by_worker: None,
        expected: Some(Discipline::Turns),
    };

    fn turns(first: f64) -> [f64; 10] {
        let mut tenths = [0.1; 10];
        tenths[9] = first;
        tenths
    }

    #[test]
    fn turns_of_ten_are_known_and_their_forecast_is_right() {
        // Thirty on ten slots: one in ten waits for the turns of the others, 10 (3 - 1) + 1 = 21 service times.
        let theory = theory(&run(30, turns(2.1), 100), &SERVER).unwrap();
        assert_eq!(theory.resemblance(), Resemblance::These(vec![Discipline::Turns]), "{theory:?}");
        let said = theory.shown().unwrap();
        assert!((said.rate - 100.0).abs() < 1e-9 && said.mean == Nanos::from_millis(300), "{said:?}");
        let ends: Vec<_> = said.percentiles.iter().map(|it| (it.low.0 / 1_000_000, it.high.0 / 1_000_000)).collect();
        assert_eq!(ends, [(100, 100), (2100, 2100), (2100, 2100)]);
    }

    #[test]
    fn slots_that_are_held_for_longer_are_known_by_the_shape() {
        let slow = turns(2.1).map(|time| time * 1.4);
        let theory = theory(&run(30, slow, 71), &SERVER).unwrap();
        assert_eq!(theory.resemblance(), Resemblance::ShapeOf(vec![Discipline::Turns]), "{theory:?}");
        let held = theory.forecast(Discipline::Turns).unwrap().shape.unwrap().held;
        assert!((135..=145).contains(&(held.0 / 1_000_000)), "{held:?}");
    }

    #[test]
    fn what_no_model_says_is_nothing() {
        let mut odd = turns(1.0);
        odd[8] = 1.3;
        let theory = theory(&run(30, odd, 100), &SERVER).unwrap();
        assert_eq!(theory.resemblance(), Resemblance::Nothing, "{theory:?}");
    }

    #[test]
    fn a_run_that_is_too_short_or_has_no_percentiles_is_not_judged() {
        let mut short = run(30, turns(2.1), 100);
        short.measured = Nanos::from_secs(1);
        let why = |run: &Run| theory(run, &SERVER).unwrap().not_judged;
        assert_eq!(why(&short), Some(NotJudged::TooShort));
        short.connections = 10;
        assert_eq!(why(&short), None, "no turn is waited for");
        let mut void = run(30, turns(2.1), 100);
        void.tally = Tally::new(void.tally.window, 30);
        assert_eq!(why(&void), Some(NotJudged::NoPercentiles));
        assert_eq!(theory(&run(30, turns(2.1), 100), &Server { service_time: Nanos::ZERO, ..SERVER }), None);
    }
}
