//! The app's count of content bytes differs from what we received.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(client: u64, app: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("the app sent {app} bytes of content, but {client} came back");
    let hint = "is anything else sending to this server, or are requests given up before they \
             are answered?";
    Assessment::new(grade, sentence, hint)
}
