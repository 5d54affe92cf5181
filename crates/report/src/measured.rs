//! What was measured and how: two lines at the top of every answer, and in a full report also
//! addresses, commands, machine and generator.

use judge::findings::only_status;
use model::theory::{ServiceTime, ServiceTimeSource};
use model::{
    BodiesStudy, CapacityStudy, ComparisonStudy, Diagnostic, Environment, LaneCountReason,
    LaneFacts, LatePolicy, LoadPlan, LoadStudy, MaskedText, Nanos, Placement, PlannedMix,
    QueueHeader, ServerLocation, Stop, StreamPlan, Study, SweepStudy, Timing,
};

use crate::labels::{
    app_sleeps, connections, hardware, joined, length, listed, load, made_by, named, server, slots,
    stopped_load,
};
use crate::number::{self, count_of};
use crate::tree::NamedFact;
use crate::{capacity, comparison, theory};

/// What studies of every kind have.
pub(crate) struct StudyHead<'a> {
    pub(crate) command_line: &'a str,
    pub(crate) started_at: &'a str,
    pub(crate) environment: &'a Environment,
    /// Warnings of the study as a whole; each run has its own, too.
    pub(crate) warnings: &'a [Diagnostic],
    /// How long it all took.
    pub(crate) total_time: Nanos,
}

impl StudyHead<'_> {
    pub(crate) fn of(study: &Study) -> StudyHead<'_> {
        match study {
            Study::Sweep(it) => StudyHead {
                command_line: &it.command_line,
                started_at: &it.started_at,
                environment: &it.environment,
                warnings: &it.warnings,
                total_time: it.total_time,
            },
            Study::Load(it) => StudyHead {
                command_line: &it.command_line,
                started_at: &it.started_at,
                environment: &it.environment,
                warnings: &[],
                total_time: it.run.elapsed,
            },
            Study::Compare(it) => StudyHead {
                command_line: &it.command_line,
                started_at: &it.started_at,
                environment: &it.environment,
                warnings: &it.warnings,
                total_time: it.total_time,
            },
            Study::Capacity(it) => StudyHead {
                command_line: &it.command_line,
                started_at: &it.started_at,
                environment: &it.environment,
                warnings: &[],
                total_time: it.total_time,
            },
            Study::Bodies(it) => StudyHead {
                command_line: &it.command_line,
                started_at: &it.started_at,
                environment: &it.environment,
                warnings: &it.warnings,
                total_time: it.total_time,
            },
        }
    }

    /// Hardware, system, version of longtail and when it began.
    fn machine(&self) -> NamedFact {
        let version = named("longtail", &self.environment.longtail_version);
        let all = [hardware(self.environment), version, named("started", self.started_at)];
        NamedFact::new("machine", [listed(all)])
    }

    /// When it began, as a person reads it.
    pub(crate) fn when(&self) -> String {
        self.started_at.replace('T', " ").replace('Z', " UTC")
    }
}

/// The server, then the load; and the status of the responses where none was 200.
pub(crate) fn lines(study: &Study) -> Vec<String> {
    let mut lines = server_and_load(study);
    let status = only_status(study).filter(|status| !["200", "2xx"].contains(&status.as_str()));
    if let (Some(first), Some(status)) = (lines.first_mut(), status) {
        *first = joined([Some(first.clone()), Some(format!("answered {status}"))]);
    }
    lines
}

fn server_and_load(study: &Study) -> Vec<String> {
    match study {
        Study::Sweep(study) => of_sweep(study),
        Study::Bodies(study) => of_bodies(study),
        Study::Load(study) => of_load(study),
        Study::Compare(study) => comparison::measured(study),
        Study::Capacity(study) => capacity::measured(study),
    }
}

fn of_sweep(study: &SweepStudy) -> Vec<String> {
    let plan = &study.plan;
    let facts = &study.server;
    let placement = facts.placement.as_ref();
    let planned = || count_of(plan.runs() as u64, "run");
    let runs = judge::runs_so_far(study).unwrap_or_else(planned);
    let load = closed_loop(&plan.stream, &runs, &study.environment, placement);
    // Runs after the first find a warm server, and may warm it up for a shorter time.
    let warm_ups_vary = plan.runs() > 1 && matches!(plan.stream.stop, Stop::After(_));
    vec![
        joined([Some(server(facts)), Some(slots(facts)), Some(app(study))]),
        if warm_ups_vary { load.replacen(", after ", ", after up to ", 1) } else { load },
    ]
}

