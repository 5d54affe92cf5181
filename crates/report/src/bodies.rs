//! The report of a study of bodies: types x sizes x kinds of socket.

use model::{BodiesStudy, Body, BodyRun, Nanos, ServerFacts, Socket};

use crate::facts;
use crate::number;
use crate::pivot::{PivotFigure, of_body};
use crate::run_columns::{self, MARKS, RunColumn, mark, response_times};
use crate::tree::{ColumnBand, DataTable, NamedFact, ReportSection, ReportTree, TableCell, TableColumn, TableRow};
use crate::{Columns, Layout, diagnostics, expectations, kernel_view, named_runs, puma_bodies, server_view, text};

/// What is said of it, its runs in the order of the plan.
pub fn report(study: &BodiesStudy) -> ReportTree {
    let columns = columns(study);
    let rows = study.sorted().into_iter().map(|run| run_columns::row(&columns, run, run.run.judgement.as_ref()));
    let rows = rows.collect();
    let pivots = if study.runs.is_empty() { Vec::new() } else { pivots(study) };
    ReportTree {
        command_line: study.command_line.clone(),
        facts: facts_of(study),
        table: Some(run_columns::table(columns, rows)),
        sections: pivots.into_iter().chain(remarks(study)).collect(),
        glossary: if study.runs.is_empty() { Vec::new() } else { MARKS.to_vec() },
        total_time: format!("total time {}", number::minutes(study.total_time)),
    }
}

/// What is missing, verdicts, errors and warnings, and the server meanwhile.
fn remarks(study: &BodiesStudy) -> impl Iterator<Item = ReportSection> {
    let runs = named_runs::of_bodies(study);
    let sections = [
        facts::missing_runs(study.runs.len(), study.plan.runs(), study.interrupted).map(ReportSection::new),
        expectations::section(&study.plan.thresholds, &runs),
        diagnostics::verdicts(&runs),
        diagnostics::errors(&runs),
        diagnostics::warnings(&study.warnings, &runs),
        server_view::section(&runs),
        kernel_view::section(&runs, &study.plan.sockets),
    ];
    sections.into_iter().flatten()
}

/// The whole report as text; Puma's tables are of all runs.
pub fn whole(study: &BodiesStudy, layout: Layout) -> String {
    if layout.columns == Columns::Puma {
        let remarks: Vec<ReportSection> = remarks(study).collect();
        return format!("{}\n{}", puma_bodies::tables(study), text::sections(&remarks, layout.width));
    }
    text::whole(&report(study), layout.width)
}

/// What was measured, and where.
fn facts_of(study: &BodiesStudy) -> Vec<NamedFact> {
    let server = study.server();
    let name = server
        .map(|server| format!("{}, {}", facts::server_name(server), facts::slots(server, &study.plan.server.kind)));
    let started = study.servers.iter().flat_map(|started| {
        let ServerFacts { url, command_line, .. } = &started.server;
        [format!("{}: {url}", started.socket), format!("  {command_line}")]
    });
    vec![
        NamedFact::key("server", name),
        NamedFact::new("at", started),
        NamedFact::new("machine", [facts::machine(&study.environment, &study.started_at)]),
        NamedFact::key("load", load(study)),
    ]
}

