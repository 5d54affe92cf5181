//! What is caused by hand, and what is proven beside the cells of the page.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use launch::affinity;
use model::{Clock as _, Diagnostic, Discipline, Grade, LoadStudy, Nanos, Outcome, Quantile};
use rustix::process::Signal;
use sink::{Sink, SinkBody, SinkSettings, SlotQueue};
use testkit::clock::{REAL_CLOCK, eventually};

use super::{Caused, Seen, over_a_wire, served, wants};
use crate::far::{FORWARDER, host, on};
use crate::gates::stop;
use crate::lab::{LONGTAIL, Lab, PATIENCE, Running, THIS_MACHINE, end, free_port, split};
use crate::load::{load, url};

/// Causes the situation of this name.
pub(super) fn by_hand(name: &str) -> Caused {
    match name {
        "an app that computes, loaded from beside it" => beside_puma(BURN, "-c 4 --for 4s"),
        "an app that computes, under a quota" => server_under_a_quota(),
        // Five threads of 100 ms are 50 requests a second, and on kept connections fewer.
        "an overload of Puma that no median shows" => {
            beside_puma("run lambda { |_| sleep 0.1; [200, {}, ['ok']] }\n", "--rate 60/s --for 4s")
        }
        "a generator that stands still, open loop" => stopped("--rate 100/s -c 300 --for 4s", 1000),
        "a generator that stands still, closed loop" => stopped("-c 4 --for 4s", 1500),
        "a generator that stands still, and an objective" => stopped("-c 4 --for 4s --fail-if p50>100s", 1500),
        "a generator that shares its processor" => on_a_busy_processor(),
        "a generator without ports" => without_ports(),
        "a generator under a quota" => generator_under_a_quota(),
        "a link that is cut" => cut(),
        "a proxy that passes connections on" => forwarded(),
        "a server that dies" => in_the_middle("-c 8 --for 3s", |_, server| server.send(Signal::KILL)),
        "a load that is interrupted" => in_the_middle("-c 8 --for 600s", |load, server| {
            load.send(Signal::INT);
            // It still answers what is under way.
            REAL_CLOCK.sleep(Nanos::from_secs(1));
            drop(server);
        }),
        "somebody else uses the server" => somebody_else(),
        "a server whose answers name the wrong worker" => {
            let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => '1'}, ['ok']] }\n";
            swept(app, "-w2 -t2:2", |_, _| ())
        }
        _ => panic!("nobody causes '{name}'"),
    }
}

/// What else must be so of the situation of this name, where its cells are as expected.
pub(super) fn prove(name: &str, seen: &Seen) {
    match name {
        "a full accept queue" => {
            seen.graded(Grade::Doubtful, |check| matches!(check, Diagnostic::ListenOverflows { .. }));
            seen.graded(Grade::Doubtful, |check| matches!(check, Diagnostic::ConnectStalls { .. }));
        }
        "an overload that time ends" | "an overload that a count ends" | "an overload that waits in the generator" => {
            grows(seen);
        }
        "a rate that is kept, and ended by a count" => assert_eq!(seen.load_study().run.overload, None),
        "an overload of which the time of a request is known" => {
            let overload = seen.load_study().run.overload.as_ref().unwrap();
            let slots = overload.slots.as_ref().unwrap().value;
            assert!(overload.doubt.is_some() || (2.5..4.3).contains(&slots), "{overload:?}");
        }
        "an overload of Puma that no median shows" => {
            let run = &seen.load_study().run;
            let overload = run.overload.as_ref().unwrap_or_else(|| panic!("{:?}", run.statistics));
            assert_eq!(run.tally.counts.good(), 240, "all are answered in the end");
            assert!(overload.capacity.value < 51.0 && overload.backlog_growth > 9.0, "{overload:?}");
            assert_eq!(run.response_time(0.5), Quantile::Growing, "whatever it is, it is of no state that lasts");
        }
        "a Puma up to 6 with keep-alive, four times its threads" => looks_like(seen, Discipline::Turns, true),
        "a Puma up to 6 with a connection for each request, four times its threads" => {
            looks_like(seen, Discipline::Shared, true);
        }
        "one line, or a line for each worker" => looks_like(seen, Discipline::Shared, false),
        "ten requests of a connection in turn" => looks_like(seen, Discipline::Turns, false),
        "a generator that stands still, open loop" => {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::GeneratorLag { .. }));
            // None of them was left out, and none was moved: the delay is in the response times. The next was due 10 ms after the stop.
            assert_eq!(seen.load_study().run.tally.counts.total(), 400);
            assert!(seen.load_study().run.tally.response_time.max() > Some(Nanos::from_millis(980)));
        }
        "a generator that stands still, closed loop" => stood_still(seen),
        "a generator that stands still, and an objective" => {
            stood_still(seen);
            // By the generator's figures nobody can tell whether an objective is met, and so it is not known to be.
            assert!(seen.printed.contains("CANNOT TELL fail if p50 > 100s"), "{}", seen.printed);
        }
        "a generator that shares its processor" => {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::LaneRunQueue { .. }));
        }
        "a generator without ports" => {
            seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::Exhausted { .. }));
            let tally = &seen.load_study().run.tally;
            let is_seen = tally.exhausted > 0 && tally.counts.good() > 0 && tally.counts.of(Outcome::NoPort) > 0;
            assert!(is_seen, "{tally:?}");
        }
        "a network that loses packets" => {
            sent_again(seen);
            assert!(seen.printed.contains("had a retransmission"), "{}", seen.printed);
        }
        "a link that is cut" => {
            sent_again(seen);
            let longest = seen.load_study().run.tally.response_time.max();
            assert!(longest >= Some(Nanos::from_millis(500)), "{longest:?}");
        }
        "errors only, and an objective of failures" => {
            let LoadStudy { run, plan, .. } = seen.load_study();
            assert!(!run.held_against(&plan.thresholds[0]).expect("the run has requests").is_met);
        }
        "somebody else uses the server" => seen.graded(Grade::Failed, is_conservation),
        "a server whose answers name the wrong worker" => {
            seen.graded(Grade::Failed, is_conservation);
            assert!(!seen.printed.contains("where the response time went"), "that is printed where it is forced");
        }
        _ => {}
    }
}

