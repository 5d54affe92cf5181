//! The figures of a watch as text: all of them, or the most important in a line for each sample.

use judge::watch::Diagnosis;
use judge::words::first_sentence;
use report::tree::{DataTable, ReportSection, TableRow};
use report::{Width, number, text};

use crate::WatchBoard;
use crate::board::THREAD_STATES;
use crate::series::Quantity;

/// All figures: of the server, then of each of its processes.
pub fn all_figures(board: &WatchBoard, width: Width) -> String {
    let section = |whose: Option<u32>, title: String| {
        let of_it = board.series.iter().filter(|((other, _), _)| *other == whose);
        let rows = of_it.map(|((_, quantity), series)| {
            let figures = [series.least, series.mean(), series.most, series.last]
                .map(|value| quantity.written(value));
            TableRow::new(std::iter::once(quantity.label().to_owned()).chain(figures))
        });
        ReportSection::new(title)
            .table(DataTable::new(["", "min", "mean", "max", "last"], rows))
            .filled()
    };
    let part = number::percent(board.sampling_cpus());
    let estimate = Diagnosis::of(&board.evidence()).estimate;
    let estimate = estimate.map(|estimate| {
        format!(
            "The times of a request in the answer are an estimate, by Little's law: {estimate}."
        )
    });
    let server = section(None, format!("The server (watching it took {part} % of a CPU)"))
        .map(|server| server.paragraphs(estimate));
    let processes =
        board.living().map(|(pid, title)| section(Some(pid), format!("{pid}: {title}")));
    let sections: Vec<ReportSection> = std::iter::once(server)
        .chain(std::iter::once(thread_states(board)))
        .chain(processes)
        .flatten()
        .collect();
    text::sections(&sections, width)
}

/// What the threads that serve requests were seen in, a row for each process. A thread without a
/// request waits as one does that waits for a lock.
fn thread_states(board: &WatchBoard) -> Option<ReportSection> {
    let rows: Vec<TableRow> = board
        .thread_states
        .iter()
        .map(|(pid, states)| {
            let all = states.seen.iter().sum::<u32>().max(1);
            let share =
                |seen: &u32| number::or_zero(f64::from(*seen) / f64::from(all), number::percent);
            let cells = states.seen.iter().map(share).chain([states.looks.to_string()]);
            TableRow::new(std::iter::once(pid.to_string()).chain(cells))
        })
        .collect();
    let columns = std::iter::once("process").chain(THREAD_STATES).chain(["looks"]);
    if rows.is_empty() {
        return None;
    }
    ReportSection::new("What the threads were seen in, % of them at all looks".to_owned())
        .table(DataTable::new(columns, rows))
        .paragraphs([
            "`time limit`: they sleep, or wait for another thread for a limited time, as for a pool.",
        ])
        .filled()
}

/// The columns of a sample's line, the most important first: a narrow terminal has as many as fit.
const LINE: [(LineFigure, &str); 8] = [
    (LineFigure::Of(Quantity::AcceptQueue), "queue"),
    (LineFigure::Of(Quantity::Connections), "open"),
    (LineFigure::Of(Quantity::BusyThreads), "busy"),
    (LineFigure::Of(Quantity::Backlog), "backlog"),
    (LineFigure::AgeOfReports, "age s"),
    (LineFigure::Of(Quantity::Cpu), "CPUs"),
    (LineFigure::Of(Quantity::RunQueueWait), "wait %"),
    (LineFigure::Of(Quantity::ListenOverflows), "overfl/s"),
];

/// The columns where no control server says how many threads are busy: what the kernel tells in place
/// of it.
const LINE_BY_KERNEL: [(LineFigure, &str); 7] = [
    (LineFigure::Of(Quantity::AcceptQueue), "queue"),
    (LineFigure::Of(Quantity::Connections), "open"),
    (LineFigure::Of(Quantity::RequestsOut), "flight"),
    (LineFigure::Inside, "inside"),
    (LineFigure::Of(Quantity::Cpu), "CPUs"),
    (LineFigure::Of(Quantity::RunQueueWait), "wait %"),
    (LineFigure::Of(Quantity::ListenOverflows), "overfl/s"),
];

