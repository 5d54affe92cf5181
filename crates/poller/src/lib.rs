//! Waits for many sockets on one thread: epoll with timeouts to the nanosecond. The generator and
//! the sink wait with it.
//!
//! `epoll_pwait2` (Linux 5.11) takes such timeouts. If it is refused (an older kernel says
//! `ENOSYS`, a sandbox `EPERM` or whatever its author chose), the epoll descriptor itself is polled
//! with `ppoll`, which has always taken nanoseconds, and then read without waiting. That costs one
//! more system call when nothing was ready. If `ppoll` is refused too, waits last whole
//! milliseconds. All of that is tried when the poller is made, so that no later wait can fail.

use std::os::fd::AsFd;

use model::Nanos;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};
use rustix::buffer::spare_capacity;
pub use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

/// The most events that one wait without `epoll_pwait2` takes; with it, the caller's buffer is the
/// limit.
const EVENTS: usize = 1024;

/// The descriptors that a thread waits for.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    /// The buffer for events without `epoll_pwait2`, in nix's form.
    old: Option<Box<[EpollEvent]>>,
}

impl Poller {
    /// Makes a poller that waits for nothing yet.
    ///
    /// # Errors
    /// If the kernel gives no epoll instance (out of descriptors), or refuses every way to
    /// wait.
    pub fn new() -> Result<Poller, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(of_nix)?;
        let mut poller = Poller { epoll, old: None };
        poller.wait(Nanos::ZERO, &mut Vec::with_capacity(1));
        if let Some(old) = &mut poller.old {
            poller.epoll.wait(old, EpollTimeout::ZERO).map_err(of_nix)?;
        }
        Ok(poller)
    }

    /// Reports the events of `interest` on `fd` from now on, marked with `data`, until the
    /// descriptor is closed.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add(&self, fd: impl AsFd, data: u64, interest: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll.0, fd, EventData::new_u64(data), interest)
    }

    /// Reports the events of this `interest` from now on.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn modify(&self, fd: impl AsFd, data: u64, interest: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll.0, fd, EventData::new_u64(data), interest)
    }

    /// Waits at most this long and puts what is ready into `events`, which must have room. A wait
    /// that a signal interrupts returns no events.
    #[inline]
    pub fn wait(&mut self, at_most: Nanos, events: &mut Vec<Event>) {
        events.clear();
        if self.old.is_none() {
            match epoll::wait(&self.epoll.0, spare_capacity(events), Some(&timespec(at_most))) {
                Ok(_) | Err(Errno::INTR) => return,
                // Whatever the reason is, asking again would only spin.
                Err(_) => self.old = Some(vec![EpollEvent::empty(); EVENTS].into_boxed_slice()),
            }
        }
        self.wait_as_before_5_11(at_most, events);
    }

    #[cold]
    fn wait_as_before_5_11(&mut self, at_most: Nanos, events: &mut Vec<Event>) {
        let Some(old) = &mut self.old else { return };
        let mut got = self.epoll.wait(old, EpollTimeout::ZERO).unwrap_or(0);
        if got == 0 && at_most > Nanos::ZERO {
            let polled =
                poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], Some(&timespec(at_most)));
            let refused = polled.is_err_and(|errno| errno != Errno::INTR);
            got = self
                .epoll
                .wait(old, if refused { milliseconds(at_most) } else { EpollTimeout::ZERO })
                .unwrap_or(0);
        }
        events.extend(old[..got].iter().map(|event| Event {
            flags: EventFlags::from_bits_retain(event.events().bits().cast_unsigned()),
            data: EventData::new_u64(event.data()),
        }));
    }
}

fn timespec(time: Nanos) -> Timespec {
    Timespec {
        tv_sec: (time.0 / 1_000_000_000).min(3600).cast_signed(),
        tv_nsec: (time.0 % 1_000_000_000).cast_signed(),
    }
}

/// Rounded up: rounded down, the last millisecond would be a busy loop, because the caller would
/// wait again for 0 ms until its time has come.
fn milliseconds(time: Nanos) -> EpollTimeout {
    EpollTimeout::from(u16::try_from(time.0.div_ceil(1_000_000)).unwrap_or(u16::MAX))
}

fn of_nix(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn the_wait_of_older_kernels_reports_the_same_events() {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a pair of sockets");
        let mut events = Vec::with_capacity(8);
        for old in [false, true] {
            let mut poller = Poller::new().expect("an epoll instance");
            poller.add(&near, 7, EventFlags::IN | EventFlags::ET).unwrap();
            poller.old = old.then(|| vec![EpollEvent::empty(); EVENTS].into_boxed_slice());
            poller.wait(Nanos::from_millis(1), &mut events);
            assert!(events.is_empty(), "nothing is there");
            rustix::io::write(&far, b"x").unwrap();
            poller.wait(Nanos::from_secs(10), &mut events);
            let seen: Vec<_> = events.iter().map(|event| (event.flags, event.data.u64())).collect();
            assert_eq!(seen, [(EventFlags::IN, 7)]);
            poller.wait(Nanos::ZERO, &mut events);
            assert!(events.is_empty(), "it was reported once");
            rustix::io::read(&near, &mut [0_u8; 8]).unwrap();
        }
    }

    #[test]
    fn milliseconds_are_rounded_up() {
        for (time, whole) in [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2)] {
            assert_eq!(milliseconds(Nanos(time)), EpollTimeout::from(whole as u16), "{time} ns");
        }
    }
}
