//! `longtail watch` on a terminal, and for a Puma whose threads are all busy. The rest is in
//! `scenarios/watch.txt`.

use std::io::Write as _;
use std::net::TcpStream;

use probe::http::NEVER;
use probe::puma_stats::{PumaStats, WorkerStats};
use probe::sockets::ServerSockets;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::clock::eventually;

use crate::lab::{Lab, PATIENCE, Running, free_port, has, sockets};
use crate::scenarios::values::{at, unlike};

/// A Puma of two workers with two threads each, in which a request takes until the end of the test.
struct BusyPuma<'a> {
    lab: &'a Lab,
    process: Running,
    port: u16,
    control: model::ControlServer,
}

impl BusyPuma<'_> {
    fn start(lab: &Lab) -> BusyPuma<'_> {
        let port = free_port();
        let control = free_port();
        let rackup = lab.write("app.ru", "run lambda { |_| sleep 3600; [200, {}, ['ok']] }\n");
        let mut command = lab.program("puma");
        command.args(["-q", "-w2", "-t2:2", "-b"]).arg(format!("tcp://127.0.0.1:{port}"));
        command.arg("-S").arg(lab.path("puma.state")).arg("--control-token=secret");
        command.arg(format!("--control-url=tcp://127.0.0.1:{control}")).arg(rackup);
        let process = Running::start(&mut command);
        let control = model::ControlServer {
            address: model::Endpoint::Tcp(([127, 0, 0, 1], control).into()),
            token: "secret".to_owned(),
        };
        let puma = BusyPuma { lab, process, port, control };
        eventually(
            PATIENCE,
            || format!("{:?}", puma.stats()),
            || puma.stats().filter(PumaStats::is_ready),
        );
        puma
    }

    fn stats(&self) -> Option<PumaStats> {
        probe::puma_stats::read_soon(&self.control, &NEVER).ok()
    }

    fn busy_threads(&self) -> Option<u32> {
        self.stats()?.workers.iter().map(WorkerStats::busy_threads).sum()
    }

    /// Requests in the workers' own queues.
    fn backlog(&self) -> Option<u32> {
        self.stats()?.workers.iter().map(|worker| worker.backlog).sum()
    }

    /// Occupies all four threads; eight more connections wait, one of them in Puma's own queue.
    /// Returns the load and the connection, which are to be kept.
    fn occupy(&self) -> (Running, TcpStream) {
        let port = self.port;
        // One connection is accepted before its request arrives, and the worker keeps it: it ends
        // up in Puma's own queue.
        let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
        self.wait_for_sockets(|sockets| sockets.accept_queue == 0);
        let load = self.lab.start(&format!(
            "load -c 11 --for 3600s --timeout 3600s --disable-keepalive --no-calibrate \
             http://127.0.0.1:{port}/"
        ));
        // The workers report every second.
        eventually(
            PATIENCE,
            || format!("{:?}", self.busy_threads()),
            || (self.busy_threads() == Some(4)).then_some(()),
        );
        early.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        self.wait_for_sockets(|sockets| sockets.open >= 12);
        (load, early)
    }

    fn wait_for_sockets(&self, is_so: impl Fn(&ServerSockets) -> bool) {
        eventually(
            PATIENCE,
            || format!("{:?}", sockets(self.port)),
            || is_so(&sockets(self.port)).then_some(()),
        );
    }

    /// The connections in the accept queue once eight wait in all. Puma 7.0 and later accept all of
    /// them: then `None`.
    fn waiting_in_kernel(&self) -> Option<u32> {
        if sockets(self.port).accept_queue == 0 {
            return None;
        }
        // The connection that was accepted early is not in the kernel's queue, and one of the
        // load's may not be either.
        let kernels_part = || {
            let own = self.backlog()?;
            let kernels = sockets(self.port).accept_queue;
            (own + kernels == 8).then_some(kernels)
        };
        let both = || format!("{:?} in Puma's queue, {:?}", self.backlog(), sockets(self.port));
        Some(eventually(PATIENCE, both, kernels_part))
    }
}

