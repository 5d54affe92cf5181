//! What a generator is to do in one run, and whether it can: what it cannot is refused in one line before any load is sent.

use std::path::PathBuf;

use model::objective::ObjectiveFigure;
use model::{Nanos, Rate, Threshold};

use crate::generators::Generator;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadEnd {
    /// After this time.
    After(Nanos),
    /// After so many requests in total.
    Requests(u64),
}

/// One run's load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadOrder {
    /// Where to: by address, never by name, so that it goes where we have looked.
    pub(crate) url: String,
    /// What the Host header says where that is another place than the URL's.
    pub(crate) host: Option<String>,
    /// In total.
    pub(crate) connections: u32,
    /// Threads of the generator, at most.
    pub(crate) threads: u32,
    /// When it ends.
    pub(crate) end: LoadEnd,
    /// Load before it that is thrown away.
    pub(crate) warm_up: Nanos,
    /// Open loop: requests per second in total.
    pub(crate) rate: Option<Rate>,
    /// Open loop: requests per second of each connection.
    pub(crate) rate_per_connection: Option<Rate>,
    /// Whether a connection carries more than one request.
    pub(crate) keep_alive: bool,
    /// An answer that takes longer is given up.
    pub(crate) timeout: Nanos,
    /// The method.
    pub(crate) method: String,
    /// The user's own headers, `Name: value`, without the Host header.
    pub(crate) headers: Vec<String>,
    /// A file with the body.
    pub(crate) body: Option<PathBuf>,
}

