//! Flags of `longtail overhead`.

use clap::{Args, ValueEnum};
use model::{App, Nanos, Probe, ServerKind, Socket, Stop, StreamPlan, Timestamps};
use sweep::{Arm, OverheadPlan};

use super::limits::{above_zero, path};
use super::output::FormatArgs;
use super::server::{PumaArgs, ServerWord};
use crate::mistake::{Mistake, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail overhead                                all instruments on a Puma, about 2 min
  longtail overhead -w2 -t5:5 --arms proc,statsd --rounds 12
  longtail overhead --server builtin --for 500ms   on the server inside longtail
  longtail overhead -r config.ru --path /posts --env RACK_INSTRUMENT=1    your own app and its own

Each round runs all arms once, in an order of chance, each on a fresh server: bare, the bare one
again as control, and each instrument. What the control differs by is noise.";

/// What can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArmWord {
    /// What everybody may read of server and kernel, as sweep --inspect proc
    Proc,
    /// The kernel's tracepoints, as sweep --inspect kernel
    #[value(alias = "kernel")]
    Bpf,
    /// The kernel stamps when answers come in, as --timestamps kernel
    Stamps,
    /// The app stamps when it began and ended, as sweep --inspect app
    #[value(alias = "app")]
    Anatomy,
    /// longtail's app sends a statsd packet over UDP for each request
    Statsd,
}

impl ArmWord {
    fn arm(self) -> Arm {
        match self {
            ArmWord::Proc => Arm::Probe(Probe::Proc),
            ArmWord::Bpf => Arm::Probe(Probe::Bpf),
            ArmWord::Stamps => Arm::Stamps,
            ArmWord::Anatomy => Arm::Anatomy,
            ArmWord::Statsd => Arm::Statsd,
        }
    }
}

/// Flags of `longtail overhead`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OverheadArgs {
    #[command(flatten)]
    pub(crate) puma: PumaArgs,
    /// Which server to start
    #[arg(long, value_enum, default_value_t, help_heading = "Server")]
    server: ServerWord,

    /// What is requested
    #[arg(long, value_name = "PATH", value_parser = path, default_value = "/", help_heading = "Load")]
    path: String,
    /// Connections [default: one for each of the server's slots]
    #[arg(short, long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Option<u32>,
    /// No keep-alive: a new connection for each request
    #[arg(short = 'k', long = "no-keep-alive", visible_alias = "disable-keepalive", help_heading = "Load")]
    no_keep_alive: bool,
    /// Length of each run, the warm-up not included
    #[arg(long = "for", value_name = "TIME", value_parser = above_zero, default_value = "1s", help_heading = "Load")]
    length: Nanos,
    /// Load before each run that is not in its rate
    #[arg(long, value_name = "TIME", default_value = "500ms", help_heading = "Load")]
    warm_up: Nanos,

    /// What is switched on, each in an arm of its own [default: all that this server and app have]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', help_heading = "Arms")]
    arms: Vec<ArmWord>,
    /// An arm in which the server has this in its environment; may be given again
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Arms")]
    env: Vec<String>,
    /// Rounds; fewer than 6 tell no interval
    #[arg(long, value_name = "N", default_value_t = 6, help_heading = "Arms", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Chooses the order of the arms in each round
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Arms")]
    seed: u64,

    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

impl OverheadArgs {
    /// All that was asked, every default made explicit.
    ///
    /// # Errors
    /// Where flags contradict each other or a value cannot be.
    pub(crate) fn plan(&self) -> Result<OverheadPlan, Mistake> {
        self.puma.check()?;
        let is_builtin = self.server == ServerWord::Builtin;
        if is_builtin && self.puma.asks_for_puma() {
            return Err(wrong("--server builtin takes no -r, -C, -Y or --puma: they are Puma's"));
        }
        let kind = if is_builtin { ServerKind::Builtin } else { self.puma.kind() };
        Ok(OverheadPlan {
            server: self.puma.server(kind, App::Sleep, Socket::Tcp4),
            stream: StreamPlan {
                delay: None,
                path: Some(self.path.clone()),
                body: None,
                keep_alive: !self.no_keep_alive,
                stop: Stop::After(self.length),
                warm_up: self.warm_up,
                timeout: Nanos::from_secs(30),
                lanes: 1,
                timestamps: Timestamps::User,
                worker_header: "x-worker-pid".to_owned(),
                anatomy: false,
            },
            connections: self.connections,
            arms: self.arms(is_builtin)?,
            rounds: self.rounds,
            seed: self.seed,
        })
    }

