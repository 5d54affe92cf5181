//! A server that runs under guard: its process id, its output, its end.
//!
//! Whether it is *ready* is not known here. What stays true: when [`Server::stop`] has returned, or a `Server` was
//! dropped, nothing of it lives (but what is beyond our rights, which `stop` names).

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Clock, Nanos};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;

use crate::command::find_program;
use crate::guard::NONE;
use crate::output::Transcript;
use crate::protocol::{LineBuffer, Order, Report};
use crate::{Exit, GuardCommand, LaunchError, Output, Spec, Stopped};

/// How long a guard may take to say that its server runs, and, beyond the grace, that it has ended. Generous: only a
/// guard that is itself stuck takes seconds.
const GUARD_PATIENCE: Nanos = Nanos::from_secs(30);
/// How long we wait for what should come at once: the last lines of a server that is gone, the end of what was killed.
const LAST_PATIENCE: Nanos = Nanos::from_secs(5);
const MOMENT: Nanos = Nanos::from_millis(1);
/// How long one look at the guard's reports may wait for more.
const LOOK: Nanos = Nanos::from_millis(50);

/// A server that was started. Dropping it kills it.
pub struct Server {
    pid: Pid,
    spec: Spec,
    transcript: Transcript,
    watch: Mutex<Watch>,
}

/// Our end of the pipes to the guard, and all it has said.
struct Watch {
    guard: Child,
    orders: Option<ChildStdin>,
    reports: ChildStdout,
    lines: LineBuffer,
    started: Option<Pid>,
    /// The server's process group, until it is known to be empty.
    group: Option<Pid>,
    refused: Option<Report>,
    exit: Option<Exit>,
    forced: bool,
    leftovers: u32,
    beyond_reach: Vec<i32>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The guard is there and keeps its server.
    Kept,
    /// The guard said that nothing lives any more.
    Ended,
    /// The guard is gone and did not say so: it was killed.
    Lost,
}

impl Server {
    /// Starts the command under a guard and returns when the server's process exists, which says nothing about its
    /// being ready. `clock` only bounds the wait for the guard.
    ///
    /// # Errors
    /// Where the program or its directory does not exist, where it cannot be executed, or where the guard fails.
    ///
    /// # Panics
    /// Where `spec.argv` is empty.
    pub fn start(spec: &Spec, guard: &GuardCommand, clock: &dyn Clock) -> Result<Server, LaunchError> {
        check(spec)?;
        let mut command = Command::new(&guard.program);
        let scratch = spec.scratch.as_ref().map_or(NONE.as_ref(), |scratch| scratch.path().as_os_str());
        let cpus = spec.cpus.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string);
        command.args(&guard.args).arg(scratch).arg(cpus).args(&spec.argv);
        command.envs(spec.env.iter().map(|(name, value)| (name, value))).current_dir(&spec.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut guard = command.spawn().map_err(|error| LaunchError::Guard(error.to_string()))?;

        let piped = "asked for above";
        let (orders, reports) = (guard.stdin.take(), guard.stdout.take().expect(piped));
        let output = guard.stderr.take().expect(piped);
        let mut watch = Watch::new(guard, orders, reports);
        let transcript = Transcript::default();
        let reader = transcript.clone();
        let spawned = std::thread::Builder::new().name("server-output".to_owned()).spawn(move || reader.read(output));
        if let Err(error) = spawned {
            watch.kill();
            return Err(LaunchError::Guard(error.to_string()));
        }

        let begun = clock.now();
        while watch.started.is_none() && watch.refused.is_none() && watch.state == State::Kept {
            watch.listen(LOOK);
            if clock.now().saturating_sub(begun) > GUARD_PATIENCE {
                watch.kill();
                return Err(LaunchError::Guard("it does not answer".to_owned()));
            }
        }
        if let Some(pid) = watch.started {
            return Ok(Server { pid, spec: spec.clone(), transcript, watch: Mutex::new(watch) });
        }
        watch.kill();
        Err(match watch.refused.take() {
            Some(Report::NotExecuted(reason)) => LaunchError::NotExecuted { program: spec.program(), reason },
            Some(Report::Failed(reason)) => LaunchError::Guard(reason),
            _ => {
                wait_for(&transcript, clock);
                let said = transcript.so_far().telling_line();
                LaunchError::Guard(said.unwrap_or_else(|| "it ended without a word".to_owned()))
            }
        })
    }

