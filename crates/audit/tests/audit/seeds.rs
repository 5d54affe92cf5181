//! The five documents that longtail grew out of: the audit finds in them what a person found by hand.

use audit::evidence::{InFlight, PhantomSamples, Staircase};
use audit::{AuditedClaim, CheckOutcome, ClaimCheck, ClaimEvidence, ClaimVerdict, LoadTool};

fn seed(number: &str) -> Vec<AuditedClaim> {
    audit::audit(&text_of(number))
}

fn text_of(number: &str) -> String {
    let path = format!("{}/tests/fixtures/seeds/{number}.txt", env!("CARGO_MANIFEST_DIR"));
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

fn outcome(audited: &AuditedClaim, check: ClaimCheck) -> &CheckOutcome {
    let found = audited.findings.iter().find(|finding| finding.check == check);
    &found.unwrap_or_else(|| panic!("no {check:?} in {audited:?}")).outcome
}

fn evidence(audited: &AuditedClaim, check: ClaimCheck) -> &ClaimEvidence {
    outcome(audited, check).evidence().unwrap_or_else(|| panic!("{check:?} is unchecked"))
}

fn is_near(value: f64, expected: f64, within: f64) -> bool {
    (value - expected).abs() <= within
}

#[test]
fn four_wrk_runs_fail_by_two_to_four_times() {
    let runs = seed("001");
    let lines: Vec<usize> = runs.iter().map(|run| run.claim.line).collect();
    assert_eq!(lines, [49, 80, 111, 142]);
    for (run, (expected, cycle_ms)) in runs.iter().zip([(2.82, 0.820), (2.07, 0.935), (3.79, 10.895), (3.92, 10.800)]) {
        assert!(matches!(outcome(run, ClaimCheck::LittlesLaw), CheckOutcome::Fails { .. }));
        let ClaimEvidence::InFlight(InFlight { ratio, ratio_allowed, cycle_s, .. }) =
            evidence(run, ClaimCheck::LittlesLaw)
        else {
            panic!()
        };
        assert!(is_near(*ratio, expected, 0.006), "{ratio}");
        assert!(ratio_allowed.low > ratio * 0.99 && ratio_allowed.high < ratio * 1.01);
        assert!(is_near(cycle_s * 1e3, cycle_ms, 0.0006), "{cycle_s}");
        assert!(matches!(run.verdict, ClaimVerdict::Impossible { .. }));
    }
}

#[test]
fn wrks_own_percentiles_force_a_mean_above_what_littles_law_leaves() {
    let ClaimEvidence::ForcedMean { least_s, mean_s, .. } =
        evidence(&seed("001")[2], ClaimCheck::PercentilesAgainstRate).clone()
    else {
        panic!()
    };
    // .25 x 5.98 + .15 x 73.20 + .09 x 123.50 + .01 x 218.48
    assert!(is_near(least_s, 25.77e-3, 0.02e-3), "{least_s}");
    assert!(is_near(mean_s, 10.895e-3, 0.001e-3));
}

#[test]
fn phantom_samples_make_wrks_means_as_much_too_large_as_they_are() {
    for run in seed("001") {
        assert!(matches!(outcome(&run, ClaimCheck::PhantomSamples), CheckOutcome::Explains { .. }));
        let ClaimEvidence::Phantoms(PhantomSamples { predicted_ratio, printed_ratio, share, .. }) =
            evidence(&run, ClaimCheck::PhantomSamples)
        else {
            panic!()
        };
        let off = predicted_ratio.unwrap() / printed_ratio.unwrap();
        assert!((0.8..1.2).contains(&off), "{off}");
        assert!(share.low >= 0.25);
    }
}

#[test]
fn taking_the_phantoms_away_gives_every_row_of_a_wrk_table_the_mean_that_littles_law_asks_for() {
    let rows = seed("002");
    assert_eq!(rows.len(), 28 + 4);
    for row in &rows {
        assert_eq!(row.claim.tool, LoadTool::ResponseTimeWrk);
        let cycle = row.claim.cycle_s().unwrap().middle();
        let ClaimEvidence::Phantoms(PhantomSamples { mean_without_s, mean_allowed_s, .. }) =
            evidence(row, ClaimCheck::PhantomSamples)
        else {
            panic!()
        };
        assert!(is_near(mean_without_s / cycle, 1.0, 0.06), "line {}: {}", row.claim.line, mean_without_s / cycle);
        assert!(mean_allowed_s.low <= cycle && cycle <= mean_allowed_s.high);
    }
}

#[test]
fn sixty_four_connections_on_ten_slots_were_not_served_first_come_first_served() {
    let rows = seed("002");
    let row = rows.iter().find(|row| row.claim.line == 138).unwrap();
    let ClaimEvidence::Fairness { cycle_s, median_s, p90_s, connections, slots } =
        evidence(row, ClaimCheck::FirstComeFirstServed)
    else {
        panic!()
    };
    assert!(is_near(cycle_s * 1e3, 4.72, 0.005));
    assert!(is_near(median_s * 1e3, 1.04, 1e-9) && is_near(p90_s * 1e3, 40.01, 1e-9));
    assert_eq!((*connections, *slots), (64, 10));
    assert!(matches!(outcome(row, ClaimCheck::FirstComeFirstServed), CheckOutcome::Doubtful { .. }));
    let ClaimEvidence::ForcedMean { least_s, .. } = evidence(row, ClaimCheck::PercentilesAgainstRate) else { panic!() };
    assert!(least_s / cycle_s > 1.7);
}

#[test]
fn a_paced_generator_that_slept_after_each_send_is_convicted_by_its_own_lines() {
    let runs = seed("003");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].verdict, ClaimVerdict::Possible);
    assert!(matches!(outcome(&runs[0], ClaimCheck::Staircase), CheckOutcome::Unchecked { .. }));
    let run = &runs[1];
    assert_eq!(run.claim.answers.len(), 30);
    assert!(matches!(outcome(run, ClaimCheck::Staircase), CheckOutcome::Fails { .. }));
    let ClaimEvidence::Staircase(Staircase {
        slots,
        steps,
        step_s,
        spacing_least_s,
        sent_at_most_per_s,
        sent_estimate_per_s,
        missing_least,
        first_excess_s,
        hold_measured_s,
        ..
    }) = evidence(run, ClaimCheck::Staircase)
    else {
        panic!()
    };
    assert_eq!((*slots, *steps), (5, 6));
    assert!(is_near(step_s * 1e3, 485.848, 0.001), "{step_s}");
    assert!(is_near(spacing_least_s * 1e3, 102.83, 0.005));
    assert!(is_near(*sent_at_most_per_s, 9.725, 0.0005));
    assert!(is_near(*sent_estimate_per_s, 9.609, 0.0005));
    assert!(is_near(missing_least.unwrap(), 0.0275, 0.00005));
    assert!(is_near(hold_measured_s * 1e3, 1006.19, 0.01));
    assert!(is_near(first_excess_s * 1e3, 81.1, 0.1));
}

