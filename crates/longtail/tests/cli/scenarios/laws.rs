//! What must hold for every study, and for those that a scenario asks about.

use std::collections::{BTreeMap, BTreeSet};

use export::otlp::{RunOrigin, request};
use export::{MetricFamily, of_load, of_sweep, text_formats};
use judge::Grade;
use model::run::ShareSource;
use model::{Diagnostic, LoadStudy, Nanos, Outcome, Run, Study, SweepStudy, Verdict, Watch};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message as _;
use testkit::http::KeptRequest;

/// Every request of each run counts in exactly one place, and the parts of the times add up to the
/// whole.
pub(crate) fn assert_sound(study: &Study) {
    let measured = |run: &&Run| run.claim.is_none();
    for run in study.runs().into_iter().filter(measured) {
        assert_conserved(run);
        assert_parts_are_the_whole(run);
        let tally = &run.tally;
        let out = tally.counts.of(Outcome::InFlight) + tally.unfinished.in_flight;
        assert!(
            out <= u64::from(run.connections),
            "each connection has at most one request in flight"
        );
        let is_open = matches!(study, Study::Load(load) if load.plan.load.pace.is_open());
        let not_sent = tally.counts.of(Outcome::NotSent) + tally.unfinished.not_sent;
        assert!(is_open || not_sent == 0, "a closed loop sends only when a connection is free");
    }
    if let Study::Load(load) = study
        && let (Some(planned), None, false) =
            (load.plan.load.requests_total, load.plan.length, load.interrupted)
    {
        // What a lost generator did is unknown.
        let is_lost = load.run.generator.far.iter().any(|far| far.lost.is_some());
        assert!(is_lost || load.run.claim.is_some() || load.run.tally.counts.total() == planned);
    }
}

pub(crate) fn assert_conserved(run: &Run) {
    let tally = &run.tally;
    let by_outcome: u64 = tally.counts.iter().map(|(_, n)| n).sum();
    assert_eq!(tally.counts.total(), by_outcome);
    assert_eq!(tally.counts.total(), tally.counts.good() + tally.counts.failed());
    assert_eq!(tally.per_connection.len(), run.connections as usize);
    assert_eq!(tally.per_connection.iter().sum::<u64>(), tally.counts.good());
    assert_eq!(tally.response_time.count(), tally.counts.good());
    assert_eq!(tally.bad_responses.total(), tally.counts.of(Outcome::BadResponse));
    if !tally.per_worker.is_empty() {
        assert_eq!(
            tally.per_worker.values().map(|count| count.measured).sum::<u64>(),
            tally.counts.answered()
        );
        assert_eq!(
            tally.per_worker.values().map(|count| count.all).sum::<u64>(),
            tally.all_responses()
        );
    }
}

/// Whether all runs of a study are invalid, but only for reasons that a busy machine explains: a
/// window that was over before a request was due, a generator that got its start time too late, or
/// requests so slow at an edge of the window that Little's law or steadiness fails. A wrong count
/// or failed responses are no machine's fault.
pub(crate) fn is_of_the_machine(study: &Study) -> bool {
    let is_so = |run: &Run| {
        let judgement =
            run.judgement.as_ref().filter(|judgement| judgement.verdict == Verdict::Invalid);
        let is_wrong = |check: &Diagnostic| {
            use Diagnostic::{Audited, ClockStep, Conservation, Failures, GeneratorLost};
            matches!(
                check,
                Conservation { .. } | ClockStep { .. } | GeneratorLost { .. } | Audited { .. }
            ) || matches!(check, Failures { planned: 1.., .. })
        };
        let is_fine = |check: &Diagnostic| judge::grade(check) < Grade::Failed || !is_wrong(check);
        judgement.is_some_and(|judgement| judgement.checks.iter().all(is_fine))
    };
    let runs = study.runs();
    !runs.is_empty() && runs.into_iter().all(is_so)
}

