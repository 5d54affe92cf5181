//! Connections were served in turns, some requests in a row each, while others waited to be
//! accepted.

use super::{Assessment, Grade};
use crate::words::counted;

/// Grade, sentence and hint.
pub(super) fn assess(answers_a_turn: f64, waiting: u32) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the server took connections in turns: {answers_a_turn:.1} responses in a row \
            for one, while {} waited",
        counted(waiting, "other")
    );
    let hint = "as Puma before 7 does: the first response of each turn carries the whole \
            wait, so that high percentiles jump as connections rise and the rate stays; \
            compare with -k or Puma 7";
    Assessment::new(grade, sentence, hint)
}
