//! Texts, comments, calls and local variables in a script in Lua, which is not run.

use super::script_file;

/// Of a name, with those before its dots.
pub(super) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_.".contains(c)
}

/// What is behind the comment that begins here: `-- …`, or `--[[ … ]]` of several lines.
pub(super) fn behind_comment(text: &str) -> Option<&str> {
    let comment = text.strip_prefix("--")?;
    let (inside, end) = match comment.strip_prefix("[[") {
        Some(inside) => (inside, "]]"),
        None => (comment, "\n"),
    };
    Some(inside.split_once(end).map_or("", |(_, behind)| behind))
}

/// What is behind the comments that begin here, if any do.
pub(super) fn behind_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(behind) = behind_comment(text) {
        text = behind.trim_start();
    }
    text
}

/// Whether a value is not over where this follows.
pub(super) fn goes_on(behind: &str) -> bool {
    // A text may be only a part of the value: "a" .. b, ("a"):rep(2)
    let behind = behind_comments(behind);
    behind.starts_with(|c: char| !is_of_name(c) && !";},)".contains(c))
        || behind.starts_with('.')
        || ["or", "and"]
            .iter()
            .any(|word| behind.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_of_name)))
}

/// What is written behind `local NAME =`, or behind `NAME =` where `request()` does that each time,
/// if nothing else gives that name a value.
pub(super) fn local_value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let all = words(text);
    let mut set = all.iter().filter(|it| it.word == name).filter_map(|it| Some((it, it.value()?)));
    let (only, value) = set.next()?;
    let before = &text[..text.len() - only.behind.len() - name.len()];
    let is_known = || before.trim_end().ends_with("local") || is_always_reached(text, before, name);
    (set.next().is_none() && is_known()).then_some(value)
}

/// Whether each call of the script's `request()` comes to where the text `before` ends, and has used
/// that name nowhere before.
fn is_always_reached(text: &str, before: &str, name: &str) -> bool {
    const MAY_LEAVE: [&str; 7] = ["if", "for", "while", "repeat", "function", "return", "goto"];
    let Some(body) = body_of_request(text) else { return false };
    let begin = text.len() - body.len();
    let Some(until) = before.get(begin..) else { return false };
    !words(until).iter().any(|it| MAY_LEAVE.contains(&it.word) || it.word == name)
}

/// The same in the script's `request()` alone: outside it, a random number is drawn once.
pub(super) fn value_in_request<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let begins = ["request = function", "request=function", "function request"];
    let begin = begins.into_iter().find_map(|begin| text.find(begin))?;
    let value = local_value(text, name)?;
    let at = text.len() - value.len();
    (at > begin).then_some(value)
}

/// What stands in the script's `request()`, with the `end` of it and what follows.
pub(super) fn body_of_request(text: &str) -> Option<&str> {
    let all = words(text);
    let mut pairs = all.iter().zip(all.iter().skip(1));
    let (_, last) = pairs.find(|(first, second)| {
        let is_set = first.word == "request"
            && first.value().is_some_and(|value| value.starts_with("function"));
        is_set || first.word == "function" && second.word == "request"
    })?;
    let (_, body) = parts_and_rest(last.behind.trim_start().strip_prefix('(')?)?;
    Some(body)
}

/// The arguments of a call whose parenthesis begins here.
pub(super) fn arguments(text: &str) -> Option<Vec<&str>> {
    parts(text.trim_start().strip_prefix('(')?)
}

/// What stands between commas or semicolons up to the bracket that closes what is open; `None` if none
/// closes it.
pub(super) fn parts(text: &str) -> Option<Vec<&str>> {
    parts_and_rest(text).map(|(parts, _)| parts)
}

/// The same, with what is behind that bracket.
pub(super) fn parts_and_rest(text: &str) -> Option<(Vec<&str>, &str)> {
    let length_of_quoted = |rest: &str| {
        let behind = behind_comment(rest).or(quoted_text(rest).map(|(_, behind)| behind));
        behind.map(|behind| rest.len() - behind.len())
    };
    script_file::parts(text, &[',', ';'], length_of_quoted)
}

/// The text in quotes that begins here, and what is behind it; `None` if none does, or it has an
/// escape that is not known.
pub(super) fn quoted_text(text: &str) -> Option<(String, &str)> {
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

/// A name or a keyword of a script.
pub(super) struct LuaWord<'t> {
    /// With the names before its dots: `wrk.format`.
    pub(super) word: &'t str,
    /// What stands behind it, up to the end of the text.
    pub(super) behind: &'t str,
}

/// The names and keywords of a text, without those in quoted texts and comments.
pub(super) fn words(text: &str) -> Vec<LuaWord<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = behind_comment(rest) {
            rest = behind;
        } else if is_of_name(first) {
            let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(length);
            words.push(LuaWord { word, behind });
            rest = behind;
        } else {
            rest = quoted_text(rest).map_or(&rest[first.len_utf8()..], |(_, behind)| behind);
        }
    }
    words
}

impl<'t> LuaWord<'t> {
    /// What is written behind `NAME =`, if this is the name.
    pub(super) fn value(&self) -> Option<&'t str> {
        let value = self.behind.trim_start().strip_prefix('=')?;
        (!value.starts_with('=')).then(|| value.trim_start())
    }
}
