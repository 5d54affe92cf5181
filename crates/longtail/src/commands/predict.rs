//! `longtail predict`: what queueing theory says of a server, before there is one.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgGroup, Args};
use model::theory::ServiceTime;
use model::{Nanos, Rate, Study, Threads};
use probe::server_cpu::CpuRoom;
use queueing::closed_loop::MOST_CONNECTIONS;
use report::number;
use sink::DelayLaw;

use crate::args::limits::from_1_to;
use crate::args::output::FormatArgs;
use crate::args::{ADVANCED, Goal, PredictLoad};
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::predict::{self, PredictedServer, RequestCpu, ServerCpus};
use crate::{store, ui};

/// Prints the prediction.
///
/// # Errors
/// Where a flag is wrong, the study has no service time, or theory has no answer.
pub(crate) fn run(args: &PredictArgs) -> Result<Exit, Mistake> {
    refuse_if(
        args.plot && args.output.is_json(),
        "--plot is drawn for people: leave it out, or --json",
    )?;
    let (workers, threads) = (args.workers, args.threads.max);
    if workers.saturating_mul(threads) > 1000 {
        return Err(wrong("-w and -t want at most 1000 slots, workers x threads, to predict"));
    }
    let service = service(&args.service)?;
    let law = service.law;
    if law.mean().0 == 0 {
        return Err(Mistake::Flags(
            "--service wants more than 0: what takes no time never waits".to_owned(),
        ));
    }
    let server = PredictedServer { workers, threads, law, seed: args.seed.unwrap_or(1) };
    let closed = || PredictLoad::Closed(args.connections.unwrap_or(1), args.think);
    let load = args.rate.map_or_else(closed, PredictLoad::Open);
    let cpus = server_cpus(args.cpus);
    let cpu = args.cpu.map(|time| RequestCpu { time, cpus });
    check(args, &server, load, cpu)?;
    let mut prediction = predict::predict(&server, load, args.objective, cpu)?;
    prediction.notes.extend(service.notes);
    match (cpu, service.cpu) {
        (Some(_), _) => {}
        (None, Some(measured)) => prediction.notes.push(format!(
            "CPU time is not counted: its sweep measured {} a request; --cpu counts it",
            number::time(measured)
        )),
        (None, None) => prediction.notes.push(predict::text::without_cpu(&server, cpus)),
    }
    if args.seed.is_some() && (prediction.lines.is_empty() || !server.has_chance(load)) {
        prediction.notes.push("--seed changes nothing here: nothing is left to chance".to_owned());
    }
    if args.output.is_json() {
        ui::print_json(&prediction);
    } else {
        let plot = args.plot.then(|| predict::plot(&server)).transpose()?;
        ui::print(&predict::text::whole(&prediction, plot.as_deref(), ui::terminal_width()));
    }
    Ok(Exit::Fine)
}

/// Refuses what no formula answers, and what one flag would take from another.
fn check(
    args: &PredictArgs,
    server: &PredictedServer,
    load: PredictLoad,
    cpu: Option<RequestCpu>,
) -> Result<(), Mistake> {
    if let Some(share) = args.objective.and_then(|goal| goal.share) {
        refuse_if(
            server.is_simulated() && share > predict::HIGHEST_SIMULATED,
            format!(
                "{} of this service time is not known well enough: ask for p99 or lower, or give --service 200ms or exp:5ms, which have a formula",
                number::percentile(share)
            ),
        )?;
    }
    let Some(cpu) = cpu else { return Ok(()) };
    refuse_if(
        cpu.time.0 == 0 || cpu.time > server.law.mean(),
        "--cpu is a part of the service time: more than 0, and not more than that",
    )?;
    if let PredictLoad::Closed(connections, _) = load
        && connections.div_ceil(server.workers) > MOST_CONNECTIONS
    {
        return Err(wrong(format!(
            "--cpu is reckoned for at most {MOST_CONNECTIONS} connections of a worker: lower -c"
        )));
    }
    if (args.objective.is_some() || args.plot) && predict::hides_times(server, load, cpu)? {
        let flag = if args.objective.is_some() { "--objective" } else { "--plot" };
        return Err(wrong(format!(
            "{flag} asks for response times, and no formula has them where threads wait for Ruby's lock or a CPU: leave out --cpu (for threads that never do), or {flag}"
        )));
    }
    Ok(())
}

/// Those that were given, or this machine's.
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

/// What is known of the service time.
struct KnownService {
    law: DelayLaw,
    /// Of it on a CPU, where a sweep measured that.
    cpu: Option<Nanos>,
    notes: Vec<String>,
}

/// The service time; of a study one with the mean and the variation of what a request takes alone.
fn service(word: &ServiceWord) -> Result<KnownService, Mistake> {
    let path = match word {
        ServiceWord::Law(law) => {
            return Ok(KnownService { law: *law, cpu: None, notes: Vec::new() });
        }
        ServiceWord::Study(path) => path,
    };
    let none = |why: &str| Mistake::Read { path: path.clone(), why: why.to_owned() };
    match store::read(path)? {
        Study::Sweep(study) => match study.service_time {
            Some(service) => Ok(measured(&service)),
            None => Err(none("its sweep has no service time; give one, such as --service 200ms")),
        },
        Study::Compare(_) => {
            Err(none("its arms have times of their own; give one, such as --service 200ms"))
        }
        Study::Bodies(_) => Err(none(
            "bodies are work and no time that a thread is held; give a time, such as --service 200ms",
        )),
        Study::Load(_) => Err(none(
            "a load's times have waits in them; name a sweep's study, or give a time, such as --service 200ms",
        )),
    }
}

/// What a sweep measured, and how well.
fn measured(service: &ServiceTime) -> KnownService {
    let mut notes = Vec::new();
    let law = match service.log_normal() {
        None => DelayLaw::Constant(service.mean),
        Some(law) => {
            notes.push(
                "of the sweep's service times the mean and the variation are taken: percentiles are those of a log-normal law of both"
                    .to_owned(),
            );
            DelayLaw::LogNormal { median: law.median, sigma: law.sigma }
        }
    };
    if !service.is_well_known() {
        let high =
            if service.high == Nanos::MAX { "more".to_owned() } else { number::time(service.high) };
        notes.push(format!(
            "the sweep knows its mean service time roughly, {} to {high} (95 %): all rates are as uncertain",
            number::time(service.low)
        ));
    }
    KnownService { law, cpu: service.cpu, notes }
}

const EXAMPLES: &str = "\
Examples:
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s      random arrivals, 80 a second
  longtail predict -w4 -t5:5 --service 200ms -c 40            40 connections that never pause
  longtail predict -w4 -t5:5 --service 200ms --cpu 60ms --cpus 2 -c 40
      how many threads are worth it in Ruby
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s --objective 'p99 < 2s' --plot
  longtail predict -w2 -t5:5 --service bimodal:1ms:50ms:0.02 --rate 2000/s --json
  longtail predict -w2 -t5:5 --service study.json --rate 40/s     the service time of a kept sweep

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
    #[arg(long, value_name = "OBJECTIVE", conflicts_with = "connections")]
    pub(crate) objective: Option<Goal>,
    /// Open loop: plot p99 over the rate
    #[arg(long, conflicts_with = "connections")]
    pub(crate) plot: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    /// Seed of the simulation [default: 1]
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    pub(crate) seed: Option<u64>,
}

/// Where the law of the service time comes from.
#[derive(Clone, Debug)]
pub(crate) enum ServiceWord {
    /// It is given.
    Law(DelayLaw),
    /// It is in that study.
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
