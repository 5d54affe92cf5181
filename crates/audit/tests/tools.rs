//! Each tool's text, as it printed it or as its documentation shows it, becomes the figures that stand in it.

use audit::{AuditedClaim, CheckOutcome, Claim, ClaimCheck, ClaimVerdict, Evidence, LoadTool};

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/fixtures/{file}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn only(file: &str) -> AuditedClaim {
    let mut found = audit::audit(&read(file));
    assert_eq!(found.len(), 1, "{file}");
    found.remove(0)
}

fn is(figure: Option<audit::PrintedFigure>, value: f64) -> bool {
    figure.is_some_and(|figure| (figure.value - value).abs() <= 1e-9 * value.abs().max(1e-3))
}

fn held(audited: &AuditedClaim, check: ClaimCheck) -> bool {
    audited.findings.iter().any(|f| f.check == check && matches!(f.outcome, CheckOutcome::Holds { .. }))
}

fn doubted(audited: &AuditedClaim, check: ClaimCheck) -> bool {
    audited.findings.iter().any(|f| f.check == check && matches!(f.outcome, CheckOutcome::Doubtful { .. }))
}

#[test]
fn wrk_is_read_to_its_last_line() {
    let claim = only("real/wrk_slow").claim;
    assert_eq!((claim.tool, claim.line, claim.threads, claim.connections), (LoadTool::Wrk, 2, Some(2), Some(16)));
    assert_eq!((claim.requests, claim.percentiles.len()), (Some(3839), 4));
    assert!(is(claim.mean_s, 10.56e-3) && is(claim.stdev_s, 10.63e-3) && is(claim.max_s, 100.83e-3));
    assert!(is(claim.percentile(0.99), 60.11e-3) && is(claim.duration_s, 2.10) && is(claim.rate_per_s, 1823.83));
    assert!(is(claim.received_bytes, 423.64 * 1024.0) && is(claim.transfer_bytes_per_s, 201.26 * 1024.0));
    assert_eq!(claim.command.as_deref(), Some("wrk -t2 -c16 -d2s --latency http://127.0.0.1:18081/"));
}

#[test]
fn an_empty_percentile_of_hey_is_none() {
    let mut text = read("real/hey");
    let line = text.lines().find(|line| line.trim().starts_with("99% in")).unwrap().to_owned();
    text = text.replace(&line, "  0% in 0.0000 secs");
    let claims: Vec<Claim> = audit::audit(&text).into_iter().map(|audited| audited.claim).collect();
    let quantiles: Vec<f64> = claims[0].percentiles.iter().map(|p| p.quantile).collect();
    assert!(quantiles.iter().all(|q| *q > 0.0) && !quantiles.contains(&0.99), "{quantiles:?}");
}

#[test]
fn wrk_opens_fewer_connections_than_it_says() {
    let found = only("real/wrk_truncated");
    assert_eq!((found.claim.connections, found.claim.used_connections()), (Some(20), Some(16)));
    assert!(doubted(&found, ClaimCheck::ConnectionsOpened));
}

#[test]
fn a_wrk_without_percentiles_still_fails_and_says_what_is_missing() {
    let found = only("real/wrk_no_latency");
    assert_eq!(found.claim.bad_answers, Some(85_083));
    assert_eq!(found.verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::LittlesLaw] });
    assert!(audit::text(&[found]).contains("without --latency"));
}

#[test]
fn wrk_errors_and_timeouts_are_read_and_doubted() {
    let text = read("real/wrk")
        .replace("Requests/sec", "  Socket errors: connect 1, read 2, write 3, timeout 4000\nRequests/sec");
    let found = audit::audit(&text).remove(0);
    assert_eq!((found.claim.errors, found.claim.timeouts), (Some(6), Some(4000)));
    assert!(audit::text(&[found]).contains("4000 took longer than wrk's timeout"));
}

#[test]
fn wrk2_has_a_rate_and_forgets_its_first_ten_seconds() {
    let found = only("documented/wrk2");
    let claim = &found.claim;
    assert_eq!((claim.tool, claim.requests, claim.samples), (LoadTool::Wrk2, Some(60_018), Some(39_500)));
    assert!(is(claim.offered_per_s, 2000.0) && is(claim.percentile(0.9999), 7.98e-3) && is(claim.max_s, 8.21e-3));
    assert!(held(&found, ClaimCheck::OfferedRate) && doubted(&found, ClaimCheck::AllSamplesKept));
    assert!(matches!(found.verdict, ClaimVerdict::Doubtful { .. }));
}

