//! Short labels for servers, machines and loads, and for runs that another generator made
//! (`--generator wrk`).

use judge::named_runs::NamedRun;
use model::{
    App, Arrivals, Believable, Environment, GeneratorClaim, LoadPlan, Nanos, Pace, Profile,
    ServerFacts, ServerPlan, Stop, StreamPlan,
};

use crate::number::{self, count_of};
use crate::tree::{ListItem, ReportSection};

/// The parts that are there, with a dot between them.
pub(crate) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Joined by commas, empty ones left out.
pub(crate) fn listed(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// `kernel 6.1.0`; nothing if there is nothing to name.
pub(crate) fn named(name: &str, what: &str) -> String {
    if what.is_empty() { String::new() } else { format!("{name} {what}") }
}

/// `Puma 5.6.5, Ruby 3.1.7, main 43b8bba1`.
pub(crate) fn server(server: &ServerFacts) -> String {
    let version = server.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let runtime = server.runtime.as_ref().map(|runtime| {
        let runtime = runtime.split(" (").next().unwrap_or(runtime);
        // `ruby 3.1.7p261` without its patch level.
        match runtime.strip_prefix("ruby ") {
            Some(ruby) => {
                let end =
                    ruby.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(ruby.len());
                format!("Ruby {}", &ruby[..end])
            }
            None => runtime.to_owned(),
        }
    });
    listed(
        [Some(format!("{}{version}", server.name)), runtime, server.git.clone()]
            .into_iter()
            .flatten(),
    )
}

/// `2 workers x 5 threads = 10 slots`.
pub(crate) fn slots(server: &ServerFacts) -> String {
    let threads = count_of(server.threads, "thread");
    let processes = match (server.cluster, server.workers) {
        (true, workers) => count_of(workers, "worker"),
        (false, 0 | 1) => return threads,
        (false, workers) => format!("{workers} processes"),
    };
    format!("{processes} x {threads} = {}", count_of(server.slots(), "slot"))
}

/// How long each run is: `10 s`, `100 requests a connection`.
pub(crate) fn length(stop: Stop) -> String {
    match stop {
        Stop::After(time) => number::span(time),
        Stop::RequestsPerConnection(n) => format!("{} a connection", count_of(n, "request")),
    }
}

/// What becomes of a connection after a response.
pub(crate) fn connections(keep_alive: bool) -> &'static str {
    if keep_alive { "keep-alive" } else { "a new connection for each request" }
}

/// Which longtail measured, and on what machine.
pub fn longtail_and_machine(environment: &Environment) -> String {
    format!("longtail {}, {}", environment.longtail_version, hardware(environment))
}

/// Processor, memory and system, as far as they are known.
pub fn hardware(machine: &Environment) -> String {
    let cores = if machine.cores > 0 { count_of(machine.cores, "core") } else { String::new() };
    let memory = if machine.memory_bytes > 0 {
        number::bytes(machine.memory_bytes as f64)
    } else {
        String::new()
    };
    listed([
        machine.cpu.clone(),
        cores,
        memory,
        machine.os.clone(),
        named("kernel", &machine.kernel),
    ])
}

/// `open loop, Poisson, 500 req/s for 30 s, seed 1, at most 64 connections`.
pub fn load(plan: &LoadPlan) -> String {
    load_for(plan, plan.length.map(|length| format!("for {}", number::span(length))))
}

/// The same of a load that was stopped: `closed loop, 20 connections, keep-alive, stopped after
/// 6.02 s of 20 s`.
pub(crate) fn stopped_load(plan: &LoadPlan, ran_for: Nanos) -> String {
    let planned = planned_length(plan).map(|length| format!(" of {length}"));
    let ran_for = number::length(ran_for);
    load_for(plan, Some(format!("stopped after {ran_for}{}", planned.unwrap_or_default())))
}

/// How long the load was to run: as the user gave it, or as long as the log that is replayed.
pub(crate) fn planned_length(plan: &LoadPlan) -> Option<String> {
    let is_log = matches!(plan.load.pace, Pace::Open { profile: Profile::Recorded { .. }, .. });
    plan.length.map(if is_log { number::length } else { number::span })
}

