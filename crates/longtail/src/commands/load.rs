//! `longtail load` and its older name `attack`: loads a server that is already running.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::{Endpoint, Resolver, Transport};
use model::counts::name;
use model::endpoint::is_public;
use model::{Diagnostic, LoadStudy, Outcome, Run, Study, Verdict};
use sweep::{LoadObservers, Phase, PreparedLoad, RequestJournal, conduct_load};

use super::conducted::StudyStart;
use crate::args::LoadArgs;
use crate::args::output::StudyKind;
use crate::exit::{Exit, Mistake, wrong};
use crate::load::{Recorder, order_load, prepare};
use crate::metrics::{Outlets, StatsdInput};
use crate::results::Results;
use crate::ui::Ui;
use crate::{secrets, signals, ui};

/// Names of `--log` that are stdout: attack's lines, and CSV.
const STDOUT: [&str; 2] = ["-", CSV_TO_STDOUT];
const CSV_TO_STDOUT: &str = "-.csv";

/// Runs the load and prints its report.
///
/// # Errors
/// Where a flag is wrong, before any load is sent, or the results cannot be written.
pub(crate) fn run(args: &LoadArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    // Its lines are the output.
    let is_logged = args.log.as_deref() == Some(Path::new(CSV_TO_STDOUT));
    measure(args, resolver, |results, study| {
        if is_logged { ui::exit_of_part(results.keep(study)) } else { results.publish(study) }
    })
}

/// Runs the load that `attack` comes to: its lines, and how many of the started requests were
/// completed.
///
/// # Errors
/// As [`run`].
pub(crate) fn attack(args: &LoadArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    measure(args, resolver, |results, study| {
        let kept = ui::exit_of_part(results.keep(study));
        if let Study::Load(study) = study {
            let counts = &study.run.tally.counts;
            ui::print(&format!("Completed {}/{}\n", counts.answered(), counts.attempted()));
        }
        kept
    })
}

