//! Where the output goes: into a pipe, to a reader that has gone, never with a terminal's codes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::lab::{Lab, Running};

const SWEEP: &str = "sweep --server builtin -t1:1 -d0.001 -R20 --multiples 1,2,3 --no-calibrate";

#[test]
fn a_pipe_gets_plain_text() {
    let lab = Lab::new();
    let sweep = lab.run(SWEEP).with_code(0);
    for text in [&sweep.stdout, &sweep.stderr] {
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
    }
}

#[test]
fn a_reader_that_leaves_after_the_first_line_is_no_trouble() {
    let lab = Lab::new();
    for words in [SWEEP, "report", "report --format json", "sweep --help"] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut reader = BufReader::new(reader);
        let mut command = lab.longtail(words);
        let running = Running::start_as_is(command.stdout(writer).stderr(Stdio::piped()));
        drop(command);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        drop(reader);
        let ended = running.end().with_code(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
    assert_eq!(lab.study().runs.len(), 3, "the study goes on, and is kept");
}

#[test]
fn a_reader_of_both_streams_that_leaves_is_no_trouble() {
    let lab = Lab::new();
    for (words, code) in [(SWEEP, 0), ("report nothing.json", 2), ("sweep --help", 0)] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = lab.longtail(words);
        let running = Running::start_as_is(command.stdout(writer.try_clone().unwrap()).stderr(writer));
        drop((command, reader));
        running.end().with_code(code);
    }
    assert_eq!(lab.study().runs.len(), 3, "the study goes on, and is kept");
}
