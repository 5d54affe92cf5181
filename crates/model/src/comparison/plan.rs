//! What `longtail compare` was asked to do: the arms, the load, the number of blocks, and the order
//! of the arms in a block.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ranks::least_blocks;
use super::{Metric, MissingFigure};
use crate::bodies::shuffled;
use crate::number::count_of;
use crate::pace::{Arrivals, uniform};
use crate::secret::{MaskedText, Private};
use crate::{Nanos, PlannedEvent, Probe, ServerPlan, ServerSize, StreamPlan, Threshold};

/// What `longtail compare` was asked to do.
#[expect(clippy::struct_excessive_bools, reason = "each is said, or done, by itself")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonPlan {
    /// The question to answer.
    pub question: ComparisonQuestion,
    /// The arms, two or more. The first is the one that runs again as the control.
    pub arms: Vec<ArmPlan>,
    /// The arm that others are compared with, by its index: the first, unless a saved comparison is
    /// looked at from another one (`longtail report --base`).
    #[serde(default, skip_serializing_if = "is_first")]
    pub base: usize,
    /// Whether the base runs a second time in each block, as another arm: any difference between
    /// the two is noise.
    pub control: bool,
    /// The load on each arm.
    pub load: ComparisonLoad,
    /// `--arrivals`: how the requests of an open loop are spaced. All arms of a block get the same
    /// arrivals.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How many blocks.
    pub blocks: ComparisonBlocks,
    /// `--metric`: the deciding metrics. Empty means [`Metric::Mean`], or [`Metric::Throughput`] to
    /// find the best arm.
    pub gates: Vec<Metric>,
    /// Whether these were chosen after the runs, by `report --metric`. Whoever has seen the figures may
    /// choose what is clear by chance, so that is said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gates_chosen_later: bool,
    /// The metrics that were to decide before those were chosen: only these have tests of their own, so
    /// that choosing another metric makes no figure more certain than it was. Empty if none were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates_before_runs: Vec<Metric>,
    /// `--margin`: a difference up to this does not matter; .05 is 5 %.
    pub margin: f64,
    /// Chooses the order of the arms in each block.
    pub seed: u64,
    /// Whether to wait after each run until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
    /// `--expect`, `--fail-if`: what each run must keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// `sweep --try auto`: the sizes that ran once each before, from which the arms were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<SizeLook>,
    /// `sweep --try auto --rate`: the requests per second that some size should do, if fewer than two
    /// can, so that those that do most are compared in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_per_s: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(at: &usize) -> bool {
    *at == 0
}

/// What single runs of a server of one size did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeLook {
    /// The size.
    pub size: ServerSize,
    /// Requests that were completed per second in a closed loop.
    pub rate_per_s: f64,
    /// Whether CPUs or Ruby's lock left hardly any room for more.
    pub is_near_limit: bool,
    /// How many CPUs there were, if all were used up.
    #[serde(default)]
    pub cpus_used_up: Option<f64>,
    /// The share of the time for which the busiest process of a Ruby server computed.
    #[serde(default)]
    pub computes: Option<f64>,
    /// How many CPUs other processes used meanwhile, if they took them from the server.
    pub others: Option<f64>,
    /// Its response times with ordinary traffic, if it can do so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_rate: Option<RateLook>,
}

/// A run in an open loop, with Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLook {
    /// Requests per second.
    pub per_s: f64,
    /// The median response time; not known if requests have no response, or if ever more wait.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// The 95th percentile, by the same rules.
    #[serde(rename = "p95_ns")]
    pub p95: Option<Nanos>,
    /// Why they are not known, if that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingFigure>,
    /// How many CPUs other processes used meanwhile, if they took them from the server.
    pub others: Option<f64>,
}

