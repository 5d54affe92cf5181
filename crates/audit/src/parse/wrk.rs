//! wrk's and wrk2's reports, and the rows of Puma's `response_time_wrk`. wrk's times went through
//! `stats_correct`: see the check of phantom samples. wrk2's times run from when a request was due.

use super::words::{bytes, count, key_and_value, percentile, time};
use super::{Line, MOST_CLAIMS, ToolReport, command_line, count_option, server};
use crate::claim::{Claim, ClaimedServer, HistogramBin};
use crate::figure::PrintedFigure;
use crate::load_tool::LoadTool;

/// From `Running 30s test @ …` to `Transfer/sec`.
pub(super) fn wrk_and_wrk2(report: &ToolReport<'_>) -> Claim {
    let last = report.texts().position(|line| line.starts_with("Transfer/sec"));
    let block = || report.texts().take(last.map_or(usize::MAX, |last| last + 1));
    let is_wrk2 =
        block().any(|line| line.contains("HdrHistogram") || line.contains("Thread calibration"));
    let mut claim = if report.texts().any(|line| line.starts_with(report::wrk::BY_LONGTAIL)) {
        report.claim(LoadTool::Longtail, &["longtail"])
    } else {
        report.claim(if is_wrk2 { LoadTool::Wrk2 } else { LoadTool::Wrk }, &["wrk", "wrk2"])
    };
    claim.name = report.lines[0].text.split_once(" @ ").map(|(_, url)| url.trim().into());
    // Without `--latency` there are no percentiles.
    let mut is_distribution = false;
    for line in block().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [threads, "threads", "and", connections, "connections"] => {
                claim.threads = count(threads);
                claim.connections = count(connections);
            }
            ["Latency", "Distribution", ..] => is_distribution = true,
            ["Latency", mean, stdev, max, ..] => {
                [claim.mean_s, claim.stdev_s, claim.max_s] = [mean, stdev, max].map(time);
            }
            [percent, value] if is_distribution && percent.ends_with('%') => {
                claim.percentiles.extend(percentile(percent, time(value)));
            }
            [requests, "requests", "in", duration, read, "read"] => {
                claim.requests = count(requests);
                claim.duration_s = time(duration);
                claim.received_bytes = bytes(read);
                is_distribution = false;
            }
            ["Socket", "errors:", ..] => socket_errors(&mut claim, &words),
            _ => {}
        }
        match key_and_value(line) {
            Some(("Requests/sec", rate)) => claim.rate_per_s = PrintedFigure::parse(rate),
            Some(("Transfer/sec", rate)) => claim.transfer_bytes_per_s = bytes(rate),
            Some(("Non-2xx or 3xx responses", n)) => claim.bad_answers = count(n),
            _ => {}
        }
    }
    if is_wrk2 {
        let asked =
            claim.command.as_ref().and_then(|command| count_option(command, &["-R", "--rate"]));
        claim.offered_per_s =
            asked.map(|n| PrintedFigure { value: n as f64, half_width: 0.0, decimals: 0 });
        claim.samples = block().find_map(total_count);
        claim.bins = spectrum(block());
    }
    claim
}

/// `Socket errors: connect 0, read 88, write 0, timeout 12`.
fn socket_errors(claim: &mut Claim, words: &[&str]) {
    let named =
        |name: &str| words.windows(2).find(|pair| pair[0] == name).and_then(|pair| count(pair[1]));
    let each = ["connect", "read", "write"].map(|name| named(name).unwrap_or(0));
    claim.errors = Some(each.iter().fold(0, |sum, n| sum.saturating_add(*n)));
    claim.timeouts = named("timeout");
}

/// The rows of wrk2's detailed spectrum, `8.215     0.999000        39461      1000.00`: a time in
/// milliseconds, and how many times are not above it. With `--u_latency` a second spectrum follows,
/// which is not read.
fn spectrum<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<HistogramBin> {
    let rows = lines.skip_while(|line| !line.starts_with("Detailed Percentile spectrum"));
    let mut bins: Vec<HistogramBin> = Vec::new();
    let mut counted: u64 = 0;
    for line in rows.skip(1).take_while(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, _, below, _] = words[..] else { continue };
        let (Some(time), Some(below)) = (PrintedFigure::parse(time), count(below)) else {
            continue;
        };
        let more = below.saturating_sub(counted);
        bins.push(HistogramBin { up_to_s: time.scaled(1e-3), count: more });
        counted = counted.max(below);
    }
    bins
}

