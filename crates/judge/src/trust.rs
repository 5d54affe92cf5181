//! Whether the figures of a study can be trusted: first what speaks for them, then one line for
//! each doubt, however many runs have it.

use std::mem::discriminant;

use model::{Diagnostic, Judgement, Limit, Nanos, Quantile, Run, Study, Verdict, number};
use serde::Serialize;

use crate::checks::{Grade, assess, grade, machine_busy};
use crate::cut_short::{runs_made, so_far};
use crate::event::{EventTrouble, trouble};
use crate::named_runs::{NamedRun, diagnostics, is_hidden};
use crate::verdict::troubles;
use crate::words::{brief, listed, round_rate, share};

/// One reason to trust or to doubt the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustLine {
    /// Its grade.
    pub mark: Grade,
    /// In words.
    pub sentence: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

impl TrustLine {
    /// A line without a hint.
    pub fn new(mark: Grade, sentence: impl Into<String>) -> TrustLine {
        TrustLine { mark, sentence: sentence.into(), hint: None }
    }

    /// The line with a hint.
    #[must_use]
    pub fn hint(self, hint: &'static str) -> TrustLine {
        TrustLine { hint: Some(hint), ..self }
    }
}

/// A percentile that the answer shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownPercentile {
    /// `p99.9`.
    pub name: &'static str,
    /// 0 to 1.
    pub quantile: f64,
}

const P50: ShownPercentile = ShownPercentile { name: "p50", quantile: 0.50 };
const P90: ShownPercentile = ShownPercentile { name: "p90", quantile: 0.90 };
const P95: ShownPercentile = ShownPercentile { name: "p95", quantile: 0.95 };
const P99: ShownPercentile = ShownPercentile { name: "p99", quantile: 0.99 };
const P999: ShownPercentile = ShownPercentile { name: "p99.9", quantile: 0.999 };

/// The percentiles of a summary.
pub const SUMMARY_PERCENTILES: [ShownPercentile; 5] = [P50, P90, P95, P99, P999];

/// The percentiles that a command's answer shows, and whose doubts are listed. A comparison has
/// none: its uncertainty comes from its blocks, not from single runs.
pub fn shown_percentiles(command: &str) -> &'static [ShownPercentile] {
    match command {
        "load" => &SUMMARY_PERCENTILES,
        "sweep" => &[P50, P95, P99],
        _ => &[],
    }
}

/// The reasons to trust or to doubt a study's figures. `shown`: the runs whose percentiles are
/// shown.
pub fn trust(study: &Study, runs: &[NamedRun<'_>], shown: &[NamedRun<'_>]) -> Vec<TrustLine> {
    let command = if matches!(study, Study::Load(_)) { "load" } else { "sweep" };
    let percentiles = shown_percentiles(command);
    let cut_short = cut_short(study);
    // A line says so, or the conclusion does.
    let is_cut_short = match study {
        Study::Load(load) => load.run.is_evidence() && so_far(study).is_some(),
        Study::Sweep(sweep) => cut_short.is_some() || runs_made(sweep).is_some(),
        Study::Bodies(_) | Study::Compare(_) | Study::Capacity(_) => false,
    };
    let mut lines: Vec<TrustLine> = cut_short.into_iter().chain(passed(runs)).collect();
    lines.extend(runs.iter().filter_map(of_event));
    lines.extend(doubts(runs, is_cut_short));
    lines.extend(generators_part(shown, percentiles));
    // A figure that is missing needs its reason more than a rough one, which has its mark.
    lines.extend(missing(shown, percentiles, study));
    lines.extend(uncertain(shown, percentiles));
    lines
}