/// The question that a comparison answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonQuestion {
    /// What differs from the base? `longtail compare`.
    #[default]
    Change,
    /// What does each setting change? `longtail compare` of arms that combine settings: each is
    /// compared with those that differ from it in one of them.
    Settings,
    /// Which arms differ from which? `longtail compare --pairs`.
    Pairs,
    /// Which is best? `longtail sweep --try`: every arm against every other.
    Best,
}

/// One way to run the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// Its name.
    pub name: MaskedText,
    /// The settings in which it differs from the common ones, in words: `-k`, `-t3:3`,
    /// `RUBY_YJIT_ENABLE=1`, `branch main 43b8bba1`.
    pub settings: Vec<MaskedText>,
    /// The server and how to start it.
    pub server: ServerPlan,
    /// The stream of requests.
    pub stream: StreamPlan,
    /// Its environment variables, in addition to longtail's own.
    pub env: Private<BTreeMap<String, String>>,
    /// `--inspect`: what is read from server and kernel during a run.
    pub probe: Probe,
    /// The server's working directory if it isn't longtail's own: the copy of a commit.
    pub dir: Option<PathBuf>,
    /// `--during`: what is done to the server in the middle of each run.
    #[serde(default)]
    pub during: Option<PlannedEvent>,
}

/// Two arms, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmPair {
    /// The arm that the other is compared with.
    pub base: usize,
    /// The other.
    pub arm: usize,
}

/// The load on each arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ComparisonLoad {
    /// Connections that send again as soon as they have a response.
    Closed {
        /// How many; `None` means twice the slots of the largest arm, for every arm.
        connections: Option<u32>,
    },
    /// Requests at a fixed rate.
    Rate {
        /// Requests per second.
        per_s: f64,
    },
    /// Requests at a share of the slower arm's maximum.
    Share {
        /// 0 to 1.
        of_maximum: f64,
    },
}

/// How many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonBlocks {
    /// This number, with one look at the end.
    Fixed(u32),
    /// Until the question is decided ([`ComparisonPlan::looks`]), at most 20 blocks.
    UntilDecided,
}

/// The chance of a false alarm of a whole comparison.
pub(super) const LEVEL: f64 = 0.05;
/// After how many blocks [`ComparisonBlocks::UntilDecided`] analyzes the runs, if that is not too early.
const LOOKS: [u32; 4] = [8, 12, 16, 20];

impl ComparisonBlocks {
    /// The fewest, if these tell.
    pub fn fewest(self) -> u32 {
        match self {
            ComparisonBlocks::Fixed(blocks) => blocks,
            ComparisonBlocks::UntilDecided => LOOKS[0],
        }
    }

    /// The most blocks.
    pub fn most(self) -> u32 {
        match self {
            ComparisonBlocks::Fixed(blocks) => blocks,
            ComparisonBlocks::UntilDecided => LOOKS[LOOKS.len() - 1],
        }
    }
}

/// Whether another block is worth running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The question is not decided yet.
    GoOn,
    /// The question is decided.
    Decided,
    /// The question is not decided, but all blocks are done.
    NoBlocksLeft,
}

/// A plan that can never decide, whatever is measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} can never decide {}: at least {least} can (--blocks {least}){}",
    count_of(*blocks, "block"), tests_in_words(*metrics, *pairs), needs_more(*question, *metrics, *pairs)
)]
pub struct Infeasible {
    /// The question.
    pub question: ComparisonQuestion,
    /// The blocks of the plan.
    pub blocks: u32,
    /// Deciding metrics. Each is tested in each pair, and all tests share the chance of a false
    /// alarm.
    pub metrics: u32,
    /// Pairs of arms.
    pub pairs: u32,
    /// The fewest that could.
    pub least: u32,
}

fn tests_in_words(metrics: u32, pairs: u32) -> String {
    if metrics * pairs == 1 {
        return "anything".to_owned();
    }
    let [metrics, pairs] = [count_of(metrics, "metric"), count_of(pairs, "pair")];
    format!("{metrics} in {pairs} of arms")
}

