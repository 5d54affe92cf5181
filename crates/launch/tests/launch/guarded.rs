//! No process of a server is left behind, whatever the server does and whoever is killed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use launch::{GuardCommand, LaunchError, LaunchSpec, Server, ServerExit};
use model::Nanos;
use rustix::process::Signal;

use crate::kit::{
    PATIENCE, eventually, folder, guard, guard_program, lives, parent, process_group, said, send,
    shell,
};
use testkit::clock::REAL_CLOCK;

/// A child that leaves the server's process group and session, prints its process ID, and would
/// live for long.
const STRAY: &str = "setsid sh -c 'echo stray $$; exec sleep 1000'";

fn number(text: &str) -> u32 {
    text.parse().unwrap()
}

#[test]
fn a_server_that_ends_at_boot_says_why() {
    let server = shell(
        "echo starting; echo 'no such file: app.rb (LoadError)' >&2; echo '  from line 1'; exit 3",
    );
    let exit = eventually("the server's exit", || server.exited());
    assert_eq!(exit, ServerExit::Code(3));
    let output = server.output();
    assert_eq!(
        output.lines().collect::<Vec<_>>(),
        ["starting", "no such file: app.rb (LoadError)", "  from line 1"]
    );
    // Stopping what has ended is no mistake, and changes nothing.
    let stopped = server.stop(PATIENCE, &REAL_CLOCK);
    assert_eq!(stopped, ServerExit::Code(3));
}

#[test]
fn a_puma_that_does_not_tell_its_version_holds_nobody_up() {
    let told = |script: &str, longest| {
        let puma = ["sh", "-c", script].map(Into::into);
        launch::puma::printed_version(&puma, Path::new("/"), &guard(), &REAL_CLOCK, longest)
            .unwrap()
    };
    // The process that stays in the background has its output open, and does not delay the answer.
    assert_eq!(
        told("echo puma version 1.2; sleep 1000 &", PATIENCE).as_deref(),
        Some("puma version 1.2")
    );
    assert_eq!(told("exec sleep 1000", Nanos::from_millis(50)), None);
}

#[test]
fn a_server_is_given_the_time_to_stop_by_itself_and_killed_when_it_ignores_that() {
    for (trap, grace, exit, last) in [
        ("echo bye; exit 7", PATIENCE, ServerExit::Code(7), "bye"),
        ("", Nanos::from_millis(10), ServerExit::Signal(9), "ready"),
    ] {
        let server =
            shell(&format!("trap '{trap}' TERM; echo ready; while :; do sleep 0.02; done"));
        said(&server, "ready");
        assert_eq!(server.exited(), None);
        let stopped = server.stop(grace, &REAL_CLOCK);
        assert_eq!(stopped, exit);
        assert_eq!(server.output().lines().last(), Some(last));
        assert!(!lives(server.pid()));
        assert_eq!(server.exited(), Some(exit));
    }
}

#[test]
fn what_a_server_forked_away_does_not_outlive_it() {
    let server = shell(&format!("{STRAY} & ({STRAY} &) ; echo ready; wait"));
    said(&server, "ready");
    let strays: Vec<u32> = eventually("two strays", || {
        let output = server.output();
        let strays: Vec<u32> =
            output.lines().filter_map(|line| line.strip_prefix("stray ")).map(number).collect();
        (strays.len() == 2).then_some(strays)
    });
    assert!(strays.iter().all(|stray| lives(*stray)));
    let stopped = server.stop(PATIENCE, &REAL_CLOCK);
    assert_eq!(stopped, ServerExit::Signal(15));
    assert!(!strays.iter().any(|stray| lives(*stray)));
}

#[test]
fn a_server_that_becomes_a_daemon_is_one_that_ended() {
    let folder = folder();
    let there = folder.path().join("there");
    let there = there.display();
    let daemon = format!("setsid sh -c 'echo stray $$; touch {there}; exec sleep 1000'");
    let server =
        shell(&format!("({daemon} &); until test -e {there}; do sleep 0.02; done; exit 0"));
    let stray = number(&said(&server, "stray"));
    assert_eq!(eventually("the server's exit", || server.exited()), ServerExit::Code(0));
    assert!(!lives(stray));
}

#[test]
fn a_server_that_is_dropped_is_dead() {
    let server = shell(&format!("trap '' TERM; {STRAY} & echo ready; while :; do sleep 1; done"));
    let pid = server.pid();
    let stray = number(&said(&server, "stray"));
    drop(server);
    assert!(!lives(pid) && !lives(stray));
}

