//! `longtail compare`: every arm runs once a block on a fresh server with its own settings. What the figures say is proven in `model`.

use std::process::Command;

use model::{ComparisonStudy, Study};
use rustix::process::Signal;

use crate::lab::{LONGTAIL, Lab, Running, free_port, has};

/// Short runs of the built-in server.
const SHORT: &str = "compare --server builtin -t2:2 --for 100ms --warm-up 20ms --no-calibrate";

fn study(text: &str) -> ComparisonStudy {
    match report::json::read(text).unwrap_or_else(|error| panic!("{error}: {text}")) {
        Study::Compare(study) => *study,
        other => panic!("{other:?}"),
    }
}

/// longtail's words, some of which have blanks in them.
fn compare<'a>(lab: &Lab, common: &'a str, arms: impl IntoIterator<Item = &'a str>) -> Command {
    let arms = arms.into_iter().flat_map(|arm| ["--arm", arm]);
    lab.longtail_of(common.split(' ').chain(arms))
}

#[test]
fn every_arm_runs_once_a_block_and_once_at_each_place() {
    let lab = Lab::new();
    let words = format!("{SHORT} --blocks 6 --format study");
    let done = Running::start(&mut compare(&lab, &words, ["-d5ms", "slow=-d6ms"])).end();
    let found = study(&done.stdout);
    assert_eq!(found.plan.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["-d5ms", "slow"]);
    let mut places = [[0; 3]; 3];
    for block in 1..=6 {
        let runs: Vec<usize> =
            found.runs.iter().filter(|run| (run.block, run.attempt) == (block, 1)).map(|run| run.arm).collect();
        assert_eq!(runs.len(), 3, "{runs:?}");
        for (place, arm) in runs.into_iter().enumerate() {
            places[place][arm] += 1;
        }
    }
    assert_eq!(places, [[2; 3]; 3], "the base, the other and the control");
    assert!(found.runs.iter().all(|run| run.run.connections == 4), "twice the threads of the base");
    // A line a block, so that a pipe is not silent.
    assert_eq!(done.stderr.lines().filter(|line| line.contains("longtail: block ")).count(), 6, "{}", done.stderr);
    assert!(lab.living().is_empty());
}

#[test]
fn a_slower_arm_is_worse_and_an_equal_one_is_not() {
    let lab = Lab::new();
    let run = |arms: [&str; 2]| {
        let words = "compare --server builtin -t2:2 --for 300ms --warm-up 50ms --no-calibrate --no-control --blocks 8 --metric p50 --json";
        Running::start(&mut compare(&lab, words, arms)).end()
    };
    // Four times, and long enough that a busy machine spoils few runs: six sound blocks of the eight tell it.
    run(["-d30ms", "-d120ms"]).with_code(1);
    run(["-d60ms", "-d60ms"]).with_code(0);
}

#[test]
fn the_load_is_closed_or_a_rate_or_a_share_of_the_slower_arms_maximum() {
    let lab = Lab::new();
    let with = |load: &str| {
        let words = format!("{SHORT} --blocks 6 --metric p50 --no-control --format study {load}");
        study(&Running::start(&mut compare(&lab, &words, ["-d5ms", "-d20ms"])).end().stdout)
    };
    assert!(with("-c 3").runs.iter().all(|run| run.run.connections == 3));
    let at_a_rate = with("--rate 100");
    assert_eq!(at_a_rate.rate_per_s(), Some(100.0));
    // 10 requests become due in 100 ms, whatever the machine does.
    assert!(at_a_rate.runs.iter().all(|run| run.run.tally.counts.total() == 10), "{at_a_rate:?}");
    let share = with("--share 50%");
    let slower = share.maxima_per_s.iter().copied().min_by(f64::total_cmp).unwrap();
    assert_eq!((share.maxima_per_s.len(), share.rate_per_s()), (2, Some(slower / 2.0)));
}