#[test]
fn hey_is_read_with_the_command_above_it() {
    let claim = only("real/hey").claim;
    assert_eq!(
        (claim.tool, claim.connections, claim.ended(), claim.bins.len()),
        (LoadTool::Hey, Some(8), Some(31_994), 11)
    );
    assert!(is(claim.mean_s, 0.2e-3) && is(claim.duration_s, 1.0031) && is(claim.percentile(0.99), 4.1e-3));
    assert!(is(claim.answer_bytes, 32.0) && is(claim.received_bytes, 1_023_808.0));
}

#[test]
fn heys_dropped_remainder_is_named() {
    let found = only("real/hey_remainder");
    assert_eq!((found.claim.asked, found.claim.ended()), (Some(205), Some(200)));
    assert!(doubted(&found, ClaimCheck::RequestsSent));
}

#[test]
fn a_mean_that_is_not_a_number_is_absent_and_refused_requests_are_no_rate() {
    let found = only("real/hey_errors");
    assert_eq!((found.claim.mean_s, found.claim.errors), (None, Some(100)));
    assert!(doubted(&found, ClaimCheck::Failures));
    assert!(audit::text(&[found]).contains("100 of 100 requests failed"));
}

#[test]
fn statuses_of_500_and_more_are_failures() {
    let found = only("real/hey_statuses");
    assert_eq!(found.claim.statuses.get("503"), Some(&38));
    assert!(doubted(&found, ClaimCheck::Failures) && held(&found, ClaimCheck::HistogramAddsUp));
}

#[test]
fn beyond_a_million_requests_heys_mean_grows_with_the_run() {
    let text = "hey -z 60s -c 50 http://x/\n\nSummary:\n  Total:\t60.0000 secs\n  Slowest:\t0.2488 secs\n  Fastest:\t0.0001 secs\n  Average:\t0.0030 secs\n  Requests/sec:\t41666.6667\n\nStatus code distribution:\n  [200]\t2500000 responses\n";
    let found = audit::audit(text).remove(0);
    let lost = found.findings.iter().find(|finding| finding.check == ClaimCheck::AllSamplesKept).unwrap();
    let evidence = Evidence::SamplesLost { requests: 2_500_000, kept: 1_000_000, mean_ratio: Some(2.5) };
    assert_eq!(lost.outcome, CheckOutcome::Doubtful { evidence });
    assert_eq!(found.verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::LittlesLaw] });
}

#[test]
fn oha_is_read_in_either_of_its_units() {
    let found = only("real/oha");
    let claim = &found.claim;
    assert_eq!((claim.tool, claim.connections, claim.ended()), (LoadTool::Oha, Some(8), Some(160_929)));
    assert!(
        is(claim.mean_s, 0.0491e-3) && is(claim.percentile(0.9999), 4.4916e-3) && is(claim.duration_s, 1.002_156_4)
    );
    assert_eq!((claim.errors, claim.unfinished), (Some(7), Some(7)));
    assert_eq!(found.verdict, ClaimVerdict::Possible);
    let seconds = read("real/oha").replace("Average:\t0.0491 ms", "Average:\t0.0001 secs");
    assert!(is(audit::audit(&seconds)[0].claim.mean_s, 1e-4));
}

#[test]
fn a_paced_generator_may_idle() {
    let found = only("real/oha_rate");
    assert!(held(&found, ClaimCheck::LittlesLaw) && held(&found, ClaimCheck::OfferedRate));
    assert_eq!(found.verdict, ClaimVerdict::Possible);
}

#[test]
fn ab_gives_its_table_and_not_the_mean_that_it_derives_from_the_rate() {
    let claim = only("real/ab_slow").claim;
    assert_eq!(
        (claim.tool, claim.connections, claim.requests, claim.asked),
        (LoadTool::Ab, Some(10), Some(500), Some(500))
    );
    assert!(is(claim.mean_s, 5e-3) && is(claim.stdev_s, 5.8e-3) && is(claim.min_s, 2e-3) && is(claim.max_s, 64e-3));
    assert!(is(claim.percentile(0.98), 8e-3) && is(claim.duration_s, 0.307) && is(claim.rate_per_s, 1629.56));
    assert!(is(claim.transfer_bytes_per_s, 179.82 * 1024.0) && is(claim.received_bytes, 56_500.0));
    assert_eq!(only("real/ab_statuses").claim.bad_answers, Some(500));
}

