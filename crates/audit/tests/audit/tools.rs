//! Each tool's text, as it printed it or as its documentation shows it, becomes the figures that stand in it.

use audit::{AuditedClaim, Claim, ClaimCheck, ClaimVerdict, LoadTool};
use serde_json::{Value, json};

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/fixtures/{file}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn only(file: &str) -> AuditedClaim {
    let mut found = audit::audit(&read(file));
    assert_eq!(found.len(), 1, "{file}");
    found.remove(0)
}

/// The outcome of a check, by its word in JSON.
fn outcome(found: &AuditedClaim, check: &str) -> Value {
    let findings = serde_json::to_value(&found.findings).unwrap();
    let finding = findings.as_array().unwrap().iter().find(|finding| finding["check"] == check);
    finding.unwrap_or_else(|| panic!("no {check}: {findings:#}"))["outcome"]["is"].clone()
}

/// A printed figure or a percentile of the claim's JSON is its value; whatever else is there, as it is.
fn assert_says(file: &str, claim: &Claim, figures: &Value) {
    let all = serde_json::to_value(claim).unwrap();
    for (key, expected) in figures.as_object().unwrap() {
        let found = match key.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()) {
            Some(percent) => json!(claim.percentile(percent / 100.0).map(|figure| figure.value)),
            None => all.get(key).unwrap_or_else(|| panic!("no {key}")).get("value").unwrap_or(&all[key]).clone(),
        };
        let is_near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
        let are_near = found.as_f64().zip(expected.as_f64()).map_or(found == *expected, is_near);
        assert!(are_near, "{file}: {key} is {found}, not {expected}");
    }
}

/// A fixture, figures of its claim, and what some of its checks come to.
type ToolCase = (&'static str, Value, &'static [(&'static str, &'static str)]);

