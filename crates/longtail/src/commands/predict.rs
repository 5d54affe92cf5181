//! `longtail predict`: what queueing theory says of a server, before there is one.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgGroup, Args};
use model::{DelayLaw, Nanos, Rate, Study, Threads};
use probe::server_cpu::CpuRoom;
use queueing::closed_loop::MOST_CONNECTIONS;
use queueing::prediction::{
    self, HIGHEST_SIMULATED, PredictedLoad, PredictedServer, PredictedService, RequestCpu,
    ServerCpus, TimeGoal,
};
use report::number;

use crate::args::ADVANCED;
use crate::args::limits::{from_1_to, time_goal};
use crate::args::output::FormatArgs;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::{store, ui};

/// Prints the prediction.
///
/// # Errors
/// If a flag is wrong, the study has no service time, or theory has no answer.
pub(crate) fn run(args: &PredictArgs) -> Result<Exit, Mistake> {
    refuse_if(
        args.plot && args.output.is_json(),
        "--plot is drawn for people: leave it out, or --json",
    )?;
    refuse_if(
        args.workers.saturating_mul(args.threads.max) > 1000,
        "-w and -t want at most 1000 slots, workers x threads, to predict",
    )?;
    let service = service(&args.service)?;
    refuse_if(service.law.mean() == Nanos::ZERO, "--service must be greater than 0")?;
    let server = PredictedServer {
        workers: args.workers,
        threads: args.threads.max,
        law: service.law,
        seed: args.seed.unwrap_or(1),
    };
    let load = args.load();
    let cpus = server_cpus(args.cpus);
    let cpu = args.cpu.map(|time| RequestCpu { time, cpus });
    check(args, &server, load, cpu)?;
    let mut prediction = prediction::predict(&server, load, args.objective, cpu)?;
    prediction.notes.extend(service.notes);
    if cpu.is_none() {
        prediction.notes.push(report::prediction::cpu_not_counted(&server, cpus, service.cpu));
    }
    let uses_seed = !prediction.lines.is_empty() && server.is_random(load);
    if args.seed.is_some() && !uses_seed {
        prediction.notes.push("--seed changes nothing here: nothing is left to chance".to_owned());
    }
    if args.output.is_json() {
        ui::print_json(&prediction);
    } else {
        let plot = if args.plot { Some(prediction::plot(&server)?) } else { None };
        let width = ui::terminal_width();
        ui::print(&report::prediction::as_text(&prediction, plot.as_deref(), width));
    }
    Ok(Exit::Fine)
}

/// Refuses what no formula answers, and flags that exclude each other.
fn check(
    args: &PredictArgs,
    server: &PredictedServer,
    load: PredictedLoad,
    cpu: Option<RequestCpu>,
) -> Result<(), Mistake> {
    if let Some(share) = args.objective.and_then(|goal| goal.share) {
        refuse_if(
            server.is_simulated() && share > HIGHEST_SIMULATED,
            format!(
                "{} of this service time is not known well enough: ask for p99 or lower, or give --service 200ms or exp:5ms, which have a formula",
                number::percentile(share)
            ),
        )?;
    }
    let Some(cpu) = cpu else { return Ok(()) };
    refuse_if(
        cpu.time == Nanos::ZERO || cpu.time > server.law.mean(),
        "--cpu is a part of the service time: more than 0, and not more than that",
    )?;
    if let PredictedLoad::Closed { connections, .. } = load
        && connections.div_ceil(server.workers) > MOST_CONNECTIONS
    {
        return Err(wrong(format!(
            "--cpu is reckoned for at most {MOST_CONNECTIONS} connections of a worker: lower -c"
        )));
    }
    if (args.objective.is_some() || args.plot) && prediction::hides_times(server, load, cpu)? {
        let flag = if args.objective.is_some() { "--objective" } else { "--plot" };
        return Err(wrong(format!(
            "{flag} asks for response times, and no formula has them where threads wait for Ruby's lock or a CPU: leave out --cpu (for threads that never do), or {flag}"
        )));
    }
    Ok(())
}

/// The CPUs that were given, or this machine's.
fn server_cpus(given: Option<f64>) -> ServerCpus {
    let here = || CpuRoom::of(&[std::process::id()]).map_or(1.0, |room| room.cpus);
    ServerCpus { count: given.unwrap_or_else(here), is_this_machine: given.is_none() }
}

/// Reads a number of CPUs, or the part of one that a quota leaves.
fn cpus(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(count) if (0.01..=10_000.0).contains(&count) => Ok(count),
        _ => Err("give a number of CPUs from 0.01 to 10000, such as 2 or 0.5".to_owned()),
    }
}

