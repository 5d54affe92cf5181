//! Where figures come from and go to beside the report: statsd, Prometheus, OTLP. All of it on this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use model::Nanos;

use crate::mistake::{Mistake, wrong};

const HEADING: &str = "Figures in and out";

/// Figures in and out.
#[derive(Clone, Debug, Args)]
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
pub(crate) struct OutletArgs {
    /// Listen to what app and server send by statsd (DogStatsD too) during a run, such as 127.0.0.1:8125; port 0 is any that is free.
    /// A server that is started is told by STATSD_HOST, STATSD_PORT and STATSD_ADDR
    #[arg(long, value_name = "HOST:PORT", value_parser = place, conflicts_with = "with", help_heading = HEADING)]
    pub(crate) statsd_listen: Option<SocketAddr>,
    /// Send the figures of each run by DogStatsD, such as 127.0.0.1:8125, and once a second how things stand
    #[arg(long, value_name = "HOST:PORT", value_parser = place, conflicts_with = "with", help_heading = HEADING)]
    pub(crate) statsd_to: Option<SocketAddr>,
    /// Let Prometheus scrape how things stand and the figures of finished runs, such as 127.0.0.1:9464, at /metrics
    #[arg(long, value_name = "HOST:PORT", value_parser = place, conflicts_with = "with", help_heading = HEADING)]
    pub(crate) metrics: Option<SocketAddr>,
    /// For so long after the last run too, so that its figures are scraped; Ctrl-C ends it
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = HEADING)]
    pub(crate) metrics_linger: Nanos,
    /// Send the figures of each run by OTLP, such as http://127.0.0.1:4318, as protobuf over HTTP
    #[arg(long, value_name = "URL", value_parser = otlp_url, conflicts_with = "with", help_heading = HEADING)]
    pub(crate) otlp: Option<OtlpUrl>,
}

/// Where OTLP goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtlpUrl {
    pub(crate) address: SocketAddr,
    /// With which path: `/v1/metrics` behind the URL's own, unless it ends so already.
    pub(crate) path: String,
}

impl std::fmt::Display for OtlpUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "http://{}{}", self.address, self.path)
    }
}

impl OutletArgs {
    /// Refuses what cannot be, before any load is sent.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        if self.statsd_to.is_some_and(|to| to.port() == 0) {
            return Err(wrong("--statsd-to wants the port of a receiver, such as 127.0.0.1:8125"));
        }
        if self.statsd_to.is_some() && self.statsd_to == self.statsd_listen {
            return Err(wrong(
                "--statsd-to and --statsd-listen are one address: longtail would hear itself; change one port",
            ));
        }
        if self.metrics_linger > Nanos::ZERO && self.metrics.is_none() {
            return Err(wrong("--metrics-linger belongs to --metrics: give it an address such as 127.0.0.1:9464"));
        }
        if self.metrics_linger > Nanos::from_secs(86_400) {
            return Err(wrong("--metrics-linger is a day at most, such as 30s"));
        }
        Ok(())
    }
}

/// An address of this machine's loopback. No name but `localhost`: a name would have to be looked up elsewhere.
fn place(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT, such as 127.0.0.1:8125")?;
    let port = port.parse().map_err(|_| format!("'{port}' is no port: write HOST:PORT, such as 127.0.0.1:8125"))?;
    let ip: Option<IpAddr> = match host {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        _ => match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => host.parse().ok().filter(IpAddr::is_ipv6),
            None => host.parse().ok().filter(IpAddr::is_ipv4),
        },
    };
    match ip {
        Some(ip) if ip.is_loopback() => Ok(SocketAddr::new(ip, port)),
        _ => Err(format!("'{host}' is not this machine's loopback: write 127.0.0.1, [::1] or localhost")),
    }
}

fn otlp_url(text: &str) -> Result<OtlpUrl, String> {
    let rest = text.strip_prefix("http://").ok_or("write http://HOST:PORT, such as http://127.0.0.1:4318")?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if path.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'?' | b'#')) {
        return Err("its path has characters that are none of a path's".to_owned());
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // OTLP's own port (its specification, "Default port").
    let address = place(&if has_port { authority.to_owned() } else { format!("{authority}:4318") })?;
    if address.port() == 0 {
        return Err("port 0 is no receiver's: write http://127.0.0.1:4318".to_owned());
    }
    let base = path.trim_end_matches('/');
    let path = if base.ends_with("/v1/metrics") { base.to_owned() } else { format!("{base}/v1/metrics") };
    Ok(OtlpUrl { address, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_a_place() {
        for text in ["127.0.0.1:8125", "127.9.9.9:1", "[::1]:8125"] {
            assert_eq!(place(text).unwrap().to_string(), text);
        }
        assert_eq!(place("localhost:0").unwrap().to_string(), "127.0.0.1:0");
        let others =
            ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", "example.com:1", "::1:1", "127.0.0.1", ":1", ""];
        for text in others {
            assert!(place(text).is_err(), "{text}");
        }
        assert!(place("127.0.0.1:99999").unwrap_err().contains("99999"));
    }

    #[test]
    fn otlp_has_its_port_and_its_path() {
        let shown = |text| otlp_url(text).map(|url| url.to_string());
        assert_eq!(shown("http://127.0.0.1:4318"), Ok("http://127.0.0.1:4318/v1/metrics".to_owned()));
        assert_eq!(shown("http://localhost/"), Ok("http://127.0.0.1:4318/v1/metrics".to_owned()));
        assert_eq!(shown("http://[::1]:9090/api/v1/otlp"), Ok("http://[::1]:9090/api/v1/otlp/v1/metrics".to_owned()));
        assert_eq!(shown("http://127.0.0.1:1/v1/metrics"), Ok("http://127.0.0.1:1/v1/metrics".to_owned()));
        for text in [
            "127.0.0.1:4318",
            "https://127.0.0.1:4318",
            "http://192.0.2.1:4318",
            "http://127.0.0.1:0",
            "http://127.0.0.1:1/a b",
        ] {
            assert!(otlp_url(text).is_err(), "{text}");
        }
    }
}
