//! One study of bodies: kinds x sizes over each kind of socket, in blocks of an order of chance.
//!
//! A block is a pass over all bodies on a fresh server of one kind of socket. Before its runs each body was asked for
//! once and found to be of its length, and each kind was loaded for as long as a warm-up, so that no run is the first of
//! its kind.

use std::collections::BTreeMap;

use engine::{FetchedResponse, LoadSpec, RunProgress, ensure_descriptors, fetch};
use model::study::SCHEMA;
use model::{
    App, BodiesPlan, BodiesStudy, Body, BodyKind, BodyRun, Ceiling, Clock, Diagnostic, Nanos, RequestOrder, ServerPlan,
    Socket, SocketServer, StreamPlan,
};
use probe::machine;

use crate::conduct::planned_slots;
use crate::error::SweepError;
use crate::observer::{Observer, Phase};
use crate::session::{Job, Session};
use crate::subject::{Subject, right_length};
use crate::tools::Tools;

/// Longest wait for a single answer.
const PATIENCE: Nanos = Nanos::from_secs(30);
/// Where our app says what it has answered, and the header that says it.
const LEDGER: (&str, &str) = ("/ledger", "x-body-ledger");
/// A worker is asked for its ledger until it happens to be the one that answers; so often for each worker.
const QUESTIONS: usize = 100;

/// Conducts the study of `plan`. Where the user interrupts, the study has the runs that there are, and says so.
///
/// # Errors
/// Where a server cannot be started, is not ready in time, does not serve the bodies, or dies. The runs that were
/// finished before were given to the observer.
pub fn conduct_bodies<C: Clock + Clone + Send + Sync>(
    plan: &BodiesPlan,
    tools: &Tools<'_, C>,
    observer: &mut dyn Observer<BodiesStudy, BodyRun>,
) -> Result<BodiesStudy, SweepError> {
    let begun = tools.clock.now();
    if let Some(slots) = planned_slots(&plan.server) {
        ensure_descriptors(u64::from(plan.connections_on(slots)))?;
    }
    let mut study = BodiesStudy {
        schema: SCHEMA,
        started_at: tools.started_at.clone(),
        command_line: tools.command_line.clone(),
        plan: plan.clone(),
        environment: machine::environment(tools.version),
        lanes_by: tools.lanes_by.unwrap_or(model::LanesBy::One),
        servers: Vec::new(),
        runs: Vec::new(),
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    };
    let mut ceilings = BTreeMap::new();
    for repeat in 1..=plan.repeat {
        for (socket, bodies) in plan.pass(repeat) {
            if tools.is_interrupted() {
                break;
            }
            let server = ServerPlan { socket, ..plan.server.clone() };
            let block = Block { plan, tools, server: &server, bodies: &bodies, repeat, begun };
            block.conduct(&mut study, &mut ceilings, observer)?;
        }
    }
    study.interrupted = tools.is_interrupted();
    study.total_time = tools.clock.now() - begun;
    Ok(study)
}

/// The generator's limit by kind of socket and size.
type Ceilings = BTreeMap<(Socket, u32), Option<Ceiling>>;

/// One pass over all bodies, on a server of one kind of socket.
struct Block<'a, C> {
    plan: &'a BodiesPlan,
    tools: &'a Tools<'a, C>,
    server: &'a ServerPlan,
    bodies: &'a [Body],
    repeat: u32,
    /// When the study began.
    begun: Nanos,
}

