//! What all protocols print: a quantity with its name, its unit and what it is, and a value for each set of labels.
//!
//! Base units only: seconds, requests a second, ratios, counts.

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name without its unit, in parts: `longtail.run.response_time`.
    pub name: &'static str,
    /// Of its values.
    pub unit: Unit,
    /// Whether it can fall.
    pub kind: Kind,
    /// What it is, in a sentence without a full stop.
    pub help: &'static str,
    /// Its values.
    pub points: Vec<Point>,
}

/// A value and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Whose.
    pub labels: Labels,
    /// The value.
    pub value: Value,
}

/// What a point says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One number.
    Number(f64),
    /// Some quantiles of a distribution.
    Quantiles {
        /// Quantile, 0 to 1, and value.
        quantiles: Vec<(f64, f64)>,
        /// Sum of what was measured.
        sum: f64,
        /// How many were.
        count: u64,
    },
    /// A distribution.
    Buckets {
        /// Rising: an edge, and how many are at or below it.
        edges: Vec<(f64, u64)>,
        /// Sum of what was measured.
        sum: f64,
        /// How many were.
        count: u64,
    },
}

/// Units of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Requests per second.
    RequestsPerSecond,
    /// A share: 1 is all.
    Ratio,
    /// Requests.
    Requests,
    /// Connections.
    Connections,
    /// Threads of the server.
    Threads,
    /// None, or what is counted has its name in the family's.
    None,
}

impl Unit {
    /// What Prometheus appends to a name. (What is counted stands in the name.)
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Seconds => "_seconds",
            Unit::RequestsPerSecond => "_per_second",
            Unit::Ratio => "_ratio",
            Unit::Requests | Unit::Connections | Unit::Threads | Unit::None => "",
        }
    }

    /// As the Unified Code for Units of Measure has it, what is counted in braces: OTLP's way. By OpenTelemetry's rules for Prometheus it
    /// comes to [`Unit::suffix`].
    pub(crate) fn ucum(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::RequestsPerSecond => "{request}/s",
            Unit::Ratio => "1",
            Unit::Requests => "{request}",
            Unit::Connections => "{connection}",
            Unit::Threads => "{thread}",
            Unit::None => "",
        }
    }
}

/// Whether a quantity can fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It can, or is of a run that is over.
    Gauge,
    /// It only rises while the program lives.
    Counter,
}

impl Family {
    /// A family of one point.
    pub fn one(
        (name, unit, kind): (&'static str, Unit, Kind),
        help: &'static str,
        labels: Labels,
        value: Value,
    ) -> Family {
        Family { name, unit, kind, help, points: vec![Point { labels, value }] }
    }

    /// The families of all of `families`, each name once, its points together in the order in which they came.
    pub fn merged(families: impl IntoIterator<Item = Family>) -> Vec<Family> {
        let mut merged: Vec<Family> = Vec::new();
        for family in families {
            match merged.iter_mut().find(|other| other.name == family.name) {
                Some(other) => other.points.extend(family.points),
                None => merged.push(family),
            }
        }
        merged
    }
}
