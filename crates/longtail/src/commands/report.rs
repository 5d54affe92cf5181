//! `longtail report`: saved studies, printed again.

use std::path::PathBuf;

use crate::args::ReportArgs;
use crate::args::output::StudyKind;
use crate::exit::Exit;
use crate::mistake::{Mistake, wrong};
use crate::results::{print, write_all};
use crate::{store, ui};

/// Prints the studies that were asked for, or the last.
///
/// # Errors
/// Where there is none, a file is no study, or a file cannot be written.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Mistake> {
    let last = if args.studies.is_empty() { Some(store::last()?) } else { None };
    let paths: Vec<&PathBuf> = args.studies.iter().chain(&last).collect();
    let files: Vec<_> = args.output.files().collect();
    if paths.len() > 1 && !files.is_empty() {
        return Err(wrong("a file is written of one study: name one, and the file that -o or --html writes"));
    }
    let mut kinds = Vec::new();
    for (at, path) in paths.into_iter().enumerate() {
        let study = store::read(path)?;
        if at > 0 && args.output.is_prose() {
            ui::print("\n");
        }
        print(&study, Some(path), &args.output)?;
        write_all(&files, &study, Some(path), &args.output)?;
        kinds.push(StudyKind::from(&study));
    }
    if let ([a, b], [kind, other]) = (args.studies.as_slice(), kinds.as_slice())
        && kind == other
    {
        ui::note(&format!("longtail compare {} {} sets the two side by side", a.display(), b.display()));
    }
    Ok(Exit::Fine)
}
