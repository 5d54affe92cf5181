//! Files that longtail writes: what it keeps by itself, which nobody else may read, and what the
//! user named, which is there to be shared.
//!
//! A file is replaced as a whole: it is written beside the old one, under a name that nobody can
//! guess and that must not exist (`O_EXCL`), and then takes its place. So whoever reads it, also
//! when longtail was killed, sees a whole file, and nobody can put a link in its way. What cannot
//! be replaced (a pipe, a device, a file in a folder that we may not write, one that is mounted) is
//! written as it stands.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::BuildHasher as _;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

use model::{Clock as _, Nanos, SystemClock};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// Its owner alone.
    Owner,
    /// Whoever the umask lets; of a file that was there, whoever could.
    AsUsual,
}

const OWNER_ONLY: u32 = 0o600;
const OWNER_ONLY_FOLDER: u32 = 0o700;

/// As many links as the kernel follows (`path_resolution(7)`).
const MOST_LINKS: u32 = 40;

/// A pipe that nobody has opened for reading so long after all was measured has no reader.
const READER_WITHIN: Nanos = Nanos::from_secs(10);
const GLANCE: Nanos = Nanos::from_millis(20);

/// Writes a file that the user named.
///
/// # Errors
/// What the kernel says.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    Destination::of(path)?.write(text.as_ref(), Readers::AsUsual)
}

/// Writes a file that is nobody else's business.
///
/// # Errors
/// What the kernel says.
pub(crate) fn write_private(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    Destination::of(path)?.write(text.as_ref(), Readers::Owner)
}

/// Opens a file that is written bit by bit.
///
/// # Errors
/// What the kernel says; of a pipe that nobody reads an error, where one would wait without end.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match Destination::of(path)? {
        Destination::Stream(path) => stream(&path, Nanos::ZERO),
        Destination::File { path, is_there: true } => {
            OpenOptions::new().write(true).truncate(true).custom_flags(no_links()).open(path)
        }
        Destination::File { path, is_there: false } => {
            OpenOptions::new().write(true).create_new(true).custom_flags(no_links()).open(path)
        }
    }
}

/// Finds out whether a file can be written, without a trace.
///
/// # Errors
/// What the kernel says.
pub(crate) fn try_to_write(path: &Path) -> io::Result<()> {
    let (path, is_there) = match Destination::of(path)? {
        Destination::File { path, is_there } => (path, is_there),
        // Its reader may come later.
        Destination::Stream(path) if is_pipe(&path) => return Ok(()),
        Destination::Stream(path) => return stream(&path, Nanos::ZERO).map(drop),
    };
    match Replacement::create_for(&path, OWNER_ONLY) {
        Ok(_) => Ok(()),
        Err(_) if is_there => OpenOptions::new().append(true).open(path).map(drop),
        Err(why) => Err(why),
    }
}

/// Makes a folder that only this user can enter, and mends one that others could, with the files
/// in it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY_FOLDER).create(folder)?;
    keep_others_out(folder, OWNER_ONLY_FOLDER);
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            keep_others_out(&entry.path(), OWNER_ONLY);
        }
    }
    Ok(())
}

