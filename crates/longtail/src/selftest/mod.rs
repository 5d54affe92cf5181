//! `longtail selftest`, in parts: the laws (`cases`), their right answers (`truth`), what must be equal whatever the
//! machine does (`balance`), and the table (`text`).

mod balance;
mod cases;
mod text;
mod truth;

pub(crate) use cases::all;
pub(crate) use text::{machine, table};
