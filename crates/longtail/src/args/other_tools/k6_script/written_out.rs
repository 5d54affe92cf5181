//! A script of k6 in which each declaration stands alone, and each loop of a known number of rounds is
//! written out, round after round: `for (let i = 0; i < 3; i++)`, `for (const path of ['/a', '/b'])`.

use std::ops::Range;

use super::list_picks::items_of;
use crate::args::other_tools::js_literals::{
    JsValue, declared_once, end_of_statement, is_of_name, length_of_quoted, parts, parts_between,
    value_with_constants,
};

/// Loops of more rounds stay loops.
const MOST_ROUNDS: u32 = 20;

/// Longer scripts stay as they are.
const LONGEST: usize = 1 << 20;

/// A script in which `const A = 1, B = 2;` is a declaration of each.
pub(super) fn with_single_declarations(code: &str) -> String {
    let mut found = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else {
            length_of_quoted(rest).unwrap_or(first.len_utf8())
        };
        let (word, behind) = rest.split_at(length);
        let is_keyword = ["const", "let", "var"].contains(&word);
        let is_head = found.trim_end().ends_with('(');
        found.push_str(word);
        rest = behind;
        if !is_keyword || is_head {
            continue;
        }
        let mut end = end_of_statement(rest);
        while rest[..end].trim_end().ends_with(',') && end < rest.len() {
            end += 1 + end_of_statement(&rest[end + 1..]);
        }
        let declared = parts_between(&rest[..end], ',').filter(|all| all.len() > 1);
        if let Some(declared) = declared {
            let between = format!("; {word} ");
            rest = &rest[end..];
            found.extend([" ", &*declared.join(&between)]);
        }
    }
    found
}

/// A script in which loops with requests or pauses in them are written out, where it is plain how
/// often they run.
pub(super) fn with_loops_written_out(code: String) -> String {
    let mut code = with_lists_written_out(code);
    let mut from = 0;
    while let Some(begin) = code[from..].find("for").map(|at| from + at) {
        from = begin + "for".len();
        if code.len() > LONGEST {
            break;
        }
        if let Some(Loop { length, rounds }) = Loop::at(&code, begin) {
            code.replace_range(begin..begin + length, &rounds);
            // There may be loops in it.
            from = begin;
        }
    }
    code
}

/// A script in which a call of a function for each of a list stands as a loop: `PATHS.forEach((path)
/// => { … })` as `for (const path of PATHS) { … }`, and a list that is made of another one as that
/// list: `PATHS.map((path) => ['GET', path])` as `[['GET', '/a'], ['GET', '/b']]`.
fn with_lists_written_out(code: String) -> String {
    let mut code = code;
    let mut from = 0;
    while let Some(begin) = next_call_for_each(&code[from..]).map(|at| from + at) {
        from = begin + 1;
        if code.len() > LONGEST {
            break;
        }
        if let Some(CallForEach { place, instead }) = CallForEach::at(&code, begin) {
            from = place.start;
            code.replace_range(place, &instead);
        }
    }
    with_lists_of_batches(code)
}

/// A script in which a batch has the list that a variable of the script is.
fn with_lists_of_batches(code: String) -> String {
    const BATCH: &str = "http.batch(";
    let mut code = code;
    let mut from = 0;
    while let Some(begin) = code[from..].find(BATCH).map(|at| from + at + BATCH.len()) {
        from = begin;
        let name = code[begin..].split(')').next().unwrap_or_default().trim();
        let list = declared_once(&code, name)
            .map(|(_, value)| value[..end_of_statement(value)].trim().to_owned())
            .filter(|list| list.starts_with('[') && items_of(&code, name).is_some());
        if let Some(list) = list {
            let end = begin + code[begin..].find(')').unwrap_or_default();
            code.replace_range(begin..end, &list);
        }
        if let Some(list) = code[begin..].strip_prefix('[')
            && let Some((requests, behind)) = parts(list)
        {
            let end = code.len() - behind.len();
            let written = requests.into_iter().map(|it| request_of_constant(&code, it));
            let list = format!("[{}]", written.collect::<Vec<_>>().join(", "));
            code.replace_range(begin..end, &list);
        }
    }
    code
}

/// The object or list in whose place a name stands in a batch; anything else as it is written.
fn request_of_constant(code: &str, written: &str) -> String {
    let declared = declared_once(code, written)
        .map(|(_, value)| value[..end_of_statement(value)].trim())
        .filter(|value| value.starts_with(['{', '[']));
    let is_known = value_with_constants(code, written) != JsValue::Computed;
    declared.filter(|_| is_known).unwrap_or(written).to_owned()
}

fn next_call_for_each(code: &str) -> Option<usize> {
    [FOR_EACH, MAP].into_iter().filter_map(|call| code.find(call)).min()
}

