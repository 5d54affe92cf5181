//! What cannot be done: exit 2, one line that says what is wrong and how to fix it, and no load for anybody.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::http::Receiver;

use crate::lab::{LONGTAIL, Lab, can, end, has};

/// The one line of ours that says `part`; the server's own lines, which begin with a bar, are beside it.
fn refused(lab: &Lab, command: &mut Command, part: &str) -> Vec<String> {
    let ended = end(command).with_code(2);
    let (quoted, ours): (Vec<&str>, Vec<&str>) = ended.stderr.lines().partition(|line| line.starts_with("  | "));
    assert!(ours.len() == 1 && ours[0].starts_with("longtail: ") && ours[0].contains(part), "{part}: {}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert!(lab.living().is_empty(), "{:?}", lab.living());
    assert!(lab.studies().is_empty());
    quoted.into_iter().map(str::to_owned).collect()
}

#[test]
fn a_port_that_puma_is_to_have_and_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for setting in ["PUMA_TEST_PORT", "PUMA_TEST_CTRL"] {
        let Some(lab) = Lab::with("puma") else { return };
        refused(&lab, lab.longtail("sweep").env(setting, &port), &port);
    }
    taken.set_nonblocking(true).unwrap();
    assert!(taken.accept().is_err(), "nobody was sent anything");
}

#[test]
fn a_puma_that_ends_at_boot_shows_its_last_lines() {
    if !has("puma") {
        return;
    }
    for workers in ["", "-w2"] {
        let lab = Lab::new();
        lab.write("broken.ru", "raise 'no database here'\n");
        let words = format!("sweep {workers} -t1:1 -r broken.ru");
        // In cluster mode Puma starts workers that fail again and again: the second is enough, however long one would wait.
        let part = if workers.is_empty() { "last lines are above" } else { "Puma cannot start its workers" };
        let quoted = refused(&lab, &mut lab.longtail(&format!("{words} --boot-timeout 600s")), part);
        assert!(quoted.iter().any(|line| line.contains("broken.ru:1")), "{quoted:?}");
    }
    let lab = Lab::new();
    lab.write("broken.ru", "run lambda { |env| [200, {}, [\n");
    let quoted = refused(&lab, &mut lab.longtail("sweep -w2 -r broken.ru --boot-timeout 600s"), "-w0 it says more");
    assert!(quoted.iter().any(|line| line.contains("! Unable to start worker")), "{quoted:?}");
}

#[test]
fn a_config_file_that_is_no_ruby_shows_what_puma_says() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("broken.rb", "threads(\n");
    let quoted = refused(&lab, &mut lab.longtail("sweep -C broken.rb"), "no load was sent");
    assert!(quoted.iter().any(|line| line.contains("broken.rb")), "{quoted:?}");
}

#[test]
fn an_app_that_answers_with_an_error_is_asked_only_once() {
    if !has("puma") {
        return;
    }
    for (status, asked) in [("404", "is the path right?"), ("500", "does the app work?")] {
        let lab = Lab::new();
        let app = format!("run lambda {{ |env| File.write('asked', 'x', mode: 'a'); [{status}, {{}}, []] }}\n");
        lab.write("app.ru", &app);
        let said = format!("GET /posts is answered {status}, so there is nothing to measure: {asked}");
        let above = refused(&lab, &mut lab.longtail("sweep -t1:1 -r app.ru --path /posts"), &said);
        assert_eq!(above.is_empty(), status == "404", "{above:?}");
        assert_eq!(fs::read_to_string(lab.path("asked")).unwrap(), "x");
    }
}

#[test]
fn a_server_that_is_there_already_is_not_taken_for_the_one_we_start() {
    let other = Receiver::start();
    let words = format!("sweep --slots 1 --url {} --path / -d0.01 -R1 --multiples 1 -- sleep 60", other.url());
    Lab::new().run(&words).with_code(2);
}

#[test]
fn a_name_that_is_no_text_is_written_to() {
    use std::os::unix::ffi::OsStrExt as _;
    let (lab, sink) = (Lab::new(), crate::load::sink(sink::SinkBody::Counter));
    let name = std::ffi::OsStr::from_bytes(b"not\xfftext.study.json");
    let mut command = lab.longtail("load -c 1 -n 5 --no-calibrate");
    let ended = end(command.arg(crate::load::url(&sink)).arg("-o").arg(name)).with_code(0);
    assert!(ended.stdout.contains("not\u{fffd}text.study.json"), "{}", ended.stdout);
    assert!(fs::read_dir(lab.path("")).unwrap().flatten().any(|entry| entry.file_name() == name));
}

#[test]
fn what_a_server_says_does_nothing_to_a_terminal() {
    let lab = Lab::new();
    let words = "sweep --slots 1 --url http://127.0.0.1:1/ -- sh -c";
    let mut command = lab.longtail(words);
    let quoted = refused(&lab, command.arg("printf '\\033]0;gone\\007 no database\\n' >&2; exit 3"), "exit code 3");
    assert_eq!(quoted, ["  | \\u001b]0;gone\\u0007 no database"]);
}

/// longtail with so many descriptors and without the right of root to have more.
fn with_descriptors(lab: &Lab, limits: &str, words: &str) -> Option<Command> {
    let mut wrapped = lab.program("sh");
    wrapped.args(["-c", &format!("{limits} && exec \"$@\""), "sh"]);
    if rustix::process::geteuid().is_root() {
        let drop_right = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"];
        let tried = Command::new("setpriv").args(drop_right).arg("true").stderr(Stdio::null()).status();
        if !can(tried.is_ok_and(|status| status.success()), "root cannot give up CAP_SYS_RESOURCE (setpriv)") {
            return None;
        }
        wrapped.arg("setpriv").args(drop_right);
    }
    wrapped.arg(Path::new(LONGTAIL)).args(words.split_ascii_whitespace());
    Some(wrapped)
}

#[test]
fn more_connections_than_descriptors_are_refused() {
    let lab = Lab::new();
    let words = "sweep --server builtin -t50:50 -d0.01 -R1 --multiples 1,4";
    if let Some(mut command) = with_descriptors(&lab, "ulimit -n 200", words) {
        refused(&lab, &mut command, "ulimit -n 264");
    }
}

#[test]
fn descriptors_are_raised_where_that_is_allowed() {
    let lab = Lab::new();
    let words = "sweep --server builtin -t50:50 -d0.01 -R1 --multiples 1,4";
    if let Some(mut command) = with_descriptors(&lab, "ulimit -Sn 100 && ulimit -Hn 400", words) {
        end(&mut command).with_code(0);
        let study = lab.study();
        assert_eq!(study.runs[1].tally.counts.good(), 200);
    }
}

#[test]
fn without_words_there_is_the_short_help() {
    let ended = Lab::new().run("").with_code(2);
    assert!(
        ended.stderr.contains("longtail sweep -r config.ru") && ended.stderr.lines().count() < 15,
        "{}",
        ended.stderr
    );
}
