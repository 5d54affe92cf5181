//! A mix: requests with weights and names, a line each, or inline with commas between them.
//!
//! ```text
//! GET /posts 80
//! GET /search?q={1..5000} 15
//! POST /comments @comment.json 5 -H 'Content-Type: application/json' as comment
//! ```

use std::path::Path;

use http::Method;
use model::RequestGroup;
use model::secret::masked_word;

use crate::template::{RequestHeader, RequestTemplate, is_standard_method, method};
use crate::varying::{Combination, ReadFile, VaryingText, chosen, combinations};
use crate::{RequestError, excerpt};

/// The most requests that are rendered for the values that vary, of all lines together.
pub(crate) const MOST_RENDERED: usize = 100_000;

/// A line of a mix, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct MixLine {
    /// Its number in the file, or its place among those that are inline, from 1.
    number: usize,
    method: Option<Method>,
    /// As it was written, values that vary included.
    typed_url: String,
    url: VaryingText,
    headers: Vec<(RequestHeader, VaryingText)>,
    body: Option<VaryingText>,
    weight: f64,
    name: Option<String>,
}

/// A request of a mix, before it is rendered for its target.
pub(crate) struct MixRequest {
    /// The line that it comes from.
    pub(crate) line: usize,
    /// The number of its class.
    pub(crate) class: u8,
    pub(crate) template: RequestTemplate,
    pub(crate) url: Vec<u8>,
}

/// The lines of a mix, with the names of their classes.
pub(crate) struct MixLines {
    lines: Vec<MixLine>,
    /// The class of each line.
    classes: Vec<u8>,
    pub(crate) names: Vec<String>,
}

/// A line of a file, counted from 1.
pub(crate) struct NumberedLine<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a [u8],
}

impl MixLines {
    /// Takes lines apart. Lines of the same name are one class.
    ///
    /// # Errors
    /// If a line cannot be understood, with its number, or there are too many.
    pub(crate) fn parse<'a>(
        lines: impl Iterator<Item = NumberedLine<'a>>,
        read: &mut ReadFile<'_>,
    ) -> Result<MixLines, RequestError> {
        let mut parsed: Vec<MixLine> = Vec::new();
        for NumberedLine { number, text } in lines {
            let line = MixLine::parse(number, text, read).map_err(|why| why.at_line(number))?;
            parsed.push(line);
        }
        let names = names(&parsed).into_iter().map(|name| masked_word(&name));
        let mut distinct: Vec<String> = Vec::new();
        let mut classes = Vec::new();
        for name in names {
            let known = distinct.iter().position(|other| *other == name);
            let class = known.unwrap_or(distinct.len());
            if known.is_none() {
                distinct.push(name);
            }
            classes.push(class as u8);
        }
        if distinct.len() > model::MOST_CLASSES {
            return Err(RequestError::new(format!(
                "there are {} classes of requests, and {} can be told apart: give some the same \
                 name (as NAME)",
                distinct.len(),
                model::MOST_CLASSES
            )));
        }
        Ok(MixLines { lines: parsed, classes, names: distinct })
    }

    /// The same without the lines of these classes.
    ///
    /// # Errors
    /// If there is no such class, or nothing is left.
    pub(crate) fn without(self, left_out: &[String]) -> Result<MixLines, RequestError> {
        let names = &self.names;
        let is_unknown =
            |typed: &&String| !names.iter().any(|class| model::means_class(typed, class));
        if let Some(unknown) = left_out.iter().find(is_unknown) {
            return Err(RequestError::new(format!(
                "--without '{}': the mix has no class of this name; it has '{}'",
                excerpt(unknown),
                names.join("', '")
            )));
        }
        let is_left_out =
            |class: &String| left_out.iter().any(|typed| model::means_class(typed, class));
        let kept: Vec<String> = names.iter().filter(|name| !is_left_out(name)).cloned().collect();
        if kept.is_empty() && !names.is_empty() {
            return Err(RequestError::new("--without leaves nothing of the mix: leave one out"));
        }
        let mut lines = Vec::new();
        let mut classes = Vec::new();
        for (line, class) in self.lines.into_iter().zip(&self.classes) {
            let name = &self.names[usize::from(*class)];
            if let Some(number) = kept.iter().position(|other| other == name) {
                lines.push(line);
                classes.push(number as u8);
            }
        }
        Ok(MixLines { lines, classes, names: kept })
    }

    /// All requests, rendered but for their target, and a group for each line; `given` has what a
    /// line does not say.
    ///
    /// # Errors
    /// If a value cannot stand in a header.
    pub(crate) fn requests(
        &self,
        given: &RequestTemplate,
        seed: u64,
    ) -> Result<(Vec<MixRequest>, Vec<RequestGroup>), RequestError> {
        let mut requests = Vec::new();
        let mut groups = Vec::new();
        let counts = shares(&self.lines.iter().map(MixLine::combinations).collect::<Vec<_>>());
        for ((line, class), count) in self.lines.iter().zip(&self.classes).zip(counts) {
            let numbers = chosen(line.combinations(), count, seed ^ line.number as u64);
            groups.push(RequestGroup {
                first: requests.len() as u32,
                count: numbers.len() as u32,
                weight: line.weight,
            });
            for number in numbers {
                let request = line.request(given, Combination::new(seed, number));
                let request = request.map_err(|why| why.at_line(line.number))?;
                requests.push(MixRequest { class: *class, ..request });
            }
        }
        Ok((requests, groups))
    }
}

