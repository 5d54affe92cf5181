//! What a script of k6 says plainly of its load: literals in `export const options = { … }`. Nothing
//! is run, and nothing is guessed: whatever is computed or imported is not known.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use model::Nanos;

/// Longer scripts are not read.
const LONGEST: u64 = 1 << 20;
/// Options that say how the load changes; beside them k6 ignores the others.
const DECIDING: [&str; 2] = ["scenarios", "stages"];

/// What the options of a script say of its load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptOptions {
    /// Flags of k6 that say the same: each with its value.
    pub(super) flags: Vec<(&'static str, String)>,
    /// Whether they do not say how many virtual users there are: k6's default is one.
    pub(super) has_one_user: bool,
    /// The option that decides alone: `scenarios` or `stages`.
    pub(super) decided_by: Option<&'static str>,
}

impl ScriptOptions {
    /// Those of a file; `None` if it cannot be read, or its options are no literal.
    pub(super) fn of(script: &Path) -> Option<ScriptOptions> {
        let file = File::open(script).ok().filter(|file| {
            file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST)
        })?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        ScriptOptions::in_text(&text)
    }

    fn in_text(text: &str) -> Option<ScriptOptions> {
        let fields = fields_of_options(&without_comments(text))?;
        let value = |name: &str| {
            let of_it = fields.iter().rfind(|(field, _)| field == name);
            of_it.map(|(_, value)| value.as_str())
        };
        let decided_by = DECIDING.into_iter().find(|name| value(name).is_some());
        let count = |name| value(name).filter(|text| text.parse::<u32>().is_ok_and(|n| n > 0));
        let time = || {
            let text = in_quotes(value("duration")?)?;
            text.parse::<Nanos>().is_ok_and(|time| time > Nanos::ZERO).then_some(text)
        };
        let found =
            [("vus", count("vus")), ("duration", time()), ("iterations", count("iterations"))];
        let flags = found.into_iter().filter_map(|(name, text)| Some((name, text?.to_owned())));
        Some(ScriptOptions {
            flags: flags.filter(|_| decided_by.is_none()).collect(),
            has_one_user: decided_by.is_none() && value("vus").is_none(),
            decided_by,
        })
    }
}

/// `'30s'`, `"30s"`
fn in_quotes(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|first| ['\'', '"'].contains(first))?;
    let inside = value.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains(quote)).then_some(inside)
}

/// A script without its comments. Quoted texts stay as they are.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let length = length_of_quoted(rest).unwrap_or(first.len_utf8());
            code.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    code
}

/// The length of the quoted text that begins here; `None` if none does. Only one in backticks has
/// several lines.
fn length_of_quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| ['\'', '"', '`'].contains(first))?;
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == '\n' && quote != '`' {
            return None;
        }
        if letter == quote && !is_escaped {
            return Some(at + letter.len_utf8());
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    None
}

/// The fields of `export const options = { … }`, by name, with their values as they are written.
/// `None` if it is no literal object, or takes fields from elsewhere (`...base`).
fn fields_of_options(code: &str) -> Option<Vec<(String, String)>> {
    let declared = ["const", "let", "var"].into_iter().find_map(|keyword| {
        let (_, behind) = code.split_once(&format!("export {keyword} options"))?;
        // TypeScript may name a type.
        let (between, value) = behind.split_once('=')?;
        let is_type = between.trim().is_empty() || between.trim_start().starts_with(':');
        is_type.then_some(value)
    })?;
    let mut rest = declared.trim_start().strip_prefix('{')?;
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut depth = 0_u32;
    loop {
        let first = rest.chars().next()?;
        let length = length_of_quoted(rest).unwrap_or(first.len_utf8());
        let is_end = first == '}' && depth == 0;
        match first {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if is_end || first == ',' && depth == 0 {
            let written = field.trim();
            if written.starts_with("...") {
                return None;
            }
            if let Some((name, value)) = written.split_once(':') {
                let name = in_quotes(name.trim()).unwrap_or(name.trim());
                fields.push((name.to_owned(), value.trim().to_owned()));
            } else if !written.is_empty() {
                // `vus` alone is a variable of that name.
                fields.push((written.to_owned(), String::new()));
            }
            field.clear();
        } else {
            field.push_str(&rest[..length]);
        }
        if is_end {
            return Some(fields);
        }
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of a script's options, in a line; `None` if nothing is known of them.
    fn flags(script: &str) -> Option<String> {
        let found = ScriptOptions::in_text(script)?;
        let flags = found.flags.iter().map(|(name, value)| format!("--{name} {value}"));
        let flags: Vec<String> =
            flags.chain(found.decided_by.map(|name| format!("by {name}"))).collect();
        Some(flags.join(" "))
    }

    #[test]
    fn literals_are_read_and_nothing_is_guessed() {
        for (script, expected) in [
            (
                "import http from 'k6/http';\nexport const options = {\n  vus: 10,\n  duration: '30s',\n};\n",
                Some("--vus 10 --duration 30s"),
            ),
            (
                "export let options = { \"vus\": 5, \"iterations\": 100 }",
                Some("--vus 5 --iterations 100"),
            ),
            ("export const options: Options = { duration: \"1m\" };", Some("--duration 1m")),
            ("export const options = { // vus: 3\n /* vus: 4, */ vus: 5 };", Some("--vus 5")),
            // Of a nested object, a text, or a computed value nothing is taken.
            (
                "export const options = { thresholds: { vus: 3 }, tags: { a: 'vus: 4,' } };",
                Some(""),
            ),
            ("export const options = { vus: __ENV.VUS || 10, duration: LENGTH };", Some("")),
            ("export const options = { vus, duration: `${n}s` };", Some("")),
            (
                "export const options = { vus: 10, stages: [{ duration: '1m', target: 5 }] };",
                Some("by stages"),
            ),
            (
                "export const options = { scenarios: { a: { vus: 3, duration: '5s' } } };",
                Some("by scenarios"),
            ),
            ("export const options = { ...base, vus: 10 };", None),
            ("export const options = JSON.parse(open('./options.json'));", None),
            ("export { options } from './options.js';", None),
            ("export default function () { const o = { vus: 10 }; }", None),
            ("export const options = { vus: 10, url: 'http://h/", None),
        ] {
            assert_eq!(flags(script).as_deref(), expected, "{script}");
        }
    }
}
