//! What to type next: commands that would answer the questions that a study leaves open. Each is
//! the study's own command line with one thing changed.

use model::comparison::{
    ArmRanking, ComparisonDoubt, ComparisonFindings, ComparisonLoad, ComparisonQuestion,
    ComparisonRun, Difference, Metric, MissingFigure, SizeLook,
};
use model::plan::quoted;
use model::secret::what_to_put;
use model::theory::ServiceTime;
use model::{
    CapacityStudy, Compare, ComparisonStudy, Diagnostic, EndedBy, Limit, LoadStudy, Nanos,
    Objective, ObjectiveFigure, Pace, Profile, Quantile, Run, SearchEnd, ServerCpu, ServerSize,
    Statistics, Stop, Strength, Study, SweepStudy, Threshold, Verdict, number,
};
use serde::Serialize;

use crate::cut_short::{is_cut_short, is_shorter};
use crate::findings::{
    ClosedLoop, FallsBehind, Finding, HeavyClass, KeepsUp, Limited, NotMeasured, OneLoad,
    Overloaded, Peaked, StillRising, Undecided, WaitsForClients,
};
use crate::named_runs::name_in_sweep;
use crate::others_beyond;
use crate::server_limit::SAME_RATE;
use crate::size_search::worth_having;
use crate::tried_sizes::{larger_sizes, largest_is_best};
use crate::trust::UNCERTAIN;
use crate::words::round_rate;

/// A command to type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextCommand {
    /// The command line.
    pub command: String,
    /// What it answers.
    pub why: String,
}

/// At most this many commands are shown.
const MOST: usize = 3;
/// At most this many commands come from findings, so that theory and a longer run still have a
/// place.
const MOST_OF_FINDINGS: usize = 2;
/// A run this many times as long would be a different experiment.
const LONGEST: f64 = 100.0;

/// A load this short, or of so few requests, may be advised whatever the first one was.
const SHORT: Nanos = Nanos::from_secs(60);
const FEW: f64 = 2000.0;

/// A run is at most this many times as long where only rates are unclear.
const MUCH_LONGER: f64 = 20.0;

/// The commands, the most useful first.
pub fn next_commands(study: &Study, findings: &[Finding]) -> Vec<NextCommand> {
    let mut next = match study {
        Study::Sweep(study) => of_sweep(study, findings),
        Study::Load(study) => of_load(study, findings),
        Study::Compare(study) => of_comparison(study),
        Study::Bodies(_) => Vec::new(),
        Study::Capacity(study) => of_capacity(study),
    };
    // More of an overload only makes its times longer.
    let is_overload = findings.iter().any(|finding| matches!(finding, Finding::Overloaded(_)));
    if let Some(rest) = to_the_end(study).filter(|_| !is_overload) {
        // Half a sweep asks for the other half before anything else.
        if matches!(study, Study::Sweep(_)) {
            return vec![rest];
        }
        next.retain(|other| other.command != rest.command);
        next.insert(0, rest);
    }
    next.truncate(MOST);
    next
}

/// What a study lacks that the user ended early: of a sweep the other loads, else all of it.
fn to_the_end(study: &Study) -> Option<NextCommand> {
    let is_by_server =
        |warning: &Diagnostic| matches!(warning, Diagnostic::Interrupted { by: EndedBy::Server });
    if study.runs().iter().any(|run| run.warnings.iter().any(is_by_server)) || !is_cut_short(study)
    {
        return None;
    }
    if let Study::Sweep(sweep) = study
        && let Some(flags) = missing_loads(sweep)
    {
        let own = OwnLine(&sweep.command_line);
        return Some(own.with(flags, &LOADS, "the loads that are missing"));
    }
    let line = match study {
        Study::Sweep(study) => &study.command_line,
        Study::Bodies(study) => &study.command_line,
        Study::Compare(study) => &study.command_line,
        Study::Load(study) => &study.command_line,
        Study::Capacity(study) => &study.command_line,
    };
    Some(command(line.to_string(), "the same again, to its end"))
}

/// The flags for those loads of a sweep that have no whole run; `None` if that is all of them, or
/// each is measured several times.
fn missing_loads(study: &SweepStudy) -> Option<String> {
    let is_whole = |run: &&Run| !is_shorter(run);
    let whole: Vec<u32> = study.runs.iter().filter(is_whole).map(|run| run.connections).collect();
    let loads = study.plan.loads(study.server.slots());
    let is_missing = |(_, connections): &&(f64, u32)| !whole.contains(connections);
    let missing: Vec<&(f64, u32)> = loads.iter().filter(is_missing).collect();
    if study.plan.repeat > 1 || missing.is_empty() || missing.len() == loads.len() {
        return None;
    }
    let (flag, values): (&str, Vec<String>) = if study.plan.connections.is_empty() {
        let multiples = missing.iter().map(|(multiple, _)| number::shortest(*multiple));
        ("--multiples", multiples.collect())
    } else {
        ("--connections", missing.iter().map(|(_, connections)| connections.to_string()).collect())
    };
    Some(format!("{flag}={}", values.join(",")))
}

fn command(line: impl Into<String>, why: &str) -> NextCommand {
    let command = line.into();
    let words = shlex::split(&command).unwrap_or_default();
    // Secrets are not kept in a study and have to be typed again.
    let secrets = what_to_put(&words).map(|what| format!("; {what}")).unwrap_or_default();
    let stdin = if reads_stdin(&words) { "; give it the same input again" } else { "" };
    NextCommand { command, why: format!("{why}{stdin}{secrets}") }
}

/// Flags of which `-` is stdin.
const FROM_STDIN: [&str; 5] = ["--requests", "--mix", "--replay", "--body-file", "-D"];

/// Whether a command reads stdin, which a study does not keep.
fn reads_stdin(words: &[String]) -> bool {
    let of_command = words.split(|word| word == "--").next().unwrap_or_default();
    let with_value = |flag: &str, word: &str| word.strip_prefix(flag).is_some_and(|it| it == "=-");
    of_command.windows(2).any(|pair| FROM_STDIN.contains(&&*pair[0]) && pair[1] == "-")
        || of_command.iter().any(|word| FROM_STDIN.iter().any(|flag| with_value(flag, word)))
}

