//! Prepares a load from its flags.

use engine::{Endpoint, Resolver};
use model::{LoadPlan, LoadSettings, SystemClock};
use sweep::{FarGenerators, LoadDraft, PreparedLoad, ResponseCheck};

use super::connecting::connecting;
use super::event::event_order;
use super::what_is_sent::{RequestsToSend, requests_to_send, slow_request};
use crate::args::LoadArgs;
use crate::args::value_parsers::resolved_timestamps;
use crate::exit::{Mistake, wrong};
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
    let settings = args.settings()?;
    let to_send = requests_to_send(args)?;
    let connecting = connecting(args, resolver, clock, &to_send.target)?;
    let transport = connecting.transport;
    let addresses = transport.endpoints.len();
    let is_tcp = transport.endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::Tcp(_)));
    let draft = LoadDraft {
        plan: plan(args, settings, &to_send, is_tcp)?,
        transport,
        named_by: named_by(args),
        slow_request: slow_request(args, &to_send.target)?,
        requests: to_send.mix,
        worker_header: args.worker_header.clone(),
        keep_responses: args.checks.iter().any(ResponseCheck::needs_responses),
        lanes: asked_lanes(args)?,
        name_resolution: connecting.name_resolution,
    };
    let mut prepared = sweep::prepare_load(draft, far)?;
    prepared.plan.during = args.event.planned(prepared.plan.measured())?;
    prepared.event = event_order(args, &prepared, resolver)?;
    if addresses > 1 {
        say_which_address(&to_send.target.host, addresses, &prepared.plan.endpoints);
    }
    Ok(prepared)
}

/// All that the flags ask for, every default made explicit.
fn plan(
    args: &LoadArgs,
    mut load: LoadSettings,
    to_send: &RequestsToSend,
    is_tcp: bool,
) -> Result<LoadPlan, Mistake> {
    load.timestamps = resolved_timestamps(args.timestamps, is_tcp)?;
    load.keep_alive = to_send.keep_alive;
    if let Some(times) = &to_send.times {
        load = args.replaying(&load, times).unwrap_or(load);
        times.say_how_long(&load, args.run_length(&load))?;
    }
    Ok(LoadPlan {
        url: to_send.where_to().to_string().into(),
        endpoints: Vec::new(),
        tls: to_send.target.tls,
        requests: to_send.described.clone(),
        length: args.run_length(&load),
        load,
        thresholds: args.thresholds.all(),
        expected_status: args.checks.iter().find_map(ResponseCheck::status),
        stop_if: args.stop_if.clone(),
        during: None,
        log: args.log.clone(),
        service_time: args.service,
        statsd_listen: args.outlets.statsd_listen,
        classes_alone: args.alone,
        slow_clients: args.slow_clients,
        from: args.from.iter().map(|from| from.as_str().into()).collect(),
    })
}

/// How many threads make the load, if that was set: with the flag, or else, for another generator,
/// with its environment variable (`HEY_CPUS`).
fn asked_lanes(args: &LoadArgs) -> Result<Option<u32>, Mistake> {
    match (args.generator_threads, args.generator) {
        (None, Some(generator)) => Ok(generators::cpus_setting(generator)?),
        (asked, _) => Ok(asked),
    }
}

/// Says which of several addresses is used.
fn say_which_address(host: &str, addresses: usize, used: &[String]) {
    ui::note(&format!(
        "{host} has {addresses} addresses; {} is used (--resolve, -4 or -6 choose another)",
        used.join(", ")
    ));
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
