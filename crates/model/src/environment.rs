//! Where a study was made: the machine, the server under test, the CPUs of server and generator,
//! and the default number of lanes (generator threads).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Nanos;
use crate::secret::MaskedText;

/// The machine and our own version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of longtail.
    pub longtail_version: String,
    /// Operating system, as it names itself.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// CPUs that this process may run on.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The server under test, as it was started and as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `Puma`, `built-in server`, or the command's name.
    pub name: String,
    /// Its version, if it says.
    pub version: Option<String>,
    /// Its language runtime, if it says: `ruby 3.1.2p20 …`.
    pub runtime: Option<String>,
    /// `branch commit` of the checkout that it runs in, if any.
    pub git: Option<String>,
    /// The exact command line, as a shell would take it.
    pub command_line: MaskedText,
    /// Where the load goes.
    pub url: MaskedText,
    /// Worker processes; 1 in single mode.
    pub workers: u32,
    /// The most threads per worker.
    pub threads: u32,
    /// Whether it runs worker processes (Puma's cluster mode).
    pub cluster: bool,
    /// The CPUs of its processes and of the lanes; `None` if the kernel doesn't say, and in older
    /// files.
    pub placement: Option<Placement>,
    /// The settings in Puma's config file and environment that affect the order of service; `None`
    /// if unknown.
    pub settings: Option<PumaSettings>,
}

impl ServerFacts {
    /// What a Puma is called.
    pub const PUMA: &str = "Puma";

    /// The major version of this Puma; `None` if it is another server, or does not say.
    pub fn puma_major(&self) -> Option<u32> {
        let version = self.version.as_ref().filter(|_| self.name == ServerFacts::PUMA)?;
        version.split('.').next()?.parse().ok()
    }
}

/// Puma's settings that affect the order of service. `None` means this version's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PumaSettings {
    /// `max_fast_inline`, Puma 6 and older: requests of one connection in a row while others wait.
    pub max_fast_inline: Option<u32>,
    /// `queue_requests`: without it there is no keep-alive.
    pub queue_requests: Option<bool>,
    /// `enable_keep_alives`, Puma 6.5 and later.
    pub enable_keep_alives: Option<bool>,
    /// `wait_for_less_busy_worker`: the longest delay before an accept.
    #[serde(rename = "wait_for_less_busy_worker_ns")]
    pub wait_for_less_busy_worker: Option<Nanos>,
    /// Whether its thread pool can delay an accept until a thread is free (`wait_until_not_full`).
    pub waits_until_not_full: Option<bool>,
}

impl ServerFacts {
    /// What it can process at once: workers x threads.
    pub fn slots(&self) -> u32 {
        self.workers * self.threads
    }
}

/// A set of CPUs by number (cpuset(7), list format).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(BTreeSet<u32>);

/// The most CPUs that Linux can be built for (`CONFIG_NR_CPUS`).
const MOST: u32 = 8192;

impl Cpus {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their numbers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// `CPU 1`, `CPUs 0-2,5`.
    pub fn in_words(&self) -> String {
        format!("{} {self}", if self.len() == 1 { "CPU" } else { "CPUs" })
    }

    /// Whether all of `others` are among them.
    pub fn contain(&self, others: &Cpus) -> bool {
        self.0.is_superset(&others.0)
    }

    /// CPUs in both.
    #[must_use]
    pub fn common(&self, others: &Cpus) -> Cpus {
        Cpus(&self.0 & &others.0)
    }

