//! Who runs on which processors: a server that is kept to some, and lanes that leave it alone.

use std::fs;

use launch::affinity;
use model::{Cpus, Diagnostic, LaneCountReason, Placement};
use probe::sockets;
use rustix::process::Signal;

use crate::lab::{LONGTAIL, Lab, Running, can, free_port, has, split};
use crate::load::study;

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
    sweep.until(|_| sockets::ServerListener::of_port(port).sample().unwrap().open > 4);
    assert_eq!(cpus_of(sweep.pid(), "lane-0"), Some(apart.lanes.clone()));
    sweep.send(Signal::INT);
    let sweep = sweep.end().with_code(130);
    let study = lab.study();
    assert_eq!(study.server.placement, Some(apart.clone()), "the server's own processes are asked, not the flag");
    assert!(study.command_line.contains(&format!("--server-cpus {}", apart.server)), "{}", study.command_line);
    let said = format!(
        "1 generator thread on CPU{} {}, the server on CPU {}",
        if apart.lanes.len() > 1 { "s" } else { "" },
        apart.lanes,
        apart.server
    );
    assert!(sweep.stdout.contains(&said), "{}", sweep.stdout);
    lab.assert_nothing_left(port);
}

/// So does another generator: its own process is asked, as it is of its own name.
#[test]
fn a_load_leaves_a_server_of_somebody_else_its_processors() {
    let (Some(apart), true) = (apart(), has("taskset")) else { return };
    let (lab, port) = (Lab::new(), free_port());
    let sink = format!("-c {} {LONGTAIL} sink --listen 127.0.0.1:{port}", apart.server);
    let mut server = Running::start(lab.program("taskset").args(split(&sink)));
    server.until(|_| sockets::ServerListener::of_port(port).sample().is_ok_and(|sockets| sockets.listening));
    lab.run(&format!("load -c 4 -n 100 --no-calibrate http://127.0.0.1:{port}/")).with_code(0);
    assert_eq!(study(&lab).placement.as_ref(), Some(&apart));
    if has("wrk") {
        let mut load = lab.start(&format!("load --generator wrk -c 2 --for 600s http://127.0.0.1:{port}/"));
        load.until(|_| sockets::ServerListener::of_port(port).sample().unwrap().open > 1);
        let wrk = probe::processes::tree(load.pid()).into_iter().find(|pid| cpus_of(*pid, "wrk").is_some());
        assert_eq!(cpus_of(wrk.expect("it runs"), "wrk"), Some(apart.lanes));
        load.send(Signal::INT);
        load.end().with_code(130);
    }
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
    let (Some(apart), true) = (apart(), has("python3")) else { return };
    let (lab, port) = (Lab::new(), free_port());
    lab.write("parent.py", PARENT);
    let words = format!("parent.py {port} {}", apart.server);
    let mut server = Running::start(lab.program("python3").args(split(&words)));
    // An answer comes from the worker, which has gone to its processor before.
    server.until(|_| sockets::ServerListener::of_port(port).sample().is_ok_and(|sockets| sockets.listening));
    let url = format!("http://127.0.0.1:{port}/");
    lab.run(&format!("load -n 1 -c 1 --no-calibrate {url}")).with_code(0);
    let words = "load -n 4 --rate 1000/s --no-calibrate --generator-threads 2 -o load.study.json";
    lab.run(&format!("{words} {url}")).with_code(0);
    let study = crate::load::read(&lab.path("load.study.json"));
    assert_eq!((study.placement, study.lanes_by), (Some(apart), LaneCountReason::Asked));
    assert!(!study.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::SharedCpus { .. })));
    server.send(Signal::INT);
    server.end();
}
