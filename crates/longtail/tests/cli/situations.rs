//! The table of caused situations: each is brought about by the real thing, and what the program says of it is held against what is
//! so. docs/SITUATIONS.md says what it must say; `situations.txt` how it is caused, and `causes` what is done by hand and what else is proven.
//!
//! To add one: a row of the page and a line of the text.

#![expect(clippy::unnecessary_wraps, reason = "the causes have one type, whether or not one may be impossible")]

mod causes;

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{
    CpuUsage, Diagnostic, Discipline, GeneratorFacts, Grade, Judgement, Limit, LoadStudy, Nanos, Run, SweepStudy,
    Verdict,
};
use sink::{DelayLaw, Sink, SinkBody, SinkSettings};
use testkit::clock::eventually;
use testkit::http::Receiver;
use testkit::network::Way;

use crate::far::Machines;
use crate::lab::{Ended, LONGTAIL, Lab, PATIENCE, Running, can, free_port, has, major, soaks};
use crate::load::{load, study};

/// What must be said of each.
const PAGE: &str = include_str!("../../../../docs/SITUATIONS.md");

/// How each is caused.
const CAUSES: &str = include_str!("situations.txt");

/// A situation.
struct Situation {
    name: &'static str,
    /// What the program must say.
    expected: Cells,
    /// Marks, and the means.
    cause: &'static str,
    /// Whether the order of service is asked for.
    is_of_order: bool,
}

impl Situation {
    fn is(&self, mark: &str) -> bool {
        self.cause.split(' ').take_while(|word| MARKS.contains(word)).any(|word| word == mark)
    }
}

const MARKS: [&str; 4] = ["alone", "soaked", "cores", "old"];

/// What the program says of a situation, in the words of the page: exit code (or `signal`), the run's verdict, its limit, and the one order
/// of service that the runs look like. A dash: nothing of the kind is said, or asked.
type Cells = [String; 4];

/// What the program said of it, or why it cannot be caused here.
type Caused = Result<Seen, String>;

/// The situations of a group of the page.
fn situations(group: &str) -> Vec<Situation> {
    let (_, rows) = PAGE.split_once(&format!("\n## {group}\n")).expect("a group of the page");
    let (rows, _) = rows.split_once("\n## ").unwrap_or((rows, ""));
    let situation = |row: &'static str| {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, expected @ ..] = columns.as_slice() else { panic!("{row}") };
        let causes = CAUSES.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(" => "));
        let [cause] = causes.collect::<Vec<_>>()[..] else { panic!("one line of situations.txt for '{name}'") };
        let expected = expected.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>().try_into().unwrap();
        Situation { name, expected, cause, is_of_order: group == "theory" }
    };
    rows.lines().filter(|line| line.starts_with('|')).skip(2).map(situation).collect()
}

/// What the program said.
#[derive(Debug)]
struct Seen {
    cells: Cells,
    /// What the machine did to the run, in a word: it may explain a wrong cell.
    disturbed: Option<String>,
    /// All that was printed.
    printed: String,
    judgement: Option<Judgement>,
    /// The study of a load.
    load: Option<Box<LoadStudy>>,
    /// The last run of a sweep.
    run: Option<Box<Run>>,
}

