//! Flags of `longtail sweep`, Puma's own words among them, and what they mean together.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use launch::puma::Addresses;
use model::plan::quoted;
use model::{App, Body, Nanos, Plan, Probe, ServerKind, ServerPlan, Socket, Stop, StreamPlan, Threads};

use crate::args::limits::{check_threads, check_timeout, check_times};
use crate::args::timestamps::{Situation, TimestampsWord};
use crate::args::{OutletArgs, OutputArgs};
use crate::generators::{End, Errand, Generator};
use crate::mistake::Mistake;

/// The kinds of socket that a server can be bound to.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SocketWord {
    /// IPv4
    #[default]
    #[value(alias = "tcp")]
    Tcp4,
    /// IPv6
    Tcp6,
    /// TLS over IPv4, with a certificate made for the run
    #[value(alias = "ssl")]
    Ssl4,
    /// TLS over IPv6
    Ssl6,
    /// Unix socket, in a private directory
    Unix,
    /// Abstract Unix socket
    Aunix,
}

impl SocketWord {
    pub(super) fn socket(self) -> Socket {
        match self {
            SocketWord::Tcp4 => Socket::Tcp4,
            SocketWord::Tcp6 => Socket::Tcp6,
            SocketWord::Ssl4 => Socket::Ssl4,
            SocketWord::Ssl6 => Socket::Ssl6,
            SocketWord::Unix => Socket::Unix,
            SocketWord::Aunix => Socket::Aunix,
        }
    }
}

/// The apps that longtail brings.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum AppWord {
    /// Rack alone: /sleep0.1 sleeps 0.1 s
    Sleep,
    /// An API in Rails, in production mode: /sleep?ms=100
    Rails,
}

/// What is read of server and kernel while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum ProbeWord {
    /// Nothing
    None,
    /// What everybody may read: accept queue, connections, CPU time, the server's statistics
    Proc,
    /// That, and the kernel's tracepoints: how long each request waited where (wants root or two capabilities)
    Bpf,
    /// bpf where it can be had and up to 5000 requests/s, else proc
    Auto,
}

impl ProbeWord {
    /// That, of servers on these kinds of socket.
    ///
    /// # Errors
    /// Where it cannot see one of them.
    pub(super) fn over(self, sockets: &[Socket]) -> Result<Probe, Mistake> {
        let unseen = sockets.iter().find(|socket| matches!(socket, Socket::Unix | Socket::Aunix));
        Ok(match (self, unseen) {
            (ProbeWord::Bpf, Some(socket)) => {
                return Err(Mistake::Flags(format!("--probe bpf sees TCP alone: leave it out with -s {socket}")));
            }
            (ProbeWord::None, _) => Probe::None,
            (ProbeWord::Proc, _) => Probe::Proc,
            (ProbeWord::Bpf, None) => Probe::Bpf,
            (ProbeWord::Auto, _) => Probe::Auto,
        })
    }
}

/// The servers that longtail knows how to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum ServerWord {
    /// Puma, as --puma says or as it is found
    #[default]
    Puma,
    /// The server inside longtail: the same workers x threads, and a sleep
    Builtin,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  longtail sweep -w2 -t5:5 -d0.1                    two workers of five threads, an app that sleeps 100 ms
  longtail sweep -w4 -t5:5 -R100 -d0.2 --columns puma    as benchmarks/local/long_tail_hey.sh
  longtail sweep -w2 -t5:5 -d0.1 -k                 a new connection for each request
  longtail sweep -w2 -t5:5 -s ssl4                  over TLS; -s unix and aunix: over a Unix socket
  longtail sweep -t5:5 -d1 --app rails              a small Rails app that sleeps 1 s
  longtail sweep -w2 -t5:5 --body s10 --connections 16,20,64    answers of 10 kB
  longtail sweep -r config.ru --path /posts         your app; its service time is measured first
  longtail sweep -w2 -t5:5 -d0.1 --probe-discipline       who waits for whom, with keep-alive and without?
  longtail sweep -w4 -t5:5 -R100 -d0.2 --with hey   hey makes the load, as in Puma's script; --with wrk: wrk
  longtail sweep -w2 -t5:5 -d0.1 -k --anatomy       where the response time went: accept queue, server, app
  longtail sweep -w2 -t5:5 -d0.1 -k --anatomy --probe bpf    the same, each part by the kernel's own stamps (as root)
  longtail sweep -w2 -t5:5 --probe none             nobody looks at server and kernel meanwhile
  longtail sweep -w2 -t5:5 -C puma.rb --statsd-listen 127.0.0.1:8125    what puma-plugin-statsd and the app say meanwhile
  longtail sweep -w2 -t5:5 --metrics 127.0.0.1:9464 --metrics-linger 30s    for Prometheus to scrape, at /metrics
  longtail sweep -w2 -t5:5 --statsd-to 127.0.0.1:8125 --otlp http://127.0.0.1:4318    figures for an agent, a collector
  longtail sweep --slots 4 --url http://127.0.0.1:9292/ -- falcon serve -n 4 -b http://127.0.0.1:9292

