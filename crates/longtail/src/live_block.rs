//! The last lines of the terminal at stderr, which a long command draws again and again and takes
//! away at the end.
//!
//! The cursor stays behind the last of them, so that what others write there (the `^C` of a key, a
//! shell's `Stopped`) begins below what is drawn. Every line fits the terminal, and before it is
//! drawn anew we count the rows that the old lines take at the present width: a terminal that was
//! made narrower breaks them. Rows are erased one by one, because tmux keeps what stood on a screen
//! that is erased as a whole. Whoever writes a line to stderr takes the block away first ([`lift`]).

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use model::{Clock as _, Nanos, SystemClock};
use rustix::termios::{LocalModes, tcgetattr};

use crate::terminal::{self, TerminalSize};

/// Room behind the last line, where a terminal shows `^C`, also if it is pressed twice.
pub(crate) const ROOM_FOR_KEYS: usize = 5;
/// After this long a terminal has shown a key whose signal has arrived.
const KEY_IS_SHOWN: Nanos = Nanos::from_millis(10);
/// Columns of each line that is drawn.
static DRAWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Whether stderr is a terminal that can move its cursor.
pub(crate) fn can_be_drawn() -> bool {
    let kind = std::env::var_os("TERM");
    io::stderr().is_terminal() && kind.is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

/// Draws these lines in place of those that were drawn before. While the terminal is stopped
/// (Ctrl-S) nothing is drawn.
pub(crate) fn draw(lines: &[String], size: TerminalSize) {
    if !terminal::takes_more(io::stderr(), Nanos::ZERO) {
        return;
    }
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let most = usize::from(size.rows).max(1);
    let lines = &lines[lines.len().saturating_sub(most)..];
    let shown: Vec<String> =
        lines.iter().map(|line| cut(&terminal::harmless(line), size.columns)).collect();
    let text = redrawing(rows_of(&drawn, size.columns), &shown);
    *drawn = shown.iter().map(|line| line.chars().count()).collect();
    terminal::write_to_stderr(&text);
}

/// Takes the block away, so that something else can be written. It is drawn again below that.
pub(crate) fn lift() {
    // Whoever holds it is drawing, or has panicked while it drew.
    let Ok(mut drawn) = DRAWN.try_lock() else { return };
    if !drawn.is_empty() {
        let text = redrawing(rows_of(&drawn, TerminalSize::of_stderr().columns), &[]);
        if terminal::write_to_stderr(&text) {
            drawn.clear();
        }
    }
}

/// Whether lines are drawn now, so that the cursor is behind the last of them.
fn is_drawn() -> bool {
    // Whoever holds it is drawing.
    DRAWN.try_lock().map_or(true, |drawn| !drawn.is_empty())
}

/// Begins a new line where the terminal at stderr shows the `^C` of a key, so that what is printed
/// next does not stand behind it. Lines that are drawn leave room for it and are taken away.
pub(crate) fn end_line_of_key() {
    let shown = LocalModes::ECHO | LocalModes::ECHOCTL;
    let is_shown = tcgetattr(io::stderr()).is_ok_and(|modes| modes.local_modes.contains(shown));
    if is_shown && !is_drawn() && terminal::takes_more(io::stderr(), Nanos::ZERO) {
        // The kernel sends the signal first, and shows the key right after it.
        SystemClock::start().sleep(KEY_IS_SHOWN);
        terminal::write_to_stderr("\n");
    }
}

/// As much of a line as there is room for, where a terminal is narrower than any that we lay out for.
fn cut(line: &str, columns: u16) -> String {
    line.chars().take(columns.into()).collect()
}

/// How many rows of a terminal these lines take; `drawn` has the columns of each.
fn rows_of(drawn: &[usize], columns: u16) -> usize {
    drawn.iter().map(|line| line.div_ceil(usize::from(columns).max(1)).max(1)).sum()
}

/// The output that draws these lines over `rows` rows, in the last of which is the cursor.
fn redrawing(rows: usize, lines: &[String]) -> String {
    // Goes before the text: after a line of full width it would erase that line's last character.
    const ERASE_ROW: &str = "\x1b[K";
    let mut text = "\r".to_owned();
    if rows > 1 {
        _ = write!(text, "\x1b[{}A", rows - 1);
    }
    text += ERASE_ROW;
    text += &lines.join(&format!("\r\n{ERASE_ROW}"));
    let below = rows.saturating_sub(lines.len().max(1));
    for _ in 0..below {
        text += "\r\n";
        text += ERASE_ROW;
    }
    if below > 0 {
        // Back to the end of the last line.
        let column = lines.last().map_or(0, |line| line.chars().count()) + 1;
        _ = write!(text, "\x1b[{below}A\x1b[{column}G");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_narrower_terminal_breaks_take_more_rows() {
        assert_eq!(rows_of(&[], 80), 0);
        assert_eq!(rows_of(&[79, 0, 80], 80), 3);
        assert_eq!(rows_of(&[79, 0, 80], 40), 5);
    }

    #[test]
    fn fewer_lines_erase_the_rows_below_them() {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(redrawing(0, &lines(&["ab", "c"])), "\r\x1b[Kab\r\n\x1b[Kc");
        assert_eq!(redrawing(2, &lines(&["ab", "c"])), "\r\x1b[1A\x1b[Kab\r\n\x1b[Kc");
        assert_eq!(
            redrawing(3, &lines(&["ab"])),
            "\r\x1b[2A\x1b[Kab\r\n\x1b[K\r\n\x1b[K\x1b[2A\x1b[3G"
        );
        assert_eq!(redrawing(2, &[]), "\r\x1b[1A\x1b[K\r\n\x1b[K\x1b[1A\x1b[1G");
    }
}
