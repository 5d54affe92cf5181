//! Each worker's part of the requests, runs side by side.

use model::run::ShareSource;
use model::{SweepStudy, WorkerShare};

use crate::number::{self, NONE};

/// Runs side by side whose workers were counted in the same way: a head and a line a worker.
pub(crate) struct WorkerBlock {
    /// How the workers' requests are known.
    pub(crate) source: &'static str,
    /// `worker`, or which pass the runs are of: a fresh server has other workers.
    pub(crate) title: String,
    /// The runs' multiples.
    pub(crate) runs: Vec<String>,
    /// A worker and, for each run, its requests, % of all and deviation from an even share in %.
    pub(crate) workers: Vec<(String, Vec<[String; 3]>)>,
}

/// Runs that stand side by side at the most: five fit the width of the table.
const SIDE_BY_SIDE: usize = 5;

/// Each run's requests by worker; nothing where there is one worker, or none is known.
pub(crate) fn by_worker(study: &SweepStudy) -> Vec<WorkerBlock> {
    let ours =
        study.runs.iter().map(|run| Shared { repeat: run.repeat, multiple: run.multiple, workers: &run.workers });
    let claimed = study.claimed_runs.iter().map(|row| Shared {
        repeat: row.repeat,
        multiple: row.multiple,
        workers: &row.workers,
    });
    let is_shared = |run: &Shared<'_>| run.workers.len() > 1 || study.server.workers > 1;
    let known: Vec<Shared<'_>> = ours.chain(claimed).filter(is_shared).collect();
    known
        .chunk_by(|a, b| a.repeat == b.repeat && source(a) == source(b))
        .flat_map(|runs| runs.chunks(SIDE_BY_SIDE))
        .filter_map(|runs| worker_block(study, runs))
        .collect()
}

/// A run, as far as its workers' parts go.
struct Shared<'a> {
    repeat: u32,
    multiple: f64,
    workers: &'a [WorkerShare],
}

fn source(run: &Shared<'_>) -> Option<ShareSource> {
    run.workers.first().map(|share| share.source)
}

fn worker_block(study: &SweepStudy, runs: &[Shared<'_>]) -> Option<WorkerBlock> {
    let source = match source(&runs[0])? {
        ShareSource::Header => "answers, as the response header names the worker",
        ShareSource::Stats => "requests started, warm-up included, as the server's statistics count them",
    };
    let mut names: Vec<&str> = runs.iter().flat_map(|run| run.workers).map(|share| share.worker.as_str()).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names.dedup();
    let share = |run: &Shared<'_>, name: &str| {
        let total: u64 = run.workers.iter().map(|share| share.requests).sum();
        let found = run.workers.iter().find(|share| share.worker == name);
        found.filter(|_| total > 0).map_or([NONE; 3].map(str::to_owned), |share| {
            let part = share.requests as f64 / total as f64;
            let deviation = part * run.workers.len() as f64 - 1.0;
            [number::count(share.requests), number::percent_tenths(part), number::deviation(deviation)]
        })
    };
    let workers =
        names.iter().map(|name| ((*name).to_owned(), runs.iter().map(|run| share(run, name)).collect())).collect();
    let title =
        if study.plan.repeat > 1 { format!("run {}", number::count(runs[0].repeat)) } else { "worker".to_owned() };
    let multiples = runs.iter().map(|run| format!("{}x", number::multiple(run.multiple)));
    Some(WorkerBlock { source, title, runs: multiples.collect(), workers })
}
