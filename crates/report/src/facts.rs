//! What is said about a study beside its table, before it is laid out as text or markdown.

use std::mem::discriminant;

use model::forecast::{ServiceTime, ServiceTimeSource};
use model::run::ShareSource;
use model::{
    Caveat, ClaimedRow, Cpus, Environment, Nanos, Placement, Run, ServerFacts, ServerKind, Stop, StreamPlan,
    SweepStudy, WorkerShare, counts,
};

use crate::claimed::rows;
use crate::number::{self, NONE, count_of};
use crate::theory;
use crate::verdicts;

/// What a run is called where it has no row: `1.50x`, and where there are several `1.50x run 2`.
pub(crate) fn label(study: &SweepStudy, run: &Run) -> String {
    let multiple = number::multiple(run.multiple);
    if study.plan.repeat > 1 {
        format!("{multiple}x run {}", number::count(run.repeat))
    } else {
        format!("{multiple}x")
    }
}

/// A run and what it is called where it has no row.
pub(crate) struct Labelled<'a> {
    pub(crate) label: String,
    pub(crate) run: &'a Run,
}

/// The runs of a sweep with their names.
pub(crate) fn labelled(study: &SweepStudy) -> Vec<Labelled<'_>> {
    study.runs.iter().map(|run| Labelled { label: label(study, run), run }).collect()
}

/// A run's name and its doubts.
pub(crate) type Noted<'a> = (String, &'a [Caveat]);

/// The doubts of each of these runs.
pub(crate) fn noted<'a>(runs: &[Labelled<'a>]) -> Vec<Noted<'a>> {
    runs.iter().map(|labelled| (labelled.label.clone(), &*labelled.run.caveats)).collect()
}

/// The doubts of each run of a sweep, of another generator's too.
pub(crate) fn noted_of(study: &SweepStudy) -> Vec<Noted<'_>> {
    let claimed = study.claimed_runs.iter().map(|row| (rows::label(study, row), &*row.run.caveats));
    noted(&labelled(study)).into_iter().chain(claimed).collect()
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is left out, or that
/// nothing confirms, has a caveat too but no mark: it would stand on every row and mean nothing.
pub(crate) fn is_doubtful(run: &Run) -> bool {
    let spoils = |caveat: &Caveat| {
        !matches!(
            caveat,
            Caveat::TooFewRequests { .. }
                | Caveat::LedgerUnknown { .. }
                | Caveat::KernelUnjoined { .. }
                | Caveat::KernelIncomplete { .. }
        )
    };
    run.caveats.iter().any(spoils)
}

/// The environment, as (what, lines).
pub(crate) fn environment(study: &SweepStudy) -> Vec<(&'static str, Vec<String>)> {
    let mut named = vec![
        ("server", server(study)),
        ("machine", vec![machine(&study.environment, &study.started_at)]),
        ("load", load(study)),
    ];
    named.extend(theory::probes(study).map(|probed| ("probe", vec![probed])));
    named
}

/// `Puma 6.5.0, ruby 3.4.0, main 43b8bba1`.
pub(crate) fn server_name(server: &ServerFacts) -> String {
    let version = server.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let name = format!("{}{version}", server.name);
    listed([Some(name), server.runtime.clone(), server.git.clone()].into_iter().flatten())
}

/// `slots 20 = 4 workers x 5 threads`.
pub(crate) fn slots(server: &ServerFacts, kind: &ServerKind) -> String {
    let slots = format!("slots {}", number::count(server.slots()));
    if matches!(kind, ServerKind::Command { .. }) {
        return format!("{slots} (given)");
    }
    let threads = count_of(server.threads, "thread");
    if server.cluster {
        format!("{slots} = {} x {threads}", count_of(server.workers, "worker"))
    } else {
        format!("{slots} = 1 process x {threads}")
    }
}

fn server(study: &SweepStudy) -> Vec<String> {
    vec![
        server_name(&study.server),
        study.server.command_line.clone(),
        format!(
            "{}, {}, path {}",
            slots(&study.server, &study.plan.server.kind),
            study.server.url,
            study.plan.stream.target_path()
        ),
    ]
}

pub(crate) fn machine(machine: &Environment, started_at: &str) -> String {
    let longtail = named("longtail", &machine.longtail_version);
    listed(hardware(machine).into_iter().chain([longtail, named("started", started_at)]))
}

/// Processor, memory and system; what is not known is empty.
pub(crate) fn hardware(machine: &Environment) -> Vec<String> {
    vec![
        machine.cpu.clone(),
        if machine.cores > 0 { count_of(machine.cores, "core") } else { String::new() },
        if machine.memory_bytes > 0 { number::memory(machine.memory_bytes) } else { String::new() },
        machine.os.clone(),
        named("kernel", &machine.kernel),
    ]
}

/// `kernel 6.1.0`; nothing where there is nothing to name.
pub(crate) fn named(name: &str, what: &str) -> String {
    if what.is_empty() { String::new() } else { format!("{name} {what}") }
}

