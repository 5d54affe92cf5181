//! `longtail sweep --inspect kernel`: the wait is found where it was put, by the kernel's own stamps. By counts, order and sums alone.

use std::collections::BTreeSet;
use std::fs;

use model::kernel::{PathSums, RequestPaths};
use model::{KernelView, Nanos, Probe, Run, Study, SweepStudy};
use rustix::process::{Pid, Signal};
use testkit::clock::eventually;

use crate::lab::{LONGTAIL, Lab, PATIENCE, can, end, free_port, full_report, has, major};

/// Whether the kernel lets us listen; where not, says why and skips.
fn can_listen() -> bool {
    let tried = probe::bpf::possible();
    can(tried.is_ok(), &format!("no BPF here: {}", tried.err().map_or(String::new(), |missing| missing.to_string())))
}

/// A folder, where there is a Puma and the kernel lets us listen.
fn listening() -> Option<Lab> {
    (can_listen() && has("puma")).then(Lab::new)
}

fn view(run: &Run) -> &KernelView {
    let view = run.kernel.as_ref().unwrap_or_else(|| panic!("nobody listened: {:?}", run.watch));
    assert_eq!((view.unfollowed, view.lost), (0, 0), "{:?}", run.warnings);
    assert_eq!(view.answers(), run.tally.all_answers(), "every answer, and nobody else's");
    view
}

/// The ways of a run of which every good answer was joined, and whose parts are the whole.
fn ways(run: &Run) -> &RequestPaths {
    let ways = view(run).ways.as_ref().expect("they were asked for");
    assert_eq!((ways.unmatched, ways.impossible, ways.silent), (0, 0, 0), "{ways:?}");
    assert_eq!(ways.all.requests, run.tally.counts.good());
    assert_eq!(ways.all.response_time, run.tally.response_time.sum());
    for parts in std::iter::once(&ways.all).chain(&ways.slowest) {
        let of_server = parts.server_queue.unwrap() + parts.app.unwrap() + parts.left_in_server();
        assert_eq!(of_server, parts.in_server);
        let known = parts.send_lag + parts.sending + parts.accept_queue + parts.receive_queue + parts.in_server;
        assert_eq!(known + parts.reading, parts.response_time, "the parts are the whole");
    }
    ways
}

/// Whether a part is most of the response time.
fn is_most(part: Nanos, parts: &PathSums) -> bool {
    part * 2 > parts.response_time
}

/// What each worker answered by its header is what the kernel saw it answer.
fn assert_same_workers(run: &Run) {
    let by_kernel = view(run).processes.iter().filter(|process| process.answers > 0);
    let by_kernel: Vec<_> = by_kernel.map(|process| (process.pid.to_string(), process.answers)).collect();
    let mut by_header: Vec<_> = run.tally.per_worker.iter().map(|(pid, count)| (pid.clone(), count.all)).collect();
    by_header.sort_by_key(|(pid, _)| pid.parse::<u32>().unwrap());
    assert_eq!(by_kernel, by_header);
}

#[test]
fn the_wait_is_found_where_it_was_put() {
    if !can_listen() {
        return;
    }
    // Two that accept all and let it wait inside, and one whose threads accept when they are free. A request is held for so long that
    // what a busy machine adds to it is little beside that.
    for queue in ["shared", "split", "inline10"] {
        let (lab, port) = (Lab::new(), free_port());
        let words = format!(
            "sweep --slots 4 --url http://127.0.0.1:{port}/ -d0.1 -R4 --multiples 1,8 --no-calibrate \
             --inspect app,kernel --force -- {LONGTAIL} sink --listen 127.0.0.1:{port} --workers 2 --threads 2 --delay 100ms --queue {queue}"
        );
        let stdout = lab.run(&words).with_code(0).stdout;
        let study = lab.study();
        let [one, eight] = &study.runs[..] else { panic!("two runs") };
        assert!(is_most(ways(one).all.app.unwrap(), &ways(one).all), "{queue}: {:?}", ways(one));
        let slowest = ways(eight).slowest.expect("there are 128");
        for parts in [&ways(eight).all, &slowest] {
            let (kernel, server) = (parts.accept_queue, parts.server_queue.unwrap());
            let most = if queue == "inline10" { kernel } else { server };
            assert!(is_most(most, parts), "{queue}: {parts:?}");
        }
        assert!(
            stdout.contains("waits by the kernel's tracepoints") && stdout.contains(" + server queue "),
            "{stdout}"
        );
    }
}

