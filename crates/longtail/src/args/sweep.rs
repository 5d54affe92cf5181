//! Flags of `longtail sweep`, Puma's own words among them, and its help; what they mean together: `sweep/plan.rs`.

mod plan;
#[cfg(test)]
mod tests;

use clap::{Args, ValueEnum};
use model::{Body, Nanos};

use super::conduct::ConductArgs;
use super::inspect::InspectArgs;
use super::server::{PumaArgs, ServerWord, SocketWord};
use super::timestamps::TimestampsWord;
use super::{OutletArgs, OutputArgs};
use crate::generators::Generator;

/// The apps that longtail brings.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum AppWord {
    /// Rack alone: /sleep0.1 sleeps 0.1 s
    Sleep,
    /// An API in Rails, in production mode: /sleep?ms=100
    Rails,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  longtail sweep -w2 -t5:5 -d0.1                    two workers of five threads, an app that sleeps 100 ms
  longtail sweep -w4 -t5:5 -R100 -d0.2 --style puma    as benchmarks/local/long_tail_hey.sh
  longtail sweep -w2 -t5:5 -d0.1 -k                 a new connection for each request
  longtail sweep -w2 -t5:5 -s ssl4                  over TLS; -s unix and aunix: over a Unix socket
  longtail sweep -t5:5 -d1 --app rails              a small Rails app that sleeps 1 s
  longtail sweep -w2 -t5:5 --body s10 --connections 16,20,64    answers of 10 kB
  longtail sweep -r config.ru --path /posts         your app; its service time is measured first
  longtail sweep -w2 -t5:5 -d0.1 --probe-discipline       who waits for whom, with keep-alive and without?
  longtail sweep -w4 -t5:5 -R100 -d0.2 --generator hey   hey makes the load, as in Puma's script; --generator wrk: wrk
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app       where the response time went: accept queue, server, app
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app,kernel    the same, each part by the kernel's own stamps (as root)
  longtail sweep -w2 -t5:5 --inspect none           server and kernel are left alone
  longtail sweep -w2 -t5:5 -C puma.rb --statsd-listen 127.0.0.1:8125    what puma-plugin-statsd and the app say meanwhile
  longtail sweep -w2 -t5:5 --metrics 127.0.0.1:9464 --metrics-linger 30s    for Prometheus to scrape, at /metrics
  longtail sweep -w2 -t5:5 --statsd-to 127.0.0.1:8125 --otlp http://127.0.0.1:4318    figures for an agent, a collector
  longtail sweep -w2 -t5:5 --width 100 | tee sweep.txt    fit for 100 columns, in a pipe too
  longtail sweep --slots 4 --url http://127.0.0.1:9292 -- falcon serve -n4 -b http://127.0.0.1:9292
  longtail sweep -w2 -t5 --url http://127.0.0.1:8000 -- gunicorn -w2 --threads 5 app:app    workers and threads are known

Environment: PUMA_TEST_HOST4, PUMA_TEST_HOST6, PUMA_TEST_PORT and PUMA_TEST_CTRL choose where Puma listens, as in
Puma's own scripts; without them free ports are taken.";

/// Flags of `longtail sweep`.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) puma: PumaArgs,
    /// Which app that longtail brings [default: sleep]
    #[arg(long, value_enum, value_name = "APP", conflicts_with = "rackup", help_heading = "Server")]
    app: Option<AppWord>,
    /// Kind of socket to bind
    #[arg(short, long, value_enum, default_value_t, help_heading = "Server")]
    socket: SocketWord,
    /// Which server to start
    #[arg(long, value_enum, default_value_t, help_heading = "Server")]
    server: ServerWord,
    /// What another server (after --) can process at once [default: -w x -t]
    #[arg(long, value_name = "N", help_heading = "Server", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// Where another server (after --) will answer
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Option<String>,
    /// Any other server: its command, with --url, and -w and -t or --slots
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
    #[command(flatten)]
    pub(crate) conduct: ConductArgs,
    /// Before the sweep, a short load with keep-alive and one without at 3 x the slots: who waits for whom?
    #[arg(long, conflicts_with_all = ["generator", "body"], help_heading = "Stream of requests")]
    probe_discipline: bool,
    /// Whose clock says when an answer came
    #[arg(long, value_enum, default_value_t, help_heading = "Stream of requests")]
    timestamps: TimestampsWord,
    /// Another generator on PATH makes the load, and its claims are reported as its own: wrk, hey, ab, h2load, oha,
    /// bombardier
    #[arg(
        long,
        alias = "with",
        value_enum,
        value_name = "TOOL",
        hide_possible_values = true,
        help_heading = "Stream of requests"
    )]
    pub(crate) generator: Option<Generator>,
    #[command(flatten)]
    inspect: InspectArgs,
    #[command(flatten)]
    pub(crate) outlets: OutletArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
