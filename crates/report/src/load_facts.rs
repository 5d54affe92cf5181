//! What was asked, in words: the model of the load first, because no number means anything without it.

use model::{Arrivals, LaneFacts, LatePolicy, LoadPlan, LoadStudy, Nanos, Pace, Profile, ServerLocation, Timing};

use crate::claimed;
use crate::facts::{hardware_in_words, lanes, named};
use crate::in_words::{self, listed};
use crate::number::{self, count_of};
use crate::tree::NamedFact;

/// Said of every closed loop.
const NOT_COMPARABLE: &str =
    "its response times must not be compared with an open loop's: it sends less when the server is slow";

/// What was asked, and where.
pub(crate) fn of_load(study: &LoadStudy) -> Vec<NamedFact> {
    let plan = &study.plan;
    let not_comparable = if plan.pace.is_open() { "" } else { NOT_COMPARABLE };
    let load = NamedFact::key("load", [model(plan), requests(plan), not_comparable.to_owned()]);
    let facts = [
        NamedFact::new("target", target(plan).into_iter().chain(unseen(&study.server))),
        NamedFact::new("machine", [hardware_in_words(&study.environment)]),
        NamedFact::new("longtail", [longtail(study)]),
    ];
    std::iter::once(load).chain(claimed::maker(study)).chain(facts).collect()
}

/// The measured requests of which a byte reached the kernel.
pub(crate) fn sent(study: &LoadStudy) -> u64 {
    study.run.tally.send_lag.count()
}

/// `14421 good answers`.
pub(crate) fn good_answers(study: &LoadStudy) -> String {
    count_of(study.run.tally.counts.good(), "good answer")
}

/// `open loop, Poisson, 500 req/s for 30 s, seed 1, at most 64 connections`.
pub fn model(plan: &LoadPlan) -> String {
    let length = plan.length.map(number::span);
    let total = plan.requests_total.map(|n| count_of(n, "request"));
    let connections = count_of(plan.connections, "connection");
    match &plan.pace {
        Pace::Closed => listed([
            "closed loop".to_owned(),
            connections,
            in_words::connections(plan.keep_alive).to_owned(),
            if plan.think == Nanos::ZERO { String::new() } else { format!("think time {}", number::span(plan.think)) },
            length.map(|length| format!("for {length}")).unwrap_or_default(),
            total.unwrap_or_default(),
        ]),
        Pace::Open { profile, arrivals, seed, burst } => {
            let ends_by_itself = profile.length().is_some() && profile.length() == plan.length;
            let length = length.filter(|_| !ends_by_itself).map(|length| format!(" for {length}")).unwrap_or_default();
            let gap = if matches!(profile, Profile::Flat { .. }) || length.is_empty() { "" } else { "," };
            listed([
                "open loop".to_owned(),
                law(*arrivals).to_owned(),
                format!("{}{gap}{length}", rate(profile)),
                total.unwrap_or_default(),
                if *burst > 1 { format!("in bursts of {}", number::count(*burst)) } else { String::new() },
                if *arrivals == Arrivals::Constant { String::new() } else { format!("seed {}", number::count(*seed)) },
                format!("at most {connections}"),
            ])
        }
    }
}

fn law(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "constant",
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
    }
}

/// What is sent over the connections, and how long an answer may take.
fn requests(plan: &LoadPlan) -> String {
    let is_open = plan.pace.is_open();
    listed([
        plan.requests.clone(),
        if is_open { in_words::connections(plan.keep_alive).to_owned() } else { String::new() },
        plan.requests_per_connection.map(|n| format!("{} a connection", count_of(n, "request"))).unwrap_or_default(),
        if plan.pipeline > 1 { format!("{} at once on each", number::count(plan.pipeline)) } else { String::new() },
        if plan.warm_up == Nanos::ZERO {
            String::new()
        } else {
            format!("after {} warm-up", number::span(plan.warm_up))
        },
        format!("answers given up after {}", number::span(plan.timeout)),
        match plan.late {
            LatePolicy::Queue if is_open => "late requests wait for a connection".to_owned(),
            LatePolicy::Skip if is_open => "late requests are skipped".to_owned(),
            LatePolicy::Queue | LatePolicy::Skip => String::new(),
        },
    ])
}

fn target(plan: &LoadPlan) -> Vec<String> {
    let tls = if plan.tls { ", TLS" } else { "" };
    let at = if plan.endpoints.is_empty() { String::new() } else { format!("at {}{tls}", plan.endpoints.join(", ")) };
    [plan.url.clone(), at].into_iter().filter(|line| !line.is_empty()).collect()
}

/// What is not known of a server that is not here.
fn unseen(server: &ServerLocation) -> Option<String> {
    const NOT_SEEN: &str = "accept queue, CPU and processes are not seen from here";
    match server {
        ServerLocation::Here => None,
        ServerLocation::Elsewhere => Some(format!("on another machine: its {NOT_SEEN}")),
        ServerLocation::Forwarded { by: Some(by) } => {
            Some(format!("{by} listens there and passes connections on: the server's {NOT_SEEN}"))
        }
        ServerLocation::Forwarded { by: None } => {
            Some(format!("nobody listens there, the kernel passes connections on (NAT): the server's {NOT_SEEN}"))
        }
    }
}

/// The generator: version, lanes, how it waits, and when it ran.
fn longtail(study: &LoadStudy) -> String {
    let version = study.environment.longtail_version.clone();
    let started = named("started", &study.started_at);
    if study.run.claim.is_some() {
        return listed([version, started]);
    }
    let plan = &study.plan;
    let timing = match plan.timing {
        _ if !plan.pace.is_open() => "",
        Timing::Coalesce => "timing coalesce (up to 1 ms late)",
        Timing::Precise => "timing precise",
        Timing::Spin => "timing spin",
    };
    listed([
        version,
        lanes(plan.lanes, Some(study.lanes_by), study.placement.as_ref()),
        timing.to_owned(),
        busy_polling(&study.run.generator.lanes),
        started,
    ])
}

/// How much of the time the lanes polled for answers that were to come soon, where that is worth a word.
fn busy_polling(lanes: &[LaneFacts]) -> String {
    let sum = |part: fn(&LaneFacts) -> Nanos| lanes.iter().map(part).sum::<Nanos>().0 as f64;
    let share = sum(|lane| lane.spun) / sum(|lane| lane.elapsed).max(1.0);
    if share < 0.01 { String::new() } else { format!("busy polling {:.0} % of the time", 100.0 * share) }
}
