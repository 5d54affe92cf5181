//! Load tools: what we know of each, to audit its output or to start it as a generator. `parse`
//! reads its output.

use serde::Serialize;
use strum::{Display, IntoStaticStr};

/// A program that makes load, or a script around one that prints rows of its own.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Display,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LoadTool {
    /// Our own `longtail load`, beside the others in a comparison of generators.
    Longtail,
    /// wg/wrk.
    #[default]
    Wrk,
    /// giltene/wrk2: wrk with a rate.
    Wrk2,
    /// rakyll/hey.
    Hey,
    /// hatoo/oha.
    Oha,
    /// `ApacheBench`.
    Ab,
    /// codesenberg/bombardier.
    Bombardier,
    /// nghttp2's h2load.
    H2load,
    /// tsenart/vegeta.
    Vegeta,
    /// A row of Puma's `long_tail_hey`: hey's figures with the workers' shares.
    #[serde(rename = "long_tail")]
    LongTailHey,
    /// A row of Puma's `response_time_wrk`: wrk's figures.
    ResponseTimeWrk,
    /// `attack.cr`: one line a request.
    #[strum(serialize = "attack.cr")]
    Attack,
    /// `ic-workload-generator`.
    #[strum(serialize = "ic-workload-generator")]
    Workload,
}

impl LoadTool {
    /// Those that longtail can start, in the order of a table.
    pub const GENERATORS: [LoadTool; 9] = [
        LoadTool::Longtail,
        LoadTool::Wrk,
        LoadTool::Hey,
        LoadTool::Oha,
        LoadTool::Ab,
        LoadTool::H2load,
        LoadTool::Bombardier,
        LoadTool::Wrk2,
        LoadTool::Vegeta,
    ];

