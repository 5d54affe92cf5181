//! vegeta's plain format: a request line, its headers, and a body by reference.
//!
//! ```text
//! # a comment
//! POST http://localhost:3000/things
//! Content-Type: application/json
//! @thing.json
//!
//! GET http://localhost:3000/things/1
//! ```
//!
//! A header line means what it means in a flag, so that `Accept:` leaves a header out.

use std::path::Path;

use http::Method;

use super::{Collected, is_skipped, lines};
use crate::RequestHeader;
use crate::error::{RequestError, excerpt};
use crate::template::method;

/// A request whose end has not come yet.
struct Begun<'a> {
    line: usize,
    method: Method,
    url: &'a [u8],
    headers: Vec<RequestHeader>,
}

type BodyOf<'a> = dyn FnMut(&Path) -> Result<Vec<u8>, RequestError> + 'a;

pub(super) fn parse(bytes: &[u8], collected: &mut Collected<'_>, body_of: &mut BodyOf<'_>) -> Result<(), RequestError> {
    let mut begun = None;
    for (number, line) in lines(bytes) {
        let at = |error: RequestError| error.at_line(number);
        if line.is_empty() {
            end(begun.take(), None, collected)?;
        } else if is_skipped(line) {
            // Comments may stand between a request's headers.
        } else if let Some(path) = line.strip_prefix(b"@") {
            let request = begun.take().ok_or_else(|| at(RequestError::RequestLine(excerpt(line))))?;
            let body = body(path, body_of).map_err(at)?;
            end(Some(request), Some(body), collected)?;
        } else if is_request_line(line) {
            end(begun.take(), None, collected)?;
            begun = Some(begin(number, line).map_err(at)?);
        } else {
            let request = begun.as_mut().ok_or_else(|| at(RequestError::RequestLine(excerpt(line))))?;
            request.headers.push(RequestHeader::parse(line).map_err(at)?);
        }
    }
    end(begun, None, collected)
}

/// Whether the line begins with a word in capitals and a space, which no header line does.
pub(super) fn is_request_line(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    !word.is_empty() && word.len() < line.len() && word.iter().all(u8::is_ascii_uppercase)
}

fn begin(line: usize, text: &[u8]) -> Result<Begun<'_>, RequestError> {
    let (name, url) = text.split_at(text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()));
    let name = std::str::from_utf8(name).map_err(|_| RequestError::NotUtf8)?;
    Ok(Begun { line, method: method(name)?, url: url.trim_ascii(), headers: Vec::new() })
}

fn body(path: &[u8], body_of: &mut BodyOf<'_>) -> Result<Vec<u8>, RequestError> {
    match std::str::from_utf8(path.trim_ascii()) {
        Ok("") => Err(RequestError::NoBodyPath),
        Ok(path) => body_of(Path::new(path)),
        Err(_) => Err(RequestError::NotUtf8),
    }
}

fn end(begun: Option<Begun<'_>>, body: Option<Vec<u8>>, collected: &mut Collected<'_>) -> Result<(), RequestError> {
    let Some(Begun { line, method, url, headers }) = begun else { return Ok(()) };
    let template = collected.given.template.with(method, headers, body);
    let target = collected.resolve(url);
    target.and_then(|target| collected.add(template.render(&target))).map_err(|error| error.at_line(line))
}
