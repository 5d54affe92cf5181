//! Checks and warnings ([`Diagnostic`]): the questions asked about a run, and the doubts that it
//! raises.
//!
//! Each variant is one diagnostic, with the evidence that the study keeps. The crate `judge` has a
//! file for each that says when it applies, how bad it is, its sentence and its hint. A
//! [`Judgement`](crate::Judgement) holds a run's checks, which apply to every run; a run holds its
//! warnings.

use serde::{Deserialize, Serialize};
use strum::EnumIter;
use thiserror::Error;

use crate::{Cpus, Nanos};

/// A check or a warning, with its evidence. Its code in JSON is its name.
#[derive(Clone, Debug, PartialEq, EnumIter, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Diagnostic {
    /// What this generator reaches, with these settings, against a server that takes no time.
    Headroom {
        /// That rate, in requests per second.
        ceiling_per_s: f64,
        /// That rate / the rate of the run.
        times: f64,
    },
    /// Open loop: how many of the requests due in the window were sent in it.
    SentInTime {
        /// Sent.
        sent: u64,
        /// Due.
        due: u64,
    },
    /// How late the generator itself was: from when a request was due until it was sent, without
    /// waits for a free connection.
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That as a share of the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// How late the generator read the responses, by the kernel's time stamps. This lag is not part
    /// of the times.
    ReadLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That as a share of the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// Open loop: whether the generator fell further and further behind.
    LagSlope {
        /// Growth of its own lag, in seconds per second.
        slope: f64,
        /// That growth / its standard error.
        in_errors: f64,
        /// How much the lag grew over the run.
        #[serde(rename = "grown_ns")]
        grown: Nanos,
    },
    /// How much the generator's own lag may have raised a percentile, compared with the
    /// percentile's sampling error.
    Bracket {
        /// The percentile, 0 to 1.
        quantile: f64,
        /// The most by which it may have been raised.
        #[serde(rename = "width_ns")]
        width: Nanos,
        /// Half of the 95 % confidence interval.
        #[serde(rename = "half_interval_ns")]
        half_interval: Nanos,
        /// The width as a share of the percentile.
        of_response_time: f64,
    },
    /// The busiest lane's time on a CPU.
    LaneCpu {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The largest share of the time that a lane waited for a CPU.
    LaneRunQueue {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The generator was late because it had to wait for a CPU, although it used hardly any.
    MachineBusy {
        /// The largest share of a CPU that a lane used, 0 to 1.
        generator: f64,
        /// The largest share of the run that a lane waited for one.
        waited: f64,
        /// CPUs that the server used; `None` if unknown.
        server: Option<f64>,
        /// CPUs that other processes used; `None` if unknown.
        others: Option<f64>,
        /// The 99th percentile of how late requests were sent, if that was too late.
        #[serde(rename = "sent_within_ns", default, skip_serializing_if = "Option::is_none")]
        sent_within: Option<Nanos>,
        /// The 99th percentile of how late responses were read, if only that was too late.
        #[serde(rename = "read_within_ns", default, skip_serializing_if = "Option::is_none")]
        read_within: Option<Nanos>,
        /// That one as a share of the 99th percentile of the response time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of_response_time: Option<f64>,
    },
    /// Other programs used the server's CPUs up while a trial of a search for a capacity had too many
    /// late requests.
    CpusTaken {
        /// CPUs that they used.
        others: f64,
        /// CPUs that the server may use.
        of: f64,
    },
    /// How long a lane stood still: it was not running, and neither waiting for events nor its work
    /// explains that.
    Standstill {
        /// Share of the run, 0 to 1.
        share: f64,
        /// The longest stretch of any lane.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Connects for which this machine had no port, descriptor or memory left.
    Exhausted {
        /// How many.
        connects: u64,
    },
    /// Requests without a good response.
    Failures {
        /// How many.
        failed: u64,
        /// Of how many.
        planned: u64,
    },
    /// Closed loop without think time: the requests in flight must be the connections (Little's
    /// law).
    LittlesLaw {
        /// Time of all requests within the window, read lag included / the window.
        in_flight: f64,
        /// Connections.
        connections: u32,
        /// The allowed difference, as a share, for responses that a lane did not read because it
        /// stood still.
        tolerance: f64,
    },
    /// The server's count of requests, over its whole life, must equal the responses that we
    /// received.
    Conservation {
        /// The pid of a worker whose count differs, if the sums agree.
        worker: Option<u32>,
        /// Complete responses that we received, warm-up included.
        client: u64,
        /// Requests that the server counted.
        server: u64,
    },
    /// Connections that the kernel dropped during the run because an accept queue was full, on the
    /// whole machine.
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Connects that the kernel retried during the run because nobody answered, on the whole
    /// machine (`TCPSynRetrans`).
    ConnectStalls {
        /// How many times.
        retried: u64,
        /// The longest connect of a good response.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Whether response times and rate settled (MSER-5).
    Steadiness {
        /// Since when, from the start of the window; `None` if they did not settle.
        #[serde(rename = "settled_after_ns")]
        settled_after: Option<Nanos>,
        /// The mean response time of the second half minus that of the first, as a share of the
        /// mean.
        shift: f64,
        /// That difference / its standard error.
        shift_in_errors: f64,
        /// Whether the run claims that the server keeps up, as an open loop does.
        is_claimed: bool,
    },
    /// Independent arrivals: whether the number drawn is close to the rate.
    PoissonCount {
        /// Requests that became due.
        due: u64,
        /// Requests to expect at this rate.
        expected: f64,
    },
    /// Whether the wall clock, with which the kernel stamps arrivals, was set during the run.
    ClockStep {
        /// How often.
        steps: u32,
    },
    /// CPU time that the hypervisor gave to other machines.
    Steal {
        /// Share of all processors' time, 0 to 1.
        share: f64,
    },

    /// A generator on another machine was lost: it ended in the middle of the run, or stopped
    /// answering.
    GeneratorLost {
        /// Which.
        name: String,
        /// Why, in words.
        why: String,
    },
    /// Generators on other machines: how late the last of them started.
    LateStart {
        /// The last.
        name: String,
        /// How late.
        #[serde(rename = "late_ns")]
        late: Nanos,
    },
    /// Generators on other machines: how far off the least certain clock may be.
    ClockError {
        /// The generator with that clock.
        name: String,
        /// The most that it may be off.
        #[serde(rename = "error_ns")]
        error: Nanos,
    },
    /// Generators on other machines: one generator's response times differ from those of all
    /// together.
    GeneratorDiffers {
        /// Which.
        name: String,
        /// Its median.
        #[serde(rename = "p50_ns")]
        p50: Nanos,
        /// That of all.
        #[serde(rename = "merged_ns")]
        merged: Nanos,
    },

    /// The app's count of content bytes differs from what we received.
    BytesDiffer {
        /// Bytes of content in all complete responses that we received, warm-up included.
        client: u64,
        /// Bytes that the app says it passed to the server in the same time.
        app: u64,
    },
    /// The server could not say how many requests it took, so nothing confirms our count.
    LedgerUnknown {
        /// Why not.
        reason: String,
    },
    /// Some requests got no response, and the server counted more requests than responses came
    /// back: it served clients that no longer waited.
    ServedForNobody {
        /// Requests that the server counted beyond the responses.
        served: u64,
        /// Requests that got no response, over the server's whole life.
        unanswered: u64,
    },
    /// A percentile is not printed: requests without a response could change it.
    QuantilesHidden {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Requests that failed or had no response.
        unanswered: u64,
        /// Their outcomes, by [name](crate::counts::name).
        outcomes: Vec<String>,
    },
    /// Percentiles above this one are not printed: too few requests.
    TooFewRequests {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Of how many good responses.
        answers: u64,
        /// How many independent responses they are worth for that percentile, if fewer.
        worth: Option<u64>,
    },
    /// Open loop: more was offered than the server can do, so response times depend on how long the
    /// run was.
    Growing {
        /// Growth of the response time, in seconds per second of due time; `None` if only some
        /// requests got slower.
        growth: Option<f64>,
        /// Growth of the backlog, in requests per second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Open loop: the backlog kept growing although the responses that arrived did not get slower,
    /// so the cause is unknown.
    BacklogUnexplained {
        /// Growth of the backlog, in requests per second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Some responses have no kernel time stamp, so their times include how late we read them.
    Unstamped {
        /// How many.
        answers: u64,
        /// Of how many responses.
        of: u64,
    },
    /// Some of the app's time stamps lie outside their request, so they can't be part of its
    /// response time.
    ImpossibleStamps {
        /// How many.
        answers: u64,
        /// Of how many good responses.
        of: u64,
    },
    /// Some responses don't say how long the app took, so the breakdown leaves them out.
    SilentApp {
        /// How many.
        answers: u64,
        /// Of how many good responses.
        of: u64,
    },
    /// The wait in the accept queue, inferred from its length, is longer than the whole wait that
    /// it is part of.
    QueueExceedsWait {
        /// The mean wait by the queue's length.
        #[serde(rename = "accept_queue_ns")]
        accept_queue: Nanos,
        /// The mean of the whole wait: the time before the app if that was measured, otherwise the
        /// response time.
        #[serde(rename = "wait_ns")]
        wait: Nanos,
    },
    /// For some responses the kernel's stamps are missing, or out of order with the client's and
    /// the app's.
    KernelUnjoined {
        /// Missing.
        unmatched: u64,
        /// Out of order.
        impossible: u64,
        /// Of how many good responses.
        of: u64,
    },
    /// The kernel's tracepoints did not follow everything.
    KernelIncomplete {
        /// Responses that were seen only in part.
        unfollowed: u64,
        /// Events for which there was no room.
        lost: u64,
    },
    /// The kernel's count of responses differs from ours.
    KernelCountDiffers {
        /// Responses that the kernel saw.
        kernel: u64,
        /// Our responses.
        client: u64,
    },
    /// The server closed kept-alive connections, so that some requests include a new connect.
    ConnectionsClosed {
        /// How many.
        closed: u64,
        /// Of how many requests; not known in older files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u64>,
        /// After how many responses it closed each of those that it did not announce, if always the
        /// same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_answers: Option<u64>,
        /// With how many responses it closed each of those that it announced, if always the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        announced_after: Option<u64>,
        /// How many of them it announced (`Connection: close`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        announced: Option<u64>,
        /// What the server calls itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
    /// The server sent bytes that nobody had asked for on kept-alive connections, so we closed
    /// them.
    UnaskedBytes {
        /// How many.
        closed: u64,
    },
    /// Others sent requests to the server during the load.
    OtherClients {
        /// Their connections.
        connections: u64,
    },
    /// Responses end about as long after they begin as a kernel delays an acknowledgement.
    DelayedAck {
        /// From the first byte of a response to its last, on average.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// The server took its connections in turns, several requests in a row for each, while others
    /// waited to be accepted.
    ServedInTurns {
        /// Responses in a turn: of most turns, or on average if they vary.
        answers_a_turn: f64,
        /// Whether turns have several lengths.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        varies: bool,
        /// Connections beyond the slots.
        waiting: u32,
    },
    /// Some connections got far less than others.
    Unfair {
        /// Jain's index: 1 is even, 1/n is one connection taking all.
        jain: f64,
        /// Requests of the connection that got the fewest.
        fewest: u64,
        /// Requests of the connection that got the most.
        most: u64,
    },
    /// Some connections got no response in the whole window, though it was long enough for many.
    NeverServed {
        /// How many.
        never: u32,
        /// Of how many.
        connections: u32,
    },
    /// More than the theoretical maximum was measured, so the service time is not what was given.
    AboveMaximum {
        /// Measured rate / maximum.
        ratio: f64,
    },
    /// The server was still busy when we stopped waiting for it to become idle: the next run starts
    /// with its backlog.
    StillBusy {
        /// How long we waited.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
        /// What was still going on.
        what: String,
    },
    /// Workers were replaced during the run. More may have come and gone between the two readings.
    WorkersChanged {
        /// Workers at the end that were not there at the start.
        new: u32,
    },
    /// The lanes may run on the server's CPUs, and used a notable share of their time.
    SharedCpus {
        /// The CPUs that both may run on.
        cpus: Cpus,
        /// The lanes' share of their time, 0 to 1.
        taken: f64,
    },
    /// Open loop: all connections were busy, and requests waited for one.
    QueuedInGenerator {
        /// How many.
        requests: u64,
        /// The longest wait.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Requests are missing from the log because the disk was too slow.
    LogIncomplete {
        /// How many.
        dropped: u64,
    },
    /// The steps of a load are not told apart, because records of requests were dropped.
    StepsIncomplete {
        /// How many.
        dropped: u64,
    },
    /// A condition of the user's ended the run (`--stop-if`).
    StoppedEarly {
        /// Which, and the figure that met it.
        condition: String,
    },
    /// Another generator's request count differs from the server's.
    ClaimDiffers {
        /// Which generator.
        by: String,
        /// Requests that it says ended, its warm-up included.
        claimed: u64,
        /// Requests that the server counted over the same time.
        server: u64,
        /// How many more may have been in flight when the generator's time was up.
        under_way: u64,
    },
    /// What the audit of another generator's figures found.
    Audited {
        /// Which generator.
        by: String,
        /// Which check: `Little's law`.
        check: String,
        /// Its result.
        is: ClaimGrade,
        /// The evidence in a sentence or two.
        text: String,
    },
    /// The run ended early.
    Interrupted {
        /// By whom.
        by: EndedBy,
    },
}

/// The result of a check of another tool's printed figures, the worst first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Error,
)]
#[serde(rename_all = "snake_case")]
pub enum ClaimGrade {
    /// The figures are impossible, even allowing for rounding.
    #[default]
    #[error("FAILS")]
    Fails,
    /// The figures are possible, but don't mean what a reader would think.
    #[error("is doubtful")]
    Doubtful,
    /// Not a result of its own, but the explanation of another.
    #[error("explains it")]
    Explains,
    /// The figures agree.
    #[error("holds")]
    Holds,
    /// A figure is missing.
    #[error("is unchecked")]
    Unchecked,
}

/// Who ended a run early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// A signal, or Ctrl-C.
    #[default]
    #[error("interrupted")]
    User,
    /// The server under load: it ended.
    #[error("the server ended")]
    Server,
}
