//! Measures the generator's ceiling: the rate that the same engine, lanes, connections, transport
//! and bytes reach on this machine against the sink, which answers at once. No run can exceed it,
//! and a run that comes near it measured the generator.

use std::ffi::OsString;

use engine::{Endpoint, LoadSpec, RunProgress, TlsOptions, TlsSettings, Transport, drive, fetch};
use launch::{Addresses, GuardCommand, LaunchSpec, Server, free_address};
use model::{Ceiling, Clock, LoadSettings, Nanos, Pace, Placement, Request, Socket, SystemClock};

use crate::context::{Context, SweepError};

/// Load that is not measured yet.
const WARM_UP: Nanos = Nanos::from_millis(100);
/// How long the ceiling is measured: tens of thousands of requests.
const LENGTH: Nanos = Nanos::from_millis(300);
/// Longest wait for the built-in server.
const LONGEST_WAIT: Nanos = Nanos::from_secs(30);

/// The ceilings of `shapes`, which differ in connections only, in order, with responses of about
/// `answer_bytes`; `None` if one cannot be measured, for instance because the user interrupted. If
/// `placement` keeps the lanes off the CPUs of the server that will be measured, the sink runs on
/// the server's CPUs.
///
/// # Errors
/// If the built-in server cannot be started.
pub(crate) fn ceilings(
    shapes: &[LoadSpec],
    answer_bytes: u64,
    placement: Option<&Placement>,
    context: &Context<'_>,
) -> Result<Vec<Option<Ceiling>>, SweepError> {
    if let Some(far) = context.far {
        return Ok(far.ceilings(shapes, answer_bytes)?);
    }
    let answer_bytes = body_of(answer_bytes);
    let mut sink: Option<(Server, Transport)> = None;
    let mut all = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let Some(key) = settings(shape, answer_bytes, placement) else {
            all.push(None);
            continue;
        };
        if let Some(known) = context.ceilings.known(&key) {
            all.push(Some(known));
            continue;
        }
        let transport = match &sink {
            Some((_, transport)) => transport,
            None => &sink.insert(start_sink_for(shape, answer_bytes, placement, context)?).1,
        };
        let ceiling = measure(shape, transport, context)?;
        if let Some(ceiling) = &ceiling {
            context.ceilings.remember(&key, ceiling);
        }
        all.push(ceiling);
    }
    if let Some((server, _)) = sink {
        server.stop(Nanos::from_secs(5), &context.clock);
    }
    Ok(all)
}

/// The sink's body for responses of about this size. It grows in steps of at most an eighth, so
/// that remembered ceilings fit more often.
fn body_of(answer_bytes: u64) -> u32 {
    let body = u32::try_from(answer_bytes.saturating_sub(128)).unwrap_or(u32::MAX);
    if body < 256 { 0 } else { body.min(1 << 27).next_multiple_of(1 << (body.ilog2().min(27) - 3)) }
}

/// The kind of socket; each has a ceiling of its own.
fn kind(shape: &LoadSpec) -> Option<Socket> {
    Some(match shape.transport.endpoints.first()? {
        Endpoint::Tcp(address) if address.is_ipv4() => Socket::Tcp4,
        Endpoint::Tcp(_) => Socket::Tcp6,
        Endpoint::Unix(_) | Endpoint::Abstract(_) => Socket::Unix,
    })
}

/// All that the ceiling depends on, apart from the machine.
fn settings(shape: &LoadSpec, answer_bytes: u32, placement: Option<&Placement>) -> Option<String> {
    let bytes: usize =
        shape.requests.requests().iter().map(|request| request.bytes.len()).sum::<usize>()
            / shape.requests.requests().len();
    let apart =
        placement.map(|Placement { server, lanes }| format!(" cpus={lanes} server_cpus={server}"));
    Some(format!(
        "{} {:?} tls={} lanes={} connections={} reconnect_after={:?} keep_alive={} \
         request_bytes={bytes} answer_bytes={answer_bytes} responses_kept={} timestamps={} \
         app_times={} awake={}{}",
        env!("CARGO_PKG_VERSION"),
        kind(shape)?,
        shape.transport.tls.is_some(),
        shape.load.lanes,
        shape.load.connections,
        shape.load.reconnect_after,
        shape.load.keep_alive,
        shape.keep_responses,
        shape.load.timestamps,
        shape.reads_app_times,
        shape.busy_polls,
        apart.unwrap_or_default(),
    ))
}

