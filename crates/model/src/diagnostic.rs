//! What a run lets one say about its own numbers: a question that was asked of it, or a doubt beside a number.
//!
//! One variant is one diagnostic. It carries its evidence, prints itself as a sentence, grades itself and knows what helps. A
//! [`Judgement`](crate::Judgement) holds those that were asked of every run (its checks); a run holds those that came up (its
//! warnings). The limits are those of docs/METHOD.md, "The verdict" and "Warnings".

use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumMessage};
use thiserror::Error;

use crate::claimed::FindingGrade;
use crate::{Cpus, Nanos, Outcome, counts};

/// How a diagnostic comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Says what is missing from a row, and puts no number in doubt.
    Note,
    /// As it should be.
    Passed,
    /// Worth a look; does not change the verdict.
    Doubtful,
    /// Decides the verdict.
    Failed,
}

/// One question or doubt, with its evidence. Its code in JSON is its name.
#[derive(Clone, Debug, PartialEq, EnumIter, EnumMessage, Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Diagnostic {
    /// What this generator, with these very settings, reaches against a server that takes no time.
    #[error(
        "the generator reaches {ceiling_per_s:.0} requests/s without a server to wait for, {times:.1} times this rate"
    )]
    #[strum(
        message = "this rate is near the generator's own limit: use more --generator-threads on cores of their own, or a slower app"
    )]
    Headroom {
        /// That rate, in requests per second.
        ceiling_per_s: f64,
        /// It over the rate of the run.
        times: f64,
    },
    /// Open loop: requests sent within the window, of those that were due in it.
    #[error("{sent} of {due} requests were sent in time")]
    #[strum(
        message = "this is not the load that was asked for: use more connections (-c), more --generator-threads, or a lower rate"
    )]
    SentInTime {
        /// Sent.
        sent: u64,
        /// Due.
        due: u64,
    },
    /// How late the generator was by itself: from due to the start of sending, waits for a connection left out.
    #[error("the generator sent up to {:.3} ms late (p99), {} of the response time's p99", .p99.as_millis_f64(), percent(*.of_response_time))]
    #[strum(message = "use more --generator-threads on cores of their own; in an open loop also --timing spin")]
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// How late the generator read the responses, by the kernel's time stamps. It is not in the times.
    #[error("the generator read responses up to {:.3} ms late (p99), {} of the response time's p99", .p99.as_millis_f64(), percent(*.of_response_time))]
    #[strum(message = "use more --generator-threads on cores of their own, fewer connections, or a lower rate")]
    ReadLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// Open loop: whether the generator was later and later.
    #[error("the generator's own lag grew by {:.3} ms, {:.3} ms each second", .grown.as_millis_f64(), .slope * 1e3)]
    #[strum(message = "use more --generator-threads on cores of their own, fewer connections, or a lower rate")]
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
    #[error(
        "the generator's own lag may raise p{} by up to {:.3} ms; the sample gives it to ±{:.3} ms",
        percentile(*.quantile), .width.as_millis_f64(), .half_interval.as_millis_f64()
    )]
    #[strum(message = "use more --generator-threads on cores of their own; in an open loop also --timing spin")]
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
    #[error("the busiest generator thread used {} of a CPU", percent(*.share))]
    #[strum(message = "use more --generator-threads on cores of their own")]
    LaneCpu {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The most that a lane waited for a CPU.
    #[error("a generator thread waited for a CPU {} of the time", percent(*.share))]
    #[strum(
        message = "the generator competes for CPUs: use a quieter machine, or fewer --generator-threads than there are free cores"
    )]
    LaneRunQueue {
        /// Share of the run, 0 to 1.
        share: f64,
    },
    /// The most that a lane stood still: it did not run, and neither its wait for news nor its work explains that.
    #[error("{}", standstill(*.share, *.longest))]
    #[strum(
        message = "was it stopped (Ctrl-Z, a debugger, a CPU quota), or the machine too busy? Run again: what happened in that time is not the server's"
    )]
    Standstill {
        /// Share of the run, 0 to 1.
        share: f64,
        /// The longest stretch of any lane.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Connects for which this machine had no port, descriptor or memory left.
    #[error("{connects} connects failed because this machine had no port, descriptor or memory left")]
    #[strum(
        message = "keep connections alive, spread them over --source-ip, or raise net.ipv4.ip_local_port_range or ulimit -n"
    )]
    Exhausted {
        /// How many.
        connects: u64,
    },
    /// Requests without a good response.
    #[error("{}", failures(*.failed, *.planned))]
    #[strum(message = "see the errors by kind: times are those of good responses only")]
    Failures {
        /// How many.
        failed: u64,
        /// Of so many.
        planned: u64,
    },
    /// Closed loop without think time: mean response time x rate must be the connections (Little's law).
    #[error("by Little's law {in_flight:.1} requests were in flight on {connections} connections")]
    #[strum(
        message = "run longer (--for): some requests took as long as the window, or time is counted wrongly somewhere"
    )]
    LittlesLaw {
        /// Mean response time, read lag included, x completed rate.
        in_flight: f64,
        /// Connections.
        connections: u32,
        /// How far apart the two may be by what the window's edges cut off, as a share.
        tolerance: f64,
    },
    /// Over the server's whole life: it counts as many requests as we had responses.
    #[error("{}", conservation(*.worker, *.client, *.server))]
    #[strum(
        message = "is anything else sending to this server, or are requests given up unanswered? If neither, please report it: one of the two counts wrongly"
    )]
    Conservation {
        /// The worker that counts otherwise, by pid, where the sums agree.
        worker: Option<u32>,
        /// Whole responses that we had, warm-up included.
        client: u64,
        /// Requests that the server says it took.
        server: u64,
    },
    /// Connections that the kernel dropped because the server's accept queue was full, on this machine, in the run.
    #[error("full accept queues dropped {dropped} connects, of all servers on this machine")]
    #[strum(message = "raise the server's backlog and net.core.somaxconn: a dropped connect shows as 1, 2, 3 … s")]
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Connects that the kernel had to try again because nobody answered, on this machine, in the run (`TCPSynRetrans`).
    #[error("the kernel tried {retried} connects again; the longest took {:.2} s", .longest.as_secs_f64())]
    #[strum(
        message = "an accept queue or a SYN queue was full: raise the server's backlog, or open fewer connections at once"
    )]
    ConnectStalls {
        /// How many times.
        retried: u64,
        /// The longest connect of a good response.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Whether response times and rate settled (MSER-5).
    #[error("{}", steadiness(*.settled_after, *.shift))]
    #[strum(message = "use a longer --warm-up, or a longer run")]
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
    #[error("{due} requests were due where the rate gives {expected:.0}: {:+.1} standard deviations", deviations(*.due, *.expected))]
    #[strum(message = "use another --seed: this one's draw is a rare one")]
    PoissonCount {
        /// Requests that became due.
        due: u64,
        /// Requests that the rate comes to.
        expected: f64,
    },
    /// Whether the wall clock, by which the kernel stamps arrivals, was set.
    #[error("the wall clock was set {steps} times during the run")]
    #[strum(message = "use --timestamps user, or run again when nothing sets the clock")]
    ClockStep {
        /// How often.
        steps: u32,
    },
    /// Time that the hypervisor gave to others.
    #[error("the hypervisor took {} of the CPU time", percent(*.share))]
    #[strum(message = "use a machine whose cores are its own")]
    Steal {
        /// Share of all processors' time, 0 to 1.
        share: f64,
    },

    /// The app counted other bytes of content than we received.
    #[error("the app sent {app} bytes of content, and {client} came back")]
    #[strum(message = "is anything else sending to this server, or are requests given up before they are answered?")]
    BytesDiffer {
        /// Bytes of content of all whole responses that we received, warm-up included.
        client: u64,
        /// Bytes that the app says it handed to the server, over the same time.
        app: u64,
    },
    /// The server could not be asked how many requests it took, so nothing confirms ours.
    #[error("the server's own count is unknown: {reason}")]
    #[strum(
        message = "where requests failed, see why first; where it has none, give Puma its control server, or use an app that names its worker in a header"
    )]
    LedgerUnknown {
        /// Why not.
        reason: String,
    },
    /// A percentile is not printed: requests without a response could change it.
    #[error("p{} and above are not printed: {unanswered} requests without a good response could change them", percentile(*.from))]
    QuantilesHidden {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Requests that failed or had no response.
        unanswered: u64,
        /// Their outcomes, [by name](crate::counts::name).
        outcomes: Vec<String>,
    },
    /// Percentiles above this one are not printed: too few requests.
    #[error(
        "p{} and above are not printed: they need more than {}{}",
        percentile(*.from), counted(*.answers, "response"), .worth.map(|worth| format!(" (worth {worth} independent ones)")).unwrap_or_default()
    )]
    #[strum(message = "run longer (--for), or send more requests (-n, -R)")]
    TooFewRequests {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Good responses that there are.
        answers: u64,
        /// So many independent ones they are worth for that percentile, where that is fewer.
        worth: Option<u64>,
    },
    /// Open loop: more was offered than the server can do, so response times depend on how long the run was.
    #[error(
        "more was offered than the server can do: the backlog grew by {growth_per_s:.1} requests each second, to {at_end}, and {}",
        .growth.map_or("the longest response times with it".to_owned(), |growth| format!("response times by {growth:.3} s"))
    )]
    #[strum(message = "there is no steady state, and so no percentile of it: offer less (--rate)")]
    Growing {
        /// Growth of the response time, in seconds per second of due time; `None` where only some got slower.
        growth: Option<f64>,
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Open loop: the backlog grew all along, and it is not known why: the responses that came did not get slower.
    #[error(
        "the backlog grew by {growth_per_s:.1} requests each second, to {at_end}, and the responses that came did not get slower: this is an overload, or some requests take longer than the run"
    )]
    #[strum(message = "run for several times as long as the slowest responses take (--for)")]
    BacklogUnexplained {
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Some responses came without a time stamp of the kernel's, so that our late reading is in their times.
    #[error("{} of {of} have no time stamp of the kernel's: their times include how late we read them", counted(*.answers, "response"))]
    #[strum(message = "use --timestamps user where they are to be all alike")]
    Unstamped {
        /// How many.
        answers: u64,
        /// Good and other responses that there are.
        of: u64,
    },
    /// The app's stamps of some responses lie outside their request, so they are no part of its time.
    #[error("the app's time stamps of {} (of {of}) lie outside the request", counted(*.answers, "response"))]
    #[strum(message = "is there a cache, or another machine's or namespace's clock? Stamps are ns of CLOCK_MONOTONIC")]
    ImpossibleStamps {
        /// How many.
        answers: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// Some responses do not say what the app took, so they are not in the anatomy.
    #[error("{} (of {of}) do not say when the app began and ended", counted(*.answers, "response"))]
    #[strum(message = "the anatomy is of the others alone")]
    SilentApp {
        /// How many.
        answers: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// The wait in the accept queue, inferred from its length, is longer than all that it is a part of.
    #[error(
        "by its length the accept queue held requests for {:.1} ms, longer than the {:.1} ms that this is a part of",
        .accept_queue.as_millis_f64(), .wait.as_millis_f64()
    )]
    #[strum(message = "the queue is only sampled, and others may connect to this server too: run longer (--for)")]
    QueueExceedsWait {
        /// The mean wait by the queue's length.
        #[serde(rename = "accept_queue_ns")]
        accept_queue: Nanos,
        /// The mean of what it is a part of: before the app, where that was measured, or the whole response time.
        #[serde(rename = "wait_ns")]
        wait: Nanos,
    },
    /// Of some responses the kernel's part is not known, or is not in order with the client's and the app's.
    #[error(
        "the kernel's stamps of {} (of {of}) are unknown, and of {impossible} out of order with ours and the app's",
        counted(*.unmatched, "response")
    )]
    #[strum(message = "where the response time went is of the others alone")]
    KernelUnjoined {
        /// Not known.
        unmatched: u64,
        /// Not in order.
        impossible: u64,
        /// Good responses that there are.
        of: u64,
    },
    /// The kernel's tracepoints did not follow everything.
    #[error("the kernel's tracepoints missed a part of {}, and had no room for {lost} events", counted(*.unfollowed, "response"))]
    #[strum(
        message = "does the server accept by io_uring, or answer before it has read all? The waits are of the others alone"
    )]
    KernelIncomplete {
        /// Responses of which not all was seen.
        unfollowed: u64,
        /// What there was no room for.
        lost: u64,
    },
    /// The kernel saw another number of responses than we got.
    #[error("the kernel's tracepoints saw {}, and {client} came back", counted(*.kernel, "response"))]
    #[strum(message = "is anything else sending to this server, or does it answer in several rounds?")]
    KernelCountDiffers {
        /// Responses by the kernel.
        kernel: u64,
        /// Our responses.
        client: u64,
    },
    /// The server closed kept-alive connections, so that some requests include a new connect.
    #[error("the server closed {} that should have stayed open", counted(*.closed, "connection"))]
    #[strum(message = "their next requests include a connect; use -k to compare without keep-alive")]
    ConnectionsClosed {
        /// How many.
        closed: u64,
    },
    /// The server sent on kept-alive connections what nobody had asked for, so that we closed them.
    #[error("we closed {}: the server sent bytes between two requests", counted(*.closed, "connection"))]
    #[strum(
        message = "does it answer a request twice, or more than its Content-Length says, or a pause with 408? Their next requests include a connect"
    )]
    UnaskedBytes {
        /// How many.
        closed: u64,
    },
    /// The end of each response came as late after its beginning as a kernel delays an acknowledgement.
    #[error("responses end {:.0} ms after they begin, as long as Linux delays an acknowledgement", .waited.as_millis_f64())]
    #[strum(
        message = "a server that writes head and body apart without TCP_NODELAY waits for that (Nagle's algorithm): set TCP_NODELAY there, or write both at once"
    )]
    DelayedAck {
        /// From the first byte of a response to its last, on average.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// Connections were served in turns, some requests in a row each, while others waited to be accepted.
    #[error(
        "the server took connections in turns: {answers_a_turn:.1} responses in a row for one, while {} waited",
        counted((*.waiting).into(), "other")
    )]
    #[strum(
        message = "as Puma before 7 does: the first response of each turn carries the whole wait, so that high percentiles jump as connections rise and the rate stays; compare with -k or Puma 7"
    )]
    ServedInTurns {
        /// Responses for each connection that the server closed.
        answers_a_turn: f64,
        /// Connections more than slots.
        waiting: u32,
    },
    /// Some connections got far less than others.
    #[error("the server was unfair: one connection got {}, another {most} (Jain's index {jain:.2})", counted(*.fewest, "response"))]
    #[strum(message = "a server that serves one connection again and again starves the others; compare with -k")]
    Unfair {
        /// Jain's index: 1 is even, 1/n is one connection taking all.
        jain: f64,
        /// Requests of the connection that got the fewest.
        fewest: u64,
        /// Requests of the connection that got the most.
        most: u64,
    },
    /// More than the theoretical maximum was measured, so the service time is not what was given.
    #[error("the rate is {:.0} % of the theoretical maximum", .ratio * 100.0)]
    #[strum(message = "is -d what the app really takes, and are the slots right?")]
    AboveMaximum {
        /// Measured over possible.
        ratio: f64,
    },
    /// The server was still busy when the wait for it to become idle was given up: the next run starts on its backlog.
    #[error("the server was still busy {:.1} s after the run: {what}", .waited.as_secs_f64())]
    #[strum(message = "run fewer multiples, or each on its own")]
    StillBusy {
        /// How long we waited.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
        /// What was still going on.
        what: String,
    },
    /// A worker was replaced during the run. Between the two readings others may have come and gone.
    #[error("the server replaced at least {} during the run", counted((*.new).into(), "worker"))]
    #[strum(message = "see the server's log: a worker that dies or is phased out spoils the run")]
    WorkersChanged {
        /// How many of those at its end were not there at its start.
        new: u32,
    },
    /// The server may run where the lanes do, and these took a part of it that is worth a word.
    #[error(
        "the generator shared {} with the server and used {:.0} % of the time there: the server may be faster by itself",
        .cpus.in_words(), .taken * 100.0
    )]
    #[strum(
        message = "keep the server to some processors (--server-cpus, taskset): the lanes leave it those where there are others"
    )]
    SharedCpus {
        /// The processors that both may run on.
        cpus: Cpus,
        /// The lanes' work, as a share of all their time, 0 to 1.
        taken: f64,
    },
    /// Open loop: all connections were busy, and requests waited for one.
    #[error("{} waited for a free connection, up to {:.1} ms", counted(*.requests, "request"), .longest.as_millis_f64())]
    #[strum(
        message = "that wait is part of their response time and not of their service time; more connections (-c) would pass it on to the server"
    )]
    QueuedInGenerator {
        /// How many.
        requests: u64,
        /// How long at the most.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// The log lacks requests: the disk was too slow for it.
    #[error("the log lacks {dropped} requests: the disk was too slow for it")]
    #[strum(message = "log to a faster disk, or lower the rate")]
    LogIncomplete {
        /// How many.
        dropped: u64,
    },
    /// A condition of the user's ended the run (`--stop-if`).
    #[error("the run ended early: {condition}")]
    #[strum(message = "as asked (--stop-if): the figures are of the part before")]
    StoppedEarly {
        /// Which, and the figure that met it.
        condition: String,
    },
    /// Another generator tells of other requests than the server counted.
    #[error(
        "{by} reports {}, and the server counts {server}; at most {under_way} can have been under way at the end",
        counted(*.claimed, "request")
    )]
    #[strum(message = "is anything else sending to this server, or does that generator miscount?")]
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
    #[error("{by}'s own figures: {check} {is}: {text}")]
    #[strum(message = "longtail audit FILE lists every check of a tool's output")]
    Audited {
        /// Which generator.
        by: String,
        /// Which check: `Little's law`.
        check: String,
        /// How it came out.
        is: FindingGrade,
        /// The evidence in a sentence or two.
        text: String,
    },
    /// The run was ended before its time.
    #[error("{by}: the run is shorter than planned")]
    Interrupted {
        /// By whom.
        by: EndedBy,
    },
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

