//! Scenarios: what a user types, and what must hold afterwards. Each file in `scenarios/` is a list
//! of them. `LONGTAIL_SCENARIO=PART` runs only those with this text in their name.
//!
//! After every scenario, each kept study must account for all of its requests and times, the sinks
//! of this process must have counted what the loads sent, and no process, temporary file or
//! listener may be left.
//!
//! A line is a word and its arguments. `{name}` stands for a value; `Stage::new` lists them.
//!
//! ```text
//! == NAME                     starts a scenario; `needs A B` skips it if a program or feature is missing
//! each {A} {B}                runs it once for each following row `- a | b`; repeat-in-soak N, in `make soak`
//! file|script NAME            writes a file of the following `| ` lines; symlink NAME TARGET;
//!                             make-study KIND NAME writes a ready-made study
//! serve|in-background CMD     runs a server at {port}, or a program, until the end of the scenario
//! reply TEXT                  the response of {recorder}, which records requests; statsd-packet TEXT: a packet with
//!                             TEXT, which {recorder} sends to {free} before each response
//! network MS N                two machines MS apart, every Nth packet lost; disconnect, reconnect; see far.txt
//! cpu-quota PERCENT           {quota}: a control group with this much of a CPU
//! $ ARGS [<<< FILE] | sh LINE runs longtail (with FILE as stdin), or a shell line; if it names a {window}, the whole scenario is run again
//!                             with longer ones until each run has requests
//! & ARGS                      runs longtail in the background until `exit`; send SIGNAL [until it ends],
//!                             kill SIGNAL TEXT (the process with TEXT in its command line), sleep MS,
//!                             wait-until WHAT > N | out|err has TEXT | file NAME | thread NAME
//! fetch FILE PORT/PATH TEXT   saves a 200 response with TEXT in it; save-packets FILE: what {agent} received
//! exit CODE|signal|any        the exit code, 0 by default; 3 will do for 0 or 1 if a busy machine spoiled every run
//! refused TEXT                exit code 2 and one line on stderr with TEXT in it
//! out|err|last-line has TEXT  stdout, stderr or its last line contain TEXT (`&&`: all, `||`: any); `lacks`: they don't;
//!                             in FILE has TEXT; recorded N has TEXT: the Nth request; recorded N: their number
//! lines|max-width OF N        of out, err or a file; count OF N TEXT: how often it contains TEXT
//! same-as|differs-from ARGS   longtail prints the same, or something else, with ARGS; same-as-file NAME
//! json|study PATH = VALUE     a value of the JSON that was printed, or of the newest study; see values.rs
//! witness PATH = VALUE        what the app's processes counted themselves (an array); see witness.rb
//! check CODE GRADE            the grade of a check in the newest study; schema NAME: the JSON fits docs/NAME.schema.json
//! server-count-agrees         the server counted what we did; kernel-count-agrees [later] (later: of the workers that
//!                             started during the run), log-agrees FILE, metrics-agree FILE, otlp-agrees
//! studies N                   the number of kept studies; no-study-has TEXT; absent FILE; no-processes;
//!                             served N M: the sinks' requests and connections (`-`: any)
//! ```

pub(crate) mod laws;
pub(crate) mod stage;
pub(crate) mod values;

use std::fs;
use std::time::Duration;

use model::{Clock as _, Diagnostic, Nanos, Study};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
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

/// How many scenarios of a file run at the same time.
const AT_ONCE: usize = 3;

