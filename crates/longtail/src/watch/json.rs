//! A watch as JSON, for programs. The shape is in docs/FORMAT.md.

use serde_json::{Value, json};

use super::board::{Board, Of};
use super::series::Series;
use super::{End, Target, text};

/// Of the shape; one that an old reader would misunderstand gets the next.
const SCHEMA: u32 = 1;

/// All that was seen.
pub(crate) fn json(target: &Target, board: &Board, end: End, source: &str) -> String {
    let (queue, others) = board.looks();
    let places: Vec<String> = target.places.iter().map(ToString::to_string).collect();
    let processes: Vec<Value> = board
        .processes()
        .iter()
        .map(|(pid, one)| {
            json!({
                "pid": pid, "parent": one.parent, "title": one.title, "is_there": one.is_there,
                "first_seen_ns": one.first_seen, "last_seen_ns": one.last_seen,
            })
        })
        .collect();
    let series: Vec<Value> = board
        .all()
        .map(|(of, quantity, series)| {
            let origin = text::origin(quantity, source);
            let pid = match of {
                Of::All => None,
                Of::Process(pid) => Some(pid),
            };
            one(
                series,
                &json!({ "pid": pid, "name": quantity.name(), "unit": quantity.unit(),
                "is_rate": quantity.is_rate(), "source": origin }),
            )
        })
        .collect();
    let all = json!({
        "kind": "watch",
        "schema": SCHEMA,
        "longtail_version": env!("CARGO_PKG_VERSION"),
        "listens_on": places,
        "ended": match end { End::Time => "time", End::User => "user", End::Server(_) => "server" },
        "watched_ns": board.now(),
        "looks": { "accept_queue": queue, "all": others },
        "cpu_ns": board.cpu(),
        "accept_queue_limit": board.queue_limit(),
        "slots": board.slots(),
        "processes": processes,
        "series": series,
        "missing": board.missing(),
    });
    format!("{all:#}\n")
}

fn one(series: &Series, head: &Value) -> Value {
    let mut value = head.clone();
    let (looks, absent) = series.looks();
    let points: Vec<Value> = series.points().iter().map(|(at, value)| json!([at, value])).collect();
    let (age, oldest) = series.staleness().unzip();
    let figures = [
        ("min", json!(series.least())),
        ("mean", json!(series.mean())),
        ("max", json!(series.most())),
        ("last", json!(series.last())),
        ("looks", json!(looks)),
        ("absent", json!(absent)),
        ("last_staleness_ns", json!(age)),
        ("max_staleness_ns", json!(oldest)),
        ("points", json!(points)),
    ];
    for (name, figure) in figures {
        value[name] = figure;
    }
    value
}
