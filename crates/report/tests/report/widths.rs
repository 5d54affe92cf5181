//! Text that was asked to be narrow: what it leaves out, that it says so, and that nothing which warns is ever left out.

use model::{Limit, SweepStudy, Verdict};
use report::{Columns, Layout, Width, bodies, load, sweep, text};
use testkit::{bodies as body_study, claimed as claimed_study, load as load_study, study};

use crate::pieces::{closing, table};

const TERMINALS: [usize; 6] = [80, 100, 120, 139, 146, 200];
/// And those where a table has little room, or a column more than the one before.
const ALL: [usize; 14] = [1, 40, 57, 64, 70, 76, 79, 80, 84, 100, 120, 139, 150, 200];

fn within(columns: usize) -> Layout {
    Layout { columns: Columns::Longtail, width: Width::of(columns) }
}

fn sweeps() -> Vec<SweepStudy> {
    study::every().into_iter().chain([claimed_study::hey_sweep()]).collect()
}

/// Every report that is printed for so many columns.
fn reports(columns: usize) -> Vec<String> {
    let width = Width::of(columns);
    let of_sweeps = sweeps().into_iter().map(|study| sweep::whole(&study, within(columns)));
    let of_bodies = body_study::every().into_iter().map(|study| bodies::whole(&study, within(columns)));
    let of_loads = load_study::every()
        .into_iter()
        .chain([claimed_study::wrk_load()])
        .map(move |study| text::whole(&load::report(&study), width));
    of_sweeps.chain(of_bodies).chain(of_loads).collect()
}

/// Bands and names of the table.
fn head(study: &SweepStudy, layout: Layout) -> String {
    table(study, layout)[..2].join("\n")
}

/// The rows below them, one a run.
fn rows(study: &SweepStudy, layout: Layout) -> Vec<String> {
    let table = table(study, layout);
    table[table.len() - study.runs.len()..].to_vec()
}

fn width(line: &str) -> usize {
    line.chars().count()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in TERMINALS {
        for report in reports(columns) {
            for line in report.lines() {
                assert!(width(line) <= columns, "{columns}: {line}\n{report}");
            }
        }
    }
}

#[test]
fn no_line_of_a_narrow_report_ends_in_space() {
    for report in reports(80) {
        assert!(report.lines().all(|line| line == line.trim_end()), "{report}");
    }
}

/// The cells of a narrow row are those of the wide row, and these are among them.
#[test]
fn marks_verdicts_and_errors_stay_at_any_width() {
    let kept = |line: &str| {
        let cells: Vec<&str> = line.trim_start_matches('!').split_whitespace().collect();
        let errors = cells.last().map(|cell| (*cell).to_owned());
        (line.starts_with('!'), cells[..2].join(" "), errors)
    };
    for study in sweeps() {
        let whole = rows(&study, Columns::Longtail.into());
        for columns in ALL {
            let narrow = rows(&study, within(columns));
            for ((run, whole), row) in study.runs.iter().zip(&whole).zip(&narrow) {
                assert_eq!(kept(row), kept(whole), "{columns}: {row}");
                let limit = run.judgement.as_ref().and_then(|judgement| judgement.limit.clone());
                let verdict = run.judgement.as_ref().map(|judgement| judgement.verdict);
                let word = match verdict {
                    Some(Verdict::Invalid) => "INVALID",
                    Some(Verdict::GeneratorBound) => "GENERATOR",
                    Some(Verdict::ServerBound) if matches!(limit, Some(Limit::Threads { .. })) => "threads",
                    Some(Verdict::ServerBound) => "server",
                    Some(Verdict::NetworkBound) => "network",
                    Some(Verdict::SharedCpus) => "CPUs",
                    Some(Verdict::Unloaded) => "none",
                    None if run.claim.is_some() => "possible",
                    None => "-",
                };
                assert!(row.split_whitespace().any(|cell| cell == word), "{columns}: {row}");
                assert!(width(row.trim_end()) <= columns.max(62), "{columns}: {row}");
            }
        }
    }
}

#[test]
fn rows_stand_under_their_head_at_any_width() {
    for study in sweeps() {
        for columns in ALL {
            let head = head(&study, within(columns));
            let [bands, names] = head.lines().collect::<Vec<_>>()[..] else { panic!("{head}") };
            assert!(width(bands) <= width(names), "{head}");
            assert!(rows(&study, within(columns)).iter().all(|row| width(row) == width(names)), "{head}");
        }
    }
}

#[test]
fn a_table_says_which_columns_it_has_no_room_for() {
    let study = study::judged();
    let said_below = |layout: Layout| closing(&study, layout).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "no room at 80 columns for p10 ms, p25 ms, p75 ms, p90 ms, p99.9 ms, p50 x ideal, p99 x ideal, Jain, worker ±%, requests";
    assert!(said_below(within(80)).contains(said), "{}", said_below(within(80)));
    assert!(said_below(within(80)).contains("longtail report --width 0"));
    for layout in [within(146), Columns::Longtail.into(), Layout { columns: Columns::Puma, ..within(80) }] {
        assert!(!said_below(layout).contains("no room"), "{layout:?}");
    }
}

/// The words below a narrow table explain the columns that it has, and no others.
#[test]
fn words_are_of_the_columns_that_are_shown() {
    let study = study::judged();
    for columns in TERMINALS {
        let head = head(&study, within(columns));
        let closing = closing(&study, within(columns));
        let explained = |word: &str| closing.lines().any(|line| line.starts_with(&format!("{word}  ")));
        for word in ["% max", "tail", "x ideal", "Jain", "worker ±%", "requests", "limit", "mult"] {
            assert_eq!(explained(word), head.contains(word), "{columns}: {word}");
        }
        assert!(closing.contains("without a good answer"));
    }
}

/// Of what was wrapped, parted or left out, all words but those of columns that were said to be left out are there.
#[test]
fn nothing_but_columns_is_lost() {
    let words = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    for study in [study::judged(), study::theorized(), study::watched()] {
        let whole = closing(&study, Columns::Puma.into());
        let narrow = words(&closing(&study, Layout { columns: Columns::Puma, ..within(80) }));
        // A drawing has as many characters as there is room for.
        let is_drawn = |word: &str| word.chars().any(|c| "·▁▂▃▄▅▆▇█".contains(c));
        let lost: Vec<String> =
            words(&whole).into_iter().filter(|word| !narrow.contains(word) && !is_drawn(word)).collect();
        assert_eq!(lost, Vec::<String>::new());
    }
}

#[test]
fn pumas_table_is_whole_at_any_width() {
    let study = study::canonical();
    let layout = Layout { columns: Columns::Puma, ..within(80) };
    assert_eq!(table(&study, layout), table(&study, Columns::Puma.into()));
}
