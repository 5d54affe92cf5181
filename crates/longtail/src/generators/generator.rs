//! The generators: their names, and the command lines by which each makes the same load.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use audit::LoadTool;
use clap::ValueEnum;
use rustix::fs::{Access, access};
use serde::Serialize;

/// What can make load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Generator {
    #[value(hide = true)]
    Longtail,
    Wrk,
    Hey,
    Oha,
    Ab,
    H2load,
    Bombardier,
    Wrk2,
    Vegeta,
}

/// What each of them is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// How many connections.
    pub(crate) connections: u32,
    /// How long.
    pub(crate) seconds: u64,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
    /// Variables set beside ours.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// What prints the report, of those that only write a file while they make load. Not measured.
    pub(crate) report: Option<Vec<OsString>>,
}

impl Generator {
    /// All, in the order of the table.
    pub(crate) const ALL: [Generator; 9] = [
        Generator::Longtail,
        Generator::Wrk,
        Generator::Hey,
        Generator::Oha,
        Generator::Ab,
        Generator::H2load,
        Generator::Bombardier,
        Generator::Wrk2,
        Generator::Vegeta,
    ];

    /// Its program's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Generator::Longtail => "longtail",
            Generator::Wrk => "wrk",
            Generator::Hey => "hey",
            Generator::Oha => "oha",
            Generator::Ab => "ab",
            Generator::H2load => "h2load",
            Generator::Bombardier => "bombardier",
            Generator::Wrk2 => "wrk2",
            Generator::Vegeta => "vegeta",
        }
    }

    /// Whose output it prints; `None` of our own, which is read as a study.
    pub(crate) fn tool(self) -> Option<LoadTool> {
        Some(match self {
            Generator::Longtail => return None,
            Generator::Wrk => LoadTool::Wrk,
            Generator::Hey => LoadTool::Hey,
            Generator::Oha => LoadTool::Oha,
            Generator::Ab => LoadTool::Ab,
            Generator::H2load => LoadTool::H2load,
            Generator::Bombardier => LoadTool::Bombardier,
            Generator::Wrk2 => LoadTool::Wrk2,
            Generator::Vegeta => LoadTool::Vegeta,
        })
    }

    /// Its program in `path`, the value of PATH; `this_program` is our own.
    pub(crate) fn program(self, path: &OsStr, this_program: &OsStr) -> Option<OsString> {
        if self == Generator::Longtail {
            return Some(this_program.to_owned());
        }
        let place = |folder: PathBuf| folder.join(self.name());
        let can_run = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        std::env::split_paths(path).map(place).find(can_run).map(Into::into)
    }

    /// As fast as it can at `url`, on one thread where that can be chosen. `folder` is for its files.
    pub(crate) fn words(self, program: &OsStr, job: Job, url: &str, folder: &Path) -> Words {
        let Job { connections, seconds } = job;
        let time = format!("{seconds}s");
        let file = |name: &str| folder.join(name).into_os_string();
        let mut env: Vec<(&'static str, OsString)> = Vec::new();
        let mut report = None;
        let line = match self {
            Generator::Longtail => {
                // Its studies are none that the user made.
                env.push(("XDG_DATA_HOME", folder.into()));
                format!("load --format json --no-calibrate --lanes 1 -c {connections} --for {time}")
            }
            Generator::Wrk => format!("-t1 -c{connections} -d{time} --latency"),
            Generator::Hey => format!("-cpus 1 -c {connections} -z {time}"),
            Generator::Oha => {
                env.push(("TOKIO_WORKER_THREADS", "1".into()));
                format!("--no-tui -c {connections} -z {time}")
            }
            // -t alone ends it after 50 000 requests. What -n allows is more than one thread of it makes in that time, and
            // costs 32 bytes each: not more than 1.6 GB.
            Generator::Ab => {
                let enough = (2_000_000 * seconds).clamp(u64::from(connections), 50_000_000);
                format!("-q -k -t {seconds} -n {enough} -c {connections}")
            }
            Generator::H2load => format!("--h1 -t1 -c{connections} -D {time}"),
            Generator::Bombardier => {
                env.push(("GOMAXPROCS", "1".into()));
                format!("-l -p r -c {connections} -d {time}")
            }
            // It knows no closed loop: a rate that nothing reaches keeps all connections busy.
            Generator::Wrk2 => format!("-t1 -c{connections} -d{time} -R10000000 --latency"),
            Generator::Vegeta => {
                report = Some(vec![program.to_owned(), "report".into(), file("vegeta.bin")]);
                let line = format!(
                    "-cpus=1 attack -rate=0 -workers={connections} -max-workers={connections} \
                     -connections={connections} -duration={time}"
                );
                let (mut to, mut from) = (OsString::from("-output="), OsString::from("-targets="));
                to.push(file("vegeta.bin"));
                from.push(file("targets"));
                let words = line.split_ascii_whitespace().map(OsString::from).chain([to, from]);
                let argv = std::iter::once(program.to_owned()).chain(words).collect();
                return Words { argv, env, report };
            }
        };
        let words = line.split_ascii_whitespace().map(OsString::from);
        Words { argv: std::iter::once(program.to_owned()).chain(words).chain([url.into()]).collect(), env, report }
    }

    /// What tells its version; `None` of one that does not.
    pub(crate) fn version_flag(self) -> Option<&'static str> {
        match self {
            Generator::Wrk | Generator::Wrk2 => Some("-v"),
            Generator::Ab => Some("-V"),
            Generator::Vegeta => Some("-version"),
            Generator::Oha | Generator::H2load | Generator::Bombardier => Some("--version"),
            Generator::Hey | Generator::Longtail => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_for_the_same_load() {
        for generator in Generator::ALL {
            let job = Job { connections: 37, seconds: 4 };
            let words = generator.words(OsStr::new("/bin/it"), job, "http://127.0.0.1:1/", Path::new("/tmp/x"));
            let line = words.argv.join(OsStr::new(" ")).into_string().unwrap();
            assert!(line.starts_with("/bin/it ") && line.contains("37") && line.contains('4'), "{line}");
            assert!(line.ends_with(" http://127.0.0.1:1/") || words.report.is_some(), "{line}");
        }
    }

    #[test]
    fn a_program_that_is_not_on_path_is_missing() {
        let of = |generator: Generator| generator.program(OsStr::new("/nowhere:/proc/self"), OsStr::new("/bin/us"));
        assert_eq!(of(Generator::Wrk), None);
        assert_eq!(of(Generator::Longtail), Some("/bin/us".into()));
    }
}
