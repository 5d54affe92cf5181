//! How a running Puma was started: its version and mode, from the titles of its processes, and what
//! it does on a signal, from what it printed when it started, or else from its config file.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use model::{PumaAbility, PumaSetup};

use crate::processes::{title, tree};

/// The most that is read of a log, from its end, or of a config file.
const MOST_BYTES: u64 = 4 << 20;
/// Where config files are, relative to the folder in which Puma runs (`lib/puma/configuration.rb`).
const CONFIG_FILES: [&str; 2] = ["config/puma.rb", "config/puma/production.rb"];

/// How the Puma with this first process was started; `None` if it is no Puma.
pub fn of_process(pid: u32) -> Option<PumaSetup> {
    let mut setup = by_titles(pid)?;
    let log = log_of(pid).and_then(end_of).unwrap_or_default();
    add_printed(&mut setup, log.lines());
    if setup.phased.is_none() {
        let files = CONFIG_FILES.map(|name| PathBuf::from(format!("/proc/{pid}/cwd/{name}")));
        if let Some(config) = files.iter().find_map(end_of) {
            add_configured(&mut setup, &config);
        }
    }
    Some(setup)
}

/// The same for a Puma that wrote these lines; `None` if it is no Puma.
pub fn of_output<'l>(
    pid: u32,
    lines: impl DoubleEndedIterator<Item = &'l str>,
) -> Option<PumaSetup> {
    let mut setup = by_titles(pid)?;
    add_printed(&mut setup, lines);
    Some(setup)
}

/// What the titles of its processes say.
fn by_titles(pid: u32) -> Option<PumaSetup> {
    let version = version_of(pid)?;
    let is_worker = |pid: &u32| title(*pid, "").starts_with("puma: cluster worker");
    let workers = tree(pid).iter().filter(|pid| is_worker(pid)).count() as u32;
    Some(PumaSetup { version: Some(version), workers, ..PumaSetup::default() })
}

/// The version of the Puma whose first process this is; `None` if it is no Puma.
pub fn version_of(pid: u32) -> Option<String> {
    version_in_title(&title(pid, ""))
}

/// The file that a process's stdout goes to; `None` if that is no file.
pub fn log_of(pid: u32) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/{pid}/fd/1"));
    fs::metadata(&path).is_ok_and(|data| data.is_file()).then_some(path)
}

/// The text at the end of a file.
fn end_of(path: impl AsRef<Path>) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `puma 8.0.2 (tcp://0.0.0.0:9292) [shop]`
fn version_in_title(title: &str) -> Option<String> {
    let version = title.strip_prefix("puma ")?.split(' ').next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// What it says when it starts: `*     Restarts: (✔) hot (✖) phased (✖) refork`. The last such line
/// counts. Before 6 it says nothing about refork.
fn add_printed<'l>(setup: &mut PumaSetup, mut lines: impl DoubleEndedIterator<Item = &'l str>) {
    let Some(line) = lines.rfind(|line| line.contains("Restarts: (")) else { return };
    let told = |name: &str| {
        let mark = line.split(name).next().filter(|before| before.len() < line.len())?;
        Some(PumaAbility { is_there: mark.trim_end().ends_with("(\u{2714})"), is_told: true })
    };
    setup.phased = told(" phased");
    setup.refork = told(" refork");
}

/// What its config file suggests: in lines that are not comments.
fn add_configured(setup: &mut PumaSetup, config: &str) {
    let lines = || config.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let suggested = |is_there| Some(PumaAbility { is_there, is_told: false });
    if let Some(line) = lines().find(|line| line.contains("preload_app!")) {
        setup.phased = suggested(line.contains("false"));
    }
    if lines().any(|line| line.starts_with("fork_worker")) {
        setup.refork = suggested(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_puma_says_what_it_can_do_and_its_config_suggests_it() {
        let told = |log: &str| {
            let mut setup = PumaSetup::default();
            add_printed(&mut setup, log.lines());
            [setup.phased, setup.refork].map(|ability| ability.map(|it| (it.is_there, it.is_told)))
        };
        let yes = Some((true, true));
        let no = Some((false, true));
        assert_eq!(told("*     Restarts: (✔) hot (✖) phased (✖) refork\n"), [no, no]);
        assert_eq!(told("* Restarts: (✔) hot (✔) phased\nx\n"), [yes, None]);
        let twice = "*     Restarts: (✔) hot (✖) phased (✖) refork\n*     Restarts: (✔) hot (✔) phased (✔) refork";
        assert_eq!(told(twice), [yes, yes]);
        assert_eq!(told("Puma starting in single mode...\n"), [None, None]);
        let mut setup = PumaSetup::default();
        add_configured(&mut setup, "# preload_app!\nfork_worker\npreload_app! false\n");
        assert_eq!(setup.phased, Some(PumaAbility { is_there: true, is_told: false }));
        assert_eq!(setup.refork.map(|it| it.is_there), Some(true));
        assert_eq!(version_in_title("puma 6.6.1 (tcp://h:1) [x]").as_deref(), Some("6.6.1"));
        assert_eq!(version_in_title("puma: cluster worker 0: 1 [x]"), None);
    }
}
