//! Reads the output of each load tool, as the tool printed it or as its documentation shows it, and
//! compares the figures that were read with the expected ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use audit::{AuditedClaim, Claim, ClaimCheck, ClaimVerdict, LoadTool};
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// All fixtures: outputs that tools printed, outputs that their documentation shows, and the five
/// documents that longtail grew out of (`seeds/`).
pub(crate) fn fixtures() -> Vec<String> {
    let files = ["real", "documented", "seeds"].into_iter().flat_map(|folder| {
        let files = std::fs::read_dir(format!("{FOLDER}/{folder}")).unwrap();
        files.map(move |file| {
            format!("{folder}/{}", file.unwrap().file_name().into_string().unwrap())
        })
    });
    files.map(|file| file.trim_end_matches(".txt").to_owned()).collect()
}

pub(crate) fn read(file: &str) -> String {
    // Some documents in `seeds` are not valid UTF-8.
    String::from_utf8_lossy(&std::fs::read(format!("{FOLDER}/{file}.txt")).unwrap()).into_owned()
}

/// The claims that the audit finds in a text.
pub(crate) fn claims_of(text: &str) -> Vec<AuditedClaim> {
    audit::audit(text).unwrap()
}

fn only(file: &str) -> AuditedClaim {
    let mut found = claims_of(&read(file));
    assert_eq!(found.len(), 1, "{file}");
    found.remove(0)
}

/// The outcome of a check, by its word in JSON.
fn outcome(found: &AuditedClaim, check: &str) -> Value {
    let findings = serde_json::to_value(&found.findings).unwrap();
    let finding = findings.as_array().unwrap().iter().find(|finding| finding["check"] == check);
    finding.unwrap_or_else(|| panic!("no {check}: {findings:#}"))["outcome"]["is"].clone()
}

/// What the audit prints about these claims, then for each claim the figures that were read and the
/// figures that each check computed.
fn shown(found: &[AuditedClaim]) -> String {
    let mut text = audit::text(found, report::Width::ANY);
    for one in found {
        text += "\n";
        let claim = serde_json::to_value(&one.claim).unwrap();
        for (key, figure) in
            claim.as_object().unwrap().iter().filter(|(_, figure)| !figure.is_null())
        {
            _ = writeln!(text, "{key}: {figure}");
        }
        let findings = serde_json::to_value(&one.findings).unwrap();
        for finding in findings.as_array().unwrap() {
            let outcome = &finding["outcome"];
            _ = writeln!(text, "{} {}: {}", finding["check"], outcome["is"], outcome["figures"]);
        }
    }
    text
}

/// Compares what is read from each fixture with `expected/`. In `seeds/` the audit must find what a
/// person found by hand. Before you accept a change, compare it with the output itself.
#[test]
fn each_output_is_read_to_its_last_line() {
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/expected");
    let mut tools = BTreeSet::new();
    for file in fixtures() {
        let found = claims_of(&read(&file));
        assert!(file.starts_with("seeds/") || found.len() == 1, "{file}");
        tools.extend(found.iter().map(|one| format!("{:?}", one.claim.tool)));
        testkit::golden::expect(&expected.join(file + ".txt"), &shown(&found));
    }
    assert_eq!(tools.len(), 12, "{tools:?}");
    let truncated = only("real/wrk_truncated").claim;
    let streams = only("real/h2load_timed").claim;
    assert_eq!((truncated.used_connections(), streams.at_once()), (Some(16), Some(16)));
}

#[test]
fn without_phantom_samples_every_row_of_a_table_has_the_mean_that_littles_law_asks_for() {
    let rows = claims_of(&read("seeds/002"));
    assert_eq!(rows.len(), 28 + 4);
    for row in &rows {
        assert_eq!(row.claim.tool, LoadTool::ResponseTimeWrk);
        let cycle = row.claim.cycle_s().unwrap().middle();
        let finding = row
            .findings
            .iter()
            .find(|finding| finding.check == ClaimCheck::PhantomSamples)
            .unwrap();
        let figures = &finding.outcome.figures;
        assert!(
            (figures["mean_without_s"] / cycle - 1.0).abs() < 0.06,
            "line {}: {figures:?}",
            row.claim.line
        );
        assert!(
            figures["mean_without_least_s"] <= cycle && cycle <= figures["mean_without_most_s"]
        );
    }
}