const FOR_EACH: &str = ".forEach(";
const MAP: &str = ".map(";

/// A call of a function for each of a list.
struct CallForEach {
    place: Range<usize>,
    instead: String,
}

impl CallForEach {
    /// The one whose dot stands at that place; `None` if it is not plain.
    fn at(code: &str, dot: usize) -> Option<CallForEach> {
        let is_map = code[dot..].starts_with(MAP);
        let begin = code[..dot].rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1);
        let list = &code[begin..dot];
        let inside = &code[dot + if is_map { MAP } else { FOR_EACH }.len()..];
        let (arguments, behind) = parts(inside)?;
        let [function] = arguments[..] else { return None };
        let (name, done) = function_of_one(function)?;
        let sends = ["http.", "sleep("].iter().any(|call| done.contains(call));
        let items = items_of(code, list)?;
        let end = code.len() - behind.len();
        if !sends && is_map {
            let expression = Some(done).filter(|done| !done.starts_with('{'))?;
            let inside = expression
                .strip_prefix('(')
                .filter(|it| parts(it).is_some_and(|it| it.1.is_empty()));
            let expression = inside.and_then(|it| it.strip_suffix(')')).unwrap_or(expression);
            let made: Vec<String> =
                items.iter().map(|item| with_word(expression, name, item)).collect();
            let instead = format!("[{}]", made.join(", "));
            return Some(CallForEach { place: begin..end, instead });
        }
        // What becomes of the responses does not matter.
        let before = code[..begin].trim_end();
        let declared = before.strip_suffix('=').and_then(|before| {
            let before = before.trim_end().trim_end_matches(is_of_name).trim_end();
            let mut words = ["const", "let", "var"].into_iter();
            words.find_map(|word| before.strip_suffix(word))
        });
        let before = declared.filter(|_| is_map).unwrap_or(before).trim_end();
        let is_statement = before.is_empty() || before.ends_with([';', '{', '}']);
        let is_whole = behind.trim_start().is_empty()
            || behind.trim_start().starts_with([';', '}'])
            || behind.trim_start_matches([' ', '\t']).starts_with('\n')
                && !behind.trim_start().starts_with('.');
        if !sends || !is_statement || !is_whole {
            return None;
        }
        let done = done.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(done);
        let instead = format!(" for (const {name} of {list}) {{ {done} }}");
        Some(CallForEach { place: before.len()..end, instead })
    }
}

/// The parameter and what is done of `path => …`, `(path) => { … }` or `function (path) { … }`.
fn function_of_one(written: &str) -> Option<(&str, &str)> {
    let (parameter, done) = match written.strip_prefix("function") {
        Some(head) => {
            let (_, done) = parts(head.trim_start().strip_prefix('(')?)?;
            (&head[..head.len() - done.len()], done)
        }
        None => written.split_once("=>")?,
    };
    let parameter = parameter.trim();
    let inside = parameter.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let name = inside.unwrap_or(parameter).trim();
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    // What it returns is not looked at.
    let done = done.trim();
    let returned = done
        .strip_prefix('{')
        .and_then(|it| it.trim_start().strip_prefix("return "))
        .and_then(|it| it.trim_end().strip_suffix('}'))
        .map(|it| it.trim().trim_end_matches(';'))
        .filter(|it| !it.contains(';'));
    is_name.then_some((name, returned.unwrap_or(done)))
}

/// A loop of a script.
struct Loop {
    length: usize,
    /// What its rounds do, one after the other.
    rounds: String,
}

impl Loop {
    /// The one that begins at that place; `None` if it is no loop, or not plain.
    fn at(code: &str, begin: usize) -> Option<Loop> {
        let before = code[..begin].trim_end();
        // Behind `if (…)` or `else` without braces it would be taken apart.
        if !before.is_empty() && !before.ends_with([';', '{', '}']) {
            return None;
        }
        let head = code[begin..].strip_prefix("for")?.trim_start().strip_prefix('(')?;
        let (_, behind) = parts(head)?;
        let head = &head[..head.len() - behind.len() - 1];
        let done = behind.trim_start();
        let length = match done.strip_prefix('{') {
            Some(inside) => done.len() - parts(inside)?.1.len(),
            None => (end_of_statement(done) + 1).min(done.len()),
        };
        let (done, rest) = done.split_at(length);
        let done = done.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(done);
        let leaves = ["break", "continue", "return", "throw", "fail"];
        if !["http.", "sleep("].iter().any(|call| done.contains(call))
            || leaves.iter().any(|word| has_word(done, word))
        {
            return None;
        }
        let Rounds { name, values, elements } = Rounds::of(code, head)?;
        if is_assigned(done, name) {
            return None;
        }
        let declared = names_declared(done);
        let whole = done;
        let mut rounds = String::new();
        for (at, value) in values.iter().enumerate() {
            let element = elements.as_ref().and_then(|it| Some((&it.written, it.items.get(at)?)));
            let done = element.map(|(written, item)| done.replace(written, item));
            let mut round = with_word(done.as_deref().unwrap_or(whole), name, value);
            for name in &declared {
                round = with_word(&round, name, &format!("{name}_{at}"));
            }
            rounds.extend([round.trim(), ";\n"]);
        }
        Some(Loop { length: code.len() - begin - rest.len(), rounds })
    }
}

