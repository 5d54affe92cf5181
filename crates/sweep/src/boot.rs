//! The server under test: started, ready, described; stopped when it is dropped.
//!
//! It is ready when it says that all its workers have booted, and then really answers. A listening
//! socket is no sign: Puma's master listens before its first worker is forked, and what is sent
//! then waits in the kernel. So nothing is sent before the statistics are there, and the one
//! request that follows is answered by a booted worker.

use std::sync::Arc;

use engine::{EngineError, FetchedResponse, TlsOptions, TlsSettings, Transport, fetch, render};
use launch::puma::BootLines;
use launch::{Server, ServerBind, TlsPair, affinity};
use model::{Clock, Nanos, Request, RequestMix, ServerFacts, StreamPlan, SystemClock};
use probe::puma_stats::{self, PumaStats};
use probe::sockets::ServerListener;

use crate::block::Block;
use crate::context::{Context, Observer, SweepError};
use crate::servers::{Preparation, ServerAddress, ServerUnderTest, under_test};

/// How long a server may take to finish its requests when it is told to stop, before it is killed.
const GRACE: Nanos = Nanos::from_secs(30);
/// How often it is checked whether the server is ready.
const STEP: Nanos = Nanos::from_millis(20);
/// Lines of a failed server that are shown.
const LAST_LINES: usize = 20;

/// A server that runs, and how to reach it.
pub(crate) struct StartedServer {
    pub(crate) server: Server,
    pub(crate) reached: ServerAddress,
    pub(crate) transport: Transport,
    pub(crate) facts: ServerFacts,
    /// The workers' names that are known from the start; empty if they are not.
    pub(crate) workers: Vec<String>,
    /// The response that showed it to be ready.
    pub(crate) first_response: FetchedResponse,
    /// What it is sent, where that is more than one request.
    pub(crate) mix: Option<Arc<RequestMix>>,
}

impl StartedServer {
    /// Starts the server of a block and waits until it is ready; `Ok(None)` where the user
    /// interrupted.
    ///
    /// # Errors
    /// If it cannot be started, does not become ready, or does not serve what will be requested.
    pub(crate) fn start(
        block: &Block,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Option<StartedServer>, SweepError> {
        let kind = under_test(&block.server);
        let mut prepared = kind.prepare(block, context)?;
        // What the kind of server sets itself comes last, so it wins.
        let own = std::mem::take(&mut prepared.spec.env);
        prepared.spec.env =
            context.server_env.clone().into_iter().chain(block.env.clone()).chain(own).collect();
        let config = kind.read_config(&prepared.spec, context)?;
        for remark in &config.remarks {
            observer.remark(remark);
        }
        let server = Server::start(&prepared.spec, &context.guard, &context.clock)?;
        let transport = transport(&prepared.reached.bind)?;
        let booting = BootingServer {
            kind: kind.as_ref(),
            server: &server,
            reached: &prepared.reached,
            transport: &transport,
        };
        let Some(first_response) = wait_until_ready(&booting, &block.stream, context)? else {
            server.stop(GRACE, &context.clock);
            return Ok(None);
        };
        let control = prepared.reached.control.as_ref();
        let first_stats =
            control.and_then(|control| puma_stats::read(control, context.interrupt).ok());
        let first_stats = first_stats.as_ref();
        let mut facts = describe(block, kind.as_ref(), &prepared, &server, first_stats);
        facts.settings = config.settings;
        let workers = kind.worker_names(&facts, first_stats, server.pid());
        let mix = block.stream.mix.as_ref().and_then(|mix| mix.requests.as_ref());
        let authority = &prepared.reached.authority;
        let mix = mix.map(|mix| Arc::new(mix.map(|request| request.for_host(authority))));
        Ok(Some(StartedServer {
            server,
            reached: prepared.reached,
            transport,
            facts,
            workers,
            first_response,
            mix,
        }))
    }

    /// The URL that is requested; empty for a Unix socket, which another generator could not use.
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

    /// Its listener, whose accept queue and connections the kernel tells.
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

    /// Lets the server finish its requests, stops it, and waits until none of its processes is
    /// left.
    pub(crate) fn stop(self, clock: &SystemClock) {
        self.server.stop(GRACE, clock);
    }
}

/// A server that may not be ready yet.
struct BootingServer<'a> {
    kind: &'a dyn ServerUnderTest,
    server: &'a Server,
    reached: &'a ServerAddress,
    transport: &'a Transport,
}

