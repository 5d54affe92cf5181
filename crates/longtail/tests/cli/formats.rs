//! How results leave a command: in colour or without, as wide as a terminal, into a pipe whose reader has gone, to shells. What they are is
//! in `scenarios/report.txt`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use model::Study;
use testkit::{load, study};

use crate::lab::{LONGTAIL, Lab, Running, end, has};

fn lab_with(study: impl Into<Study>) -> Lab {
    let lab = Lab::new();
    lab.write("x.study.json", &report::json::write(&study.into()));
    lab
}

#[test]
fn a_pipe_gets_the_answer_without_colour_and_within_100_columns() {
    for study in testkit::every_study() {
        let lab = lab_with(study);
        let answer = lab.answer("report x.study.json").with_code(0).stdout;
        assert!(!answer.contains('\u{1b}'), "{answer}");
        let widest = answer.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 100 || answer.contains("  Next   "), "{answer}");
    }
}

#[test]
fn colour_adds_codes_and_nothing_else() {
    for study in [Study::from(study::judged()), Study::from(load::failing()), Study::from(load::open_poisson())] {
        let lab = lab_with(study);
        let plain = lab.answer("report x.study.json").with_code(0).stdout;
        let colored = lab.answer("report x.study.json --color always").with_code(0).stdout;
        assert!(colored.contains("\u{1b}["), "{colored}");
        let codes = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"];
        assert_eq!(codes.iter().fold(colored, |text, code| text.replace(code, "")), plain);
        assert_eq!(lab.answer("report x.study.json --color never").with_code(0).stdout, plain);
        let mut forced = lab.longtail("report x.study.json --style longtail");
        forced.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
        let full = end(&mut forced).with_code(0).stdout;
        assert!(!full.contains('\u{1b}'), "{full}");
    }
}

#[test]
fn text_from_outside_that_would_control_a_terminal_is_printed_without_colour() {
    let mut study = load::closed();
    study.plan.url = "http://h/\u{1b}]0;title\u{7}".to_owned();
    let answer = lab_with(study).answer("report x.study.json --color always").with_code(0).stdout;
    assert!(!answer.contains(['\u{1b}', '\u{7}']), "{answer}");
}

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

#[test]
fn a_report_fits_its_terminal_and_is_whole_in_a_pipe() {
    if !can_have_a_terminal() {
        return;
    }
    let lab = lab_with(study::judged());
    let whole = lab.run("report x.study.json").with_code(0).stdout;
    let narrow = on_a_terminal(&lab, "report x.study.json --full").end().with_code(0).stdout;
    assert!(widest(&narrow) <= 80, "{narrow}");
    let asked = on_a_terminal(&lab, "report x.study.json --full --width 0").end().with_code(0).stdout;
    assert_eq!(asked.replace('\r', ""), whole);
    let markdown = lab.run("report x.study.json --format markdown").with_code(0).stdout;
    let on_terminal = on_a_terminal(&lab, "report x.study.json --format markdown").end().with_code(0).stdout;
    assert_eq!(on_terminal.replace('\r', ""), markdown);
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

const SWEEP: &str = "sweep --server builtin -t1:1 -d0.001 -R20 --multiples 1,2,3 --no-calibrate";

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

#[test]
fn shells_and_man_have_nothing_to_say_against_what_is_generated() {
    let bash = "source bash-completion/completions/longtail.bash; COMP_WORDS=(longtail sweep --generator-); COMP_CWORD=2; \
                _longtail longtail --generator- sweep; echo \"${COMPREPLY[@]}\"";
    let zsh = "fpath=($PWD/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; autoload -Uz +X _longtail; \
               print $_comps[longtail]";
    let fish = "source fish/vendor_completions.d/longtail.fish; complete -C 'longtail wat'; complete -C 'longtail sweep --generator-'";
    let man = "for page in longtail longtail-sweep longtail-load longtail-watch; do \
               man --warnings -E UTF-8 -l man/man1/$page.1 | grep -ow EXAMPLES; done";
    for (program, shell, script, said) in [
        ("bash", "bash --norc", bash, "--generator-threads"),
        ("zsh", "zsh -f", zsh, "_longtail"),
        ("fish", "fish --no-config", fish, "watch --generator-threads"),
        ("man", "sh", man, "EXAMPLES EXAMPLES EXAMPLES EXAMPLES"),
    ] {
        let Some(lab) = Lab::with(program) else { continue };
        lab.run("generate-docs share").with_code(0);
        let mut words = shell.split(' ');
        let mut command = Command::new(words.next().unwrap());
        let read = command.args(words).args(["-c", script]).current_dir(lab.path("share")).output().unwrap();
        assert!(read.status.success() && read.stderr.is_empty(), "{program}: {read:?}");
        // Fish explains each behind a tabulator.
        let text = String::from_utf8(read.stdout).unwrap();
        let words: Vec<&str> = text.lines().filter_map(|line| line.trim().split('\t').next()).collect();
        assert_eq!(words.join(" "), said, "{program}");
    }
}

#[test]
fn a_name_that_is_no_text_is_written_to() {
    use std::os::unix::ffi::OsStrExt as _;
    let (lab, sink) = (Lab::new(), crate::load::sink(sink::SinkBody::Counter));
    let name = std::ffi::OsStr::from_bytes(b"not\xfftext.study.json");
    let mut command = lab.longtail("load -c 1 -n 5 --no-calibrate");
    let ended = end(command.arg(crate::load::url(&sink)).arg("-o").arg(name)).with_code(0);
    assert!(ended.stdout.contains("not\u{fffd}text.study.json"), "{}", ended.stdout);
    assert!(fs::read_dir(lab.path("")).unwrap().flatten().any(|entry| entry.file_name() == name));
}
