//! The five documents that longtail grew out of: the audit finds in them what a person found by hand.

use audit::{AuditedClaim, CheckOutcome, ClaimCheck, ClaimGrade, ClaimVerdict, LoadTool};

fn seed(number: &str) -> Vec<AuditedClaim> {
    let path = format!("{}/tests/fixtures/seeds/{number}.txt", env!("CARGO_MANIFEST_DIR"));
    audit::audit(&String::from_utf8_lossy(&std::fs::read(path).unwrap()))
}

fn outcome(audited: &AuditedClaim, check: ClaimCheck) -> &CheckOutcome {
    let found = audited.findings.iter().find(|finding| finding.check == check);
    &found.unwrap_or_else(|| panic!("no {check:?} in {audited:?}")).outcome
}

/// A check has come to `is`, by these figures: name, value, and how near it is.
fn assert_found(audited: &AuditedClaim, check: ClaimCheck, is: ClaimGrade, expected: &[(&str, f64, f64)]) {
    let outcome = outcome(audited, check);
    assert_eq!(outcome.is, is, "line {}: {outcome:?}", audited.claim.line);
    for (name, value, within) in expected {
        let found = outcome.figures[name];
        assert!((found - value).abs() <= *within, "line {}: {name} is {found}, not {value}", audited.claim.line);
    }
}

#[test]
fn four_wrk_runs_fail_by_two_to_four_times() {
    let runs = seed("001");
    let lines: Vec<usize> = runs.iter().map(|run| run.claim.line).collect();
    assert_eq!(lines, [49, 80, 111, 142]);
    for (run, (ratio, cycle_ms)) in runs.iter().zip([(2.82, 0.820), (2.07, 0.935), (3.79, 10.895), (3.92, 10.800)]) {
        let about = 0.01 * ratio;
        let figures = [
            ("ratio", ratio, 0.006),
            ("ratio_least", ratio, about),
            ("ratio_most", ratio, about),
            ("cycle_s", cycle_ms / 1e3, 0.6e-6),
        ];
        assert_found(run, ClaimCheck::LittlesLaw, ClaimGrade::Fails, &figures);
        assert!(matches!(run.verdict, ClaimVerdict::Impossible { .. }));
    }
    // wrk's own percentiles force a mean above what Little's law leaves: .25 x 5.98 + .15 x 73.20 + .09 x 123.50 + .01 x 218.48
    let figures = [("least_s", 25.77e-3, 0.02e-3), ("mean_s", 10.895e-3, 0.001e-3)];
    assert_found(&runs[2], ClaimCheck::PercentilesAgainstRate, ClaimGrade::Fails, &figures);
}

#[test]
fn phantom_samples_make_wrks_means_as_much_too_large_as_they_are() {
    for run in seed("001") {
        assert_found(&run, ClaimCheck::PhantomSamples, ClaimGrade::Explains, &[]);
        let figures = &outcome(&run, ClaimCheck::PhantomSamples).figures;
        let off = figures["predicted_ratio"] / figures["printed_ratio"];
        assert!((0.8..1.2).contains(&off) && figures["share_least"] >= 0.25, "{figures:?}");
    }
    // Taking them away gives every row of a table the mean that Little's law asks for.
    let rows = seed("002");
    assert_eq!(rows.len(), 28 + 4);
    for row in &rows {
        assert_eq!(row.claim.tool, LoadTool::ResponseTimeWrk);
        let cycle = row.claim.cycle_s().unwrap().middle();
        let figures = &outcome(row, ClaimCheck::PhantomSamples).figures;
        assert!((figures["mean_without_s"] / cycle - 1.0).abs() < 0.06, "line {}: {figures:?}", row.claim.line);
        assert!(figures["mean_without_least_s"] <= cycle && cycle <= figures["mean_without_most_s"]);
    }
}

#[test]
fn sixty_four_connections_on_ten_slots_were_not_served_first_come_first_served() {
    let rows = seed("002");
    let row = rows.iter().find(|row| row.claim.line == 138).unwrap();
    let figures = [
        ("cycle_s", 4.72e-3, 0.005e-3),
        ("median_s", 1.04e-3, 1e-12),
        ("p90_s", 40.01e-3, 1e-12),
        ("connections", 64.0, 0.0),
        ("slots", 10.0, 0.0),
    ];
    assert_found(row, ClaimCheck::FirstComeFirstServed, ClaimGrade::Doubtful, &figures);
    assert!(outcome(row, ClaimCheck::PercentilesAgainstRate).figures["least_s"] > 1.7 * 4.72e-3);
}

