//! When bytes came, by the kernel's account: a stamp with each receive, and what it is on the lane's clock.
//!
//! The stamp (`SO_TIMESTAMPNS`) is taken in the softirq that brings a segment in, so neither a late wake-up of the lane nor
//! its being preempted is in it. It is that of the last segment that a receive touched, and segments that wait together for a
//! reader take the stamp of the latest: with one request out on a connection, the arrival of the last byte read
//! (Documentation/networking/timestamping.rst; `tcp_try_coalesce`, `net/ipv4/tcp_input.c`). Its clock is the wall clock, which
//! runs as fast as the monotonic one but may be set: [`WallClock`] finds that out.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};

use model::{Clock, Nanos};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{MsgFlags, recvmsg, setsockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::lead::ClockOffset;

/// Receives together with stamps.
#[derive(Debug)]
pub(crate) struct ArrivalStamps {
    control: TimestampMessage,
    last: Option<Nanos>,
    /// Keeps the kernel stamping between two connections: it starts a moment after the first socket asks
    /// (`net_enable_timestamp`, net/core/dev.c).
    _keeper: std::os::fd::OwnedFd,
}

impl ArrivalStamps {
    /// Has the kernel begin to stamp.
    ///
    /// # Errors
    /// Where it does not know such stamps.
    pub(crate) fn new() -> Result<ArrivalStamps, Errno> {
        let keeper = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        ask(&keeper)?;
        Ok(ArrivalStamps { control: TimestampMessage::default(), last: None, _keeper: keeper })
    }

    /// Receives into `buffer`, 0 at the end of the stream, and keeps the stamp.
    ///
    /// # Errors
    /// As recv(2).
    #[inline]
    pub(crate) fn receive(&mut self, fd: &impl AsRawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.control.forget();
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(fd.as_raw_fd(), &mut parts, Some(&mut self.control.0), MsgFlags::empty());
        let received = message.map(|message| message.bytes).map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        self.last = self.control.stamp();
        Ok(received)
    }

    /// The stamp of what was received last, by the wall clock.
    pub(crate) fn last(&self) -> Option<Nanos> {
        self.last
    }
}

/// The control message beside what is received: a `struct cmsghdr` of a length, a level and a type, then the time, a `struct timespec`
/// (cmsg(3); of 64-bit kernels, so that no other stamp is read elsewhere). Read here and not by a walk over messages: there is one at most.
#[derive(Debug, Default)]
struct TimestampMessage([u8; CONTROL]);

const HEADER: usize = 16;
const CONTROL: usize = HEADER + 16;
/// Level and type of the stamp: `SOL_SOCKET`, `SCM_TIMESTAMPNS` (asm-generic/socket.h).
const KIND: [i32; 2] = [1, 35];

impl TimestampMessage {
    /// Makes sure that what is read after a receive is of this receive.
    #[inline]
    fn forget(&mut self) {
        self.0[..8].fill(0);
    }

    #[inline]
    fn stamp(&self) -> Option<Nanos> {
        let word = |at: usize| u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"));
        let kind = |at: usize| i32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"));
        let is_stamp = word(0) == CONTROL as u64 && [kind(8), kind(12)] == KIND;
        (is_stamp && cfg!(target_pointer_width = "64")).then(|| Nanos(word(HEADER) * 1_000_000_000 + word(HEADER + 8)))
    }
}

/// Asks for a stamp with each receive on `fd`.
///
/// # Errors
/// Where the kernel does not know such stamps.
pub(crate) fn ask(fd: &impl AsFd) -> Result<(), Errno> {
    setsockopt(fd, ReceiveTimestampns, &true).map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Whether the kernel takes the request for stamps. (Whether they come is seen in the run, and said.)
pub fn can_stamp() -> bool {
    ArrivalStamps::new().is_ok()
}

/// How often the two clocks are compared at the start and later: the best comparison counts.
const AT_FIRST: u32 = 32;
const LATER: u32 = 8;
/// How often they are compared.
const BETWEEN: Nanos = Nanos::from_secs(1);
/// Clocks this much further apart than before: the wall clock was set.
const STEP: u64 = 20_000;

/// The wall clock as seen from the lane's clock. The two run at the same speed (`timekeeping.c` slews both alike), so
/// their distance changes only when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    lead: ClockOffset,
    next_look: Nanos,
    steps: u32,
}

impl WallClock {
    /// Compares the two clocks.
    pub(crate) fn new<C: Clock>(clock: &C) -> WallClock {
        WallClock { lead: ClockOffset::now(clock, C::wall, AT_FIRST), next_look: clock.now() + BETWEEN, steps: 0 }
    }

    /// Compares them again, once a second.
    #[inline]
    pub(crate) fn look<C: Clock>(&mut self, clock: &C, now: Nanos) {
        if now >= self.next_look {
            self.look_now(clock);
            self.next_look = now + BETWEEN;
        }
    }

    /// Compares them again: whether the wall clock was set in between.
    #[cold]
    pub(crate) fn look_now<C: Clock>(&mut self, clock: &C) {
        let lead = ClockOffset::now(clock, C::wall, LATER);
        if lead.nanos.abs_diff(self.lead.nanos) > STEP + lead.within + self.lead.within {
            self.steps += 1;
            self.lead = lead;
        }
    }

    /// How often the wall clock was found to have been set.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// A stamp on the lane's clock.
    #[inline]
    pub(crate) fn map(&self, stamp: Nanos) -> Nanos {
        self.lead.here(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::clock::Stepped;

    #[test]
    fn a_stamp_is_the_instant_of_its_arrival() {
        let clock = Stepped::at(Nanos::from_secs(5));
        let wall = WallClock::new(&clock);
        let stamp = clock.wall();
        clock.advance(Nanos::from_millis(3));
        assert_eq!(wall.map(stamp), Nanos::from_secs(5));
    }

    #[test]
    fn the_stamp_is_the_one_that_a_walk_over_the_messages_finds() {
        use nix::sys::socket::ControlMessageOwned;
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let _stamps = ArrivalStamps::new().unwrap();
        ask(&receiver).unwrap();
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        let (mut control, mut buffer) = (TimestampMessage::default(), [0_u8; 8]);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let walked = {
            let message =
                recvmsg::<()>(receiver.as_raw_fd(), &mut parts, Some(&mut control.0), MsgFlags::empty()).unwrap();
            message.cmsgs().unwrap().find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(time) => Some((time.tv_sec(), time.tv_nsec())),
                _ => None,
            })
        };
        let (seconds, nanos) = walked.expect("a stamp");
        assert_eq!(control.stamp(), Some(Nanos(seconds.cast_unsigned() * 1_000_000_000 + nanos.cast_unsigned())));
        control.forget();
        assert_eq!(control.stamp(), None);
    }

    #[test]
    fn a_clock_that_is_set_is_found_out_and_one_that_is_not_is_not() {
        let clock = Stepped::default();
        let mut wall = WallClock::new(&clock);
        for second in 1..=5 {
            clock.set(Nanos::from_secs(second));
            wall.look(&clock, clock.now());
        }
        assert_eq!(wall.steps(), 0);
        for by in [1_000_000, -3_600_000_000_000] {
            clock.set_wall(by);
            clock.advance(BETWEEN);
            wall.look(&clock, clock.now());
        }
        assert_eq!(wall.steps(), 2);
        assert_eq!(wall.map(clock.wall()), clock.now());
    }
}
