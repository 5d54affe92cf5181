//! Flags of `longtail load`, and of `attack`, which is a load by another name; and the load
//! that they ask for.

use std::path::PathBuf;

use audit::LoadTool;
use clap::Args;
use clap::builder::ArgPredicate;
use engine::{IpVersion, Resolver, StaticAddresses};
use model::{
    Arrivals, LatePolicy, LoadSettings, Nanos, Objective, Pace, Profile, QueueHeader, Rate,
    RecordedTimes, SlowClients, Timing,
};
use requests::RequestsFormat;
use sweep::ResponseCheck;

use super::event::EventArgs;
use super::value_parsers::{
    ARRIVALS, CONNECTIONS, TIMESTAMPS, WantedTimestamps, above_zero, from_1_to, load_tool, words,
};
use super::{ADVANCED, OutletArgs, OutputArgs, ThresholdArgs};
use crate::exit::{Mistake, refuse_if, wrong};
use crate::load::LogTimes;

const EXAMPLES: &str = "\
Examples:
  longtail load -c 64 --for 30s http://127.0.0.1:9292/           closed loop: 64 connections
  longtail load --rate 500/s --arrivals poisson http://127.0.0.1:9292/    open loop: 500 a second
  longtail load --steps 60/s,80/s --expect 'p99 < 1s' http://127.0.0.1:9292/    up to which rate?
  longtail load -n 1000 -c 20 http://127.0.0.1:9292/             exactly 1000 requests
  longtail load --rate 80/s --service 100ms http://127.0.0.1:9292/    overloaded: how many requests does it process at once?
  longtail load --ramp 100/s..1000/s --for 60s http://127.0.0.1:9292/
  longtail load --unix /run/app.sock http://localhost/           over a Unix socket; @name for an abstract one
  longtail load --requests requests.txt --fail-if 'p99 > 200ms' http://127.0.0.1:9292/    or 'errors > 0.1%'
  longtail load --rate 80/s --mix 'GET /posts 8, GET /search?q={1..500} 2' http://127.0.0.1:9292/
  longtail load --rate 100/s --statsd-listen 127.0.0.1:8125 http://127.0.0.1:9292/    what the app sends by statsd meanwhile
  longtail load --metrics 127.0.0.1:9464 --otlp http://127.0.0.1:4318 http://127.0.0.1:9292/    for Prometheus, a collector
  longtail load -c 50 --for 20s --style hey http://127.0.0.1:9292/    the figures in hey's layout
  longtail load --generator wrk -c 64 --for 30s http://127.0.0.1:9292/    wrk makes the load; its claims are audited

longtail hey -z 20s -c 50 URL, or wrk, ab, oha, k6, vegeta, siege, autocannon, bombardier or curl with their own flags, is answered with the same load in our flags. Flags that differ: hey's -t (timeout) and wrk's -t (threads) are --timeout and
--generator-threads; wrk's -d (duration) is --for, and -d is the body, as in hey and curl; -k is no keep-alive, where ab's is keep-alive. hey's -o csv is --log FILE.csv.";

/// The most rates of `--steps`: each has figures of its own.
const MOST_STEPS: usize = 200;

/// Late requests wait and keep their due time, or are counted and not sent.
const LATE: &[(&str, LatePolicy)] = &[("queue", LatePolicy::Queue), ("skip", LatePolicy::Skip)];

/// The generator wakes at whole milliseconds, for each due time, or polls for the last 50 us before
/// it.
const TIMINGS: &[(&str, Timing)] =
    &[("coalesce", Timing::Coalesce), ("precise", Timing::Precise), ("spin", Timing::Spin)];

/// The forms of X-Request-Start, by the proxy that writes it or by its unit.
const QUEUE_HEADERS: &[(&str, QueueHeader)] = &[
    ("nginx", QueueHeader::Nginx),
    ("us", QueueHeader::Apache),
    ("ms", QueueHeader::Heroku),
    ("apache", QueueHeader::Apache),
    ("heroku", QueueHeader::Heroku),
];

