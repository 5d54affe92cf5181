//! Raw HTTP/1.1: whole requests back to back, sent byte for byte.
//!
//! A head is parsed only to find where its request ends and where it goes. Captured requests name the host that they
//! were captured from, so a Host that is not the target's is no error where a target was given.

use model::Request;

use super::{Collected, LARGEST_REQUEST};
use crate::error::{RequestError, excerpt};
use crate::{RequestTemplate, TargetUrl};

/// More header fields than this are refused.
const FIELDS: usize = 256;

pub(super) fn parse(bytes: &[u8], collected: &mut Collected<'_>) -> Result<(), RequestError> {
    let RequestTemplate { method, headers, body, keep_alive: _ } = &collected.given.template;
    let user = collected.given.target.as_ref().and_then(|target| target.credentials.as_ref());
    if method != http::Method::GET || !headers.is_empty() || body.is_some() || user.is_some() {
        return Err(RequestError::RawIsFixed);
    }
    let (mut rest, mut line) = (bytes, 1);
    loop {
        // Empty lines between requests are nobody's (RFC 9112 section 2.2), and editors end files with one.
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        line += line_ends(&rest[..blank]);
        rest = &rest[blank..];
        if rest.is_empty() {
            return Ok(());
        }
        let length = one(rest, collected).map_err(|error| error.at_line(line))?;
        line += line_ends(&rest[..length]);
        rest = &rest[length..];
    }
}

/// Takes the request that `rest` begins with; its length.
fn one(rest: &[u8], collected: &mut Collected<'_>) -> Result<usize, RequestError> {
    let window = &rest[..rest.len().min(LARGEST_REQUEST as usize)];
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let head = match request.parse(window).map_err(RequestError::RawGrammar)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if window.len() < rest.len() => return Err(RequestError::RequestTooLarge),
        httparse::Status::Partial => return Err(RequestError::RawHeadCut),
    };
    if window[..head].split_inclusive(|byte| *byte == b'\n').any(|line| !line.ends_with(b"\r\n")) {
        return Err(RequestError::RawLineEnd);
    }
    if request.headers.iter().any(|field| field.name.eq_ignore_ascii_case("transfer-encoding")) {
        return Err(RequestError::RawTransferEncoding);
    }
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let is_head = match method {
        "CONNECT" => return Err(RequestError::Connect),
        method => method == "HEAD",
    };
    let said = content_length(request.headers)?;
    let there = (rest.len() - head) as u64;
    if said > LARGEST_REQUEST {
        return Err(RequestError::RequestTooLarge);
    }
    if said > there {
        return Err(RequestError::RawBodyCut { said, there });
    }
    place(path, request.headers, collected)?;
    let length = head + said as usize;
    collected.add(Request { bytes: rest[..length].into(), is_head })?;
    Ok(length)
}

/// The one length that all Content-Length fields agree on; without any, there is no body (RFC 9112 section 6.3).
fn content_length(fields: &[httparse::Header<'_>]) -> Result<u64, RequestError> {
    let mut length = None;
    for field in fields.iter().filter(|field| field.name.eq_ignore_ascii_case("content-length")) {
        let digits = std::str::from_utf8(field.value).unwrap_or_default().trim();
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RequestError::RawLength);
        }
        let value: u64 = digits.parse().map_err(|_| RequestError::RawLength)?;
        if length.is_some_and(|other| other != value) {
            return Err(RequestError::RawLength);
        }
        length = Some(value);
    }
    Ok(length.unwrap_or(0))
}

/// Sees to it that the request goes to the target: by the URL in its first line if it has one, else by its Host where
/// no target was given.
fn place(path: &str, fields: &[httparse::Header<'_>], collected: &mut Collected<'_>) -> Result<(), RequestError> {
    if path.contains("://") && !path.starts_with('/') {
        return collected.resolve(path.as_bytes()).map(drop);
    }
    if collected.given.target.is_some() {
        return Ok(());
    }
    let host = fields.iter().find(|field| field.name.eq_ignore_ascii_case("host") && !field.value.is_empty());
    let host = host.ok_or_else(|| RequestError::NoTarget(excerpt(path)))?;
    let host = std::str::from_utf8(host.value).map_err(|_| RequestError::NotUtf8)?;
    collected.same_origin(host, &TargetUrl::parse(host)?)
}

#[expect(clippy::naive_bytecount, reason = "once a file, before the start: not worth a crate")]
fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
