//! statsd with `DogStatsD`'s additions (several values, a sample rate, tags): parses lines and sums
//! them up.
//!
//! `NAME:VALUE[:VALUE…]|TYPE[|@RATE][|#TAG,TAG…][|…]` (statsd, "Metric types"; Datadog, "Datagram
//! format", protocol 1.0 to 1.3). Further sections (container, time stamp) are skipped. No input
//! makes the parser panic, and a line that was printed parses to the same line.
//!
//! Each metric with its tags is a series: count, sum, smallest, largest and last of all values. At
//! most [`MOST_SERIES`] are kept; lines of further series are only counted. So a run takes little
//! memory, whatever is sent.

use std::collections::BTreeMap;
use std::fmt;

use model::{MetricKind, StatsdFigures, StatsdMetric, StatsdReport};

/// The most bytes that a name and its tags may have together.
pub(crate) const LONGEST_NAME: usize = 1000;
/// The largest value that is accepted, so that sums stay finite.
const LARGEST: f64 = 1e100;
/// The lowest sample rate that is accepted: one value in a billion is sent.
const LEAST_RATE: f64 = 1e-9;

/// A line that carries values.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsdLine {
    /// The metric's name: not empty, without `:`, `|` and control characters.
    pub name: String,
    /// The metric's type.
    pub kind: MetricKind,
    /// Its values; at least one.
    pub values: StatsdValues,
    /// The sample rate: the share of the values that the sender sends, above 0 and at most 1.
    pub rate: f64,
    /// Its tags, sorted, each once.
    pub tags: Vec<String>,
}

/// Values of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum StatsdValues {
    /// Quantities.
    Numbers(Vec<f64>),
    /// Changes of a gauge, which have a sign.
    Changes(Vec<f64>),
    /// A member of a set.
    Name(String),
}

/// A line, parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedLine {
    /// Values of a metric.
    Values(StatsdLine),
    /// An event or a service check of `DogStatsD`, which has no value.
    NoMetric,
    /// Not statsd.
    Malformed,
}

/// Parses a line without its line end.
pub fn parse(line: &[u8]) -> ParsedLine {
    match std::str::from_utf8(line) {
        Ok(text) if text.chars().any(char::is_control) => ParsedLine::Malformed,
        Ok(text) if text.starts_with("_e{") || text.starts_with("_sc|") => ParsedLine::NoMetric,
        Ok(text) => values_line(text).map_or(ParsedLine::Malformed, ParsedLine::Values),
        Err(_) => ParsedLine::Malformed,
    }
}

fn values_line(text: &str) -> Option<StatsdLine> {
    let mut sections = text.split('|');
    let (name, values) = sections.next()?.split_once(':').filter(|(name, _)| !name.is_empty())?;
    let kind = sections.next()?;
    let kind = MetricKind::ALL.iter().copied().find(|other| other.letter() == kind)?;
    let mut rate = 1.0;
    let mut tags = Vec::new();
    for section in sections {
        if let Some(text) = section.strip_prefix('@') {
            rate = text.parse().ok().filter(|rate| (LEAST_RATE..=1.0).contains(rate))?;
        } else if let Some(list) = section.strip_prefix('#') {
            tags.extend(list.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned));
        } else if section.is_empty() {
            return None;
        }
    }
    tags.sort_unstable();
    tags.dedup();
    if name.len() + tags.iter().map(String::len).sum::<usize>() > LONGEST_NAME {
        return None;
    }
    Some(StatsdLine { name: name.to_owned(), kind, values: values_of(kind, values)?, rate, tags })
}

fn values_of(kind: MetricKind, text: &str) -> Option<StatsdValues> {
    if kind == MetricKind::Set {
        // A member may have colons in it.
        let fits = (1..=LONGEST_NAME).contains(&text.len());
        return fits.then(|| StatsdValues::Name(text.to_owned()));
    }
    let number = |text: &str| text.parse().ok().filter(|value: &f64| value.abs() <= LARGEST);
    let numbers: Vec<f64> = text.split(':').map(number).collect::<Option<_>>()?;
    let signed = text.split(':').filter(|value| value.starts_with(['+', '-'])).count();
    match (kind, signed) {
        (MetricKind::Gauge, signed) if signed == numbers.len() => {
            Some(StatsdValues::Changes(numbers))
        }
        // Of changes and values in one line, the result depends on the order in which they apply,
        // which the format does not define.
        (MetricKind::Gauge, 1..) => None,
        _ => Some(StatsdValues::Numbers(numbers)),
    }
}

