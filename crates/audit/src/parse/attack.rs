//! The lines of `attack.cr`: one a request, in the order of their numbers, with its status and time.

use super::{command, scan};
use crate::claim::{Answer, Claim, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut floor = 0;
    let mut at = 0;
    while at < lines.len() {
        let answers: Vec<Answer> = lines[at..].iter().map_while(|line| answer(line)).collect();
        if answers.is_empty() {
            at += 1;
            continue;
        }
        let mut claim = Claim::new(Tool::Attack, at + 1);
        claim.requests = Some(answers.len() as u64);
        claim.answers = answers;
        at += claim.answers.len();
        if let Some(command) = attack(lines, claim.line - 1, floor) {
            claim.command = Some(command.to_owned());
            let exact = |word: &str| Printed::parse(word).map(|rate| Printed { half_width: 0.0, ..rate });
            claim.offered_per_s = command::option(command, &["--target-throughput"], exact);
            claim.delay_s = sleep_s(command);
        }
        for answer in &claim.answers {
            match answer.status {
                Some(status) => *claim.statuses.entry(status.to_string()).or_insert(0) += 1,
                None => claim.errors = Some(claim.errors.unwrap_or(0) + 1),
            }
        }
        floor = at;
        claims.push(claim);
    }
    claims
}

/// `request 99 status=200 latency=1006.335446ms`, and `request 7 error=timed_out after=20000.0ms`. Whoever copies from a
/// terminal loses the first letter.
fn answer(line: &str) -> Option<Answer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [head, number, outcome, time] = words[..] else { return None };
    if head.is_empty() || !"request".ends_with(head) {
        return None;
    }
    let (name, time) = time.split_once('=')?;
    let status = match (outcome.split_once('=')?, name) {
        (("status", status), "latency") => Some(status.parse().ok()?),
        (("error", _), "after") => None,
        _ => return None,
    };
    Some(Answer { number: number.parse().ok()?, status, time_s: scan::time(time)? })
}

fn attack(lines: &[String], at: usize, floor: usize) -> Option<&str> {
    let near = lines[floor.max(at.saturating_sub(20)).min(at)..at].iter().rev();
    near.map(|line| line.trim()).find(|line| line.contains("--target-throughput="))
}

/// `?ms=1000` in the address.
fn sleep_s(command: &str) -> Option<f64> {
    let (_, query) = command.split_once('?')?;
    let value = query.split(['&', ' ', '"', '\'']).find_map(|pair| pair.strip_prefix("ms="))?;
    Printed::parse(value).map(|ms| ms.value / 1e3)
}
