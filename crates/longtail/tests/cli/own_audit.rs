//! `longtail audit` of studies that longtail has just written: an honest one is possible, a changed one is found out.

use serde_json::{Value, json};
use sink::SinkBody;

use crate::lab::{Lab, has};
use crate::load::{load, sink, url, word};
use crate::schemas::assert_keeps;

/// The audit of the one study there is.
fn audited(lab: &Lab) -> Value {
    let file = word(&lab.studies()[0]);
    let all = serde_json::from_str(&lab.run(&format!("audit --format json {file}")).with_code(0).stdout).unwrap();
    assert_keeps("audit", &all);
    all
}

fn assert_possible(lab: &Lab, runs: usize) {
    let all = audited(lab);
    assert_eq!(all.as_array().unwrap().len(), runs);
    for one in all.as_array().unwrap() {
        // A busy machine may make it doubtful, never impossible: that would have been another exit code.
        assert_ne!(one["verdict"]["is"], "unchecked", "{one:#}");
        assert_eq!(one["claim"]["tool"], "longtail");
    }
}

/// `--json` is what it was called before the others had `--format json`.
#[test]
fn the_older_word_for_json_says_the_same() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    load(&lab, &format!("-n 20 -c 2 {}", url(&sink))).with_code(0);
    let file = word(&lab.studies()[0]);
    for command in [format!("audit {file}"), "predict --service 10ms -c 8".to_owned()] {
        let printed = |flag: &str| lab.run(&format!("{command} {flag}")).with_code(0).stdout;
        assert_eq!(printed("--json"), printed("--format json"));
        assert_eq!(printed("--format text"), printed(""));
        assert_ne!(printed(""), printed("--json"));
        let both = lab.run(&format!("{command} --json --format text")).with_code(2);
        assert_eq!((both.stderr.lines().count(), both.stdout.as_str()), (1, ""), "{}", both.stderr);
    }
    let plot = lab.run("predict --service 10ms --rate 8/s --plot --format json").with_code(2);
    assert_eq!(plot.stderr, "longtail: --plot is drawn for people: leave it out, or --format json\n");
}

#[test]
fn every_kind_of_load_is_possible() {
    for words in [
        "-c 4 --for 1s --warm-up 1s",
        "-n 100 -c 7 -k",
        "--rate 200/s --for 1s",
        "--rate 200/s --for 1s -c 1 --late skip --arrivals poisson",
        "-c 3 --for 1s --think 10ms",
        "-c 2 --for 1s --pipeline 4",
        "-n 50 --for 60s",
    ] {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
        load(&lab, &format!("{words} {}", url(&sink))).with_code(0);
        assert_possible(&lab, 1);
    }
}

#[test]
fn every_kind_of_sweep_is_possible() {
    for words in ["--for 1s --multiples 1,3 --anatomy", "-R 10 --multiples 1,2 --repeat 2"] {
        let lab = Lab::new();
        lab.run(&format!("sweep --server builtin -w2 -t2 -d0.01 --no-calibrate {words}")).with_code(0);
        assert_possible(&lab, if words.contains("repeat") { 4 } else { 2 });
    }
}

#[test]
fn a_changed_figure_is_found_out() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    load(&lab, &format!("-n 40 -c 4 {}", url(&sink))).with_code(0);
    let text = std::fs::read_to_string(&lab.studies()[0]).unwrap();
    let mut study: Value = serde_json::from_str(&text).unwrap();
    study["run"]["tally"]["counts"]["200"] = json!(41);
    let file = lab.write("changed.json", &study.to_string());
    let ended = lab.run(&format!("audit {}", word(&file))).with_code(1);
    assert!(ended.stdout.contains("IMPOSSIBLE") && ended.stdout.contains("41"), "{}", ended.stdout);
    let broken = lab.write("broken.json", &text.replace("\"tally\"", "\"tall\""));
    let ended = lab.run(&format!("audit {}", word(&broken))).with_code(2);
    assert!(ended.stderr.contains("not a whole study") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}

#[test]
fn what_hey_claimed_must_be_what_it_printed() {
    if !has("hey") {
        return;
    }
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    load(&lab, &format!("--with hey -c 2 -n 100 {}", url(&sink))).with_code(0);
    let mut study: Value = serde_json::from_str(&std::fs::read_to_string(&lab.studies()[0]).unwrap()).unwrap();
    let honest = lab.write("honest.json", &study.to_string());
    let ended = lab.run(&format!("audit {}", word(&honest)));
    assert!(!ended.stdout.contains("fails figures as printed"), "{}", ended.stdout);
    study["run"]["claim"]["max_ns"] = json!(1);
    let file = lab.write("changed.json", &study.to_string());
    let ended = lab.run(&format!("audit {}", word(&file))).with_code(1);
    assert!(ended.stdout.contains("figures as printed: max_ns: 1 stands there"), "{}", ended.stdout);
}
