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
        Ok(Schedule { pace, connections, length })
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
    use crate::args::load_words;

    #[test]
    fn what_is_asked_for_is_for_the_whole_run_and_every_run_ends() {
        // The highest rate (of hey's -q: of all connections), connections (no more than requests), and seconds.
        for (words, expected) in [
            ("http://h/", (None, 50, Some(10))),
            ("-c 20 http://h/", (None, 20, Some(10))),
            ("-n 5 http://h/", (None, 5, None)),
            ("-n 5 -c 20 http://h/", (None, 5, None)),
            ("--rate 500/s -c 10 http://h/", (Some(500.0), 10, Some(10))),
            ("-q 5 -c 10 http://h/", (Some(50.0), 10, Some(10))),
            ("--steps 10,90000 --for 2s http://h/", (Some(90_000.0), 1000, Some(2))),
            ("--steps 1,2,3 http://h/", (Some(3.0), 1000, Some(30))),
            ("--ramp 1..30000 --for 9s http://h/", (Some(30_000.0), 1000, Some(9))),
        ] {
            let asked = load_words(words.split(' ').map(str::to_owned).collect()).unwrap().schedule().unwrap();
            let length = asked.length.map(|length| length.0 / 1_000_000_000);
            assert_eq!((asked.highest_rate(), asked.connections, length), expected, "{words}");
        }
    }
}
