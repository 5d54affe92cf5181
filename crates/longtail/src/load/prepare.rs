//! From flags to a run with nothing left to decide: the URL taken apart, names resolved, requests rendered.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use engine::{Endpoint, LoadSpec, Resolver, TlsOptions, TlsSettings, Transport};
use launch::affinity;
use model::{Clock, LaneCountReason, LoadPlan, Nanos, ServerLocation, SystemClock, Timing};
use requests::{FileDefaults, RenderedRequests, RequestHeader, RequestTemplate, TargetUrl};
use sweep::{FarGenerators, PreparedLoad};

use crate::args::{LoadArgs, resolved_timestamps};
use crate::load::listeners::Listeners;
use crate::mistake::{Mistake, wrong};
use crate::ui;

/// How long each step of a first handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// How long unmeasured requests are waited for at the end: they kept the load up, and nobody needs their answers.
const DRAIN: Nanos = Nanos::from_secs(2);

/// Makes the run that the flags ask for. Resolves names, and sends nothing but one connect where this machine does not list who listens.
///
/// # Errors
/// Where a flag is wrong, a file cannot be read, a name has no address, or nobody there takes connections.
pub(crate) fn prepare(
    args: &LoadArgs,
    resolver: &Resolver,
    clock: &SystemClock,
    far: Option<&FarGenerators>,
) -> Result<PreparedLoad, Mistake> {
    let of_this_machine =
        [(args.unix.is_some(), "Unix socket", "--unix"), (!args.source_ip.is_empty(), "address", "--source-ip")];
    if let Some((_, what, flag)) = of_this_machine.into_iter().find(|(given, ..)| *given && !args.from.is_empty()) {
        return Err(wrong(format!(
            "--from: the {what} of {flag} is this machine's, and not of those that make the load: leave it out"
        )));
    }
    let schedule = args.schedule()?;
    let template = template(args)?;
    let rendered = rendered(args, template)?;
    let target = rendered.target;
    let begun = clock.now();
    let mut transport = transport(args, resolver, &target)?;
    let is_name = args.unix.is_none() && args.connect_to.is_none() && target.host.parse::<IpAddr>().is_err();
    let name_resolution = is_name.then(|| clock.now() - begun);
    let listeners = Listeners::now();
    let (found, endpoint) = (transport.endpoints.len(), listeners.first(&transport.endpoints, &given(args))?.clone());
    let (server, serving) = listeners.serving(&endpoint);
    if found > 1 {
        let host = &target.host;
        ui::note(&format!("{host} has {found} addresses; {endpoint} is used (--resolve, -4 or -6 choose another)"));
    }
    if server == ServerLocation::Elsewhere
        && let Some(failure) = transport.tls.as_ref().and_then(|tls| tls.failure(&endpoint, HANDSHAKE))
    {
        return Err(failure.into());
    }
    let placement = affinity::beside(&serving).map(|placement| placement.beside_far(&args.from));
    transport.endpoints = vec![endpoint];
    // Of several generators each has its share, and the smallest machine decides.
    let generators = args.from.len().max(1) as u32;
    let cores = far.and_then(|far| far.hosts().iter().map(|host| host.cores).min());
    let cpus = cores.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get) as u32);
    let (lanes, lanes_by) = LaneCountReason::choose(
        args.generator_threads,
        schedule.highest_rate().map(|rate| rate / f64::from(generators)),
        schedule.connections.div_ceil(generators),
        cpus,
        placement.as_ref().filter(|_| far.is_none()),
    );
    let is_tcp = transport.endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
    let timestamps = resolved_timestamps(args.timestamps, is_tcp, args.pipeline > 1)?;
    let plan = LoadPlan {
        url: target.to_string(),
        endpoints: transport.endpoints.iter().map(ToString::to_string).collect(),
        tls: target.tls,
        requests: rendered.described,
        pace: schedule.pace.clone(),
        think: args.think,
        connections: schedule.connections,
        late: args.late,
        length: schedule.length,
        requests_total: args.number,
        warm_up: args.warm_up,
        keep_alive: !args.no_keep_alive,
        requests_per_connection: args.requests_per_connection,
        pipeline: args.pipeline,
        timeout: args.timeout,
        lanes,
        timing: args.timing,
        timestamps,
        thresholds: args.thresholds.all(),
        stop_if: args.stop_if.clone(),
        log: args.log.clone(),
        service_time: args.service,
        statsd_listen: args.outlets.statsd_listen,
        from: args.from.clone(),
    };
    let first = rendered.requests.first().cloned().ok_or_else(|| wrong("there is no request to send"))?;
    let shape = LoadSpec {
        requests: rendered.requests.into(),
        order: args.order(),
        lanes,
        pace: schedule.pace,
        warm_up: plan.warm_up,
        measured: schedule.length,
        requests_total: args.number,
        think: plan.think,
        late: plan.late,
        timing: plan.timing,
        busy_polls: plan.timing != Timing::Coalesce,
        timestamps,
        keep_alive: plan.keep_alive,
        reconnect_after: args.requests_per_connection,
        pipeline: args.pipeline,
        timeout: args.timeout,
        drain: Some(DRAIN),
        worker_header: args.worker_header.clone(),
        keep_answers: args.checks.iter().any(crate::load::Check::needs_answers),
        ..LoadSpec::closed(transport, first, schedule.connections)
    };
    Ok(PreparedLoad { shape, plan, name_resolution, placement, serving, lanes_by, server })
}

