//! What a script of k6 takes from files beside it, written out in its place: JSON that it opens, and
//! constants that it imports.

use std::path::Path;

use crate::args::other_tools::js_literals::{is_of_name, parts};
use crate::args::other_tools::script_file::text_of;

/// What makes a value of a file of JSON, up to the file's name.
const OPENED: &str = "JSON.parse(open(";

/// The script in which the values of files in `folder` stand in the place of what opens or imports
/// them. What cannot be read stays as it is.
pub(crate) fn with_files_beside(script: &str, folder: &Path) -> String {
    with_lists_that_are_shared(&with_json(&with_imports(script, folder), folder))
}

/// What stands in the place of a part of a script, and what is behind that part.
struct TextInPlace<'s> {
    text: String,
    behind: &'s str,
}

/// Texts behind a mark, each with `replaced` of it in its place; where that is `None`, it stays.
fn with_each<'s>(
    script: &'s str,
    mark: &str,
    replaced: impl Fn(&'s str) -> Option<TextInPlace<'s>>,
) -> String {
    let mut whole = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(at) = rest.find(mark) {
        let behind = &rest[at + mark.len()..];
        whole.push_str(&rest[..at]);
        if let Some(TextInPlace { text, behind }) = replaced(behind) {
            whole.push_str(&text);
            rest = behind;
        } else {
            whole.push_str(mark);
            rest = behind;
        }
    }
    whole + rest
}

/// `JSON.parse(open('./config.json'))`, perhaps with a field of it: `.users`.
fn with_json(script: &str, folder: &Path) -> String {
    with_each(script, OPENED, |behind| {
        let (name, behind) = in_quotes(behind)?;
        let behind = behind.trim_start().strip_prefix(')')?.trim_start().strip_prefix(')')?;
        let text = text_of(&folder.join(name))?;
        let value = serde_json::from_str::<serde_json::Value>(&text).ok()?;
        let of_field = behind.strip_prefix('.').and_then(|behind| {
            let (field, behind) = behind.split_at(behind.find(|c| !is_of_name(c))?);
            let value = value.get(field).filter(|_| !behind.starts_with('('))?;
            Some(TextInPlace { text: value.to_string(), behind })
        });
        Some(of_field.unwrap_or(TextInPlace { text: text.trim().to_owned(), behind }))
    })
}

/// `new SharedArray('users', () => […])`, or with a function that does nothing but return the list.
fn with_lists_that_are_shared(script: &str) -> String {
    with_each(script, "new SharedArray(", |behind| {
        let (arguments, behind) = parts(behind)?;
        let [_, made] = arguments[..] else { return None };
        let bare: String = made.chars().take_while(|letter| *letter != '[').collect();
        let bare: String = bare.split_whitespace().collect();
        let is_plain = ["()=>", "()=>{return", "function(){return"].contains(&bare.as_str());
        let (_, end) = parts(made.split_once('[')?.1)?;
        let begin = made.find('[')?;
        let is_alone =
            end.chars().all(|letter| letter.is_whitespace() || [';', '}'].contains(&letter));
        let list = &made[begin..made.len() - end.len()];
        (is_plain && is_alone).then(|| TextInPlace { text: list.to_owned(), behind })
    })
}

/// `import { NAME } from './constants.js'`, or `export` in the place of `import`: the text of that
/// file, if it has nothing but constants and functions that send nothing.
fn with_imports(script: &str, folder: &Path) -> String {
    let imported = with_each(script, "import ", |behind| {
        let TextInPlace { text, behind } = constants_of_file(behind, folder)?;
        Some(TextInPlace { text: text.replace("export ", ""), behind })
    });
    with_each(&imported, "export ", |behind| constants_of_file(behind, folder))
}

/// The text of the file that `{ NAME } from './constants.js'` names.
fn constants_of_file<'s>(behind: &'s str, folder: &Path) -> Option<TextInPlace<'s>> {
    let names = behind.trim_start().strip_prefix('{')?;
    let (names, behind) = names.split_once('}')?;
    let from = behind.trim_start().strip_prefix("from")?;
    let (file, behind) = in_quotes(from.trim_start())?;
    let text = text_of(&folder.join(file))?;
    let is_plain = !names.contains(" as ")
        && (file.starts_with("./") || file.starts_with("../"))
        && !["export default", "http.", "import "].iter().any(|word| text.contains(word));
    is_plain.then(|| TextInPlace { text: text + "\n", behind })
}

/// A text in quotes that begins here, and what is behind it.
fn in_quotes(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| ['\'', '"', '`'].contains(first))?;
    let (inside, behind) = text[1..].split_once(quote)?;
    (!inside.contains(['$', '\\', '\n'])).then_some((inside, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_files_stand_in_the_script() {
        let folder = std::env::temp_dir().join(format!("files-beside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("config.json", "{ \"vus\": 3 }");
        write("users.json", "[1, 2]");
        write("own.js", "export const A = 'b';");
        write("sends.js", "import http from 'k6/http';\nexport function go() { http.get('/'); }");
        for (script, expected) in [
            ("const c = JSON.parse(open('./config.json'));", "const c = { \"vus\": 3 };"),
            (
                "const c = JSON.parse(open('gone.json'));",
                "const c = JSON.parse(open('gone.json'));",
            ),
            ("const c = JSON.parse(open('config.json')).vus;", "const c = 3;"),
            (
                "const c = JSON.parse(open('config.json')).map(f);",
                "const c = { \"vus\": 3 }.map(f);",
            ),
            (
                "const u = new SharedArray('u', () => JSON.parse(open('users.json')));",
                "const u = [1, 2];",
            ),
            (
                "const u = new SharedArray('u', function () { return JSON.parse(open(\"users.json\")); });",
                "const u = [1, 2];",
            ),
            (
                "const u = new SharedArray('u', () => JSON.parse(open('users.json')).slice(1));",
                "const u = new SharedArray('u', () => [1, 2].slice(1));",
            ),
            ("import { A } from './own.js';\nA;", "const A = 'b';\n;\nA;"),
            ("export { A } from './own.js';\nA;", "export const A = 'b';\n;\nA;"),
            ("import { go } from './sends.js';", "import { go } from './sends.js';"),
            ("import { check } from 'k6';", "import { check } from 'k6';"),
        ] {
            assert_eq!(with_files_beside(script, &folder), expected);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
