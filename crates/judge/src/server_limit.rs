//! What limits a server, judged by all loads that were tried: its threads, something inside the
//! app, or neither, because it takes more at once than was stated.
//!
//! `limits` first looks for the CPUs, Ruby's lock, the network and the accept queue in the kernel's
//! figures for one run; this file judges the remaining cases. It depends on neither studies nor
//! sockets, so simulated servers can be judged too.

use model::statistics::STANDARD_ERRORS;
use model::theory::ServiceTime;
use model::{AtOnce, Limit, Nanos, UsualTimes};

use crate::at_once::{self, SlotsMatch};
use crate::limits::threads;
use crate::server_seen::{LoadSeen, ServerSeen};
use crate::with_all_threads::{self, AS_LONG, WithAllThreads};

impl ServerSeen {
    /// The relative error (95 %) of a throughput over this many responses. It comes from the
    /// scatter of the service times, as loads show it in which no request waits for a thread.
    pub(crate) fn scatter(&self, responses: u64) -> f64 {
        let within_slots = self.loads.iter().filter(|load| load.connections <= self.slots);
        let alone = self.alone.map_or(0.0, |alone| alone.variation);
        let variation = within_slots.map(|load| load.variation).fold(alone, f64::max);
        (STANDARD_ERRORS * variation / (responses.max(1) as f64).sqrt()).min(MOST_SCATTER)
    }

    /// Connections whose request is at the server, not on the network.
    fn arrived(&self, load: &LoadSeen) -> f64 {
        let round_trip = self.alone.map(|alone| alone.round_trip).unwrap_or_default();
        f64::from(load.connections) - load.rate * round_trip.as_secs_f64()
    }

    /// Whether something holds requests up at the full load. If it is only that workers hold
    /// unequal numbers of connections, some requests wait for a thread there while other threads
    /// are idle; beyond the full load throughput then grows by as much as requests were slowed
    /// down. If it grows by less than half as much, it is something else.
    fn is_hindered(&self, seen: &UsualTimes, full: &LoadSeen, last: &LoadSeen) -> bool {
        let mean = f64::from(full.connections) / full.rate;
        let alone = self.alone.map_or(mean, |alone| alone.mean.as_secs_f64());
        let usual = seen.here.as_secs_f64() / seen.with_fewer.as_secs_f64().max(1e-9);
        let longer = usual.max(mean / alone.max(1e-9));
        let growth = last.rate / full.rate / (1.0 + self.scatter(last.responses));
        growth < 1.0 + (longer - 1.0) / 2.0
    }

    /// Whether more connections bring no more throughput: the rate at `high` is about the rate at
    /// `low`, with 1.5 times as many connections or more. Rates are corrected for threads that were
    /// idle while requests were on the network.
    fn is_flat(&self, low: &LoadSeen, high: &LoadSeen) -> bool {
        high.all_connections() >= NEXT_LOAD * low.all_connections()
            && high.rate < (1.0 + SAME_RATE) * self.without_network_time(low)
    }

    /// The same, within chance.
    fn is_flat_by_chance(&self, low: &LoadSeen, high: &LoadSeen) -> bool {
        let by_chance = self.scatter(low.responses).hypot(self.scatter(high.responses));
        high.rate < (1.0 + SAME_RATE + by_chance) * self.without_network_time(low)
    }

    /// Whether throughput falls between two loads by more than chance.
    fn falls(&self, low: &LoadSeen, high: &LoadSeen) -> bool {
        let by_chance = self.scatter(low.responses).hypot(self.scatter(high.responses));
        high.rate < (1.0 - SAME_RATE - by_chance) * low.rate
    }

    /// The throughput that a load would have had if no thread had been idle while requests were on
    /// the network.
    fn without_network_time(&self, load: &LoadSeen) -> f64 {
        let slots = f64::from(self.slots);
        if f64::from(load.connections) < with_all_threads::NEARLY_ALL * slots {
            return load.rate;
        }
        (slots / self.arrived(load).max(1.0)).max(1.0) * load.rate
    }
}

