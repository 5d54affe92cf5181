//! The table of caused situations: each is brought about by the real thing, and what the program says of it is held against what is
//! so. A row says how it is caused and what is expected; sentences are no part of it. A file a group; docs/SITUATIONS.md is written
//! from the rows (`UPDATE_GOLDEN=1`).
//!
//! To add a row: a `Row` in its group's file. Its `cause` runs the program to its end and returns what it saw, or why it cannot be
//! caused here. A cell that is not asked about is `None` on both sides: `Cells` says so in one place, for row and page.

#![expect(
    clippy::unnecessary_wraps,
    reason = "the causes of a table have one type, whether or not one may be impossible"
)]

mod faults;
mod generator;
mod limits;
mod network;
mod overload;
mod theory;

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use model::{
    CpuUsage, Diagnostic, Discipline, GeneratorFacts, Grade, Judgement, LoadStudy, Nanos, Run, SweepStudy, Verdict,
};

use crate::clock::eventually;
use crate::lab::{Ended, Lab, PATIENCE, Running, can, free_port, has, soaks};

/// A situation.
pub(crate) struct Row {
    /// What it is, in a few words.
    name: &'static str,
    /// How it is caused, in a few words.
    how: &'static str,
    /// What the program must say.
    expected: Cells,
    /// Causes it.
    cause: fn() -> Caused,
    /// What else must be so, where the cells are as expected.
    proof: fn(&Seen),
    /// Whether it needs the machine for itself.
    is_alone: bool,
    /// Whether `make soak` alone causes it.
    is_soaked: bool,
}

fn row(name: &'static str, how: &'static str, expected: Cells, cause: fn() -> Caused) -> Row {
    Row { name, how, expected, cause, proof: |_| (), is_alone: false, is_soaked: false }
}

impl Row {
    /// The same with more to hold.
    fn proves(self, proof: fn(&Seen)) -> Row {
        Row { proof, ..self }
    }

    /// The same, with no other beside it: not on the processors, nor in what the kernel counts of all accept queues.
    fn alone(self) -> Row {
        Row { is_alone: true, ..self }
    }

    /// The same, for `make soak`: another row of `make test` differs little from it.
    fn soaked(self) -> Row {
        Row { is_soaked: true, ..self }
    }
}

/// What the program says of a situation; `None`: it says nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells {
    /// The exit code; `None` where a signal ends it.
    pub(crate) exit: Option<i32>,
    /// The verdict of the run.
    pub(crate) verdict: Option<Verdict>,
    /// The name of its limit (`Limit::name`).
    pub(crate) limit: Option<&'static str>,
    /// The order of service that the runs look like; `None` where that is none, several, or not asked.
    pub(crate) discipline: Option<Discipline>,
}

/// What the program said of it, or why it cannot be caused here.
pub(crate) type Caused = Result<Seen, String>;

