//! `longtail bodies` with the installed Puma: byte for byte what the app sent, on every kind of
//! socket. Skipped, with the reason, without Puma, Puma's SSL or IPv6.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use model::run::ShareSource;
use model::{BodiesStudy, BodyRun, Diagnostic, Study};
use rustix::process::Signal;

use crate::lab::{Lab, has, in_a_window, none_is_empty, soaks, sockets};
use crate::scenarios::is_there;
use crate::scenarios::laws::assert_conserved;

fn of_bodies(study: Study) -> BodiesStudy {
    let Study::Bodies(study) = study else { panic!("not a study of bodies") };
    *study
}

/// Warnings that requests or bytes differ from the server's count, or were not compared with it.
fn count_warnings(study: &BodiesStudy) -> Vec<&Diagnostic> {
    let all = study.warnings.iter().chain(study.runs.iter().flat_map(|run| &run.run.warnings));
    let is_one = |warning: &&Diagnostic| {
        matches!(
            warning,
            Diagnostic::Conservation { .. }
                | Diagnostic::LedgerUnknown { .. }
                | Diagnostic::ServedForNobody { .. }
                | Diagnostic::BytesDiffer { .. }
        )
    };
    all.filter(is_one).collect()
}

/// Checks that every response was complete, good and of the requested length.
fn assert_exact(run: &BodyRun) {
    let tally = &run.run.tally;
    let body = run.body;
    assert_conserved(&run.run);
    assert_eq!(tally.counts.good(), tally.counts.total(), "{body}: {:?}", tally.counts);
    assert_eq!(tally.all_responses(), tally.all_requests(), "{body}");
    assert_eq!(tally.body_bytes, tally.all_responses() * body.bytes(), "{body}");
    assert!(
        tally.received_bytes >= tally.body_bytes + 1000 * tally.all_responses(),
        "{body}: heads of a real app's size"
    );
    let content = (tally.all_responses() > 0).then_some(body.bytes() as f64);
    assert!(
        content.is_none() || run.content_bytes() == content,
        "{body}: {:?}",
        run.content_bytes()
    );
    assert!(
        run.server.cpu.is_some() && run.server.memory_bytes.is_some_and(|bytes| bytes > 1_000_000),
        "{body}"
    );
}

/// Runs all types and two sizes of bodies over these sockets, and checks that client and app count
/// the same bytes.
fn exact(sockets: &str, mode: &str) {
    in_a_window(|window| exact_for(&format!("-s {sockets} {mode} {window}")));
}

/// The same, only in `make soak`.
fn soaked(sockets: &str, mode: &str) {
    if soaks() {
        exact(sockets, mode);
    }
}

/// `None` if a run had no requests, or none has figures. The assertions hold for such runs, too.
fn exact_for(words: &str) -> Option<()> {
    let lab = Lab::new();
    let words = format!("bodies {words} -t2:2 -b acsi1,300 --no-calibrate --inspect proc");
    let printed = lab.run(&words);
    lab.assert_nothing_left(crate::lab::free_port());
    let printed = printed.measured(&lab)?;
    let study = of_bodies(lab.kept());
    assert_eq!(count_warnings(&study), Vec::<&Diagnostic>::new(), "{words}");
    let kinds = study.plan.sockets.len();
    assert_eq!((study.runs.len(), study.servers.len()), (8 * kinds, kinds));
    let workers = study.plan.server.workers.unwrap_or(1).max(1) as usize;
    for run in &study.runs {
        assert_exact(run);
        // Two slots and four connections.
        assert_eq!(run.run.connections as usize, (2 * workers * 4 / 5).max(1) * 2);
        assert_eq!(run.run.workers.len(), workers);
        assert!(run.run.workers.iter().all(|share| share.source == ShareSource::Header));
        if !study.plan.stream.keep_alive {
            assert_eq!(run.run.tally.connections_opened, run.run.tally.all_requests());
        }
    }
    // Unlike the rows printed meanwhile, the report knows all servers.
    let report = lab.run("report").with_code(0).stdout;
    for started in &study.servers {
        assert!(report.contains(&*started.server.url), "{report}");
    }
    assert_eq!(printed.remarks().len(), 1, "{}", printed.stderr);
    none_is_empty(study.runs.iter().map(|run| &run.run)).then_some(())
}

