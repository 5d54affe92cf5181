//! The answer of a watch as JSON (docs/FORMAT.md).

use judge::watch::Diagnosis;
use model::Limit;
use serde_json::{Value, json};

use crate::series::QuantitySeries;
use crate::{WatchBoard, WatchEnd, WatchEvidence, WatchTarget};

/// The version of this JSON. A change that an old reader would misunderstand raises it.
const SCHEMA: u32 = 3;

/// The answer with its evidence, and with all figures if there is a board; `end` is absent while
/// the watch goes on.
pub fn watch_json(
    target: &WatchTarget,
    seen: &WatchEvidence,
    end: Option<WatchEnd>,
    board: Option<&WatchBoard>,
) -> Value {
    let places: Vec<String> = target.places.iter().map(model::Endpoint::address).collect();
    let found = Diagnosis::of(seen);
    let trend = seen.span.and_then(|span| span.trend);
    let mut all = json!({
        "kind": "watch",
        "schema": SCHEMA,
        "longtail_version": env!("CARGO_PKG_VERSION"),
        "listens_on": places,
        "ended": end,
        "watched_ns": seen.watched,
        "answer": found.answer,
        "limit": found.limit.as_ref().map(limit_name),
        "limit_may_be": found.guess.as_ref().map(limit_name),
        "since": found.since,
        "why": found.why,
        "try": found.tries,
        "puma_version": seen.version,
        "is_puma": seen.is_puma,
        "age_ns": seen.age,
        "threads": seen.slots(),
        "busy_threads": seen.busy(),
        "waiting_inside": seen.inside(),
        "waiting_inside_by_kernel": seen.inside_by_kernel(),
        "waiting_in_accept_queue": seen.in_kernel(),
        "waiting_since_ns": seen.span.map(|span| span.length),
        "waits_from_start": seen.span.map(|span| span.is_from_start),
        "trend": trend.map(trend_name),
        "change_per_s": trend.filter(|trend| *trend != 0.0),
        "wait_estimate_ns": found.wait,
        "requests_per_s": seen.rate.map(|rate| rate.per_second),
        "requests_per_s_is_rough": seen.rate.map(|rate| rate.is_rough),
        "accept_queue_limit": seen.queue_limit,
        "accept_queue_most": seen.queue_most,
        "listen_overflows": seen.overflows,
        "open_connections": seen.connections,
        "requests_out": seen.requests_out(),
        "requests_out_at_most": seen.requests_out_at_most(),
        "cpu": seen.cpu,
        "children_cpu": seen.children_cpu,
        "cpus": seen.cpus,
        "busy_cpus": seen.busy_cpus,
        "cpu_wait_share": seen.cpu_wait_share(),
        "workers": seen.workers,
        "no_statistics": seen.no_statistics,
        "not_visible": seen.not_visible,
    });
    // More than the macro takes at once.
    all["conclusion"] = json!(found.conclusion);
    all["backends"] = json!(seen.backends);
    all["responses_per_s_by_kernel"] = json!(seen.answered);
    all["thread_held_ns"] = json!(found.held);
    all["accept_wait"] = json!(found.accepting.map(|accepting| {
        json!({
            "one_in_requests": accepting.requests,
            "wait_ns": accepting.each,
            "accepted_per_s": accepting.accepted_per_s,
        })
    }));
    if let Some(board) = board {
        add_figures(&mut all, board);
    }
    all
}

/// Adds all figures, of the server and of each of its processes.
fn add_figures(all: &mut Value, board: &WatchBoard) {
    let figures = board.series.iter().map(|((whose, quantity), series)| {
        let QuantitySeries { least, most, last, .. } = series;
        json!({
            "pid": whose,
            "name": quantity,
            "min": least,
            "mean": series.mean(),
            "max": most,
            "last": last,
        })
    });
    all["sampling_cpu_ns"] = json!(board.sampling_cpu());
    all["processes"] =
        board.living().map(|(pid, title)| json!({ "pid": pid, "title": title })).collect();
    all["figures"] = figures.collect();
}

fn trend_name(trend: f64) -> &'static str {
    match trend {
        0.0 => "steady",
        _ if trend > 0.0 => "grows",
        _ => "shrinks",
    }
}

/// As a study's `limit` names it.
fn limit_name(limit: &Limit) -> Value {
    serde_json::to_value(limit).map_or(Value::Null, |value| value["limit"].clone())
}
