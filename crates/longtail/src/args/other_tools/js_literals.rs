//! Literals and calls in the text of a script in JavaScript, which is not run. What is computed is
//! known to be that, and no more.

use std::ops::Range;

use super::script_file;

/// Around the ends of a random number, in a script's text: characters that no script has.
pub(super) const BEGIN: char = '\u{1}';
pub(super) const END: char = '\u{2}';

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
    /// The literal that is all of this text. `of_part` says the value of a part of a list or an object.
    fn literal(written: &str, of_part: &dyn Fn(&str) -> JsValue) -> JsValue {
        let written = written.trim();
        match written {
            "true" => return JsValue::Bool(true),
            "false" => return JsValue::Bool(false),
            "null" | "undefined" => return JsValue::Nothing,
            _ => {}
        }
        let known = match written.chars().next() {
            Some('{') => whole(written).and_then(|fields| object(&fields, of_part)),
            Some('[') => {
                whole(written).map(|parts| JsValue::List(parts.into_iter().map(of_part).collect()))
            }
            Some('\'' | '"' | '`') => text(written).map(|text| {
                if is_random(&text) { JsValue::Number(text) } else { JsValue::Text(text) }
            }),
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

    /// A number, or a text that is one, as an environment variable is.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            JsValue::Number(text) | JsValue::Text(text) => number(text)?.parse().ok(),
            _ => None,
        }
    }

    /// A whole number above 0, or a text that is one.
    pub(super) fn count(&self) -> Option<u32> {
        self.count_or_none().filter(|count| *count > 0)
    }

    /// A whole number, which may be 0, or a text that is one.
    pub(super) fn count_or_none(&self) -> Option<u32> {
        match self {
            JsValue::Number(text) | JsValue::Text(text) => number(text)?.parse().ok(),
            _ => None,
        }
    }
}

/// Whether a text is a random number and nothing else.
fn is_random(text: &str) -> bool {
    let inside = text.strip_prefix(BEGIN).and_then(|inside| inside.strip_suffix(END));
    inside.is_some_and(|inside| !inside.contains(BEGIN))
}

/// The parts of an object or a list that is all of this text.
fn whole(written: &str) -> Option<Vec<&str>> {
    let (parts, behind) = parts(written.get(1..)?)?;
    behind.is_empty().then_some(parts)
}

/// `None` if it takes fields of what is not known: `...base`.
fn object(parts: &[&str], of_part: &dyn Fn(&str) -> JsValue) -> Option<JsValue> {
    let mut fields: Vec<(String, JsValue)> = Vec::new();
    for part in parts {
        if let Some(base) = part.strip_prefix("...") {
            let JsValue::Object(base) = of_part(base) else { return None };
            for (name, value) in base {
                fields.retain(|(known, _)| *known != name);
                fields.push((name, value));
            }
            continue;
        }
        // `vus` alone is a variable of that name, `run() {}` a function.
        let (name, value) = split_field(part).unwrap_or((part, part));
        let name = text(name).unwrap_or_else(|| name.to_owned());
        fields.push((name, of_part(value)));
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

/// A script without the types that TypeScript names behind values: `{ … } as Record<string, string>`.
pub(super) fn without_assertions(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_behind_value = code.ends_with(['}', ']', ')', '\'', '"', '`']);
        let words = [" as ", " satisfies "];
        let named = words.into_iter().find_map(|word| rest.strip_prefix(word));
        if let Some(named) = named.filter(|_| is_behind_value) {
            let behind =
                &named[named.find(|c| !is_of_name(c) && c != '.').unwrap_or(named.len())..];
            let end = if behind.starts_with('<') { end_of_angles(behind) } else { 0 };
            rest = behind[end..].trim_start_matches("[]");
            continue;
        }
        let length = length_of_quoted(rest).unwrap_or(first.len_utf8());
        code.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    code
}

/// What is behind the angle bracket that closes the one that begins here.
fn end_of_angles(text: &str) -> usize {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + letter.len_utf8();
        }
    }
    text.len()
}

/// The length of the quoted text that begins here; `None` if none does. Only one in backticks has
/// several lines.
pub(super) fn length_of_quoted(text: &str) -> Option<usize> {
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

/// What stands between such signs in all of a text, but for those in brackets and quotes; `None` if
/// it closes more brackets than it opens, or fewer.
pub(super) fn parts_between(written: &str, sign: char) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = written;
    loop {
        let end = end_of(rest, |_, letter| letter == sign);
        found.push(rest[..end].trim());
        match rest[end..].strip_prefix(sign) {
            Some(behind) => rest = behind,
            None => return rest[end..].is_empty().then_some(found),
        }
    }
}