/// Starts a sink for loads like `shape`. Returns it, and how to connect to it.
///
/// # Errors
/// If it cannot be started.
fn start_sink_for(
    shape: &LoadSpec,
    answer_bytes: u32,
    placement: Option<&Placement>,
    context: &Context<'_>,
) -> Result<(Server, Transport), SweepError> {
    let (endpoint, place) = match kind(shape) {
        Some(Socket::Unix) => {
            let name =
                format!("longtail-calibration-{}-{}", std::process::id(), context.clock.now().0);
            (Endpoint::Abstract(name.clone().into_bytes()), format!("unix://@{name}"))
        }
        kind => {
            let address = free_address(kind.unwrap_or(Socket::Tcp4), None, &Addresses::default())?;
            let scheme = if shape.transport.tls.is_some() { "tls://" } else { "" };
            (Endpoint::Tcp(address), format!("{scheme}{address}"))
        }
    };
    let flags = ["sink".to_owned(), format!("--listen={place}"), format!("--body={answer_bytes}")];
    let argv = std::iter::once(context.program.clone()).chain(flags.map(OsString::from));
    let cpus = placement.map(|placement| placement.server.clone());
    let spec = LaunchSpec { cpus, ..LaunchSpec::command(argv, &context.dir) };
    // The sink makes its certificate itself, for this run only.
    let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
    let tls = shape
        .transport
        .tls
        .is_some()
        .then(|| TlsSettings::new(&options))
        .transpose()
        .ok()
        .flatten();
    let transport = Transport { tls, ..Transport::plain(vec![endpoint]) };
    // Once the user has interrupted don't wait: the measurement will end as it begins.
    let answers = || {
        let request = shape.requests.request(0);
        context.is_interrupted()
            || fetch(&transport, request, "", LONGEST_WAIT, &context.clock, context.interrupt)
                .is_ok()
    };
    let server = start_sink(&spec, &context.guard, &context.clock, answers)?;
    Ok((server, transport))
}

/// Starts a sink as a process of its own and waits until it answers.
///
/// # Errors
/// If it cannot be started, ends, or does not answer.
pub fn start_sink(
    spec: &LaunchSpec,
    guard: &GuardCommand,
    clock: &SystemClock,
    mut answers: impl FnMut() -> bool,
) -> Result<Server, SweepError> {
    let server = Server::start(spec, guard, clock)?;
    let begun = clock.now();
    while !answers() {
        if server.exited().is_some() || clock.now() - begun > LONGEST_WAIT {
            let how = server
                .exited()
                .map_or_else(|| "it does not answer".to_owned(), |exit| exit.to_string());
            return Err(SweepError::Unusable(format!(
                "the built-in server that the generator is calibrated with did not start ({how}): \
                 --no-calibrate goes without"
            )));
        }
        clock.sleep(Nanos::from_millis(10));
    }
    Ok(server)
}

/// A request with as many bytes, for a path on which the sink does not sleep.
fn without_delay(request: &Request) -> Request {
    let mut bytes = request.bytes.to_vec();
    let line = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    if let Some(at) = bytes[..line].windows(7).position(|part| part == b" /sleep") {
        bytes[at + 2] = b'_';
    }
    Request { bytes: bytes.into(), ..*request }
}

fn measure(
    shape: &LoadSpec,
    transport: &Transport,
    context: &Context<'_>,
) -> Result<Option<Ceiling>, SweepError> {
    let alone = LoadSpec {
        transport: transport.clone(),
        requests: shape.requests.map(without_delay).into(),
        load: LoadSettings {
            pace: Pace::Closed,
            think: Nanos::ZERO,
            requests_total: None,
            warm_up: WARM_UP,
            ..shape.load.clone()
        },
        measured: Some(LENGTH),
        requests_per_connection: None,
        // The sink's bodies are of another length, in steps.
        body_bytes: None,
        ..shape.clone()
    };
    let done = drive(
        &alone,
        &context.clock,
        context.interrupt,
        &RunProgress::new(alone.load.lanes),
        None,
    )?;
    let tally = &done.outcome.tally;
    if done.outcome.interrupted_at.is_some() || tally.completed_in_window == 0 {
        return Ok(None);
    }
    Ok(Some(Ceiling { rate_per_s: tally.completed_in_window as f64 / done.measured.as_secs_f64() }))
}

#[cfg(test)]
mod tests {
    use super::body_of;

    #[test]
    fn a_ceiling_is_measured_with_answers_of_nearly_the_same_size() {
        assert_eq!([0, 100, 383].map(body_of), [0, 0, 0]);
        for bytes in [400, 1_152, 11_715, 2_098_627, 5_000_000] {
            let body = f64::from(body_of(bytes));
            let wanted = (bytes - 128) as f64;
            assert!(body >= wanted && body <= wanted * 1.125, "{bytes}: {body}");
        }
        assert_eq!(body_of(u64::MAX), 1 << 27);
    }
}
