//! A study of bodies as CSV: a line a run, in the order in which they were done, for a spreadsheet or a plot.
//!
//! Numbers are not rounded as tables are. What is not known is empty, and so are the figures of an invalid run.

use std::fmt::Write as _;

use model::{BodiesStudy, BodyRun, Nanos};

use super::rows::PERCENTILES;
use crate::verdicts;

const HEAD: &str = "run,socket,type,kb,connections,limit,requests,errors,rate_per_s,content_bytes_per_s,\
p50_ms,p75_ms,p90_ms,p99_ms,max_ms,content_bytes,whole_bytes,server_cpu_ms,server_memory_bytes\n";

/// The names of the columns and all runs.
pub fn whole(study: &BodiesStudy) -> String {
    let mut text = HEAD.to_owned();
    for run in &study.runs {
        line(&mut text, run);
    }
    text
}

fn line(text: &mut String, row: &BodyRun) {
    let run = &row.run;
    let (tally, limit) = (&run.tally, verdicts::word(run.judgement.as_ref()).to_lowercase());
    // Writing to a String does not fail.
    _ = write!(
        text,
        "{},{},{},{},{},{limit},{},{}",
        run.repeat,
        row.socket,
        row.body.kind.name(),
        row.body.kilobytes,
        run.connections,
        tally.counts.total(),
        tally.counts.failed()
    );
    let milliseconds = |time: Option<Nanos>| time.map(Nanos::as_millis_f64);
    let times = PERCENTILES.iter().map(|q| run.response_time(*q)).chain([run.max_response_time()]);
    let figures = [Some(run.completed_rate()), Some(row.content_rate())]
        .into_iter()
        .chain(times.map(|time| milliseconds(time.time())))
        .chain([row.content_bytes(), row.whole_bytes(), milliseconds(row.server_cpu())])
        .chain([row.server.memory_bytes.map(|bytes| bytes as f64)]);
    let hidden = verdicts::hides(run.judgement.as_ref());
    for figure in figures {
        match figure.filter(|_| !hidden) {
            Some(figure) => _ = write!(text, ",{figure}"),
            None => text.push(','),
        }
    }
    text.push('\n');
}
