//! A study of `sweep --bodies`: kinds and sizes of response bodies over several kinds of socket,
//! one run each.

use serde::{Deserialize, Serialize};

use crate::pace::uniform;
use crate::secret::MaskedText;
use crate::{
    Bodies, Body, Diagnostic, Environment, Nanos, Probe, Quantile, Run, ServerFacts, ServerPlan,
    Socket, StreamPlan, Threshold,
};

/// What `longtail sweep --bodies` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodiesPlan {
    /// The server and how to start it; the kind of socket changes for each run.
    pub server: ServerPlan,
    /// The stream of requests; the body changes for each run.
    pub stream: StreamPlan,
    /// The kinds of socket, each once.
    pub sockets: Vec<Socket>,
    /// `-b`: kinds and sizes.
    pub bodies: Bodies,
    /// `-c`: connections per stream.
    pub connections_per_stream: u32,
    /// `-T`: streams; `None`: four fifths of the slots, at least 1.
    pub streams: Option<u32>,
    /// How often all of it is run, each time on fresh servers.
    pub repeat: u32,
    /// Chooses the order of the runs.
    pub seed: u64,
    /// Whether to wait after each run until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
    /// `--inspect`: what is read from server and kernel during a run.
    pub probe: Probe,
    /// `--expect` and `--fail-if`: the thresholds for each run.
    pub thresholds: Vec<Threshold>,
}

impl BodiesPlan {
    /// The default number of connections per stream, as in Puma's script.
    pub const CONNECTIONS_PER_STREAM: u32 = 2;

    /// Runs, in total.
    pub fn runs(&self) -> usize {
        self.sockets.len() * self.bodies.all().len() * self.repeat as usize
    }

    /// Streams on a server with this many slots.
    pub fn streams_on(&self, slots: u32) -> u32 {
        self.streams.unwrap_or((f64::from(slots) * 0.8) as u32).max(1)
    }

    /// Connections in total on a server with this many slots.
    pub fn connections_on(&self, slots: u32) -> u32 {
        self.streams_on(slots).saturating_mul(self.connections_per_stream)
    }

    /// The `repeat`-th pass, from 1: the kinds of socket in the order in which they are served, and
    /// for each the bodies in the order of their runs. Every body is there once for each kind of
    /// socket, in a random order that the seed makes repeatable.
    pub fn pass(&self, repeat: u32) -> Vec<(Socket, Vec<Body>)> {
        let mut draws = (0..).map(|n| uniform(self.seed ^ (u64::from(repeat) << 32), n));
        let sockets = shuffled(self.sockets.clone(), &mut draws);
        sockets
            .into_iter()
            .map(|socket| (socket, shuffled(self.bodies.all(), &mut draws)))
            .collect()
    }
}

/// The items in a random order (Fisher and Yates); each draw is from (0, 1].
pub(crate) fn shuffled<T>(mut items: Vec<T>, draws: &mut impl Iterator<Item = f64>) -> Vec<T> {
    for last in (1..items.len()).rev() {
        let draw = draws.next().unwrap_or(1.0);
        let chosen = ((draw * (last + 1) as f64).ceil() as usize).clamp(1, last + 1) - 1;
        items.swap(last, chosen);
    }
    items
}

/// What `longtail bodies` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodiesStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked for.
    pub plan: BodiesPlan,
    /// The machine.
    pub environment: Environment,
    /// The servers under test, one for each kind of socket, as they were last started.
    pub servers: Vec<SocketServer>,
    /// The finished runs, in order.
    pub runs: Vec<BodyRun>,
    /// What is doubtful about the study as a whole.
    pub warnings: Vec<Diagnostic>,
    /// From the start of the first server to the end of the last.
    #[serde(rename = "total_time_ns")]
    pub total_time: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl BodiesStudy {
    /// One of the servers, for what all have in common.
    pub fn server(&self) -> Option<&ServerFacts> {
        self.servers.first().map(|server| &server.server)
    }

    /// The runs in the order of the plan: by kind of socket, size, kind of body, and pass.
    pub fn sorted(&self) -> Vec<&BodyRun> {
        let plan = &self.plan;
        let place = |run: &BodyRun| {
            (
                plan.sockets.iter().position(|socket| *socket == run.socket),
                plan.bodies.kilobytes.iter().position(|size| *size == run.body.kilobytes),
                plan.bodies.kinds.iter().position(|kind| *kind == run.body.kind),
                run.run.repeat,
            )
        };
        let mut runs: Vec<&BodyRun> = self.runs.iter().collect();
        runs.sort_by_key(|run| place(run));
        runs
    }
}

