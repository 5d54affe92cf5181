//! The server under test: started, ready, described; stopped when it is dropped.

use std::ffi::OsString;
use std::path::Path;

use engine::{Endpoint, FetchedResponse, TlsOptions, TlsSettings, Transport, TransportError, render_with};
use launch::facts::BootLines;
use launch::{Bind, Server, Spec, affinity, puma};
use model::{Clock, ControlServer, Nanos, PumaSettings, Request, ServerFacts, ServerKind, ServerPlan, StreamPlan};
use probe::processes::{TreeUse, tree, use_of_tree};
use probe::puma_stats::{self, PumaStats};
use probe::sampler::Sampler;
use probe::sockets::ServerListener;

use crate::error::SweepError;
use crate::ready::{ReadinessCheck, last_lines, wait_until_ready};
use crate::tools::Tools;
use crate::watch;

/// How long a server may take to finish its requests when it is told to stop, before it is killed.
const GRACE: Nanos = Nanos::from_secs(30);

/// A server that runs, and how to reach it.
pub(crate) struct Subject {
    server: Server,
    pub(crate) bind: Bind,
    pub(crate) transport: Transport,
    /// What is requested, as a URL; of a Unix socket none that anybody else could use.
    pub(crate) target_url: String,
    /// For the Host header.
    authority: String,
    /// What is requested where the stream says nothing else.
    path: String,
    pub(crate) control: Option<ControlServer>,
    pub(crate) facts: ServerFacts,
    /// The workers' names that are known from the start; empty where they are not.
    pub(crate) workers: Vec<String>,
    /// The answer that showed it to be ready.
    pub(crate) first_answer: FetchedResponse,
}

/// What is to be started, and where it will answer.
struct Preparation {
    spec: Spec,
    name: String,
    bind: Bind,
    /// For the Host header.
    authority: String,
    /// Without the path, where the plan says that.
    url: String,
    path: String,
    control: Option<ControlServer>,
}

impl Subject {
    /// Starts the server of `plan` and waits until it is ready for `stream`; `Ok(None)` where the user interrupted.
    ///
    /// # Errors
    /// Where it cannot be started, does not become ready, or does not serve what will be requested.
    pub(crate) fn start<C: Clock + Clone + Send>(
        plan: &ServerPlan,
        stream: &StreamPlan,
        tools: &Tools<'_, C>,
    ) -> Result<Option<Subject>, SweepError> {
        Subject::start_with(plan, stream, Vec::new(), tools)
    }

    /// As [`Subject::start`], with these variables in its environment.
    ///
    /// # Errors
    /// As [`Subject::start`].
    pub(crate) fn start_with<C: Clock + Clone + Send>(
        plan: &ServerPlan,
        stream: &StreamPlan,
        settings: Vec<(OsString, OsString)>,
        tools: &Tools<'_, C>,
    ) -> Result<Option<Subject>, SweepError> {
        let mut prepared = prepare(plan, stream, tools)?;
        prepared.spec.env.extend(tools.server_env.iter().cloned().chain(settings));
        let settings = settings_of(plan, &prepared.spec, tools)?;
        let server = Server::start(&prepared.spec, &tools.guard, &tools.clock)?;
        // Its own connection, so closed after the answer: a connection left open would hold one of the server's threads.
        let first = render_with("GET", &prepared.authority, &prepared.path, &stream.headers(), false);
        let transport = transport(&prepared.bind)?;
        let question = ReadinessCheck {
            plan,
            transport: &transport,
            request: &first,
            path: &prepared.path,
            worker_header: &stream.worker_header,
            control: prepared.control.as_ref(),
            // A slow app may well take its time for the first answer too.
            boot_timeout: tools.boot_timeout + stream.delay.unwrap_or(Nanos::ZERO),
            interrupt: tools.interrupt,
        };
        let Some(first_answer) = wait_until_ready(&server, &question, &tools.clock, || tools.is_interrupted())? else {
            server.stop(GRACE, &tools.clock);
            return Ok(None);
        };
        right_length(&prepared.path, stream, &first_answer)?;
        let first_stats = prepared.control.as_ref().and_then(|control| puma_stats::read(control).ok());
        let facts = ServerFacts { settings, ..describe(plan, &prepared, &server, first_stats.as_ref(), &tools.dir) };
        let workers = match (&plan.kind, &first_stats) {
            (ServerKind::Puma { .. }, Some(stats)) if stats.cluster => {
                stats.workers.iter().filter_map(|worker| worker.pid).map(|pid| pid.to_string()).collect()
            }
            (ServerKind::Puma { .. }, Some(_)) => vec![server.pid().to_string()],
            (ServerKind::Builtin, _) => (0..facts.workers).map(|worker| worker.to_string()).collect(),
            _ => Vec::new(),
        };
        let scheme = if transport.tls.is_some() { "https" } else { "http" };
        let target_url = match prepared.bind.address() {
            // By address: a name might lead another generator elsewhere.
            Some(address) => format!("{scheme}://{address}{}", prepared.path),
            None => String::new(),
        };
        let Preparation { bind, control, authority, path, .. } = prepared;
        Ok(Some(Subject {
            server,
            bind,
            transport,
            target_url,
            authority,
            path,
            control,
            facts,
            workers,
            first_answer,
        }))
    }

