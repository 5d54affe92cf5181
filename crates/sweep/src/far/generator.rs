//! A generator that a conductor on another machine controls, over its standard input and output.
//!
//! Its lanes never wait for the pipe: another thread reports progress. When the input ends the
//! conductor is gone, and the caller ends the process.

use std::env;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Endpoint, EngineError, GeneratorPart, LoadSpec, RunProgress, reach, spawn_scoped};
use model::Clock;

use super::part::{LEAD, drive_at};
use super::{ClockShift, FarHost, GREETING, LONGEST_ORDER, Order, Report, receive, send};
use crate::ceiling::ceilings;
use crate::context::Context;

/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// Batches of requests that may wait for the pipe. While so many do, lanes drop and count further
/// ones.
const WAITING: usize = 64;
/// How long a server may take to accept the one connect that asks whether it is there.
const REACHED_WITHIN: Duration = Duration::from_secs(4);

/// What the conductor wants while a run goes on.
#[derive(Default)]
struct PendingOrders {
    /// The run is to end.
    stop: AtomicBool,
    /// The next report of progress is to have a tally.
    tally: AtomicBool,
}

/// Does what is ordered on `input` and reports on `output`, until `input` ends; then calls `gone`,
/// on another thread.
///
/// # Errors
/// If `output` cannot be written to, or a thread cannot be started.
///
/// # Panics
/// If a lane does: our bug.
pub fn serve(
    input: impl Read + Send,
    output: impl Write + Send,
    context: &Context<'_>,
    gone: impl Fn() + Send,
) -> io::Result<()> {
    let output = Mutex::new(output);
    let say =
        |report: &Report| send(&mut *output.lock().unwrap_or_else(PoisonError::into_inner), report);
    let greeting = format!("{GREETING}{}\n", context.version);
    output.lock().unwrap_or_else(PoisonError::into_inner).write_all(greeting.as_bytes())?;
    say(&Report::Host(this_host()))?;
    let pending = PendingOrders::default();
    std::thread::scope(|scope| {
        let (pass_on, orders) = channel();
        let pending = &pending;
        let say = &say;
        let read = move || {
            read_orders(input, context, pending, say, &pass_on);
            gone();
        };
        spawn_scoped(scope, "orders", read).map_err(io::Error::other)?;
        while let Ok(order) = orders.recv() {
            let report = match order {
                Order::Prepare { spec, clock, journal } => {
                    let run = FarRun {
                        context,
                        spec: &spec,
                        shift: clock,
                        journal,
                        pending,
                        orders: &orders,
                    };
                    run.drive(say).unwrap_or_else(Report::Refused)
                }
                Order::Calibrate { spec, response_bytes } => {
                    ceiling(*spec, response_bytes, context)
                }
                Order::Clock | Order::Start(_) | Order::Tally | Order::Stop => continue,
            };
            say(&report)?;
        }
        Ok(())
    })
}

/// Reads orders until `input` ends. What is asked while a run goes on is answered at once, and the
/// rest passed on.
fn read_orders(
    mut input: impl Read,
    context: &Context<'_>,
    pending: &PendingOrders,
    say: &impl Fn(&Report) -> io::Result<()>,
    pass_on: &Sender<Order>,
) {
    while let Ok(Some(order)) = receive(&mut input, LONGEST_ORDER) {
        match order {
            Order::Clock => {
                // If this fails, the conductor is gone and the input ends next.
                let _ = say(&Report::Clock(context.clock.now()));
            }
            Order::Tally => pending.tally.store(true, Ordering::Relaxed),
            order => {
                pending.stop.store(matches!(order, Order::Stop), Ordering::Relaxed);
                let _ = pass_on.send(order);
            }
        }
    }
    pending.stop.store(true, Ordering::Relaxed);
}

/// What this part of a run reaches against a sink on this machine.
fn ceiling(spec: LoadSpec, response_bytes: u64, context: &Context<'_>) -> Report {
    let connections = spec.shares().iter().map(|share| share.connections).sum();
    let alone =
        LoadSpec { part: GeneratorPart::WHOLE, ..spec }.with(|load| load.connections = connections);
    match ceilings(&[alone], response_bytes, None, context) {
        Ok(found) => Report::Ceiling(found.into_iter().flatten().next()),
        Err(error) => Report::Refused(error.to_string()),
    }
}

fn this_host() -> FarHost {
    // "client address, client port, server address, server port" (ssh(1)).
    let connection = env::var("SSH_CONNECTION").unwrap_or_default();
    let conductor = connection.split(' ').next().and_then(|address| address.parse::<IpAddr>().ok());
    FarHost { cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32), conductor }
}

/// One part of a run.
struct FarRun<'a> {
    context: &'a Context<'a>,
    spec: &'a LoadSpec,
    shift: ClockShift,
    journal: bool,
    pending: &'a PendingOrders,
    orders: &'a Receiver<Order>,
}

impl FarRun<'_> {
    fn drive(&self, say: &(impl Fn(&Report) -> io::Result<()> + Sync)) -> Result<Report, String> {
        let FarRun { context, spec, shift, journal, pending, orders } = *self;
        check_target(spec, context)?;
        let clock = context.clock.shifted(shift.ahead, shift.shared_ahead);
        let progress = RunProgress::new(spec.shares().len() as u32);
        let start = || {
            say(&Report::Ready).ok()?;
            let Ok(Order::Start(at)) = orders.recv() else { return None };
            clock.sleep_until(at.saturating_sub(LEAD), &pending.stop);
            Some(at)
        };
        let driven = std::thread::scope(|scope| {
            let (running, runs) = channel::<()>();
            let progress = &progress;
            let tell = say;
            spawn_scoped(scope, "progress", move || tell_progress(progress, pending, &runs, tell))?;
            let mut sender = None;
            if journal {
                let (to_journal, batches) = sync_channel(WAITING);
                spawn_scoped(scope, "journal", move || {
                    batches.into_iter().try_for_each(|batch| tell(&Report::Records(batch)))
                })?;
                sender = Some(to_journal);
            }
            let driven = drive_at(start, spec, &clock, &pending.stop, progress, sender.as_ref());
            drop(running);
            driven
        });
        driven
            .map(|done| Report::Done(Box::new(done)))
            .map_err(|error: EngineError| error.to_string())
    }
}

/// Says how far the run is, until the other end of `runs` is gone.
fn tell_progress(
    progress: &RunProgress,
    pending: &PendingOrders,
    runs: &Receiver<()>,
    say: &impl Fn(&Report) -> io::Result<()>,
) {
    while runs.recv_timeout(PROGRESS_EVERY) == Err(RecvTimeoutError::Timeout) {
        let mut tally = None;
        if pending.tally.load(Ordering::Relaxed) {
            tally = progress.tally().map(Box::new);
        }
        // Stays asked for until there is one.
        pending.tally.fetch_and(tally.is_none(), Ordering::Relaxed);
        let ended = progress.ended();
        let connected = progress.connected();
        let _ = say(&Report::Progress { ended, connected, tally });
    }
}

/// Refuses what may not be loaded from here, or cannot be reached.
fn check_target(spec: &LoadSpec, context: &Context<'_>) -> Result<(), String> {
    for endpoint in &spec.transport.endpoints {
        if let Endpoint::Tcp(address) = endpoint {
            context
                .resolver
                .check(&address.ip().to_string(), address.ip())
                .map_err(|error| error.to_string())?;
        }
        reach(endpoint, REACHED_WITHIN)
            .map_err(|reason| format!("seen from there, {endpoint} {reason}"))?;
    }
    spec.transport.check().map_err(|error| error.to_string())
}
