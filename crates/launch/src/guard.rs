//! The guard: a small process between longtail and a server, which sees to it that the server never
//! outlives longtail.
//!
//! longtail starts itself again with a hidden subcommand whose whole body is [`run`]. The guard has
//! a process group of its own, so a terminal's Ctrl-C reaches neither it nor the server, and it
//! survives SIGINT, SIGTERM and SIGHUP. It is a child subreaper (prctl(2),
//! `PR_SET_CHILD_SUBREAPER`): what the server forks and leaves behind, daemons included, becomes
//! the guard's child, is found by walking `/proc`, and is killed. Orders come by stdin; the end of
//! that pipe says that longtail is gone, in whatever way, since the kernel closes it. Reports go to
//! stdout. Stderr is the pipe that the server's stdout and stderr go to as well.
//!
//! | who dies | what happens |
//! |---|---|
//! | longtail, even by SIGKILL | the guard kills everything and removes the scratch directory |
//! | the server | the guard kills what it left behind, reports, and exits |
//! | the guard, by SIGKILL | the kernel kills the server (parent-death signal) and longtail kills its process group |
//!
//! Not covered: if SIGKILL hits the guard *and* longtail, the server's own process ends but its
//! children are not told. Puma's workers notice that their master is gone and exit; other servers'
//! children may stay. If the guard alone is killed, children that left the process group may stay.
//! A server that runs as another user (`sudo`) cannot be killed at all: it is reported as beyond
//! reach.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fmt, fs};

use model::{Cpus, Nanos};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::stdio;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::affinity;

/// Stands for the scratch directory, or the CPUs, if there are none.
pub(crate) const NONE: &str = "-";

/// Runs a server under guard until none of its processes lives. Returns the guard's own exit code.
///
/// `arguments` are those after the hidden subcommand, as [`Server::start`](crate::Server::start)
/// makes them. Call this from the main thread of a process that does nothing else: the server is
/// killed when the thread that started it ends.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let mut arguments = arguments.into_iter();
    let scratch = arguments.next().filter(|path| path != NONE).map(PathBuf::from);
    let cpus = arguments.next().filter(|cpus| cpus != NONE);
    let argv: Vec<OsString> = arguments.collect();
    let kept = cpus.map_or(Ok(()), |cpus| keep_to(&cpus.to_string_lossy()));
    match kept.and_then(|()| Guard::start(&argv)) {
        Ok(guard) => {
            guard.keep(scratch.as_deref());
            0
        }
        Err(report) => {
            tell(&report);
            1
        }
    }
}

/// Keeps the guard, and so what it starts, on these CPUs.
fn keep_to(cpus: &str) -> Result<(), GuardReport> {
    let wrong = |why: String| {
        GuardReport::Failed(format!("the server cannot be kept to the processors {cpus}: {why}"))
    };
    let cpus: Cpus = cpus.parse().map_err(wrong)?;
    affinity::keep_to(&cpus).map_err(|errno| wrong(errno.to_string()))
}

/// A guard whose server runs.
struct Guard {
    server: Pid,
    /// Becomes readable when a child has died.
    deaths: UnixStream,
}

/// What a guard waits for.
enum GuardEvent {
    /// A child died; perhaps the server, perhaps what it left behind.
    Death,
    Ordered(GuardOrder),
    GraceOver,
    LongtailGone,
}

