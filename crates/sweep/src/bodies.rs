//! Conducts a study of bodies: kinds and sizes over each kind of socket, in randomised order.
//!
//! A block is a pass over all bodies on a fresh server with one kind of socket. Before its runs
//! each body is requested once and its length checked, and each kind of body gets a warm-up, so
//! that no run is the first of its kind.

use std::collections::BTreeMap;

use engine::{FetchedResponse, LoadSpec, fetch};
use model::study::SCHEMA;
use model::{
    App, BodiesPlan, BodiesStudy, Body, BodyKind, BodyRun, Ceiling, Clock, Diagnostic, Nanos,
    RequestMix, ServerPlan, Socket, SocketServer, StreamPlan,
};
use probe::host;

use crate::block::Block;
use crate::boot::check;
use crate::conduct::{Experiment, conduct, ensure_connections};
use crate::context::{Context, Observer, Phase, SweepError};
use crate::session::{FinishedRun, Job, Session, Watching};

/// Longest wait for a single response.
const LONGEST_WAIT: Nanos = Nanos::from_secs(30);
/// The path where our app reports how many bytes of content it has sent.
const LEDGER_PATH: &str = "/ledger";
/// The response header with that number.
const LEDGER_HEADER: &str = "x-body-ledger";
/// At most this many requests per worker for the ledger: any worker may take a request.
const LEDGER_REQUESTS: usize = 100;

/// Conducts the study of `plan`. If the user interrupts, the study has the runs so far and is
/// marked as interrupted.
///
/// # Errors
/// If a server cannot be started, is not ready in time, does not serve the bodies, or dies. The
/// observer already has the runs that were finished before.
pub fn conduct_bodies(
    plan: &BodiesPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<BodiesStudy, SweepError> {
    ensure_connections(&plan.server, |slots| plan.connections_on(slots))?;
    let study = BodiesStudy {
        schema: SCHEMA,
        started_at: context.started_at.clone(),
        command_line: context.command_line.clone(),
        plan: plan.clone(),
        environment: host::environment(context.version),
        servers: Vec::new(),
        runs: Vec::new(),
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    };
    let mut blocks = Vec::new();
    for repeat in 1..=plan.repeat {
        for (socket, bodies) in plan.pass(repeat) {
            blocks.push(block(plan, repeat, socket, &bodies));
        }
    }
    let mut bodies = BodiesExperiment {
        plan,
        study,
        blocks: blocks.into_iter(),
        ceilings: BTreeMap::new(),
        begun: context.clock.now(),
    };
    conduct(&mut bodies, context, observer)?;
    let BodiesExperiment { mut study, begun, .. } = bodies;
    (study.total_time, study.interrupted) = context.time_taken(begun);
    Ok(study)
}

/// A pass over `bodies` on one server.
fn block(plan: &BodiesPlan, repeat: u32, socket: Socket, bodies: &[Body]) -> Block {
    let server = ServerPlan { socket, ..plan.server.clone() };
    let stream = StreamPlan { body: bodies.first().copied(), ..plan.stream.clone() };
    Block::closed(server, stream, plan.cool_down, repeat)
}

struct BodiesExperiment<'a> {
    plan: &'a BodiesPlan,
    study: BodiesStudy,
    /// The blocks still to come.
    blocks: std::vec::IntoIter<Block>,
    /// What the generator alone reaches, by kind of socket and size in kB.
    ceilings: BTreeMap<(Socket, u32), Option<Ceiling>>,
    begun: Nanos,
}

