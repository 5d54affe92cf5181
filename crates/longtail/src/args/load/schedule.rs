//! When requests are due, over how many connections, for how long: what the flags of a load come to.

use model::{LatePolicy, Nanos, Pace, Profile, Rate};

use super::LoadArgs;
use crate::mistake::{Mistake, wrong};

/// Where nothing else ends a run, or a step of it.
const DEFAULT_LENGTH: Nanos = Nanos::from_secs(10);

/// Connections of a closed loop, or of -q, where none are asked for.
const DEFAULT_CONNECTIONS: u32 = 50;

/// When requests are due, over how many connections, for how long.
pub(crate) struct Schedule {
    pub(crate) pace: Pace,
    pub(crate) connections: u32,
    pub(crate) length: Option<Nanos>,
    /// As the user wants; `None` leaves it to the machine.
    pub(crate) lanes: Option<u32>,
}

impl Schedule {
    /// The highest rate of an open loop, in requests per second.
    pub(crate) fn highest_rate(&self) -> Option<f64> {
        match &self.pace {
            Pace::Closed => None,
            Pace::Open { profile, .. } => Some(profile.peak().per_second()),
        }
    }
}

impl LoadArgs {
    /// The schedule, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn schedule(&self) -> Result<Schedule, Mistake> {
        let profile = self.profile()?;
        let length = self.run_length(profile.as_ref());
        let is_open = profile.is_some();
        if !is_open && (self.burst > 1 || self.late == LatePolicy::Skip) {
            return Err(wrong("--burst and --late belong to an open loop: give --rate, --ramp or --steps"));
        }
        if is_open && self.think > Nanos::ZERO {
            return Err(wrong(
                "--think belongs to a closed loop: leave it out, or leave out --rate, --ramp and --steps",
            ));
        }
        let pace = match profile {
            None => Pace::Closed,
            Some(profile) => Pace::Open { profile, arrivals: self.arrivals, seed: self.seed, burst: self.burst },
        };
        let most = if is_open { self.max_connections } else { DEFAULT_CONNECTIONS };
        // More connections than requests would only be opened and closed.
        let needed = self.number.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
        let connections = self.connections.unwrap_or(most).min(needed);
        Ok(Schedule { pace, connections, length, lanes: self.generator_threads })
    }

    fn profile(&self) -> Result<Option<Profile>, Mistake> {
        if let Some(rate) = self.rate {
            return Ok(Some(Profile::Flat { rate }));
        }
        if let Some(each) = self.per_connection_rate {
            let total = each.per_second() * f64::from(self.connections.unwrap_or(DEFAULT_CONNECTIONS));
            return Ok(Some(Profile::Flat { rate: Rate::new(total).map_err(wrong)? }));
        }
        if let Some(ramp) = &self.ramp {
            let (from, to) =
                ramp.split_once("..").ok_or_else(|| wrong("--ramp wants two rates, such as 100/s..1000/s"))?;
            let rate = |text: &str| text.parse::<Rate>().map_err(|error| wrong(format!("--ramp: {error}")));
            let over = self.length.unwrap_or(DEFAULT_LENGTH);
            return Ok(Some(Profile::Ramp { from: rate(from)?, to: rate(to)?, over }));
        }
        if self.steps.is_empty() {
            return Ok(None);
        }
        let each = self.length.map_or(DEFAULT_LENGTH, |length| length / self.steps.len() as u64);
        Ok(Some(Profile::Steps { rates: self.steps.clone(), each }))
    }

    /// Where neither time nor number ends the run, time does: no run is endless.
    fn run_length(&self, profile: Option<&Profile>) -> Option<Nanos> {
        self.length.or_else(|| profile.and_then(Profile::length)).or(match self.number {
            Some(_) => None,
            None => Some(DEFAULT_LENGTH),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::load_words;

    fn schedule(words: &str) -> Result<Schedule, String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        load_words(words).and_then(|args| args.schedule()).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn the_highest_rate_of_an_open_loop_is_known() {
        let highest = |words| schedule(words).unwrap().highest_rate();
        assert_eq!((highest("--rate 100 http://h/"), highest("http://h/")), (Some(100.0), None));
        assert_eq!(highest("--steps 10,90000 --for 2s http://h/"), Some(90_000.0));
        assert_eq!(highest("--ramp 1..30000 --for 9s http://h/"), Some(30_000.0));
    }

    #[test]
    fn a_rate_is_of_the_whole_run_and_heys_q_is_of_each_connection() {
        let rate = |words| match schedule(words).unwrap().pace {
            Pace::Open { profile: Profile::Flat { rate }, .. } => rate.per_second().to_bits(),
            other => panic!("{other:?}"),
        };
        assert_eq!(rate("--rate 500/s -c 10 http://h/"), 500f64.to_bits());
        assert_eq!(rate("-q 5 -c 10 http://h/"), 50f64.to_bits());
    }

    #[test]
    fn every_run_ends() {
        assert_eq!(schedule("http://h/").unwrap().length, Some(Nanos::from_secs(10)));
        assert_eq!(schedule("-n 5 http://h/").unwrap().length, None);
        assert_eq!(schedule("--steps 1,2,3 --for 30s http://h/").unwrap().length, Some(Nanos::from_secs(30)));
        assert_eq!(schedule("--steps 1,2,3 http://h/").unwrap().length, Some(Nanos::from_secs(30)));
    }

    #[test]
    fn no_more_connections_than_requests() {
        assert_eq!(schedule("-n 5 http://h/").unwrap().connections, 5);
        assert_eq!(schedule("-n 5 -c 20 http://h/").unwrap().connections, 5);
        assert_eq!(schedule("-c 20 http://h/").unwrap().connections, 20);
    }
}