impl Guard {
    fn start(argv: &[OsString]) -> Result<Guard, GuardReport> {
        let failed = |what: &'static str| {
            move |error: std::io::Error| GuardReport::Failed(format!("{what}: {error}"))
        };
        if rustix::thread::gettid() != rustix::process::getpid() {
            return Err(GuardReport::Failed("it does not run in its main thread".to_owned()));
        }
        let Some((program, arguments)) = argv.split_first() else {
            return Err(GuardReport::Failed("it was given no command".to_owned()));
        };
        // Only what `ps` shows; a kernel that refuses does no harm.
        let _ = rustix::thread::set_name(c"longtail-guard");
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| failed("subreaper")(errno.into()))?;
        // Handlers, not SIG_IGN: an ignored signal stays ignored after exec, and the server must
        // hear its SIGTERM.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
                .map_err(failed("signals"))?;
        }
        let (deaths, bell) = UnixStream::pair().map_err(failed("socket pair"))?;
        deaths.set_nonblocking(true).map_err(failed("socket pair"))?;
        signal_hook::low_level::pipe::register(SIGCHLD, bell).map_err(failed("signals"))?;

        let output =
            || stdio::stderr().try_clone_to_owned().map(Stdio::from).map_err(failed("output"));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            .process_group(0);
        dies_with_us(&mut command);
        let child = command.spawn().map_err(|error| GuardReport::NotExecuted(error.to_string()))?;
        let server = Pid::from_child(&child);
        tell(&GuardReport::Started(server.as_raw_pid()));
        Ok(Guard { server, deaths })
    }

    /// Waits until the server ends or must end; then ends everything that is left of it.
    fn keep(self, scratch: Option<&Path>) {
        let mut grace: Option<OwnedFd> = None;
        let mut forced = false;
        let mut longtail_gone = false;
        let mut exit = None;
        while exit.is_none() {
            match self.next_event(grace.as_ref()) {
                GuardEvent::Death => exit = self.reap_dead().exit,
                GuardEvent::Ordered(GuardOrder::Stop(time)) if grace.is_none() => {
                    // It is not reaped yet, so its id cannot be another process's.
                    let asked = rustix::process::kill_process(self.server, Signal::TERM);
                    grace = alarm(time);
                    // If SIGTERM could not be sent, or there is no timer for the grace, the server
                    // is killed at once.
                    forced = asked.is_err() || grace.is_none();
                }
                GuardEvent::Ordered(GuardOrder::Stop(_)) => {}
                GuardEvent::Ordered(GuardOrder::Kill) | GuardEvent::GraceOver => forced = true,
                GuardEvent::LongtailGone => {
                    forced = true;
                    longtail_gone = true;
                }
            }
            if forced {
                break;
            }
        }
        if let Some(exit) = exit {
            tell(&GuardReport::Exited(exit));
        } else {
            let _ = rustix::process::kill_process_group(self.server, Signal::KILL);
        }
        let end = self.kill_all();
        if exit.is_none() {
            tell(&GuardReport::Exited(end.exit.unwrap_or(ServerExit::Unknown)));
        }
        if end.is_beyond_reach {
            tell(&GuardReport::BeyondReach);
        }
        if let Some(scratch) = scratch.filter(|_| longtail_gone) {
            // longtail can no longer remove it, and there is nobody left to tell.
            let _ = fs::remove_dir_all(scratch);
        }
        tell(&GuardReport::Ended);
    }

    fn next_event(&self, grace: Option<&OwnedFd>) -> GuardEvent {
        loop {
            let mut waits = vec![
                PollFd::new(&self.deaths, PollFlags::IN),
                PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN),
            ];
            waits.extend(grace.map(|timer| PollFd::new(timer, PollFlags::IN)));
            // A signal interrupted the wait; the handler has written to the pipe.
            if poll(&mut waits, None).is_err() {
                continue;
            }
            let ready: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
            if ready[0] {
                let mut bytes = [0; 256];
                while matches!((&self.deaths).read(&mut bytes), Ok(n) if n > 0) {}
                return GuardEvent::Death;
            }
            if ready[1] {
                let mut bytes = [0; 256];
                match rustix::io::read(stdio::stdin(), &mut bytes) {
                    Ok(0) => return GuardEvent::LongtailGone,
                    // An order is one write of fewer than PIPE_BUF bytes, so it arrives whole. Only
                    // the last one counts: after `stop` only `kill` may follow.
                    Ok(n) => {
                        let mut lines = bytes[..n].split(|byte| *byte == b'\n').rev();
                        match lines.find_map(|line| serde_json::from_slice(line).ok()) {
                            Some(order) => return GuardEvent::Ordered(order),
                            None => continue,
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => continue,
                    Err(_) => return GuardEvent::LongtailGone,
                }
            }
            if ready.get(2) == Some(&true) {
                return GuardEvent::GraceOver;
            }
        }
    }

    /// Reaps every child that has ended: the server, or what it left behind.
    fn reap_dead(&self) -> ReapedChildren {
        let mut reaped = ReapedChildren { exit: None, childless: false };
        let mut refusals = 0;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => {
                    reaped.exit = Some(exit_of(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return reaped,
                // Only this error means that there are no children; if the call itself is refused,
                // there may be some.
                Err(errno) if errno == Errno::CHILD || refusals > MOST_REFUSALS => {
                    reaped.childless = true;
                    return reaped;
                }
                Err(_) => refusals += 1,
            }
        }
    }

    /// Kills every descendant until there is none, even if they fork meanwhile. This process is a
    /// subreaper, so when it has no children it has no descendants.
    fn kill_all(&self) -> LastDeaths {
        // A scan of /proc can miss what is forked meanwhile, so it is repeated. A process that it
        // never shows cannot be killed.
        const BLIND_SCANS: u32 = 1000;
        let me = std::process::id();
        let mut exit = None;
        let mut blind = 0;
        loop {
            let reaped = self.reap_dead();
            exit = exit.or(reaped.exit);
            let mut end = LastDeaths { exit, is_beyond_reach: false };
            if reaped.childless || blind > BLIND_SCANS {
                return end;
            }
            let mut one_will_die = false;
            for process in proctree::descendants(me) {
                let Some(pid) = Pid::from_raw(process.pid.cast_signed()) else { continue };
                match rustix::process::kill_process(pid, Signal::KILL) {
                    Ok(()) => one_will_die |= process.parent == me,
                    Err(Errno::PERM) => end.is_beyond_reach = true,
                    // It has just ended.
                    Err(_) => {}
                }
            }
            if one_will_die {
                // Without this pause the loop would spin until the kernel has ended them.
                if let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::empty())
                    && pid == self.server
                {
                    exit = Some(exit_of(status));
                }
            } else if end.is_beyond_reach {
                return end;
            } else {
                blind += 1;
            }
        }
    }
}

