//! Figures and counts as the sentences of a diagnostic have them.

use crate::Nanos;

pub(super) fn standstill(share: f64, longest: Nanos) -> String {
    match longest {
        Nanos::ZERO => "no generator thread stood still".to_owned(),
        _ => format!(
            "a generator thread stood still for {} of the time, {:.2} s at once",
            percent(share),
            longest.as_secs_f64()
        ),
    }
}

pub(super) fn failures(failed: u64, planned: u64) -> String {
    match planned {
        0 => "no request was due in the measured window".to_owned(),
        _ => format!("{failed} of {planned} requests had no good response"),
    }
}

pub(super) fn conservation(worker: Option<u32>, client: u64, server: u64) -> String {
    match worker {
        Some(pid) => {
            format!("worker {pid} counts {server} requests, and {client} responses name it")
        }
        None => format!("the server counts {server} requests, and {client} responses came back"),
    }
}

pub(super) fn steadiness(settled_after: Option<Nanos>, shift: f64) -> String {
    match settled_after {
        Some(Nanos::ZERO) => "response times were steady from the start".to_owned(),
        Some(after) => format!("response times were steady after {:.2} s", after.as_secs_f64()),
        None => {
            format!(
                "response times did not settle: the second half differs from the first by {:+.1} %",
                shift * 100.0
            )
        }
    }
}

/// How many standard deviations a Poisson count is off.
pub(crate) fn deviations(count: u64, expected: f64) -> f64 {
    (count as f64 - expected) / expected.max(1.0).sqrt()
}

/// `1 request`, `2 requests`.
pub(super) fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// `0.123` as `12.3 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `0.999` as `99.9`.
pub(super) fn percentile(quantile: f64) -> String {
    format!("{:.3}", quantile * 100.0).trim_end_matches('0').trim_end_matches('.').to_owned()
}
