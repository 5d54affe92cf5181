//! `longtail report`: a saved study, printed again.

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::{store, ui};

/// Prints the study that was asked for, or the last.
///
/// # Errors
/// Where there is none, or the file is no study.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Mistake> {
    let path = args.file.clone().map_or_else(store::last, Ok)?;
    let study = store::read(&path)?;
    ui::print(&args.output.whole(&study)?);
    Ok(Exit::Fine)
}
