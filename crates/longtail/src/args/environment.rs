//! The environment of Puma's own scripts: where Puma listens.

use launch::puma::Addresses;
use model::plan::quoted;

use crate::mistake::{Mistake, wrong};

const HOST4: &str = "PUMA_TEST_HOST4";
const HOST6: &str = "PUMA_TEST_HOST6";
const PORT: &str = "PUMA_TEST_PORT";
const CONTROL_PORT: &str = "PUMA_TEST_CTRL";

/// Where Puma listens.
///
/// # Errors
/// Where a port is no port.
pub(crate) fn addresses() -> Result<Addresses, Mistake> {
    let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let port = |name: &str| match text(name).map(|value| (value.parse::<u16>(), value)) {
        None => Ok(None),
        Some((Ok(port), _)) if port > 0 => Ok(Some(port)),
        Some((_, value)) => Err(wrong(format!("{name}='{value}' is no port: set it to 1 to 65535, or unset it"))),
    };
    let default = Addresses::default();
    Ok(Addresses {
        host4: text(HOST4).unwrap_or(default.host4),
        host6: text(HOST6).unwrap_or(default.host6),
        port: port(PORT)?,
        control_port: port(CONTROL_PORT)?,
    })
}

/// A command line with what of it counts in the environment in front: together they repeat a study here.
pub(crate) fn with_environment(command_line: &str) -> String {
    let set = [HOST4, HOST6, PORT, CONTROL_PORT]
        .iter()
        .filter_map(|name| std::env::var(name).ok().map(|value| format!("{name}={} ", quoted(&value))));
    set.collect::<String>() + command_line
}