    /// Bare, its control, and each that was asked for once.
    fn arms(&self, is_builtin: bool) -> Result<Vec<Arm>, Mistake> {
        let asks_for_bpf = self.arms.is_empty() && self.env.is_empty() || self.arms.contains(&ArmWord::Bpf);
        let no_bpf = if asks_for_bpf { probe::bpf::possible().err() } else { None };
        let no_bpf = no_bpf.map(|missing| format!("cannot be had: {missing}"));
        let why_not = |word: ArmWord| match word {
            ArmWord::Bpf => no_bpf.as_deref(),
            ArmWord::Statsd if is_builtin => Some("is of an app on Puma: leave it out with --server builtin"),
            ArmWord::Statsd if self.puma.has_rackup() => {
                Some("is of longtail's own app: leave it out with -r, and switch your app's own on with --env")
            }
            ArmWord::Stamps if !engine::can_stamp() => Some("cannot be had: this kernel does not know SO_TIMESTAMPNS"),
            _ => None,
        };
        let mut words: Vec<ArmWord> = Vec::new();
        for word in &self.arms {
            if let Some(why) = why_not(*word) {
                let name = word.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                return Err(wrong(format!("--arms {name} {why}")));
            }
            if !words.contains(word) {
                words.push(*word);
            }
        }
        if self.arms.is_empty() && self.env.is_empty() {
            words = ArmWord::value_variants().iter().copied().filter(|word| why_not(*word).is_none()).collect();
        }
        let mut arms = vec![Arm::Bare, Arm::Control];
        arms.extend(words.into_iter().map(ArmWord::arm));
        for setting in &self.env {
            match setting.split_once('=').filter(|(name, _)| !name.is_empty() && !setting.contains('\0')) {
                Some((name, value)) => arms.push(Arm::Setting(name.to_owned(), value.to_owned())),
                None => return Err(wrong(format!("--env '{setting}' is no setting: write NAME=VALUE"))),
            }
        }
        Ok(arms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Invocation, parse};
    use std::ffi::OsString;

    fn plan(words: &[&str]) -> Result<OverheadPlan, String> {
        let words = ["longtail", "overhead"].iter().chain(words).map(OsString::from);
        match parse(words).map_err(|mistake| mistake.to_string())? {
            Invocation::Command(Command::Overhead(args)) => args.plan().map_err(|mistake| mistake.to_string()),
            _ => Err("not an overhead".to_owned()),
        }
    }

    fn names(words: &[&str]) -> Vec<String> {
        // Whether there is bpf depends on the machine.
        plan(words).unwrap().arms.iter().map(Arm::name).filter(|name| name != "bpf").collect()
    }

    #[test]
    fn there_is_always_a_control() {
        assert_eq!(names(&[]), ["bare", "control", "proc", "stamps", "anatomy", "statsd"]);
        assert_eq!(names(&["--server=builtin"]), ["bare", "control", "proc", "stamps", "anatomy"]);
        assert_eq!(names(&["-r", "x.ru"]), ["bare", "control", "proc", "stamps", "anatomy"]);
        assert_eq!(names(&["--arms=statsd,proc,statsd"]), ["bare", "control", "statsd", "proc"]);
        assert_eq!(names(&["--env=A=b=c", "--arms=proc"]), ["bare", "control", "proc", "A=b=c"]);
        assert_eq!(names(&["--env=A="]), ["bare", "control", "A="]);
    }

    #[test]
    fn the_tracepoints_are_an_arm_where_they_can_be_had() {
        let has_bpf = plan(&[]).unwrap().arms.contains(&Arm::Probe(Probe::Bpf));
        assert_eq!(has_bpf, probe::bpf::possible().is_ok());
        let asked = plan(&["--arms=bpf"]);
        assert_eq!(asked.is_ok(), has_bpf, "{asked:?}");
        assert!(asked.is_ok_and(|plan| plan.arms.len() == 3) || !has_bpf);
    }

    #[test]
    fn every_mistake_is_one_line() {
        let cases: [(&[&str], &str); 12] = [
            (&["--arms=dtrace"], "--arms"),
            (&["--arms=statsd", "--server=builtin"], "leave it out with --server builtin"),
            (&["--arms=statsd", "-r", "x.ru"], "--env"),
            (&["--env=A"], "NAME=VALUE"),
            (&["--env==b"], "NAME=VALUE"),
            (&["--rounds=0"], "--rounds"),
            (&["--for=0"], "--for"),
            (&["--for=900h"], "30 days"),
            (&["--path=x"], "--path"),
            (&["-c0"], "--connections"),
            (&["-t5:2"], "MIN:MAX"),
            (&["--server=builtin", "-Y"], "Puma's"),
        ];
        for (words, part) in cases {
            let line = plan(words).unwrap_err();
            assert!(line.contains(part) && !line.contains('\n'), "{words:?}: {line}");
        }
    }
}
