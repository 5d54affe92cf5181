//! What words of a sweep come to. What is refused: `tests/cli/mistakes.txt`.

use std::ffi::OsString;

use model::{Bodies, BodiesPlan, Nanos, Plan, Socket, Stop, Threads};

use super::SweepArgs;
use crate::args::{Command, Invocation, parse};

/// The flags of a command line, as a shell reads it.
fn asked(line: &str) -> SweepArgs {
    let words = shlex::split(line).unwrap().into_iter().map(OsString::from);
    match parse(std::iter::once("longtail".into()).chain(words)) {
        Ok(Invocation::Command(Command::Sweep(args) | Command::Bodies(args), _)) => *args,
        Err(mistake) => panic!("{line}: {mistake}"),
        Ok(_) => panic!("{line} is not a sweep"),
    }
}

fn plan(line: &str) -> Plan {
    asked(line).plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
}

fn bodies(line: &str) -> BodiesPlan {
    asked(line).bodies_plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
}

#[test]
fn pumas_own_words_work() {
    let plan = plan("sweep -w4 -t5:5 -R100 -d0.2 -k -Y -r app.ru -C puma.rb -stcp6");
    assert_eq!(plan.server.workers, Some(4));
    assert_eq!(plan.server.threads, Some(Threads { min: 5, max: 5 }));
    assert_eq!(plan.stream.stop, Stop::RequestsPerConnection(100));
    assert_eq!(plan.stream.delay, Some(Nanos::from_millis(200)));
    assert_eq!(plan.stream.target_path(), "/sleep0.2");
    assert_eq!(plan.stream.warm_up, Nanos::ZERO, "Puma's script has none");
    assert!(!plan.stream.keep_alive && plan.server.yjit);
    assert_eq!(plan.server.socket, Socket::Tcp6);
}

#[test]
fn another_servers_slots_are_its_workers_times_their_threads() {
    for (words, expected) in [("-w2 -t5", 10), ("-w4", 4), ("-t8", 8), ("-w2 -t5 --slots=10", 10)] {
        match plan(&format!("sweep --url=http://127.0.0.1:9/ {words} -- x")).server.kind {
            model::ServerKind::Command { slots, .. } => assert_eq!(slots, expected, "{words}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rails_is_asked_in_milliseconds() {
    for (words, path) in [
        ("--app=rails", "/sleep?ms=100"),
        ("--app=rails -d1.1", "/sleep?ms=1100"),
        ("--app=rails -d1500us", "/sleep?ms=1.5"),
        ("--app=rails --path=/x", "/x"),
        ("--app=sleep", "/sleep0.1"),
    ] {
        assert_eq!(plan(&format!("sweep {words}")).stream.target_path(), path);
    }
}

#[test]
fn a_kind_of_socket_has_the_names_of_pumas_scripts() {
    for (word, socket) in [("tcp", Socket::Tcp4), ("ssl", Socket::Ssl4), ("ssl6", Socket::Ssl6)] {
        assert_eq!(plan(&format!("sweep -s {word}")).server.socket, socket);
    }
}

#[test]
fn the_words_of_pumas_script_work() {
    let words = "-w2 -t5:5 -s tcp6 -b ac50,100 -c4 -T3 -D5 -d0.01 -Y -C puma.rb -r ci.ru -k";
    let asked = bodies(&format!("bodies {words}"));
    assert_eq!(asked.bodies.to_string(), "ac50,100");
    assert_eq!(asked.sockets, [Socket::Tcp6]);
    assert_eq!((asked.connections_on(10), asked.stream.stop), (12, Stop::After(Nanos::from_secs(5))));
    assert_eq!(asked.stream.delay, Some(Nanos::from_millis(10)));
    assert!(asked.server.yjit && !asked.stream.keep_alive);
    assert_eq!(bodies(&format!("sweep {words}")), asked, "a sweep takes them too");
}

#[test]
fn the_defaults_are_those_of_pumas_script() {
    let asked = bodies("bodies -w2 -t5:5");
    assert_eq!((asked.bodies.clone(), asked.runs()), (Bodies::default(), 28));
    assert_eq!((asked.streams_on(10), asked.connections_on(10)), (8, 16), "wrk -t8 -c16");
    assert_eq!(asked.stream.stop, Stop::After(Nanos::from_secs(10)));
    assert_eq!(bodies("sweep --bodies=acsi1,10,100,256,512,1024,2048 -w2 -t5:5"), asked);
}

#[test]
fn a_sweeps_connections_are_the_total() {
    assert_eq!(bodies("sweep -bs1 -c16").connections_on(10), 16);
    assert_eq!(bodies("bodies -bs1 -c16").connections_on(10), 8 * 16, "of each stream");
}