/// Runs each scenario of a file.
fn run_file(file: &str) {
    let path = format!("{}/tests/cli/scenarios/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let only = std::env::var("LONGTAIL_SCENARIO").unwrap_or_default();
    let all = text.split("\n== ").skip(1).flat_map(rows).flat_map(repeated);
    let all: Vec<String> = all.filter(|scenario| name(scenario).contains(&only)).collect();
    lab::check_each(AT_ONCE, &all, |scenario| run(scenario));
}

fn name(scenario: &str) -> &str {
    scenario.lines().next().unwrap_or_default()
}

/// The scenario once for each row of its table; itself if it has none.
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

/// The scenario as often as it runs: once, or more often in `make soak` if it says so.
fn repeated(scenario: String) -> Vec<String> {
    let times = scenario
        .lines()
        .find_map(|line| line.strip_prefix("repeat-in-soak "))
        .filter(|_| lab::soaks())
        .map_or(1, number);
    vec![scenario; times as usize]
}

/// Runs a scenario. One that names a {window} runs again with longer ones until each run has
/// requests.
fn run(scenario: &str) {
    let attempt = |window: &str| {
        let mut stage = Stage::new(scenario);
        stage.places.insert("{window}".to_owned(), window.to_owned());
        let end = stage.run_steps(scenario.split_once('\n').map_or("", |(_, steps)| steps));
        stage.assert_sound();
        (!matches!(end, ScenarioEnd::WithoutRequests)).then_some(())
    };
    if scenario.contains("{window}") {
        in_a_window(attempt);
    } else {
        attempt("").expect("without a {window} no run is too short");
    }
}

/// Whether a process has a thread of this name.
fn has_thread(pid: u32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|comm| comm.trim_end() == name)
}

/// Words that start a new command; the lines before them are about the previous one.
const COMMANDS: [&str; 5] = ["$", "& ", "sh ", "send ", "wait-until "];

/// How a scenario ended.
pub(crate) enum ScenarioEnd {
    /// All its steps were run.
    Completed,
    /// This machine lacks something that it needs.
    Lacks(String),
    /// A run in a {window} was too short to have requests.
    WithoutRequests,
}

