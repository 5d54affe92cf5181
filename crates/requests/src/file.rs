//! Reads files of requests, in four formats with one result.
//!
//! All requests of a file go to one origin, because a run has one. What the flags say (method,
//! headers, body) is the default of each request, and what the request says itself wins; raw
//! requests alone go out as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use model::paths::path_fault;
use model::{ChunkedDecoder, Request, RequestGroup, RequestMix};
use serde::Deserialize;

use crate::classes::name_by_path;
use crate::compressed::refuse_compressed;
use crate::file_name::{STDIN, name_of};
use crate::mix::{MixLines, MixRequest, NumberedLine, inline_lines, is_method};
use crate::protocol_headers::{RequestBody, RequestProtocol, TypedHead};
use crate::target::TargetUrl;
use crate::template::{CONNECT, RenderedRequest, RequestHeader, RequestTemplate, method};
use crate::{RequestError, excerpt};

/// Bytes of the largest requests file.
pub(crate) const LARGEST_FILE: u64 = 1 << 30;
/// Bytes of the largest file of headers.
const LARGEST_HEADERS: u64 = 1 << 20;
/// Bytes of the largest request, head and body; and of the largest body file.
const LARGEST_REQUEST: u64 = 64 << 20;
/// Bytes that the requests of a file may take in memory: a short line becomes a whole head, and
/// many lines may name one large body.
const LARGEST_RENDERED: u64 = 2 << 30;
/// Memory that a request takes beyond its own bytes, roughly: pointer, counts, the allocator's.
const OVERHEAD: u64 = 64;
/// More header fields than this are refused in a raw request.
const FIELDS: usize = 256;

const TOO_LARGE: &str = "the request is larger than 64 MiB: make its body smaller";

/// The formats of a requests file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestsFormat {
    /// vegeta's JSON lines: an object a line, its body in base64.
    Json,
    /// vegeta's plain format: `METHOD URL`, header lines, `@FILE` for a body, an empty line.
    Plain,
    /// Whole HTTP/1.1 requests back to back, each body as long as its Content-Length says.
    Raw,
    /// A URL or a path a line.
    List,
    /// Requests with weights and names, a line each: `GET /posts 80`.
    Mix,
}

impl RequestsFormat {
    /// Their names.
    pub const NAMES: &[(&str, RequestsFormat)] = &[
        ("json", RequestsFormat::Json),
        ("plain", RequestsFormat::Plain),
        ("raw", RequestsFormat::Raw),
        ("list", RequestsFormat::List),
        ("mix", RequestsFormat::Mix),
    ];

    /// The format of a file that starts with these bytes; `None` if it has only empty lines and
    /// comments.
    fn detect(bytes: &[u8]) -> Result<Option<RequestsFormat>, RequestError> {
        let Some((number, line)) = lines(bytes).find(|(_, line)| !is_skipped(line)) else {
            return Ok(None);
        };
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        match line {
            [b'{', ..] => Ok(Some(RequestsFormat::Json)),
            _ if words == 3 && line.windows(8).any(|part| part == b" HTTP/1.") => {
                Ok(Some(RequestsFormat::Raw))
            }
            _ if is_mix_line(line) => Ok(Some(RequestsFormat::Mix)),
            _ if is_request_line(line) && words == 2 => {
                let has_weight = |line: &[u8]| is_request_line(line) && is_mix_line(line);
                let is_mix = lines(bytes).any(|(_, line)| has_weight(line));
                Ok(Some(if is_mix { RequestsFormat::Mix } else { RequestsFormat::Plain }))
            }
            _ if words == 1 => Ok(Some(RequestsFormat::List)),
            _ => Err(RequestError::new(format!(
                "'{}' begins no format that is known: write a URL or a path, a line as GET URL \
                 or GET URL 80 (a weight), or a JSON object",
                excerpt(line)
            ))
            .at_line(number)),
        }
    }
}

impl fmt::Display for RequestsFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = RequestsFormat::NAMES.iter().find(|(_, format)| format == self);
        out.write_str(name.map_or("", |(name, _)| name))
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
    /// Whether requests are drawn at random instead of sent in order, if the format has no weights.
    pub at_random: bool,
    /// The seed of what is random.
    pub seed: u64,
    /// Classes of a mix that are not sent.
    pub without: Vec<String>,
}

