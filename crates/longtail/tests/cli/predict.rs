//! `longtail predict`: the whole command against the tables of queueing theory.

use serde_json::Value;
use testkit::study;

use crate::lab::Lab;

fn json(words: &str) -> Value {
    serde_json::from_str(&Lab::new().run(&format!("predict --format json {words}")).with_code(0).stdout).unwrap()
}

fn ns(prediction: &Value, line: usize, time: &str, figure: &str) -> f64 {
    prediction["lines"][line][time][figure]["ns"].as_f64().unwrap()
}

#[test]
fn four_workers_of_five_are_the_table() {
    // M/D/20 and M/D/5 at ρ = 0.8: mean wait and p99, in service times.
    let seen = json("-w4 -t5:5 --service 200ms --rate 80/s");
    for (line, queue, wait, p99) in [(0, "shared", 0.035_874_1, 1.423_11), (1, "split", 0.289_060_007, 2.937_44)] {
        assert_eq!(seen["lines"][line]["queue"], queue);
        assert!((ns(&seen, line, "wait", "mean") / 2e8 - wait).abs() < 1e-6);
        assert!((ns(&seen, line, "response", "p99") / 2e8 - p99).abs() < 6e-6);
        assert!(seen["lines"][line]["wait"]["mean"].get("half_width_ns").is_none(), "exact");
    }
    assert!((seen["at_most_per_s"].as_f64().unwrap() - 100.0).abs() < 1e-9);
    assert!((seen["knee_connections"].as_f64().unwrap() - 20.0).abs() < 1e-9);
}

#[test]
fn the_highest_rate_for_an_objective_is_the_table() {
    let seen = json("-w4 -t5 --service 1s --rate 10/s --objective 'p99 < 2s'");
    for (line, rate) in [(0, 20.0 * 0.900_205), (1, 20.0 * 0.664_097)] {
        let highest = seen["lines"][line]["highest_rate_per_s"].as_f64().unwrap();
        assert!((highest - rate).abs() < 2.2e-5, "{highest}, table {rate}");
    }
    // Even alone a request takes a second.
    let printed = Lab::new().run("predict -t5 --service 1s --rate 1/s --objective 'p99 < 900ms'").with_code(0).stdout;
    assert!(printed.contains("no rate keeps p99 < 900ms"), "{printed}");
}

#[test]
fn what_is_simulated_has_an_interval_and_is_the_same_again() {
    let words = "-w2 -t5 --service bimodal:1ms:50ms:0.02 --rate 4000/s";
    let seen = json(words);
    assert!(seen["lines"][1]["wait"]["p99"]["half_width_ns"].as_u64().unwrap() > 0);
    assert_eq!(seen, json(words));
    assert_ne!(seen, json(&format!("{words} --seed 2")));
    let table = Lab::new().run(&format!("predict {words}")).with_code(0).stdout;
    assert!(table.contains("M/G/10, simulated") && table.contains("95 % intervals of at most"), "{table}");
    assert!(!table.contains("this near to full"), "{table}");
    let full = Lab::new().run("predict -t5 --service uniform:1ms:9ms --rate 950/s").with_code(0).stdout;
    assert!(full.contains("this near to full"), "{full}");
}