/// What named the endpoints.
fn given(args: &LoadArgs) -> String {
    match args {
        LoadArgs { unix: Some(_), .. } => "--unix".to_owned(),
        LoadArgs { connect_to: Some(_), .. } => "--connect-to".to_owned(),
        LoadArgs { url: None, requests: Some(file), .. } => format!("the addresses in {}", file.display()),
        _ => "the URL".to_owned(),
    }
}

/// The requests, and what to call them.
struct Rendered {
    target: TargetUrl,
    requests: Vec<model::Request>,
    described: String,
}

fn rendered(args: &LoadArgs, template: RequestTemplate) -> Result<Rendered, Mistake> {
    let target = args.url.as_deref().map(TargetUrl::parse).transpose()?;
    if let Some(path) = &args.requests {
        let given = FileDefaults { format: args.requests_format, target, template };
        let RenderedRequests { format, target, requests } = requests::read_file(path, &given)?;
        let order = if args.order() == model::RequestOrder::Sequential { "in order" } else { "at random" };
        let described = format!("{} requests of {} ({format}), {order}", requests.len(), path.display());
        return Ok(Rendered { target, requests, described });
    }
    let target = target.ok_or_else(|| wrong("say where to: a URL such as http://127.0.0.1:9292/"))?;
    let body = template.body.as_ref().map(|body| format!(" with {} bytes", body.len())).unwrap_or_default();
    let described = format!("{}{body}", template.method);
    Ok(Rendered { requests: vec![template.render(&target)], target, described })
}

/// What is sent, but for its target.
///
/// # Errors
/// Where a flag is wrong, or the body cannot be read.
pub(crate) fn template(args: &LoadArgs) -> Result<RequestTemplate, Mistake> {
    let body = match (&args.data, &args.body_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => Some(requests::read_body(path)?),
        (None, None) => None,
    };
    let method = match &args.method {
        Some(name) => requests::method(name)?,
        // As curl: who has a body posts it.
        None if body.is_some() => requests::Method::POST,
        None => requests::Method::GET,
    };
    let mut headers = args.headers.iter().map(RequestHeader::parse).collect::<Result<Vec<_>, _>>()?;
    for (name, value) in [("content-type", &args.content_type), ("accept", &args.accept), ("host", &args.host)] {
        headers.extend(value.as_ref().map(|value| RequestHeader::new(name, value)).transpose()?);
    }
    headers.extend(args.auth.as_ref().map(RequestHeader::basic_auth).transpose()?);
    Ok(RequestTemplate { method, headers, body, keep_alive: !args.no_keep_alive })
}

fn transport(args: &LoadArgs, resolver: &Resolver, target: &TargetUrl) -> Result<Transport, Mistake> {
    let endpoints = match (&args.unix, &args.connect_to) {
        (Some(place), _) => {
            let transport = Transport::plain(vec![Endpoint::unix(OsStr::new(place)).map_err(wrong)?]);
            transport.check()?;
            if !place.starts_with('@') && !Path::new(place).exists() {
                return Err(wrong(format!("--unix {place}: there is no such file; does the server listen there?")));
            }
            transport.endpoints
        }
        (None, Some(place)) => addresses(resolver, &TargetUrl::parse(place)?)?,
        (None, None) => addresses(resolver, target)?,
    };
    let tls = TlsOptions {
        insecure: args.insecure,
        ca_file: args.cacert.as_deref(),
        cert_file: args.cert.as_deref(),
        key_file: args.key.as_deref(),
        server_name: &target.host,
    };
    let tls = target.tls.then(|| TlsSettings::new(&tls)).transpose()?;
    let transport = Transport { endpoints, source_ips: args.source_ip.clone(), tls };
    transport.check()?;
    Ok(transport)
}

fn addresses(resolver: &Resolver, target: &TargetUrl) -> Result<Vec<Endpoint>, Mistake> {
    let found = resolver.resolve(&target.host, target.port)?;
    Ok(found.into_iter().map(Endpoint::Tcp).collect())
}
