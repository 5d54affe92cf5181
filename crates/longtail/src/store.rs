//! Studies on disk: each finished run is saved before the next starts, and the last study can be
//! found again.
//!
//! They are in `$XDG_DATA_HOME/longtail/studies` (or `~/.local/share/longtail/studies`), named by
//! their start. A file is replaced as a whole, so that whoever reads it, also when longtail was
//! killed, sees a whole study. It is not waited for until a disk has it: that takes longer than a
//! short load.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use model::plan::quoted;
use model::{Ceiling, Study};
use report::json::ReadError;

use crate::exit::{Mistake, unwritable, wrong};
use crate::ui;

/// No study and no output of a tool is larger.
const LARGEST: u64 = 256 << 20;

/// The file of a new study of `command`. That it can be written is found out now, not after minutes
/// of load. What a longtail that was killed left in its temporary folder goes too.
///
/// # Errors
/// Where the folder cannot be made, or the file cannot be written.
pub(crate) fn new_study(command: &str, started_at: &str) -> Result<PathBuf, Mistake> {
    launch::remove_noted(&data_folder()?);
    let folder = folder()?;
    let hint = "set XDG_DATA_HOME to a folder that you can write";
    fs::create_dir_all(&folder).map_err(|why| unwritable(&folder, &why, hint))?;
    let path = folder.join(format!(
        "{}-{command}-{}.json",
        started_at.replace(':', "-"),
        std::process::id()
    ));
    try_to_write(&path).map_err(|why| unwritable(&path, &why, hint_for(&why)))?;
    Ok(path)
}

/// Finds out whether a file that the user named can be written.
///
/// # Errors
/// Where it cannot.
pub(crate) fn check_writable(path: &Path) -> Result<(), Mistake> {
    // Opening a pipe waits until somebody reads it, and a study is replaced after each run.
    let (tried, hint) = if is_fifo(path) {
        (Err(io::Error::other("it is a pipe")), "give -o a file, or pipe what is printed")
    } else {
        (try_to_write(path), "give -o a file that you can write")
    };
    tried.map_err(|why| unwritable(path, &why, hint))
}

fn try_to_write(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    File::options().append(true).create(true).open(path)?;
    if is_new { fs::remove_file(path) } else { Ok(()) }
}

/// Writes a file that the user named.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Mistake> {
    replace(path, &ui::harmless(text)).map_err(|why| Mistake::Unwritten {
        path: path.to_owned(),
        hint: hint_for(&why),
        why,
    })
}

fn hint_for(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or name another place"
        }
        _ => "let this user write there, or set XDG_DATA_HOME to a folder that you can write",
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A pipe or a device is written to as it is.
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let write = || {
        fs::write(&new, text)?;
        fs::rename(&new, path)
    };
    // A full disk leaves no half of it.
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Whether a pipe has that name.
pub(crate) fn is_fifo(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Whether two names are those of one file, there or not.
pub(crate) fn are_one(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        path.canonicalize()
            .ok()
            .or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
    };
    one == other || place(one).is_some_and(|one| Some(one) == place(other))
}

/// The file of the last study.
///
/// # Errors
/// Where there is none.
pub(crate) fn last() -> Result<PathBuf, Mistake> {
    let folder = folder()?;
    let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .max_by_key(|path| (fs::metadata(path).and_then(|file| file.modified()).ok(), path.clone()))
        .ok_or_else(|| {
            wrong(format!(
                "no study in '{}' yet: run longtail sweep, or name a file",
                folder.display()
            ))
        })
}

/// Reads a study.
///
/// # Errors
/// Where the file is not there or is no study.
pub(crate) fn read(path: &Path) -> Result<Study, Mistake> {
    let unreadable = |why: String| Mistake::Read { path: path.to_owned(), why };
    let bytes = File::open(path).and_then(at_most).map_err(|why| unreadable(why.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    report::json::read(&text).map_err(|why| match why {
        ReadError::Summary { .. } => wrong(format!("'{}' is {why}", path.display())),
        other => unreadable(other.to_string()),
    })
}

/// All of a file, but for one that nobody can mean: a device has no end.
///
/// # Errors
/// Where it cannot be read, or is larger than [`LARGEST`].
pub(crate) fn at_most(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    let fits = bytes.len() as u64 <= LARGEST;
    fits.then_some(bytes)
        .ok_or_else(|| io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)))
}