    /// CPUs that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &Cpus) -> Cpus {
        Cpus(&self.0 - &others.0)
    }

    /// CPUs in either.
    #[must_use]
    pub fn with(&self, others: &Cpus) -> Cpus {
        Cpus(&self.0 | &others.0)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Cpus {
        Cpus(numbers.into_iter().collect())
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(list: &str) -> Result<Cpus, String> {
        let invalid =
            || format!("'{list}' is not a list of CPUs: write their numbers, such as 0-2,5");
        let mut all = BTreeSet::new();
        for part in list.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number =
                |text: &str| text.parse().ok().filter(|number| *number < MOST).ok_or_else(invalid);
            let first: u32 = number(first)?;
            let last: u32 = number(last)?;
            if first > last {
                return Err(invalid());
            }
            all.extend(first..=last);
        }
        Ok(Cpus(all))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<u32> = self.iter().collect();
        let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        });
        f.write_str(&runs.collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for Cpus {
    type Error = String;

    fn try_from(list: String) -> Result<Cpus, String> {
        // The set is empty if all lanes are on other machines.
        if list.is_empty() { Ok(Cpus::default()) } else { list.parse() }
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        cpus.to_string()
    }
}

/// Which CPUs server and generator may use during a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The server's processes.
    pub server: Cpus,
    /// The generator's lanes.
    pub lanes: Cpus,
}

impl Placement {
    /// A server that is bound to some of `ours` leaves the others to the lanes; one that may run
    /// everywhere shares all of them.
    pub fn of_server(server: Cpus, ours: &Cpus) -> Placement {
        let left = ours.without(&server);
        Placement { lanes: if left.is_empty() { ours.clone() } else { left }, server }
    }

    /// The same, without local lanes if the load comes `from` other machines.
    #[must_use]
    pub fn with_generators<Command>(self, from: &[Command]) -> Placement {
        if from.is_empty() { self } else { Placement { lanes: Cpus::default(), ..self } }
    }

    /// The CPUs of a server whose first process may run on `parent` and its children on `workers`.
    /// A parent that may run on all of `ours` doesn't count if all its workers are bound to some
    /// CPUs (like nginx with `worker_cpu_affinity`): the workers serve, and the parent only waits.
    pub fn serving(parent: Cpus, workers: &[Cpus], ours: &Cpus) -> Cpus {
        let is_unbound = |cpus: &Cpus| cpus.contain(ours);
        let waits = !workers.is_empty() && is_unbound(&parent) && !workers.iter().any(is_unbound);
        workers.iter().fold(if waits { Cpus::default() } else { parent }, |all, one| all.with(one))
    }

    /// Whether server and lanes share a CPU.
    pub fn is_shared(&self) -> bool {
        !self.server.common(&self.lanes).is_empty()
    }
}

/// The rate per lane that an open loop relies on: a tenth of what a lane can send, so that it never
/// queues requests itself.
pub(crate) const TRUSTED_RATE: f64 = 20_000.0;

/// Why a run has this number of lanes: the smallest of several bounds. As text a few words, or none
/// if it needs no explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneCountReason {
    /// The user asked for it.
    #[error("")]
    Asked,
    /// The highest rate needs no more, at `TRUSTED_RATE` a lane.
    #[error("enough for this rate")]
    Rate,
    /// Half of the CPUs, because the server needs some.
    #[error("half of the CPUs")]
    Half,
    /// All CPUs that the server leaves.
    #[error("one for each CPU that the server leaves")]
    Left,
    /// A lane needs a connection.
    #[error("one for each connection")]
    Connections,
}

