//! `longtail bodies` against the Puma of this machine: byte for byte what the app answered, on every kind of socket.
//! Skipped, with the reason, where there is no Puma, or none with SSL, or no IPv6.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use model::run::ShareSource;
use model::{BodiesStudy, BodyRun, Diagnostic, Outcome, Stop, Study};
use rustix::process::Signal;

use crate::lab::{Lab, Running, assert_conserved, free_port, has, in_a_window, none_is_empty, soaks};
use crate::sockets::{has_ipv6, has_ssl};

fn read(lab: &Lab) -> BodiesStudy {
    let studies = lab.studies();
    assert_eq!(studies.len(), 1, "{studies:?}");
    let Study::Bodies(study) = report::json::read(&fs::read_to_string(&studies[0]).unwrap()).unwrap() else {
        panic!("not of bodies")
    };
    *study
}

/// What speaks against the account, of requests or of bytes, or says that it was not compared.
fn count_warnings(study: &BodiesStudy) -> Vec<&Diagnostic> {
    let all = study.warnings.iter().chain(study.runs.iter().flat_map(|run| &run.run.warnings));
    let is_one = |warning: &&Diagnostic| {
        matches!(
            warning,
            Diagnostic::Conservation { .. } | Diagnostic::LedgerUnknown { .. } | Diagnostic::BytesDiffer { .. }
        )
    };
    all.filter(is_one).collect()
}

/// Every answer was whole, good and of the length that was asked for.
fn assert_exact(run: &BodyRun) {
    let (tally, body) = (&run.run.tally, run.body);
    assert_conserved(&run.run);
    assert_eq!(tally.counts.good(), tally.counts.total(), "{body}: {:?}", tally.counts);
    assert_eq!(tally.all_answers(), tally.all_requests(), "{body}");
    assert_eq!(tally.body_bytes, tally.all_answers() * body.bytes(), "{body}");
    assert!(
        tally.received_bytes >= tally.body_bytes + 1000 * tally.all_answers(),
        "{body}: heads of a real app's size"
    );
    let content = (tally.all_answers() > 0).then_some(body.bytes() as f64);
    assert!(content.is_none() || run.content_bytes() == content, "{body}: {:?}", run.content_bytes());
    assert!(run.server.cpu.is_some() && run.server.memory_bytes.is_some_and(|bytes| bytes > 1_000_000), "{body}");
}

/// All types of three sizes over the kinds of socket: the client's account of bytes is the app's own.
fn exact(sockets: &str, mode: &str) {
    in_a_window(|window| exact_for(&format!("-s {sockets} {mode} {window}")).then_some(()));
}

/// The same in `make soak`.
fn soaked(sockets: &str, mode: &str) {
    if soaks() {
        exact(sockets, mode);
    }
}

/// Whether there were requests in each run; all that is asserted holds without any too.
fn exact_for(words: &str) -> bool {
    let lab = Lab::new();
    let words = format!("bodies {words} -t2:2 -b acsi1,10,300 --no-calibrate");
    let printed = lab.run(&words).with_code(0);
    lab.assert_nothing_left(0);
    let study = read(&lab);
    assert_eq!(count_warnings(&study), Vec::<&Diagnostic>::new(), "{words}");
    let kinds = study.plan.sockets.len();
    assert_eq!((study.runs.len(), study.servers.len()), (12 * kinds, kinds));
    let workers = study.plan.server.workers.unwrap_or(1).max(1) as usize;
    for run in &study.runs {
        assert_exact(run);
        // Four fifths of the slots, two connections each.
        assert_eq!(run.run.connections as usize, (2 * workers * 4 / 5).max(1) * 2);
        assert_eq!(run.run.workers.len(), workers);
        assert!(run.run.workers.iter().all(|share| share.source == ShareSource::Header));
        if !study.plan.stream.keep_alive {
            assert_eq!(run.run.tally.connections_opened, run.run.tally.all_requests());
        }
    }
    // The others were not started yet when the rows began.
    let report = lab.run("report").with_code(0).stdout;
    for started in &study.servers {
        assert!(report.contains(&started.server.url), "{report}");
    }
    assert_eq!(printed.remarks().len(), 1, "{}", printed.stderr);
    none_is_empty(study.runs.iter().map(|run| &run.run))
}

#[test]
fn bytes_are_the_apps_over_tcp() {
    if has("puma") {
        exact(if has_ipv6() { "tcp4,tcp6" } else { "tcp4" }, "");
        soaked("tcp4", "-k");
    }
}

#[test]
fn bytes_are_the_apps_over_tls() {
    if has_ssl() {
        exact("ssl4", "-k");
        soaked(if has_ipv6() { "ssl4,ssl6" } else { "ssl4" }, "");
    }
}

#[test]
fn bytes_are_the_apps_over_unix_sockets() {
    if has("puma") {
        exact("unix,aunix", "-k --generator-threads 2");
        soaked("unix,aunix", "");
    }
}