/// The run's model in words: what is sent, then what the server can do at most.
pub(crate) fn load(study: &SweepStudy) -> Vec<String> {
    let with = study.plan.with.as_deref();
    let mut lines = vec![stream_in_words(&study.plan.stream, study.server.placement.as_ref(), with)];
    lines.push(match service_time(study) {
        Some((time, source, maximum)) => {
            format!(
                "service time {} ({source}), so {} req/s at most",
                number::time(time),
                number::rate_in_words(maximum)
            )
        }
        None => "service time unknown, so no theoretical maximum".to_owned(),
    });
    if study.plan.repeat > 1 {
        let passes = number::count(study.plan.repeat);
        lines.push(format!("{passes} passes over the multiples, each on a fresh server"));
    }
    lines
}

/// `closed loop, keep-alive, 5s a run after 1s warm-up, 1 lane, answers given up after 30s`.
pub(crate) fn stream_in_words(stream: &StreamPlan, placement: Option<&Placement>, with: Option<&str>) -> String {
    let keep_alive = if stream.keep_alive { "keep-alive" } else { "a new connection for each request" };
    let stop = match stream.stop {
        Stop::After(time) => format!("{} a run", number::asked(time)),
        Stop::RequestsPerConnection(n) => format!("{} a connection", count_of(n, "request")),
    };
    let stop = if stream.warm_up == Nanos::ZERO {
        format!("{stop}, no warm-up")
    } else {
        format!("{stop} after {} warm-up", number::asked(stream.warm_up))
    };
    let timeout = format!("answers given up after {}", number::asked(stream.timeout));
    let maker = match with {
        None => lanes(stream.lanes, placement),
        Some(with) => format!("made by {with}"),
    };
    listed(["closed loop".to_owned(), keep_alive.to_owned(), stop, maker, timeout])
}

/// `1 lane on CPU 1, the server on CPU 0`; whether they share any is what matters.
pub(crate) fn lanes(lanes: u32, placement: Option<&Placement>) -> String {
    let lanes = count_of(lanes, "lane");
    let on = |cpus: &Cpus| format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" });
    match placement {
        None => lanes,
        Some(Placement { server, lanes: own }) if server == own => format!("{lanes} on {}, as the server", on(own)),
        Some(Placement { server, lanes: own }) => format!("{lanes} on {}, the server on {}", on(own), on(server)),
    }
}

/// How long a slot is held, how that is known, and the highest rate that leaves room for.
///
/// Before the first run there is no forecast yet; a delay that was given says the same.
fn service_time(study: &SweepStudy) -> Option<(Nanos, &'static str, f64)> {
    let ServiceTime { time, source } = study.service_time.filter(|known| known.time > Nanos::ZERO)?;
    let source = match source {
        ServiceTimeSource::Given => "given",
        ServiceTimeSource::Measured => "measured over one connection",
    };
    Some((time, source, f64::from(study.server.slots()) / time.as_secs_f64()))
}

