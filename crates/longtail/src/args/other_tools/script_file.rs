//! The text of a script of another tool, which is read and never run, and the parts between its
//! brackets.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

/// Longer scripts are not read.
const LONGEST: u64 = 1 << 20;

/// The text of a script, which `-` has on stdin; `None` if it is no file, or too long.
pub(super) fn text_of(script: &Path) -> Option<String> {
    if script == Path::new("-") {
        static ON_STDIN: OnceLock<Option<String>> = OnceLock::new();
        return ON_STDIN.get_or_init(text_on_stdin).clone();
    }
    let file = File::open(script).ok().filter(|file| {
        file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST)
    })?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What is piped into stdin, if it ends soon: an answer does not wait for it.
pub(super) fn text_piped() -> Option<String> {
    const SOON: Duration = Duration::from_millis(300);
    static PIPED: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let (send, received) = mpsc::channel();
        std::thread::spawn(move || send.send(text_on_stdin()));
        received.recv_timeout(SOON).ok().flatten()
    };
    PIPED.get_or_init(read).clone()
}

/// A script that is piped into stdin; nobody types one there.
fn text_on_stdin() -> Option<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut text = String::new();
    stdin.lock().take(LONGEST).read_to_string(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

/// What stands between these separators up to the bracket that closes what is open, and what is behind
/// that bracket; `None` if none closes it. `length_of_quoted`: of the quoted text or the comment that
/// begins there, if one does; brackets and separators in it do not count.
pub(super) fn parts<'t>(
    text: &'t str,
    separators: &[char],
    length_of_quoted: impl Fn(&str) -> Option<usize>,
) -> Option<(Vec<&'t str>, &'t str)> {
    let mut parts = Vec::new();
    let mut depth = 0_u32;
    let mut begin = 0;
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let first = rest.chars().next()?;
        let is_end = depth == 0 && ['}', ']', ')'].contains(&first);
        match first {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if is_end || depth == 0 && separators.contains(&first) {
            let part = text[begin..at].trim();
            // A separator may stand behind the last one.
            if !part.is_empty() {
                parts.push(part);
            }
            begin = at + 1;
        }
        if is_end {
            return Some((parts, &rest[1..]));
        }
        at += length_of_quoted(rest).unwrap_or(first.len_utf8());
    }
}
