//! Checks and warnings ([`Diagnostic`]): a question that was asked of a run, or a doubt beside a
//! number.
//!
//! One variant is one diagnostic, with its evidence as the study keeps it. When it is asked, how
//! bad it is, what it says and what helps is the crate `judge`'s, in a file for each. A
//! [`Judgement`](crate::Judgement) holds those that were asked of every run (its checks); a run
//! holds those that came up (its warnings).

use serde::{Deserialize, Serialize};
use strum::EnumIter;
use thiserror::Error;

use crate::{Cpus, Nanos};

/// One question or doubt, with its evidence. Its code in JSON is its name.
#[derive(Clone, Debug, PartialEq, EnumIter, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Diagnostic {
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
    /// How late the generator was by itself: from due to the start of sending, waits for a
    /// connection left out.
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// How late the generator read the responses, by the kernel's time stamps. It is not in the
    /// times.
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
    /// By how much the generator's own lag may have raised a percentile, beside how well the sample
    /// knows it.
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
    /// The generator used hardly any CPU, waited for one, and was late for that.
    MachineBusy {
        /// The most that a lane used of a CPU, 0 to 1.
        generator: f64,
        /// The most that a lane waited for one, as a share of the run.
        waited: f64,
        /// CPUs that the server used; `None` where that is not known.
        server: Option<f64>,
        /// CPUs that other processes used; `None` where that is not known.
        others: Option<f64>,
    },
    /// The most that a lane stood still: it did not run, and neither its wait for news nor its work
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
        /// Of so many.
        planned: u64,
    },
    /// Closed loop without think time: the requests in flight must be the connections (Little's
    /// law).
    LittlesLaw {
        /// Time of all requests within the window, read lag included, / window.
        in_flight: f64,
        /// Connections.
        connections: u32,
        /// How far apart the two may be by what a thread that stood still did not read, as a share.
        tolerance: f64,
    },
    /// Over the server's whole life: it counts as many requests as we had responses.
    Conservation {
        /// The worker that counts otherwise, by pid, where the sums agree.
        worker: Option<u32>,
        /// Whole responses that we had, warm-up included.
        client: u64,
        /// Requests that the server says it took.
        server: u64,
    },
    /// Connections that the kernel dropped because the server's accept queue was full, on this
    /// machine, in the run.
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Connects that the kernel had to try again because nobody answered, on this machine, in the
    /// run (`TCPSynRetrans`).
    ConnectStalls {
        /// How many times.
        retried: u64,
        /// The longest connect of a good response.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Whether response times and rate settled (MSER-5).
    Steadiness {
        /// Since when, from the start of the window; `None` where they did not.
        #[serde(rename = "settled_after_ns")]
        settled_after: Option<Nanos>,
        /// The mean response time of the second half less that of the first, as a share of the
        /// mean.
        shift: f64,
        /// That difference over its standard error.
        shift_in_errors: f64,
        /// Open loop: that the server keeps up is what the run says. A closed loop says nothing of
        /// the kind.
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

    /// A generator on another machine of which nothing is known: it ended in the middle of the run,
    /// or did not answer.
    GeneratorLost {
        /// Which.
        name: String,
        /// What is known of it.
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
    /// Generators on other machines: how far off the clock that is known least well may be.
    ClockError {
        /// The least known.
        name: String,
        /// The most that it may be off.
        #[serde(rename = "error_ns")]
        error: Nanos,
    },
    /// Generators on other machines: one has other response times than all of them together.
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

    /// The app counted other bytes of content than we received.
    BytesDiffer {
        /// Bytes of content of all whole responses that we received, warm-up included.
        client: u64,
        /// Bytes that the app says it handed to the server, over the same time.
        app: u64,
    },
    /// The server could not be asked how many requests it took, so nothing confirms ours.
    LedgerUnknown {
        /// Why not.
        reason: String,
    },
    /// A percentile is not printed: requests without a response could change it.
    QuantilesHidden {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Requests that failed or had no response.
        unanswered: u64,
        /// Their outcomes, [by name](crate::counts::name).
        outcomes: Vec<String>,
    },
    /// Percentiles above this one are not printed: too few requests.
    TooFewRequests {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Good responses that there are.
        answers: u64,
        /// So many independent ones they are worth for that percentile, where that is fewer.
        worth: Option<u64>,
    },
    /// Open loop: more was offered than the server can do, so response times depend on how long the
    /// run was.
    Growing {
        /// Growth of the response time, in seconds per second of due time; `None` where only some
        /// got slower.
        growth: Option<f64>,
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Open loop: the backlog grew all along, and it is not known why: the responses that came did
    /// not get slower.
    BacklogUnexplained {
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Some responses came without a time stamp of the kernel's, so that our late reading is in
    /// their times.
    Unstamped {
        /// How many.
        answers: u64,
        /// Good and other responses that there are.
        of: u64,
    },
    /// The app's stamps of some responses lie outside their request, so they are no part of its
    /// time.
    ImpossibleStamps {
        /// How many.
        answers: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// Some responses do not say what the app took, so they count in no app time.
    SilentApp {
        /// How many.
        answers: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// The wait in the accept queue, inferred from its length, is longer than all that it is a part
    /// of.
    QueueExceedsWait {
        /// The mean wait by the queue's length.
        #[serde(rename = "accept_queue_ns")]
        accept_queue: Nanos,
        /// The mean of what it is a part of: before the app, where that was measured, or the whole
        /// response time.
        #[serde(rename = "wait_ns")]
        wait: Nanos,
    },
    /// Of some responses the kernel's part is not known, or is not in order with the client's and
    /// the app's.
    KernelUnjoined {
        /// Not known.
        unmatched: u64,
        /// Not in order.
        impossible: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// The kernel's tracepoints did not follow everything.
    KernelIncomplete {
        /// Responses of which not all was seen.
        unfollowed: u64,
        /// What there was no room for.
        lost: u64,
    },
    /// The kernel saw another number of responses than we got.
    KernelCountDiffers {
        /// Responses by the kernel.
        kernel: u64,
        /// Our responses.
        client: u64,
    },
    /// The server closed kept-alive connections, so that some requests include a new connect.
    ConnectionsClosed {
        /// How many.
        closed: u64,
        /// After so many responses each of those that it closed without saying so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_answers: Option<u64>,
    },
    /// The server sent on kept-alive connections what nobody had asked for, so that we closed them.
    UnaskedBytes {
        /// How many.
        closed: u64,
    },
    /// The end of each response came as late after its beginning as a kernel delays an
    /// acknowledgement.
    DelayedAck {
        /// From the first byte of a response to its last, on average.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// Connections were served in turns, some requests in a row each, while others waited to be
    /// accepted.
    ServedInTurns {
        /// Responses of a turn: of most of them, or on average where they vary.
        answers_a_turn: f64,
        /// Turns have several lengths.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        varies: bool,
        /// Connections more than slots.
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
        /// Of so many.
        connections: u32,
    },
    /// More than the theoretical maximum was measured, so the service time is not what was given.
    AboveMaximum {
        /// Measured over possible.
        ratio: f64,
    },
    /// The server was still busy when the wait for it to become idle was given up: the next run
    /// starts on its backlog.
    StillBusy {
        /// How long we waited.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
        /// What was still going on.
        what: String,
    },
    /// A worker was replaced during the run. Between the two readings others may have come and
    /// gone.
    WorkersChanged {
        /// How many of those at its end were not there at its start.
        new: u32,
    },
    /// The server may run where the lanes do, and these took a part of it that is worth a word.
    SharedCpus {
        /// The processors that both may run on.
        cpus: Cpus,
        /// The lanes' work, as a share of all their time, 0 to 1.
        taken: f64,
    },
    /// Open loop: all connections were busy, and requests waited for one.
    QueuedInGenerator {
        /// How many.
        requests: u64,
        /// How long at the most.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// The log lacks requests: the disk was too slow for it.
    LogIncomplete {
        /// How many.
        dropped: u64,
    },
    /// A condition of the user's ended the run (`--stop-if`).
    StoppedEarly {
        /// Which, and the figure that met it.
        condition: String,
    },
    /// Another generator tells of other requests than the server counted.
    ClaimDiffers {
        /// Which generator.
        by: String,
        /// Requests that it says ended, its warm-up included.
        claimed: u64,
        /// Requests that the server counted over the same time.
        server: u64,
        /// How many more of them may have been under way when the generator's time was up.
        under_way: u64,
    },
    /// What the audit of another generator's figures found.
    Audited {
        /// Which generator.
        by: String,
        /// Which check: `Little's law`.
        check: String,
        /// How it came out.
        is: ClaimGrade,
        /// The evidence in a sentence or two.
        text: String,
    },
    /// The run was ended before its time.
    Interrupted {
        /// By whom.
        by: EndedBy,
    },
}

/// How a check of another tool's printed figures came out, the worst first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Error,
)]
#[serde(rename_all = "snake_case")]
pub enum ClaimGrade {
    /// It cannot be so, whatever rounding did.
    #[default]
    #[error("FAILS")]
    Fails,
    /// It can be so, and is not what a reader takes it for.
    #[error("is doubtful")]
    Doubtful,
    /// No judgement of its own, but the reason of another's.
    #[error("explains it")]
    Explains,
    /// The figures agree.
    #[error("holds")]
    Holds,
    /// A figure is missing.
    #[error("is unchecked")]
    Unchecked,
}

/// Who ended a run before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// A signal, or Ctrl-C.
    #[default]
    #[error("interrupted by the user")]
    User,
    /// The server that was loaded: it ended.
    #[error("the server ended")]
    Server,
}