impl<C: Clock + Clone + Send + Sync> Block<'_, C> {
    fn conduct(
        &self,
        study: &mut BodiesStudy,
        ceilings: &mut Ceilings,
        observer: &mut dyn Observer<BodiesStudy, BodyRun>,
    ) -> Result<(), SweepError> {
        let Block { plan, tools, server, .. } = *self;
        observer.phase(&Phase::Starting);
        let Some(subject) = Subject::start(server, &self.stream(self.bodies[0]), tools)? else { return Ok(()) };
        let slots = subject.facts.slots();
        let connections = plan.connections_on(slots);
        ensure_descriptors(u64::from(connections))?;
        let is_first = study.servers.is_empty();
        study.servers.retain(|other| other.socket != server.socket);
        study.servers.push(SocketServer { socket: server.socket, server: subject.facts.clone() });
        let place = |socket: Socket| plan.sockets.iter().position(|other| *other == socket);
        study.servers.sort_by_key(|server| place(server.socket));
        let mut session = Session::new(server, &plan.stream, plan.cool_down, tools, subject);

        observer.phase(&Phase::WarmingUp);
        let answer_bytes = self.ask_for_each(&mut session)?;
        self.warm_up(&mut session, connections)?;
        session.take_baseline();
        if plan.calibrate && self.repeat == 1 {
            observer.phase(&Phase::Calibrating);
            for (kilobytes, bytes) in &answer_bytes {
                let shape =
                    session.shape(&self.stream(Body { kilobytes: *kilobytes, kind: self.bodies[0].kind }), connections);
                let ceiling = session.ceilings(std::slice::from_ref(&shape), *bytes)?[0];
                ceilings.insert((server.socket, *kilobytes), ceiling);
            }
        }
        if is_first {
            observer.opened(study);
        }
        for body in self.bodies {
            if tools.is_interrupted() {
                break;
            }
            let job = Job {
                stream: &self.stream(*body),
                probe: plan.probe,
                what: format!("{body} over {}", server.socket),
                multiple: f64::from(connections) / f64::from(slots.max(1)),
                connections,
                ceiling: ceilings.get(&(server.socket, body.kilobytes)).copied().flatten(),
                repeat: self.repeat,
                number: study.runs.len() + 1,
                of: plan.runs(),
                begun: self.begun,
            };
            let (mut run, server_use) = session.run(&job, None, &mut |phase| observer.phase(phase))?;
            if run.tally.counts.total() == 0 && tools.is_interrupted() {
                // Ended within its warm-up: there is nothing to tell of it.
                break;
            }
            // No percentile above p99 is printed, so that there is nothing to say of one.
            run.warnings.retain(|warning| match warning {
                Diagnostic::TooFewRequests { from, .. } | Diagnostic::QuantilesHidden { from, .. } => *from <= 0.99,
                _ => true,
            });
            study.runs.push(BodyRun { socket: server.socket, body: *body, server: server_use, run });
            study.interrupted = tools.is_interrupted();
            study.total_time = tools.clock.now() - self.begun;
            if let Some(run) = study.runs.last() {
                observer.run_done(study, run);
            }
            if let Some(error) = session.subject.death(connections) {
                return Err(error);
            }
        }
        if !tools.is_interrupted() {
            observer.phase(&Phase::Reconciling);
            study.warnings.extend(self.reconcile_bytes(&mut session));
            let is_of_this = |run: &&mut BodyRun| run.socket == server.socket && run.run.repeat == self.repeat;
            let of_this_server = study.runs.iter_mut().filter(is_of_this).map(|run| &mut run.run);
            study.warnings.extend(session.settle(of_this_server));
        }
        observer.compared(study);
        observer.phase(&Phase::Stopping);
        session.subject.stop(&tools.clock);
        Ok(())
    }

    fn stream(&self, body: Body) -> StreamPlan {
        StreamPlan { body: Some(body), ..self.plan.stream.clone() }
    }

    /// Asks for every body once, before any load, and finds each to be of its length. Gives the bytes of a whole answer
    /// by size, heads included.
    fn ask_for_each(&self, session: &mut Session<'_, C>) -> Result<BTreeMap<u32, u64>, SweepError> {
        let mut bytes = BTreeMap::new();
        for body in self.bodies {
            let stream = self.stream(*body);
            let path = stream.target_path();
            let request = session.subject.request(&stream, false);
            let answer = match self.fetch(session, &request, &stream.worker_header) {
                Ok(answer) => answer,
                Err(_) if self.tools.is_interrupted() => break,
                Err(how) => return Err(SweepError::NoAnswer { path, how }),
            };
            session.add_answer(&answer);
            if answer.status >= 400 {
                let last_lines = if answer.status >= 500 { session.subject.last_lines() } else { Vec::new() };
                return Err(SweepError::BadAnswer { path, status: answer.status, last_lines });
            }
            right_length(&path, &stream, &answer)?;
            bytes.insert(body.kilobytes, answer.bytes);
        }
        Ok(bytes)
    }

    fn fetch(
        &self,
        session: &Session<'_, C>,
        request: &model::Request,
        header: &str,
    ) -> Result<FetchedResponse, String> {
        let patience = PATIENCE + self.plan.stream.delay.unwrap_or(Nanos::ZERO);
        fetch(&session.subject.transport, request, header, patience, &self.tools.clock, self.tools.interrupt)
            .map_err(|error| error.to_string())
    }

    /// Loads the server with each kind of body, all sizes in turn, as long as a warm-up takes.
    fn warm_up(&self, session: &mut Session<'_, C>, connections: u32) -> Result<(), SweepError> {
        if self.plan.stream.warm_up == Nanos::ZERO {
            return Ok(());
        }
        for kind in BodyKind::ALL {
            let streams: Vec<StreamPlan> =
                self.bodies.iter().filter(|body| body.kind == kind).map(|body| self.stream(*body)).collect();
            let Some(first) = streams.first().filter(|_| !self.tools.is_interrupted()) else { continue };
            let requests = streams.iter().map(|stream| session.subject.request(stream, stream.keep_alive)).collect();
            let shape = LoadSpec {
                requests,
                order: RequestOrder::Sequential,
                warm_up: Nanos::ZERO,
                measured: Some(self.plan.stream.warm_up),
                requests_per_connection: None,
                // They differ from one request to the next.
                body_bytes: None,
                ..session.shape(first, connections)
            };
            session.drive(&shape, &RunProgress::new(shape.lanes))?;
            session.cool_down();
        }
        Ok(())
    }

    /// The bytes of content that our app says it has answered beside those that we had, over this server's whole life.
    fn reconcile_bytes(&self, session: &mut Session<'_, C>) -> Option<Diagnostic> {
        if self.server.rackup.is_some() || self.server.app != App::Bodies || session.unanswered {
            // What is not known for want of answers is said where requests are counted.
            return None;
        }
        let client = session.body_bytes;
        let request = session.subject.get(LEDGER.0);
        let mut accounts: BTreeMap<String, u64> = BTreeMap::new();
        for _ in 0..QUESTIONS * session.subject.workers.len().max(1) {
            if session.subject.workers.iter().all(|worker| accounts.contains_key(worker)) {
                let app = accounts.values().sum();
                return (app != client).then_some(Diagnostic::BytesDiffer { client, app });
            }
            let Ok(mut answer) = self.fetch(session, &request, LEDGER.1) else { break };
            let said = answer.worker.take();
            let account = said.as_deref().and_then(account);
            answer.worker = account.map(|(pid, _)| pid.to_owned());
            session.add_answer(&answer);
            let Some((pid, bytes)) = account else { break };
            accounts.insert(pid.to_owned(), bytes);
        }
        let reason = "not every worker told how many bytes of content it has answered".to_owned();
        (!self.tools.is_interrupted()).then_some(Diagnostic::LedgerUnknown { reason })
    }
}

/// `<pid> <answers> <bytes>`: the pid and the bytes.
fn account(said: &str) -> Option<(&str, u64)> {
    let mut words = said.split(' ');
    Some((words.next()?, words.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn an_account_has_three_numbers() {
        assert_eq!(account("4711 12 40960"), Some(("4711", 40_960)));
        assert_eq!(account("4711 12"), None);
        assert_eq!(account(""), None);
    }
}
