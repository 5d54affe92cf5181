//! The load generators: their names, their command lines for the same load on one thread, and what
//! each reports about its run. Longtail's figures are read from its study, the others' are parsed
//! by `audit`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use audit::LoadTool;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use model::{Histogram, LoadStudy, Nanos, Study};
use rustix::fs::{Access, access};
use serde::{Serialize, Serializer};

/// A program that makes load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    Load(LoadTool),
    /// `ping-pong`: what the same bytes cost without HTTP.
    Floor,
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

/// Reads the name of one of them.
pub(crate) fn tool() -> impl TypedValueParser<Value = Tool> {
    PossibleValuesParser::new(Tool::ALL.map(Tool::name)).map(|typed| {
        let tool = Tool::ALL.into_iter().find(|tool| tool.name() == typed);
        tool.expect("clap takes no other name")
    })
}

/// The load to send.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Job {
    pub(crate) connections: u32,
    pub(crate) end: End,
    pub(crate) keep_alive: bool,
    pub(crate) tls: bool,
    /// Open loop: requests per second in total.
    pub(crate) rate: Option<u32>,
}

impl Job {
    /// A closed loop with keep-alive.
    pub(crate) const fn closed(connections: u32, end: End) -> Job {
        Job { connections, end, keep_alive: true, tls: false, rate: None }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// After this time, ns.
    After(Nanos),
    /// After this many requests.
    Requests(u64),
}

impl Tool {
    pub(crate) const LONGTAIL: Tool = Tool::Load(LoadTool::Longtail);
    pub(crate) const WRK: Tool = Tool::Load(LoadTool::Wrk);
    pub(crate) const OHA: Tool = Tool::Load(LoadTool::Oha);
    pub(crate) const HEY: Tool = Tool::Load(LoadTool::Hey);
    pub(crate) const H2LOAD: Tool = Tool::Load(LoadTool::H2load);
    pub(crate) const AB: Tool = Tool::Load(LoadTool::Ab);
    pub(crate) const WRK2: Tool = Tool::Load(LoadTool::Wrk2);

    /// All, in the order of the tables.
    pub(crate) const ALL: [Tool; 8] = [
        Tool::LONGTAIL,
        Tool::Floor,
        Tool::WRK,
        Tool::OHA,
        Tool::HEY,
        Tool::H2LOAD,
        Tool::AB,
        Tool::WRK2,
    ];

    /// Its name in tables, which is also the program's name except for the floor.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Floor => "floor",
            Tool::Load(tool) => tool.name(),
        }
    }

    /// The tool whose parser in `audit` reads its output; `None` for our own programs.
    pub(crate) fn claims_as(self) -> Option<LoadTool> {
        match self {
            Tool::Floor | Tool::LONGTAIL => None,
            Tool::Load(tool) => Some(tool),
        }
    }

    /// Whether it runs in every round. Those that do are compared with; the others are only shown.
    pub(crate) fn is_in_every_round(self) -> bool {
        matches!(self, Tool::LONGTAIL | Tool::Floor | Tool::WRK)
    }

    /// Why it cannot do this job; `None` if it can.
    pub(crate) fn refusal(self, job: &Job) -> Option<&'static str> {
        let is_counted = matches!(job.end, End::Requests(_));
        match self {
            Tool::Floor if job.tls => Some("it speaks no TLS"),
            Tool::H2LOAD if !job.keep_alive => Some("it cannot open a connection for each request"),
            Tool::WRK | Tool::H2LOAD | Tool::AB if job.rate.is_some() => {
                Some("it has no open loop")
            }
            Tool::WRK2 if job.rate.is_none() => Some("it has no closed loop"),
            Tool::Floor | Tool::WRK | Tool::WRK2 if is_counted => Some("it ends by time only"),
            _ => None,
        }
    }

    /// How long it runs when asked for `length`: some take only whole seconds.
    pub(crate) fn length(self, length: Nanos) -> Nanos {
        match self {
            Tool::WRK | Tool::WRK2 | Tool::H2LOAD | Tool::AB => {
                Nanos::from_secs(length.0.div_ceil(1_000_000_000).max(1))
            }
            Tool::Floor | Tool::Load(_) => length,
        }
    }

    /// The arguments for a job that it does not refuse.
    pub(crate) fn arguments(self, job: &Job, url: &str) -> Vec<OsString> {
        let words = ToolWords::of(self, job);
        let line = match self {
            Tool::LONGTAIL => words.longtail(),
            Tool::Floor => return words.floor(url),
            Tool::WRK | Tool::WRK2 => return words.wrk(url),
            Tool::OHA => words.oha(),
            Tool::HEY => words.hey(),
            Tool::H2LOAD => words.h2load(),
            Tool::AB => words.ab(),
            Tool::Load(
                LoadTool::Bombardier
                | LoadTool::Vegeta
                | LoadTool::LongTailHey
                | LoadTool::ResponseTimeWrk
                | LoadTool::Attack
                | LoadTool::Workload,
            ) => unreachable!("{} is in no table", self.name()),
        };
        let mut line = split(&line);
        line.push(url.into());
        line
    }

    /// Its version, if it prints one.
    pub(crate) fn version(self, program: &Path) -> Option<String> {
        version_of(program, self.claims_as()?.version_flag()?)
    }
}