/// A call of a function, or a word such as `if` before a condition in parentheses.
#[derive(Debug)]
pub(super) struct JsCall<'c> {
    /// With the names before its dots: `http.get`.
    pub(super) name: &'c str,
    /// How many blocks are open around it: braces, a statement that stands behind `if (…)` without
    /// them, or what is behind `&&` or the like.
    pub(super) depth: usize,
    /// Whether one of these is under a condition.
    pub(super) is_conditional: bool,
    pub(super) arguments: Vec<&'c str>,
}

/// A part of a script that is done more or less than once.
struct JsBlock {
    /// Where it begins.
    begin: usize,
    /// Where it ends, if a brace does not say it.
    end: Option<usize>,
    is_conditional: bool,
}

impl JsBlock {
    /// What is done if `word` says so, where `behind` stands behind it: braces, or one statement.
    fn behind_word(code: &str, word: &str, behind: &str) -> Option<JsBlock> {
        let is_conditional = ["if", "else", "switch", "catch"].contains(&word);
        let has_head = ["if", "switch", "catch", "for", "while"].contains(&word);
        if !has_head && !["else", "do"].contains(&word) {
            return None;
        }
        let head = behind.trim_start().strip_prefix('(').filter(|_| has_head);
        let done = match head {
            Some(head) => parts(head)?.1,
            None => behind,
        };
        let done = done.trim_start();
        let begin = code.len() - done.len();
        if done.starts_with('{') {
            return Some(JsBlock { begin, end: None, is_conditional });
        }
        // `else if` has the block of its `if`; `do … while (…);` has none behind it.
        let next = &done[..done.find(|c| !is_of_name(c)).unwrap_or(done.len())];
        let has_none = done.starts_with(';') || word == "else" && next == "if";
        let end = Some(begin + end_of_statement(done));
        (!has_none).then_some(JsBlock { begin, end, is_conditional })
    }

    /// What is done only as `&&`, `||`, `??` or `? :` decides, if one stands at the end of `before`.
    fn behind_operator(before: &str, behind: &str) -> Option<JsBlock> {
        let is_double = ["&&", "||", "??"].iter().any(|operator| before.ends_with(operator));
        // `?.` and `??` are others.
        let is_choice = before.ends_with('?') && !behind.starts_with(['.', '?']);
        let begin = before.len();
        let ends = |at: usize, letter| letter == ',' || is_end_of_statement(behind, at, letter);
        let end = Some(begin + end_of(behind, ends));
        (is_double || is_choice).then_some(JsBlock { begin, end, is_conditional: true })
    }
}

/// All calls in a script without comments, also those among the arguments of others.
pub(super) fn calls(code: &str) -> Vec<JsCall<'_>> {
    let is_of_call = |c: char| is_of_name(c) || c == '.';
    let mut calls = Vec::new();
    let mut open: Vec<JsBlock> = Vec::new();
    // Those that begin further on.
    let mut next: Vec<JsBlock> = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let at = code.len() - rest.len();
        open.retain(|block| block.end.is_none_or(|end| at < end));
        let begun = next.iter().position(|block| block.begin == at);
        let begun = begun.map(|place| next.swap_remove(place));
        match first {
            '}' => {
                let brace = open.iter().rposition(|block| block.end.is_none());
                open.truncate(brace.unwrap_or(0));
            }
            '{' => {
                let plain = JsBlock { begin: at, end: None, is_conditional: false };
                open.push(begun.unwrap_or(plain));
            }
            _ => open.extend(begun),
        }
        let length = if is_of_call(first) {
            let length = rest.find(|c| !is_of_call(c)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(length);
            next.extend(JsBlock::behind_word(code, name, behind));
            if let Some(inside) = behind.trim_start().strip_prefix('(')
                && let Some((arguments, _)) = parts(inside)
            {
                let is_conditional = open.iter().any(|block| block.is_conditional);
                calls.push(JsCall { name, depth: open.len(), is_conditional, arguments });
            }
            length
        } else {
            length_of_quoted(rest).unwrap_or(first.len_utf8())
        };
        let (before, behind) = code.split_at(at + length);
        if length == first.len_utf8() {
            open.extend(JsBlock::behind_operator(before, behind));
        }
        rest = behind;
    }
    calls
}

