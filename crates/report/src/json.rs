//! Writes a study as its file and reads it back; nothing is lost on the way.

use model::Study;
use model::study::SCHEMA;
use serde::Serialize;
use serde_json::Value;

/// Why a text is not a study that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Something else, or a damaged file.
    #[error("not a longtail study: {0}")]
    NotAStudy(String),
    /// A summary, which has not all that a report needs.
    #[error("a summary; report reads the study{}", .study.as_ref().map(|path| format!(": {path}")).unwrap_or_default())]
    Summary {
        /// Where its study was kept.
        study: Option<String>,
    },
    /// Written by a later version.
    #[error(
        "the study has schema {found}, this version of longtail reads up to {known}: read it with the version that wrote it, or a later one"
    )]
    Newer {
        /// The file's.
        found: u64,
        /// Ours.
        known: u32,
    },
}

/// The study as JSON for people too: indented, with short lists of numbers on one line.
///
/// # Panics
/// Never: a study has only keys that are strings, and writing to memory does not fail.
pub fn write(study: &Study) -> String {
    indented(study, usize::MAX)
}

/// As JSON for people too, what is inside of more than `levels` others on one line.
///
/// # Panics
/// Never: what is written has only keys that are strings, and writing to memory does not fail.
pub(crate) fn indented(value: &impl Serialize, levels: usize) -> String {
    let compact = serde_json::to_string(value).expect("it can always be written");
    let mut text = String::with_capacity(2 * compact.len());
    let mut open: Vec<OpenValue> = Vec::new();
    let (mut is_string, mut is_escaped, mut last) = (false, false, ' ');
    for c in compact.chars() {
        let is_end = matches!(c, ']' | '}') && !is_string;
        let is_flat = open.last().is_some_and(|inside| inside.is_flat);
        if is_end {
            open.pop();
        }
        // A line begins behind a comma and inside of what opens or ends, unless that is empty.
        let is_inside = matches!(last, '[' | '{') != is_end;
        if !is_string && last == ',' && is_flat {
            text.push(' ');
        } else if !is_string && !is_flat && (last == ',' || is_inside) {
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
        // Of a string no letter matters.
        last = if is_string { '"' } else { c };
    }
    text + "\n"
}

/// An array or object that is being written.
struct OpenValue {
    is_list: bool,
    /// On one line: a histogram is a line a bucket and not four.
    is_flat: bool,
}

/// The study that [`write()`] wrote. A line break in one of its strings becomes visible, as JSON
/// writes it: whoever wrote the file, a string makes no line of a report.
///
/// # Errors
/// Where the text is not a study, or one of a newer schema than this code knows.
pub fn read(text: &str) -> Result<Study, ReadError> {
    let not_a_study = |error: serde_json::Error| ReadError::NotAStudy(error.to_string());
    let mut value: Value = serde_json::from_str(text).map_err(not_a_study)?;
    let schema = value.get("schema").and_then(Value::as_u64);
    match schema {
        None if value["schema"]
            .as_str()
            .is_some_and(|schema| schema.starts_with("longtail.summary/")) =>
        {
            Err(ReadError::Summary { study: value["study"].as_str().map(str::to_owned) })
        }
        None => Err(ReadError::NotAStudy("it names no schema".to_owned())),
        Some(found) if found > u64::from(SCHEMA) => Err(ReadError::Newer { found, known: SCHEMA }),
        // From the text and not from the value: only so does an error name its line.
        Some(_) => {
            let study = serde_json::from_str(text).map_err(not_a_study)?;
            let is_broken = show_line_breaks(&mut value);
            if is_broken {
                serde_json::from_str(&value.to_string()).map_err(not_a_study)
            } else {
                Ok(study)
            }
        }
    }
}

/// What another generator printed, line by line. It stands in a part of its own.
const OUTPUT: &str = "output";

/// Writes `\n` for each line break in a string of `value`; whether there was one.
fn show_line_breaks(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.contains(['\n', '\r']) => {
            *text = text.replace('\n', "\\n").replace('\r', "\\r");
            true
        }
        Value::Array(values) => {
            values.iter_mut().fold(false, |found, value| found | show_line_breaks(value))
        }
        Value::Object(fields) => {
            let shown = fields.iter_mut().filter(|(name, _)| *name != OUTPUT);
            shown.fold(false, |found, (_, value)| found | show_line_breaks(value))
        }
        _ => false,
    }
}
