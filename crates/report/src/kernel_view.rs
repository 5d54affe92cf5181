//! What the kernel's tracepoints tell of each process of the server.

use model::kernel::{KernelView, ProcessWaits};
use model::{Socket, Waits};

use crate::named_runs::NamedRun;
use crate::number::NONE;
use crate::tree::{ColumnBand, DataTable, ReportSection, TableCell, TableColumn, TableRow};

/// A row for each worker of each run that was listened to, of servers on these kinds of socket.
pub(crate) fn section(runs: &[NamedRun<'_>], sockets: &[Socket]) -> Option<ReportSection> {
    let views = runs.iter().filter_map(|NamedRun { name, run }| Some((name, run.kernel.as_ref()?)));
    let new = TableColumn::new;
    let [accept, receive, server] =
        ["accept queue", "receive queue", "in server"].map(|title| ColumnBand::new(title, title));
    let of_wait = |names: &'static [&'static str], band| names.iter().copied().map(move |name| new(name).under(band));
    let columns = [new(""), new("worker"), new("answers")].into_iter();
    let columns = columns
        .chain(of_wait(&["mean", "p50", "p99"], &accept))
        .chain(of_wait(&["mean", "p99"], &receive))
        .chain(of_wait(&["mean", "p50", "p99"], &server))
        .chain([new("CPU wait")]);
    let table =
        DataTable { lead: 2, ..DataTable::of_columns(columns, views.flat_map(|(name, view)| rows(name, view))) };
    let has_tls = sockets.iter().any(|socket| matches!(socket, Socket::Ssl4 | Socket::Ssl6));
    let words = [
        "accept queue: of a connection, until it is accepted; receive queue: of a request, from then or its arrival until it is read",
        "in server: from there to its answer; CPU wait: of a thread, from being ready to running; answers: of the whole run",
        if has_tls { "over TLS connections and threads alone are seen, and no requests" } else { "" },
    ];
    let section = ReportSection::detail("waits by the kernel's tracepoints (BPF), means and percentiles in ms");
    (!table.rows.is_empty()).then(|| section.paragraphs(words).table(table))
}

fn rows(label: &str, view: &KernelView) -> Vec<TableRow> {
    let worked = |process: &&ProcessWaits| process.answers > 0 || process.accept_queue.count > 0;
    let row = |(place, process): (usize, &ProcessWaits)| {
        let mean = |waits: &Waits| TableCell::time(waits.mean());
        let at = |waits: &Waits, quantile| TableCell::time(waits.quantile(quantile));
        let (accept, receive, server) = (&process.accept_queue, &process.receive_queue, &process.in_server);
        TableRow::new([
            if place == 0 { label.into() } else { TableCell::default() },
            process.pid.to_string().into(),
            // Over TLS answers cannot be known.
            if process.answers > 0 { TableCell::count(process.answers) } else { NONE.into() },
            mean(accept),
            at(accept, 0.5),
            at(accept, 0.99),
            mean(receive),
            at(receive, 0.99),
            mean(server),
            at(server, 0.5),
            at(server, 0.99),
            mean(&process.run_queue),
        ])
    };
    view.processes.iter().filter(worked).enumerate().map(row).collect()
}
