//! What the tests share: the guard's command, bounded waits, and which processes are alive.

use std::path::{Path, PathBuf};

use launch::{GuardCommand, LaunchSpec, Server};
use model::Nanos;
use proctree::ProcessStat;

use testkit::clock::REAL_CLOCK;

/// Longer than a noisy machine takes for anything here; only a test that fails waits so long.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(60);

/// The example `guard`, which cargo builds before it runs the tests of a package.
pub(crate) fn guard_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples/guard");
    assert!(
        program.exists(),
        "{} is missing: run `cargo build -p launch --examples`",
        program.display()
    );
    program
}

pub(crate) fn guard() -> GuardCommand {
    GuardCommand { program: guard_program(), args: vec!["keep".into()] }
}

/// Starts a shell script as the server.
pub(crate) fn shell(script: &str) -> Server {
    Server::start(&LaunchSpec::command(["sh", "-c", script], Path::new("/")), &guard(), &REAL_CLOCK)
        .unwrap()
}

/// Waits until `look` finds something, and fails the test if it never does.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    testkit::clock::eventually(PATIENCE, || what.to_owned(), look)
}

/// Waits for a line that begins with `word`, and gives the rest of it.
pub(crate) fn said(server: &Server, word: &str) -> String {
    eventually(word, || {
        let output = server.output();
        output.lines().find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    })
}

/// Whether a process is alive. One that is dead but not yet reaped is not: the init that should
/// reap it may be slow or careless.
pub(crate) fn lives(pid: u32) -> bool {
    ProcessStat::of(pid).is_some_and(|process| !process.is_dead)
}

pub(crate) fn parent(pid: u32) -> u32 {
    ProcessStat::of(pid).unwrap().parent
}

pub(crate) fn process_group(pid: u32) -> u32 {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed());
    rustix::process::getpgid(pid).unwrap().as_raw_pid().cast_unsigned()
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    proctree::all()
        .iter()
        .filter(|process| process.parent == pid)
        .map(|process| process.pid)
        .collect()
}

pub(crate) fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A directory for one test, removed at its end.
pub(crate) fn folder() -> launch::Scratch {
    launch::Scratch::new(&std::env::temp_dir()).unwrap()
}
