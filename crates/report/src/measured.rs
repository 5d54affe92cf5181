//! What was measured and how, in two lines: no figure means anything without it.

use model::forecast::ServiceTimeSource;
use model::{
    App, BodiesStudy, Environment, LoadStudy, Nanos, Pace, Placement, ServerLocation, Stop, StreamPlan, Study,
    SweepStudy,
};

use crate::comparison;
use crate::far;
use crate::in_words::{connections, joined, length, server, slots};
use crate::load_facts;
use crate::number::{self, count_of};

/// The server, then the load.
pub(crate) fn lines(study: &Study) -> Vec<String> {
    match study {
        Study::Sweep(study) => of_sweep(study),
        Study::Load(study) => of_load(study),
        Study::Bodies(study) => of_bodies(study),
        Study::Compare(study) => comparison::measured(study),
    }
}

fn of_sweep(study: &SweepStudy) -> Vec<String> {
    let (plan, facts) = (&study.plan, &study.server);
    let closed_loop = closed_loop(&plan.stream, plan.runs(), &study.environment, facts.placement.as_ref());
    // Later runs find a warm server.
    let is_at_most = plan.runs() > 1 && matches!(plan.stream.stop, Stop::After(_));
    vec![
        joined([Some(server(facts)), Some(slots(facts)), Some(app(study))]),
        if is_at_most { closed_loop.replacen(", after ", ", after up to ", 1) } else { closed_loop },
    ]
}

fn of_bodies(study: &BodiesStudy) -> Vec<String> {
    let facts = study.servers.first().map(|socket| &socket.server);
    let placement = facts.and_then(|facts| facts.placement.as_ref());
    vec![
        joined([facts.map(server), facts.map(slots), Some("bodies by socket, kind and size".to_owned())]),
        closed_loop(&study.plan.stream, study.runs.len(), &study.environment, placement),
    ]
}

/// `closed loop, keep-alive · 5 runs of 10 s, after 1 s of warm-up · 2 CPUs shared with longtail`.
fn closed_loop(stream: &StreamPlan, runs: usize, machine: &Environment, placement: Option<&Placement>) -> String {
    let runs = format!("{} of {}", count_of(runs as u64, "run"), length(stream.stop));
    joined([
        Some(format!("closed loop, {}", connections(stream.keep_alive))),
        Some(format!("{runs}, after {} of warm-up", number::span(stream.warm_up))),
        cpus(machine, placement),
        far::who(&stream.from),
    ])
}

fn app(study: &SweepStudy) -> String {
    let plan = &study.plan;
    let brings_its_own = plan.server.rackup.is_some() || plan.server.config.is_some();
    let sleeps = plan.server.app == App::Sleep && !brings_its_own && plan.stream.path.is_none();
    if let Some(delay) = plan.stream.delay.filter(|_| sleeps && plan.stream.body.is_none()) {
        return format!("the app sleeps {}", number::span(delay));
    }
    let path = plan.stream.target_path();
    let alone =
        study.service_time.filter(|known| known.source == ServiceTimeSource::Measured && known.time > Nanos::ZERO);
    let takes = alone.map(|known| {
        let cpu = known.cpu.map(|cpu| format!(", {} of it CPU", number::time(cpu))).unwrap_or_default();
        format!(" takes {} when alone{cpu}", number::time(known.time))
    });
    format!("GET {path}{}", takes.unwrap_or_default())
}

/// `2 CPUs, shared with longtail`, or who runs where.
fn cpus(machine: &Environment, placement: Option<&Placement>) -> Option<String> {
    match placement {
        Some(placement) if placement.is_shared() => {
            let n = count_of(placement.server.len() as u64, "CPU");
            Some(format!("{n} shared with longtail"))
        }
        Some(placement) if placement.lanes.is_empty() => Some(format!("server on {}", placement.server.in_words())),
        Some(placement) => {
            Some(format!("server on {}, longtail on {}", placement.server.in_words(), placement.lanes.in_words()))
        }
        None if machine.cores > 0 => Some(count_of(machine.cores, "CPU")),
        None => None,
    }
}

fn of_load(study: &LoadStudy) -> Vec<String> {
    let plan = &study.plan;
    let place = match &study.server {
        ServerLocation::Here => cpus(&study.environment, study.placement.as_ref()),
        ServerLocation::Elsewhere => Some("on another machine".to_owned()),
        ServerLocation::Forwarded { by: Some(by) } => Some(format!("forwarded by {by}")),
        ServerLocation::Forwarded { by: None } => Some("forwarded (NAT)".to_owned()),
    };
    let how = match &plan.pace {
        Pace::Closed => format!("closed loop: {}", closed(study)),
        Pace::Open { .. } => load_facts::model(plan).replacen("open loop, ", "open loop: ", 1),
    };
    let warm_up = (plan.warm_up > Nanos::ZERO).then(|| format!("after {} of warm-up", number::span(plan.warm_up)));
    vec![
        joined([Some(format!("{} {}", plan.requests, plan.url)), place, far::who(&plan.from)]),
        joined([Some(how), warm_up, Some(format!("timeout {}", number::span(plan.timeout)))]),
    ]
}

/// `50 connections, keep-alive, for 10 s`.
fn closed(study: &LoadStudy) -> String {
    load_facts::model(&study.plan).trim_start_matches("closed loop, ").to_owned()
}