#[test]
fn nothing_lives_after_longtail_was_killed() {
    let script = format!("trap '' TERM; {STRAY} & echo ready; while :; do sleep 1; done");
    let mut longtail = Command::new(guard_program())
        .args(["sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(longtail.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next =
        |word: &str| lines.find_map(|line| line.strip_prefix(word).map(str::to_owned)).unwrap();
    let scratch = next("scratch ");
    let server = number(&next("server "));
    let stray = number(&next("stray "));
    let guard = parent(server);
    assert!(lives(server) && lives(stray) && lives(guard) && Path::new(&scratch).exists());

    longtail.kill().unwrap();
    longtail.wait().unwrap();
    eventually("the exit of all", || {
        (!lives(server) && !lives(stray) && !lives(guard)).then_some(())
    });
    assert!(!Path::new(&scratch).exists());
}

#[test]
fn a_server_dies_with_its_guard() {
    let server = shell("trap '' TERM; sleep 1000 & echo child $!; while :; do sleep 1; done");
    let child = number(&said(&server, "child"));
    send(parent(server.pid()), Signal::KILL);
    assert_eq!(eventually("the server's exit", || server.exited()), ServerExit::Unknown);
    eventually("the exit of all", || (!lives(server.pid()) && !lives(child)).then_some(()));
    let stopped = server.stop(PATIENCE, &REAL_CLOCK);
    assert_eq!(stopped, ServerExit::Unknown);
}

#[test]
fn a_terminals_signals_reach_neither_the_guard_nor_the_server() {
    let server = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done");
    said(&server, "ready");
    let guard = parent(server.pid());
    let ours = process_group(std::process::id());
    assert_eq!((process_group(server.pid()), process_group(guard)), (server.pid(), guard));
    assert!(ours != guard && ours != server.pid());
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        send(guard, signal);
    }
    // Only a guard that survived those signals can carry out this stop.
    let stopped = server.stop(PATIENCE, &REAL_CLOCK);
    assert_eq!(stopped, ServerExit::Code(7));
}

#[test]
fn a_server_that_writes_a_lot_is_never_held_up() {
    let server = shell(
        "head -c 20000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo written; exec sleep \
         1000",
    );
    said(&server, "written");
    // The first and the last 200 lines are kept.
    assert_eq!(server.output().lines().count(), 400);
}

#[test]
fn a_servers_environment_and_directory_are_those_asked_for() {
    let mut spec = LaunchSpec::command(["sh", "-c", "echo $GREETING from $PWD"], Path::new("/usr"));
    spec.env.insert("GREETING".into(), "hello".into());
    let server = Server::start(&spec, &guard(), &REAL_CLOCK).unwrap();
    eventually("the server's exit", || server.exited());
    assert_eq!(server.output().lines().collect::<Vec<_>>(), ["hello from /usr"]);
    assert_eq!(server.command_line(), "GREETING=hello sh -c 'echo $GREETING from $PWD'");
}

fn refused(spec: &LaunchSpec, guard: &GuardCommand) -> LaunchError {
    let error = Server::start(spec, guard, &REAL_CLOCK).unwrap_err();
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error
}

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let missing = refused(&LaunchSpec::command(["no-such-server", "-x"], Path::new("/")), &guard());
    assert!(
        matches!(&missing, LaunchError::ProgramNotFound { program, .. } if program == "no-such-server")
    );
    let nowhere = refused(&LaunchSpec::command(["sh"], Path::new("/no/such/place")), &guard());
    assert!(matches!(nowhere, LaunchError::Unusable(_)));

    let folder = folder();
    let script = folder.path().join("server");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = refused(&LaunchSpec::command([script], Path::new("/")), &guard());
    assert!(matches!(broken, LaunchError::NotExecuted { .. }), "{broken}");
}

#[test]
fn a_program_that_is_no_guard_is_noticed() {
    let spec = LaunchSpec::command(["sleep", "1000"], Path::new("/"));
    let guarded_by =
        |program: &str| refused(&spec, &GuardCommand { program: program.into(), args: Vec::new() });
    for program in ["/bin/false", "/bin/echo"] {
        let error = guarded_by(program);
        assert!(matches!(error, LaunchError::Guard(_)), "{program}: {error}");
    }
    for (program, why) in [
        ("/no/such/guard", "does not exist"),
        ("/etc", "is a directory"),
        ("/etc/passwd", "cannot be executed"),
    ] {
        let error = guarded_by(program).to_string();
        assert!(error.ends_with(&format!("'{program}' {why}")), "{error}");
    }
}
