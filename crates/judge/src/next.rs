//! What to type next: commands that settle what a study leaves open. Each is the study's own
//! command line with one thing changed.

use model::comparison::{ComparisonDoubt, ComparisonFindings, Metric, MissingFigure};
use model::plan::quoted;
use model::secret::what_to_put;
use model::theory::ServiceTime;
use model::{
    ComparisonStudy, Limit, LoadStudy, Nanos, Pace, Profile, Quantile, ServerCpu, ServerKind,
    Statistics, Stop, Strength, Study, SweepStudy, Verdict, number,
};
use serde::Serialize;

use crate::findings::{
    ClosedLoop, FallsBehind, Finding, KeepsUp, Limited, NotMeasured, OneLoad, Overloaded, Peaked,
    StillRising,
};
use crate::named_runs::name_in_sweep;
use crate::trust::UNCERTAIN;

/// A command to type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextCommand {
    /// The command line.
    pub command: String,
    /// What it answers.
    pub why: String,
}

/// More than these are a list to read.
const MOST: usize = 3;
/// Theory and a longer run come after what the findings ask for, of which there are at most so
/// many.
const MOST_OF_FINDINGS: usize = 2;
/// So many times as long is another kind of run.
const LONGEST: f64 = 100.0;

/// The commands, the most useful first.
pub fn next_commands(study: &Study, findings: &[Finding]) -> Vec<NextCommand> {
    let mut next = match study {
        Study::Sweep(study) => of_sweep(study, findings),
        Study::Load(study) => of_load(study, findings),
        Study::Compare(study) => of_comparison(study),
        Study::Bodies(_) => Vec::new(),
    };
    next.truncate(MOST);
    next
}

fn command(line: impl Into<String>, why: &str) -> NextCommand {
    let command = line.into();
    // What a report does not repeat has to be typed again.
    let missing = what_to_put(&shlex::split(&command).unwrap_or_default());
    let missing = missing.map(|what| format!("; {what}")).unwrap_or_default();
    NextCommand { command, why: format!("{why}{missing}") }
}

fn all_checks() -> NextCommand {
    command("longtail report --full", "all checks and figures")
}

/// More blocks, or longer runs, where they would tell.
fn of_comparison(study: &ComparisonStudy) -> Vec<NextCommand> {
    const MOST_BLOCKS: u32 = 60;
    let found = ComparisonFindings::of(&study.plan, &study.runs);
    let deciding = || found.metrics.iter().filter(|row| row.decides);
    let with = |flag: String, name: &str, why: &str| {
        command(edited(&study.command_line, &flag, &[name]), why)
    };
    let is_thin = |doubt| {
        matches!(doubt, ComparisonDoubt::Missing { figure: MissingFigure::TooFewAnswers, .. })
    };
    let thin =
        deciding().find(|row| row.differences.iter().any(|it| it.doubt.is_some_and(is_thin)));
    let next = if let Some(row) = thin {
        let why = format!("{} needs more answers a run", row.metric);
        longer(study, row.metric).map(|length| with(format!("--for {length}"), "--for", &why))
    } else {
        let needed = deciding().flat_map(|row| &row.differences).filter_map(|difference| {
            match difference.doubt? {
                ComparisonDoubt::FewBlocks { least } => {
                    Some(least.max(study.plan.blocks.looks().first()?.after))
                }
                _ => difference.blocks_needed,
            }
        });
        let blocks = needed.max().filter(|blocks| *blocks <= MOST_BLOCKS);
        blocks.map(|blocks| {
            with(format!("--blocks {blocks}"), "--blocks", "so many blocks would tell")
        })
    };
    next.into_iter().collect()
}

/// How long a run must be for three answers above the percentile.
fn longer(study: &ComparisonStudy, metric: Metric) -> Option<Nanos> {
    let quantile = metric.quantile()?;
    let Stop::After(length) = study.plan.arms[0].stream.stop else { return None };
    let fewest =
        study.runs.iter().map(|run| run.run.tally.counts.good()).filter(|good| *good > 0).min()?;
    let times = 3.0 / (1.0 - quantile) / fewest as f64;
    (times > 1.0 && times < LONGEST)
        .then(|| Nanos::from_secs((length.as_secs_f64() * times).ceil() as u64))
}

