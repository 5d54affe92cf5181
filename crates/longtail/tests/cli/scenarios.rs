//! Scenarios: what a user types, and what must be there then. Each file of `scenarios/` is a list of them; `scenarios/load.txt` begins with
//! the words that they are written in. `LONGTAIL_SCENARIO=PART` plays those that have this in their name.
//!
//! After each one, whatever it says: every kept study conserves its requests and its times, the sinks of this process have counted what the
//! loads did, and no process, no temporary file and no listener is left.

pub(crate) mod laws;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::{Clock as _, Cpus, Diagnostic, Nanos, ServerLocation, Study};
use rustix::process::{Pid, Signal, kill_process};
use sink::{Sink, SinkBody, SinkSettings, SlotQueue};
use testkit::clock::{REAL_CLOCK, eventually};
use testkit::http::Receiver;
use testkit::network::Way;

use crate::far::{Machines, certificate, on};
use crate::lab::{self, Ended, LONGTAIL, Lab, PATIENCE, Running, can, free_port, has, none_is_empty, sockets, split};
use crate::load::sink_with;
use crate::schemas::assert_keeps;

use laws::{assert_agreed, assert_followed, assert_logged, assert_sound, is_of_the_machine};
use values::{at, plain, unlike};

/// What {answer} says where the scenario has no answer.
const GREETING: &str = "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello";

/// So many go on at once.
const AT_ONCE: usize = 3;

/// What {window} is, in turn: a starved machine may let no request of a closed loop become due in a short one, or spoil it.
const WINDOWS: [&str; 3] = ["--for 150ms --warm-up 50ms", "--for 3s --warm-up 1s", "--for 15s --warm-up 1s"];

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
    let Some((before, table)) = scenario.split_once("\neach ") else { return vec![scenario.to_owned()] };
    let (names, table) = table.split_once('\n').unwrap();
    let (rows, steps): (Vec<&str>, Vec<&str>) = table.lines().partition(|line| line.starts_with("- "));
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
    let times = scenario.lines().find_map(|line| line.strip_prefix("soak ")).filter(|_| lab::soaks()).map_or(1, number);
    vec![scenario; times as usize]
}

