//! Reads the flags of a load: the URL, the requests, how to connect, and what to ask of another
//! generator (`--generator wrk`). `sweep` prepares and conducts it; `recorder` writes logs and
//! checks responses meanwhile.

pub(crate) mod event;
mod log_times;
mod recorder;

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use audit::LoadTool;
use engine::{Endpoint, Resolver, TlsOptions, TlsSettings, Transport};
use generators::{GeneratorDriver, InstalledGenerator, LoadOrder, OrderedLoad};
pub(crate) use log_times::LogTimes;
use model::paths::what_is_there;
use model::secret::is_secret_name;
use model::{Clock, LoadPlan, RequestMix, SystemClock};
pub(crate) use recorder::{Check, Recorder};
use requests::{
    FileDefaults, RenderedRequest, RenderedRequests, ReplayDefaults, RequestHeader,
    RequestTemplate, RequestsFormat, STDIN, TargetUrl,
};
use sweep::{FarGenerators, LoadDraft, PreparedLoad};

use crate::args::LoadArgs;
use crate::args::limits::resolved_timestamps;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::guard;
use crate::mix;
use crate::ui;

/// Prepares the load that the flags ask for. Resolves names; no request is sent.
///
/// # Errors
/// If a flag is wrong, a file cannot be read, a name has no address, or nobody takes connections.
pub(crate) fn prepare(
    args: &LoadArgs,
    resolver: &Resolver,
    clock: &SystemClock,
    far: Option<&FarGenerators>,
) -> Result<PreparedLoad, Mistake> {
    refuse_what_far_generators_lack(args)?;
    let mut load = args.settings()?;
    let rendered = rendered(args, &template(args)?)?;
    let is_stamped = |request: &model::Request| request.queue_stamp.is_some();
    refuse_if(
        args.queue_header.is_some() && !rendered.mix.requests().iter().all(is_stamped),
        "--queue-header: raw requests go out as they are: leave it out, or use another format",
    )?;
    args.thresholds.check_classes(rendered.mix.classes())?;
    let target = rendered.target;
    let asked_at = clock.now();
    let transport = transport(args, resolver, &target)?;
    let is_name =
        args.unix.is_none() && args.connect_to.is_none() && target.host.parse::<IpAddr>().is_err();
    let name_resolution = if is_name { Some(clock.now() - asked_at) } else { None };
    let is_tcp = transport.endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
    let asked_lanes = match (args.generator_threads, args.generator) {
        (None, Some(generator)) => generators::cpus_setting(generator)?,
        (asked, _) => asked,
    };
    load.timestamps = resolved_timestamps(args.timestamps, is_tcp)?;
    load.keep_alive = rendered.keep_alive;
    if let Some(times) = &rendered.times {
        load = args.replaying(&load, times).unwrap_or(load);
    }
    let plan = LoadPlan {
        url: target.to_string().into(),
        endpoints: Vec::new(),
        tls: target.tls,
        requests: rendered.described,
        length: args.run_length(&load),
        load,
        thresholds: args.thresholds.all(),
        expected_status: args.checks.iter().find_map(Check::status),
        stop_if: args.stop_if.clone(),
        during: None,
        log: args.log.clone(),
        service_time: args.service,
        statsd_listen: args.outlets.statsd_listen,
        classes_alone: args.alone,
        slow_clients: args.slow_clients,
        from: args.from.iter().map(|from| from.as_str().into()).collect(),
    };
    let addresses = transport.endpoints.len();
    let draft = LoadDraft {
        plan,
        transport,
        named_by: named_by(args),
        requests: rendered.mix,
        slow_request: slow_request(args, &target)?,
        worker_header: args.worker_header.clone(),
        keep_responses: args.checks.iter().any(Check::needs_responses),
        lanes: asked_lanes,
        name_resolution,
    };
    let mut prepared = sweep::prepare_load(draft, far)?;
    prepared.plan.during = args.event.planned(prepared.plan.measured())?;
    prepared.event = event::event_order(args, &prepared, resolver)?;
    if addresses > 1 {
        say_which_address(&target.host, addresses, &prepared.plan.endpoints);
    }
    Ok(prepared)
}