/// What would need still more blocks, so that nobody adds it and is refused again.
fn needs_more(question: ComparisonQuestion, metrics: u32, pairs: u32) -> &'static str {
    // Two arms are one pair, with --pairs or without.
    let has_other_pairs =
        matches!(question, ComparisonQuestion::Change | ComparisonQuestion::Settings) && pairs > 1;
    let may_have_a_second_metric = question != ComparisonQuestion::Best && metrics == 1;
    match (has_other_pairs, may_have_a_second_metric) {
        (true, true) => "; --pairs, or a second --metric, needs more",
        (true, false) => "; --pairs needs more",
        (false, true) => "; a second --metric needs more",
        (false, false) => "",
    }
}

impl ComparisonPlan {
    /// Arms in each block, including the control.
    pub fn arms_of_a_block(&self) -> usize {
        self.arms.len() + usize::from(self.control)
    }

    /// The arm with this index; the base for the control.
    ///
    /// # Panics
    /// If there are no arms.
    pub fn arm(&self, arm: usize) -> &ArmPlan {
        self.arms.get(arm).unwrap_or(&self.arms[0])
    }

    /// The letter of an arm, from A; the control is the base's with a prime.
    pub fn letter(&self, arm: usize) -> String {
        match u32::try_from(arm).ok().and_then(|arm| char::from_u32(u32::from('A') + arm)) {
            _ if arm == self.arms.len() => "A'".to_owned(),
            Some(letter) if letter <= 'Z' => letter.to_string(),
            _ => format!("#{}", arm + 1),
        }
    }

    /// What an arm is called in a sentence: by its name, which is cut in its middle if it is long,
    /// and with its letter if another arm is called the same. Tables have letters alone.
    pub fn called(&self, arm: usize) -> String {
        if arm == self.arms.len() {
            return "the control".to_owned();
        }
        let short = |arm: &ArmPlan| match &*arm.name {
            "default" => "the default".to_owned(),
            name => cut_in_the_middle(name.strip_prefix("-- ").unwrap_or(name)),
        };
        let name = short(self.arm(arm));
        let is_same = |other: &&ArmPlan| short(other) == name;
        if self.arms.iter().filter(is_same).count() > 1 {
            format!("{name} ({})", self.letter(arm))
        } else {
            name
        }
    }

    /// The arm with this letter, the control included.
    pub fn arm_of(&self, letter: &str) -> Option<usize> {
        (0..self.arms_of_a_block()).find(|arm| self.letter(*arm) == letter)
    }

    /// What the arm with this letter is called in a sentence.
    pub fn called_by_letter(&self, letter: &str) -> String {
        let arm = self.arm_of(letter);
        arm.map_or_else(|| letter.to_owned(), |arm| self.called(arm))
    }

    /// The metrics that were to decide before the first run.
    pub(super) fn planned_to_decide(&self) -> Vec<Metric> {
        let planned = self.gates_before_runs.clone();
        if planned.is_empty() { self.deciding() } else { planned }
    }

    /// The metrics that decide.
    pub fn deciding(&self) -> Vec<Metric> {
        match self.question {
            _ if !self.gates.is_empty() => self.gates.clone(),
            ComparisonQuestion::Change
            | ComparisonQuestion::Settings
            | ComparisonQuestion::Pairs => vec![Metric::Mean],
            // At a rate, all sizes that can do it do the same.
            ComparisonQuestion::Best => match self.load {
                ComparisonLoad::Closed { .. } => vec![Metric::Throughput],
                ComparisonLoad::Rate { .. } | ComparisonLoad::Share { .. } => vec![Metric::Mean],
            },
        }
    }