impl fmt::Display for StatsdLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        match &self.values {
            StatsdValues::Numbers(values) => {
                values.iter().try_for_each(|value| write!(out, ":{value}"))?;
            }
            StatsdValues::Changes(values) => {
                values.iter().try_for_each(|value| write!(out, ":{value:+}"))?;
            }
            StatsdValues::Name(name) => write!(out, ":{name}")?,
        }
        write!(out, "|{}", self.kind.letter())?;
        if self.rate < 1.0 {
            write!(out, "|@{}", self.rate)?;
        }
        if self.tags.is_empty() { Ok(()) } else { write!(out, "|#{}", self.tags.join(",")) }
    }
}

/// The most series that are kept.
pub const MOST_SERIES: usize = 200;
/// Characters of a malformed line that are quoted.
const QUOTED: usize = 60;

/// Sums up the lines of all runs of a server.
#[derive(Debug, Default)]
pub struct StatsdCollector {
    series: BTreeMap<SeriesKey, StatsdSeries>,
    report: StatsdReport,
}

/// Metric, tags and type.
type SeriesKey = (String, Vec<String>, MetricKind);

/// One series.
#[derive(Debug, Default)]
struct StatsdSeries {
    /// A gauge's present value. It outlives a run, because changes are relative to it.
    gauge: f64,
    values: u64,
    stands_for: f64,
    figures: Option<StatsdFigures>,
}

impl StatsdCollector {
    /// Takes a packet that came in the run's measured window or before it.
    pub fn packet(&mut self, is_in_window: bool, packet: &[u8]) {
        self.report.packets += u64::from(is_in_window);
        for line in packet.split(|byte| *byte == b'\n') {
            // Some senders end lines with CR LF.
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                self.line(is_in_window, line);
            }
        }
    }

    fn line(&mut self, is_in_window: bool, text: &[u8]) {
        match parse(text) {
            ParsedLine::Values(line) => self.values(is_in_window, line),
            _ if !is_in_window => self.report.before += 1,
            ParsedLine::NoMetric => self.report.no_metrics += 1,
            ParsedLine::Malformed => {
                self.report.malformed += 1;
                self.report.first_malformed.get_or_insert_with(|| quoted(text));
            }
        }
    }

    fn values(&mut self, is_in_window: bool, line: StatsdLine) {
        let key = (line.name, line.tags, line.kind);
        let is_gauge = line.kind == MetricKind::Gauge;
        let has_room = self.series.len() < MOST_SERIES || self.series.contains_key(&key);
        let counter = if !is_in_window {
            &mut self.report.before
        } else if has_room {
            &mut self.report.lines
        } else {
            &mut self.report.left_out
        };
        *counter += 1;
        if has_room && (is_gauge || is_in_window) {
            // A gauge has no sample rate: each value counts once.
            let weight = if is_gauge { 1.0 } else { 1.0 / line.rate };
            self.series.entry(key).or_default().add(is_in_window, &line.values, weight);
        }
    }

    /// What was reported since the last call. Gauges keep their values.
    pub fn take(&mut self) -> StatsdReport {
        let mut report = std::mem::take(&mut self.report);
        for ((metric, tags, kind), series) in &mut self.series {
            let gauge = StatsdSeries { gauge: series.gauge, ..StatsdSeries::default() };
            let StatsdSeries { values, stands_for, figures, .. } = std::mem::replace(series, gauge);
            if values > 0 {
                report.series.push(StatsdMetric {
                    metric: metric.clone(),
                    tags: tags.clone(),
                    kind: *kind,
                    values,
                    stands_for,
                    figures,
                });
            }
        }
        self.series.retain(|(_, _, kind), _| *kind == MetricKind::Gauge);
        report
    }
}

impl StatsdSeries {
    /// Takes the values of a line. Before the window only a gauge's value matters. A gauge that
    /// nobody has set begins at 0, as in statsd.
    fn add(&mut self, is_in_window: bool, values: &StatsdValues, weight: f64) {
        let (values, are_changes) = match values {
            StatsdValues::Numbers(values) => (values, false),
            StatsdValues::Changes(changes) => (changes, true),
            StatsdValues::Name(_) => {
                self.values += 1;
                self.stands_for += weight;
                return;
            }
        };
        for value in values {
            self.gauge = if are_changes { self.gauge + value } else { *value };
            if is_in_window {
                self.value(self.gauge, weight);
            }
        }
    }

    fn value(&mut self, value: f64, weight: f64) {
        self.values += 1;
        self.stands_for += weight;
        let before = self.figures.unwrap_or(StatsdFigures {
            sum: 0.0,
            mean: 0.0,
            last: value,
            min: value,
            max: value,
        });
        let sum = before.sum + value * weight;
        self.figures = Some(StatsdFigures {
            sum,
            mean: sum / self.stands_for,
            last: value,
            min: before.min.min(value),
            max: before.max.max(value),
        });
    }
}

