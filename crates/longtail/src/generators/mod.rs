//! Starts other load tools: makes the command line of a load out of what `audit` knows of the tool.
//! What a tool has no flag for is refused in one line before any load is sent.

mod process;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use audit::LoadTool;
use audit::claim::ClaimedServer;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use launch::find_program;
use model::objective::ObjectiveFigure;
use model::{LoadSettings, Nanos, Pace, Profile, Rate, Threshold};

pub(crate) use self::process::{GeneratorDriver, GeneratorRunner, ProcessReport, claimed_run};
use crate::exit::{Mistake, wrong};
use crate::this_program;

/// Reads the name of a tool that can make the load.
pub(crate) fn load_tool() -> impl TypedValueParser<Value = LoadTool> {
    let names = LoadTool::GENERATORS
        .map(|tool| PossibleValue::new(tool.name()).hide(tool == LoadTool::Longtail));
    PossibleValuesParser::new(names).map(|typed| {
        let tool = LoadTool::GENERATORS.into_iter().find(|tool| tool.name() == typed);
        tool.expect("clap takes no other name")
    })
}

/// The program of a tool in `path`, the value of PATH; `this_program` is our own.
pub(crate) fn program_of(tool: LoadTool, path: &OsStr, this_program: &OsStr) -> Option<OsString> {
    if tool == LoadTool::Longtail {
        return Some(this_program.to_owned());
    }
    find_program(OsStr::new(tool.name()), Path::new(""), path).map(Into::into)
}

/// A generator that was found on PATH.
#[derive(Clone, Debug)]
pub(crate) struct InstalledGenerator {
    pub(crate) tool: LoadTool,
    pub(crate) program: OsString,
}

impl InstalledGenerator {
    /// Looks for it.
    ///
    /// # Errors
    /// Where it is not on PATH.
    pub(crate) fn on_path(tool: LoadTool) -> Result<InstalledGenerator, Mistake> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let name = tool.name();
        let missing = || {
            wrong(format!(
                "--generator {name}: {name} is not on PATH; install it, or leave out --generator"
            ))
        };
        let program = program_of(tool, &path, &this_program()).ok_or_else(missing)?;
        Ok(InstalledGenerator { tool, program })
    }
}

/// One run's load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadOrder {
    /// Where to: by address, never by name, so that it goes where we have looked.
    pub(crate) url: String,
    /// What the Host header says where that is another place than the URL's.
    pub(crate) host: Option<String>,
    /// How requests are sent: a closed loop, or one flat rate. Its threads are the most that the
    /// generator may start.
    pub(crate) load: LoadSettings,
    /// Open loop: the rate of each connection, where that was asked for and not the rate in total.
    pub(crate) rate_per_connection: Option<Rate>,
    /// When it ends, where no count of requests ends it.
    pub(crate) time: Option<Nanos>,
    /// The method, where it is another than GET.
    pub(crate) method: Option<String>,
    /// The user's own headers, `Name: value`, without the Host header.
    pub(crate) headers: Vec<String>,
    /// A file with the body.
    pub(crate) body: Option<PathBuf>,
    /// What is known of the server that it goes to, for the audit: its size, and how long it sleeps
    /// over each request.
    pub(crate) server: Option<ClaimedServer>,
    pub(crate) delay: Option<Nanos>,
}

