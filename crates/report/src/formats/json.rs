//! Writes a study as a file and reads it back; nothing is lost on the way.

use std::borrow::Cow;
use std::fmt;

use model::study::SCHEMA;
use model::{Study, plausible};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

/// Why a file cannot be read as a study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is something else, or damaged.
    #[error("not a longtail study: {0}")]
    NotAStudy(String),
    /// It is a summary, which lacks what a report needs.
    #[error("a summary; report reads the study{}", .study.as_ref().map(|path| format!(": {path}")).unwrap_or_default())]
    Summary {
        /// Where its study was saved.
        study: Option<String>,
    },
    /// It was written by a later version.
    #[error(
        "the study has schema {found}, this version of longtail reads up to {known}: read it with the version that wrote it, or a later one"
    )]
    Newer {
        /// The file's schema.
        found: u64,
        /// The latest schema that this version knows.
        known: u32,
    },
}

/// The study as JSON that people can read, too: indented, with short lists of numbers on one line.
///
/// # Panics
/// Never: a study has only keys that are strings, and writing to memory does not fail.
pub fn write(study: &Study) -> String {
    indented(study, usize::MAX)
}

/// The value as indented JSON; what is nested deeper than `levels` stands on one line.
///
/// # Panics
/// Never: what is written has only keys that are strings, and writing to memory does not fail.
pub(crate) fn indented(value: &impl Serialize, levels: usize) -> String {
    let compact = serde_json::to_string(value).expect("it can always be written");
    let mut text = String::with_capacity(2 * compact.len());
    let mut open: Vec<OpenValue> = Vec::new();
    let mut is_string = false;
    let mut is_escaped = false;
    let mut last = ' ';
    for c in compact.chars() {
        let is_end = matches!(c, ']' | '}') && !is_string;
        let is_flat = open.last().is_some_and(|inside| inside.is_flat);
        if is_end {
            open.pop();
        }
        // A new line begins after a comma, after an opening bracket and before a closing one,
        // unless there is nothing between the two.
        let is_next_to_bracket = matches!(last, '[' | '{') != is_end;
        if !is_string && last == ',' && is_flat {
            text.push(' ');
        } else if !is_string && !is_flat && (last == ',' || is_next_to_bracket) {
            text.push('\n');
            text.extend(std::iter::repeat_n("  ", open.len()));
        }
        text.push(c);
        if !is_string && matches!(c, '[' | '{') {
            let is_deep = open.len() > levels;
            let is_list_in_list = c == '[' && open.last().is_some_and(|outer| outer.is_list);
            open.push(OpenValue {
                is_list: c == '[',
                is_flat: is_flat || is_deep || is_list_in_list,
            });
        } else if !is_string && c == ':' {
            text.push(' ');
        }
        is_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        // The letters of a string don't matter.
        last = if is_string { '"' } else { c };
    }
    text + "\n"
}

/// An array or object that is being written.
struct OpenValue {
    is_list: bool,
    /// Whether it stands on one line: a bucket of a histogram takes one line and not four.
    is_flat: bool,
}

/// The study that [`write()`] wrote. Line breaks in strings become visible as `\\n`, so that no
/// string of a file adds a line to a report.
///
/// # Errors
/// If the text is not a study, or has a newer schema than this version knows.
pub fn read(text: &str) -> Result<Study, ReadError> {
    let not_a_study = |error: serde_json::Error| ReadError::NotAStudy(error.to_string());
    let head: SchemaOfStudy = serde_json::from_str(text).map_err(not_a_study)?;
    match head.schema {
        SchemaName::Summary => return Err(ReadError::Summary { study: head.study }),
        SchemaName::None => return Err(ReadError::NotAStudy("it names no schema".to_owned())),
        SchemaName::Number(found) if found > u64::from(SCHEMA) => {
            return Err(ReadError::Newer { found, known: SCHEMA });
        }
        SchemaName::Number(_) => {}
    }
    plausible::check(&mut serde_json::Deserializer::from_str(text)).map_err(not_a_study)?;
    serde_json::from_str(&with_visible_line_breaks(text)).map_err(not_a_study)
}

