//! Secrets in what a user typed: how to find them, and the types that keep them out of everything
//! that is shown or stored ([`MaskedText`], [`Private`]).
//!
//! `secret_names.txt` lists the names of secrets. In doubt, text is masked: a report that says less
//! is a nuisance, but a password in a pull request can't be taken back.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;

/// The text that replaces a secret.
pub const SECRET: &str = "(secret)";

/// Text whose secrets are removed when it is created: a command line, a URL, a tool's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct MaskedText(String);

impl MaskedText {
    /// From words that their owner has already masked one by one.
    pub fn of_masked(text: String) -> MaskedText {
        MaskedText(text)
    }
}

impl<Text: Into<String>> From<Text> for MaskedText {
    fn from(text: Text) -> MaskedText {
        MaskedText(masked(&text.into()))
    }
}

impl Deref for MaskedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MaskedText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

/// Older files may contain secrets that are masked today.
impl<'de> Deserialize<'de> for MaskedText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MaskedText, D::Error> {
        String::deserialize(from).map(MaskedText::from)
    }
}

/// A value that can be shown without its secrets.
pub trait Maskable {
    /// The value without its secrets.
    #[must_use]
    fn masked(&self) -> Self;
}

/// A URL, a path, a command in one text.
impl Maskable for String {
    fn masked(&self) -> String {
        masked_word(self)
    }
}

/// The words of a command.
impl Maskable for Vec<String> {
    fn masked(&self) -> Vec<String> {
        masked_words(self)
    }
}

/// Environment variables.
impl Maskable for BTreeMap<String, String> {
    fn masked(&self) -> BTreeMap<String, String> {
        let value = |name: &str, value: &str| {
            let whole = masked_word(&format!("{name}={value}"));
            whole.strip_prefix(&format!("{name}=")).unwrap_or(SECRET).to_owned()
        };
        self.iter().map(|(name, text)| (name.clone(), value(name, text))).collect()
    }
}

/// What the user typed: used as it is, but shown and stored without its secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Private<T>(T);

impl<T> Private<T> {
    /// As it was typed, for starting a server or sending a request; never for printing.
    pub fn exposed(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Private<T> {
    fn from(typed: T) -> Private<T> {
        Private(typed)
    }
}

impl From<&str> for Private<String> {
    fn from(typed: &str) -> Private<String> {
        Private(typed.to_owned())
    }
}

impl<T: Maskable> Private<T> {
    /// Without its secrets.
    pub fn masked(&self) -> T {
        self.0.masked()
    }
}

impl<T: Maskable + fmt::Display> fmt::Display for Private<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.masked().fmt(out)
    }
}

impl<T: Maskable + fmt::Debug> fmt::Debug for Private<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.masked().fmt(out)
    }
}

impl<T: Maskable + Serialize> Serialize for Private<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.masked().serialize(to)
    }
}

/// Older files may contain secrets that are masked today.
impl<'de, T: Maskable + Deserialize<'de>> Deserialize<'de> for Private<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Private<T>, D::Error> {
        T::deserialize(from).map(|typed| Private(typed.masked()))
    }
}

/// The table of names.
struct SecretNames {
    endings: Vec<&'static str>,
    words: Vec<&'static str>,
    of_queries: Vec<&'static str>,
    prefixes: Vec<&'static str>,
}

static NAMES: LazyLock<SecretNames> = LazyLock::new(|| {
    let rows = |kind: &str| -> Vec<&'static str> {
        include_str!("secret_names.txt")
            .lines()
            .filter_map(|line| line.split_once(' ').filter(|(first, _)| *first == kind))
            .map(|(_, word)| word)
            .collect()
    };
    SecretNames {
        endings: rows("ending"),
        words: rows("word"),
        of_queries: rows("query"),
        prefixes: rows("prefix"),
    }
});

/// Whether a header, an option, a parameter or a variable of that name has a secret for a value.
pub fn is_secret_name(name: &str) -> bool {
    let words = words_of(name);
    let squashed = words.concat();
    NAMES.endings.iter().any(|ending| squashed.ends_with(ending))
        || words.last().is_some_and(|last| NAMES.words.contains(&last.as_str()))
}

/// The same for a parameter in a query or a form.
fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name) || NAMES.of_queries.contains(&words_of(name).concat().as_str())
}

