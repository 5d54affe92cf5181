//! The reports of `longtail load`: pure functions of a [`model::LoadStudy`], and the lines of its log.
//!
//! [`text`] and [`markdown`] lay out the same parts: each file beside them makes one of these and says what is in it.
//! [`hey`] and [`wrk`] are the layouts of those tools with our numbers in them.

mod attack;
mod bins;
mod csv;
pub mod hdr;
pub mod hey;
pub mod markdown;
mod network;
mod outcomes;
mod over_time;
mod overload;
pub(crate) mod part;
mod phases;
mod picture;
mod rates;
mod remarks;
pub mod text;
mod times;
pub(crate) mod words;
pub mod wrk;

pub use attack::write_attack_line;
pub use csv::{csv_header, write_csv};
pub use words::model as in_words;
