//! What `longtail load --during EVENT` says of a real Puma is what happened. Two witnesses that
//! longtail has no part in: the app writes down when each request begins and ends, and in which
//! process; and Puma's log names its processes.
//!
//! The Puma on PATH is tested always, those whose checkouts `LONGTAIL_PUMAS` names as well.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Command;

use judge::event::{ServerChange, server_change};
use model::{EventRecord, LoadStudy, ProcessRole, SeenProcess, Study};
use rustix::process::Signal;
use testkit::clock::eventually;

use crate::lab::{Ended, Lab, PATIENCE, Running, can, free_port, get_body, has, soaks, split};
use crate::scenarios::laws::assert_sound;

/// Writes `begin PID` and `end PID` for each request to `/`, at once and whole: the file is opened
/// for appending, and nothing is buffered. What was written stays, however the process ends.
const APP: &str = "
sleep {boot}
ledger = File.open(File.join(__dir__, 'ledger.txt'), 'a')
run lambda { |env|
  if env['PATH_INFO'] == '/'
    ledger.syswrite(\"begin #{Process.pid}\\n\")
    sleep {service}
    ledger.syswrite(\"end #{Process.pid}\\n\")
  end
  [200, { 'content-type' => 'text/plain' }, ['ok']]
}
";

/// A Puma, and how it is started.
#[derive(Clone, Debug)]
struct PumaUnderTest {
    program: String,
    words: Vec<String>,
    /// Where Ruby finds a checkout: a Puma that is restarted forgets the options of ruby, but not
    /// its environment.
    library: Option<String>,
}

fn pumas() -> Vec<PumaUnderTest> {
    let mut all = Vec::new();
    if has("puma") {
        all.push(PumaUnderTest { program: "puma".to_owned(), words: Vec::new(), library: None });
    }
    all.extend(checkouts().iter().map(|folder| PumaUnderTest {
        program: "ruby".to_owned(),
        words: vec![format!("{folder}/bin/puma")],
        library: Some(format!("{folder}/lib")),
    }));
    all
}

fn checkouts() -> Vec<String> {
    let named = std::env::var("LONGTAIL_PUMAS").unwrap_or_default();
    named.split_ascii_whitespace().map(str::to_owned).collect()
}

/// What a Puma is told.
struct DeploySettings {
    /// Lines of its config file.
    config: &'static str,
    /// How long each process boots, and a request takes, in seconds.
    boot: f64,
    service: f64,
}

/// A Puma that runs, and the folder with its log and its app's account.
struct ServedApp {
    lab: Lab,
    port: u16,
    puma: Running,
}

impl ServedApp {
    fn start(puma: &PumaUnderTest, settings: &DeploySettings) -> ServedApp {
        let lab = Lab::new();
        let app = APP
            .replace("{boot}", &settings.boot.to_string())
            .replace("{service}", &settings.service.to_string());
        lab.write("app.ru", &app);
        lab.write("puma.rb", &format!("worker_check_interval 1\n{}", settings.config));
        let mut command = lab.program(&puma.program);
        command.args(&puma.words);
        if let Some(library) = &puma.library {
            command.env("RUBYLIB", library);
        }
        ServedApp::run(lab, command)
    }

    fn run(lab: Lab, mut command: Command) -> ServedApp {
        let port = free_port();
        let bind = format!("tcp://127.0.0.1:{port}");
        let log = File::create(lab.path("puma.log")).unwrap();
        command.args(["-C", "puma.rb", "-b", &bind, "app.ru"]);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let puma = Running::start_as_is(&mut command);
        let served = ServedApp { lab, port, puma };
        let is_ready = || {
            let booted = served.log().matches(" booted").count();
            (booted >= 2 && get_body(port, "/ready").is_some()).then_some(())
        };
        eventually(PATIENCE, || served.log(), is_ready);
        served
    }

    /// What Puma has written so far.
    fn log(&self) -> String {
        fs::read_to_string(self.lab.path("puma.log")).unwrap()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Loads it with an event, checks all accounts against each other, and stops it.
    fn load(self, words: &str) -> LoadedApp {
        let words = format!("load --no-calibrate --warm-up 0s {words} {}", self.url());
        let answer = self.lab.answer(&words);
        let log = self.log();
        let requests = AppAccount::read(&self.lab);
        self.puma.send(Signal::TERM);
        self.puma.end();
        self.lab.assert_nothing_left(self.port);
        let study = self.lab.kept();
        assert_sound(&study);
        let Study::Load(study) = study else { panic!("not a load") };
        let loaded = LoadedApp { answer, study: *study, log, requests };
        loaded.assert_accounts_agree();
        loaded
    }
}

/// What the app wrote down.
#[derive(Debug, Default)]
struct AppAccount {
    begun: u64,
    ended: u64,
    /// Requests that began and did not end, by process.
    held: BTreeMap<u32, u64>,
}

impl AppAccount {
    fn read(lab: &Lab) -> AppAccount {
        let mut account = AppAccount::default();
        for line in fs::read_to_string(lab.path("ledger.txt")).unwrap_or_default().lines() {
            let (what, pid) = line.split_once(' ').expect("begin PID, or end PID");
            let held = account.held.entry(pid.parse().unwrap()).or_default();
            if what == "begin" {
                account.begun += 1;
                *held += 1;
            } else {
                account.ended += 1;
                *held -= 1;
            }
        }
        account.held.retain(|_, held| *held > 0);
        account
    }

    fn all_held(&self) -> u64 {
        self.held.values().sum()
    }
}

/// A load that is over, and both witnesses.
struct LoadedApp {
    answer: Ended,
    study: LoadStudy,
    log: String,
    requests: AppAccount,
}

impl LoadedApp {
    fn event(&self) -> &EventRecord {
        self.study.run.event.as_deref().expect("an event")
    }

    fn failed(&self) -> u64 {
        self.study.run.tally.counts.failed()
    }

    fn change(&self) -> ServerChange {
        server_change(self.event())
    }

    fn assert_says(&self, part: &str) {
        let said = self.answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(part), "no '{part}' in {}\n{}", self.answer.stdout, self.log);
    }

    fn assert_logged(&self, part: &str) {
        assert!(self.log.contains(part), "no '{part}' in {}", self.log);
        assert!(self.event().log.iter().any(|line| line.contains(part)), "{:?}", self.event().log);
    }

    /// Workers that were there before the event and ended after it.
    fn ended_workers(&self) -> Vec<&SeenProcess> {
        let at = self.event().at.unwrap();
        let is_it = |process: &&SeenProcess| {
            process.role == ProcessRole::Worker
                && process.is_older_than(at)
                && process.ended.is_some()
        };
        self.event().processes.iter().filter(is_it).collect()
    }

    /// Workers that were started since.
    fn new_workers(&self) -> Vec<&SeenProcess> {
        let at = self.event().at.unwrap();
        let is_it = |process: &&SeenProcess| {
            process.role == ProcessRole::Worker && !process.is_older_than(at)
        };
        self.event().processes.iter().filter(is_it).collect()
    }

    /// What holds however busy the machine is.
    fn assert_accounts_agree(&self) {
        let counts = &self.study.run.tally.counts;
        let requests = &self.requests;
        assert!(counts.good() <= requests.ended && requests.ended <= requests.begun);
        assert!(requests.begun <= counts.total(), "{requests:?} {counts:?}");
        // Requests that were lost between the kernel and the app are in neither.
        assert!(requests.all_held() <= self.failed(), "{requests:?} {counts:?}");
        let ended: Vec<u32> = self.ended_workers().iter().map(|worker| worker.pid).collect();
        assert!(requests.held.keys().all(|pid| ended.contains(pid)), "{requests:?} {ended:?}");
        let seen = self.event().requests.as_ref().expect("it happened");
        let parts = [&seen.before, &seen.during, &seen.after];
        assert_eq!(parts.iter().map(|part| part.requests).sum::<u64>(), counts.total());
        assert_eq!(parts.iter().map(|part| part.failed).sum::<u64>(), self.failed());
        assert_eq!((seen.missing, seen.before.failed), (0, 0));
        let failures = parts.iter().flat_map(|part| &part.failures);
        assert_eq!(failures.map(|kind| kind.requests).sum::<u64>(), self.failed());
    }

    /// Whether each request that failed was inside the app, and each other one ended there.
    fn is_exact(&self) -> bool {
        let counts = &self.study.run.tally.counts;
        let requests = &self.requests;
        requests.all_held() == self.failed() && requests.ended == counts.good()
    }
}

/// Loads for longer and longer until `is_it` accepts what was seen: on a busy machine a Puma may
/// take longer than the run, and a request may be lost between the kernel and the app.
fn in_some_window(
    windows: &[u32],
    load: impl Fn(u32) -> LoadedApp,
    is_it: impl Fn(&LoadedApp) -> bool,
) -> LoadedApp {
    let mut last = None;
    for &window in windows {
        let loaded = load(window);
        if is_it(&loaded) {
            return loaded;
        }
        last = Some(loaded);
    }
    let last = last.expect("a window");
    panic!("{:?}\n{:?}\n{}\n{}", last.event(), last.requests, last.answer.stdout, last.log);
}

#[test]
fn a_killed_worker_loses_exactly_the_requests_that_it_held() {
    let settings = DeploySettings {
        config: "workers 2\nthreads 6, 6\npreload_app! false\n",
        boot: 0.0,
        service: 0.3,
    };
    for puma in pumas() {
        // Ten requests each half second take 0.3 s: when the worker is killed, none begins or ends.
        // Neither worker has threads for more than six of them, so both hold some.
        let load = |window| {
            let words =
                format!("-k --rate 20/s --burst 10 --for {window}s --during worker-kill@2.15s");
            ServedApp::start(&puma, &settings).load(&words)
        };
        let replaced = ServerChange::WorkersReplaced { workers: 1, of: 2 };
        let loaded = in_some_window(&[6, 6, 6, 6, 30], load, |loaded| {
            loaded.change() == replaced && loaded.is_exact() && loaded.failed() > 0
        });
        loaded.assert_says("The loss of a worker (SIGKILL) took");
        loaded.assert_says("1 of 2 workers was replaced");
        loaded.assert_says(&format!("{} of the ", loaded.failed()));
        loaded.assert_says("closed early (at 2.");
        let [lost] = loaded.ended_workers()[..] else { panic!("{:?}", loaded.event()) };
        assert_eq!(loaded.event().done, format!("SIGKILL to worker {}", lost.pid));
        assert_eq!(loaded.requests.held.get(&lost.pid), Some(&loaded.failed()));
        let [new] = loaded.new_workers()[..] else { panic!("{:?}", loaded.event()) };
        loaded.assert_logged(&format!("(PID: {}) booted", new.pid));
    }
}

#[test]
fn a_phased_restart_without_keep_alive_loses_nothing() {
    let settings = DeploySettings {
        config: "workers 2\nthreads 5, 5\npreload_app! false\n",
        boot: 0.0,
        service: 0.02,
    };
    for puma in pumas() {
        let load = |window| {
            let words = format!("-k --rate 40/s --for {window}s --during phased-restart@1s");
            ServedApp::start(&puma, &settings).load(&words)
        };
        let replaced = ServerChange::AllWorkersReplaced { workers: 2, one_by_one: true };
        let loaded = in_some_window(&[7, 20, 60], load, |loaded| {
            assert!(loaded.failed() == 0 && loaded.is_exact(), "{:?}", loaded.requests);
            loaded.change() == replaced
        });
        loaded.assert_says("The phased restart took");
        loaded.assert_says("all 2 workers were replaced, one after the other");
        loaded.assert_says("No request failed");
        loaded.assert_logged("phased worker restart");
        for worker in loaded.ended_workers() {
            loaded.assert_logged(&format!("Stopping {} for phased upgrade", worker.pid));
        }
        for worker in loaded.new_workers() {
            loaded.assert_logged(&format!("(PID: {}) booted", worker.pid));
        }
    }
}

/// Puma kills a worker that has not ended within `worker_shutdown_timeout`.
#[test]
fn a_phased_restart_that_does_not_wait_loses_what_the_old_workers_held() {
    let boot = if soaks() { 5.0 } else { 1.0 };
    let settings = DeploySettings {
        config: "workers 2\nthreads 16, 16\npreload_app! false\nworker_shutdown_timeout 1\n",
        boot,
        service: 2.2,
    };
    for puma in pumas() {
        let load = |window| {
            let words = format!(
                "-k --rate 5/s --for {window}s --during phased-restart@2.3s --expect 'failed = 0'"
            );
            ServedApp::start(&puma, &settings).load(&words)
        };
        let windows = if soaks() { [24, 40, 80] } else { [11, 30, 60] };
        let loaded = in_some_window(&windows, load, |loaded| {
            // On a busy machine one worker may have accepted all that were in flight.
            let both_lost_some = loaded.requests.held.len() == 2;
            matches!(loaded.change(), ServerChange::AllWorkersReplaced { workers: 2, .. })
                && loaded.is_exact()
                && both_lost_some
        });
        assert!(loaded.failed() > 0, "{}", loaded.log);
        assert_eq!(loaded.answer.code(), 1, "{:?}", loaded.answer);
        loaded.assert_says("all 2 workers were replaced");
        loaded.assert_says(&format!("{} of the ", loaded.failed()));
        loaded.assert_logged("phased worker restart");
        for worker in loaded.new_workers() {
            let took = worker.serving.unwrap() - worker.started.unwrap();
            assert!(took.as_secs_f64() > boot - 0.1, "a worker boots for {boot} s: {took}");
        }
    }
}

#[test]
fn a_full_restart_without_keep_alive_loses_nothing_and_nobody_serves_for_a_while() {
    let settings = DeploySettings { config: "workers 2\nthreads 5, 5\n", boot: 0.5, service: 0.02 };
    for puma in pumas() {
        let load = |window| {
            let words = format!("-k --rate 40/s --for {window}s --during restart@1s");
            ServedApp::start(&puma, &settings).load(&words)
        };
        let loaded = in_some_window(&[7, 20, 60], load, |loaded| {
            assert!(loaded.failed() == 0 && loaded.is_exact(), "{:?}", loaded.requests);
            loaded.new_workers().iter().filter(|worker| worker.serving.is_some()).count() == 2
        });
        assert_eq!(loaded.change(), ServerChange::RestartedInFull);
        loaded.assert_says("The restart took");
        loaded.assert_says("the server restarted in full, and for");
        loaded.assert_says("none served");
        loaded.assert_says("No request failed");
        loaded.assert_logged("Restarting...");
        let unserved = loaded.event().unserved(loaded.study.run.measured);
        let gap = loaded.event().requests.as_ref().unwrap().during.longest_gap.length;
        assert!(unserved.as_secs_f64() > 0.4, "it boots for half a second: {unserved}");
        assert!(gap.as_secs_f64() > 0.4, "no response came meanwhile: {gap}");
    }
}

/// A checkout that is started by `ruby -I` is found by that option alone.
#[test]
fn a_puma_that_comes_back_as_another_version_is_named() {
    let Some(folder) = checkouts().pop() else {
        can(false, "LONGTAIL_PUMAS names no checkout of Puma");
        return;
    };
    let lab = Lab::new();
    lab.write("app.ru", &APP.replace("{boot}", "0").replace("{service}", "0"));
    lab.write("puma.rb", "workers 2\nthreads 5, 5\n");
    let mut command = lab.program("ruby");
    command.args(split(&format!("-I {folder}/lib {folder}/bin/puma")));
    let loaded = ServedApp::run(lab, command).load("-k --rate 20/s --for 10s --during restart@1s");
    let [before, after] = loaded.event().versions.clone().expect("both are Pumas");
    if can(before != after, "the checkout has the version of the gem") {
        loaded.assert_says(&format!(
            "It was Puma {before} and is {after} now: Puma restarts without"
        ));
    }
}

#[test]
fn an_event_ends_with_the_run_that_is_interrupted_and_says_so() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("app.ru", &APP.replace("{boot}", "0").replace("{service}", "0"));
    lab.write("puma.rb", "workers 2\nthreads 5, 5\n");
    let command = lab.program("puma");
    let served = ServedApp::run(lab, command);
    let load = |event: &str, until: &str| {
        let words = format!(
            "load --no-calibrate --warm-up 0s --rate 50/s --for 600s --during {event} {}",
            served.url()
        );
        let mut command = served.lab.program(crate::lab::LONGTAIL);
        let mut running = Running::start(command.args(split(&words)));
        let requests = || AppAccount::read(&served.lab).begun;
        let before = requests();
        running.until(|_| {
            requests() > before + 20 && (until.is_empty() || served.lab.path(until).exists())
        });
        running.send(Signal::INT);
        let ended = running.end().with_code(130);
        ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let early = load("phased-restart@500s", "");
    assert!(
        early.contains("The event was not done (phased-restart): the run ended before."),
        "{early}"
    );
    // It does not heed SIGTERM.
    let command = "'trap \"\" TERM; touch begun; sleep 600@200ms'";
    let late = load(command, "begun");
    assert!(late.contains("no process of the server changed"), "{late}");
    served.puma.send(Signal::TERM);
    served.puma.end();
    served.lab.assert_nothing_left(served.port);
}
