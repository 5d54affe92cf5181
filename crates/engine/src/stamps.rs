//! When bytes came, by the kernel's account: a stamp with each receive.
//!
//! The stamp (`SO_TIMESTAMPNS`) is taken in the softirq that brings a segment in, so neither a late wake-up of the lane nor
//! its being preempted is in it. It is that of the last segment that a receive touched, and segments that wait together for a
//! reader take the stamp of the latest: with one request out on a connection, the arrival of the last byte read
//! (Documentation/networking/timestamping.rst; `tcp_try_coalesce`, `net/ipv4/tcp_input.c`). Its clock is the wall clock, which
//! runs as fast as the monotonic one but may be set: [`WallClock`](crate::clock_offset::WallClock) finds that out.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};

use model::Nanos;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{MsgFlags, recvmsg, setsockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