/// The service time that was given, or the one in a sweep's study.
fn service(word: &ServiceWord) -> Result<PredictedService, Mistake> {
    let path = match word {
        ServiceWord::Law(law) => return Ok(PredictedService::given(*law)),
        ServiceWord::Study(path) => path,
    };
    let why = match store::read(path)? {
        Study::Sweep(study) => match study.service_time {
            Some(service) => return Ok(PredictedService::measured(&service)),
            None => "its sweep has no service time; give one, such as --service 200ms",
        },
        Study::Compare(_) => "its arms have times of their own; give one, such as --service 200ms",
        Study::Capacity(_) => "a search for a capacity has none; give one, such as --service 200ms",
        Study::Bodies(_) => {
            "bodies are work and no time that a thread is held; give a time, such as --service 200ms"
        }
        Study::Load(_) => {
            "a load's times have waits in them; name a sweep's study, or give a time, such as --service 200ms"
        }
    };
    Err(Mistake::Read { path: path.clone(), why: why.to_owned() })
}

const EXAMPLES: &str = "\
Examples:
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s      random arrivals, 80 a second
  longtail predict -w4 -t5:5 --service 200ms -c 40            40 connections that never pause
  longtail predict -w4 -t5:5 --service 200ms --cpu 60ms --cpus 2 -c 40
      how many threads are worth it in Ruby
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s --objective 'p99 < 2s' --plot
  longtail predict -w2 -t5:5 --service bimodal:1ms:50ms:0.02 --rate 2000/s --json
  longtail predict -w2 -t5:5 --service study.json --rate 40/s     the service time of a saved sweep

Laws of --service: 200ms, exp:5ms, uniform:1ms:9ms, bimodal:1ms:50ms:0.02, lognormal:5ms:0.8.
Shared: one queue for all workers, as in Puma up to 6 without keep-alive. Split: one for each worker, as in Puma 7.
Sends nothing to any server.";

/// Flags of `longtail predict`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group(ArgGroup::new("load").required(true).args(["rate", "connections"])))]
pub(crate) struct PredictArgs {
    /// Worker processes
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = from_1_to(1000))]
    workers: u32,
    /// Threads of each worker; the larger number counts
    #[arg(short, long, value_name = "MIN:MAX", default_value = "5:5")]
    threads: Threads,
    /// How long a request holds a thread: 200ms, another law (see --help), or a sweep's study
    #[arg(long, value_name = "LAW|FILE")]
    pub(crate) service: ServiceWord,
    /// CPU time in that, which Ruby gives one thread of a worker at a time: how many threads are
    /// worth it?
    #[arg(long, value_name = "TIME")]
    pub(crate) cpu: Option<Nanos>,
    /// With --cpu: CPUs that the server has to itself, such as 2, or 0.5 of a quota [default: this
    /// machine's]
    #[arg(long, value_name = "N", requires = "cpu", value_parser = cpus)]
    pub(crate) cpus: Option<f64>,
    /// Open loop: random arrivals at this rate, such as 80/s
    #[arg(long, value_name = "RATE", conflicts_with = "connections")]
    rate: Option<Rate>,
    /// Closed loop: number of connections
    #[arg(short, long, value_name = "N", value_parser = from_1_to(10_000))]
    connections: Option<u32>,
    /// Closed loop: pause between a response and the next request of that connection
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate")]
    think: Nanos,
    /// Open loop: find the highest rate that keeps 'p99 < 2s' or 'mean < 300ms'
    #[arg(long, value_name = "OBJECTIVE", value_parser = time_goal, conflicts_with = "connections")]
    pub(crate) objective: Option<TimeGoal>,
    /// Open loop: plot p99 over the rate
    #[arg(long, conflicts_with = "connections")]
    pub(crate) plot: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    /// Seed of the simulation [default: 1]
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    pub(crate) seed: Option<u64>,
}

impl PredictArgs {
    fn load(&self) -> PredictedLoad {
        match self.rate {
            Some(rate) => PredictedLoad::Open(rate),
            None => PredictedLoad::Closed {
                connections: self.connections.unwrap_or(1),
                think: self.think,
            },
        }
    }
}

/// Where the law of the service time comes from.
#[derive(Clone, Debug)]
pub(crate) enum ServiceWord {
    /// The user gave it.
    Law(DelayLaw),
    /// It is in this study.
    Study(PathBuf),
}

impl FromStr for ServiceWord {
    type Err = String;

    fn from_str(text: &str) -> Result<ServiceWord, String> {
        match text.parse() {
            Ok(law) => Ok(ServiceWord::Law(law)),
            // What looks like a path is meant as a file.
            Err(_)
                if text.contains('/')
                    || Path::new(text).extension().is_some_and(|end| end == "json") =>
            {
                Ok(ServiceWord::Study(PathBuf::from(text)))
            }
            Err(bad) => Err(bad),
        }
    }
}
