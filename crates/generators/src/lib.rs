//! Runs other load generators (`--generator wrk`): makes the command line of a load out of what
//! `audit` knows of the tool, runs it as a child process ([`GeneratorDriver`]), and compares what
//! each generator reaches on this machine ([`rates`]).
//!
//! What a tool has no flag for is refused in one line before any load is sent.

mod ordered_load;
mod process;
pub mod rates;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use audit::LoadTool;
use audit::claim::ClaimedServer;
use launch::{LaunchError, find_program};
use model::objective::ObjectiveFigure;
use model::paths::path_fault;
use model::{LoadSettings, Nanos, Pace, Profile, Rate, Threshold};
use sweep::SweepError;
use thiserror::Error;

pub use self::ordered_load::OrderedLoad;
pub use self::process::{GeneratorDriver, GeneratorRunner, ProcessReport};

/// Why another generator cannot make a load. Nothing was sent.
#[derive(Debug, Error)]
pub enum GeneratorError {
    /// It cannot make this load, or is not installed: one line that says what to type.
    #[error("{0}")]
    Refused(String),
    /// Its folder or a file for it cannot be written.
    #[error("'{path}' cannot be written ({}): {hint}", path_fault(path, why))]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The sink that all generators load could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The sink was started but does not answer.
    #[error(transparent)]
    Sweep(#[from] SweepError),
}

/// The program of a tool in `path`, the value of PATH, or where HEY or WRK say.
fn program_of(tool: LoadTool, path: &OsStr) -> Option<OsString> {
    let setting = tool.program_setting().and_then(setting);
    let program = setting.as_deref().unwrap_or(OsStr::new(tool.name()));
    find_program(program, Path::new(""), path).map(Into::into)
}

/// A variable that is set to something.
fn setting(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The CPUs that the environment allows a generator, as `HEY_CPUS` does in Puma's scripts.
///
/// # Errors
/// If it is no number of CPUs.
pub fn cpus_setting(tool: LoadTool) -> Result<Option<u32>, GeneratorError> {
    let Some(name) = tool.cpus_setting() else { return Ok(None) };
    let Some(value) = setting(name) else { return Ok(None) };
    let value = value.to_string_lossy();
    match value.parse::<u32>() {
        Ok(cpus @ 1..=1024) => Ok(Some(cpus)),
        Ok(_) | Err(_) => Err(GeneratorError::Refused(format!(
            "{name}='{value}' is no number of CPUs: set it to 1 to 1024, or unset it"
        ))),
    }
}

/// The environment variables that are set and say how another generator is run.
pub fn settings(tool: Option<LoadTool>) -> impl Iterator<Item = &'static str> {
    let names = tool.map(|tool| [tool.program_setting(), tool.cpus_setting()]);
    names.into_iter().flatten().flatten().filter(|name| setting(name).is_some())
}

/// A generator that was found on PATH.
#[derive(Clone, Debug)]
pub struct InstalledGenerator {
    /// Which tool it is.
    pub tool: LoadTool,
    /// Its program.
    pub program: OsString,
}

impl InstalledGenerator {
    /// Looks for it.
    ///
    /// # Errors
    /// If it is not on PATH.
    pub fn on_path(tool: LoadTool) -> Result<InstalledGenerator, GeneratorError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let name = tool.name();
        let missing = || {
            let variable = tool.program_setting();
            let set = variable.and_then(|variable| Some((variable, setting(variable)?)));
            GeneratorError::Refused(match set {
                Some((variable, program)) => format!(
                    "--generator {name}: {variable}='{}' is no program: correct it, or unset {variable}",
                    program.display()
                ),
                None => format!(
                    "--generator {name}: {name} is not on PATH; install it, or leave out --generator"
                ),
            })
        };
        let program = program_of(tool, &path).ok_or_else(missing)?;
        Ok(InstalledGenerator { tool, program })
    }
}

