//! The server refuses requests beyond the number that it takes at once (503, 429): load shedding.

use model::{AtOnce, Limit, Outcome, Run};

use crate::words::{rate_in_words, worth_in_words};

/// If at least this share of all requests is refused, the server sheds load on purpose.
const MANY: f64 = 0.1;

/// The limit, if a run has that many refusals. `at_once`: requests' worth of work at a time, by the
/// good responses.
pub(crate) fn of(run: &Run, at_once: Option<AtOnce>) -> Option<Limit> {
    let counts = &run.tally.counts;
    let mut refused: Vec<(u16, u64)> = Vec::new();
    for (outcome, requests) in counts.iter() {
        if let Outcome::Answered(status) = outcome
            && outcome.is_refusal()
        {
            refused.push((status, requests));
        }
    }
    let (status, _) = *refused.iter().max_by_key(|(_, requests)| *requests)?;
    let all: u64 = refused.iter().map(|(_, requests)| requests).sum();
    let is_many = all as f64 >= MANY * counts.total() as f64 && counts.good() > 0;
    let seconds = run.measured.as_secs_f64();
    (is_many && seconds > 0.0).then(|| Limit::Refusals {
        at_once,
        refused_per_s: all as f64 / seconds,
        status,
    })
}

pub(super) fn evidence(at_once: Option<&AtOnce>, refused_per_s: f64, status: u16) -> String {
    let worth = at_once
        .map(|at_once| format!("{} of work at a time; ", worth_in_words(at_once)))
        .unwrap_or_default();
    format!("{worth}{}/s answered with {status}", rate_in_words(refused_per_s))
}

pub(super) fn sentence(at_once: Option<&AtOnce>, refused_per_s: f64, status: u16) -> String {
    let refused = rate_in_words(refused_per_s);
    let worth = at_once
        .map(|at_once| format!(": it serves {} of work at a time", worth_in_words(at_once)))
        .unwrap_or_default();
    format!(
        "The server refuses requests beyond what it takes at once ({refused}/s with status \
         {status}){worth}."
    )
}
