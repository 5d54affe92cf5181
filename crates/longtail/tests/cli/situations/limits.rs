//! What limits a run, by its name.

use std::fs;
use std::path::{Path, PathBuf};

use launch::affinity;
use model::{Clock as _, Diagnostic, Grade, Nanos, Rate, Verdict};
use sink::{DelayLaw, Sink, SinkSettings, SlotQueue};

use super::{Caused, Cells, Row, Seen, row, wants};
use crate::clock::REAL_CLOCK;
use crate::lab::{Lab, Running, free_port, has};
use crate::load::{load, study, url};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "a server that keeps up",
            "20 requests a second to four slots of 20 ms",
            Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), ..Cells::default() },
            || {
                let sink = four_slots(Nanos::from_millis(20));
                let lab = Lab::new();
                let ended = load(&lab, &format!("--rate 20/s --for 3s {}", url(&sink)));
                Ok(Seen::load(&ended, &study(&lab)))
            },
        ),
        row(
            "an app that waits, half its threads",
            "puma -t4:4, 100 ms a request, 2 connections",
            Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), ..Cells::default() },
            || swept("-t4:4 -d0.1 --for 3s --multiples 0.5", None),
        )
        .soaked(),
        row(
            "an app that computes, as many workers as CPUs, four times its threads",
            "puma with a worker for each CPU, 10 ms of Ruby a request, four times as many connections as threads",
            server_bound("CPU"),
            || swept(&format!("-w{} -t5:5 --for 6s --multiples 4", cpus()), Some(BURN)),
        )
        .alone(),
        row(
            "an app that computes, on a CPU of its own",
            "puma -w2 -t5:5 --server-cpus 0, 10 ms of Ruby a request, the generator on the others",
            server_bound("CPU"),
            || match cpus() {
                1 => Err("one CPU: none is left to the generator".to_owned()),
                _ => swept("-w2 -t5:5 --server-cpus 0 --for 4s --multiples 1", Some(BURN)),
            },
        )
        .alone()
        .soaked(),
        row(
            "an app that computes, in one process",
            "puma -t5:5, 10 ms of Ruby a request, 4 connections, on two CPUs or more",
            server_bound("Ruby's lock"),
            || match cpus() {
                1 => Err("one CPU: that is the limit then".to_owned()),
                _ => swept("-t5:5 --for 4s --multiples 0.8", Some(BURN)),
            },
        )
        .alone(),
        row(
            "an app that computes, loaded from beside it",
            "puma -t5:5, 10 ms of Ruby a request; load -c 4 on two CPUs or more",
            server_bound("Ruby's lock"),
            loaded_beside,
        )
        .alone()
        .soaked(),
        row(
            "an app that computes, under a quota",
            "puma -t5:5 in a control group with half a CPU, 10 ms of Ruby a request, 5 connections",
            server_bound("CPU"),
            under_a_quota,
        )
        .alone(),
        row(
            "server and generator share their CPUs",
            "puma on all CPUs, a worker each, an app that answers at once, 50 connections",
            Cells { exit: Some(0), verdict: Some(Verdict::SharedCpus), limit: Some("shared CPUs"), discipline: None },
            || {
                let hello = "run ->(env) { [200, {}, ['hello']] }\n";
                swept(&format!("-w{} -t5:5 --for 4s --multiples {}", cpus(), 10.0 / f64::from(cpus())), Some(hello))
            },
        )
        .alone()
        .soaked(),
        row(
            "a full accept queue",
            "a sink with a backlog of 1 that accepts four connections a second, 12 connections",
            server_bound("accept queue"),
            || {
                let rate = Rate::new(4.0).unwrap();
                let sink = sink_of(SinkSettings { backlog: 1, accept_rate: Some(rate), ..SinkSettings::default() });
                let lab = Lab::new();
                let ended = load(&lab, &format!("-c 12 -n 12 {}", url(&sink)));
                Ok(Seen::load(&ended, &study(&lab)))
            },
        )
        .alone()
        .proves(|seen| {
            seen.graded(Grade::Doubtful, |check| matches!(check, Diagnostic::ListenOverflows { .. }));
            seen.graded(Grade::Doubtful, |check| matches!(check, Diagnostic::ConnectStalls { .. }));
        }),
    ]
}

/// An app that computes for 10 ms of its thread's CPU time.
const BURN: &str = "NOW = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
run ->(env) { ended = NOW.() + 0.01; (1..100).sum until NOW.() > ended; [200, {}, ['ok']] }
";

fn server_bound(limit: &'static str) -> Cells {
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some(limit), discipline: None }
}

/// As many as the server will have.
pub(super) fn cpus() -> u32 {
    affinity::ours().map_or(1, |cpus| cpus.len() as u32)
}

/// A sweep of the Puma on PATH with this app, or its own.
fn swept(words: &str, app: Option<&str>) -> Caused {
    wants("puma")?;
    let lab = Lab::new();
    let app = app.map_or("", |app| {
        lab.write("app.ru", app);
        "-r app.ru"
    });
    let words = format!("sweep {app} {words} --warm-up 1s --no-calibrate");
    let ended = lab.start_at(free_port(), &words).end();
    let study = lab.study();
    Ok(Seen::sweep(&ended, &study).without_discipline())
}

/// A control group with a part of a CPU; root makes one, and it is taken away when it is dropped.
pub(super) struct Quota(PathBuf);

impl Quota {
    /// So many hundredths of a CPU; `None` where none can be made.
    pub(super) fn of(percent: u32) -> Option<Quota> {
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
    pub(super) fn enter(&self) -> String {
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

fn under_a_quota() -> Caused {
    wants("puma")?;
    let Some(quota) = Quota::of(50) else {
        return Err("no control group with a quota can be made here".to_owned());
    };
    let (lab, port) = (Lab::new(), free_port());
    let app = lab.write("app.ru", BURN);
    let script = format!("{} && exec puma -t5:5 -b tcp://127.0.0.1:{port} {}", quota.enter(), app.display());
    let script = lab.write("start", &script);
    let words = "--for 4s --warm-up 1s --no-calibrate --multiples 1";
    let words = format!("sweep {words} --slots 5 --url http://127.0.0.1:{port}/ -- sh {}", script.display());
    let ended = lab.run(&words);
    Ok(Seen::sweep(&ended, &lab.study()).without_discipline())
}

/// A load of a Puma that was there before.
fn loaded_beside() -> Caused {
    if !has("puma") || cpus() == 1 {
        return Err("puma is not on PATH, or there is one CPU".to_owned());
    }
    let (lab, port) = (Lab::new(), free_port());
    let _puma = Running::puma(&lab, port, &lab.write("app.ru", BURN), "-t5:5");
    let ended = load(&lab, &format!("-c 4 --for 4s http://127.0.0.1:{port}/"));
    Ok(Seen::load(&ended, &study(&lab)))
}

fn sink_of(settings: SinkSettings) -> Sink {
    Sink::start(SinkSettings { listen: vec!["127.0.0.1:0".parse().unwrap()], ..settings }, REAL_CLOCK).unwrap()
}

/// A sink of four slots in one line, each held for so long.
pub(super) fn four_slots(held: Nanos) -> Sink {
    let delay = DelayLaw::from(held);
    sink_of(SinkSettings { queue: SlotQueue::Shared, workers: 2, threads: 2, delay, ..SinkSettings::default() })
}