/// The load of one run, as another generator is asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOrder {
    /// The target: by address, never by name, so that the load goes to the server that was checked.
    pub url: String,
    /// The Host header, if it differs from the URL's host.
    pub host: Option<String>,
    /// How requests are sent: a closed loop, or one constant rate. The generator may start as many
    /// threads as it has lanes.
    pub load: LoadSettings,
    /// Open loop: the rate of each connection, if the user gave that and not the rate in total.
    pub rate_per_connection: Option<Rate>,
    /// The length of the run, if no count of requests ends it.
    pub time: Option<Nanos>,
    /// The method, if not GET.
    pub method: Option<String>,
    /// The user's own headers, `Name: value`, without the Host header.
    pub headers: Vec<String>,
    /// A file with the body.
    pub body: Option<PathBuf>,
    /// The workers and threads of the server, for the audit.
    pub server: Option<ClaimedServer>,
    /// How long the server sleeps for each request, for the audit.
    pub delay: Option<Nanos>,
}

impl LoadOrder {
    /// GET requests without a body.
    pub fn get(url: &str, load: LoadSettings) -> LoadOrder {
        LoadOrder {
            url: url.to_owned(),
            host: None,
            load,
            rate_per_connection: None,
            time: None,
            method: None,
            headers: Vec::new(),
            body: None,
            server: None,
            delay: None,
        }
    }

    /// Open loop: requests per second in total, unless a rate per connection was given.
    fn rate(&self) -> Option<Rate> {
        match &self.load.pace {
            Pace::Open { profile: Profile::Flat { rate }, .. } => {
                Some(*rate).filter(|_| self.rate_per_connection.is_none())
            }
            Pace::Open { .. } | Pace::Closed => None,
        }
    }

    /// Threads that share the connections evenly: the largest divisor of the connections that is no
    /// more than the threads asked for. (wrk gives each thread connections / threads and drops the
    /// remainder.)
    fn even_threads(&self) -> u32 {
        (1..=self.load.lanes.min(self.load.connections))
            .rev()
            .find(|n| self.load.connections.is_multiple_of(*n))
            .unwrap_or(1)
    }

    /// The value of the placeholder `{name}` in a generator's command line; `None` if this load has
    /// no such value, so that its group of words is left out. Some values are empty: they only say
    /// whether their group belongs there.
    fn argument(&self, name: &str, folder: &Path) -> Option<String> {
        let seconds = self.time.map(whole_seconds);
        let marks = |is_so: bool| is_so.then(String::new);
        match name {
            "c" => Some(self.load.connections.to_string()),
            "t" => Some(self.even_threads().to_string()),
            "cpus" => Some(self.load.lanes.to_string()),
            "s" => Some(whole_seconds(self.load.timeout).to_string()),
            "time" => seconds.map(|time| time.to_string()),
            "n" => self.load.requests_total.map(|number| number.to_string()),
            // ab needs a count even if time ends the run: more than one thread sends in that time,
            // but no more than 50 million, because ab allocates 32 bytes for each (1.6 GB).
            "enough" => seconds.map(|time| {
                (2_000_000 * time).clamp(self.load.connections.into(), 50_000_000).to_string()
            }),
            "rate" => self.rate().map(|rate| rate.per_second().to_string()),
            "each" => self.rate_per_connection.map(|rate| rate.per_second().to_string()),
            // A tool without a closed loop gets a rate that no server reaches, which keeps all its
            // connections busy too.
            "floods" => marks(self.rate().is_none()),
            "closes" => marks(!self.load.keep_alive),
            "keeps" => marks(self.load.keep_alive),
            "close" => (!self.load.keep_alive).then(|| "Connection: close".to_owned()),
            "m" => self.method.clone(),
            "bodiless" => self.method.clone().filter(|_| self.body.is_none()),
            "host" => self.host.clone(),
            "body" => self.body.as_ref().map(|file| file.to_string_lossy().into_owned()),
            "folder" => Some(folder.to_string_lossy().into_owned()),
            "url" => Some(self.url.clone()),
            _ => unreachable!("no generator has a word {name}"),
        }
    }