/// Lags up to this are small, whatever they are compared with.
const SMALL: Nanos = Nanos::from_micros(200);
/// A stretch that is worth a word, however long the run was: it may be the longest response time.
const STRETCH: Nanos = Nanos::from_millis(100);
/// Standard errors: an accident once in some hundred runs.
const SIGNIFICANT: f64 = 3.0;

impl Diagnostic {
    /// How it comes out. A warning is doubtful as soon as it is raised, or a note.
    pub fn grade(&self) -> Grade {
        let by = |value: f64, pass: f64, fail: f64| match value {
            v if v <= pass => Grade::Passed,
            v if v <= fail => Grade::Doubtful,
            _ => Grade::Failed,
        };
        let by_length = |longest| if longest > STRETCH { Grade::Doubtful } else { Grade::Passed };
        let if_none = |n: u64, otherwise: Grade| if n == 0 { Grade::Passed } else { otherwise };
        match *self {
            Diagnostic::Headroom { times, .. } => by(1.0 / times.max(1e-9), 1.0 / 3.0, 1.0 / 1.2),
            Diagnostic::SentInTime { sent, due } => by(1.0 - sent as f64 / (due as f64).max(1.0), 0.005, 0.02),
            Diagnostic::GeneratorLag { p99, .. } | Diagnostic::ReadLag { p99, .. } if p99 <= SMALL => Grade::Passed,
            Diagnostic::GeneratorLag { of_response_time, .. } | Diagnostic::ReadLag { of_response_time, .. } => {
                by(of_response_time, 0.05, 0.20)
            }
            Diagnostic::LaneCpu { share } => by(share, 0.70, 0.90),
            Diagnostic::LaneRunQueue { share } => by(share, 0.02, 0.10),
            Diagnostic::Standstill { share, longest } => by(share, 0.01, 0.10).max(by_length(longest)),
            Diagnostic::LittlesLaw { in_flight, connections, tolerance } => {
                by((in_flight / f64::from(connections.max(1)) - 1.0).abs(), 0.01 + tolerance, 0.05 + tolerance)
            }
            Diagnostic::Conservation { client, server, .. } => if_none(client.abs_diff(server), Grade::Failed),
            Diagnostic::ListenOverflows { dropped: n } | Diagnostic::ConnectStalls { retried: n, .. } => {
                if_none(n, Grade::Doubtful)
            }
            Diagnostic::Exhausted { connects } => if_none(connects, Grade::Failed),
            // Of nothing at all nothing is known.
            Diagnostic::Failures { failed, planned } if failed == planned => Grade::Failed,
            Diagnostic::Failures { failed, planned } => by(failed as f64 / planned as f64, 0.005, 1.0),
            Diagnostic::LagSlope { in_errors, grown, .. } if in_errors < SIGNIFICANT || grown <= SMALL => Grade::Passed,
            Diagnostic::LagSlope { slope, .. } => by(slope, 0.0, 0.001),
            Diagnostic::Bracket { width, half_interval, .. } if width <= half_interval.max(SMALL) => Grade::Passed,
            Diagnostic::Bracket { width, half_interval, of_response_time, .. } => {
                // Within two intervals it is the sample that is the limit.
                let worst = if width.0 > 2 * half_interval.0 { 0.20 } else { 1.0 };
                by(of_response_time, 0.05, worst)
            }
            Diagnostic::Steadiness { settled_after: Some(_), .. } => Grade::Passed,
            Diagnostic::Steadiness { shift, .. } if shift.abs() < 0.05 => Grade::Passed,
            Diagnostic::Steadiness { shift, shift_in_errors, is_claimed, .. } => {
                let is_other = shift.abs() >= 0.25 && shift_in_errors.abs() >= SIGNIFICANT;
                if is_claimed && is_other { Grade::Failed } else { Grade::Doubtful }
            }
            Diagnostic::PoissonCount { due, expected } => {
                by(deviations(due, expected).abs(), SIGNIFICANT, f64::INFINITY)
            }
            Diagnostic::ClockStep { steps } => if_none(steps.into(), Grade::Failed),
            Diagnostic::Steal { share } => by(share, 0.01, 0.05),
            Diagnostic::Audited { is: FindingGrade::Fails, .. } => Grade::Failed,
            Diagnostic::Audited { is: FindingGrade::Explains, .. }
            | Diagnostic::TooFewRequests { .. }
            | Diagnostic::LedgerUnknown { .. }
            | Diagnostic::KernelUnjoined { .. }
            | Diagnostic::KernelIncomplete { .. } => Grade::Note,
            _ => Grade::Doubtful,
        }
    }

