//! The commands: each is a file here, with what it does; its flags are in the file of the same name in
//! `args`. `command_line` understands what is typed, and says what is wrong with it.

mod audit;
mod capacity;
mod command_line;
mod compare;
mod conducted;
mod doctor;
#[cfg(test)]
mod documents_tests;
mod fleet;
mod generate;
mod generate_docs;
mod help;
mod init;
mod load;
mod merge;
mod predict;
mod report;
mod signals;
mod sink;
mod size_search;
mod sweep;
mod watch;

use clap::{CommandFactory as _, Parser, Subcommand};
use engine::Resolver;
use model::AllowedNetworks;

pub(crate) use self::command_line::{Invocation, load_words, parse, refusal, with_command};
use crate::args::{
    self, ADVANCED, AuditArgs, CapacityArgs, CompareArgs, DoctorArgs, FleetArgs, GenerateArgs,
    GenerateDocsArgs, LoadArgs, MergeArgs, PredictArgs, ReportArgs, SignalsArgs, SinkArgs,
    SweepArgs, WatchArgs,
};
use crate::exit::{Exit, Mistake};

/// How long do requests wait when a web server is busy, and can you trust the number?
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
#[derive(Debug, Parser)]
#[command(name = "longtail", version, max_term_width = help::WIDTH)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Connect only to these networks, such as 127.0.0.0/8,::1/128, and to a server that longtail
    /// itself starts
    #[arg(long, global = true, env = "LONGTAIL_ALLOW_NET", hide_env_values = true, value_name = "CIDR,…",
          help_heading = ADVANCED)]
    allow_net: Option<AllowedNetworks>,
    /// Colour: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = ADVANCED)]
    color: clap::ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server, raise the load step by step, and show when requests start to wait
    Sweep(Box<SweepArgs>),
    /// Load a server that is already running: closed loop, or open loop with --rate
    Load(Box<LoadArgs>),
    /// How many requests per second does it take, with p99 below a limit?
    Capacity(Box<CapacityArgs>),
    /// Which number tells first that a server is full: what to scale or alert on
    Signals(Box<SignalsArgs>),
    /// Watch a running server without sending anything: who waits, which threads are busy
    Watch(Box<WatchArgs>),
    /// Two or more ways to run a server: is there a difference, or is it noise?
    Compare(Box<CompareArgs>),
    /// Show a saved result again
    Report(Box<ReportArgs>),
    /// What queueing theory says: rate, waiting time, number of threads
    Predict(PredictArgs),
    /// Is this machine fit to measure on?
    Doctor(DoctorArgs),
    /// Check numbers published by wrk, hey, ab, ...: are they even possible?
    Audit(AuditArgs),
    /// Server and load generators on machines of their own, by Ansible
    Fleet(FleetArgs),
    /// Write bin/longtail into a Ruby app, and show the lines for its Gemfile and CI
    #[command(after_help = "\
Examples:
  longtail init        in the app's folder; a file that is there stays as it is")]
    Init,
    /// A test server with known delays and faults
    Sink(Box<SinkArgs>),
    /// sweep --bodies
    #[command(hide = true)]
    Bodies(Box<SweepArgs>),
    /// Open loop at a target throughput, one line a request
    #[command(hide = true)]
    Attack(Box<LoadArgs>),
    /// doctor --generators
    #[command(hide = true)]
    Calibrate(DoctorArgs),
    /// doctor --self-test
    #[command(hide = true)]
    Selftest(DoctorArgs),
    /// (started by --from on another machine; with -- and the flags of a load: sends one part of
    /// it, and writes the result into a file)
    #[command(hide = true)]
    Generate(Box<GenerateArgs>),
    /// One result of the parts that several generators wrote
    #[command(hide = true)]
    Merge(MergeArgs),
    /// Write man pages and completions (make install)
    #[command(hide = true)]
    GenerateDocs(GenerateDocsArgs),
}

impl Command {
    /// Whether it may read the kernel's tracepoints.
    fn traces(&self) -> bool {
        match self {
            Command::Sweep(_)
            | Command::Bodies(_)
            | Command::Load(_)
            | Command::Attack(_)
            | Command::Capacity(_)
            | Command::Signals(_)
            | Command::Compare(_)
            | Command::Doctor(_)
            | Command::Calibrate(_)
            | Command::Selftest(_) => true,
            Command::Watch(_)
            | Command::Report(_)
            | Command::Predict(_)
            | Command::Audit(_)
            | Command::Fleet(_)
            | Command::Init
            | Command::Sink(_)
            | Command::Generate(_)
            | Command::Merge(_)
            | Command::GenerateDocs(_) => false,
        }
    }

    /// Runs the command. `resolver` finds the addresses that the user names, and knows where
    /// connections may go.
    ///
    /// # Errors
    /// What the user can mend, as one line.
    pub(crate) fn run(self, resolver: Resolver) -> Result<Exit, Mistake> {
        probe::rights::confine(self.traces());
        match self {
            Command::Sweep(args) | Command::Bodies(args) => sweep::run(&args, resolver),
            Command::Load(args) => load::run(&args, resolver),
            Command::Attack(args) => load::attack(&args, resolver),
            Command::Sink(args) => sink::run(&args),
            Command::Watch(args) => watch::run(&args, &resolver),
            Command::Predict(args) => predict::run(&args),
            Command::Audit(args) => audit::run(&args),
            Command::Doctor(args) | Command::Calibrate(args) | Command::Selftest(args) => {
                doctor::run(&args)
            }
            Command::Compare(args) => compare::run(&args, resolver),
            Command::Capacity(args) => capacity::run(&args, resolver),
            Command::Signals(args) => signals::run(&args, resolver),
            Command::Report(args) => report::run(&args),
            Command::Fleet(args) => fleet::run(&args),
            Command::Init => init::run(),
            Command::Generate(args) => generate::run(&args, resolver),
            Command::Merge(args) => merge::run(&args),
            Command::GenerateDocs(args) => generate_docs::run(&args),
        }
    }
}

/// All commands and flags as they are declared, with what differs in those that have the flags of
/// another command, such as `attack`, or the layout of their own help.
fn all_commands() -> clap::Command {
    Cli::command()
        .mut_subcommand("attack", args::load::as_attack)
        .mut_subcommand("bodies", args::sweep::as_bodies)
        .mut_subcommand("compare", args::compare::as_compare)
        .mut_subcommand("capacity", args::capacity::as_capacity)
        .mut_subcommand("signals", args::signals::as_signals)
        .mut_subcommand("watch", args::watch::as_watch)
        .mut_subcommand("calibrate", |command| args::doctor::as_flag(command, "generators"))
        .mut_subcommand("selftest", |command| args::doctor::as_flag(command, "self_test"))
}

/// All commands and flags, without the layout of their help.
pub(crate) fn definition() -> clap::Command {
    help::whole_for(::report::Width::ANY, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        help::whole().debug_assert();
    }

    #[test]
    fn the_help_of_attack_speaks_of_its_own_flags_and_defaults() {
        let attack = all_commands().find_subcommand("attack").unwrap().clone();
        for arg in attack.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.contains("--rate"), "{help}");
        }
        let help = attack.clone().render_long_help().to_string();
        assert!(help.contains("[default: 60s, or until -n is reached]"), "{help}");
        assert!(!help.contains("[default: 60s]"), "{help}");
    }
}
