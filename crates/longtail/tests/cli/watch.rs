//! `longtail watch` on a terminal, and of a Puma whose threads are all taken. The rest is in
//! `scenarios/watch.txt`.

use std::io::Write as _;
use std::net::TcpStream;

use probe::http::NEVER;
use probe::puma_stats::{PumaStats, WorkerStats};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::clock::eventually;

use crate::lab::{Lab, PATIENCE, Running, free_port, has, sockets};
use crate::scenarios::values::{at, unlike};

/// Puma up to 6 accepts nothing while its threads are taken: all slots are busy, and the rest waits
/// in the kernel.
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
    let stats = || probe::puma_stats::read_soon(&control_server, &NEVER);
    eventually(PATIENCE, || format!("{:?}", stats()), || stats().ok().filter(PumaStats::is_ready));
    // One is accepted before its request comes, and the worker keeps it: it waits in Puma's own
    // queue in the end.
    let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let waiting = || sockets(port);
    eventually(
        PATIENCE,
        || format!("{:?}", waiting()),
        || (waiting().accept_queue == 0).then_some(()),
    );
    let words = format!(
        "load -c 11 --for 3600s --timeout 3600s --disable-keepalive --no-calibrate http://127.0.0.1:{port}/"
    );
    let _load = lab.start(&words);
    // The workers report each second.
    let busy = || {
        stats()
            .ok()
            .and_then(|s| s.workers.iter().map(WorkerStats::busy_threads).sum::<Option<u32>>())
    };
    eventually(PATIENCE, || format!("{:?}", busy()), || (busy() == Some(4)).then_some(()));
    early.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    // A Puma from 7.0 on accepts them all.
    eventually(PATIENCE, || format!("{:?}", waiting()), || (waiting().open >= 12).then_some(()));
    let old = waiting().accept_queue > 0;
    // What was accepted early is not in the kernel's queue, and one of the load's may have been
    // too.
    let in_pumas = || {
        stats()
            .ok()
            .and_then(|s| s.workers.iter().map(|worker| worker.backlog).sum::<Option<u32>>())
    };
    let in_kernels = || {
        let (own, kernels) = (in_pumas(), waiting().accept_queue);
        (own.map(|own| own + kernels) == Some(8)).then_some(kernels)
    };
    let both = || format!("{:?} in Puma's, {:?}", in_pumas(), waiting());
    let waits = old.then(|| eventually(PATIENCE, both, in_kernels));
    // Its state file is found where it runs.
    let ended = lab.run(&format!("watch {port} --for 4s --every 200ms --json --full")).with_code(0);
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut conditions = vec![
        "threads = 4",
        "count processes.* = 3",
        "answer.0 has All 4 threads are busy. ",
        "answer.0 has  wait",
        "figures.name=busy_threads&pid=null.last = 4",
        // The parts of the workers and of the processes are the whole, and the workers' figures
        // have an age.
        "sum figures.name=busy_threads.last = 8",
        "sum figures.name=cpu.mean ~ 2 * figures.name=cpu&pid=null.mean 1e-9",
        "sum figures.name=run_queue_wait.mean ~ 2 * figures.name=run_queue_wait&pid=null.mean 1e-9",
        "max workers.*.staleness_ns > 0",
    ];
    let in_kernel = waits.map(|waits| format!("figures.name=accept_queue.min = {waits}"));
    let at_most = waits.map(|waits| format!("figures.name=accept_queue.max = {waits}"));
    conditions.extend(in_kernel.iter().chain(&at_most).map(String::as_str));
    assert!(waits.is_none_or(|waits| waits < 8), "{waits:?}: the early one waits in Puma");
    for condition in conditions {
        assert_eq!(unlike(&seen, condition), None, "{condition}: {seen}");
    }
    let pids = at(&seen, "processes.*.pid").into_iter().map(|pid| pid.as_u64().unwrap() as u32);
    let known: Vec<u32> = pids.filter(|pid| *pid != puma.pid()).collect();

    // One worker is killed, and the master starts another.
    let mut watch = lab.start(&format!("watch :{port} --every 100ms --lines --full"));
    let lines = |said: &str| said.lines().count();
    watch.until(|said| lines(said) > 2);
    kill_process(Pid::from_raw(known[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    let new = || {
        probe::processes::tree(puma.pid())
            .into_iter()
            .find(|pid| *pid != puma.pid() && !known.contains(pid))
    };
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
    let mut server = lab.start(&format!("sink --listen 127.0.0.1:{port}"));
    server.until(|said| said.contains("listening"));
    // Before and after it, the settings of the terminal that `script` made.
    let line = format!(
        "stty rows 40 cols 140; stty -a > before; {} watch :{port} --every 100ms; echo code $?; stty -a > after",
        crate::lab::LONGTAIL
    );
    let mut command = lab.program("script");
    command
        .args(["-q", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::piped());
    let mut terminal = Running::start(&mut command);
    // Blanks are not drawn on a screen that is blank.
    terminal.until(|said| said.contains("figures"));
    terminal.say("d");
    terminal.until(|said| said.contains("overflows"));
    terminal.say("q");
    let said = terminal.end().with_code(0);
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    assert!(said.stdout.contains("code 0"), "{}", said.stdout);
    assert!(
        said.stdout.find(enter) < said.stdout.find(leave) && said.stdout.contains(leave),
        "{}",
        said.stdout
    );
    let settings = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(settings("before"), settings("after"));
    assert!(settings("before").contains("icanon"));
    // What was seen stays on the first screen.
    assert!(said.stdout.split(leave).last().unwrap().contains("Watched for"), "{}", said.stdout);
}
