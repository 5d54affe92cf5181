//! The text of a script of another tool, which is read and never run.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Longer scripts are not read.
const LONGEST: u64 = 1 << 20;

/// The text of a script; `None` if it is no file, or too long.
pub(super) fn text_of(script: &Path) -> Option<String> {
    let file = File::open(script).ok().filter(|file| {
        file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST)
    })?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}
