//! The processes of a server: followed while workers come and go.
//!
//! Read of each: CPU time, run-queue wait and threads ([`crate::processes`]); where details are wanted also context switches
//! (`/proc/PID/task/TID/status`) and resident memory (`/proc/PID/statm`). Which of the server's connections it holds is in
//! `/proc/PID/fd`, which root and its own user may read; all the rest everybody may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::Nanos;
use proctree::ProcessStat;
use rustix::time::ClockId;

use crate::owners;
use crate::processes::{CpuShare, ProcessFollower, ThreadCounters, each_thread, time_of, tree};

/// Processes that are followed, at the most.
pub(crate) const MOST_PROCESSES: usize = 256;
/// Of a title, so much is kept.
const LONGEST_TITLE: usize = 200;

/// Context switches of a process since it was first looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSwitches {
    /// It had to wait for something.
    pub voluntary: u64,
    /// Another thread took the CPU.
    pub involuntary: u64,
}

/// One process at one look. What could not be read, or was not asked for, is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// What it calls itself: its command line, or its name.
    pub title: String,
    /// CPU time and run-queue wait since it was first looked at, or born, and threads.
    pub used: Option<CpuShare>,
    /// Since it was first looked at.
    pub switches: Option<ContextSwitches>,
    /// Resident memory; what is shared with others is counted in each.
    pub memory_bytes: Option<u64>,
    /// Of the server's accepted connections those that it holds; one that several hold is the first one's.
    pub connections: Option<u32>,
}

/// A server's processes.
#[derive(Debug)]
pub struct ServerProcesses {
    roots: Vec<ProcessStat>,
    followed: BTreeMap<u32, FollowedServer>,
    left_out: usize,
    has_searched: bool,
}

#[derive(Debug)]
struct FollowedServer {
    /// With its id this names it for ever; unknown until it is looked at.
    started: Option<u64>,
    follower: ProcessFollower,
    switches: ThreadCounters<2>,
}

impl ServerProcesses {
    /// Of the trees of these processes.
    pub fn of(roots: &[u32]) -> ServerProcesses {
        let mut all =
            ServerProcesses { roots: Vec::new(), followed: BTreeMap::new(), left_out: 0, has_searched: false };
        all.re_root(roots);
        all
    }

    /// Follows the trees of these from now on. Who was followed already keeps its counts.
    pub(crate) fn re_root(&mut self, roots: &[u32]) {
        self.roots = roots.iter().filter_map(|pid| living(*pid)).collect();
    }

    /// Whether any process was found.
    pub fn is_known(&self) -> bool {
        !self.roots.is_empty()
    }

    /// Whether one of its first processes still lives: a later process of the same number is another.
    pub(crate) fn is_alive(&self) -> bool {
        self.roots.iter().any(is_same)
    }

    /// How long the eldest of its first processes has lived.
    pub fn age(&self) -> Option<Nanos> {
        let started = self.roots.iter().map(|root| root.started).min()?;
        let started = Nanos::from_secs_f64(started as f64 / rustix::param::clock_ticks_per_second() as f64);
        Some(time_of(ClockId::Boottime).saturating_sub(started))
    }

    /// How many of its processes are not followed, because they are too many.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Looks for all that live now. Who was born since the last search is followed from its birth.
    pub(crate) fn search(&mut self) {
        let roots = self.roots.iter().filter(|root| is_same(root));
        let pids: BTreeSet<u32> = roots.flat_map(|root| tree(root.pid)).collect();
        self.left_out = pids.len().saturating_sub(MOST_PROCESSES);
        self.followed.retain(|pid, _| pids.contains(pid));
        for pid in pids.into_iter().take(MOST_PROCESSES) {
            let follower = if self.has_searched { ProcessFollower::of_newborn(pid) } else { ProcessFollower::of(pid) };
            let new = || FollowedServer { started: None, follower, switches: ThreadCounters::default() };
            self.followed.entry(pid).or_insert_with(new);
        }
        self.has_searched = true;
    }

    /// All that live now, by their ids. `accepted` are the inodes of the server's accepted connections.
    pub fn sample(&mut self, accepted: Option<&BTreeSet<u64>>, has_details: bool) -> Vec<ProcessSample> {
        // First of all: connections come and go meanwhile.
        let mut unclaimed = accepted.cloned();
        let held: Vec<Option<u32>> =
            self.followed.keys().map(|pid| unclaimed.as_mut().and_then(|unclaimed| claim(*pid, unclaimed))).collect();
        let samples = self.followed.iter_mut().zip(held);
        samples.filter_map(|((pid, followed), held)| sample(*pid, followed, held, has_details)).collect()
    }
}

