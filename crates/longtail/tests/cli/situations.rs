//! Situations with a known cause: each is brought about for real, and what longtail says about it
//! is compared with the truth. docs/SITUATIONS.md lists what it must say; `situations.txt` says how
//! each is caused and what else must hold.
//!
//! To add one, add a row to that page and steps to that file. `LONGTAIL_SCENARIO=PART` runs those
//! with this text in their name.

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
use crate::scenarios::{ScenarioEnd, Stage};

/// What longtail must say about each.
const PAGE: &str = include_str!("../../../../docs/SITUATIONS.md");

/// How each is caused.
const CAUSES: &str = include_str!("situations.txt");

/// A situation.
struct Situation {
    name: &'static str,
    /// What longtail must say.
    expected: Cells,
    /// How to run it, such as `alone`.
    marks: &'static str,
    /// The scenario that causes it.
    cause: String,
    /// Steps that must hold if longtail says what it must.
    expectations: &'static str,
    /// Whether the order of service is compared, too.
    is_of_order: bool,
}

/// What longtail says about a situation, in the words of the page: exit code (or `signal`), verdict
/// and limit of the run, and the order of service if the runs show exactly one. A watch has only a
/// limit, or `may be` and a guess. A dash means that nothing is reported, or that it isn't
/// compared.
type Cells = [String; 4];

/// The marks and the steps of each situation.
fn causes() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let cause = |text: &'static str| {
        let (title, steps) = text.split_once('\n').expect("steps");
        let (name, marks) = title.split_once(" (").unwrap_or((title, ""));
        (name, (marks, steps))
    };
    CAUSES.split("\n== ").skip(1).map(cause).collect()
}

/// The situations of one group of the page.
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
        let (cause, expectations) = steps.split_once("\nthen\n").unwrap_or((steps, ""));
        let cause = format!("{name}\n{cause}\nexit any\n");
        let expected =
            expected.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>().try_into().unwrap();
        Situation { name, expected, marks, cause, expectations, is_of_order: group == "theory" }
    };
    rows.lines().filter(|line| line.starts_with('|')).skip(2).map(situation).collect()
}

/// What the program reported.
struct Seen {
    cells: Cells,
    /// How the machine disturbed the run, in words: that may explain a wrong cell.
    disturbed: Option<String>,
    stage: Stage,
}

/// What is wrong with what the program reported about a situation.
struct Fault {
    /// In a line.
    summary: String,
    /// With all that was printed and kept.
    details: String,
    /// Whether a busy machine can be the reason.
    may_be_the_machines: bool,
    /// The step that must hold and doesn't; `None` if a cell is wrong.
    step: Option<String>,
}

impl Seen {
    /// Reads what longtail reported about a load, or about the last run of a sweep and the order of
    /// service of all its runs.
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
        let words = [verdict.map(str::to_owned), limit.map(str::to_owned), order];
        let [verdict, limit, order] = words.map(|word| word.unwrap_or_else(|| "-".to_owned()));
        let disturbed =
            judgement.zip(run).and_then(|(judgement, run)| disturbed(judgement, &run.generator));
        Seen { cells: [exit, verdict, limit, order], disturbed, stage }
    }

    /// What is wrong: a cell that differs from the page, or a step that must hold and doesn't.
    fn fault(mut self, row: &Situation) -> Option<Fault> {
        if self.cells != row.expected {
            let summary = self.cells.join(" · ");
            let ended = self.stage.ended();
            let study = self.stage.newest_study();
            return Some(Fault {
                details: format!(
                    "{summary}\nnot {}\n{ended:#?}\n{study:#?}",
                    row.expected.join(" · ")
                ),
                summary,
                may_be_the_machines: may_be_the_machines(&self.cells, &row.expected),
                step: None,
            });
        }
        let check_steps = AssertUnwindSafe(|| {
            self.stage.run_steps(row.expectations);
            self.stage.assert_sound();
        });
        let panic = catch_unwind(check_steps).err()?;
        let details = match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(_) => "a step that must hold failed; see above".to_owned(),
        };
        let summary = details.lines().next().unwrap_or_default().to_owned();
        // `NAME: STEP: why`
        let after_name = summary.strip_prefix(&format!("{}: ", row.name)).unwrap_or(&summary);
        let step = after_name.split(": ").next().map(str::to_owned);
        Some(Fault { summary, details, may_be_the_machines: true, step })
    }
}

