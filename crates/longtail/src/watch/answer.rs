//! The answer of a watch as text: at most 30 lines of 100 columns, the same on a terminal and in a pipe.

use model::Nanos;
use report::tree::{DataTable, ReportSection, TableRow};
use report::{Width, number, text, wrap};

use super::diagnosis::{self, WatchLimit};
use super::evidence::{WatchEvidence, WatchedWorker};
use super::{StatisticsSource, WatchEnd, WatchTarget};

pub(super) const COLUMNS: usize = 100;
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
    let limit = WatchLimit::of(seen);
    let mut lines = Vec::new();
    let mut put_line = |is_bold, before: &str, text: &str| {
        let mut wrapped = String::new();
        wrap(&mut wrapped, Width::of(COLUMNS), before, text);
        lines.extend(wrapped.lines().map(|line| AnswerLine { is_bold, ..AnswerLine::plain(line) }));
    };
    put_line(false, "", &head(target, seen));
    put_line(false, "", "");
    for line in &diagnosis::answer(seen) {
        put_line(true, "  ", line);
    }
    put_line(false, "", "");
    for line in &table(seen) {
        put_line(false, "", line);
    }
    if let Some(why) = not_visible(seen).filter(|_| seen.slots().is_none()) {
        put_line(false, "  threads       ", &why);
    }
    for line in &seen.not_visible {
        put_line(false, "  not visible   ", line);
    }
    let labelled = [("  Since  ", diagnosis::since(seen)), ("  Why    ", diagnosis::why(seen, limit))];
    put_line(false, "", "");
    for (label, text) in labelled {
        if let Some(text) = text {
            put_line(false, label, &text);
        }
    }
    for (number, attempt) in diagnosis::attempts(seen, limit).iter().enumerate() {
        put_line(false, if number == 0 { "  Try    " } else { "         " }, attempt);
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
    let size = match seen.workers.first().and_then(|worker| worker.threads) {
        Some(threads) if seen.is_cluster && seen.workers.iter().all(|worker| worker.threads == Some(threads)) => {
            Some(format!(
                "{} x {}",
                number::count_of(seen.workers.len() as u64, "worker"),
                number::count_of(threads, "thread")
            ))
        }
        _ if seen.is_cluster => Some(number::count_of(seen.workers.len() as u64, "worker")),
        Some(threads) => Some(format!("single mode, {}", number::count_of(threads, "thread"))),
        None => None,
    };
    let rate = seen.rate.map(|rate| {
        let ago = rate.age.filter(|_| rate.is_rough).map(|age| age.0 / 1_000_000_000);
        let span = ago.map(|to| format!(" ({:.0} to {to} s ago)", to as f64 + rate.seconds)).unwrap_or_default();
        format!("{} req/s{span}", rate.in_words())
    });
    let rate = rate.or_else(|| seen.slots().map(|_| "req/s not known yet".to_owned()));
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
    let shown = if seen.workers.len() > MOST_WORKERS + 1 { MOST_WORKERS } else { seen.workers.len() };
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
        let most = most.map(|most| format!(", at most {}", number::fixed(most, 0))).unwrap_or_default();
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
    let threads = match (worker.is_gone, worker.is_booting, worker.busy, worker.threads) {
        (true, ..) => "ended".to_owned(),
        (_, true, ..) => "booting".to_owned(),
        (_, _, Some(busy), Some(all)) => format!("{busy} / {all}"),
        _ => number::NONE.to_owned(),
    };
    [
        // As wide as `accept queue`, which is below.
        format!("{:12}", worker.name),
        threads,
        number::or_none(worker.backlog, |n| n.to_string()),
        number::or_none(worker.connections, |n| number::fixed(n, 0)),
        number::or_none(worker.cpu, |cpu| format!("{} %", number::fixed(cpu * 100.0, 0))),
        number::or_none(worker.memory, number::bytes),
        number::or_none(worker.age, |age| match age.0 / 1_000_000_000 {
            0 => "now".to_owned(),
            seconds => format!("{seconds} s old"),
        }),
    ]
}

/// Many workers as one.
fn sum(workers: &[WatchedWorker]) -> WatchedWorker {
    let count = |figure: fn(&WatchedWorker) -> Option<u32>| workers.iter().map(figure).sum::<Option<u32>>();
    let total = |figure: fn(&WatchedWorker) -> Option<f64>| workers.iter().map(figure).sum::<Option<f64>>();
    WatchedWorker {
        name: format!("{} more", workers.len()),
        threads: count(|worker| worker.threads),
        busy: count(|worker| worker.busy),
        backlog: count(|worker| worker.backlog),
        connections: total(|worker| worker.connections),
        cpu: total(|worker| worker.cpu),
        memory: total(|worker| worker.memory),
        age: workers.iter().filter_map(|worker| worker.age).max(),
        ..WatchedWorker::default()
    }
}

