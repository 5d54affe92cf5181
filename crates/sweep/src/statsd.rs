//! Receives what app and server send over statsd during a run, in a thread of its own that shares
//! nothing with the lanes. `export::statsd` parses the packets.
//!
//! Only this machine can send to the socket. Packets that the kernel dropped are counted, if it
//! tells. Between runs nobody reads: packets from then are taken before the next run begins
//! ([`StatsdListener::catch_up`]) and don't count for it.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::RunProgress;
use export::statsd::StatsdCollector;
use model::{Clock, Nanos, StatsdReport};
use probe::processes::this_threads_cpu;
use rustix::net::RecvFlags;

/// Longer than any packet.
const LONGEST: usize = 65_536;
/// How soon the listener notices the end of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The most packets to take after the run, so that a sender that never stops cannot hold us up. The
/// kernel's buffer of twice 4 MiB holds fewer, as each takes at least 256 bytes (`SKB_TRUESIZE` in
/// Linux' include/linux/skbuff.h).
const REST: u32 = (8 << 20) / 256;

/// A socket for statsd, and what came so far.
#[derive(Debug)]
pub struct StatsdListener {
    socket: UdpSocket,
    address: SocketAddr,
    collector: StatsdCollector,
}

impl StatsdListener {
    /// Listens on a loopback address. Port 0 is any free port.
    ///
    /// # Errors
    /// If the address is taken, or not a loopback address.
    pub fn bind(address: SocketAddr) -> io::Result<StatsdListener> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a loopback address",
            ));
        }
        let socket = UdpSocket::bind(address)?;
        // For bursts of a busy app; as much as an unprivileged process may have.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        let address = socket.local_addr()?;
        Ok(StatsdListener { socket, address, collector: StatsdCollector::default() })
    }

    /// Where app and server send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Packets that the kernel dropped because its buffer was full; `None` if it does not tell.
    fn dropped(&self) -> Option<u64> {
        let table = if self.address.is_ipv6() { "/proc/net/udp6" } else { "/proc/net/udp" };
        drops(&fs::read_to_string(table).ok()?, self.address.port())
    }

    /// Takes what came before the next run. Called before it begins, because the receiving thread
    /// may not get a CPU soon enough.
    pub(crate) fn catch_up(&mut self) {
        let mut buffer = vec![0; LONGEST];
        for _ in 0..REST {
            let Some(packet) = receive(&self.socket, &mut buffer, Duration::ZERO) else { return };
            self.collector.packet(false, packet);
        }
    }

    /// Receives until `over` is raised. The measured window begins `warm_up` after the start in
    /// `progress`.
    pub(crate) fn listen_until(
        &mut self,
        clock: &impl Clock,
        progress: &RunProgress,
        warm_up: Nanos,
        over: &AtomicBool,
    ) -> StatsdReport {
        let begun_with = this_threads_cpu();
        let mut buffer = vec![0; LONGEST];
        let mut dropped_before = None;
        let mut rest = REST;
        loop {
            // Read before a packet is received, so that no packet of the run is left behind.
            let is_over = over.load(Ordering::Relaxed);
            let packet = receive(
                &self.socket,
                &mut buffer,
                if is_over { Duration::ZERO } else { POLL_INTERVAL },
            );
            let is_in_window = is_in_window(clock.now(), progress.start(), warm_up);
            if is_in_window && dropped_before.is_none() {
                dropped_before = self.dropped();
            }
            match packet {
                Some(packet) => self.collector.packet(is_in_window, packet),
                None if is_over => break,
                None => {}
            }
            rest -= u32::from(is_over);
            if rest == 0 {
                break;
            }
        }
        let mut report = self.collector.take();
        report.dropped_by_kernel =
            self.dropped().zip(dropped_before).map(|(after, before)| after.saturating_sub(before));
        report.cpu = this_threads_cpu().saturating_sub(begun_with);
        report
    }
}

/// Whether the run has begun, and its warm-up is over.
fn is_in_window(now: Nanos, start: Nanos, warm_up: Nanos) -> bool {
    start > Nanos::ZERO && now >= start + warm_up
}

/// The next packet; `None` if none came within `patience`.
fn receive<'b>(socket: &UdpSocket, buffer: &'b mut [u8], patience: Duration) -> Option<&'b [u8]> {
    let length = if patience == Duration::ZERO {
        let (_, length) = rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT).ok()?;
        length
    } else {
        socket.set_read_timeout(Some(patience)).ok()?;
        socket.recv(buffer).ok()?
    };
    buffer.get(..length)
}

