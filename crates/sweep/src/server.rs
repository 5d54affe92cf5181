//! The server under test: started, ready, described; stopped when it is dropped.
//!
//! It is ready when it says that all its workers have booted, and then really answers. A listening
//! socket is no sign: Puma's master listens before its first worker is forked, and what is sent
//! then waits in the kernel. So nothing is sent before the statistics are there, and the one
//! request that follows is answered by a booted worker.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use engine::{EngineError, FetchedResponse, TlsOptions, TlsSettings, Transport, fetch, render};
use launch::puma::{self, BootLines, PumaConfig};
use launch::{LaunchSpec, Server, ServerBind, TlsPair, affinity};
use model::{
    Clock, ControlServer, Nanos, Pace, Request, ServerFacts, ServerKind, ServerPlan, StreamPlan,
    SystemClock,
};
use probe::puma_stats::{self, PumaStats};
use probe::sockets::ServerListener;

use crate::context::{Context, Observer, SweepError};

/// One server's life.
pub(crate) struct Block {
    /// The server, and how to start it.
    pub(crate) server: ServerPlan,
    /// What it is asked for, unless a job says otherwise.
    pub(crate) stream: StreamPlan,
    /// When requests are due.
    pub(crate) pace: Pace,
    /// Settings in its environment, beside those of the context.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The folder that it runs in; `None` is the context's.
    pub(crate) dir: Option<PathBuf>,
    /// Whether each run is followed by a wait until it is idle again.
    pub(crate) cool_down: bool,
    /// Which pass over the plan, from 1.
    pub(crate) repeat: u32,
}

impl Block {
    /// A closed loop on a server as it is found.
    pub(crate) fn closed(
        server: ServerPlan,
        stream: StreamPlan,
        cool_down: bool,
        repeat: u32,
    ) -> Block {
        Block {
            server,
            stream,
            pace: Pace::Closed,
            env: BTreeMap::new(),
            dir: None,
            cool_down,
            repeat,
        }
    }
}

/// How long a server may take to finish its requests when it is told to stop, before it is killed.
const GRACE: Nanos = Nanos::from_secs(30);
/// Between two looks whether it is ready.
const STEP: Nanos = Nanos::from_millis(20);
/// Lines of a failed server that are shown.
const LAST_LINES: usize = 20;

/// A server that runs, and how to reach it.
pub(crate) struct ServerUnderTest {
    pub(crate) server: Server,
    pub(crate) reached: ServerAddress,
    pub(crate) transport: Transport,
    pub(crate) facts: ServerFacts,
    /// The workers' names that are known from the start; empty where they are not.
    pub(crate) workers: Vec<String>,
    /// The response that showed it to be ready.
    pub(crate) first_response: FetchedResponse,
}

/// Where a server answers.
pub(crate) struct ServerAddress {
    pub(crate) bind: ServerBind,
    /// For the Host header.
    authority: String,
    /// What is requested where the stream says nothing else.
    path: String,
    pub(crate) control: Option<ControlServer>,
}

/// What is to be started.
struct Preparation {
    spec: LaunchSpec,
    name: String,
    /// Without the path, where the plan says that.
    url: String,
    reached: ServerAddress,
}

