//! The server took its connections in turns, several requests in a row for each, while others
//! waited to be accepted.

use model::{Diagnostic, Run, ServiceTime};

use super::{Assessment, Grade};
use crate::words::counted;

/// With turns, the first request of a turn waits and the others don't, so half of all requests take
/// less than this share of what each would take first come, first served ("in order"). That
/// excludes a server that serves in order but closes each connection after ten responses.
const SHORT: f64 = 0.8;
/// Requests that wait take at least this many times the time in order. In order, with 15
/// connections on 10 threads, each waits for one other every second time.
const LONG: f64 = 1.5;
/// Fewer turns than this may be chance.
const LEAST_TURNS: u64 = 5;
/// Turns are alike if this share of them has the same number of responses, more than one. If random
/// requests take the app longer, most turns have only one response.
const ALIKE: f64 = 0.5;
/// If the app's times vary by less than this (standard deviation over mean), a long response time
/// means a wait.
const STEADY: f64 = 0.2;
/// With this many times as many connections as slots, every request waits if they are served in
/// order.
const ALL_WAIT: u32 = 2;
/// If every request waits, a quarter of them can't be within this factor of the time alone.
const QUICK: f64 = 1.25;
/// Turns of different lengths are reported if they average at least this many responses.
const IN_A_ROW: f64 = 1.25;
/// With fewer than this, of different lengths, it is not what a Puma before 7 does.
const FEW_IN_A_ROW: f64 = 3.0;

/// Whether the server served its connections in turns: a connection has one response that waited
/// and then some that did not, while other connections wait. With more connections than slots, most
/// requests then don't wait, and the first of each turn carries the whole wait: percentiles jump,
/// the rate doesn't. `alone`: what one request takes alone, if that is known.
pub(super) fn ask(
    run: &Run,
    slots: u32,
    keep_alive: bool,
    alone: Option<&ServiceTime>,
) -> Option<Diagnostic> {
    let turns = &run.tally.turns;
    if !keep_alive || run.connections <= slots || turns.count() < LEAST_TURNS {
        return None;
    }
    let waiting = run.connections - slots;
    let usual = turns.usual()?;
    let is_far_from_order = is_far_from_order(run)?;
    if is_far_from_order && usual.answers > 1 && usual.share >= ALIKE {
        let answers_a_turn = f64::from(usual.answers);
        return Some(Diagnostic::ServedInTurns { answers_a_turn, varies: false, waiting });
    }
    let alone = alone.filter(|alone| alone.variation < STEADY)?;
    let quarter = run.tally.response_time.quantile(0.25)?.as_secs_f64();
    let are_some_quick =
        run.connections >= ALL_WAIT * slots && quarter <= QUICK * alone.mean.as_secs_f64();
    let answers_a_turn = turns.mean()?;
    (answers_a_turn >= IN_A_ROW && (is_far_from_order || are_some_quick))
        .then_some(Diagnostic::ServedInTurns { answers_a_turn, varies: true, waiting })
}

/// Whether half of the requests take much less time than in order, and the first of each turn much
/// more.
fn is_far_from_order(run: &Run) -> Option<bool> {
    let in_order = f64::from(run.connections) / run.completed_rate().max(1e-9);
    let p50 = run.tally.response_time.quantile(0.5)?.as_secs_f64();
    let first = run.tally.turns.first.mean()?.as_secs_f64();
    Some(p50 < SHORT * in_order && first >= LONG * in_order)
}

