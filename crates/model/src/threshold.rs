//! Thresholds: what the user wants of the figures of each run (`--expect`, `--fail-if`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Objective;
use crate::objective::BadObjective;

/// A condition that must hold, or must not. Printed, it is `expect p99 < 200ms` or `fail if p99 > 200ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// The condition.
    pub condition: Objective,
    /// Whether it must hold.
    pub is_expected: bool,
}

impl Threshold {
    /// Whether a figure keeps it.
    pub(crate) fn is_met_by(&self, value: f64) -> bool {
        self.condition.holds_for(value) == self.is_expected
    }

    /// The flag that asks for it.
    pub fn flag(&self) -> String {
        format!("{}={}", if self.is_expected { "--expect" } else { "--fail-if" }, self.condition)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_expected { EXPECT } else { FAIL_IF }, self.condition)
    }
}

const EXPECT: &str = "expect ";
const FAIL_IF: &str = "fail if ";

impl FromStr for Threshold {
    type Err = BadObjective;

    fn from_str(text: &str) -> Result<Threshold, BadObjective> {
        let (is_expected, condition) = match (text.strip_prefix(EXPECT), text.strip_prefix(FAIL_IF)) {
            (_, Some(condition)) => (false, condition),
            (condition, None) => (true, condition.unwrap_or(text)),
        };
        Ok(Threshold { condition: condition.parse()?, is_expected })
    }
}

impl TryFrom<String> for Threshold {
    type Error = BadObjective;

    fn try_from(text: String) -> Result<Threshold, BadObjective> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> String {
        threshold.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_read_as_it_is_printed() {
        for text in ["expect p99 < 200ms", "fail if p99 > 200ms", "expect throughput > 100/s", "fail if failed > 0.1%"]
        {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        assert_eq!("p99 < 200ms".parse::<Threshold>().unwrap().to_string(), "expect p99 < 200ms");
    }
}
