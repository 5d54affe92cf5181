//! Finds silences: times in which the server, or one of its workers, sent no response, and then
//! several at once ([`Silence`]).
//!
//! Each response costs one comparison with the one before. Everything else happens when a silence
//! ends.

use std::collections::HashMap;

use model::{Nanos, Silence, Window};

/// Shorter silences are ignored: the scheduler of a busy machine causes them.
const NOTABLE: Nanos = Nanos::from_millis(50);
/// The same where the lane and not the kernel says when a response came: the lane itself may have
/// been stopped for as long within a wait of 100 ms, unnoticed.
const NOTABLE_WITHOUT_STAMPS: Nanos = Nanos::from_millis(120);
/// Silences that are kept of each worker: the longest.
const KEPT: usize = 64;

/// The responses of one worker, or of a server that names none.
#[derive(Debug)]
struct ResponseArrivals {
    /// When the last one came.
    last: Nanos,
    /// A response after this gap ends a silence. [`i64::MIN`] while the responses after a silence
    /// are counted, so that each of them is looked at.
    notable: i64,
    /// The silence that ended last, while the responses after it are counted.
    ended: Option<Silence>,
    kept: Vec<Silence>,
}

/// Stands for no response yet: no response comes later than this.
const NEVER: Nanos = Nanos(i64::MAX.cast_unsigned());

impl ResponseArrivals {
    fn new(notable: Nanos) -> ResponseArrivals {
        let notable = notable.0.cast_signed();
        ResponseArrivals { last: NEVER, notable, ended: None, kept: Vec::with_capacity(KEPT) }
    }

    /// Keeps the silence whose responses were counted, if it is one of the longest.
    fn close(&mut self, notable: Nanos) {
        self.notable = notable.0.cast_signed();
        let Some(silence) = self.ended.take() else { return };
        if self.kept.len() < KEPT {
            self.kept.push(silence);
            return;
        }
        let shortest = self.kept.iter_mut().min_by_key(|kept| kept.length());
        if let Some(shortest) = shortest.filter(|kept| kept.length() < silence.length()) {
            *shortest = silence;
        }
    }
}

/// The responses of a lane, by worker.
#[derive(Debug)]
pub(super) struct ResponseClock {
    /// First those that name no worker, then those of each worker.
    workers: Vec<ResponseArrivals>,
    /// Shorter silences are ignored.
    notable: Nanos,
    /// Until when the lane last did not run, or was busy for long: a silence then is not the
    /// server's.
    away_until: Nanos,
}

impl ResponseClock {
    /// No response yet. `is_stamped`: the kernel says when responses come.
    pub(super) fn new(is_stamped: bool) -> ResponseClock {
        let notable = if is_stamped { NOTABLE } else { NOTABLE_WITHOUT_STAMPS };
        let mut workers = Vec::with_capacity(64);
        workers.push(ResponseArrivals::new(notable));
        ResponseClock { workers, notable, away_until: Nanos::ZERO }
    }

    /// Notes that a whole response of `worker` came at `at`, to a request that was sent at `sent`.
    #[inline(always)]
    pub(super) fn came(&mut self, worker: Option<u16>, sent: Nanos, at: Nanos) {
        let index = worker.map_or(0, |worker| usize::from(worker) + 1);
        let Some(times) = self.workers.get_mut(index) else { return self.add(index, at) };
        // (Stamps of one turn are not in order.)
        if at.0.cast_signed() - times.last.0.cast_signed() >= times.notable {
            return self.look_at(index, sent, at);
        }
        times.last = at;
    }

    /// The first response of a worker.
    #[cold]
    fn add(&mut self, index: usize, at: Nanos) {
        let notable = self.notable;
        self.workers.resize_with(index + 1, || ResponseArrivals::new(notable));
        self.workers[index].last = at;
    }

    #[cold]
    fn look_at(&mut self, index: usize, sent: Nanos, at: Nanos) {
        let times = &mut self.workers[index];
        let last = std::mem::replace(&mut times.last, at);
        if let Some(silence) = &mut times.ended {
            if at <= silence.soon_after() {
                silence.answers += u32::from(sent <= silence.sent_before());
                return;
            }
            times.close(self.notable);
        }
        let silence = Silence { from: last, until: at, answers: 1, ..Silence::default() };
        let is_notable = last != NEVER && silence.length() >= self.notable;
        // A request that was sent during the silence was not held up by all of it.
        if is_notable && sent <= silence.sent_before() && self.away_until <= last {
            times.notable = i64::MIN;
            times.ended = Some(silence);
        }
    }

