//! The wait of a lane: epoll, with timeouts to the nanosecond.
//!
//! `epoll_pwait2` (Linux 5.11) takes them as they are. An older kernel, or a sandbox that does not know the call, is found out at the
//! first wait: from then on the epoll descriptor itself is polled, with `ppoll`, which has always had nanoseconds, and then emptied. A system
//! call more where nothing was ready, and no other difference.

use std::os::fd::AsFd;

use model::Nanos;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

/// Events taken from the kernel in one wait.
const EVENTS: usize = 1024;

/// The sockets that a lane waits for.
pub(crate) struct Poller {
    epoll: Epoll,
    events: Vec<epoll::Event>,
    /// Where the kernel has no `epoll_pwait2`: its events in the other crate's form.
    old: Option<Box<[EpollEvent]>>,
}

impl Poller {
    /// Waits for nothing yet.
    ///
    /// # Errors
    /// Where the kernel gives no epoll instance (out of descriptors).
    pub(crate) fn new() -> Result<Poller, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(of_nix)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS), old: None })
    }

    /// Reports from now on all that `interest` names of `fd`, with `data`; until the descriptor is closed.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub(crate) fn add(&self, fd: impl AsFd, data: u64, interest: epoll::EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll.0, fd, epoll::EventData::new_u64(data), interest)
    }

    /// Waits `at_most` this long, and says what is new. An interrupted wait is one without news.
    #[inline]
    pub(crate) fn wait(&mut self, at_most: Nanos) -> impl Iterator<Item = (epoll::EventFlags, u64)> + '_ {
        self.events.clear();
        if self.old.is_none() {
            let got = epoll::wait(&self.epoll.0, spare_capacity(&mut self.events), Some(&timespec(at_most)));
            if got == Err(Errno::NOSYS) {
                self.old = Some(vec![EpollEvent::empty(); EVENTS].into_boxed_slice());
            }
        }
        if self.old.is_some() {
            self.wait_as_before_5_11(at_most);
        }
        self.events.iter().map(|event| (event.flags, event.data.u64()))
    }

    #[cold]
    fn wait_as_before_5_11(&mut self, at_most: Nanos) {
        let Some(old) = &mut self.old else { return };
        let mut got = self.epoll.wait(old, EpollTimeout::ZERO).unwrap_or(0);
        if got == 0 && at_most > Nanos::ZERO {
            let _ = poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], Some(&timespec(at_most)));
            got = self.epoll.wait(old, EpollTimeout::ZERO).unwrap_or(0);
        }
        self.events.extend(old[..got].iter().map(|event| epoll::Event {
            flags: epoll::EventFlags::from_bits_retain(event.events().bits().cast_unsigned()),
            data: epoll::EventData::new_u64(event.data()),
        }));
    }
}

fn timespec(time: Nanos) -> Timespec {
    Timespec {
        tv_sec: (time.0 / 1_000_000_000).min(3600).cast_signed(),
        tv_nsec: (time.0 % 1_000_000_000).cast_signed(),
    }
}

fn of_nix(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn old_kernels_wait_gives_the_same_news() {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a pair of sockets");
        for old in [false, true] {
            let mut poller = Poller::new().expect("an epoll instance");
            poller.add(&near, 7, epoll::EventFlags::IN | epoll::EventFlags::ET).unwrap();
            poller.old = old.then(|| vec![EpollEvent::empty(); EVENTS].into_boxed_slice());
            assert_eq!(poller.wait(Nanos::from_millis(1)).count(), 0, "nothing is there");
            rustix::io::write(&far, b"x").unwrap();
            let news: Vec<_> = poller.wait(Nanos::from_secs(10)).collect();
            assert_eq!(news, [(epoll::EventFlags::IN, 7)]);
            assert_eq!(poller.wait(Nanos::ZERO).count(), 0, "it was reported once");
            rustix::io::read(&near, &mut [0_u8; 8]).unwrap();
        }
    }
}
