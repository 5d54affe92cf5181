//! All that is printed: results to stdout, progress to stderr where that is a terminal.

use std::io::{self, IsTerminal as _, Write as _};

/// Prints to stdout; a reader that has gone is no error.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    clear();
    let _ = writeln!(io::stderr().lock(), "bench: {text}");
}

/// What goes on, in place of what went on; nothing where nobody looks.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }
}

/// Takes that line away.
pub(crate) fn clear() {
    progress("");
}
