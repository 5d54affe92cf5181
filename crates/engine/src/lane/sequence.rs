//! The order in which the first responses of a run came, by connection, and how long each took.
//! Their room is allocated beforehand.

use model::{Nanos, Turns};

/// Responses that are noted, at most: 128 KiB a lane. Where a server serves connections in turns,
/// that covers ten seconds and more.
const MOST: usize = 16 * 1024;

/// What ended on a connection.
#[derive(Clone, Copy, Debug)]
struct NotedResponse {
    connection: u32,
    /// How long it took, in units of 1,024 ns; [`FAILED`]: no good response.
    took: u32,
}

const FAILED: u32 = u32::MAX;

/// The turn of a connection: responses in a row without waiting.
#[derive(Clone, Copy, Debug, Default)]
struct OpenTurn {
    /// Its responses so far; 0 before the first that waited.
    responses: u32,
    /// How long the first response took.
    first: u32,
}

/// The first responses of a lane.
#[derive(Debug, Default)]
pub(super) struct ResponseSequence {
    responses: Vec<NotedResponse>,
}

impl ResponseSequence {
    /// Allocates room for all that will be noted; for nothing if no turns can be seen.
    pub(super) fn new(has_turns: bool) -> ResponseSequence {
        ResponseSequence { responses: Vec::with_capacity(if has_turns { MOST } else { 0 }) }
    }

    /// Notes that a request of `connection` ended after `took`, with a good response or without.
    #[inline(always)]
    pub(super) fn note(&mut self, connection: usize, took: Nanos, is_good: bool) {
        if self.responses.len() < self.responses.capacity() {
            let took = if is_good { units(took) } else { FAILED };
            self.responses.push(NotedResponse { connection: connection as u32, took });
        }
    }

    /// The turns that were seen on `connections`; a response that took longer than `waited` has
    /// waited.
    pub(super) fn turns(&self, connections: usize, waited: Nanos) -> Turns {
        let waited = units(waited);
        let mut turns = Turns::default();
        let mut open = vec![OpenTurn::default(); connections];
        for NotedResponse { connection, took } in &self.responses {
            let Some(open) = open.get_mut(*connection as usize) else { continue };
            match *took {
                FAILED => open.responses = 0,
                took if took > waited => {
                    if open.responses > 0 {
                        turns.record(open.responses, Nanos(u64::from(open.first) << 10));
                    }
                    *open = OpenTurn { responses: 1, first: took };
                }
                _ if open.responses > 0 => open.responses += 1,
                _ => {}
            }
        }
        turns
    }
}

fn units(time: Nanos) -> u32 {
    (time.0 >> 10).min(u64::from(FAILED - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns, and their responses, of what ended on connections, written as `0s` (waited), `0f`
    /// (did not), `0x` (failed).
    fn turns(text: &str) -> (u64, u64) {
        let mut sequence = ResponseSequence::new(true);
        for word in text.split(' ') {
            let connection = usize::from(word.as_bytes()[0] - b'0');
            let took = if word.ends_with('s') { 900 } else { 100 };
            sequence.note(connection, Nanos::from_millis(took), !word.ends_with('x'));
        }
        let turns = sequence.turns(2, Nanos::from_millis(300));
        (turns.count(), turns.answers())
    }

    #[test]
    fn a_turn_ends_with_the_next_response_that_waited_on_the_same_connection() {
        assert_eq!(turns("0s 0f 0f 1s 0s 1f 0f 1s 1f"), (2, 5), "open ones do not count");
        assert_eq!(turns("0f 0f 0f 0s 0s 0s"), (2, 2), "strict order is turns of one");
        assert_eq!(turns("0f 0f 0f"), (0, 0), "nobody waited");
        assert_eq!(turns("0s 0f 0x 0f 0s 0f 0s"), (1, 2), "a failure cuts a turn off");
    }

    #[test]
    fn no_more_is_noted_than_there_is_room_for() {
        for (has_turns, most) in [(true, MOST), (false, 0)] {
            let mut sequence = ResponseSequence::new(has_turns);
            let room = sequence.responses.capacity();
            for _ in 0..=MOST {
                sequence.note(0, Nanos(1), true);
            }
            assert!(sequence.responses.len() >= most && sequence.responses.capacity() == room);
        }
    }
}
