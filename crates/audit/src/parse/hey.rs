//! Reads the summary of hey, that of oha, which has the same lines with other units, and the rows
//! of Puma's `long_tail_hey`.
//!
//! hey and oha print neither connections nor requests: connections come from a command line above
//! (50 if it does not say), requests from statuses and errors.

use std::collections::BTreeMap;

use super::words::{self, bytes, count, first, key_and_value, time_in_words};
use super::{Line, MOST_CLAIMS, ToolReport, bare, command_line, count_option, option, server};
use crate::claim::{Claim, ClaimedServer, ClaimedShares, HistogramBin, PrintedPercentile};
use crate::figure::{FigureRange, PrintedFigure};
use crate::load_tool::LoadTool;

/// What `-c` is when it is not given.
const CONNECTIONS: u64 = 50;

/// From `Summary:` to the next one.
pub(super) fn hey_and_oha(report: &ToolReport<'_>) -> Claim {
    let is_oha = report.texts().take(3).any(|line| line.starts_with("Success rate"));
    let is_ours = report.texts().any(|line| line.starts_with(report::hey::BY_LONGTAIL));
    let (tool, program) = match (is_oha, is_ours) {
        (_, true) => (LoadTool::Longtail, "longtail"),
        (true, _) => (LoadTool::Oha, "oha"),
        (false, _) => (LoadTool::Hey, "hey"),
    };
    let mut claim = report.claim(tool, &[program]);
    figures(&mut claim, report);
    if is_ours {
        return claim;
    }
    if let Some(command) = &claim.command {
        claim.connections = count_option(command, &["-c"]).or(Some(CONNECTIONS));
        // With -z the run lasts that long, whatever -n says.
        let is_timed = option(command, &["-z"], words::time).is_some();
        claim.asked = count_option(command, &["-n"]).filter(|_| !is_timed);
        let rate = option(command, &["-q"], PrintedFigure::parse).map(PrintedFigure::exact);
        // hey's -q is the rate of each connection.
        let each =
            claim.connections.filter(|_| !is_oha).map_or(1.0, |connections| connections as f64);
        claim.offered_per_s =
            rate.filter(|rate| rate.value > 0.0 || is_oha).map(|rate| rate.scaled(each));
        claim.streams = count_option(command, &["-p"]).filter(|_| is_oha);
    }
    claim
}

/// How the first line of each part of a report begins.
const PARTS: [&str; 6] = [
    "Response time histogram:",
    "Latency distribution:",
    "Response time distribution:",
    "Status code distribution:",
    "Error distribution:",
    "Details (average",
];

fn figures(claim: &mut Claim, report: &ToolReport<'_>) {
    let mut part = "Summary:";
    for line in report.texts() {
        if let Some(head) = PARTS.into_iter().find(|head| line.starts_with(head)) {
            part = head;
            continue;
        }
        match part {
            "Summary:" => summary(claim, line),
            "Response time histogram:" => claim.bins.extend(bin(line)),
            "Latency distribution:" | "Response time distribution:" => {
                claim.percentiles.extend(percentile(line));
            }
            "Status code distribution:" | "Error distribution:" => match bracketed(line) {
                Some((status, n)) if part.starts_with("Status") => {
                    claim.statuses.extend(count(first(n)).map(|n| (status.to_owned(), n)));
                }
                Some((n, what)) => {
                    let n = count(n).unwrap_or(0);
                    claim.errors = Some(claim.errors.unwrap_or(0).saturating_add(n));
                    // They were still out when oha's time was up, so they are not failures.
                    if what.contains("aborted due to deadline") {
                        claim.unfinished = Some(claim.unfinished.unwrap_or(0).saturating_add(n));
                    }
                }
                // Text that follows in the same file.
                None if !line.is_empty() => part = "",
                None => {}
            },
            _ => {}
        }
    }
}

fn summary(claim: &mut Claim, line: &str) {
    let Some((key, value)) = key_and_value(line) else { return };
    let (figure, read): (_, fn(&str) -> Option<PrintedFigure>) = match key {
        "Total" => (&mut claim.duration_s, time_in_words),
        "Slowest" => (&mut claim.max_s, time_in_words),
        "Fastest" => (&mut claim.min_s, time_in_words),
        "Average" => (&mut claim.mean_s, time_in_words),
        "Requests/sec" => (&mut claim.rate_per_s, PrintedFigure::parse),
        "Total data" => (&mut claim.received_bytes, bytes),
        "Size/request" => (&mut claim.answer_bytes, bytes),
        "Size/sec" => (&mut claim.transfer_bytes_per_s, bytes),
        _ => return,
    };
    *figure = figure.or_else(|| read(value));
}

/// `0.025 [820206] |■■■` or `0.817 ms [160796] |■■■`.
fn bin(line: &str) -> Option<HistogramBin> {
    let (mark, rest) = line.split_once('[')?;
    let mark = mark.trim();
    let up_to_s =
        if mark.contains(' ') { time_in_words(mark)? } else { PrintedFigure::parse(mark)? };
    Some(HistogramBin { up_to_s, count: count(rest.split_once(']')?.0)? })
}

