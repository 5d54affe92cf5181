//! Flags of `longtail compare`: arms, each the base command line with options of its own, and what
//! decides between them.

mod arm;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use judge::size_search::LookLoad;
use model::comparison::{
    ArmPlan, ComparisonBlocks, ComparisonLoad, ComparisonPlan, ComparisonQuestion,
};
use model::{Arrivals, Metric, Nanos, PlannedEvent, Rate, Stop, quoted};

pub(crate) use self::arm::{ArmRequest, PumaSource};
use super::event::check_parts;
use super::server::ServerArgs;
use super::value_parsers::{ARRIVALS, CONNECTIONS, above_zero, from_1_to, words};
use super::{ADVANCED, OutputArgs, ThresholdArgs};
use crate::exit::{Mistake, refuse_if, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail compare -w2 -t5:5 --arm '' --arm -k              keep-alive or not?
  longtail compare -w2 -t5:5 --arm main --arm my-branch     two branches of this folder's repository
  longtail compare a.study.json b.study.json                two results that are saved already
  longtail compare -w2 --arm -t3:3 --arm -t5:5 -r config.ru --path /posts    3 threads or 5?
  longtail compare -w2 -t5:5 --puma 6.6.1,7.2.1             two versions (or paths) of Puma, installed where they are missing
  longtail compare -w2 -t5:5 --puma 6.6.1,7.2.1,8.0.2 --pairs    three, each with each other
  longtail compare -w2 -t5:5 --puma 6.6.1,8.0.2 --arm '' --arm -k    each version with and without keep-alive
  longtail compare -w2 -t5:5 --arm 'old=--puma ~/puma6' --arm 'new=--puma ~/puma7'    two checkouts, with names
  longtail compare -t5:5 -r config.ru --arm '' --arm '--env RUBY_YJIT_ENABLE=1'    a setting in the environment
  longtail compare -t5:5 --arm '' --arm '--ruby /opt/ruby-3.4/bin'    another Ruby
  longtail compare -w2 -t5:5 --rate 60 --metric cpu --arm '' --arm -Y    CPU a request, at the same rate
  longtail compare --url http://127.0.0.1:8000 -t4 --arm '-- ./server-a' --arm '-- ./server-b'    any two commands
  longtail compare -w2 -t5:5 --arm --inspect=none --arm --inspect=kernel    what does observing cost?
  longtail compare -w2 -t5:5 --rate 50 --for 15s --during restart --puma 6.6.1,8.0.2    what does a restart of each cost?

An arm is options of the server and of its requests, added to the common ones; '' adds nothing. A word without
a dash is a branch, tag or commit, of the checkout that --puma names or of this folder; NAME=OPTIONS gives it a name. The first arm is
the base, unless --base names another; it runs once more in each block as a control. Arms that combine settings, as
--puma 6.6.1,8.0.2 --arm '' --arm -k does, are compared with those that differ in one of them, unless --base is given.
The exit code is 1 if an arm is worse, so that a script can tell.
Worse or better: the interval leaves 0 out, and the change exceeds --margin. Same: all of the interval is within it.
In a closed loop the mean is about connections / throughput, however the waiting is shared out. What shares it out
otherwise, as keep-alive does, shows in p50 and p99: --metric p99, or longtail report --metric p99 afterwards.
How long it takes: blocks x (arms + control) x (--for, --warm-up and a start of the server); the first line says it
before any load. It ends once a look after 8, 12, 16 or 20 blocks decides; with more arms or metrics the first look comes
after 9 or 10. Less: --for 2s, --no-control, --blocks 6, which looks only once (more arms or metrics need more: an error names how many).";

/// What an arm can set.
#[derive(Debug, Args)]
pub(crate) struct ArmArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// A setting in the server's environment; may be given again
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Server")]
    env: Vec<String>,
    /// The ruby that runs it, or the folder that has it
    #[arg(long, value_name = "PATH", help_heading = ADVANCED)]
    ruby: Option<PathBuf>,
    /// Do something to the server in the middle of each run: restart@2s
    ///
    /// phased-restart, restart, refork, worker-kill, worker-term, scale-up, scale-down (of a Puma),
    /// stop-start, a signal such as HUP, or a command such as 'sh -c "bin/deploy"@2s'. Without a time, after a
    /// third of the run.
    #[arg(long, value_name = "EVENT@TIME", help_heading = ADVANCED)]
    during: Option<PlannedEvent>,
}

