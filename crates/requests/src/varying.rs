//! Text with values that vary from one request to the next: `{1..5000}`, `{uuid}`, and
//! `{FILE.txt}`, a line of that file.
//!
//! All of it is rendered before the start. Which value stands in which request is decided by the
//! seed, so that a run can be repeated.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use model::pace::uniform;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::{RequestError, excerpt};

/// What no URL has, and a line of a file may have. A percent sign stays: the file may hold encoded
/// values.
pub(crate) const NOT_IN_URLS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPart {
    Fixed(Vec<u8>),
    Varies(VaryingValue),
}

/// Values of which one is chosen for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum VaryingValue {
    /// `{1..5000}`, or `{0001..5000}` with leading zeros.
    Number { from: u64, to: u64, width: usize },
    /// `{uuid}`: a random one (version 4).
    Uuid,
    /// `{FILE.txt}`: a line of it.
    Line(Arc<[Vec<u8>]>),
}

impl VaryingValue {
    /// How many there are.
    fn count(&self) -> u64 {
        match self {
            VaryingValue::Number { from, to, .. } => (to - from).saturating_add(1),
            VaryingValue::Uuid => u64::MAX,
            VaryingValue::Line(lines) => lines.len() as u64,
        }
    }
}

/// A text, taken apart once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VaryingText(Vec<TextPart>);

/// Reads the file that `{FILE.txt}` names.
pub(crate) type ReadFile<'a> = dyn FnMut(&Path) -> Result<Vec<u8>, RequestError> + 'a;

impl VaryingText {
    /// Takes a path and query apart. Braces in it must be values that vary, because no URL has any.
    ///
    /// # Errors
    /// If they are not, or a file cannot be read.
    pub(crate) fn of_url(text: &str, read: &mut ReadFile<'_>) -> Result<VaryingText, RequestError> {
        let mut encoded = |path: &Path| {
            let lines = read(path)?;
            Ok(percent_encode_lines(&lines))
        };
        let parsed = VaryingText::parse(text.as_bytes(), &mut encoded)?;
        let rest = parsed.0.iter().find_map(|part| match part {
            TextPart::Fixed(text) if text.contains(&b'{') || text.contains(&b'}') => Some(text),
            TextPart::Fixed(_) | TextPart::Varies(_) => None,
        });
        match rest {
            None => Ok(parsed),
            Some(rest) => Err(RequestError::new(format!(
                "'{}' has a brace that begins no value: write {{1..5000}}, {{uuid}} or \
                 {{FILE.txt}} (a line of it), and a brace itself as %7B",
                excerpt(rest)
            ))),
        }
    }

    /// Takes a header's value or a body apart. Braces around anything else stay as they are.
    ///
    /// # Errors
    /// If a file cannot be read, or a range is empty.
    pub(crate) fn parse(text: &[u8], read: &mut ReadFile<'_>) -> Result<VaryingText, RequestError> {
        let mut parts = Vec::new();
        let mut fixed = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| *byte == b'{') {
            fixed.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let end = rest.iter().position(|byte| *byte == b'}');
            let inside = end.and_then(|end| std::str::from_utf8(&rest[1..end]).ok());
            let found = inside.map(|inside| value(inside, read)).transpose()?.flatten();
            if let (Some(value), Some(end)) = (found, end) {
                parts.push(TextPart::Fixed(std::mem::take(&mut fixed)));
                parts.push(TextPart::Varies(value));
                rest = &rest[end + 1..];
            } else {
                fixed.push(b'{');
                rest = &rest[1..];
            }
        }
        fixed.extend_from_slice(rest);
        parts.push(TextPart::Fixed(fixed));
        Ok(VaryingText(parts))
    }

    fn values(&self) -> impl Iterator<Item = &VaryingValue> {
        self.0.iter().filter_map(|part| match part {
            TextPart::Varies(value) => Some(value),
            TextPart::Fixed(_) => None,
        })
    }

    /// The text with the values of this combination.
    pub(crate) fn render(&self, combination: &mut Combination) -> Vec<u8> {
        let mut text = Vec::new();
        for part in &self.0 {
            match part {
                TextPart::Fixed(fixed) => text.extend_from_slice(fixed),
                TextPart::Varies(value) => text.extend_from_slice(&combination.next(value)),
            }
        }
        text
    }
}

/// The value that these braces mean; `None` if they mean none.
fn value(inside: &str, read: &mut ReadFile<'_>) -> Result<Option<VaryingValue>, RequestError> {
    if inside == "uuid" {
        return Ok(Some(VaryingValue::Uuid));
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((first, last)) = inside.split_once("..")
        && is_number(first)
        && is_number(last)
    {
        let range = first.parse().ok().zip(last.parse().ok());
        let (from, to) = range.filter(|(from, to): &(u64, u64)| from <= to).ok_or_else(|| {
            RequestError::new(format!(
                "{{{}}} is no range: write the smaller number first, such as {{1..5000}}",
                excerpt(inside)
            ))
        })?;
        let width = if first.starts_with('0') { first.len() } else { 1 };
        return Ok(Some(VaryingValue::Number { from, to, width }));
    }
    let file = Path::new(inside);
    let is_text = file.extension().is_some_and(|extension| extension == "txt");
    if !is_text || inside.contains(['"', ':', '{', ' ', '\n']) {
        return Ok(None);
    }
    let bytes = read(file)?;
    let lines: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return Err(RequestError::new(format!(
            "{{{}}}: the file has no lines: write one value per line",
            excerpt(inside)
        )));
    }
    Ok(Some(VaryingValue::Line(lines.into())))
}

