//! The server served requests whose clients no longer waited for the response.

use super::{Assessment, Grade};
use crate::words::counted;

/// Grade, sentence and hint. No count is wrong here: the server counts what it served, whether or
/// not the response still found its client.
pub(super) fn assess(served: u64, unanswered: u64) -> Assessment {
    let got_none = format!("{} got no response", counted(unanswered, "request"));
    let sentence = match served {
        0 => format!("{got_none}, and by its own count the server began none of them"),
        _ => format!(
            "{got_none}, and by its own count the server served {served} of them: work for nobody"
        ),
    };
    let hint = "a server that sheds requests that have waited too long, or has a shorter queue, \
            wastes less work; --timeout is how long the clients wait";
    Assessment::new(Grade::Note, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_for_nobody_is_a_note_with_both_counts() {
        let found = assess(87, 120);
        assert_eq!(found.grade, Grade::Note);
        assert!(found.sentence.starts_with("120 requests got no response"), "{}", found.sentence);
        assert!(found.sentence.contains("served 87 of them: work for nobody"));
        assert!(assess(0, 1).sentence.contains("1 request got no response"));
        assert!(assess(0, 1).sentence.contains("none of them"));
    }
}