#[test]
fn a_mistake_is_one_line_and_no_server_is_started() {
    let lab = Lab::new();
    lab.write("app.ru", "run lambda { |_| [200, {}, ['ok']] }\n");
    let cases: [(&str, &[&str], &str); 12] = [
        ("compare", &[], "two arms or more"),
        ("compare", &["-k"], "such as --arm ''"),
        (SHORT, &["", "--blocks 3"], "--blocks is the same for all arms"),
        (SHORT, &["", "--nothing"], "has no --nothing"),
        (SHORT, &["", "-t0"], "--arm '-t0'"),
        (SHORT, &["", "'"], "a quote has no end"),
        (SHORT, &["main", "my-branch"], "is in no git checkout"),
        (SHORT, &["", "-r app.ru"], "--server builtin takes no -r"),
        (SHORT, &["", "--env nothing"], "NAME=VALUE"),
        (SHORT, &["", "--ruby /nowhere"], "there is no ruby"),
        ("compare --server builtin --blocks 3", &["", "-k"], "3 blocks can never decide"),
        ("compare --server builtin -t1 -c 2 --rate 9", &["", "-k"], "cannot be used with"),
    ];
    for (common, arms, part) in cases {
        let said = Running::start(&mut compare(&lab, common, arms.iter().copied())).end().with_code(2);
        assert!(said.stderr.contains(part) && said.stderr.lines().count() == 1, "{arms:?}: {}", said.stderr);
        assert!(said.stdout.is_empty() && lab.studies().is_empty(), "{arms:?}");
    }
    assert!(lab.living().is_empty());
}

#[test]
fn an_arm_that_never_starts_is_named_before_any_load() {
    let lab = Lab::new();
    let port = free_port();
    let words = format!("compare -t1:1 --url http://127.0.0.1:{port} --for 100ms --boot-timeout 2s");
    let said = Running::start(&mut compare(&lab, &words, ["dead=-- false", "-- true"])).end().with_code(2);
    let ours: Vec<&str> = said.stderr.lines().filter(|line| !line.starts_with("  | ")).collect();
    assert!(ours.len() == 1 && ours[0].contains("dead: the server ended during its start"), "{}", said.stderr);
    lab.assert_nothing_left(port);
}

#[test]
fn an_arm_that_dies_later_ends_the_comparison_with_what_there_is() {
    let (lab, port) = (Lab::new(), free_port());
    // It serves when it is tried, and in the first block; then never more.
    let counter = lab.path("starts");
    let script = format!(
        "echo x >> {0}; [ $(wc -l < {0}) -gt 2 ] && exit 7; exec {LONGTAIL} sink --listen 127.0.0.1:{port}",
        counter.display()
    );
    let script = lab.write("dies.sh", &script);
    let sink = format!("-- {LONGTAIL} sink --listen 127.0.0.1:{port}");
    let words = format!(
        "compare -t1:1 --url http://127.0.0.1:{port} --for 50ms --warm-up 0 --no-control --no-calibrate --format study --blocks 6 --metric mean"
    );
    let dies = format!("-- sh {}", script.display());
    let done = Running::start(&mut compare(&lab, &words, [sink.as_str(), dies.as_str()])).end();
    let found = study(&done.stdout);
    let last = found.lost.last().unwrap();
    assert!(last.arm == 1 && last.attempt == 2 && last.reason.contains("exit code 7"), "{:?}", found.lost);
    assert!(!found.runs.is_empty() && found.runs.iter().all(|run| run.block <= last.block), "no block after that");
    lab.assert_nothing_left(port);
}

