//! Describes what to start and under which guard; makes the private directory for a server's files;
//! splits commands as people type them into words and finds the program's file. No shell is
//! started: `$`, `*` and `|` stand for themselves.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::Cpus;
use model::paths::what_is_there;
use model::plan::quoted;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// A server to start: its command, what is added to the environment, and where it runs.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// Program and arguments; never empty.
    pub argv: Vec<OsString>,
    /// Variables that are set beside longtail's own.
    pub env: BTreeMap<OsString, OsString>,
    /// The directory it runs in.
    pub dir: PathBuf,
    /// A directory that must exist as long as the server lives.
    pub scratch: Option<Arc<Scratch>>,
    /// The CPUs that it may run on; `None` for those of longtail itself.
    pub cpus: Option<Cpus>,
}

impl LaunchSpec {
    /// Any command, in `dir`, with no variables, private directory or CPUs of its own.
    pub fn command<Word: Into<OsString>>(
        argv: impl IntoIterator<Item = Word>,
        dir: &Path,
    ) -> LaunchSpec {
        let argv = argv.into_iter().map(Into::into).collect();
        LaunchSpec { argv, env: BTreeMap::new(), dir: dir.to_owned(), scratch: None, cpus: None }
    }

    /// The command as a shell takes it, with the variables in front.
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
    /// The running executable, with this hidden subcommand.
    pub fn this_program(subcommand: &str) -> GuardCommand {
        // The file may have been replaced (an upgrade, a rebuild): the kernel's link still leads to
        // what is running.
        let program = std::env::current_exe()
            .ok()
            .filter(|path| path.exists())
            .unwrap_or_else(|| "/proc/self/exe".into());
        GuardCommand { program, args: vec![subcommand.into()] }
    }

    /// Why the kernel did not start it.
    pub(crate) fn why_not_started(&self, error: &io::Error) -> String {
        if !Path::new("/proc/self").exists() {
            return "/proc is not mounted, which says where longtail itself is: mount it"
                .to_owned();
        }
        let shown = self.program.display();
        let program = self.program.as_os_str();
        match find_program(program, Path::new("/"), OsStr::new("")) {
            Some(_) => format!("'{shown}': {error}"),
            None => format!("'{shown}' {}", why_no_program(program, Path::new("/"))),
        }
    }
}

/// Splits a text into words as a POSIX shell does, at blanks, quotes and backslashes.
///
/// # Errors
/// What is wrong, to stand after "is no command:".
pub(crate) fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let words = shlex::split(text).ok_or("a quote has no end, or it ends with a backslash")?;
    if words.is_empty() {
        Err("it is empty; write one such as 'bundle exec puma'")
    } else {
        Ok(words)
    }
}

/// The file that would be executed: `program` itself, relative to `dir`, if it contains a slash,
/// else the first in `path`.
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

/// Why there is no such program; to stand after its name.
pub(crate) fn why_no_program(program: &OsStr, dir: &Path) -> &'static str {
    let path = dir.join(program);
    if !program.to_string_lossy().contains('/') {
        "was not found"
    } else if path.is_file() {
        "cannot be executed"
    } else {
        what_is_there(&path)
    }
}

/// The names of all private directories begin with this; eight hexadecimal digits follow.
const PREFIX: &str = "longtail-run-";

/// The folder in the data folder that holds a note for each private directory, saying where it is.
const NOTES: &str = "temporary";

/// A new directory that only this user can enter. Dropped, it is removed with everything in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The file that says where it is.
    note: Option<PathBuf>,
    /// Locked as long as we live.
    _ours: File,
}

impl Scratch {
    /// Makes one in `within`, and removes those that a killed longtail left there.
    ///
    /// # Errors
    /// What the kernel says if it cannot be made.
    pub fn new(within: &Path) -> io::Result<Scratch> {
        Scratch::noted(within, None)
    }

