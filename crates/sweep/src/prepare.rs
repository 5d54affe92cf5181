//! Prepares a load against a server that is already running: finds out who listens, which of the
//! host's addresses takes connections, where the server runs, and how many threads the generator
//! gets. No request is sent; where this machine's kernel lists no listener, one connect is made.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use engine::{Endpoint, LoadSpec, SlowLoad, Transport};
use launch::affinity;
use model::{
    LaneCountReason, LoadPlan, LoadSettings, Nanos, Placement, Request, RequestMix, ServerLocation,
};

use crate::context::SweepError;
use crate::far::FarGenerators;
use crate::listeners::Listeners;
use crate::load::{PreparedLoad, spec_of};

/// How long each step of the TLS handshake that is tried before the load may take.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// A load as the user described it: flags and files are read, and names are resolved.
pub struct LoadDraft {
    /// What was asked for. Its endpoints and lanes are filled in by [`prepare_load`].
    pub plan: LoadPlan,
    /// How to connect. One of its endpoints is chosen by [`prepare_load`].
    pub transport: Transport,
    /// The flag or argument that named the endpoints, for the message if nobody listens.
    pub named_by: String,
    /// What is sent.
    pub requests: RequestMix,
    /// What slow clients send, if it is not the load's requests.
    pub slow_request: Option<Request>,
    /// The response header in which a worker names itself.
    pub worker_header: String,
    /// Whether the bytes of responses are kept, so that they can be checked.
    pub keep_responses: bool,
    /// The generator's threads, if the user gave a number.
    pub lanes: Option<u32>,
    /// How long the name resolution took; `None` if the host is an address.
    pub name_resolution: Option<Nanos>,
}

/// Decides what the flags leave open, so that the load can start.
///
/// # Errors
/// If nobody takes connections, or a TLS handshake with a server elsewhere fails.
pub fn prepare_load(
    draft: LoadDraft,
    far: Option<&FarGenerators>,
) -> Result<PreparedLoad, SweepError> {
    let LoadDraft { mut plan, mut transport, .. } = draft;
    let listeners = Listeners::now();
    let endpoint = listeners.first(&transport.endpoints, &draft.named_by)?.clone();
    let (server, serving) = listeners.serving(&endpoint);
    if server == ServerLocation::Elsewhere {
        try_handshake(&transport, &endpoint)?;
    }
    let placement =
        affinity::placement(&serving).map(|placement| placement.with_generators(&plan.from));
    let (lanes, lanes_by) =
        choose_lanes(draft.lanes, plan.from.len(), &plan.load, far, placement.as_ref());
    plan.load.lanes = lanes;
    plan.endpoints = vec![endpoint.to_string()];
    transport.endpoints = vec![endpoint];
    let spec = LoadSpec {
        worker_header: draft.worker_header,
        keep_responses: draft.keep_responses,
        ..spec_of(&plan, transport, draft.requests)
    };
    let slow_requests = draft.slow_request.map(|request| Arc::new(RequestMix::of_one(request)));
    let slow_clients = plan.slow_clients.map(|settings| SlowLoad {
        settings,
        transport: spec.transport.clone(),
        requests: slow_requests.unwrap_or_else(|| Arc::clone(&spec.requests)),
    });
    let name_resolution = draft.name_resolution;
    Ok(PreparedLoad {
        spec,
        plan,
        slow_clients,
        name_resolution,
        placement,
        serving,
        lanes_by,
        server,
        event: None,
    })
}

/// Refuses a server on another machine with which a TLS handshake fails.
fn try_handshake(transport: &Transport, endpoint: &Endpoint) -> Result<(), SweepError> {
    let Some(tls) = &transport.tls else { return Ok(()) };
    match tls.shake_hands(endpoint, HANDSHAKE).failure {
        Some(failure) => Err(SweepError::Unusable(failure)),
        None => Ok(()),
    }
}

/// How many threads each generator gets, and why. Each of several generators has its share of the
/// load, and the machine with the fewest cores sets the number.
fn choose_lanes(
    asked: Option<u32>,
    generators: usize,
    load: &LoadSettings,
    far: Option<&FarGenerators>,
    placement: Option<&Placement>,
) -> (u32, LaneCountReason) {
    let generators = generators.max(1) as u32;
    let fewest_cores = far.and_then(|far| far.hosts().iter().map(|host| host.cores).min());
    let cpus =
        fewest_cores.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get) as u32);
    LaneCountReason::choose(
        asked,
        load.highest_rate().map(|rate| rate / f64::from(generators)),
        load.connections.div_ceil(generators),
        cpus,
        if far.is_none() { placement } else { None },
    )
}