fn is_conservation(check: &Diagnostic) -> bool {
    matches!(check, Diagnostic::Conservation { .. })
}

/// More than 40 a second it cannot do, and on a busy machine it does less.
fn grows(seen: &Seen) {
    let LoadStudy { run, plan, .. } = seen.load_study();
    let offered = run.offered_rate(&plan.pace);
    assert!(offered.is_some_and(|rate| (76.0..84.0).contains(&rate)), "{offered:?}");
    assert!([0.5, 0.9, 0.99].iter().all(|q| run.response_time(*q) == Quantile::Growing));
    let overload = run.overload.as_ref().unwrap_or_else(|| panic!("{:?}", run.statistics));
    assert!((39.0..80.0).contains(&overload.backlog_growth), "{overload:?}");
    assert!(overload.capacity.value < 41.0 && overload.backlog_at_end > 110, "{overload:?}");
    let growth = run.warnings.iter().find_map(|warning| match warning {
        Diagnostic::Growing { growth, .. } => *growth,
        _ => None,
    });
    // Each second brings two seconds' work: one more to wait for.
    assert!(growth.is_some_and(|growth| (0.5..1.6).contains(&growth)), "{growth:?}");
    let checks = &run.judgement.as_ref().unwrap().checks;
    assert!(!checks.iter().any(|check| matches!(check, Diagnostic::Steadiness { .. })), "it is not asked");
}

/// However much a noisy machine adds: in turns of ten most of the time is waited by few, and in a shared queue all wait alike. What
/// `is_expected` is known of the server before.
fn looks_like(seen: &Seen, this: Discipline, is_expected: bool) {
    let run = seen.run.as_ref().unwrap();
    let times = &run.tally.response_time;
    let (median, mean) = (times.quantile(0.5).unwrap(), times.mean().unwrap());
    assert_eq!(median * 2 < mean, this == Discipline::Turns, "median {median}, mean {mean}: {:?}", run.theory);
    assert_eq!(run.theory.as_ref().unwrap().expected, is_expected.then_some(this));
    let parts = ["\ntheory beside measurement", "  inferred discipline: "];
    assert!(parts.iter().all(|part| seen.printed.contains(part)), "{}", seen.printed);
}

fn stood_still(seen: &Seen) {
    seen.graded(Grade::Failed, |check| matches!(check, Diagnostic::Standstill { .. }));
    let longest = seen.load_study().run.generator.lanes.iter().map(|lane| lane.longest_standstill).max();
    // The wait that it was stopped in may have lasted for a tenth of a second by itself.
    assert!(longest > Some(Nanos::from_millis(1_300)), "{longest:?}");
}

/// What was lost was sent again, and made the response that waited for it slow.
fn sent_again(seen: &Seen) {
    let network = &seen.load_study().run.tally.network;
    let slow = network.slow_with_retransmission.count;
    assert!(network.retransmitted > 0 && slow > 0 && network.slow >= slow, "{network:?}");
}