impl LaneCountReason {
    /// The number of lanes of a load: what was asked for, otherwise one for each free CPU. An open
    /// loop gets no more than its highest rate (requests per second) needs, because each lane is
    /// another thread that wakes up beside the server.
    pub fn choose(
        asked: Option<u32>,
        highest_rate: Option<f64>,
        connections: u32,
        cpus: u32,
        placement: Option<&Placement>,
    ) -> (u32, LaneCountReason) {
        let of_rate = |rate: f64| {
            ((rate / TRUSTED_RATE).ceil().clamp(1.0, 1e6) as u32, LaneCountReason::Rate)
        };
        let room = match placement.filter(|placement| !placement.is_shared()) {
            Some(apart) => (apart.lanes.len() as u32, LaneCountReason::Left),
            None => ((cpus / 2).max(1), LaneCountReason::Half),
        };
        let bounds = match asked {
            Some(count) => [Some((count, LaneCountReason::Asked)), None],
            None => [highest_rate.map(of_rate), Some(room)],
        };
        let least = bounds.into_iter().flatten().min_by_key(|(count, _)| *count);
        least
            .filter(|(count, _)| *count <= connections)
            .unwrap_or((connections, LaneCountReason::Connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn an_unbound_parent_of_bound_workers_does_not_count() {
        let serving = |parent: &str, workers: &[&str]| {
            let workers: Vec<Cpus> = workers.iter().copied().map(cpus).collect();
            Placement::serving(cpus(parent), &workers, &cpus("0-3")).to_string()
        };
        assert_eq!(
            (serving("0-3", &["1"]), serving("0-7", &["0", "1"])),
            ("1".to_owned(), "0-1".to_owned())
        );
        assert_eq!((serving("0-3", &[]), serving("2", &[])), ("0-3".to_owned(), "2".to_owned()));
        // A worker that isn't bound may serve anywhere; a parent that is bound may serve there,
        // too.
        assert_eq!(
            (serving("0-3", &["1", "0-3"]), serving("2", &["1"])),
            ("0-3".to_owned(), "1-2".to_owned())
        );
    }

    #[test]
    fn lanes_use_the_cpus_that_a_server_leaves() {
        let place = |server: &str, ours: &str| Placement::of_server(cpus(server), &cpus(ours));
        assert_eq!((place("0", "0-1").lanes, place("0", "0-1").is_shared()), (cpus("1"), false));
        assert_eq!(
            (place("0-3", "0-1").lanes, place("0-3", "0-1").is_shared()),
            (cpus("0-1"), true)
        );
        assert_eq!(
            (place("0-1", "2-3").lanes, place("0-1", "2-3").is_shared()),
            (cpus("2-3"), false)
        );
        assert_eq!((place("0", "0").lanes, place("0", "0").is_shared()), (cpus("0"), true));
    }

    /// The first `n` CPUs.
    fn first(n: u32) -> Cpus {
        (0..n).collect()
    }

    #[test]
    fn there_is_a_lane_for_each_cpu_that_the_server_leaves_or_for_half_of_all() {
        // (CPUs, lanes if the server has one, half, or all of them)
        for (cpus, with_one, with_half, with_all) in
            [(2, 1, 1, 1), (4, 3, 2, 2), (8, 7, 4, 4), (64, 63, 32, 32)]
        {
            for (server, lanes, by) in [
                (1, with_one, LaneCountReason::Left),
                (cpus / 2, with_half, LaneCountReason::Left),
                (cpus, with_all, LaneCountReason::Half),
            ] {
                let placement = Placement::of_server(first(server), &first(cpus));
                let chosen = LaneCountReason::choose(None, None, 1000, cpus, Some(&placement));
                assert_eq!(chosen, (lanes, by), "{server} of {cpus}");
                assert_eq!(
                    placement.lanes.common(&first(server)).is_empty(),
                    server < cpus,
                    "{server} of {cpus}"
                );
            }
        }
        assert_eq!(LaneCountReason::choose(None, None, 50, 1, None), (1, LaneCountReason::Half));
    }

    #[test]
    fn an_open_loop_has_as_many_lanes_as_its_rate_needs_or_as_were_asked_for() {
        for (asked, rate, connections, chosen) in [
            (None, Some(0.001), 1000, (1, LaneCountReason::Rate)),
            (None, Some(20_000.0), 1000, (1, LaneCountReason::Rate)),
            (None, Some(20_001.0), 1000, (2, LaneCountReason::Rate)),
            (None, Some(5e5), 1000, (4, LaneCountReason::Half)),
            (None, Some(5e5), 3, (3, LaneCountReason::Connections)),
            (Some(3), None, 4, (3, LaneCountReason::Asked)),
            (Some(9), Some(1.0), 1000, (9, LaneCountReason::Asked)),
            (Some(9), Some(1.0), 4, (4, LaneCountReason::Connections)),
        ] {
            assert_eq!(
                LaneCountReason::choose(asked, rate, connections, 8, None),
                chosen,
                "{asked:?} {rate:?} {connections}"
            );
        }
    }
}
