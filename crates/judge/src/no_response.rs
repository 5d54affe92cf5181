//! Why no request of a load was answered, and what to check first.

use model::counts::name;
use model::{LoadPlan, LoadStudy, Outcome, Run};

/// For a load that got no response at all: how its requests ended, and what to check first. `None`
/// if there was a response. `misunderstanding`: the reason, if one look at the server after the
/// load showed it.
pub fn explain_no_response(load: &LoadStudy, misunderstanding: Option<&str>) -> Option<String> {
    let LoadStudy { run: Run { tally, claim, .. }, plan, .. } = load;
    if let Some(claim) = claim {
        if claim.good().unwrap_or(0) > 0 || claim.failed.is_none() {
            return None;
        }
        return Some(format!(
            "{} had no good response at all: does anything serve {}?",
            claim.by, plan.url
        ));
    }
    let counts = &tally.counts;
    if counts.attempted() == 0 || tally.all_responses() > 0 {
        return None;
    }
    let kinds: Vec<String> = counts
        .iter()
        .map(|(outcome, n)| format!("{n} {}", name(outcome).replace('_', " ")))
        .collect();
    let what = format!("not one request to {} was answered ({})", plan.url, kinds.join(", "));
    let most_frequent = counts.iter().max_by_key(|(_, n)| *n).map(|(outcome, _)| outcome);
    let reason = most_frequent.and_then(|outcome| tally.reason(outcome));
    let check_first = most_frequent.map_or(NOTHING_LISTENS, |outcome| what_to_check(outcome, plan));
    Some(match (misunderstanding, reason) {
        (Some(misunderstanding), _) => format!("{what}: {misunderstanding}"),
        (None, Some(reason)) => format!("{what}: {reason}; {check_first}"),
        (None, None) => format!("{what}: {check_first}"),
    })
}

const NOTHING_LISTENS: &str = "does anything listen there?";

/// What to check first if most requests end this way.
fn what_to_check(outcome: Outcome, plan: &LoadPlan) -> &'static str {
    match outcome {
        Outcome::ConnectFailed if plan.tls => {
            "no TLS handshake succeeded during the load, but one does now: what does the server's \
             log say?"
        }
        Outcome::TimedOut | Outcome::ConnectTimedOut | Outcome::InFlight if plan.tls => {
            "does it speak TLS, and answer within --timeout?"
        }
        Outcome::TimedOut | Outcome::InFlight => {
            "connections were made: does it answer within --timeout?"
        }
        Outcome::ConnectTimedOut => {
            "no connection was made within --timeout: is its accept queue full, or is a firewall \
             in between?"
        }
        Outcome::NoRoute => "there is no route to it: is the address right (ip route get ADDRESS)?",
        Outcome::NoPort => {
            "this machine has no port left: give fewer connections, or keep them alive"
        }
        Outcome::NoDescriptor => {
            "raise the limit of open files (ulimit -n), or give fewer connections"
        }
        Outcome::BadResponse => "longtail speaks HTTP/1.1 only: is this the port of such a server?",
        Outcome::Refused => {
            "something listened there before the start: is there still a server, or is its accept \
             queue full?"
        }
        Outcome::Closed | Outcome::Reset => {
            "it took the connections and ended them: what does its log say?"
        }
        Outcome::ConnectFailed
        | Outcome::Answered(_)
        | Outcome::WrongLength
        | Outcome::Skipped
        | Outcome::NotSent => NOTHING_LISTENS,
    }
}