impl ServerUnderTest {
    /// Starts the server of a block and waits until it is ready; `Ok(None)` where the user
    /// interrupted.
    ///
    /// # Errors
    /// Where it cannot be started, does not become ready, or does not serve what will be requested.
    pub(crate) fn start(
        block: &Block,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Option<ServerUnderTest>, SweepError> {
        let plan = &block.server;
        let mut prepared = prepare(block, context)?;
        // What its kind needs stands last, and so counts.
        let own = std::mem::take(&mut prepared.spec.env);
        prepared.spec.env =
            context.server_env.clone().into_iter().chain(block.env.clone()).chain(own).collect();
        let config = match plan.kind {
            ServerKind::Puma { .. } => {
                let is_interrupted = || context.is_interrupted();
                puma::ask_config(
                    plan.config.as_deref(),
                    &prepared.spec,
                    &context.guard,
                    &context.clock,
                    is_interrupted,
                )?
            }
            ServerKind::Builtin | ServerKind::Command { .. } => PumaConfig::default(),
        };
        for remark in &config.remarks {
            observer.remark(remark);
        }
        let server = Server::start(&prepared.spec, &context.guard, &context.clock)?;
        let transport = transport(&prepared.reached.bind)?;
        let Some(first_response) =
            wait_until_ready(&server, &prepared.reached, &transport, block, context)?
        else {
            server.stop(GRACE, &context.clock);
            return Ok(None);
        };
        let first_stats = prepared
            .reached
            .control
            .as_ref()
            .and_then(|control| puma_stats::read(control, context.interrupt).ok());
        let facts = ServerFacts {
            settings: config.settings,
            ..describe(block, &prepared, &server, first_stats.as_ref())
        };
        let workers = match (&plan.kind, &first_stats) {
            (ServerKind::Puma { .. }, Some(stats)) if stats.cluster => stats
                .workers
                .iter()
                .filter_map(|worker| worker.pid)
                .map(|pid| pid.to_string())
                .collect(),
            (ServerKind::Puma { .. }, Some(_)) => vec![server.pid().to_string()],
            (ServerKind::Builtin, _) => {
                (0..facts.workers).map(|worker| worker.to_string()).collect()
            }
            _ => Vec::new(),
        };
        Ok(Some(ServerUnderTest {
            server,
            reached: prepared.reached,
            transport,
            facts,
            workers,
            first_response,
        }))
    }

    /// What is requested, as a URL; of a Unix socket none that anybody else could use.
    pub(crate) fn target_url(&self) -> String {
        let ServerAddress { bind, path, .. } = &self.reached;
        // By address: a name might lead another generator elsewhere.
        bind.place.tcp().map_or_else(String::new, |_| format!("{bind}{path}"))
    }

    /// The request of `stream`, on a connection that is kept or not.
    pub(crate) fn request(&self, stream: &StreamPlan, keep_alive: bool) -> Request {
        let path = stream
            .body
            .map_or_else(|| self.reached.path.clone(), |_| stream.target_path().exposed().clone());
        render("GET", &self.reached.authority, &path, &stream.headers(), keep_alive)
    }

    /// A request for `path` alone, on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Request {
        render("GET", &self.reached.authority, path, &[], false)
    }

    /// Its listener, to be looked at: what the kernel holds for it.
    pub(crate) fn listener(&self) -> ServerListener {
        ServerListener::of(&self.reached.bind.place)
    }

    /// Its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Whether the server has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.server.exited().is_some()
    }

    /// The error to report where the server has ended by itself.
    pub(crate) fn death(&self, connections: u32) -> Option<SweepError> {
        let how = self.server.exited()?.to_string();
        Some(SweepError::Died { connections, how, last_lines: last_lines(&self.server) })
    }

    /// Has the server finish what it has and end, and waits until nothing of it lives.
    pub(crate) fn stop(self, clock: &SystemClock) {
        self.server.stop(GRACE, clock);
    }
}

/// Waits until the server is ready; `Ok(None)` where the user interrupted.
///
/// # Errors
/// Where it lacks something, ends, takes longer than the boot timeout, or answers with a client's
/// or server's error.
fn wait_until_ready(
    server: &Server,
    reached: &ServerAddress,
    transport: &Transport,
    block: &Block,
    context: &Context<'_>,
) -> Result<Option<FetchedResponse>, SweepError> {
    let Block { server: plan, stream, .. } = block;
    let ServerAddress { authority, path, control, .. } = reached;
    // Its own connection, so closed after the response: a connection left open would hold one of
    // the server's threads.
    let request = render("GET", authority, path, &stream.headers(), false);
    // A slow app may well take its time for the first response too.
    let boot_timeout = context.boot_timeout + stream.delay.unwrap_or(Nanos::ZERO);
    let clock = &context.clock;
    let begun = clock.now();
    let left = || boot_timeout.saturating_sub(clock.now() - begun);
    let not_serving = |what| Err(SweepError::NotServing { what, last_lines: last_lines(server) });
    let mut reported = control.is_none();
    let mut what = "its statistics are not there yet".to_owned();
    loop {
        if context.is_interrupted() {
            return Ok(None);
        }
        let exit = server.exited();
        // What it lacks is said once it has ended, or by a worker whose master goes on.
        if let Some(error) = puma::missing_dependency(plan, &server.output()) {
            return Err(error.into());
        }
        if let Some(last_lines) = puma::failed_workers(plan, &server.output()) {
            let what = "Puma cannot start its workers: what they said is above, and with -w0 it says more; no load was sent";
            return Err(SweepError::NotServing { what: what.to_owned(), last_lines });
        }
        if let Some(exit) = exit {
            return not_serving(format!(
                "the server ended during its start ({exit}); its last lines are above: no load was sent"
            ));
        }
        if let (false, Some(control)) = (reported, control) {
            match puma_stats::read(control, context.interrupt) {
                Ok(stats) => reported = stats.is_ready(),
                Err(error) => what = error,
            }
        }
        if reported {
            // A Puma with statistics responses; another server may only have a listening socket
            // yet.
            let patience = left().max(STEP);
            match fetch(
                transport,
                &request,
                &stream.worker_header,
                patience,
                clock,
                context.interrupt,
            ) {
                Ok(answer) => return check(server, path, stream, &answer).map(|()| Some(answer)),
                // What is wrong with a response says more than that a later try had no time for
                // one.
                Err(error) if error == "timed out" && what.contains(": bad response: ") => {}
                Err(error) => what = format!("GET {path} is not answered: {error}"),
            }
        }
        if left() == Nanos::ZERO {
            let seconds = boot_timeout.0 / 1_000_000_000;
            return not_serving(format!(
                "the server was not ready after {seconds} s ({what}); its last lines are above: raise --boot-timeout, or fix it"
            ));
        }
        clock.sleep(STEP);
    }
}