/// Checks that the parts of the response times, by the app's stamps and by the kernel's, add up to
/// the whole.
fn assert_parts_are_the_whole(run: &Run) {
    let good = run.tally.counts.good();
    let response_time = run.tally.response_time.sum();
    if let Some(app_times) = &run.app_times {
        let left_out = app_times.silent + app_times.impossible;
        assert_eq!(app_times.all.requests + left_out, good);
        assert!(left_out > 0 || app_times.all.response_time == response_time, "{app_times:?}");
        for parts in std::iter::once(&app_times.all).chain(&app_times.slowest) {
            let known = parts.send_lag + parts.before_app.unwrap_or_default() + parts.app;
            assert_eq!(known + parts.rest(), parts.response_time, "{app_times:?}");
        }
    }
    if let Some(paths) = run.kernel.as_ref().and_then(|view| view.paths.as_ref()) {
        let left_out = paths.silent + paths.impossible + paths.unmatched;
        assert!(
            left_out > 0 || (paths.all.requests, paths.all.response_time) == (good, response_time),
            "{paths:?}"
        );
        for parts in std::iter::once(&paths.all).chain(&paths.slowest) {
            let of_server = parts.server_queue.unwrap_or_default() + parts.app.unwrap_or_default();
            assert_eq!(of_server + parts.left_in_server(), parts.in_server, "{paths:?}");
            let known = parts.send_lag
                + parts.sending
                + parts.accept_queue
                + parts.receive_queue
                + parts.in_server;
            assert_eq!(known + parts.reading, parts.response_time, "{paths:?}");
        }
    }
}

/// Warnings that contradict the client's own count.
pub(crate) fn ledger_warnings(study: &SweepStudy) -> Vec<&Diagnostic> {
    let all = study.warnings.iter().chain(study.runs.iter().flat_map(|run| &run.warnings));
    all.filter(|warning| {
        matches!(
            warning,
            Diagnostic::Conservation { .. }
                | Diagnostic::LedgerUnknown { .. }
                | Diagnostic::ServedForNobody { .. }
        )
    })
    .collect()
}

/// Checks that the server's own count of each run is the client's, with the same workers in all
/// runs.
pub(crate) fn assert_agreed(study: &SweepStudy) {
    assert_eq!(ledger_warnings(study), Vec::<&Diagnostic>::new());
    let mut servers = BTreeSet::new();
    for run in &study.runs {
        let tally = &run.tally;
        let checks = &run.judgement.as_ref().unwrap().checks;
        let mut conserved =
            checks.iter().filter(|check| matches!(check, Diagnostic::Conservation { .. }));
        assert!(conserved.all(|check| judge::grade(check) == Grade::Passed), "{checks:?}");
        let is_by_header = run.workers.iter().all(|share| share.source == ShareSource::Header);
        assert_eq!(tally.per_worker.is_empty(), !is_by_header);
        // Puma's own count includes the warm-up.
        let answers = if is_by_header { tally.counts.answered() } else { tally.all_responses() };
        assert_eq!(run.workers.iter().map(|share| share.requests).sum::<u64>(), answers);
        assert!(
            run.workers.iter().all(|share| share.worker.parse::<u32>().is_ok()),
            "{:?}",
            run.workers
        );
        assert!(study.plan.stream.keep_alive || tally.connections_opened == tally.all_requests());
        servers.insert(run.workers.iter().map(|share| share.worker.clone()).collect::<Vec<_>>());
    }
    assert_eq!(servers.len(), 1, "the same workers");
}

/// Checks that the kernel saw each response, and saw each worker send those that name it. With
/// `later`, the first two workers were replaced, so only the others count. Longtail looks for
/// processes once a second, so a new worker must have been seen only if it served for more than
/// about two seconds, at 0.02 s per request.
pub(super) fn assert_followed(run: &Run, later: bool) {
    let Some(view) = &run.kernel else { return };
    let sums = (view.unfollowed, view.lost, view.answers());
    assert!(later || sums == (0, 0, run.tally.all_responses()), "{view:?}: {:?}", run.warnings);
    let named =
        run.tally.per_worker.iter().map(|(pid, count)| (pid.parse::<u32>().unwrap(), count.all));
    let named: BTreeMap<u32, u64> = named.collect();
    for (pid, answers) in named.into_iter().skip(if later { 2 } else { 0 }) {
        let process =
            view.processes.iter().find(|process| process.pid == pid).expect("the worker responded");
        let is_looked_at =
            |watch: &Watch| watch.curves("cpu").any(|(_, curve)| curve.of == pid.to_string());
        assert_eq!(process.answers, answers, "{pid}");
        let is_seen = process.run_queue.count > 0 && run.watch.as_ref().is_some_and(is_looked_at);
        assert!(is_seen || later && answers <= 200, "{pid}: {process:?}");
    }
}

