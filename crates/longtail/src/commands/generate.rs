//! `longtail generate`: a generator that a conductor on another machine starts (`--from`) and
//! controls over stdin and stdout, or one of several whose parts are files, of which `longtail merge`
//! makes one result.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{GeneratorPart, Resolver};
use model::{Clock as _, Nanos};
use sweep::{drive_load_part, serve};

use super::conducted::StudyStart;
use super::load_words;
use crate::args::GenerateArgs;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::load::prepare;
use crate::{secrets, signals, study_files, ui};

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
    study_files::check_writable(out)?;
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
    Ok(Exit::Interrupted
        .if_so(is_interrupted)
        .and(ui::exit_of_part(study_files::write(out, &text))))
}