/// Scatter counts up to this much: a run with more is too short to tell anything.
const MOST_SCATTER: f64 = 0.3;

/// Two loads must differ by this factor to show whether throughput still rises.
pub(crate) const NEXT_LOAD: f64 = 1.5;
/// A throughput that is lower by this share is not due to scatter: something makes the server do
/// less.
pub(crate) const COLLAPSE: f64 = 0.15;
/// Rates within this share of each other count as equal.
pub(crate) const SAME_RATE: f64 = 0.05;
/// If more than this many times the stated threads are busy, the server has more threads.
const MORE: f64 = 1.05;
/// Requests wait if this many times as many are in flight as are served at once.
const WAITING: f64 = 1.2;

/// How long a request holds a thread, by all loads. A request takes at least as long as it holds
/// its thread, so no load's mean time can be shorter.
pub(crate) fn held(server: &ServerSeen) -> Option<ServiceTime> {
    let alone = server.alone?;
    let round_trip = alone.round_trip.as_secs_f64();
    let mut held = alone.of_a_thread();
    // If the time grows while the server runs, it may be longer now than in any load.
    if alone.again.is_some_and(|again| again.differs && again.mean > alone.mean) {
        return Some(held);
    }
    for load in server.loads.iter().filter(|load| load.responses > 0) {
        let connections = f64::from(load.connections);
        let responses = load.responses as f64;
        let by_chance = STANDARD_ERRORS * load.variation / responses.sqrt();
        let error = by_chance.hypot(connections / responses);
        let mean = (connections / load.rate - round_trip).max(0.0);
        let high = Nanos::from_secs_f64(mean * (1.0 + error));
        // The load's mean is shorter than the time alone, so the time alone no longer holds. How
        // short it has become is unknown.
        if high < held.low {
            held.low = Nanos::ZERO;
        }
        held.high = held.high.min(high);
        held.mean = held.mean.min(high);
        if load.connections <= server.slots {
            held.variation = held.variation.max(load.variation);
        }
    }
    Some(held)
}

/// If requests of one load take this many times as long as alone, it isn't drift.
const MUCH_LONGER: f64 = 1.5;

/// The limit at the highest load; `None` if there is none, or an unknown one.
pub fn server_limit(server: &ServerSeen) -> Option<Limit> {
    let last = server.loads.last()?;
    let seen = Seen::of(server, last);
    match seen.held.and_then(|held| at_once::of(last.rate, last.responses, &held)) {
        Some(at_once) => seen.limit(&at_once),
        None => (seen.busy.is_some() && last.connections >= server.slots)
            .then(|| seen.threads(None, seen.with_all)),
    }
}

/// What all loads of a server show together.
struct Seen<'a> {
    server: &'a ServerSeen,
    /// The highest load.
    last: &'a LoadSeen,
    /// The load with one request in flight for each thread.
    full: Option<&'a LoadSeen>,
    with_all: WithAllThreads,
    held: Option<ServiceTime>,
    /// Busy threads by the server's own count, if all are busy.
    busy: Option<f64>,
    /// The same, if they are more than was stated.
    more_busy: Option<f64>,
    /// Whether fewer connections brought as much throughput.
    is_flat: bool,
    /// Whether that holds, or there is no lower load to compare with: then waiting requests alone
    /// show a limit.
    is_shown: bool,
}