impl Stage {
    /// Does what each line says, and panics at the first expectation that isn't met.
    pub(crate) fn run_steps(&mut self, steps: &str) -> ScenarioEnd {
        let mut lines =
            steps.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = self.filled(rest);
            match word {
                "reply" | "repeat-in-soak" | "statsd-packet" => {}
                "file" | "script" => {
                    let mut text = String::new();
                    while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                        text += &self.filled(line.strip_prefix("| ").unwrap_or_default());
                        text.push('\n');
                    }
                    let write = if word == "file" { Lab::write } else { Lab::executable };
                    write(&self.lab, &rest, &text);
                }
                "$" | "sh" => {
                    self.ended = Some(self.start(word, &rest).end());
                    let is_about_it =
                        |line: &&str| !COMMANDS.iter().any(|word| line.starts_with(word));
                    let names_code =
                        |line: &str| line.starts_with("exit ") || line.starts_with("refused ");
                    let is_code_named = lines.clone().take_while(is_about_it).any(names_code);
                    assert!(
                        is_code_named || self.has_code(0),
                        "{}: {rest}: {:?}",
                        self.name,
                        self.ended
                    );
                    if line.contains("{window}") && !self.has_requests_in_each_run() {
                        return ScenarioEnd::WithoutRequests;
                    }
                }
                _ => match self.act(word, &rest) {
                    Err(missing) => return ScenarioEnd::Lacks(missing),
                    Ok(true) => {}
                    Ok(false) => self.expect(line, word, &rest),
                },
            }
        }
        ScenarioEnd::Completed
    }

    /// Whether the last command measured, and each of its runs has requests.
    fn has_requests_in_each_run(&self) -> bool {
        self.ended().status.code() != Some(3)
            && none_is_empty(self.newest_study().expect("a study").runs())
    }

    /// Waits for what is running, and panics if an expectation isn't met. `line` is the line as it
    /// was written, for the message.
    fn expect(&mut self, line: &str, word: &str, rest: &str) {
        self.finish();
        if let Some(why) = self.unmet(word, rest) {
            panic!("{}: {line}: {why}\n{:#?}", self.name, self.ended);
        }
    }

    /// Does what the line says if its word is an action. The error is what this machine lacks.
    fn act(&mut self, word: &str, rest: &str) -> Result<bool, String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "needs" => {
                if let Some(missing) = rest.split_ascii_whitespace().find(|need| !is_there(need)) {
                    return Err(missing.to_owned());
                }
            }
            "network" => self.connect_machines(number(first), number(more))?,
            "disconnect" | "reconnect" => {
                self.machines.as_ref().expect("a network").wire.cut(word == "disconnect");
            }
            "cpu-quota" => {
                let quota = Quota::of(number(rest)).ok_or("a control group")?;
                self.places.insert("{quota}".to_owned(), quota.0.display().to_string());
                self.quota = Some(quota);
            }
            "make-study" => {
                self.lab.write(more, &report::json::write(&made(first)));
            }
            "symlink" => std::os::unix::fs::symlink(more, self.lab.path(first)).unwrap(),
            "serve" => self.serve(rest),
            "in-background" => {
                let running = self.start("sh", &format!("exec {rest}"));
                self.background.push(running);
            }
            "&" => self.running = Some(self.start(word, rest)),
            "wait-until" => self.wait_until(rest),
            "fetch" => self.fetch(first, more),
            "save-packets" => self.save_packets(rest),
            "sleep" => REAL_CLOCK.sleep(Nanos::from_millis(number(rest))),
            "kill" => self.kill(first, more),
            "send" => self.send(first, more == "until it ends"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts longtail and the servers on two machines.
    fn connect_machines(&mut self, delay_ms: u64, loses_every: u64) -> Result<(), String> {
        let way = Way { delay: Duration::from_millis(delay_ms), loses_every };
        let machines = Machines::joined(way).ok_or("a network namespace")?;
        let there = on(&self.lab, &machines.there, "");
        let words = std::iter::once(there.get_program()).chain(there.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        self.places.insert("{there}".to_owned(), words.join(" "));
        self.machines = Some(machines);
        Ok(())
    }

    /// Sends a signal to the first process of this scenario whose command line contains `text`.
    fn kill(&self, signal_name: &str, text: &str) {
        let command_line =
            |pid: &Pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid()));
        let is_it = |pid: &Pid| {
            command_line(pid).is_ok_and(|words| words.replace('\0', " ").contains(text))
        };
        let find = || self.lab.living().into_iter().find(is_it);
        let pid = eventually(PATIENCE, || text.to_owned(), find);
        kill_process(pid, signal(signal_name)).unwrap();
    }

    /// Sends a signal to what is running; with `until_it_ends`, again and again.
    fn send(&mut self, signal_name: &str, until_it_ends: bool) {
        let running = self.running.as_mut().expect("something is running");
        running.send(signal(signal_name));
        if until_it_ends {
            // Two signals in quick succession may count as one.
            let has_ended = || {
                running.send(signal(signal_name));
                running.has_ended().then_some(())
            };
            eventually(PATIENCE, || "it is still running".to_owned(), has_ended);
        }
    }

    /// Waits until a condition holds. If longtail is running, it must not end before.
    fn wait_until(&mut self, condition: &str) {
        let (what, more) = condition.split_once(' ').expect("what to wait for");
        let least = more.strip_prefix("> ").map(number);
        let exceeds = |count: usize| count as u64 > least.expect("`> N`");
        let responses = || self.sinks.iter().map(|sink| sink.ledger().answers).sum::<u64>();
        let sockets = || sockets(self.port);
        let pid = self.running.as_ref().map(Running::pid);
        let text = || unescaped(more.strip_prefix("has ").expect("`has TEXT`"));
        let holds = |stdout: &str, stderr: &str| match what {
            "out" => stdout.contains(&text()),
            "err" => stderr.contains(&text()),
            "file" => self.lab.path(more).exists(),
            "thread" => pid.is_some_and(|pid| has_thread(pid, more)),
            "runs" => exceeds(self.lab.kept_runs()),
            "responses" => exceeds(responses() as usize),
            "requests" => exceeds(self.receiver.kept().len()),
            "lines" => exceeds(stdout.lines().count()),
            "open" => exceeds(sockets().open as usize),
            "accepted" => exceeds(sockets().open as usize) && sockets().accept_queue == 0,
            "waiting" => exceeds(sockets().accept_queue as usize),
            "living" => exceeds(self.lab.living().len()),
            other => panic!("a scenario can't wait for '{other}'"),
        };
        match &mut self.running {
            Some(running) => running.until_printed(holds),
            None => eventually(PATIENCE, || condition.to_owned(), || holds("", "").then_some(())),
        }
    }

    /// What was printed (`out`, `err`), or the text of a file.
    fn text(&self, name: &str) -> String {
        match name {
            "out" => self.ended().stdout.clone(),
            "err" => self.ended().stderr.clone(),
            file => fs::read_to_string(self.lab.path(file))
                .unwrap_or_else(|error| panic!("{file}: {error}")),
        }
    }

    fn json(&self, name: &str) -> Value {
        let text = self.text(name);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What each process of the app wrote down about itself; see witness.rb.
    fn witnesses(&self) -> Value {
        let files = fs::read_dir(self.lab.path("")).unwrap().map(|file| file.unwrap().path());
        let is_witness = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("witness."))
        };
        let read = |path| fs::read_to_string(path).unwrap();
        files
            .filter(is_witness)
            .map(|path| serde_json::from_str::<Value>(&read(path)).unwrap())
            .collect()
    }

    /// Why an expectation isn't met; `None` if it is.
    fn unmet(&self, word: &str, rest: &str) -> Option<String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_met = match word {
            "exit" => match rest {
                "any" => self.ended().status.code().is_some(),
                "signal" => self.ended().status.code().is_none(),
                code => self.has_code(code.parse().unwrap()),
            },
            "refused" => self.is_refused(rest),
            "out" | "err" => matches(&self.text(word), rest),
            "last-line" => matches(self.ended().stderr.lines().last().unwrap_or_default(), rest),
            "in" => matches(&self.text(first), more),
            "lines" => {
                let text = self.text(first);
                text.lines().filter(|line| !values::is_so_far(line)).count() as u64 == number(more)
            }
            "count" => {
                let (times, part) = more.split_once(' ').unwrap();
                self.text(first).matches(&unescaped(part)).count() as u64 == number(times)
            }
            "max-width" => {
                let widths = self.text(first);
                let mut widths = widths.lines().map(|line| line.trim_end().chars().count());
                widths.all(|width| width as u64 <= number(more))
            }
            // A terminal ends its lines with \r\n.
            "same-as-file" => self.ended().stdout.replace('\r', "") == self.text(rest),
            "same-as" => self.ended().stdout.replace('\r', "") == self.output_of(rest, Some(0)),
            "differs-from" => self.ended().stdout != self.output_of(rest, None),
            "json" => return unlike(&self.json("out"), rest),
            "study" => return unlike(&self.json(&self.newest().expect("a study")), rest),
            "witness" => return unlike(&self.witnesses(), rest),
            "no-study-has" => {
                let texts = self.studies().into_iter().map(fs::read_to_string);
                texts.map(Result::unwrap).all(|text| !text.contains(rest))
            }
            "absent" => !self.lab.path(rest).exists(),
            "studies" => self.studies().len() as u64 == number(rest),
            "no-processes" => self.lab.living().is_empty(),
            "recorded" if more.is_empty() => self.receiver.kept().len() as u64 == number(first),
            "recorded" => {
                let request = &self.receiver.requests()[number(first) as usize];
                return (!matches(&request.to_lowercase(), more)).then(|| request.clone());
            }
            "served" => self.sinks_served(first, more),
            "check" => return self.unmet_grade(first, more),
            _ => {
                self.assert_about_study(word, rest);
                true
            }
        };
        (!is_met).then(String::new)
    }

    /// Whether the mistake was refused: exit code 2, and one line that contains `text`. A server's
    /// own lines, behind `  | `, don't count, nor do the notes about a server that starts slowly.
    fn is_refused(&self, text: &str) -> bool {
        let ended = self.ended();
        let is_left_out = |line: &&str| {
            line.starts_with("  | ") || line.starts_with("longtail: starting the server, ")
        };
        let lines = ended.stderr.lines().filter(|line| !is_left_out(line));
        ended.status.code() == Some(2)
            && lines.count() == 1
            && ended.stdout.is_empty()
            && contains(&ended.stderr, text)
    }

    /// What longtail prints with these words.
    fn output_of(&self, words: &str, code: Option<i32>) -> String {
        let ended = self.start("$", words).end();
        match code {
            Some(code) => ended.with_code(code).stdout,
            None => ended.stdout,
        }
    }

    /// Whether the sinks have had this many requests, over this many connections (`-`: any).
    fn sinks_served(&self, requests: &str, connections: &str) -> bool {
        let ledgers = || self.sinks.iter().map(Sink::ledger);
        let has_connections = connections == "-"
            || ledgers().map(|ledger| ledger.connections).sum::<u64>() == number(connections);
        ledgers().map(|ledger| ledger.requests).sum::<u64>() == number(requests) && has_connections
    }

    /// The last run's judgement, for the message, if its check `code` does not have this grade.
    fn unmet_grade(&self, code: &str, expected: &str) -> Option<String> {
        let study = self.newest_study().expect("a study");
        let last = study.runs().into_iter().last();
        let Some(judgement) = last.and_then(|run| run.judgement.as_ref()) else {
            return Some("the last run has no judgement".to_owned());
        };
        let is_it = |check: &&Diagnostic| serde_json::to_value(check).unwrap()["code"] == code;
        let check = judgement.checks.iter().find(is_it);
        let grade = check.map(|check| format!("{:?}", judge::grade(check)).to_lowercase());
        (grade.as_deref() != Some(expected)).then(|| format!("{judgement:?}"))
    }

    /// Panics unless what the word says holds for the newest study, or for what was printed.
    fn assert_about_study(&self, word: &str, rest: &str) {
        let study = || self.newest_study().expect("a study");
        match word {
            "schema" => assert_keeps(rest, &self.json("out")),
            "kernel-count-agrees" => {
                study().runs().into_iter().for_each(|run| assert_followed(run, rest == "later"));
            }
            "metrics-agree" => assert_exported(&self.text(rest), &study()),
            "otlp-agrees" => assert_posted(&self.receiver.kept(), &lab::of_sweep(study())),
            "server-count-agrees" => assert_agreed(&lab::of_sweep(study())),
            "log-agrees" => {
                let Study::Load(study) = study() else { panic!("the study is not of a load") };
                assert_logged(&self.text(rest), &study);
            }
            _ => panic!("'{word}' is not a word of scenarios"),
        }
    }
}

