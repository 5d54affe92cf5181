//! The report of a load: how much, how fast, where the time went, what went wrong, and what is doubtful.

use std::fmt::Write as _;

use model::forecast::{Estimate, Overload, OverloadDoubt};
use model::{Diagnostic, Grade, LoadStudy, Nanos, NetworkPath, Outcome, Pace, Profile, counts};

use crate::load_facts::{good_answers, sent};
use crate::named_runs::NamedRun;
use crate::number::{self, count_of, or_none};
use crate::tree::{DataTable, ListItem, ReportSection, ReportTree, TableCell, TableRow};
use crate::{claimed, expectations, far, load_facts, load_picture, load_times, server_view, verdicts};

/// What is said of it.
pub fn report(study: &LoadStudy) -> ReportTree {
    let runs = [NamedRun { name: String::new(), run: &study.run }];
    if let Some(claim) = &study.run.claim {
        let rest =
            [expectations::section(&study.plan.thresholds, &runs), warnings(study), Some(claimed::output(claim))];
        return ReportTree {
            command_line: study.command_line.clone(),
            facts: load_facts::of_load(study),
            sections: claimed::figures(claim).into_iter().chain(rest.into_iter().flatten()).collect(),
            total_time: total_time(study),
            ..ReportTree::default()
        };
    }
    // An invalid run has no headline figure.
    let is_shown = !verdicts::hides(study.run.judgement.as_ref());
    let sections = [
        verdict(study),
        is_shown.then(|| rates(study)),
        load_times::answers(study).filter(|_| is_shown),
        overload(study).filter(|_| is_shown),
        picture(study).filter(|_| is_shown),
        load_times::over_time(study).filter(|_| is_shown),
        load_times::generator(study),
        far::section(&runs),
        load_times::phases(study).filter(|_| is_shown),
        network(study),
        statuses(study),
        errors(study),
        load_times::failures(study),
        load_times::slowest(study).filter(|_| is_shown),
        workers(study),
        server_view::statsd(&runs),
        Some(traffic(study)),
        study
            .plan
            .log
            .as_ref()
            .map(|log| ReportSection::detail("log, one line a request").lines([log.display().to_string()])),
        ReportSection::new("checks of the answers").lines(study.checks.clone()).filled(),
        expectations::section(&study.plan.thresholds, &runs),
        warnings(study),
    ];
    ReportTree {
        command_line: study.command_line.clone(),
        facts: load_facts::of_load(study),
        table: None,
        sections: sections.into_iter().flatten().collect(),
        glossary: if study.run.tally.counts.total() == 0 { Vec::new() } else { WORDS.to_vec() },
        total_time: total_time(study),
    }
}

fn total_time(study: &LoadStudy) -> String {
    let elapsed = study.run.elapsed;
    let total = if elapsed < Nanos::from_secs(60) { number::length(elapsed) } else { number::minutes(elapsed) };
    format!("total time {total}")
}

/// What limited the run, with the evidence.
fn verdict(study: &LoadStudy) -> Option<ReportSection> {
    let judgement = study.run.judgement.as_ref()?;
    let counts = &study.run.tally.counts;
    let failures = Diagnostic::Failures { failed: counts.failed(), planned: counts.total() };
    // Whose limit it was is not all that there is to say of a server that answers only some.
    let failed = match failures.grade() {
        Grade::Doubtful => {
            format!(", {} % of requests failed", number::percent_tenths(counts.failed() as f64 / counts.total() as f64))
        }
        _ => String::new(),
    };
    let hints = verdicts::hints(judgement).into_iter().map(str::to_owned).collect();
    let item = ListItem { hints, ..ListItem::new(verdicts::evidence(judgement).join("; ")) };
    Some(ReportSection::new(format!("verdict: {}{failed}", verdicts::name(judgement.verdict))).list([item]))
}