/// The requests of a file, rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedRequests {
    /// The format it was read as.
    pub format: RequestsFormat,
    /// Where they go: the target that was given, or the first request's.
    pub target: TargetUrl,
    /// What is sent.
    pub mix: RequestMix,
    /// Bytes of memory that the requests take.
    pub bytes: u64,
    /// Whether they leave their connection open for another one; all do, or none.
    pub keep_alive: bool,
}

/// Reads a requests file's bytes. `body_of` reads the files that `@FILE` lines name.
///
/// # Errors
/// If a request cannot be sent, with the number of its line; and if there is none.
pub fn parse(
    bytes: &[u8],
    given: &FileDefaults,
    body_of: impl FnMut(&Path) -> Result<Vec<u8>, RequestError>,
) -> Result<RenderedRequests, RequestError> {
    let nothing =
        || RequestError::new("there is no request in it: write a URL a line, or give another file");
    let format = match given.format {
        Some(format) => format,
        None => RequestsFormat::detect(bytes)?.ok_or_else(nothing)?,
    };
    let mut collected = CollectedRequests {
        given,
        target: given.target.clone(),
        requests: Vec::new(),
        weighted: None,
        keep_alive: None,
        rendered: 0,
    };
    match format {
        RequestsFormat::Json => collected.json(bytes),
        RequestsFormat::Plain => collected.plain(bytes, body_of),
        RequestsFormat::Raw => collected.raw(bytes),
        RequestsFormat::List => collected.list(bytes),
        RequestsFormat::Mix => collected.mix(bytes, body_of),
    }?;
    let bytes = collected.rendered;
    match (collected.target.take(), collected.keep_alive) {
        (Some(target), Some(keep_alive)) => {
            Ok(RenderedRequests { format, target, mix: collected.into_mix(), keep_alive, bytes })
        }
        _ => Err(nothing()),
    }
}

/// Reads a mix that was typed inline, with commas between its requests.
///
/// # Errors
/// As [`parse`], but with the number of the request; and if a quote has no end.
pub fn parse_inline_mix(
    text: &str,
    given: &FileDefaults,
) -> Result<RenderedRequests, RequestError> {
    let given = FileDefaults { format: Some(RequestsFormat::Mix), ..given.clone() };
    let lines = inline_lines(text)?.join("\n");
    parse(lines.as_bytes(), &given, read_body).map_err(RequestError::of_inline)
}

/// Reads a requests file and the body files that it names; their paths start from the working
/// directory, as vegeta's do. They must be below `root`, or else below the folder of the requests
/// file: whoever wrote it must not make somebody else send `/etc/shadow`.
///
/// # Errors
/// As [`parse`], and where a file cannot be read, or must not.
pub fn read_file(
    path: &Path,
    given: &FileDefaults,
    root: Option<&Path>,
) -> Result<RenderedRequests, RequestError> {
    let bytes =
        contents(path, LARGEST_FILE, "the requests file is larger than 1 GiB: use a part of it")?;
    let flag = if given.format == Some(RequestsFormat::Mix) { "--mix" } else { "--requests" };
    refuse_compressed(&bytes, path, flag)?;
    parse(&bytes, given, |body| read_body(&below(body, path, root)?)).map_err(|why| {
        let why = match script_language(path, &bytes) {
            Some(language) => format!(
                "this is a {language} script, which is not run: -m, -d and -H say what it sends"
            ),
            None => why.to_string(),
        };
        RequestError::new(format!("{}: {why}", name_of(path)))
    })
}

/// The language of a script of wrk or k6 that somebody gave as a file of requests, by its name or its
/// first line.
fn script_language(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let first = lines(bytes).map(|(_, line)| line).find(|line| !is_skipped(line)).unwrap_or(b"");
    let begins = |words: &[&str]| words.iter().any(|word| first.starts_with(word.as_bytes()));
    if ending == "lua" || begins(&["wrk.", "--", "local ", "request "]) {
        Some("Lua")
    } else if ["js", "mjs", "ts"].contains(&ending) || begins(&["import ", "export ", "//", "/*"]) {
        Some("JavaScript")
    } else {
        None
    }
}

