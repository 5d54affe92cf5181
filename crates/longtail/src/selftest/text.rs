//! The table of the self-test.

use model::{Environment, Nanos};
use report::number;

use crate::selftest::truth::ResponseFigures;
use crate::selftest::{CaseResult, CountBalance};

const HEAD: [&str; 2] = [
    "                        response time,  mean      p50      p99    p99.9     sent   send lag us  sink's  counts",
    "law                     ms                                               per s    p50    p99  p99 us  agree",
];

/// What was found, law by law.
pub(crate) fn table(results: &[CaseResult], environment: &Environment) -> String {
    let blocks: String = results.iter().map(block).collect();
    HEAD.join("\n") + "\n" + &blocks + "\n" + &closing(results) + &machine(environment)
}

fn block(result: &CaseResult) -> String {
    let millis = |figures: ResponseFigures| figures.all().map(|time| number::fixed(time.as_millis_f64(), 3));
    let none = || std::array::from_fn(|_| number::NONE.to_owned());
    let micros = |time: Option<Nanos>| number::or_none(time, |time| number::fixed(time.0 as f64 / 1e3, 0));
    let offered = format!("{:>9}", number::fixed(result.offered_per_s, 1));
    let sent = number::fixed(result.sent_per_s, 1);
    let [p50, p99, sink] = [result.send_lag.p50, result.send_lag.p99, result.sink_lateness.p99].map(micros);
    let error = |all: [i64; 4]| all.map(|ns| format!("{:+.3}", ns as f64 / 1e6));
    let off = format!("{:+.2}%", (result.sent_per_s / result.offered_per_s - 1.0) * 100.0);
    let agree = if result.conserved { format!("yes {}", result.planned) } else { "NO".to_owned() };
    let theory = result.steady_state.map(|theory| ("theory", millis(theory), String::new()));
    let rows = theory.into_iter().chain([
        ("expected", millis(result.expected), offered),
        ("measured", result.measured.map_or_else(none, millis), format!("{sent:>9}{p50:>7}{p99:>7}{sink:>8}")),
        ("error", result.error_ns.map_or_else(none, error), format!("{off:>9}{:>22}  {agree}", "")),
    ]);
    let names = std::iter::once(result.case).chain(std::iter::repeat(""));
    let line = |(name, (what, [mean, p50, p99, p999], rest)): (&str, (&str, [String; 4], String))| {
        format!("{name:<22}{what:<9}{mean:>9}{p50:>9}{p99:>9}{p999:>9}{rest}").trim_end().to_owned() + "\n"
    };
    names.zip(rows).map(line).collect()
}

fn closing(results: &[CaseResult]) -> String {
    let mut lines = Vec::new();
    for result in results {
        for CountBalance { what, expected, found } in result.balances.iter().filter(|balance| !balance.holds()) {
            lines.push(format!("NOT CONSERVED {}: {what}: {expected} and {found}", result.case));
        }
    }
    if lines.is_empty() {
        let requests: u64 = results.iter().map(|result| result.planned).sum();
        let counts = results.first().map_or(0, |result| result.balances.len());
        lines.push(format!(
            "All {requests} requests are in both ledgers, with their answers, bytes and connections ({counts} counts a case)."
        ));
    }
    for (result, worst) in results.iter().filter_map(|result| Some((result, result.worst_error?))) {
        let (case, worst) = (result.case, number::time(worst));
        lines.push(format!("{case}: the time of each request is known; the worst is {worst} off."));
    }
    let waits = results.iter().filter_map(|result| Some((result.run_queue?, result.case)));
    if let Some((most, case)) = waits.clone().max() {
        let sum: Nanos = waits.map(|(wait, _)| wait).sum();
        let (sum, most) = (number::time(sum), number::time(most));
        lines.push(format!("The engine waited {sum} for a CPU that others had, {most} of it in {case}."));
    }
    lines.push(
        "Expected: of exactly these seeded arrivals and delays. Theory: of the steady state, which a run only nears. Error:\n\
         measured from the due time, less expected; in it are the network, the machine's wake-ups, the sink's own lateness\n\
         and up to 0.1 % of the histogram. Times are printed and never fail the test; counts do.\n"
            .to_owned(),
    );
    lines.join("\n")
}

/// Where it was measured.
pub(crate) fn machine(environment: &Environment) -> String {
    format!("longtail {}, {}\n", environment.longtail_version, report::hardware_in_words(environment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::LagQuantiles;

    fn table_of(found: u64) -> String {
        let balances = vec![CountBalance { what: "requests sent, and received by the sink", expected: 7, found }];
        let result = CaseResult {
            case: "constant 1ms",
            planned: 7,
            steady_state: None,
            expected: ResponseFigures { mean: Nanos(1_000_000), ..ResponseFigures::default() },
            measured: None,
            error_ns: None,
            worst_error: None,
            offered_per_s: 7.0,
            sent_per_s: 7.0,
            send_lag: LagQuantiles::default(),
            sink_lateness: LagQuantiles::default(),
            run_queue: None,
            conserved: balances.iter().all(|balance| balance.holds()),
            balances,
        };
        let text = table(&[result], &Environment::default());
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        text
    }

    #[test]
    fn a_request_in_one_ledger_only_is_named_with_both_counts() {
        let (lost, whole) = (table_of(6), table_of(7));
        let named = "NOT CONSERVED constant 1ms: requests sent, and received by the sink: 7 and 6";
        assert!(lost.contains(named) && !lost.contains("in both ledgers"), "{lost}");
        assert!(whole.contains("All 7 requests are in both ledgers") && !whole.contains("NOT CONSERVED"), "{whole}");
    }
}