/// How much was wanted, sent and answered, of the requests that were due in the measured window: the first thing to look at, since
/// a generator that sends less than it was asked for has measured something else.
fn rates(study: &LoadStudy) -> ReportSection {
    let (plan, run) = (&study.plan, &study.run);
    let counts = &run.tally.counts;
    let (planned, sent, good) = (counts.total(), sent(study), counts.good());
    let offered = run.offered_rate(&plan.pace);
    let known = |rate: f64| if run.measured.0 == 0 { None } else { Some(rate) };
    let in_words = |rate: Option<f64>| or_none(rate, |rate| format!("{}/s", number::rate_in_words(rate)));
    let requested = match &plan.pace {
        // What was asked, where that is one number; a random law offers a little more or less.
        Pace::Open { profile: Profile::Flat { rate }, .. } => in_words(Some(rate.per_second())),
        Pace::Open { .. } => in_words(offered.and_then(known)),
        Pace::Closed => "as fast as answers come".to_owned(),
    };
    let tool_words = format!(
        "requested: {requested} - achieved: {}, submit failures: {}, wait failures: {}",
        in_words(known(run.completed_rate())),
        number::count(planned - sent),
        number::count(sent - good),
    );
    let row = |name: &str, n: u64, rate: Option<f64>, note: String| {
        let part = (planned > 0).then(|| n as f64 / planned as f64);
        let part = TableCell::number(part, |part| number::or_zero(part, number::percent));
        let rate = TableCell::number(rate, |rate| number::or_zero(rate, number::rate));
        TableRow::new([name.into(), TableCell::count(n), part, rate]).noted(note)
    };
    let failures = |n: u64, what: &str| if n == 0 { String::new() } else { format!("{} {what}", number::count(n)) };
    // In a closed loop nothing is offered that is not sent, unless it fails to be.
    let offered = plan.pace.is_open().then(|| row("offered", planned, offered.and_then(known), String::new()));
    let rows = [
        row("sent", sent, known(run.sent_rate()), failures(planned - sent, "never sent")),
        row("completed", good, known(run.completed_rate()), failures(sent - good, "sent, no good answer")),
    ];
    let table = DataTable::new(["", "requests", "% of all", "per second"], offered.into_iter().chain(rows));
    ReportSection::new(format!("rates over the measured {}", number::length(run.measured)))
        .lines(study.interrupted.then(|| ended_early(study)).into_iter().chain([tool_words]))
        .table(table)
}

fn ended_early(study: &LoadStudy) -> String {
    let planned = study.plan.length.map(|length| format!(" of {} planned", number::span(length))).unwrap_or_default();
    let asked = study.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::StoppedEarly { .. }));
    // A server that is gone ends no load.
    let who = if asked { "--stop-if" } else { "the user" };
    format!("ended early, by {who}: {}{planned}", number::length(study.run.measured))
}

fn picture(study: &LoadStudy) -> Option<ReportSection> {
    let title = format!("response times of {}", good_answers(study));
    ReportSection::new(title).table(load_picture::table(&study.run.tally.response_time)).filled()
}

/// The growth and what follows from it; nothing of a load that was no overload.
fn overload(study: &LoadStudy) -> Option<ReportSection> {
    let overload = study.run.overload.as_ref()?;
    let times = match overload.growth {
        Some(growth) => format!("response times by {} s", number::fixed(growth, 3)),
        None => "the longest response times with it: not all wait their turn".to_owned(),
    };
    let mut lines = vec![format!(
        "the backlog grew by {} requests each second of {} req/s, to {}, and {times}; there is no steady state, and no percentile of one",
        number::fixed(overload.backlog_growth, 1),
        number::rate_in_words(overload.offered),
        number::count(overload.backlog_at_end),
    )];
    lines.push(match overload.doubt {
        Some(doubt) => format!("nothing is inferred: {}", why(overload, doubt)),
        None => inferred(overload),
    });
    Some(ReportSection::new("overload").lines(lines))
}

