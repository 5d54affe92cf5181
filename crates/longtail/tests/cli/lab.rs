//! One test's folder, and all that runs in it. Longtail is started there, and its server inherits
//! the folder, so processes that are left behind are found by their working directory.

use std::fs;
use std::io::{self, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{self, JoinHandle};

use launch::Scratch;
use model::{Clock as _, Nanos, Run, ServerFacts, Study, SweepStudy};
use probe::sockets::{ServerListener, ServerSockets};
use rustix::process::{Pid, Signal, kill_process};

use testkit::clock::{REAL_CLOCK, eventually};

use crate::scenarios::laws::is_of_the_machine;

/// Longer than anything here takes on a busy machine; only a failing test waits this long.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(600);

/// The networks that tests may connect to: nothing leaves this machine, whatever a test types.
pub(crate) const THIS_MACHINE: &str = "127.0.0.0/8,::1/128";

/// The commands whose default output is the short answer. Tests read the full report:
/// [`full_report`] asks for it unless the arguments choose another output; [`Lab::answer`] doesn't.
const FULL_REPORT: [&str; 4] = ["sweep", "bodies", "load", "report"];

/// Flags that choose another output than the full report.
const OTHER_OUTPUTS: [&str; 8] =
    ["--full", "--format", "--columns", "--style", "--json", "--csv", "--markdown", "--html"];

/// Environment variables with which apps find their statsd.
const STATSD: [&str; 3] = ["STATSD_HOST", "STATSD_PORT", "STATSD_ADDR"];

static LABS: AtomicU32 = AtomicU32::new(0);

/// A folder with the data folder and the temporary files of one test.
pub(crate) struct Lab {
    folder: PathBuf,
    _owner: Scratch,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let owner = Scratch::new(&std::env::temp_dir()).unwrap();
        let folder = owner.path().canonicalize().unwrap();
        fs::create_dir(folder.join("tmp")).unwrap();
        // Puma's workers report every second here, not every 5 s: a sweep waits for their reports
        // before and after each run.
        fs::create_dir(folder.join("config")).unwrap();
        let config = "worker_check_interval 1 if respond_to?(:worker_check_interval)\n";
        fs::write(folder.join("config/puma.rb"), config).unwrap();
        LABS.fetch_add(1, Ordering::Relaxed);
        Lab { folder, _owner: owner }
    }

    /// How many labs there are at the moment.
    pub(crate) fn how_many() -> u32 {
        LABS.load(Ordering::Relaxed)
    }

    /// Waits until no other test has a lab, for five minutes at most, for tests that need a quiet
    /// machine. `bin/run-tests`, which runs other tests at the same time, creates a file when those
    /// are over.
    pub(crate) fn wait_for_the_others() {
        let until = REAL_CLOCK.now() + Nanos::from_secs(300);
        let over = std::env::var_os("LONGTAIL_TEST_QUIET").map(PathBuf::from);
        let is_quiet = || Lab::how_many() == 0 && over.as_ref().is_none_or(|file| file.exists());
        while !is_quiet() && REAL_CLOCK.now() < until {
            REAL_CLOCK.sleep(Nanos::from_millis(20));
        }
    }

    /// A lab for a test of this program; `None`, with a message, if it isn't on PATH.
    pub(crate) fn with(program: &str) -> Option<Lab> {
        has(program).then(Lab::new)
    }

    /// The same, with a port for the server.
    pub(crate) fn with_port(program: &str) -> Option<(Lab, u16)> {
        has(program).then(|| (Lab::new(), free_port()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes an executable script and its folder. Another process writes it, so that no child of
    /// ours can have it open for writing when it is started ("text file busy").
    pub(crate) fn executable(&self, name: &str, script: &str) -> PathBuf {
        let source = self.write("script", script);
        let path = self.path(name);
        end(self.program("install").args(["-D", "-m755"]).args([&source, &path])).with_code(0);
        path
    }

    /// A program that runs in the folder, with its data and temporary files there.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", self.path("data")).env("TMPDIR", self.path("tmp"));
        command.env("LONGTAIL_ALLOW_NET", THIS_MACHINE);
        let outer = [
            "PUMA_TEST_HOST4",
            "PUMA_TEST_HOST6",
            "PUMA_TEST_PORT",
            "PUMA_TEST_CTRL",
            "WEB_CONCURRENCY",
        ];
        for name in outer
            .into_iter()
            .chain(["PUMA_MAX_THREADS", "BUNDLE_GEMFILE", "COLUMNS", "RAILS_ENV", "RACK_ENV"])
            .chain(STATSD)
        {
            command.env_remove(name);
        }
        command
    }

    /// Longtail with these arguments, quoted as for a shell; it prints the full report.
    pub(crate) fn longtail(&self, words: &str) -> Command {
        let mut command = self.program(LONGTAIL);
        command.args(full_report(words));
        command
    }

    /// Starts longtail with these arguments.
    pub(crate) fn start(&self, words: &str) -> Running {
        Running::start(&mut self.longtail(words))
    }

    /// The same, with this port for the Puma that it starts.
    pub(crate) fn start_at(&self, port: u16, words: &str) -> Running {
        Running::start(self.longtail(words).env("PUMA_TEST_PORT", port.to_string()))
    }

    /// Runs longtail with these arguments to its end.
    pub(crate) fn run(&self, words: &str) -> Ended {
        end(&mut self.longtail(words))
    }

    /// The same with exactly these arguments: it prints its default output.
    pub(crate) fn answer(&self, words: &str) -> Ended {
        end(self.program(LONGTAIL).args(split(words)))
    }

    /// The files in the data folder.
    pub(crate) fn studies(&self) -> Vec<PathBuf> {
        let files =
            fs::read_dir(self.path("data/longtail/studies")).into_iter().flatten().flatten();
        files.map(|entry| entry.path()).collect()
    }

    /// Finished runs of the studies in the data folder.
    pub(crate) fn kept_runs(&self) -> usize {
        let count = |path: &PathBuf| {
            let study: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
            study["runs"].as_array().map(Vec::len)
        };
        self.studies().iter().filter_map(count).sum()
    }

    /// The one study in the data folder.
    pub(crate) fn kept(&self) -> Study {
        let studies = self.studies();
        assert_eq!(studies.len(), 1, "{studies:?}");
        read(&studies[0])
    }

    /// The one study in the data folder, which is a sweep.
    pub(crate) fn study(&self) -> SweepStudy {
        of_sweep(self.kept())
    }

    /// The processes that run in the folder. A dead one that is not yet reaped has no working
    /// directory.
    pub(crate) fn living(&self) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids =
            entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        let is_here = |pid: &Pid| {
            fs::read_link(format!("/proc/{}/cwd", pid.as_raw_pid()))
                .is_ok_and(|cwd| cwd.starts_with(&self.folder))
        };
        pids.filter(is_here).collect()
    }

    /// Checks that no process in the folder, no temporary file and no listener on `port` is left:
    /// at once, or soon if the guard still has to kill the server.
    pub(crate) fn assert_nothing_left(&self, port: u16) {
        let left = || {
            let files: Vec<_> = fs::read_dir(self.path("tmp"))
                .unwrap()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            (self.living(), files, sockets(port).listening)
        };
        let nothing = (Vec::new(), Vec::new(), false);
        eventually(PATIENCE, || format!("{:?}", left()), || (left() == nothing).then_some(()));
    }
}

impl Running {
    /// Starts a Puma independently of longtail, and waits until it listens.
    pub(crate) fn puma(lab: &Lab, port: u16, app: &Path, words: &str) -> Running {
        let mut puma = lab.program("puma");
        let bind = format!("tcp://127.0.0.1:{port}");
        let puma = Running::start(puma.args(split(words)).args(["-q", "-b", &bind]).arg(app));
        let connects = || TcpStream::connect(("127.0.0.1", port)).ok();
        eventually(PATIENCE, || puma.output_so_far(), connects);
        puma
    }

    /// All that it has printed so far.
    pub(crate) fn output_so_far(&self) -> String {
        self.stdout.so_far() + &self.stderr.so_far()
    }
}

/// The major version of a study's Puma; 0 if unknown.
pub(crate) fn major(server: &ServerFacts) -> u32 {
    server.version.as_ref().and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(0)
}

/// The arguments of a command line that is quoted as for a shell.
pub(crate) fn split(words: &str) -> Vec<String> {
    shlex::split(words).expect("quotes are balanced")
}

/// Environment variables and arguments of a command line such as `A=b load -c 2`.
pub(crate) fn settings_and_words(line: &str) -> (Vec<(String, String)>, Vec<String>) {
    let is_name =
        |name: &str| name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    let setting = |word: &String| {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name))?;
        Some((name.to_owned(), value.to_owned()))
    };
    let words = split(line);
    let settings: Vec<_> = words.iter().map_while(setting).collect();
    let words = words[settings.len()..].to_vec();
    (settings, words)
}