    /// The order in which a block (from 1) runs its arms.
    ///
    /// As many blocks as there are arms form a Latin square: every arm is once at each place. The
    /// seed shuffles arms and rows of each square anew.
    pub fn order(&self, block: u32) -> Vec<usize> {
        let arms = self.arms_of_a_block();
        let square = (block.max(1) - 1) as usize / arms;
        let row = (block.max(1) - 1) as usize % arms;
        // The constant ("block" in ASCII) keeps these draws apart from the seed's other uses.
        let mut draws =
            (0..).map(|n| uniform(self.seed ^ 0x0062_6C6F_636B ^ ((square as u64) << 32), n));
        let symbols: Vec<usize> = shuffled((0..arms).collect(), &mut draws);
        let rows: Vec<usize> = shuffled((0..arms).collect(), &mut draws);
        (0..arms).map(|place| symbols[(place + rows[row]) % arms]).collect()
    }

    /// The arms that are compared, each pair with its base first.
    pub fn pairs(&self) -> Vec<ArmPair> {
        let arms = self.arms.len();
        let all = (0..arms).flat_map(|base| (base + 1..arms).map(move |arm| ArmPair { base, arm }));
        let all = all.map(|pair| match pair {
            ArmPair { base, arm } if arm == self.base => ArmPair { base: arm, arm: base },
            pair => pair,
        });
        let combined = combined_settings(&self.arms);
        let differ_in_one = |pair: &ArmPair| {
            combined.as_ref().is_some_and(|parts| {
                let [base, arm] = [&parts[pair.base], &parts[pair.arm]];
                base[0] == arm[0] || base[1] == arm[1]
            })
        };
        let is_asked = |pair: &ArmPair| match self.question {
            ComparisonQuestion::Change => pair.base == self.base,
            ComparisonQuestion::Settings => differ_in_one(pair),
            ComparisonQuestion::Pairs | ComparisonQuestion::Best => true,
        };
        all.filter(is_asked).collect()
    }

    /// Whether connections send again as soon as they have a response.
    pub(super) fn is_closed_loop(&self) -> bool {
        matches!(self.load, ComparisonLoad::Closed { .. })
    }

    /// Whether the arms are all combinations of two settings, such as two versions, each with `-k`
    /// and without.
    pub fn are_combinations(arms: &[ArmPlan]) -> bool {
        combined_settings(arms).is_some()
    }

    /// Whether the arms differ in `--inspect`, so that longtail's own CPU time matters.
    pub(crate) fn differs_in_instruments(&self) -> bool {
        let instruments =
            |arm: &ArmPlan| (arm.probe, arm.stream.timestamps, arm.stream.reads_app_times);
        self.arms.windows(2).any(|arms| instruments(&arms[0]) != instruments(&arms[1]))
    }

    /// Whether something is done to the server of an arm in the middle of its runs.
    pub fn has_events(&self) -> bool {
        self.arms.iter().any(|arm| arm.during.is_some())
    }

    /// Whether the plan has enough blocks to decide at all, however clear the results are.
    ///
    /// # Errors
    /// If not, with the number of blocks that would be enough. The least p-value of the signed-rank
    /// test is 2 / 2^n, if all `n` blocks show the same direction. It must not exceed the level of
    /// the first test by Holm's method: the level of the look / the number of tests.
    pub fn feasible(&self) -> Result<(), Infeasible> {
        // With an event there is no test: each run shows by itself what the event cost.
        if self.has_events() {
            return Ok(());
        }
        if self.fewest_that_decide().is_some() {
            return Ok(());
        }
        Err(Infeasible {
            question: self.question,
            blocks: self.blocks.most(),
            metrics: self.deciding().len() as u32,
            pairs: self.pairs().len() as u32,
            least: least_blocks(LEVEL / f64::from(self.tests())),
        })
    }

