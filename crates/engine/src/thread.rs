//! A lane's thread: its start, how many files it may open, its CPU time, and when it did not run.

use std::fs::File;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use model::{Nanos, Window};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};

use crate::EngineError;

/// A thread that could not be had.
pub fn no_thread(error: &std::io::Error) -> EngineError {
    EngineError(format!(
        "a thread cannot be started: {error}; raise the limit of processes (ulimit -u), or the \
         container's"
    ))
}

/// Starts a thread that ends within `scope`.
///
/// # Errors
/// If the system refuses another thread.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, EngineError> {
    Builder::new().name(name.into()).spawn_scoped(scope, run).map_err(|error| no_thread(&error))
}

/// Sets a flag when it is dropped. The threads of a scope look at the flag, so they end when one of
/// them could not be started.
pub struct RaiseOnDrop<'a>(pub &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Descriptors that the process needs besides its connections.
const OTHERS: u64 = 64;

/// Raises the limit of open descriptors to what `connections` need.
///
/// # Errors
/// If the limit cannot be raised so far.
pub fn ensure_descriptors(connections: u64) -> Result<(), EngineError> {
    let needed = connections + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // Only root may raise the maximum; the attempt costs nothing.
    let raised =
        Rlimit { current: Some(needed), maximum: maximum.map(|maximum| maximum.max(needed)) };
    let limit = maximum.or(current).unwrap_or(0);
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        EngineError(format!(
            "{connections} connections need {needed} file descriptors and the limit is {limit}: \
             raise it (ulimit -n {needed}) or lower the connections"
        ))
    })
}

/// Where the kernel lists what the calling thread has open.
const OPEN_FILES: &str = "/proc/thread-self/fd";

/// Gives the calling thread a descriptor table of its own, with nothing in it but standard input,
/// output and error; whether that worked. Where it did not (a container may forbid the call,
/// `/proc` may be missing), nothing has changed.
///
/// Threads share their process's table of open files. In a shared one each `send`, `recv` and
/// `epoll_wait` takes and gives back a reference to its file, so that no other thread can close it
/// meanwhile; in a table that nobody shares the kernel leaves that out (`__fget_light`, fs/file.c:
/// "if the file table isn't shared"). That is some 50 instructions a call, two of them atomic.
///
/// Only for threads that use no descriptors of others: those that the process has open are closed
/// here. Otherwise a connection that another thread closes would stay open as long as this thread
/// lives.
///
/// A signal is handled on any thread, so no handler of the process may use a descriptor: its number
/// may be a socket here. Ours set flags.
pub(crate) fn unshare_table() -> bool {
    // Where getrandom(2) is missing, random bytes come from a file that the process has open, and
    // which must stay open here.
    let has_random_bytes = getrandom(&mut [0_u8; 1], GetRandomFlags::NONBLOCK).is_ok();
    if !has_random_bytes
        || std::fs::read_dir(OPEN_FILES).is_err()
        || unshare(CloneFlags::CLONE_FILES).is_err()
    {
        return false;
    }
    for inherited in listed() {
        // The descriptor of the listing itself is in it, and is closed already.
        let _ = nix::unistd::close(inherited);
    }
    true
}

/// Open descriptors beyond standard input, output and error.
fn listed() -> Vec<RawFd> {
    let entries = std::fs::read_dir(OPEN_FILES).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect()
}

/// The calling thread's CPU use, from `/proc/thread-self/schedstat`
/// (Documentation/scheduler/sched-stats.rst): ns on a CPU, ns waiting for one, time slices.
#[derive(Debug)]
pub(crate) struct CpuAccount {
    file: File,
    before: [Nanos; 2],
}

impl CpuAccount {
    /// From now on; `None` if the kernel does not tell.
    pub(crate) fn begin() -> Option<CpuAccount> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let mut account = CpuAccount { file, before: [Nanos::ZERO; 2] };
        account.used().map(|_| account)
    }

    /// The time on a CPU and the time on a run queue since the last call. Does not allocate.
    pub(crate) fn used(&mut self) -> Option<[Nanos; 2]> {
        let mut buffer = [0; 128];
        let length = self.file.read_at(&mut buffer, 0).ok()?;
        let mut numbers =
            std::str::from_utf8(&buffer[..length]).ok()?.split_ascii_whitespace().map(str::parse);
        let now = [Nanos(numbers.next()?.ok()?), Nanos(numbers.next()?.ok()?)];
        let before = std::mem::replace(&mut self.before, now);
        Some([now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])])
    }
}

