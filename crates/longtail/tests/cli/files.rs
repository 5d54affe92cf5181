//! The files that a user names: how they are replaced, who may read them, which links are followed,
//! and what is written to in place.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use testkit::http::Receiver;

use crate::lab::{LONGTAIL, Lab, can, end};

/// A user other than the one who runs the tests.
const SOMEBODY: u32 = 12_345;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Runs a load of one request, with these words at its end.
fn load_into(lab: &Lab, receiver: &Receiver, words: &[&str]) -> crate::lab::Ended {
    let url = receiver.url();
    let load = ["load", "--no-calibrate", "-n1", "-c1", &url];
    end(lab.program(LONGTAIL).args(load).args(words))
}

fn is_summary(path: &Path) -> bool {
    fs::read_to_string(path).unwrap().contains("\"schema\": \"longtail.summary/1\"")
}

/// What a writer might leave behind.
fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".longtail-")).collect()
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_follows_the_umask() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    for (name, kept) in [("a.json", 0o600), ("b.json", 0o640), ("c.json", 0o666)] {
        let path = lab.write(name, "before");
        // Only root may set any group; for others, their own group must be kept.
        let _ = std::os::unix::fs::chown(&path, None, Some(65_534));
        fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
        let group = std::os::linux::fs::MetadataExt::st_gid(&fs::metadata(&path).unwrap());
        load_into(&lab, &receiver, &["-o", name]).with_code(0);
        assert_eq!(mode(&path), kept, "{name}");
        let after = std::os::linux::fs::MetadataExt::st_gid(&fs::metadata(&path).unwrap());
        assert_eq!(after, group, "{name}");
        assert!(is_summary(&path));
    }
    let url = receiver.url();
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let script = format!(
            "umask {umask}; exec {LONGTAIL} load --no-calibrate -n1 {url} -o new{umask}.json -o new{umask}.study.json --log log{umask}"
        );
        end(lab.program("sh").args(["-c", &script])).with_code(0);
        for name in
            [format!("new{umask}.json"), format!("new{umask}.study.json"), format!("log{umask}")]
        {
            assert_eq!(mode(&lab.path(&name)), expected, "{name}");
        }
    }
    assert!(leftovers(&lab.path("")).is_empty());
}

#[test]
fn a_link_is_followed_even_if_its_target_does_not_exist() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    fs::create_dir(lab.path("results")).unwrap();
    symlink("results/target.json", lab.path("link.json")).unwrap();
    symlink("link.json", lab.path("again.json")).unwrap();
    for _ in 0..2 {
        load_into(&lab, &receiver, &["-o", "again.json"]).with_code(0);
        assert!(fs::symlink_metadata(lab.path("again.json")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(lab.path("link.json")).unwrap().is_symlink());
        assert!(is_summary(&lab.path("results/target.json")));
    }
    symlink("loop.json", lab.path("loop.json")).unwrap();
    load_into(&lab, &receiver, &["-o", "loop.json"]).refused("cannot be written");
}

