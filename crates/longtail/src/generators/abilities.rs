//! What each generator can be asked for, and what it reports: so that what it cannot do is refused in one line before any
//! load is sent.

use model::objective::Figure;
use model::{Nanos, Objective};

use crate::generators::{End, Errand, Generator};

impl Generator {
    /// Why it cannot run this, naming the flag; `None` where it can.
    pub(crate) fn refusal(self, errand: &Errand) -> Option<String> {
        use Generator::{Ab, H2load, Hey, Oha, Vegeta, Wrk, Wrk2};
        let name = self.name();
        let no = |text: &str| Some(format!("--with {name}: {text}"));
        let odd = [(errand.time(), "--for"), (Some(errand.warm_up), "--warm-up"), (Some(errand.timeout), "--timeout")];
        for (time, flag) in odd {
            if time.is_some_and(|time| !is_whole_seconds(time)) {
                return no(&format!("{flag} wants whole seconds here, such as {flag} 5s"));
            }
        }
        if let End::Requests(total) = errand.end {
            match self {
                Wrk | Wrk2 | Vegeta => return no("it ends by time only: give --for instead of -n or -R"),
                Hey if !total.is_multiple_of(u64::from(errand.connections)) => {
                    let each = u64::from(errand.connections);
                    return no(&format!(
                        "it sends -n / -c requests on each connection: {total} over {each} would be {}; give a multiple of {each}",
                        total / each * each
                    ));
                }
                _ => {}
            }
        }
        let is_open = errand.rate.is_some() || errand.rate_per_connection.is_some();
        match self {
            Wrk | Ab | H2load if is_open => return no("it has no open loop: leave out --rate and -q"),
            Hey if errand.rate.is_some() => {
                return no("it has no rate in total: give -q, which is of each connection, instead of --rate");
            }
            Wrk2 | Vegeta if errand.rate.is_none() => return no("it has no closed loop: give --rate"),
            Oha | Generator::Bombardier | Wrk2 | Vegeta if errand.rate_per_connection.is_some() => {
                return no("its rate is in total: give --rate instead of -q");
            }
            Hey | Wrk2 | Vegeta | Generator::Bombardier | Oha => {
                let rate = errand.rate.or(errand.rate_per_connection).map(model::Rate::per_second);
                if rate.is_some_and(|rate| rate.fract() != 0.0) {
                    return no("it takes whole numbers of requests per second only");
                }
            }
            _ => {}
        }
        if matches!(self, H2load) && !errand.keep_alive {
            return no("it cannot open a connection for each request: leave out -k");
        }
        let is_get = errand.method == "GET" && errand.body.is_none();
        match self {
            Wrk | Wrk2 if !is_get => {
                return no("it sends GET without a body (more would need Lua): leave out -m, -d and -D");
            }
            H2load if errand.method != "GET" && !(errand.method == "POST" && errand.body.is_some()) => {
                return no("it sends GET, or POST with a body: leave out -m");
            }
            // -p is a POST, whatever -m says.
            Ab if errand.body.is_some() && errand.method != "POST" => return no("a body makes it POST: leave out -m"),
            _ => {}
        }
        None
    }

    /// Why it cannot make each connection carry so many requests (`-R`); `None` where it can.
    pub(crate) fn shares_requests_unevenly(self) -> Option<String> {
        let even = matches!(self, Generator::Hey | Generator::H2load);
        let name = self.name();
        (!even).then(|| format!("--with {name}: it cannot give each connection -R requests: give --for"))
    }

    /// Whether it can say what is judged here, before it has run.
    pub(crate) fn reports(self, figure: Figure) -> bool {
        match figure {
            Figure::ResponseTime(q) => self.percentiles().iter().any(|known| (known - q).abs() < 1e-9),
            Figure::Mean | Figure::Max | Figure::ErrorShare | Figure::Errors | Figure::Completed => true,
            Figure::ServiceTime(_) | Figure::SentShare => false,
        }
    }

    /// Why it cannot be judged by this, in a line; `None` where it can.
    pub(crate) fn unjudged(self, objective: &Objective) -> Option<String> {
        if self.reports(objective.figure) {
            return None;
        }
        let name = self.name();
        let what = match objective.figure {
            Figure::ResponseTime(_) if self.percentiles().is_empty() => "no percentile at all".to_owned(),
            Figure::ResponseTime(_) => {
                let all: Vec<String> = self.percentiles().iter().map(|q| report::number::percentile(*q)).collect();
                format!("of percentiles {} only", all.join(" "))
            }
            Figure::ServiceTime(_) => "one kind of time only, judged without the word service".to_owned(),
            _ => "not what was sent of what was due".to_owned(),
        };
        Some(format!("--fail-if '{objective}': {name} reports {what}"))
    }

    /// The percentiles that it prints, rising; without the longest.
    fn percentiles(self) -> &'static [f64] {
        match self {
            Generator::Wrk => &[0.50, 0.75, 0.90, 0.99],
            Generator::Wrk2 => &[0.50, 0.75, 0.90, 0.99, 0.999, 0.9999, 0.99999],
            Generator::Hey => &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99],
            Generator::Oha => &[0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999],
            Generator::Ab => &[0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99],
            Generator::Bombardier => &[0.50, 0.75, 0.90, 0.95, 0.99],
            Generator::Vegeta => &[0.50, 0.90, 0.95, 0.99],
            Generator::H2load | Generator::Longtail => &[],
        }
    }
}

fn is_whole_seconds(time: Nanos) -> bool {
    time.0.is_multiple_of(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::samples::errand;

    #[test]
    fn what_it_cannot_do_is_named_with_its_flag() {
        let open = Errand { rate: Some("5/s".parse().unwrap()), ..errand() };
        let counted = |n| Errand { end: End::Requests(n), ..errand() };
        let post = Errand { method: "POST".to_owned(), ..errand() };
        let half = Errand { end: End::After(Nanos::from_millis(1500)), ..errand() };
        let cases = [
            (Generator::Wrk, open.clone(), "--rate"),
            (Generator::Hey, open, "-q"),
            (Generator::Wrk, counted(100), "--for"),
            (Generator::Hey, counted(105), "multiple of 10"),
            (Generator::Wrk, post.clone(), "-m"),
            (Generator::H2load, post, "-m"),
            (Generator::H2load, Errand { keep_alive: false, ..errand() }, "-k"),
            (Generator::Wrk2, errand(), "--rate"),
            (Generator::Hey, half, "--for"),
        ];
        for (generator, errand, part) in cases {
            let line = generator.refusal(&errand).unwrap_or_else(|| panic!("{generator:?} takes {errand:?}"));
            assert!(line.starts_with(&format!("--with {}", generator.name())) && line.contains(part), "{line}");
            assert!(!line.contains('\n'));
        }
        for generator in [Generator::Wrk, Generator::Hey, Generator::Ab, Generator::H2load] {
            assert_eq!(generator.refusal(&errand()), None);
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