/// Puma 6 and older accept nothing while all threads are busy: the other connections wait in the
/// kernel.
#[test]
fn watch_shows_a_pumas_slots_and_workers() {
    if !has("puma") {
        return;
    }
    let lab = Lab::new();
    let puma = BusyPuma::start(&lab);
    let _busy = puma.occupy();
    let waits = puma.waiting_in_kernel();
    let port = puma.port;
    // Its state file is found in its working directory.
    let ended =
        lab.run(&format!("watch :{port} --for 4s --every 200ms --json --full")).with_code(0);
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut conditions = vec![
        "threads = 4",
        "count processes.* = 3",
        "answer.0 has All 4 threads are busy. ",
        "answer.0 has  wait",
        "figures.name=busy_threads&pid=null.last = 4",
        // The figures of the workers and of the processes add up to the whole, and the workers'
        // figures have an age.
        "sum figures.name=busy_threads.last = 8",
        "sum figures.name=cpu.mean ~ 2 * figures.name=cpu&pid=null.mean 1e-9",
        "sum figures.name=run_queue_wait.mean ~ 2 * figures.name=run_queue_wait&pid=null.mean 1e-9",
        "max workers.*.staleness_ns > 0",
    ];
    let in_kernel = waits.map(|waits| format!("figures.name=accept_queue.min = {waits}"));
    let at_most = waits.map(|waits| format!("figures.name=accept_queue.max = {waits}"));
    conditions.extend(in_kernel.iter().chain(&at_most).map(String::as_str));
    assert!(waits.is_none_or(|waits| waits < 8), "{waits:?}: the early connection waits in Puma");
    for condition in conditions {
        assert_eq!(unlike(&seen, condition), None, "{condition}: {seen}");
    }
    let pids = at(&seen, "processes.*.pid").into_iter().map(|pid| pid.as_u64().unwrap() as u32);
    let workers: Vec<u32> = pids.filter(|pid| *pid != puma.process.pid()).collect();
    assert_a_replaced_worker_is_watched(&lab, port, puma.process.pid(), &workers);
}

/// Kills one worker, so that the master starts another, and checks that a running watch shows the
/// new one instead.
fn assert_a_replaced_worker_is_watched(lab: &Lab, port: u16, master: u32, workers: &[u32]) {
    let mut watch = lab.start(&format!("watch :{port} --every 100ms --lines --full"));
    let lines = |printed: &str| printed.lines().count();
    watch.until(|printed| lines(printed) > 2);
    kill_process(Pid::from_raw(workers[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    let new = || {
        probe::processes::tree(master)
            .into_iter()
            .find(|pid| *pid != master && !workers.contains(pid))
    };
    let new = eventually(PATIENCE, || "no new worker".to_owned(), new);
    // After three more samples, the last one certainly began after that.
    let mut before = None;
    watch.until(|printed| lines(printed) > *before.get_or_insert(lines(printed)) + 3);
    watch.send(Signal::INT);
    let printed = watch.end().with_code(0).stdout;
    for (pid, is_there) in [(workers[0], false), (workers[1], true), (new, true)] {
        let has_figures = printed.lines().any(|line| line.starts_with(&format!("{pid}: ")));
        assert_eq!(has_figures, is_there, "{pid}: {printed}");
    }
}

/// A sink that listens, and its port.
fn sink(lab: &Lab) -> (Running, u16) {
    let port = free_port();
    let mut server = lab.start(&format!("sink --listen 127.0.0.1:{port}"));
    server.until(|printed| printed.contains("listening"));
    (server, port)
}

/// On a terminal, watch draws on the alternate screen, ends on `q` and restores the terminal.
#[test]
fn q_ends_a_watch_and_restores_the_terminal() {
    if !has("script") || !has("stty") {
        return;
    }
    let lab = Lab::new();
    let (_server, port) = sink(&lab);
    let mut terminal = on_a_screen(&lab, port, "");
    // Blanks are not drawn on an empty screen.
    terminal.until(|printed| printed.contains("figures"));
    terminal.say("d");
    terminal.until(|printed| printed.contains("overflows"));
    terminal.say("q");
    let ended = terminal.end().with_code(0);
    let enter = "\u{1b}[?1049h";
    let leave = "\u{1b}[?1049l";
    assert!(ended.stdout.contains("code 0"), "{}", ended.stdout);
    assert!(
        ended.stdout.find(enter) < ended.stdout.find(leave) && ended.stdout.contains(leave),
        "{}",
        ended.stdout
    );
    let settings = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(settings("before"), settings("after"));
    assert!(settings("before").contains("icanon"));
    // The summary stays on the normal screen.
    assert!(ended.stdout.split(leave).last().unwrap().contains("Watched for"), "{}", ended.stdout);
}

/// Starts a watch on a terminal that `script` makes, and records the terminal's settings before and
/// after.
fn on_a_screen(lab: &Lab, port: u16, flags: &str) -> Running {
    let line = format!(
        "stty rows 40 cols 140; stty -a > before; {} watch :{port} --every 100ms {flags}; echo code $?; stty -a > after",
        crate::lab::LONGTAIL
    );
    let mut command = lab.program("script");
    command
        .args(["-q", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::piped());
    Running::start(&mut command)
}

#[test]
fn ctrl_c_on_a_screen_cuts_short_a_watch_that_was_given_a_time() {
    if !has("script") || !has("stty") {
        return;
    }
    let lab = Lab::new();
    let (_server, port) = sink(&lab);
    let ctrl_c = "\x03";
    for (flags, key, code) in
        [("--for 60s", ctrl_c, "code 130"), ("--for 60s", "q", "code 0"), ("", ctrl_c, "code 0")]
    {
        let mut terminal = on_a_screen(&lab, port, flags);
        terminal.until(|printed| printed.contains("figures"));
        terminal.say(key);
        let printed = terminal.end().with_code(0).stdout;
        assert!(printed.contains(code), "{flags} {key:?}: {printed}");
    }
}