    /// The process id of the server's own process: of Puma's master, in cluster mode.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// What was started.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The command as a shell takes it.
    pub fn command_line(&self) -> String {
        self.spec.command_line()
    }

    /// How the server ended by itself, or `None` while anything of it lives. Does not wait. With `Some`, all it wrote
    /// is in [`Server::output`], and what it left behind was killed.
    pub fn exited(&self) -> Option<Exit> {
        let mut watch = self.watch();
        watch.listen(Nanos::ZERO);
        let all_read = self.transcript.finished() || !watch.beyond_reach.is_empty();
        match watch.state {
            State::Ended if all_read => Some(watch.exit()),
            State::Lost => {
                watch.kill_group();
                Some(watch.exit())
            }
            State::Kept | State::Ended => None,
        }
    }

    /// Where it ended by itself: that, as the error to show to the user who waits for it to be ready.
    pub fn boot_error(&self) -> Option<LaunchError> {
        let exit = self.exited()?;
        let line = self.output().telling_line().unwrap_or_else(|| "it wrote nothing".to_owned());
        Some(LaunchError::EndedAtBoot { exit, line, command_line: self.command_line() })
    }

    /// What it has written so far.
    pub fn output(&self) -> Output {
        self.transcript.so_far()
    }

    /// Asks it to stop (SIGTERM), kills it when `grace` has passed, and returns when nothing of it lives. Where it has
    /// ended already, says how.
    pub fn stop(&self, grace: Nanos, clock: &dyn Clock) -> Stopped {
        self.watch().order(Order::Stop(grace));
        let begun = clock.now();
        let patience = grace.saturating_add(GUARD_PATIENCE);
        loop {
            // The lock is taken anew each time, so that others may look at the server meanwhile.
            let mut watch = self.watch();
            watch.listen(LOOK);
            if watch.state != State::Kept {
                break;
            }
            if clock.now().saturating_sub(begun) > patience {
                // The guard is stuck (stopped by a debugger?). Killing it kills the server.
                watch.kill_guard();
            }
        }
        let mut watch = self.watch();
        let lost = watch.state == State::Lost;
        watch.bury();
        let stopped = Stopped {
            exit: watch.exit(),
            forced: watch.forced || lost,
            leftovers: watch.leftovers,
            beyond_reach: watch.beyond_reach.clone(),
        };
        if lost {
            let begun = clock.now();
            while watch.kill_group() && clock.now().saturating_sub(begun) <= LAST_PATIENCE {
                clock.sleep(MOMENT);
            }
        }
        drop(watch);
        if stopped.beyond_reach.is_empty() {
            wait_for(&self.transcript, clock);
        }
        stopped
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        // A report is taken whole, so a panic elsewhere cannot have left it half taken.
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let watch = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner);
        watch.kill();
        if watch.state == State::Lost {
            watch.kill_group();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Server")
            .field("pid", &self.pid())
            .field("command_line", &self.command_line())
            .finish_non_exhaustive()
    }
}

impl Watch {
    fn new(guard: Child, orders: Option<ChildStdin>, reports: ChildStdout) -> Watch {
        Watch {
            guard,
            orders,
            reports,
            lines: LineBuffer::default(),
            started: None,
            group: None,
            refused: None,
            exit: None,
            forced: false,
            leftovers: 0,
            beyond_reach: Vec::new(),
            state: State::Kept,
        }
    }