/// The runs' model in words.
fn load(study: &BodiesStudy) -> Vec<String> {
    let plan = &study.plan;
    let placement = study.server().and_then(|server| server.placement.as_ref());
    let stream = facts::stream_in_words(&plan.stream, Some(study.lanes_by), placement, None);
    let mut lines = vec![format!("closed loop, {stream}")];
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

/// The percentiles of the table, as in Puma's script, and their ranks; the maximum stands beside them.
const PERCENTILES: [(f64, u8); 4] = [(0.50, 2), (0.75, 9), (0.90, 8), (0.99, 0)];

/// The columns of the study's table, in order.
fn columns(study: &BodiesStudy) -> Vec<RunColumn<BodyRun>> {
    type C = RunColumn<BodyRun>;
    let times = response_times();
    let answer = ColumnBand::new("bytes an answer", "bytes");
    let server = ColumnBand::new("server", "");
    let rate = |run: &BodyRun| TableCell::number(Some(run.run.completed_rate()), number::rate);
    let memory =
        |run: &BodyRun| TableCell::number(run.server.memory_bytes.map(|bytes| bytes as f64), number::megabytes);
    let mut columns = vec![
        mark(|run: &BodyRun| diagnostics::is_doubtful(&run.run)),
        C::kept("run", 3, |run| TableCell::count(run.run.repeat))
            .meaning("which pass over all of it, each on fresh servers")
            .constant(study.plan.repeat < 2)
            .of_any_run(),
        C::kept("socket", 6, |run| run.socket.to_string().into()).constant(study.plan.sockets.len() < 2).of_any_run(),
        C::kept("KB", 6, |run| TableCell::count(run.body.kilobytes))
            .meaning("size of the content of every answer, 1 KB is 1024 bytes")
            .key("kb")
            .of_any_run(),
        C::kept("type", 6, |run| run.body.kind.name().into())
            .meaning("array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file")
            .of_any_run(),
        C::ranked(5, "conns", 5, |run| TableCell::count(run.run.connections))
            .meaning("connections in total")
            .key("connections")
            .of_any_run(),
        C::kept("req/s", 6, rate)
            .meaning("good answers (2xx, 3xx, of the right length) per second of the measured window")
            .key("rate_per_s"),
        C::ranked(1, "MB/s", 5, |run| TableCell::number(Some(run.content_rate()), number::megabytes))
            .meaning("their content, in million bytes per second")
            .key("content_bytes_per_s"),
    ];
    for (quantile, rank) in PERCENTILES {
        let cell = move |run: &BodyRun| TableCell::time(run.response_time(quantile).time());
        let name = number::percentile(quantile);
        columns.push(C::ranked(rank, &name, 5, cell).under(&times).key(format!("{name}_ms")));
    }
    columns.extend([
        C::ranked(3, "max", 5, |run| TableCell::time(run.run.max_response_time().time())).under(&times).key("max_ms"),
        C::ranked(7, "content", 9, |run| TableCell::number(run.content_bytes(), number::exact))
            .meaning("bytes of content, counted, over whole answers")
            .under(&answer)
            .key("content_bytes"),
        C::ranked(7, "whole", 10, |run| TableCell::number(run.whole_bytes(), number::exact))
            .meaning("the same with heads and what chunks are wrapped in")
            .under(&answer)
            .key("whole_bytes"),
        C::ranked(4, "CPU ms", 7, |run| TableCell::time(run.server_cpu()))
            .meaning(
                "time of all processes of the server on a CPU, an answer (the warm-up in both); from ticks of 10 ms",
            )
            .under(&server)
            .key("server_cpu_ms"),
        C::ranked(4, "MB", 5, memory)
            .meaning("memory of the server after the run, in million bytes, what its processes share counted once")
            .under(&server)
            .key("server_memory_bytes"),
    ]);
    columns.extend(run_columns::endings(|run: &BodyRun| &run.run));
    columns
}

pub(crate) const REQUESTS_A_SECOND: PivotFigure =
    PivotFigure { title: "req/s", of: |run| Some(run.run.completed_rate()), shown: number::rate };
pub(crate) const MEDIAN_MS: PivotFigure = PivotFigure {
    title: "p50, ms",
    of: |run| run.response_time(0.5).time().map(Nanos::as_millis_f64),
    shown: number::of_millis,
};
const MEGABYTES_A_SECOND: PivotFigure =
    PivotFigure { title: "MB/s", of: |run| Some(run.content_rate()), shown: number::megabytes };
/// The figures of a summary, in order.
const FIGURES: [PivotFigure; 3] = [REQUESTS_A_SECOND, MEDIAN_MS, MEGABYTES_A_SECOND];

/// All summaries: for each kind of socket sizes down and types across, and where there are several sockets one with those across.
fn pivots(study: &BodiesStudy) -> Vec<ReportSection> {
    let (bodies, sockets) = (&study.plan.bodies, &study.plan.sockets);
    let kinds: Vec<&str> = bodies.kinds.iter().map(|kind| kind.name()).collect();
    let by_kind = |socket: &Socket| {
        let row = |kilobytes: &u32| {
            let kilobytes = *kilobytes;
            let across =
                bodies.kinds.iter().map(|kind| PivotPlace { socket: *socket, body: Body { kilobytes, kind: *kind } });
            pivot_row(study, vec![TableCell::count(kilobytes)], &across.collect::<Vec<_>>())
        };
        let table = pivot_table(&["KB"], &kinds, bodies.kilobytes.iter().map(row).collect());
        ReportSection::new(format!("over {socket}, by type")).table(table)
    };
    let mut pivots: Vec<ReportSection> = sockets.iter().map(by_kind).collect();
    if sockets.len() > 1 {
        let row = |body: Body| {
            let across: Vec<_> = sockets.iter().map(|socket| PivotPlace { socket: *socket, body }).collect();
            pivot_row(study, vec![TableCell::count(body.kilobytes), body.kind.name().into()], &across)
        };
        let names: Vec<&str> = sockets.iter().map(|socket| socket.name()).collect();
        let table = pivot_table(&["KB", "type"], &names, bodies.all().into_iter().map(row).collect());
        pivots.push(ReportSection::new("by kind of socket").table(table));
    }
    pivots
}

fn pivot_table(lead: &[&str], across: &[&str], rows: Vec<TableRow>) -> DataTable {
    let column = |name: &&str| TableColumn { width: 6, ..TableColumn::new(*name) };
    let figures = FIGURES.iter().flat_map(|figure| {
        let band = ColumnBand::new(figure.title, figure.title);
        across.iter().map(move |name| column(name).under(&band))
    });
    DataTable { columns: lead.iter().map(column).chain(figures).collect(), rows, lead: lead.len() }
}

/// What stands at one place of a row.
struct PivotPlace {
    socket: Socket,
    body: Body,
}

fn pivot_row(study: &BodiesStudy, mut cells: Vec<TableCell>, across: &[PivotPlace]) -> TableRow {
    for figure in &FIGURES {
        let cell = |at: &PivotPlace| TableCell::number(of_body(study, at.socket, at.body, figure), figure.shown);
        cells.extend(across.iter().map(cell));
    }
    TableRow::new(cells)
}