/// The object that `export const NAME = { … }` declares, with the constants of the script that are in
/// it; `None` if it is no literal.
pub(super) fn exported_object(code: &str, name: &str) -> Option<JsValue> {
    let declared = ["const", "let", "var"].into_iter().find_map(|keyword| {
        let (_, behind) = code.split_once(&format!("export {keyword} {name}"))?;
        // TypeScript may name a type.
        let (between, value) = behind.split_once('=')?;
        let is_type = between.trim().is_empty() || between.trim_start().starts_with(':');
        is_type.then_some(value)
    });
    // `export { options };`
    let listed = || {
        let lists = code.split("export {").skip(1).filter_map(|list| list.split_once('}'));
        let mut names = lists.flat_map(|(names, _)| names.split(','));
        names.any(|one| one.trim() == name).then(|| declared_once(code, name))?
    };
    let declared = declared.or_else(|| Some(listed()?.1))?;
    let declared = declared.trim_start();
    let Some(fields) = declared.strip_prefix('{') else {
        // `config.options`
        let value = value_with_constants(code, &declared[..end_of_statement(declared)]);
        return matches!(value, JsValue::Object(_)).then_some(value);
    };
    let (fields, _) = parts(fields)?;
    object(&fields, &|part| value_with_constants(code, part))
}

/// What stands before a template of a URL, which is a text as any other.
pub(super) const TEMPLATE_OF_URL: &str = "http.url";

/// A value as it is written in a script: a literal, a constant of the script or a field of one,
/// `JSON.stringify` of one, a sum of texts, a text in backticks with such values in it, or a number
/// that is made of others.
pub(super) fn value_with_constants(code: &str, written: &str) -> JsValue {
    let written = written.trim();
    let template = written.strip_prefix(TEMPLATE_OF_URL).filter(|rest| rest.starts_with('`'));
    let written = template.unwrap_or(written);
    let literal = JsValue::literal(written, &|part| value_with_constants(code, part));
    if literal != JsValue::Computed {
        return literal;
    }
    in_parentheses(code, written)
        .or_else(|| made_a_number(code, written).map(JsValue::Number))
        .or_else(|| stringified(code, written).map(JsValue::Text))
        .or_else(|| encoded(code, written).map(JsValue::Text))
        .or_else(|| in_backticks(code, written).map(JsValue::Text))
        .or_else(|| sum(code, written))
        .or_else(|| computed_number(code, written).map(JsValue::Number))
        .or_else(|| value_of_constant(code, written))
        .or_else(|| field_of_constant(code, written))
        .unwrap_or(JsValue::Computed)
}

/// The one argument of a call that is all of this text.
fn only_argument<'w>(written: &'w str, call: &str) -> Option<&'w str> {
    match parts(written.strip_prefix(call)?)? {
        (arguments, "") if arguments.len() == 1 => arguments.first().copied(),
        _ => None,
    }
}

fn in_parentheses(code: &str, written: &str) -> Option<JsValue> {
    only_argument(written, "(").map(|inside| value_with_constants(code, inside))
}

/// `Number('5')`, `parseInt('5', 10)`, `parseFloat('.5')`, `+'5'`.
fn made_a_number(code: &str, written: &str) -> Option<String> {
    let argument = if let Some(argument) = written.strip_prefix('+') {
        argument
    } else {
        let made = ["Number(", "parseFloat(", "parseInt("];
        let inside = made.into_iter().find_map(|call| written.strip_prefix(call))?;
        let (arguments, behind) = parts(inside)?;
        match arguments[..] {
            [argument] | [argument, "10"] if behind.is_empty() => argument,
            _ => return None,
        }
    };
    match value_with_constants(code, argument) {
        JsValue::Number(text) | JsValue::Text(text) => number(&text),
        _ => None,
    }
}

/// The text that `JSON.stringify` makes of a value.
fn stringified(code: &str, written: &str) -> Option<String> {
    json(&value_with_constants(code, only_argument(written, "JSON.stringify(")?))
}

/// The text that `encodeURIComponent` makes of a value.
fn encoded(code: &str, written: &str) -> Option<String> {
    let argument = only_argument(written, "encodeURIComponent(")?;
    let text = as_text(value_with_constants(code, argument))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.!~*'()".contains(c);
    let mut encoded = String::new();
    let mut is_range = false;
    for letter in text.chars() {
        is_range = letter == BEGIN || is_range && letter != END;
        if is_range || letter == END || is_plain(letter) {
            encoded.push(letter);
        } else {
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes).bytes();
            encoded.extend(bytes.map(|byte| format!("%{byte:02X}")));
        }
    }
    Some(encoded)
}

/// A text in backticks with `${…}` in it.
fn in_backticks(code: &str, written: &str) -> Option<String> {
    let mut parts = written.strip_prefix('`')?.strip_suffix('`')?.split("${");
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (value, behind) = part.split_once('}')?;
        text += &as_text(value_with_constants(code, value))?;
        text += behind;
    }
    (!text.contains(['`', '\\'])).then_some(text)
}

