//! What to start and who guards it, as values; the private directory of a server's files; and
//! commands as people type them: words out of a text, and a program's name to its file. No shell is
//! started: `$`, `*` and `|` stand for themselves.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Cpus;
use model::plan::quoted;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

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
    pub fn command<Word: Into<OsString>>(
        argv: impl IntoIterator<Item = Word>,
        dir: &Path,
    ) -> LaunchSpec {
        let argv = argv.into_iter().map(Into::into).collect();
        LaunchSpec { argv, env: BTreeMap::new(), dir: dir.to_owned(), scratch: None, cpus: None }
    }

    /// The command as a shell takes it, what is set in the environment first.
    pub fn command_line(&self) -> String {
        let text = |word: &OsStr| quoted(&word.to_string_lossy());
        let settings = self
            .env
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), text(value)));
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
        // The name may be gone (an upgrade, a rebuild): the kernel's link still leads to what is
        // running.
        let program = std::env::current_exe()
            .ok()
            .filter(|path| path.exists())
            .unwrap_or_else(|| "/proc/self/exe".into());
        GuardCommand { program, args: vec![subcommand.into()] }
    }
}

/// The words of a text, split as a POSIX shell does at blanks, quotes and backslashes.
///
/// # Errors
/// What is wrong, to follow "is no command:".
pub(crate) fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let words = shlex::split(text).ok_or("a quote has no end, or it ends with a backslash")?;
    if words.is_empty() {
        Err("it is empty; write one such as 'bundle exec puma'")
    } else {
        Ok(words)
    }
}

/// The file that would be executed: `program` itself, from `dir`, where it holds a slash, else the
/// first in `path`.
#[must_use]
pub fn find_program(program: &OsStr, dir: &Path, path: &OsStr) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.to_string_lossy().contains('/') {
        return Some(dir.join(program)).filter(executable);
    }
    std::env::split_paths(path).map(|folder| dir.join(folder).join(program)).find(executable)
}

/// What the names of all of them begin with; eight hexadecimal digits follow.
const PREFIX: &str = "longtail-run-";

/// A fresh directory that only this user can enter; removed, with all in it, when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked, as long as we live.
    _ours: File,
}

impl Scratch {
    /// Makes it within `within`, and takes away what killed ones left there.
    ///
    /// # Errors
    /// What the kernel says where it cannot be made.
    pub fn new(within: &Path) -> io::Result<Scratch> {
        remove_the_abandoned(within);
        loop {
            let path = within.join(format!("{PREFIX}{}", random_hex(8)));
            // `create` fails where the name exists, so nobody can have put a link there before us.
            DirBuilder::new().mode(0o700).create(&path)?;
            // Another longtail that looks for abandoned ones may have found it before it was
            // locked.
            if let Some(ours) = lock(&path)? {
                return Ok(Scratch { path, _ours: ours });
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to tell, and a directory in /tmp that stays does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The directory, locked by us; `None` where another has it, or it is gone. Where the file system
/// knows no locks it is ours unlocked.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match open(path, flags, Mode::empty()) {
        Ok(directory) => File::from(directory),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let is_others = flock(&directory, FlockOperation::NonBlockingLockExclusive)
        == Err(rustix::io::Errno::WOULDBLOCK);
    let is_there = fs::symlink_metadata(path).is_ok_and(|there| {
        directory
            .metadata()
            .is_ok_and(|opened| (opened.dev(), opened.ino()) == (there.dev(), there.ino()))
    });
    Ok((is_there && !is_others).then_some(directory))
}

/// Removes those of this user that nobody has locked.
fn remove_the_abandoned(within: &Path) {
    let entries = fs::read_dir(within).into_iter().flatten().flatten();
    let is_name = |name: &str| {
        let digits = name.strip_prefix(PREFIX).unwrap_or_default();
        digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let names = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_name));
    let user = rustix::process::geteuid().as_raw();
    for path in names.map(|entry| entry.path()) {
        let is_ours = fs::symlink_metadata(&path)
            .is_ok_and(|found| found.uid() == user && found.mode() & 0o777 == 0o700);
        // Kept locked while it is removed.
        if is_ours && let Ok(Some(_locked)) = lock(&path) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// `digits` (at most 32) hexadecimal digits that others cannot guess.
///
/// The standard library's hasher is keyed with the kernel's randomness and is a pseudo-random
/// function under that key.
pub(crate) fn random_hex(digits: usize) -> String {
    let keyed = std::hash::RandomState::new();
    let mut hex = format!("{:016x}{:016x}", keyed.hash_one(0u8), keyed.hash_one(1u8));
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
        assert_eq!(
            find_program(OsStr::new("no-such-program-anywhere"), Path::new("/"), path),
            None
        );
    }

    #[test]
    fn the_directory_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_owner_left_goes_with_the_next_start_and_nothing_else_does() {
        let within = Scratch::new(&std::env::temp_dir()).unwrap();
        let place = |name: &str| within.path().join(name);
        let folder = |name: &str, mode: u32| {
            DirBuilder::new().mode(mode).create(place(name)).unwrap();
            fs::write(place(name).join("file"), "x").unwrap();
        };
        folder("longtail-run-0123abcd", 0o700);
        // Not one of ours, by its name or by its mode.
        folder("longtail-run-notes", 0o700);
        folder("longtail-0123abcd", 0o700);
        folder("longtail-run-89abcdef", 0o755);
        std::os::unix::fs::symlink(place("longtail-run-notes"), place("longtail-run-76543210"))
            .unwrap();
        let alive = Scratch::new(within.path()).unwrap();
        let next = Scratch::new(within.path()).unwrap();
        assert!(!place("longtail-run-0123abcd").exists(), "nobody has it");
        assert!(alive.path().exists() && next.path().exists(), "their owners live");
        for kept in [
            "longtail-run-notes/file",
            "longtail-0123abcd/file",
            "longtail-run-89abcdef/file",
            "longtail-run-76543210",
        ] {
            assert!(place(kept).exists(), "{kept}");
        }
    }

    #[test]
    fn no_two_tokens_are_the_same() {
        assert_eq!(random_hex(32).len(), 32);
        assert_ne!(random_hex(32), random_hex(32));
    }
}