/// Ceilings of the generator on this machine, kept for the day they were measured on.
pub(crate) struct CeilingFile {
    path: Option<PathBuf>,
}

impl CeilingFile {
    /// Those of the day of `started_at` (RFC 3339). Without a data folder nothing is remembered.
    pub(crate) fn of_day(started_at: &str) -> CeilingFile {
        let day = started_at.get(..10).unwrap_or("day").to_owned();
        CeilingFile {
            path: data_folder().ok().map(|folder| folder.join(format!("ceilings-{day}.json"))),
        }
    }

    fn all(&self) -> BTreeMap<String, Ceiling> {
        let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

impl sweep::Ceilings for CeilingFile {
    fn known(&self, settings: &str) -> Option<Ceiling> {
        self.all().remove(settings)
    }

    fn remember(&self, settings: &str, ceiling: &Ceiling) {
        let Some(path) = &self.path else { return };
        let mut all = self.all();
        all.insert(settings.to_owned(), *ceiling);
        // A cache that cannot be written is one that has to be measured again: nobody need know.
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder.and_then(|()| replace(path, &serde_json::to_string_pretty(&all)?));
    }
}

fn folder() -> Result<PathBuf, Mistake> {
    Ok(data_folder()?.join("studies"))
}

/// Where all that longtail keeps is.
///
/// # Errors
/// Where there is no place for it.
pub(crate) fn data_folder() -> Result<PathBuf, Mistake> {
    launch::data_folder().ok_or_else(|| wrong("no folder for studies: set XDG_DATA_HOME or HOME"))
}

/// The wall clock's time as RFC 3339 in UTC, to the second: when a study was made.
pub(crate) fn wall_time() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// This program's command line as it was typed, as far as it is text: as a shell takes it, and
/// without secrets.
pub(crate) fn command_line() -> String {
    without_secrets(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()))
}

/// These words after the program's name.
fn without_secrets(words: impl Iterator<Item = String>) -> String {
    let mut line = "longtail".to_owned();
    let mut hide_next = false;
    for word in words {
        let shown = if hide_next {
            SECRET.to_owned()
        } else if word.strip_prefix("-a").is_some_and(|rest| rest.contains(':')) {
            format!("-a{SECRET}")
        } else if word.starts_with("--auth=") {
            format!("--auth={SECRET}")
        } else {
            shell_word(&without_credentials(&word))
        };
        hide_next = word == "-a" || word == "--auth";
        line.push(' ');
        line.push_str(&shown);
    }
    line
}

const SECRET: &str = "'(secret)'";

/// A word as a shell takes it; of a header with credentials or cookies only that it is there.
pub(crate) fn shell_word(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let is_secret = lower.contains("authorization:") || lower.contains("cookie:");
    if is_secret { SECRET.to_owned() } else { quoted(word) }
}

/// A URL without `user:password@`.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        without_secrets(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn secrets_do_not_reach_reports() {
        for line in [
            "load -a me:hunter2 http://h/",
            "load --auth me:hunter2 http://h/",
            "load --auth=me:hunter2 http://h/",
            "load -ame:hunter2 http://h/",
            "load http://me:hunter2@h/x?y=z@w",
        ] {
            assert!(!said(line).contains("hunter2"), "{}", said(line));
        }
        let header =
            ["load", "-H", "Authorization: Bearer hunter2", "http://h/"].map(str::to_owned);
        assert!(!without_secrets(header.into_iter()).contains("hunter2"));
        assert_eq!(said("load -c 5 http://h/a?b=c@d"), "longtail load -c 5 'http://h/a?b=c@d'");
    }
}