/// The part of a file that says whether it is a study. Everything else is skipped.
#[derive(Deserialize)]
struct SchemaOfStudy {
    #[serde(default)]
    schema: SchemaName,
    /// The study that a summary was made of.
    #[serde(default, deserialize_with = "path_if_any")]
    study: Option<String>,
}

/// The value of `schema`.
#[derive(Default)]
enum SchemaName {
    #[default]
    None,
    Number(u64),
    Summary,
}

impl<'de> Deserialize<'de> for SchemaName {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<SchemaName, D::Error> {
        struct AnyValue;
        impl Visitor<'_> for AnyValue {
            type Value = SchemaName;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a schema")
            }

            fn visit_u64<E>(self, number: u64) -> Result<SchemaName, E> {
                Ok(SchemaName::Number(number))
            }

            fn visit_str<E>(self, name: &str) -> Result<SchemaName, E> {
                let is_summary = name.starts_with("longtail.summary/");
                Ok(if is_summary { SchemaName::Summary } else { SchemaName::None })
            }
        }
        value.deserialize_any(AnyValue)
    }
}

/// A string or null.
fn path_if_any<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(value)
}

/// The key of what another generator printed. It keeps its line breaks, because it is shown in a
/// section of its own.
const OUTPUT: &str = "output";

/// The same JSON in which each line break in a string is a backslash and a letter, except in the
/// value of [`OUTPUT`].
fn with_visible_line_breaks(json: &str) -> Cow<'_, str> {
    if !json.contains("\\n") && !json.contains("\\r") && !json.contains("\\u000") {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 64);
    let mut rest = json;
    let mut is_output = false;
    while let Some(begin) = rest.find('"') {
        let (before, from_quote) = rest.split_at(begin);
        let string = &from_quote[..end_of_string(from_quote)];
        rest = &from_quote[string.len()..];
        let is_key = rest.trim_start().starts_with(':');
        shown += before;
        if is_output {
            shown += string;
        } else {
            push_with_visible_line_breaks(&mut shown, string);
        }
        is_output = is_key && string[1..].strip_suffix('"') == Some(OUTPUT);
    }
    shown += rest;
    Cow::Owned(shown)
}

/// Where the string at the beginning of this text ends, quotes included.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

fn push_with_visible_line_breaks(shown: &mut String, string: &str) {
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        shown.push_str(before);
        let is_escape = |name: &str| {
            escape.get(1..=name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        let (length, text) = if escape.starts_with("\\n") {
            (2, "\\\\n")
        } else if escape.starts_with("\\r") {
            (2, "\\\\r")
        } else if is_escape("u000a") {
            (6, "\\\\n")
        } else if is_escape("u000d") {
            (6, "\\\\r")
        } else {
            let length = escape.chars().take(2).map(char::len_utf8).sum();
            (length, &escape[..length])
        };
        shown.push_str(text);
        rest = &escape[length..];
    }
    shown.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_become_visible_except_in_another_generators_output() {
        for (json, shown) in [
            (r#"{"a": "b", "c": ["d\\n", "\"e\""]}"#, None),
            (r#"{"a": "b\nc\rd\u000Ae\u000d"}"#, Some(r#"{"a": "b\\nc\\rd\\ne\\r"}"#)),
            (r#"{"output": "a\nb", "other": "\n"}"#, Some(r#"{"output": "a\nb", "other": "\\n"}"#)),
            (r#"["output", "a\n\u00e9\\"]"#, Some(r#"["output", "a\\n\u00e9\\"]"#)),
        ] {
            assert_eq!(with_visible_line_breaks(json), shown.unwrap_or(json));
        }
        assert_eq!(with_visible_line_breaks(r#"{"cut": "off\"#), r#"{"cut": "off\"#);
    }
}