/// That a run does not show what its event costs.
fn of_event(run: &NamedRun<'_>) -> Option<TrustLine> {
    let event = run.run.event.as_ref()?;
    let at = if run.name.is_empty() { String::new() } else { format!(" at {}", run.name) };
    let line = match trouble(event)? {
        EventTrouble::NotDone => TrustLine::new(
            Grade::Failed,
            format!("The event was not done{at}, so nothing shows what it costs."),
        ),
        EventTrouble::Failed { exit_code } => {
            let last = event.command.as_ref().and_then(|command| command.last_line.as_ref());
            let last = last.map(|line| format!(" ({line})")).unwrap_or_default();
            TrustLine::new(
                Grade::Failed,
                format!(
                    "The event's command ended with exit code {exit_code}{at}{last}: that does not \
                     show what it costs if it succeeds."
                ),
            )
        }
        EventTrouble::WithoutEffect => TrustLine::new(
            Grade::Failed,
            format!(
                "The event changed no process of the server{at}, so nothing shows what it costs."
            ),
        ),
        EventTrouble::Unfinished => TrustLine::new(
            Grade::Doubtful,
            format!("The event was not over when the run was{at}, so it may cost more."),
        )
        .hint("run longer (--for)"),
    };
    Some(line)
}

/// That a sweep was interrupted when all its runs had been made. If some are missing, the conclusion
/// says so (`cut_short::sentence_so_far`).
fn cut_short(study: &Study) -> Option<TrustLine> {
    let Study::Sweep(sweep) = study else { return None };
    let planned = sweep.plan.runs();
    (sweep.interrupted && runs_made(sweep).is_none()).then(|| {
        TrustLine::new(Grade::Note, format!("Interrupted after the last of {planned} runs."))
    })
}

/// That the server was measured, and by what margin the generator did not matter.
fn passed(runs: &[NamedRun<'_>]) -> Option<TrustLine> {
    let judged = runs.iter().filter(|run| run.run.judgement.is_some()).count();
    let evidence = runs.iter().filter(|run| run.run.is_evidence());
    // Of runs with a doubt about the generator that doubt is said, and nothing against it.
    let is_in_doubt = |run: &Run| {
        diagnostics(run).any(|(diagnostic, grade)| {
            grade >= Grade::Doubtful && assess(diagnostic).implicates_generator
        })
    };
    let (doubtful, evidence): (Vec<&NamedRun<'_>>, Vec<&NamedRun<'_>>) =
        evidence.partition(|run| judged > 1 && is_in_doubt(run.run));
    let had_to_wait = evidence.iter().any(|run| run.run.tally.queued.count > 0);
    let good: Vec<&Judgement> =
        evidence.into_iter().filter_map(|run| run.run.judgement.as_ref()).collect();
    let mut lags = Vec::new();
    let mut rooms = Vec::new();
    for check in good.iter().flat_map(|judgement| &judgement.checks) {
        match check {
            Diagnostic::GeneratorLag { p99, .. } if grade(check) == Grade::Passed => {
                lags.push(*p99);
            }
            Diagnostic::Headroom { times, ceiling_per_s } => rooms.push((*times, *ceiling_per_s)),
            _ => {}
        }
    }
    let what = match (good.first()?.verdict, good.len(), judged) {
        (Verdict::Unloaded, 1, 1) => "The server was measured, not longtail".to_owned(),
        (Verdict::SharedCpus, 1, 1) => {
            "The CPUs were the limit, and longtail used a share of them".to_owned()
        }
        (Verdict::NetworkBound, 1, 1) => "The network was the limit, not longtail".to_owned(),
        // A closed loop waits for the server even if its connections are too few to fill it, and what
        // an open one waits for may be a few slow requests.
        (_, 1, 1) if matches!(good.first()?.limit, Some(Limit::NotKnown { .. })) => {
            "longtail was not the limit".to_owned()
        }
        (_, 1, 1) if others_use_the_cpus(good.first()?.limit.as_ref()) => {
            "longtail was not the limit".to_owned()
        }
        (_, 1, 1) => "The server was the limit, not longtail".to_owned(),
        (_, good, all) if good == all => {
            format!("All {all} runs measured the server, not longtail")
        }
        (_, good, all) => format!("{good} of {all} runs measured the server, not longtail"),
    };
    let delay = lags.into_iter().max().map(brief).map(|lag| {
        if had_to_wait {
            // They were sent late, as no connection was free, and that is not longtail's delay.
            format!("it delayed 99 % of requests by at most {lag} itself")
        } else {
            format!("99 % of requests were sent within {lag}")
        }
    });
    let of_several = rooms.len() > 1;
    let room =
        rooms.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(times, ceiling_per_s)| {
            if of_several {
                let times = number::fixed(times, usize::from(times < 9.95));
                format!("a test server took {times} times as many")
            } else {
                let ceiling = round_rate(ceiling_per_s);
                format!("a test server took about {ceiling}/s")
            }
        });
    let evidence = [delay, room].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let colon = if evidence.is_empty() { "" } else { ": " };
    let limits = if judged > 1 { limits_beside_the_server(&good) } else { String::new() };
    let others = match doubtful.len() {
        0 => String::new(),
        1 => "; one other has a warning about longtail".to_owned(),
        others => format!("; {others} others have warnings about longtail"),
    };
    Some(TrustLine::new(Grade::Passed, format!("{what}{colon}{evidence}{limits}{others}.")))
}