/// The file that `body` leads to, all links followed, if that is below the folder.
fn below(body: &Path, requests: &Path, root: Option<&Path>) -> Result<PathBuf, RequestError> {
    // Left as it is: whoever reads it will report that it is missing.
    let Ok(file) = body.canonicalize() else { return Ok(body.to_owned()) };
    // What comes from stdin has no folder but the one where the user is.
    let here = Some(Path::new(".")).filter(|_| requests == Path::new(STDIN));
    let folder = match root.or(here) {
        Some(root) => root.canonicalize(),
        None => requests.canonicalize().map(|file| file.parent().unwrap_or(&file).to_owned()),
    };
    match folder {
        Ok(folder) if file.starts_with(&folder) => Ok(file),
        _ => Err(RequestError::new(format!(
            "@{}: it is not below the folder of the requests file, so it is not read: move it \
             there, or name a folder that holds it by --requests-root",
            excerpt(body.as_os_str().as_encoded_bytes())
        ))),
    }
}

/// Reads headers from a file, one a line, as curl's `-H @FILE` does; empty lines and those that
/// begin with `#` are skipped.
///
/// # Errors
/// If it cannot be read, or a line is no header. What the line holds is not repeated.
pub fn read_headers(path: &Path) -> Result<Vec<RequestHeader>, RequestError> {
    let bytes =
        contents(path, LARGEST_HEADERS, "it is larger than 1 MiB: it holds more than headers")?;
    let headers = lines(&bytes).filter(|(_, line)| !is_skipped(line));
    headers
        .map(|(number, line)| RequestHeader::parse(line).map_err(|why| why.at_line(number)))
        .collect::<Result<_, _>>()
        .map_err(|why| RequestError::new(format!("-H @{}: {why}", path.display())))
}

/// Reads a body from a file.
///
/// # Errors
/// If it cannot be read, or is larger than 64 MiB.
pub fn read_body(path: &Path) -> Result<Vec<u8>, RequestError> {
    contents(path, LARGEST_REQUEST, TOO_LARGE)
}

/// What was read from stdin, which can be read once.
static FROM_STDIN: OnceLock<Vec<u8>> = OnceLock::new();

/// All of a file, or of stdin, refused if it is larger than `most`: a device has no end.
pub(crate) fn contents(path: &Path, most: u64, too_large: &str) -> Result<Vec<u8>, RequestError> {
    let is_stdin = path == Path::new(STDIN);
    if let Some(bytes) = FROM_STDIN.get().filter(|_| is_stdin) {
        return Ok(bytes.clone());
    }
    let bytes = if is_stdin {
        read_all("stdin", Ok(io::stdin().lock()), path, most, too_large)
    } else {
        let name = excerpt(path.as_os_str().as_encoded_bytes());
        read_all(&name, File::open(path), path, most, too_large)
    }?;
    if is_stdin { Ok(FROM_STDIN.get_or_init(|| bytes).clone()) } else { Ok(bytes) }
}

fn read_all(
    name: &str,
    input: io::Result<impl Read>,
    path: &Path,
    most: u64,
    too_large: &str,
) -> Result<Vec<u8>, RequestError> {
    let mut bytes = Vec::new();
    match input.and_then(|input| input.take(most + 1).read_to_end(&mut bytes)) {
        Ok(length) if length as u64 > most => {
            Err(RequestError::new(format!("'{name}': {too_large}")))
        }
        Ok(_) => Ok(bytes),
        Err(why) => Err(RequestError::new(format!(
            "'{name}' cannot be read ({}): correct the path, or let this user read it",
            path_fault(path, &why)
        ))),
    }
}

/// These bytes as text.
fn utf8(bytes: &[u8]) -> Result<&str, RequestError> {
    std::str::from_utf8(bytes).map_err(|_| {
        RequestError::new(
            "the line is not UTF-8: save the file as UTF-8, and write other bytes of a URL as %XX",
        )
    })
}

fn no_target(url: &str) -> RequestError {
    let url = excerpt(url);
    RequestError::new(format!(
        "'{url}' does not say which host: write http://HOST:PORT before it, or give the target's \
         URL too"
    ))
}