    /// The arguments of the command line that `words` describes.
    fn words_of(&self, words: &str, folder: &Path) -> Vec<String> {
        let fill = |word: &str, header: &str| -> Option<String> {
            let parts = word.split(['{', '}']).enumerate().map(|(at, part)| match part {
                _ if at.is_multiple_of(2) => Some(part.to_owned()),
                "header" => Some(header.to_owned()),
                name => self.argument(name, folder),
            });
            parts.collect()
        };
        let host = self
            .host
            .iter()
            .filter(|_| !words.contains("{host}"))
            .map(|host| format!("Host: {host}"));
        let headers: Vec<String> = host.chain(self.headers.iter().cloned()).collect();
        let once = [String::new()];
        let groups = words.split(['[', ']']).flat_map(|group| {
            let times = if group.contains("{header}") { &headers[..] } else { &once };
            times.iter().filter_map(|header| {
                group.split_ascii_whitespace().map(|word| fill(word, header)).collect()
            })
        });
        groups.collect::<Vec<Vec<String>>>().concat()
    }
}

fn whole_seconds(time: Nanos) -> u64 {
    time.0 / 1_000_000_000
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GeneratorCommand {
    /// Program and arguments.
    argv: Vec<OsString>,
    /// Environment variables added to ours.
    env: Vec<(&'static str, OsString)>,
}

/// The command with which a tool makes this load. `folder` is for its files.
fn command(tool: LoadTool, program: &OsStr, order: &LoadOrder, folder: &Path) -> GeneratorCommand {
    let mut argv = vec![program.to_owned()];
    let words = order.words_of(tool.command_words().unwrap_or_default(), folder);
    argv.extend(words.into_iter().map(OsString::from));
    let mut env = Vec::new();
    if tool == LoadTool::Longtail {
        // These studies must not end up among the user's own.
        env.push(("XDG_DATA_HOME", folder.into()));
    }
    if let Some(variable) = tool.thread_variable() {
        env.push((variable, order.even_threads().to_string().into()));
    }
    GeneratorCommand { argv, env }
}

/// Refuses a load that the tool cannot make, naming the flag.
///
/// # Errors
/// If there is such a flag.
pub fn check_order(tool: LoadTool, order: &LoadOrder) -> Result<(), GeneratorError> {
    let why = needs_whole_seconds(order)
        .or_else(|| needs_even_count(tool, order))
        .or_else(|| unsupported_pace(tool, order).map(str::to_owned))
        .or_else(|| unsupported_request(tool, order).map(str::to_owned));
    match why {
        Some(why) => Err(refused(tool, &why)),
        None => Ok(()),
    }
}

fn refused(tool: LoadTool, why: &str) -> GeneratorError {
    GeneratorError::Refused(format!("--generator {}: {why}", tool.name()))
}

/// Other tools take times in whole seconds.
fn needs_whole_seconds(order: &LoadOrder) -> Option<String> {
    let times = [
        (order.time, "--for"),
        (Some(order.load.warm_up), "--warm-up"),
        (Some(order.load.timeout), "--timeout"),
    ];
    times.into_iter().find_map(|(time, flag)| {
        let is_whole = time?.0.is_multiple_of(1_000_000_000);
        (!is_whole).then(|| format!("{flag} wants whole seconds here, such as {flag} 5s"))
    })
}

/// hey sends the same number of requests on each connection, and drops the remainder.
fn needs_even_count(tool: LoadTool, order: &LoadOrder) -> Option<String> {
    let total = order.load.requests_total?;
    let each = u64::from(order.load.connections);
    if tool != LoadTool::Hey || total.is_multiple_of(each) {
        return None;
    }
    let sent = total / each * each;
    Some(format!(
        "it sends -n / -c requests on each connection: {total} over {each} would be {sent}; \
         give a multiple of {each}"
    ))
}

/// Why the tool cannot send requests at this pace, or end the run so.
fn unsupported_pace(tool: LoadTool, order: &LoadOrder) -> Option<&'static str> {
    let rate = order.rate().or(order.rate_per_connection);
    let reasons = [
        (
            order.load.requests_total.is_some() && !tool.takes(&["{n}"]),
            "it ends by time only: give --for instead of -n or -R",
        ),
        (
            rate.is_some() && !tool.takes(&["{rate}", "{each}"]),
            "it has no open loop: leave out --rate and -q",
        ),
        (
            order.rate().is_some() && !tool.takes(&["{rate}"]),
            "it has no rate in total: give -q, which is of each connection, instead of --rate",
        ),
        (rate.is_none() && tool.takes(&["{floods}"]), "it has no closed loop: give --rate"),
        (
            order.rate_per_connection.is_some() && !tool.takes(&["{each}"]),
            "its rate is in total: give --rate instead of -q",
        ),
        (
            rate.is_some_and(|rate| rate.per_second().fract() != 0.0),
            "it takes whole numbers of requests per second only",
        ),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why)
}

/// Why the tool cannot send such a request.
fn unsupported_request(tool: LoadTool, order: &LoadOrder) -> Option<&'static str> {
    let is_get = order.method.is_none();
    let has_body = order.body.is_some();
    let is_post_with_body = order.method.as_deref() == Some("POST") && has_body;
    let reasons = [
        (
            !order.load.keep_alive && !tool.takes(&["{closes}", "{close}", "{keeps}"]),
            "it cannot open a connection for each request: leave out -k",
        ),
        (
            (!is_get || has_body) && !tool.takes(&["{body}"]),
            "it sends GET without a body (more would need Lua): leave out -m, -d and -D",
        ),
        (
            !is_get && !is_post_with_body && tool == LoadTool::H2load,
            "it sends GET, or POST with a body: leave out -m",
        ),
        // -p is a POST, whatever -m says.
        (
            has_body && !is_post_with_body && tool == LoadTool::Ab,
            "a body makes it POST: leave out -m",
        ),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why)
}

