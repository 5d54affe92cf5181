//! `longtail sweep --try auto`: a short run of each number of threads, one after the other, until
//! more threads bring nothing. The sizes that are worth comparing are compared then, as those of a
//! list are.

use judge::size_search::{connections_for, less_disturbed, look_of, next_threads, to_compare};
use model::comparison::SizeLook;
use model::{ComparisonStudy, ServerSize, Study};
use probe::server_cpu::CpuRoom;
use report::number;
use sweep::{Observer, Phase};

use super::conducted::StudyDisplay;
use crate::args::CompareArgs;
use crate::args::compare::ArmRequest;
use crate::args::sweep::size_arm;
use crate::exit::{Mistake, refuse_if};
use crate::ui;

/// A look while other processes use the CPUs is repeated.
const ATTEMPTS: u32 = 2;

/// As many arms as may be compared: of them it can be said beforehand whether the comparison could
/// come to a decision.
///
/// # Errors
/// If a flag is wrong, or there are too few connections for two sizes.
pub(super) fn usual_arms(args: &CompareArgs) -> Result<Vec<ArmRequest>, Mistake> {
    let workers = workers(args).unwrap_or(1);
    let at_least = 2 * workers.max(1);
    refuse_if(
        args.connections.is_some_and(|connections| connections < at_least),
        format_args!(
            "--try auto: {workers} workers with two threads each need {at_least} connections: raise -c, or leave it out"
        ),
    )?;
    [1, 2, 3, 5]
        .map(|threads| args.arm(&arm_of(args, Some(workers), threads)))
        .into_iter()
        .collect()
}

/// Looks at one size after the other. `run_once` runs the server of an arm once, with so many
/// connections; `None` if the user interrupts.
///
/// # Errors
/// If a server does not work.
pub(super) fn look(
    args: &CompareArgs,
    mut run_once: impl FnMut(
        ArmRequest,
        u32,
        &mut dyn Observer,
    ) -> Result<Option<ComparisonStudy>, Mistake>,
) -> Result<Option<Vec<SizeLook>>, Mistake> {
    let mut workers = workers(args);
    let mut looks: Vec<SizeLook> = Vec::new();
    let mut observer = LookObserver { shown: StudyDisplay::new() };
    ui::note("--try auto: a run of each number of threads first, until more threads bring nothing");
    while let Some(threads) = next_threads(&looks, workers.unwrap_or(1), args.connections) {
        let mut kept: Option<SizeLook> = None;
        for _ in 0..ATTEMPTS {
            let arm = args.arm(&arm_of(args, workers, threads))?;
            let size = size_of(args, workers.unwrap_or(1), threads);
            let connections = args.connections.unwrap_or_else(|| connections_for(size));
            let Some(study) = run_once(arm, connections, &mut observer)? else {
                tell_interrupted(&looks);
                return Ok(None);
            };
            // A config file's workers are known once the first server runs.
            workers = workers.or_else(|| Some(study.server(0)?.workers));
            let look = look_of(&study, size_of(args, workers.unwrap_or(0), threads));
            ui::note(&in_words(&look));
            kept = Some(kept.map_or(look, |before| less_disturbed(before, look)));
            if look.others.is_none() {
                break;
            }
        }
        looks.extend(kept);
    }
    Ok(Some(looks))
}

/// The arms that are worth comparing.
///
/// # Errors
/// If their options cannot be understood.
pub(super) fn arms_to_compare(
    args: &CompareArgs,
    looks: &[SizeLook],
) -> Result<Vec<ArmRequest>, Mistake> {
    to_compare(looks).into_iter().map(|size| args.arm(&size_arm(size))).collect()
}

/// The workers of all sizes: those that were given, or one for each CPU. `None` if a config file may
/// set them.
fn workers(args: &CompareArgs) -> Option<u32> {
    let puma = &args.own.server.puma;
    let one_for_each_cpu = || {
        let room = CpuRoom::of(&[std::process::id()]);
        room.map_or(1, |room| (room.cpus as u32).max(1))
    };
    puma.workers().or_else(|| (!puma.has_config()).then(one_for_each_cpu))
}

fn size_of(args: &CompareArgs, workers: u32, threads: u32) -> ServerSize {
    ServerSize { workers, threads, keep_alive: !args.own.server.no_keep_alive }
}

fn arm_of(args: &CompareArgs, workers: Option<u32>, threads: u32) -> String {
    match workers {
        Some(workers) => size_arm(size_of(args, workers, threads)),
        None => format!("-t{threads}:{threads}"),
    }
}

/// `2 x 5: 95.6/s`
fn in_words(look: &SizeLook) -> String {
    let rate = format!("{}: {}/s", look.size, number::significant(look.rate_per_s));
    match look.others {
        Some(others) => {
            format!("{rate}, while other processes used {} CPUs", number::significant(others))
        }
        None => rate,
    }
}

fn tell_interrupted(looks: &[SizeLook]) {
    let known: Vec<String> = looks.iter().map(in_words).collect();
    let known = match &known[..] {
        [] => "nothing is known".to_owned(),
        known => format!("one run of each said {}", known.join(", ")),
    };
    ui::note(&format!("interrupted before the sizes were compared: {known}"));
}

/// Shows what the servers say. The runs are told by their results.
struct LookObserver {
    shown: StudyDisplay,
}

impl Observer for LookObserver {
    fn phase(&mut self, _: &Phase) {}

    fn remark(&mut self, text: &str) {
        self.shown.remark(text);
    }

    fn run_done(&mut self, _: &Study, _: &Study) {}

    fn judged(&mut self, _: &Study) {}
}