/// What the server wrote last.
fn last_lines(server: &Server) -> Vec<String> {
    let output = server.output();
    let mut lines: Vec<String> = output.lines().rev().take(LAST_LINES).map(str::to_owned).collect();
    lines.reverse();
    lines
}

/// Refuses a response that is an error, or not as long as the stream wants it.
pub(crate) fn check(
    server: &Server,
    path: &str,
    stream: &StreamPlan,
    answer: &FetchedResponse,
) -> Result<(), SweepError> {
    let status = answer.status;
    if status >= 400 {
        // Is the request wrong, or the app?
        let (hint, last_lines) = if status >= 500 {
            (
                "does the app work? (--path, -r) The server's last lines are above",
                last_lines(server),
            )
        } else {
            ("is the path right? (--path, -r)", Vec::new())
        };
        let what =
            format!("GET {path} is answered {status}, so there is nothing to measure: {hint}");
        return Err(SweepError::NotServing { what, last_lines });
    }
    let bytes = answer.body_bytes;
    match stream.body.filter(|body| body.bytes() != bytes) {
        Some(body) => Err(SweepError::Unusable(format!(
            "GET {path} (Body-Conf: {body}) is answered with {bytes} bytes of content and not with {}: does the app of -r go by that header?",
            body.bytes()
        ))),
        None => Ok(()),
    }
}

/// How connections to it are made. TLS trusts the certificate that was made for this server, and
/// nobody else's.
fn transport(bind: &ServerBind) -> Result<Transport, EngineError> {
    let server_name = bind.place.tcp().map_or_else(String::new, |address| address.ip().to_string());
    let trusting = |pair: &TlsPair| {
        let ca_file = Some(pair.certificate.as_path());
        TlsSettings::new(&TlsOptions {
            ca_file,
            server_name: &server_name,
            ..TlsOptions::default()
        })
    };
    let tls = bind.tls.as_ref().map(trusting).transpose()?;
    Ok(Transport { tls, ..Transport::plain(vec![bind.place.clone()]) })
}