#[test]
fn hey_keeps_littles_law_and_its_counts() {
    let found = seed("004");
    let hey = &found[0];
    assert_eq!((hey.claim.tool, hey.claim.connections, hey.claim.ended()), (LoadTool::Hey, Some(50), Some(824_106)));
    assert!(matches!(outcome(hey, ClaimCheck::LittlesLaw), CheckOutcome::Holds { .. }));
    let ClaimEvidence::InFlight(InFlight { ratio, .. }) = evidence(hey, ClaimCheck::LittlesLaw) else { panic!() };
    assert!(is_near(*ratio, 0.99, 0.005), "{ratio}");
    for check in [ClaimCheck::HistogramAddsUp, ClaimCheck::BytesPerAnswer, ClaimCheck::RateTimesDuration] {
        assert!(matches!(outcome(hey, check), CheckOutcome::Holds { .. }), "{check:?}");
    }
    assert_eq!(hey.verdict, ClaimVerdict::Possible);
}

#[test]
fn a_generator_that_reached_four_fifths_of_its_rate_is_doubted() {
    let found = seed("004");
    let own = &found[1];
    assert_eq!(own.claim.tool, LoadTool::Workload);
    let ClaimEvidence::Delivery { missing, in_flight, .. } = evidence(own, ClaimCheck::OfferedRate) else { panic!() };
    assert!(is_near(*missing, 0.2, 1e-9) && is_near(in_flight.unwrap(), 175.9, 0.05));
    let ClaimEvidence::Failures { failed, requests, as_status_zero, .. } = evidence(own, ClaimCheck::Failures) else {
        panic!()
    };
    assert_eq!((*failed, *requests, *as_status_zero), (579, 10_000, true));
    assert_eq!(own.verdict, ClaimVerdict::Doubtful { by: vec![ClaimCheck::OfferedRate, ClaimCheck::Failures] });
}

#[test]
fn the_dip_at_one_and_a_half_times_is_imbalance_times_a_fixed_count() {
    let rows = seed("000");
    let expected = [(97.01, 97.0120), (91.26, 90.7293), (95.30, 96.3451), (95.77, 96.3643), (94.46, 95.5128)];
    for (row, (predicted, printed)) in rows.iter().zip(expected) {
        let ClaimEvidence::FullestWorker { predicted_per_s, printed_per_s, .. } =
            evidence(row, ClaimCheck::WorkerShares)
        else {
            panic!()
        };
        assert!(is_near(*predicted_per_s, predicted, 0.006), "{predicted_per_s}");
        assert!(is_near(*printed_per_s, printed, 1e-9));
        assert_eq!(row.verdict, ClaimVerdict::Possible);
    }
    let explained =
        |row: &&AuditedClaim| matches!(outcome(row, ClaimCheck::WorkerShares), CheckOutcome::Explains { .. });
    let names: Vec<_> = rows.iter().filter(explained).map(|row| row.claim.connections).collect();
    assert_eq!(names, [Some(30)]);
}

#[test]
fn the_std_dev_column_is_of_a_population_in_percentage_points() {
    for (row, points) in seed("000").iter().zip([0.0, 0.939, 0.597, 0.258, 0.559]) {
        let ClaimEvidence::SharesDeviation { population_points, .. } = evidence(row, ClaimCheck::SharesDeviation)
        else {
            panic!()
        };
        assert!(is_near(*population_points, points, 0.0006), "{population_points}");
        assert!(matches!(outcome(row, ClaimCheck::SharesDeviation), CheckOutcome::Holds { .. }));
    }
}

#[test]
fn the_report_of_the_seeds_is_as_expected() {
    for number in ["000", "001", "002", "003", "004"] {
        let path = format!("{}/tests/fixtures/expected/{number}.txt", env!("CARGO_MANIFEST_DIR"));
        testkit::golden::expect(path.as_ref(), &audit::text(&seed(number)));
    }
}
