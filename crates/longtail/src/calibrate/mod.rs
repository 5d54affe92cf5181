//! `longtail calibrate`, in parts: the sink that the generators are pointed at (`subject`), what a run came to
//! (`account`), all rounds (`conduct`), the table (`text`). The generators themselves are in `crate::generators`.

mod account;
mod conduct;
mod subject;
mod text;

pub(crate) use conduct::{Contender, Ring};
pub(crate) use subject::Subject;
pub(crate) use text::{CalibrationFindings, json, table};
