//! The terminal itself: its size, text that cannot control it, and writes that do not wait for a
//! reader who has stopped.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;

/// How long to wait for the reader of stderr; after that not again until it reads on.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(1);
/// A pipe that is ready takes this many bytes without blocking (`PIPE_BUF`, pipe(7)).
pub(crate) const PIECE: usize = 4096;

/// Lines that were not written to stderr because nobody read it.
pub(crate) static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Makes characters visible, as JSON writes them, that control a terminal, reverse text or hide in
/// it. They may come from a server's stderr, a header, a git branch, a study or a statsd name, and
/// what we print is shown on terminals. In JSON the string stays the same.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_active(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, direction marks and overrides, line and paragraph separators, and characters
/// without width, such as tags, annotations and byte order marks; but not joiners, which make emoji.
fn is_active(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Waits up to `time` until `out` can be written without blocking; whether it can. It also can if its
/// reader is gone: then the write fails.
pub(crate) fn takes_more(out: impl AsFd, time: Nanos) -> bool {
    let seconds = i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: seconds, tv_nsec: (time.0 % 1_000_000_000).cast_signed() };
    loop {
        match poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&time)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            // If that is not known, write.
            Err(_) => return true,
        }
    }
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl TerminalSize {
    /// That of a terminal that does not know its own, as a serial line until somebody sets it.
    const USUAL: TerminalSize = TerminalSize { columns: 80, rows: 24 };

    /// The terminal's size, as it says it.
    ///
    /// # Errors
    /// If it is no terminal.
    pub(crate) fn of(terminal: impl AsFd) -> rustix::io::Result<TerminalSize> {
        let size = tcgetwinsize(terminal)?;
        Ok(TerminalSize { columns: size.ws_col, rows: size.ws_row })
    }

    /// The size of the terminal at stderr.
    pub(crate) fn of_stderr() -> TerminalSize {
        let size = TerminalSize::of(io::stderr()).ok();
        size.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(TerminalSize::USUAL)
    }
}

/// Writes to stderr as long as that does not block; whether all was written.
pub(crate) fn write_to_stderr(text: &str) -> bool {
    let mut out = io::stderr().lock();
    text.as_bytes().chunks(PIECE).all(|piece| {
        let has_stopped = LEFT_OUT.load(Ordering::Relaxed) > 0;
        let is_read = takes_more(io::stderr(), if has_stopped { Nanos::ZERO } else { PATIENCE });
        if is_read {
            let _ = out.write_all(piece);
        }
        is_read
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        for (text, shown) in [
            ("as it is: ✔ ±5 %\n\tindented\n", "as it is: ✔ ±5 %\n\tindented\n"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\u{9b}2J", "\\u009b2J"),
            ("\u{202e}moc.elpmaxe", "\\u202emoc.elpmaxe"),
            ("a\u{200f}b\u{61c}c\u{feff}", "a\\u200fb\\u061cc\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        let json = serde_json::to_string("a\u{9b}b\u{7f}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&harmless(&json)).unwrap(), "a\u{9b}b\u{7f}");
    }
}