fn of_bodies(study: &BodiesStudy) -> Vec<String> {
    let facts = study.server();
    let what = Some("bodies by socket, kind and size".to_owned());
    let placement = facts.and_then(|facts| facts.placement.as_ref());
    vec![
        joined([facts.map(server), facts.map(slots), what]),
        closed_loop(
            &study.plan.stream,
            &count_of(study.runs.len() as u64, "run"),
            &study.environment,
            placement,
        ),
    ]
}

/// What else is known of server, machine and load.
pub(crate) fn facts(study: &Study) -> Vec<NamedFact> {
    let machine = StudyHead::of(study).machine();
    match study {
        Study::Sweep(study) => facts_of_sweep(study, machine),
        Study::Bodies(study) => facts_of_bodies(study, machine),
        Study::Load(study) => facts_of_load(study, machine),
        Study::Compare(study) => facts_of_comparison(study, machine),
        Study::Capacity(study) => facts_of_capacity(study, machine),
    }
}

fn facts_of_sweep(study: &SweepStudy, machine: NamedFact) -> Vec<NamedFact> {
    let server = &study.server;
    let stream = &study.plan.stream;
    let generator = generator(stream, server.placement.as_ref(), study.plan.with.as_deref());
    let at = match &stream.mix {
        Some(mix) => format!("{}, {}", server.url, mix.described),
        None => format!("{}, path {}", server.url, stream.target_path()),
    };
    vec![
        NamedFact::new("at", [at]),
        NamedFact::new("command", [server.command_line.to_string()]),
        NamedFact::new("runtime", server.runtime.clone()),
        machine,
        NamedFact::new("load", [generator, most_possible(study)]),
        NamedFact::new("probe", theory::probes(study)),
    ]
}

fn facts_of_bodies(study: &BodiesStudy, machine: NamedFact) -> Vec<NamedFact> {
    let started = study.servers.iter().flat_map(|started| {
        [
            format!("{}: {}", started.socket, started.server.url),
            format!("  {}", started.server.command_line),
        ]
    });
    let runtime = study.server().and_then(|server| server.runtime.clone());
    vec![
        NamedFact::new("at", started),
        NamedFact::new("runtime", runtime),
        machine,
        NamedFact::new("load", load_of_bodies(study)),
    ]
}

fn facts_of_load(study: &LoadStudy, machine: NamedFact) -> Vec<NamedFact> {
    let plan = &study.plan;
    let made = study.run.claim.as_ref().map(|claim| {
        let placed =
            study.placement.as_ref().map(|placed| with_placement(claim.name(), Some(placed)));
        listed([made_by(claim, study.run.elapsed), placed.unwrap_or_default()])
    });
    let generator = if made.is_some() { String::new() } else { generator_of_load(study) };
    let tls = if plan.tls { ", TLS" } else { "" };
    let at = plan.endpoints.join(", ");
    let at = if at.is_empty() { at } else { format!("at {at}{tls}") };
    let unseen = match study.server {
        ServerLocation::Here => "",
        ServerLocation::Elsewhere | ServerLocation::Forwarded { .. } => {
            "the server's accept queue, CPU and processes are not seen from here"
        }
    };
    vec![
        NamedFact::new("made", made),
        NamedFact::new("target", [plan.url.to_string(), at, unseen.to_owned()]),
        machine,
        NamedFact::new("load", [requests(plan), generator]),
    ]
}

fn facts_of_capacity(study: &CapacityStudy, machine: NamedFact) -> Vec<NamedFact> {
    let command = study.server.as_ref().map(|server| server.command_line.to_string());
    vec![NamedFact::new("command", command), machine]
}

fn facts_of_comparison(study: &ComparisonStudy, machine: NamedFact) -> Vec<NamedFact> {
    let plan = &study.plan;
    let commands = (0..plan.arms.len()).filter_map(|at| {
        let server = study.server(at)?;
        Some(format!("{}: {}", plan.letter(at), server.command_line))
    });
    let placement = study.server(0).and_then(|server| server.placement.as_ref());
    vec![
        NamedFact::new("commands", commands),
        machine,
        NamedFact::new("blocks", [comparison::method(study)]),
        NamedFact::new("load", [generator(&plan.arms[0].stream, placement, None)]),
    ]
}

