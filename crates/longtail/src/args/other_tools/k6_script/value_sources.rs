//! Where a script of k6 takes from what it computes: a response that it got, or a file that it opens.

use crate::args::other_tools::js_literals::{
    body_of_function, declared_once, end_of_statement, is_of_name,
};

/// What reads a response.
const OF_RESPONSE: [&str; 5] = [".json(", ".body", ".html(", ".cookies", ".headers["];

/// So many variables may stand between what is sent and where it comes from.
const MOST_STEPS: u32 = 5;

/// Whether what is written there is made of a response of the script, perhaps of its `setup()`.
pub(super) fn is_of_response(code: &str, written: &str) -> bool {
    let reads = |text: &str| OF_RESPONSE.iter().any(|part| text.contains(part));
    let setup_reads = body_of_function(code, "setup").is_some_and(reads);
    let of_setup = |text: &str| setup_reads && names_in(text).any(|name| is_given(code, name));
    is_made_of(code, written, &|text| reads(text) || of_setup(text), MOST_STEPS)
}

/// Whether what is written there is made of a file that `open()` reads.
pub(crate) fn is_of_file(code: &str, written: &str, file: &str) -> bool {
    let opened = ['\'', '"', '`'].map(|quote| format!("open({quote}{file}{quote}"));
    let opens = |text: &str| opened.iter().any(|call| text.contains(call));
    is_made_of(code, written, &opens, MOST_STEPS)
}

/// The files that a script opens, by the names that stand there.
pub(crate) fn files_opened(code: &str) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for behind in code.split("open(").skip(1) {
        let Some(quote) = behind.chars().next().filter(|first| "'\"`".contains(*first)) else {
            continue;
        };
        let name = behind[1..].split(quote).next().unwrap_or_default();
        if !name.is_empty() && !files.contains(&name) {
            files.push(name);
        }
    }
    files
}

/// Whether a text has what `is_source` says, or a variable that is made of it in so many steps.
fn is_made_of(code: &str, text: &str, is_source: &dyn Fn(&str) -> bool, steps: u32) -> bool {
    let by_variable = |name: &str| {
        let declared = declared_once(code, name);
        declared.is_some_and(|(_, value)| {
            is_made_of(code, &value[..end_of_statement(value)], is_source, steps - 1)
        })
    };
    is_source(text) || steps > 0 && names_in(text).any(by_variable)
}

/// The names in a text that are no fields of others.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !is_of_name(c) && c != '.');
    words.filter_map(|word| word.split('.').next()).filter(|name| !name.is_empty())
}

/// Whether the default function is given something by that name: what `setup()` returns.
fn is_given(code: &str, name: &str) -> bool {
    let behind = code.split("export default").nth(1).unwrap_or_default();
    let given = behind.split(')').next().unwrap_or_default();
    given.split(|c: char| !is_of_name(c)).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_followed_to_the_response_or_the_file_it_is_made_of() {
        for (code, written, expected) in [
            ("const tok = r.json('token');", "{ headers: { A: `Bearer ${tok}` } }", true),
            ("const p = { headers: { A: t } }; const t = r.body;", "p", true),
            ("const tok = __ENV.TOKEN;", "{ headers: { A: tok } }", false),
            (
                "export function setup() { return { t: r.json('t') }; }\nexport default function (d) { f(d.t); }",
                "'Bearer ' + d.t",
                true,
            ),
            ("export default function (d) { f(d.t); }", "'Bearer ' + d.t", false),
        ] {
            assert_eq!(is_of_response(code, written), expected, "{code}");
        }
        let code = "const users = JSON.parse(open('./users.json'));\nconst u = users[0];";
        assert_eq!(files_opened(code), ["./users.json"]);
        assert!(is_of_file(code, "url + u.id", "./users.json"));
        assert!(!is_of_file(code, "url + id.u", "./users.json"));
    }
}