/// The requests of a file so far.
struct CollectedRequests<'a> {
    given: &'a FileDefaults,
    target: Option<TargetUrl>,
    requests: Vec<Request>,
    /// Of a mix: the groups and the names of their classes.
    weighted: Option<(Vec<RequestGroup>, Vec<String>)>,
    /// Whether the requests so far leave their connection open.
    keep_alive: Option<bool>,
    rendered: u64,
}

impl CollectedRequests<'_> {
    /// The target of a request for `url`, which may be a path.
    fn resolve(&mut self, url: &[u8]) -> Result<TargetUrl, RequestError> {
        let url = utf8(url)?;
        if url.starts_with('/') && !url.starts_with("//") {
            let base = self.target.as_ref().ok_or_else(|| no_target(url))?;
            return base.at(url);
        }
        let target = TargetUrl::parse(url)?;
        self.same_origin(url, &target)?;
        // A URL without a user takes the user that the flags named, if any.
        let given = self.given.target.as_ref().and_then(|given| given.credentials.clone());
        Ok(TargetUrl { credentials: target.credentials.clone().or(given), ..target })
    }

    /// Refuses a request to another origin than the target's. The first request's origin becomes
    /// the target where none was given.
    fn same_origin(&mut self, url: &str, target: &TargetUrl) -> Result<(), RequestError> {
        let ours = self.target.get_or_insert_with(|| target.clone());
        if ours.has_origin_of(target) {
            return Ok(());
        }
        let url = excerpt(url);
        let origin = target.origin();
        let ours = ours.origin();
        Err(RequestError::new(format!(
            "'{url}' goes to {origin}, and the target is {ours}: one origin a run, so give it a \
             file of its own"
        )))
    }

    fn add(&mut self, rendered: RenderedRequest) -> Result<(), RequestError> {
        let RenderedRequest { request, keeps_connection } = rendered;
        if *self.keep_alive.get_or_insert(keeps_connection) != keeps_connection {
            return Err(RequestError::new(if keeps_connection {
                "this request keeps its connection, and those before it close theirs (Connection: \
                 close, or HTTP/1.0): a run does one of the two, so make them alike, or give -k \
                 for all"
            } else {
                "this request closes its connection (Connection: close, or HTTP/1.0), and those \
                 before it keep theirs: a run does one of the two, so make them alike, or give -k \
                 for all"
            }));
        }
        let bytes = request.bytes.len() as u64;
        if bytes > LARGEST_REQUEST {
            return Err(RequestError::new(TOO_LARGE));
        }
        self.rendered += bytes + OVERHEAD;
        if self.rendered > LARGEST_RENDERED {
            return Err(RequestError::new(
                "up to here the requests take more than 2 GiB of memory: use a part of the file, \
                 or smaller bodies",
            ));
        }
        self.requests.push(request);
        Ok(())
    }

    /// Adds the request that stands at this line.
    fn add_rendered(
        &mut self,
        line: usize,
        template: &RequestTemplate,
        url: &[u8],
    ) -> Result<(), RequestError> {
        let target = self.resolve(url);
        target
            .and_then(|target| self.add(template.render(&target)?))
            .map_err(|error| error.at_line(line))
    }

    /// A URL or a path a line, `#` for a comment.
    fn list(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        let template = &self.given.template;
        let mut lines = lines(bytes).filter(|(_, line)| !is_skipped(line));
        lines.try_for_each(|(number, line)| self.add_rendered(number, template, line))
    }

    /// Requests with weights and names.
    fn mix(
        &mut self,
        bytes: &[u8],
        mut body_of: impl FnMut(&Path) -> Result<Vec<u8>, RequestError>,
    ) -> Result<(), RequestError> {
        let lines = lines(bytes)
            .filter(|(_, line)| !is_skipped(line))
            .map(|(number, text)| NumberedLine { number, text });
        let lines = MixLines::parse(lines, &mut body_of)?.without(&self.given.without)?;
        let (requests, groups) = lines.requests(&self.given.template, self.given.seed)?;
        for MixRequest { line, class, template, url } in requests {
            self.add_rendered(line, &template, &url)?;
            if let Some(request) = self.requests.last_mut() {
                request.class = class;
            }
        }
        self.weighted = Some((groups, lines.names));
        Ok(())
    }

    /// The requests in the order in which they are sent, with their classes.
    fn into_mix(self) -> RequestMix {
        let FileDefaults { at_random, seed, .. } = self.given;
        if let Some((groups, names)) = self.weighted {
            let mix = RequestMix::by_weight(self.requests, &groups, *seed);
            // A single class would be the same as all requests.
            return if names.len() > 1 { mix.with_classes(names) } else { mix };
        }
        let mut requests = self.requests;
        let names = name_by_path(&mut requests);
        let mix = if *at_random {
            RequestMix::at_random(requests, *seed)
        } else {
            RequestMix::in_order(requests)
        };
        mix.with_classes(names)
    }

    /// vegeta's JSON lines:
    /// `{"method":"POST","url":"http://…","body":"base64","header":{"Name":["value"]}}`.
    fn json(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        for (number, line) in lines(bytes).filter(|(_, line)| !line.is_empty()) {
            let (template, url) = JsonRequest::parse(line)
                .and_then(|line| line.template(self.given))
                .map_err(|error| error.at_line(number))?;
            self.add_rendered(number, &template, url.as_bytes())?;
        }
        Ok(())
    }

    /// vegeta's plain format: a request line, its headers, and a body by reference.
    ///
    /// ```text
    /// # a comment
    /// POST http://localhost:3000/things
    /// Content-Type: application/json
    /// @thing.json
    ///
    /// GET http://localhost:3000/things/1
    /// ```
    ///
    /// A header line means what it means in a flag, so that `Accept:` leaves a header out.
    fn plain(
        &mut self,
        bytes: &[u8],
        mut body_of: impl FnMut(&Path) -> Result<Vec<u8>, RequestError>,
    ) -> Result<(), RequestError> {
        let mut begun: Option<PlainRequest<'_>> = None;
        for (number, line) in lines(bytes) {
            let at = |error: RequestError| error.at_line(number);
            let orphan = || {
                at(RequestError::new(format!(
                    "'{}' begins no request: write METHOD URL; headers come next, then @FILE for \
                     a body, then an empty line",
                    excerpt(line)
                )))
            };
            if line.is_empty() {
                self.end(begun.take(), None)?;
            } else if is_skipped(line) {
                // Comments may stand between a request's headers.
            } else if let Some(path) = line.strip_prefix(b"@") {
                let request = begun.take().ok_or_else(orphan)?;
                let path = utf8(path.trim_ascii()).map_err(at)?;
                if path.is_empty() {
                    let why =
                        "@ without a path: write the body's file after it, or leave the line out";
                    return Err(at(RequestError::new(why)));
                }
                self.end(Some(request), Some(body_of(Path::new(path)).map_err(at)?))?;
            } else if is_request_line(line) {
                self.end(begun.take(), None)?;
                begun = Some(PlainRequest::begin(number, line).map_err(at)?);
            } else {
                let request = begun.as_mut().ok_or_else(orphan)?;
                request.headers.push(RequestHeader::parse(line).map_err(at)?);
            }
        }
        self.end(begun, None)
    }

    /// Adds the request that was begun, if any.
    fn end(
        &mut self,
        begun: Option<PlainRequest<'_>>,
        body: Option<Vec<u8>>,
    ) -> Result<(), RequestError> {
        let Some(PlainRequest { line, method, url, headers }) = begun else { return Ok(()) };
        self.add_rendered(line, &self.given.template.with(method, headers, body), url)
    }

    /// Whole HTTP/1.1 requests back to back, sent byte for byte. A head is parsed only to find
    /// where its request ends and where it goes.
    fn raw(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        let RequestTemplate { method, headers, body, keep_alive: _, queue_header: _ } =
            &self.given.template;
        let user = self.given.target.as_ref().and_then(|target| target.credentials.as_ref());
        if method != Method::GET || !headers.is_empty() || body.is_some() || user.is_some() {
            return Err(RequestError::new(
                "raw requests go out byte for byte: leave out the flags for method, headers, body and user",
            ));
        }
        let mut rest = bytes;
        let mut line = 1;
        loop {
            // Empty lines between requests are ignored (RFC 9112 section 2.2), and editors end
            // files with one.
            let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            line += line_ends(&rest[..blank]);
            rest = &rest[blank..];
            if rest.is_empty() {
                return Ok(());
            }
            let length = self.raw_request(rest).map_err(|error| error.at_line(line))?;
            line += line_ends(&rest[..length]);
            rest = &rest[length..];
        }
    }

    /// Adds the request at the start of `rest`, and returns its length in bytes.
    fn raw_request(&mut self, rest: &[u8]) -> Result<usize, RequestError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let head = raw_head(&mut request, rest)?;
        let values = |name: &'static str| {
            let fields =
                request.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
            fields.map(|field| field.value)
        };
        let method = request.method.unwrap_or_default();
        let path = request.path.unwrap_or_default();
        if method == "CONNECT" {
            return Err(RequestError::new(CONNECT));
        }
        let protocol = TypedHead {
            fields: request.headers.iter().map(|field| (field.name, Some(field.value))).collect(),
            body: None,
            is_http_1_0: request.version == Some(0),
            keep_alive: self.given.template.keep_alive,
        };
        let RequestProtocol { body, keeps_connection } = protocol.understood()?;
        let length = head + raw_body(body, &rest[head..])?;
        // If the first line has a URL, that says where the request goes. Otherwise it goes to the
        // given target, and only without one to its own Host. (With a target, another Host is no
        // error: captured requests name the host that they were captured from.)
        if path.contains("://") && !path.starts_with('/') {
            self.resolve(path.as_bytes())?;
        } else if self.given.target.is_none() {
            let host = values("host").find(|value| !value.is_empty());
            let host = utf8(host.ok_or_else(|| no_target(path))?)?;
            self.same_origin(host, &TargetUrl::parse(host)?)?;
        }
        let request = Request::new(&rest[..length], method == "HEAD");
        self.add(RenderedRequest { request, keeps_connection })?;
        Ok(length)
    }
}

