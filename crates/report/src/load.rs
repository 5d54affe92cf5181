//! The sections of a load's full report: response and service time side by side, what the generator
//! added, phases, failures (never mixed with good responses), the network and bytes.

use std::fmt::Write as _;

use judge::checks::LOAD_PERCENTILES;
use judge::findings::server_ended;
use judge::named_runs::is_hidden;
use model::histogram::rank;
use model::theory::{Estimate, Overload, OverloadDoubt};
use model::{
    Diagnostic, DurationSummary, Histogram, LoadStudy, Nanos, NetworkPath, Pace, Profile, Quantile,
    Tally,
};

use crate::event;
use crate::labels;
use crate::number::{self, NONE, count_of, or_none};
use crate::run_summary::{interval_cells, range_of_few};
use crate::tree::{DataTable, ReportSection, TableCell, TableRow};

/// The sections, in the order in which readers ask for them. An invalid run has only those that do
/// not tell figures of the server.
pub(crate) fn sections(study: &LoadStudy) -> Vec<Option<ReportSection>> {
    if let Some(claim) = &study.run.claim {
        return vec![Some(labels::output(claim))];
    }
    let shown = |section: Option<ReportSection>| section.filter(|_| !is_hidden(&study.run));
    vec![
        shown(event::section(&study.run)),
        shown(Some(rates(study))),
        shown(times(study)),
        shown(study.run.overload.as_ref().map(overload)),
        generator(study),
        shown(phases(study)),
        network(&study.run.tally),
        failures(study),
        shown(slowest(study)),
        Some(traffic(study)),
        ReportSection::new("checks of the responses").lines(study.checks.clone()).filled(),
    ]
}

/// The rates that were requested and achieved, by the requests that were due in the measured
/// window. A generator that sends less than it was asked for has measured something else.
fn rates(study: &LoadStudy) -> ReportSection {
    let plan = &study.plan;
    let run = &study.run;
    let unfinished = &run.tally.unfinished;
    let in_words = |rate: Option<f64>| {
        or_none(rate.filter(|_| run.measured.0 > 0), |rate| {
            format!("{}/s", number::rate_in_words(rate))
        })
    };
    let requested = match &plan.load.pace {
        // The rate that was asked for, where it is one number; random arrivals offer a little more
        // or less.
        Pace::Open { profile: Profile::Flat { rate }, .. } => {
            format!("{}/s", number::rate_in_words(rate.per_second()))
        }
        Pace::Open { .. } => in_words(run.offered_rate(&plan.load.pace)),
        Pace::Closed => "as fast as responses come".to_owned(),
    };
    let achieved = in_words(Some(run.completed_rate()).filter(|_| server_ended(run).is_none()));
    let sent = run.tally.send_lag.count();
    let unsent = run.tally.due() - sent - unfinished.not_sent;
    let failed = (sent - run.tally.counts.good()).saturating_sub(unfinished.in_flight);
    let words = format!(
        "requested: {requested} - achieved: {achieved}, submit failures: {unsent} (never sent), wait failures: {failed} (sent, no good response)"
    );
    let unfinished = (!unfinished.is_empty()).then(|| {
        format!(
            "unfinished when it was stopped: {} in flight, {} not sent; not counted",
            unfinished.in_flight, unfinished.not_sent
        )
    });
    ReportSection::new(format!("rates over the measured {}", number::length(run.measured)))
        .lines(ended_early(study).into_iter().chain([words]).chain(unfinished))
}

/// Who ended the load early. It is not the server: a load goes on without it.
fn ended_early(study: &LoadStudy) -> Option<String> {
    if !study.interrupted {
        return None;
    }
    let planned = labels::planned_length(&study.plan);
    let planned = planned.map(|length| format!(" of {length} planned")).unwrap_or_default();
    let mut warnings = study.run.warnings.iter();
    let is_by_condition =
        warnings.any(|warning| matches!(warning, Diagnostic::StoppedEarly { .. }));
    let who = if is_by_condition { "--stop-if" } else { "the user" };
    Some(format!("ended early, by {who}: {}{planned}", number::length(study.run.measured)))
}

