//! What to send: from flags and files to rendered bytes, before the start.
//!
//! A [`TargetUrl`] says where, a [`RequestTemplate`] says what, and [`RequestTemplate::render`] makes the bytes of both. A requests file
//! ([`parse`]) makes many. Pure functions, but for [`read_file`] and [`read_body`]: nothing here opens a socket, reads a
//! clock or prints, and nothing of it runs once the load has started. Which request is the n-th is the model's `RequestOrder`.

mod error;
mod file;
mod target;
mod template;

pub use error::RequestError;
pub use file::{FileDefaults, RenderedRequests, RequestsFormat, parse, read_body, read_file};
pub use http::Method;
pub use target::TargetUrl;
pub use template::{RequestHeader, RequestTemplate, method};