/// Why nothing is known of the threads, and how it becomes known.
fn not_visible(seen: &WatchEvidence) -> Option<String> {
    match seen.no_statistics.as_deref() {
        Some("") if seen.is_puma => Some(
            "not visible: start Puma with `state_path \"tmp/puma.state\"` and `activate_control_app` in config/puma.rb, then restart, or give --state FILE"
                .to_owned(),
        ),
        Some("") => Some("not visible: of a server that is no Puma, nobody says which threads are busy".to_owned()),
        Some(why) => Some(format!("not visible: {why}")),
        None => None,
    }
}

/// How long it was watched, and what that does to the server.
fn footer(source: Option<&StatisticsSource>, seen: &WatchEvidence, end: Option<WatchEnd>) -> String {
    let watched = match end {
        None => String::new(),
        Some(WatchEnd::User) => format!("Watched for {}, until it was ended. ", number::length(seen.watched)),
        Some(_) => format!("Watched for {}. ", number::length(seen.watched)),
    };
    let sends = if seen.is_elsewhere { "Connects once a second; sends no requests" } else { "Sends no requests" };
    let reads = match source {
        None => String::new(),
        Some(source) => {
            let resets = seen.major().is_some_and(|major| major >= 7);
            let resets = if resets { ", which resets backlog_max and reactor_max" } else { "" };
            format!("; reads Puma's statistics ({}){resets}", source.shown)
        }
    };
    format!("{watched}{sends}{reads}.")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::watch::diagnosis_tests::{blind, saturated, worker};
    use crate::watch::target::tests::target;

    fn lines(seen: &WatchEvidence, end: Option<WatchEnd>) -> Vec<String> {
        let control =
            model::ControlServer { address: model::Endpoint::Unix("/tmp/c.sock".into()), token: String::new() };
        let source = StatisticsSource { control, shown: "tmp/puma.state".to_owned() };
        let source = Some(source).filter(|_| seen.no_statistics.is_none());
        answer(&target(), source.as_ref(), seen, end).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_answer_is_as_the_golden_file() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let seen = WatchEvidence { age: Some(Nanos::from_secs(200)), ..saturated() };
        let cases = [
            ("watch_answer.txt", lines(&seen, Some(WatchEnd::Time))),
            ("watch_answer_blind.txt", lines(&blind(30.0), None)),
        ];
        for (name, lines) in cases {
            testkit::golden::expect(&here.join(name), &(lines.join("\n") + "\n"));
        }
    }

    #[test]
    fn any_answer_fits_thirty_lines_of_a_hundred_columns() {
        let many: Vec<WatchedWorker> = (0..64).map(|index| worker(index, 5, index, 0.7)).collect();
        let seen = WatchEvidence {
            workers: many,
            queue: Some(1024.0),
            overflows: Some(12.0),
            version: Some("7.1.0".to_owned()),
            ended: Some(Nanos::from_secs(60)),
            ..saturated()
        };
        for seen in [seen, blind(1024.0), WatchEvidence::default()] {
            let lines = lines(&seen, Some(WatchEnd::User));
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(lines.len() <= 30 && widest <= Some(COLUMNS), "{}", lines.join("\n"));
        }
    }

    #[test]
    fn rows_of_many_workers_are_summed_up() {
        let rest = sum(&[worker(1, 5, 2, 0.5), worker(2, 3, 1, 0.25)]);
        assert_eq!((rest.busy, rest.threads, rest.backlog, rest.cpu), (Some(8), Some(10), Some(3), Some(0.75)));
        let unknown = sum(&[worker(1, 5, 2, 0.5), WatchedWorker::default()]);
        assert_eq!((unknown.busy, unknown.cpu), (None, None), "absent is not 0");
    }

    #[test]
    fn only_puma_seven_and_later_resets_its_maxima() {
        let footer =
            |version: &str| lines(&WatchEvidence { version: Some(version.to_owned()), ..saturated() }, None).join(" ");
        assert!(footer("7.0.0").contains("resets") && footer("8.0.2").contains("resets"));
        assert!(!footer("6.6.1").contains("resets") && footer("6.6.1").contains("(tmp/puma.state)."));
        assert!(lines(&blind(1.0), None).join(" ").ends_with("Sends no requests."));
    }

    #[test]
    fn an_age_is_rough() {
        let ages = [41, 119, 200, 7_300, 200_000].map(|seconds| rough(Nanos::from_secs(seconds)));
        assert_eq!(ages, ["41 s", "119 s", "3 min", "2 h", "2 days"]);
    }
}
