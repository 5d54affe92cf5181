//! Prepares a load from its flags: takes the URL apart, resolves names, renders requests, or has
//! another generator do it (`--generator wrk`). `sweep::conduct_load` conducts it; `recorder`
//! writes logs and checks answers meanwhile.

mod listeners;
mod recorder;

use std::ffi::OsStr;
use std::net::IpAddr;
use std::num::NonZero;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;
use std::time::Duration;

use audit::LoadTool;
use engine::{Endpoint, LoadSpec, Resolver, TlsOptions, TlsSettings, Transport};
use generators::{GeneratorDriver, InstalledGenerator, LoadOrder};
use launch::{CpuRestriction, affinity};
use model::paths::what_is_there;
use model::secret::is_secret_name;
use model::{
    Clock, LaneCountReason, LoadPlan, LoadSettings, LoadStudy, Placement, Run, ServerLocation,
    SystemClock,
};
pub(crate) use recorder::{Check, Recorder};
use requests::{
    FileDefaults, RenderedRequest, RenderedRequests, RequestHeader, RequestTemplate, TargetUrl,
};
use sweep::{ClaimedRun, Context, FarGenerators, OtherGenerator as _, PreparedLoad, SweepError};

use self::listeners::Listeners;
use crate::args::LoadArgs;
use crate::args::limits::resolved_timestamps;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::guard;
use crate::ui::{self, Ui};

/// How long each step of a first handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// Makes the run that the flags ask for. Resolves names, and sends nothing but one connect where
/// this machine does not list who listens.
///
/// # Errors
/// Where a flag is wrong, a file cannot be read, a name has no address, or nobody there takes
/// connections.
pub(crate) fn prepare(
    args: &LoadArgs,
    resolver: &Resolver,
    clock: &SystemClock,
    far: Option<&FarGenerators>,
) -> Result<PreparedLoad, Mistake> {
    refuse_what_far_generators_lack(args)?;
    let mut load = args.settings()?;
    let rendered = rendered(args, template(args)?)?;
    let target = rendered.target;
    let asked_at = clock.now();
    let mut transport = transport(args, resolver, &target)?;
    let is_name =
        args.unix.is_none() && args.connect_to.is_none() && target.host.parse::<IpAddr>().is_err();
    let name_resolution = if is_name { Some(clock.now() - asked_at) } else { None };
    let listeners = Listeners::now();
    let endpoint = choose_endpoint(args, &listeners, &transport, &target)?;
    let (server, serving) = listeners.serving(&endpoint);
    if server == ServerLocation::Elsewhere {
        try_handshake(&transport, &endpoint)?;
    }
    transport.endpoints = vec![endpoint];
    let placement =
        affinity::placement(&serving).map(|placement| placement.with_generators(&args.from));
    let is_tcp = transport.endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
    let (lanes, lanes_by) = choose_lanes(args, &load, far, placement.as_ref());
    load.lanes = lanes;
    load.timestamps = resolved_timestamps(args.timestamps, is_tcp)?;
    load.keep_alive = rendered.keep_alive;
    let plan = LoadPlan {
        url: target.to_string().into(),
        endpoints: transport.endpoints.iter().map(ToString::to_string).collect(),
        tls: target.tls,
        requests: rendered.described,
        length: args.run_length(&load),
        load,
        thresholds: args.thresholds.all(),
        expected_status: args.checks.iter().find_map(Check::status),
        stop_if: args.stop_if.clone(),
        log: args.log.clone(),
        service_time: args.service,
        statsd_listen: args.outlets.statsd_listen,
        from: args.from.iter().map(|from| from.as_str().into()).collect(),
    };
    refuse_if(rendered.requests.is_empty(), "there is no request to send")?;
    let spec = LoadSpec {
        order: args.order(),
        worker_header: args.worker_header.clone(),
        keep_responses: args.checks.iter().any(Check::needs_answers),
        ..sweep::spec_of(&plan, transport, rendered.requests)
    };
    Ok(PreparedLoad { spec, plan, name_resolution, placement, serving, lanes_by, server })
}