#[test]
fn another_users_link_in_a_shared_folder_is_not_followed() {
    if !can(rustix::process::geteuid().is_root(), "only root can make another user's link") {
        return;
    }
    let lab = Lab::new();
    let receiver = Receiver::start();
    fs::create_dir(lab.path("for-all")).unwrap();
    fs::set_permissions(lab.path("for-all"), Permissions::from_mode(0o1777)).unwrap();
    let precious = lab.write("precious.json", "precious");
    symlink(&precious, lab.path("for-all/x.json")).unwrap();
    symlink(lab.path("nothing.json"), lab.path("for-all/new.json")).unwrap();
    mknodat(CWD, lab.path("for-all/pipe.json"), FileType::Fifo, Mode::from_raw_mode(0o666), 0)
        .unwrap();
    lab.write("for-all/file.json", "");
    for name in ["x.json", "new.json", "pipe.json", "file.json"] {
        lchown(lab.path("for-all").join(name), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        let name = format!("for-all/{name}");
        for flag in ["-o", "--log"] {
            load_into(&lab, &receiver, &[flag, &name]).refused("another user's");
        }
    }
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
    assert!(!lab.path("nothing.json").exists());
    // Our own link is followed there, like the kernel does.
    symlink("ours.json", lab.path("for-all/own.json")).unwrap();
    load_into(&lab, &receiver, &["-o", "for-all/own.json"]).with_code(0);
    assert!(is_summary(&lab.path("for-all/ours.json")));
}

#[test]
fn a_planted_temporary_file_does_no_harm() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    let precious = lab.write("precious", "precious");
    symlink(&precious, lab.path("x.json.new")).unwrap();
    load_into(&lab, &receiver, &["-o", "x.json"]).with_code(0);
    assert!(is_summary(&lab.path("x.json")));
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn pipes_and_devices_are_written_in_place() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    let url = receiver.url();
    let load = format!("{LONGTAIL} load --no-calibrate -n1 {url}");
    for (script, file) in [
        ("mkfifo p.json; cat p.json > got.json & LOAD -o p.json; wait", "got.json"),
        ("ln -s /dev/stdout out.json; LOAD --csv -o out.json > got", "got"),
        ("ln -s /dev/fd/3 three.json; LOAD -o three.json 3> three", "three"),
        ("LOAD -o /dev/null --json > quiet", "quiet"),
    ] {
        let script = script.replace("LOAD", &load);
        end(lab.program("sh").args(["-c", &script])).with_code(0);
        let text = fs::read_to_string(lab.path(file)).unwrap();
        assert!(text.contains("longtail.summary/1"), "{script}: {text}");
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let printed = load_into(&lab, &receiver, &["-o", "/dev/stdout", "--json"]).with_code(0);
    assert!(printed.stdout.contains("closed loop"), "{}", printed.stdout);
    // A pipe gets a study only once, not each of its states.
    let script =
        format!("mkfifo s.study.json; cat s.study.json > s & {load} -o s.study.json; wait");
    end(lab.program("sh").args(["-c", &script])).with_code(0);
    let study = fs::read_to_string(lab.path("s")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&study).is_ok(), "{study}");
}

#[test]
fn fleets_key_files_are_private() {
    let lab = Lab::new();
    end(lab.program(LONGTAIL).args(["fleet", "init"])).with_code(0);
    assert_eq!(mode(&lab.path("fleet/.env.example")), 0o600);
    let copied = end(lab.program("cp").args(["fleet/.env.example", "fleet/.env"]));
    copied.with_code(0);
    assert_eq!(mode(&lab.path("fleet/.env")) & 0o077, 0);
    assert_eq!(mode(&lab.path("fleet/run.yml")) & 0o444, 0o444);
}

#[test]
fn headers_come_from_a_file_and_the_suggested_command_runs_unchanged() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    lab.write("headers", "# of the staging server\n\nX-Api-Key: hunter2\r\nAccept:\nX-Other: b\n");
    let ended = load_into(&lab, &receiver, &["-H", "@headers", "-H", "X-Third: c", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&ended.with_code(0).stdout).unwrap();
    let line = summary["command_line"].as_str().unwrap();
    assert!(line.contains("-H @headers") && !line.contains("(secret)"), "{line}");
    let again = line.strip_prefix("longtail ").unwrap();
    end(&mut lab.longtail(again)).with_code(0);
    let kept = receiver.kept();
    assert_eq!(kept.len(), 2);
    for request in kept {
        assert_eq!(request.field("X-Api-Key"), Some("hunter2"));
        assert_eq!((request.field("X-Other"), request.field("X-Third")), (Some("b"), Some("c")));
        assert_eq!(request.field("Accept"), None);
    }
}

