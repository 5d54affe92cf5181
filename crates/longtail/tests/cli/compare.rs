//! `longtail compare`: every arm runs once in each block, and equally often at each place in it.
//! The rest is in `scenarios/compare.txt`.

use model::{ComparisonStudy, Study};

use crate::lab::Lab;

/// Short runs of the built-in server.
const SHORT: &str = "compare --server builtin -t2:2 --for 100ms --warm-up 20ms --no-calibrate";

fn study(text: &str) -> ComparisonStudy {
    match report::json::read(text).unwrap_or_else(|error| panic!("{error}: {text}")) {
        Study::Compare(study) => *study,
        other => panic!("{other:?}"),
    }
}

/// The study of a comparison with these arguments, whatever its exit code.
fn compared(lab: &Lab, words: &str) -> ComparisonStudy {
    study(&lab.run(&format!("{words} --format study")).stdout)
}

#[test]
fn every_arm_runs_once_in_each_block_and_equally_often_at_each_place() {
    let lab = Lab::new();
    let done = lab.run(&format!("{SHORT} --blocks 6 --format study --arm -d5ms --arm slow=-d6ms"));
    let found = study(&done.stdout);
    assert_eq!(found.plan.arms.iter().map(|arm| &*arm.name).collect::<Vec<_>>(), ["-d5ms", "slow"]);
    let is_said = |text: &str| assert!(done.stderr.contains(text), "{}", done.stderr);
    is_said("longtail: 6 blocks of 3 runs, each with a fresh server, at least 0:");
    is_said("longtail: run 1/18: block 1, ");
    is_said("at most 0:");
    let mut places = [[0; 3]; 3];
    for block in 1..=6 {
        let runs: Vec<usize> = found
            .runs
            .iter()
            .filter(|run| (run.block, run.attempt) == (block, 1))
            .map(|run| run.arm)
            .collect();
        assert_eq!(runs.len(), 3, "{runs:?}");
        for (place, arm) in runs.into_iter().enumerate() {
            places[place][arm] += 1;
        }
    }
    assert_eq!(places, [[2; 3]; 3], "the base, the other and the control");
    assert!(found.runs.iter().all(|run| run.run.connections == 4), "twice the threads of an arm");
    // One line for each block, so that a pipe is not silent.
    assert_eq!(
        done.stderr.lines().filter(|line| line.contains("longtail: block ")).count(),
        6,
        "{}",
        done.stderr
    );
    assert!(lab.living().is_empty());
}

#[test]
fn the_load_may_be_a_share_of_the_slower_arms_maximum() {
    let words = format!(
        "{SHORT} --blocks 6 --metric p50 --no-control --share 50% --arm -d5ms --arm -d20ms"
    );
    let share = compared(&Lab::new(), &words);
    let slower = share.maxima_per_s.iter().copied().min_by(f64::total_cmp).unwrap();
    assert_eq!((share.maxima_per_s.len(), share.rate_per_s()), (2, Some(slower / 2.0)));
}

/// The arm that `--base` names comes first, as A. Progress and answer call the arms by name.
#[test]
fn any_arm_may_be_the_base_and_pairs_are_compared_with_each_other() {
    let lab = Lab::new();
    let arms = "--arm -d5ms --arm slow=-d9ms --arm ''";
    let done = lab.run(&format!(
        "{SHORT} -d7ms --blocks 8 --no-control --pairs {arms} --base slow --format study"
    ));
    let found = study(&done.stdout);
    let names: Vec<&str> = found.plan.arms.iter().map(|arm| &*arm.name).collect();
    assert_eq!(names, ["slow", "-d5ms", "default"]);
    assert_eq!(found.plan.pairs().len(), 3);
    assert!(done.stderr.contains("block 1, slow, 4 connections"), "{}", done.stderr);
    // On a busy machine runs are done once more, and an arm that lacks one then is left out of a line.
    let is_told = |line: &&str| {
        let arms = ["-d5ms ", "the default "];
        let told = line.split_once("mean against slow: ");
        told.is_some_and(|(_, told)| arms.iter().any(|arm| told.starts_with(arm)))
    };
    let last = done.stderr.lines().rfind(is_told);
    let names_the_base =
        last.is_some_and(|line| line.starts_with("longtail: block 8 of at most 8"));
    assert!(names_the_base, "{}", done.stderr);
    let answer = lab.run("report").stdout;
    assert!(answer.contains("-d5ms") && !answer.contains(" than A"), "{answer}");
    let full = lab.run("report --full").stdout;
    assert!(full.contains("3 pairs share one chance of a false alarm (Holm)"), "{full}");
}
