//! The server closed kept-alive connections, so that some requests include a new connect.

use model::broken::ordinal;
use model::{ConnectionClosings, Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// A server that ends a connection after a number of responses.
struct KeepAliveLimit {
    /// How its `Server` header begins.
    server: &'static str,
    /// Which setting that number is, and what to do.
    hint: &'static str,
}

/// A hint that names the setting.
macro_rules! limit {
    ($server:literal, $setting:literal) => {
        KeepAliveLimit {
            server: $server,
            hint: concat!(
                "that is ",
                $setting,
                ": raise it; until then, each connection's next request includes a connect"
            ),
        }
    };
}

/// Servers with such a limit that send a `Server` header. A longer beginning stands before a
/// shorter one.
const LIMITS: [KeepAliveLimit; 8] = [
    limit!("apache-coyote", "Tomcat's maxKeepAliveRequests"),
    limit!("apache", "Apache httpd's MaxKeepAliveRequests"),
    limit!("nginx", "nginx's keepalive_requests"),
    limit!("openresty", "nginx's keepalive_requests"),
    limit!("tengine", "nginx's keepalive_requests"),
    limit!("lighttpd", "lighttpd's server.max-keep-alive-requests"),
    limit!("hypercorn", "Hypercorn's keep_alive_max_requests"),
    limit!("cowboy", "Cowboy's max_keepalive"),
];

/// The limit of a Puma from 7 on, which has no `Server` header.
const NEW_PUMA: KeepAliveLimit = limit!("", "max_keep_alive of a Puma from 7 on");

/// Responses after which a Puma from 7 on ends a connection, unless its settings say otherwise.
const NEW_PUMA_DEFAULT: u64 = 999;

/// A Puma before 7 takes turns: it ends a connection after this number of responses, unless its
/// settings say otherwise, if all its threads are busy and others wait to be accepted
/// (`max_fast_inline`). It has no `Server` header either.
pub(crate) const TURN_OF_OLD_PUMA: u64 = 10;
const OLD_PUMA: KeepAliveLimit = KeepAliveLimit {
    server: "",
    hint: "a Puma before 7 does that if other connections wait to be accepted (max_fast_inline): their next requests include a connect; use -k to compare without keep-alive",
};

/// The same where the numbers of responses differ: it counts those that it gave in a row, and begins
/// anew whenever the connection was idle. Other servers send no `Server` header either.
const MAYBE_OLD_PUMA: &str = "if it is a Puma before 7, it does that after ten responses in a row while other connections wait to be accepted (max_fast_inline): their next requests include a connect; use -k to compare without keep-alive";

/// What the hints end with.
const ADVICE: &str = "; use -k to compare without keep-alive";

/// A hint without the advice to compare without keep-alive, for a comparison that does so already.
pub fn hint_beside_keep_alive(hint: &'static str) -> &'static str {
    hint.strip_suffix(ADVICE).unwrap_or(hint)
}

/// Closings are rare where there were at least this many times as many requests.
const RARE: u64 = 1000;

/// Closings are mostly announced from this share of them.
const MOSTLY: f64 = 0.9;

/// Applies where connections are kept alive.
pub(super) fn ask(run: &Run, keep_alive: bool) -> Option<Diagnostic> {
    let tally = &run.tally;
    let closed = tally.closed_by_server;
    (keep_alive && closed > 0).then(|| Diagnostic::ConnectionsClosed {
        closed,
        requests: Some(tally.counts.total()),
        after_answers: tally.broken.silent_closings.and_then(ConnectionClosings::every),
        announced_after: tally.announced_closings.and_then(ConnectionClosings::every),
        announced: tally.announced_closings.map(|closings| closings.connections),
        server: tally.server_name.clone(),
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(
    closed: u64,
    requests: Option<u64>,
    after_answers: Option<u64>,
    announced_after: Option<u64>,
    announced: Option<u64>,
    server: Option<&str>,
) -> Assessment {
    let is_rare = requests.is_some_and(|requests| closed.saturating_mul(RARE) <= requests);
    let are_announced = announced == Some(closed);
    let some_announced = announced.filter(|announced| (1..closed).contains(announced));
    // The others may be those that it closed while they were idle.
    let are_mostly_announced =
        announced.is_some_and(|announced| announced as f64 >= MOSTLY * closed as f64);
    let closed = counted(closed, "connection");
    let sentence = match (after_answers, announced_after) {
        (Some(answers), _) => format!(
            "the server closed {closed} that should have stayed open, each after its {} response and without announcing it (Connection: close)",
            ordinal(answers)
        ),
        (None, Some(answers)) => format!(
            "the server closed {closed} that should have stayed open, each with its {} response",
            ordinal(answers)
        ),
        (None, None) if are_announced => format!(
            "the server closed {closed} that should have stayed open, and announced each (Connection: close)"
        ),
        (None, None) => {
            let some = some_announced.map(|announced| {
                format!(", and announced {announced} of these closings (Connection: close)")
            });
            let some = some.unwrap_or_default();
            format!("the server closed {closed} that should have stayed open{some}")
        }
    };
    let limit = announced_after.and_then(|answers| limit_of(answers, server));
    match limit {
        Some(limit) => Assessment::new(Grade::Doubtful, sentence, limit.hint),
        // Nothing that shows in a percentile.
        None if is_rare => Assessment::new(
            Grade::Note,
            sentence,
            "the next request on each includes a connect; a server also closes connections that are \
             idle for long",
        ),
        None if are_mostly_announced && announced_after.is_none() && server.is_none() => {
            Assessment::new(Grade::Doubtful, sentence, MAYBE_OLD_PUMA)
        }
        None => Assessment::new(
            Grade::Doubtful,
            sentence,
            "their next requests include a connect; use -k to compare without keep-alive",
        ),
    }
}

/// How many connections were closed as a Puma before 7 does after ten responses in a row: by a server
/// without a name, most of them announced, and about as many as that makes.
pub(crate) fn closed_in_turns(warning: &Diagnostic) -> Option<u64> {
    /// It begins to count anew whenever a connection was idle, and closes none while no other waits.
    const MOST_EACH: u64 = 2 * TURN_OF_OLD_PUMA;
    let Diagnostic::ConnectionsClosed {
        closed,
        requests: Some(requests),
        after_answers: None,
        announced_after,
        announced: Some(announced),
        server: None,
    } = warning
    else {
        return None;
    };
    let are_announced = *announced as f64 >= MOSTLY * *closed as f64;
    let each = requests / (*closed).max(1);
    let is_a_turn = (TURN_OF_OLD_PUMA..=MOST_EACH).contains(&each);
    let may_be = announced_after.is_none_or(|answers| answers == TURN_OF_OLD_PUMA);
    (are_announced && is_a_turn && may_be).then_some(*closed)
}

/// The limit of a server that ends a connection after so many responses, where it is known.
fn limit_of(answers: u64, server: Option<&str>) -> Option<&'static KeepAliveLimit> {
    let Some(name) = server else {
        return match answers {
            NEW_PUMA_DEFAULT => Some(&NEW_PUMA),
            TURN_OF_OLD_PUMA => Some(&OLD_PUMA),
            _ => None,
        };
    };
    let name = name.to_ascii_lowercase();
    LIMITS.iter().find(|limit| name.starts_with(limit.server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_without_keep_alive_is_not_advised_to_make_one() {
        for hint in [OLD_PUMA.hint, MAYBE_OLD_PUMA] {
            assert!(hint_beside_keep_alive(hint).ends_with("include a connect"), "{hint}");
        }
        assert_eq!(hint_beside_keep_alive("run longer"), "run longer");
    }

    #[test]
    fn the_servers_own_setting_is_named_where_it_is_known() {
        for (announced_after, server, hint) in [
            (Some(1000), Some("nginx/1.22.1"), "that is nginx's keepalive_requests:"),
            (
                Some(100),
                Some("Apache/2.4.57 (Debian)"),
                "that is Apache httpd's MaxKeepAliveRequests:",
            ),
            (Some(100), Some("Apache-Coyote/1.1"), "that is Tomcat's maxKeepAliveRequests:"),
            (Some(999), None, "that is max_keep_alive of a Puma from 7 on:"),
            (Some(10), None, "a Puma before 7 does that if other connections wait"),
            (Some(12), None, "their next requests include a connect; use -k"),
            (Some(10), Some("Caddy"), "use -k"),
            // Connections that end after different numbers of responses have no limit.
            (None, Some("nginx/1.22.1"), "use -k"),
        ] {
            let said = assess(5, Some(100), None, announced_after, None, server);
            assert!(said.hint.contains(hint), "{}", said.hint);
        }
    }

    #[test]
    fn a_puma_is_named_where_each_closing_was_announced_by_a_server_without_a_name() {
        let names_puma = |announced_after, announced, server| {
            let said = assess(5, Some(100), None, announced_after, announced, server);
            assert!(said.hint.contains("use -k"), "{}", said.hint);
            said.hint.contains("Puma")
        };
        assert!(names_puma(None, Some(5), None));
        assert!(!names_puma(None, Some(5), Some("nginx/1.22.1")));
        assert!(!names_puma(None, Some(4), None), "Puma announces each, but of idle connections");
        let mostly = assess(154, Some(1000), None, None, Some(150), None);
        assert!(mostly.hint.contains("Puma"), "{}", mostly.hint);
        assert!(mostly.sentence.ends_with("announced 150 of these closings (Connection: close)"));
        assert!(!names_puma(Some(12), Some(5), None), "a limit of another server");
    }

    #[test]
    fn turns_of_an_old_puma_are_known_by_their_number_and_their_announcements() {
        let closed = |requests, announced, announced_after, server: Option<&str>| {
            closed_in_turns(&Diagnostic::ConnectionsClosed {
                closed: 1000,
                requests: Some(requests),
                after_answers: None,
                announced_after,
                announced: Some(announced),
                server: server.map(str::to_owned),
            })
        };
        assert_eq!(closed(10_696, 1000, None, None), Some(1000));
        assert_eq!(closed(10_000, 950, Some(10), None), Some(1000));
        assert_eq!(closed(10_696, 500, None, None), None, "not announced");
        assert_eq!(closed(10_696, 1000, Some(12), None), None, "another limit");
        assert_eq!(closed(10_696, 1000, None, Some("nginx")), None);
        assert_eq!(closed(100_000, 1000, None, None), None, "too few for turns");
        assert_eq!(closed(3_000, 1000, None, None), None, "too many for turns");
    }

    #[test]
    fn the_number_of_responses_is_said() {
        let said = |after, announced| assess(5, None, after, announced, None, None).sentence;
        assert!(said(None, Some(10)).ends_with("each with its 10th response"));
        assert!(said(Some(10), None).contains("after its 10th response and without announcing"));
        assert!(said(None, None).ends_with("that should have stayed open"));
        let announced = assess(5, None, None, None, Some(5), None).sentence;
        assert!(announced.ends_with("and announced each (Connection: close)"), "{announced}");
    }

    #[test]
    fn a_closing_in_a_thousand_requests_doubts_nothing_unless_it_is_a_limit() {
        let grade = |requests, announced_after| {
            assess(5, requests, None, announced_after, None, Some("nginx/1.22.1")).grade
        };
        assert_eq!(grade(Some(5000), None), Grade::Note);
        assert_eq!(grade(Some(4999), None), Grade::Doubtful);
        assert_eq!(grade(None, None), Grade::Doubtful, "an older file");
        assert_eq!(grade(Some(5000), Some(1000)), Grade::Doubtful);
    }
}
