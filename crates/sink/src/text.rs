//! The ledger as a person reads it, in a terminal.

use std::fmt::{self, Write};

use model::Nanos;

use crate::SinkLedger;

/// Lines of seconds at most: the last ones, as somebody who ends a sink asks what it did just now.
const SECONDS: usize = 10;

impl SinkLedger {
    /// A few lines: what is zero and what says nothing is left out.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<13}{value}");
        };
        line("requests", self.requests_text());
        line("connections", format!("{} ({} open)", self.connections, self.open_connections));
        line("bytes", format!("{} received, {} sent", self.received_bytes, self.sent_bytes));
        if self.per_thread.len() > 1 {
            for (number, thread) in self.per_thread.iter().enumerate() {
                let name = format!("  thread {number}");
                line(&name, format!("{} requests, {} connections", thread.requests, thread.connections));
            }
        }
        if self.per_worker.len() > 1 && self.per_worker.len() != self.per_thread.len() {
            let workers: Vec<_> = self.per_worker.iter().map(u64::to_string).collect();
            line("per worker", workers.join(" "));
        }
        if !self.arrivals.counts.is_empty() {
            line("arrivals", self.arrivals_text());
        }
        for (name, value) in [("faults", self.faults_text()), ("troubles", self.troubles_text())] {
            if !value.is_empty() {
                line(name, value);
            }
        }
        if self.lateness.count() > 0 {
            line("lateness", self.lateness_text());
        }
        out
    }

    fn requests_text(&self) -> String {
        let others =
            [(self.abandoned, "abandoned by their client"), (self.waiting, "waiting"), (self.busy, "in a slot")];
        format!("{} ({})", self.requests, listed([(self.answers, "answered")].into_iter().chain(others)))
    }

    /// `per second, the last 10 of 42 s: 998 1003 …`
    fn arrivals_text(&self) -> String {
        let all = &self.arrivals.counts;
        let each = self.arrivals.seconds_each;
        let last = &all[all.len().saturating_sub(SECONDS)..];
        let span = if each == 1 { "second".to_owned() } else { format!("{each} seconds") };
        let which =
            if last.len() < all.len() { format!(", the last {} of {}", last.len(), all.len()) } else { String::new() };
        let counts: Vec<_> = last.iter().map(u64::to_string).collect();
        format!("per {span}{which}: {}", counts.join(" "))
    }

    fn faults_text(&self) -> String {
        let faults = &self.faults;
        let kinds = [
            (faults.reset, "reset"),
            (faults.truncated, "truncated"),
            (faults.unanswered, "left without an answer"),
            (faults.closed, "connections closed"),
        ];
        let mut text = listed(kinds.into_iter().filter(|(count, _)| *count > 0));
        for (code, count) in &faults.by_status {
            let _ = write!(text, "{}{count} answered {code}", if text.is_empty() { "" } else { ", " });
        }
        text
    }

    fn troubles_text(&self) -> String {
        let kinds = [
            (self.bad_requests, "bad requests"),
            (self.failed_handshakes, "failed handshakes"),
            (self.accept_failures, "times no descriptor for a connection"),
            (self.stalled, "times a client read too slowly"),
        ];
        listed(kinds.into_iter().filter(|(count, _)| *count > 0))
    }

    fn lateness_text(&self) -> String {
        let of = |time: Option<Nanos>| time.unwrap_or_default();
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| of(self.lateness.quantile(q)));
        let count = self.lateness.count();
        format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {} of {count} held answers", of(self.lateness.max()))
    }
}

/// As text: a histogram's buckets are thousands of lines.
impl fmt::Debug for SinkLedger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

fn listed<'a>(kinds: impl Iterator<Item = (u64, &'a str)>) -> String {
    let kinds: Vec<_> = kinds.map(|(count, name)| format!("{count} {name}")).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::ArrivalCounts;
    use crate::faults::FaultCounts;

    #[test]
    fn an_empty_ledger_is_short() {
        let text = SinkLedger::new(1).of_thread(0, 1).text();
        assert_eq!(
            text,
            "requests     0 (0 answered, 0 abandoned by their client, 0 waiting, 0 in a slot)\n\
             connections  0 (0 open)\n\
             bytes        0 received, 0 sent\n"
        );
    }

    #[test]
    fn a_full_ledger_says_all() {
        let mut ledger =
            SinkLedger { requests: 20, answers: 17, connections: 3, bad_requests: 1, ..SinkLedger::new(2) };
        ledger.per_worker = vec![11, 9, 0];
        ledger.arrivals = ArrivalCounts { seconds_each: 1, counts: (0..12).collect() };
        ledger.faults = FaultCounts { reset: 2, truncated: 1, by_status: [(503, 4)].into(), ..FaultCounts::default() };
        ledger.lateness.record(Nanos::from_micros(12));
        let mut both = ledger.clone().of_thread(0, 2);
        both.add(&SinkLedger::new(3).of_thread(1, 2));
        assert_eq!(
            both.text(),
            "requests     20 (17 answered, 0 abandoned by their client, 0 waiting, 0 in a slot)\n\
             connections  3 (0 open)\n\
             bytes        0 received, 0 sent\n\
             \x20 thread 0   20 requests, 3 connections\n\
             \x20 thread 1   0 requests, 0 connections\n\
             per worker   11 9 0\n\
             arrivals     per second, the last 10 of 12: 2 3 4 5 6 7 8 9 10 11\n\
             faults       2 reset, 1 truncated, 4 answered 503\n\
             troubles     1 bad requests\n\
             lateness     p50 12us, p99 12us, p99.9 12us, max 12us of 1 held answers\n"
        );
    }
}
