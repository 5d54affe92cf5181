//! Each command of the help and of the documents is run by a test: those that need nothing else
//! here, on a server of the test and for a shorter time. What they print of commands that always
//! print the same is what they print.

use std::fs;
use std::path::{Path, PathBuf};

use sink::SinkBody;

use crate::lab::{Ended, Lab, end, has, split};
use crate::load::{assert_answered, sink, sink_at, study, url, word};
use crate::scenarios::laws::is_of_the_machine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands that measure nothing and depend on no machine.
fn is_repeatable(command: &str) -> bool {
    command.starts_with("audit ") || command.starts_with("predict ")
}

/// Runs a command of a page as it stands there, in the page's folder, its remark cut off.
fn run_in(folder: &Path, command: &str) -> Ended {
    let words = split(command.split("   ").next().unwrap());
    end(Lab::new().longtail("").args(words).current_dir(folder).env("COLUMNS", "100"))
}

#[test]
fn what_always_prints_the_same_is_printed_so() {
    let mut commands = 0;
    for name in ["docs/audit.md", "docs/app-tuning.md"] {
        let path = root().join(name);
        let page = fs::read_to_string(&path).unwrap();
        let parts = page.split("```").map(|part| {
            let Some((line, _)) =
                part.strip_prefix("console\n").and_then(|block| block.split_once('\n'))
            else {
                return part.to_owned();
            };
            let Some(command) =
                line.strip_prefix("$ longtail ").filter(|command| is_repeatable(command))
            else {
                return part.to_owned();
            };
            commands += 1;
            format!(
                "console\n{line}\n{}\n",
                run_in(path.parent().unwrap(), command).stdout.trim_end()
            )
        });
        let printed_anew = parts.collect::<Vec<_>>().join("```");
        testkit::golden::expect(&path, &printed_anew);
    }
    assert!(commands >= 2, "{commands}");
}

/// What sets a documented command apart from those that are run here as they stand, and the file
/// whose tests run such commands.
const RUN_ELSEWHERE: [(&str, &str); 17] = [
    ("doctor --self-test", "scenarios/machine.txt"),
    ("doctor --generators", "scenarios/machine.txt"),
    ("doctor", "scenarios/machine.txt"),
    ("compare ", "scenarios/compare.txt"),
    ("watch ", "scenarios/watch.txt"),
    ("report ", "scenarios/report.txt"),
    ("sink ", "scenarios/report.txt"),
    ("--from", "scenarios/far.txt"),
    ("generate ", "scenarios/far.txt"),
    ("merge ", "scenarios/far.txt"),
    ("fleet ", "fleet.rs"),
    ("--bodies", "scenarios/puma.txt"),
    ("--try", "scenarios/compare.txt"),
    ("--statsd-listen", "scenarios/outlets.txt"),
    ("--inspect app", "scenarios/waits.txt"),
    ("--server-cpus", "scenarios/machine.txt"),
    ("--generator", "scenarios/generators.txt"),
];

fn is_elsewhere(command: &str) -> bool {
    let is_such = |words: &str| {
        if words.starts_with("--") {
            command.contains(words)
        } else {
            command.starts_with(words.trim_end())
        }
    };
    RUN_ELSEWHERE.iter().any(|(words, _)| is_such(words))
}

