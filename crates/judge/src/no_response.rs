//! Why no request of a load was answered, and what to check first.

use model::counts::name;
use model::{BadResponse, LoadPlan, LoadStudy, Outcome, Run, Tally};

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
    let check_first = match most_frequent {
        Some(Outcome::BadResponse) => what_to_check_of_bad(tally),
        Some(outcome) => what_to_check(outcome, plan),
        None => NOTHING_LISTENS,
    };
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
        Outcome::Refused => {
            "something listened there before the start: is there still a server, or is its accept \
             queue full?"
        }
        Outcome::Closed | Outcome::Reset => {
            "it took the connections and ended them: what does its log say?"
        }
        Outcome::ConnectFailed
        | Outcome::BadResponse
        | Outcome::Answered(_)
        | Outcome::WrongLength
        | Outcome::Skipped
        | Outcome::NotSent => NOTHING_LISTENS,
    }
}

/// What to check first if most requests had a bad response: for the most frequent reason.
fn what_to_check_of_bad(tally: &Tally) -> &'static str {
    let most_frequent = tally.bad_responses.iter().max_by_key(|(_, requests)| *requests);
    match most_frequent.map(|(reason, _)| reason) {
        Some(BadResponse::BodyToHead) => "use GET",
        Some(BadResponse::BodyByStatus) => "mend the server: curl -v shows what it sends",
        Some(BadResponse::TrailingBytes) => {
            "does it send more than its Content-Length says, or answer a request twice (curl -v)?"
        }
        Some(
            BadResponse::MalformedHead
            | BadResponse::FoldedLine
            | BadResponse::LongHead
            | BadResponse::ContentLength
            | BadResponse::ChunkedBody,
        ) => "it speaks HTTP and breaks its rules (RFC 9112): curl -v shows what it sends",
        Some(
            BadResponse::NotHttp
            | BadResponse::StatusLine
            | BadResponse::SwitchedProtocol
            | BadResponse::BeforeRequest,
        )
        | None => "longtail speaks HTTP/1.1 only: is this the port of such a server?",
    }
}
