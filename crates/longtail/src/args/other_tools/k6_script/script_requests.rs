//! The requests of a script of k6, as plain words or as lines of `--mix`.

use model::Nanos;

use super::load_shape::time;
use super::value_sources::is_of_response;
use super::varying_numbers::{as_written, varies, with_ends};
use crate::args::other_tools::flags::{BODY, METHOD, PATH, UNKNOWN_HEADER, VALUE};
use crate::args::other_tools::js_literals::{
    BEGIN, END, JsCall, JsValue, declared_once, end_of_statement, form, known_begin, opened_file,
    value_with_constants,
};

/// Calls around a request that is not sent exactly once in each iteration.
pub(super) const LOOPS: [&str; 3] = [".forEach", ".map", ".reduce"];

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptBody {
    None,
    Text(String),
    /// What this file has, whose path begins at the script's folder.
    File(String),
    Computed,
}

/// A request as a script has it.
#[derive(Clone, Debug)]
pub(super) struct ScriptRequest {
    /// `None` if it is computed.
    pub(super) method: Option<String>,
    /// `None` if it is computed.
    pub(super) url: Option<String>,
    /// `http://host:port`, if no more of its URL is known.
    pub(super) known_origin: Option<String>,
    /// As it stands in the script, without quotes and random numbers.
    pub(super) written_url: String,
    pub(super) body: ScriptBody,
    /// Whether its body is an object, which k6 sends as a form.
    pub(super) is_form: bool,
    /// `Name: value`.
    pub(super) headers: Vec<String>,
    pub(super) timeout: Option<Nanos>,
    /// Whether it follows no redirect.
    pub(super) follows_nothing: bool,
    /// Which of the calls sends it, counted from 0.
    pub(super) call: usize,
    /// How often it is sent, relative to the others.
    pub(super) weight: u32,
    /// The weight of a request that every iteration sends once.
    pub(super) shares: u32,
    /// Whether a header's value comes from a response of the script.
    pub(super) is_of_response: bool,
    /// What is computed of it, as it stands in the script.
    pub(super) computed: Vec<String>,
    /// What it has beyond that.
    pub(super) not_taken: Vec<String>,
}

