//! Every command in the help and the documents is run by a test. Those that need nothing special
//! run here, on a server of the test and for a shorter time. If a command's output is always the
//! same, the documents must show exactly that.

use std::fs;
use std::path::{Path, PathBuf};

use sink::SinkBody;

use crate::lab::{Ended, Lab, end, has, split};
use crate::load::{assert_answered, sink, sink_at, study, url, word};
use crate::scenarios::laws::is_of_the_machine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Commands that measure nothing and don't depend on the machine.
fn is_repeatable(command: &str) -> bool {
    command.starts_with("audit ") || command.starts_with("predict ")
}

/// Runs a command of a page in the page's folder, without the remark behind it.
fn run_in(folder: &Path, command: &str) -> Ended {
    let words = split(command.split("   ").next().unwrap());
    end(Lab::new().longtail("").args(words).current_dir(folder).env("COLUMNS", "100"))
}

#[test]
fn documented_output_of_repeatable_commands_is_exact() {
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

/// Parts of documented commands that are not run here, with the file whose tests run such commands.
const RUN_ELSEWHERE: [(&str, &str); 18] = [
    ("doctor --self-test", "scenarios/machine.txt"),
    ("doctor --generators", "scenarios/machine.txt"),
    ("doctor", "scenarios/machine.txt"),
    ("compare ", "scenarios/compare.txt"),
    ("capacity ", "scenarios/sweep.txt"),
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

/// The commands of the documents, each with its page's folder, except those marked as not run.
fn documented() -> Vec<(PathBuf, String)> {
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|page| page.unwrap().path());
    let others =
        ["README.md", "bench/README.md", "servers/README.md"].map(|name| root().join(name));
    let pages =
        pages.chain(others).filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut before = "";
        let mut is_marked = false;
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

/// Makes a load short: a few requests if it has no end, or a short time.
fn shortened(command: &str) -> String {
    // Other generators take only whole seconds.
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

/// Runs a load on a sink over TCP or a Unix socket. Whether an objective is met depends on the
/// machine.
fn run_load(command: &str) {
    let lab = Lab::new();
    lab.write("requests.txt", "/a\n/b\n");
    lab.write("headers", "X-Api-Key: a\n");
    let socket = word(&lab.path("app.sock"));
    let tcp = sink(SinkBody::Ok);
    let unix = sink_at(&format!("unix://{socket}"), SinkBody::Ok);
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
        // Claims of other generators are checked elsewhere.
        assert!(tcp.stop().requests > 0, "{words}");
    } else {
        assert!(study(&lab).run.tally.counts.total() > 0, "{words}");
        assert_answered(&study(&lab), if words.contains("--unix") { unix } else { tcp });
    }
}

#[test]
fn every_documented_command_is_run() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for (words, file) in RUN_ELSEWHERE {
        assert!(
            fs::read_to_string(tests.join(file)).unwrap().contains(words.trim_end()),
            "{file} runs no `{words}`"
        );
    }
    let all = documented();
    assert!(all.len() > 30, "{all:?}: are the commands found?");
    let mut loads = 0;
    let mut sweeps = 0;
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

/// Runs a sweep of the builtin server, unless the command names an app or a Puma.
fn run_sweep(command: &str) -> bool {
    if ["-r ", "-C ", "--puma", "ssl4"].iter().any(|flag| command.contains(flag)) {
        return false;
    }
    let lab = Lab::new();
    let time = if command.contains("-R100") { "" } else { " --for 200ms" };
    let words = command
        .split("   ")
        .next()
        .unwrap()
        .replace("-R100", "-R2")
        .replace("-d0.2", "-d0.01")
        .replace("-d0.1", "-d0.01");
    lab.answer(&format!(
        "{words}{time} --server builtin --warm-up 0s --multiples 1 --no-calibrate"
    ))
    .with_code(0);
    assert_eq!(lab.studies().len(), 1, "{words}");
    true
}

/// The examples in a command's help: the arguments of longtail, without remarks.
fn examples(command: &str) -> Vec<String> {
    let help = end(Lab::new().longtail(&format!("{command} --help")).env("COLUMNS", "200")).stdout;
    let (_, examples) = help.split_once("Examples:\n").expect("examples");
    let (examples, _) = examples.split_once("\n\n").expect("a section after the examples");
    // Join wrapped examples.
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
        let lab = Lab::new();
        let sink = sink(SinkBody::Ok);
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
