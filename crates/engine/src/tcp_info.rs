//! What the kernel's TCP knows of one connection's path: round trip and retransmissions (`TCP_INFO`, tcp(7)).
//!
//! Only what this end sends again is known here. A lost answer is the server's to send again, and shows as time alone, unless our
//! request was not acknowledged before it and is sent again too.

#![expect(unsafe_code, reason = "neither rustix nor nix has TCP_INFO; one getsockopt into a buffer of our own")]

use std::os::fd::{AsFd, AsRawFd};

use model::Nanos;
use nix::libc;

/// What the kernel tells of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments that were sent again since the connection was opened, its first (SYN) included.
    pub retransmitted: u32,
    /// The shortest round trip that was seen (of the last 5 minutes); zero where none was.
    pub shortest_round_trip: Nanos,
}

/// Offsets in `struct tcp_info` (`include/uapi/linux/tcp.h`), which only ever grows at its end.
const TOTAL_RETRANS: usize = 100;
/// In microseconds; since Linux 4.6.
const MIN_RTT: usize = 148;
/// As far as we read.
const BYTES: usize = MIN_RTT + 4;

impl TcpInfo {
    /// Of this socket; `None` where it is no TCP socket, or the kernel is older.
    pub(crate) fn of(socket: impl AsFd) -> Option<TcpInfo> {
        let mut bytes = [0u8; BYTES];
        let mut length = BYTES as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `fd` is open as long as `socket` is borrowed, and the kernel writes `length` bytes at most to `bytes`.
        let done = unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        if done != 0 || (length as usize) < BYTES {
            return None;
        }
        let field = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        // The kernel's word for "none yet" is the largest number.
        let round_trip = Some(field(MIN_RTT)).filter(|micros| *micros != u32::MAX).unwrap_or(0);
        Some(TcpInfo {
            retransmitted: field(TOTAL_RETRANS),
            shortest_round_trip: Nanos::from_micros(u64::from(round_trip)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_over_loopback_has_a_round_trip_and_loses_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::of(&stream).unwrap();
        assert!(info.retransmitted == 0 && info.shortest_round_trip > Nanos::ZERO, "{info:?}");
        assert!(info.shortest_round_trip < Nanos::from_secs(10), "{info:?}");
        assert_eq!(TcpInfo::of(std::fs::File::open("/dev/null").unwrap()), None);
    }
}