/// Response time and service time of the good responses, side by side.
fn times(study: &LoadStudy) -> Option<ReportSection> {
    let tally = &study.run.tally;
    let good = tally.counts.good();
    if good == 0 {
        return None;
    }
    let failed = tally.counts.failed();
    let endless = without_end(tally);
    let left_out = if failed == 0 {
        String::new()
    } else {
        format!("{} left out", count_of(failed, "request"))
    };
    // How long the test was decides them in an overload, as it does all percentiles.
    let is_steady = !study.run.is_overload();
    let mut rows = Vec::new();
    if is_steady {
        rows.push(row_of_both("mean", tally, Histogram::mean).noted(left_out));
        rows.push(row_of_both("std deviation", tally, Histogram::standard_deviation));
    }
    rows.extend(rows_of_percentiles(study));
    if endless > 0 {
        // The longest is not known where some never ended.
        let max = row_of_both("max", tally, |_| None);
        rows.push(max.noted(format!("{endless} without a response")));
    } else if is_steady {
        rows.push(row_of_both("max", tally, Histogram::max));
    }
    let names = ["", "response time", "95 % interval", "generator's share", "service time"];
    let title = format!("times of {}, ms", count_of(good, "good response"));
    Some(ReportSection::new(title).table(DataTable::new(names, rows)))
}

/// Requests that may have taken any time: they were sent and never ended.
fn without_end(tally: &Tally) -> u64 {
    tally.counts.censored() + tally.unfinished_above_all()
}

/// A figure of response and service times.
fn row_of_both(name: &str, tally: &Tally, figure: fn(&Histogram) -> Option<Nanos>) -> TableRow {
    row_of_times(
        name,
        [&tally.response_time, &tally.service_time].map(figure),
        [String::new(), String::new()],
    )
}

/// Response and service time, with the interval of the first and the generator's share of it.
fn row_of_times(name: &str, times: [Option<Nanos>; 2], [interval, share]: [String; 2]) -> TableRow {
    let [response, service] = times.map(TableCell::time);
    TableRow::new([name.into(), response, interval.into(), share.into(), service])
}

/// A row for each percentile; the reason that several are missing stands once.
fn rows_of_percentiles(study: &LoadStudy) -> Vec<TableRow> {
    let mut rows = Vec::new();
    let mut last_note = String::new();
    for quantile in LOAD_PERCENTILES {
        let response = study.run.response_time(quantile);
        let service = study.run.service_time(quantile);
        let note = support(study, quantile, response);
        let is_new = response.time().is_some() || note != last_note;
        let cells = interval_cells(study.run.statistics.as_ref(), quantile, response);
        let times = [response, service].map(Quantile::time);
        let row = row_of_times(&number::percentile(quantile), times, cells);
        rows.push(if is_new { row.noted(note.clone()) } else { row });
        last_note = note;
    }
    rows
}

/// What supports a percentile, or why there is none.
fn support(study: &LoadStudy, quantile: f64, time: Quantile) -> String {
    /// From this percentile on it matters how many responses are slower.
    const HIGH: f64 = 0.95;
    let tally = &study.run.tally;
    match time {
        Quantile::Time(_) if quantile >= HIGH => {
            // Requests that never ended are slower than all responses.
            let good = tally.counts.good();
            format!("{} above", good.saturating_sub(rank(quantile, good + without_end(tally))))
        }
        Quantile::Time(_) | Quantile::NotPrinted => String::new(),
        Quantile::TooFew => study.run.percentile_range(quantile).map_or_else(
            || "too few responses".to_owned(),
            |it| format!("too few responses; {}", range_of_few([it.low, it.high])),
        ),
        Quantile::Growing => "no steady state".to_owned(),
        Quantile::Unanswered => match (tally.counts.failed(), tally.unfinished_above_all()) {
            (0, unfinished) => format!("{unfinished} unfinished, slower than any response"),
            (failed, unfinished) => format!("{} had no good response", failed + unfinished),
        },
    }
}

/// How fast the backlog grew, and what follows from that.
fn overload(overload: &Overload) -> ReportSection {
    let times = match overload.growth {
        Some(growth) => format!(
            "response times by {} s from what was due in one second to what was due in the next",
            number::fixed(growth, 3)
        ),
        None => "the longest response times with it: not all wait their turn".to_owned(),
    };
    let growth = number::fixed(overload.backlog_growth, 1);
    let end = overload.backlog_at_end;
    let [offered, answered] = [overload.offered, overload.answered].map(number::rate_in_words);
    let grew = format!(
        "the backlog, as it was sampled, grew by {growth} requests each second of {offered} req/s, to {end}, and {times}; the conclusion has the difference of the rates, and goes by when responses ended; there is no steady state, and no mean or percentile of one"
    );
    let inferred = match overload.doubt {
        Some(OverloadDoubt::Failures) => {
            "nothing is inferred: requests without a good response have no response time that could have grown".to_owned()
        }
        Some(OverloadDoubt::Disagreement) => format!(
            "nothing is inferred: the growth says {} req/s, the responses counted say {answered}: it was not one server at one speed",
            number::rate_in_words(overload.capacity.value),
        ),
        None => inferred(overload, &answered),
    };
    ReportSection::new("overload").lines([grew, inferred])
}