/// The text with which one begins of which the rest is computed.
pub(super) fn known_begin(code: &str, written: &str) -> Option<String> {
    let written = written.trim();
    let template = written.strip_prefix(TEMPLATE_OF_URL).filter(|rest| rest.starts_with('`'));
    let written = template.unwrap_or(written);
    let mut text = String::new();
    if let Some(inside) = written.strip_prefix('`') {
        let mut pieces = inside.strip_suffix('`')?.split("${");
        text += pieces.next()?;
        for piece in pieces {
            let (value, behind) = piece.split_once('}')?;
            let Some(value) = as_text(value_with_constants(code, value)) else { break };
            text.extend([&value, behind]);
        }
    } else {
        let summands = parts_between(written, '+')?;
        if summands.len() < 2 {
            let (before, value) = declared_once(code, written)?;
            return known_begin(before, &value[..end_of_statement(value)]);
        }
        let known = summands.iter().map_while(|it| as_text(value_with_constants(code, it)));
        text.extend(known);
    }
    (!text.contains(['`', '\\'])).then_some(text)
}

/// `'http://' + HOST + '/'`, `3 * 10 + 's'`, `WARM + 20`: numbers are added up to the first text.
fn sum(code: &str, written: &str) -> Option<JsValue> {
    let summands = parts_between(written, '+')?;
    if summands.len() < 2 || summands.iter().any(|summand| summand.is_empty()) {
        return None;
    }
    let mut values = summands.into_iter().map(|summand| value_with_constants(code, summand));
    let first = values.next()?;
    values.try_fold(first, |sum, value| match (&sum, &value) {
        (JsValue::Number(_), JsValue::Number(_)) => {
            in_digits(sum.number()? + value.number()?).map(JsValue::Number)
        }
        _ => Some(JsValue::Text(as_text(sum)? + &as_text(value)?)),
    })
}

/// `60 * MINUTES`, `PEAK / 2`, `ALL - 1`.
fn computed_number(code: &str, written: &str) -> Option<String> {
    ['-', '*', '/'].into_iter().find_map(|sign| {
        let operands = parts_between(written, sign)?;
        if operands.len() < 2 || operands.iter().any(|operand| operand.is_empty()) {
            return None;
        }
        let values = operands.iter().map(|operand| match value_with_constants(code, operand) {
            value @ JsValue::Number(_) => value.number(),
            _ => None,
        });
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        in_digits(values.into_iter().reduce(|a, b| match sign {
            '-' => a - b,
            '*' => a * b,
            _ => a / b,
        })?)
    })
}

/// A number as it is written in a script; `None` if it is negative or none.
fn in_digits(number: f64) -> Option<String> {
    (number.is_finite() && number >= 0.0).then(|| number.to_string())
}

/// The file that `open('FILE')` reads, or the constant that is written here.
pub(super) fn opened_file(code: &str, written: &str) -> Option<String> {
    let Some(inside) = written.trim().strip_prefix("open(") else {
        let (before, declared) = declared_once(code, written.trim())?;
        return opened_file(before, &declared[..end_of_statement(declared)]);
    };
    let (arguments, behind) = parts(inside)?;
    let file = value_with_constants(code, arguments.first().filter(|_| behind.is_empty())?);
    file.text().map(str::to_owned)
}

/// A value as a part of a text.
fn as_text(value: JsValue) -> Option<String> {
    match value {
        JsValue::Text(text) | JsValue::Number(text) => Some(text),
        _ => None,
    }
}

/// The value of a constant. Of one that is an object or a list nothing may be changed elsewhere.
fn value_of_constant(code: &str, name: &str) -> Option<JsValue> {
    let (before, declared) = declared_once(code, name)?;
    let written = declared[..end_of_statement(declared)].trim();
    // What it is made of is declared before it.
    let value = value_with_constants(before, written);
    let may_change = matches!(value, JsValue::Object(_) | JsValue::List(_));
    (!may_change || !is_changed(code, name)).then_some(value)
}

/// `config.host`, `config.load.vus`: a field of a constant that is an object.
fn field_of_constant(code: &str, written: &str) -> Option<JsValue> {
    let (name, fields) = written.split_once('.')?;
    fields
        .split('.')
        .try_fold(value_of_constant(code, name)?, |value, field| value.field(field).cloned())
}

/// Whether something of an object or a list may be changed after it was declared: all but fields
/// that are only read.
fn is_changed(code: &str, name: &str) -> bool {
    let changes_by = ["++", "--", "+=", "-=", "*=", "/=", "||=", "&&=", "??="];
    code.contains(&format!("{name}["))
        || code.contains(&format!("Object.assign({name}"))
        || code.match_indices(&format!("{name}.")).any(|(at, _)| {
            let (before, field) = code.split_at(at);
            let length = field.find(|c| !is_of_name(c) && c != '.').unwrap_or(field.len());
            let behind = field[length..].trim_start();
            let is_set = behind.starts_with('=') && !behind.starts_with("==");
            let before = before.trim_end();
            is_set
                || behind.starts_with(['[', '('])
                || changes_by.iter().any(|sign| behind.starts_with(sign) || before.ends_with(sign))
                || before.ends_with("delete")
        })
}

