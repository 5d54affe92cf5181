//! `--with`: the load or the sweep that another generator makes. What it claims is held against what the server counted,
//! never against a time.

use model::{Believable, GeneratorClaim, Nanos, Study, SweepStudy};
use rustix::process::Signal;
use sink::{Sink, SinkBody};

use crate::clock::eventually;
use crate::lab::{Lab, PATIENCE, Running, end, has};
use crate::load::{load, sink, slow_sink, url};

/// What the generator says of its one run.
fn claim(lab: &Lab) -> GeneratorClaim {
    let Study::Load(study) = lab.kept() else { panic!("not of a load") };
    *study.run.claim.expect("of another generator")
}

fn percentiles(claim: &GeneratorClaim) -> Vec<f64> {
    claim.percentiles.iter().map(|one| one.quantile).collect()
}

/// The real generator against a sink that counts: what it claims has come, but for what was under way at the end.
fn loads(tool: &str, prints: &[f64]) {
    if !has(tool) {
        return;
    }
    let (lab, sink) = (Lab::new(), slow_sink(Nanos::from_millis(2)));
    let ended =
        load(&lab, &format!("--generator {tool} -c 8 --for 1s --warm-up 1s --fail-if 'errors > 0' {}", url(&sink)));
    let ended = ended.with_code(0);
    let claim = claim(&lab);
    assert_eq!((claim.by.as_str(), claim.failed), (tool, Some(0)));
    assert_eq!(percentiles(&claim), prints);
    let (claimed, received) = (claim.all_requests().unwrap(), sink.stop().requests);
    assert!(claim.warm_up_requests.is_some_and(|n| n > 0) && claim.requests.is_some_and(|n| n > 0), "{claim:#?}");
    // Eight connections, two runs; ab may still count what came after its time was up.
    let slack = if tool == "ab" { 16 } else { 0 };
    assert!(claimed <= received + slack && received <= claimed + 16, "{claimed} claimed, {received} received");
    assert!(ended.stdout.contains(&format!(": what {} printed\n", claim.name())), "{}", ended.stdout);
    assert!(ended.stdout.contains(claim.output.lines().next_back().unwrap_or_default().trim()));
    // The kept study says the same again, and as markdown too.
    assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout);
    let markdown = lab.run("report --format markdown").with_code(0).stdout;
    assert!(markdown.contains(&format!(": what {} printed**", claim.name())), "{markdown}");
    assert!(lab.living().is_empty());
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

#[test]
fn another_generator_makes_the_load() {
    loads("wrk", &[0.5, 0.75, 0.9, 0.99]);
    loads("hey", &[0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]);
    loads("ab", &[0.5, 0.66, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99]);
    loads("h2load", &[]);
}

#[test]
fn a_count_is_kept_to_the_request() {
    for tool in ["hey", "ab", "h2load"] {
        if !has(tool) {
            continue;
        }
        let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
        load(&lab, &format!("--generator {tool} -c 4 -n 100 {}", url(&sink))).with_code(0);
        let ledger = sink.stop();
        assert_eq!((claim(&lab).requests, ledger.requests), (Some(100), 100), "{tool}");
    }
}

#[test]
fn what_is_sent_is_what_was_asked_for() {
    if !has("hey") {
        return;
    }
    let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
    let words = "--generator hey -c 2 -n 4 -k -m POST -d hello -H 'X-A: 1' --auth me:hunter2";
    load(&lab, &format!("{words} {}", url(&sink))).with_code(0);
    let (line, ledger) = (claim(&lab).command_line, sink.stop());
    assert!(line.contains("-disable-keepalive") && line.contains("-m POST") && line.contains("'X-A: 1'"), "{line}");
    assert!(!line.contains("hunter2") && !line.contains("Basic ") && line.contains("'(secret)'"), "{line}");
    assert_eq!((ledger.requests, ledger.connections, ledger.bad_requests), (4, 4, 0));
}

#[test]
fn an_objective_is_judged_by_what_it_claims_and_a_name_is_given_on_as_its_address() {
    let Some((lab, nobody)) = Lab::with_port("wrk") else { return };
    let sink = slow_sink(Nanos::from_millis(2));
    let words = "--generator wrk -c 2 --for 1s --fail-if 'p99 > 0s' --fail-if 'errors > 50%'";
    let ended = load(&lab, &format!("{words} http://localhost:{}/", sink.address().port())).with_code(1);
    assert!(ended.stdout.contains("p99 > 0s: it is"), "{}", ended.stdout);
    let line = claim(&lab).command_line;
    assert!(line.contains("Host: localhost:") && !line.contains("//localhost"), "{line}");
    let nowhere = format!("http://127.0.0.1:{nobody}/");
    load(&lab, &format!("--generator wrk --for 1s {nowhere}")).refused("start the server first, or correct the URL");
}

#[test]
fn another_generator_goes_only_where_it_may_either() {
    let lab = Lab::new();
    lab.executable("bin/wrk", "#!/bin/sh\necho ran >> ran\n");
    let mut command = lab.longtail("load --generator wrk http://192.0.2.1/");
    let ended = end(command.env("PATH", lab.path("bin"))).with_code(2);
    assert!(ended.stderr.contains("192.0.2.1 is outside the allowed networks"), "{}", ended.stderr);
    assert!(!lab.path("ran").exists(), "not even its version was asked for");
}