impl ScriptRequest {
    /// The requests of the default function, each of which is sent once in every iteration.
    pub(super) fn all_in(code: &str, of_body: &[JsCall<'_>]) -> Vec<ScriptRequest> {
        let requests = of_body.iter().filter(|call| method_of(call).is_some());
        ScriptRequest::all_of(code, &requests.collect::<Vec<_>>())
    }

    pub(super) fn of(code: &str, call: &JsCall<'_>) -> Option<ScriptRequest> {
        let mut arguments =
            call.arguments.iter().map(|written| value_with_constants(code, written));
        let method = match method_of(call)? {
            "request" => arguments.next().and_then(|method| method.text().map(str::to_owned)),
            method => Some(method.to_owned()),
        };
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        let url = arguments.next().and_then(|url| url.text().map(str::to_owned)).filter(is_url);
        // http.get(url, parameters), http.post(url, body, parameters)
        let sent = if ["http.get", "http.head"].contains(&call.name) {
            JsValue::Nothing
        } else {
            arguments.next().unwrap_or(JsValue::Nothing)
        };
        let has_object = |written: &&str| written.trim().starts_with('{');
        let is_named = method_of(call) == Some("request");
        let of_url = usize::from(is_named);
        let written_url = call.arguments.get(of_url).copied().unwrap_or_default();
        let body = match &sent {
            JsValue::Nothing => ScriptBody::None,
            JsValue::Text(body) if body.is_empty() => ScriptBody::None,
            JsValue::Text(body) => ScriptBody::Text(body.clone()),
            JsValue::Object(_) => match form(&sent) {
                Some(body) => ScriptBody::Text(body),
                None => ScriptBody::Computed,
            },
            _ => call
                .arguments
                .get(of_url + 1)
                .and_then(|written| opened_file(code, written))
                .map_or(ScriptBody::Computed, ScriptBody::File),
        };
        let known_origin = match url {
            None => known_begin(code, written_url).and_then(|begin| origin_of_begin(&begin)),
            Some(_) => None,
        };
        let mut request = ScriptRequest {
            method,
            url,
            known_origin,
            written_url: as_written(written_url),
            body,
            // Of `{ ...base }` no more is known.
            is_form: matches!(sent, JsValue::Object(_))
                || sent == JsValue::Computed
                    && call.arguments.get(of_url + 1).is_some_and(has_object),
            headers: Vec::new(),
            timeout: None,
            follows_nothing: false,
            call: 0,
            weight: 1,
            shares: 1,
            is_of_response: false,
            computed: Vec::new(),
            not_taken: Vec::new(),
        };
        let has_file = |written: &&str| {
            let declared = declared_once(code, written.trim());
            let declared = declared.map(|(_, value)| &value[..end_of_statement(value)]);
            declared.unwrap_or(written).contains("http.file(")
        };
        if sent != JsValue::Nothing && call.arguments.iter().any(has_file) {
            request.is_form = false;
            request.not_taken.push("its form with a file (multipart/form-data)".to_owned());
        }
        match arguments.next() {
            None | Some(JsValue::Nothing) => {}
            Some(JsValue::Object(parameters)) => {
                for (name, value) in parameters {
                    request.take_parameter(&name, &value);
                }
            }
            Some(_) => request.take_unknown_headers(),
        }
        request.take_computed(code, &call.arguments[of_url.min(call.arguments.len())..]);
        Some(request)
    }

    /// Keeps what is computed of it; `written` are its URL and what is behind it.
    fn take_computed(&mut self, code: &str, written: &[&str]) {
        let mut keep = |is_computed: bool, at: usize| {
            let written = written.get(at).filter(|_| is_computed)?;
            self.computed.push((*written).to_owned());
            Some(*written)
        };
        keep(self.url.is_none(), 0);
        keep(self.body == ScriptBody::Computed, 1);
        let has_unknown = self.headers.iter().any(|header| header.ends_with(VALUE));
        let parameters = keep(has_unknown, written.len().saturating_sub(1));
        self.is_of_response = parameters.is_some_and(|written| is_of_response(code, written));
    }

    /// Whether it is one for `--mix` even if it is alone: something in its line varies, or only its host
    /// is known.
    pub(super) fn is_for_mix(&self) -> bool {
        self.varies() || self.known_origin.is_some() && self.mix_line(None).is_some()
    }

    /// Whether k6 itself says that its body is a form: no header of it says what it is.
    pub(super) fn is_own_form(&self) -> bool {
        let says_type = |header: &String| header.to_ascii_lowercase().starts_with("content-type:");
        self.is_form && !self.headers.iter().any(says_type)
    }

    /// Whether a number in it differs from request to request.
    pub(super) fn varies(&self) -> bool {
        let in_body = matches!(&self.body, ScriptBody::Text(body) if varies(body));
        let in_url = self.url.as_deref().is_some_and(varies);
        in_url || in_body || self.headers.iter().any(|header| varies(header))
    }

    fn take_parameter(&mut self, name: &str, value: &JsValue) {
        match (name, value) {
            ("headers", JsValue::Object(headers)) => {
                for (at, (name, value)) in headers.iter().enumerate() {
                    // Of two of a name the last one counts.
                    if headers[at + 1..].iter().any(|(later, _)| later == name) {
                        continue;
                    }
                    match value {
                        JsValue::Text(value) | JsValue::Number(value) => {
                            self.headers.push(format!("{name}: {value}"));
                        }
                        _ => self.headers.push(format!("{name}: {VALUE}")),
                    }
                }
            }
            ("headers", _) => self.take_unknown_headers(),
            ("cookies", JsValue::Object(cookies)) => {
                let pair = |(name, value): &(String, JsValue)| {
                    let value = value.field("value").unwrap_or(value).text()?;
                    Some(format!("{name}={value}"))
                };
                let pairs: Option<Vec<String>> = cookies.iter().map(pair).collect();
                let pairs = pairs.map_or_else(|| VALUE.to_owned(), |pairs| pairs.join("; "));
                self.headers.push(format!("Cookie: {pairs}"));
            }
            ("cookies", _) => self.headers.push(format!("Cookie: {VALUE}")),
            ("timeout", value) if time(value).is_some() => self.timeout = time(value),
            ("timeout", _) => self.not_taken.push("timeout of its request (--timeout)".to_owned()),
            ("redirects", JsValue::Number(most)) => self.follows_nothing = most == "0",
            ("tags" | "responseType" | "responseCallback" | "redirects", _) => {}
            _ => self.not_taken.push(format!("{name} of its request")),
        }
    }

    /// Takes that it has headers of which nothing is known.
    fn take_unknown_headers(&mut self) {
        self.headers.push(UNKNOWN_HEADER.to_owned());
        self.not_taken
            .push(format!("its headers, which are computed (a -H '{UNKNOWN_HEADER}' for each)"));
    }

    /// Where its URL's path begins; `None` if it is computed.
    fn begin_of_path(&self) -> Option<usize> {
        let url = self.url.as_deref()?;
        let host = url.find("://")? + "://".len();
        Some(url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at))
    }

