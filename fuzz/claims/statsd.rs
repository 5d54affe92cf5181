//! What is true of any packet that an app may send.

use export::statsd::{MOST_SERIES, ParsedLine, StatsdCollector, parse};

/// Panics if a line that was understood reads back as another when it is printed, if a line is not
/// counted exactly once, or if a figure is impossible.
pub(crate) fn counts_every_line_once(packet: &[u8], times: u64) {
    let lines =
        packet.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    for line in &lines {
        if let ParsedLine::Values(line) = parse(line) {
            assert_eq!(
                parse(line.to_string().as_bytes()),
                ParsedLine::Values(line.clone()),
                "{line}"
            );
        }
    }
    let mut collector = StatsdCollector::default();
    for time in 0..times {
        // Every third one comes before the window.
        collector.packet(time % 3 > 0, packet);
    }
    let heard = collector.take();
    let counted = heard.before + heard.lines + heard.malformed + heard.no_metrics + heard.left_out;
    assert_eq!(counted, lines.len() as u64 * times);
    assert!(
        heard.series.len() <= MOST_SERIES
            && (heard.malformed > 0) == heard.first_malformed.is_some()
    );
    for series in &heard.series {
        assert!(series.values > 0 && series.stands_for >= series.values as f64);
        if let Some(figures) = series.figures {
            assert!(
                figures.min <= figures.last
                    && figures.last <= figures.max
                    && figures.sum.is_finite(),
                "{series:?}"
            );
        }
    }
}