fn git(lab: &Lab, words: &str) {
    let mut git = lab.program("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]);
    let ended = Running::start(git.current_dir(lab.path("repo")).args(words.split(' '))).end();
    ended.with_code(0);
}

#[test]
fn two_branches_of_a_repository_are_two_arms() {
    if !has("git") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    std::fs::create_dir(lab.path("repo")).unwrap();
    let serve = |delay: &str| {
        lab.write("repo/serve.sh", &format!("exec {LONGTAIL} sink --listen 127.0.0.1:{port} --delay {delay}\n"));
    };
    git(&lab, "init -q");
    serve("3ms");
    git(&lab, "add serve.sh");
    git(&lab, "commit -qm quick");
    git(&lab, "branch slow");
    git(&lab, "checkout -q slow");
    serve("30ms");
    git(&lab, "commit -qam slow");
    git(&lab, "checkout -q main");
    // In no branch, and said.
    serve("1ms");
    let words = format!(
        "compare -t1:1 --url http://127.0.0.1:{port} --for 100ms --warm-up 0 --blocks 6 --no-control --metric p50 --no-calibrate --format study"
    );
    let run = |arms: [&str; 2]| {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(arms.into_iter().flat_map(|arm| ["--arm", arm]));
        words.extend(["--", "sh", "serve.sh"]);
        Running::start(lab.longtail_of(words).current_dir(lab.path("repo"))).end()
    };
    // A busy machine may spoil so many runs that it cannot be told; what is told is asserted of arms that need no build.
    let done = run(["main", "slow"]);
    let found = study(&done.stdout);
    for (arm, least) in [(0, 3), (1, 30)] {
        let runs = found.runs.iter().filter(|run| run.arm == arm);
        for run in runs {
            let shortest = run.run.tally.response_time.min().unwrap();
            assert!(shortest >= model::Nanos::from_millis(least), "{arm}: {shortest}");
        }
        assert!(found.plan.arms[arm].settings[0].starts_with(["main ", "slow "][arm]), "{found:?}");
    }
    assert!(done.stderr.contains("changes that are not committed"), "{}", done.stderr);
    assert!(run(["main", "nowhere"]).with_code(2).stderr.contains("is no branch, tag or commit"));
    // The repository is as it was: no file of ours, and no lock.
    let left = Running::start(lab.program("git").current_dir(lab.path("repo")).args(["status", "--porcelain"])).end();
    assert_eq!(left.stdout, " M serve.sh\n");
    lab.assert_nothing_left(port);
}

#[test]
fn ctrl_c_reports_what_there_is() {
    let lab = Lab::new();
    let mut running = Running::start(&mut compare(&lab, &format!("{SHORT} --format study"), ["-d5ms", "-d6ms"]));
    crate::clock::eventually(crate::lab::PATIENCE, || "no run".to_owned(), || (lab.kept_runs() > 3).then_some(()));
    assert!(!running.has_ended());
    running.send(Signal::INT);
    let done = running.end().with_code(130);
    let found = study(&done.stdout);
    assert!(found.interrupted && found.runs.len() > 3);
    assert!(lab.living().is_empty());
}

#[test]
fn overhead_and_try_are_comparisons() {
    let lab = Lab::new();
    let old = "overhead --server builtin -t2:2 --for 50ms --warm-up 0 --arms proc,stamps --rounds 7 --no-calibrate --format study";
    let found = study(&lab.run(old).stdout);
    let names: Vec<&str> = found.plan.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!((names, found.runs.last().unwrap().block), (vec!["bare", "proc", "stamps"], 7));
    assert!(found.runs.iter().any(|run| run.arm == 1 && run.run.watch.is_some()));
    assert!(found.runs.iter().all(|run| run.arm == 1 || run.run.watch.is_none()), "nobody looks in the other arms");
    let typed = "sweep --server builtin --try 1x2,2x2k -d5ms --for 50ms --warm-up 0 --blocks 6 --no-calibrate --format study -c 4";
    let found = study(&lab.run(typed).stdout);
    assert_eq!(found.command_line, format!("longtail {typed}"));
    let slots: Vec<u32> = found.servers.iter().flatten().map(model::ServerFacts::slots).collect();
    let keeps: Vec<bool> = found.plan.arms.iter().map(|arm| arm.stream.keep_alive).collect();
    assert_eq!((slots, keeps), (vec![2, 4], vec![true, false]));
    let said = lab.run("sweep --server builtin --try 2y3").with_code(2).stderr;
    assert!(said.contains("WORKERSxTHREADS") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_setting_of_an_arm_reaches_its_server_alone() {
    let Some(lab) = Lab::with("puma") else { return };
    let seen = lab.path("answer");
    let app = format!(
        "File.write({:?}, ENV['INSTRUMENT'].to_s + \"\\n\", mode: 'a')\nrun lambda {{ |_| [200, {{}}, ['ok']] }}\n",
        seen.to_str().unwrap()
    );
    lab.write("app.ru", &app);
    let words = "compare -t1:1 -r app.ru --blocks 6 --metric mean --for 50ms --warm-up 0 --no-control --no-calibrate";
    Running::start(&mut compare(&lab, words, ["", "--env INSTRUMENT=1"])).end();
    let seen = std::fs::read_to_string(seen).unwrap();
    // The trial and six blocks, each on a server of its own.
    let (with, without): (Vec<&str>, Vec<&str>) = seen.lines().partition(|line| *line == "1");
    assert!(with.len() >= 7 && without.len() >= 7 && without.iter().all(|line| line.is_empty()), "{seen}");
}

#[test]
fn more_threads_of_puma_answer_more_when_the_app_waits() {
    let Some(lab) = Lab::with("puma") else { return };
    let words = "compare -d50ms -c 5 --blocks 6 --metric throughput --for 300ms --warm-up 100ms --no-control --no-calibrate --format study";
    let found = study(&Running::start(&mut compare(&lab, words, ["-t3:3", "-t5:5"])).end().with_code(0).stdout);
    assert!(found.servers.iter().flatten().all(|facts| facts.name == "Puma"));
    assert_eq!(found.servers.iter().flatten().map(model::ServerFacts::slots).collect::<Vec<_>>(), [3, 5]);
}

/// Answers GET with the files of a folder, until the test ends.
fn serve_files(folder: std::path::PathBuf) -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let n = stream.read(&mut head).unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..n]).into_owned();
            let path = text.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
            let (status, body) =
                std::fs::read(folder.join(path)).map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
            let body = if text.starts_with("HEAD") { Vec::new() } else { body };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    port
}

