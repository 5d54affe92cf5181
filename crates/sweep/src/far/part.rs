//! One generator's part of a load as a file, where no conductor is connected to it (a job of a
//! cluster); and the merging of such files.
//!
//! All generators get the same flags, word for word, and start at the same instant by the clocks of
//! their machines.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use engine::{
    DriveResult, EngineError, GeneratorPart, LaneOutcome, LoadSpec, RecordBatch, RunProgress,
    Transport, drive_part,
};
use judge::checks;
use model::{
    Clock, Diagnostic, FarGenerator, GeneratorFacts, LoadPlan, LoadStudy, Nanos, Request,
    RequestMix, Run, SystemClock, Tally,
};
use probe::host::{self, HostCounters};
use serde::{Deserialize, Serialize};

use super::{PartDone, credible, merge};
use crate::context::{Context, SweepError};
use crate::load::{PreparedLoad, judge, spec_of};
use crate::observe::recorded;

/// How long before the common start the lanes are let go: they wait for it by themselves.
pub(super) const LEAD: Nanos = Nanos::from_millis(10);

/// How long after its planned end a part may end: its machine was busy, or its clock is off.
const LATENESS: Nanos = Nanos::from_secs(3600);
/// The most generators of one load, as `--of` takes them.
const MOST_PARTS: u32 = 10_000;

/// What one generator did of a load.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadPart {
    version: String,
    part: GeneratorPart,
    /// The common start, since 1970.
    start: Nanos,
    /// The study of the whole load, without its run.
    study: LoadStudy,
    done: PartDone,
}

/// Drives one part of a load that starts at `start` by the wall clock.
///
/// # Errors
/// If the engine cannot start.
///
/// # Panics
/// If a lane does: our bug.
pub fn drive_load_part(
    prepared: PreparedLoad,
    part: GeneratorPart,
    start: Nanos,
    context: &Context<'_>,
) -> Result<LoadPart, SweepError> {
    let spec = LoadSpec { part, ..prepared.spec.clone() };
    // On the wall clock's axis all parts have one start. The clock itself stays monotonic.
    let ahead = context.clock.wall().0.wrapping_sub(context.clock.now().0);
    let clock = context.clock.shifted(ahead, Nanos::ZERO);
    let progress = RunProgress::new(spec.shares().len() as u32);
    let wait = || clock.sleep_until(start.saturating_sub(LEAD), context.interrupt).then_some(start);
    let done = drive_at(wait, &spec, &clock, context.interrupt, &progress, None)?;
    let no_run = Run::recorded(spec.load.connections, Tally::default(), Nanos::ZERO, Nanos::ZERO);
    let study = prepared.study(no_run, host::environment(context.version), context);
    Ok(LoadPart { version: context.version.to_owned(), part, start, study, done })
}

/// Drives a part whose lanes begin at the common start. When they are ready, `start` waits until
/// shortly before that instant and gives it.
pub(super) fn drive_at(
    start: impl FnOnce() -> Option<Nanos>,
    spec: &LoadSpec,
    clock: &SystemClock,
    interrupt: &AtomicBool,
    progress: &RunProgress,
    journal: Option<&SyncSender<RecordBatch>>,
) -> Result<PartDone, EngineError> {
    let before = HostCounters::now();
    let mut late = Nanos::ZERO;
    let ready = || {
        let at = start()?;
        late = clock.now().saturating_sub(at);
        Some(at)
    };
    let (_, outcome) = drive_part(spec, clock, interrupt, progress, journal, ready)?;
    let after = HostCounters::now();
    Ok(PartDone {
        outcome,
        ended: clock.now(),
        late,
        steal: after.steal_since(&before),
        syn_retransmits: after.syn_retransmits_since(&before),
    })
}

/// The load without its requests: enough to tell when they are due, and which are measured.
fn spec_without_requests(plan: &LoadPlan) -> LoadSpec {
    spec_of(plan, Transport::plain(Vec::new()), RequestMix::of_one(Request::new(Vec::new(), false)))
}

/// A part, and the file that holds it.
#[derive(Debug)]
pub struct NamedPart {
    /// The file's name.
    pub name: String,
    /// What is in it.
    pub part: LoadPart,
}

/// The load that these parts make together. A part that is missing makes the run INVALID.
///
/// # Errors
/// If they are not parts of one load, in a sentence.
pub fn merge_parts(parts: Vec<NamedPart>, version: &str) -> Result<LoadStudy, String> {
    let NumberedParts { start, study, parts } = number_parts(parts, version)?;
    let plan = &study.plan;
    let spec = spec_without_requests(plan);
    let longest_run = credible::longest_run(&spec).unwrap_or(credible::LONGEST_RUN);
    let mut merged: Option<LaneOutcome> = None;
    let mut end = start;
    let mut far = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let Some((name, done)) = part else {
            far.push(FarGenerator::lost(format!("part {index}"), "its file is missing".to_owned()));
            continue;
        };
        credible::check(&done, &spec, start, start + longest_run + LATENESS)
            .map_err(|why| format!("{name} is no part of its load: {why}"))?;
        end = end.max(done.ended);
        far.push(done.facts(name));
        merge(&mut merged, done.outcome);
    }
    let done = DriveResult { far, ..DriveResult::of(&spec, start, end, merged) };
    let interrupted = done.outcome.interrupted_at.is_some();
    let log_dropped = done.outcome.dropped_records;
    let mut run = recorded(done, &spec, &checks::LOAD_PERCENTILES, GeneratorFacts::default());
    judge(&mut run, plan, None, interrupted, None);
    if log_dropped > 0 {
        run.warnings.push(Diagnostic::LogIncomplete { dropped: log_dropped });
    }
    Ok(LoadStudy { placement: None, name_resolution: None, run, log_dropped, interrupted, ..study })
}

