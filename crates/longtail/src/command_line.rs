//! Command lines that go into reports: as a shell takes them, and without secrets.

use model::plan::quoted;

/// This program's own, as it was typed, as far as it is text.
pub(crate) fn typed() -> String {
    without_secrets(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()))
}

/// These words after the program's name.
fn without_secrets(words: impl Iterator<Item = String>) -> String {
    let mut line = "longtail".to_owned();
    let mut hide_next = false;
    for word in words {
        let shown = if hide_next {
            SECRET.to_owned()
        } else if word.strip_prefix("-a").is_some_and(|rest| rest.contains(':')) {
            format!("-a{SECRET}")
        } else if word.starts_with("--auth=") {
            format!("--auth={SECRET}")
        } else {
            shown(&without_credentials(&word))
        };
        hide_next = word == "-a" || word == "--auth";
        line.push(' ');
        line.push_str(&shown);
    }
    line
}

const SECRET: &str = "'(secret)'";

/// A word as a shell takes it; of a header with credentials or cookies only that it is there.
pub(crate) fn shown(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let is_secret = lower.contains("authorization:") || lower.contains("cookie:");
    if is_secret { SECRET.to_owned() } else { quoted(word) }
}

/// A URL without `user:password@`.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        without_secrets(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn secrets_do_not_reach_reports() {
        for line in [
            "load -a me:hunter2 http://h/",
            "load --auth me:hunter2 http://h/",
            "load --auth=me:hunter2 http://h/",
            "load -ame:hunter2 http://h/",
            "load http://me:hunter2@h/x?y=z@w",
        ] {
            assert!(!said(line).contains("hunter2"), "{}", said(line));
        }
        let header = ["load", "-H", "Authorization: Bearer hunter2", "http://h/"].map(str::to_owned);
        assert!(!without_secrets(header.into_iter()).contains("hunter2"));
        assert_eq!(said("load -c 5 http://h/a?b=c@d"), "longtail load -c 5 'http://h/a?b=c@d'");
    }
}
