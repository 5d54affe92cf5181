//! The gates of the verdict, each tripped by the real thing: a lane without a processor, a generator that is stopped, a server that
//! stalls, a full accept queue, no port left, a server that counts otherwise. No limit here is near what a noisy machine does.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use launch::affinity;
use model::{
    Arrivals, Clock as _, Diagnostic, Grade, Judgement, LoadStudy, Nanos, Outcome, Pace, Profile, Quantile, Rate, Run,
    Verdict,
};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_setaffinity};
use sink::{DelayLaw, Faults, Sink, SinkBody, SinkSettings, SlotQueue};
use testkit::http::KeptRequest;

use crate::clock::{SteadyClock, eventually};
use crate::lab::{Lab, PATIENCE, Running, can, free_port, has, in_a_window, none_is_empty};
use crate::load::{load, sink, study, url};

fn judgement(study: &LoadStudy) -> &Judgement {
    study.run.judgement.as_ref().unwrap()
}

/// The grade of the gate that `is` picks out; `None` where it was not asked.
fn grade(judgement: &Judgement, is: impl Fn(&Diagnostic) -> bool) -> Option<Grade> {
    judgement.checks.iter().find(|gate| is(gate)).map(Diagnostic::grade)
}

fn sink_with(settings: SinkSettings) -> Sink {
    Sink::start(SinkSettings { listen: vec!["127.0.0.1:0".parse().unwrap()], ..settings }, SteadyClock).unwrap()
}

/// A process that does nothing but use a processor.
pub(crate) struct BusyLoop(Child);

impl BusyLoop {
    pub(crate) fn on(cpu: u32) -> BusyLoop {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        pin(&child, cpu);
        BusyLoop(child)
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pin(child: &Child, cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(Some(rustix::process::Pid::from_child(child)), &set).unwrap();
}

#[test]
fn a_lane_that_has_to_share_its_processor_is_the_limit() {
    let cpus: Vec<u32> = affinity::ours().expect("Linux tells").iter().collect();
    if !can(cpus.len() > 1, "one processor: server and lane would share it") {
        return;
    }
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let _busy: Vec<BusyLoop> = (0..4).map(|_| BusyLoop::on(cpus[0])).collect();
    let mut pinned = lab.program("taskset");
    pinned.args(["-c", &cpus[0].to_string(), crate::lab::LONGTAIL]);
    pinned.args(["load", "--no-calibrate", "-c", "64", "--for", "1s", &url(&sink)]);
    Running::start(&mut pinned).end().with_code(0);
    let study = study(&lab);
    let judgement = judgement(&study);
    assert_eq!(
        grade(judgement, |gate| matches!(gate, Diagnostic::LaneRunQueue { .. })),
        Some(Grade::Failed),
        "{judgement:?}"
    );
    assert!(is_void(judgement) || judgement.verdict == Verdict::GeneratorBound, "{judgement:?}");
}

/// Whether the machine itself spoiled the run: whatever else was seen, the figures are worth nothing then.
fn is_void(judgement: &Judgement) -> bool {
    let is_fail = |is: fn(&Diagnostic) -> bool| grade(judgement, is) == Some(Grade::Failed);
    is_fail(|gate| matches!(gate, Diagnostic::Steal { .. }))
        || is_fail(|gate| matches!(gate, Diagnostic::ClockStep { .. }))
}

/// Stops all threads of a process, and waits until they are.
fn stop(running: &Running) {
    running.send(Signal::STOP);
    let states = || -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten();
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        stats.filter_map(|stat| Some(stat.rsplit_once(") ")?.1[..1].to_owned())).collect()
    };
    eventually(PATIENCE, || format!("{:?}", states()), || states().iter().all(|state| state == "T").then_some(()));
}

/// A load of one request whose generator is stopped when the request has come, and is answered then; and for how long at the least
/// the answer was not read, of which half is proof enough.
fn read_late(words: &str) -> (LoadStudy, Nanos) {
    let (lab, listener) = (Lab::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    listener.set_nonblocking(true).unwrap();
    let begun = SteadyClock.now();
    let words = format!("load --no-calibrate -n 1 -c 1 {words} http://{}/", listener.local_addr().unwrap());
    let running = Running::start(&mut lab.longtail(&words));
    let (mut stream, _) = eventually(PATIENCE, || "no load".to_owned(), || listener.accept().ok());
    stream.set_nonblocking(false).unwrap();
    KeptRequest::read(&mut stream).unwrap();
    stop(&running);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    let answered = SteadyClock.now();
    // At least for as long as all has taken until now: however slow the machine is, the answer is read later than it came.
    SteadyClock.sleep(Nanos::from_secs(1) + (answered - begun));
    let unread = SteadyClock.now() - answered;
    running.send(Signal::CONT);
    running.end().with_code(0);
    (study(&lab), unread / 2)
}

#[test]
fn what_a_stopped_generator_reads_late_is_not_in_the_kernels_times() {
    let (user, unread) = read_late("--timestamps user");
    assert!(user.run.tally.response_time.max() > Some(unread), "without stamps it is in the times");
    let (study, unread) = read_late("--timestamps kernel");
    let tally = &study.run.tally;
    assert!(tally.read_lag.max() > Some(unread), "{:?} of {unread}", tally.read_lag.max());
    assert!(tally.response_time.max() < tally.read_lag.max(), "{:?}", tally.response_time.max());
    let judgement = judgement(&study);
    assert_eq!(
        grade(judgement, |gate| matches!(gate, Diagnostic::ReadLag { .. })),
        Some(Grade::Failed),
        "{judgement:?}"
    );
}

#[test]
fn a_generator_that_is_stopped_in_a_closed_loop_is_the_limit_and_says_so() {
    let delay = DelayLaw::from(Nanos::from_millis(20));
    let sink = sink_with(SinkSettings { delay, ..SinkSettings::default() });
    // By the generator's figures nobody can tell whether an objective is met, and so it is not known to be.
    for (objective, code) in [("", 0), ("--fail-if p50>100s", 1)] {
        let lab = Lab::new();
        let before = sink.ledger().requests;
        let words = format!("load --no-calibrate -c 4 --for 4s {objective} {}", url(&sink));
        let running = Running::start(&mut lab.longtail(&words));
        eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > before + 10).then_some(()));
        stop(&running);
        SteadyClock.sleep(Nanos::from_millis(1_500));
        running.send(Signal::CONT);
        let ended = running.end();
        let study = study(&lab);
        let judgement = judgement(&study);
        let standstill = |gate: &Diagnostic| matches!(gate, Diagnostic::Standstill { .. });
        assert_eq!(grade(judgement, standstill), Some(Grade::Failed), "{judgement:?}");
        if is_void(judgement) {
            continue;
        }
        assert_eq!(judgement.verdict, Verdict::GeneratorBound, "{judgement:?}");
        let ended = ended.with_code(code);
        assert_eq!(
            ended.stderr.contains("cannot tell whether the server keeps --fail-if"),
            code == 1,
            "{}",
            ended.stderr
        );
        let longest = study.run.generator.lanes.iter().map(|lane| lane.longest_standstill).max();
        // The wait that it was stopped in may have lasted for a tenth of a second by itself.
        assert!(longest > Some(Nanos::from_millis(1_300)), "{longest:?}");
    }
}

