//! All figures of a watch as text: a table, and a line a sample.

use model::Nanos;
use report::number;

use super::board::{WatchBoard, Whose};
use super::quantity::Quantity;
use super::series::QuantitySeries;
use super::{WatchEnd, WatchTarget};

/// Columns of names and of each number.
const NAMES: usize = 24;
const NUMBERS: usize = 10;

/// Lines that name more processes than this are cut short.
const NAMED: usize = 3;

/// Who is watched, in a line.
fn whom(target: &WatchTarget, board: &WatchBoard) -> String {
    let there: Vec<String> = board.living().map(|pid| pid.to_string()).collect();
    let processes = match there.len() {
        0 if board.is_elsewhere => "another machine".to_owned(),
        0 => "no process that can be seen".to_owned(),
        1 => format!("process {}", there[0]),
        n if n <= NAMED => format!("processes {}", there.join(" ")),
        n => format!("processes {} and {} more", there[..NAMED].join(" "), n - NAMED),
    };
    format!("{}, {processes}", target.place())
}

/// How it ended.
fn ending(end: Option<WatchEnd>, board: &WatchBoard) -> String {
    match end {
        None | Some(WatchEnd::Time) => format!("watched for {}", number::length(board.now)),
        Some(WatchEnd::User) => format!("watched for {}, until it was ended", number::length(board.now)),
        Some(WatchEnd::Server(after)) => format!("server ended after {}", number::length(after)),
    }
}

/// What is behind a number: who said it, how old it may be, and of how much.
fn remark(quantity: Quantity, board: &WatchBoard, source: &'static str) -> String {
    let said = quantity.source(source);
    match quantity {
        Quantity::AcceptQueue => {
            board.queue_limit.map_or_else(|| said.to_owned(), |limit| format!("{said}; at most {limit}"))
        }
        Quantity::Busy | Quantity::Backlog => {
            let age = board.of(Whose::Server, quantity).and_then(|series| series.staleness).map(|(_, oldest)| oldest);
            let age = age.filter(|age| *age > Nanos::ZERO).map(|age| format!(", up to {} old", number::length(age)));
            let slots = board.slots.filter(|_| quantity == Quantity::Busy).map(|slots| format!("; of {slots}"));
            format!("{said}{}{}", age.unwrap_or_default(), slots.unwrap_or_default())
        }
        _ => said.to_owned(),
    }
}

/// The table; `end` is absent while the watch goes on.
pub(crate) fn table(target: &WatchTarget, board: &WatchBoard, end: Option<WatchEnd>, source: &'static str) -> String {
    let (queue, others) = board.samples;
    let part = number::percent(board.cpu_part());
    let samples = number::count_of(queue, "sample");
    let cells = columns(["min", "mean", "max", "last"].into_iter().map(str::to_owned));
    let mut lines = vec![
        whom(target, board),
        format!("{}; {samples} at the queue, {others} at the rest took {part} % of one CPU", ending(end, board)),
        String::new(),
        format!("{:NAMES$}{cells}   source", ""),
    ];
    for quantity in Quantity::OF_SERVER.into_iter().filter(|quantity| board.looks_for(*quantity)) {
        let remark = remark(quantity, board, source);
        lines.push(row(&quantity.to_string(), quantity, board.of(Whose::Server, quantity), &remark));
    }
    for (pid, process) in &board.processes {
        let part = |part| number::or_zero(part, number::percent);
        let share = |quantity| number::or_none(board.share(*pid, quantity, QuantitySeries::mean), part);
        let gone = if process.is_there { "" } else { ", gone" };
        let (cpu, connections) = (share(Quantity::Cpu), share(Quantity::Accepted));
        let title = &process.title;
        lines.push(String::new());
        lines.push(format!("{pid}{gone}: {cpu} % of the CPU, {connections} % of the connections: {title}"));
        for quantity in Quantity::OF_PROCESS {
            if let Some(series) = board.of(Whose::Process(*pid), quantity) {
                lines.push(row(&format!("  {quantity}"), quantity, Some(series), ""));
            }
        }
    }
    let missing = board.missing();
    lines.extend((!missing.is_empty()).then(String::new));
    lines.extend(missing.iter().map(|line| format!("missing: {line}")));
    lines.join("\n") + "\n"
}

fn row(name: &str, quantity: Quantity, series: Option<&QuantitySeries>, remark: &str) -> String {
    let figures: [fn(&QuantitySeries) -> Option<f64>; 4] =
        [|series| series.least, QuantitySeries::mean, |series| series.most, |series| series.last];
    let cells = columns(figures.iter().map(|figure| quantity.written(series.and_then(figure))));
    format!("{name:NAMES$}{cells}   {remark}").trim_end().to_owned()
}

