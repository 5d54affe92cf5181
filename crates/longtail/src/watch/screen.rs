//! The board on a terminal: figures of now with their plots, then a table of the processes. Draws only; the terminal itself is
//! in `terminal`.

use model::Nanos;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Sparkline, Table};
use report::number;

use super::board::{WatchBoard, Whose};
use super::quantity::Quantity;
use super::series::QuantitySeries;
use super::{WatchTarget, text};

/// Columns of a name, of a figure, and of what is behind it.
const NAMES: u16 = 22;
const FIGURES: u16 = 12;
const BETWEEN: u16 = 26;
/// A plot that is narrower says nothing.
const NARROW: u16 = 12;
/// Columns of who said it, where there is room for that beside a plot.
const SOURCE: u16 = 32;
/// Columns of a process's figure, the space before it included.
const CELLS: u16 = 10;

/// The rows of the upper part.
const ROWS: [Quantity; 13] = [
    Quantity::Connect,
    Quantity::AcceptQueue,
    Quantity::Open,
    Quantity::Accepted,
    Quantity::Unread,
    Quantity::Busy,
    Quantity::Backlog,
    Quantity::Cpu,
    Quantity::RunQueueWait,
    Quantity::Voluntary,
    Quantity::Involuntary,
    Quantity::Overflows,
    Quantity::Drops,
];

/// Draws all of it.
pub(crate) fn draw(frame: &mut Frame<'_>, target: &WatchTarget, board: &WatchBoard, source: &'static str) {
    let missing = board.missing();
    let parts = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(rows(board).count() as u16 + 1),
        Constraint::Min(2),
        Constraint::Length(missing.len().min(3) as u16),
        Constraint::Length(1),
    ]);
    let [head, upper, lower, absent, foot] = parts.areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = Line::styled(format!("longtail watch  {}", text::whom(target, board)), bold);
    let since = match board.ended {
        Some(at) => format!("server ended after {}", number::length(at)),
        None => format!("for {}", number::minutes(board.now)),
    };
    let looks = number::percent(board.cpu_part());
    let state = format!("{since}; the looks take {looks} % of one CPU");
    frame.render_widget(Paragraph::new(vec![title, Line::raw(state)]), head);
    figures(frame, upper, board, source);
    processes(frame, lower, board);
    let lines: Vec<Line<'_>> = missing.iter().map(|line| Line::raw(format!("missing: {line}"))).collect();
    frame.render_widget(Paragraph::new(lines), absent);
    frame.render_widget(Paragraph::new("q, Esc or Ctrl-C ends it"), foot);
}

/// The rows that a board has.
fn rows(board: &WatchBoard) -> impl Iterator<Item = Quantity> {
    ROWS.into_iter().filter(|quantity| board.looks_for(*quantity))
}

fn figures(frame: &mut Frame<'_>, area: Rect, board: &WatchBoard, source: &'static str) {
    for (at, quantity) in rows(board).enumerate() {
        let Some(row) = area.rows().nth(at) else { return };
        let columns = Layout::horizontal([
            Constraint::Length(NAMES),
            Constraint::Length(FIGURES),
            Constraint::Length(BETWEEN),
            Constraint::Min(0),
            Constraint::Length(if area.width >= NAMES + FIGURES + BETWEEN + NARROW + SOURCE { SOURCE } else { 0 }),
        ]);
        let [name, now, between, plot, origin] = columns.areas(row);
        let value = board.last(Whose::Server, quantity);
        let is_full = match quantity {
            Quantity::Busy => value.zip(board.slots).is_some_and(|(busy, slots)| busy >= f64::from(slots)),
            Quantity::AcceptQueue | Quantity::Overflows | Quantity::Drops => value.is_some_and(|value| value > 0.0),
            _ => false,
        };
        let style = if is_full { Style::new().fg(Color::Yellow) } else { Style::new() };
        frame.render_widget(Paragraph::new(quantity.to_string()), name);
        let now_text = format!("{:>width$}", quantity.written(value), width = usize::from(FIGURES) - 1);
        frame.render_widget(Paragraph::new(Span::styled(now_text, style)), now);
        frame.render_widget(Paragraph::new(behind(quantity, board)), between);
        if plot.width >= NARROW {
            frame.render_widget(sparkline(&board.plotted(quantity), usize::from(plot.width) - 1), plot);
        }
        frame.render_widget(Paragraph::new(quantity.source(source)), origin);
    }
}

/// Mean and most, and what the figure is part of or how old it is.
fn behind(quantity: Quantity, board: &WatchBoard) -> String {
    let series = board.of(Whose::Server, quantity);
    let figure = |value: fn(&QuantitySeries) -> Option<f64>| quantity.written(series.and_then(value));
    let age = series.and_then(|series| series.staleness).filter(|(age, _)| *age > Nanos::ZERO);
    match (quantity, age) {
        (Quantity::Busy, _) => {
            let of = number::or_none(board.slots, number::count);
            let age = age.map(|(age, _)| format!(", {} old", number::length(age))).unwrap_or_default();
            format!("of {of}{age}")
        }
        (_, Some((age, _))) => format!("{} old", number::length(age)),
        _ => format!("mean {} max {}", figure(QuantitySeries::mean), figure(|series| series.most)),
    }
}