/// Flags of `longtail load`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct LoadArgs {
    /// Connections [default: 50; with --rate as many as it takes]
    #[arg(short, long, value_name = "N", help_heading = "Load", value_parser = from_1_to(CONNECTIONS))]
    connections: Option<u32>,
    /// Send exactly N requests
    #[arg(short = 'n', long = "number", value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: Option<u64>,
    /// How long to measure [default: 10s, or until -n is reached]
    #[arg(short = 'z', long = "for", value_name = "TIME", value_parser = above_zero, help_heading = "Load")]
    length: Option<Nanos>,
    /// Load before that, not measured
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Load")]
    warm_up: Nanos,
    /// Open loop: requests per second in total, such as 500/s
    #[arg(long, value_name = "RATE", conflicts_with_all = ["ramp", "steps", "per_connection_rate"], help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// Open loop: from one rate to another
    #[arg(long, value_name = "A..B", conflicts_with = "steps", help_heading = ADVANCED)]
    ramp: Option<String>,
    /// Open loop: one rate after the other
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Load")]
    steps: Vec<Rate>,
    /// Open loop: constant, poisson or uniform gaps
    #[arg(long, value_name = "LAW", value_parser = words(ARRIVALS), default_value = "constant", help_heading = "Load")]
    arrivals: Arrivals,
    /// A response that takes longer counts as timed out
    #[arg(long, value_name = "TIME", value_parser = above_zero, default_value = "30s", help_heading = "Load")]
    timeout: Nanos,
    /// Threads of the generator [default: half the cores, fewer at a low --rate]
    #[arg(long, alias = "lanes", alias = "threads", value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(1024))]
    pub(crate) generator_threads: Option<u32>,
    /// Let wrk, hey, oha, ab, h2load, bombardier, wrk2 or vegeta make the load
    #[arg(long, alias = "with", value_parser = load_tool(), value_name = "TOOL", help_heading = "Load", conflicts_with_all = [
        "unix", "connect_to", "source_ip", "requests", "mix", "think", "ramp", "steps", "arrivals", "burst", "late", "timing",
        "timestamps", "reconnect_after", "connect_timeout", "cacert", "cert", "stop_if", "checks", "log", "service", "from",
        "during",
    ])]
    pub(crate) generator: Option<LoadTool>,

    /// http:// or https://, any host
    #[arg(required_unless_present_any = ["requests", "mix"], help_heading = "Requests")]
    pub(crate) url: Option<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "NAME", help_heading = "Requests")]
    pub(crate) method: Option<String>,
    /// Header, `Name: value`; `Name:` removes a default one; @FILE has many
    #[arg(short = 'H', long = "header", value_name = "LINE", help_heading = "Requests")]
    pub(crate) headers: Vec<String>,
    /// Body; -D FILE sends a file
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "body_file",
        help_heading = "Requests"
    )]
    pub(crate) data: Option<String>,
    /// Body that begins with @, or is a number or a time
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with_all = ["data", "body_file"],
        help_heading = ADVANCED
    )]
    pub(crate) data_raw: Option<String>,
    /// Requests from a file (or -, stdin): URLs, paths, raw HTTP, vegeta's formats
    #[arg(long, value_name = "FILE", help_heading = ADVANCED, group = "with_files")]
    pub(crate) requests: Option<PathBuf>,
    /// Requests by weight: 'GET /posts 80, GET /search 15', or a file
    #[arg(long, value_name = "MIX", conflicts_with_all = ["requests", "random", "requests_format"], help_heading = "Requests", group = "with_files")]
    pub(crate) mix: Option<String>,
    /// Leave out a class of --mix, by its name
    #[arg(long, value_name = "CLASS", requires = "mix", help_heading = ADVANCED)]
    pub(crate) without: Vec<String>,
    /// First send up to 20 requests of each class, one at a time: how long each class takes alone, and
    /// so its share of the server's time. They are in no other figure
    #[arg(long, requires = "with_files", conflicts_with_all = ["from", "generator"], help_heading = ADVANCED)]
    pub(crate) alone: bool,
    /// Let the file of --requests or --mix name bodies (@FILE) anywhere below this folder [default:
    /// its own folder]
    #[arg(long, value_name = "DIR", help_heading = ADVANCED, requires = "with_files")]
    pub(crate) requests_root: Option<PathBuf>,
    /// Send the requests of an access log as they came: combined, JSON or logfmt
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = [
        "requests", "mix", "rate", "ramp", "steps", "per_connection_rate", "think", "arrivals", "burst", "number", "method", "data", "data_raw", "body_file",
        "warm_up", "from", "generator",
    ])]
    pub(crate) replay: Option<PathBuf>,
    /// Replay it this many times as fast, such as 2x
    #[arg(long, value_name = "TIMES", value_parser = speed, default_value = "1x", requires = "replay", help_heading = ADVANCED)]
    speed: f64,
    /// Replay it again and again, for as long as --for says
    #[arg(long = "loop", requires_all = ["replay", "length"], help_heading = ADVANCED)]
    loops: bool,
    /// Replay methods other than GET and HEAD too: a DELETE deletes
    #[arg(long, requires = "replay", help_heading = ADVANCED)]
    pub(crate) replay_all: bool,
    /// No keep-alive: a new connection for each request
    #[arg(
        short = 'k',
        long = "no-keep-alive",
        alias = "disable-keepalive",
        help_heading = "Requests"
    )]
    pub(crate) no_keep_alive: bool,
    /// Connect to a Unix socket; @NAME for an abstract one
    #[arg(
        long,
        value_name = "PATH",
        alias = "unix-socket",
        conflicts_with = "connect_to",
        help_heading = "Requests"
    )]
    pub(crate) unix: Option<String>,
    /// Accept any certificate
    #[arg(long, help_heading = ADVANCED)]
    pub(crate) insecure: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    /// Log each request to this file; .csv is CSV, - is stdout
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,

    /// Open loop at -c times this rate, as hey's -q; whichever connection is free takes the next request
    #[arg(short = 'q', value_name = "RATE", conflicts_with_all = ["ramp", "steps"], help_heading = ADVANCED)]
    pub(crate) per_connection_rate: Option<Rate>,
    /// Closed loop: pause between a response and the next request of that connection
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = ADVANCED)]
    think: Nanos,
    /// Open loop: N requests are due at the same time; the rate stays
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED, value_parser = from_1_to(CONNECTIONS))]
    burst: u32,
    /// Open loop: most connections where -c gives no other limit
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = ADVANCED, value_parser = from_1_to(CONNECTIONS))]
    max_connections: u32,
    /// Open loop: queue a request that is due while all connections are busy, or skip it
    #[arg(long, value_name = "WHAT", value_parser = words(LATE), default_value = "queue", help_heading = ADVANCED)]
    late: LatePolicy,
    /// How precisely due times are kept: coalesce (to whole milliseconds), precise, or spin (busy
    /// for the last 50 us)
    #[arg(long, value_name = "HOW", value_parser = words(TIMINGS), default_value = "precise", help_heading = ADVANCED)]
    timing: Timing,
    /// Whose clock says when a response came: kernel, user (the generator), or auto
    #[arg(long, value_name = "CLOCK", value_parser = words(TIMESTAMPS), default_value = "auto", help_heading = ADVANCED)]
    pub(crate) timestamps: WantedTimestamps,
    /// Give up a connection that is not open after this time [default: --timeout]
    #[arg(long, value_name = "TIME", value_parser = above_zero, help_heading = ADVANCED)]
    connect_timeout: Option<Nanos>,
    /// Seed of what is random
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED)]
    pub(crate) seed: u64,
    /// Body from a file; - is stdin
    #[arg(short = 'D', long, value_name = "FILE", help_heading = ADVANCED)]
    pub(crate) body_file: Option<PathBuf>,
    /// Content-Type header
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = ADVANCED)]
    pub(crate) content_type: Option<String>,
    /// Accept header
    #[arg(short = 'A', long, value_name = "TYPE", help_heading = ADVANCED)]
    pub(crate) accept: Option<String>,
    /// Basic authentication
    #[arg(short = 'a', long = "auth", value_name = "USER:PASSWORD", help_heading = ADVANCED)]
    pub(crate) auth: Option<String>,
    /// Host header
    #[arg(long, value_name = "NAME", help_heading = ADVANCED)]
    pub(crate) host: Option<String>,
    /// Format of --requests, where it is not recognized: json, plain, raw, list or mix
    #[arg(long, value_name = "NAME", value_parser = words(RequestsFormat::NAMES), requires = "requests", help_heading = ADVANCED)]
    pub(crate) requests_format: Option<RequestsFormat>,
    /// Take requests from that file at random (--seed), not in order
    #[arg(long, requires = "requests", help_heading = ADVANCED)]
    pub(crate) random: bool,
    /// Send X-Request-Start with the time of sending, as a proxy does: nginx (t=SECONDS.mmm), us
    /// (Apache) or ms (Heroku)
    #[arg(long, value_name = "FORM", value_parser = words(QUEUE_HEADERS), num_args = 0..=1, require_equals = true,
          default_missing_value = "nginx", conflicts_with = "generator", help_heading = ADVANCED)]
    pub(crate) queue_header: Option<QueueHeader>,
    /// Response header in which a worker names itself
    #[arg(long, value_name = "NAME", default_value = "x-worker-pid", help_heading = ADVANCED)]
    pub(crate) worker_header: String,
    /// Close a connection after N requests, and open it again
    #[arg(long, alias = "requests-per-connection", value_name = "N", help_heading = ADVANCED, value_parser = clap::value_parser!(u64).range(1..))]
    reconnect_after: Option<u64>,
    /// Connect to this address for a host and port of the URL, as curl does
    #[arg(long, value_name = "HOST:PORT:ADDRESS", help_heading = ADVANCED)]
    resolve: Vec<StaticAddresses>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = ADVANCED)]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long, help_heading = ADVANCED)]
    ipv6: bool,
    /// Connect to another host and port than the URL's
    #[arg(long, value_name = "HOST:PORT", help_heading = ADVANCED)]
    pub(crate) connect_to: Option<String>,
    /// Addresses to connect from, in turn
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = ADVANCED)]
    pub(crate) source_ip: Vec<std::net::IpAddr>,
    /// Certificates to trust in place of the system's (PEM)
    #[arg(long, value_name = "FILE", help_heading = ADVANCED)]
    pub(crate) cacert: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = ADVANCED)]
    pub(crate) cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = ADVANCED)]
    pub(crate) key: Option<PathBuf>,
    /// Do not measure the generator's own limit first (once a day)
    #[arg(long, help_heading = ADVANCED)]
    pub(crate) no_calibrate: bool,
    /// End the run early where this holds; checked once a second
    #[arg(long, value_name = "LIMIT", help_heading = ADVANCED)]
    pub(crate) stop_if: Vec<Objective>,
    /// Make the load on another machine, such as 'ssh box2'; repeatable
    #[arg(long, value_name = "COMMAND", help_heading = "Load")]
    pub(crate) from: Vec<String>,
    /// Slow clients beside the load, not in its figures:
    /// N[:upload=1kB/s,read=10kB/s,body=20kB]
    #[arg(long, value_name = "CLIENTS", conflicts_with_all = ["from", "generator"], help_heading = ADVANCED)]
    pub(crate) slow_clients: Option<SlowClients>,
    /// How long a request holds a thread: an overload then shows how many requests the server
    /// processes at once
    #[arg(long, value_name = "TIME", value_parser = above_zero, help_heading = ADVANCED)]
    pub(crate) service: Option<Nanos>,
    /// Check the responses: status=200, length=1024, sha256=HEX, same-body, cbor-counter
    #[arg(long = "check", value_name = "WHAT", help_heading = ADVANCED)]
    pub(crate) checks: Vec<ResponseCheck>,
    #[command(flatten)]
    pub(crate) event: EventArgs,
    #[command(flatten)]
    pub(crate) outlets: OutletArgs,
}

