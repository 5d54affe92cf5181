//! What is watched in figures: all of them as a table, and a line a sample.

use report::number;
use report::tree::{DataTable, ReportSection, TableRow};
use report::{Width, text};

use super::answer::COLUMNS;
use super::board::{WatchBoard, Whose};
use super::series::{Quantity, QuantitySeries};

/// All figures: of the server, then of each of its processes.
pub(crate) fn all_figures(board: &WatchBoard) -> String {
    let section = |whose: Whose, title: String| {
        let of_it = board.series.iter().filter(|((other, _), _)| *other == whose);
        let rows = of_it.map(|((_, quantity), series)| {
            let figures = [series.least, series.mean(), series.most, series.last].map(|value| quantity.written(value));
            TableRow::new(std::iter::once(quantity.label().to_owned()).chain(figures))
        });
        ReportSection::new(title).table(DataTable::new(["", "min", "mean", "max", "last"], rows)).filled()
    };
    let part = board.sampling_cpu().as_secs_f64() / board.now.as_secs_f64().max(1e-9);
    let server = section(Whose::Server, format!("The server (sampling took {} % of one CPU)", number::percent(part)));
    let there = board.processes.iter().filter(|(_, process)| process.is_there);
    let processes = there.map(|(pid, process)| section(Whose::Process(*pid), format!("{pid}: {}", process.title)));
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
    let last = |quantity| board.of(Whose::Server, quantity).and_then(|series: &QuantitySeries| series.last);
    let cells = LINE.iter().map(|(quantity, _)| quantity.written(last(*quantity)));
    columns(&number::fixed(board.now.as_secs_f64(), 1), cells)
}

fn columns(first: &str, cells: impl Iterator<Item = String>) -> String {
    format!("{first:>8}{}\n", cells.map(|cell| format!("{cell:>10}")).collect::<Vec<_>>().concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::board_tests::{member, queue, sample, stats};

    #[test]
    fn what_is_absent_is_a_dash_and_what_nobody_tells_has_no_row() {
        let mut board = WatchBoard::default();
        for seen in [queue(0, 2), sample(0, vec![member(11, 0, Some(7)), member(12, 0, None)]), queue(500, 6), stats(2)]
        {
            board.take(seen);
        }
        board.take(sample(2, vec![member(11, 30, Some(7)), member(12, 10, None)]));
        let expected = "\
The server (sampling took 0.100 % of one CPU)
                       min  mean   max  last
  accept queue           2     4     6     6
  connections           12    13    14    14
  unread connections     2     2     2     2
  busy threads           8     8     8     8
  backlog                1     1     1     1
  CPU, %               200   200   200   200
  run-queue wait, %   20.0  20.0  20.0  20.0
  queue overflows/s      -     -     -     -

11: puma: cluster worker 0: 10 [app]
                          min      mean       max      last
  connections               7         7         7         7
  busy threads              5         5         5         5
  backlog                   0         0         0         0
  CPU, %                  150       150       150       150
  run-queue wait, %      15.0      15.0      15.0      15.0
  resident memory    40.0 MiB  40.0 MiB  40.0 MiB  40.0 MiB

12: puma: cluster worker 1: 10 [app]
                          min      mean       max      last
  connections               -         -         -         -
  busy threads              3         3         3         3
  backlog                   1         1         1         1
  CPU, %                 50.0      50.0      50.0      50.0
  run-queue wait, %      5.00      5.00      5.00      5.00
  resident memory    40.0 MiB  40.0 MiB  40.0 MiB  40.0 MiB
";
        let text = all_figures(&board);
        assert_eq!(text, expected, "{text}");
        assert_eq!(line_head().lines().count() + line(&board).lines().count(), 2);
    }
}
