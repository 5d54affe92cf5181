//! `--with`: the load or the sweep that another generator makes. What it claims is held against what the server counted,
//! never against a time.

use model::{GeneratorClaim, Nanos, Study, SweepStudy};

use crate::lab::{Lab, has};
use crate::load::{load, slow_sink, url};

/// What the generator says of its one run.
fn claim(lab: &Lab) -> GeneratorClaim {
    let Study::Load(study) = lab.kept() else { panic!("not of a load") };
    *study.run.claim.expect("of another generator")
}

fn percentiles(claim: &GeneratorClaim) -> Vec<f64> {
    claim.percentiles.iter().map(|one| one.quantile).collect()
}

/// The real generator against a sink that counts: what it claims has come, but for what was under way at the end.
fn loads(tool: &str, prints: &[f64]) {
    if !has(tool) {
        return;
    }
    let (lab, sink) = (Lab::new(), slow_sink(Nanos::from_millis(2)));
    let ended =
        load(&lab, &format!("--generator {tool} -c 8 --for 1s --warm-up 1s --fail-if 'errors > 0' {}", url(&sink)));
    let ended = ended.with_code(0);
    let claim = claim(&lab);
    assert_eq!((claim.by.as_str(), claim.failed), (tool, Some(0)));
    assert_eq!(percentiles(&claim), prints);
    let (claimed, received) = (claim.all_requests().unwrap(), sink.stop().requests);
    assert!(claim.warm_up_requests.is_some_and(|n| n > 0) && claim.requests.is_some_and(|n| n > 0), "{claim:#?}");
    // Eight connections, two runs; ab may still count what came after its time was up.
    let slack = if tool == "ab" { 16 } else { 0 };
    assert!(claimed <= received + slack && received <= claimed + 16, "{claimed} claimed, {received} received");
    assert!(ended.stdout.contains(&format!(": what {} printed\n", claim.name())), "{}", ended.stdout);
    assert!(ended.stdout.contains(claim.output.lines().next_back().unwrap_or_default().trim()));
    // The kept study says the same again, and as markdown too.
    assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout);
    let markdown = lab.run("report --format markdown").with_code(0).stdout;
    assert!(markdown.contains(&format!(": what {} printed**", claim.name())), "{markdown}");
    assert!(lab.living().is_empty());
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

#[test]
fn another_generator_makes_the_load() {
    loads("wrk", &[0.5, 0.75, 0.9, 0.99]);
    loads("hey", &[0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]);
    loads("ab", &[0.5, 0.66, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99]);
    loads("h2load", &[]);
}

/// Both accounts of each run of a sweep agree, but for what was under way at its two ends.
fn assert_accounted(study: &SweepStudy, rows: usize) {
    assert_eq!(study.runs.len(), rows);
    for run in &study.runs {
        let claim = run.claim.as_ref().unwrap();
        assert!(claim.requests.is_some_and(|n| n > 0), "{run:#?}");
        assert!(claim.server_requests.is_some(), "{:?}", run.warnings);
        assert_eq!(claim.ledger_doubt(run.connections, 2), None, "{run:#?}");
    }
}

#[test]
fn a_sweep_on_the_server_inside_is_driven_by_wrk() {
    let Some(lab) = Lab::with("wrk") else { return };
    let ended =
        lab.run("sweep --server builtin -w2 -t2 -d0.01 --generator wrk --for 1s --multiples 1,2.5").with_code(0);
    let study = lab.study();
    assert_accounted(&study, 2);
    let connections: Vec<u32> = study.runs.iter().map(|run| run.connections).collect();
    assert_eq!(connections, [4, 10]);
    assert!(ended.stdout.contains("by wrk "), "{}", ended.stdout);
    assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout);
    let json = lab.run("report --format study").with_code(0).stdout;
    assert!(matches!(report::json::read(&json), Ok(Study::Sweep(again)) if again.runs == study.runs));
    // In Puma's columns too: that is what those of the seed's table were made of.
    let rows = lab.run("report --style puma").with_code(0).stdout;
    assert!(
        ["1.00", "2.50"].into_iter().all(|row| rows.lines().any(|line| line.trim_start().starts_with(row))),
        "{rows}"
    );
}
