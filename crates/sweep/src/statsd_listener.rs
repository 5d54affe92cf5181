//! Listens to what app and server send over statsd while a run goes on, from a thread of its own. Lanes share nothing with it but the machine.
//!
//! Between runs nobody reads the socket: what came then is taken before the run begins ([`StatsdListener::catch_up`]), and counted as of before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::RunProgress;
use export::statsd::StatsdCollector;
use model::{Clock, Nanos, StatsdReport};
use probe::StatsdSocket;
use probe::processes::this_threads_cpu;

/// How soon the end of a run is noticed.
const GLANCE: Duration = Duration::from_millis(20);
/// When the run is over, so many packets are still taken at the most: a sender that never stops would keep us for ever. The kernel holds
/// fewer: each takes 256 bytes at the least of a buffer of twice 4 MiB (`SKB_TRUESIZE` in Linux' include/linux/skbuff.h).
const REST: u32 = (8 << 20) / 256;

/// A socket for statsd, and what came of it so far.
#[derive(Debug)]
pub struct StatsdListener {
    socket: StatsdSocket,
    collector: StatsdCollector,
}

impl StatsdListener {
    /// Listens at `socket`.
    pub fn at(socket: StatsdSocket) -> StatsdListener {
        StatsdListener { socket, collector: StatsdCollector::default() }
    }

    /// Where app and server find it.
    pub fn address(&self) -> std::net::SocketAddr {
        self.socket.address()
    }

    /// Takes what came until now, as of before the next run. To be called before that is begun: the thread that hears it may get a
    /// processor only when the run is on.
    pub(crate) fn catch_up(&mut self) {
        let mut buffer = StatsdSocket::buffer();
        for _ in 0..REST {
            let Some(packet) = self.socket.receive(&mut buffer, Duration::ZERO) else { return };
            self.collector.packet(None, packet);
        }
    }

    /// Hears until `over`. The window begins `warm_up` after the start that `progress` tells.
    pub(crate) fn listen_until(
        &mut self,
        clock: &impl Clock,
        progress: &RunProgress,
        warm_up: Nanos,
        over: &AtomicBool,
    ) -> StatsdReport {
        let begun_with = this_threads_cpu();
        let mut buffer = StatsdSocket::buffer();
        let (mut dropped_before, mut rest) = (None, REST);
        loop {
            // Asked before the packet is taken: what the kernel has when the run is over is still taken.
            let is_over = over.load(Ordering::Relaxed);
            let packet = self.socket.receive(&mut buffer, if is_over { Duration::ZERO } else { GLANCE });
            let at = since_window(clock.now(), progress.start(), warm_up);
            if at.is_some() && dropped_before.is_none() {
                dropped_before = self.socket.dropped();
            }
            match packet {
                Some(packet) => self.collector.packet(at, packet),
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
            self.socket.dropped().zip(dropped_before).map(|(after, before)| after.saturating_sub(before));
        report.cpu = this_threads_cpu().saturating_sub(begun_with);
        report
    }
}

/// The instant on the run's axis; `None` before its window.
fn since_window(now: Nanos, start: Nanos, warm_up: Nanos) -> Option<Nanos> {
    if start == Nanos::ZERO { None } else { now.0.checked_sub((start + warm_up).0).map(Nanos) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::clock::Stepped;

    /// A clock that goes on by a minute whenever it is looked at.
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

    #[test]
    fn the_axis_begins_with_the_window() {
        let ms = Nanos::from_millis;
        assert_eq!(since_window(ms(900), ms(400), ms(500)), Some(Nanos::ZERO));
        assert_eq!(since_window(ms(950), ms(400), ms(500)), Some(ms(50)));
        assert_eq!(since_window(ms(899), ms(400), ms(500)), None, "warm-up");
        assert_eq!(since_window(ms(899), Nanos::ZERO, Nanos::ZERO), None, "the run has not begun");
    }

    #[test]
    fn what_the_kernel_has_when_a_run_is_over_is_taken_however_slow_we_are() {
        let mut listener = StatsdListener::at(StatsdSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap());
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(b"a:1|c", listener.address()).unwrap();
        }
        // A minute goes by between two packets.
        let clock = Slow(Stepped::at(Nanos::from_secs(1)));
        let report = listener.listen_until(&clock, &RunProgress::new(1), Nanos::ZERO, &AtomicBool::new(true));
        assert_eq!((report.before, report.packets), (100, 0), "all, and of before, as no run has begun");
    }

    #[test]
    fn what_was_taken_before_a_run_stays_of_before() {
        let mut listener = StatsdListener::at(StatsdSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap());
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"a:1|c\nb:2|g", listener.address()).unwrap();
        listener.catch_up();
        let taken = listener.socket.receive(&mut StatsdSocket::buffer(), Duration::ZERO).is_none();
        let report =
            listener.listen_until(&testkit::clock::Steady, &RunProgress::new(1), Nanos::ZERO, &AtomicBool::new(true));
        assert_eq!((taken, report.before, report.packets), (true, 2, 0));
    }

    #[test]
    fn what_came_while_nobody_listened_is_of_before() {
        let socket = StatsdSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut listener = StatsdListener::at(socket);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for packet in ["a:1|c\nb:2|g", "no statsd"] {
            sender.send_to(packet.as_bytes(), listener.address()).unwrap();
        }
        let over = AtomicBool::new(true);
        let report = listener.listen_until(&testkit::clock::Steady, &RunProgress::new(1), Nanos::ZERO, &over);
        assert_eq!((report.before, report.packets, report.lines, report.series.len()), (3, 0, 0, 0));
    }
}
