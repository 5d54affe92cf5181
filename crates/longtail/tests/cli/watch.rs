//! `longtail watch`: a server that was there before is found, looked at and left as it was. By counts and laws alone.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;

use probe::puma_stats::{PumaStats, WorkerStats};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::clock::eventually;

use crate::lab::{Lab, PATIENCE, Running, can, free_port, has};

/// The last figures of a watch as JSON.
struct Watched(Value);

impl Watched {
    fn of(text: &str) -> Watched {
        Watched(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    fn figure(&self, pid: Option<u64>, name: &str) -> &Value {
        let all = self.0["figures"].as_array().unwrap();
        all.iter().find(|one| one["pid"].as_u64() == pid && one["name"] == name).unwrap_or(&Value::Null)
    }

    fn pids(&self) -> Vec<u64> {
        self.0["processes"].as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap()).collect()
    }

    /// The processes' parts are the whole, where none came or went.
    fn assert_parts_are_the_whole(&self) {
        for name in ["cpu", "run_queue_wait"] {
            let mean = |pid| self.figure(pid, name)["mean"].as_f64().unwrap_or_else(|| panic!("{name}: {}", self.0));
            let parts: f64 = self.pids().into_iter().map(|pid| mean(Some(pid))).sum();
            let whole = mean(None);
            assert!((parts - whole).abs() <= 1e-9 * whole.max(1.0), "{name}: {parts} of {whole}");
        }
    }
}

fn listens(port: u16) -> bool {
    probe::sockets::ServerListener::of_port(port).sample().unwrap().listening
}

fn wait_for(port: u16) {
    eventually(PATIENCE, || format!("nobody listens on {port}"), || listens(port).then_some(()));
}

fn sink(lab: &Lab, port: u16, words: &str) -> Running {
    let server = lab.start(&format!("sink --listen 127.0.0.1:{port} {words}"));
    wait_for(port);
    server
}

/// Long enough for any watch here; ends with its test.
fn load(lab: &Lab, port: u16, connections: u32) -> Running {
    let words = format!("load -c {connections} --for 3600s --no-calibrate http://127.0.0.1:{port}/");
    let load = lab.start(&words);
    // All are made, and accepted.
    let seen = || probe::sockets::ServerListener::of_port(port).sample().unwrap();
    let is_there = || seen().open >= connections && seen().accept_queue == 0;
    eventually(PATIENCE, || format!("{:?}", seen()), || is_there().then_some(()));
    load
}

#[test]
fn a_server_is_watched_by_its_port_and_by_its_process() {
    let (lab, port) = (Lab::new(), free_port());
    // Two slots of which each holds a request for 100 ms, and a load that is four times as much.
    let _server = sink(&lab, port, "--slots 2 --delay 100ms");
    let _load = load(&lab, port, 8);
    let by_port = lab.run(&format!("watch :{port} --for 3s --every 200ms --json --full")).with_code(0);
    let seen = Watched::of(&by_port.stdout);
    assert_eq!((&seen.0["kind"], &seen.0["ended"]), (&Value::from("watch"), &Value::from("time")));
    assert_eq!(seen.0["listens_on"], serde_json::json!([format!("127.0.0.1:{port}")]));
    seen.assert_parts_are_the_whole();
    // It accepts all, and nobody waits in the kernel.
    let pid = seen.pids()[0];
    assert_eq!(seen.figure(None, "connections")["last"], 8.0);
    assert_eq!(seen.figure(Some(pid), "connections")["last"], 8.0);
    assert_eq!(seen.figure(None, "accept_queue")["max"], 0.0);
    assert!(seen.figure(None, "cpu")["mean"].as_f64().unwrap() > 0.0);
    // A sink has no statistics.
    assert_eq!(seen.figure(None, "busy_threads"), &Value::Null);
    assert_eq!(seen.0["not_visible"], serde_json::json!([]));

    let by_process = lab.run(&format!("watch pid:{pid} --for 2s --every 200ms --lines --full")).with_code(0);
    let title = format!("\n{pid}: ");
    assert!(by_process.stdout.contains(&title) && by_process.stdout.contains("\nThe server (sampling"), "{title}");
    let lines: Vec<&str> = by_process.stdout.lines().take_while(|line| !line.contains(" on 127.")).collect();
    assert!(lines.len() >= 2 && lines[0].contains("queue"), "{}", by_process.stdout);
    let has_row = |name: &str| by_process.stdout.lines().any(|line| line.trim_start().starts_with(name));
    assert!(has_row("connections  ") && !has_row("busy threads"), "nobody tells: {}", by_process.stdout);
}

#[test]
fn what_is_not_accepted_waits_in_the_queue() {
    let (lab, port) = (Lab::new(), free_port());
    // Accepts a connection in a hundred seconds, and is asked for many more.
    let _server = sink(&lab, port, "--accept-rate 0.01");
    let words = format!("load -c 40 --for 3600s --no-calibrate http://127.0.0.1:{port}/");
    let _load = lab.start(&words);
    let waiting = || probe::sockets::ServerListener::of_port(port).sample().unwrap().accept_queue;
    eventually(PATIENCE, || "nobody waits".to_owned(), || (waiting() > 25).then_some(()));
    let seen = lab.run(&format!("watch :{port} --for 2s --every 200ms --json --full")).with_code(0);
    let seen = Watched::of(&seen.stdout);
    let (queue, open) = (seen.figure(None, "accept_queue"), seen.figure(None, "connections"));
    assert!(queue["min"].as_f64() > Some(0.0) && queue["max"].as_f64() < open["max"].as_f64(), "{}", seen.0);
}

#[test]
fn a_unix_socket_is_watched_too() {
    let lab = Lab::new();
    let path = lab.path("sink.sock");
    let _server = lab.start(&format!("sink --listen unix://{}", path.display()));
    // The file is there before anybody listens.
    let listens = || {
        probe::sockets::ServerListener::of(&probe::sockets::unix_place(path.to_str().unwrap()))
            .sample()
            .unwrap()
            .listening
    };
    eventually(PATIENCE, || "no socket".to_owned(), || listens().then_some(()));
    let seen = lab.run(&format!("watch {} --for 2s --every 100ms --full", path.display())).with_code(0);
    assert!(seen.stdout.contains(&format!(" on {}", path.display())), "the answer comes first: {}", seen.stdout);
    let unread = seen.stdout.lines().find(|line| line.trim_start().starts_with("unread")).unwrap();
    assert!(unread.contains('-'), "the kernel does not tell it of Unix sockets: {unread}");
}

#[test]
fn the_end_of_the_server_ends_it_and_is_said() {
    let (lab, port) = (Lab::new(), free_port());
    for (how, full) in [(format!(":{port}"), ""), (String::new(), "--full")] {
        let server = sink(&lab, port, "");
        let how = if how.is_empty() { format!("pid:{}", server.pid()) } else { how };
        let mut watch = lab.start(&format!("watch {how} --every 100ms --lines {full}"));
        watch.until(|said| said.lines().count() > 2);
        drop(server);
        let said = watch.end().with_code(0);
        assert!(said.stdout.contains("The server ended "), "{}", said.stdout);
    }
}

/// Mistakes are one line, and nothing is watched.
#[test]
fn who_cannot_be_watched_is_refused_in_one_line() {
    let (lab, port) = (Lab::new(), free_port());
    let other = free_port();
    let server = lab.start(&format!("sink --listen 127.0.0.1:{port} --listen 127.0.0.1:{other}"));
    wait_for(other);
    let pid = server.pid();
    let cases = [
        (format!("pid:{pid}"), "--port"),
        (format!("pid:{pid} --port {}", free_port()), "does not listen on port"),
        (format!(":{port} --port {port}"), "leave it out"),
        (format!("pid:{}", std::process::id()), "listen"),
    ];
    for (words, part) in cases {
        lab.run(&format!("watch {words} --for 1s")).refused(part);
    }
    lab.run(&format!("watch pid:{pid} --port {other} --for 2s --every 100ms")).with_code(0);
}

/// Another user sees sockets and figures of processes that it knows, but not who holds what.
#[test]
fn another_user_is_told_what_it_cannot_see() {
    if !can(rustix::process::geteuid().is_root(), "only root can become another user") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    let server = sink(&lab, port, "");
    let _load = load(&lab, port, 3);
    let as_nobody = |words: &str| {
        let mut command = lab.longtail(words);
        command.uid(65534).gid(65534).current_dir("/");
        Running::start(&mut command)
    };
    let folder_is_open = as_nobody("--version").end().code() == 0;
    if !can(folder_is_open, "another user cannot run this executable") {
        return;
    }
    let seen = as_nobody(&format!("watch :{port} --for 2s --every 100ms --json --full")).end().with_code(0);
    let seen = Watched::of(&seen.stdout);
    assert_eq!(seen.figure(None, "connections")["last"], 3.0);
    assert_eq!((seen.pids(), &seen.figure(None, "cpu")["last"]), (Vec::new(), &Value::Null));
    let missing = seen.0["not_visible"].as_array().unwrap();
    assert!(missing.len() == 1 && missing[0].as_str().unwrap().ends_with("run as root"), "{missing:?}");
    let refused = as_nobody(&format!("watch pid:{} --for 500ms", server.pid())).end().with_code(2);
    assert!(refused.stderr.contains("another user's") && refused.stderr.lines().count() == 1, "{}", refused.stderr);
}

/// Puma up to 6 accepts nothing while its threads are taken: all slots are busy, and the rest waits in the kernel.
#[test]
fn a_puma_is_watched_with_its_slots_and_its_workers() {
    if !has("puma") {
        return;
    }
    let (lab, port, control) = (Lab::new(), free_port(), free_port());
    // Whoever is served is served until the end: four, and eight wait, whenever one looks.
    let rackup = lab.write("app.ru", "run lambda { |_| sleep 3600; [200, {}, ['ok']] }\n");
    let mut command = lab.program("puma");
    command.args(["-q", "-w2", "-t2:2", "-b"]).arg(format!("tcp://127.0.0.1:{port}"));
    command.arg("-S").arg(lab.path("puma.state")).arg("--control-token=secret");
    command.arg(format!("--control-url=tcp://127.0.0.1:{control}")).arg(rackup);
    let puma = Running::start(&mut command);
    let control_server = model::ControlServer {
        address: model::Endpoint::Tcp(([127, 0, 0, 1], control).into()),
        token: "secret".to_owned(),
    };
    let stats = || probe::puma_stats::read_soon(&control_server);
    eventually(PATIENCE, || format!("{:?}", stats()), || stats().ok().filter(PumaStats::is_ready));
    // One is accepted before its request comes, and the worker keeps it: it waits in Puma's own queue in the end.
    let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let waiting = || probe::sockets::ServerListener::of_port(port).sample().unwrap();
    eventually(PATIENCE, || format!("{:?}", waiting()), || (waiting().accept_queue == 0).then_some(()));
    let words =
        format!("load -c 11 --for 3600s --timeout 3600s --disable-keepalive --no-calibrate http://127.0.0.1:{port}/");
    let _load = lab.start(&words);
    // The workers report each second.
    let busy = || stats().ok().and_then(|s| s.workers.iter().map(WorkerStats::busy_threads).sum::<Option<u32>>());
    eventually(PATIENCE, || format!("{:?}", busy()), || (busy() == Some(4)).then_some(()));
    early.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    // A Puma from 7.0 on accepts them all.
    eventually(PATIENCE, || format!("{:?}", waiting()), || (waiting().open >= 12).then_some(()));
    let old = waiting().accept_queue > 0;
    // What was accepted early is not in the kernel's queue, and one of the load's may have been too.
    let in_pumas = || stats().ok().and_then(|s| s.workers.iter().map(|worker| worker.backlog).sum::<Option<u32>>());
    let in_kernels = || {
        let (own, kernels) = (in_pumas(), waiting().accept_queue);
        (own.map(|own| own + kernels) == Some(8)).then_some(kernels)
    };
    let both = || format!("{:?} in Puma's, {:?}", in_pumas(), waiting());
    let waits = old.then(|| eventually(PATIENCE, both, in_kernels));
    // Its state file is found where it runs.
    let ended = lab.run(&format!("watch {port} --for 4s --every 200ms --json --full")).with_code(0);
    let seen = Watched::of(&ended.stdout);
    let workers: Vec<u64> = seen.pids().into_iter().filter(|pid| *pid != u64::from(puma.pid())).collect();
    assert_eq!((workers.len(), &seen.0["threads"]), (2, &Value::from(4)), "{}", seen.0);
    seen.assert_parts_are_the_whole();
    let answer = seen.0["answer"][0].as_str().unwrap();
    assert!(answer.starts_with("All 4 threads are busy. ") && answer.contains(" wait"), "{answer}");
    assert_eq!(seen.figure(None, "busy_threads")["last"], 4.0);
    let ages = seen.0["workers"].as_array().unwrap().iter().map(|worker| worker["staleness_ns"].as_u64());
    assert!(ages.max().unwrap() > Some(0), "the workers' figures have an age: {}", seen.0);
    let of_workers: f64 =
        workers.iter().map(|pid| seen.figure(Some(*pid), "busy_threads")["last"].as_f64().unwrap()).sum();
    assert!((of_workers - 4.0).abs() < f64::EPSILON);
    if let Some(waits) = waits {
        assert!(waits < 8, "{waits}: the early one waits in Puma");
        for figure in ["min", "max"] {
            assert_eq!(seen.figure(None, "accept_queue")[figure], f64::from(waits), "{figure}");
        }
    }

    // One worker is killed, and the master starts another.
    let mut watch = lab.start(&format!("watch :{port} --every 100ms --lines --full"));
    let lines = |said: &str| said.lines().count();
    watch.until(|said| lines(said) > 2);
    let known: Vec<u32> = workers.iter().map(|pid| *pid as u32).collect();
    kill_process(Pid::from_raw(known[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    let new = || probe::processes::tree(puma.pid()).into_iter().find(|pid| *pid != puma.pid() && !known.contains(pid));
    let new = eventually(PATIENCE, || "no new worker".to_owned(), new);
    // Of three more samples the last surely began after that.
    let mut before = None;
    watch.until(|said| lines(said) > *before.get_or_insert(lines(said)) + 3);
    watch.send(Signal::INT);
    let said = watch.end().with_code(0).stdout;
    for (pid, is_there) in [(known[0], false), (known[1], true), (new, true)] {
        let has_figures = said.lines().any(|line| line.starts_with(&format!("{pid}: ")));
        assert_eq!(has_figures, is_there, "{pid}: {said}");
    }
}

/// On a terminal: drawn on the other screen, ended by `q`, and the terminal is as it was.
#[test]
fn q_gives_the_terminal_back() {
    if !has("script") || !has("stty") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    let _server = sink(&lab, port, "");
    // Before and after it, the settings of the terminal that `script` made.
    let line = format!(
        "stty rows 40 cols 140; stty -a > before; {} watch :{port} --every 100ms; echo code $?; stty -a > after",
        crate::lab::LONGTAIL
    );
    let mut command = lab.program("script");
    command.args(["-q", "-c", &line, "/dev/null"]).env("TERM", "xterm").stdin(std::process::Stdio::piped());
    let mut terminal = Running::start(&mut command);
    // Blanks are not drawn on a screen that is blank.
    terminal.until(|said| said.contains("figures"));
    terminal.say("d");
    terminal.until(|said| said.contains("overflows"));
    terminal.say("q");
    let said = terminal.end().with_code(0);
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    assert!(said.stdout.contains("code 0"), "{}", said.stdout);
    assert!(said.stdout.find(enter) < said.stdout.find(leave) && said.stdout.contains(leave), "{}", said.stdout);
    let settings = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(settings("before"), settings("after"));
    assert!(settings("before").contains("icanon"));
    // What was seen stays on the first screen.
    assert!(said.stdout.split(leave).last().unwrap().contains("Watched for"), "{}", said.stdout);
}
