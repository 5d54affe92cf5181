//! CPU affinity: which CPUs a thread or process may use, which ones the server and the generator
//! share, and how to keep a thread on some of them.
//!
//! A thread passes its affinity on to the threads and processes that it starts
//! (`sched_setaffinity(2)`). Every process may read the affinity of any other; for a process with
//! several threads the kernel returns the main thread's.

use model::{Cpus, Placement};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs of the calling thread; `None` if the kernel does not say.
pub fn ours() -> Option<Cpus> {
    of(None)
}

/// Which processors the server with these root processes uses, and which are left to the
/// generator; `None` if none of the processes is alive.
pub fn placement(roots: &[u32]) -> Option<Placement> {
    let ours = ours()?;
    let of_process = |pid: u32| of(Some(Pid::from_raw(i32::try_from(pid).ok()?)?));
    let serving = |first: &u32| {
        let below = proctree::tree(*first).into_iter().filter(|pid| pid != first);
        let workers: Vec<Cpus> = below.filter_map(of_process).collect();
        Some(Placement::serving(of_process(*first)?, &workers, &ours))
    };
    let server = roots.iter().filter_map(serving).reduce(|all, one| all.with(&one))?;
    Some(Placement::of_server(server, &ours))
}

fn of(pid: Option<Pid>) -> Option<Cpus> {
    let set = sched_getaffinity(pid).ok()?;
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32);
    Some(all.collect::<Cpus>()).filter(|cpus| !cpus.is_empty())
}

/// Keeps the calling thread, and whatever it starts from now on, on these CPUs.
///
/// # Errors
/// If none of them exists, or a cpuset leaves none (`EINVAL`).
pub(crate) fn keep_to(cpus: &Cpus) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    cpus.iter()
        .filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU)
        .for_each(|cpu| set.set(cpu as usize));
    sched_setaffinity(None, &set)
}

/// Keeps the calling thread on some CPUs as long as this lives; then it gets its own back.
#[derive(Debug)]
pub struct CpuRestriction {
    before: Cpus,
}

impl CpuRestriction {
    /// Keeps it off the server's CPUs, if others are left; `None` if nothing is changed.
    pub fn off_the_server(placement: Option<&Placement>) -> Option<CpuRestriction> {
        let placement = placement.filter(|placement| !placement.is_shared())?;
        let before = ours().filter(|before| *before != placement.lanes)?;
        keep_to(&placement.lanes).ok()?;
        Some(CpuRestriction { before })
    }
}

impl Drop for CpuRestriction {
    fn drop(&mut self) {
        // They were ours a moment ago.
        let _ = keep_to(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own, as what is tried stays with the thread.
    fn apart<T: Send>(what: impl FnOnce(Cpus) -> T + Send) -> T {
        std::thread::scope(|scope| {
            scope.spawn(|| what(ours().expect("Linux tells"))).join().unwrap()
        })
    }

    #[test]
    fn a_thread_is_kept_to_its_processors_for_a_time_and_so_is_what_it_starts() {
        apart(|all| {
            let last: Cpus = all.iter().last().into_iter().collect();
            let placement = Placement { server: all.without(&last), lanes: last.clone() };
            let kept = CpuRestriction::off_the_server(Some(&placement));
            assert!(kept.is_some());
            assert_eq!((ours(), apart(|theirs| theirs)), (Some(last.clone()), last));
            drop(kept);
            assert_eq!(ours(), Some(all));
        });
    }

    #[test]
    fn a_generator_that_shares_the_servers_cpus_is_not_restricted() {
        apart(|all| {
            let ourselves = placement(&[std::process::id()]).expect("this process lives");
            assert!(ourselves.is_shared() && ourselves.lanes == all);
            assert!(
                CpuRestriction::off_the_server(Some(&ourselves)).is_none()
                    && CpuRestriction::off_the_server(None).is_none()
            );
            assert_eq!(ours(), Some(all));
        });
    }

    #[test]
    fn missing_cpus_are_refused_and_dead_processes_have_no_placement() {
        apart(|_| assert_eq!(keep_to(&Cpus::default()), Err(Errno::INVAL)));
        assert_eq!(placement(&[]), None);
        assert_eq!(placement(&[u32::MAX]), None);
    }
}
