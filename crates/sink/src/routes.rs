//! What a request's target asks for. Any target is good: this is a sink.

use model::Nanos;

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/_ledger`: the counts, at once, without a slot.
    Ledger,
    /// `/sleep<seconds>`, such as `/sleep0.1`: hold a slot that long.
    Sleep(Nanos),
    /// Anything else: hold a slot for the delay of the settings.
    Usual,
}

impl Route {
    /// The route of a request target in origin form or absolute form (RFC 9112 section 3.2).
    pub(crate) fn of(target: &str) -> Route {
        let path = path(target);
        if path == "/_ledger" {
            return Route::Ledger;
        }
        let sleep = path.strip_prefix("/sleep").map(str::parse::<Nanos>);
        match sleep {
            Some(Ok(duration)) => Route::Sleep(duration),
            _ => Route::Usual,
        }
    }
}

/// The target without scheme, authority and query.
fn path(target: &str) -> &str {
    let after_scheme = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    let path = match after_scheme {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    };
    path.split('?').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_in_seconds() {
        let tenth = Route::Sleep(Nanos::from_millis(100));
        for target in ["/sleep0.1", "/sleep.1?n=7", "http://localhost:9292/sleep0.1"] {
            assert_eq!(Route::of(target), tenth, "{target}");
        }
    }

    #[test]
    fn any_target_is_served() {
        for target in ["/", "*", "", "/sleep", "/sleepless", "/sleep-1", "http://host", "host:443", "/_ledger/x"] {
            assert_eq!(Route::of(target), Route::Usual, "{target}");
        }
        assert_eq!(Route::of("/_ledger?now"), Route::Ledger);
    }
}