/// The last looks that fit, from the left. Nothing stands where nothing was found.
fn sparkline(values: &[Option<f64>], width: usize) -> Sparkline<'static> {
    let last = &values[values.len().saturating_sub(width)..];
    // Thousandths: a share of a CPU is drawn too.
    let scaled: Vec<Option<u64>> = last.iter().map(|value| value.map(|value| (value * 1000.0) as u64)).collect();
    let most = scaled.iter().flatten().copied().max().unwrap_or(0);
    Sparkline::default().data(scaled).max(most.max(1)).absent_value_symbol(" ")
}

/// One line a process that is there, the busiest first.
fn processes(frame: &mut Frame<'_>, area: Rect, board: &WatchBoard) {
    let mut there: Vec<u32> = board.living().collect();
    let cpu = |pid: &u32| board.of(Whose::Process(*pid), Quantity::Cpu).and_then(QuantitySeries::mean).unwrap_or(0.0);
    there.sort_by(|a, b| cpu(b).total_cmp(&cpu(a)).then(a.cmp(b)));
    // As many figures as leave room for a title.
    let fitting = usize::from((area.width.saturating_sub(2 * CELLS) / CELLS).max(1));
    let columns = &COLUMNS[..fitting.min(COLUMNS.len())];
    let width = usize::from(CELLS) - 1;
    let rows = there.iter().map(|pid| {
        let mut cells: Vec<String> =
            columns.iter().map(|(_, figure)| format!("{:>width$}", figure(board, *pid))).collect();
        cells.push(board.processes.get(pid).map(|one| one.title.clone()).unwrap_or_default());
        Row::new(cells)
    });
    let mut widths = vec![Constraint::Length(CELLS - 1); columns.len()];
    widths.push(Constraint::Min(0));
    let names = columns.iter().map(|(name, _)| format!("{name:>width$}"));
    let head: Vec<String> = names.chain(["what it is".to_owned()]).collect();
    let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
    frame.render_widget(Table::new(rows, widths).header(Row::new(head).style(underlined)), area);
}

/// A figure of a process.
type Figure = fn(&WatchBoard, u32) -> String;

/// The columns of the processes' table, the weightiest first: those to the right go where a terminal is narrow.
const COLUMNS: [(&str, Figure); 11] = [
    ("process", |_, pid| pid.to_string()),
    ("CPU %", |board, pid| last(board, pid, Quantity::Cpu)),
    ("of all %", |board, pid| share(board, pid, Quantity::Cpu)),
    ("conns", |board, pid| last(board, pid, Quantity::Accepted)),
    ("of all %", |board, pid| share(board, pid, Quantity::Accepted)),
    ("busy", |board, pid| last(board, pid, Quantity::Busy)),
    ("queue", |board, pid| last(board, pid, Quantity::Backlog)),
    ("wait %", |board, pid| last(board, pid, Quantity::RunQueueWait)),
    ("vol/s", |board, pid| last(board, pid, Quantity::Voluntary)),
    ("invol/s", |board, pid| last(board, pid, Quantity::Involuntary)),
    ("memory", |board, pid| last(board, pid, Quantity::Memory)),
];

fn last(board: &WatchBoard, pid: u32, quantity: Quantity) -> String {
    quantity.written(board.last(Whose::Process(pid), quantity))
}

fn share(board: &WatchBoard, pid: u32, quantity: Quantity) -> String {
    let part = board.share(pid, quantity, |series| series.last);
    number::or_none(part, |part| number::or_zero(part, number::percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::board_tests::{look, member, queue, stats};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn target() -> WatchTarget {
        WatchTarget {
            places: vec![probe::owners::BoundAddress::Tcp("127.0.0.1:9292".parse().unwrap())],
            inodes: BTreeSet::new(),
            roots: vec![10],
            is_process: false,
            missing: Vec::new(),
            elsewhere: None,
        }
    }

    fn drawn(board: &WatchBoard, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &target(), board, "sock_diag")).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = (0..height).map(|y| {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }

    fn board() -> WatchBoard {
        let mut board = WatchBoard::new(vec!["nothing but this line".to_owned()], false);
        for second in 0..30 {
            board.take(queue(second * 1000 + 500, (second % 7) as u32 * 3));
            board.take(look(
                second + 1,
                vec![member(11, second * 4, Some(7)), member(12, second * second / 5, Some(3))],
            ));
            if second == 20 {
                board.take(stats(second));
            }
        }
        board
    }

    #[test]
    fn the_screen_is_as_the_golden_files() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let blind = WatchBoard::new(vec!["the server's processes: run as root".to_owned()], false);
        let cases = [
            ("watch_screen.txt", drawn(&board(), (130, 24))),
            ("watch_screen_small.txt", drawn(&board(), (60, 14))),
            ("watch_screen_blind.txt", drawn(&blind, (130, 20))),
        ];
        for (name, text) in cases {
            testkit::golden::expect(&here.join(name), &text);
        }
    }

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        for size in [(1, 1), (5, 3), (22, 2), (300, 100)] {
            drawn(&board(), size);
        }
    }
}
