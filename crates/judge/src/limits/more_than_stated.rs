//! The server processes more requests at once than was stated: an async server, one with I/O
//! threads, or a wrong `--slots`.

use model::{AtOnce, Limit};

use crate::at_once;
use crate::words::{brief_count, count_of, worth_in_words};

pub(super) fn evidence(stated: u32, at_once: &AtOnce) -> String {
    format!("{} of work at a time, {stated} were stated", worth_in_words(at_once))
}

/// The sentence for [`Limit::MoreThanStated`].
pub(super) fn sentence(limit: &Limit) -> String {
    let Limit::MoreThanStated { stated, at_once, connections, waits, is_full, busy } = limit else {
        return String::new();
    };
    if let Some(busy) = busy {
        return format!(
            "The server has more threads than the {stated} that were stated: {} are busy, by its own \
             count.",
            brief_count(*busy)
        );
    }
    let worth = worth_in_words(at_once);
    let probably = if at_once::is_narrow(at_once) { "" } else { " probably" };
    if *is_full {
        return format!(
            "The server{probably} takes more at once than the {stated} that were stated: {worth} \
             at a time, and no more."
        );
    }
    if *waits {
        return format!(
            "The server{probably} takes more at once than the {stated} that were stated: at least {worth}. \
             Requests wait at {}; these loads do not tell whether more connections bring more.",
            count_of(*connections, "connection")
        );
    }
    format!(
        "The server{probably} takes more at once than the {stated} that were stated: at least {worth}. No \
         limit was seen up to {}.",
        count_of(*connections, "connection")
    )
}
