//! `longtail capacity`: the highest rate at which objectives hold, of a server that runs already or
//! that longtail starts.

use std::path::PathBuf;

use clap::Args;
use engine::Resolver;
use model::{
    CapacityExpectation, CapacityPlan, CapacityTarget, Nanos, Objective, RetryPolicy, ServerSize,
    Stop,
};
use sweep::{Context, conduct_capacity, conduct_capacity_of, conduct_sizes};

use super::conducted::{
    StudyStart, TerminalObserver, bind_for_remote_generators, fall_back_to_builtin,
};
use super::load_words;
use crate::args::output::StudyKind;
use crate::args::server::{ONE_RUNS_ALREADY, ServerArgs, addresses, tried_sizes, with_environment};
use crate::args::{ADVANCED, LoadArgs, OutputArgs};
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::load::prepare;
use crate::results::Results;
use crate::{secrets, signals};

/// Searches, shows the bracket as it narrows, and saves the study.
///
/// # Errors
/// If a flag is wrong, the server does not work, or the study cannot be saved.
pub(crate) fn run(args: &CapacityArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Capacity)?;
    refuse_if(
        args.server.inspect.is_given(),
        "--inspect is for sweep: longtail capacity reads the server's CPU alone",
    )?;
    for objective in &args.objective {
        sweep::check_objective(*objective).map_err(|why| wrong(format!("--objective {why}")))?;
    }
    match &args.target {
        Some(url) => run_on(args, url, resolver),
        None => run_started(args, resolver),
    }
}

/// Searches on a server that runs already.
fn run_on(args: &CapacityArgs, url: &str, resolver: Resolver) -> Result<Exit, Mistake> {
    args.refuse_server_flags()?;
    let load = args.load(url)?;
    let resolver = load.resolver(resolver);
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    let prepared = prepare(&load, &resolver, &start.clock, start.far.as_ref())?;
    let plan = args.plan(CapacityTarget::Running(Box::new(prepared.plan.clone())));
    let results = Results::open("capacity", &start.started_at, &args.output)?;
    let context = start.context(secrets::command_line(), resolver);
    let mut observer = TerminalObserver::new(&results, None);
    signals::begin();
    let study = conduct_capacity_of(&prepared, &plan, &context, &mut observer);
    observer.publish(study)
}

/// Searches on a server that longtail starts.
fn run_started(args: &CapacityArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.refuse_request_flags()?;
    args.server.puma.check()?;
    let sizes = args.sizes()?;
    let mut server = args.server.server()?;
    let stream = args.server.stream(Stop::After(Nanos::from_secs(10)), None)?;
    let addresses = addresses()?;
    let stand_in = if fall_back_to_builtin(&mut server)? { " --server builtin" } else { "" };
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    bind_for_remote_generators(&mut server, start.far.as_ref());
    let target = CapacityTarget::Started { server: Box::new(server), stream: Box::new(stream) };
    let plan = CapacityPlan { sizes, ..args.plan(target) };
    let results = Results::open("capacity", &start.started_at, &args.output)?;
    let line = with_environment(&format!("{}{stand_in}", secrets::command_line()), None);
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        ..start.context(line, resolver)
    };
    let mut observer = TerminalObserver::new(&results, None);
    signals::begin();
    let study = if plan.sizes.is_empty() {
        conduct_capacity(&plan, &context, &mut observer)
    } else {
        conduct_sizes(&plan, &context, &mut observer)
    };
    observer.publish(study)
}

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
    target: Option<String>,
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
    fn plan(&self, target: CapacityTarget) -> CapacityPlan {
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

    /// The load on a server that runs already, whose pace each trial replaces.
    fn load(&self, url: &str) -> Result<LoadArgs, Mistake> {
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
        load_words(words)
    }

    /// The sizes of `--try`; none without it.
    fn sizes(&self) -> Result<Vec<ServerSize>, Mistake> {
        let Some(list) = &self.tries else { return Ok(Vec::new()) };
        refuse_if(
            self.server.puma.size().is_some() || !self.server.command.is_empty(),
            "--try sets workers and threads: leave out -w, -t and -- COMMAND",
        )?;
        tried_sizes(list)
    }

    /// Refuses flags of a server to be started where one runs already.
    fn refuse_server_flags(&self) -> Result<(), Mistake> {
        self.server.refuse_to_start_one()?;
        refuse_if(self.tries.is_some(), ONE_RUNS_ALREADY)
    }

    /// Refuses flags of requests to a server that runs already.
    fn refuse_request_flags(&self) -> Result<(), Mistake> {
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
