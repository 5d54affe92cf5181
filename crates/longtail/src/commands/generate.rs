//! `longtail generate`: a generator that a conductor on another machine starts (`--from`) and
//! controls over stdin and stdout, or one of several whose parts are files. `longtail merge` makes
//! one result of those.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use engine::{GeneratorPart, Resolver};
use jiff::Timestamp;
use model::{Clock as _, Nanos, Study, plausible};
use sweep::{NamedPart, drive_load_part, merge_parts, serve};

use super::conducted::StudyStart;
use super::load_words;
use crate::args::OutputArgs;
use crate::args::limits::from_1_to;
use crate::args::output::StudyKind;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::load::prepare;
use crate::results::Results;
use crate::{secrets, signals, store, ui};

/// Serves a conductor until it is gone, or drives one part of a load.
///
/// # Errors
/// If the words are not those of a load, or the part cannot be written.
pub(crate) fn run(args: &GenerateArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    // Under a conductor a signal ends it at once.
    let around = StudyStart::ended_by(if args.of.is_some() {
        signals::interruption()?
    } else {
        Arc::default()
    });
    let here = around.context(secrets::command_line(), resolver.clone());
    let (Some(of), Some(start_at), Some(out)) = (args.of, args.start_at, &args.out) else {
        // When the conductor has gone, nobody needs the load that is under way.
        let served =
            serve(io::stdin(), io::stdout(), &here, || std::process::exit(Exit::Fine.code()));
        return Ok(if served.is_ok() { Exit::Fine } else { Exit::Interrupted });
    };
    let index = args.index.ok_or_else(|| {
        wrong("say which generator this is: --index K, or JOB_COMPLETION_INDEX=K")
    })?;
    refuse_if(
        index >= of,
        format_args!("--index {index} of {of}: generators are numbered from 0 to {}", of - 1),
    )?;
    let load = load_words(args.words.clone())?;
    if let Some(flag) = load.own_process_flag() {
        return Err(wrong(format!("{flag} is not for one part of a load: leave it out")));
    }
    store::check_writable(out)?;
    let prepared = prepare(&load, &load.resolver(resolver), &around.clock, None)?;
    let start = Nanos(u64::try_from(start_at.as_nanosecond()).unwrap_or(0));
    if start < around.clock.wall() {
        return Err(wrong(format!(
            "--start-at {start_at} has passed: name a time at which all generators are ready"
        )));
    }
    signals::begin();
    let part = drive_load_part(prepared, GeneratorPart { index, of }, start, &here)?;
    let text = serde_json::to_string(&part).map_err(|error| wrong(error.to_string()))?;
    let is_interrupted = around.interrupt.load(Ordering::Relaxed);
    Ok(Exit::Interrupted.if_so(is_interrupted).and(ui::exit_of_part(store::write(out, &text))))
}

/// Merges parts into the study of their load, keeps and prints it.
///
/// # Errors
/// If they are not parts of one load, or the study cannot be kept.
pub(crate) fn merge(args: &MergeArgs) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Load)?;
    let parts =
        args.parts.iter().map(|path| read_part(path)).collect::<Result<Vec<_>, Mistake>>()?;
    let study = merge_parts(parts, env!("CARGO_PKG_VERSION")).map_err(wrong)?;
    let results = Results::open("load", &study.started_at, &args.output)?;
    let study = Study::from(study);
    Ok(Exit::of(&study).and(results.publish(&study)))
}

/// Reads a part that [`run`] wrote.
fn read_part(path: &Path) -> Result<NamedPart, Mistake> {
    let bytes = store::read_bytes(path)?;
    let checked = plausible::check_message(&mut serde_json::Deserializer::from_slice(&bytes));
    let part =
        checked.and_then(|()| serde_json::from_slice(&bytes)).map_err(|why| Mistake::Read {
            path: path.to_owned(),
            why: format!("it is no part of a load that longtail generate wrote ({why})"),
        })?;
    Ok(NamedPart { name: path.display().to_string(), part })
}

/// Flags of `longtail generate`; none if a conductor controls it over standard input.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct GenerateArgs {
    /// Which generator of the load this is, from 0
    #[arg(long, value_name = "K", env = "JOB_COMPLETION_INDEX", hide_env_values = true)]
    pub(crate) index: Option<u32>,
    /// Generators of the load
    #[arg(long, value_name = "N", requires = "words", value_parser = from_1_to(10_000))]
    pub(crate) of: Option<u32>,
    /// When all of them start, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", requires = "words")]
    pub(crate) start_at: Option<Timestamp>,
    /// Where its part is written; `longtail merge` makes one result of all
    #[arg(short, value_name = "FILE", requires = "words")]
    pub(crate) out: Option<PathBuf>,
    /// The words of `longtail load`, the same for all of them
    #[arg(
        last = true,
        value_name = "LOAD",
        requires = "of",
        requires = "start_at",
        requires = "out"
    )]
    pub(crate) words: Vec<String>,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  longtail merge *.tally                     one result of all parts that generators of a cluster wrote
  longtail merge *.tally -o x.study.json     and keep it there";

/// Flags of `longtail merge`.
#[derive(Debug, Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Files that generators wrote, all of one load
    #[arg(value_name = "FILE", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