/// One connection a request, all of them measured, four times as many as there are threads.
fn puma_closing(lab: &Lab, words: &str) -> SweepStudy {
    let words = format!("sweep -w2 -t2:2 -d0.1 -R8 --multiples 4 --no-calibrate --inspect kernel {words}");
    let mut sweep = lab.longtail(&words);
    end(sweep.env("PUMA_TEST_PORT", free_port().to_string())).with_code(0);
    lab.study()
}

#[test]
fn what_waits_for_an_old_puma_is_in_the_accept_queue_and_the_sums_agree() {
    let Some(lab) = listening() else { return };
    let study = puma_closing(&lab, "-k --anatomy");
    assert_eq!(study.probed.as_ref().map(|probed| probed.probe), Some(Probe::Bpf));
    let run = &study.runs[0];
    let (all, view) = (&ways(run).all, view(run));
    assert_same_workers(run);
    let sum = |of: fn(&model::ProcessWaits) -> &model::Waits| {
        let waits = || view.processes.iter().map(of);
        assert_eq!(waits().map(|waits| waits.count).sum::<u64>(), run.tally.all_answers(), "a wait for each request");
        waits().map(|waits| waits.sum).sum::<Nanos>()
    };
    let accept = sum(|process| &process.accept_queue);
    // Two accounts that were made apart, each request's from being connected to its answer: what the kernel has added up, and
    // what the client has measured, less what it has spent itself before and after.
    let kernel = accept + sum(|process| &process.receive_queue) + sum(|process| &process.in_server);
    let own = all.send_lag + all.sending + all.reading;
    let least = all.response_time - own;
    assert!((least..=all.response_time).contains(&kernel), "{least} to {} but {kernel}", all.response_time);
    if (1..=6).contains(&major(&study.server)) {
        assert!(is_most(accept, all) && is_most(all.accept_queue, all), "{all:?}");
    }
}

#[test]
fn kept_connections_are_counted_request_by_request() {
    let Some(lab) = listening() else { return };
    let study = puma_closing(&lab, "");
    let run = &study.runs[0];
    assert_same_workers(run);
    let opened: u64 = view(run).processes.iter().map(|process| process.accept_queue.count).sum();
    assert_eq!(opened, run.tally.connections_opened);
    assert_eq!(view(run).ways, None, "who does not ask for an anatomy has none");
}

#[test]
fn every_answer_is_counted_once_however_long_it_is_and_however_it_is_sent() {
    if !can_listen() || !has("puma") {
        return;
    }
    for (probe, bodies) in [("none", "s1"), ("proc", "s1"), ("bpf", "acsi1,300")] {
        let lab = Lab::new();
        let words = format!("bodies -w2 -t2:2 -b {bodies} -D 0.2 --warm-up 0.1 --no-calibrate --inspect");
        let stdout = lab.run(&format!("{words} {probe}")).with_code(0).stdout;
        let Study::Bodies(study) = lab.kept() else { panic!("not of bodies") };
        assert_eq!(study.runs.len(), if probe == "bpf" { 8 } else { 1 });
        for run in study.runs.iter().map(|run| &run.run) {
            assert_eq!((run.watch.is_some(), run.kernel.is_some()), (probe != "none", probe == "bpf"));
            if probe == "bpf" {
                assert_same_workers(run);
            }
        }
        assert_eq!(stdout.contains("the server meanwhile"), probe != "none");
        assert_eq!(stdout.contains("waits by the kernel's tracepoints"), probe == "bpf");
    }
}

#[test]
fn over_tls_there_are_connections_and_no_requests() {
    let Some(lab) = listening() else { return };
    let study = puma_closing(&lab, "-s ssl4 -k --anatomy");
    let view = study.runs[0].kernel.as_ref().unwrap();
    assert_eq!((view.answers(), view.ways.as_ref()), (0, None));
    let accepted: u64 = view.processes.iter().map(|process| process.accept_queue.count).sum();
    assert_eq!(accepted, study.runs[0].tally.connections_opened);
    assert!(lab.run("report").stdout.contains("over TLS connections and threads alone are seen"));
}