/// The beginning of a line, escaped so that it can be printed.
fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String = text.chars().take(QUOTED).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    shown.escape_debug().to_string() + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_invalid_utf8_and_long_names_are_malformed() {
        let long = format!("{}:1|c", "n".repeat(LONGEST_NAME + 1));
        for line in [&b""[..], b"a\x1b[2J:1|c", b"a:\xff|c", long.as_bytes()] {
            assert_eq!(parse(line), ParsedLine::Malformed, "{line:?}");
        }
    }

    fn any_line() -> impl Strategy<Value = StatsdLine> {
        let name = "[a-zA-Z0-9_.,=/ äß-]{1,30}";
        let tags = prop::collection::btree_set("[a-z:./= ]{1,12}", 0..4);
        let rate = prop_oneof![Just(1.0), 1e-9f64..1.0];
        let values =
            prop::collection::vec(prop_oneof![-1e100..1e100, -1000.0..1000.0, Just(0.0)], 1..4);
        (name, 0..MetricKind::ALL.len(), values, rate, tags, "[a-z0-9:@#]{1,9}", any::<bool>())
            .prop_map(
                |(name, kind, values, rate, tags, of_set, changes): (
                    _,
                    _,
                    Vec<f64>,
                    _,
                    _,
                    _,
                    _,
                )| {
                    let kind = MetricKind::ALL[kind];
                    let values = match kind {
                        MetricKind::Set => StatsdValues::Name(of_set),
                        MetricKind::Gauge if changes => StatsdValues::Changes(values),
                        // A value with a sign would be a change.
                        MetricKind::Gauge => {
                            StatsdValues::Numbers(values.into_iter().map(f64::abs).collect())
                        }
                        _ => StatsdValues::Numbers(values),
                    };
                    StatsdLine { name, kind, values, rate, tags: tags.into_iter().collect() }
                },
            )
    }

    proptest! {
        #[test]
        fn a_printed_line_parses_to_the_same_line(line in any_line()) {
            prop_assert_eq!(parse(line.to_string().as_bytes()), ParsedLine::Values(line));
        }
    }

    fn figures(report: &StatsdReport, metric: &str) -> StatsdFigures {
        report.of(metric).and_then(|series| series.figures).unwrap()
    }

    #[test]
    fn packets_sum_up_to_the_figures_of_the_table() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/statsd_reports.txt");
        testkit::golden::expect_rows(file, |given| {
            let reports: Vec<Vec<(bool, String)>> = serde_json::from_str(given).unwrap();
            let mut collector = StatsdCollector::default();
            let mut report = |packets: Vec<(bool, String)>| {
                for (is_measured, text) in packets {
                    collector.packet(is_measured, text.as_bytes());
                }
                let report = collector.take();
                let counts = [
                    report.packets,
                    report.lines,
                    report.malformed,
                    report.no_metrics,
                    report.before,
                ];
                let series = report.series.into_iter().map(|of| {
                    let figures = of.figures.map(|it| [it.sum, it.mean, it.last, it.min, it.max]);
                    (of.metric, of.tags, of.values, of.stands_for, figures)
                });
                (counts, report.first_malformed, series.collect::<Vec<_>>())
            };
            reports.into_iter().map(&mut report).collect::<Vec<_>>()
        });
    }

    #[test]
    fn further_series_are_counted_and_not_kept() {
        let mut collector = StatsdCollector::default();
        for n in 0..MOST_SERIES + 50 {
            collector.packet(true, format!("metric.{n}:1|c").as_bytes());
        }
        for n in 0..100_000u64 {
            collector.packet(true, format!("metric.0:{n}|c").as_bytes());
        }
        let report = collector.take();
        assert_eq!((report.series.len(), report.left_out), (MOST_SERIES, 50));
        let first = report.of("metric.0").unwrap();
        assert!(first.values == 100_001 && first.figures.unwrap().max.total_cmp(&99_999.0).is_eq());
    }

    proptest! {
        #[test]
        fn figures_are_of_all_values(values in prop::collection::vec(0u32..1000, 1..900)) {
            let mut collector = StatsdCollector::default();
            for value in &values {
                collector.packet(true, format!("x:{value}|h").as_bytes());
            }
            let report = collector.take();
            let figures = figures(&report, "x");
            let exact = |value: Option<&u32>| f64::from(*value.unwrap());
            let sum = values.iter().map(|value| f64::from(*value)).sum::<f64>();
            let expected = StatsdFigures {
                sum,
                mean: sum / values.len() as f64,
                last: exact(values.last()),
                min: exact(values.iter().min()),
                max: exact(values.iter().max()),
            };
            prop_assert_eq!(figures, expected);
        }
    }
}
