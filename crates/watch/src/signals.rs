//! The signals that `longtail signals` ranked, as they are now on the watched server, beside the
//! thresholds that it found.

use judge::signals::{SignalKind, SignalSource, SignalThreshold, SignalThresholds};
use judge::words::listed;
use report::tree::{DataTable, TableColumn, TableRow};
use report::{Width, number, text, wrap};
use serde_json::{Value, json};

use crate::WatchBoard;
use crate::answer::AnswerLine;

/// A signal's value now, beside its threshold.
struct SignalNow<'t> {
    kind: SignalKind,
    found: &'t SignalThreshold,
    now: Option<f64>,
}

impl SignalNow<'_> {
    /// Whether it is beyond its threshold; `None` if it is not known.
    fn is_beyond(&self) -> Option<bool> {
        Some(self.kind.is_beyond(self.now?, self.found.threshold?))
    }

    fn in_words(&self) -> &'static str {
        match (self.now, self.is_beyond()) {
            (None, _) => "not seen",
            (Some(_), Some(true)) => "beyond",
            (Some(_), Some(false) | None) => "",
        }
    }
}

/// The signals that this version of longtail knows, the earliest first.
fn signals_now<'t>(board: &WatchBoard, thresholds: &'t SignalThresholds) -> Vec<SignalNow<'t>> {
    let known = thresholds.signals.iter().filter_map(|found| {
        let kind = SignalKind::named(&found.name)?;
        Some(SignalNow { kind, found, now: board.signal(&kind) })
    });
    known.collect()
}

/// The signals below the answer of a watch.
pub fn signal_lines(
    board: &WatchBoard,
    thresholds: &SignalThresholds,
    width: Width,
) -> Vec<AnswerLine> {
    let signals = signals_now(board, thresholds);
    let mut out = String::new();
    let head = format!(
        "Thresholds of longtail signals, {}: {}, {}",
        thresholds.started_at,
        thresholds.server.in_words(),
        thresholds.objective
    );
    wrap(&mut out, width, "", &head);
    let table = table(&signals);
    out += &text::table(&text::narrowed(&table, 2, width).table, 2, width);
    for (label, line) in [
        ("  Alert  ", alert(&signals, thresholds)),
        ("  Unseen ", unseen(&signals)),
        ("  But    ", thresholds.doubt_for(&board.evidence())),
    ] {
        if let Some(line) = line {
            wrap(&mut out, width, label, &line);
        }
    }
    std::iter::once("").chain(out.lines()).map(AnswerLine::plain).collect()
}

