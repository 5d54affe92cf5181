//! The order in which a Puma serves requests, by its version and its configuration.
//!
//! Source: Puma 5.6.5, 6.6.1, 7.0.4, 7.2.1, 8.0.2 and its main branch of 2026-07,
//! `lib/puma/server.rb` (`process_client`, `handle_servers`), `thread_pool.rb`, `request.rb`,
//! `response.rb`, `cluster_accept_loop_delay.rb`: see `queueing::puma`.

use model::{Discipline, Nanos, PumaSettings, ServerFacts};
use queueing::discipline::{ConnectionDealing, ServiceOrder};
use queueing::puma;

use super::server_under_test::ServedLoad;

/// The order of this Puma; unknown if its version or its settings are.
pub(super) fn service_order(server: &ServerFacts, load: &ServedLoad) -> ServiceOrder {
    let version = server.version.as_deref().and_then(version);
    match (version, &server.settings) {
        (Some(version), Some(settings)) if version[0] <= 6 => {
            up_to_6(settings, load.unknown_order())
        }
        (Some(version), Some(settings)) => from_7(version, settings, server, load),
        (None, _) | (_, None) => load.unknown_order(),
    }
}

/// Puma up to 6. Workers accept only while a thread is free, so connections wait in the kernel's
/// queue, which all workers share. A thread serves a connection for a turn and then closes it if
/// another one waits.
fn up_to_6(settings: &PumaSettings, unknown: ServiceOrder) -> ServiceOrder {
    let is_kept = unknown.is_kept && keeps_alive(settings);
    ServiceOrder {
        discipline: Some(if is_kept { Discipline::Turns } else { Discipline::Shared }),
        is_kept,
        turn: settings.max_fast_inline.unwrap_or(puma::TURN),
        ..unknown
    }
}

/// Puma from 7 on. Workers accept every connection, and requests wait in the worker's own queue
/// (`@todo`), first come, first served. With keep-alive the next request of a connection goes to
/// the end of that queue, through the reactor or directly (7.0.3), unless a thread is free anyway
/// (7.1). From 7.0.4 on a busy worker accepts later, so that another one may be first.
fn from_7(
    version: [u32; 3],
    settings: &PumaSettings,
    server: &ServerFacts,
    load: &ServedLoad,
) -> ServiceOrder {
    let unknown = load.unknown_order();
    let connections_each = f64::from(load.connections) / f64::from(server.workers.max(1));
    let is_kept = unknown.is_kept && keeps_alive(settings);
    let longest = settings.wait_for_less_busy_worker.unwrap_or(LONGEST);
    let is_throttled = version >= [7, 0, 4] && server.workers > 1 && longest > Nanos::ZERO;
    // If a worker accepts no faster than it serves, connections wait in the kernel, too: then
    // requests wait neither in one queue nor in one for each worker.
    let waits_in_the_kernel = || {
        let service = load.service_time.as_secs_f64();
        let rest = puma::held_at_rest(longest.as_secs_f64(), server.threads, service);
        matches!(rest, Ok(Some(held)) if held < connections_each)
    };
    let discipline = match settings.queue_requests {
        _ if server.workers <= 1 => Some(Discipline::Shared),
        // After 8.0.2 a worker without the reactor accepts only while a thread is free, as up to 6.
        Some(false) if settings.waits_until_not_full == Some(true) => Some(Discipline::Shared),
        _ if is_kept => Some(Discipline::Split),
        _ if is_throttled && waits_in_the_kernel() => None,
        _ => Some(Discipline::Split),
    };
    let dealing = if is_throttled {
        ConnectionDealing::Throttled(longest)
    } else {
        ConnectionDealing::ByChance
    };
    ServiceOrder { discipline, is_kept, dealing, ..unknown }
}

/// The default of `wait_for_less_busy_worker` from Puma 6 on.
const LONGEST: Nanos = Nanos::from_millis(5);

/// Whether a Puma with these settings keeps a connection for the next request.
fn keeps_alive(settings: &PumaSettings) -> bool {
    settings.queue_requests != Some(false) && settings.enable_keep_alives != Some(false)
}

/// The numbers of a version such as `7.0.4` or `8.0.0.dev`; missing ones are 0.
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
    fn version_workers_and_settings_determine_the_order_of_service() {
        let of = |given: &str| {
            let [version, connections, workers, ms, settings]: [&str; 5] =
                given.split(' ').collect::<Vec<_>>().try_into().expect(given);
            let known = |text: &str| (text != "-").then(|| text.to_owned());
            let server = ServerFacts {
                version: known(version),
                workers: workers.parse().unwrap(),
                threads: 5,
                settings: known(settings).map(|json| serde_json::from_str(&json).unwrap()),
                ..ServerFacts::default()
            };
            let load = ServedLoad {
                keep_alive: connections == "kept",
                connections: 30,
                service_time: Nanos::from_millis(ms.parse().unwrap()),
            };
            service_order(&server, &load)
        };
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/servers/orders_of_service.txt");
        testkit::golden::expect_rows(file, of);
    }
}
