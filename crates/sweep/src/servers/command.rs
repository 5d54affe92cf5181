//! Any other server: a command of the user's, of which only its slots and its URL are known.

use std::path::{Path, PathBuf};

use launch::{LaunchSpec, ServerBind};
use model::{ServerFacts, ServerPlan};
use probe::sockets::ServerListener;
use queueing::discipline::{ConnectionDealing, ServiceOrder};

use super::server_under_test::{
    PlannedSize, Preparation, ServedLoad, ServerAddress, ServerUnderTest,
};
use crate::block::Block;
use crate::context::{Context, SweepError};

pub(super) struct CommandServer<'a> {
    pub(super) plan: &'a ServerPlan,
    pub(super) argv: &'a [String],
    pub(super) slots: u32,
    pub(super) url: &'a str,
}

impl CommandServer<'_> {
    fn unusable(&self, why: &str) -> SweepError {
        SweepError::Unusable(format!("'{}' cannot be used as --url: {why}", self.url))
    }
}

impl ServerUnderTest for CommandServer<'_> {
    fn prepare(&self, block: &Block, context: &Context<'_>) -> Result<Preparation, SweepError> {
        let rest = self
            .url
            .strip_prefix("http://")
            .ok_or_else(|| self.unusable("write http://HOST:PORT/PATH"))?;
        let (authority, own_path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let host_and_port = if has_port(authority) { authority.rsplit_once(':') } else { None };
        let (host, port) = host_and_port.unwrap_or((authority, "80"));
        let port =
            port.parse().map_err(|_| self.unusable("its port is no number from 1 to 65535"))?;
        let found = context.resolver.resolve(host, port);
        let address = found.map_err(|error| self.unusable(&error.to_string()))?[0];
        if !address.ip().is_loopback() {
            return Err(self
                .unusable("a server that is started here must answer on this machine's loopback"));
        }
        let listening = ServerListener::of_port(address.port()).sample();
        if listening.is_ok_and(|sockets| sockets.listening) {
            return Err(self.unusable(
                "something listens on that port already, and would be measured in its place",
            ));
        }
        let asked = block.stream.path.as_ref().map(|path| path.exposed().clone());
        let path = match asked {
            Some(path) => path,
            None if own_path == "/" => block.stream.target_path().exposed().clone(),
            None => own_path.to_owned(),
        };
        let program = Path::new(&self.argv[0]).file_name();
        let dir = block.dir.as_ref().unwrap_or(&context.dir);
        let spec = LaunchSpec::command(self.argv, dir);
        Ok(Preparation {
            spec: LaunchSpec { cpus: self.plan.cpus.clone(), ..spec },
            name: program
                .map_or_else(|| self.argv[0].clone(), |name| name.to_string_lossy().into_owned()),
            url: format!("http://{authority}{path}"),
            reached: ServerAddress {
                bind: ServerBind::tcp(address),
                authority: authority.to_owned(),
                path,
                control: None,
            },
        })
    }

    fn planned_size(&self) -> PlannedSize {
        match (self.plan.workers, self.plan.threads) {
            (None, None) => PlannedSize { workers: 1, threads: self.slots },
            (workers, threads) => PlannedSize {
                workers: workers.unwrap_or(1).max(1),
                threads: threads.map_or(1, |threads| threads.max),
            },
        }
    }

    fn checkout(&self, dir: &Path) -> Option<PathBuf> {
        Some(dir.to_owned())
    }

    fn service_order(&self, _: &ServerFacts, load: &ServedLoad) -> ServiceOrder {
        ServiceOrder { dealing: ConnectionDealing::Unknown, ..load.unknown_order() }
    }
}

/// Whether an authority (`host`, `host:port`, `[::1]`, `[::1]:port`) names a port.
fn has_port(authority: &str) -> bool {
    authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_without_a_port_is_seen() {
        let with_port = ["h:80", "[::1]:80", "127.0.0.1:9"];
        let without = ["h", "[::1]", "127.0.0.1", "h:"];
        assert!(with_port.into_iter().all(has_port) && !without.into_iter().any(has_port));
    }
}
