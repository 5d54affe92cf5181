//! The reports of generators that keep a fixed number of connections busy: ab, bombardier, h2load.

use super::words::{self, bytes, count, first, key_and_value, percentile, time, time_in_words};
use super::{ToolReport, count_option};
use crate::claim::Claim;
use crate::figure::PrintedFigure;
use crate::load_tool::LoadTool;

/// `ApacheBench`. Its first `Time per request` is computed as concurrency x duration / requests, so
/// it always agrees with Little's law. We take the mean from the table of measured times, although
/// that has only whole milliseconds.
pub(super) fn ab(report: &ToolReport<'_>) -> Claim {
    let mut claim = report.claim(LoadTool::Ab, &["ab"]);
    let path = |line: &str| Some(line.strip_prefix("Document Path:")?.trim().into());
    claim.name = report.near(8).find_map(path);
    let untimed = claim.command.as_ref().filter(|command| count_option(command, &["-t"]).is_none());
    claim.asked = untimed.and_then(|command| count_option(command, &["-n"]));
    let milliseconds = |word: &str| PrintedFigure::parse(word).map(|ms| ms.scaled(1e-3));
    for line in report.texts() {
        if let Some((percent, rest)) = line.split_once('%') {
            let percent = format!("{}%", percent.trim());
            let time_s = milliseconds(first(rest));
            if time_s.is_some() && words::quantile(&percent).is_some_and(|quantile| quantile >= 1.0)
            {
                break;
            }
            claim.percentiles.extend(percentile(&percent, time_s));
        }
        let Some((key, value)) = key_and_value(line) else { continue };
        let word = first(value);
        match key {
            "Concurrency Level" => claim.connections = count(word),
            "Time taken for tests" => claim.duration_s = time_in_words(value),
            "Complete requests" => claim.requests = count(word),
            // One response can be in both counts, so only the larger of them is certain.
            "Failed requests" | "Non-2xx responses" => {
                claim.bad_answers = claim.bad_answers.max(count(word));
            }
            "Total transferred" => claim.received_bytes = PrintedFigure::parse(word),
            "Requests per second" => claim.rate_per_s = PrintedFigure::parse(word),
            "Transfer rate" => {
                claim.transfer_bytes_per_s =
                    PrintedFigure::parse(word).map(|rate| rate.scaled(1024.0));
            }
            // `min  mean[+/-sd] median   max`, in milliseconds.
            "Total" => {
                let figures: Vec<_> = value.split_whitespace().map(milliseconds).collect();
                if let [min, mean, stdev, _, max] = figures[..] {
                    [claim.min_s, claim.mean_s, claim.stdev_s, claim.max_s] =
                        [min, mean, stdev, max];
                }
            }
            _ => {}
        }
    }
    claim
}

/// bombardier. Its rate is the mean of rates sampled during the run, not requests / duration.
pub(super) fn bombardier(report: &ToolReport<'_>) -> Claim {
    let mut claim = report.claim(LoadTool::Bombardier, &["bombardier"]);
    // `Bombarding http://localhost:8080 with 10000 request(s) using 125 connection(s)`, or `for
    // 10s` instead of `with`.
    if let Some(line) = report.near(6).find(|line| line.starts_with("Bombarding ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let count_after = |name: &str| {
            words.windows(2).find(|pair| pair[0] == name).and_then(|pair| count(pair[1]))
        };
        claim.name = words.get(1).map(|url| (*url).into());
        claim.connections = count_after("using");
        claim.asked = count_after("with");
    }
    for line in report.texts() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Reqs/sec", mean, ..] => claim.rate_per_s = PrintedFigure::parse(mean),
            ["Latency", mean, stdev, max] => {
                [claim.mean_s, claim.stdev_s, claim.max_s] = [mean, stdev, max].map(time);
            }
            [percent, value] if percent.ends_with('%') => {
                claim.percentiles.extend(percentile(percent, time(value)));
            }
            ["1xx", "-", ..] => {
                let classes = words.chunks_exact(3).filter(|class| class[1] == "-");
                let counts =
                    classes.map(|class| (class[0].to_owned(), count(class[2]).unwrap_or(0)));
                claim.statuses.extend(counts.filter(|(_, n)| *n > 0));
            }
            ["others", "-", n] => claim.errors = count(n),
            ["Throughput:", rate] => {
                claim.transfer_bytes_per_s = rate.strip_suffix("/s").and_then(bytes);
                break;
            }
            _ => {}
        }
    }
    claim
}

/// nghttp2's h2load.
pub(super) fn h2load(report: &ToolReport<'_>) -> Claim {
    let mut claim = report.claim(LoadTool::H2load, &["h2load"]);
    if let Some(command) = &claim.command {
        claim.streams = count_option(command, &["-m", "--max-concurrent-streams"]).or(Some(1));
        claim.connections = count_option(command, &["-c", "--clients"]);
        claim.asked = count_option(command, &["-n", "--requests"]);
    }
    // Each thread prints how many clients it has; their sum is the number of connections.
    let spawned = report
        .above
        .iter()
        .filter_map(|line| h2load_clients(&line.text))
        .reduce(u64::saturating_add);
    claim.connections = spawned.or(claim.connections);
    for line in report.texts() {
        if let Some(rest) = line.strip_prefix("finished in ") {
            let parts: Vec<&str> = rest.split(", ").collect();
            if let [duration, rate, ..] = parts[..] {
                claim.duration_s = time(duration);
                claim.rate_per_s = PrintedFigure::parse(first(rate));
                let transfer = parts.get(2).and_then(|part| part.strip_suffix("/s"));
                claim.transfer_bytes_per_s = transfer.and_then(bytes);
            }
        } else if line.starts_with("req/s  ") {
            break;
        }
        let Some((key, value)) = key_and_value(line) else { continue };
        match key {
            "requests" => {
                claim.requests = count_before(value, "done");
                // Not `failed`, which includes responses of 400 and more: those are among the
                // statuses.
                let lost =
                    ["errored", "timeout"].map(|name| count_before(value, name).unwrap_or(0));
                claim.errors = Some(lost[0].max(lost[1]));
            }
            "status codes" => {
                let class = |name: &str| {
                    Some((name.to_owned(), count_before(value, name).filter(|n| *n > 0)?))
                };
                claim.statuses.extend(["2xx", "3xx", "4xx", "5xx"].into_iter().filter_map(class));
            }
            "traffic" => {
                let exact = value.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
                claim.received_bytes = exact.and_then(|(n, _)| PrintedFigure::parse(n));
            }
            "time for request" => {
                let figures: Vec<&str> = value.split_whitespace().collect();
                if let [min, max, mean, stdev, ..] = figures[..] {
                    claim.min_s = h2load_time(min);
                    claim.max_s = h2load_time(max);
                    claim.mean_s = h2load_time(mean);
                    claim.stdev_s = h2load_time(stdev);
                }
            }
            _ => {}
        }
    }
    claim
}

/// A time that h2load printed: whole microseconds are truncated, anything else is rounded.
fn h2load_time(word: &str) -> Option<PrintedFigure> {
    let time = time(word)?;
    Some(if time.decimals == 0 { time.truncated() } else { time })
}

/// `spawning thread #0: 8 total client(s). 20000 total requests`
fn h2load_clients(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("spawning thread #")?.split_once(": ")?;
    count(first(rest))
}

/// The count in front of a name: `20000 total, 20000 started`.
fn count_before(list: &str, name: &str) -> Option<u64> {
    list.split(',').find_map(|item| {
        let (n, what) = item.trim().split_once(' ')?;
        (what.trim() == name).then(|| count(n))?
    })
}
