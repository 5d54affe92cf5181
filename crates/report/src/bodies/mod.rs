//! Reports of `longtail bodies`: as text, in the layout of Puma's `response_time_wrk`, as markdown, as CSV.

pub mod csv;
mod facts;
pub mod markdown;
mod pivot;
mod rows;
mod seed;
pub mod text;
