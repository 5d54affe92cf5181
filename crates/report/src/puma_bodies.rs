//! The tables of Puma's `response_time_wrk`, as its script printed them, so that a new one can stand next to an old one.
//!
//! The characters and widths are those of that script. Where the script would print a number that the requests do not
//! support, there is a `-`. `Resp Size` is the content of an answer as it was counted; the script's was derived from
//! wrk's rounded output and held what chunks are wrapped in too. Times are ours: nothing is added to them afterwards.

use std::fmt::Write as _;

use model::{BodiesStudy, Body, BodyRun, Nanos, Quantile, Socket, Stop};

use crate::details::{PivotPlace, RunFigure};
use crate::in_words;
use crate::number::{self, or_none};
use crate::text::{band, right};

/// Bars over the rows of a size.
const RULE: usize = 65;

const RATE: RunFigure<BodyRun> =
    RunFigure { title: "req/sec", of: |run| Some(run.run.completed_rate()), shown: |rate| number::fixed(rate, 0) };

const MEDIAN: RunFigure<BodyRun> = RunFigure {
    title: "req 50% times",
    of: |run| milliseconds(run.response_time(0.50)),
    shown: |millis| number::fixed(millis, 3),
};

const fn time(title: &'static str, of: fn(&BodyRun) -> Option<f64>) -> RunFigure<BodyRun> {
    RunFigure { title, of, shown: |millis| number::fixed(millis, 2) }
}

/// What the first table has of a body, and the width of each.
const FIGURES: [(RunFigure<BodyRun>, usize); 7] = [
    (RATE, 7),
    (time("50%", |run| milliseconds(run.response_time(0.50))), 8),
    (time("75%", |run| milliseconds(run.response_time(0.75))), 8),
    (time("90%", |run| milliseconds(run.response_time(0.90))), 8),
    (time("99%", |run| milliseconds(run.response_time(0.99))), 8),
    (time("100%", |run| milliseconds(run.run.max_response_time())), 8),
    (RunFigure { title: "Resp Size", of: BodyRun::content_bytes, shown: number::exact }, 10),
];

fn milliseconds(time: Quantile) -> Option<f64> {
    time.time().map(Nanos::as_millis_f64)
}

/// Both tables of each kind of socket, and what the script says below them.
pub(crate) fn tables(study: &BodiesStudy) -> String {
    let mut text = String::new();
    for socket in &study.plan.sockets {
        if study.plan.sockets.len() > 1 {
            _ = writeln!(text, "{socket}");
        }
        text.push_str(&by_size(study, *socket));
        text.push('\n');
        text.push_str(&pivot(study, *socket));
        text.push('\n');
    }
    // One blank line too many: what follows belongs to the last table.
    text.pop();
    text + &footer(study)
}

fn cell(study: &BodiesStudy, socket: Socket, body: Body, figure: &RunFigure<BodyRun>) -> String {
    or_none(figure.of_body(study, PivotPlace { socket, body }), figure.shown)
}

fn by_size(study: &BodiesStudy, socket: Socket) -> String {
    let mut text = "Type   req/sec    50%     75%     90%     99%    100%  Resp Size\n".to_owned();
    for kilobytes in &study.plan.bodies.kilobytes {
        _ = writeln!(text, "{}{}", "─".repeat(RULE), right(&format!("{kilobytes}kB"), 7));
        for kind in &study.plan.bodies.kinds {
            let body = Body { kilobytes: *kilobytes, kind: *kind };
            let cells = FIGURES.iter().map(|(figure, width)| right(&cell(study, socket, body, figure), *width));
            _ = writeln!(text, "{:<6}{}", kind.name(), cells.collect::<String>());
        }
    }
    text
}

fn pivot(study: &BodiesStudy, socket: Socket) -> String {
    let kinds = &study.plan.bodies.kinds;
    let inner = 8 * kinds.len() - 3;
    let mut text = format!("Body    {}   {}\n", band(RATE.title, inner), band(MEDIAN.title, inner));
    let names: String = kinds.iter().map(|kind| right(kind.name(), 8)).collect();
    _ = writeln!(text, " KB  {names}{names}");
    for kilobytes in &study.plan.bodies.kilobytes {
        let cells = [RATE, MEDIAN].into_iter().flat_map(|figure| {
            kinds.iter().map(move |kind| {
                let body = Body { kilobytes: *kilobytes, kind: *kind };
                right(&cell(study, socket, body, &figure), 8)
            })
        });
        _ = writeln!(text, "{kilobytes:<5}{}", cells.collect::<String>());
    }
    _ = writeln!(text, "{}", "─".repeat(5 + 16 * kinds.len()));
    text
}

/// `wrk -t8 -c16 -d10s` in the script: ours, and what it was started with.
fn footer(study: &BodiesStudy) -> String {
    let plan = &study.plan;
    let total = format!("\n{:>5} Total Time\n", number::minutes(study.total_time));
    let Some(server) = study.server() else { return format!("{}\n{total}", study.command_line) };
    let length = match plan.stream.stop {
        Stop::After(time) => format!(" -D{time}"),
        Stop::RequestsPerConnection(n) => format!(" -R{n}"),
    };
    let (streams, each) = (plan.streams_on(server.slots()), plan.connections_per_stream);
    let connections = number::count_of(plan.connections_on(server.slots()), "connection");
    let mode = if server.cluster { format!("cluster mode -w{}", server.workers) } else { "single mode".to_owned() };
    let threads = server.threads;
    let size = plan.server.threads.map_or_else(|| format!("{threads}:{threads}"), |threads| threads.to_string());
    let binds: Vec<String> = plan.sockets.iter().map(Socket::to_string).collect();
    let mut lines = vec![
        format!("longtail -T{streams} -c{each}{length}: {connections}"),
        study.command_line.clone(),
        format!("Server {mode} -t{size}, bind: {}", binds.join(" ")),
    ];
    let branch = server.git.as_ref().map(|git| git.split(' ').next().unwrap_or(git));
    lines.extend(branch.map(|branch| format!("Puma repo branch {branch}")));
    lines.extend([in_words::server(server), total]);
    lines.join("\n")
}
