//! Finds the threads of a Puma that serve requests, and what each waits for in the kernel.
//!
//! Puma names them from 5.6 on: `puma srv tp 001` (`thread_pool.rb`). In older versions the kernel
//! cuts the names, so that threads that serve and threads that trim the pool have the same one. Any
//! user may read the names (`/proc/PID/task/TID/comm`). In which system call a thread sleeps
//! (`/proc/PID/task/TID/syscall`) may be read by root and by users who may trace the process. A
//! thread that waits on a futex without a time limit waits for another thread of its process: for a
//! lock, a queue, or the next request. A sleep, or a wait for a pool with a timeout, has a time
//! limit; the kernel has it as the time at which the wait ends, so a wait that is over before was ended
//! by another thread, and is no sleep. But Ruby up to 3.2 also waits on a futex for a command to end (`system`), so the processes
//! that a thread has started are looked at, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use model::Nanos;
use proctree::ProcessStat;
use rustix::time::{ClockId, clock_gettime};

use crate::peers::{BackendConnection, Peers};
use crate::processes::time_since_start;

/// A process that a thread started longer ago than this is a service that stays, such as a browser or
/// a daemon, and not a command that a request waits for.
const LONGEST_COMMAND: Nanos = Nanos::from_secs(60);

/// How many of a process's threads that serve requests do what, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadWaits {
    /// They wait for another thread, without a time limit: for a lock, or for the next request.
    pub lock: u32,
    /// They wait for a lock on a file.
    pub file_lock: u32,
    /// They sleep, or wait for another thread with a time limit.
    pub timed: u32,
    /// They wait for a socket or a pipe, for a backend or a client; or for a command that they have
    /// started.
    pub socket: u32,
    /// They run, or wait for a CPU.
    pub runnable: u32,
    /// They are in another system call.
    pub other: u32,
}

impl ThreadWaits {
    /// Those that do not wait with a time limit.
    pub fn untimed(&self) -> u32 {
        self.lock + self.file_lock + self.socket + self.runnable + self.other
    }
}

/// The threads of one process that serve requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolLook {
    /// The process.
    pub pid: u32,
    /// How many there are.
    pub threads: u32,
    /// What they do; `None` if this user may not see it.
    pub waits: Option<ThreadWaits>,
    /// Where the sockets lead that they wait for, one for each thread for which that is known.
    pub backends: Vec<BackendConnection>,
    /// The names of the commands for which they wait, one for each thread.
    pub commands: Vec<String>,
    /// The files for whose lock they wait, one for each thread for which that is known.
    pub locked_files: Vec<String>,
    /// Their waits with a time limit that have ended since the look before.
    pub ended: Vec<EndedWait>,
    /// How often the app's own threads ran since the look before: threads of the process that are not
    /// Puma's, and may end such a wait with a result. `None` at the first look, and if it cannot be seen.
    pub runs_beside: Option<u64>,
}

/// A wait with a time limit that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWait {
    /// Whether it ended before the time was up: another thread ended it. A sleep does not end so.
    pub is_early: bool,
    /// At how many looks in a row it was seen: a measure of its time.
    pub looks: u32,
}

/// When a thread's wait ends if nobody ends it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeLimit {
    at: Nanos,
    is_wall_clock: bool,
    /// At how many looks in a row the thread was seen to wait until then.
    looks: u32,
}

/// What threads wait for outside of their process.
#[derive(Debug, Default)]
struct WaitedFor {
    /// The inodes of sockets.
    sockets: Vec<u64>,
    /// The names of commands.
    commands: Vec<String>,
    /// Files that are locked.
    locked_files: Vec<String>,
    /// The time limits of those that have one and wait for another thread, or sleep.
    limits: BTreeMap<u32, TimeLimit>,
}