/// The commands of the documents, each with its page's folder; those that are marked as not run are
/// left out.
fn documented() -> Vec<(PathBuf, String)> {
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|page| page.unwrap().path());
    let others =
        ["README.md", "bench/README.md", "servers/README.md"].map(|name| root().join(name));
    let pages =
        pages.chain(others).filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let (mut before, mut is_marked) = ("", false);
        for line in text.lines() {
            if line.starts_with("```") {
                is_marked = before.starts_with("<!-- not run: ");
            } else if let Some(command) = line.strip_prefix("$ longtail ").filter(|_| !is_marked) {
                found.push((page.parent().unwrap().to_owned(), command.to_owned()));
            }
            before = line;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Where it says nothing of its end, so many requests end it; where it ends by time, that is short.
fn shortened(command: &str) -> String {
    // Other generators know whole seconds only.
    let brief = if command.contains("--generator") { "--for 1s" } else { "--for 300ms" };
    let mut words = command.to_owned();
    for (long, short) in
        [("--for 30s", brief), ("--for 60s", brief), ("--for 5s", brief), ("-z 20s", "-z 1s")]
    {
        words = words.replace(long, short);
    }
    let flags = if words.contains("--for") || words.contains("-n ") { "" } else { "-n 20" };
    words.replacen("load ", &format!("load --no-calibrate {flags} "), 1)
}

/// Runs a load on a sink, or on one at a Unix socket; whether an objective is met is a matter of
/// the machine.
fn run_load(command: &str) {
    let lab = Lab::new();
    lab.write("requests.txt", "/a\n/b\n");
    lab.write("headers", "X-Api-Key: a\n");
    let socket = word(&lab.path("app.sock"));
    let (tcp, unix) = (sink(SinkBody::Ok), sink_at(&format!("unix://{socket}"), SinkBody::Ok));
    let port = tcp.address().port().to_string();
    let words = shortened(command)
        .replace("127.0.0.1:9292", &format!("127.0.0.1:{port}"))
        .replace("/run/app.sock", &socket);
    let ended = lab.answer(&words);
    let is_judged = words.contains("--fail-if") || words.contains("--expect");
    let is_excused = || ended.code() == 3 && is_of_the_machine(&lab.kept());
    assert!(
        ended.code() == 0 || ended.code() == 1 && is_judged || is_excused(),
        "{words}: {ended:?}"
    );
    if words.contains("--generator") {
        // What another generator claims is looked at elsewhere.
        assert!(tcp.stop().requests > 0, "{words}");
    } else {
        assert!(study(&lab).run.tally.counts.total() > 0, "{words}");
        assert_answered(&study(&lab), if words.contains("--unix") { unix } else { tcp });
    }
}

#[test]
fn each_command_of_the_documents_is_run() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for (words, file) in RUN_ELSEWHERE {
        assert!(
            fs::read_to_string(tests.join(file)).unwrap().contains(words.trim_end()),
            "{file} runs no `{words}`"
        );
    }
    let all = documented();
    assert!(all.len() > 30, "{all:?}: are the commands found?");
    let (mut loads, mut sweeps) = (0, 0);
    for (folder, command) in all.into_iter().filter(|(_, command)| !is_elsewhere(command)) {
        if is_repeatable(&command) {
            assert!(run_in(&folder, &command).code() <= 1, "{command}");
        } else if command.starts_with("load ") && command.contains(" http://127.0.0.1:") {
            let (words, _) = command.rsplit_once("http://127.0.0.1:").unwrap();
            run_load(&format!("{words}http://127.0.0.1:9292/"));
            loads += 1;
        } else {
            assert!(command.starts_with("sweep "), "{command}");
            sweeps += u32::from(run_sweep(&command));
        }
    }
    assert!(loads >= 6 && sweeps >= 3, "{loads} {sweeps}");
}

/// Runs a sweep on the server inside, where it says nothing of an app and of Puma.
fn run_sweep(command: &str) -> bool {
    if ["-r ", "-C ", "--puma", "ssl4"].iter().any(|flag| command.contains(flag)) {
        return false;
    }
    let lab = Lab::new();
    let end = if command.contains("-R100") { "" } else { " --for 200ms" };
    let words = command
        .split("   ")
        .next()
        .unwrap()
        .replace("-R100", "-R2")
        .replace("-d0.2", "-d0.01")
        .replace("-d0.1", "-d0.01");
    lab.answer(&format!("{words}{end} --server builtin --warm-up 0s --multiples 1 --no-calibrate"))
        .with_code(0);
    assert_eq!(lab.studies().len(), 1, "{words}");
    true
}

/// The examples of a command's help: the words behind `longtail`, remarks cut off.
fn examples(command: &str) -> Vec<String> {
    let help = end(Lab::new().longtail(&format!("{command} --help")).env("COLUMNS", "200")).stdout;
    let (_, examples) = help.split_once("Examples:\n").expect("examples");
    let (examples, _) = examples.split_once("\n\n").expect("something behind them");
    // Longer examples are wrapped.
    let joined = examples.replace("\n  longtail ", "\u{0}longtail ").replace('\n', " ");
    let lines = joined.trim().trim_start_matches("longtail ").split("\u{0}longtail ");
    lines.map(|line| line.split("    ").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn each_example_of_the_help_runs() {
    let found = examples("load");
    assert!(found.len() >= 8, "{found:#?}");
    for example in found.iter().filter(|example| !example.contains("--generator wrk") || has("wrk"))
    {
        run_load(example);
    }
    let found = examples("attack");
    assert!(found.len() >= 2, "{found:#?}");
    for example in found {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let words = example.replace("http://localhost:3000/", &url(&sink)).replace("-n 30", "");
        let words = words.replace("--target-throughput=10", "--target-throughput=100") + " -n 5";
        let ended = lab.answer(&words).with_code(0);
        let lines: Vec<_> =
            ended.stdout.lines().filter(|line| line.starts_with("request ")).collect();
        assert_eq!(lines.len(), 5, "{}", ended.stdout);
        assert!(
            lines.iter().all(|line| line.contains(" status=200 latency=") && line.ends_with("ms"))
        );
        assert!(ended.stdout.ends_with("Completed 5/5\n"), "{}", ended.stdout);
        assert_eq!(sink.stop().requests, 5);
    }
}