#[test]
fn a_generator_that_is_stopped_sends_late_and_says_so() {
    let delay = DelayLaw::from(Nanos::from_millis(50));
    let (lab, sink) = (Lab::new(), sink_with(SinkSettings { delay, ..SinkSettings::default() }));
    let words = format!("load --no-calibrate --rate 100/s -c 300 --for 8s {}", url(&sink));
    let running = Running::start(&mut lab.longtail(&words));
    eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
    stop(&running);
    SteadyClock.sleep(Nanos::from_secs(1));
    running.send(Signal::CONT);
    running.end().with_code(0);
    // Due times go by while it is stopped, and connections are free.
    let study = study(&lab);
    let judgement = judgement(&study);
    assert!(is_void(judgement) || judgement.verdict == Verdict::GeneratorBound, "{judgement:?}");
    assert_eq!(
        grade(judgement, |gate| matches!(gate, Diagnostic::GeneratorLag { .. })),
        Some(Grade::Failed),
        "{judgement:?}"
    );
    // None of them was left out, and none was moved: the delay is in the response times. The next was due 10 ms after the stop.
    assert_eq!(study.run.tally.counts.total(), 800);
    assert!(study.run.tally.response_time.max() > Some(Nanos::from_millis(980)));
}

/// A load whose lane got a processor whenever it wanted one: it is repeated until the machine lets it, some times. Where it never does,
/// the last of them. That the same is so by law is shown in simulated time (`engine/tests/simulated.rs`).
fn undisturbed(words: &str) -> LoadStudy {
    let once = |_| {
        let lab = Lab::new();
        load(&lab, words).with_code(0);
        study(&lab)
    };
    let mut tries = (0..5).map(once);
    let mut last = tries.next().unwrap();
    while is_disturbed(judgement(&last))
        && let Some(next) = tries.next()
    {
        last = next;
    }
    last
}