/// Flags of `longtail compare`.
#[expect(clippy::struct_excessive_bools, reason = "each switch is a flag")]
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct CompareArgs {
    /// Two results that are saved already (.study.json), in place of arms
    #[arg(value_name = "STUDY", conflicts_with = "arms", help_heading = "Arms")]
    pub(crate) studies: Vec<PathBuf>,
    /// Options of the server, or a branch; twice or more, the base first
    #[arg(
        long = "arm",
        value_name = "[NAME=]OPTIONS",
        allow_hyphen_values = true,
        help_heading = "Arms"
    )]
    arms: Vec<String>,
    /// Which of them the others are compared with [default: the first]
    #[arg(
        long,
        value_name = "ARM",
        allow_hyphen_values = true,
        conflicts_with = "studies",
        help_heading = "Arms"
    )]
    base: Option<String>,
    /// Compare each arm with each other, too; the exit code goes by the base
    #[arg(long, conflicts_with_all = ["studies", "best"], help_heading = ADVANCED)]
    pairs: bool,
    /// Leave out the base's second run in each block, which shows the noise
    #[arg(long, help_heading = ADVANCED)]
    no_control: bool,

    #[command(flatten)]
    pub(crate) own: ArmArgs,

    /// Closed loop with N connections [default: 2 x the largest arm's threads]
    #[arg(short, long, value_name = "N", help_heading = "Load", value_parser = from_1_to(CONNECTIONS))]
    pub(crate) connections: Option<u32>,
    /// Open loop at this rate, in place of -c
    #[arg(long, value_name = "RATE", conflicts_with = "connections", help_heading = "Load")]
    rate: Option<Rate>,
    /// Open loop at this share of the slowest arm's maximum, such as 80%
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["connections", "rate"], value_parser = share, help_heading = "Load")]
    share: Option<f64>,
    /// In an open loop: constant, poisson or uniform gaps, the same for all arms of a block
    #[arg(long, value_name = "LAW", value_parser = words(ARRIVALS), default_value = "constant", help_heading = ADVANCED)]
    arrivals: Arrivals,
    /// Length of each run, after its warm-up
    #[arg(short = 'z', long = "for", short_alias = 'D', id = "length", value_name = "TIME", default_value = "4s", value_parser = above_zero, help_heading = "Load")]
    pub(crate) length: Nanos,

    /// Blocks, 6 at least, with every arm once [default: 8 to 20, until clear]
    #[arg(long, alias = "rounds", value_name = "N", help_heading = "Answer", value_parser = from_1_to(1000))]
    blocks: Option<u32>,
    /// What decides: throughput, mean, p50, p95, p99, cpu [default: mean]
    #[arg(long = "metric", value_name = "LIST", value_delimiter = ',', help_heading = "Answer")]
    gates: Vec<Metric>,
    /// A difference up to this does not matter
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share, help_heading = "Answer")]
    margin: f64,
    /// Exit with 1 not only if an arm is worse, but also if that is unclear
    #[arg(long, help_heading = ADVANCED)]
    pub(crate) strict: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Load before each run that is not measured
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = ADVANCED)]
    pub(crate) warm_up: Nanos,
    /// Chooses the order of the arms in each block
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ADVANCED)]
    seed: u64,
    /// Do not measure the generator's own limit first (once a day)
    #[arg(long, help_heading = ADVANCED)]
    no_calibrate: bool,
    /// Find the best arm, by comparing each with each other, not only with the base
    #[arg(long, hide = true)]
    best: bool,
    /// Find the sizes that are worth comparing first: `sweep --try auto`
    #[arg(long, hide = true, conflicts_with = "arms")]
    pub(crate) find_threads: bool,
    /// All words of the command line, the command's name first.
    #[arg(skip)]
    pub(crate) words: Vec<String>,
    /// The words as they were typed, if this comparison is the short form of another command.
    #[arg(skip)]
    pub(crate) typed: Option<Vec<String>>,
}

