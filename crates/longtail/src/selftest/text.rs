//! The table of the self-test.

use std::fmt::Write as _;

use model::{Environment, Nanos};
use report::number;

use crate::selftest::cases::Outcome;

const HEAD: [&str; 2] = [
    "                        response time,  mean      p50      p99    p99.9     sent   send lag us  sink's  counts",
    "law                     ms                                               per s    p50    p99  p99 us  agree",
];

/// What was found, law by law.
pub(crate) fn table(outcomes: &[Outcome], environment: &Environment) -> String {
    let mut text = HEAD.join("\n") + "\n";
    for outcome in outcomes {
        text.push_str(&block(outcome));
    }
    text.push_str(&closing(outcomes, environment));
    text
}

fn block(outcome: &Outcome) -> String {
    let millis = |times: [Nanos; 4]| times.map(|time| number::fixed(time.as_millis_f64(), 3));
    let none = || std::array::from_fn(|_| number::NONE.to_owned());
    let mut text = String::new();
    if let Some(theory) = outcome.steady_state {
        text.push_str(&row(outcome.case, "theory", &millis(theory.all()), ""));
    }
    let name = if outcome.steady_state.is_some() { "" } else { outcome.case };
    let offered = format!("{:>9}", number::fixed(outcome.offered_per_s, 1));
    text.push_str(&row(name, "expected", &millis(outcome.expected.all()), &offered));
    let micros = |time: Option<Nanos>| number::or_none(time, |time| number::fixed(time.0 as f64 / 1e3, 0));
    let rest = format!(
        "{:>9}{:>7}{:>7}{:>8}",
        number::fixed(outcome.sent_per_s, 1),
        micros(outcome.send_lag.p50),
        micros(outcome.send_lag.p99),
        micros(outcome.sink_lateness.p99),
    );
    let measured = outcome.measured.map_or_else(none, |measured| millis(measured.all()));
    text.push_str(&row("", "measured", &measured, &rest));
    let sign = |ns: i64| format!("{:+.3}", ns as f64 / 1e6);
    let error = outcome.error_ns.map_or_else(none, |all| all.map(sign));
    let off = format!("{:+.2}%", (outcome.sent_per_s / outcome.offered_per_s - 1.0) * 100.0);
    let agree = if outcome.conserved { format!("yes {}", outcome.planned) } else { "NO".to_owned() };
    text.push_str(&row("", "error", &error, &format!("{off:>9}{:>22}  {agree}", "")));
    text
}

fn row(name: &str, what: &str, figures: &[String; 4], rest: &str) -> String {
    let [mean, p50, p99, p999] = figures;
    let line = format!("{name:<22}{what:<9}{mean:>9}{p50:>9}{p99:>9}{p999:>9}{rest}");
    format!("{}\n", line.trim_end())
}

fn closing(outcomes: &[Outcome], environment: &Environment) -> String {
    let mut text = String::from("\n");
    for outcome in outcomes {
        for balance in outcome.balances.iter().filter(|balance| !balance.holds()) {
            let (what, expected, found) = (balance.what, balance.expected, balance.found);
            let _ = writeln!(text, "NOT CONSERVED {}: {what}: {expected} and {found}", outcome.case);
        }
    }
    let all = outcomes.iter().all(|outcome| outcome.conserved);
    let requests: u64 = outcomes.iter().map(|outcome| outcome.planned).sum();
    if all {
        let counts = outcomes.first().map_or(0, |outcome| outcome.balances.len());
        let _ = writeln!(
            text,
            "All {requests} requests are in both ledgers, with their answers, bytes and connections ({counts} counts a case)."
        );
    }
    for outcome in outcomes {
        if let Some(worst) = outcome.worst_error {
            let (case, worst) = (outcome.case, number::time(worst));
            let _ = writeln!(text, "{case}: the time of each request is known; the worst is {worst} off.");
        }
    }
    let waits = outcomes.iter().filter_map(|outcome| Some((outcome.run_queue?, outcome.case)));
    if let Some((most, case)) = waits.clone().max() {
        let sum: Nanos = waits.map(|(wait, _)| wait).sum();
        let (sum, most) = (number::time(sum), number::time(most));
        let _ = writeln!(text, "The engine waited {sum} for a CPU that others had, {most} of it in {case}.");
    }
    text.push_str(
        "Expected: of exactly these seeded arrivals and delays. Theory: of the steady state, which a run only nears. Error:\n\
         measured from the due time, less expected; in it are the network, the machine's wake-ups, the sink's own lateness\n\
         and up to 0.1 % of the histogram. Times are printed and never fail the test; counts do.\n",
    );
    text.push_str(&machine(environment));
    text
}

/// Where it was measured.
pub(crate) fn machine(environment: &Environment) -> String {
    format!("longtail {}, {}\n", environment.longtail_version, report::hardware_in_words(environment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::balance::Balance;
    use crate::selftest::cases::Lag;
    use crate::selftest::truth::Figures;

    #[test]
    fn a_request_in_one_ledger_only_is_named_with_both_counts() {
        let balances = vec![Balance { what: "requests sent, and received by the sink", expected: 7, found: 6 }];
        let times = Figures { mean: Nanos(1_000_000), ..Figures::default() };
        let outcome = Outcome {
            case: "constant 1ms",
            planned: 7,
            steady_state: None,
            expected: times,
            measured: None,
            error_ns: None,
            worst_error: None,
            offered_per_s: 7.0,
            sent_per_s: 7.0,
            send_lag: Lag::default(),
            sink_lateness: Lag::default(),
            run_queue: None,
            conserved: balances.iter().all(|balance| balance.holds()),
            balances,
        };
        let text = table(&[outcome], &Environment::default());
        assert!(
            text.contains("NOT CONSERVED constant 1ms: requests sent, and received by the sink: 7 and 6"),
            "{text}"
        );
        assert!(!text.contains("in both ledgers"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }
}