/// Refuses longtail itself, which makes the load anyway, and thresholds on figures that the tool
/// does not print.
///
/// # Errors
/// If it is longtail, or there is such a threshold.
pub fn check_thresholds(tool: LoadTool, thresholds: &[Threshold]) -> Result<(), GeneratorError> {
    if tool == LoadTool::Longtail {
        return Err(refused(tool, "it is longtail that makes the load anyway; leave it out"));
    }
    for Threshold { condition, is_expected, .. } in thresholds {
        let Some(what) = not_printed(tool, condition.figure) else { continue };
        let flag = if *is_expected { "--expect" } else { "--fail-if" };
        let name = tool.name();
        return Err(GeneratorError::Refused(format!(
            "{flag} '{condition}': {name} reports {what}"
        )));
    }
    Ok(())
}

/// What the tool reports instead of this figure, as the end of a sentence; `None` if it prints the
/// figure.
fn not_printed(tool: LoadTool, figure: ObjectiveFigure) -> Option<String> {
    let percentiles = tool.percentiles();
    match figure {
        ObjectiveFigure::ResponseTime(q) => {
            if percentiles.iter().any(|known| (known - q).abs() < 1e-9) {
                return None;
            }
            if percentiles.is_empty() {
                return Some("no percentile at all".to_owned());
            }
            let all: Vec<String> =
                percentiles.iter().map(|q| report::number::percentile(*q)).collect();
            Some(format!("only the percentiles {}", all.join(" ")))
        }
        ObjectiveFigure::ServiceTime(_) => {
            Some("one kind of time only: leave out the word 'service'".to_owned())
        }
        ObjectiveFigure::SentShare => Some("no share of requests sent".to_owned()),
        ObjectiveFigure::Mean
        | ObjectiveFigure::Max
        | ObjectiveFigure::ErrorShare
        | ObjectiveFigure::Errors
        | ObjectiveFigure::Completed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_on_path_is_missing() {
        assert_eq!(program_of(LoadTool::Wrk, OsStr::new("/nowhere:/proc/self")), None);
    }

    fn two_seconds() -> LoadOrder {
        let load = LoadSettings { lanes: 4, ..LoadSettings::closed(10) };
        LoadOrder { time: Some(Nanos::from_secs(2)), ..LoadOrder::get("http://127.0.0.1:1/", load) }
    }

    fn line(tool: LoadTool, change: impl FnOnce(&mut LoadOrder)) -> String {
        let mut order = LoadOrder { url: "http://127.0.0.1:1/x".to_owned(), ..two_seconds() };
        change(&mut order);
        let command = command(tool, OsStr::new("it"), &order, Path::new("/f"));
        command.argv.join(OsStr::new(" ")).into_string().unwrap()
    }

    type Change<'a> = &'a dyn Fn(&mut LoadOrder);

    const VEGETA: &str = "-cpus=2 attack -max-workers=10 -connections=10 -max-connections=10 \
                          -redirects=-1 -insecure -timeout=30s -rate=0 -workers=10 -duration=2s \
                          -output=/f/vegeta.bin -targets=/f/targets";

    #[test]
    fn a_load_in_the_words_of_each() {
        let plain = |_: &mut LoadOrder| {};
        let count = |order: &mut LoadOrder| {
            order.time = None;
            order.load.requests_total = Some(1000);
        };
        let other = |order: &mut LoadOrder| {
            order.load.keep_alive = false;
            order.host = Some("app.test".to_owned());
            order.headers = vec!["X-A: {url}".to_owned()];
        };
        let post = |order: &mut LoadOrder| {
            order.method = Some("POST".to_owned());
            order.body = Some("/f/body".into());
        };
        let rate = |order: &mut LoadOrder| order.load.pace = Pace::constant("5".parse().unwrap());
        // None of them follows redirects, which may lead where nobody asked the load to go.
        let cases: [(_, Change<'_>, _); 14] = [
            // Ten connections on four threads would be eight: two threads share them evenly.
            (LoadTool::Wrk, &plain, "-t2 -c10 --latency --timeout 30s -d 2s"),
            (
                LoadTool::Wrk,
                &other,
                "-t2 -c10 --latency --timeout 30s -d 2s -H Connection: close -H Host: app.test -H \
                 X-A: {url}",
            ),
            (LoadTool::Wrk2, &plain, "-t2 -c10 --latency --timeout 30s -d 2s -R 10000000"),
            (LoadTool::Hey, &count, "-cpus 4 -c 10 -t 30 -disable-redirects -n 1000"),
            (
                LoadTool::Hey,
                &other,
                "-cpus 4 -c 10 -t 30 -disable-redirects -z 2s -disable-keepalive -host app.test \
                 -H X-A: {url}",
            ),
            (
                LoadTool::Hey,
                &post,
                "-cpus 4 -c 10 -t 30 -disable-redirects -z 2s -m POST -D /f/body",
            ),
            (LoadTool::Ab, &plain, "-q -l -c 10 -s 30 -k -t 2 -n 4000000"),
            (LoadTool::Ab, &post, "-q -l -c 10 -s 30 -k -t 2 -n 4000000 -p /f/body"),
            (LoadTool::Ab, &count, "-q -l -c 10 -s 30 -k -n 1000"),
            (LoadTool::H2load, &post, "--h1 -t2 -c10 -N 30s -D 2s -d /f/body"),
            (LoadTool::Vegeta, &plain, VEGETA),
            (LoadTool::Oha, &rate, "--no-tui -c 10 -t 30s --redirect 0 --insecure -z 2s -q 5"),
            (LoadTool::Bombardier, &rate, "-l -p r -k -c 10 -t 30s -d 2s -r 5"),
            (
                LoadTool::Longtail,
                &plain,
                "load --format study --no-calibrate --generator-threads 2 -c 10 --for 2s",
            ),
        ];
        for (tool, change, words) in cases {
            let url = if tool == LoadTool::Vegeta { "" } else { " http://127.0.0.1:1/x" };
            assert_eq!(line(tool, change), format!("it {words}{url}"));
        }
    }
}