/// Where this program is not on PATH, it cannot be caused.
fn wants(program: &str) -> Result<(), String> {
    if has(program) { Ok(()) } else { Err(format!("{program} is not on PATH")) }
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Seen {
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
        let cells = Cells { exit: ended.status.code(), ..Cells::default() };
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        Seen { cells, disturbed: None, printed, judgement: None, load: None, run: None }
    }

    /// What was said of a load.
    fn load(ended: &Ended, study: &LoadStudy) -> Seen {
        let run = &study.run;
        let seen = Seen::exit(ended).judged(run.judgement.as_ref(), &run.generator, None);
        Seen { load: Some(Box::new(study.clone())), ..seen }
    }

    /// What was said of the last run of a sweep, and of the order of service of all.
    fn sweep(ended: &Ended, study: &SweepStudy) -> Seen {
        let disciplines = study.inferred_discipline().map_or(Vec::new(), |inferred| inferred.disciplines);
        let one = if let [one] = disciplines.as_slice() { Some(*one) } else { None };
        let run = study.runs.last().expect("a run");
        let seen = Seen::exit(ended).judged(run.judgement.as_ref(), &run.generator, one);
        Seen { run: Some(Box::new(run.clone())), ..seen }
    }

    /// The same where nobody asks for the order of service.
    fn without_discipline(self) -> Seen {
        Seen { cells: Cells { discipline: None, ..self.cells }, ..self }
    }

    fn judged(self, judgement: Option<&Judgement>, generator: &GeneratorFacts, discipline: Option<Discipline>) -> Seen {
        let limit = judgement.and_then(|judgement| judgement.limit.as_ref());
        let verdict = judgement.map(|judgement| judgement.verdict);
        let cells = Cells { verdict, limit: limit.map(model::Limit::name), discipline, ..self.cells };
        let disturbed = judgement.and_then(|judgement| disturbed(judgement, generator));
        Seen { cells, disturbed, judgement: judgement.cloned(), ..self }
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

type Group = (&'static str, fn() -> Vec<Row>);

/// All groups, in the order of the page.
const GROUPS: [Group; 6] = [
    ("limits", limits::rows),
    ("overload", overload::rows),
    ("theory", theory::rows),
    ("generator", generator::rows),
    ("network", network::rows),
    ("faults", faults::rows),
];

/// As many situations stand here, whether or not this machine can cause them all.
const LEAST: usize = 40;

/// So often a situation is caused alone where the machine disturbs it.
const TRIES: usize = 3;

/// Who holds it has the machine to itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// Causes each situation of a group, prints its row, and fails with every wrong cell.
fn hold((group, rows): Group) {
    let (mut alone, others): (Vec<Row>, Vec<Row>) =
        rows().into_iter().filter(|row| soaks() || !row.is_soaked).partition(|row| row.is_alone);
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
    fn add(&mut self, group: &str, row: &Row, came: Came) {
        let said = match came {
            Came::Judged(seen, before) => {
                self.judged += 1;
                let said = words(&seen.cells);
                if seen.cells == row.expected {
                    (row.proof)(&seen);
                    format!("as expected{before}")
                } else {
                    let _ = writeln!(self.wrong, "{}: {said}\nnot {}\n{seen:#?}\n", row.name, words(&row.expected));
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
        println!("{group}: {}: {}: {said}", row.name, words(&row.expected));
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
fn caused(row: &Row, tries: usize) -> Came {
    let mut before = String::new();
    for _ in 0..tries {
        let seen = match (row.cause)() {
            Ok(seen) => seen,
            Err(reason) => return Came::Impossible(reason),
        };
        let why = seen.disturbed.as_ref().filter(|_| may_be_the_machines(&seen.cells, &row.expected));
        let Some(why) = why else { return Came::Judged(Box::new(seen), before) };
        let _ = write!(before, "; before: {}: {why}", words(&seen.cells));
    }
    Came::Excused(before)
}

/// Whether a machine whose processors others use can be why this was said: that the generator or the processors were the limit, that
/// nothing settled, or that the order of service was not found. Another verdict, limit, order or exit code is wrong on any machine. Where the
/// processors are contested on purpose it is no excuse that they are.
fn may_be_the_machines(said: &Cells, expected: &Cells) -> bool {
    if said.limit == Some("accept queue") && expected.limit != said.limit {
        return true;
    }
    let is_of_it = match said.verdict {
        Some(Verdict::GeneratorBound | Verdict::SharedCpus | Verdict::Invalid) => {
            expected.verdict != Some(Verdict::SharedCpus)
        }
        _ => Cells { discipline: expected.discipline, ..*said } == *expected && said.discipline.is_none(),
    };
    let of_verdict = if said.verdict == Some(Verdict::Invalid) { Some(3) } else { expected.exit };
    said != expected && said.exit == of_verdict && is_of_it
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
    eventually(PATIENCE, || "no sink".to_owned(), || TcpStream::connect(("127.0.0.1", port)).ok());
    Served { running, port, url: format!("http://127.0.0.1:{port}/") }
}

/// A sink of four slots in one line, each held for so long.
fn four_slots_served(lab: &Lab, held: Nanos) -> Served {
    served(lab, &format!("--slots 4 --delay {}ms", held.as_millis_f64()))
}

fn words(cells: &Cells) -> String {
    columns(cells).join(" · ")
}

/// The cells in words: exit code, verdict, limit, order of service.
fn columns(cells: &Cells) -> [String; 4] {
    let verdict = |verdict| match verdict {
        Verdict::ServerBound => "server-bound",
        Verdict::GeneratorBound => "generator-bound",
        Verdict::NetworkBound => "network-bound",
        Verdict::SharedCpus => "shared CPUs",
        Verdict::Unloaded => "unloaded",
        Verdict::Invalid => "INVALID",
    };
    let or_none = |word: Option<&str>| word.unwrap_or("-").to_owned();
    [
        cells.exit.map_or_else(|| "signal".to_owned(), |code| code.to_string()),
        or_none(cells.verdict.map(verdict)),
        or_none(cells.limit),
        or_none(cells.discipline.map(Discipline::name)),
    ]
}

/// The page of all rows.
fn page() -> String {
    let mut page = String::from(
        "# Situations that are caused, and what longtail must say of them\n\n\
         Written by the tests (`UPDATE_GOLDEN=1 cargo test -p longtail --test cli situations`), which cause each of them with the real\n\
         thing and fail with every cell that is wrong: `crates/longtail/tests/cli/situations/`. Where one cannot be caused (without\n\
         root, without Puma), that is said. A dash: nothing of the kind is said, or asked.\n",
    );
    for (group, rows) in GROUPS {
        let rows = rows();
        let _ = write!(
            page,
            "\n## {group}\n\n| situation | how it is caused | exit | verdict | limit | order of service |\n|---|---|---|---|---|---|\n"
        );
        for row in rows {
            let [exit, verdict, limit, discipline] = columns(&row.expected);
            let (name, how) = (row.name, row.how);
            let _ = writeln!(page, "| {name} | {how} | {exit} | {verdict} | {limit} | {discipline} |");
        }
    }
    page
}

#[test]
fn the_page_has_each_row() {
    let mut names: Vec<&str> = GROUPS.iter().flat_map(|(_, rows)| rows()).map(|row| row.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name stands twice");
    assert!(all >= LEAST, "{all} situations");
    testkit::golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SITUATIONS.md"), &page());
}

#[test]
fn limits_are_named() {
    hold(GROUPS[0]);
}

#[test]
fn overloads_are_found() {
    hold(GROUPS[1]);
}

#[test]
fn orders_of_service_are_told() {
    hold(GROUPS[2]);
}

#[test]
fn the_generator_convicts_itself() {
    hold(GROUPS[3]);
}

#[test]
fn the_networks_faults_are_the_networks() {
    hold(GROUPS[4]);
}

#[test]
fn faults_are_survived() {
    hold(GROUPS[5]);
}
