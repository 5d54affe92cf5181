//! One line of statsd, with what `DogStatsD` adds: several values, a sample rate, tags.
//!
//! `NAME:VALUE[:VALUE…]|TYPE[|@RATE][|#TAG,TAG…][|…]` (statsd, "Metric types"; Datadog, "Datagram format",
//! protocol 1.0 to 1.3). Further sections (container, time stamp) are skipped. No bytes make the parser panic, and a line
//! that was printed parses to itself.

use std::fmt;

use model::MetricKind;
use thiserror::Error;

/// A name and its tags together may have so many bytes.
pub const LONGEST_NAME: usize = 1000;
/// No quantity is larger; so that sums of them stay finite.
const LARGEST: f64 = 1e100;
/// No sender leaves out more than a thousand million values for each that it sends.
const LEAST_RATE: f64 = 1e-9;

/// A line that carries values.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its metric: not empty, without `:`, `|` and control characters.
    pub name: String,
    /// What its values are.
    pub kind: MetricKind,
    /// Its values; at least one.
    pub values: Values,
    /// Share of the values that the sender sends, above 0 and at most 1.
    pub rate: f64,
    /// Its tags, sorted, each once.
    pub tags: Vec<String>,
}

/// Values of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Quantities.
    Numbers(Vec<f64>),
    /// Of a gauge, with a sign: by how much it changes.
    Changes(Vec<f64>),
    /// Of a set: a name.
    Name(String),
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Values of a metric.
    Values(Line),
    /// An event or a service check of `DogStatsD`: they have no value.
    NoMetric,
}

/// Why a line is no statsd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Bad {
    /// Not UTF-8, or with control characters.
    #[error("it is no text")]
    NoText,
    /// No `NAME:VALUE|TYPE`.
    #[error("it is not NAME:VALUE|TYPE")]
    NoLine,
    /// No such type.
    #[error("its type is none of c, g, ms, h, d, s")]
    Kind,
    /// No number, or no quantity that can be.
    #[error("its value is no number")]
    Value,
    /// Not above 0 and at most 1.
    #[error("its sample rate is not above 0 and at most 1")]
    Rate,
    /// More than [`LONGEST_NAME`].
    #[error("its name and tags have more than {LONGEST_NAME} bytes")]
    TooLong,
}

/// What a line says; without its line end.
///
/// # Errors
/// Where it says nothing.
pub fn parse(line: &[u8]) -> Result<Said, Bad> {
    let text = std::str::from_utf8(line).map_err(|_| Bad::NoText)?;
    if text.chars().any(char::is_control) {
        return Err(Bad::NoText);
    }
    if text.starts_with("_e{") || text.starts_with("_sc|") {
        return Ok(Said::NoMetric);
    }
    let mut sections = text.split('|');
    let (name, values) = sections.next().and_then(|head| head.split_once(':')).ok_or(Bad::NoLine)?;
    let kind = sections.next().ok_or(Bad::NoLine)?;
    if name.is_empty() {
        return Err(Bad::NoLine);
    }
    let kind = MetricKind::ALL.into_iter().find(|other| other.letter() == kind).ok_or(Bad::Kind)?;
    let (mut rate, mut tags) = (1.0, Vec::new());
    for section in sections {
        if let Some(text) = section.strip_prefix('@') {
            rate = text.parse().ok().filter(|rate| (LEAST_RATE..=1.0).contains(rate)).ok_or(Bad::Rate)?;
        } else if let Some(list) = section.strip_prefix('#') {
            tags.extend(list.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned));
        } else if section.is_empty() {
            return Err(Bad::NoLine);
        }
    }
    tags.sort_unstable();
    tags.dedup();
    if name.len() + tags.iter().map(String::len).sum::<usize>() > LONGEST_NAME {
        return Err(Bad::TooLong);
    }
    Ok(Said::Values(Line { name: name.to_owned(), kind, values: values_of(kind, values)?, rate, tags }))
}