fn inferred(overload: &Overload, answered: &str) -> String {
    let by = if overload.growth.is_some() { " of the response times" } else { " of the backlog" };
    let capacity = with_error(overload.capacity, 1);
    let capacity =
        format!("capacity {answered} req/s by the responses counted, {capacity} by the growth{by}");
    match (overload.slots, overload.service_time) {
        (Some(slots), Some(time)) => {
            format!(
                "inferred: {} slots of {}; {capacity}",
                with_error(slots, 2),
                number::time(time)
            )
        }
        _ => format!(
            "inferred: {capacity}; --service TIME, for how long a request holds a slot, tells the slots too"
        ),
    }
}

/// `5.00 ± 0.02`
fn with_error(inferred: Estimate, decimals: usize) -> String {
    let value = number::fixed(inferred.value, decimals);
    let error = number::fixed(inferred.half_width, decimals);
    format!("{value} ± {error}")
}

/// The heading of a table that has a distribution in each row.
const DISTRIBUTION: [&str; 6] = ["", "requests", "mean", "p50", "p99", "max"];

/// Count, mean, p50, p99 and longest; a percentile is shown where a longer time is known.
fn distribution(name: &str, times: &Histogram) -> TableRow {
    let at = |q: f64| {
        let is_supported = times.count() as f64 * (1.0 - q) > 1.0 - 1e-9;
        times.quantile(q).filter(|_| is_supported)
    };
    let [mean, p50, p99, max] = [times.mean(), at(0.5), at(0.99), times.max()].map(TableCell::time);
    TableRow::new([name.into(), TableCell::count(times.count()), mean, p50, p99, max])
}

/// What the generator added to the times: send lag, and the wait for a connection.
fn generator(study: &LoadStudy) -> Option<ReportSection> {
    let tally = &study.run.tally;
    let lag = &tally.send_lag;
    let queued = tally.queued;
    if lag.count() == 0 {
        return None;
    }
    let [own, with_waits] = [&tally.generator_lag, lag]
        .map(|lag| lag.quantile(0.99).map(number::milliseconds).unwrap_or_default());
    let waits = if own != with_waits && !own.is_empty() {
        format!("includes the wait for a connection; without it p99 is {own}")
    } else if queued.count > 0 {
        "includes the wait for a connection".to_owned()
    } else {
        String::new()
    };
    let mut rows = vec![distribution("send lag", lag).noted(waits)];
    if tally.read_lag.count() > 0 {
        rows.push(
            distribution("read lag", &tally.read_lag)
                .noted("by the kernel's stamps; in none of the times"),
        );
    }
    if queued.count > 0 {
        let [mean, max] = [queued.mean(), Some(queued.max)].map(TableCell::time);
        let name = "queued in the generator".into();
        let cells = [name, TableCell::count(queued.count), mean, NONE.into(), NONE.into(), max];
        rows.push(TableRow::new(cells).noted("due while every connection was busy"));
    }
    let title =
        format!("the generator's own part, ms, of {} sent", count_of(lag.count(), "request"));
    Some(ReportSection::new(title).table(DataTable::new(DISTRIBUTION, rows)))
}

/// The phases of the measured good responses; one that never occurred is a dash.
fn phases(study: &LoadStudy) -> Option<ReportSection> {
    let run = &study.run;
    let phases = &run.tally.phases;
    if run.tally.counts.good() == 0 {
        return None;
    }
    let mut resolved = DurationSummary::default();
    study.name_resolution.iter().for_each(|time| resolved.record(*time));
    let opened_before = phases.connect.count == 0 && run.tally.connections_opened > 0;
    let connect_note = if opened_before { "all before the measured requests" } else { "" };
    let resolution_note = if resolved.count > 0 { "once, before the start" } else { "" };
    let rows = [
        ("name resolution", &resolved, resolution_note),
        ("connect", &phases.connect, connect_note),
        ("TLS handshake", &phases.handshake, ""),
        ("request write", &phases.write, ""),
        ("time to first byte", &phases.first_byte, ""),
        ("response read", &phases.read, ""),
    ];
    let rows = rows.map(|(name, phase, note)| {
        let occurred = phase.count > 0;
        let times = [phase.mean(), occurred.then_some(phase.min), occurred.then_some(phase.max)]
            .map(TableCell::time);
        let count = TableCell::counted(occurred.then_some(phase.count));
        TableRow::new([name.into(), count].into_iter().chain(times)).noted(note)
    });
    let table = DataTable::new(["", "count", "average", "fastest", "slowest"], rows);
    Some(ReportSection::new("details by phase of the good responses, ms").table(table))
}

