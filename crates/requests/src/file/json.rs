//! vegeta's JSON lines: `{"method":"POST","url":"http://…","body":"base64","header":{"Name":["value"]}}`.
//!
//! Stricter than vegeta where leniency would send something else than was meant: a key that the format does not know
//! (`headers`, for one) is an error.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Collected, lines};
use crate::error::{RequestError, excerpt};
use crate::template::method;
use crate::{RequestHeader, RequestTemplate};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

pub(super) fn parse(bytes: &[u8], collected: &mut Collected<'_>) -> Result<(), RequestError> {
    for (number, line) in lines(bytes).filter(|(_, line)| !line.is_empty()) {
        one(line, collected).map_err(|error| error.at_line(number))?;
    }
    Ok(())
}

fn one(line: &[u8], collected: &mut Collected<'_>) -> Result<(), RequestError> {
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        // serde says "at line 1" of each line; ours is the file's.
        let text = error.to_string();
        let why = text.rsplit_once(" at line ").map_or(&*text, |(why, _)| why);
        RequestError::Json { column: error.column(), why: excerpt(why) }
    })?;
    // Whether there is a body is up to vegeta's omitempty: an empty one is none.
    let body = match line.body.filter(|body| !body.is_empty()) {
        Some(body) => Some(STANDARD.decode(body).map_err(RequestError::Base64)?),
        None => None,
    };
    let fields = line.header.iter().flatten().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let headers = fields.map(|(name, value)| RequestHeader::new(name, value)).collect::<Result<_, _>>()?;
    let template: RequestTemplate = collected.given.template.with(method(&line.method)?, headers, body);
    let target = collected.resolve(line.url.as_bytes())?;
    collected.add(template.render(&target))
}
