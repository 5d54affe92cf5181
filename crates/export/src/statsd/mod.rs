//! statsd as it comes in: a line (`line`), and what many of them come to in a run (`collect`).

mod collect;
mod line;

pub use collect::{Collector, MOST_POINTS, MOST_SERIES};
pub use line::{Bad, LONGEST_NAME, Line, Said, Values, parse};
