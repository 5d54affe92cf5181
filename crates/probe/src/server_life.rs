//! Follows the life of a server's processes closely: when one starts, when its threads serve, when
//! it replaces its program, when it ends.
//!
//! A look reads `/proc/PID/stat` of each process, and the names of threads only of those that are
//! not known to serve yet, so it can be repeated 50 times a second.

use std::collections::BTreeSet;

use model::{Nanos, ProcessRole, SeenProcess};
use proctree::{ProcessStat, tree};

use crate::processes::title;
use crate::puma_setup;
use crate::threads;

/// The most processes that are followed.
const MOST: usize = 512;

/// The processes of a server, dead and alive.
#[derive(Debug, Default)]
pub struct ServerLife {
    roots: Vec<u32>,
    /// Whether one of them was seen to be a Puma.
    is_puma: bool,
    lives: Vec<FollowedLife>,
    cpu_ticks: u64,
}

/// One life: a process from when it ran its program until it ended or ran another.
#[derive(Debug)]
struct FollowedLife {
    seen: SeenProcess,
    /// As of the last look.
    stat: ProcessStat,
}

impl ServerLife {
    /// Follows the trees of these processes.
    pub fn of(roots: &[u32]) -> ServerLife {
        ServerLife { roots: roots.to_vec(), ..ServerLife::default() }
    }

    /// Looks at all processes at this time. `is_first`: what is seen was there from the beginning.
    pub fn look(&mut self, now: Nanos, is_first: bool) {
        let is_puma = |root: &u32| puma_setup::version_of(*root).is_some();
        self.is_puma = self.is_puma || self.roots.iter().any(is_puma);
        let pids = self.pids();
        let stats: Vec<ProcessStat> = pids.into_iter().filter_map(ProcessStat::of).collect();
        let alive = || stats.iter().filter(|stat| !stat.is_dead);
        for life in self.lives.iter_mut().filter(|life| life.seen.ended.is_none()) {
            match alive().find(|stat| is_same_life(&life.stat, stat)) {
                Some(stat) => {
                    self.cpu_ticks += stat.cpu_ticks.saturating_sub(life.stat.cpu_ticks);
                    life.stat = later(&life.stat, stat);
                }
                None => life.seen.ended = Some(now),
            }
        }
        for stat in alive() {
            self.follow(stat, now, is_first);
        }
        self.look_for_serving(now, is_first);
    }

    /// The processes of the trees, and those that were in them before: a worker may live on when its
    /// parent has ended, and is then in no tree.
    fn pids(&self) -> BTreeSet<u32> {
        let followed = self.lives.iter().filter(|life| life.seen.ended.is_none());
        let followed = followed.map(|life| life.seen.pid);
        self.roots.iter().flat_map(|root| tree(*root)).chain(followed).collect()
    }

    /// Adds this process if its present life is not known yet.
    fn follow(&mut self, stat: &ProcessStat, now: Nanos, is_first: bool) {
        let is_known = |life: &FollowedLife| is_same_life(&life.stat, stat);
        if self.lives.len() >= MOST || self.lives.iter().any(is_known) {
            return;
        }
        let is_same_process =
            |life: &FollowedLife| (life.stat.pid, life.stat.started) == (stat.pid, stat.started);
        let former = self.lives.iter().rfind(|life| is_same_process(life));
        let by_exec = former.is_some();
        // Its parent may have ended in the meantime: whose child it was still tells what it is.
        let parent = former.map_or(stat.parent, |life| life.seen.parent);
        if !is_first && !by_exec {
            self.cpu_ticks += stat.cpu_ticks;
        }
        let role =
            if self.roots.contains(&stat.pid) { ProcessRole::First } else { ProcessRole::Other };
        let seen = SeenProcess {
            pid: stat.pid,
            parent,
            role,
            started: (!is_first).then_some(now),
            serving: None,
            ended: None,
            by_exec,
        };
        self.lives.push(FollowedLife { seen, stat: stat.clone() });
    }

    /// Notes which processes have begun to serve, and which are workers: those that call themselves
    /// so, or, where the server is no Puma, the children of its first process.
    fn look_for_serving(&mut self, now: Nanos, is_first: bool) {
        let is_waiting = |life: &&mut FollowedLife| {
            life.seen.ended.is_none()
                && (life.seen.serving.is_none() || life.seen.role == ProcessRole::Other)
        };
        for life in self.lives.iter_mut().filter(is_waiting) {
            let pid = life.seen.pid;
            let is_worker = if self.is_puma {
                is_pumas_worker(pid)
            } else {
                self.roots.contains(&life.seen.parent)
            };
            if life.seen.role == ProcessRole::Other && is_worker {
                life.seen.role = ProcessRole::Worker;
            }
            if life.seen.serving.is_none() && threads::has_server(pid) {
                life.seen.serving = Some(if is_first { Nanos::ZERO } else { now });
            }
        }
    }

    /// The first process of the server. If several live, the one that was found last; `None` if
    /// none does.
    pub fn living_root(&self) -> Option<u32> {
        self.living_roots().next_back()
    }