/// How many threads of these processes serve requests; `None` if none is named so.
pub(crate) fn that_serve(pids: impl Iterator<Item = u32>) -> Option<u32> {
    let pids: Vec<u32> = pids.collect();
    let mut found = ThreadPools::default();
    found.search(&pids);
    let threads = found.pools.values().map(BTreeSet::len).sum::<usize>();
    (threads > 0).then_some(threads as u32)
}

/// Follows the threads of some processes.
#[derive(Debug, Default)]
pub struct ThreadPools {
    pools: BTreeMap<u32, BTreeSet<u32>>,
    /// The time limits at the last look, by process and thread.
    limits: BTreeMap<u32, BTreeMap<u32, TimeLimit>>,
    /// The app's own threads, by process.
    beside: BTreeMap<u32, BTreeSet<u32>>,
    /// How often these had run at the last look, by process and thread.
    runs_beside: BTreeMap<u32, BTreeMap<u32, u64>>,
    peers: Peers,
}

impl ThreadPools {
    /// Looks for threads that have started or ended. Only names that were not a pool thread's are
    /// read again, because a thread gets its name after it has started.
    pub fn search(&mut self, pids: &[u32]) {
        self.pools.retain(|pid, _| pids.contains(pid));
        self.limits.retain(|pid, _| pids.contains(pid));
        self.runs_beside.retain(|pid, _| pids.contains(pid));
        self.beside.clear();
        for pid in pids {
            let pool = self.pools.entry(*pid).or_default();
            let beside = self.beside.entry(*pid).or_default();
            let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let threads: BTreeSet<u32> =
                entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
            pool.retain(|thread| threads.contains(thread));
            for thread in threads {
                if pool.contains(&thread) {
                    continue;
                }
                let Ok(name) = fs::read_to_string(file_of(*pid, thread, "comm")) else { continue };
                if serves(name.trim_end()) {
                    pool.insert(thread);
                } else if thread != *pid && is_of_the_app(name.trim_end()) {
                    beside.insert(thread);
                }
            }
        }
    }

    /// What they do now, for each process that has such threads.
    pub fn look(&mut self) -> Vec<PoolLook> {
        let pools = self.pools.iter().filter(|(_, pool)| !pool.is_empty());
        let look = |(pid, pool): (&u32, &BTreeSet<u32>)| {
            let mut waited_for = WaitedFor::default();
            let waits = waits_of(*pid, pool, &mut waited_for);
            let before = self.limits.remove(pid).unwrap_or_default();
            let ended = ended_between(&before, &mut waited_for.limits, TimeLimit::now);
            self.limits.insert(*pid, waited_for.limits);
            let backends = self.peers.of(*pid, &waited_for.sockets);
            let WaitedFor { commands, locked_files, .. } = waited_for;
            let threads = pool.len() as u32;
            let beside = self.beside.get(pid).into_iter().flatten();
            let runs = beside.map(|thread| Some((*thread, runs_of(*pid, *thread)?)));
            let runs: Option<BTreeMap<u32, u64>> = runs.collect();
            let before = self.runs_beside.remove(pid);
            let runs_beside =
                before.zip(runs.as_ref()).map(|(before, now)| runs_since(&before, now));
            self.runs_beside.extend(runs.map(|runs| (*pid, runs)));
            PoolLook {
                pid: *pid,
                threads,
                waits,
                backends,
                commands,
                locked_files,
                ended,
                runs_beside,
            }
        };
        pools.map(look).collect()
    }
}

/// How often a thread has run: the third figure of its `schedstat` counts the times that it was put on
/// a CPU.
fn runs_of(pid: u32, thread: u32) -> Option<u64> {
    let text = fs::read_to_string(file_of(pid, thread, "schedstat")).ok()?;
    text.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// How often these threads ran between two counts. One that has started since has run only since.
fn runs_since(before: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>) -> u64 {
    let since = |(thread, runs): (&u32, &u64)| {
        runs.saturating_sub(before.get(thread).copied().unwrap_or(0))
    };
    now.iter().map(since).sum()
}

/// Whether a process has threads of a Puma that serves: those of its pool, or the one that accepts
/// (`puma srv`, `server.rb`), which starts with the pool. A pool with a least size of 0, Puma's
/// default, has no thread before the first request.
pub fn has_server(pid: u32) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    names.into_iter().any(|name| is_of_server(name.trim_end()))
}