/// The study file is from a time when secrets were not masked.
#[test]
fn a_suggested_command_says_what_to_put_in_place_of_a_secret() {
    let lab = Lab::new();
    let text = report::json::write(&testkit::load::closed().into());
    let mut study: serde_json::Value = serde_json::from_str(&text).unwrap();
    study["command_line"] =
        "longtail load -kame:hunter2 -H 'X-Api-Key: hunter2' -c 20 http://h/".into();
    lab.write("old.study.json", &study.to_string());
    let outputs = ["-o", "a.json", "-o", "a.html", "-o", "a.md", "-o", "a.study.json"];
    let ended =
        end(lab.program(LONGTAIL).args(["report", "old.study.json", "--full"]).args(outputs));
    assert!(!ended.with_code(0).stdout.contains("hunter2"));
    for name in outputs.into_iter().filter(|name| *name != "-o") {
        assert!(!fs::read_to_string(lab.path(name)).unwrap().contains("hunter2"), "{name}");
    }
    let summary = fs::read_to_string(lab.path("a.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let next = summary["next"].as_array().unwrap();
    let line = next.iter().find(|next| next["command"].as_str().unwrap().contains("(secret)"));
    let why = line.expect("one of them repeats the load")["why"].as_str().unwrap();
    let expected = "for (secret) put USER:PASSWORD and the value of X-Api-Key, or the headers in a file: -H @FILE";
    assert!(why.contains(expected), "{why}");
}

/// As in `vegeta attack | vegeta report`.
#[test]
fn a_report_with_something_piped_into_it_says_that_it_shows_the_last_study() {
    let lab = Lab::new();
    let text = report::json::write(&testkit::load::closed().into());
    fs::create_dir_all(lab.path("data/longtail/studies")).unwrap();
    lab.write("data/longtail/studies/x.study.json", &text);
    lab.write("x.study.json", &text);
    let note = "report reads nothing from a pipe; this is the last study, load of 20";
    let is_said = |words: &[&str], stdin: Stdio| {
        let ended = end(lab.program(LONGTAIL).args(words).stdin(stdin)).with_code(0);
        ended.stderr.contains(note)
    };
    assert!(is_said(&["report"], Stdio::piped()));
    assert!(!is_said(&["report"], Stdio::null()));
    assert!(!is_said(&["report", "x.study.json"], Stdio::piped()));
    // Results of another tool are not taken for longtail's, nor are older figures shown for them.
    for writer in ["echo Summary:", "sleep 0.5"] {
        let line = format!("{writer} | {LONGTAIL} report");
        let ended = end(lab.program("sh").args(["-c", &line]));
        assert!(ended.is_refusal("report reads nothing from a pipe"), "{writer}: {ended:?}");
    }
}

#[test]
fn a_load_with_requests_piped_into_it_and_no_url_names_the_flag_that_reads_them() {
    let lab = Lab::new();
    let said = |stdin: Stdio| end(lab.program(LONGTAIL).args(["load", "-c", "5"]).stdin(stdin));
    let piped = said(Stdio::piped());
    assert!(piped.is_refusal("type longtail load -c 5 --requests -"), "{piped:?}");
    let alone = said(Stdio::null());
    assert!(alone.is_refusal("type longtail load -c 5 URL"), "{alone:?}");
}

#[test]
fn a_requests_file_reads_bodies_only_below_its_folder_or_the_named_root() {
    let lab = Lab::new();
    let receiver = Receiver::start();
    lab.write("some/requests", "POST /a\n@some/below/body\n");
    lab.write("some/below/body", "hello");
    lab.write("other/requests", "POST /a\n@some/below/body\n");
    symlink("../other/requests", lab.path("some/linked")).unwrap();
    load_into(&lab, &receiver, &["--requests", "some/requests"]).with_code(0);
    let root = ["--requests", "other/requests", "--requests-root", "some"];
    load_into(&lab, &receiver, &root).with_code(0);
    assert!(receiver.kept().iter().all(|kept| kept.body == b"hello"));
    for file in ["other/requests", "some/linked"] {
        load_into(&lab, &receiver, &["--requests", file]).refused("--requests-root");
    }
    assert_eq!(receiver.kept().len(), 2);
}