/// Parses the head of the request at the start of `rest`, and returns its length in bytes.
fn raw_head<'b>(
    request: &mut httparse::Request<'_, 'b>,
    rest: &'b [u8],
) -> Result<usize, RequestError> {
    let window = &rest[..rest.len().min(LARGEST_REQUEST as usize)];
    let head = match request.parse(window) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if window.len() < rest.len() => {
            return Err(RequestError::new(TOO_LARGE));
        }
        Ok(httparse::Status::Partial) => {
            return Err(RequestError::new(
                "the head of the request that begins here has no end: put an empty line after its last header",
            ));
        }
        Err(why) => {
            return Err(RequestError::new(format!(
                "the request that begins here is not HTTP/1.1 ({why}): correct it, or name the \
                 file's format"
            )));
        }
    };
    let mut lines = window[..head].split_inclusive(|byte| *byte == b'\n');
    if lines.any(|line| !line.ends_with(b"\r\n")) {
        return Err(RequestError::new(
            "a line of this request's head ends with LF alone: HTTP wants CR LF, and raw requests \
             go out as they are",
        ));
    }
    Ok(head)
}

/// A line in vegeta's JSON format. Stricter than vegeta where leniency would send something other
/// than what was meant: a key that the format does not know (`headers`, for one) is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRequest {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

