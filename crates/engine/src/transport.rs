//! How a run's connections are made: everything about them that is settled before the start.
//!
//! Certificates are read here, once, and names are resolved by `resolve`. What comes out is plain data that every lane copies; nothing
//! of a measured connection waits for a name server or a disk.

use std::net::{IpAddr, SocketAddr};

use model::Endpoint;
use serde::{Deserialize, Serialize};

use crate::connect::try_source;
use crate::error::EngineError;
use crate::tls::TlsSettings;

/// How the connections of a run are made.
///
/// Connections are numbered through the whole run, over all lanes. Connection `i` goes to endpoint `i % endpoints`, and
/// each endpoint's connections go round the source addresses of its family in their turn, so that every pair is used
/// and none more than once oftener than another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transport {
    /// Where to connect; never empty.
    pub endpoints: Vec<Endpoint>,
    /// Addresses of this machine to connect from; empty: the kernel chooses.
    pub source_ips: Vec<IpAddr>,
    /// TLS over these connections; `None` for none.
    pub tls: Option<TlsSettings>,
}

impl Transport {
    /// Plain TCP to one address.
    pub fn tcp(address: SocketAddr) -> Transport {
        Transport::plain(vec![Endpoint::Tcp(address)])
    }

    /// Plain connections, spread over `endpoints`.
    pub fn plain(endpoints: Vec<Endpoint>) -> Transport {
        Transport { endpoints, source_ips: Vec::new(), tls: None }
    }

    /// Whether a connection goes over TCP to an address that is not loopback.
    pub(crate) fn leaves_loopback(&self) -> bool {
        let is_far = |endpoint: &Endpoint| endpoint.tcp().is_some_and(|to| !to.ip().to_canonical().is_loopback());
        self.endpoints.iter().any(is_far)
    }

    /// Whether connections can be made like this, as far as this machine can tell without connecting. Once, before the
    /// start: a lane that cannot use an address can only say which error the kernel gave.
    ///
    /// # Errors
    /// Where an address cannot be used.
    ///
    /// # Panics
    /// Where there is no endpoint: our bug.
    pub fn check(&self) -> Result<(), EngineError> {
        assert!(!self.endpoints.is_empty(), "a transport has an endpoint");
        for address in &self.source_ips {
            try_source(*address).map_err(|errno| {
                EngineError(format!(
                    "cannot connect from {address}: {errno} (--source-ip takes addresses of this machine)"
                ))
            })?;
        }
        for endpoint in &self.endpoints {
            let can_reach = |source: &IpAddr| endpoint.tcp().is_some_and(|to| to.is_ipv4() == source.is_ipv4());
            if !self.source_ips.is_empty() && !self.source_ips.iter().any(can_reach) {
                return Err(EngineError(format!(
                    "no --source-ip can reach {endpoint}: give one of its kind (IPv4 or IPv6; none for a Unix socket)"
                )));
            }
        }
        Ok(())
    }
}
