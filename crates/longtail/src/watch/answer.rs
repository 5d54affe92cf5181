//! The output of a watch: its answer as text (at most 30 lines of 100 columns), all its figures, a
//! line a sample, and JSON (docs/FORMAT.md).

use judge::watch::{Diagnosis, WatchedWorker};
use model::{Limit, Nanos};
use report::tree::{DataTable, ReportSection, TableRow};
use report::{Width, number, text, wrap};
use serde_json::{Value, json};

use super::board::WatchBoard;
use super::series::{Quantity, QuantitySeries};
use super::{StatisticsSource, WatchEnd, WatchEvidence, WatchTarget};

const COLUMNS: usize = 100;
/// The shape of the JSON; one that an old reader would misunderstand gets the next.
const SCHEMA: u32 = 3;
/// Rows of workers; of more the rest is one row.
const MOST_WORKERS: usize = 8;

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerLine {
    pub(crate) text: String,
    /// Whether it is what was asked, and not the evidence.
    pub(crate) is_bold: bool,
}

impl AnswerLine {
    pub(crate) fn plain(text: impl Into<String>) -> AnswerLine {
        AnswerLine { text: text.into(), is_bold: false }
    }
}

/// The lines of the answer; `end` is absent while the watch goes on.
pub(crate) fn answer(
    target: &WatchTarget,
    source: Option<&StatisticsSource>,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
) -> Vec<AnswerLine> {
    let Diagnosis { answer, since, why, tries, .. } = Diagnosis::of(seen);
    let mut lines = Vec::new();
    let mut put_line = |is_bold, before: &str, text: &str| {
        let mut wrapped = String::new();
        wrap(&mut wrapped, Width::of(COLUMNS), before, text);
        lines.extend(wrapped.lines().map(|line| AnswerLine { is_bold, ..AnswerLine::plain(line) }));
    };
    put_line(false, "", &head(target, seen));
    put_line(false, "", "");
    for line in &answer {
        put_line(true, "  ", line);
    }
    put_line(false, "", "");
    for line in &table(seen) {
        put_line(false, "", line);
    }
    if let Some(why) = not_visible(seen).filter(|_| seen.busy().is_none()) {
        put_line(false, "  threads       ", &why);
    }
    seen.not_visible.iter().for_each(|line| put_line(false, "  not visible   ", line));
    put_line(false, "", "");
    let labels =
        ["  Since  ", "  Why    ", "  Try    "].into_iter().chain(std::iter::repeat("         "));
    let lines_of = [since, why].into_iter().chain(tries.into_iter().map(Some));
    for (label, text) in labels.zip(lines_of) {
        if let Some(text) = text {
            put_line(false, label, &text);
        }
    }
    put_line(false, "  ", &footer(source, seen, end));
    lines
}