/// Says which of several addresses is used.
fn say_which_address(host: &str, addresses: usize, used: &[String]) {
    ui::note(&format!(
        "{host} has {addresses} addresses; {} is used (--resolve, -4 or -6 choose another)",
        used.join(", ")
    ));
}

/// What slow clients send where they post a body of their own: the load's headers, and as many
/// bytes as were asked for.
fn slow_request(args: &LoadArgs, target: &TargetUrl) -> Result<Option<model::Request>, Mistake> {
    let Some(length) = args.slow_clients.and_then(|slow| slow.body) else { return Ok(None) };
    let posted = RequestTemplate {
        method: requests::Method::POST,
        body: Some(vec![b'x'; length as usize]),
        // Of the load, lanes alone stamp requests.
        queue_header: None,
        ..template(args)?
    };
    Ok(Some(posted.render(target)?.request))
}

/// Refuses flags that name something of this machine if other machines make the load.
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

/// The flag or argument that named the endpoints.
fn named_by(args: &LoadArgs) -> String {
    match args {
        LoadArgs { unix: Some(_), .. } => "--unix".to_owned(),
        LoadArgs { connect_to: Some(_), .. } => "--connect-to".to_owned(),
        LoadArgs { url: None, requests: Some(file), .. } => {
            format!("the addresses in {}", file.display())
        }
        LoadArgs { url: None, mix: Some(_), .. } => "the addresses in --mix".to_owned(),
        _ => "the URL".to_owned(),
    }
}

/// The requests, and a description of them.
struct Rendered {
    target: TargetUrl,
    mix: RequestMix,
    described: String,
    /// Whether a connection carries more than one of them.
    keep_alive: bool,
    /// When each of them came, where a log is replayed.
    times: Option<LogTimes>,
}

impl Rendered {
    /// The requests of a file or a mix, which is described by where it is from.
    fn of(read: RenderedRequests, source: &str, at_random: bool) -> Rendered {
        let format = read.format;
        let count = read.mix.requests().len();
        let described = match format {
            RequestsFormat::Mix => mix::described(&read, source),
            RequestsFormat::Json
            | RequestsFormat::Plain
            | RequestsFormat::Raw
            | RequestsFormat::List => {
                let order = if at_random { "at random" } else { "in order" };
                format!("{count} requests of {source} ({format}), {order}")
            }
        };
        let RenderedRequests { target, mix, keep_alive, .. } = read;
        Rendered { target, mix, described, keep_alive, times: None }
    }
}

fn rendered(args: &LoadArgs, template: &RequestTemplate) -> Result<Rendered, Mistake> {
    let target = args.url.as_deref().map(TargetUrl::parse).transpose()?;
    let given = FileDefaults {
        format: args.requests_format,
        target: target.clone(),
        template: template.clone(),
        at_random: args.random,
        seed: args.seed,
        without: args.without.clone(),
    };
    if let Some(path) = &args.requests {
        let read = requests::read_file(path, &given, args.requests_root.as_deref())?;
        return Ok(Rendered::of(read, &mix::shown_name(path), args.random));
    }
    if let Some(text) = &args.mix {
        let read = mix::read(text, &given, args.requests_root.as_deref())?;
        return Ok(Rendered::of(read.requests, &read.source, args.random));
    }
    let target =
        target.ok_or_else(|| wrong("say where to: a URL such as http://127.0.0.1:9292/"))?;
    if let Some(path) = &args.replay {
        return replayed(args, path, target, template.clone());
    }
    let body = template
        .body
        .as_ref()
        .map(|body| format!(" with {} bytes", body.len()))
        .unwrap_or_default();
    let described = format!("{}{body}", template.method);
    let RenderedRequest { request, keeps_connection } = template.render(&target)?;
    let mix = RequestMix::of_one(request);
    Ok(Rendered { mix, target, described, keep_alive: keeps_connection, times: None })
}