#[test]
fn without_rights_it_says_what_is_missing_and_goes_on() {
    let lab = Lab::new();
    let is_permitted = probe::bpf::possible().is_ok();
    if is_permitted && !has("setpriv") {
        return;
    }
    // Whoever has the rights gives them away first.
    let longtail = |words: &str| {
        let mut command = lab.program(if is_permitted { "setpriv" } else { LONGTAIL });
        if is_permitted {
            command.args(["--bounding-set=-all", "--inh-caps=-all", LONGTAIL]);
        }
        end(command.args(full_report(words)))
    };
    longtail("sweep --server builtin -d0.01 -R2 --multiples 1 --inspect kernel")
        .refused("--inspect kernel cannot be done here: ");
    assert!(lab.studies().is_empty(), "before anything is started");
    let swept = longtail("sweep --server builtin -d0.01 -R2 --multiples 1 --no-calibrate").with_code(0);
    let study = lab.study();
    let why = study.probed.as_ref().and_then(|probed| probed.why_no_bpf.clone()).expect("it says why");
    if is_permitted {
        assert!(why.contains("CAP_BPF and CAP_PERFMON are not held"), "{why}");
    }
    assert!(study.runs[0].kernel.is_none() && study.runs[0].watch.is_some());
    assert!(swept.stdout.contains(&why), "{}", swept.stdout);
}

#[test]
fn a_worker_that_is_born_in_a_run_is_followed() {
    if !can_listen() || !has("puma") {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    // Puma looks after its workers each second.
    let words = "sweep -w2 -t2:2 -d0.02 --for 5s --warm-up 0 --multiples 2 --no-calibrate --inspect kernel";
    let mut sweep = lab.start_at(port, words);
    sweep.until(|_| probe::sockets::ServerListener::of_port(port).sample().unwrap().open > 4);
    let command = |pid: &Pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    let workers: Vec<Pid> = lab.living().into_iter().filter(|pid| command(pid).contains("cluster worker")).collect();
    assert_eq!(workers.len(), 2);
    rustix::process::kill_process(workers[0], Signal::KILL).unwrap();
    sweep.end().with_code(0);
    let study = lab.study();
    let run = &study.runs[0];
    let view = run.kernel.as_ref().unwrap();
    let looked_at = |pid: &str| run.watch.as_ref().unwrap().curves("cpu").any(|(_, curve)| curve.of == pid);
    let is_old = |pid: &str| workers.iter().any(|worker| worker.as_raw_pid().to_string() == pid);
    let new: Vec<_> = run.tally.per_worker.iter().filter(|(pid, _)| !is_old(pid)).collect();
    if can(!new.is_empty(), "the new worker had no time to answer") {
        for (pid, count) in new {
            let process = view.processes.iter().find(|process| process.pid.to_string() == *pid).expect("it answered");
            assert_eq!(process.answers, count.all, "{pid}");
            assert!(process.run_queue.count > 0 && looked_at(pid), "{pid}: {process:?}");
        }
    }
}

/// The BPF programs and links that a process holds.
fn held(pid: Pid) -> BTreeSet<u32> {
    let folder = format!("/proc/{}/fdinfo", pid.as_raw_pid());
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let id = |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    texts.filter_map(id).collect()
}

/// All that are in the kernel.
pub(crate) fn loaded() -> BTreeSet<u32> {
    aya::programs::loaded_programs().filter_map(|program| Some(program.ok()?.id())).collect()
}

#[test]
fn nothing_stays_in_the_kernel_after_kill_9() {
    if !can_listen() {
        return;
    }
    let (lab, port) = (Lab::new(), free_port());
    let words = format!(
        "sweep --slots 4 --url http://127.0.0.1:{port}/ -d0.02 --for 120s --warm-up 0 --multiples 2 --no-calibrate --anatomy \
         --inspect kernel -- {LONGTAIL} sink --listen 127.0.0.1:{port} --threads 4 --delay 20ms"
    );
    let mut sweep = lab.start(&words);
    let mut programs = BTreeSet::new();
    sweep.until(|_| {
        let holders: Vec<BTreeSet<u32>> = lab.living().into_iter().map(held).filter(|held| !held.is_empty()).collect();
        assert!(holders.len() <= 1, "longtail alone, and no child of it: {holders:?}");
        programs = holders.into_iter().next().unwrap_or_default();
        programs.len() == 6 && probe::sockets::ServerListener::of_port(port).sample().unwrap().open > 4
    });
    assert!(programs.is_subset(&loaded()), "{programs:?}");
    sweep.send(Signal::KILL);
    let left = || loaded().intersection(&programs).count();
    eventually(PATIENCE, || format!("{} of {programs:?} are left", left()), || (left() == 0).then_some(()));
    lab.assert_nothing_left(port);
}
