//! What looking costs: the same server with and without each instrument, in rounds.
//!
//! Each round runs every arm once, in an order of chance, each on a fresh server, closed loop. What a run took is read from the
//! kernel: CPU time of the server's processes and of our own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{DriveError, RaiseOnDrop, RunProgress, ensure_descriptors, spawn_scoped};
use model::{Clock, LaneFacts, Nanos, Probe, ServerFacts, ServerPlan, StreamPlan, Timestamps, paired};
use probe::processes::{Follower, this_process_cpu, this_threads_cpu, tree};

use crate::error::SweepError;
use crate::session::Session;
use crate::subject::Subject;
use crate::tools::Tools;
use crate::witnesses::{Watched, Witnesses};

/// How soon the receiver of packets notices the end.
const GLANCE: Duration = Duration::from_millis(20);
/// What `servers/sleep.ru` takes for the address that it sends its measurements to.
const STATSD: &str = "LONGTAIL_STATSD";

/// One way to run the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Nothing looks.
    Bare,
    /// As [`Arm::Bare`], once more: what differs between the two is noise.
    Control,
    /// Server and kernel are looked at meanwhile.
    Probe(Probe),
    /// The kernel stamps when answers come in.
    Stamps,
    /// The app stamps when it began and ended.
    Anatomy,
    /// The app sends a statsd packet for each request.
    Statsd,
    /// The server has this variable in its environment.
    Setting(String, String),
}

impl Arm {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Arm::Bare => "bare".to_owned(),
            Arm::Control => "control".to_owned(),
            Arm::Probe(probe) => probe.to_string(),
            Arm::Stamps => "stamps".to_owned(),
            Arm::Anatomy => "anatomy".to_owned(),
            Arm::Statsd => "statsd".to_owned(),
            Arm::Setting(name, value) => format!("{name}={value}"),
        }
    }

    /// What it adds, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Arm::Bare => "nothing looks",
            Arm::Control => "bare once more: what differs is noise",
            Arm::Probe(Probe::Bpf) => "the kernel's tracepoints are listened to as well (--probe bpf)",
            Arm::Probe(_) => "server and kernel are read meanwhile (--probe proc)",
            Arm::Stamps => "the kernel stamps arrivals (--timestamps kernel)",
            Arm::Anatomy => "the app stamps its begin and end (--anatomy)",
            Arm::Statsd => "the app sends a statsd packet for each request",
            Arm::Setting(..) => "the server has it in its environment",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct OverheadPlan {
    /// The server.
    pub server: ServerPlan,
    /// The stream of requests of the bare arm.
    pub stream: StreamPlan,
    /// Connections; `None`: as many as the server has slots.
    pub connections: Option<u32>,
    /// All arms, the bare one and the control among them.
    pub arms: Vec<Arm>,
    /// How often each is run.
    pub rounds: u32,
    /// Chooses the order of the arms in each round.
    pub seed: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The place of its arm in the plan.
    pub arm: usize,
    /// From 1.
    pub round: u32,
    /// Good answers a second of the measured window.
    pub rate_per_s: f64,
    /// All answers, the warm-up's included: the CPU times are of these.
    pub answers: u64,
    /// Requests that were not answered well.
    pub failed: u64,
    /// CPU time of the server's processes; `None` where the kernel does not tell it of all of them.
    pub server_cpu: Option<Nanos>,
    /// CPU time of our own process: lanes, and what looks on.
    pub generator_cpu: Nanos,
    /// The busiest lane's share of a CPU, 0 to 1.
    pub lane_busy: Option<f64>,
    /// Packets that the app sent.
    pub packets: Option<u64>,
    /// Whether the app said when it began and ended.
    pub is_stamped: bool,
}

impl Sample {
    /// The server's CPU time for each answer, in ns.
    pub fn server_ns_per_request(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.server_cpu.map(|cpu| cpu.0 as f64 / self.answers as f64)).flatten()
    }

    /// Our own, in ns.
    pub fn generator_ns_per_request(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.generator_cpu.0 as f64 / self.answers as f64)
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// The server, as it was last started.
    pub server: ServerFacts,
    /// Connections of each run.
    pub connections: u32,
    /// Runs that were finished, in the order in which they were.
    pub samples: Vec<Sample>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// Runs all rounds. `tell` is told of each run before it begins, and how far it is.
///
/// # Errors
/// Where a server cannot be started, is not ready in time, or dies.
pub fn conduct_overhead<C: Clock + Clone + Send + Sync>(
    plan: &OverheadPlan,
    tools: &Tools<'_, C>,
    tell: &dyn Fn(u32, &Arm),
) -> Result<Overhead, SweepError> {
    let mut found = Overhead::default();
    for round in 1..=plan.rounds {
        for place in paired::order(plan.seed, round, plan.arms.len()) {
            tell(round, &plan.arms[place]);
            let sample = if tools.is_interrupted() { None } else { run(plan, place, round, tools, &mut found)? };
            let Some(sample) = sample else {
                found.interrupted = true;
                return Ok(found);
            };
            found.samples.push(sample);
        }
    }
    Ok(found)
}