/// The requests of a log. What is not replayed, and how its times were read, stands in the line that
/// says what was sent.
fn replayed(
    args: &LoadArgs,
    path: &Path,
    target: TargetUrl,
    template: RequestTemplate,
) -> Result<Rendered, Mistake> {
    let all_methods = args.replay_all;
    let given = ReplayDefaults { target: target.clone(), template, all_methods, seed: args.seed };
    let log = requests::read_log(path, &given)?;
    let count = log.requests.len();
    let mut parts = vec![format!("{count} requests of {} ({})", mix::shown_name(path), log.format)];
    if log.is_spread {
        parts.push(format!(
            "its times are whole seconds: spread within each by the seed {}",
            args.seed
        ));
    }
    if log.ended > 0 {
        parts.push(format!("{} begun their duration before their time", log.ended));
    }
    let left_out: u64 = log.left_out.values().sum();
    if left_out > 0 {
        let reasons: Vec<String> =
            log.left_out.iter().map(|(why, n)| format!("{n} {why}")).collect();
        parts.push(format!("{left_out} left out: {}", reasons.join(", ")));
    }
    if all_methods {
        parts.push("without the bodies, which a log lacks".to_owned());
    }
    let described = parts.join("; ");
    Ok(Rendered {
        target,
        mix: RequestMix::in_order(log.requests).with_classes(log.classes),
        described,
        keep_alive: log.keep_alive,
        times: Some(LogTimes { times: log.times, start: log.start }),
    })
}

/// The request that the flags describe, without its target.
///
/// # Errors
/// If a flag is wrong, or the body cannot be read.
pub(crate) fn template(args: &LoadArgs) -> Result<RequestTemplate, Mistake> {
    // What is typed so is refused by `unknown_words::check`, unless it is combined with other flags.
    if let Some(text) = args.data.as_ref().filter(|text| text.starts_with('@')) {
        let why = "-d may be a file or a text here: type -D FILE to send the file, or --data-raw";
        return Err(wrong(format!("{why} {text} to send that text")));
    }
    let from_stdin =
        [&args.body_file, &args.requests].map(|file| file.as_deref() == Some(Path::new(STDIN)));
    refuse_if(
        from_stdin == [true, true],
        "-D - and --requests - both read stdin, which can be read once: name a file for one of them",
    )?;
    if from_stdin.contains(&true) && io::stdin().is_terminal() {
        ui::note("reading stdin, until Ctrl-D");
    }
    let body = match (args.data.as_ref().or(args.data_raw.as_ref()), &args.body_file) {
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
    let queue_header = args.queue_header;
    Ok(RequestTemplate { method, headers, body, keep_alive: !args.no_keep_alive, queue_header })
}

fn transport(
    args: &LoadArgs,
    resolver: &Resolver,
    target: &TargetUrl,
) -> Result<Transport, Mistake> {
    let endpoints = match (&args.unix, &args.connect_to) {
        (Some(typed), _) => {
            let place = socket_path(typed);
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

/// The path of a Unix socket, also where it is written as Puma writes it: `unix:///run/app.sock`.
fn socket_path(typed: &str) -> &str {
    match typed.strip_prefix("unix://") {
        // Puma takes the rights of the socket behind a question mark.
        Some(url) => url.split('?').next().unwrap_or(url),
        // As in nginx.
        None => typed.strip_prefix("unix:").unwrap_or(typed),
    }
}

fn addresses(resolver: &Resolver, target: &TargetUrl) -> Result<Vec<Endpoint>, Mistake> {
    let found = resolver.resolve(&target.host, target.port)?;
    Ok(found.into_iter().map(Endpoint::Tcp).collect())
}

/// Makes the order for another generator from the flags, for the same load as ours would be.
///
/// # Errors
/// If the generator cannot do it, or is not installed.
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
    // Each generator has its own flags for what frames bodies and connections.
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
    Ok(OrderedLoad::new(driver, order))
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
        let why = "it is run so that it accepts any certificate: add --insecure";
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
    /// The Host header, if it differs from the URL's host.
    host: Option<String>,
}

/// The other generator gets the host's name, which TLS needs; but if an address was chosen, or only
/// some networks may be connected to, it gets the address that was checked.
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
