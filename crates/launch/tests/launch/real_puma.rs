//! The Puma of this machine, in both modes, from a plan to its end. Skipped, with the reason, where
//! there is none.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use launch::puma::BootLines;
use launch::puma::prepare;
use launch::{Addresses, LaunchError, Server, ServerExit, Surroundings};
use model::{Endpoint, ServerPlan, Threads};
use testkit::machine::puma;

use crate::kit::{PATIENCE, children, eventually, folder, guard, lives};
use testkit::clock::REAL_CLOCK;

fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// The worker that says it answered.
fn worker(answer: &str) -> u32 {
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix("x-worker-pid: "))
        .expect("the header is there");
    line.parse().unwrap()
}

#[expect(clippy::print_stderr, reason = "a skip says why")]
fn runs_and_leaves_nothing(workers: Option<u32>) {
    let threads = Some(Threads { min: 1, max: 3 });
    let plan = ServerPlan { threads, ..puma(workers, None) };
    let folder = folder();
    let around = Surroundings { dir: folder.path().to_owned(), ..Surroundings::here().unwrap() };
    let puma = match prepare(&plan, &Addresses::default(), &around) {
        Err(LaunchError::NoPuma) => return eprintln!("skipped: puma is not on PATH"),
        puma => puma.unwrap(),
    };
    let address = puma.bind.place.tcp().unwrap();
    let server = Server::start(&puma.spec, &guard(), &REAL_CLOCK).unwrap();
    let answer = eventually("a response", || {
        assert_eq!(server.exited(), None, "{:?}", server.output());
        get(address, "/sleep0")
    });
    assert!(answer.ends_with("\r\n\r\nslept 0 s\n"), "{answer}");
    assert!(answer.contains("\r\ncontent-type: text/plain\r\n"), "{answer}");
    assert!(get(address, "/sleep0.01").unwrap().ends_with("slept 0.01 s\n"));
    for path in ["/", "/sleep", "/sleepy", "/sleep1x", "/sleep5/more"] {
        assert!(get(address, path).unwrap().ends_with("did not sleep\n"), "{path}");
    }

    // The kernel decides which of the two workers responds; it must be one of this server's.
    let master = server.pid();
    let mut family = vec![master];
    if workers.unwrap_or(0) > 0 {
        family.extend(eventually("all workers", || {
            Some(children(master)).filter(|pids| pids.len() as u32 == workers.unwrap())
        }));
        assert!(family[1..].contains(&worker(&answer)), "{answer}");
    } else {
        assert_eq!(worker(&answer), master);
    }

    let output = server.output();
    let facts = BootLines::read(output.lines());
    assert!(
        facts.version.is_some() && facts.runtime.is_some_and(|runtime| runtime.contains("ruby"))
    );
    let Endpoint::Unix(socket) = &puma.control.address else { panic!("{:?}", puma.control) };
    eventually("the control socket", || socket.exists().then_some(()));

    let stopped = server.stop(PATIENCE, &REAL_CLOCK);
    assert_ne!(stopped, ServerExit::Signal(9));
    assert_ne!(stopped, ServerExit::Unknown);
    assert!(!family.iter().any(|pid| lives(*pid)));
    assert!(TcpStream::connect(address).is_err());
    assert!(
        server
            .output()
            .lines()
            .any(|line| line.ends_with("Goodbye!") || line.contains("Gracefully"))
    );
    let scratch = socket.parent().unwrap().to_owned();
    drop((server, puma));
    assert!(!scratch.exists());
}

#[test]
fn puma_runs_and_leaves_nothing_in_single_mode_and_in_cluster_mode() {
    runs_and_leaves_nothing(None);
    runs_and_leaves_nothing(Some(2));
}
