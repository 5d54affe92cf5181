//! `longtail signals` on real servers. It takes a minute, so only `make soak` does it.

use std::fs;

use serde_json::Value;

use crate::lab::{Lab, Running, free_port, soaks};

/// The signals of a Puma of two threads and an app that takes 50 ms.
fn signals_of_puma(lab: &Lab, flags: &str) -> Value {
    let app = lab.path("app.ru");
    fs::write(&app, "run lambda { |_| sleep 0.05; [200, {}, ['ok']] }\n").unwrap();
    let port = free_port();
    let control = free_port();
    let words = format!("-t2:2 --control-url tcp://127.0.0.1:{control} --control-token secret");
    let _puma = Running::puma(lab, port, &app, &words);
    let words = format!(
        "signals {flags} --json --interval 1s --budget 60s --objective 'p99 < 300ms' \
         --control-url tcp://127.0.0.1:{control} --control-token secret http://127.0.0.1:{port}/"
    );
    serde_json::from_str(&lab.answer(&words).with_code(0).stdout).expect("JSON")
}

fn row<'v>(found: &'v Value, name: &str) -> &'v Value {
    let rows = found["signals"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {found:#}"))
}

/// The requests wait in the kernel's accept queue, which `backlog` does not count.
#[test]
fn the_backlog_of_a_puma_before_7_sees_no_overload() {
    let Some(lab) = Lab::with("puma") else { return };
    if !soaks() || !crate::scenarios::is_there("old") {
        return;
    }
    let found = signals_of_puma(&lab, "-k");
    assert!(found["broke_at_s"].as_f64().is_some(), "{found:#}");
    assert_eq!(row(&found, "backlog")["left_at_part"], Value::Null, "{found:#}");
    assert!(row(&found, "accept queue")["left_at_part"].as_f64().is_some(), "{found:#}");
    let busy = row(&found, "busy threads");
    assert!(busy["seconds_before"].as_f64().is_some_and(|before| before > 0.0), "{found:#}");
    let most = busy["false_alarms_per_hour_at_most"].as_f64().unwrap();
    assert!(most > 100.0, "a few seconds prove little: {most}");
}

/// The server is started, its capacity is searched for, the load goes up and down, and the server
/// is stopped. Its app says how long each request had waited, and `watch` finds the thresholds.
#[test]
fn signals_of_a_server_that_longtail_starts_are_kept_for_watch() {
    if !soaks() {
        return;
    }
    let lab = Lab::new();
    let words = "signals --server builtin -t2:2 -d0.05 -k --json -o found.json --interval 1s \
                 --budget 90s --objective 'p99 < 300ms'";
    let ended = lab.answer(words).with_code(0);
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_ne!(found["base_known_by"], "closed_loop", "{found:#}");
    assert!(found["broke_at_part"].as_f64().is_some_and(|part| part > 0.5), "{found:#}");
    assert!(row(&found, "queue time")["left_at_part"].as_f64().is_some(), "{found:#}");
    let written = fs::read_to_string(lab.path("found.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), found);
    let port = free_port();
    let mut sink = Running::start(lab.program(crate::lab::LONGTAIL).args(crate::lab::split(
        &format!("sink --listen 127.0.0.1:{port} --slots 2 --delay 20ms"),
    )));
    sink.until(|said| said.contains("listening"));
    let watched = lab.answer(&format!("watch :{port} --for 1s --signals")).with_code(0);
    assert!(watched.stdout.contains("queue time: the app's APM tells."), "{watched:?}");
}

/// When the server is gone the objective is missed, too, but that says nothing about its signals.
#[test]
fn a_server_that_ends_meanwhile_is_no_broken_objective() {
    if !soaks() {
        return;
    }
    let lab = Lab::new();
    let port = free_port();
    let mut sink = Running::start(lab.program(crate::lab::LONGTAIL).args(crate::lab::split(
        &format!("sink --listen 127.0.0.1:{port} --slots 2 --delay 20ms"),
    )));
    sink.until(|said| said.contains("listening"));
    let mut signals =
        Running::start(lab.program(crate::lab::LONGTAIL).args(crate::lab::split(&format!(
            "signals --interval 1s --budget 60s --objective 'p99 < 300ms' http://127.0.0.1:{port}/"
        ))));
    signals.until_printed(|_, said| said.contains("down again, 0:10"));
    sink.send(rustix::process::Signal::KILL);
    let ended = signals.end().with_code(3);
    assert!(ended.stdout.is_empty(), "{ended:?}");
    assert!(ended.stderr.contains("because the server ended"), "{ended:?}");
}
