//! What the flags of a sweep mean together: a plan, or what contradicts itself.

use model::{App, Nanos, Plan, Probe, ServerKind, Socket, Stop, StreamPlan};

use super::{AppWord, SweepArgs};
use crate::args::limits::{check_path, check_timeout, check_times};
use crate::args::server::ServerWord;
use crate::args::timestamps::Situation;
use crate::generators::{Generator, LoadEnd, LoadOrder};
use crate::mistake::{Mistake, wrong};

impl SweepArgs {
    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<Plan, Mistake> {
        self.check_values()?;
        let kind = self.server_kind()?;
        let socket = self.socket_kind()?;
        let is_puma = matches!(kind, ServerKind::Puma { .. });
        if !socket.is_plain_tcp() && !is_puma {
            let server = if self.command.is_empty() { "--server builtin" } else { "a command after --" };
            return Err(wrong(format!("-s {socket} is for Puma: {server} listens on tcp4 or tcp6 only")));
        }
        if let Some(with) = self.generator {
            self.check_with(with)?;
        }
        if self.body.is_some() && !is_puma {
            return Err(wrong("--body is for Puma: no other server has an app that goes by it"));
        }
        if self.seed.is_some() || self.streams.is_some() || self.connections_per_stream.is_some() || self.like_seed {
            return Err(wrong("--seed, -T, --connections-per-stream and --like-seed belong to --bodies: add it"));
        }
        let is_own_app = !self.puma.has_rackup() && !matches!(kind, ServerKind::Command { .. });
        Ok(Plan {
            server: self.puma.server(kind, self.app(), socket),
            stream: self.stream(is_own_app)?,
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
        if self.multiples.iter().any(|m| !m.is_finite() || *m <= 0.0 || *m > 1e6) {
            return Err(wrong("--multiples wants numbers above 0, such as 0.5,1,2: 0 would be no connection at all"));
        }
        if self.connections.iter().any(|n| *n == 0 || *n > 1_000_000) {
            return Err(wrong("--connections wants numbers from 1 to 1000000, such as 16,20,64"));
        }
        let (timeout, boot_timeout) = (self.timeout, self.puma.boot_timeout);
        check_times([Some(self.length), self.warm_up, Some(timeout), Some(boot_timeout), self.delay])?;
        if self.length == Nanos::ZERO {
            return Err(wrong("--for wants a time above 0, such as 5s"));
        }
        check_timeout(timeout)?;
        self.puma.check()?;
        self.path.as_deref().map_or(Ok(()), check_path)
    }

    fn socket_kind(&self) -> Result<Socket, Mistake> {
        match self.socket[..] {
            [word] => Ok(word.socket()),
            _ => Err(wrong("-s takes several kinds of socket with --bodies only: give one, or add --bodies acsi1,10")),
        }
    }

    fn app(&self) -> App {
        match self.app {
            Some(AppWord::Rails) => App::Rails,
            None | Some(AppWord::Sleep) if self.body.is_some() => App::Bodies,
            None | Some(AppWord::Sleep) => App::Sleep,
        }
    }

    /// What is sent. Of an app of our own that sleeps, it is known for how long.
    fn stream(&self, is_own_app: bool) -> Result<StreamPlan, Mistake> {
        let app = self.app();
        let sleeps = is_own_app && app != App::Bodies;
        let default_delay = (sleeps && self.path.is_none()).then_some(Nanos::from_millis(100));
        let delay = self.delay.or(default_delay);
        let rails_path = delay.filter(|_| app == App::Rails).map(|delay| format!("/sleep?ms={}", milliseconds(delay)));
        Ok(StreamPlan {
            delay,
            path: self.path.clone().or(rails_path),
            body: self.body,
            keep_alive: !self.no_keep_alive,
            stop: self.requests_per_connection.map_or(Stop::After(self.length), Stop::RequestsPerConnection),
            warm_up: self.warm_up.unwrap_or(match self.requests_per_connection {
                Some(_) => Nanos::ZERO,
                None => Nanos::from_secs(1),
            }),
            timeout: self.timeout,
            lanes: self.lanes(),
            timestamps: self
                .timestamps
                .resolve(Situation { is_tcp: !self.socket_kind()?.is_unix(), is_pipelined: false })?,
            worker_header: self.worker_header.clone(),
            anatomy: self.inspect.asks_app(),
        })
    }

    /// What is read meanwhile. Of another generator's run nobody knows when its warm-up is over.
    fn probe(&self) -> Result<Probe, Mistake> {
        let asked = self.inspect.probe(&[self.socket_kind()?])?;
        match self.generator {
            None => Ok(asked.unwrap_or(Probe::Auto)),
            Some(_) if matches!(asked, None | Some(Probe::None)) && !self.inspect.asks_app() => Ok(Probe::None),
            Some(with) => {
                Err(wrong(format!("--inspect is of our own runs: leave it out with --generator {}", with.name())))
            }
        }
    }

    /// Refuses what the other generator cannot do, whatever the number of connections will be.
    fn check_with(&self, with: Generator) -> Result<(), Mistake> {
        let (name, socket) = (with.name(), self.socket_kind()?);
        if socket.is_unix() {
            return Err(wrong(format!("--generator {name}: it knows no Unix socket: leave out -s {socket}")));
        }
        if with == Generator::Longtail {
            return Err(wrong("--generator longtail: it is longtail that makes the load anyway; leave it out"));
        }
        if self.requests_per_connection.is_some()
            && let Some(line) = with.shares_requests_unevenly()
        {
            return Err(wrong(line));
        }
        if let Some(line) = self.thresholds.all().iter().find_map(|threshold| with.unjudged(threshold)) {
            return Err(wrong(line));
        }
        let end = self.requests_per_connection.map_or(LoadEnd::After(self.length), LoadEnd::Requests);
        let order = LoadOrder {
            warm_up: self.warm_up.unwrap_or(Nanos::ZERO),
            keep_alive: !self.no_keep_alive,
            timeout: self.timeout,
            ..LoadOrder::closed_loop("", 1, self.lanes(), end)
        };
        if let Some(line) = with.refusal(&order) {
            return Err(wrong(line));
        }
        if self.body.is_some() && self.puma.has_rackup() {
            return Err(wrong(format!(
                "--generator {name} asks for a path alone: leave out -r, or give --path in place of --body"
            )));
        }
        Ok(())
    }

    fn server_kind(&self) -> Result<ServerKind, Mistake> {
        let asks_for_puma = self.puma.asks_for_puma() || self.app.is_some();
        if self.command.is_empty() {
            return match (self.server, self.slots.is_some() || self.url.is_some()) {
                (_, true) => {
                    Err(wrong("--slots and --url belong to another server's command: add -- COMMAND at the end"))
                }
                (ServerWord::Builtin, _) if asks_for_puma => {
                    Err(wrong("--server builtin takes no -r, --app, -C, -Y or --puma: they are Puma's"))
                }
                (ServerWord::Builtin, _) => Ok(ServerKind::Builtin),
                (ServerWord::Puma, _) => Ok(self.puma.kind()),
            };
        }
        if self.server == ServerWord::Builtin || asks_for_puma {
            return Err(wrong(
                "a command after -- is a server of its own: it takes --slots or -w and -t, and --url, not -r, --app, -C, -Y, --puma or --server",
            ));
        }
        let of_size = self.puma.size();
        if let (Some(slots), Some(of_size)) = (self.slots, of_size)
            && slots != of_size
        {
            return Err(wrong(format!("--slots {slots} is not -w x -t, which is {of_size}: leave out --slots")));
        }
        match (self.slots.or(of_size), &self.url) {
            (Some(slots), Some(url)) => Ok(ServerKind::Command { argv: self.command.clone(), slots, url: url.clone() }),
            _ => Err(wrong(
                "a command after -- needs --url URL (where it will answer), and -w N -t N (its workers, and threads of each) or --slots N (what it can process at once)",
            )),
        }
    }
}

/// As the Rails app takes it: a number without its unit.
fn milliseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}