impl<'a> Seen<'a> {
    fn of(server: &'a ServerSeen, last: &'a LoadSeen) -> Seen<'a> {
        let lower = &server.loads[..server.loads.len() - 1];
        let full = with_all_threads::full_load(server).filter(|full| full.rate > 0.0);
        let with_all = match (with_all_threads::of(server), full) {
            (WithAllThreads::Longer(times), Some(full))
                if !server.is_hindered(&times, full, last) =>
            {
                WithAllThreads::NotKnown
            }
            (seen, _) => seen,
        };
        let more_busy = last.busy.filter(|busy| *busy > MORE * f64::from(server.slots));
        let are_busy = |busy: &f64| threads::are_busy(*busy, server.slots);
        let is_flat = lower.iter().any(|low| server.is_flat(low, last));
        Seen {
            server,
            last,
            full,
            with_all,
            held: held(server),
            busy: last.busy.filter(|busy| more_busy.is_none() && are_busy(busy)),
            more_busy,
            is_flat,
            is_shown: is_flat || lower.is_empty(),
        }
    }

    /// The limit, given how many requests' worth of work the server does at once.
    fn limit(&self, at_once: &AtOnce) -> Option<Limit> {
        let slots = f64::from(self.server.slots);
        let waits = self.last.all_connections() >= WAITING * at_once.mean;
        match at_once::compare_with_slots(at_once, slots) {
            // If all threads are counted as busy, and no more than stated, that outweighs an
            // interval that is wide by chance.
            SlotsMatch::Above if waits && self.busy.is_some() && !at_once::is_narrow(at_once) => {
                Some(self.threads(Some(*at_once), self.with_all))
            }
            SlotsMatch::Above => Some(self.more_than_stated(at_once, waits)),
            SlotsMatch::Below | SlotsMatch::Equal | SlotsMatch::Unclear if !waits => None,
            slots_match => match self.hindered(at_once, slots_match) {
                Some(times) => Some(self.lower(at_once, Some(times))),
                None if slots_match == SlotsMatch::Below => self.below(at_once),
                None => self.about(at_once, slots_match),
            },
        }
    }

    /// The evidence that something inside holds requests up: a typical one takes longer with all
    /// threads in use.
    fn hindered(&self, at_once: &AtOnce, slots_match: SlotsMatch) -> Option<UsualTimes> {
        let is_counted = slots_match == SlotsMatch::Equal && self.busy.is_some();
        let is_lower = at_once.high.is_some_and(|high| high < f64::from(self.server.slots));
        let times = match self.with_all {
            WithAllThreads::Longer(times) if is_lower || !is_counted => times,
            // Less work at a time than threads, and a typical request that takes longer: neither
            // alone would be enough.
            WithAllThreads::Unclear(times)
                if is_lower && self.is_shown && times.is_longer_by(AS_LONG) =>
            {
                times
            }
            WithAllThreads::Longer(_)
            | WithAllThreads::Unclear(_)
            | WithAllThreads::AsAlone(_)
            | WithAllThreads::NotKnown => return None,
        };
        // A limit inside the app keeps throughput constant. If throughput falls, the server may be
        // becoming slower over time instead, unless requests take much longer than that explains.
        let falls = self.full.is_some_and(|full| self.server.falls(full, self.last));
        (!falls || times.is_longer_by(MUCH_LONGER)).then_some(times)
    }

    /// The limit, if it does clearly less at once than it has slots.
    fn below(&self, at_once: &AtOnce) -> Option<Limit> {
        let then = self.full.zip(self.held);
        let then = then.and_then(|(full, held)| at_once::of(full.rate, full.responses, &held));
        // If it began after the full load, nothing inside the app causes it.
        if let Some(then) = then
            && at_once::compare_with_slots(&then, f64::from(self.server.slots)) != SlotsMatch::Below
        {
            return self.busy.map(|_| self.threads(Some(then), WithAllThreads::NotKnown));
        }
        let is_inside = self.is_shown && !is_slower_at_a_low_load(self.server);
        is_inside.then(|| self.lower(at_once, None))
    }

    /// The limit, if it does as much at once as it has slots, or may do so.
    fn about(&self, at_once: &AtOnce, slots_match: SlotsMatch) -> Option<Limit> {
        if let Some(busy) = self.more_busy {
            let is_below =
                at_once::compare_with_slots(at_once, busy) == SlotsMatch::Below && self.is_shown;
            return Some(if is_below {
                self.inside(at_once, None)
            } else {
                self.more_than_stated(at_once, true)
            });
        }
        let is_equal = slots_match == SlotsMatch::Equal;
        // By the server's own count, threads are idle while requests wait.
        let are_idle = self.last.busy.is_some() && self.busy.is_none();
        if are_idle && !may_be_accept_pause(at_once, self.server) {
            return (self.is_shown && !is_equal).then(|| self.inside(at_once, None));
        }
        let is_as_alone = matches!(self.with_all, WithAllThreads::AsAlone(_));
        let by_client = self.is_shown && (is_equal || is_as_alone && self.are_all());
        (by_client || self.busy.is_some()).then(|| self.threads(Some(*at_once), self.with_all))
    }

    /// Whether throughput grows no more than by chance beyond the load with one request in flight
    /// for each thread.
    fn are_all(&self) -> bool {
        self.full.is_none_or(|full| {
            self.last.connections == full.connections
                || self.server.is_flat_by_chance(full, self.last)
        })
    }

    fn threads(&self, at_once: Option<AtOnce>, with_all: WithAllThreads) -> Limit {
        let slots = self.server.slots;
        Limit::Threads {
            slots,
            connections: self.last.connections,
            at_once,
            busy: self.last.busy,
            unhindered: match with_all {
                WithAllThreads::AsAlone(times) => Some(times),
                WithAllThreads::Longer(_)
                | WithAllThreads::Unclear(_)
                | WithAllThreads::NotKnown => None,
            },
            strength: threads::strength(slots, at_once.as_ref(), self.busy, with_all),
            computes: None,
        }
    }

    fn inside(&self, at_once: &AtOnce, hindered: Option<UsualTimes>) -> Limit {
        Limit::InsideApp {
            slots: self.more_busy.map_or(self.server.slots, |busy| busy.round() as u32),
            workers: self.server.workers,
            at_once: Some(*at_once),
            held: Some(Nanos::from_secs_f64(1.0 / self.last.rate)),
            locked: None,
            hindered,
            busy: self.last.busy.filter(|_| self.busy.is_none()),
            computes: None,
        }
    }

    /// What keeps throughput below what the threads could do: something inside the app, or perhaps
    /// only that requests get in each other's way.
    fn lower(&self, at_once: &AtOnce, hindered: Option<UsualTimes>) -> Limit {
        let are_idle = self.last.busy.is_some() && self.busy.is_none();
        let is_contention = !are_idle && may_be_contention(at_once, self.server);
        let is_pause = may_be_accept_pause(at_once, self.server);
        if self.more_busy.is_none() && (is_contention || is_pause) {
            return self.threads(Some(*at_once), self.with_all);
        }
        self.inside(at_once, hindered)
    }

    fn more_than_stated(&self, at_once: &AtOnce, waits: bool) -> Limit {
        Limit::MoreThanStated {
            stated: self.server.slots,
            at_once: *at_once,
            connections: self.last.connections,
            waits,
            is_full: waits && self.is_flat,
            busy: self.more_busy,
        }
    }
}

