//! What the flags of a sweep mean together: a plan, or what contradicts itself.

use model::{Nanos, Plan, Probe, Stop};

use super::SweepArgs;
use crate::generators::{Generator, LoadOrder};
use crate::mistake::{Mistake, wrong};

impl SweepArgs {
    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<Plan, Mistake> {
        self.check_values()?;
        let server = self.server.server()?;
        if let Some(with) = self.generator {
            self.check_with(with)?;
        }
        if self.seed.is_some() || self.streams.is_some() || self.connections_per_stream.is_some() {
            return Err(wrong("--seed, -T and --connections-per-stream belong to --bodies: add it"));
        }
        let stop = self.requests_per_connection.map_or(Stop::After(self.length), Stop::RequestsPerConnection);
        Ok(Plan {
            server,
            stream: self.server.stream(stop, self.warm_up)?,
            multiples: match (self.connections.is_empty(), self.multiples.is_empty()) {
                (true, true) => Plan::MULTIPLES.to_vec(),
                (true, false) => self.multiples.clone(),
                (false, _) => Vec::new(),
            },
            connections: self.connections.clone(),
            repeat: self.repeat,
            cool_down: !self.no_cool_down,
            // The ceiling that we could measure is ours and not the other generator's.
            calibrate: !self.no_calibrate && self.generator.is_none(),
            probe_discipline: self.probe_discipline,
            with: self.generator.map(|with| with.name().to_owned()),
            probe: self.probe()?,
            statsd_listen: self.outlets.statsd_listen,
            thresholds: self.thresholds.all(),
        })
    }

    /// Refuses a value that cannot be, whatever the others are.
    pub(super) fn check_values(&self) -> Result<(), Mistake> {
        self.outlets.check()?;
        self.server.puma.check()
    }

    /// What is read meanwhile. Of another generator's run nobody knows when its warm-up is over.
    fn probe(&self) -> Result<Probe, Mistake> {
        let asked = self.server.probe()?;
        match self.generator {
            None => Ok(asked.unwrap_or(Probe::Auto)),
            Some(_) if matches!(asked, None | Some(Probe::None)) && !self.server.inspect.asks_app() => Ok(Probe::None),
            Some(with) => {
                Err(wrong(format!("--inspect is of our own runs: leave it out with --generator {}", with.name())))
            }
        }
    }

    /// Refuses what the other generator cannot do, whatever the number of connections will be.
    fn check_with(&self, with: Generator) -> Result<(), Mistake> {
        let (name, socket) = (with.name(), self.server.socket_kind()?);
        if socket.is_unix() {
            return Err(wrong(format!("--generator {name}: it knows no Unix socket: leave out -s {socket}")));
        }
        with.check(&self.thresholds.all())?;
        let shares_evenly = matches!(with, Generator::Hey | Generator::H2load);
        if self.requests_per_connection.is_some() && !shares_evenly {
            return Err(wrong(format!("--generator {name}: it cannot give each connection -R requests: give --for")));
        }
        let order = LoadOrder {
            time: self.requests_per_connection.is_none().then_some(self.length),
            requests: self.requests_per_connection,
            warm_up: self.warm_up.unwrap_or(Nanos::ZERO),
            keep_alive: !self.server.no_keep_alive,
            timeout: self.server.timeout,
            ..LoadOrder::closed_loop("", 1, self.server.lanes())
        };
        with.check_order(&order)?;
        if self.server.body.is_some() && self.server.puma.rackup.is_some() {
            return Err(wrong(format!(
                "--generator {name} asks for a path alone: leave out -r, or give --path in place of --body"
            )));
        }
        Ok(())
    }
}
