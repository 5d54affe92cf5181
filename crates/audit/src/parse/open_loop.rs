//! The reports of generators that send at a rate: vegeta, `attack.cr`, `ic-workload-generator`.

use super::words::{self, count, key_and_value, percentile, time, time_in_words};
use super::{Line, MOST_CLAIMS, ToolReport, command_line, option};
use crate::claim::{Claim, RequestLine};
use crate::figure::PrintedFigure;
use crate::load_tool::LoadTool;

/// vegeta's text report: heads that name what their figures are.
pub(super) fn vegeta(report: &ToolReport<'_>) -> Claim {
    let mut claim = report.bare_claim(LoadTool::Vegeta);
    // It may be in the middle of a pipe.
    claim.command = report.near(10).find(|line| line.contains("vegeta attack")).map(command_line);
    claim.offered_per_s = claim
        .command
        .as_ref()
        .and_then(|command| option(command, &["-rate", "--rate"], vegeta_rate));
    for line in report.texts() {
        let Some((head, rest)) = line.split_once('[') else { continue };
        let Some((names, values)) = rest.split_once(']') else { continue };
        if head.trim() == "Status Codes" {
            let codes = values.split(", ").next().unwrap_or_default();
            let pairs = codes.split_whitespace().filter_map(|pair| pair.split_once(':'));
            claim.statuses.extend(pairs.filter_map(|(code, n)| Some((code.to_owned(), count(n)?))));
            break;
        }
        for (name, value) in names.split(", ").map(str::trim).zip(values.split(", ").map(str::trim))
        {
            match (head.trim(), name) {
                ("Requests", "total") => claim.requests = count(value),
                ("Requests", "rate") => claim.rate_per_s = PrintedFigure::parse(value),
                // Its rate is over the attack, without the wait for the last response.
                ("Duration", "attack") => claim.duration_s = time(value),
                ("Latencies", "min") => claim.min_s = time(value),
                ("Latencies", "mean") => claim.mean_s = time(value),
                ("Latencies", "max") => claim.max_s = time(value),
                ("Latencies", percent) => {
                    claim.percentiles.extend(percentile(&format!("{percent}%"), time(value)));
                }
                ("Bytes In", "total") => claim.received_bytes = PrintedFigure::parse(value),
                ("Bytes In", "mean") => claim.answer_bytes = PrintedFigure::parse(value),
                _ => {}
            }
        }
    }
    claim
}

/// `100`, `100/s`, `100/1s`, `6000/1m`; 0 is no limit.
fn vegeta_rate(word: &str) -> Option<PrintedFigure> {
    let (number, per) = word.split_once('/').unwrap_or((word, "1s"));
    let per = time(per).or_else(|| time(&format!("1{per}")))?.value;
    let number = PrintedFigure::parse(number).filter(|number| number.value > 0.0 && per > 0.0)?;
    Some(number.scaled(1.0 / per).exact())
}

/// The lines of `attack.cr`: one a request, in the order of their numbers, with its status and
/// time.
pub(super) fn attack(lines: &[Line<'_>]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut floor = 0;
    let mut at = 0;
    while at < lines.len() {
        let answers: Vec<RequestLine> =
            lines[at..].iter().map_while(|line| request_line(&line.text)).collect();
        if answers.is_empty() {
            at += 1;
            continue;
        }
        let mut claim = Claim::new(LoadTool::Attack, lines[at].number);
        let mut near = lines[floor.max(at.saturating_sub(20))..at].iter().rev();
        let command = near.find(|line| line.text.contains("--target-throughput="));
        claim.command = command.map(|line| command_line(&line.text));
        if let Some(command) = &claim.command {
            let exact = |word: &str| PrintedFigure::parse(word).map(PrintedFigure::exact);
            claim.offered_per_s = option(command, &["--target-throughput"], exact);
            claim.delay_s = sleep_s(command);
        }
        for answer in &answers {
            match answer.status {
                Some(status) => *claim.statuses.entry(status.to_string()).or_insert(0) += 1,
                None => claim.errors = Some(claim.errors.unwrap_or(0) + 1),
            }
        }
        at += answers.len();
        floor = at;
        claim.requests = Some(answers.len() as u64);
        claim.answers = answers;
        claims.push(claim);
        if claims.len() > MOST_CLAIMS {
            break;
        }
    }
    claims
}

/// `request 99 status=200 latency=1006.335446ms`, and `request 7 error=timed_out after=20000.0ms`.
/// Whoever copies from a terminal loses the first letter.
fn request_line(line: &str) -> Option<RequestLine> {
    let mut words = line.split_whitespace();
    if !"request".ends_with(words.next()?) {
        return None;
    }
    let number = words.next()?;
    let outcome = words.next()?;
    let last = words.next()?;
    if words.next().is_some() {
        return None;
    }
    let (name, value) = last.split_once('=')?;
    let status = match (outcome.split_once('=')?, name) {
        (("status", status), "latency") => Some(status.parse().ok()?),
        (("error", _), "after") => None,
        _ => return None,
    };
    Some(RequestLine { number: number.parse().ok()?, status, time_s: time(value)? })
}

/// `?ms=1000` in the address.
fn sleep_s(command: &str) -> Option<f64> {
    let (_, query) = command.split_once('?')?;
    let value = query.split(['&', ' ', '"', '\'']).find_map(|pair| pair.strip_prefix("ms="))?;
    PrintedFigure::parse(value).map(|ms| ms.value / 1e3)
}

/// `ic-workload-generator`'s summary, emoji and their mojibake included.
pub(super) fn workload(report: &ToolReport<'_>) -> Claim {
    let mut claim = report.bare_claim(LoadTool::Workload);
    let head = &*report.lines[0].text;
    let number = |key: &str| {
        let (_, rest) = head.split_once(key)?;
        rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next()
    };
    claim.offered_per_s =
        number("requested:").and_then(PrintedFigure::parse).map(PrintedFigure::exact);
    claim.rate_per_s =
        number("achieved:").and_then(PrintedFigure::parse).map(PrintedFigure::truncated);
    let failures =
        ["submit failures:", "wait failures:"].map(|key| number(key).and_then(words::count));
    claim.bad_answers = failures.into_iter().flatten().reduce(u64::saturating_add);
    let mut are_codes = false;
    for line in report.texts().skip(1) {
        match key_and_value(line) {
            Some(("Average", value)) => {
                claim.mean_s = time_in_words(value);
                let stdev =
                    value.split_once("std:").map(|(_, rest)| rest.trim().trim_end_matches(')'));
                claim.stdev_s = stdev.and_then(time_in_words);
            }
            Some(("Median", value)) => {
                claim.set_percentiles(&[0.5], time_in_words(value).into_iter());
            }
            Some(("Longest", value)) => claim.max_s = time_in_words(value),
            Some(("Shortest", value)) => claim.min_s = time_in_words(value),
            Some(("Requests", value)) => claim.requests = count(value),
            Some(("Status codes", _)) => are_codes = true,
            Some((code, n)) if are_codes && code.parse::<u16>().is_ok() => {
                claim.statuses.extend(count(n).map(|n| (code.to_owned(), n)));
            }
            _ if are_codes => break,
            _ => {}
        }
    }
    claim
}