/// A gem of that version which runs the Puma that is installed.
const GEM: &str = r##"
paths = Gem::Specification.find_by_name('puma').full_require_paths
Dir.mkdir('bin')
File.write('bin/puma', "#{paths.inspect}.each { |path| $LOAD_PATH.unshift(path) }\nrequire 'puma/cli'\nPuma::CLI.new(ARGV).run\n")
File.write('puma.gemspec', <<~SPEC)
  Gem::Specification.new { |s|
    s.name, s.version, s.summary, s.author, s.files = 'puma', '9.9.9', 'x', 'x', ['bin/puma']
    s.executables, s.bindir = ['puma'], 'bin'
  }
SPEC
Dir.mkdir('gems')
system('gem build -q puma.gemspec -o gems/puma-9.9.9.gem', exception: true)
system('gem generate_index -q --directory .', exception: true)
"##;

#[test]
fn a_version_of_puma_that_is_missing_is_installed_into_longtails_own_folder() {
    let Some(lab) = Lab::with("puma") else { return };
    if !has("gem") {
        return;
    }
    let dir = lab.path("index");
    std::fs::create_dir(&dir).unwrap();
    Running::start(lab.program("ruby").current_dir(&dir).args(["-e", GEM])).end().with_code(0);
    let words =
        "compare -t1:1 -d5ms --for 50ms --warm-up 0 --blocks 6 --metric p50 --no-control --no-calibrate --format study";
    let run = |port: u16| {
        let rc = lab.write("gemrc", &format!(":sources:\n- http://127.0.0.1:{port}/\n"));
        Running::start(compare(&lab, words, ["", "--puma 9.9.9"]).env("GEMRC", rc).env("HOME", lab.path("tmp"))).end()
    };
    let none = run(free_port()).with_code(2);
    assert!(
        none.stderr.lines().last().unwrap().contains("puma 9.9.9 is not installed, and gem install"),
        "{}",
        none.stderr
    );
    let done = run(serve_files(dir));
    let found = study(&done.stdout);
    assert!(found.server(1).unwrap().command_line.contains("9.9.9"), "{found:?}");
    assert!(lab.path("data/longtail/gems").read_dir().unwrap().next().is_some());
    assert!(!lab.path("tmp/.gem").exists());
}