/// The JSON of a value as JavaScript writes it; `None` if something in it is computed, or may be
/// written otherwise.
fn json(value: &JsValue) -> Option<String> {
    let text = |text: &str| {
        let written = serde_json::to_string(text).ok()?;
        Some(written.replace("\\u0001", &BEGIN.to_string()).replace("\\u0002", &END.to_string()))
    };
    match value {
        JsValue::Text(value) => text(value),
        JsValue::Bool(value) => Some(value.to_string()),
        JsValue::Number(number) if is_random(number) => Some(number.clone()),
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

/// The form that k6 makes of an object: its fields in the order of their names, of a list each value;
/// `None` if something in it is computed, or is an object itself.
pub(super) fn form(value: &JsValue) -> Option<String> {
    let mut pairs = Vec::new();
    for (name, value) in value.fields() {
        let values = match value {
            JsValue::List(values) => &values[..],
            one => std::slice::from_ref(one),
        };
        // Of two fields of a name the last one counts.
        pairs.retain(|(known, _)| known != name);
        for value in values {
            let text = match value {
                JsValue::Text(text) => text.clone(),
                JsValue::Number(_) | JsValue::Bool(_) => json(value)?,
                _ => return None,
            };
            pairs.push((name.clone(), text));
        }
    }
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", in_form(name), in_form(value)));
    Some(pairs.collect::<Vec<_>>().join("&"))
}

/// A text as a form has it.
fn in_form(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ if [BEGIN, END].contains(&char::from(byte)) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// The script before and behind `const NAME =`, `let NAME =` or `var NAME: type =`, if nothing else
/// goes by that name, and nothing gives it another value.
pub(super) fn declared_once<'c>(code: &'c str, name: &str) -> Option<(&'c str, &'c str)> {
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    if !is_name || is_parameter(code, name) {
        return None;
    }
    let mut found = None;
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        if &rest[..length] != name || code[..at].ends_with('.') {
            let length = if length > 0 { Some(length) } else { length_of_quoted(rest) };
            at += length.unwrap_or(first.len_utf8());
            continue;
        }
        let (before, behind) = (code[..at].trim_end(), rest[length..].trim_start());
        at += length;
        let declared = ["const", "let", "var"].iter().find_map(|word| {
            before.strip_suffix(word).filter(|before| !before.ends_with(is_of_name))
        });
        let assigned = |text: &'c str| {
            let value = text.strip_prefix('=').filter(|value| !value.starts_with(['=', '>']));
            value.map(str::trim_start)
        };
        let Some(before) = declared else {
            let changes = ["++", "--", "+=", "-=", "*=", "||=", "&&=", "??="];
            let is_changed = assigned(behind).is_some()
                || changes.iter().any(|change| behind.starts_with(change))
                || before.ends_with("++")
                || before.ends_with("--");
            if is_changed {
                return None;
            }
            continue;
        };
        // TypeScript may name a type.
        let typed = behind.strip_prefix(':').and_then(|it| it.find('=').map(|at| &it[at..]));
        let value = assigned(behind).or_else(|| assigned(typed?))?;
        if found.replace((before, value)).is_some() {
            return None;
        }
    }
    found
}

/// Whether a function or a loop of the script has a variable of that name.
fn is_parameter(code: &str, name: &str) -> bool {
    let has_name = |list: &str| {
        list.split([',', '(', ')']).any(|one| one.split('=').next().unwrap_or(one).trim() == name)
    };
    let of_arrow = |before: &str| {
        let before = before.trim_end();
        let begin = if before.ends_with(')') {
            before.rfind('(')
        } else {
            before.rfind(|c| !is_of_name(c))
        };
        has_name(before[begin.unwrap_or(0)..].trim_start_matches(|c| !is_of_name(c)))
    };
    let of_function = |behind: &str| {
        let begin = behind.find('(').unwrap_or(behind.len());
        let end = behind.find(')').unwrap_or(behind.len());
        has_name(behind.get(begin..end).unwrap_or_default())
    };
    ["of", "in"].into_iter().any(|word| code.contains(&format!(" {name} {word} ")))
        || code.match_indices("=>").any(|(at, _)| of_arrow(&code[..at]))
        || code.match_indices("function").any(|(at, _)| of_function(&code[at..]))
}

/// Where the statement ends that begins here.
pub(super) fn end_of_statement(code: &str) -> usize {
    end_of(code, |at, letter| is_end_of_statement(code, at, letter))
}

/// Whether the letter at that place ends the statement with which a text begins.
fn is_end_of_statement(code: &str, at: usize, letter: char) -> bool {
    let (before, behind) = code.split_at(at);
    let goes_on = before.trim().is_empty()
        || before.trim_end().ends_with(['+', '|', '?', ':', '=', '*'])
        || behind.trim_start().starts_with(['.', '+', '|', '?', ':', '*']);
    letter == ';' || letter == '\n' && !goes_on
}

