//! `longtail predict`: what queueing theory says of a server, before there is one.

use model::{Nanos, Study};
use probe::server_cpu::CpuRoom;
use queueing::closed_loop::MOST_CONNECTIONS;
use queueing::prediction::{
    self, HIGHEST_SIMULATED, PredictedLoad, PredictedServer, PredictedService, RequestCpu,
    ServerCpus,
};
use report::number;

use crate::args::PredictArgs;
use crate::args::predict::ServiceWord;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::{study_files, ui};

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

/// The service time that was given, or the one in a sweep's study.
fn service(word: &ServiceWord) -> Result<PredictedService, Mistake> {
    let path = match word {
        ServiceWord::Law(law) => return Ok(PredictedService::given(*law)),
        ServiceWord::Study(path) => path,
    };
    let why = match study_files::read(path)? {
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