    /// Does the same, but first notes its path in the data folder `data`. If we are killed, the
    /// next longtail finds it there, wherever its own temporary files are.
    ///
    /// # Errors
    /// What the kernel says if it cannot be made. A note that cannot be written is no error.
    pub fn noted(within: &Path, data: Option<&Path>) -> io::Result<Scratch> {
        remove_the_abandoned(within);
        let within = std::path::absolute(within)?;
        loop {
            let name = format!("{PREFIX}{}", random_hex(8));
            let path = within.join(&name);
            let note = data.and_then(|data| write_note(data, &name, &path).ok());
            // `create` fails where the name exists, so nobody can have put a link there before us.
            let made = DirBuilder::new().mode(0o700).create(&path);
            // Another longtail that removes abandoned directories may have found it before it was
            // locked.
            match made.and_then(|()| lock(&path)) {
                Ok(Some(ours)) => return Ok(Scratch { path, note, _ours: ours }),
                Ok(None) => forget(note.as_deref()),
                Err(error) => {
                    forget(note.as_deref());
                    return Err(error);
                }
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
        // There is nobody left to tell, and a directory that stays in /tmp does no harm.
        let _ = fs::remove_dir_all(&self.path);
        forget(self.note.as_deref());
    }
}

/// The data folder, where longtail keeps its files; `None` if neither `XDG_DATA_HOME` nor `HOME` is
/// set.
#[must_use]
pub fn data_folder() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Some(data?.join("longtail"))
}

/// Removes the directories that are noted in the data folder and whose owners were killed.
pub fn remove_noted(data: &Path) {
    let entries = fs::read_dir(data.join(NOTES)).into_iter().flatten().flatten();
    for note in entries.filter(|entry| is_scratch_name(&entry.file_name())) {
        // A note is written in one write of a new file; one that is not complete names nothing.
        let Ok(bytes) = fs::read(note.path()) else { continue };
        let path = PathBuf::from(OsString::from_vec(bytes));
        let is_noted = path.is_absolute() && path.file_name() == Some(&note.file_name());
        let is_old = note
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|written| written.elapsed().is_ok_and(|age| age > NOTE_BEFORE_FOLDER));
        if is_noted && path.exists() {
            if remove_if_abandoned(&path) {
                forget(Some(&note.path()));
            }
        } else if is_old {
            forget(Some(&note.path()));
        }
    }
}

/// A note without a directory is kept until it is older than this, because the directory may be
/// about to be made.
const NOTE_BEFORE_FOLDER: Duration = Duration::from_secs(60);

fn write_note(data: &Path, name: &str, path: &Path) -> io::Result<PathBuf> {
    let folder = data.join(NOTES);
    DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
    let note = folder.join(name);
    fs::write(&note, path.as_os_str().as_bytes())?;
    Ok(note)
}

fn forget(note: Option<&Path>) {
    if let Some(note) = note {
        // If the note stays, the next longtail finds that its directory is gone.
        let _ = fs::remove_file(note);
    }
}

/// Locks the directory; `None` if another process has it, or it is gone. On a file system without
/// locks it is taken unlocked.
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

/// Removes this user's directories that nobody has locked.
fn remove_the_abandoned(within: &Path) {
    let entries = fs::read_dir(within).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_scratch_name(&entry.file_name())) {
        remove_if_abandoned(&entry.path());
    }
}

fn is_scratch_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).unwrap_or_default();
    digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes a directory if it is this user's, looks as [`Scratch`] makes them, and nobody has locked
/// it. Returns whether it did.
fn remove_if_abandoned(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let is_ours = fs::symlink_metadata(path)
        .is_ok_and(|found| found.uid() == user && found.mode() & 0o777 == 0o700);
    if !is_ours {
        return false;
    }
    // It stays locked while it is removed.
    let Ok(Some(_locked)) = lock(path) else { return false };
    // If it cannot be removed, it is in nobody's way.
    fs::remove_dir_all(path).is_ok()
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
    fn a_noted_directory_is_removed_wherever_it_is_once_its_owner_is_dead() {
        let place = Scratch::new(&std::env::temp_dir()).unwrap();
        let data = place.path().join("data");
        let here = place.path().join("here");
        fs::create_dir(&here).unwrap();
        let alive = Scratch::noted(&here, Some(&data)).unwrap();
        let notes = || fs::read_dir(data.join(NOTES)).unwrap().count();
        let note = |name: &str, path: &Path| {
            fs::write(data.join(NOTES).join(name), path.as_os_str().as_bytes()).unwrap();
        };
        let made = |name: &str| {
            let path = here.join(name);
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            path
        };
        let abandoned = made("longtail-run-0123abcd");
        note("longtail-run-0123abcd", &abandoned);
        // A note cannot name a directory other than its own.
        let other = made("other");
        note("longtail-run-76543210", &other);
        // The note of a directory that is still being made.
        note("longtail-run-89abcdef", &here.join("longtail-run-89abcdef"));
        remove_noted(&data);
        assert!(!abandoned.exists() && other.exists() && alive.path().exists());
        assert_eq!(notes(), 3, "of the one that is alive, and two that are young");
        drop(alive);
        assert_eq!(notes(), 2);
    }

    #[test]
    fn no_two_tokens_are_the_same() {
        assert_eq!(random_hex(32).len(), 32);
        assert_ne!(random_hex(32), random_hex(32));
    }
}