impl LoadOrder {
    /// A closed loop of GET requests, each answered within half a minute.
    pub(crate) fn closed_loop(url: &str, connections: u32, threads: u32, end: LoadEnd) -> LoadOrder {
        LoadOrder {
            url: url.to_owned(),
            host: None,
            connections,
            threads,
            end,
            warm_up: Nanos::ZERO,
            rate: None,
            rate_per_connection: None,
            keep_alive: true,
            timeout: Nanos::from_secs(30),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Threads that share the connections evenly, so that all of them are opened: the largest divisor of the connections
    /// that is at most what was asked for. (wrk gives each thread connections / threads and forgets the rest.)
    pub(crate) fn even_threads(&self) -> u32 {
        (1..=self.threads.min(self.connections)).rev().find(|n| self.connections.is_multiple_of(*n)).unwrap_or(1)
    }

    /// The time of a run that time ends.
    pub(crate) fn time(&self) -> Option<Nanos> {
        match self.end {
            LoadEnd::After(time) => Some(time),
            LoadEnd::Requests(_) => None,
        }
    }
}

impl Generator {
    /// Why it cannot run this, naming the flag; `None` where it can.
    pub(crate) fn refusal(self, order: &LoadOrder) -> Option<String> {
        use Generator::{Ab, Bombardier, H2load, Hey, Oha, Vegeta, Wrk, Wrk2};
        let is_one_of = |generators: &[Generator]| generators.contains(&self);
        let times = [(order.time(), "--for"), (Some(order.warm_up), "--warm-up"), (Some(order.timeout), "--timeout")];
        let odd = times.into_iter().find(|(time, _)| time.is_some_and(|time| !time.0.is_multiple_of(1_000_000_000)));
        if let Some((_, flag)) = odd {
            return Some(format!("--generator {}: {flag} wants whole seconds here, such as {flag} 5s", self.name()));
        }
        let count = if let LoadEnd::Requests(total) = order.end { Some(total) } else { None };
        let each = u64::from(order.connections);
        if let Some(total) = count.filter(|total| self == Hey && !total.is_multiple_of(each)) {
            let sent = total / each * each;
            return Some(format!(
                "--generator hey: it sends -n / -c requests on each connection: {total} over {each} would be {sent}; give a multiple of {each}"
            ));
        }
        let rate = order.rate.or(order.rate_per_connection);
        let (is_get, has_body) = (order.method == "GET", order.body.is_some());
        let is_post_with_body = order.method == "POST" && has_body;
        let reasons = [
            (
                count.is_some() && is_one_of(&[Wrk, Wrk2, Vegeta]),
                "it ends by time only: give --for instead of -n or -R",
            ),
            (rate.is_some() && is_one_of(&[Wrk, Ab, H2load]), "it has no open loop: leave out --rate and -q"),
            (
                order.rate.is_some() && self == Hey,
                "it has no rate in total: give -q, which is of each connection, instead of --rate",
            ),
            (order.rate.is_none() && is_one_of(&[Wrk2, Vegeta]), "it has no closed loop: give --rate"),
            (
                order.rate_per_connection.is_some() && is_one_of(&[Oha, Bombardier, Wrk2, Vegeta]),
                "its rate is in total: give --rate instead of -q",
            ),
            (
                rate.is_some_and(|rate| rate.per_second().fract() != 0.0),
                "it takes whole numbers of requests per second only",
            ),
            (!order.keep_alive && self == H2load, "it cannot open a connection for each request: leave out -k"),
            (
                (!is_get || has_body) && is_one_of(&[Wrk, Wrk2]),
                "it sends GET without a body (more would need Lua): leave out -m, -d and -D",
            ),
            (!is_get && !is_post_with_body && self == H2load, "it sends GET, or POST with a body: leave out -m"),
            // -p is a POST, whatever -m says.
            (has_body && !is_post_with_body && self == Ab, "a body makes it POST: leave out -m"),
        ];
        let refused = reasons.into_iter().find(|(is_so, _)| *is_so);
        refused.map(|(_, why)| format!("--generator {}: {why}", self.name()))
    }

    /// Why it cannot make each connection carry so many requests (`-R`); `None` where it can.
    pub(crate) fn shares_requests_unevenly(self) -> Option<String> {
        let even = matches!(self, Generator::Hey | Generator::H2load);
        let name = self.name();
        (!even).then(|| format!("--generator {name}: it cannot give each connection -R requests: give --for"))
    }

    /// Whether it can say what is judged here, before it has run.
    pub(crate) fn reports(self, figure: ObjectiveFigure) -> bool {
        match figure {
            ObjectiveFigure::ResponseTime(q) => self.traits().percentiles.iter().any(|known| (known - q).abs() < 1e-9),
            ObjectiveFigure::Mean
            | ObjectiveFigure::Max
            | ObjectiveFigure::ErrorShare
            | ObjectiveFigure::Errors
            | ObjectiveFigure::Completed => true,
            ObjectiveFigure::ServiceTime(_) | ObjectiveFigure::SentShare => false,
        }
    }

    /// Why it cannot be judged by this, in a line; `None` where it can.
    pub(crate) fn unjudged(self, threshold: &Threshold) -> Option<String> {
        let objective = &threshold.condition;
        if self.reports(objective.figure) {
            return None;
        }
        let name = self.name();
        let what = match objective.figure {
            ObjectiveFigure::ResponseTime(_) if self.traits().percentiles.is_empty() => {
                "no percentile at all".to_owned()
            }
            ObjectiveFigure::ResponseTime(_) => {
                let all: Vec<String> =
                    self.traits().percentiles.iter().map(|q| report::number::percentile(*q)).collect();
                format!("of percentiles {} only", all.join(" "))
            }
            ObjectiveFigure::ServiceTime(_) => "one kind of time only, judged without the word service".to_owned(),
            _ => "not what was sent of what was due".to_owned(),
        };
        let flag = if threshold.is_expected { "--expect" } else { "--fail-if" };
        Some(format!("{flag} '{objective}': {name} reports {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_seconds() -> LoadOrder {
        LoadOrder::closed_loop("http://127.0.0.1:1/", 10, 4, LoadEnd::After(Nanos::from_secs(2)))
    }

    #[test]
    fn what_it_cannot_do_is_named_with_its_flag() {
        let open = LoadOrder { rate: Some("5/s".parse().unwrap()), ..two_seconds() };
        let counted = |n| LoadOrder { end: LoadEnd::Requests(n), ..two_seconds() };
        let post = LoadOrder { method: "POST".to_owned(), ..two_seconds() };
        let half = LoadOrder { end: LoadEnd::After(Nanos::from_millis(1500)), ..two_seconds() };
        let cases = [
            (Generator::Wrk, open.clone(), "--rate"),
            (Generator::Hey, open, "-q"),
            (Generator::Wrk, counted(100), "--for"),
            (Generator::Hey, counted(105), "multiple of 10"),
            (Generator::Wrk, post.clone(), "-m"),
            (Generator::H2load, post, "-m"),
            (Generator::H2load, LoadOrder { keep_alive: false, ..two_seconds() }, "-k"),
            (Generator::Wrk2, two_seconds(), "--rate"),
            (Generator::Hey, half, "--for"),
        ];
        for (generator, order, part) in cases {
            let line = generator.refusal(&order).unwrap_or_else(|| panic!("{generator:?} takes {order:?}"));
            assert!(line.starts_with(&format!("--generator {}", generator.name())) && line.contains(part), "{line}");
            assert!(!line.contains('\n'));
        }
        for generator in [Generator::Wrk, Generator::Hey, Generator::Ab, Generator::H2load] {
            assert_eq!(generator.refusal(&two_seconds()), None);
        }
        assert_eq!(Generator::Hey.refusal(&counted(100)), None);
    }

    #[test]
    fn an_objective_is_taken_only_where_its_figure_is_reported() {
        let unjudged = |generator: Generator, text: &str| generator.unjudged(&text.parse().unwrap());
        assert_eq!(unjudged(Generator::Wrk, "p99 > 1s"), None);
        assert_eq!(unjudged(Generator::Wrk, "errors > 1%"), None);
        assert!(unjudged(Generator::Wrk, "p95 > 1s").unwrap().contains("p50 p75 p90 p99"));
        assert!(unjudged(Generator::H2load, "p50 > 1s").unwrap().contains("no percentile"));
        assert!(
            unjudged(Generator::Hey, "service p99 > 1s").is_some() && unjudged(Generator::Hey, "sent < 9%").is_some()
        );
    }
}