    /// After how many blocks the runs are analyzed and may decide the question. The more tests share
    /// the chance of a false alarm, the later is the first look that can decide anything; there is
    /// none if that is later than the last block.
    pub fn looks(&self) -> Vec<u32> {
        let least = least_blocks(self.level_of_a_look() / f64::from(self.tests()));
        match self.blocks {
            ComparisonBlocks::Fixed(blocks) => vec![blocks],
            ComparisonBlocks::UntilDecided => {
                let first = LOOKS[0].max(least);
                let later = LOOKS.into_iter().filter(|after| *after > first);
                let looks = std::iter::once(first).chain(later);
                looks.filter(|after| *after <= self.blocks.most()).collect()
            }
        }
    }

    /// The chance of a false alarm that the tests of one look share. Each look has an equal part of
    /// [`LEVEL`], so that all together have no more than that.
    pub(super) fn level_of_a_look(&self) -> f64 {
        match self.blocks {
            ComparisonBlocks::Fixed(_) => LEVEL,
            ComparisonBlocks::UntilDecided => LEVEL / LOOKS.len() as f64,
        }
    }

    /// Tests that share the chance of a false alarm.
    fn tests(&self) -> u32 {
        (self.pairs().len() * self.deciding().len()).max(1) as u32
    }

    /// The fewest blocks after which something may be decided; `None` if no number of them can.
    pub fn fewest_that_decide(&self) -> Option<u32> {
        let least = least_blocks(self.level_of_a_look() / f64::from(self.tests()));
        self.looks().into_iter().find(|look| *look >= least)
    }
}

/// Where the arms are all combinations of two settings, or groups of them, both of each arm: the
/// settings that one option gives, and the others.
fn combined_settings(arms: &[ArmPlan]) -> Option<Vec<[BTreeSet<&str>; 2]>> {
    let settings = || arms.iter().flat_map(|arm| &arm.settings);
    let options: BTreeSet<&str> = settings().map(|setting| option_of(setting)).collect();
    options.into_iter().find_map(|option| {
        let parts: Vec<[BTreeSet<&str>; 2]> =
            arms.iter().map(|arm| split_by_option(arm, option)).collect();
        let [first, second] =
            [0, 1].map(|at| parts.iter().map(|of| &of[at]).collect::<BTreeSet<_>>().len());
        let different = parts.iter().collect::<BTreeSet<_>>().len();
        let are_all = first * second == arms.len() && different == arms.len();
        (first > 1 && second > 1 && are_all).then_some(parts)
    })
}

/// The settings of an arm that this option gives, and the others.
fn split_by_option<'a>(arm: &'a ArmPlan, option: &str) -> [BTreeSet<&'a str>; 2] {
    let settings = arm.settings.iter().map(|setting| &**setting);
    let (of_option, others) = settings.partition(|setting| option_of(setting) == option);
    [of_option, others]
}

/// The option that a setting gives: `-t` of `-t5:5`, `--puma` of `--puma 6.6.1`, the variable of
/// `A=1`; a commit has none.
fn option_of(setting: &str) -> &str {
    if setting.starts_with("--") {
        setting.split([' ', '=']).next().unwrap_or(setting)
    } else if setting.starts_with('-') {
        setting.get(..2).unwrap_or(setting)
    } else {
        setting.split_once('=').map_or("", |(variable, _)| variable)
    }
}