/// How many requests to render of each line: all that it stands for (`wanted`), or a fair share of
/// [`MOST_RENDERED`].
fn shares(wanted: &[u64]) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..wanted.len()).collect();
    by_size.sort_by_key(|line| wanted[*line]);
    let mut shares = vec![1; wanted.len()];
    let mut left = MOST_RENDERED;
    for (done, line) in by_size.into_iter().enumerate() {
        let fair = (left / (wanted.len() - done)).max(1);
        shares[line] = usize::try_from(wanted[line]).unwrap_or(usize::MAX).min(fair);
        left = left.saturating_sub(shares[line]);
    }
    shares
}

/// The name of each line's class: the one it gives, else method (unless it is GET) and path; with
/// the query where another line has the same path.
fn names(lines: &[MixLine]) -> Vec<String> {
    let short: Vec<String> = lines.iter().map(|line| line.named(false)).collect();
    let is_shared = |name: &String| short.iter().filter(|other| *other == name).count() > 1;
    lines
        .iter()
        .zip(&short)
        .map(|(line, name)| if is_shared(name) { line.named(true) } else { name.clone() })
        .collect()
}

impl MixLine {
    fn parse(number: usize, line: &[u8], read: &mut ReadFile<'_>) -> Result<MixLine, RequestError> {
        let line = std::str::from_utf8(line)
            .map_err(|_| RequestError::new("the line is not UTF-8: save the file as UTF-8"))?;
        let mut words = words(line)?.into_iter().peekable();
        let named = words.next_if(|word| is_method(word) || is_standard_method(word));
        let typed_url = words.next().ok_or_else(|| {
            RequestError::new(format!(
                "'{}' names no path: write GET /path 80, with a weight after it",
                excerpt(line)
            ))
        })?;
        if !typed_url.starts_with('/') && !typed_url.contains("://") {
            return Err(no_path(&typed_url, named.is_none() && words.peek().is_some()));
        }
        let mut parsed = MixLine {
            number,
            method: named.map(|name| method(&name)).transpose()?,
            url: VaryingText::of_url(&typed_url, read)?,
            typed_url,
            headers: Vec::new(),
            body: None,
            weight: 1.0,
            name: None,
        };
        let mut has_weight = false;
        while let Some(word) = words.next() {
            match word.as_str() {
                "-H" | "--header" => parsed.add_header(&value_of(&word, words.next())?, read)?,
                "-d" | "--data" => {
                    let text = value_of(&word, words.next())?;
                    parsed.set_body(VaryingText::parse(text.as_bytes(), read)?)?;
                }
                "as" => parsed.name = Some(value_of(&word, words.next())?),
                word if word.starts_with('@') => {
                    let body = read(Path::new(&word[1..]))?;
                    parsed.set_body(VaryingText::parse(&body, read)?)?;
                }
                word if !has_weight => {
                    parsed.weight = weight(word)?;
                    has_weight = true;
                }
                word => return Err(not_understood(word)),
            }
        }
        Ok(parsed)
    }

