//! When bytes came, as the kernel tells: a stamp with each receive, and its conversion to another
//! clock.
//!
//! The stamp (`SO_TIMESTAMPNS`) is taken in the softirq that brings a segment in, so it includes
//! neither a late wake-up of the lane nor a preemption. A receive returns the stamp of the last
//! segment that it touched, and segments that are merged in the receive queue keep the latest
//! stamp. With one request in flight on a connection, that is when the last byte read arrived
//! (Documentation/networking/timestamping.rst; `tcp_try_coalesce`, `net/ipv4/tcp_input.c`). The
//! stamp is on the wall clock, which runs at the speed of the monotonic one but may be set:
//! [`WallClock`] notices that.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};

use model::{Clock, Nanos};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{MsgFlags, recvmsg, setsockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};

/// Receives together with stamps.
#[derive(Debug)]
pub(crate) struct ArrivalStamps {
    control: TimestampMessage,
    last: Option<Nanos>,
    /// Keeps the kernel stamping between two connections: it starts a moment after the first socket
    /// asks (`net_enable_timestamp`, net/core/dev.c).
    _keeper: std::os::fd::OwnedFd,
}

impl ArrivalStamps {
    /// Makes the kernel start to stamp.
    ///
    /// # Errors
    /// If it does not know such stamps.
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
        let message =
            recvmsg::<()>(fd.as_raw_fd(), &mut parts, Some(&mut self.control.0), MsgFlags::empty());
        let received = message
            .map(|message| message.bytes)
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        self.last = self.control.stamp();
        Ok(received)
    }

    /// The stamp of the last receive, on the wall clock.
    pub(crate) fn last(&self) -> Option<Nanos> {
        self.last
    }
}

/// The control message of a receive: a `struct cmsghdr` of length, level and type, then a `struct
/// timespec` (cmsg(3), on 64-bit kernels). Read as a whole rather than by iterating over messages,
/// because there is at most one.
#[derive(Debug, Default)]
struct TimestampMessage([u8; CONTROL]);

const HEADER: usize = 16;
const CONTROL: usize = HEADER + 16;
/// Level and type of the stamp: `SOL_SOCKET`, `SCM_TIMESTAMPNS` (asm-generic/socket.h).
const STAMP_KIND: [i32; 2] = [1, 35];

impl TimestampMessage {
    /// Clears the stamp, so that a stamp read after a receive belongs to that receive.
    #[inline]
    fn forget(&mut self) {
        self.0[..8].fill(0);
    }

    #[inline]
    fn stamp(&self) -> Option<Nanos> {
        let word =
            |at: usize| u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"));
        let kind =
            |at: usize| i32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"));
        let is_stamp = word(0) == CONTROL as u64 && [kind(8), kind(12)] == STAMP_KIND;
        (is_stamp && cfg!(target_pointer_width = "64"))
            .then(|| Nanos(word(HEADER) * 1_000_000_000 + word(HEADER + 8)))
    }
}

/// Asks for a stamp with each receive on `fd`.
///
/// # Errors
/// If the kernel does not know such stamps.
pub(crate) fn ask(fd: &impl AsFd) -> Result<(), Errno> {
    setsockopt(fd, ReceiveTimestampns, &true)
        .map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Whether the kernel accepts the request for stamps. (Whether any come shows in the run.)
pub fn can_stamp() -> bool {
    ArrivalStamps::new().is_ok()
}

/// One reading of another clock, between two readings of ours. Their origins differ, so either may
/// be ahead: sums wrap (two's complement).
#[derive(Clone, Copy, Debug)]
pub struct ClockExchange {
    /// Our clock before.
    pub asked: Nanos,
    /// What the other clock showed.
    pub there: Nanos,
    /// Our clock after.
    pub answered: Nanos,
}

impl ClockExchange {
    /// How long it took.
    pub fn round_trip(&self) -> Nanos {
        self.answered.saturating_sub(self.asked)
    }

    /// How far our clock is ahead, if the other was read in the middle; at most half a round trip
    /// off.
    pub fn ahead(&self) -> u64 {
        let middle = self.asked.0 + self.round_trip().0 / 2;
        middle.wrapping_sub(self.there.0)
    }

    /// How far the clocks drifted apart until `later`.
    fn drift(&self, later: &ClockExchange) -> u64 {
        self.ahead().wrapping_sub(later.ahead()).cast_signed().unsigned_abs()
    }

    /// The largest error of this, where `later` was the best exchange at the end of the run: half
    /// the longer round trip, plus the drift of the clocks meanwhile.
    pub fn error(&self, later: &ClockExchange) -> Nanos {
        Nanos(self.round_trip().max(later.round_trip()).0.div_ceil(2) + self.drift(later))
    }
}

/// Comparisons the first time, and after it.
const FIRST: u32 = 32;
const LATER: u32 = 8;
/// How often the clocks are compared.
const BETWEEN: Nanos = Nanos::from_secs(1);
/// If the clocks are this much further apart than before, in ns, the wall clock was set.
const STEP: u64 = 20_000;

/// The wall clock as seen from the lane's clock. The two run at the same speed (`timekeeping.c`
/// slews both alike), so their distance changes only when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    best: ClockExchange,
    ahead: u64,
    next_check: Nanos,
    steps: u32,
}

