//! How wide text is: on a terminal, in a pipe, and with `--width`.

use std::process::Stdio;

use testkit::study;

use crate::lab::{LONGTAIL, Lab, Running, has};

/// A shell's line on a terminal of 80 columns, whose name it leaves in the file `tty`; without what goes to stderr, which is the
/// progress.
fn on_a_terminal(lab: &Lab, words: &str) -> Running {
    let line = format!("tty > tty; stty cols 80; {LONGTAIL} {words} 2> /dev/null");
    let mut command = lab.program("script");
    command.args(["-q", "-c", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
    Running::start(&mut command)
}

fn can_have_a_terminal() -> bool {
    has("script") && has("stty")
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

fn kept(lab: &Lab) {
    lab.write("study.json", &report::json::write(&study::judged().into()));
}

#[test]
fn a_report_fits_its_terminal_and_is_whole_in_a_pipe() {
    if !can_have_a_terminal() {
        return;
    }
    let lab = Lab::new();
    kept(&lab);
    let whole = lab.run("report study.json").with_code(0).stdout;
    let narrow = on_a_terminal(&lab, "report study.json").end().with_code(0).stdout;
    assert!(widest(&narrow) <= 80, "{narrow}");
    assert!(narrow.contains("no room at 80 columns for p10 ms, "), "{narrow}");
    let asked = on_a_terminal(&lab, "report study.json --width 0").end().with_code(0).stdout;
    assert_eq!(asked.replace('\r', ""), whole);
    let markdown = lab.run("report study.json --format markdown").with_code(0).stdout;
    let on_terminal = on_a_terminal(&lab, "report study.json --format markdown").end().with_code(0).stdout;
    assert_eq!(on_terminal.replace('\r', ""), markdown);
}

#[test]
fn a_width_is_kept_to_in_a_pipe_too() {
    let lab = Lab::new();
    kept(&lab);
    assert!(widest(&lab.run("report study.json").with_code(0).stdout) > 150);
    for columns in [80, 100, 120] {
        let narrow = lab.run(&format!("report study.json --width {columns}")).with_code(0).stdout;
        assert!(widest(&narrow) <= columns, "{narrow}");
        assert!(narrow.lines().any(|line| line.starts_with("!  4.00")), "{narrow}");
    }
}

#[test]
fn a_width_that_nothing_fits_is_refused() {
    let lab = Lab::new();
    let refused = lab.run("report --width 39").with_code(2);
    assert!(refused.stderr.contains("40 columns or more, or 0 for all of it, however wide"), "{}", refused.stderr);
}

#[test]
fn a_prediction_fits_its_terminal() {
    if !can_have_a_terminal() {
        return;
    }
    let lab = Lab::new();
    let words = "predict -w4 -t5:5 --service 200ms --rate 80/s --objective \"p99 < 2s\"";
    let narrow = on_a_terminal(&lab, words).end().with_code(0).stdout;
    assert!(widest(&narrow) <= 80, "{narrow}");
    for figures in ["wait, ms", "response time, ms", "max req/s"] {
        assert!(narrow.contains(figures), "{figures}: {narrow}");
    }
}

/// Whoever makes the window wider while a sweep goes on has rows under the head that was printed.
#[test]
fn the_rows_of_a_sweep_are_as_its_head_was() {
    if !can_have_a_terminal() {
        return;
    }
    let lab = Lab::new();
    let sweep = "sweep --server builtin -w2 -t2:2 -d0.01 --for 200ms --warm-up 0 --multiples 1,2,3,4";
    let mut terminal = on_a_terminal(&lab, sweep);
    terminal.until(|said| said.contains("% max"));
    let tty = std::fs::read_to_string(lab.path("tty")).unwrap();
    // Where the sweep has ended meanwhile there is no terminal any more.
    _ = lab.program("stty").args(["-F", tty.trim(), "cols", "200"]).stderr(Stdio::null()).status();
    let said = terminal.end().with_code(0).stdout;
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    let head = lines.iter().position(|line| line.contains("% max")).unwrap();
    let rows = &lines[head + 1..=head + 4];
    let width = |line: &str| line.chars().count();
    assert!(rows.iter().all(|row| width(row) == width(lines[head]) && width(row) <= 80), "{said}");
    assert!(widest(&said) <= 80, "{said}");
}