Environment: PUMA_TEST_HOST4, PUMA_TEST_HOST6, PUMA_TEST_PORT and PUMA_TEST_CTRL choose where Puma listens, as in
Puma's own scripts; without them free ports are taken.";

/// Flags of `longtail sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub(crate) struct SweepArgs {
    /// Worker processes; 0 or none is single mode
    #[arg(short, long, value_name = "N", help_heading = "Server", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    workers: Option<u32>,
    /// Threads a worker [default: 5:5, or as the config file says]
    #[arg(short, long, value_name = "MIN:MAX", help_heading = "Server")]
    threads: Option<Threads>,
    /// Rackup file [default: the app that longtail brings]
    #[arg(short, long, value_name = "FILE", help_heading = "Server")]
    rackup: Option<PathBuf>,
    /// Which app that longtail brings [default: sleep]
    #[arg(long, value_enum, value_name = "APP", conflicts_with = "rackup", help_heading = "Server")]
    app: Option<AppWord>,
    /// Puma's config file
    #[arg(short = 'C', long, value_name = "FILE", help_heading = "Server")]
    config: Option<PathBuf>,
    /// Start Ruby with YJIT
    #[arg(short = 'Y', long, help_heading = "Server")]
    yjit: bool,
    /// Kind of socket to bind
    #[arg(short, long, value_enum, default_value_t, help_heading = "Server")]
    socket: SocketWord,
    /// Which server to start
    #[arg(long, value_enum, default_value_t, help_heading = "Server")]
    server: ServerWord,
    /// Command that starts Puma [default: bundle exec puma in a bundle, its own executable in a checkout, else puma]
    #[arg(long, value_name = "CMD", help_heading = "Server")]
    puma: Option<String>,
    /// Longest wait for the server to be ready
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Server")]
    pub(crate) boot_timeout: Nanos,
    /// What another server (after --) can process at once
    #[arg(long, value_name = "N", help_heading = "Server", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// Where another server (after --) will answer
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Option<String>,
    /// Any other server: its command, with --slots and --url
    #[arg(last = true, value_name = "COMMAND", help_heading = "Server")]
    command: Vec<String>,

    /// How long the app holds a thread (a bare number is seconds) [default: 0.1 with longtail's app, else measured]
    #[arg(short, long, value_name = "TIME", help_heading = "Stream of requests")]
    delay: Option<Nanos>,
    /// What is requested [default: /sleep0.1 for -d0.1, /sleep?ms=100 with --app rails, / without a delay]
    #[arg(long, value_name = "PATH", help_heading = "Stream of requests")]
    path: Option<String>,
    /// What every answer carries, such as s10: a array, c chunked, s string, i File/IO, and kB (longtail's own app of bodies, or one of -r that goes by the header Body-Conf)
    #[arg(long, value_name = "BODY", conflicts_with_all = ["path", "app"], help_heading = "Stream of requests")]
    body: Option<Body>,
    /// No keep-alive: a new connection for each request
    #[arg(
        short = 'k',
        long = "no-keep-alive",
        visible_alias = "disable-keepalive",
        help_heading = "Stream of requests"
    )]
    no_keep_alive: bool,
    /// Requests per connection: the run ends by count, as in Puma's scripts
    #[arg(short = 'R', long, value_name = "N", conflicts_with = "length", help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,
    /// Length of each run, the warm-up not included
    #[arg(
        long = "for",
        id = "length",
        value_name = "TIME",
        default_value = "10s",
        help_heading = "Stream of requests"
    )]
    length: Nanos,
    /// Load before each run that is not measured [default: 1s, or none with -R]
    #[arg(long, value_name = "TIME", help_heading = "Stream of requests")]
    warm_up: Option<Nanos>,
    /// Runs: connections as multiples of the slots
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,1.5,2,3,4",
        help_heading = "Stream of requests"
    )]
    multiples: Vec<f64>,
    /// Runs: connections in total, in place of --multiples
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "multiples",
        help_heading = "Stream of requests"
    )]
    connections: Vec<u32>,
    /// Do the whole list so often, each time on a fresh server
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Wait until the server is idle between runs (this is the default)
    #[arg(long, overrides_with = "no_cool_down", help_heading = "Stream of requests")]
    cool_down: bool,
    /// Start each run on what the one before has left
    #[arg(long, help_heading = "Stream of requests")]
    no_cool_down: bool,
    /// Do not measure the generator's own limit first (it is measured once a day)
    #[arg(long, help_heading = "Stream of requests")]
    no_calibrate: bool,
    /// Before the sweep, a short load with keep-alive and one without at 3 x the slots: who waits for whom?
    #[arg(long, conflicts_with_all = ["with", "body"], help_heading = "Stream of requests")]
    probe_discipline: bool,
    /// An answer that takes longer counts as timed out
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Stream of requests")]
    timeout: Nanos,
    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Stream of requests",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    lanes: u32,
    /// Whose clock says when an answer came
    #[arg(long, value_enum, default_value_t, help_heading = "Stream of requests")]
    timestamps: TimestampsWord,
    /// Another generator on PATH makes the load, and its claims are reported as its own: wrk, hey, ab, h2load, oha,
    /// bombardier
    #[arg(long, value_enum, value_name = "TOOL", hide_possible_values = true, help_heading = "Stream of requests")]
    pub(crate) with: Option<Generator>,
    /// Response header in which a worker names itself
    #[arg(long, value_name = "NAME", default_value = "x-worker-pid", help_heading = "Stream of requests")]
    worker_header: String,

    /// Ask the app when it began and ended each request (x-app-stamps, or Server-Timing), and tell where the response time
    /// went
    #[arg(long, help_heading = "Stream of requests")]
    anatomy: bool,
    /// What is read of server and kernel while a run goes on [default: auto, or none with --with]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Stream of requests")]
    probe: Option<ProbeWord>,

    #[command(flatten)]
    pub(crate) outlets: OutletArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Keep the study in this file too
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) save: Option<PathBuf>,
}

