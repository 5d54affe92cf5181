//! Descriptors: enough of them for all connections, raised or refused before the start, as "too many open files" must never look like a
//! failing server; and for each lane a table of its own, which makes its system calls cheaper.

use std::os::fd::RawFd;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::EngineError;

/// Descriptors that the process needs beside its connections.
const OTHERS: u64 = 64;

/// Raises the limit of open descriptors as far as `connections` need it.
///
/// # Errors
/// Where the limit cannot be raised so far.
pub fn ensure_descriptors(connections: u64) -> Result<(), EngineError> {
    let needed = connections + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // Only root may raise the maximum; the attempt costs nothing.
    let raised = Rlimit { current: Some(needed), maximum: maximum.map(|maximum| maximum.max(needed)) };
    let limit = maximum.or(current).unwrap_or(0);
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        EngineError(format!(
            "{connections} connections need {needed} file descriptors and the limit is {limit}: raise it (ulimit -n {needed}) or lower the connections"
        ))
    })
}

/// Where the kernel lists what the calling thread has open.
const OPEN_FILES: &str = "/proc/thread-self/fd";

/// Gives the calling thread a table of descriptors of its own, with nothing in it but standard input, output and error: whether the kernel did. Where it did
/// not (a container may forbid the call, `/proc` may not be there), all stays as it was.
///
/// Threads share their process's table of open files. In a shared one each `send`, `recv` and `epoll_wait` takes and gives back a
/// reference to its file, so that no other thread can close it meanwhile; in a table that nobody shares the kernel leaves that
/// out (`__fget_light`, fs/file.c: "if the file table isn't shared"). That is some 50 instructions a call, two of them atomic.
///
/// For threads that have no descriptors yet and get none from others: those that the process has open are not open here
/// afterwards. Were they, a connection that another thread closes would stay open for as long as this one lives.
///
/// A signal is handled on any thread, so no handler of the process may use a descriptor: its number may be a socket here. Ours set flags.
pub(crate) fn unshare_table() -> bool {
    // Where the kernel gives no random bytes they come from a file, which the process has open, and which must stay open here.
    let has_random_bytes = getrandom(&mut [0_u8; 1], GetRandomFlags::NONBLOCK).is_ok();
    if !has_random_bytes || std::fs::read_dir(OPEN_FILES).is_err() || unshare(CloneFlags::CLONE_FILES).is_err() {
        return false;
    }
    for inherited in listed() {
        // The listing's own is in it, and closed already.
        let _ = nix::unistd::close(inherited);
    }
    true
}

/// What is open here beyond standard input, output and error.
fn listed() -> Vec<RawFd> {
    let entries = std::fs::read_dir(OPEN_FILES).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|fd| *fd > 2).collect()
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
        assert_eq!(text, "still open", "it ends although the lane lives: the lane does not hold it");
        release.send(()).unwrap();
        lane.join().unwrap();
    }
}
