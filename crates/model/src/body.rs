//! The bodies of answers: what `-b acsi1,10` asks for, a kind and a size each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A kind of Rack body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// `a`: an array of strings of 1 kB.
    Array,
    /// `c`: an enumerator of strings of 1 kB, without a Content-Length, so that the server sends it in chunks.
    Chunked,
    /// `s`: one string.
    String,
    /// `i`: an open file.
    Io,
}

impl BodyKind {
    /// All of them, in the order of Puma's tables.
    pub const ALL: [BodyKind; 4] = [BodyKind::Array, BodyKind::Chunked, BodyKind::String, BodyKind::Io];

    /// The letter that asks for it.
    pub fn letter(self) -> char {
        match self {
            BodyKind::Array => 'a',
            BodyKind::Chunked => 'c',
            BodyKind::String => 's',
            BodyKind::Io => 'i',
        }
    }

    /// Its name in Puma's tables.
    pub fn name(self) -> &'static str {
        match self {
            BodyKind::Array => "array",
            BodyKind::Chunked => "chunk",
            BodyKind::String => "string",
            BodyKind::Io => "io",
        }
    }

    fn of(letter: char) -> Option<BodyKind> {
        BodyKind::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

/// One body: `s10` is a string of 10 kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Body {
    /// Its size; 1 kB is 1024 bytes, as in Puma's scripts.
    pub kilobytes: u32,
    /// Its kind.
    pub kind: BodyKind,
}

impl Body {
    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.kilobytes) * 1024
    }
}

impl fmt::Display for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.kind.letter(), self.kilobytes)
    }
}

/// The largest size, in kB: the app keeps a string of each size, and the generator's own limit is measured with it.
pub const LARGEST: u32 = 100 * 1024;

/// Sizes where none are given, in kB.
pub(crate) const SIZES: [u32; 7] = [1, 10, 100, 256, 512, 1024, 2048];

/// Kinds x sizes, as `-b` has them: none of either is all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bodies {
    /// In the order in which they were asked for, each once.
    pub kinds: Vec<BodyKind>,
    /// Sizes, in the order in which they were asked for, each once.
    pub kilobytes: Vec<u32>,
}

impl Bodies {
    /// Every kind of every size, sizes first.
    pub fn all(&self) -> Vec<Body> {
        let of_size = |kilobytes: &u32| {
            let kilobytes = *kilobytes;
            self.kinds.iter().map(move |kind| Body { kilobytes, kind: *kind })
        };
        self.kilobytes.iter().flat_map(of_size).collect()
    }
}

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies { kinds: BodyKind::ALL.to_vec(), kilobytes: SIZES.to_vec() }
    }
}

impl fmt::Display for Bodies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.kilobytes.iter().map(u32::to_string).collect();
        write!(out, "{}{}", self.kinds.iter().map(|kind| kind.letter()).collect::<String>(), sizes.join(","))
    }
}

/// Why a text names no bodies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadBodies {
    /// It has a letter that is no kind.
    #[error(
        "'{text}' has '{letter}', which is no kind of body: a is an array, c chunks, s a string, i a file, such as acsi1,10"
    )]
    NoKind {
        /// As given.
        text: String,
        /// The letter.
        letter: char,
    },
    /// It has a size that cannot be.
    #[error("'{text}' has the size '{size}': sizes are whole kB from 1 to {LARGEST}, such as acsi1,10")]
    NoSize {
        /// As given.
        text: String,
        /// The size.
        size: String,
    },
    /// It names something twice.
    #[error("'{text}' has '{what}' twice: name each kind and size once (--repeat N does all of them again)")]
    Twice {
        /// As given.
        text: String,
        /// What.
        what: String,
    },
    /// It names nothing.
    #[error("there is nothing in it: name kinds and sizes in kB, such as acsi1,10")]
    Nothing,
    /// It is to be one body and is not.
    #[error("'{0}' is not one body: write one kind and one size in kB, such as s10")]
    NotOne(String),
}