/// These arguments, with the flag for the full report unless they choose another output.
pub(crate) fn full_report(words: &str) -> Vec<String> {
    let mut words = split(words);
    let is_short = words.first().is_some_and(|command| FULL_REPORT.contains(&command.as_str()));
    let chooses = |word: &String| OTHER_OUTPUTS.iter().any(|other| word.starts_with(other));
    if is_short && !words.iter().any(chooses) {
        words.insert(1, "--full".to_owned());
    }
    words
}

/// Runs it to its end, with its output in pipes.
pub(crate) fn end(command: &mut Command) -> Ended {
    Running::start(command).end()
}

impl Drop for Lab {
    fn drop(&mut self) {
        LABS.fetch_sub(1, Ordering::Relaxed);
        // Only a failing test leaves processes.
        for pid in self.living() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

pub(crate) const LONGTAIL: &str = env!("CARGO_BIN_EXE_longtail");

/// A running process and its output so far.
pub(crate) struct Running {
    /// Its command line, for messages of failing tests.
    command: String,
    child: Child,
    stdout: Said,
    stderr: Said,
}

struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Said {
    fn of(stream: Option<impl Read + Send + 'static>) -> Said {
        let text = Arc::new(Mutex::new(Vec::new()));
        let reader = stream.map(|mut stream| {
            let text = Arc::clone(&text);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut bytes) {
                    text.lock().unwrap().extend_from_slice(&bytes[..n]);
                }
            })
        });
        Said { text, reader }
    }

    fn so_far(&self) -> String {
        // The last character may be incomplete.
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }
}

