//! What words of a sweep come to, and what is refused.

use std::ffi::OsString;

use model::{Nanos, Plan, Socket, Stop, Threads};

use crate::args::{Command, Invocation, parse};

fn plan(words: &[&str]) -> Result<Plan, String> {
    let words = std::iter::once("longtail").chain(words.iter().copied()).map(OsString::from);
    match parse(words).map_err(|mistake| mistake.to_string())? {
        Invocation::Command(Command::Sweep(args)) => args.plan().map_err(|mistake| mistake.to_string()),
        _ => Err("not a sweep".to_owned()),
    }
}

#[test]
fn pumas_own_words_work() {
    let plan =
        plan(&["sweep", "-w4", "-t5:5", "-R100", "-d0.2", "-k", "-Y", "-r", "app.ru", "-C", "puma.rb", "-stcp6"])
            .unwrap();
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
    let slots = |words: &[&str]| match plan(&[&["sweep", "--url=http://127.0.0.1:9/"], words, &["--", "x"]].concat()) {
        Ok(Plan { server: model::ServerPlan { kind: model::ServerKind::Command { slots, .. }, .. }, .. }) => slots,
        other => panic!("{other:?}"),
    };
    assert_eq!(slots(&["-w2", "-t5"]), 10);
    assert_eq!(slots(&["-w4"]), 4, "a thread each");
    assert_eq!(slots(&["-t8"]), 8, "one process");
    assert_eq!(slots(&["-w2", "-t5", "--slots=10"]), 10);
}

#[test]
fn a_plan_printed_and_parsed_is_itself() {
    let cases: [&[&str]; 26] = [
        &["sweep"],
        &["sweep", "--body=s10", "--connections=16,20,64", "-w2"],
        &["sweep", "--body=i1", "-d0.01", "-r", "ci.ru", "-sssl4"],
        &["sweep", "--connections=1"],
        &["sweep", "-w4", "-t5:5", "-R100", "-d0.2", "-k"],
        &["sweep", "-w0", "-t0:16", "--for=1500ms", "--warm-up=0", "--multiples=0.5,1,1.5,6", "--repeat=3"],
        &[
            "sweep",
            "--no-calibrate",
            "-r",
            "my app.ru",
            "-C",
            "config/puma.rb",
            "-Y",
            "--path=/a?b=c",
            "--no-cool-down",
        ],
        &[
            "sweep",
            "--server=builtin",
            "-w2",
            "-t3",
            "--timeout=250ms",
            "--generator-threads=2",
            "--worker-header=x-pid",
        ],
        &["sweep", "--puma", "bundle exec puma", "-stcp6"],
        &["sweep", "-sssl4"],
        &["sweep", "-s", "ssl6", "-w2"],
        &["sweep", "-sunix", "-k"],
        &["sweep", "-saunix"],
        &["sweep", "--app=rails", "-d0.0015"],
        &["sweep", "--app=rails"],
        &["sweep", "--app=rails", "--path=/other"],
        &["sweep", "--app=sleep", "-sssl"],
        &["sweep", "--generator=hey", "-w2", "-R100"],
        &["sweep", "--inspect=none,app"],
        &["sweep", "--probe=proc", "--anatomy"],
        &["sweep", "--inspect=kernel"],
        &["sweep", "--inspect=app", "-k"],
        &["sweep", "--statsd-listen=localhost:8125"],
        &["sweep", "--statsd-listen=[::1]:0", "--slots=4", "--url=http://127.0.0.1:9/x", "--", "falcon"],
        &["sweep", "--slots=4", "--url=http://127.0.0.1:9/x", "--", "falcon", "serve", "-n", "4"],
        &["sweep", "-w2", "-t5", "--url=http://127.0.0.1:9/x", "--", "gunicorn", "-w2", "--threads", "5"],
    ];
    for words in cases {
        let asked = plan(words).unwrap();
        let printed = asked.arguments();
        let again = plan(&printed.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(again.as_ref(), Ok(&asked), "{printed:?}");
    }
}

#[test]
fn rails_is_asked_in_milliseconds() {
    let path = |words: &[&str]| plan(words).unwrap().stream.target_path();
    assert_eq!(path(&["sweep", "--app=rails"]), "/sleep?ms=100");
    assert_eq!(path(&["sweep", "--app=rails", "-d1.1"]), "/sleep?ms=1100");
    assert_eq!(path(&["sweep", "--app=rails", "-d1500us"]), "/sleep?ms=1.5");
    assert_eq!(path(&["sweep", "--app=rails", "--path=/x"]), "/x");
    assert_eq!(path(&["sweep", "--app=sleep"]), "/sleep0.1");
}

#[test]
fn a_kind_of_socket_has_the_names_of_pumas_scripts() {
    for (word, socket) in [("tcp", Socket::Tcp4), ("ssl", Socket::Ssl4), ("ssl6", Socket::Ssl6)] {
        assert_eq!(plan(&["sweep", "-s", word]).unwrap().server.socket, socket);
    }
}
