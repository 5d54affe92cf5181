//! Whether a server served its connections in turns: some requests in a row, then a close, while the others waited.
//!
//! Puma before 7 closes a kept-alive connection after its tenth request in a row where all threads are busy and another
//! connection waits to be accepted (`max_fast_inline`, request.rb and server.rb of 5.6). With more connections than slots
//! nine answers in ten then wait for nobody and the tenth carries the whole wait: percentiles jump, the rate does not.

use model::{Diagnostic, Run};

/// Answers a close that such turns explain: ten, and some connections that were not closed at once.
const A_TURN: std::ops::RangeInclusive<f64> = 8.0..=15.0;

/// The doubt, where the run's own figures show such turns on a server of so many slots.
pub(crate) fn of_run(run: &Run, slots: u32, keep_alive: bool) -> Option<Diagnostic> {
    let (answers, closed) = (run.tally.all_answers(), run.tally.closed_by_server);
    if !keep_alive || run.connections <= slots || closed == 0 {
        return None;
    }
    let answers_a_turn = answers as f64 / closed as f64;
    A_TURN
        .contains(&answers_a_turn)
        .then_some(Diagnostic::ServedInTurns { answers_a_turn, waiting: run.connections - slots })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answers_a_turn: u64, connections: u32, keep_alive: bool) -> Option<Diagnostic> {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.connections = connections;
        run.tally.closed_by_server = run.tally.all_answers() / answers_a_turn;
        of_run(&run, 10, keep_alive)
    }

    #[test]
    fn a_close_every_ten_answers_is_a_turn_where_connections_wait() {
        assert!(matches!(of(10, 16, true), Some(Diagnostic::ServedInTurns { waiting: 6, .. })));
        assert_eq!(of(10, 10, true), None, "nobody waits");
        assert_eq!(of(10, 16, false), None, "every request has a connection of its own");
        assert_eq!(of(100, 16, true), None, "another rule of the server");
        assert_eq!(of(2, 16, true), None);
    }
}