/// Grade, sentence and hint.
pub(super) fn assess(answers_a_turn: f64, varies: bool, waiting: u32) -> Assessment {
    let grade = Grade::Doubtful;
    let on_average = if varies { ", on average," } else { "" };
    let sentence = format!(
        "the server took connections in turns: {answers_a_turn:.1} responses in a row{on_average} \
            for each, while {} waited",
        counted(waiting, "other")
    );
    let hint = if varies && answers_a_turn < FEW_IN_A_ROW {
        "the first response of each turn carries the whole wait, so high percentiles jump with the \
            number of connections while the rate stays; compare with -k"
    } else {
        "Puma before 7 does this: the first response of each turn carries the whole wait, so high \
            percentiles jump with the number of connections while the rate stays; compare with -k \
            or Puma 7"
    };
    Assessment::new(grade, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    /// The canonical run with these turns and connections. Half of the requests take a third of the
    /// time that each would take in order.
    fn run(turns: &[(u32, u64)], connections: u32) -> Run {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.connections = connections;
        run.tally.completed_in_window /= 3;
        let in_order = Nanos::from_secs_f64(f64::from(connections) / run.completed_rate());
        for (answers, times) in turns {
            (0..*times).for_each(|_| run.tally.turns.record(*answers, in_order * 2));
        }
        run
    }

    fn seen(run: &Run, keep_alive: bool, alone: Option<&ServiceTime>) -> Option<(f64, bool)> {
        match ask(run, 10, keep_alive, alone)? {
            Diagnostic::ServedInTurns { answers_a_turn, varies, .. } => {
                Some((answers_a_turn, varies))
            }
            _ => None,
        }
    }

    #[test]
    fn turns_count_only_while_other_connections_wait() {
        // Puma 5.6: turns of ten, some longer. Puma 3.12: turns of ten, twenty, thirty.
        let of_ten: &[(u32, u64)] = &[(10, 84), (11, 9), (12, 3)];
        let of_tens: &[(u32, u64)] = &[(10, 24), (20, 5), (30, 1), (40, 5)];
        for (turns, connections, keep_alive, expected) in [
            (of_ten, 16, true, Some((10.0, false))),
            (of_tens, 16, true, Some((10.0, false))),
            (of_ten, 10, true, None),
            (of_ten, 16, false, None),
            (&[(10, 4)], 16, true, None),
            (&[(1, 400)], 16, true, None),
            // An app with some slow requests.
            (&[(1, 30), (2, 25), (3, 20), (5, 20), (9, 15), (15, 10)], 16, true, None),
        ] {
            let run = run(turns, connections);
            assert_eq!(seen(&run, keep_alive, None), expected, "{turns:?} {connections}");
        }
    }

    #[test]
    fn turns_of_different_lengths_count_if_the_app_is_steady() {
        let run = run(&[(1, 60), (2, 20), (3, 20)], 16);
        let steady = ServiceTime { answers: 50, variation: 0.05, ..ServiceTime::default() };
        assert_eq!(seen(&run, true, Some(&steady)), Some((1.6, true)));
        // Puma 6.6.1 with `max_fast_inline 1`: most requests wait, a quarter does not.
        let quarter = run.tally.response_time.quantile(0.25).unwrap();
        let mut most_wait = self::run(&[(1, 60), (2, 20), (3, 20)], 20);
        most_wait.tally.turns.first.sum = most_wait.tally.turns.first.sum / 3 * 2;
        let as_quick = ServiceTime { mean: quarter, ..steady };
        assert_eq!(seen(&most_wait, true, Some(&as_quick)), Some((1.6, true)));
        let quicker = ServiceTime { mean: quarter / 2, ..steady };
        assert_eq!(seen(&most_wait, true, Some(&quicker)), None, "all wait");
        let varied = ServiceTime { variation: 1.0, ..steady };
        assert_eq!(seen(&run, true, Some(&varied)), None);
        assert_eq!(seen(&run, true, None), None);
    }

    #[test]
    fn a_server_that_closes_after_ten_responses_has_no_turns() {
        let mut run = run(&[], 16);
        run.tally.closed_by_server = run.tally.all_responses() / 10;
        assert_eq!(seen(&run, true, None), None);
        // 15 connections on 10 threads, in order: each request waits for one other every second
        // time.
        let mut run = self::run(&[(2, 300)], 15);
        run.tally.turns.first.sum = run.tally.turns.first.sum / 3 * 2;
        assert_eq!(seen(&run, true, None), None);
    }
}
