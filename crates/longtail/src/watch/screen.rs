//! The terminal while a watch is drawn: the answer, and with `d` all figures. It is given back as it was: at the end, at an error,
//! and when we panic.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};

use super::answer::AnswerLine;
use crate::mistake::Mistake;

/// Whether there is somebody who looks and can press a key.
pub(crate) fn is_a_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The terminal in raw mode, on its other screen; dropped it is as it was before.
pub(crate) struct WatchScreen {
    terminal: DefaultTerminal,
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
        let terminal = ratatui::try_init().map_err(|why| {
            // What of it was done already.
            let _ = ratatui::try_restore();
            unusable(&why)
        })?;
        Ok(WatchScreen { terminal, is_full, is_stale: true, scroll: 0 })
    }

    /// Draws these lines.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn draw(&mut self, lines: &[AnswerLine]) -> Result<(), Mistake> {
        self.is_stale = false;
        self.scroll = self.scroll.min(lines.len().saturating_sub(1) as u16);
        let keys = if self.is_full { "d the answer   arrows scroll" } else { "d all figures" };
        let (scroll, foot) = (self.scroll, format!("  q quits   {keys}"));
        self.terminal.draw(|frame| draw(frame, lines, scroll, &foot)).map_err(|why| unusable(&why))?;
        Ok(())
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
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(true),
                KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Ok(true),
                KeyCode::Char('d' | 'D') => (self.is_full, self.scroll) = (!self.is_full, 0),
                KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
                KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(20),
                KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(20),
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(frame: &mut Frame<'_>, lines: &[AnswerLine], scroll: u16, foot: &str) {
    let [upper, lower] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let styled = |line: &AnswerLine| {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Line::styled(line.text.clone(), if line.is_bold { bold } else { Style::new() })
    };
    frame.render_widget(Paragraph::new(lines.iter().map(styled).collect::<Vec<_>>()).scroll((scroll, 0)), upper);
    frame.render_widget(Paragraph::new(foot), lower);
}

fn unusable(why: &io::Error) -> Mistake {
    Mistake::Flags(format!("this terminal cannot be drawn on ({why}): use --plain"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        let lines: Vec<_> = (0..40).map(|n| AnswerLine::plain(format!("line {n}"))).collect();
        for (width, height) in [(1, 1), (5, 3), (22, 2), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &lines, 7, "foot")).unwrap();
            let first: String = (0..width).map(|x| terminal.backend().buffer()[(x, 0)].symbol()).collect();
            assert!(height == 1 || "line 7".starts_with(first.trim_end()) || first.starts_with("line 7"), "{first}");
        }
    }
}
