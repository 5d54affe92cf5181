//! One question each about a run, with its figure, how it is graded, and what to do where it is not passed.
//!
//! The limits are those of docs/METHOD.md, "The verdict".

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// How a gate came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// As it should be.
    Pass,
    /// Worth a look; does not change the verdict.
    Warn,
    /// Decides the verdict.
    Fail,
}

/// One question and its figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum Gate {
    /// What this generator, with these very settings, reaches against a server that takes no time.
    Headroom {
        /// That rate, in requests per second.
        ceiling_per_s: f64,
        /// It over the rate of the run.
        times: f64,
    },
    /// Open loop: requests sent within the window, of those that were due in it.
    SentInTime {
        /// Sent.
        sent: u64,
        /// Due.
        due: u64,
    },
    /// How late the generator was by itself: from due to the start of sending, waits for a connection left out.
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// The busiest lane's time on a CPU.
    LaneCpu {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The most that a lane waited for a CPU.
    LaneRunQueue {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The most that a lane stood still: it did not run, and neither its wait for news nor its work explains that.
    Standstill {
        /// Share of the run, 0 to 1.
        share: f64,
        /// The longest stretch of any lane.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Closed loop without think time: mean response time x rate must be the connections (Little's law).
    LittlesLaw {
        /// Mean response time, read lag included, x completed rate.
        in_flight: f64,
        /// Connections.
        connections: u32,
        /// How far apart the two may be by what the window's edges cut off, as a share.
        tolerance: f64,
    },
    /// Over the server's whole life: it counts as many requests as we had answers.
    Conservation {
        /// The worker that counts otherwise, by pid, where the sums agree.
        worker: Option<u32>,
        /// Whole answers that we had.
        client: u64,
        /// Requests that the server took.
        server: u64,
    },
    /// Connections that the kernel dropped because the server's accept queue was full, on this machine, in the run.
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Connects that the kernel had to try again because nobody answered, on this machine, in the run (`TCPSynRetrans`).
    ConnectStalls {
        /// How many times.
        retried: u64,
        /// The longest connect of a good answer.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Connects for which this machine had no port, descriptor or memory left.
    Exhausted {
        /// How many.
        connects: u64,
    },
    /// Requests without a good answer.
    Failures {
        /// How many.
        failed: u64,
        /// Of so many.
        planned: u64,
    },
    /// How late the generator read the answers, by the kernel's time stamps. It is not in the times.
    ReadLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// Open loop: whether the generator was later and later.
    LagSlope {
        /// Growth of its own lag, in seconds per second.
        slope: f64,
        /// That over its standard error.
        in_errors: f64,
        /// How much the lag grew over the run.
        #[serde(rename = "grown_ns")]
        grown: Nanos,
    },
    /// By how much the generator's own lag may have raised a percentile, beside how well the sample knows it.
    Bracket {
        /// The percentile, 0 to 1.
        quantile: f64,
        /// The most that it can be.
        #[serde(rename = "width_ns")]
        width: Nanos,
        /// Half of the 95 % confidence interval.
        #[serde(rename = "half_interval_ns")]
        half_interval: Nanos,
        /// The width over the percentile.
        of_response_time: f64,
    },
    /// Whether response times and rate settled (MSER-5).
    Steadiness {
        /// Since when, from the start of the window; `None` where they did not.
        #[serde(rename = "settled_after_ns")]
        settled_after: Option<Nanos>,
        /// The mean response time of the second half less that of the first, as a share of the mean.
        shift: f64,
        /// That difference over its standard error.
        shift_in_errors: f64,
        /// Open loop: that the server keeps up is what the run says. A closed loop says nothing of the kind.
        is_claimed: bool,
    },
    /// Independent arrivals: whether the draw came near the rate.
    PoissonCount {
        /// Requests that became due.
        due: u64,
        /// Requests that the rate comes to.
        expected: f64,
    },
    /// Whether the wall clock, by which the kernel stamps arrivals, was set.
    ClockStep {
        /// How often.
        steps: u32,
    },
    /// Time that the hypervisor gave to others.
    Steal {
        /// Share of all processors' time, 0 to 1.
        share: f64,
    },
}

/// Lags up to this are small, whatever they are compared with.
const SMALL: Nanos = Nanos::from_micros(200);
/// A stretch that is worth a word, however long the run was: it may be the longest response time.
const STRETCH: Nanos = Nanos::from_millis(100);
/// Standard errors: an accident once in some hundred runs.
const SIGNIFICANT: f64 = 3.0;

/// How many standard deviations a Poisson count is off.
fn deviations(count: u64, expected: f64) -> f64 {
    (count as f64 - expected) / expected.max(1.0).sqrt()
}

impl Gate {
    /// How it came out.
    pub fn grade(&self) -> Grade {
        let by = |value: f64, pass: f64, fail: f64| match value {
            v if v <= pass => Grade::Pass,
            v if v <= fail => Grade::Warn,
            _ => Grade::Fail,
        };
        let by_length = |longest| if longest > STRETCH { Grade::Warn } else { Grade::Pass };
        let if_none = |n: u64, otherwise: Grade| if n == 0 { Grade::Pass } else { otherwise };
        match *self {
            Gate::Headroom { times, .. } => by(1.0 / times.max(1e-9), 1.0 / 3.0, 1.0 / 1.2),
            Gate::SentInTime { sent, due } => by(1.0 - sent as f64 / (due as f64).max(1.0), 0.005, 0.02),
            Gate::GeneratorLag { p99, .. } | Gate::ReadLag { p99, .. } if p99 <= SMALL => Grade::Pass,
            Gate::GeneratorLag { of_response_time, .. } | Gate::ReadLag { of_response_time, .. } => {
                by(of_response_time, 0.05, 0.20)
            }
            Gate::LaneCpu { share } => by(share, 0.70, 0.90),
            Gate::LaneRunQueue { share } => by(share, 0.02, 0.10),
            Gate::Standstill { share, longest } => by(share, 0.01, 0.10).max(by_length(longest)),
            Gate::LittlesLaw { in_flight, connections, tolerance } => {
                by((in_flight / f64::from(connections.max(1)) - 1.0).abs(), 0.01 + tolerance, 0.05 + tolerance)
            }
            Gate::Conservation { client, server, .. } => if_none(client.abs_diff(server), Grade::Fail),
            Gate::ListenOverflows { dropped: n } | Gate::ConnectStalls { retried: n, .. } => if_none(n, Grade::Warn),
            Gate::Exhausted { connects } => if_none(connects, Grade::Fail),
            // Of nothing at all nothing is known.
            Gate::Failures { failed, planned } if failed == planned => Grade::Fail,
            Gate::Failures { failed, planned } => by(failed as f64 / planned as f64, 0.005, 1.0),
            Gate::LagSlope { in_errors, grown, .. } if in_errors < SIGNIFICANT || grown <= SMALL => Grade::Pass,
            Gate::LagSlope { slope, .. } => by(slope, 0.0, 0.001),
            Gate::Bracket { width, half_interval, .. } if width <= half_interval.max(SMALL) => Grade::Pass,
            Gate::Bracket { width, half_interval, of_response_time, .. } => {
                // Within two intervals it is the sample that is the limit.
                let worst = if width.0 > 2 * half_interval.0 { 0.20 } else { 1.0 };
                by(of_response_time, 0.05, worst)
            }
            Gate::Steadiness { settled_after: Some(_), .. } => Grade::Pass,
            Gate::Steadiness { shift, .. } if shift.abs() < 0.05 => Grade::Pass,
            Gate::Steadiness { shift, shift_in_errors, is_claimed, .. } => {
                let is_other = shift.abs() >= 0.25 && shift_in_errors.abs() >= SIGNIFICANT;
                if is_claimed && is_other { Grade::Fail } else { Grade::Warn }
            }
            Gate::PoissonCount { due, expected } => by(deviations(due, expected).abs(), SIGNIFICANT, f64::INFINITY),
            Gate::ClockStep { steps } => if_none(steps.into(), Grade::Fail),
            Gate::Steal { share } => by(share, 0.01, 0.05),
        }
    }

    /// Whether a failure of it means that the generator was the limit; else it means that the figures are worth nothing.
    pub(crate) fn blames_the_generator(&self) -> bool {
        matches!(
            self,
            Gate::Headroom { .. }
                | Gate::SentInTime { .. }
                | Gate::GeneratorLag { .. }
                | Gate::LaneCpu { .. }
                | Gate::LaneRunQueue { .. }
                | Gate::Standstill { .. }
                | Gate::Exhausted { .. }
                | Gate::ReadLag { .. }
                | Gate::LagSlope { .. }
                | Gate::Bracket { .. }
        )
    }

    /// What was seen, in a few words.
    pub fn text(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        match *self {
            Gate::Headroom { ceiling_per_s, times } => {
                format!("generator's ceiling {ceiling_per_s:.0} req/s, {times:.1} x this")
            }
            Gate::SentInTime { sent, due } => format!("{sent} of {due} due requests sent in time"),
            Gate::GeneratorLag { p99, of_response_time } => {
                format!(
                    "own lag p99 {:.3} ms, {} of the response time's",
                    p99.as_millis_f64(),
                    percent(of_response_time)
                )
            }
            Gate::LaneCpu { share } => format!("lane CPU {}", percent(share)),
            Gate::LaneRunQueue { share } => format!("lane's wait for a CPU {}", percent(share)),
            Gate::Standstill { longest: Nanos::ZERO, .. } => "no lane stood still".to_owned(),
            Gate::Standstill { share, longest } => {
                format!(
                    "the generator stood still for {} of the time, for {:.2} s at once",
                    percent(share),
                    longest.as_secs_f64()
                )
            }
            Gate::LittlesLaw { in_flight, connections, .. } => {
                format!("Little's law {in_flight:.1} for {connections} connections")
            }
            Gate::Conservation { worker: Some(pid), client, server } => {
                format!("{client} answers here name worker {pid}, which counts {server} requests")
            }
            Gate::Conservation { client, server, .. } => {
                format!("{client} answers here, {server} requests counted there")
            }
            Gate::ConnectStalls { retried, longest } => {
                format!("{retried} connects tried again, the longest {:.2} s", longest.as_secs_f64())
            }
            Gate::Exhausted { connects } => {
                format!("{connects} connects failed for want of ports, descriptors or memory here")
            }
            Gate::Failures { planned: 0, .. } => "no request was due in the measured window".to_owned(),
            Gate::Failures { failed, planned } => format!("{failed} of {planned} requests without a good answer"),
            Gate::ReadLag { p99, of_response_time } => {
                format!(
                    "read lag p99 {:.3} ms, {} of the response time's",
                    p99.as_millis_f64(),
                    percent(of_response_time)
                )
            }
            Gate::LagSlope { slope, grown, .. } => {
                format!("own lag grew by {:.3} ms, {:.3} ms a second", grown.as_millis_f64(), slope * 1e3)
            }
            Gate::Bracket { quantile, width, half_interval, .. } => format!(
                "p{} up to {:.3} ms too high by own lag, known to ±{:.3} ms",
                crate::diagnostic::percent(quantile),
                width.as_millis_f64(),
                half_interval.as_millis_f64()
            ),
            Gate::Steadiness { settled_after: Some(after), .. } if after == Nanos::ZERO => "steady".to_owned(),
            Gate::Steadiness { settled_after: Some(after), .. } => format!("steady after {:.2} s", after.as_secs_f64()),
            Gate::Steadiness { shift, .. } => {
                format!("no steady part: response times of the second half {:+.1} % against the first", shift * 100.0)
            }
            Gate::PoissonCount { due, expected } => {
                format!("{due} arrivals drawn for {expected:.0}, {:+.1} standard deviations", deviations(due, expected))
            }
            Gate::ClockStep { steps: 0 } => "wall clock not set".to_owned(),
            Gate::ClockStep { steps } => format!("the wall clock was set {steps} times during the run"),
            Gate::ListenOverflows { dropped } => {
                format!("{dropped} connects dropped by a full accept queue, of all servers here")
            }
            Gate::Steal { share } => format!("stolen CPU {}", percent(share)),
        }
    }

    /// What to do where it is not passed.
    pub fn remedy(&self) -> &'static str {
        match self {
            Gate::Headroom { .. } => {
                "more lanes (--lanes) on cores of their own, or a slower app: this rate is near the generator's own limit"
            }
            Gate::SentInTime { .. } => "more connections (-c) or lanes (--lanes), or a lower rate",
            Gate::GeneratorLag { .. } | Gate::Bracket { .. } => {
                "more lanes on cores of their own; in an open loop also --timing spin"
            }
            Gate::LaneCpu { .. } => "more lanes (--lanes) on cores of their own",
            Gate::LaneRunQueue { .. } => {
                "the lanes compete for CPUs: a quieter machine, or fewer lanes than free cores"
            }
            Gate::Standstill { .. } => {
                "was it stopped (Ctrl-Z, a debugger, a CPU quota), or the machine too busy? run again: what happened in that time is not the server's"
            }
            Gate::LittlesLaw { .. } => {
                "run longer (--for): some requests took as long as the window, or time is counted wrongly somewhere"
            }
            Gate::Conservation { .. } => {
                "is anything else sending to this server? if not, one of the two counts wrongly: please report it"
            }
            Gate::ConnectStalls { .. } => {
                "an accept queue or a SYN queue was full: raise the server's backlog, or open fewer connections at once"
            }
            Gate::Exhausted { .. } => {
                "keep connections alive, spread them over --source-ip, or raise net.ipv4.ip_local_port_range or ulimit -n"
            }
            Gate::Failures { planned: 0, .. } => "run again to the end",
            Gate::Failures { .. } => "see the errors by kind; times are those of good answers only",
            Gate::ReadLag { .. } | Gate::LagSlope { .. } => {
                "more lanes (--lanes) on cores of their own, fewer connections, or a lower rate"
            }
            Gate::Steadiness { .. } => "a longer --warm-up, or a longer run",
            Gate::PoissonCount { .. } => "another --seed: this one's draw is a rare one",
            Gate::ClockStep { .. } => "--timestamps user, or run again when nothing sets the clock",
            Gate::ListenOverflows { .. } => {
                "raise the server's backlog and net.core.somaxconn: a dropped connect shows as 1, 2, 3 … s"
            }
            Gate::Steal { .. } => "a machine whose cores are its own",
        }
    }
}
