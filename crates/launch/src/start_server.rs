//! Starts a server under guard, whichever it is (`puma` makes the command line of a Puma), and stops
//! it ([`Server`]).
//!
//! Whether it is *ready* is not known here. When [`Server::stop`] has returned, or a `Server` was
//! dropped, none of its processes lives, except those that we may not kill.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::paths::what_is_there;
use model::{Clock, Nanos};
use rustix::process::{Pid, Signal};

use crate::guard::{GuardOrder, GuardReport, NONE, ServerExit, line};
use crate::server_output::Transcript;
use crate::spec::why_no_program;
use crate::{GuardCommand, LaunchError, LaunchSpec, ServerOutput, find_program};

/// How long a guard may take to say that its server runs, and, beyond the grace, that it has ended.
/// Generous: only a guard that is itself stuck takes seconds.
const GUARD_PATIENCE: Nanos = Nanos::from_secs(30);
/// How long to wait for what should come at once: the last lines of an ended server, the end of a
/// killed process.
const LAST_PATIENCE: Nanos = Nanos::from_secs(5);
/// How often to check whether a command has ended.
const STEP: Nanos = Nanos::from_millis(10);
const MOMENT: Nanos = Nanos::from_millis(1);
/// How long one read of the guard's reports may wait for more.
const REPORT_PERIOD: Nanos = Nanos::from_millis(50);

/// A server that was started. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    pid: Pid,
    spec: LaunchSpec,
    transcript: Transcript,
    link: Mutex<GuardLink>,
}

/// Our end of the pipes to the guard, and everything that it has reported.
#[derive(Debug)]
struct GuardLink {
    guard: Child,
    orders: Option<ChildStdin>,
    /// The lines that it writes.
    reports: Receiver<String>,
    /// The server's process group, until it is known to be empty.
    group: Option<Pid>,
    refused: Option<GuardReport>,
    exit: Option<ServerExit>,
    /// Whether some of its processes live on that we may not kill.
    is_beyond_reach: bool,
    state: GuardState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardState {
    /// The guard runs, and so may its server.
    Kept,
    /// The guard reported that no process lives any more.
    Ended,
    /// The guard is gone without that report: it was killed.
    Lost,
}

impl Server {
    /// Starts the command under a guard and returns when the server's process exists; it need not
    /// be ready then. `clock` only bounds the wait for the guard.
    ///
    /// # Errors
    /// If the program or its directory does not exist, it cannot be executed, or the guard fails.
    ///
    /// # Panics
    /// If `spec.argv` is empty.
    pub fn start(
        spec: &LaunchSpec,
        guard: &GuardCommand,
        clock: &dyn Clock,
    ) -> Result<Server, LaunchError> {
        check(spec)?;
        let mut guard = guard_command(spec, guard)
            .spawn()
            .map_err(|error| LaunchError::NoGuard(guard.why_not_started(&error)))?;
        let output = guard.stderr.take().expect("it is a pipe");
        let reports = guard.stdout.take().expect("it is a pipe");
        let (tell, told) = channel();
        let mut link = GuardLink {
            orders: guard.stdin.take(),
            reports: told,
            guard,
            group: None,
            refused: None,
            exit: None,
            is_beyond_reach: false,
            state: GuardState::Kept,
        };
        let transcript = Transcript::default();
        let reader = transcript.clone();
        let spawned = spawn("guard-reports", move || pass_on(reports, &tell))
            .and_then(|()| spawn("server-output", move || reader.read(output)));
        if let Err(error) = spawned {
            link.kill();
            return Err(LaunchError::Guard(error.to_string()));
        }
        link.wait_for_first_report(clock)?;
        if let Some(pid) = link.group {
            return Ok(Server { pid, spec: spec.clone(), transcript, link: Mutex::new(link) });
        }
        link.kill();
        Err(match link.refused.take() {
            Some(GuardReport::NotExecuted(reason)) => {
                LaunchError::NotExecuted { program: spec.program(), reason }
            }
            Some(GuardReport::Failed(reason)) => LaunchError::Guard(reason),
            _ => {
                wait_for(&transcript, clock);
                let said = transcript.so_far().telling_line();
                LaunchError::Guard(said.unwrap_or_else(|| "it ended without a word".to_owned()))
            }
        })
    }

    /// The id of the server's own process; of Puma in cluster mode, the master's.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Whether its command has `ruby -I FOLDER`: an option of Ruby that Puma does not pass on when it
    /// restarts itself.
    pub fn gives_ruby_a_library(&self) -> bool {
        let ruby = self.spec.argv.iter().position(|word| Path::new(word).ends_with("ruby"));
        let options = ruby.map_or(&[][..], |at| &self.spec.argv[at + 1..]);
        options
            .iter()
            .map_while(|word| word.to_str().filter(|word| word.starts_with('-')))
            .any(|word| word.starts_with("-I"))
    }