/// An app that computes for 10 ms of its thread's CPU time.
const BURN: &str = "NOW = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
run ->(env) { ended = NOW.() + 0.01; (1..100).sum until NOW.() > ended; [200, {}, ['ok']] }
";

/// Workers that answer one request at a time, after 50 ms.
const NODE: &str = r"
const cluster = require('cluster'), http = require('http');
if (cluster.isMaster) for (let n = 0; n < 4; n++) cluster.fork(); else {
  const waiting = []; let busy = false;
  const next = () => {
    if (busy || waiting.length === 0) return;
    busy = true; const answer = waiting.shift();
    setTimeout(() => { answer.writeHead(200, {'content-length': 2}); answer.end('ok'); busy = false; next(); }, 50);
  };
  http.createServer((_, answer) => { waiting.push(answer); next(); }).listen(+process.argv[2], '127.0.0.1');
}
";

/// The files that sweeps name.
pub(super) fn apps(lab: &Lab) {
    lab.write("burn.ru", BURN);
    lab.write("hello.ru", "run ->(env) { [200, {}, ['hello']] }\n");
    lab.write("no_queue.rb", "workers 2\nthreads 2, 2\nqueue_requests false\n");
    lab.write("cluster.js", NODE);
}

/// As many as the server will have.
pub(super) fn cpus() -> u32 {
    affinity::ours().map_or(1, |cpus| cpus.len() as u32)
}

/// A control group with a part of a CPU; root makes one, and it is taken away when it is dropped.
struct Quota(PathBuf);

impl Quota {
    /// So many hundredths of a CPU; `None` where none can be made.
    fn of(percent: u32) -> Option<Quota> {
        let name = format!("longtail-test-{}-{percent}", std::process::id());
        let quota = percent * 1000;
        let quotas = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota.to_string()),
            ("/sys/fs/cgroup", "cpu.max", format!("{quota} 100000")),
        ];
        quotas.iter().find_map(|(root, file, quota)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let has_it = folder.join(file).is_file() && fs::write(folder.join(file), quota).is_ok();
            if !has_it {
                let _ = fs::remove_dir(&folder);
            }
            has_it.then_some(Quota(folder))
        })
    }

    /// By this a shell enters it.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Its last process may be ending.
        let soon = REAL_CLOCK.now() + Nanos::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && REAL_CLOCK.now() < soon {
            REAL_CLOCK.sleep(Nanos::from_millis(20));
        }
    }
}

fn server_under_a_quota() -> Caused {
    wants("puma")?;
    let quota = Quota::of(50).ok_or("no control group with a quota can be made here")?;
    let (lab, port) = (Lab::new(), free_port());
    apps(&lab);
    lab.write("start", &format!("{} && exec puma -t5:5 -b tcp://127.0.0.1:{port} burn.ru", quota.enter()));
    let words = "sweep --for 4s --warm-up 1s --no-calibrate --multiples 1 --slots 5";
    let ended = lab.run(&format!("{words} --url http://127.0.0.1:{port}/ -- sh start"));
    Ok(without_order(Seen::sweep(&ended, &lab.study())))
}

/// The same where nobody asks for the order of service.
fn without_order(mut seen: Seen) -> Seen {
    "-".clone_into(&mut seen.cells[3]);
    seen
}

fn generator_under_a_quota() -> Caused {
    let quota = Quota::of(10).ok_or("no control group with a quota can be made here")?;
    let lab = Lab::new();
    let server = served(&lab, "");
    let words = format!("load --no-calibrate --rate 5000/s --for 2s {}", server.url);
    let ended = end(lab.program("sh").args(["-c", &format!("{} && exec {LONGTAIL} {words}", quota.enter())]));
    Ok(Seen::load(&ended, &lab))
}

/// A load of a Puma of five threads that was there before.
fn beside_puma(app: &str, words: &str) -> Caused {
    wants("puma")?;
    let (lab, port) = (Lab::new(), free_port());
    let _puma = Running::puma(&lab, port, &lab.write("app.ru", app), "-t5:5");
    Ok(Seen::load(&load(&lab, &format!("{words} http://127.0.0.1:{port}/")), &lab))
}

/// A load on four slots of 20 ms whose generator is stopped for so many ms.
fn stopped(words: &str, time: u64) -> Caused {
    let lab = Lab::new();
    let delay = Nanos::from_millis(20).into();
    let slots = SinkSettings { queue: SlotQueue::Shared, workers: 2, threads: 2, delay, ..SinkSettings::default() };
    let sink = crate::load::sink_with("127.0.0.1:0", slots);
    let running = lab.start(&format!("load --no-calibrate {words} {}", url(&sink)));
    eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
    stop(&running);
    REAL_CLOCK.sleep(Nanos::from_millis(time));
    running.send(Signal::CONT);
    Ok(Seen::load(&running.end(), &lab))
}

