//! Turns of ten: what Puma 5 and 6 do with keep-alive. A thread that has answered goes on with the *same* connection, up
//! to ten requests in a row while others wait, and waits up to 0.2 s for each next one.
//!
//! Source: Puma 5.6.9 and 6.6.1, `lib/puma/const.rb` (`MAX_FAST_INLINE`, `FAST_TRACK_KA_TIMEOUT`), `server.rb`
//! (`process_client`), `client.rb` (`reset`). A queue with limited service, where a whole turn is what waits in line. What
//! has no formula is in [`crate::simulate`].

use crate::closed::{self, Level};
use crate::{Invalid, check};

/// Requests in a row on one connection: `MAX_FAST_INLINE`.
pub const TURN: u32 = 10;

/// How long a thread waits for its connection's next request: `FAST_TRACK_KA_TIMEOUT`, in seconds.
pub const HOLD_SECONDS: f64 = 0.2;

/// Response times in a closed loop without think time and with constant service, of one worker with `threads` threads
/// and `connections` connections: `(L - 1)/L` of the requests take one service time, and the first of each turn takes
/// `L·(n/t - 1) + 1`, since every other turn comes before it. With a turn of 1 it is a first-come-first-served line (on
/// average, where the connections do not divide). One level where there is a thread for each.
///
/// # Errors
/// Without a connection, thread, or request in a turn.
pub fn levels(connections: u32, threads: u32, turn: u32) -> Result<Vec<Level>, Invalid> {
    check::some("connection", connections)?;
    check::some("thread", threads)?;
    check::some("request in a turn", turn)?;
    if connections <= threads {
        return Ok(vec![Level { turns: 1.0, share: 1.0 }]);
    }
    let (single, turn) = (turn == 1, f64::from(turn));
    let first = turn * (f64::from(connections) / f64::from(threads) - 1.0) + 1.0;
    let waits = Level { turns: first, share: 1.0 / turn };
    Ok(if single { vec![waits] } else { vec![Level { turns: 1.0, share: 1.0 - 1.0 / turn }, waits] })
}

/// As [`levels`], where all threads end their turns at once: with `n = q·t + r` connections, the first of `(t - r)/t` of the turns
/// waits for `q - 1` whole turns and that of `r/t` for `q`. Where the turns end at other times, those waits are in between, and as
/// long on average.
///
/// # Errors
/// As [`levels`].
pub fn levels_in_step(connections: u32, threads: u32, turn: u32) -> Result<Vec<Level>, Invalid> {
    check::some("request in a turn", turn)?;
    let (length, firsts) = (f64::from(turn), 1.0 / f64::from(turn));
    let lines = closed::levels(connections, threads)?;
    let waits = lines.iter().map(|line| Level { turns: length * (line.turns - 1.0) + 1.0, share: firsts * line.share });
    let others = Level { turns: 1.0, share: 1.0 - firsts };
    Ok(std::iter::once(others).chain(waits).filter(|level| level.share > 0.0).collect())
}

/// Highest rate of `slots` slots where a connection's next request comes `gap` after its answer: a slot waits with its
/// connection, `c / (s + min(gap, hold))`. With few requests a connection that is `hold` each, and a busy server does
/// nothing: 2 threads and a fast app reach 10 requests per second.
///
/// # Errors
/// Without a slot, where the service time is not above 0, or gap or hold are negative.
pub fn held_rate(slots: u32, service: f64, gap: f64, hold: f64) -> Result<f64, Invalid> {
    check::some("slot", slots)?;
    check::positive("the service time", service)?;
    let held = check::not_negative("the gap", gap)?.min(check::not_negative("the hold", hold)?);
    Ok(f64::from(slots) / (service + held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_waits_for_the_turns_of_all() {
        for (connections, threads, first) in
            [(8, 5, 7.0), (10, 5, 11.0), (20, 5, 31.0), (30, 5, 51.0), (32, 5, 55.0), (40, 5, 71.0), (12, 2, 51.0)]
        {
            let levels = levels(connections, threads, TURN).unwrap();
            assert!(levels[0] == Level { turns: 1.0, share: 0.9 } && (levels[1].share - 0.1).abs() < 1e-15);
            assert!((levels[1].turns - first).abs() < 1e-12, "{connections} on {threads}");
            // The mean is Little's law all the same.
            let mean: f64 = levels.iter().map(|level| level.turns * level.share).sum();
            assert!((mean - f64::from(connections) / f64::from(threads)).abs() < 1e-12);
        }
        assert_eq!(levels(5, 5, TURN).unwrap(), [Level { turns: 1.0, share: 1.0 }]);
        assert_eq!(levels(20, 5, 1).unwrap(), [Level { turns: 4.0, share: 1.0 }]);
        assert!(levels(0, 1, 1).is_err() && levels(1, 0, 1).is_err() && levels(1, 1, 0).is_err());
    }

    #[test]
    fn in_step_some_wait_a_turn_more_and_the_mean_is_the_same() {
        // Fifteen on ten: five of ten turns begin at once, and five after a whole turn of the others.
        let levels_of = |connections| levels_in_step(connections, 10, TURN).unwrap();
        let near = |level: Level, turns: f64, share: f64| {
            assert!((level.turns - turns).abs() + (level.share - share).abs() < 1e-12, "{level:?}");
        };
        for (level, (turns, share)) in levels_of(15).into_iter().zip([(1.0, 0.9), (1.0, 0.05), (11.0, 0.05)]) {
            near(level, turns, share);
        }
        for (level, (turns, share)) in levels_of(40).into_iter().zip([(1.0, 0.9), (31.0, 0.1)]) {
            near(level, turns, share);
        }
        for connections in 10..60 {
            let mean: f64 = levels_of(connections).iter().map(|level| level.turns * level.share).sum();
            assert!((mean - f64::from(connections) / 10.0).abs() < 1e-12, "{connections}");
        }
    }

    #[test]
    fn the_measured_upper_mode() {
        // Puma 5.6.5, N = 12, c = 2, an app of 21.1 ms: p99 1081.7 ms.
        let first = levels(12, 2, TURN).unwrap()[1].turns * 0.0211;
        assert!((first - 1.0761).abs() < 1e-4 && (first / 1.0817 - 1.0).abs() < 0.01);
    }

    #[test]
    fn two_threads_that_wait_reach_ten_a_second() {
        // Measured on 5.6.5: 20/s over 40 connections overload it, 8/s do not.
        assert!((held_rate(2, 1e-9, 2.0, HOLD_SECONDS).unwrap() - 10.0).abs() < 1e-6);
        assert!((held_rate(2, 0.1, 0.05, HOLD_SECONDS).unwrap() - 2.0 / 0.15).abs() < 1e-9);
        assert!(held_rate(2, 0.1, -0.05, HOLD_SECONDS).is_err());
    }
}
