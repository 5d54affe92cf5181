//! Responses that may be left in the kernel until the next request is due.
//!
//! An open loop has to wake for each due time. A lane that wakes for each response as well does so twice a request, and waking costs more than
//! all else that it does. Where the kernel stamps arrivals a response time is the same whenever the response is read, so the lane may sleep until it
//! is about to send, and read then. It does so only as long as nothing else depends on the moment: see [`UnreadResponses::may_wait`].

use model::Nanos;

/// A response waits no longer than this to be read.
const LONGEST: Nanos = Nanos::from_millis(1);
/// Longer responses are read at once, so that they never fill the socket's buffer and hold up the server.
const SHORT: u64 = 16 * 1024;
/// Responses in a row that have to be plain before the first one is left unread.
const ENOUGH: u32 = 256;

/// What is known of responses so far, and until when they were left unread.
#[derive(Debug, Default)]
pub(super) struct UnreadResponses {
    /// Plain ones in a row.
    plain: u32,
    /// Connections that are being opened.
    pub(super) opening: usize,
    /// The end of the last sleep in which the lane left them unread.
    pub(super) until: Nanos,
}

impl UnreadResponses {
    /// A response has ended. It is plain where the kernel stamped it, it is short, it came in one piece and its connection stays open.
    #[inline]
    pub(super) fn ended(&mut self, bytes: u64, is_whole_and_stamped: bool) {
        self.plain = if is_whole_and_stamped && bytes < SHORT { self.plain.saturating_add(1) } else { 0 };
    }

    /// A connection was closed: what happens now is better seen at once.
    pub(super) fn closed(&mut self) {
        self.plain = 0;
    }

    /// Whether responses may wait for `time`, until the lane sends again. Not while a connection is being opened (there is something
    /// to send as soon as it is open), nor after anything but plain responses: the first byte of one that comes in pieces is a time of its own,
    /// a long one needs a reader, and what ends without a response ends when it is seen.
    #[inline]
    pub(super) fn may_wait(&self, time: Nanos) -> bool {
        self.plain >= ENOUGH && self.opening == 0 && Nanos::ZERO < time && time <= LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a response may wait for a tenth of a millisecond.
    fn may_wait(unread: &UnreadResponses) -> bool {
        unread.may_wait(Nanos::from_micros(100))
    }

    fn after_plain_ones() -> UnreadResponses {
        let mut unread = UnreadResponses::default();
        (0..ENOUGH).for_each(|_| unread.ended(100, true));
        unread
    }

    #[test]
    fn plain_responses_may_wait_and_not_for_long() {
        let mut unread = UnreadResponses::default();
        (1..ENOUGH).for_each(|_| unread.ended(100, true));
        assert!(!may_wait(&unread));
        unread.ended(100, true);
        assert!(may_wait(&unread) && unread.may_wait(LONGEST));
        assert!(!unread.may_wait(LONGEST + Nanos(1)) && !unread.may_wait(Nanos::ZERO));
    }

    #[test]
    fn whatever_else_happens_is_seen_at_once() {
        type Case = (&'static str, fn(&mut UnreadResponses));
        let happens: [Case; 4] = [
            ("in pieces, or without a stamp", |unread| unread.ended(100, false)),
            ("long", |unread| unread.ended(SHORT, true)),
            ("closed", UnreadResponses::closed),
            ("being opened", |unread| unread.opening += 1),
        ];
        for (what, happen) in happens {
            let mut unread = after_plain_ones();
            assert!(may_wait(&unread));
            happen(&mut unread);
            assert!(!may_wait(&unread), "{what}");
        }
    }
}
