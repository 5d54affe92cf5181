//! Sets of processors, as the kernel and `taskset -c` write them: `0-2,5`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Processors by their numbers (cpuset(7), list format).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(BTreeSet<u32>);

/// The most that Linux can be built for (`CONFIG_NR_CPUS`).
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

    /// Their numbers, rising.
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

    /// Those that are in both.
    #[must_use]
    pub fn common(&self, others: &Cpus) -> Cpus {
        Cpus(&self.0 & &others.0)
    }

    /// Those that are not among `others`.
    #[must_use]
    pub fn without(&self, others: &Cpus) -> Cpus {
        Cpus(&self.0 - &others.0)
    }

    /// Those that are in either.
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
        let wrong = || format!("'{list}' is no list of processors: write their numbers, such as 0-2,5");
        let mut all = BTreeSet::new();
        for part in list.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse().ok().filter(|number| *number < MOST).ok_or_else(wrong);
            let (first, last): (u32, u32) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
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
        // No lane runs here where all of them are on other machines.
        if list.is_empty() { Ok(Cpus::default()) } else { list.parse() }
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        cpus.to_string()
    }
}

/// Who may run where, while a study is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The server's processes.
    pub server: Cpus,
    /// The generator's lanes.
    pub lanes: Cpus,
}

impl Placement {
    /// A server that is kept to some of `ours` leaves the others to the lanes; one that may run everywhere shares them.
    pub fn beside(server: Cpus, ours: &Cpus) -> Placement {
        let left = ours.without(&server);
        Placement { lanes: if left.is_empty() { ours.clone() } else { left }, server }
    }

    /// The same where lanes run on other machines, if they come `from` there: none runs here.
    #[must_use]
    pub fn beside_far(self, from: &[String]) -> Placement {
        if from.is_empty() { self } else { Placement { lanes: Cpus::default(), ..self } }
    }

    /// Where a server serves whose first process may run on `parent` and those below it on `workers`. A parent that may run on all
    /// of `ours` does not count where all its workers are kept to some (as nginx's, with `worker_cpu_affinity`): they serve, and it
    /// waits for them.
    pub fn serving(parent: Cpus, workers: &[Cpus], ours: &Cpus) -> Cpus {
        let is_free = |cpus: &Cpus| cpus.contain(ours);
        let waits = !workers.is_empty() && is_free(&parent) && !workers.iter().any(is_free);
        workers.iter().fold(if waits { Cpus::default() } else { parent }, |all, one| all.with(one))
    }

    /// Whether a processor may have to serve both.
    pub fn is_shared(&self) -> bool {
        !self.server.common(&self.lanes).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn a_list_is_read_and_written_as_taskset_does() {
        assert_eq!(cpus("0-2,5\n").iter().collect::<Vec<_>>(), [0, 1, 2, 5]);
        assert_eq!(cpus("5,1,0,2").to_string(), "0-2,5");
        assert_eq!((cpus("3").in_words(), cpus("0-1").in_words()), ("CPU 3".to_owned(), "CPUs 0-1".to_owned()));
        assert_eq!((cpus("3").to_string(), cpus("0,2").to_string()), ("3".to_owned(), "0,2".to_owned()));
        for wrong in ["", "0-", "2-1", "a", "0,,1", "-1", "99999999", "0-4000000000"] {
            assert!(wrong.parse::<Cpus>().unwrap_err().contains("0-2,5"), "{wrong}");
        }
    }

    #[test]
    fn a_parent_that_only_waits_does_not_count() {
        let serving = |parent: &str, workers: &[&str]| {
            let workers: Vec<Cpus> = workers.iter().copied().map(cpus).collect();
            Placement::serving(cpus(parent), &workers, &cpus("0-3")).to_string()
        };
        assert_eq!((serving("0-3", &["1"]), serving("0-7", &["0", "1"])), ("1".to_owned(), "0-1".to_owned()));
        assert_eq!((serving("0-3", &[]), serving("2", &[])), ("0-3".to_owned(), "2".to_owned()));
        // One that is not kept to some may serve anywhere; a parent that is kept to some may serve there.
        assert_eq!((serving("0-3", &["1", "0-3"]), serving("2", &["1"])), ("0-3".to_owned(), "1-2".to_owned()));
    }

    #[test]
    fn lanes_take_what_a_server_leaves() {
        let beside = |server: &str, ours: &str| Placement::beside(cpus(server), &cpus(ours));
        assert_eq!((beside("0", "0-1").lanes, beside("0", "0-1").is_shared()), (cpus("1"), false));
        assert_eq!((beside("0-3", "0-1").lanes, beside("0-3", "0-1").is_shared()), (cpus("0-1"), true));
        assert_eq!((beside("0-1", "2-3").lanes, beside("0-1", "2-3").is_shared()), (cpus("2-3"), false));
        assert_eq!((beside("0", "0").lanes, beside("0", "0").is_shared()), (cpus("0"), true));
    }
}