impl Experiment for BodiesExperiment<'_> {
    fn next(&mut self) -> Option<Block> {
        self.blocks.next()
    }

    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError> {
        let block = session.block;
        let plan = self.plan;
        let facts = session.server.facts.clone();
        let socket = block.server.socket;
        let slots = facts.slots();
        let connections = plan.connections_on(slots);
        self.study.servers.retain(|other| other.socket != socket);
        self.study.servers.push(SocketServer { socket, server: facts });
        let place = |socket: Socket| plan.sockets.iter().position(|other| *other == socket);
        self.study.servers.sort_by_key(|server| place(server.socket));
        let pass = plan.pass(block.repeat);
        let bodies = pass
            .into_iter()
            .find(|(other, _)| *other == socket)
            .map(|(_, bodies)| bodies)
            .unwrap_or_default();

        session.observer.phase(&Phase::WarmingUp);
        let response_bytes = check_bodies(&bodies, session)?;
        warm_up(&bodies, connections, session)?;
        session.take_baseline();
        if plan.calibrate && block.repeat == 1 {
            session.observer.phase(&Phase::Calibrating);
            for (kilobytes, bytes) in &response_bytes {
                let body = Body { kilobytes: *kilobytes, kind: bodies[0].kind };
                let shape = session.shape(&of_body(&session.block.stream, body), connections);
                let ceiling = session.ceilings(std::slice::from_ref(&shape), *bytes)?[0];
                self.ceilings.insert((socket, *kilobytes), ceiling);
            }
        }
        let job = |(at, body): (usize, Body)| Job {
            stream: of_body(&session.block.stream, body),
            probe: plan.probe,
            what: format!("{body} over {socket}"),
            multiple: f64::from(connections) / f64::from(slots.max(1)),
            connections,
            ceiling: self.ceilings.get(&(socket, body.kilobytes)).copied().flatten(),
            number: self.study.runs.len() + at + 1,
            of: plan.runs(),
            later_connections: u64::from(connections)
                * (plan.runs() - self.study.runs.len() - at - 1) as u64,
            may_end_early: false,
        };
        Ok(bodies.into_iter().enumerate().map(job).collect())
    }

    fn run(&mut self, job: &Job, session: &mut Session<'_>) -> Result<bool, SweepError> {
        let FinishedRun { mut run, server, .. } = session.run(job, None)?;
        if run.tally.counts.total() == 0 && session.context.is_interrupted() {
            // Interrupted within its warm-up, so nothing was measured.
            return Ok(false);
        }
        // No percentile above p99 is printed.
        run.warnings.retain(|warning| match warning {
            Diagnostic::TooFewRequests { from, .. } | Diagnostic::QuantilesHidden { from, .. } => {
                *from <= 0.99
            }
            _ => true,
        });
        let body = job.stream.body.expect("each job has a body");
        let run = BodyRun { socket: session.block.server.socket, body, server, run };
        (self.study.total_time, self.study.interrupted) = session.context.time_taken(self.begun);
        self.study.runs.push(run);
        let mut provisional = self.study.clone();
        session.judge(provisional.runs.last_mut().map(|row| &mut row.run), false, None, &[]);
        session.observer.run_done(&self.study.clone().into(), &provisional.into());
        Ok(true)
    }

    fn judge(&mut self, session: &mut Session<'_>, is_whole: bool) {
        let block = session.block;
        if is_whole {
            session.observer.phase(&Phase::Reconciling);
            self.study.warnings.extend(compare_bytes(session));
        }
        let is_of_this = |run: &&mut BodyRun| {
            run.socket == block.server.socket && run.run.repeat == block.repeat
        };
        let of_this_server = self.study.runs.iter_mut().filter(is_of_this).map(|run| &mut run.run);
        self.study.warnings.extend(session.judge(of_this_server, is_whole, None, &[]));
        session.observer.judged(&self.study.clone().into());
    }
}

/// The same requests, but for this body.
fn of_body(stream: &StreamPlan, body: Body) -> StreamPlan {
    StreamPlan { body: Some(body), ..stream.clone() }
}

