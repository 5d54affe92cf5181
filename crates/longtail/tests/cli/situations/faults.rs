//! Servers, kernels and users that do what nobody expects.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock as _, Nanos, Verdict};
use rustix::process::Signal;
use testkit::http::Receiver;

use super::{Caused, Cells, Row, Seen, four_slots_served, served};
use crate::clock::SteadyClock;
use crate::lab::{Lab, Running, free_port, has};
use crate::load::{load, study};

#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "nobody listens",
            how: "a port without a listener",
            expected: Cells { exit: Some(2), ..Cells::default() },
            cause: || Caused::Seen(Seen::exit(&Lab::new().run(&format!("load http://127.0.0.1:{}/", free_port())))),
        },
        Row {
            name: "a server that answers with errors only",
            how: "503 to every request",
            expected: INVALID,
            cause: || of_answer("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
        },
        Row {
            name: "a server that speaks no HTTP",
            how: "another protocol's greeting to every request",
            expected: INVALID,
            cause: || of_answer("SSH-2.0-server\r\n\r\n"),
        },
        Row {
            name: "a server that resets some connections",
            how: "three requests in ten are reset",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --reset 30%", "-c 4 --for 2s"),
        },
        Row {
            name: "a server that resets all connections",
            how: "every request is reset",
            expected: INVALID,
            cause: || of_sink("--reset 100%", "-c 4 -n 40"),
        },
        Row {
            name: "a server that cuts some answers",
            how: "three answers in ten end in the middle",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --truncate 30%", "-c 4 --for 2s"),
        },
        Row {
            name: "a server that leaves some requests without an answer",
            how: "one in ten, --timeout 300ms",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --no-answer 10%", "-c 4 --for 2s --timeout 300ms"),
        },
        Row {
            name: "a server that answers nobody",
            how: "no answer at all, --timeout 300ms",
            expected: INVALID,
            cause: || of_sink("--no-answer 100%", "-c 4 -n 20 --timeout 300ms"),
        },
        Row {
            name: "a server that answers some with an error",
            how: "503 to one in ten",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --status 503:10%", "-c 4 --for 2s"),
        },
        Row {
            name: "a rate that is kept, with errors",
            how: "503 to one in ten of 50 a second, which is no rate that is kept",
            expected: SERVER,
            cause: || of_sink("--delay 100ms --status 503:10%", "--rate 50/s --for 2s"),
        },
        Row {
            name: "a server that closes its connections",
            how: "after each third answer",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --close-after 3", "-c 4 --for 2s"),
        },
        Row {
            name: "a server that stalls",
            how: "nothing goes out for 400 ms of each 500",
            expected: SERVER,
            cause: || of_sink("--delay 20ms --stall-every 500ms:400ms", "-c 8 --for 3s"),
        },
        Row {
            name: "an objective of failures that is missed",
            how: "503 to one in ten, --fail-if 'errors > 1%'",
            expected: Cells { exit: Some(1), ..SERVER },
            cause: || of_sink("--delay 20ms --status 503:10%", "-c 4 --for 2s --fail-if errors>1%"),
        },
        Row {
            name: "a head with a line that is folded",
            how: "obsolete line folding in every answer",
            expected: INVALID,
            cause: || of_answer("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n"),
        },
        Row { name: "a server that dies", how: "kill -9 after a second of 3", expected: SERVER, cause: dies },
        Row {
            name: "a load that is interrupted",
            how: "SIGINT after a second, 8 connections to four slots of 100 ms",
            expected: Cells { exit: Some(130), ..SERVER },
            cause: interrupted,
        },
        Row {
            name: "nobody who takes the statsd packets",
            how: "--statsd-to a port without a listener, 8 connections to four slots of 100 ms",
            expected: SERVER,
            cause: without_statsd,
        },
        Row {
            name: "no load at all is asked for",
            how: "--rate 0",
            expected: Cells { exit: Some(2), ..Cells::default() },
            cause: || Caused::Seen(Seen::exit(&Lab::new().run("load --rate 0/s http://127.0.0.1/"))),
        },
        Row {
            name: "somebody else uses the server",
            how: "puma -t2:2, and another client's requests meanwhile",
            expected: INVALID,
            cause: somebody_else,
        },
        Row {
            name: "a server whose answers name the wrong worker",
            how: "puma -w2 -t2:2, x-worker-pid: 1",
            expected: INVALID,
            cause: wrong_worker,
        },
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
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

/// A load in the middle, on four slots of 100 ms, to which `this` is done.
fn in_the_middle(words: &str, this: impl FnOnce(&Running, Running)) -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let words = format!("load --no-calibrate {words} {}", server.url);
    let running = Running::start(&mut lab.longtail(&words));
    SteadyClock.sleep(Nanos::from_secs(1));
    this(&running, server.running);
    let ended = running.end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

fn dies() -> Caused {
    in_the_middle("-c 8 --for 3s", |_, server| server.send(Signal::KILL))
}

fn interrupted() -> Caused {
    in_the_middle("-c 8 --for 600s", |load, server| {
        load.send(Signal::INT);
        // It still answers what is under way.
        SteadyClock.sleep(Nanos::from_secs(1));
        drop(server);
    })
}

fn without_statsd() -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let ended = load(&lab, &format!("-c 8 --for 2s --statsd-to 127.0.0.1:{} {}", free_port(), server.url));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

/// A sweep of the Puma on PATH with this app, and what else is done with its port meanwhile, until told that it is over.
fn swept(app: &str, words: &str, meanwhile: impl Fn(u16, &AtomicBool) + Sync) -> Caused {
    if !has("puma") {
        return Caused::Skipped("puma is not on PATH".to_owned());
    }
    let (lab, port, over) = (Lab::new(), free_port(), AtomicBool::new(false));
    lab.write("app.ru", app);
    let words = format!("sweep -r app.ru {words} --for 2s --warm-up 500ms --multiples 2 --no-calibrate");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| meanwhile(port, &over));
        let ended = Running::start(lab.longtail(&words).env("PUMA_TEST_PORT", port.to_string())).end();
        over.store(true, Ordering::Relaxed);
        ended
    });
    Caused::Seen(Seen::sweep(&ended, &lab.study()).without_discipline())
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
            SteadyClock.sleep(Nanos::from_millis(100));
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
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
