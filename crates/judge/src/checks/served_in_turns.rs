//! Connections were served in turns, some requests in a row each, while others waited to be
//! accepted.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Responses for each connection that the server closed, where Puma before 7 serves in turns of ten
/// (`max_fast_inline`, request.rb and server.rb of 5.6); some connections are not closed at once.
const TURN: std::ops::RangeInclusive<f64> = 8.0..=15.0;
/// In turns most requests wait for nobody, so half of them take less than this part of what each
/// would in order. A server that closes each connection after ten responses, and serves in order,
/// has no turns.
const SHORT: f64 = 0.8;

/// Whether a server served its connections in turns: some requests in a row, then a close, while the
/// others waited. With more connections than slots nine responses in ten then wait for nobody and
/// the tenth carries the whole wait: percentiles jump, the rate does not.
pub(super) fn ask(run: &Run, slots: u32, keep_alive: bool) -> Option<Diagnostic> {
    let (answers, closed) = (run.tally.all_answers(), run.tally.closed_by_server);
    if !keep_alive || run.connections <= slots || closed == 0 {
        return None;
    }
    let in_order = f64::from(run.connections) / run.completed_rate().max(1e-9);
    let p50 = run.tally.response_time.quantile(0.5)?.as_secs_f64();
    let answers_a_turn = answers as f64 / closed as f64;
    (TURN.contains(&answers_a_turn) && p50 < SHORT * in_order)
        .then_some(Diagnostic::ServedInTurns { answers_a_turn, waiting: run.connections - slots })
}

/// Grade, sentence and hint.
pub(super) fn assess(answers_a_turn: f64, waiting: u32) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the server took connections in turns: {answers_a_turn:.1} responses in a row \
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

    #[test]
    fn a_close_every_ten_answers_is_a_turn_where_connections_wait() {
        for (answers_a_turn, connections, keep_alive, waiting) in [
            (10, 16, true, Some(6)),
            (10, 10, true, None),
            (10, 16, false, None),
            (100, 16, true, None),
            (2, 16, true, None),
        ] {
            let mut run = testkit::study::canonical().runs.remove(0);
            run.connections = connections;
            // Half of the requests take a third of what each would in order.
            run.tally.completed_in_window /= 3;
            run.tally.closed_by_server = run.tally.all_answers() / answers_a_turn;
            let seen = match ask(&run, 10, keep_alive) {
                Some(Diagnostic::ServedInTurns { waiting, .. }) => Some(waiting),
                _ => None,
            };
            assert_eq!(seen, waiting, "{answers_a_turn} {connections} {keep_alive}");
        }
    }
}
