//! A socket that app and server send statsd to: bound to this machine's loopback, read without waiting for anybody.
//!
//! What a packet says is not known here (`export::statsd`). What stays true: only this machine can send to it, and what the kernel had to
//! drop because nobody read is known where the kernel says it.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::RecvFlags;

/// Longer than any packet.
const LONGEST: usize = 65_536;

/// A socket for statsd.
#[derive(Debug)]
pub struct StatsdSocket {
    socket: UdpSocket,
    address: SocketAddr,
}

impl StatsdSocket {
    /// Binds it. Port 0 is whichever is free.
    ///
    /// # Errors
    /// Where the address is taken, or is none of this machine's loopback.
    pub fn bind(address: SocketAddr) -> io::Result<StatsdSocket> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no address of this machine's loopback"));
        }
        let socket = UdpSocket::bind(address)?;
        // As much as an unprivileged process is given: a burst of a busy app.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        let address = socket.local_addr()?;
        Ok(StatsdSocket { socket, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A buffer that any packet fits into.
    pub fn buffer() -> Vec<u8> {
        vec![0; LONGEST]
    }

    /// The next packet; `None` where none came for `patience`. Without patience: what the kernel has now.
    pub fn receive<'b>(&self, buffer: &'b mut [u8], patience: Duration) -> Option<&'b [u8]> {
        let length = if patience == Duration::ZERO {
            let (_, length) = rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT).ok()?;
            length
        } else {
            self.socket.set_read_timeout(Some(patience)).ok()?;
            self.socket.recv(buffer).ok()?
        };
        buffer.get(..length)
    }

    /// Packets that the kernel has dropped because too many were not read; `None` where it does not say.
    pub fn dropped(&self) -> Option<u64> {
        let table = if self.address.is_ipv6() { "/proc/net/udp6" } else { "/proc/net/udp" };
        drops(&fs::read_to_string(table).ok()?, self.address.port())
    }
}

/// The last column of the socket of that port (proc(5), and `udp4_format_sock` in Linux' net/ipv4/udp.c). Several sockets of one port stand for several
/// addresses; then nobody knows which is ours.
fn drops(table: &str, port: u16) -> Option<u64> {
    let port = format!(":{port:04X}");
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(1)?.ends_with(&port).then(|| fields.last())?.map(str::to_owned)
    };
    let mut found = table.lines().skip(1).filter_map(of_line);
    let drops = found.next()?;
    if found.next().is_some() { None } else { drops.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a test that fails waits so long.
    const SOON: Duration = Duration::from_secs(120);

    #[test]
    fn what_is_sent_to_it_is_received_and_what_is_dropped_is_known() {
        let socket = StatsdSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_ne!(socket.address().port(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"a:1|c", socket.address()).unwrap();
        let mut buffer = StatsdSocket::buffer();
        assert_eq!(socket.receive(&mut buffer, SOON), Some(&b"a:1|c"[..]));
        assert_eq!(socket.receive(&mut buffer, Duration::ZERO), None);
        assert_eq!(socket.dropped(), Some(0));
        // More than any buffer of an unprivileged process holds.
        let packet = vec![b'x'; 60_000];
        for _ in 0..500 {
            sender.send_to(&packet, socket.address()).unwrap();
        }
        let mut received = 0;
        while socket.receive(&mut buffer, Duration::ZERO).is_some() {
            received += 1;
        }
        assert_eq!(received + socket.dropped().unwrap(), 500);
        assert!(received < 500);
    }

    #[test]
    fn it_listens_to_this_machine_alone() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            assert!(StatsdSocket::bind(address.parse().unwrap()).is_err(), "{address}");
        }
    }

    #[test]
    fn drops_are_those_of_the_port_where_it_is_one_socket() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            \x20  1: 0100007F:1FBD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 7 2 0000 12\n\
            \x20  2: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 8 2 0000 3\n";
        assert_eq!((drops(table, 8125), drops(table, 53), drops(table, 54)), (Some(12), Some(3), None));
        let twice = format!("{table}   3: 00000000:1FBD 00000000:0000 07 0:0 00:0 0 0 0 9 2 0000 1\n");
        assert_eq!(drops(&twice, 8125), None);
    }
}