#[test]
fn each_output_is_read_to_its_last_line() {
    let k = 1024.0;
    let cases: [ToolCase; 16] = [
        (
            "real/wrk_slow",
            json!({
                "tool": "wrk", "line": 2, "threads": 2, "connections": 16, "requests": 3839, "mean_s": 10.56e-3,
                "stdev_s": 10.63e-3, "max_s": 100.83e-3, "p99": 60.11e-3, "duration_s": 2.10, "rate_per_s": 1823.83,
                "received_bytes": 423.64 * k, "transfer_bytes_per_s": 201.26 * k,
                "command": "wrk -t2 -c16 -d2s --latency http://127.0.0.1:18081/",
            }),
            &[],
        ),
        // It opens fewer connections than it says.
        ("real/wrk_truncated", json!({"connections": 20}), &[("connections_opened", "doubtful")]),
        ("real/wrk_no_latency", json!({"bad_answers": 85_083}), &[("littles_law", "fails")]),
        // It has a rate and forgets its first ten seconds.
        (
            "documented/wrk2",
            json!({
                "tool": "wrk2", "requests": 60_018, "samples": 39_500, "offered_per_s": 2000.0, "p99.99": 7.98e-3,
                "max_s": 8.21e-3,
            }),
            &[("offered_rate", "holds"), ("all_samples_kept", "doubtful")],
        ),
        (
            "real/hey",
            json!({
                "tool": "hey", "connections": 8, "statuses": {"200": 31_994}, "mean_s": 0.2e-3, "duration_s": 1.0031,
                "p99": 4.1e-3, "answer_bytes": 32.0, "received_bytes": 1_023_808.0,
            }),
            &[("histogram_adds_up", "holds")],
        ),
        // The remainder that it drops is named.
        ("real/hey_remainder", json!({"asked": 205, "statuses": {"200": 200}}), &[("requests_sent", "doubtful")]),
        // A mean that is not a number is absent, and refused requests are no rate.
        ("real/hey_errors", json!({"mean_s": null, "errors": 100}), &[("failures", "doubtful")]),
        (
            "real/hey_statuses",
            json!({"statuses": {"200": 262, "503": 38}}),
            &[("failures", "doubtful"), ("histogram_adds_up", "holds")],
        ),
        (
            "real/oha",
            json!({
                "tool": "oha", "connections": 8, "statuses": {"200": 160_922}, "mean_s": 0.0491e-3, "p99.99": 4.4916e-3,
                "duration_s": 1.002_156_4, "errors": 7, "unfinished": 7,
            }),
            &[("littles_law", "holds")],
        ),
        // A paced generator may idle.
        ("real/oha_rate", json!({"tool": "oha"}), &[("littles_law", "holds"), ("offered_rate", "holds")]),
        // The mean is its table's, and not the one that it derives from the rate.
        (
            "real/ab_slow",
            json!({
                "tool": "ab", "connections": 10, "requests": 500, "asked": 500, "mean_s": 5e-3, "stdev_s": 5.8e-3,
                "min_s": 2e-3, "max_s": 64e-3, "p98": 8e-3, "duration_s": 0.307, "rate_per_s": 1629.56,
                "transfer_bytes_per_s": 179.82 * k, "received_bytes": 56_500.0,
            }),
            &[],
        ),
        ("real/ab_statuses", json!({"bad_answers": 500}), &[("failures", "doubtful")]),
        (
            "real/h2load_timed",
            json!({
                "tool": "h2load", "connections": 8, "streams": 2, "mean_s": 9.05e-3, "stdev_s": 8.38e-3,
                "received_bytes": 198_654.0, "requests": 1758, "statuses": {"2xx": 1758},
            }),
            &[("littles_law", "holds")],
        ),
        ("real/h2load", json!({"tool": "h2load"}), &[("littles_law", "holds")]),
        (
            "documented/bombardier",
            json!({
                "tool": "bombardier", "connections": 200, "errors": 5, "mean_s": 29.96e-3, "p95": 37.12e-3,
                "rate_per_s": 6652.12, "statuses": {"2xx": 66_561},
            }),
            &[],
        ),
        (
            "documented/vegeta",
            json!({
                "tool": "vegeta", "requests": 200, "statuses": {"200": 190, "404": 10}, "mean_s": 25.391e-3,
                "p95": 55.102e-3, "duration_s": 3.98, "offered_per_s": 50.0, "answer_bytes": 206.43,
            }),
            &[
                ("outcomes_add_up", "holds"),
                ("rate_times_duration", "holds"),
                ("bytes_per_answer", "holds"),
                ("failures", "doubtful"),
            ],
        ),
    ];
    for (file, figures, outcomes) in cases {
        let found = only(file);
        assert_says(file, &found.claim, &figures);
        for (check, is) in outcomes {
            assert_eq!(outcome(&found, check), *is, "{file}: {check}");
        }
    }
    let (truncated, streams) = (only("real/wrk_truncated").claim, only("real/h2load_timed").claim);
    assert_eq!((truncated.used_connections(), streams.at_once()), (Some(16), Some(16)));
    assert_eq!((only("real/wrk_slow").claim.percentiles.len(), only("real/hey").claim.bins.len()), (4, 11));
}

#[test]
fn possible_is_what_no_check_fails_or_doubts() {
    for file in ["real/oha", "real/oha_rate", "real/h2load", "documented/bombardier"] {
        assert_eq!(only(file).verdict, ClaimVerdict::Possible, "{file}");
    }
    assert!(matches!(only("documented/wrk2").verdict, ClaimVerdict::Doubtful { .. }));
    assert_eq!(only("real/wrk_no_latency").verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::LittlesLaw] });
}

#[test]
fn a_report_says_what_is_missing_and_what_failed() {
    let text = |found: AuditedClaim| audit::text(&[found]);
    assert!(text(only("real/wrk_no_latency")).contains("without --latency"));
    assert!(text(only("real/hey_errors")).contains("100 of 100 requests failed"));
    let errors = "  Socket errors: connect 1, read 2, write 3, timeout 4000\nRequests/sec";
    let found = audit::audit(&read("real/wrk").replace("Requests/sec", errors)).remove(0);
    assert_eq!((found.claim.errors, found.claim.timeouts), (Some(6), Some(4000)));
    assert!(text(found).contains("4000 took longer than wrk's timeout"));
}