/// The words of a name, in lower case: `X-Api-Key`, `api_key`, `apiKey`, `user[apiKey]`.
fn words_of(name: &str) -> Vec<String> {
    let name = name.replace("%5B", "[").replace("%5b", "[").replace("%5D", "]").replace("%5d", "]");
    let mut words: Vec<String> = Vec::new();
    let mut before = '-';
    for c in name.chars() {
        let begins = !before.is_ascii_alphanumeric()
            || before.is_ascii_lowercase() && c.is_ascii_uppercase();
        before = c;
        if !c.is_ascii_alphanumeric() {
            continue;
        }
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}

/// The words of a command, each without its secrets.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut before = "";
    words
        .iter()
        .map(|word| {
            let option = std::mem::replace(&mut before, word);
            if is_secret_of(option, word) { SECRET.to_owned() } else { masked_word(word) }
        })
        .collect()
}

/// Whether the word is the secret of the option before it.
fn is_secret_of(option: &str, word: &str) -> bool {
    let Some(name) = option.strip_prefix('-') else { return false };
    let is_plain = !option.contains(['=', ':', ' ']);
    // curl and similar tools take user and password here; sudo and docker a number, or only a name.
    let is_user = matches!(option, "-u" | "--user" | "-U" | "--proxy-user");
    let is_of_ids = || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    is_plain && is_secret_name(name) && !word.starts_with("--") && !is_harmless(word)
        || is_user && word.contains(':') && !is_of_ids()
}

/// What to put in place of each secret of a masked command, and a way without typing it; `None` if
/// nothing is masked.
pub fn what_to_put(words: &[String]) -> Option<String> {
    // Nobody types more, but a file may contain any number.
    const MOST: usize = 20;
    let mut missing: Vec<String> = Vec::new();
    let mut before = "";
    for word in words {
        let option = std::mem::replace(&mut before, word);
        for (at, _) in word.match_indices(SECRET) {
            let what = what_is_hidden(option, &word[..at], &word[at + SECRET.len()..]);
            if missing.len() < MOST && !missing.contains(&what) {
                missing.push(what);
            }
        }
    }
    let is_header = words.iter().any(|word| word.contains(&format!(": {SECRET}")));
    let or = if is_header { ", or the headers in a file: -H @FILE" } else { "" };
    (!missing.is_empty()).then(|| format!("for {SECRET} put {}{or}", missing.join(" and ")))
}

/// What a secret is that stands in a word between `head` and `rest`, behind the option.
fn what_is_hidden(option: &str, head: &str, rest: &str) -> String {
    let name_of = |text: &str| text[name_start(text, text.len())..].to_owned();
    let flag = if head.is_empty() { option } else { head };
    // `"password":"`, whose quotes are escaped within another.
    let in_json = head.strip_suffix('"').map(|head| head.trim_end_matches(['\\', '"', ' ']));
    let in_json = in_json.and_then(|head| head.strip_suffix(':'));
    if rest.starts_with('@') {
        "user and password of the URL".to_owned()
    } else if let Some(head) = in_json {
        format!("the value of {}", name_of(head.trim_end_matches(['\\', '"', ' '])))
    } else if let Some(head) = head.strip_suffix([' ', ':']) {
        format!("the value of {}", name_of(head.trim_end_matches([' ', ':'])))
    } else if let Some(head) = head.strip_suffix('=').filter(|head| !head.starts_with('-')) {
        format!("the value of {}", name_of(head))
    } else if flag.starts_with("--auth") || !flag.starts_with("--") && flag.ends_with('a') {
        "USER:PASSWORD".to_owned()
    } else if flag.starts_with("--data") || !flag.starts_with("--") && flag.ends_with('d') {
        "the body (-D FILE in its place keeps it off the command line)".to_owned()
    } else {
        format!("the value of {}", flag.trim_end_matches('='))
    }
}

/// One word of a command without its secrets; a setting or a header is masked to its end.
pub fn masked_word(word: &str) -> String {
    replaced(word, secrets_in(word, true))
}

/// A request's body without its secrets: JSON and a form lose the values of the fields that look
/// like secrets, any other body that [looks like one](is_secret_body) is masked as a whole.
pub fn masked_body(body: &str) -> String {
    if !is_secret_body(body) {
        return body.to_owned();
    }
    if !is_form(body) {
        return masked_json(body).unwrap_or_else(|| SECRET.to_owned());
    }
    let fields = body.split('&').map(|field| match field.split_once('=') {
        Some((name, _)) if is_secret_body(field) => format!("{name}={SECRET}"),
        _ => field.to_owned(),
    });
    let shown = fields.collect::<Vec<_>>().join("&");
    // A secret that no field has alone, or that is the name of one.
    if secrets_in(&shown, true).is_empty() { shown } else { SECRET.to_owned() }
}