impl WallClock {
    /// Compares the two clocks.
    pub(crate) fn new(clock: &impl Clock) -> WallClock {
        let best = compare(clock, FIRST);
        WallClock { best, ahead: best.ahead(), next_check: clock.now() + BETWEEN, steps: 0 }
    }

    /// Compares them again, once a second.
    #[inline]
    pub(crate) fn check(&mut self, clock: &impl Clock, now: Nanos) {
        if now >= self.next_check {
            self.check_now(clock);
            self.next_check = now + BETWEEN;
        }
    }

    /// Compares them again: whether the wall clock was set in between.
    #[cold]
    pub(crate) fn check_now(&mut self, clock: &impl Clock) {
        let best = compare(clock, LATER);
        if self.best.drift(&best) > STEP + (self.best.round_trip() + best.round_trip()).0 / 2 {
            (self.best, self.ahead) = (best, best.ahead());
            self.steps += 1;
        }
    }

    /// How often the wall clock was found to have been set.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// A stamp on the lane's clock.
    #[inline]
    pub(crate) fn map(&self, stamp: Nanos) -> Nanos {
        Nanos(stamp.0.wrapping_add(self.ahead))
    }
}

/// The quickest of several comparisons with the wall clock.
fn compare(clock: &impl Clock, times: u32) -> ClockExchange {
    let exchanges = (0..times).map(|_| ClockExchange {
        asked: clock.now(),
        there: clock.wall(),
        answered: clock.now(),
    });
    exchanges.min_by_key(ClockExchange::round_trip).expect("they are compared more than once")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_is_the_one_that_a_walk_over_the_messages_finds() {
        use nix::sys::socket::ControlMessageOwned;
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let _stamps = ArrivalStamps::new().unwrap();
        ask(&receiver).unwrap();
        std::net::UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .send_to(b"x", receiver.local_addr().unwrap())
            .unwrap();
        let mut control = TimestampMessage::default();
        let mut buffer = [0_u8; 8];
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let walked = {
            let message = recvmsg::<()>(
                receiver.as_raw_fd(),
                &mut parts,
                Some(&mut control.0),
                MsgFlags::empty(),
            )
            .unwrap();
            message.cmsgs().unwrap().find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(time) => Some((time.tv_sec(), time.tv_nsec())),
                _ => None,
            })
        };
        let (seconds, nanos) = walked.expect("a stamp");
        assert_eq!(
            control.stamp(),
            Some(Nanos(seconds.cast_unsigned() * 1_000_000_000 + nanos.cast_unsigned()))
        );
        control.forget();
        assert_eq!(control.stamp(), None);
    }

    /// Whichever clock is ahead, and however long the round trip: the true distance is within the
    /// stated error.
    #[test]
    fn a_clock_is_known_to_half_a_round_trip() {
        for (here, there) in [(5_000_000, 305_000_000_u64), (305_000_000, 5_000_000), (1 << 40, 7)]
        {
            for (to, back) in [(40_000, 40_000), (0, 90_000), (90_000, 0), (20_000_000, 21_000_000)]
            {
                let asked = Nanos(here);
                let answered = Nanos(here + to + back);
                let exchange = ClockExchange { asked, there: Nanos(there + to), answered };
                let off = exchange
                    .ahead()
                    .wrapping_sub(here.wrapping_sub(there))
                    .cast_signed()
                    .unsigned_abs();
                assert!(off <= exchange.error(&exchange).0, "{here} {there} {to} {back}: {off}");
            }
        }
    }

    #[test]
    fn a_clock_that_runs_away_during_the_run_is_less_well_known() {
        let exchange = |there| ClockExchange {
            asked: Nanos(1000),
            there: Nanos(there),
            answered: Nanos(1100),
        };
        assert_eq!(exchange(500).error(&exchange(500)), Nanos(50));
        assert_eq!(exchange(500).error(&exchange(700)), Nanos(250));
        assert_eq!(exchange(700).error(&exchange(500)), Nanos(250));
    }
}
