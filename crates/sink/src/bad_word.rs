//! What a flag does not take: a line that says what would do.

use thiserror::Error;

/// A text that is none of the words that a flag takes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not {expected}")]
pub struct BadWord {
    text: String,
    expected: &'static str,
}

impl BadWord {
    /// `expected` says what would do, and how it is written.
    pub(crate) fn new(text: &str, expected: &'static str) -> BadWord {
        BadWord { text: text.to_owned(), expected }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;
    use crate::{DelayLaw, FaultLaw, Listen, RequestShare, SlotQueue, StallLaw};

    fn assert_refused<T: FromStr<Err = BadWord> + std::fmt::Debug>(hint: &str, texts: &[&str]) {
        for text in texts {
            let line = text.parse::<T>().expect_err(text).to_string();
            assert!(line.contains(hint) && line.lines().count() == 1, "{line}");
        }
    }

    #[test]
    fn a_bad_word_is_refused_in_one_line_that_says_what_to_write() {
        assert_refused::<DelayLaw>("write 1ms", &["", "fast", "exp", "exp:", "exp:1ms:2ms", "uniform:9ms:1ms"]);
        assert_refused::<DelayLaw>("write 1ms", &["bimodal:1ms:2ms:3", "lognormal:1ms:-1", "x:1ms"]);
        assert_refused::<StallLaw>("write 1s:100ms", &["", "1s", "1s:", "1s:1s", "0s:0s", "100ms:1s", "a:b"]);
        assert_refused::<RequestShare>("write 2%", &["", "%", "2", "101%", "-1%", "nan", "much"]);
        assert_refused::<FaultLaw>("write 503:1%", &["", "503", "503:", "99:1%", "600:1%", "204:1%", "304:1%"]);
        assert_refused::<FaultLaw>("write 503:1%", &["x:1%", "503:200%"]);
        assert_refused::<SlotQueue>("write unlimited", &["", "fifo"]);
        let (no_address, long) = ("write 127.0.0.1:8080", format!("unix://{}", "x".repeat(108)));
        assert_refused::<Listen>(
            no_address,
            &["", "8080", "localhost:80", "unix://", "unix://@", "http://127.0.0.1:80", &long],
        );
    }
}
