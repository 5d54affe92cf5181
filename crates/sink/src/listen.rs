//! Where a sink listens, as a person writes it.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use model::Endpoint;

/// One place to listen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listen {
    /// The address.
    pub place: Endpoint,
    /// Whether it speaks TLS.
    pub tls: bool,
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Listen {
        Listen { place: Endpoint::Tcp(address), tls: false }
    }
}

/// Parses to itself: `127.0.0.1:8080`, `tls://[::1]:8443`, `unix:///run/sink.sock`, `unix://@sink`.
impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = self.tls;
        match &self.place {
            Endpoint::Tcp(address) if tls => write!(out, "tls://{address}"),
            Endpoint::Tcp(address) => write!(out, "{address}"),
            Endpoint::Unix(path) => write!(out, "{}unix://{}", if tls { "tls+" } else { "" }, path.display()),
            Endpoint::Abstract(name) => write!(out, "{}unix://@{}", if tls { "tls+" } else { "" }, name.escape_ascii()),
        }
    }
}

/// As it is printed; `tcp://` may stand before an address, and `ssl://` means `tls://` as in Puma's words.
impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        parse(text).ok_or_else(|| {
            format!(
                "'{text}' is not an address to listen at: write 127.0.0.1:8080, [::1]:8080, tls://127.0.0.1:8443, unix:///run/sink.sock or unix://@name (a path or name of 107 bytes at most)"
            )
        })
    }
}

fn parse(text: &str) -> Option<Listen> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
    let tls = match scheme {
        "tcp" | "unix" => false,
        "tls" | "ssl" | "tls+unix" => true,
        _ => return None,
    };
    let place = if scheme.ends_with("unix") {
        Endpoint::unix(rest.as_ref()).ok().filter(|_| !rest.contains('\0'))?
    } else {
        Endpoint::Tcp(rest.parse().ok()?)
    };
    Some(Listen { place, tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_of_print_is_itself() {
        let sockets = ["unix:///run/sink.sock", "unix://tmp/x", "unix://@sink", "tls+unix://@sink"];
        for text in ["127.0.0.1:8080", "[::1]:0", "tls://127.0.0.1:8443"].into_iter().chain(sockets) {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!("tcp://127.0.0.1:1".parse::<Listen>().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!("ssl://127.0.0.1:1".parse::<Listen>().unwrap().to_string(), "tls://127.0.0.1:1");
    }
}
