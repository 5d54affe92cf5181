//! `longtail watch`: looks at a server that was there before us, and sends it nothing but questions to its control server; to one on
//! another machine also a connect a second, which carries nothing.
//!
//! `target` finds it; `sampler` reads from threads of its own and tells a `Board`, which is plain arithmetic; `screen`
//! draws the board on a terminal (`terminal` owns that), `text` and `json` print it at the end. Another source of readings is one
//! more thread that sends `Seen`, and one more arm of `Board::take`.

mod board;
mod json;
mod quantity;
mod sampler;
mod screen;
mod series;
mod target;
mod terminal;
mod text;

pub(crate) use self::board::Board;
pub(crate) use self::json::json;
pub(crate) use self::sampler::{Sampler, Seen, connect_on, poll_on};
pub(crate) use self::target::{Target, Word};
pub(crate) use self::terminal::{Screen, is_a_terminal};
pub(crate) use self::text::{line, line_head, table};

use model::Nanos;

/// Why a watch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its time is up.
    Time,
    /// The user ended it.
    User,
    /// The server has ended, that long after the start.
    Server(Nanos),
}
