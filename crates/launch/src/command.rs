//! Commands as people type them: words out of a text, and a program's name to the file that would be executed.
//!
//! No shell is ever started: nothing is expanded, and `$`, `*` and `|` stand for themselves.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The words of a text, split as a POSIX shell does at blanks, quotes and backslashes.
///
/// # Errors
/// What is wrong, to follow "is no command:".
pub(crate) fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let words = shlex::split(text).ok_or("a quote has no end, or it ends with a backslash")?;
    if words.is_empty() { Err("it is empty; write one such as 'bundle exec puma'") } else { Ok(words) }
}

/// The file that would be executed: `program` itself, from `dir`, where it holds a slash, else the first in `path`.
#[must_use]
pub fn find_program(program: &OsStr, dir: &Path, path: &OsStr) -> Option<PathBuf> {
    let executable =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if program.to_string_lossy().contains('/') {
        return Some(dir.join(program)).filter(executable);
    }
    std::env::split_paths(path).map(|folder| dir.join(folder).join(program)).find(executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_model_quotes_is_read_back() {
        for word in ["plain", "it's", "a b", "", "\"x\"", "back\\slash", "$HOME *"] {
            assert_eq!(words(&model::plan::quoted(word)).unwrap(), [word]);
        }
    }

    #[test]
    fn programs_are_found_as_exec_finds_them() {
        let path = OsStr::new("/nonexistent:/bin:/usr/bin");
        assert!(find_program(OsStr::new("sh"), Path::new("/"), path).is_some());
        assert!(find_program(OsStr::new("bin/sh"), Path::new("/"), path).is_some());
        assert_eq!(find_program(OsStr::new("etc/passwd"), Path::new("/"), path), None);
        assert_eq!(find_program(OsStr::new("no-such-program-anywhere"), Path::new("/"), path), None);
    }
}
