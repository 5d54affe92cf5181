//! The answer of a watch as text: at most 30 lines.

use judge::watch::{Diagnosis, TURN_IT_ON, WatchedWorker};
use model::Nanos;
use report::tree::{DataTable, TableColumn, TableRow};
use report::{Width, number, text, wrap};

use crate::{StatisticsSource, WatchEnd, WatchEvidence, WatchTarget};

/// Longer lines are hard to read: as wide as this it is printed if nobody asks for another width.
pub const COLUMNS: usize = 100;
/// Indent of the table.
const INDENT: usize = 2;
/// The most rows of workers; the rest are summed up in one more row.
const MOST_WORKERS: usize = 8;

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerLine {
    /// What it says.
    pub text: String,
    /// What it is of the answer.
    pub kind: LineKind,
}

/// What a line is of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// What limits the server, or else the first line of the answer: it is bold.
    Headline,
    /// What waits where, and how long.
    Answer,
    /// All else.
    Plain,
}

impl AnswerLine {
    /// A line that is not bold.
    pub fn plain(text: impl Into<String>) -> AnswerLine {
        AnswerLine { text: text.into(), kind: LineKind::Plain }
    }

    /// Whether it is shown in bold.
    pub fn is_bold(&self) -> bool {
        self.kind == LineKind::Headline
    }
}

/// The lines of the answer; `end` is absent while the watch goes on. `length`: how long it was to be.
pub fn answer(
    target: &WatchTarget,
    source: Option<&StatisticsSource>,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
    length: Option<Nanos>,
    width: Width,
) -> Vec<AnswerLine> {
    let Diagnosis { conclusion, answer, since, why, tries, is_early, .. } = Diagnosis::of(seen);
    let mut lines = Vec::new();
    let mut put_line = |kind: LineKind, before: &str, text: &str| {
        let mut wrapped = String::new();
        wrap(&mut wrapped, width, before, text);
        let like = |line: &str| AnswerLine { text: line.to_owned(), kind };
        lines.extend(wrapped.lines().map(like));
    };
    for line in &head(target, seen, width) {
        put_line(LineKind::Plain, "", line);
    }
    put_line(LineKind::Plain, "", "");
    if end.is_none() && is_before_the_first_look(seen) {
        put_line(LineKind::Headline, "  ", FIRST_LOOK);
        return lines;
    }
    // A watch that goes on says it once two looks agree.
    let is_settled = end.is_some() || !(is_early || seen.is_unsettled);
    let sentences = conclusion.iter().filter(|_| is_settled).chain(&answer);
    let kinds = std::iter::once(LineKind::Headline).chain(std::iter::repeat(LineKind::Answer));
    for (kind, line) in kinds.zip(sentences) {
        put_line(kind, "  ", line);
    }
    // A watch that goes on need not be begun again.
    let (why, tries) = match end {
        None if is_early => (why, vec![WATCH_ON.to_owned()]),
        None if seen.is_unsettled => (Some(STILL_LOOKING.to_owned()), Vec::new()),
        _ => (why, tries),
    };
    if why.is_some() || !tries.is_empty() {
        put_line(LineKind::Plain, "", "");
    }
    if let Some(why) = why {
        put_line(LineKind::Plain, "  Why    ", &why);
    }
    let labels = std::iter::once("  Try    ").chain(std::iter::repeat("         "));
    for (label, text) in labels.zip(&tries) {
        put_line(LineKind::Plain, label, text);
    }
    // What those rest on comes last: on a low screen only that is out of sight.
    put_line(LineKind::Plain, "", "");
    for line in &table(seen, width) {
        put_line(LineKind::Plain, "", line);
    }
    let not_visible = not_visible(seen).filter(|_| !seen.knows_busy_threads());
    if let Some(why) = not_visible.filter(|_| end.is_some() || seen.watched >= SOON) {
        put_line(LineKind::Plain, "  threads       ", &why);
    }
    seen.not_visible.iter().for_each(|line| put_line(LineKind::Plain, "  not visible   ", line));
    if let Some(since) = since {
        put_line(LineKind::Plain, "  trend         ", &since);
    }
    put_line(LineKind::Plain, "  ", &footer(source, seen, end, length));
    lines
}