    /// Its program, and what people call it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The flag that makes it print its version; `None` if it has none, or need not be asked.
    pub fn version_flag(self) -> Option<&'static str> {
        match self {
            LoadTool::Wrk | LoadTool::Wrk2 => Some("-v"),
            LoadTool::Ab => Some("-V"),
            LoadTool::Vegeta => Some("-version"),
            LoadTool::Oha | LoadTool::H2load | LoadTool::Bombardier => Some("--version"),
            LoadTool::Longtail
            | LoadTool::Hey
            | LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => None,
        }
    }

    /// The percentiles that it prints, rising, without the maximum.
    pub fn percentiles(self) -> &'static [f64] {
        match self {
            LoadTool::Wrk => &[0.50, 0.75, 0.90, 0.99],
            LoadTool::Hey => &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99],
            LoadTool::Oha => &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999],
            LoadTool::Ab => &[0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99],
            LoadTool::Bombardier => &[0.50, 0.75, 0.90, 0.95, 0.99],
            LoadTool::Wrk2 => &[0.50, 0.75, 0.90, 0.99, 0.999, 0.9999, 0.99999],
            LoadTool::Vegeta => &[0.50, 0.90, 0.95, 0.99],
            LoadTool::Longtail
            | LoadTool::H2load
            | LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => &[],
        }
    }

    /// The environment variable that limits its threads, if it has no flag for that.
    pub fn thread_variable(self) -> Option<&'static str> {
        match self {
            LoadTool::Oha => Some("TOKIO_WORKER_THREADS"),
            LoadTool::Bombardier => Some("GOMAXPROCS"),
            LoadTool::Longtail
            | LoadTool::Wrk
            | LoadTool::Wrk2
            | LoadTool::Hey
            | LoadTool::Ab
            | LoadTool::H2load
            | LoadTool::Vegeta
            | LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => None,
        }
    }

    /// The environment variable by which Puma's scripts find its program.
    pub fn program_setting(self) -> Option<&'static str> {
        match self {
            LoadTool::Hey => Some("HEY"),
            LoadTool::Wrk => Some("WRK"),
            LoadTool::Longtail
            | LoadTool::Wrk2
            | LoadTool::Oha
            | LoadTool::Ab
            | LoadTool::Bombardier
            | LoadTool::H2load
            | LoadTool::Vegeta
            | LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => None,
        }
    }

    /// The environment variable by which Puma's scripts limit its CPUs.
    pub fn cpus_setting(self) -> Option<&'static str> {
        if self == LoadTool::Hey { Some("HEY_CPUS") } else { None }
    }

    /// Its arguments for a load, with placeholders in braces. A part in brackets is left out if the
    /// load does not ask for it; a setting without a placeholder is one that the tool does not
    /// have. `None` if longtail does not start it.
    pub fn command_words(self) -> Option<&'static str> {
        match self {
            LoadTool::Longtail => Some(
                "load --format study --no-calibrate --generator-threads {t} -c {c} [--for \
                 {time}s] {url}",
            ),
            LoadTool::Wrk => Some(
                "-t{t} -c{c} --latency --timeout {s}s [-d {time}s] [-H {close}] [-H {header}] \
                 {url}",
            ),
            LoadTool::Hey => Some(
                "-cpus {cpus} -c {c} -t {s} -disable-redirects [-z {time}s] [-n {n}] [-q {each}] [-m {m}] \
                 [-disable-keepalive{closes}] [-host {host}] [-H {header}] [-D {body}] {url}",
            ),
            LoadTool::Oha => Some(
                "--no-tui -c {c} -t {s}s --redirect 0 --insecure [-z {time}s] [-n {n}] [-q {rate}] [-m {m}] \
                 [--disable-keepalive{closes}] [-H {header}] [-D {body}] {url}",
            ),
            // Without -l, ab counts a response as failed if its length differs from the first
            // one's. -t alone ends it after 50 000 requests.
            LoadTool::Ab => Some(
                "-q -l -c {c} -s {s} [-k{keeps}] [-t {time} -n {enough}] [-n {n}] [-m {bodiless}] \
                 [-H {header}] [-p {body}] {url}",
            ),
            LoadTool::H2load => Some(
                "--h1 -t{t} -c{c} -N {s}s [-D {time}s] [-n {n}] [-H {header}] [-d {body}] {url}",
            ),
            LoadTool::Bombardier => Some(
                "-l -p r -k -c {c} -t {s}s [-d {time}s] [-n {n}] [-r {rate}] [-m {m}] \
                 [-a{closes}] [-H {header}] [-f {body}] {url}",
            ),
            LoadTool::Wrk2 => Some(
                "-t{t} -c{c} --latency --timeout {s}s [-d {time}s] [-R {rate}] [-R \
                 10000000{floods}] [-H {close}] [-H {header}] {url}",
            ),
            // Method and URL are in its file of targets.
            LoadTool::Vegeta => Some(
                "-cpus={t} attack -max-workers={c} -connections={c} -max-connections={c} -redirects=-1 -insecure \
                 -timeout={s}s [-keepalive=false{closes}] [-rate={rate}/s] [-rate=0 -workers={c}{floods}] [-duration={time}s] \
                 -output={folder}/vegeta.bin -targets={folder}/targets [-header {header}] [-body {body}]",
            ),
            LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => None,
        }
    }

    /// Whether its command line has a place for one of these.
    pub fn takes(self, placeholders: &[&str]) -> bool {
        let words = self.command_words().unwrap_or_default();
        placeholders.iter().any(|one| words.contains(one))
    }

    /// Whether its times went through wrk's `stats_correct`.
    pub fn is_corrected_by_wrk(self) -> bool {
        matches!(self, LoadTool::Wrk | LoadTool::ResponseTimeWrk)
    }

    /// Whether hey made the load.
    pub(crate) fn is_made_by_hey(self) -> bool {
        matches!(self, LoadTool::Hey | LoadTool::LongTailHey)
    }

    /// Whether a connection sends its next request only when the last was answered, and times run
    /// from the send: then rate times mean is at most the connections.
    pub(crate) fn is_closed_loop(self) -> bool {
        !matches!(
            self,
            LoadTool::Longtail
                | LoadTool::Wrk2
                | LoadTool::Vegeta
                | LoadTool::Attack
                | LoadTool::Workload
        )
    }

    /// The relative error of its percentiles, from the way it stores times: wrk2's histogram has
    /// three digits, vegeta's digest estimates.
    pub(crate) fn percentile_error(self) -> f64 {
        match self {
            LoadTool::Wrk2 => 0.001,
            LoadTool::Vegeta => 0.01,
            LoadTool::Longtail
            | LoadTool::Wrk
            | LoadTool::Hey
            | LoadTool::Oha
            | LoadTool::Ab
            | LoadTool::Bombardier
            | LoadTool::H2load
            | LoadTool::LongTailHey
            | LoadTool::ResponseTimeWrk
            | LoadTool::Attack
            | LoadTool::Workload => 0.0,
        }
    }

    /// Whether its rate counts requests without a response.
    pub(crate) fn rate_includes_errors(self) -> bool {
        matches!(
            self,
            LoadTool::Hey
                | LoadTool::Oha
                | LoadTool::LongTailHey
                | LoadTool::Vegeta
                | LoadTool::Bombardier
        )
    }
}
