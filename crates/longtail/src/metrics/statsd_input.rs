//! What comes in by statsd (`--statsd-listen`), and the settings by which a server finds it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Mutex;

use sweep::StatsdListener;

use super::taken;
use crate::exit::Mistake;
use crate::ui;

/// Settings by which apps find their statsd: puma-plugin-statsd and the statsd gems read the first
/// two, Shopify's statsd-instrument the third.
const SETTINGS: [&str; 3] = ["STATSD_HOST", "STATSD_PORT", "STATSD_ADDR"];

/// What comes in by statsd.
pub(crate) struct StatsdInput {
    /// Listens while runs go on.
    pub(crate) listener: Option<Mutex<StatsdListener>>,
    /// By which settings a server learns where to send.
    pub(crate) settings: BTreeMap<OsString, OsString>,
}

impl StatsdInput {
    /// Listens if it was asked for, and says where that is.
    ///
    /// # Errors
    /// If the address is taken.
    pub(crate) fn open(
        address: Option<SocketAddr>,
        starts_a_server: bool,
    ) -> Result<StatsdInput, Mistake> {
        let Some(address) = address else {
            return Ok(StatsdInput { listener: None, settings: BTreeMap::new() });
        };
        let socket = StatsdListener::bind(address)
            .map_err(|error| taken("--statsd-listen", address, &error))?;
        let address = socket.address();
        let already = SETTINGS.into_iter().find(|name| std::env::var_os(name).is_some());
        let mut settings = BTreeMap::new();
        let note = match already {
            _ if !starts_a_server => String::new(),
            Some(name) => format!("; {name} is set already and stays as it is"),
            None => {
                let values =
                    [address.ip().to_string(), address.port().to_string(), address.to_string()];
                settings = SETTINGS
                    .into_iter()
                    .map(OsString::from)
                    .zip(values.map(OsString::from))
                    .collect();
                format!("; the server finds it by {}", SETTINGS.join(", "))
            }
        };
        ui::note(&format!("listening to statsd at {address}{note}"));
        Ok(StatsdInput { listener: Some(Mutex::new(socket)), settings })
    }
}