/// The lines as they stand in a URL.
fn percent_encode_lines(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let encoded: Vec<String> =
        lines.map(|line| percent_encode(line, NOT_IN_URLS).to_string()).collect();
    encoded.join("\n").into_bytes()
}

/// How many different requests these texts make together.
pub(crate) fn combinations<'a>(texts: impl IntoIterator<Item = &'a VaryingText>) -> u64 {
    let values = texts.into_iter().flat_map(VaryingText::values);
    values.fold(1, |product: u64, value| product.saturating_mul(value.count()))
}

/// Which value stands at each place of a request, as digits of a number in a mixed base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination {
    seed: u64,
    number: u64,
    left: u64,
    /// Values that were taken.
    taken: u64,
}

impl Combination {
    pub(crate) fn new(seed: u64, number: u64) -> Combination {
        Combination { seed, number, left: number, taken: 0 }
    }

    fn next(&mut self, value: &VaryingValue) -> Vec<u8> {
        self.taken += 1;
        match value {
            VaryingValue::Number { from, width, .. } => {
                format!("{:0width$}", from + self.digit(value.count())).into_bytes()
            }
            VaryingValue::Uuid => self.uuid().into_bytes(),
            VaryingValue::Line(lines) => lines[self.digit(value.count()) as usize].clone(),
        }
    }

    /// The next digit, below `base`.
    fn digit(&mut self, base: u64) -> u64 {
        let digit = self.left % base;
        self.left /= base;
        digit
    }

    /// A version 4 UUID (RFC 9562 section 5.4) of this combination and place.
    fn uuid(&self) -> String {
        let draw = |part: u64| {
            let place = self.taken * 4 + part;
            (uniform(self.seed ^ place, self.number) * f64::from(u32::MAX)) as u32
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(draw);
        let version = b & 0x0FFF | 0x4000;
        let variant = c >> 16 & 0x3FFF | 0x8000;
        format!("{a:08x}-{:04x}-{version:04x}-{variant:04x}-{:04x}{d:08x}", b >> 16, c & 0xFFFF)
    }
}

/// `count` numbers of combinations out of `all`, no two alike, in an order that the seed decides.
pub(crate) fn chosen(all: u64, count: usize, seed: u64) -> Vec<u64> {
    let count = count.min(usize::try_from(all).unwrap_or(usize::MAX));
    // If there are few, a shuffle is quicker than drawing until enough of them differ.
    if all <= 4 * count as u64 {
        let mut numbers: Vec<u64> = (0..all).collect();
        for at in (1..numbers.len()).rev() {
            let other = ((uniform(seed, at as u64) * (at + 1) as f64) as usize).min(at);
            numbers.swap(at, other);
        }
        numbers.truncate(count);
        return numbers;
    }
    let mut seen = BTreeSet::new();
    let drawn = (0..).map(|draw| ((uniform(seed, draw) * all as f64) as u64).min(all - 1));
    drawn.filter(|number| seen.insert(*number)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Result<Vec<u8>, RequestError> {
        match path.to_str() {
            Some("names.txt") => Ok(b"Ada L\n\nBob\n".to_vec()),
            _ => Err(RequestError::new("cannot be read")),
        }
    }

    fn all(text: &VaryingText) -> Vec<String> {
        (0..combinations([text]).min(10))
            .map(|n| String::from_utf8(text.render(&mut Combination::new(1, n))).unwrap())
            .collect()
    }

    #[test]
    fn values_stand_where_braces_mean_one_and_other_braces_stay() {
        let parse = |text: &str| VaryingText::parse(text.as_bytes(), &mut read).unwrap();
        assert_eq!(all(&parse("a{1..3}b")), ["a1b", "a2b", "a3b"]);
        assert_eq!(all(&parse("{08..10}")), ["08", "09", "10"]);
        assert_eq!(all(&parse("{names.txt}")), ["Ada L", "Bob"]);
        assert_eq!(all(&parse("{1..2}{3..4}")), ["13", "23", "14", "24"]);
        let body = r#"{"id": {1..2}, "of": {"a": {}}, "x": "{uuid.txt"}"#;
        assert_eq!(all(&parse(body))[1], body.replace("{1..2}", "2"));
        let in_url = VaryingText::of_url("/q={names.txt}", &mut read).unwrap();
        assert_eq!(all(&in_url), ["/q=Ada%20L", "/q=Bob"]);
        for (url, why) in
            [("/{id}", "begins no value"), ("/{5..1}", "no range"), ("/{no.txt}", "cannot")]
        {
            let refused = VaryingText::of_url(url, &mut read).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn uuids_differ_and_are_of_version_4() {
        let text = VaryingText::parse(b"{uuid}/{uuid}", &mut read).unwrap();
        let mut seen = BTreeSet::new();
        for number in 0..1000 {
            let rendered = text.render(&mut Combination::new(3, number));
            let rendered = String::from_utf8(rendered).unwrap();
            for uuid in rendered.split('/') {
                assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
                assert!(seen.insert(uuid.to_owned()), "{uuid} twice");
            }
        }
    }

    #[test]
    fn combinations_are_chosen_once_each_in_an_order_of_the_seed() {
        for (all, count) in [(10, 10), (1000, 30), (u64::MAX, 500), (3, 100)] {
            let numbers = chosen(all, count, 1);
            let different: BTreeSet<u64> = numbers.iter().copied().collect();
            assert_eq!(different.len() as u64, all.min(count as u64));
            assert!(numbers.iter().all(|number| *number < all));
            assert_eq!(numbers, chosen(all, count, 1));
            assert_ne!(numbers, chosen(all, count, 2), "{all}");
        }
    }
}
