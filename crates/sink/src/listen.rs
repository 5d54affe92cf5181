//! Where a sink listens, as a person writes it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Bytes of a Unix socket's address in the kernel (unix(7), `sun_path`); an abstract name or a path has one less.
const UNIX_ADDRESS: usize = 108;

/// One place to listen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listen {
    /// The address.
    pub place: ListenAddress,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// TCP, either version of IP; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in Linux's abstract namespace, its name without the leading zero byte.
    Abstract(String),
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Listen {
        Listen { place: ListenAddress::Tcp(address), tls: false }
    }
}

/// Parses to itself: `127.0.0.1:8080`, `tls://[::1]:8443`, `unix:///run/sink.sock`, `unix://@sink`.
impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = self.tls;
        match &self.place {
            ListenAddress::Tcp(address) if tls => write!(out, "tls://{address}"),
            ListenAddress::Tcp(address) => write!(out, "{address}"),
            ListenAddress::Unix(path) => write!(out, "{}unix://{}", if tls { "tls+" } else { "" }, path.display()),
            ListenAddress::Abstract(name) => write!(out, "{}unix://@{name}", if tls { "tls+" } else { "" }),
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
        let name = rest.strip_prefix('@');
        if !(1..UNIX_ADDRESS).contains(&name.unwrap_or(rest).len()) || rest.contains('\0') {
            return None;
        }
        name.map_or_else(|| ListenAddress::Unix(rest.into()), |name| ListenAddress::Abstract(name.to_owned()))
    } else {
        ListenAddress::Tcp(rest.parse().ok()?)
    };
    Some(Listen { place, tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_of_print_is_itself() {
        for text in [
            "127.0.0.1:8080",
            "[::1]:0",
            "tls://127.0.0.1:8443",
            "unix:///run/sink.sock",
            "unix://tmp/x",
            "unix://@sink",
            "tls+unix://@sink",
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!("tcp://127.0.0.1:1".parse::<Listen>().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!("ssl://127.0.0.1:1".parse::<Listen>().unwrap().to_string(), "tls://127.0.0.1:1");
    }
}
