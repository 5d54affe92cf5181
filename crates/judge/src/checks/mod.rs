//! Checks and warnings: the questions asked about a run, and the doubts that it raises.
//!
//! Each has a file. `ask` says when the question applies and collects the evidence, a variant of
//! [`Diagnostic`] that the study keeps; `assess` turns it into a grade, a sentence and a hint.
//! Checks apply to every run and make its verdict; a warning exists only if there is something
//! to warn of.

mod above_maximum;
mod audited;
mod backlog_unexplained;
mod bracket;
mod bytes_differ;
mod claim_differs;
mod clock_error;
mod clock_step;
mod connect_stalls;
mod connections_closed;
mod conservation;
mod cpus_taken;
mod delayed_ack;
mod exhausted;
mod failures;
mod generator_differs;
mod generator_lag;
mod generator_lost;
mod growing;
mod headroom;
mod impossible_stamps;
mod interrupted;
mod kernel_count_differs;
mod kernel_incomplete;
mod kernel_unjoined;
mod lag_slope;
mod lane_cpu;
mod lane_run_queue;
mod late_start;
mod ledger_unknown;
mod listen_overflows;
mod littles_law;
mod log_incomplete;
pub(crate) mod machine_busy;
mod never_served;
mod other_clients;
mod poisson_count;
mod quantiles_hidden;
mod queue_exceeds_wait;
mod queued_in_generator;
mod read_lag;
pub(crate) mod sent_in_time;
mod served_for_nobody;
mod served_in_turns;
mod shared_cpus;
mod silent_app;
mod standstill;
mod steadiness;
mod steal;
mod steps_incomplete;
mod still_busy;
mod stopped_early;
mod too_few_requests;
mod unasked_bytes;
mod unfair;
mod unstamped;
mod workers_changed;

pub use self::connections_closed::hint_beside_keep_alive;
pub(crate) use self::connections_closed::{TURN_OF_OLD_PUMA, closed_in_turns};
use model::theory::ServiceTime;
use model::{
    Diagnostic, EndedBy, LaneFacts, LoadPlan, Nanos, Pace, Placement, Run, ServerFacts, Timing,
};
use serde::Serialize;

/// The result of a check or a warning: whether the run's figures can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Something is missing from a row; no number is in doubt.
    Note,
    /// As it should be.
    Passed,
    /// A figure is only known roughly; a longer run would help.
    Uncertain,
    /// Worth a look; does not change the verdict.
    Doubtful,
    /// Decides the verdict: the figures are worthless.
    Failed,
}

impl Grade {
    /// Its sign in text.
    pub fn sign(self) -> &'static str {
        match self {
            Grade::Note => "·",
            Grade::Passed => "✓",
            Grade::Uncertain => "?",
            Grade::Doubtful => "!",
            Grade::Failed => "✗",
        }
    }
}

/// A check or a warning for people: grade, sentence and hint.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// How bad it is.
    pub grade: Grade,
    /// The evidence in words, without a full stop.
    pub sentence: String,
    /// What to do, or to type; empty if there is nothing to do.
    pub hint: &'static str,
    /// Whether a failed check means that the generator was the limit; otherwise it means that the
    /// figures are worthless.
    pub implicates_generator: bool,
}

impl Assessment {
    fn new(grade: Grade, sentence: String, hint: &'static str) -> Assessment {
        Assessment { grade, sentence, hint, implicates_generator: false }
    }

    fn of_the_generator(self) -> Assessment {
        Assessment { implicates_generator: true, ..self }
    }
}

