//! A load that another generator makes (`--generator wrk`): from the same flags to its run and what it claims.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use engine::{Endpoint, Resolver};
use launch::CpuRestriction;
use model::{LoadStudy, Run, SystemClock};
use requests::{RequestHeader, TargetUrl};
use sweep::{ClaimedRun, Context, OtherGenerator as _, PreparedLoad};

use crate::args::LoadArgs;
use crate::generators::{Generator, GeneratorDriver, InstalledGenerator, LoadOrder};
use crate::load::prepare::template;
use crate::mistake::{Mistake, wrong};
use crate::ui::{self, Ui};

/// Another generator's load, with nothing left to decide.
pub(crate) struct OrderedLoad {
    driver: GeneratorDriver,
    order: LoadOrder,
}

/// Makes it of the flags, for the same load as ours would be.
///
/// # Errors
/// Where the generator cannot do it, or is not there.
pub(crate) fn order_load(
    args: &LoadArgs,
    resolver: &Resolver,
    generator: Generator,
    prepared: &PreparedLoad,
    clock: SystemClock,
) -> Result<OrderedLoad, Mistake> {
    let refused = |why: &str| wrong(format!("--generator {}: {why}", generator.name()));
    let (plan, endpoints) = (&prepared.plan, &prepared.shape.transport.endpoints);
    if endpoints.iter().any(|endpoint| !matches!(endpoint, Endpoint::Tcp(_))) {
        return Err(refused("it needs a TCP address"));
    }
    let target = TargetUrl::parse(args.url.as_deref().unwrap_or_default())?;
    if target.tls && !args.insecure {
        return Err(refused("it is run so that it takes any certificate: say so with --insecure"));
    }
    let template = template(args)?;
    let own_host = template.headers.iter().find(|header| header.is("host")).and_then(RequestHeader::value);
    // The other generator is given the name, by which it asks for a certificate; or the very address that was checked
    // where only some may be connected to, or was chosen.
    let gives_name = resolver.allowed.is_none() && resolver.version.is_none() && resolver.given.is_empty();
    let scheme = if target.tls { "https" } else { "http" };
    let url = if gives_name { target.to_string() } else { format!("{scheme}://{}{}", endpoints[0], target.path) };
    let is_name = target.host.parse::<IpAddr>().is_err() && !gives_name;
    let named = is_name.then(|| target.authority.clone());
    let host = own_host.map(|host| String::from_utf8_lossy(host).into_owned()).or(named);
    if let Some(header) = template.headers.iter().find(|header| header.value().is_none()) {
        return Err(refused(&format!("it cannot leave out a header: take away -H '{}:'", header.name())));
    }
    let line = |header: &RequestHeader| {
        format!("{}: {}", header.name(), String::from_utf8_lossy(header.value().unwrap_or_default()))
    };
    if plan.length.is_some() && plan.requests_total.is_some() {
        return Err(refused("give --for or -n: what comes first ends only our own runs"));
    }
    let credentials = target.credentials.as_ref().map(RequestHeader::basic_auth).transpose()?;
    let own = template.headers.iter().filter(|header| !header.is("host")).map(line);
    let mut order = LoadOrder {
        host,
        time: plan.length,
        requests: plan.requests_total,
        warm_up: plan.warm_up,
        rate: args.rate,
        rate_per_connection: args.per_connection_rate,
        keep_alive: plan.keep_alive,
        timeout: plan.timeout,
        method: Some(template.method.to_string()).filter(|method| method != "GET"),
        headers: own.chain(credentials.as_ref().map(line)).collect(),
        body: template.body.is_some().then(|| "body".into()),
        ..LoadOrder::closed_loop(&url, plan.connections, plan.lanes)
    };
    generator.check_order(&order)?;
    let driver = GeneratorDriver::new(InstalledGenerator::on_path(generator)?, clock)?;
    order.body = template.body.map(|body| driver.keep_body(&body)).transpose()?;
    Ok(OrderedLoad { driver, order })
}

impl OrderedLoad {
    /// Runs it. `Ok(None)` where the user ended it: what another generator has not finished has no figures.
    ///
    /// # Errors
    /// Where the generator fails, or what it prints is not understood.
    pub(crate) fn conduct(self, prepared: PreparedLoad, context: &Context<'_>) -> Result<Option<LoadStudy>, Mistake> {
        let OrderedLoad { driver, order } = self;
        let progress = Ui::new();
        let length = order.time.map(|time| format!(" for {}", time + order.warm_up)).unwrap_or_default();
        progress.working(&format!("{} makes the load{length}", driver.name()));
        // Before this thread is kept to some of its processors, as then the generator is too.
        let environment = sweep::environment(context.version);
        let kept = CpuRestriction::off_the_server(prepared.placement.as_ref());
        let ended = || context.interrupt.load(Ordering::Relaxed);
        let done = sweep::observe_claimed(prepared.server.is_here(), || driver.run(&order, &ended));
        drop((kept, progress));
        let failed = |why| wrong(format!("--generator {}: {why}", driver.name()));
        let Some((ClaimedRun { claim, elapsed, found }, generator)) = done.map_err(failed)? else {
            ui::note(&format!("interrupted: {} had not finished, so there is nothing to report", driver.name()));
            return Ok(None);
        };
        let run = Run { generator, warnings: found, ..Run::claimed(prepared.plan.connections, claim, elapsed) };
        Ok(Some(LoadStudy { name_resolution: None, ..prepared.study(run, environment, context) }))
    }
}
