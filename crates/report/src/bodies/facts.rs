//! What is said about a study of bodies beside its tables.

use model::{BodiesStudy, BodyRun, ServerFacts};

use crate::facts::{self, Labelled};
use crate::number;

/// What a run is called where it has no row: `s10`, with the kind of socket and the pass where there are several.
pub(crate) fn label(study: &BodiesStudy, run: &BodyRun) -> String {
    let socket = if study.plan.sockets.len() > 1 { format!(" {}", run.socket) } else { String::new() };
    let pass = if study.plan.repeat > 1 { format!(" run {}", number::count(run.run.repeat)) } else { String::new() };
    format!("{}{socket}{pass}", run.body)
}

/// The runs with their names, in the order of the plan.
pub(crate) fn labelled(study: &BodiesStudy) -> Vec<Labelled<'_>> {
    study.sorted().into_iter().map(|run| Labelled { label: label(study, run), run: &run.run }).collect()
}

/// `Puma 5.6.5, ruby 3.1.2`, and nothing before a server was started.
pub(crate) fn server_name(study: &BodiesStudy) -> String {
    study.server().map(facts::server_name).unwrap_or_default()
}

/// `slots 10 = 2 workers x 5 threads`.
pub(crate) fn slots(study: &BodiesStudy) -> String {
    study.server().map(|server| facts::slots(server, &study.plan.server.kind)).unwrap_or_default()
}

/// The environment, as (what, lines).
pub(crate) fn environment(study: &BodiesStudy) -> Vec<(&'static str, Vec<String>)> {
    let mut server = vec![server_name(study), slots(study)];
    for started in &study.servers {
        let ServerFacts { url, command_line, .. } = &started.server;
        server.push(format!("{}: {url}", started.socket));
        server.push(format!("  {command_line}"));
    }
    server.retain(|line| !line.is_empty());
    let machine = facts::machine(&study.environment, &study.started_at);
    vec![("server", server), ("machine", vec![machine]), ("load", load(study))]
}

/// The runs' model in words.
pub(crate) fn load(study: &BodiesStudy) -> Vec<String> {
    let plan = &study.plan;
    let placement = study.server().and_then(|server| server.placement.as_ref());
    let mut lines = vec![facts::stream_in_words(&plan.stream, (Some(study.lanes_by), placement), None)];
    if let Some(server) = study.server() {
        let (streams, each) = (plan.streams_on(server.slots()), plan.connections_per_stream);
        let connections = plan.connections_on(server.slots());
        lines.push(format!(
            "{} = {} x {each}",
            number::count_of(connections, "connection"),
            number::count_of(streams, "stream")
        ));
    }
    lines.extend(
        plan.stream.delay.map(|delay| format!("each answer is delayed by {} in the app", number::asked(delay))),
    );
    let blocks = if plan.repeat > 1 || plan.sockets.len() > 1 { ", each block on a fresh server" } else { "" };
    let passes = if plan.repeat > 1 { format!(", {} passes", number::count(plan.repeat)) } else { String::new() };
    lines.push(format!("{} in an order of chance (seed {}){passes}{blocks}", runs_of(study), plan.seed));
    lines
}

/// `28 bodies over 2 kinds of socket`.
fn runs_of(study: &BodiesStudy) -> String {
    let (bodies, sockets) = (study.plan.bodies.all().len() as u64, study.plan.sockets.len() as u64);
    let bodies = if bodies == 1 { "1 body".to_owned() } else { format!("{} bodies", number::count(bodies)) };
    match (sockets, study.plan.sockets.first()) {
        (1, Some(socket)) => format!("{bodies} over {socket}"),
        _ => format!("{bodies} over {} kinds of socket", number::count(sockets)),
    }
}

/// What to say where not all that was planned was run.
pub(crate) fn missing_runs(study: &BodiesStudy) -> Option<String> {
    facts::missing_runs(study.runs.len(), study.plan.runs(), study.interrupted)
}
