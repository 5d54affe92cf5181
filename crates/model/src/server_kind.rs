//! The kinds of server that longtail can start, and what it knows of each.
//!
//! All that other files need to know of a kind is a method here, so none of them matches on it, and
//! the compiler demands each answer of a new kind. How a kind is started and queried is in
//! `sweep/src/servers`.

use serde::{Deserialize, Serialize};

use crate::secret::Private;
use crate::socket::Socket;

/// Which server to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerKind {
    /// Puma, by this command (words split as a shell does at spaces), or the one that is found.
    Puma {
        /// `--puma`: the command that starts it.
        command: Option<Private<String>>,
    },
    /// The server inside longtail.
    Builtin,
    /// Any other command that serves `url` with `slots` slots.
    Command {
        /// Program and arguments.
        argv: Private<Vec<String>>,
        /// What it can process at once.
        slots: u32,
        /// Where it will respond.
        url: Private<String>,
    },
}

/// A server that `--server` knows by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedServer {
    /// The name.
    pub name: &'static str,
    /// Its line in the help.
    pub help: &'static str,
    /// Its kind, with no command given.
    pub kind: ServerKind,
}

impl ServerKind {
    /// The servers that have a name; the first is the default.
    pub const NAMED: [NamedServer; 2] = [
        NamedServer {
            name: "puma",
            help: "Puma, as --puma says or as it is found",
            kind: ServerKind::Puma { command: None },
        },
        NamedServer {
            name: "builtin",
            help: "The server inside longtail: the same workers x threads, and a sleep",
            kind: ServerKind::Builtin,
        },
    ];

    /// What it can process at once, if the user stated that because it is some command of theirs:
    /// then its workers, its threads and its app are the user's too, and longtail sets none of
    /// them.
    pub fn stated_slots(&self) -> Option<u32> {
        match self {
            ServerKind::Command { slots, .. } => Some(*slots),
            ServerKind::Puma { .. } | ServerKind::Builtin => None,
        }
    }

    /// Whether it takes Puma's flags: `-r`, `--app`, `-C`, `-Y`, `--puma`.
    pub fn takes_puma_flags(&self) -> bool {
        match self {
            ServerKind::Puma { .. } => true,
            ServerKind::Builtin | ServerKind::Command { .. } => false,
        }
    }

    /// Whether it runs an app that longtail brings and that answers with the body that a request
    /// names.
    pub fn serves_bodies(&self) -> bool {
        match self {
            ServerKind::Puma { .. } => true,
            ServerKind::Builtin | ServerKind::Command { .. } => false,
        }
    }

    /// Whether it can listen on such a socket.
    pub fn listens_on(&self, socket: Socket) -> bool {
        match self {
            ServerKind::Puma { .. } => true,
            ServerKind::Builtin | ServerKind::Command { .. } => socket.is_plain_tcp(),
        }
    }

    /// Whether it has an app that reads its environment.
    pub fn reads_environment(&self) -> bool {
        match self {
            ServerKind::Puma { .. } | ServerKind::Command { .. } => true,
            ServerKind::Builtin => false,
        }
    }

    /// Whether its threads share Ruby's lock, and `-w` gives it more workers.
    pub fn has_ruby_workers(&self) -> bool {
        match self {
            ServerKind::Puma { .. } => true,
            ServerKind::Builtin | ServerKind::Command { .. } => false,
        }
    }

    /// Whether it is whichever Puma can be found, because the user named none.
    pub fn has_to_be_found(&self) -> bool {
        *self == ServerKind::Puma { command: None }
    }
}
