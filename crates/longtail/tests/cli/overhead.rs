//! `longtail overhead`: every arm runs once a round, on a fresh server, and what it switches on is on. By counts alone.

use serde_json::Value;

use crate::lab::{Lab, in_a_window};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The runs of an arm.
fn samples<'a>(found: &'a Value, arm: &str) -> Vec<&'a Value> {
    found["samples"].as_array().unwrap().iter().filter(|sample| sample["arm"] == arm).collect()
}

#[test]
fn every_arm_runs_once_a_round() {
    let lab = Lab::new();
    let words =
        |window: &str| format!("overhead --server builtin -w2 -t2:2 --rounds 6 {window} --seed 5 --format json");
    let short = words("--for 50ms --warm-up 20ms");
    let is_whole =
        |found: &Value| found["samples"].as_array().unwrap().iter().all(|run| run["rate_per_s"].as_f64() > Some(0.0));
    let asked = |words: &str| Some(json(&lab.run(words).with_code(0).stdout)).filter(is_whole);
    // A starved machine may not let a request become due in a short window.
    let found = asked(&short).unwrap_or_else(|| in_a_window(|window| asked(&words(window))));
    let arms: Vec<&str> = found["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    // Whether there is bpf depends on the machine and its user.
    let without_bpf: Vec<&str> = arms.iter().copied().filter(|arm| *arm != "bpf").collect();
    assert_eq!(without_bpf, ["bare", "control", "proc", "stamps", "anatomy"]);
    assert_eq!((&found["kind"], &found["connections"]), (&Value::from("overhead"), &Value::from(4)));
    for arm in &arms {
        let runs = samples(&found, arm);
        let mut rounds: Vec<u64> = runs.iter().map(|sample| sample["round"].as_u64().unwrap()).collect();
        rounds.sort_unstable();
        assert_eq!(rounds, [1, 2, 3, 4, 5, 6], "{arm}");
        for run in runs {
            assert!(run["answers"].as_u64() > Some(0) && run["failed"] == 0, "{run}");
            assert!(run["server_cpu_ns"].as_u64() > Some(0) && run["generator_cpu_ns"].as_u64() > Some(0), "{run}");
        }
    }
    // Ratios are of the pairs, and 1 is within the interval or it is said to differ.
    for arm in found["arms"].as_array().unwrap() {
        for figure in arm["figures"].as_array().unwrap() {
            let ratio = &figure["ratio"];
            if arm["name"] == "bare" {
                assert_eq!((ratio, &figure["answer"]), (&Value::Null, &Value::Null));
                continue;
            }
            let [low, median, high] = ["low", "median", "high"].map(|name| ratio[name].as_f64().unwrap());
            assert!(ratio["rounds"] == 6 && low <= median && median <= high, "{figure}");
            if arm["name"] == "control" {
                assert_eq!(figure["answer"], Value::Null);
            } else if low <= 1.0 && 1.0 <= high {
                assert_eq!(figure["answer"], "noise", "{figure}");
            }
        }
    }
    let order = |found: &Value| -> Vec<String> {
        found["samples"].as_array().unwrap().iter().map(|sample| sample["arm"].to_string()).collect()
    };
    let again = order(&json(&lab.run(&short.replace("--rounds 6", "--rounds 2")).with_code(0).stdout));
    assert_eq!(order(&found)[..again.len()], again, "a seed is an order");
    assert!(lab.living().is_empty() && lab.studies().is_empty());
}

#[test]
fn few_rounds_have_no_interval() {
    let lab = Lab::new();
    let words = "overhead --server builtin -t2:2 --rounds 2 --for 30ms --warm-up 0 --arms proc";
    let said = lab.run(words).with_code(0).stdout;
    assert!(said.contains("2 rounds tell no 95 % interval: 6 or more do"), "{said}");
    let bare = said.lines().find(|line| line.starts_with("bare")).unwrap();
    assert_eq!(bare.split_ascii_whitespace().count(), 4, "{bare}");
}

#[test]
fn an_apps_own_instrument_is_on_in_its_arm_alone() {
    let Some(lab) = Lab::with("puma") else { return };
    let words = "overhead -t2:2 --rounds 1 --for 100ms --warm-up 0 --arms statsd,anatomy --format json";
    let found = json(&lab.run(words).with_code(0).stdout);
    for sample in found["samples"].as_array().unwrap() {
        let (packets, answers) = (sample["packets"].as_u64(), sample["answers"].as_u64().unwrap());
        if sample["arm"] == "statsd" {
            // One for the answer that showed the server to be ready too; the kernel may drop some.
            assert!(packets.is_some_and(|packets| 0 < packets && packets <= answers + 1), "{sample}");
        } else {
            assert_eq!(packets, None);
        }
    }
    assert!(!found["warnings"].to_string().contains("only the question"), "{found}");
}

#[test]
fn a_setting_of_ones_own_reaches_the_server() {
    let Some(lab) = Lab::with("puma") else { return };
    let told = lab.path("answer");
    let app = format!(
        "File.write({:?}, ENV['INSTRUMENT'].to_s + \"\\n\", mode: 'a')\nrun lambda {{ |_| [200, {{}}, ['ok']] }}\n",
        told.to_str().unwrap()
    );
    lab.write("app.ru", &app);
    lab.run("overhead -t1:1 -r app.ru --rounds 2 --for 50ms --warm-up 0 --env INSTRUMENT=1").with_code(0);
    let told = std::fs::read_to_string(told).unwrap();
    // Bare, control and the setting, in both rounds.
    assert_eq!((told.lines().count(), told.lines().filter(|line| *line == "1").count()), (6, 2), "{told}");
}

#[test]
fn a_server_that_does_not_serve_is_refused() {
    let Some(lab) = Lab::with("puma") else { return };
    lab.write("bad.ru", "run lambda { |_| [500, {}, ['no']] }\n");
    let said = lab.run("overhead -t1:1 -r bad.ru --rounds 1").with_code(2);
    // Beside the server's own last lines one of ours.
    let ours: Vec<&str> = said.stderr.lines().filter(|line| !line.starts_with("  | ")).collect();
    assert!(ours.len() == 1 && ours[0].contains("is answered 500"), "{}", said.stderr);
    assert!(said.stderr.contains("  | Use Ctrl-C to stop\n"), "{}", said.stderr);
}
