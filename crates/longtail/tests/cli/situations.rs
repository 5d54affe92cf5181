//! The table of caused situations: each is brought about by the real thing, and what the program
//! says of it is held against what is so. docs/SITUATIONS.md says what it must say;
//! `situations.txt` how it is caused, and what else is proven.
//!
//! To add one: a row of the page and lines of the text. `LONGTAIL_SCENARIO=PART` causes those that
//! have this in their name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::RaiseOnDrop;
use judge::Grade;
use launch::affinity;
use model::{Clock as _, CpuUsage, Diagnostic, GeneratorFacts, Judgement, Nanos, Study, Verdict};
use serde_json::Value;
use testkit::clock::REAL_CLOCK;

use crate::lab::{Lab, can, soaks};
use crate::scenarios::{Played, Stage};

/// What must be said of each.
const PAGE: &str = include_str!("../../../../docs/SITUATIONS.md");

/// How each is caused.
const CAUSES: &str = include_str!("situations.txt");

/// A situation.
struct Situation {
    name: &'static str,
    /// What the program must say.
    expected: Cells,
    /// How it is to be caused.
    marks: &'static str,
    /// The scenario by which it is.
    cause: String,
    /// What is so where it says that.
    proof: &'static str,
    /// Whether the order of service is asked for.
    is_of_order: bool,
}

/// What the program says of a situation, in the words of the page: exit code (or `signal`), the
/// run's verdict, its limit, and the one order of service that the runs look like; of a watch its
/// limit alone, or `may be` and what it takes for one. A dash: nothing of the kind is said, or asked.
type Cells = [String; 4];

/// The marks and the steps of each situation that has a cause.
fn causes() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let cause = |text: &'static str| {
        let (title, steps) = text.split_once('\n').expect("steps");
        let (name, marks) = title.split_once(" (").unwrap_or((title, ""));
        (name, (marks, steps))
    };
    CAUSES.split("\n== ").skip(1).map(cause).collect()
}

/// The situations of a group of the page.
fn situations(group: &str) -> Vec<Situation> {
    let (_, rows) = PAGE.split_once(&format!("\n## {group}\n")).expect("a group of the page");
    let (rows, _) = rows.split_once("\n## ").unwrap_or((rows, ""));
    let causes = causes();
    let situation = |row: &'static str| {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, expected @ ..] = columns.as_slice() else { panic!("{row}") };
        let (marks, steps) = causes
            .get(name)
            .unwrap_or_else(|| panic!("situations.txt does not say how '{name}' is caused"));
        let (cause, proof) = steps.split_once("\nthen\n").unwrap_or((steps, ""));
        let cause = format!("{name}\n{cause}\nexit any\n");
        let expected =
            expected.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>().try_into().unwrap();
        Situation { name, expected, marks, cause, proof, is_of_order: group == "theory" }
    };
    rows.lines().filter(|line| line.starts_with('|')).skip(2).map(situation).collect()
}

/// What the program said.
struct Seen {
    cells: Cells,
    /// What the machine did to the run, in a word: it may explain a wrong cell.
    disturbed: Option<String>,
    stage: Stage,
}

/// What is wrong with what the program said of a situation.
struct Fault {
    /// In a line.
    summary: String,
    /// With all that was printed and kept.
    details: String,
    /// Whether a machine whose CPUs others use can be why.
    may_be_the_machines: bool,
}

