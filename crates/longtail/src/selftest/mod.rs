//! `longtail selftest`, in parts: the laws (`cases`), their right answers (`truth`), and the
//! table (`text`).

mod cases;
mod text;
mod truth;

pub(crate) use cases::all;
pub(crate) use text::{machine, table};