/// Reads `80%` or `0.8`.
fn share(word: &str) -> Result<f64, String> {
    let number = match word.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => word.parse(),
    };
    number
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "type a percentage up to 100%, such as 5%".to_owned())
}

/// The help of `compare` on a screen, and the arms' options as [`overriding`].
pub(crate) fn as_compare(command: clap::Command) -> clap::Command {
    let inspect = "Read: none, proc, kernel (CAP_BPF, CAP_PERFMON), app [default: none]";
    let puma = "Version, checkout or command of Puma; a list (6.6.1,8.0.2) is the arms";
    let rare =
        ["socket", "from", "mix", "url", "command", "config", "csv", "html", "inspect", "expect"];
    let command = rare
        .into_iter()
        .fold(command, |command, id| command.mut_arg(id, |arg| arg.help_heading(ADVANCED)));
    overriding(command)
        .mut_arg("inspect", |arg| arg.help(inspect))
        .mut_arg("puma", |arg| arg.help_heading("Server").help(puma))
}

/// An option of an arm takes the place of the common one, also where a command without arms would
/// take both.
fn overriding(command: clap::Command) -> clap::Command {
    ["socket", "inspect", "command"]
        .into_iter()
        .fold(command, |command, id| command.mut_arg(id, |arg| arg.overrides_with(id)))
}

/// A difference in throughput up to this does not matter, nor does what others take of the CPUs in a
/// single run.
pub(crate) const MARGIN_OF_THROUGHPUT: f64 = 0.05;

impl CompareArgs {
    /// Refuses thresholds that no run can be held against.
    fn check_thresholds(&self, plan: &ComparisonPlan) -> Result<(), Mistake> {
        let has_event = plan.arms.iter().any(|arm| arm.during.is_some());
        check_parts(has_event, &plan.thresholds, &[])?;
        let mixes = plan.arms.iter().filter_map(|arm| arm.stream.mix.as_ref());
        let classes: Vec<String> = mixes.flat_map(|mix| mix.classes.iter().cloned()).collect();
        self.thresholds.check_classes(&classes)
    }

    /// The arms as they were asked for: what they name is looked for later.
    ///
    /// # Errors
    /// Where there are too few of them, or one cannot be understood.
    pub(crate) fn requested_arms(&self) -> Result<Vec<ArmRequest>, Mistake> {
        let versions: Vec<&str> = self.own.server.puma.versions();
        let texts: Vec<String> = match (self.arms.is_empty(), versions.len()) {
            (true, 2..) => puma_arms(&versions, &[String::new()]),
            (false, 2..) => self.each_version_with_each_arm(&versions)?,
            _ => self.arms.clone(),
        };
        if texts.len() < 2 {
            return Err(wrong(match texts.len() {
                0 if self.own.server.puma.puma.is_some() => {
                    "compare wants two arms or more: --puma with several, such as --puma 6.6.1,8.0.2, or --arm '' --arm -k"
                }
                0 => {
                    "compare wants two arms or more, such as --arm '' --arm -k, or two saved studies"
                }
                _ => {
                    "one arm has nothing to be compared with: add another, such as --arm '' (the settings as they stand)"
                }
            }));
        }
        let arms: Result<Vec<_>, _> = texts.iter().map(|text| self.arm(text)).collect();
        let mut arms = arms?;
        call_by_pumas(&mut arms);
        self.with_base_first(arms)
    }