impl Seen {
    /// What was said of the load, or of the last run of a sweep and of the order of service of all.
    fn of(stage: Stage, is_of_order: bool) -> Seen {
        let exit = stage
            .ended()
            .status
            .code()
            .map_or_else(|| "signal".to_owned(), |code| code.to_string());
        if let Some(limit) = limit_of_watch(&stage.ended().stdout) {
            let none = "-".to_owned();
            let cells = [exit, none.clone(), limit, none];
            return Seen { cells, disturbed: None, stage };
        }
        let study = stage.newest_study();
        let run = study.as_ref().and_then(|study| study.runs().last().copied());
        let judgement = run.and_then(|run| run.judgement.as_ref());
        let verdict = judgement.map(|judgement| match judgement.verdict {
            Verdict::ServerBound => "server-bound",
            Verdict::GeneratorBound => GENERATOR,
            Verdict::NetworkBound => "network-bound",
            Verdict::SharedCpus => SHARED,
            Verdict::Unloaded => "unloaded",
            Verdict::Invalid => INVALID,
        });
        let limit =
            judgement.and_then(|judgement| judgement.limit.as_ref()).map(judge::limits::name);
        let order = match &study {
            Some(Study::Sweep(sweep)) if is_of_order => {
                match &sweep.inferred_discipline().map(|one| one.disciplines) {
                    Some(orders) if orders.len() == 1 => Some(orders[0].to_string()),
                    _ => None,
                }
            }
            _ => None,
        };
        let said = [verdict.map(str::to_owned), limit.map(str::to_owned), order];
        let [verdict, limit, order] = said.map(|word| word.unwrap_or_else(|| "-".to_owned()));
        let disturbed =
            judgement.zip(run).and_then(|(judgement, run)| disturbed(judgement, &run.generator));
        Seen { cells: [exit, verdict, limit, order], disturbed, stage }
    }

    /// What is wrong with it: another cell than the page has, or what is to be proven then.
    fn fault(mut self, row: &Situation) -> Option<Fault> {
        if self.cells != row.expected {
            let said = self.cells.join(" · ");
            let (ended, study) = (self.stage.ended(), self.stage.newest_study());
            return Some(Fault {
                details: format!(
                    "{said}\nnot {}\n{ended:#?}\n{study:#?}",
                    row.expected.join(" · ")
                ),
                summary: said,
                may_be_the_machines: may_be_the_machines(&self.cells, &row.expected),
            });
        }
        let proven = AssertUnwindSafe(|| {
            self.stage.play(row.proof);
            self.stage.assert_sound();
        });
        let panic = catch_unwind(proven).err()?;
        let details = match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(_) => "the proof failed, with what is said above".to_owned(),
        };
        let summary = details.lines().next().unwrap_or_default().to_owned();
        Some(Fault { summary, details, may_be_the_machines: true })
    }
}

/// What the JSON of a watch says of the limit; `None` of all else.
fn limit_of_watch(printed: &str) -> Option<String> {
    let seen: Value = serde_json::from_str(printed).ok()?;
    (seen["kind"] == "watch").then(|| {
        match (seen["limit"].as_str(), seen["limit_may_be"].as_str()) {
            (Some(limit), _) => limit.to_owned(),
            (None, Some(guess)) => format!("may be {guess}"),
            (None, None) => "-".to_owned(),
        }
    })
}

const GENERATOR: &str = "generator-bound";
const SHARED: &str = "shared CPUs";
const INVALID: &str = "INVALID";

/// Others may have this share of the server's CPUs and disturb nothing.
const OTHERS: f64 = 0.03;

/// A thread that has stood still for so long was kept from its work.
const STANDSTILL: Nanos = Nanos::from_millis(5);

/// Whether the kernel says that a lane waited for a processor or stood still, the machine for its
/// host, others' accept queues lost connections while all of ours were made at once, or that others
/// had a part of the CPUs.
fn disturbed(judgement: &Judgement, facts: &GeneratorFacts) -> Option<String> {
    let is_of_machine = |check: &&Diagnostic| {
        matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. })
    };
    let by_check = judgement
        .checks
        .iter()
        .filter(is_of_machine)
        .find(|check| judge::grade(check) > Grade::Passed)
        .map(|check| judge::assess(check).sentence);
    let stood = judgement.checks.iter().find(
        |check| matches!(check, Diagnostic::Standstill { longest, .. } if *longest >= STANDSTILL),
    );
    let of_others = judgement
        .checks
        .iter()
        .find(|check| matches!(check, Diagnostic::ConnectStalls { retried: 1.., longest } if *longest < STANDSTILL));
    let by_check = by_check.or_else(|| stood.or(of_others).map(|check| format!("{check:?}")));
    let cpu = CpuUsage::of(facts)
        .filter(|cpu| cpu.others.is_some_and(|others| others >= OTHERS * cpu.of));
    by_check.or_else(|| cpu.map(|cpu| cpu.to_string()))
}

/// As many situations stand there, whether or not this machine can cause them all.
const LEAST: usize = 40;

/// `make test` causes a third of them, and another third after each commit; `make soak` all.
const TURNS: usize = 3;