    /// Whether a failure of it means that the generator was the limit; else it means that the figures are worth nothing.
    pub(crate) fn blames_the_generator(&self) -> bool {
        matches!(
            self,
            Diagnostic::Headroom { .. }
                | Diagnostic::SentInTime { .. }
                | Diagnostic::GeneratorLag { .. }
                | Diagnostic::LaneCpu { .. }
                | Diagnostic::LaneRunQueue { .. }
                | Diagnostic::Standstill { .. }
                | Diagnostic::Exhausted { .. }
                | Diagnostic::ReadLag { .. }
                | Diagnostic::LagSlope { .. }
                | Diagnostic::Bracket { .. }
        )
    }

    /// What to do, or to type, where it is not passed.
    pub fn hint(&self) -> &'static str {
        match self {
            Diagnostic::Failures { planned: 0, .. } | Diagnostic::Interrupted { by: EndedBy::User } => {
                "run again to the end"
            }
            Diagnostic::Interrupted { by: EndedBy::Server } => {
                "the server's last lines and its log may say why; the figures are of the part before and of its end"
            }
            Diagnostic::QuantilesHidden { outcomes, .. } => hint_for_failures(outcomes),
            _ => self.get_message().unwrap_or_default(),
        }
    }
}

/// What may be done about failures, of which these outcomes occurred.
fn hint_for_failures(outcomes: &[String]) -> &'static str {
    let occurred = |wanted: fn(Outcome) -> bool| outcomes.iter().any(|name| counts::outcome(name).is_some_and(wanted));
    // What a client got wrong, or what is no HTTP, is so under any load; too many requests (429) are not.
    let may_be_of_the_load = |outcome| match outcome {
        Outcome::Answered(status) => status >= 500 || status == 429,
        Outcome::BadResponse | Outcome::WrongLength => false,
        _ => true,
    };
    if occurred(|outcome| matches!(outcome, Outcome::TimedOut | Outcome::ConnectTimedOut)) {
        "see the errors by kind: raise --timeout where they are timeouts, or lower the load"
    } else if occurred(may_be_of_the_load) {
        "see the errors by kind, or lower the load"
    } else {
        "see the errors by kind: what they say comes first"
    }
}

