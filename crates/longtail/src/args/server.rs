//! Which server is started, and how: the flags of a Puma, which `sweep` and `overhead` share, and the words for kinds of
//! server and socket. Where Puma listens is said by its environment (`environment.rs`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use launch::affinity;
use model::{App, Cpus, Nanos, ServerKind, ServerPlan, Socket, Threads};

use super::ADVANCED;
use super::limits::check_threads;
use crate::mistake::{Mistake, wrong};

/// The servers that longtail knows how to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub(super) enum ServerWord {
    /// Puma, as --puma says or as it is found
    #[default]
    Puma,
    /// The server inside longtail: the same workers x threads, and a sleep
    Builtin,
}

/// The kinds of socket that a server can be bound to.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SocketWord {
    /// IPv4
    #[default]
    #[value(alias = "tcp")]
    Tcp4,
    /// IPv6
    Tcp6,
    /// TLS over IPv4, with a certificate made for the run
    #[value(alias = "ssl")]
    Ssl4,
    /// TLS over IPv6
    Ssl6,
    /// Unix socket, in a private directory
    Unix,
    /// Abstract Unix socket
    Aunix,
}

impl SocketWord {
    pub(super) fn socket(self) -> Socket {
        match self {
            SocketWord::Tcp4 => Socket::Tcp4,
            SocketWord::Tcp6 => Socket::Tcp6,
            SocketWord::Ssl4 => Socket::Ssl4,
            SocketWord::Ssl6 => Socket::Ssl6,
            SocketWord::Unix => Socket::Unix,
            SocketWord::Aunix => Socket::Aunix,
        }
    }
}

/// How a Puma is started.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct PumaArgs {
    /// Worker processes; 0 is single mode [default: the config file's, or 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    workers: Option<u32>,
    /// Threads of each worker [default: the config file's, or 5:5]
    #[arg(short, long, value_name = "MIN:MAX")]
    threads: Option<Threads>,
    /// Rackup file of your app [default: an app that sleeps]
    #[arg(short, long, value_name = "FILE")]
    rackup: Option<PathBuf>,
    /// Puma's config file
    #[arg(short = 'C', long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start Ruby with YJIT
    #[arg(short = 'Y', long, help_heading = ADVANCED)]
    yjit: bool,
    /// Command that starts Puma [default: bundle exec puma in a bundle, bin/puma in a checkout, or puma]
    #[arg(long, value_name = "CMD", help_heading = ADVANCED)]
    puma: Option<String>,
    /// CPUs for the server alone, such as 0-2; the generator runs on the others [default: all are shared]
    #[arg(long, value_name = "LIST", help_heading = ADVANCED)]
    server_cpus: Option<Cpus>,
    /// How long the server may take to start
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = ADVANCED)]
    pub(crate) boot_timeout: Nanos,
}

impl PumaArgs {
    /// Refuses what no Puma can be.
    ///
    /// # Errors
    /// Where there are too many threads, or CPUs that we have not, or all of those.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        check_threads(self.threads)?;
        let (Some(asked), Some(ours)) = (&self.server_cpus, affinity::ours()) else { return Ok(()) };
        if !ours.contain(asked) {
            return Err(wrong(format!("--server-cpus {asked}: longtail may run on {ours}; choose among those")));
        }
        if ours == *asked {
            return Err(wrong(format!(
                "--server-cpus {asked} leaves no CPU to the generator: leave one out, or leave out the flag"
            )));
        }
        Ok(())
    }

    /// Puma, started as these flags say.
    pub(super) fn kind(&self) -> ServerKind {
        ServerKind::Puma { command: self.puma.clone() }
    }

    /// Whether there is a flag that no other server has.
    pub(super) fn asks_for_puma(&self) -> bool {
        self.has_rackup() || self.config.is_some() || self.yjit || self.puma.is_some()
    }

    /// Workers x threads, where one of them was given: what is left out is one.
    pub(super) fn size(&self) -> Option<u32> {
        let is_given = self.workers.is_some() || self.threads.is_some();
        let threads = self.threads.map_or(1, |threads| threads.max);
        is_given.then(|| self.workers.unwrap_or(0).max(1).saturating_mul(threads))
    }

    /// Whether the app is the user's own.
    pub(super) fn has_rackup(&self) -> bool {
        self.rackup.is_some()
    }

    /// A server of that kind with that app on that socket, and all else as these flags say.
    pub(super) fn server(&self, kind: ServerKind, app: App, socket: Socket) -> ServerPlan {
        let is_command = matches!(kind, ServerKind::Command { .. });
        let default_threads = (self.config.is_none() && !is_command).then_some(Threads { min: 5, max: 5 });
        ServerPlan {
            kind,
            workers: self.workers,
            threads: self.threads.or(default_threads),
            rackup: self.rackup.clone(),
            app,
            config: self.config.clone(),
            yjit: self.yjit,
            socket,
            cpus: self.server_cpus.clone(),
        }
    }
}