/// Whether the kernel says that the lane had to wait for a processor, or the machine for its host.
fn is_disturbed(judgement: &Judgement) -> bool {
    let is_more = |is: fn(&Diagnostic) -> bool| grade(judgement, is) > Some(Grade::Passed);
    is_more(|gate| matches!(gate, Diagnostic::LaneRunQueue { .. }))
        || is_more(|gate| matches!(gate, Diagnostic::Steal { .. }))
}

/// The server is the limit. A generator that was kept from its work may be it too, and says why.
fn assert_server_bound(study: &LoadStudy) {
    let judgement = judgement(study);
    if judgement.verdict != Verdict::ServerBound {
        can(false, &format!("the machine is too busy: {:?}", judgement.troubles()));
        assert!(is_disturbed(judgement), "{judgement:?}");
    }
}

#[test]
fn a_server_that_stalls_is_the_limit_and_never_the_generator() {
    let stalls = Some("500ms:400ms".parse().unwrap());
    let delay = DelayLaw::from(Nanos::from_millis(20));
    let sink = sink_with(SinkSettings { stalls, delay, ..SinkSettings::default() });
    for words in ["-c 8 --for 2s", "--rate 400/s -c 16 --for 2s"] {
        assert_server_bound(&undisturbed(&format!("{words} {}", url(&sink))));
    }
}

#[test]
fn an_overload_of_an_open_loop_grows_and_is_no_fault_of_the_measurement() {
    // Two slots of 100 ms are 20 a second; 60 are asked for.
    let settings = SinkSettings {
        queue: SlotQueue::Shared,
        threads: 2,
        delay: DelayLaw::from(Nanos::from_millis(100)),
        ..SinkSettings::default()
    };
    let sink = sink_with(settings);
    let study = undisturbed(&format!("--rate 60/s -c 240 --for 3s {}", url(&sink)));
    assert_server_bound(&study);
    let growth = study.run.warnings.iter().find_map(|warning| match warning {
        Diagnostic::Growing { growth, .. } => *growth,
        _ => None,
    });
    // Each second brings three seconds' work: two more to wait for. The slots are held for exactly so long, and a second that the
    // machine takes for something else turns the line by a third of that.
    assert!(growth.is_some_and(|growth| (1.0..3.0).contains(&growth)), "{growth:?}");
    assert_eq!(grade(judgement(&study), |gate| matches!(gate, Diagnostic::Steadiness { .. })), None, "it is not asked");
}

#[test]
fn an_overload_is_one_whether_time_ends_it_or_a_count_and_has_no_percentile() {
    // Five slots of 100 ms are 50 a second.
    let delay = DelayLaw::from(Nanos::from_millis(100));
    let sink = sink_with(SinkSettings { queue: SlotQueue::Shared, threads: 5, delay, ..SinkSettings::default() });
    let study = undisturbed(&format!("--rate 25/s -n 100 {}", url(&sink)));
    assert!(
        judgement(&study).verdict != Verdict::ServerBound && study.run.overload.is_none(),
        "{:?}",
        judgement(&study)
    );
    for words in ["--rate 100/s -n 300", "--rate 100/s --for 3s", "--rate 100/s --for 3s -c 20"] {
        let study = undisturbed(&format!("{words} {}", url(&sink)));
        assert_server_bound(&study);
        let (run, pace) = (&study.run, &study.plan.pace);
        assert!(
            run.offered_rate(pace).is_some_and(|rate| (95.0..105.0).contains(&rate)),
            "{:?}",
            run.offered_rate(pace)
        );
        assert!([0.5, 0.9, 0.99].iter().all(|q| run.response_time(*q) == Quantile::Growing), "{words}");
        let overload = run.overload.as_ref().unwrap_or_else(|| panic!("{words}: {:?}", run.statistics));
        // More than 50 a second it cannot do, and on a busy machine it does less.
        assert!((49.0..100.0).contains(&overload.backlog_growth), "{overload:?}");
        assert!(overload.capacity.value < 51.0 && overload.backlog_at_end > 140, "{overload:?}");
    }
}

