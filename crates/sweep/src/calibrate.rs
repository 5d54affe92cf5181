//! The generator's own limit: the same engine, lanes, connections, transport and bytes against the built-in server with no
//! delay, on this machine. What a run cannot exceed, and what is the generator's and not the server's when it comes near.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::{Endpoint, Progress, Shape, Transport, drive, fetch};
use launch::puma::{Addresses, free_address};
use launch::{GuardCommand, Server, Spec};
use model::{Ceiling, Clock, Nanos, Order, Pace, Request, Socket};

use crate::error::SweepError;

/// Load before the measurement.
const WARM_UP: Nanos = Nanos::from_millis(100);
/// The measurement itself: tens of thousands of requests.
const LENGTH: Nanos = Nanos::from_millis(300);
/// Longest wait for the built-in server.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// So many slots that nobody waits for one.
const SLOTS: u32 = 1_000_000;

/// Remembers ceilings, so that they are measured once a day.
pub trait Ceilings: Sync {
    /// What is remembered of these settings.
    fn known(&self, settings: &str) -> Option<Ceiling>;

    /// Remembers it.
    fn remember(&self, settings: &str, ceiling: &Ceiling);
}

/// What is needed to start the built-in server.
pub struct Workshop<'a, C> {
    /// The clock.
    pub clock: &'a C,
    /// The command that runs the guard of a server.
    pub guard: &'a GuardCommand,
    /// The command that runs the built-in server.
    pub builtin: &'a [OsString],
    /// The directory that it runs in.
    pub dir: &'a Path,
    /// Set when the user wants to end.
    pub interrupt: &'a AtomicBool,
}

/// The ceilings of `shapes`, in order; `None` where one cannot be measured: another transport than TCP, or interrupted.
///
/// # Errors
/// Where the built-in server cannot be started.
pub fn ceilings<C: Clock + Clone + Send>(
    shapes: &[&Shape],
    cache: &dyn Ceilings,
    shop: &Workshop<'_, C>,
) -> Result<Vec<Option<Ceiling>>, SweepError> {
    let mut server: Option<(Server, Transport)> = None;
    let mut all = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let Some(key) = settings(shape) else {
            all.push(None);
            continue;
        };
        if let Some(known) = cache.known(&key) {
            all.push(Some(known));
            continue;
        }
        if server.is_none() {
            server = Some(start(shape, shop)?);
        }
        let Some((_, transport)) = &server else { continue };
        let ceiling = measure(shape, transport, shop)?;
        if let Some(ceiling) = &ceiling {
            cache.remember(&key, ceiling);
        }
        all.push(ceiling);
    }
    if let Some((server, _)) = server {
        server.stop(Nanos::from_secs(5), shop.clock);
    }
    Ok(all)
}

/// What the ceiling depends on, but for the machine; `None` where it cannot be measured.
fn settings(shape: &Shape) -> Option<String> {
    let family = match (&shape.transport.tls, shape.transport.endpoints.first()?) {
        (None, Endpoint::Tcp(address)) => {
            if address.is_ipv4() {
                "tcp4"
            } else {
                "tcp6"
            }
        }
        _ => return None,
    };
    let bytes: usize = shape.requests.iter().map(|request| request.bytes.len()).sum::<usize>() / shape.requests.len();
    Some(format!(
        "{} {family} lanes={} connections={} keep_alive={} request_bytes={bytes} answers_kept={}",
        env!("CARGO_PKG_VERSION"),
        shape.lanes,
        shape.connections,
        shape.keep_alive,
        shape.keep_answers,
    ))
}

fn start<C: Clock + Clone + Send>(shape: &Shape, shop: &Workshop<'_, C>) -> Result<(Server, Transport), SweepError> {
    let is_ipv6 = matches!(shape.transport.endpoints.first(), Some(Endpoint::Tcp(address)) if address.is_ipv6());
    let address = free_address(if is_ipv6 { Socket::Tcp6 } else { Socket::Tcp4 }, &Addresses::default())?;
    let mut argv = shop.builtin.to_vec();
    let flags = [
        format!("--listen={address}"),
        "--workers=1".to_owned(),
        format!("--threads={SLOTS}"),
        "--delay=0s".to_owned(),
        "--worker-header=x-worker-pid".to_owned(),
    ];
    argv.extend(flags.map(OsString::from));
    let server = Server::start(&Spec::command(argv, shop.dir), shop.guard, shop.clock)?;
    let transport = Transport::tcp(address);
    let begun = shop.clock.now();
    while fetch(&transport, &shape.requests[0], "", PATIENCE, shop.clock, shop.interrupt).is_err() {
        if server.exited().is_some() || shop.clock.now() - begun > PATIENCE {
            let how = server.exited().map_or_else(|| "it does not answer".to_owned(), |exit| exit.to_string());
            return Err(SweepError::NoCalibration { how });
        }
        shop.clock.sleep(Nanos::from_millis(10));
    }
    Ok((server, transport))
}

/// The same request, as many bytes, for a path on which the built-in server does not sleep.
fn without_delay(request: &Request) -> Request {
    let mut bytes = request.bytes.to_vec();
    let line = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    if let Some(at) = bytes[..line].windows(7).position(|part| part == b" /sleep") {
        bytes[at + 2] = b'_';
    }
    Request { bytes: bytes.into(), is_head: request.is_head }
}

fn measure<C: Clock + Clone + Send>(
    shape: &Shape,
    transport: &Transport,
    shop: &Workshop<'_, C>,
) -> Result<Option<Ceiling>, SweepError> {
    let alone = Shape {
        transport: transport.clone(),
        requests: shape.requests.iter().map(without_delay).collect(),
        pace: Pace::Closed,
        order: Order::Sequential,
        warm_up: WARM_UP,
        measured: Some(LENGTH),
        requests_total: None,
        requests_per_connection: None,
        think: Nanos::ZERO,
        ..shape.clone()
    };
    let done = drive(&alone, shop.clock, shop.interrupt, &Progress::new(alone.lanes), None)?;
    let tally = &done.tally;
    if done.interrupted || tally.completed_in_window == 0 {
        return Ok(None);
    }
    let cpu: Nanos = done.lanes.iter().map(|lane| lane.cpu).sum();
    Ok(Some(Ceiling {
        rate_per_s: tally.completed_in_window as f64 / done.measured.as_secs_f64(),
        floor_p50: tally.service_time.quantile(0.5).unwrap_or_default(),
        floor_p99: tally.service_time.quantile(0.99).unwrap_or_default(),
        cpu_per_request: Nanos(cpu.0 / tally.all_requests().max(1)),
    }))
}