#[test]
fn h2load_has_streams() {
    let found = only("real/h2load_timed");
    let claim = &found.claim;
    assert_eq!(
        (claim.tool, claim.connections, claim.streams, claim.at_once()),
        (LoadTool::H2load, Some(8), Some(2), Some(16))
    );
    assert!(is(claim.mean_s, 9.05e-3) && is(claim.stdev_s, 8.38e-3) && is(claim.received_bytes, 198_654.0));
    assert_eq!((claim.requests, claim.statuses.get("2xx")), (Some(1758), Some(&1758)));
    assert!(held(&found, ClaimCheck::LittlesLaw));
    assert_eq!(only("real/h2load").verdict, ClaimVerdict::Possible);
}

#[test]
fn bombardier_is_read_as_documented() {
    let found = only("documented/bombardier");
    let claim = &found.claim;
    assert_eq!((claim.tool, claim.connections, claim.errors), (LoadTool::Bombardier, Some(200), Some(5)));
    assert!(is(claim.mean_s, 29.96e-3) && is(claim.percentile(0.95), 37.12e-3) && is(claim.rate_per_s, 6652.12));
    assert_eq!(claim.statuses.get("2xx"), Some(&66_561));
    assert_eq!(found.verdict, ClaimVerdict::Possible);
}

#[test]
fn vegeta_is_read_by_its_heads() {
    let found = only("documented/vegeta");
    let claim = &found.claim;
    assert_eq!((claim.tool, claim.requests, claim.statuses.get("404")), (LoadTool::Vegeta, Some(200), Some(&10)));
    assert!(is(claim.mean_s, 25.391e-3) && is(claim.percentile(0.95), 55.102e-3) && is(claim.duration_s, 3.98));
    assert!(is(claim.offered_per_s, 50.0) && is(claim.answer_bytes, 206.43));
    assert!(held(&found, ClaimCheck::OutcomesAddUp) && held(&found, ClaimCheck::RateTimesDuration));
    assert!(held(&found, ClaimCheck::BytesPerAnswer) && doubted(&found, ClaimCheck::Failures));
}

#[test]
fn several_tools_in_one_file_are_told_apart_and_in_its_order() {
    let files = ["real/oha", "real/wrk", "real/ab", "documented/vegeta", "real/hey", "real/h2load", "documented/wrk2"];
    let text: String = files.iter().map(|file| read(file) + "\n").collect();
    let tools: Vec<LoadTool> = audit::audit(&text).iter().map(|found| found.claim.tool).collect();
    assert_eq!(
        tools,
        [LoadTool::Oha, LoadTool::Wrk, LoadTool::Ab, LoadTool::Vegeta, LoadTool::Hey, LoadTool::H2load, LoadTool::Wrk2]
    );
    let alone: Vec<Claim> = files.iter().map(|file| only(file).claim).collect();
    for (mut together, alone) in audit::audit(&text).into_iter().map(|found| found.claim).zip(alone) {
        together.line = alone.line;
        assert_eq!(together, alone);
    }
}

#[test]
fn a_percentile_above_the_longest_is_impossible() {
    let text = read("real/oha").replace("99.99% in 4.4916 ms", "99.99% in 9.4916 ms");
    assert_eq!(audit::audit(&text)[0].verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::Order] });
}

#[test]
fn a_deviation_larger_than_the_ends_allow_is_impossible() {
    let text = read("real/h2load").replace("125us    99.57%", "3.25ms    99.57%");
    assert_eq!(audit::audit(&text)[0].verdict, ClaimVerdict::Impossible { by: vec![ClaimCheck::Spread] });
}

#[test]
fn counts_that_do_not_add_up_are_impossible() {
    let wrong = |file: &str, from: &str, to: &str| audit::audit(&read(file).replace(from, to)).remove(0).verdict;
    let by = |check: ClaimCheck| ClaimVerdict::Impossible { by: vec![check] };
    assert_eq!(wrong("real/h2load", "20000 2xx", "19999 2xx"), by(ClaimCheck::OutcomesAddUp));
    assert_eq!(wrong("real/oha", "[160796]", "[160795]"), by(ClaimCheck::HistogramAddsUp));
    assert_eq!(
        wrong("real/oha", "4.91 MiB", "5.91 MiB"),
        ClaimVerdict::Impossible { by: vec![ClaimCheck::BytesPerAnswer, ClaimCheck::TransferRate] }
    );
    assert_eq!(
        wrong("real/ab", "Complete requests:      2000", "Complete requests:      2100"),
        by(ClaimCheck::RateTimesDuration)
    );
}