#[test]
fn a_generator_that_fails_is_one_line() {
    for (script, part) in [
        ("echo no such thing >&2; exit 3", "exit code 3: no such thing"),
        ("echo hello", "what it printed is not understood: hello"),
    ] {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Counter));
        lab.executable("bin/hey", &format!("#!/bin/sh\n{script}\n"));
        let mut command = lab.longtail(&format!("load --generator hey -c 1 --for 1s {}", url(&sink)));
        end(command.env("PATH", lab.path("bin"))).refused(part);
        assert!(lab.studies().is_empty());
    }
}

/// A load by a script that never ends and has a child of its own.
fn stuck(lab: &Lab, sink: &Sink) -> Running {
    lab.executable("bin/hey", "#!/bin/sh\n/bin/sleep 600 & /bin/sleep 600; echo\n");
    let mut command = lab.longtail(&format!("load --generator hey -c 1 --for 300s {}", url(sink)));
    let running = Running::start(command.env("PATH", lab.path("bin")));
    // longtail, its guard, the script and its two children.
    let living = || lab.living().len() >= 5;
    eventually(PATIENCE, || format!("{:?}", lab.living()), || living().then_some(()));
    running
}

#[test]
fn kill_9_takes_the_generator_and_its_children_along() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let running = stuck(&lab, &sink);
    running.send(Signal::KILL);
    eventually(PATIENCE, || format!("{:?}", lab.living()), || lab.living().is_empty().then_some(()));
}

#[test]
fn ctrl_c_ends_the_generator_and_leaves_nothing() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let running = stuck(&lab, &sink);
    running.send(Signal::INT);
    let ended = running.end().with_code(130);
    assert!(ended.stderr.contains("hey had not finished"), "{}", ended.stderr);
    assert!(lab.living().is_empty() && lab.studies().is_empty());
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

/// Both accounts of each run of a sweep agree, but for what was under way at its two ends.
fn assert_accounted(study: &SweepStudy, rows: usize) {
    assert_eq!(study.runs.len(), rows);
    for run in &study.runs {
        let claim = run.claim.as_ref().unwrap();
        assert!(claim.requests.is_some_and(|n| n > 0), "{run:#?}");
        assert!(claim.server_requests.is_some(), "{:?}", run.warnings);
        assert_eq!(claim.ledger_doubt(run.connections, 2), None, "{run:#?}");
    }
}

#[test]
fn a_sweep_on_the_server_inside_is_driven_by_wrk() {
    let Some(lab) = Lab::with("wrk") else { return };
    let ended =
        lab.run("sweep --server builtin -w2 -t2 -d0.01 --generator wrk --for 1s --multiples 1,2.5").with_code(0);
    let study = lab.study();
    assert_accounted(&study, 2);
    let connections: Vec<u32> = study.runs.iter().map(|run| run.connections).collect();
    assert_eq!(connections, [4, 10]);
    assert!(ended.stdout.contains("by wrk "), "{}", ended.stdout);
    assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout);
    let json = lab.run("report --format study").with_code(0).stdout;
    assert!(matches!(report::json::read(&json), Ok(Study::Sweep(again)) if again.runs == study.runs));
    // In Puma's columns too: that is what those of the seed's table were made of.
    let rows = lab.run("report --style puma").with_code(0).stdout;
    assert!(
        ["1.00", "2.50"].into_iter().all(|row| rows.lines().any(|line| line.trim_start().starts_with(row))),
        "{rows}"
    );
}

#[test]
fn hey_counts_with_pumas_workers() {
    if !has("hey") || !has("puma") {
        return;
    }
    let lab = Lab::new();
    lab.run("sweep -w2 -t2:2 -d0.01 --generator hey -R20 --multiples 1,3").with_code(0);
    let study = lab.study();
    assert_accounted(&study, 2);
    for run in &study.runs {
        let (claim, requests) = (run.claim.as_ref().unwrap(), u64::from(run.connections) * 20);
        assert_eq!((claim.requests, claim.server_requests), (Some(requests), Some(requests)));
        let by_worker: u64 = run.workers.iter().map(|share| share.requests).sum();
        assert_eq!((run.workers.len(), by_worker), (2, requests));
        assert_ne!(claim.audit, Believable::Unchecked);
    }
}

#[test]
fn ctrl_c_keeps_the_finished_runs_of_a_sweep() {
    let Some((lab, port)) = Lab::with_port("hey") else { return };
    // The rest of the hundred take longer than it takes to send a signal, also where the machine is busy.
    let multiples = vec!["1"; 100].join(",");
    let words =
        format!("sweep --server builtin -w1 -t2 -d0.01 --generator hey --for 1s --warm-up 0 --multiples {multiples}");
    let mut sweep = lab.start_at(port, &words);
    sweep.until(|_| lab.kept_runs() > 0);
    sweep.send(Signal::INT);
    let sweep = sweep.end().with_code(130);
    lab.assert_nothing_left(port);
    let study = lab.study();
    assert!(study.interrupted && !study.runs.is_empty() && study.runs.len() < 100);
    assert_eq!(lab.run("report").with_code(0).stdout, sweep.stdout);
}