    /// Starts the same command once more, when this one has ended.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_again(
        &self,
        guard: &GuardCommand,
        clock: &dyn Clock,
    ) -> Result<Server, LaunchError> {
        Server::start(&self.spec, guard, clock)
    }

    /// The command as a shell takes it.
    pub fn command_line(&self) -> String {
        self.spec.command_line()
    }

    /// How the server ended by itself, or `None` while one of its processes lives. Does not wait.
    /// If it is `Some`, all that it wrote is in [`Server::output`], and what it left behind was
    /// killed.
    pub fn exited(&self) -> Option<ServerExit> {
        let mut link = self.link();
        link.listen(Nanos::ZERO);
        let all_read = self.transcript.is_finished() || link.is_beyond_reach;
        match link.state {
            GuardState::Ended if all_read => Some(link.exit()),
            GuardState::Lost => {
                link.kill_group();
                Some(link.exit())
            }
            GuardState::Kept | GuardState::Ended => None,
        }
    }

    /// What it has written so far.
    pub fn output(&self) -> ServerOutput {
        self.transcript.so_far()
    }

    /// Asks it to stop (SIGTERM), kills it after `grace`, and returns when none of its processes
    /// lives. Returns how it ended: by SIGKILL if it outlived the grace.
    pub fn stop(&self, grace: Nanos, clock: &dyn Clock) -> ServerExit {
        self.link().order(GuardOrder::Stop(grace));
        let begun = clock.now();
        let patience = grace.saturating_add(GUARD_PATIENCE);
        loop {
            // The lock is taken again each time, so that others can look at the server meanwhile.
            let mut link = self.link();
            link.listen(REPORT_PERIOD);
            if link.state != GuardState::Kept {
                break;
            }
            if clock.now().saturating_sub(begun) > patience {
                // The guard is stuck (stopped by a debugger?). Killing it kills the server.
                link.kill_guard();
            }
        }
        let mut link = self.link();
        link.bury();
        let exit = link.exit();
        let is_beyond_reach = link.is_beyond_reach;
        if link.state == GuardState::Lost {
            let begun = clock.now();
            while link.kill_group() && clock.now().saturating_sub(begun) <= LAST_PATIENCE {
                clock.sleep(MOMENT);
            }
        }
        drop(link);
        if !is_beyond_reach {
            wait_for(&self.transcript, clock);
        }
        exit
    }

    fn link(&self) -> MutexGuard<'_, GuardLink> {
        // Reports are taken whole, so a panic elsewhere cannot have left half of one.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
        link.kill();
        if link.state == GuardState::Lost {
            link.kill_group();
        }
    }
}

impl GuardLink {
    /// How the server ended; unknown if nobody reported it.
    fn exit(&self) -> ServerExit {
        self.exit.unwrap_or(ServerExit::Unknown)
    }

    fn order(&mut self, order: GuardOrder) {
        if let Some(orders) = &mut self.orders {
            // If the guard is gone already, the end of its reports says so.
            let _ = orders.write_all(line(&order).as_bytes());
        }
    }

    /// Waits until the guard has reported that the server runs, or why it does not, or has ended.
    fn wait_for_first_report(&mut self, clock: &dyn Clock) -> Result<(), LaunchError> {
        let begun = clock.now();
        while self.group.is_none() && self.refused.is_none() && self.state == GuardState::Kept {
            self.listen(REPORT_PERIOD);
            if clock.now().saturating_sub(begun) > GUARD_PATIENCE {
                self.kill();
                return Err(LaunchError::Guard("it does not answer".to_owned()));
            }
        }
        Ok(())
    }

    /// Reads what the guard has reported, and waits at most this long for more.
    fn listen(&mut self, wait: Nanos) {
        let mut wait = Duration::from(wait);
        while self.state == GuardState::Kept {
            match self.reports.recv_timeout(wait) {
                Ok(line) => self.take(&line),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.state = GuardState::Lost,
            }
            wait = Duration::ZERO;
        }
    }

