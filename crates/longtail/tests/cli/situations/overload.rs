//! More is offered than the server can do.

use model::{Diagnostic, LoadStudy, Nanos, Quantile, Verdict};

use super::{Caused, Cells, Row, Seen, four_slots_served, row, wants};
use crate::lab::{Lab, Running, free_port};
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("an overload that time ends", "80 requests a second for 3 s to four slots of 100 ms", OVERLOADED, || {
            loaded("--rate 80/s --for 3s")
        })
        .proves(grows),
        row("an overload that a count ends", "240 requests, 80 a second, to the same", OVERLOADED, || {
            loaded("--rate 80/s -n 240")
        })
        .proves(grows),
        row(
            "an overload that waits in the generator",
            "80 requests a second for 3 s to the same over 12 connections",
            OVERLOADED,
            || loaded("--rate 80/s --for 3s -c 12"),
        )
        .proves(grows),
        row(
            "an overload, and an objective that its times keep",
            "the same, --fail-if 'p99 > 100s'",
            Cells { exit: Some(1), ..OVERLOADED },
            || loaded("--rate 80/s --for 3s --fail-if p99>100s"),
        )
        .soaked(),
        row(
            "an overload of independent arrivals",
            "80 requests a second for 3 s, --arrivals poisson",
            OVERLOADED,
            || loaded("--rate 80/s --for 3s --arrivals poisson"),
        ),
        row("an overload with a connection for each request", "80 requests a second for 3 s, -k", OVERLOADED, || {
            loaded("--rate 80/s --for 3s -k")
        })
        .soaked(),
        row(
            "an overload of which no more is sent than fits",
            "80 requests a second for 3 s over 4 connections, --late skip",
            OVERLOADED,
            || loaded("--rate 80/s --for 3s -c 4 --late skip"),
        ),
        row("a rate that grows past what the server can do", "--ramp 20/s..120/s in 3 s", OVERLOADED, || {
            loaded("--ramp 20/s..120/s --for 3s")
        })
        .soaked(),
        row("a closed loop with more connections than slots", "8 connections to the same", OVERLOADED, || {
            loaded("-c 8 --for 3s")
        }),
        row("a closed loop that thinks", "2 connections, --think 200ms", UNLOADED, || {
            loaded("-c 2 --think 200ms --for 3s")
        })
        .soaked(),
        row(
            "a rate that is kept with a connection for each request",
            "20 requests a second for 3 s, -k",
            UNLOADED,
            || loaded("--rate 20/s --for 3s -k"),
        ),
        row("a rate that is kept, and ended by a count", "60 requests, 20 a second", UNLOADED, || {
            loaded("--rate 20/s -n 60")
        })
        .proves(|seen| assert_eq!(seen.load_study().run.overload, None)),
        row(
            "an overload of which the time of a request is known",
            "80 requests a second for 3 s, --service 100ms",
            OVERLOADED,
            || loaded("--rate 80/s --for 3s --service 100ms"),
        )
        .proves(|seen| {
            let overload = seen.load_study().run.overload.as_ref().unwrap();
            let slots = overload.slots.as_ref().unwrap().value;
            assert!(overload.doubt.is_some() || (2.5..4.3).contains(&slots), "{overload:?}");
        }),
        row(
            "a rate that is kept, and an objective that is missed",
            "20 requests a second for 3 s, --fail-if 'p50 > 1ms'",
            Cells { exit: Some(1), ..UNLOADED },
            || loaded("--rate 20/s --for 3s --fail-if p50>1ms"),
        ),
        row(
            "a rate that is kept, and an objective that is kept",
            "20 requests a second for 3 s, --fail-if 'p50 > 100s'",
            UNLOADED,
            || loaded("--rate 20/s --for 3s --fail-if p50>100s"),
        )
        .soaked(),
        row(
            "an overload of Puma that no median shows",
            "puma -t5:5, 100 ms a request, 60 requests a second for 4 s, keep-alive",
            OVERLOADED,
            of_puma,
        )
        .proves(|seen| {
            let run = &seen.load_study().run;
            let overload = run.overload.as_ref().unwrap_or_else(|| panic!("{:?}", run.statistics));
            assert_eq!(run.tally.counts.good(), 240, "all are answered in the end");
            assert!(overload.capacity.value < 51.0 && overload.backlog_growth > 9.0, "{overload:?}");
            assert_eq!(run.response_time(0.5), Quantile::Growing, "whatever it is, it is of no state that lasts");
        }),
    ]
}

/// More than 40 a second it cannot do, and on a busy machine it does less.
fn grows(seen: &Seen) {
    let LoadStudy { run, plan, .. } = seen.load_study();
    let offered = run.offered_rate(&plan.pace);
    assert!(offered.is_some_and(|rate| (76.0..84.0).contains(&rate)), "{offered:?}");
    assert!([0.5, 0.9, 0.99].iter().all(|q| run.response_time(*q) == Quantile::Growing));
    let overload = run.overload.as_ref().unwrap_or_else(|| panic!("{:?}", run.statistics));
    assert!((39.0..80.0).contains(&overload.backlog_growth), "{overload:?}");
    assert!(overload.capacity.value < 41.0 && overload.backlog_at_end > 110, "{overload:?}");
    let growth = run.warnings.iter().find_map(|warning| match warning {
        Diagnostic::Growing { growth, .. } => *growth,
        _ => None,
    });
    // Each second brings two seconds' work: one more to wait for.
    assert!(growth.is_some_and(|growth| (0.5..1.6).contains(&growth)), "{growth:?}");
    let checks = &run.judgement.as_ref().unwrap().checks;
    assert!(!checks.iter().any(|check| matches!(check, Diagnostic::Steadiness { .. })), "it is not asked");
}

const OVERLOADED: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

const UNLOADED: Cells = Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), limit: None, discipline: None };

/// A load on four slots of 100 ms, in one line.
fn loaded(words: &str) -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let ended = load(&lab, &format!("{words} {}", server.url));
    Ok(Seen::load(&ended, &study(&lab)))
}

/// Five threads of 100 ms are 50 requests a second, and on kept connections fewer.
fn of_puma() -> Caused {
    wants("puma")?;
    let (lab, port) = (Lab::new(), free_port());
    let app = lab.write("app.ru", "run lambda { |_| sleep 0.1; [200, {}, ['ok']] }\n");
    let _puma = Running::puma(&lab, port, &app, "-t5:5");
    let ended = load(&lab, &format!("--rate 60/s --for 4s http://127.0.0.1:{port}/"));
    Ok(Seen::load(&ended, &study(&lab)))
}
