//! What to start and who guards it: values only, nothing is started here. And commands as people type them: words out of a text, and a
//! program's name to the file that would be executed. No shell is ever started: `$`, `*` and `|` stand for themselves.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Cpus;
use model::plan::quoted;

use crate::Scratch;

/// A server to start: its command, what is added to the environment, and where it runs.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// Program and arguments; never empty.
    pub argv: Vec<OsString>,
    /// Variables set beside those that longtail itself has.
    pub env: BTreeMap<OsString, OsString>,
    /// The directory it runs in.
    pub dir: PathBuf,
    /// Files that must be there as long as the server lives.
    pub scratch: Option<Arc<Scratch>>,
    /// The processors that it may run on; `None` for those of longtail itself.
    pub cpus: Option<Cpus>,
}

impl LaunchSpec {
    /// Any command, in `dir`, with nothing beside it.
    pub fn command<Word: Into<OsString>>(argv: impl IntoIterator<Item = Word>, dir: &Path) -> LaunchSpec {
        let argv = argv.into_iter().map(Into::into).collect();
        LaunchSpec { argv, env: BTreeMap::new(), dir: dir.to_owned(), scratch: None, cpus: None }
    }

    /// The command as a shell takes it, what is set in the environment first.
    pub fn command_line(&self) -> String {
        let text = |word: &OsStr| quoted(&word.to_string_lossy());
        let settings = self.env.iter().map(|(name, value)| format!("{}={}", name.to_string_lossy(), text(value)));
        settings.chain(self.argv.iter().map(|word| text(word))).collect::<Vec<_>>().join(" ")
    }

    /// The program's name, for messages.
    pub(crate) fn program(&self) -> String {
        self.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// The command that runs [`guard::run`](crate::guard::run) with whatever arguments follow.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// An absolute path.
    pub program: PathBuf,
    /// What comes before the guard's own arguments: the hidden subcommand.
    pub args: Vec<OsString>,
}

impl GuardCommand {
    /// This very executable, with this hidden subcommand.
    pub fn this_program(subcommand: &str) -> GuardCommand {
        // The name may be gone (an upgrade, a rebuild): the kernel's link still leads to what is running.
        let program =
            std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| "/proc/self/exe".into());
        GuardCommand { program, args: vec![subcommand.into()] }
    }
}

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