/// The columns for this server, the same for the whole watch.
fn line_of(board: &WatchBoard) -> &'static [(LineFigure, &'static str)] {
    if board.is_unasked() { &LINE_BY_KERNEL } else { &LINE }
}

/// A figure of a sample's line.
#[derive(Clone, Copy)]
enum LineFigure {
    /// What the last sample found.
    Of(Quantity),
    /// Requests beyond the threads, which wait inside.
    Inside,
    /// How old the oldest of the workers' reports is that `busy` and `backlog` are from. The other
    /// figures are new in each line.
    AgeOfReports,
}

/// Characters of the time, and of each figure.
const TIME: usize = 8;
const FIGURE: usize = 9;

/// The head over the lines, and which columns a narrow terminal has no room for.
pub fn sample_line_head(board: &WatchBoard, width: Width) -> String {
    let names = || line_of(board).iter().map(|(_, name)| (*name).to_owned());
    let mut head = columns("s", names(), width);
    let left: Vec<String> = names().skip(columns_in(width)).collect();
    if !left.is_empty() {
        report::wrap(&mut head, width, "  ", &format!("(no room for: {})", left.join(", ")));
    }
    head
}

/// The last sample in a line.
pub fn sample_line(board: &WatchBoard, width: Width) -> String {
    let cells = line_of(board).iter().map(|(figure, _)| match figure {
        LineFigure::Of(quantity) => quantity.written(board.last(None, *quantity)),
        LineFigure::Inside => number::or_none(board.inside(), |inside| number::fixed(inside, 0)),
        LineFigure::AgeOfReports => {
            let ages = board.evidence().workers.into_iter().filter_map(|it| it.staleness_ns);
            number::or_none(ages.max(), |age| number::fixed(age.as_secs_f64().floor(), 0))
        }
    });
    columns(&number::fixed(board.seen.watched.as_secs_f64(), 1), cells, width)
}

/// Where a watch stands, for whoever waits for its answer: what it would say now.
pub fn stands_at(board: &WatchBoard) -> Option<String> {
    Diagnosis::of(&board.evidence()).answer.into_iter().next()
}

/// What a finished watch has found, in short: how long a request waits and for what, why, without the
/// evidence, and the first thing to try; else what waits.
pub fn in_short(board: &WatchBoard) -> Option<String> {
    short(&Diagnosis::of(&board.evidence()))
}

fn short(found: &Diagnosis) -> Option<String> {
    /// Fewer words than these say nothing without what follows: `Not known: …`.
    const A_CONCLUSION: usize = 5;
    let why = found.why.as_deref().map(|why| {
        let first = first_sentence(why).first;
        match first.split_once(": ") {
            Some((conclusion, _)) if conclusion.split(' ').count() >= A_CONCLUSION => {
                format!("{conclusion}.")
            }
            Some(_) | None => first.to_owned(),
        }
    });
    // One remedy of two would be read as the only one.
    let is_either = found.tries.first().is_some_and(|first| first.starts_with("If it is a pool:"));
    let shown = if is_either { 2 } else { 1 };
    let attempts: Vec<&str> = found.tries.iter().take(shown).map(String::as_str).collect();
    let attempt = (!attempts.is_empty()).then(|| format!("Try: {}", attempts.join(" ")));
    let conclusion = found.conclusion.clone().or(why);
    let said: Vec<String> = conclusion.into_iter().chain(found.how_long.clone()).collect();
    if said.is_empty() {
        return found.answer.first().cloned();
    }
    Some(said.into_iter().chain(attempt).collect::<Vec<_>>().join(" "))
}

/// For how many figures there is room beside the time.
fn columns_in(width: Width) -> usize {
    width.columns().map_or(usize::MAX, |columns| (columns - TIME) / FIGURE)
}