/// What the variable of a loop is in its rounds.
struct Rounds<'c> {
    name: &'c str,
    values: Vec<String>,
    /// Where it is an index: the elements of the list that it is of.
    elements: Option<Elements>,
}

/// The elements of a list, `written` as `PATHS[i]` in a loop.
struct Elements {
    written: String,
    items: Vec<String>,
}

impl<'c> Rounds<'c> {
    /// Those of `let i = 0; i < 3; i++` or `const path of PATHS`.
    fn of(code: &str, head: &'c str) -> Option<Rounds<'c>> {
        let keyword = ["const ", "let ", "var "];
        let head = keyword.into_iter().find_map(|word| head.trim_start().strip_prefix(word))?;
        if let Some((name, list)) = head.split_once(" of ") {
            let (name, list) = (name.trim(), list.trim());
            let items = match list.strip_prefix('[') {
                Some(items) => parts(items).filter(|(_, behind)| behind.is_empty())?.0,
                None => items_of(code, list)?,
            };
            let is_plain = name.chars().all(is_of_name) && items.len() <= MOST_ROUNDS as usize;
            let is_spread = items.iter().any(|item| item.starts_with("..."));
            let values = items.into_iter().map(str::to_owned).collect();
            return (is_plain && !is_spread).then_some(Rounds { name, values, elements: None });
        }
        let bare: String = head.chars().filter(|c| !c.is_whitespace()).collect();
        let mut pieces = bare.split(';');
        let (start, condition, step) = (pieces.next()?, pieces.next()?, pieces.next()?);
        let name = head.split('=').next()?.trim();
        let number = |written: &str| value_with_constants(code, written).count_or_none();
        let first = number(start.strip_prefix(name)?.strip_prefix('=')?)?;
        let bound = condition.strip_prefix(name)?.strip_prefix('<')?;
        let list = bound.strip_suffix(".length");
        let items = list.and_then(|list| items_of(code, list)).filter(|_| first == 0);
        let length = items.as_ref().map(|items| items.len().to_string());
        let elements = list.zip(items).map(|(list, items)| Elements {
            written: format!("{list}[{name}]"),
            items: items.into_iter().map(str::to_owned).collect(),
        });
        let bound = length.as_deref().unwrap_or(bound);
        let end = match bound.strip_prefix('=') {
            Some(last) => number(last)?.checked_add(1)?,
            None => number(bound)?,
        };
        let steps = [format!("{name}++"), format!("++{name}"), format!("{name}+=1")];
        let is_plain = steps.iter().any(|it| it == step) && pieces.next().is_none();
        let count = end.checked_sub(first).filter(|count| (1..=MOST_ROUNDS).contains(count));
        (is_plain && count.is_some()).then(|| {
            let values = (first..end).map(|value| value.to_string()).collect();
            Rounds { name, values, elements }
        })
    }
}

/// A text in which another one stands in the place of a name, but for quoted texts and the names of
/// fields.
fn with_word(code: &str, name: &str, value: &str) -> String {
    let mut found = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let quoted = length_of_quoted(rest);
        let length = match quoted {
            Some(length) => length,
            None if is_of_name(first) => rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()),
            None => first.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        let is_field = found.ends_with('.')
            || behind.trim_start().starts_with(':') && found.trim_end().ends_with(['{', ',']);
        match quoted {
            Some(_) if first == '`' => {
                let mut pieces = part.split("${");
                found.push_str(pieces.next().unwrap_or_default());
                for piece in pieces {
                    let (inside, behind) = piece.split_once('}').unwrap_or((piece, ""));
                    found.extend(["${", &*with_word(inside, name, value), "}", behind]);
                }
            }
            None if part == name && !is_field => found.push_str(value),
            _ => found.push_str(part),
        }
    }
    found
}

fn has_word(code: &str, word: &str) -> bool {
    with_word(code, word, "") != code
}

/// Whether something in a text gives a variable of that name another value.
fn is_assigned(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, behind) = (code[..at].trim_end(), code[at + name.len()..].trim_start());
        let is_set = behind.starts_with('=') && !behind.starts_with("==");
        let changes = ["+=", "-=", "*=", "/=", "++", "--"];
        is_set
            || changes.iter().any(|change| behind.starts_with(change))
            || ["++", "--"].iter().any(|change| before.ends_with(change))
    })
}