/// Checks that the log has each request once, in order of completion, with the outcomes that the
/// study counts.
pub(super) fn assert_logged(csv: &str, study: &LoadStudy) {
    let (header, lines) = csv.split_at(report::request_logs::csv_header().len());
    assert_eq!(header, report::request_logs::csv_header());
    let mut numbers = Vec::new();
    let mut counted = BTreeMap::<String, u64>::new();
    let mut bytes = 0;
    let mut last = f64::MIN;
    for line in lines.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [number, _, _, _, _, _, _, outcome, size, reason] = fields[..] else {
            panic!("{line}")
        };
        assert_eq!(
            reason.is_empty(),
            outcome != "bad_response",
            "only a bad response has a reason: {line}"
        );
        // A request that was not sent has no time for that, and a skipped one has no end.
        let time = |n: usize| -> f64 {
            if fields[n].is_empty() { fields[1] } else { fields[n] }.parse().unwrap()
        };
        assert!(time(1) <= time(2) && time(2) <= time(3) && last <= time(3), "{line}");
        last = time(3);
        numbers.push(number.parse::<u64>().unwrap());
        *counted.entry(outcome.to_owned()).or_default() += 1;
        bytes += size.parse::<u64>().unwrap();
    }
    numbers.sort_unstable();
    let is_whole = numbers.iter().copied().eq(0..numbers.len() as u64);
    numbers.dedup();
    assert!(
        is_whole || study.interrupted && numbers.len() == csv.lines().count() - 1,
        "each request once"
    );
    let tally = &study.run.tally;
    let mut expected = BTreeMap::from(tally.counts.clone());
    for (name, n) in BTreeMap::from(tally.unmeasured.clone()) {
        *expected.entry(name).or_default() += n;
    }
    let left =
        [("in_flight_at_end", tally.unfinished.in_flight), ("not_sent", tally.unfinished.not_sent)];
    for (name, n) in left.into_iter().filter(|(_, n)| *n > 0) {
        *expected.entry(name.to_owned()).or_default() += n;
    }
    assert_eq!(counted, expected);
    assert!(bytes <= tally.received_bytes);
}

/// Checks that the last scrape, or the statsd packets, have exactly the figures of the study.
pub(super) fn assert_exported(text: &str, study: &Study) {
    let families: Vec<MetricFamily> = match study {
        Study::Load(load) => of_load(load),
        Study::Sweep(sweep) => {
            sweep.runs.iter().zip(1..).flat_map(|(run, n)| of_sweep(sweep, run, n)).collect()
        }
        _ => panic!("longtail exports no figures of this kind of study"),
    };
    if text.starts_with('#') {
        assert!(text.ends_with(&text_formats::exposition(&families)), "{text}");
        return;
    }
    let received: BTreeSet<String> =
        text.lines().filter(|line| line.starts_with("longtail.run.")).map(str::to_owned).collect();
    assert_eq!(received, text_formats::lines(&families).iter().map(ToString::to_string).collect());
}

/// Checks that each run was posted once, byte for byte as `export` encodes it. The tests of
/// `export` compare each figure with the run.
pub(super) fn assert_posted(posts: &[KeptRequest], study: &SweepStudy) {
    assert_eq!(posts.len(), study.runs.len());
    for ((post, run), number) in posts.iter().zip(&study.runs).zip(1..) {
        assert!(post.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", post.head);
        assert_eq!(post.field("content-type"), Some("application/x-protobuf"));
        let decoded = ExportMetricsServiceRequest::decode(post.body.as_slice()).unwrap();
        let metrics = &decoded.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Gauge(gauge)) = &metrics[0].data else { panic!("{:?}", metrics[0]) };
        // A study doesn't have the wall-clock time of its runs.
        let [begun, ended] =
            [gauge.data_points[0].start_time_unix_nano, gauge.data_points[0].time_unix_nano]
                .map(Nanos);
        assert!(Nanos(0) < begun && begun + run.measured <= ended, "{begun} to {ended}");
        let origin = RunOrigin { study: &study.started_at, begun, ended };
        assert_eq!(post.body, request(&of_sweep(study, run, number), &origin));
    }
}
