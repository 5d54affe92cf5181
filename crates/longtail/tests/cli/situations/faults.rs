//! Servers, kernels and users that do what nobody expects.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock as _, Diagnostic, Grade, LoadStudy, Nanos, Verdict};
use rustix::process::Signal;
use testkit::http::Receiver;

use super::{Caused, Cells, Row, Seen, four_slots_served, row, served, wants};
use crate::clock::REAL_CLOCK;
use crate::lab::{Lab, Running, free_port};
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("nobody listens", "a port without a listener", Cells { exit: Some(2), ..Cells::default() }, || {
            Ok(Seen::exit(&Lab::new().run(&format!("load http://127.0.0.1:{}/", free_port()))))
        }),
        row("a server that answers with errors only", "503 to every request", INVALID, || {
            of_answer("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
        }),
        row(
            "errors only, and an objective of failures",
            "404 to every request, --fail-if 'errors > 50%'",
            INVALID,
            || of_sink("--status 404:100%", "-c 2 -n 20 --fail-if errors>50%"),
        )
        .proves(|seen| {
            let LoadStudy { run, plan, .. } = seen.load_study();
            assert!(!run.held_against(&plan.thresholds[0]).expect("the run has requests").is_met);
        }),
        row("errors only, and an objective of times", "the same, --fail-if 'p99 > 100s'", INVALID, || {
            of_sink("--status 404:100%", "-c 2 -n 20 --fail-if p99>100s")
        }),
        row("a server that speaks no HTTP", "another protocol's greeting to every request", INVALID, || {
            of_answer("SSH-2.0-server\r\n\r\n")
        }),
        row("a server that resets some connections", "three requests in ten are reset", SERVER, || {
            of_sink("--delay 20ms --reset 30%", "-c 4 --for 2s")
        })
        .soaked(),
        row("a server that resets all connections", "every request is reset", INVALID, || {
            of_sink("--reset 100%", "-c 4 -n 40")
        }),
        row("a server that cuts some answers", "three answers in ten end in the middle", SERVER, || {
            of_sink("--delay 20ms --truncate 30%", "-c 4 --for 2s")
        })
        .soaked(),
        row("a server that leaves some requests without an answer", "one in ten, --timeout 300ms", SERVER, || {
            of_sink("--delay 20ms --no-answer 10%", "-c 4 --for 2s --timeout 300ms")
        }),
        row("a server that answers nobody", "no answer at all, --timeout 300ms", INVALID, || {
            of_sink("--no-answer 100%", "-c 4 -n 20 --timeout 300ms")
        }),
        row("a server that answers some with an error", "503 to one in ten", SERVER, || {
            of_sink("--delay 20ms --status 503:10%", "-c 4 --for 2s")
        }),
        row(
            "a rate that is kept, with errors",
            "503 to one in ten of 50 a second, which is no rate that is kept",
            SERVER,
            || of_sink("--delay 100ms --status 503:10%", "--rate 50/s --for 2s"),
        )
        .soaked(),
        row("a server that closes its connections", "after each third answer", SERVER, || {
            of_sink("--delay 20ms --close-after 3", "-c 4 --for 2s")
        }),
        row("a server that stalls", "nothing goes out for 400 ms of each 500", SERVER, || {
            of_sink("--delay 20ms --stall-every 500ms:400ms", "-c 8 --for 2s")
        }),
        row("a server that stalls, open loop", "the same, 400 requests a second over 16 connections", SERVER, || {
            of_sink("--delay 20ms --stall-every 500ms:400ms", "--rate 400/s -c 16 --for 2s")
        }),
        row(
            "an objective of failures that is missed",
            "503 to one in ten, --fail-if 'errors > 1%'",
            Cells { exit: Some(1), ..SERVER },
            || of_sink("--delay 20ms --status 503:10%", "-c 4 --for 2s --fail-if errors>1%"),
        ),
        row("a head with a line that is folded", "obsolete line folding in every answer", INVALID, || {
            of_answer("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n")
        }),
        row("a server that dies", "kill -9 after a second of 3", SERVER, dies),
        row(
            "a load that is interrupted",
            "SIGINT after a second, 8 connections to four slots of 100 ms",
            Cells { exit: Some(130), ..SERVER },
            interrupted,
        )
        .soaked(),
        row(
            "nobody who takes the statsd packets",
            "--statsd-to a port without a listener, 8 connections to four slots of 100 ms",
            SERVER,
            without_statsd,
        ),
        row("no load at all is asked for", "--rate 0", Cells { exit: Some(2), ..Cells::default() }, || {
            Ok(Seen::exit(&Lab::new().run("load --rate 0/s http://127.0.0.1/")))
        }),
        row(
            "somebody else uses the server",
            "puma -t2:2, and another client's requests meanwhile",
            INVALID,
            somebody_else,
        )
        .proves(|seen| seen.graded(Grade::Failed, is_conservation)),
        row("a server whose answers name the wrong worker", "puma -w2 -t2:2, x-worker-pid: 1", INVALID, wrong_worker)
            .proves(|seen| {
                seen.graded(Grade::Failed, is_conservation);
                assert!(!seen.printed.contains("where the response time went"), "that is printed where it is forced");
            }),
    ]
}

const INVALID: Cells = Cells { exit: Some(3), verdict: Some(Verdict::Invalid), limit: None, discipline: None };

const SERVER: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

/// A load on a sink with these words.
fn of_sink(words: &str, load_words: &str) -> Caused {
    let lab = Lab::new();
    let server = served(&lab, words);
    let ended = load(&lab, &format!("{load_words} {}", server.url));
    Ok(Seen::load(&ended, &study(&lab)))
}

/// A load in the middle, on four slots of 100 ms, to which `this` is done.
fn in_the_middle(words: &str, this: impl FnOnce(&Running, Running)) -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let words = format!("load --no-calibrate {words} {}", server.url);
    let running = lab.start(&words);
    REAL_CLOCK.sleep(Nanos::from_secs(1));
    this(&running, server.running);
    let ended = running.end();
    Ok(Seen::load(&ended, &study(&lab)))
}

fn dies() -> Caused {
    in_the_middle("-c 8 --for 3s", |_, server| server.send(Signal::KILL))
}

fn interrupted() -> Caused {
    in_the_middle("-c 8 --for 600s", |load, server| {
        load.send(Signal::INT);
        // It still answers what is under way.
        REAL_CLOCK.sleep(Nanos::from_secs(1));
        drop(server);
    })
}

fn without_statsd() -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let ended = load(&lab, &format!("-c 8 --for 2s --statsd-to 127.0.0.1:{} {}", free_port(), server.url));
    Ok(Seen::load(&ended, &study(&lab)))
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
    Ok(Seen::sweep(&ended, &lab.study()).without_discipline())
}

fn is_conservation(check: &Diagnostic) -> bool {
    matches!(check, Diagnostic::Conservation { .. })
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

fn wrong_worker() -> Caused {
    let app = "run lambda { |env| sleep 0.01; [200, {'x-worker-pid' => '1'}, ['ok']] }\n";
    swept(app, "-w2 -t2:2", |_, _| ())
}

/// A load on a server that has this one answer.
fn of_answer(answer: &'static str) -> Caused {
    let (lab, server) = (Lab::new(), Receiver::answering(answer));
    let ended = load(&lab, &format!("-n 20 -c 2 {}", server.url()));
    Ok(Seen::load(&ended, &study(&lab)))
}