    /// The first processes of the server that live, in the order in which they were found.
    pub fn living_roots(&self) -> impl DoubleEndedIterator<Item = u32> {
        let lives = |root: &u32| {
            let is_root = |life: &FollowedLife| life.seen.pid == *root && life.seen.ended.is_none();
            self.lives.iter().any(is_root)
        };
        self.roots.iter().copied().filter(lives)
    }

    /// Follows these, too: a server that took the place of one that ended.
    pub fn add_roots(&mut self, roots: &[u32]) {
        let new = roots.iter().filter(|root| !self.roots.contains(root));
        let new: Vec<u32> = new.copied().collect();
        self.roots.extend(new);
    }

    /// The workers that live now, by when they started.
    pub fn workers(&self) -> Vec<u32> {
        let lives = self.lives.iter().map(|life| &life.seen);
        let workers = lives.filter(|seen| seen.role == ProcessRole::Worker && seen.ended.is_none());
        workers.map(|seen| seen.pid).collect()
    }

    /// CPU time that all of them used since the first look, in ticks.
    pub fn cpu_ticks(&self) -> u64 {
        self.cpu_ticks
    }

    /// All lives that were seen, in the order in which they were found.
    pub fn seen(&self) -> Vec<SeenProcess> {
        self.lives.iter().map(|life| life.seen.clone()).collect()
    }
}

/// Whether both are one process with one program. Where this user may not trace it, a new program
/// is not noticed.
fn is_same_life(before: &ProcessStat, now: &ProcessStat) -> bool {
    let is_same_program = before.stack == now.stack || before.stack == 0 || now.stack == 0;
    (before.pid, before.started) == (now.pid, now.started) && is_same_program
}

/// What is known of a process after another look. In the middle of an exec the kernel shows no stack
/// for a moment; then the former stack is kept, because the new program is noticed only by the
/// difference.
fn later(before: &ProcessStat, now: &ProcessStat) -> ProcessStat {
    let stack = if now.stack == 0 { before.stack } else { now.stack };
    ProcessStat { stack, ..now.clone() }
}

/// Whether a process calls itself a worker of a Puma cluster: `puma: cluster worker 0: 4242 [app]`.
fn is_pumas_worker(pid: u32) -> bool {
    title(pid, "").starts_with("puma: cluster worker")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    /// A minute of looks, about.
    const MOST_LOOKS: u64 = 1_000_000;

    /// Looks again and again, each time a nanosecond later, until this is seen.
    fn look_until(life: &mut ServerLife, now: &mut u64, is_seen: impl Fn(&ServerLife) -> bool) {
        while !is_seen(life) {
            assert!(*now < MOST_LOOKS, "{:?}", life.seen());
            life.look(Nanos(*now), false);
            *now += 1;
        }
    }

    #[test]
    fn a_look_in_the_middle_of_an_exec_does_not_hide_the_new_program() {
        let with_stack = |stack| ProcessStat { pid: 7, stack, ..ProcessStat::default() };
        let middle = later(&with_stack(100), &with_stack(0));
        assert!(is_same_life(&with_stack(100), &with_stack(0)));
        assert!(!is_same_life(&middle, &with_stack(200)));
    }

    #[test]
    fn a_process_that_starts_replaces_itself_and_ends_has_two_lives() {
        let mut life = ServerLife::of(&[std::process::id()]);
        life.look(Nanos::ZERO, true);
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo started; read line; exec sleep 60"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        // Before it has written something it may be in the middle of its own exec, when it has no
        // stack yet by which the next program would differ.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        let lives_of = |life: &ServerLife, pid: u32| -> Vec<SeenProcess> {
            life.seen().into_iter().filter(|seen| seen.pid == pid).collect()
        };
        life.look(Nanos(1), false);
        assert_eq!(lives_of(&life, child.id()).len(), 1);
        drop(child.stdin.take());
        let mut now = 2;
        look_until(&mut life, &mut now, |life| lives_of(life, child.id()).len() == 2);
        child.kill().unwrap();
        child.wait().unwrap();
        life.look(Nanos(now), false);
        let lives = lives_of(&life, child.id());
        assert!(!lives[0].by_exec && lives[0].ended.is_some());
        assert!(lives[1].by_exec && lives[1].ended == Some(Nanos(now)));
        assert_eq!(lives[0].started, Some(Nanos(1)));
    }

    /// As with nginx, whose workers live on when its first process is killed. This one also replaces
    /// its program then.
    #[test]
    fn children_are_workers_and_are_followed_when_their_parent_has_ended() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0; (read line <&3; exec sleep 60) & echo $!; wait"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut first = shell.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(first.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let worker: u32 = line.trim().parse().unwrap();
        let mut life = ServerLife::of(&[first.id()]);
        life.look(Nanos::ZERO, true);
        assert_eq!(life.workers(), [worker]);
        let to_worker = first.stdin.take();
        first.kill().unwrap();
        first.wait().unwrap();
        life.look(Nanos(1), false);
        assert_eq!((life.living_root(), life.workers()), (None, vec![worker]));
        drop(to_worker);
        let mut now = 2;
        look_until(&mut life, &mut now, |life| life.seen().iter().any(|seen| seen.by_exec));
        assert_eq!((life.living_root(), life.workers()), (None, vec![worker]));
        Command::new("kill").arg(worker.to_string()).status().unwrap();
        look_until(&mut life, &mut now, |life| life.workers().is_empty());
    }
}
