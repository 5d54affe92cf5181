//! What words of a sweep come to. What is refused: `tests/cli/mistakes.txt`.

use std::ffi::OsString;

use model::plan::quoted;
use model::{Nanos, Plan, Socket, Stop, Threads};

use crate::args::{Command, Invocation, parse};

/// The plan of a command line, as a shell reads it.
fn plan(line: &str) -> Plan {
    let words = shlex::split(line).unwrap().into_iter().map(OsString::from);
    match parse(std::iter::once("longtail".into()).chain(words)) {
        Ok(Invocation::Command(Command::Sweep(args), _)) => {
            args.plan().unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
        }
        Err(mistake) => panic!("{line}: {mistake}"),
        Ok(_) => panic!("{line} is not a sweep"),
    }
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
fn a_plan_printed_and_parsed_is_itself() {
    for line in [
        "sweep",
        "sweep --body=s10 --connections=16,20,64 -w2",
        "sweep --body=i1 -d0.01 -r ci.ru -sssl4",
        "sweep --connections=1",
        "sweep -w4 -t5:5 -R100 -d0.2 -k",
        "sweep -w0 -t0:16 --for=1500ms --warm-up=0 --multiples=0.5,1,1.5,6 --repeat=3",
        "sweep --no-calibrate -r 'my app.ru' -C config/puma.rb -Y --path='/a?b=c' --no-cool-down",
        "sweep --server=builtin -w2 -t3 --timeout=250ms --generator-threads=2 --worker-header=x-pid",
        "sweep --puma 'bundle exec puma' -stcp6",
        "sweep -sssl4",
        "sweep -s ssl6 -w2",
        "sweep -sunix -k",
        "sweep -saunix",
        "sweep --app=rails -d0.0015",
        "sweep --app=rails",
        "sweep --app=rails --path=/other",
        "sweep --app=sleep -sssl",
        "sweep --generator=hey -w2 -R100",
        "sweep --inspect=none,app",
        "sweep --probe=proc --anatomy",
        "sweep --inspect=kernel",
        "sweep --inspect=app -k",
        "sweep --statsd-listen=localhost:8125",
        "sweep --statsd-listen=[::1]:0 --slots=4 --url=http://127.0.0.1:9/x -- falcon",
        "sweep --slots=4 --url=http://127.0.0.1:9/x -- falcon serve -n 4",
        "sweep -w2 -t5 --url=http://127.0.0.1:9/x -- gunicorn -w2 --threads 5",
    ] {
        let asked = plan(line);
        let printed = asked.arguments().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        assert_eq!(plan(&printed), asked, "{printed}");
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
