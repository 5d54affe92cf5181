//! `longtail signals`: which of a server's numbers tells first that it is full.

use std::path::PathBuf;

use clap::Args;
use engine::Resolver;
use model::{Compare, Nanos, Objective, ObjectiveFigure};
use report::{SignalsHead, SignalsSummary, signals_text};
use sweep::{SignalsEnd, SignalsPlan, conduct_signals};
use watch::StatisticsSource;

use super::conducted::StudyStart;
use super::load_words;
use crate::args::event::control_source;
use crate::args::value_parsers::above_zero;
use crate::args::{ADVANCED, LoadArgs};
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::load::prepare;
use crate::progress::ProgressDisplay;
use crate::{secrets, signals, ui};

const EXAMPLES: &str = "\
Examples:
  longtail signals --objective 'p99 < 200ms' http://127.0.0.1:9292/    3 minutes of load on a server that runs already
  longtail signals --budget 10m --interval 15s http://127.0.0.1:9292/    as a scraper sees it that reads every 15 s
  longtail signals --control-url tcp://127.0.0.1:9293 --control-token secret http://127.0.0.1:9292/    with Puma's own numbers

It drives the server into overload for a while: use a server that nobody else needs.";

/// Flags of `longtail signals`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SignalsArgs {
    /// Of a server that runs already
    #[arg(value_name = "URL", help_heading = "Server")]
    target: String,
    /// What must hold: 'p99 < 200ms'
    #[arg(long, value_name = "LIMIT", default_value = "p99 < 200ms", help_heading = "Load")]
    objective: Objective,
    /// How long all of it takes
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = above_zero, help_heading = "Load")]
    budget: Nanos,
    /// How often a scraper reads the numbers
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero, help_heading = "Load")]
    interval: Nanos,
    /// Print JSON
    #[arg(long, help_heading = "Answer")]
    json: bool,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED)]
    seed: u64,
    /// Header, `Name: value`; @FILE has many
    #[arg(short = 'H', long = "header", value_name = "LINE", help_heading = ADVANCED)]
    headers: Vec<String>,
    /// A new connection for each request
    #[arg(short = 'k', long, help_heading = ADVANCED)]
    no_keep_alive: bool,
    /// Puma's state file [default: looked for where Puma runs]
    #[arg(long, value_name = "FILE", conflicts_with = "control_url", help_heading = ADVANCED)]
    state: Option<PathBuf>,
    #[arg(long, value_name = "URL", help_heading = ADVANCED, help = "Puma's control server: tcp://HOST:9293 or unix:///PATH")]
    control_url: Option<String>,
    /// Token of the control server
    #[arg(long, value_name = "TOKEN", requires = "control_url", help_heading = ADVANCED)]
    control_token: Option<String>,
}

/// Loads the server up and down, and prints what its numbers told.
///
/// # Errors
/// If a flag is wrong, or the load cannot be sent.
pub(crate) fn run(args: &SignalsArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    let late_after = args.late_after()?;
    let shortest = SignalsPlan::shortest_budget(args.interval);
    refuse_if(
        args.budget < shortest,
        format_args!(
            "--budget {} is too short to read each step twice every {}: give at least {shortest}, or a shorter --interval",
            args.budget, args.interval
        ),
    )?;
    let load = args.load()?;
    let resolver = load.resolver(resolver);
    let start = StudyStart::now()?;
    let prepared = prepare(&load, &resolver, &start.clock, None)?;
    let named = control_source(
        args.state.as_deref(),
        args.control_url.as_deref(),
        args.control_token.as_deref(),
        &resolver,
    )?;
    let source = named.or_else(|| StatisticsSource::of_processes(&prepared.serving, &resolver));
    let plan = SignalsPlan {
        late_after,
        allowed: args.allowed(),
        budget: args.budget,
        interval: args.interval,
        seed: args.seed,
        control: source.map(|source| source.control),
    };
    let context = start.context(secrets::command_line(), resolver);
    let display = ProgressDisplay::new();
    signals::begin();
    let found = conduct_signals(&prepared, &plan, &context, &mut |phase| display.phase(phase))?;
    drop(display);
    let outcome = match found {
        SignalsEnd::Found(outcome) => outcome,
        SignalsEnd::Interrupted => {
            ui::note("interrupted: the signals need the whole load, so there is nothing to report");
            return Ok(Exit::Interrupted);
        }
        SignalsEnd::ServerGone => {
            ui::note(
                "nothing listens any more: the objective broke because the server ended, so there is nothing to report",
            );
            return Ok(Exit::Invalid);
        }
    };
    let head = SignalsHead {
        url: prepared.plan.url.to_string(),
        objective: args.objective.to_string(),
        highest_rate: outcome.highest_rate,
        step: outcome.step,
        interval: args.interval,
        doubt: outcome.doubt.clone(),
    };
    if args.json {
        ui::print_json(&SignalsSummary::of(&head, &outcome.found));
    } else {
        ui::print(&signals_text(&head, &outcome.found, ui::terminal_width()));
    }
    Ok(Exit::Fine)
}

impl SignalsArgs {
    /// The time after which a request is late.
    fn late_after(&self) -> Result<Nanos, Mistake> {
        match self.objective.figure {
            ObjectiveFigure::ResponseTime(_)
                if self.objective.compare == Compare::Below && self.objective.part.is_none() =>
            {
                Ok(Nanos(self.objective.limit as u64))
            }
            _ => Err(wrong(format!(
                "--objective '{}': signals are held against a percentile, such as 'p99 < 200ms'",
                self.objective
            ))),
        }
    }

    /// The share of requests that may be late.
    fn allowed(&self) -> f64 {
        match self.objective.figure {
            ObjectiveFigure::ResponseTime(quantile) => 1.0 - quantile,
            _ => 0.0,
        }
    }

    /// The load, whose pace the steps replace.
    fn load(&self) -> Result<LoadArgs, Mistake> {
        let mut words: Vec<String> = ["--rate=1/s", "--arrivals=poisson"].map(str::to_owned).into();
        words.extend(self.headers.iter().map(|line| format!("--header={line}")));
        if self.no_keep_alive {
            words.push("--no-keep-alive".to_owned());
        }
        words.push(self.target.clone());
        load_words(words)
    }
}
