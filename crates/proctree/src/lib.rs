//! Reads processes from `/proc/PID/stat`, and which descend from which.
//!
//! Nothing else reads that file. The guard finds what to kill by it, and samplers follow a server
//! by it. Any user may read it.

use std::fs::{self, File};
use std::io::Read as _;

/// A process as `/proc/PID/stat` shows it (proc(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its id.
    pub pid: u32,
    /// The name of its program, which may contain any character.
    pub name: String,
    /// Its parent's id.
    pub parent: u32,
    /// The id of its process group. 0 for a thread of the kernel, which has none.
    pub group: u32,
    /// Whether it has ended, but its parent has not waited for it yet (state Z or X).
    pub is_dead: bool,
    /// The CPU time that it used, in user and in kernel mode, in ticks.
    pub cpu_ticks: u64,
    /// The same of its children that have ended and for which it has waited, and of theirs.
    pub children_ticks: u64,
    /// When it started, in ticks since the machine's boot. A process id is used again; with the
    /// start it is unique.
    pub started: u64,
    /// Where its stack begins. That changes when it replaces its program by another (exec). 0 if
    /// this user may not trace it.
    pub stack: u64,
}

impl ProcessStat {
    /// The process with this id, ended or not; `None` if there is none.
    pub fn of(pid: u32) -> Option<ProcessStat> {
        // One read is enough: 52 numbers and a name are shorter than this. A second one would cost
        // time when all processes of a machine are read.
        let mut line = [0; 2048];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        ProcessStat::parse(&String::from_utf8_lossy(&line[..length]))
    }

    /// `pid (name) state ppid …`: the name may contain parentheses, so the last one ends it.
    fn parse(text: &str) -> Option<ProcessStat> {
        let (start, rest) = text.rsplit_once(')')?;
        let (pid, name) = start.split_once(" (")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Counted from 1 as in proc(5); the first of these is the third.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(ProcessStat {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            parent: u32::try_from(number(4)?).ok()?,
            group: number(5).and_then(|group| u32::try_from(group).ok()).unwrap_or(0),
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            cpu_ticks: number(14)? + number(15)?,
            children_ticks: number(16)? + number(17)?,
            started: number(22)?,
            stack: number(28).unwrap_or(0),
        })
    }
}

/// Whether `/proc` is mounted so that it does not list other users' processes (`hidepid`, proc(5)).
pub fn hides_processes() -> bool {
    is_hiding(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// Reads `/proc/self/mountinfo`: the fifth field is the mount point, the last ones are the options.
/// If there are several mounts on one point, the last counts.
fn is_hiding(mounts: &str) -> bool {
    let of_proc = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"));
    let options = of_proc.and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
    let hiding = ["hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable"];
    options.split(',').any(|option| hiding.contains(&option))
}

/// Every process that this user can see, by id.
pub fn all() -> Vec<ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<ProcessStat> = pids.filter_map(ProcessStat::of).collect();
    all.sort_unstable_by_key(|process| process.pid);
    all
}

/// The descendants of a process, without itself.
pub fn descendants(ancestor: u32) -> Vec<ProcessStat> {
    below(ancestor, all())
}

/// The ids of a process and its descendants, rising. Only its own if `/proc` does not say more.
pub fn tree(root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut asked = 0;
    while let Some(parent) = tree.get(asked).copied() {
        let Some(children) = children(parent) else {
            tree = descendants(root).iter().map(|process| process.pid).chain([root]).collect();
            break;
        };
        tree.extend(children);
        asked += 1;
    }
    tree.sort_unstable();
    tree
}

/// The children of all threads of a process (`/proc/PID/task/TID/children`); none if it has ended.
/// `None` if the kernel has no such file, so that all of `/proc` must be read. A child that ends at
/// this moment may hide another, so this list is not used for killing.
fn children(parent: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => {
                all.extend(pids.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
            // The thread has ended, or this kernel has no such file.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(all)
}

fn below(ancestor: u32, mut others: Vec<ProcessStat>) -> Vec<ProcessStat> {
    let mut parents = vec![ancestor];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        let (children, rest) =
            others.into_iter().partition::<Vec<_>, _>(|process| process.parent == parent);
        others = rest;
        parents.extend(children.iter().map(|child| child.pid));
        found.extend(children);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_proc_that_hides_processes_is_known_by_its_mount() {
        let plain = "22 1 0:20 / /proc rw,nosuid - proc proc rw\n30 1 0:21 / /sys rw - sysfs sysfs rw,hidepid=invisible\n";
        assert!(!is_hiding(plain));
        for option in ["hidepid=invisible", "hidepid=2", "hidepid=ptraceable"] {
            let over = format!("{plain}90 22 0:50 / /proc rw - proc proc rw,gid=5,{option}\n");
            assert!(is_hiding(&over), "{option}");
            assert!(!is_hiding(&format!("{over}91 90 0:51 / /proc rw - proc proc rw\n")));
        }
        assert!(!is_hiding("22 1 0:20 / /proc rw - proc proc rw,hidepid=noaccess\n"));
    }

    #[test]
    fn a_process_may_be_called_anything() {
        let line = |name: &str, state| {
            format!(
                "77 ({name}) {state} 5 77 77 0 -1 4194304 100 0 0 0 30 12 7 1 20 0 6 0 999 1 1 1 1 1 777\n"
            )
        };
        for name in ["puma", "a) b (c)", "puma: x) R 9 (y", ""] {
            let expected = ProcessStat {
                pid: 77,
                name: name.to_owned(),
                parent: 5,
                group: 77,
                is_dead: false,
                cpu_ticks: 42,
                children_ticks: 8,
                started: 999,
                stack: 777,
            };
            assert_eq!(ProcessStat::parse(&line(name, 'S')), Some(expected.clone()));
            assert_eq!(
                ProcessStat::parse(&line(name, 'Z')),
                Some(ProcessStat { is_dead: true, ..expected })
            );
        }
        for cut in ["", "nonsense", "77 (a) S 1", "77 (a"] {
            assert_eq!(ProcessStat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn grandchildren_are_descendants_and_cousins_are_not() {
        let process = |(pid, parent)| ProcessStat { pid, parent, ..ProcessStat::default() };
        let all = [(5, 3), (2, 1), (3, 2), (4, 1), (6, 5), (2000, 4)].map(process).to_vec();
        let mut found: Vec<_> = below(2, all).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 5, 6]);
    }

    #[test]
    fn a_child_is_in_the_tree_of_its_parent() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let both = tree(std::process::id());
        assert!(both.contains(&child.id()) && both.contains(&std::process::id()), "{both:?}");
        assert_eq!(tree(child.id()), [child.id()]);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(ProcessStat::of(child.id()), None);
    }
}