fn is_of_server(name: &str) -> bool {
    name == "puma srv" || serves(name)
}

fn file_of(pid: u32, thread: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/task/{thread}/{name}"))
}

/// Whether a thread with this name serves requests; others reap and trim the pool. The kernel keeps
/// 15 letters of a name.
fn serves(name: &str) -> bool {
    let number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = name.split(' ').collect();
    match words[..] {
        ["puma", _, "tp", last] => number(last),
        _ => false,
    }
}

/// Whether a thread with this name is one that the app has started, and may hand results to others.
/// Puma's own have names from Puma; that of Ruby's `Timeout` is woken by whoever uses it.
fn is_of_the_app(name: &str) -> bool {
    !["puma ", "Timeout ", "timeout.rb"].iter().any(|of_others| name.starts_with(of_others))
}

/// `None` if the file of one of them may not be read. A thread that is just ending is left out. What
/// they wait for outside of the process is added to `waited_for`.
fn waits_of(pid: u32, pool: &BTreeSet<u32>, waited_for: &mut WaitedFor) -> Option<ThreadWaits> {
    let mut waits = ThreadWaits::default();
    for thread in pool {
        match fs::read_to_string(file_of(pid, *thread, "syscall")) {
            Ok(text) => {
                let descriptor = waited_descriptor(pid, &text);
                let socket = descriptor.as_deref().and_then(inode_of_socket);
                let may_be_command = socket.is_none() && may_wait_for_command(&text);
                if let Some(command) = may_be_command.then(|| command_of(pid, *thread)).flatten() {
                    waits.socket += 1;
                    waited_for.commands.push(command);
                } else {
                    let is_wakeup = descriptor.as_deref() == Some(WAKEUP);
                    let count = if is_wakeup {
                        waits.count_of_wakeup(&text)
                    } else {
                        waits.count_of(&text)?
                    };
                    *count += 1;
                    waited_for.sockets.extend(socket);
                    waited_for.locked_files.extend(locked_file_of(pid, &text));
                    if let Some(limit) = TimeLimit::of(pid, &text) {
                        waited_for.limits.insert(*thread, limit);
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
            Err(_) => {}
        }
    }
    Some(waits)
}

/// Whether a thread in this system call may wait for a process that it started: for its end, or for
/// what it writes into a pipe.
fn may_wait_for_command(text: &str) -> bool {
    let mut waits = ThreadWaits::default();
    let is_known = waits.count_of(text).map(|count| *count += 1).is_some();
    is_known && waits.lock + waits.socket + waits.other > 0
}

/// The name of a process that this thread has started not long ago and that still runs.
fn command_of(pid: u32, thread: u32) -> Option<String> {
    let children = fs::read_to_string(file_of(pid, thread, "children")).ok()?;
    let mut children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    let command = children.find_map(|child| {
        ProcessStat::of(child)
            .filter(|child| !child.is_dead && time_since_start(child.started) <= LONGEST_COMMAND)
    })?;
    Some(command.name)
}

/// The file for whose lock a thread waits in this system call.
fn locked_file_of(pid: u32, text: &str) -> Option<String> {
    let mut words = text.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let descriptor = u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let is_lock = SYSTEM_CALLS?.file_locks.contains(&number);
    let file = is_lock.then(|| fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok())??;
    file.to_str().map(str::to_owned)
}

/// What a thread polls that sleeps or waits for another thread, if signals of its process would wake it:
/// of Ruby's threads up to 3.2 always one does so, the main thread or any other (`rb_sigwait_sleep` in
/// `thread_pthread.c`).
const WAKEUP: &str = "anon_inode:[eventfd]";

/// What the link of the one descriptor says for which a thread waits in this system call, such as
/// `socket:[4711]`.
fn waited_descriptor(pid: u32, text: &str) -> Option<String> {
    let calls = SYSTEM_CALLS?;
    let mut words = text.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let first = argument()?;
    let descriptor = if calls.reads.contains(&number) {
        u32::try_from(first).ok()?
    } else if calls.polls.contains(&number) && argument()? == 1 {
        // struct pollfd begins with the descriptor, an int.
        u32::from_ne_bytes(memory_of(pid, first)?)
    } else {
        return None;
    };
    let link = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    link.to_str().map(str::to_owned)
}

/// The inode of a socket with this link.
fn inode_of_socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// So many bytes of a process's memory.
fn memory_of<const N: usize>(pid: u32, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

impl TimeLimit {
    /// The limit of a thread that waits in this system call. Known are limits that the call has as a
    /// point in time, as the C library has them; a length of time does not tell when it began.
    fn of(pid: u32, text: &str) -> Option<TimeLimit> {
        /// `FUTEX_WAIT_BITSET`, without the bits `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
        const UNTIL: u64 = 9;
        const WALL_CLOCK: u64 = 256;
        const FLAGS: u64 = WALL_CLOCK | 128;
        /// The time is read a moment after the system call; a thread that has gone on meanwhile may
        /// have written anything there.
        const LONGEST: Nanos = Nanos::from_secs(3600);
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let argument = |at: usize| u64::from_str_radix(words.get(at)?.strip_prefix("0x")?, 16).ok();
        if words.first()?.parse::<i64>().ok()? != SYSTEM_CALLS?.futex {
            return None;
        }
        let operation = argument(2)?;
        let address = argument(4).filter(|address| *address > 0 && operation & !FLAGS == UNTIL)?;
        // struct timespec: seconds, nanoseconds.
        let seconds = u64::from_ne_bytes(memory_of(pid, address)?);
        let nanos = u64::from_ne_bytes(memory_of(pid, address.checked_add(8)?)?);
        let at = Nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?);
        let is_wall_clock = operation & WALL_CLOCK != 0;
        let now = TimeLimit::now(is_wall_clock);
        (now <= at && at <= now + LONGEST).then_some(TimeLimit { at, is_wall_clock, looks: 1 })
    }

    /// The time now, by the clock that counts for a limit.
    fn now(is_wall_clock: bool) -> Nanos {
        let clock = if is_wall_clock { ClockId::Realtime } else { ClockId::Monotonic };
        let now = clock_gettime(clock);
        Nanos(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
    }
}

/// The waits that were seen at one look and not at the next. Those that go on have been seen once
/// more. `now`: the time after that look, by either clock.
fn ended_between(
    before: &BTreeMap<u32, TimeLimit>,
    after: &mut BTreeMap<u32, TimeLimit>,
    now: impl Fn(bool) -> Nanos,
) -> Vec<EndedWait> {
    /// Ruby may wake for a moment and wait on until the same time, which it computes anew.
    const SAME: Nanos = Nanos::from_millis(10);
    let mut ended = Vec::new();
    for (thread, limit) in before {
        let is_same = |now: &TimeLimit| now.at.0.abs_diff(limit.at.0) <= SAME.0;
        if let Some(same) = after.get_mut(thread).filter(|now| is_same(now)) {
            same.looks += limit.looks;
            continue;
        }
        let is_early = now(limit.is_wall_clock) < limit.at;
        ended.push(EndedWait { is_early, looks: limit.looks });
    }
    ended
}

impl ThreadWaits {
    /// How a thread with this `/proc/PID/task/TID/syscall` counts; `None` on a processor whose
    /// system-call numbers are not known here.
    fn count_of(&mut self, text: &str) -> Option<&mut u32> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some(number) = words.first().and_then(|word| word.parse::<i64>().ok()) else {
            // `running`
            return Some(&mut self.runnable);
        };
        let calls = SYSTEM_CALLS?;
        let is = |known: &[i64]| known.contains(&number);
        // futex(address, operation, value, timeout): the number comes first.
        let has_time_limit = words.get(4).is_some_and(|limit| *limit != "0x0");
        Some(if number < 0 {
            // Neither in a system call nor on a CPU: it waits for a page, or it was stopped.
            &mut self.other
        } else if is(&calls.file_locks) {
            &mut self.file_lock
        } else if is(&[calls.futex]) && !has_time_limit {
            &mut self.lock
        } else if is(&[calls.futex]) || is(&calls.sleeps) {
            &mut self.timed
        } else if is(calls.sockets) {
            &mut self.socket
        } else {
            &mut self.other
        })
    }

    /// The same of a thread that polls [`WAKEUP`]: it sleeps, or waits for another thread.
    fn count_of_wakeup(&mut self, text: &str) -> &mut u32 {
        // ppoll(descriptors, number, timeout, signals): the number of the call comes first.
        let has_time_limit = text.split_ascii_whitespace().nth(3) != Some("0x0");
        if has_time_limit { &mut self.timed } else { &mut self.lock }
    }
}

/// The numbers of the system calls in which threads wait (`asm/unistd.h`).
#[derive(Clone, Copy, Debug)]
struct SystemCalls {
    futex: i64,
    /// `flock`, `fcntl`.
    file_locks: [i64; 2],
    /// `nanosleep`, `clock_nanosleep`.
    sleeps: [i64; 2],
    /// All forms of poll, select and epoll, `read`, `recvfrom`, `recvmsg`, `connect`.
    sockets: &'static [i64],
    /// Of these `read`, `recvfrom`, `recvmsg` and `connect`, whose first argument is a descriptor, and
    /// `poll` and `ppoll`, whose first two are a list of them and its length.
    reads: &'static [i64],
    polls: &'static [i64],
}

#[cfg(target_arch = "x86_64")]
const SYSTEM_CALLS: Option<SystemCalls> = Some(SystemCalls {
    futex: 202,
    file_locks: [73, 72],
    sleeps: [35, 230],
    sockets: &[7, 271, 23, 270, 232, 281, 441, 0, 45, 47, 42],
    reads: &[0, 45, 47, 42],
    polls: &[7, 271],
});
#[cfg(target_arch = "aarch64")]
const SYSTEM_CALLS: Option<SystemCalls> = Some(SystemCalls {
    futex: 98,
    file_locks: [32, 25],
    sleeps: [101, 115],
    sockets: &[73, 72, 22, 441, 63, 207, 212, 203],
    reads: &[63, 207, 212, 203],
    polls: &[73],
});
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SYSTEM_CALLS: Option<SystemCalls> = None;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_ends_before_its_time_is_up_was_ended_by_another_thread() {
        let limits = |all: &[(u32, u64)]| {
            let of = |(thread, millis): &(u32, u64)| {
                let at = Nanos::from_millis(*millis);
                (*thread, TimeLimit { at, is_wall_clock: false, looks: 1 })
            };
            all.iter().map(of).collect::<BTreeMap<u32, TimeLimit>>()
        };
        let at_1000 = |_| Nanos::from_millis(1000);
        let ended = |before: &[(u32, u64)], after: &[(u32, u64)]| {
            let mut after = limits(after);
            let ended = ended_between(&limits(before), &mut after, at_1000);
            let early = ended.iter().filter(|wait| wait.is_early).count();
            [early, ended.len() - early]
        };
        assert_eq!(ended(&[(1, 1300), (2, 900)], &[(3, 1300)]), [1, 1]);
        assert_eq!(ended(&[(1, 1300), (2, 1100)], &[(1, 1300), (2, 1101)]), [0, 0], "they wait on");
        assert_eq!(
            ended(&[(1, 5800), (2, 900)], &[(1, 6000), (2, 1200)]),
            [1, 1],
            "they wait anew"
        );
        assert_eq!(ended(&[], &[(1, 1300)]), [0, 0]);

        let mut twice = limits(&[(1, 1300), (2, 900)]);
        ended_between(&limits(&[(1, 1300)]), &mut twice, at_1000);
        let seen = ended_between(&twice, &mut limits(&[]), at_1000);
        let at_both_looks = EndedWait { is_early: true, looks: 2 };
        let at_one = EndedWait { is_early: false, looks: 1 };
        assert_eq!(seen, [at_both_looks, at_one]);
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_env = "gnu"))]
    #[test]
    fn the_time_limit_of_a_wait_is_in_the_memory_of_its_process() {
        let seconds = |seconds: u64| {
            let at = TimeLimit::now(false) + Nanos::from_secs(seconds);
            [at.0 / 1_000_000_000, at.0 % 1_000_000_000]
        };
        let of = |until: &[u64; 2], operation: u64| {
            let futex = SYSTEM_CALLS.unwrap().futex;
            let address = until.as_ptr().addr();
            let text = format!("{futex} 0x7f21 {operation:#x} 0x0 {address:#x} 0x0 0xffffffff");
            TimeLimit::of(std::process::id(), &text).map(|limit| limit.at)
        };
        let soon = seconds(5);
        assert_eq!(of(&soon, 0x89), Some(Nanos(soon[0] * 1_000_000_000 + soon[1])));
        assert_eq!(of(&soon, 0x80), None, "a length of time");
        assert_eq!(of(&seconds(100_000), 0x89), None, "something else");
    }

    #[test]
    fn threads_that_serve_are_known_by_name() {
        for name in ["puma srv tp 001", "puma srv tp 12"] {
            assert!(serves(name), "{name}");
        }
        for name in [
            "puma srv tp tri",
            "puma threadpool",
            "puma srv thread",
            "puma reactor",
            "puma server",
            "ruby",
            "",
        ] {
            assert!(!serves(name), "{name}");
        }
    }

    #[test]
    fn a_server_without_pool_threads_is_known_by_the_thread_that_accepts() {
        for (name, is_it) in [
            ("puma srv", true),
            ("puma srv tp 001", true),
            ("puma srv tp tri", false),
            ("puma ctl", false),
            ("puma reactor", false),
            ("puma wrkr check", false),
            ("ruby", false),
        ] {
            assert_eq!(is_of_server(name), is_it, "{name}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_a_thread_waits_for_is_known_by_its_system_call() {
        let of = |text: &str| {
            let mut waits = ThreadWaits::default();
            *waits.count_of(text).unwrap() += 1;
            waits
        };
        let none = ThreadWaits::default();
        let futex = |limit: &str| format!("202 0x7f21 0x189 0x0 {limit} 0x0 0xffffffff 0x7f 0x7f");
        assert_eq!(of(&futex("0x0")), ThreadWaits { lock: 1, ..none });
        assert_eq!(of(&futex("0x7ffc")), ThreadWaits { timed: 1, ..none });
        let file_lock = of("73 0x9 0x2 0x0 0x0 0x0 0x0 0x7f 0x7f");
        assert_eq!(file_lock, ThreadWaits { file_lock: 1, ..none });
        assert_eq!(of("271 0x7f 0x1 0x0 0x0 0x0 0x0 0x7f 0x7f"), ThreadWaits { socket: 1, ..none });
        assert_eq!(of("running\n"), ThreadWaits { runnable: 1, ..none });
        assert_eq!(of("-1 0x7ffc 0x7f32"), ThreadWaits { other: 1, ..none });
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_that_polls_rubys_wakeup_sleeps_or_waits_for_another_thread() {
        use rustix::event::{EventfdFlags, eventfd};
        use std::os::fd::AsRawFd as _;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let list = [wakeup.as_raw_fd().cast_unsigned(), 1];
        let of = |limit: &str| {
            let call = format!("271 {:#x} 0x1 {limit} 0x0 0x8 0x0 0x7f", list.as_ptr().addr());
            assert_eq!(waited_descriptor(std::process::id(), &call).as_deref(), Some(WAKEUP));
            let mut waits = ThreadWaits::default();
            *waits.count_of_wakeup(&call) += 1;
            waits
        };
        assert_eq!(of("0x7ffc"), ThreadWaits { timed: 1, ..ThreadWaits::default() });
        assert_eq!(of("0x0"), ThreadWaits { lock: 1, ..ThreadWaits::default() });
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_socket_that_a_thread_waits_for_is_in_its_system_call() {
        use std::os::fd::AsRawFd as _;
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let inode = rustix::fs::fstat(&socket).unwrap().st_ino;
        let descriptor = socket.as_raw_fd();
        let list = [descriptor.cast_unsigned(), 1];
        let list_at = list.as_ptr().addr();
        let of = |call: &str| {
            waited_descriptor(std::process::id(), call).as_deref().and_then(inode_of_socket)
        };
        assert_eq!(of(&format!("45 {descriptor:#x} 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f")), Some(inode));
        assert_eq!(of(&format!("7 {list_at:#x} 0x1 0x64 0x0 0x0 0x0 0x7f 0x7f")), Some(inode));
        // Of several descriptors it is not known which, nor of a file or a futex.
        assert_eq!(of(&format!("7 {list_at:#x} 0x2 0x64 0x0 0x0 0x0 0x7f 0x7f")), None);
        assert_eq!(of("0 0x7fffffff 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f"), None);
        assert_eq!(of(&format!("202 {descriptor:#x} 0x189 0x0 0x0 0x0 0x0 0x7f 0x7f")), None);
        assert_eq!(of("running"), None);
    }

    #[test]
    fn a_thread_waits_for_the_command_that_it_has_started() {
        let command = || {
            let pid = std::process::id();
            command_of(pid, rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned())
        };
        assert_eq!(command(), None);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // Where the kernel does not list children, nobody knows.
        let seen = command();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.is_none_or(|name| name == "sleep"));
        assert_eq!(command(), None, "it has ended");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_that_runs_or_sleeps_waits_for_no_command() {
        for (text, may) in [
            ("202 0x7f21 0x189 0x0 0x0 0x0 0x0 0x7f 0x7f", true),
            ("61 0x7f21 0x7f 0x0 0x0 0x0 0x0 0x7f 0x7f", true),
            ("0 0x9 0x7f 0x10000 0x0 0x0 0x0 0x7f 0x7f", true),
            ("202 0x7f21 0x189 0x0 0x7ffc 0x0 0x0 0x7f 0x7f", false),
            ("73 0x9 0x2 0x0 0x0 0x0 0x0 0x7f 0x7f", false),
            ("running", false),
        ] {
            assert_eq!(may_wait_for_command(text), may, "{text}");
        }
    }

    #[test]
    fn the_apps_own_threads_are_told_apart_by_name_and_counted_by_their_runs() {
        for (name, is_it) in [
            ("app.ru:3", true),
            ("worker-1", true),
            ("puma reactor", false),
            ("puma srv", false),
            ("Timeout stdlib ", false),
        ] {
            assert_eq!(is_of_the_app(name), is_it, "{name}");
        }
        let counts = |all: &[(u32, u64)]| all.iter().copied().collect::<BTreeMap<u32, u64>>();
        assert_eq!(runs_since(&counts(&[(1, 10), (2, 5)]), &counts(&[(1, 13), (3, 4)])), 7);
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert!(runs_of(std::process::id(), thread).is_none_or(|runs| runs > 0));
    }

    #[test]
    fn a_process_without_such_threads_has_no_pool() {
        let mut pools = ThreadPools::default();
        pools.search(&[std::process::id(), u32::MAX]);
        assert_eq!(pools.look(), []);
    }
}
