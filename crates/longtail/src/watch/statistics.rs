//! Where Puma says what its threads do: the control server that the user named, or the one of a state file that lies where Puma runs.

use std::fs;
use std::path::{Path, PathBuf};

use engine::Resolver;
use model::ControlServer;
use probe::control;

use crate::load::is_of_this_machine;

/// Where state files are, seen from the folder in which Puma runs.
const FOLDERS: [&str; 6] = ["", "tmp", "tmp/pids", "tmp/sockets", "../shared/tmp/pids", "../../shared/tmp/pids"];
/// A larger file is no state file.
const LARGEST: u64 = 16 << 10;

/// A control server, and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatisticsSource {
    pub(crate) control: ControlServer,
    /// The state file's path, or the URL.
    pub(crate) shown: String,
}

impl StatisticsSource {
    /// That of the first state file below the folder of one of these processes that names the process itself and a control server
    /// on this machine.
    pub(crate) fn of_processes(pids: &[u32], resolver: &Resolver) -> Option<StatisticsSource> {
        pids.iter().find_map(|pid| {
            let folder = PathBuf::from(format!("/proc/{pid}/cwd"));
            let files = FOLDERS.iter().flat_map(|name| state_files(&folder.join(name)));
            files.into_iter().find_map(|path| of_state_file(&path, *pid, resolver))
        })
    }
}

fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_state = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "state");
    let is_small = |path: &PathBuf| fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LARGEST);
    entries.map(|entry| entry.path()).filter(is_state).filter(is_small).collect()
}

fn of_state_file(path: &Path, pid: u32, resolver: &Resolver) -> Option<StatisticsSource> {
    let text = fs::read_to_string(path).ok()?;
    let named = text.lines().find_map(|line| line.strip_prefix("pid:"))?;
    if named.trim().parse() != Ok(pid) {
        return None;
    }
    let find =
        |host: &str, port: u16| resolver.resolve(host, port).map(|found| found[0]).map_err(|error| error.to_string());
    let control = control::from_state_file(&text, &find).ok()?;
    let is_here = is_of_this_machine(&control.address);
    let shown = short_path(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    is_here.then_some(StatisticsSource { control, shown })
}

/// A path as short as it is clear from here.
pub(crate) fn short_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::Scratch;

    #[test]
    fn a_state_file_is_of_the_process_that_it_names() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join("puma.state");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            let files = state_files(scratch.path());
            assert_eq!(files, std::slice::from_ref(&path));
            of_state_file(&files[0], 42, &Resolver::default())
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