/// `closed loop, keep-alive · 5 runs of 10 s, after 1 s of warm-up · 2 CPUs shared with longtail`.
fn closed_loop(
    stream: &StreamPlan,
    runs: &str,
    machine: &Environment,
    placement: Option<&Placement>,
) -> String {
    let runs = format!("{runs} of {}", length(stream.stop));
    joined([
        Some(format!("closed loop, {}", connections(stream.keep_alive))),
        Some(format!("{runs}, after {} of warm-up", number::span(stream.warm_up))),
        cpus(machine, placement),
        from(&stream.from),
    ])
}

/// `load from ssh box2 and ssh box3`; nothing if this process makes the load.
fn from(generators: &[MaskedText]) -> Option<String> {
    let names: Vec<String> = generators.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| format!("load from {}", judge::words::listed(&names)))
}

fn app(study: &SweepStudy) -> String {
    let plan = &study.plan;
    if let Some(sleeps) = app_sleeps(&plan.server, &plan.stream) {
        return sleeps;
    }
    let path = plan.stream.target_path();
    let alone = study
        .service_time
        .filter(|known| known.source == ServiceTimeSource::Measured && known.mean > Nanos::ZERO);
    let takes = alone.map(|known| takes_alone(&known));
    if let Some(mix) = &plan.stream.mix {
        let takes = takes.map(|takes| format!(", of which a request {takes}")).unwrap_or_default();
        return format!("{}{takes}", mix_in_short(mix));
    }
    let takes = takes.map(|takes| format!(" {takes}"));
    format!("GET {path}{}", takes.unwrap_or_default())
}

/// `a mix of 3 classes of requests`.
pub(crate) fn mix_in_short(mix: &PlannedMix) -> String {
    match mix.classes.len() {
        0 => format!("a mix of {}", mix.described),
        classes => format!("a mix of {classes} classes of requests"),
    }
}

