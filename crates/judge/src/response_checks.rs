//! Whether the checks of the responses (`load --check`) hold, in a sentence each. Like thresholds they
//! decide the exit code.

use model::Study;
use serde::Serialize;

use crate::cut_short::{result_so_far, so_far};

/// What a failed check begins with in a study.
const FAILED: &str = "FAILED ";

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseCheckResult {
    /// Whether each response that was checked is as it should be, and at least one was.
    pub holds: bool,
    /// What was found, such as `FAIL --check: status 200: 0 of 50 responses`.
    pub sentence: String,
}

/// The results of all checks of a load; none of other studies.
pub fn response_checks(study: &Study) -> Vec<ResponseCheckResult> {
    let Study::Load(load) = study else { return Vec::new() };
    let so_far = so_far(study);
    let result = |line: &String| {
        let (word, seen) = match line.strip_prefix(FAILED) {
            Some(seen) => ("FAIL", seen),
            None => ("PASS", line.as_str()),
        };
        let sentence = format!("{} --check: {seen}", result_so_far(word, so_far.as_deref()));
        ResponseCheckResult { holds: word == "PASS", sentence }
    };
    load.checks.iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_fails_is_told_from_one_that_holds() {
        let mut load = testkit::load::tiny();
        load.checks = [
            "FAILED status 200: 0 of 50 responses (request 2: status 302)",
            "6 bytes: 50 of 50 bodies",
        ]
        .map(str::to_owned)
        .into();
        let [failed, held] = &response_checks(&load.into())[..] else { panic!() };
        assert_eq!(
            failed.sentence,
            "FAIL --check: status 200: 0 of 50 responses (request 2: status 302)"
        );
        assert_eq!(held.sentence, "PASS --check: 6 bytes: 50 of 50 bodies");
        assert_eq!([failed.holds, held.holds], [false, true]);
    }
}
