//! `longtail audit` as a command: its formats, and what it refuses.

use sink::SinkBody;

use crate::lab::{Lab, end};
use crate::load::{load, sink, url, word};

const H2LOAD: &str = include_str!("../../../audit/tests/fixtures/real/h2load.txt");

#[test]
fn the_older_words_for_json_say_the_same() {
    let lab = Lab::new();
    let file = lab.write("h2load.txt", H2LOAD);
    for command in [format!("audit {}", word(&file)), "predict --service 10ms -c 8".to_owned()] {
        let printed = |flag: &str| lab.run(&format!("{command} {flag}")).with_code(0).stdout;
        assert_eq!(printed("--json"), printed("--format json"));
        assert_eq!(printed("--format text"), printed(""));
        assert_ne!(printed(""), printed("--json"));
    }
}

#[test]
fn a_longtail_study_is_for_report() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    load(&lab, &format!("-n 20 -c 2 {}", url(&sink))).with_code(0);
    let file = word(&lab.studies()[0]);
    let ended = lab.run(&format!("audit {file}")).with_code(2);
    assert_eq!(
        ended.stderr,
        format!("longtail: '{file}' is a longtail study, which carries its verdict: longtail report {file} shows it\n")
    );
    let mut command = lab.longtail("audit -");
    command.stdin(std::fs::File::open(&file).unwrap());
    end(&mut command).refused("longtail report -");
}