/// Grade, sentence and hint of a check or warning.
#[expect(clippy::too_many_lines, reason = "an arm for each of them")]
pub fn assess(diagnostic: &Diagnostic) -> Assessment {
    match diagnostic {
        Diagnostic::Headroom { ceiling_per_s, times } => headroom::assess(*ceiling_per_s, *times),
        Diagnostic::SentInTime { sent, due } => sent_in_time::assess(*sent, *due),
        Diagnostic::GeneratorLag { p99, of_response_time } => {
            generator_lag::assess(*p99, *of_response_time)
        }
        Diagnostic::ReadLag { p99, of_response_time } => read_lag::assess(*p99, *of_response_time),
        Diagnostic::LagSlope { slope, in_errors, grown } => {
            lag_slope::assess(*slope, *in_errors, *grown)
        }
        Diagnostic::Bracket { quantile, width, half_interval, of_response_time } => {
            bracket::assess(*quantile, *width, *half_interval, *of_response_time)
        }
        Diagnostic::LaneCpu { share } => lane_cpu::assess(*share),
        Diagnostic::CpusTaken { others, of } => cpus_taken::assess(*others, *of),
        Diagnostic::MachineBusy {
            generator,
            waited,
            server,
            others,
            sent_within,
            read_within,
            of_response_time,
        } => {
            let delay = machine_busy::KnownDelay {
                sent_within: *sent_within,
                read_within: *read_within,
                of_response_time: *of_response_time,
            };
            machine_busy::assess(*generator, *waited, *server, *others, delay)
        }
        Diagnostic::LaneRunQueue { share } => lane_run_queue::assess(*share),
        Diagnostic::Standstill { share, longest } => standstill::assess(*share, *longest),
        Diagnostic::Exhausted { connects } => exhausted::assess(*connects),
        Diagnostic::Failures { failed, planned } => failures::assess(*failed, *planned),
        Diagnostic::LittlesLaw { in_flight, connections, tolerance } => {
            littles_law::assess(*in_flight, *connections, *tolerance)
        }
        Diagnostic::Conservation { worker, client, server } => {
            conservation::assess(*worker, *client, *server)
        }
        Diagnostic::ListenOverflows { dropped } => listen_overflows::assess(*dropped),
        Diagnostic::ConnectStalls { retried, longest } => {
            connect_stalls::assess(*retried, *longest)
        }
        Diagnostic::Steadiness { settled_after, shift, shift_in_errors, is_claimed } => {
            steadiness::assess(*settled_after, *shift, *shift_in_errors, *is_claimed)
        }
        Diagnostic::PoissonCount { due, expected } => poisson_count::assess(*due, *expected),
        Diagnostic::ClockStep { steps } => clock_step::assess(*steps),
        Diagnostic::Steal { share } => steal::assess(*share),
        Diagnostic::GeneratorLost { name, why } => generator_lost::assess(name, why),
        Diagnostic::LateStart { name, late } => late_start::assess(name, *late),
        Diagnostic::ClockError { name, error } => clock_error::assess(name, *error),
        Diagnostic::GeneratorDiffers { name, p50, merged } => {
            generator_differs::assess(name, *p50, *merged)
        }
        Diagnostic::BytesDiffer { client, app } => bytes_differ::assess(*client, *app),
        Diagnostic::LedgerUnknown { reason } => ledger_unknown::assess(reason),
        Diagnostic::ServedForNobody { served, unanswered } => {
            served_for_nobody::assess(*served, *unanswered)
        }
        Diagnostic::QuantilesHidden { from, unanswered, outcomes } => {
            quantiles_hidden::assess(*from, *unanswered, outcomes)
        }
        Diagnostic::TooFewRequests { from, answers, worth } => {
            too_few_requests::assess(*from, *answers, *worth)
        }
        Diagnostic::Growing { growth, growth_per_s, at_end } => {
            growing::assess(*growth, *growth_per_s, *at_end)
        }
        Diagnostic::BacklogUnexplained { growth_per_s, at_end } => {
            backlog_unexplained::assess(*growth_per_s, *at_end)
        }
        Diagnostic::Unstamped { answers, of } => unstamped::assess(*answers, *of),
        Diagnostic::ImpossibleStamps { answers, of } => impossible_stamps::assess(*answers, *of),
        Diagnostic::SilentApp { answers, of } => silent_app::assess(*answers, *of),
        Diagnostic::QueueExceedsWait { accept_queue, wait } => {
            queue_exceeds_wait::assess(*accept_queue, *wait)
        }
        Diagnostic::KernelUnjoined { unmatched, impossible, of } => {
            kernel_unjoined::assess(*unmatched, *impossible, *of)
        }
        Diagnostic::KernelIncomplete { unfollowed, lost } => {
            kernel_incomplete::assess(*unfollowed, *lost)
        }
        Diagnostic::KernelCountDiffers { kernel, client } => {
            kernel_count_differs::assess(*kernel, *client)
        }
        Diagnostic::ConnectionsClosed {
            closed,
            requests,
            after_answers,
            announced_after,
            announced,
            server,
        } => connections_closed::assess(
            *closed,
            *requests,
            *after_answers,
            *announced_after,
            *announced,
            server.as_deref(),
        ),
        Diagnostic::OtherClients { connections } => other_clients::assess(*connections),
        Diagnostic::UnaskedBytes { closed } => unasked_bytes::assess(*closed),
        Diagnostic::DelayedAck { waited } => delayed_ack::assess(*waited),
        Diagnostic::ServedInTurns { answers_a_turn, varies, waiting } => {
            served_in_turns::assess(*answers_a_turn, *varies, *waiting)
        }
        Diagnostic::Unfair { jain, fewest, most } => unfair::assess(*jain, *fewest, *most),
        Diagnostic::NeverServed { never, connections } => {
            never_served::assess(*never, *connections)
        }
        Diagnostic::AboveMaximum { ratio } => above_maximum::assess(*ratio),
        Diagnostic::StillBusy { waited, what } => still_busy::assess(*waited, what),
        Diagnostic::WorkersChanged { new } => workers_changed::assess(*new),
        Diagnostic::SharedCpus { cpus, taken } => shared_cpus::assess(cpus, *taken),
        Diagnostic::QueuedInGenerator { requests, longest } => {
            queued_in_generator::assess(*requests, *longest)
        }
        Diagnostic::LogIncomplete { dropped } => log_incomplete::assess(*dropped),
        Diagnostic::StepsIncomplete { dropped } => steps_incomplete::assess(*dropped),
        Diagnostic::StoppedEarly { condition } => stopped_early::assess(condition),
        Diagnostic::ClaimDiffers { by, claimed, server, under_way } => {
            claim_differs::assess(by, *claimed, *server, *under_way)
        }
        Diagnostic::Audited { by, check, is, text } => audited::assess(by, check, *is, text),
        Diagnostic::Interrupted { by } => interrupted::assess(*by),
    }
}

