//! Finds Puma's control server: in the state file that Puma writes where it runs.

use std::fs;
use std::path::{Path, PathBuf};

use engine::Resolver;
use model::ControlServer;
use probe::control;
use probe::host::is_of_this_machine;

/// Where state files are, relative to the folder in which Puma runs.
const STATE_FILE_FOLDERS: [&str; 6] =
    ["", "tmp", "tmp/pids", "tmp/sockets", "../shared/tmp/pids", "../../shared/tmp/pids"];
/// A state file has a few lines. A larger file is something else.
const LARGEST_STATE_FILE: u64 = 16 << 10;

/// A control server, and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsSource {
    /// Where it listens, and its token.
    pub control: ControlServer,
    /// The path of the state file, or the URL.
    pub shown: String,
}

impl StatisticsSource {
    /// Looks for a state file where each of these processes runs, and takes the first that names
    /// the process itself and a control server on this machine.
    pub fn of_processes(pids: &[u32], resolver: &Resolver) -> Option<StatisticsSource> {
        pids.iter().find_map(|pid| source_of_process(*pid, resolver))
    }
}

fn source_of_process(pid: u32, resolver: &Resolver) -> Option<StatisticsSource> {
    let folder = PathBuf::from(format!("/proc/{pid}/cwd"));
    STATE_FILE_FOLDERS
        .iter()
        .flat_map(|name| state_files(&folder.join(name)))
        .find_map(|path| source_of_state_file(&path, pid, resolver))
}

fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| may_be_state_file(path)).collect()
}

fn may_be_state_file(path: &Path) -> bool {
    let ends_so = path.extension().is_some_and(|extension| extension == "state");
    ends_so
        && fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LARGEST_STATE_FILE)
}

/// The control server that this file names; `None` if the file is another process's, or the control
/// server is on another machine.
fn source_of_state_file(path: &Path, pid: u32, resolver: &Resolver) -> Option<StatisticsSource> {
    let text = fs::read_to_string(path).ok()?;
    let named = text.lines().find_map(|line| line.strip_prefix("pid:"))?;
    if named.trim().parse() != Ok(pid) {
        return None;
    }
    let resolve = |host: &str, port: u16| {
        resolver.resolve(host, port).map(|found| found[0]).map_err(|error| error.to_string())
    };
    let control = control::from_state_file(&text, &resolve).ok()?;
    if !is_of_this_machine(&control.address) {
        return None;
    }
    let shown = short_path(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    Some(StatisticsSource { control, shown })
}

/// The path relative to the current folder if it is below that, else as it is.
pub fn short_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::Scratch;

    #[test]
    fn a_state_file_counts_for_the_process_that_it_names() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join("puma.state");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            let files = state_files(scratch.path());
            assert_eq!(files, std::slice::from_ref(&path));
            source_of_state_file(&files[0], 42, &Resolver::default())
        };
        let here = "---\npid: 42\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: t\n";
        assert_eq!(found(here).map(|source| source.control.token), Some("t".to_owned()));
        assert_eq!(found(&here.replace("42", "43")), None, "another server's");
        assert_eq!(found(&here.replace("127.0.0.1", "192.0.2.1")), None, "another machine's");
        assert_eq!(found("pid: 42\n"), None, "no control server");
        fs::write(&path, "x".repeat(20_000)).unwrap();
        assert_eq!(state_files(scratch.path()), Vec::<PathBuf>::new());
        assert_eq!(StatisticsSource::of_processes(&[u32::MAX], &Resolver::default()), None);
    }
}
