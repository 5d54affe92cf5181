//! What goes over the wire, and what comes back: the headers that change the protocol, answers that
//! are broken, handshakes that fail. The cases are tables, `wire/*.txt`; each says what a user must
//! be told who has nothing but the message.

mod servers;

use std::collections::BTreeSet;
use std::fs;

use model::Study;
use testkit::http::{KeptRequest, Receiver};

use self::servers::{CannedServer, HandshakeServer};
use crate::lab::{Ended, LONGTAIL, Lab, end, split};

/// The rows of a table, but for empty lines and remarks.
fn rows(name: &str) -> Vec<String> {
    let path = format!("{}/tests/cli/wire/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|row| !row.is_empty() && !row.starts_with('#')).map(str::to_owned).collect()
}

/// Text with \r, \n, \t and \xNN in it.
fn unescaped(text: &str) -> String {
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t");
    let mut parts = text.split("\\x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push(char::from(u8::from_str_radix(&part[..2], 16).unwrap()));
        out += &part[2..];
    }
    out
}

/// Whether the text has each part that `&&` joins: one of those that `||` joins; `!`: not this.
fn missing_part<'a>(text: &str, parts: &'a str) -> Option<&'a str> {
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
    let load = ["load", "--no-calibrate", "-n", "2", "-c", "1"];
    end(lab.program(LONGTAIL).args(load).args(words))
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
            assert_eq!(missing_part(&said, &parts), None, "{row}: {said}");
            assert!(requests.is_empty(), "{row}: {requests:?}");
            continue;
        }
        // 3 where a busy machine is why no figure is the server's.
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{row}: {ended:?}");
        assert_eq!(requests.len(), 2, "{row}: {ended:?}");
        for request in &requests {
            assert_eq!(missing_part(request, &parts), None, "{row}: {request}");
        }
        let Study::Load(study) = lab.kept() else { panic!("{row}: no load") };
        let closes = kind == "closes";
        assert!(closes || kind == "sent", "{row}");
        assert_eq!(study.plan.load.keep_alive, !closes, "{row}");
        assert_eq!(study.run.tally.connections_opened, if closes { 2 } else { 1 }, "{row}");
        let label = report::labels::load(&study.plan);
        assert_eq!(label.contains("a new connection for each request"), closes, "{row}: {label}");
    }
}

/// All that the user is told, in one line.
fn told(ended: &Ended) -> String {
    let words = ended.stdout.split_whitespace().chain(ended.stderr.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// What no sentence for a person has in it: names of Rust's, and seconds since 1970.
fn assert_plain(said: &str, row: &str) {
    for part in
        ["UnknownIssuer", "NotValid", "CaUsed", "Context", "InvalidCertificate", "Some(", "Err("]
    {
        assert!(!said.contains(part), "{row}: {part}: {said}");
    }
    let is_seconds =
        |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    assert!(!said.split(|char: char| !char.is_alphanumeric()).any(is_seconds), "{row}: {said}");
}

#[test]
fn of_a_broken_answer_is_told_what_came() {
    let rows = rows("answers");
    assert!(rows.len() >= 40, "{}", rows.len());
    for row in rows {
        let (steps, outcome) = row.rsplit_once(" => ").unwrap();
        let (outcomes, sentence) = outcome.split_once(' ').unwrap();
        let server = CannedServer::start(steps);
        let lab = Lab::new();
        let never_ends = steps.ends_with("; wait") || steps.ends_with("; forever");
        let length = match steps {
            _ if never_ends => "-n 2 --timeout 300ms",
            _ if steps.ends_with("; tenth") => "-n 45 --full",
            _ => "-n 4",
        };
        let words = format!("load --no-calibrate -c 1 {length} http://{}/", server.address);
        let said = told(&lab.answer(&words));
        assert_eq!(missing_part(&said, sentence), None, "{row}: {said}");
        let Study::Load(study) = lab.kept() else { panic!("{row}: no load") };
        let counts = study.run.tally.counts.iter();
        let ended: BTreeSet<String> =
            counts.map(|(outcome, _)| model::counts::name(outcome)).collect();
        let may_end = outcomes.split(',').map(str::to_owned).collect();
        assert!(ended.is_subset(&may_end), "{row}: {ended:?}");
    }
}

#[test]
fn of_a_handshake_that_fails_is_told_why_and_the_remedy_works() {
    let rows = rows("handshakes");
    assert!(rows.len() >= 20, "{}", rows.len());
    for row in rows {
        let parts: Vec<&str> = row.split("=>").map(str::trim).collect();
        let [server, words, sentence] = parts[..] else { panic!("{row}") };
        let lab = Lab::new();
        let server = HandshakeServer::start(server, &lab);
        let port = server.address.port().to_string();
        let words = words.replace("{port}", &port);
        let (scheme, words) = match words.strip_prefix("http") {
            Some(rest) if !words.contains("://") => ("http", rest.to_owned()),
            _ => ("https", words),
        };
        let url = if words.contains("://") {
            String::new()
        } else {
            format!("{scheme}://{}/", server.address)
        };
        let words = format!("load --no-calibrate -n 2 -c 1 --timeout 500ms {words} {url}");
        let words = if sentence == "good" { words.replace("500ms", "60s") } else { words };
        let ended = lab.answer(&words);
        let said = told(&ended);
        if sentence == "good" {
            let Study::Load(study) = lab.kept() else { panic!("{row}: no load") };
            assert_eq!(study.run.tally.counts.good(), 2, "{row}: {said}");
        } else {
            assert_eq!(
                missing_part(&said, &sentence.replace("{port}", &port)),
                None,
                "{row}: {said}"
            );
            assert_plain(&ended.stderr, &row);
        }
    }
}