const NO_MULTIPLE: &str = "--multiples wants numbers above 0, such as 0.5,1,2: 0 would be no connection at all";

impl SweepArgs {
    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<Plan, Mistake> {
        let wrong = |text: &str| Err(Mistake::Flags(text.to_owned()));
        self.outlets.check()?;
        if self.multiples.is_empty() || self.multiples.iter().any(|m| !m.is_finite() || *m <= 0.0 || *m > 1e6) {
            return wrong(NO_MULTIPLE);
        }
        if self.connections.iter().any(|n| *n == 0 || *n > 1_000_000) {
            return wrong("--connections wants numbers from 1 to 1000000, such as 16,20,64");
        }
        check_times([Some(self.length), self.warm_up, Some(self.timeout), Some(self.boot_timeout), self.delay])?;
        if self.length == Nanos::ZERO {
            return wrong("--for wants a time above 0, such as 5s");
        }
        check_timeout(self.timeout)?;
        check_threads(self.threads)?;
        if let Some(path) = &self.path
            && (!path.starts_with('/') || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f))
        {
            return wrong("--path wants a path that starts with / and has no blanks, such as /posts?page=2");
        }
        let kind = self.server_kind()?;
        let socket = self.socket.socket();
        if !socket.is_plain_tcp() && !matches!(kind, ServerKind::Puma { .. }) {
            let server = if self.command.is_empty() { "--server builtin" } else { "a command after --" };
            let text = format!("-s {socket} is for Puma: {server} listens on tcp4 or tcp6 only");
            return Err(Mistake::Flags(text));
        }
        if let (Some(with), false) = (self.with, matches!(socket, Socket::Unix | Socket::Aunix)) {
            self.check_with(with)?;
        } else if let Some(with) = self.with {
            let name = with.name();
            return Err(Mistake::Flags(format!("--with {name}: it knows no Unix socket: leave out -s {socket}")));
        }
        let own_app = self.rackup.is_none() && !matches!(kind, ServerKind::Command { .. });
        if let (Some(with), Some(_), Some(_)) = (self.with, self.body, &self.rackup) {
            let name = with.name();
            return Err(Mistake::Flags(format!(
                "--with {name} asks for a path alone: leave out -r, or give --path in place of --body"
            )));
        }
        if self.body.is_some() && !matches!(kind, ServerKind::Puma { .. }) {
            return wrong("--body is for Puma: no other server has an app that goes by it");
        }
        let app = match self.app {
            Some(AppWord::Rails) => App::Rails,
            None | Some(AppWord::Sleep) if self.body.is_some() => App::Bodies,
            None | Some(AppWord::Sleep) => App::Sleep,
        };
        let sleeps = own_app && app != App::Bodies;
        let default_delay = (sleeps && self.path.is_none()).then_some(Nanos::from_millis(100));
        let default_threads = self.config.is_none().then_some(Threads { min: 5, max: 5 });
        let delay = self.delay.or(default_delay);
        let rails_path = delay.filter(|_| app == App::Rails).map(|delay| format!("/sleep?ms={}", milliseconds(delay)));
        let is_command = matches!(kind, ServerKind::Command { .. });
        Ok(Plan {
            server: ServerPlan {
                kind,
                workers: self.workers,
                threads: if is_command { self.threads } else { self.threads.or(default_threads) },
                rackup: self.rackup.clone(),
                app,
                config: self.config.clone(),
                yjit: self.yjit,
                socket,
                cpus: None,
            },
            stream: StreamPlan {
                delay,
                path: self.path.clone().or(rails_path),
                body: self.body,
                keep_alive: !self.no_keep_alive,
                stop: self.requests_per_connection.map_or(Stop::After(self.length), Stop::RequestsPerConnection),
                warm_up: self.warm_up.unwrap_or(match self.requests_per_connection {
                    Some(_) => Nanos::ZERO,
                    None => Nanos::from_secs(1),
                }),
                timeout: self.timeout,
                lanes: self.lanes,
                timestamps: self.timestamps.resolve(Situation {
                    is_tcp: !matches!(socket, Socket::Unix | Socket::Aunix),
                    is_pipelined: false,
                })?,
                worker_header: self.worker_header.clone(),
                anatomy: self.anatomy,
            },
            multiples: if self.connections.is_empty() { self.multiples.clone() } else { Vec::new() },
            connections: self.connections.clone(),
            repeat: self.repeat,
            cool_down: !self.no_cool_down,
            // The ceiling that we could measure is ours and not the other generator's.
            calibrate: !self.no_calibrate && self.with.is_none(),
            probe_discipline: self.probe_discipline,
            with: self.with.map(|with| with.name().to_owned()),
            probe: self.probe()?,
            statsd_listen: self.outlets.statsd_listen,
        })
    }

    /// What is read meanwhile. Of another generator's run nobody knows when its warm-up is over.
    fn probe(&self) -> Result<Probe, Mistake> {
        let word = match (self.probe, self.with) {
            (Some(ProbeWord::None), _) | (None, Some(_)) => return Ok(Probe::None),
            (Some(word), None) => word,
            (None, None) => ProbeWord::Auto,
            (Some(word), Some(with)) => {
                let word = word.to_possible_value().map_or_else(String::new, |word| word.get_name().to_owned());
                let text = format!("--probe {word} is of our own runs: leave it out with --with {}", with.name());
                return Err(Mistake::Flags(text));
            }
        };
        word.over(&[self.socket.socket()])
    }

    /// Refuses what the other generator cannot do, whatever the number of connections will be.
    fn check_with(&self, with: Generator) -> Result<(), Mistake> {
        let wrong = |text: String| Err(Mistake::Flags(text));
        if with == Generator::Longtail {
            return wrong("--with longtail: it is longtail that makes the load anyway; leave it out".to_owned());
        }
        if self.anatomy {
            return wrong(format!("--anatomy is of our own runs: leave it out with --with {}", with.name()));
        }
        if self.requests_per_connection.is_some()
            && let Some(line) = with.shares_requests_unevenly()
        {
            return wrong(line);
        }
        if !matches!(self.output.sweep_columns()?, report::Columns::Longtail) {
            return wrong(format!("--columns puma is of our own runs: leave it out with --with {}", with.name()));
        }
        let errand = Errand {
            url: String::new(),
            host: None,
            connections: 1,
            threads: self.lanes,
            end: self.requests_per_connection.map_or(End::After(self.length), End::Requests),
            warm_up: self.warm_up.unwrap_or(Nanos::ZERO),
            rate: None,
            rate_per_connection: None,
            keep_alive: !self.no_keep_alive,
            timeout: self.timeout,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
        };
        with.refusal(&errand).map_or(Ok(()), wrong)
    }

    fn server_kind(&self) -> Result<ServerKind, Mistake> {
        let wrong = |text: &str| Err(Mistake::Flags(text.to_owned()));
        if self.command.is_empty() {
            return match (self.server, self.slots.is_some() || self.url.is_some()) {
                (_, true) => wrong("--slots and --url belong to another server's command: add -- COMMAND at the end"),
                (ServerWord::Builtin, _) if self.asks_for_puma() => {
                    wrong("--server builtin takes no -r, --app, -C, -Y or --puma: they are Puma's")
                }
                (ServerWord::Builtin, _) => Ok(ServerKind::Builtin),
                (ServerWord::Puma, _) => Ok(ServerKind::Puma { command: self.puma.clone() }),
            };
        }
        if self.server == ServerWord::Builtin
            || self.asks_for_puma()
            || self.workers.is_some()
            || self.threads.is_some()
        {
            return wrong(
                "a command after -- is a server of its own: it takes --slots and --url, not -w, -t, -r, --app, -C, -Y, --puma or --server",
            );
        }
        match (self.slots, &self.url) {
            (Some(slots), Some(url)) => Ok(ServerKind::Command { argv: self.command.clone(), slots, url: url.clone() }),
            _ => wrong(
                "a command after -- needs --slots N (what it can process at once) and --url URL (where it will answer)",
            ),
        }
    }

    fn asks_for_puma(&self) -> bool {
        self.rackup.is_some() || self.app.is_some() || self.config.is_some() || self.yjit || self.puma.is_some()
    }

    /// Where Puma listens, by the environment of Puma's own scripts.
    ///
    /// # Errors
    /// Where a port is no port.
    pub(crate) fn addresses() -> Result<Addresses, Mistake> {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let port = |name: &str| match text(name).map(|value| (value.parse::<u16>(), value)) {
            None => Ok(None),
            Some((Ok(port), _)) if port > 0 => Ok(Some(port)),
            Some((_, value)) => {
                Err(Mistake::Flags(format!("{name}='{value}' is no port: set it to 1 to 65535, or unset it")))
            }
        };
        let default = Addresses::default();
        Ok(Addresses {
            host4: text("PUMA_TEST_HOST4").unwrap_or(default.host4),
            host6: text("PUMA_TEST_HOST6").unwrap_or(default.host6),
            port: port("PUMA_TEST_PORT")?,
            control_port: port("PUMA_TEST_CTRL")?,
        })
    }

    /// The command line that repeats `plan` here, what counts of the environment first.
    pub(crate) fn command_line(plan: &Plan) -> String {
        with_environment(&plan.command_line())
    }
}

