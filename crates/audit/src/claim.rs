//! What a load generator claims about one run ([`Claim`]). What it did not print is absent, never
//! 0.

use std::collections::BTreeMap;

use model::MaskedText;
use serde::Serialize;

use crate::figure::{FigureRange, PrintedFigure};
use crate::load_tool::LoadTool;

/// One run's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Claim {
    /// The tool that printed it.
    pub tool: LoadTool,
    /// The line on which it starts, from 1.
    pub line: usize,
    /// What distinguishes it from its neighbours: the row's name, or the address.
    pub name: Option<MaskedText>,
    /// The command line that belongs to it, if one is near it.
    pub command: Option<MaskedText>,
    /// Connections that were asked for, all together.
    pub connections: Option<u64>,
    /// The generator's threads.
    pub threads: Option<u64>,
    /// Requests at once on each connection; one if nothing is said.
    pub streams: Option<u64>,
    /// Requests that were asked for.
    pub asked: Option<u64>,
    /// How long it ran.
    pub duration_s: Option<PrintedFigure>,
    /// Requests that ended.
    pub requests: Option<u64>,
    /// Requests whose times are in the figures, if that is said.
    pub samples: Option<u64>,
    /// Requests per second.
    pub rate_per_s: Option<PrintedFigure>,
    /// Requests per second that were asked for.
    pub offered_per_s: Option<PrintedFigure>,
    /// Mean time.
    pub mean_s: Option<PrintedFigure>,
    /// Standard deviation of the times.
    pub stdev_s: Option<PrintedFigure>,
    /// Shortest time.
    pub min_s: Option<PrintedFigure>,
    /// Longest time.
    pub max_s: Option<PrintedFigure>,
    /// Percentiles, in rising order; the maximum is not one of them.
    pub percentiles: Vec<PrintedPercentile>,
    /// Histogram: how many took longer than the bin before and at most this.
    pub bins: Vec<HistogramBin>,
    /// Responses by status, `200`, or by class, `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// Requests without a response.
    pub errors: Option<u64>,
    /// Errors that are only requests still in flight when the time was up.
    pub unfinished: Option<u64>,
    /// Responses that the tool itself counts as bad.
    pub bad_answers: Option<u64>,
    /// Responses slower than the tool's timeout, which have no time.
    pub timeouts: Option<u64>,
    /// Bytes received.
    pub received_bytes: Option<PrintedFigure>,
    /// Bytes of a response.
    pub answer_bytes: Option<PrintedFigure>,
    /// Bytes received per second.
    pub transfer_bytes_per_s: Option<PrintedFigure>,
    /// The server's workers and threads, if they are stated.
    pub server: Option<ClaimedServer>,
    /// How long the server sleeps in each request, if that is stated; no response can be faster.
    pub delay_s: Option<f64>,
    /// How the server's workers shared the requests.
    pub shares: Option<ClaimedShares>,
    /// Request by request, in the order of their numbers.
    pub answers: Vec<RequestLine>,
}

/// A percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrintedPercentile {
    /// 0 to 1.
    pub quantile: f64,
    /// Its time.
    pub time_s: PrintedFigure,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HistogramBin {
    /// Its upper end.
    pub up_to_s: PrintedFigure,
    /// How many times are in it.
    pub count: u64,
}

/// What is known of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimedServer {
    /// Processes, at least one.
    pub workers: u64,
    /// Threads of each.
    pub threads: u64,
}

impl ClaimedServer {
    /// Requests that it can process at once.
    pub fn slots(&self) -> u64 {
        self.workers.saturating_mul(self.threads)
    }
}

/// How the workers shared the requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimedShares {
    /// Each worker's deviation from an even share, as a fraction of that share; unlike all other
    /// figures, it may be negative.
    pub deviations: Vec<PrintedFigure>,
    /// The printed standard deviation of the shares, in percentage points of all requests.
    pub stdev_points: Option<PrintedFigure>,
    /// How long a request occupies a slot if none has to wait: connections / rate, from the row of
    /// the same table where slots were enough.
    pub unloaded_s: Option<FigureRange>,
}

/// One request's line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RequestLine {
    /// The request's number.
    pub number: u64,
    /// The status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// Its time.
    pub time_s: PrintedFigure,
}

impl Claim {
    /// A claim with nothing but its tool and its line.
    pub fn new(tool: LoadTool, line: usize) -> Claim {
        Claim { tool, line, ..Claim::default() }
    }

    /// Sets the percentiles of a table whose columns are these quantiles.
    pub(crate) fn set_percentiles(
        &mut self,
        quantiles: &[f64],
        times: impl Iterator<Item = PrintedFigure>,
    ) {
        let named = quantiles.iter().zip(times);
        self.percentiles = named
            .map(|(quantile, time_s)| PrintedPercentile { quantile: *quantile, time_s })
            .collect();
    }

