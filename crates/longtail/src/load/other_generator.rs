//! What another generator is asked for (`--generator wrk`), from the flags of a load.

use std::net::IpAddr;

use audit::LoadTool;
use engine::{Endpoint, Resolver};
use generators::{GeneratorDriver, InstalledGenerator, LoadOrder, OrderedLoad};
use model::SystemClock;
use model::secret::is_secret_name;
use requests::{RequestHeader, RequestTemplate, TargetUrl};
use sweep::PreparedLoad;

use super::what_is_sent::template;
use crate::args::LoadArgs;
use crate::exit::{Mistake, wrong};
use crate::{guard, ui};

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