/// Whether requests that only get in each other's way would explain it, too: the server does nearly
/// as much as it has threads, and no smaller pool would let through as many.
fn may_be_contention(at_once: &AtOnce, server: &ServerSeen) -> bool {
    let could_be = |pool: u32| {
        let pool = f64::from(pool);
        let high = at_once.high.unwrap_or(f64::INFINITY);
        (1.0 - NEAR_A_POOL) * at_once.low <= pool && pool <= (1.0 + NEAR_A_POOL) * high
    };
    let is_most = at_once.mean >= MOST_OF_THE_WORK * f64::from(server.slots);
    is_most && !(1..server.slots).any(could_be)
}

/// Whether threads that wait for the next connection to be accepted would explain it.
fn may_be_accept_pause(at_once: &AtOnce, server: &ServerSeen) -> bool {
    let Some(alone) = server.alone.filter(|_| server.accept_pause > Nanos::ZERO) else {
        return false;
    };
    let pause = server.accept_pause.as_secs_f64();
    let slots = f64::from(server.slots);
    let idle = slots * pause / (alone.mean.as_secs_f64() + pause);
    at_once.high.is_none_or(|high| high + idle >= slots)
}

/// A server that does at least this share of what its threads could may be held back by contention
/// alone.
const MOST_OF_THE_WORK: f64 = 0.85;
/// Beyond chance, the work that a pool lets through is known to within this share.
pub(crate) const NEAR_A_POOL: f64 = 0.03;