impl FromStr for Bodies {
    type Err = BadBodies;

    fn from_str(text: &str) -> Result<Bodies, BadBodies> {
        if text.is_empty() {
            return Err(BadBodies::Nothing);
        }
        let letters = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
        let (letters, sizes) = text.split_at(letters);
        let twice = |what: String| BadBodies::Twice { text: text.to_owned(), what };
        let mut kinds = Vec::new();
        for letter in letters.chars() {
            let no_kind = || BadBodies::NoKind { text: text.to_owned(), letter };
            let kind = BodyKind::of(letter).ok_or_else(no_kind)?;
            if kinds.contains(&kind) {
                return Err(twice(letter.to_string()));
            }
            kinds.push(kind);
        }
        let mut kilobytes = Vec::new();
        for size in sizes.split(',').filter(|_| !sizes.is_empty()) {
            let no_size = || BadBodies::NoSize { text: text.to_owned(), size: size.to_owned() };
            let is_plain = size.bytes().all(|byte| byte.is_ascii_digit());
            let number = size.parse().ok().filter(|n| is_plain && (1..=LARGEST).contains(n)).ok_or_else(no_size)?;
            if kilobytes.contains(&number) {
                return Err(twice(size.to_owned()));
            }
            kilobytes.push(number);
        }
        let all = Bodies::default();
        Ok(Bodies {
            kinds: if kinds.is_empty() { all.kinds } else { kinds },
            kilobytes: if kilobytes.is_empty() { all.kilobytes } else { kilobytes },
        })
    }
}

impl FromStr for Body {
    type Err = BadBodies;

    fn from_str(text: &str) -> Result<Body, BadBodies> {
        match text.parse::<Bodies>()?.all()[..] {
            [body] => Ok(body),
            _ => Err(BadBodies::NotOne(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        text.parse::<Bodies>().unwrap().all().iter().map(Body::to_string).collect()
    }

    #[test]
    fn two_kinds_of_two_sizes_are_four_bodies() {
        assert_eq!(all("ac50,100"), ["a50", "c50", "a100", "c100"]);
        assert_eq!(all("i2"), ["i2"]);
    }

    #[test]
    fn what_is_left_out_is_all_of_it() {
        assert_eq!(all("10"), ["a10", "c10", "s10", "i10"]);
        assert_eq!(all("s").len(), 7);
        assert_eq!(Bodies::default().all().len(), 28);
        assert_eq!(Bodies::default().to_string(), "acsi1,10,100,256,512,1024,2048");
    }

    #[test]
    fn what_is_printed_is_read_as_itself() {
        for text in ["acsi1,10,100,256,512,1024,2048", "is2048,1", "c102400"] {
            assert_eq!(text.parse::<Bodies>().unwrap().to_string(), text);
        }
        let body: Body = "s10".parse().unwrap();
        assert_eq!((body.bytes(), body.to_string()), (10_240, "s10".to_owned()));
    }

    #[test]
    fn every_mistake_is_named_in_a_line() {
        for (text, part) in [
            ("ax1", "'x'"),
            ("S10", "'S'"),
            ("aa1", "'a' twice"),
            ("a1,1", "'1' twice"),
            ("a0", "'0'"),
            ("a1,", "''"),
            ("a1,,2", "''"),
            ("a-1", "'-1'"),
            ("a+1", "'+1'"),
            ("a1.5", "'1.5'"),
            ("a1k", "'1k'"),
            ("a102401", "102400"),
            ("10s", "'10s'"),
            ("a 1", "' 1'"),
            ("", "nothing"),
        ] {
            let line = text.parse::<Bodies>().unwrap_err().to_string();
            assert!(line.contains(part) && line.contains('1') && !line.contains('\n'), "{text}: {line}");
        }
        for text in ["s", "10", "as10", "s10,20"] {
            assert!(text.parse::<Body>().unwrap_err().to_string().contains("s10"), "{text}");
        }
    }
}