/// Round trip and retransmissions; nothing if the server is on this machine and nothing was
/// retransmitted.
fn network(tally: &Tally) -> Option<ReportSection> {
    let NetworkPath { round_trip, retransmitted, slow, slow_with_retransmission } = tally.network;
    let mut lines = Vec::new();
    if let Some(mean) = round_trip.mean() {
        let mut line = format!(
            "round trip {} over {}",
            number::time(mean),
            count_of(round_trip.count, "connection")
        );
        if round_trip.max > round_trip.min * 2 {
            _ = write!(
                line,
                " ({} to {})",
                number::time(round_trip.min),
                number::time(round_trip.max)
            );
        }
        if let Some(share) = tally.network.share_of_round_trip(&tally.service_time) {
            _ = write!(line, ": {} % of the mean service time", number::percent(share));
        }
        let again = if retransmitted == 0 {
            "no segment was".to_owned()
        } else {
            count_of(retransmitted, "segment")
        };
        lines.extend([line, format!("{again} sent again from here")]);
    }
    if slow_with_retransmission.count > 0 {
        lines.push(format!(
            "{} of the {} that took {} or longer had a retransmission: at least so many were slow because of the network",
            slow_with_retransmission.count,
            count_of(slow, "request"),
            number::time(NetworkPath::SLOW),
        ));
    }
    ReportSection::new("network to the server, by TCP").lines(lines).filled()
}

/// The times of requests that failed, without timeouts.
fn failures(study: &LoadStudy) -> Option<ReportSection> {
    let times = &study.run.tally.failed_response_time;
    let rows = (times.count() > 0).then(|| distribution("response time", times));
    let title = "failures that ended: another population, in none of the figures above (timeouts not among them), ms";
    ReportSection::new(title).table(DataTable::new(DISTRIBUTION, rows)).filled()
}

/// The slowest good responses, each with the time at which its request was due, to look up what
/// else happened then.
fn slowest(study: &LoadStudy) -> Option<ReportSection> {
    let rows = study.run.tally.slowest.requests.iter().map(|request| {
        let due = TableCell::number(Some(request.due.as_secs_f64()), |due| number::fixed(due, 3));
        let [response, service] =
            [request.response_time, request.service_time].map(|time| TableCell::time(Some(time)));
        TableRow::new([due, response, service])
    });
    let table = DataTable::new(["due at, s", "response time", "service time"], rows);
    ReportSection::detail("slowest good responses, ms").table(table).filled()
}

/// Connections and bytes of the whole run, unmeasured requests included.
fn traffic(study: &LoadStudy) -> ReportSection {
    let run = &study.run;
    let tally = &run.tally;
    let seconds = run.elapsed.as_secs_f64();
    let bytes = |name: &str, bytes: u64| {
        let per_second = (seconds > 0.0).then(|| bytes as f64 / seconds);
        let per_second = or_none(per_second, |rate| format!("{}/s", number::bytes(rate)));
        format!("{name} {} ({bytes} bytes), {per_second}", number::bytes(bytes as f64))
    };
    let opened = count_of(tally.connections_opened, "connection");
    let mut connections = format!(
        "{opened} opened, {} closed by the server between two requests",
        tally.closed_by_server
    );
    if tally.closed_for_unasked > 0 {
        let unasked = tally.closed_for_unasked;
        _ = write!(
            connections,
            ", {unasked} by longtail, because the server sent bytes that nobody had asked for"
        );
    }
    // A sweep compares it where the server keeps one, and warns where it does not.
    let own_count = run.claim.is_none().then(|| {
        "the server's own count of requests: not compared, because load asks the server for none"
            .to_owned()
    });
    ReportSection::detail(format!("over the wire, in all {}", number::length(run.elapsed))).lines(
        [connections, bytes("received", tally.received_bytes), bytes("sent", tally.sent_bytes)]
            .into_iter()
            .chain(own_count),
    )
}

/// What the words of a load's report mean.
pub(crate) const WORDS: [(&str, &str); 6] = [
    (
        "service time",
        "from its first byte sent to its last byte back: what server and network take",
    ),
    (
        "send lag",
        "from due to first byte sent: what the generator adds, and the wait for a connection; \
         \"own lag\" and Trust are without that wait",
    ),
    (
        "95 % interval",
        "where the percentile of many such runs would be; responses near in time are not independent, and count for less",
    ),
    ("generator's share", "what the generator's own lateness may have added to it, at most"),
    ("read lag", "from a response's arrival in the kernel until the generator read it"),
    (
        "above",
        "how many responses were slower; with few of them the percentile is a matter of chance",
    ),
];