/// Drops of the socket with this port: the last column (proc(5), and `udp4_format_sock` in Linux'
/// net/ipv4/udp.c). `None` if several sockets have the port, on several addresses.
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
    use testkit::clock::Stepped;

    /// A clock that goes on by a minute whenever it is read.
    struct Slow(Stepped);

    impl Clock for Slow {
        fn now(&self) -> Nanos {
            self.0.advance(Nanos::from_secs(60));
            self.0.now()
        }

        fn wall(&self) -> Nanos {
            self.0.wall()
        }

        fn sleep(&self, duration: Nanos) {
            self.0.advance(duration);
        }
    }

    fn listener() -> StatsdListener {
        StatsdListener::bind("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    #[test]
    fn the_window_begins_when_the_warm_up_is_over() {
        let ms = Nanos::from_millis;
        assert!(
            is_in_window(ms(900), ms(400), ms(500)) && !is_in_window(ms(899), ms(400), ms(500)),
            "warm-up"
        );
        assert!(!is_in_window(ms(899), Nanos::ZERO, Nanos::ZERO), "the run has not begun");
    }

    #[test]
    fn what_the_kernel_has_when_a_run_is_over_is_taken_however_slow_we_are() {
        let mut listener = listener();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(b"a:1|c", listener.address()).unwrap();
        }
        // A minute goes by between two packets.
        let clock = Slow(Stepped::at(Nanos::from_secs(1)));
        let report = listener.listen_until(
            &clock,
            &RunProgress::new(1),
            Nanos::ZERO,
            &AtomicBool::new(true),
        );
        assert_eq!(
            (report.before, report.packets),
            (100, 0),
            "all, and of before, as no run has begun"
        );
    }

    #[test]
    fn packets_that_came_between_runs_do_not_count_for_the_next_one() {
        let mut listener = listener();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"a:1|c\nb:2|g", listener.address()).unwrap();
        listener.catch_up();
        assert!(
            receive(&listener.socket, &mut vec![0; LONGEST], Duration::ZERO).is_none(),
            "it was taken"
        );
        for packet in ["a:1|c\nb:2|g", "no statsd"] {
            sender.send_to(packet.as_bytes(), listener.address()).unwrap();
        }
        let over = AtomicBool::new(true);
        let report = listener.listen_until(
            &testkit::clock::REAL_CLOCK,
            &RunProgress::new(1),
            Nanos::ZERO,
            &over,
        );
        assert_eq!(
            (report.before, report.packets, report.lines, report.series.len()),
            (5, 0, 0, 0)
        );
    }

    /// Only a test that fails waits so long.
    const SOON: Duration = Duration::from_secs(120);

    #[test]
    fn what_is_sent_to_it_is_received_and_what_is_dropped_is_known() {
        let listener = listener();
        assert_ne!(listener.address().port(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"a:1|c", listener.address()).unwrap();
        let mut buffer = vec![0; LONGEST];
        assert_eq!(receive(&listener.socket, &mut buffer, SOON), Some(&b"a:1|c"[..]));
        assert_eq!(receive(&listener.socket, &mut buffer, Duration::ZERO), None);
        assert_eq!(listener.dropped(), Some(0));
        // More than any buffer of an unprivileged process holds.
        let packet = vec![b'x'; 60_000];
        for _ in 0..500 {
            sender.send_to(&packet, listener.address()).unwrap();
        }
        let mut received = 0;
        while receive(&listener.socket, &mut buffer, Duration::ZERO).is_some() {
            received += 1;
        }
        assert_eq!(received + listener.dropped().unwrap(), 500);
        assert!(received < 500);
    }

    #[test]
    fn it_listens_to_this_machine_alone() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            assert!(StatsdListener::bind(address.parse().unwrap()).is_err(), "{address}");
        }
    }

    #[test]
    fn drops_are_those_of_the_port_where_it_is_one_socket() {
        let table = include_str!("proc_net_udp.txt");
        assert_eq!(
            (drops(table, 8125), drops(table, 53), drops(table, 54)),
            (Some(12), Some(3), None)
        );
        let twice =
            format!("{table}   3: 00000000:1FBD 00000000:0000 07 0:0 00:0 0 0 0 9 2 0000 1\n");
        assert_eq!(drops(&twice, 8125), None);
    }
}