/// Whether a text fits `has PARTS` or `lacks PARTS`.
fn matches(text: &str, condition: &str) -> bool {
    match condition.split_once(' ') {
        Some(("has", parts)) => contains(text, parts),
        Some(("lacks", parts)) => !contains(text, parts),
        _ => panic!("'{condition}' begins with neither has nor lacks"),
    }
}

/// Whether a text contains all parts joined by `&&`, or those on one side of a `||`, wherever its
/// lines are broken.
fn contains(text: &str, parts: &str) -> bool {
    let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |part: &str| text.contains(part) || in_one_line.contains(part);
    let has_all = |parts: &str| parts.split(" && ").all(|part| has(&unescaped(part)));
    parts.split(" || ").any(has_all)
}

fn signal(name: &str) -> Signal {
    match name {
        "CONT" => Signal::CONT,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        other => panic!("scenarios know no signal called {other}"),
    }
}

#[test]
fn loads() {
    run_file("load");
}

#[test]
fn exit_codes() {
    run_file("exits");
}

#[test]
fn other_generators_and_audits() {
    run_file("generators");
}

#[test]
fn other_machines_and_generators() {
    run_file("far");
}

#[test]
fn metrics_in_and_out() {
    run_file("outlets");
}

#[test]
fn machines_and_terminals() {
    run_file("machine");
}

#[test]
fn watches() {
    run_file("watch");
}

#[test]
fn waits_are_found_where_they_happen() {
    run_file("waits");
}

#[test]
fn pumas_counts_and_how_its_runs_end() {
    run_file("puma");
}

#[test]
fn comparisons() {
    run_file("compare");
}

#[test]
fn sweeps() {
    run_file("sweep");
}

#[test]
fn predictions_reports_and_sinks() {
    run_file("report");
}
