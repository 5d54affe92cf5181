//! Studies on disk: each finished run is saved before the next starts, and the last study can be
//! found again.
//!
//! They are in `$XDG_DATA_HOME/longtail/studies` (or `~/.local/share/longtail/studies`), named by
//! their start. A file is replaced as a whole, so readers always see a complete study. It is not
//! synced to disk, because that may take longer than a short load.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use model::paths::path_fault;
use model::{Ceiling, Study};
use report::json::ReadError;

use crate::exit::{Mistake, unwritable, wrong};
use crate::{files, secrets, terminal};

/// The largest study, or output of another tool, in bytes.
const LARGEST: u64 = 256 << 20;

/// The file of a new study of `command`. Checks that it can be written, before any load. Also removes
/// temporary files of a longtail that was killed.
///
/// # Errors
/// If the folder cannot be made, or the file cannot be written.
pub(crate) fn new_study(command: &str, started_at: &str) -> Result<PathBuf, Mistake> {
    launch::remove_noted(&data_folder()?);
    new_file(&folder()?, command, started_at)
}

/// The file of what a new `longtail signals` finds, likewise.
///
/// # Errors
/// If the folder cannot be made, or the file cannot be written.
pub(crate) fn new_signals(started_at: &str) -> Result<PathBuf, Mistake> {
    new_file(&signals_folder()?, "signals", started_at)
}

/// A new file of `command` in this folder, which is made if it is not there.
fn new_file(folder: &Path, command: &str, started_at: &str) -> Result<PathBuf, Mistake> {
    let hint = "set XDG_DATA_HOME to a folder that you can write";
    let made = private_data_folder().and_then(|()| files::private_folder(folder));
    made.map_err(|why| unwritable(folder, &why, hint))?;
    let path = folder.join(format!(
        "{}-{command}-{}.json",
        started_at.replace(':', "-"),
        std::process::id()
    ));
    files::try_to_write(&path).map_err(|why| unwritable(&path, &why, hint_for(&why)))?;
    Ok(path)
}

/// Checks that a file the user named can be written.
///
/// # Errors
/// If it cannot.
pub(crate) fn check_writable(path: &Path) -> Result<(), Mistake> {
    files::try_to_write(path)
        .map_err(|why| unwritable(path, &why, "give -o a file that you can write"))
}

/// Writes a file that the user named.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Mistake> {
    files::write(path, &*terminal::harmless(text)).map_err(|why| Mistake::Unwritten {
        path: path.to_owned(),
        hint: if is_full(&why) {
            "make room there, or name another place"
        } else {
            "name another place"
        },
        why,
    })
}

/// Writes a file in longtail's data folder.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn keep(path: &Path, text: &str) -> Result<(), Mistake> {
    files::write_private(path, &*terminal::harmless(text)).map_err(|why| {
        let hint = hint_for(&why);
        Mistake::Unwritten { path: path.to_owned(), hint, why }
    })
}

fn hint_for(why: &io::Error) -> &'static str {
    if is_full(why) {
        "make room there, or name another place"
    } else {
        "let this user write there, or set XDG_DATA_HOME to a folder that you can write"
    }
}

/// Whether room is what a place lacks.
pub(crate) fn is_full(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether two paths lead to the same file, whether it exists or not.
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

/// The files of the studies that are kept, the newest first; one at least.
///
/// # Errors
/// If there is none.
pub(crate) fn kept() -> Result<Vec<PathBuf>, Mistake> {
    let folder = folder()?;
    let files = newest_first(&folder);
    if files.is_empty() {
        return Err(wrong(format!(
            "no study in '{}' yet: run longtail sweep, or name a file",
            folder.display()
        )));
    }
    Ok(files)
}

/// The JSON files of a folder.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort_by_cached_key(|path| {
        let written = fs::metadata(path).and_then(|file| file.modified()).ok();
        Reverse((written, path.clone()))
    });
    files
}

/// The file of what the last `longtail signals` found.
///
/// # Errors
/// If there is none.
pub(crate) fn last_signals() -> Result<PathBuf, Mistake> {
    newest_first(&signals_folder()?).into_iter().next().ok_or_else(|| {
        wrong(
            "no longtail signals has found thresholds yet: run it, or name the file of its -o, as --signals=FILE",
        )
    })
}

/// The file of the last study.
///
/// # Errors
/// If there is none.
pub(crate) fn last() -> Result<PathBuf, Mistake> {
    Ok(kept()?.swap_remove(0))
}

/// The commands whose studies are kept, as the files' names have them.
const KEPT_COMMANDS: [&str; 5] = ["sweep", "load", "compare", "bodies", "capacity"];
/// Commands that print their answer and keep nothing.
const OTHER_COMMANDS: [&str; 5] = ["watch", "predict", "audit", "doctor", "fleet"];