/// `#[Max     =       12.496, Total count    =        39500]`
fn total_count(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("Total count")?;
    count(rest.trim_start().strip_prefix('=')?.trim().trim_end_matches(']'))
}

/// The rows of Puma's `response_time_wrk`: wrk's rate and percentiles in milliseconds, with the
/// size of a response. The wrk command is in the row, or below the table for all of it.
pub(super) fn response_time_wrk(lines: &[Line<'_>]) -> Vec<Claim> {
    let servers = ServerLines::of(lines);
    let mut claims = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !line.text.starts_with("Type") && !line.text.starts_with("req/sec") {
            continue;
        }
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let is_named = match words[..] {
            ["Type", "req/sec", "50%", "75%", "90%", "99%", "100%", ..] => true,
            ["req/sec", "50%", "75%", "90%", "99%", "100%", ..] => false,
            _ => continue,
        };
        claims.extend(table(lines, at, is_named, servers.nearest(at)));
        if claims.len() > MOST_CLAIMS {
            break;
        }
    }
    claims
}

fn table(
    lines: &[Line<'_>],
    head: usize,
    is_named: bool,
    server: Option<ClaimedServer>,
) -> Vec<Claim> {
    let mut size = "";
    let mut claims = Vec::new();
    let mut end = lines.len();
    for (at, line) in lines.iter().enumerate().skip(head + 1) {
        // A horizontal rule, in whatever encoding it arrived, and the size behind it.
        let ruled = line.text.trim_start_matches(|c: char| c == '-' || !c.is_ascii());
        if ruled.len() < line.text.len() {
            size = ruled.trim();
        } else if let Some(mut claim) = row(line, is_named, size) {
            claim.server = server;
            claims.push(claim);
            if claims.len() > MOST_CLAIMS {
                break;
            }
        } else {
            end = at;
            break;
        }
    }
    // For the whole table, up to the next one.
    let below = lines[end..].iter().take(20).map(|line| &*line.text);
    let common =
        below.take_while(|line| !line.starts_with("Type ")).find(|line| line.starts_with("wrk -"));
    let common = common.map(command_line);
    for claim in &mut claims {
        claim.command = claim.command.take().or_else(|| common.clone());
        if let Some(command) = &claim.command {
            claim.connections = count_option(command, &["-c"]);
            claim.threads = count_option(command, &["-t"]);
        }
    }
    claims
}

fn row(line: &Line<'_>, is_named: bool, size: &str) -> Option<Claim> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let (name, figures) = words.split_at_checked(usize::from(is_named))?;
    let (printed, command) = figures.split_at_checked(7)?;
    let printed: Vec<PrintedFigure> =
        printed.iter().map(|word| PrintedFigure::parse(word)).collect::<Option<_>>()?;
    let milliseconds = |figure: PrintedFigure| figure.scaled(1e-3);
    let mut claim = Claim::new(LoadTool::ResponseTimeWrk, line.number);
    // A rate without decimals is truncated.
    claim.rate_per_s = Some(printed[0].truncated());
    claim.set_percentiles(
        &[0.50, 0.75, 0.90, 0.99],
        printed[1..5].iter().copied().map(milliseconds),
    );
    claim.max_s = Some(milliseconds(printed[5]));
    claim.answer_bytes = Some(printed[6]);
    claim.command = (!command.is_empty()).then(|| command_line(&command.join(" ")));
    claim.name = name.first().map(|name| format!("{name} {size}").trim().into());
    Some(claim)
}

/// The lines that say how Puma was started.
struct ServerLines(Vec<ServerLine>);

struct ServerLine {
    at: usize,
    server: ClaimedServer,
}

impl ServerLines {
    fn of(lines: &[Line<'_>]) -> ServerLines {
        let starts = |line: &str| {
            line.contains("response_time_wrk.sh") || line.contains("Server cluster mode")
        };
        let found = lines.iter().enumerate().filter(|(_, line)| starts(&line.text));
        let found = found
            .filter_map(|(at, line)| server(&line.text).map(|server| ServerLine { at, server }));
        ServerLines(found.collect())
    }

    /// The line for a table with this head: the nearest above, else the first below.
    fn nearest(&self, head: usize) -> Option<ClaimedServer> {
        let below = self.0.partition_point(|line| line.at < head);
        let nearest = below.saturating_sub(1);
        self.0.get(nearest).map(|line| line.server)
    }
}