/// Plays a scenario; one that names a {window} again with a longer one, until each run has requests.
fn play(scenario: &str) {
    let windows = if scenario.contains("{window}") { &WINDOWS[..] } else { &[""] };
    let is_over = |window: &&str| {
        let mut stage = Stage::new(scenario);
        stage.places.insert("{window}".to_owned(), (*window).to_owned());
        let played = stage.play(scenario.split_once('\n').map_or("", |(_, steps)| steps));
        stage.assert_sound();
        !matches!(played, Played::WithoutRequests)
    };
    assert!(windows.iter().any(is_over), "{}: each run of 15 s has requests", name(scenario));
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
pub(crate) struct Stage {
    name: String,
    lab: Lab,
    /// What a word in braces stands for.
    places: BTreeMap<String, String>,
    sinks: Vec<Sink>,
    receiver: Receiver,
    /// What goes on until the end.
    beside: Vec<Running>,
    running: Option<Running>,
    ended: Option<Ended>,
    /// The machine that longtail is on, and another one.
    machines: Option<Machines>,
    quota: Option<Quota>,
    port: u16,
}

impl Stage {
    pub(crate) fn new(scenario: &str) -> Stage {
        let answer = scenario.lines().find_map(|line| line.strip_prefix("answer")).unwrap_or(GREETING);
        let (lab, port, receiver) =
            (Lab::new(), free_port(), Receiver::answering(unescaped(answer.trim_start()).leak()));
        let of_crates = |folder: &str| format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
        let ours = launch::affinity::ours().expect("Linux tells");
        let last: Cpus = ours.iter().last().into_iter().collect();
        let places = BTreeMap::from([
            ("{port}", port.to_string()),
            ("{free}", if scenario.contains("{free}") { free_port().to_string() } else { String::new() }),
            ("{answer}", receiver.address.to_string()),
            ("{taken}", receiver.address.port().to_string()),
            ("{version}", env!("CARGO_PKG_VERSION").to_owned()),
            ("{longtail}", LONGTAIL.to_owned()),
            ("{lab}", lab.path("").display().to_string()),
            ("{root}", of_crates("..")),
            ("{goldens}", of_crates("report/tests/golden")),
            ("{fixtures}", of_crates("audit/tests/fixtures")),
            ("{cpus}", ours.len().to_string()),
            ("{last-cpu}", last.to_string()),
            ("{other-cpus}", ours.without(&last).to_string()),
        ]);
        let places = places.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Stage {
            name: name(scenario).to_owned(),
            lab,
            places,
            sinks: Vec::new(),
            receiver,
            beside: Vec::new(),
            running: None,
            ended: None,
            machines: None,
            quota: None,
            port,
        }
    }

    /// Does what each line says, and holds what is there then against it.
    pub(crate) fn play(&mut self, steps: &str) -> Played {
        let mut lines = steps.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = self.filled(rest);
            match verb {
                "answer" | "soak" => {}
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
                    let is_code = |line: &str| line.starts_with("exit ") || line.starts_with("refused ");
                    let is_said = lines.clone().take_while(is_of_it).any(is_code);
                    let is_right = is_said || self.has_code(0);
                    assert!(is_right, "{}: {rest}: {:?}", self.name, self.ended);
                    let is_whole = || none_is_empty(self.newest_study().expect("a study").runs());
                    if line.contains("{window}") && (self.ended().status.code() == Some(3) || !is_whole()) {
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
                        assert!(why.is_none(), "{name}: {line}: {}\n{ended:#?}", why.unwrap_or_default());
                    }
                },
            }
        }
        Played::Whole
    }

    /// Does what this word says, where it is one that does something; an error is what this machine has not.
    fn act(&mut self, verb: &str, rest: &str) -> Result<bool, String> {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "needs" => {
                if let Some(missing) = rest.split_ascii_whitespace().find(|need| !is_there(need)) {
                    return Err(missing.to_owned());
                }
            }
            "wire" => {
                let way = Way { delay: Duration::from_millis(number(first)), loses_every: number(more) };
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
            "wait" => REAL_CLOCK.sleep(Nanos::from_millis(number(rest))),
            "kill" => {
                let words = |pid: &Pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid()));
                let is_it = |pid: &Pid| words(pid).is_ok_and(|words| words.replace('\0', " ").contains(more));
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

    /// The text with what its words in braces stand for; a sink begins where it is named first.
    fn filled(&mut self, text: &str) -> String {
        for name in
            ["ok", "counter", "slow", "slots", "tls", "near", "far", "far6", "far-tls", "far-tls6", "far-public"]
        {
            let [address, port] = [format!("{{{name}}}"), format!("{{{name}-port}}")];
            if (text.contains(&address) || text.contains(&port)) && !self.places.contains_key(&address) {
                let sink = self.sink(name);
                self.places.insert(address, sink.address().to_string());
                self.places.insert(port, sink.address().port().to_string());
                self.sinks.push(sink);
            }
        }
        let mut text = self.places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        if text.contains("{served}") {
            let by_sinks = self.sinks.iter().map(|sink| sink.ledger().requests).sum::<u64>();
            text = text.replace("{served}", &(by_sinks + self.receiver.kept().len() as u64).to_string());
        }
        while let Some((before, rest)) = text.split_once("{kept ") {
            let (path, after) = rest.split_once('}').unwrap();
            let study = serde_json::from_str(&fs::read_to_string(self.newest().expect("a study")).unwrap()).unwrap();
            text = format!("{before}{}{after}", at(&study, path).into_iter().map(plain).collect::<Vec<_>>().join(" "));
        }
        text
    }

    /// The sink of this name.
    fn sink(&self, name: &str) -> Sink {
        let body = if name == "counter" || name == "slow" { SinkBody::Counter } else { SinkBody::Ok };
        let plain = SinkSettings { body, ..SinkSettings::default() };
        let delayed = |ms| SinkSettings { delay: Nanos::from_millis(ms).into(), ..plain.clone() };
        let (place, settings) = match name {
            "slow" => ("127.0.0.1:0", delayed(2)),
            "slots" => ("127.0.0.1:0", SinkSettings { queue: SlotQueue::Shared, threads: 4, ..delayed(20) }),
            "tls" => ("tls://127.0.0.1:0", plain),
            "far" => ("10.77.0.2:0", plain),
            "far6" => ("[fd77::2]:0", plain),
            "far-tls" => ("tls://10.77.0.2:0", plain),
            "far-tls6" => ("tls://[fd77::2]:0", plain),
            "near" => ("10.77.0.1:0", plain),
            "far-public" => ("203.0.113.7:0", plain),
            _ => ("127.0.0.1:0", plain),
        };
        let Some(machines) = &self.machines else { return sink_with(place, settings) };
        let pem = place.starts_with("tls").then(|| certificate(&self.lab, "app.test"));
        let host = if name == "near" { &machines.here } else { &machines.there };
        host.enter(|| sink_with(place, SinkSettings { pem, ..settings }))
    }

    /// A program, on the machine that longtail is on.
    fn program(&self, program: &str) -> Command {
        match &self.machines {
            Some(machines) => on(&self.lab, &machines.here, program),
            None => self.lab.program(program),
        }
    }

    /// Starts longtail with these words, or a line of a shell.
    fn start(&self, verb: &str, line: &str) -> Running {
        if verb == "sh" {
            return Running::start(self.program("sh").args(["-c", line]));
        }
        let (line, input) = line.split_once(" <<< ").map_or((line, None), |(line, file)| (line, Some(file)));
        let (settings, words) = settings_and_words(line);
        let mut command = self.program(LONGTAIL);
        if let Some(file) = input {
            command.stdin(fs::File::open(self.lab.path(file)).unwrap());
        }
        Running::start(command.args(words).env("PUMA_TEST_PORT", self.port.to_string()).envs(settings))
    }

    /// Starts a server, on the other machine where there is one.
    fn serve(&mut self, line: &str) {
        let server = split(line);
        let mut command = match &self.machines {
            Some(machines) => on(&self.lab, &machines.there, &server[0]),
            None => self.lab.program(&server[0]),
        };
        let server = Running::start(command.args(&server[1..]));
        // The kernel's table is that of this process's own network.
        let connects = || TcpStream::connect(("10.77.0.2", self.port)).is_ok();
        let listens = || match &self.machines {
            Some(machines) => machines.there.enter(connects),
            None => sockets(self.port).listening,
        };
        eventually(PATIENCE, || server.said(), || listens().then_some(()));
        self.places.insert("{served-pid}".to_owned(), server.pid().to_string());
        self.beside.push(server);
    }

    pub(crate) fn ended(&self) -> &Ended {
        self.ended.as_ref().expect("a command comes before what it must print")
    }

    /// Whether it ended with this exit code: with 3 in place of 0 or 1 where a busy machine is why no figure is the server's.
    fn has_code(&self, code: i32) -> bool {
        let came = self.ended().status.code();
        let is_excused = || self.newest_study().is_some_and(|study| is_of_the_machine(&study));
        came == Some(code) || matches!(code, 0 | 1) && came == Some(3) && is_excused()
    }

    /// Waits for the end of what is running.
    pub(crate) fn finish(&mut self) {
        self.ended = self.running.take().map(Running::end).or(self.ended.take());
    }

    /// Waits until there is something, which must be before the end of what is running.
    fn until(&mut self, what: &str, more: &str) {
        let most = || number(more);
        let answers = || self.sinks.iter().map(|sink| sink.ledger().answers).sum::<u64>();
        let sockets = || sockets(self.port);
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
            file => fs::read_to_string(self.lab.path(file)).unwrap_or_else(|error| panic!("{file}: {error}")),
        };
        let json = |of: &str| serde_json::from_str(&text(of)).unwrap_or_else(|error| panic!("{error}: {}", text(of)));
        let found = |text: &str, parts: &str| {
            let has_all = |parts: &str| parts.split(" && ").all(|part| text.contains(&unescaped(part)));
            parts.split(" || ").any(has_all)
        };
        let is_right = match verb {
            "exit" if rest == "any" => ended.status.code().is_some(),
            "exit" if rest == "signal" => ended.status.code().is_none(),
            "exit" => self.has_code(rest.parse().unwrap()),
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
            "times" => {
                let (times, part) = more.split_once(' ').unwrap();
                text(first).matches(&unescaped(part)).count() as u64 == number(times)
            }
            "widest" => text(first).lines().all(|line| line.trim_end().chars().count() as u64 <= number(more)),
            // A terminal ends its lines otherwise.
            "same" if first == "as" => ended.stdout.replace('\r', "") == text(more),
            "same" => ended.stdout.replace('\r', "") == self.start("$", rest).end().with_code(0).stdout,
            "differs" => ended.stdout != self.start("$", rest).end().with_code(0).stdout,
            "json" => return unlike(&json("out"), rest),
            "kept" => return unlike(&json(&self.newest().expect("a study")), rest),
            "secret" => self.studies().iter().all(|study| !text(&study.display().to_string()).contains(rest)),
            "absent" => !self.lab.path(rest).exists(),
            "studies" => self.studies().len() as u64 == number(rest),
            "left" => self.lab.living().is_empty() == (rest == "nothing"),
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
            _ => return self.against_law(verb, rest),
        };
        (!is_right).then(String::new)
    }

    /// What is wrong with the study that was kept last, or with what was printed, where that is not said by a panic.
    fn against_law(&self, verb: &str, rest: &str) -> Option<String> {
        let study = || self.newest_study().expect("a study");
        match verb {
            "schema" => assert_keeps(rest, &serde_json::from_str(&self.ended().stdout).unwrap()),
            "graded" => {
                let (code, grade) = rest.split_once(' ').unwrap();
                let is_it = |check: &&Diagnostic| serde_json::to_value(check).unwrap()["code"] == code;
                let study = study();
                let judgement = study.runs().last().and_then(|run| run.judgement.as_ref()).expect("it was judged");
                let came =
                    judgement.checks.iter().find(is_it).map(|check| format!("{:?}", check.grade()).to_lowercase());
                return (came.as_deref() != Some(grade)).then(|| format!("{judgement:?}"));
            }
            "followed" => study().runs().into_iter().for_each(|run| assert_followed(run, rest == "later")),
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

    fn studies(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        self.lab.studies().into_iter().filter(is_one).collect()
    }

    /// The file of the study that was kept last.
    fn newest(&self) -> Option<String> {
        let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        Some(self.studies().into_iter().max_by_key(written)?.display().to_string())
    }

    pub(crate) fn newest_study(&self) -> Option<Study> {
        Some(lab::read(self.newest()?.as_ref()))
    }

    /// What holds after every scenario.
    pub(crate) fn assert_sound(mut self) {
        let name = &self.name;
        assert!(self.running.is_none(), "{name}: nobody looks at how it ends");
        for running in std::mem::take(&mut self.beside) {
            running.send(Signal::TERM);
            running.send(Signal::CONT);
            running.end();
        }
        // Connections, requests, bytes there, bytes back.
        let (mut ours, mut is_counted, mut is_here) =
            ([0; 4], !self.sinks.is_empty() && !self.studies().is_empty(), true);
        for study in self.studies().iter().map(|path| lab::read(path)) {
            assert_sound(&study);
            match study {
                Study::Load(study) if study.run.claim.is_none() => {
                    let tally = &study.run.tally;
                    // Elsewhere one more is made: of a server here the kernel says whether it listens.
                    let has_lost = study.run.generator.far.iter().any(|one| one.lost.is_some());
                    is_here &= study.server == ServerLocation::Here && study.run.generator.far.is_empty();
                    add(
                        &mut ours,
                        [tally.connections_opened, tally.all_requests(), tally.sent_bytes, tally.received_bytes],
                    );
                    is_counted &= tally.counts.failed() == 0 && !study.interrupted && !has_lost;
                }
                Study::Sweep(_) => {}
                _ => is_counted = false,
            }
        }
        let mut theirs = [0; 4];
        for ledger in self.sinks.into_iter().map(Sink::stop) {
            assert!(ledger.bad_requests == 0 || !is_counted, "{name}: {ledger:?}");
            add(&mut theirs, [ledger.connections, ledger.requests, ledger.received_bytes, ledger.sent_bytes]);
        }
        let from = usize::from(!is_here);
        assert!(
            !is_counted || ours[from..] == theirs[from..],
            "{name}: connections, requests, bytes there and back: {ours:?}, {theirs:?}"
        );
        self.lab.assert_nothing_left(self.port);
    }
}

/// A control group with a part of a CPU; root makes one, and it is taken away when it is dropped.
struct Quota(PathBuf);

impl Quota {
    /// So many hundredths of a CPU; `None` where none can be made.
    fn of(percent: u64) -> Option<Quota> {
        let name = format!("longtail-test-{}-{percent}", std::process::id());
        let quota = percent * 1000;
        let quotas = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota.to_string()),
            ("/sys/fs/cgroup", "cpu.max", format!("{quota} 100000")),
        ];
        quotas.iter().find_map(|(root, file, quota)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let has_it = folder.join(file).is_file() && fs::write(folder.join(file), quota).is_ok();
            if !has_it {
                let _ = fs::remove_dir(&folder);
            }
            has_it.then_some(Quota(folder))
        })
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Its last process may be ending.
        let soon = REAL_CLOCK.now() + Nanos::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && REAL_CLOCK.now() < soon {
            REAL_CLOCK.sleep(Nanos::from_millis(20));
        }
    }
}