    fn add_header(&mut self, line: &str, read: &mut ReadFile<'_>) -> Result<(), RequestError> {
        let header = RequestHeader::parse(line)?;
        let value = VaryingText::parse(header.value().unwrap_or_default(), read)?;
        self.headers.push((header, value));
        Ok(())
    }

    fn set_body(&mut self, body: VaryingText) -> Result<(), RequestError> {
        if self.body.replace(body).is_some() {
            return Err(RequestError::new("the line has two bodies: give one, @FILE or -d TEXT"));
        }
        Ok(())
    }

    /// How many different requests it stands for.
    fn combinations(&self) -> u64 {
        let headers = self.headers.iter().map(|(_, value)| value);
        combinations([&self.url].into_iter().chain(headers).chain(&self.body))
    }

    /// Its class's name.
    fn named(&self, with_query: bool) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let path = match self.typed_url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => &self.typed_url,
        };
        let shown = if with_query { path } else { path.split('?').next().unwrap_or(path) };
        match &self.method {
            None if self.body.is_some() => format!("POST {shown}"),
            Some(method) if *method != Method::GET => format!("{method} {shown}"),
            None | Some(_) => shown.to_owned(),
        }
    }

    /// Its request with the values of this combination.
    fn request(
        &self,
        given: &RequestTemplate,
        mut combination: Combination,
    ) -> Result<MixRequest, RequestError> {
        let url = self.url.render(&mut combination);
        let mut headers = Vec::new();
        for (header, value) in &self.headers {
            headers.push(match header.value() {
                Some(_) => header.with_value(&value.render(&mut combination))?,
                None => header.clone(),
            });
        }
        let body = self.body.as_ref().map(|body| body.render(&mut combination));
        let method = match &self.method {
            Some(method) => method.clone(),
            // As with curl, a body means POST.
            None if body.is_some() => Method::POST,
            None => given.method.clone(),
        };
        let template = given.with(method, headers, body);
        Ok(MixRequest { line: self.number, class: 0, template, url })
    }
}

/// The value after an option of a line.
fn value_of(option: &str, value: Option<String>) -> Result<String, RequestError> {
    value
        .ok_or_else(|| RequestError::new(format!("{option} has nothing after it: write its value")))
}

/// `80`, `80%` or `0.5`.
fn weight(word: &str) -> Result<f64, RequestError> {
    let number = word.strip_suffix('%').unwrap_or(word);
    let weight: f64 = number.parse().map_err(|_| not_understood(word))?;
    if !(weight > 0.0 && weight.is_finite()) {
        return Err(RequestError::new(format!(
            "the weight '{}' must be above 0: leave the line out to send none",
            excerpt(word)
        )));
    }
    Ok(weight)
}

/// What is wrong with a word that stands where the path is expected.
fn no_path(word: &str, more_follows: bool) -> RequestError {
    let shown = excerpt(word);
    if more_follows && weight(word).is_ok() {
        return RequestError::new(format!(
            "'{shown}' is a weight, and stands after the path: write GET /posts {shown}"
        ));
    }
    RequestError::new(format!(
        "'{shown}' is no path: write it with a / in front, such as GET /posts 80"
    ))
}