/// So soon after its beginning a watch may not have seen yet what there is to see.
const SOON: Nanos = Nanos::from_secs(2);

/// What a watch that goes on says until it can say more.
const FIRST_LOOK: &str = "The first look at its processes and connections is under way.";
const WATCH_ON: &str = "nothing yet: this watch goes on, and some more seconds of it will tell.";

/// What it says in place of a conclusion that two looks do not agree on yet.
const STILL_LOOKING: &str = "Still looking: a reason is told once two looks in a row agree on it.";

/// Whether neither its processes nor its connections were looked at yet. Of another machine they are not
/// seen at all.
fn is_before_the_first_look(seen: &WatchEvidence) -> bool {
    let is_unseen = seen.connections.is_none() && seen.workers.is_empty() && seen.age.is_none();
    is_unseen && !seen.is_elsewhere && seen.watched < SOON
}

/// `Puma 5.6.5 on 127.0.0.1:9292 · 2 workers x 5 threads · up 3 min · 99 req/s`, on as many lines as
/// its parts take.
fn head(target: &WatchTarget, seen: &WatchEvidence, width: Width) -> Vec<String> {
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
        // Over so little time that it matters, or from before the watch.
        let over = Some(rate.seconds).filter(|_| rate.is_rough);
        let over = over.map(|over| format!(" over {over:.0} s")).unwrap_or_default();
        format!("{} req/s{over}", rate.in_words())
    });
    let by_kernel = || Some(format!("~{} req/s", number::rate_in_words(seen.answered_rate()?)));
    let rate =
        rate.or_else(by_kernel).or_else(|| seen.busy().map(|_| "req/s not known yet".to_owned()));
    let up = seen.age.map(|age| format!("up {}", rough(age)));
    let connect = seen.connect.map(|took| format!("connect {}", number::time(took)));
    let parts = [Some(format!("{name} on {}", target.place())), size, up, rate, connect];
    lines_of_parts(parts.into_iter().flatten(), width)
}

/// The parts joined by ` · `, broken only between them.
fn lines_of_parts(parts: impl Iterator<Item = String>, width: Width) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let joined = lines.last().map(|line| format!("{line} · {part}"));
        match (lines.last_mut(), joined.filter(|line| width.fits(line.chars().count()))) {
            (Some(last), Some(joined)) => *last = joined,
            _ => lines.push(part),
        }
    }
    lines
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

/// The column of busy threads, and how many there are.
const THREADS: &str = "threads";
/// The columns. In a narrow table those with the highest number are left out first; 0 stays.
const HEADS: [(&str, u8); 7] = [
    ("", 0),
    (THREADS, 0),
    ("backlog", 0),
    ("connections", 1),
    ("CPUs", 2),
    ("memory", 4),
    ("statistics", 3),
];

