//! Scenarios: what a user types, and what must be there then. Each file of `scenarios/` is a list
//! of them; `scenarios/load.txt` begins with the words that they are written in.
//! `LONGTAIL_SCENARIO=PART` plays those that have this in their name.
//!
//! After each one, whatever it says: every kept study conserves its requests and its times, the
//! sinks of this process have counted what the loads did, and no process, no temporary file and no
//! listener is left.

pub(crate) mod laws;
mod stage;
pub(crate) mod values;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::{Clock as _, Diagnostic, Nanos, Study};
use rustix::process::{Pid, Signal, kill_process};
use sink::Sink;
use testkit::clock::{REAL_CLOCK, eventually};
use testkit::network::Way;

use crate::far::{Machines, on};
use crate::lab::{self, Lab, PATIENCE, Running, in_a_window, none_is_empty, sockets};
use crate::schemas::assert_keeps;

use laws::{assert_agreed, assert_exported, assert_followed, assert_logged, assert_posted};
use stage::{Quota, made};
pub(crate) use stage::{Stage, is_there};
use values::{number, unescaped, unlike};

/// So many go on at once.
const AT_ONCE: usize = 3;

/// Plays each scenario of a file.
fn hold(file: &str) {
    let path = format!("{}/tests/cli/scenarios/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let only = std::env::var("LONGTAIL_SCENARIO").unwrap_or_default();
    let all = text.split("\n== ").skip(1).flat_map(rows).flat_map(repeated);
    let all: Vec<String> = all.filter(|scenario| name(scenario).contains(&only)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = std::panic::catch_unwind(|| play(scenario));
                    failed.fetch_add(usize::from(played.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "scenarios failed, each with what is said above");
}

fn name(scenario: &str) -> &str {
    scenario.lines().next().unwrap_or_default()
}

/// The scenario once for each row of its table; itself where it has none.
fn rows(scenario: &str) -> Vec<String> {
    let Some((before, table)) = scenario.split_once("\neach ") else {
        return vec![scenario.to_owned()];
    };
    let (names, table) = table.split_once('\n').unwrap();
    let (rows, steps): (Vec<&str>, Vec<&str>) =
        table.lines().partition(|line| line.starts_with("- "));
    let text = format!("{before}\n{}\n", steps.join("\n"));
    let filled = |row: &str| {
        let cells = names.split(' ').zip(row[2..].split(" | "));
        let text = text.replacen('\n', &format!(": {}\n", &row[2..]), 1);
        cells.fold(text, |text, (name, cell)| text.replace(name, cell.trim()))
    };
    rows.into_iter().map(filled).collect()
}

/// As often as `make soak` plays it.
fn repeated(scenario: String) -> Vec<String> {
    let times = scenario
        .lines()
        .find_map(|line| line.strip_prefix("soak "))
        .filter(|_| lab::soaks())
        .map_or(1, number);
    vec![scenario; times as usize]
}

/// Plays a scenario; one that names a {window} again with a longer one, until each run has
/// requests.
fn play(scenario: &str) {
    let attempt = |window: &str| {
        let mut stage = Stage::new(scenario);
        stage.places.insert("{window}".to_owned(), window.to_owned());
        let played = stage.play(scenario.split_once('\n').map_or("", |(_, steps)| steps));
        stage.assert_sound();
        (!matches!(played, Played::WithoutRequests)).then_some(())
    };
    if scenario.contains("{window}") {
        in_a_window(attempt);
    } else {
        attempt("").expect("no window, and no run too short");
    }
}

/// Whether a process has a thread of this name.
fn has_thread(pid: u32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|comm| comm.trim_end() == name)
}

/// What a line that is no more about the command before it begins with.
const NEXT: [&str; 5] = ["$", "& ", "sh ", "send ", "until "];

/// How far a scenario came.
pub(crate) enum Played {
    /// To its end.
    Whole,
    /// This is not on this machine.
    Missing(String),
    /// To a run in a {window} that was too short.
    WithoutRequests,
}

impl Stage {
    /// Does what each line says, and holds what is there then against it.
    pub(crate) fn play(&mut self, steps: &str) -> Played {
        let mut lines =
            steps.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = self.filled(rest);
            match verb {
                "answer" | "soak" | "statsd" => {}
                "file" | "script" => {
                    let mut text = String::new();
                    while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                        text += &self.filled(line.strip_prefix("| ").unwrap_or_default());
                        text.push('\n');
                    }
                    let write = if verb == "file" { Lab::write } else { Lab::executable };
                    write(&self.lab, &rest, &text);
                }
                "$" | "sh" => {
                    self.ended = Some(self.start(verb, &rest).end());
                    let is_of_it = |line: &&str| !NEXT.iter().any(|verb| line.starts_with(verb));
                    let is_code =
                        |line: &str| line.starts_with("exit ") || line.starts_with("refused ");
                    let is_said = lines.clone().take_while(is_of_it).any(is_code);
                    let is_right = is_said || self.has_code(0);
                    assert!(is_right, "{}: {rest}: {:?}", self.name, self.ended);
                    let is_whole = || none_is_empty(self.newest_study().expect("a study").runs());
                    if line.contains("{window}")
                        && (self.ended().status.code() == Some(3) || !is_whole())
                    {
                        return Played::WithoutRequests;
                    }
                }
                _ => match self.act(verb, &rest) {
                    Err(missing) => return Played::Missing(missing),
                    Ok(true) => {}
                    Ok(false) => {
                        self.finish();
                        let why = self.wrong(verb, &rest);
                        let (name, ended) = (&self.name, &self.ended);
                        assert!(
                            why.is_none(),
                            "{name}: {line}: {}\n{ended:#?}",
                            why.unwrap_or_default()
                        );
                    }
                },
            }
        }
        Played::Whole
    }

    /// Does what this word says, where it is one that does something; an error is what this machine
    /// has not.
    fn act(&mut self, verb: &str, rest: &str) -> Result<bool, String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "needs" => {
                if let Some(missing) = rest.split_ascii_whitespace().find(|need| !is_there(need)) {
                    return Err(missing.to_owned());
                }
            }
            "wire" => {
                let way =
                    Way { delay: Duration::from_millis(number(first)), loses_every: number(more) };
                let machines = Machines::joined(way).ok_or("a network namespace")?;
                let there = on(&self.lab, &machines.there, "");
                let words = std::iter::once(there.get_program()).chain(there.get_args());
                let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
                self.places.insert("{there}".to_owned(), words.join(" "));
                self.machines = Some(machines);
            }
            "cut" | "mend" => self.machines.as_ref().expect("a wire").wire.cut(verb == "cut"),
            "quota" => {
                let quota = Quota::of(number(rest)).ok_or("a control group")?;
                self.places.insert("{quota}".to_owned(), quota.0.display().to_string());
                self.quota = Some(quota);
            }
            "study" => _ = self.lab.write(more, &report::json::write(&made(first))),
            "link" => std::os::unix::fs::symlink(more, self.lab.path(first)).unwrap(),
            "serve" => self.serve(rest),
            "beside" => {
                let running = self.start("sh", &format!("exec {rest}"));
                self.beside.push(running);
            }
            "&" => self.running = Some(self.start(verb, rest)),
            "until" => self.until(first, more),
            "get" => self.get(first, more),
            "packets" => self.packets(rest),
            "wait" => REAL_CLOCK.sleep(Nanos::from_millis(number(rest))),
            "kill" => {
                let words =
                    |pid: &Pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid()));
                let is_it = |pid: &Pid| {
                    words(pid).is_ok_and(|words| words.replace('\0', " ").contains(more))
                };
                let it = || self.lab.living().into_iter().find(is_it);
                kill_process(eventually(PATIENCE, || rest.to_owned(), it), signal(first)).unwrap();
            }
            "send" => {
                let running = self.running.as_mut().expect("something is running");
                running.send(signal(first));
                // Two that come at once are one.
                let has_ended = || {
                    running.send(signal(first));
                    running.has_ended().then_some(())
                };
                if more == "until it ends" {
                    eventually(PATIENCE, || "it goes on".to_owned(), has_ended);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Waits until there is something, which must be before the end of what is running.
    fn until(&mut self, what: &str, more: &str) {
        let most = || number(more);
        let answers = || self.sinks.iter().map(|sink| sink.ledger().answers).sum::<u64>();
        let sockets = || sockets(self.port);
        let pid = self.running.as_ref().map(Running::pid);
        let is_so = |said: &str| match what {
            "out" => said.contains(&unescaped(more)),
            "runs" => self.lab.kept_runs() as u64 > most(),
            "answers" => answers() > most(),
            "requests" => self.receiver.kept().len() as u64 > most(),
            "lines" => said.lines().count() as u64 > most(),
            "open" => u64::from(sockets().open) > most(),
            "accepted" => u64::from(sockets().open) > most() && sockets().accept_queue == 0,
            "waiting" => u64::from(sockets().accept_queue) > most(),
            "living" => self.lab.living().len() as u64 > most(),
            "thread" => pid.is_some_and(|pid| has_thread(pid, more)),
            file => self.lab.path(file).exists(),
        };
        match &mut self.running {
            Some(running) => running.until(is_so),
            None => eventually(PATIENCE, || format!("{what} {more}"), || is_so("").then_some(())),
        }
    }

    /// What is wrong with what there is now.
    fn wrong(&self, verb: &str, rest: &str) -> Option<String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let ended = self.ended();
        let text = |of: &str| match of {
            "out" => ended.stdout.clone(),
            "err" => ended.stderr.clone(),
            file => fs::read_to_string(self.lab.path(file))
                .unwrap_or_else(|error| panic!("{file}: {error}")),
        };
        let json = |of: &str| {
            serde_json::from_str(&text(of)).unwrap_or_else(|error| panic!("{error}: {}", text(of)))
        };
        let found = |text: &str, parts: &str| {
            let has_all =
                |parts: &str| parts.split(" && ").all(|part| text.contains(&unescaped(part)));
            parts.split(" || ").any(has_all)
        };
        let is_right = match verb {
            "exit" if rest == "any" => ended.status.code().is_some(),
            "exit" if rest == "signal" => ended.status.code().is_none(),
            "exit" => self.has_code(rest.parse().unwrap()),
            "refused" => {
                let is_line =
                    ended.stderr.lines().filter(|line| !line.starts_with("  | ")).count() == 1;
                ended.status.code() == Some(2)
                    && is_line
                    && ended.stdout.is_empty()
                    && found(&ended.stderr, rest)
            }
            "out" | "err" => found(&text(verb), rest),
            "out!" | "err!" => !found(&text(verb.trim_end_matches('!')), rest),
            "last" => found(ended.stderr.lines().last().unwrap_or_default(), rest),
            "in" => found(&text(first), more),
            "in!" => !found(&text(first), more),
            "lines" => text(first).lines().count() as u64 == number(more),
            "times" => {
                let (times, part) = more.split_once(' ').unwrap();
                text(first).matches(&unescaped(part)).count() as u64 == number(times)
            }
            "widest" => text(first)
                .lines()
                .all(|line| line.trim_end().chars().count() as u64 <= number(more)),
            // A terminal ends its lines otherwise.
            "same" if first == "as" => ended.stdout.replace('\r', "") == text(more),
            "same" => {
                ended.stdout.replace('\r', "") == self.start("$", rest).end().with_code(0).stdout
            }
            "differs" => ended.stdout != self.start("$", rest).end().with_code(0).stdout,
            "json" => return unlike(&json("out"), rest),
            "kept" => return unlike(&json(&self.newest().expect("a study")), rest),
            "secret" => self
                .studies()
                .iter()
                .all(|study| !text(&study.display().to_string()).contains(rest)),
            "absent" => !self.lab.path(rest).exists(),
            "studies" => self.studies().len() as u64 == number(rest),
            "left" => self.lab.living().is_empty() == (rest == "nothing"),
            "got" if more.is_empty() => self.receiver.kept().len() as u64 == number(first),
            "got" | "got!" => {
                let request = &self.receiver.requests()[number(first) as usize];
                return (found(&request.to_lowercase(), more) != (verb == "got"))
                    .then(|| request.clone());
            }
            "served" => {
                let ledgers = || self.sinks.iter().map(Sink::ledger);
                let connections = ledgers().map(|ledger| ledger.connections).sum::<u64>();
                ledgers().map(|ledger| ledger.requests).sum::<u64>() == number(first)
                    && (more == "-" || connections == number(more))
            }
            _ => return self.against_law(verb, rest),
        };
        (!is_right).then(String::new)
    }

    /// What is wrong with the study that was kept last, or with what was printed, where that is not
    /// said by a panic.
    fn against_law(&self, verb: &str, rest: &str) -> Option<String> {
        let study = || self.newest_study().expect("a study");
        match verb {
            "schema" => assert_keeps(rest, &serde_json::from_str(&self.ended().stdout).unwrap()),
            "graded" => {
                let (code, grade) = rest.split_once(' ').unwrap();
                let is_it =
                    |check: &&Diagnostic| serde_json::to_value(check).unwrap()["code"] == code;
                let study = study();
                let judgement = study
                    .runs()
                    .last()
                    .and_then(|run| run.judgement.as_ref())
                    .expect("it was judged");
                let came = judgement
                    .checks
                    .iter()
                    .find(is_it)
                    .map(|check| format!("{:?}", judge::grade(check)).to_lowercase());
                return (came.as_deref() != Some(grade)).then(|| format!("{judgement:?}"));
            }
            "followed" => {
                study().runs().into_iter().for_each(|run| assert_followed(run, rest == "later"));
            }
            "exported" => {
                assert_exported(&fs::read_to_string(self.lab.path(rest)).unwrap(), &study());
            }
            "posted" => assert_posted(&self.receiver.kept(), &lab::of_sweep(study())),
            "agreed" => assert_agreed(&lab::of_sweep(study())),
            "logged" => {
                let Study::Load(study) = study() else { panic!("no load") };
                let csv = if rest == "out" {
                    &self.ended().stdout
                } else {
                    &fs::read_to_string(self.lab.path(rest)).unwrap()
                };
                assert_logged(csv, &study);
            }
            _ => panic!("{verb} is no word of a scenario"),
        }
        None
    }
}

fn signal(name: &str) -> Signal {
    match name {
        "CONT" => Signal::CONT,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        other => panic!("{other} is no signal here"),
    }
}

#[test]
fn loads() {
    hold("load");
}

#[test]
fn exit_codes() {
    hold("exits");
}

#[test]
fn other_generators_and_what_they_printed() {
    hold("generators");
}

#[test]
fn other_machines_and_generators() {
    hold("far");
}

#[test]
fn figures_in_and_out() {
    hold("outlets");
}

#[test]
fn the_machine_and_its_terminals() {
    hold("machine");
}

#[test]
fn servers_are_watched() {
    hold("watch");
}

#[test]
fn waits_are_where_they_were_put() {
    hold("waits");
}

#[test]
fn pumas_accounts_and_endings() {
    hold("puma");
}

#[test]
fn comparisons() {
    hold("compare");
}

#[test]
fn sweeps() {
    hold("sweep");
}

#[test]
fn predictions_reports_and_sinks() {
    hold("report");
}