/// The version that a program prints.
pub(crate) fn version_of(program: &Path, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).output().ok()?;
    version_in(&String::from_utf8_lossy(&[output.stdout, output.stderr].concat()))
}

/// The first thing that looks like a version: `wrk debian/4.1.0-3+b2 [epoll]` is 4.1.0.
fn version_in(text: &str) -> Option<String> {
    let words =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.into_iter().find(|word| word.contains('.')).map(str::to_owned)
}

/// A program in `path`, the value of PATH.
pub(crate) fn find(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let can_run = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    let found = std::env::split_paths(path).map(|folder| folder.join(name)).find(can_run)?;
    // It is started in another folder, so the path must be absolute.
    std::path::absolute(found).ok()
}

fn split(line: &str) -> Vec<OsString> {
    line.split_ascii_whitespace().map(OsString::from).collect()
}

/// Writes a job as each tool's arguments.
struct ToolWords<'a> {
    job: &'a Job,
    connections: u32,
    /// `None` if a number of requests ends the run.
    length: Option<Nanos>,
}

impl ToolWords<'_> {
    fn of(tool: Tool, job: &Job) -> ToolWords<'_> {
        let length = match job.end {
            End::After(length) => Some(tool.length(length)),
            End::Requests(_) => None,
        };
        ToolWords { job, connections: job.connections, length }
    }

    fn seconds(&self) -> Option<u64> {
        self.length.map(|length| length.0 / 1_000_000_000)
    }

    /// The number of requests, or the time with the flag for it.
    fn end(&self, time_flag: &str) -> String {
        match (self.job.end, self.length) {
            (End::Requests(n), _) => format!("-n {n}"),
            (End::After(_), Some(length)) => format!("{time_flag} {}ms", length.0 / 1_000_000),
            (End::After(_), None) => String::new(),
        }
    }

    fn rate(&self, flag: &str) -> String {
        self.job.rate.map(|rate| format!("{flag} {rate}")).unwrap_or_default()
    }

    fn if_closing(&self, flag: &'static str) -> &'static str {
        if self.job.keep_alive { "" } else { flag }
    }

    fn if_tls(&self, flag: &'static str) -> &'static str {
        if self.job.tls { flag } else { "" }
    }

    fn longtail(&self) -> String {
        format!(
            "load --no-calibrate --threads 1 -c {} {} {} {} {}",
            self.connections,
            self.end("--for"),
            self.job.rate.map(|rate| format!("--rate {rate}/s")).unwrap_or_default(),
            self.if_closing("-k"),
            self.if_tls("--insecure"),
        )
    }

    fn floor(&self, url: &str) -> Vec<OsString> {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let keep = if self.job.keep_alive { "keep" } else { "close" };
        let pace = self.job.rate.map_or_else(|| keep.to_owned(), |rate| rate.to_string());
        let length = self.length.unwrap_or_default().0;
        split(&format!("{address} {} {length} {pace}", self.connections))
    }

    /// For wrk and wrk2, which take the same flags.
    fn wrk(&self, url: &str) -> Vec<OsString> {
        let seconds = self.seconds().unwrap_or_default();
        let rate = self.rate("-R");
        let mut line = split(&format!("-t1 -c{} -d{seconds}s --latency {rate}", self.connections));
        if !self.job.keep_alive {
            line.extend(["-H", "Connection: close"].map(OsString::from));
        }
        line.push(url.into());
        line
    }

    fn oha(&self) -> String {
        let corrected = if self.job.rate.is_some() { "--latency-correction" } else { "" };
        format!(
            "--no-tui -c {} {} {} {corrected} {} {}",
            self.connections,
            self.end("-z"),
            self.rate("-q"),
            self.if_closing("--disable-keepalive"),
            self.if_tls("--insecure"),
        )
    }

    fn hey(&self) -> String {
        let connections = f64::from(self.connections);
        let rate = self.job.rate.map(|rate| format!("-q {}", f64::from(rate) / connections));
        format!(
            "-cpus 1 -c {connections} {} {} {} {}",
            self.end("-z"),
            rate.unwrap_or_default(),
            // Else it sends address and port as the server name, which is invalid (RFC 6066,
            // section 3).
            self.if_tls("-host localhost"),
            self.if_closing("-disable-keepalive"),
        )
    }

    fn h2load(&self) -> String {
        let end = match self.seconds() {
            Some(seconds) => format!("-D {seconds}"),
            None => self.end(""),
        };
        format!("--h1 -t1 -c{} {end}", self.connections)
    }

    fn ab(&self) -> String {
        let end = match self.seconds() {
            Some(seconds) => {
                // -t alone ends it after 50 000 requests.
                let many = (1_000_000 * seconds).max(u64::from(self.connections));
                format!("-t {seconds} -n {many}")
            }
            None => self.end(""),
        };
        let keep = if self.job.keep_alive { "-k" } else { "" };
        format!("-q -l -c {} {keep} {end}", self.connections)
    }
}

/// What a tool reports about its run; `None` if it reports nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ToolReport {
    /// Requests that ended, by its count.
    pub(crate) requests: Option<u64>,
    /// Requests that failed.
    pub(crate) failed: Option<u64>,
    /// Response times.
    pub(crate) times: Times,
    /// How late requests were sent.
    pub(crate) send_lag: Times,
    /// Lines dropped from its log.
    pub(crate) log_dropped: Option<u64>,
    /// Bytes of all requests.
    pub(crate) sent_bytes: Option<u64>,
}