/// Parts of one load, in the places of their numbers.
struct NumberedParts {
    start: Nanos,
    /// The study of the whole load, without its run.
    study: LoadStudy,
    /// `None` if one is missing.
    parts: Vec<Option<(String, PartDone)>>,
}

fn number_parts(parts: Vec<NamedPart>, version: &str) -> Result<NumberedParts, String> {
    if let Some(NamedPart { name, part }) = parts.iter().find(|it| it.part.version != version) {
        let written_by = &part.version;
        return Err(format!(
            "{name} is of longtail {written_by}, and this is {version}: merge it with that"
        ));
    }
    let mut parts = parts.into_iter();
    let Some(NamedPart { name: first_name, part: first }) = parts.next() else {
        return Err("name the files to merge".to_owned());
    };
    let LoadPart { part: GeneratorPart { index, of }, start, study, done, .. } = first;
    if of > MOST_PARTS {
        return Err(format!("{first_name} is a part of {of}: a load has {MOST_PARTS} at the most"));
    }
    let mut numbered = NumberedParts { start, study, parts: (0..of).map(|_| None).collect() };
    numbered.put(first_name.clone(), index, done)?;
    for NamedPart { name, part } in parts {
        if (part.part.of, part.start, &part.study.plan) != (of, start, &numbered.study.plan) {
            return Err(format!(
                "{name} is of another load than {first_name}: flags, --of and --start-at must be \
                 alike"
            ));
        }
        numbered.put(name, part.part.index, part.done)?;
    }
    Ok(numbered)
}

impl NumberedParts {
    /// Puts a part in its place.
    ///
    /// # Errors
    /// If there is no such place, or it is taken.
    fn put(&mut self, name: String, index: u32, done: PartDone) -> Result<(), String> {
        let of = self.parts.len();
        match self.parts.get_mut(index as usize) {
            Some(place @ None) => {
                *place = Some((name, done));
                Ok(())
            }
            Some(Some((other, _))) => {
                Err(format!("{name} and {other} are both part {index}: name each part once"))
            }
            None => Err(format!("{name} is part {index} of {of}: parts are numbered from 0")),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Batches, Exchange, Outcome};

    use super::*;

    const START: Nanos = Nanos::from_secs(1000);

    /// Request `number` of a load: due each 1.5 ms, with times and ends of all kinds.
    fn replayed(number: u64) -> Exchange {
        let random = |salt: u64| (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let due = START + Nanos::from_micros(1500) * number;
        let sent = due + Nanos(random(1) / 8);
        let outcome = match random(2) % 50 {
            0 => Outcome::TimedOut,
            1 => Outcome::Answered(503),
            _ => Outcome::Answered(200),
        };
        let ended = sent + Nanos::from_micros(300) + Nanos(random(3) * (1 + random(4) % 400));
        Exchange { due, sent, ended, received_bytes: 100, outcome }
    }

    /// What a generator writes that has recorded each `of`th of 20 000 requests.
    fn part(index: u32, of: u32, plan: &LoadPlan) -> LoadPart {
        let window = spec_without_requests(plan).window(START);
        let mut tally = Tally::new(window, plan.load.connections as usize);
        let mut batches = Batches::new(window);
        for number in (0..20_000).filter(|number| number % u64::from(of) == u64::from(index)) {
            let exchange = replayed(number);
            tally.record(&exchange, number as usize % plan.load.connections as usize);
            if tally.measures(exchange.due) && exchange.outcome.is_good() {
                batches.record(exchange.due, exchange.response_time(), exchange.send_lag());
            }
        }
        let outcome = LaneOutcome {
            tally,
            batches,
            ..LaneOutcome::nothing(&spec_without_requests(plan), START)
        };
        let written = LoadPart {
            version: "1".to_owned(),
            part: GeneratorPart { index, of },
            start: START,
            study: LoadStudy { plan: plan.clone(), ..testkit::load::open_poisson() },
            done: PartDone {
                outcome: Some(outcome),
                ended: START + Nanos::from_secs(40),
                late: Nanos::ZERO,
                steal: None,
                syn_retransmits: None,
            },
        };
        serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap()
    }

    #[test]
    fn a_part_of_another_version_is_refused_wherever_it_stands() {
        let plan = testkit::load::open_poisson().plan;
        let named = |index: u32, version: &str| NamedPart {
            name: format!("{index}.tally"),
            part: LoadPart { version: version.to_owned(), ..part(index, 2, &plan) },
        };
        let merged = merge_parts(vec![named(0, "1"), named(1, "2")], "1");
        assert_eq!(
            merged.unwrap_err(),
            "1.tally is of longtail 2, and this is 1: merge it with that"
        );
    }

    /// Bin for bin, second by second, batch by batch.
    #[test]
    fn parts_of_several_generators_merge_into_what_one_would_record() {
        let mut plan = testkit::load::open_poisson().plan;
        plan.load.warm_up = Nanos::from_secs(2);
        let merged = |of: u32| {
            let parts = (0..of).rev().map(|index| NamedPart {
                name: format!("{index}.tally"),
                part: part(index, of, &plan),
            });
            merge_parts(parts.collect(), "1").unwrap().run
        };
        let one = merged(1);
        assert!(one.tally.counts.failed() > 100 && one.tally.unmeasured.total() > 1000);
        for of in [2, 3, 7] {
            let several = merged(of);
            assert_eq!(several.tally, one.tally, "{of}");
            assert_eq!(several.statistics, one.statistics, "{of}");
            assert_eq!((several.measured, several.elapsed), (one.measured, one.elapsed), "{of}");
        }
    }
}