/// The load, with these words for how long it runs.
fn load_for(plan: &LoadPlan, length: Option<String>) -> String {
    let total = plan.load.requests_total.map(|n| count_of(n, "request")).unwrap_or_default();
    let connection_count = count_of(plan.load.connections, "connection");
    match &plan.load.pace {
        Pace::Closed => listed([
            "closed loop".to_owned(),
            connection_count,
            connections(plan.load.keep_alive).to_owned(),
            if plan.load.think == Nanos::ZERO {
                String::new()
            } else {
                format!("think time {}", number::span(plan.load.think))
            },
            length.unwrap_or_default(),
            total,
        ]),
        Pace::Open { profile, arrivals, seed, burst } => {
            let law = match arrivals {
                Arrivals::Constant if matches!(profile, Profile::Recorded { .. }) => "",
                Arrivals::Constant => "constant",
                uneven => arrivals_in_words(*uneven),
            };
            let ends_by_itself = profile.length().is_some() && profile.length() == plan.length;
            let length = length
                .filter(|length| !ends_by_itself || !length.starts_with("for "))
                .map(|length| format!(" {length}"))
                .unwrap_or_default();
            // `500 req/s for 30 s` is one phrase; before any other length stands a comma.
            let is_phrase = length.is_empty()
                || matches!(profile, Profile::Flat { .. }) && length.starts_with(" for ");
            let gap = if is_phrase { "" } else { "," };
            listed([
                "open loop".to_owned(),
                law.to_owned(),
                format!("{}{gap}{length}", rate(profile)),
                total,
                if *burst > 1 { format!("in bursts of {burst}") } else { String::new() },
                if *arrivals == Arrivals::Constant {
                    String::new()
                } else {
                    format!("seed {seed}")
                },
                format!("at most {connection_count}"),
            ])
        }
    }
}

/// How uneven arrivals are spaced; empty for even ones, which go without saying.
pub(crate) fn arrivals_in_words(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "",
        Arrivals::Poisson => "Poisson",
        Arrivals::Uniform => "uniform gaps",
    }
}

/// `500 req/s`, `ramp from 20 to 200 req/s over 10 s`, `steps of 50, 100, 150 req/s for 5 s each`.
fn rate(profile: &Profile) -> String {
    let shown = |rate: &model::Rate| number::shortest(rate.per_second());
    match profile {
        Profile::Flat { rate } => format!("{} req/s", shown(rate)),
        Profile::Ramp { from, to, over } => {
            format!("ramp from {} to {} req/s over {}", shown(from), shown(to), number::span(*over))
        }
        Profile::Steps { rates, each } => {
            let rates: Vec<String> = rates.iter().map(shown).collect();
            format!("steps of {} req/s for {} each", rates.join(", "), number::span(*each))
        }
        Profile::Recorded { recorded } => {
            let times = number::shortest(recorded.speed);
            format!("as logged, {times}x, {} in the busiest second", shown(&recorded.peak))
        }
    }
}

/// The audit's verdict in a word.
pub(crate) fn audit_word(audit: Believable) -> &'static str {
    match audit {
        Believable::Possible => "possible",
        Believable::Doubtful => "doubtful",
        Believable::Impossible => "IMPOSSIBLE",
        Believable::Unchecked => "unchecked",
    }
}

/// The command that made a run of this length, and how much CPU it used.
pub(crate) fn made_by(claim: &GeneratorClaim, elapsed: Nanos) -> String {
    let used = claim
        .cpu
        .filter(|_| elapsed > Nanos::ZERO)
        .map(|cpu| cpu.as_secs_f64() / elapsed.as_secs_f64());
    let used = used.map(|used| format!(", {} processors used", number::fixed(used, 2)));
    format!("by {}{}: {}", claim.name(), used.unwrap_or_default(), claim.command_line)
}

/// For each run: the audit's verdict, the requests that generator and server counted, and the
/// command.
pub(crate) fn claims(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let of_run = |NamedRun { name, run }: &NamedRun<'_>| {
        let claim = run.claim.as_ref()?;
        let warm_up = claim.warm_up_requests.map(|n| format!(" and {n} in its warm-up"));
        let reported = number::or_none(claim.requests, |n| count_of(n, "request"));
        let server = match claim.server_requests {
            Some(n) => format!("the server counted {n}"),
            None => "the server's count is not known".to_owned(),
        };
        let first = format!(
            "{}: {} reports {reported}{}, {server}",
            audit_word(claim.audit),
            claim.name(),
            warm_up.unwrap_or_default()
        );
        let lines = vec![first, made_by(claim, run.elapsed)];
        Some(ListItem { label: name.clone(), lines, hints: Vec::new() })
    };
    ReportSection::new("claims").list(runs.iter().filter_map(of_run)).filled()
}

/// All that another generator printed.
pub(crate) fn output(claim: &GeneratorClaim) -> ReportSection {
    let title = format!("{}: what {} printed", audit_word(claim.audit), claim.name());
    ReportSection::new(title).verbatim(&claim.output)
}

/// `the app sleeps 50 ms`, if it is longtail's and does nothing else.
pub(crate) fn app_sleeps(server: &ServerPlan, stream: &StreamPlan) -> Option<String> {
    let brings_its_own = server.rackup.is_some() || server.config.is_some();
    let sleeps = server.app == App::Sleep && !brings_its_own && stream.path.is_none();
    let delay = stream.delay.filter(|_| sleeps && stream.body.is_none())?;
    Some(format!("the app sleeps {}", number::span(delay)))
}