/// The name, without its middle if it is long: commands and paths differ at beginning and end.
fn cut_in_the_middle(name: &str) -> String {
    const MOST: usize = 48;
    const BEGINNING: usize = 12;
    let letters = name.chars().count();
    if letters <= MOST {
        return name.to_owned();
    }
    let left_out = letters - (MOST - 1);
    let beginning = name.chars().take(BEGINNING);
    let end = name.chars().skip(BEGINNING + left_out);
    beginning.chain(['…']).chain(end).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{App, Nanos, test_fixtures};

    /// Two arms and the control, until the question is decided.
    pub(crate) fn plan() -> ComparisonPlan {
        let arm = |name: &str| ArmPlan {
            name: name.into(),
            settings: vec![name.into()],
            server: test_fixtures::puma(App::Sleep),
            stream: test_fixtures::stream(5, Some(Nanos::from_millis(20))),
            env: Private::default(),
            probe: Probe::Proc,
            dir: None,
            during: None,
        };
        ComparisonPlan {
            question: ComparisonQuestion::Change,
            arms: vec![arm("main"), arm("branch")],
            base: 0,
            control: true,
            load: ComparisonLoad::Closed { connections: None },
            arrivals: Arrivals::Constant,
            blocks: ComparisonBlocks::UntilDecided,
            gates: Vec::new(),
            gates_chosen_later: false,
            gates_before_runs: Vec::new(),
            margin: 0.05,
            seed: 1,
            cool_down: true,
            calibrate: true,
            thresholds: Vec::new(),
            looked_at: Vec::new(),
            wanted_per_s: None,
        }
    }

    #[test]
    fn as_many_blocks_as_arms_form_a_latin_square() {
        for (arms, control) in [(2, false), (2, true), (3, true), (5, true)] {
            let arm = plan().arms[0].clone();
            let plan = ComparisonPlan { arms: vec![arm; arms], control, seed: 7, ..plan() };
            let n = plan.arms_of_a_block();
            for square in 0..10 {
                let rows: Vec<Vec<usize>> =
                    (0..n).map(|row| plan.order((square * n + row + 1) as u32)).collect();
                for place in 0..n {
                    let mut column: Vec<usize> = rows.iter().map(|row| row[place]).collect();
                    let mut row = rows[place].clone();
                    column.sort_unstable();
                    row.sort_unstable();
                    assert_eq!((&column, &row), (&(0..n).collect(), &(0..n).collect()), "{rows:?}");
                }
            }
        }
        let orders = |seed| {
            (1..30).map(|block| ComparisonPlan { seed, ..plan() }.order(block)).collect::<Vec<_>>()
        };
        assert_eq!(orders(4), orders(4));
        assert_ne!(orders(4), orders(5));
    }

    #[test]
    fn arms_that_combine_settings_are_compared_in_one_setting_at_a_time() {
        let arm = |settings: &&[&str]| ArmPlan {
            settings: settings.iter().map(|&setting| setting.into()).collect(),
            ..plan().arms[0].clone()
        };
        let compared = |arms: &[&[&str]]| -> Option<Vec<(usize, usize)>> {
            let arms: Vec<ArmPlan> = arms.iter().map(arm).collect();
            let question = ComparisonQuestion::Settings;
            let are_combinations = ComparisonPlan::are_combinations(&arms);
            let pairs = ComparisonPlan { question, arms, ..plan() }.pairs();
            are_combinations.then(|| pairs.iter().map(|pair| (pair.base, pair.arm)).collect())
        };
        let square = Some(vec![(0, 1), (0, 2), (1, 3), (2, 3)]);
        let [old, new] = ["--puma /6.6.1", "--puma /8.0.2"];
        assert_eq!(compared(&[&[old], &[old, "-k"], &[new], &[new, "-k"]]), square);
        assert_eq!(compared(&[&[], &["-k"], &["A=1"], &["-k", "A=1"]]), square);
        assert_eq!(compared(&[&["-t3:3"], &["-k", "-t3:3"], &["-t5:5"], &["-t5:5", "-k"]]), square);
        // Settings that are always changed together count as one.
        let both: &[&str] = &["--puma /8.0.2", "-k", "-t3:3"];
        assert_eq!(compared(&[&[old], &[old, "-k", "-t3:3"], &[new], both]), square);
        let branches: &[&[&str]] =
            &[&["main 43b8"], &["main 43b8", "-k"], &["other 17c2"], &["other 17c2", "-k"]];
        assert_eq!(compared(branches), square);
        let six = compared(&[&[old], &[old, "-k"], &[new], &[new, "-k"], &["-k"], &[]]);
        assert_eq!(six.map(|pairs| pairs.len()), Some(9));
        let of_third = ComparisonPlan { arms: vec![arm(&&[][..]); 3], base: 2, ..plan() };
        let pairs = of_third.pairs();
        assert!(pairs.iter().map(|pair| (pair.base, pair.arm)).eq([(2, 0), (2, 1)]), "{pairs:?}");
        for others in [
            &[&[old][..], &[new], &["-k"]][..],
            &[&[], &["-k"], &["-t3:3"], &["-t5:5"]],
            &[&[old], &[old, "-k"], &[new], &[new, "-Y"]],
            &[&[old], &[old, "-k"], &[new]],
            &[&[old], &[old, "-k"], &[old], &[old, "-k"]],
        ] {
            assert_eq!(compared(others), None, "{others:?}");
        }
    }

    #[test]
    fn sentences_call_an_arm_by_its_name_and_add_the_letter_only_to_equal_names() {
        let arm = |name: &str| ArmPlan { name: name.into(), ..plan().arms[0].clone() };
        let called = |names: &[&str]| -> Vec<String> {
            let plan = ComparisonPlan { arms: names.iter().copied().map(arm).collect(), ..plan() };
            (0..=names.len()).map(|arm| plan.called(arm)).collect()
        };
        assert_eq!(called(&["main", "-k"]), ["main", "-k", "the control"]);
        assert_eq!(called(&["default", "-k"])[..1], ["the default"]);
        assert_eq!(called(&["-- ./a", "-- ./b"])[..2], ["./a", "./b"]);
        assert_eq!(called(&["x", "y", "x"])[..3], ["x (A)", "y", "x (C)"]);
        let puma =
            |version: &str| format!("--puma 'ruby -I /srv/{version}/lib /srv/{version}/bin/puma'");
        let long = called(&[&puma("6.6.1"), &puma("8.0.2")]);
        assert_eq!(long[1], "--puma 'ruby…/srv/8.0.2/lib /srv/8.0.2/bin/puma'");
        assert_ne!(long[0], long[1]);
    }

    #[test]
    fn a_plan_that_can_never_decide_names_the_blocks_that_could() {
        let fixed = |blocks, gates: &[Metric]| ComparisonPlan {
            blocks: ComparisonBlocks::Fixed(blocks),
            gates: gates.to_vec(),
            ..plan()
        };
        assert_eq!(fixed(6, &[]).feasible(), Ok(()));
        let refusal =
            |plan: &ComparisonPlan| plan.feasible().map_err(|never| never.to_string()).unwrap_err();
        assert_eq!(
            refusal(&fixed(5, &[])),
            "5 blocks can never decide anything: at least 6 can (--blocks 6); a second \
             --metric needs more"
        );
        let two = fixed(6, &[Metric::Mean, Metric::P99]);
        assert_eq!(
            refusal(&two),
            "6 blocks can never decide 2 metrics in 1 pair of arms: at least 7 can (--blocks 7)"
        );
        let four = ComparisonPlan {
            question: ComparisonQuestion::Pairs,
            arms: vec![plan().arms[0].clone(); 4],
            ..two
        };
        assert_eq!(
            refusal(&four),
            "6 blocks can never decide 2 metrics in 6 pairs of arms: at least 9 can (--blocks 9)"
        );
        assert_eq!(fixed(7, &[Metric::Mean, Metric::P99]).feasible(), Ok(()));
        assert_eq!(plan().feasible(), Ok(()));
        let [two, six] = [2, 6]
            .map(|arms| ComparisonPlan { arms: vec![plan().arms[0].clone(); arms], ..plan() });
        assert_eq!((two.looks(), two.fewest_that_decide()), (vec![8, 12, 16, 20], Some(8)));
        // Five tests share a chance of .0125: ten blocks can show .002.
        assert_eq!((six.looks(), six.fewest_that_decide()), (vec![10, 12, 16, 20], Some(10)));
    }
}