fn inferred(overload: &Overload) -> String {
    let capacity = format!(
        "capacity {} req/s by the growth{}, {} by the answers counted",
        with_error(overload.capacity, 1),
        if overload.growth.is_some() { "" } else { " of the backlog" },
        number::rate_in_words(overload.answered)
    );
    match (overload.slots, overload.service_time) {
        (Some(slots), Some(time)) => {
            format!("inferred: {} slots of {}; {capacity}", with_error(slots, 2), number::time(time))
        }
        _ => format!("inferred: {capacity}; --service TIME, for how long a request holds a slot, tells the slots too"),
    }
}

/// `5.00 ± 0.02`.
fn with_error(inferred: Estimate, decimals: usize) -> String {
    format!("{} ± {}", number::fixed(inferred.value, decimals), number::fixed(inferred.half_width, decimals))
}

fn why(overload: &Overload, doubt: OverloadDoubt) -> String {
    match doubt {
        OverloadDoubt::Failures => {
            "requests without a good answer have no response time that could have grown".to_owned()
        }
        OverloadDoubt::Disagreement => format!(
            "the growth says {} req/s, the answers counted say {}: it was not one server at one speed",
            number::rate_in_words(overload.capacity.value),
            number::rate_in_words(overload.answered)
        ),
    }
}

/// Round trip and retransmissions; nothing where the server is on this machine and nothing was sent again.
fn network(study: &LoadStudy) -> Option<ReportSection> {
    let tally = &study.run.tally;
    let NetworkPath { round_trip, retransmitted, slow, slow_with_retransmission } = tally.network;
    let mut lines = Vec::new();
    if let Some(mean) = round_trip.mean() {
        let connections = count_of(round_trip.count, "connection");
        let mut line = format!("round trip {} over {connections}", number::time(mean));
        if round_trip.max > round_trip.min * 2 {
            let _ = write!(line, " ({} to {})", number::time(round_trip.min), number::time(round_trip.max));
        }
        if let Some(share) = tally.network.share_of_round_trip(&tally.service_time) {
            let _ = write!(line, ": {} % of the mean service time", number::percent(share));
        }
        lines.push(line);
        lines.push(if retransmitted == 0 {
            "no segment was sent again from here".to_owned()
        } else {
            format!("{} sent again from here", count_of(retransmitted, "segment"))
        });
    }
    if slow_with_retransmission.count > 0 {
        lines.push(format!(
            "{} of the {} that took {} or longer had a retransmission: at least so many were slow because of the network",
            number::count(slow_with_retransmission.count),
            count_of(slow, "request"),
            number::time(NetworkPath::SLOW),
        ));
    }
    ReportSection::new("network to the server, by TCP").lines(lines).filled()
}

/// The status codes, exactly.
fn statuses(study: &LoadStudy) -> Option<ReportSection> {
    let note = |outcome: Outcome| if outcome.is_good() { "" } else { "failed" };
    let rows = endings(study, |outcome| matches!(outcome, Outcome::Answered(_)), note);
    ReportSection::new("status codes").table(DataTable::new(["", "answers", "% of all"], rows)).filled()
}

/// What ended without a whole, good answer, by kind; and why answers were bad.
fn errors(study: &LoadStudy) -> Option<ReportSection> {
    let note = |outcome: Outcome| match outcome {
        Outcome::Skipped => "never sent: due while every connection was busy",
        outcome if outcome.is_connect() => "never sent",
        _ => "",
    };
    let rows = endings(study, |outcome| !matches!(outcome, Outcome::Answered(_)), note);
    let tally = &study.run.tally;
    let why = tally.counts.iter().filter_map(|(outcome, _)| Some((outcome, tally.reason(outcome)?)));
    let why = why.map(|(outcome, why)| format!("{}: {why}", in_words(outcome)));
    ReportSection::new("errors by kind").table(DataTable::new(["", "requests", "% of all"], rows)).lines(why).filled()
}

/// How the requests ended.
fn endings(study: &LoadStudy, wanted: fn(Outcome) -> bool, note: fn(Outcome) -> &'static str) -> Vec<TableRow> {
    let counts = &study.run.tally.counts;
    let planned = counts.total() as f64;
    let row = |(outcome, n): (Outcome, u64)| {
        let part = TableCell::number(Some(n as f64 / planned), number::percent);
        TableRow::new([in_words(outcome).into(), TableCell::count(n), part]).noted(note(outcome))
    };
    counts.iter().filter(|(outcome, _)| wanted(*outcome)).map(row).collect()
}