    /// An arm of these options, beside the common ones.
    ///
    /// # Errors
    /// If they cannot be understood.
    pub(crate) fn arm(&self, text: &str) -> Result<ArmRequest, Mistake> {
        ArmRequest::read(text, &self.words)
    }

    /// `--puma 6.6.1,8.0.2 --arm '' --arm -k`: four arms.
    ///
    /// # Errors
    /// Where an arm is more than options.
    fn each_version_with_each_arm(&self, versions: &[&str]) -> Result<Vec<String>, Mistake> {
        let other = self.arms.iter().find(|arm| !arm.is_empty() && !arm.starts_with('-'));
        if let Some(arm) = other {
            return Err(wrong(format!(
                "--arm '{arm}': with several versions of --puma an arm is options only, such as --arm '' --arm -k; or give each arm its own, such as --arm 'NAME=--puma {}'",
                versions[0]
            )));
        }
        Ok(puma_arms(versions, &self.arms))
    }

    /// The arms with the one that `--base` names as the first.
    fn with_base_first(&self, mut arms: Vec<ArmRequest>) -> Result<Vec<ArmRequest>, Mistake> {
        let Some(base) = &self.base else { return Ok(arms) };
        let Some(at) = arms.iter().position(|arm| arm.is_called(base)) else {
            let names: Vec<String> = arms.iter().map(|arm| format!("'{}'", arm.name())).collect();
            return Err(wrong(format!(
                "--base '{base}': no arm has this name; choose among {}",
                names.join(", ")
            )));
        };
        arms[..=at].rotate_right(1);
        Ok(arms)
    }

    /// All that was asked, every default made explicit; the arms are those that were found.
    ///
    /// # Errors
    /// If the comparison could never come to a decision.
    pub(crate) fn plan(&self, arms: Vec<ArmPlan>) -> Result<ComparisonPlan, Mistake> {
        refuse_if(
            self.arrivals != Arrivals::Constant && self.rate.is_none() && self.share.is_none(),
            "--arrivals belongs to an open loop: give --rate or --share",
        )?;
        let plan = self.unchecked_plan(arms);
        self.check_thresholds(&plan)?;
        plan.feasible().map_err(|never| wrong(never.to_string()))?;
        Ok(plan)
    }

    /// How many blocks there are at least, if they soon tell, and at most.
    pub(crate) fn fewest_and_most_blocks(&self) -> [u32; 2] {
        let blocks = self.blocks.map_or(ComparisonBlocks::UntilDecided, ComparisonBlocks::Fixed);
        [blocks.fewest(), blocks.most()]
    }

    /// The rate that was given.
    pub(crate) fn rate_per_s(&self) -> Option<f64> {
        self.rate.map(Rate::per_second)
    }

    /// A single run of this arm.
    pub(crate) fn plan_of_one_run(&self, mut arm: Vec<ArmPlan>, load: &LookLoad) -> ComparisonPlan {
        let load = match *load {
            LookLoad::Closed { connections } => {
                ComparisonLoad::Closed { connections: Some(connections) }
            }
            LookLoad::Rate { per_s, length } => {
                for arm in &mut arm {
                    arm.stream.stop = Stop::After(length);
                }
                ComparisonLoad::Rate { per_s }
            }
        };
        ComparisonPlan {
            load,
            margin: self.margin.min(MARGIN_OF_THROUGHPUT),
            arrivals: Arrivals::Poisson,
            blocks: ComparisonBlocks::Fixed(1),
            calibrate: false,
            thresholds: Vec::new(),
            ..self.unchecked_plan(arm)
        }
    }

