//! What a script of wrk says plainly: texts that it gives to `wrk.method`, `wrk.body` and
//! `wrk.headers`. It is not run: a script with anything else in it, such as a function, says nothing
//! that is known.

use std::path::Path;

use super::flags::with_value;
use super::script_file::text_of;

/// Our words for what a script sends; `None` if it cannot be read, or has more than texts.
pub(super) fn words_of(script: &Path) -> Option<Vec<String>> {
    words_in(&text_of(script)?)
}

fn words_in(text: &str) -> Option<Vec<String>> {
    let mut method = None;
    let mut body = None;
    let mut headers = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n', ';']);
        if rest.is_empty() {
            break;
        }
        if let Some(comment) = rest.strip_prefix("--") {
            // `--[[ … ]]` has several lines.
            let (inside, end) = match comment.strip_prefix("[[") {
                Some(inside) => (inside, "]]"),
                None => (comment, "\n"),
            };
            rest = inside.split_once(end).map_or("", |(_, behind)| behind);
            continue;
        }
        let (place, value) = rest.split_once('=')?;
        let (text, behind) = quoted_text(value.trim_start())?;
        rest = behind;
        // A text may be only a part of the value: "a" .. b
        let is_whole = rest.trim_start_matches([' ', '\t', '\r']);
        if !is_whole.is_empty() && !is_whole.starts_with(['\n', ';']) && !is_whole.starts_with("--")
        {
            return None;
        }
        match place.trim() {
            "wrk.method" => method = Some(text),
            "wrk.body" => body = Some(text),
            place => headers.push((header_name(place)?, text)),
        }
    }
    let mut words = Vec::new();
    // wrk sends GET unless the script says otherwise, ours POST with a body.
    let default = body.is_some().then(|| "GET".to_owned());
    if let Some(method) = method.or(default) {
        words.extend(with_value(&["-m", "{}"], &method));
    }
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        words.extend(with_value(&["-d", "{}"], &body));
    }
    for (name, value) in headers {
        words.extend(["-H".to_owned(), format!("{name}: {value}")]);
    }
    Some(words)
}

/// The name in `wrk.headers["Content-Type"]` or `wrk.headers.Accept`.
fn header_name(place: &str) -> Option<String> {
    let name = place.strip_prefix("wrk.headers")?;
    if let Some(name) = name.strip_prefix('.') {
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        return is_name.then(|| name.to_owned());
    }
    let (name, behind) = quoted_text(name.strip_prefix('[')?.trim())?;
    (behind.trim() == "]").then_some(name)
}

/// The text in quotes that begins here, and what is behind it; `None` if none does, or it has an
/// escape that is not known.
fn quoted_text(text: &str) -> Option<(String, &str)> {
    if let Some(inside) = text.strip_prefix("[[") {
        let (inside, behind) = inside.split_once("]]")?;
        // Lua leaves out a line end directly behind the brackets.
        return Some((inside.strip_prefix('\n').unwrap_or(inside).to_owned(), behind));
    }
    let quote = text.chars().next().filter(|first| ['\'', '"'].contains(first))?;
    let mut found = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => return None,
            '\\' => found.push(match letters.next()?.1 {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                escaped @ ('\\' | '\'' | '"') => escaped,
                _ => return None,
            }),
            letter if letter == quote => return Some((found, &text[at + 1..])),
            letter => found.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_are_taken_from_a_script() {
        for (script, expected) in [
            (
                "wrk.method = \"POST\"\nwrk.body   = \"a=1\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n",
                Some("-m POST -d a=1 -H Content-Type: application/json"),
            ),
            (
                "-- a remark = 1\n--[[ wrk.method = 'PUT' ]]\nwrk.body = '{\"a\":\\'b\\'}'; wrk.headers.Accept = 'x' -- y",
                Some("-m GET -d {\"a\":'b'} -H Accept: x"),
            ),
            ("wrk.method = 'POST'\nwrk.body = [[@file]]", Some("-m POST --data-raw @file")),
            ("wrk.method = 'PUT'", Some("-m PUT")),
            ("wrk.method = METHOD", None),
            ("wrk.body = 'a=' .. n", None),
            ("wrk.body = 'a'\nrequest = function() return wrk.format() end", None),
            ("function request() return 'x' end", None),
            ("wrk.path = '/a'", None),
            ("wrk.headers[NAME] = 'x'", None),
        ] {
            let words = words_in(script).map(|words| words.join(" "));
            assert_eq!(words.as_deref(), expected, "{script}");
        }
    }
}
