//! A watch as JSON, for programs. The shape is in docs/FORMAT.md.

use serde_json::{Value, json};

use super::board::WatchBoard;
use super::diagnosis::{self, WatchLimit};
use super::evidence::WatchEvidence;
use super::series::QuantitySeries;
use super::waiting::WaitingTrend;
use super::{WatchEnd, WatchTarget};

/// Whose the shape; one that an old reader would misunderstand gets the next.
const SCHEMA: u32 = 2;

/// The answer with its evidence, and with all figures where there is a board; `end` is absent while the watch goes on.
pub(crate) fn watch_json(
    target: &WatchTarget,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
    board: Option<&WatchBoard>,
) -> Value {
    let places: Vec<String> = target.places.iter().map(model::Endpoint::address).collect();
    let limit = WatchLimit::of(seen);
    let (trend, change) = match seen.trend {
        None => (None, None),
        Some(WaitingTrend::Steady) => (Some("steady"), None),
        Some(WaitingTrend::Grows(by)) => (Some("grows"), Some(by)),
        Some(WaitingTrend::Shrinks(by)) => (Some("shrinks"), Some(-by)),
    };
    let mut all = json!({
        "kind": "watch",
        "schema": SCHEMA,
        "longtail_version": env!("CARGO_PKG_VERSION"),
        "listens_on": places,
        "ended": end,
        "watched_ns": seen.watched,
        "answer": diagnosis::answer(seen),
        "limit": limit,
        "since": diagnosis::since(seen),
        "why": diagnosis::why(seen, limit),
        "try": diagnosis::attempts(seen, limit),
        "puma_version": seen.version,
        "is_puma": seen.is_puma,
        "age_ns": seen.age,
        "threads": seen.slots(),
        "busy_threads": seen.busy(),
        "waiting_inside": seen.inside(),
        "waiting_in_accept_queue": seen.in_kernel(),
        "waiting_since_ns": seen.span.map(|span| span.length),
        "waits_from_start": seen.span.map(|span| span.is_from_start),
        "trend": trend,
        "change_per_s": change,
        "wait_estimate_ns": diagnosis::wait_estimate(seen),
        "requests_per_s": seen.rate.map(|rate| rate.per_second),
        "requests_per_s_is_rough": seen.rate.map(|rate| rate.is_rough),
        "accept_queue_limit": seen.queue_limit,
        "accept_queue_most": seen.queue_most,
        "listen_overflows": seen.overflows,
        "open_connections": seen.connections,
        "cpu": seen.cpu,
        "cpus": seen.cpus,
        "busy_cpus": seen.busy_cpus,
        "cpu_wait_share": seen.cpu_wait_share(),
        "workers": seen.workers,
        "no_statistics": seen.no_statistics,
        "not_visible": seen.not_visible,
    });
    if let Some(board) = board {
        all["sampling_cpu_ns"] = json!(board.sampling_cpu());
        all["processes"] = board.living().map(|(pid, title)| json!({ "pid": pid, "title": title })).collect();
        let figures = board.series.iter().map(|((whose, quantity), series)| {
            let QuantitySeries { least, most, last, .. } = series;
            json!({ "pid": whose, "name": quantity, "min": least, "mean": series.mean(), "max": most, "last": last })
        });
        all["figures"] = figures.collect();
    }
    all
}
