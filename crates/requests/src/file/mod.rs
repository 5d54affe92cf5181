//! Requests files: four formats, one result.
//!
//! All requests of a file go to one origin, because a run has one. What the flags say (method, headers, body) is the
//! default of each request, and what the request says itself wins; raw requests alone go out as they are.

mod json;
mod list;
mod plain;
mod raw;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use model::Request;
use serde::{Deserialize, Serialize};

use crate::error::{RequestError, excerpt};
use crate::{RequestTemplate, TargetUrl};

/// Bytes of the largest requests file.
pub const LARGEST_FILE: u64 = 1 << 30;
/// Bytes of the largest request, head and body; and of the largest body file.
pub const LARGEST_REQUEST: u64 = 64 << 20;
/// Bytes that the requests of a file may take in memory: a short line becomes a whole head, and many lines may name
/// one large body.
pub const LARGEST_RENDERED: u64 = 2 << 30;
/// Bytes that a request takes beside its own, roughly: pointer, counts, the allocator's.
const OVERHEAD: u64 = 64;

/// The formats of a requests file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestsFormat {
    /// vegeta's JSON lines: an object a line, its body in base64.
    Json,
    /// vegeta's plain format: `METHOD URL`, header lines, `@FILE` for a body, an empty line.
    Plain,
    /// Whole HTTP/1.1 requests back to back, each body as long as its Content-Length says.
    Raw,
    /// A URL or a path a line.
    List,
}

impl RequestsFormat {
    const ALL: [RequestsFormat; 4] =
        [RequestsFormat::Json, RequestsFormat::Plain, RequestsFormat::Raw, RequestsFormat::List];

    /// What a file that starts with these bytes is; `None` where it has no line but empty ones and comments.
    ///
    /// # Errors
    /// Where its first line is of no format.
    pub fn of(bytes: &[u8]) -> Result<Option<RequestsFormat>, RequestError> {
        let Some((number, line)) = lines(bytes).find(|(_, line)| !is_skipped(line)) else { return Ok(None) };
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        match line {
            [b'{', ..] => Ok(Some(RequestsFormat::Json)),
            _ if words == 3 && line.windows(8).any(|part| part == b" HTTP/1.") => Ok(Some(RequestsFormat::Raw)),
            _ if plain::is_request_line(line) && words == 2 => Ok(Some(RequestsFormat::Plain)),
            _ if words == 1 => Ok(Some(RequestsFormat::List)),
            _ => Err(RequestError::Unrecognised(excerpt(line)).at_line(number)),
        }
    }
}

impl fmt::Display for RequestsFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            RequestsFormat::Json => "json",
            RequestsFormat::Plain => "plain",
            RequestsFormat::Raw => "raw",
            RequestsFormat::List => "list",
        })
    }
}

impl FromStr for RequestsFormat {
    type Err = RequestError;
    fn from_str(name: &str) -> Result<RequestsFormat, RequestError> {
        let known = RequestsFormat::ALL.into_iter().find(|format| format.to_string() == name);
        known.ok_or_else(|| RequestError::Format(excerpt(name)))
    }
}

/// What the flags say about a requests file.
#[derive(Clone, Debug, Default)]
pub struct FileDefaults {
    /// Its format; `None` to look at its first line.
    pub format: Option<RequestsFormat>,
    /// Where all requests go; `None` for where the first one goes.
    pub target: Option<TargetUrl>,
    /// Method, headers and body of a request that does not say them itself.
    pub template: RequestTemplate,
}

/// The requests of a file, rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedRequests {
    /// The format it was read as.
    pub format: RequestsFormat,
    /// Where they go: the target that was given, or the first request's.
    pub target: TargetUrl,
    /// At least one, in the file's order.
    pub requests: Vec<Request>,
}

/// Reads a requests file's bytes. `body_of` reads the files that `@FILE` lines name.
///
/// # Errors
/// Where a request cannot be sent, with the number of its line; and where there is none.
pub fn parse(
    bytes: &[u8],
    given: &FileDefaults,
    mut body_of: impl FnMut(&Path) -> Result<Vec<u8>, RequestError>,
) -> Result<RenderedRequests, RequestError> {
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(RequestError::FileTooLarge);
    }
    let format = match given.format {
        Some(format) => format,
        None => RequestsFormat::of(bytes)?.ok_or(RequestError::NoRequests)?,
    };
    let mut collected = Collected { given, target: given.target.clone(), requests: Vec::new(), rendered: 0 };
    match format {
        RequestsFormat::Json => json::parse(bytes, &mut collected)?,
        RequestsFormat::Plain => plain::parse(bytes, &mut collected, &mut body_of)?,
        RequestsFormat::Raw => raw::parse(bytes, &mut collected)?,
        RequestsFormat::List => list::parse(bytes, &mut collected)?,
    }
    match collected {
        Collected { target: Some(target), requests, .. } if !requests.is_empty() => {
            Ok(RenderedRequests { format, target, requests })
        }
        _ => Err(RequestError::NoRequests),
    }
}

