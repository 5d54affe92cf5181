//! Connections that wait for their answers: the levels of constant service exactly, all else simulated.

use queueing::closed::{Level, levels, quantile};
use queueing::simulate::{Effort, Pool, closed, constant};
use queueing::{Invalid, assignment, polling, split};
use report::number;
use sink::DelayLaw;

use super::{Figure, Line, Server, Times};

/// Shared, split with the connections dealt evenly, and turns of ten, for which all wait in one line.
pub(super) fn lines(server: &Server, connections: u32, think: f64) -> Result<(Vec<Line>, Vec<String>), Invalid> {
    let even = dealt(connections, server.workers);
    let mut lines = vec![line(server, "shared", server.slots(), &[connections], 1, think)?];
    if server.workers > 1 {
        lines.push(line(server, "split", server.threads, &even, 1, think)?);
    }
    lines.push(line(server, "turns", server.slots(), &[connections], polling::TURN, think)?);
    let mut notes = vec!["turns: Puma up to 6 with keep-alive, ten requests of one connection in a row".to_owned()];
    if server.workers > 1 {
        notes.insert(0, "split: the connections dealt evenly to the workers".to_owned());
        if let (Ok(dealt), true) = (assignment::random(connections, server.workers, server.threads), think == 0.0) {
            notes.insert(
                1,
                format!(
                    "dealt at random the fullest worker has {} instead of {}, and the expected rate is {} % of all slots busy",
                    number::significant(dealt.fullest),
                    number::significant(f64::from(connections) / f64::from(server.workers)),
                    number::percent(dealt.rate)
                ),
            );
        }
    }
    Ok((lines, notes))
}

/// The connections of each worker that has any, dealt evenly.
pub(super) fn dealt(connections: u32, workers: u32) -> Vec<u32> {
    (0..workers)
        .map(|worker| connections / workers + u32::from(worker < connections % workers))
        .filter(|count| *count > 0)
        .collect()
}

fn line(
    server: &Server,
    queue: &'static str,
    threads: u32,
    pools: &[u32],
    turn: u32,
    think: f64,
) -> Result<Line, Invalid> {
    let service = server.service();
    // Turns of connections that do not divide have more levels than two.
    let divides = turn == 1 || pools.iter().all(|count| *count <= threads || count.is_multiple_of(threads));
    let exact = matches!(server.law, DelayLaw::Constant(_)) && think == 0.0 && divides;
    let (how, rate, wait, response) = if exact {
        let (levels, rate) = mixed(threads, pools, turn, service)?;
        let mean: f64 = levels.iter().map(|level| level.turns * level.share).sum();
        let at = |less: f64| move |turns: f64| Figure::exact((turns - less) * service);
        let times = |of: &dyn Fn(f64) -> Figure| Times::of(of(mean), |share| Ok(of(quantile(&levels, share)?)));
        ("levels, exact".to_owned(), rate, times(&at(1.0))?, times(&at(0.0))?)
    } else {
        let pools: Vec<Pool> = pools
            .iter()
            .map(|count| Pool { threads, connections: *count, turn, hold: polling::HOLD_SECONDS })
            .collect();
        let simulated = closed(&pools, &constant(think), &server.draws(), effort(server, &pools))?;
        let wait = Times::of(Figure::estimated(simulated.mean_wait()), |share| {
            simulated.wait_quantile(share).map(Figure::estimated)
        })?;
        let response = Times::of(Figure::estimated(simulated.mean_response()), |share| {
            simulated.response_quantile(share).map(Figure::estimated)
        })?;
        ("simulated".to_owned(), simulated.rate().value, wait, response)
    };
    Ok(Line {
        queue,
        how,
        rate_per_s: rate,
        utilisation: (rate * service / f64::from(server.slots())).min(1.0),
        wait: Some(wait),
        response: Some(response),
        highest_rate_per_s: None,
    })
}

/// Some rounds of everybody's turn to warm up, and as many to look at.
fn effort(server: &Server, pools: &[Pool]) -> Effort {
    let round = pools.iter().map(|pool| pool.connections).sum::<u32>() * 20;
    let usual = server.effort();
    Effort { requests: usual.requests.max(round), warm_up: usual.warm_up.max(round), ..usual }
}

/// The levels of all pools, each with the weight of its rate, ascending; and the rate of all.
fn mixed(threads: u32, pools: &[u32], turn: u32, service: f64) -> Result<(Vec<Level>, f64), Invalid> {
    let shares = split::closed(pools, threads, service)?;
    let rate: f64 = shares.iter().map(|share| share.rate).sum();
    let mut all = Vec::new();
    for share in shares {
        let of_pool = if turn == 1 {
            levels(share.connections, threads)?
        } else {
            polling::levels(share.connections, threads, turn)?
        };
        let weighted = |level: Level| Level { share: level.share * share.rate / rate, ..level };
        all.extend(of_pool.into_iter().map(weighted));
    }
    all.sort_by(|a, b| a.turns.total_cmp(&b.turns));
    Ok((all, rate))
}
