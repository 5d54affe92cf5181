//! The ceiling: how many instructions our own code may take per request, in the release build.
//!
//! A debug build takes ten times as many, so the test needs a release build, which
//! `LONGTAIL_RELEASE` names (`make ceiling` sets it, and `make test` if the CPU counts
//! instructions). Instructions are counted by the CPU (`perf`), or, if it doesn't count them as in
//! many virtual machines, by valgrind, which interprets them but doesn't see the kernel, nor the
//! clock that the kernel maps into the process.
//!
//! Two runs of different length are compared, so that start and report cancel out. Lane and sink
//! share one CPU: then each wait of the lane finds all responses, whatever else the machine does,
//! and the count is stable within a few percent. If a wait finds fewer, its cost is shared by fewer
//! requests.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Killed, say, skipped};

/// The source of time stamps, and the instructions in user mode that a request may then take, with
/// all measurements on. Lower them when the loop becomes cheaper, and raise them only with a reason
/// here.
const CEILINGS: [(&str, f64); 2] = [("kernel", 880.0), ("user", 720.0)];
const CONNECTIONS: u32 = 16;
/// The same two requests, as one class and as two: what the second costs more is what classes cost.
const ONE_CLASS: &str = "GET / as page, GET /other as page";
const TWO_CLASSES: &str = "GET / as page, GET /other as other";
/// How many instructions classes may cost a request: about five, and what pairs differ by.
const CLASSES_COST: f64 = 8.0;

/// How many pairs of runs, and their numbers of requests. The cheapest pair counts, because
/// disturbances only make a run more expensive.
struct Pairs {
    number: usize,
    short: u64,
    long: u64,
}

#[test]
fn a_request_stays_below_its_ceiling_of_instructions() {
    let Some(longtail) = std::env::var_os("LONGTAIL_RELEASE").map(PathBuf::from) else {
        return skipped("LONGTAIL_RELEASE names no release build (make ceiling does)");
    };
    let folder = std::env::temp_dir().join(format!("longtail-ceiling-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let Some(counter) =
        COUNTERS.into_iter().find(|counter| counter.count(&folder, &[Path::new("true")]).is_some())
    else {
        fs::remove_dir_all(&folder).unwrap();
        return skipped("neither perf nor valgrind counts instructions here");
    };
    one_processor();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sink = Command::new(&longtail)
        .args(["sink", "--body=64", &format!("--listen={address}")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut sink = Killed(sink);
    while std::net::TcpStream::connect(address).is_err() {
        assert_eq!(sink.0.try_wait().unwrap(), None, "the sink has ended");
        std::thread::yield_now();
    }
    let run = |requests: u64, stamps: &str, mix: Option<&str>| {
        // With this timing a lane does not poll; on one CPU the sink always needs it.
        let load =
            format!("load --no-calibrate --threads 1 --timing coalesce --timestamps {stamps}");
        let line = format!("{load} -c {CONNECTIONS} -n {requests} http://{address}/");
        let mix = mix.map(|mix| ["--mix", mix]);
        let words: Vec<&Path> = std::iter::once(longtail.as_path())
            .chain(line.split(' ').map(Path::new))
            .chain(mix.iter().flatten().map(Path::new))
            .collect();
        counter.count(&folder, &words).unwrap()
    };
    // The instructions of a request, in the cheapest pair.
    let a_request = |stamps: &str, mix: Option<&str>| {
        let Pairs { number, short, long } = counter.pairs();
        let each = |_| (run(long, stamps, mix) - run(short, stamps, mix)) / (long - short) as f64;
        let all: Vec<f64> = (0..number).map(each).collect();
        let by = counter.name();
        let what = mix.unwrap_or("one path");
        say(&format!(
            "instructions in user mode a request, by {by}, {stamps} stamps, {what}: {all:.1?}"
        ));
        all.into_iter().fold(f64::INFINITY, f64::min)
    };
    let least = CEILINGS.map(|(stamps, _)| a_request(stamps, None));
    let [one_class, two_classes] = [ONE_CLASS, TWO_CLASSES].map(|mix| a_request("user", Some(mix)));
    fs::remove_dir_all(&folder).unwrap();
    assert!(
        two_classes - one_class <= CLASSES_COST,
        "classes cost {:.1} instructions a request, and {CLASSES_COST} are allowed",
        two_classes - one_class
    );
    for ((stamps, ceiling), least) in CEILINGS.into_iter().zip(least) {
        assert!(
            least > 0.0 && least <= ceiling,
            "{least:.0} instructions a request with {stamps} stamps, and {ceiling} are allowed"
        );
    }
}

/// The counters, the better one first.
const COUNTERS: [Counter; 2] = [Counter::Perf, Counter::Valgrind];

#[derive(Clone, Copy)]
enum Counter {
    Perf,
    Valgrind,
}

impl Counter {
    fn name(self) -> &'static str {
        match self {
            Counter::Perf => "perf",
            Counter::Valgrind => "valgrind",
        }
    }

    /// How long the runs are, and how many: valgrind takes fifty times as long.
    fn pairs(self) -> Pairs {
        match self {
            Counter::Perf => Pairs { number: 3, short: 50_000, long: 150_000 },
            Counter::Valgrind => Pairs { number: 2, short: 20_000, long: 80_000 },
        }
    }

    /// Instructions in user mode of a command that succeeds; `None` if they are not counted.
    fn count(self, folder: &Path, words: &[&Path]) -> Option<f64> {
        let file = folder.join("counted");
        let _ = fs::remove_file(&file);
        let mut command = Command::new(self.name());
        match self {
            Counter::Perf => {
                command.args(["stat", "-x,", "-e", "instructions:u", "-o"]).arg(&file).arg("--")
            }
            Counter::Valgrind => {
                // Count only in the request loop: writing the longer run's study is not part of a
                // request.
                let within = "--toggle-collect=engine::lane::run::*::run_loop*";
                command
                    .args(["--tool=callgrind", within])
                    .arg(format!("--callgrind-out-file={}", file.display()))
            }
        };
        let status = command
            .args(words)
            .env("LC_ALL", "C")
            .env("XDG_DATA_HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return None;
        }
        let text = fs::read_to_string(file).ok()?;
        let number = match self {
            Counter::Perf => {
                text.lines().find(|line| line.contains("instructions:u"))?.split(',').next()?
            }
            // The one event that it counts is instructions (`events: Ir`).
            Counter::Valgrind => text.lines().find_map(|line| line.strip_prefix("totals: "))?,
        };
        number.trim().parse().ok()
    }
}

/// Binds this thread, and all that it starts, to the first CPU that it may use.
fn one_processor() {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
    let mut only = CpuSet::new();
    only.set(first);
    sched_setaffinity(None, &only).unwrap();
}