#[test]
fn bytes_are_the_apps_over_tcp() {
    if has("puma") {
        exact(if is_there("ipv6") { "tcp4,tcp6" } else { "tcp4" }, "");
        exact("tcp4", "-w2");
        soaked("tcp4", "-k");
    }
}

#[test]
fn bytes_are_the_apps_over_tls() {
    if is_there("ssl") {
        exact("ssl4", "-k");
        soaked(if is_there("ipv6") { "ssl4,ssl6" } else { "ssl4" }, "");
    }
}

#[test]
fn bytes_are_the_apps_over_unix_sockets() {
    if has("puma") {
        exact("unix,aunix", "-k --generator-threads 2");
        soaked("unix,aunix", "");
        soaked("aunix", "-w2");
        soaked("unix", "-w2 -k");
    }
}

#[test]
fn bytes_are_the_apps_for_the_largest_body() {
    if !has("puma") {
        return;
    }
    in_a_window(|window| {
        let lab = Lab::new();
        let ended = lab.run(&format!(
            "bodies -t2:2 -b acsi2048 {window} --no-calibrate --inspect none -c1 -T2"
        ));
        ended.measured(&lab)?;
        let study = of_bodies(lab.kept());
        assert_eq!((count_warnings(&study), study.runs.len()), (Vec::new(), 4));
        study.runs.iter().for_each(assert_exact);
        assert!(study.runs.iter().all(|run| run.run.connections == 2));
        none_is_empty(study.runs.iter().map(|run| &run.run)).then_some(())
    });
}

/// It is unknown which count includes that response, so the figures are not the server's alone.
#[test]
fn a_request_by_another_client_makes_the_counts_differ() {
    let Some((lab, port)) = Lab::with_port("puma") else { return };
    let words = "bodies -t2:2 -b s1 -D 4 --warm-up 0.05 --no-calibrate";
    let mut bodies = lab.start_at(port, words);
    // More than the request that asks whether it is ready.
    bodies.until(|_| sockets(port).open > 1);
    // Stop it, so that neither the run nor its server ends meanwhile.
    bodies.send(Signal::STOP);
    let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
    other.write_all(b"GET /s7 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    other.read_to_end(&mut Vec::new()).unwrap();
    bodies.send(Signal::CONT);
    bodies.end().with_code(3);
    let study = of_bodies(lab.kept());
    let [Diagnostic::BytesDiffer { client, app }, Diagnostic::Conservation { .. }] =
        study.warnings[..]
    else {
        panic!("{:?}", study.warnings)
    };
    assert_eq!(app, client + 7 * 1024);
}

#[test]
fn report_reprints_pumas_columns_and_the_printed_command_repeats_the_study() {
    let Some(lab) = Lab::with("puma") else { return };
    let seed = lab
        .run("bodies -t2:2 -b si1,2 -D 0.1 --warm-up 0 --no-calibrate --inspect none --style puma")
        .with_code(0);
    assert_eq!(
        seed.stderr.lines().count(),
        5,
        "one line for each run, and one with the path of the study: {}",
        seed.stderr
    );
    let head = "Type   req/sec    50%     75%     90%     99%    100%  Resp Size\n";
    assert!(seed.stdout.starts_with(head), "{}", seed.stdout);
    assert_eq!(lab.run("report --style puma").with_code(0).stdout, seed.stdout);
    let study = of_bodies(lab.kept());
    let other = Lab::new();
    other.run(study.command_line.strip_prefix("longtail ").unwrap()).with_code(0);
    assert_eq!(of_bodies(other.kept()).plan, study.plan);
}

#[test]
fn each_pass_has_every_body_once_on_its_own_server() {
    if !has("puma") {
        return;
    }
    let study = in_a_window(|window| {
        let lab = Lab::new();
        let ended =
            lab.run(&format!("bodies -t1:1 -b as1,2 {window} --no-calibrate --repeat 2 --seed 3"));
        ended.measured(&lab)?;
        Some(of_bodies(lab.kept()))
            .filter(|study| none_is_empty(study.runs.iter().map(|run| &run.run)))
    });
    let done: Vec<_> = study.runs.iter().map(|run| (run.run.repeat, run.body)).collect();
    let planned: Vec<_> = (1..=2)
        .flat_map(|repeat| {
            study.plan.pass(repeat).remove(0).1.into_iter().map(move |body| (repeat, body))
        })
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