/// The grade alone.
pub fn grade(diagnostic: &Diagnostic) -> Grade {
    assess(diagnostic).grade
}

/// Lags up to this are small, whatever they are compared with.
const SMALL: Nanos = Nanos::from_micros(200);
/// Standard errors; reached by chance once in a few hundred runs.
const SIGNIFICANT: f64 = 3.0;

/// The grade of a value that should be small: passed up to `pass`, doubtful up to `fail`.
fn by(value: f64, pass: f64, fail: f64) -> Grade {
    match value {
        value if value <= pass => Grade::Passed,
        value if value <= fail => Grade::Doubtful,
        _ => Grade::Failed,
    }
}

fn if_any(n: u64, otherwise: Grade) -> Grade {
    if n == 0 { Grade::Passed } else { otherwise }
}

/// The grade of a lag of the generator, relative to the response times.
fn lag(p99: Nanos, of_response_time: f64) -> Grade {
    if p99 <= SMALL { Grade::Passed } else { by(of_response_time, 0.05, 0.20) }
}

/// A time as a share of the 99th percentile of the response times.
fn share_of_p99(run: &Run, time: Nanos) -> Option<f64> {
    let response = run.tally.response_time.quantile(0.99)?;
    Some(time.0 as f64 / (response.0 as f64).max(1.0))
}

/// The largest share of the run that any generator thread spent on this `part`.
fn busiest_lane(run: &Run, part: fn(&LaneFacts) -> Nanos) -> Option<f64> {
    let lanes = run.generator.lanes.iter().filter(|lane| lane.elapsed > Nanos::ZERO);
    lanes.map(|lane| part(lane).0 as f64 / lane.elapsed.0 as f64).reduce(f64::max)
}

/// The checks of every run. `timing` says whether generator threads busy-poll on purpose.
fn of_every_run(run: &Run, timing: Timing) -> Vec<Diagnostic> {
    // A lost generator explains most of what follows, so it comes first.
    let mut checks = generator_lost::ask(run);
    checks.extend(late_start::ask(run));
    checks.extend(clock_error::ask(run));
    checks.push(failures::ask(run));
    checks.extend(exhausted::ask(run));
    checks.extend(headroom::ask(run));
    checks.extend(generator_lag::ask(run));
    checks.extend(read_lag::ask(run));
    checks.extend(bracket::ask(run));
    checks.extend(clock_step::ask(run));
    checks.extend(lane_cpu::ask(run, timing));
    checks.extend(lane_run_queue::ask(run));
    checks.extend(standstill::ask(run));
    checks.extend(listen_overflows::ask(run));
    checks.extend(connect_stalls::ask(run));
    checks.extend(steal::ask(run));
    checks.extend(machine_busy::ask(run, &checks));
    checks
}

/// Checks of a sweep's run in closed loop.
pub(crate) fn of_sweep(run: &Run) -> Vec<Diagnostic> {
    let mut checks = of_every_run(run, Timing::default());
    // If a count ends the run, the connections finish one after the other. Load and response time
    // then fall, so Little's law doesn't hold until the end.
    if run.tally.window.until != Nanos::MAX {
        checks.extend(steadiness::ask(run, false));
        checks.extend(littles_law::ask(run, run.connections));
    }
    checks
}

/// Checks of a load in closed loop.
pub(crate) fn of_closed_load(run: &Run, plan: &LoadPlan) -> Vec<Diagnostic> {
    let mut checks = of_every_run(run, plan.load.timing);
    checks.extend(steadiness::ask(run, false));
    // Without think time a connection only ever waits for the server.
    let never_pauses = plan.load.think == Nanos::ZERO;
    if never_pauses && plan.length.is_some() && plan.load.requests_total.is_none() {
        checks.extend(littles_law::ask(run, plan.load.connections));
    }
    checks
}