#[test]
fn an_overload_of_a_puma_that_no_median_shows_is_told_by_its_backlog() {
    if !has("puma") {
        return;
    }
    let lab = Lab::new();
    let version = Running::start(lab.program("puma").arg("--version")).end().with_code(0).stdout;
    let is_before_7 = version.split_ascii_whitespace().any(|word| word.starts_with("5.") || word.starts_with("6."));
    if !can(is_before_7, "Puma 7 and later serve kept connections in another order") {
        return;
    }
    // Five threads of 100 ms are 50 a second, and on kept connections less.
    let rackup = lab.write("app.ru", "run lambda { |_| sleep 0.1; [200, {}, ['ok']] }\n");
    let port = free_port();
    let mut command = lab.program("puma");
    command.args(["-q", "-t5:5", "-b"]).arg(format!("tcp://127.0.0.1:{port}")).arg(rackup);
    let _puma = Running::start(&mut command);
    eventually(PATIENCE, || "no Puma".to_owned(), || TcpStream::connect(("127.0.0.1", port)).ok());
    let study = undisturbed(&format!("--rate 60/s --for 5s http://127.0.0.1:{port}/"));
    assert_server_bound(&study);
    let (tally, overload) = (&study.run.tally, study.run.overload.as_ref());
    let overload = overload.unwrap_or_else(|| panic!("{:?}", study.run.statistics));
    assert_eq!(tally.counts.good(), 300, "all are answered in the end");
    assert!(overload.capacity.value < 51.0 && overload.backlog_growth > 9.0, "{overload:?}");
    assert_eq!(study.run.response_time(0.5), Quantile::Growing, "whatever it is, it is of no state that lasts");
}

#[test]
fn a_full_accept_queue_is_named() {
    let sink =
        sink_with(SinkSettings { backlog: 1, accept_rate: Some(Rate::new(4.0).unwrap()), ..SinkSettings::default() });
    let lab = Lab::new();
    load(&lab, &format!("-c 12 -n 12 {}", url(&sink))).with_code(0);
    let study = study(&lab);
    let judgement = judgement(&study);
    let is_named = |is: fn(&Diagnostic) -> bool| grade(judgement, is) == Some(Grade::Doubtful);
    assert!(is_named(|gate| matches!(gate, Diagnostic::ListenOverflows { .. })), "{judgement:?}");
    assert!(is_named(|gate| matches!(gate, Diagnostic::ConnectStalls { .. })), "{judgement:?}");
}

#[test]
fn a_machine_without_ports_is_named() {
    // A network namespace of its own with ten ports for twenty connections.
    let lab = Lab::new();
    let longtail = crate::lab::LONGTAIL;
    let script = format!(
        "ip link set lo up && echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range || exit 99
        {longtail} sink --listen 127.0.0.1:7000 & sink=$!
        until {longtail} load --no-calibrate -n 1 -c 1 -o once.study.json http://127.0.0.1:7000/ > /dev/null 2>&1; do sleep 0.05; done
        {longtail} load --no-calibrate -c 20 --for 300ms -o x.study.json http://127.0.0.1:7000/ > /dev/null; code=$?
        kill $sink; exit $code"
    );
    let mut command = lab.program("unshare");
    let ended = Running::start(command.args(["--user", "--map-root-user", "--net", "sh", "-c", &script])).end();
    let is_allowed = !ended.stderr.contains("unshare") && ended.code() != 99;
    if !can(is_allowed, "no network namespace of one's own here") {
        return;
    }
    let study = crate::load::read(&lab.path("x.study.json"));
    let judgement = judgement(&study);
    assert_eq!(
        grade(judgement, |gate| matches!(gate, Diagnostic::Exhausted { .. })),
        Some(Grade::Failed),
        "{judgement:?}"
    );
    assert!(is_void(judgement) || judgement.verdict == Verdict::GeneratorBound, "{judgement:?}");
    assert!(study.run.tally.exhausted > 0 && study.run.tally.counts.good() > 0);
    assert!(study.run.tally.counts.of(Outcome::NoPort) > 0, "{:?}", study.run.tally.counts);
}

#[test]
fn answers_that_are_all_errors_are_worth_nothing() {
    let sink = sink_with(SinkSettings {
        faults: Faults { status: vec!["404:100%".parse().unwrap()], ..Faults::default() },
        ..SinkSettings::default()
    });
    // Whatever the objective: there is no figure to hold it against.
    for objective in ["", "--fail-if errors>50%", "--fail-if p99>100s"] {
        let lab = Lab::new();
        load(&lab, &format!("-c 2 -n 20 {objective} {}nowhere", url(&sink))).with_code(3);
        let study = study(&lab);
        assert_eq!(study.run.tally.counts.good(), 0);
        assert_eq!(judgement(&study).verdict, Verdict::Invalid);
    }
}

