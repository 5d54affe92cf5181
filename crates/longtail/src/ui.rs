//! Printing: results to stdout, progress and errors to stderr. (The screen of `watch`, logs to
//! stdout and pipes between processes are elsewhere.)
//!
//! If stderr is not read (Ctrl-S, or a pipe into a pager), lines are dropped, and the measurement goes
//! on. Only results on stdout wait for their reader, and they are on disk by then. What a long command
//! shows meanwhile is drawn by `progress`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anstyle::{AnsiColor, Style};
use model::Nanos;
use report::Width;
use report::answer::Emphasis;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::exit::{Exit, Mistake};
use crate::live_block;
use crate::secrets;

/// How long to wait for the reader of stderr; after that not again until it reads on.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(1);
/// A pipe that is ready takes this many bytes without blocking (`PIPE_BUF`, pipe(7)).
pub(crate) const PIECE: usize = 4096;

/// Lines that were not written to stderr because nobody read it.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// How often writing to stdout began or ended, so it is odd during a write.
static PRINTS: AtomicU64 = AtomicU64::new(0);

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

/// Set once writing to stdout has failed: [`Exit::Fine`] if its reader is gone (`| head`), which is
/// no error, or [`Exit::Unwritten`], as on a full disk.
static STDOUT_LOST: OnceLock<Exit> = OnceLock::new();

/// Prints to stdout. After a failure nothing more is printed: see [`stdout_lost`].
pub(crate) fn print(text: &str) {
    write_out(&harmless(text));
}

fn write_out(text: &str) {
    if stdout_lost().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        live_block::lift();
    }
    PRINTS.fetch_add(1, Ordering::SeqCst);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    PRINTS.fetch_add(1, Ordering::SeqCst);
    if let Err(error) = written {
        let has_reader = error.kind() != io::ErrorKind::BrokenPipe;
        if has_reader {
            note(&format!("stdout cannot be written ({error}): give it a place with room"));
        }
        let _ = STDOUT_LOST.set(Exit::Unwritten.if_so(has_reader));
    }
}

/// The exit code once stdout cannot be written any more. Work that is only done to be printed may end
/// then.
pub(crate) fn stdout_lost() -> Option<Exit> {
    STDOUT_LOST.get().copied()
}

/// A number for the write to stdout that is in progress. The same number twice means that nobody has
/// read meanwhile.
pub(crate) fn print_in_progress() -> Option<u64> {
    Some(PRINTS.load(Ordering::SeqCst)).filter(|prints| prints % 2 == 1)
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

/// Prints a value to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("its keys are strings");
    print(&(text + "\n"));
}

/// Applies `--color`; `auto` leaves it to `NO_COLOR`, `CLICOLOR_FORCE` and the terminal.
pub(crate) fn choose_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Prints to stdout, in colour if wanted. Text with control characters is printed without colour.
pub(crate) fn print_painted(
    plain: &str,
    painted: impl FnOnce(&dyn Fn(Emphasis, &str) -> String) -> String,
) {
    let is_colored = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    if is_colored && matches!(harmless(plain), Cow::Borrowed(_)) {
        write_out(&painted(&in_color));
    } else {
        print(plain);
    }
}

/// Bad is red, doubtful yellow, the conclusion bold. Words say the same, for those without colours.
fn in_color(emphasis: Emphasis, text: &str) -> String {
    let style = match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Strong => Style::new().bold(),
        Emphasis::Doubtful => AnsiColor::Yellow.on_default(),
        Emphasis::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
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

/// The width of the terminal; any width if stdout is none, or its width is not known.
pub(crate) fn terminal_width() -> Width {
    let size = TerminalSize::of(io::stdout()).ok().filter(|size| size.columns > 0);
    size.map_or(Width::ANY, |size| Width::of(size.columns.into()))
}

/// Each of these lines, broken at spaces where it is too wide.
pub(crate) fn broken(text: &str, width: Width) -> String {
    let mut broken = String::new();
    for line in text.split('\n') {
        if width.fits(line.chars().count()) {
            broken.extend([line, "\n"]);
        } else if line.starts_with(' ') {
            report::wrap(&mut broken, width, "", line);
        } else {
            broken += &report::broken(line, width);
        }
    }
    broken
}

/// The width of the terminal at stderr; any width if it is none.
fn width_of_stderr() -> Width {
    let is_terminal = io::stderr().is_terminal();
    if is_terminal { Width::of(TerminalSize::of_stderr().columns.into()) } else { Width::ANY }
}

/// Writes a line to stderr, broken at spaces where a terminal is narrower. It is no error if nobody
/// reads it. While its reader has stopped, lines are dropped, and their number is reported when it
/// reads on.
pub(crate) fn say(line: &str) {
    live_block::lift();
    let left_out = LEFT_OUT.load(Ordering::Relaxed);
    if left_out > 0 && takes_more(io::stderr(), Nanos::ZERO) {
        LEFT_OUT.store(0, Ordering::Relaxed);
        write_to_stderr(&format!(
            "longtail: {left_out} lines are missing here, because stderr was not read\n"
        ));
    }
    if !write_to_stderr(&broken(&harmless(line), width_of_stderr())) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
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

/// Tells the user something on stderr. Secrets are masked, which a server or another tool may repeat.
pub(crate) fn note(text: &str) {
    say(&format!("longtail: {}", secrets::without_ours(text)));
}

/// Reports a mistake on stderr: the server's last lines, if any, then one line of ours.
pub(crate) fn complain(mistake: &Mistake) {
    for line in mistake.last_lines() {
        say(&format!("  | {}", secrets::masked_line(line)));
    }
    note(&mistake.to_string());
}

/// Reports a part that failed; its exit code. Other parts are done all the same.
pub(crate) fn exit_of_part(done: Result<(), Mistake>) -> Exit {
    match done {
        Ok(()) => Exit::Fine,
        Err(mistake) => {
            complain(&mistake);
            mistake.exit()
        }
    }
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
