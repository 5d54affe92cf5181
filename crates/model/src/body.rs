//! Response bodies that `-b acsi1,10` asks for: a kind and a size each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

/// A kind of Rack body.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    EnumMessage,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// An array of strings of 1 kB.
    #[strum(serialize = "a", message = "array")]
    Array,
    /// An enumerator of strings of 1 kB, without a Content-Length, so that the server sends it in
    /// chunks.
    #[strum(serialize = "c", message = "chunk")]
    Chunked,
    /// One string.
    #[strum(serialize = "s", message = "string")]
    String,
    /// An open file.
    #[strum(serialize = "i", message = "io")]
    Io,
}

impl BodyKind {
    /// All kinds, in the order of Puma's tables.
    pub const ALL: &[BodyKind] = BodyKind::VARIANTS;

    /// The letter that selects it.
    pub fn letter(self) -> &'static str {
        self.into()
    }

    /// Its name in Puma's tables.
    pub fn name(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }

    fn of(letter: &str) -> Option<BodyKind> {
        BodyKind::ALL.iter().copied().find(|kind| kind.letter() == letter)
    }
}

/// One body: `s10` is a string of 10 kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The largest size, in kB: the app keeps a string of each size, and the generator's own limit is
/// measured with it.
pub const LARGEST_BODY: u32 = 100 * 1024;

/// The default sizes, in kB.
pub(crate) const SIZES: [u32; 7] = [1, 10, 100, 256, 512, 1024, 2048];

/// Kinds x sizes, as in `-b`. No kind means all kinds, no size all default sizes.
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
        write!(
            out,
            "{}{}",
            self.kinds.iter().map(|kind| kind.letter()).collect::<String>(),
            sizes.join(",")
        )
    }
}

impl FromStr for Bodies {
    type Err = String;

    fn from_str(text: &str) -> Result<Bodies, String> {
        if text.is_empty() {
            return Err("it is empty: name kinds and sizes in kB, such as acsi1,10".to_owned());
        }
        let letters = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
        let (letters, sizes) = text.split_at(letters);
        let kind = |letter: &str| {
            let kinds = "a is an array, c chunks, s a string, i a file, such as acsi1,10";
            BodyKind::of(letter).ok_or_else(|| {
                format!("'{text}' has '{letter}', which is not a kind of body: {kinds}")
            })
        };
        let size = |size: &str| {
            let is_plain = size.bytes().all(|byte| byte.is_ascii_digit());
            let number = size.parse().ok().filter(|n| is_plain && (1..=LARGEST_BODY).contains(n));
            let invalid = || {
                format!(
                    "'{text}' has the size '{size}': sizes are whole kB from 1 to {LARGEST_BODY}, \
                     such as acsi1,10"
                )
            };
            number.ok_or_else(invalid)
        };
        let kinds = each_once(
            text,
            letters.char_indices().map(|(at, c)| &letters[at..at + c.len_utf8()]),
            kind,
        )?;
        let kilobytes = each_once(text, sizes.split(',').filter(|_| !sizes.is_empty()), size)?;
        let all = Bodies::default();
        Ok(Bodies {
            kinds: if kinds.is_empty() { all.kinds } else { kinds },
            kilobytes: if kilobytes.is_empty() { all.kilobytes } else { kilobytes },
        })
    }
}

/// The values that these words name, in order; an error if one is named twice.
fn each_once<'a, T: PartialEq>(
    text: &str,
    words: impl Iterator<Item = &'a str>,
    meant: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for word in words {
        let one = meant(word)?;
        if all.contains(&one) {
            return Err(format!(
                "'{text}' has '{word}' twice: name each kind and size once (--repeat N does all \
                 of them again)"
            ));
        }
        all.push(one);
    }
    Ok(all)
}

impl FromStr for Body {
    type Err = String;

    fn from_str(text: &str) -> Result<Body, String> {
        match text.parse::<Bodies>()?.all()[..] {
            [body] => Ok(body),
            _ => Err(format!(
                "'{text}' is not one body: write one kind and one size in kB, such as s10"
            )),
        }
    }
}