    /// The request of `stream`, on a connection that is kept or not.
    pub(crate) fn request(&self, stream: &StreamPlan, keep_alive: bool) -> Request {
        let path = stream.body.map_or_else(|| self.path.clone(), |_| stream.target_path());
        render_with("GET", &self.authority, &path, &stream.headers(), keep_alive)
    }

    /// A request for `path` alone, on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Request {
        render_with("GET", &self.authority, path, &[], false)
    }

    /// What its processes have taken so far.
    pub(crate) fn process_use(&self) -> TreeUse {
        use_of_tree(self.server.pid())
    }

    /// Its listener, to be looked at: what the kernel holds for it.
    pub(crate) fn listener(&self) -> ServerListener {
        match &self.bind {
            Bind::Tcp(address) | Bind::Ssl(address, _) => ServerListener::of_port(address.port()),
            Bind::Unix(path) => ServerListener::of_unix(&path.to_string_lossy()),
            Bind::Abstract(name) => ServerListener::of_unix(&format!("@{name}")),
        }
    }

    /// What is to be looked at while a run goes on.
    pub(crate) fn sampler(&self) -> Sampler {
        Sampler::of_processes(self.listener(), &[self.server.pid()], watch::SAMPLING)
    }

    /// Its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Whether the server has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.server.exited().is_some()
    }

    /// What the server said last.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        last_lines(&self.server)
    }

    /// The error to report where the server has ended by itself.
    pub(crate) fn death(&self, connections: u32) -> Option<SweepError> {
        let how = self.server.exited()?.to_string();
        Some(SweepError::Died { connections, how, last_lines: last_lines(&self.server) })
    }

    /// Has the server finish what it has and end, and waits until nothing of it lives.
    pub(crate) fn stop(self, clock: &impl Clock) {
        self.server.stop(GRACE, clock);
    }
}

/// What a Puma's configuration says of who waits for whom. Puma itself is asked where a config file may say something; all else is as
/// its version has it.
///
/// # Errors
/// Where it cannot be started.
fn settings_of<C: Clock>(
    plan: &ServerPlan,
    spec: &Spec,
    tools: &Tools<'_, C>,
) -> Result<Option<PumaSettings>, SweepError> {
    if !matches!(plan.kind, ServerKind::Puma { .. }) {
        return Ok(None);
    }
    if !puma::has_config(plan.config.as_deref(), &spec.dir) {
        return Ok(Some(PumaSettings::default()));
    }
    Ok(puma::settings(spec, &tools.guard, &tools.clock, || tools.is_interrupted())?)
}

/// Refuses an app whose answer is not as long as the stream wants it.
///
/// # Errors
/// With both lengths.
pub(crate) fn right_length(path: &str, stream: &StreamPlan, answer: &FetchedResponse) -> Result<(), SweepError> {
    match stream.body {
        Some(body) if body.bytes() != answer.body_bytes => Err(SweepError::WrongLength {
            path: path.to_owned(),
            body: body.to_string(),
            bytes: answer.body_bytes,
            expected: body.bytes(),
        }),
        _ => Ok(()),
    }
}

/// How connections to it are made. TLS trusts the certificate that was made for this server, and nobody else's.
fn transport(bind: &Bind) -> Result<Transport, TransportError> {
    Ok(match bind {
        Bind::Tcp(address) => Transport::tcp(*address),
        Bind::Ssl(address, pair) => {
            let server_name = address.ip().to_string();
            let options =
                TlsOptions { ca_file: Some(&pair.certificate), server_name: &server_name, ..TlsOptions::default() };
            Transport { tls: Some(TlsSettings::new(&options)?), ..Transport::tcp(*address) }
        }
        Bind::Unix(path) => Transport::plain(vec![Endpoint::Unix(path.clone())]),
        Bind::Abstract(name) => Transport::plain(vec![Endpoint::Abstract(name.clone().into_bytes())]),
    })
}

