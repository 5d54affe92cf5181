//! A watch as JSON, for programs. The shape is in docs/FORMAT.md.

use serde_json::{Value, json};

use super::board::{WatchBoard, Whose};
use super::{WatchEnd, WatchTarget};

/// Whose the shape; one that an old reader would misunderstand gets the next.
const SCHEMA: u32 = 1;

/// All that was seen.
pub(crate) fn json(target: &WatchTarget, board: &WatchBoard, end: WatchEnd, source: &'static str) -> String {
    let (queue, others) = board.looks;
    let places: Vec<String> = target.places.iter().map(ToString::to_string).collect();
    let processes: Vec<Value> = board
        .processes
        .iter()
        .map(|(pid, one)| {
            json!({
                "pid": pid, "parent": one.parent, "title": one.title, "is_there": one.is_there,
                "first_seen_ns": one.first_seen, "last_seen_ns": one.last_seen,
            })
        })
        .collect();
    let series: Vec<Value> = board
        .series
        .iter()
        .map(|((whose, quantity), series)| {
            let pid = match whose {
                Whose::Server => None,
                Whose::Process(pid) => Some(pid),
            };
            let (age, oldest) = series.staleness.unzip();
            let points: Vec<Value> = series.points().iter().map(|(at, value)| json!([at, value])).collect();
            json!({
                "pid": pid, "name": quantity.name(), "unit": quantity.unit(), "is_rate": quantity.is_rate(),
                "source": quantity.source(source), "min": series.least, "mean": series.mean(), "max": series.most,
                "last": series.last, "looks": series.looks, "absent": series.absent,
                "last_staleness_ns": age, "max_staleness_ns": oldest, "points": points,
            })
        })
        .collect();
    let all = json!({
        "kind": "watch",
        "schema": SCHEMA,
        "longtail_version": env!("CARGO_PKG_VERSION"),
        "listens_on": places,
        "ended": match end { WatchEnd::Time => "time", WatchEnd::User => "user", WatchEnd::Server(_) => "server" },
        "watched_ns": board.now,
        "looks": { "accept_queue": queue, "all": others },
        "cpu_ns": board.cpu(),
        "accept_queue_limit": board.queue_limit,
        "slots": board.slots,
        "processes": processes,
        "series": series,
        "missing": board.missing(),
    });
    format!("{all:#}\n")
}