fn table(signals: &[SignalNow<'_>]) -> DataTable {
    let columns = [("", 0), ("now", 0), ("alert at", 0), ("seconds before", 1), ("", 0)];
    let columns = columns.map(|(name, leaves)| TableColumn::new(name).leaving(leaves));
    let rows = signals.iter().map(|signal| {
        TableRow::new([
            signal.kind.name.to_owned(),
            number::or_none(signal.now, shown),
            number::or_none(signal.found.threshold, |limit| signal.kind.beyond(limit)),
            number::or_none(signal.found.seconds_before, |lead| number::fixed(lead, 0)),
            signal.in_words().to_owned(),
        ])
    });
    DataTable::of_columns(columns, rows)
}

/// Counts are whole.
fn shown(now: f64) -> String {
    if now.fract() == 0.0 {
        number::fixed(now, 0)
    } else {
        number::or_zero(now, number::significant)
    }
}

/// The alert to copy: on the earliest number that was in time, had no false alarm and can be read.
fn alert(signals: &[SignalNow<'_>], thresholds: &SignalThresholds) -> Option<String> {
    let is_early = |signal: &&SignalNow<'_>| {
        signal.found.false_alarms == 0 && signal.found.seconds_before.is_some_and(|lead| lead > 0.0)
    };
    let best = signals.iter().find(is_early)?;
    let beyond = best.kind.beyond(best.found.threshold?);
    let every = number::shortest(thresholds.interval_s);
    Some(format!(
        "{} {beyond} in two readings in a row, {every} s apart. Read at {}.",
        best.kind.name, best.kind.read_at
    ))
}

/// The signals that cannot be read from here, and where they can be read.
fn unseen(signals: &[SignalNow<'_>]) -> Option<String> {
    let of = |source: SignalSource| {
        let unseen =
            signals.iter().filter(|signal| signal.now.is_none() && signal.kind.source == source);
        let names: Vec<String> = unseen.map(|signal| signal.kind.name.to_owned()).collect();
        (!names.is_empty()).then(|| listed(&names))
    };
    let puma = of(SignalSource::Puma).map(|names| {
        format!(
            "{names}: only Puma's control server tells (activate_control_app, then --state or \
             --control-url). From outside: accept queue, CPU."
        )
    });
    let app = of(SignalSource::App).map(|names| format!("{names}: the app's APM tells."));
    let kernel =
        of(SignalSource::Kernel).map(|names| format!("{names}: this user may not read it here."));
    let lines: Vec<String> = [puma, app, kernel].into_iter().flatten().collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// The same as JSON.
pub fn signals_json(board: &WatchBoard, thresholds: &SignalThresholds) -> Value {
    let signals = signals_now(board, thresholds);
    let all = signals.iter().map(|signal| {
        json!({
            "name": signal.kind.name,
            "now": signal.now,
            "threshold": signal.found.threshold,
            "falls": signal.kind.is_falling(),
            "beyond": signal.is_beyond(),
            "seconds_before": signal.found.seconds_before,
            "read_at": signal.kind.read_at,
        })
    });
    json!({
        "started_at": thresholds.started_at,
        "objective": thresholds.objective,
        "server": thresholds.server,
        "doubt": thresholds.doubt_for(&board.evidence()),
        "signals": all.collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::signals::SignalsServer;
    use model::Nanos;
    use probe::puma_stats;
    use probe::sampler::Observation;
    use probe::sockets::ServerSockets;

    fn thresholds() -> SignalThresholds {
        let one = |name: &str, threshold: f64, seconds_before: Option<f64>| SignalThreshold {
            name: name.to_owned(),
            threshold: Some(threshold),
            seconds_before,
            false_alarms: 0,
        };
        SignalThresholds {
            kind: "signals".to_owned(),
            started_at: "2026-11-26T10:00:00Z".to_owned(),
            server: SignalsServer { name: None, workers: Some(1), threads: Some(5) },
            objective: "p99 < 200ms".to_owned(),
            interval_s: 5.0,
            signals: vec![
                one("queue time", 12.0, Some(40.0)),
                one("pool_capacity", 1.5, Some(20.0)),
                one("accept queue", 3.0, Some(-5.0)),
                one("of a later longtail", 1.0, None),
            ],
            doubt: None,
        }
    }

    fn board(stats: Option<&str>) -> WatchBoard {
        let mut board = WatchBoard::default();
        let queue = ServerSockets { accept_queue: 7, ..ServerSockets::default() };
        board.take(Observation::Queue { at: Nanos::from_secs(1), queue: Some(queue) });
        if let Some(text) = stats {
            let stats = puma_stats::parse(text.as_bytes());
            let at = Nanos::from_secs(1);
            board.take(Observation::Statistics { at, wall: at, cpu: Nanos::ZERO, stats });
        }
        board
    }

    const SINGLE: &str = r#"{"backlog":0,"running":5,"pool_capacity":1,"max_threads":5}"#;

    fn text(board: &WatchBoard) -> String {
        let lines = signal_lines(board, &thresholds(), Width::of(crate::COLUMNS));
        lines.into_iter().map(|line| line.text + "\n").collect()
    }

    #[test]
    fn a_number_beyond_its_threshold_is_named_with_an_alert_to_copy() {
        let text = text(&board(Some(SINGLE)));
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(row("pool_capacity").contains("below 1.5"), "{text}");
        assert!(row("pool_capacity").ends_with("beyond"), "{text}");
        assert!(row("accept queue").contains(" 7 "), "{text}");
        assert!(text.contains("in two readings in a row, 5 s apart"), "{text}");
        assert!(text.contains("queue time: the app's APM tells."), "{text}");
        assert!(!text.contains("later"), "{text}");
    }

    #[test]
    fn without_a_control_server_it_says_what_is_seen_from_outside() {
        let text = text(&board(None));
        assert!(text.contains("pool_capacity: only Puma's control server tells"), "{text}");
        let json = signals_json(&board(None), &thresholds());
        assert_eq!(json["signals"][1]["now"], Value::Null);
        assert_eq!(json["signals"][1]["beyond"], Value::Null);
        assert_eq!(json["signals"][2]["beyond"], Value::Bool(true));
    }
}