#[test]
fn an_empty_percentile_of_hey_is_none() {
    let mut text = read("real/hey");
    let line = text.lines().find(|line| line.trim().starts_with("99% in")).unwrap().to_owned();
    text = text.replace(&line, "  0% in 0.0000 secs");
    let quantiles: Vec<f64> = audit::audit(&text)[0].claim.percentiles.iter().map(|p| p.quantile).collect();
    assert!(quantiles.iter().all(|q| *q > 0.0) && !quantiles.contains(&0.99), "{quantiles:?}");
}

#[test]
fn beyond_a_million_requests_heys_mean_grows_with_the_run() {
    let text = "hey -z 60s -c 50 http://x/\n\nSummary:\n  Total:\t60.0000 secs\n  Slowest:\t0.2488 secs\n  Fastest:\t0.0001 secs\n  Average:\t0.0030 secs\n  Requests/sec:\t41666.6667\n\nStatus code distribution:\n  [200]\t2500000 responses\n";
    let found = audit::audit(text).remove(0);
    assert_eq!(outcome(&found, "all_samples_kept"), "doubtful");
    assert!(audit::text(std::slice::from_ref(&found)).contains("its mean is 2.50 times too large"));
    assert_eq!(found.verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::LittlesLaw] });
}

#[test]
fn several_tools_in_one_file_are_distinguished_and_in_its_order() {
    let files = ["real/oha", "real/wrk", "real/ab", "documented/vegeta", "real/hey", "real/h2load", "documented/wrk2"];
    let text: String = files.iter().map(|file| read(file) + "\n").collect();
    let together: Vec<Claim> = audit::audit(&text).into_iter().map(|found| found.claim).collect();
    let tools: Vec<LoadTool> = together.iter().map(|claim| claim.tool).collect();
    let [oha, wrk, ab, vegeta] = [LoadTool::Oha, LoadTool::Wrk, LoadTool::Ab, LoadTool::Vegeta];
    assert_eq!(tools, [oha, wrk, ab, vegeta, LoadTool::Hey, LoadTool::H2load, LoadTool::Wrk2]);
    for (claim, file) in together.into_iter().zip(files) {
        let alone = only(file).claim;
        assert_eq!(Claim { line: alone.line, ..claim }, alone);
    }
}

#[test]
fn figures_that_contradict_each_other_are_impossible() {
    let [order, spread] = [ClaimCheck::Order, ClaimCheck::Spread].map(|check| vec![check]);
    let bytes = vec![ClaimCheck::BytesPerAnswer, ClaimCheck::TransferRate];
    for (file, from, to, by) in [
        ("real/oha", "99.99% in 4.4916 ms", "99.99% in 9.4916 ms", order),
        ("real/h2load", "125us    99.57%", "3.25ms    99.57%", spread),
        ("real/h2load", "20000 2xx", "19999 2xx", vec![ClaimCheck::OutcomesAddUp]),
        ("real/oha", "[160796]", "[160795]", vec![ClaimCheck::HistogramAddsUp]),
        ("real/oha", "4.91 MiB", "5.91 MiB", bytes),
        (
            "real/ab",
            "Complete requests:      2000",
            "Complete requests:      2100",
            vec![ClaimCheck::RateTimesDuration],
        ),
    ] {
        let found = audit::audit(&read(file).replace(from, to)).remove(0);
        assert_eq!(found.verdict, ClaimVerdict::Impossible { by }, "{file}: {to}");
    }
    // Either of oha's units is read.
    let seconds = read("real/oha").replace("Average:\t0.0491 ms", "Average:\t0.0001 secs");
    assert_says("oha", &audit::audit(&seconds)[0].claim, &json!({"mean_s": 1e-4}));
}