#[test]
fn time_outs_of_wrk_are_counted_apart() {
    let errors = "  Socket errors: connect 1, read 2, write 3, timeout 4000\nRequests/sec";
    let found = claims_of(&read("real/wrk").replace("Requests/sec", errors)).remove(0);
    assert_eq!((found.claim.errors, found.claim.timeouts), (Some(6), Some(4000)));
    assert!(
        audit::text(&[found], report::Width::ANY).contains("4000 took longer than wrk's timeout")
    );
}

#[test]
fn an_empty_percentile_of_hey_is_none() {
    let mut text = read("real/hey");
    let line = text.lines().find(|line| line.trim().starts_with("99% in")).unwrap().to_owned();
    text = text.replace(&line, "  0% in 0.0000 secs");
    let quantiles: Vec<f64> =
        claims_of(&text)[0].claim.percentiles.iter().map(|p| p.quantile).collect();
    assert!(quantiles.iter().all(|q| *q > 0.0) && !quantiles.contains(&0.99), "{quantiles:?}");
}

#[test]
fn beyond_a_million_requests_heys_mean_grows_with_the_run() {
    let text = "hey -z 60s -c 50 http://x/\n\nSummary:\n  Total:\t60.0000 secs\n  Slowest:\t0.2488 secs\n  Fastest:\t0.0001 secs\n  Average:\t0.0030 secs\n  Requests/sec:\t41666.6667\n\nStatus code distribution:\n  [200]\t2500000 responses\n";
    let found = claims_of(text).remove(0);
    assert_eq!(outcome(&found, "all_samples_kept"), "doubtful");
    assert!(
        audit::text(std::slice::from_ref(&found), report::Width::ANY)
            .contains("its mean is 2.50 times")
    );
    assert_eq!(
        found.verdict,
        ClaimVerdict { is: model::Believable::Impossible, by: vec![ClaimCheck::LittlesLaw] }
    );
}

#[test]
fn several_tools_in_one_file_are_told_apart_and_keep_their_order() {
    let files = [
        "real/oha",
        "real/wrk",
        "real/ab",
        "documented/vegeta",
        "real/hey",
        "real/h2load",
        "documented/wrk2",
    ];
    let text: String = files.iter().map(|file| read(file) + "\n").collect();
    let together: Vec<Claim> = claims_of(&text).into_iter().map(|found| found.claim).collect();
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
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/contradictions.txt");
    testkit::golden::expect_rows(file, |given| {
        let [file, from, to]: [&str; 3] =
            given.split(" | ").collect::<Vec<_>>().try_into().expect(given);
        claims_of(&read(file).replace(from, to)).remove(0).verdict
    });
    // Either of oha's units is read.
    let seconds = read("real/oha").replace("Average:\t0.0491 ms", "Average:\t0.0001 secs");
    let mean = claims_of(&seconds)[0].claim.mean_s.unwrap().value;
    assert!((mean - 1e-4).abs() < 1e-12, "{mean}");
}

#[test]
fn our_own_layouts_are_told_apart_and_do_not_contradict_themselves() {
    for study in testkit::load::every() {
        for text in [report::wrk::whole(&study), report::hey::whole(&study)] {
            for found in claims_of(&text) {
                assert_eq!(found.claim.tool, LoadTool::Longtail, "{text}");
                let said = audit::text(std::slice::from_ref(&found), report::Width::ANY);
                assert_ne!(found.verdict.is, model::Believable::Impossible, "{text}{said}");
                assert!(!said.contains("adds a sample"), "{said}");
            }
        }
    }
}