/// A row for each worker, and below them the accept queue. Columns of which nothing is known, or
/// for which there is no room, are left out.
pub(crate) fn table(seen: &WatchEvidence, width: Width) -> Vec<String> {
    let shown =
        if seen.workers.len() > MOST_WORKERS + 1 { MOST_WORKERS } else { seen.workers.len() };
    let mut rows: Vec<[String; 7]> = seen.workers[..shown].iter().map(cells).collect();
    if let rest @ [_, ..] = &seen.workers[shown..] {
        rows.push(cells(&sum(rest)));
    }
    let is_known = |at: &usize| rows.iter().any(|row| row[*at] != number::NONE);
    let columns: Vec<usize> = (0..HEADS.len()).filter(is_known).collect();
    let cells_of = |row: &[String; 7]| TableRow::new(columns.iter().map(|at| row[*at].clone()));
    let are_counted = seen.workers.iter().any(|worker| worker.busy_threads.is_some());
    let headings = columns.iter().map(|at| {
        let (name, leaves) = match HEADS[*at] {
            // Beside figures of this moment, it would be read as the busy ones.
            (THREADS, leaves) if !are_counted => ("threads for requests", leaves),
            head => head,
        };
        TableColumn::new(name).leaving(leaves)
    });
    let table = DataTable::of_columns(headings, rows.iter().map(cells_of));
    let narrowed = text::narrowed(&table, INDENT, width);
    let table = text::table(&narrowed.table, INDENT, width);
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    if !narrowed.left.is_empty() {
        lines.push(format!("  (no room for: {})", narrowed.left.join(", ")));
    }
    if let Some(waiting) = seen.in_kernel() {
        let of = seen.queue_limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
        // It is the mean of the last seconds, which beside the most would be taken for the latest.
        let most = seen.queue_most.filter(|most| *most > f64::from(waiting));
        let waiting = match most {
            Some(most) => format!("mean {waiting}{of}, most {}", number::fixed(most, 0)),
            None => format!("{waiting}{of}"),
        };
        let overflow = match seen.overflows {
            None => String::new(),
            Some(0.0) => "; no overflow".to_owned(),
            Some(n) => format!("; {} (all servers here)", number::count_of(n as u64, "overflow")),
        };
        lines.push(format!("  accept queue  {waiting}{overflow}"));
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
        number::or_none(worker.cpu, |cpu| number::fixed(cpu, 2)),
        number::or_none(worker.memory_bytes, number::memory),
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
        "" if seen.is_puma => &format!("set {TURN_IT_ON} in config/puma.rb, or give --state FILE"),
        // The reason says it of others.
        "" => return None,
        why => why,
    };
    Some(format!("which are busy is not visible: {why}"))
}