/// Whose turn it is, 0 to 2: `bin/run-tests` says it.
fn turn() -> usize {
    let turn = std::env::var("LONGTAIL_TURN").ok().and_then(|turn| turn.parse::<usize>().ok());
    turn.unwrap_or(0) % TURNS
}

/// So often a situation is caused alone where the machine disturbs it.
const TRIES: usize = 3;

/// Who holds it has the machine to itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// Causes each situation of a group, prints its row, and fails with every wrong cell.
fn hold(group: &str) {
    let only = std::env::var("LONGTAIL_SCENARIO").unwrap_or_default();
    let mut all = situations(group);
    all.retain(|row| row.name.contains(&only));
    if !soaks() && only.is_empty() {
        let mut number = 0..;
        all.retain(|_| number.next().is_some_and(|number: usize| number % TURNS == turn()));
    }
    let (mut alone, others): (Vec<Situation>, Vec<Situation>) =
        all.into_iter().partition(|row| row.marks.contains("alone"));
    let mut said = Said::default();
    for row in others {
        match caused(&row, 1) {
            Came::Excused(..) => alone.push(row),
            // Other tests run beside it, and not all that they do to it is seen.
            Came::Wrong(fault, _) if fault.may_be_the_machines => alone.push(row),
            came => said.add(group, &row, came),
        }
    }
    // What needs the machine for itself, and what others have disturbed: one at a time, and when
    // all other tests are over.
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for row in alone {
        Lab::wait_for_the_others();
        said.add(group, &row, caused(&row, TRIES));
    }
    let Said { wrong, judged, excused } = said;
    assert!(wrong.is_empty(), "wrong situations:\n{wrong}");
    // A machine is busy now and then. What is wrong each time, and nobody else saw why, is wrong,
    // and not the machine.
    assert!(
        excused <= judged + 1,
        "{group}: {excused} situations laid to the machine, and only {judged} judged"
    );
}

/// What was said of the situations of a group.
#[derive(Default)]
struct Said {
    wrong: String,
    judged: usize,
    /// Those that were laid to a machine of which the witness saw nothing.
    excused: usize,
}

impl Said {
    #[expect(clippy::print_stdout, reason = "the table is what the test prints")]
    fn add(&mut self, group: &str, row: &Situation, came: Came) {
        let said = match came {
            Came::Right(before) => {
                self.judged += 1;
                format!("as expected{before}")
            }
            Came::Wrong(fault, before) => {
                self.judged += 1;
                let _ = writeln!(self.wrong, "{}: {}\n", row.name, fault.details);
                format!("WRONG: {}{before}", fault.summary)
            }
            Came::Excused(before, is_witnessed) => {
                self.excused += usize::from(!is_witnessed);
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
    /// It was caused, and what was said is right; what was said before, on a disturbed machine.
    Right(String),
    /// It was caused, and what was said is wrong; what was said before, on a disturbed machine.
    Wrong(Fault, String),
    /// The machine explains each time what was said, and whether the witness saw it each time.
    Excused(String, bool),
    /// It cannot be caused here, and why.
    Impossible(String),
}

/// Causes a situation, again where the machine explains what was said, and once more where nothing
/// explains it: of the conclusions that are *probably* so, 2 in 100 may not be. `make soak` takes none
/// of them back.
fn caused(row: &Situation, tries: usize) -> Came {
    let mut before = String::new();
    let mut is_witnessed = true;
    let mut may_be_chance = tries > 1 && !soaks();
    for _ in 0..tries {
        let mut stage = Stage::new(&row.cause);
        let (played, witness) = witnessed(|| stage.play(row.cause.split_once('\n').unwrap().1));
        if let Played::Missing(what) = played {
            return Came::Impossible(format!("it needs {what}"));
        }
        let seen = Seen::of(stage, row.is_of_order);
        let disturbed = seen.disturbed.clone().or_else(|| witness.clone());
        let Some(fault) = seen.fault(row) else { return Came::Right(before) };
        if !fault.may_be_the_machines {
            return Came::Wrong(fault, before);
        }
        match disturbed {
            Some(why) => {
                let _ = write!(before, "; before: {}: {why}", fault.summary);
            }
            None if may_be_chance => {
                may_be_chance = false;
                let _ = write!(
                    before,
                    "; before: {}: wrong, though nothing disturbed it",
                    fault.summary
                );
            }
            None => return Came::Wrong(fault, before),
        }
        is_witnessed &= witness.is_some();
    }
    Came::Excused(before, is_witnessed)
}

/// Does it, and says what disturbed the machine meanwhile by our own account and not by the
/// program's: a thread of ours that sleeps now and then was woken late, processes that are not ours
/// had a part of the CPUs, or another test went on, whose processes are ours too.
fn witnessed<T>(what: impl FnOnce() -> T) -> (T, Option<String>) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (begun, before) = (REAL_CLOCK.now(), ticks_of_others());
        let witness = scope.spawn(|| {
            let (mut longest, mut is_alone) = (Nanos::ZERO, true);
            while !is_over.load(Ordering::Relaxed) {
                let asleep = REAL_CLOCK.now();
                REAL_CLOCK.sleep(Nanos::from_millis(2));
                longest = longest.max(REAL_CLOCK.now() - asleep);
                is_alone &= Lab::how_many() <= 1;
            }
            (longest, is_alone)
        });
        let end = RaiseOnDrop(&is_over);
        let done = what();
        drop(end);
        let (longest, is_alone) = witness.join().expect("it only sleeps");
        let of_others = ticks_of_others().saturating_sub(before) as f64 / 100.0;
        let cpus = f64::from(affinity::ours().map_or(1, |cpus| cpus.len() as u32))
            * (REAL_CLOCK.now() - begun).as_secs_f64();
        let is_disturbed = longest >= STANDSTILL || of_others >= OTHERS * cpus || !is_alone;
        let beside = if is_alone { "" } else { ", and other tests went on beside it" };
        let said = || {
            format!("2 ms took {longest}, others used {:.2} of the CPUs{beside}", of_others / cpus)
        };
        (done, is_disturbed.then(said))
    })
}

