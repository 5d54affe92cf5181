//! How results leave a command: the answer by default, each other format by its flag and by the ending of a file.

use std::fs;

use model::Study;
use serde_json::Value;
use sink::SinkBody;
use testkit::{bodies, load, study};

use crate::lab::{Lab, end};

fn lab_with(study: impl Into<Study>) -> Lab {
    let lab = Lab::new();
    lab.write("x.study.json", &report::json::write(&study.into()));
    lab
}

fn every_study() -> Vec<Study> {
    let sweeps = study::every().map(Study::from);
    let loads = load::every().into_iter().map(Study::from);
    sweeps.into_iter().chain(loads).chain(bodies::every().map(Study::from)).collect()
}

#[test]
fn a_pipe_gets_the_answer_without_colour_and_within_100_columns() {
    for study in every_study() {
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

#[test]
fn every_file_is_what_its_flag_prints() {
    let lab = lab_with(study::canonical());
    let files = "-o a.study.json -o a.json -o a.md -o a.csv -o a.txt";
    let answer = lab.answer(&format!("report x.study.json {files}")).with_code(0).stdout;
    let read = |name: &str| fs::read_to_string(lab.path(name)).unwrap();
    let printed = |words: &str| lab.answer(&format!("report x.study.json {words}")).with_code(0).stdout;
    assert_eq!(read("a.study.json"), read("x.study.json"));
    assert_eq!(read("a.txt"), answer);
    for (file, flag, older) in [
        ("a.json", "--json", "--format json"),
        ("a.md", "--markdown", "--format markdown"),
        ("a.csv", "--csv", "--format csv"),
    ] {
        assert_eq!(read(file), printed(flag), "{flag}");
        assert_eq!(read(file), printed(older), "{older}");
    }
    printed("--full -o all.txt");
    assert_eq!(read("all.txt"), printed("--full"));
}

#[test]
fn a_summary_is_no_study() {
    let lab = lab_with(load::closed());
    lab.answer("report x.study.json -o a.json").with_code(0);
    let summary: Value = serde_json::from_str(&fs::read_to_string(lab.path("a.json")).unwrap()).unwrap();
    assert_eq!(
        (summary["schema"].as_str(), summary["study"].as_str()),
        (Some("longtail.summary/1"), Some("x.study.json"))
    );
    for command in ["report a.json", "predict --rate 1/s --service a.json"] {
        let ended = lab.answer(command).with_code(2);
        assert_eq!(ended.stderr, "longtail: 'a.json' is a summary; report reads the study: x.study.json\n");
    }
}

#[test]
fn a_command_prints_what_report_prints_of_its_study() {
    let (lab, sink) = (Lab::new(), crate::load::sink(SinkBody::Ok));
    let load = format!("load -n 200 -c 3 --no-calibrate -o load.json -o load.csv {}", crate::load::url(&sink));
    let sweep = "sweep --server builtin -t1:1 -d0.001 -R20 --multiples 1,2 --no-calibrate";
    for (words, layout) in [
        (load.clone(), ""),
        (format!("{sweep} -o sweep.json"), ""),
        (sweep.to_owned(), "--style puma"),
        (sweep.to_owned(), "--markdown"),
        (sweep.to_owned(), "--json"),
    ] {
        let ended = lab.answer(&format!("{words} {layout}")).with_code(0);
        assert_eq!(lab.answer(&format!("report {layout}")).with_code(0).stdout, ended.stdout);
        assert!(!layout.is_empty() || ended.stdout.lines().count() <= 30, "{}", ended.stdout);
    }
    for file in ["load.json", "sweep.json"] {
        let summary: Value = serde_json::from_str(&fs::read_to_string(lab.path(file)).unwrap()).unwrap();
        assert!(lab.studies().iter().any(|path| summary["study"] == *path.to_string_lossy()), "{summary}");
    }
    assert_eq!(fs::read_to_string(lab.path("load.csv")).unwrap().lines().count(), 2);
}