/// Shorter standstills are left to the scheduler's account (the lane's wait for a CPU).
pub(crate) const NOTABLE: Nanos = Nanos::from_millis(10);

/// When the lane did not run within the measured window: it was stopped (Ctrl-Z, a debugger, a
/// frozen cgroup), had no processor, or its machine had none.
///
/// A turn lasts as long as its wait, plus its work. If it lasted longer than the longest wait, and
/// no processor time explains the rest, the lane stood still, whatever the cause. A shorter
/// standstill that ends with news cannot be told from a silence of the server. This costs one
/// comparison a turn; the thread's processor time is read ten times a second, and after such a
/// turn.
#[derive(Debug)]
pub(crate) struct Standstill {
    window: Window,
    /// This thread's processor time when it was last read.
    cpu: Nanos,
    /// All standstills together.
    pub(crate) sum: Nanos,
    /// The longest one.
    pub(crate) longest: Nanos,
}

impl Standstill {
    /// No standstill yet. To be called on the lane's thread.
    pub(crate) fn new(window: Window) -> Standstill {
        Standstill { window, cpu: Nanos::ZERO, sum: Nanos::ZERO, longest: Nanos::ZERO }
    }

    /// Reads the processor time, so that what was used before does not explain a later standstill.
    pub(crate) fn read_cpu_time(&mut self) -> Nanos {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now =
            Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned());
        let used = now.saturating_sub(self.cpu);
        self.cpu = now;
        used
    }

    /// Notes that a turn that should have ended at `expected` ended at `now`.
    #[cold]
    pub(crate) fn was_late(&mut self, expected: Nanos, now: Nanos) {
        let used = self.read_cpu_time();
        self.note(expected + used, now);
    }

    /// Notes that the lane did not run from `since` until `now`.
    fn note(&mut self, since: Nanos, now: Nanos) {
        let since = since.max(self.window.from);
        let until = now.min(self.window.until);
        let stretch = until.saturating_sub(since);
        if stretch > NOTABLE {
            self.sum += stretch;
            self.longest = self.longest.max(stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says why")]
    fn a_thread_with_its_own_table_neither_sees_nor_keeps_open_what_the_others_have() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let lane = std::thread::spawn(move || {
            let taken = unshare_table();
            sender.send((taken, listed().len())).unwrap();
            released.recv().unwrap();
        });
        let (taken, open) = receiver.recv().unwrap();
        if !taken {
            eprintln!("skipped: the kernel gives a thread no table of its own here");
            release.send(()).unwrap();
            lane.join().unwrap();
            return;
        }
        // The listing itself.
        assert_eq!(open, 1);
        near.write_all(b"still open").unwrap();
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(
            text, "still open",
            "it ends although the lane lives: the lane does not hold it"
        );
        release.send(()).unwrap();
        lane.join().unwrap();
    }

    #[test]
    fn the_kernel_tells_what_the_thread_used() {
        let mut account = CpuAccount::begin().expect("Linux has this file");
        let used = std::iter::repeat_with(|| account.used().expect("and it stays"));
        assert!(
            used.take(1_000_000).any(|[cpu, _]| cpu > Nanos::ZERO),
            "the thread's own time passes"
        );
    }

    #[test]
    fn stretches_within_the_window_are_summed_up() {
        let ms = Nanos::from_millis;
        let mut still = Standstill::new(Window { from: ms(1000), until: ms(3000) });
        for (since, until) in
            [(100, 900), (950, 1050), (2000, 2005), (2100, 2400), (2980, 3500), (3100, 3500)]
        {
            still.note(ms(since), ms(until));
        }
        assert_eq!((still.sum, still.longest), (ms(50 + 300 + 20), ms(300)));
    }

    #[test]
    fn work_explains_a_long_turn() {
        let mut still = Standstill::new(Window { from: Nanos::ZERO, until: Nanos::MAX });
        still.read_cpu_time();
        let worked =
            std::iter::repeat_with(|| still.read_cpu_time()).scan(Nanos::ZERO, |sum, used| {
                *sum += used;
                Some(*sum)
            });
        let worked =
            worked.take_while(|sum| *sum < Nanos::from_millis(20)).last().unwrap_or_default();
        assert!(worked > Nanos::ZERO, "the thread's own time passes");
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(1) + NOTABLE);
        assert_eq!(still.sum, Nanos::ZERO);
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(3));
        assert!(still.longest > Nanos::from_millis(1900), "{still:?}");
    }
}
