//! What the network does to a run.

use super::Row;

pub(super) fn rows() -> Vec<Row> {
    Vec::new()
}
