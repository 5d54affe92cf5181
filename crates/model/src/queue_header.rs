//! The header in which a proxy says when it received a request ([`QueueHeader`]). Rack middleware
//! and APMs compute from it how long the request was queued before the app got it.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Nanos};

/// How the header's value states the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueHeader {
    /// nginx's `t=1764098567.123`: seconds with three decimals.
    Nginx,
    /// Apache's `t=1764098567123456`: microseconds.
    Apache,
    /// Heroku's `1764098567123`: milliseconds.
    Heroku,
}

impl QueueHeader {
    /// The header's name.
    pub const NAME: &str = "X-Request-Start";

    /// The proxy that writes it in this form.
    pub fn proxy(self) -> &'static str {
        match self {
            QueueHeader::Nginx => "nginx",
            QueueHeader::Apache => "Apache",
            QueueHeader::Heroku => "Heroku",
        }
    }

    /// A value of the right length, to be stamped.
    pub fn unstamped(self) -> &'static str {
        match self {
            QueueHeader::Nginx => "t=0000000000.000",
            QueueHeader::Apache => "t=0000000000000000",
            QueueHeader::Heroku => "0000000000000",
        }
    }

    /// Writes a time since 1970 over the digits of a value.
    #[inline]
    pub fn stamp(self, value: &mut [u8], wall: Nanos) {
        let mut left = match self {
            QueueHeader::Nginx | QueueHeader::Heroku => wall.0 / 1_000_000,
            QueueHeader::Apache => wall.0 / 1_000,
        };
        for byte in value.iter_mut().rev().filter(|byte| byte.is_ascii_digit()) {
            *byte = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
}

/// The queue times that an app computed from the header, as an APM does, and beside them how long
/// the same requests waited by our clock. The app reports them in `Server-Timing`:
/// `queue;dur=12.3`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueTimes {
    /// What the app computed, for the measured good responses that report it.
    pub computed: Histogram,
    /// How long these requests were outside the app, where it also reports its own time: the
    /// service time minus the app's time, or, if the app stamps its start, from sending to that
    /// stamp.
    pub outside: Histogram,
}

impl QueueTimes {
    /// With room, so that recording does not allocate.
    pub fn with_room() -> QueueTimes {
        let mut times = QueueTimes::default();
        times.computed.make_room();
        times.outside.make_room();
        times
    }

    /// Adds what the app reported for a request.
    pub fn record(&mut self, computed: Nanos, outside: Option<Nanos>) {
        self.computed.record(computed);
        if let Some(outside) = outside {
            self.outside.record(outside);
        }
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &QueueTimes) {
        self.computed.merge(&other.computed);
        self.outside.merge(&other.outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_stamped_in_the_form_of_each_proxy() {
        let wall = Nanos(1_764_098_567_123_456_789);
        for (header, expected) in [
            (QueueHeader::Nginx, "t=1764098567.123"),
            (QueueHeader::Apache, "t=1764098567123456"),
            (QueueHeader::Heroku, "1764098567123"),
        ] {
            let mut value = header.unstamped().as_bytes().to_vec();
            header.stamp(&mut value, Nanos(7));
            header.stamp(&mut value, wall);
            assert_eq!(std::str::from_utf8(&value), Ok(expected));
        }
    }
}
