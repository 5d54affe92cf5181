//! What an event in the middle of a run cost: how long it took, what failed, how much longer
//! requests took and for how long.

use model::event_requests::{FEWEST_BEFORE, FailuresOfKind};
use model::{EventRequests, Nanos, OthersCpu, Run, number};
use serde::{Deserialize, Serialize};

use super::failed::{FailureCount, failure};
use crate::event::{ServerChange, server_change, took};
use crate::words::{brief, counted, listed, tenths};

/// A shorter gap between two responses is not mentioned.
const NOTABLE_GAP: Nanos = Nanos::from_millis(200);
/// Nor is one that is not more than this many times the longest gap before the event.
const TIMES_BEFORE: u64 = 3;
/// Other programs may be why requests were slow if they took this many CPUs more than before, and
/// hardly any was idle.
const MORE_CPUS: f64 = 0.5;
/// At most this share of the CPUs was idle then.
const IDLE_PART: f64 = 0.1;

/// What an event cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCost {
    /// What was asked for.
    pub event: String,
    /// When it was done, since the beginning of the measured window; `None` if it was not.
    #[serde(rename = "at_ns")]
    pub at: Option<Nanos>,
    /// What was done, or why it could not be.
    pub done: String,
    /// What became of the server's processes.
    pub change: ServerChange,
    /// Until the last process had settled, and the command had ended; `None` if nothing changed.
    #[serde(rename = "took_ns")]
    pub took: Option<Nanos>,
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// Whether its command still went on when the run was over.
    pub is_unfinished: bool,
    /// For how long no process served.
    #[serde(rename = "unserved_ns")]
    pub unserved: Nanos,
    /// Requests that were in flight at the event, or due from then until all was as before.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How they failed, the most frequent kind first.
    pub kinds: Vec<FailuresOfKind>,
    /// How many requests failed after that.
    #[serde(default)]
    pub failed_later: u64,
    /// How they failed, the most frequent kind first.
    #[serde(default)]
    pub kinds_later: Vec<FailuresOfKind>,
    /// How many requests were answered before.
    #[serde(default)]
    pub answered_before: u64,
    /// The time that they seldom exceeded; `None` if they were too few to tell.
    #[serde(default, rename = "usual_ns")]
    pub usual: Option<Nanos>,
    /// The 99th percentile of the response times before.
    #[serde(rename = "p99_before_ns")]
    pub p99_before: Option<Nanos>,
    /// The same from the event until all was as before.
    #[serde(rename = "p99_during_ns")]
    pub p99_during: Option<Nanos>,
    /// The longest response time then.
    #[serde(rename = "longest_ns")]
    pub longest: Option<Nanos>,
    /// For how long more requests failed or were slow than before.
    #[serde(rename = "disturbed_ns")]
    pub disturbed: Nanos,
    /// The same before the event, for comparison.
    #[serde(rename = "disturbed_before_ns")]
    pub disturbed_before: Nanos,
    /// Whether the run ended before all was as before.
    pub is_cut_off: bool,
    /// The longest time without a response, from the event on.
    #[serde(rename = "gap_ns")]
    pub gap: Nanos,
    /// The same before the event.
    #[serde(rename = "gap_before_ns")]
    pub gap_before: Nanos,
    /// Connections that the server closed between two requests, from the event on; `None` if it is
    /// not known.
    pub closed: Option<u64>,
    /// The same before the event.
    pub closed_before: u64,
    /// The version of Puma before and after, if they differ.
    pub versions: Option<[String; 2]>,
    /// The option that Ruby was started with and that Puma did not give it again.
    #[serde(default)]
    pub lost_option: Option<String>,
    /// The CPUs that other programs used; `None` if they can't be why requests were slow.
    pub others: Option<OthersCpu>,
    /// Whether the response times are the server's, and not longtail's own delay.
    pub has_times: bool,
    /// The timeout of a request.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
}

