//! Another generator's count of requests differs from the server's.

use super::{Assessment, Grade};
use crate::words::counted;

/// Grade, sentence and hint.
pub(super) fn assess(by: &str, claimed: u64, server: u64, under_way: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "{by} reports {}, but the server counted {server}; at most {under_way} can have \
             been in flight at the end",
        counted(claimed, "request")
    );
    let hint = "is anything else sending to this server, or does that generator miscount?";
    Assessment::new(grade, sentence, hint)
}