#[test]
fn a_rare_draw_of_arrivals_is_named() {
    let due = |seed| {
        let profile = Profile::Flat { rate: Rate::new(100.0).unwrap() };
        let pace = Pace::Open { profile, arrivals: Arrivals::Poisson, seed, burst: 1 };
        pace.schedule().unwrap().take_while(|due| *due < Nanos::from_secs(1)).count()
    };
    // One seed in some hundred.
    let rare = (1..100_000).find(|seed| due(*seed).abs_diff(100) > 30).unwrap();
    let sink = sink(SinkBody::Ok);
    for (seed, expected) in [(rare, Grade::Doubtful), (1, Grade::Passed)] {
        let lab = Lab::new();
        load(&lab, &format!("--rate 100/s --arrivals poisson --seed {seed} --for 1s {}", url(&sink))).with_code(0);
        let study = study(&lab);
        assert_eq!(study.run.tally.counts.total(), due(seed) as u64);
        assert_eq!(grade(judgement(&study), |gate| matches!(gate, Diagnostic::PoissonCount { .. })), Some(expected));
    }
}

/// A sweep of Puma with this app, and what else is done meanwhile with its port, until it says that it was done.
fn swept(app: &str, words: &str, meanwhile: impl Fn(u16, &AtomicBool) -> bool + Sync) -> Option<Vec<Judgement>> {
    let once = |window: &str| {
        let lab = Lab::new();
        lab.write("app.ru", app);
        let port = free_port();
        let words = format!("sweep -r app.ru {words} {window} --multiples 1,2 --no-calibrate");
        let over = AtomicBool::new(false);
        let (ended, is_done) = std::thread::scope(|scope| {
            let meanwhile = scope.spawn(|| meanwhile(port, &over));
            let ended = Running::start(lab.longtail(&words).env("PUMA_TEST_PORT", port.to_string())).end();
            over.store(true, Ordering::Relaxed);
            (ended, meanwhile.join().unwrap())
        });
        let study = lab.study();
        let is_invalid =
            |run: &Run| run.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Invalid);
        ended.with_code(if study.runs.iter().all(is_invalid) { 3 } else { 0 });
        (is_done && none_is_empty(&study.runs))
            .then(|| study.runs.into_iter().map(|run| run.judgement.unwrap()).collect::<Vec<_>>())
    };
    has("puma").then(|| in_a_window(once))
}

fn conserved(judgement: &Judgement) -> Option<Grade> {
    grade(judgement, |gate| matches!(gate, Diagnostic::Conservation { .. }))
}

#[test]
fn a_server_that_counts_what_we_count_conserves() {
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => Process.pid.to_s}, ['ok']] }\n";
    for judgement in swept(app, "-w2 -t2:2", |_, _| true).into_iter().flatten() {
        assert_eq!(conserved(&judgement), Some(Grade::Passed), "{judgement:?}");
    }
}

#[test]
fn a_server_whose_answers_name_the_wrong_worker_is_found_out() {
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => '1'}, ['ok']] }\n";
    for judgement in swept(app, "-w2 -t2:2", |_, _| true).into_iter().flatten() {
        assert_eq!(conserved(&judgement), Some(Grade::Failed), "{judgement:?}");
        assert_eq!(judgement.verdict, Verdict::Invalid);
    }
}

#[test]
fn a_request_that_somebody_else_sent_is_found_out() {
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => Process.pid.to_s}, ['ok']] }\n";
    let somebody = |port: u16, over: &AtomicBool| {
        let ask = || -> std::io::Result<usize> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.write_all(b"GET /theirs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            stream.read_to_end(&mut Vec::new())
        };
        while !over.load(Ordering::Relaxed) {
            if ask().unwrap_or(0) > 0 {
                return true;
            }
            SteadyClock.sleep(Nanos::from_millis(20));
        }
        false
    };
    for judgement in swept(app, "-t2:2", somebody).into_iter().flatten() {
        assert_eq!(conserved(&judgement), Some(Grade::Failed), "{judgement:?}");
        assert_eq!(judgement.verdict, Verdict::Invalid);
    }
}

#[test]
fn what_lies_below_the_table_of_an_invalid_sweep_is_printed_where_that_is_forced() {
    if !has("puma") {
        return;
    }
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => '1'}, ['ok']] }\n";
    for (force, is_printed) in [("", false), ("--force", true)] {
        let lab = Lab::new();
        lab.write("app.ru", app);
        let words = format!("sweep -r app.ru -w2 -t2:2 --for 2s --multiples 2 --no-calibrate --inspect proc {force}");
        let sweep = Running::start(lab.longtail(&words).env("PUMA_TEST_PORT", free_port().to_string())).end();
        let stdout = sweep.with_code(3).stdout;
        assert_eq!(lab.study().runs[0].judgement.as_ref().unwrap().verdict, Verdict::Invalid);
        assert_eq!(stdout.contains("where the response time went"), is_printed, "{stdout}");
    }
}