fn standstill(share: f64, longest: Nanos) -> String {
    match longest {
        Nanos::ZERO => "no generator thread stood still".to_owned(),
        _ => format!(
            "a generator thread stood still for {} of the time, {:.2} s at once",
            percent(share),
            longest.as_secs_f64()
        ),
    }
}

fn failures(failed: u64, planned: u64) -> String {
    match planned {
        0 => "no request was due in the measured window".to_owned(),
        _ => format!("{failed} of {planned} requests had no good response"),
    }
}

fn conservation(worker: Option<u32>, client: u64, server: u64) -> String {
    match worker {
        Some(pid) => format!("worker {pid} counts {server} requests, and {client} responses name it"),
        None => format!("the server counts {server} requests, and {client} responses came back"),
    }
}

fn steadiness(settled_after: Option<Nanos>, shift: f64) -> String {
    match settled_after {
        Some(Nanos::ZERO) => "response times were steady from the start".to_owned(),
        Some(after) => format!("response times were steady after {:.2} s", after.as_secs_f64()),
        None => {
            format!("response times did not settle: the second half differs from the first by {:+.1} %", shift * 100.0)
        }
    }
}

/// How many standard deviations a Poisson count is off.
fn deviations(count: u64, expected: f64) -> f64 {
    (count as f64 - expected) / expected.max(1.0).sqrt()
}

