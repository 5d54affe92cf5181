//! A fault of a command line: what is wrong, and the change that mends it.

/// What is wrong with a command line, and what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentFault {
    /// What is wrong: `load has no --duration`.
    pub(crate) refusal: String,
    /// What to type, where the rest of the line is not understood either.
    pub(crate) advice: String,
    /// The change that mends it, where there is one.
    pub(crate) edit: Option<Edit>,
    /// Why that may be left out, where the edit leaves something out.
    pub(crate) why: Option<&'static str>,
    /// What else may have been meant.
    pub(crate) otherwise: Option<String>,
    /// Whether the word may be another tool's flag.
    pub(crate) may_be_others: bool,
}

/// A change of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The word where it begins.
    pub(crate) at: usize,
    /// How many words are taken away.
    pub(crate) removed: usize,
    pub(crate) inserted: Vec<String>,
}

impl ArgumentFault {
    pub(crate) fn of(refusal: String, advice: String) -> ArgumentFault {
        ArgumentFault {
            refusal,
            advice,
            edit: None,
            why: None,
            otherwise: None,
            may_be_others: true,
        }
    }

    /// A fault whose word cannot be a flag of another tool.
    pub(crate) fn of_ours(refusal: String, advice: String) -> ArgumentFault {
        ArgumentFault { may_be_others: false, ..ArgumentFault::of(refusal, advice) }
    }

    pub(crate) fn mended_by(self, edit: Edit) -> ArgumentFault {
        ArgumentFault { edit: Some(edit), ..self }
    }
}

impl Edit {
    /// The words with this change.
    pub(crate) fn apply(&self, words: &[String]) -> Vec<String> {
        let end = (self.at + self.removed).min(words.len());
        [&words[..self.at], &self.inserted, &words[end..]].concat()
    }
}

/// A flag as it was typed.
pub(crate) struct Typed<'w> {
    pub(crate) at: usize,
    /// Its value, in its own word or the next one.
    pub(crate) value: Option<&'w str>,
    /// The same, even if it looks like a flag or a URL.
    pub(crate) word: Option<&'w str>,
    /// Whether the value is in its own word: `--flag=value`.
    pub(crate) is_glued: bool,
}

impl<'w> Typed<'w> {
    /// Finds it; `flag` has its dashes. A short one may be the first of several letters in a word.
    pub(crate) fn find(words: &'w [String], flag: &str) -> Option<Typed<'w>> {
        let glued = format!("{flag}=");
        let is_it = |word: &String| word == flag || word.starts_with(&glued);
        let letters = || words.iter().position(|word| flag.len() == 2 && word.starts_with(flag));
        let at = words.iter().position(is_it).or_else(letters)?;
        let word = &words[at];
        let own = word.strip_prefix(&glued).or_else(|| word.strip_prefix(flag));
        let own = own.filter(|value| !value.is_empty() || word.ends_with('='));
        let next = words.get(at + 1).map(String::as_str);
        Some(Typed {
            at,
            value: own.or(next.filter(|next| is_value(next))),
            word: own.or(next),
            is_glued: own.is_some(),
        })
    }

    /// Puts these words in its place, and in that of its value.
    pub(crate) fn replaced(&self, takes_value: bool, inserted: Vec<String>) -> Edit {
        let removed = if takes_value && !self.is_glued && self.word.is_some() { 2 } else { 1 };
        Edit { at: self.at, removed, inserted }
    }
}

pub(crate) fn is_value(word: &str) -> bool {
    !word.starts_with('-') && !word.contains("://")
}