/// Percentiles, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Times {
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) p999: Option<f64>,
}

/// Parses what it printed; `None` if that fails. `studies`: the folder of longtail's studies.
pub(crate) fn parsed(tool: Tool, printed: &str, studies: &Path) -> Option<ToolReport> {
    match (tool, tool.claims_as()) {
        (Tool::Floor, _) => Some(ToolReport {
            requests: Some(printed.trim().parse().ok()?),
            failed: Some(0),
            ..ToolReport::default()
        }),
        (_, Some(audited)) => {
            let claim = audit::parse::claims(printed)
                .ok()?
                .into_iter()
                .find(|claim| claim.tool == audited)?;
            let at = |q: f64| claim.percentile(q).map(|time| time.value * 1e9);
            Some(ToolReport {
                requests: claim.ended(),
                failed: claim.failed(),
                times: Times { p50: at(0.5), p99: at(0.99), p999: at(0.999) },
                ..ToolReport::default()
            })
        }
        (_, None) => study(studies).map(|study| ours(&study)),
    }
}

/// The only study in longtail's folder.
fn study(studies: &Path) -> Option<LoadStudy> {
    let file = std::fs::read_dir(studies).ok()?.flatten().map(|entry| entry.path()).next()?;
    match report::json::read(&std::fs::read_to_string(file).ok()?) {
        Ok(Study::Load(study)) => Some(*study),
        _ => None,
    }
}