#[test]
fn bytes_are_the_apps_with_two_workers() {
    if has("puma") {
        exact("tcp4", "-w2");
        soaked("aunix", "-w2");
        soaked("unix", "-w2 -k");
    }
}

#[test]
fn the_largest_of_pumas_sizes_is_exact_too() {
    if !has("puma") {
        return;
    }
    in_a_window(|window| {
        let lab = Lab::new();
        lab.run(&format!("bodies -t2:2 -b acsi2048 {window} --no-calibrate -c1 -T2")).with_code(0);
        let study = read(&lab);
        assert_eq!(count_warnings(&study), Vec::<&Diagnostic>::new());
        assert_eq!(study.runs.len(), 4);
        for run in &study.runs {
            assert_exact(run);
            assert_eq!(run.run.connections, 2);
        }
        none_is_empty(study.runs.iter().map(|run| &run.run)).then_some(())
    });
}

/// Whose count that answer is in cannot be known, so no figure is the server's.
#[test]
fn an_answer_that_somebody_else_had_is_missed_by_the_account() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let words = "bodies -t2:2 -b s1 -D 4 --warm-up 0.05 --no-calibrate";
    let mut bodies = lab.start_at(port, words);
    bodies.until(|_| probe::sockets::of_port(port).unwrap().open > 0);
    // Stopped, so that neither the run nor its server ends meanwhile.
    bodies.send(Signal::STOP);
    let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
    other.write_all(b"GET /s7 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    other.read_to_end(&mut Vec::new()).unwrap();
    bodies.send(Signal::CONT);
    bodies.end().with_code(3);
    let study = read(&lab);
    let [Diagnostic::BytesDiffer { client, app }, Diagnostic::Conservation { .. }] = study.warnings[..] else {
        panic!("{:?}", study.warnings)
    };
    assert_eq!(app, client + 7 * 1024);
}

const CUTTER: &str = "\
count = 0
run lambda { |env|
  count += 1
  size = env['HTTP_BODY_CONF'][/\\d+/].to_i * 1024
  size -= 1 if count > 2 && count.even?
  [200, {'content-length' => size.to_s}, ['x' * size]]
}
";

#[test]
fn an_answer_of_another_length_is_an_error_that_is_shown() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("cutter.ru", CUTTER);
    let printed = lab.run("bodies -r cutter.ru -t1:1 -b s3 -D 0.5 --warm-up 0 --no-calibrate").with_code(0);
    let study = read(&lab);
    let tally = &study.runs[0].run.tally;
    let wrong = tally.counts.of(Outcome::WrongLength);
    assert!(wrong > 0 && wrong < tally.counts.total(), "{:?}", tally.counts);
    assert_eq!(tally.counts.good() + wrong, tally.counts.total());
    let reason = format!("{wrong} wrong length: 3072 bytes wanted, 3071 came");
    assert!(printed.stdout.contains(&reason), "{}", printed.stdout);
    let all_wrong = wrong + tally.unmeasured.of(Outcome::WrongLength);
    assert_eq!(tally.body_bytes, tally.all_answers() * 3072 - all_wrong, "each lacks a byte, and was counted as it is");
}

#[test]
fn an_app_that_does_not_go_by_the_header_is_refused_before_any_load() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("plain.ru", "run lambda { |env| [200, {}, ['ok']] }\n");
    lab.run("bodies -r plain.ru -t1:1 -b s1").refused("2 bytes of content and not with 1024");
    assert!(lab.studies().is_empty());
    lab.assert_nothing_left(0);
}

#[test]
fn no_other_server_stands_in_for_puma() {
    let lab = Lab::new();
    let nowhere = lab.path("nothing-here");
    Running::start(lab.longtail("bodies -b s1").env("PATH", nowhere)).end().refused("gem install puma");
}

/// Bodies whose first two runs are done, files among them.
fn in_the_third_run(lab: &Lab, port: u16) -> Running {
    // Those that are left take longer than it takes to send a signal, also where the machine is busy.
    let sizes = (1..=40).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
    let words = format!("bodies -w2 -t2:2 -b i{sizes} -D 0.4 --warm-up 0.05 --no-calibrate");
    let mut bodies = lab.start_at(port, &words);
    bodies.until(|_| lab.kept_runs() >= 2);
    bodies
}

#[test]
fn ctrl_c_keeps_the_runs_that_are_done() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let bodies = in_the_third_run(&lab, port);
    bodies.send(Signal::INT);
    let bodies = bodies.end().with_code(130);
    lab.assert_nothing_left(port);
    let study = read(&lab);
    assert!(study.interrupted && study.runs.len() >= 2, "{} runs", study.runs.len());
    for run in &study.runs[..2] {
        assert_exact(run);
        assert!(!run.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::Interrupted { .. })));
    }
    assert!(bodies.stdout.contains("interrupted by the user"), "{}", bodies.stdout);
    let again = lab.run("report").with_code(0).stdout;
    assert!(again.contains("interrupted by the user"), "{again}");
}