/// One run on a fresh server; `None` where the user interrupted.
fn run<C: Clock + Clone + Send + Sync>(
    plan: &OverheadPlan,
    place: usize,
    round: u32,
    tools: &Tools<'_, C>,
    found: &mut Overhead,
) -> Result<Option<Sample>, SweepError> {
    let arm = &plan.arms[place];
    let mut stream = plan.stream.clone();
    stream.timestamps = if *arm == Arm::Stamps { Timestamps::Kernel } else { Timestamps::User };
    stream.anatomy = *arm == Arm::Anatomy;
    let probe = if let Arm::Probe(probe) = arm { *probe } else { Probe::None };
    let receiver = (*arm == Arm::Statsd).then(Receiver::new).transpose().map_err(SweepError::NoReceiver)?;
    let settings = match (arm, &receiver) {
        (Arm::Setting(name, value), _) => vec![(name.into(), value.into())],
        (_, Some(receiver)) => vec![(STATSD.into(), receiver.address.to_string().into())],
        _ => Vec::new(),
    };
    let Some(subject) = Subject::start_with(&plan.server, &stream, settings, tools)? else { return Ok(None) };
    let connections = plan.connections.unwrap_or(subject.facts.slots());
    ensure_descriptors(u64::from(connections))?;
    found.server = subject.facts.clone();
    found.connections = connections;
    let mut followers: Vec<Follower> = tree(subject.pid()).into_iter().map(Follower::of).collect();
    let mut session = Session::new(&plan.server, &stream, false, tools, subject);
    let shape = session.shape(&stream, connections);
    let progress = Arc::new(RunProgress::new(shape.lanes));
    let over = AtomicBool::new(false);
    let (done, server_cpu, generator_cpu, received) = std::thread::scope(|scope| -> Result<_, DriveError> {
        let _ending = RaiseOnDrop(&over);
        let receiving =
            receiver.as_ref().map(|receiver| spawn_scoped(scope, "receiver", || receiver.count_until(&over)));
        let receiving = receiving.transpose()?;
        let before: Option<u64> = followers.iter_mut().map(|one| one.look().map(|used| used.cpu)).sum();
        let ours_before = this_process_cpu();
        let done = session.drive_watched(&shape, &progress, &Witnesses { probe, ..Witnesses::none() });
        let ours = this_process_cpu().saturating_sub(ours_before);
        let after: Option<u64> = followers.iter_mut().map(|one| one.look().map(|used| used.cpu)).sum();
        over.store(true, Ordering::Relaxed);
        let received = receiving.map(|thread| thread.join().expect("receiving never panics"));
        let server = after.zip(before).map(|(after, before)| Nanos(after.saturating_sub(before)));
        Ok((done, server, ours, received))
    })?;
    let Watched { done, setup_cpu, .. } = done?;
    if tools.is_interrupted() {
        session.subject.stop(&tools.clock);
        return Ok(None);
    }
    if let Some(death) = session.subject.death(connections) {
        return Err(death);
    }
    let seconds = done.measured.as_secs_f64();
    let busy = |lane: &LaneFacts| lane.work().as_secs_f64() / lane.elapsed.as_secs_f64().max(1e-9);
    let sample = Sample {
        arm: place,
        round,
        rate_per_s: if seconds > 0.0 { done.tally.counts.good() as f64 / seconds } else { 0.0 },
        answers: done.tally.all_answers(),
        failed: done.tally.counts.failed(),
        server_cpu,
        // What receives the app's packets stands for another process, which a user has elsewhere; and to attach tracepoints
        // costs once, not for each request.
        generator_cpu: generator_cpu.saturating_sub(received.map_or(Nanos::ZERO, |(_, cpu)| cpu) + setup_cpu),
        lane_busy: done.lanes.iter().map(busy).max_by(f64::total_cmp),
        packets: received.map(|(packets, _)| packets),
        is_stamped: done.anatomy.is_some(),
    };
    session.subject.stop(&tools.clock);
    Ok(Some(sample))
}

/// A place of our own for the app's packets, as an agent on the server's machine would be.
struct Receiver {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Receiver {
    fn new() -> std::io::Result<Receiver> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(GLANCE))?;
        let address = socket.local_addr()?;
        Ok(Receiver { socket, address })
    }

    /// Packets that came, and the CPU time that taking them took.
    fn count_until(&self, over: &AtomicBool) -> (u64, Nanos) {
        let begun_with = this_threads_cpu();
        let (mut packets, mut bytes) = (0, [0; 2048]);
        loop {
            match self.socket.recv(&mut bytes) {
                Ok(_) => packets += 1,
                // Nothing is left.
                Err(_) if over.load(Ordering::Relaxed) => break,
                Err(_) => {}
            }
        }
        (packets, this_threads_cpu().saturating_sub(begun_with))
    }
}
