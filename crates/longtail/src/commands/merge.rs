//! `longtail merge`: one result of the parts of a load that `longtail generate` wrote into files.

use std::path::Path;

use model::{Study, plausible};
use sweep::{NamedPart, merge_parts};

use crate::args::MergeArgs;
use crate::args::output::StudyKind;
use crate::exit::{Exit, Mistake, wrong};
use crate::results::Results;
use crate::study_files;

/// Merges parts into the study of their load, keeps and prints it.
///
/// # Errors
/// If they are not parts of one load, or the study cannot be kept.
pub(crate) fn run(args: &MergeArgs) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Load)?;
    let parts =
        args.parts.iter().map(|path| read_part(path)).collect::<Result<Vec<_>, Mistake>>()?;
    let study = merge_parts(parts, env!("CARGO_PKG_VERSION")).map_err(wrong)?;
    let results = Results::open("load", &study.started_at, &args.output)?;
    let study = Study::from(study);
    Ok(Exit::of(&study).and(results.publish(&study)))
}

/// Reads a part that `longtail generate` wrote.
fn read_part(path: &Path) -> Result<NamedPart, Mistake> {
    let bytes = study_files::read_bytes(path)?;
    let checked = plausible::check_message(&mut serde_json::Deserializer::from_slice(&bytes));
    let part =
        checked.and_then(|()| serde_json::from_slice(&bytes)).map_err(|why| Mistake::Read {
            path: path.to_owned(),
            why: format!("it is no part of a load that longtail generate wrote ({why})"),
        })?;
    Ok(NamedPart { name: path.display().to_string(), part })
}
