//! The kinds of socket that a server can be bound to.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The kind of socket the server is bound to.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Display,
    IntoStaticStr,
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
    /// Whether it is plain TCP, which every server can bind.
    pub fn is_plain_tcp(self) -> bool {
        matches!(self, Socket::Tcp4 | Socket::Tcp6)
    }

    /// Whether it is a Unix socket.
    pub fn is_unix(self) -> bool {
        matches!(self, Socket::Unix | Socket::Aunix)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