#[test]
fn a_paced_generator_that_slept_after_each_send_is_convicted_by_its_own_lines() {
    let runs = seed("003");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].verdict, ClaimVerdict::Possible);
    assert_found(&runs[0], ClaimCheck::Staircase, ClaimGrade::Unchecked, &[]);
    assert_eq!(runs[1].claim.answers.len(), 30);
    let figures = [
        ("slots", 5.0, 0.0),
        ("steps", 6.0, 0.0),
        ("step_s", 485.848e-3, 0.001e-3),
        ("spacing_least_s", 102.83e-3, 0.005e-3),
        ("sent_at_most_per_s", 9.725, 0.0005),
        ("sent_estimate_per_s", 9.609, 0.0005),
        ("missing_least", 0.0275, 0.00005),
        ("hold_measured_s", 1006.19e-3, 0.01e-3),
        ("first_excess_s", 81.1e-3, 0.1e-3),
    ];
    assert_found(&runs[1], ClaimCheck::Staircase, ClaimGrade::Fails, &figures);
}

#[test]
fn hey_keeps_its_counts_and_a_generator_that_reached_four_fifths_of_its_rate_is_doubted() {
    let found = seed("004");
    let (hey, own) = (&found[0], &found[1]);
    assert_eq!((hey.claim.tool, hey.claim.connections, hey.claim.ended()), (LoadTool::Hey, Some(50), Some(824_106)));
    assert_found(hey, ClaimCheck::LittlesLaw, ClaimGrade::Holds, &[("ratio", 0.99, 0.005)]);
    for check in [ClaimCheck::HistogramAddsUp, ClaimCheck::BytesPerAnswer, ClaimCheck::RateTimesDuration] {
        assert_found(hey, check, ClaimGrade::Holds, &[]);
    }
    assert_eq!(hey.verdict, ClaimVerdict::Possible);
    assert_eq!(own.claim.tool, LoadTool::Workload);
    let missing = [("missing", 0.2, 1e-9), ("in_flight", 175.9, 0.05)];
    assert_found(own, ClaimCheck::OfferedRate, ClaimGrade::Doubtful, &missing);
    let failed = [("failed", 579.0, 0.0), ("requests", 10_000.0, 0.0)];
    assert_found(own, ClaimCheck::Failures, ClaimGrade::Doubtful, &failed);
    assert_eq!(own.verdict, ClaimVerdict::Doubtful { by: vec![ClaimCheck::OfferedRate, ClaimCheck::Failures] });
}

#[test]
fn the_dip_at_one_and_a_half_times_is_imbalance_times_a_fixed_count() {
    let rows = seed("000");
    let rates = [(97.01, 97.0120), (91.26, 90.7293), (95.30, 96.3451), (95.77, 96.3643), (94.46, 95.5128)];
    // The column of deviations is of a population, in percentage points.
    let points = [0.0, 0.939, 0.597, 0.258, 0.559];
    for ((row, (predicted, printed)), points) in rows.iter().zip(rates).zip(points) {
        let is = if row.claim.connections == Some(30) { ClaimGrade::Explains } else { ClaimGrade::Holds };
        let figures = [("predicted_per_s", predicted, 0.006), ("printed_per_s", printed, 1e-9)];
        assert_found(row, ClaimCheck::WorkerShares, is, &figures);
        let figures = [("population_points", points, 0.0006)];
        assert_found(row, ClaimCheck::SharesDeviation, ClaimGrade::Holds, &figures);
        assert_eq!(row.verdict, ClaimVerdict::Possible);
    }
}

#[test]
fn the_report_of_the_seeds_is_as_expected() {
    for number in ["000", "001", "002", "003", "004"] {
        let path = format!("{}/tests/fixtures/expected/{number}.txt", env!("CARGO_MANIFEST_DIR"));
        testkit::golden::expect(path.as_ref(), &audit::text(&seed(number)));
    }
}