    /// Whether there is any figure in it.
    pub(crate) fn says_something(&self) -> bool {
        self.rate_per_s.is_some()
            || self.mean_s.is_some()
            || !self.answers.is_empty()
            || !self.percentiles.is_empty()
    }

    /// All responses, by the statuses.
    pub fn answered(&self) -> Option<u64> {
        (!self.statuses.is_empty())
            .then(|| self.statuses.values().copied().fold(0, u64::saturating_add))
    }

    /// The percentile `quantile`, 0 to 1, if it is printed.
    pub fn percentile(&self, quantile: f64) -> Option<PrintedFigure> {
        self.percentiles
            .iter()
            .find(|one| (one.quantile - quantile).abs() < 1e-9)
            .map(|one| one.time_s)
    }

    /// Times in all bins of the histogram.
    pub(crate) fn counted_in_bins(&self) -> u64 {
        self.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.count))
    }

    /// Each percentile with the range that rounding leaves for it.
    pub(crate) fn percentile_ranges(&self) -> impl DoubleEndedIterator<Item = (f64, FigureRange)> {
        let error = self.tool.percentile_error();
        self.percentiles.iter().map(move |p| (p.quantile, p.time_s.range().widened(error)))
    }

    /// Requests that ended: as printed, else responses and errors added up.
    pub fn ended(&self) -> Option<u64> {
        self.requests.or_else(|| match (self.answered(), self.errors) {
            (None, None) => None,
            (answered, errors) => Some(answered.unwrap_or(0).saturating_add(errors.unwrap_or(0))),
        })
    }

    /// Requests that failed: responses of 4xx and 5xx, or as many as the tool itself calls bad;
    /// those without a response; and those whose time was too long to be kept. Requests that were
    /// only still in flight at the end don't count. `None` if the tool counts none of these. wrk,
    /// wrk2, hey and longtail in their layouts print failures only if there are some.
    pub fn failed(&self) -> Option<u64> {
        let failed =
            self.bad().saturating_add(self.lost()).saturating_add(self.timeouts.unwrap_or(0));
        let prints_no_zero = matches!(
            self.tool,
            LoadTool::Longtail | LoadTool::Wrk | LoadTool::Wrk2 | LoadTool::Hey
        ) && self.ended().is_some();
        (self.counts_failures() || prints_no_zero).then_some(failed)
    }

    /// Whether it says anything about failures.
    pub(crate) fn counts_failures(&self) -> bool {
        !self.statuses.is_empty() || self.errors.is_some() || self.bad_answers.is_some()
    }

    /// Responses of 4xx and 5xx, and those without a status; or as many as the tool itself calls
    /// bad.
    pub(crate) fn bad(&self) -> u64 {
        let is_failure =
            |status: &str| matches!(status.as_bytes().first(), Some(b'0' | b'4' | b'5'));
        let by_status =
            self.statuses.iter().filter(|(status, _)| is_failure(status)).map(|(_, n)| *n);
        by_status.fold(0, u64::saturating_add).max(self.bad_answers.unwrap_or(0))
    }

    /// Requests without a response, but not those that were only still in flight at the end.
    pub(crate) fn lost(&self) -> u64 {
        self.errors.unwrap_or(0).saturating_sub(self.unfinished.unwrap_or(0))
    }

    /// Connections that were really opened: wrk gives each thread `connections / threads`, rounded
    /// down.
    pub fn used_connections(&self) -> Option<u64> {
        let stated = self.connections?;
        match self.threads {
            Some(threads) if self.tool.is_corrected_by_wrk() || self.tool == LoadTool::Wrk2 => {
                Some(stated.checked_div(threads).map_or(stated, |each| each * threads))
            }
            _ => Some(stated),
        }
    }

    /// The most requests that can be in flight at once.
    pub fn at_once(&self) -> Option<u64> {
        Some(self.used_connections()?.saturating_mul(self.streams.unwrap_or(1))).filter(|n| *n > 0)
    }

    /// The rate of requests that have a time, so without errors.
    pub(crate) fn timed_rate(&self) -> Option<FigureRange> {
        let rate = self.rate_per_s?.range();
        match (self.answered(), self.errors) {
            (Some(answered), Some(errors)) if errors > 0 && self.tool.rate_includes_errors() => {
                Some(rate.scaled(answered as f64 / answered.saturating_add(errors) as f64))
            }
            (None, Some(errors)) if errors > 0 && self.tool.rate_includes_errors() => None,
            _ => Some(rate),
        }
    }

    /// The time from one request of a connection to its next: requests at once / rate. By Little's
    /// law no mean can be larger.
    pub fn cycle_s(&self) -> Option<FigureRange> {
        FigureRange::exactly(self.at_once()? as f64).over(self.timed_rate()?)
    }
}
