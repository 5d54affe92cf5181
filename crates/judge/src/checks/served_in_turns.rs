//! Connections were served in turns, some requests in a row each, while others waited to be
//! accepted.

use model::{Diagnostic, Run, ServiceTime};

use super::{Assessment, Grade};
use crate::words::counted;

/// In turns some requests wait and the others do not, so half of them take less than this part of
/// what each would in order. A server that closes each connection after ten responses, and serves
/// in order, has no turns.
const SHORT: f64 = 0.8;
/// And those that wait take at least so many times that: in order, of fifteen on ten each waits for
/// one other every second time.
const LONG: f64 = 1.5;
/// Fewer turns than this may be an accident.
const LEAST_TURNS: u64 = 5;
/// Turns are alike where this share has one number of responses, and more than one. Where some
/// requests take the app longer, and which is chance, most turns are of one.
const ALIKE: f64 = 0.5;
/// The times of an app that vary by less than this (standard deviation over mean) make nobody look
/// as if he had waited.
const STEADY: f64 = 0.2;
/// Where so many times as many connections as slots are open, nobody is served in order without a
/// wait,
const NOBODY_IS_QUICK: u32 = 2;
/// and a quarter of the requests are not within this of what one takes alone.
const QUICK: f64 = 1.25;
/// Turns that are not alike are worth a word from so many responses on, on average.
const IN_A_ROW: f64 = 1.25;

/// Whether a server served its connections in turns: on one connection a response that waited, and
/// then some that did not, while others waited. With more connections than slots most requests then
/// wait for nobody and the first of a turn carries the whole wait: percentiles jump, the rate does
/// not. `alone`: what one request takes alone, where that is known.
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
        run.connections >= NOBODY_IS_QUICK * slots && quarter <= QUICK * alone.mean.as_secs_f64();
    let answers_a_turn = turns.mean()?;
    (answers_a_turn >= IN_A_ROW && (is_far_from_order || are_some_quick))
        .then_some(Diagnostic::ServedInTurns { answers_a_turn, varies: true, waiting })
}

/// Whether half of the requests take much less than each would in order, and the first ones of the
/// turns much more.
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
            for one, while {} waited",
        counted(waiting, "other")
    );
    let hint = "as Puma before 7 does: the first response of each turn carries the whole \
            wait, so that high percentiles jump as connections rise and the rate stays; \
            compare with -k or Puma 7";
    Assessment::new(grade, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    /// The canonical run with these turns, of so many connections. Half of the requests take a
    /// third of what each would in order.
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
    fn turns_are_those_that_were_seen_while_others_waited() {
        // Puma 5.6: of ten, and some are longer; Puma 3.12: of ten, twenty, thirty.
        let of_ten: &[(u32, u64)] = &[(10, 84), (11, 9), (12, 3)];
        let of_tens: &[(u32, u64)] = &[(10, 24), (20, 5), (30, 1), (40, 5)];
        for (turns, connections, keep_alive, expected) in [
            (of_ten, 16, true, Some((10.0, false))),
            (of_tens, 16, true, Some((10.0, false))),
            (of_ten, 10, true, None),
            (of_ten, 16, false, None),
            (&[(10, 4)], 16, true, None),
            (&[(1, 400)], 16, true, None),
            // An app that takes long now and then.
            (&[(1, 30), (2, 25), (3, 20), (5, 20), (9, 15), (15, 10)], 16, true, None),
        ] {
            let run = run(turns, connections);
            assert_eq!(seen(&run, keep_alive, None), expected, "{turns:?} {connections}");
        }
    }

    #[test]
    fn turns_of_several_lengths_are_the_servers_where_the_app_is_steady() {
        let run = run(&[(1, 60), (2, 20), (3, 20)], 16);
        let steady = ServiceTime { answers: 50, variation: 0.05, ..ServiceTime::default() };
        assert_eq!(seen(&run, true, Some(&steady)), Some((1.6, true)));
        // Puma 6.6.1 with `max_fast_inline 1`: more wait than not, and a quarter does not.
        let quarter = run.tally.response_time.quantile(0.25).unwrap();
        let mut few = self::run(&[(1, 60), (2, 20), (3, 20)], 20);
        few.tally.turns.first.sum = few.tally.turns.first.sum / 3 * 2;
        let as_quick = ServiceTime { mean: quarter, ..steady };
        assert_eq!(seen(&few, true, Some(&as_quick)), Some((1.6, true)));
        let quicker = ServiceTime { mean: quarter / 2, ..steady };
        assert_eq!(seen(&few, true, Some(&quicker)), None, "all wait");
        let varied = ServiceTime { variation: 1.0, ..steady };
        assert_eq!(seen(&run, true, Some(&varied)), None);
        assert_eq!(seen(&run, true, None), None);
    }

    #[test]
    fn a_server_that_closes_after_ten_responses_has_no_turns() {
        let mut run = run(&[], 16);
        run.tally.closed_by_server = run.tally.all_responses() / 10;
        assert_eq!(seen(&run, true, None), None);
        // Fifteen on ten in order: each request waits for one other every second time.
        let mut run = self::run(&[(2, 300)], 15);
        run.tally.turns.first.sum = run.tally.turns.first.sum / 3 * 2;
        assert_eq!(seen(&run, true, None), None);
    }
}