/// Reads a requests file and the body files that it names; their paths start from the working directory, as vegeta's do.
///
/// # Errors
/// As [`parse`], and where a file cannot be read.
pub fn read_file(path: &Path, given: &FileDefaults) -> Result<RenderedRequests, RequestError> {
    let bytes = contents(path, LARGEST_FILE, RequestError::FileTooLarge);
    bytes.and_then(|bytes| parse(&bytes, given, read_body)).map_err(|trouble| match trouble {
        RequestError::Unreadable { .. } => trouble,
        trouble => RequestError::In { path: path.to_owned(), trouble: Box::new(trouble) },
    })
}

/// Reads a body from a file.
///
/// # Errors
/// Where it cannot be read, or is larger than [`LARGEST_REQUEST`].
pub fn read_body(path: &Path) -> Result<Vec<u8>, RequestError> {
    contents(path, LARGEST_REQUEST, RequestError::RequestTooLarge)
}

/// All of a file, but for one larger than `most`: a device has no end.
fn contents(path: &Path, most: u64, too_large: RequestError) -> Result<Vec<u8>, RequestError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() as u64 > most => Err(too_large),
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(RequestError::Unreadable { path: excerpt(path.as_os_str().as_encoded_bytes()), why }),
    }
}

/// The requests of a file so far.
struct Collected<'a> {
    given: &'a FileDefaults,
    target: Option<TargetUrl>,
    requests: Vec<Request>,
    rendered: u64,
}

impl Collected<'_> {
    /// The target of a request for `url`, which may be a path.
    fn resolve(&mut self, url: &[u8]) -> Result<TargetUrl, RequestError> {
        let url = std::str::from_utf8(url).map_err(|_| RequestError::NotUtf8)?;
        if url.starts_with('/') && !url.starts_with("//") {
            let base = self.target.as_ref().ok_or_else(|| RequestError::NoTarget(excerpt(url)))?;
            return base.at(url);
        }
        let target = TargetUrl::parse(url)?;
        self.same_origin(url, &target)?;
        // A URL without a user is sent as the user whom the flags named.
        let given = self.given.target.as_ref().and_then(|given| given.credentials.clone());
        Ok(TargetUrl { credentials: target.credentials.clone().or(given), ..target })
    }

    /// Refuses a request to another origin than the target's. Where there is no target yet, this is it.
    fn same_origin(&mut self, url: &str, target: &TargetUrl) -> Result<(), RequestError> {
        match &self.target {
            Some(ours) if !ours.has_origin_of(target) => {
                Err(RequestError::OtherOrigin { url: excerpt(url), origin: target.origin(), target: ours.origin() })
            }
            Some(_) => Ok(()),
            None => {
                self.target = Some(target.clone());
                Ok(())
            }
        }
    }

    fn add(&mut self, request: Request) -> Result<(), RequestError> {
        let bytes = request.bytes.len() as u64;
        if bytes > LARGEST_REQUEST {
            return Err(RequestError::RequestTooLarge);
        }
        self.rendered += bytes + OVERHEAD;
        if self.rendered > LARGEST_RENDERED {
            return Err(RequestError::RenderedTooLarge);
        }
        self.requests.push(request);
        Ok(())
    }
}

/// Lines with their numbers, from 1, without the space around them. A byte order mark is none of the first line.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate().map(|(index, line)| (index + 1, line))
}

/// Empty lines and comments.
fn is_skipped(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_references_to_one_large_body_do_not_fill_the_memory() {
        let given = FileDefaults::default();
        let rendered = LARGEST_RENDERED - OVERHEAD - 1;
        let mut collected = Collected { given: &given, target: None, requests: Vec::new(), rendered };
        let request = |length: usize| Request { bytes: vec![0; length].into(), is_head: false };
        assert!(collected.add(request(1)).is_ok());
        assert!(matches!(collected.add(request(1)), Err(RequestError::RenderedTooLarge)));
    }

    #[test]
    fn a_format_is_read_as_it_is_printed() {
        for format in RequestsFormat::ALL {
            assert_eq!(format.to_string().parse::<RequestsFormat>().unwrap(), format);
        }
    }
}
