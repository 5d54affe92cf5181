//! A doubt about a number, with its evidence and its remedy. Printed beside the number that it spoils, and saved.

use serde::{Deserialize, Serialize};

use crate::{Cpus, Nanos, Outcome, counts};

/// What is doubtful in a run, and why. Each has a code (its name in JSON), a text and a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Diagnostic {
    /// The server counted another number of requests than we had answered.
    LedgersDiffer {
        /// The worker that counts otherwise, by pid, where the sums agree.
        #[serde(default)]
        worker: Option<u32>,
        /// Whole answers that we received, warm-up included.
        client: u64,
        /// Requests that the server says it took, over the same time.
        server: u64,
    },
    /// The app counted other bytes of content than we received.
    BytesDiffer {
        /// Bytes of content of all whole answers that we received, warm-up included.
        client: u64,
        /// Bytes that the app says it handed to the server, over the same time.
        app: u64,
    },
    /// The server could not be asked how many requests it took, so nothing confirms ours.
    LedgerUnknown {
        /// Why not.
        reason: String,
    },
    /// Not all requests ended well.
    Failures {
        /// Those that did not.
        failed: u64,
        /// All that were planned.
        planned: u64,
    },
    /// A percentile is not printed: requests without an answer could change it.
    QuantilesHidden {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Requests that failed or had no answer.
        unanswered: u64,
        /// Their outcomes, [by name](crate::counts::name); empty in older files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outcomes: Vec<String>,
    },
    /// Percentiles above this one are not printed: too few requests.
    TooFewRequests {
        /// The lowest percentile (0 to 1) that is not printed.
        from: f64,
        /// Good answers that there are.
        answers: u64,
        /// So many independent ones they are worth for that percentile, where that is fewer.
        #[serde(default)]
        worth: Option<u64>,
    },
    /// Open loop: more was offered than the server can do, so response times depend on how long the run was.
    Growing {
        /// Growth of the response time, in seconds per second of due time; `None` where only some got slower.
        growth: Option<f64>,
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Open loop: the backlog grew all along, and it is not known why: the answers that came did not get slower.
    BacklogUnexplained {
        /// Growth of the backlog, in requests a second.
        growth_per_s: f64,
        /// The backlog when the last request became due.
        at_end: u64,
    },
    /// Some answers came without a time stamp of the kernel's, so that our late reading is in their times.
    Unstamped {
        /// How many.
        answers: u64,
        /// Good and other answers that there are.
        of: u64,
    },
    /// The app's stamps of some answers lie outside their request, so they are no part of its time.
    ImpossibleStamps {
        /// How many.
        answers: u64,
        /// Good answers that there are.
        of: u64,
    },
    /// Some answers do not say what the app took, so they are not in the anatomy.
    SilentApp {
        /// How many.
        answers: u64,
        /// Good answers that there are.
        of: u64,
    },
    /// The wait in the accept queue, inferred from its length, is longer than all that it is a part of.
    QueueExceedsWait {
        /// The mean wait by the queue's length.
        #[serde(rename = "accept_queue_ns")]
        accept_queue: Nanos,
        /// The mean of what it is a part of: before the app, where that was measured, or the whole response time.
        #[serde(rename = "wait_ns")]
        wait: Nanos,
    },
    /// Of some answers the kernel's part is not known, or is not in order with the client's and the app's.
    KernelUnjoined {
        /// Not known.
        unmatched: u64,
        /// Not in order.
        impossible: u64,
        /// Good answers that there are.
        of: u64,
    },
    /// The kernel's tracepoints did not follow everything.
    KernelIncomplete {
        /// Answers of which not all was seen.
        unfollowed: u64,
        /// What there was no room for.
        lost: u64,
    },
    /// The kernel saw another number of answers than we got.
    KernelCountDiffers {
        /// Answers by the kernel.
        kernel: u64,
        /// Our answers.
        client: u64,
    },
    /// The server closed kept-alive connections, so that some requests include a new connect.
    ConnectionsClosed {
        /// How many.
        closed: u64,
    },
    /// The server sent on kept-alive connections what nobody had asked for, so that we closed them.
    UnaskedBytes {
        /// How many.
        closed: u64,
    },
    /// The end of each answer came as late after its beginning as a kernel delays an acknowledgement.
    DelayedAck {
        /// From the first byte of an answer to its last, on average.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// Connections were served in turns, some requests in a row each, while others waited to be accepted.
    ServedInTurns {
        /// Answers for each connection that the server closed.
        answers_a_turn: f64,
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
    /// More than the theoretical maximum was measured, so the service time is not what was given.
    AboveMaximum {
        /// Measured over possible.
        ratio: f64,
    },
    /// The server was still busy when the wait for it to become idle was given up: the next run starts on its backlog.
    StillBusy {
        /// How long we waited.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
        /// What was still going on.
        what: String,
    },
    /// A worker was replaced during the run.
    WorkersChanged {
        /// How many of those at its end were not there at its start.
        new: u32,
    },
    /// The generator did not send in time what was due in the window.
    FellBehind {
        /// Requests that were due in the window.
        due: u64,
        /// Requests that were sent in it.
        sent_in_time: u64,
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
    /// The run was ended before its time.
    Interrupted {
        /// By whom; not known in older files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EndedBy>,
    },
}

/// Who ended a run before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// A signal, or Ctrl-C.
    User,
    /// The server that was loaded: it ended.
    Server,
}

fn ended_by(who: Option<EndedBy>) -> &'static str {
    match who {
        None => "interrupted",
        Some(EndedBy::User) => "interrupted by the user",
        Some(EndedBy::Server) => "the server ended in the middle of it",
    }
}

/// What grew in an overload.
fn grown(growth: Option<f64>, growth_per_s: f64, at_end: u64) -> String {
    let times = match growth {
        Some(growth) => format!("response times by {growth:.3} s"),
        None => "the longest response times with it".to_owned(),
    };
    format!(
        "more was offered than the server can do: the backlog grew by {growth_per_s:.1} requests each second, to {at_end}, and {times}"
    )
}

impl Diagnostic {
    /// What was seen.
    pub fn text(&self) -> String {
        match self {
            Diagnostic::LedgersDiffer { worker: Some(pid), client, server } => {
                format!("worker {pid} counts {server} requests, {client} of our answers name it")
            }
            Diagnostic::LedgersDiffer { client, server, .. } => {
                format!("the server counts {server} requests, we got {client} answers")
            }
            Diagnostic::BytesDiffer { client, app } => {
                format!("the app counts {app} bytes of content, we received {client}")
            }
            Diagnostic::LedgerUnknown { reason } => format!("the server's own count is unknown: {reason}"),
            Diagnostic::Failures { failed, planned } => format!("{failed} of {planned} requests did not end well"),
            Diagnostic::QuantilesHidden { from, unanswered, .. } => {
                format!(
                    "p{} and above are not printed: {unanswered} requests without a good answer could change them",
                    percent(*from)
                )
            }
            Diagnostic::TooFewRequests { from, answers, worth } => {
                let worth = worth.map(|n| format!(" (worth {n} independent ones)")).unwrap_or_default();
                let answers = of(*answers, "answer");
                format!("p{} and above are not printed: {answers}{worth} are too few for them", percent(*from))
            }
            Diagnostic::Growing { growth, growth_per_s, at_end } => grown(*growth, *growth_per_s, *at_end),
            Diagnostic::BacklogUnexplained { growth_per_s, at_end } => format!(
                "the backlog grew by {growth_per_s:.1} requests each second, to {at_end}, and the answers that came did not get slower: an overload, or some requests take longer than this run"
            ),
            Diagnostic::Unstamped { answers, of: all } => {
                let answers = of(*answers, "answer");
                format!("{answers} of {all} came without the kernel's time stamp: our late reading is in their times")
            }
            Diagnostic::ImpossibleStamps { answers, of: all } => {
                format!("the app's stamps of {} (of {all}) lie outside their requests", of(*answers, "answer"))
            }
            Diagnostic::SilentApp { answers, of: all } => {
                format!("{} (of {all}) without a word of when the app began and ended", of(*answers, "answer"))
            }
            Diagnostic::QueueExceedsWait { accept_queue, wait } => format!(
                "by its length requests waited {:.1} ms in the accept queue, longer than the {:.1} ms that it is a part of",
                accept_queue.as_millis_f64(),
                wait.as_millis_f64()
            ),
            Diagnostic::KernelUnjoined { unmatched, impossible, of: all } => format!(
                "of {} (of {all}) the kernel's stamps are not known, and of {impossible} not in order with ours and the app's",
                of(*unmatched, "answer")
            ),
            Diagnostic::KernelIncomplete { unfollowed, lost } => format!(
                "the kernel's tracepoints did not see all of {}, and had no room for {lost} more things",
                of(*unfollowed, "answer")
            ),
            Diagnostic::KernelCountDiffers { kernel, client } => {
                format!("the kernel's tracepoints saw {}, we got {client}", of(*kernel, "answer"))
            }
            Diagnostic::ConnectionsClosed { closed } => {
                format!("the server closed {} that were to be kept", of(*closed, "connection"))
            }
            Diagnostic::UnaskedBytes { closed } => format!(
                "{} had to be closed: the server sent bytes that nobody had asked for, between two requests",
                of(*closed, "connection")
            ),
            Diagnostic::DelayedAck { waited } => format!(
                "the end of an answer came {:.0} ms after its beginning, which is as long as Linux delays an acknowledgement",
                waited.as_secs_f64() * 1e3
            ),
            Diagnostic::ServedInTurns { answers_a_turn, waiting } => format!(
                "served in turns: a connection had {answers_a_turn:.1} answers in a row while {} waited",
                of(u64::from(*waiting), "other")
            ),
            Diagnostic::Unfair { jain, fewest, most } => {
                format!("unfair: one connection got {}, another {most} (Jain's index {jain:.2})", of(*fewest, "answer"))
            }
            Diagnostic::AboveMaximum { ratio } => format!("{:.0} % of the theoretical maximum", ratio * 100.0),
            Diagnostic::StillBusy { waited, what } => {
                format!("the server was still busy {:.1} s after the run: {what}", waited.as_secs_f64())
            }
            // Between the two looks others may have come and gone.
            Diagnostic::WorkersChanged { new: 1 } => "1 worker or more was replaced during the run".to_owned(),
            Diagnostic::WorkersChanged { new } => format!("{new} workers or more were replaced during the run"),
            Diagnostic::FellBehind { due, sent_in_time } => {
                format!("{due} requests were due in the window, and {sent_in_time} were sent in it")
            }
            Diagnostic::SharedCpus { cpus, taken } => format!(
                "the lanes shared {} with the server, and took {:.0} % of the time there: it may be faster by itself",
                cpus.in_words(),
                taken * 100.0
            ),
            Diagnostic::QueuedInGenerator { requests, longest } => format!(
                "{} waited for a free connection, up to {:.1} ms",
                of(*requests, "request"),
                longest.as_millis_f64()
            ),
            Diagnostic::LogIncomplete { dropped } => {
                format!("the log lacks {dropped} requests: it was written too slowly")
            }
            Diagnostic::StoppedEarly { condition } => format!("ended early: {condition}"),
            Diagnostic::ClaimDiffers { by, claimed, server, under_way } => format!(
                "{by} tells of {}, the server counted {server}; at most {under_way} can have been under way at the end",
                of(*claimed, "request")
            ),
            Diagnostic::Interrupted { by } => format!("{}: the run is shorter than planned", ended_by(*by)),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Diagnostic::LedgersDiffer { .. } | Diagnostic::BytesDiffer { .. } => {
                "is anything else sending to this server, or are requests given up before they are answered?"
            }
            Diagnostic::LedgerUnknown { .. } => {
                "where requests failed, see why first; where it has none, give Puma its control server, or use an app that names its worker in a header"
            }
            Diagnostic::Failures { .. } => "see the errors by kind; percentiles are of good answers only",
            Diagnostic::QuantilesHidden { outcomes, .. } => remedy_of_failures(outcomes),
            Diagnostic::TooFewRequests { .. } => "run longer (--for), or more requests (-n, -R)",
            Diagnostic::Growing { .. } => "there is no steady state, and so no percentile of it: offer less (--rate)",
            Diagnostic::BacklogUnexplained { .. } => {
                "run for several times as long as the slowest answers take (--for)"
            }
            Diagnostic::Unstamped { .. } => "--timestamps user where they are to be all alike",
            Diagnostic::ImpossibleStamps { .. } => {
                "is there a cache, or another machine's or namespace's clock? Stamps are ns of CLOCK_MONOTONIC"
            }
            Diagnostic::SilentApp { .. } => "the anatomy is of the others alone",
            Diagnostic::QueueExceedsWait { .. } => {
                "looks are a sample, and others may connect to this server too: run longer (--for)"
            }
            Diagnostic::KernelUnjoined { .. } => "where the response time went is of the others alone",
            Diagnostic::KernelIncomplete { .. } => {
                "does the server accept by io_uring, or answer before it has read all? The waits are of the others alone"
            }
            Diagnostic::KernelCountDiffers { .. } => {
                "is anything else sending to this server, or does it answer in several rounds?"
            }
            Diagnostic::ConnectionsClosed { .. } => {
                "their next requests include a connect; -k compares without keep-alive"
            }
            Diagnostic::UnaskedBytes { .. } => {
                "does it answer a request twice, or more than its Content-Length says, or a pause with 408? Their next requests include a connect"
            }
            Diagnostic::DelayedAck { .. } => {
                "a server that writes head and body apart without TCP_NODELAY waits for that (Nagle's algorithm): set TCP_NODELAY there, or write both at once"
            }
            Diagnostic::ServedInTurns { .. } => {
                "as Puma before 7 does: the first answer of each turn carries the whole wait, so that high percentiles jump as connections rise and the rate stays; compare with -k or Puma 7"
            }
            Diagnostic::Unfair { .. } => {
                "a server that serves one connection again and again starves the others; compare with -k"
            }
            Diagnostic::AboveMaximum { .. } => "is -d what the app really takes, and are slots right?",
            Diagnostic::StillBusy { .. } => "run fewer multiples, or each on its own",
            Diagnostic::WorkersChanged { .. } => {
                "look at the server's log: a worker that dies or is phased out spoils the run"
            }
            Diagnostic::FellBehind { .. } => {
                "more connections (-c), more lanes (--lanes), or a lower rate: this is not the load that was asked for"
            }
            Diagnostic::SharedCpus { .. } => {
                "keep the server to some processors (--server-cpus, taskset): the lanes leave it those where there are others"
            }
            Diagnostic::QueuedInGenerator { .. } => {
                "that wait is part of their response time and not of their service time; more connections (-c) would pass it on to the server"
            }
            Diagnostic::LogIncomplete { .. } => "log to a faster disk, or lower the rate",
            Diagnostic::StoppedEarly { .. } => "as asked (--stop-if): the figures are of the part before",
            Diagnostic::ClaimDiffers { .. } => {
                "is anything else sending to this server, or does that generator miscount?"
            }
            Diagnostic::Interrupted { by: Some(EndedBy::Server) } => {
                "the server's last lines and its log may say why; the figures are of the part before and of its end"
            }
            Diagnostic::Interrupted { .. } => "run again to the end",
        }
    }
}

/// What may be done about failures, of which these outcomes occurred; where that is not known, whatever might.
fn remedy_of_failures(outcomes: &[String]) -> &'static str {
    let occurred = |wanted: fn(Outcome) -> bool| {
        outcomes.is_empty() || outcomes.iter().any(|outcome| counts::outcome(outcome).is_some_and(wanted))
    };
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
        "see the errors by kind: what they say is to be mended first"
    }
}