    /// `http://host:port`
    pub(super) fn origin(&self) -> Option<&str> {
        match self.url.as_deref() {
            Some(url) => Some(&url[..self.begin_of_path()?]),
            None => self.known_origin.as_deref(),
        }
    }

    /// It as a line of `--mix`, in which [`PATH`], [`METHOD`], [`BODY`] and [`VALUE`] stand for what
    /// is computed; `None` if something in it would be read otherwise there. `weight` is written as
    /// it is.
    pub(super) fn mix_line(&self, weight: Option<&str>) -> Option<String> {
        let path = match (self.url.as_deref(), self.begin_of_path()) {
            (Some(url), Some(begin)) => {
                let path = url[begin..].split('#').next().unwrap_or_default().replace(',', "%2C");
                if varies(&url[..begin]) {
                    return None;
                }
                if path.starts_with('/') { path } else { format!("/{path}") }
            }
            _ => format!("/{PATH}"),
        };
        let is_odd = |text: &str| text.contains(|c: char| c.is_whitespace() || "{}'\"".contains(c));
        // What a script's own text has between braces would be read as a value that varies.
        let is_plain = path.split(BEGIN).enumerate().all(|(at, part)| match at {
            0 => !is_odd(part),
            _ => part.split_once(END).is_some_and(|(_, behind)| !is_odd(behind)),
        });
        if !is_plain {
            return None;
        }
        let path = with_ends(&path);
        let mut line = format!("{} {path}", self.method.as_deref().unwrap_or(METHOD));
        if let Some(weight) = weight {
            line.extend([" ", weight]);
        }
        match &self.body {
            ScriptBody::None => {}
            ScriptBody::Text(body) => line.extend([" -d ", &quoted_in_mix(body)?]),
            ScriptBody::Computed => line.extend([" -d ", BODY]),
            ScriptBody::File(_) => return None,
        }
        if self.is_own_form() {
            line.extend([" -H ", &quoted_in_mix(&format!("Content-Type: {FORM}"))?]);
        }
        for header in &self.headers {
            line.extend([" -H ", &quoted_in_mix(header)?]);
        }
        Some(line)
    }
}

/// `http://host:port` with which a URL begins whose rest is computed; `None` if its host may go on
/// there.
fn origin_of_begin(begin: &str) -> Option<String> {
    let is_web = begin.starts_with("http://") || begin.starts_with("https://");
    let host = begin.find("://").filter(|_| is_web)? + "://".len();
    let end = begin[host..].find(['/', '?', '#']).map(|end| host + end);
    let origin = &begin[..end.unwrap_or(begin.len())];
    let has_port = || {
        let port = origin[host..].rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        port.is_some_and(|port| port.is_ok())
    };
    let is_whole = origin.len() > host && (end.is_some() || has_port());
    (is_whole && !varies(origin)).then(|| origin.to_owned())
}

/// The type of a body that k6 makes of an object.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A text in quotes, as a line of `--mix` reads it, random numbers as ranges; `None` if it has itself
/// what begins a value that varies there, such as `{1..9}`, or a control character.
pub(crate) fn quoted_in_mix(text: &str) -> Option<String> {
    let may_vary = text.split('{').skip(1).any(|behind| {
        let inside = behind.split_once('}').map_or("", |(inside, _)| inside);
        !inside.is_empty() && !inside.contains('"')
    });
    let is_plain = |c: char| !c.is_control() || [BEGIN, END].contains(&c);
    if may_vary || !text.chars().all(is_plain) {
        return None;
    }
    Some(with_ends(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))))
}

/// `http.get` and the like: the method, or `request`, whose first argument says it.
pub(super) fn method_of(call: &JsCall<'_>) -> Option<&'static str> {
    Some(match call.name.strip_prefix("http.")? {
        "get" => "GET",
        "head" => "HEAD",
        "post" => "POST",
        "put" => "PUT",
        "patch" => "PATCH",
        "del" => "DELETE",
        "options" => "OPTIONS",
        "request" | "asyncRequest" => "request",
        _ => return None,
    })
}
