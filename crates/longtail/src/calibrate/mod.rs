//! `longtail calibrate`, in parts: the sink that the generators are pointed at (`sink`), what a run came to
//! (`account`), all rounds (`conduct`), the table (`text`). The generators themselves are in `crate::generators`.

mod account;
mod conduct;
mod sink;
mod text;

pub(crate) use conduct::{CalibrationRounds, ComparedGenerator};
pub(crate) use sink::SinkUnderLoad;
pub(crate) use text::{CalibrationFindings, json, table};
