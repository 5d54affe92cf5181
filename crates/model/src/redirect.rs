//! Where redirects lead, so that a report can say what to load instead.

use serde::{Deserialize, Serialize};

use crate::MaskedText;
use crate::secret::Maskable as _;

/// Longer addresses are shortened; nobody types one.
const LONGEST: usize = 300;

/// An example of the redirects of a run: the first by status and location, so that the order in
/// which lanes are merged does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// Its status.
    pub status: u16,
    /// Its `Location`; `None` if it has none.
    pub location: Option<MaskedText>,
    /// Whether others had another status or led elsewhere.
    pub has_others: bool,
}

impl Redirect {
    /// Whether a response with this status leads to another address (RFC 9110, section 15.4).
    pub fn is_one(status: u16) -> bool {
        matches!(status, 301 | 302 | 303 | 307 | 308)
    }

    /// A redirect with this `Location`, as it was received.
    pub fn of(status: u16, location: Option<&[u8]>, has_others: bool) -> Redirect {
        let location = location.map(|bytes| {
            let text: String = String::from_utf8_lossy(bytes)
                .chars()
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect();
            let masked = text.masked();
            let end = masked.char_indices().nth(LONGEST).map_or(masked.len(), |(at, _)| at);
            let ellipsis = if end < masked.len() { "…" } else { "" };
            MaskedText::of_masked(format!("{}{ellipsis}", &masked[..end]))
        });
        Redirect { status, location, has_others }
    }

    /// Combines this one with that of another lane or run.
    #[must_use]
    pub fn and(&self, other: &Redirect) -> Redirect {
        let is_same = self.status == other.status && self.location == other.location;
        let is_least = (self.status, &self.location) <= (other.status, &other.location);
        let least = if is_least { self } else { other };
        Redirect { has_others: self.has_others || other.has_others || !is_same, ..least.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_without_its_secrets_and_on_one_line() {
        for (location, shown) in [
            ("https://h/", "https://h/"),
            ("/login?return_to=%2Forders", "/login?return_to=%2Forders"),
            ("https://me:hunter2@h/?token=abc", "https://(secret)@h/?token=(secret)"),
            ("/\u{9b}31m", "/\u{fffd}31m"),
        ] {
            let redirect = Redirect::of(302, Some(location.as_bytes()), false);
            assert_eq!(redirect.location.as_deref(), Some(shown));
        }
        let long = Redirect::of(302, Some(&[b'x'; 1000]), false).location.unwrap();
        assert_eq!(long.chars().count(), LONGEST + 1);
    }

    #[test]
    fn the_order_in_which_lanes_are_merged_does_not_matter() {
        let [a, b] = [&b"/a"[..], b"/b"].map(|to| Redirect::of(302, Some(to), false));
        assert_eq!(a.and(&a), a);
        assert_eq!(a.and(&b), b.and(&a));
        assert_eq!(a.and(&b), Redirect { has_others: true, ..a });
    }
}
