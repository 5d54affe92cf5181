//! Many connections are opened before the first request is due. Opening them takes as long as a short run, and a burst of connects
//! overflows the server's accept queue: both would be measured in place of the server.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock, Nanos};

use crate::connection::ConnectionState;
use crate::load_spec::{LaneShare, LoadSpec};
use crate::progress::LaneProgress;
use crate::wire::ConnectionDriver;

/// Fewer connections take milliseconds, and their first requests tell what a connect costs.
const MANY: u32 = 1000;
/// Connects under way at a time, in all lanes: fewer than servers' accept queues hold (nginx's 511, Puma's 1024).
const AT_ONCE: u32 = 256;
/// A server that takes no further connection for so long is loaded with those that it has taken. The others are opened when their first
/// request is due, and what becomes of that is counted.
const LONGEST_STALL: Nanos = Nanos::from_secs(2);
/// How late an interruption may be noticed.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);

/// Whether connections are opened before the run: a closed loop of many, kept alive, that all get a request.
pub(crate) fn is_wanted(spec: &LoadSpec) -> bool {
    let all_are_used = spec.requests_total.is_none_or(|total| total >= u64::from(spec.connections));
    let is_plain = spec.transport.tls.is_none() && !spec.traces;
    spec.connections >= MANY && !spec.pace.is_open() && spec.keep_alive && all_are_used && is_plain
}

/// Opens a lane's connections, a few at a time; tells which of them are open.
pub(crate) fn preconnect(
    wire: &mut impl ConnectionDriver,
    clock: &impl Clock,
    share: LaneShare,
    interrupt: &AtomicBool,
    progress: &LaneProgress,
) -> Vec<bool> {
    let (slots, at_once) = (share.connections as usize, (AT_ONCE / share.lanes).max(1));
    let mut states = vec![ConnectionState::Closed; slots];
    let (mut next, mut under_way, mut connected) = (0, 0, 0_u64);
    let mut last_news = clock.now();
    let mut events = Vec::with_capacity(1024);
    while next < slots || under_way > 0 {
        while next < slots && under_way < at_once {
            // One that fails at once is tried again when its first request is due.
            if wire.open(next).is_ok() {
                states[next] = ConnectionState::Opening;
                under_way += 1;
            }
            next += 1;
        }
        wire.wait(LONGEST_WAIT, &mut events);
        let now = clock.now();
        for event in &events {
            let slot = event.slot as usize;
            match states[slot] {
                ConnectionState::Opening if event.is_writable() => {
                    under_way -= 1;
                    last_news = now;
                    states[slot] = ConnectionState::Open;
                    connected += 1;
                    if event.is_closing() || !wire.is_connected(slot) {
                        states[slot] = ConnectionState::Closed;
                        wire.close(slot);
                    }
                }
                ConnectionState::Open if event.is_closing() => {
                    states[slot] = ConnectionState::Closed;
                    wire.close(slot);
                }
                _ => {}
            }
        }
        progress.show_connected(connected);
        if interrupt.load(Ordering::Relaxed) || now.saturating_sub(last_news) > LONGEST_STALL {
            break;
        }
    }
    for slot in (0..slots).filter(|slot| states[*slot] == ConnectionState::Opening) {
        wire.close(slot);
    }
    states.into_iter().map(|state| state == ConnectionState::Open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LaneProgress, SocketDriver, Transport};
    use model::Timestamps;
    use std::net::TcpListener;

    #[test]
    fn connections_are_opened_and_one_that_nobody_takes_is_left_to_the_run() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let alive = listener.local_addr().unwrap();
        let transport = Transport::plain(vec![crate::Endpoint::Tcp(alive), crate::Endpoint::Tcp(dead)]);
        let mut wire = SocketDriver::new(&transport, 0, 6, Timestamps::User).unwrap();
        let (interrupt, progress) = (AtomicBool::new(false), LaneProgress::default());
        let share = LaneShare { lane: 0, lanes: 1, first_connection: 0, connections: 6 };
        let open = preconnect(&mut wire, &testkit::clock::REAL_CLOCK, share, &interrupt, &progress);
        assert_eq!(open, [true, false, true, false, true, false]);
        assert_eq!((0..3).map(|_| listener.accept().is_ok()).collect::<Vec<_>>(), [true; 3]);
    }
}