impl EventCost {
    /// What the run's event cost; `None` if it has none.
    pub fn of(run: &Run, timeout: Nanos) -> Option<EventCost> {
        let record = run.event.as_ref()?;
        let requests = record.requests.as_ref();
        let during = requests.map(|requests| &requests.during);
        let after = requests.map(|requests| &requests.after);
        let change = server_change(record);
        let is_unfinished = record.command.as_ref().is_some_and(|command| command.ended.is_none());
        let p99 = |times: &model::Histogram| times.quantile(0.99);
        Some(EventCost {
            event: record.planned.kind.to_string(),
            at: record.at,
            done: record.done.clone(),
            change,
            took: took(record),
            exit_code: record.command.as_ref().and_then(|command| command.exit_code),
            is_unfinished,
            unserved: record.unserved(run.measured),
            requests: during.map_or(0, |part| part.requests),
            failed: during.map_or(0, |part| part.failed),
            kinds: during.map_or_else(Vec::new, |part| part.failures.clone()),
            failed_later: after.map_or(0, |part| part.failed),
            kinds_later: after.map_or_else(Vec::new, |part| part.failures.clone()),
            answered_before: requests.map_or(0, |requests| requests.before.response_time.count()),
            usual: requests.and_then(|requests| requests.usual),
            p99_before: requests.and_then(|requests| p99(&requests.before.response_time)),
            p99_during: during.and_then(|part| p99(&part.response_time)),
            longest: during.and_then(|part| part.response_time.max()),
            disturbed: requests.map_or(Nanos::ZERO, |requests| requests.disturbed),
            disturbed_before: requests.map_or(Nanos::ZERO, |requests| requests.disturbed_before),
            is_cut_off: requests.is_some_and(|requests| requests.is_cut_off)
                || is_unfinished
                || is_under_way(change),
            gap: during.map_or(Nanos::ZERO, |part| part.longest_gap.length),
            gap_before: requests.map_or(Nanos::ZERO, EventRequests::gap_before),
            closed: record.closed_since,
            closed_before: record.closed_before.unwrap_or_default(),
            versions: record.versions.clone().filter(|[before, after]| before != after),
            lost_option: record.loses_options.then(|| "-I".to_owned()),
            others: record.others.filter(may_have_disturbed),
            has_times: run.is_evidence(),
            timeout,
        })
    }
}

/// Whether a longer run would have seen the end of it.
fn is_under_way(change: ServerChange) -> bool {
    !change.is_over() && !matches!(change, ServerChange::EndedAgain { .. })
}

/// Whether other programs used more CPUs than before, and left none idle.
fn may_have_disturbed(others: &OthersCpu) -> bool {
    let more = others.most_since - others.before;
    more >= MORE_CPUS && others.busy >= f64::from(others.of) * (1.0 - IDLE_PART)
}

