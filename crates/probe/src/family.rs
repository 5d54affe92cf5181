//! The processes of a server that was there before us: followed while workers come and go.
//!
//! Read of each: CPU time, run-queue wait and threads ([`crate::processes`]), context switches
//! (`/proc/PID/task/TID/status`), resident memory (`/proc/PID/statm`), and which of the server's connections it holds
//! (`/proc/PID/fd`, which root and its own user may read; all the rest everybody may).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::owners;
use crate::processes::{Counters, Follower, Used, parent, tree};

/// Processes that are followed, at the most.
pub const MOST_PROCESSES: usize = 256;
/// Of a title, so much is kept.
const LONGEST_TITLE: usize = 200;

/// Context switches of a process since it was first looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It had to wait for something.
    pub voluntary: u64,
    /// Another thread took the CPU.
    pub involuntary: u64,
}

/// One process at one look. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: Option<u32>,
    /// What it calls itself: its command line, or its name.
    pub title: String,
    /// CPU time and run-queue wait since it was first looked at, and threads.
    pub used: Option<Used>,
    /// Since it was first looked at.
    pub switches: Option<Switches>,
    /// Resident memory; what is shared with others is counted in each.
    pub memory_bytes: Option<u64>,
    /// Of the server's accepted connections those that it holds; one that several hold is the first one's.
    pub connections: Option<u32>,
}

/// A server's processes.
#[derive(Debug)]
pub struct Family {
    roots: Vec<Root>,
    followed: BTreeMap<u32, Followed>,
    page: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Root {
    pid: u32,
    started: u64,
}

#[derive(Debug)]
struct Followed {
    started: u64,
    follower: Follower,
    switches: Counters<2>,
}

impl Family {
    /// Of the trees of these processes.
    pub fn of(roots: &[u32]) -> Family {
        let mut family =
            Family { roots: Vec::new(), followed: BTreeMap::new(), page: rustix::param::page_size() as u64 };
        family.re_root(roots);
        family
    }

    /// Follows the trees of these from now on. Who was followed already keeps its counts.
    pub fn re_root(&mut self, roots: &[u32]) {
        let root = |pid: &u32| Some(Root { pid: *pid, started: Stat::of(*pid)?.started });
        self.roots = roots.iter().filter_map(root).collect();
    }

    /// The first processes.
    pub fn roots(&self) -> Vec<u32> {
        self.roots.iter().map(|root| root.pid).collect()
    }

    /// Whether one of its first processes still lives: a later process of the same number is another.
    pub fn is_alive(&self) -> bool {
        self.roots.iter().any(|root| Stat::of(root.pid).is_some_and(|stat| stat.started == root.started))
    }

    /// All that live now, by their ids, and how many were left out. `accepted` are the inodes of the server's accepted connections.
    pub fn look(&mut self, accepted: Option<&BTreeSet<u64>>) -> (Vec<Member>, usize) {
        let mut pids: BTreeSet<u32> = BTreeSet::new();
        for root in &self.roots {
            if Stat::of(root.pid).is_some_and(|stat| stat.started == root.started) {
                pids.extend(tree(root.pid));
            }
        }
        let left_out = pids.len().saturating_sub(MOST_PROCESSES);
        self.followed.retain(|pid, _| pids.contains(pid));
        // First of all: connections come and go meanwhile.
        let mut unclaimed = accepted.cloned();
        let held = |pid: &u32| (*pid, unclaimed.as_mut().and_then(|unclaimed| claim(*pid, unclaimed)));
        let held: Vec<(u32, Option<u32>)> = pids.iter().take(MOST_PROCESSES).map(held).collect();
        (held.into_iter().filter_map(|(pid, connections)| self.member(pid, connections)).collect(), left_out)
    }

