//! Scenarios: what a user types, and what must be there then. Each file of `scenarios/` is a list of them; `scenarios/load.txt` begins with
//! the words that they are written in.
//!
//! After each one, whatever it says: every kept study conserves its requests, the sinks of this process have counted what the loads did, and
//! no process, no temporary file and no listener is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Nanos, Study};
use rustix::process::Signal;
use serde_json::Value;
use sink::{Sink, SinkBody};
use testkit::clock::eventually;
use testkit::http::Receiver;

use crate::lab::{self, Ended, LONGTAIL, Lab, PATIENCE, Running, free_port, ledger_warnings, split};
use crate::load::{self, sink_at, slow_sink};
use crate::puma::{has_ipv6, has_ssl};

/// What {answer} says where the scenario has no answer.
const GREETING: &str = "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello";

/// So many go on at once.
const AT_ONCE: usize = 3;

/// Plays each scenario of the text.
fn hold(text: &str) {
    let all: Vec<&str> = text.split("\n== ").skip(1).collect();
    assert!(!all.is_empty());
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = std::panic::catch_unwind(|| Stage::play(scenario));
                    failed.fetch_add(usize::from(played.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "scenarios failed, each with what is said above");
}

/// A command line as a shell reads it: settings, then the words after `longtail`.
pub(crate) fn settings_and_words(line: &str) -> (Vec<(String, String)>, Vec<String>) {
    let is_name = |name: &str| name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    let setting = |word: &String| {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name))?;
        Some((name.to_owned(), value.to_owned()))
    };
    let words = split(line);
    let settings: Vec<_> = words.iter().map_while(setting).collect();
    let words = words[settings.len()..].to_vec();
    (settings, words)
}

/// A scenario that is being played.
struct Stage {
    lab: Lab,
    /// What a word in braces stands for.
    places: BTreeMap<&'static str, String>,
    sinks: Vec<Sink>,
    receiver: Receiver,
    servers: Vec<Running>,
    running: Option<Running>,
    ended: Option<Ended>,
    port: u16,
}