/// The variables that a text declares.
fn names_declared(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for word in ["const ", "let ", "var "] {
        for (at, _) in code.match_indices(word) {
            let behind = code[at + word.len()..].trim_start();
            let name = &behind[..behind.find(|c| !is_of_name(c)).unwrap_or(behind.len())];
            let is_whole = !code[..at].ends_with(is_of_name) && !name.is_empty();
            if is_whole && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_a_known_number_of_rounds_are_written_out() {
        for (code, expected) in [
            (
                "for (let i = 0; i < 2; i++) http.get('/x' + i);",
                "http.get('/x' + 0);; http.get('/x' + 1);;",
            ),
            (
                "const N = 2; for (let i = 1; i <= N; ++i) { const u = `/i/${i}`; http.get(u, { i: i }); }",
                "const N = 2; const u_0 = `/i/${1}`; http.get(u_0, { i: 1 });; const u_1 = `/i/${2}`; http.get(u_1, { i: 2 });;",
            ),
            (
                "const P = ['/a', '/b'];\nfor (const p of P) { http.get(B + p); }",
                "const P = ['/a', '/b']; http.get(B + '/a');; http.get(B + '/b');;",
            ),
            (
                "const P = ['/a', '/b']; for (let i = 0; i < P.length; i++) { http.get(B + P[i]); }",
                "const P = ['/a', '/b']; http.get(B + '/a');; http.get(B + '/b');;",
            ),
            (
                "const P = ['/a', '/b']; P.forEach((p) => { http.get(B + p); });",
                "const P = ['/a', '/b']; http.get(B + '/a');; http.get(B + '/b');; ;",
            ),
            (
                "const P = ['/a', '/b']; const r = P.map(p => http.get(p));",
                "const P = ['/a', '/b']; http.get('/a'); http.get('/b'); ;",
            ),
            (
                "const P = ['/a', '/b']; http.batch(P.map((p) => ['GET', B + p]));",
                "const P = ['/a', '/b']; http.batch([['GET', B + '/a'], ['GET', B + '/b']]);",
            ),
            (
                "const P = ['/a', '/b']; const r = P.map((p) => ({ url: p })); http.batch(r);",
                "const P = ['/a', '/b']; const r = [{ url: '/a' }, { url: '/b' }]; http.batch([{ url: '/a' }, { url: '/b' }]);",
            ),
            (
                "const R = { method: 'GET', url: '/a' }; http.batch([R, '/b', S]);",
                "const R = { method: 'GET', url: '/a' }; http.batch([{ method: 'GET', url: '/a' }, '/b', S]);",
            ),
            (
                "for (const p of ['/a']) { for (let i = 0; i < 1; i++) { http.get(p + i) } }",
                "http.get('/a' + 0); ;",
            ),
        ] {
            let found = with_loops_written_out(code.to_owned());
            let words: Vec<&str> = found.split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{code}");
        }
        for code in [
            "for (let i = 0; i < N; i++) { http.get('/x'); }",
            "for (let i = 0; i < 3; i++) { if (x) break; http.get('/x'); }",
            "for (let i = 0; i < 3; i++) { http.get('/x'); i++; }",
            "for (let i = 0; i < 500; i++) { http.get('/x'); }",
            "for (let i = 0; i < 3; i += 2) { http.get('/x'); }",
            "for (let i = 0; i < 3; i++) { list.push(i); }",
            "if (x) for (let i = 0; i < 3; i++) http.get('/x');",
            "for (const p of [...all]) { http.get(p); }",
            "all.forEach(p => http.get(p));",
            "const P = ['/a', '/b']; P.forEach((p, i) => http.get(p + i));",
            "const P = ['/a', '/b']; if (x) P.forEach((p) => http.get(p));",
            "const P = ['/a', '/b']; for (let i = 1; i < P.length; i++) http.get(P[i]);",
            "for (const p of all) { http.get(p); }",
        ] {
            assert_eq!(with_loops_written_out(code.to_owned()), code);
        }
    }

    #[test]
    fn each_declaration_stands_alone() {
        for (code, expected) in [
            ("const A = 1, B = 'x,y';\nf();", "const A = 1; const B = 'x,y';\nf();"),
            ("let a = f(1, 2),\n  b = [3, 4]\ng();", "let a = f(1, 2); let b = [3, 4]\ng();"),
            ("const { a, b } = c;", "const { a, b } = c;"),
            ("for (let i = 0, n = 3; i < n; i++) {}", "for (let i = 0, n = 3; i < n; i++) {}"),
        ] {
            assert_eq!(with_single_declarations(code), expected, "{code}");
        }
    }
}
