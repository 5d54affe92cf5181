//! What is said about a study beside its table: server, machine, load, errors.

use model::forecast::{ServiceTime, ServiceTimeSource};
use model::{
    Environment, LaneCountReason, Nanos, Placement, Run, ServerFacts, ServerKind, Stop, StreamPlan, SweepStudy, counts,
};

use crate::in_words::{self, listed};
use crate::number::{self, count_of};
use crate::tree::NamedFact;

/// What a sweep measured, and where.
pub(crate) fn of_sweep(study: &SweepStudy) -> Vec<NamedFact> {
    let server = &study.server;
    let slots = slots(server, &study.plan.server.kind);
    vec![
        NamedFact::key("server", [format!("{}, {slots}", server_name(server))]),
        NamedFact::new("at", [format!("{}, path {}", server.url, study.plan.stream.target_path())]),
        NamedFact::new("command", [server.command_line.clone()]),
        NamedFact::new("machine", [machine(&study.environment, &study.started_at)]),
        NamedFact::key("load", load(study)),
    ]
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
    let threads = count_of(server.threads, "thread");
    if matches!(kind, ServerKind::Command { .. }) {
        return match server.workers {
            1 => format!("{slots} (given)"),
            workers => format!("{slots} = {} x {threads} (given)", count_of(workers, "worker")),
        };
    }
    if server.cluster {
        format!("{slots} = {} x {threads}", count_of(server.workers, "worker"))
    } else {
        format!("{slots} = 1 process x {threads}")
    }
}

pub(crate) fn machine(machine: &Environment, started_at: &str) -> String {
    let longtail = named("longtail", &machine.longtail_version);
    listed(hardware(machine).into_iter().chain([longtail, named("started", started_at)]))
}

/// Processor, memory and system, as far as they are known.
pub fn hardware_in_words(machine: &Environment) -> String {
    listed(hardware(machine))
}

/// Processor, memory and system; what is not known is empty.
fn hardware(machine: &Environment) -> Vec<String> {
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
fn load(study: &SweepStudy) -> Vec<String> {
    let with = study.plan.with.as_deref();
    let stream = stream_in_words(&study.plan.stream, study.lanes_by, study.server.placement.as_ref(), with);
    let mut lines = vec![format!("closed loop, {stream}")];
    lines.push(match service_time(study) {
        Some((time, source, maximum)) => {
            let on_cpu = computing(study).map(|(cpu, _)| format!(", {} of it on a CPU", number::time(cpu)));
            format!(
                "service time {} ({source}){}, so {} req/s at most",
                number::time(time),
                on_cpu.unwrap_or_default(),
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

/// `keep-alive, 5s a run after 1s warm-up, 1 lane, answers given up after 30s`.
pub(crate) fn stream_in_words(
    stream: &StreamPlan,
    by: Option<LaneCountReason>,
    placement: Option<&Placement>,
    with: Option<&str>,
) -> String {
    let connections = in_words::connections(stream.keep_alive);
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
        None => lanes(stream.lanes, by, placement),
        Some(with) => format!("made by {with}"),
    };
    listed([connections.to_owned(), stop, maker, timeout])
}

/// `1 lane (20000 req/s a lane) on CPU 1, the server on CPU 0`: how many and why, and whether they share any
/// processor with the server.
pub(crate) fn lanes(lanes: u32, by: Option<LaneCountReason>, placement: Option<&Placement>) -> String {
    let why = by.map(|by| by.to_string()).filter(|why| !why.is_empty()).map(|why| format!(" ({why})"));
    beside_the_server(count_of(lanes, "lane") + &why.unwrap_or_default(), placement)
}

/// Who makes the load, and on which processors, as [`lanes`].
pub(crate) fn beside_the_server(who: String, placement: Option<&Placement>) -> String {
    match placement {
        None => who,
        Some(Placement { server, lanes: own }) if own.is_empty() => {
            format!("{who} of each generator, the server on {}", server.in_words())
        }
        Some(Placement { server, lanes: own }) if server == own => {
            format!("{who} on {}, as the server", own.in_words())
        }
        Some(Placement { server, lanes: own }) => {
            format!("{who} on {}, the server on {}", own.in_words(), server.in_words())
        }
    }
}

/// How long a slot is held, how that is known, and the highest rate that leaves room for.
///
/// Before the first run there is no forecast yet; a delay that was given says the same.
pub(crate) fn service_time(study: &SweepStudy) -> Option<(Nanos, &'static str, f64)> {
    let ServiceTime { time, source, .. } = study.service_time.filter(|known| known.time > Nanos::ZERO)?;
    let source = match source {
        ServiceTimeSource::Given => "given",
        ServiceTimeSource::Measured => "measured over one connection",
    };
    let slots = f64::from(study.server.slots()) / time.as_secs_f64();
    Some((time, source, computing(study).map_or(slots, |(_, rate)| rate)))
}

/// Of an app that computes so much of its time that CPUs, and not slots, are the ceiling: its CPU time a request, and that ceiling. A
/// worker in Ruby computes on one CPU at a time.
fn computing(study: &SweepStudy) -> Option<(Nanos, f64)> {
    let ServiceTime { time, cpu, .. } = study.service_time?;
    let cpu = cpu.filter(|cpu| *cpu > Nanos::ZERO)?;
    let server = &study.server;
    let cpus = server.placement.as_ref()?.server.len() as f64;
    let is_ruby = server.runtime.as_ref().is_some_and(|runtime| runtime.starts_with("ruby"));
    let at_once = if is_ruby { cpus.min(f64::from(server.workers)) } else { cpus };
    let rate = at_once / cpu.as_secs_f64();
    (rate * time.as_secs_f64() < f64::from(server.slots())).then_some((cpu, rate))
}

/// How many requests of a run failed of how many, how many of each kind, and why answers were bad; `None` where none did.
pub(crate) fn errors(run: &Run) -> Option<String> {
    let counts = &run.tally.counts;
    let bad = counts.iter().filter(|(outcome, _)| !outcome.is_good());
    let kinds = bad.map(|(outcome, n)| {
        let name = counts::name(outcome).replace('_', " ");
        let status = if name.bytes().all(|b| b.is_ascii_digit()) { "with status " } else { "" };
        let why = run.tally.reason(outcome).map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {status}{name}{why}", number::count(n))
    });
    let of = format!("{} of {}", number::count(counts.failed()), count_of(counts.total(), "request"));
    // What is said of one kind has commas of its own.
    let is_long = counts.iter().any(|(outcome, _)| run.tally.reason(outcome).is_some());
    let kinds = kinds.collect::<Vec<_>>().join(if is_long { "; " } else { ", " });
    (counts.failed() > 0).then(|| format!("{of}: {kinds}"))
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