/// Whether the limit is not known and other programs used half of the CPUs or more: what limited the
/// server may be these.
fn others_use_the_cpus(limit: Option<&Limit>) -> bool {
    let Some(Limit::NotKnown { cpu: Some(cpu), .. }) = limit else { return false };
    cpu.others.is_some_and(|others| others >= cpu.of / 2.0)
}

/// In how many of several runs something else than the server alone was the limit.
fn limits_beside_the_server(good: &[&Judgement]) -> String {
    let limits = [
        (Verdict::SharedCpus, "the CPUs, which longtail shares, were the limit"),
        (Verdict::NetworkBound, "the network was the limit"),
    ];
    let limits = limits.map(|(verdict, what)| {
        let runs = good.iter().filter(|judgement| judgement.verdict == verdict).count();
        if runs == 0 { String::new() } else { format!("; in {runs} of {} runs {what}", good.len()) }
    });
    limits.concat()
}

/// Whether a finding, a mark in the table or another line already says this.
fn is_said_elsewhere(diagnostic: &Diagnostic, has_turns: bool) -> bool {
    match diagnostic {
        Diagnostic::Failures { .. }
        | Diagnostic::ServedInTurns { .. }
        | Diagnostic::Unfair { .. }
        | Diagnostic::Growing { .. }
        | Diagnostic::BacklogUnexplained { .. }
        | Diagnostic::TooFewRequests { .. }
        | Diagnostic::QuantilesHidden { .. } => true,
        Diagnostic::ConnectionsClosed { .. } => has_turns,
        Diagnostic::Headroom { .. }
        | Diagnostic::SentInTime { .. }
        | Diagnostic::GeneratorLag { .. }
        | Diagnostic::ReadLag { .. }
        | Diagnostic::LagSlope { .. }
        | Diagnostic::Bracket { .. }
        | Diagnostic::LaneCpu { .. }
        | Diagnostic::LaneRunQueue { .. }
        | Diagnostic::MachineBusy { .. }
        | Diagnostic::CpusTaken { .. }
        | Diagnostic::Standstill { .. }
        | Diagnostic::Exhausted { .. }
        | Diagnostic::LittlesLaw { .. }
        | Diagnostic::Conservation { .. }
        | Diagnostic::ListenOverflows { .. }
        | Diagnostic::ConnectStalls { .. }
        | Diagnostic::Steadiness { .. }
        | Diagnostic::PoissonCount { .. }
        | Diagnostic::ClockStep { .. }
        | Diagnostic::Steal { .. }
        | Diagnostic::GeneratorLost { .. }
        | Diagnostic::LateStart { .. }
        | Diagnostic::ClockError { .. }
        | Diagnostic::GeneratorDiffers { .. }
        | Diagnostic::BytesDiffer { .. }
        | Diagnostic::LedgerUnknown { .. }
        | Diagnostic::ServedForNobody { .. }
        | Diagnostic::Unstamped { .. }
        | Diagnostic::ImpossibleStamps { .. }
        | Diagnostic::SilentApp { .. }
        | Diagnostic::QueueExceedsWait { .. }
        | Diagnostic::KernelUnjoined { .. }
        | Diagnostic::KernelIncomplete { .. }
        | Diagnostic::KernelCountDiffers { .. }
        | Diagnostic::UnaskedBytes { .. }
        | Diagnostic::OtherClients { .. }
        | Diagnostic::DelayedAck { .. }
        | Diagnostic::NeverServed { .. }
        | Diagnostic::AboveMaximum { .. }
        | Diagnostic::StillBusy { .. }
        | Diagnostic::WorkersChanged { .. }
        | Diagnostic::SharedCpus { .. }
        | Diagnostic::QueuedInGenerator { .. }
        | Diagnostic::LogIncomplete { .. }
        | Diagnostic::StepsIncomplete { .. }
        | Diagnostic::StoppedEarly { .. }
        | Diagnostic::ClaimDiffers { .. }
        | Diagnostic::Audited { .. }
        | Diagnostic::Interrupted { .. } => false,
    }
}