/// Checks of an open loop. `is_settling`: whether it should reach a steady state.
pub(crate) fn of_open_loop(
    run: &Run,
    pace: &Pace,
    timing: Timing,
    is_settling: bool,
) -> Vec<Diagnostic> {
    let mut checks = of_every_run(run, timing);
    checks.extend(sent_in_time::ask(run));
    checks.extend(lag_slope::ask(run));
    checks.extend(poisson_count::ask(run, pace));
    if is_settling {
        checks.extend(steadiness::ask(run, true));
    }
    checks
}

/// What a run does not record about itself.
#[derive(Clone, Copy, Debug)]
pub struct RunSetting<'a> {
    /// Whether its connections are kept alive.
    pub keep_alive: bool,
    /// Which CPUs server and generator may use, if that is known.
    pub placement: Option<&'a Placement>,
    /// Who ended it early.
    pub ended_by: Option<EndedBy>,
}

/// Warnings that any run can raise; `percentiles` are those that will be printed.
fn warnings_of_any(run: &Run, percentiles: &[f64], setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let RunSetting { keep_alive, placement, ended_by } = setting;
    let mut warnings = Vec::new();
    warnings.extend(interrupted::ask(ended_by));
    if run.tally.counts.failed() > 0 && ended_by.is_none() {
        warnings.push(failures::ask(run));
    }
    warnings.extend(quantiles_hidden::ask(run, percentiles));
    warnings.extend(too_few_requests::ask(run, percentiles));
    warnings.extend(unstamped::ask(run));
    warnings.extend(delayed_ack::ask(run));
    warnings.extend(connections_closed::ask(run, keep_alive));
    warnings.extend(unasked_bytes::ask(run));
    warnings.extend(other_clients::ask(run));
    warnings.extend(shared_cpus::ask(&run.generator, placement));
    warnings.extend(generator_differs::ask(run));
    warnings
}

/// The warnings that a sweep's run raises by its own figures.
pub fn warnings_of_run(run: &Run, setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let mut warnings = warnings_of_any(run, &model::run::PERCENTILES, setting);
    warnings.extend(unfair::ask(run));
    warnings.extend(never_served::ask(run));
    warnings.extend(impossible_stamps::ask(run));
    warnings.extend(silent_app::ask(run));
    warnings.extend(queue_exceeds_wait::ask(run));
    warnings.extend(kernel_incomplete::ask(run));
    warnings.extend(kernel_count_differs::ask(run));
    warnings.extend(kernel_unjoined::ask(run));
    warnings.extend(above_maximum::ask(run));
    warnings
}

/// Whether a server served its connections in turns. `alone`: what one request takes alone, if that
/// is known.
///
/// From version 7 on a Puma takes the next connection where one waits. Turns of different lengths
/// are then due to stalls, or to workers that hold unequal numbers of connections.
pub fn served_in_turns(
    run: &Run,
    server: &ServerFacts,
    keep_alive: bool,
    alone: Option<&ServiceTime>,
) -> Option<Diagnostic> {
    let takes_the_next = server.puma_major() >= Some(7) || run.has_idle_worker();
    let turns = served_in_turns::ask(run, server.slots(), keep_alive, alone)?;
    let varies = matches!(turns, Diagnostic::ServedInTurns { varies: true, .. });
    (!(varies && takes_the_next)).then_some(turns)
}

/// Whether a warning is [`Diagnostic::AboveMaximum`], and the excess is explained.
pub(crate) fn is_above_maximum_explained(
    warning: &Diagnostic,
    alone: Option<&ServiceTime>,
    takes_more: bool,
) -> bool {
    matches!(warning, Diagnostic::AboveMaximum { ratio }
        if above_maximum::is_explained(*ratio, alone, takes_more))
}

/// The percentiles that a load's report prints.
pub const LOAD_PERCENTILES: [f64; 7] = [0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];

/// The warnings that a load raises by its own figures.
pub fn warnings_of_load(run: &Run, pace: &Pace, setting: RunSetting<'_>) -> Vec<Diagnostic> {
    let mut warnings = warnings_of_any(run, &LOAD_PERCENTILES, setting);
    // Those that waited for a free connection have a warning of their own.
    let is_more_than_queued = |sending: &Diagnostic| {
        matches!(sending, Diagnostic::SentInTime { sent, due }
            if due.saturating_sub(*sent) > run.tally.queued.count)
    };
    let sending = sent_in_time::of(run)
        .filter(|sending| grade(sending) > Grade::Passed && is_more_than_queued(sending));
    if pace.is_open() && setting.ended_by.is_none() {
        warnings.extend(sending);
    }
    warnings.extend(growing::ask(run));
    warnings.extend(backlog_unexplained::ask(run));
    warnings.extend(queued_in_generator::ask(run));
    warnings
}

#[cfg(test)]
mod tests;