impl JsonRequest {
    fn parse(line: &[u8]) -> Result<JsonRequest, RequestError> {
        serde_json::from_slice(line).map_err(|error| {
            // serde says "at line 1" for each line; ours is the line of the file.
            let text = error.to_string();
            let why = text.rsplit_once(" at line ").map_or(&*text, |(why, _)| why);
            let column = error.column();
            let why = excerpt(why);
            RequestError::new(format!(
                r#"column {column}: {why}: write {{"method":"GET","url":"http://…"}} and all of it on one line"#
            ))
        })
    }

    /// What is sent, and its URL.
    fn template(self, given: &FileDefaults) -> Result<(RequestTemplate, String), RequestError> {
        // As with vegeta's omitempty, an empty body is no body.
        let body =
            self.body.filter(|body| !body.is_empty()).map(|body| STANDARD.decode(body)).transpose();
        let fields = self
            .header
            .iter()
            .flatten()
            .flat_map(|(name, all)| all.iter().map(move |value| (name, value)));
        let headers =
            fields.map(|(name, value)| RequestHeader::new(name, value)).collect::<Result<_, _>>();
        let body = body.map_err(|why| {
            RequestError::new(format!(
                "the body is not base64 ({why}): encode it, as jq's @base64 does"
            ))
        })?;
        Ok((given.template.with(method(&self.method)?, headers?, body), self.url))
    }
}

