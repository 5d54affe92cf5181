//! The live screen of a watch: the answer, and with `d` all figures. The terminal is restored at
//! the end, at an error, and after a panic.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use watch::AnswerLine;

use crate::exit::Mistake;
use crate::keys::{self, Key};
use crate::terminal::TerminalSize;

/// The alternate screen, which does not scroll; lines are not wrapped; no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?7h\x1b[?1049l";
/// A terminal that knows these shows what is between them at once.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";
const CLEAR_LINE: &str = "\x1b[2K";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Whether there is somebody who looks and can press a key.
pub(crate) fn is_a_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The terminal in raw mode, on its alternate screen; dropping this restores it.
pub(crate) struct WatchScreen {
    /// Whether all figures are wanted.
    pub(crate) is_full: bool,
    /// Whether what is drawn is out of date.
    pub(crate) is_stale: bool,
    /// The first line that is drawn.
    scroll: u16,
    /// The terminal's size when it was drawn on.
    size: TerminalSize,
    /// The terminal's settings before.
    before: Termios,
}

impl WatchScreen {
    /// Takes the terminal. A panic gives it back too, before it is printed.
    ///
    /// # Errors
    /// If it cannot be drawn on.
    pub(crate) fn take(is_full: bool) -> Result<WatchScreen, Mistake> {
        let before = tcgetattr(io::stdin()).map_err(|why| unusable(&why.into()))?;
        let say = panic::take_hook();
        let for_hook = before.clone();
        panic::set_hook(Box::new(move |panicked| {
            give_back(&for_hook);
            say(panicked);
        }));
        // Before the terminal is changed: where one of the steps below fails, dropping this gives
        // the terminal back.
        let screen = WatchScreen {
            is_full,
            is_stale: true,
            scroll: 0,
            size: TerminalSize::default(),
            before,
        };
        let mut raw = screen.before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)
            .map_err(io::Error::from)
            .and_then(|()| write(ENTER))
            .map_err(|why| unusable(&why))?;
        Ok(screen)
    }

    /// Draws these lines.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn draw(&mut self, lines: &[AnswerLine]) -> Result<(), Mistake> {
        self.is_stale = false;
        self.size = size_now()?;
        let room = usize::from(self.size.rows.saturating_sub(1));
        let most = lines.len().saturating_sub(room);
        self.scroll = self.scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
        let shown = lines.get(usize::from(self.scroll)..).unwrap_or_default();
        let foot = foot(self.is_full, shown.len().saturating_sub(room));
        let text = picture(self.size, shown, &foot);
        write(&text).map_err(|why| unusable(&why))
    }

    /// Handles the keys that were pressed, without waiting; returns the one that ends it, if any.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn ending_key(&mut self) -> Result<Option<Key>, Mistake> {
        if size_now()? != self.size {
            self.is_stale = true;
        }
        for key in keys::pressed(&io::stdin()).map_err(|why| unusable(&why))? {
            self.is_stale = true;
            match key {
                Key::ControlC | Key::Escape | Key::Character('q' | 'Q') => return Ok(Some(key)),
                Key::Character('d' | 'D') => {
                    self.is_full = !self.is_full;
                    self.scroll = 0;
                }
                Key::Down | Key::Character('j') => self.scroll = self.scroll.saturating_add(1),
                Key::Up | Key::Character('k') => self.scroll = self.scroll.saturating_sub(1),
                Key::PageDown | Key::Character(' ') => self.scroll = self.scroll.saturating_add(20),
                Key::PageUp => self.scroll = self.scroll.saturating_sub(20),
                Key::Character(_) | Key::Other => {}
            }
        }
        Ok(None)
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        give_back(&self.before);
    }
}

fn size_now() -> Result<TerminalSize, Mistake> {
    TerminalSize::of(io::stdout()).map_err(|why| unusable(&why.into()))
}

/// The keys, and how many lines are below the last row.
fn foot(is_full: bool, below: usize) -> String {
    let other = if is_full { "d the answer" } else { "d all figures" };
    let more = if below > 0 {
        format!(
            "   ↑ ↓ space scroll ({} below)",
            report::number::count_of(below as u64, "more line")
        )
    } else {
        String::new()
    };
    format!("  q quits   {other}{more}")
}

/// The terminal as it was, as far as it still can be.
fn give_back(before: &Termios) {
    let _ = write(LEAVE);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What draws as many of the lines as there is room for, and the foot in the last row.
fn picture(size: TerminalSize, lines: &[AnswerLine], foot: &str) -> String {
    let mut drawn = BEGIN_UPDATE.to_owned();
    let foot = AnswerLine::plain(foot);
    for row in 0..size.rows {
        let _ = write!(drawn, "\x1b[{};1H{CLEAR_LINE}", row + 1);
        let is_last = row + 1 == size.rows;
        let line = if is_last { Some(&foot) } else { lines.get(usize::from(row)) };
        let Some(line) = line else { continue };
        drawn.push_str(if line.is_bold() { BOLD } else { PLAIN });
        drawn.extend(line.text.chars().filter(|c| !c.is_control()).take(size.columns.into()));
        drawn.push_str(PLAIN);
    }
    drawn + END_UPDATE
}

fn unusable(why: &io::Error) -> Mistake {
    Mistake::Flags(format!("this terminal cannot be drawn on ({why}): use --plain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foot_names_the_keys_that_scroll_where_they_do() {
        assert_eq!(
            foot(true, 42),
            "  q quits   d the answer   ↑ ↓ space scroll (42 more lines below)"
        );
        assert_eq!(
            foot(true, 1),
            "  q quits   d the answer   ↑ ↓ space scroll (1 more line below)"
        );
        assert_eq!(foot(false, 0), "  q quits   d all figures");
    }

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        let lines: Vec<_> =
            (0..40).map(|n| AnswerLine::plain(format!("line {n}\x1b[2J"))).collect();
        for (columns, rows) in [(0, 0), (1, 1), (5, 3), (22, 2), (300, 100)] {
            let drawn = picture(TerminalSize { columns, rows }, &lines, "foot");
            assert_eq!(drawn.matches("\x1b[2K").count(), usize::from(rows), "each row is cleared");
            assert_eq!(drawn.contains("line 1"), columns > 5 && rows > 2, "{drawn:?}");
            assert_eq!(drawn.contains("foot"), columns > 3 && rows > 0, "{drawn:?}");
            assert!(!drawn.contains("\x1b[2J"), "a process may call itself what it likes");
        }
    }
}
