//! A kernel or a sandbox that refuses a system call: strace makes each call of longtail fail once,
//! in each thread and process. Longtail must do without it or say in one line what is missing; it
//! must never hang, spin or panic.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use model::{Clock as _, Nanos};
use rustix::process::Signal;
use sink::{Sink, SinkBody};
use testkit::clock::{REAL_CLOCK, eventually};

use crate::lab::{LONGTAIL, Lab, Running, can, end, has, soaks};
use crate::load::{sink, url};

/// None of these commands takes this long, however busy the machine is; one that does hangs.
const PATIENCE: Nanos = Nanos::from_secs(120);

/// Calls that the test doesn't refuse, and why: longtail's own code isn't running yet, or the call
/// can't fail.
const NOT_REFUSED: [(&str, &str); 14] = [
    ("execve", "the program does not start"),
    ("arch_prctl", "the C library's start: no thread-local memory"),
    ("mmap", "the loader: no memory for libraries"),
    ("mprotect", "the loader: no memory for libraries"),
    ("read", "the loader reads libraries"),
    ("pread64", "the loader reads libraries"),
    ("poll", "Rust's runtime looks whether stdin, stdout and stderr are open, and aborts"),
    ("rt_sigaction", "Rust's runtime sets SIGPIPE, and aborts"),
    ("futex", "the wake-up of one thread by another is lost"),
    ("close", "Rust's read_dir takes it for a bug"),
    ("clock_gettime", "a clock that exists can be read"),
    ("getpid", "it cannot fail"),
    ("getppid", "it cannot fail"),
    ("geteuid", "it cannot fail"),
];

/// Longtail under strace, which injects `what` into the calls and logs them in the file `trace`.
fn injected(lab: &Lab, call: &str, what: &str, words: &str) -> Command {
    let mut strace = lab.program("strace");
    strace.args([
        "-f",
        "-qq",
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:{what}"),
        "-o",
    ]);
    strace
        .arg(lab.path("trace"))
        .env_remove("RUST_BACKTRACE")
        .arg(LONGTAIL)
        .args(words.split_ascii_whitespace());
    strace
}

