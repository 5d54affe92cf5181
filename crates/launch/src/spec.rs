//! What to start and who guards it: values only, nothing is started here.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_can_be_pasted_into_a_shell() {
        let mut spec = LaunchSpec::command(["puma", "-b", "tcp://127.0.0.1:1", "my app.ru"], Path::new("/"));
        spec.env.insert("RUBYOPT".into(), "-W0 --yjit".into());
        assert_eq!(spec.command_line(), "RUBYOPT='-W0 --yjit' puma -b tcp://127.0.0.1:1 'my app.ru'");
    }
}