/// Flags that say how long each load is.
const LENGTH: [&str; 5] = ["--for", "-z", "-D", "-R", "--requests-per-connection"];

/// Loads that are so many times as long.
fn longer_stop(stop: Stop, times: u64) -> String {
    match stop {
        Stop::After(time) => format!("--for={}", time * times),
        Stop::RequestsPerConnection(n) => format!("-R{}", n.saturating_mul(times)),
    }
}

/// Flags that say which loads are made.
const LOADS: [&str; 3] = ["--multiples", "--connections", "-c"];

/// A load of this part of what passes at a time leaves room for chance.
const ROOM: f64 = 0.75;

/// What settles whether it is the limit, or which of several things it is.
fn about_limit(study: &SweepStudy, limit: &Limit) -> Option<NextCommand> {
    let with = |flags: String, dropped: &[&str], why: &str| {
        Some(command(edited(&study.command_line, &flags, dropped), why))
    };
    let is_puma = matches!(study.plan.server.kind, ServerKind::Puma { .. });
    let workers = study.server.workers.max(1);
    match limit {
        Limit::RubyLock { .. } if is_puma => {
            with(format!("-w{}", 2 * workers), &["-w", "--workers"], "twice as many workers")
        }
        Limit::InsideApp { .. } if is_puma => with(
            format!("-w{}", 2 * workers),
            &["-w", "--workers"],
            "inside a worker, or behind all?",
        ),
        Limit::InsideApp { at_once: Some(at_once), .. } => {
            let fewer = (ROOM * at_once.mean).floor().max(1.0);
            with(
                format!("--connections={fewer},{}", 4 * study.server.slots()),
                &LOADS,
                "fewer than pass at a time: as long as alone, it is a pool; longer, a lock",
            )
        }
        Limit::Threads { slots, strength: Strength::MayBe, .. } if is_puma => {
            let threads = 2 * slots / workers;
            with(
                format!("-t{threads}:{threads}"),
                &["-t", "--threads"],
                "twice as many threads: where it does no more, they are not the limit",
            )
        }
        Limit::NotKnown { .. } | Limit::Threads { strength: Strength::MayBe, .. } => with(
            format!("--multiples=0.5,1,4 {}", longer_stop(study.plan.stream.stop, 4)),
            &[LOADS.as_slice(), &LENGTH].concat(),
            "as long at 1x as at 0.5x: then nothing inside holds them up",
        ),
        Limit::MoreThanStated { connections, is_full: false, .. } => with(
            format!("--connections={connections},{},{}", 2 * connections, 4 * connections),
            &LOADS,
            "where does it do no more?",
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
    let plan = &study.plan;
    let with = |flags: String, dropped: &[&str], why: &str| {
        command(edited(&study.command_line, &flags, dropped), why)
    };
    let mut next: Vec<NextCommand> = Vec::new();
    let mut settles_limit = None;
    for finding in findings {
        let step = match finding {
            Finding::Unfair(_) | Finding::ServedInTurns(_) if plan.stream.keep_alive => {
                with("-k".to_owned(), &[], "without keep-alive")
            }
            Finding::NeverServed(_) if plan.stream.keep_alive => {
                with("-k".to_owned(), &[], "a connection for each request: then nobody is left out")
            }
            Finding::StillRising(StillRising {
                hardly_since: Some(before), connections, ..
            }) => {
                let loads = [*before, (before + connections) / 2, *connections, 2 * connections];
                let loads = loads.map(|load| load.to_string()).join(",");
                with(format!("--connections={loads}"), &LOADS, "loads between, and a higher one")
            }
            Finding::StillRising(_) => {
                let most = plan.multiples.iter().copied().fold(1.0, f64::max);
                with(
                    format!("--multiples={},{},{}", most, 2.0 * most, 4.0 * most),
                    &LOADS,
                    "more connections",
                )
            }
            Finding::OneLoad(OneLoad { connections, .. }) => {
                let [half, same, twice] = [1, 2, 4].map(|n| (n * connections / 2).max(1));
                with(
                    format!("--connections={half},{same},{twice}"),
                    &LOADS,
                    "half of it, and twice as many",
                )
            }
            Finding::Undecided(_) => {
                with("--multiples=0.5,1,4".to_owned(), &LOADS, "the app alone, and under load")
            }
            Finding::Limited(Limited { limit, .. }) => {
                settles_limit = about_limit(study, limit);
                continue;
            }
            Finding::NotMeasured(NotMeasured { verdict: Verdict::Invalid, .. }) => all_checks(),
            _ => continue,
        };
        if !next.contains(&step) {
            next.push(step);
        }
    }
    next.truncate(MOST_OF_FINDINGS - usize::from(settles_limit.is_some()));
    next.extend(settles_limit.filter(|step| !next.contains(step)));
    if study.runs.is_empty()
        || !study.runs.iter().all(|run| run.is_evidence() && run.claim.is_none())
    {
        return next;
    }
    let needs = study.runs.iter().filter_map(|run| {
        let more = more_answers(
            run.response_time(0.99),
            run.statistics.as_ref(),
            run.tally.counts.good(),
        )?;
        Some((more, name_in_sweep(study, run)))
    });
    if let Some(((times, answers), label)) = needs.max_by(|((a, _), _), ((b, _), _)| a.total_cmp(b))
    {
        let longer = longer_stop(plan.stream.stop, times.ceil() as u64);
        next.push(with(longer, &LENGTH, &format!("p99 at {label} needs about {answers} answers")));
    }
    next.extend(prediction(study));
    next
}

/// How many times as long a run must be until p99 is known to a fifth of it, and how many answers
/// that are, about; `None` where it is known, where no longer run would tell, or none that anybody
/// would wait for.
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

/// What to type for runs that are so many times as long; `None` where nobody would wait for them.
pub fn longer_by(study: &Study, times: f64) -> Option<String> {
    if times > LONGEST {
        return None;
    }
    let times = times.ceil() as u64;
    let of_stop = |stop: Stop| match stop {
        Stop::After(time) => format!("--for={}", time * times),
        Stop::RequestsPerConnection(n) => format!("-R{}", n * times),
    };
    Some(match study {
        Study::Sweep(study) => of_stop(study.plan.stream.stop),
        Study::Bodies(study) => of_stop(study.plan.stream.stop),
        Study::Compare(study) => of_stop(study.plan.arms.first()?.stream.stop),
        Study::Load(study) => match (study.plan.length, study.plan.load.requests_total) {
            (Some(length), _) => format!("--for={}", length * times),
            (None, Some(total)) => format!("-n {}", two_digits_up(total * times)),
            (None, None) => return None,
        },
    })
}

/// Two digits, not less: nobody plans for 3689 answers.
fn two_digits_up(n: u64) -> u64 {
    let unit = 10u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(unit) * unit
}

/// What theory says of these workers and threads, with what was measured: the service time, of it
/// the CPU time that Ruby's lock holds, and the CPUs that the server had.
fn prediction(study: &SweepStudy) -> Option<NextCommand> {
    let run = study.runs.last()?;
    let service = study.service_time.as_ref()?;
    let (workers, threads) = (study.server.workers.max(1), study.server.threads);
    let server = run.generator.server.as_ref();
    let cpu = server.and_then(ServerCpu::per_request).or(service.cpu);
    let is_puma = matches!(study.plan.server.kind, ServerKind::Puma { .. });
    let cpu = cpu.filter(|cpu| is_puma && cpu.0 > 0 && cpu.0 < service.mean.0);
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

/// A number of CPUs as `--cpus` takes it, to hundredths.
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

/// Flags of a load that say how much is asked for, how that changes, and what is expected.
const AMOUNT: [&str; 4] = ["--rate", "--for", "-n", "--requests"];
const RAMP: [&str; 4] = ["--ramp", "--over", "--steps", "--step"];
const JUDGED: [&str; 3] = ["--expect", "--fail-if", "--stop-if"];

fn of_load(study: &LoadStudy, findings: &[Finding]) -> Vec<NextCommand> {
    let plan = &study.plan;
    // A generator's threads, requests and files stay as they were typed; only how much is asked for
    // changes.
    let with = |flags: &str, dropped: &[&str]| edited(&study.command_line, flags, dropped);
    let mut next = Vec::new();
    let most_of = |rate: f64, why: &str| {
        command(
            with(&format!("--rate {} --for 30s", round_rate(0.7 * rate)), &[AMOUNT, RAMP].concat()),
            why,
        )
    };
    for finding in findings {
        next.push(match finding {
            Finding::ClosedLoop(ClosedLoop { rate_per_s, pauses: false, .. })
                if *rate_per_s >= 2.0 =>
            {
                most_of(*rate_per_s, "70 % of it, sent on schedule")
            }
            Finding::KeepsUp(KeepsUp { offered_per_s: Some(offered), .. }) => {
                let [from, to] = [*offered, 10.0 * offered].map(round_rate);
                let dropped = [AMOUNT.as_slice(), &JUDGED].concat();
                command(
                    with(&format!("--ramp {from}..{to} --for 60s"), &dropped),
                    "where is it saturated?",
                )
            }
            Finding::Overloaded(Overloaded { completed_per_s, .. })
            | Finding::Peaked(Peaked { completed_per_s }) => {
                most_of(*completed_per_s, "70 % of what it can do")
            }
            Finding::FallsBehind(FallsBehind { under_way: Some(_), .. }) => {
                let Some(length) = plan.length else { continue };
                let line = with(&format!("--for {}", length * 6), &["--for"]);
                command(line, "overloaded, or some requests that take long?")
            }
            Finding::NotMeasured(NotMeasured { verdict: Verdict::Invalid, .. }) => all_checks(),
            _ => continue,
        });
    }
    next.truncate(MOST_OF_FINDINGS);
    let (run, answers) = (&study.run, study.run.tally.counts.good());
    let is_evidence = run.is_evidence() && run.claim.is_none();
    let needed = more_answers(run.response_time(0.99), run.statistics.as_ref(), answers)
        .filter(|_| is_evidence);
    let is_steady =
        matches!(plan.load.pace, Pace::Closed | Pace::Open { profile: Profile::Flat { .. }, .. });
    if let Some((times, needed)) = needed.filter(|_| is_steady) {
        let line = match plan.length {
            Some(length) => with(&format!("--for {}", length * times.ceil() as u64), &["--for"]),
            None => with(
                &format!("-n {}", two_digits_up((answers as f64 * times) as u64)),
                &["-n", "--requests"],
            ),
        };
        next.push(command(line, &format!("p99 needs about {needed} answers")));
    }
    next
}

/// Two digits: nobody offers 6861.4 requests a second.
fn round_rate(rate: f64) -> String {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 1.0);
    number::shortest((rate / unit).round() * unit.max(1e-9)).chars().take(12).collect()
}

/// The command line with these flags in place of those dropped, which each have a value. What
/// follows `--` is the server's.
pub fn edited(line: &str, flags: &str, dropped: &[&str]) -> String {
    let mut typed = shlex::split(line).unwrap_or_default().into_iter();
    let (mut words, mut server): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
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
    format!("{} {flags} {}", quoted(words), quoted(server)).trim_end().to_owned()
}

/// Where results go is no part of what is asked next.
const WHERE_TO: [&str; 4] = ["-o", "--output", "--html", "--log"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_replaced_however_they_were_typed_with_their_values_and_none_of_the_servers() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/edited_commands.txt");
        testkit::golden::expect_rows(file, |given| {
            let [line, flags, dropped]: [&str; 3] =
                given.split(" | ").collect::<Vec<_>>().try_into().expect(given);
            edited(line, flags, &dropped.split(' ').collect::<Vec<_>>())
        });
    }

    #[test]
    fn a_number_of_answers_has_two_digits_and_is_enough_and_a_rate_has_two_digits() {
        assert_eq!([7, 42, 369, 3687, 40_001].map(two_digits_up), [7, 42, 370, 3700, 41_000]);
        assert_eq!(
            [6861.4, 70.4, 0.71, 8.04, 350.0].map(round_rate),
            ["6900", "70", "0.71", "8", "350"]
        );
    }
}