/// A study's own command line, to be changed in one place.
struct OwnLine<'a>(&'a str);

impl OwnLine<'_> {
    /// With `flags` in place of the `dropped` ones.
    fn with(&self, flags: impl AsRef<str>, dropped: &[&str], why: &str) -> NextCommand {
        command(edited(self.0, flags.as_ref(), dropped), why)
    }

    /// The same requests, but for those of one class.
    fn without_class(&self, name: &str) -> NextCommand {
        let why = format!("how long do the others take without {name}?");
        self.with(format!("--without {}", quoted(name)), &[], &why)
    }
}

fn all_checks() -> NextCommand {
    command("longtail report --full", "all checks and figures")
}

/// A longer search, where the budget was too short for the precision.
fn of_capacity(study: &CapacityStudy) -> Vec<NextCommand> {
    let is_wide_and_short = |search: &CapacityStudy| {
        let is_wide = search.bracket.width().is_none_or(|width| width > search.plan.precision);
        is_wide && matches!(search.end, Some(SearchEnd::Budget | SearchEnd::Undecided))
    };
    let of_sizes = study.sizes.iter().any(|size| is_wide_and_short(&size.search));
    let mut next = Vec::new();
    if is_wide_and_short(study) || of_sizes {
        // The budget that the forecast says is enough, as the conclusion has it: for both ends of
        // the bracket if one is missing, else for the precision.
        let needed = study.forecast.and_then(|forecast| match study.bracket.width() {
            None => forecast.both_ends_after,
            Some(_) => forecast.precise_after,
        });
        let needed = needed.filter(|needed| *needed > study.plan.budget);
        let longer = rounded_up(needed.unwrap_or(study.plan.budget * 3));
        let longer = format!("--budget={}m", longer.0 / 60_000_000_000);
        next.push(OwnLine(&study.command_line).with(longer, &["--budget"], "a narrower bracket"));
    }
    next
}

/// Whole minutes, and tens of minutes above an hour.
pub(crate) fn rounded_up(time: Nanos) -> Nanos {
    let minutes = (time.as_secs_f64() / 60.0).ceil() as u64;
    let minutes = if minutes > 60 { minutes.div_ceil(10) * 10 } else { minutes };
    Nanos::from_secs(minutes * 60)
}

/// What decides a comparison that is open, and what else may be asked of sizes.
fn of_comparison(study: &ComparisonStudy) -> Vec<NextCommand> {
    let of_sizes = if study.runs.is_empty() { looked_at(study) } else { in_overload(study) };
    to_decide(study).into_iter().chain(of_sizes).collect()
}

/// After single runs of sizes alone: the comparison of those that seem best, unless others took CPUs
/// from a size, so that it may seem to do less than it can.
fn looked_at(study: &ComparisonStudy) -> Option<NextCommand> {
    let looks = &study.plan.looked_at;
    let is_disturbed = |look: &SizeLook| {
        look.others.is_some() || look.at_rate.is_some_and(|at_rate| at_rate.others.is_some())
    };
    if looks.iter().any(is_disturbed) {
        return None;
    }
    let is_compared =
        |look: &&SizeLook| study.plan.arms.iter().any(|arm| *arm.name == look.size.to_string());
    let sizes: Vec<String> =
        looks.iter().filter(is_compared).map(|look| look.size.as_typed()).collect();
    let rate = study.rate_per_s();
    let rate = rate.map(|rate| format!(" --rate {}/s", number::rate_in_words(rate)));
    let flags = format!("--try {}{}", sizes.join(","), rate.unwrap_or_default());
    let why = "compares the sizes that seem best so far";
    (sizes.len() > 1).then(|| {
        OwnLine(&study.command_line).with(flags, &["--try", "--rate", "-w", "--workers"], why)
    })
}

/// After named sizes ran at a rate, which does not show how much each can do.
fn in_overload(study: &ComparisonStudy) -> Option<NextCommand> {
    let own = OwnLine(&study.command_line);
    let is_asked = study.plan.question == ComparisonQuestion::Best
        && matches!(study.plan.load, ComparisonLoad::Rate { .. })
        && study.plan.looked_at.is_empty();
    is_asked.then(|| own.with("", &["--rate", "-q"], "what can each do at most, in overload?"))
}