impl Seen {
    /// What a program without a study said.
    fn exit(ended: &Ended) -> Seen {
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        let code = ended.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string());
        let cells = [&code, "-", "-", "-"].map(str::to_owned);
        Seen { cells, disturbed: None, printed, judgement: None, load: None, run: None }
    }

    /// What was said of the load in this lab.
    fn load(ended: &Ended, lab: &Lab) -> Seen {
        let study = study(lab);
        let seen = Seen::exit(ended).judged(study.run.judgement.as_ref(), &study.run.generator, None);
        Seen { load: Some(Box::new(study)), ..seen }
    }

    /// What was said of the last run of a sweep, and of the order of service of all.
    fn sweep(ended: &Ended, study: &SweepStudy) -> Seen {
        let disciplines = study.inferred_discipline().map_or(Vec::new(), |inferred| inferred.disciplines);
        let one = if let [one] = disciplines.as_slice() { Some(*one) } else { None };
        let run = study.runs.last().expect("a run");
        let seen = Seen::exit(ended).judged(run.judgement.as_ref(), &run.generator, one);
        Seen { run: Some(Box::new(run.clone())), ..seen }
    }

    fn judged(self, judgement: Option<&Judgement>, generator: &GeneratorFacts, discipline: Option<Discipline>) -> Seen {
        let verdict = judgement.map(|judgement| match judgement.verdict {
            Verdict::ServerBound => "server-bound",
            Verdict::GeneratorBound => GENERATOR,
            Verdict::NetworkBound => "network-bound",
            Verdict::SharedCpus => SHARED,
            Verdict::Unloaded => "unloaded",
            Verdict::Invalid => INVALID,
        });
        let limit = judgement.and_then(|judgement| judgement.limit.as_ref()).map(Limit::name);
        let [exit, ..] = self.cells;
        let order = discipline.map(|order| order.to_string());
        let [verdict, limit, order] = [verdict.map(str::to_owned), limit.map(str::to_owned), order]
            .map(|word| word.unwrap_or_else(|| "-".to_owned()));
        let disturbed = judgement.and_then(|judgement| disturbed(judgement, generator));
        Seen { cells: [exit, verdict, limit, order], disturbed, judgement: judgement.cloned(), ..self }
    }

    /// The study of the load that it was.
    fn load_study(&self) -> &LoadStudy {
        self.load.as_deref().expect("it was a load")
    }

    /// The check that `is` picks out has this grade.
    #[track_caller]
    fn graded(&self, grade: Grade, is: fn(&Diagnostic) -> bool) {
        let judgement = self.judgement.as_ref().expect("it was judged");
        let found = judgement.checks.iter().find(|check| is(check)).map(Diagnostic::grade);
        assert_eq!(found, Some(grade), "{judgement:?}");
    }
}

const GENERATOR: &str = "generator-bound";
const SHARED: &str = "shared CPUs";
const INVALID: &str = "INVALID";

/// Others may have this share of the server's CPUs and disturb nothing.
const OTHERS: f64 = 0.03;

/// A thread that has stood still for so long was kept from its work.
const STANDSTILL: Nanos = Nanos::from_millis(5);

/// Whether the kernel says that a lane waited for a processor or stood still, the machine for its host, others' accept queues lost
/// connections while all of ours were made at once, or that others had a part of the CPUs.
fn disturbed(judgement: &Judgement, facts: &GeneratorFacts) -> Option<String> {
    let is_of_machine =
        |check: &&Diagnostic| matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. });
    let by_check = judgement
        .checks
        .iter()
        .filter(is_of_machine)
        .find(|check| check.grade() > Grade::Passed)
        .map(ToString::to_string);
    let stood = judgement
        .checks
        .iter()
        .find(|check| matches!(check, Diagnostic::Standstill { longest, .. } if *longest >= STANDSTILL));
    let of_others = judgement
        .checks
        .iter()
        .find(|check| matches!(check, Diagnostic::ConnectStalls { retried: 1.., longest } if *longest < STANDSTILL));
    let by_check = by_check.or_else(|| stood.or(of_others).map(|check| format!("{check:?}")));
    let cpu = CpuUsage::of(facts).filter(|cpu| cpu.others.is_some_and(|others| others >= OTHERS * cpu.of));
    by_check.or_else(|| cpu.map(|cpu| cpu.to_string()))
}

/// As many situations stand there, whether or not this machine can cause them all.
const LEAST: usize = 40;

/// So often a situation is caused alone where the machine disturbs it.
const TRIES: usize = 3;

/// Who holds it has the machine to itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// Causes each situation of a group, prints its row, and fails with every wrong cell.
fn hold(group: &str) {
    let all = situations(group).into_iter().filter(|row| soaks() || !row.is("soaked"));
    let (mut alone, others): (Vec<Situation>, Vec<Situation>) = all.partition(|row| row.is("alone"));
    let mut said = Said::default();
    for row in others {
        match caused(&row, 1) {
            Came::Excused(_) => alone.push(row),
            // Other tests run beside it, and not all that they do to it is seen.
            Came::Judged(seen, _) if may_be_the_machines(&seen.cells, &row.expected) => alone.push(row),
            came => said.add(group, &row, came),
        }
    }
    // What needs the machine for itself, and what others have disturbed: one at a time, and when all other tests are over.
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for row in alone {
        Lab::wait_for_the_others();
        said.add(group, &row, caused(&row, TRIES));
    }
    let Said { wrong, judged, excused } = said;
    assert!(wrong.is_empty(), "wrong cells:\n{wrong}");
    // A machine is busy now and then. What is wrong each time is wrong, and not the machine.
    assert!(excused <= judged, "{group}: {excused} situations laid to the machine, and only {judged} judged");
}

