//! Owns the terminal while a watch is drawn, and gives it back as it was: at the end, at an error, and when we panic.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::{WatchBoard, WatchTarget, screen};
use crate::mistake::Mistake;

/// Whether there is somebody who looks and can press a key.
pub(crate) fn is_a_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The terminal in raw mode, on its other screen; dropped it is as it was before.
pub(crate) struct WatchScreen {
    terminal: DefaultTerminal,
}

impl WatchScreen {
    /// Takes the terminal. A panic gives it back too, before it is told.
    ///
    /// # Errors
    /// Where it is none that can be drawn on.
    pub(crate) fn take() -> Result<WatchScreen, Mistake> {
        ratatui::try_init().map(|terminal| WatchScreen { terminal }).map_err(|why| {
            // What of it was done already.
            let _ = ratatui::try_restore();
            unusable(&why)
        })
    }

    /// Draws the board.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(crate) fn draw(
        &mut self,
        target: &WatchTarget,
        board: &WatchBoard,
        source: &'static str,
    ) -> Result<(), Mistake> {
        self.terminal.draw(|frame| screen::draw(frame, target, board, source)).map_err(|why| unusable(&why))?;
        Ok(())
    }

    /// Whether a key that ends it has been pressed, at once.
    ///
    /// # Errors
    /// Where the terminal is gone.
    #[expect(clippy::unused_self, reason = "without the terminal in raw mode there are no keys to read")]
    pub(crate) fn wants_to_end(&self) -> Result<bool, Mistake> {
        while event::poll(Duration::ZERO).map_err(|why| unusable(&why))? {
            let Event::Key(key) = event::read().map_err(|why| unusable(&why))? else { continue };
            let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if key.kind != KeyEventKind::Release
                && (is_control_c || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
            {
                return Ok(true);
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

fn unusable(why: &io::Error) -> Mistake {
    Mistake::Flags(format!("this terminal cannot be drawn on ({why}): use --plain"))
}