impl LoadOrder {
    /// GET requests without a body.
    pub(crate) fn get(url: &str, load: LoadSettings) -> LoadOrder {
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

    /// Open loop: requests per second in total, where no rate of each connection was asked for.
    fn rate(&self) -> Option<Rate> {
        match &self.load.pace {
            Pace::Open { profile: Profile::Flat { rate }, .. } => {
                Some(*rate).filter(|_| self.rate_per_connection.is_none())
            }
            Pace::Open { .. } | Pace::Closed => None,
        }
    }

    /// Threads that share the connections evenly, so that all of them are opened: the largest
    /// divisor of the connections that is at most what was asked for. (wrk gives each thread
    /// connections / threads and forgets the rest.)
    fn even_threads(&self) -> u32 {
        (1..=self.load.lanes.min(self.load.connections))
            .rev()
            .find(|n| self.load.connections.is_multiple_of(*n))
            .unwrap_or(1)
    }

    /// What stands for `{name}` in the words of a generator; `None` where this load has no such
    /// thing. Some stand for nothing and only say whether their words belong there.
    fn argument(&self, name: &str, folder: &Path) -> Option<String> {
        let seconds = self.time.map(whole_seconds);
        let marks = |is_so: bool| is_so.then(String::new);
        match name {
            "c" => Some(self.load.connections.to_string()),
            "t" => Some(self.even_threads().to_string()),
            "s" => Some(whole_seconds(self.load.timeout).to_string()),
            "time" => seconds.map(|time| time.to_string()),
            "n" => self.load.requests_total.map(|number| number.to_string()),
            // More than one thread of ab makes in that time, and costs it 32 bytes each: not more
            // than 1.6 GB.
            "enough" => seconds.map(|time| {
                (2_000_000 * time).clamp(self.load.connections.into(), 50_000_000).to_string()
            }),
            "rate" => self.rate().map(|rate| rate.per_second().to_string()),
            "each" => self.rate_per_connection.map(|rate| rate.per_second().to_string()),
            // One without a closed loop is given a rate that nothing reaches, or none: all its
            // connections are busy then too.
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

    /// The command line of `words`, but for the program.
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

/// What to run for one load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratorCommand {
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
    /// Variables set beside ours.
    pub(crate) env: Vec<(&'static str, OsString)>,
}

/// The command with which a tool makes this load. `folder` is for its files.
pub(crate) fn command(
    tool: LoadTool,
    program: &OsStr,
    order: &LoadOrder,
    folder: &Path,
) -> GeneratorCommand {
    let mut argv = vec![program.to_owned()];
    let words = order.words_of(tool.command_words().unwrap_or_default(), folder);
    argv.extend(words.into_iter().map(OsString::from));
    let mut env = Vec::new();
    if tool == LoadTool::Longtail {
        // The user did not make these studies, so they are kept apart from the user's.
        env.push(("XDG_DATA_HOME", folder.into()));
    }
    if let Some(variable) = tool.thread_variable() {
        env.push((variable, order.even_threads().to_string().into()));
    }
    GeneratorCommand { argv, env }
}

/// Refuses what the tool cannot run, naming the flag.
///
/// # Errors
/// Where there is such a thing.
pub(crate) fn check_order(tool: LoadTool, order: &LoadOrder) -> Result<(), Mistake> {
    let refused = |why: &str| Err(wrong(format!("--generator {}: {why}", tool.name())));
    let times = [
        (order.time, "--for"),
        (Some(order.load.warm_up), "--warm-up"),
        (Some(order.load.timeout), "--timeout"),
    ];
    let odd = times
        .into_iter()
        .find(|(time, _)| time.is_some_and(|time| !time.0.is_multiple_of(1_000_000_000)));
    if let Some((_, flag)) = odd {
        return refused(&format!("{flag} wants whole seconds here, such as {flag} 5s"));
    }
    let each = u64::from(order.load.connections);
    if let Some(total) = order
        .load
        .requests_total
        .filter(|total| tool == LoadTool::Hey && !total.is_multiple_of(each))
    {
        let sent = total / each * each;
        return refused(&format!(
            "it sends -n / -c requests on each connection: {total} over {each} would be {sent}; give a multiple of {each}"
        ));
    }
    let rate = order.rate().or(order.rate_per_connection);
    let is_get = order.method.is_none();
    let has_body = order.body.is_some();
    let is_post_with_body = order.method.as_deref() == Some("POST") && has_body;
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
    reasons.into_iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, why)| refused(why))
}

/// Refuses to be asked at all where we make the load ourselves, and to be judged by what it
/// does not print.
///
/// # Errors
/// Where it is ours, or there is such a threshold.
pub(crate) fn check_thresholds(tool: LoadTool, thresholds: &[Threshold]) -> Result<(), Mistake> {
    if tool == LoadTool::Longtail {
        return Err(wrong(
            "--generator longtail: it is longtail that makes the load anyway; leave it out",
        ));
    }
    let percentiles = tool.percentiles();
    let prints = |q: f64| percentiles.iter().any(|known| (known - q).abs() < 1e-9);
    for Threshold { condition, is_expected } in thresholds {
        let what = match condition.figure {
            ObjectiveFigure::ResponseTime(q) if prints(q) => continue,
            ObjectiveFigure::ResponseTime(_) if percentiles.is_empty() => {
                "no percentile at all".to_owned()
            }
            ObjectiveFigure::ResponseTime(_) => {
                let all: Vec<String> =
                    percentiles.iter().map(|q| report::number::percentile(*q)).collect();
                format!("of percentiles {} only", all.join(" "))
            }
            ObjectiveFigure::ServiceTime(_) => {
                "one kind of time only, judged without the word service".to_owned()
            }
            ObjectiveFigure::SentShare => "not what was sent of what was due".to_owned(),
            _ => continue,
        };
        let flag = if *is_expected { "--expect" } else { "--fail-if" };
        return Err(wrong(format!("{flag} '{condition}': {} reports {what}", tool.name())));
    }
    Ok(())
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_on_path_is_missing() {
        let found =
            |tool| program_of(tool, OsStr::new("/nowhere:/proc/self"), OsStr::new("/bin/us"));
        assert_eq!(
            (found(LoadTool::Wrk), found(LoadTool::Longtail)),
            (None, Some("/bin/us".into()))
        );
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
        let vegeta = "-cpus=2 attack -max-workers=10 -connections=10 -max-connections=10 -redirects=-1 -insecure -timeout=30s";
        let vegeta = format!(
            "{vegeta} -rate=0 -workers=10 -duration=2s -output=/f/vegeta.bin -targets=/f/targets"
        );
        let rate = |order: &mut LoadOrder| order.load.pace = Pace::constant("5".parse().unwrap());
        // None of them follows a redirect to where nobody asked it to go.
        let cases: [(_, Change<'_>, _); 14] = [
            // Ten connections on four threads would be eight: two threads share them evenly.
            (LoadTool::Wrk, &plain, "-t2 -c10 --latency --timeout 30s -d 2s"),
            (
                LoadTool::Wrk,
                &other,
                "-t2 -c10 --latency --timeout 30s -d 2s -H Connection: close -H Host: app.test -H X-A: {url}",
            ),
            (LoadTool::Wrk2, &plain, "-t2 -c10 --latency --timeout 30s -d 2s -R 10000000"),
            (LoadTool::Hey, &count, "-cpus 2 -c 10 -t 30 -disable-redirects -n 1000"),
            (
                LoadTool::Hey,
                &other,
                "-cpus 2 -c 10 -t 30 -disable-redirects -z 2s -disable-keepalive -host app.test -H X-A: {url}",
            ),
            (
                LoadTool::Hey,
                &post,
                "-cpus 2 -c 10 -t 30 -disable-redirects -z 2s -m POST -D /f/body",
            ),
            (LoadTool::Ab, &plain, "-q -l -c 10 -s 30 -k -t 2 -n 4000000"),
            (LoadTool::Ab, &post, "-q -l -c 10 -s 30 -k -t 2 -n 4000000 -p /f/body"),
            (LoadTool::Ab, &count, "-q -l -c 10 -s 30 -k -n 1000"),
            (LoadTool::H2load, &post, "--h1 -t2 -c10 -N 30s -D 2s -d /f/body"),
            (LoadTool::Vegeta, &plain, &vegeta),
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