/// What was said of the situations of a group.
#[derive(Default)]
struct Said {
    wrong: String,
    judged: usize,
    excused: usize,
}

impl Said {
    #[expect(clippy::print_stdout, reason = "the table is what the test prints")]
    fn add(&mut self, group: &str, row: &Situation, came: Came) {
        let said = match came {
            Came::Judged(seen, before) => {
                self.judged += 1;
                let said = seen.cells.join(" · ");
                if seen.cells == row.expected {
                    causes::prove(row.name, &seen);
                    format!("as expected{before}")
                } else {
                    let _ = writeln!(self.wrong, "{}: {said}\nnot {}\n{seen:#?}\n", row.name, row.expected.join(" · "));
                    format!("WRONG: {said}{before}")
                }
            }
            Came::Excused(before) => {
                self.excused += 1;
                can(false, &format!("{}: the machine is too busy{before}", row.name));
                format!("skipped: the machine is too busy{before}")
            }
            Came::Impossible(reason) => {
                can(false, &format!("{}: {reason}", row.name));
                format!("skipped: {reason}")
            }
        };
        println!("{group}: {}: {}: {said}", row.name, row.expected.join(" · "));
    }
}

/// What came of a situation.
enum Came {
    /// It was caused and may be judged; what was said before, on a disturbed machine.
    Judged(Box<Seen>, String),
    /// The machine explains each time what was said.
    Excused(String),
    /// It cannot be caused here, and why.
    Impossible(String),
}

/// Causes a situation, again where the machine explains what was said.
fn caused(row: &Situation, tries: usize) -> Came {
    let mut before = String::new();
    for _ in 0..tries {
        let seen = match cause(row) {
            Ok(seen) => seen,
            Err(reason) => return Came::Impossible(reason),
        };
        let why = seen.disturbed.as_ref().filter(|_| may_be_the_machines(&seen.cells, &row.expected));
        let Some(why) = why else { return Came::Judged(Box::new(seen), before) };
        let _ = write!(before, "; before: {}: {why}", seen.cells.join(" · "));
    }
    Came::Excused(before)
}

/// Whether a machine whose processors others use can be why this was said: that the generator or the processors were the limit, that
/// nothing settled, or that the order of service was not found. Another verdict, limit, order or exit code is wrong on any machine. Where the
/// processors are contested on purpose it is no excuse that they are.
fn may_be_the_machines(said: &Cells, expected: &Cells) -> bool {
    let [exit, verdict, limit, order] = said.each_ref().map(String::as_str);
    if limit == "accept queue" && expected[2] != limit {
        return true;
    }
    let is_of_it = match verdict {
        GENERATOR | SHARED | INVALID => expected[1] != SHARED,
        _ => said[..3] == expected[..3] && order == "-",
    };
    let of_verdict = if verdict == INVALID { "3" } else { &expected[0] };
    said != expected && exit == of_verdict && is_of_it
}

