//! Who runs on which processors: a server that is kept to some, and lanes that leave it alone.

use std::fs;
use std::process::Command;

use launch::affinity;
use model::{Cpus, Diagnostic, LaneCountReason, Placement};
use probe::sockets;
use rustix::process::Signal;

use crate::lab::{Lab, Running, can, free_port};

/// The last of our processors, and the others; `None` where there is but one.
fn apart() -> Option<Placement> {
    let ours = affinity::ours().expect("Linux tells");
    let server: Cpus = ours.iter().last().into_iter().collect();
    let several = can(ours.len() > 1, "one processor: the lanes cannot leave it to the server");
    several.then(|| Placement { lanes: ours.without(&server), server })
}

/// Where the thread of this name of the process may run, by the kernel's account.
fn cpus_of(pid: u32, thread: &str) -> Option<Cpus> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let text = |task: &fs::DirEntry, file: &str| fs::read_to_string(task.path().join(file)).ok();
    let lane = tasks.flatten().find(|task| text(task, "comm").is_some_and(|name| name.trim_end() == thread))?;
    let status = text(&lane, "status")?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

#[test]
fn a_server_that_is_given_processors_has_them_for_itself() {
    let Some(apart) = apart() else { return };
    let (lab, port) = (Lab::new(), free_port());
    let words = format!(
        "sweep --server builtin -w2 -t2:2 -d0.02 --for 600s --warm-up 0 --multiples 2 --no-calibrate --server-cpus {}",
        apart.server
    );
    let mut sweep = lab.start_at(port, &words);
    sweep.until(|_| sockets::of_port(port).unwrap().open > 4);
    assert_eq!(cpus_of(sweep.pid(), "lane-0"), Some(apart.lanes.clone()));
    sweep.send(Signal::INT);
    let sweep = sweep.end().with_code(130);
    let study = lab.study();
    assert_eq!(study.server.placement, Some(apart.clone()), "the server's own processes are asked, not the flag");
    assert!(study.command_line.contains(&format!("--server-cpus={}", apart.server)), "{}", study.command_line);
    let said = format!(
        "1 lane on CPU{} {}, the server on CPU {}",
        if apart.lanes.len() > 1 { "s" } else { "" },
        apart.lanes,
        apart.server
    );
    assert!(sweep.stdout.contains(&said), "{}", sweep.stdout);
    lab.assert_nothing_left(port);
}

/// A sink of somebody else that is kept to these processors.
fn kept_sink(lab: &Lab, server: &Cpus, port: u16) -> Option<Running> {
    if !can(Command::new("taskset").arg("--version").output().is_ok(), "taskset is not on PATH") {
        return None;
    }
    let mut sink = lab.program("taskset");
    let address = format!("127.0.0.1:{port}");
    sink.args(["-c", &server.to_string(), crate::lab::LONGTAIL, "sink", "--listen", &address]);
    let mut sink = Running::start(&mut sink);
    sink.until(|_| sockets::of_port(port).is_ok_and(|sockets| sockets.listening));
    Some(sink)
}

#[test]
fn a_load_leaves_a_server_of_somebody_else_its_processors() {
    let Some(apart) = apart() else { return };
    let (lab, port) = (Lab::new(), free_port());
    let Some(server) = kept_sink(&lab, &apart.server, port) else { return };
    lab.run(&format!("load -c 4 -n 100 --no-calibrate -o load.study.json http://127.0.0.1:{port}/")).with_code(0);
    let study = crate::load::read(&lab.path("load.study.json"));
    assert_eq!(study.placement, Some(apart));
    server.send(Signal::INT);
    server.end();
}

/// So does another generator: its own process is asked, as it is of its own name.
#[test]
fn another_generator_leaves_it_them_too() {
    let Some(apart) = apart() else { return };
    if !can(Command::new("wrk").arg("-v").output().is_ok(), "wrk is not on PATH") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    let Some(server) = kept_sink(&lab, &apart.server, port) else { return };
    let words = format!("load --generator wrk -c 2 --for 600s -o load.study.json http://127.0.0.1:{port}/");
    let mut load = lab.start(&words);
    load.until(|_| sockets::of_port(port).unwrap().open > 1);
    let wrk = probe::processes::tree(load.pid()).into_iter().find(|pid| cpus_of(*pid, "wrk").is_some());
    assert_eq!(cpus_of(wrk.expect("it runs"), "wrk"), Some(apart.lanes));
    load.send(Signal::INT);
    load.end().with_code(130);
    server.send(Signal::INT);
    server.end();
}

/// A server whose parent may run anywhere and whose one worker keeps itself to the processor `argv[2]`, as nginx's with
/// `worker_cpu_affinity`.
const PARENT: &str = r#"
import http.server, os, socket, sys

class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *words): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
worker = os.fork()
if worker == 0:
    os.sched_setaffinity(0, {int(sys.argv[2])})
    server.serve_forever()
try:
    os.wait()
finally:
    os.kill(worker, 9)
"#;

#[test]
fn a_load_leaves_a_worker_its_processor_whose_parent_may_run_anywhere() {
    let Some(apart) = apart() else { return };
    if !can(Command::new("python3").arg("--version").output().is_ok(), "python3 is not on PATH") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    let script = lab.write("parent.py", PARENT);
    let mut server = lab.program("python3");
    server.args([script.as_os_str(), port.to_string().as_ref(), apart.server.to_string().as_ref()]);
    let mut server = Running::start(&mut server);
    // An answer comes from the worker, which has gone to its processor before.
    server.until(|_| sockets::of_port(port).is_ok_and(|sockets| sockets.listening));
    lab.run(&format!("load -n 1 -c 1 --no-calibrate http://127.0.0.1:{port}/")).with_code(0);
    let words = "load -n 4 --rate 1000/s --no-calibrate --generator-threads 2 -o load.study.json";
    lab.run(&format!("{words} http://127.0.0.1:{port}/")).with_code(0);
    let study = crate::load::read(&lab.path("load.study.json"));
    assert_eq!((study.placement, study.lanes_by), (Some(apart), LaneCountReason::Asked));
    assert!(!study.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::SharedCpus { .. })));
    server.send(Signal::INT);
    server.end();
}