/// Joined by commas, empty ones left out.
pub(crate) fn listed(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

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
pub(crate) fn workers(study: &SweepStudy) -> Vec<WorkerBlock> {
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

/// Each run that had errors: its name, how many of how many, and how many of each kind.
pub(crate) fn errors(runs: &[Labelled<'_>]) -> Vec<(String, String)> {
    let with_errors = runs.iter().filter(|labelled| labelled.run.tally.counts.failed() > 0);
    with_errors
        .map(|Labelled { label, run }| {
            let counts = &run.tally.counts;
            let kinds = counts.iter().filter(|(outcome, _)| !outcome.is_good()).map(|(outcome, n)| {
                let name = counts::name(outcome).replace('_', " ");
                let status = if name.bytes().all(|b| b.is_ascii_digit()) { "with status " } else { "" };
                format!("{} {status}{name}", number::count(n))
            });
            let of = format!("{} of {}", number::count(counts.failed()), count_of(counts.total(), "request"));
            (label.clone(), format!("{of}: {}", listed(kinds)))
        })
        .collect()
}

/// Doubts of one kind: what was seen, of which runs, and the remedy for all of them.
pub(crate) struct Doubt {
    pub(crate) seen: Vec<Seen>,
    pub(crate) remedy: &'static str,
}

/// What was seen, of one run or in the same words of several.
pub(crate) struct Seen {
    labels: Vec<String>,
    pub(crate) text: String,
}

impl Seen {
    /// The runs' names, or that it is all of them.
    pub(crate) fn of(&self, noted: &[Noted<'_>]) -> String {
        let all = noted.len() > 1 && noted.iter().all(|(label, _)| self.labels.contains(label));
        if all { "every run".to_owned() } else { self.labels.join(", ") }
    }
}

/// All caveats, of the study and of its runs, each once a run, by kind in the order in which the kinds first come up.
pub(crate) fn doubts(of_study: &[Caveat], noted: &[Noted<'_>]) -> Vec<Doubt> {
    let of_study = of_study.iter().map(|caveat| ("study".to_owned(), caveat));
    let of_runs = noted.iter().flat_map(|(label, caveats)| caveats.iter().map(|caveat| (label.clone(), caveat)));
    let mut kinds = Vec::new();
    let mut doubts: Vec<Doubt> = Vec::new();
    for (label, caveat) in of_study.chain(of_runs) {
        let kind = discriminant(caveat);
        let at = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            doubts.push(Doubt { seen: Vec::new(), remedy: caveat.remedy() });
            kinds.len() - 1
        });
        let seen = &mut doubts[at].seen;
        let text = caveat.text();
        match seen.iter_mut().find(|seen| seen.text == text) {
            Some(seen) if seen.labels.contains(&label) => {}
            Some(seen) => seen.labels.push(label),
            None => seen.push(Seen { labels: vec![label], text }),
        }
    }
    doubts
}

/// A figure over the repeats of a multiple: the median, the lowest and the highest.
pub(crate) type Spread = Option<[String; 3]>;

/// One multiple over its repeats.
pub(crate) struct Summary {
    pub(crate) multiple: String,
    pub(crate) connections: String,
    pub(crate) runs: String,
    /// As [`SUMMARY_FIGURES`].
    pub(crate) figures: [Spread; 4],
}

/// The figures of a [`Summary`].
pub(crate) const SUMMARY_FIGURES: [&str; 4] = ["req/s", "p50, ms", "p99, ms", "tail"];

/// Each multiple over its repeats, in the order of the first pass; nothing where there is one pass.
///
/// A figure is that of a run and never a mean of two: of an even number of runs the median is the lower of the two in
/// the middle. A figure that one of the runs does not have is not summed up: what is missing tends to be the worst.
pub(crate) fn summaries(study: &SweepStudy) -> Vec<Summary> {
    if study.plan.repeat < 2 {
        return Vec::new();
    }
    let nanos = |time: Option<Nanos>| time.map(|time| time.0 as f64);
    let of_ours = |run: &Run| {
        let figures = [
            Some(run.completed_rate()),
            nanos(run.response_time(0.5).time()),
            nanos(run.response_time(0.99).time()),
            run.long_tail(),
        ];
        // The figures of a run that is worth nothing are not shown anywhere.
        let is_hidden = verdicts::hides(run.judgement.as_ref());
        let figures = if is_hidden { [None; 4] } else { figures };
        Repeated { multiple: run.multiple, connections: run.connections, figures }
    };
    let of_claimed = |row: &ClaimedRow| Repeated {
        multiple: row.multiple,
        connections: row.run.connections,
        figures: [
            row.run.claim.rate_per_s,
            nanos(row.run.claim.percentile(0.5)),
            nanos(row.run.claim.percentile(0.99)),
            row.long_tail(),
        ],
    };
    let ours = study.runs.iter().map(of_ours);
    let runs: Vec<Repeated> = ours.chain(study.claimed_runs.iter().map(of_claimed)).collect();
    let mut multiples: Vec<f64> = Vec::new();
    for run in &runs {
        if !multiples.iter().any(|multiple| multiple.total_cmp(&run.multiple).is_eq()) {
            multiples.push(run.multiple);
        }
    }
    let summary = |multiple: f64| {
        let runs: Vec<&Repeated> = runs.iter().filter(|run| run.multiple.total_cmp(&multiple).is_eq()).collect();
        let of = |at: usize, shown: fn(f64) -> String| {
            spread(runs.iter().map(|run| run.figures[at]).collect()).map(|figures| figures.map(shown))
        };
        let milliseconds = |nanos: f64| number::milliseconds(Nanos(nanos as u64));
        Summary {
            multiple: number::multiple(multiple),
            connections: number::count(runs[0].connections),
            runs: number::count(runs.len() as u64),
            figures: [of(0, number::rate), of(1, milliseconds), of(2, milliseconds), of(3, number::times)],
        }
    };
    multiples.into_iter().map(summary).collect()
}

/// One run of a multiple, with the figures that are summed up, as [`SUMMARY_FIGURES`].
struct Repeated {
    multiple: f64,
    connections: u32,
    figures: [Option<f64>; 4],
}

/// Median, lowest and highest, where all are known.
pub(crate) fn spread(figures: Vec<Option<f64>>) -> Option<[f64; 3]> {
    let mut figures = figures.into_iter().collect::<Option<Vec<f64>>>()?;
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    Some([figures[last / 2], figures[0], figures[last]])
}

/// What to say where not all that was planned was run.
pub(crate) fn missing_runs(done: usize, planned: usize, interrupted: bool) -> Option<String> {
    let (done, planned) = (done as u64, planned as u64);
    let of = format!("{} of {}", number::count(done), count_of(planned, "run"));
    if interrupted {
        Some(format!("interrupted by the user: {of} to report"))
    } else if done < planned {
        Some(format!("{of} to report"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_figure_of_a_run() {
        assert_eq!(spread(vec![Some(4.0), Some(1.0), Some(9.0), Some(2.0)]), Some([2.0, 1.0, 9.0]));
    }

    #[test]
    fn a_figure_that_one_run_lacks_is_not_summed_up() {
        assert_eq!(spread(vec![Some(4.0), None, Some(9.0)]), None);
    }
}
