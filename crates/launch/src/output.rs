//! What a server wrote to stdout and stderr: its first and its last lines, in bounded memory.
//!
//! Whatever it writes is read, so that it never blocks; what is in the middle of much is counted and forgotten.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::one_line;

/// Lines kept of the beginning, and as many of the end.
const KEPT: usize = 200;
/// Bytes kept of one line.
const LINE_LIMIT: usize = 4096;

/// What a server has written so far, stdout and stderr as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    first: Vec<String>,
    last: VecDeque<String>,
    total: u64,
}

impl Output {
    /// The lines that were kept: the first 200 and the last 200, in order.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.first.iter().chain(&self.last).map(String::as_str)
    }

    /// How many lines it wrote.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many lines between the first and the last were not kept.
    pub fn forgotten(&self) -> u64 {
        self.total - (self.first.len() + self.last.len()) as u64
    }

    /// The line that most likely says why a server ended: the first that names an error, else the last that is not
    /// blank. A Ruby backtrace ends with the frame that matters least.
    pub(crate) fn telling_line(&self) -> Option<String> {
        let names_an_error = |line: &&str| line.contains("Error") || line.contains("error:") || line.contains("ERROR");
        let last = || self.lines().rev().find(|line| !line.trim().is_empty());
        self.lines().find(names_an_error).or_else(last).map(one_line)
    }

    fn push(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
        self.total += 1;
        if self.first.len() < KEPT {
            self.first.push(line);
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

/// An output in the making, shared by the thread that reads it and those who look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript(Arc<Mutex<Draft>>);

#[derive(Debug, Default)]
struct Draft {
    whole: Output,
    /// The line that has no end yet, at most [`LINE_LIMIT`] bytes of it.
    partial: Vec<u8>,
    finished: bool,
}

impl Draft {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) =
                piece.split_last().filter(|(last, _)| **last == b'\n').map_or((piece, false), |(_, t)| (t, true));
            let room = LINE_LIMIT - self.partial.len();
            self.partial.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                self.whole.push(&self.partial);
                self.partial.clear();
            }
        }
    }
}

impl Transcript {
    /// Reads to the end, however much there is. Meant for a thread of its own.
    pub(crate) fn read(&self, mut from: impl Read) {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => self.with(|draft| draft.take(&bytes[..n])),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.with(|draft| draft.finished = true);
    }

    /// What there is so far, an unfinished line included.
    pub(crate) fn so_far(&self) -> Output {
        self.with(|draft| {
            let mut output = draft.whole.clone();
            if !draft.partial.is_empty() {
                output.push(&draft.partial);
            }
            output
        })
    }

    /// Whether all was read that will ever be written.
    pub(crate) fn finished(&self) -> bool {
        self.with(|draft| draft.finished)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Draft) -> T) -> T {
        // Lines are pushed whole, so a panic elsewhere cannot have left a draft half changed.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Output {
        let transcript = Transcript::default();
        transcript.read(text);
        assert!(transcript.finished());
        transcript.so_far()
    }

    #[test]
    fn a_short_output_is_kept_whole_and_an_unfinished_line_too() {
        let output = read(b"one\r\ntwo\n\nlast");
        assert_eq!(output.lines().collect::<Vec<_>>(), ["one", "two", "", "last"]);
        assert_eq!((output.total(), output.forgotten()), (4, 0));
    }

    #[test]
    fn of_a_long_output_the_middle_is_forgotten_and_counted() {
        let text: Vec<String> = (0..100_000).map(|n| format!("line {n}")).collect();
        let output = read(text.join("\n").as_bytes());
        let lines: Vec<_> = output.lines().collect();
        assert_eq!((lines.len(), output.total(), output.forgotten()), (400, 100_000, 99_600));
        assert_eq!([lines[0], lines[199], lines[200], lines[399]], ["line 0", "line 199", "line 99800", "line 99999"]);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let output = read(&vec![b'x'; 10_000_000]);
        assert_eq!(output.lines().map(str::len).collect::<Vec<_>>(), [LINE_LIMIT]);
    }

    #[test]
    fn the_line_that_names_the_error_tells_more_than_the_last() {
        let boot = b"Puma starting\n/x.rb:1:in `require': cannot load such file (LoadError)\n\tfrom /y.rb:2\n";
        assert_eq!(read(boot).telling_line().unwrap(), "/x.rb:1:in `require': cannot load such file (LoadError)");
        assert_eq!(read(b"starting\ngave up\n\n").telling_line().unwrap(), "gave up");
        assert_eq!(read(b"\n\n").telling_line(), None);
    }
}