/// JSON with [`SECRET`] in the place of each text whose name is that of a secret; `None` if it is no
/// JSON, or something else in it looks like a secret.
fn masked_json(body: &str) -> Option<String> {
    if !body.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut masked = String::with_capacity(body.len());
    // The same with nothing where a secret was.
    let mut others = String::with_capacity(body.len());
    let mut is_of_secret = false;
    let mut rest = body;
    while let Some((before, inside)) = rest.split_once('"') {
        let end = end_of_json_text(inside)?;
        let (text, behind) = (&inside[..end], &inside[end + 1..]);
        let is_secret = is_of_secret && before.trim() == ":";
        is_of_secret = behind.trim_start().starts_with(':') && is_secret_name(text);
        masked.extend([before, "\"", if is_secret { SECRET } else { text }, "\""]);
        others.extend([before, "\"", if is_secret { "" } else { text }, "\""]);
        rest = behind;
    }
    masked.push_str(rest);
    others.push_str(rest);
    (!is_secret_body(&others)).then_some(masked)
}

/// Where the quote stands that ends a text of JSON, of which this is what is behind its first quote.
fn end_of_json_text(inside: &str) -> Option<usize> {
    let mut is_escaped = false;
    inside.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Whether a body is fields of a form, none of them empty: `a=1&b=2`.
fn is_form(body: &str) -> bool {
    body.split('&').all(|field| {
        field.split_once('=').is_some_and(|(name, value)| {
            !name.is_empty() && name.chars().all(is_of_name) && !value.trim_matches('=').is_empty()
        })
    })
}

/// Whether something in a request's body looks like a secret: a value of JSON or of a form by its
/// name, an element of XML, a part of a form, a token. So does one that is neither JSON nor XML nor
/// a form, such as bare words, since nothing tells what it is.
/// `@FILE` names a file.
pub fn is_secret_body(body: &str) -> bool {
    let is_known = body.trim_start().starts_with(['{', '[', '<'])
        || is_form(body)
        || body.starts_with('@')
        || is_number_or_time(body);
    if !body.is_empty() && !is_known {
        return true;
    }
    // The first field of a form is one as the others are.
    let form = format!("&{body}");
    let behind = |mark| body.split(mark).skip(1);
    // Names of XML may have a prefix: `<wsse:Password>`.
    let name = |rest: &str| rest[..next_of(rest, 0, |c| !is_of_name(c) && c != ':')].to_owned();
    let is_named_so = |rest: &str| name(rest).split(':').any(is_secret_name);
    !secrets_in(&form, true).is_empty()
        || body.contains(SECRET)
        || behind("<").any(is_named_so)
        || behind("name=\"").any(is_named_so)
}

/// Whether that is a number, perhaps with a unit of time: no secret.
pub fn is_number_or_time(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_digit()) && value.parse::<Nanos>().is_ok()
}

/// Any text without its secrets.
pub fn masked(text: &str) -> String {
    replaced(text, secrets_in(text, false))
}

/// The text with [`SECRET`] at these places, which may overlap.
fn replaced(text: &str, mut places: Vec<Range<usize>>) -> String {
    places.sort_by_key(|place| (place.start, place.end));
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    let mut last_end = None;
    for place in places {
        if place.start >= done && last_end != Some(place.start) {
            shown.push_str(&text[done..place.start]);
            shown.push_str(SECRET);
        }
        done = done.max(place.end);
        last_end = Some(done);
    }
    shown.push_str(&text[done..]);
    shown
}

/// The places of secrets in a text, which may be one word of a command.
fn secrets_in(text: &str, is_word: bool) -> Vec<Range<usize>> {
    let mut found = credentials_of_urls(text, is_word);
    found.extend(credentials_without_scheme(text));
    found.extend(values_of_settings(text, is_word));
    found.extend(values_of_headers(text, is_word));
    found.extend(values_of_options(text));
    found.extend(known_tokens(text));
    // Text that is already masked stays as it is.
    found.retain(|place| !place.is_empty() && !text[place.start..].starts_with(SECRET));
    found
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

fn is_blank_or_quote(c: char) -> bool {
    c.is_whitespace() || QUOTES.contains(&c) || matches!(c, '<' | '>')
}

/// Finds the next matching character for positions in rising order. The text is scanned only once,
/// however often it is asked, because a study may come from anybody.
struct Next<'a, F> {
    text: &'a str,
    is_one: F,
    /// The last position that was asked for, and the result.
    last: Option<Range<usize>>,
}