    fn take(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(GuardReport::Started(pid)) => self.group = Pid::from_raw(pid),
            Ok(refused @ (GuardReport::Failed(_) | GuardReport::NotExecuted(_))) => {
                self.refused = Some(refused);
            }
            Ok(GuardReport::Exited(exit)) => self.exit = Some(exit),
            Ok(GuardReport::BeyondReach) => self.is_beyond_reach = true,
            Ok(GuardReport::Ended) => self.state = GuardState::Ended,
            Err(_) => self.refused = Some(GuardReport::Failed(format!("it said '{line}'"))),
        }
    }

    /// Has everything killed and returns when the guard is gone.
    fn kill(&mut self) {
        self.order(GuardOrder::Kill);
        self.orders = None;
        let mut readings = GUARD_PATIENCE.0 / REPORT_PERIOD.0;
        while self.state == GuardState::Kept {
            self.listen(REPORT_PERIOD);
            readings = readings.saturating_sub(1);
            if readings == 0 {
                self.kill_guard();
            }
        }
        self.bury();
    }

    fn kill_guard(&mut self) {
        // It is our child and not reaped yet, so this can only fail if it is dead.
        let _ = self.guard.kill();
    }

    /// Reaps the guard, which will not report any more.
    fn bury(&mut self) {
        self.orders = None;
        let _ = self.guard.wait();
    }

    /// Kills the server's process group if its guard no longer can. Returns whether a process may
    /// still be in it.
    ///
    /// As long as a process group has members, its number is not given to another process. Once it
    /// is empty it is left alone. So another group could only be killed by mistake if it got the
    /// same number in the moment since the guard died.
    fn kill_group(&mut self) -> bool {
        let killed = self
            .group
            .is_some_and(|group| rustix::process::kill_process_group(group, Signal::KILL).is_ok());
        if !killed {
            self.group = None;
        }
        killed
    }
}

/// The command of the guard of this server.
fn guard_command(spec: &LaunchSpec, guard: &GuardCommand) -> Command {
    let scratch = match &spec.scratch {
        Some(scratch) => scratch.path().as_os_str(),
        None => NONE.as_ref(),
    };
    let cpus = spec.cpus.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string);
    let mut command = Command::new(&guard.program);
    command
        .args(&guard.args)
        .arg(scratch)
        .arg(cpus)
        .args(&spec.argv)
        .envs(&spec.env)
        .current_dir(&spec.dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Sends each line of the guard's reports on, until it ends or nobody listens any more.
fn pass_on(reports: ChildStdout, tell: &Sender<String>) {
    for line in BufReader::new(reports).lines().map_while(Result::ok) {
        if tell.send(line).is_err() {
            return;
        }
    }
}

/// Runs a command that ends by itself. Returns how it ended and what it printed. `gives_up` is
/// called again and again with the time that has passed; if it returns true, the command is stopped
/// as [`Server::stop`] does, and its end is `None`.
///
/// # Errors
/// As [`Server::start`].
pub(crate) fn run_to_end(
    spec: &LaunchSpec,
    guard: &GuardCommand,
    clock: &dyn Clock,
    grace: Nanos,
    gives_up: impl Fn(Nanos) -> bool,
) -> Result<(Option<ServerExit>, ServerOutput), LaunchError> {
    let child = Server::start(spec, guard, clock)?;
    let begun = clock.now();
    while child.exited().is_none() && !gives_up(clock.now().saturating_sub(begun)) {
        clock.sleep(STEP);
    }
    let exit = child.exited();
    child.stop(grace, clock);
    Ok((exit, child.output()))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Waits until everything that the server wrote is read. The wait is bounded, because a process
/// that could not be killed may keep the pipe open.
fn wait_for(transcript: &Transcript, clock: &dyn Clock) {
    let begun = clock.now();
    while !transcript.is_finished() && clock.now().saturating_sub(begun) <= LAST_PATIENCE {
        clock.sleep(MOMENT);
    }
}

/// Finds out before anything is started what would fail, with a better message than the kernel's.
fn check(spec: &LaunchSpec) -> Result<(), LaunchError> {
    let program = spec.argv.first().expect("a command has a program");
    if !spec.dir.is_dir() {
        return Err(LaunchError::Unusable(format!(
            "the directory '{}' {}: start longtail in one that is there",
            spec.dir.display(),
            what_is_there(&spec.dir)
        )));
    }
    let own = spec.env.get(OsStr::new("PATH")).cloned();
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    match find_program(program, &spec.dir, &path) {
        Some(_) => Ok(()),
        None if program.to_string_lossy().contains('/') => Err(LaunchError::ProgramNotFound {
            program: spec.program(),
            why: why_no_program(program, &spec.dir),
            hint: "correct the command after --: the path of a program that this user may execute"
                .to_owned(),
        }),
        None => Err(LaunchError::ProgramNotFound {
            program: spec.program(),
            why: why_no_program(program, &spec.dir),
            hint: "install it, put it on PATH, or give its whole path".to_owned(),
        }),
    }
}
