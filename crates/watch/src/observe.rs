//! Starts the threads that look at the server, and ends them when the watch is over.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

use engine::{EngineError, RaiseOnDrop, spawn_scoped};
use model::{Nanos, SystemClock};
use probe::sampler::{self, Observation};

use crate::connect::connect_repeatedly;
use crate::{StatisticsSource, WatchTarget};

/// Starts threads that look at the server once a period, runs `follow`, which receives what they
/// see, and ends them. Returns what `follow` returns.
///
/// # Errors
/// If the kernel does not start a thread.
pub fn observe<T>(
    target: &WatchTarget,
    statistics: Option<&StatisticsSource>,
    every: Nanos,
    clock: SystemClock,
    follow: impl FnOnce(&Receiver<Observation>) -> T,
) -> Result<T, EngineError> {
    let over = AtomicBool::new(false);
    let over = &over;
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        // However this scope is left, its threads end too.
        let _ending = RaiseOnDrop(over);
        // The send fails once `follow` has returned.
        let tell = move |seen: Observation| sender.send(seen).is_ok();
        if let Some(StatisticsSource { control, .. }) = statistics {
            let tell = tell.clone();
            let poll = move || sampler::poll(control, &clock, every, over, tell);
            spawn_scoped(scope, "statistics", poll)?;
        }
        let sample = move || match target.elsewhere {
            Some(address) => connect_repeatedly(address, &clock, every, over, tell),
            None => target.sampler(every).run(&clock, over, tell),
        };
        spawn_scoped(scope, "sampler", sample)?;
        Ok(follow(&receiver))
    })
}
