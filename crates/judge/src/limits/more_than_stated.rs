//! The server takes more requests at once than was stated: an async server, one with I/O threads, or
//! a wrong `--slots`.

use model::AtOnce;

use crate::words::{at_once_in_words, count_of};

pub(super) fn evidence(stated: u32, at_once: &AtOnce) -> String {
    format!("{} requests' worth of work at a time, {stated} were stated", at_once_in_words(at_once))
}

pub(super) fn sentence(
    stated: u32,
    at_once: &AtOnce,
    connections: u32,
    waits: bool,
    is_full: bool,
) -> String {
    let worth = at_once_in_words(at_once);
    if is_full {
        return format!(
            "The server takes more at once than the {stated} that were stated: {worth} requests' \
             worth at a time, and no more."
        );
    }
    if waits {
        return format!(
            "The server takes more at once than the {stated} that were stated: at least {worth}. \
             Requests wait at {}; whether more connections bring more, these loads do not tell.",
            count_of(connections, "connection")
        );
    }
    format!(
        "The server takes more at once than the {stated} that were stated: at least {worth}. No \
         limit was seen up to {}.",
        count_of(connections, "connection")
    )
}
