//! Flags of `longtail sweep`, Puma's own words among them; what they mean together: `sweep/plan.rs`, and of a sweep over
//! bodies, which was the command `bodies` before, `sweep/bodies.rs`.

mod bodies;
mod plan;
#[cfg(test)]
mod tests;

use clap::Args;
use model::{Bodies, Nanos};

use super::ADVANCED;
use super::limits::{CONNECTIONS, above_zero, from_1_to, multiple};
use super::server::{ServerArgs, server_command};
use super::{OutletArgs, OutputArgs, ThresholdArgs};
use crate::generators::Generator;
use crate::mistake::{Mistake, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail sweep -w2 -t5:5 -d0.1                    2 workers x 5 threads, a sleep of 100 ms
  longtail sweep -r config.ru --path /posts         your own app; its service time is measured first
  longtail sweep -w2 -t5 --url http://127.0.0.1:8000 -- gunicorn -w2 --threads 5 app:app
  longtail sweep -w2 -t5:5 -d0.1 -k                 a new connection for each request
  longtail sweep -w2 -t5:5 -s ssl4                  over TLS; -s unix and aunix: over a Unix socket
  longtail sweep -w2 -t5:5 -c 16,20,64              numbers of connections in place of multiples
  longtail sweep -t5:5 -d1 --app rails              a small Rails app that sleeps 1 s
  longtail sweep -w2 -t5:5 --bodies acsi1,10,100 -s tcp4,unix    what each response body costs on each socket
  longtail sweep -w4 -t5:5 -R100 -d0.2 --style puma    the columns of benchmarks/local/long_tail_hey.sh
  longtail sweep -w4 -t5:5 -R100 -d0.2 --generator hey    hey makes the load, as in Puma's script
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app   where the time went: accept queue, server, app
  longtail sweep -w2 -t5:5 -d0.1 -k --inspect app,kernel    the same, with the kernel's own timestamps (as root)
  longtail sweep -w2 -t5:5 -d0.1 --probe-discipline    in which order does it serve, with keep-alive and without?
  longtail sweep -w2 -t5:5 -C puma.rb --statsd-listen 127.0.0.1:8125    what puma-plugin-statsd and the app send
  longtail sweep -w2 -t5:5 --metrics 127.0.0.1:9464 --metrics-linger 30s    for Prometheus to scrape, at /metrics
  longtail sweep --slots 4 --url http://127.0.0.1:9292 -- falcon serve -n4 -b http://127.0.0.1:9292

Environment: PUMA_TEST_HOST4, PUMA_TEST_HOST6, PUMA_TEST_PORT and PUMA_TEST_CTRL choose where Puma listens, as in
Puma's own scripts; without them free ports are used.";

/// Flags of `longtail sweep`.
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Connections of each step, in workers x threads [default: 1,1.5,2,3,4]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = multiple, help_heading = "Load")]
    multiples: Vec<f64>,
    /// Connections of each step, in place of --multiples
    #[arg(
        short,
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = from_1_to(CONNECTIONS),
        conflicts_with = "multiples",
        help_heading = "Load"
    )]
    connections: Vec<u32>,
    /// Length of each step, after a warm-up of 1s
    #[arg(
        short = 'z',
        long = "for",
        short_alias = 'D',
        id = "length",
        value_name = "TIME",
        default_value = "10s",
        value_parser = above_zero,
        help_heading = "Load"
    )]
    length: Nanos,
    /// End each step by count instead: N requests on each connection, as in Puma's scripts
    #[arg(short = 'R', long, value_name = "N", conflicts_with = "length", help_heading = ADVANCED,
          value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,
    /// Do all steps N times, each time on a fresh server
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load", value_parser = from_1_to(1000))]
    repeat: u32,
    /// Steps of response bodies: array, chunked, string, i (file); sizes in kB
    #[arg(short, long, value_name = "LIST", help_heading = "Load")]
    bodies: Option<Bodies>,
    /// Which is best? Workers x threads, such as 2x3,4x5,4x5k (k is -k)
    #[arg(
        long = "try",
        value_name = "LIST",
        conflicts_with_all = ["multiples", "repeat", "bodies", "generator", "requests_per_connection", "probe_discipline"],
        help_heading = "Load"
    )]
    tries: Option<String>,
    /// wrk, hey, ab, h2load, oha or bombardier makes the load, and is audited
    #[arg(long, alias = "with", conflicts_with = "from", value_enum, value_name = "TOOL", help_heading = "Load")]
    pub(crate) generator: Option<Generator>,

    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Load before each step, not measured; less where the server is warm [default: 1s, or none with -R]
    #[arg(long, value_name = "TIME", help_heading = ADVANCED)]
    warm_up: Option<Nanos>,
    /// Before the sweep, find out in which order the server serves, with keep-alive and without
    #[arg(long, conflicts_with_all = ["generator", "body"], help_heading = ADVANCED)]
    probe_discipline: bool,
    /// Do not wait between steps until the server is idle
    #[arg(long, help_heading = ADVANCED)]
    no_cool_down: bool,
    /// Do not measure the generator's own limit first (once a day)
    #[arg(long, help_heading = ADVANCED)]
    no_calibrate: bool,
    /// With --try: blocks, each with every size once [default: 8 to 20, until it is clear]
    #[arg(long, value_name = "N", requires = "tries", help_heading = ADVANCED, value_parser = from_1_to(1000))]
    blocks: Option<u32>,
    /// With --bodies: chooses the order of the steps [default: 1]
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    seed: Option<u64>,
    #[command(flatten)]
    pub(crate) outlets: OutletArgs,

    /// With --bodies, in the words of response_time_wrk.sh: streams [default: 80 % of workers x threads, at least 1]
    #[arg(short = 'T', long, value_name = "N", hide = true, value_parser = from_1_to(10_000))]
    streams: Option<u32>,
    /// And connections of each stream
    #[arg(long, value_name = "N", hide = true, conflicts_with = "connections", value_parser = from_1_to(100_000))]
    connections_per_stream: Option<u32>,
}

