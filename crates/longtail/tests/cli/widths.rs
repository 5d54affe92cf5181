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
    let narrow = on_a_terminal(&lab, "report study.json --full").end().with_code(0).stdout;
    assert!(widest(&narrow) <= 80, "{narrow}");
    let asked = on_a_terminal(&lab, "report study.json --full --width 0").end().with_code(0).stdout;
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
