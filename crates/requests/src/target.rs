//! A URL, taken apart once ([`TargetUrl`]).
//!
//! Names are resolved and sockets opened elsewhere. The path stays as it was given, dots and
//! percent signs included, because how the server treats them may be the very thing under test.

use std::fmt;
use std::net::Ipv6Addr;

use http::uri::{Authority, PathAndQuery};
use model::secret::masked_word;
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

use crate::{RequestError, excerpt};

/// Only what is not ASCII is encoded, as RFC 3987 section 3.1 does.
const NOTHING_ASCII: &AsciiSet = &AsciiSet::EMPTY;

const URL_HINT: &str = "write http://HOST:PORT/PATH";

/// Where requests go, and for which path. Made by [`TargetUrl::parse`] only, so that every part
/// fits into a request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetUrl {
    /// Whether it is https.
    pub tls: bool,
    /// The host as a resolver takes it: lower case, an IPv6 address without brackets and with its
    /// zone.
    pub host: String,
    /// The port; 80 or 443 where the URL says none.
    pub port: u16,
    /// What the Host header says: host, and port where it is not the scheme's own (RFC 9110 section
    /// 7.2).
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// `user:password` of the URL, decoded.
    pub credentials: Option<Vec<u8>>,
}

/// Host and port of a URL, and what the Host header says of them.
struct UrlHost {
    host: String,
    port: u16,
    authority: String,
}

impl UrlHost {
    /// Reads `place`, the authority of `url` without its user.
    fn parse(url: &str, place: &str, tls: bool) -> Result<UrlHost, RequestError> {
        if let Some(bracketed) = in_brackets(place) {
            return Err(wrong_part(url, "host", &format!("needs brackets: write {bracketed}")));
        }
        if place.is_empty() || place.starts_with(':') || is_port_alone(url) {
            return Err(RequestError::new(format!(
                "'{}' names no host: {}",
                excerpt(url),
                with_host(url)
            )));
        }
        // A bracket further on is part of neither a name nor an address, though the grammar of the
        // `http` crate accepts it.
        if place.rfind('[').is_some_and(|at| at > 0) {
            return Err(no_host(url));
        }
        let parsed: Authority = place.parse().map_err(|_| no_host(url))?;
        let host = parsed.host();
        let default_port = if tls { 443 } else { 80 };
        // `host:` is the default port (RFC 3986 section 3.2.3).
        let port = match place.get(host.len()..).unwrap_or_default() {
            "" | ":" => default_port,
            rest if !rest.starts_with(':') => return Err(no_host(url)),
            port => port_of(port).ok_or_else(|| {
                let why = "is no number from 1 to 65535: correct it, or leave it out";
                wrong_part(url, "port", why)
            })?,
        };
        let (host, mut authority) = host_of(host).ok_or_else(|| no_host(url))?;
        if port != default_port {
            authority = format!("{authority}:{port}");
        }
        Ok(UrlHost { host, port, authority })
    }
}

fn no_url(url: &str) -> RequestError {
    RequestError::new(format!("'{}' is no URL: {URL_HINT}, and a space in it as %20", excerpt(url)))
}

fn no_host(url: &str) -> RequestError {
    let why =
        "is no name, IPv4 address or [IPv6 address]: correct it; write other scripts as xn--…";
    wrong_part(url, "host", why)
}

/// What is wrong with a part of a URL.
fn wrong_part(url: &str, part: &str, why: &str) -> RequestError {
    RequestError::new(format!("the {part} of '{}' {why}", excerpt(url)))
}

impl TargetUrl {
    /// Takes a URL apart. Without a scheme it is http, so that `localhost:3000/x` works.
    ///
    /// # Errors
    /// If it is no http or https URL that a request can be made from.
    pub fn parse(text: &str) -> Result<TargetUrl, RequestError> {
        let url = text.trim();
        // Lines to paste and manuals have it where a URL belongs.
        if url == "URL" {
            return Err(RequestError::new("put your URL in the place of URL".to_owned()));
        }
        if url.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err(no_url(url));
        }
        let (tls, rest) = after_scheme(url)?;
        let (authority, path) =
            rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
        let (user, place) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(user, place)| (Some(user), place));
        let place = UrlHost::parse(url, place, tls)?;
        let target = TargetUrl {
            tls,
            host: place.host,
            port: place.port,
            authority: place.authority,
            path: String::new(),
            credentials: user.map(credentials_of),
        };
        let path = path_from_root(path);
        target.at(&path).map_err(|_| match foreign_character(&path) {
            Some(foreign) => has_foreign(url, foreign),
            None => no_url(url),
        })
    }

    /// The same place with another path (and query); a fragment is dropped, and what is not ASCII
    /// is percent-encoded.
    ///
    /// # Errors
    /// If `path` does not start with `/` or a request line cannot carry it.
    pub fn at(&self, path: &str) -> Result<TargetUrl, RequestError> {
        let wrong = || {
            let path = excerpt(path);
            RequestError::new(format!(
                "'{path}' is no path: start it with /, and write a space in it as %20"
            ))
        };
        let kept = path.split('#').next().unwrap_or_default();
        if !kept.starts_with('/') || kept.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(wrong());
        }
        let encoded = utf8_percent_encode(kept, NOTHING_ASCII).to_string();
        let checked = PathAndQuery::try_from(encoded.as_str()).map_err(|_| wrong())?;
        Ok(TargetUrl { path: checked.as_str().to_owned(), ..self.clone() })
    }

    /// Scheme, host (with its zone) and port, as a URL without a path.
    pub fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let authority = match self.host.split_once('%') {
            Some((_, zone)) => self.authority.replace(']', &format!("%25{zone}]")),
            None => self.authority.clone(),
        };
        format!("{scheme}://{authority}")
    }

    /// The URL with the secrets of its query, for whoever sends requests to it. Credentials become
    /// a header.
    pub fn exposed(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// Whether both go to the same scheme, host and port.
    pub fn has_origin_of(&self, other: &TargetUrl) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }
}