impl SweepArgs {
    /// The words of the comparison that `--try` is, where it is given among `words`.
    ///
    /// # Errors
    /// Where its list is none.
    pub(super) fn as_comparison(&self, words: &[String]) -> Result<Option<Vec<String>>, Mistake> {
        let Some(list) = &self.tries else { return Ok(None) };
        let arms = try_list(list)?;
        if arms.len() < 2 {
            return Err(wrong(format!(
                "--try '{list}' has nothing to be compared with: name two or more, such as --try {list},4x5"
            )));
        }
        let mut words = words.to_vec();
        let command = server_command(&mut words);
        words.iter_mut().find(|word| *word == "sweep").into_iter().for_each(|name| "compare".clone_into(name));
        match words.iter().position(|word| word == "--try") {
            Some(at) => drop(words.drain(at..at + 2)),
            None => words.retain(|word| !word.starts_with("--try=")),
        }
        words.extend(["--best", "--no-control"].map(str::to_owned));
        words.extend(arms.into_iter().map(|arm| format!("--arm={arm}")));
        words.extend(command);
        Ok(Some(words))
    }

    /// Whether each step has a body of its own.
    pub(crate) fn has_bodies(&self) -> bool {
        self.bodies.is_some()
    }
}

/// The command that `sweep --bodies` was before: its `-c` is of each stream, and its bodies have a default.
pub(super) fn as_bodies(command: clap::Command) -> clap::Command {
    command
        .mut_arg("bodies", |arg| arg.default_value("acsi1,10,100,256,512,1024,2048"))
        .mut_arg("connections", |arg| arg.short(None).long("total-connections"))
        .mut_arg("connections_per_stream", |arg| arg.short('c').long("connections"))
}

/// The arms of `sweep --try 2x3,4x5,4x5k`: workers x threads, without keep-alive where a k stands behind them.
///
/// # Errors
/// Where one of them is none.
fn try_list(list: &str) -> Result<Vec<String>, Mistake> {
    let bad = |word: &str| {
        wrong(format!("--try '{word}': write WORKERSxTHREADS, with a k for no keep-alive, such as 2x3,4x5,4x5k"))
    };
    let arm = |word: &str| {
        let (size, keep_alive) = word.strip_suffix('k').map_or((word, ""), |size| (size, " -k"));
        let (workers, threads) = size.split_once('x').ok_or_else(|| bad(word))?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| bad(word));
        let (workers, threads) = (number(workers)?, number(threads)?);
        if threads == 0 {
            Err(bad(word))
        } else {
            Ok(format!("{workers} x {threads}{keep_alive}=-w{workers} -t{threads}:{threads}{keep_alive}"))
        }
    };
    list.split(',').map(arm).collect()
}
