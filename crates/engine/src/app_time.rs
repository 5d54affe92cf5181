//! What an app says in an answer's head of the time it took.

use model::{AppTime, Clock, Dissection, Exchange, Nanos};

/// Metrics of `Server-Timing` that are the whole app's, the surest first. Others are parts of it, or of something else.
const WHOLE: [&str; 3] = ["app", "total", "process_action.action_controller"];

/// What one lane adds up of what apps say.
#[derive(Debug)]
pub(crate) struct AppTimes {
    /// By how much the app's clock is ahead of the lane's.
    ahead: Nanos,
    dissection: Dissection,
}

impl AppTimes {
    /// Nothing yet.
    pub(crate) fn new(clock: &impl Clock) -> AppTimes {
        AppTimes { ahead: clock.shared_ahead(), dissection: Dissection::default() }
    }

    /// Takes in a measured good answer.
    pub(crate) fn record(&mut self, exchange: &Exchange, said: Option<AppTime>) {
        let said = said.map(|said| match said {
            AppTime::Stamps { started, ended } => {
                AppTime::Stamps { started: started.saturating_sub(self.ahead), ended: ended.saturating_sub(self.ahead) }
            }
            took @ AppTime::Took(_) => took,
        });
        self.dissection.record(exchange, said);
    }

    /// All that it has added up.
    pub(crate) fn into_dissection(self) -> Dissection {
        self.dissection
    }
}

/// Understands the value of `x-app-stamps`.
pub(crate) fn stamps(value: &[u8]) -> Option<AppTime> {
    let text = std::str::from_utf8(value).ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok().map(Nanos));
    match (words.next()??, words.next()??, words.next()) {
        (started, ended, None) => Some(AppTime::Stamps { started, ended }),
        _ => None,
    }
}

/// The whole app's duration in a `Server-Timing` field, in its milliseconds: `db;dur=53, app;dur=47.2` (W3C, Server Timing).
pub(crate) fn server_timing(value: &[u8]) -> Option<AppTime> {
    let text = std::str::from_utf8(value).ok()?;
    let took = |whole: &str| text.split(',').find_map(|metric| duration_of(metric, whole));
    WHOLE.iter().find_map(|whole| took(whole)).map(AppTime::Took)
}

/// The duration of a metric that has this name.
fn duration_of(metric: &str, name: &str) -> Option<Nanos> {
    let mut words = metric.split(';').map(str::trim);
    if words.next()? != name {
        return None;
    }
    let milliseconds = words.find_map(|word| {
        let (key, value) = word.split_once('=')?;
        let value = value.trim().trim_matches('"');
        key.trim().eq_ignore_ascii_case("dur").then(|| value.parse::<f64>().ok()).flatten()
    })?;
    // A day and more, or less than nothing, is no duration.
    (0.0..86_400_000.0).contains(&milliseconds).then(|| Nanos::from_secs_f64(milliseconds / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_two_whole_numbers() {
        let both = AppTime::Stamps { started: Nanos(12), ended: Nanos(15) };
        assert_eq!(stamps(b" 12  15 "), Some(both));
        for value in ["", "12", "12 15 16", "12 -1", "a b", "1.5 2", "99999999999999999999999 1"] {
            assert_eq!(stamps(value.as_bytes()), None, "{value}");
        }
        assert_eq!(stamps(&[0xff, b' ', b'1']), None);
    }

    #[test]
    fn the_whole_apps_metric_is_found_among_others() {
        let took = |text: &str| match server_timing(text.as_bytes()) {
            Some(AppTime::Took(time)) => Some(time),
            _ => None,
        };
        assert_eq!(took("db;dur=53, app;dur=47.2"), Some(Nanos::from_micros(47_200)));
        assert_eq!(took("total;desc=\"all\";dur=\"5\""), Some(Nanos::from_millis(5)));
        assert_eq!(took("total;dur=9,app ; DUR = 5"), Some(Nanos::from_millis(5)));
        let rails = "start_processing.action_controller;dur=0.09, process_action.action_controller;dur=201.44";
        assert_eq!(took(rails), Some(Nanos::from_micros(201_440)));
        for text in
            ["", "app", "app;dur=", "app;dur=x", "app;dur=-1", "app;dur=NaN", "app;dur=inf", "apple;dur=3", "cache"]
        {
            assert_eq!(took(text), None, "{text}");
        }
    }
}