/// `1 request`, `2 requests`.
fn of(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// `0.999` as `99.9`.
pub(crate) fn percent(quantile: f64) -> String {
    format!("{:.3}", quantile * 100.0).trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A study of an older version does not say who ended its run, and nobody is named.
    #[test]
    fn who_ended_a_run_is_said_where_it_is_known() {
        let read = |json: &str| serde_json::from_str::<Diagnostic>(json).unwrap();
        let older = read(r#"{"code": "interrupted"}"#);
        assert_eq!(older, Diagnostic::Interrupted { by: None });
        assert_eq!(older.text(), "interrupted: the run is shorter than planned");
        for (by, word) in [(EndedBy::User, "user"), (EndedBy::Server, "server")] {
            let warning = Diagnostic::Interrupted { by: Some(by) };
            let json = serde_json::to_string(&warning).unwrap();
            assert_eq!((read(&json), json.contains(word)), (warning.clone(), true));
            assert!(warning.text().contains(word), "{}", warning.text());
        }
    }

    #[test]
    fn only_remedies_of_what_happened_are_named() {
        let remedy = |outcomes: &[&str]| {
            let outcomes = outcomes.iter().map(|name| (*name).to_owned()).collect();
            Diagnostic::QuantilesHidden { from: 0.5, unanswered: 1, outcomes }.remedy()
        };
        let older = r#"{"code": "quantiles_hidden", "from": 0.5, "unanswered": 1}"#;
        let unknown = serde_json::from_str::<Diagnostic>(older).unwrap().remedy();
        let names = |words: &str| (words.contains("--timeout"), words.contains("lower the load"));
        assert_eq!(names(unknown), (true, true));
        assert_eq!(names(remedy(&["503", "timed_out", "bad_response"])), (true, true));
        for outcome in ["503", "429", "connect_refused", "reset", "closed_early", "skipped", "in_flight_at_end"] {
            assert_eq!(names(remedy(&[outcome, "bad_response"])), (false, true), "{outcome}");
        }
        for outcome in ["404", "bad_response", "wrong_length"] {
            assert_eq!(names(remedy(&[outcome])), (false, false), "{outcome}");
        }
    }

    #[test]
    fn percentiles_have_their_usual_names() {
        assert_eq!(["50", "99.9"], [percent(0.5), percent(0.999)].each_ref().map(String::as_str));
    }
}
