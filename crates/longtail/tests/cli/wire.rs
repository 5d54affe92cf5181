//! What goes over the wire, and what comes back: the headers that change the protocol, answers that
//! are broken, handshakes that fail. The cases are tables, `wire/*.txt`; each says what a user must
//! be told who has nothing but the message.

use std::fs;

use model::Study;
use testkit::http::{KeptRequest, Receiver};

use crate::lab::{Ended, LONGTAIL, Lab, end, split};

/// The rows of a table, but for empty lines and remarks.
fn rows(name: &str) -> Vec<String> {
    let path = format!("{}/tests/cli/wire/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|row| !row.is_empty() && !row.starts_with('#')).map(str::to_owned).collect()
}

fn unescaped(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t")
}

/// Whether the text has each part that `&&` joins: one of those that `||` joins; `!`: not this.
fn lacks<'a>(text: &str, parts: &'a str) -> Option<&'a str> {
    let has = |part: &str| match part.strip_prefix('!') {
        Some(absent) => !text.contains(&unescaped(absent)),
        None => part.split(" || ").any(|one| text.contains(&unescaped(one))),
    };
    parts.split(" && ").filter(|part| !part.is_empty()).find(|part| !has(part))
}

/// Runs longtail with these words, of which {url} and {port} are the server's.
fn run(lab: &Lab, words: &str, receiver: &Receiver) -> Ended {
    let port = receiver.address.port().to_string();
    let mut words: Vec<String> =
        split(words).iter().map(|word| unescaped(word).replace("{port}", &port)).collect();
    let is_told = words.iter().any(|word| word == "{url}");
    if words.first().is_some_and(|word| word == "NO-URL") {
        words.remove(0);
    } else if !is_told {
        words.push("{url}".to_owned());
    }
    let words = words.iter().map(|word| word.replace("{url}", &receiver.url()));
    let is_others = words.clone().any(|word| word == "--as");
    let length: &[&str] = if is_others { &[] } else { &["-n", "2", "-c", "1"] };
    end(lab.program(LONGTAIL).args(["load", "--no-calibrate"]).args(length).args(words))
}

#[test]
fn a_header_that_changes_the_protocol_is_understood_or_refused() {
    let rows = rows("headers");
    assert!(rows.len() >= 60, "{}", rows.len());
    for row in rows {
        let greet = |request: &KeptRequest| {
            let body = if request.head.starts_with("HEAD ") { "" } else { "hello" };
            format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}").into_bytes()
        };
        let (receiver, lab) = (Receiver::by(greet), Lab::new());
        let (words, outcome) = row.rsplit_once(" => ").unwrap();
        let (words, file) = words.split_once(" <<< ").unwrap_or((words, ""));
        let file = file.replace("{port}", &receiver.address.port().to_string());
        // JSON has escapes of its own.
        let is_json = file.starts_with('{');
        lab.write(
            "requests",
            &if is_json { file.replace("}\\n", "}\n") } else { unescaped(&file) },
        );
        lab.write("body", "hello");
        let (kind, parts) = outcome.split_once(' ').unwrap_or((outcome, ""));
        let parts = parts.replace("{port}", &receiver.address.port().to_string());
        let ended = run(&lab, words, &receiver);
        let requests = receiver.requests();
        if kind == "refused" {
            let said = ended.refused("");
            assert_eq!(lacks(&said, &parts), None, "{row}: {said}");
            assert!(requests.is_empty(), "{row}: {requests:?}");
            continue;
        }
        // 3 where a busy machine is why no figure is the server's.
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{row}: {ended:?}");
        assert_eq!(requests.len(), 2, "{row}: {ended:?}");
        for request in &requests {
            assert_eq!(lacks(request, &parts), None, "{row}: {request}");
        }
        let Study::Load(study) = lab.kept() else { panic!("{row}: no load") };
        let closes = kind == "closes";
        assert!(closes || kind == "sent", "{row}");
        assert_eq!(study.plan.keep_alive, !closes, "{row}");
        assert_eq!(study.run.tally.connections_opened, if closes { 2 } else { 1 }, "{row}");
        let label = report::labels::load(&study.plan);
        assert_eq!(label.contains("a new connection for each request"), closes, "{row}: {label}");
    }
}