/// Takes the rights of others away from what is ours. What is not stays as it is: whoever made it
/// so may have a reason.
fn keep_others_out(path: &Path, mode: u32) {
    let is_open =
        fs::metadata(path).is_ok_and(|found| found.uid() == our_id() && found.mode() & 0o077 != 0);
    if is_open {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Whether it is no file but a pipe, a device or a socket: it is written to as it stands, and once.
pub(crate) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

fn our_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn no_links() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// What a name leads to.
enum Destination {
    /// A file, there or not, with no link as its last part.
    File { path: PathBuf, is_there: bool },
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Destination {
    /// Follows links, but for those that the kernel would not follow where it protects links
    /// (`fs.protected_symlinks`): another user's, in a folder that all may write. A file that takes
    /// another's place by its name goes round that protection, so the rule is ours too; likewise
    /// for pipes and files (`fs.protected_fifos`, `fs.protected_regular`).
    fn of(named: &Path) -> io::Result<Destination> {
        let mut path = named.to_owned();
        for _ in 0..MOST_LINKS {
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => found,
                Err(why) if why.kind() == io::ErrorKind::NotFound => {
                    return Ok(Destination::File { path, is_there: false });
                }
                Err(why) => return Err(why),
            };
            let folder = folder_of(&path);
            let kind = found.file_type();
            // What the kernel made is nobody's trap: /dev/stdout leads to /proc/self/fd/1, which
            // is no link that could be followed by its text.
            let is_in_proc = folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc"));
            if !kind.is_char_device() && !is_in_proc && is_a_trap(&found, folder)? {
                return Err(io::Error::other(
                    "it is another user's, in a folder that all may write",
                ));
            }
            if kind.is_file() {
                return Ok(Destination::File { path, is_there: true });
            }
            if kind.is_dir() {
                return Err(Errno::ISDIR.into());
            }
            if !kind.is_symlink() || is_in_proc {
                return Ok(Destination::Stream(path));
            }
            path = folder.join(fs::read_link(&path)?);
        }
        Err(Errno::LOOP.into())
    }

    fn write(self, text: &[u8], readers: Readers) -> io::Result<()> {
        let (path, is_there) = match self {
            Destination::Stream(path) => return stream(&path, READER_WITHIN)?.write_all(text),
            Destination::File { path, is_there } => (path, is_there),
        };
        let in_place = || {
            let mut options = OpenOptions::new();
            let file = options.write(true).truncate(true).custom_flags(no_links()).open(&path);
            file?.write_all(text)
        };
        // Until it is whole, nobody else reads a file that others could not read before.
        let kept = fs::symlink_metadata(&path).ok().filter(|found| found.uid() == our_id());
        let mode = match (readers, &kept) {
            (Readers::Owner, _) | (Readers::AsUsual, Some(_)) => OWNER_ONLY,
            (Readers::AsUsual, None) => 0o666,
        };
        let mut new = match Replacement::create_for(&path, mode) {
            Ok(new) => new,
            // A file that we may write in a folder that we may not.
            Err(_) if is_there => return in_place(),
            Err(why) => return Err(why),
        };
        new.file.write_all(text)?;
        if let (Readers::AsUsual, Some(kept)) = (readers, kept) {
            // What was for one group is not for another.
            let is_same_group = fchown(&new.file, None, Some(kept.gid())).is_ok();
            let lost = if is_same_group { 0 } else { 0o2070 };
            new.file.set_permissions(Permissions::from_mode(kept.mode() & 0o7777 & !lost))?;
        }
        match fs::rename(&new.path, &path) {
            Ok(()) => {
                new.is_placed = true;
                Ok(())
            }
            // What is mounted on its own, as into a container, keeps its place.
            Err(_) if is_there => in_place(),
            Err(why) => Err(why),
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether another user may have put it there for us to fall into: it is neither ours nor the
/// folder's owner's, and everybody may write to that folder, which keeps each to his own.
fn is_a_trap(found: &fs::Metadata, folder: &Path) -> io::Result<bool> {
    const FOR_ALL: u32 = 0o1002;
    let place = fs::metadata(folder)?;
    let is_for_all = place.mode() & FOR_ALL == FOR_ALL;
    Ok(is_for_all && found.uid() != our_id() && found.uid() != place.uid())
}

/// A file that is to take another's place, and goes where it does not.
struct Replacement {
    file: File,
    path: PathBuf,
    is_placed: bool,
}

impl Replacement {
    /// In the folder of `path`, under a name that others cannot guess.
    fn create_for(path: &Path, mode: u32) -> io::Result<Replacement> {
        let keyed = std::hash::RandomState::new();
        let name = format!(".longtail-{:016x}.new", keyed.hash_one(std::process::id()));
        let path = folder_of(path).join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode).custom_flags(no_links());
        Ok(Replacement { file: options.open(&path)?, path, is_placed: false })
    }
}

impl Drop for Replacement {
    /// A full disk leaves no half of it.
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A pipe or a device, open. A pipe is waited for until somebody reads it, but not for longer than
/// `within`.
fn stream(path: &Path, within: Nanos) -> io::Result<File> {
    // Opened anew, a file behind them would be written from its start again.
    for (name, ours) in [("fd/1", io::stdout().as_fd()), ("fd/2", io::stderr().as_fd())] {
        if path.ends_with(name) {
            return ours.try_clone_to_owned().map(File::from);
        }
    }
    let clock = SystemClock::start();
    loop {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let tried =
            OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path);
        let has_no_reader =
            tried.as_ref().is_err_and(|why| why.raw_os_error() == Some(Errno::NXIO.raw_os_error()));
        if !has_no_reader || !is_pipe(path) {
            let file = tried?;
            // It was only opened without waiting: writing waits for the reader.
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            return Ok(file);
        }
        if clock.now() >= within {
            return Err(io::Error::other("it is a pipe that nobody reads"));
        }
        clock.sleep(GLANCE);
    }
}
