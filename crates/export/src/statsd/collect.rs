//! What many lines come to: a series for each metric with its tags, exact in its figures and bounded in its memory.
//!
//! A series keeps count, sum, smallest, largest and last of all values, and up to [`MOST_POINTS`] of them to be drawn: where it is full,
//! every second point goes, and from then on half as many are kept. Where there are [`MOST_SERIES`], lines of further ones are
//! counted and left out. So a run takes a few megabytes at the most, whatever is sent.

use std::collections::BTreeMap;

use model::{Heard, HeardFigures, HeardSeries, MetricKind, Nanos};

use super::line::{Line, Said, Values, parse};

/// Series that are kept, at the most.
pub const MOST_SERIES: usize = 200;
/// Points of each that are kept, at the most.
pub const MOST_POINTS: usize = 300;
/// So much of a line that is no statsd is quoted.
const QUOTED: usize = 60;

/// Puts lines together, over all runs of a server.
#[derive(Debug, Default)]
pub struct Collector {
    series: BTreeMap<Key, Gathered>,
    heard: Heard,
}

/// Metric, tags and type.
type Key = (String, Vec<String>, MetricKind);

/// One series.
#[derive(Debug, Default)]
struct Gathered {
    /// Of a gauge: what it is now. It outlives a run, for a change is one of what was before.
    gauge: f64,
    values: u64,
    stands_for: f64,
    figures: Option<HeardFigures>,
    points: Vec<(Nanos, f64)>,
    /// Each so many-th value becomes a point.
    stride: u64,
}

impl Collector {
    /// Takes a packet that came at an instant since the window's start; before it: `None`.
    pub fn packet(&mut self, at: Option<Nanos>, packet: &[u8]) {
        self.heard.packets += u64::from(at.is_some());
        for line in packet.split(|byte| *byte == b'\n') {
            // Some senders end each line as a text file does.
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                self.line(at, line);
            }
        }
    }

    fn line(&mut self, at: Option<Nanos>, text: &[u8]) {
        match (parse(text), at) {
            (Ok(Said::Values(line)), at) => self.values(at, line),
            (_, None) => self.heard.before += 1,
            (Ok(Said::NoMetric), Some(_)) => self.heard.no_metrics += 1,
            (Err(_), Some(_)) => {
                self.heard.malformed += 1;
                self.heard.first_malformed.get_or_insert_with(|| quoted(text));
            }
        }
    }

    fn values(&mut self, at: Option<Nanos>, line: Line) {
        let key = (line.name, line.tags, line.kind);
        let is_known = self.series.contains_key(&key);
        let Some(at) = at else {
            self.heard.before += 1;
            // Only what a gauge is matters later.
            if line.kind == MetricKind::Gauge && (is_known || self.series.len() < MOST_SERIES) {
                self.series.entry(key).or_default().set(&line.values);
            }
            return;
        };
        if !is_known && self.series.len() >= MOST_SERIES {
            self.heard.left_out += 1;
            return;
        }
        self.heard.lines += 1;
        // A gauge has no sample rate: each value says all.
        let weight = if line.kind == MetricKind::Gauge { 1.0 } else { 1.0 / line.rate };
        self.series.entry(key).or_default().add(at, &line.values, weight);
    }

    /// What was heard since the last call; gauges stay what they are.
    pub fn take(&mut self) -> Heard {
        let mut heard = std::mem::take(&mut self.heard);
        for ((metric, tags, kind), gathered) in &mut self.series {
            let gathered = gathered.take();
            if gathered.values > 0 {
                let (at, points) = gathered.points.into_iter().unzip();
                heard.series.push(HeardSeries {
                    metric: metric.clone(),
                    tags: tags.clone(),
                    kind: *kind,
                    values: gathered.values,
                    stands_for: gathered.stands_for,
                    figures: gathered.figures,
                    at,
                    points,
                });
            }
        }
        self.series.retain(|(_, _, kind), _| *kind == MetricKind::Gauge);
        heard
    }
}

impl Gathered {
    /// What a gauge is after these values; a gauge that nobody has set begins at 0, as with statsd.
    fn set(&mut self, values: &Values) {
        match values {
            Values::Numbers(values) => self.gauge = values.last().copied().unwrap_or(self.gauge),
            Values::Changes(changes) => self.gauge += changes.iter().sum::<f64>(),
            Values::Name(_) => {}
        }
    }

    fn add(&mut self, at: Nanos, values: &Values, weight: f64) {
        match values {
            Values::Numbers(values) => {
                for value in values {
                    self.gauge = *value;
                    self.value(at, *value, weight);
                }
            }
            Values::Changes(changes) => {
                for change in changes {
                    self.gauge += change;
                    self.value(at, self.gauge, weight);
                }
            }
            Values::Name(_) => {
                self.values += 1;
                self.stands_for += weight;
            }
        }
    }

    fn value(&mut self, at: Nanos, value: f64, weight: f64) {
        self.stands_for += weight;
        let before = self.figures.unwrap_or(HeardFigures { sum: 0.0, mean: 0.0, last: value, min: value, max: value });
        let sum = before.sum + value * weight;
        self.figures = Some(HeardFigures {
            sum,
            mean: sum / self.stands_for,
            last: value,
            min: before.min.min(value),
            max: before.max.max(value),
        });
        self.stride = self.stride.max(1);
        if self.values.is_multiple_of(self.stride) {
            if self.points.len() >= MOST_POINTS {
                let mut place = 0;
                self.points.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
            if self.values.is_multiple_of(self.stride) {
                self.points.push((at, value));
            }
        }
        self.values += 1;
    }

    /// All but what the gauge is.
    fn take(&mut self) -> Gathered {
        let gauge = self.gauge;
        std::mem::replace(self, Gathered { gauge, ..Gathered::default() })
    }
}

/// The beginning of a line, fit to be printed.
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

