//! What `longtail compare` was asked: the arms, the load, how many blocks, and in which order a
//! block runs the arms.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Metric;
use super::ranks::least_blocks;
use crate::bodies::shuffled;
use crate::pace::uniform;
use crate::secret::{MaskedText, Private};
use crate::{Probe, ServerPlan, StreamPlan};

/// What `longtail compare` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonPlan {
    /// What is to be answered.
    pub question: ComparisonQuestion,
    /// What is compared, two or more. The first is the base.
    pub arms: Vec<ArmPlan>,
    /// Whether the base runs once more in each block, as one arm more: what differs between the two
    /// is noise.
    pub control: bool,
    /// The load on each arm.
    pub load: ComparisonLoad,
    /// How many blocks.
    pub blocks: ComparisonBlocks,
    /// `--metric`: what decides. Empty: [`Metric::Mean`], and [`Metric::Throughput`] for which is
    /// best.
    pub gates: Vec<Metric>,
    /// `--margin`: a difference up to this does not matter; .05 is 5 %.
    pub margin: f64,
    /// Chooses the order of the arms in each block.
    pub seed: u64,
    /// Whether each run is followed by a wait until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
}

/// What a comparison is to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonQuestion {
    /// What differs from the base? `longtail compare`.
    #[default]
    Change,
    /// Which is best? `longtail sweep --try`: every arm against every other.
    Best,
}

/// One way to run the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// What it is called.
    pub name: MaskedText,
    /// The settings in which it differs from what is common, in words, one a setting: `-k`,
    /// `-t3:3`, `RUBY_YJIT_ENABLE=1`, `branch main 43b8bba1`.
    pub settings: Vec<MaskedText>,
    /// The server and how to start it.
    pub server: ServerPlan,
    /// The stream of requests.
    pub stream: StreamPlan,
    /// Its environment, beside longtail's own.
    pub env: Private<BTreeMap<String, String>>,
    /// `--inspect`: what is read of server and kernel while a run goes on.
    pub probe: Probe,
    /// The folder that the server runs in, where that is not longtail's own: the copy of a commit.
    pub dir: Option<PathBuf>,
}

/// Two arms, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmPair {
    /// What the other is measured against.
    pub base: usize,
    /// The other.
    pub arm: usize,
}

/// The load on each arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ComparisonLoad {
    /// Connections that send again as soon as they have an answer.
    Closed {
        /// How many; `None`: twice as many as the base has slots, for every arm.
        connections: Option<u32>,
    },
    /// Requests at a fixed rate.
    Rate {
        /// Requests per second.
        per_s: f64,
    },
    /// Requests at a share of what the slower arm can do at most.
    Share {
        /// 0 to 1.
        of_maximum: f64,
    },
}

/// How many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonBlocks {
    /// So many, and one look at the end.
    Fixed(u32),
    /// Until the answer is there: a look after 8, 12, 16 and 20 blocks.
    UntilDecided,
}

/// A moment at which the runs are looked at, and may decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// After so many blocks.
    pub after: u32,
    /// The chance of a false alarm that this look may have.
    pub level: f64,
}

/// The chance of a false alarm that a comparison may have.
pub(super) const LEVEL: f64 = 0.05;
/// The looks of [`ComparisonBlocks::UntilDecided`]. Each has a fourth of [`LEVEL`], so that all of
/// them together have no more.
const LOOKS: [u32; 4] = [8, 12, 16, 20];

impl ComparisonBlocks {
    /// The looks, in order.
    pub fn looks(self) -> Vec<Look> {
        match self {
            ComparisonBlocks::Fixed(after) => vec![Look { after, level: LEVEL }],
            ComparisonBlocks::UntilDecided => {
                LOOKS.map(|after| Look { after, level: LEVEL / LOOKS.len() as f64 }).to_vec()
            }
        }
    }

    /// Blocks at the most.
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
    /// The answer is not there yet.
    GoOn,
    /// It is.
    Decided,
    /// It is not, and all blocks are done.
    NoBlocksLeft,
}

/// A plan that can never decide, whatever is measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{blocks} blocks can never decide {}: at least {least} can (--blocks {least})", tests_in_words(*tests))]
pub struct Infeasible {
    /// The blocks of the plan.
    pub blocks: u32,
    /// Tests that share the chance of a false alarm: metrics that decide x arms.
    pub tests: u32,
    /// The fewest that could.
    pub least: u32,
}

fn tests_in_words(tests: u32) -> String {
    if tests == 1 {
        "anything".to_owned()
    } else {
        format!("{tests} tests at once (metrics that decide x arms)")
    }
}

impl ComparisonPlan {
    /// Arms that each block runs, the control among them.
    pub fn arms_of_a_block(&self) -> usize {
        self.arms.len() + usize::from(self.control)
    }

    /// The arm at that place; the control's is the base.
    ///
    /// # Panics
    /// Where there is none at all.
    pub fn arm(&self, arm: usize) -> &ArmPlan {
        self.arms.get(arm).unwrap_or(&self.arms[0])
    }