fn in_words(outcome: Outcome) -> String {
    counts::name(outcome).replace('_', " ")
}

/// The workers' shares, where the server names its workers.
fn workers(study: &LoadStudy) -> Option<ReportSection> {
    let workers = &study.run.tally.per_worker;
    let total: u64 = workers.values().map(|count| count.measured).sum();
    let even = total as f64 / workers.len() as f64;
    let mut named: Vec<_> = workers.iter().collect();
    named.sort_unstable_by_key(|(name, _)| (name.len(), name.as_str()));
    let rows = named.into_iter().map(|(name, count)| {
        let share = |of: f64| (total > 0).then(|| count.measured as f64 / of);
        TableRow::new([
            name.as_str().into(),
            TableCell::count(count.measured),
            TableCell::number(share(total as f64), number::percent_tenths),
            TableCell::number(share(even).map(|ratio| ratio - 1.0), number::deviation),
        ])
    });
    let title = "answers by worker, as the response header names it; deviation from an even share";
    ReportSection::detail(title).table(DataTable::new(["worker", "answers", "%", "±%"], rows)).filled()
}

/// Connections and bytes of the whole run, unmeasured requests included.
fn traffic(study: &LoadStudy) -> ReportSection {
    let (run, tally) = (&study.run, &study.run.tally);
    let seconds = run.elapsed.as_secs_f64();
    let row = |name: &str, bytes: u64| {
        let per_second = (seconds > 0.0).then(|| bytes as f64 / seconds);
        let per_second = TableCell::number(per_second, |rate| format!("{}/s", number::bytes(rate)));
        TableRow::new([name.into(), TableCell::count(bytes), number::bytes(bytes as f64).into(), per_second])
    };
    let mut connections = format!(
        "{} opened, {} closed by the server between two requests",
        count_of(tally.connections_opened, "connection"),
        number::count(tally.closed_by_server)
    );
    if tally.closed_for_unasked > 0 {
        let unasked = number::count(tally.closed_for_unasked);
        _ = write!(connections, ", {unasked} by us, because it sent then what nobody had asked for");
    }
    let rows = [row("received", tally.received_bytes), row("sent", tally.sent_bytes)];
    ReportSection::detail(format!("over the wire, in all {}", number::length(run.elapsed)))
        .lines([connections])
        .table(DataTable::new(["", "bytes", "", ""], rows))
}

/// Each doubt with its hint, a hint once.
fn warnings(study: &LoadStudy) -> Option<ReportSection> {
    let alike = study.run.warnings.chunk_by(|a, b| a.hint() == b.hint());
    let item = |warnings: &[Diagnostic]| {
        let lines = warnings.iter().map(ToString::to_string).collect();
        ListItem { lines, ..ListItem::default() }.hint(warnings[0].hint())
    };
    ReportSection::new("warnings").list(alike.map(item)).filled()
}

/// What the words of the report mean.
const WORDS: [(&str, &str); 10] = [
    ("response time", "from when a request was due to its last byte back: what a user waits"),
    ("service time", "from its first byte sent to its last byte back: what server and network take"),
    ("send lag", "from due to first byte sent: what the generator adds, the wait for a connection included"),
    ("offered", "requests that were due; completed: good answers (2xx, 3xx); % of all: of those that were due"),
    ("submit failures", "never sent; wait failures: sent, and no good answer came"),
    (
        "95 % interval",
        "where the percentile of many such runs would be; answers near in time are not independent, and count for less",
    ),
    ("of it ours", "what the generator's own lateness may have added to it, at most"),
    ("read lag", "from an answer's arrival in the kernel until the generator read it"),
    ("above", "how many answers were slower; with few of them the percentile is a matter of chance"),
    ("a dash", "not known, or too few answers to tell, or requests without a good answer could change it"),
];
