//! Literals and calls in the text of a script in JavaScript, which is not run. What is computed is
//! known to be that, and no more.

use super::script_file;

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsValue {
    /// A number, without its `_`.
    Number(String),
    Text(String),
    Bool(bool),
    /// `null` or `undefined`.
    Nothing,
    List(Vec<JsValue>),
    /// Fields in their order.
    Object(Vec<(String, JsValue)>),
    /// Anything else: a variable, a call, a sum.
    Computed,
}

impl JsValue {
    /// The value of all of this text.
    pub(super) fn of(written: &str) -> JsValue {
        let written = written.trim();
        match written {
            "true" => return JsValue::Bool(true),
            "false" => return JsValue::Bool(false),
            "null" | "undefined" => return JsValue::Nothing,
            _ => {}
        }
        let known = match written.chars().next() {
            Some('{') => whole(written).and_then(|fields| object(&fields)),
            Some('[') => whole(written)
                .map(|parts| JsValue::List(parts.into_iter().map(JsValue::of).collect())),
            Some('\'' | '"' | '`') => text(written).map(JsValue::Text),
            _ => number(written).map(JsValue::Number),
        };
        known.unwrap_or(JsValue::Computed)
    }

    /// A field of an object; of several with that name the last, as JavaScript has it.
    pub(super) fn field(&self, name: &str) -> Option<&JsValue> {
        self.fields().iter().rfind(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// The fields of an object; none of anything else.
    pub(super) fn fields(&self) -> &[(String, JsValue)] {
        match self {
            JsValue::Object(fields) => fields,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            JsValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            JsValue::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    /// A whole number above 0.
    pub(super) fn count(&self) -> Option<u32> {
        match self {
            JsValue::Number(number) => number.parse().ok().filter(|count| *count > 0),
            _ => None,
        }
    }
}

/// The parts of an object or a list that is all of this text.
fn whole(written: &str) -> Option<Vec<&str>> {
    let (parts, behind) = parts(written.get(1..)?)?;
    behind.is_empty().then_some(parts)
}

/// `None` if it takes fields from elsewhere: `...base`.
fn object(parts: &[&str]) -> Option<JsValue> {
    let mut fields = Vec::new();
    for part in parts {
        if part.starts_with("...") {
            return None;
        }
        // `vus` alone is a variable of that name, `run() {}` a function.
        let (name, value) = split_field(part).unwrap_or((part, ""));
        let name = text(name).unwrap_or_else(|| name.to_owned());
        fields.push((name, JsValue::of(value)));
    }
    Some(JsValue::Object(fields))
}

/// `name: value`, where the name may be in quotes and have a colon in it.
fn split_field(part: &str) -> Option<(&str, &str)> {
    let name = length_of_quoted(part).unwrap_or(0);
    let colon = name + part[name..].find(':')?;
    Some((part[..colon].trim(), &part[colon + 1..]))
}

/// `'30s'`, `"30s"`; a text in backticks only without `${}` in it.
fn text(written: &str) -> Option<String> {
    if length_of_quoted(written)? != written.len() || written.contains("${") {
        return None;
    }
    let mut text = String::new();
    let mut letters = written[1..written.len() - 1].chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                escaped @ ('\\' | '\'' | '"' | '`' | '/') => escaped,
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(text)
}

fn number(written: &str) -> Option<String> {
    let number = written.replace('_', "");
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_plain && number.parse::<f64>().is_ok()).then_some(number)
}

/// A script without its comments. Quoted texts stay as they are.
pub(super) fn without_comments(text: &str) -> String {
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

/// What stands between commas up to the bracket that closes what is open, and what is behind that
/// bracket; `None` if none closes it.
pub(super) fn parts(text: &str) -> Option<(Vec<&str>, &str)> {
    script_file::parts(text, &[','], length_of_quoted)
}

/// A call of a function, or a word such as `if` before a condition in parentheses.
#[derive(Debug)]
pub(super) struct JsCall<'c> {
    /// With the names before its dots: `http.get`.
    pub(super) name: &'c str,
    /// How many braces are open around it.
    pub(super) depth: usize,
    pub(super) arguments: Vec<&'c str>,
}

/// All calls in a script without comments, also those among the arguments of others.
pub(super) fn calls(code: &str) -> Vec<JsCall<'_>> {
    let is_of_name = |c: char| c.is_alphanumeric() || "_$.".contains(c);
    let mut calls = Vec::new();
    let mut depth = 0_usize;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        match first {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let length = if is_of_name(first) {
            let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            if let Some(inside) = rest[length..].trim_start().strip_prefix('(')
                && let Some((arguments, _)) = parts(inside)
            {
                calls.push(JsCall { name: &rest[..length], depth, arguments });
            }
            length
        } else {
            length_of_quoted(rest).unwrap_or(first.len_utf8())
        };
        rest = &rest[length..];
    }
    calls
}

/// The object that `export const NAME = { … }` declares; `None` if it is no literal.
pub(super) fn exported_object(code: &str, name: &str) -> Option<JsValue> {
    let declared = ["const", "let", "var"].into_iter().find_map(|keyword| {
        let (_, behind) = code.split_once(&format!("export {keyword} {name}"))?;
        // TypeScript may name a type.
        let (between, value) = behind.split_once('=')?;
        let is_type = between.trim().is_empty() || between.trim_start().starts_with(':');
        is_type.then_some(value)
    })?;
    let (fields, _) = parts(declared.trim_start().strip_prefix('{')?)?;
    object(&fields)
}

/// A value as it is written in a script: a literal, `JSON.stringify` of one, a constant of the script
/// that is one of these, or a text in backticks with constants in it.
pub(super) fn value_with_constants(code: &str, written: &str) -> JsValue {
    let known = text_with_constants(code, written)
        .map(JsValue::Text)
        .or_else(|| Some(JsValue::of(written)).filter(|value| value != &JsValue::Computed))
        .or_else(|| stringified(code, written).map(JsValue::Text));
    known.or_else(|| value_of_constant(code, written.trim())).unwrap_or(JsValue::Computed)
}

/// The value of a constant that is an object, or `JSON.stringify` of one. None of its fields may be
/// changed elsewhere.
fn value_of_constant(code: &str, name: &str) -> Option<JsValue> {
    let changes = [format!("{name}."), format!("{name}["), format!("Object.assign({name}")];
    let declared = declared_once(code, name)?;
    let opening = declared.find(['{', '('])?;
    let (_, behind) = parts(&declared[opening + 1..])?;
    let written = &declared[..declared.len() - behind.len()];
    if !ends_there(behind) || changes.iter().any(|change| code.contains(change)) {
        return None;
    }
    match JsValue::of(written) {
        JsValue::Computed => stringified(code, written).map(JsValue::Text),
        value => Some(value),
    }
}

/// The text that `JSON.stringify` makes of a literal, or of a constant that is an object.
fn stringified(code: &str, written: &str) -> Option<String> {
    let (arguments, behind) = parts(written.trim().strip_prefix("JSON.stringify(")?)?;
    let [argument] = arguments[..] else { return None };
    if !behind.is_empty() {
        return None;
    }
    match JsValue::of(argument) {
        // Not that of a text that is made of itself.
        JsValue::Computed if !declared_once(code, argument)?.starts_with('{') => None,
        JsValue::Computed => json(&value_of_constant(code, argument)?),
        value => json(&value),
    }
}

/// The JSON of a value as JavaScript writes it; `None` if something in it is computed, or may be
/// written otherwise.
fn json(value: &JsValue) -> Option<String> {
    let text = |text: &str| serde_json::to_string(text).ok();
    match value {
        JsValue::Text(value) => text(value),
        JsValue::Bool(value) => Some(value.to_string()),
        JsValue::Number(number) => {
            let number: f64 = number.parse().ok()?;
            let is_plain = number == 0.0 || (1e-6..1e15).contains(&number);
            is_plain.then(|| number.to_string())
        }
        JsValue::List(values) => {
            let values: Option<Vec<String>> = values.iter().map(json).collect();
            Some(format!("[{}]", values?.join(",")))
        }
        JsValue::Object(fields) => {
            let mut written: Vec<String> = Vec::new();
            for (at, (name, value)) in fields.iter().enumerate() {
                // Names that are numbers come first, and of two the last one counts.
                let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
                let is_repeated = fields[..at].iter().any(|(other, _)| other == name);
                if is_number || is_repeated || name.starts_with('[') {
                    return None;
                }
                written.push(format!("{}:{}", text(name)?, json(value)?));
            }
            Some(format!("{{{}}}", written.join(",")))
        }
        // `null` is written, and `undefined` is not.
        JsValue::Nothing | JsValue::Computed => None,
    }
}

/// The text of a value: a literal, a constant of the script that is one, or a text in backticks
/// with such constants in it. `None` if anything else is in it.
fn text_with_constants(code: &str, written: &str) -> Option<String> {
    let written = written.trim();
    if let JsValue::Text(text) = JsValue::of(written) {
        return Some(text);
    }
    let Some(inside) = written.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else {
        return constant(code, written);
    };
    let mut parts = inside.split("${");
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (name, behind) = part.split_once('}')?;
        text += &constant(code, name.trim())?;
        text += behind;
    }
    (!text.contains(['`', '\\'])).then_some(text)
}

/// The text that `const NAME = '…';` declares, if nothing else is declared under that name.
fn constant(code: &str, name: &str) -> Option<String> {
    let value = declared_once(code, name)?;
    let length = length_of_quoted(value)?;
    text(&value[..length]).filter(|_| ends_there(&value[length..]))
}

/// The script behind `const NAME = `, if nothing else is declared under that name.
fn declared_once<'c>(code: &'c str, name: &str) -> Option<&'c str> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_$".contains(c));
    let declaration = format!("const {name} = ");
    let (_, value) = code.split_once(&declaration)?;
    (is_name && !value.contains(&declaration)).then_some(value)
}

