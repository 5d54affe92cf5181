//! Studies on disk: each finished run is there before the next starts, and the last study can be found again.
//!
//! They are in `$XDG_DATA_HOME/longtail/studies` (or `~/.local/share/longtail/studies`), named by their start. A file
//! is replaced as a whole, so that whoever reads it, also after a crash, sees a whole study.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use model::{Ceiling, LaneLimits, Study};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::mistake::Mistake;

/// Where one study is written to.
pub(crate) struct Store {
    files: Vec<PathBuf>,
}

impl Store {
    /// A new study of `command`: its file in the data folder, and `also` where the user wants it.
    ///
    /// # Errors
    /// Where the folder cannot be made, or `also` cannot be written.
    pub(crate) fn create(command: &str, started_at: &str, also: Option<&Path>) -> Result<Store, Mistake> {
        let folder = folder()?;
        fs::create_dir_all(&folder).map_err(|why| Mistake::Write {
            path: folder.clone(),
            why,
            mend: "set XDG_DATA_HOME to a folder that you can write",
        })?;
        let name = format!("{}-{command}-{}.json", started_at.replace(':', "-"), std::process::id());
        let own = folder.join(name);
        // Found out now, not after minutes of load.
        let tried = with_end(&own, ".new");
        File::create(&tried).and_then(|_| fs::remove_file(&tried)).map_err(|why| unwritable(&own, why))?;
        if let Some(path) = also {
            let is_new = !path.exists();
            let unwritable =
                |why| Mistake::Write { path: path.to_owned(), why, mend: "give -o a file that you can write" };
            File::options().append(true).create(true).open(path).map_err(unwritable)?;
            if is_new {
                fs::remove_file(path).map_err(unwritable)?;
            }
        }
        Ok(Store { files: std::iter::once(own).chain(also.map(Path::to_owned)).collect() })
    }

    /// The study's own file.
    pub(crate) fn path(&self) -> &Path {
        &self.files[0]
    }

    /// Writes the study as it is now, to each of its files: one that cannot be written keeps the other from nothing.
    ///
    /// # Errors
    /// Of the first file that cannot be written.
    pub(crate) fn save(&self, study: &Study) -> Result<(), Mistake> {
        let text = report::json::write(study);
        let written = self.files.iter().map(|path| replace(path, &text).map_err(|why| unwritable(path, why)));
        written.collect::<Vec<_>>().into_iter().collect()
    }
}

fn unwritable(path: &Path, why: io::Error) -> Mistake {
    let mend = match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room there, or name another place",
        _ => "let this user write there, or set XDG_DATA_HOME to a folder that you can write",
    };
    Mistake::Write { path: path.to_owned(), why, mend }
}

/// `path` with `end` after its name.
fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A pipe or a device is written to as it is.
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let new = with_end(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&new, path)
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
        .ok_or(Mistake::NoStudy(folder))
}

/// Reads a study.
///
/// # Errors
/// Where the file is not there or is no study.
pub(crate) fn read(path: &Path) -> Result<Study, Mistake> {
    let text = fs::read_to_string(path).map_err(|why| Mistake::Read { path: path.to_owned(), why: why.to_string() })?;
    report::json::read(&text).map_err(|why| Mistake::Read { path: path.to_owned(), why: why.to_string() })
}

/// Ceilings of the generator on this machine, kept for the day they were measured on.
pub(crate) struct CeilingFile {
    path: Option<PathBuf>,
}

impl CeilingFile {
    /// Those of the day of `started_at` (RFC 3339). Without a data folder nothing is remembered.
    pub(crate) fn of_day(started_at: &str) -> CeilingFile {
        let day = started_at.get(..10).unwrap_or("day").to_owned();
        CeilingFile { path: data_folder().ok().map(|folder| folder.join(format!("ceilings-{day}.json"))) }
    }
}

/// What a file remembers; nothing where it cannot be read.
fn remembered<T: DeserializeOwned>(path: Option<&Path>) -> BTreeMap<String, T> {
    let text = path.and_then(|path| fs::read_to_string(path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Remembers one more.
fn remember<T: DeserializeOwned + Serialize>(path: &Path, key: &str, value: T) -> io::Result<()> {
    let mut all = remembered(Some(path));
    all.insert(key.to_owned(), value);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    replace(path, &serde_json::to_string_pretty(&all)?)
}

impl sweep::Ceilings for CeilingFile {
    fn known(&self, settings: &str) -> Option<Ceiling> {
        remembered(self.path.as_deref()).remove(settings)
    }

    fn remember(&self, settings: &str, ceiling: &Ceiling) {
        // A cache that cannot be written is one that has to be measured again: nobody need be told.
        let _ = self.path.as_ref().map(|path| remember(path, settings, *ceiling));
    }
}

/// What lanes were measured to do, by machine, until they are measured again.
pub(crate) struct LaneFile {
    path: Option<PathBuf>,
}

impl LaneFile {
    /// Without a data folder nothing is remembered.
    pub(crate) fn open() -> LaneFile {
        LaneFile { path: data_folder().ok().map(|folder| folder.join("lanes.json")) }
    }

    /// What is remembered of a machine.
    pub(crate) fn known(&self, machine: &str) -> Option<LaneLimits> {
        remembered(self.path.as_deref()).remove(machine)
    }

    /// Remembers it in place of what was; where.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn remember(&self, machine: &str, limits: LaneLimits) -> Result<&Path, Mistake> {
        let path = self.path.as_deref().ok_or(Mistake::NoDataFolder)?;
        remember(path, machine, limits).map(|()| path).map_err(|why| unwritable(path, why))
    }
}

fn folder() -> Result<PathBuf, Mistake> {
    Ok(data_folder()?.join("studies"))
}

fn data_folder() -> Result<PathBuf, Mistake> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(data.ok_or(Mistake::NoDataFolder)?.join("longtail"))
}
