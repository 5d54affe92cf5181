//! vegeta's text report: heads that name what their figures are.

use super::{blocks, command, scan};
use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let found = blocks(lines, |line| line.starts_with("Requests ") && line.contains("[total"));
    found.into_iter().map(|(from, to)| claim(lines, from, &lines[from..to])).collect()
}

fn claim(lines: &[String], at: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Vegeta, at + 1);
    if let Some(command) = attack(lines, at) {
        claim.command = Some(command.to_owned());
        claim.offered_per_s = command::option(command, &["-rate", "--rate"], rate);
    }
    for line in block {
        let line = line.trim();
        let Some((head, rest)) = line.split_once('[') else { continue };
        let Some((names, values)) = rest.split_once(']') else { continue };
        let values: Vec<&str> = values.split(", ").map(str::trim).collect();
        let each = names.split(", ").map(str::trim).zip(values.iter().copied());
        match head.trim() {
            "Requests" => {
                for (name, value) in each {
                    match name {
                        "total" => claim.requests = scan::count(value),
                        "rate" => claim.rate_per_s = Printed::parse(value),
                        _ => {}
                    }
                }
            }
            // Its rate is over the attack, without the wait for the last answer.
            "Duration" => {
                for (name, value) in each {
                    if name == "attack" {
                        claim.duration_s = scan::time(value);
                    }
                }
            }
            "Latencies" => each.for_each(|(name, value)| latency(&mut claim, name, value)),
            "Bytes In" => {
                for (name, value) in each {
                    match name {
                        "total" => claim.received_bytes = Printed::parse(value),
                        "mean" => claim.answer_bytes = Printed::parse(value),
                        _ => {}
                    }
                }
            }
            "Status Codes" => {
                let codes = values.first().copied().unwrap_or_default();
                for (code, count) in codes.split_whitespace().filter_map(|pair| pair.split_once(':')) {
                    if let Some(count) = scan::count(count) {
                        claim.statuses.insert(code.to_owned(), count);
                    }
                }
                break;
            }
            _ => {}
        }
    }
    claim
}

/// A line with `vegeta attack` in it, which may be in the middle of a pipe.
fn attack(lines: &[String], at: usize) -> Option<&str> {
    let near = lines[at.saturating_sub(10)..at].iter().rev();
    near.map(|line| line.trim()).find(|line| line.contains("vegeta attack"))
}

fn latency(claim: &mut Claim, name: &str, value: &str) {
    let Some(time_s) = scan::time(value) else { return };
    match name {
        "min" => claim.min_s = Some(time_s),
        "mean" => claim.mean_s = Some(time_s),
        "max" => claim.max_s = Some(time_s),
        percent => {
            if let Some(quantile) = scan::quantile(&format!("{percent}%")).filter(|quantile| *quantile < 1.0) {
                claim.percentiles.push(Percentile { quantile, time_s });
            }
        }
    }
}

/// `100`, `100/s`, `100/1s`, `6000/1m`; 0 is no limit.
fn rate(word: &str) -> Option<Printed> {
    let (number, per) = word.split_once('/').unwrap_or((word, "1s"));
    let per = scan::time(per).or_else(|| scan::time(&format!("1{per}")))?.value;
    let number = Printed::parse(number).filter(|number| number.value > 0.0 && per > 0.0)?;
    Some(Printed { half_width: 0.0, ..number.scaled(1.0 / per) })
}