impl<'a, F: Fn(char) -> bool + Copy> Next<'a, F> {
    fn of(text: &'a str, is_one: F) -> Next<'a, F> {
        Next { text, is_one, last: None }
    }

    /// The place of the first one from `start` on, or the end.
    fn from(&mut self, start: usize) -> usize {
        match &self.last {
            Some(last) if (last.start..=last.end).contains(&start) => last.end,
            _ => {
                let end = next_of(self.text, start, self.is_one);
                self.last = Some(start..end);
                end
            }
        }
    }
}

/// The place of the first such character from `start` on, or the end.
fn next_of(text: &str, start: usize, is_end: impl FnMut(char) -> bool) -> usize {
    text[start..].find(is_end).map_or(text.len(), |at| start + at)
}

/// `user:password` of `http://user:password@host`, even if it is not a valid URL because the
/// password contains a slash.
fn credentials_of_urls(text: &str, is_word: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut word_ends = Next::of(text, is_blank_or_quote);
    let mut authority_ends = Next::of(text, |c| "/?#\\".contains(c));
    let mut queries = Next::of(text, |c| c == '?');
    let mut last_ats = LastAt::default();
    for (at, _) in text.match_indices("://") {
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let scheme_start = text[..at].rfind(|c| !is_of_scheme(c)).map_or(0, |last| last + 1);
        if !text.is_char_boundary(scheme_start) {
            continue;
        }
        let scheme = &text[scheme_start..at];
        let start = at + 3;
        let is_whole = is_word && scheme_start == 0;
        let end = if is_whole { text.len() } else { word_ends.from(start) };
        let authority_end = authority_ends.from(start).min(end);
        let authority = &text[start..authority_end];
        let port = authority.rsplit_once(']').map_or(authority, |(_, port)| port);
        let port = port.split_once(':').map_or("", |(_, port)| port);
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        let user_end = if let Some(at) = authority.rfind('@') {
            let has_password = authority.contains(':');
            let path_end = queries.from(start).min(end);
            let last = has_password.then(|| last_ats.within(text, start..path_end)).flatten();
            last.or(Some(start + at))
        } else if is_port {
            None
        } else {
            let encoded = authority.find("%40").map(|at| start + at);
            last_ats.within(text, start..end).or(encoded)
        };
        let Some(user_end) = user_end else { continue };
        let is_web =
            ["http", "https", "ws", "wss"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
        // In ssh://deploy@box this is only a name; in web URLs it may be a token.
        if is_web || text[start..authority_end.min(user_end)].contains(':') {
            found.push(start..user_end);
        }
    }
    found
}

/// Finds the last @ in ranges that begin later and later and often end at the same place.
#[derive(Default)]
struct LastAt {
    /// The range that was scanned, and its last @.
    last: Option<(Range<usize>, Option<usize>)>,
}

impl LastAt {
    fn within(&mut self, text: &str, stretch: Range<usize>) -> Option<usize> {
        let at = match &self.last {
            Some((last, at)) if last.start <= stretch.start && last.end == stretch.end => *at,
            _ => text[stretch.clone()].rfind('@').map(|at| stretch.start + at),
        };
        let start = stretch.start;
        self.last = Some((stretch, at));
        at.filter(|at| *at >= start)
    }
}

/// Schemes with a colon and an @ but without a password.
const NO_USERS: [&str; 6] = ["mailto", "sip", "sips", "xmpp", "acct", "npm"];

/// `user:password@host`, as a URL may be typed.
fn credentials_without_scheme(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let slashes = if text.starts_with("//") { 2 } else { 0 };
    let mut part = PartOfWord { start: slashes, ..PartOfWord::default() };
    let mut is_in_query = false;
    for (at, c) in text.char_indices() {
        if is_blank_or_quote(c) {
            is_in_query = false;
        }
        match c {
            '?' => is_in_query = true,
            ':' => part.take_colon(text, at),
            '@' if part.may_be_user && !is_in_query => {
                let host = &text[at + 1..];
                let is_host = host.starts_with(|c: char| c.is_alphanumeric() || c == '[');
                if is_host && !host.starts_with("sha256:") {
                    found.pop_if(|last| last.start == part.start);
                    found.push(part.start..at);
                }
            }
            _ if is_blank_or_quote(c) || ",(=".contains(c) => {
                let start = at + c.len_utf8();
                let slashes = if text[start..].starts_with("//") { 2 } else { 0 };
                part = PartOfWord { start: start + slashes, ..PartOfWord::default() };
            }
            _ => {}
        }
    }
    found
}

/// A candidate for user and password.
#[derive(Default)]
struct PartOfWord {
    start: usize,
    has_colon: bool,
    may_be_user: bool,
}

impl PartOfWord {
    fn take_colon(&mut self, text: &str, at: usize) {
        if text[at..].starts_with("://") {
            self.may_be_user = false;
            self.has_colon = true;
            return;
        }
        if self.has_colon || at < self.start {
            return;
        }
        self.has_colon = true;
        let name = &text[self.start..at];
        let password = &text[at + 1..];
        let digits = password.bytes().take_while(u8::is_ascii_digit).count();
        let is_port = digits > 0 && password[digits..].starts_with('/');
        let is_path = name.contains('/') && !name.contains("//");
        self.may_be_user = !is_port && !is_path && !NO_USERS.contains(&name);
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.[]%$".contains(c)
}

/// The start of the name that ends at `end`.
fn name_start(text: &str, end: usize) -> usize {
    text[..end]
        .rfind(|c| !is_of_name(c))
        .map_or(0, |last| last + text[last..].chars().next().map_or(1, char::len_utf8))
}

/// A yes/no value is not a secret, whatever its name.
fn is_harmless(value: &str) -> bool {
    const HARMLESS: [&str; 12] =
        ["", "0", "1", "true", "false", "yes", "no", "on", "off", "null", "nil", "none"];
    // Longer values, of which there may be many, are not scanned.
    value.len() < 32 && HARMLESS.iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// The values of `name=value`: settings, query parameters, forms.
fn values_of_settings(text: &str, is_word: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut value_ends = Next::of(text, |c| is_blank_or_quote(c) || "&;,|)}#".contains(c));
    let mut forms = quoted_forms(text).into_iter().peekable();
    for (at, _) in text.match_indices('=') {
        let name_end = text[..at].trim_end_matches(' ').len();
        let start = name_start(text, name_end);
        let name = &text[start..name_end];
        let before = text[..start].chars().next_back();
        let is_query = matches!(before, Some('?' | '&' | ';')) || is_word && name_end < at;
        if name.is_empty() || !(is_secret_name(name) || is_query && is_secret_parameter(name)) {
            continue;
        }
        let mut value_start = at + 1;
        if name_end < at {
            value_start += text[value_start..].len() - text[value_start..].trim_start().len();
        }
        let quote = text[value_start..].chars().next().filter(|c| QUOTES.contains(c));
        let outer = before.filter(|c| QUOTES.contains(c));
        while forms.next_if(|form| form.end <= start).is_some() {}
        let form = forms.peek().filter(|form| form.start <= start);
        let end = if let Some(form) = form {
            next_of(&text[..form.end], value_start, |c| c == '&')
        } else if let Some(quote) = quote {
            value_start += 1;
            next_of(text, value_start, |c| c == quote)
        } else if let Some(outer) = outer {
            next_of(text, value_start, |c| c == outer)
        } else if is_word && start == 0 {
            text.len()
        } else {
            value_ends.from(value_start)
        };
        let value = &text[value_start..end];
        let is_of_query_alone = !is_secret_name(name);
        if !(is_harmless(value) || is_of_query_alone && is_file(value)) {
            found.push(value_start..end);
        }
    }
    found
}

/// The places of forms that a line has in quotes as bodies: `POST /login -d "user=a&pw=b"`.
fn quoted_forms(text: &str) -> Vec<Range<usize>> {
    const FLAGS: [&str; 3] = [" -d ", " --data ", " --data-raw "];
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices(" -") {
        let Some(flag) = FLAGS.into_iter().find(|flag| text[at..].starts_with(flag)) else {
            continue;
        };
        let start = at + flag.len() + 1;
        let quote = text[start - 1..].chars().next().filter(|first| QUOTES.contains(first));
        let Some(quote) = quote.filter(|_| found.last().is_none_or(|last| last.end < at)) else {
            continue;
        };
        let mut is_escaped = false;
        let end = next_of(text, start, |c| {
            let is_end = c == quote && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        if is_form(&text[start..end]) {
            found.push(start..end);
        }
    }
    found
}

/// Puma's `ssl://HOST:PORT?key=FILE` names a file.
fn is_file(value: &str) -> bool {
    const ENDINGS: [&str; 4] = [".pem", ".key", ".crt", ".cert"];
    const LONGEST: usize = 4096;
    value.len() <= LONGEST && value.contains('/')
        || ENDINGS.iter().any(|ending| value.ends_with(ending))
}

/// The values of `Name: value` and `"name": "value"`: headers, JSON.
fn values_of_headers(text: &str, is_word: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut values_of_json = Next::of(text, |c| ",}]\n".contains(c));
    let mut words = Next::of(text, is_blank_or_quote);
    let mut lines = Next::of(text, |c| c == '\n');
    for (at, _) in text.match_indices(':') {
        let head = text[..at].trim_end_matches(' ');
        let quoted = head.strip_suffix(['"', '\'', '\\']).map(|head| head.trim_end_matches('\\'));
        let name_end = quoted.map_or(head.len(), str::len);
        let start = name_start(text, name_end);
        let name = &text[start..name_end];
        let before = text[..start].chars().next_back();
        // In Ruby's "in `password': undefined local variable", the closing quote differs from the
        // opening one.
        let ends_alone = quoted.is_some_and(|_| before != text[..head.len()].chars().next_back());
        if name.is_empty() || name.starts_with('-') || ends_alone || !is_secret_name(name) {
            continue;
        }
        let rest = &text[at + 1..];
        let value_start = at + 1 + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let value = &text[value_start..];
        if quoted.is_some() {
            let inner = value.trim_start_matches('\\');
            let (skipped, end) = if inner.starts_with(['"', '\'']) {
                let escapes = value.len() - inner.len();
                let skipped = escapes + 1;
                let end = next_of(text, value_start + skipped, |c| c == '"' || c == '\'');
                // JSON within quotes: its closing quote is escaped as its opening one.
                let value = &text[value_start + skipped..end];
                let shorter = value.trim_end_matches('\\').len();
                let is_escaped = escapes > 0 && value.len() > shorter;
                (skipped, if is_escaped { value_start + skipped + shorter } else { end })
            } else {
                (0, values_of_json.from(value_start))
            };
            if !is_harmless(&text[value_start + skipped..end]) {
                found.push(value_start + skipped..end);
            }
            continue;
        }
        // `http://auth:8080/`, `auth:8080`, `/v1/token:refresh` are addresses.
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        let is_port = (1..=5).contains(&digits)
            && (value.len() == digits || value[digits..].starts_with(['/', ':', '?', ' ', '\'']))
            && rest.len() == value.len()
            && !name.contains('-');
        if is_port || value.starts_with("//") || matches!(before, Some('/' | '@')) {
            continue;
        }
        let outer = before.filter(|c| QUOTES.contains(c));
        let end = match outer {
            Some(outer) => next_of(text, value_start, |c| c == outer || c == '\n'),
            None if is_word && start == 0 => text.len(),
            // In a line of words, an unquoted value ends with its word.
            None if rest.len() == value.len() => words.from(value_start),
            None => lines.from(value_start),
        };
        found.push(value_start..end);
    }
    found
}

/// The values of `--token value` within a text.
fn values_of_options(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('-') {
        let begins = text[..at].chars().next_back().is_none_or(|c| c != '-' && !is_of_name(c));
        if !begins {
            continue;
        }
        let name_end = next_of(text, at, |c| !is_of_name(c));
        let rest = &text[name_end..];
        let value_start = name_end + rest.len() - rest.trim_start_matches(' ').len();
        if value_start == name_end || !is_secret_name(&text[at..name_end]) {
            continue;
        }
        let quote = text[value_start..].chars().next().filter(|c| QUOTES.contains(c));
        let place = match quote {
            Some(quote) => value_start + 1..next_of(text, value_start + 1, |c| c == quote),
            None => value_start..next_of(text, value_start, is_blank_or_quote),
        };
        if !text[place.clone()].starts_with('-') && !is_harmless(&text[place.clone()]) {
            found.push(place);
        }
    }
    found
}

/// The shortest token with a known prefix.
const SHORTEST_TOKEN: usize = 20;
/// The shortest word after `Bearer` that counts as a token if it contains a digit.
const SHORTEST_BEARER: usize = 6;

/// Tokens with a known prefix, and words after `Bearer`.
fn known_tokens(text: &str) -> Vec<Range<usize>> {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "_-.~+/".contains(c);
    let mut found = Vec::new();
    for prefix in &NAMES.prefixes {
        let mut ends = Next::of(text, |c| !is_of_token(c) || c == '/');
        let mut digits = Next::of(text, |c| c.is_ascii_digit());
        for (at, _) in text.match_indices(prefix) {
            let begins = text[..at].chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric());
            let end = ends.from(at);
            if begins && end - at >= SHORTEST_TOKEN && digits.from(at) < end {
                found.push(at..end);
            }
        }
    }
    let mut digits = Next::of(text, |c| c.is_ascii_digit());
    for (at, word) in text.to_ascii_lowercase().match_indices("bearer ") {
        let start = at + word.len();
        let end = next_of(text, start, |c| !is_of_token(c) && c != '=');
        if end - start >= SHORTEST_BEARER && digits.from(start) < end {
            found.push(start..end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_text_stays_as_it_is() {
        for text in [
            "-a '(secret)'",
            "X-Api-Key: (secret)",
            "http://(secret)@h/?token=(secret)&x=1",
            "env TOKEN=(secret) puma",
            r#"{"password": "(secret)"}"#,
        ] {
            assert_eq!(masked(text), text);
            assert_eq!(masked_word(text), text);
        }
    }

    /// Study files may come from anybody. A hundred times as much takes a second or two each.
    #[test]
    fn a_long_text_is_scanned_in_linear_time() {
        for piece in [
            "@",
            "a:@",
            "a:@1",
            "a://",
            "http://a:b@",
            "token: ",
            "token:",
            "token=",
            "?key=/",
            "--token ",
            "bearer ",
            "sk-",
            "\"token\":x",
            "'token: ",
            "\"token=",
            "://a ",
            "a@b ",
        ] {
            let text = piece.repeat(100_000 / piece.len());
            for shown in [masked(&text), masked_word(&text)] {
                assert!(shown.len() <= 10 * text.len(), "{piece}");
            }
        }
    }

    #[test]
    fn names_in_ruby_error_messages_are_not_secrets() {
        let line = "app.rb:5:in `password': undefined local variable or method (NameError)";
        assert_eq!(masked(line), line);
        let line = "app.rb:5:in 'User#token': wrong number of arguments";
        assert_eq!(masked(line), line);
    }

    #[test]
    fn the_missing_secrets_are_named() {
        for (line, expected) in [
            ("longtail load -c5 http://h/", None),
            ("load -ka (secret) http://h/", Some("for (secret) put USER:PASSWORD")),
            ("load -a(secret) http://h/", Some("for (secret) put USER:PASSWORD")),
            (
                "load -d (secret) http://h/",
                Some(
                    "for (secret) put the body (-D FILE in its place keeps it off the command line)",
                ),
            ),
            ("load http://(secret)@h/", Some("for (secret) put user and password of the URL")),
            ("load http://h/?a=b&api_key=(secret)", Some("for (secret) put the value of api_key")),
            ("sweep -- env TOKEN=(secret)", Some("for (secret) put the value of TOKEN")),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(what_to_put(&words).as_deref(), expected, "{line}");
        }
        // JSON in quotes of a mix keeps its own, so that the line can be typed again.
        let mix = r#"POST /login -d "{\"user\":\"x\",\"password\":\"hunter2\",\"a\":1}""#;
        let words = masked_words(&["--mix".to_owned(), mix.to_owned()]);
        assert_eq!(words[1], mix.replace("hunter2", SECRET));
        assert_eq!(what_to_put(&words).as_deref(), Some("for (secret) put the value of password"));
        let header = ["-H", "X-Api-Key: (secret)"].map(str::to_owned);
        let expected =
            "for (secret) put the value of X-Api-Key, or the headers in a file: -H @FILE";
        assert_eq!(what_to_put(&header).as_deref(), Some(expected));
    }

    #[test]
    fn a_body_is_secret_where_something_in_it_looks_like_one() {
        for body in [
            r#"{"user": {"name": "me", "password": "hunter2"}}"#,
            r#"{"passwords":["hunter2"]}"#,
            "password=hunter2",
            "a=b&key=hunter2",
            "key=hunter2&a=b",
            "user%5Bpassword%5D=hunter2",
            "<login><password>hunter2</password></login>",
            "--x\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2",
            "mutation { login(password: \"hunter2\") }",
            "see http://me:hunter2@h/",
            "ghp_0123456789abcdefghij0123456789abcdef",
            "hunter2",
            "hunter2 x",
            "me:hunter2",
            "aHVudGVyMg==",
            "the key is: hunter2",
            "<wsse:Password>hunter2</wsse:Password>",
        ] {
            assert!(is_secret_body(body), "{body}");
        }
        for body in [
            "",
            "123",
            "30s",
            "@body.json",
            r#"{"a":1}"#,
            r#"{"max_tokens": 100, "sort": "key", "at": "10:30"}"#,
            "a=b&c=d",
            "<order><id>1</id></order>",
            r#"{"password": null}"#,
        ] {
            assert!(!is_secret_body(body), "{body}");
        }
    }

    #[test]
    fn a_form_and_json_lose_only_their_secrets() {
        for (body, shown) in [
            ("user=a&pw=hunter2+x&remember=1", "user=a&pw=(secret)&remember=1"),
            ("pw=hunter2,;x&user=a&token=hunter2", "pw=(secret)&user=a&token=(secret)"),
            ("pw=(secret)&user=a", "pw=(secret)&user=a"),
            ("a=ghp_0123456789abcdefghij0123456789abcdef&b=1", "a=(secret)&b=1"),
            ("a=http://me:hunter2@h/&b=c", "a=(secret)&b=c"),
            ("ghp_0123456789abcdefghij0123456789abcdef=1&b=c", SECRET),
            ("hunter2&user=a", SECRET),
            ("{\"password\":\"hunter2\"}", "{\"password\":\"(secret)\"}"),
            (
                r#"{ "user": { "password" : "a\"b", "note": "password" }, "n": [1] }"#,
                r#"{ "user": { "password" : "(secret)", "note": "password" }, "n": [1] }"#,
            ),
            (r#"{"token":"","a":"ghp_0123456789abcdefghij0123456789abcdef"}"#, SECRET),
            (r#"{"password":12345}"#, SECRET),
            (r#"{"passwords":["hunter2"]}"#, SECRET),
            (r#"{"query":"mutation { login(password: \"hunter2\") }"}"#, SECRET),
            (r#"{"password":"hunter2"#, SECRET),
            ("a=1&b=2", "a=1&b=2"),
        ] {
            assert_eq!(masked_body(body), shown);
            assert_eq!(masked_body(shown), shown);
        }
        for (line, shown) in [
            (
                "GET /, POST /login -d \"pw=b,c&user=a\" -H \"A: b\"",
                "GET /, POST /login -d \"pw=(secret)&user=a\" -H \"A: b\"",
            ),
            ("POST / -d \"user=a&pw=b c\"", "POST / -d \"user=a&pw=(secret)\""),
            ("POST / -d 'pw=b\\'c&user=a'", "POST / -d 'pw=(secret)&user=a'"),
            ("run -e \"PASSWORD=a&b=c d\"", "run -e \"PASSWORD=(secret)\""),
        ] {
            assert_eq!(masked_word(line), shown);
            assert_eq!(masked(line), shown);
            assert_eq!(masked_word(shown), shown);
        }
    }

    #[test]
    fn private_values_are_used_as_typed_but_shown_and_stored_masked() {
        let url: Private<String> = "http://h/?token=hunter2".into();
        assert_eq!(url.exposed(), "http://h/?token=hunter2");
        let kept = serde_json::to_string(&url).unwrap();
        for shown in [url.to_string(), format!("{url:?}"), kept] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let old: Private<BTreeMap<String, String>> =
            serde_json::from_str(r#"{"API_TOKEN":"hunter2","A":"b"}"#).unwrap();
        assert_eq!(old.exposed()["API_TOKEN"], SECRET);
        assert_eq!(old.exposed()["A"], "b");
        let old: MaskedText = serde_json::from_str(r#""puma --token hunter2""#).unwrap();
        assert_eq!(&*old, "puma --token (secret)");
    }
}