impl Stage {
    fn play(scenario: &str) {
        let mut lines = scenario.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        let name = lines.next().unwrap();
        let answer = scenario.lines().find_map(|line| line.strip_prefix("answer")).unwrap_or(GREETING);
        let (lab, port, receiver) =
            (Lab::new(), free_port(), Receiver::answering(unescaped(answer.trim_start()).leak()));
        let of_crates = |folder: &str| format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
        let places = BTreeMap::from([
            ("{port}", port.to_string()),
            ("{free}", free_port().to_string()),
            ("{answer}", receiver.address.to_string()),
            ("{taken}", receiver.address.port().to_string()),
            ("{version}", env!("CARGO_PKG_VERSION").to_owned()),
            ("{longtail}", LONGTAIL.to_owned()),
            ("{lab}", lab.path("").display().to_string()),
            ("{goldens}", of_crates("report/tests/golden")),
            ("{fixtures}", of_crates("audit/tests/fixtures")),
        ]);
        let mut stage =
            Stage { lab, places, sinks: Vec::new(), receiver, servers: Vec::new(), running: None, ended: None, port };
        while let Some(line) = lines.next() {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = stage.filled(rest);
            match verb {
                "needs" if !rest.split(' ').all(is_there) => return,
                "needs" | "answer" => {}
                "file" | "script" => {
                    let mut text = String::new();
                    while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                        text += &stage.filled(line.strip_prefix("| ").unwrap_or_default());
                        text.push('\n');
                    }
                    if verb == "file" {
                        stage.lab.write(&rest, &text)
                    } else {
                        stage.lab.executable(&rest, &text)
                    };
                }
                "study" => {
                    let (of, name) = rest.split_once(' ').unwrap();
                    stage.lab.write(name, &report::json::write(&made(of)));
                }
                "link" => {
                    let (name, target) = rest.split_once(' ').unwrap();
                    std::os::unix::fs::symlink(target, stage.lab.path(name)).unwrap();
                }
                "serve" => stage.serve(&rest),
                "$" | "&" => {
                    let running = stage.start(&rest);
                    if verb == "&" {
                        stage.running = Some(running);
                    } else {
                        stage.ended = Some(running.end());
                        let is_said = |line: &&str| line.starts_with("exit ") || line.starts_with("refused ");
                        let own =
                            lines.clone().take_while(|line| !line.starts_with(['$', '&'])).any(|line| is_said(&line));
                        let code = stage.ended().status.code();
                        assert!(own || code == Some(0), "{name}: {rest}: {:?}", stage.ended());
                    }
                }
                _ => {
                    let why = stage.wrong(verb, &rest);
                    assert!(why.is_none(), "{name}: {line}: {}\n{:#?}", why.unwrap_or_default(), stage.ended);
                }
            }
        }
        stage.assert_sound(name);
    }

    /// The text with what its words in braces stand for; a sink begins where it is named first.
    fn filled(&mut self, text: &str) -> String {
        for name in ["{ok}", "{counter}", "{slow}", "{slow-port}", "{tls}"] {
            if text.contains(name) && !self.places.contains_key(name) {
                let sink = match name {
                    "{ok}" => load::sink(SinkBody::Ok),
                    "{counter}" => load::sink(SinkBody::Counter),
                    "{tls}" => sink_at("tls://127.0.0.1:0", SinkBody::Ok),
                    _ => slow_sink(Nanos::from_millis(2)),
                };
                let address = sink.address();
                self.places
                    .insert(name, if name == "{slow-port}" { address.port().to_string() } else { address.to_string() });
                self.sinks.push(sink);
            }
        }
        self.places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn start(&self, line: &str) -> Running {
        let (line, input) = line.split_once(" <<< ").map_or((line, None), |(line, file)| (line, Some(file)));
        let (settings, words) = settings_and_words(line);
        let mut command = self.lab.program(LONGTAIL);
        if let Some(file) = input {
            command.stdin(fs::File::open(self.lab.path(file)).unwrap());
        }
        Running::start(command.env("PUMA_TEST_PORT", self.port.to_string()).args(words).envs(settings))
    }

    /// A server that the scenario starts by itself, until its end.
    fn serve(&mut self, line: &str) {
        let words = split(line);
        let server = Running::start(self.lab.program(&words[0]).args(&words[1..]));
        let listens = || probe::sockets::ServerListener::of_port(self.port).sample().unwrap().listening;
        eventually(PATIENCE, || server.said(), || listens().then_some(()));
        self.servers.push(server);
    }

    fn ended(&self) -> &Ended {
        self.ended.as_ref().expect("a command comes before what it must print")
    }

    /// What is wrong with what there is now.
    fn wrong(&mut self, verb: &str, rest: &str) -> Option<String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Some(running) = &mut self.running {
            match verb {
                "until" => {
                    let runs = || self.lab.kept_runs() as u64;
                    let answers = || self.sinks.iter().map(|sink| sink.ledger().answers).sum::<u64>();
                    let is_so = |said: &str| match first {
                        "out" => said.contains(&unescaped(more)),
                        "runs" => runs() > number(more),
                        "answers" => answers() > number(more),
                        "requests" => self.receiver.kept().len() as u64 > number(more),
                        "lines" => said.lines().count() as u64 > number(more),
                        "open" => {
                            u64::from(probe::sockets::ServerListener::of_port(self.port).sample().unwrap().open)
                                > number(more)
                        }
                        _ => self.lab.path(first).exists(),
                    };
                    running.until(is_so);
                    return None;
                }
                "send" => {
                    running.send(if rest == "INT" { Signal::INT } else { Signal::KILL });
                    return None;
                }
                _ => self.ended = self.running.take().map(Running::end),
            }
        }
        let ended = self.ended();
        let text = |of: &str| match of {
            "out" => ended.stdout.clone(),
            "err" => ended.stderr.clone(),
            file => fs::read_to_string(self.lab.path(file)).unwrap_or_else(|error| panic!("{file}: {error}")),
        };
        let found = |text: &str, parts: &str| {
            let has_all = |parts: &str| parts.split(" && ").all(|part| text.contains(&unescaped(part)));
            parts.split(" || ").any(has_all)
        };
        let is_right = match verb {
            "exit" if rest == "any" => ended.status.code().is_some(),
            "exit" => ended.status.code() == rest.parse().ok(),
            "refused" => {
                let is_line = ended.stderr.lines().filter(|line| !line.starts_with("  | ")).count() == 1;
                ended.status.code() == Some(2) && is_line && ended.stdout.is_empty() && found(&ended.stderr, rest)
            }
            "out" | "err" => found(&text(verb), rest),
            "out!" | "err!" => !found(&text(verb.trim_end_matches('!')), rest),
            "last" => found(ended.stderr.lines().last().unwrap_or_default(), rest),
            "in" => found(&text(first), more),
            "in!" => !found(&text(first), more),
            "lines" => text(first).lines().count() as u64 == number(more),
            "widest" => text(first).lines().all(|line| line.chars().count() as u64 <= number(more)),
            "same" if first == "as" => ended.stdout == text(more),
            "same" => ended.stdout == self.start(rest).end().with_code(0).stdout,
            "differs" => ended.stdout != self.start(rest).end().with_code(0).stdout,
            "json" => return unlike(&serde_json::from_str(&ended.stdout).unwrap(), rest),
            "kept" => return unlike(&serde_json::from_str(&text(&self.newest())).unwrap(), rest),
            "agreed" => ledger_warnings(&lab::of_sweep(lab::read(self.newest().as_ref()))).is_empty(),
            "secret" => self.studies().iter().all(|study| !text(&study.display().to_string()).contains(rest)),
            "absent" => !self.lab.path(rest).exists(),
            "studies" => self.studies().len() as u64 == number(rest),
            "got" if more.is_empty() => self.receiver.kept().len() as u64 == number(first),
            "got" | "got!" => {
                let request = &self.receiver.requests()[number(first) as usize];
                return (found(&request.to_lowercase(), more) != (verb == "got")).then(|| request.clone());
            }
            "served" => {
                let ledgers = || self.sinks.iter().map(Sink::ledger);
                let connections = ledgers().map(|ledger| ledger.connections).sum::<u64>();
                ledgers().map(|ledger| ledger.requests).sum::<u64>() == number(first)
                    && (more == "-" || connections == number(more))
            }
            _ => panic!("{verb} is no word of a scenario"),
        };
        (!is_right).then(String::new)
    }

    fn studies(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        self.lab.studies().into_iter().filter(is_one).collect()
    }

    /// The study that was kept last.
    fn newest(&self) -> String {
        let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        self.studies().into_iter().max_by_key(written).expect("a study").display().to_string()
    }

    /// What holds after every scenario.
    fn assert_sound(mut self, name: &str) {
        assert!(self.running.is_none(), "{name}: nobody looks at how it ends");
        for server in std::mem::take(&mut self.servers) {
            server.send(Signal::TERM);
            server.end();
        }
        // Connections, requests, bytes there, bytes back.
        let (mut ours, mut is_counted) = ([0; 4], !self.sinks.is_empty());
        for study in self.studies().iter().map(|path| lab::read(path)) {
            match study {
                Study::Load(study) if study.run.claim.is_none() => {
                    load::assert_conserved(&study);
                    let tally = &study.run.tally;
                    add(
                        &mut ours,
                        [tally.connections_opened, tally.all_requests(), tally.sent_bytes, tally.received_bytes],
                    );
                    is_counted &= tally.counts.failed() == 0 && !study.interrupted;
                }
                Study::Sweep(study) => {
                    study.runs.iter().filter(|run| run.claim.is_none()).for_each(lab::assert_conserved);
                }
                _ => is_counted = false,
            }
        }
        let mut theirs = [0; 4];
        for ledger in self.sinks.into_iter().map(Sink::stop) {
            assert!(ledger.bad_requests == 0 || !is_counted, "{name}: {ledger:?}");
            add(&mut theirs, [ledger.connections, ledger.requests, ledger.received_bytes, ledger.sent_bytes]);
        }
        assert!(
            !is_counted || ours == theirs,
            "{name}: connections, requests, bytes there and back: {ours:?}, {theirs:?}"
        );
        self.lab.assert_nothing_left(self.port);
    }
}