/// Requests every body once, before any load, and checks its length. Returns the bytes of a whole
/// response, head included, by size of the body.
fn check_bodies(
    bodies: &[Body],
    session: &mut Session<'_>,
) -> Result<BTreeMap<u32, u64>, SweepError> {
    let mut bytes = BTreeMap::new();
    for body in bodies {
        let stream = of_body(&session.block.stream, *body);
        let path = stream.target_path();
        let request = session.server.request(&stream, false);
        let response = match request_once(session, &request, &stream.worker_header) {
            Ok(response) => response,
            Err(_) if session.context.is_interrupted() => break,
            Err(how) => {
                let what = format!("GET {path} is not answered: {how}");
                return Err(SweepError::NotServing { what, last_lines: Vec::new() });
            }
        };
        session.add_response(&response);
        check(&session.server.server, &path.masked(), &stream, &response)?;
        bytes.insert(body.kilobytes, response.bytes);
    }
    Ok(bytes)
}

fn request_once(
    session: &Session<'_>,
    request: &model::Request,
    header: &str,
) -> Result<FetchedResponse, String> {
    let patience = LONGEST_WAIT + session.block.stream.delay.unwrap_or(Nanos::ZERO);
    fetch(
        &session.server.transport,
        request,
        header,
        patience,
        &session.context.clock,
        session.context.interrupt,
    )
}

/// Warms the server up with each kind of body, all sizes in turn.
fn warm_up(bodies: &[Body], connections: u32, session: &mut Session<'_>) -> Result<(), SweepError> {
    if session.block.stream.warm_up == Nanos::ZERO {
        return Ok(());
    }
    for kind in BodyKind::ALL.iter().copied() {
        let streams: Vec<StreamPlan> = bodies
            .iter()
            .filter(|body| body.kind == kind)
            .map(|body| of_body(&session.block.stream, *body))
            .collect();
        let Some(first) = streams.first().filter(|_| !session.context.is_interrupted()) else {
            continue;
        };
        let requests = streams
            .iter()
            .map(|stream| session.server.request(stream, stream.keep_alive))
            .collect();
        let requests = RequestMix::in_order(requests).into();
        let usual = session.shape(first, connections).with(|load| load.warm_up = Nanos::ZERO);
        let shape = LoadSpec {
            requests,
            measured: Some(session.block.stream.warm_up),
            requests_per_connection: None,
            // The bodies differ from one request to the next.
            body_bytes: None,
            ..usual
        };
        session.drive(&shape, &session.context.progress(&shape), &Watching::default())?;
        session.cool_down();
    }
    Ok(())
}

/// Compares the bytes of content that our app says it has sent, over this server's whole life, with
/// those received.
fn compare_bytes(session: &mut Session<'_>) -> Option<Diagnostic> {
    if session.block.server.rackup.is_some()
        || session.block.server.app != App::Bodies
        || session.unanswered > 0
    {
        // Missing responses are reported with the count of requests.
        return None;
    }
    let client = session.body_bytes;
    let request = session.server.get(LEDGER_PATH);
    let mut accounts: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..LEDGER_REQUESTS * session.server.workers.len().max(1) {
        if session.server.workers.iter().all(|worker| accounts.contains_key(worker)) {
            let app = accounts.values().sum();
            return (app != client).then_some(Diagnostic::BytesDiffer { client, app });
        }
        let Ok(mut response) = request_once(session, &request, LEDGER_HEADER) else { break };
        let header = response.worker.take();
        let account = header.as_deref().and_then(parse_account);
        response.worker = account.map(|(pid, _)| pid.to_owned());
        session.add_response(&response);
        let Some((pid, bytes)) = account else { break };
        accounts.insert(pid.to_owned(), bytes);
    }
    let reason = "not every worker reports how many bytes of content it sent".to_owned();
    (!session.context.is_interrupted()).then_some(Diagnostic::LedgerUnknown { reason })
}

/// The pid and the bytes of `<pid> <responses> <bytes>`.
fn parse_account(header: &str) -> Option<(&str, u64)> {
    let mut words = header.split(' ');
    Some((words.next()?, words.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_account;

    #[test]
    fn an_account_has_pid_responses_and_bytes() {
        assert_eq!(parse_account("4711 12 40960"), Some(("4711", 40_960)));
        assert_eq!(parse_account("4711 12"), None);
        assert_eq!(parse_account(""), None);
    }
}
