//! What is wrong with a path that a user gave, in plain words: what is there instead of a file, and
//! why it cannot be read or written.

use std::fs::{File, Metadata, metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::io::Errno;

/// What is at a path instead of the expected file or directory, as the end of a sentence that
/// begins with its name.
#[must_use]
pub fn what_is_there(path: &Path) -> &'static str {
    match metadata(path) {
        Ok(found) => what_it_is(&found),
        Err(error) => why_not_found(path, &error).unwrap_or("cannot be looked at"),
    }
}

/// Why there is no readable file, in the form of [`what_is_there`]; `None` if there is one.
#[must_use]
pub fn why_no_file(path: &Path) -> Option<&'static str> {
    // Opening a pipe would wait for its writer.
    if !metadata(path).is_ok_and(|found| found.is_file()) {
        return Some(what_is_there(path));
    }
    let error = File::open(path).err()?;
    Some(why_not_found(path, &error).unwrap_or("cannot be opened"))
}

/// Why a file could not be read or written, as a part of a sentence about it.
#[must_use]
pub fn path_fault(path: &Path, error: &io::Error) -> String {
    if let Some(why) = why_not_found(path, error) {
        return format!("it {why}");
    }
    // For a socket, or a terminal that doesn't exist, the kernel says "no such device or address".
    let is_no_device = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
    match (error.kind(), metadata(path)) {
        (ErrorKind::IsADirectory, _) => "it is a directory".to_owned(),
        (_, Ok(found)) if is_no_device => format!("it {}", what_it_is(&found)),
        _ => without_number(error),
    }
}

/// The contents of a file of at most this many MiB: a device may have no end.
///
/// # Errors
/// Why it cannot be read, as a part of a sentence about it.
pub fn read_up_to(path: &Path, mebibytes: u64) -> Result<Vec<u8>, String> {
    let most = mebibytes << 20;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| path_fault(path, &error))?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than {mebibytes} MiB"));
    }
    Ok(bytes)
}

fn what_it_is(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_dir() {
        "is a directory"
    } else if kind.is_fifo() {
        "is a pipe"
    } else if kind.is_socket() {
        "is a socket"
    } else if kind.is_file() {
        "is a file"
    } else {
        "is a device"
    }
}

/// Why a path leads to nothing that this user can open, in the form of [`what_is_there`]; `None` if
/// the error has another reason.
fn why_not_found(path: &Path, error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::PermissionDenied if metadata(path).is_ok() => {
            Some("is not readable by this user")
        }
        ErrorKind::PermissionDenied => Some("is not accessible to this user"),
        ErrorKind::NotFound if path.is_symlink() => Some("is a link to what does not exist"),
        ErrorKind::NotFound => Some("does not exist"),
        ErrorKind::NotADirectory => Some("does not exist: a part of its path is not a directory"),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Some("is a link that leads back to itself")
        }
        _ => None,
    }
}

/// The kernel's message without the error number.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_faults_are_described_without_error_numbers() {
        for (path, expected) in [
            ("/", "it is a directory"),
            ("/no-such-file", "it does not exist"),
            ("/dev/null/file", "it does not exist: a part of its path is not a directory"),
        ] {
            let error = std::fs::read(path).unwrap_err();
            assert_eq!(path_fault(Path::new(path), &error), expected);
        }
        let full = io::Error::from_raw_os_error(28);
        assert_eq!(path_fault(Path::new("/"), &full), "No space left on device");
        assert_eq!(what_is_there(Path::new("/dev/null")), "is a device");
        assert_eq!(read_up_to(Path::new("/dev/zero"), 1).unwrap_err(), "it is larger than 1 MiB");
    }
}
