//! The table of caused situations: each is brought about by the real thing, and what the program says of it is held against what is
//! so. A row says how it is caused and what is expected; sentences are no part of it. A file a group; docs/SITUATIONS.md is written
//! from the rows (`UPDATE_GOLDEN=1`).
//!
//! To add a row: a `Row` in its group's file. Its `cause` runs the program to its end and returns what it saw, or why it cannot be
//! caused here. A cell that is not asked about is `None` on both sides: `Cells` says so in one place, for row and page.

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

use model::theory::inferred;
use model::{CpuUse, Diagnostic, Discipline, GeneratorFacts, Grade, Judgement, LoadStudy, Nanos, SweepStudy, Verdict};

use crate::clock::eventually;
use crate::lab::{Ended, Lab, PATIENCE, Running, can, free_port};

/// A situation.
pub(crate) struct Row {
    /// What it is, in a few words.
    pub(crate) name: &'static str,
    /// How it is caused, in a few words.
    pub(crate) how: &'static str,
    /// What the program must say.
    pub(crate) expected: Cells,
    /// Causes it.
    pub(crate) cause: fn() -> Caused,
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

/// What came of causing it.
pub(crate) enum Caused {
    /// It was caused.
    Seen(Seen),
    /// It cannot be caused here, and why.
    Skipped(String),
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) cells: Cells,
    /// What the machine did to the run, in a word: it may explain a wrong cell.
    pub(crate) disturbed: Option<String>,
    /// All that it rests on, for whoever reads why a cell is wrong.
    pub(crate) evidence: String,
}

impl Seen {
    /// What a program without a study said.
    pub(crate) fn exit(ended: &Ended) -> Seen {
        let cells = Cells { exit: ended.status.code(), ..Cells::default() };
        Seen { cells, disturbed: None, evidence: format!("{}{}", ended.stdout, ended.stderr) }
    }

    /// What was said of a load.
    pub(crate) fn load(ended: &Ended, study: &LoadStudy) -> Seen {
        Seen::judged(ended, study.run.judgement.as_ref(), &study.run.generator, None)
    }

    /// What was said of the last run of a sweep, and of the order of service of all.
    pub(crate) fn sweep(ended: &Ended, study: &SweepStudy) -> Seen {
        let disciplines =
            inferred(&study.runs, study.server.slots()).map_or(Vec::new(), |inferred| inferred.disciplines);
        let one = if let [one] = disciplines.as_slice() { Some(*one) } else { None };
        let run = study.runs.last().expect("a run");
        Seen::judged(ended, run.judgement.as_ref(), &run.generator, one)
    }

    /// The same where nobody asks for the order of service.
    pub(crate) fn without_discipline(self) -> Seen {
        Seen { cells: Cells { discipline: None, ..self.cells }, ..self }
    }

    fn judged(
        ended: &Ended,
        judgement: Option<&Judgement>,
        facts: &GeneratorFacts,
        discipline: Option<Discipline>,
    ) -> Seen {
        let limit = judgement.and_then(|judgement| judgement.limit.as_ref());
        let cells = Cells {
            exit: ended.status.code(),
            verdict: judgement.map(|judgement| judgement.verdict),
            limit: limit.map(model::Limit::name),
            discipline,
        };
        let evidence = format!("{limit:?}\n{judgement:#?}\n{}{}", ended.stdout, ended.stderr);
        Seen { cells, disturbed: judgement.and_then(|judgement| disturbed(judgement, facts)), evidence }
    }
}

/// Others may have this share of the server's CPUs and disturb nothing.
const OTHERS: f64 = 0.03;

/// Whether the kernel says that a lane waited for a processor, the machine for its host, or that others had a part of the CPUs.
fn disturbed(judgement: &Judgement, facts: &GeneratorFacts) -> Option<String> {
    let is_of_machine =
        |check: &&Diagnostic| matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. });
    let by_check = judgement
        .checks
        .iter()
        .filter(is_of_machine)
        .find(|check| check.grade() > Grade::Passed)
        .map(ToString::to_string);
    let cpu = CpuUse::of(facts).filter(|cpu| cpu.others.is_some_and(|others| others >= OTHERS * cpu.of));
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

/// So often a situation is caused where the machine disturbs it.
const TRIES: usize = 2;

/// Causes each situation of a group, prints its row, and fails with every wrong cell.
#[expect(clippy::print_stdout, reason = "the table is what the test prints")]
fn hold((group, rows): Group) {
    // One at a time: they would be each other's neighbours on the processors.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = String::new();
    // `make test` has no time for all of them: every other one, and `make soak` the rest.
    let is_soaked = std::env::var_os("LONGTAIL_SOAK").is_some();
    let (mut judged, mut excused) = (0, 0);
    for (at, row) in rows().into_iter().enumerate() {
        if at % 2 == 1 && !is_soaked {
            println!("{group}: {}: {}: left to make soak", row.name, words(&row.expected));
            continue;
        }
        let said = match caused(&row) {
            Came::Judged(seen, before) => {
                judged += 1;
                let said = words(&seen.cells);
                if seen.cells == row.expected {
                    format!("as expected{before}")
                } else {
                    let _ = writeln!(wrong, "{}: {said}\nnot {}\n{}\n", row.name, words(&row.expected), seen.evidence);
                    format!("WRONG: {said}{before}")
                }
            }
            Came::Excused(before) => {
                excused += 1;
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
    assert!(wrong.is_empty(), "wrong cells:\n{wrong}");
    // A machine is busy now and then. What is wrong each time is wrong, and not the machine.
    assert!(excused <= judged, "{group}: {excused} situations laid to the machine, and only {judged} judged");
}

/// What came of a situation.
enum Came {
    /// It was caused and may be judged; what was said before, on a disturbed machine.
    Judged(Seen, String),
    /// The machine explains each time what was said.
    Excused(String),
    /// It cannot be caused here, and why.
    Impossible(String),
}

/// Causes a situation, again where the machine explains what was said.
fn caused(row: &Row) -> Came {
    let mut before = String::new();
    for _ in 0..TRIES {
        let seen = match (row.cause)() {
            Caused::Seen(seen) => seen,
            Caused::Skipped(reason) => return Came::Impossible(reason),
        };
        let why = seen.disturbed.as_ref().filter(|_| may_be_the_machines(&seen.cells, &row.expected));
        let Some(why) = why else { return Came::Judged(seen, before) };
        let _ = write!(before, "; before: {}: {why}", words(&seen.cells));
    }
    Came::Excused(before)
}

/// Whether a machine whose processors others use can be why this was said: that the generator or the processors were the limit, that
/// nothing settled, or that the order of service was not told. Another verdict, limit, order or exit code is wrong on any machine. Where the
/// processors are contested on purpose it is no excuse that they are.
fn may_be_the_machines(said: &Cells, expected: &Cells) -> bool {
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
    let running = Running::start(&mut lab.longtail(&format!("sink --listen 127.0.0.1:{port} {words}")));
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