/// What the JSON of a watch says about the limit; `None` for other output.
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

/// Other processes may use this share of the server's CPUs without disturbing it.
const OTHERS: f64 = 0.03;

/// A thread that stood still for this long was kept from its work.
const STANDSTILL: Nanos = Nanos::from_millis(5);

/// How the machine disturbed the run, if the kernel shows it: a lane waited for a CPU or stood
/// still, the hypervisor took CPU time, accept queues of other servers dropped connections while
/// all of ours were fast, or other processes used the CPUs.
fn disturbed(judgement: &Judgement, facts: &GeneratorFacts) -> Option<String> {
    let blames_machine = |check: &&Diagnostic| {
        matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. })
    };
    let by_check = judgement
        .checks
        .iter()
        .filter(blames_machine)
        .find(|check| judge::grade(check) > Grade::Passed)
        .map(|check| judge::assess(check).sentence);
    let stood_still = judgement.checks.iter().find(
        |check| matches!(check, Diagnostic::Standstill { longest, .. } if *longest >= STANDSTILL),
    );
    let overflowed = judgement
        .checks
        .iter()
        .find(|check| matches!(check, Diagnostic::ConnectStalls { retried: 1.., longest } if *longest < STANDSTILL));
    let by_check =
        by_check.or_else(|| stood_still.or(overflowed).map(|check| format!("{check:?}")));
    let cpu = CpuUsage::of(facts)
        .filter(|cpu| cpu.others.is_some_and(|others| others >= OTHERS * cpu.of));
    by_check.or_else(|| cpu.map(|cpu| cpu.to_string()))
}

/// The page has at least this many situations, whether or not this machine can cause them all.
const LEAST: usize = 40;

/// `make test` runs one of this many parts of the situations, another one after each commit; `make
/// soak` runs all.
const TURNS: usize = 4;

/// Which part runs, 0 to 3. `bin/run-tests` sets it.
fn turn() -> usize {
    let turn = std::env::var("LONGTAIL_TURN").ok().and_then(|turn| turn.parse::<usize>().ok());
    turn.unwrap_or(0) % TURNS
}

/// How often a situation is tried alone if the machine disturbs it.
const TRIES: usize = 3;

/// Held while a situation has the machine to itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// Runs each situation of a group, prints its row, and fails if a cell is wrong.
fn run_group(group: &str) {
    let only = std::env::var("LONGTAIL_SCENARIO").unwrap_or_default();
    let mut all = situations(group);
    all.retain(|row| row.name.contains(&only));
    if !soaks() && only.is_empty() {
        let mut number = 0..;
        all.retain(|_| number.next().is_some_and(|number: usize| number % TURNS == turn()));
    }
    let (mut alone, others): (Vec<Situation>, Vec<Situation>) =
        all.into_iter().partition(|row| row.marks.contains("alone"));
    let mut results = GroupResults::default();
    for row in others {
        match try_situation(&row, 1) {
            SituationResult::Excused(..) => alone.push(row),
            // Other tests run at the same time, and not all of their effects can be seen.
            SituationResult::Wrong(fault, _) if fault.may_be_the_machines => alone.push(row),
            result => results.add(group, &row, result),
        }
    }
    // Situations that need the machine to themselves, or that were disturbed, run one at a time
    // when all other tests are over.
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for row in alone {
        Lab::wait_for_the_others();
        results.add(group, &row, try_situation(&row, TRIES));
    }
    let GroupResults { wrong, judged, excused } = results;
    assert!(wrong.is_empty(), "wrong results:\n{wrong}");
    // A machine is busy now and then. But if many results are wrong for which the witness saw no
    // reason, longtail is wrong, not the machine.
    assert!(
        excused <= judged + 1,
        "{group}: {excused} situations blamed on the machine, and only {judged} judged"
    );
}