    /// How the server ended; unknown where nobody said.
    fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::Unknown)
    }

    fn order(&mut self, order: Order) {
        if let Some(orders) = &mut self.orders {
            // Where the guard is gone already, the end of its reports says so.
            let _ = orders.write_all(format!("{order}\n").as_bytes());
        }
    }

    /// Takes in what the guard has said, waiting at most so long, less than a second, for it to say something.
    fn listen(&mut self, wait: Nanos) {
        let mut wait = Timespec { tv_sec: 0, tv_nsec: wait.0.cast_signed() };
        let mut bytes = [0; 1024];
        while self.state == State::Kept {
            let mut waits = [PollFd::new(&self.reports, PollFlags::IN)];
            if !matches!(poll(&mut waits, Some(&wait)), Ok(n) if n > 0) {
                return;
            }
            match self.reports.read(&mut bytes) {
                Ok(0) => self.state = State::Lost,
                Ok(n) => {
                    for line in self.lines.feed(&bytes[..n]) {
                        self.take(&line);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => self.state = State::Lost,
            }
            wait.tv_nsec = 0;
        }
    }

    fn take(&mut self, line: &str) {
        match line.parse() {
            Ok(Report::Started(pid)) => {
                self.started = Pid::from_raw(pid);
                self.group = self.started;
            }
            Ok(refused @ (Report::Failed(_) | Report::NotExecuted(_))) => self.refused = Some(refused),
            Ok(Report::Exited(exit)) => self.exit = Some(exit),
            Ok(Report::Forced) => self.forced = true,
            Ok(Report::Leftovers(n)) => self.leftovers = n,
            Ok(Report::BeyondReach(pid)) => self.beyond_reach.push(pid),
            Ok(Report::Ended) => self.state = State::Ended,
            Err(()) => self.refused = Some(Report::Failed(format!("it said '{line}'"))),
        }
    }

    /// Has everything killed and returns when the guard is gone.
    fn kill(&mut self) {
        self.order(Order::Kill);
        self.orders = None;
        let mut looks = GUARD_PATIENCE.0 / LOOK.0;
        while self.state == State::Kept {
            self.listen(LOOK);
            looks = looks.saturating_sub(1);
            if looks == 0 {
                self.kill_guard();
            }
        }
        self.bury();
    }

    fn kill_guard(&mut self) {
        // It is our child and not reaped yet, so this can only fail where it is dead.
        let _ = self.guard.kill();
    }

    /// Reaps the guard, which has said its last word.
    fn bury(&mut self) {
        self.orders = None;
        let _ = self.guard.wait();
    }

    /// Kills the server's process group where its guard no longer can; says whether anybody may still be in it.
    ///
    /// While a process group has members, its number is not given to another process. Once it has none it is left
    /// alone, so that only a group whose number went round within the moment since the guard died could be mistaken.
    fn kill_group(&mut self) -> bool {
        let killed = self.group.is_some_and(|group| rustix::process::kill_process_group(group, Signal::KILL).is_ok());
        if !killed {
            self.group = None;
        }
        killed
    }
}

/// Waits until all is read that the server wrote. Bounded: a process that nobody could kill may hold the pipe.
fn wait_for(transcript: &Transcript, clock: &dyn Clock) {
    let begun = clock.now();
    while !transcript.finished() && clock.now().saturating_sub(begun) <= LAST_PATIENCE {
        clock.sleep(MOMENT);
    }
}

/// Finds what would fail anyway, before anything is started and with a better message than the kernel's.
fn check(spec: &Spec) -> Result<(), LaunchError> {
    let program = spec.argv.first().expect("a command has a program");
    if !spec.dir.is_dir() {
        return Err(LaunchError::NoDirectory(spec.dir.clone()));
    }
    let own = spec.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    match find_program(program, &spec.dir, &path) {
        Some(_) => Ok(()),
        None => Err(LaunchError::ProgramNotFound {
            program: spec.program(),
            mend: "install it, put it on PATH, or give its whole path".to_owned(),
        }),
    }
}