    /// The lane has not looked for responses for long, until now.
    #[cold]
    pub(super) fn was_away(&mut self, now: Nanos) {
        self.away_until = now;
    }

    /// The silences of the measured window, with times since its start and the names of the
    /// workers.
    pub(super) fn finish(mut self, window: Window, names: &HashMap<String, u16>) -> Vec<Silence> {
        self.workers.iter_mut().for_each(|times| times.close(self.notable));
        let mut silences = Vec::new();
        for (index, times) in self.workers.into_iter().enumerate() {
            let name = names
                .iter()
                .find(|(_, number)| usize::from(**number) + 1 == index)
                .map(|(name, _)| name);
            for silence in times.kept {
                if window.from <= silence.from && silence.until <= window.until {
                    silences.push(Silence {
                        worker: name.cloned().unwrap_or_default(),
                        from: silence.from - window.from,
                        until: silence.until - window.from,
                        ..silence
                    });
                }
            }
        }
        silences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from: Nanos(0), until: Nanos::MAX };

    /// The silences among these responses: when each request was sent and its response came, in ms.
    fn silences(answers: &[(u64, u64)], away_until: u64) -> Vec<[u64; 3]> {
        let ms = Nanos::from_millis;
        let mut clock = ResponseClock::new(true);
        clock.was_away(ms(away_until));
        for (sent, at) in answers {
            clock.came(None, ms(*sent), ms(*at));
        }
        let found = clock.finish(WINDOW, &HashMap::new()).into_iter();
        found
            .map(|it| {
                [
                    it.from.as_millis_f64() as u64,
                    it.length().as_millis_f64() as u64,
                    it.answers.into(),
                ]
            })
            .collect()
    }

    #[test]
    fn requests_held_up_by_a_silence_are_counted() {
        // Five that are out when all stops at 100: four come together, one later.
        let stopped = [(50, 100), (60, 400), (70, 401), (80, 402), (100, 420), (90, 440)];
        assert_eq!(silences(&stopped, 0), [[100, 300, 4]]);
        assert_eq!(silences(&stopped, 100), [[100, 300, 4]]);
        assert_eq!(silences(&stopped, 150), [[0_u64; 3]; 0], "the lane did not run");
    }

    #[test]
    fn without_a_request_in_flight_there_is_no_silence() {
        assert_eq!(silences(&[(0, 10), (500, 510), (900, 910)], 0), [[0_u64; 3]; 0]);
        // The first response of all ends no silence: the server may have started just then.
        assert_eq!(silences(&[(0, 3000), (0, 3001)], 0), [[0_u64; 3]; 0]);
    }

    #[test]
    fn without_kernel_stamps_only_longer_silences_count() {
        let ms = Nanos::from_millis;
        for (length, found) in [(100, 0), (130, 1)] {
            let mut clock = ResponseClock::new(false);
            clock.came(None, ms(0), ms(50));
            clock.came(None, ms(0), ms(50 + length));
            assert_eq!(clock.finish(WINDOW, &HashMap::new()).len(), found, "{length} ms");
        }
    }

    #[test]
    fn each_worker_has_its_own() {
        let ms = Nanos::from_millis;
        let mut clock = ResponseClock::new(true);
        for at in (0..1000).step_by(10) {
            clock.came(Some(0), ms(at), ms(at + 5));
            if at % 500 < 300 {
                clock.came(Some(1), ms(at), ms(at + 8));
            }
        }
        let names = HashMap::from([("a".to_owned(), 0), ("b".to_owned(), 1)]);
        // What it is asked later is no longer held up.
        assert_eq!(clock.finish(WINDOW, &names), []);
        let mut clock = ResponseClock::new(true);
        for (sent, at) in [(0, 5), (0, 6), (5, 306), (6, 307)] {
            clock.came(Some(0), ms(at), ms(at));
            clock.came(Some(1), ms(sent), ms(at));
        }
        let found = clock.finish(WINDOW, &names);
        assert_eq!((found.len(), found[0].worker.as_str(), found[0].answers), (1, "b", 2));
    }

    #[test]
    fn the_longest_are_kept() {
        let mut answers = vec![(0, 0)];
        for n in 0..200_u64 {
            let last = answers.last().unwrap().1;
            answers.push((last, last + 100 + n));
        }
        let found = silences(&answers, 0);
        assert_eq!((found.len(), found.iter().map(|it| it[1]).min()), (KEPT, Some(100 + 200 - 64)));
    }
}