/// A server and the kind of socket that it was bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketServer {
    /// The kind.
    pub socket: Socket,
    /// The server.
    pub server: ServerFacts,
}

/// One row: a body over a kind of socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyRun {
    /// The kind of socket.
    pub socket: Socket,
    /// The body of every response.
    pub body: Body,
    /// The server's resources.
    pub server: ServerUse,
    /// What happened. Its `multiple` is connections / slots; it has no forecast.
    pub run: Run,
}

/// The resources that a server's processes used, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUse {
    /// Time on a CPU over the whole run, warm-up and drain included, of all its processes.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// Memory after the run; shared memory counts once (the sum of PSS).
    pub memory_bytes: Option<u64>,
}

impl BodyRun {
    /// Bytes of content of good responses, per second of the measured window.
    pub fn content_rate(&self) -> f64 {
        self.run.completed_rate() * self.body.bytes() as f64
    }

    /// Bytes of content per response, over all complete responses of the run.
    pub fn content_bytes(&self) -> Option<f64> {
        let tally = &self.run.tally;
        let answers = self.run.tally.all_responses();
        (answers > 0).then(|| tally.body_bytes as f64 / answers as f64)
    }

    /// Bytes received per response, with head and chunk framing; `None` if bytes of incomplete
    /// responses were also received.
    pub fn whole_bytes(&self) -> Option<f64> {
        let tally = &self.run.tally;
        let answers = tally.all_responses();
        let requests = tally.all_requests();
        (answers > 0 && answers == requests).then(|| tally.received_bytes as f64 / answers as f64)
    }

    /// The server's CPU time per response, both including warm-up and drain.
    pub fn server_cpu(&self) -> Option<Nanos> {
        let answers = self.run.tally.all_responses();
        self.server.cpu.filter(|_| answers > 0).map(|cpu| cpu / answers)
    }

    /// The response time at quantile `q`, like [`Run::response_time`].
    pub fn response_time(&self, q: f64) -> Quantile {
        self.run.response_time(q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, test_fixtures};
    use std::collections::BTreeSet;

    fn plan(seed: u64) -> BodiesPlan {
        BodiesPlan {
            server: test_fixtures::puma(App::Bodies),
            stream: test_fixtures::stream(10, None),
            sockets: vec![Socket::Tcp4, Socket::Unix, Socket::Aunix],
            bodies: Bodies::default(),
            connections_per_stream: 2,
            streams: None,
            repeat: 3,
            seed,
            cool_down: true,
            calibrate: true,
            probe: Probe::Proc,
            thresholds: Vec::new(),
        }
    }

    #[test]
    fn each_pass_has_every_job_once_in_its_own_order() {
        let plan = plan(1);
        assert_eq!(
            (plan.runs(), plan.bodies.to_string().as_str()),
            (3 * 28 * 3, "acsi1,10,100,256,512,1024,2048")
        );
        let all: BTreeSet<Body> = plan.bodies.all().into_iter().collect();
        let mut orders = BTreeSet::new();
        for repeat in 1..=plan.repeat {
            let pass = plan.pass(repeat);
            assert_eq!(pass.len(), 3);
            assert!(
                plan.sockets.iter().all(|socket| pass.iter().any(|(other, _)| other == socket))
            );
            for (_, bodies) in pass {
                assert_eq!(bodies.len(), 28);
                assert_eq!(bodies.iter().copied().collect::<BTreeSet<_>>(), all);
                orders.insert(bodies);
            }
        }
        assert_eq!(orders.len(), 9, "no two blocks are alike");
        assert_eq!(plan.pass(2), self::plan(1).pass(2));
        assert_ne!(plan.pass(2), self::plan(8).pass(2));
    }

    #[test]
    fn every_item_is_equally_likely_at_every_place() {
        let mut first = [0u32; 5];
        for seed in 0..5000 {
            let mut draws = (0..).map(|n| uniform(seed, n));
            first[shuffled((0..5).collect::<Vec<usize>>(), &mut draws)[0]] += 1;
        }
        // Chi-square with four degrees of freedom: 30 has a probability of 5e-6, and the seeds are
        // fixed.
        assert!(test_fixtures::chi_square(&first) < 30.0, "{first:?}");
    }

    #[test]
    fn streams_are_four_fifths_of_the_slots_as_in_pumas_script() {
        let connections = |slots| plan(1).connections_on(slots);
        assert_eq!([10, 1, 4, 20].map(connections), [16, 2, 6, 32]);
        assert_eq!(
            BodiesPlan { streams: Some(3), connections_per_stream: 4, ..plan(1) }
                .connections_on(10),
            12
        );
    }
}