/// Whether a declaration ends before this.
fn ends_there(behind: &str) -> bool {
    let behind = behind.trim_start_matches([' ', '\t']);
    behind.is_empty() || behind.starts_with([';', '\n', '\r'])
}

/// What stands between the braces of the function of that name, which may be `default`: `function
/// NAME(…) { … }` or `const NAME = (…) => { … }`.
pub(super) fn body_of_function<'c>(code: &'c str, name: &str) -> Option<&'c str> {
    if name != "default" {
        let declared =
            code.split_once(&format!("function {name}(")).map(|(before, _)| before.len());
        return match declared {
            Some(at) => body_of(&code[at..]),
            None => body_of(declared_once(code, name)?),
        };
    }
    let (_, declared) = code.split_once("export default")?;
    let declared = declared.trim_start();
    let is_of_name = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let (word, behind) = declared.split_at(declared.find(|c| !is_of_name(c))?);
    let is_elsewhere = !["", "default", "function", "async"].contains(&word)
        && (behind.starts_with(';') || behind.starts_with('\n'));
    if is_elsewhere { body_of_function(code, word) } else { body_of(declared) }
}

/// What stands between the braces of the function that begins here: `function (…) { … }`, or an arrow
/// function.
fn body_of(function: &str) -> Option<&str> {
    let (_, parameters) = function.split_once('(')?;
    let (_, behind) = parts(parameters)?;
    let behind = behind.trim_start();
    let body = behind.strip_prefix("=>").unwrap_or(behind).trim_start().strip_prefix('{')?;
    let (_, rest) = parts(body)?;
    Some(&body[..body.len() - rest.len() - 1])
}