/// CPU time of processes that are not this one nor its children, in hundredths of a second
/// (proc(5)).
fn ticks_of_others() -> u64 {
    let sum = |text: &str, fields: &[usize]| -> u64 {
        let numbers: Vec<u64> =
            text.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        fields.iter().map(|field| numbers[*field]).sum()
    };
    let (all, own) =
        (fs::read_to_string("/proc/stat").unwrap(), fs::read_to_string("/proc/self/stat").unwrap());
    // user, nice, system, irq, softirq, steal; utime, stime, cutime, cstime behind the name.
    sum(all.lines().next().unwrap(), &[1, 2, 3, 6, 7, 8])
        .saturating_sub(sum(own.rsplit_once(')').unwrap().1, &[11, 12, 13, 14]))
}

/// Whether a machine whose processors others use can be why this was said: that the generator or
/// the processors were the limit, that nothing settled, or another limit or order of service by the
/// times that the machine made. Another verdict or exit code is wrong on any machine. Where the
/// processors are contested on purpose it is no excuse that they are.
fn may_be_the_machines(said: &Cells, expected: &Cells) -> bool {
    let [exit, verdict, limit, _] = said.each_ref().map(String::as_str);
    if limit == "accept queue" && expected[2] != limit {
        return true;
    }
    let is_of_it = match verdict {
        GENERATOR | SHARED | INVALID => expected[1] != SHARED,
        // Starved, a server does not keep up, and less than its threads could.
        "server-bound" => ["server-bound", "unloaded"].contains(&expected[1].as_str()),
        _ => said[1] == expected[1],
    };
    let of_verdict = if verdict == INVALID { "3" } else { &expected[0] };
    said != expected && exit == of_verdict && is_of_it
}

#[test]
fn each_situation_of_the_page_stands_there_once_and_has_its_cause() {
    let groups = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    let mut names: Vec<&str> =
        groups.flat_map(situations).map(|situation| situation.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name stands twice");
    assert!(all >= LEAST, "{all} situations");
    assert_eq!(
        CAUSES.lines().filter(|line| line.starts_with("== ")).count(),
        all,
        "causes of no situation"
    );
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
fn servers_that_run_already_are_judged_by_looking_at_them() {
    hold("watch");
}

#[test]
fn a_generator_at_its_limit_is_named() {
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
