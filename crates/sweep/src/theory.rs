//! Which order of service a server ought to have, by what it is, its version and the load's settings.
//!
//! Source: Puma 5.6.9, 6.6.1, 7.0.4 and 7.1.0, `lib/puma/server.rb` (`process_client`, `handle_servers`): see
//! `queueing::{polling, split, throttle}`.

use model::forecast::{ServiceTime, ServiceTimeSource};
use model::{Discipline, Nanos, Run, ServerFacts, ServerKind, ServerPlan, StreamPlan, Theory};
use queueing::beside;
use queueing::discipline::{Connections, Scatter};
use queueing::throttle::{self, Rest};

/// Theory beside a run with or without keep-alive; `None` where there is none.
pub(crate) fn beside(
    run: &Run,
    keep_alive: bool,
    (plan, stream): (&ServerPlan, &StreamPlan),
    server: &ServerFacts,
    known: Option<ServiceTime>,
) -> Option<Theory> {
    let known = known?;
    let setting = beside::Server {
        workers: server.workers,
        threads: server.threads,
        service_time: known.time,
        scatter: scatter(plan, stream, known.source),
        connections_are: if keep_alive { Connections::Kept } else { Connections::OfOneRequest },
        expected: expected(&plan.kind, server, keep_alive, known.time),
    };
    beside::theory(run, &setting)
}

/// Our own apps sleep for as long as they are asked to; of others it is not known.
fn scatter(plan: &ServerPlan, stream: &StreamPlan, source: ServiceTimeSource) -> Scatter {
    let is_ours = plan.rackup.is_none()
        && stream.path.is_none()
        && stream.body.is_none()
        && !matches!(plan.kind, ServerKind::Command { .. });
    if is_ours && source == ServiceTimeSource::Given { Scatter::Constant } else { Scatter::Some }
}

/// The order of service, where it is known.
///
/// From Puma 7.0.4 a connection for each request is accepted by a worker that has little to do, as far as the throttle is strong
/// enough for the service time: then the order is between shared and split, and none is expected.
fn expected(kind: &ServerKind, server: &ServerFacts, keep_alive: bool, service_time: Nanos) -> Option<Discipline> {
    match kind {
        ServerKind::Builtin => Some(Discipline::Shared),
        ServerKind::Command { .. } => None,
        ServerKind::Puma { .. } => {
            let version = version(server.version.as_ref()?)?;
            let is_throttled = || {
                let rest = throttle::rest(server.threads, service_time.as_secs_f64());
                version >= [7, 0, 4] && !matches!(rest, Ok(Rest::Grows))
            };
            match (version[0], keep_alive) {
                (..=6, true) => Some(Discipline::Turns),
                (..=6, false) => Some(Discipline::Shared),
                _ if server.workers <= 1 => Some(Discipline::Shared),
                (_, false) if is_throttled() => None,
                _ => Some(Discipline::Split),
            }
        }
    }
}

/// `7.0.4` and `8.0.0.dev` as numbers; what is missing is 0.
fn version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.');
    let major = parts.next()?.parse().ok()?;
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    Some([major, next(), next()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_and_its_settings_have_an_order_of_service() {
        let puma = ServerKind::Puma { command: None };
        let of = |version: Option<&str>, keep_alive, workers| {
            let version = version.map(str::to_owned);
            let server = ServerFacts { version, workers, threads: 5, ..ServerFacts::default() };
            expected(&puma, &server, keep_alive, Nanos::from_millis(200))
        };
        for (version, keep_alive, workers, discipline) in [
            ("5.6.5", true, 1, Some(Discipline::Turns)),
            ("6.6.1", true, 4, Some(Discipline::Turns)),
            ("6.6.1", false, 4, Some(Discipline::Shared)),
            ("7.0.2", true, 4, Some(Discipline::Split)),
            ("7.1.0", true, 1, Some(Discipline::Shared)),
            ("7.1.0", false, 1, Some(Discipline::Shared)),
            ("7.1.0", false, 2, Some(Discipline::Split)),
            ("7.0.2", false, 2, Some(Discipline::Split)),
            ("8.0.0.dev", true, 2, Some(Discipline::Split)),
            ("main", true, 2, None),
        ] {
            assert_eq!(of(Some(version), keep_alive, workers), discipline, "{version} {keep_alive} {workers}");
        }
        assert_eq!(of(None, true, 1), None);
        // A fast app: the throttle keeps what is new in the kernel's queue.
        let server =
            ServerFacts { version: Some("7.1.0".to_owned()), workers: 2, threads: 5, ..ServerFacts::default() };
        assert_eq!(expected(&puma, &server, false, Nanos::from_millis(5)), None);
        assert_eq!(expected(&puma, &server, true, Nanos::from_millis(5)), Some(Discipline::Split));
        let builtin = expected(&ServerKind::Builtin, &ServerFacts::default(), true, Nanos::from_millis(5));
        assert_eq!(builtin, Some(Discipline::Shared));
    }
}
