//! The network between generator and server: its round trips, or its losses.

use model::{Limit, Nanos, NetworkPath, Tally};

/// The network is the limit if round trips take at least this share of the service time: every
/// request has one.
const ROUND_TRIPS: f64 = 0.5;
/// It is also the limit if requests with a retransmission take at least this share: they are few,
/// but slow because of it.
const RETRANSMISSIONS: f64 = 0.1;

/// The limit, if the network took the time.
pub(crate) fn of(tally: &Tally) -> Option<Limit> {
    let NetworkPath { round_trip, slow, slow_with_retransmission, .. } = tally.network;
    let on_the_way = tally.network.share_of_round_trip(&tally.service_time).unwrap_or(0.0);
    let sent_again = tally.network.share_of_retransmissions(&tally.service_time);
    (on_the_way >= ROUND_TRIPS || sent_again >= RETRANSMISSIONS).then(|| Limit::Network {
        round_trip: round_trip.mean(),
        slow,
        retransmitted: slow_with_retransmission.count,
        share: on_the_way.max(sent_again),
    })
}

pub(super) fn evidence(
    round_trip: Option<Nanos>,
    slow: u64,
    retransmitted: u64,
    share: f64,
) -> String {
    let round_trip =
        round_trip.map(|time| format!("a round trip takes {:.1} ms; ", time.as_millis_f64()));
    let sent_again = (slow > 0)
        .then(|| format!("{retransmitted} of {slow} slow requests had a retransmission; "));
    let share = share * 100.0;
    format!(
        "{}{}{share:.0} % of the service time is the network's",
        round_trip.unwrap_or_default(),
        sent_again.unwrap_or_default()
    )
}

pub(super) fn sentence(
    round_trip: Option<Nanos>,
    slow: u64,
    retransmitted: u64,
    share: f64,
) -> String {
    let evidence = evidence(round_trip, slow, retransmitted, share);
    format!("The network is the limit: {evidence}.")
}

#[cfg(test)]
mod tests {
    use model::Window;

    use super::*;

    #[test]
    fn the_network_is_the_limit_if_it_took_the_time() {
        let millis = Nanos::from_millis;
        // 100 requests of 20 ms, then `lost` ones of 220 ms, each with a retransmission.
        let of = |round_trip: u64, lost: u64, slow_otherwise: u64| {
            let mut tally =
                Tally::new(Window { from: Nanos::ZERO, until: Nanos::from_secs(10) }, 1);
            (0..100).for_each(|_| tally.service_time.record(millis(20)));
            for at in 0..lost + slow_otherwise {
                tally.service_time.record(millis(220));
                tally.network.record_slow(millis(220), at < lost);
            }
            tally.network.record_connection(millis(round_trip), 0);
            super::of(&tally)
        };
        assert_eq!(of(0, 0, 0), None, "nothing is known about the network");
        assert_eq!(of(9, 0, 0), None, "a round trip takes 9 of 20 ms");
        assert_eq!(of(0, 0, 50), None, "slow, but without retransmissions");
        assert_eq!(of(0, 1, 9), None, "one of ten slow ones");
        let Some(Limit::Network { share, slow: 0, .. }) = of(15, 0, 0) else {
            panic!("a round trip takes 15 of 20 ms")
        };
        assert!((share - 0.75).abs() < 0.01, "{share}");
        let Some(Limit::Network { share, slow: 3, retransmitted: 2, .. }) = of(0, 2, 1) else {
            panic!("two of three")
        };
        assert!((share - 440.0 / 2660.0).abs() < 0.01, "{share}");
    }
}