fn values_of(kind: MetricKind, text: &str) -> Result<Values, Bad> {
    if kind == MetricKind::Set {
        // A name may have colons in it.
        return if text.is_empty() || text.len() > LONGEST_NAME {
            Err(Bad::Value)
        } else {
            Ok(Values::Name(text.to_owned()))
        };
    }
    let number = |text: &str| text.parse().ok().filter(|value: &f64| value.abs() <= LARGEST).ok_or(Bad::Value);
    let numbers: Vec<f64> = text.split(':').map(number).collect::<Result<_, _>>()?;
    let signed = text.split(':').filter(|value| value.starts_with(['+', '-'])).count();
    match (kind, signed) {
        (MetricKind::Gauge, signed) if signed == numbers.len() => Ok(Values::Changes(numbers)),
        // Changes and values in one line: which came when?
        (MetricKind::Gauge, 1..) => Err(Bad::Value),
        _ => Ok(Values::Numbers(numbers)),
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        match &self.values {
            Values::Numbers(values) => values.iter().try_for_each(|value| write!(out, ":{value}"))?,
            Values::Changes(values) => values.iter().try_for_each(|value| write!(out, ":{value:+}"))?,
            Values::Name(name) => write!(out, ":{name}")?,
        }
        write!(out, "|{}", self.kind.letter())?;
        if self.rate < 1.0 {
            write!(out, "|@{}", self.rate)?;
        }
        if self.tags.is_empty() { Ok(()) } else { write!(out, "|#{}", self.tags.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> Line {
        match parse(text.as_bytes()) {
            Ok(Said::Values(line)) => line,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// The lines of statsd's and Datadog's own pages, and of puma-plugin-statsd.
    #[test]
    fn lines_of_the_protocols_pages_are_understood() {
        assert!(line("gorets:1|c|@0.1").rate.total_cmp(&0.1).is_eq());
        assert_eq!(line("glork:320|ms").kind, MetricKind::Timer);
        assert_eq!(line("gaugor:333|g").values, Values::Numbers(vec![333.0]));
        assert_eq!(line("gaugor:-10|g").values, Values::Changes(vec![-10.0]));
        assert_eq!(line("gaugor:+4|g").values, Values::Changes(vec![4.0]));
        assert_eq!(line("uniques:765|s").values, Values::Name("765".to_owned()));
        assert_eq!(line("users.online:1|c|@0.5|#country:china").tags, ["country:china"]);
        assert_eq!(line("song.length:240:234:2.5|h|#b,a,b,").values, Values::Numbers(vec![240.0, 234.0, 2.5]));
        assert_eq!(line("song.length:240|h|#b,a,b,").tags, ["a", "b"]);
        assert_eq!(line("page.views:15|c|#env:dev|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918").tags, ["env:dev"]);
        assert_eq!(line("page.views:15|c|#env:dev|T1656581400").values, Values::Numbers(vec![15.0]));
        assert_eq!(line("puma.backlog:7|h|#pod_name:web-1,grouping:web").tags, ["grouping:web", "pod_name:web-1"]);
        assert_eq!(parse(b"_e{5,4}:title|text|#a"), Ok(Said::NoMetric));
        assert_eq!(parse(b"_sc|Redis connection|2|m:timed out"), Ok(Said::NoMetric));
    }

    #[test]
    fn what_is_no_statsd_says_why() {
        let cases: [(&[u8], Bad); 18] = [
            (b"", Bad::NoLine),
            (b"a", Bad::NoLine),
            (b"a:1", Bad::NoLine),
            (b":1|c", Bad::NoLine),
            (b"a:1|c|", Bad::NoLine),
            (b"a:1|x", Bad::Kind),
            (b"a:1|", Bad::Kind),
            (b"a:|c", Bad::Value),
            (b"a:1:|c", Bad::Value),
            (b"a:one|c", Bad::Value),
            (b"a:NaN|g", Bad::Value),
            (b"a:inf|g", Bad::Value),
            (b"a:1e101|g", Bad::Value),
            (b"a:+1:2|g", Bad::Value),
            (b"a:1|c|@0", Bad::Rate),
            (b"a:1|c|@1.1", Bad::Rate),
            (b"a:\xff|c", Bad::NoText),
            (b"a\x1b[2J:1|c", Bad::NoText),
        ];
        for (text, why) in cases {
            assert_eq!(parse(text), Err(why), "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(parse(format!("{}:1|c", "n".repeat(LONGEST_NAME + 1)).as_bytes()), Err(Bad::TooLong));
    }

    fn any_line() -> impl Strategy<Value = Line> {
        let name = "[a-zA-Z0-9_.,=/ äß-]{1,30}";
        let tags = prop::collection::btree_set("[a-z:./= ]{1,12}", 0..4);
        let rate = prop_oneof![Just(1.0), 1e-9f64..1.0];
        let values = prop::collection::vec(prop_oneof![-1e100..1e100, -1000.0..1000.0, Just(0.0)], 1..4);
        (name, 0..MetricKind::ALL.len(), values, rate, tags, "[a-z0-9:@#]{1,9}", any::<bool>()).prop_map(
            |(name, kind, values, rate, tags, of_set, changes): (_, _, Vec<f64>, _, _, _, _)| {
                let kind = MetricKind::ALL[kind];
                let values = match kind {
                    MetricKind::Set => Values::Name(of_set),
                    MetricKind::Gauge if changes => Values::Changes(values),
                    // A value with a sign would be a change.
                    MetricKind::Gauge => Values::Numbers(values.into_iter().map(f64::abs).collect()),
                    _ => Values::Numbers(values),
                };
                Line { name, kind, values, rate, tags: tags.into_iter().collect() }
            },
        )
    }

    proptest! {
        #[test]
        fn a_line_printed_and_parsed_is_itself(line in any_line()) {
            prop_assert_eq!(parse(line.to_string().as_bytes()), Ok(Said::Values(line)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_was_understood_is_printed_as_a_line_that_says_the_same(
            text in "[a-c+-]{0,3}:[-+0-9.e:]{0,6}\\|(c|g|ms|h|d|s)(\\|@[0-9.]{1,4})?(\\|#[a-c,:]{0,6})?(\\|T[0-9]{1,3})?",
        ) {
            if let Ok(Said::Values(line)) = parse(text.as_bytes()) {
                prop_assert_eq!(parse(line.to_string().as_bytes()), Ok(Said::Values(line)));
            }
        }
    }
}