/// Refuses flags that name something of this machine where other machines make the load.
fn refuse_what_far_generators_lack(args: &LoadArgs) -> Result<(), Mistake> {
    if args.from.is_empty() {
        return Ok(());
    }
    let (what, flag) = if args.unix.is_some() {
        ("Unix socket", "--unix")
    } else if !args.source_ip.is_empty() {
        ("address", "--source-ip")
    } else {
        return Ok(());
    };
    Err(wrong(format!(
        "--from: the {what} of {flag} is this machine's, and not of those that make the load: leave it out"
    )))
}

/// The first of the transport's endpoints that takes connections.
fn choose_endpoint(
    args: &LoadArgs,
    listeners: &Listeners,
    transport: &Transport,
    target: &TargetUrl,
) -> Result<Endpoint, Mistake> {
    let endpoint = listeners.first(&transport.endpoints, &given(args))?.clone();
    let found = transport.endpoints.len();
    if found > 1 {
        let host = &target.host;
        ui::note(&format!(
            "{host} has {found} addresses; {endpoint} is used (--resolve, -4 or -6 choose another)"
        ));
    }
    Ok(endpoint)
}

/// Refuses a server on another machine with which a TLS handshake fails.
fn try_handshake(transport: &Transport, endpoint: &Endpoint) -> Result<(), Mistake> {
    let Some(tls) = &transport.tls else { return Ok(()) };
    match tls.shake_hands(endpoint, HANDSHAKE).failure {
        Some(failure) => Err(wrong(failure)),
        None => Ok(()),
    }
}

/// Threads of each generator, and why so many. Of several generators each has its share of the
/// load, and the smallest machine decides.
fn choose_lanes(
    args: &LoadArgs,
    load: &LoadSettings,
    far: Option<&FarGenerators>,
    placement: Option<&Placement>,
) -> (u32, LaneCountReason) {
    let generators = args.from.len().max(1) as u32;
    let fewest_cores = far.and_then(|far| far.hosts().iter().map(|host| host.cores).min());
    let cpus =
        fewest_cores.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get) as u32);
    LaneCountReason::choose(
        args.generator_threads,
        load.highest_rate().map(|rate| rate / f64::from(generators)),
        load.connections.div_ceil(generators),
        cpus,
        if far.is_none() { placement } else { None },
    )
}

/// The flag or argument that named the endpoints.
fn given(args: &LoadArgs) -> String {
    match args {
        LoadArgs { unix: Some(_), .. } => "--unix".to_owned(),
        LoadArgs { connect_to: Some(_), .. } => "--connect-to".to_owned(),
        LoadArgs { url: None, requests: Some(file), .. } => {
            format!("the addresses in {}", file.display())
        }
        _ => "the URL".to_owned(),
    }
}

/// The requests, and a description of them.
struct Rendered {
    target: TargetUrl,
    requests: Vec<model::Request>,
    described: String,
    /// Whether a connection carries more than one of them.
    keep_alive: bool,
}

fn rendered(args: &LoadArgs, template: RequestTemplate) -> Result<Rendered, Mistake> {
    let target = args.url.as_deref().map(TargetUrl::parse).transpose()?;
    if let Some(path) = &args.requests {
        let given = FileDefaults { format: args.requests_format, target, template };
        let RenderedRequests { format, target, requests, keep_alive } =
            requests::read_file(path, &given, args.requests_root.as_deref())?;
        let order =
            if args.order() == model::RequestOrder::Sequential { "in order" } else { "at random" };
        let described =
            format!("{} requests of {} ({format}), {order}", requests.len(), path.display());
        return Ok(Rendered { target, requests, described, keep_alive });
    }
    let target =
        target.ok_or_else(|| wrong("say where to: a URL such as http://127.0.0.1:9292/"))?;
    let body = template
        .body
        .as_ref()
        .map(|body| format!(" with {} bytes", body.len()))
        .unwrap_or_default();
    let described = format!("{}{body}", template.method);
    let RenderedRequest { request, keeps_connection } = template.render(&target)?;
    Ok(Rendered { requests: vec![request], target, described, keep_alive: keeps_connection })
}

