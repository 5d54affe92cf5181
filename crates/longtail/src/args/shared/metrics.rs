//! Flags for metrics besides the report: statsd in and out, Prometheus, OTLP. Listeners bind to
//! loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use engine::Resolver;
use model::{HostPort, Nanos};

use crate::args::ADVANCED;
use crate::exit::{Mistake, refuse_if, wrong};

/// Figures in and out.
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
#[derive(Clone, Debug, Args)]
pub(crate) struct OutletArgs {
    /// Record what app and server send by statsd during a run, such as 127.0.0.1:8125 (port 0: any
    /// free one); a server that longtail starts gets STATSD_HOST, STATSD_PORT and STATSD_ADDR
    #[arg(long, value_name = "HOST:PORT", value_parser = listened_to, conflicts_with = "generator", help_heading = ADVANCED)]
    pub(crate) statsd_listen: Option<SocketAddr>,
    /// Send the results of each run, and live figures once a second, by DogStatsD
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "generator", help_heading = ADVANCED)]
    pub(crate) statsd_to: Option<HostPort>,
    /// Let Prometheus scrape live figures and results at this address, such as 127.0.0.1:9464,
    /// under /metrics
    #[arg(long, value_name = "HOST:PORT", value_parser = listened_to, conflicts_with = "generator", help_heading = ADVANCED)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Keep that address open after the last run, so that its results are scraped
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = ADVANCED)]
    pub(crate) metrics_linger: Nanos,
    /// Send the results of each run by OTLP (protobuf over HTTP), such as to http://127.0.0.1:4318
    #[arg(long, value_name = "URL", value_parser = otlp_url, conflicts_with = "generator", help_heading = ADVANCED)]
    pub(crate) otlp: Option<OtlpUrl>,
}

/// Where OTLP goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtlpUrl {
    pub(crate) place: HostPort,
    /// With which path: `/v1/metrics` behind the URL's own, unless it ends so already.
    pub(crate) path: String,
}

impl std::fmt::Display for OtlpUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "http://{}{}", self.place, self.path)
    }
}

/// The first address of a receiver.
///
/// # Errors
/// Where it has none, or none that may be connected to; `flag` is what named it.
pub(crate) fn receiver_address(
    receiver: &HostPort,
    flag: &str,
    resolver: &Resolver,
) -> Result<SocketAddr, Mistake> {
    let found = resolver
        .resolve(&receiver.host, receiver.port)
        .map_err(|error| wrong(format!("{flag}: {error}")))?;
    Ok(found[0])
}

impl OutletArgs {
    /// Whether a figure comes in or goes out.
    pub(crate) fn is_any(&self) -> bool {
        let is_out = self.statsd_to.is_some() || self.metrics.is_some() || self.otlp.is_some();
        is_out || self.statsd_listen.is_some() || self.metrics_linger > Nanos::ZERO
    }

    /// Refuses what cannot be, before any load is sent.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        if self.statsd_to.as_ref().is_some_and(|to| to.port == 0) {
            return Err(wrong("--statsd-to wants the port of a receiver, such as 127.0.0.1:8125"));
        }
        let to = self.statsd_to.as_ref().and_then(|to| listened_to(&to.to_string()).ok());
        refuse_if(
            to.is_some() && to == self.statsd_listen,
            "--statsd-to and --statsd-listen are one address: longtail would receive its own figures; change one port",
        )?;
        if self.metrics_linger > Nanos::ZERO && self.metrics.is_none() {
            return Err(wrong(
                "--metrics-linger belongs to --metrics: give it an address such as 127.0.0.1:9464",
            ));
        }
        refuse_if(
            self.metrics_linger > Nanos::from_secs(86_400),
            "--metrics-linger is a day at most, such as 30s",
        )?;
        Ok(())
    }
}

/// An address to listen at: of this machine's loopback, so that nobody else can send to it or read
/// from it.
fn listened_to(text: &str) -> Result<SocketAddr, String> {
    let HostPort { host, port } = text.parse()?;
    let ip: Option<IpAddr> = match &*host {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        host => host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
            .parse()
            .ok(),
    };
    match ip {
        Some(ip) if ip.is_loopback() => Ok(SocketAddr::new(ip, port)),
        _ => Err(format!(
            "'{host}' is not this machine's loopback: write 127.0.0.1, [::1] or localhost"
        )),
    }
}

fn otlp_url(text: &str) -> Result<OtlpUrl, String> {
    let rest = text
        .strip_prefix("http://")
        .ok_or("write http://HOST:PORT, such as http://127.0.0.1:4318")?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if path.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'?' | b'#')) {
        return Err("its path has characters that a path cannot have".to_owned());
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // OTLP's own port (its specification, "Default port").
    let place: HostPort =
        if has_port { authority.parse()? } else { format!("{authority}:4318").parse()? };
    if place.port == 0 {
        return Err("port 0 is no receiver's: write http://127.0.0.1:4318".to_owned());
    }
    let base = path.trim_end_matches('/');
    let path =
        if base.ends_with("/v1/metrics") { base.to_owned() } else { format!("{base}/v1/metrics") };
    Ok(OtlpUrl { place, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More values that are refused are in `tests/cli/mistakes.txt`.
    #[test]
    fn only_loopback_is_listened_to_and_otlp_has_its_port_and_path() {
        let listened = |text| listened_to(text).ok().map(|address| address.to_string());
        let otlp = |text| otlp_url(text).ok().map(|url| url.to_string());
        for (heard, expected) in [
            (listened("127.9.9.9:1"), "127.9.9.9:1"),
            (listened("[::1]:8125"), "[::1]:8125"),
            (listened("localhost:0"), "127.0.0.1:0"),
            (otlp("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/metrics"),
            (otlp("http://localhost/"), "http://localhost:4318/v1/metrics"),
            (otlp("http://[::1]:9090/api/v1/otlp"), "http://[::1]:9090/api/v1/otlp/v1/metrics"),
            (otlp("http://127.0.0.1:1/v1/metrics"), "http://127.0.0.1:1/v1/metrics"),
        ] {
            assert_eq!(heard.as_deref(), Some(expected));
        }
        let none = ["[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", "::1:1", "127.0.0.1", ":1", ""]
            .map(listened);
        assert!(
            none.iter()
                .chain(&["http://:4318", "http://127.0.0.1:0", "http://127.0.0.1:1/a b"].map(otlp))
                .all(Option::is_none)
        );
    }
}