    /// What it is called: a letter, from A; the control is the base's with a prime.
    pub fn letter(&self, arm: usize) -> String {
        match u32::try_from(arm).ok().and_then(|arm| char::from_u32(u32::from('A') + arm)) {
            _ if arm == self.arms.len() => "A'".to_owned(),
            Some(letter) if letter <= 'Z' => letter.to_string(),
            _ => format!("#{}", arm + 1),
        }
    }

    /// The metrics that decide.
    pub fn deciding(&self) -> Vec<Metric> {
        match self.question {
            _ if !self.gates.is_empty() => self.gates.clone(),
            ComparisonQuestion::Change => vec![Metric::Mean],
            ComparisonQuestion::Best => vec![Metric::Throughput],
        }
    }

    /// The order in which a block (from 1) runs its arms.
    ///
    /// As many blocks as there are arms are a Latin square: every arm is once at each place. Which
    /// arm stands where in the square, and which of its rows comes first, the seed decides anew for
    /// each square.
    pub fn order(&self, block: u32) -> Vec<usize> {
        let arms = self.arms_of_a_block();
        let (square, row) =
            ((block.max(1) - 1) as usize / arms, (block.max(1) - 1) as usize % arms);
        let mut draws =
            (0..).map(|n| uniform(self.seed ^ 0x0062_6C6F_636B ^ ((square as u64) << 32), n));
        let symbols: Vec<usize> = shuffled((0..arms).collect(), &mut draws);
        let rows: Vec<usize> = shuffled((0..arms).collect(), &mut draws);
        (0..arms).map(|place| symbols[(place + rows[row]) % arms]).collect()
    }

    /// The arms that are compared, each pair with its base first.
    pub fn pairs(&self) -> Vec<ArmPair> {
        let arms = self.arms.len();
        let bases = match self.question {
            ComparisonQuestion::Change => 1,
            ComparisonQuestion::Best => arms,
        };
        (0..bases).flat_map(|base| (base + 1..arms).map(move |arm| ArmPair { base, arm })).collect()
    }

    /// Whether the arms differ in what longtail reads meanwhile, so that its own CPU time is of
    /// interest.
    pub(crate) fn differs_in_instruments(&self) -> bool {
        let instruments =
            |arm: &ArmPlan| (arm.probe, arm.stream.timestamps, arm.stream.reads_app_times);
        self.arms.windows(2).any(|arms| instruments(&arms[0]) != instruments(&arms[1]))
    }

    /// Whether any outcome at all would decide at the last look.
    ///
    /// # Errors
    /// With the number of blocks that could: of `n` blocks that all show the same direction, the
    /// signed-rank test says p = 2 / 2^n, and the first of so many tests needs its part of the
    /// level (Holm).
    pub fn feasible(&self) -> Result<(), Infeasible> {
        let tests = (self.pairs().len() * self.deciding().len()).max(1) as u32;
        let least = |look: &Look| least_blocks(look.level / f64::from(tests));
        let looks = self.blocks.looks();
        if looks.iter().any(|look| look.after >= least(look)) {
            return Ok(());
        }
        Err(Infeasible {
            blocks: self.blocks.most(),
            tests,
            least: least(&Look { after: 0, level: LEVEL }),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{App, Nanos, test_fixtures};

    /// Two arms and the control, until it is decided.
    pub(crate) fn plan() -> ComparisonPlan {
        let arm = |name: &str| ArmPlan {
            name: name.into(),
            settings: vec![name.into()],
            server: test_fixtures::puma(App::Sleep),
            stream: test_fixtures::stream(5, Some(Nanos::from_millis(20))),
            env: Private::default(),
            probe: Probe::Proc,
            dir: None,
        };
        ComparisonPlan {
            question: ComparisonQuestion::Change,
            arms: vec![arm("main"), arm("branch")],
            control: true,
            load: ComparisonLoad::Closed { connections: None },
            blocks: ComparisonBlocks::UntilDecided,
            gates: Vec::new(),
            margin: 0.05,
            seed: 1,
            cool_down: true,
            calibrate: true,
        }
    }

    #[test]
    fn as_many_blocks_as_arms_are_a_latin_square() {
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
    fn a_plan_that_can_never_decide_names_the_blocks_that_could() {
        let fixed = |blocks, gates: &[Metric]| ComparisonPlan {
            blocks: ComparisonBlocks::Fixed(blocks),
            gates: gates.to_vec(),
            ..plan()
        };
        assert_eq!(fixed(6, &[]).feasible(), Ok(()));
        assert_eq!(fixed(5, &[]).feasible(), Err(Infeasible { blocks: 5, tests: 1, least: 6 }));
        let two = fixed(6, &[Metric::Mean, Metric::P99]).feasible().unwrap_err();
        assert_eq!((two.tests, two.least), (2, 7));
        assert_eq!(
            two.to_string(),
            "6 blocks can never decide 2 tests at once (metrics that decide x arms): at least 7 can (--blocks 7)"
        );
        assert_eq!(fixed(7, &[Metric::Mean, Metric::P99]).feasible(), Ok(()));
        assert_eq!(plan().feasible(), Ok(()));
    }
}