/// Whether this is on this machine.
fn is_there(need: &str) -> bool {
    match need {
        "ipv6" => has_ipv6(),
        "ssl" => has_ssl(),
        "bpf" => lab::can(probe::bpf::possible().is_ok(), "no BPF here"),
        program => lab::has(program),
    }
}

/// A study that is made and not measured.
fn made(name: &str) -> Study {
    match name {
        "judged" => testkit::study::judged().into(),
        "canonical" => testkit::study::canonical().into(),
        "bodies" => testkit::bodies::canonical().into(),
        "closed" => testkit::load::closed().into(),
        other => panic!("no study is called {other}"),
    }
}

fn add(sums: &mut [u64; 4], more: [u64; 4]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn unescaped(text: &str) -> String {
    let mut parts = text.replace("\\n", "\n").replace("\\r", "\r").split("\\x").map(str::to_owned).collect::<Vec<_>>();
    for part in &mut parts[1..] {
        let code = u8::from_str_radix(&part[..2], 16).unwrap();
        part.replace_range(..2, &char::from(code).to_string());
    }
    parts.concat()
}

/// What is wrong with the values at a path, such as `runs.*.connections = 4`: all that are there must be so.
fn unlike(whole: &Value, condition: &str) -> Option<String> {
    let [path, sign, expected] = condition.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{condition}") };
    let mut found = vec![whole];
    for step in path.split('.') {
        found = found
            .into_iter()
            .flat_map(|value| match (step, value) {
                ("*", Value::Array(all)) => all.iter().collect(),
                (_, Value::Array(all)) => {
                    vec![step.parse().ok().and_then(|at: usize| all.get(at)).unwrap_or(&Value::Null)]
                }
                _ => vec![value.get(step).unwrap_or(&Value::Null)],
            })
            .collect();
    }
    let numbers: Vec<f64> = expected.split(' ').filter_map(|word| word.parse().ok()).collect();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let holds = |value: &Value| match (sign, value.as_f64(), numbers.as_slice()) {
        ("=", Some(value), [number]) => (value - number).abs() < f64::EPSILON,
        ("=", ..) => *value == serde_json::from_str::<Value>(expected).unwrap(),
        ("!=", ..) => *value != serde_json::from_str::<Value>(expected).unwrap(),
        ("has", ..) => text(value).contains(expected),
        ("lacks", ..) => !value.is_null() && !text(value).contains(expected),
        (">", Some(value), [least]) => value > *least,
        ("<", Some(value), [most]) => value < *most,
        ("~", Some(value), [number, off]) => (value - number).abs() <= *off,
        _ => false,
    };
    (found.is_empty() || !found.iter().all(|value| holds(value))).then(|| format!("{found:?}"))
}

#[test]
fn loads() {
    hold(include_str!("scenarios/load.txt"));
}

#[test]
fn other_generators_and_what_they_printed() {
    hold(include_str!("scenarios/generators.txt"));
}

#[test]
fn sweeps() {
    hold(include_str!("scenarios/sweep.txt"));
}

#[test]
fn predictions_reports_and_sinks() {
    hold(include_str!("scenarios/report.txt"));
}
