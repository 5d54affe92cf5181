//! Flags of `longtail predict`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use model::{DelayLaw, Nanos, Rate, Threads};
use queueing::prediction::{PredictedLoad, TimeGoal};

use super::ADVANCED;
use super::output::FormatArgs;
use super::value_parsers::{from_1_to, time_goal};

const EXAMPLES: &str = "\
Examples:
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s      random arrivals, 80 a second
  longtail predict -w4 -t5:5 --service 200ms -c 40            40 connections that never pause
  longtail predict -w4 --service 200ms --cpu 60ms --cpus 2    how many threads are worth it in Ruby
  longtail predict -w4 -t5:5 --service 200ms --rate 80/s --objective 'p99 < 2s' --plot
  longtail predict -w2 -t5:5 --service bimodal:1ms:50ms:0.02 --rate 2000/s --json
  longtail predict -w2 -t5:5 --service study.json --rate 40/s     the service time of a saved sweep

Laws of --service: 200ms, exp:5ms, uniform:1ms:9ms, bimodal:1ms:50ms:0.02, lognormal:5ms:0.8.
Shared: one queue for all workers, as in Puma up to 6 without keep-alive. Split: one for each worker, as in Puma 7.
Sends nothing to any server.";

/// Flags of `longtail predict`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PredictArgs {
    /// Worker processes
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = from_1_to(1000))]
    pub(crate) workers: u32,
    /// Threads of each worker; the larger number counts
    #[arg(short, long, value_name = "MIN:MAX", default_value = "5:5")]
    pub(crate) threads: Threads,
    /// How long a request holds a thread: 200ms, another law (see --help), or a sweep's study
    #[arg(long, value_name = "LAW|FILE")]
    pub(crate) service: ServiceWord,
    /// How much of that is CPU time, which only one thread of a worker gets at a time (Ruby's lock):
    /// how many threads are worth it?
    #[arg(long, value_name = "TIME")]
    pub(crate) cpu: Option<Nanos>,
    /// With --cpu: CPUs that the server has to itself, such as 2, or 0.5 of a quota [default: this
    /// machine's]
    #[arg(long, value_name = "N", requires = "cpu", value_parser = cpus)]
    pub(crate) cpus: Option<f64>,
    /// Open loop: random arrivals at this rate, such as 80/s
    #[arg(long, value_name = "RATE", conflicts_with = "connections")]
    rate: Option<Rate>,
    /// Closed loop: number of connections [default: twice the threads of all workers]
    #[arg(short, long, value_name = "N", value_parser = from_1_to(10_000))]
    connections: Option<u32>,
    /// Closed loop: pause between a response and the next request of that connection
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate")]
    think: Nanos,
    /// Open loop: find the highest rate that keeps 'p99 < 2s' or 'mean < 300ms'
    #[arg(long, value_name = "OBJECTIVE", value_parser = time_goal, requires = "rate", conflicts_with = "connections")]
    pub(crate) objective: Option<TimeGoal>,
    /// Open loop: plot p99 over the rate
    #[arg(long, requires = "rate", conflicts_with = "connections")]
    pub(crate) plot: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    /// Seed of the simulation [default: 1]
    #[arg(long, value_name = "N", help_heading = ADVANCED)]
    pub(crate) seed: Option<u64>,
}

/// Reads a number of CPUs, or the part of one that a quota leaves.
fn cpus(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(count) if (0.01..=10_000.0).contains(&count) => Ok(count),
        _ => Err("give a number of CPUs from 0.01 to 10000, such as 2 or 0.5".to_owned()),
    }
}

impl PredictArgs {
    /// The load to predict.
    pub(crate) fn load(&self) -> PredictedLoad {
        match self.rate {
            Some(rate) => PredictedLoad::Open(rate),
            None => PredictedLoad::Closed {
                connections: self.connections.unwrap_or(2 * self.workers * self.threads.max),
                think: self.think,
            },
        }
    }
}

/// Where the law of the service time comes from.
#[derive(Clone, Debug)]
pub(crate) enum ServiceWord {
    /// The user gave it.
    Law(DelayLaw),
    /// It is in this study.
    Study(PathBuf),
}

impl FromStr for ServiceWord {
    type Err = String;

    fn from_str(text: &str) -> Result<ServiceWord, String> {
        match text.parse() {
            Ok(law) => Ok(ServiceWord::Law(law)),
            // What looks like a path is meant as a file.
            Err(_)
                if text.contains('/')
                    || Path::new(text).extension().is_some_and(|end| end == "json") =>
            {
                Ok(ServiceWord::Study(PathBuf::from(text)))
            }
            Err(bad) => Err(bad),
        }
    }
}