/// Whether requests take longer than alone even at a load with hardly any others. Then the app
/// itself becomes slower under load, for whatever reason, rather than letting through a fixed
/// number.
fn is_slower_at_a_low_load(server: &ServerSeen) -> bool {
    let Some(alone) = server.alone.filter(|alone| alone.high != Nanos::MAX) else { return false };
    let last_rate = server.loads.last().map_or(0.0, |last| last.rate);
    server.loads.iter().any(|load| {
        // With so few connections, none would wait for what limits the highest load.
        let room = last_rate * alone.low.as_secs_f64();
        let mean = f64::from(load.connections) / load.rate.max(1e-9);
        load.connections >= 2
            && f64::from(load.connections) <= 0.5 * room
            && mean > WAITING * alone.high.as_secs_f64()
    })
}

#[cfg(test)]
mod tests {
    use model::Strength;
    use model::theory::UsualTime;

    use super::*;

    fn load(connections: u32, rate: f64, usual: u64, busy: Option<f64>) -> LoadSeen {
        let usual = Nanos::from_millis(usual);
        let usual =
            UsualTime { cap: Nanos::from_millis(200), answers: 1000, ..UsualTime::given(usual) };
        LoadSeen {
            connections,
            never_served: 0,
            rate,
            responses: 1000,
            usual: Some(usual),
            variation: 0.0,
            busy,
        }
    }

    /// The time alone, from 200 requests of 100 ms.
    fn alone() -> ServiceTime {
        let time = Nanos::from_millis(100);
        let usual = UsualTime { answers: 200, ..UsualTime::given(time) };
        ServiceTime { usual: Some(usual), answers: 200, ..ServiceTime::given(time) }
    }

    /// The same with a mean known to within a factor of two.
    fn wide() -> ServiceTime {
        let [low, high] = [50, 200].map(Nanos::from_millis);
        ServiceTime { low, high, variation: 2.0, ..alone() }
    }

    fn limit(alone: ServiceTime, loads: Vec<LoadSeen>) -> Option<Limit> {
        server_limit(&ServerSeen { loads, ..ServerSeen::stated(10, 1, Some(alone)) })
    }

    /// How certain it is that the threads are the limit.
    fn threads(alone: ServiceTime, loads: Vec<LoadSeen>) -> Option<Strength> {
        match limit(alone, loads)? {
            Limit::Threads { strength, .. } => Some(strength),
            _ => None,
        }
    }

    #[test]
    fn threads_are_the_limit_if_requests_wait_for_nothing_else() {
        let loads = |busy| vec![load(10, 100.0, 100, busy), load(40, 100.0, 200, busy)];
        for (alone, counted) in [(alone(), Strength::Is), (wide(), Strength::Probably)] {
            assert_eq!(threads(alone, loads(Some(10.0))), Some(counted));
            assert_eq!(threads(alone, loads(None)), Some(Strength::Probably));
        }
        // Only the server's count shows it.
        let one = |busy| threads(wide(), vec![load(40, 100.0, 200, busy)]);
        assert_eq!((one(Some(10.0)), one(None)), (Some(Strength::Probably), None));
    }