/// More blocks or longer runs, if they would decide the comparison.
fn to_decide(study: &ComparisonStudy) -> Vec<NextCommand> {
    const MOST_BLOCKS: u32 = 60;
    let found = ComparisonFindings::of(&study.plan, &study.runs);
    let deciding = || found.metrics.iter().filter(|row| row.decides);
    // Where the best is asked for, what differs between others needs no more blocks.
    let is_asked = |it: &&Difference| {
        found
            .ranking
            .as_ref()
            .is_none_or(|ranking| it.base == ranking.best || it.arm == ranking.best)
    };
    let asked = || deciding().flat_map(|row| &row.differences).filter(is_asked);
    let own = OwnLine(&study.command_line);
    if let Some(best) = found.ranking.as_ref().and_then(|it| largest_is_best(study, it)) {
        let sizes = larger_sizes(study, best).map(|sizes| format!("--try {sizes}"));
        // A rate that these sizes cannot do would only fill their queues.
        let dropped: &[&str] =
            if study.plan.wanted_per_s.is_some() { &["--try", "--rate"] } else { &["--try"] };
        let next = sizes.map(|sizes| own.with(sizes, dropped, "does a larger size do more?"));
        return next.into_iter().collect();
    }
    if found.ranking.as_ref().is_some_and(ArmRanking::is_decided)
        && let Some(next) = capacity_of_sizes(study)
    {
        return vec![next];
    }
    let is_thin = |doubt| {
        matches!(doubt, ComparisonDoubt::Missing { figure: MissingFigure::TooFewAnswers, .. })
    };
    let thin =
        deciding().find(|row| row.differences.iter().any(|it| it.doubt.is_some_and(is_thin)));
    let longer_runs = |times: u64, why: &str| {
        let stop = study.plan.arms.first()?.stream.stop;
        Some(own.with(longer_stop(stop, times), &LENGTH, why))
    };
    let has = |doubt: ComparisonDoubt| asked().any(|it| it.doubt == Some(doubt));
    let next = if let Some(row) = thin {
        let why = format!("{} needs more responses per run", row.metric);
        longer(study, row.metric).map(|length| own.with(format!("--for {length}"), &LENGTH, &why))
    } else if has(ComparisonDoubt::ShortRuns) {
        longer_runs(5, "runs that are long against the longest requests")
    } else {
        let needed = asked().filter_map(|difference| match difference.doubt? {
            ComparisonDoubt::FewBlocks { least } => Some(least.max(*study.plan.looks().first()?)),
            _ => difference.blocks_needed,
        });
        // If runs were lost to failed checks, the blocks needed may be no more than there were, and
        // as many again would not help.
        let blocks =
            needed.max().filter(|blocks| (found.blocks + 1..=MOST_BLOCKS).contains(blocks));
        // Of a comparison without a whole block nothing is known.
        let more_blocks = blocks.filter(|_| study.whole_blocks() > 0).map(|blocks| {
            own.with(
                format!("--blocks {blocks}"),
                &BLOCKS,
                "with this many blocks the result may be clear",
            )
        });
        let is_noisy = has(ComparisonDoubt::Noise) || has(ComparisonDoubt::Control);
        let longer = || longer_runs(4, "longer runs differ less from block to block");
        if (more_blocks.is_some() || is_noisy) && are_most_disturbed(study) {
            let why = "the same again, with the machine left alone: other programs used its CPUs";
            return vec![own.with("", &[], why)];
        }
        more_blocks.or_else(|| is_noisy.then(longer).flatten())
    };
    next.into_iter().collect()
}

/// Whether other programs took CPUs from the server in most of the runs: more or longer ones would show
/// no more.
fn are_most_disturbed(study: &ComparisonStudy) -> bool {
    let is_disturbed = |run: &&ComparisonRun| others_beyond(&run.run, study.plan.margin).is_some();
    2 * study.runs.iter().filter(is_disturbed).count() > study.runs.len()
}

/// After `sweep --try auto`, which finds the most requests a second: the rate that the smallest sizes
/// worth having take with short response times.
fn capacity_of_sizes(study: &ComparisonStudy) -> Option<NextCommand> {
    const SWEEP: &str = "longtail sweep ";
    const ONLY_OF_SWEEP: [&str; 13] = [
        "--try",
        "--rate",
        "-w",
        "--workers",
        "-c",
        "--connections",
        "--for",
        "-z",
        "-D",
        "--blocks",
        "--warm-up",
        "--expect",
        "--fail-if",
    ];
    let sizes = worth_having(&study.plan.looked_at);
    let sizes: Vec<String> = sizes.into_iter().map(ServerSize::as_typed).collect();
    let has_switch = ["--no-calibrate", "--no-cool-down", "--inspect"]
        .iter()
        .any(|flag| study.command_line.contains(flag));
    let is_plain = study.command_line.contains(SWEEP) && !has_switch;
    if sizes.len() < 2 || !is_plain {
        return None;
    }
    let line = edited(&study.command_line, &format!("--try {}", sizes.join(",")), &ONLY_OF_SWEEP);
    let line = line.replacen(SWEEP, "longtail capacity ", 1);
    Some(command(line, "how many requests/s can each take with a p99 below --objective?"))
}

/// How long a run must be for three responses above the percentile.
fn longer(study: &ComparisonStudy, metric: Metric) -> Option<Nanos> {
    let quantile = metric.quantile()?;
    let Stop::After(length) = study.plan.arms[0].stream.stop else { return None };
    let fewest =
        study.runs.iter().map(|run| run.run.tally.counts.good()).filter(|good| *good > 0).min()?;
    let times = 3.0 / (1.0 - quantile) / fewest as f64;
    (times > 1.0 && times < LONGEST)
        .then(|| Nanos::from_secs((length.as_secs_f64() * times).ceil() as u64))
}

/// Flags that set the length of each run of a sweep or comparison.
const LENGTH: [&str; 5] = ["--for", "-z", "-D", "-R", "--requests-per-connection"];

/// The flags for loads that are this many times as long.
fn longer_stop(stop: Stop, times: u64) -> String {
    match stop {
        Stop::After(time) => format!("--for={}", time * times),
        Stop::RequestsPerConnection(n) => format!("-R{}", n.saturating_mul(times)),
    }
}

/// Flags that set the loads.
const LOADS: [&str; 3] = ["--multiples", "--connections", "-c"];

/// With this share of what can pass at a time, requests hardly wait even by chance.
const ROOM: f64 = 0.75;