/// Runs the load; `publish` is given its study, and says what became of its results.
fn measure(
    args: &LoadArgs,
    resolver: Resolver,
    publish: impl FnOnce(&Results<'_>, &Study) -> Exit,
) -> Result<Exit, Mistake> {
    let resolver = args.resolver(resolver);
    args.outlets.check()?;
    args.output.check(if args.generator.is_some() {
        StudyKind::ClaimedLoad
    } else {
        StudyKind::Load
    })?;
    args.generator.map_or(Ok(()), |generator| generator.check(&args.thresholds.all()))?;
    let mut here = StudyStart::now()?;
    let statsd_input = StatsdInput::open(args.outlets.statsd_listen, false)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, here.clock)?;
    let log = args.log.as_deref();
    let is_stdout = log.is_some_and(|log| STDOUT.iter().any(|name| log == Path::new(name)));
    if is_stdout && !args.output.is_prose() {
        return Err(wrong(
            "two things cannot go to stdout at once: leave out --log, or write the other with -o",
        ));
    }
    if log.is_some_and(|log| !is_stdout && args.output.writes(log)) {
        return Err(wrong("--log and -o name one file: give each its own"));
    }
    // Last of what may be wrong: it may connect.
    here.start_far(&args.from)?;
    let prepared = prepare(args, &resolver, &here.clock, here.far.as_ref())?;
    let order = |generator| order_load(args, &resolver, generator, &prepared, here.clock);
    let ordered = args.generator.map(order).transpose()?;
    announce(&prepared);
    let results = Results::open("load", &here.started_at, &args.output)?;
    let conductor = here.context(secrets::command_line(), resolver);
    let mut recorder = Recorder::open(log, is_stdout, &args.checks)?;
    let transport = prepared.shape.transport.clone();
    signals::begin();
    let load = if let Some(ordered) = ordered {
        let Some(load) = ordered.conduct(prepared, &conductor)? else {
            return Ok(Exit::Interrupted);
        };
        load
    } else {
        let journal = recorder.as_mut().map(|recorder| recorder as &mut dyn RequestJournal);
        let observers = LoadObservers {
            journal,
            statsd: statsd_input.listener.as_ref(),
            calibrates: !args.no_calibrate,
        };
        let mut shown: Option<Ui> = None;
        let load = conduct_load(prepared, observers, &conductor, &mut |phase| {
            let ui = shown.get_or_insert_with(Ui::new);
            match phase {
                Phase::Running { length, progress: Some(progress), .. } => {
                    ui.loading(*length, args.number, progress);
                }
                _ => ui.phase(phase),
            }
            outlets.phase(phase);
        })?;
        outlets.load_over();
        load
    };
    let run = &load.run;
    let may_look = !here.interrupt.load(Ordering::Relaxed);
    let misunderstanding = if may_look { misunderstanding(&transport, &load) } else { None };
    for warning in &run.warnings {
        if let Diagnostic::StoppedEarly { condition } = warning {
            ui::note(&format!("ended early: {condition}"));
        }
    }
    let checks_hold = recorder.as_ref().is_none_or(Recorder::checks_hold);
    let logged = recorder.and_then(|recorder| recorder.failed).map_or(Ok(()), Err);
    let complaint = explain_no_response(&load, misunderstanding.as_deref());
    let has_no_answer = complaint.is_some();
    let verdict = run.judgement.as_ref().map(|judgement| judgement.verdict);
    let is_said = args.output.tells_verdict() && log != Some(Path::new(CSV_TO_STDOUT));
    let is_answered = run.tally.all_responses() > 0;
    let is_interrupted = here.interrupt.load(Ordering::Relaxed);
    let study = Study::from(load);
    let published = publish(&results, &study);
    // On disk and printed first: whatever becomes of an export, the figures are safe.
    if let Study::Load(load) = &study {
        outlets.load_done(load);
    }
    // Below the report, where a terminal's user reads it.
    let word = match verdict {
        Some(Verdict::GeneratorBound) if !is_said => Some("GENERATOR-BOUND"),
        Some(Verdict::Invalid) if !is_said => Some("INVALID"),
        _ => None,
    };
    let distrust =
        word.map(|word| format!("verdict: {word}; longtail report says why, and what to do"));
    let complaints = distrust.into_iter().chain(complaint.filter(|_| !is_interrupted));
    // Of a server that answers 400 it is no complaint about the load, and said all the same.
    let remark = misunderstanding.filter(|_| is_answered && !is_interrupted);
    complaints.chain(remark).for_each(|line| ui::note(&line));
    let parts = [
        Exit::Interrupted.if_so(is_interrupted),
        Exit::Invalid.if_so(has_no_answer),
        Exit::of(&study),
        Exit::Missed.if_so(!checks_hold),
        ui::exit_of_part(logged),
        published,
    ];
    outlets.close(&here.interrupt);
    Ok(parts.into_iter().fold(Exit::Fine, Exit::and))
}

/// How long each step of a look at a server may take that answered nothing.
const A_LOOK: Duration = Duration::from_secs(2);