impl LoadArgs {
    /// `resolver`, which knows where connections may go, with these flags' addresses and IP version.
    pub(crate) fn resolver(&self, mut resolver: Resolver) -> Resolver {
        resolver.version = match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (_, true) => Some(IpVersion::V6),
            _ => None,
        };
        resolver.given.clone_from(&self.resolve);
        resolver
    }

    /// The first of the given flags that needs the whole load in one process.
    pub(crate) fn own_process_flag(&self) -> Option<&'static str> {
        let given = [
            (self.generator.is_some(), "--generator"),
            (self.log.is_some(), "--log"),
            (!self.checks.is_empty(), "--check"),
            (!self.stop_if.is_empty(), "--stop-if"),
            (!self.from.is_empty(), "--from"),
            (self.event.during.is_some(), "--during"),
            (self.outlets.statsd_listen.is_some(), "--statsd-listen"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// These settings for a log whose requests came at these times since its start. It ends with
    /// the log, unless it is replayed again and again.
    pub(crate) fn replaying(&self, load: &LoadSettings, log: &LogTimes) -> Option<LoadSettings> {
        let recorded = RecordedTimes::new(&log.times, log.start, self.speed)?;
        let total = if self.loops { None } else { Some(recorded.requests) };
        let profile = Profile::Recorded { recorded };
        let pace = Pace::Open { profile, arrivals: Arrivals::Constant, seed: self.seed, burst: 1 };
        let most = u32::try_from(total.unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
        let connections = self.connections.unwrap_or(self.max_connections).min(most);
        Some(LoadSettings { pace, requests_total: total, connections, ..load.clone() })
    }
}

/// Reads how many times as fast a log is replayed.
fn speed(text: &str) -> Result<f64, String> {
    let times = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    times
        .filter(|times| (0.001..=1000.0).contains(times))
        .ok_or_else(|| "write 2x for twice as fast, or 0.5x; from 0.001x to 1000x".to_owned())
}

const ATTACK_EXAMPLES: &str = "\
Examples:
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000'
  longtail attack --target-throughput=10 --url='http://localhost:3000/sleep?ms=1000' -n 30

It is `longtail load --rate 10/s -k --log -`: an open loop, a new connection for each request, one line a request in
order of completion.";

/// The command that is a load by attack.cr's flags.
pub(crate) fn as_attack(command: clap::Command) -> clap::Command {
    command
        .mut_args(with_its_name_of_rate)
        .mut_arg("rate", |arg| arg.long("target-throughput").required(true))
        .mut_arg("url", |arg| arg.long("url"))
        // With keep-alive, Puma before 7 serves the connections that it has and lets others wait.
        .mut_arg("no_keep_alive", |arg| arg.default_value("true"))
        .mut_arg("log", |arg| arg.default_value("-"))
        .mut_arg("connections", |arg| arg.help("Connections [default: as many as it takes]"))
        .mut_arg("length", |arg| {
            arg.default_value("60s")
                .default_value_if("number", ArgPredicate::IsPresent, None)
                .help("How long to measure [default: 60s, or until -n is reached]")
                .hide_default_value(true)
        })
        .after_long_help(ATTACK_EXAMPLES)
}

/// A flag whose help calls `--rate` what it is called beside `attack`.
fn with_its_name_of_rate(arg: clap::Arg) -> clap::Arg {
    let help = arg.get_help().map(ToString::to_string);
    match help.filter(|help| help.contains("--rate")) {
        Some(help) => arg.help(help.replace("--rate", "--target-throughput")),
        None => arg,
    }
}

/// The length of a run, or of each step of it, that nothing else ends.
const DEFAULT_LENGTH: Nanos = Nanos::from_secs(10);

/// Connections of a closed loop, or with -q, if no number is given.
const DEFAULT_CONNECTIONS: u32 = 50;

impl LoadArgs {
    /// How requests are sent, with all defaults except those that flags alone don't determine: the
    /// generator's threads, and whose clock says when a response came.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn settings(&self) -> Result<LoadSettings, Mistake> {
        let profile = self.profile()?;
        let is_open = profile.is_some();
        let is_late_set = self.late == LatePolicy::Skip && self.replay.is_none();
        let are_spaced = self.arrivals != Arrivals::Constant;
        if !is_open && (self.burst > 1 || is_late_set || are_spaced) {
            return Err(wrong(
                "--arrivals, --burst and --late belong to an open loop: give --rate, --ramp or --steps",
            ));
        }
        refuse_if(
            is_open && self.think > Nanos::ZERO,
            "--think belongs to a closed loop: leave it out, or leave out --rate, --ramp and --steps",
        )?;
        refuse_if(
            self.connect_timeout.is_some_and(|time| time > self.timeout),
            "--connect-timeout is longer than --timeout, which ends the request before: give a shorter one",
        )?;
        let pace = match profile {
            None => Pace::Closed,
            Some(profile) => {
                Pace::Open { profile, arrivals: self.arrivals, seed: self.seed, burst: self.burst }
            }
        };
        let most = if is_open { self.max_connections } else { DEFAULT_CONNECTIONS };
        // More connections than requests would only be opened and closed.
        let needed = self.number.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
        let connections = self.connections.unwrap_or(most).min(needed);
        Ok(LoadSettings {
            pace,
            think: self.think,
            late: self.late,
            requests_total: self.number,
            warm_up: self.warm_up,
            keep_alive: !self.no_keep_alive,
            reconnect_after: self.reconnect_after,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            queue_header: self.queue_header,
            timing: self.timing,
            ..LoadSettings::closed(connections)
        })
    }

    fn profile(&self) -> Result<Option<Profile>, Mistake> {
        if let Some(rate) = self.rate {
            return Ok(Some(Profile::Flat { rate }));
        }
        if let Some(each) = self.per_connection_rate {
            let total =
                each.per_second() * f64::from(self.connections.unwrap_or(DEFAULT_CONNECTIONS));
            return Ok(Some(Profile::Flat { rate: Rate::new(total).map_err(wrong)? }));
        }
        if let Some(ramp) = &self.ramp {
            let (from, to) = ramp
                .split_once("..")
                .ok_or_else(|| wrong("--ramp wants two rates, such as 100/s..1000/s"))?;
            let rate = |text: &str| {
                text.parse::<Rate>().map_err(|error| wrong(format!("--ramp: {error}")))
            };
            let over = self.length.unwrap_or(DEFAULT_LENGTH);
            return Ok(Some(Profile::Ramp { from: rate(from)?, to: rate(to)?, over }));
        }
        if self.steps.is_empty() {
            return Ok(None);
        }
        refuse_if(
            self.steps.len() > MOST_STEPS,
            "--steps takes at most 200 rates: --ramp A..B goes from one rate to another",
        )?;
        let each = self.length.map_or(DEFAULT_LENGTH, |length| length / self.steps.len() as u64);
        Ok(Some(Profile::Steps { rates: self.steps.clone(), each }))
    }

    /// How long a run of these settings lasts; `None` if a number of requests ends it. Without
    /// either it lasts [`DEFAULT_LENGTH`]: no run is endless.
    pub(crate) fn run_length(&self, load: &LoadSettings) -> Option<Nanos> {
        let of_profile = match &load.pace {
            Pace::Closed => None,
            Pace::Open { profile, .. } => profile.length(),
        };
        let by_default = if self.number.is_some() { None } else { Some(DEFAULT_LENGTH) };
        self.length.or(of_profile).or(by_default)
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::load_words;

    #[test]
    fn rates_and_connections_are_those_of_the_whole_run_and_every_run_ends() {
        // Expected: the highest rate (with -q that of all connections), connections (no more than
        // requests), and seconds.
        for (words, expected) in [
            ("http://h/", (None, 50, Some(10))),
            ("-c 20 http://h/", (None, 20, Some(10))),
            ("-n 5 http://h/", (None, 5, None)),
            ("-n 5 -c 20 http://h/", (None, 5, None)),
            ("--rate 500/s -c 10 http://h/", (Some(500.0), 10, Some(10))),
            ("-q 5 -c 10 http://h/", (Some(50.0), 10, Some(10))),
            ("--steps 10,90000 --for 2s http://h/", (Some(90_000.0), 1000, Some(2))),
            ("--steps 1,2,3 http://h/", (Some(3.0), 1000, Some(30))),
            ("--ramp 1..30000 --for 9s http://h/", (Some(30_000.0), 1000, Some(9))),
        ] {
            let args = load_words(words.split(' ').map(str::to_owned).collect()).unwrap();
            let load = args.settings().unwrap();
            let seconds = args.run_length(&load).map(|length| length.0 / 1_000_000_000);
            assert_eq!((load.highest_rate(), load.connections, seconds), expected, "{words}");
        }
    }
}
