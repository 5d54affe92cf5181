//! `longtail compare`: every arm runs once a block on a fresh server with its own settings. What the figures say is proven in `model`.

use model::{ComparisonStudy, Study};
use testkit::http::Receiver;

use crate::lab::{LONGTAIL, Lab, end, free_port, has};

/// Short runs of the built-in server.
const SHORT: &str = "compare --server builtin -t2:2 --for 100ms --warm-up 20ms --no-calibrate";

/// Six blocks of short runs of Puma or a command, without a control.
const SIX: &str = "compare --blocks 6 --for 100ms --warm-up 0 --no-control --no-calibrate --inspect none";

fn study(text: &str) -> ComparisonStudy {
    match report::json::read(text).unwrap_or_else(|error| panic!("{error}: {text}")) {
        Study::Compare(study) => *study,
        other => panic!("{other:?}"),
    }
}

/// The study of a comparison with these words, however it ended.
fn compared(lab: &Lab, words: &str) -> ComparisonStudy {
    study(&lab.run(&format!("{words} --format study")).stdout)
}

#[test]
fn every_arm_runs_once_a_block_and_once_at_each_place() {
    let lab = Lab::new();
    let done = lab.run(&format!("{SHORT} --blocks 6 --format study --arm -d5ms --arm slow=-d6ms"));
    let found = study(&done.stdout);
    assert_eq!(found.plan.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["-d5ms", "slow"]);
    let is_said = |text: &str| assert!(done.stderr.contains(text), "{}", done.stderr);
    is_said("longtail: 6 blocks of 3 runs: 0:");
    is_said("run 2/18, at most 0:");
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
fn the_load_may_be_a_share_of_the_slower_arms_maximum() {
    let words = format!("{SHORT} --blocks 6 --metric p50 --no-control --share 50% --arm -d5ms --arm -d20ms");
    let share = compared(&Lab::new(), &words);
    let slower = share.maxima_per_s.iter().copied().min_by(f64::total_cmp).unwrap();
    assert_eq!((share.maxima_per_s.len(), share.rate_per_s()), (2, Some(slower / 2.0)));
}

#[test]
fn an_arm_that_dies_later_ends_the_comparison_with_what_there_is() {
    let (lab, port) = (Lab::new(), free_port());
    // It serves when it is tried, and in the first block; then never more.
    let sink = format!("{LONGTAIL} sink --listen 127.0.0.1:{port}");
    lab.write("dies.sh", &format!("echo x >> starts; [ $(wc -l < starts) -gt 2 ] && exit 7; exec {sink}"));
    let words =
        format!("{SIX} -t1:1 --url http://127.0.0.1:{port} --metric mean --arm '-- {sink}' --arm '-- sh dies.sh'");
    let found = compared(&lab, &words);
    let last = found.lost.last().unwrap();
    assert!(last.arm == 1 && last.attempt == 2 && last.reason.contains("exit code 7"), "{:?}", found.lost);
    assert!(!found.runs.is_empty() && found.runs.iter().all(|run| run.block <= last.block), "no block after that");
    lab.assert_nothing_left(port);
}

fn git(lab: &Lab, words: &str) {
    let mut git = lab.program("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]);
    end(git.current_dir(lab.path("repo")).args(words.split(' '))).with_code(0);
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
    let run = |other: &str| {
        let words = format!("{SIX} -t1:1 --url http://127.0.0.1:{port} --metric p50 --format study");
        end(lab.longtail(&format!("{words} --arm main --arm {other} -- sh serve.sh")).current_dir(lab.path("repo")))
    };
    // A busy machine may spoil so many runs that it cannot be told; what is told is asserted of arms that need no build.
    let done = run("slow");
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
    assert!(run("nowhere").with_code(2).stderr.contains("is no branch, tag or commit"));
    // The repository is as it was: no file of ours, and no lock.
    let left = end(lab.program("git").current_dir(lab.path("repo")).args(["status", "--porcelain"]));
    assert_eq!(left.stdout, " M serve.sh\n");
    lab.assert_nothing_left(port);
}

#[test]
fn overhead_and_try_are_comparisons() {
    let lab = Lab::new();
    let old =
        "overhead --server builtin -t2:2 -d5ms --for 50ms --warm-up 0 --arms proc,stamps --rounds 7 --no-calibrate";
    let found = compared(&lab, old);
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
}

#[test]
fn a_setting_of_an_arm_reaches_its_puma_alone() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write(
        "app.ru",
        "File.write('seen', \"#{ENV['INSTRUMENT']}\\n\", mode: 'a')\nrun lambda { |_| [200, {}, ['ok']] }\n",
    );
    let found = compared(
        &lab,
        &format!("{SIX} -r app.ru -c 5 --metric throughput --arm -t3:3 --arm '-t5:5 --env INSTRUMENT=1'"),
    );
    assert!(found.servers.iter().flatten().all(|facts| facts.name == "Puma"));
    assert_eq!(found.servers.iter().flatten().map(model::ServerFacts::slots).collect::<Vec<_>>(), [3, 5]);
    let seen = std::fs::read_to_string(lab.path("seen")).unwrap();
    // The trial and six blocks, each on a server of its own.
    let (with, without): (Vec<&str>, Vec<&str>) = seen.lines().partition(|line| *line == "1");
    assert!(with.len() >= 7 && without.len() >= 7 && without.iter().all(|line| line.is_empty()), "{seen}");
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
    end(lab.program("ruby").current_dir(&dir).args(["-e", GEM])).with_code(0);
    // A gem server answers with the files of a folder.
    let server = Receiver::by(move |request| {
        let path = request.head.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
        let file = std::fs::read(dir.join(path));
        let status = if file.is_ok() { "200 OK" } else { "404 Not Found" };
        let body = file.unwrap_or_default();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), if request.head.starts_with("HEAD") { &[] } else { &body }].concat()
    });
    let run = |port: u16| {
        let rc = lab.write("gemrc", &format!(":sources:\n- http://127.0.0.1:{port}/\n"));
        let words = format!("{SIX} -t1:1 -d5ms --metric p50 --format study --arm '' --arm '--puma 9.9.9'");
        end(lab.longtail(&words).env("GEMRC", rc).env("HOME", lab.path("tmp")))
    };
    let none = run(free_port()).with_code(2).stderr;
    assert!(none.lines().last().unwrap().contains("puma 9.9.9 is not installed, and gem install"), "{none}");
    let found = study(&run(server.address.port()).stdout);
    assert!(found.server(1).unwrap().command_line.contains("9.9.9"), "{found:?}");
    assert!(lab.path("data/longtail/gems").read_dir().unwrap().next().is_some());
    assert!(!lab.path("tmp/.gem").exists());
}