fn prepare<C>(plan: &ServerPlan, stream: &StreamPlan, tools: &Tools<'_, C>) -> Result<Preparation, SweepError> {
    let path = stream.target_path();
    match &plan.kind {
        ServerKind::Puma { .. } => {
            let around = puma::Surroundings::here()?;
            let puma = puma::prepare(plan, &tools.addresses, &around)?;
            Ok(Preparation {
                spec: puma.spec,
                name: "Puma".to_owned(),
                authority: puma.bind.host(),
                url: puma.bind.to_string(),
                bind: puma.bind,
                path,
                control: Some(puma.control),
            })
        }
        ServerKind::Builtin => {
            let address = puma::free_address(plan.socket, &tools.addresses)?;
            let threads = plan.threads.map_or(5, |threads| threads.max);
            let mut argv = vec![tools.program.clone(), OsString::from("builtin-server")];
            argv.extend(
                [
                    format!("--listen={address}"),
                    format!("--workers={}", plan.workers.unwrap_or(0).max(1)),
                    format!("--threads={threads}"),
                    format!("--delay={}", stream.delay.unwrap_or(Nanos::ZERO)),
                    format!("--worker-header={}", stream.worker_header),
                ]
                .map(OsString::from),
            );
            Ok(Preparation {
                spec: Spec { cpus: plan.cpus.clone(), ..Spec::command(argv, &tools.dir) },
                name: "built-in server".to_owned(),
                bind: Bind::Tcp(address),
                authority: address.to_string(),
                url: format!("http://{address}"),
                path,
                control: None,
            })
        }
        ServerKind::Command { argv, url, .. } => {
            let bad = |why: &str| SweepError::BadUrl { url: url.clone(), why: why.to_owned() };
            let rest = url.strip_prefix("http://").ok_or_else(|| bad("write http://HOST:PORT/PATH"))?;
            let (authority, own_path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
            let (host, port) =
                if has_port(authority) { authority.rsplit_once(':') } else { None }.unwrap_or((authority, "80"));
            let port = port.parse().map_err(|_| bad("its port is no number from 1 to 65535"))?;
            let address = tools.resolver.resolve(host, port).map_err(|error| bad(&error.to_string()))?[0];
            if !address.ip().is_loopback() {
                return Err(bad("a server that is started here must answer on this machine's loopback"));
            }
            if ServerListener::of_port(address.port()).look().is_ok_and(|sockets| sockets.listening) {
                return Err(bad("something listens on that port already, and would be measured in its place"));
            }
            let asked = stream.path.clone().or_else(|| (own_path == "/").then_some(path));
            let path = asked.unwrap_or_else(|| own_path.to_owned());
            let program = Path::new(&argv[0]).file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(Preparation {
                spec: Spec { cpus: plan.cpus.clone(), ..Spec::command(argv, &tools.dir) },
                name: program.unwrap_or_else(|| argv[0].clone()),
                bind: Bind::Tcp(address),
                authority: authority.to_owned(),
                url: format!("http://{authority}{path}"),
                path,
                control: None,
            })
        }
    }
}

/// Whether an authority (`host`, `host:port`, `[::1]`, `[::1]:port`) names a port.
fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

fn describe(
    plan: &ServerPlan,
    prepared: &Preparation,
    server: &Server,
    stats: Option<&PumaStats>,
    dir: &Path,
) -> ServerFacts {
    let output = server.output();
    let boot = BootLines::read(output.lines());
    let (planned_workers, planned_threads) = match &plan.kind {
        ServerKind::Command { slots, .. } => match (plan.workers, plan.threads) {
            (None, None) => (1, *slots),
            (workers, threads) => (workers.unwrap_or(1).max(1), threads.map_or(1, |threads| threads.max)),
        },
        _ => (plan.workers.unwrap_or(0), plan.threads.map_or(5, |threads| threads.max)),
    };
    let cluster = stats.map_or(planned_workers > 0, |stats| stats.cluster);
    let workers = stats.map_or(planned_workers, |stats| stats.workers.len() as u32).max(1);
    let stated_threads = stats.and_then(|stats| stats.workers.iter().filter_map(|worker| worker.max_threads).max());
    // Our own app on an installed Puma has nothing to do with the folder that we happen to be in.
    let is_checkout = match &plan.kind {
        ServerKind::Builtin => false,
        ServerKind::Command { .. } => true,
        ServerKind::Puma { .. } => {
            plan.rackup.is_some() || dir.ancestors().any(|folder| folder.join("puma.gemspec").is_file())
        }
    };
    ServerFacts {
        name: prepared.name.clone(),
        version: boot.version,
        runtime: boot.runtime,
        git: if is_checkout { launch::facts::git(dir) } else { None },
        command_line: server.command_line(),
        url: prepared.url.clone(),
        workers,
        threads: stated_threads.unwrap_or(planned_threads),
        cluster,
        placement: affinity::beside([(server.pid(), tree(server.pid()))]),
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