fn on_a_busy_processor() -> Caused {
    let ours = affinity::ours().expect("Linux tells");
    wants("taskset")?;
    let first = ours.iter().next().expect("we run on one");
    let lab = Lab::new();
    let server = served(&lab, "");
    let on_it = |words: &str| {
        let mut command = lab.program("taskset");
        command.args(["-c", &first.to_string()]).args(split(words));
        Running::start(&mut command)
    };
    let _busy: Vec<Running> = (0..4).map(|_| on_it("sh -c 'while :; do :; done'")).collect();
    let ended = on_it(&format!("{LONGTAIL} load --no-calibrate -c 64 --for 2s {}", server.url)).end();
    Ok(Seen::load(&ended, &lab))
}

fn without_ports() -> Caused {
    let host = host(&[]).ok_or("no network namespace can be made here")?;
    let lab = Lab::new();
    let range = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";
    end(host.command("sh", &lab.path("")).args(["-c", range])).with_code(0);
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let settings = SinkSettings { listen, body: SinkBody::Ok, ..SinkSettings::default() };
    let sink = host.enter(|| Sink::start(settings, REAL_CLOCK).unwrap());
    let words = format!("load --no-calibrate -c 20 --for 1s {}", url(&sink));
    let ended = end(on(&lab, &host, THIS_MACHINE).args(words.split(' ')));
    Ok(Seen::load(&ended, &lab))
}

fn cut() -> Caused {
    over_a_wire(1, 0, 0, |machines, sink| {
        let words = format!("load --no-calibrate -c 4 --for 4s {}", url(sink));
        let mut running = Running::start(&mut machines.command(&words));
        running.until(|_| sink.ledger().requests >= 10);
        machines.wire.cut(true);
        REAL_CLOCK.sleep(Nanos::from_secs(1));
        machines.wire.cut(false);
        Seen::load(&running.end(), &machines.lab)
    })
}

fn forwarded() -> Caused {
    wants("python3")?;
    let (lab, port) = (Lab::new(), free_port());
    let server = served(&lab, FOUR_SLOTS);
    let script = lab.write("forwarder.py", FORWARDER);
    let to = server.port.to_string();
    let mut forwarder = Running::start(lab.program("python3").arg(script).arg(port.to_string()).arg(to));
    forwarder.until(|said| said.contains("ready"));
    let ended = load(&lab, &format!("-c 8 --for 2s http://127.0.0.1:{port}/"));
    Ok(Seen::load(&ended, &lab))
}

/// Four slots of 100 ms, in one line.
const FOUR_SLOTS: &str = "--slots 4 --delay 100ms";

/// A load in the middle, on four slots of 100 ms, to which `this` is done.
fn in_the_middle(words: &str, this: impl FnOnce(&Running, Running)) -> Caused {
    let lab = Lab::new();
    let server = served(&lab, FOUR_SLOTS);
    let words = format!("load --no-calibrate {words} {}", server.url);
    let running = lab.start(&words);
    REAL_CLOCK.sleep(Nanos::from_secs(1));
    this(&running, server.running);
    let ended = running.end();
    Ok(Seen::load(&ended, &lab))
}

/// A sweep of the Puma on PATH with this app, and what else is done with its port meanwhile, until it is over.
fn swept(app: &str, words: &str, meanwhile: impl Fn(u16, &AtomicBool) + Sync) -> Caused {
    wants("puma")?;
    let (lab, port, over) = (Lab::new(), free_port(), AtomicBool::new(false));
    lab.write("app.ru", app);
    let words = format!("sweep -r app.ru {words} --for 2s --warm-up 500ms --multiples 2 --no-calibrate --inspect proc");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| meanwhile(port, &over));
        let ended = lab.start_at(port, &words).end();
        over.store(true, Ordering::Relaxed);
        ended
    });
    let forced = lab.run("report --force").stdout;
    assert!(forced.contains("where the response time went"), "{forced}");
    Ok(without_order(Seen::sweep(&ended, &lab.study())))
}

fn somebody_else() -> Caused {
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => Process.pid.to_s}, ['ok']] }\n";
    swept(app, "-t2:2", |port, over| {
        let ask = || -> std::io::Result<usize> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.write_all(b"GET /theirs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            stream.read_to_end(&mut Vec::new())
        };
        while !over.load(Ordering::Relaxed) {
            let _ = ask();
            REAL_CLOCK.sleep(Nanos::from_millis(100));
        }
    })
}