/// Why no request had a good answer, where one look at the server tells: it speaks TLS and not HTTP,
/// or the reverse, or wants to be trusted, or wants a certificate. The lanes only count.
fn misunderstanding(transport: &Transport, load: &LoadStudy) -> Option<String> {
    let LoadStudy { run: Run { tally, claim, .. }, plan, .. } = load;
    let counts = &tally.counts;
    if claim.is_some() || counts.attempted() == 0 || counts.good() > 0 {
        return None;
    }
    let endpoint = transport.endpoints.first()?;
    // What a server answers that was spoken to in the wrong protocol, where it answers at all.
    let is_refusal = counts.of(Outcome::Answered(400)) == counts.answered();
    if !is_refusal {
        return None;
    }
    let Some(tls) = &transport.tls else {
        let is_cut_off = counts.answered() > 0
            || [Outcome::Closed, Outcome::Reset, Outcome::TimedOut, Outcome::BadResponse]
                .iter()
                .any(|outcome| counts.of(*outcome) > 0);
        let https = plan.url.replacen("http://", "https://", 1);
        return (is_cut_off && engine::speaks_tls(endpoint, A_LOOK)).then(|| {
            format!("{endpoint} speaks TLS, and was sent plain HTTP: type {https} (--insecure accepts any certificate)")
        });
    };
    let found = tls.shake_hands(endpoint, A_LOOK);
    let wants_certificate =
        found.asks_for_certificate && !tls.has_certificate() && counts.answered() > 0;
    found.failure.or_else(|| {
        wants_certificate.then(|| {
            format!(
                "{endpoint} asks for a client certificate, had none, and answers 400: give it with --cert FILE and --key FILE"
            )
        })
    })
}

/// Says where the load goes that leaves for the public internet, and how much it is.
fn announce(prepared: &PreparedLoad) {
    for endpoint in &prepared.shape.transport.endpoints {
        if let Endpoint::Tcp(address) = endpoint
            && is_public(address.ip())
        {
            ui::note(&format!("Loading {address}: {}", report::labels::load(&prepared.plan)));
        }
    }
}

/// Of a load that had no answer at all: how its requests ended, and what to check first.
fn explain_no_response(load: &LoadStudy, misunderstanding: Option<&str>) -> Option<String> {
    let LoadStudy { run: Run { tally, claim, .. }, plan, .. } = load;
    if let Some(claim) = claim {
        let nothing_came = claim.good().unwrap_or(0) == 0 && claim.failed.is_some();
        let why =
            || format!("{} had no good answer at all: does anything serve {}?", claim.by, plan.url);
        return nothing_came.then(why);
    }
    let counts = &tally.counts;
    if counts.attempted() == 0 || tally.all_responses() > 0 {
        return None;
    }
    let kinds =
        counts.iter().map(|(outcome, n)| format!("{n} {}", name(outcome).replace('_', " ")));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let most = counts.iter().max_by_key(|(_, n)| *n).map(|(outcome, _)| outcome);
    let reason = most.and_then(|outcome| tally.reason(outcome));
    let look = match most {
        Some(Outcome::ConnectFailed) if plan.tls => {
            "TLS did not come about, and does now: what does the server's log say?"
        }
        Some(Outcome::TimedOut | Outcome::ConnectTimedOut | Outcome::InFlight) if plan.tls => {
            "does it speak TLS, and answer within --timeout?"
        }
        Some(Outcome::TimedOut | Outcome::InFlight) => {
            "connections were made: does it answer within --timeout?"
        }
        Some(Outcome::ConnectTimedOut) => {
            "no connection came about within --timeout: is its accept queue full, or a firewall between?"
        }
        Some(Outcome::NoRoute) => {
            "there is no route to it: is the address right (ip route get ADDRESS)?"
        }
        Some(Outcome::NoPort) => {
            "this machine has no port left: give fewer connections, or keep them alive"
        }
        Some(Outcome::NoDescriptor) => {
            "raise the limit of open files (ulimit -n), or give fewer connections"
        }
        Some(Outcome::BadResponse) => {
            "longtail speaks HTTP/1.1 only: is this the port of such a server?"
        }
        Some(Outcome::Refused) => {
            "it was listened to before the start: is there still a server, or is its accept queue full?"
        }
        Some(Outcome::Closed | Outcome::Reset) => {
            "it took the connections and ended them: what does its log say?"
        }
        _ => "does anything listen there?",
    };
    let what = format!("not one request to {} was answered ({kinds})", plan.url);
    Some(match (misunderstanding, reason) {
        (Some(misunderstanding), _) => format!("{what}: {misunderstanding}"),
        (None, Some(reason)) => format!("{what}: {reason}; {look}"),
        (None, None) => format!("{what}: {look}"),
    })
}