/// Cells below each other.
fn columns(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| format!("{cell:>NUMBERS$}")).collect::<Vec<_>>().concat()
}

/// The columns of a line a sample.
const LINE: [(Quantity, &str); 8] = [
    (Quantity::AcceptQueue, "queue"),
    (Quantity::Open, "open"),
    (Quantity::Accepted, "accepted"),
    (Quantity::Busy, "busy"),
    (Quantity::Cpu, "CPU %"),
    (Quantity::RunQueueWait, "wait %"),
    (Quantity::Overflows, "overfl/s"),
    (Quantity::Drops, "drops/s"),
];

/// The head over the lines.
pub(crate) fn line_head() -> String {
    let names = columns(LINE.iter().map(|(_, name)| (*name).to_owned()));
    format!("{:>8}{names}\n", "s")
}

/// The last sample in a line.
pub(crate) fn line(board: &WatchBoard) -> String {
    let cells = columns(LINE.iter().map(|(quantity, _)| quantity.written(board.last(Whose::Server, *quantity))));
    format!("{:>8}{cells}\n", number::fixed(board.now.as_secs_f64(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::board_tests::{member, queue, sample, stats};
    use crate::watch::target::tests::target;

    #[test]
    fn what_is_absent_is_a_dash_and_the_rest_has_its_source() {
        let mut board = WatchBoard::default();
        for seen in [queue(0, 2), sample(0, vec![member(11, 0, Some(7)), member(12, 0, None)]), queue(500, 6), stats(2)]
        {
            board.take(seen);
        }
        board.take(sample(2, vec![member(11, 30, Some(7)), member(12, 10, None)]));
        let text = table(&target(), &board, None, "sock_diag");
        let expected = "\
127.0.0.1:9292, processes 11 12
watched for 2.00 s; 2 samples at the queue, 2 at the rest took 0.100 % of one CPU

                               min      mean       max      last   source
accept queue                     2         4         6         6   sock_diag; at most 1024
open connections                12        13        14        14   sock_diag
accepted connections            10        10        10        10   /proc/PID/fd
unread connections               2         2         2         2   sock_diag
held by nobody seen              3         3         3         3   /proc/PID/fd
busy threads                     8         8         8         8   puma stats, up to 2.00 s old; of 10
backlog                          1         1         1         1   puma stats, up to 2.00 s old
CPU, %                         200       200       200       200   /proc/PID/task/TID/schedstat
CPUs busy, anybody's, %          -         -         -         -   /proc/stat
run-queue wait, %             20.0      20.0      20.0      20.0   /proc/PID/task/TID/schedstat
voluntary switches/s          2000      2000      2000      2000   /proc/PID/task/TID/status
involuntary switches/s        20.0      20.0      20.0      20.0   /proc/PID/task/TID/status
threads                         16        16        16        16   /proc/PID/task/TID/schedstat
queue overflows/s                -         -         -         -   /proc/net/netstat, all servers
dropped connects/s               -         -         -         -   /proc/net/netstat, all servers
repeated connects/s              -         -         -         -   /proc/net/netstat, all servers

11: 75.0 % of the CPU, 100 % of the connections: puma: cluster worker 0: 10 [app]
  accepted connections           7         7         7         7
  busy threads                   5         5         5         5
  backlog                        0         0         0         0
  CPU, %                       150       150       150       150
  run-queue wait, %           15.0      15.0      15.0      15.0
  voluntary switches/s        1500      1500      1500      1500
  involuntary switches/s      15.0      15.0      15.0      15.0
  threads                        8         8         8         8
  resident memory         40.0 MiB  40.0 MiB  40.0 MiB  40.0 MiB

12: 25.0 % of the CPU, - % of the connections: puma: cluster worker 1: 10 [app]
  accepted connections           -         -         -         -
  busy threads                   3         3         3         3
  backlog                        1         1         1         1
  CPU, %                      50.0      50.0      50.0      50.0
  run-queue wait, %           5.00      5.00      5.00      5.00
  voluntary switches/s         500       500       500       500
  involuntary switches/s      5.00      5.00      5.00      5.00
  threads                        8         8         8         8
  resident memory         40.0 MiB  40.0 MiB  40.0 MiB  40.0 MiB
";
        assert_eq!(text, expected, "{text}");
        assert_eq!(line_head().lines().count() + line(&board).lines().count(), 2);
    }
}
