//! What lanes were found to do here, in words and as JSON; what is kept of it, and why not.

use std::fmt::Write as _;

use model::paired::median;
use model::{LaneLimits, Nanos};
use report::number;
use serde_json::{Value, json};
use sweep::{BUSIEST, Grown, LATEST, LaneFindings, NoLimits, Rung, Try};

/// What was found of lanes, and what became of it.
pub(crate) struct LaneReport {
    pub(crate) found: LaneFindings,
    /// What is kept, and where; or why nothing is.
    pub(crate) kept: Result<(LaneLimits, String), NoLimits>,
    /// What was known before.
    pub(crate) before: Option<LaneLimits>,
}

impl LaneReport {
    /// For a terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = "Lanes: one, open loop, to the sink alone; a rate is kept by 2 tries of 3\n\n".to_owned();
        text.push_str("     req/s   own lag p95, us   on a CPU   tries\n");
        for rung in &self.found.rungs {
            text.push_str(&line(rung));
        }
        text.push('\n');
        if !self.found.growth.is_empty() {
            text.push_str("     lanes   req/s (closed loop, a sink with a thread for each CPU)\n");
            for grown in &self.found.growth {
                let Grown { lanes, .. } = grown;
                let _ = writeln!(text, "{lanes:>10}   {}", number::or_none(grown.median(), number::rate));
            }
            text.push('\n');
        }
        text.push_str(&self.remarks());
        text
    }

    fn remarks(&self) -> String {
        let found = &self.found;
        let mut text = String::new();
        if let Some(rate) = found.kept_per_s() {
            let (late, busy) = (LATEST.0 / 1000, number::fixed(BUSIEST * 100.0, 0));
            let _ = writeln!(
                text,
                "A lane keeps {rate} req/s here: not later than {late} us by itself (p95), at most {busy} % of a CPU."
            );
        }
        match found.paying() {
            Some(lanes) if found.growth.last().is_some_and(|most| most.lanes == lanes) => {
                let _ = writeln!(text, "Each more lane paid, up to {lanes}.");
            }
            Some(lanes) => {
                let _ = writeln!(text, "More lanes than {lanes} did not pay (less than a tenth more, or noise).");
            }
            None if found.growth.is_empty() => {
                text.push_str("How many lanes pay is asked where there are 3 CPUs: one of two is the server's.\n");
            }
            None => {}
        }
        let _ = match &self.kept {
            Ok((_, place)) => writeln!(text, "It is the default of --lanes on this machine from now on: {place}"),
            Err(why) => {
                let why = match why {
                    NoLimits::Interrupted => "interrupted".to_owned(),
                    NoLimits::Late => "not even the lowest rate was kept".to_owned(),
                    NoLimits::Shared(gates) => {
                        let gates: Vec<String> = gates.iter().map(model::Gate::text).collect();
                        format!("others used this machine meanwhile ({})", gates.join(", "))
                    }
                };
                let stays = self.before.as_ref().map_or_else(
                    || "the rules for --lanes stay".to_owned(),
                    |before| format!("what was measured on {} stays", before.measured_on),
                );
                writeln!(text, "Not kept: {why}; {stays}. Run it again when the machine is quiet.")
            }
        };
        text
    }

    /// For a program.
    pub(crate) fn json(&self) -> Value {
        let tried = |one: &Try| json!({"own_lag_p95_ns": one.late, "cpu": one.busy, "whole": one.whole});
        let rung = |rung: &Rung| {
            let tries: Vec<Value> = rung.tries.iter().map(tried).collect();
            json!({"rate_per_s": rung.rate_per_s, "kept": rung.kept, "tries": tries})
        };
        let grown = |grown: &Grown| json!({"lanes": grown.lanes, "rates_per_s": grown.rates});
        json!({
            "rungs": self.found.rungs.iter().map(rung).collect::<Vec<_>>(),
            "growth": self.found.growth.iter().map(grown).collect::<Vec<_>>(),
            "gates": self.found.gates,
            "limits": self.kept.as_ref().ok().map(|(limits, _)| limits),
            "kept_in": self.kept.as_ref().ok().map(|(_, place)| place),
        })
    }
}

/// One rate: the middle of its tries.
fn line(rung: &Rung) -> String {
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        median(&all)
    };
    let late = middle(rung.tries.iter().map(|one| one.late.unwrap_or(Nanos::MAX).0 as f64).collect());
    let late = late.filter(|late| *late < Nanos::MAX.0 as f64);
    let busy = middle(rung.tries.iter().map(|one| one.busy).collect());
    format!(
        "{:>10}{:>18}{:>11}   {}, {}\n",
        rung.rate_per_s,
        number::or_none(late, |late| number::fixed(late / 1e3, 0)),
        number::or_none(busy, |busy| format!("{} %", number::fixed(busy * 100.0, 0))),
        rung.tries.len(),
        if rung.kept { "kept" } else { "not kept" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Gate;

    const TRY: Try = Try { late: Some(Nanos::from_micros(40)), busy: 0.2, whole: true };

    fn report(gates: Vec<Gate>, growth: Vec<Grown>, before: Option<LaneLimits>) -> LaneReport {
        let rung = |rate_per_s, kept, late| Rung { rate_per_s, tries: vec![TRY, Try { late, ..TRY }], kept };
        let rungs = vec![rung(2_000, true, Some(Nanos::from_micros(60))), rung(5_000, false, None)];
        let found = LaneFindings { rungs, growth, gates, interrupted: false };
        let kept = found.limits("2026-11-22").map(|limits| (limits, "lanes.json".to_owned()));
        LaneReport { found, kept, before }
    }

    #[test]
    fn what_is_kept_is_said_and_where() {
        let text = report(Vec::new(), Vec::new(), None).text();
        assert!(text.contains("      2000                50       20 %   2, kept\n"), "{text}");
        assert!(
            text.contains(
                "A lane keeps 2000 req/s here: not later than 100 us by itself (p95), at most 50 % of a CPU."
            )
        );
        assert!(text.contains("one of two is the server's") && text.ends_with("from now on: lanes.json\n"), "{text}");
    }

    #[test]
    fn how_far_more_lanes_paid_is_said() {
        let grown = |lanes, rate| Grown { lanes, rates: vec![rate; 6] };
        let most = |rates: [f64; 3]| {
            let growth = (1..).zip(rates).map(|(lanes, rate)| grown(lanes, rate)).collect();
            report(Vec::new(), growth, None).text()
        };
        let text = most([100_000.0, 190_000.0, 195_000.0]);
        assert!(text.contains("More lanes than 2 did not pay") && text.contains("         3   195000\n"), "{text}");
        assert!(most([100_000.0, 190_000.0, 295_000.0]).contains("Each more lane paid, up to 3."));
    }

    #[test]
    fn what_is_not_kept_has_its_reason_and_what_stays() {
        let shared = vec![Gate::Steal { share: 0.07 }];
        let text = report(shared.clone(), Vec::new(), None).text();
        assert!(text.contains("Not kept: others used this machine meanwhile (stolen CPU 7"), "{text}");
        assert!(text.contains("; the rules for --lanes stay."), "{text}");
        let before = LaneLimits { measured_on: "2026-11-01".to_owned(), kept_per_s: 5_000, paying: None };
        let again = report(shared, Vec::new(), Some(before));
        assert!(again.text().contains("; what was measured on 2026-11-01 stays."));
        assert_eq!(
            (&again.json()["limits"], again.json()["rungs"][0]["tries"].as_array().map(Vec::len)),
            (&Value::Null, Some(2))
        );
    }
}
