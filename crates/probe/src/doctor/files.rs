//! The kernel's files as texts, so that a test can put others in their place.

use std::collections::BTreeMap;
use std::fs;

/// Where texts come from.
#[derive(Clone, Debug)]
pub(super) enum Files {
    /// This machine.
    Here,
    /// What a test says; all else does not exist.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests put other files in their place"))]
    Given(BTreeMap<String, String>),
}

impl Files {
    /// The text at a path; `None` where it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self {
            Files::Here => fs::read_to_string(path).ok(),
            Files::Given(texts) => texts.get(path).cloned(),
        }
    }

    /// Whether there is something at a path, readable as text or not.
    pub(super) fn exists(&self, path: &str) -> bool {
        match self {
            Files::Here => fs::exists(path).is_ok_and(|exists| exists),
            Files::Given(texts) => texts.contains_key(path),
        }
    }

    /// The one number of a file.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The one line of a file.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        self.text(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// What follows `name` and a colon on the first line that begins so.
    pub(super) fn field(&self, path: &str, name: &str) -> Option<String> {
        field(&self.text(path)?, name).map(str::to_owned)
    }
}

/// What follows `name` and a colon on the first line of a text that begins so.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, rest)| rest.trim())
}

#[cfg(test)]
pub(super) fn given(texts: &[(&str, &str)]) -> Files {
    Files::Given(texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}