/// The calls that a command makes in all its threads and processes.
fn calls(lab: &Lab, words: &str) -> Vec<String> {
    let file = lab.path("calls");
    let mut strace = lab.program("strace");
    strace
        .args(["-f", "-qq", "-c", "-U", "name", "-o"])
        .arg(&file)
        .arg(LONGTAIL)
        .args(words.split_ascii_whitespace());
    let _ = end(&mut strace).with_code(0);
    let listed = fs::read_to_string(file).unwrap();
    let is_call = |word: &&str| {
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let calls = listed
        .lines()
        .map(str::trim)
        .filter(is_call)
        .filter(|word| !["", "total", "syscall"].contains(word));
    calls.map(str::to_owned).collect()
}

/// Whether strace can refuse calls here.
fn can_refuse() -> bool {
    let tried = || {
        let lab = Lab::new();
        let words =
            ["-f", "-qq", "-e", "trace=uname", "-e", "inject=uname:error=EPERM:when=1", "true"];
        end(lab.program("strace").args(words)).code() == 0
    };
    has("strace") && can(tried(), "strace may not trace here (ptrace is forbidden)")
}

/// Refuses each call of the command once with each of the errors, and fails if one of these runs
/// ends badly.
fn refused(words: &str, except: &[&str]) {
    let calls = calls(&Lab::new(), words);
    assert!(calls.len() > 30 && calls.iter().any(|call| call == "sendto"), "{calls:?}");
    let mut unexpected = BTreeMap::new();
    let is_left_out =
        |call: &str| NOT_REFUSED.iter().any(|(other, _)| *other == call) || except.contains(&call);
    for call in calls.iter().filter(|call| !is_left_out(call.as_str())) {
        for error in errors() {
            if let Err(why) = refuse(call, error, words) {
                unexpected.insert(format!("{call} {error}"), why);
            }
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

fn refuse(call: &str, error: &str, words: &str) -> Result<(), String> {
    let lab = Lab::new();
    let mut running =
        Running::start(&mut injected(&lab, call, &format!("error={error}:when=1"), words));
    let begun = REAL_CLOCK.now();
    let hangs = loop {
        if running.has_ended() {
            break false;
        }
        if REAL_CLOCK.now() - begun > PATIENCE {
            running.send(Signal::KILL);
            break true;
        }
        REAL_CLOCK.sleep(Nanos::from_millis(5));
    };
    if hangs {
        return Err("longtail hangs".to_owned());
    }
    let ended = running.end();
    let complaints: Vec<&str> =
        ended.stderr.lines().filter(|line| line.starts_with("longtail: ")).collect();
    let is_fault =
        ended.stderr.contains("a fault of longtail") || ended.stderr.contains("panicked");
    let is_explained = ended.code() == 0
        || complaints.last().is_some_and(|line| !line.starts_with("longtail: saved as"));
    if is_fault || !is_explained || ![0, 1, 2, 3, 4].contains(&ended.code()) {
        return Err(format!("exit code {}: {}", ended.code(), ended.stderr));
    }
    let left = || {
        let studies = lab.studies();
        // A file that can't be removed stays.
        let is_half = |path: &&std::path::PathBuf| {
            call != "unlink" && path.extension().is_some_and(|end| end == "new")
        };
        (lab.living(), studies.iter().filter(is_half).count())
    };
    eventually(
        PATIENCE,
        || format!("{call} {error}: {:?}", left()),
        || (left() == (Vec::new(), 0)).then_some(()),
    );
    Ok(())
}

/// `make soak` refuses with all of them.
fn errors() -> &'static [&'static str] {
    if soaks() { &["EPERM", "ENOSYS", "ENOMEM"] } else { &["EPERM"] }
}

fn a_load(sink: &Sink) -> String {
    format!("load -c 2 -n 20 --no-calibrate --timeout 5s {}", url(sink))
}

#[test]
fn a_load_survives_the_failure_of_any_system_call_or_ends_with_one_line() {
    if can_refuse() {
        let sink = sink(SinkBody::Counter);
        refused(&a_load(&sink), &[]);
    }
}

#[test]
fn a_sweep_survives_the_failure_of_any_system_call_or_ends_with_one_line() {
    if can_refuse() {
        let words = "sweep --server builtin -w1 -t2:2 -d5ms -R5 --multiples 1 --no-calibrate --timeout 5s \
                     --boot-timeout 5s --inspect proc";
        // Calls that a load also makes are refused there; `make soak` refuses them here, too.
        let of_a_load =
            if soaks() { vec![] } else { calls(&Lab::new(), &a_load(&sink(SinkBody::Counter))) };
        let mut except: Vec<&str> = of_a_load.iter().map(String::as_str).collect();
        // Rust's standard library uses it to learn whether a child was executed, and waits for the
        // child's end if it fails.
        except.push("recvfrom");
        refused(words, &except);
    }
}

/// Refuses every call, as a sandbox does, and not only the first one as the tests above.
#[test]
fn a_load_works_without_epoll_pwait2() {
    if !can_refuse() {
        return;
    }
    for error in ["EPERM", "ENOSYS", "EINVAL"] {
        let lab = Lab::new();
        let sink = sink(SinkBody::Counter);
        let words = format!("load -c 2 -n 50 --no-calibrate {}", url(&sink));
        let _ = end(&mut injected(&lab, "epoll_pwait2", &format!("error={error}"), &words))
            .with_code(0);
        assert_eq!(sink.stop().requests, 50, "{error}");
        // Once for each lane, not again and again.
        let refused = fs::read_to_string(lab.path("trace")).unwrap().matches("INJECTED").count();
        assert!((1..=2).contains(&refused), "{error}: {refused}");
    }
}

/// Strace makes a lane believe that it received more than its buffer holds, so the lane panics, as
/// a stand-in for any fault of longtail.
#[test]
fn a_fault_of_longtail_ends_the_run_with_its_server() {
    if !can_refuse() {
        return;
    }
    let lab = Lab::new();
    let port = crate::lab::free_port();
    let words = "sweep --server builtin -w1 -t2:2 -d20ms --for 600s --warm-up 0s --multiples 2 --no-calibrate --timestamps kernel";
    // Only lanes use this call.
    let mut strace = injected(&lab, "recvmsg", "retval=1000000:when=20+", words);
    let ended = end(strace.env("PUMA_TEST_PORT", port.to_string())).with_code(70);
    let last = ended.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("longtail: a fault of longtail, not of the server: ")
            && last.contains("(thread lane-0 at "),
        "{last}"
    );
    lab.assert_nothing_left(port);
}
