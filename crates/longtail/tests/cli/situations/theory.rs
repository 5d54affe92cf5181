//! Which order of service a server has.

use model::{Discipline, Verdict};

use super::{Caused, Cells, Row, Seen, row, wants};
use crate::lab::{LONGTAIL, Lab, free_port, major};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "a Puma up to 6 with keep-alive, four times its threads",
            "puma -w2 -t2:2, 50 ms a request",
            at_its_limit(Discipline::Turns),
            || swept_up_to_6("-w2 -t2:2 -d0.05 --multiples 4"),
        ).proves(|seen| looks_like(seen, Discipline::Turns, true)),
        row(
            "a Puma up to 6 with a connection for each request, four times its threads",
            "the same with -k",
            at_its_limit(Discipline::Shared),
            || swept_up_to_6("-w2 -t2:2 -d0.05 --multiples 4 -k"),
        ).proves(|seen| looks_like(seen, Discipline::Shared, true)),
        row(
            "a Puma up to 6 with keep-alive, one and a half times its threads",
            "puma -w2 -t2:2, 50 ms a request: who waits does so in one line for both workers",
            at_its_limit(Discipline::Turns),
            || swept_up_to_6("-w2 -t2:2 -d0.05 --multiples 1.5"),
        ).soaked(),
        row(
            "a Puma up to 6 whose config file says queue_requests false",
            "puma -C FILE, four times its threads: no connection is kept, though the client would",
            at_its_limit(Discipline::Shared),
            || swept_up_to_6("-C no_queue.rb -d0.05 --multiples 4"),
        ),
        row(
            "a cluster of node, each worker one request at a time",
            "four workers of cluster.fork(), --slots 4 alone: who holds which connection is seen",
            at_its_limit(Discipline::Split),
            || swept_of_node("--slots 4 -d0.05 --multiples 3"),
        ).soaked(),
        row(
            "one line, or a line for each worker",
            "longtail sink --queue shared, two workers of two slots, four times as many connections: split looks the same",
            Cells { discipline: None, ..at_its_limit(Discipline::Shared) },
            || swept_of_sink("shared"),
        ).proves(|seen| looks_like(seen, Discipline::Shared, false)),
        row(
            "ten requests of a connection in turn",
            "longtail sink --queue inline10, as many workers, slots and connections",
            at_its_limit(Discipline::Turns),
            || swept_of_sink("inline10"),
        ).proves(|seen| looks_like(seen, Discipline::Turns, false)),
    ]
}

fn at_its_limit(discipline: Discipline) -> Cells {
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("threads"), discipline: Some(discipline) }
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

/// A sweep of the Puma on PATH.
fn swept_up_to_6(words: &str) -> Caused {
    wants("puma")?;
    let (seen, server) = swept(words);
    if (1..=6).contains(&major(&server)) { Ok(seen) } else { Err("this Puma is of another age".to_owned()) }
}

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

/// A sweep of that.
fn swept_of_node(words: &str) -> Caused {
    wants("node")?;
    let (lab, port) = (Lab::new(), free_port());
    lab.write("cluster.js", NODE);
    let words = format!(
        "sweep {words} --for 5s --warm-up 1s --no-calibrate --url http://127.0.0.1:{port}/ -- node cluster.js {port}"
    );
    let ended = lab.run(&words);
    Ok(Seen::sweep(&ended, &lab.study()))
}

/// A sweep of a sink with this queue: 16 connections, 50 ms a request.
fn swept_of_sink(queue: &str) -> Caused {
    let (lab, port) = (Lab::new(), free_port());
    let words = format!(
        "sweep -w2 -t2:2 -d0.05 --multiples 4 --for 5s --warm-up 1s --no-calibrate --url http://127.0.0.1:{port}/ -- {LONGTAIL} \
         sink --listen 127.0.0.1:{port} --queue {queue} --workers 2 --threads 2 --delay 50ms"
    );
    let ended = lab.run(&words);
    Ok(Seen::sweep(&ended, &lab.study()))
}

/// A sweep with these words, and the server that it was of.
pub(super) fn swept(words: &str) -> (Seen, model::ServerFacts) {
    let lab = Lab::new();
    lab.write("no_queue.rb", "workers 2\nthreads 2, 2\nqueue_requests false\n");
    let words = format!("sweep {words} --for 5s --warm-up 1s --no-calibrate");
    let ended = lab.start_at(free_port(), &words).end();
    let study = lab.study();
    (Seen::sweep(&ended, &study), study.server)
}