fn ours(study: &LoadStudy) -> ToolReport {
    let tally = &study.run.tally;
    ToolReport {
        requests: Some(tally.all_requests()),
        failed: Some(tally.counts.failed() + tally.unmeasured.failed()),
        times: Times::of(&tally.response_time),
        send_lag: Times::of(&tally.send_lag),
        log_dropped: Some(study.log_dropped),
        sent_bytes: Some(tally.sent_bytes),
    }
}

impl Times {
    /// The percentiles of a histogram.
    pub(crate) fn of(histogram: &Histogram) -> Times {
        let at = |q: f64| histogram.quantile(q).map(|Nanos(ns)| ns as f64);
        Times { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Job = Job::closed(37, End::After(Nanos::from_millis(1500)));

    /// For each tool and kind of job: its arguments, or why it cannot do it.
    #[test]
    fn each_tool_has_a_command_line_for_each_job() {
        let mut lines = Vec::new();
        for (kind, job) in [
            ("closed", JOB),
            ("close", Job { keep_alive: false, ..JOB }),
            ("tls", Job { tls: true, ..JOB }),
            ("open", Job { connections: 64, rate: Some(10_000), ..JOB }),
            ("counted", Job { end: End::Requests(1000), ..JOB }),
        ] {
            for tool in Tool::ALL {
                let arguments =
                    tool.arguments(&job, "http://127.0.0.1:1/").join(std::ffi::OsStr::new(" "));
                let arguments =
                    tool.refusal(&job).map_or(arguments, |why| format!("cannot: {why}").into());
                lines.push(format!("{kind} {}: {}\n", tool.name(), arguments.display()));
            }
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/command_lines.txt");
        testkit::golden::expect(Path::new(file), &lines.concat());
    }

    #[test]
    fn versions_are_found_in_the_tools_output() {
        assert_eq!(version_in("wrk debian/4.1.0-3+b2 [epoll] Copyright").as_deref(), Some("4.1.0"));
        assert_eq!(version_in("nginx version: nginx/1.22.1").as_deref(), Some("1.22.1"));
        assert_eq!(version_in("what?"), None);
    }

    #[test]
    fn the_count_of_each_tool_is_read() {
        let read = |tool, text| parsed(tool, text, Path::new("/nonexistent"));
        let wrk = read(Tool::WRK, testkit::output::WRK).unwrap();
        assert_eq!((wrk.requests, wrk.failed), (Some(10_000), Some(0)));
        assert_eq!(wrk.times, Times { p50: Some(1e6), p99: Some(1.5e6), p999: None });
        assert_eq!(read(Tool::Floor, "1234\n").unwrap().requests, Some(1234));
        for tool in Tool::ALL {
            assert_eq!(
                read(tool, "unable to connect"),
                None,
                "{tool:?}: unknown output is not guessed at"
            );
        }
    }

    #[test]
    fn longtails_figures_are_those_of_its_tally() {
        let study = testkit::load::closed();
        let report = ours(&study);
        let measured = &study.run.tally.counts;
        let warm_up = &study.run.tally.unmeasured;
        assert!(warm_up.total() > 0);
        assert_eq!(report.requests, Some(measured.total() + warm_up.total()));
        assert_eq!(report.failed, Some(measured.failed() + warm_up.failed()));
        assert_eq!(
            report.times.p50,
            study.run.tally.response_time.quantile(0.5).map(|time| time.0 as f64)
        );
        assert!(report.times.p50 < report.times.p99 && report.sent_bytes.is_some());
    }
}