    /// One of them; `None` where it has ended.
    fn member(&mut self, pid: u32, connections: Option<u32>) -> Option<Member> {
        let stat = Stat::of(pid)?;
        let new = || Followed { started: stat.started, follower: Follower::of(pid), switches: Counters::default() };
        let followed = self.followed.entry(pid).or_insert_with(new);
        if followed.started != stat.started {
            *followed = new();
        }
        let counts = followed.switches.take(switches(pid));
        Some(Member {
            pid,
            parent: stat.parent,
            title: title(pid),
            used: followed.follower.look(),
            switches: counts.map(|[voluntary, involuntary]| Switches { voluntary, involuntary }),
            memory_bytes: resident_pages(pid).map(|pages| pages * self.page),
            connections,
        })
    }
}

/// How many of these connections a process holds, which are then nobody else's; `None` where this user may not see that.
fn claim(pid: u32, unclaimed: &mut BTreeSet<u64>) -> Option<u32> {
    let held = owners::sockets_of(pid).ok()?;
    let before = unclaimed.len();
    unclaimed.retain(|inode| !held.contains(inode));
    Some((before - unclaimed.len()) as u32)
}

/// Of `/proc/PID/stat`, for a process that lives.
struct Stat {
    parent: Option<u32>,
    /// Ticks after the machine's boot: with its id this names a process for ever.
    started: u64,
}

impl Stat {
    /// `None` where there is no such process, or only what its parent has not waited for yet (Z, X).
    fn of(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Fields 3 (state), 4 (parent) and 22 (starttime) of proc(5); the second, the name, may hold anything.
    fn parse(text: &str) -> Option<Stat> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        if ["Z", "X"].contains(fields.first()?) {
            return None;
        }
        Some(Stat { parent: parent(text), started: fields.get(19)?.parse().ok()? })
    }
}

/// Its command line in one line, or its name where it has none.
fn title(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    // What would move the cursor has no place on a terminal.
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_TITLE).collect();
    let plain = plain.trim_end();
    if plain.is_empty() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        return name.chars().filter(|c| !c.is_control()).collect();
    }
    plain.to_owned()
}

/// The second word of `/proc/PID/statm`.
fn resident_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Each thread's voluntary and involuntary switches.
fn switches(pid: u32) -> BTreeMap<u32, [u64; 2]> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(Path::new(&folder)).into_iter().flatten().flatten();
    let of_thread = |entry: fs::DirEntry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        Some((thread, of_status(&fs::read_to_string(entry.path().join("status")).ok()?)?))
    };
    entries.filter_map(of_thread).collect()
}

fn of_status(text: &str) -> Option<[u64; 2]> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some([field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};

    fn cat() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn the_kernels_lines_are_understood() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(of_status(status), Some([12, 3]));
        assert_eq!(of_status("voluntary_ctxt_switches:\t12\n"), None);
        let stat = "77 (a) Z (b) S 5 77 77 0 -1 4194304 100 0 0 0 30 12 7 1 20 0 6 0 999 1 1";
        let seen = Stat::parse(stat).unwrap();
        assert_eq!((seen.parent, seen.started), (Some(5), 999));
        assert!(Stat::parse(&stat.replace(") S", ") Z")).is_none(), "it is dead");
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn who_comes_is_followed_and_who_goes_is_not() {
        let mut family = Family::of(&[std::process::id()]);
        let pids = |family: &mut Family| family.look(None).0.iter().map(|member| member.pid).collect::<Vec<_>>();
        let child = cat();
        let pid = child.id();
        assert!(pids(&mut family).contains(&pid) && family.is_alive());
        end(child);
        assert!(!pids(&mut family).contains(&pid));
    }

    #[test]
    fn a_server_that_has_ended_is_not_alive_although_nobody_waited_for_it() {
        let mut child = cat();
        let family = Family::of(&[child.id()]);
        assert!(family.is_alive());
        child.kill().unwrap();
        // A zombie until it is waited for; then nothing.
        while family.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!family.is_alive() && !Family::of(&[]).is_alive());
    }

    #[test]
    fn connections_are_found_with_their_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let _accepted = [(); 2].map(|()| listener.accept().unwrap());
        let all = crate::sockets::all_of_port(address.port()).unwrap();
        let accepted: BTreeSet<u64> =
            all.iter().filter(|socket| !socket.is_listener && socket.inode != 0).map(|socket| socket.inode).collect();
        let (members, left_out) = Family::of(&[std::process::id()]).look(Some(&accepted));
        let this = members.iter().find(|member| member.pid == std::process::id()).unwrap();
        assert_eq!((accepted.len(), this.connections, left_out), (2, Some(2), 0));
        assert!(this.memory_bytes.is_some_and(|bytes| bytes > 0) && !this.title.is_empty());
        assert_eq!(this.switches, Some(Switches::default()), "counted from the first look on");
    }
}