fn columns(first: &str, cells: impl Iterator<Item = String>, width: Width) -> String {
    let cells: Vec<String> =
        cells.take(columns_in(width)).map(|cell| format!("{cell:>FIGURE$}")).collect();
    format!("{first:>TIME$}{}\n", cells.concat())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use model::Nanos;
    use probe::host::HostCounters;
    use probe::processes::{CpuShare, ProcessSample};
    use probe::sampler::{Observation, ServerSample};
    use probe::sockets::ServerSockets;
    use probe::threads::{PoolLook, ThreadWaits};

    use super::*;
    use crate::answer::table;

    /// A worker that has used this many tenths of a second of CPU.
    fn member(pid: u32, tenths: u64, connections: Option<u32>) -> ProcessSample {
        let nanos = tenths * 100_000_000;
        ProcessSample {
            pid,
            title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
            used: Some(CpuShare { cpu: nanos, children: 0, run_queue: nanos / 10, threads: 8 }),
            memory_bytes: Some(40 << 20),
            connections,
            requests_out: None,
        }
    }

    fn sample<const N: usize>(seconds: u64, processes: [ProcessSample; N]) -> Observation {
        let open = 12 + seconds as u32;
        Observation::Server(Box::new(ServerSample {
            at: Nanos::from_secs(seconds),
            sockets: Some(ServerSockets {
                open,
                accepted: 10,
                unread: Some(2),
                ..ServerSockets::default()
            }),
            processes: processes.into(),
            host: HostCounters::default(),
            cpu: Nanos::from_millis(2),
            ..ServerSample::default()
        }))
    }

    fn queue(millis: u64, length: u32) -> Observation {
        let queue =
            ServerSockets { accept_queue: length, limit: Some(1024), ..ServerSockets::default() };
        Observation::Queue { at: Nanos::from_millis(millis), queue: Some(queue) }
    }

    fn said(seconds: u64, text: &str) -> Observation {
        let stats = probe::puma_stats::parse(text.as_bytes());
        let at = Nanos::from_secs(seconds);
        Observation::Statistics { at, wall: Nanos::from_secs(60) + at, cpu: Nanos(0), stats }
    }

    const BOTH_WORKERS: &str = r#"{"workers":2,"worker_status":[
        {"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":0,"running":5,"pool_capacity":0,"max_threads":5}},
        {"pid":12,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":1,"running":5,"pool_capacity":2,"max_threads":5}}]}"#;
    const ANOTHER_WORKER: &str = r#"{"workers":1,"worker_status":[
        {"pid":13,"booted":true,"last_status":{"backlog":0,"running":5}}]}"#;
    const SINGLE: &str = r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#;

    /// Some observations, which continue those before them of the same server.
    type Step = (&'static str, Vec<Observation>);

    fn a_cluster() -> Vec<Step> {
        vec![
            ("nothing", vec![]),
            (
                "one look tells no rate",
                vec![sample(0, [member(11, 3, Some(6)), member(12, 0, Some(4))])],
            ),
            (
                "the workers are the whole: 0.7 s of CPU in 3 s",
                vec![
                    sample(1, [member(11, 8, Some(6)), member(12, 1, Some(4))]),
                    sample(3, [member(11, 9, Some(7)), member(12, 1, Some(2))]),
                ],
            ),
        ]
    }

    fn a_cluster_with_statistics() -> Vec<Step> {
        vec![
            (
                "a queue and statistics; connections of one worker are not seen",
                vec![
                    queue(0, 2),
                    sample(0, [member(11, 0, Some(7)), member(12, 0, None)]),
                    queue(500, 6),
                    said(2, BOTH_WORKERS),
                    sample(2, [member(11, 30, Some(7)), member(12, 10, None)]),
                ],
            ),
            ("without new statistics their figures are absent", vec![said(3, "{")]),
            (
                "an ended worker has no figures, though Puma still names it; another has a rate \
                 from its second look on",
                vec![
                    sample(4, [member(11, 34, Some(6)), member(13, 0, Some(4))]),
                    said(4, BOTH_WORKERS),
                ],
            ),
            (
                "Puma does not name it any more",
                vec![said(5, ANOTHER_WORKER), sample(5, [member(13, 1, Some(4))])],
            ),
        ]
    }

    fn an_unreadable_process() -> Vec<Step> {
        let unread = || ProcessSample { used: None, connections: None, ..member(11, 0, None) };
        vec![("what cannot be read is no zero", vec![sample(0, [unread()]), sample(1, [unread()])])]
    }

    fn statistics_of_another_server() -> Vec<Step> {
        vec![
            (
                "another server's statistics are not taken",
                vec![sample(0, [member(21, 0, None), member(22, 0, None)]), said(2, BOTH_WORKERS)],
            ),
            (
                "they are taken where they are ours",
                vec![sample(1, [member(11, 0, None)]), said(3, BOTH_WORKERS)],
            ),
        ]
    }

    fn a_single_process() -> Vec<Step> {
        vec![
            (
                "in single mode the threads are the only process's",
                vec![said(1, SINGLE), sample(0, [member(11, 0, None)]), said(1, SINGLE)],
            ),
            (
                "with two processes it is not known whose the threads are",
                vec![sample(1, [member(11, 0, None), member(12, 0, None)]), said(1, SINGLE)],
            ),
        ]
    }

    /// The figures and the workers after each step, in `tests/golden/figures.txt`: the workers add
    /// up to the whole, what is absent is not 0, and an ended worker has no present figures.
    #[test]
    fn figures_of_observations_are_as_in_the_golden_file() {
        let servers = [
            a_cluster(),
            a_cluster_with_statistics(),
            an_unreadable_process(),
            statistics_of_another_server(),
            a_single_process(),
        ];
        let mut text = String::new();
        for steps in servers {
            let mut board = WatchBoard::default();
            for (name, observations) in steps {
                for seen in observations {
                    board.take(seen);
                }
                let _ = writeln!(text, "## {name}\n{}", described(&board));
            }
        }
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/figures.txt");
        testkit::golden::expect(&golden, &text);
    }

    #[test]
    fn without_a_control_server_a_line_has_what_the_kernel_tells() {
        let head = |is_asked| {
            let board = WatchBoard::of(&crate::target::tests::target(), is_asked);
            sample_line_head(&board, Width::ANY)
        };
        assert!(head(false).contains("flight   inside") && !head(false).contains("backlog"));
        assert!(head(true).contains("backlog") && !head(true).contains("flight"));
    }

    #[test]
    fn in_short_there_is_the_wait_for_a_pool_and_what_to_change() {
        let said = |name: &str| {
            let seen = crate::situations::situations().into_iter().find(|(other, _)| other == name);
            short(&Diagnosis::of(&seen.unwrap().1)).unwrap()
        };
        let pool = said("the same, and others end their waits before their time is up");
        for part in [
            "for its turn",
            "Probably a pool of",
            "Try: 5 connections in each worker, as many as threads",
        ] {
            assert!(pool.contains(part), "{part}: {pool}");
        }
        let unknown = said("connections wait though threads are free");
        assert!(unknown.contains("Not clear: by the workers' last reports"), "{unknown}");
    }

    #[test]
    fn thread_states_are_shares_of_all_looks() {
        let mut board = WatchBoard::default();
        for (lock, timed, socket) in [(1, 4, 0), (0, 3, 2)] {
            let waits = ThreadWaits { lock, timed, socket, ..ThreadWaits::default() };
            let pool = PoolLook { pid: 7, threads: 5, waits: Some(waits), ..PoolLook::default() };
            board.take(Observation::Threads { pools: vec![pool] });
        }
        let text = all_figures(&board, Width::ANY);
        let row = text.lines().find(|line| line.starts_with("  7 ")).unwrap();
        let row = row.split_whitespace().collect::<Vec<_>>();
        assert_eq!(row, ["7", "10.0", "0", "70.0", "20.0", "0", "0", "2"], "{text}");
    }

    #[test]
    fn columns_that_leave_a_narrow_line_are_named() {
        let board = WatchBoard::of(&crate::target::tests::target(), true);
        let head = |columns| sample_line_head(&board, Width::of(columns));
        assert!(head(80).ends_with(" overfl/s\n") && !head(80).contains("no room"), "{}", head(80));
        assert!(
            head(70).ends_with("    CPUs\n  (no room for: wait %, overfl/s)\n"),
            "{}",
            head(70)
        );
    }

    fn described(board: &WatchBoard) -> String {
        let seen = board.evidence();
        let why = seen.no_statistics.as_ref();
        let why = why.map(|why| format!("  no statistics: {why}\n")).unwrap_or_default();
        let lines = [sample_line_head(board, Width::ANY), sample_line(board, Width::ANY)].concat();
        format!(
            "{}\n{why}{lines}{}",
            table(&seen, Width::ANY).join("\n"),
            all_figures(board, Width::ANY)
        )
    }
}