impl Running {
    /// Starts it with its output in pipes.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running::start_as_is(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts it with its output where the command says.
    pub(crate) fn start_as_is(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let stdout = Said::of(child.stdout.take());
        let stderr = Said::of(child.stderr.take());
        Running { command: format!("{command:?}"), child, stdout, stderr }
    }

    /// Sends it a signal. After a stop signal, waits until all its threads have stopped.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let states = || -> Vec<String> {
            let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
            let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
            stats.filter_map(|stat| Some(stat.rsplit_once(") ")?.1[..1].to_owned())).collect()
        };
        let is_stopped = || states().iter().all(|state| state == "T").then_some(());
        if signal == Signal::STOP {
            eventually(PATIENCE, || format!("{:?}", states()), is_stopped);
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes to its stdin, which must be a pipe.
    pub(crate) fn say(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until `look` accepts the output so far; fails if the process ends before.
    pub(crate) fn until(&mut self, mut look: impl FnMut(&str) -> bool) {
        self.until_printed(|stdout, _| look(stdout));
    }

    /// The same, of what it printed on stdout and on stderr.
    pub(crate) fn until_printed(&mut self, mut look: impl FnMut(&str, &str) -> bool) {
        let command = &self.command;
        let child = &mut self.child;
        let stdout = &self.stdout;
        let stderr = &self.stderr;
        let look = || {
            let ended = child.try_wait().unwrap().is_some();
            let done = look(&stdout.so_far(), &stderr.so_far());
            assert!(done || !ended, "ended too early: {command}: {}", stderr.so_far());
            done.then_some(())
        };
        eventually(PATIENCE, || format!("{command}: {}{}", stdout.so_far(), stderr.so_far()), look);
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let command = &self.command;
        let child = &mut self.child;
        let stdout = &self.stdout;
        let stderr = &self.stderr;
        let seen = || format!("{command} has not ended: {}{}", stdout.so_far(), stderr.so_far());
        let status = eventually(PATIENCE, seen, || child.try_wait().unwrap());
        Ended { status, stdout: self.stdout.whole(), stderr: self.stderr.whole() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The exit code it ended with.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The line that names a user's mistake. It must contain `part`, the exit code must be 2, and
    /// nothing else may have been printed.
    #[track_caller]
    pub(crate) fn refused(self, part: &str) -> String {
        assert!(self.is_refusal(part), "it does not name '{part}', or not with 2: {self:?}");
        self.stderr
    }

    /// Whether it is what `refused` asks for: one line, but that lines to paste stand alone, with
    /// what is said of them.
    pub(crate) fn is_refusal(&self, part: &str) -> bool {
        let stderr = &self.stderr;
        // `printf … | longtail load …` writes the requests of a short run.
        let is_piped =
            |line: &str| line.starts_with("printf ") && line.contains(" | longtail load ");
        let has_line_to_paste =
            stderr.lines().any(|line| line.starts_with("longtail ") || is_piped(line));
        let said: Vec<&str> = stderr.split_whitespace().collect();
        let part: Vec<&str> = part.split_whitespace().collect();
        self.status.code() == Some(2)
            && (stderr.lines().count() == 1 || has_line_to_paste)
            && self.stdout.is_empty()
            && said.join(" ").contains(&part.join(" "))
    }

    /// Its lines on stderr, without those that say which run begins.
    pub(crate) fn remarks(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| !line.starts_with("longtail: run ")).collect()
    }

    /// Its output; `None` if a busy machine spoiled every run of the study that it kept in this
    /// lab.
    pub(crate) fn measured(self, lab: &Lab) -> Option<Ended> {
        let is_excused = self.code() == 3 && is_of_the_machine(&lab.kept());
        (!is_excused).then(|| self.with_code(0))
    }

    /// Its output; it must have ended with this exit code.
    pub(crate) fn with_code(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }
}

/// Reads the file of a study.
pub(crate) fn read(path: &Path) -> Study {
    report::json::read(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn of_sweep(study: Study) -> SweepStudy {
    let Study::Sweep(study) = study else { panic!("not a sweep") };
    *study
}

/// A port that no other test uses, outside the kernel's range of ephemeral ports. Each run of the
/// tests has two thousand ports of its own (`make soak` uses more than one): it occupies the first
/// one as long as it lives, so that another run at the same time uses others.
pub(crate) fn free_port() -> u16 {
    const OWN: u16 = 2000;
    static KEPT: LazyLock<TcpListener> = LazyLock::new(|| {
        let mut firsts = (0..6)
            .map(|n| 20_000 + n * OWN)
            .filter_map(|first| TcpListener::bind(("127.0.0.1", first)).ok());
        firsts.next().expect("at most 6 runs of the tests at once")
    });
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let first = KEPT.local_addr().unwrap().port();
    let own =
        std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed)).take_while(|n| *n < OWN);
    let mut free =
        own.map(|n| first + n).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("the tests use fewer ports than that")
}

/// The sockets of a port of this machine.
pub(crate) fn sockets(port: u16) -> ServerSockets {
    ServerListener::of_port(port).sample().unwrap()
}

/// The head and the body of a local server's response; `None` if there is none.
pub(crate) fn get(port: u16, target: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .write_all(format!("GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned()))
}

/// The body of a local server's response with status 200.
pub(crate) fn get_body(port: u16, target: &str) -> Option<String> {
    get(port, target)
        .filter(|(head, _)| head.split(' ').nth(1) == Some("200"))
        .map(|(_, body)| body)
}

/// Checks each of these, so many at a time. If checks fail, each says why, and this fails when all
/// others are done.
pub(crate) fn check_each<T: Sync>(at_once: usize, all: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = catch_unwind(AssertUnwindSafe(|| check(one)));
                    failed.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "failed of {}; each says why above", all.len());
}

/// Whether a test can run. If not, prints and counts the skip, past the test harness that would
/// hide it.
pub(crate) fn can(is_possible: bool, reason: &str) -> bool {
    static SKIPPED: AtomicU32 = AtomicU32::new(0);
    if !is_possible {
        let skipped = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
        let test = thread::current().name().unwrap_or("?").to_owned();
        let _ = writeln!(io::stderr(), "SKIPPED {test}: {reason} ({skipped} skipped so far)");
    }
    is_possible
}

/// Whether a program is on PATH; if not, the test is skipped.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    can(found, &format!("{program} is not on PATH"))
}

/// Tries longer and longer windows until each run has requests: on a busy machine not a single one
/// may become due in a short window of a closed loop. `attempt` gets the flags of the window and
/// returns `None` if a run was empty, or none has figures ([`Ended::measured`]). Its assertions
/// must hold for empty runs, too.
pub(crate) fn in_a_window<T>(attempt: impl FnMut(&str) -> Option<T>) -> T {
    let windows = ["--for 150ms --warm-up 50ms", "--for 3s --warm-up 1s", "--for 15s --warm-up 1s"];
    windows.into_iter().find_map(attempt).expect("each run of 15 s has requests")
}

/// Whether `make soak` runs the tests: then they try more than in `make test`.
pub(crate) fn soaks() -> bool {
    std::env::var_os("LONGTAIL_SOAK").is_some()
}

/// Whether each run of a study has requests.
pub(crate) fn none_is_empty<'r>(runs: impl IntoIterator<Item = &'r Run>) -> bool {
    runs.into_iter().all(|run| run.tally.all_requests() > 0)
}