/// How often in a row the kernel may refuse to report an ended child before the guard gives up.
const MOST_REFUSALS: u32 = 10;

/// What was found among the dead.
struct ReapedChildren {
    /// How the server ended, if it was among them.
    exit: Option<ServerExit>,
    /// Whether no child is left, ended or not.
    childless: bool,
}

/// The result of [`Guard::kill_all`].
struct LastDeaths {
    exit: Option<ServerExit>,
    is_beyond_reach: bool,
}

fn exit_of(status: WaitStatus) -> ServerExit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ServerExit::Code(code),
        (None, Some(signal)) => ServerExit::Signal(signal),
        (None, None) => ServerExit::Unknown,
    }
}

/// A timer that becomes readable after `time`; `None` if the kernel gives none.
fn alarm(time: Nanos) -> Option<OwnedFd> {
    let timer =
        rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok()?;
    // A value of zero would mean "never".
    let time = time.0.max(1);
    let value = Timespec {
        tv_sec: (time / 1_000_000_000).cast_signed(),
        tv_nsec: (time % 1_000_000_000).cast_signed(),
    };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    rustix::time::timerfd_settime(timer.as_fd(), TimerfdTimerFlags::empty(), &once).ok()?;
    Some(timer)
}

fn tell(report: &GuardReport) {
    // A write of fewer than PIPE_BUF bytes arrives whole. If nobody reads any more, the work goes
    // on.
    let _ = rustix::io::write(stdio::stdout(), line(report).as_bytes());
}

/// What longtail orders a guard to do. The end of the pipe is an order, too: longtail is gone, so
/// kill everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardOrder {
    /// SIGTERM, and SIGKILL after this grace.
    Stop(Nanos),
    /// SIGKILL to everything.
    Kill,
}

/// What a guard reports to longtail. The end of the pipe without [`GuardReport::Ended`] means that
/// the guard was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardReport {
    /// The server runs, with this process id.
    Started(i32),
    /// The guard could not do its work.
    Failed(String),
    /// The program could not be executed.
    NotExecuted(String),
    /// The server's own process ended.
    Exited(ServerExit),
    /// Processes of it could not be killed.
    BeyondReach,
    /// No process lives any more, except those beyond reach.
    Ended,
}

/// How a server's process ended. Why is in its [`ServerOutput`](crate::ServerOutput).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerExit {
    /// By itself, with this exit code (0 to 255).
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It is gone, and so is its guard, which alone could have reported how.
    Unknown,
}

impl fmt::Display for ServerExit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerExit::Code(code) => write!(out, "exit code {code}"),
            ServerExit::Signal(number) => write!(out, "signal {number}"),
            ServerExit::Unknown => out.write_str("nobody saw how"),
        }
    }
}

/// An order or a report as a line.
pub(crate) fn line(words: &impl Serialize) -> String {
    serde_json::to_string(words).expect("words and numbers are JSON") + "\n"
}

/// Has the kernel kill the command's process as soon as the *thread* that spawns it ends, for
/// whatever reason (prctl(2), `PR_SET_PDEATHSIG`). So that must be the main thread, or the process
/// is killed too early. What the child does between fork and exec is the only unsafe code of this
/// crate.
#[expect(
    unsafe_code,
    reason = "std gives no safe way to ask for the parent-death signal before exec"
)]
pub fn dies_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These two are bare
    // system calls, which neither allocate nor lock, and an `Errno` becomes an `io::Error` without
    // allocating.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before that call; then the signal would never be sent.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(Errno::SRCH.into())
            }
        });
    }
}