fn prepare(block: &Block, context: &Context<'_>) -> Result<Preparation, SweepError> {
    let Block { server: plan, stream, .. } = block;
    let path = stream.target_path().exposed().clone();
    let dir = block.dir.as_ref().unwrap_or(&context.dir);
    match &plan.kind {
        ServerKind::Puma { .. } => {
            let around = puma::Surroundings::here()?.of(block.dir.as_deref(), &block.env);
            let puma = puma::prepare(plan, &context.addresses, &around)?;
            let authority = puma.bind.host();
            let url = puma.bind.to_string();
            let reached =
                ServerAddress { bind: puma.bind, authority, path, control: Some(puma.control) };
            Ok(Preparation { spec: puma.spec, name: "Puma".to_owned(), url, reached })
        }
        ServerKind::Builtin => {
            let address = launch::free_address(plan.socket, plan.address, &context.addresses)?;
            let threads = plan.threads.map_or(5, |threads| threads.max);
            let mut argv = vec![context.program.clone(), OsString::from("sink")];
            argv.extend(
                [
                    format!("--listen={address}"),
                    "--queue=shared".to_owned(),
                    "--body=3".to_owned(),
                    format!("--workers={}", plan.workers.unwrap_or(0).max(1)),
                    format!("--threads={threads}"),
                    format!("--delay={}", stream.delay.unwrap_or(Nanos::ZERO)),
                    format!("--worker-header={}", stream.worker_header),
                ]
                .map(OsString::from),
            );
            Ok(Preparation {
                spec: LaunchSpec { cpus: plan.cpus.clone(), ..LaunchSpec::command(argv, dir) },
                name: "built-in server".to_owned(),
                url: format!("http://{address}"),
                reached: ServerAddress {
                    bind: ServerBind::tcp(address),
                    authority: address.to_string(),
                    path,
                    control: None,
                },
            })
        }
        ServerKind::Command { argv, url, .. } => {
            let bad =
                |why: &str| SweepError::Unusable(format!("'{url}' cannot be used as --url: {why}"));
            let argv = argv.exposed();
            let rest = url
                .exposed()
                .strip_prefix("http://")
                .ok_or_else(|| bad("write http://HOST:PORT/PATH"))?;
            let (authority, own_path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
            let (host, port) = if has_port(authority) { authority.rsplit_once(':') } else { None }
                .unwrap_or((authority, "80"));
            let port = port.parse().map_err(|_| bad("its port is no number from 1 to 65535"))?;
            let address =
                context.resolver.resolve(host, port).map_err(|error| bad(&error.to_string()))?[0];
            if !address.ip().is_loopback() {
                return Err(bad(
                    "a server that is started here must answer on this machine's loopback",
                ));
            }
            if ServerListener::of_port(address.port())
                .sample()
                .is_ok_and(|sockets| sockets.listening)
            {
                return Err(bad(
                    "something listens on that port already, and would be measured in its place",
                ));
            }
            let asked = stream.path.as_ref().map(|path| path.exposed().clone());
            let asked = asked.or_else(|| (own_path == "/").then_some(path));
            let path = asked.unwrap_or_else(|| own_path.to_owned());
            let program =
                Path::new(&argv[0]).file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(Preparation {
                spec: LaunchSpec { cpus: plan.cpus.clone(), ..LaunchSpec::command(argv, dir) },
                name: program.unwrap_or_else(|| argv[0].clone()),
                url: format!("http://{authority}{path}"),
                reached: ServerAddress {
                    bind: ServerBind::tcp(address),
                    authority: authority.to_owned(),
                    path,
                    control: None,
                },
            })
        }
    }
}

/// Whether an authority (`host`, `host:port`, `[::1]`, `[::1]:port`) names a port.
fn has_port(authority: &str) -> bool {
    authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

fn describe(
    block: &Block,
    prepared: &Preparation,
    server: &Server,
    stats: Option<&PumaStats>,
) -> ServerFacts {
    let plan = &block.server;
    let dir = &prepared.spec.dir;
    let output = server.output();
    let boot = BootLines::read(output.lines());
    let (planned_workers, planned_threads) = match &plan.kind {
        ServerKind::Command { slots, .. } => match (plan.workers, plan.threads) {
            (None, None) => (1, *slots),
            (workers, threads) => {
                (workers.unwrap_or(1).max(1), threads.map_or(1, |threads| threads.max))
            }
        },
        _ => (plan.workers.unwrap_or(0), plan.threads.map_or(5, |threads| threads.max)),
    };
    let cluster = stats.map_or(planned_workers > 0, |stats| stats.cluster);
    let workers = stats.map_or(planned_workers, |stats| stats.workers.len() as u32).max(1);
    let stated_threads =
        stats.and_then(|stats| stats.workers.iter().filter_map(|worker| worker.max_threads).max());
    // Our own app on an installed Puma has nothing to do with the folder that we happen to be in.
    let is_puma = |folder: &Path| folder.join("puma.gemspec").is_file();
    let checkout = match &plan.kind {
        // A copy of a commit is no checkout: whose folder it lies in says nothing.
        _ if block.dir.is_some() => None,
        ServerKind::Builtin => None,
        ServerKind::Command { .. } => Some(dir.as_path()),
        ServerKind::Puma { command: Some(command) } if is_puma(Path::new(command.exposed())) => {
            Some(Path::new(command.exposed())).filter(|folder| folder.join(".git").exists())
        }
        ServerKind::Puma { .. } => {
            (plan.rackup.is_some() || dir.ancestors().any(is_puma)).then_some(dir.as_path())
        }
    };
    ServerFacts {
        name: prepared.name.clone(),
        version: boot.version,
        runtime: boot.runtime,
        git: checkout.and_then(launch::git_head),
        command_line: server.command_line().into(),
        url: prepared.url.as_str().into(),
        workers,
        threads: stated_threads.unwrap_or(planned_threads),
        cluster,
        placement: affinity::placement(&[server.pid()])
            .map(|placement| placement.with_generators(&block.stream.from)),
        settings: None,
    }
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
