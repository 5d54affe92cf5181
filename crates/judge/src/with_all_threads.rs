//! How long a typical request takes with one request in flight for each thread, compared with one
//! that is alone or has fewer others beside it.
//!
//! At that load no request waits for a thread. If it takes longer, it waits for something inside;
//! if not, nothing inside holds it up. A typical time is known much better than a mean, which
//! depends mostly on the few longest requests.

use model::UsualTimes;
use model::theory::UsualTime;

use crate::server_seen::{LoadSeen, ServerSeen};

/// The result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithAllThreads {
    /// A typical request takes no longer.
    AsAlone(UsualTimes),
    /// A typical request takes clearly longer.
    Longer(UsualTimes),
    /// Its times are not known well enough.
    Unclear(UsualTimes),
    /// There is no such load.
    NotKnown,
}

/// With fewer connections than this share of the threads, a limit of nearly as many would not be
/// reached.
pub(crate) const NEARLY_ALL: f64 = 0.9;
/// If the limit is a tenth below the threads, requests take at least a ninth longer.
pub(crate) const AS_LONG: f64 = 1.1;
/// A load with at most this share of the connections has few enough other requests to stand in for
/// the time alone.
const FEWER: f64 = 0.5;

/// The time of a typical request at a number of connections.
struct Known {
    connections: u32,
    time: UsualTime,
}

/// The highest load with no more connections than threads, but nearly as many.
pub(crate) fn full_load(server: &ServerSeen) -> Option<&LoadSeen> {
    let slots = f64::from(server.slots);
    let is_full =
        |load: &&LoadSeen| (NEARLY_ALL * slots..=slots).contains(&f64::from(load.connections));
    server.loads.iter().rfind(is_full)
}

/// Compares the full load of a server with its time alone and its lower loads.
pub(crate) fn of(server: &ServerSeen) -> WithAllThreads {
    let round_trip = server.alone.map(|alone| alone.round_trip).unwrap_or_default();
    let known = |load: &LoadSeen| {
        Some(Known { connections: load.connections, time: load.usual?.without(round_trip) })
    };
    let Some(here) = full_load(server).and_then(known) else { return WithAllThreads::NotKnown };
    let alone = server.alone.and_then(|alone| alone.usual);
    let alone = alone.map(|time| Known { connections: 1, time: time.without(round_trip) });
    let most = FEWER * f64::from(here.connections);
    let fewer = server.loads.iter().filter(|load| f64::from(load.connections) <= most);
    let others: Vec<Known> = alone.into_iter().chain(fewer.filter_map(known)).collect();
    let told = |other: &Known| UsualTimes {
        connections: here.connections,
        here: here.time.mean,
        fewer: other.connections,
        with_fewer: other.time.mean,
    };
    let is_longer = |other: &&Known| {
        here.time.least_ratio(&other.time) > 1.0 && told(other).is_longer_by(AS_LONG)
    };
    if let Some(other) = others.iter().find(is_longer) {
        return WithAllThreads::Longer(told(other));
    }
    if let Some(other) = others.iter().find(|other| here.time.most_ratio(&other.time) <= AS_LONG) {
        return WithAllThreads::AsAlone(told(other));
    }
    others.first().map_or(WithAllThreads::NotKnown, |other| WithAllThreads::Unclear(told(other)))
}

#[cfg(test)]
mod tests {
    use model::theory::{LoneResponses, ServiceTime};
    use model::{Histogram, Nanos};

    use super::*;

    /// A histogram of groups of (count, milliseconds).
    fn times(groups: &[(u64, u64)]) -> Histogram {
        let mut times = Histogram::default();
        for (count, ms) in groups {
            (0..*count).for_each(|_| times.record(Nanos::from_millis(*ms)));
        }
        times
    }

    /// The result for a server of ten threads, from the times alone and in each load.
    fn seen(alone: &[(u64, u64)], loads: &[(u32, &[(u64, u64)])]) -> WithAllThreads {
        let alone = LoneResponses { times: times(alone), ..LoneResponses::default() };
        let alone = alone.service_time().unwrap();
        let cap = alone.usual.unwrap().cap;
        let load = |(connections, groups): &(u32, &[(u64, u64)])| LoadSeen {
            connections: *connections,
            never_served: 0,
            usual: UsualTime::capped(&times(groups), cap),
            rate: 100.0,
            responses: 1000,
            variation: 0.0,
            busy: None,
        };
        let server = ServerSeen::stated(10, 1, Some(alone));
        of(&ServerSeen { loads: loads.iter().map(load).collect(), ..server })
    }

    #[test]
    fn rare_long_requests_neither_hide_a_wait_nor_look_like_one() {
        // 20 ms, and one in twenty takes a second.
        let alone: &[(u64, u64)] = &[(138, 20), (7, 1000)];
        let as_alone = seen(alone, &[(10, &[(1950, 20), (50, 1000)])]);
        assert!(matches!(as_alone, WithAllThreads::AsAlone(_)), "{as_alone:?}");
        // A pool of five: each request waits as long as it works.
        let waiting = seen(alone, &[(10, &[(1900, 40), (100, 1020)])]);
        let WithAllThreads::Longer(times) = waiting else { panic!("{waiting:?}") };
        assert_eq!((times.connections, times.fewer), (10, 1));
        assert!(times.is_longer_by(1.5) && !times.is_longer_by(2.5));
    }

    #[test]
    fn with_few_responses_or_without_a_full_load_nothing_is_known() {
        let few = seen(&[(20, 20)], &[(10, &[(1900, 20), (200, 40)])]);
        assert!(
            matches!(few, WithAllThreads::Unclear(_)),
            "a pool of nine, or long requests: {few:?}"
        );
        let none = seen(&[(200, 20)], &[(5, &[(1000, 20)]), (40, &[(1000, 80)])]);
        assert_eq!(none, WithAllThreads::NotKnown);
    }

    #[test]
    fn a_load_with_half_the_connections_can_replace_the_time_alone() {
        let half: &[(u64, u64)] = &[(1000, 20)];
        let told = seen(&[(20, 20)], &[(5, half), (10, &[(1780, 20), (240, 40)])]);
        let WithAllThreads::Longer(times) = told else { panic!("{told:?}") };
        assert_eq!(times.fewer, 5);
    }

    #[test]
    fn time_on_the_network_is_not_work() {
        let alone = LoneResponses {
            times: times(&[(200, 40)]),
            on_the_way: Nanos::from_millis(20 * 200),
            round_trips: Nanos::from_millis(20 * 200),
        };
        let alone: ServiceTime = alone.service_time().unwrap();
        let usual = UsualTime::capped(&times(&[(1000, 43)]), alone.usual.unwrap().cap);
        let load = LoadSeen {
            connections: 10,
            never_served: 0,
            rate: 230.0,
            responses: 1000,
            usual,
            variation: 0.0,
            busy: None,
        };
        let server = ServerSeen::stated(10, 1, Some(alone));
        let told = of(&ServerSeen { loads: vec![load], ..server });
        assert!(matches!(told, WithAllThreads::Longer(_)), "23 ms instead of 20: {told:?}");
    }
}
