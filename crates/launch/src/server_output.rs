//! What a server writes to stdout and stderr: all of it is read, so that the server never blocks; of a
//! long output the middle is dropped.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// This many lines are kept of the beginning, and as many of the end.
const KEPT: usize = 200;
/// The most bytes that are kept of one line.
const LINE_LIMIT: usize = 4096;

/// What a server has written so far, stdout and stderr mixed as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOutput {
    first: Vec<String>,
    last: VecDeque<String>,
    /// The line that has no end yet, at most [`LINE_LIMIT`] bytes of it.
    partial: Vec<u8>,
    is_finished: bool,
}

impl ServerOutput {
    /// The lines that were kept: the first 200 and the last 200, in order.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.first.iter().chain(&self.last).map(String::as_str)
    }

    /// The line that most likely says why a server ended: the first that names an error, else the
    /// last that is not blank. A Ruby backtrace ends with the frame that matters least.
    pub(crate) fn telling_line(&self) -> Option<String> {
        let names_an_error = |line: &&str| {
            line.contains("Error") || line.contains("error:") || line.contains("ERROR")
        };
        let last = || self.lines().rev().find(|line| !line.trim().is_empty());
        let line = self.lines().find(names_an_error).or_else(last)?;
        Some(line.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, has_end) =
                piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LINE_LIMIT - self.partial.len();
            self.partial.extend_from_slice(&text[..text.len().min(room)]);
            if has_end {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
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

/// An output that is still being read, shared by the thread that reads it and others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript(Arc<Mutex<ServerOutput>>);

impl Transcript {
    /// Reads to the end, however long that is. Runs on a thread of its own.
    pub(crate) fn read(&self, mut from: impl Read) {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => self.with(|output| output.take(&bytes[..n])),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.with(|output| output.is_finished = true);
    }

    /// What there is so far, an unfinished line included.
    pub(crate) fn so_far(&self) -> ServerOutput {
        let mut output = self.with(|output| output.clone());
        if !output.partial.is_empty() {
            output.end_line();
        }
        output
    }

    /// Whether the output has ended and all of it was read.
    pub(crate) fn is_finished(&self) -> bool {
        self.with(|output| output.is_finished)
    }

    fn with<T>(&self, act: impl FnOnce(&mut ServerOutput) -> T) -> T {
        // Lines are added whole, so a panic elsewhere cannot have left half of one.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> ServerOutput {
        let transcript = Transcript::default();
        transcript.read(text);
        assert!(transcript.is_finished());
        transcript.so_far()
    }

    #[test]
    fn of_a_long_output_the_middle_is_dropped_and_of_a_long_line_the_end() {
        let lines = |text: &[u8]| read(text).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(b"one\r\ntwo\n\nlast"), ["one", "two", "", "last"]);
        let text: Vec<String> = (0..100_000).map(|n| format!("line {n}")).collect();
        let kept = lines(text.join("\n").as_bytes());
        assert_eq!((&kept[..200], &kept[200..]), (&text[..200], &text[99_800..]));
        assert_eq!(lines(&vec![b'x'; 10_000_000]), ["x".repeat(LINE_LIMIT)]);
    }

    #[test]
    fn the_line_that_names_the_error_tells_more_than_the_last() {
        let cases: [(&[u8], Option<&str>); 3] = [
            (
                b"Puma starting\nx.rb:1: cannot load such file (LoadError)\n\tfrom y\n",
                Some("x.rb:1: cannot load such file (LoadError)"),
            ),
            (b"starting\ngave up\n\n", Some("gave up")),
            (b"\n\n", None),
        ];
        for (text, line) in cases {
            assert_eq!(read(text).telling_line().as_deref(), line);
        }
    }
}