impl BootingServer<'_> {
    fn not_serving(&self, what: String) -> SweepError {
        SweepError::NotServing { what, last_lines: last_lines(self.server) }
    }

    /// Why it will never be ready.
    fn failure(&self) -> Option<SweepError> {
        // Whether it has ended is read first: then all that it wrote is there.
        let exit = self.server.exited();
        // What it says itself comes first. It may say so and go on, if only a worker has failed.
        if let Some(error) = self.kind.boot_failure(&self.server.output()) {
            return Some(error);
        }
        Some(self.not_serving(format!(
            "the server ended during its start ({}); its last lines are above: no load was sent",
            exit?
        )))
    }
}

/// Waits until the server is ready; `Ok(None)` if the user interrupted.
///
/// # Errors
/// If it lacks something, ends, takes longer than the boot timeout, or answers with a client's or
/// server's error.
fn wait_until_ready(
    booting: &BootingServer<'_>,
    stream: &StreamPlan,
    context: &Context<'_>,
) -> Result<Option<FetchedResponse>, SweepError> {
    let ServerAddress { authority, path, control, .. } = booting.reached;
    // Its own connection, so closed after the response: a connection left open would hold one of
    // the server's threads.
    let request = render("GET", authority, path, &stream.headers(), false);
    // A slow app may well take its time for the first response too.
    let boot_timeout = context.boot_timeout + stream.delay.unwrap_or(Nanos::ZERO);
    let clock = &context.clock;
    let begun = clock.now();
    let mut reported = control.is_none();
    let mut what = "its statistics are not there yet".to_owned();
    loop {
        if context.is_interrupted() {
            return Ok(None);
        }
        if let Some(error) = booting.failure() {
            return Err(error);
        }
        if let (false, Some(control)) = (reported, control) {
            match puma_stats::read(control, context.interrupt) {
                Ok(stats) => reported = stats.is_ready(),
                Err(error) => what = error,
            }
        }
        if reported {
            // A server that has statistics is ready to respond; any other may only listen so far.
            let patience = boot_timeout.saturating_sub(clock.now() - begun).max(STEP);
            let header = &stream.worker_header;
            let transport = booting.transport;
            match fetch(transport, &request, header, patience, clock, context.interrupt) {
                Ok(answer) => {
                    check(booting.server, path, stream, &answer)?;
                    return Ok(Some(answer));
                }
                // Keep an earlier bad response as the reason: it says more than the timeout of a
                // later try.
                Err(error) if error == "timed out" && what.contains(": bad response: ") => {}
                Err(error) => what = format!("GET {path} is not answered: {error}"),
            }
        }
        if clock.now() - begun >= boot_timeout {
            let seconds = boot_timeout.0 / 1_000_000_000;
            return Err(booting.not_serving(format!(
                "the server was not ready after {seconds} s ({what}); its last lines are above: \
                 raise --boot-timeout, or fix it"
            )));
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
    // In a mix this path need not be one of the requests, so a client error is acceptable.
    let least_error = if stream.mix.is_some() { 500 } else { 400 };
    if status >= least_error {
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
            "GET {path} (Body-Conf: {body}) is answered with {bytes} bytes of content and not \
             with {}: does the app of -r go by that header?",
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

fn describe(
    block: &Block,
    kind: &dyn ServerUnderTest,
    prepared: &Preparation,
    server: &Server,
    stats: Option<&PumaStats>,
) -> ServerFacts {
    let output = server.output();
    let boot = BootLines::read(output.lines());
    let planned = kind.planned_size();
    let cluster = stats.map_or(planned.workers > 0, |stats| stats.cluster);
    let workers = stats.map_or(planned.workers, |stats| stats.workers.len() as u32).max(1);
    let stated_threads =
        stats.and_then(|stats| stats.workers.iter().filter_map(|worker| worker.max_threads).max());
    // A copy of a commit is no checkout; the folder that it lies in may be part of another one.
    let checkout =
        if block.dir.is_some() { None } else { kind.checkout(prepared.spec.dir.as_path()) };
    let placement = affinity::placement(&[server.pid()]);
    ServerFacts {
        name: prepared.name.clone(),
        version: boot.version,
        runtime: boot.runtime,
        git: checkout.and_then(|folder| launch::git_head(&folder)),
        command_line: server.command_line().into(),
        url: prepared.url.as_str().into(),
        workers,
        threads: stated_threads.unwrap_or(planned.threads),
        cluster,
        placement: placement.map(|placement| placement.with_generators(&block.stream.from)),
        settings: None,
    }
}