/// Where the first letter stands that ends what begins here, or a bracket that closes what was open
/// before. Brackets and quoted texts do not count.
fn end_of(code: &str, is_end: impl Fn(usize, char) -> bool) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while let Some(letter) = code[at..].chars().next() {
        let closes = ['}', ']', ')'].contains(&letter);
        if depth == 0 && (closes || is_end(at, letter)) {
            break;
        }
        match letter {
            '{' | '[' | '(' => depth += 1,
            _ if closes => depth -= 1,
            _ => {}
        }
        at += length_of_quoted(&code[at..]).unwrap_or(letter.len_utf8());
    }
    at
}

pub(super) fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || "_$".contains(letter)
}

/// What a script reads from its environment.
pub(super) struct WithEnvironment {
    /// The script, in which values stand in the place of `__ENV.NAME`.
    pub(super) code: String,
    /// Names without a value, that have no default in the script.
    pub(super) missing: Vec<String>,
}

/// Where the values of `__ENV` come from.
#[derive(Clone, Copy)]
pub(super) struct EnvironmentSources<'a> {
    /// The line of k6 and the environment of the process.
    pub(super) given: &'a dyn Fn(&str) -> Option<String>,
    /// What the scenario's own `env` has. k6 sets it when a virtual user begins: what stands outside
    /// of functions has run before.
    pub(super) of_scenario: &'a [(String, JsValue)],
}

/// A script in whose place of `__ENV.NAME` stands its value, or the default that the script has:
/// `__ENV.NAME || 'default'`.
pub(super) fn with_environment(code: &str, sources: EnvironmentSources<'_>) -> WithEnvironment {
    let code = &with_defaults_of_numbers(&with_variables_of_pattern(code));
    let EnvironmentSources { given, of_scenario } = sources;
    let functions = if of_scenario.is_empty() { Vec::new() } else { functions_in(code) };
    let own = |name: &str| of_scenario.iter().rfind(|(known, _)| known == name);
    let inside = |name: &str| match own(name) {
        Some((_, value)) => value.text().map(str::to_owned),
        None => given(name),
    };
    let mut written =
        WithEnvironment { code: String::with_capacity(code.len()), missing: Vec::new() };
    let mut rest = code.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some((name, behind)) = variable(rest)
            && !written.code.ends_with(|c| is_of_name(c) || c == '.')
        {
            let at = code.len() - rest.len();
            let is_inside = functions.iter().any(|function| function.contains(&at));
            rest = match own(name).filter(|_| is_inside) {
                Some((_, value)) if value.text().is_none() => {
                    written.code.extend(["__ENV.", name]);
                    behind
                }
                _ if is_inside => written.take_variable(name, inside(name), behind, &inside),
                _ => written.take_variable(name, given(name), behind, given),
            };
            continue;
        }
        // A text in backticks may have variables in it.
        let length = if first == '`' { None } else { length_of_quoted(rest) };
        let length = length.unwrap_or(first.len_utf8());
        written.code.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    written
}

/// Whether a function of a script without comments reads this variable of its environment.
pub(super) fn is_read_in_function(code: &str, name: &str) -> bool {
    functions_in(code).iter().any(|function| reads_variable(&code[function.clone()], name))
}

/// Whether a part of a script reads this variable of its environment.
pub(super) fn reads_variable(code: &str, name: &str) -> bool {
    code.match_indices("__ENV").any(|(at, _)| variable(&code[at..]).is_some_and(|it| it.0 == name))
}

/// Where what functions do stands in a script, those in others too.
fn functions_in(code: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = length_of_quoted(rest).or_else(|| rest.find(|c| !is_of_name(c)));
        let length = length.filter(|length| *length > 0).unwrap_or(first.len_utf8());
        let done = if &rest[..length] == "function" {
            let head = rest.find('(').and_then(|begin| parts(&rest[begin + 1..]));
            head.map(|(_, behind)| behind.trim_start()).filter(|behind| behind.starts_with('{'))
        } else {
            rest.strip_prefix("=>").map(str::trim_start)
        };
        if let Some(done) = done {
            let length = match done.strip_prefix('{').and_then(parts) {
                Some((_, behind)) => done.len() - behind.len(),
                None => end_of(done, |at, letter| {
                    letter == ',' || is_end_of_statement(done, at, letter)
                }),
            };
            let begin = code.len() - done.len();
            found.push(begin..begin + length);
        }
        at += length;
    }
    found
}