/// The command that shows whether this is the limit, or which of several causes it is.
fn about_limit(study: &SweepStudy, limit: &Limit) -> Option<NextCommand> {
    let own = OwnLine(&study.command_line);
    let with = |flags: String, dropped: &[&str], why: &str| Some(own.with(flags, dropped, why));
    let has_ruby_workers = study.plan.server.kind.has_ruby_workers();
    let workers = study.server.workers.max(1);
    match limit {
        Limit::RubyLock { .. } if has_ruby_workers => {
            with(format!("-w{}", 2 * workers), &["-w", "--workers"], "twice as many workers")
        }
        Limit::InsideApp { computes: Some(_), slots, .. } if has_ruby_workers => {
            let threads = 2 * slots / workers;
            with(
                format!("-t{threads}:{threads}"),
                &["-t", "--threads"],
                "twice the threads: if they do more, it is the lock",
            )
        }
        Limit::InsideApp { .. } if has_ruby_workers => with(
            format!("-w{}", 2 * workers),
            &["-w", "--workers"],
            "is it inside each worker, or shared by all?",
        ),
        Limit::InsideApp { at_once: Some(at_once), .. } => {
            let fewer = (ROOM * at_once.mean).floor().max(1.0);
            with(
                format!("--connections={fewer},{}", 4 * study.server.slots()),
                &LOADS,
                "fewer than can pass: times as alone mean a pool, longer ones a lock",
            )
        }
        Limit::Threads { slots, strength: Strength::MayBe, .. } if has_ruby_workers => {
            let threads = 2 * slots / workers;
            with(
                format!("-t{threads}:{threads}"),
                &["-t", "--threads"],
                "twice the threads: if throughput stays, they are not the limit",
            )
        }
        Limit::NotKnown { .. } | Limit::Threads { strength: Strength::MayBe, .. } => with(
            format!("--multiples=0.5,1,4 {}", longer_stop(study.plan.stream.stop, 4)),
            &[LOADS.as_slice(), &LENGTH].concat(),
            "equal times at 1x and 0.5x: nothing inside holds requests up",
        ),
        Limit::MoreThanStated { connections, is_full: false, .. } => with(
            format!("--connections={connections},{},{}", 2 * connections, 4 * connections),
            &LOADS,
            "where does throughput stop rising?",
        ),
        Limit::Threads { .. }
        | Limit::InsideApp { .. }
        | Limit::MoreThanStated { .. }
        | Limit::Refusals { .. }
        | Limit::Cpu(_)
        | Limit::RubyLock { .. }
        | Limit::OneCpuEach { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::SharedCpus(_) => None,
    }
}

fn of_sweep(study: &SweepStudy, findings: &[Finding]) -> Vec<NextCommand> {
    let limit = findings.iter().rev().find_map(|finding| match finding {
        Finding::Limited(Limited { limit, .. }) => Some(limit),
        _ => None,
    });
    // The limit is what a sweep asks for, so what settles it comes first.
    let settles_limit = limit.and_then(|limit| about_limit(study, limit));
    let mut next: Vec<NextCommand> = settles_limit.into_iter().collect();
    for step in findings.iter().filter_map(|finding| for_finding(study, finding)) {
        if !next.contains(&step) {
            next.push(step);
        }
    }
    next.truncate(MOST_OF_FINDINGS);
    let is_own = study.runs.iter().all(|run| run.is_evidence() && run.claim.is_none());
    if is_own && !study.runs.is_empty() {
        next.extend(longer_sweep(study));
        next.extend(prediction(study));
    }
    next
}

/// The command that follows up on a finding other than the limit, if there is one.
fn for_finding(study: &SweepStudy, finding: &Finding) -> Option<NextCommand> {
    let own = OwnLine(&study.command_line);
    let keep_alive = study.plan.stream.keep_alive;
    match finding {
        Finding::Unfair(_) | Finding::ServedInTurns(_) if keep_alive => {
            Some(own.with("-k", &[], "without keep-alive"))
        }
        Finding::NeverServed(_) if keep_alive => Some(own.with(
            "-k",
            &[],
            "a connection for each request, so that no client is left out",
        )),
        Finding::StillRising(rising) => Some(higher_loads(&own, rising, &study.plan.multiples)),
        Finding::OneLoad(OneLoad { connections, .. }) => Some(loads_around(&own, *connections)),
        Finding::Undecided(_) => {
            Some(own.with("--multiples=0.5,1,4", &LOADS, "the app alone, and under load"))
        }
        Finding::RatesUnclear(rates) => {
            // The error of a rate falls with the root of the number of responses.
            let times = (rates.error / SAME_RATE).powi(2).ceil().clamp(2.0, MUCH_LONGER) as u64;
            let longer = longer_stop(study.plan.stream.stop, times);
            Some(own.with(longer, &LENGTH, "longer runs: does throughput still rise?"))
        }
        Finding::HeavyClass(HeavyClass { name, .. }) => Some(own.without_class(name)),
        Finding::NotMeasured(NotMeasured { verdict: Verdict::Invalid, .. }) => Some(all_checks()),
        Finding::GoodStatuses(_)
        | Finding::ServerEnded(_)
        | Finding::NotMeasured(_)
        | Finding::EventCost(_)
        | Finding::Saturated(_)
        | Finding::Stalled(_)
        | Finding::ChangesWithTime(_)
        | Finding::Collapsing(_)
        | Finding::Unfair(_)
        | Finding::InOrder(_)
        | Finding::ClassesWaitAlike(_)
        | Finding::Spread(_)
        | Finding::AppVaries(_)
        | Finding::ClosedLoop(_)
        | Finding::KeepsUp(_)
        | Finding::Overloaded(_)
        | Finding::Peaked(_)
        | Finding::FallsBehind(_)
        | Finding::BodyRange(_)
        | Finding::Claimed(_)
        | Finding::Failed(_)
        | Finding::Limited(_)
        | Finding::ServedInTurns(_)
        | Finding::WaitInAcceptQueue(_)
        | Finding::WaitInServer(_)
        | Finding::AcceptsLate(_)
        | Finding::WaitsForClients(_)
        | Finding::StreamedBodies(_)
        | Finding::UnevenDealing(_)
        | Finding::UnevenWorkers(_)
        | Finding::NeverServed(_)
        | Finding::OthersCompute(_)
        | Finding::SlowClientsBeside(_)
        | Finding::AppQueueTime(_) => None,
    }
}

/// Half as many and twice as many connections, where one number of them was tried.
fn loads_around(own: &OwnLine<'_>, connections: u32) -> NextCommand {
    let [half, same, twice] = [1, 2, 4].map(|n| (n * connections / 2).max(1));
    let loads = format!("--connections={half},{same},{twice}");
    own.with(loads, &LOADS, "half as many and twice as many connections")
}

/// Loads that show where throughput stops rising. `multiples`: what was tried.
fn higher_loads(own: &OwnLine<'_>, rising: &StillRising, multiples: &[f64]) -> NextCommand {
    let connections = rising.connections;
    if let Some(before) = rising.hardly_since {
        let loads = [before, u32::midpoint(before, connections), connections, 2 * connections];
        let loads = loads.map(|load| load.to_string()).join(",");
        let why = "loads between, and a higher one";
        return own.with(format!("--connections={loads}"), &LOADS, why);
    }
    let most = multiples.iter().copied().fold(1.0, f64::max);
    let flags = format!("--multiples={},{},{}", most, 2.0 * most, 4.0 * most);
    own.with(flags, &LOADS, "more connections")
}

/// The command for longer runs, if they would determine p99 well enough.
fn longer_sweep(study: &SweepStudy) -> Option<NextCommand> {
    let needs = study.runs.iter().filter_map(|run| {
        let p99 = run.response_time(0.99);
        let more = more_answers(p99, run.statistics.as_ref(), run.tally.counts.good())?;
        Some((more, name_in_sweep(study, run)))
    });
    let ((times, answers), label) = needs.max_by(|((a, _), _), ((b, _), _)| a.total_cmp(b))?;
    let longer = longer_stop(study.plan.stream.stop, times.ceil() as u64);
    let why = format!("p99 at {label} needs about {answers} responses");
    Some(OwnLine(&study.command_line).with(longer, &LENGTH, &why))
}

/// How many times as long a run must be to know p99 to within a fifth, and about how many responses
/// that takes. `None` if it is known that well already, if a longer run would not help, or if it
/// would have to be too long.
fn more_answers(
    p99: Quantile,
    statistics: Option<&Statistics>,
    answers: u64,
) -> Option<(f64, String)> {
    if !matches!(p99, Quantile::Time(_) | Quantile::TooFew) || answers == 0 {
        return None;
    }
    let needed = statistics?.interval(0.99)?.responses_needed(answers, p99.time(), UNCERTAIN)?;
    let times = needed as f64 / answers as f64;
    (times <= LONGEST).then(|| (times, two_digits_up(needed).to_string()))
}

/// What to type for runs that are this many times as long; `None` if that is too long.
pub fn longer_by(study: &Study, times: f64) -> Option<String> {
    if times > LONGEST && !is_short_all_the_same(study, times) {
        return None;
    }
    let times = times.ceil() as u64;
    Some(match study {
        Study::Sweep(study) => longer_stop(study.plan.stream.stop, times),
        Study::Bodies(study) => longer_stop(study.plan.stream.stop, times),
        Study::Compare(study) => longer_stop(study.plan.arms.first()?.stream.stop, times),
        Study::Capacity(_) => return None,
        Study::Load(study) => {
            return load_longer_by(study.plan.length, study.plan.load.requests_total, times);
        }
    })
}

/// The flag for a load that is this many times as long as one of this length or number of requests.
pub fn load_longer_by(length: Option<Nanos>, requests: Option<u64>, times: u64) -> Option<String> {
    match (length, requests) {
        (Some(length), _) => Some(format!("--for={}", length * times)),
        (None, Some(requests)) => Some(format!("-n {}", two_digits_up(requests * times))),
        (None, None) => None,
    }
}

/// Whether a load is short even if it is this many times as long: one of two requests tells nothing.
fn is_short_all_the_same(study: &Study, times: f64) -> bool {
    let Study::Load(study) = study else { return false };
    match (study.plan.length, study.plan.load.requests_total) {
        (Some(length), _) => length.as_secs_f64() * times <= SHORT.as_secs_f64(),
        (None, Some(total)) => total as f64 * times <= FEW,
        (None, None) => false,
    }
}

/// Rounded up to two digits: nobody plans for 3689 responses.
pub(crate) fn two_digits_up(n: u64) -> u64 {
    let unit = 10u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(unit) * unit
}

/// The command that applies theory to these workers and threads, with the measured service time,
/// the share of it that is CPU time under Ruby's lock, and the server's CPUs.
fn prediction(study: &SweepStudy) -> Option<NextCommand> {
    let run = study.runs.last()?;
    let service = study.service_time.as_ref()?;
    let workers = study.server.workers.max(1);
    let threads = study.server.threads;
    let server = run.generator.server.as_ref();
    let cpu = server.and_then(ServerCpu::per_request).or(service.cpu);
    let has_ruby_workers = study.plan.server.kind.has_ruby_workers();
    let cpu = cpu.filter(|cpu| has_ruby_workers && cpu.0 > 0 && cpu.0 < service.mean.0);
    let cpus = server.filter(|server| cpu.is_some() && server.of > 0.0);
    let cpu = cpu.map(|cpu| format!(" --cpu {}", in_millis(cpu))).unwrap_or_default();
    let cpus = cpus.map(|server| format!(" --cpus {}", cpus_in_words(server.of)));
    let cpus = cpus.unwrap_or_default();
    let line = format!(
        "longtail predict -w{workers} -t{threads}:{threads} --service {}{cpu}{cpus} -c {}",
        law(service),
        run.connections
    );
    (threads > 0).then(|| command(line, "theory, with these figures"))
}

/// A number of CPUs as `--cpus` takes it, with two decimals.
pub(crate) fn cpus_in_words(cpus: f64) -> String {
    number::shortest((cpus * 100.0).round() / 100.0)
}

/// A service time as `--service` takes it, with its mean and its variation.
fn law(service: &ServiceTime) -> String {
    match service.log_normal() {
        None => in_millis(service.mean),
        Some(law) => {
            format!("lognormal:{}:{}", in_millis(law.median), number::significant(law.sigma))
        }
    }
}

fn in_millis(time: Nanos) -> String {
    format!("{}ms", number::significant(time.as_millis_f64()))
}

/// Flags that set how long a load lasts. Its `-D` is the file with its body.
const DURATION: [&str; 2] = ["--for", "-z"];
/// Flags that set how many requests a load sends.
const AMOUNT: [&str; 6] = ["--rate", "-q", "--for", "-z", "-n", "--number"];
/// Flags that set how many blocks a comparison has.
const BLOCKS: [&str; 2] = ["--blocks", "--rounds"];
/// Flags that change the rate during a load.
const RAMP: [&str; 4] = ["--ramp", "--over", "--steps", "--step"];
/// Flags that judge a load.
const JUDGED: [&str; 3] = ["--expect", "--fail-if", "--stop-if"];

fn of_load(study: &LoadStudy, findings: &[Finding]) -> Vec<NextCommand> {
    // A longer run settles less than a load without what may make some requests slow.
    let (longer, others): (Vec<_>, Vec<_>) =
        findings.iter().partition(|finding| matches!(finding, Finding::FallsBehind(_)));
    let mut in_order: Vec<_> = others.into_iter().chain(longer).collect();
    // How much it can do is of interest once its threads do not wait for clients.
    in_order.sort_by_key(|finding| {
        !matches!(finding, Finding::WaitsForClients(WaitsForClients { is_only_limit: true, .. }))
    });
    let in_order = in_order.into_iter();
    let mut next: Vec<_> =
        in_order.filter_map(|finding| for_finding_of_load(study, finding)).collect();
    if study.plan.slow_clients.is_some() {
        let why = "the same without slow clients; then longtail report A B compares both files";
        next.insert(0, OwnLine(&study.command_line).with("", &["--slow-clients"], why));
    }
    next.truncate(MOST_OF_FINDINGS);
    // What the server's threads do is what a load alone cannot tell, and where nobody asked for a
    // limit that comes first.
    let watch = watch_meanwhile(study, findings).into_iter().chain(stated_time(study, findings));
    let is_asked = !study.plan.thresholds.is_empty();
    let (first, second): (Vec<_>, Vec<_>) =
        if is_asked { (next, watch.collect()) } else { (watch.collect(), next) };
    first.into_iter().chain(second).chain(longer_load(study)).collect()
}

/// In an overload whose limit is not known, how long a request holds a thread tells how many are busy.
/// The fastest, which found a thread free, are a first guess.
fn stated_time(study: &LoadStudy, findings: &[Finding]) -> Option<NextCommand> {
    let is_overloaded = findings.iter().any(|finding| matches!(finding, Finding::Overloaded(_)));
    let overload = study.run.overload.as_ref().filter(|overload| overload.doubt.is_none())?;
    let judgement = study.run.judgement.as_ref()?;
    let is_open = matches!(judgement.limit, Some(Limit::NotKnown { .. }));
    let fastest = study.run.tally.service_time.quantile(crate::verdict::FASTEST)?;
    let service = in_millis(fastest);
    let why = format!(
        "if a request holds a thread for {service}, as the fastest did: how many are busy?"
    );
    (is_overloaded && is_open && overload.slots.is_none()).then(|| {
        OwnLine(&study.command_line).with(format!("--service {service}"), &["--service"], &why)
    })
}

/// A load sees a full server only from outside. `longtail watch` shows what the server's threads do
/// meanwhile, if the server runs on this machine and listens on TCP.
fn watch_meanwhile(study: &LoadStudy, findings: &[Finding]) -> Option<NextCommand> {
    let is_full = findings.iter().any(|finding| {
        matches!(finding, Finding::ClosedLoop(_) | Finding::Overloaded(_) | Finding::Peaked(_))
    });
    let is_here = study.run.generator.server.is_some();
    let is_tcp = study.plan.endpoints.iter().all(|endpoint| !endpoint.starts_with("unix"));
    let line = format!("longtail watch {}", quoted(&study.plan.url));
    let why = "in another terminal during such a load: what its threads wait for";
    (is_full && is_here && is_tcp).then(|| command(line, why))
}

/// The command that answers what a finding of a load leaves open. Only the amount of load changes;
/// threads, requests and files stay as they were typed.
fn for_finding_of_load(study: &LoadStudy, finding: &Finding) -> Option<NextCommand> {
    let own = OwnLine(&study.command_line);
    match finding {
        Finding::ClosedLoop(ClosedLoop { rate_per_s, pauses: false, .. }) if *rate_per_s >= 2.0 => {
            Some(most_of_rate(&own, *rate_per_s, "70 % of it, sent on schedule"))
        }
        Finding::KeepsUp(KeepsUp { offered_per_s: Some(offered), .. }) => {
            rate_below_limit(study).or_else(|| Some(ramp_from(&own, *offered)))
        }
        Finding::Overloaded(Overloaded { completed_per_s, .. })
        | Finding::Peaked(Peaked { completed_per_s }) => {
            let less = || most_of_rate(&own, *completed_per_s, "70 % of what it can do");
            Some(rate_below_limit(study).unwrap_or_else(less))
        }
        Finding::FallsBehind(FallsBehind { under_way: Some(_), .. }) => {
            times_as_long(study, 6, "is it overloaded, or do some requests take long?")
        }
        Finding::Undecided(Undecided { connections: 2.., .. }) if study.plan.load.keep_alive => {
            Some(own.with("-k", &[], "without keep-alive: do kept connections make some slow?"))
        }
        Finding::WaitsForClients(_) => Some(own.with(
            "-k",
            &[],
            "without keep-alive no thread waits for a client: does it keep up?",
        )),
        Finding::NotMeasured(NotMeasured { verdict: Verdict::Invalid, .. }) => Some(all_checks()),
        Finding::HeavyClass(HeavyClass { name, .. }) => Some(own.without_class(name)),
        Finding::EventCost(event) if event.is_cut_off => {
            times_as_long(study, 2, "until all is as it was before")
        }
        Finding::GoodStatuses(_)
        | Finding::ServerEnded(_)
        | Finding::NotMeasured(_)
        | Finding::EventCost(_)
        | Finding::Saturated(_)
        | Finding::StillRising(_)
        | Finding::RatesUnclear(_)
        | Finding::OneLoad(_)
        | Finding::Stalled(_)
        | Finding::ChangesWithTime(_)
        | Finding::Collapsing(_)
        | Finding::Unfair(_)
        | Finding::InOrder(_)
        | Finding::ClassesWaitAlike(_)
        | Finding::Spread(_)
        | Finding::Undecided(_)
        | Finding::AppVaries(_)
        | Finding::ClosedLoop(_)
        | Finding::KeepsUp(_)
        | Finding::FallsBehind(_)
        | Finding::BodyRange(_)
        | Finding::Claimed(_)
        | Finding::Failed(_)
        | Finding::Limited(_)
        | Finding::ServedInTurns(_)
        | Finding::WaitInAcceptQueue(_)
        | Finding::WaitInServer(_)
        | Finding::AcceptsLate(_)
        | Finding::StreamedBodies(_)
        | Finding::UnevenDealing(_)
        | Finding::UnevenWorkers(_)
        | Finding::NeverServed(_)
        | Finding::OthersCompute(_)
        | Finding::SlowClientsBeside(_)
        | Finding::AppQueueTime(_) => None,
    }
}

/// How many requests a second the server takes with response times below the limit that the load
/// was judged by; `None` without such a limit, or where `capacity` has no flag for a part of the
/// load.
fn rate_below_limit(study: &LoadStudy) -> Option<NextCommand> {
    const LOAD: &str = "longtail load ";
    const ONLY_OF_LOAD: [&str; 5] = ["--arrivals", "--seed", "--service", "-c", "--connections"];
    const OF_BOTH: [&str; 12] = [
        "-k",
        "--no-keep-alive",
        "-H",
        "--header",
        "-m",
        "--method",
        "--mix",
        "--requests",
        "--unix",
        "--insecure",
        "--timeout",
        "--allow-net",
    ];
    let limit = study.plan.thresholds.iter().find_map(upper_limit)?;
    let dropped = [AMOUNT.as_slice(), &RAMP, &JUDGED, &ONLY_OF_LOAD].concat();
    let line = edited(&study.command_line, "", &dropped);
    let arguments = line.strip_prefix(LOAD)?;
    let is_of_both = |word: &String| {
        let flag = word.split('=').next().unwrap_or(word);
        !word.starts_with('-') || OF_BOTH.contains(&flag)
    };
    let objective = quoted(&limit.to_string());
    let search = format!("longtail capacity {arguments} --objective {objective} --budget 5m");
    let why = format!("the most requests/s with {limit}");
    shlex::split(arguments)?.iter().all(is_of_both).then(|| command(search, &why))
}

/// The limit that keeps the response times of all requests below the threshold, if the threshold is
/// about these.
fn upper_limit(threshold: &Threshold) -> Option<Objective> {
    let Threshold { class, condition, is_expected } = threshold;
    let is_of_times =
        matches!(condition.figure, ObjectiveFigure::ResponseTime(_) | ObjectiveFigure::Mean);
    let is_upper = (condition.compare == Compare::Below) == *is_expected;
    (is_of_times && is_upper && class.is_none() && condition.part.is_none())
        .then_some(Objective { compare: Compare::Below, ..*condition })
}

/// An open loop at 70 % of this rate.
fn most_of_rate(own: &OwnLine<'_>, rate_per_s: f64, why: &str) -> NextCommand {
    let flags = format!("--rate {} --for 30s", round_rate(0.7 * rate_per_s));
    own.with(flags, &[AMOUNT.as_slice(), &RAMP].concat(), why)
}

/// A ramp from a rate that the server keeps up with to ten times as much.
fn ramp_from(own: &OwnLine<'_>, offered_per_s: f64) -> NextCommand {
    let [from, to] = [offered_per_s, 10.0 * offered_per_s].map(round_rate);
    let dropped = [AMOUNT.as_slice(), &JUDGED].concat();
    own.with(format!("--ramp {from}..{to} --for 60s"), &dropped, "where is it saturated?")
}

/// The same load for this many times as long; `None` if a count ends it.
fn times_as_long(study: &LoadStudy, times: u64, why: &str) -> Option<NextCommand> {
    let length = study.plan.length? * times;
    Some(OwnLine(&study.command_line).with(format!("--for {length}"), &DURATION, why))
}

/// The command for a longer load, if it would determine p99 well enough.
fn longer_load(study: &LoadStudy) -> Option<NextCommand> {
    let plan = &study.plan;
    let run = &study.run;
    let is_steady =
        matches!(plan.load.pace, Pace::Closed | Pace::Open { profile: Profile::Flat { .. }, .. });
    if !is_steady || !run.is_evidence() || run.claim.is_some() || is_shorter(run) {
        return None;
    }
    let answers = run.tally.counts.good();
    let (times, needed) = more_answers(run.response_time(0.99), run.statistics.as_ref(), answers)?;
    let own = OwnLine(&study.command_line);
    let why = format!("p99 needs about {needed} responses");
    if let Some(length) = plan.length {
        let flags = format!("--for {}", length * times.ceil() as u64);
        return Some(own.with(flags, &DURATION, &why));
    }
    let requests = two_digits_up((answers as f64 * times) as u64);
    Some(own.with(format!("-n {requests}"), &["-n", "--number"], &why))
}

/// The command line with `flags` in place of the `dropped` ones, each of which has a value. The
/// server's command after `--` stays as it is.
pub fn edited(line: &str, flags: &str, dropped: &[&str]) -> String {
    let mut typed = shlex::split(line).unwrap_or_default().into_iter();
    let mut words: Vec<String> = Vec::new();
    let mut server: Vec<String> = Vec::new();
    while let Some(word) = typed.next() {
        let is_dropped = |flag: &&&str| {
            let rest = word.strip_prefix(**flag);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('=') || !flag.starts_with("--")
            })
        };
        match dropped.iter().chain(&WHERE_TO).find(is_dropped) {
            _ if word == "--" => server = std::iter::once(word).chain(typed.by_ref()).collect(),
            Some(flag) if word == **flag => drop(typed.next()),
            Some(_) => {}
            None => words.push(word),
        }
    }
    let quoted =
        |words: Vec<String>| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let parts = [quoted(words), flags.to_owned(), quoted(server)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Flags that say where results go; they are not repeated.
pub const WHERE_TO: [&str; 4] = ["-o", "--output", "--html", "--log"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_with_a_limit_leads_to_the_rate_that_holds_it() {
        let mut study = testkit::load::open_poisson();
        let next = |study: &LoadStudy| rate_below_limit(study).map(|next| next.command);
        study.command_line = "longtail load --rate 500/s --arrivals poisson -H 'A: b' \
                              --expect 'p99 < 100ms' http://127.0.0.1:3000/"
            .into();
        study.plan.thresholds.clear();
        assert_eq!(next(&study), None, "no limit");
        study.plan.thresholds = vec![Threshold::on("failed < 1%", true).unwrap()];
        assert_eq!(next(&study), None, "no limit of times");
        study.plan.thresholds.push(Threshold::on("p99 > 100ms", false).unwrap());
        assert_eq!(
            next(&study).as_deref(),
            Some(
                "longtail capacity -H 'A: b' http://127.0.0.1:3000/ --objective 'p99 < 100ms' \
                 --budget 5m"
            )
        );
        study.command_line = format!("{} --replay a.log", study.command_line).into();
        assert_eq!(next(&study), None, "capacity has no such flag");
    }

    #[test]
    fn where_others_disturbed_most_runs_the_machine_is_to_be_left_alone() {
        let mut study = testkit::comparison::unclear();
        let next = |study: &ComparisonStudy| to_decide(study).remove(0).why;
        assert!(!next(&study).contains("left alone"), "{}", next(&study));
        let all = study.runs.len();
        for run in study.runs.iter_mut().take(all / 2 + 1) {
            run.run.generator.server = Some(ServerCpu {
                elapsed: run.run.elapsed,
                of: 2.0,
                busy: Some(2.0),
                idle: Some(0.0),
                ..ServerCpu::default()
            });
        }
        assert!(next(&study).contains("with the machine left alone"), "{}", next(&study));
    }

    #[test]
    fn a_rate_that_no_size_can_do_is_not_tried_with_larger_ones() {
        let mut study = testkit::comparison::largest_is_best(false);
        study.command_line = "longtail sweep -w4 --try auto --rate 9000".into();
        let next = |study: &ComparisonStudy| of_comparison(study).remove(0).command;
        assert!(next(&study).contains(" --rate 9000"));
        study.plan.wanted_per_s = Some(9000.0);
        assert_eq!(next(&study), "longtail sweep -w4 --try 4x5,4x8,4x13");
    }

    #[test]
    fn after_a_search_for_threads_comes_the_capacity_of_the_sizes_worth_having() {
        let mut study = testkit::comparison::best();
        let said = |study: &ComparisonStudy| capacity_of_sizes(study).map(|next| next.command);
        assert_eq!(said(&study), None, "the sizes were named");
        let rates = [(1, 44.0), (2, 63.8), (5, 93.0), (8, 108.0), (13, 120.0), (21, 125.0)];
        study.plan.looked_at = rates
            .map(|(threads, rate_per_s)| testkit::comparison::size_look(threads, rate_per_s))
            .into();
        study.command_line =
            "longtail sweep -r config.ru --path /posts -w2 --try auto --rate 70/s --for 2s".into();
        assert_eq!(
            said(&study).as_deref(),
            Some("longtail capacity -r config.ru --path /posts --try 2x5,2x8,2x21")
        );
        study.command_line = "longtail sweep --try auto --no-calibrate".into();
        assert_eq!(said(&study), None, "capacity has no such flag");
    }

    #[test]
    fn single_runs_of_sizes_that_others_left_alone_lead_to_their_comparison() {
        let mut study = testkit::comparison::searched_threads();
        study.runs.clear();
        let next = |study: &ComparisonStudy| looked_at(study).map(|next| next.command);
        assert_eq!(
            next(&study).as_deref(),
            Some("longtail sweep --seed=7 --try 2x2,2x3,2x5 --rate 75/s")
        );
        study.plan.looked_at[0].others = Some(0.8);
        assert_eq!(next(&study), None);
    }

    #[test]
    fn named_sizes_at_a_rate_lead_to_what_they_can_do_at_most() {
        let mut study = testkit::comparison::searched_threads();
        study.command_line = "longtail sweep --try 2x2,2x3,2x5 --rate 75/s".into();
        assert_eq!(in_overload(&study), None, "a search shows that");
        study.plan.looked_at.clear();
        let next = in_overload(&study).map(|next| next.command);
        assert_eq!(next.as_deref(), Some("longtail sweep --try 2x2,2x3,2x5"));
    }

    #[test]
    fn flags_are_replaced_in_any_notation_but_the_servers_command_is_not_touched() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/edited_commands.txt");
        testkit::golden::expect_rows(file, |given| {
            let [line, flags, dropped]: [&str; 3] =
                given.split(" | ").collect::<Vec<_>>().try_into().expect(given);
            edited(line, flags, &dropped.split(' ').collect::<Vec<_>>())
        });
    }

    #[test]
    fn a_changed_amount_of_load_leaves_the_request_as_it_was() {
        let request = "-m PUT -D body.json -T text/plain -H 'A: b' -a me:x -A a/b --data-raw c --body-file d \
                       --requests r.txt --mix m.txt --timeout 5s --think 1s -k --insecure --host h -4 http://h/";
        let line = format!("longtail load -n 60 -z5s -q 100 --rate=100 --for 5s {request}");
        let own = OwnLine(&line);
        for next in [ramp_from(&own, 100.0), most_of_rate(&own, 100.0, "")] {
            let kept = next.command.strip_prefix("longtail load ").unwrap();
            assert!(kept.starts_with(request), "{kept}");
        }
        let longer = own.with("--for 9s", &DURATION, "").command;
        assert!(longer.contains(request), "{longer}");
    }

    #[test]
    fn a_command_that_reads_stdin_says_so() {
        let why = |line: &str| command(line, "why").why;
        for line in
            ["longtail load --requests - -c 5", "longtail load --mix=-", "longtail load -D - URL"]
        {
            assert_eq!(why(line), "why; give it the same input again", "{line}");
        }
        for line in ["longtail load --log - URL", "longtail sweep --url URL -- server --mix -"] {
            assert_eq!(why(line), "why", "{line}");
        }
    }

    #[test]
    fn responses_are_rounded_up_and_rates_rounded_to_two_digits() {
        assert_eq!([7, 42, 369, 3687, 40_001].map(two_digits_up), [7, 42, 370, 3700, 41_000]);
        assert_eq!(
            [6861.4, 70.4, 0.71, 8.04, 350.0].map(round_rate),
            ["6900", "70", "0.71", "8", "350"]
        );
    }
}