/// `takes 20.7 ms when alone, 1.20 ms of it CPU`, and where the first request or later ones took
/// another time.
fn takes_alone(known: &ServiceTime) -> String {
    let cpu = known.cpu.map(|cpu| format!("{} of it CPU", number::time(cpu)));
    let first =
        known.first.map(|first| format!("the first request of a worker {}", number::time(first)));
    let later = known
        .again
        .filter(|again| again.differs)
        .map(|again| format!("{} at the end", number::time(again.mean)));
    let takes = format!("takes {} when alone", time_alone(known));
    [Some(takes), cpu, first, later].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `20.7 ms`; where the mean is not known well, `15.0 ms (median; mean 69.0 ms, 41.0 to 110 ms)`.
fn time_alone(known: &ServiceTime) -> String {
    // Older files have only the median.
    if known.is_well_known() || known.answers == 0 {
        return number::time(known.mean);
    }
    let median = number::time(known.median);
    format!("{median} (median; mean {}, {})", number::time(known.mean), interval(known))
}

/// The interval of the mean: `41.0 to 110 ms`.
fn interval(known: &ServiceTime) -> String {
    let low = number::time(known.low);
    if known.high == Nanos::MAX {
        return format!("{low} or more");
    }
    let high = number::time(known.high);
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((low, unit)), Some((_, same))) if unit == same => format!("{low} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// `2 CPUs shared with longtail`, or which CPUs each has.
fn cpus(machine: &Environment, placement: Option<&Placement>) -> Option<String> {
    match placement {
        Some(placement) if placement.is_shared() => {
            Some(format!("{} shared with longtail", count_of(placement.server.len() as u64, "CPU")))
        }
        Some(Placement { server, lanes }) if lanes.is_empty() => {
            Some(format!("server on {}", server.in_words()))
        }
        Some(Placement { server, lanes }) => {
            Some(format!("server on {}, longtail on {}", server.in_words(), lanes.in_words()))
        }
        None => (machine.cores > 0).then(|| count_of(machine.cores, "CPU")),
    }
}

/// Who makes the requests of a closed loop, and its timeout.
fn generator(stream: &StreamPlan, placement: Option<&Placement>, with: Option<&str>) -> String {
    let maker = match with {
        None => lanes(stream.lanes, None, placement),
        Some(with) => format!("made by {with}"),
    };
    listed([maker, format!("responses given up after {}", number::span(stream.timeout))])
}

/// `1 generator thread (enough for this rate) on CPU 1, the server on CPU 0`: how many, why so
/// many, and on which CPUs.
fn lanes(lanes: u32, by: Option<LaneCountReason>, placement: Option<&Placement>) -> String {
    let why =
        by.map(|by| by.to_string()).filter(|why| !why.is_empty()).map(|why| format!(" ({why})"));
    with_placement(count_of(lanes, "generator thread") + &why.unwrap_or_default(), placement)
}

/// Who makes the load, on which CPUs, and on which the server is.
fn with_placement(who: String, placement: Option<&Placement>) -> String {
    let Some(Placement { server, lanes }) = placement else { return who };
    if lanes.is_empty() {
        format!("{who} of each generator, the server on {}", server.in_words())
    } else if lanes == server {
        format!("{who} on {}, as the server", server.in_words())
    } else {
        format!("{who} on {}, the server on {}", lanes.in_words(), server.in_words())
    }
}

/// How long a request holds a slot, how that is known, and the highest rate that is possible with
/// it. It is known before the first run, when there is no forecast yet.
pub(crate) fn service_time(study: &SweepStudy) -> Option<(Nanos, &'static str, f64)> {
    let ServiceTime { mean, source, .. } =
        study.service_time.filter(|known| known.mean > Nanos::ZERO)?;
    let source = match source {
        ServiceTimeSource::Given => "given",
        ServiceTimeSource::Measured => "measured one request at a time",
    };
    let by_slots = f64::from(study.server.slots()) / mean.as_secs_f64();
    Some((mean, source, computing(study).map_or(by_slots, |(_, rate)| rate)))
}

/// The CPU time of a request and the highest rate that the CPUs allow, where that is lower than
/// what the slots allow. A worker in Ruby computes on one CPU at a time.
fn computing(study: &SweepStudy) -> Option<(Nanos, f64)> {
    let ServiceTime { mean, cpu, .. } = study.service_time?;
    let cpu = cpu.filter(|cpu| *cpu > Nanos::ZERO)?;
    let server = &study.server;
    let cpus = server.placement.as_ref()?.server.len() as f64;
    let is_ruby = server.runtime.as_ref().is_some_and(|runtime| runtime.starts_with("ruby"));
    let at_once = if is_ruby { cpus.min(f64::from(server.workers)) } else { cpus };
    let rate = at_once / cpu.as_secs_f64();
    (rate * mean.as_secs_f64() < f64::from(server.slots())).then_some((cpu, rate))
}

/// The theoretical maximum of the server.
fn most_possible(study: &SweepStudy) -> String {
    let Some((time, source, maximum)) = service_time(study) else {
        return "service time unknown, so no theoretical maximum".to_owned();
    };
    let on_cpu = computing(study)
        .map(|(cpu, _)| format!(", {} of it on a CPU", number::time(cpu)))
        .unwrap_or_default();
    let known = study.service_time.unwrap_or_default();
    let spread = if known.answers == 0 || known.is_well_known() {
        String::new()
    } else {
        format!(" (the mean may be {})", interval(&known))
    };
    let time = number::time(time);
    let maximum = number::rate_in_words(maximum);
    format!("service time {time} ({source}){on_cpu}, so {maximum} req/s at most{spread}")
}

fn load_of_bodies(study: &BodiesStudy) -> Vec<String> {
    let plan = &study.plan;
    let placement = study.server().and_then(|server| server.placement.as_ref());
    let connections = study.server().map(|server| {
        let streams = count_of(plan.streams_on(server.slots()), "stream");
        let all = count_of(plan.connections_on(server.slots()), "connection");
        format!("{all} = {streams} x {}", plan.connections_per_stream)
    });
    let delay = plan
        .stream
        .delay
        .map(|delay| format!("each response is delayed by {} in the app", number::span(delay)));
    let passes = if plan.repeat > 1 { format!(", {} passes", plan.repeat) } else { String::new() };
    let order = format!("bodies in random order (seed {}){passes}", plan.seed);
    let generator = generator(&plan.stream, placement, None);
    [Some(generator), connections, delay, Some(order)].into_iter().flatten().collect()
}

fn of_load(study: &LoadStudy) -> Vec<String> {
    let plan = &study.plan;
    let place = match &study.server {
        ServerLocation::Here => cpus(&study.environment, study.placement.as_ref()),
        ServerLocation::Elsewhere => Some("on another machine".to_owned()),
        ServerLocation::Forwarded { by: Some(by) } => Some(format!("forwarded by {by}")),
        ServerLocation::Forwarded { by: None } => Some("forwarded (NAT)".to_owned()),
    };
    let how = if study.interrupted { stopped_load(plan, study.run.measured) } else { load(plan) };
    let how = how.replacen("loop, ", "loop: ", 1);
    let warm_up = (plan.load.warm_up > Nanos::ZERO)
        .then(|| format!("after {} of warm-up", number::span(plan.load.warm_up)));
    let timeout = format!("timeout {}", number::span(plan.load.timeout));
    let connect_timeout =
        plan.load.connect_timeout.map(|time| format!("connect timeout {}", number::span(time)));
    let queue_header = plan
        .load
        .queue_header
        .map(|header| format!("{} as {} writes it", QueueHeader::NAME, header.proxy()));
    vec![
        joined([Some(requests_and_url(plan)), own_name(study), place, from(&plan.from)]),
        joined([Some(how), warm_up, Some(timeout), connect_timeout, queue_header]),
    ]
}

/// `nginx/1.22.1`: the first word of the `Server` header, as far as it is a plain name.
fn own_name(study: &LoadStudy) -> Option<String> {
    let is_of_name = |c: &char| c.is_ascii_alphanumeric() || "/._-".contains(*c);
    let name: String =
        study.run.tally.server_name.as_ref()?.chars().take_while(is_of_name).collect();
    (!name.is_empty()).then_some(name)
}

/// `GET http://127.0.0.1:9292/`, or `51 requests of mix.txt, by weight · http://127.0.0.1:9292/`.
fn requests_and_url(plan: &LoadPlan) -> String {
    let is_method = plan.requests.starts_with(|first: char| first.is_ascii_uppercase());
    let between = if is_method { " " } else { " · " };
    format!("{}{between}{}", plan.requests, plan.url)
}

/// How requests use the connections of a load.
fn requests(plan: &LoadPlan) -> String {
    let is_open = plan.load.pace.is_open();
    let late = match plan.load.late {
        _ if !is_open => {
            "its response times must not be compared with an open loop's: it sends less when the server is slow"
        }
        LatePolicy::Queue => "late requests wait for a connection",
        LatePolicy::Skip => "late requests are skipped",
    };
    listed([
        if is_open { connections(plan.load.keep_alive).to_owned() } else { String::new() },
        plan.load
            .reconnect_after
            .map(|n| format!("{} a connection", count_of(n, "request")))
            .unwrap_or_default(),
        late.to_owned(),
    ])
}

/// The generator threads of a load, how they time requests, and how much they poll.
fn generator_of_load(study: &LoadStudy) -> String {
    let plan = &study.plan;
    let timing = match plan.load.timing {
        _ if !plan.load.pace.is_open() => "",
        Timing::Coalesce => "timing coalesce (up to 1 ms late)",
        Timing::Precise => "timing precise",
        Timing::Spin => "timing spin",
    };
    // Busy polling for responses that are about to come; less than 1 % of the time is not worth a
    // word.
    let sum = |part: fn(&LaneFacts) -> Nanos| {
        study.run.generator.lanes.iter().map(part).sum::<Nanos>().0 as f64
    };
    let share = sum(|lane| lane.spun) / sum(|lane| lane.elapsed).max(1.0);
    let polled = if share < 0.01 {
        String::new()
    } else {
        format!("busy polling {:.0} % of the time", 100.0 * share)
    };
    listed([
        lanes(plan.load.lanes, Some(study.lanes_by), study.placement.as_ref()),
        timing.to_owned(),
        polled,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_the_server_as_that_names_itself() {
        let mut study = testkit::load::closed();
        for (name, shown) in [
            ("nginx/1.22.1", Some("nginx/1.22.1")),
            ("Apache/2.4.41 (Ubuntu) mod_wsgi/4.6", Some("Apache/2.4.41")),
            ("`x` | y", None),
        ] {
            study.run.tally.server_name = Some(name.to_owned());
            assert_eq!(own_name(&study).as_deref(), shown, "{name}");
        }
        study.run.tally.server_name = Some("nginx".to_owned());
        assert!(of_load(&study)[0].contains(" · nginx · "), "{:?}", of_load(&study));
    }
}