#[test]
fn a_table_a_plot_and_an_overload() {
    let lab = Lab::new();
    let table = lab.run("predict -w4 -t5 --service 200ms --rate 80/s --plot").with_code(0).stdout;
    for part in ["20 slots = 4 workers x 5 threads", "M/D/20, exact", "M/D/5, exact", "285", "587", "■"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let table = lab.run("predict -w4 -t5 --service 200ms --rate 120/s").with_code(0).stdout;
    assert!(table.contains("no steady state. Response times grow by 0.200 s in each second"), "{table}");
    assert!(lab.studies().is_empty());
}

/// The table of the two laws that hold whatever is random: threads are servers of the whole, and the lock is one server.
#[test]
fn rubys_lock_says_what_threads_are_worth() {
    let words = "-w4 -t5 --service 200ms --cpu 50ms -c 40";
    let lock = &json(words)["lock"];
    assert!((lock["at_most_per_s"].as_f64().unwrap() - 80.0).abs() < 1e-9);
    let by_threads = lock["by_threads"].as_array().unwrap();
    let of = |threads: u64| by_threads.iter().find(|line| line["threads"] == threads).unwrap();
    let figure = |threads: u64, name: &str| of(threads)[name].as_f64().unwrap();
    for (threads, at_most) in [(1, 20.0), (3, 60.0), (4, 80.0), (5, 80.0), (32, 80.0)] {
        assert!((figure(threads, "at_most_per_s") - at_most).abs() < 1e-9, "{threads}");
    }
    // One thread never waits for the lock; with two, M/M/1//2: 2 of 200 ms less the time that both want it.
    assert!((figure(1, "all_busy_per_s") - 20.0).abs() < 1e-9 && (figure(1, "of_slots") - 1.0).abs() < 1e-9);
    let two = 4.0 / 0.05 * (1.0 - 1.0 / (1.0 + 2.0 / 3.0 + 2.0 / 9.0));
    assert!((figure(2, "all_busy_per_s") - two).abs() < 1e-9, "{}", figure(2, "all_busy_per_s"));
    // Ten connections a worker keep all its threads busy, and Little's law holds.
    let closed = &of(5)["closed"];
    let (rate, mean) = (closed["rate_per_s"].as_f64().unwrap(), closed["response_mean_ns"].as_f64().unwrap() / 1e9);
    assert!((rate - figure(5, "all_busy_per_s")).abs() < 1e-9 && (rate * mean - 40.0).abs() < 1e-6, "{rate} {mean}");
    assert_eq!(json("-w4 -t5 --service 200ms -c 40")["lock"], Value::Null);
    let open = &json("-t5 --service 200ms --cpu 50ms --rate 10/s")["lock"]["by_threads"][0];
    let offered = open["offered_of_all_busy"].as_f64().unwrap();
    assert!(open["closed"].is_null() && (offered - 2.0).abs() < 1e-9, "one thread does 5/s: {offered}");

    let table = Lab::new().run(&format!("predict {words}")).with_code(0).stdout;
    assert!(table.contains("each request computes 50 ms of its 200 ms") && table.contains("  as asked\n"), "{table}");
    let of_the_lock = table.split("Ruby's lock").nth(1).unwrap();
    assert!(of_the_lock.lines().all(|line| line.chars().count() <= 110 && line == line.trim_end()), "{table}");
}

#[test]
fn the_service_time_of_a_kept_sweep_is_used() {
    let lab = Lab::new();
    let canonical = study::canonical();
    let time = canonical.service_time.unwrap().time;
    lab.write("study.json", &report::json::write(&canonical.into()));
    let printed = lab.run("predict --format json -t5 --service study.json --rate 1/s").with_code(0).stdout;
    let seen: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(seen["service_mean_ns"].as_u64(), Some(time.0));
}

#[test]
fn under_rubys_lock_the_headline_is_what_the_lock_leaves() {
    let printed = |words: &str| Lab::new().run(&format!("predict -w2 -t5:5 {words}")).with_code(0).stdout;
    let bound = printed("--service 45ms --cpu 15ms -c 40");
    assert!(
        bound.contains(
            "limits  133 req/s at most by Ruby's lock (222 without it); requests must wait from 6 connections on"
        ),
        "{bound}"
    );
    assert!(!bound.contains("shared") && bound.contains("Percentiles under the lock are not known"), "{bound}");
    let free = printed("--service 100ms --cpu 1ms -c 40");
    assert!(free.contains("limits  100 req/s at most; ") && free.contains("it costs 0.041 %"), "{free}");
    assert!(free.contains("shared"), "{free}");
    assert!(bound.contains("measured rates are lower") && !free.contains("measured rates"), "{bound}{free}");
    for text in [bound, free] {
        assert!(text.lines().count() <= 30 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