    fn question(&self, arms: &[ArmPlan]) -> ComparisonQuestion {
        let has_events = arms.iter().any(|arm| arm.during.is_some());
        // Who names a base wants each arm compared with it.
        let may_combine = self.base.is_none() && !has_events;
        if self.best {
            ComparisonQuestion::Best
        } else if self.pairs {
            ComparisonQuestion::Pairs
        } else if may_combine && ComparisonPlan::are_combinations(arms) {
            ComparisonQuestion::Settings
        } else {
            ComparisonQuestion::Change
        }
    }

    fn unchecked_plan(&self, arms: Vec<ArmPlan>) -> ComparisonPlan {
        ComparisonPlan {
            question: self.question(&arms),
            arms,
            base: 0,
            control: !self.no_control,
            // The rate of a search for threads is that of its looks with ordinary traffic.
            load: match (self.rate.filter(|_| !self.find_threads), self.share) {
                (Some(rate), _) => ComparisonLoad::Rate { per_s: rate.per_second() },
                (None, Some(of_maximum)) => ComparisonLoad::Share { of_maximum },
                (None, None) => ComparisonLoad::Closed { connections: self.connections },
            },
            arrivals: self.arrivals,
            blocks: self.blocks.map_or(ComparisonBlocks::UntilDecided, ComparisonBlocks::Fixed),
            gates: self.gates.clone(),
            gates_chosen_later: false,
            gates_before_runs: Vec::new(),
            margin: self.margin,
            seed: self.seed,
            // Each run has a server of its own.
            cool_down: false,
            calibrate: !self.no_calibrate,
            thresholds: self.thresholds.all(),
            looked_at: Vec::new(),
            wanted_per_s: None,
        }
    }
}

/// An arm for each value of `--puma` with each of these options.
fn puma_arms(pumas: &[&str], options: &[String]) -> Vec<String> {
    let names = names_of_pumas(pumas);
    let of_puma = |(puma, name): (&&str, Option<&str>)| -> Vec<String> {
        options.iter().map(|options| puma_arm(puma, name, options)).collect()
    };
    pumas.iter().zip(names).flat_map(of_puma).collect()
}

/// Calls arms that have a Puma of their own, and no name, by what tells these Pumas apart.
fn call_by_pumas(arms: &mut [ArmRequest]) {
    let distinct: BTreeSet<&str> = arms.iter().filter_map(ArmRequest::own_puma).collect();
    let pumas: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
    let pumas: Vec<&str> = pumas.iter().map(String::as_str).collect();
    let names = names_of_pumas(&pumas);
    let different: BTreeSet<&str> = names.iter().copied().flatten().collect();
    if different.len() < 2 || different.len() < pumas.len() {
        return;
    }
    for arm in arms {
        let at = arm.own_puma().and_then(|puma| pumas.iter().position(|it| *it == puma));
        if let Some(name) = at.and_then(|at| names[at]) {
            arm.call_by_puma(name);
        }
    }
}

/// What each value of `--puma` is called: a version by itself, a path or command by the last part
/// that tells all of them apart (`6.6.1` and `8.0.2` of `/src/6.6.1/bin/puma` and
/// `/src/8.0.2/bin/puma`).
pub(crate) fn names_of_pumas<'p>(pumas: &[&'p str]) -> Vec<Option<&'p str>> {
    let parts_from_the_end: Vec<Vec<&str>> = pumas
        .iter()
        .map(|puma| Path::new(*puma).iter().rev().filter_map(OsStr::to_str).collect())
        .collect();
    let names_at = |depth: usize| -> Vec<Option<&'p str>> {
        parts_from_the_end.iter().map(|parts| parts.get(depth).copied()).collect()
    };
    let tells_apart = |names: &Vec<Option<&str>>| {
        let distinct: BTreeSet<Option<&str>> = names.iter().copied().collect();
        distinct.len() == names.len() && names.iter().all(Option::is_some)
    };
    let deepest = parts_from_the_end.iter().map(Vec::len).max().unwrap_or(0);
    (0..deepest).map(names_at).find(tells_apart).unwrap_or_else(|| names_at(0))
}