/// A script in which `parseInt(__ENV.NAME) || 7` is `__ENV.NAME || 7`: without the variable both are
/// the default, and with it the same number.
fn with_defaults_of_numbers(code: &str) -> String {
    let mut code = code.to_owned();
    for call in ["parseInt(", "parseFloat(", "Number("] {
        let mut pieces = code.split(call);
        let mut found = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let with_default = variable(piece.trim_start()).and_then(|(name, behind)| {
                let behind = behind.trim_start();
                let behind = match behind.strip_prefix(',') {
                    Some(base) => base.trim_start().strip_prefix("10")?.trim_start(),
                    None => behind,
                };
                let behind = behind.strip_prefix(')')?.trim_start();
                behind.starts_with("||").then_some((name, behind))
            });
            match with_default.filter(|_| !found.ends_with(is_of_name)) {
                Some((name, behind)) => found.extend(["__ENV.", name, " ", behind]),
                None => found.extend([call, piece]),
            }
        }
        code = found;
    }
    code
}

/// A script in which `const { A, B = 'b' } = __ENV` is a declaration of each variable.
fn with_variables_of_pattern(code: &str) -> String {
    let mut code = code.to_owned();
    let mut from = 0;
    while let Some(end) = code[from..].find("= __ENV").map(|at| from + at) {
        from = end + "= __ENV".len();
        let is_whole = !code[from..].starts_with(|c| is_of_name(c) || c == '.' || c == '[');
        let pattern = code[..end].trim_end().strip_suffix('}').filter(|_| is_whole);
        let Some((before, names)) = pattern.and_then(|pattern| pattern.rsplit_once('{')) else {
            continue;
        };
        let is_declared =
            ["const", "let", "var"].iter().any(|word| before.trim_end().ends_with(word));
        let one = |part: &str| {
            let (names, default) = match part.split_once('=') {
                Some((names, default)) => (names, format!(" ?? {}", default.trim())),
                None => (part, String::new()),
            };
            let (variable, name) = names.split_once(':').unwrap_or((names, names));
            format!("const {} = __ENV.{}{default};", name.trim(), variable.trim())
        };
        let names = names.split(',').filter(|part| !part.trim().is_empty());
        if !is_declared || names.clone().any(|part| part.contains("...")) {
            continue;
        }
        let declared: Vec<String> = names.map(one).collect();
        let begin = before.trim_end().rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1);
        let declared = declared.join(" ");
        code.replace_range(begin..from, &declared);
        from = begin + declared.len();
    }
    code
}

impl WithEnvironment {
    /// Writes a variable of this value, and returns what is behind it and its default.
    fn take_variable<'c>(
        &mut self,
        name: &str,
        value: Option<String>,
        behind: &'c str,
        given: &dyn Fn(&str) -> Option<String>,
    ) -> &'c str {
        let next = behind.trim_start();
        let ends = |_, letter| [',', ';', '\n'].contains(&letter);
        let value = value.filter(|value| !value.is_empty());
        let default = next.strip_prefix("||").or_else(|| next.strip_prefix("??"));
        let condition = next.strip_prefix('?').filter(|rest| !rest.starts_with(['?', '.']));
        match (value, default, condition) {
            (Some(value), Some(default), _) => {
                self.code.push_str(&in_quotes(&value));
                let default = default.trim_start();
                &default[end_of(default, ends)..]
            }
            (None, Some(default), _) => default.trim_start(),
            // `__ENV.NAME ? Number(__ENV.NAME) : 5`
            (value, None, Some(chosen)) => {
                let colon = end_of(chosen, |_, letter| letter == ':');
                let Some(default) = chosen[colon..].strip_prefix(':') else { return chosen };
                if value.is_none() {
                    return default.trim_start();
                }
                let sources = EnvironmentSources { given, of_scenario: &[] };
                let chosen = with_environment(chosen[..colon].trim(), sources);
                self.code.push_str(&chosen.code);
                let default = default.trim_start();
                &default[end_of(default, ends)..]
            }
            (Some(value), None, None) => {
                self.code.push_str(&in_quotes(&value));
                behind
            }
            (None, None, None) => {
                if !self.missing.iter().any(|known| known == name) {
                    self.missing.push(name.to_owned());
                }
                self.code.push_str("__ENV.");
                self.code.push_str(name);
                behind
            }
        }
    }
}

/// The name of the variable of the environment that begins here, and what is behind it:
/// `__ENV.NAME`, `__ENV['NAME']`.
fn variable(code: &str) -> Option<(&str, &str)> {
    let behind = code.strip_prefix("__ENV")?;
    if let Some(name) = behind.strip_prefix('.') {
        let length = name.find(|c| !is_of_name(c)).unwrap_or(name.len());
        return (length > 0).then(|| name.split_at(length));
    }
    let quoted = behind.strip_prefix('[')?;
    let length = length_of_quoted(quoted)?;
    Some((&quoted[1..length - 1], quoted[length..].strip_prefix(']')?))
}