/// The request that the flags describe, without its target.
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
        // As with curl, a body means POST.
        None if body.is_some() => requests::Method::POST,
        None => requests::Method::GET,
    };
    let mut headers = Vec::new();
    for line in &args.headers {
        match line.strip_prefix('@') {
            Some(file) => headers.extend(requests::read_headers(Path::new(file))?),
            None => headers.push(RequestHeader::parse(line)?),
        }
    }
    for (name, value) in
        [("content-type", &args.content_type), ("accept", &args.accept), ("host", &args.host)]
    {
        headers.extend(value.as_ref().map(|value| RequestHeader::new(name, value)).transpose()?);
    }
    headers.extend(args.auth.as_ref().map(RequestHeader::basic_auth).transpose()?);
    Ok(RequestTemplate { method, headers, body, keep_alive: !args.no_keep_alive })
}

fn transport(
    args: &LoadArgs,
    resolver: &Resolver,
    target: &TargetUrl,
) -> Result<Transport, Mistake> {
    let endpoints = match (&args.unix, &args.connect_to) {
        (Some(place), _) => {
            let transport =
                Transport::plain(vec![Endpoint::unix(OsStr::new(place)).map_err(wrong)?]);
            transport.check()?;
            let path = Path::new(place);
            let is_socket = path.metadata().is_ok_and(|found| found.file_type().is_socket());
            if !place.starts_with('@') && !is_socket {
                return Err(wrong(format!(
                    "--unix {place} {}: start the server first, or name the socket that it listens at",
                    what_is_there(path)
                )));
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

/// Another generator's load, with nothing left to decide.
pub(crate) struct OrderedLoad {
    driver: GeneratorDriver,
    order: LoadOrder,
}

/// Makes it from the flags, for the same load as ours would be.
///
/// # Errors
/// Where the generator cannot do it, or is not there.
pub(crate) fn order_load(
    args: &LoadArgs,
    resolver: &Resolver,
    generator: LoadTool,
    prepared: &PreparedLoad,
    clock: SystemClock,
) -> Result<OrderedLoad, Mistake> {
    let plan = &prepared.plan;
    let target = TargetUrl::parse(args.url.as_deref().unwrap_or_default())?;
    let template = template(args)?;
    if let Some(why) = why_not_ordered(args, prepared, &target, &template) {
        return Err(wrong(format!("--generator {}: {why}", generator.name())));
    }
    let credentials = target.credentials.as_ref().map(RequestHeader::basic_auth).transpose()?;
    warn_of_visible_secrets(generator, &template, credentials.is_some());
    // What frames bodies and connections has flags of its own in each generator.
    let headers = template.headers.iter().filter(|header| !header.is("host") && !header.frames());
    let OrderedTarget { url, host } = ordered_target(resolver, prepared, &target, &template);
    let method = template.method.to_string();
    let mut order = LoadOrder {
        host,
        time: plan.length,
        rate_per_connection: args.per_connection_rate,
        method: if method == "GET" { None } else { Some(method) },
        headers: headers.chain(&credentials).map(header_line).collect(),
        body: template.body.is_some().then(|| "body".into()),
        ..LoadOrder::get(&url, plan.load.clone())
    };
    generators::check_order(generator, &order)?;
    let driver = GeneratorDriver::new(InstalledGenerator::on_path(generator)?, guard(), clock)?;
    order.body = template.body.map(|body| driver.keep_body(&body)).transpose()?;
    Ok(OrderedLoad { driver, order })
}

/// Why no other generator can make this load.
fn why_not_ordered(
    args: &LoadArgs,
    prepared: &PreparedLoad,
    target: &TargetUrl,
    template: &RequestTemplate,
) -> Option<String> {
    let endpoints = &prepared.spec.transport.endpoints;
    if endpoints.iter().any(|endpoint| !matches!(endpoint, Endpoint::Tcp(_))) {
        return Some("it needs a TCP address".to_owned());
    }
    if target.tls && !args.insecure {
        let why = "it is run so that it takes any certificate: say so with --insecure";
        return Some(why.to_owned());
    }
    if let Some(header) = template.headers.iter().find(|header| header.value().is_none()) {
        let name = header.name();
        return Some(format!("it cannot leave out a header: take away -H '{name}:'"));
    }
    if template.headers.iter().any(|header| header.is("transfer-encoding")) {
        return Some("it frames bodies by itself: leave out -H 'Transfer-Encoding: …'".to_owned());
    }
    if prepared.plan.length.is_some() && prepared.plan.load.requests_total.is_some() {
        return Some("give --for or -n: what comes first ends only our own runs".to_owned());
    }
    None
}

/// Where another generator sends its requests.
struct OrderedTarget {
    url: String,
    /// What its Host header says, where that is not what the URL has.
    host: Option<String>,
}

/// The other generator is given the name, by which it asks for a certificate; or, where an address
/// was chosen or only some networks may be connected to, the very address that was checked.
fn ordered_target(
    resolver: &Resolver,
    prepared: &PreparedLoad,
    target: &TargetUrl,
    template: &RequestTemplate,
) -> OrderedTarget {
    let own_host = template
        .headers
        .iter()
        .find(|header| header.is("host"))
        .and_then(RequestHeader::value)
        .map(|host| String::from_utf8_lossy(host).into_owned());
    let gives_name =
        resolver.allowed.is_none() && resolver.version.is_none() && resolver.given.is_empty();
    if gives_name {
        return OrderedTarget { url: target.exposed(), host: own_host };
    }
    let scheme = if target.tls { "https" } else { "http" };
    let endpoint = &prepared.spec.transport.endpoints[0];
    let is_name = target.host.parse::<IpAddr>().is_err();
    let named = if is_name { Some(target.authority.clone()) } else { None };
    OrderedTarget { url: format!("{scheme}://{endpoint}{}", target.path), host: own_host.or(named) }
}

/// Warns that another generator gets a secret on its command line.
fn warn_of_visible_secrets(generator: LoadTool, template: &RequestTemplate, has_credentials: bool) {
    let secret = template.headers.iter().map(RequestHeader::name).find(|name| is_secret_name(name));
    let of_url = if has_credentials { Some("Authorization") } else { None };
    if let Some(name) = secret.or(of_url) {
        ui::note(&format!(
            "{} takes {name} on its command line, where every user of this machine can read it while it runs (ps); our own load does not show it, with -H @FILE",
            generator.name()
        ));
    }
}

fn header_line(header: &RequestHeader) -> String {
    let value = String::from_utf8_lossy(header.value().unwrap_or_default());
    format!("{}: {value}", header.name())
}

impl OrderedLoad {
    /// Runs it. `Ok(None)` where the user ended it: what another generator has not finished has no
    /// figures.
    ///
    /// # Errors
    /// Where the generator fails, or what it prints is not understood.
    pub(crate) fn conduct(
        self,
        prepared: PreparedLoad,
        context: &Context<'_>,
    ) -> Result<Option<LoadStudy>, Mistake> {
        let OrderedLoad { driver, order } = self;
        let progress = Ui::new();
        let length = order
            .time
            .map(|time| format!(" for {}", time + order.load.warm_up))
            .unwrap_or_default();
        progress.working(&format!("{} makes the load{length}", driver.name()));
        // Before this thread, and with it the generator, is restricted to some processors.
        let environment = sweep::environment(context.version);
        let restriction = CpuRestriction::off_the_server(prepared.placement.as_ref());
        let ended = || context.interrupt.load(Ordering::Relaxed);
        let done = sweep::observe_claimed(prepared.server.is_here(), || driver.run(&order, &ended));
        drop(restriction);
        drop(progress);
        let done = done.map_err(|why| {
            // It was started, and it is not known what it has sent.
            Mistake::BrokeOff(SweepError::Unusable(format!("--generator {}: {why}", driver.name())))
        })?;
        let Some((ClaimedRun { claim, elapsed, found }, generator)) = done else {
            ui::note(&format!(
                "interrupted: {} had not finished, so there is nothing to report",
                driver.name()
            ));
            return Ok(None);
        };
        let run = Run {
            generator,
            warnings: found,
            ..Run::claimed(prepared.plan.load.connections, claim, elapsed)
        };
        Ok(Some(LoadStudy { name_resolution: None, ..prepared.study(run, environment, context) }))
    }
}