/// The results of a group.
#[derive(Default)]
struct GroupResults {
    wrong: String,
    judged: usize,
    /// Situations blamed on the machine although the witness saw nothing.
    excused: usize,
}

impl GroupResults {
    #[expect(clippy::print_stdout, reason = "the test prints a table")]
    fn add(&mut self, group: &str, row: &Situation, result: SituationResult) {
        let outcome = match result {
            SituationResult::Right(before) => {
                self.judged += 1;
                format!("as expected{before}")
            }
            SituationResult::Wrong(fault, before) => {
                self.judged += 1;
                let _ = writeln!(self.wrong, "{}: {}\n", row.name, fault.details);
                format!("WRONG: {}{before}", fault.summary)
            }
            SituationResult::Excused(before, is_witnessed) => {
                self.excused += usize::from(!is_witnessed);
                can(false, &format!("{}: the machine is too busy{before}", row.name));
                format!("skipped: the machine is too busy{before}")
            }
            SituationResult::Impossible(reason) => {
                can(false, &format!("{}: {reason}", row.name));
                format!("skipped: {reason}")
            }
        };
        println!("{group}: {}: {}: {outcome}", row.name, row.expected.join(" · "));
    }
}

/// The result of a situation.
enum SituationResult {
    /// Longtail reported what it must. The text describes earlier tries on a disturbed machine.
    Right(String),
    /// Longtail reported something wrong. The text describes earlier tries on a disturbed machine.
    Wrong(Fault, String),
    /// The machine explains the wrong result of each try. The text describes the tries; the flag
    /// says whether the witness saw the reason each time.
    Excused(String, bool),
    /// It can't be caused here, for this reason.
    Impossible(String),
}

/// Runs a situation, again if the machine explains a wrong result, and once more if nothing
/// explains it: 2 in 100 of the *probable* conclusions may be wrong. `make soak` allows no such
/// retry. The same step that fails in each try is wrong, if nothing else used the CPUs: a thread that
/// is woken late now and then does not change an answer each time.
fn try_situation(row: &Situation, tries: usize) -> SituationResult {
    let mut before = String::new();
    let mut faults: Vec<Fault> = Vec::new();
    let mut is_by_others = false;
    let mut is_witnessed = true;
    let mut may_be_chance = tries > 1 && !soaks();
    for _ in 0..tries {
        let mut stage = Stage::new(&row.cause);
        let (played, witness) =
            witnessed(|| stage.run_steps(row.cause.split_once('\n').unwrap().1));
        if let ScenarioEnd::Lacks(what) = played {
            return SituationResult::Impossible(format!("it needs {what}"));
        }
        let seen = Seen::of(stage, row.is_of_order);
        is_by_others |= witness.as_ref().is_some_and(|witness| witness.is_by_others);
        let witness = witness.map(|witness| witness.why);
        let disturbed = seen.disturbed.clone().or_else(|| witness.clone());
        let Some(fault) = seen.fault(row) else { return SituationResult::Right(before) };
        if !fault.may_be_the_machines {
            return SituationResult::Wrong(fault, before);
        }
        match disturbed {
            Some(why) => {
                let _ = write!(before, "; before: {}: {why}", fault.summary);
            }
            None if may_be_chance => {
                may_be_chance = false;
                let _ = write!(
                    before,
                    "; before: {}: wrong, although nothing disturbed it",
                    fault.summary
                );
            }
            None => return SituationResult::Wrong(fault, before),
        }
        is_witnessed &= witness.is_some();
        faults.push(fault);
    }
    let is_same_step = tries > 1
        && faults.iter().all(|fault| fault.step.is_some() && fault.step == faults[0].step);
    match faults.pop() {
        Some(fault) if is_same_step && !is_by_others => SituationResult::Wrong(fault, before),
        _ => SituationResult::Excused(before, is_witnessed),
    }
}

/// How the machine disturbed a test, by the test's own observations.
struct Disturbance {
    why: String,
    /// Whether other processes used the CPUs, or another test was running.
    is_by_others: bool,
}

