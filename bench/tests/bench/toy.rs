//! The bench itself at a tiny size, with the installed tools that can run for less than a second.
//! Only counts are asserted.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{Killed, skipped};

/// The bench, or `None` with a message if longtail isn't built: `cargo test -p bench` does not
/// build it.
fn bench(folder: &Path) -> Option<Command> {
    let bench = PathBuf::from(env!("CARGO_BIN_EXE_bench"));
    let longtail = bench.with_file_name("longtail");
    if !longtail.is_file() {
        skipped(&format!("no {}: cargo build -p longtail", longtail.display()));
        return None;
    }
    fs::create_dir_all(folder).unwrap();
    let mut command = Command::new(bench);
    // Its folder is in the environment of every process that it starts.
    command.env("TMPDIR", folder).stdin(Stdio::null());
    Some(command)
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("longtail-bench-{}-{name}", std::process::id()))
}

/// Processes with this folder in their environment, except this one and zombies.
fn alive(folder: &Path) -> Vec<String> {
    let marker = [b"TMPDIR=", folder.as_os_str().as_bytes()].concat();
    let has = |process: &fs::DirEntry| {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|setting| setting == marker)
    };
    let name = |process: fs::DirEntry| fs::read_to_string(process.path().join("cmdline")).ok();
    fs::read_dir("/proc").unwrap().flatten().filter(has).filter_map(name).collect()
}

#[test]
fn every_section_runs_and_both_ledgers_agree() {
    let folder = folder("toy");
    let Some(mut command) = bench(&folder) else { return };
    let file = folder.join("bench.json");
    let asked = "--quick --for 60ms --rounds 1 --tools longtail,floor,oha,hey --connections 3 \
         --memory-requests 2000";
    let output = command.args(asked.split(' ')).arg("--json").arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}\n{complaint}");

    let found: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let sections = found["sections"].as_array().unwrap();
    let names: Vec<&str> =
        sections.iter().map(|section| section["section"].as_str().unwrap()).collect();
    assert_eq!(names, ["cost", "calls", "idle", "timing", "memory", "log"]);
    let mut ours = 0;
    for done in sections.iter().flat_map(|section| section["cases"].as_array().unwrap()) {
        // Without nginx, the idle section has no results.
        if done["failure"].is_string() {
            continue;
        }
        for entry in done["entries"].as_array().unwrap() {
            let is_exact =
                ["longtail", "floor"].contains(&entry["contender"]["tool"].as_str().unwrap());
            if is_exact {
                assert_eq!(entry["failures"].as_array().unwrap().len(), 0, "{text}\n{entry:#}");
                assert_eq!(entry["samples"].as_array().unwrap().len(), 1, "{text}\n{entry:#}");
            }
            for sample in entry["samples"].as_array().unwrap() {
                assert!(sample["received"].as_u64().unwrap() > 0);
                if is_exact {
                    assert_eq!(sample["received"], sample["reported"]["requests"], "{entry:#}");
                    ours += 1;
                }
            }
        }
    }
    assert!(ours >= 10, "{ours}");
    assert_eq!(alive(&folder), Vec::<String>::new());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_interrupt_ends_everything_that_was_started() {
    let folder = folder("interrupt");
    let Some(mut command) = bench(&folder) else { return };
    let asked = "--only cost --tools longtail --connections 2 --for 600s";
    let child =
        command.args(asked.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut child = Killed(child);
    let is_loading = || alive(&folder).iter().any(|line| line.split('\0').nth(1) == Some("load"));
    while !is_loading() {
        assert_eq!(child.0.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    assert_eq!(alive(&folder), Vec::<String>::new());
    // Its own folder is gone, too.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_floor_runs_until_its_time_is_over() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while client.read(&mut [0; 1024]).is_ok_and(|n| n > 0) {
                    let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                }
            });
        }
    });
    let floor = env!("CARGO_BIN_EXE_ping-pong");
    let output = Command::new(floor)
        .args([&address.to_string(), "1", "1000000000", "keep"])
        .output()
        .unwrap();
    let answers: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    // One request to learn the length, one for the connection, and in a second some thousands more.
    assert!(answers > 10, "{answers}");
}

#[test]
fn a_tool_that_hangs_or_fails_is_reported_and_the_others_run() {
    let folder = folder("hangs");
    let Some(mut command) = bench(&folder) else { return };
    let programs = folder.join("bin");
    fs::create_dir_all(&programs).unwrap();
    // This wrk ignores signals and has a child process.
    for (name, text) in [
        ("wrk", "trap '' TERM INT\nsleep 1000 & wait\nsleep 1000\n"),
        ("hey", "echo 'no server' >&2\nexit 3\n"),
    ] {
        let file = programs.join(name);
        // It does so only for a load, not when asked for its version.
        let all = format!("#!/bin/sh\ncase \"$*\" in *http*) ;; *) exit 0 ;; esac\n{text}");
        fs::write(&file, all).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let asked = "--only calls --for 50ms --patience 5s --tools longtail,wrk,hey";
    let output = command.args(asked.split(' ')).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    // perf sometimes ends with 0 although its child failed; then the server's count shows it.
    let hangs = "wrk: 1 of its runs failed: it had not ended 5s after its time";
    let fails =
        text.lines().find(|line| line.contains("hey: 1 of its runs failed: ")).unwrap_or_default();
    assert!(text.contains(hangs) && fails.ends_with(": no server"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("longtail  ")), "{text}");
    assert_eq!(alive(&folder), Vec::<String>::new());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_mistake_is_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["--longtail", "/nonexistent/longtail"])
        .env_remove("TMPDIR")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("--longtail") && output.stdout.as_slice() == OsStr::new("").as_bytes());
}