/// A text as a script has it.
fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

/// What stands between the braces of the function of that name, which may be `default`: `function
/// NAME(…) { … }` or `const NAME = (…) => { … }`.
pub(super) fn body_of_function<'c>(code: &'c str, name: &str) -> Option<&'c str> {
    if name != "default" {
        let declared =
            code.split_once(&format!("function {name}(")).map(|(before, _)| before.len());
        return match declared {
            Some(at) => body_of(&code[at..]),
            None => body_of(declared_once(code, name)?.1),
        };
    }
    let (_, declared) = code.split_once("export default")?;
    let declared = declared.trim_start();
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
    let behind = without_type(behind.trim_start());
    let body = behind.strip_prefix("=>").unwrap_or(behind).trim_start().strip_prefix('{')?;
    let (_, rest) = parts(body)?;
    Some(&body[..body.len() - rest.len() - 1])
}

/// What stands behind a function's parameters without the type that TypeScript names there: `: void`.
fn without_type(behind: &str) -> &str {
    let Some(named) = behind.strip_prefix(':') else { return behind };
    let end = named.find(['{', '=', ';']).unwrap_or(named.len());
    if named[end..].starts_with(['{', '=']) { &named[end..] } else { behind }
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
        Some(JsCall { name, arguments, ..*batch })
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
            assert_eq!(value_with_constants("", written), value, "{written}");
        }
    }

    #[test]
    fn constants_fields_and_arithmetic_have_a_value() {
        let code =
            "const A = 60; const c = { host: 'h', n: { b: 2 } }; const d = { e: 1 }; d.e = 2;";
        for (written, expected) in [
            ("A * 2", Some("120")),
            ("A / 4 - 5", Some("10")),
            ("A + 1 + 's'", Some("61s")),
            ("encodeURIComponent('a b&c/' + A)", Some("a%20b%26c%2F60")),
            ("`${encodeURIComponent('é')}`", Some("%C3%A9")),
            ("encodeURIComponent('a', 'b')", None),
            ("`http://${c.host}:${c.n.b}`", Some("http://h:2")),
            ("1 - A", None),
            ("A / 0", None),
            ("A * B", None),
            ("d.e", None),
            ("c.other", None),
        ] {
            let value = as_text(value_with_constants(code, written));
            assert_eq!(value.as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn types_of_typescript_are_no_part_of_a_script() {
        for (code, expected) in [
            ("f({ a: 1 } as Record<string, Map<a, b>>, 'x as y');", "f({ a: 1 }, 'x as y');"),
            ("const a = ['b'] as string[];", "const a = ['b'];"),
            ("const a = { b: 1 } satisfies k6.Options;", "const a = { b: 1 };"),
            ("import * as http from 'k6/http';", "import * as http from 'k6/http';"),
            ("import { a as b } from 'c';", "import { a as b } from 'c';"),
        ] {
            assert_eq!(without_assertions(code), expected);
        }
        let typed = "export default async (data: Data): Promise<void> => { f(); }";
        assert_eq!(body_of_function(typed, "default"), Some(" f(); "));
        let typed = "export default function (): void { f(); }";
        assert_eq!(body_of_function(typed, "default"), Some(" f(); "));
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

    #[test]
    fn a_statement_without_braces_is_under_what_stands_before_it() {
        for (code, expected) in [
            ("a(); if (x) b(); c();", "a b? c"),
            ("if (x) b()\nelse c()\nd();", "b? c? d"),
            ("if (x)\n  b(\n 1);\nc();", "b? c"),
            ("if (x) { b(); } else if (y) c(); else { d(); } e();", "b? c? d? e"),
            ("if (f()) for (const x of all) b(x); c();", "f b? c"),
            ("for (const x of all) b(x); c();", "b+ c"),
            ("do { a(); } while (x); b();", "a+ b"),
            ("do a(); while (x); b();", "a+ b"),
            ("x && b(c()); d();", "b? c? d"),
            ("x ? b() : c()\nd();", "b? c? d"),
            ("f(x || 1, b()); c()?.g; d();", "f b c d"),
            ("const f = x ?? { y: b() }; c();", "b? c"),
            ("switch (x) { case 1: b(); } c();", "b? c"),
            ("const f = () => { b(); }; c();", "b+ c"),
        ] {
            let words = ["if", "for", "while", "switch"];
            let found: Vec<String> = calls(code)
                .iter()
                .filter(|call| !words.contains(&call.name))
                .map(|call| match (call.is_conditional, call.depth) {
                    (true, _) => format!("{}?", call.name),
                    (false, 0) => call.name.to_owned(),
                    (false, _) => format!("{}+", call.name),
                })
                .collect();
            assert_eq!(found.join(" "), expected, "{code}");
        }
    }
}