/// `None` where there is no such process, or only what its parent has not waited for yet.
fn living(pid: u32) -> Option<ProcessStat> {
    ProcessStat::of(pid).filter(|process| !process.is_dead)
}

fn is_same(known: &ProcessStat) -> bool {
    living(known.pid).is_some_and(|now| now.started == known.started)
}

/// One of them; `None` where it has ended.
fn sample(
    pid: u32,
    followed: &mut FollowedServer,
    connections: Option<u32>,
    has_details: bool,
) -> Option<ProcessSample> {
    let stat = living(pid)?;
    if followed.started.is_some_and(|started| started != stat.started) {
        *followed = FollowedServer {
            started: None,
            follower: ProcessFollower::of_newborn(pid),
            switches: ThreadCounters::default(),
        };
    }
    followed.started = Some(stat.started);
    let plain = ProcessSample {
        pid,
        parent: stat.parent,
        used: followed.follower.sample(),
        connections,
        ..ProcessSample::default()
    };
    if !has_details {
        return Some(plain);
    }
    let counts = followed.switches.take(each_thread(pid, "status", switches));
    Some(ProcessSample {
        title: title(pid, &stat.name),
        switches: counts.map(|[voluntary, involuntary]| ContextSwitches { voluntary, involuntary }),
        memory_bytes: resident_pages(pid).map(|pages| pages * rustix::param::page_size() as u64),
        ..plain
    })
}

/// How many of these connections a process holds, which are then nobody else's; `None` where this user may not see that.
fn claim(pid: u32, unclaimed: &mut BTreeSet<u64>) -> Option<u32> {
    let held = owners::sockets_of(pid).ok()?;
    let before = unclaimed.len();
    unclaimed.retain(|inode| !held.contains(inode));
    Some((before - unclaimed.len()) as u32)
}

/// Its command line in one line, or its name where it has none.
fn title(pid: u32, name: &str) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let line = if line.trim_matches('\0').is_empty() { name } else { &line };
    // What would move the cursor has no place on a terminal.
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_TITLE).collect();
    plain.trim_end().to_owned()
}

/// The second word of `/proc/PID/statm`.
fn resident_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A thread's voluntary and involuntary switches.
fn switches(status: &str) -> Option<[u64; 2]> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
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

    #[test]
    fn a_threads_switches_are_both_or_none() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), Some([12, 3]));
        assert_eq!(switches("voluntary_ctxt_switches:\t12\n"), None);
    }

    #[test]
    fn who_comes_is_followed_and_who_goes_is_not() {
        let mut all = ServerProcesses::of(&[std::process::id()]);
        let mut pids = || {
            all.search();
            all.sample(None, false).iter().map(|process| process.pid).collect::<Vec<_>>()
        };
        let mut child = cat();
        assert!(pids().contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!pids().contains(&child.id()));
    }

    #[test]
    fn a_server_that_has_ended_is_not_alive_although_nobody_waited_for_it() {
        let mut child = cat();
        let server = ServerProcesses::of(&[child.id()]);
        assert!(server.is_alive());
        child.kill().unwrap();
        // A zombie until it is waited for; then nothing.
        while server.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!server.is_alive() && !ServerProcesses::of(&[]).is_alive());
    }

    #[test]
    fn connections_are_found_with_their_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let _accepted = [(); 2].map(|()| listener.accept().unwrap());
        let all = crate::sockets::all_of_port(address.port()).unwrap();
        let accepted: BTreeSet<u64> =
            all.iter().filter(|socket| socket.is_accepted()).map(|socket| socket.inode).collect();
        let mut processes = ServerProcesses::of(&[std::process::id()]);
        processes.search();
        let samples = processes.sample(Some(&accepted), true);
        let this = samples.iter().find(|process| process.pid == std::process::id()).unwrap();
        assert_eq!((accepted.len(), this.connections, processes.left_out()), (2, Some(2), 0));
        assert!(this.memory_bytes.is_some_and(|bytes| bytes > 0) && !this.title.is_empty());
        assert_eq!(this.switches, Some(ContextSwitches::default()), "counted from the first look on");
    }
}
