//! A study as the file that is kept, and back: nothing is lost on the way.

use std::io;

use model::Study;
use model::study::SCHEMA;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

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
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Indented { levels, ..Indented::default() });
    value.serialize(&mut serializer).expect("it can always be written");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The study that [`write()`] wrote. A line break in one of its strings becomes visible, as JSON writes it: whoever wrote the file, a string
/// makes no line of a report.
///
/// # Errors
/// Where the text is not a study, or one of a newer schema than this code knows.
pub fn read(text: &str) -> Result<Study, ReadError> {
    let not_a_study = |error: serde_json::Error| ReadError::NotAStudy(error.to_string());
    let mut value: Value = serde_json::from_str(text).map_err(not_a_study)?;
    let schema = value.get("schema").and_then(Value::as_u64);
    match schema {
        None if value["schema"].as_str().is_some_and(|schema| schema.starts_with("longtail.summary/")) => {
            Err(ReadError::Summary { study: value["study"].as_str().map(str::to_owned) })
        }
        None => Err(ReadError::NotAStudy("it names no schema".to_owned())),
        Some(found) if found > u64::from(SCHEMA) => Err(ReadError::Newer { found, known: SCHEMA }),
        // From the text and not from the value: only so does an error name its line.
        Some(_) => {
            let study = serde_json::from_str(text).map_err(not_a_study)?;
            let mut found = false;
            show_line_breaks(&mut value, &mut found);
            if found { serde_json::from_str(&value.to_string()).map_err(not_a_study) } else { Ok(study) }
        }
    }
}

/// What another generator printed, line by line. It stands in a part of its own.
const OUTPUT: &str = "output";

/// Writes `\n` for each line break in a string of `value`, and sets `found` where there was one.
fn show_line_breaks(value: &mut Value, found: &mut bool) {
    match value {
        Value::String(text) if text.contains(['\n', '\r']) => {
            *text = text.replace('\n', "\\n").replace('\r', "\\r");
            *found = true;
        }
        Value::Array(values) => values.iter_mut().for_each(|value| show_line_breaks(value, found)),
        Value::Object(fields) => {
            let printed = fields.iter_mut().filter(|(name, _)| *name != OUTPUT);
            printed.for_each(|(_, value)| show_line_breaks(value, found));
        }
        _ => {}
    }
}

/// Indented, but a list inside a list stays on one line: a histogram is a line a bucket and not four.
#[derive(Default)]
struct Indented {
    outer: PrettyFormatter<'static>,
    /// For each open array or object, whether it is an array.
    open: Vec<bool>,
    /// How many of the innermost are written on one line.
    flat: usize,
    /// What is inside of more than so many is written on one line.
    levels: usize,
}

impl Indented {
    /// Opens an array or object; whether it is written on one line.
    fn opens_flat(&mut self, is_array: bool) -> bool {
        let is_deep = self.open.len() > self.levels;
        let is_flat = is_deep || is_array && (self.flat > 0 || self.open.last() == Some(&true));
        self.open.push(is_array);
        self.flat += usize::from(is_flat);
        is_flat
    }

    /// Closes it; whether it was.
    fn closes_flat(&mut self) -> bool {
        self.open.pop();
        let is_flat = self.flat > 0;
        self.flat -= usize::from(is_flat);
        is_flat
    }

    /// What stands between two of its values, where it is on one line.
    fn between<W: ?Sized + io::Write>(out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.opens_flat(true) { out.write_all(b"[") } else { self.outer.begin_array(out) }
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.closes_flat() { out.write_all(b"]") } else { self.outer.end_array(out) }
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if self.flat > 0 { Indented::between(out, first) } else { self.outer.begin_array_value(out, first) }
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.flat > 0 { Ok(()) } else { self.outer.end_array_value(out) }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.opens_flat(false) { out.write_all(b"{") } else { self.outer.begin_object(out) }
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.closes_flat() { out.write_all(b"}") } else { self.outer.end_object(out) }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if self.flat > 0 { Indented::between(out, first) } else { self.outer.begin_object_key(out, first) }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.outer.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.flat > 0 { Ok(()) } else { self.outer.end_object_value(out) }
    }
}
