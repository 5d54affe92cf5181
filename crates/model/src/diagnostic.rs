//! Checks and warnings ([`Diagnostic`]): a question that was asked of a run, or a doubt beside a
//! number.
//!
//! One variant is one diagnostic. It carries its evidence and prints itself as a sentence;
//! `grade.rs` says how bad it is and what helps. A [`Judgement`](crate::Judgement) holds those that
//! were asked of every run (its checks); a run holds those that came up (its warnings). The limits
//! are those of docs/METHOD.md, "The verdict" and "Warnings".

mod words;

use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumMessage};
use thiserror::Error;

pub(crate) use self::words::deviations;
use self::words::{conservation, counted, failures, percent, percentile, standstill, steadiness};
use crate::{Cpus, Nanos};

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
    /// How late the generator was by itself: from due to the start of sending, waits for a
    /// connection left out.
    #[error("the generator sent up to {:.3} ms late (p99), {} of the response time's p99", .p99.as_millis_f64(), percent(*.of_response_time))]
    #[strum(
        message = "use more --generator-threads on cores of their own; in an open loop also --timing spin"
    )]
    GeneratorLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// How late the generator read the responses, by the kernel's time stamps. It is not in the
    /// times.
    #[error("the generator read responses up to {:.3} ms late (p99), {} of the response time's p99", .p99.as_millis_f64(), percent(*.of_response_time))]
    #[strum(
        message = "use more --generator-threads on cores of their own, fewer connections, or a lower rate"
    )]
    ReadLag {
        /// Its 99th percentile.
        #[serde(rename = "p99_ns")]
        p99: Nanos,
        /// That over the 99th percentile of the response time.
        of_response_time: f64,
    },
    /// Open loop: whether the generator was later and later.
    #[error("the generator's own lag grew by {:.3} ms, {:.3} ms each second", .grown.as_millis_f64(), .slope * 1e3)]
    #[strum(
        message = "use more --generator-threads on cores of their own, fewer connections, or a lower rate"
    )]
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
    #[error(
        "the generator's own lag may raise p{} by up to {:.3} ms; the sample gives it to ±{:.3} ms",
        percentile(*.quantile), .width.as_millis_f64(), .half_interval.as_millis_f64()
    )]
    #[strum(
        message = "use more --generator-threads on cores of their own; in an open loop also --timing spin"
    )]
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
    /// The most that a lane stood still: it did not run, and neither its wait for news nor its work
    /// explains that.
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
    #[error(
        "{connects} connects failed because this machine had no port, descriptor or memory left"
    )]
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
    /// Closed loop without think time: mean response time x rate must be the connections (Little's
    /// law).
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
    /// Connections that the kernel dropped because the server's accept queue was full, on this
    /// machine, in the run.
    #[error("full accept queues dropped {dropped} connects, of all servers on this machine")]
    #[strum(
        message = "raise the server's backlog and net.core.somaxconn: a dropped connect shows as 1, 2, 3 … s"
    )]
    ListenOverflows {
        /// How many.
        dropped: u64,
    },
    /// Connects that the kernel had to try again because nobody answered, on this machine, in the
    /// run (`TCPSynRetrans`).
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

    /// A generator on another machine of which nothing is known: it ended in the middle of the run,
    /// or did not answer.
    #[error("the generator '{name}' is lost: {why}. Its requests are not counted")]
    #[strum(
        message = "run again; the figures are those of the other generators, and the load was less than planned"
    )]
    GeneratorLost {
        /// Which.
        name: String,
        /// What is known of it.
        why: String,
    },
    /// Generators on other machines: how late the last of them started.
    #[error("the generators started within {:.3} ms of each other ('{name}' last)", .late.as_millis_f64())]
    #[strum(
        message = "is a generator's machine too busy, or the way to it slow? The load began in pieces"
    )]
    LateStart {
        /// The last.
        name: String,
        /// How late.
        #[serde(rename = "late_ns")]
        late: Nanos,
    },
    /// Generators on other machines: how far off the clock that is known least well may be.
    #[error("the generators' clocks are known to {:.3} ms ('{name}' least)", .error.as_millis_f64())]
    #[strum(
        message = "response times stand; what server and generator saw at the same instant may be apart by as much: use a shorter way to the generator"
    )]
    ClockError {
        /// The least known.
        name: String,
        /// The most that it may be off.
        #[serde(rename = "error_ns")]
        error: Nanos,
    },
    /// Generators on other machines: one has other response times than all of them together.
    #[error(
        "'{name}' has a median of {:.3} ms, all generators together {:.3} ms",
        .p50.as_millis_f64(), .merged.as_millis_f64()
    )]
    #[strum(
        message = "is its way to the server longer, or its machine busier? The merged percentiles mix the two"
    )]
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
    #[error("the app sent {app} bytes of content, and {client} came back")]
    #[strum(
        message = "is anything else sending to this server, or are requests given up before they are answered?"
    )]
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
    /// Open loop: more was offered than the server can do, so response times depend on how long the
    /// run was.
    #[error(
        "more was offered than the server can do: the backlog grew by {growth_per_s:.1} requests each second, to {at_end}, and {}",
        .growth.map_or("the longest response times with it".to_owned(), |growth| format!("response times by {growth:.3} s"))
    )]
    #[strum(message = "there is no steady state, and so no percentile of it: offer less (--rate)")]
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
    /// Some responses came without a time stamp of the kernel's, so that our late reading is in
    /// their times.
    #[error("{} of {of} have no time stamp of the kernel's: their times include how late we read them", counted(*.answers, "response"))]
    #[strum(message = "use --timestamps user where they are to be all alike")]
    Unstamped {
        /// How many.
        answers: u64,
        /// Good and other responses that there are.
        of: u64,
    },
    /// The app's stamps of some responses lie outside their request, so they are no part of its
    /// time.
    #[error("the app's time stamps of {} (of {of}) lie outside the request", counted(*.answers, "response"))]
    #[strum(
        message = "is there a cache, or another machine's or namespace's clock? Stamps are ns of CLOCK_MONOTONIC"
    )]
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
    /// The wait in the accept queue, inferred from its length, is longer than all that it is a part
    /// of.
    #[error(
        "by its length the accept queue held requests for {:.1} ms, longer than the {:.1} ms that this is a part of",
        .accept_queue.as_millis_f64(), .wait.as_millis_f64()
    )]
    #[strum(
        message = "the queue is only sampled, and others may connect to this server too: run longer (--for)"
    )]
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
    #[strum(
        message = "is anything else sending to this server, or does it answer in several rounds?"
    )]
    KernelCountDiffers {
        /// Responses by the kernel.
        kernel: u64,
        /// Our responses.
        client: u64,
    },
    /// The server closed kept-alive connections, so that some requests include a new connect.
    #[error("the server closed {} that should have stayed open", counted(*.closed, "connection"))]
    #[strum(
        message = "their next requests include a connect; use -k to compare without keep-alive"
    )]
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
    /// The end of each response came as late after its beginning as a kernel delays an
    /// acknowledgement.
    #[error("responses end {:.0} ms after they begin, as long as Linux delays an acknowledgement", .waited.as_millis_f64())]
    #[strum(
        message = "a server that writes head and body apart without TCP_NODELAY waits for that (Nagle's algorithm): set TCP_NODELAY there, or write both at once"
    )]
    DelayedAck {
        /// From the first byte of a response to its last, on average.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// Connections were served in turns, some requests in a row each, while others waited to be
    /// accepted.
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
    #[strum(
        message = "a server that serves one connection again and again starves the others; compare with -k"
    )]
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
    /// The server was still busy when the wait for it to become idle was given up: the next run
    /// starts on its backlog.
    #[error("the server was still busy {:.1} s after the run: {what}", .waited.as_secs_f64())]
    #[strum(message = "run fewer multiples, or each on its own")]
    StillBusy {
        /// How long we waited.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
        /// What was still going on.
        what: String,
    },
    /// A worker was replaced during the run. Between the two readings others may have come and
    /// gone.
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
        message = "keep the server to some CPUs (taskset; sweep and compare: --server-cpus): the generator then uses the others"
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

/// How a check of the audit came out that is worth a word, the worst first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum FindingGrade {
    /// It cannot be so.
    #[default]
    #[error("FAILS")]
    Fails,
    /// It can be so, and is not what a reader takes it for.
    #[error("is doubtful")]
    Doubtful,
    /// The reason of another finding.
    #[error("explains it")]
    Explains,
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