/// Whether this is on this machine.
pub(crate) fn is_there(need: &str) -> bool {
    let lab = Lab::new();
    let said = |program: &str, words: &[&str]| lab.program(program).args(words).output();
    let succeeds = |program: &str, words: &[&str]| said(program, words).is_ok_and(|output| output.status.success());
    let rails = ["-e", "require 'logger'; require 'action_controller/railtie'"];
    match need {
        "soak" => lab::soaks(),
        "cores" => can(launch::affinity::ours().is_some_and(|ours| ours.len() > 1), "one processor"),
        "root" => can(rustix::process::geteuid().is_root(), "only root can do it"),
        "ipv6" => can(TcpListener::bind("[::1]:0").is_ok(), "no IPv6 on this machine"),
        "ssl" => {
            has("puma") && can(succeeds("ruby", &["-rpuma", "-e", "exit Puma.ssl?"]), "this Puma was built without SSL")
        }
        "old" => {
            let version = said("puma", &["--version"]).map(|output| String::from_utf8(output.stdout).unwrap());
            let is_old = |version: String| version.split(&[' ', '.']).any(|word| matches!(word, "3" | "4" | "5" | "6"));
            has("puma") && can(version.is_ok_and(is_old), "this Puma is of another age")
        }
        "rails" => has("puma") && can(succeeds("ruby", &rails), "Rails is not installed (ruby-railties)"),
        "nobody" => {
            let words = ["--reuid=65534", "--regid=65534", "--clear-groups", LONGTAIL, "--version"];
            can(succeeds("setpriv", &words), "another user cannot run this executable")
        }
        "limits" => {
            let words = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "true"];
            let may = !rustix::process::geteuid().is_root() || succeeds("setpriv", &words);
            can(may, "root cannot give up CAP_SYS_RESOURCE (setpriv)")
        }
        "clocks" => can(succeeds("unshare", &["-T", "true"]), "no time namespace"),
        "bpf" => can(probe::bpf::possible().is_ok(), "no BPF here"),
        program => has(program),
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

/// A study that is made and not measured.
fn made(name: &str) -> Study {
    match name {
        "judged" => testkit::study::judged().into(),
        "canonical" => testkit::study::canonical().into(),
        "bodies" => testkit::bodies::canonical().into(),
        "closed" => testkit::load::closed().into(),
        "failing" => testkit::load::failing().into(),
        "poisson" => testkit::load::open_poisson().into(),
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
    let mut parts = text
        .replace("\\n", "\n")
        .replace("\\r", "\r")
        .replace("\\t", "\t")
        .split("\\x")
        .map(str::to_owned)
        .collect::<Vec<_>>();
    for part in &mut parts[1..] {
        let code = u8::from_str_radix(&part[..2], 16).unwrap();
        part.replace_range(..2, &char::from(code).to_string());
    }
    parts.concat()
}

#[test]
fn loads() {
    hold("load");
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
