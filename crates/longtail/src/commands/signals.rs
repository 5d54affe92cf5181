//! `longtail signals`: which of a server's numbers tells first that it is full.

use std::path::PathBuf;

use engine::Resolver;
use model::{CapacityTarget, Nanos, Stop, Study};
use report::{SignalsHead, SignalsSummary, signals_text};
use sweep::{
    Context, Observer, Phase, SignalsEnd, SignalsOutcome, SignalsPlan, conduct_signals,
    conduct_signals_of,
};
use watch::StatisticsSource;

use super::conducted::{
    StudyDisplay, StudyStart, bind_for_remote_generators, fall_back_to_builtin,
};
use super::load_words;
use crate::args::SignalsArgs;
use crate::args::server::{addresses, with_environment};
use crate::exit::{Exit, Mistake};
use crate::load::prepare;
use crate::results::nothing_to_report;
use crate::{secrets, signals, study_files, ui};

/// Finds the capacity, loads the server up and down, and prints what its numbers told.
///
/// # Errors
/// If a flag is wrong, the server does not work, or the load cannot be sent.
pub(crate) fn run(args: &SignalsArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.check()?;
    match &args.target {
        Some(url) => run_on(args, url, resolver),
        None => run_started(args, resolver),
    }
}

/// The signals of a server that runs already.
fn run_on(args: &SignalsArgs, url: &str, resolver: Resolver) -> Result<Exit, Mistake> {
    args.server.refuse_to_start_one()?;
    let load = load_words(args.words_of_load(url))?;
    let resolver = load.resolver(resolver);
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    let mut prepared = prepare(&load, &resolver, &start.clock, start.far.as_ref())?;
    prepared.spec.reads_app_times = true;
    let named = args.control.source(&resolver)?;
    let source = named.or_else(|| StatisticsSource::of_processes(&prepared.serving, &resolver));
    let control = source.map(|source| source.control);
    let target = CapacityTarget::Running(Box::new(prepared.plan.clone()));
    let plan = SignalsPlan { control, ..args.plan(target) };
    let files = SignalsFiles::open(args, &start.started_at)?;
    let context = start.context(secrets::command_line(), resolver);
    let mut observer = SignalsObserver(StudyDisplay::new());
    signals::begin();
    let end = conduct_signals_of(&prepared, &plan, &context, &mut observer);
    let url = prepared.plan.url.to_string();
    Ok(tell(args, observer.0.ended(end)?, url, &context, &files))
}

/// The signals of a server that longtail starts.
fn run_started(args: &SignalsArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.refuse_flags_of_running_servers()?;
    args.server.puma.check()?;
    let mut server = args.server.server()?;
    let mut stream = args.server.stream(Stop::After(Nanos::from_secs(10)), None)?;
    stream.reads_app_times = true;
    let addresses = addresses()?;
    let stand_in = if fall_back_to_builtin(&mut server)? { " --server builtin" } else { "" };
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    bind_for_remote_generators(&mut server, start.far.as_ref());
    let path = stream.target_path().to_string();
    let target = CapacityTarget::Started { server: Box::new(server), stream: Box::new(stream) };
    let plan = args.plan(target);
    let files = SignalsFiles::open(args, &start.started_at)?;
    let line = with_environment(&format!("{}{stand_in}", secrets::command_line()), None);
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        ..start.context(line, resolver)
    };
    let mut observer = SignalsObserver(StudyDisplay::new());
    signals::begin();
    let end = conduct_signals(&plan, &context, &mut observer);
    Ok(tell(args, observer.0.ended(end)?, path, &context, &files))
}

/// Prints and keeps what was found, or says why nothing was. `requested` is what was requested.
fn tell(
    args: &SignalsArgs,
    end: SignalsEnd,
    requested: String,
    context: &Context<'_>,
    files: &SignalsFiles,
) -> Exit {
    let outcome = match end {
        SignalsEnd::Found(outcome) => outcome,
        SignalsEnd::Interrupted => {
            files.nothing_to_report("interrupted; the signals need the whole load");
            return Exit::Interrupted;
        }
        SignalsEnd::ServerGone => {
            files.nothing_to_report(
                "nothing listens any more, so the objective broke because the server ended",
            );
            return Exit::Invalid;
        }
        SignalsEnd::NothingKeepsIt(search) => {
            let found = judge::capacity::sentence(&search);
            ui::note(&format!(
                "{found} Nothing can tell that beforehand: give an --objective that it keeps at some rate"
            ));
            return Exit::Missed;
        }
    };
    let SignalsOutcome { server, search, base, found, step, doubt, .. } = *outcome;
    let head = SignalsHead {
        started_at: context.started_at.clone(),
        server,
        url: requested,
        objective: args.objective.to_string(),
        capacity: base.sentence(&search),
        bracket: search.bracket,
        base,
        step,
        interval: args.interval,
        doubt,
    };
    let summary = SignalsSummary::of(&head, &found);
    let json = serde_json::to_string_pretty(&summary).expect("its keys are strings") + "\n";
    let written = files.write(&json);
    if args.json {
        ui::print(&json);
    } else {
        ui::print(&signals_text(&head, &found, ui::terminal_width()));
    }
    ui::exit_of_part(written)
}

/// The files that have what was found.
struct SignalsFiles {
    /// The one in the data folder; `None` if that cannot be written.
    own: Option<PathBuf>,
    /// The one that the user named.
    named: Option<PathBuf>,
}

impl SignalsFiles {
    /// Checks that they can be written, before any load.
    ///
    /// # Errors
    /// If the file that the user named cannot.
    fn open(args: &SignalsArgs, started_at: &str) -> Result<SignalsFiles, Mistake> {
        args.file.iter().try_for_each(|path| study_files::check_writable(path))?;
        let own = study_files::new_signals(started_at);
        let own = own.inspect_err(|why| ui::note(&format!("this will not be kept: {why}"))).ok();
        Ok(SignalsFiles { own, named: args.file.clone() })
    }

    fn nothing_to_report(&self, why: &str) {
        nothing_to_report(why, self.named.iter().map(PathBuf::as_path));
    }

    fn write(&self, json: &str) -> Result<(), Mistake> {
        let named = self.named.as_ref().map_or(Ok(()), |path| study_files::write(path, json));
        if let Some(own) = &self.own {
            study_files::keep(own, json)?;
            ui::note("kept: longtail watch --signals shows a server beside these thresholds");
        }
        named
    }
}

/// Shows on the terminal what is going on.
struct SignalsObserver(StudyDisplay);

impl Observer for SignalsObserver {
    fn phase(&mut self, phase: &Phase) {
        self.0.phase(phase);
    }

    fn remark(&mut self, text: &str) {
        self.0.remark(text);
    }

    fn run_done(&mut self, _: &Study, provisional: &Study) {
        self.0.search(provisional);
    }

    fn judged(&mut self, _: &Study) {}
}
