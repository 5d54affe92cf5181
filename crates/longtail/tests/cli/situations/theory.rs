//! Which order of service a server has.

use model::{Discipline, Verdict};

use super::{Caused, Cells, Row, Seen};
use crate::lab::{Lab, Running, free_port, has};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "a Puma up to 6 with keep-alive, four times its threads",
            how: "puma -w2 -t2:2, 100 ms a request",
            expected: at_its_limit(Discipline::Turns),
            cause: || swept_up_to_6("-w2 -t2:2 -d0.1 --multiples 4"),
        },
        Row {
            name: "a Puma up to 6 with a connection for each request, four times its threads",
            how: "the same with -k",
            expected: at_its_limit(Discipline::Shared),
            cause: || swept_up_to_6("-w2 -t2:2 -d0.1 --multiples 4 -k"),
        },
    ]
}

fn at_its_limit(discipline: Discipline) -> Cells {
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("threads"), discipline: Some(discipline) }
}

/// A sweep of the Puma on PATH.
fn swept_up_to_6(words: &str) -> Caused {
    if !has("puma") {
        return Caused::Skipped("puma is not on PATH".to_owned());
    }
    let seen = swept(words);
    let major = seen.1.version.as_ref().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(..=6) => Caused::Seen(seen.0),
        _ => Caused::Skipped("this Puma is of another age".to_owned()),
    }
}

/// A sweep with these words, and the server that it was of.
pub(super) fn swept(words: &str) -> (Seen, model::ServerFacts) {
    let lab = Lab::new();
    let words = format!("sweep {words} --for 9s --warm-up 2s --no-calibrate");
    let ended = Running::start(lab.longtail(&words).env("PUMA_TEST_PORT", free_port().to_string())).end();
    let study = lab.study();
    (Seen::sweep(&ended, &study), study.server)
}
