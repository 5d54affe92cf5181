//! Connects to a server on another machine once a second. How long that takes is all of its state
//! that can be seen from here.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use engine::{Endpoint, Unreachable, reach};
use model::{Clock, Nanos};
use probe::sampler::Observation;

/// The longest that one connect may take: the first segment is sent again after 1 and after 3 s.
const LONGEST_CONNECT: Duration = Duration::from_secs(4);
/// How often a waiting connect checks whether the watch is over.
const CHECK_PERIOD: Duration = Duration::from_millis(20);
/// Another machine is connected to no more often than this.
const CONNECT_PERIOD: Nanos = Nanos::from_secs(1);

/// Connects once a period and closes at once, until the watch is `over` or `tell` returns false
/// because nobody listens any more.
pub(crate) fn connect_repeatedly(
    to: SocketAddr,
    clock: &impl Clock,
    every: Nanos,
    over: &AtomicBool,
    tell: impl Fn(Observation) -> bool,
) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let began = clock.now();
        let Some(connected) = reach_unless_over(to, over) else { return };
        let at = clock.now();
        let took = connected.map(|()| at - began).map_err(|unreachable| unreachable.to_string());
        if !tell(Observation::Connected { at, took }) {
            return;
        }
        next = (next + every.max(CONNECT_PERIOD)).max(at);
    }
}

/// Connects as [`reach`] does. Returns `None` if the watch is over before the other machine has
/// answered; the thread that waits for the answer is left behind then.
fn reach_unless_over(to: SocketAddr, over: &AtomicBool) -> Option<Result<(), Unreachable>> {
    let (sender, receiver) = channel();
    let connect = move || _ = sender.send(reach(&Endpoint::Tcp(to), LONGEST_CONNECT));
    std::thread::Builder::new().name("connect".to_owned()).spawn(connect).ok()?;
    loop {
        match receiver.recv_timeout(CHECK_PERIOD) {
            Ok(connected) => return Some(connected),
            Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}
