//! `longtail predict`: what queueing theory says of a server, before there is one.

use model::Study;
use queueing::machine_repair::MOST_CONNECTIONS;
use sink::DelayLaw;

use crate::args::{PredictArgs, PredictLoad, ServiceWord};
use crate::exit::Exit;
use crate::mistake::{Mistake, wrong};
use crate::predict::{self, PredictedServer};
use crate::{store, ui};

/// Prints the prediction.
///
/// # Errors
/// Where a flag is wrong, the study has no service time, or theory has no answer.
pub(crate) fn run(args: &PredictArgs) -> Result<Exit, Mistake> {
    if args.plot && args.output.is_json() {
        return Err(wrong("--plot is drawn for people: leave it out, or --json"));
    }
    let (workers, threads) = args.slots()?;
    let law = law(&args.service)?;
    if law.mean().0 == 0 {
        return Err(Mistake::Flags("--service wants more than 0: what takes no time never waits".to_owned()));
    }
    let server = PredictedServer { workers, threads, law, seed: args.seed };
    let load = args.load();
    if args.cpu.is_some_and(|cpu| cpu.0 == 0 || cpu >= law.mean()) {
        return Err(wrong("--cpu is a part of the service time: more than 0, and less than that"));
    }
    if let (Some(_), PredictLoad::Closed(connections, _)) = (args.cpu, load)
        && connections.div_ceil(workers) > MOST_CONNECTIONS
    {
        return Err(wrong(format!(
            "--cpu is reckoned for at most {MOST_CONNECTIONS} connections of a worker: lower -c"
        )));
    }
    let prediction = predict::predict(&server, load, args.objective, args.cpu)?;
    if args.output.is_json() {
        ui::print_json(&prediction);
    } else {
        let plot = args.plot.then(|| predict::plot(&server)).transpose()?;
        ui::print(&predict::text::whole(&prediction, plot.as_deref(), ui::terminal_width()));
    }
    Ok(Exit::Fine)
}

/// The law of the service time; of a study the service time that its theory takes.
fn law(word: &ServiceWord) -> Result<DelayLaw, Mistake> {
    let path = match word {
        ServiceWord::Law(law) => return Ok(*law),
        ServiceWord::Study(path) => path,
    };
    let none = |why: &str| Mistake::Read { path: path.clone(), why: why.to_owned() };
    match store::read(path)? {
        Study::Sweep(study) => match study.service_time {
            Some(service) => Ok(DelayLaw::Constant(service.time)),
            None => Err(none("its sweep has no service time; give one, such as --service 200ms")),
        },
        Study::Compare(_) => Err(none("its arms have times of their own; give one, such as --service 200ms")),
        Study::Bodies(_) => {
            Err(none("bodies are work and no time that a thread is held; give a time, such as --service 200ms"))
        }
        Study::Load(_) => Err(none(
            "a load's times have waits in them; name a sweep's study, or give a time, such as --service 200ms",
        )),
    }
}