impl EventCost {
    pub(super) fn sentence(&self) -> String {
        if self.at.is_none() {
            return format!("The event was not done ({}): {}.", self.event, self.done);
        }
        let parts = [
            Some(self.what_happened()),
            self.versions_in_words(),
            Some(self.what_failed()),
            Some(self.how_slow()),
            self.others_in_words(),
            self.gap_in_words(),
            self.closed_in_words(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// `The phased restart took 6.3 s: all 2 workers were replaced, one after the other.`
    fn what_happened(&self) -> String {
        let name = self.name();
        let change = self.change.in_words();
        let exit = match self.exit_code {
            _ if self.is_unfinished => {
                " It still went on when the load ended: give --for more.".to_owned()
            }
            Some(0) | None => String::new(),
            Some(code) => format!(" It ended with exit code {code}."),
        };
        let unserved = if self.unserved > Nanos::ZERO {
            format!(", and for {} none served", brief(self.unserved))
        } else {
            String::new()
        };
        match self.took {
            Some(took) => format!("{name} took {}: {change}{unserved}.{exit}", brief(took)),
            None if self.change.is_over() => {
                format!("{name} {}, and {change}{unserved}.{exit}", self.verb())
            }
            None => format!("{name} {}: {change}{unserved}.{exit}", self.verb()),
        }
    }

    /// What was done with the event.
    fn verb(&self) -> &'static str {
        let is_signal = |name: &str| name.bytes().all(|byte| !byte.is_ascii_lowercase());
        match self.event.as_str() {
            _ if self.is_command() => "was run",
            name if is_signal(name) => "was sent",
            _ if self.change.is_over() => "was asked for",
            "worker-kill" | "worker-term" => "was not made good",
            _ => "was not completed",
        }
    }

    fn is_command(&self) -> bool {
        self.event.contains(|c: char| c.is_whitespace() || c == '/')
    }

    /// The event as the subject of a sentence.
    pub(crate) fn name(&self) -> String {
        match self.event.as_str() {
            "phased-restart" => "The phased restart".to_owned(),
            "restart" => "The restart".to_owned(),
            "refork" => "The refork".to_owned(),
            "worker-kill" => "The loss of a worker (SIGKILL)".to_owned(),
            "worker-term" => "The end of a worker (SIGTERM)".to_owned(),
            "stop-start" => "Stopping and starting it".to_owned(),
            "scale-up" => "Adding a worker".to_owned(),
            "scale-down" => "Removing a worker".to_owned(),
            command if self.is_command() => format!("`{command}`"),
            signal => format!("SIG{signal}"),
        }
    }

    fn what_failed(&self) -> String {
        let requests = counted(self.requests, "request");
        let kinds = |kinds: &[FailuresOfKind]| {
            let kinds: Vec<String> =
                kinds.iter().map(|kind| in_words(kind, self.timeout)).collect();
            listed(&kinds)
        };
        let later = kinds(&self.kinds_later);
        match (self.failed, self.failed_later) {
            (0, 0) => format!("No request failed ({requests} meanwhile)."),
            (0, late) => format!(
                "No request failed meanwhile ({requests}), but {late} failed later, when all \
                 seemed to be over: {later}."
            ),
            (failed, 0) => {
                format!("{failed} of the {requests} meanwhile failed: {}.", kinds(&self.kinds))
            }
            (failed, late) => format!(
                "{failed} of the {requests} meanwhile failed: {}. {late} more failed later, when \
                 all seemed to be over: {later}.",
                kinds(&self.kinds)
            ),
        }
    }

    /// How much longer requests took, and for how long.
    fn how_slow(&self) -> String {
        if !self.has_times {
            return "How much longer requests took is not known, because longtail was late itself."
                .to_owned();
        }
        let (Some(before), Some(during)) = (self.p99_before, self.p99_during) else {
            return "How much longer requests took is not known: too few were answered.".to_owned();
        };
        let before = brief(before);
        if self.usual.is_none() {
            return format!(
                "Whether they took longer than before is not known: {} before the event, and {} \
                 are needed (p99 {before} before, {} meanwhile, the longest {}).",
                match self.answered_before {
                    1 => "1 was answered".to_owned(),
                    answered => format!("{answered} were answered"),
                },
                FEWEST_BEFORE,
                brief(during),
                brief(self.longest.unwrap_or(during))
            );
        }
        if self.disturbed == Nanos::ZERO {
            return format!("Requests took no longer than before (p99 {before}).");
        }
        let end = if self.is_cut_off { ", and still when the run ended" } else { "" };
        format!(
            "For {} requests failed or took longer than before{end}: p99 {} (before {before}), the longest {}.",
            brief(self.disturbed),
            brief(during),
            brief(self.longest.unwrap_or(during))
        )
    }

    fn gap_in_words(&self) -> Option<String> {
        let is_notable =
            self.has_times && self.gap >= NOTABLE_GAP && self.gap > self.gap_before * TIMES_BEFORE;
        // At the beginning of a run nothing came before.
        let before = match self.gap_before {
            Nanos::ZERO => String::new(),
            before => format!(" (before: {} at most)", brief(before)),
        };
        is_notable.then(|| format!("No response came for {}{before}.", brief(self.gap)))
    }

    /// A connection that was closed in the middle of a request is among the failures instead.
    fn closed_in_words(&self) -> Option<String> {
        let closed = self.closed.filter(|closed| *closed > 0)?;
        let before = match self.closed_before {
            0 => String::new(),
            before => format!(" ({before} before)"),
        };
        let closed = counted(closed, "connection");
        Some(format!("The server closed {closed} between two requests{before}."))
    }

    /// A restarted Puma may be another version: by what was deployed, or because it starts itself
    /// by its name, without the options that Ruby had.
    pub(crate) fn versions_in_words(&self) -> Option<String> {
        let [before, after] = self.versions.as_ref()?;
        let option = self.lost_option.as_ref();
        let option = option.filter(|_| self.change == ServerChange::RestartedInFull);
        let why = option.map_or_else(String::new, |option| {
            format!(": Puma restarts without the options of ruby, here {option}")
        });
        Some(format!("It was Puma {before} and is {after} now{why}."))
    }

    /// If requests were slow: other programs that may have been the reason, instead of the event.
    fn others_in_words(&self) -> Option<String> {
        let others = self.others.filter(|_| self.disturbed > Nanos::ZERO)?;
        Some(format!(
            "Other programs took up to {} of the {} CPUs meanwhile ({} before), and none was idle: \
             they may be the reason for some of it.",
            tenths(others.most_since),
            others.of,
            tenths(others.before)
        ))
    }
}

/// `12 connections refused (20.1 to 20.9 s)`
fn in_words(kind: &FailuresOfKind, timeout: Nanos) -> String {
    let count =
        FailureCount { outcome: kind.outcome.clone(), requests: kind.requests, reason: None };
    let first = number::fixed(kind.first.as_secs_f64(), 1);
    let last = number::fixed(kind.last.as_secs_f64(), 1);
    let times =
        if first == last { format!("at {first} s") } else { format!("{first} to {last} s") };
    format!("{} ({times})", failure(&count, timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phased restart that cost nothing.
    fn cost() -> EventCost {
        EventCost {
            event: "phased-restart".to_owned(),
            at: Some(Nanos::from_secs(20)),
            done: "SIGUSR1 to process 4242".to_owned(),
            change: ServerChange::AllWorkersReplaced { workers: 2, one_by_one: true },
            took: Some(Nanos::from_millis(6300)),
            exit_code: None,
            is_unfinished: false,
            unserved: Nanos::ZERO,
            requests: 315,
            failed: 0,
            kinds: Vec::new(),
            failed_later: 0,
            kinds_later: Vec::new(),
            answered_before: 1000,
            usual: Some(Nanos::from_millis(102)),
            p99_before: Some(Nanos::from_millis(102)),
            p99_during: Some(Nanos::from_millis(104)),
            longest: Some(Nanos::from_millis(110)),
            disturbed: Nanos::ZERO,
            disturbed_before: Nanos::ZERO,
            is_cut_off: false,
            gap: Nanos::from_millis(40),
            gap_before: Nanos::from_millis(40),
            closed: Some(0),
            closed_before: 0,
            versions: None,
            lost_option: None,
            others: None,
            has_times: true,
            timeout: Nanos::from_secs(30),
        }
    }

    #[test]
    fn a_restart_that_costs_nothing_is_said_in_three_sentences() {
        assert_eq!(
            cost().sentence(),
            "The phased restart took 6.30 s: all 2 workers were replaced, one after the other. \
             No request failed (315 requests meanwhile). \
             Requests took no longer than before (p99 102 ms)."
        );
    }

    #[test]
    fn connections_closed_in_a_request_and_between_two_are_told_apart() {
        let kind = FailuresOfKind {
            outcome: "closed_early".to_owned(),
            requests: 3,
            first: Nanos::from_millis(20_010),
            last: Nanos::from_millis(20_030),
        };
        let lost = EventCost { failed: 3, kinds: vec![kind], closed: Some(1), ..cost() };
        let said = lost.sentence();
        assert!(
            said.contains(
                "3 of the 315 requests meanwhile failed: 3 connections closed early (at 20.0 s)."
            ),
            "{said}"
        );
        assert!(said.ends_with("The server closed 1 connection between two requests."), "{said}");
        let usual = EventCost { closed: Some(9), closed_before: 4, ..cost() };
        assert!(usual.sentence().ends_with("9 connections between two requests (4 before)."));
    }

    #[test]
    fn requests_that_fail_when_all_seemed_to_be_over_are_said_too() {
        let kind = |from, to| FailuresOfKind {
            outcome: "500".to_owned(),
            requests: 320,
            first: Nanos::from_millis(from),
            last: Nanos::from_millis(to),
        };
        let later =
            EventCost { failed_later: 320, kinds_later: vec![kind(5600, 12_000)], ..cost() };
        let said = later.sentence();
        assert!(
            said.contains(
                " No request failed meanwhile (315 requests), but 320 failed later, when all \
                 seemed to be over: 320 answered with status 500 (5.6 to 12.0 s). "
            ),
            "{said}"
        );
        let both = EventCost { failed: 320, kinds: vec![kind(2000, 3000)], ..later };
        assert!(
            both.sentence().contains("(2.0 to 3.0 s). 320 more failed later, when all seemed to"),
            "{}",
            both.sentence()
        );
    }

    #[test]
    fn another_version_is_named_and_why_only_where_the_options_of_ruby_were_lost() {
        let versions = Some(["8.0.2".to_owned(), "5.6.5".to_owned()]);
        let full = EventCost { change: ServerChange::RestartedInFull, versions, ..cost() };
        let lost = EventCost { lost_option: Some("-I".to_owned()), ..full.clone() };
        assert!(lost.sentence().contains(
            "It was Puma 8.0.2 and is 5.6.5 now: Puma restarts without the options of ruby, here -I."
        ));
        assert!(full.sentence().contains("It was Puma 8.0.2 and is 5.6.5 now. "));
        let deployed = EventCost { change: ServerChange::StoppedAndStarted, ..lost };
        assert!(deployed.sentence().contains("It was Puma 8.0.2 and is 5.6.5 now. "));
    }

    #[test]
    fn with_few_requests_before_nothing_is_said_of_longer_ones() {
        let few = EventCost {
            answered_before: 51,
            usual: None,
            p99_during: Some(Nanos::from_millis(1670)),
            longest: Some(Nanos::from_millis(1673)),
            ..cost()
        };
        let said = few.sentence();
        assert!(
            said.contains(
                "Whether they took longer than before is not known: 51 were answered before the \
                 event, and 100 are needed (p99 102 ms before, 1.67 s meanwhile, the longest 1.67 s)."
            ),
            "{said}"
        );
    }

    #[test]
    fn an_event_that_was_not_over_has_no_duration() {
        let change = ServerChange::Unfinished { ended: 1, of: 2, started: 4, serving: 0 };
        let lost = EventCost {
            event: "worker-kill".to_owned(),
            change,
            took: None,
            unserved: Nanos::from_secs(2),
            ..cost()
        };
        let said = lost.sentence();
        assert!(
            said.starts_with(
                "The loss of a worker (SIGKILL) was not made good: 1 of 2 workers ended, and its \
                 replacement had not served when the run was over (4 were started), and for 2.00 s \
                 none served. "
            ),
            "{said}"
        );
    }

    #[test]
    fn an_event_that_changed_nothing_is_said_by_what_was_done() {
        let with = |event: &str, is_unfinished| EventCost {
            event: event.to_owned(),
            took: None,
            change: ServerChange::Nothing,
            is_unfinished,
            ..cost()
        };
        for (event, is_unfinished, said) in [
            ("refork", false, "The refork was asked for, and no process of the server changed. "),
            ("HUP", false, "SIGHUP was sent, and no process of the server changed. "),
            ("bin/a b", false, "`bin/a b` was run, and no process of the server changed. "),
            (
                "bin/a",
                true,
                "`bin/a` was run, and no process of the server changed. It still went on when the load ended: give --for more. ",
            ),
        ] {
            let sentence = with(event, is_unfinished).sentence();
            assert!(sentence.starts_with(said), "{sentence}");
        }
    }

    #[test]
    fn other_programs_are_named_where_they_may_be_why() {
        let others = |before, most_since, busy| OthersCpu { before, most_since, busy, of: 2 };
        for (one, may) in [
            (others(0.1, 1.4, 2.0), true),
            (others(0.1, 0.5, 2.0), false),
            (others(1.3, 1.4, 2.0), false),
            (others(0.1, 1.4, 1.5), false),
        ] {
            assert_eq!(may_have_disturbed(&one), may, "{one:?}");
        }
        let slow = EventCost {
            disturbed: Nanos::from_secs(1),
            others: Some(others(0.1, 1.4, 2.0)),
            ..cost()
        };
        assert!(slow.sentence().contains(
            "Other programs took up to 1.4 of the 2 CPUs meanwhile (0.1 before), and none was idle"
        ));
        let undisturbed = EventCost { disturbed: Nanos::ZERO, ..slow };
        assert!(!undisturbed.sentence().contains("Other programs"));
    }
}