/// `99% in 0.0172 secs`.
fn percentile(line: &str) -> Option<PrintedPercentile> {
    let (percent, time) = line.split_once(" in ")?;
    // If it has too few times for a percentile, hey prints an empty one: `0% in 0.0000 secs`.
    words::percentile(percent.trim(), time_in_words(time)).filter(|found| found.quantile > 0.0)
}

/// `[200] 824106 responses`: what is in the brackets, and the rest.
fn bracketed(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((inside.trim(), rest.trim()))
}

/// The tables of Puma's `long_tail_hey`: hey's percentiles in seconds, and how the workers shared
/// the requests.
pub(super) fn long_tail(lines: &[Line<'_>]) -> Vec<Claim> {
    // The last command line above for each number of connections.
    let mut commands = BTreeMap::new();
    let mut claims = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let command = bare(&line.text);
        if command.starts_with("hey ") {
            commands.insert(count_option(command, &["-c"]), command);
        } else if is_head(&line.text) {
            claims.extend(table(lines, at, &commands));
        }
        if claims.len() > MOST_CLAIMS {
            break;
        }
    }
    claims
}

fn is_head(line: &str) -> bool {
    line.contains("Mult/Conn") && line.contains("req/sec")
}

/// hey's command lines by their `-c`.
type HeyCommands<'a> = BTreeMap<Option<u64>, &'a str>;

fn table(lines: &[Line<'_>], head: usize, commands: &HeyCommands<'_>) -> Vec<Claim> {
    let above = &lines[head.saturating_sub(3)..head];
    let server = above.iter().rev().find_map(|line| server(&line.text));
    let delay_s = above.iter().rev().find_map(|line| delay_s(&line.text));
    let mut claims: Vec<Claim> =
        lines[head + 1..].iter().map_while(row).take(MOST_CLAIMS + 1).collect();
    let unloaded_s = claims.iter().find_map(|claim| unloaded_s(claim, server?));
    for claim in &mut claims {
        (claim.server, claim.delay_s) = (server, delay_s);
        if let Some(command) = commands.get(&claim.connections) {
            claim.command = Some(command_line(command));
            claim.asked = count_option(command, &["-n"]);
        }
        if let Some(shares) = &mut claim.shares {
            shares.unloaded_s = unloaded_s;
        }
    }
    claims
}

/// `dly 0.2` in the line above the head.
fn delay_s(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .windows(2)
        .find(|pair| pair[0] == "dly")
        .and_then(|pair| PrintedFigure::parse(pair[1]))
        .map(|it| it.value)
}

/// How long a request occupies its slot, from a row where every request found one free.
fn unloaded_s(claim: &Claim, server: ClaimedServer) -> Option<FigureRange> {
    let connections = claim.connections.filter(|n| *n <= server.slots())?;
    let is_even =
        claim.shares.as_ref()?.deviations.iter().all(|deviation| deviation.value.abs() < 0.005);
    is_even.then(|| FigureRange::exactly(connections as f64).over(claim.rate_per_s?.range()))?
}

/// A row of a table; the head of the next table is not a row.
fn row(line: &Line<'_>) -> Option<Claim> {
    if is_head(&line.text) {
        return None;
    }
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let ([multiple, connections], rest) = words.split_first_chunk()?;
    PrintedFigure::parse(multiple)?;
    let (figures, rest) = rest.split_at_checked(9)?;
    let figures: Vec<PrintedFigure> =
        figures.iter().map(|word| PrintedFigure::parse(word)).collect::<Option<_>>()?;
    let mut claim = Claim::new(LoadTool::LongTailHey, line.number);
    claim.connections = count(connections);
    claim.name = Some(format!("{multiple} x").into());
    claim.rate_per_s = Some(figures[0]);
    // Its columns; 100 % is the longest.
    claim.set_percentiles(
        &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99],
        figures[1..8].iter().copied(),
    );
    claim.max_s = Some(figures[8]);
    claim.requests = rest.last().and_then(|total| count(total));
    claim.shares = shares(rest);
    Some(claim)
}

/// `0.935   -3.6 -1.6 -1.1  6.3    3000`; a single process has only the total.
fn shares(words: &[&str]) -> Option<ClaimedShares> {
    let [stdev, deviations @ .., _] = words else { return None };
    let deviations: Vec<PrintedFigure> =
        deviations.iter().map(|word| deviation(word)).collect::<Option<_>>()?;
    let stdev_points = PrintedFigure::parse(stdev);
    (!deviations.is_empty()).then_some(ClaimedShares { deviations, stdev_points, unloaded_s: None })
}

fn deviation(word: &str) -> Option<PrintedFigure> {
    let sign = if word.starts_with('-') { -1.0 } else { 1.0 };
    let printed = PrintedFigure::parse(word.trim_start_matches(['-', '+']))?.scaled(0.01);
    Some(PrintedFigure { value: sign * printed.value, ..printed })
}