/// The study that a user means: a file, with its ending or without, the number of a kept study as `report --list` counts them, or
/// a command, of which it is the last.
///
/// # Errors
/// If there are not so many, or the command has none.
pub(crate) fn named(word: &Path) -> Result<PathBuf, Mistake> {
    let text = word.to_str().unwrap_or_default();
    if word.is_file() {
        return Ok(word.to_owned());
    }
    if let Ok(number) = text.parse::<usize>() {
        let kept = kept()?;
        let at = number.checked_sub(1).filter(|at| *at < kept.len());
        return at.map(|at| kept[at].clone()).ok_or_else(|| {
            let all = kept.len();
            wrong(format!(
                "there is no study {number}: they are counted from 1, the last, to {all} (longtail report --list)"
            ))
        });
    }
    if text == "signals" {
        return Err(wrong(
            "what signals found is no study: longtail watch --signals shows a server's numbers \
             beside it",
        ));
    }
    if OTHER_COMMANDS.contains(&text) {
        return Err(wrong(format!(
            "the answer of {text} is not kept: longtail report --list shows what is; {text} itself \
             prints it"
        )));
    }
    if !KEPT_COMMANDS.contains(&text) {
        return Ok(without_ending(text).unwrap_or_else(|| word.to_owned()));
    }
    kept()?.into_iter().find(|path| is_of_command(path, text)).ok_or_else(|| {
        wrong(format!("no study of {text} is kept: longtail report --list shows what is"))
    })
}

/// The study in a file of this name with an ending, here or among those that are kept.
fn without_ending(name: &str) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let kept = folder().ok().map(|folder| folder.join(name));
    let places = std::iter::once(PathBuf::from(name)).chain(kept);
    let with_endings = places.flat_map(|place| {
        ["", ".study.json", ".json"].map(|ending| {
            let mut path = place.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        })
    });
    with_endings.into_iter().find(|path| path.is_file())
}

/// Whether a command made the study in this file.
fn is_of_command(path: &Path, command: &str) -> bool {
    let is_kept_as = |command: &str| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().contains(&format!("-{command}-")))
    };
    // A sweep of bodies, and one that compares sizes, is kept as what it is.
    let is_other_kind = || ["bodies", "compare"].into_iter().any(is_kept_as);
    is_kept_as(command)
        || command == "sweep"
            && is_other_kind()
            && read(path).is_ok_and(|it| is_typed_as_sweep(&it))
}

/// Whether `sweep` was typed for a comparison, or a study of bodies.
fn is_typed_as_sweep(study: &Study) -> bool {
    let line = match study {
        Study::Compare(study) => &study.command_line,
        Study::Bodies(study) => &study.command_line,
        Study::Sweep(_) | Study::Load(_) | Study::Capacity(_) => return false,
    };
    let typed = line.split_once("longtail ");
    typed.is_some_and(|(_, typed)| typed.split_whitespace().next() == Some("sweep"))
}

/// Removes a study that is kept.
///
/// # Errors
/// If it cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<(), Mistake> {
    fs::remove_file(path)
        .map_err(|why| wrong(format!("'{}' cannot be removed ({why})", path.display())))
}

/// Reads a study.
///
/// # Errors
/// If the file does not exist or is no study.
pub(crate) fn read(path: &Path) -> Result<Study, Mistake> {
    let unreadable = |why: String| Mistake::Read { path: path.to_owned(), why };
    let bytes = read_bytes(path)?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    let study = report::json::read(&text).map_err(|why| match why {
        ReadError::Summary { .. } => wrong(format!("'{}' is {why}", path.display())),
        other => unreadable(other.to_string()),
    })?;
    // Studies of earlier versions may contain secrets.
    Ok(study.with_command_line(secrets::line_again))
}

/// Reads a file that the user named, up to [`LARGEST`]: a device has no end.
///
/// # Errors
/// If it cannot be read, or is larger.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Mistake> {
    File::open(path).and_then(at_most).map_err(|error| Mistake::Read {
        path: path.to_owned(),
        why: format!("{}; name a file that this user can read", path_fault(path, &error)),
    })
}

/// Reads to the end, up to [`LARGEST`].
///
/// # Errors
/// If it cannot be read, or is larger.
pub(crate) fn at_most(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(bytes)
}

/// The generator's ceilings on this machine, kept for the day on which they were measured.
pub(crate) struct CeilingFile {
    path: Option<PathBuf>,
}

impl CeilingFile {
    /// The ceilings of the day of `started_at` (RFC 3339). Without a data folder none is remembered.
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
        // If the cache cannot be written, the ceiling is just measured again.
        let folder = path.parent().map_or(Ok(()), files::private_folder);
        let _ =
            folder.and_then(|()| files::write_private(path, &serde_json::to_string_pretty(&all)?));
    }
}

fn folder() -> Result<PathBuf, Mistake> {
    Ok(data_folder()?.join("studies"))
}

fn signals_folder() -> Result<PathBuf, Mistake> {
    Ok(data_folder()?.join("signals"))
}

/// longtail's data folder.
///
/// # Errors
/// If neither `XDG_DATA_HOME` nor `HOME` is set.
pub(crate) fn data_folder() -> Result<PathBuf, Mistake> {
    launch::data_folder().ok_or_else(|| wrong("no folder for studies: set XDG_DATA_HOME or HOME"))
}

/// Makes the data folder, which nobody else can enter.
fn private_data_folder() -> io::Result<()> {
    data_folder().map_or(Ok(()), |folder| files::private_folder(&folder))
}

/// The wall clock's time as RFC 3339 in UTC, to the second.
pub(crate) fn wall_time() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