/// A request of the plain format that is not complete yet.
struct PlainRequest<'a> {
    line: usize,
    method: Method,
    url: &'a [u8],
    headers: Vec<RequestHeader>,
}

impl PlainRequest<'_> {
    fn begin(line: usize, text: &[u8]) -> Result<PlainRequest<'_>, RequestError> {
        let (name, url) =
            text.split_at(text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()));
        Ok(PlainRequest {
            line,
            method: method(utf8(name)?)?,
            url: url.trim_ascii(),
            headers: Vec::new(),
        })
    }
}

/// Whether the line is one of a mix: an optional method, a path or URL, and something after it. If
/// that is `HTTP/…`, it is the first line of a raw request instead.
fn is_mix_line(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut words = line.split_ascii_whitespace().peekable();
    words.next_if(|word| is_method(word));
    let is_url = words.next().is_some_and(|word| word.starts_with('/') || word.contains("://"));
    is_url && words.next().is_some_and(|word| !word.starts_with("HTTP/"))
}

/// Whether the line begins with a word in capitals and a space, which no header line does.
fn is_request_line(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    !word.is_empty() && word.len() < line.len() && word.iter().all(u8::is_ascii_uppercase)
}

/// Bytes of a raw request's body, at the start of `rest`.
fn raw_body(framing: RequestBody, rest: &[u8]) -> Result<usize, RequestError> {
    let refused = |why: &str| Err(RequestError::new(why));
    match framing {
        RequestBody::Length(None) => Ok(0),
        RequestBody::Length(Some(length)) if length > LARGEST_REQUEST => refused(TOO_LARGE),
        RequestBody::Length(Some(length)) if length > rest.len() as u64 => refused(&format!(
            "Content-Length says {length} bytes of body and {} are left: correct it, or complete \
             the body",
            rest.len()
        )),
        RequestBody::Length(Some(length)) => Ok(length as usize),
        RequestBody::Chunked => {
            let mut decoder = ChunkedDecoder::default();
            match decoder.feed(rest, |_| {}) {
                Some(taken) if decoder.is_done() => Ok(taken),
                Some(_) => refused(
                    "the chunked body of this request has no end: put a chunk of 0 after it",
                ),
                None => refused(
                    "the body of this request is not chunked as its Transfer-Encoding says: \
                     correct its chunks, or give a Content-Length",
                ),
            }
        }
    }
}

#[expect(clippy::naive_bytecount, reason = "once a file, before the start: not worth a crate")]
fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Lines with their numbers, from 1, without the space around them, and without a byte order mark.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Empty lines and comments.
fn is_skipped(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_name_or_its_first_line() {
        for (name, text, language) in [
            ("a.lua", "", Some("Lua")),
            ("a", "\nwrk.method=\"POST\"\n", Some("Lua")),
            ("a.mjs", "x", Some("JavaScript")),
            ("a", "import http from 'k6/http';", Some("JavaScript")),
            ("a.txt", "/posts", None),
            ("a", "http://h/wrk.lua", None),
        ] {
            assert_eq!(
                script_language(Path::new(name), text.as_bytes()),
                language,
                "{name} {text}"
            );
        }
    }

    #[test]
    fn many_references_to_one_large_body_do_not_fill_the_memory() {
        let given = FileDefaults::default();
        let rendered = LARGEST_RENDERED - OVERHEAD - 1;
        let mut collected = CollectedRequests {
            given: &given,
            target: None,
            requests: Vec::new(),
            weighted: None,
            keep_alive: None,
            rendered,
        };
        let request = |length: usize| RenderedRequest {
            request: Request::new(vec![0; length], false),
            keeps_connection: true,
        };
        assert!(collected.add(request(1)).is_ok());
        assert!(collected.add(request(1)).unwrap_err().to_string().contains("2 GiB"));
    }
}