/// One doubt and the runs that have it.
struct Doubt<'a> {
    diagnostic: &'a Diagnostic,
    grade: Grade,
    /// The names of these runs, and how many of each name there are: in a comparison the runs of an
    /// arm have the same name.
    labels: Vec<(String, usize)>,
    /// Whether it decided the verdict of its run.
    decides: bool,
    /// The share of the requests or of the time that it touches, 0 to 1.
    touches: f64,
}

/// The share of a run's requests or of its time that a doubt touches, 0 to 1: all of it where the
/// evidence has no such share.
fn touches(diagnostic: &Diagnostic, run: &Run) -> f64 {
    let of_requests = |n: u64| run.requests().map_or(1.0, |all| n as f64 / all.max(1) as f64);
    match diagnostic {
        Diagnostic::QueuedInGenerator { requests, .. } => of_requests(*requests),
        Diagnostic::ConnectionsClosed { closed, .. } => of_requests(*closed),
        Diagnostic::SentInTime { sent, due } => of_requests(due.saturating_sub(*sent)),
        Diagnostic::SharedCpus { taken, .. } => *taken,
        Diagnostic::LaneRunQueue { share }
        | Diagnostic::Standstill { share, .. }
        | Diagnostic::Steal { share } => *share,
        Diagnostic::CpusTaken { others, of } => others / of.max(1.0),
        _ => 1.0,
    }
}

/// Whether an open loop offered more than the server can do, and it is known what its limit is: each
/// connection is then busy because the server is, and requests that wait for one are no doubt.
fn is_known_overload(run: &Run) -> bool {
    let limit = run.judgement.as_ref().and_then(|judgement| judgement.limit.as_ref());
    let is_known = limit.is_some_and(|limit| !matches!(limit, Limit::NotKnown { .. }));
    run.overload.is_some() && run.is_evidence() && is_known
}

/// `is_cut_short`: another line says that the user ended it early.
fn doubts(runs: &[NamedRun<'_>], is_cut_short: bool) -> Vec<TrustLine> {
    let mut doubts: Vec<Doubt<'_>> = Vec::new();
    for NamedRun { name, run } in runs {
        let has_turns =
            run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }));
        let void = run.judgement.as_ref().filter(|_| !run.is_evidence());
        let decider = void.and_then(|judgement| troubles(judgement).first().copied());
        let is_busy_machine = matches!(decider, Some(Diagnostic::MachineBusy { .. }));
        for (diagnostic, grade) in diagnostics(run) {
            if grade < Grade::Doubtful || is_said_elsewhere(diagnostic, has_turns) {
                continue;
            }
            if is_cut_short && matches!(diagnostic, Diagnostic::Interrupted { .. }) {
                continue;
            }
            let is_wait_for_connection = matches!(diagnostic, Diagnostic::QueuedInGenerator { .. });
            if is_wait_for_connection && is_known_overload(run) {
                continue;
            }
            // If the machine is too busy, that is the only advice to give.
            if is_busy_machine && machine_busy::is_delay(diagnostic) {
                continue;
            }
            let decides =
                decider.is_some_and(|decider| discriminant(decider) == discriminant(diagnostic));
            let touches = touches(diagnostic, run);
            match doubts
                .iter_mut()
                .find(|doubt| discriminant(doubt.diagnostic) == discriminant(diagnostic))
            {
                // Name only the runs with the worst grade, with the evidence of the first.
                Some(doubt) if grade > doubt.grade => {
                    let labels = vec![(name.clone(), 1)];
                    *doubt = Doubt { diagnostic, grade, labels, decides, touches };
                }
                Some(doubt) => {
                    doubt.decides |= decides && grade == doubt.grade;
                    doubt.touches = doubt.touches.max(touches);
                    if grade == doubt.grade {
                        doubt.add(name);
                    }
                }
                None => {
                    let labels = vec![(name.clone(), 1)];
                    doubts.push(Doubt { diagnostic, grade, labels, decides, touches });
                }
            }
        }
    }
    // That others used the server explains more than what else may be doubted.
    let is_of_others =
        |doubt: &Doubt<'_>| matches!(doubt.diagnostic, Diagnostic::OtherClients { .. });
    // A doubt about all requests matters more than one about a few.
    doubts.sort_by(|a, b| {
        let key = |doubt: &Doubt<'_>| (doubt.grade, is_of_others(doubt));
        key(b).cmp(&key(a)).then(b.touches.total_cmp(&a.touches))
    });
    doubts.iter().map(|doubt| doubt.line(runs)).collect()
}

