//! Flags of `longtail capacity`.

use std::path::PathBuf;

use clap::Args;
use model::{
    CapacityExpectation, CapacityPlan, CapacityTarget, Nanos, Objective, RetryPolicy, ServerSize,
};

use super::server::{ONE_RUNS_ALREADY, ServerArgs, tried_sizes};
use super::{ADVANCED, OutputArgs};
use crate::exit::{Mistake, refuse_if, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail capacity --objective 'p99 < 200ms' http://127.0.0.1:3000/    a server that runs already
  longtail capacity -w2 -t5:5 -r config.ru --objective 'p99 < 200ms'    your own app on Puma
  longtail capacity -w2 -t5:5 -d0.05 --objective 'p99 < 200ms' --objective 'failed < 0.1%'
  longtail capacity --budget 5m --beyond 1.5x,2x http://127.0.0.1:3000/    and what happens at twice the load?
  longtail capacity --budget 5m --beyond 2x --timeout 1s --retry 3:200ms http://127.0.0.1:3000/    if clients come again?
  longtail capacity --try 2x1,2x3,2x5 -r config.ru --budget 10m    3 or 5 threads?
  longtail capacity --budget 5m --expect 'capacity > 180/s' http://127.0.0.1:3000/    for CI: exit 1 if it is less

It searches in an open loop with random (Poisson) arrivals. A rate passes or fails only by evidence: the answer is two
rates, between which the capacity lies (95 %).";

/// Flags of `longtail capacity`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CapacityArgs {
    /// Of a server that runs already; without it longtail starts one
    #[arg(value_name = "URL", help_heading = "Server")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// What must hold: 'p99 < 200ms', 'failed < 0.1%'; repeatable
    #[arg(long, value_name = "LIMIT", default_value = "p99 < 200ms", help_heading = "Search")]
    objective: Vec<Objective>,
    /// How narrow the bracket is to be
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = precision, help_heading = "Search")]
    precision: f64,
    /// The longest that the search may take
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = budget, help_heading = "Search")]
    budget: Nanos,
    /// Then offer a multiple of what it takes, such as 1.5x,2x, and see whether it recovers
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = times, help_heading = "Search")]
    beyond: Vec<f64>,
    /// With --beyond: clients send a failed request again, such as 3, or 3:1s with a pause
    #[arg(long, value_name = "N[:PAUSE]", requires = "beyond", help_heading = "Search")]
    retry: Option<RetryPolicy>,
    /// How many threads? Searches for each size, workers x threads, such as 2x3,4x5,4x5k (k is -k)
    #[arg(long = "try", value_name = "LIST", conflicts_with_all = ["beyond", "expect"], help_heading = "Search")]
    tries: Option<String>,
    /// Exit with 1 unless this is certain: 'capacity > 180/s'
    #[arg(long, value_name = "LIMIT", help_heading = "Search")]
    expect: Vec<CapacityExpectation>,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED)]
    seed: u64,

    /// Of a server that runs already: header, `Name: value`; @FILE has many
    #[arg(short = 'H', long = "header", value_name = "LINE", help_heading = ADVANCED)]
    headers: Vec<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "NAME", help_heading = ADVANCED)]
    method: Option<String>,
    /// Body of each request
    #[arg(long, value_name = "TEXT", help_heading = ADVANCED)]
    data: Option<String>,
    /// Different requests from a file
    #[arg(long, value_name = "FILE", conflicts_with = "mix", help_heading = ADVANCED)]
    requests: Option<PathBuf>,
    /// Connect to a Unix socket; @NAME for an abstract one
    #[arg(long, value_name = "PATH", help_heading = ADVANCED)]
    unix: Option<String>,
    /// Accept any certificate
    #[arg(long, help_heading = ADVANCED)]
    insecure: bool,
    /// Most connections
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = ADVANCED,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Reads `--precision`: from 1 % to 50 %.
fn precision(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match percent {
        Ok(percent) if (1.0..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give 1% to 50%, such as 5%".to_owned()),
    }
}

/// Reads a multiple of the capacity.
fn times(text: &str) -> Result<f64, String> {
    match text.strip_suffix('x').unwrap_or(text).trim().parse::<f64>() {
        Ok(times) if times > 1.0 && times <= 10.0 => Ok(times),
        _ => Err("give multiples of the capacity from 1.1x to 10x, such as 1.5x,2x".to_owned()),
    }
}

/// The shortest search: a closed loop, and two trials.
const SHORTEST: Nanos = Nanos::from_secs(20);

/// Reads `--budget`.
fn budget(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse()?;
    if time >= SHORTEST { Ok(time) } else { Err(format!("give at least {SHORTEST}, such as 15m")) }
}

/// The help of `capacity` on a screen.
pub(crate) fn as_capacity(command: clap::Command) -> clap::Command {
    of_searches(command, &["url", "command", "socket", "csv", "html"])
}

/// The help of a command that searches: flags that it shares with `sweep` and are rare here stand
/// among the advanced ones, and `--inspect`, which it refuses, is left out.
pub(crate) fn of_searches(command: clap::Command, rare: &[&str]) -> clap::Command {
    let command = rare
        .iter()
        .fold(command, |command, id| command.mut_arg(*id, |arg| arg.help_heading(ADVANCED)));
    command.mut_arg("inspect", |arg| arg.hide(true))
}

impl CapacityArgs {
    /// Refuses what no search can do.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        refuse_if(
            self.server.inspect.is_given(),
            "--inspect is for sweep: longtail capacity reads the server's CPU alone",
        )?;
        for objective in &self.objective {
            sweep::check_objective(*objective)
                .map_err(|why| wrong(format!("--objective {why}")))?;
        }
        Ok(())
    }

    /// The search that these flags describe, of a server of one size.
    pub(crate) fn plan(&self, target: CapacityTarget) -> CapacityPlan {
        CapacityPlan {
            target,
            objectives: self.objective.clone(),
            precision: self.precision,
            budget: self.budget,
            seed: self.seed,
            expected: self.expect.clone(),
            beyond: self.beyond.clone(),
            sizes: Vec::new(),
            retry: self.retry,
        }
    }

    /// The words of the `longtail load` on a server that runs already, whose pace each trial replaces.
    pub(crate) fn words_of_load(&self, url: &str) -> Vec<String> {
        let mut words = self.server.words_of_load();
        words.push(format!("--max-connections={}", self.max_connections));
        words.extend(self.headers.iter().map(|line| format!("--header={line}")));
        words.extend(self.method.iter().map(|name| format!("--method={name}")));
        words.extend(self.data.iter().map(|text| format!("--data={text}")));
        words.extend(self.unix.iter().map(|path| format!("--unix={path}")));
        if let Some(file) = &self.requests {
            words.push(format!("--requests={}", file.display()));
        }
        if self.insecure {
            words.push("--insecure".to_owned());
        }
        words.push(url.to_owned());
        words
    }

    /// The sizes of `--try`; none without it.
    pub(crate) fn sizes(&self) -> Result<Vec<ServerSize>, Mistake> {
        let Some(list) = &self.tries else { return Ok(Vec::new()) };
        refuse_if(
            self.server.puma.size().is_some() || !self.server.command.is_empty(),
            "--try sets workers and threads: leave out -w, -t and -- COMMAND",
        )?;
        tried_sizes(list)
    }

    /// Refuses flags of a server to be started where one runs already.
    pub(crate) fn refuse_server_flags(&self) -> Result<(), Mistake> {
        self.server.refuse_to_start_one()?;
        refuse_if(self.tries.is_some(), ONE_RUNS_ALREADY)
    }

    /// Refuses flags of requests to a server that runs already.
    pub(crate) fn refuse_request_flags(&self) -> Result<(), Mistake> {
        let is_given = !self.headers.is_empty()
            || self.method.is_some()
            || self.data.is_some()
            || self.requests.is_some()
            || self.unix.is_some()
            || self.insecure;
        refuse_if(
            is_given,
            "-H, --method, --data, --requests, --unix and --insecure are for a server that runs already: give its URL, such as http://127.0.0.1:3000/",
        )
    }
}
