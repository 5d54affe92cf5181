//! Flags of `longtail signals`.

use std::path::PathBuf;

use clap::Args;
use model::{CapacityTarget, Compare, Nanos, Objective, ObjectiveFigure};
use sweep::SignalsPlan;

use super::ADVANCED;
use super::capacity::of_searches;
use super::event::ControlArgs;
use super::server::ServerArgs;
use super::value_parsers::above_zero;
use crate::exit::{Mistake, refuse_if, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail signals -w2 -t5:5 -r config.ru --objective 'p99 < 200ms'    your own app on Puma, 15 minutes of load
  longtail signals --budget 30m --interval 15s http://127.0.0.1:9292/    a server that runs already, as a scraper sees it that reads every 15 s
  longtail signals --control-url tcp://127.0.0.1:9293 --control-token secret http://127.0.0.1:9292/    with Puma's own numbers

It drives the server into overload for a while: use one that nobody else needs. What it found is kept: longtail watch --signals
shows these numbers of a running server beside the thresholds.";

/// Flags of `longtail signals`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SignalsArgs {
    /// Of a server that runs already; without it longtail starts one
    #[arg(value_name = "URL", help_heading = "Server")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// What must hold: 'p99 < 200ms'
    #[arg(long, value_name = "LIMIT", default_value = "p99 < 200ms", help_heading = "Signals")]
    pub(crate) objective: Objective,
    /// How long all of it takes: two fifths to find the capacity at most, the rest to load it up and down
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = above_zero, help_heading = "Signals")]
    pub(crate) budget: Nanos,
    /// How often a scraper reads the numbers
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = above_zero, help_heading = "Signals")]
    pub(crate) interval: Nanos,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Also write the JSON into this file, for longtail watch --signals=FILE
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) file: Option<PathBuf>,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED)]
    seed: u64,
    /// Of a server that runs already: header, `Name: value`; @FILE has many
    #[arg(short = 'H', long = "header", value_name = "LINE", help_heading = ADVANCED)]
    headers: Vec<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// The help of `signals` on a screen.
pub(crate) fn as_signals(command: clap::Command) -> clap::Command {
    of_searches(command, &["url", "command", "socket"])
}

impl SignalsArgs {
    /// Refuses flags with which no signals can be found.
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        refuse_if(
            self.server.inspect.is_given(),
            "--inspect is for sweep: longtail signals reads what a scraper can read, and the app's own times",
        )?;
        let is_percentile = matches!(self.objective.figure, ObjectiveFigure::ResponseTime(_))
            && self.objective.compare == Compare::Below;
        let refused = sweep::check_objective(self.objective).err();
        refuse_if(
            !is_percentile || refused.is_some(),
            format_args!(
                "--objective '{}': signals are held against a percentile, such as 'p99 < 200ms'",
                self.objective
            ),
        )?;
        let shortest = SignalsPlan::shortest_budget(self.interval);
        refuse_if(
            self.budget < shortest,
            format_args!(
                "--budget {} is too short to find the capacity and read each step twice every {}: give at least {shortest}, or a shorter --interval",
                self.budget, self.interval
            ),
        )
    }

    /// What is done with this server.
    pub(crate) fn plan(&self, target: CapacityTarget) -> SignalsPlan {
        SignalsPlan {
            target,
            objective: self.objective,
            budget: self.budget,
            interval: self.interval,
            seed: self.seed,
            control: None,
        }
    }

    /// The words of the `longtail load` on a server that runs already, whose pace is replaced.
    pub(crate) fn words_of_load(&self, url: &str) -> Vec<String> {
        let mut words = self.server.words_of_load();
        words.push("--max-connections=1000".to_owned());
        words.push(format!("--header={}: 1", model::app_time::STAMPS));
        words.extend(self.headers.iter().map(|line| format!("--header={line}")));
        words.push(url.to_owned());
        words
    }

    /// Refuses flags of a server that runs already.
    pub(crate) fn refuse_flags_of_running_servers(&self) -> Result<(), Mistake> {
        if !self.headers.is_empty() || self.control.is_given() {
            return Err(wrong(
                "-H, --state, --control-url and --control-token are for a server that runs already: give its URL, such as http://127.0.0.1:9292/",
            ));
        }
        Ok(())
    }
}