/// Runs `what`, and says how the machine was disturbed meanwhile, by the test's own observations
/// instead of longtail's: a sleeping thread of the test was woken late, other processes used the
/// CPUs, or another test was running.
fn witnessed<T>(what: impl FnOnce() -> T) -> (T, Option<Disturbance>) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let begun = REAL_CLOCK.now();
        let before = ticks_of_others();
        let witness = scope.spawn(|| {
            let mut longest = Nanos::ZERO;
            let mut is_alone = true;
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
        let (longest, is_alone) = witness.join().expect("the witness only sleeps");
        let of_others = ticks_of_others().saturating_sub(before) as f64 / 100.0;
        let cpu_seconds = f64::from(affinity::ours().map_or(1, |cpus| cpus.len() as u32))
            * (REAL_CLOCK.now() - begun).as_secs_f64();
        let is_by_others = of_others >= OTHERS * cpu_seconds || !is_alone;
        let meanwhile = if is_alone { "" } else { ", and other tests ran at the same time" };
        let why = format!(
            "a sleep of 2 ms took {longest}, others used {:.2} of the CPUs{meanwhile}",
            of_others / cpu_seconds
        );
        let is_disturbed = is_by_others || longest >= STANDSTILL;
        (done, is_disturbed.then_some(Disturbance { why, is_by_others }))
    })
}

/// CPU time of all processes except this one and its children, in hundredths of a second (proc(5)).
fn ticks_of_others() -> u64 {
    let sum = |text: &str, fields: &[usize]| -> u64 {
        let numbers: Vec<u64> =
            text.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        fields.iter().map(|field| numbers[*field]).sum()
    };
    let all = fs::read_to_string("/proc/stat").unwrap();
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    // user, nice, system, irq, softirq, steal; then utime, stime, cutime, cstime, which follow the
    // name.
    sum(all.lines().next().unwrap(), &[1, 2, 3, 6, 7, 8])
        .saturating_sub(sum(own.rsplit_once(')').unwrap().1, &[11, 12, 13, 14]))
}

/// Whether a busy machine can explain a wrong result: that the generator or the CPUs were the
/// limit, that nothing settled, or another limit or order of service because of distorted times.
/// Any other verdict or exit code is wrong on any machine. If the situation itself contests the
/// CPUs, a busy machine is no excuse.
fn may_be_the_machines(found: &Cells, expected: &Cells) -> bool {
    let [exit, verdict, limit, _] = found.each_ref().map(String::as_str);
    if limit == "accept queue" && expected[2] != limit {
        return true;
    }
    let is_explained = match verdict {
        GENERATOR | SHARED | INVALID => expected[1] != SHARED,
        // A starved server doesn't keep up, and does less than its threads could.
        "server-bound" => ["server-bound", "unloaded"].contains(&expected[1].as_str()),
        _ => found[1] == expected[1],
    };
    let usual_exit = if verdict == INVALID { "3" } else { &expected[0] };
    found != expected && exit == usual_exit && is_explained
}

#[test]
fn the_page_lists_each_situation_once_with_a_cause() {
    let groups = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    let mut names: Vec<&str> =
        groups.flat_map(situations).map(|situation| situation.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name is listed twice");
    assert!(all >= LEAST, "{all} situations");
    assert_eq!(
        CAUSES.lines().filter(|line| line.starts_with("== ")).count(),
        all,
        "a cause without a situation, or the reverse"
    );
}

#[test]
fn limits_are_named() {
    run_group("limits");
}

#[test]
fn limits_agree_with_the_apps_own_counts() {
    run_group("apps");
}

#[test]
fn overloads_are_found() {
    run_group("overload");
}

#[test]
fn orders_of_service_are_recognized() {
    run_group("theory");
}

#[test]
fn watch_diagnoses_running_servers() {
    run_group("watch");
}

#[test]
fn an_overloaded_generator_is_reported() {
    run_group("generator");
}

#[test]
fn network_faults_are_attributed_to_the_network() {
    run_group("network");
}

#[test]
fn faults_are_survived() {
    run_group("faults");
}