/// `Puma 5.6.5 on 127.0.0.1:9292 · 2 workers x 5 threads · up 3 min · 99 req/s`
fn head(target: &WatchTarget, seen: &WatchEvidence) -> String {
    let name = match (&seen.version, &seen.program) {
        (Some(version), _) => format!("Puma {version}"),
        (None, _) if seen.is_puma => "Puma".to_owned(),
        (None, Some(program)) => program.clone(),
        (None, None) => "A server".to_owned(),
    };
    let workers = number::count_of(seen.workers.len() as u64, "worker");
    let threads = seen.workers.first().and_then(|worker| worker.threads);
    let is_even = seen.workers.iter().all(|worker| worker.threads == threads);
    let size = match threads.map(|threads| number::count_of(threads, "thread")) {
        Some(threads) if seen.is_cluster && is_even => Some(format!("{workers} x {threads}")),
        _ if seen.is_cluster => Some(workers),
        threads => threads.map(|threads| format!("single mode, {threads}")),
    };
    let rate = seen.rate.map(|rate| {
        let ago = rate.age.filter(|_| rate.is_rough).map(|age| age.0 / 1_000_000_000);
        let span = ago
            .map(|to| format!(" ({:.0} to {to} s ago)", to as f64 + rate.seconds))
            .unwrap_or_default();
        format!("{} req/s{span}", rate.in_words())
    });
    let rate = rate.or_else(|| seen.busy().map(|_| "req/s not known yet".to_owned()));
    let up = seen.age.map(|age| format!("up {}", rough(age)));
    let connect = seen.connect.map(|took| format!("connect {}", number::time(took)));
    let parts = [Some(format!("{name} on {}", target.place())), size, up, rate, connect];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `41 s`, `3 min`, `5 h`, `12 days`
fn rough(age: Nanos) -> String {
    match age.0 / 1_000_000_000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

const HEADS: [&str; 7] = ["", "threads", "backlog", "connections", "CPU", "memory", "statistics"];

/// A row a worker, without columns of which nothing is known, and below them the accept queue.
fn table(seen: &WatchEvidence) -> Vec<String> {
    let shown =
        if seen.workers.len() > MOST_WORKERS + 1 { MOST_WORKERS } else { seen.workers.len() };
    let mut rows: Vec<[String; 7]> = seen.workers[..shown].iter().map(cells).collect();
    if let rest @ [_, ..] = &seen.workers[shown..] {
        rows.push(cells(&sum(rest)));
    }
    let is_known = |at: &usize| rows.iter().any(|row| row[*at] != number::NONE);
    let columns: Vec<usize> = (0..HEADS.len()).filter(is_known).collect();
    let cells_of = |row: &[String; 7]| TableRow::new(columns.iter().map(|at| row[*at].clone()));
    let table = DataTable::new(columns.iter().map(|at| HEADS[*at]), rows.iter().map(cells_of));
    let table = text::sections(&[ReportSection::new("").table(table)], Width::ANY);
    let mut lines: Vec<String> = table.lines().map(|line| format!("  {line}")).collect();
    if let Some(waiting) = seen.in_kernel() {
        let of = seen.queue_limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
        let most = seen.queue_most.filter(|most| *most > f64::from(waiting));
        let most =
            most.map(|most| format!(", at most {}", number::fixed(most, 0))).unwrap_or_default();
        let overflow = match seen.overflows {
            None => String::new(),
            Some(0.0) => "; no overflow".to_owned(),
            Some(n) => format!("; {} (all servers here)", number::count_of(n as u64, "overflow")),
        };
        lines.push(format!("  accept queue  {waiting}{of}{most}{overflow}"));
    }
    lines
}

fn cells(worker: &WatchedWorker) -> [String; 7] {
    let threads = match (worker.is_gone, worker.is_booting, worker.busy_threads, worker.threads) {
        (true, ..) => "ended".to_owned(),
        (_, true, ..) => "booting".to_owned(),
        (_, _, Some(busy), Some(all)) => format!("{busy} / {all}"),
        (_, _, None, Some(all)) => format!("{all}"),
        _ => number::NONE.to_owned(),
    };
    [
        // As wide as `accept queue`, which is below.
        format!("{:12}", worker.name),
        threads,
        number::or_none(worker.backlog, |n| n.to_string()),
        number::or_none(worker.connections, |n| number::fixed(n, 0)),
        number::or_none(worker.cpu, |cpu| format!("{} %", number::fixed(cpu * 100.0, 0))),
        number::or_none(worker.memory_bytes, number::bytes),
        number::or_none(worker.staleness_ns, |age| match age.0 / 1_000_000_000 {
            0 => "now".to_owned(),
            seconds => format!("{seconds} s old"),
        }),
    ]
}

/// Many workers as one.
fn sum(workers: &[WatchedWorker]) -> WatchedWorker {
    let count =
        |figure: fn(&WatchedWorker) -> Option<u32>| workers.iter().map(figure).sum::<Option<u32>>();
    let total =
        |figure: fn(&WatchedWorker) -> Option<f64>| workers.iter().map(figure).sum::<Option<f64>>();
    WatchedWorker {
        name: format!("{} more", workers.len()),
        threads: count(|worker| worker.threads),
        io_threads: count(|worker| worker.io_threads),
        busy_threads: count(|worker| worker.busy_threads),
        backlog: count(|worker| worker.backlog),
        connections: total(|worker| worker.connections),
        cpu: total(|worker| worker.cpu),
        memory_bytes: total(|worker| worker.memory_bytes),
        staleness_ns: workers.iter().filter_map(|worker| worker.staleness_ns).max(),
        ..WatchedWorker::default()
    }
}

/// Why nothing is known of the threads, and how it becomes known.
fn not_visible(seen: &WatchEvidence) -> Option<String> {
    let why = match seen.no_statistics.as_deref()? {
        "" if seen.workers.is_empty() => "which server it is cannot be seen by this user",
        "" if seen.is_puma => {
            "start Puma with `state_path \"tmp/puma.state\"` and `activate_control_app` in config/puma.rb, then restart, or give --state FILE"
        }
        "" => "of a server that is no Puma, nobody says which threads are busy",
        why => why,
    };
    Some(format!("which are busy is not visible: {why}"))
}

/// How long it was watched, and what that does to the server.
fn footer(
    source: Option<&StatisticsSource>,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
) -> String {
    let watched = match end {
        None => String::new(),
        Some(WatchEnd::User) => {
            format!("Watched for {}, until it was ended. ", number::length(seen.watched))
        }
        Some(_) => format!("Watched for {}. ", number::length(seen.watched)),
    };
    let sends = if seen.is_elsewhere {
        "Connects once a second; sends no requests"
    } else {
        "Sends no requests"
    };
    let resets = seen.major().is_some_and(|major| major >= 7);
    let resets = if resets { ", which resets backlog_max and reactor_max" } else { "" };
    let reads =
        source.map(|source| format!("; reads Puma's statistics ({}){resets}", source.shown));
    format!("{watched}{sends}{}.", reads.unwrap_or_default())
}

/// All figures: of the server, then of each of its processes.
pub(crate) fn all_figures(board: &WatchBoard) -> String {
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
    let part = board.sampling_cpu().as_secs_f64() / board.seen.watched.as_secs_f64().max(1e-9);
    let server =
        section(None, format!("The server (sampling took {} % of one CPU)", number::percent(part)));
    let processes =
        board.living().map(|(pid, title)| section(Some(pid), format!("{pid}: {title}")));
    let sections: Vec<ReportSection> = std::iter::once(server).chain(processes).flatten().collect();
    text::sections(&sections, Width::of(COLUMNS))
}

/// The columns of a line a sample.
const LINE: [(Quantity, &str); 7] = [
    (Quantity::AcceptQueue, "queue"),
    (Quantity::Connections, "open"),
    (Quantity::BusyThreads, "busy"),
    (Quantity::Backlog, "backlog"),
    (Quantity::Cpu, "CPU %"),
    (Quantity::RunQueueWait, "wait %"),
    (Quantity::ListenOverflows, "overfl/s"),
];

/// The head over the lines.
pub(crate) fn line_head() -> String {
    columns("s", LINE.iter().map(|(_, name)| (*name).to_owned()))
}

/// The last sample in a line.
pub(crate) fn line(board: &WatchBoard) -> String {
    let cells = LINE.iter().map(|(quantity, _)| quantity.written(board.last(None, *quantity)));
    columns(&number::fixed(board.seen.watched.as_secs_f64(), 1), cells)
}

fn columns(first: &str, cells: impl Iterator<Item = String>) -> String {
    format!("{first:>8}{}\n", cells.map(|cell| format!("{cell:>10}")).collect::<Vec<_>>().concat())
}

/// The answer with its evidence, and with all figures where there is a board; `end` is absent while
/// the watch goes on.
pub(crate) fn watch_json(
    target: &WatchTarget,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
    board: Option<&WatchBoard>,
) -> Value {
    let places: Vec<String> = target.places.iter().map(model::Endpoint::address).collect();
    let found = Diagnosis::of(seen);
    let trend = seen.span.and_then(|span| span.trend);
    let trend_name = |trend: f64| match trend {
        0.0 => "steady",
        _ if trend > 0.0 => "grows",
        _ => "shrinks",
    };
    let mut all = json!({
        "kind": "watch",
        "schema": SCHEMA,
        "longtail_version": env!("CARGO_PKG_VERSION"),
        "listens_on": places,
        "ended": end,
        "watched_ns": seen.watched,
        "answer": found.answer,
        "limit": found.limit.as_ref().map(limit_name),
        "limit_may_be": found.guess.as_ref().map(limit_name),
        "since": found.since,
        "why": found.why,
        "try": found.tries,
        "puma_version": seen.version,
        "is_puma": seen.is_puma,
        "age_ns": seen.age,
        "threads": seen.slots(),
        "busy_threads": seen.busy(),
        "waiting_inside": seen.inside(),
        "waiting_inside_by_kernel": seen.inside_by_kernel(),
        "waiting_in_accept_queue": seen.in_kernel(),
        "waiting_since_ns": seen.span.map(|span| span.length),
        "waits_from_start": seen.span.map(|span| span.is_from_start),
        "trend": trend.map(trend_name),
        "change_per_s": trend.filter(|trend| *trend != 0.0),
        "wait_estimate_ns": found.wait,
        "requests_per_s": seen.rate.map(|rate| rate.per_second),
        "requests_per_s_is_rough": seen.rate.map(|rate| rate.is_rough),
        "accept_queue_limit": seen.queue_limit,
        "accept_queue_most": seen.queue_most,
        "listen_overflows": seen.overflows,
        "open_connections": seen.connections,
        "requests_out": seen.requests_out(),
        "requests_out_at_most": seen.requests_out_at_most(),
        "cpu": seen.cpu,
        "cpus": seen.cpus,
        "busy_cpus": seen.busy_cpus,
        "cpu_wait_share": seen.cpu_wait_share(),
        "workers": seen.workers,
        "no_statistics": seen.no_statistics,
        "not_visible": seen.not_visible,
    });
    if let Some(board) = board {
        all["sampling_cpu_ns"] = json!(board.sampling_cpu());
        all["processes"] =
            board.living().map(|(pid, title)| json!({ "pid": pid, "title": title })).collect();
        let figures = board.series.iter().map(|((whose, quantity), series)| {
            let QuantitySeries { least, most, last, .. } = series;
            json!({ "pid": whose, "name": quantity, "min": least, "mean": series.mean(), "max": most, "last": last })
        });
        all["figures"] = figures.collect();
    }
    all
}

/// As a study's `limit` names it.
fn limit_name(limit: &Limit) -> Value {
    serde_json::to_value(limit).map_or(Value::Null, |value| value["limit"].clone())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use probe::host::HostCounters;
    use probe::processes::{CpuShare, ProcessSample};
    use probe::sampler::{Observation, ServerSample};
    use probe::sockets::ServerSockets;

    use super::*;
    use crate::watch::situations::situations;
    use crate::watch::target::tests::target;

    fn expect(golden: &str, text: &str) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        testkit::golden::expect(&here.join(golden), text);
    }

    fn situation(name: &str) -> WatchEvidence {
        situations().into_iter().find(|(other, _)| other == name).unwrap().1
    }

    fn lines(seen: &WatchEvidence, end: Option<WatchEnd>) -> Vec<String> {
        let control = model::ControlServer {
            address: model::Endpoint::Unix("/tmp/c.sock".into()),
            token: String::new(),
        };
        let source = StatisticsSource { control, shown: "tmp/puma.state".to_owned() };
        let source = Some(source).filter(|_| seen.no_statistics.is_none());
        answer(&target(), source.as_ref(), seen, end).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_answer_is_as_the_golden_file() {
        let seen = WatchEvidence { age: Some(Nanos::from_secs(200)), ..situations().remove(0).1 };
        expect("watch_answer.txt", &(lines(&seen, Some(WatchEnd::Time)).join("\n") + "\n"));
        expect(
            "watch_answer_blind.txt",
            &(lines(&situation("no state file"), None).join("\n") + "\n"),
        );
    }

    #[test]
    fn any_answer_fits_thirty_lines_of_a_hundred_columns() {
        let mut many = situation("the server has ended");
        let worker = |index| WatchedWorker {
            name: format!("worker {index}"),
            backlog: Some(index),
            ..many.workers[0].clone()
        };
        many.workers = (0..64).map(worker).collect();
        (many.queue, many.overflows, many.version) =
            (Some(1024.0), Some(12.0), Some("7.1.0".to_owned()));
        let others = situations().into_iter().map(|(_, seen)| seen);
        for seen in others.chain([many, WatchEvidence::default()]) {
            let lines = lines(&seen, Some(WatchEnd::User));
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(lines.len() <= 30 && widest <= Some(COLUMNS), "{}", lines.join("\n"));
        }
    }

    #[test]
    fn rows_of_many_workers_are_summed_up() {
        let workers = situation("a worker has free threads beside one that is behind").workers;
        let rest = sum(&workers);
        assert_eq!(
            (rest.busy_threads, rest.threads, rest.backlog, rest.cpu),
            (Some(7), Some(10), Some(13), Some(0.7))
        );
        let unknown = sum(&[workers[0].clone(), WatchedWorker::default()]);
        assert_eq!((unknown.busy_threads, unknown.cpu), (None, None), "absent is not 0");
    }

    #[test]
    fn only_puma_seven_and_later_resets_its_maxima() {
        for (version, resets) in [("6.6.1", false), ("7.0.0", true), ("8.0.2", true)] {
            let text = lines(
                &WatchEvidence { version: Some(version.to_owned()), ..situations().remove(0).1 },
                None,
            )
            .join(" ");
            assert_eq!(
                text.contains("(tmp/puma.state), which resets"),
                resets,
                "{version}: {text}"
            );
        }
        assert!(lines(&situation("no state file"), None).join(" ").ends_with("Sends no requests."));
    }

    #[test]
    fn an_age_is_rough() {
        let ages = [41, 119, 200, 7_300, 200_000].map(|seconds| rough(Nanos::from_secs(seconds)));
        assert_eq!(ages, ["41 s", "119 s", "3 min", "2 h", "2 days"]);
    }

    /// A worker that has used so many tenths of a second of CPU.
    fn member(pid: u32, tenths: u64, connections: Option<u32>) -> ProcessSample {
        let nanos = tenths * 100_000_000;
        ProcessSample {
            pid,
            title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
            used: Some(CpuShare { cpu: nanos, run_queue: nanos / 10, threads: 8 }),
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

    /// The figures and the workers after each of these, in `tests/golden/watch_figures.txt`: the
    /// workers are the whole, what is absent is no zero, and what ends leaves nothing of now.
    #[test]
    fn what_is_observed_is_as_the_golden_file() {
        let both = |seconds| {
            said(
                seconds,
                r#"{"workers":2,"worker_status":[
                {"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
                 "last_status":{"backlog":0,"running":5,"pool_capacity":0,"max_threads":5}},
                {"pid":12,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
                 "last_status":{"backlog":1,"running":5,"pool_capacity":2,"max_threads":5}}]}"#,
            )
        };
        let other = r#"{"workers":1,"worker_status":[{"pid":13,"booted":true,"last_status":{"backlog":0,"running":5}}]}"#;
        let single = || said(1, r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#);
        let unread = || ProcessSample { used: None, connections: None, ..member(11, 0, None) };
        let cases = [
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
            ("", vec![]),
            (
                "a queue and statistics; connections of one worker are not seen",
                vec![
                    queue(0, 2),
                    sample(0, [member(11, 0, Some(7)), member(12, 0, None)]),
                    queue(500, 6),
                    both(2),
                    sample(2, [member(11, 30, Some(7)), member(12, 10, None)]),
                ],
            ),
            ("statistics that do not come leave nothing of now", vec![said(3, "{")]),
            (
                "of a worker that has ended nothing is left but that Puma names it; another has a rate from its second look on",
                vec![sample(4, [member(11, 34, Some(6)), member(13, 0, Some(4))]), both(4)],
            ),
            (
                "Puma does not name it any more",
                vec![said(5, other), sample(5, [member(13, 1, Some(4))])],
            ),
            ("", vec![]),
            ("what cannot be read is no zero", vec![sample(0, [unread()]), sample(1, [unread()])]),
            ("", vec![]),
            (
                "another server's statistics are not taken",
                vec![sample(0, [member(21, 0, None), member(22, 0, None)]), both(2)],
            ),
            ("they are taken where they are ours", vec![sample(1, [member(11, 0, None)]), both(3)]),
            ("", vec![]),
            (
                "in single mode the threads are the only process's",
                vec![single(), sample(0, [member(11, 0, None)]), single()],
            ),
            (
                "whose they are is not known",
                vec![sample(1, [member(11, 0, None), member(12, 0, None)]), single()],
            ),
        ];
        let (mut board, mut text) = (WatchBoard::default(), String::new());
        for (name, observations) in cases {
            if name.is_empty() {
                board = WatchBoard::default();
                continue;
            }
            for seen in observations {
                board.take(seen);
            }
            let seen = board.evidence();
            let why = seen
                .no_statistics
                .as_ref()
                .map(|why| format!("  no statistics: {why}\n"))
                .unwrap_or_default();
            let lines = [line_head(), line(&board)].concat();
            let figures = all_figures(&board);
            let _ = writeln!(text, "## {name}\n{}\n{why}{lines}{figures}", table(&seen).join("\n"));
        }
        expect("watch_figures.txt", &text);
    }
}