impl Doubt<'_> {
    /// One more run that has it.
    fn add(&mut self, name: &str) {
        match self.labels.iter_mut().find(|(label, _)| label == name) {
            Some((_, count)) => *count += 1,
            None => self.labels.push((name.to_owned(), 1)),
        }
    }

    /// Which of these runs have it.
    fn at(&self, runs: &[NamedRun<'_>]) -> String {
        let having: usize = self.labels.iter().map(|(_, count)| count).sum();
        let called = |label: &str| runs.iter().filter(|run| run.name == label).count();
        if runs.len() == 1 {
            String::new()
        } else if having == runs.len() {
            " (in all runs)".to_owned()
        } else if self.labels.iter().all(|(label, _)| called(label) == 1) {
            let labels: Vec<String> = self.labels.iter().map(|(label, _)| label.clone()).collect();
            format!(" (at {})", listed(&labels))
        } else {
            let of_label = |(label, count): &(String, usize)| match called(label) {
                all if all == *count => format!("all runs of {label}"),
                all => format!("{count} of {all} runs of {label}"),
            };
            let labels: Vec<String> = self.labels.iter().map(of_label).collect();
            format!(" (in {})", listed(&labels))
        }
    }

    /// The line about it, in a study with these runs.
    fn line(&self, runs: &[NamedRun<'_>]) -> TrustLine {
        let at = self.at(runs);
        let is_failure = self.grade == Grade::Failed || self.decides;
        let mark = if is_failure { Grade::Failed } else { Grade::Doubtful };
        let assessment = assess(self.diagnostic);
        let hint = assessment.hint;
        // The conclusion already names the check that decided; this line says what to do about it.
        if self.decides && !hint.is_empty() {
            return TrustLine::new(mark, format!("{}{at}.", sentence_case(hint)));
        }
        let sentence = sentence_case(assessment.sentence.trim_end_matches('.'));
        // Each run has figures of its own.
        let has_figures = sentence.bytes().any(|byte| byte.is_ascii_digit());
        let having: usize = self.labels.iter().map(|(_, count)| count).sum();
        let at = match at.strip_suffix(')') {
            Some(at) if has_figures && having > 1 => format!("{at}; figures of the first)"),
            _ => at,
        };
        let sentence = format!("{sentence}{at}.");
        TrustLine {
            hint: Some(hint).filter(|hint| !hint.is_empty()),
            ..TrustLine::new(mark, sentence)
        }
    }
}

fn sentence_case(text: &str) -> String {
    // A program's name stays as its users write it.
    if ["hey ", "wrk ", "wrk2 ", "oha ", "ab ", "wrk's", "hey's"]
        .iter()
        .any(|name| text.starts_with(name))
    {
        return text.to_owned();
    }
    crate::words::capitalised(text)
}

/// A percentile is uncertain if half of its 95 % interval is more than this share of it.
pub const UNCERTAIN: f64 = 0.2;

/// The ends of a percentile's 95 % interval, if it is wide or has one end only; `None` also where
/// neither end is known.
pub fn rough_interval(run: &Run, quantile: f64) -> Option<[Option<Nanos>; 2]> {
    let time = run.response_time(quantile).time()?;
    let interval = run.statistics.as_ref()?.interval(quantile)?;
    match (interval.low, interval.high) {
        (None, None) => None,
        (Some(low), Some(high)) => {
            let half = high.saturating_sub(low).0 as f64 / 2.0;
            (half > UNCERTAIN * time.0 as f64).then_some([Some(low), Some(high)])
        }
        one_end => Some([one_end.0, one_end.1]),
    }
}

/// The percentiles whose intervals are wide.
fn uncertain(runs: &[NamedRun<'_>], percentiles: &[ShownPercentile]) -> Option<TrustLine> {
    const MOST: usize = 3;
    let mut wide: Vec<(f64, String)> = Vec::new();
    for NamedRun { name: label, run } in runs.iter().filter(|run| !is_hidden(run.run)) {
        for ShownPercentile { name, quantile } in percentiles {
            let interval = run.statistics.as_ref().and_then(|it| it.interval(*quantile));
            let ends = interval.and_then(|interval| Some([interval.low?, interval.high?]));
            let (Some(time), Some([low, high])) = (run.response_time(*quantile).time(), ends)
            else {
                continue;
            };
            let width = high.saturating_sub(low).0 as f64 / time.0 as f64;
            if width / 2.0 > UNCERTAIN {
                let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
                let [low, high] = [low, high].map(number::milliseconds);
                wide.push((width, format!("{name}{at} {low}–{high} ms")));
            }
        }
    }
    wide.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = wide.len().saturating_sub(MOST);
    let mut named: Vec<String> = wide.into_iter().take(MOST).map(|(_, text)| text).collect();
    named.extend((more > 0).then(|| format!("{more} more")));
    let sentence = format!("Known only roughly (95 % interval): {}.", listed(&named));
    (!named.is_empty())
        .then(|| TrustLine::new(Grade::Uncertain, sentence).hint("run longer (--for)"))
}

/// The percentile with the largest possible share of generator delay, if that is notable.
fn generators_part(runs: &[NamedRun<'_>], percentiles: &[ShownPercentile]) -> Option<TrustLine> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for NamedRun { name: label, run } in runs.iter().filter(|run| run.run.is_evidence()) {
        for ShownPercentile { name, quantile } in percentiles {
            let time = run.response_time(*quantile).time();
            let (Some(time), Some(own)) = (time, notable_generator_part(run, *quantile)) else {
                continue;
            };
            let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
            let [own_ms, time_ms] = [own, time].map(number::milliseconds);
            let words = format!("{own_ms} of the {time_ms} ms of {name}{at}");
            all.push((own.0 as f64 / time.0 as f64, words));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = all.len().saturating_sub(1);
    let (_, most) = all.into_iter().next()?;
    let more = if more > 0 { format!(", and a part of {more} more") } else { String::new() };
    let sentence = format!("Up to {most} may be longtail's own delay{more}.");
    let hint =
        "give the generator cores of its own; in an open loop of `load`, --timing spin helps, too";
    Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
}

/// The largest part of a percentile that may be generator delay, if it makes the percentile as
/// uncertain as a wide interval does; `None` without the kernel's time stamps.
pub fn notable_generator_part(run: &Run, quantile: f64) -> Option<Nanos> {
    let time = run.response_time(quantile).time()?;
    let least = run.statistics.as_ref()?.interval(quantile)?.without_generator?;
    let own = time.saturating_sub(least);
    (own.0 as f64 > UNCERTAIN * time.0 as f64).then_some(own)
}

/// The percentiles that are not printed, and why.
fn missing(
    runs: &[NamedRun<'_>],
    percentiles: &[ShownPercentile],
    study: &Study,
) -> Vec<TrustLine> {
    let failures = lowest(runs, percentiles, Quantile::Unanswered).map(|lacking| {
        if lacking.runs.iter().all(|run| run.run.failed() == Some(0)) {
            let slow: u64 =
                lacking.runs.iter().map(|run| run.run.tally.unfinished_above_all()).sum();
            let sentence = format!(
                "{} is not a number: {slow} unfinished requests had waited longer than any response took.",
                lacking.what
            );
            return TrustLine::new(Grade::Uncertain, sentence);
        }
        let part = |run: &&NamedRun<'_>| {
            Some(run.run.failed()? as f64 / run.run.requests()?.max(1) as f64)
        };
        let failed = share(lacking.runs.iter().filter_map(part).fold(0.0, f64::max));
        let sentence = format!(
            "{} is not a number: a failure counts as slower than any response, and {failed} failed.",
            lacking.what
        );
        TrustLine::new(Grade::Uncertain, sentence)
    });
    let too_few = lowest(runs, percentiles, Quantile::TooFew).map(|lacking| {
        let by_count = matches!(study, Study::Load(study) if study.plan.length.is_none());
        let hint = if by_count { "send more requests (-n)" } else { "run longer (--for)" };
        let why = if lacking.has_clusters() {
            "has enough responses above it, but the slow ones came close together, so they say \
             as little as a few"
        } else {
            "has too few responses above it"
        };
        let sentence = format!("{} {why}.", lacking.what);
        TrustLine::new(Grade::Uncertain, sentence).hint(hint)
    });
    failures.into_iter().chain(too_few).collect()
}

/// The lowest percentile that some runs lack for a given reason, and those runs.
struct LackingRuns<'r> {
    /// `p99 at 1x and 2x`.
    what: String,
    quantile: f64,
    runs: Vec<&'r NamedRun<'r>>,
}

impl LackingRuns<'_> {
    /// Whether each of the runs has enough responses, which are not independent of each other.
    fn has_clusters(&self) -> bool {
        let above = |run: &NamedRun<'_>| run.run.tally.population() as f64 * (1.0 - self.quantile);
        self.runs.iter().all(|run| above(run) >= 1.0)
    }
}

fn lowest<'r>(
    runs: &'r [NamedRun<'r>],
    percentiles: &[ShownPercentile],
    why: Quantile,
) -> Option<LackingRuns<'r>> {
    percentiles.iter().find_map(|ShownPercentile { name, quantile }| {
        let is_lacking =
            |run: &&NamedRun<'_>| !is_hidden(run.run) && run.run.response_time(*quantile) == why;
        let lacking: Vec<&NamedRun<'_>> = runs.iter().filter(is_lacking).collect();
        let labels: Vec<String> = lacking.iter().map(|run| run.name.clone()).collect();
        let at = if labels.len() == runs.len() {
            String::new()
        } else {
            format!(" at {}", listed(&labels))
        };
        let what = format!("{name}{at}");
        (!lacking.is_empty()).then_some(LackingRuns { what, quantile: *quantile, runs: lacking })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_about_few_of_an_arms_runs_says_how_many() {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.warnings.clear();
        let mut doubtful = run.clone();
        doubtful.warnings.push(Diagnostic::WorkersChanged { new: 1 });
        let said = |runs: &[(&str, &Run)]| {
            let named: Vec<NamedRun<'_>> =
                runs.iter().map(|(name, run)| NamedRun { name: (*name).to_owned(), run }).collect();
            let lines = doubts(&named, false);
            let at = lines.iter().find_map(|line| line.sentence.split_once(" (").map(|it| it.1));
            at.unwrap_or_default().to_owned()
        };
        assert_eq!(said(&[("1x", &doubtful), ("2x", &run)]), "at 1x).");
        assert_eq!(
            said(&[("1x", &doubtful), ("2x", &doubtful)]),
            "in all runs; figures of the first)."
        );
        let of_arms = [("main", &run), ("-k", &doubtful), ("-k", &run), ("main", &run)];
        assert_eq!(said(&of_arms), "in 1 of 2 runs of -k).");
        let of_arms = [("main", &doubtful), ("-k", &doubtful), ("-k", &doubtful), ("main", &run)];
        assert_eq!(
            said(&of_arms),
            "in 1 of 2 runs of main and all runs of -k; figures of the first)."
        );
    }
}