/// The body of a function in which what its groups do stands in the place of their callbacks:
/// `group('name', () => { … })`.
pub(super) fn with_groups_inline(body: &str) -> String {
    let mut inline = body.to_owned();
    for group in calls(body).iter().filter(|call| call.name == "group") {
        if let [_, callback] = group.arguments[..]
            && let Some(inside) = body_of(callback)
        {
            inline = inline.replacen(callback, inside, 1);
        }
    }
    inline
}

/// The requests of `http.batch([…])`, as calls of `http.get` and `http.request`; `None` if they are no
/// literal. Each is a URL, `[method, url, body, parameters]`, or an object of these.
pub(super) fn calls_of_batch<'c>(batch: &JsCall<'c>) -> Option<Vec<JsCall<'c>>> {
    let requests = whole(batch.arguments.first().filter(|list| list.starts_with('['))?)?;
    let call = |written: &&'c str| {
        let (name, arguments) = match written.chars().next()? {
            '[' => ("http.request", whole(written)?),
            '{' => {
                let fields: Vec<_> = whole(written)?.into_iter().filter_map(split_field).collect();
                let field =
                    |name| fields.iter().find(|(field, _)| *field == name).map(|(_, it)| *it);
                let or_nothing = |name| field(name).unwrap_or("null");
                let method = field("method").unwrap_or("'GET'");
                let others = [field("url")?, or_nothing("body"), or_nothing("params")];
                ("http.request", [&[method][..], &others].concat())
            }
            _ => ("http.get", vec![*written]),
        };
        Some(JsCall { name, depth: batch.depth, arguments })
    };
    requests.iter().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_have_a_value() {
        let text = |text: &str| JsValue::Text(text.to_owned());
        for (written, value) in [
            ("1_000", JsValue::Number("1000".to_owned())),
            ("'it\\'s'", text("it's")),
            ("`a`", text("a")),
            ("`${a}`", JsValue::Computed),
            ("'a' + b", JsValue::Computed),
            ("[1, 2].concat(c)", JsValue::Computed),
            ("{ ...base, a: 1 }", JsValue::Computed),
            ("{ 'a:b': true, }", JsValue::Object(vec![("a:b".to_owned(), JsValue::Bool(true))])),
            ("{ a }", JsValue::Object(vec![("a".to_owned(), JsValue::Computed)])),
            ("[null, 'a,b']", JsValue::List(vec![JsValue::Nothing, text("a,b")])),
        ] {
            assert_eq!(JsValue::of(written), value, "{written}");
        }
    }

    #[test]
    fn calls_are_found_with_their_arguments_and_depth() {
        let code = "check(http.get('http://h/(a)', { b: 1 }), {}); if (x) { sleep(1); } 'no(1)'";
        let found: Vec<String> = calls(code)
            .iter()
            .map(|call| format!("{} {} {:?}", call.depth, call.name, call.arguments))
            .collect();
        assert_eq!(
            found,
            [
                "0 check [\"http.get('http://h/(a)', { b: 1 })\", \"{}\"]",
                "0 http.get [\"'http://h/(a)'\", \"{ b: 1 }\"]",
                "0 if [\"x\"]",
                "1 sleep [\"1\"]",
            ]
        );
    }
}