/// `1 request`, `2 requests`.
fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// `0.123` as `12.3 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `0.999` as `99.9`.
fn percentile(quantile: f64) -> String {
    format!("{:.3}", quantile * 100.0).trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    #[test]
    fn each_check_has_its_limits() {
        use Diagnostic as D;
        use Grade::{Doubtful, Failed, Passed};
        let headroom = |times| D::Headroom { ceiling_per_s: times, times };
        let sent = |sent| D::SentInTime { sent, due: 1000 };
        let lag = |of_response_time| D::GeneratorLag { p99: MS, of_response_time };
        let read = |of_response_time| D::ReadLag { p99: MS, of_response_time };
        let cpu = |share| D::LaneCpu { share };
        let queue = |share| D::LaneRunQueue { share };
        let steal = |share| D::Steal { share };
        let still = |share, millis| D::Standstill { share, longest: Nanos::from_millis(millis) };
        let little = |in_flight| D::LittlesLaw { in_flight, connections: 100, tolerance: 0.0 };
        let slope = |slope, in_errors| D::LagSlope { slope, in_errors, grown: MS };
        let bracket = |half, of_response_time| {
            let (width, half_interval) = (Nanos::from_millis(4), Nanos::from_millis(half));
            D::Bracket { quantile: 0.99, width, half_interval, of_response_time }
        };
        let steady = |shift, is_claimed| D::Steadiness { settled_after: None, shift, shift_in_errors: 5.0, is_claimed };
        let failures = |failed| D::Failures { failed, planned: 1000 };
        let counts = |server| D::Conservation { worker: None, client: 7, server };
        let draw = |due| D::PoissonCount { due, expected: 100.0 };
        let stalls = |retried| D::ConnectStalls { retried, longest: MS };
        let small = D::GeneratorLag { p99: Nanos::from_micros(150), of_response_time: 0.9 };
        for (passed, doubtful, failed) in [
            (headroom(3.0), Some(headroom(2.0)), Some(headroom(1.1))),
            (sent(996), Some(sent(985)), Some(sent(970))),
            (lag(0.04), Some(lag(0.1)), Some(lag(0.3))),
            (read(0.04), Some(read(0.1)), Some(read(0.3))),
            (small, None, None),
            (cpu(0.5), Some(cpu(0.8)), Some(cpu(0.95))),
            (queue(0.01), Some(queue(0.05)), Some(queue(0.2))),
            (steal(0.0), Some(steal(0.03)), Some(steal(0.1))),
            // A long stretch may be the longest response time.
            (still(0.01, 90), Some(still(0.001, 1500)), Some(still(0.25, 1500))),
            (still(0.0, 0), Some(still(0.05, 90)), None),
            (little(100.5), Some(little(103.0)), Some(little(282.0))),
            (slope(-0.1, 9.0), Some(slope(0.0005, 9.0)), Some(slope(0.01, 9.0))),
            (slope(0.01, 2.0), None, None),
            (bracket(4, 0.3), Some(bracket(3, 0.3)), Some(bracket(1, 0.3))),
            (bracket(1, 0.04), None, None),
            (steady(0.04, true), Some(steady(-0.2, true)), Some(steady(-0.3, true))),
            (steady(0.04, false), Some(steady(0.9, false)), None),
            (failures(5), Some(failures(999)), Some(failures(1000))),
            (counts(7), None, Some(counts(8))),
            (draw(129), Some(draw(131)), None),
            (stalls(0), Some(stalls(1)), None),
            (D::ListenOverflows { dropped: 0 }, Some(D::ListenOverflows { dropped: 1 }), None),
            (D::ClockStep { steps: 0 }, None, Some(D::ClockStep { steps: 1 })),
            (D::Exhausted { connects: 0 }, None, Some(D::Exhausted { connects: 1 })),
        ] {
            for (diagnostic, grade) in [(Some(passed), Passed), (doubtful, Doubtful), (failed, Failed)] {
                assert!(diagnostic.iter().all(|diagnostic| diagnostic.grade() == grade), "{diagnostic:?}");
            }
        }
    }

    #[test]
    fn each_says_what_is_and_what_to_do_and_survives_its_file() {
        let of_no_cpu = |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::SharedCpus { .. });
        for diagnostic in Diagnostic::iter().filter(|diagnostic| !of_no_cpu(diagnostic)) {
            assert!(!diagnostic.to_string().is_empty() && !diagnostic.hint().is_empty(), "{diagnostic:?}");
            let file = serde_json::to_string(&diagnostic).unwrap();
            assert_eq!(serde_json::from_str::<Diagnostic>(&file).unwrap(), diagnostic, "{file}");
        }
    }

    #[test]
    fn the_text_has_the_evidence() {
        let failures = |failed, planned| Diagnostic::Failures { failed, planned };
        let too_few = |answers, worth| Diagnostic::TooFewRequests { from: 0.999, answers, worth };
        for (diagnostic, text) in [
            (failures(0, 0), "no request was due in the measured window"),
            (failures(1, 9), "1 of 9 requests had no good response"),
            (too_few(9, None), "p99.9 and above are not printed: they need more than 9 responses"),
            (
                too_few(90, Some(7)),
                "p99.9 and above are not printed: they need more than 90 responses (worth 7 independent ones)",
            ),
            (
                Diagnostic::Conservation { worker: Some(11), client: 3, server: 2 },
                "worker 11 counts 2 requests, and 3 responses name it",
            ),
            (Diagnostic::WorkersChanged { new: 1 }, "the server replaced at least 1 worker during the run"),
            (Diagnostic::Interrupted { by: EndedBy::Server }, "the server ended: the run is shorter than planned"),
        ] {
            assert_eq!(diagnostic.to_string(), text);
        }
    }

    #[test]
    fn a_hint_names_only_what_helps_against_the_failures_that_occurred() {
        let hint = |outcomes: &[&str]| {
            let outcomes = outcomes.iter().map(|name| (*name).to_owned()).collect();
            Diagnostic::QuantilesHidden { from: 0.5, unanswered: 1, outcomes }.hint()
        };
        let names = |words: &str| (words.contains("--timeout"), words.contains("lower the load"));
        assert_eq!(names(hint(&["503", "timed_out", "bad_response"])), (true, true));
        for outcome in ["503", "429", "connect_refused", "reset", "closed_early", "skipped", "in_flight_at_end"] {
            assert_eq!(names(hint(&[outcome, "bad_response"])), (false, true), "{outcome}");
        }
        for outcome in ["404", "bad_response", "wrong_length"] {
            assert_eq!(names(hint(&[outcome])), (false, false), "{outcome}");
        }
    }
}
