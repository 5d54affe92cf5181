//! Writes files: those in longtail's data folder, which only the user may read, and those that the
//! user named.
//!
//! A file is replaced as a whole: the new one is written to the same folder, under a name that
//! nobody can guess and that must not exist (`O_EXCL`), and then renamed. So a reader never sees
//! half a file, even if longtail was killed, and nobody can plant a link. What cannot be replaced (a
//! pipe, a device, a mounted file, a file in a folder without write permission) is written in place.

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
    /// Only its owner.
    Owner,
    /// As the umask says; an existing file keeps its mode.
    AsUsual,
}

const OWNER_ONLY: u32 = 0o600;
const OWNER_ONLY_FOLDER: u32 = 0o700;

/// How many links to follow: as many as the kernel does (`path_resolution(7)`).
const MOST_LINKS: u32 = 40;

/// How long to wait for the reader of a pipe.
const READER_WITHIN: Nanos = Nanos::from_secs(10);
/// How often a pipe is tried again.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);

/// Writes a file that the user named.
///
/// # Errors
/// What the kernel says.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    Destination::of(path)?.write(text.as_ref(), Readers::AsUsual)
}

/// Writes a file that only its owner may read.
///
/// # Errors
/// What the kernel says.
pub(crate) fn write_private(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    Destination::of(path)?.write(text.as_ref(), Readers::Owner)
}

/// Opens a file that is written piece by piece.
///
/// # Errors
/// What the kernel says. A pipe without a reader is an error, too, as opening it would block.
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

/// Checks whether a file can be written, without changing anything.
///
/// # Errors
/// What the kernel says.
pub(crate) fn try_to_write(path: &Path) -> io::Result<()> {
    let (path, is_there) = match Destination::of(path)? {
        Destination::File { path, is_there } => (path, is_there),
        // The pipe's reader may come later.
        Destination::Stream(path) if is_pipe(&path) => return Ok(()),
        Destination::Stream(path) => return stream(&path, Nanos::ZERO).map(drop),
    };
    match Replacement::create_for(&path, OWNER_ONLY) {
        Ok(_) => Ok(()),
        Err(_) if is_there => OpenOptions::new().append(true).open(path).map(drop),
        Err(why) => Err(why),
    }
}

/// Makes a folder that only this user can enter. If it exists, others lose their rights to it and to
/// the files in it.
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

/// Takes the rights of others away, if the file is ours.
fn keep_others_out(path: &Path, mode: u32) {
    let is_readable_by_others =
        fs::metadata(path).is_ok_and(|found| found.uid() == our_id() && found.mode() & 0o077 != 0);
    if is_readable_by_others {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Whether it is a pipe, a device or a socket, which can only be written in place, and once.
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

/// What a path leads to.
enum Destination {
    /// A file that exists or not; the path's last part is no link.
    File { path: PathBuf, is_there: bool },
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Destination {
    /// Follows links, but not another user's in a folder that everybody may write to. The kernel
    /// has that rule too (`fs.protected_symlinks`, `fs.protected_fifos`, `fs.protected_regular`),
    /// but it does not apply to replacing a file by renaming.
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
            // The kernel's own links are safe. /dev/stdout leads to /proc/self/fd/1, whose text
            // is no path.
            let is_in_proc = folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc"));
            if !kind.is_char_device() && !is_in_proc && may_be_planted(&found, folder)? {
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
        // If the old file may be private, so is the new one until it has the old one's mode.
        let kept = fs::symlink_metadata(&path).ok().filter(|found| found.uid() == our_id());
        let mode = match (readers, &kept) {
            (Readers::Owner, _) | (Readers::AsUsual, Some(_)) => OWNER_ONLY,
            (Readers::AsUsual, None) => 0o666,
        };
        let mut new = match Replacement::create_for(&path, mode) {
            Ok(new) => new,
            // The file is writable, but its folder is not.
            Err(_) if is_there => return in_place(),
            Err(why) => return Err(why),
        };
        new.file.write_all(text)?;
        if let (Readers::AsUsual, Some(kept)) = (readers, kept) {
            // If the group cannot be kept, no other group gets its rights.
            let is_same_group = fchown(&new.file, None, Some(kept.gid())).is_ok();
            let lost = if is_same_group { 0 } else { 0o2070 };
            new.file.set_permissions(Permissions::from_mode(kept.mode() & 0o7777 & !lost))?;
        }
        match fs::rename(&new.path, &path) {
            Ok(()) => {
                new.is_placed = true;
                Ok(())
            }
            // A file that is mounted, as into a container, cannot be replaced.
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

/// Whether another user may have planted this file: it belongs neither to us nor to the folder's
/// owner, and the folder is sticky and writable for all, as /tmp is.
fn may_be_planted(found: &fs::Metadata, folder: &Path) -> io::Result<bool> {
    const STICKY_FOR_ALL: u32 = 0o1002;
    let folder = fs::metadata(folder)?;
    let is_for_all = folder.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL;
    Ok(is_for_all && found.uid() != our_id() && found.uid() != folder.uid())
}

/// A new file that is to replace another; it is removed if it does not.
struct Replacement {
    file: File,
    path: PathBuf,
    is_placed: bool,
}

impl Replacement {
    /// Creates it in the folder of `path`, under a name that others cannot guess.
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
    /// Leaves no half-written file, as on a full disk.
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens a pipe or a device. Waits up to `within` for the reader of a pipe.
fn stream(path: &Path, within: Nanos) -> io::Result<File> {
    // If opened again, a file that stdout goes to would be overwritten from its start.
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
            // Opening must not block, but writing may.
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            return Ok(file);
        }
        if clock.now() >= within {
            return Err(io::Error::other("it is a pipe that nobody reads"));
        }
        clock.sleep(POLL_INTERVAL);
    }
}
