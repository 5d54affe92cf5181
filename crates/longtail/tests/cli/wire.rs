//! What goes over the wire: headers that change the protocol, broken responses, failing handshakes.
//! The cases are tables, `wire/*.txt`, with what the message must tell a user who knows nothing
//! else.

mod servers;

use std::collections::BTreeSet;
use std::fs;

use model::Study;
use testkit::http::{KeptRequest, Receiver};

use self::servers::{CannedServer, HandshakeServer};
use crate::lab::{Ended, LONGTAIL, Lab, check_each, end, split};
use crate::scenarios::values::unescaped;

/// How many rows of a table are tried at the same time: most of each is waiting.
const AT_ONCE: usize = 8;

/// The rows of a table, without empty lines and comments.
fn rows(name: &str) -> Vec<String> {
    let path = format!("{}/tests/cli/wire/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|row| !row.is_empty() && !row.starts_with('#')).map(str::to_owned).collect()
}

/// The first part of `parts` that the text lacks. `&&` joins parts that must all be there, `||`
/// alternatives; `!` marks a part that must not be there.
fn missing_part<'a>(text: &str, parts: &'a str) -> Option<&'a str> {
    let has = |part: &str| match part.strip_prefix('!') {
        Some(absent) => !text.contains(&unescaped(absent)),
        None => part.split(" || ").any(|one| text.contains(&unescaped(one))),
    };
    parts.split(" && ").filter(|part| !part.is_empty()).find(|part| !has(part))
}

/// Runs longtail with these arguments, in which {url} and {port} stand for the server's.
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
fn headers_that_change_the_protocol_are_obeyed_or_refused() {
    let rows = rows("headers");
    assert!(rows.len() >= 60, "{}", rows.len());
    check_each(AT_ONCE, &rows, |row| {
        let greet = |request: &KeptRequest| {
            let body = if request.head.starts_with("HEAD ") { "" } else { "hello" };
            format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}").into_bytes()
        };
        let receiver = Receiver::by(greet);
        let lab = Lab::new();
        let (words, outcome) = row.rsplit_once(" => ").unwrap();
        let (words, file) = words.split_once(" <<< ").unwrap_or((words, ""));
        let file = file.replace("{port}", &receiver.address.port().to_string());
        // JSON has its own escapes.
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
            let printed = ended.refused("");
            assert_eq!(missing_part(&printed, &parts), None, "{row}: {printed}");
            assert!(requests.is_empty(), "{row}: {requests:?}");
            return;
        }
        // 3 if a busy machine spoiled the run.
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{row}: {ended:?}");
        assert_eq!(requests.len(), 2, "{row}: {ended:?}");
        for request in &requests {
            assert_eq!(missing_part(request, &parts), None, "{row}: {request}");
        }
        let Study::Load(study) = lab.kept() else { panic!("{row}: not a load") };
        let closes = kind == "closes";
        assert!(closes || kind == "sent", "{row}");
        assert_eq!(study.plan.load.keep_alive, !closes, "{row}");
        assert_eq!(study.run.tally.connections_opened, if closes { 2 } else { 1 }, "{row}");
        let label = report::labels::load(&study.plan);
        assert_eq!(label.contains("a new connection for each request"), closes, "{row}: {label}");
    });
}

/// All that longtail printed, in one line.
fn printed(ended: &Ended) -> String {
    let words = ended.stdout.split_whitespace().chain(ended.stderr.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that no sentence has Rust identifiers or seconds since 1970 in it.
fn assert_plain(printed: &str, row: &str) {
    for part in
        ["UnknownIssuer", "NotValid", "CaUsed", "Context", "InvalidCertificate", "Some(", "Err("]
    {
        assert!(!printed.contains(part), "{row}: {part}: {printed}");
    }
    let is_seconds =
        |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    assert!(
        !printed.split(|char: char| !char.is_alphanumeric()).any(is_seconds),
        "{row}: {printed}"
    );
}

#[test]
fn a_broken_response_is_described() {
    let rows = rows("answers");
    assert!(rows.len() >= 40, "{}", rows.len());
    check_each(AT_ONCE, &rows, |row| {
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
        let printed = printed(&lab.answer(&words));
        assert_eq!(missing_part(&printed, sentence), None, "{row}: {printed}");
        let Study::Load(study) = lab.kept() else { panic!("{row}: not a load") };
        let counts = study.run.tally.counts.iter();
        let ended: BTreeSet<String> =
            counts.map(|(outcome, _)| model::counts::name(outcome)).collect();
        let may_end = outcomes.split(',').map(str::to_owned).collect();
        assert!(ended.is_subset(&may_end), "{row}: {ended:?}");
    });
}

#[test]
fn a_failing_handshake_is_explained_and_the_advice_works() {
    let rows = rows("handshakes");
    assert!(rows.len() >= 20, "{}", rows.len());
    check_each(AT_ONCE, &rows, |row| {
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
        let printed = printed(&ended);
        if sentence == "good" {
            let Study::Load(study) = lab.kept() else { panic!("{row}: not a load") };
            assert_eq!(study.run.tally.counts.good(), 2, "{row}: {printed}");
        } else {
            assert_eq!(
                missing_part(&printed, &sentence.replace("{port}", &port)),
                None,
                "{row}: {printed}"
            );
            assert_plain(&ended.stderr, row);
        }
    });
}