    const AT: Option<Nanos> = Some(Nanos::from_millis(5));

    fn figures(heard: &Heard, metric: &str) -> HeardFigures {
        heard.of(metric).and_then(|series| series.figures).unwrap()
    }

    #[test]
    fn each_type_comes_to_what_it_means() {
        let mut collector = Collector::default();
        collector.packet(AT, b"jobs:3|c\njobs:2|c|@0.5\r\nrack:120:80|ms\nbusy:4|g\nbusy:+2|g\nwho:ann|s\nwho:bob|s\n");
        let heard = collector.take();
        assert_eq!((heard.packets, heard.lines, heard.malformed), (1, 7, 0));
        assert_eq!(figures(&heard, "jobs"), HeardFigures { sum: 7.0, mean: 7.0 / 3.0, last: 2.0, min: 2.0, max: 3.0 });
        let jobs = heard.of("jobs").unwrap();
        assert!(jobs.values == 2 && jobs.stands_for.total_cmp(&3.0).is_eq(), "{jobs:?}");
        assert_eq!(
            figures(&heard, "rack"),
            HeardFigures { sum: 200.0, mean: 100.0, last: 80.0, min: 80.0, max: 120.0 }
        );
        assert!(figures(&heard, "busy").last.total_cmp(&6.0).is_eq());
        assert_eq!((heard.of("who").unwrap().values, heard.of("who").unwrap().figures), (2, None));
    }

    #[test]
    fn tags_make_a_series_in_whatever_order() {
        let mut collector = Collector::default();
        collector.packet(AT, b"a:1|c|#x,y\na:1|c|#y,x\na:1|c");
        let heard = collector.take();
        assert_eq!(heard.series.iter().map(|series| series.values).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(heard.series[1].tags, ["x", "y"]);
    }

    #[test]
    fn what_came_before_the_window_is_counted_and_a_gauge_stays() {
        let mut collector = Collector::default();
        collector.packet(None, b"busy:4|g\njobs:1|c\nrubbish");
        collector.packet(AT, b"busy:-1|g");
        let heard = collector.take();
        assert_eq!((heard.before, heard.lines, heard.malformed, heard.series.len()), (3, 1, 0, 1));
        assert!(figures(&heard, "busy").last.total_cmp(&3.0).is_eq());
        collector.packet(AT, b"busy:-1|g");
        let heard = collector.take();
        assert_eq!(figures(&heard, "busy"), HeardFigures { sum: 2.0, mean: 2.0, last: 2.0, min: 2.0, max: 2.0 });
        assert_eq!(collector.take(), Heard::default());
    }

    #[test]
    fn rubbish_is_counted_and_the_first_is_quoted() {
        let mut collector = Collector::default();
        collector.packet(AT, b"\x1b[31m\nmore\n_e{1,1}:a|b\n\n");
        let heard = collector.take();
        assert_eq!((heard.malformed, heard.no_metrics, heard.lines), (2, 1, 0));
        assert_eq!(heard.first_malformed.as_deref(), Some("\\u{1b}[31m"));
    }

    #[test]
    fn memory_is_bounded_and_what_is_left_out_is_counted() {
        let mut collector = Collector::default();
        for n in 0..MOST_SERIES + 50 {
            collector.packet(AT, format!("metric.{n}:1|c").as_bytes());
        }
        for n in 0..100_000u64 {
            collector.packet(Some(Nanos::from_secs(1) + Nanos(n)), format!("metric.0:{n}|c").as_bytes());
        }
        let heard = collector.take();
        assert_eq!((heard.series.len(), heard.left_out), (MOST_SERIES, 50));
        let first = heard.of("metric.0").unwrap();
        assert!(first.values == 100_001 && first.figures.unwrap().max.total_cmp(&99_999.0).is_eq());
        assert!(first.points.len() <= MOST_POINTS && first.points.len() >= MOST_POINTS / 2, "{}", first.points.len());
        assert!(first.at.is_sorted() && first.at.len() == first.points.len());
        // They are of the whole run.
        assert!(*first.at.last().unwrap() > Nanos::from_secs(1) + Nanos(99_000));
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic_and_every_line_is_in_one_place(
            packets in prop::collection::vec((any::<bool>(), "([a-b]:[0-9]{1,2}\\|(c|g|s|x)(\\|@0\\.[0-9])?\n|_sc\\|x\n|[a-z|:]{1,4}\n){0,6}"), 0..6),
        ) {
            let mut collector = Collector::default();
            let mut lines = 0;
            for (in_window, packet) in &packets {
                collector.packet(in_window.then_some(Nanos(1)), packet.as_bytes());
                lines += packet.lines().count() as u64;
            }
            let heard = collector.take();
            prop_assert_eq!(heard.before + heard.lines + heard.malformed + heard.no_metrics + heard.left_out, lines);
            prop_assert_eq!(heard.series.iter().map(|series| series.values).sum::<u64>(), heard.lines);
        }

        #[test]
        fn the_figures_are_those_of_all_values(values in prop::collection::vec(0u32..1000, 1..900)) {
            let mut collector = Collector::default();
            for value in &values {
                collector.packet(AT, format!("x:{value}|h").as_bytes());
            }
            let heard = collector.take();
            let figures = figures(&heard, "x");
            let exact = |value: Option<&u32>| f64::from(*value.unwrap());
            let sum = values.iter().map(|value| f64::from(*value)).sum::<f64>();
            let expected = HeardFigures {
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