/// A command line with what counts of the environment in front.
pub(super) fn with_environment(command_line: &str) -> String {
    let names = ["PUMA_TEST_HOST4", "PUMA_TEST_HOST6", "PUMA_TEST_PORT", "PUMA_TEST_CTRL"];
    let set =
        names.iter().filter_map(|name| std::env::var(name).ok().map(|value| format!("{name}={} ", quoted(&value))));
    set.collect::<String>() + command_line
}

/// As the Rails app takes it: a number without its unit.
fn milliseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Invocation, parse};
    use std::ffi::OsString;

    fn plan(words: &[&str]) -> Result<Plan, String> {
        let words = std::iter::once("longtail").chain(words.iter().copied()).map(OsString::from);
        match parse(words).map_err(|mistake| mistake.to_string())? {
            Invocation::Command(Command::Sweep(args)) => args.plan().map_err(|mistake| mistake.to_string()),
            _ => Err("not a sweep".to_owned()),
        }
    }

    #[test]
    fn pumas_own_words_work() {
        let plan =
            plan(&["sweep", "-w4", "-t5:5", "-R100", "-d0.2", "-k", "-Y", "-r", "app.ru", "-C", "puma.rb", "-stcp6"])
                .unwrap();
        assert_eq!(plan.server.workers, Some(4));
        assert_eq!(plan.server.threads, Some(Threads { min: 5, max: 5 }));
        assert_eq!(plan.stream.stop, Stop::RequestsPerConnection(100));
        assert_eq!(plan.stream.delay, Some(Nanos::from_millis(200)));
        assert_eq!(plan.stream.target_path(), "/sleep0.2");
        assert_eq!(plan.stream.warm_up, Nanos::ZERO, "Puma's script has none");
        assert!(!plan.stream.keep_alive && plan.server.yjit);
        assert_eq!(plan.server.socket, Socket::Tcp6);
    }

    #[test]
    fn a_plan_printed_and_parsed_is_itself() {
        let cases: [&[&str]; 25] = [
            &["sweep"],
            &["sweep", "--body=s10", "--connections=16,20,64", "-w2"],
            &["sweep", "--body=i1", "-d0.01", "-r", "ci.ru", "-sssl4"],
            &["sweep", "--connections=1"],
            &["sweep", "-w4", "-t5:5", "-R100", "-d0.2", "-k"],
            &["sweep", "-w0", "-t0:16", "--for=1500ms", "--warm-up=0", "--multiples=0.5,1,1.5,6", "--repeat=3"],
            &[
                "sweep",
                "--no-calibrate",
                "-r",
                "my app.ru",
                "-C",
                "config/puma.rb",
                "-Y",
                "--path=/a?b=c",
                "--no-cool-down",
            ],
            &["sweep", "--server=builtin", "-w2", "-t3", "--timeout=250ms", "--lanes=2", "--worker-header=x-pid"],
            &["sweep", "--puma", "bundle exec puma", "-stcp6"],
            &["sweep", "-sssl4"],
            &["sweep", "-s", "ssl6", "-w2"],
            &["sweep", "-sunix", "-k"],
            &["sweep", "-saunix"],
            &["sweep", "--app=rails", "-d0.0015"],
            &["sweep", "--app=rails"],
            &["sweep", "--app=rails", "--path=/other"],
            &["sweep", "--app=sleep", "-sssl"],
            &["sweep", "--with=hey", "-w2", "-R100"],
            &["sweep", "--probe=none"],
            &["sweep", "--probe=proc"],
            &["sweep", "--probe=bpf"],
            &["sweep", "--anatomy", "-k"],
            &["sweep", "--statsd-listen=localhost:8125"],
            &["sweep", "--statsd-listen=[::1]:0", "--slots=4", "--url=http://127.0.0.1:9/x", "--", "falcon"],
            &["sweep", "--slots=4", "--url=http://127.0.0.1:9/x", "--", "falcon", "serve", "-n", "4"],
        ];
        for words in cases {
            let asked = plan(words).unwrap();
            let printed = asked.arguments();
            let again = plan(&printed.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(again.as_ref(), Ok(&asked), "{printed:?}");
        }
    }

    #[test]
    fn rails_is_asked_in_milliseconds() {
        let path = |words: &[&str]| plan(words).unwrap().stream.target_path();
        assert_eq!(path(&["sweep", "--app=rails"]), "/sleep?ms=100");
        assert_eq!(path(&["sweep", "--app=rails", "-d1.1"]), "/sleep?ms=1100");
        assert_eq!(path(&["sweep", "--app=rails", "-d1500us"]), "/sleep?ms=1.5");
        assert_eq!(path(&["sweep", "--app=rails", "--path=/x"]), "/x");
        assert_eq!(path(&["sweep", "--app=sleep"]), "/sleep0.1");
    }

    #[test]
    fn a_kind_of_socket_has_the_names_of_pumas_scripts() {
        for (word, socket) in [("tcp", Socket::Tcp4), ("ssl", Socket::Ssl4), ("ssl6", Socket::Ssl6)] {
            assert_eq!(plan(&["sweep", "-s", word]).unwrap().server.socket, socket);
        }
    }

    #[test]
    fn every_mistake_is_one_line() {
        let cases: [(&[&str], &str); 34] = [
            (&["sweep", "--body=s"], "s10"),
            (&["sweep", "--body=z10"], "no kind of body"),
            (&["sweep", "--body=s10", "--path=/x"], "cannot be used with"),
            (&["sweep", "--body=s10", "--server=builtin"], "--body is for Puma"),
            (&["sweep", "--connections=0"], "--connections"),
            (&["sweep", "--body=s10", "-r", "x.ru", "--with=wrk"], "--with wrk asks for a path alone"),
            (&["sweep", "--connections=5", "--multiples=2"], "cannot be used with"),
            (&["sweep", "-t5:2"], "MIN:MAX"),
            (&["sweep", "-wmany"], "-w"),
            (&["sweep", "-dfast"], "write 200ms"),
            (&["sweep", "--multiples=0"], "no connection"),
            (&["sweep", "--multiples=two"], "--multiples"),
            (&["sweep", "--mutiples=2"], "--multiples"),
            (&["sweep", "-R0"], "--requests-per-connection"),
            (&["sweep", "-R5", "--for=3s"], "cannot be used with"),
            (&["sweep", "--for=0"], "--for"),
            (&["sweep", "--path=posts"], "--path"),
            (&["sweep", "-sssl9"], "tcp4"),
            (&["sweep", "-sssl4", "--server=builtin"], "--server builtin listens on tcp4 or tcp6"),
            (&["sweep", "-saunix", "--slots=1", "--url=http://127.0.0.1:9/", "--", "x"], "-s aunix is for Puma"),
            (&["sweep", "--app=rack"], "rails"),
            (&["sweep", "--app=rails", "-r", "x.ru"], "cannot be used with"),
            (&["sweep", "--app=rails", "--server=builtin"], "Puma's"),
            (&["sweep", "--app=rails", "--slots=1", "--url=http://127.0.0.1:9/", "--", "x"], "--app"),
            (&["sweep", "--slots=3"], "-- COMMAND"),
            (&["sweep", "--", "falcon"], "--slots"),
            (&["sweep", "--server=builtin", "-Y"], "Puma's"),
            (&["sweep", "--with=siege"], "--with"),
            (&["sweep", "--with=wrk", "-sunix"], "--with wrk: it knows no Unix socket"),
            (&["sweep", "--with=wrk", "-R100"], "--with wrk: it cannot give each connection -R requests"),
            (&["sweep", "--with=wrk", "--for=1500ms"], "--for wants whole seconds"),
            (&["sweep", "--with=wrk2"], "--with wrk2: it has no closed loop"),
            (&["sweep", "--with=h2load", "-k"], "leave out -k"),
            (&["sweep", "--with=hey", "--columns=puma"], "--columns puma"),
        ];
        for (words, part) in cases {
            let line = plan(words).unwrap_err();
            assert!(line.contains(part) && !line.contains('\n'), "{words:?}: {line}");
        }
    }
}
