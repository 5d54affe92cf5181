//! Reads the words of another tool's command line: which are its flags, and which their values.

use crate::args::other_tools::flags::{OtherTool, OthersFlag, Spelling, Takes, URL, truth_of};
use crate::args::other_tools::synonyms;

/// A flag of another tool as it stands in a line of it.
#[derive(Clone, Debug)]
pub(crate) struct TypedFlag {
    pub(crate) flag: &'static OthersFlag,
    /// With its dashes.
    pub(super) name: String,
    /// The value for ours; empty if it takes none.
    pub(super) value: String,
    /// The value as it was typed.
    pub(crate) typed_value: String,
    /// Of a switch: `=false`.
    pub(super) is_off: bool,
}

/// A word of another tool's line, with the next one if that is its value.
#[derive(Clone, Debug)]
pub(crate) enum TypedWord {
    /// Its flags: several letters may stand behind one dash.
    Flags {
        flags: Vec<TypedFlag>,
        /// Whether the next word is the last one's value.
        takes_next: bool,
    },
    /// Something else: a URL.
    Operand,
}

/// Why a word of another tool's line is not understood.
pub(crate) enum Unread {
    /// No flag of that name is known; what to say of it.
    Flag(String),
    /// Its value is wrong or missing; what to say of it.
    Value(String),
}

/// What becomes of flags that the tool does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownFlags {
    /// The line is not the tool's.
    Refused,
    /// They are left out, and named.
    LeftOut,
}

impl OtherTool {
    /// Reads a word of its line; `next` is the word behind it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&'static self, word: &str, next: Option<&str>) -> Result<TypedWord, Unread> {
        if !word.starts_with('-') || word == "-" {
            return Ok(TypedWord::Operand);
        }
        let bare = word.trim_start_matches('-');
        let (name, glued) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        let is_long = match self.spelling {
            Spelling::Go => true,
            Spelling::Getopt => word.starts_with("--"),
        };
        if is_long {
            let (flag, takes_next) = self.flag(name, word, glued, next)?;
            return Ok(TypedWord::Flags { flags: vec![flag], takes_next });
        }
        self.read_letters(bare, next)
    }

    /// `-kc10`: letters, the last of which may take a value.
    fn read_letters(&'static self, letters: &str, next: Option<&str>) -> Result<TypedWord, Unread> {
        let mut flags = Vec::new();
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            let rest = &letters[at + letter.len_utf8()..];
            let takes_value =
                self.flags.iter().any(|flag| flag.is_called(&name) && flag.takes_value());
            let behind_equals = rest.strip_prefix('=');
            let glued = if takes_value && !rest.is_empty() {
                Some(behind_equals.unwrap_or(rest))
            } else {
                // `-a=false`, of a switch.
                behind_equals.filter(|value| truth_of(value).is_some())
            };
            let word = format!("-{name}");
            // Of `-xc10` all is left out if `-x` is not known.
            let (flag, takes_next) =
                self.flag(&name, &word, glued, next).map_err(|why| match why {
                    Unread::Flag(_) if flags.is_empty() && rest.is_empty() => why,
                    Unread::Flag(_) => Unread::Flag(format!(
                        "-{letters} is no flag of {} that is known here",
                        self.name
                    )),
                    Unread::Value(_) => why,
                })?;
            let is_last = flag.flag.takes_value() || glued.is_some();
            flags.push(flag);
            if is_last {
                return Ok(TypedWord::Flags { flags, takes_next });
            }
        }
        Ok(TypedWord::Flags { flags, takes_next: false })
    }

    /// The value of a number, a time or a rate in this word, empty if it stands behind it; `None` if
    /// the word is no flag of such a value.
    pub(crate) fn flag_of_number<'w>(&'static self, word: &'w str) -> Option<&'w str> {
        let bare = word.strip_prefix('-')?.trim_start_matches('-');
        let is_letter = self.spelling == Spelling::Getopt && !word.starts_with("--");
        let (name, glued) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if is_letter && bare.len() > 1 => {
                let (name, value) = bare.split_at_checked(1)?;
                (name, Some(value))
            }
            None => (bare, None),
        };
        let mut called = self.flags.iter().filter(|flag| flag.is_called(name)).peekable();
        called.peek()?;
        called.all(|flag| flag.takes.example().is_some()).then_some(glued.unwrap_or_default())
    }

    /// Its flag of that name whose value fits, and whether `next` is that value.
    pub(super) fn flag(
        &'static self,
        name: &str,
        word: &str,
        glued: Option<&str>,
        next: Option<&str>,
    ) -> Result<(TypedFlag, bool), Unread> {
        let mut called = self.flags.iter().filter(|flag| flag.is_called(name)).peekable();
        if called.peek().is_none() {
            let why = format!("{word} is no flag of {} that is known here", self.name);
            return Err(Unread::Flag(why));
        }
        let shown = word.split('=').next().unwrap_or(word).to_owned();
        for flag in called {
            let typed = TypedFlag {
                flag,
                name: shown.clone(),
                value: String::new(),
                typed_value: String::new(),
                is_off: false,
            };
            match flag.takes {
                Takes::No | Takes::Switch => {
                    let Some(value) = glued else {
                        let takes_next = flag.takes == Takes::Switch
                            && next.is_some_and(|next| ["true", "false"].contains(&next));
                        let is_off = takes_next && next == Some("false");
                        return Ok((TypedFlag { is_off, ..typed }, takes_next));
                    };
                    if let Some(is_on) = truth_of(value) {
                        return Ok((TypedFlag { is_off: !is_on, ..typed }, false));
                    }
                }
                _ => {
                    let given = glued.or(next).unwrap_or_default();
                    if let Some(value) = flag.takes.ours(given) {
                        let typed_value = given.to_owned();
                        return Ok((TypedFlag { value, typed_value, ..typed }, glued.is_none()));
                    }
                }
            }
        }
        let tool = self.name;
        let kind = self.flags.iter().rfind(|flag| flag.is_called(name)).map(|flag| flag.takes);
        Err(Unread::Value(match glued.or(next) {
            Some(value) if may_be_value(value) => match kind.and_then(Takes::example) {
                Some(example) if is_url(value) => {
                    format!("{tool}'s {shown} needs a value, such as {example}, before {value}")
                }
                _ => format!("'{value}' is no value of {tool}'s {shown}"),
            },
            _ => format!("{tool}'s {shown} needs a value"),
        }))
    }
}

/// Whether that is a URL, or stands for one.
pub(super) fn is_url(word: &str) -> bool {
    synonyms::is_url(word) || word == URL
}

/// Whether that is a value and not the next flag.
pub(super) fn may_be_value(word: &str) -> bool {
    !word.starts_with('-')
}