/// How long it was watched, and what that does to the server.
fn footer(
    source: Option<&StatisticsSource>,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
    length: Option<Nanos>,
) -> String {
    /// A smaller part of a CPU is not worth a remark.
    const NOTABLE: f64 = 0.02;
    let watched = match end {
        None => String::new(),
        Some(WatchEnd::User) => {
            let of = length.map(|length| format!(" of {}", number::length(length)));
            format!(
                "Watched for {}{}, until it was ended. ",
                number::length(seen.watched),
                of.unwrap_or_default()
            )
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
    let takes = seen
        .sampling
        .filter(|part| *part > NOTABLE)
        .map(|part| format!(" Watching takes {} % of a CPU.", number::fixed(part * 100.0, 0)));
    format!("{watched}{sends}{}.{}", reads.unwrap_or_default(), takes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::situations::situations;
    use crate::target::tests::target;

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
        answer(&target(), source.as_ref(), seen, end, None, Width::of(COLUMNS))
            .into_iter()
            .map(|line| line.text)
            .collect()
    }

    #[test]
    fn what_watching_takes_is_told_where_it_is_notable() {
        let last = |sampling| {
            let seen = WatchEvidence { sampling: Some(sampling), ..WatchEvidence::default() };
            footer(None, &seen, None, None)
        };
        assert_eq!(last(0.019), "Sends no requests.");
        assert_eq!(last(0.041), "Sends no requests. Watching takes 4 % of a CPU.");
    }

    #[test]
    fn a_watch_that_is_ended_early_names_the_length_that_was_asked_for() {
        let seen = WatchEvidence { watched: Nanos::from_secs(5), ..WatchEvidence::default() };
        let last = |end, length| footer(None, &seen, Some(end), length);
        let asked = Some(Nanos::from_secs(30));
        assert_eq!(
            last(WatchEnd::User, asked),
            "Watched for 5.00 s of 30.0 s, until it was ended. Sends no requests."
        );
        assert_eq!(
            last(WatchEnd::User, None),
            "Watched for 5.00 s, until it was ended. Sends no requests."
        );
        assert_eq!(last(WatchEnd::Time, asked), "Watched for 5.00 s. Sends no requests.");
    }

    #[test]
    fn what_the_answer_rests_on_comes_last() {
        let all = lines(&situations().remove(0).1, None);
        let at =
            |start: &str| all.iter().position(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(at("Why") < at("Try") && at("Try") < at("worker 0"));
    }

    #[test]
    fn a_live_answer_says_what_it_waits_for() {
        let said = |name: &str, end| {
            let seen = if name.is_empty() { WatchEvidence::default() } else { situation(name) };
            lines(&seen, end).join("\n")
        };
        let first = said("", None);
        assert!(first.contains(FIRST_LOOK) && !first.contains("not visible"), "{first}");
        assert!(!said("", Some(WatchEnd::Time)).contains(FIRST_LOOK));
        let few = |end| said("few looks", end);
        assert!(few(None).contains("this watch goes on") && !few(None).contains("--for"));
        assert!(few(Some(WatchEnd::Time)).contains("--for"));
    }

    #[test]
    fn a_reason_is_told_once_two_looks_agree_on_it_or_the_watch_is_over() {
        let seen = WatchEvidence { is_unsettled: true, ..situations().remove(0).1 };
        let said = |end| lines(&seen, end).join("\n");
        assert!(said(None).contains(STILL_LOOKING) && !said(None).contains("Try"));
        let over = said(Some(WatchEnd::Time));
        assert!(!over.contains("Still looking") && over.contains("Try"), "{over}");
    }

    #[test]
    fn the_answer_is_as_the_golden_file() {
        let seen = WatchEvidence { age: Some(Nanos::from_secs(200)), ..situations().remove(0).1 };
        expect("answer.txt", &(lines(&seen, Some(WatchEnd::Time)).join("\n") + "\n"));
        expect("answer_blind.txt", &(lines(&situation("no state file"), None).join("\n") + "\n"));
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
    fn text_and_json_say_the_same_sentences() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, seen) in situations() {
            let text = words(&lines(&seen, Some(WatchEnd::Time)).join("\n"));
            let json = crate::watch_json(&target(), &seen, Some(WatchEnd::Time), None);
            let sentences = ["conclusion", "answer", "since", "why", "try"].map(|key| &json[key]);
            let lists = sentences.iter().flat_map(|one| one.as_array().into_iter().flatten());
            let alone = sentences.iter().filter_map(|one| one.as_str());
            for sentence in lists.filter_map(|one| one.as_str()).chain(alone) {
                assert!(text.contains(&words(sentence)), "{name}: {sentence}: {text}");
            }
        }
    }

    #[test]
    fn threads_are_called_all_of_them_where_the_busy_ones_are_not_counted() {
        let head = |busy_threads| {
            let worker =
                WatchedWorker { threads: Some(5), busy_threads, ..WatchedWorker::default() };
            let seen = WatchEvidence { workers: vec![worker], ..WatchEvidence::default() };
            table(&seen, Width::of(COLUMNS)).remove(0)
        };
        assert!(head(None).trim().starts_with("threads for requests"), "{}", head(None));
        assert_eq!(head(Some(2)).trim(), "threads");
    }

    #[test]
    fn a_title_is_broken_between_its_parts() {
        let mut seen = situation("the rate is from before the watch");
        seen.age = Some(Nanos::from_secs(200));
        let lines = |columns| head(&target(), &seen, Width::of(columns));
        let server = "Puma 5.6.5 on 127.0.0.1:9292";
        let whole = format!("{server} · 2 workers x 5 threads · up 3 min · ~99 req/s over 35 s");
        assert_eq!(lines(100), [whole]);
        assert_eq!(
            lines(80),
            [&*format!("{server} · 2 workers x 5 threads · up 3 min"), "~99 req/s over 35 s"]
        );
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
}