    /// Nine requests' worth on ten threads: a pool of nine, or threads that wait to be given the
    /// next connection.
    #[test]
    fn a_puma_6_that_pauses_before_it_accepts_is_no_pool() {
        let loads = || vec![load(10, 93.0, 107, Some(9.4)), load(30, 93.3, 317, Some(9.4))];
        let stated = ServerSeen { loads: loads(), ..ServerSeen::stated(10, 2, Some(alone())) };
        let limit = server_limit(&stated);
        assert!(matches!(limit, Some(Limit::InsideApp { .. })), "{limit:?}");
        let pauses = ServerSeen { accept_pause: Nanos::from_millis(5), ..stated };
        let limit = server_limit(&pauses);
        assert!(matches!(limit, Some(Limit::Threads { .. })), "{limit:?}");
    }

    #[test]
    fn connections_that_are_never_served_wait_for_a_thread() {
        // Ten threads that each keep their connection: the others are never accepted.
        let full = load(10, 100.0, 100, None);
        let beyond = LoadSeen { never_served: 10, ..full };
        assert_eq!(threads(alone(), vec![full, beyond]), Some(Strength::Probably));
        assert_eq!(threads(alone(), vec![full]), None, "nothing waits");
    }

    #[test]
    fn a_limit_inside_the_app_shows_at_a_load_where_no_request_waits_for_a_thread() {
        let loads = vec![load(10, 60.0, 160, Some(10.0)), load(40, 60.0, 200, Some(10.0))];
        let Some(Limit::InsideApp { hindered: Some(times), .. }) = limit(wide(), loads) else {
            panic!("a pool of six")
        };
        assert_eq!((times.connections, times.fewer), (10, 1));
    }

    #[test]
    fn unevenly_held_connections_are_not_a_limit_inside_the_app() {
        // Six and four connections on two workers of five threads.
        let loads = vec![load(10, 90.0, 111, Some(9.0)), load(40, 100.0, 200, Some(10.0))];
        assert_eq!(threads(alone(), loads), Some(Strength::Is));
    }

    #[test]
    fn a_server_that_changes_over_time_is_not_judged_by_its_earlier_times() {
        // A leak: at first as fast as alone, later half as fast.
        let leak = |busy| vec![load(10, 98.0, 102, busy), load(40, 50.0, 200, busy)];
        assert_eq!(limit(alone(), leak(None)), None);
        assert_eq!(threads(alone(), leak(Some(10.0))), Some(Strength::Is));
        // The server warmed up: requests take a fifth of the time alone.
        let warm = vec![load(10, 500.0, 20, None), load(40, 500.0, 80, None)];
        assert_eq!(threads(alone(), warm), Some(Strength::Probably));
    }

    #[test]
    fn more_busy_threads_than_stated_show_the_real_number() {
        let more = vec![load(10, 100.0, 100, Some(10.0)), load(80, 200.0, 200, Some(20.0))];
        let told = limit(wide(), more);
        assert!(matches!(told, Some(Limit::MoreThanStated { busy: Some(20.0), .. })), "{told:?}");
        let fewer = vec![load(10, 50.0, 150, Some(5.0)), load(40, 50.0, 200, Some(5.0))];
        let told = limit(wide(), fewer);
        assert!(matches!(told, Some(Limit::InsideApp { busy: Some(5.0), .. })), "{told:?}");
    }

    #[test]
    fn a_request_on_the_network_holds_no_thread() {
        // 100 ms, 20 of them on the network: 10 threads can do 125 requests per second, 10
        // connections only 100.
        let round_trip = Nanos::from_millis(20);
        let low = Nanos::from_millis(80);
        let far = ServiceTime { round_trip, low, ..alone() };
        let loads = vec![load(10, 100.0, 100, None), load(40, 125.0, 200, None)];
        assert_eq!(threads(far, loads), Some(Strength::Probably));
    }
}
