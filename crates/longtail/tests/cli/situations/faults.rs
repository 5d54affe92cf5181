//! Servers, kernels and users that do what nobody expects.

use super::{Caused, Cells, Row, Seen};
use crate::lab::{Lab, free_port};

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        name: "nobody listens",
        how: "a port without a listener",
        expected: Cells { exit: Some(2), ..Cells::default() },
        cause: || Caused::Seen(Seen::exit(&Lab::new().run(&format!("load http://127.0.0.1:{}/", free_port())))),
    }]
}
