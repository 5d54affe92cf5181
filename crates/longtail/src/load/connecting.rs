//! How a load connects, from its flags: to which addresses or socket, by TLS or not.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use engine::{Endpoint, Resolver, TlsOptions, TlsSettings, Transport};
use model::paths::what_is_there;
use model::{Clock as _, Nanos, SystemClock};
use requests::TargetUrl;

use crate::args::LoadArgs;
use crate::exit::{Mistake, wrong};

/// How a load connects.
pub(super) struct LoadConnecting {
    pub(super) transport: Transport,
    /// How long the name took; `None` where an address was given.
    pub(super) name_resolution: Option<Nanos>,
}

/// Resolves the name of the target, and reads certificates.
///
/// # Errors
/// If a flag is wrong, or the name has no address.
pub(super) fn connecting(
    args: &LoadArgs,
    resolver: &Resolver,
    clock: &SystemClock,
    target: &TargetUrl,
) -> Result<LoadConnecting, Mistake> {
    let asked_at = clock.now();
    let transport = transport(args, resolver, target)?;
    let is_name =
        args.unix.is_none() && args.connect_to.is_none() && target.host.parse::<IpAddr>().is_err();
    let name_resolution = if is_name { Some(clock.now() - asked_at) } else { None };
    Ok(LoadConnecting { transport, name_resolution })
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
