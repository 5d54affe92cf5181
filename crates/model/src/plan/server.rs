//! The server of a study: which one, how it is started, on which kind of socket, and the flags that ask for it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::Cpus;

/// The server and how to start it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Which server.
    pub kind: ServerKind,
    /// `-w`: worker processes, 0 for single mode; `None` leaves it to the config file.
    pub workers: Option<u32>,
    /// `-t`: threads a worker; `None` leaves it to the config file.
    pub threads: Option<Threads>,
    /// `-r`: the rackup file; `None` is an app that longtail brings.
    pub rackup: Option<PathBuf>,
    /// `--app`: which of them.
    pub app: App,
    /// `-C`: Puma's config file.
    pub config: Option<PathBuf>,
    /// `-Y`: start Ruby with YJIT.
    pub yjit: bool,
    /// `-s`: the kind of socket to bind.
    pub socket: Socket,
    /// `--server-cpus`: the processors that it may run on; `None` where it may run wherever longtail may.
    pub cpus: Option<Cpus>,
    /// `--server-address`: the address of this machine that it listens on, for generators on other machines; `None` is loopback.
    pub address: Option<IpAddr>,
}

/// Which server to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerKind {
    /// Puma, by this command (words split as a shell does at spaces), or the one that is found.
    Puma {
        /// `--puma`: the command that starts it.
        command: Option<String>,
    },
    /// The server inside longtail.
    Builtin,
    /// Any other command that serves `url` with `slots` slots.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// What it can process at once.
        slots: u32,
        /// Where it will answer.
        url: String,
    },
}

/// The apps that longtail brings, for a Puma without a rackup file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// `servers/sleep.ru`: Rack alone.
    #[default]
    Sleep,
    /// `servers/rails`: an API in Rails, which must be installed.
    Rails,
    /// `servers/bodies.ru`: Rack alone, bodies of four kinds and any size.
    Bodies,
}

/// Threads of one Puma worker, as `-t MIN:MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// Threads it starts with.
    pub min: u32,
    /// Threads it grows to.
    pub max: u32,
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Threads, String> {
        let (min, max) = text.split_once(':').unwrap_or((text, text));
        let threads = min.parse().ok().zip(max.parse().ok()).map(|(min, max)| Threads { min, max });
        threads.filter(|threads| threads.max > 0 && threads.min <= threads.max).ok_or_else(|| {
            format!("'{text}' is not a number of threads: write MIN:MAX such as 5:5 or 0:16, the maximum at least 1")
        })
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.min, self.max)
    }
}

/// The kind of socket the server is bound to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Socket {
    /// IPv4, 127.0.0.1 unless `PUMA_TEST_HOST4` says otherwise.
    #[default]
    Tcp4,
    /// IPv6, `::1` unless `PUMA_TEST_HOST6` says otherwise.
    Tcp6,
    /// TLS over IPv4.
    Ssl4,
    /// TLS over IPv6.
    Ssl6,
    /// A Unix socket in the file system.
    Unix,
    /// A Unix socket in Linux's abstract namespace.
    Aunix,
}

impl Socket {
    /// Whether it is TCP with nothing on top, which every server can bind.
    pub fn is_plain_tcp(self) -> bool {
        matches!(self, Socket::Tcp4 | Socket::Tcp6)
    }

    /// Whether it is no TCP at all.
    pub fn is_unix(self) -> bool {
        matches!(self, Socket::Unix | Socket::Aunix)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_as_puma_does() {
        assert_eq!("5:5".parse(), Ok(Threads { min: 5, max: 5 }));
        assert_eq!("0:16".parse(), Ok(Threads { min: 0, max: 16 }));
        assert_eq!("4".parse(), Ok(Threads { min: 4, max: 4 }));
        for text in ["", "5:", "5:2", "0:0", "a:b", "-1:5"] {
            assert!(text.parse::<Threads>().is_err(), "{text}");
        }
    }
}