/// The arm for a value of `--puma` of this name, with these options. A name that an arm cannot have
/// is left out.
fn puma_arm(puma: &str, name: Option<&str>, options: &str) -> String {
    let settings = format!("--puma {} {options}", quoted(puma));
    let settings = settings.trim_end();
    match name.filter(|name| !name.contains([' ', '=']) && !options.contains('=')) {
        Some(name) => format!("{}={settings}", format!("{name} {options}").trim_end()),
        None => settings.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_settings_are_compared_one_at_a_time_unless_a_base_or_all_pairs_are_asked_for() {
        use crate::commands::{Command, Invocation, parse};
        let asked = |flags: &[&str]| {
            let pumas = ["--puma", "6.6.1,8.0.2", "--arm", "", "--arm", "-k"];
            let words = ["longtail", "compare"].into_iter().chain(pumas).chain(flags.to_vec());
            let Ok(Invocation::Command(Command::Compare(args), _)) =
                parse(words.map(std::ffi::OsString::from))
            else {
                panic!("{flags:?}")
            };
            let arms = args.requested_arms().unwrap();
            let arms: Vec<ArmPlan> = arms.iter().map(|arm| arm.plan().unwrap()).collect();
            args.question(&arms)
        };
        assert_eq!(asked(&[]), ComparisonQuestion::Settings);
        assert_eq!(asked(&["--base", "8.0.2"]), ComparisonQuestion::Change);
        assert_eq!(asked(&["--pairs"]), ComparisonQuestion::Pairs);
        assert_eq!(asked(&["--arm", "-Y -t3:3"]), ComparisonQuestion::Settings);
        assert_eq!(asked(&["--during", "restart"]), ComparisonQuestion::Change);
    }

    #[test]
    fn arms_without_a_name_are_called_by_what_tells_their_pumas_apart() {
        let words = ["compare", "-t5:5"].map(str::to_owned);
        let names = |arms: &[&str]| -> Vec<String> {
            let read = |text: &&str| ArmRequest::read(text, &words).unwrap();
            let mut arms: Vec<ArmRequest> = arms.iter().map(read).collect();
            call_by_pumas(&mut arms);
            arms.iter().map(ArmRequest::name).collect()
        };
        let [old, new] = ["--puma /src/6.6.1/bin/puma", "--puma /src/8.0.2/bin/puma -k"];
        assert_eq!(names(&[old, new]), ["6.6.1", "8.0.2 -k"]);
        assert_eq!(names(&[old, "mine=--puma /src/8.0.2/bin/puma"]), [old, "mine"]);
        assert_eq!(names(&["", old]), ["default", old], "one Puma is told apart from nothing");
    }

    #[test]
    fn pumas_are_called_by_what_tells_their_paths_apart() {
        let names = |pumas: &[&'static str]| -> Vec<&str> {
            names_of_pumas(pumas).into_iter().map(Option::unwrap).collect()
        };
        assert_eq!(names(&["6.6.1", "8.0.2"]), ["6.6.1", "8.0.2"]);
        assert_eq!(names(&["/src/6.6.1/bin/puma", "/src/8.0.2/bin/puma"]), ["6.6.1", "8.0.2"]);
        assert_eq!(names(&["6.6.1", "/src/8.0.2"]), ["6.6.1", "8.0.2"]);
        assert_eq!(names(&["~/old/puma", "~/new/puma"]), ["old", "new"]);
        assert_eq!(names(&["/a/puma", "/a/puma"]), ["puma", "puma"], "nothing tells them apart");
        let commands = ["ruby -I /a/lib /a/bin/puma", "ruby -I /b/lib /b/bin/puma"];
        assert_eq!(names(&commands), ["a", "b"]);
        assert_eq!(
            puma_arms(&commands, &["-k".to_owned()])[1],
            "b -k=--puma 'ruby -I /b/lib /b/bin/puma' -k"
        );
    }
}
