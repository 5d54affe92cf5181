//! The live screen of a watch: the answer, and with `d` all figures. The terminal is restored at
//! the end, at an error, and after a panic.

use std::io::{self, IsTerminal as _, Write};
use std::panic;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use crossterm::{cursor, execute, queue};

use watch::AnswerLine;

use crate::exit::Mistake;

/// Whether there is somebody who looks and can press a key.
pub(crate) fn is_a_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The terminal in raw mode, on its other screen; dropped it is as it was before.
pub(crate) struct WatchScreen {
    /// Whether all figures are wanted.
    pub(crate) is_full: bool,
    /// Whether what is drawn is not what is known.
    pub(crate) is_stale: bool,
    /// The first line that is drawn.
    scroll: u16,
}

impl WatchScreen {
    /// Takes the terminal. A panic gives it back too, before it is printed.
    ///
    /// # Errors
    /// Where it is none that can be drawn on.
    pub(crate) fn take(is_full: bool) -> Result<WatchScreen, Mistake> {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            give_back();
            say(panicked);
        }));
        // Before the terminal is changed: where one of the steps below fails, dropping this gives
        // the terminal back.
        let screen = WatchScreen { is_full, is_stale: true, scroll: 0 };
        let enter = || {
            execute!(
                io::stdout(),
                terminal::EnterAlternateScreen,
                terminal::DisableLineWrap,
                cursor::Hide
            )
        };
        terminal::enable_raw_mode().and_then(|()| enter()).map_err(|why| unusable(&why))?;
        Ok(screen)
    }

    /// Draws these lines.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn draw(&mut self, lines: &[AnswerLine]) -> Result<(), Mistake> {
        self.is_stale = false;
        self.scroll = self.scroll.min(lines.len().saturating_sub(1) as u16);
        let keys = if self.is_full { "d the answer   arrows scroll" } else { "d all figures" };
        let shown = lines.get(usize::from(self.scroll)..).unwrap_or_default();
        let (columns, rows) = terminal::size().map_err(|why| unusable(&why))?;
        draw(&mut io::stdout().lock(), columns, rows, shown, &format!("  q quits   {keys}"))
            .map_err(|why| unusable(&why))
    }

    /// Whether a key that ends it has been pressed, at once; other keys do what they do.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn wants_to_end(&mut self) -> Result<bool, Mistake> {
        while event::poll(Duration::ZERO).map_err(|why| unusable(&why))? {
            let event = event::read().map_err(|why| unusable(&why))?;
            self.is_stale = true;
            let Event::Key(key) = event else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Ok(true);
                }
                KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Ok(true),
                KeyCode::Char('d' | 'D') => (self.is_full, self.scroll) = (!self.is_full, 0),
                KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
                KeyCode::PageDown | KeyCode::Char(' ') => {
                    self.scroll = self.scroll.saturating_add(20);
                }
                KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(20),
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The terminal as it was, as far as it still can be.
fn give_back() {
    let _ = execute!(
        io::stdout(),
        cursor::Show,
        terminal::EnableLineWrap,
        terminal::LeaveAlternateScreen
    );
    let _ = terminal::disable_raw_mode();
}

/// As many of the lines as there is room for, and the foot in the last row.
fn draw(
    out: &mut impl Write,
    columns: u16,
    rows: u16,
    lines: &[AnswerLine],
    foot: &str,
) -> io::Result<()> {
    queue!(out, BeginSynchronizedUpdate)?;
    let foot = AnswerLine::plain(foot);
    let last = rows.saturating_sub(1);
    for row in 0..rows {
        queue!(out, cursor::MoveTo(0, row), Clear(ClearType::CurrentLine))?;
        let line = if row == last { Some(&foot) } else { lines.get(usize::from(row)) };
        let Some(AnswerLine { text, is_bold }) = line else { continue };
        let text: String = text.chars().filter(|c| !c.is_control()).take(columns.into()).collect();
        let attribute = if *is_bold { Attribute::Bold } else { Attribute::Reset };
        queue!(out, SetAttribute(attribute), Print(text), SetAttribute(Attribute::Reset))?;
    }
    queue!(out, EndSynchronizedUpdate)?;
    out.flush()
}

fn unusable(why: &io::Error) -> Mistake {
    Mistake::Flags(format!("this terminal cannot be drawn on ({why}): use --plain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        let lines: Vec<_> =
            (0..40).map(|n| AnswerLine::plain(format!("line {n}\x1b[2J"))).collect();
        for (columns, rows) in [(0, 0), (1, 1), (5, 3), (22, 2), (300, 100)] {
            let mut drawn = Vec::new();
            draw(&mut drawn, columns, rows, &lines, "foot").unwrap();
            let drawn = String::from_utf8(drawn).unwrap();
            assert_eq!(drawn.matches("\x1b[2K").count(), usize::from(rows), "each row is cleared");
            assert_eq!(drawn.contains("line 1"), columns > 5 && rows > 2, "{drawn:?}");
            assert_eq!(drawn.contains("foot"), columns > 3 && rows > 0, "{drawn:?}");
            assert!(!drawn.contains("\x1b[2J"), "a process may call itself what it likes");
        }
    }
}