/// The URL without its secrets: it goes into reports.
impl fmt::Display for TargetUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&masked_word(&self.exposed()))
    }
}

/// Whether that is a port and nothing else.
fn is_port_alone(url: &str) -> bool {
    url.parse::<u16>().is_ok()
}

/// What to write for a URL that has a port or a path only.
fn with_host(url: &str) -> String {
    if is_port_alone(url) {
        return format!("write http://localhost:{url}/");
    }
    match url.strip_prefix(':').and_then(|rest| rest.split('/').next()) {
        Some(port) if port_of(&format!(":{port}")).is_some() => {
            format!("write http://localhost{}", excerpt(url))
        }
        _ if url.starts_with('/') && !url.starts_with("//") => {
            format!("write http://HOST:PORT{}", excerpt(url))
        }
        _ => URL_HINT.to_owned(),
    }
}

/// An IPv6 address that stands without brackets, perhaps with a port, in brackets.
fn in_brackets(place: &str) -> Option<String> {
    if place.starts_with('[') {
        return None;
    }
    if let Some((host, port)) = place.rsplit_once(':')
        && host.contains("::")
        && port.len() > 1
        && port_of(&format!(":{port}")).is_some()
        && host.parse::<Ipv6Addr>().is_ok()
    {
        return Some(format!("[{host}]:{port}"));
    }
    place.parse::<Ipv6Addr>().is_ok().then(|| format!("[{place}]"))
}

/// The first character of a path or query that no request line may have.
fn foreign_character(path: &str) -> Option<char> {
    let query = path.find('?').unwrap_or(path.len());
    path.char_indices().find_map(|(at, character)| {
        let alone = if at > query { format!("/?{character}") } else { format!("/{character}") };
        let is_foreign = character.is_ascii() && PathAndQuery::try_from(alone.as_str()).is_err();
        is_foreign.then_some(character)
    })
}

fn has_foreign(url: &str, character: char) -> RequestError {
    RequestError::new(format!(
        "'{}' has a {character}, which no URL may have: write it as %{:02X}",
        excerpt(url),
        u32::from(character)
    ))
}

/// Whether it is https, and what follows `://`.
fn after_scheme(url: &str) -> Result<(bool, &str), RequestError> {
    let scheme_length =
        url.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(url.len());
    let (scheme, rest) = url.split_at(scheme_length);
    match rest.strip_prefix("://") {
        Some(rest) if scheme.eq_ignore_ascii_case("http") => Ok((false, rest)),
        Some(rest) if scheme.eq_ignore_ascii_case("https") => Ok((true, rest)),
        Some(_) => Err(RequestError::new(format!(
            "'{}' is neither http:// nor https://, and nothing else can be loaded: correct the \
             part before ://",
            excerpt(url)
        ))),
        // `http:/localhost`, `http//localhost`.
        None if ["http:/", "https:/", "http//", "https//"]
            .iter()
            .any(|torn| url.starts_with(torn)) =>
        {
            let host = rest.trim_start_matches([':', '/']);
            Err(RequestError::new(format!(
                "'{}' has no :// after {scheme}: write {scheme}://{}",
                excerpt(url),
                excerpt(host)
            )))
        }
        None => Ok((false, url.strip_prefix("//").unwrap_or(url))),
    }
}

/// `:8080` as a port.
fn port_of(text: &str) -> Option<u16> {
    let digits =
        text.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|port| *port != 0)
}

/// User and password as they are sent: the password may be missing, but not the colon (RFC 7617
/// section 2).
fn credentials_of(user: &str) -> Vec<u8> {
    let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
    percent_decode_str(&user).collect()
}

/// The path with the slash that it begins with.
fn path_from_root(path: &str) -> String {
    if path.starts_with('/') || path.starts_with('\\') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

/// The host for a resolver, and for a Host header: a zone (RFC 6874) means nothing to the other
/// side.
fn host_of(text: &str) -> Option<(String, String)> {
    let Some(inner) = text.strip_prefix('[') else {
        let host = text.to_ascii_lowercase();
        return Some((host.clone(), host));
    };
    let inner = inner.strip_suffix(']')?;
    let Some((address, zone)) = inner.split_once('%') else {
        let address: Ipv6Addr = inner.parse().ok()?;
        return Some((address.to_string(), format!("[{address}]")));
    };
    let address: Ipv6Addr = address.parse().ok()?;
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    let is_zone =
        !zone.is_empty() && zone.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
    is_zone.then(|| (format!("{address}%{zone}"), format!("[{address}]")))
}
