//! What the flags of `sweep --bodies` mean together.

use model::{App, BodiesPlan, Probe, ServerKind, Stop};

use super::SweepArgs;
use crate::args::server::ServerWord;
use crate::mistake::{Mistake, wrong};

impl SweepArgs {
    /// A flag that says something about other sweeps only, where there is one.
    fn not_of_bodies(&self) -> Option<&'static str> {
        let given = [
            (self.server.path.is_some(), "--path"),
            (self.server.body.is_some(), "--body"),
            (self.server.app.is_some(), "--app"),
            (self.server.which != ServerWord::Puma, "--server builtin"),
            (self.server.url.is_some(), "--url"),
            (self.server.slots.is_some(), "--slots"),
            (!self.server.command.is_empty(), "-- COMMAND"),
            (!self.multiples.is_empty(), "--multiples (-c N sets the connections)"),
            (self.connections.len() > 1, "a list of -c"),
            (self.requests_per_connection.is_some(), "-R"),
            (self.probe_discipline, "--probe-discipline"),
            (self.generator.is_some(), "--generator"),
            (self.server.inspect.asks_app(), "--inspect app"),
            (self.outlets.is_any(), "--statsd-listen, --statsd-to, --metrics and --otlp"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// All that was asked of a sweep over bodies, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn bodies_plan(&self) -> Result<BodiesPlan, Mistake> {
        if let Some(flag) = self.not_of_bodies() {
            return Err(wrong(format!("--bodies goes without {flag}: leave out one of the two")));
        }
        self.check_values()?;
        let sockets = &self.server.socket;
        if let Some((_, twice)) = sockets.iter().enumerate().find(|(at, socket)| sockets[..*at].contains(socket)) {
            return Err(wrong(format!("-s has {twice} twice: name each kind of socket once (--repeat N repeats all)")));
        }
        // A body is little work: what the tracepoints cost would show.
        let probe = self.server.inspect.probe(sockets)?.filter(|probe| *probe != Probe::Auto).unwrap_or(Probe::Proc);
        let (connections_per_stream, streams) = match self.connections.first() {
            Some(connections) => (*connections, Some(self.streams.unwrap_or(1))),
            None => (self.connections_per_stream.unwrap_or(BodiesPlan::CONNECTIONS_PER_STREAM), self.streams),
        };
        let puma = ServerKind::Puma { command: self.server.puma.puma.clone() };
        Ok(BodiesPlan {
            server: self.server.reached(self.server.puma.server(puma, App::Bodies, sockets[0]))?,
            stream: self.server.stream_as_given(Stop::After(self.length), self.warm_up)?,
            sockets: sockets.clone(),
            bodies: self.bodies.clone().unwrap_or_default(),
            connections_per_stream,
            streams,
            repeat: self.repeat,
            seed: self.seed.unwrap_or(1),
            cool_down: !self.no_cool_down,
            calibrate: !self.no_calibrate,
            probe,
            thresholds: self.thresholds.all(),
        })
    }
}
