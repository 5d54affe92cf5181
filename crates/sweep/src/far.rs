//! Generators on other machines (`--from 'ssh box2'`): the conductor stays where the server is, and
//! the load comes from elsewhere. Their protocol is in this file: a line that names the version,
//! then frames of JSON, each after its length in four bytes.
//!
//! `conductor.rs` starts `ssh box2 longtail generate` for each, and drives a run with them as
//! `engine::drive` does with lanes of its own; `generator.rs` is the other end: it drives its part
//! of the run with `engine::drive_part`. The lanes of all generators are numbered through the run,
//! and all of them begin at the same instant of the conductor's clock: each generator's clock is
//! compared with it in several exchanges, and the one with the shortest round trip counts. So their
//! records are merged like those of a single generator's lanes. Where no pipe leads to a generator,
//! its part is a file (`part.rs`).

pub(crate) mod conductor;
mod credible;
mod generator;
mod part;

use std::io::{self, Read, Write};
use std::net::IpAddr;

pub use conductor::FarGenerators;
use engine::{LaneOutcome, LoadSpec, RecordBatch};
pub use generator::serve;
use model::{Ceiling, FarGenerator, Nanos, Tally, plausible};
pub use part::{LoadPart, NamedPart, drive_load_part, merge_parts};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How a generator's first line begins; its version follows. Whatever a shell prints before that
/// line is skipped.
pub(super) const GREETING: &str = "longtail generate ";
/// Longest order, which contains the bodies to be sent. Reports have the limits of [`credible`].
const LONGEST_ORDER: usize = 1 << 30;

/// What the conductor says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// What does your clock show?
    Clock,
    /// Get ready for this part of a run; `journal`: report single requests.
    Prepare { spec: Box<LoadSpec>, clock: ClockShift, journal: bool },
    /// The run begins then, by the conductor's clock.
    Start(Nanos),
    /// Add a tally to the next report of progress.
    Tally,
    /// End the run now.
    Stop,
    /// Measure how much you can send of this part of a run, against a sink that takes no time.
    Calibrate { spec: Box<LoadSpec>, response_bytes: u64 },
}

/// What a generator says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The generator's machine.
    Host(FarHost),
    /// Its own clock.
    Clock(Nanos),
    /// All connections and threads are ready.
    Ready,
    /// It cannot do that.
    Refused(String),
    /// Its progress.
    Progress { ended: u64, connected: u64, tally: Option<Box<Tally>> },
    /// Single requests of a lane, in order of completion.
    Records(RecordBatch),
    /// How much it can send; `None` if that could not be measured.
    Ceiling(Option<Ceiling>),
    /// Its part is over.
    Done(Box<PartDone>),
}

/// What has to be added to a generator's clock to get the conductor's. Both are monotonic clocks of
/// their hosts, with different origins, so either may be ahead: sums wrap (two's complement).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClockShift {
    /// From the generator's `now` to the conductor's.
    pub(super) ahead: u64,
    /// The conductor's [`model::Clock::shared_ahead`].
    pub(super) shared_ahead: Nanos,
}

/// A generator's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarHost {
    /// Processors it may run on.
    pub cores: u32,
    /// The conductor's address as that machine sees it, where ssh tells.
    pub conductor: Option<IpAddr>,
}

/// The result of a part of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PartDone {
    /// What its lanes recorded; `None` if it had none.
    pub(super) outcome: Option<LaneOutcome>,
    /// When it was over, by the conductor's clock.
    pub(super) ended: Nanos,
    /// How late its lanes were started.
    pub(super) late: Nanos,
    /// Share of its machine's CPU time that a hypervisor took.
    pub(super) steal: Option<f64>,
    /// Connects that its kernel retried.
    pub(super) syn_retransmits: Option<u64>,
}

impl PartDone {
    /// What is known of the generator that did it.
    pub(super) fn facts(&self, name: String) -> FarGenerator {
        let recorded = self
            .outcome
            .as_ref()
            .map(|outcome| FarGenerator::recorded(name.clone(), &outcome.tally));
        FarGenerator {
            started_late: self.late,
            steal: self.steal,
            syn_retransmits: self.syn_retransmits,
            ..recorded.unwrap_or(FarGenerator { name, ..FarGenerator::default() })
        }
    }
}

/// Merges what another part recorded, as the records of lanes are merged.
pub(super) fn merge(into: &mut Option<LaneOutcome>, part: Option<LaneOutcome>) {
    match (&mut *into, part) {
        (Some(all), Some(part)) => all.merge(part),
        (all, part) => *all = all.take().or(part),
    }
}

/// A message as it goes over the pipe.
pub(super) fn frame(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).expect("every message can be written as JSON");
    let length = u32::try_from(bytes.len() - 4).expect("a message is shorter than a gigabyte");
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&frame(message)).and_then(|()| to.flush())
}

/// The next message; `None` at the end.
///
/// # Errors
/// If it is longer than `longest`, cut off, or no message.
pub(super) fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: usize,
) -> io::Result<Option<T>> {
    Ok(receive_frame(from, longest)?.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
}

/// As [`receive`], from a machine that is not trusted.
pub(super) fn receive_credible<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: usize,
) -> io::Result<Option<T>> {
    let Some(bytes) = receive_frame(from, longest)? else { return Ok(None) };
    plausible::check_message(&mut serde_json::Deserializer::from_slice(&bytes))?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

fn receive_frame(from: &mut impl Read, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > longest {
        return Err(io::Error::other(format!(
            "a message of {length} bytes, and at most {longest} are accepted"
        )));
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_sent_and_broken_ones_are_refused() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Order::Start(Nanos(7))).unwrap();
        send(&mut bytes, &Order::Stop).unwrap();
        let whole = bytes.clone();
        let mut read = &whole[..];
        assert!(matches!(receive(&mut read, 99), Ok(Some(Order::Start(Nanos(7))))));
        assert!(matches!(receive(&mut read, 99), Ok(Some(Order::Stop))));
        assert!(matches!(receive::<Order>(&mut read, 99), Ok(None)));
        assert!(receive::<Order>(&mut &whole[..9], 99).is_err(), "cut off");
        assert!(receive::<Order>(&mut &whole[..], 5).is_err(), "too long");
        assert!(receive::<Order>(&mut &[255_u8; 9][..], LONGEST_ORDER).is_err(), "no frame");
    }
}