/// Causes it.
fn cause(row: &Situation) -> Caused {
    if row.is("cores") && causes::cpus() == 1 {
        return Err("one CPU".to_owned());
    }
    let means = row.cause.split(' ').skip_while(|word| MARKS.contains(word)).collect::<Vec<_>>().join(" ");
    if means == "by hand" {
        return causes::by_hand(row.name);
    }
    let (lab, port) = (Lab::new(), free_port());
    let means = [
        ("{port}", port.to_string()),
        ("{free}", free_port().to_string()),
        ("{cpus}", causes::cpus().to_string()),
        ("{longtail}", LONGTAIL.to_owned()),
    ]
    .iter()
    .fold(means, |means, (name, value)| means.replace(name, value));
    let (server, client) = means.split_once(" | load ").unwrap_or(("", means.strip_prefix("load ").unwrap_or(&means)));
    match server.split_once(' ').unwrap_or_default() {
        ("sink", words) => {
            let server = served(&lab, words);
            Ok(Seen::load(&load(&lab, &format!("{client} {}", server.url)), &lab))
        }
        ("answer", answer) => {
            let server = Receiver::answering(answer.replace("\\r\\n", "\r\n").leak());
            Ok(Seen::load(&load(&lab, &format!("{client} {}", server.url())), &lab))
        }
        ("far", way) => {
            let numbers: Vec<u64> = way.split(',').map(|number| number.parse().unwrap()).collect();
            let [delay, loses_every, held] = numbers[..] else { panic!("{way}") };
            over_a_wire(delay, loses_every, held, |machines, sink| {
                let is_elsewhere = client.contains("http://");
                let url = if is_elsewhere { String::new() } else { crate::load::url(sink) };
                let ended = machines.load(&format!("{client} {url}"));
                if is_elsewhere { Seen::exit(&ended) } else { Seen::load(&ended, &machines.lab) }
            })
        }
        _ if means.starts_with("load ") => Ok(Seen::exit(&load(&lab, client))),
        _ => {
            wants(if means.contains(" -- node ") { "node" } else { "puma" })?;
            causes::apps(&lab);
            let ended = lab.start_at(port, &means.replacen("sweep", "sweep --no-calibrate", 1)).end();
            let study = lab.study();
            if row.is("old") && !(1..=6).contains(&major(&study.server)) {
                return Err("this Puma is of another age".to_owned());
            }
            let mut seen = Seen::sweep(&ended, &study);
            if !row.is_of_order {
                "-".clone_into(&mut seen.cells[3]);
            }
            Ok(seen)
        }
    }
}

/// Where this program is not on PATH, it cannot be caused.
fn wants(program: &str) -> Result<(), String> {
    if has(program) { Ok(()) } else { Err(format!("{program} is not on PATH")) }
}

/// A sink in a process of its own: its CPU time is not that of the tests.
struct Served {
    running: Running,
    port: u16,
    url: String,
}

/// `longtail sink` with these words.
fn served(lab: &Lab, words: &str) -> Served {
    let port = free_port();
    let running = lab.start(&format!("sink --listen 127.0.0.1:{port} {words}"));
    let listens = || probe::sockets::ServerListener::of_port(port).sample().unwrap().listening;
    eventually(PATIENCE, || running.said(), || listens().then_some(()));
    Served { running, port, url: format!("http://127.0.0.1:{port}/") }
}

/// What is seen over a wire that takes so many ms each way and loses every so many-th packet, behind which is a server that holds a request
/// for so many ms.
fn over_a_wire(delay: u64, loses_every: u64, held: u64, see: impl FnOnce(&Machines, &Sink) -> Seen) -> Caused {
    let way = Way { delay: Duration::from_millis(delay), loses_every };
    let machines = Machines::joined(way, way).ok_or("no network namespace can be made here")?;
    machines.here.ip("route add unreachable 10.78.0.0/24");
    let delay = DelayLaw::from(Nanos::from_millis(held));
    let (sink, _) = machines.sink("10.77.0.2:0", SinkSettings { body: SinkBody::Ok, delay, ..SinkSettings::default() });
    Ok(see(&machines, &sink))
}

#[test]
fn each_situation_of_the_page_stands_there_once_and_has_its_cause() {
    let groups = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    let mut names: Vec<&str> = groups.flat_map(situations).map(|situation| situation.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name stands twice");
    assert!(all >= LEAST, "{all} situations");
    assert_eq!(CAUSES.lines().filter(|line| line.contains(" => ")).count(), all, "causes of no situation");
}

#[test]
fn limits_are_named() {
    hold("limits");
}

#[test]
fn overloads_are_found() {
    hold("overload");
}

#[test]
fn orders_of_service_are_told() {
    hold("theory");
}

#[test]
fn the_generator_convicts_itself() {
    hold("generator");
}

#[test]
fn the_networks_faults_are_the_networks() {
    hold("network");
}

#[test]
fn faults_are_survived() {
    hold("faults");
}