#[test]
fn kill_9_leaves_no_server_and_no_file() {
    if has("puma") {
        let (lab, port) = (Lab::new(), free_port());
        let bodies = in_the_third_run(&lab, port);
        assert!(fs::read_dir(lab.path("tmp")).unwrap().next().is_some(), "files are there as long as the server is");
        bodies.send(Signal::KILL);
        lab.assert_nothing_left(port);
    }
}

#[test]
fn a_study_is_printed_again_in_every_layout() {
    let Some(lab) = Lab::with("puma") else { return };
    let seed =
        lab.run("bodies -t2:2 -b si1,2 -D 0.1 --warm-up 0 --no-calibrate --like-seed -o kept.study.json").with_code(0);
    // A line a run, and where the study is.
    assert_eq!(seed.stderr.lines().count(), 5, "{}", seed.stderr);
    assert!(
        seed.stdout.starts_with("Type   req/sec    50%     75%     90%     99%    100%  Resp Size\n"),
        "{}",
        seed.stdout
    );
    let report = |words: &str| lab.run(&format!("report kept.study.json {words}")).with_code(0).stdout;
    assert_eq!(report("--style puma"), seed.stdout);
    let study = read(&lab);
    assert_eq!(report(""), report::full(&study.clone().into(), None, report::Width::ANY));
    assert_eq!(report("--format markdown"), report::answer::markdown(&study.clone().into(), None));
    assert_eq!(report("--format csv").lines().count(), 5);
    assert_eq!(report("--format study"), fs::read_to_string(lab.path("kept.study.json")).unwrap());
    // What is printed repeats it.
    let again = study.command_line.strip_prefix("longtail ").unwrap();
    let other = Lab::new();
    other.run(again).with_code(0);
    assert_eq!(read(&other).plan, study.plan);
}

#[test]
fn each_pass_has_every_body_once_on_a_server_of_its_own() {
    if !has("puma") {
        return;
    }
    let study = in_a_window(|window| {
        let lab = Lab::new();
        lab.run(&format!("bodies -t1:1 -b as1,2 {window} --no-calibrate --repeat 2 --seed 3")).with_code(0);
        Some(read(&lab)).filter(|study| none_is_empty(study.runs.iter().map(|run| &run.run)))
    });
    let done: Vec<_> = study.runs.iter().map(|run| (run.run.repeat, run.body)).collect();
    let planned: Vec<_> = (1..=2)
        .flat_map(|repeat| study.plan.pass(repeat).remove(0).1.into_iter().map(move |body| (repeat, body)))
        .collect();
    assert_eq!(done, planned);
    let pid = |repeat: u32| {
        let of_pass = study.runs.iter().filter(move |run| run.run.repeat == repeat);
        let mut pids: Vec<String> =
            of_pass.flat_map(|run| &run.run.workers).map(|share| share.worker.clone()).collect();
        pids.dedup();
        pids
    };
    assert_eq!((pid(1).len(), pid(2).len()), (1, 1));
    assert_ne!(pid(1), pid(2));
}

#[test]
fn a_ceiling_is_measured_for_each_size_and_kept_for_the_day() {
    let Some(lab) = Lab::with("puma") else { return };
    for _ in 0..2 {
        lab.run("sweep --bodies s1,300 -t1:1 --for 0.1 --warm-up 0.05 -s tcp4,unix -o kept.study.json").with_code(0);
        let Study::Bodies(study) =
            report::json::read(&fs::read_to_string(lab.path("kept.study.json")).unwrap()).unwrap()
        else {
            panic!("not of bodies")
        };
        assert!(study.runs.iter().all(|run| run.run.generator.ceiling.is_some()));
    }
    let kept = fs::read_dir(lab.path("data/longtail")).unwrap().flatten();
    let ceilings = kept.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("ceilings-")).unwrap();
    assert_eq!(fs::read_to_string(ceilings).unwrap().matches("answer_bytes").count(), 4, "two sizes over two sockets");
}

#[test]
fn a_sweep_of_a_body_over_given_connections() {
    let Some(lab) = Lab::with("puma") else { return };
    let printed = lab.run("sweep -t2:2 --body c20 --connections 2,3,7 -R5 --no-calibrate").with_code(0);
    let study = lab.study();
    assert_eq!(study.runs.iter().map(|run| run.connections).collect::<Vec<_>>(), [2, 3, 7]);
    assert!((study.runs[2].multiple.unwrap() - 3.5).abs() < 1e-9, "of two slots");
    for run in &study.runs {
        assert_conserved(run);
        assert_eq!(run.tally.counts.good(), run.tally.counts.total());
        assert_eq!(run.tally.body_bytes, run.tally.all_answers() * 20 * 1024);
        assert!(run.forecast.is_none(), "nobody knows how long it holds a thread");
    }
    assert!(printed.stdout.contains("path /c20"), "{}", printed.stdout);
    let lab = Lab::new();
    lab.run("sweep -t2:2 --body c20 --connections 2 --for 0.2 --warm-up 0.05 --no-calibrate");
    assert_eq!(lab.study().plan.stream.stop, Stop::After(model::Nanos::from_millis(200)));
}