fn not_understood(word: &str) -> RequestError {
    if word.strip_suffix(',').is_some_and(|word| weight(word).is_ok()) {
        return RequestError::new(format!(
            "'{}' has a comma after it: in a file each request has a line of its own, and none is \
             needed",
            excerpt(word)
        ));
    }
    RequestError::new(format!(
        "'{}' is not understood after a path: write a weight (80), @FILE or -d TEXT for a body, \
         -H 'Name: value', or as NAME; a comma in a path as %2C",
        excerpt(word)
    ))
}

/// Whether the word is a method: capitals only.
pub(crate) fn is_method(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// A character of a line.
struct LineChar {
    at: usize,
    char: char,
    role: CharRole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharRole {
    /// Begins or ends a text in quotes.
    Quote,
    /// Stands in quotes, where spaces and commas take nothing apart.
    Quoted,
    Plain,
}

/// The characters of a line, as a shell sees them. In double quotes a backslash before a quote or
/// another backslash is left out, and the character after it stands for itself.
fn characters(line: &str) -> Result<Vec<LineChar>, RequestError> {
    let mut open = None;
    let mut characters = Vec::new();
    let mut rest = line.char_indices().peekable();
    while let Some((at, char)) = rest.next() {
        let is_escape = open == Some('"') && char == '\\';
        if is_escape && let Some((at, char)) = rest.next_if(|(_, it)| matches!(it, '"' | '\\')) {
            characters.push(LineChar { at, char, role: CharRole::Quoted });
            continue;
        }
        let is_quote = matches!(char, '\'' | '"') && open.is_none_or(|open| open == char);
        let role = match open {
            _ if is_quote => CharRole::Quote,
            Some(_) => CharRole::Quoted,
            None => CharRole::Plain,
        };
        if is_quote {
            open = if open.is_none() { Some(char) } else { None };
        }
        characters.push(LineChar { at, char, role });
    }
    if open.is_some() {
        return Err(RequestError::new("a quote has no end: close it"));
    }
    Ok(characters)
}

/// Takes a line apart at its spaces; text in quotes stays together.
fn words(line: &str) -> Result<Vec<String>, RequestError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    for LineChar { char, role, .. } in characters(line)? {
        match role {
            CharRole::Plain if char.is_whitespace() => words.extend(word.take()),
            CharRole::Quote => _ = word.get_or_insert_default(),
            CharRole::Plain | CharRole::Quoted => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The requests of a mix that is typed inline: parts between commas that stand outside quotes.
///
/// # Errors
/// If a quote has no end.
pub(crate) fn inline_lines(text: &str) -> Result<Vec<&str>, RequestError> {
    let commas = characters(text)?
        .into_iter()
        .filter(|it| it.role == CharRole::Plain && it.char == ',')
        .map(|it| it.at);
    let mut lines = Vec::new();
    let mut begin = 0;
    for comma in commas.chain([text.len()]) {
        lines.push(text[begin..comma].trim());
        begin = comma + 1;
    }
    lines.retain(|line| !line.is_empty());
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_gets_all_its_requests_or_a_fair_share_of_the_most() {
        assert_eq!(shares(&[1, 5000, 1]), [1, 5000, 1]);
        assert_eq!(shares(&[1, u64::MAX, 1000]), [1, MOST_RENDERED - 1001, 1000]);
        assert_eq!(shares(&[u64::MAX, u64::MAX]), [MOST_RENDERED / 2; 2]);
    }

    #[test]
    fn commas_and_spaces_in_quotes_take_nothing_apart() {
        let text = "GET /a 80, /b -H 'X: 1, 2' 5,";
        assert_eq!(inline_lines(text).unwrap(), ["GET /a 80", "/b -H 'X: 1, 2' 5"]);
        assert_eq!(words("/b -H 'X: 1, 2' 5").unwrap(), ["/b", "-H", "X: 1, 2", "5"]);
        assert!(words("/b 'x").is_err());
        let json = r#"POST /b -d "{\"a\": \"\\\"}, \n" 5"#;
        assert_eq!(words(json).unwrap(), ["POST", "/b", "-d", r#"{"a": "\"}, \n"#, "5"]);
        assert_eq!(inline_lines(json).unwrap(), [json]);
    }
}
